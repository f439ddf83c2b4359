"""The passes by name, for the command line and for tests on text: each takes one program and gives those that
it becomes.

A program at a stage that a pass does not take goes through as it is; a pass on kernels maps those of a
schedule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from math import prod
from typing import NamedTuple

from mini.codegen.heuristic import Machine, write_recipe
from mini.codegen.recipe import apply
from mini.engine.program import nameless, params_of
from mini.ir.kernel import all_ranges, kernel, stores
from mini.ir.rules import simplify
from mini.ir.text import Memory, Plan, Run, graph_program, schedule_program, source_program, uops_program
from mini.ir.uop import UOp, closed, range_, rkind, rname, rsize, substitute, toposort, uop
from mini.render import NAMES, render_for
from mini.schedule import schedule
from mini.schedule.flat import scatter_in_place
from mini.schedule.memory import Need, plan
from mini.schedule.split import split_reductions


class Pass(NamedTuple):
  """takes: the stages that it works on."""

  takes: tuple[str, ...]
  run: Callable[[UOp], list[UOp]]
  meaning: str


def with_kernels(program: UOp, change: Callable[[UOp], UOp]) -> UOp:
  """A kernel, or each kernel of a schedule, changed; the names of kernels stay."""
  if program.op == "kernel":
    return change(program)
  return schedule_program(program.arg, tuple(change(k) for k in program.src))


def renamed(k: UOp, name: str) -> UOp:
  return kernel(name, stores(k), closed(k))


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
    table[r] = range_(name, rsize(r), rkind(r))
  return substitute(k, table) if table else k


def in_other_words(graph: UOp) -> dict[UOp, UOp]:
  """The inputs of a graph by names that no temporary and no output takes."""
  buffers = [u for u in toposort(*graph.src) if u.op == "buffer"]
  return {
    u: uop("buffer", u.dtype, (), (f"in.{u.arg[0]}", u.arg[1]))
    for u in buffers
    if re.match(r"(t|out)\d*$", str(u.arg[0]))
  }


def schedule_pass(graph: UOp) -> list[UOp]:
  """Kernels that are equal up to their memory become one, which is run several times."""
  table = in_other_words(graph)
  split = split_reductions(scatter_in_place([substitute(o, table) for o in graph.src]))
  outputs = {f"out{n}": o for n, o in enumerate(split)}
  kernels, aliases = schedule(outputs)
  if aliases:  # an output that equals another is copied
    outputs = {n: uop("stage", o.dtype, (o,)) if n in aliases else o for n, o in outputs.items()}
    kernels, _ = schedule(outputs)
  return [planned(graph.arg, kernels, list(outputs))]


def planned(
  name: str, kernels: list[UOp], outputs: list[str], inout: Container[str] = (), labels: Sequence[str] = ()
) -> UOp:
  """Kernels in order, as a schedule whose temporaries have their places in an arena.

  inout: the outputs that hold something before. labels: a name for each kernel, instead of k0, k1, ...
  """
  launches = [nameless(k) for k in kernels]
  known: dict[UOp, int] = {}
  runs: list[Run] = []
  needs: dict[str, Need] = {}
  params: dict[str, UOp] = {}
  for at, (k, launch) in enumerate(zip(kernels, launches)):
    runs.append(Run(known.setdefault(launch.kernel, len(known)), launch.names))
    for p in params_of(k):
      params[p.arg[0]] = p
      first = needs[p.arg[0]].first if p.arg[0] in needs else at
      needs[p.arg[0]] = Need(p.arg[0], prod(p.arg[1]) * p.dtype.itemsize, first, at)
  written_first = {n for k in kernels for n in (s.src[0].arg[0] for s in stores(k))}
  temporary = {n for n in written_first if n not in outputs}
  offsets, _ = plan([need for n, need in needs.items() if n in temporary])
  inputs = sorted((n for n in params if n not in written_first), key=lambda n: needs[n].first)
  memory = [
    Memory(n, "in" if n in inputs else "inout" if n in inout else "out", params[n].dtype, params[n].arg[1])
    for n in (*outputs, *inputs)
  ]
  memory += [Memory(n, offsets[n], params[n].dtype, params[n].arg[1]) for n in needs if n in temporary]
  names = [f"k{n}" for n in range(len(known))]
  for label, run in reversed(list(zip(labels, runs))):
    names[run.kernel] = label
  twice = {n for n in names if names.count(n) > 1}
  names = [f"{n}.{i}" if n in twice else n for i, n in enumerate(names)]
  return schedule_program(Plan(name, tuple(memory), tuple(runs)), tuple(map(renamed, known, names)))


def recipe_pass(machine: Machine) -> Callable[[UOp], list[UOp]]:
  return lambda p: [with_kernels(p, lambda k: write_recipe(k, machine)[0])]


def simplify_pass(program: UOp) -> list[UOp]:
  if program.op == "graph":
    return [graph_program(program.arg, tuple(simplify(list(program.src))))]
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
  machine = machine or Machine()
  # fmt: off
  return {
    "simplify": Pass(("graph", "kernel", "schedule"), simplify_pass,          "algebra: `python -m mini rules`"),
    "schedule": Pass(("graph",),                      schedule_pass,          "what shares a kernel; where memory is"),
    "recipe":   Pass(("kernel", "schedule"),          recipe_pass(machine),   "the heuristic's recipe of each kernel"),
    "uops":     Pass(("kernel", "schedule"),          uops_pass,              "the order of the loops"),
    "source":   Pass(("kernel", "schedule", "uops"),  source_pass(machine, dev), f"the language of --dev: {', '.join(NAMES.values())}"),
  }
  # fmt: on


def step_pass(recipe: str) -> Pass:
  """A recipe that was written by hand, for each kernel."""
  return Pass(("kernel", "schedule"), lambda p: [with_kernels(p, lambda k: apply(k, recipe))], "a recipe")


def run_pass(p: Pass, programs: list[UOp]) -> list[UOp]:
  return [new for program in programs for new in (p.run(program) if program.op in p.takes else [program])]
