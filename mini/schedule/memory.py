"""Where temporaries live: one arena per program, offsets by liveness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ALIGN = 64


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
