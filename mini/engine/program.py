"""A program: a graph that was scheduled, compiled and given memory once, and runs any number of times on other data."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from math import prod
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from mini.codegen.autoschedule import Machine, write_recipe
from mini.codegen.recipe import RecipeError, apply
from mini.codegen.threads import threads
from mini.config import config
from mini.engine import edited, plan_cache
from mini.engine.buffer import Buffer
from mini.engine.cache import result_cache
from mini.engine.device import FUNCTIONS, Code, Device, Opened
from mini.engine.plan import (
  Scheduled,
  Segment,
  as_schedule,
  late,
  name_of,
  renamed,
  scheduled,
  segments_of,
  sharing,
  taken_over,
  updates,
)
from mini.engine.plan_cache import Entry, Kept
from mini.engine.queues import Span, assign
from mini.engine.sizes import ALONE, Alike, Family, adds_products, large, numbers_of, structure
from mini.ir.graph import shape
from mini.ir.interp import evaluate
from mini.ir.kernel import access, all_ranges, directions, extent, guarded, is_inline, params_of
from mini.ir.outside import MOST_SIZE, out_of_bounds
from mini.ir.rules import rules_here, simplify
from mini.ir.uop import UOp, closed, rkind, rsize, toposort, without_collector
from mini.schedule import NONE
from mini.schedule.memory import aligned
from mini.stats import stats
from mini.text.printer import Memory, Plan, Run, graph_program
from mini.text.verifier import VerifyError, verify
from mini.types import AxisError, from_storage
from runtime.base import Call, Info


class Own(NamedTuple):
  """Which kernels have code of their own, where others are the same but for sizes."""

  sizes: int  # as many have it
  nanoseconds: int  # of a core: and what takes as long
  little: int = 0  # nanoseconds: what takes less has one recipe and one code for all sizes
  alike: bool = False  # does the rest have one recipe?


# kernels of a jitted function, and others
OFTEN, ONCE = Own(4, 50_000), Own(1, 500_000_000, 200_000, True)


class Compiled(NamedTuple):
  """What one kernel became on one device."""

  kernel: UOp  # with its recipe applied
  recipe: str
  code: Code
  extent: int  # of its parallel range
  group: int  # threads of a group that it was written for; 0: any number
  guarded: bool  # takes the error word as its last argument
  flops: int
  nbytes: int
  sizes: tuple[int, ...] = ()  # that code of several kernels is called with (engine/sizes.py)
  written: Code | None = None  # the same with its sizes written out, for people

  @property
  def shown(self) -> Code:
    return self.written or self.code

  @property
  def name(self) -> str:
    return self.shown.name

  @property
  def nanoseconds(self) -> float:
    return nanoseconds(self.flops, self.nbytes)

  @property
  def entry(self) -> Entry:
    """How its code is called: the recipe may load its memory in another order."""
    params = tuple(
      (int(p.arg[0][1:]), p.dtype.itemsize, p.dtype.itemsize * prod(p.arg[1]), way != "in")
      for p, way in directions(self.kernel).items()
    )
    return Entry(self.code, params, self.extent, self.nanoseconds, self.group, self.guarded, self.sizes)


def nanoseconds(flops: int, nbytes: int) -> float:
  """What it takes one core, roughly."""
  return flops / 8 + nbytes / 16


def cost(k: UOp) -> tuple[int, int]:
  """(arithmetic operations, bytes of distinct memory touched)."""
  flops = 0
  memory: dict[UOp, int] = {}
  outs = dict.fromkeys(closed(k))
  for u in toposort(k):
    if u.op in ("load", "store"):
      target = access(u)[0]
      if target.op == "param":
        itemsize = target.dtype.itemsize
        touched = itemsize * prod(map(rsize, u.free if u.op == "load" else outs))
        memory[target] = min(itemsize * prod(target.arg[1]), memory.get(target, 0) + touched)
    elif not is_inline(u) and u.op not in ("kernel", "stage"):
      flops += prod(map(rsize, u.src[0].free if u.op in ("reduce", "scan") else u.free))
  return flops, sum(memory.values())


def compile_kernels(kernels: Sequence[UOp], opened: Opened, often: bool = True) -> dict[UOp, Compiled]:
  """Recipes and sources of kernels that no device of this kind has seen;
  what this one has not seen, compiled together. often: are they to run often?"""
  machine = machine_of(opened.shim.info)
  known = opened.compiled.setdefault((config.code, often), {})
  fresh = [k for k in dict.fromkeys(kernels) if k not in known]
  made = [(k, made_of(k, machine, opened, OFTEN if often else ONCE)) for k in fresh]
  check("recipe", [c.kernel for _, c in made])
  known.update(made)
  found = {k: known[k] for k in kernels}
  opened.build([c.code for c in found.values()])
  while len(known) > max(FUNCTIONS, len(found)):
    known.pop(next(iter(known)), None)
  return found


def made_of(k: UOp, machine: Machine, opened: Opened, own: Own) -> Compiled:
  """A kernel with its recipe and code: of its own, or what it shares with other sizes."""
  work, shares = cost(k), opened.is_host and not config.NOOPT
  if (fixed := as_written(k, opened.name)) is not None:
    return rendered(*fixed, opened, work, name_of(k))
  searched = config.SEARCH or result_cache()
  if shares and nanoseconds(*work) < own.little and not searched:
    remembered(opened.alike, (config.code, structure(k)), Alike).little = [k]
    return with_sizes(rendered(*write_recipe(k, machine, little=True), opened, work, name_of(k)), opened, 0)
  shares = shares and nanoseconds(*work) < own.nanoseconds
  tuned, recipe = with_recipe(k, machine, opened, shares and own.alike and not searched)
  make = lambda: rendered(tuned, recipe, opened, work, name_of(k))
  if not shares or adds_products(tuned):
    return make()
  if searched or not own.alike:
    return with_sizes(make(), opened, own.sizes)
  alike = remembered(opened.alike, (config.code, structure(k)), Alike)
  if not alike.recipes and not alike.little:
    c = make()
    bare = c.code._replace(name="", source=c.code.source.replace(c.name, ""))
    if len(alike.own) < own.sizes or bare in alike.own:
      code, _ = alike.own.setdefault(bare, (c.code, k))
      return c._replace(code=code, written=c.code)
  try:
    general, with_it = alike.general(k, recipe, machine.threads)
    others = lambda: [rendered(t, general, opened, cost(u)) for u, t in alike.with_recipe(general)]
    return with_sizes(rendered(with_it, general, opened, work, name_of(k)), opened, 0, others)
  except RecipeError:
    alike.alone = [*alike.alone[1 - ALONE :], k]
    return with_sizes(make(), opened, own.sizes)


def as_written(k: UOp, device: str) -> tuple[UOp, str] | None:
  """A kernel that needs no recipe, or has one of the user's: of EDIT, or whose text says how it runs, or by RECIPES."""
  mine = edited.kernel(k, name_of(k), device) if config.EDIT else None
  if mine is not None or any(rkind(r) != "loop" for r in all_ranges(k)):
    return mine or k, ""
  return pinned(k)


