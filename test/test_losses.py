"""Activations and losses: values and gradients beside PyTorch's, as methods and as modules."""

import functools
import math

import numpy as np
import pytest

from mini import DTypeError, ShapeError, Tensor, nn

torch = pytest.importorskip("torch")

# x, y, z: f32[4, 5]   p, q: f32[4, 5] in (0, 1)   s: f32[4, 5] of 1 and -1   l: f32[2, 3, 4]   c: i64[2, 4] in 0..2,
# one -100
# t: i64[4] in 0..4   w: f32[5] > 0   v: f32[3] > 0   r: f32[4] of 1 and -1   m: i64[4, 5], classes and -1   e: edges
INPUTS = {
  "x": lambda r: r.standard_normal((4, 5)).astype(np.float32) * 2,
  "y": lambda r: r.standard_normal((4, 5)).astype(np.float32),
  "z": lambda r: r.standard_normal((4, 5)).astype(np.float32),
  "p": lambda r: r.uniform(0.01, 0.99, (4, 5)).astype(np.float32),
  "q": lambda r: r.uniform(0, 1, (4, 5)).astype(np.float32),
  "k": lambda r: r.poisson(2, (4, 5)).astype(np.float32),
  "s": lambda r: r.choice([-1, 1], (4, 5)).astype(np.float32),
  "l": lambda r: r.standard_normal((2, 3, 4)).astype(np.float32) * 3,
  "d": lambda r: r.dirichlet([1, 1, 1], (2, 4)).transpose(0, 2, 1).astype(np.float32),
  "c": lambda r: np.array([[0, 2, -100, 1], [1, 1, 0, 2]]),
  "t": lambda r: r.integers(0, 5, 4),
  "w": lambda r: r.uniform(0.5, 2, 5).astype(np.float32),
  "v": lambda r: r.uniform(0.5, 2, 3).astype(np.float32),
  "r": lambda r: np.array([1, -1, 1, -1], np.float32),
  "m": lambda r: np.array([[1, 0, -1, 2, 3], [-1, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, -1, -1, -1, -1]]),
  "e": lambda r: np.array([0, -0.0, 1, -1, 3, -3, 6, 0.5, -0.5, 20, 30, -30, 1e30, math.nan], np.float32),
  "g": lambda r: (
    r.standard_normal((9, 3, 6)).astype(np.float32) * 2
  ),  # scores of 6 classes in 9 steps of 3 sequences
}
TRAINED = "xyzpqlg"  # whose gradients are compared

