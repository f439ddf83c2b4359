"""Every public method of Tensor and every module against PyTorch, or NumPy where it lacks one: the rows of test/methods/.

Of each row: values, types and shapes, of every type that it takes; the gradient, against PyTorch's, or against
differences in float64; the same of inputs that are views; on the CPU and in the interpreter. Of a row for each method,
and some more: every type on the CPU, and the gradient of the gradient, against differences. Of a row for each method:
the GPUs that are here or emulated. Many rows are computed together: that is fast. Where PyTorch is not installed, values
that it would be the reference of are compared with the interpreter's, and gradients are not compared.
"""

import functools
import logging
import math
import re
import warnings

import golden_sources as golden
import methods
import numpy as np
import pytest
from methods import weights
from quickly import compile_quickly

from mini import Context, Device, Tensor, dtypes, nn
from mini.types import MiniError
from runtime.base import DeviceError

pytestmark = pytest.mark.usefixtures("mostly_unoptimized")

torch = methods.torch
ROWS = methods.rows()
CHUNK = 60
log = logging.getLogger(__name__)

TOLERANCE = {
  "float64": 1e-6,
  "float32": 2e-5,
  "float16": 4e-3,
  "bfloat16": 3e-2,
  "complex64": 2e-5,
  "complex128": 1e-6,
}


def needs_reference(row):
  if torch is None and not row.by_numpy:
    pytest.skip("PyTorch, the reference of this row, is not installed")


def values(result):
  """A reference's result as an array."""
  if isinstance(result, Tensor):
    return result.numpy()
  if torch is not None and isinstance(result, torch.Tensor):
    return (result.float() if result.dtype in (torch.bfloat16,) else result).numpy(force=True)
  return np.asarray(result)


def compare(got, want, name="", exact=True):
  """Values, shape and type of a result."""
  if callable(want):
    drawn_from(got, want)
    return
  if not isinstance(got, Tensor):
    assert type(got)(want) == got if not isinstance(got, float) else got == pytest.approx(float(want)), (
      got,
      want,
    )
    return
  array = values(want)
  assert got.shape == array.shape
  kind = str(getattr(want, "dtype", array.dtype)).removeprefix("torch.").removeprefix("dtypes.")
  if exact:
    assert got.dtype.name == kind or (got.dtype.name, kind) == (
      "uint64",
      "int64",
    )  # sums of uint64 stay unsigned
  tolerance = max(TOLERANCE.get(got.dtype.name, 0), TOLERANCE.get(kind, 0) if exact else 0)
  mine = got.numpy()
  if not exact:
    array = array.astype(mine.dtype)
  np.testing.assert_allclose(mine, array, rtol=tolerance, atol=tolerance * 0.2)


def drawn_from(sample, cdf):
  """The largest distance between a sample's and the distribution's cumulative probabilities is below what one sample in
  a thousand exceeds: the Kolmogorov-Smirnov bound, 1.95 / sqrt(n)."""
  drawn = np.sort(sample.numpy().astype(np.float64).ravel())
  n, expected = drawn.size, np.array([cdf(t) for t in drawn.tolist()])
  before = np.searchsorted(drawn, drawn, "left") / n  # of discrete values, what lies below them
  after = np.searchsorted(drawn, drawn, "right") / n
  discrete = np.array([cdf(np.nextafter(t, -np.inf)) for t in drawn.tolist()])
  assert max(abs(after - expected).max(), abs(before - discrete).max()) < 1.95 / math.sqrt(n)


def reference(row, d):
  """(what it gives, whether in the same type): in a wider type where PyTorch lacks this one."""
  if torch is None and not row.by_numpy:
    return methods.parts(methods.ours(row, d, device="INTERP")[0]), True
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
      return methods.parts(methods.theirs(row, d)[0]), True
    except (RuntimeError, TypeError) as e:
      if (
        d is None
        or row.by_numpy
        or not re.search("not implemented for|not support|Promotion for|unsupported", str(e))
      ):
        raise
      return methods.parts(methods.theirs(row, d, wider=True)[0]), False


