"""Losses and activations of other shapes, weights and reductions than in losses.py; activations of edges."""

import numpy as np

from methods import constant, integers, normal, positive

# x, y, z: f32[4, 5]   p, q: f32[4, 5] in (0, 1)   s: f32[4, 5] of 1 and -1   l: f32[2, 3, 4]
# m: i64[4, 5], classes and -1   c: i64[2, 4] in 0..2, one -100   t: i64[4] in 0..4
# w: f32[5] > 0   v: f32[3] > 0   r: f32[4] of 1 and -1   g: f32[9, 3, 6], scores in 9 steps   c0, c1, ...: texts and lengths
INPUTS = {
  "x": lambda r: r.standard_normal((4, 5)).astype(np.float32) * 2, "y": normal(4, 5), "z": normal(4, 5),
  "p": positive(4, 5, low=0.01, high=0.99), "q": positive(4, 5, low=0.0, high=1.0),
  "k": lambda r: r.poisson(2, (4, 5)).astype(np.float32), "s": lambda r: r.choice([-1, 1], (4, 5)).astype(np.float32),
  "l": lambda r: r.standard_normal((2, 3, 4)).astype(np.float32) * 3,
  "d": lambda r: r.dirichlet([1, 1, 1], (2, 4)).transpose(0, 2, 1).astype(np.float32),
  "c": constant([[0, 2, -100, 1], [1, 1, 0, 2]], np.int64), "t": integers(0, 5, 4),
  "w": positive(5, low=0.5, high=2.0), "v": positive(3, low=0.5, high=2.0), "r": constant([1, -1, 1, -1], np.float32),
  "m": constant([[1, 0, -1, 2, 3], [-1, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, -1, -1, -1, -1]], np.int64),
  "g": lambda r: r.standard_normal((9, 3, 6)).astype(np.float32) * 2,
  "c0": constant([3, 1, 2, 4, 5, 2, 2, 3], np.int64), "c1": constant([9, 8, 7], np.int64),
  "c2": constant([3, 2, 3], np.int64), "c3": constant([3, 1, 2, 4, 5, 1, 2, 2, 3], np.int64),
  "c4": constant([3, 1, 2, 4, 5], np.int64), "c5": constant([3, 2, 0], np.int64),
  "c6": constant([0, 1, 2, 2, 2, 1, 0, 3, 3], np.int64), "c7": constant([3, 3, 3], np.int64),
  "c8": constant([9], np.int64), "c9": constant([3], np.int64), "c10": constant([3, 3], np.int64),
  "c11": constant([2], np.int64),
}  # fmt: skip
FIXED = ("d", "k", "r", "s", "v", "w")

ROWS = """
(x*50).logsigmoid()   (x*20).softplus(0.5,3)   x.hardshrink(1.5)   l.softmin(dim=1)   x.rrelu(0.2,0.6)
l.normalize(p=1,dim=2)   l[:,:2].glu(dim=1)   l.log_softmax(0)   e.relu()   e.relu6()   e.leaky_relu()   e.elu()
e.celu()   e.selu()   e[:17].gelu()   e.silu()   e.mish()   e.logsigmoid()   e.hardsigmoid()   e.hardswish()   e.hardtanh()
e.hardshrink()   e.softshrink()   e.tanhshrink()   e.softplus()   e.softsign()   e.threshold(0.5,7)
x.mse_loss(y)   x.mse_loss(y,reduction='none')   x.l1_loss(y,reduction='sum')   x.smooth_l1_loss(y)
x.smooth_l1_loss(y,beta=0.3,reduction='none')   x.smooth_l1_loss(y,beta=0.)   x.huber_loss(y)
x.huber_loss(y,delta=0.3,reduction='sum')   x.cross_entropy(t)   x.cross_entropy(t,w)
x.cross_entropy(t,w,label_smoothing=0.1)   x.cross_entropy(t,w,reduction='none',label_smoothing=0.1)
l.cross_entropy(c)   l.cross_entropy(c,reduction='none')   l.cross_entropy(c,v,reduction='sum')
l.cross_entropy(c,v,label_smoothing=0.2)   l.cross_entropy(d)   l.cross_entropy(d,v,reduction='none')
l.cross_entropy(d,v,label_smoothing=0.3)   l.cross_entropy(d,reduction='sum')   x[0].cross_entropy(t[0])
x.cross_entropy(t,ignore_index=3)   x.nll_loss(t)   x.nll_loss(t,w)   l.nll_loss(c,v)   l.nll_loss(c,reduction='none')
l.nll_loss(c,v,reduction='sum')   x[0].nll_loss(t[0])   p.binary_cross_entropy(q)   p.binary_cross_entropy(q,w)
p.binary_cross_entropy(q,reduction='none')   x.binary_cross_entropy_with_logits(q)
(x*50).binary_cross_entropy_with_logits(q,w,reduction='sum')   x.binary_cross_entropy_with_logits(q,pos_weight=w)
x.binary_cross_entropy_with_logits(q,w,reduction='none',pos_weight=w*2)   x.kl_div(q)
x.kl_div(q,reduction='batchmean')   x.kl_div(y,reduction='sum',log_target=True)   x.kl_div(k,reduction='none')
x.poisson_nll_loss(k)   x.poisson_nll_loss(k,full=True,reduction='none')   p.poisson_nll_loss(k,log_input=False)
x.gaussian_nll_loss(y,p)   x.gaussian_nll_loss(y,p[:,0],reduction='none')
x.gaussian_nll_loss(y,p[:,:1],full=True,reduction='sum')   x.gaussian_nll_loss(y,0.5)   x.gaussian_nll_loss(y,p*1e-7)
x.hinge_embedding_loss(s)   x.hinge_embedding_loss(s,margin=0.5,reduction='none')   x.margin_ranking_loss(y,s)
x.margin_ranking_loss(y,s,margin=0.5,reduction='none')   x.soft_margin_loss(s)
(x*10).soft_margin_loss(s,reduction='none')   x.multilabel_soft_margin_loss(q)
x.multilabel_soft_margin_loss(q,w,reduction='none')   x.multi_margin_loss(t)
x.multi_margin_loss(t,p=2,margin=0.5,weight=w,reduction='none')   x[0].multi_margin_loss(t[0])
x.multilabel_margin_loss(m)   x.multilabel_margin_loss(m,reduction='none')   x[0].multilabel_margin_loss(m[0])
x.triplet_margin_loss(y,z)   x.triplet_margin_loss(y,z,margin=2.,p=1,swap=True,reduction='none')
x.triplet_margin_with_distance_loss(y,z,swap=True)   x.cosine_embedding_loss(y,r)
x.cosine_embedding_loss(y,r,margin=0.3,reduction='none')   x.pairwise_distance(y)
x.pairwise_distance(y,p=3,eps=0.01,keepdim=True)   x[0].cosine_embedding_loss(y[0],r[0])
g.log_softmax(-1).ctc_loss(c0,c1,c2)   g.log_softmax(-1).ctc_loss(c3,(9,8,9),(3,3,3),reduction='none')
g.log_softmax(-1).ctc_loss(c4,c1,c5,reduction='sum')   g.log_softmax(-1).ctc_loss(c6.reshape(3,3),c1,c2,blank=5)
g[:,0].log_softmax(-1).ctc_loss(c7,c8[0],c9[0])   g[:,0].log_softmax(-1).ctc_loss(c10,c8[0],c11[0],reduction='none')
"""
