"""What must be computed before what, while the kernels are still in the making."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from mini.ir.uop import UOp


class Needs:
  """A value needs its sources, what they need, and what it is tied to. A question walks only the part of the graph that
  lies between the two that it is about: nodes have numbers, sources before users, and a tie to something later is noted
  for all numbers that it spans."""

  def __init__(self, order: Iterable[UOp], awaited: Mapping[UOp, UOp]):
    """order: all nodes, sources first. awaited: {node: what else is to be there before it}."""
    self.number = {u: n for n, u in enumerate(order)}
    self.lowest = list(range(len(self.number)))  # number of a node that may need the one of this number
    self.ties: dict[UOp, dict[UOp, None]] = {}
    for u, other in awaited.items():
      self.tie(u, (other,))

  def tie(self, u: UOp, others: Iterable[UOp]) -> None:
    """What needs u needs these, too: one kernel computes them."""
    ties = self.ties.setdefault(u, {})
    ties.update(dict.fromkeys(others))
    first = self.lowest[self.number[u]]
    for n in range(self.number[u] + 1, max(map(self.number.__getitem__, ties)) + 1):
      self.lowest[n] = min(self.lowest[n], first)

  def any_of(self, values: Iterable[UOp], wanted: Collection[UOp]) -> bool:
    """Are some of these values among what is wanted, or need it?"""
    n = min((self.number[u] for u in wanted), default=len(self.lowest))
    while n < len(self.lowest) and self.lowest[n] < n:
      n = self.lowest[n]
    todo = list(values)
    seen = set(todo)
    for u in todo:  # grows
      if u in wanted:
        return True
      new = [s for s in (*u.src, *self.ties.get(u, ())) if self.number[s] >= n and s not in seen]
      seen.update(new)
      todo += new
    return False
