"""Where temporaries live: in the place of one that is read for the last time, or in an arena, by liveness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from mini.ir.kernel import params_of, stores
from mini.ir.uop import UOp, toposort
from mini.schedule.early import is_temporary
from mini.schedule.overwrite import is_last, moved

ALIGN = 64
LARGE = 1 << 20  # bytes: whether less is read once more from a cache does not matter
WHOLE = 64  # elements that vectors and tiles divide


def is_even(memory: UOp) -> bool:
  """Is it worth it, and do vectors and tiles divide rows and columns?"""
  shape = memory.arg[1]
  n = prod(shape)
  return n * memory.dtype.itemsize >= LARGE and shape[-1] % WHOLE == 0 and n // shape[-1] % WHOLE == 0


def in_place(
  kernels: Sequence[UOp], suits: Callable[[UOp], bool] = is_even
) -> tuple[list[UOp], dict[str, str]]:
  """(the same kernels, {temporary: the one whose memory it takes}): what a kernel writes takes the memory of what it is
  the last to read, element by element. That is on its way already, and is half as much. (On a Zen 4 the gradient of a
  layer norm of 3 MB, added to another, takes 0.7 of the time so, a product by the slope of a GELU 0.98.)

  suits: which memory may be written so. No element may be computed twice there, as it is where tiles do not come out
  even at an edge."""
  last = {p.arg[0]: n for n, k in enumerate(kernels) for p in params_of(k)}
  made: set[str] = set()
  place: dict[str, UOp] = {}
  found: list[UOp] = []
  for n, k in enumerate(kernels):
    params = [p for p in params_of(k) if is_temporary(p.arg[0])]
    free = [p for p in params if p.arg[0] in made and last[p.arg[0]] == n]
    for new in (p for p in params if p.arg[0] not in made and suits(p)):
      old = next((p for p in free if gives(k, p, new)), None)
      if old is not None:
        place[new.arg[0]] = place.get(old.arg[0], old)
    made.update(p.arg[0] for p in params)
    found.append(moved(k, place))
  return found, {new: old.arg[0] for new, old in place.items()}


def gives(k: UOp, old: UOp, new: UOp) -> bool:
  """Is each element of `old` read last where that of `new` is written, and for nothing else?"""
  mine = [s for s in stores(k) if s.src[0] is new]
  others = [s for s in stores(k) if s.src[0] is not new]
  if old.dtype is not new.dtype or len(mine) != 1 or mine[0].arg is not None:
    return False
  elsewhere = any(u.op in ("load", "store") and u.src[0] is old for u in toposort(*others))
  return not elsewhere and is_last(k, new.arg[0], old.arg[0])


class Need(NamedTuple):
  name: str
  nbytes: int
  first: int  # the launch that writes it
  last: int  # the last launch that reads it


def plan(needs: Sequence[Need]) -> tuple[dict[str, int], int]:
  """({name: byte offset}, size of the arena): big ones first, each at the lowest offset that is free while it lives."""
  offset: dict[str, int] = {}
  placed: list[tuple[int, int, Need]] = []
  total = 0
  for need in sorted(needs, key=lambda n: (-n.nbytes, n.first, n.name)):
    at = 0
    for lo, hi, other in sorted(
      (p for p in placed if p[2].first <= need.last and need.first <= p[2].last), key=lambda p: p[0]
    ):
      if at + need.nbytes <= lo:
        break
      at = max(at, hi)
    end = -(-(at + need.nbytes) // ALIGN) * ALIGN
    placed.append((at, end, need))
    offset[need.name] = at
    total = max(total, end)
  return offset, total
