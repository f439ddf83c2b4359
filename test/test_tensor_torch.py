"""The same expression in mini and in PyTorch: values, types and shapes agree."""

import functools
import logging
import math

import numpy as np
import pytest

from mini import Tensor, dtypes

torch = pytest.importorskip("torch")
F = torch.nn.functional

EDGES = [
  0.0,
  -0.0,
  1.0,
  -1.0,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  3.7,
  -3.7,
  1e-8,
  -1e-8,
  1e30,
  -1e30,
  88.0,
  -88.0,
  np.inf,
  -np.inf,
  np.nan,
]

# x: f32[2, 3, 4]   y: f32[3, 4]   v: f32[4]   p: f32[3, 4] > 0   i: i64[3, 4] in -3..3   j: i64[3, 4] > 0   b: bool[3, 4]
# e: f32 with inf, nan and -0.0   k: i64[3] in 0..2   d: i64[3, 2] in 0..3   n: i32[]   z: f32[0, 3]   s: f32[]
INPUTS = {
  "x": lambda r: r.standard_normal((2, 3, 4)).astype(np.float32),
  "y": lambda r: r.standard_normal((3, 4)).astype(np.float32),
  "v": lambda r: r.standard_normal(4).astype(np.float32),
  "p": lambda r: r.uniform(0.1, 3, (3, 4)).astype(np.float32),
  "q": lambda r: r.uniform(0.1, 3, (3, 4)).astype(np.float32),
  "i": lambda r: r.integers(-3, 4, (3, 4)),
  "j": lambda r: r.integers(1, 5, (3, 4)),
  "b": lambda r: r.random((3, 4)) < 0.5,
  "e": lambda r: np.array(EDGES, np.float32),
  "k": lambda r: r.integers(0, 3, 3),
  "d": lambda r: r.integers(0, 4, (3, 2)),
  "n": lambda r: np.array(3, np.int32),
  "z": lambda r: np.zeros((0, 3), np.float32),
  "s": lambda r: np.array(1.5, np.float32),
  "h": lambda r: r.standard_normal((3, 4)).astype(np.float16),
  "u": lambda r: r.integers(0, 200, (3, 4)).astype(np.uint8),
  "w": lambda r: r.standard_normal((2, 2, 6, 6)).astype(np.float32),
}

ELEMENTWISE = """
x + y   x - y   x * y   x / y   y + 1   1 - y   2 * y   1 / y   y / 2   i / j   i // j   i % j   y // v   y % v   y // 0.7   y % 0.7   i + y   b + i   b + b
i + 0.5   b * y   n + y   n + i   s + i   s * h   h + y   u + 1   u + i   u * 2   u - 1   u + u   b + 1   b + 1.5   b / b   i ** 2   i ** 3   2 ** j   p ** 0.5
p ** -1   p ** q   y ** 2   y ** 3   p ** 2.5   2.0 ** y   i ** j   j ** -1.0   y ** 0   -y   -i   ~b   ~i   +y   abs(y)   abs(i)   i & j   i | j   i ^ j   b & b   b | True   b ^ b   i << 2
i >> 1   1 << j   u >> 2   y < v   y <= v   y > 0   y >= 0   y == v   y != y   i < j   i == 1   e < 0   e <= 0   e > 0   e >= 0   e == e   e != e   b == True   z + 1
e.abs()   e.sign()   e.floor()   e.ceil()   e.trunc()   e.round()   e.isnan()   e.isinf()   e.isfinite()   e.sqrt()   e.exp()   e.log()   e.relu()   e.neg()   e.square()
e.sigmoid()   e.tanh()   e.log1p()   e.expm1()   e.nan_to_num()   e.frac()   e.clamp(-1,1)   e.clamp(min=0)   e.clamp(max=0)   e.reciprocal()   e.rsqrt()   e.log2()   e.log10()   e.exp2()
y.sin()   y.cos()   y.tan()   y.asin()   y.acos()   y.atan()   y.sinh()   y.cosh()   y.asinh()   p.acosh()   y.atanh()   y.erf()   i.exp()   i.sqrt()   b.exp()   (y*10).asinh()   (y*10).sinh()
i.relu()   i.clamp(-1,2)   y.maximum(v)   y.minimum(v)   i.maximum(j)   i.minimum(j)   u.minimum(u)   b.logical_not()   i.logical_and(j)   i.logical_or(b)   i.logical_xor(j)
y.masked_fill(b,0)   y.masked_fill(b,-math.inf)   i.masked_fill(b,7)   y.lerp(p,0.25)   i.fmod(j)   y.fmod(v)   y.remainder(v)   i.div(j,rounding_mode='trunc')   y.div(v,rounding_mode='trunc')
y.div(v,rounding_mode='floor')   i.div(j,rounding_mode='floor')   i.floor_divide(j)   y.round(decimals=1)   y.add(v,alpha=2)   y.sub(v,alpha=2)   i.sign()   u.sign()   h.exp()   h*h   i.round()   y.isclose(y)
"""

