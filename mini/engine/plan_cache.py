"""What large programs have become, on disk beside their code: a start that computes what an earlier one did traces it,
and needs no schedule, no recipes and no rendering. (A training step of GPT-2 124M: 1.2 s of the first step.)

An entry's key is all that it depends on: the graph, what is overwritten, the device, the settings, and every line of
mini itself.
"""

from __future__ import annotations

import functools
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mini.codegen.recipe_builder import Machine
from mini.config import config
from mini.engine.cache import digest, disk_cache, result_cache
from mini.engine.device import Code
from mini.ir.uop import UOp, toposort
from mini.types import DType

LARGE = 500  # nodes of a graph: what is smaller is compiled in a moment


class Planned(NamedTuple):
  """A launch: as a Call, but for the function."""

  code: int  # which of the plan's
  args: list[tuple[int, int]]
  extent: int
  work: float
  group: int
  queue: int = 0
  waits: tuple[int, ...] = ()


class Plan(NamedTuple):
  """A program that was compiled, without its graph and its kernels; the first five as they are called there."""

  same: list[int]
  inplace: dict[int, int]
  slots: dict[str, tuple[int, int]]
  temporaries: dict[str, tuple[int, int]]
  arena_bytes: int
  segments: Sequence[tuple[int, int, int]]
  codes: list[Code]  # each once
  calls: list[Planned]


def key_of(
  graph: UOp, inputs: int, inout: Mapping[int, int], levels: Sequence[int], device: str, machine: Machine
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
  about = inputs, outputs, sorted(inout.items()), tuple(levels), machine, config.code, tuned
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


def get(key: str) -> Plan | None:
  cache = disk_cache() if key else None
  path = cache.get(key) if cache else None
  if path is None:
    return None
  try:
    with open(path, "rb") as f:
      plan = Plan(*marshal.load(f))
  except OSError:  # another process removed it
    return None
  return plan._replace(codes=[Code(*c) for c in plan.codes], calls=[Planned(*c) for c in plan.calls])


def put(key: str, plan: Plan) -> None:
  cache = disk_cache() if key else None
  if cache:
    rows: dict[str, Any] = {
      name: [tuple(row) for row in getattr(plan, name)] for name in ("segments", "codes", "calls")
    }
    found: tuple[Any, ...] = plan._replace(**rows)
    cache.put(key, marshal.dumps((*found,)))
