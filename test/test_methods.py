"""Every public method of Tensor against PyTorch, or NumPy where it lacks one: the rows of test/methods/.

Of each row: values, types and shapes, of every type that it takes; the gradient, against PyTorch's, or against
differences in float64; the same of inputs that are views; on the CPU and in the interpreter; and a row for each method
on the GPUs that are here or emulated. Many rows are computed together: that is fast.
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

from mini import Context, Device, Tensor, dtypes
from mini.types import MiniError
from runtime.base import DeviceError

torch = methods.torch
ROWS = methods.rows()
CHUNK = 60
log = logging.getLogger(__name__)

TOLERANCE = {"float64": 1e-6, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def needs_reference(row):
  if torch is None and not row.by_numpy:
    pytest.skip("PyTorch, the reference of this row, is not installed")


def values(result):
  """A reference's result as an array."""
  if torch is not None and isinstance(result, torch.Tensor):
    result = result.detach()
    return (result.float() if result.dtype in (torch.bfloat16,) else result).numpy()
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
  kind = (
    str(want.dtype).removeprefix("torch.")
    if torch is not None and isinstance(want, torch.Tensor)
    else str(array.dtype)
  )
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
def results(chunk, **how):
  """{(row, type): results} of a chunk of rows: of their first type, or of every type. thin: of every third row."""
  every, thin = how.pop("every", False), how.pop("thin", False)
  of = [ROWS[n] for n in range(chunk * CHUNK, min(len(ROWS), (chunk + 1) * CHUNK)) if n % 3 == 0 or not thin]
  found = {(r, d): evaluated(r, d, **how) for r in of for d in (r.types if every else r.types[:1])}
  together(
    [t for parts in found.values() if isinstance(parts, list) for t in parts], f"rows of chunk {chunk}"
  )
  return found


def check(row, d, got):
  if isinstance(got, Exception):
    raise got
  want, exact = reference(row, d)
  assert len(got) == len(want)
  for g, w in zip(got, want):
    compare(g, w, exact=exact and not row.by_numpy or row.by_numpy and d is None)


def each(rows):
  return pytest.mark.parametrize("n", rows, ids=[ROWS[getattr(n, "values", [n])[0]].name for n in rows])


WITH_INPUTS = [n for n, row in enumerate(ROWS) if row.inputs]
EVERY_THIRD = [n if n % 3 == 0 else pytest.param(n, marks=pytest.mark.full) for n in WITH_INPUTS]


