"""`mini.numpy` and the Python array API standard 2024.12: every name, signature, type, operator and special case of the
tables in array_api.py. The expressions of numpy_rows.py show that each function gives what NumPy's gives."""

import inspect
import itertools
import operator
import re

import array_api as standard
import numpy
import numpy_rows
import pytest
from test_numpy import TOLERANCE

from mini import Context
from mini import numpy as mnp
from mini.numpy.array import Lazy

ignored = pytest.mark.filterwarnings("ignore")
DTYPES = standard.DTYPES.split()
FEW = ["bool", "int8", "uint8", "int64", "uint64", "float32", "float64", "complex64"]
types = pytest.mark.parametrize(
  "dtypes", [FEW, pytest.param(DTYPES, marks=pytest.mark.full)], ids=["few", "all"]
)
Kind = inspect.Parameter
ROOMS = {
  "": (mnp, standard.FUNCTIONS), "linalg": (mnp.linalg, standard.LINALG), "fft": (mnp.fft, standard.FFT),
  "array": (mnp.ones((2, 2)), standard.ARRAY), "info": (mnp.__array_namespace_info__(), standard.INFO),
}  # fmt: skip
ROWS = [
  (room, n, row) for room, (_, rows) in ROOMS.items() for row, names in rows.items() for n in names.split()
]


@pytest.fixture(autouse=True, params=[0, 1 << 15])
def on_the_interpreter(request):
  """Lazily, and as NumPy computes it at once."""
  with Context(DEV="INTERP", FEW=request.param), numpy.errstate(all="ignore"):
    yield


def operands(pattern, np):
  """The functions of two operands, or of one."""
  return [
    n for n in standard.FUNCTIONS[pattern].split() if isinstance(getattr(np, n), (numpy.ufunc, mnp.ufunc))
  ]


UNARY, BINARY = operands("x, /", mnp), operands("x1, x2, /", mnp)


# ---------------------------------------------------------------- names and signatures


@pytest.mark.parametrize("room", ROOMS)
def test_signatures(room):
  for r, name, row in ROWS:
    if r == room:
      fits(room, name, row)


def fits(room, name, row):
  """A parameter that the standard names is there under its name; one that has a place only is there in that place."""
  function = getattr(ROOMS[room][0], name)
  theirs = inspect.signature(eval(f"lambda {row}: 0"))
  signature = inspect.signature(function)
  ours = list(signature.parameters.values())
  places = [p for p in ours if p.kind in (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)]
  many = any(p.kind is Kind.VAR_POSITIONAL for p in ours)
  for at, p in enumerate(theirs.parameters.values()):
    if p.kind is Kind.VAR_POSITIONAL:
      assert many
    elif p.kind is Kind.KEYWORD_ONLY or (name, p.name) in (
      ("clip", "min"),
      ("clip", "max"),
    ):  # NumPy's are by name
      assert signature.parameters[p.name].kind in (Kind.KEYWORD_ONLY, Kind.POSITIONAL_OR_KEYWORD)
    else:
      assert many or at < len(places)
      if p.kind is Kind.POSITIONAL_OR_KEYWORD:
        assert places[at].name == p.name
      if p.default is not Kind.empty and not many:
        assert places[at].default is not Kind.empty
  required = [
    p for p in ours if p.default is Kind.empty and p.kind not in (Kind.VAR_POSITIONAL, Kind.VAR_KEYWORD)
  ]
  assert len(required) <= len(theirs.parameters)


def test_each_function_has_expressions():
  words = set(re.findall(r"\w+", "\n".join([*numpy_rows.CHAPTERS.values(), numpy_rows.MISTAKES])))
  assert not [n for room, n, _ in ROWS if room in ("", "linalg", "fft") and n not in words]


def test_attributes_constants_and_types():
  x = mnp.ones((2, 3), dtype=mnp.float32)
  assert not [n for n in standard.ATTRIBUTES.split() if not hasattr(x, n)]
  assert not [n for n in (standard.CONSTANTS + " " + standard.DTYPES).split() if not hasattr(mnp, n)]
  assert (x.shape, x.ndim, x.size, x.dtype, x.T.shape, x.mT.shape) == (
    (2, 3),
    2,
    6,
    mnp.float32,
    (3, 2),
    (3, 2),
  )
  assert mnp.__array_api_version__ == "2024.12" and x.to_device(x.device).device == x.device
  for n in DTYPES:
    assert mnp.dtype(n) == getattr(mnp, n) == mnp.zeros(1, dtype=n).dtype
  for n in ("float32", "float64", "complex64", "complex128"):
    for given in (n, getattr(mnp, n), mnp.ones(2, dtype=n)):
      found = mnp.finfo(given)
      assert {"bits", "eps", "max", "min", "smallest_normal", "dtype"} <= set(dir(found))
      assert found.eps == numpy.finfo(n).eps
  for given in ("int8", mnp.ones(2, dtype="int8"), mnp.ones(2, dtype="int8")[0]):
    assert (mnp.iinfo(given).bits, mnp.iinfo(given).max, mnp.iinfo(given).min) == (8, 127, -128)


