"""Do two iterations of a kernel store to one cell? Where data are in an index, what is known of it tells."""

from __future__ import annotations

from math import gcd

from mini.ir.index import flatten
from mini.ir.kernel import access, carries_value, place_of
from mini.ir.uop import UOp, bounds, linear, rkind, rsize


def is_injective(index: tuple[UOp, ...], s: tuple[int, ...], ranges: tuple[UOp, ...]) -> bool:
  """Does the index, which is within a memory of shape s, name another cell for all values of the ranges?

  Proved for sums in which every range, or each digit of one, has a coefficient larger than all that the smaller ones
  add up to.
  """
  terms, _ = linear(flatten(index, s))
  reach = 0
  digits: dict[UOp, list[tuple[int, int]]] = {}  # of a range: what each counts, and how many values it has
  for atom, c in sorted(terms.items(), key=lambda tc: abs(tc[1])):
    if not any(rsize(r) > 1 for r in atom.free & set(ranges)):
      continue  # the same for all of them
    of = atom.src[0] if atom.op == "mod" else atom
    r = of.src[0] if of.op == "div" else of
    if r.op != "range" or abs(c) <= reach:
      return False
    most = bounds(atom)[1]
    digits.setdefault(r, []).append((of.src[1].arg if of.op == "div" else 1, most + 1))
    reach += abs(c) * most
  return all(rsize(r) == 1 or covers(digits.get(r, []), rsize(r)) for r in ranges)


def covers(digits: list[tuple[int, int]], size: int) -> bool:
  """Do digits tell apart all numbers below a size?"""
  known = 1
  for unit, count in sorted(digits):
    if unit == known:
      known *= count
  return known >= size


def may_race(s: UOp, r: UOp) -> bool:
  """May threads that differ in r store to one cell, where it matters which comes first?

  Only where a store accumulates or, in a group, where data say which cell. Elsewhere what two threads store to one cell
  is the same: a split that overlaps computes it twice.
  """
  if s.arg is None and (rkind(r) == "par" or not any(carries_value(i) for i in access(s)[1])):
    return False
  return not parts(s, r)


def meets(s: UOp, r: UOp) -> bool:
  """May stores at different r write one address? Only where an index depends on data, or stores accumulate."""
  if s.arg is None and not any(carries_value(i) for i in access(s)[1]):
    return False
  return not parts(s, r)


def parts(s: UOp, r: UOp) -> bool:
  """Do stores at two r go to two cells, whatever the other ranges and data are? Asked of each axis, and of all of them
  as one, where a range that a reshape spread over several comes together again."""
  return any(is_digit(i, r) for i in (place_of(s), *access(s)[1]))


def is_digit(index: UOp, r: UOp) -> bool:
  """Is r a digit of an index: do smaller steps add up to less than one r, and all r with them to less than what larger
  ones are multiples of? Of data only that is known; they do not matter where all ranges add up to less."""
  terms = linear(index)[0]
  one, smaller, ranges, larger, data = abs(terms.get(r, 0)), 0, 0, 0, 0
  for atom, c in terms.items():
    lo, hi = bounds(atom)
    if carries_value(atom):
      data = gcd(data, c)
      continue
    ranges += abs(c) * (hi - lo)
    if abs(c) < one:
      smaller += abs(c) * (hi - lo)
    elif atom is not r:
      larger = gcd(larger, c)
  reach = one * (rsize(r) - 1) + smaller
  return (
    smaller < one
    and (not larger or reach < larger)
    and (not data or ranges < data or reach < gcd(larger, data))
  )


def adds_up(s: UOp, r: UOp) -> bool:
  """Do stores at all values of r meet at one address? Lanes of it are added there in their order."""
  return s.arg is not None and not any(r in i.free for i in s.src[2:])
