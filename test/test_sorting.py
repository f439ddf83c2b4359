"""Sorting of every type, in more than one block of counts, and what it costs.
(Its methods: test/methods/sorting.py.)"""

import numpy as np
import pytest

import mini
from mini import Tensor, dtypes
from mini.tensor import sorting

QUICK = (dtypes.bool, dtypes.int8, dtypes.uint16, dtypes.bfloat16, dtypes.float32, dtypes.int64)


@pytest.mark.parametrize(
  "dtype",
  [pytest.param(d, id=d.short, marks=[pytest.mark.full] * (d not in QUICK)) for d in dtypes.all],
)
@pytest.mark.sample(2)
def test_every_type(dtype, rng):
  """More elements than a block of the counts has, and values that differ in each part of the key."""
  bits = rng.integers(0, 1 << 63, (2, 150), dtype=np.uint64) * 2 + rng.integers(
    0, 2, (2, 150), dtype=np.uint64
  )
  bits[:, 100:] = bits[:, :50]
  bits[:, 70:80] &= np.uint64(0xFF)
  raw = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
  x = Tensor(bits > 1 << 63) if dtype is dtypes.bool else Tensor(bits.astype(raw)).bitcast(dtype)
  held = x.numpy()
  up, down = (x.sort(descending=d) for d in (False, True))
  Tensor.realize(*up, *down)
  odd = np.isnan(held) if dtype.kind == "f" else np.zeros(held.shape, bool)
  _, rank = np.unique(np.where(odd, held.dtype.type(0), held), return_inverse=True)
  rank = np.where(odd, rank.max() + 1, rank.reshape(held.shape))
  for (values, at), sign in ((up, 1), (down, -1)):
    want = np.argsort(sign * rank, axis=1, kind="stable")
    np.testing.assert_array_equal(at.numpy(), want)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(held, want, 1))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", QUICK, ids=str)
@pytest.mark.sample(12)
def test_the_first_of_an_order_found_one_by_one_are_those_of_all_sorted(dtype, largest, rng, monkeypatch):
  """Also where many are equal, and of NaN, infinities and zeros of either sign; along each axis."""
  monkeypatch.setattr(sorting, "FEW", 4)
  x = rng.integers(0, 9, (3, 40, 2)) * (1 if dtype.kind in "bu" else rng.choice([-1.0, 1.0], (3, 40, 2)))
  if dtype.kind == "f":
    x[0, 3:9, 0] = np.nan, np.inf, -np.inf, -0.0, np.nan, 0.0
  t = Tensor(x).cast(dtype)
  for axis in (1, -3):
    places = t.argsort(axis, descending=largest).numpy()
    for k in (1, 4, 5) if axis == 1 else (0, 3):
      values, found = t.topk(k, axis, largest)
      assert np.array_equal(found.numpy(), places.take(range(k), axis)), k
      want = np.take_along_axis(t.numpy(), places.take(range(k), axis), axis)
      assert np.array_equal(values.numpy(), want, equal_nan=dtype.kind == "f"), k


