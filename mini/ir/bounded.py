"""Bounded loops, which have limits: which values of an index are taken,
for each value of the output loops that decide it.

Limits may hold quotients and minima, which no interval algebra compares; there are few output loops in them, so what
has to be known is computed for all of their values at once.
"""

from __future__ import annotations

from math import prod

import numpy as np

from mini.ir.kernel import access, stage_index
from mini.ir.uop import UOp, bounds, closed, index_nodes, linear, loop_limits, rsize, toposort

CELLS = 1 << 22  # of the output loops that decide limits: more are not looked at
INDEX = {"add": np.add, "mul": np.multiply, "div": np.floor_divide, "mod": np.mod, "min": np.minimum}
Interval = tuple[np.ndarray, np.ndarray]


def deciding(es: list[UOp]) -> list[UOp]:
  """The output loops in the limits of the ranges in these expressions."""
  limited = [r for e in es for r in index_nodes(e) if r.op == "range" and r.src]
  return list(dict.fromkeys(x for r in limited for e in r.src for x in index_nodes(e) if x.op == "range"))


def taken(e: UOp, outer: list[UOp]) -> Interval:
  """[lo, hi] of an index expression, for each value of the `outer` loops: one axis each."""
  if e in outer:
    n = outer.index(e)
    at = np.arange(rsize(e)).reshape([-1 if n == m else 1 for m in range(len(outer))])
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


def runs(es: tuple[UOp, ...], outer: list[UOp]) -> np.ndarray:
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
      if prod(map(rsize, outer)) > CELLS:
        return u, "too many values of the loops that decide its limits"
      lo, hi = taken(index[a], outer)
      first, last = taken(own[a], outer)
      reads = runs((index[a],), outer)
      if not np.all((first <= lo) & (hi <= last) & runs((own[a],), outer) | ~reads):
        return u, "it may read what its stage did not write"
  return None


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
  rest = [(t, x) for t, x in terms.items() if (t, x) != limited[0]]
  reach = 1
  for t, x in sorted(rest, key=lambda tx: tx[1]):
    if t.op != "range" or x != reach:
      return False
    reach *= rsize(t)
  return atom.op == "range" and c == reach
