"""What large programs have become, on disk beside their code: a start that computes what an earlier one did traces it,
and needs no schedule, no recipes and no rendering. (A training step of GPT-2 124M: 1.2 s of the first step.)

What is kept is the schedule that runs, as text and with its memory and runs at hand, and the code of its kernels. The
key is all that it depends on: the graph, what is overwritten, the device, the settings, and every line of mini itself.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mini.codegen.recipe_builder import Machine
from mini.config import config
from mini.engine.cache import digest, disk_cache, result_cache
from mini.engine.device import Code
from mini.ir.uop import UOp, toposort
from mini.text.printer import Memory, Plan, Run, noted, noted_of, text
from mini.types import BY_SHORT, DType

LARGE = 500  # nodes of a graph: what is smaller is compiled in a moment


class Entry(NamedTuple):
  """The code of a kernel, and how it is called."""

  code: Code
  # in the order of the code: (n of a0, a1, ...; the bytes of an element, and of all; is it written?)
  params: Sequence[tuple[int, int, int, bool]]
  extent: int  # of its parallel range
  nanoseconds: float  # of a core
  group: int
  guarded: bool
  sizes: Sequence[int]


class Kept(NamedTuple):
  """A schedule that was compiled: its text as SHOW prints it, the same text's memory and runs at hand, and its code."""

  schedule: str
  why: Mapping[str, Sequence[str]]  # comments of that text
  plan: Plan
  segments: Sequence[tuple[int, int, int]]  # of runs, by the level of inputs
  entries: Sequence[Entry]  # one of each kernel


def key_of(
  graph: UOp,
  inputs: int,
  inout: Mapping[int, int],
  levels: Sequence[int],
  device: str,
  machine: Machine,
  often: bool,
) -> str:
  """What a plan of this program is kept under; "" where none is: of a small one, of one for another device than the
  CPU, and of one that somebody watches, edits or searches recipes for."""
  order, kind = toposort(*graph.src), device.partition(":")[0]
  if (
    len(order) < LARGE
    or kind != "CPU"
    or config.watched
    or config.EDIT
    or config.SEARCH
    or disk_cache() is None
  ):
    return ""
  nodes, version = text_of(order), sources()
  if not nodes or not version:
    return ""
  found = result_cache()
  tuned = sorted(found.names().values()) if found else []
  number = {u: n for n, u in enumerate(order)}
  outputs = [number[u] for u in graph.src]
  about = inputs, outputs, sorted(inout.items()), tuple(levels), machine, often, config.code, tuned
  return "\n".join(["plan", sys.version, version, repr(about), nodes])


def text_of(order: Sequence[UOp]) -> str:
  """The nodes, a line each; "" where one holds something that its text does not tell whole."""
  number: dict[UOp, int] = {}
  lines = []
  for n, u in enumerate(order):
    if not is_plain(u.arg):
      return ""
    number[u] = n
    lines.append(f"{u.op} {u.dtype!r} {[number[s] for s in u.src]} {u.arg!r}")
  return "\n".join(lines)


def is_plain(arg: Any) -> bool:
  if type(arg) is tuple:
    return all(map(is_plain, arg))
  return arg is None or type(arg) in (bool, int, float, str, DType)


@functools.cache
def sources() -> str:
  """A digest of mini's own files; "" where they lie in no folder."""
  package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
  lines = []
  for folder in (package, os.path.join(os.path.dirname(package), "runtime")):
    for here, inner, names in os.walk(folder):
      inner[:] = sorted(n for n in inner if n != "__pycache__")
      for name in sorted(names):
        path = os.path.join(here, name)
        try:
          with open(path, "rb") as f:
            lines.append(f"{os.path.relpath(path, package)} {digest(f.read())}\n")
        except OSError:  # an editor's lock: Python could not read it either
          pass
  return digest("".join(lines).encode()) if lines else ""


def get(key: str) -> Kept | None:
  cache = disk_cache() if key else None
  path = cache.get(key) if cache else None
  if path is None:
    return None
  import json  # which a start with little to do does without

  try:
    with open(path, encoding="utf-8") as f:
      schedule, why, (name, memory, runs, results), segments, codes, entries = json.load(f)
  except OSError:  # another process removed it
    return None
  plan = Plan(
    name,
    tuple(Memory(name, where, BY_SHORT[kind], tuple(s), device) for name, where, kind, s, device in memory),
    tuple(Run(kernel, tuple(names), tuple(starts)) for kernel, names, starts in runs),
    tuple(results),
  )
  made = [Code(name, source, tuple(map(tuple, helpers)), prelude) for name, source, helpers, prelude in codes]
  return Kept(schedule, why, plan, segments, [Entry(made[n], *rest) for n, *rest in entries])


def schedule_of(kept: Kept) -> UOp:
  """The node of its text, with the comments."""
  from mini.text.parser import parse  # which a start does without

  return noted(parse(kept.schedule, "<kept>"), kept.why)


def put(key: str, schedule: UOp, segments: Sequence[tuple[int, int, int]], entries: Sequence[Entry]) -> None:
  cache = disk_cache() if key else None
  if cache:
    import json

    plan, number = schedule.arg, {c: n for n, c in enumerate(dict.fromkeys(e.code for e in entries))}
    memory = [(m.name, m.where, m.dtype.short, m.shape, m.device) for m in plan.memory]
    head = plan.name, memory, plan.runs, plan.results
    called = [(number[e.code], *e[1:]) for e in entries]
    kept = text(schedule), dict(noted_of(schedule)), head, segments, [*number], called
    cache.put(key, json.dumps(kept).encode())
