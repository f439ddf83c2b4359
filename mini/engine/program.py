"""A program: a graph that was scheduled, compiled and given memory once, and runs any number of times on other data."""
from __future__ import annotations

import hashlib
from typing import NamedTuple, Sequence

from mini import stats
from mini.codegen.heuristic import Machine, write_recipe
from mini.codegen.linearize import is_loop
from mini.config import config
from mini.engine.buffer import Buffer
from mini.engine.device import Device, Opened
from mini.ir.graph import shape
from mini.ir.kernel import access, all_ranges, is_inline, kernel, param, stores, written
from mini.ir.uop import UOp, closed, rkind, rsize, substitute, toposort
from mini.schedule import schedule
from mini.schedule.memory import Need, plan
from mini.schedule.split import split_reductions
from mini.types import DType


class Launch(NamedTuple):
  """A kernel, free of names, and what it runs on this time."""

  kernel: UOp  # its params are a0, a1, ...
  names: tuple[str, ...]  # of the memory that a0, a1, ... stand for
  label: str  # for people: what it writes


class Compiled(NamedTuple):
  """What one kernel became on one device."""

  kernel: UOp  # with its recipe applied
  recipe: str
  name: str
  source: str
  helpers: dict[str, str]
  extent: int  # of its parallel range
  flops: int
  nbytes: int


def params_of(k: UOp) -> list[UOp]:
  """The params of a kernel, written ones first: the order of its arguments."""
  outs = written(k)
  loaded = dict.fromkeys(u.src[0] for u in toposort(k) if u.op == "load" and u.src[0].op == "param")
  return outs + [p for p in loaded if p not in outs]


def nameless(k: UOp) -> Launch:
  """Kernels that are equal up to their memory become one node."""
  params = params_of(k)
  table = {p: param(f"a{n}", p.arg[1], p.dtype) for n, p in enumerate(params)}
  body = substitute(k, table)
  return Launch(kernel("k", stores(body), closed(body)), tuple(p.arg[0] for p in params), k.arg.what)


def cost(k: UOp) -> tuple[int, int]:
  """(arithmetic operations, bytes of distinct memory touched)."""
  flops = 0
  memory: dict[UOp, int] = {}
  outs = dict.fromkeys(closed(k))
  for u in toposort(k):
    if u.op in ("load", "store"):
      target = access(u)[0]
      if target.op == "param":
        times = 1
        for r in u.free if u.op == "load" else outs:
          times *= rsize(r)
        size = target.dtype.itemsize
        for n in target.arg[1]:
          size *= n
        memory[target] = min(size, memory.get(target, 0) + times * target.dtype.itemsize)
    elif not is_inline(u) and u.op not in ("kernel", "stage"):
      times = 1
      for r in u.src[0].free if u.op in ("reduce", "scan") else u.free:
        times *= rsize(r)
      flops += times
  return flops, sum(memory.values())


def compile_kernels(kernels: Sequence[UOp], opened: Opened) -> dict[UOp, Compiled]:
  """Recipes and sources of kernels that this device has not seen, compiled together."""
  machine = Machine(opened.shim.info.lanes, opened.shim.info.threads)
  fresh = [k for k in dict.fromkeys(kernels) if k not in opened.compiled]
  made: list[tuple[UOp, Compiled]] = []
  for k in fresh:
    tuned, recipe = (k, "") if config.NOOPT else write_recipe(k, machine)
    source, helpers = opened.render(tuned)
    name = family(k) + "_" + hashlib.sha1(source.encode()).hexdigest()[:10]
    extent = next((rsize(r) for r in all_ranges(tuned) if rkind(r) == "par"), 1)
    made.append((k, Compiled(tuned, recipe, name, source.replace("KERNEL", name), helpers, extent, *cost(k))))
  opened.build([c for _, c in made])
  opened.compiled.update(made)
  return opened.compiled


def family(k: UOp) -> str:
  """What a profile calls a kernel: its shape of work and its output sizes."""
  from mini.ir.kernel import contractions

  reduces = any(u.op == "reduce" for u in toposort(k))
  what = "contract" if contractions(k) else "rows" if reduces and closed(k) else "reduce" if reduces else "map"
  return "_".join([what, *(str(rsize(r)) for r in closed(k) if is_loop(r))])


class Program:
  """graph: `outputs` node over buffer leaves named in0, in1, ... (data) and c0, c1, ... (numbers)."""

  def __init__(self, outputs: Sequence[UOp], inputs: dict[str, tuple[DType, tuple[int, ...]]], device: str):
    self.device = device
    self.outputs = [(o.dtype, shape(o)) for o in outputs]
    self.slots = {name: n for n, name in enumerate(inputs)}
    names = {f"out{n}": split_reductions(o) for n, o in enumerate(outputs)}
    kernels, aliases = schedule(names)
    stats.count(schedules=1)
    self.launches = [nameless(k) for k in kernels]
    for n in range(len(outputs)):
      self.slots[f"out{n}"] = len(inputs) + int(aliases.get(f"out{n}", f"out{n}")[3:])
    self.arena = len(inputs) + len(outputs)
    temps = self.place(kernels)
    opened = Device[device]
    compiled = compile_kernels([launch.kernel for launch in self.launches], opened)
    self.compiled = [compiled[launch.kernel] for launch in self.launches]
    calls = []
    for launch, c in zip(self.launches, self.compiled):
      args = [temps.get(name) or (self.slots[name], 0) for name in launch.names]
      if opened.guarded(c.kernel):
        args.append((-1, 0))
      calls.append((opened.functions[c.name], args, c.extent, c.flops / 8 + c.nbytes / 16))
    self.sequence = opened.shim.sequence(calls)

  def place(self, kernels: list[UOp]) -> dict[str, tuple[int, int]]:
    """{temporary: (slot of the arena, byte offset)}."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    size: dict[str, int] = {}
    for n, k in enumerate(kernels):
      for p in params_of(k):
        name, s = p.arg
        if name in self.slots:
          continue
        first.setdefault(name, n)
        last[name] = n
        nbytes = p.dtype.itemsize
        for m in s:
          nbytes *= m
        size[name] = nbytes
    offsets, self.arena_bytes = plan([Need(name, size[name], first[name], last[name]) for name in size])
    return {name: (self.arena, at) for name, at in offsets.items()}

  def run(self, inputs: list, outputs: list[Buffer]) -> None:
    """inputs: the device's handles, in the order of the slots."""
    opened = Device[self.device]
    arena = opened.alloc(self.arena_bytes) if self.arena_bytes else None
    handles = [*inputs, *(o.memory for o in outputs), *([arena] if arena is not None else [])]
    error = self.sequence.run(handles)
    stats.count(kernels=len(self.launches))
    if arena is not None:
      opened.free(arena)
    if error:
      raise IndexError(f"index {(error & 0xFFFFFFFF) - (error >> 31 & 1) * (1 << 32)} is out of bounds for an axis of size {error >> 32}")
