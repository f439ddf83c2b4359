"""What launching costs, in microseconds: a product of 8x8 matrices in a chain of 1000 inside one jitted function; and a
call that does one small sum: jitted, of tensors without axes, updating a state, and eager (built, computed and
dropped)."""

import numpy as np
from common import arguments, error, in_turns, peer, show

from mini import Tensor, jit, stats

COUNT, SIZE, AGAIN = 1000, 8, 100


def chain(x, w):
  for _ in range(COUNT):
    x = x @ w
  return x


def main() -> None:
  args = arguments(__doc__)
  rng = np.random.default_rng(0)
  a = rng.standard_normal((SIZE, SIZE), np.float32)
  w = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0].astype(np.float32)  # it turns, and nothing grows
  ours, x, y = jit(chain), Tensor(a), Tensor(w)
  calls = {"mini": lambda: ours(x, y), "numpy": lambda: chain(a, w)}
  if torch := peer("torch"):
    u, v = torch.from_numpy(a), torch.from_numpy(w)
    calls["torch"] = lambda: chain(u, v)
  expected = chain(a.astype(np.float64), w.astype(np.float64))
  for call in calls.values():
    assert error(call(), expected) < 1e-3
  before = stats.kernels
  ours(x, y)
  kernels = stats.kernels - before
  times = in_turns(calls, args.seconds)
  found = {"kernels": kernels, **{f"us each, {name}": t.median / COUNT * 1e6 for name, t in times.items()}}
  for row, calls in single(a, w).items():
    for name, t in in_turns({name: again(call) for name, call in calls.items()}, args.seconds).items():
      found[f"us for {row}, {name}"] = t.median / AGAIN * 1e6
  show(found, args)


def again(call):
  """AGAIN calls: one alone is too short for the clock."""

  def several():
    for _ in range(AGAIN):
      call()

  return several


def single(a, w):
  """Calls that do next to nothing: {row: {library: call}}."""
  x, y, z, s = Tensor(a), Tensor(w), Tensor(2.0), Tensor(w)
  add, update = jit(lambda x, y: x + y), jit(lambda x: s.assign(s * 0.5 + x))
  rows = {
    "a jitted call": {"mini": lambda: add(x, y)},
    "a jitted call, 0-d": {"mini": lambda: add(z, 0.5)},
    "a jitted update": {"mini": lambda: update(x)},
    "an eager sum": {"mini": lambda: (x + y).realize(), "numpy": lambda: a + w},
    "an eager sum, 0-d": {"mini": lambda: (z + z).realize()},
    "item()": {"mini": z.item},
    "Tensor(array)": {"mini": lambda: Tensor(a)},
  }
  if torch := peer("torch"):
    u, v, t = torch.from_numpy(a), torch.from_numpy(w), torch.tensor(2.0)
    rows["an eager sum"]["torch"] = lambda: u + v
    rows["an eager sum, 0-d"]["torch"] = lambda: t + t
    rows["item()"]["torch"] = t.item
    rows["Tensor(array)"]["torch"] = lambda: torch.tensor(a)
  return rows


if __name__ == "__main__":
  main()
