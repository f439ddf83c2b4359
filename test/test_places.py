"""Parts of memory that are read each time elsewhere: one program for all of them, and values that are those of NumPy."""

from fractions import Fraction

import numpy as np
import pytest

from mini import Device, MiniError, Tensor, dtypes, grad, jit, no_grad, stats, vmap
from mini.engine import places

RNG = np.random.default_rng(0)
on_the_cpu = pytest.mark.skipif(
  Device.DEFAULT != "CPU", reason="what the host does not see is copied by a program"
)


def schedules(run):
  before = stats["schedules"]
  run()
  return stats["schedules"] - before


INDICES = {
  (100,): [
    lambda i: i,
    lambda i: -1 - i,
    lambda i: slice(i, i + 7),
    lambda i: slice(i, i + 9, 2),
    lambda i: [i, 3],
  ],
  (40, 3): [
    lambda i: i,
    lambda i: (i, -1),
    lambda i: (slice(i, i + 3), slice(1, 3)),
    lambda i: (-i - 1, None),
  ],
  (20, 4, 5): [
    lambda i: i,
    lambda i: (i, 2),
    lambda i: (i, slice(1, 3)),
    lambda i: (slice(i, i + 2), 1, slice(0, 2)),
  ],
  (1, 64): [lambda i: (0, i), lambda i: (slice(None), slice(i, i + 5))],
  (64, 1): [lambda i: i, lambda i: slice(i, i + 5)],
}


ALL = [(s, f, dtypes.float32) for s, fs in INDICES.items() for f in fs]
OTHERS = [(s, fs[-1], d) for s, fs in INDICES.items() for d in (dtypes.bfloat16, dtypes.int64, dtypes.bool)]


@pytest.mark.parametrize("shape, index, dtype", ALL + OTHERS[:9])
def test_parts_are_those_of_numpy(shape, index, dtype):
  array = RNG.integers(0, 2 if dtype is dtypes.bool else 100, shape)
  x = Tensor(array, dtype=dtype).realize()
  for i in (0, 5, 11, 3, 17):
    want = array[index(i)]
    assert np.array_equal(x[index(i)].numpy(), want)
    got = x[index(i)] * 2 if dtype is not dtypes.bool else ~x[index(i)]
    assert np.array_equal(got.numpy(), want * 2 if dtype is not dtypes.bool else want == 0)
    if want.size == 1:
      assert x[index(i)].item() == want.item()


def test_one_program_serves_all_places():
  x, y = (Tensor(RNG.standard_normal(s, np.float32)).realize() for s in ((1000,), (50, 20)))
  z = Tensor(RNG.standard_normal((50, 20), np.float32)).realize().T

  def run(places):
    for i in places:
      np.testing.assert_allclose(
        (x[i : i + 5] * 2 + x[3 * i]).numpy(), x.numpy()[i : i + 5] * 2 + x.numpy()[3 * i]
      )
      np.testing.assert_allclose(
        (y[i].exp().sum() + y[i + 1, 3]).item(), np.exp(y.numpy()[i]).sum() + y.numpy()[i + 1, 3], 1e-5
      )
      np.testing.assert_allclose((z[:, i] + y[i, 4:6][1]).numpy(), z.numpy()[:, i] + y.numpy()[i, 5])

  run([20, 21])
  assert schedules(lambda: run(range(17, 22))) <= 4
  assert schedules(lambda: run(range(40))) == 0


@on_the_cpu
def test_few_elements_are_read_where_they_lie():
  x = Tensor(np.arange(1000.0, dtype=np.float32).reshape(100, 10)).realize()
  before = dict(stats)
  assert [x[i, 3].item() for i in range(100)] == [10.0 * i + 3 for i in range(100)]
  assert float(x[-1][-1]) == 999 and x[3:5, 1:3].tolist() == [[31, 32], [41, 42]]
  assert x[5].T.tolist() == [*range(50, 60)] and int(x.view(-1)[7]) == 7 and bool(x[0, 0]) is False
  assert x.detach()[4].sum().item() == sum(range(40, 50))
  assert stats["schedules"] <= before["schedules"] + 2


def test_what_was_read_stays_as_it_was():
  x = Tensor.zeros(1000).realize()
  read, part = x[3], x[2:6]
  assert read.item() == 0
  copied = part.clone()
  assert copied.tolist() == [0] * 4
  x[3] = 5.0
  assert read.item() == 5 and part.tolist() == [0, 5, 0, 0] and copied.tolist() == [0] * 4
  part[0] = 7.0
  assert x[2].item() == 7 and x[2:4].tolist() == [7, 5]
  kept = x[3].detach().clone().realize()
  x.zero_()
  assert kept.item() == 5 and read.item() == 0 and x[3].item() == 0


