"""What the settings SHOW, DEBUG, PROFILE and CHECK do when a program runs. Imported only where one of them is set.

All that is printed goes to stderr and is text that parses: programs in the grammar of the tests, and comments. A
program is shown when it first runs under these settings, wherever its code comes from: once for the environment, and
again in each `with Context(...)`. A routine is one program, so a jitted step is shown once. DEBUG=2 prints times for
every run.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mini.codegen.autoschedule import explained, write_recipe
from mini.config import config
from mini.engine import edited, profile
from mini.engine.device import Device
from mini.engine.passes import planned_for, schedule_of, schedule_pass, with_own_names
from mini.engine.plan import renamed
from mini.engine.program import Program, assumed, machine_of
from mini.ir import interp
from mini.ir.kernel import directions
from mini.ir.rules import simplify
from mini.ir.uop import UOp
from mini.render import NAMES
from mini.render.c import render
from mini.render.cstyle import link
from mini.text.printer import (
  graph_program,
  noted,
  noted_of,
  schedule_program,
  source_program,
  text,
  uops_program,
)
from mini.types import DType, MiniError, from_storage

if TYPE_CHECKING:
  from mini.engine.multi_program import Parts

STAGES = ("graph", "schedule", "kernel", "uops", "source")
FROM_DEBUG = {"source": 4, "kernel": 5, "uops": 6}  # stages that DEBUG prints, and the least value that does
_count = itertools.count()
_lock = threading.Lock()


class CheckError(MiniError):
  """CHECK=1 found a NaN that no input had."""


def run(program: Program, handles: Sequence[Any], segment: int) -> int:
  """Run a segment of a compiled program as the settings ask; the error word."""
  show(program)
  if config.CHECK:
    return run_checked(program, handles, segment)
  sequence, (_, start, stop) = program.sequences[segment], program.segments[segment]
  if config.DEBUG < 2 and not config.PROFILE:
    return sequence.run(handles)
  error, seconds = sequence.timed(handles)
  note(
    program.device, [(c.name, s, c.flops, c.nbytes) for c, s in zip(program.compiled[start:stop], seconds)]
  )
  return error


def evaluate(program: Program, graph: UOp, memory: Callable[[UOp], np.ndarray]) -> list[np.ndarray]:
  """The same on INTERP: the values of the outputs of a graph, which are some of the program's."""
  show(program)
  start = time.perf_counter()
  values = interp.evaluate(list(graph.src), memory, check_node if config.CHECK else None)
  note(program.device, [("graph", time.perf_counter() - start, 0, 0)])
  return values


def emit(lines: list[str]) -> None:
  """To stderr in one piece: other threads may print, too."""
  if lines:
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()


# ---------------------------------------------------------------- SHOW, and what DEBUG prints of a program


