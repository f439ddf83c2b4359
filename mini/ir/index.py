"""A view is an index function: there is no view tracker.
Walking from users to sources, each view rewrites the index."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from mini.ir.graph import shape
from mini.ir.uop import TRUE, UOp, add, both, const, div, mod, mul, range_, weighted_sum, within

Index = tuple  # of UOps with dtype index, one per axis


def output_ranges(s: tuple[int, ...]) -> Index:
  letters = "ijlmnopqruvw"
  return tuple(
    const(0) if n == 1 else range_(letters[a % 12] + str(a // 12 or ""), n) for a, n in enumerate(s)
  )


def live(rs: Index) -> tuple[UOp, ...]:
  return tuple(r for r in rs if r.op == "range")


def flatten(index: Index, s: tuple[int, ...]) -> UOp:
  """The row-major offset of `index` in shape s."""
  stride = prod(s)
  parts = []
  for i, n in zip(index, s):
    stride //= n or 1
    parts.append((i, stride))
  return weighted_sum(parts)


def unflatten(flat: UOp, s: tuple[int, ...]) -> Index:
  out, stride = [], prod(s)
  for n in s:
    stride //= n
    out.append(mod(div(flat, stride), n))
  return tuple(out)


@lru_cache(4096)  # layers that are alike ask the same
def reshaped(index: Index, old: tuple[int, ...], new: tuple[int, ...]) -> Index:
  """The index into shape `new` of the element that stands at `index` in shape `old`. Axes that stay as they are keep
  their index: one that a guard keeps inside does not reach into its neighbours."""
  if 0 in old:
    return (const(0),) * len(new)
  out: list[UOp] = []
  start = 0
  for end, upto in _groups(old, new):
    out += _moved(index[start:end], old[start:end], new[len(out) : upto])
    start = end
  return tuple(out)


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> Iterator[tuple[int, int]]:
  """Where groups of axes that hold the same elements end in either shape: the smallest groups."""
  n = m = 0
  while n < len(old) or m < len(new):
    a = b = 1
    while a != b or a == 1:
      if n < len(old) and (a <= b or m == len(new)):
        a, n = a * old[n], n + 1
      elif m < len(new):
        b, m = b * new[m], m + 1
      else:
        break
    while m < len(new) and new[m] == 1 and n == len(old):
      m += 1
    yield n, m


def _moved(index: Index, old: tuple[int, ...], new: tuple[int, ...]) -> Index:
  if [n for n in new if n != 1] == [n for n in old if n != 1]:  # only ones come or go
    rest = iter([i for i, n in zip(index, old) if n != 1])
    return tuple(const(0) if n == 1 else next(rest) for n in new)
  return unflatten(flatten(index, old), new)


def view_index(v: UOp, index: Index) -> tuple[Index, UOp]:
  """Where view v, read at `index`, reads its source: (source index, the condition under which it reads at all)."""
  if v.op in ("detach", "stage", "copy", "shard", "tag"):
    return index, TRUE
  s = shape(v.src[0])
  if v.op == "permute":
    return tuple(index[v.arg.index(a)] for a in range(len(s))), TRUE
  if v.op == "expand":
    return tuple(const(0) if n == 1 else i for i, n in zip(index, s)), TRUE
  if v.op == "shrink":
    return tuple(add(i, lo) for i, (lo, _) in zip(index, v.arg)), TRUE
  if v.op == "flip":
    return tuple(add(mul(i, -1), n - 1) if a in v.arg else i for a, (i, n) in enumerate(zip(index, s))), TRUE
  if v.op == "reshape":
    return reshaped(index, v.arg, s), TRUE
  assert v.op == "pad", v.op
  inner = tuple(add(i, -lo) for i, (lo, _) in zip(index, v.arg))
  gate = TRUE
  for i, n in zip(inner, s):
    gate = both(gate, within(i, n))
  return inner, gate


def stored_index(v: UOp, index: Index) -> Index:
  """Where what stands at `index` in v's source stands in v: the inverse of `view_index` for permute and reshape."""
  if v.op == "permute":
    return tuple(index[a] for a in v.arg)
  if v.op == "reshape":
    return reshaped(index, shape(v.src[0]), v.arg)
  return index
