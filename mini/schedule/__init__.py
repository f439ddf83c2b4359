"""Graph -> a list of kernels: what shares a kernel is decided here, nothing about how it runs.

cost.py decides where every value lives, and why; rematerialize.py, what is kept in the place of what it is made of;
fuse.py makes kernels of that, and cuts.py says what must have memory after all; merge.py joins kernels that walk the
same ranges, dead_stores.py says what they need not write, select_folding.py leaves out what is chosen already, order.py
says which runs when, memory.py places temporaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mini.ir.uop import UOp, rebuild, toposort, uop
from mini.schedule.cost import apart
from mini.schedule.cuts import cuts
from mini.schedule.dead_stores import without_unread
from mini.schedule.fuse import Schedule
from mini.schedule.merge import levels_of, merge_kernels
from mini.schedule.select_folding import without_repeated_choices

Why = dict[str, list[str]]  # memory -> sentences
NONE: Mapping[str, Any] = MappingProxyType({})


def schedule(
  outputs: dict[str, UOp],
  late: Mapping[str, int] = NONE,
  why: Why | None = None,
  gpu: bool = False,
  fuse: bool = True,
) -> tuple[list[UOp], dict[str, str]]:
  """(kernels in the order in which they run, {output: the equal output whose memory it is}).

  outputs: {name: graph node}. late: inputs that are not there at once, and how late they come: what has waited for one
  is not joined with what need not, and stands behind all of that. Kernels name their memory: an output by its name, a
  buffer leaf by its key, a temporary by a name of its own (t0, t1, ...). why: gets the reasons for each memory that has
  some, as sentences. gpu: for a device with groups of threads. fuse: else each operation is a kernel.
  """
  outputs, order, awaited = untied(outputs)
  s = Schedule(outputs, order, awaited, {} if fuse else apart(order), late, gpu or not fuse)
  while more := cuts(s):
    s = Schedule(outputs, order, awaited, {**s.cut, **more}, late, gpu or not fuse)
  if why is not None:
    why.update(s.why)
  kernels = list(s.built.values())
  if fuse:
    kernels = merge_kernels(kernels, late, s.waits())
    kernels = [without_repeated_choices(k) for k in without_unread(kernels, set(outputs))]
  return by_level(kernels, late) if late else kernels, s.aliases


def untied(outputs: dict[str, UOp]) -> tuple[dict[str, UOp], list[UOp], dict[UOp, UOp]]:
  """A graph with a tag in the place of each `after`: (outputs, all nodes with sources first,
  {tag: what it is after})."""
  order = toposort(*outputs.values())
  if not any(u.op == "after" for u in order):
    return outputs, order, {}
  table: dict[UOp, UOp] = {}
  awaited: dict[UOp, UOp] = {}
  for n, u in enumerate(order):
    src = tuple(table[s] for s in u.src)
    table[u] = uop("tag", u.dtype, src[:1], f"after {n}") if u.op == "after" else rebuild(u, src)
    if u.op == "after":
      awaited[table[u]] = src[1]
  return {name: table[u] for name, u in outputs.items()}, list(dict.fromkeys(table.values())), awaited


def by_level(kernels: list[UOp], late: Mapping[str, int]) -> list[UOp]:
  """The kernels in order of what they wait for, and else as they are."""
  levels = levels_of(kernels, late)
  return [kernels[n] for n in sorted(range(len(kernels)), key=levels.__getitem__)]
