"""Files of stages: SHOW=schedule,kernel:FOLDER writes those of the programs that run, and EDIT=FOLDER has the next run
take what stands there. A schedule is found by the graph that it is of, a kernel by its name.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import sys

from mini.config import config
from mini.engine.cache import digest
from mini.ir.kernel import directions
from mini.ir.uop import UOp
from mini.text.printer import graph_program, graph_text, schedule_program
from mini.types import MiniError, ShapeError

FILE = re.compile(r"-([0-9a-f]{10})\.(schedule|kernel)\.mini$")


def mark(graph: UOp) -> str:
  """By which the files of a graph's program are found again: a digest of its text."""
  plain = graph_program("g", graph.src, dict(graph.arg.into))
  return digest(graph_text(plain).encode())[:10]


def write(folder: str, graph: UOp, name: str, stage: str, lines: list[str]) -> None:
  """One stage of a program, as a file of its own."""
  try:
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"{name}-{mark(graph)}.{stage}.mini"), "w", encoding="utf-8") as f:
      f.write("\n".join(lines) + "\n")
  except OSError as e:
    raise MiniError(f"SHOW={stage}:{folder}: {e.strerror}") from None


@functools.cache
def taken() -> set[str]:
  """The paths of EDIT that a program took. When the process ends, it says which none did: those change nothing."""
  found: set[str] = set()

  def tell() -> None:
    for path, _ in config.EDIT:
      if FILE.search(path) and path not in found:
        print(f"EDIT: {path} is of no program that ran", file=sys.stderr)

  if config.EDIT:
    atexit.register(tell)
  return found


def files(stage: str) -> list[tuple[str, str, str]]:
  """(path, mark, text) of the files of EDIT for a stage."""
  taken()
  found = ((path, FILE.search(path), text) for path, text in config.EDIT)
  return [(path, m[1], text) for path, m, text in found if m and m[2] == stage]


def parsed(text: str, path: str, stage: str, count: int | None = None) -> list[UOp]:
  """The programs of a file, each of this stage, and so many."""
  from mini.text.parser import parse_file  # which a start does without

  found = parse_file(text, path)
  if count not in (None, len(found)) or any(p.op != stage for p in found):
    wanted = f"one {stage}" if count else f"{stage}s"
    raise ShapeError(f"{path} holds {', '.join(p.op for p in found)}; {wanted} would fit")
  return found


def schedule(graph: UOp, made: UOp) -> UOp:
  """The schedule that EDIT has for a graph, or the one that was made of it."""
  wanted = mark(graph)
  for path, of, text in files("schedule"):
    if of == wanted:
      taken().add(path)
      (node,) = parsed(text, path, "schedule", 1)
      same_interface(made, node, path)
      return schedule_program(node.arg._replace(name=made.arg.name), node.src)
  return made


def same_interface(was: UOp, now: UOp, where: str) -> None:
  """ShapeError where another schedule takes or gives other memory."""
  here, there = (
    {(m.name, m.where, m.dtype, m.shape) for m in s.arg.memory if isinstance(m.where, str)}
    for s in (was, now)
  )
  if here != there or was.arg.returned != now.arg.returned:
    changed = sorted({f"%{name}" for name, *_ in here ^ there}) or ["what it returns"]
    raise ShapeError(f"{where}: the other schedule differs in {', '.join(changed)}")


def kernel(k: UOp, name: str) -> UOp | None:
  """The kernel that EDIT has under a name, if any."""
  for path, _, text in files("kernel"):
    if f"kernel {name}(" not in text:
      continue
    for mine in parsed(text, path, "kernel"):
      if mine.arg.what == name:
        taken().add(path)
        was, now = ([(p.arg, p.dtype, d) for p, d in directions(x).items()] for x in (k, mine))
        if sorted(map(str, was)) != sorted(map(str, now)):
          raise ShapeError(f"{path}: {name} takes other memory than the kernel in whose place it is")
        return mine
  return None
