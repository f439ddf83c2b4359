"""Random tensor graphs: the graph, its kernels, and its kernels with the heuristic's recipes must agree.

python test/fuzz_graph.py FIRST COUNT      prints the seed, the kernels and the recipes of what disagrees
"""

from __future__ import annotations

import random
import sys
from math import prod

import numpy as np
from fuzz_recipe import random_recipe

from mini.codegen.autoschedule import Machine, write_recipe
from mini.ir import graph as g
from mini.ir.interp import evaluate, run_kernel
from mini.ir.uop import UOp, const
from mini.schedule import schedule
from mini.schedule.concat_rewrites import in_pieces
from mini.schedule.memory import in_place
from mini.schedule.order import early
from mini.schedule.split import split_reductions
from mini.text.printer import kernel_text
from mini.text.verifier import verify
from mini.types import dtypes

F = dtypes.float64  # sums in another order stay equal to 1e-9
I = dtypes.int32


def factorings(rng: random.Random, n: int) -> tuple[int, ...]:
  out: list[int] = []
  while n > 1:
    p = next(p for p in range(2, n + 1) if n % p == 0)
    if out and rng.random() < 0.5:
      out[-1] *= p
    else:
      out.append(p)
    n //= p
  rng.shuffle(out)
  return tuple(out) or (1,)


def matmul(a: UOp, b: UOp) -> UOp:
  n, k, m = *g.shape(a), g.shape(b)[1]
  s = (n, m, k)
  x = g.expand(g.reshape(a, (n, 1, k)), s)
  y = g.expand(g.reshape(g.permute(b, (1, 0)), (1, m, k)), s)
  return g.reshape(g.reduce(g.alu("mul", x, y), "add", (2,)), (n, m))


class Maker:
  """A pool of random nodes, and the data of its leaves."""

  def __init__(self, seed: int, big: bool = False):
    self.rng, self.np = random.Random(seed), np.random.default_rng(seed)
    self.data: dict[str, np.ndarray] = {}
    sizes = [1, 2, 3, 5, 8, 17, 33] if big else [1, 2, 3, 4, 6]
    s = tuple(self.rng.choice(sizes) for _ in range(3))
    self.limit = 40_000 if big else 3000
    self.pool = [self.leaf(s), self.leaf(s)]

  def leaf(self, s: tuple[int, ...]) -> UOp:
    name = f"x{len(self.data)}"
    self.data[name] = self.np.standard_normal(s)
    return g.buffer(name, s, F)

  def indices(self, s: tuple[int, ...], n: int) -> UOp:
    name = f"x{len(self.data)}"
    self.data[name] = self.np.integers(0, n, s).astype(np.int32)
    return g.buffer(name, s, I)

  def step(self) -> None:
    rng = self.rng
    t = rng.choice(self.pool[-3:])
    s, kind = g.shape(t), rng.randrange(17)
    a = rng.randrange(len(s))
    if kind == 0:
      t = g.reshape(t, factorings(rng, prod(s)))
    elif kind == 1:
      t = g.permute(t, tuple(rng.sample(range(len(s)), len(s))))
    elif kind == 2:
      t = g.pad(t, tuple((rng.randrange(2), rng.randrange(3)) for _ in s))
    elif kind == 3:
      t = g.shrink(t, tuple((0, n) if n < 3 else (rng.randrange(2), n - rng.randrange(2)) for n in s))
    elif kind == 4:
      t = g.flip(t, (a,))
    elif kind in (5, 6):
      t = g.reduce(t, rng.choice(["add", "max"]), (a,))
    elif kind == 7:
      t = g.alu("exp2", g.alu("max", g.alu("mul", t, const(0.3, F)), const(0.0, F)))
    elif kind == 8 and 1 in s:
      t = g.expand(t, tuple(4 if n == 1 else n for n in s))
    elif kind == 9:
      total = g.reduce(t, "add", (a,))
      t = g.alu("add", t, g.expand(g.alu("mul", total, const(0.5, F)), s))
    elif kind == 10 and prod(s) > 1:
      n = max(s)
      x = g.reshape(t, (prod(s) // n, n))
      t = matmul(x, g.permute(x, (1, 0)))
    elif kind == 11:
      n = rng.randrange(1, 5)
      t = g.gather(t, self.indices(tuple(n if k == a else m for k, m in enumerate(s)), s[a]), a)
    elif kind == 12:
      n = rng.randrange(1, 5)
      si = tuple(n if k == a else m for k, m in enumerate(s))
      t = g.scatter(t, self.indices(si, s[a]), self.leaf(si), rng.choice(["add", "set", "max"]), a)
    elif kind == 13:
      t = g.scan(t, rng.choice(["add", "max"]), a)
    elif kind == 14:
      t = g.cat((t, g.alu("mul", t, const(2.0, F))), a)
    elif kind == 15:
      t = g.alu("where", g.alu("lt", t, const(0.1, F)), g.alu("mul", t, const(-0.5, F)), t)
    else:
      same = [u for u in self.pool if g.shape(u) == s]
      t = g.alu("add", t, g.alu("mul", rng.choice(same), const(0.5, F)))
    if 0 < prod(g.shape(t)) < self.limit:
      self.pool.append(t)


def program(seed: int, big: bool = False) -> tuple[dict[str, UOp], dict[str, np.ndarray], random.Random]:
  m = Maker(seed, big)
  for _ in range(8):
    m.step()
  outs = {"out0": m.pool[-1]}
  if m.rng.random() < 0.4:
    outs["out1"] = m.rng.choice(m.pool[2:] or m.pool)
  return {n: u for n, u in outs.items() if u.op != "buffer"}, m.data, m.rng


def scheduled(outs: dict[str, UOp]) -> tuple[list[UOp], dict[str, str]]:
  """The kernels of a graph, as a program gets them if all memory is large."""
  kernels, aliases = schedule(dict(zip(outs, split_reductions(in_pieces(list(outs.values()))))))
  return in_place(early(kernels, {}), lambda memory: True)[0], aliases


def disagreement(seed: int) -> str | None:
  """What went wrong for this seed, or None."""
  outs, data, rng = program(seed)
  want = evaluate(list(outs.values()), lambda u: data[u.arg[0]])
  kernels, aliases = scheduled(outs)
  for recipes in ("none", "heuristic", "random"):
    notes, got = [f"seed {seed}, recipes: {recipes}"], dict(data)
    try:
      for k in kernels:
        notes.append(kernel_text(k))
        tuned, lines = (
          (k, [])
          if recipes == "none"
          else write_recipe(k, Machine())
          if recipes == "heuristic"
          else random_recipe(rng, k, groups=seed % 2 == 0)
        )
        notes += [str(lines), kernel_text(tuned)]
        verify(tuned)
        run_kernel(tuned, got)
    except Exception as e:  # noqa: BLE001 - whatever it is, the seed and the kernels are the report
      return "\n".join([*notes, repr(e)])
    for name, w in zip(outs, want):
      have = got[aliases.get(name, name)].reshape(w.shape)
      if not np.allclose(have, w, rtol=1e-9, atol=1e-9, equal_nan=True):
        return "\n".join([*notes, f"{name} differs by {np.abs(have - w).max()}"])
  return None


if __name__ == "__main__":
  first, count = int(sys.argv[1]), int(sys.argv[2])
  for seed in range(first, first + count):
    if report := disagreement(seed):
      sys.exit(report)
  print(f"seeds {first} to {first + count - 1}: all agree")
