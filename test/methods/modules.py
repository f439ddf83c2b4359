"""Modules: forward, gradients of inputs and parameters, names of the state, buffers afterwards."""

import numpy as np

from methods import constant, integers, losses, normal


def rotated(x):
  """Pairs of the two halves of x turned by angles that grow with the position."""
  import torch

  angle = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
  a, b = x.chunk(2, -1)
  return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


def grouped(x, k, o, q, v, heads, groups):
  """Causal attention of `heads` queries on `groups` keys and values."""
  from torch.nn.functional import linear, scaled_dot_product_attention

  q, k, v = (
    linear(x, w).unflatten(-1, (n, -1)).transpose(1, 2) for w, n in ((q, heads), (k, groups), (v, groups))
  )
  out = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
  return linear(out.transpose(1, 2).flatten(2), o)


def pooled(x, kernel, draws, **sizes):
  """The function, for the module has what is drawn as state."""
  from torch.nn import functional

  pool = functional.fractional_max_pool2d if x.ndim == 4 else functional.fractional_max_pool3d
  return pool(x, kernel, **sizes, _random_samples=draws.detach())


INPUTS = {
  **losses.INPUTS,
  "a1": normal(2, 4, 9), "a2": normal(2, 4, 7, 6), "a3": normal(2, 2, 3, 4, 5), "c8": normal(2, 8, 3, 2), "c12": normal(2, 8, 12), "row": normal(3, 4), "rare": constant([0, 8, 4], np.int64),
  "u2": normal(1, 1, 2, 2), "at2": constant([[[[1, 2], [12, 15]]]], np.int64), "u1": normal(2, 1, 2), "at1": constant([[[1, 2]], [[0, 3]]], np.int64), "u3": normal(1, 1, 1, 1, 2), "at3d": constant([[[[[1, 3]]]]], np.int64),
  "q6": normal(4, 2, 6), "kv6": normal(3, 2, 6), "k3": normal(3, 2, 3), "v5": normal(3, 2, 5), "h2": normal(1, 3, 5), "h3": normal(1, 3, 5), "h4": normal(4, 3, 5), "words": integers(0, 5, 2, 3), "pull": normal(2, 3), "starts": constant([0, 2, 2, 6], np.int64),
  "causal": constant(np.triu(np.ones((4, 4)), 1), bool), "padding": constant([[0, 0, 0, 1], [0, 0, 0, 0]], bool), "absent": constant([[0, 0, 1], [0, 0, 0]], bool), "bias4": normal(4, 4, 3),
  "draws2": constant(np.linspace(0, 0.99, 16).reshape(2, 4, 2), np.float32), "draws3": constant(np.linspace(0.99, 0, 12).reshape(2, 2, 3), np.float32),
  "rotated": rotated, "grouped": grouped, "pooled": pooled,
}  # fmt: skip
FIXED = losses.FIXED

