"""Do two iterations of a kernel store to one cell? Where data are in an index, what is known of it tells."""

from __future__ import annotations

from math import gcd

from mini.ir.kernel import access, carries_value, memory_shape
from mini.ir.uop import UOp, add, bounds, const, linear, mul, rkind, rsize


def is_injective(index: tuple[UOp, ...], s: tuple[int, ...], ranges: tuple[UOp, ...]) -> bool:
  """Does the index, which is within a memory of shape s, name another cell for all values of the ranges?

  Proved for sums in which every range has a coefficient larger than all that the smaller ones add up to.
  """
  flat = const(0)
  for i, n in zip(index, s):
    flat = add(mul(flat, n), i)
  terms, _ = linear(flat)
  reach = 0
  for atom, c in sorted(terms.items(), key=lambda tc: abs(tc[1])):
    if not any(rsize(r) > 1 for r in atom.free & set(ranges)):
      continue  # the same for all of them
    if atom.op != "range" or abs(c) <= reach:
      return False
    reach += abs(c) * (rsize(atom) - 1)
  return all(r in terms or rsize(r) == 1 for r in ranges)


def known_index(u: UOp) -> list[UOp]:
  """Where a load or store reaches, as far as no data decide it: along each axis, and first along all of them as one,
  where a range that a reshape spread over several comes together again."""
  memory, index, _ = access(u)
  plain = [digit(i, n) for i, n in zip(index, memory_shape(memory))]
  plain = [(i, n) for i, n in plain if n > 0]
  flat = const(0)
  for i, n in plain:
    flat = add(mul(flat, n), i)
  return [flat, *(i for i, _ in plain)]


def digit(index: UOp, size: int) -> tuple[UOp, int]:
  """(what is known of an index wherever data lead it, how many values that has): all of it, or its last digit if data
  decide the others, as of `x*64 + %j`; nothing, of which there are 0."""
  if not carries_value(index):
    return index, size
  rest, base = index, 0
  for t, c in linear(index)[0].items():
    if carries_value(t):
      rest, base = add(rest, mul(t, -c)), gcd(base, c)
  lo, hi = bounds(rest)
  return (add(rest, -lo), base) if hi - lo < base else (rest, 0)


def may_race(s: UOp, r: UOp) -> bool:
  """May threads that differ in r store to one cell, where it matters which comes first?

  Only where a store accumulates or, in a group, where data say which cell. Elsewhere what two threads store to one cell
  is the same: a split that overlaps computes it twice.
  """
  if s.arg is None and (rkind(r) == "par" or not any(carries_value(i) for i in access(s)[1])):
    return False
  return not any(_apart(i, r) or is_injective((i,), (1,), (r,)) for i in known_index(s))


def _apart(index: UOp, r: UOp) -> bool:
  """Are the values of an index at two r different, whatever the other ranges are?"""
  c = linear(index)[0].get(r, 0)
  lo, hi = bounds(add(index, mul(r, -c)))
  return hi - lo < abs(c)


def meets(s: UOp, r: UOp) -> bool:
  """May stores at different r write one address? Only where an index depends on data, or stores accumulate."""
  if s.arg is None and not any(carries_value(i) for i in access(s)[1]):
    return False
  return not any(r in linear(i)[0] for i in known_index(s))


def adds_up(s: UOp, r: UOp) -> bool:
  """Do stores at all values of r meet at one address? Lanes of it are added there in their order."""
  return s.arg is not None and not any(r in i.free for i in s.src[2:])