# ---------------------------------------------------------------- many rows computed together


def together(tensors, what):
  tensors = [t for t in tensors if isinstance(t, Tensor)]
  if not tensors:
    return
  try:
    Tensor.realize(*tensors)
  except Exception:  # then each fails in its own test, or does not
    log.warning("%s do not compute together", what, exc_info=True)


def evaluated(row, d, **how):
  try:
    return methods.parts(methods.ours(row, d, **how)[0])
  except Exception as e:  # noqa: BLE001  its own test raises it
    return e


@functools.cache
def results(numbers, every=False, **how):
  """{(row, type): results} of rows: of their first type, or of every type."""
  of = [ROWS[n] for n in numbers]
  found = {(r, d): evaluated(r, d, **how) for r in of for d in (r.types if every else r.types[:1])}
  together([t for parts in found.values() if isinstance(parts, list) for t in parts], f"rows {numbers}")
  return found


def result(n, d, of, **how):
  """Of row n, computed together with those beside it in `of`."""
  beside = tuple(of[of.index(n) // CHUNK * CHUNK :][:CHUNK])
  return results(beside, **how)[ROWS[n], d]


def check(row, d, got):
  if isinstance(got, Exception):
    raise got
  want, exact = reference(row, d)
  assert len(got) == len(want)
  for g, w in zip(got, want):
    compare(g, w, exact=exact and not row.by_numpy or row.by_numpy and d is None)


def each(rows):
  rows = list(rows)
  return pytest.mark.parametrize("n", rows, ids=[ROWS[getattr(n, "values", [n])[0]].name for n in rows])


def one_for_each_method():
  """Rows such that every method and every module has one."""
  found, seen = [], set()
  for n, row in enumerate(ROWS):
    if more := (methods.called(row.ours) & {*dir(Tensor), *nn.__all__}) - seen:
      seen |= more
      found.append(n)
  return found


def quick(rows, chosen):
  """The rows, of which those that are not chosen are marked full."""
  return [n if n in chosen else pytest.param(n, marks=pytest.mark.full) for n in rows]


ALL = list(range(len(ROWS)))
WITH_INPUTS = [n for n in ALL if ROWS[n].inputs]
SLOW = {n for n in ALL if ROWS[n].slow}
# the inputs' strides are what these rows are about
AS_VIEWS = [n for n in WITH_INPUTS if not re.search("stride|is_contiguous", ROWS[n].ours)]
SOME = [n for n in AS_VIEWS if n % 24 == 0 and n not in SLOW]
INTERPRETED = [n for n in WITH_INPUTS if n % 6 == 0]
COMPILED = [n for n in one_for_each_method() if n not in SLOW][::4]  # in a quick run
TYPED = sorted(
  {*one_for_each_method(), *ALL[::3]} & {*WITH_INPUTS}
)  # compiled in every type; in the interpreter all are


@each(quick(ALL, COMPILED))
def test_values(n, request):
  d = ROWS[n].types[0]
  check(ROWS[n], d, result(n, d, ALL if request.config.option.full else COMPILED))


@each(quick(AS_VIEWS, SOME))
def test_of_views(n, request, monkeypatch):
  """The inputs are turned around and transposed in memory."""
  compile_quickly(monkeypatch)
  d = ROWS[n].types[0]
  check(ROWS[n], d, result(n, d, AS_VIEWS if request.config.option.full else SOME, view=True))


@each(quick(WITH_INPUTS, INTERPRETED))
def test_types_in_the_interpreter(n, request):
  row = ROWS[n]
  needs_reference(row)
  of = WITH_INPUTS if request.config.option.full else INTERPRETED
  for d in row.types:
    try:
      check(row, d, result(n, d, of, device="INTERP", every=True))
    except Exception as e:
      raise AssertionError(f"{row.ours} of {d}: {e}") from e


@pytest.mark.full
@each(TYPED)
def test_types(n):
  row = ROWS[n]
  for d in row.types:
    try:
      check(row, d, result(n, d, TYPED, every=True))
    except Exception as e:
      raise AssertionError(f"{row.ours} of {d}: {e}") from e


# ---------------------------------------------------------------- gradients


STEP = 1e-6  # of differences


def is_differentiable(row):
  d = row.types[0]
  floats = "nn" in methods.names_in(row.ours) or any(
    methods.arrays(row.family)[n].dtype.kind == "f" for n in row.inputs
  )
  return row.differentiable and floats and (d is None or d.kind in "fc") and "e" not in row.inputs


DIFFERENTIABLE = [n for n in WITH_INPUTS if is_differentiable(ROWS[n])]


def total(row, d, **how):
  """(a weighted sum of the results that depend on float inputs, these inputs)"""
  result, leaves = methods.ours(row, d, grad=True, **how)
  outs = [t for t in methods.parts(result) if isinstance(t, Tensor) and t.requires_grad]
  halves = [p for t in outs for p in ((t.real, t.imag * 0.5) if t.is_complex() else (t,))]
  return sum(
    (t * Tensor(weights(t.shape), dtype=t.dtype, device=t.device)).sum().double() for t in halves
  ), leaves


def widest(row):
  """The type in which gradients are compared with differences."""
  d = row.types[0]
  return dtypes.complex128 if d is not None and d.kind == "c" else dtypes.float64


def gradients(row, device):
  """Our gradients of a weighted sum of the results, or an error, or None where there is none to take."""
  try:
    loss, leaves = total(row, widest(row) if row.by_numpy else row.types[0], device=device)
    return loss.gradient(*leaves, materialize_grads=True) if leaves and isinstance(loss, Tensor) else None
  except Exception as e:  # noqa: BLE001  its own test raises it
    return e


@functools.cache
def all_gradients(chunk, full):
  """{row: gradients}; in a quick run, five of six by the interpreter."""
  numbered = [n for n in DIFFERENTIABLE[chunk * CHUNK : (chunk + 1) * CHUNK] if full or n not in SLOW]
  found = {ROWS[n]: gradients(ROWS[n], "CPU" if full or n % 6 == 0 else "INTERP") for n in numbered}
  for device in ("CPU", "INTERP"):
    tensors = [t for g in found.values() if isinstance(g, list) for t in g]
    together([t for t in tensors if t.device == device], f"gradients of chunk {chunk}")
  return found


@pytest.mark.filterwarnings("ignore:reduction:UserWarning", "ignore:enable_nested_tensor:UserWarning")
@each(quick(DIFFERENTIABLE, {*DIFFERENTIABLE} - SLOW))
def test_gradient(n, request):
  row = ROWS[n]
  needs_reference(row)
  got = all_gradients(DIFFERENTIABLE.index(n) // CHUNK, request.config.option.full)[row]
  if got is None:
    return
  if isinstance(got, Exception):
    raise got
  if row.by_numpy:
    assert along(got) == pytest.approx(difference(row), rel=1e-4, abs=1e-5)
    return
  result, leaves = methods.theirs(row, row.types[0], grad=True)
  outs = [t for t in methods.parts(result) if isinstance(t, torch.Tensor) and t.requires_grad]
  halves = [p for t in outs for p in ((t.real, t.imag * 0.5) if t.is_complex() else (t,))]
  loss = sum((t * torch.tensor(weights(tuple(t.shape))).to(t.dtype)).sum().double() for t in halves)
  want = torch.autograd.grad(loss, leaves, allow_unused=True) if outs else [None] * len(leaves)
  assert len(got) == len(want)
  for g, w, leaf in zip(got, want, leaves):
    w = torch.zeros_like(leaf) if w is None else w
    tolerance = TOLERANCE[g.dtype.name]
    assert g.dtype.name == str(w.dtype).removeprefix("torch.")
    np.testing.assert_allclose(g.numpy(), values(w), rtol=tolerance, atol=tolerance)


def difference(row):
  """The slope of the reference along one direction, in float64."""

  def value(sign):
    names = dict(methods.COMMON, np=np)
    for name, (array, kind) in methods.inputs_of(row, row.theirs, widest(row)).items():
      free = kind is not None and kind.kind in "fc" and name not in methods.fixed(row.family)
      names[name] = array + sign * STEP * weights(array.shape) if free else array
    outs = methods.parts(eval(row.theirs, names))
    outs = [np.asarray(o) for o in outs]
    halves = [p for o in outs for p in ((o.real, o.imag * 0.5) if o.dtype.kind == "c" else (o,))]
    return sum(np.sum(weights(np.shape(o)) * o) for o in halves if o.dtype.kind == "f")

  return (value(1) - value(-1)) / (2 * STEP)


def slope(row, moved=0.0):
  """(a weighted sum of the gradients, in float64, what it depends on)"""
  loss, leaves = total(row, widest(row), device="INTERP", moved=moved)
  if not isinstance(loss, Tensor) or not leaves:
    return None, leaves
  return sum(
    (g * Tensor(weights(g.shape) ** 2 + 0.2, device="INTERP", dtype=g.dtype)).sum()
    for whole in loss.gradient(*leaves, materialize_grads=True)
    for g in ((whole.real, whole.imag * 0.5) if whole.is_complex() else (whole,))
  ), leaves


def has_second_order(n):
  """Is everything in it of a type that is made wide enough to take differences?"""
  row = ROWS[n]
  kept = {methods.arrays(row.family)[name].dtype.name for name in row.inputs}
  return row.ours not in ONCE and not kept & {"float16", "complex64"}


# rows whose gradient's gradient is not what differences say, and why
ONCE = {
  "zeros.cumprod(1)": "by division: right where no element is 0 (mini/grad.py)",
  "zeros.cumprod(0)": "by division: right where no element is 0 (mini/grad.py)",
  "M.special.i0e(b)": "|x| has a corner at 0, which is in b",
  "x.gaussian_nll_loss(y,p*1e-7)": "as PyTorch's, the gradient passes the bound of the variance",
}


@pytest.mark.full
@each(n for n in DIFFERENTIABLE if n in TYPED and has_second_order(n))
def test_second_order(n):
  """The gradient of the gradient, against differences of the gradient."""
  row = ROWS[n]
  at, leaves = slope(row)
  if at is None:
    return
  got = at.gradient(*leaves, materialize_grads=True) if at.requires_grad else []
  up, down = (slope(row, sign * STEP)[0] for sign in (1, -1))
  Tensor.realize(*got, up, down)
  want = (up.item() - down.item()) / (2 * STEP)
  assert along(got) == pytest.approx(want, rel=1e-4, abs=1e-4, nan_ok=True)


def along(slopes):
  """The slope in the direction in which differences are taken."""
  return sum(np.sum(g.numpy().real * weights(g.shape)) for g in slopes)  # which is real


# ---------------------------------------------------------------- other devices


GPUS = ["CL", "CUDA", "METAL"]


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(-(-len(one_for_each_method()) // (CHUNK * len(GPUS)))))
@pytest.mark.parametrize("device", GPUS)
def test_gpus(device, chunk, request, monkeypatch):
  """Each method on one of them, on another with the next seed."""
  if device != "CL" and golden.CXX is None:
    pytest.skip("no C++ compiler found")
  with Context(EMULATE=int(device != "CL")):
    try:
      info = Device[device].shim.info
    except DeviceError as e:
      pytest.skip(str(e))
    compile_quickly(monkeypatch, device)
    wrong, found = [], {}
    mine = one_for_each_method()[(GPUS.index(device) + request.config.option.seed) % len(GPUS) :: len(GPUS)]
    for n in mine[chunk * CHUNK : (chunk + 1) * CHUNK]:
      row = ROWS[n]
      found[row] = evaluated(row, row.types[0], device=device)
    together([t for parts in found.values() if isinstance(parts, list) for t in parts], f"rows on {device}")
    for row, got in found.items():
      try:
        check(row, row.types[0], got)
      except Exception as e:  # noqa: BLE001  all that is wrong is told
        if "float64" not in str(e) or "float64" in info.dtypes:  # Metal has none
          wrong.append(f"{row.name}: {e}")
  assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- what two types promote to

SIGNED = [d for d in dtypes.all if not (d.kind == "u" and d.itemsize > 1)]


def torch_name(t):
  return str(t.dtype).removeprefix("torch.")


@pytest.mark.skipif(torch is None, reason="PyTorch, the reference of promotion, is not installed")
@pytest.mark.parametrize("a", SIGNED, ids=lambda d: d.short)
@pytest.mark.parametrize("b", SIGNED, ids=lambda d: d.short)
def test_promotion(a, b):
  ta, tb = getattr(torch, a.name), getattr(torch, b.name)
  for sa, sb in (((2,), (2,)), ((2,), ()), ((), (2,))):
    ours = Tensor.ones(*sa, dtype=a) + Tensor.ones(*sb, dtype=b)
    assert ours.dtype.name == torch_name(torch.ones(sa, dtype=ta) + torch.ones(sb, dtype=tb))
  for number in (True, 2, 2.5):
    assert (Tensor.ones(2, dtype=a) * number).dtype.name == torch_name(torch.ones(2, dtype=ta) * number)


def test_a_product_of_bfloat16_is_rounded_once():
  r = np.random.default_rng(5)
  a, b = (Tensor(r.standard_normal(s).astype(np.float32), dtype=dtypes.bfloat16) for s in ((8, 64), (64, 8)))
  want = Tensor(a.numpy() @ b.numpy()).bfloat16()
  np.testing.assert_array_equal((a @ b).numpy(), want.numpy())


# ---------------------------------------------------------------- wrong arguments


@pytest.mark.parametrize(
  "family, expression, says", methods.mistakes(), ids=[m[1] for m in methods.mistakes()]
)
def test_mistakes(family, expression, says):
  row = methods.Row(family, expression, expression, (None,), False)
  with pytest.raises(
    (MiniError, ValueError, IndexError, TypeError, OverflowError, DeviceError), match=re.escape(says)
  ):
    Tensor.realize(*methods.parts(methods.ours(row, None)[0]))


# ---------------------------------------------------------------- coverage


def public():
  return {n for n in dir(Tensor) if not n.startswith("_")} - set(NO_METHOD)


# What has no value to compare, and where it is tested.
NO_METHOD = {
  "generator": "test_tensor_random.py", "training": "test_nn.py", "train": "test_nn.py", "made": "test_errors.py",
  "uop": "test_tensor.py", "cuda": "test_cuda.py", "backward": "test_grad.py, and every gradient here",
  "register_hook": "test_grad.py", "retain_grad": "test_grad.py", "retains_grad": "test_grad.py",
}  # fmt: skip

# What has no row yet. It shrinks.
UNCOVERED: set[str] = set()


COVERED = {name for row in ROWS for name in methods.called(row.ours)}


def test_every_method_has_a_row():
  assert public() - COVERED <= UNCOVERED


# What holds modules or parameters and computes nothing: test_nn.py and test_layers.py.
CONTAINERS = {"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"}


def test_every_module_has_a_row():
  classes = {name: x for name in nn.__all__ if isinstance(x := getattr(nn, name), type)}
  modules = {name for name, x in classes.items() if issubclass(x, nn.Module)}
  assert modules - COVERED == CONTAINERS
