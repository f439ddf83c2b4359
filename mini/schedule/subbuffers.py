"""A kernel that touches part of a buffer gets that part as its memory:
so the same layer, or step, twice is the same kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mini.ir.kernel import Index, access, carries_value, param
from mini.ir.uop import UOp, add, bounds, rebuild, toposort, uop

Region = tuple[str, int]  # the name of the memory, and the element at which the kernel's param begins


def regions(k: UOp) -> tuple[UOp, dict[UOp, Region]]:
  """(the kernel, {its params: what they stand for}). Where all accesses to a param have the same numbers as their first
  indices, x[2, i, j], it becomes x[2]. Those to a 1-d param, or to what is one then, fall into disjoint intervals; each
  becomes a param of its own, which begins there. Where only a guard or data keep an access inside, the param stays."""
  order = toposort(k)
  users = [u for u in order if u.op in ("load", "store") and access(u)[0].op == "param"]
  indices: dict[UOp, list[Index]] = {}
  for u in users:
    p, index, _ = access(u)
    indices.setdefault(p, []).append(index)
  skipped = {p: fixed_axes(p.arg[1], found) for p, found in indices.items()}
  pieces = {
    p: intervals(p.arg[1][-1], found) if skipped[p] == len(p.arg[1]) - 1 else []
    for p, found in indices.items()
  }
  where: dict[UOp, Region] = {}
  memo: dict[UOp, UOp] = {}
  for u in order:
    src = tuple(memo[s] for s in u.src)
    if u.op in ("load", "store") and u.src[0].op == "param":
      p, index, _ = access(u)
      sizes, n = p.arg[1], skipped[p]
      begin = sum(i.arg * prod(sizes[a + 1 :]) for a, i in enumerate(index[:n]))
      rest, q = src[len(src) - len(index) + n :], p
      if pieces[p]:
        lo, hi = next(s for s in pieces[p] if s[0] <= bounds(index[-1])[0] <= s[1])
        begin, rest = begin + lo, (add(rest[0], -lo),)
        q = param(f"{p.arg[0]}_{begin}", (hi - lo + 1,), p.dtype)
      elif n:
        q = param(f"{p.arg[0]}_{begin}", sizes[n:], p.dtype)
      where[q] = (p.arg[0], begin)
      memo[u] = uop(u.op, u.dtype, (q, *src[1 : len(src) - len(index)], *rest), u.arg)
      continue
    memo[u] = rebuild(u, src)
  return memo[k], where


def fixed_axes(sizes: Sequence[int], indices: Sequence[Index]) -> int:
  """How many of the first axes are at the same number, inside, in all accesses; one axis, at least, is left."""
  n = 0
  while n < len(sizes) - 1 and (i := indices[0][n]).op == "const" and 0 <= i.arg < sizes[n]:
    if any(index[n] is not i for index in indices):
      break
    n += 1
  return n


def intervals(size: int, indices: Sequence[Index]) -> list[tuple[int, int]]:
  """The disjoint (first, last) into which accesses to the last axis fall;
  none where an interval is not known, or not inside."""
  if any(carries_value(index[-1]) for index in indices):
    return []
  merged: list[tuple[int, int]] = []
  for lo, hi in sorted(bounds(index[-1]) for index in indices):
    if merged and lo <= merged[-1][1]:
      merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
    else:
      merged.append((lo, hi))
  return merged if all(0 <= lo and hi < size for lo, hi in merged) else []
