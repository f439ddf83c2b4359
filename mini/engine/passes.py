"""The passes by name, for the command line and for tests on text: each takes one program and gives those that
it becomes.

A program at a stage that a pass does not take goes through as it is; a pass on kernels maps those of a
schedule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from math import prod
from typing import NamedTuple

from mini.codegen.heuristic import Machine, write_recipe
from mini.codegen.recipe import apply
from mini.engine.divide import Division, Share
from mini.engine.place import place
from mini.engine.program import assumed, nameless, scheduled, segments_of
from mini.ir.graph import shape
from mini.ir.kernel import all_ranges, kernel, param, params_of, results, stores
from mini.ir.rules import simplify
from mini.ir.text import (
  Copy,
  Memory,
  Plan,
  Run,
  graph_program,
  noted,
  noted_of,
  schedule_program,
  source_program,
  uops_program,
)
from mini.ir.uop import UOp, closed, range_, rkind, rname, rsize, substitute, toposort, uop
from mini.render import NAMES, render_for
from mini.schedule import NONE, Why, schedule
from mini.schedule.flat import in_pieces
from mini.schedule.memory import Need, plan
from mini.schedule.split import split_reductions
from mini.types import DType, dtypes


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


def renamed(k: UOp, name: str) -> UOp:
  return kernel(name, results(k), closed(k))


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
  buffers = [u for u in toposort(*graph.src) if u.op == "buffer"]
  return {
    u: uop("buffer", u.dtype, (), (f"in.{u.arg[0]}", *u.arg[1:]))
    for u in buffers
    if re.match(r"(t|out)[\d.]*$", str(u.arg[0]))
  }


def schedule_pass(graph: UOp, dev: str = "CPU") -> list[UOp]:
  """Kernels that are equal up to their memory become one, which is run several times. dev: where inputs are that say
  nothing else, if there are several devices."""
  table = in_other_words(graph)
  order = toposort(*graph.src)
  said = {u.arg if u.op == "copy" else "".join(u.arg[2:]) for u in order if u.op in ("copy", "buffer")}
  if said - {""} and all(isinstance(d, str) for d in said) and not any(u.op == "shard" for u in order):
    division, names = divided(graph.arg, [substitute(o, table) for o in graph.src], dev)
    if len({v.device for n, v in enumerate(division.values) if n not in division.free}) > 1:
      parts = [schedule_of(share) for share in division.shares]
      return [planned_for(graph.arg, division, names, parts, repeat=True)]
  split = split_reductions(in_pieces([substitute(o, table) for o in graph.src]))
  outputs = {f"out{n}": o for n, o in enumerate(split)}
  why: Why = {}
  kernels, aliases = schedule(outputs, why=why)
  if aliases:  # an output that equals another is copied
    outputs = {n: uop("stage", o.dtype, (o,)) if n in aliases else o for n, o in outputs.items()}
    why.clear()
    kernels, _ = schedule(outputs, why=why)
  return [noted(planned(graph.arg, kernels, list(outputs)), why)]


Kinds = dict[str, tuple[DType, tuple[int, ...]]]  # of memory, by name


def planned(
  name: str,
  steps: Sequence[UOp | Copy],
  outputs: list[str],
  inout: Container[str] = (),
  labels: Sequence[str] = (),
  kinds: Mapping[str, tuple[DType, tuple[int, ...]]] = NONE,
  devices: Mapping[str, str] = NONE,
) -> UOp:
  """Kernels and copies in order, as a schedule whose temporaries have their places in an arena of their device.

  inout: the outputs that hold something before. labels: a name for each kernel, instead of k0, k1, ... kinds: of memory
  that no kernel touches. devices: of memory, by name, if there are several.
  """
  known: dict[UOp, int] = {}
  runs: list[Run | Copy] = []
  needs: dict[str, Need] = {}
  found: Kinds = dict(kinds)
  written: dict[str, None] = {}
  for at, step in enumerate(steps):
    if isinstance(step, Copy):
      runs.append(step)
      touched = [step.source, step.target]
      written[step.target] = None
    else:
      launch = nameless(step)
      runs.append(Run(known.setdefault(launch.kernel, len(known)), launch.names))
      touched = [p.arg[0] for p in params_of(step)]
      found.update({p.arg[0]: (p.dtype, p.arg[1]) for p in params_of(step)})
      written.update(dict.fromkeys(s.src[0].arg[0] for s in stores(step)))
    for n in touched:
      nbytes = prod(found[n][1]) * found[n][0].itemsize
      needs[n] = Need(n, nbytes, needs[n].first if n in needs else at, at)
  temporary = {n for n in written if n not in outputs}
  offsets: dict[str, int] = {}
  for d in dict.fromkeys(devices.get(n, "") for n in needs if n in temporary):
    mine = [need for n, need in needs.items() if n in temporary and devices.get(n, "") == d]
    offsets.update(plan(mine)[0])
  inputs = sorted((n for n in needs if n not in written), key=lambda n: needs[n].first)
  where = {n: "in" if n in inputs else "inout" if n in inout else "out" for n in (*outputs, *inputs)}
  # an output that is its input, and that no kernel touches, needs no memory of the schedule's
  memory = [Memory(n, w, *found[n], devices.get(n, "")) for n, w in where.items() if n in found]
  memory += [Memory(n, offsets[n], *found[n], devices.get(n, "")) for n in needs if n in temporary]
  names = [f"k{n}" for n in range(len(known))]
  launches = [run for run in runs if isinstance(run, Run)]
  for label, run in reversed(list(zip(labels, launches))):
    names[run.kernel] = label
  twice = {n for n in names if names.count(n) > 1}
  names = [f"{n}.{i}" if n in twice else n for i, n in enumerate(names)]
  return schedule_program(Plan(name, tuple(memory), tuple(runs)), tuple(map(renamed, known, names)))


def divided(name: str, roots: list[UOp], dev: str) -> tuple[Division, list[str]]:
  """A graph from text, divided by devices, and what its inputs are called. An input that says nothing else is on `dev`;
  a number is wherever it is read."""
  leaves = [u for u in toposort(*roots) if u.op == "buffer"]
  table = {u: uop("buffer", u.dtype, (), (f"in{n}", u.arg[1])) for n, u in enumerate(leaves)}
  homes = ["".join(u.arg[2:]) or dev for u in leaves]
  free = [len(u.arg) < 3 and not shape(u) for u in leaves]
  placed = [place(o) or dev for o in roots]
  return Division([substitute(o, table) for o in roots], homes, placed, free), [u.arg[0] for u in leaves]


class Scheduled(NamedTuple):
  """What became of one device's share."""

  kernels: list[UOp]  # over memory called in0, out0, t0
  same: list[int]  # of each output the one whose memory it is
  inplace: dict[int, int]  # {output: input}
  labels: list[str]  # of the kernels
  why: Why


