"""What launching costs: a chain of 1000 tiny kernels inside one jitted function. Microseconds for each kernel."""

import numpy as np
from common import arguments, error, in_turns, peer, show

from mini import Tensor, jit, stats

COUNT, SIZE = 1000, 64


def main() -> None:
  args = arguments(__doc__)
  a = np.linspace(-1, 1, SIZE, dtype=np.float32)

  @jit
  def ours(x):
    for _ in range(COUNT):
      x = (x * 1.001).contiguous()  # memory of its own: not to be fused with the next
    return x

  def numpy():
    x = a
    for _ in range(COUNT):
      x = x * np.float32(1.001)
    return x

  x = Tensor(a)
  calls = {"mini": lambda: ours(x), "numpy": numpy}
  if torch := peer("torch"):

    def theirs():
      x = torch.from_numpy(a)
      for _ in range(COUNT):
        x = x * 1.001
      return x

    calls["torch"] = theirs
  for call in calls.values():
    assert error(call(), a.astype(np.float64) * 1.001**COUNT) < 1e-4
  before = stats.kernels
  ours(x)
  kernels = stats.kernels - before
  times = in_turns(calls, args.seconds)
  show(
    {"kernels": kernels, **{f"us each, {name}": t.median / COUNT * 1e6 for name, t in times.items()}}, args
  )


if __name__ == "__main__":
  main()
