"""Bounded loops, which have limits: which values of an index are taken,
for each value of the output loops, and of the data, that decide it.

Limits may hold quotients and minima, which no interval algebra compares; there are few output loops in them, so what
has to be known is computed for all of their values at once. Data (a size that is an argument) is looked at from where
no range has begun to where each has ended.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from mini.ir.guards import guarded_bounds
from mini.ir.index import flatten
from mini.ir.kernel import access, carries_value, stage_index, stores, wanted
from mini.ir.machine import wraps
from mini.ir.uop import (
  Terms,
  UOp,
  add,
  bounds,
  closed,
  const,
  index_nodes,
  linear,
  loop_limits,
  mul,
  range_,
  ranges_of,
  rname,
  rsize,
  substitute,
  toposort,
  weighted_sum,
)

CELLS = 1 << 22  # values of what decides limits: more are not looked at
INDEX = {"add": np.add, "mul": np.multiply, "div": np.floor_divide, "mod": np.mod, "min": np.minimum}
Interval = tuple[np.ndarray, np.ndarray]
Outer = dict[UOp, range]  # what decides: output loops, and data that is the same everywhere; and its values


def deciding(es: list[UOp]) -> Outer | None:
  """What is in the limits of the ranges in these expressions; None where it has too many values to look at all."""
  limited = [r for e in es for r in index_nodes(e) if r.op == "range" and r.src]
  return values([(e, rsize(r)) for r in limited for e in r.src])


def values(limits: list[tuple[UOp, int]]) -> Outer | None:
  """The same of these expressions, each a limit of a range of so many values."""
  outer: Outer = {}
  for e, _ in limits:
    for x in index_nodes(e):
      if x.op == "range":
        outer[x] = range(rsize(x))
      elif x.op == "cast" and x not in outer:
        outer[x] = range(-settled(x, limits, -1), settled(x, limits, 1) + 1)
  return outer if prod(map(len, outer.values())) <= CELLS else None


def settled(x: UOp, limits: list[tuple[UOp, int]], sign: int) -> int:
  """How far from 0 the data x changes nothing more: then each of its limits is beyond all values of its range, or where
  it stays. Known of limits that rise or fall with x alone among the data; of others it is too far to look."""

  def at(v: int) -> list[tuple[int, int]]:
    return [bounds(substitute(e, {x: const(sign * v)})) for e in mine]

  mine, sizes = zip(*((e, n) for e, n in limits if x in index_nodes(e)))
  if any(
    len(directions(e, x)) > 1 or any(u.op == "cast" and u is not x for u in index_nodes(e)) for e in mine
  ):
    return CELLS
  v, last = 1, at(CELLS)
  while v < CELLS and not all(b[1] <= 0 or b[0] >= n or b == z for b, z, n in zip(at(v), last, sizes)):
    v *= 2
  return v


def directions(e: UOp, x: UOp) -> set[int]:
  """In which directions an index expression goes when x rises: 1, -1, both, or none."""
  if e is x:
    return {1}
  if e.op in ("div", "min", "mod"):
    inner = directions(e.src[0], x)
    return {1, -1} if inner and e.op == "mod" else inner
  terms = linear(e)[0].items() if e.op in ("add", "mul") else ()
  return {way if c > 0 else -way for t, c in terms for way in directions(t, x)}


def is_exact(e: UOp, outer: Outer) -> bool:
  """Is what `taken` computes of it, in 64 bits, what it is?"""
  return not wraps(e, {x: (at[0], at[-1]) for x, at in outer.items()})


def taken(e: UOp, outer: Outer) -> Interval:
  """[lo, hi] of an index expression, for each value of what is outer: one axis each."""
  if e in outer:
    at = np.array(outer[e]).reshape([-1 if x is e else 1 for x in outer])
    return at, at
  if e.op == "const":
    return np.asarray(e.arg), np.asarray(e.arg)
  if e.op == "cast":  # data: anything that its type holds
    return np.asarray(bounds(e)[0]), np.asarray(bounds(e)[1])
  if e.op == "range":
    first, end = (taken(x, outer) for x in loop_limits(e)) if e.src else ((0, 0), (rsize(e), rsize(e)))
    return np.asarray(first[0]), np.asarray(end[1]) - 1
  ends = [taken(s, outer) for s in e.src]
  (lo, hi), (least, most) = ends
  if e.op == "mod" and not np.array_equal(lo, hi):
    return np.zeros_like(lo), np.full_like(hi, e.src[1].arg - 1)
  low, high = INDEX[e.op](lo, least), INDEX[e.op](hi, most)
  return np.minimum(low, high), np.maximum(low, high)


def runs(es: tuple[UOp, ...], outer: Outer) -> np.ndarray:
  """Where in `outer` do the loops in these expressions run at all?"""
  on = np.ones([1] * len(outer), bool)
  for r in dict.fromkeys(r for e in es for r in index_nodes(e) if r.op == "range" and r.src):
    first, end = (taken(x, outer) for x in loop_limits(r))
    on = on & (first[0] < end[1])
  return on


UNWRITTEN = "it may read what its stage did not write"
Cells = tuple[UOp, int]  # of an axis: so many, from the value of an expression on


def too_little(kernel: UOp) -> tuple[UOp, str] | None:
  """(a load, why) of the first load from a stage that may read what was not written; or None."""
  order = toposort(kernel)
  filled = {u: written(u) for u in order if u.op == "stage"}
  for u in order:
    if u.op == "load" and u.src[0] in filled:
      why = unwritten(u, filled[u.src[0]])
      if why:
        return u, why
  return None


def unwritten(load: UOp, filled: list[Cells | None]) -> str:
  """Why a load from a stage may read what was not written, or nothing."""
  memory, index, gate = access(load)
  own = stage_index(memory)
  limited = [{r for r in index_nodes(i) if r.op == "range" and r.src} for i in own]
  if any(r.src and sum(r in rs for rs in limited) != 1 for r in closed(memory)):
    return "limits are for a loop over one axis of its memory"
  for i, e, rs, cells in zip(index, own, limited, filled):
    if not rs.isdisjoint(closed(memory)):
      plain = {r for r in closed(memory) if not r.src and sum(r in x.free for x in own) == 1}
      why = beyond_limits(i, e, plain)
      if why:
        return why
    elif cells is None or not within_cells(i, gate, *cells):
      return UNWRITTEN
  return ""


def within_cells(index: UOp, gate: UOp, first: UOp, count: int) -> bool:
  place = add(index, mul(first, -1))
  return any(lo >= 0 and hi < count for lo, hi in (bounds(place), guarded_bounds(place, gate)))


def beyond_limits(index: UOp, own: UOp, plain: set[UOp]) -> str:
  """The same along one axis that a loop with limits fills, with ranges of the stage's own that fill nothing else."""
  if not in_steps(own, plain):
    return "limits are for an outermost loop over an axis of its memory"
  outer = deciding([index, own])
  if outer is None:
    return "too many values of the loops that decide its limits"
  if not (is_exact(index, outer) and is_exact(own, outer)):
    return UNWRITTEN
  lo, hi = taken(index, outer)
  first, last = taken(own, outer)
  fine = (first <= lo) & (hi <= last) & runs((own,), outer) | ~runs((index,), outer)
  return "" if np.all(fine) else UNWRITTEN


