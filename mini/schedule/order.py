"""Kernels that make nothing but results run soon after what they are made of is there.

Gradients of weights are such. At the end of the program, where the graph has them, all that they are made of waits in
memory: gradients of every layer, beside what the forward pass has kept.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Container, Mapping, Sequence
from typing import Any

from mini.ir.kernel import params_of, place_of, stores
from mini.ir.uop import UOp, bounds, toposort
from mini.schedule.merge import accumulates, levels_of, loaded

# in the order of which kernels run: of one that follows another the latter's, and a number
Rank = tuple[int, ...]
Piece = tuple[int, int]  # the first and the last element


class Memory:
  """Who has touched a memory so far: the last ones."""

  def __init__(self) -> None:
    self.read: Rank = ()
    self.written: Rank = ()
    self.changed: Rank = ()  # who did not write a piece of its own
    self.pieces: list[Piece] = []  # none overlaps another

  def is_apart(self, piece: Piece | None) -> bool:
    """Has nobody written a part of it? None: some place or other."""
    if piece is None:
      return False
    n = bisect(self.pieces, piece)
    return all(b < piece[0] or piece[1] < a for a, b in self.pieces[max(n - 1, 0) : n + 1])

  def before(self, piece: Piece | None) -> Rank:
    """Behind whom is a kernel to stand that writes it?"""
    return max(self.read, self.changed if self.is_apart(piece) else self.written)

  def write(self, piece: Piece | None, rank: Rank) -> None:
    self.written = max(self.written, rank)
    if piece is not None and self.is_apart(piece):
      insort(self.pieces, piece)
    else:
      self.changed = max(self.changed, rank)


def early(kernels: Sequence[UOp], late: Mapping[str, int]) -> list[UOp]:
  """The same kernels, in an order in which they run: who reads temporaries and writes none stands one kernel behind the
  last of those that it waits for, the others as they did. (The one between goes on with what is in the cache. A step of
  a small GPT of 32 texts takes 0.85 of the memory so on the CPU, and as much time.)

  late: inputs that come later than others, and how late."""
  memories: dict[Any, Memory] = {}
  ranks: list[Rank] = []
  for n, (k, level) in enumerate(zip(kernels, levels_of(kernels, late))):
    reads = {p.arg[0] for p in loaded(toposort(k))}
    writes = pieces_of(k, reads)
    for p in params_of(k):
      memories.setdefault(p.arg[0], Memory())
    waits = [*(memories[m].written for m in reads), *(memories[m].before(at) for m, at in writes.items())]
    last = max(waits, default=())
    rank: Rank = (level, n)
    if any(map(is_temporary, reads)) and not any(map(is_temporary, writes)) and last[:1] == rank[:1]:
      rank = (level, last[1] + 1, n)
    ranks.append(rank)
    for m in reads:
      memories[m].read = max(memories[m].read, rank)
    for m, at in writes.items():
      memories[m].write(at, rank)
  return [kernels[n] for n in sorted(range(len(kernels)), key=ranks.__getitem__)]


def is_temporary(name: Any) -> bool:
  """By its name (fuse.py); other memory may be named by what it is."""
  return isinstance(name, str) and name.startswith("t")


def pieces_of(k: UOp, reads: Container[Any]) -> dict[Any, Piece | None]:
  """{memory: the piece that a kernel writes of it}; None where it adds to it, reads it, or data say where it writes."""
  found: dict[Any, Piece | None] = {}
  for s in stores(k):
    name, (first, last) = s.src[0].arg[0], bounds(place_of(s))
    known = found.get(name, (first, last))
    if accumulates(k) or name in reads or known is None:
      found[name] = None
    else:
      found[name] = min(first, known[0]), max(last, known[1])
  return found
