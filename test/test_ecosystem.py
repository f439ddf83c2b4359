"""What NumPy's ecosystem does with arrays, done with arrays of mini.numpy: NumPy itself writes into its own arrays what is
computed of ours, and other libraries take them - or say why not (docs/numpy.md)."""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import sys

import numpy as np
import pytest

from mini import Context, DTypeError, Tensor, dtypes
from mini import numpy as mnp

ROWS = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True, params=["INTERP", pytest.param("CPU", marks=pytest.mark.full)])
def device(request):
  with Context(DEV=request.param):
    yield


@pytest.fixture
def a(device):
  return mnp.arange(6.0).reshape(2, 3)


# ---------------------------------------------------------------- out= and writes into arrays of NumPy's

# fmt: off
WRITES = {  # of NumPy or us (np), an array of ours (a), memory of NumPy's (r: f64[2, 3])
  "r += a":                lambda np, a, r: r.__iadd__(a),
  "r[0] -= a[0]":          lambda np, a, r: r.__setitem__(0, r[0].__isub__(a[0])),
  "add, out=":             lambda np, a, r: np.add(a, 1, out=r),
  "add, out= by position": lambda np, a, r: np.add(a, 1, r),
  "add, where":            lambda np, a, r: np.add(a, 1, out=r, where=np.asarray(ROWS > 2)),
  "add into a row":        lambda np, a, r: np.add(a[1], 1, out=r[0]),
  "add, broadcast":        lambda np, a, r: np.add(a[1], 1, out=r),
  "divmod":                lambda np, a, r: np.divmod(a, 4, out=(r, np.empty((2, 3)))),
  "sum":                   lambda np, a, r: np.sum(a, axis=0, out=r[0]),
  "maximum.reduce":        lambda np, a, r: np.maximum.reduce(a, axis=0, out=r[0]),
  "cumsum":                lambda np, a, r: np.cumsum(a, axis=1, out=r),
  "add.accumulate":        lambda np, a, r: np.add.accumulate(a, axis=1, out=r),
  "matmul":                lambda np, a, r: np.matmul(a, a.T @ a, out=r),
  "mean":                  lambda np, a, r: np.mean(a, axis=0, out=r[1]),
  "copyto":                lambda np, a, r: np.copyto(r, a),
  "add.at":                lambda np, a, r: np.add.at(r, (np.asarray([0, 0]), np.asarray([1, 1])), a[0, 1]),
  "put":                   lambda np, a, r: np.put(r, [1, 4], a[1]),
  "putmask":               lambda np, a, r: np.putmask(r, a > 2, a),
  "fill_diagonal":         lambda np, a, r: np.fill_diagonal(r, a[1, 2]),
  "a mask":                lambda np, a, r: r.__setitem__(a > 2, 5),
  "indices":               lambda np, a, r: r.__setitem__((slice(None), np.asarray([0, 2])), a[:, :2]),
  "round":                 lambda np, a, r: np.round(a / 4, 1, out=r),
  "clip":                  lambda np, a, r: np.clip(a, 1, 3, out=r),
}
# fmt: on


@pytest.mark.parametrize("room", [np, mnp], ids=["numpy", "mini"])
@pytest.mark.parametrize("row", WRITES)
def test_arrays_of_numpy_are_written(row, room, a):
  want, got = np.full((2, 3), -1.0), np.full((2, 3), -1.0)
  WRITES[row](np, ROWS, want)
  found = WRITES[row](room, a, got)
  assert np.array_equal(got, want) and not np.array_equal(got, np.full((2, 3), -1.0))
  assert found is None or "divmod" in row or found.base is got or found is got


def test_what_does_not_fit_is_numpys_error(a):
  for wrong, error in (
    (np.zeros((2, 3), int), TypeError),
    (np.zeros((3, 3)), ValueError),
    ([0.0], TypeError),
  ):
    with pytest.raises(error):
      mnp.add(a, 0.5, out=wrong)
  fixed = np.zeros((2, 3))
  fixed.flags.writeable = False
  with pytest.raises(ValueError, match="read-only"):
    mnp.add(a, 1, out=fixed)


# ---------------------------------------------------------------- conversions and protocols