@pytest.mark.full
@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.float32])
@pytest.mark.sample(2)
def test_the_kth_is_that_of_all_sorted(dtype, rng, monkeypatch):
  """Found one by one, or in the order of all."""
  monkeypatch.setattr(sorting, "FEW", 4)
  t = Tensor(rng.integers(0, 9, (3, 40, 2))).cast(dtype)
  values, places = t.sort(1)
  for k in (1, 4, 5, 40):
    value, place = t.kthvalue(k, 1)
    assert np.array_equal(value.numpy(), values.numpy()[:, k - 1]), k
    assert np.array_equal(place.numpy(), places.numpy()[:, k - 1]), k
  assert t.median(1).values.tolist() == values.numpy()[:, 19].tolist()
  assert Tensor(5.0).kthvalue(1).values.item() == 5


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int64])
@pytest.mark.parametrize("n, counts", [(301, (1, 4, 9, 16, 30)), (2000, (5, 20, 60))])
@pytest.mark.parametrize("different", [5, 10_000])
@pytest.mark.sample(8)
@pytest.mark.full
def test_the_first_of_many_are_in_the_first_groups(dtype, n, counts, different, rng):
  """Of equal elements the first one first, also where they are in several groups."""
  x = rng.integers(0, different, (3, n)).astype(dtype.np)
  if dtype.kind == "f":
    x[0, ::7], x[1, 5:9] = np.nan, -np.inf
  t = Tensor(x)
  for largest in (True, False):
    places = t.argsort(1, descending=largest).numpy()
    for k in counts:
      np.testing.assert_array_equal(t.topk(k, 1, largest).indices.numpy(), places[:, :k])


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint8, dtypes.bool])
@pytest.mark.parametrize("n", [33, 1, 2, 400])
@pytest.mark.sample(20)
@pytest.mark.full
def test_what_stands_at_a_rank_is_found_bit_by_bit(dtype, n, rng):
  x = (rng.standard_normal((2, n, 3)) * 4).round().astype(dtype.np)
  if dtype.kind == "f":
    x[0, ::5], x[1, n // 2] = np.nan, -np.inf
  t = Tensor(x)
  values, places = (r.numpy() for r in t.sort(1))
  for k in {1, (n + 1) // 2, max(1, n - 1), n}:
    value, place = t.kthvalue(k, 1)
    np.testing.assert_array_equal(value.numpy(), values[:, k - 1])
    np.testing.assert_array_equal(place.numpy(), places[:, k - 1])
  if dtype.kind == "f":
    np.testing.assert_array_equal(t.nanmedian(1).values.numpy(), np.nanpercentile(x, 50, 1, method="lower"))


@pytest.mark.parametrize("right", [False, True])
def test_nan_is_the_largest_where_it_is_looked_for(right):
  x = np.array([3.0, 1, np.nan, 2], np.float32)
  at = Tensor(x).searchsorted(Tensor(x), right=right, sorter=Tensor(x).argsort())
  np.testing.assert_array_equal(at.numpy(), np.searchsorted(np.sort(x), x, "right" if right else "left"))
  assert Tensor([1, 3]).searchsorted(2.5).item() == 1


# what has several results: PyTorch's names of them, of the same function of a square matrix
SEVERAL = {
  "values indices": ("sort", "topk(2)", "kthvalue(1)", "mode", "cummax(0)", "cummin(0)"),
  "min max": ("aminmax",),
  "sign logabsdet": ("slogdet",),
  "eigenvalues eigenvectors": ("eigh", "eig"),
  "U S Vh": ("svd",),
  "Q R": ("qr",),
}


@pytest.mark.parametrize("names", SEVERAL)
def test_results_have_names(names):
  """They are PyTorch's, and stay through jit and vmap."""
  torch = pytest.importorskip("torch")
  square = np.array([[3.0, 1, 0], [1, 2, 5], [0, 5, 1]], np.float32)

  def called(name, x, linalg):
    name, _, rest = name.rstrip(")").partition("(")
    return getattr(linalg, name)(x) if hasattr(linalg, name) else getattr(x, name)(*map(int, rest))

  for name in SEVERAL[names]:
    f = lambda x, name=name: called(name, x, mini.linalg)
    x, theirs = Tensor(square), called(name, torch.tensor(square), torch.linalg)
    ours = f(x)
    for n, part in enumerate(names.split()):
      assert getattr(ours, part) is ours[n] and getattr(theirs, part).shape == ours[n].shape
    row = x.unsqueeze(0)
    several = mini.jit(f)(x), mini.vmap(f)(row), mini.jit(mini.vmap(f))(row)
    assert {type(ours)} == {*map(type, several)} and f"({ours._fields[0]}=Tensor" in repr(ours)
    for found in several:
      for got, want in zip(found, ours):
        np.testing.assert_allclose(got.numpy().reshape(want.shape), want.numpy(), atol=1e-5)
