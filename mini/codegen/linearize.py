"""A kernel -> a flat list of lines with loop/end: the uops that a renderer prints.

Placement is one rule. Only `loop`, `par` and `around` ranges make loops; `vec` and `unroll` ranges are *lanes* of the
values that depend on them, and `local` ranges are digits of the thread's number (threads.py). An owner (kernel, stage,
reduce) opens the loops it closes, in the order of its list, at the place where it stands; but the `around` loops of a
reduce are opened by the stage that it fills, around the stage's own, and each round adds to what is there. Any other
node stands in the shortest prefix of the loops around its user that opens all its free loop ranges. Because a range has
one owner, all users agree on that place; this is checked.
"""

from __future__ import annotations

from typing import NamedTuple

from mini.ir.kernel import around, is_inline
from mini.ir.uop import UOp, closed, rkind, rname, toposort


class Line(NamedTuple):
  op: str  # loop end alloc acc accum fold load store, or an elementwise op
  node: UOp


def is_loop(r: UOp) -> bool:
  return rkind(r) in ("loop", "par", "around")


def loops_of(u: UOp) -> tuple[UOp, ...]:
  """The loops that an owner opens, outermost first."""
  own = tuple(r for r in closed(u) if is_loop(r) and rkind(r) != "around")
  return around(u.src[0]) + own if u.op == "stage" else own


def lanes(u: UOp) -> tuple[UOp, ...]:
  """The vec and unroll ranges that u depends on: unrolled ones first, the vector range last."""
  got = u.memo.get("lanes")
  if got is None:
    got = u.memo["lanes"] = sort_lanes(r for r in u.free if rkind(r) in ("vec", "unroll"))
  return got


def local_ranges(u: UOp) -> tuple[UOp, ...]:
  """The local ranges that u depends on: it differs between the threads of a group in these."""
  got = u.memo.get("local")
  if got is None:
    got = u.memo["local"] = tuple(sorted((r for r in u.free if rkind(r) == "local"), key=rname))
  return got


def sort_lanes(rs) -> tuple[UOp, ...]:
  return tuple(sorted(rs, key=lambda r: (rkind(r) == "vec", rname(r))))


def _prefix(place: tuple[UOp, ...], u: UOp) -> tuple[UOp, ...]:
  """The shortest prefix of the loops in `place` that opens all free loop ranges of u."""
  need = {r for r in u.free if is_loop(r)} | set(around(u))
  n = 0
  while need:
    if n == len(place):
      raise ValueError(
        f"{u.op} needs the loops {sorted(map(rname, need))}, but stands in {[rname(r) for r in place]}"
      )
    need.discard(place[n])
    n += 1
  return place[:n]


def places(kernel: UOp) -> dict[UOp, tuple[UOp, ...]]:
  """{node: the loops it stands in, outermost first}, users before sources."""
  place: dict[UOp, tuple[UOp, ...]] = {kernel: ()}
  opened: dict[UOp, UOp] = {}
  for u in reversed(toposort(kernel)):
    if u not in place:
      continue
    for r in closed(u):
      if opened.setdefault(r, u) is not u:
        raise ValueError(f"range {rname(r)} has two owners")
    inside = place[u] + loops_of(u)
    for s in u.src:
      for v in values_in(s):
        p = _prefix(inside, v)
        if place.setdefault(v, p) != p:
          raise ValueError(f"{v.op} stands in two places")
        # its accumulator starts again with each round of what stands outside
        if v.op == "scan" and v.src[1] in p[:-1]:
          raise ValueError(
            f"the loop %{rname(p[-1])} stands inside %{rname(v.src[1])}, which carries a scan of it"
          )
  return place


def values_in(s: UOp) -> list[UOp]:
  """The values that s brings with it: itself, or those in an index expression (a gather's index)."""
  if not is_inline(s):
    return [s]
  if s.op in ("const", "param"):
    return []
  got = s.memo.get("values")
  if got is None:
    got = s.memo["values"] = list(dict.fromkeys(v for x in s.src for v in values_in(x)))
  return got


def linearize(kernel: UOp) -> list[Line]:
  place = places(kernel)
  blocks: dict[tuple[UOp, ...], list[Line]] = {}
  for u in toposort(kernel):
    if u not in place:
      continue
    p = place[u]
    block = blocks.setdefault(p, [])
    if u.op == "scan":  # the accumulator lives outside the loop that it runs along
      outside = p[: p.index(u.src[1])] if u.src[1] in p else p
      blocks.setdefault(outside, []).append(Line("acc", u))
      block.append(Line("accum", u))
      continue
    if not closed(u) and u.op != "stage":
      if u.op != "kernel":
        block.append(Line(u.op, u))
      continue
    loops = loops_of(u)
    if u.op == "stage":
      block.append(Line("alloc", u))
    if u.op == "reduce" and loops:
      block.append(Line("acc", u))
    if u.op != "kernel":
      last = "store" if u.op == "stage" else "accum" if loops else "fold"
      blocks.setdefault(p + loops, []).append(Line(last, u))
    for n in range(len(loops), 0, -1):  # nest the blocks from the inside out
      body = blocks.pop(p + loops[:n], [])
      r = loops[n - 1]
      blocks.setdefault(p + loops[: n - 1], []).extend([Line("loop", r), *body, Line("end", r)])
    if u.op == "reduce" and loops:
      block.append(Line("fold", u))
  return blocks.get((), [])