MOVEMENT = """
x.reshape(6,4)   x.reshape(-1)   x.reshape((2,-1))   x.view(3,8)   x.flatten()   x.flatten(1)   x.flatten(0,1)   s.flatten()   x.permute(2,0,1)   x.permute(-1,0,1)   x.transpose(0,2)   x.mT   y.T
x.movedim(0,-1)   x.movedim((0,1),(2,0))   x.swapaxes(0,1)   y.unsqueeze(0)   y.unsqueeze(-1)   x[:1].squeeze()   x[:1].squeeze(0)   x.squeeze(0)   v.expand(3,4)   y.expand(2,-1,-1)   y.flip(0)   x.flip((0,2))
y.roll(1,0)   y.roll(-5)   x.roll((1,2),(0,2))   y.repeat(2,1)   y.repeat(2,1,3)   v.tile(2)   y.tile((2,))   y.repeat_interleave(2,1)   y.repeat_interleave(2)   y.tril()   y.tril(1)   y.triu()   y.triu(-1)   x.triu(1)
v.diag()   y.diag()   y.diagonal(1)   y.diagonal(-1)   y.diagonal(9)   x.diagonal(0,1,2)   v.diag_embed()   y.diag_embed(1)   y.diag_embed(-2)   y.narrow(1,1,2)   y.select(0,-1)   y.unfold(1,2,1)   x.unfold(2,3,1)   x.unfold(1,2,2)
y.contiguous()   y.clone()   y.unflatten(1,(2,-1))   z.reshape(3,0)   z.sum(0).expand(2,3)   y.broadcast_to((2,3,4))   i.float()   y.long()   y.int()   y.half()   y.bool()   b.float()   y.double()   (y*100).to(U8) // 300
T.cat([y,y*2])   T.cat([y,i],1)   T.cat([y,p],-1)   T.stack([y,p])   T.stack([y,p],-1)   T.hstack([y,p])   T.vstack([v,v])   T.cat([z,y[:,:3]])   T.stack([v,v],1)
"""

REDUCE = """
x.sum()   x.sum(1)   x.sum((0,2))   x.sum(-1,keepdim=True)   i.sum()   b.sum()   b.sum(0)   u.sum(1)   x.prod()   x.prod(1)   i.prod(0)   x.mean()   x.mean(1)   x.mean((0,1),keepdim=True)   x.var()   x.var(1)   x.var(1,correction=0)
x.std()   x.std((0,2))   x.max()   x.min()   i.max()   i.min()   b.any()   b.all()   b.any(1)   b.all(0,keepdim=True)   i.any()   y.all(1)   x.argmax()   x.argmin()   x.argmax(1)   x.argmin(-1,keepdim=True)   i.argmax(1)   i.argmin(0)   e.argmax()   e.argmin()   e.max()
x.amax((0,1))   x.amin(2)   u.min()   x.logsumexp(1)   x.logsumexp((0,1))   (x*100).logsumexp(-1,keepdim=True)   x.softmax(-1)   x.softmax(0)   (x*1000).softmax(1)   x.log_softmax(1)   (x*1000).log_softmax(-1)   h.softmax(-1)   h.sum()   h.mean(1)
x.cumsum(1)   i.cumsum(0)   x.cumprod(2)   b.cumsum(0)   x.cumsum(-1)   x.cummax(1)[0]   x.cummax(1)[1]   i.cummin(0)[0]   i.cummin(0)[1]   z.sum()   z.sum(0)   z.prod()   z.prod(1)   z.mean()   z.any()   z.all()   z.sum(1)   z.logsumexp(0)
z.softmax(0)   z.cumsum(0)   x.norm()   x.norm(1,1)   x.norm(math.inf)   x.norm(3,2)   y.norm(2,0,keepdim=True)   x.count_nonzero()   i.count_nonzero(0)   s.sum()   s.max()   s.mean()   s.softmax(0)   s.cumsum(0)   s.argmax()   i.sum(dtype=F32)   x.norm(0)   y.var(0,keepdim=True)
"""

