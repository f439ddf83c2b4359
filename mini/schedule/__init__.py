"""Graph -> a list of kernels: what shares a kernel is decided here, nothing about how it runs.

fuse.py decides where every value lives, merge.py joins kernels that walk the same ranges, memory.py places temporaries.
"""

from __future__ import annotations

from mini.ir.uop import UOp
from mini.schedule.fuse import Schedule
from mini.schedule.merge import merge_kernels


def schedule(outputs: dict[str, UOp]) -> tuple[list[UOp], dict[str, str]]:
  """(kernels in the order in which they run, {output: the equal output whose memory it is}).

  outputs: {name: graph node}. Kernels name their memory: an output by its name, a buffer leaf by its key, a temporary
  by a name of its own (t0, t1, ...).
  """
  s = Schedule(outputs)
  return merge_kernels(s.kernels), s.aliases
