"""Files of stages: SHOW=schedule,kernel:FOLDER writes those of the programs that run, and EDIT=FOLDER has the next run
take what stands there. A schedule is found by its device and the graph that it is of, a kernel by its kind of device
and its name.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mini.config import Texts, config
from mini.engine.cache import digest
from mini.ir.kernel import directions
from mini.ir.uop import UOp
from mini.text.printer import graph_program, graph_text, schedule_program
from mini.types import MiniError, ShapeError

# NAME-DEVICE-MARK.STAGE.mini
FILE = re.compile(r"-([A-Z0-9+]+)-([0-9a-f]{10})\.(schedule|kernel)\.mini$")


def kind_of(device: str) -> str:
  return device.partition(":")[0]


def kinds_of(devices: Sequence[str]) -> str:
  return "+".join(dict.fromkeys(map(kind_of, devices)))


def mark(graph: UOp) -> str:
  """By which the files of a graph's program are found again: a digest of its text."""
  plain = graph_program("g", graph.src, dict(graph.arg.into))
  return digest(graph_text(plain).encode())[:10]


def write(folder: str, devices: Sequence[str], graph: UOp, name: str, stage: str, lines: list[str]) -> None:
  """One stage of a program, as a file of its own."""
  try:
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}-{kinds_of(devices)}-{mark(graph)}.{stage}.mini")
    with open(path, "w", encoding="utf-8") as f:
      f.write("\n".join(lines) + "\n")
  except OSError as e:
    raise MiniError(f"SHOW={stage}:{folder}: {e.strerror}") from None


class Found(NamedTuple):
  path: str
  node: UOp


class Edits:
  """What stands in the files of a folder."""

  def __init__(self, texts: Texts):
    self.schedules: dict[tuple[str, str], Found] = {}  # by devices and mark
    self.kernels: dict[tuple[str, str], Found] = {}  # by kind of device and name
    self.taken: set[Found] = set()
    for path, text in texts:
      if not (m := FILE.search(path)):
        if path.endswith((".schedule.mini", ".kernel.mini")) or os.path.basename(path).count(".") == 1:
          raise MiniError(
            f"{path}: of which program is it? A name such as g0-CPU-0123456789.kernel.mini would fit"
          )
        continue  # another stage, to be read
      where, of, stage = m.groups()
      for node in parsed(text, path, stage):
        for kind in where.split("+") if stage == "kernel" else [where]:
          self.add(stage, (kind, node.arg.what if stage == "kernel" else of), Found(path, node))

  def add(self, stage: str, key: tuple[str, str], found: Found) -> None:
    table = self.kernels if stage == "kernel" else self.schedules
    was = table.setdefault(key, found)
    if was.node is not found.node:
      files = was.path if was.path == found.path else f"{was.path} and {found.path}"
      raise MiniError(f"{files}: two texts of one {stage}, {key[1]}; the one that you edited would fit")

  def tell(self) -> None:
    """What no program took: it changes nothing."""
    if getattr(sys, "last_type", None) is None:  # it did not end in an error, perhaps before it came to that
      for found in dict.fromkeys([*self.schedules.values(), *self.kernels.values()]):
        if found not in self.taken:
          what = f"{found.path}: kernel {found.node.arg.what}" if found.node.op == "kernel" else found.path
          print(f"EDIT: no program that ran takes {what}", file=sys.stderr)


_read: dict[Texts, Edits] = {}


def edits() -> Edits:
  """Those of the setting. MiniError, with path and line, where a file of them does not parse."""
  found = _read.get(config.EDIT)
  if found is None:
    found = _read[config.EDIT] = Edits(config.EDIT)
    atexit.register(found.tell)
  return found


def parsed(text: str, path: str, stage: str) -> list[UOp]:
  """The programs of a file, each of this stage; one of a schedule."""
  from mini.text.parser import parse_file  # which a start does without

  found = parse_file(text, path)
  if any(p.op != stage for p in found) or (stage == "schedule" and len(found) != 1):
    held = ", ".join(p.op for p in found) or "nothing"
    raise ShapeError(f"{path} holds {held}; {'one schedule' if stage == 'schedule' else 'kernels'} would fit")
  return found


def schedule(graph: UOp, made: UOp, device: str) -> UOp:
  """The schedule that EDIT has for a graph, or the one that was made of it."""
  found = edits().schedules.get((kind_of(device), mark(graph)))
  if found is None:
    return made
  edits().taken.add(found)
  same_interface(made, found.node, found.path)
  return schedule_program(found.node.arg._replace(name=made.arg.name), found.node.src)


def not_for_several(graph: UOp, devices: Sequence[str], make: Callable[[], UOp]) -> None:
  """MiniError where EDIT has another schedule for a graph over several devices than `make` gives."""
  found = edits().schedules.get((kinds_of(devices), mark(graph)))
  if found is not None:
    edits().taken.add(found)
    made = make()
    if schedule_program(found.node.arg._replace(name=made.arg.name), found.node.src) is not made:
      raise MiniError(
        f"{found.path}: a schedule over several devices runs as it was made; its kernels can be edited"
      )


def same_interface(was: UOp, now: UOp, where: str) -> None:
  """ShapeError where another schedule takes or gives other memory."""
  here, there = (
    {(m.name, m.where, m.dtype, m.shape) for m in s.arg.memory if isinstance(m.where, str)}
    for s in (was, now)
  )
  if here != there or was.arg.returned != now.arg.returned:
    changed = sorted({f"%{name}" for name, *_ in here ^ there}) or ["what it returns"]
    raise ShapeError(f"{where}: the other schedule differs in {', '.join(changed)}")


def kernel(k: UOp, name: str, device: str) -> UOp | None:
  """The kernel that EDIT has under a name for a device, if any."""
  found = edits().kernels.get((kind_of(device), name))
  if found is None:
    return None
  edits().taken.add(found)
  was, now = ([(p.arg, p.dtype, d) for p, d in directions(x).items()] for x in (k, found.node))
  if sorted(map(str, was)) != sorted(map(str, now)):
    raise ShapeError(f"{found.path}: {name} takes other memory than the kernel in whose place it is")
  return found.node