@each(range(len(ROWS)))
def test_values(n):
  row = ROWS[n]
  needs_reference(row)
  check(row, row.types[0], results(n // CHUNK)[row, row.types[0]])


@each(EVERY_THIRD)
def test_of_views(n, request):
  """The inputs are turned around and transposed in memory."""
  row = ROWS[n]
  needs_reference(row)
  check(
    row, row.types[0], results(n // CHUNK, view=True, thin=not request.config.option.full)[row, row.types[0]]
  )


@each(WITH_INPUTS)
def test_types_in_the_interpreter(n):
  row = ROWS[n]
  needs_reference(row)
  for d in row.types:
    try:
      check(row, d, results(n // CHUNK, device="INTERP", every=True)[row, d])
    except Exception as e:
      raise AssertionError(f"{row.ours} of {d}: {e}") from e


@pytest.mark.full
@each(WITH_INPUTS)
def test_types(n):
  row = ROWS[n]
  needs_reference(row)
  for d in row.types:
    try:
      check(row, d, results(n // CHUNK, every=True)[row, d])
    except Exception as e:
      raise AssertionError(f"{row.ours} of {d}: {e}") from e


# ---------------------------------------------------------------- gradients


def weights(shape):
  return np.cos(np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape) + 1)


def is_differentiable(row):
  d = row.types[0]
  floats = any(methods.arrays(row.family)[n].dtype.kind == "f" for n in row.inputs)
  return row.differentiable and floats and (d is None or d.kind == "f") and "e" not in row.inputs


def gradients(row):
  """Our gradients of a weighted sum of the results, or an error, or None where there is none to take."""
  d = dtypes.float64 if row.by_numpy else row.types[0]
  try:
    result, leaves = methods.ours(row, d, grad=True)
    outs = [t for t in methods.parts(result) if isinstance(t, Tensor) and t.requires_grad]
    if not outs or not leaves:
      return None
    total = sum((t * Tensor(weights(t.shape), dtype=t.dtype)).sum().double() for t in outs)
    return total.gradient(*leaves)
  except Exception as e:  # noqa: BLE001  its own test raises it
    return e


@functools.cache
def all_gradients(chunk):
  found = {r: gradients(r) for r in ROWS[chunk * CHUNK : (chunk + 1) * CHUNK] if is_differentiable(r)}
  together([t for g in found.values() if isinstance(g, list) for t in g], f"gradients of chunk {chunk}")
  return found


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@each([n for n in WITH_INPUTS if is_differentiable(ROWS[n])])
def test_gradient(n):
  row = ROWS[n]
  needs_reference(row)
  got = all_gradients(n // CHUNK)[row]
  if got is None:
    return
  if isinstance(got, Exception):
    raise got
  if row.by_numpy:
    differences(row, got)
    return
  result, leaves = methods.theirs(row, row.types[0], grad=True)
  outs = [t for t in methods.parts(result) if isinstance(t, torch.Tensor) and t.requires_grad]
  total = sum((t * torch.tensor(weights(t.shape)).to(t.dtype)).sum().double() for t in outs)
  want = torch.autograd.grad(total, leaves, allow_unused=True) if outs else [None] * len(leaves)
  assert len(got) == len(want)
  for g, w, leaf in zip(got, want, leaves):
    w = torch.zeros_like(leaf) if w is None else w
    tolerance = TOLERANCE[g.dtype.name] * 5
    assert g.dtype.name == str(w.dtype).removeprefix("torch.")
    np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=tolerance, atol=tolerance)


def differences(row, got):
  """The gradients against central differences of the reference, along one direction, in float64."""
  known = {k: a for k, a in methods.arrays(row.family).items() if k in methods.names_in(row.ours)}
  floats = [k for k, a in known.items() if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
  h, along = 1e-6, {k: weights(known[k].shape) for k in floats}

  def total(sign):
    moved = {k: known[k].astype(np.float64) + sign * h * along[k] for k in floats}
    outs = methods.parts(eval(row.theirs, {**methods.COMMON, "np": np, **known, **moved}))
    return sum(np.sum(weights(np.shape(o)) * o) for o in outs if np.asarray(o).dtype.kind == "f")

  want = (total(1) - total(-1)) / (2 * h)
  assert sum(np.sum(g.numpy() * along[k]) for g, k in zip(got, floats)) == pytest.approx(
    want, rel=1e-4, abs=1e-5
  )


# ---------------------------------------------------------------- other devices


def one_for_each_method():
  """Rows such that every method has one."""
  found, seen = [], set()
  for n, row in enumerate(ROWS):
    if more := (methods.called(row.ours) & set(dir(Tensor))) - seen:
      seen |= more
      found.append(n)
  return found


# rows that Intel's OpenCL for CPUs computes wrongly: its running maximum of ~x of integers is garbage (docs/devices.md)
INTEL_FAULTS = ("y.multilabel_margin_loss(classes)",)


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(-(-len(one_for_each_method()) // CHUNK)))
@pytest.mark.parametrize("device", ["CL", "CUDA", "METAL"])
def test_gpus(device, chunk):
  if device != "CL" and golden.CXX is None:
    pytest.skip("no C++ compiler found")
  with Context(EMULATE=int(device != "CL")):
    try:
      info = Device[device].shim.info
    except DeviceError as e:
      pytest.skip(str(e))
    wrong, found = [], {}
    for n in one_for_each_method()[chunk * CHUNK : (chunk + 1) * CHUNK]:
      row = ROWS[n]
      if row.ours not in INTEL_FAULTS or "Intel" not in info.target:
        found[row] = evaluated(row, row.types[0], device=device)
    together([t for parts in found.values() if isinstance(parts, list) for t in parts], f"rows on {device}")
    for row, got in found.items():
      try:
        if torch is not None or row.by_numpy:
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
  with pytest.raises((MiniError, ValueError, IndexError, TypeError, DeviceError), match=re.escape(says)):
    Tensor.realize(*methods.parts(methods.ours(row, None)[0]))


# ---------------------------------------------------------------- coverage


def public():
  return {n for n in dir(Tensor) if not n.startswith("_")} - set(NO_METHOD)


# What has no value to compare, and where it is tested.
NO_METHOD = {
  "generator": "test_tensor_random.py", "training": "test_nn.py", "train": "test_nn.py", "made": "test_errors.py",
  "uop": "test_tensor.py", "cuda": "test_cuda.py", "backward": "test_grad.py, and every gradient here",
  "imag": "an error: methods/inplace.py", "register_hook": "test_grad.py", "retain_grad": "test_grad.py", "retains_grad": "test_grad.py",
}  # fmt: skip

# What has no row yet. It shrinks.
UNCOVERED: set[str] = set()


def test_every_method_has_a_row():
  covered = {name for row in ROWS for name in methods.called(row.ours)}
  assert public() - covered <= UNCOVERED
