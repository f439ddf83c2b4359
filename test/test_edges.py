"""Functions at the edges of their types, beside PyTorch: values, first and second gradients.

Right is what PyTorch gives, or what it gives in float64, rounded: where both differ, PyTorch's formula loses digits in
the type itself. What is neither has a row in ELSEWHERE, with the reason.
"""

import math
from importlib import import_module

import numpy as np
import pytest

from mini import Tensor, dtypes, nn
from mini.nn import functional

POINTS = (
  0.0,
  1e-45,
  1e-38,
  1e-30,
  1e-6,
  0.3,
  1.0,
  2.5,
  30.0,
  88.0,
  89.0,
  104.0,
  710.0,
  1e4,
  1e30,
  3.4028234663852886e38,
)
EDGES = np.array([s * x for x in (*POINTS, 1.7976931348623157e308, np.inf) for s in (1, -1)] + [np.nan])
FEW = np.array([s * x for x in (0.0, 1e-45, 1e-6, 1.0, 2.5, 89.0, 1e30, np.inf) for s in (1, -1)] + [np.nan])

# fmt: off
METHODS = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac
  lgamma log log10 log1p log2 logit neg rad2deg reciprocal relu round rsqrt sigmoid sign sin sinc sinh sqrt square tan
  tanh trunc nan_to_num"""
FUNCTIONS = """celu elu gelu hardshrink hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus softshrink
  softsign tanhshrink"""
ONE = {name: (lambda x, F, name=name: getattr(x, name)()) for name in METHODS.split()}
ONE |= {name: (lambda x, F, name=name: getattr(F, name)(x)) for name in FUNCTIONS.split()}
GATES = "sigmoid silu quick_gelu glu glu_gate bce_of_sigmoid bce_logits logsigmoid softplus mish"
ONE |= {
  "gelu_tanh":      lambda x, F: F.gelu(x, approximate="tanh"),
  "quick_gelu":     lambda x, F: x * (x * 1.702).sigmoid(),
  "softplus_beta":  lambda x, F: F.softplus(x, 3, 10),
  "elu_alpha":      lambda x, F: F.elu(x, 0.5),
  "celu_alpha":     lambda x, F: F.celu(x, 0.5),
  "rrelu":          lambda x, F: F.rrelu(x, 0.1, 0.3),
  "hardsigmoid":    lambda x, F: F.hardsigmoid(x) if isinstance(x, Tensor) else F.relu6(x + 3) / 6,  # twice
  "threshold":      lambda x, F: F.threshold(x, 0.1, 20.0),
  "clamp":          lambda x, F: x.clamp(-1, 1),
  "pow2":           lambda x, F: x ** 2,
  "pow3":           lambda x, F: x ** 3,
  "pow7":           lambda x, F: x ** 7,
  "pow_half":       lambda x, F: x ** 0.5,
  "pow_third":      lambda x, F: x ** (1 / 3),
  "pow_minus1":     lambda x, F: x ** -1,
  "pow_minus2":     lambda x, F: x ** -2,
  "pow_minus_half": lambda x, F: x ** -0.5,
  "rpow":           lambda x, F: 2.0 ** x,
  "rdiv":           lambda x, F: 3.0 / x,
  "div":            lambda x, F: x / 3.0,
  "remainder":      lambda x, F: x % 3.0,
  "fmod":           lambda x, F: x.fmod(3.0),
  "glu":            lambda x, F: F.glu(x.reshape(1, -1).tile(2, 1), 0),
  "glu_gate":       lambda x, F: F.glu(x.reshape(1, -1).tile(2, 1) * 0.5, 0),
  "bce_of_sigmoid": lambda x, F: F.binary_cross_entropy(x.nan_to_num(1.0).sigmoid(), at(x, 0.25), reduction="none"),
  "bce":            lambda x, F: F.binary_cross_entropy(x.nan_to_num(1.0).clamp(0, 1), at(x, 0.25), reduction="none"),
  "bce_logits":     lambda x, F: F.binary_cross_entropy_with_logits(x, at(x, 0.25), reduction="none"),
  "bce_logits_pos": lambda x, F: F.binary_cross_entropy_with_logits(
    x, at(x, 0.25), reduction="none", pos_weight=at(x, 2.0)),
  "mse":            lambda x, F: F.mse_loss(x, at(x, 0.25), reduction="none"),
  "l1":             lambda x, F: F.l1_loss(x, at(x, 0.25), reduction="none"),
  "smooth_l1":      lambda x, F: F.smooth_l1_loss(x, at(x, 0.25), reduction="none"),
  "huber":          lambda x, F: F.huber_loss(x, at(x, 0.25), reduction="none"),
  "kl_div":         lambda x, F: F.kl_div(x, at(x, 0.25), reduction="none"),
  "kl_div_log":     lambda x, F: F.kl_div(x, at(x, -1.0), reduction="none", log_target=True),
  "poisson":        lambda x, F: F.poisson_nll_loss(x, at(x, 0.25), reduction="none"),
  "poisson_plain":  lambda x, F: F.poisson_nll_loss(x, at(x, 0.25), log_input=False, reduction="none"),
  "gaussian":       lambda x, F: F.gaussian_nll_loss(x, at(x, 0.25), at(x, 1.0), reduction="none"),
  "hinge":          lambda x, F: F.hinge_embedding_loss(x, at(x, -1.0), reduction="none"),
  "soft_margin":    lambda x, F: F.soft_margin_loss(x, at(x, 1.0), reduction="none"),
  "margin_ranking": lambda x, F: F.margin_ranking_loss(x, at(x, 1.0), at(x, 1.0), 0.0, reduction="none"),
  "softmax":        lambda x, F: both(x).softmax(0)[0],
  "log_softmax":    lambda x, F: both(x).log_softmax(0)[0],
  "logsumexp":      lambda x, F: both(x).logsumexp(0),
  "cross_entropy":  lambda x, F: F.cross_entropy(both(x).T, (x.detach() != x.detach()).long(), reduction="none"),
}
PAIRS = "atan2 copysign fmax fmin fmod hypot logaddexp logaddexp2 maximum minimum pow remainder xlogy nextafter"
TWO = {name: (lambda a, b, name=name: getattr(a, name)(b)) for name in PAIRS.split()}
TWO |= {
  "add":   lambda a, b: a + b,
  "sub":   lambda a, b: a - b,
  "mul":   lambda a, b: a * b,
  "div":   lambda a, b: a / b,
  "lerp":  lambda a, b: a.lerp(b, 0.25),
  "where": lambda a, b: (a < b).where(a, b) if isinstance(a, Tensor) else a.where(a < b, b),
}
# fmt: on


def at(x, value):
  """A constant beside each of x, in x's type; not x * 0 + value, which is NaN where x is infinite."""
  return (x.detach() != x.detach()).to(x.dtype) * 0 + value


