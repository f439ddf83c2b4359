"""`mini.numpy` beside NumPy: the same expressions (test/numpy_rows.py) and the same programs (test/programs) under both names."""

import random
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import golden_sources as golden
import numpy
import numpy_rows as table
import pytest

import mini
from mini import Context, Tensor, jit, stats
from mini import numpy as mnp
from mini.capture import JitError
from mini.numpy import few as at_hand
from mini.numpy import host
from mini.numpy.array import Lazy
from mini.numpy.array import generic as scalar
from runtime.base import DeviceError

DOCUMENT = Path(__file__).parent.parent / "docs" / "numpy.md"
ROWS = [(chapter, row) for chapter, text in table.CHAPTERS.items() for row in table.rows_of(text)]
TOLERANCE = {"float64": 4e-12, "float32": 2e-6, "float16": 2e-3, "complex128": 1e-11, "complex64": 4e-6}
DEVICES = ["INTERP", pytest.param("CPU", marks=pytest.mark.full)]
FEW = 1 << 15
ignored = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True, params=[0, FEW], ids=["lazily", "at once"])
def few(request):
  with Context(FEW=request.param):
    yield


def run(np, row):
  """What the row gives: of several statements, the last one."""
  names = {"np": np, **{n: np.array(a) for n, a in table.INPUTS.items() if re.search(rf"\b{n}\b", row)}}
  *statements, last = row.split("; ")
  with numpy.errstate(all="ignore"), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    exec("\n".join(statements), names)  # noqa: S102  a row of a table
    if re.match(r"^\w+(\[.*\])? [^=]*= ", last):
      return exec(last, names)  # noqa: S102  a row of a table
    return eval(last, names)


def same(got, want):
  """The same values, types, shapes; an array for an array, a scalar for a scalar."""
  if isinstance(want, (tuple, list)):
    assert type(got).__name__ == type(want).__name__ and len(got) == len(want), (type(got), type(want))
    for a, b in zip(got, want):
      same(a, b)
    return
  if not isinstance(got, Lazy):
    assert type(got) is type(want), (type(got), type(want))
    assert got == want or numpy.isnan(got)
    return
  kind = mnp.ndarray if isinstance(want, numpy.ndarray) else scalar
  assert isinstance(got, kind), (type(got), type(want))
  assert (got.dtype, got.shape) == (want.dtype, want.shape)
  ours, tolerance = numpy.asarray(got), TOLERANCE.get(want.dtype.name, 0)
  numpy.testing.assert_allclose(ours, want, rtol=tolerance, atol=tolerance * 0.2)
  if want.dtype.kind == "f":
    zero = (ours == 0) & (numpy.asarray(want) == 0)
    assert (numpy.signbit(ours) == numpy.signbit(want))[zero].all(), "the sign of a zero"