ROWS = """
nn.CELU(0.7)(y)   nn.ELU(0.5)(y)   nn.ELU(inplace=True)(y*2)   nn.GELU('tanh')(y)   nn.GELU()(y)   nn.GLU(1)(y)   nn.Hardshrink(0.3)(y)   nn.Hardsigmoid()(y)   nn.Hardswish()(y)   nn.Hardtanh(-0.5,0.7)(y)   nn.LeakyReLU(0.3)(y)
nn.LogSigmoid()(y)   nn.LogSoftmax(1)(x)   nn.Mish()(y)   nn.PReLU(4)(y)   nn.PReLU(init=0.1)(x)   nn.RReLU(0.2,0.3).eval()(y)   nn.ReLU()(y)   nn.ReLU6()(y*5)   nn.SELU()(y)   nn.SiLU()(y)   nn.Sigmoid()(y)   nn.Softmax(dim=0)(y)
nn.Softmax2d()(x)   nn.Softmin(0)(y)   nn.Softplus(2,3)(y)   nn.Softshrink(0.3)(y)   nn.Softsign()(y)   nn.Tanh()(y)   nn.Tanhshrink()(y)   nn.Threshold(0.1,20)(y)   nn.QuickGELU()(y) => y * (1.702 * y).sigmoid()
nn.BCELoss(q)(unit,target)   nn.BCEWithLogitsLoss(pos_weight=weight)(y,target)   nn.CTCLoss()(time.log_softmax(2),texts,lengths,sizes)   nn.CosineEmbeddingLoss(0.2)(y,a,plus1)   nn.CosineSimilarity()(y,a)   nn.CrossEntropyLoss(weight,label_smoothing=0.1)(l,at)   nn.GaussianNLLLoss(full=True)(y,a,p)
nn.HingeEmbeddingLoss(0.5)(y,plus)   nn.HuberLoss(delta=0.5)(y,a)   nn.KLDivLoss(reduction='batchmean')(y,p)   nn.L1Loss(reduction='sum')(y,a)   nn.MSELoss()(y,a)   nn.MarginRankingLoss(0.5)(y,a,plus)   nn.MultiLabelMarginLoss()(y,classes)   nn.MultiLabelSoftMarginLoss(weight)(y,target)
nn.MultiMarginLoss(2,0.5)(l,at.clamp(min=0))   nn.NLLLoss(weight)(l,at)   nn.PairwiseDistance(1)(y,a)   nn.PoissonNLLLoss(False)(p,q)   nn.SmoothL1Loss(beta=0.5)(y,a)   nn.SoftMarginLoss()(y,plus)   nn.TripletMarginLoss(0.5,swap=True)(y,a,c)   nn.TripletMarginWithDistanceLoss(margin=0.5)(y,a,c)
nn.Linear(4,3)(x)   nn.Linear(4,2,bias=False)(y)   nn.Linear(4,3).to(F64)(y.to(F64))   nn.Bilinear(4,4,3)(x,x*2)   nn.Bilinear(4,4,3,bias=False)(v,v+1)   nn.Embedding(5,3)(words)   nn.Embedding(5,3,padding_idx=1)(words)   nn.EmbeddingBag(5,3)(words)   nn.EmbeddingBag(5,3,mode='sum')(words,per_sample_weights=pull)   nn.EmbeddingBag(5,3,mode='max',padding_idx=1)(words)   nn.EmbeddingBag(5,3)(words.flatten(),starts)   nn.EmbeddingBag(5,3,mode='sum',padding_idx=2)(words.flatten(),starts,pull.flatten())   nn.EmbeddingBag(5,3,mode='max')(words.flatten(),starts)   nn.EmbeddingBag(5,3,mode='mean',include_last_offset=True,padding_idx=-2)(words.flatten(),starts)   nn.Identity()(y)   nn.Flatten()(x)   nn.Flatten(0,1)(x)   nn.Unflatten(1,(1,3))(x)
nn.Sequential(nn.Linear(4,5),nn.GELU(),nn.Linear(5,2))(y)   nn.Dropout(0.5).eval()(y)   nn.Dropout1d(0.5).eval()(x)   nn.Dropout2d(0.5).eval()(w)   nn.Dropout3d(0.5).eval()(a3)   nn.AlphaDropout(0.5).eval()(y)
nn.BatchNorm1d(4)(row)   nn.BatchNorm1d(4,affine=False)(a1)   nn.BatchNorm2d(2,momentum=None)(w)   nn.BatchNorm2d(2).eval()(w)   nn.BatchNorm3d(2,1e-3,0.3)(a3)   nn.BatchNorm3d(2,affine=False,track_running_stats=False)(a3)
nn.LayerNorm(4)(x)   nn.LayerNorm((3,4),bias=False)(x)   nn.LayerNorm(4,1e-2,False)(y)   nn.LayerNorm2d(2)(w) => nn.LayerNorm(2)(w.permute(0,2,3,1)).permute(0,3,1,2)   nn.RMSNorm(4)(x)   nn.RMSNorm(4,eps=0.1)(y)   nn.GroupNorm(2,4,bias=False)(a2)   nn.BatchNorm1d(4,bias=False)(row)   nn.InstanceNorm2d(2,affine=True,bias=False)(w)   nn.GroupNorm(2,4)(a2)   nn.GroupNorm(2,4,0.1,False)(row)   nn.LocalResponseNorm(3,0.1)(a2)
nn.BatchNorm(2)(w) => nn.BatchNorm2d(2)(w)   nn.BatchNorm(4)(row) => nn.BatchNorm1d(4)(row)   nn.InstanceNorm(2)(w) => nn.InstanceNorm2d(2)(w)   nn.InstanceNorm1d(4,affine=True)(a1)   nn.InstanceNorm1d(3,track_running_stats=True)(y)   nn.InstanceNorm2d(2,affine=True,track_running_stats=True,momentum=0.3)(w)   nn.InstanceNorm2d(2,track_running_stats=True).eval()(w)   nn.InstanceNorm3d(2)(a3)
nn.Conv1d(4,6,3,padding='same',padding_mode='circular')(a1)   nn.Conv2d(4,6,(3,2),stride=2,padding=(1,0),groups=2)(a2)   nn.Conv2d(2,3,3,padding=2,padding_mode='reflect',bias=False)(w)   nn.Conv2d(2,3,3,padding=1,padding_mode='replicate',dilation=2)(w)   nn.Conv3d(2,3,2)(a3)
nn.ConvTranspose1d(4,2,3,stride=2,output_padding=1)(a1)   nn.ConvTranspose2d(2,3,3,stride=2,padding=1)(w,output_size=[12,11])   nn.ConvTranspose1d(4,2,3,stride=3,dilation=2)(a1,(2,2,31))   nn.ConvTranspose2d(4,6,3,stride=2,padding=1,groups=2)(a2)   nn.ConvTranspose3d(2,3,2,dilation=2,bias=False)(a3)
nn.AvgPool1d(2)(a1)   nn.AvgPool2d(3,2,1)(w)   nn.AvgPool3d(2,1)(a3)   nn.MaxPool1d(3,2)(a1)   nn.MaxPool2d(3,2,1,1,False,True)(a2)   nn.MaxPool2d(2,return_indices=True)(w)   nn.MaxPool3d(2,stride=1)(a3)   nn.LPPool1d(2,3)(a1)   nn.LPPool2d(2,2)(w.abs())   nn.LPPool3d(3,2)(a3.abs())
nn.FractionalMaxPool2d(2,(3,4),_random_samples=draws2)(a2) => pooled(a2,2,draws2,output_size=(3,4))   nn.FractionalMaxPool3d((1,2,2),output_ratio=0.6,_random_samples=draws3)(a3) => pooled(a3,(1,2,2),draws3,output_ratio=0.6)   nn.AdaptiveAvgPool1d(4)(a1)   nn.AdaptiveAvgPool2d((2,3))(a2)   nn.AdaptiveAvgPool3d(2)(a3)   nn.AdaptiveMaxPool1d(3)(a1)   nn.AdaptiveMaxPool2d((3,2))(a2)   nn.AdaptiveMaxPool3d(2)(a3)   nn.MaxUnpool1d(2)(u1,at1)   nn.MaxUnpool2d(2)(u2,at2,output_size=(5,4))   nn.MaxUnpool3d((1,1,2))(u3,at3d)
nn.ReflectionPad2d((1,2,0,3))(a2)   nn.ConstantPad1d(2,3.5)(a1)   nn.ConstantPad2d((1,-1,0,2),3.5)(a2)   nn.ConstantPad3d(1,3.5)(a3)   nn.ChannelShuffle(2)(a2)   nn.PixelShuffle(2)(c8)   nn.PixelUnshuffle(2)(w)   nn.Fold((4,5),2)(c12)   nn.Unfold(2,1,1,2)(a2)
nn.Upsample((5,9),None,'bilinear',True)(a2)   nn.Upsample(scale_factor=2)(a1)   nn.UpsamplingNearest2d(None,2)(w)   nn.UpsamplingBilinear2d(None,2)(w)
nn.AdaptiveLogSoftmaxWithLoss(4,9,[3,5],2.0)(row,rare)   nn.AdaptiveLogSoftmaxWithLoss(4,9,[6],2.0,True)(row[0],rare[1])
nn.RNN(4,5)(x)   nn.RNN(4,5,2,nonlinearity='relu',bias=False,batch_first=True)(x)   nn.LSTM(4,3,2,bidirectional=True)(x)   nn.LSTM(4,5,proj_size=2,batch_first=True)(x,None)   nn.LSTM(4,5)(x,(h2,h3))   nn.LSTM(4,5)(y,(h2[:,0],h3[:,0]))   nn.GRU(4,5,bidirectional=True,batch_first=True)(x)   nn.GRU(4,5,2,bias=False)(x,h2.repeat(2,1,1))   nn.GRU(4,5,2,bidirectional=True)(x,h4)
nn.RNNCell(4,5)(y)   nn.RNNCell(4,5,nonlinearity='relu')(y,h2[0])   nn.LSTMCell(4,5)(y)   nn.LSTMCell(4,5,bias=False)(y,(h2[0],h3[0]))   nn.GRUCell(4,5)(y)   nn.GRUCell(4,5)(y,h2[0])
nn.MultiheadAttention(6,2)(q6,kv6,kv6)   nn.MultiheadAttention(6,2,bias=False,batch_first=True)(q6,q6,q6,need_weights=False)   nn.MultiheadAttention(6,2)(q6[:,0],kv6[:,0],kv6[:,0])   nn.MultiheadAttention(6,2,kdim=3,vdim=5)(q6,k3,v5)   nn.MultiheadAttention(6,2,add_bias_kv=True,add_zero_attn=True)(q6,kv6,kv6,key_padding_mask=absent)
nn.MultiheadAttention(6,2)(q6,q6,q6,attn_mask=causal)   nn.MultiheadAttention(6,2)(q6,q6,q6,attn_mask=causal,key_padding_mask=padding,need_weights=False)   nn.MultiheadAttention(6,2)(q6,kv6,kv6,attn_mask=bias4)   nn.MultiheadAttention(6,2)(q6,kv6,kv6,key_padding_mask=absent,average_attn_weights=False)
nn.TransformerEncoderLayer(6,2,8,0.0)(q6,src_mask=causal,src_key_padding_mask=padding)   nn.TransformerEncoderLayer(6,2,8,0.0,batch_first=True,bias=False)(q6)   nn.TransformerEncoderLayer(6,2,8,0.0,norm_first=True,activation='gelu')(q6)
nn.TransformerDecoderLayer(6,2,8,0.0)(q6,kv6,tgt_mask=causal,memory_key_padding_mask=absent)   nn.TransformerDecoderLayer(6,2,8,0.0,norm_first=True,activation='gelu')(q6,kv6)
nn.TransformerEncoder(nn.TransformerEncoderLayer(6,2,8,0.0),2,nn.LayerNorm(6))(q6)   nn.TransformerDecoder(nn.TransformerDecoderLayer(6,2,8,0.0),1)(q6,kv6)   nn.Transformer(6,2,1,1,8,0.0)(kv6,q6,tgt_mask=causal)
nn.RotaryEmbedding(6)(q6) => rotated(q6)   nn.RotaryEmbedding(6)(q6,1) => rotated(F.pad(q6,(0,0,1,0)))[:,1:]
nn.GroupedQueryAttention(6,2,1)(q6,is_causal=True) => grouped(q6,param('k_proj.weight',3,6),param('o_proj.weight',6,6),param('q_proj.weight',6,6),param('v_proj.weight',3,6),2,1)
"""
ROWS += "".join(
  f"nn.{kind}Pad{n}d(1)(a{n})\n"
  for kind in ("Zero", "Reflection", "Replication", "Circular")
  for n in (1, 2, 3)
)

