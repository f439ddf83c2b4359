"""Where temporaries live: in the place of one that is read for the last time, or in an arena, by liveness."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from mini.ir.kernel import params_of, stores
from mini.ir.uop import UOp, toposort
from mini.schedule.alias_outputs import is_last, moved
from mini.schedule.order import is_temporary

ALIGN = 64
LARGE = 1 << 20  # bytes: whether less is read once more from a cache does not matter
WHOLE = 64  # elements that vectors and tiles divide


def is_even(memory: UOp) -> bool:
  """Is it worth it, and do vectors and tiles divide rows and columns?"""
  shape = memory.arg[1]
  n = prod(shape)
  return n * memory.dtype.itemsize >= LARGE and shape[-1] % WHOLE == 0 and n // shape[-1] % WHOLE == 0


def in_place(
  kernels: Sequence[UOp], suits: Callable[[UOp], bool] = is_even
) -> tuple[list[UOp], dict[str, str]]:
  """(the same kernels, {temporary: the one whose memory it takes}): what a kernel writes takes the memory of what it is
  the last to read, element by element. That is on its way already, and is half as much. (On a Zen 4 the gradient of a
  layer norm of 3 MB, added to another, takes 0.7 of the time so, a product by the slope of a GELU 0.98.)

  suits: which memory may be written so. No element may be computed twice there, as it is where tiles do not come out
  even at an edge."""
  last = {p.arg[0]: n for n, k in enumerate(kernels) for p in params_of(k)}
  made: set[str] = set()
  place: dict[str, UOp] = {}
  found: list[UOp] = []
  for n, k in enumerate(kernels):
    params = [p for p in params_of(k) if is_temporary(p.arg[0])]
    free = [p for p in params if p.arg[0] in made and last[p.arg[0]] == n]
    for new in (p for p in params if p.arg[0] not in made and suits(p)):
      old = next((p for p in free if gives(k, p, new)), None)
      if old is not None:
        place[new.arg[0]] = place.get(old.arg[0], old)
    made.update(p.arg[0] for p in params)
    found.append(moved(k, place))
  return found, {new: old.arg[0] for new, old in place.items()}


def gives(k: UOp, old: UOp, new: UOp) -> bool:
  """Is each element of `old` read last where that of `new` is written, and for nothing else?"""
  mine = [s for s in stores(k) if s.src[0] is new]
  others = [s for s in stores(k) if s.src[0] is not new]
  if old.dtype is not new.dtype or len(mine) != 1 or mine[0].arg is not None:
    return False
  elsewhere = any(u.op in ("load", "store") and u.src[0] is old for u in toposort(*others))
  return not elsewhere and is_last(k, new.arg[0], old.arg[0])


class Need(NamedTuple):
  name: str
  nbytes: int
  first: int  # the launch that writes it
  last: int  # the last launch that reads it


def plan(needs: Sequence[Need]) -> tuple[dict[str, int], int]:
  """({name: byte offset}, size of the arena): big ones first, each at the lowest offset that is free while it lives."""
  offset: dict[str, int] = {}
  taken = Taken(max((n.last for n in needs), default=0))
  total = 0
  for need in sorted(needs, key=lambda n: (-n.nbytes, n.first, n.name)):
    at = 0
    for lo, hi in taken.during(need.first, need.last):
      if at + need.nbytes <= lo:
        break
      at = max(at, hi)
    end = aligned(at + need.nbytes)
    taken.take(need.first, need.last, at, end)
    offset[need.name] = at
    total = max(total, end)
  return offset, total


def aligned(nbytes: int) -> int:
  return -(-nbytes // ALIGN) * ALIGN


class Taken:
  """Which bytes of an arena are taken, and when: a tree over the launches, each node of which stands for as many of
  them as it has leaves, a power of two. What is laid side by side is one stretch, however many there are."""

  def __init__(self, last: int):
    self.leaves = 1 << last.bit_length()
    # of a node, for all of its launches, and for one of them, at least: [begin, end, begin, end, ...]
    self.all_along: dict[int, list[int]] = {}
    self.some_time: dict[int, list[int]] = {}

  def take(self, first: int, last: int, lo: int, hi: int) -> None:
    above: set[int] = set()
    for n in self.nodes(first, last):
      cover(self.all_along.setdefault(n, []), lo, hi)
      while n and n not in above:
        above.add(n)
        cover(self.some_time.setdefault(n, []), lo, hi)
        n >>= 1

  def during(self, first: int, last: int) -> list[tuple[int, int]]:
    """The stretches that are taken in some launch from first to last, by their begin; they may overlap."""
    nodes = self.nodes(first, last)
    found = [self.some_time.get(n, []) for n in nodes]
    found += [self.all_along.get(m, []) for m in {n >> k for n in nodes for k in range(1, n.bit_length())}]
    return sorted(pair for ends in found for pair in zip(ends[::2], ends[1::2]))

  def nodes(self, first: int, last: int) -> list[int]:
    """The few nodes that have these launches alone; the children of n are 2n and 2n + 1."""
    a, b = first + self.leaves, last + self.leaves + 1
    found = []
    while a < b:
      if a & 1:
        found.append(a)
        a += 1
      if b & 1:
        b -= 1
        found.append(b)
      a, b = a >> 1, b >> 1
    return found


def cover(ends: list[int], lo: int, hi: int) -> None:
  """Add a stretch to others, of which none meets another."""
  a, b = bisect_left(ends, lo), bisect_right(ends, hi)
  ends[a:b] = [lo] * (a % 2 == 0) + [hi] * (b % 2 == 0)
