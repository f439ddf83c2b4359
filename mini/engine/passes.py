"""The passes by name, for the command line and for tests on text: each takes one program and gives those that
it becomes.

A program at a stage that a pass does not take goes through as it is; a pass on kernels maps those of a
schedule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from mini.codegen.autoschedule import Machine, write_recipe
from mini.codegen.recipe import apply
from mini.engine.device_of import place
from mini.engine.partition import Division, Share
from mini.engine.plan import (
  Scheduled,
  as_schedule,
  planned,
  scheduled,
  segments_of,
  sharing,
  taken_over,
  updates,
)
from mini.engine.program import assumed
from mini.ir.graph import buffer, shape
from mini.ir.kernel import all_ranges, param, params_of
from mini.ir.rules import simplify
from mini.ir.uop import UOp, range_, rkind, rname, rsize, substitute, toposort, uop
from mini.render import NAMES, render_for
from mini.schedule import Why
from mini.text.printer import (
  Copy,
  graph_program,
  noted,
  noted_of,
  schedule_program,
  source_program,
  uops_program,
)


class Pass(NamedTuple):
  """takes: the stages that it works on."""

  takes: tuple[str, ...]
  run: Callable[[UOp], list[UOp]]
  meaning: str


def with_kernels(program: UOp, change: Callable[[UOp], UOp]) -> UOp:
  """A kernel, or each kernel of a schedule, changed; the names of kernels stay."""
  if program.op == "kernel":
    return change(program)
  return noted(schedule_program(program.arg, tuple(change(k) for k in program.src)), noted_of(program))


def with_own_names(k: UOp) -> UOp:
  """k with no range called like one of its parameters: in text they share their names."""
  taken = {p.arg[0] for p in params_of(k)}
  clash = [r for r in all_ranges(k) if rname(r) in taken]
  free = taken | {rname(r) for r in all_ranges(k)}
  table = {}
  for r in clash:
    name = rname(r) + "_"
    while name in free:
      name += "_"
    free.add(name)
    table[r] = range_(name, rsize(r), rkind(r), r.src)
  return substitute(k, table) if table else k


def in_other_words(graph: UOp) -> dict[UOp, UOp]:
  """The inputs of a graph by names that no temporary and no output takes."""
  buffers = [u for u in toposort(*graph.src, *(b for _, b in graph.arg.into)) if u.op == "buffer"]
  taken = {u.arg[0] for u in buffers}
  found = {}
  for u in buffers:
    if re.match(r"(t|out)[\d.]*$", str(u.arg[0])):
      ways = (f"in{n or ''}.{u.arg[0]}" for n in count())
      name = next(name for name in ways if name not in taken)
      found[u] = uop("buffer", u.dtype, (), (name, *u.arg[1:]))
  return found


def as_given(name: str, known: Container[str]) -> str:
  """What an input of a schedule was called in its graph. known: the names there."""
  return name if name in known else re.sub(r"^in\d*\.", "", name)


def schedule_pass(graph: UOp, gpu: bool = False, dev: str = "CPU") -> list[UOp]:
  """What a program of this graph runs. gpu: for a device with groups of threads. dev: where inputs are that say nothing
  else, if there are several devices."""
  table = in_other_words(graph)
  roots = tuple(substitute(o, table) for o in graph.src)
  name, into = graph.arg.name, {n: table.get(b, b) for n, b in graph.arg.into}
  order = toposort(*roots)
  said = {u.arg if u.op == "copy" else "".join(u.arg[2:]) for u in order if u.op in ("copy", "buffer")}
  if said - {""} and all(isinstance(d, str) for d in said) and not any(u.op == "shard" for u in order):
    division, leaves = divided(roots, [*into.values()], dev)
    if len({v.device for n, v in enumerate(division.values) if n not in division.free}) > 1:
      inout = {n: leaves.index(b) for n, b in into.items()}
      parts = [schedule_of(share, division.taken_over(share, inout), gpu) for share in division.shares]
      return [planned_for(name, division, [b.arg[0] for b in leaves], parts)]
  named = graph_program(name, roots, into)
  return [as_schedule(named, scheduled(named, gpu), {b.arg[0] for b in into.values()})]


def divided(roots: Sequence[UOp], unread: Sequence[UOp], dev: str) -> tuple[Division, list[UOp]]:
  """A graph from text, divided by devices, and its inputs. An input that says nothing else is on `dev`; a number is
  wherever it is read. unread: inputs, some of which the graph may not read."""
  leaves = [u for u in toposort(*roots, *unread) if u.op == "buffer"]
  table = {u: buffer(f"in{n}", u.arg[1], u.dtype) for n, u in enumerate(leaves)}
  homes = ["".join(u.arg[2:]) or dev for u in leaves]
  free = [len(u.arg) < 3 and not shape(u) for u in leaves]
  placed = [place(o) or dev for o in roots]
  return Division([substitute(o, table) for o in roots], homes, placed, free), leaves


def schedule_of(share: Share, inout: Mapping[int, int], gpu: bool = False) -> Scheduled:
  """Of what one of several devices does."""
  roots = tuple(share.roots)
  return scheduled(graph_program("g", roots, taken_over(roots, inout)), gpu, share.levels)


def planned_for(name: str, division: Division, names: list[str], parts: Sequence[Scheduled]) -> UOp:
  """One schedule for several devices. names: of the inputs."""
  called = dict(enumerate(names))
  owner: dict[int, int] = {}  # of an output its input, or the equal output
  for share, part in zip(division.shares, parts):
    inplace = updates(part.results)
    for k, m in enumerate(sharing(part.results)):
      owner[share.outputs[k]] = share.inputs[inplace[m]] if m in inplace else share.outputs[m]
  results = [called.setdefault(owner.get(v, v), f"out{n}") for n, v in enumerate(division.roots)]
  for v in range(len(division.values)):
    called.setdefault(owner.get(v, v), f"t.{v}")
  called.update({v: called[o] for v, o in owner.items()})
  steps: list[tuple[int, bool, UOp | Copy]] = []
  why: Why = {}
  for t in division.transfers:
    steps.append((t.level, False, Copy(called[t.source], called[t.target])))
  devices = {called[v]: value.device for v, value in enumerate(division.values) if v not in division.free}
  for n, (share, part) in enumerate(zip(division.shares, parts)):
    table = {f"in{j}": called[v] for j, v in enumerate(share.inputs)}
    table.update({f"out{k}": called[v] for k, v in enumerate(share.outputs)})
    why.update({table.get(m, f"{m}.{n}" if n else m): reasons for m, reasons in part.why.items()})
    for segment in segments_of(part.kernels, share.levels):
      for body in part.kernels[segment.start : segment.stop]:
        mine = {p.arg[0] for p in params_of(body) if p.arg[0][0] == "t"}
        table.update({t: f"{t}.{n}" if n else t for t in mine})
        devices.update({table[t]: share.device for t in mine})
        new = {p: param(table.get(p.arg[0], p.arg[0]), p.arg[1], p.dtype) for p in params_of(body)}
        steps.append((segment.level, True, substitute(body, new)))
  steps.sort(key=lambda s: s[:2])
  kinds = {called[v]: (value.dtype, value.shape) for v, value in enumerate(division.values)}
  taken = zip(division.shares, (updates(part.results) for part in parts))
  inout = {called[share.inputs[j]] for share, inplace in taken for j in inplace.values()}
  return planned(name, [step for *_, step in steps], results, inout, why, kinds, devices)


def recipe_pass(machine: Machine) -> Callable[[UOp], list[UOp]]:
  return lambda p: [with_kernels(p, lambda k: write_recipe(k, machine)[0])]


def simplify_pass(program: UOp) -> list[UOp]:
  if program.op == "graph":
    return [graph_program(program.arg.name, tuple(simplify(list(program.src))), dict(program.arg.into))]
  return [with_kernels(program, lambda k: simplify([k])[0])]


def kernels_of(program: UOp) -> list[UOp]:
  return {"kernel": [program], "schedule": list(program.src), "uops": list(program.src)}.get(program.op, [])


def uops_pass(program: UOp) -> list[UOp]:
  return [uops_program(k) for k in kernels_of(program)]


def source_pass(machine: Machine, dev: str) -> Callable[[UOp], list[UOp]]:
  def run(program: UOp) -> list[UOp]:
    named = {k.arg.what: with_own_names(k) for k in kernels_of(program)}
    name = program.arg.name if program.op == "schedule" else next(iter(named))
    return [source_program(name, NAMES[dev], render_for(dev, named, machine.lanes).strip("\n"))]

  return run


def passes(machine: Machine | None = None, dev: str = "CPU") -> dict[str, Pass]:
  """THE LIST, in the order in which a graph goes through it. dev: whose language the source is in."""
  machine = machine or assumed()
  schedules = lambda g: schedule_pass(g, machine.kind == "gpu", dev)
  languages = ", ".join(NAMES.values())
  # fmt: off
  return {
    "simplify": Pass(("graph", "kernel", "schedule"), simplify_pass,          "algebra: `python -m mini rules`"),
    "schedule": Pass(("graph",),                      schedules,              "what shares a kernel; memory"),
    "recipe":   Pass(("kernel", "schedule"),          recipe_pass(machine),   "the heuristic's recipe of each kernel"),
    "uops":     Pass(("kernel", "schedule"),          uops_pass,              "the order of the loops"),
    "source":   Pass(("kernel", "schedule", "uops"),  source_pass(machine, dev), f"the language of --dev: {languages}"),
  }
  # fmt: on


def step_pass(recipe: str) -> Pass:
  """A recipe that was written by hand, for each kernel."""
  return Pass(("kernel", "schedule"), lambda p: [with_kernels(p, lambda k: apply(k, recipe))], "a recipe")


def run_pass(p: Pass, programs: list[UOp]) -> list[UOp]:
  return [new for program in programs for new in (p.run(program) if program.op in p.takes else [program])]