INDEXING = """
x[0]   x[-1]   x[:,1]   x[...,2]   x[1,2,3]   x[0,...,1:]   x[None]   x[:,None,:,None]   x[::2]   x[...,::2]   x[...,1::2]   x[:,-2:]   x[:,5:]   x[1:1]   y[k]   y[:,k]   y[k,k]   y[k[:,None],k]   x[:,k]   x[:,k,k]   x[0,:,k]
x[k[:2]%2,:,k[:2]]   x[k[:2]%2,1]   x[1,k]   y[d[:,0]%3,d[:,1]]   y[b]   x[:,b]   x[0,b]   y[[0,2]]   y[[0,-1],1]   x[...,k]   y[-k-1]   y[k][:,None]   x[:,:,[True,False,True,True]]   y[n-1]   y[k.long()%2]   s[None]   s[...]   z[:,1]   y[y>0]   x[:,k[None]]   x[None,:,k]
y.gather(1,d)   y.gather(0,d%3)   y.take_along_dim(d,1)   y.index_select(0,k)   y.index_select(1,k)   y.take(d)   y.scatter(1,d[:,:1],5.0)   y.scatter(1,d[:,:1],p)   y.scatter_add(1,d,p)   i.scatter_add(1,d,j)   y.scatter_reduce(1,d,p,'sum')   y.scatter_reduce(1,d,p,'amax')
y.scatter_reduce(1,d,p,'amin')   y.scatter_reduce(1,d,p,'prod')   y.scatter_reduce(1,d,p,'mean')   y.scatter_reduce(1,d,p,'amax',include_self=False)   y.scatter_reduce(1,d,p,'mean',include_self=False)   y.scatter_reduce(1,d,p,'sum',include_self=False)   i.scatter_reduce(1,d,j,'amin')
y.index_add(0,k,p)   y.index_add(0,k,p,alpha=2)   y.masked_select(b)   i.nonzero()   b.nonzero()   y.split(2)[1]   y.split([1,3],1)[1]   y.chunk(2,1)[0]   y.chunk(3,1)[1]   y.unbind(1)[2]   y.index_put((k,),p[0])   y.index_put((k,k),p[0,0],accumulate=True)
"""

MULTIPLY = """
y@v   v@v   y@y.T   x@y.T   v@y.T   x@x.mT   x[:,None]@x.mT   i@i.T   y.mm(y.T)   x.bmm(x.mT)   y.mv(v)   v.outer(v)   v.dot(v)   h@h.T   z@z.T   z.T@z   v.inner(v)   y.inner(y)   T.matmul(y,v)   y.addmm(y@y.T,p,beta=0.5,alpha=2)
"""


@functools.cache
def arrays():
  r = np.random.default_rng(0)
  return {name: make(r) for name, make in INPUTS.items()}


@pytest.fixture
def inputs():
  return arrays()


def expressions(text):
  return [e.strip() for line in text.strip().splitlines() for e in line.split("   ") if e.strip()]


def compare(ours, theirs, tolerance=2e-5):
  want = theirs.numpy()
  assert ours.shape == tuple(theirs.shape)
  assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
  rtol = 2e-3 if want.dtype == np.float16 else tolerance
  np.testing.assert_allclose(ours.numpy(), want, rtol=rtol, atol=rtol * 0.2)


EXPRESSIONS = expressions(ELEMENTWISE + MOVEMENT + REDUCE + INDEXING + MULTIPLY)
CHUNK = 40


@functools.cache
def chunk(n):
  """The n-th expressions in mini, computed together where that works: one compilation instead of many."""
  ours = {"math": math, "T": Tensor, "F32": dtypes.float32, "U8": dtypes.uint8}
  ours.update({name: Tensor(a) for name, a in arrays().items()})
  tensors = {e: eval(e, dict(ours)) for e in EXPRESSIONS[n * CHUNK : (n + 1) * CHUNK]}
  try:
    Tensor.realize(*tensors.values())
  except Exception:  # then each fails in its own test, or does not
    logging.getLogger(__name__).warning("expressions %d.. do not compute together", n * CHUNK, exc_info=True)
  return tensors


