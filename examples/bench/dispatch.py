"""What launching costs: a chain of 1000 products of 8x8 matrices inside one jitted function. Microseconds for each."""

import numpy as np
from common import arguments, error, in_turns, peer, show

from mini import Tensor, jit, stats

COUNT, SIZE = 1000, 8


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
  show(
    {"kernels": kernels, **{f"us each, {name}": t.median / COUNT * 1e6 for name, t in times.items()}}, args
  )


if __name__ == "__main__":
  main()