ACTIVATIONS = """
x.relu()   F.relu6(x*4)   F.leaky_relu(x)   F.leaky_relu(x,0.3)   F.prelu(x,w[:1])   F.prelu(x,w)   F.prelu(l,v)
F.rrelu(x)   F.rrelu(x,0.2,0.6)   F.elu(x)   F.elu(x,0.5)   F.celu(x)   F.celu(x,0.7)   F.selu(x)   F.gelu(x)
F.gelu(x,approximate='tanh')   F.silu(x)   F.mish(x)   x.sigmoid()   F.logsigmoid(x)   F.logsigmoid(x*50)
F.hardsigmoid(x*2)   F.hardswish(x*2)   F.hardtanh(x)   F.hardtanh(x,-0.5,2)   F.hardshrink(x)   F.hardshrink(x,1.5)
F.softshrink(x)   F.softshrink(x,1.5)   F.tanhshrink(x)   F.softplus(x)   F.softplus(x,2)   F.softplus(x*20,0.5,3)
F.softsign(x)   F.softmin(x,1)   F.softmin(l,dim=1)   F.threshold(x,0.5,7)   F.glu(l)   F.glu(x,0)
F.glu(l[:,:2],dim=1)
F.softmax(l,1)   F.log_softmax(l,0)   x.tanh()   F.normalize(x)   F.normalize(l,p=1,dim=2)
F.relu(e)   F.relu6(e)   F.leaky_relu(e)   F.elu(e)   F.celu(e)   F.selu(e)   F.gelu(e)   F.silu(e)   F.mish(e)
F.logsigmoid(e)   F.hardsigmoid(e)   F.hardswish(e)   F.hardtanh(e)   F.hardshrink(e)   F.softshrink(e)
F.tanhshrink(e)
F.softplus(e)   F.softsign(e)   F.threshold(e,0.5,7)
"""
LOSSES = """
F.mse_loss(x,y)   F.mse_loss(x,y,reduction='none')   F.l1_loss(x,y,reduction='sum')   F.smooth_l1_loss(x,y)
F.smooth_l1_loss(x,y,beta=0.3,reduction='none')   F.smooth_l1_loss(x,y,beta=0.)   F.huber_loss(x,y)
F.huber_loss(x,y,delta=0.3,reduction='sum')
F.cross_entropy(x,t)   F.cross_entropy(x,t,w)   F.cross_entropy(x,t,w,label_smoothing=0.1)
F.cross_entropy(x,t,w,reduction='none',label_smoothing=0.1)   F.cross_entropy(l,c)
F.cross_entropy(l,c,reduction='none')   F.cross_entropy(l,c,v,reduction='sum')
F.cross_entropy(l,c,v,label_smoothing=0.2)   F.cross_entropy(l,d)   F.cross_entropy(l,d,v,reduction='none')
F.cross_entropy(l,d,v,label_smoothing=0.3)   F.cross_entropy(l,d,reduction='sum')   F.cross_entropy(x[0],t[0])
F.cross_entropy(x,t,ignore_index=3)   F.nll_loss(x,t)   F.nll_loss(x,t,w)   F.nll_loss(l,c,v)
F.nll_loss(l,c,reduction='none')   F.nll_loss(l,c,v,reduction='sum')   F.nll_loss(x[0],t[0])
F.binary_cross_entropy(p,q)   F.binary_cross_entropy(p,q,w)   F.binary_cross_entropy(p,q,reduction='none')
F.binary_cross_entropy_with_logits(x,q)   F.binary_cross_entropy_with_logits(x*50,q,w,reduction='sum')
F.binary_cross_entropy_with_logits(x,q,pos_weight=w)
F.binary_cross_entropy_with_logits(x,q,w,reduction='none',pos_weight=w*2)
F.kl_div(x,q)   F.kl_div(x,q,reduction='batchmean')   F.kl_div(x,y,reduction='sum',log_target=True)
F.kl_div(x,k,reduction='none')   F.poisson_nll_loss(x,k)   F.poisson_nll_loss(x,k,full=True,reduction='none')
F.poisson_nll_loss(p,k,log_input=False)
F.gaussian_nll_loss(x,y,p)   F.gaussian_nll_loss(x,y,p[:,0],reduction='none')
F.gaussian_nll_loss(x,y,p[:,:1],full=True,reduction='sum')   F.gaussian_nll_loss(x,y,0.5)
F.gaussian_nll_loss(x,y,p*1e-7)
F.hinge_embedding_loss(x,s)   F.hinge_embedding_loss(x,s,margin=0.5,reduction='none')   F.margin_ranking_loss(x,y,s)
F.margin_ranking_loss(x,y,s,margin=0.5,reduction='none')   F.soft_margin_loss(x,s)
F.soft_margin_loss(x*10,s,reduction='none')   F.multilabel_soft_margin_loss(x,q)
F.multilabel_soft_margin_loss(x,q,w,reduction='none')   F.multi_margin_loss(x,t)
F.multi_margin_loss(x,t,p=2,margin=0.5,weight=w,reduction='none')   F.multi_margin_loss(x[0],t[0])
F.multilabel_margin_loss(x,m)   F.multilabel_margin_loss(x,m,reduction='none')   F.multilabel_margin_loss(x[0],m[0])
F.triplet_margin_loss(x,y,z)   F.triplet_margin_loss(x,y,z,margin=2.,p=1,swap=True,reduction='none')
F.triplet_margin_with_distance_loss(x,y,z,swap=True)   F.cosine_embedding_loss(x,y,r)
F.cosine_embedding_loss(x,y,r,margin=0.3,reduction='none')   F.pairwise_distance(x,y)
F.pairwise_distance(x,y,p=3,eps=0.01,keepdim=True)
F.cosine_embedding_loss(x[0],y[0],r[0])
"""
CTC = """
F.ctc_loss(g.log_softmax(-1),i(3,1,2,4,5,2,2,3),i(9,8,7),i(3,2,3))
F.ctc_loss(g.log_softmax(-1),i(3,1,2,4,5,1,2,2,3),(9,8,9),(3,3,3),reduction='none')
F.ctc_loss(g.log_softmax(-1),i(3,1,2,4,5),i(9,8,7),i(3,2,0),reduction='sum')
F.ctc_loss(g.log_softmax(-1),i(0,1,2,2,2,1,0,3,3).reshape(3,3),i(9,8,7),i(3,2,3),blank=5)
F.ctc_loss(g[:,0].log_softmax(-1),i(3,3,3),i(9)[0],i(3)[0])
F.ctc_loss(g[:,0].log_softmax(-1),i(3,3),i(9)[0],i(2)[0],reduction='none')
"""