@pytest.mark.parametrize("n, expression", list(enumerate(EXPRESSIONS)), ids=EXPRESSIONS)
def test_same(n, expression, inputs):
  theirs = {"math": math, "T": torch, "F32": torch.float32, "U8": torch.uint8}
  theirs.update({name: torch.tensor(a) for name, a in inputs.items()})
  compare(chunk(n // CHUNK)[expression], eval(expression, theirs))


FUNCTIONS = [
  (f"{name}{arguments}", name, arguments)
  for name, arguments in [
    ("relu6", "()"), ("leaky_relu", "(0.1)"), ("elu", "(0.5)"), ("celu", "(0.5)"), ("selu", "()"), ("gelu", "()"), ("gelu", "(approximate='tanh')"), ("silu", "()"), ("mish", "()"),
    ("softplus", "()"), ("softplus", "(2.0, 1.0)"), ("logsigmoid", "()"), ("softsign", "()"), ("hardtanh", "()"), ("hardsigmoid", "()"), ("hardswish", "()"), ("softmin", "(-1)"),
    ("layer_norm", "((6,))"), ("layer_norm", "((6, 6))"), ("rms_norm", "((6,))"), ("normalize", "()"), ("pad", "((1, 2))"), ("pad", "((1, 2, 3, 0), value=7.0)"), ("pad", "((-1, 2))"),
    ("pad", "((1, 2, 3, 0), mode='reflect')"), ("pad", "((1, 2, 3, 0), mode='replicate')"), ("pad", "((1, 2, 3, 0), mode='circular')"),
    ("max_pool2d", "(2)"), ("max_pool2d", "(3, 2)"), ("max_pool2d", "(3, 1, 1)"), ("max_pool2d", "((2, 3), (2, 1), (1, 1))"), ("max_pool2d", "(2, 2, 0, 2)"), ("max_pool2d", "(4, 3, 0, 1, True)"),
    ("avg_pool2d", "(2)"), ("avg_pool2d", "(3, 2, 1)"), ("avg_pool2d", "(3, 2, 1, False, False)"), ("avg_pool2d", "(4, 3, 1, True)"),
  ]
]  # fmt: skip


@pytest.mark.parametrize("_, name, arguments", FUNCTIONS, ids=[f[0] for f in FUNCTIONS])
def test_functions(_, name, arguments, inputs):
  theirs = eval(f"f(x, {arguments[1:-1]})", {"f": getattr(F, name), "x": torch.tensor(inputs["w"])})
  compare(eval(f"x.{name}{arguments}", {"x": Tensor(inputs["w"])}), theirs)


LOSSES = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "kl_div"]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction, inputs):
  y, p = inputs["y"], inputs["p"]
  with pytest.warns(UserWarning) if name == "kl_div" and reduction == "mean" else np.errstate():
    theirs = getattr(F, name)(torch.tensor(y), torch.tensor(p), reduction=reduction)
  compare(getattr(Tensor(y), name)(Tensor(p), reduction=reduction), theirs)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3), (4,)])