def test_conversions_are_arrays_that_may_be_written(a):
  for make in (np.asarray, np.array, np.ascontiguousarray, lambda x: np.asarray(x, dtype="float32")):
    x = make(a)
    x[0, 0] = 100
    assert a[0, 0] == 0 and x.flags.writeable and x[1].tolist() == [3, 4, 5]
  assert (
    np.asarray(a.T).tolist() == ROWS.T.tolist()
    and np.asarray(a[::-1, ::2]).tolist() == ROWS[::-1, ::2].tolist()
  )
  with pytest.raises(ValueError, match="avoid copy"):
    np.asarray(a, dtype="float32", copy=False)
  x = np.asarray(a)
  a[:] = 7  # what was converted stays
  assert x.tolist() == ROWS.tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "complex64"])
def test_bytes(dtype):
  a, want = mnp.arange(6).astype(dtype), np.arange(6).astype(dtype)
  assert bytes(a) == a.tobytes() == want.tobytes() and bytes(a.data) == want.tobytes()
  assert np.frombuffer(a.data, dtype).tolist() == want.tolist()
  assert io.BytesIO().write(a.data) == want.nbytes
  if sys.version_info >= (3, 12):
    assert memoryview(a) == memoryview(want) and bytearray(a) == bytearray(want)


def test_scalars_are_numbers_to_python(a):
  s = a[1, 2]
  assert (math.trunc(s), math.floor(s / 2), math.ceil(s / 2), round(s), math.sqrt(s)) == (
    5,
    2,
    3,
    5,
    math.sqrt(5),
  )
  assert f"{s:.2f} {s} %d %.1f" % (s, s) == "5.00 5.0 5 5.0"
  n = mnp.arange(4)[2]
  assert [1] * n == n * [1] == [1, 1] and "ab" * n == "abab" and [*range(n)] == [0, 1] and "abc"[n] == "c"
  assert (
    sorted(a[1]) == [3, 4, 5] and (sum(a[1]), min(a[1]), max(a[1])) == (12, 3, 5) and 4.0 in a and 9 not in a
  )
  assert bool(mnp.ones(1)) and {s: 1}[5.0] == 1 and [x == 1 for x in mnp.arange(2)] == [False, True]
  for x in (a, s):
    assert (
      pickle.loads(pickle.dumps(x)).tolist()
      == copy.copy(x).tolist()
      == copy.deepcopy(x).tolist()
      == x.tolist()
    )
    with pytest.raises(TypeError, match="not JSON serializable"):
      json.dumps(x)
    json.dumps(x.tolist())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in dir(np) if isinstance(getattr(np, n), np.ufunc)])
def test_ufuncs_of_both_kinds_of_arrays(name):
  """NumPy's ufuncs of ours, ours of NumPy's, and both together: one result, whoever is asked."""
  f, ours = getattr(np, name), getattr(mnp, name, None)
  kind = next(
    (t for t in ("dd", "d", "ll", "l", "??", "?") if any(s.split("->")[0] == t for s in f.types)), ""
  )
  if not kind or f.signature is not None:
    pytest.skip("it is of something else than numbers, or of matrices")
  values = [np.array([1, 2, 3]).astype(kind[0]), np.array([1, 1, 2]).astype(kind[0])][: f.nin]
  want = f(*values)
  mixed = [mnp.asarray(values[0]), *values[1:]]
  for g in (f, ours):
    if g is not None:
      for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (g(*mixed), want))):
        assert np.allclose(np.asarray(x), y, rtol=1e-6, equal_nan=True), (g, x, y)


# ---------------------------------------------------------------- libraries


def matplotlib_(a, v):
  plt = pytest.importorskip("matplotlib.pyplot")
  axes = plt.figure().subplots()
  for draw in (
    lambda: axes.bar(v, v + 1), lambda: axes.barh(v, v), lambda: axes.plot(v, v), lambda: axes.scatter(v, v, c=v),
    lambda: axes.hist(v), lambda: axes.imshow(a), lambda: axes.errorbar(v, v, yerr=v), lambda: axes.set_xlim(v[0], v[2]),
    lambda: axes.fill_between(v, v, v + 1), lambda: axes.boxplot(v), lambda: axes.contour(a), lambda: axes.stem(v, v),
  ):  # fmt: skip
    draw()
  axes.figure.canvas.draw()
  assert axes.patches[1].get_height() == 2
  plt.close(axes.figure)


