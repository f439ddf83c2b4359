"""Other recipes for a kernel: moves on the text of one, and what a recipe costs by a model that is cheap to ask.

A move gives lines of which those that no longer apply are left out; what comes out is a recipe like any other. The
model counts what a kernel with its recipe does: vector operations, loads for each of them, rounds of loops, registers,
bytes that pass between caches. It is right about what is hopeless, not about what is best: that is measured
(engine/search.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from mini.codegen.linearize import is_loop, lanes, places
from mini.codegen.recipe import RecipeError
from mini.codegen.recipe_builder import Machine, Writer, coefficient, flat_index
from mini.ir.kernel import access, is_inline, memory_shape
from mini.ir.ops import OPS
from mini.ir.uop import UOp, closed, rkind, rname, rsize, toposort
from mini.text.verifier import VerifyError, verify

VERSION = 1  # of the moves and of how they are timed: results that an older one found are not read
SPLIT = re.compile(r"split (\S+) (\d+) -> (\S+), (\S+) ?(\w*)")
MOST_LANES = 512  # of one value, unless it begins with more: beyond that a compiler may take minutes

Lines = list[str]


class Candidate(NamedTuple):
  recipe: str
  kernel: UOp  # with the recipe applied
  cost: float  # by the model, in cycles


def widest(kernel: UOp) -> int:
  """The most lanes that a value has."""
  return max(prod(rsize(r) for r in lanes(u)) for u in toposort(kernel))


def candidate(kernel: UOp, lines: Lines, machine: Machine, most: int | None = None) -> Candidate | None:
  """What these steps make of a kernel, those that apply; None where the verifier refuses it, or a value has more than
  `most` lanes."""
  w = Writer(kernel)
  for line in lines:
    split = SPLIT.fullmatch(line)
    if split and not split[5]:
      _ = w.attempt(line) or w.attempt(f"{line} overlap") or w.attempt(f"{line} peel")
    else:
      w.attempt(line)
  try:
    verify(w.kernel)
  except VerifyError:
    return None
  if most is not None and widest(w.kernel) > most:
    return None
  return Candidate("\n".join(w.lines), w.kernel, estimate(w.kernel, machine))


def neighbours(kernel: UOp, recipe: str, machine: Machine) -> list[Candidate]:
  """What one move makes of a recipe, each kernel once;
  the cheapest first, and of equals the one that was found first."""
  lines = recipe.splitlines()
  w = Writer(kernel)
  try:
    for line in lines:
      w.step(line)
  except RecipeError:
    return []
  found: dict[UOp, Candidate] = {}
  most = max(MOST_LANES, widest(w.kernel))
  for move in MOVES:
    for changed in move(w, lines, machine):
      got = candidate(kernel, changed, machine, most)
      if got is not None and got.kernel is not w.kernel:
        found.setdefault(got.kernel, got)
  return sorted(found.values(), key=lambda c: c.cost)


# ---------------------------------------------------------------- moves: (the kernel, its recipe) -> other lines


def before_par(lines: Lines, *added: str) -> Lines:
  """With steps added; what runs in parallel, and where loops end, is said last: a split takes it back."""
  at = next((n for n, line in enumerate(lines) if line.startswith(("par ", "bound "))), len(lines))
  return [*lines[:at], *added, *lines[at:]]


def resize(w: Writer, lines: Lines, machine: Machine) -> Iterator[Lines]:
  """A tile, a vector, a block of another size."""
  for n, line in enumerate(lines):
    if split := SPLIT.fullmatch(line):
      r, size, outer, inner, mode = split[1], int(split[2]), *split.groups()[2:]
      kinds = {k for k in ("vec", "unroll") for x in lines if x.split()[0] == k and inner in x.split()[1:]}
      if "vec" in kinds:
        sizes = [machine.lanes * m for m in (1, 2, 3, 4, 6, 8)]
      elif "unroll" in kinds:
        sizes = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]
      else:
        sizes = [size // 4, size // 2, size * 3 // 4, size * 3 // 2, size * 2, size * 4]
      for other in sizes:
        if other in (0, size):
          continue
        changed = [*lines[:n], f"split {r} {other} -> {outer}, {inner} {mode}".rstrip(), *lines[n + 1 :]]
        yield changed
        for m, line in enumerate(lines):  # a block of tiles keeps its size
          if (tiles := SPLIT.fullmatch(line)) and tiles[1] == outer:
            count = max(1, int(tiles[2]) * size // other)
            yield [
              *changed[:m],
              f"split {outer} {count} -> {tiles[3]}, {tiles[4]} {tiles[5]}",
              *changed[m + 1 :],
            ]


def leave_out(w: Writer, lines: Lines, machine: Machine) -> Iterator[Lines]:
  """One step less: nothing packed, no order, no vector."""
  for n in range(len(lines)):
    yield lines[:n] + lines[n + 1 :]


def reorder(w: Writer, lines: Lines, machine: Machine) -> Iterator[Lines]:
  """Two loops that follow each other, of any owner, the other way round."""
  for owner in toposort(w.kernel):
    names = [rname(r) for r in closed(owner) if is_loop(r)]
    for n in range(len(names) - 1):
      changed = [*names[:n], names[n + 1], names[n], *names[n + 2 :]]
      yield before_par(lines, "order " + " ".join(changed))


def unroll(w: Writer, lines: Lines, machine: Machine) -> Iterator[Lines]:
  """A few rounds of a loop at once: lanes of all that depends on it, accumulators of their own in a sum."""
  for owner in toposort(w.kernel):
    for r in filter(is_loop, closed(owner)):
      name, mode = rname(r), "peel" if owner.op == "reduce" else "overlap"
      if rsize(r) <= 8:
        yield before_par(lines, f"unroll {name}")
      for n in (2, 4, 8):
        if rsize(r) > n:
          rest = mode if rsize(r) % n else ""
          yield before_par(lines, f"split {name} {n} -> {name}, {name}u {rest}".rstrip(), f"unroll {name}u")


def vectorize(w: Writer, lines: Lines, machine: Machine) -> Iterator[Lines]:
  """Vectors along another range, and lanes that are no vector."""
  for owner in toposort(w.kernel):
    for r in filter(is_loop, closed(owner)):
      name, mode = rname(r), "peel" if owner.op == "reduce" else "overlap"
      for n in (machine.lanes, 2 * machine.lanes, 4 * machine.lanes):
        if rsize(r) >= n:
          rest = mode if rsize(r) % n else ""
          yield before_par(lines, f"split {name} {n} -> {name}, {name}v {rest}".rstrip(), f"vec {name}v")
  for n, line in enumerate(lines):
    if line.startswith("vec "):
      yield [*lines[:n], f"unroll{line[3:]}", *lines[n + 1 :]]


def block(w: Writer, lines: Lines, machine: Machine) -> Iterator[Lines]:
  """A loop in blocks, which run outside of all others of its owner: what one block touches stays in the cache."""
  for owner in toposort(w.kernel):
    loops = [rname(r) for r in closed(owner) if is_loop(r)]
    for r in filter(is_loop, closed(owner)):
      name, mode = rname(r), "peel" if owner.op == "reduce" else "overlap"
      for n in (8, 32, 128) if len(loops) > 1 else ():
        if rsize(r) >= 2 * n:
          rest = mode if rsize(r) % n else ""
          cut = f"split {name} {n} -> {name}b, {name} {rest}".rstrip()
          yield before_par(lines, cut, f"order {name}b " + " ".join(loops))


def spread(w: Writer, lines: Lines, machine: Machine) -> Iterator[Lines]:
  """Another loop in parallel, moved outside."""
  loops = [rname(r) for r in closed(w.kernel) if is_loop(r)]
  kept = [line for line in lines if not line.startswith("par ")]
  for name in loops:
    if f"par {name}" not in lines:
      yield [*kept, " ".join(["order", name, *(x for x in loops if x != name)]), f"par {name}"]


def pack(w: Writer, lines: Lines, machine: Machine) -> Iterator[Lines]:
  """What is read from memory is copied to the stack first: over its lanes, and the loops within which it is read."""
  place = places(w.kernel)
  for name, u in w.named.items():
    if u.op != "load" or u.src[0].op != "param" or u not in place:
      continue
    loops = [r for r in place[u] if r in u.free]
    for n in range(1, len(loops) + 1):
      over = [*loops[-n:], *lanes(u)]
      if prod(map(rsize, over)) * u.dtype.itemsize <= machine.panel_bytes:
        yield before_par(lines, f"stage {name[1:]} over ({', '.join(map(rname, over))}) stack")


MOVES = (resize, leave_out, reorder, unroll, vectorize, block, spread, pack)


# ---------------------------------------------------------------- what it costs

LATENCY = 4  # cycles until a sum can take its next term
L2_BYTES, MEMORY_BYTES = 32, 6  # that a core gets in a cycle


def estimate(kernel: UOp, machine: Machine) -> float:
  """Cycles, roughly, on all threads together: of each innermost place its operations, or the latency of its sums where
  that is more, spilled registers, and the rounds of its loops; beside that what passes between the caches."""
  place = places(kernel)
  work: dict[tuple[UOp, ...], float] = {}
  chains: set[tuple[UOp, ...]] = set()
  live: dict[tuple[UOp, ...], int] = {}  # vector registers that are in use all through a place
  for u, p in place.items():
    if is_inline(u) or u.op in ("kernel", "range"):
      continue
    inside = p + tuple(r for r in closed(u) if is_loop(r)) if u.op in ("reduce", "stage") else p
    cycles, registers = node_cost(u, machine)
    work[inside] = work.get(inside, 0) + cycles
    if u.op in ("reduce", "scan") and inside:
      chains.add(inside)
      live[inside] = live.get(inside, 0) + registers
    elif not any(rkind(r) == "unroll" for r in lanes(u)) and u.op == "load":
      live[inside] = live.get(inside, 0) + registers
    if u.op == "reduce":
      work[p] = work.get(p, 0) + registers + 3 * any(rkind(r) == "vec" for r in closed(u))
  total = 0.0
  for p, cycles in work.items():
    spilled = max(0, live.get(p, 0) + 2 - machine.registers)
    once = max(cycles + spilled, LATENCY if p in chains else 0)
    total += (once + bool(p)) * rounds(p)
  total += traffic(place, machine)
  extent = next((rsize(r) for r in closed(kernel) if rkind(r) == "par"), 1)
  return total * -(-extent // machine.threads) / extent


def rounds(p: tuple[UOp, ...]) -> int:
  return prod(map(rsize, p))


def vectors(ls: tuple[UOp, ...], machine: Machine) -> int:
  """Registers that a value with these lanes takes."""
  return prod(-(-rsize(r) // machine.lanes) if rkind(r) == "vec" else rsize(r) for r in ls)


def node_cost(u: UOp, machine: Machine) -> tuple[float, int]:
  """(cycles of one round, registers of its result or of its accumulators)."""
  ls = lanes(u.src[0]) if u.op in ("reduce", "scan", "stage") else lanes(u)
  if u.op == "store":
    ls = tuple(dict.fromkeys(r for s in u.src for r in lanes(s)))
  n = vectors(ls, machine)
  if u.op in ("load", "store", "stage"):
    v = next((r for r in ls if rkind(r) == "vec"), None)
    gate = access(u)[2] if u.op != "stage" else None
    step = coefficient(flat_index(u), v) if v is not None else 0
    smooth = step == 0 if u.op == "load" else False
    apart = v is not None and ((step != 1 and not smooth) or (gate is not None and v in gate.free))
    each = prod(map(rsize, ls)) if apart else n
    return each * (1.0 if u.op != "load" or apart else 0.5), n
  if u.op == "mul" and len(u.src) == 2 and u.dtype.kind == "f":
    return 0.25 * n, n  # most become part of a sum
  return (OPS[u.op].cycles if u.op in OPS else 0.5) * n, n


def traffic(place: dict[UOp, tuple[UOp, ...]], machine: Machine) -> float:
  """Cycles in which bytes come from the second cache, and from memory."""
  touched = [u for u in place if u.op in ("load", "store") and access(u)[0].op == "param"]
  total = 0.0
  for nbytes, rate in ((machine.l1_bytes, L2_BYTES), (machine.l2_bytes, MEMORY_BYTES)):
    fits: dict[tuple[UOp, ...], bool] = {}
    for u in touched:
      p = place[u]
      depth = len(p)
      while depth:  # the loops outside of which all that is touched no longer fits
        outer = p[: depth - 1]
        if outer not in fits:
          fits[outer] = (
            sum(footprint(x, len(outer), place[x]) for x in touched if place[x][: len(outer)] == outer)
            <= nbytes
          )
        if not fits[outer]:
          break
        depth -= 1
      total += footprint(u, depth, p) * rounds(p[:depth]) / rate
  return total


def footprint(u: UOp, depth: int, p: tuple[UOp, ...]) -> int:
  """Bytes of memory that u touches while the first `depth` of its loops stand still; a line is 64, of which the last of
  those may take one element after the other."""
  memory = access(u)[0]
  index = u.src[2:] if u.op == "load" else u.src[3:]
  inside = {r for i in index for r in i.free if r in p[depth:] or not is_loop(r)}
  count = prod(map(rsize, inside))
  size = memory.dtype.itemsize
  flat = flat_index(u)
  near = any(
    coefficient(flat, r) == 1 and rsize(r) * size >= 64 for r in (*inside, *p[max(depth - 1, 0) : depth])
  )
  return min(count * (size if near else 64), prod(memory_shape(memory)) * size)


__all__ = ["VERSION", "Candidate", "candidate", "estimate", "neighbours"]