def test_cross_entropy(shape, reduction, weighted, smoothing):
  r = np.random.default_rng(1)
  x = (r.standard_normal(shape) * 5).astype(np.float32)
  classes = shape[1] if len(shape) > 1 else shape[0]
  target = r.integers(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
  if target.ndim:
    target.flat[0] = -100
  weight = r.uniform(0.5, 2, classes).astype(np.float32) if weighted else None
  theirs = F.cross_entropy(
    torch.tensor(x),
    torch.tensor(target),
    None if weight is None else torch.tensor(weight),
    reduction=reduction,
    label_smoothing=smoothing,
  )
  ours = Tensor(x).cross_entropy(
    Tensor(target), None if weight is None else Tensor(weight), reduction=reduction, label_smoothing=smoothing
  )
  compare(ours, theirs)


def test_cross_entropy_of_probabilities_and_nll():
  r = np.random.default_rng(2)
  x = r.standard_normal((5, 4)).astype(np.float32)
  soft = np.exp(x) / np.exp(x).sum(1, keepdims=True)
  compare(
    Tensor(x).cross_entropy(Tensor(soft), label_smoothing=0.2),
    F.cross_entropy(torch.tensor(x), torch.tensor(soft), label_smoothing=0.2),
  )
  target = np.array([0, 3, 2, -100, 1])
  compare(
    Tensor(x).log_softmax(1).nll_loss(Tensor(target)),
    F.nll_loss(torch.tensor(x).log_softmax(1), torch.tensor(target)),
  )


@pytest.mark.parametrize("mask", [None, "causal", "bool", "float"])
def test_attention(mask):
  r = np.random.default_rng(3)
  q, k, v = (r.standard_normal((2, 3, n, 8)).astype(np.float32) for n in (5, 7, 7))
  m = {"bool": np.tril(np.ones((5, 7), bool)), "float": r.standard_normal((5, 7)).astype(np.float32)}.get(
    mask
  )
  run = lambda f, t: f(*map(t, (q, k, v)), attn_mask=None if m is None else t(m), is_causal=mask == "causal")
  compare(run(Tensor.scaled_dot_product_attention, Tensor), run(F.scaled_dot_product_attention, torch.tensor))


def test_grouped_attention():
  r = np.random.default_rng(4)
  q, k, v = (r.standard_normal((2, n, 5, 8)).astype(np.float32) for n in (4, 2, 2))
  run = lambda f, t: f(*map(t, (q, k, v)), enable_gqa=True, scale=0.3)
  compare(run(Tensor.scaled_dot_product_attention, Tensor), run(F.scaled_dot_product_attention, torch.tensor))


@pytest.mark.parametrize(
  "index",
  [
    "0",
    "-1",
    "slice(1,3)",
    "(slice(None),1)",
    "(...,slice(None,None,2))",
    "(slice(None),slice(1,4,2))",
    "K",
    "(K,K)",
    "(slice(None),K)",
    "B",
    "(None,0)",
    "(slice(1,3),K)",
    "[0,2]",
  ],
)
@pytest.mark.parametrize("value", ["number", "one", "full"])
def test_setitem(index, value, inputs):
  y = inputs["y"]
  k = np.array([2, 0])
  ours, theirs = Tensor(y), torch.tensor(y)
  at = eval(index, {"K": Tensor(k), "B": Tensor(inputs["b"])})
  there = eval(index, {"K": torch.tensor(k), "B": torch.tensor(inputs["b"])})
  room = tuple(theirs[there].shape)
  new = {
    "number": 7,
    "one": np.array([5.0], np.float32),
    "full": np.arange(np.prod(room), dtype=np.float32).reshape(room),
  }[value]
  ours[at] = new if value == "number" else Tensor(new)
  theirs[there] = new if value == "number" else torch.tensor(new)
  compare(ours, theirs)


@pytest.mark.parametrize("call", ["arange(5)", "arange(2,9,3)", "arange(5,0,-2)", "arange(0,1,0.25)", "arange(0.5,3)", "arange(0)", "linspace(0,1,7)", "linspace(3,-1,4)", "linspace(2,5,1)", "linspace(2,5,0)",
                                  "eye(3)", "eye(2,4)", "full((2,3),7)", "full((2,),1.5)", "full((),True)", "zeros(2,3)", "ones((2,))", "tensor([[1,2],[3,4]])", "tensor(1.5)", "tensor(True)", "tensor([])", "zeros(0,3)"])  # fmt: skip
def test_creation(call):
  compare(eval(f"Tensor.{call}", {"Tensor": Tensor}), eval(f"torch.{call}", {"torch": torch}), 1e-6)


@pytest.mark.parametrize(
  "a", [d for d in dtypes.all if not (d.kind == "u" and d.itemsize > 1)], ids=lambda d: d.short
)
@pytest.mark.parametrize(
  "b", [d for d in dtypes.all if not (d.kind == "u" and d.itemsize > 1)], ids=lambda d: d.short
)
def test_promotion(a, b):
  ta, tb = getattr(torch, a.name), getattr(torch, b.name)
  for sa, sb in (((2,), (2,)), ((2,), ()), ((), (2,))):
    ours = Tensor.ones(*sa, dtype=a) + Tensor.ones(*sb, dtype=b)
    assert ours.dtype.name == str((torch.ones(sa, dtype=ta) + torch.ones(sb, dtype=tb)).dtype).removeprefix(
      "torch."
    )
  for number in (True, 2, 2.5):
    assert (Tensor.ones(2, dtype=a) * number).dtype.name == str(
      (torch.ones(2, dtype=ta) * number).dtype
    ).removeprefix("torch.")


def test_bfloat16_matmul_is_rounded_once():
  r = np.random.default_rng(5)
  a, b = (torch.tensor(r.standard_normal(s).astype(np.float32)).bfloat16() for s in ((8, 64), (64, 8)))
  ours = Tensor(a.float().numpy()).bfloat16() @ Tensor(b.float().numpy()).bfloat16()
  np.testing.assert_array_equal(ours.numpy(), (a.float() @ b.float()).bfloat16().float().numpy())