def schedule_of(share: Share) -> Scheduled:
  """As a program on some CPU has it, with nothing written over anything."""
  why: Why = {}
  kernels, same, _ = scheduled(uop("graph", dtypes.void, tuple(share.roots)), {}, False, share.levels, why)
  return Scheduled(kernels, same, {}, [], why)


def planned_for(
  name: str, division: Division, names: list[str], parts: Sequence[Scheduled], repeat: bool = False
) -> UOp:
  """One schedule for several devices. names: of the inputs. repeat: an output that equals another is copied."""
  called = dict(enumerate(names))
  outputs: dict[str, None] = {}
  again: list[Copy] = []
  owner: dict[int, int] = {}  # of an output its input, or the equal output
  for share, part in zip(division.shares, parts):
    for k, v in enumerate(share.outputs):
      m = part.same[k]
      owner[v] = share.inputs[part.inplace[m]] if m in part.inplace else share.outputs[m]
  for n, v in enumerate(division.roots):
    v = owner.get(v, v)
    if repeat and v in called and called[v] in outputs:
      again.append(Copy(called[v], f"out{n}"))
    outputs[called.setdefault(v, f"out{n}")] = None
  for v in range(len(division.values)):
    called.setdefault(owner.get(v, v), f"t.{v}")
  called.update({v: called[o] for v, o in owner.items()})
  steps: list[tuple[int, bool, UOp | Copy, str]] = []
  why: Why = {}
  for t in division.transfers:
    steps.append((t.level, False, Copy(called[t.source], called[t.target]), ""))
  devices = {called[v]: value.device for v, value in enumerate(division.values) if v not in division.free}
  for n, (share, part) in enumerate(zip(division.shares, parts)):
    table = {f"in{j}": called[v] for j, v in enumerate(share.inputs)}
    table.update({f"out{k}": called[v] for k, v in enumerate(share.outputs)})
    why.update({table.get(m, f"{m}.{n}" if n else m): reasons for m, reasons in part.why.items()})
    for segment in segments_of(part.kernels, share.levels):
      for at in range(segment.start, segment.stop):
        body = part.kernels[at]
        mine = {p.arg[0] for p in params_of(body) if p.arg[0][0] == "t"}
        table.update({t: f"{t}.{n}" if n else t for t in mine})
        devices.update({table[t]: share.device for t in mine})
        new = {p: param(table.get(p.arg[0], p.arg[0]), p.arg[1], p.dtype) for p in params_of(body)}
        steps.append((segment.level, True, substitute(body, new), part.labels[at] if part.labels else ""))
  steps.sort(key=lambda s: s[:2])
  kinds = {called[v]: (value.dtype, value.shape) for v, value in enumerate(division.values)}
  for copy in again:
    kinds[copy.target], devices[copy.target] = kinds[copy.source], devices[copy.source]
    outputs[copy.target] = None
  labels = [label for *_, label in steps if label]
  program = [*(step for _, _, step, _ in steps), *again]
  inout = {
    called[share.inputs[j]] for share, part in zip(division.shares, parts) for j in part.inplace.values()
  }
  return noted(planned(name, program, list(outputs), inout, labels, kinds, devices), why)


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
  machine = machine or assumed()
  languages = ", ".join(NAMES.values())
  # fmt: off
  return {
    "simplify": Pass(("graph", "kernel", "schedule"), simplify_pass,          "algebra: `python -m mini rules`"),
    "schedule": Pass(("graph",),                      lambda g: schedule_pass(g, dev), "what shares a kernel; memory"),
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