class View:
  """A program's stages, by name. What INTERP runs is the graph; its other stages are those of a CPU with 8 lanes."""

  def __init__(self, program: Program, name: str):
    self.program, self.name, self.interpreted = program, name, Device[program.device].interprets
    self.devices = [program.device]

  @property
  def graph(self) -> list[UOp]:
    graph = self.program.graph
    return [noted(graph_program(self.name, graph.src, dict(graph.arg.into)), self.program.labels)]

  @cached_property
  def schedule(self) -> list[UOp]:
    if self.interpreted:
      simple = tuple(simplify(list(self.program.graph.src)))
      return schedule_pass(graph_program(self.name, simple, dict(self.program.graph.arg.into)))
    made = self.program.schedule
    return [noted(schedule_program(made.arg._replace(name=self.name), made.src), noted_of(made))]

  @cached_property
  def recipes(self) -> dict[UOp, str]:
    """{kernel with its recipe: the recipe}."""
    if self.interpreted:
      made = [(k, "") if config.NOOPT else write_recipe(k, assumed()) for k in self.schedule[0].src]
      return {
        with_own_names(renamed(tuned, k.arg.what)): r for k, (tuned, r) in zip(self.schedule[0].src, made)
      }
    distinct = {c.shown: c for c in self.program.compiled}.values()
    return {with_own_names(renamed(c.kernel, c.name)): c.recipe for c in distinct}

  @property
  def kernel(self) -> list[UOp]:
    return list(self.recipes)

  @property
  def uops(self) -> list[UOp]:
    return [uops_program(k) for k in self.recipes]

  @property
  def source(self) -> list[UOp]:
    if self.interpreted:
      c = render({k.arg.what: k for k in self.recipes}, assumed().lanes)
      return [source_program(self.name, "c", c.strip("\n"))]
    codes = list(dict.fromkeys(c.shown for c in self.program.compiled))
    kind = self.program.device.partition(":")[0]
    found = link([(c.source, c.helpers) for c in codes], codes[0].prelude if codes else "")
    return [source_program(self.name, NAMES.get(kind, kind.lower()), found.strip("\n"))]

  def origin(self, name: str, recipe: str) -> list[str]:
    """Comments: who wrote a kernel's recipe, by which estimates; for DEBUG=3 the steps that were refused, too."""
    plain = next((k for k in self.schedule[0].src if k.arg.what == name), None)
    if plain is None or config.NOOPT:
      return []
    machine = assumed() if self.interpreted else machine_of(Device[self.program.device].shim.info)
    ways: list[dict[str, bool]] = [{}, {"alike": True}, {"little": True}]  # as program.py's made_of chooses
    for how in ways if self.program.often else ways[::-1]:
      found, told, refused = explained(renamed(plain, "k"), machine, **how)
      if found == recipe:
        return [f"#   {line}" for line in (told, *(f"refused: {r}" for r in refused if config.DEBUG >= 3))]
    return [f"#   by {'EDIT, ' * bool(config.EDIT)}RECIPES, SEARCH, or for several sizes"]

  def summary(self) -> str:
    """What DEBUG=1 says."""
    if self.interpreted:
      return f"# {self.name}: a graph for the interpreter"
    n, different = len(self.program.runs), len({c.shown for c in self.program.compiled})
    return (
      f"# {self.name}: {n} kernels, {different} different; {self.program.arena_bytes:,} bytes of temporaries"
    )


class PartsView(View):
  """The stages of a program over several devices: one graph, one schedule with copies,
  and what each device has of the rest."""

  def __init__(self, program: Parts, name: str):
    self.parts, self.name = program, name
    self.views = [View(part.program, name) for part in program.parts]
    self.devices = program.on

  @property
  def graph(self) -> list[UOp]:
    return [graph_program(self.name, self.parts.graph.src, dict(self.parts.graph.arg.into))]

  @cached_property
  def schedule(self) -> list[UOp]:
    shares = zip(self.parts.parts, self.parts.division.shares)
    interprets = lambda part: Device[part.program.device].interprets
    found = [schedule_of(share, {}) if interprets(part) else part.program.scheduled for part, share in shares]
    names = [f"in{n}" for n in range(self.parts.division.inputs)]
    return [planned_for(self.name, self.parts.division, names, found)]

  @cached_property
  def recipes(self) -> dict[UOp, str]:
    return {k: recipe for view in self.views for k, recipe in view.recipes.items()}

  def origin(self, name: str, recipe: str) -> list[str]:
    return next((found for view in self.views if (found := view.origin(name, recipe))), [])

  @property
  def source(self) -> list[UOp]:
    return [p for view in self.views for p in view.source]

  def summary(self) -> str:
    head = f"# {self.name}: {len(self.views)} devices, {len(self.parts.division.transfers)} copies"
    return "\n".join([head, *(f"{view.summary()} on {view.program.device}" for view in self.views)])


def show(program: Program | Parts) -> None:
  """Print what SHOW and DEBUG ask for, unless it was printed under these settings."""
  wanted = [s for s in STAGES if s in config.SHOW or config.DEBUG >= FROM_DEBUG.get(s, 9)]
  if program.is_part or (not wanted and not config.DEBUG):
    return
  with _lock:
    key = (program.device, program.graph, *program.inout.items())
    if key in config.shown:
      return
    config.shown.add(key)
    name = f"g{next(_count)}"
    view = View(program, name) if isinstance(program, Program) else PartsView(program, name)
  lines = [view.summary()] if config.DEBUG else []
  if config.DEBUG >= 3 and "kernel" not in wanted:
    lines += [line for k, recipe in view.recipes.items() for line in recipe_lines(view, k, recipe)]
  for stage in wanted:
    told = []
    for p in getattr(view, stage):
      told += recipe_lines(view, p, view.recipes[p]) if stage == "kernel" else []
      told.append(text(p, comments=True))
    if config.SHOW.folder and stage in config.SHOW:
      edited.write(config.SHOW.folder, view.devices, program.graph, name, stage, told)
    else:
      lines += told
  emit(lines)


