"""Writes to a few elements outside of jitted functions: one program for all places, and in place where nobody else
holds the memory."""

import threading

import numpy as np
import pytest

from mini import Tensor, jit, stats
from mini.engine import sole

N = 1 << 17


@pytest.fixture(autouse=True)
def all_is_large(monkeypatch):
  monkeypatch.setattr(sole, "LARGE", 0)


def address(x):
  return x.realize()._leaf().arg[0].memory.address


def counted(f):
  """(runs of a compiler, how often as much as N floats take was allocated)"""
  before = stats["compiles"] + stats["disk_hits"], stats["bytes_allocated"]
  f()
  return stats["compiles"] + stats["disk_hits"] - before[0], (stats["bytes_allocated"] - before[1]) // (4 * N)


MATRIX = (64, N // 64)
WRITES = {
  "x[i] = v": (lambda x, i: x.__setitem__(i, float(i)), (N,)),
  "x[i] += v": (lambda x, i: x.__setitem__(i, x[i] + 1), (N,)),
  "x[i] = f(x[i - 1])": (lambda x, i: x.__setitem__(i, x[i - 1] * 0.5 + i), (N,)),
  "x[i:i + 3] = v": (lambda x, i: x.__setitem__(slice(i, i + 3), x[:3] + i), (N,)),
  "x[i::5000] = v": (lambda x, i: x.__setitem__(slice(i, None, 5000), i), (N,)),
  "x[i] = row": (lambda x, i: x.__setitem__(i, x[i - 1] + 1), MATRIX),
  "x[:, i] = column": (lambda x, i: x.__setitem__((slice(None), i), i), MATRIX),
  "x[i, j] = v": (lambda x, i: x.__setitem__((i, 2 * i), i), MATRIX),
  "x[i].fill_(v)": (lambda x, i: x[i].fill_(i) if isinstance(x, Tensor) else x[i].fill(i), MATRIX),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_loop_of_writes_compiles_once_and_copies_nothing(what):
  write, shape = WRITES[what]
  want = np.zeros(shape, np.float32)
  x = Tensor(want).realize()
  places = set()

  def loop(steps):
    for i in steps:
      write(x, i)
      write(want, i)
      places.add(address(x))

  loop((5, 6, 7))
  compiles, copies = counted(lambda: loop(range(8, 30)))
  assert np.array_equal(x.numpy(), want)
  assert compiles <= 1 and copies == 0 and len(places) == 1


def test_many_writes_in_a_row():
  """Their chain is deeper than Python's stack."""
  x = Tensor(np.zeros(1200, np.float32)).realize()
  for i in range(1100):
    x[i] = float(i)
  assert np.array_equal(x.numpy(), [*range(1100), *[0] * 100])


HOLDERS = {
  "a value to come": lambda x: (x * 2, lambda held, old: held.numpy() == 2 * old),
  "a copy to come": lambda x: (x.clone(), lambda held, old: held.numpy() == old),
  "NumPy": lambda x: (np.from_dlpack(x), lambda held, old: held == old),
  "NumPy, of a view": lambda x: (np.from_dlpack(x.reshape(4, -1)), lambda held, old: held.ravel() == old),
  "its node": lambda x: (x.uop, lambda held, old: Tensor._new(held).numpy() == old),
  "its memory": lambda x: (x.uop.arg[0], lambda held, old: held.numpy() == old),
  "a node on the way": lambda x: ((x[3] + 1).uop, lambda held, old: Tensor._new(held).numpy() == old[3] + 1),
}


@pytest.mark.parametrize("who", HOLDERS)
def test_what_somebody_holds_is_copied(who):
  old = np.arange(1000, dtype=np.float32)
  x = Tensor(old).realize()
  held, holds = HOLDERS[who](x)
  before = address(x)
  x[3] = x[3] + 1 if who == "its memory" else 4.0
  if who == "NumPy":
    x[7] = -1.0
  x.realize()
  x[7] = -1.0
  want = old.copy()
  want[3], want[7] = 4, -1
  assert np.array_equal(x.numpy(), want) and address(x) != before
  assert holds(held, old).all()


def test_views_see_what_is_written():
  x = Tensor(np.arange(1000, dtype=np.float32)).realize()
  first, rest = x[:5], x[5:]
  x[3], x[7] = x[3] + 1, -1.0
  assert first.tolist() == [0, 1, 2, 4, 4] and rest[2].item() == -1


def test_a_jitted_function_goes_on_with_the_memory():
  x = Tensor(np.zeros(1000, np.float32)).realize()

  @jit
  def step(a):
    x[2] = x[2] + a
    return x.sum()

  for k in range(4):
    assert step(Tensor(1.0)).item() == (k + 1) + 5 * k
    x[500 + k] = 5.0
    x.realize()


def test_two_threads_write_their_own(rng):
  found = {}

  def work(k):
    x = Tensor(np.zeros(500, np.float32)).realize()
    for i in range(100):
      x[i + k] = float(i)
      x.realize()
    found[k] = x.numpy()

  threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  for k, got in found.items():
    want = np.zeros(500)
    want[k : k + 100] = range(100)
    assert np.array_equal(got, want)


def test_random_writes_among_holders(rng):
  """Views see what is written, values that were taken do not."""
  for _ in range(8):
    shape = [(70,), (9, 10), (3, 4, 6)][rng.integers(3)]
    theirs = [rng.integers(0, 9, shape).astype(np.float32)]
    ours = [Tensor(theirs[0]).realize()]
    taken = []
    for _ in range(25):
      k = int(rng.integers(len(ours)))
      x, y = ours[k], theirs[k]
      i = int(rng.integers(y.shape[0]))
      part = (slice(i, i + 2),) if rng.integers(2) else (i,)
      match int(rng.integers(9)):
        case 0 | 1:
          x[part], y[part] = float(i), i
        case 2:
          x[part] += 1
          y[part] += 1
        case 3:
          v = x[:1] * 2 + i
          x[part if len(part) == 1 and isinstance(part[0], slice) else slice(i, i + 1)] = v
          y[part if isinstance(part[0], slice) else slice(i, i + 1)] = y[:1] * 2 + i
        case 4:
          taken.append((x + 0, y.copy()))
        case 5:
          taken.append((np.from_dlpack(x.contiguous()), y.copy()))
        case 6 if len(ours) < 4:
          ours.append(x.reshape(-1) if y.base is None else x[1:])
          theirs.append(y.reshape(-1) if y.base is None else y[1:])
        case 7:
          x.realize()
        case 8 if taken:
          taken.pop(int(rng.integers(len(taken))))
    for x, y in [*zip(ours, theirs), *taken]:
      np.testing.assert_array_equal(np.asarray(x), y)