class Functions:
  """torch.nn.functional, with our methods."""

  def __getattr__(self, name):
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


@functools.cache
def arrays():
  r = np.random.default_rng(0)
  return {name: make(r) for name, make in INPUTS.items()}


def expressions(text):
  return [e.strip() for line in text.strip().splitlines() for e in line.split("   ") if e.strip()]


def ours(expression):
  """[the value, the gradient of each input that has one], lazy."""
  inputs = {n: Tensor(a, requires_grad=n in TRAINED) for n, a in arrays().items()}
  out = eval(expression, {"F": Functions(), "i": lambda *v: Tensor(list(v)), **inputs})
  if out.requires_grad:
    (out * weights(out.shape)).sum().backward()
  return [out, *(t.grad for t in inputs.values() if t.grad is not None)]


def theirs(expression):
  inputs = {n: torch.tensor(a, requires_grad=n in TRAINED) for n, a in arrays().items()}
  out = eval(expression, {"F": torch.nn.functional, "i": lambda *v: torch.tensor(v), **inputs})
  if out.requires_grad:
    (out * torch.tensor(weights(out.shape))).sum().backward()
  return [out.detach(), *(t.grad for t in inputs.values() if t.grad is not None)]


def weights(shape):
  """Of the elements of an output, so that their gradients differ."""
  return np.cos(np.arange(math.prod(shape), dtype=np.float32)).reshape(tuple(shape)) + 1.5


EXPRESSIONS = expressions(ACTIVATIONS + LOSSES + CTC)
CHUNK = 40


@functools.cache
def chunk(n):
  found = {e: ours(e) for e in EXPRESSIONS[n * CHUNK : (n + 1) * CHUNK]}
  Tensor.realize(*(t for ts in found.values() for t in ts))
  return found


@pytest.mark.parametrize("n, expression", list(enumerate(EXPRESSIONS)), ids=EXPRESSIONS)
def test_same(n, expression):
  found, wanted = chunk(n // CHUNK)[expression], theirs(expression)
  assert len(found) == len(wanted)
  for a, b in zip(found, wanted):
    assert a.shape == tuple(b.shape) and a.dtype.name == str(b.dtype).removeprefix("torch.")
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=3e-5, atol=1e-5)


# ---------------------------------------------------------------- modules

MODULES = """
CELU(0.7)(x)   ELU(0.5)(x)   ELU(inplace=True)(x*2)   GELU('tanh')(x)   GLU(0)(x)   Hardshrink(0.3)(x)
Hardsigmoid()(x)   Hardswish()(x)   Hardtanh(-0.5,0.7)(x)   LeakyReLU(0.3)(x)   LogSigmoid()(x)   LogSoftmax(1)(l)
Mish()(x)   PReLU(5)(x)
PReLU(init=0.1)(l)   RReLU(0.2,0.3).eval()(x)   ReLU()(x)   ReLU6()(x)   SELU()(x)   SiLU()(x)   Sigmoid()(x)
Softmax(dim=0)(x)   Softmax2d()(l)   Softmin(0)(x)   Softplus(2,3)(x)   Softshrink(0.3)(x)   Softsign()(x)   Tanh()(x)
Tanhshrink()(x)   Threshold(0.1,20)(x)
BCELoss(w)(p,q)   BCEWithLogitsLoss(pos_weight=w)(x,q)   CosineEmbeddingLoss(0.2)(x,y,r)
CrossEntropyLoss(v,label_smoothing=0.1)(l,c)   GaussianNLLLoss(full=True)(x,y,p)   HingeEmbeddingLoss(0.5)(x,s)
HuberLoss(delta=0.5)(x,y)   KLDivLoss(reduction='batchmean')(x,q)   L1Loss(reduction='sum')(x,y)
MSELoss()(x,y)   MarginRankingLoss(0.5)(x,y,s)   MultiLabelMarginLoss()(x,m)   MultiLabelSoftMarginLoss(w)(x,q)
MultiMarginLoss(2,0.5)(x,t)   NLLLoss(w)(x,t)   PairwiseDistance(1)(x,y)   PoissonNLLLoss(False)(p,k)
SmoothL1Loss(beta=0.5)(x,y)   SoftMarginLoss()(x,s)   TripletMarginLoss(0.5,swap=True)(x,y,z)
TripletMarginWithDistanceLoss(margin=0.5)(x,y,z)
"""