def written(stage: UOp) -> list[Cells | None]:
  """The cells of each axis that a stage writes, in all combinations; None where nothing is known of them."""
  s, table = stage.arg.shape, digits(stage_index(stage), closed(stage))
  own = [substitute(i, table) for i in stage_index(stage)]
  mine = frozenset(d for r in closed(stage) for d in ranges_of(table.get(r, r)))
  first, count = covered(flatten(tuple(own), s), mine) or (None, 0)
  if first is const(0) and count == prod(s):
    return [(const(0), n) for n in s]
  found = [covered(i, mine) for i in own]
  shared = [r for r in mine if sum(r in i.free for i in own) > 1]
  return [cells if i.free.isdisjoint(shared) else None for i, cells in zip(own, found)]


def digits(index: tuple[UOp, ...], ranges: tuple[UOp, ...]) -> dict[UOp, UOp]:
  """{range: the sum of its digits, ranges of their own}, for those of which quotients and remainders are taken."""
  cuts: dict[UOp, set[int]] = {r: set() for r in ranges if not r.src}
  for u in dict.fromkeys(u for i in index for u in index_nodes(i) if u.op in ("div", "mod")):
    inner, n = u.src[0], u.src[1].arg
    r, below = (inner.src[0], inner.src[1].arg) if inner.op == "div" else (inner, 1)
    if r in cuts:
      cuts[r] |= {below, below * n}
  found = {}
  for r, places in cuts.items():
    chain = sorted(n for n in places | {1, rsize(r)} if n <= rsize(r))
    if places and all(b % a == 0 for a, b in pairwise(chain)):
      found[r] = weighted_sum((range_(f"<{rname(r)}.{a}>", b // a), a) for a, b in pairwise(chain))
  return found


def covered(e: UOp, mine: frozenset[UOp]) -> Cells | None:
  """What an index takes one after another, without a gap, while these ranges take all of their values."""
  terms, k = linear(e)
  first = const(k)
  steps: list[tuple[int, int]] = []  # from one value to the next, and to the last
  for t, c in terms.items():
    if t.free.isdisjoint(mine):
      first = add(first, mul(t, c))
      continue
    most, apart = reaches(t, mine)
    if not apart or any(t.free & other.free & mine for other in terms if other is not t):
      return None
    first = add(first, min(c * most, 0))
    steps.append((abs(c) * apart, abs(c) * most))
  count = 1
  for step, most in sorted(steps):
    if step > count:
      return None
    count += most
  return first, count


def reaches(t: UOp, mine: frozenset[UOp]) -> tuple[int, int]:
  """(the largest value, the largest step) of a term that begins with 0: a range, or the least of such a sum and a
  number; (0, 0) of any other."""
  if t.op == "range":
    return (rsize(t) - 1, 1) if t in mine and not t.src else (0, 0)
  inner, k = linear(t.src[0]) if t.op == "min" else ({}, 1)
  if k or len(inner) != 1:
    return 0, 0
  ((r, c),) = inner.items()
  if c <= 0 or r.op != "range" or r not in mine or r.src:
    return 0, 0
  return min(c * (rsize(r) - 1), t.src[1].arg), c


def accumulated(kernel: UOp, r: UOp) -> bool:
  """Is what is added to memory all that is stored for each value of r, and does all of that depend on r?"""
  mine = [s for s in stores(kernel) if r in s.free]
  return bool(mine) and all((r in s.free) == bool(s.arg) for s in stores(kernel))


def leaves_wanted(kernel: UOp, r: UOp) -> bool:
  """May a loop of the kernel itself, which has limits, leave out what somebody reads?"""
  if accumulated(kernel, r):
    return False
  first, end = r.src
  outer = values([(end, rsize(r))])
  if outer is None or first is not const(0):
    return True
  conditions = [unclamped(c.src[0], r) for c in wanted(kernel)]
  at_end = [substitute(e, {r: end}) for e in conditions if linear(e)[0].get(r, 0) > 0]
  return not any(is_exact(e, outer) and np.all(taken(e, outer)[0] >= 0) for e in at_end)


def unclamped(e: UOp, r: UOp) -> UOp:
  """The same, with c * r for min(c * r, n) where that is a last tile, which only overlaps the one before."""
  terms, _ = linear(e)
  for t, times in terms.items():
    inner, zero = linear(t.src[0]) if t.op == "min" else ({}, 0)
    if times == 1 and not zero and inner.keys() == {r}:
      rest = {x: c for x, c in terms.items() if x is not t and not carries_value(x)}
      return add(add(e, mul(t, -1)), t.src[0]) if fills(rest, inner[r]) else e
  return e


def in_steps(e: UOp, plain: set[UOp]) -> bool:
  """Is this c * R + rest or min(c * R, n) + rest, where R has limits and rest takes all values from 0 to c - 1, by
  ranges among these?"""
  terms, k = linear(e)
  limited = [(t, c) for t, c in terms.items() if any(r.src for r in index_nodes(t) if r.op == "range")]
  if len(limited) != 1 or k:
    return False
  atom, c = limited[0]
  if atom.op == "min" and c == 1:
    inner, zero = linear(atom.src[0])
    if len(inner) != 1 or zero:
      return False
    atom, c = next(iter(inner.items()))
  rest = {t: x for t, x in terms.items() if (t, x) != limited[0]}
  return atom.op == "range" and rest.keys() <= plain and fills(rest, c)


def fills(terms: Terms, count: int) -> bool:
  """Do these ranges together take all values from 0 to count - 1?"""
  reach = 1
  for t, c in sorted(terms.items(), key=lambda tc: tc[1]):
    if t.op != "range" or t.src or c != reach:
      return False
    reach *= rsize(t)
  return reach == count