@pytest.mark.sample(3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("chapter", table.CHAPTERS)
def test_expressions_give_what_numpy_gives(chapter, device):
  """Those of a chapter are computed together."""
  with Context(DEV=device):
    compare(chapter)


def compare(chapter):
  rows = [row for c, row in ROWS if c == chapter]
  found, wrong = [], []
  for row in rows:
    try:
      found.append(run(mnp, row))
    except Exception as e:  # noqa: BLE001  told below
      found.append(e)
  mnp.evaluate(*(x for x in found if isinstance(x, Lazy)))
  for row, got in zip(rows, found):
    try:
      if isinstance(got, Exception):
        raise got
      same(got, run(numpy, row))
    except Exception as e:  # noqa: BLE001  told below
      wrong.append(f"{row}: {type(e).__name__}: {e}")
  assert not wrong, "\n".join(wrong)


def failure(np, row):
  with pytest.raises(Exception) as e:
    run(np, row)
  return type(e.value).__name__, str(e.value)


@ignored
def test_mistakes_are_numpys_errors():
  wrong = []
  for row in table.rows_of(table.MISTAKES):
    try:
      want, got = failure(numpy, row), failure(mnp, row)
      said = want[1].replace("numpy.ndarray", "ndarray").replace("numpy.", "")
      if (want[0], said) != (
        got[0],
        got[1].replace("numpy.ndarray", "ndarray").replace("mini.numpy.array.", "").replace("numpy.", ""),
      ):
        wrong.append(f"{row}\n    NumPy: {want}\n    ours:  {got}")
    except BaseException as e:  # noqa: BLE001  told below
      wrong.append(f"{row}: {type(e).__name__}: {e}")
  assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- programs

PROGRAMS = sorted(f.stem for f in (Path(__file__).parent / "programs").glob("*.py") if f.stem != "__init__")


def close(got, want):
  """Equal up to rounding; what a program gives is nested tuples of arrays, numbers and texts."""
  if isinstance(want, (tuple, list)):
    assert len(got) == len(want)
    for a, b in zip(got, want):
      close(a, b)
  elif isinstance(want, (str, bool)):
    assert got == want
  else:
    if isinstance(got, Lazy):
      assert (got.dtype, got.shape) == (want.dtype, want.shape)
    numpy.testing.assert_allclose(numpy.asarray(got), want, rtol=1e-7, atol=1e-9)


def program(name):
  return __import__(f"programs.{name}", fromlist=["program"]).program


@pytest.mark.sample(3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_written_for_numpy(name, device):
  with Context(DEV=device):
    found = program(name)(mnp)
    close(found, program(name)(numpy))


def test_one_program_on_the_cpu():
  """The others are compiled with --full."""
  with Context(DEV="CPU"):
    close(program("pca")(mnp), program("pca")(numpy))


@pytest.mark.full
@pytest.mark.parametrize("device", ["CL", "CUDA", "METAL"])
def test_a_program_on_gpus(device):
  """Emulated, but for CL."""
  if device != "CL" and golden.CXX is None:
    pytest.skip("no C++ compiler found")
  with Context(EMULATE=int(device != "CL"), DEV=device):
    try:
      found = program("life")(mnp)
    except DeviceError as e:
      pytest.skip(str(e))
    close(found, program("life")(numpy))


# ---------------------------------------------------------------- what is lazy


def test_evaluate_computes_what_is_shared_once():
  x = mnp.asarray(numpy.random.default_rng(0).standard_normal((40, 40)))
  shared = mnp.exp(x @ x).sum(axis=0)
  a, b = shared + 1, shared * 2
  before = dict(stats)
  mnp.evaluate(a, b)
  together = stats.kernels - before["kernels"]
  c, d = mnp.exp(x @ x).sum(axis=1) + 1, mnp.exp(x @ x).sum(axis=1) * 2
  middle = stats.kernels
  mnp.evaluate(c)
  alone = stats.kernels - middle
  assert together <= alone + 1  # the product and its sums once; and nothing more when the values are read
  reading = stats.kernels
  numpy.testing.assert_allclose(numpy.asarray(b), 2 * (numpy.asarray(a) - 1))
  assert stats.kernels == reading
  numpy.testing.assert_allclose(numpy.asarray(d), 2 * (numpy.asarray(c) - 1))


def test_nothing_is_computed_before_a_value_is_asked_for():
  x = mnp.arange(60000.0).reshape(3, 20000)[:, ::5000]
  before = stats.kernels, stats.schedules
  y = (mnp.sin(x) @ x.T + 1).mean(axis=0)
  y[0] = 5
  y += x[:, 0]
  assert y.shape == (3,) and y.dtype == "float64"
  assert (stats.kernels, stats.schedules) == before
  assert float(y[0]) == 5 and stats.kernels > before[0]


def test_a_loop_compiles_once():
  """Each round reads a value: what it goes on with is computed with it."""
  x = mnp.asarray(numpy.linspace(0, 1, 50))
  schedules = []
  for _ in range(12):
    x = mnp.cos(x) * 0.5 + x
    assert bool((x < 9).all())
    schedules.append(stats.schedules)
  assert schedules[-1] == schedules[2]


def loops(np):
  """What a program does element by element."""
  rng = np.random.default_rng(0)
  a, b = rng.random((6, 6)) + np.eye(6) * 5, rng.random(6)
  for k in range(6):
    for i in range(k + 1, 6):
      factor = a[i, k] / a[k, k]
      a[i, k:] -= factor * a[k, k:]
      b[i] -= factor * b[k]
  x = np.zeros(6)
  for i in reversed(range(6)):
    x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
  numbers = np.ones(40, dtype=np.int64)
  for i in range(2, 40):
    numbers[i] = numbers[i - 1] + numbers[i - 2]
  prime = np.ones(60, dtype=bool)
  for i in range(2, 8):
    if prime[i]:
      prime[i * i :: i] = False
  rest = np.arange(300.0)
  while len(rest) > 3:
    rest = rest[1:]
  far = np.linspace(0, 1, 5)
  for i in range(150):
    far = far + 0.01 * np.sin(far) * i
  return a, x, numbers, np.flatnonzero(prime), rest, far


def test_loops_that_put_off_much():
  with Context(DEV="INTERP"):
    close(loops(mnp), loops(numpy))


def test_rows_of_an_array_share_a_program():
  x = mnp.asarray(numpy.arange(900.0).reshape(30, 30))
  found, schedules = [], []
  for n in range(10, 20):
    found.append(float((x[n] * 2).sum()))
    schedules.append(stats.schedules)
  assert found == (numpy.arange(900.0).reshape(30, 30) * 2).sum(axis=1)[10:20].tolist()
  assert schedules[-1] == schedules[1]


# ---------------------------------------------------------------- other libraries


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_memory_is_shared_with_numpy(device):
  with Context(DEV=device):
    theirs = numpy.arange(6.0).reshape(2, 3)
    ours = mnp.from_dlpack(theirs)
    theirs[0, 0] = 7
    assert float(ours[0, 0]) == 7  # the same memory
    assert float((ours + 1).sum()) == 28
    ours[0, 1] = 99  # an array that is written has memory of its own
    assert theirs[0, 1] == 1
    t = mnp.sqrt(mnp.arange(5.0))
    back = numpy.from_dlpack(t)
    assert back.ctypes.data == numpy.asarray(t.tensor().__array__()).ctypes.data or back.base is not None
    numpy.testing.assert_array_equal(back, numpy.sqrt(numpy.arange(5.0)))
    once, again = numpy.from_dlpack(t), numpy.from_dlpack(t)
    assert once.ctypes.data == again.ctypes.data
    del t
    numpy.testing.assert_array_equal(once, numpy.sqrt(numpy.arange(5.0)))  # it lives on
    assert numpy.from_dlpack(mnp.arange(3), copy=True).tolist() == [0, 1, 2]


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_a_jitted_function_does_not_write_what_others_see(device):
  with Context(DEV=device):
    theirs = numpy.zeros(3, numpy.float32)
    taken, given = Tensor.from_dlpack(theirs), Tensor([0.0, 0.0, 0.0]).realize()
    back = numpy.from_dlpack(given)

    @jit
    def step(x):
      taken.assign(taken + 1)
      given.assign(given + 1)
      x.assign(x + 1)
      return taken.sum() + given.sum()

    x = Tensor.from_dlpack(theirs)
    for n in range(1, 4):
      assert step(x).item() == 6 * n
      assert theirs.tolist() == back.tolist() == [0, 0, 0]
    assert taken.tolist() == given.tolist() == x.tolist() == [3, 3, 3]


def test_what_does_not_fit_is_copied():
  theirs = numpy.arange(6).reshape(2, 3)
  flat = numpy.arange(12, dtype=numpy.uint8)
  for strided in (theirs.T, theirs[:, ::2], theirs[:, :1], flat[::2], flat[::-1], flat.reshape(2, 6)[:, ::2]):
    assert Tensor.from_dlpack(strided).tolist() == strided.tolist()
    assert (Tensor.from_dlpack(strided) + 1).tolist() == (strided + 1).tolist()
  fixed = numpy.arange(3)
  fixed.flags.writeable = False
  assert Tensor.from_dlpack(fixed).tolist() == [0, 1, 2]
  assert Tensor.from_dlpack(numpy.zeros((0, 3))).shape == (0, 3)


def test_memory_is_shared_with_torch():
  torch = pytest.importorskip("torch")
  with Context(DEV="CPU"):
    theirs = torch.arange(4.0, dtype=torch.float64)
    ours = mnp.from_dlpack(theirs)
    theirs[0] = 9
    assert ours.tolist() == [9, 1, 2, 3]
    back = torch.from_dlpack(ours * 2)
    assert back.tolist() == [18, 2, 4, 6]
    t = Tensor([1.0, 2.0])
    assert torch.from_dlpack(t).data_ptr() == torch.from_dlpack(t).data_ptr()
    assert Tensor.from_dlpack(theirs).dtype.name == "float64"


def test_numpys_functions_of_our_arrays_are_ours():
  x = mnp.asarray([1.0, 2.0])
  for found in (numpy.sin(x), numpy.add(x, 1), numpy.ones(2) + x, numpy.float64(2) * x, numpy.sum(x), numpy.linalg.norm(x),
                numpy.concatenate([x, x]), numpy.add.reduce(x), numpy.where(x > 1, x, 0)):  # fmt: skip
    assert isinstance(found, Lazy)
  assert isinstance(numpy.asarray(x), numpy.ndarray)
  assert (numpy.ones(2) + x).tolist() == [2, 3]


def test_an_array_is_a_tensor_with_numpys_meaning():
  x = mnp.asarray(Tensor([[1.0, 2.0]]))
  assert x.dtype == "float32" and x.tensor().shape == (1, 2)
  assert mnp.asarray(x.tensor()).tolist() == [[1, 2]]
  assert x.to_device("cpu").device == "cpu"


# ---------------------------------------------------------------- grad, jit, vmap


def smooth(np, x, w):
  return (np.tanh(x @ w) ** 2).sum() + np.linalg.norm(w)


def test_gradients_of_functions_written_for_numpy(rng):
  """By finite differences."""
  x, w = rng.standard_normal((4, 3)), rng.standard_normal((3, 2))
  value, found = mini.value_and_grad(lambda w: smooth(mnp, mnp.asarray(x), w))(mnp.asarray(w))
  assert isinstance(value, scalar) and isinstance(found, mnp.ndarray) and found.dtype == "float64"
  steps = numpy.eye(6).reshape(6, 3, 2) * 1e-6
  want = [(smooth(numpy, x, w + h) - smooth(numpy, x, w - h)) / 2e-6 for h in steps]
  numpy.testing.assert_allclose(numpy.asarray(found).ravel(), want, rtol=1e-6, atol=1e-8)
  numpy.testing.assert_allclose(float(value), smooth(numpy, x, w))


def test_gradients_have_the_form_of_the_arguments():
  given = {"w": mnp.ones((2, 3)), "b": mnp.asarray(1.0), "t": Tensor([1.0, 2.0, 3.0])}
  found = mini.grad(lambda p: ((p["w"] @ p["t"]) ** 2).sum() + p["b"] ** 3)(given)
  assert found["w"].tolist() == [[12, 24, 36]] * 2 and float(found["b"]) == 3
  assert isinstance(found["t"], Tensor) and found["t"].tolist() == [24, 24, 24]
  assert float(mini.grad(mini.grad(lambda a: a**3))(mnp.asarray(2.0))) == 12
  same(mini.jacobian(lambda a: a**2)(mnp.arange(3.0)), numpy.diag([0.0, 2.0, 4.0]))
  with pytest.raises(mini.DTypeError, match="only float tensors have gradients"):
    mini.grad(lambda a: a.sum())(mnp.arange(3))


def written(np, x):
  """A function that writes: to arrays of its own."""
  y = x.copy()
  y[0] = 5
  y[1:] += y[:-1]
  return y, {"total": y.sum(), "first": x[0]}


def test_gradients_go_through_writes():
  assert mini.grad(lambda x: written(mnp, x)[1]["total"])(mnp.arange(3.0)).tolist() == [0, 2, 1]


def test_gradients_go_through_loops_that_are_computed_in_parts():
  def far(x):
    for n in range(150):
      x = x + 1e-4 * mnp.sin(x) * n
    return x.sum()

  with Context(DEV="INTERP"):
    x = mnp.linspace(0, 1, 3)
    found, h = mini.grad(far)(x), 1e-6
    want = [float(far(x + h * e) - far(x - h * e)) / (2 * h) for e in mnp.eye(3)]
    numpy.testing.assert_allclose(numpy.asarray(found), want, rtol=1e-4, atol=1e-8)


def test_jit_captures_functions_written_for_numpy():
  fast = mini.jit(lambda x: written(mnp, x))
  schedules = []
  for n in range(4):
    x = numpy.array([1.0, 2.0, n])
    y, found = fast(mnp.asarray(x))
    want, others = written(numpy, x)
    same(y, want)
    same(found["total"], others["total"])
    same(found["first"], others["first"])
    schedules.append(stats.schedules)
  assert schedules[3] == schedules[1] and len(fast.captured) == 1
  waves = mini.jit(mini.grad(lambda x: (mnp.sin(x) * x).sum()))
  for n in range(3):
    x = numpy.arange(n, n + 3.0)
    numpy.testing.assert_allclose(waves(mnp.asarray(x)), numpy.cos(x) * x + numpy.sin(x))
  turned = mini.jit(lambda z: mnp.exp(z) * 2)
  for n in range(3):
    z = numpy.array([1j, n])
    numpy.testing.assert_allclose(turned(mnp.asarray(z)), numpy.exp(z) * 2)


def test_an_argument_of_a_jitted_function_may_be_written_afterwards():
  """Read-only is what a captured function reads that is no argument of it."""
  fast = jit(lambda a: a + 1)
  for _ in range(2):
    for view in (lambda a: a, lambda a: a[1:]):
      a = mnp.arange(4.0)
      fast(view(a))
      a[0] = 1
      assert a.tolist() == [1, 1, 2, 3]


def set_row(a, i):
  a = a.copy()
  a[i] = 0
  return a


def set_through_a_view(a, i):
  a = a.copy()
  row = a[i]
  row[0] = 99
  a[i, 1:3] *= 2
  a[:, i] += 1
  return a


@pytest.mark.parametrize(
  "f",
  [
    lambda np, a, i: a[i],
    lambda np, a, i: a[:, i],
    lambda np, a, i: a[i, i] + 1,
    lambda np, a, i: a[None, i, ..., 1],
    lambda np, a, i: a[i, [0, 2]],
    lambda np, a, i: a[[i, 0]],
    lambda np, a, i: a[[np.argmax(a[:, 0]), 0]] + i,
    lambda np, a, i: a[[0, 2]][:, range(2)] + i,
    lambda np, a, i: np.take(a, i, axis=1),
    lambda np, a, i: np.take(a, np.argmax(a[:, i]), axis=1),
    lambda np, a, i: a[np.atleast_1d(i)],
    lambda np, a, i: a[a[:, i].argmax()],
    lambda np, a, i: np.where(a[i] > 5, a[i - 1], 0),
    lambda np, a, i: set_row(a, i),
    lambda np, a, i: set_row(a, a[:, i].argmin()),
    lambda np, a, i: set_through_a_view(a, i),
    lambda np, a, i: set_through_a_view(a, i)[i].sum(),
  ],
)
@pytest.mark.parametrize("kind", ["array", "number"])
def test_a_jitted_function_takes_an_index(f, kind, rng):
  """One capture for all of them; views at such an index are written through."""
  a = rng.standard_normal((3, 4)).astype(numpy.float32)
  fast = jit(lambda a, i: f(mnp, a, i))
  for i in (1, 0, 2, -1):
    got = fast(mnp.array(a), mnp.array(i) if kind == "array" else i)
    want = f(numpy, a, numpy.array(i) if kind == "array" else i)
    # a sum of a row, which may nearly cancel, rounds as its terms do
    numpy.testing.assert_allclose(
      got, want, rtol=1e-6, atol=4 * numpy.finfo(numpy.float32).eps * abs(a).max()
    )
  with pytest.raises(IndexError):
    jit(lambda a, i: mnp.array(a)[i])(mnp.array(a), 3).tolist()


def test_what_a_jitted_function_reads_stays_as_it_is():
  scale = mnp.full(3, 2.0)
  double = mini.jit(lambda x: x * scale)
  assert double(mnp.ones(3)).tolist() == double(mnp.ones(3)).tolist() == [2, 2, 2]
  with pytest.raises(ValueError, match="assignment destination is read-only"):
    scale[0] = 3
  for ask in (lambda x: x if x.sum() > 0 else -x, lambda x: mnp.nonzero(x), lambda x: x * float(x[0])):
    with pytest.raises(JitError, match="a traced tensor has no value yet"):
      mini.jit(ask)(mnp.ones(3))


def test_few_values_are_constants_of_what_reads_them():
  few = mnp.arange(3.0)
  with pytest.raises(JitError):
    jit(lambda x: x + float(few[1]))(mnp.ones(2))
  assert jit(lambda x: x + few[1])(mnp.ones(2)).tolist() == [2, 2]
  with pytest.raises(ValueError, match="read-only"):
    few += 1
  with pytest.raises(ValueError, match="read-only"):
    few[0] = 1
  fixed = mnp.ones(2)
  fixed.setflags(write=False)
  with pytest.raises(ValueError, match="read-only"):
    mnp.add(fixed, 1, out=fixed)


def test_a_tensor_that_is_given_away_stays_the_arrays():
  for a in (mnp.arange(3.0), mnp.asarray(Tensor([0.0, 1.0, 2.0]))):
    t = a.tensor()
    t += 1
    t[2] = 9.0
    assert a.tolist() == [1, 2, 9] and (a * 2).tolist() == [2, 4, 18]


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_of_views_and_writes(seed):
  """The same under both names: what is a view of what, and who sees which write."""
  r = random.Random(seed)
  for _ in range(25):
    lines = ["v0 = " + r.choice(ARRAYS)]
    for n in range(1, r.randint(4, 10)):
      a, b = (f"v{r.randrange(n)}" for _ in range(2))
      lines.append(r.choice(STATEMENTS).format(new=f"v{n}", a=a, b=b, i=r.choice(INDICES)))
      lines.append(f"v{n} = globals().get('v{n}', {a})")
    found = []
    for np in (numpy, mnp):
      names, said = {"np": np}, []
      for line in lines:
        try:
          with numpy.errstate(all="ignore"):
            exec(line, names)  # noqa: S102  drawn from tables
        except Exception as e:  # noqa: BLE001  the same under both names
          said.append((line, e.__class__.__name__))
      values = [numpy.asarray(names[f"v{n}"]) for n in range(10) if f"v{n}" in names]
      found.append((said, values))
    assert [s[0] for s in found[0][0]] == [s[0] for s in found[1][0]], lines
    for want, got in zip(found[0][1], found[1][1], strict=True):
      assert want.dtype == got.dtype, lines
      numpy.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9, err_msg="\n".join(lines))


ARRAYS = (
  "np.arange(12.0).reshape(3, 4)", "np.arange(24).reshape(2, 3, 4)", "np.ones((3, 3))", "np.zeros(5)", "np.arange(6) > 2",
  "np.array([1.5, 2.5, -1.0], dtype=np.float32)", "np.zeros((0, 3))", "np.array([1 + 2j, 3])",
)  # fmt: skip
INDICES = ("0", "-1", "1:", "::2", "::-1", "...", "None", ":, 0", ":, ::-1", "1:, 1:", "[0, 1]", "..., None")
STATEMENTS = (
  "{new} = {a}[{i}]", "{new} = {a}.T", "{new} = {a}.reshape(-1)", "{new} = {a}.swapaxes(0, -1)", "{new} = {a}.copy()",
  "{a}[{i}] = {b}", "{a}[{i}] = 7", "{a}[{i}] += 1", "{a}.ravel()[:2] = 3", "{a} += {b}", "{a} *= 2", "{new} = {a} - {b}",
  "{new} = np.maximum({a}, 1)", "{new} = {a}.sum(0)", "{new} = {a} > {b}", "np.add({a}, {b}, out={a})", "{a}.fill(3)",
  "{new} = np.concatenate([{a}, {b}])", "{new} = {a}.astype(np.float32)", "{new} = np.where({a} > 1, {a}, {b})",
)  # fmt: skip


def test_vmap_of_functions_written_for_numpy(rng):
  x = rng.standard_normal((5, 3))
  many = mini.vmap(lambda row: mnp.sort(row)[::-1] / mnp.sqrt((row**2).sum()))
  want = numpy.sort(x)[:, ::-1] / numpy.sqrt((x**2).sum(axis=1, keepdims=True))
  numpy.testing.assert_allclose(many(mnp.asarray(x)), want)


# ---------------------------------------------------------------- random numbers, files, names


def test_random_numbers_are_numpys():
  for draw in (
    lambda np: np.random.default_rng(3).normal(size=(2, 3)), lambda np: np.random.default_rng(3).choice(np.arange(9), 4),
    lambda np: np.random.RandomState(3).rand(2), lambda np: np.random.default_rng(1).permutation(5),
    lambda np: [np.random.seed(4), np.random.randint(0, 9, 5)][1],
  ):  # fmt: skip
    same(draw(mnp), draw(numpy))
  a, b = mnp.arange(8), numpy.arange(8)
  mnp.random.default_rng(2).shuffle(a)
  numpy.random.default_rng(2).shuffle(b)
  same(a, b)
  assert isinstance(mnp.random.default_rng(0).random(), float)


def test_files(tmp_path):
  x = mnp.arange(6.0).reshape(2, 3)
  mnp.save(tmp_path / "x.npy", x)
  mnp.savez(tmp_path / "x.npz", a=x)
  mnp.savetxt(tmp_path / "x.txt", x)
  same(mnp.load(tmp_path / "x.npy"), numpy.asarray(x))
  same(mnp.loadtxt(tmp_path / "x.txt"), numpy.asarray(x))
  same(mnp.asarray(mnp.load(tmp_path / "x.npz")["a"]), numpy.asarray(x))


def test_what_is_missing_says_so():
  with pytest.raises(
    AttributeError, match=r"mini.numpy has no 'busday_count'; NumPy's is left out: docs/numpy.md"
  ):
    _ = mnp.busday_count
  with pytest.raises(AttributeError, match="and neither has NumPy"):
    _ = mnp.nothing
  with pytest.raises(TypeError, match="mini.numpy has no dtype 'datetime64'"):
    mnp.zeros(3, dtype="datetime64")


def test_a_write_to_few_values_copies_none_that_nobody_has():
  x = mnp.zeros(1000)
  row = x[10:20]
  if x._memory.values is None:
    return  # lazily
  place = x._memory.values.ctypes.data
  x[3], row[0] = 1.0, 2.0
  assert x._memory.values.ctypes.data == place and x[10] == 2 and x[3] == 1
  row += 1
  assert x[10] == 3 and x[11] == 1 and x[3] == 1
  seen, t, kept = x.data, x.tensor(), x.copy()
  x[3] = 5.0
  assert seen[3] == 1 and kept[3] == 1 and x[3] == 5 and t[3].item() in (1, 5)
  x = mnp.arange(6.0)
  x[1:] = x[:-1]
  assert x.tolist() == [0, 0, 1, 2, 3, 4]
  with pytest.raises(ValueError, match="broadcast"):
    x[1:3] = mnp.ones(4)
  assert x.tolist() == [0, 0, 1, 2, 3, 4] and not x._memory.values.flags.writeable
  x[0] = 7
  assert x[0] == 7


def test_few_values_stay_at_hand():
  x = mnp.asarray([3.5, -1.25, 2.0, 0.5])
  if x._memory.values is None:
    return  # lazily
  before = stats["kernels"]
  found = [
    x.astype(int),
    x.reshape(2, 2).T.ravel(),
    x.T.reshape(-1, 1),
    mnp.add.reduce(x),
    mnp.maximum.accumulate(x),
  ]
  mnp.add.at(x, [0, 0], 1)
  assert all(a._values() is not None for a in [*found, x]) and stats["kernels"] == before
  assert x[0] == 5.5 and found[1].tolist() == [3.5, 2.0, -1.25, 0.5]


def test_numpy_warns_of_nothing_within(recwarn):
  class Late:
    def __del__(self):
      assert mnp.isinf(mnp.ones(1) / mnp.zeros(1)).all()

  def inside(x):
    Late()
    return x

  assert (
    at_hand.quietly(inside, 1) == 1 and at_hand.quietly(at_hand.quietly, numpy.divide, 1.0, 0.0) == numpy.inf
  )
  threads = [threading.Thread(target=lambda: mnp.ones(1) / mnp.zeros(1)) for _ in range(4)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not recwarn.list
  with pytest.warns(RuntimeWarning):
    numpy.ones(1) / numpy.zeros(1)


def test_an_index_that_a_jitted_function_is_given_is_one_of_flat():
  @jit
  def put(a, i):
    a = a.copy()
    a.flat[i] = 5
    return a

  for i in (3, 1, -1):
    assert put(mnp.arange(6.0).reshape(2, 3), mnp.asarray(i)).ravel()[i] == 5


def test_threads_have_arrays_of_their_own():
  found = {}

  def work(n):
    a = mnp.full((20,), float(n))
    for _ in range(5):
      a[1:] += a[:-1]
    found[n] = float(a.sum())

  threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert found == {n: n * found[1] for n in range(4)}


def test_an_old_numpy_is_told():
  code = "import numpy; numpy.__version__ = '1.26.4'\nfrom mini import numpy"
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
  assert (
    "ImportError: mini.numpy follows NumPy 2.1 or newer, and this is 1.26.4: pip install -U numpy"
    in done.stderr
  )


# ---------------------------------------------------------------- the published list


def documented():
  """docs/numpy.md as it has to be: `python test/test_numpy.py` writes it."""
  text = DOCUMENT.read_text()
  left_out = "\n".join(
    f"- {why}: " + " ".join(f"`{n}`" for n in names.split()) for why, names in host.LEFT_OUT.items()
  )
  for name, body in (("at once", " ".join(f"`{n}`" for n in sorted(host.HOST))), ("left out", left_out)):
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    text = text[: text.index(begin) + len(begin)] + body + "\n" + text[text.index(end) :]
  return text


def test_the_published_list_is_what_is_so():
  assert DOCUMENT.read_text() == documented(), "python test/test_numpy.py writes docs/numpy.md"
  left_out = {n for names in host.LEFT_OUT.values() for n in names.split()}
  theirs = {n for n in dir(numpy) if n[0] != "_"}
  theirs |= {f"linalg.{n}" for n in dir(numpy.linalg) if n[0] != "_" and n not in ("linalg", "test")}
  theirs -= {n for n in theirs if n.split(".")[-1] in ("fft", "random", "linalg", "exceptions")}
  there = {n for n in theirs if hasattr(mnp.linalg if "." in n else mnp, n.removeprefix("linalg."))}
  assert theirs - there == left_out & theirs
  assert not left_out & there


if __name__ == "__main__":
  DOCUMENT.write_text(documented())


def test_few_values_go_along_with_what_they_meet():
  with Context(FEW=32768):
    a, here = mnp.arange(3.0), mnp.asarray(numpy.ones((40000, 3)))
    for _ in range(2):
      with Context(DEV="CPU:1"):
        there = mnp.asarray(numpy.ones((40000, 3)))
        assert (a + there).device == "cpu:1" and (a + 1).sum() == 6
      assert (a + here).device == "cpu" and (a + 1).sum() == 6