def both(x):
  """Two rows: x and 0.5."""
  rows = [x.reshape(1, -1), at(x, 0.5).reshape(1, -1)]
  return rows[0].cat(rows[1], dim=0) if isinstance(x, Tensor) else import_module("torch").cat(rows)


# ---------------------------------------------------------------- what is neither


# What is allowed, by the inputs x, ours, PyTorch's in float64, and the type's epsilon.


def is_lost(x, ours, exact, eps):
  return abs(ours - exact) <= 32 * eps * np.maximum(1, abs(x[0]))


def is_number(x, ours, exact, eps):
  return np.isnan(exact) & ~np.isnan(ours)


def is_pole(x, ours, exact, eps):
  return (ours == np.inf) & (x[0] <= 0) & (x[0] == np.floor(x[0]))


def is_steep(x, ours, exact, eps):
  return np.isnan(ours) & ((np.min(np.abs(x), axis=0) < 2e-6) | (np.max(np.abs(x), axis=0) > 1e29))


def is_near(x, ours, exact, eps):
  return abs(ours - exact) <= 1e-5 * abs(exact)


# which functions, of which order (0 the value, 1 and 2 its gradients), what is allowed, and why
# fmt: off
ELSEWHERE = (
  ("sigmoid silu quick_gelu glu glu_gate logsigmoid bce_logits bce_logits_pos tanhshrink softsign",
   (1, 2), is_lost, "PyTorch subtracts what is nearly equal, such as a sigmoid from 1: digits that we have"),
  ("log_softmax logsumexp cross_entropy", (0, 1, 2), is_lost, "likewise: the sum of exponentials is nearly 1"),
  ("bce_of_sigmoid", (1, 2), lambda x, ours, exact, eps: (abs(x[0]) >= 30) & (abs(ours) < 0.1),
   "likewise: what is left is small for both, for the logarithms are at least -100"),
  ("bce_of_sigmoid", (1, 2), lambda x, ours, exact, eps: (eps == 2.0**-10) & np.isinf(ours),
   "float16 has no room for the slope of the logarithm, 1e12; PyTorch's is NaN"),
  ("bce bce_of_sigmoid", (1, 2), is_near, "PyTorch's 1e-12 is float32's"),
  ("expm1", (1, 2), is_lost, "PyTorch's is y + 1, which has lost the digits of exp(x)"),
  ("sinc", (0,), is_lost, "PyTorch takes the sine of pi * x, rounded: not 0 where x is whole"),
  ("sinc", (1,), lambda x, ours, exact, eps: (abs(x[0]) < 1e-5) & (abs(ours + np.pi**2 / 3 * x[0]) <= (4 * eps + 1e-9) * abs(x[0])),
   "PyTorch subtracts what is nearly equal"),
  ("sinc", (1,), lambda x, ours, exact, eps: (abs(x[0]) > 1e4) & (abs(ours * x[0]) < 1.01), "rounded pi * x, as above"),
  ("sinc", (2,), lambda x, ours, exact, eps: (abs(x[0]) < 1e-5) & (abs(ours + np.pi**2 / 3) <= 4 * eps + 1e-9),
   "PyTorch divides by 0, or by what is nearly 0"),
  ("sinc", (2,), is_lost, "rounded pi * x, as above"),
  ("asinh atan2 erf erfc gelu mish soft_margin softsign xlogy", (1, 2), is_number,
   "PyTorch multiplies 0 by infinity, or divides 0 by 0"),
  ("bce_of_sigmoid", (1, 2), is_number, "PyTorch multiplies 0 by infinity"),
  ("logaddexp logaddexp2", (1, 2), is_number, "PyTorch takes infinity from infinity; both have a half"),
  ("hypot copysign", (1, 2), is_number, "PyTorch divides by the length, which is 0, or infinite as its part"),
  ("bce_logits sinc", (0, 1, 2), is_number, "PyTorch takes infinity from infinity, or multiplies pi by the largest number"),
  ("digamma", (1,), is_pole, "infinite: PyTorch's is what rounding leaves of it"),
  ("lgamma", (2,), is_pole, "likewise"),
  ("digamma", (1, 2), is_near, "PyTorch's trigamma has ten digits"),
  ("lgamma", (2,), is_near, "likewise"),
  ("digamma", (2,), is_lost, "at -2.5 the reflection's terms cancel"),
  ("atan2", (2,), lambda x, ours, exact, eps: (exact == 0) & (abs(x[0]) == abs(x[1])) & (abs(x[0]) < 1e-5),
   "a difference that cancels, over a square that is nearly 0"),
  ("div rdiv", (1, 2), is_steep,
   "0 / b where 1 / b is infinite, or 1 / b^3; PyTorch divides twice, which would cost attention a division an element"),
  ("hypot xlogy", (2,), is_steep, "likewise"),
  ("pow", (2,), lambda x, ours, exact, eps: (x[0] <= 0) | (x[0] == np.inf),
   "by the exponent such a base has no gradient that is a number; of what PyTorch makes of it another gradient is taken"),
)
# fmt: on

