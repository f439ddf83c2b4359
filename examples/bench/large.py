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

from mini import Tensor, evaluate, nn


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


def writes(n: int) -> list[Tensor]:
  """None of them is a store at once, as somebody else has the memory."""
  x = Tensor(np.zeros(100_000, np.float32)).realize()
  other = x.detach()
  for k in range(n):
    x[k] = float(k)
  return [x, other]


def trained(n: int) -> list[Tensor]:
  """A deep network forward and backward, with a gradient for the weights of each layer."""
  ws = [Tensor(np.full((8, 8), 0.1, np.float32), requires_grad=True) for _ in range(n)]
  x = Tensor(np.ones((4, 8), np.float32))
  for w in ws:
    x = (x @ w).tanh()
  x.sum().backward()
  return [w.grad for w in ws]


def unrolled(n: int) -> Tensor:
  """A recurrent network forward and backward: each step reads a row of the input, and the same weights."""
  w = Tensor(np.full((8, 8), 0.1, np.float32), requires_grad=True)
  xs, h = Tensor(np.ones((n, 4, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))
  for k in range(n):
    h = (xs[k] + h @ w).tanh()
  h.sum().backward()
  return w.grad


def updates(n: int) -> list[Tensor]:
  """A step of Adam, of many small parameters."""
  ps = [Tensor(np.full(8, 0.1, np.float32), requires_grad=True) for _ in range(n)]
  optimizer = nn.optim.Adam(ps, lr=1e-3)
  for p in ps:
    p.grad = Tensor(np.ones(8, np.float32))
  optimizer.step()
  return ps


def summed(n: int) -> Tensor:
  return sum(tensors(n))


def tree(n: int) -> Tensor:
  found = tensors(n)
  while len(found) > 1:
    found = [a + b for a, b in zip(found[::2], found[1::2])] + found[len(found) & ~1 :]
  return found[0]


def joined(n: int) -> Tensor:
  return Tensor.cat(tensors(n))


def slices(n: int) -> Tensor:
  x = Tensor(np.arange(16 * n, dtype=np.float32)).realize()
  return Tensor.stack([x[16 * k : 16 * k + 16].sin().sum() for k in range(n)])


def looked_up(n: int) -> Tensor:
  """A table read at an index that what was read before decides."""
  x, table = Tensor(np.ones((4, 6), np.float32)).realize(), Tensor(np.arange(5, dtype=np.float32)).realize()
  for k in range(n):
    x = (x > k).where(x.sin() + table[(x * 2).int() % 5], x.sin())
  return x


def normalized(n: int) -> Tensor:
  x = Tensor(np.arange(150, dtype=np.float32).reshape(5, 30)).realize()
  for _ in range(n):
    x = x - x.logsumexp(1, keepdim=True)
  return x


def tensors(n: int) -> list[Tensor]:
  return [Tensor(np.full(16, k, np.float32)) for k in range(n)]


KINDS = {
  "multiplications and additions in a chain": chain,
  "numbers of a stack": stack,
  "layers": layers,
  "layers, forward and backward": trained,
  "steps of a recurrent network with its gradient": unrolled,
  "parameters of Adam": updates,
  "tensors added by sum()": summed,
  "tensors added as a tree": tree,
  "tensors of a cat": joined,
  "slices, each with an operation": slices,
  "elements written one by one": writes,
  "gathers, each where the one before says": looked_up,
  "rows from which their logsumexp is taken": normalized,
}


def spent() -> float:
  return time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def measured(kind: str, n: int) -> dict[str, float]:
  """In this process."""
  begun = spent()
  out = KINDS[kind](n)
  found = out if isinstance(out, list) else [out]
  built = spent()
  evaluate(*found)
  assert all(np.isfinite(x.numpy()).all() for x in found)
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
        print("{case:46}{size:8}{graph_s:9.2f} s{rest_s:9.2f} s".format(**rows[-1]), flush=True)
  if args.json:
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
  main()