def test_the_namespace_says_what_it_can():
  info = mnp.__array_namespace_info__()
  assert info.capabilities() == {
    "boolean indexing": True,
    "data-dependent shapes": True,
    "max dimensions": None,
  }
  assert info.default_device() in info.devices()
  assert set(info.default_dtypes()) == {"real floating", "complex floating", "integral", "indexing"}
  assert info.default_dtypes()["real floating"] == numpy.float64
  assert set(info.dtypes()) == set(DTYPES)
  assert set(info.dtypes(kind="integral")) == {f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
  assert info.dtypes(kind=("bool", "real floating")).keys() == {"bool", "float32", "float64"}
  for kind in (
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
  ):
    assert all(mnp.isdtype(d, kind) == (n in info.dtypes(kind=kind)) for n, d in info.dtypes().items())
  with pytest.raises(ValueError, match="unsupported kind"):
    info.dtypes(kind="colours")
  x = mnp.ones(2)
  assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is mnp
  with pytest.raises(ValueError, match="not supported"):
    x.__array_namespace__(api_version="1999.12")


# ---------------------------------------------------------------- types


def outcome(f, *args):
  """The result's type and shape, or the error."""
  try:
    result = f(*args)
  except Exception as e:  # noqa: BLE001  compared
    return type(e).__name__, re.sub(
      r"mini\.numpy\.array\.|numpy\.(?=ndarray)|numpy\.(?=\w+Error)", "", str(e)
    )
  return result.dtype, result.shape


ORDERED = ["less", "less_equal", "greater", "greater_equal", "maximum", "minimum"]


def unordered(name, *kinds):
  """Complex numbers have no order in the standard, nor here."""
  return name in ORDERED and any(numpy.result_type(k).kind == "c" for k in kinds)


@pytest.mark.full
@ignored
@types
def test_promotion_of_functions(dtypes):
  wrong = []
  for name in UNARY:
    for d in dtypes:
      want, got = (outcome(getattr(np, name), np.ones((2, 1), d)) for np in (numpy, mnp))
      wrong += [(name, d, want, got)] * (want != got)
  for name, (d, e) in itertools.product(BINARY, itertools.product(dtypes, dtypes)):
    want, got = (outcome(getattr(np, name), np.ones((2, 2), d), np.ones((2, 2), e)) for np in (numpy, mnp))
    wrong += [(name, d, e, want, got)] * (want != got and not unordered(name, d, e))
  assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.full
@ignored
@types
def test_promotion_of_operators(dtypes):
  """With arrays, in place, and with Python numbers on both sides."""
  signs = {s: (eval(f"lambda a, b: a {s} b"), getattr(operator, "i" + f"__{n}__".strip("_"), None))
           for s, n in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("//", "floordiv"), ("%", "mod"),
                        ("**", "pow"), ("&", "and"), ("|", "or"), ("^", "xor"), ("<<", "lshift"), (">>", "rshift"),
                        ("@", "matmul"), *((c, "") for c in ["<", "<=", ">", ">=", "==", "!="]))}  # fmt: skip
  assert set(signs) == set(standard.OPERATORS)
  wrong = []

  def compare(sign, f, a, b):
    want, got = (
      outcome(f, *(np.ones((2, 2), x) if isinstance(x, str) else x for x in (a, b))) for np in (numpy, mnp)
    )
    if want != got and not unordered(standard.OPERATORS[sign], a, b):
      wrong.append((sign, a, b, want, got))

  for sign, (plain, in_place) in signs.items():
    for d in dtypes:
      for e in dtypes:
        compare(sign, plain, d, e)
        if in_place:
          compare(sign, in_place, d, e)
      for number in (True, 2, 300, -1, 2.5, 1j):
        if sign == "**" and d == "bool":  # no numbers, in the standard; NumPy makes an exception of 2
          continue
        compare(sign, plain, d, number)
        compare(sign, plain, number, d)
        if in_place:
          compare(sign, in_place, d, number)
  assert not wrong, "\n".join(map(str, wrong))