def pinned(k: UOp) -> tuple[UOp, str] | None:
  """The kernel with the recipe that RECIPES has for it, and that recipe. RecipeError where it does not apply."""
  for pattern, recipe in () if config.NOOPT else config.RECIPES:
    if fnmatchcase(name_of(k), pattern):
      try:
        return apply(k, recipe), recipe
      except RecipeError as e:
        raise RecipeError(f"RECIPES, {pattern}, for {name_of(k)}: {e}") from None
  return None


def remembered(table: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
  """What a table has for a key; the oldest entries go."""
  found = table.setdefault(key, make())
  while len(table) > FUNCTIONS:
    table.pop(next(iter(table)), None)
  return found


def with_recipe(k: UOp, machine: Machine, opened: Opened, alike: bool = False) -> tuple[UOp, str]:
  """The kernel with the recipe that a search has found or, where none has, with the heuristic's; and the recipe."""
  if config.NOOPT:
    return k, ""
  tuned, recipe = write_recipe(k, machine, alike=alike)
  if opened.name.partition(":")[0] == "CPU" and (config.SEARCH or result_cache()):
    from mini.engine.search import recipe_for  # which a start without results does without

    found = recipe_for(k, recipe, machine, opened.shim.compiler.key(""))
    if found != recipe:
      try:
        return apply(k, found), found
      except RecipeError:  # steps have changed since it was found
        pass
  return tuned, recipe


def rendered(tuned: UOp, recipe: str, opened: Opened, work: tuple[int, int], name: str = "") -> Compiled:
  """A kernel with its recipe applied, in the device's language; by default under a name that is that of its source."""
  code = named(opened.render(tuned), name)
  return Compiled(tuned, recipe, code, extent(tuned), threads(tuned), guarded(tuned), *work)


def named(code: Code, name: str = "", kind: str = "text") -> Code:
  name = name or f"{kind}_{hashlib.sha1(code.source.encode()).hexdigest()[:10]}"
  return code._replace(name=name, source=code.source.replace("KERNEL", name))


def with_sizes(
  c: Compiled, opened: Opened, most: int, others: Callable[[], Sequence[Compiled]] | None = None
) -> Compiled:
  """The kernel, with code that it shares with those that differ from it in sizes alone. most: so many have code of
  their own; without any all numbers are arguments or, where others show which are, those that seem to be sizes."""
  source = c.code.source.replace(c.name, "KERNEL")
  text, numbers = numbers_of(source)
  key = hashlib.sha256("\0".join([text, c.code.prelude, *map(str, c.code.helpers)]).encode()).digest()
  alike = remembered(opened.families, key, Family)
  kind = c.name.partition("_")[0] + "_n"
  made = lambda source: named(c.code._replace(source=source), kind=kind)
  asked = others() if others and not alike.shared else ()
  found = [numbers_of(o.code.source.replace(o.name, "KERNEL")) for o in asked]
  seen = None if others is None else [n for t, n in found if t == text]
  evident = seen or (seen is not None and alike.shared)
  always = () if most else large(source, numbers, c.recipe) if evident else range(len(numbers))
  first = len(params_of(c.kernel)) + c.guarded
  code, sizes = alike.code(c.code, source, numbers, first, most, made, always, seen)
  return c._replace(code=code, sizes=sizes, written=c.code)


def machine_of(info: Info) -> Machine:
  """What recipes depend on: what the device says of itself, and of a CPU what MACHINE says instead."""
  machine = Machine(
    info.lanes, info.threads, registers=info.registers, l1_bytes=info.l1_bytes, l2_bytes=info.l2_bytes,
    stack_bytes=info.stack_bytes, kind=info.kind, group=info.group, shared_bytes=info.shared_bytes, units=info.units,
    matrices=info.matrices, fast=config.FAST, streams=info.streams, issue=info.issue,
  )  # fmt: skip
  return machine.described(config.MACHINE) if info.kind == "cpu" else machine


def assumed() -> Machine:
  """The machine of recipes that are only shown: the same everywhere, but for what MACHINE says."""
  return Machine().described(config.MACHINE)


def check(stage: str, programs: Sequence[UOp]) -> None:
  """CHECK=1: the verifier, between two passes."""
  for p in programs if config.CHECK else ():
    try:
      verify(p)
    except VerifyError as e:
      raise VerifyError(e.node, f"after {stage}: {e}") from None


def binary(nbytes: float) -> str:
  """1536 -> 1.5 KiB"""
  units = ["B", "KiB", "MiB", "GiB", "TiB"]
  while nbytes >= 1024 and len(units) > 1:
    nbytes, units = nbytes / 1024, units[1:]
  return f"{nbytes:.0f} B" if units[0] == "B" else f"{nbytes:.1f} {units[0]}"


class Bound(NamedTuple):
  """A program's memory in one run."""

  handles: list[Any]  # of each slot
  inputs: Sequence[Buffer]
  outputs: Sequence[Buffer]
  numbers: bytes


def simplified(labels: Mapping[Any, Sequence[str]]) -> dict[UOp, list[str]]:
  """Names of values, for what these have become."""
  found: dict[UOp, list[str]] = {}
  known = rules_here()
  for u, several in labels.items():
    found.setdefault(known.result(u) if known in u.memo else u, []).extend(several)
  return found


class Program:
  """outputs: graph nodes over buffer leaves named in0, in1, ... (data) and c0, c1, ... (numbers, 8 bytes apart).

  It is launched in segments, one for each level of its inputs; where all are there at once, which is the rule, in one.
  """

  is_part = False  # of a program over several devices, which shows itself

  @without_collector
  def __init__(
    self,
    outputs: Sequence[UOp],
    inputs: int,
    device: str,
    inout: dict[int, int] | None = None,
    levels: Sequence[int] = (),
    labels: Mapping[Any, Sequence[str]] = NONE,
  ):
    """labels: what users call some values, for SHOW=graph.
    inout: of a jitted function: {output: input} whose old value is of no use once the output is there;
    `inplace` are those that share memory.
    levels: of inputs that come later than at once, such as copies from other devices."""
    self.device, self.inout, self.levels = device, inout or {}, levels
    self.often = inout is not None  # of a jitted function
    self.opened = opened = Device[device]
    if config.EDIT:
      edited.edits()  # reads them
    # INTERP is the oracle: it runs the graph as it was built.
    check("tensor", [graph_program("g", tuple(outputs))])
    simple = outputs if opened.interprets or config.NOOPT else simplify(list(outputs))
    self.graph = graph_program("g", tuple(simple), taken_over(simple, self.inout))
    self.labels = simplified(labels)
    self.outputs = [(o.dtype, shape(o)) for o in outputs]
    self.devices = [device] * len(outputs)
    self.same = list(range(len(outputs)))
    self.inplace: dict[int, int] = {}
    self.calls: list[Call] = []
    self.temporaries: dict[str, tuple[int, int]] = {}  # -> (byte offset in the arena, bytes)
    self.arena_bytes = 0
    self.segments = [Segment(0, 0, 0)]
    self.plan = Plan("g", (), ())
    self.kept: Kept | None = None
    if opened.interprets:
      stats["schedules"] += 1
      self.made = []
      self.output_levels = self.levels_of_outputs()
      self.segments = [Segment(level, 0, 0) for level in sorted(set(self.output_levels))]
    else:
      self.build(inputs)

  def build(self, inputs: int) -> None:
    """Schedule the graph, place its memory, compile its kernels and put their launches in sequence: what an earlier
    process has kept of that, or anew."""
    opened = self.opened
    check("simplify", [self.graph])
    self.gpu = opened.shim.info.kind == "gpu"
    self.numbers, self.arena = inputs + len(self.outputs), inputs + len(self.outputs) + 1
    self.slots = {f"in{n}": (n, 0) for n in range(inputs)}
    self.slots.update({f"out{n}": (inputs + n, 0) for n in range(len(self.outputs))})
    fresh = [o for n, o in enumerate(self.outputs) if n not in self.inout]
    ahead = opened.ahead(d.itemsize * prod(s) for d, s in fresh)
    machine = machine_of(opened.shim.info)
    key = plan_cache.key_of(self.graph, inputs, self.inout, self.levels, self.device, machine, self.often)
    self.kept = plan_cache.get(key)
    if self.kept is not None:
      self.plan, self.segments = self.kept.plan, [Segment(*s) for s in self.kept.segments]
    else:
      stats["schedules"] += 1
      check("schedule", self.scheduled.kernels)
      self.plan, self.segments = self.schedule.arg, [Segment(0, 0, len(self.schedule.arg.runs))]
      if self.levels:
        self.segments = segments_of(self.scheduled.kernels, self.levels)
    self.same, self.inplace = sharing(self.plan.returned), updates(self.plan.returned)
    self.place(self.plan.memory)
    ahead += opened.ahead([self.arena_bytes])
    entries = self.kept.entries if self.kept else [c.entry for c in self.made]
    # general code of larger kernels depends on the sizes that came before
    if not self.kept and not any(c.sizes and c.nanoseconds > ONCE.little for c in self.made):
      plan_cache.put(key, self.schedule, self.segments, entries)
    self.calls = self.called(entries)
    self.sequences = [opened.shim.sequence(self.calls[s.start : s.stop]) for s in self.segments]
    del ahead  # not before: it is all in use at once

  @cached_property
  def scheduled(self) -> Scheduled:
    return scheduled(self.graph, self.gpu, self.levels)

  @cached_property
  def schedule(self) -> UOp:
    """The kernels, their order and their memory, as a node that prints."""
    if self.kept is not None:
      return plan_cache.schedule_of(self.kept)
    found = self.scheduled
    inout = {f"in{n}" for n in updates(found.results).values()}
    made = as_schedule(self.graph, found, inout)
    return edited.schedule(self.graph, made, self.device) if config.EDIT and not self.levels else made

  @property
  def runs(self) -> list[Run]:
    return [run for run in self.plan.runs if isinstance(run, Run)]

  @cached_property
  def made(self) -> list[Compiled]:
    """What became of each kernel of the schedule."""
    kernels = [renamed(k, "k") for k in self.schedule.src]
    found = compile_kernels(kernels, self.opened, self.often)
    return [found[k] for k in kernels]

  @property
  def compiled(self) -> list[Compiled]:
    """What became of the kernel of each run."""
    return [self.made[run.kernel] for run in self.runs]

  def levels_of_outputs(self) -> list[int]:
    level: dict[UOp, int] = {}
    for u in toposort(self.graph):
      named = late(self.levels).get(u.arg[0], 0) if u.op == "buffer" else 0
      level[u] = max([named, *(level[s] for s in u.src)])
    return [level[o] for o in self.graph.src]

  def called(self, entries: Sequence[Entry]) -> list[Call]:
    """The launches as the shim wants them; each segment is numbered from 0. entries: of the kernels of the schedule."""
    calls: list[Call] = []
    touched: list[list[Span]] = []
    functions = self.opened.build([e.code for e in entries])
    for run in self.runs:
      e, parts = entries[run.kernel], run.parts
      args, spans = [], []
      for n, itemsize, nbytes, writes in e.params:
        name, start = parts[n]
        slot, at = self.slots[name][0], self.slots[name][1] + start * itemsize
        args.append((slot, at))
        spans.append(Span(slot, at, at + nbytes, writes))
      touched.append(spans)
      args += [(-1, 0)] * e.guarded + [(-2, n) for n in e.sizes]
      calls.append(Call(functions[e.code], args, e.extent, e.nanoseconds, e.group, name=e.code.name))
    queues = self.opened.shim.info.queues
    for s in self.segments if queues > 1 else ():
      for n, (queue, waits) in enumerate(assign(touched[s.start : s.stop], queues), s.start):
        calls[n] = calls[n]._replace(queue=queue, waits=waits)
    return calls

  def place(self, memory: Sequence[Memory]) -> None:
    """Temporaries and numbers get a slot and a byte offset."""
    for m in memory:
      if isinstance(m.where, int):
        self.slots[m.name] = self.arena, m.where
        self.temporaries[m.name] = m.where, m.dtype.itemsize * prod(m.shape)
      elif m.name[0] == "c":
        self.slots[m.name] = self.numbers, 8 * int(m.name[1:])
    self.arena_bytes = aligned(max((at + size for at, size in self.temporaries.values()), default=0))

  def run(
    self,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    numbers: bytes = b"",
    ran: list[int] | None = None,
  ) -> None:
    """Launch everything. numbers: the values of c0, c1, ..., 8 bytes each. outputs[n] is left alone where `same[n]` is
    another: its value is there. ran: gets an entry when all has run, even if Ctrl-C comes then.
    IndexError if a guard fired."""
    bound = self.bind(inputs, outputs, numbers)
    for n in range(len(self.segments)):
      self.launch(bound, n, ran)

  @property
  def is_one_call(self) -> bool:
    """Is a run one call into C, whose memory is all the host's?"""
    return self.opened.is_host and not self.opened.interprets and len(self.segments) == 1

  def run_at(self, addresses: array[int], ran: list[int]) -> None:
    """`run`, where that is one call. addresses: of inputs and outputs; the last two, of what is between, are set."""
    if self.arena_bytes:
      try:
        arena = self.opened.take(self.arena_bytes)
      except MemoryError as e:
        raise self.lacking(e) from None
      addresses[-1] = addresses[-2] = arena.address
    self.sequences[0].run_at(addresses, ran)
    stats["kernels"] += len(self.calls)
    if ran[-1]:
      self.check(ran[-1])

  def bind(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], numbers: bytes) -> Bound:
    """All the memory that a run needs. MemoryError, with nothing launched yet."""
    opened = self.opened
    if opened.interprets:
      return Bound([], inputs, outputs, numbers)
    handles = [b.memory for b in inputs]
    handles += [b.memory for b in outputs]
    if numbers or self.arena_bytes:
      try:
        arena = opened.alloc(self.arena_bytes) if self.arena_bytes else None
        handles.append(opened.alloc(len(numbers)) if numbers else arena)
      except MemoryError as e:
        raise self.lacking(e) from None
      if numbers:
        opened.shim.upload(handles[-1], numbers)
      handles.append(handles[-1] if arena is None else arena)
    return Bound(handles, inputs, outputs, numbers)

  def launch(self, bound: Bound, segment: int, ran: list[int] | None = None) -> None:
    """Launch a segment; those before it were launched. The rest is as in `run`."""
    watched = config.watched
    ran = [] if ran is None else ran
    if self.opened.interprets:
      self.interpret(bound, segment, watched)
      ran.append(0)
      return
    if watched:
      from mini.engine import show

      ran.append(show.run(self, bound.handles, segment))
    else:
      self.sequences[segment].run(bound.handles, ran)
      if not self.opened.is_host and any(c.guarded for c in self.made):
        results = (
          b for n, b in enumerate(bound.outputs) if n not in self.inout
        )  # what is updated must stay readable
        self.opened.unchecked.setdefault(self, {}).update((id(b), ref(b)) for b in results)
    stats["kernels"] += self.segments[segment].stop - self.segments[segment].start
    if ran[-1]:
      self.check(ran[-1])

  def check(self, error: int | None = None) -> None:
    """AxisError for an error word that is not 0; without one, for that which an asynchronous device kept."""
    if error is None:
      error = max((s.error() for s in self.sequences), key=bool)
    if error:
      index, size = (error & 0xFFFFFFFF) - (error >> 31 & 1) * (1 << 32), error >> 32
      what, size = self.guarded(size)
      if 0 <= index < size:  # what the word cannot hold is 0 there
        raise AxisError(f"{what}: an index beyond 32 bits is out of bounds for an axis of size {size}")
      raise out_of_bounds(what, index, size)

  def guarded(self, size: int) -> tuple[str, int]:
    """The operations by whose index an axis is reached that has this size in the error word, and its size."""
    found = {(u.op, shape(u.src[0])[u.arg]) for u in toposort(self.graph) if u.op == "gather"}
    found |= {(u.op, shape(u)[u.arg[1]]) for u in toposort(self.graph) if u.op == "scatter"}
    found = {(op, n) for op, n in found if min(n, MOST_SIZE) == size}
    return " or ".join(sorted({op for op, _ in found})) or "gather", max((n for _, n in found), default=size)

  def lacking(self, e: MemoryError) -> MemoryError:
    """The error of memory that cannot be had: it names this program and what it needs."""
    return MemoryError(self.needs(str(e)))

  def needs(self, why: str) -> str:
    """The text of a MemoryError."""
    kernels = list(dict.fromkeys(c.name.rpartition("_")[0] for c in self.calls)) or ["a graph"]
    more = f" and {len(kernels) - 4} more" if len(kernels) > 4 else ""
    outputs = [n for n, m in enumerate(self.same) if n == m and n not in self.inplace]
    buffers = {f"out{n}": self.outputs[n] for n in outputs}
    buffers.update(
      {u.arg[0]: (u.dtype, shape(u)) for u in toposort(self.graph) if u.op == "buffer" and u.arg[0][0] == "i"}
    )
    total = self.arena_bytes + sum(d.itemsize * prod(s) for d, s in buffers.values())
    lines = [
      (d.itemsize * prod(s), f"{name}: {d.short}[{','.join(map(str, s))}]")
      for name, (d, s) in buffers.items()
    ]
    lines += [(nbytes, f"temporary {name}") for name, (_, nbytes) in self.temporaries.items()]
    largest = sorted(lines, key=lambda line: -line[0])[:5]
    head = f"the program of {', '.join(kernels[:4])}{more} needs {binary(total)} at once: {why}"
    return "\n".join([head, *(f"  {what}   {binary(nbytes)}" for nbytes, what in largest)])

  def interpret(self, bound: Bound, segment: int, watched: bool) -> None:
    """The graph itself, in NumPy: the outputs of this segment's level. Counted as one kernel."""
    mine = [n for n, level in enumerate(self.output_levels) if level == self.segments[segment].level]
    graph, numbers = graph_program("g", tuple(self.graph.src[n] for n in mine)), bound.numbers
    read = {u.arg[0] for u in toposort(graph) if u.op == "buffer"}
    memory = {f"in{n}": b.numpy() for n, b in enumerate(bound.inputs) if f"in{n}" in read}
    cells = {f"c{n}": numbers[8 * n : 8 * n + 8] for n in range(len(numbers) // 8)}

    def value(u: UOp) -> np.ndarray:
      cell = cells.get(u.arg[0])
      if cell is None:
        return memory[u.arg[0]].reshape(shape(u))
      return from_storage(np.frombuffer(cell, u.dtype.storage, 1), u.dtype).reshape(())

    if watched:
      from mini.engine import show

      values = show.evaluate(self, graph, value)
    else:
      values = evaluate(list(graph.src), value)
    stats["kernels"] += 1
    for n, x in zip(mine, values):
      bound.outputs[n].write(x)
