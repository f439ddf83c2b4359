"""Recipes that are the same for any size: what a loop over sizes asks for then needs a compiler once, where recipes
that make the most of each size need it again and again.

Of kernels with little to do: a range is short, and stays a loop, or long: then its last vectors overlap, also where
they need not, and of a sum some elements are left to a loop, also where they fill a vector. With a range of one
element, which is none, each size has one of three kinds of code. Of others: the recipe of one size, by which outputs of
others are cut alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil

from mini.codegen.linearize import is_loop
from mini.codegen.recipe import RecipeError, Tuning
from mini.codegen.recipe_builder import Machine, Writer
from mini.codegen.stream import along_memory, collapse_sums
from mini.ir.kernel import all_ranges
from mini.ir.uop import UOp, closed, rkind, rname, rsize, toposort

LANES = 8  # of a vector; what has more elements is long
ROWS = 4  # of sums, which are added up at once: each addition waits for the one before it
SMALL = 16  # a number that stays written out where it was always the same: how often a loop is unrolled, for instance
IDLE = 1.2  # times what a tile of its own takes: more is worth a compiler's run
WIDE = 64  # elements of a tile: more are no vectors
SIMPLE = 50  # nodes: of more a compiler would see too much


def even(w: Writer, machine: Machine) -> None:
  collapse_sums(w)
  along_memory(w, machine, cut_evenly)
  rows = (r for u in toposort(w.kernel) if sums_in_vectors(u) for r in closed(w.kernel) if r in u.free)
  name = next((rname(r) for r in rows if rsize(r) > LANES and rkind(r) == "loop"), "")
  if name and len(toposort(w.kernel)) <= SIMPLE and w.attempt(f"split {name} {ROWS} -> {name}o, {name}u any"):
    w.attempt(f"unroll {name}u")
  loops = [rname(r) for r in closed(w.kernel) if is_loop(r)]
  if loops:
    w.attempt(f"par {loops[0]}")


def sums_in_vectors(u: UOp) -> bool:
  return u.op == "reduce" and any(rkind(r) == "vec" for r in u.free)


def cut_evenly(w: Writer, owner: UOp, r: UOp, machine: Machine) -> None:
  """A long range in vectors."""
  name = rname(r)
  if rsize(r) > LANES and w.attempt(f"split {name} {LANES} -> {name}o, {name}v any"):
    w.attempt(f"vec {name}v")


def alike(recipe: str, kernels: Sequence[UOp]) -> tuple[str, str]:
  """(a recipe of the last of some kernels, which differ in sizes, that cuts the ranges in which they do in the same way
  whatever the size, and unrolls no copies of them; what it says of sums, which are left as they are)"""
  *others, mine = map(Tuning, kernels)
  lines, sums, many = [], [], set()
  for line in recipe.splitlines():
    step, name, *rest = line.split()
    sums.append(of_sums(mine, line))
    if step in ("split", "unroll") and not sums[-1]:
      r = mine.range(name)
      owner = mine.owner(r)
      if name in many or any(rsize(t.range(name)) != rsize(r) for t in others):
        if step == "unroll" and owner.op == "stage":
          continue
        if step == "split" and mine.repeatable(owner):
          n, inner = int(rest[0]), rest[3]
          if rsize(r) % n == 0 and not is_lane(recipe, inner):  # of a few tiles one more is much
            n += min(n & -n, SMALL)
          line = f"split {name} {n} -> {rest[2]} {inner} any"
          many.add(rest[2].rstrip(","))
    mine.step(line)
    others = [t for t in others if applies(t, line)]
    lines.append(line)
  return "\n".join(lines), "\n".join(filter(None, sums))


def is_lane(recipe: str, name: str) -> bool:
  return any(name in line.split() for line in recipe.splitlines() if line.startswith(("vec ", "unroll ")))


def adapted(recipe: str, own: str, k: UOp, threads: int) -> str:
  """A recipe of another size for k, with tiles of k's own recipe where they are loops of many; RecipeError where
  smaller ones would leave threads idle."""
  lines, others = recipe.splitlines(), own.splitlines()
  bare = lambda line: re.sub(r"^(split \S+) \d+", r"\1", line)
  if [*map(bare, lines)] != [*map(bare, others)]:
    return recipe
  sizes = {rname(r): rsize(r) for r in all_ranges(k)}
  for at, (line, other) in enumerate(zip(lines, others)):
    if line != other and not is_lane(recipe, line.split()[5]):
      name, n, mine = line.split()[1], int(line.split()[2]), int(other.split()[2])
      size = sizes.get(name, 0)
      if min(n, mine) > WIDE:
        lines[at] = other
      elif whole(size, n, threads) > IDLE * whole(size, mine, threads) or n > 2 * mine:
        raise RecipeError(f"{line}: {mine} fits better")
  return "\n".join(lines)


def whole(size: int, n: int, threads: int) -> int:
  """A size in tiles of n, as many for each thread."""
  return ceil(ceil(size / n) / threads) * threads * n


def of_sums(t: Tuning, line: str) -> str:
  """What of a step may change in which order something is added up."""
  step, name, *_ = words = line.replace("(", " ").replace(")", " ").replace(",", " ").split()
  if step == "stage" and any(u.op in ("reduce", "scan") for u in toposort(t.value(name))):
    return line
  own = {rname(r) for u in toposort(t.kernel) if u.op == "reduce" or meets_itself(t, u) for r in closed(u)}
  found = [w for w in words if w in own]
  return "" if step == "stage" or not found else f"order {found}" if step == "order" else line


def in_chains(sums: str) -> str:
  """What recipes say of sums without the number of terms of a chain, which each size has its own of."""
  number = lambda m: m[0] if int(m[2]) <= WIDE else m[1]
  return re.sub(r"^(split \S+) (\d+)", number, sums, flags=re.MULTILINE)


def keeps(recipe: str, sums: str) -> bool:
  """Does a recipe cut sums as this says?"""
  return {line for line in sums.splitlines() if line.startswith("split ")} <= {*recipe.splitlines()}


def meets_itself(t: Tuning, u: UOp) -> bool:
  """Does a kernel add to memory?"""
  return u.op == "kernel" and not t.repeatable(u)


def applies(t: Tuning, line: str) -> bool:
  try:
    t.step(line)
  except RecipeError:
    return False
  return True