MISTAKES = """
nn.ConvTranspose2d(2, 3, 3, stride=2)(w, output_size=[12, 13])   !   output_size (12, 13) is not within [13, 13] to [14, 14]
nn.GroupNorm(4, 6)        !   6 channels do not fall into 4 groups
nn.GRU(3, 4)(T.ones(5, 2, 3), lengths=[1])   !   lengths: there must be one for each of 2 sequences
nn.RNN(3, 4, nonlinearity='selu')   !   "tanh" or "relu"
nn.LSTM(3, 4)(x)          !   x is [L, N, 3], or [L, 3] without a batch
nn.TransformerEncoderLayer(4, 2, activation='tanh')   !   activation is
nn.MultiheadAttention(8, 3)   !   does not divide into 3 heads
nn.EmbeddingBag(3, 2, mode='min')   !   mode is "sum", "mean" or "max", not 'min'
nn.EmbeddingBag(3, 2)(k)   !   index has two axes, or one and offsets
nn.EmbeddingBag(3, 2)(words, starts)   !   index has two axes, or one and offsets
nn.EmbeddingBag(3, 2)(k, y[0])   !   offsets are a vector of integers
nn.EmbeddingBag(5, 2)(words, None, pull)   !   per_sample_weights are for sums
nn.EmbeddingBag(5, 2, mode='sum')(words, None, y)   !   one weight for each index
nn.Embedding(3, 2, padding_idx=4)   !   padding_idx 4 is none of 3 rows
nn.Dropout(1.5)           !   no probability
nn.ZeroPad2d((1, 2))      !   a width or 4 of them
nn.GELU(approx=True)      !   GELU(approximate='none'): got an unexpected keyword
nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 3])   !   the cutoffs rise within 1..8
nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(y, at)   !   x and target are T[n, k]
nn.Module()(1)            !   Module has no forward
"""