def test_modules():
  a, b = {n: Tensor(v) for n, v in arrays().items()}, {n: torch.tensor(v) for n, v in arrays().items()}
  found = [eval(e, {**vars(nn), **a}) for e in expressions(MODULES)]
  found[0].realize(*found[1:])
  for e, x in zip(expressions(MODULES), found):
    wanted = eval(e, {**vars(torch.nn), **b}).detach().numpy()
    np.testing.assert_allclose(x.numpy(), wanted, rtol=3e-5, atol=1e-5, err_msg=e)


def test_ctc_module_and_what_does_not_fit():
  x = Tensor(arrays()["g"][:3].copy(), requires_grad=True)
  target, lengths = Tensor([[1, 1], [1, 2], [3, 4]]), (3, 3, 1)
  loss = nn.CTCLoss(reduction="none")(x.log_softmax(-1), target, lengths, (2, 2, 2))
  assert np.isfinite(loss.numpy()[:2]).all() and loss.numpy()[2] == math.inf
  loss = nn.CTCLoss(reduction="none", zero_infinity=True)(x.log_softmax(-1), target, lengths, (2, 2, 2))
  loss.sum().backward()
  assert loss.numpy()[2] == 0 and not x.grad.numpy()[:, 2].any() and np.isfinite(x.grad.numpy()).all()


def test_every_module_of_pytorch():
  """Each activation and loss that PyTorch has as a module is here."""
  wanted = set(torch.nn.modules.activation.__all__) | set(torch.nn.modules.loss.__all__)
  assert wanted - {"NLLLoss2d", "LinearCrossEntropyLoss", "MultiheadAttention"} <= set(nn.__all__)


def test_options():
  assert repr(nn.ELU(0.5)) == "ELU(alpha=0.5)" and repr(nn.ReLU(True)) == "ReLU()"
  loss = nn.CrossEntropyLoss(Tensor([1.0, 2.0]), ignore_index=0)
  assert list(loss.state_dict()) == ["weight"] and not list(loss.parameters())
  with pytest.raises(TypeError, match=r"GELU\(approximate='none'\): got an unexpected keyword"):
    nn.GELU(approx=True)


def test_tinygrads_names():
  x, y, t = (Tensor(arrays()[n]) for n in "pqt")
  pairs = [
    (x.binary_crossentropy(y), x.binary_cross_entropy(y)),
    (x.binary_crossentropy_logits(y, pos_weight=2), x.binary_cross_entropy_with_logits(y, pos_weight=2)),
    (x.sparse_categorical_crossentropy(t), x.cross_entropy(t)),
    (x.sparse_categorical_crossentropy(t, 3, 0.1), x.cross_entropy(t, None, 3, "mean", 0.1)),
  ]
  for a, b in pairs:
    np.testing.assert_allclose(a.item(), b.item(), rtol=1e-6)


def test_probabilities_of_0_and_1():
  x = Tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
  loss = x.binary_cross_entropy(Tensor([0.0, 1.0, 1.0, 0.0]), reduction="none")
  loss.sum().backward()
  assert loss.tolist() == [0, 0, 100, 100] and np.isfinite(x.grad.numpy()).all()


def test_random_activations():
  x = Tensor.full((1000,), -1.0)
  with_slopes = -x.rrelu(0.2, 0.4, training=True).numpy()
  assert 0.2 <= with_slopes.min() < 0.21 and 0.39 < with_slopes.max() <= 0.4
  assert np.array_equal((-x).rrelu(training=True).numpy(), np.ones(1000, np.float32))
  p = Tensor([0.1, 0.2, 0.7])
  drawn = p.log().expand(20000, 3).gumbel_softmax(hard=True)
  assert set(np.unique(drawn.numpy())) == {0, 1}
  np.testing.assert_allclose(drawn.numpy().mean(0), p.numpy(), atol=0.02)


def test_errors():
  x = Tensor.ones(2, 3)
  with pytest.raises(ShapeError, match="glu: axis 1 does not fall into halves"):
    x.glu()
  with pytest.raises(ShapeError, match="one weight, or one for each channel"):
    x.prelu(Tensor.ones(2))
  with pytest.raises(ShapeError, match=r"the target has shape \(2, 3\), not \(3,\)"):
    x.binary_cross_entropy(Tensor.ones(3))
  with pytest.raises(ValueError, match='"mean", "sum" or "none", not "avg"|avg'):
    x.mse_loss(x, reduction="avg")
  with pytest.raises(DTypeError, match="cross_entropy: x holds logits"):
    x.int().cross_entropy(Tensor([0, 1]))
  with pytest.raises(ShapeError, match="axes time, batch and class"):
    Tensor.ones(3).ctc_loss(Tensor([1]), 3, 1)
