"""Values that are laid one after another into a flat buffer, as all gradients are for an optimizer's step.

A scatter among them (an embedding's gradient) works in that buffer: what it is added to is computed in its place, and
is not copied there. Where all of them are in memories of their own, what is made of the row is made piece by piece, and
nothing is copied at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mini.ir.graph import alu, cast, cat, expand_to, iota, numel, reshape, scatter, shape, shrink
from mini.ir.ops import is_elementwise
from mini.ir.uop import UOp, const, rebuild, toposort
from mini.schedule.cost import in_memory
from mini.types import dtypes

VECTORS = 64  # elements: of any device a whole number of vectors


def scatter_in_place(roots: Sequence[UOp]) -> list[UOp]:
  """cat(.., reshape(scatter(base, i, v)), ..)  ->  scatter(cat(.., reshape(base), ..), flat i, flat v)"""
  order = toposort(*roots)
  users = Counter(s for u in order for s in u.src)
  users.update(roots)
  memo: dict[UOp, UOp] = {}
  for u in order:
    new = rebuild(u, tuple(memo[s] for s in u.src))
    memo[u] = (
      _moved(new, [_scattered(p, users) for p in u.src], memo)
      if u.op == "cat" and len(shape(u)) == 1
      else new
    )
  return [memo[u] for u in roots]


def _scattered(part: UOp, users: Counter[UOp]) -> UOp | None:
  """The scatter that this part of a cat is a view of, if nobody else reads it."""
  while part.op == "reshape" and users[part] == 1:
    part = part.src[0]
  return part if part.op == "scatter" and users[part] == 1 else None


def _moved(u: UOp, found: list[UOp | None], memo: dict[UOp, UOp]) -> UOp:
  parts, late, start = list(u.src), [], 0
  for n, s in enumerate(found):
    if s is not None:
      base, index, value = (memo[x] for x in s.src)
      parts[n] = reshape(base, (numel(base),))
      at = reshape(_flat_index(shape(base), index, s.arg[1], start), (numel(index),))
      late.append((at, reshape(value, (numel(value),)), s.arg[0]))
    start += numel(u.src[n])
  new = cat(tuple(parts), 0)
  for at, value, kind in late:
    new = scatter(new, at, value, kind, 0)
  return new


def number(n: int) -> UOp:
  return const(n, dtypes.int64)


def _flat_index(s: tuple[int, ...], index: UOp, axis: int, start: int) -> UOp:
  """Where each element goes in the flat buffer; -1, which no buffer has, for an index that is not within the axis."""
  index, si = cast(index, dtypes.int64), shape(index)
  at, stride = number(start), 1
  for a in range(len(s) - 1, -1, -1):
    along = reshape(iota(si[a], dtypes.int64), (*(1,) * a, si[a], *(1,) * (len(si) - a - 1)))
    at = alu("add", at, alu("mul", index if a == axis else expand_to(along, si), number(stride)))
    stride *= s[a]
  valid = alu("and", alu("lt", number(-1), index), alu("lt", index, number(s[axis])))
  return alu("where", valid, at, number(-1))


# ---------------------------------------------------------------- memories in a row


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
