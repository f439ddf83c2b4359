"""What starting costs: the import, the first sum, and a kernel that was never seen before.
Fresh processes; milliseconds."""

import statistics
import subprocess
import sys
import tempfile
import time

from common import arguments, environment, peer, show

FIRST = (
  "import numpy as np; from mini import Tensor; a = np.ones(8, np.float32); "
  "assert (Tensor(a) + Tensor(a)).sum().item() == 16"
)
TORCH = "import torch; a = torch.ones(8); assert (a + a).sum().item() == 16"
# a product of another shape opens the device first, so that what is timed is one new kernel
NEW = """
import time, numpy as np
from mini import Tensor
def once(n, k, m):
  a, b = np.ones((n, k), np.float32), np.ones((k, m), np.float32)
  start = time.perf_counter()
  assert ((Tensor(a) @ Tensor(b)).relu().numpy() == k).all()
  return (time.perf_counter() - start) * 1e3
once(8, 8, 8)
print(once(64, 32, 128))
"""


def timed(code: str, **env: str) -> tuple[float, str]:
  """(milliseconds of a fresh Python with this program, what it printed)."""
  start = time.perf_counter()
  done = subprocess.run(
    [sys.executable, "-c", code], env=environment(**env), check=True, capture_output=True, text=True
  )
  return (time.perf_counter() - start) * 1e3, done.stdout


def main() -> None:
  args = arguments(__doc__)
  times: dict[str, list[float]] = {}

  def note(name: str, ms: float) -> None:
    times.setdefault(name, []).append(ms)

  with tempfile.TemporaryDirectory() as warm:
    timed(FIRST, MINI_CACHE=warm)  # now Python has compiled the sources, too
    for n in range(args.rounds):
      note("python", timed("pass")[0])
      note("import numpy", timed("import numpy")[0])
      note("import mini", timed("import mini", MINI_CACHE=warm)[0])
      note("first sum, warm cache", timed(FIRST, MINI_CACHE=warm)[0])
      with tempfile.TemporaryDirectory() as cold:
        note("first sum, cold cache", timed(FIRST, MINI_CACHE=cold)[0])
      with tempfile.TemporaryDirectory() as cold:
        note("new matmul+relu 64x32x128", float(timed(NEW, MINI_CACHE=cold)[1]))
        note("the same, compiled code on disk", float(timed(NEW, MINI_CACHE=cold)[1]))
      if n < 2 and peer("torch"):
        note("torch: first sum", timed(TORCH)[0])
  result = {f"ms: {name}": round(statistics.median(t), 1) for name, t in times.items()}
  # of pairs: a machine that is slow for a while is so for both
  over = (a - b for a, b in zip(times["import mini"], times["import numpy"]))
  result["ms: import mini over numpy"] = round(statistics.median(over), 1)
  show(result, args)


if __name__ == "__main__":
  main()