KINDS = ("float16", "bfloat16", "float32", "float64")
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


def points(values, kind):
  """These values in a type, as float64."""
  with np.errstate(all="ignore"):
    return Tensor(values).cast(getattr(dtypes, kind)).cast(dtypes.float64).numpy()


def rows_of_mini(f, xs, kind):
  """Values, gradients of their sum by each input, and gradients of each of those."""
  xs = [Tensor(x).cast(getattr(dtypes, kind)).realize() for x in xs]
  for x in xs:
    x.requires_grad = True
  y = f(*xs)
  if not y.requires_grad:
    return [y]
  first = y.sum().gradient(*xs, materialize_grads=True)
  second = [h for g in first if g.requires_grad for h in g.sum().gradient(*xs, materialize_grads=True)]
  return [y, *first, *second]


def rows_of_torch(f, xs, kind):
  import torch

  xs = [torch.tensor(x, dtype=getattr(torch, kind), requires_grad=True) for x in xs]
  y = f(*xs)
  if not y.requires_grad:
    return [y]
  first = torch.autograd.grad(y.sum(), xs, create_graph=True, materialize_grads=True)
  second = [
    h
    for g in first
    if g.requires_grad
    for h in torch.autograd.grad(g.sum(), xs, retain_graph=True, materialize_grads=True)
  ]
  return [t.detach().resolve_neg() + 0 for t in (y, *first, *second)]


