"""Values that are laid one after another into a flat buffer, as all gradients are for an optimizer's step. Where all of
them are in memories of their own, what is made of the row is made piece by piece, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from mini.ir.graph import cat, numel, shape, shrink
from mini.ir.ops import is_elementwise
from mini.ir.uop import UOp, rebuild, toposort
from mini.schedule.cost import in_memory

VECTORS = 64  # elements: of any device a whole number of vectors


def in_pieces(roots: Sequence[UOp]) -> list[UOp]:
  """f(cat(a, b), p)  ->  cat(f(a, p[:n]), f(b, p[n:])), where a and b are in memory, and all that is made of their row
  is made element by element."""
  order = toposort(*roots)
  found = {r: r for r in roots}
  for row in order:
    if row.op != "cat" or len(shape(row)) != 1 or not all(map(in_memory, row.src)):
      continue
    made = {row: None}  # of the row, in order
    for u in order:
      if any(s in made for s in u.src):
        made[u] = None
    del made[row]
    ends = [u for u in made if u in found]
    inner = {s for u in made for s in u.src}
    plain = all(is_elementwise(u.op) and shape(u) == shape(row) for u in made)
    if plain and row not in found and all(u in found or u in inner for u in made):
      found.update(zip(ends, _cut(row, ends)))
  return [found[r] for r in roots]


def _cut(row: UOp, ends: Sequence[UOp]) -> list[UOp]:
  """What is made of a row, made of each of its parts."""
  order: dict[UOp, None] = dict.fromkeys(ends)
  for u in (todo := [*ends]):  # grows
    new = [s for s in u.src if is_elementwise(u.op) and shape(s) == shape(row) and s not in order]
    order.update(dict.fromkeys(new))
    todo += dict.fromkeys(new)
  pieces: list[list[UOp]] = [[] for _ in ends]
  start = 0
  for part in (p for whole in row.src for p in _in_vectors(whole)):
    span = ((start, start := start + numel(part)),)
    memo = {row: part}
    for u in sorted(order, key=lambda u: u.serial):  # sources first
      if u is not row:
        own = is_elementwise(u.op)
        memo[u] = rebuild(u, tuple(memo.get(s, s) for s in u.src)) if own else shrink(u, span)
    for end, made in zip(ends, pieces):
      made.append(memo[end])
  return [cat(tuple(made), 0) for made in pieces]


def _in_vectors(part: UOp) -> list[UOp]:
  """A part in whole vectors and a rest, for what is updated in place has no elements that may be written twice."""
  n = numel(part)
  whole = n // VECTORS * VECTORS
  return [part] if whole in (0, n) else [shrink(part, ((0, whole),)), shrink(part, ((whole, n),))]
