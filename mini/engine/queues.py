"""Which launches of a program may overlap: for each a queue, and the launches of other queues that it must wait for.

Two launches keep their order if they touch the same bytes and one of them writes. What another edge implies, or the
order within a queue, is left out: each edge that is given counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Span(NamedTuple):
  """Bytes of the memory in a slot that a launch touches."""

  slot: int
  start: int
  stop: int
  writes: bool


class History:
  """Who touched the bytes of one memory last: segments, each with its last writer and those who have read it since."""

  def __init__(self) -> None:
    self.starts = [0]
    self.last: list[tuple[int, tuple[int, ...]]] = [(-1, ())]

  def cut(self, at: int) -> int:
    """The number of the segment that begins at this byte."""
    n = bisect_right(self.starts, at) - 1
    if self.starts[n] == at:
      return n
    self.starts.insert(n + 1, at)
    self.last.insert(n + 1, self.last[n])
    return n + 1

  def touch(self, launch: int, span: Span) -> set[int]:
    """The launches that this one comes after."""
    after: set[int] = set()
    first = self.cut(span.start)
    for n in range(first, self.cut(span.stop)):
      writer, readers = self.last[n]
      after.add(writer)
      after.update(readers if span.writes else ())
      self.last[n] = (launch, ()) if span.writes else (writer, (*readers, launch))
    if span.writes:  # one segment again
      end = self.cut(span.stop)
      self.starts[first + 1 : end] = []
      self.last[first + 1 : end] = []
    return after - {-1, launch}


def dependences(touched: Sequence[Iterable[Span]]) -> list[set[int]]:
  """For each launch the earlier ones that it must come after;
  not those that come before these anyway for the same bytes."""
  written = {s.slot for spans in touched for s in spans if s.writes}
  histories = {slot: History() for slot in written}
  return [
    set().union(*(histories[s.slot].touch(n, s) for s in spans if s.slot in written))
    for n, spans in enumerate(touched)
  ]


def assign(touched: Sequence[Iterable[Span]], queues: int) -> list[tuple[int, tuple[int, ...]]]:
  """(queue, the launches of other queues to wait for) of each launch.

  A launch follows in the queue of the last one that it depends on, where that stands at the end; else it takes the
  queue that was given nothing for longest.
  """
  tails = [-1] * queues  # the last launch of each queue
  known: list[list[int]] = []  # of each launch: up to which launch each queue has run when this one has
  placed: list[int] = []
  found: list[tuple[int, tuple[int, ...]]] = []
  for n, after in enumerate(dependences(touched)):
    order = sorted(after, reverse=True)
    queue = next((placed[d] for d in order if tails[placed[d]] == d), tails.index(min(tails)))
    seen = list(known[tails[queue]]) if tails[queue] >= 0 else [-1] * queues
    waits = []
    for d in order:
      if seen[placed[d]] < d:
        waits.append(d)
        seen = [max(a, b) for a, b in zip(seen, known[d])]
    seen[queue] = tails[queue] = n
    known.append(seen)
    placed.append(queue)
    found.append((queue, tuple(reversed(waits))))
  return found