def wrong(name, f, g, xs, kind):
  """Of mini's f and PyTorch's g: the rows that are neither what PyTorch gives in this type, nor in float64."""
  torch = import_module("torch")
  theirs = [t.double().numpy() for t in rows_of_torch(g, xs, kind)]
  exact = [t.to(getattr(torch, kind)).double().numpy() for t in rows_of_torch(g, xs, "float64")]
  return name, xs, kind, rows_of_mini(f, xs, kind), theirs, exact


def compared(name, xs, kind, ours, theirs, exact):
  """Lines about what differs."""
  lines, eps = [], EPS[kind]
  zeros, n = np.zeros_like(xs[0]), len(xs)
  for i in range(max(map(len, (ours, exact)))):
    a, b, c = (
      rows[i] if i < len(rows) else zeros for rows in (ours, theirs, exact)
    )  # flat: PyTorch says nothing
    order = 0 if i == 0 else 1 if i <= n else 2
    size = (
      np.abs(c) if order < 2 else np.max(np.abs(np.nan_to_num(exact[n + 1 :], posinf=0, neginf=0)), axis=0)
    )
    with np.errstate(all="ignore"):
      fine = np.isnan(ours[0]) & np.isnan(exact[0]) & (order > 0)
      for want in (b, c):
        fine |= (a == want) | (np.isnan(a) & np.isnan(want))
        fine |= np.abs(a - want) <= 64 * eps * np.abs(want) + 4 * eps * size + TINY[kind]
      for names, orders, allowed, _ in ELSEWHERE:
        if name in names.split() and order in orders:
          fine |= allowed(xs, a, c, eps)
    for k in np.flatnonzero(~fine):
      at = ", ".join(f"{x[k]:.4g}" for x in xs)
      lines.append(f"{name}({at}) in {kind}, row {i}: {a[k]:.6g}, not {b[k]:.6g} or {c[k]:.6g}")
  return lines


def differences(cases):
  cases = [wrong(*case) for case in cases]
  Tensor.realize(*(t for case in cases for t in case[3]))
  lines = []
  for name, xs, kind, ours, *rest in cases:
    lines += compared(name, xs, kind, [t.cast(dtypes.float64).numpy() for t in ours], *rest)
  return "\n".join(lines)


# ---------------------------------------------------------------- without PyTorch


