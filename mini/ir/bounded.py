"""Bounded loops, which have limits: which values of an index are taken,
for each value of the output loops, and of the data, that decide it.

Limits may hold quotients and minima, which no interval algebra compares; there are few output loops in them, so what
has to be known is computed for all of their values at once. Data (a size that is an argument) is looked at from where
no range has begun to where each has ended.
"""

from __future__ import annotations

from math import prod

import numpy as np

from mini.ir.kernel import access, carries_value, stage_index, stores, wanted
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
  rsize,
  substitute,
  toposort,
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
  it stays."""

  def at(v: int) -> list[tuple[int, int]]:
    return [bounds(substitute(e, {x: const(sign * v)})) for e in mine]

  mine, sizes = zip(*((e, n) for e, n in limits if x in index_nodes(e)))
  v, last = 1, at(CELLS)
  while v < CELLS and not all(b[1] <= 0 or b[0] >= n or b == z for b, z, n in zip(at(v), last, sizes)):
    v *= 2
  return v


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


def too_little(kernel: UOp) -> tuple[UOp, str] | None:
  """(a load, why) of the first load from a stage that may read what a loop with limits did not write; or None."""
  order = toposort(kernel)
  partial = {u: [a for a, i in enumerate(stage_index(u)) if any(r.src for r in index_nodes(i))] for u in order
             if u.op == "stage" and any(r.src for r in closed(u))}  # fmt: skip
  for u in order:
    if u.op != "load" or u.src[0] not in partial:
      continue
    memory, index, _ = access(u)
    own = stage_index(memory)
    for a in partial[memory]:
      if not in_steps(own[a]):
        return u, "limits are for an outermost loop over an axis of its memory"
      outer = deciding([index[a], own[a]])
      if outer is None:
        return u, "too many values of the loops that decide its limits"
      lo, hi = taken(index[a], outer)
      first, last = taken(own[a], outer)
      reads = runs((index[a],), outer)
      if not np.all((first <= lo) & (hi <= last) & runs((own[a],), outer) | ~reads):
        return u, "it may read what its stage did not write"
  return None


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
  return not any(np.all(taken(e, outer)[0] >= 0) for e in at_end)


def unclamped(e: UOp, r: UOp) -> UOp:
  """The same, with c * r for min(c * r, n) where that is a last tile, which only overlaps the one before."""
  terms, _ = linear(e)
  for t, times in terms.items():
    inner, zero = linear(t.src[0]) if t.op == "min" else ({}, 0)
    if times == 1 and not zero and inner.keys() == {r}:
      rest = {x: c for x, c in terms.items() if x is not t and not carries_value(x)}
      return add(add(e, mul(t, -1)), t.src[0]) if fills(rest, inner[r]) else e
  return e


def in_steps(e: UOp) -> bool:
  """Is this c * R + rest or min(c * R, n) + rest, where R has limits and rest takes all values from 0 to c - 1?"""
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
  return atom.op == "range" and fills({t: x for t, x in terms.items() if (t, x) != limited[0]}, c)


def fills(terms: Terms, count: int) -> bool:
  """Do these ranges together take all values from 0 to count - 1?"""
  reach = 1
  for t, c in sorted(terms.items(), key=lambda tc: tc[1]):
    if t.op != "range" or c != reach:
      return False
    reach *= rsize(t)
  return reach == count
