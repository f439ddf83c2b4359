"""Graphs that are large: seconds of the processor until the first result, with nothing kept, of graphs of 1, 4 and 16
times a size, each in a process of its own. What is near linear takes 4 times as long for each.

  python examples/bench/large.py --size 250
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from common import environment

from mini import Tensor


def chain(n: int) -> Tensor:
  x = Tensor(np.ones(100, np.float32))
  for _ in range(n):
    x = x * 0.999 + 0.5
  return x


def stack(n: int) -> Tensor:
  x = Tensor(np.arange(100, dtype=np.float32)).realize()
  return Tensor.stack([x[k % 100] for k in range(n)])


def layers(n: int) -> Tensor:
  w, b = Tensor(np.full((8, 8), 0.1, np.float32)), Tensor(np.ones(8, np.float32))
  x = Tensor(np.ones((4, 8), np.float32))
  for _ in range(n):
    x = (x @ w + b).relu()
  return x


def writes(n: int) -> Tensor:
  x = Tensor(np.zeros(100_000, np.float32)).realize()
  for k in range(n):
    x[k] = float(k)
  return x


KINDS = {
  "multiplications and additions in a chain": chain,
  "numbers of a stack": stack,
  "layers": layers,
  "elements written one by one": writes,
}


def spent() -> float:
  return time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def measured(kind: str, n: int) -> dict[str, float]:
  """In this process."""
  begun = spent()
  out = KINDS[kind](n)
  built = spent()
  assert np.isfinite(out.numpy()).all()
  return {"graph_s": built - begun, "rest_s": spent() - built}


def main() -> None:
  p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("--size", type=int, default=1000)
  p.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
  p.add_argument("--only", help=argparse.SUPPRESS)
  args = p.parse_args()
  if args.only:
    print(json.dumps(measured(args.only, args.size)))
    return
  rows = []
  for kind in KINDS:
    for n in (args.size, 4 * args.size, 16 * args.size):
      command = [sys.executable, __file__, "--only", kind, "--size", str(n)]
      done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(CACHE="0"))
      if done.returncode:
        sys.exit(f"{kind}, {n}: {done.stderr}")
      rows.append({"case": kind, "size": n, **json.loads(done.stdout)})
      if not args.json:
        print("{case:42}{size:8}{graph_s:9.2f} s{rest_s:9.2f} s".format(**rows[-1]), flush=True)
  if args.json:
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
  main()
