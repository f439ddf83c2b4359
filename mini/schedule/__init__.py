"""Graph -> a list of kernels: what shares a kernel is decided here, nothing about how it runs.

fuse.py decides where every value lives, merge.py joins kernels that walk the same ranges, memory.py places temporaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mini.ir.uop import UOp
from mini.schedule.fuse import Schedule
from mini.schedule.merge import levels_of, merge_kernels

NONE: Mapping[str, Any] = MappingProxyType({})


def schedule(outputs: dict[str, UOp], late: Mapping[str, int] = NONE) -> tuple[list[UOp], dict[str, str]]:
  """(kernels in the order in which they run, {output: the equal output whose memory it is}).

  outputs: {name: graph node}. late: inputs that are not there at once, and how late they come: what has waited for one is
  not joined with what need not, and stands behind all of that. Kernels name their memory: an output by its name, a buffer leaf by its key, a temporary
  by a name of its own (t0, t1, ...).
  """
  s = Schedule(outputs)
  while cuts := s.cuts() - s.cut:
    s = Schedule(outputs, s.cut | cuts)
  kernels = merge_kernels(s.kernels, late)
  return by_level(kernels, late) if late else kernels, s.aliases


def by_level(kernels: list[UOp], late: Mapping[str, int]) -> list[UOp]:
  """The kernels in order of what they wait for, and else as they are."""
  levels = levels_of(kernels, late)
  return [kernels[n] for n in sorted(range(len(kernels)), key=levels.__getitem__)]