def test_promotion_of_types():
  for d, e in itertools.product(DTYPES, DTYPES):
    assert outcome(lambda *x: mnp.ones(1, mnp.result_type(*x)), d, e) == outcome(
      lambda *x: numpy.ones(1, numpy.result_type(*x)), d, e
    )
    assert mnp.can_cast(mnp.dtype(d), mnp.dtype(e)) == numpy.can_cast(numpy.dtype(d), numpy.dtype(e))
    assert mnp.can_cast(mnp.ones(1, d), mnp.dtype(e)) == numpy.can_cast(numpy.dtype(d), numpy.dtype(e))


# ---------------------------------------------------------------- special cases


def differs(got, want, open_sign=None):
  """Where real numbers are not the same; of zeros the signs count, too."""
  tolerance = TOLERANCE.get(want.dtype.name, 0)
  with numpy.errstate(all="ignore"):
    near = numpy.abs(got - want) <= tolerance * (numpy.abs(want) + 0.2) if want.dtype.kind == "f" else False
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want)) | (numpy.isfinite(want) & near)
    if want.dtype.kind == "f":
      same &= ~((got == 0) & (want == 0) & (numpy.signbit(got) != numpy.signbit(want)))
    if open_sign is not None:
      same |= open_sign & ((numpy.abs(got) == numpy.abs(want)) | (numpy.isnan(got) & numpy.isnan(want)))
  return ~same


def check(cases):
  """[(name, arguments in NumPy)]: computed together, and compared."""
  found = [getattr(mnp, name)(*map(mnp.asarray, args)) for name, args in cases]
  mnp.evaluate(*found)
  wrong = []
  for (name, args), got in zip(cases, found):
    want, ours = getattr(numpy, name)(*args), numpy.asarray(got)
    assert (want.dtype, want.shape) == (ours.dtype, ours.shape), name
    if want.dtype.kind == "c":
      bad = numpy.zeros(want.shape, bool)
      for part in ("real", "imag"):
        is_open = numpy.zeros(want.shape, bool)
        for n, which, test in standard.OPEN_SIGNS:
          if n == name and which in (part, "both"):
            is_open = numpy.vectorize(lambda z, test=test: bool(test(z.real, z.imag)))(args[0])
        kind = "float32" if want.dtype == "complex64" else "float64"
        bad |= differs(getattr(ours, part).astype(kind), getattr(want, part).astype(kind), is_open)
    else:
      bad = differs(ours, want)
    for at in map(tuple, numpy.argwhere(bad)):
      places = [numpy.broadcast_to(a, want.shape)[at] for a in args]
      wrong.append(f"{name}{tuple(places)}: {ours[at]!r}, not {want[at]!r}")
  assert not wrong, "\n".join(wrong)


def real_arrays():
  values = numpy.array([float(x) for x in standard.SPECIAL.split()])
  yield numpy.append(values, [1e300, -1e-300, 5e-324])
  yield numpy.append(values, [3e38, 1e-40]).astype(numpy.float32)


def whole_arrays():
  for d in DTYPES:
    if numpy.dtype(d).kind in "iu":
      info = numpy.iinfo(d)
      small = [-1, -2, -5] if info.min else [5]
      yield numpy.array([0, 1, 2, 3, 7, info.max, info.min, info.max - 1, *small], d)
  yield numpy.array([True, False])


def takes(name, *args):
  """Does the standard give the function numbers like these? NumPy's float16 of small integers is beyond it."""
  try:
    found = getattr(numpy, name)(*args)
  except (TypeError, ValueError):
    return False
  return found.dtype != numpy.float16 and not (name == "reciprocal" and args[0].dtype.kind in "iu")


@ignored
@pytest.mark.parametrize("device", ["INTERP", pytest.param("CPU", marks=pytest.mark.full)])
@pytest.mark.parametrize("arrays", [real_arrays, whole_arrays])
def test_special_cases(arrays, device):
  with Context(DEV=device):
    check([(n, (a,)) for n in UNARY for a in arrays() if takes(n, a)])
    check([(n, (a[:, None], a)) for n in BINARY for a in arrays() if takes(n, a, a)])


