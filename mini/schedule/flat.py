"""A scatter whose result is laid into a flat buffer (an embedding's gradient among all gradients) works in that buffer:
what it is added to is computed in its place, and is not copied there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mini.ir.graph import alu, cast, cat, expand_to, iota, numel, reshape, scatter, shape
from mini.ir.uop import UOp, const, rebuild, toposort
from mini.types import dtypes


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