@pytest.mark.parametrize("n", [100, 100_000])
def test_each_from_the_one_before(n):
  x, y = Tensor.zeros(n).realize(), np.zeros(n, np.float32)

  def lazy(first):
    for i in range(first, first + 20):
      x[i] = x[i - 1] * 0.5 + 1
      x.realize()

  def numbers(first):
    for i in range(first, first + 20):
      x[i] = float(x[i - 1]) * 0.5 + 1

  for run, first in ((lazy, 1), (numbers, 21)):
    run(first)
    run(first)
    assert schedules(lambda: run(first + 20)) <= 1  # noqa: B023
  for i in range(1, 61):
    y[i] = y[i - 1] * np.float32(0.5) + 1
  np.testing.assert_allclose(x.numpy()[:61], y[:61], 1e-6)


def rounded(exact, dtype):
  """An exact number in a type, rounded once."""
  near = dtype(float(exact))
  around = [np.nextafter(near, dtype(-np.inf)), near, np.nextafter(near, dtype(np.inf))]
  distances = [abs(Fraction(float(x)) - exact) for x in around]
  least = [x for x, d in zip(around, distances) if d == min(distances)]
  return next(x for x in least if len(least) == 1 or not x.view(f"u{x.itemsize}") & 1)


@on_the_cpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_is_added_where_it_rounds_alike_once_or_twice(dtype):
  scales = [
    1.0,
    1e-3,
    1e3,
    1.0 + 2.0**-20,
    *[float(np.finfo(dtype).tiny)] * 2,
    float(np.finfo(dtype).max) / 3,
  ]
  found = 0
  for n in range(400):
    with np.errstate(all="ignore"):
      a, b, c = (dtype(RNG.standard_normal() * RNG.choice(scales)) for _ in range(3))
      b = dtype(RNG.choice([b, 0.5, -2, 0.25, 3]))
      c = dtype(RNG.choice([c, -a * b, 1, 0.1, a]))
    sign = RNG.choice([1, -1])
    x = Tensor(np.array([0, a, b, c], dtype)).realize()
    got = places.few(((x[1] * x[2]) * sign + x[3] if n % 2 else x[3] + x[1] * x[2] * sign)._uop)
    if got is not None:
      found += 1
      with np.errstate(all="ignore"):
        twice = dtype(sign) * (a * b) + c
      assert got[0] == twice
      if np.isfinite(twice):
        assert twice == rounded(
          Fraction(float(a)) * Fraction(float(b)) * int(sign) + Fraction(float(c)), dtype
        )
  assert found > 130


def test_gradients_traces_and_samples():
  w = Tensor(RNG.standard_normal(100), requires_grad=True)
  for i in range(6):
    w.grad = None
    (w[i] * w[i + 1] * 3).backward()
    want = np.zeros(100, np.float32)
    want[i], want[i + 1] = 3 * w.numpy()[i + 1], 3 * w.numpy()[i]
    np.testing.assert_allclose(w.grad.numpy(), want, 1e-6)
    assert w[i].requires_grad and w[i].item() == w.numpy()[i]
    slope = grad(lambda v, i=i: (v[i : i + 2] ** 2).sum())(w)
    np.testing.assert_allclose(slope.numpy()[i : i + 2], 2 * w.numpy()[i : i + 2], 1e-6)
  with no_grad():
    w[3] = 2.0
  assert w[3].item() == 2 and w.requires_grad

  f = jit(lambda x: x[4] * 2)
  for k in range(4):
    assert f(Tensor.full((50,), float(k)).realize()).item() == 2 * k
  with pytest.raises(MiniError):
    jit(lambda x: x[0].item())(Tensor.ones(50).realize())
  with pytest.raises(MiniError):
    vmap(lambda x: x[0].item())(Tensor.ones(50, 50).realize())
  x = Tensor(np.arange(500.0).reshape(50, 10)).realize()
  for i in range(5):
    assert vmap(lambda r, i=i: r[i] + 1)(x).tolist() == [10 * k + i + 1 for k in range(50)]


def test_parts_in_places_that_are_equal_or_not():
  """x[i] + y[j] is another graph where both are one node, or the numbers are equal."""
  x = Tensor(np.arange(100.0)).realize()
  y = Tensor(np.arange(100.0, 200.0)).realize()
  for i, j in [(0, 1), (1, 2), (2, 3), (3, 3), (4, 4), (5, 5), (6, 6), (7, 1), (8, 8)]:
    assert (x[i] + x[j] * 3 + y[i]).item() == i + 3 * j + 100 + i


def test_large_parts_and_most_of_a_memory_have_programs_of_their_own():
  x = Tensor(np.arange(16.0)).realize()
  for i in range(4):
    assert (x[i : i + 8] * 2).tolist() == [2.0 * k for k in range(i, i + 8)]
  assert places.part_of(x[0:8].uop) is None and places.part_of(x[1:3].uop) == (x.uop, 1)