@ignored
@pytest.mark.parametrize("device", ["INTERP", pytest.param("CPU", marks=pytest.mark.full)])
def test_special_cases_of_complex_numbers(device):
  parts = [float(x) for x in standard.PARTS.split()]
  z = numpy.array([complex(a, b) for a in parts for b in parts])
  with Context(DEV=device):
    names = standard.COMPLEX.split()
    check([(n, (z,)) for n in names if n in UNARY])
    check([(n, (z[:, None], z[::3])) for n in names if n in BINARY])
    got = numpy.asarray(mnp.expm1(mnp.asarray([complex(*x) for x, _ in standard.EXPM1])))
    want = numpy.array([complex(*y) for _, y in standard.EXPM1])
    for part in ("real", "imag"):
      numpy.testing.assert_array_equal(numpy.abs(getattr(got, part)), numpy.abs(getattr(want, part)))


def test_comparing_integers_of_two_kinds():
  """NumPy compares int64 with uint64 exactly."""
  a, b = (
    numpy.array([-1, 0, 2**62, 2**63 - 1]),
    numpy.array([2**64 - 1, 0, 2**62, 2**63 - 1, 2**63], numpy.uint64),
  )
  check([(n, args) for n in ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
         for args in ((a[:, None], b), (b[:, None], a))])  # fmt: skip


# ---------------------------------------------------------------- along axes


REDUCTIONS = [
  "sum",
  "prod",
  "max",
  "min",
  "mean",
  "std",
  "var",
  "all",
  "any",
  "argmax",
  "argmin",
  "count_nonzero",
]
RUNNING = ["cumulative_sum", "cumulative_prod", "sort", "argsort", "diff"]


def arrays_to_reduce(dtypes):
  nan, inf = numpy.nan, numpy.inf
  yield numpy.array([[1, nan, 3], [inf, -inf, 0], [-0.0, 0.0, -1]])
  yield numpy.array([[1, nan, 3], [inf, 2, 0], [-0.0, 0.0, -1]], numpy.float32)
  for d in dtypes:
    for shape in ((0,), (0, 3), (3, 0), (2, 3), ()):
      yield numpy.ones(shape, d)


@pytest.mark.full
@ignored
@types
def test_reductions_of_every_type_and_of_nothing(dtypes):
  """On all axes, the first and the last one; empty arrays, NaNs and infinities; arrays without axes."""
  cases, wrong = [], []
  for a in arrays_to_reduce(dtypes):
    complex_ = a.dtype.kind == "c"
    for name in REDUCTIONS + RUNNING:
      if complex_ and name in ("max", "min", "argmax", "argmin", "sort", "argsort"):
        continue
      for how in ({}, {"axis": 0}, {"axis": -1}, {"axis": 0, "keepdims": True}):
        if not ("keepdims" in how and name in RUNNING):
          cases.append((name, a, how))
    cases.append(("unique_values", a, {}))

  def given(np, name, a, how):
    try:
      return getattr(np, name)(np.asarray(a), **how)
    except Exception as e:  # noqa: BLE001  compared
      return e

  found = [given(mnp, *case) for case in cases]
  mnp.evaluate(*(x for x in found if isinstance(x, Lazy)))
  for case, got in zip(cases, found):
    want = given(numpy, *case)
    if isinstance(want, Exception) or isinstance(got, Exception):
      ok = type(want) is type(got) and str(want) == str(got)
    else:
      ours = numpy.asarray(got)
      ok = (ours.dtype, ours.shape) == (numpy.result_type(want), numpy.shape(want))
      ok = ok and numpy.allclose(ours, want, rtol=1e-6, equal_nan=True)
    if not ok:
      wrong.append((case, want, got))
  assert not wrong, "\n".join(map(str, wrong))


def test_sorting_keeps_equal_elements_in_order():
  keys = numpy.array([2, 1, 2, 1, 1, 2, 0])
  x = mnp.asarray(keys)
  assert mnp.argsort(x, stable=True).tolist() == numpy.argsort(keys, stable=True).tolist()
  assert mnp.argsort(x, descending=True).tolist() == [0, 2, 5, 1, 3, 4, 6]
  assert mnp.sort(x, descending=True).tolist() == sorted(keys, reverse=True)


def test_parameters_that_only_the_standard_has():
  assert (
    mnp.fft.fftfreq(4, dtype=mnp.float32).dtype == mnp.fft.rfftfreq(4, dtype=mnp.float32).dtype == "float32"
  )
  assert mnp.fft.fftfreq(4, d=0.5, device="cpu").tolist() == numpy.fft.fftfreq(4, 0.5).tolist()
  assert mnp.diff(mnp.arange(3), prepend=None, append=None).tolist() == [1, 1]
  assert (
    mnp.matmul(mnp.ones((2, 2)), mnp.ones((2, 2))).device == mnp.__array_namespace_info__().default_device()
  )