def test_gradients_of_gates_are_numbers():
  """What is below -88.7 overflows exp(-x) of float32, below -710 that of float64: times the gate, which is 0, NaN."""
  for kind in KINDS:
    x = points(EDGES[np.abs(EDGES) < 1e30], kind)
    rows = {
      name: rows_of_mini(lambda t, f=ONE[name]: f(t, functional), [x[np.isfinite(x)]], kind)[:2]
      for name in GATES.split()
    }
    if kind == "float16":  # it has no room for 1e12, the slope of the logarithm
      del rows["bce_of_sigmoid"]
    Tensor.realize(*(t for row in rows.values() for t in row))
    for name, row in rows.items():
      assert np.isfinite(row[1].cast(dtypes.float64).numpy()).all(), (name, kind)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
def test_recurrent_layers_learn_from_bytes(layer, rng):
  net = layer(3, 4)
  x = Tensor(rng.integers(0, 256, (5, 2, 3)).astype(np.float32))
  (net(x)[0] * 100).square().sum().backward()
  assert all(np.isfinite(p.grad.numpy()).all() for p in net.parameters())


def test_slopes_and_values_at_the_edges():
  """Where a formula overflows or cancels, and the function does not."""
  x = Tensor([1e-30, 1e-6, 0.2], requires_grad=True)
  assert np.allclose(
    x.sinc().sum().gradient(x)[0].numpy(), [-3.289868e-30, -3.289868e-06, -0.6323615], rtol=1e-5
  )
  y = Tensor([89.0, -89.0])
  assert np.allclose(y.sinh().numpy(), [2.244806e38, -2.244806e38]) and np.allclose(
    y.cosh().numpy(), 2.244806e38
  )
  s = Tensor([30.0, -30.0, 80.0], requires_grad=True)
  assert np.allclose(
    s.sigmoid().sum().gradient(s)[0].numpy(), [9.357623e-14, 9.357623e-14, 1.804851e-35], rtol=1e-6
  )


# ---------------------------------------------------------------- beside PyTorch


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64"])
def test_functions_of_integers_beside_pytorch(kind):
  """At the ends of their range, too. PyTorch refuses some: what it takes, mini takes."""
  torch = pytest.importorskip("torch")
  info = np.iinfo(kind)
  x = np.array([info.min, info.min + 1, 0, 1, 2, 30, 89, info.max - 1, info.max]).astype(kind)
  wrong = []
  for name, f in {name: ONE[name] for name in f"{METHODS} {FUNCTIONS}".split()}.items():
    try:
      want = f(torch.tensor(x), torch.nn.functional)
    except (RuntimeError, TypeError):
      continue
    got = f(Tensor(x), functional)
    if got.dtype.name != str(want.dtype).removeprefix("torch."):
      wrong.append((name, got.dtype.name, want.dtype))
    elif name == "softsign":  # the least integer has no magnitude: PyTorch's is of a wrapped one
      assert np.allclose(got.numpy()[0], -1 if info.min else 0, atol=0.01)
    elif not np.allclose(got.numpy().astype(np.float64), want.double().numpy(), 1e-5, 1e-7, equal_nan=True):
      wrong.append((name, got.numpy(), want))
  assert not wrong


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_one_beside_pytorch(kind):
  torch = pytest.importorskip("torch")
  xs = [points(EDGES, kind)]
  cases = []
  for name, f in ONE.items():
    cases.append((name, lambda x, f=f: f(x, functional), lambda x, f=f: f(x, torch.nn.functional), xs, kind))
  assert not differences(cases)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_two_beside_pytorch(kind):
  pytest.importorskip("torch")
  xs = [v.ravel() for v in np.meshgrid(points(FEW, kind), points(FEW, kind), indexing="ij")]
  assert not differences([(name, f, f, xs, kind) for name, f in TWO.items()])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 3e9, -3e9, 1e20])
def test_a_number_that_no_integer_holds_is_the_same_in_memory_and_written_out(value, dtype):
  """What it is nobody says, but what computes it makes no difference. (Of uint32 processors say other things.)"""
  found = [
    x.cast(dtype).tolist() for x in (Tensor([value]), Tensor.full((1,), value), Tensor([1.0]) * 0 + value)
  ]
  assert found[1:] == found[:1] * 2