def pandas_(a, v):
  pd = pytest.importorskip("pandas")
  df = pd.DataFrame({"x": v, "y": v + 1})
  assert df.dtypes.tolist() == [np.dtype(float)] * 2 and pd.DataFrame(a).shape == (2, 3)
  assert (pd.Series([1.0, 2.0, 3.0]) + v).tolist() == (v + pd.Series([1.0, 2.0, 3.0])).tolist() == [1, 3, 5]
  assert df[np.asarray(v > 0)].x.tolist() == [1, 2]  # as docs/numpy.md says: pandas looks for numpy.ndarray
  assert pd.DataFrame({"x": [float(v[0]), v[1].item()]}).x.dtype == float


def pillow_(a, v):
  image = pytest.importorskip("PIL.Image")
  pixels = (a * 10).astype(mnp.uint8)
  assert np.asarray(image.fromarray(pixels)).tolist() == (ROWS * 10).tolist()
  assert np.asarray(image.fromarray(pixels.T)).tolist() == (ROWS.T * 10).tolist()
  assert mnp.asarray(image.new("RGB", (3, 2))).shape == (2, 3, 3)


def sklearn_(a, v):
  pytest.importorskip("sklearn")
  from sklearn import cluster, decomposition, ensemble, linear_model, preprocessing

  x = mnp.asarray(np.random.default_rng(0).normal(size=(40, 3)))
  y = (x[:, 0] > 0).astype(int)
  for model in (
    cluster.KMeans(2, n_init=1), cluster.KMeans(2, n_init=1, copy_x=False), linear_model.LogisticRegression(),
    linear_model.LinearRegression(copy_X=False), ensemble.RandomForestClassifier(3), decomposition.PCA(2),
    preprocessing.StandardScaler(copy=False),
  ):  # fmt: skip
    before = x.tolist()
    model.fit(x, y)
    assert x.tolist() == before


def scipy_(a, v):
  pytest.importorskip("scipy")
  from scipy import integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats

  assert special.gamma(v + 1).tolist() == [1, 1, 2] and special.expit(mnp.zeros(2)).tolist() == [0.5, 0.5]
  assert signal.convolve(v, v).tolist() == [0, 0, 1, 4, 4] and (sparse.csr_matrix(a) @ v).tolist() == [5, 14]
  assert np.allclose(optimize.minimize(lambda p: ((mnp.asarray(p) - 1) ** 2).sum(), mnp.zeros(2)).x, 1)
  assert linalg.inv(mnp.eye(2), overwrite_a=True).tolist() == [[1, 0], [0, 1]]
  assert interpolate.interp1d(v, v)(1.5) == 1.5 and ndimage.gaussian_filter(a, 1).shape == (2, 3)
  assert (
    abs(integrate.quad(lambda t: mnp.sin(t), 0, 1)[0] - 0.4597) < 1e-3
    and 0 < stats.ttest_1samp(v, 0).pvalue < 1
  )


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("use", [matplotlib_, pandas_, pillow_, sklearn_, scipy_])
def test_libraries(use, a, monkeypatch):
  monkeypatch.setenv("MPLBACKEND", "Agg")
  use(a, mnp.arange(3.0))


def test_bfloat16_of_ml_dtypes_is_taken(device):
  """As JAX gives it: to the bit, in any layout, and by its name as a type."""
  ml_dtypes = pytest.importorskip("ml_dtypes")
  kind = ml_dtypes.bfloat16
  x = np.array([[1.5, 2.0, np.inf], [np.nan, 3e38, -0.0]], kind)
  for a in (x, x.T, x[:, ::2], x[:0], x[0, 0], x.astype(x.dtype.newbyteorder(">"))):
    t = Tensor(a)
    assert t.dtype is dtypes.bfloat16 and t.shape == a.shape
    assert (t.numpy().astype(kind).view(np.uint16) == np.asarray(a, kind).view(np.uint16)).all()
  assert Tensor(x, dtype="float32").dtype is dtypes.float32
  assert Tensor([1.0], dtype=kind).dtype is Tensor([1.0]).cast(np.dtype(kind)).dtype is dtypes.bfloat16
  assert Tensor([kind(1.5), kind(2)]).tolist() == Tensor([x[0, 0], 2.0]).tolist() == [1.5, 2.0]
  with pytest.raises(DTypeError, match="float8_e4m3fn has no counterpart"):
    Tensor(np.zeros(2, ml_dtypes.float8_e4m3fn))