def recipe_lines(view: View, k: UOp, recipe: str) -> list[str]:
  """A comment that `--recipe` takes, and where it comes from."""
  head = f"# {k.arg.what}: {'; '.join(recipe.splitlines()) or 'no recipe'}"
  return [head, *view.origin(k.arg.what, recipe)]


# ---------------------------------------------------------------- times: DEBUG=2 and PROFILE


def note(device: str, times: list[tuple[str, float, int, int]]) -> None:
  """(kernel, seconds, arithmetic operations, bytes of distinct memory) of launches:
  printed, or summed up for the exit."""
  if config.DEBUG >= 2:
    emit(
      [
        f"# {name:40} {1e3 * s:10.4f} ms {profile.rates(s, flops, nbytes)}"
        for name, s, flops, nbytes in times
      ]
    )
  if config.PROFILE:
    profile.start()
    profile.add_kernels(device, times)


# ---------------------------------------------------------------- CHECK


def nans(x: np.ndarray, dtype: DType) -> int:
  """How many elements of memory are NaN."""
  return int(np.isnan(from_storage(x, dtype)).sum()) if dtype.kind == "f" else 0


def check_node(u: UOp, s: list[np.ndarray], value: np.ndarray) -> None:
  """On INTERP, of each node."""
  if u.op in ("const", "buffer") or value.dtype.kind != "f" or not np.isnan(value).any():
    return
  if not any(x.dtype.kind == "f" and np.isnan(x).any() for x in s):
    raise CheckError(f"CHECK: {u.op} made NaNs of inputs that have none: {u.dtype.short}{list(value.shape)}")


def run_checked(program: Program, handles: Sequence[Any], segment: int) -> int:
  """Kernel by kernel; memory that is written later begins as zeros, so that what is not written yet has no NaN."""
  shim, (_, start, stop) = Device[program.device].shim, program.segments[segment]
  for n, (dtype, s) in enumerate(program.outputs):
    if segment == 0 and n not in program.inplace and program.same[n] == n:
      shim.upload(handles[program.slots[f"out{n}"][0]], bytes(dtype.itemsize * prod(s)))
  begun = {name for run in program.runs[:start] for name in run.names}
  for run, c, call in list(zip(program.runs, program.compiled, program.calls))[start:stop]:
    kernel = program.schedule.src[run.kernel]
    for name in run.names:
      if name in program.temporaries and name not in begun:
        at, nbytes = program.temporaries[name]
        shim.upload(handles[program.arena], bytes(nbytes), at)
        begun.add(name)
    found = []
    for (p, direction), (name, first) in zip(directions(kernel).items(), run.parts):
      slot, at = program.slots[name]
      found.append(Region(p.dtype, direction, handles[slot], at + first * p.dtype.itemsize, name))
    sizes = [prod(p.arg[1]) for p in directions(kernel)]
    clean = not any(nans(r.read(shim, n), r.dtype) for r, n in zip(found, sizes) if r.direction != "out")
    sequence = shim.sequence([call._replace(queue=0, waits=())])
    error = sequence.run(handles) or sequence.error()
    if error:
      return error
    for r, n in zip(found, sizes):
      x = r.read(shim, n) if r.direction != "in" and clean else np.empty(0, r.dtype.storage)
      if nans(x, r.dtype):
        raise CheckError(
          f"CHECK: kernel {c.name} wrote {nans(x, r.dtype)} NaNs to {r.name}, and read none; the first is element "
          f"{int(np.isnan(from_storage(x, r.dtype)).argmax())}\n{text(kernel)}")  # fmt: skip
  return 0


class Region(NamedTuple):
  """A part of a device's memory that a kernel reads or writes."""

  dtype: DType
  direction: str
  handle: Any
  at: int  # bytes
  name: str

  def read(self, shim: Any, size: int) -> np.ndarray:
    return shim.download(self.handle, size * self.dtype.itemsize, self.at).view(self.dtype.storage)
