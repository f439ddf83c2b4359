"""A kernel that touches part of a flat buffer gets that part as its memory: so the same layer twice is the same kernel."""

from __future__ import annotations

from mini.ir.kernel import access, carries_value, param
from mini.ir.uop import UOp, add, bounds, rebuild, toposort, uop

Region = tuple[str, int]  # the name of the memory, and the element at which the kernel's param begins


def regions(k: UOp) -> tuple[UOp, dict[UOp, Region]]:
  """(the kernel, {its params: what they stand for}). The accesses to a 1-d param fall into disjoint intervals; each
  becomes a param of its own, which begins there. Where only a guard or data keep an access inside, the param stays."""
  order = toposort(k)
  users = [u for u in order if u.op in ("load", "store") and access(u)[0].op == "param"]
  spans: dict[UOp, list[tuple[int, int]]] = {}
  whole = {access(u)[0] for u in users if len(access(u)[1]) != 1 or carries_value(access(u)[1][0])}
  for u in users:
    p, index, _ = access(u)
    if p not in whole:
      spans.setdefault(p, []).append(bounds(index[0]))
  pieces: dict[UOp, list[tuple[int, int]]] = {}
  for p, found in spans.items():
    merged: list[tuple[int, int]] = []
    for lo, hi in sorted(found):
      if merged and lo <= merged[-1][1]:
        merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
      else:
        merged.append((lo, hi))
    if all(0 <= lo and hi < p.arg[1][0] for lo, hi in merged):
      pieces[p] = merged
  where: dict[UOp, Region] = {}
  memo: dict[UOp, UOp] = {}
  for u in order:
    src = tuple(memo[s] for s in u.src)
    if u.op in ("load", "store") and u.src[0].op == "param":
      p, index, _ = access(u)
      if p not in pieces:
        where[p] = (p.arg[0], 0)
      else:
        lo, hi = next(s for s in pieces[p] if s[0] <= bounds(index[0])[0] <= s[1])
        q = param(f"{p.arg[0]}_{lo}", (hi - lo + 1,), p.dtype)
        where[q] = (p.arg[0], lo)
        at = add(src[-1], -lo)
        memo[u] = uop(u.op, u.dtype, (q, *src[1 : len(src) - 1], at), u.arg)
        continue
    memo[u] = rebuild(u, src)
  return memo[k], where
