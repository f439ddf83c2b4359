"""Kernels and schedules that were read from text, run on arrays: by the interpreter, or compiled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from mini.engine.buffer import Buffer
from mini.engine.device import Device, Opened
from mini.engine.passes import kernels_of
from mini.engine.program import Compiled, cost, rendered
from mini.ir.interp import evaluate, run_kernel, run_schedule
from mini.ir.kernel import directions
from mini.ir.uop import UOp
from mini.text.printer import Copy, Memory, Plan, Run, input_names
from mini.types import AxisError, dtypes, from_storage, to_bfloat16
from runtime.base import Call, DeviceError

Arrays = dict[str, np.ndarray]  # by name, as the interpreter holds them


# The largest difference that --test allows, relative to 1 + the largest result: a device sums in another order.
TOLERANCE = {dtypes.float16: 1e-2, dtypes.bfloat16: 5e-2, dtypes.float32: 1e-4, dtypes.float64: 1e-9}


def interface(program: UOp) -> list[Memory]:
  """The memory that a program gets from outside, by name. What a graph returns is called out0, out1, ..."""
  if program.op == "graph":
    return [Memory(name[1:], "in", u.dtype, u.arg[1]) for u, name in input_names(program).items()]
  if program.op == "schedule":
    return [m for m in program.arg.memory if isinstance(m.where, str)]
  return [Memory(p.arg[0], d, p.dtype, p.arg[1]) for p, d in directions(program).items()]


def returned(program: UOp) -> list[str]:
  """The memory of each output, by the name that it has in what `interpret` gives."""
  if program.op == "graph":
    return [f"out{n}" for n in range(len(program.src))]
  if program.op == "schedule":
    return [*program.arg.returned]
  return [m.name for m in interface(program) if m.where != "in"]


def interpret(program: UOp, data: Arrays) -> Arrays:
  """What a program writes, by name, as the reference interpreter computes it. `data` is left as it is."""
  data = {name: x.copy() for name, x in data.items()}
  if program.op == "graph":
    names = {u: name[1:] for u, name in input_names(program).items()}
    values = evaluate(list(program.src), lambda u: data[names[u]])
    return {f"out{n}": v for n, v in enumerate(values)}
  (run_schedule if program.op == "schedule" else run_kernel)(program, data)
  wanted = returned(program)
  return {m.name: data[m.name] for m in interface(program) if m.where != "in" or m.name in wanted}


class Launchable:
  """A kernel or a schedule on a device, or on those that the schedule names: compiled, with memory of its own."""

  def __init__(self, program: UOp, device: str = "CPU"):
    self.program, self.device = program, device
    self.plan = program.arg if program.op == "schedule" else self.plan_of(program)
    self.kernels = kernels_of(program)
    self.work = [cost(k) for k in self.kernels]
    self.arguments = [m for m in self.plan.memory if isinstance(m.where, str)]
    self.home = {m.name: m.device for m in self.plan.memory}  # "": on every device
    self.devices = list(dict.fromkeys(self.device_of(run) for run in self.plan.runs if isinstance(run, Run)))
    self.devices += [d for d in dict.fromkeys(self.home.values()) if d and d not in self.devices]
    if "" in self.home.values() or not self.devices:  # memory of which none is said
      self.devices = [device, *(d for d in self.devices if d != device)]
    self.slots = {d: self.placed(d) for d in self.devices}
    self.steps = list(self.in_steps())

  @staticmethod
  def plan_of(kernel: UOp) -> Plan:
    """A kernel as a schedule of one run."""
    memory = interface(kernel)
    return Plan(kernel.arg.what, tuple(memory), (Run(0, tuple(m.name for m in memory)),))

  def device_of(self, run: Run) -> str:
    return next((d for n in run.names if (d := self.home[n])), self.device)

  def placed(self, device: str) -> dict[str, tuple[int, int]]:
    """(slot, byte offset) of each memory on this device: its arguments in order, and behind them its arena."""
    here = [m for m in self.plan.memory if m.device in ("", device)]
    arguments = [m for m in here if isinstance(m.where, str)]
    slots = {m.name: (n, 0) for n, m in enumerate(arguments)}
    slots.update({m.name: (len(arguments), m.where) for m in here if isinstance(m.where, int)})
    return slots

  def in_steps(self) -> Iterator[Any]:
    """(device, sequence) for runs that follow each other on one device; copies."""
    opened = {d: Device[d] for d in self.devices}
    if said := [d for d in self.devices if opened[d].interprets]:
      raise DeviceError(
        f"{said[0]} interprets programs: it is no device that one of them can name, but --dev={said[0]} is"
      )
    used = {(run.kernel, self.device_of(run)) for run in self.plan.runs if isinstance(run, Run)}
    made = {(n, d): self.compiled(n, opened[d]) for n, d in sorted(used)}
    functions = {d: opened[d].build([c.code for (_, on), c in made.items() if on == d]) for d in self.devices}
    for key, group in groupby(
      self.plan.runs, lambda run: "" if isinstance(run, Copy) else self.device_of(run)
    ):
      if not key:
        yield from group
        continue
      calls = []
      for run in group:
        c = made[run.kernel, key]
        slots = []
        for p, (n, start) in zip(directions(c.kernel), run.parts):
          slot, at = self.slots[key][n]
          slots.append((slot, at + start * p.dtype.itemsize))
        slots += [(-1, 0)] * c.guarded
        calls.append(Call(functions[key][c.code], slots, c.extent, c.nanoseconds, c.group, name=c.name))
      yield key, opened[key].shim.sequence(calls)

  def compiled(self, n: int, opened: Opened) -> Compiled:
    k = self.kernels[n]
    return rendered(k, "", opened, self.work[n])

  @property
  def flops(self) -> int:
    return sum(self.work[run.kernel][0] for run in self.plan.runs if isinstance(run, Run))

  def run(self, data: Arrays, repeat_seconds: float = 0.2) -> tuple[Arrays, float]:
    """(what it writes, the seconds of the fastest of several runs, for as long as `repeat_seconds`). IndexError where a
    guard fired."""
    buffers: dict[str, dict[str, Buffer]] = {}
    handles: dict[str, list[Any]] = {}
    for d in self.devices:
      mine = [m for m in self.arguments if m.device in ("", d)]
      buffers[d] = {
        m.name: Buffer.of(data.get(m.name, np.zeros(m.shape, m.dtype.np)), m.dtype, d) for m in mine
      }
      arena = [m for m in self.plan.memory if isinstance(m.where, int) and m.device in ("", d)]
      ends = [m.where + m.dtype.itemsize * prod(m.shape) for m in arena if isinstance(m.where, int)]
      handles[d] = [
        *(b.memory for b in buffers[d].values()),
        Device[d].zeros(max([1, *ends])),
      ]  # what nobody writes
    self.once(handles)
    for step in self.steps:
      if not isinstance(step, Copy) and (error := step[1].error()):
        raise AxisError(f"an index is out of bounds for an axis of size {error >> 32 & 0xFFFFFFFF}")
    found = {}
    for m in self.arguments:
      if m.where != "in" or m.name in self.plan.returned:
        d = m.device or self.device
        raw = Device[d].shim.download(buffers[d][m.name].memory, m.dtype.itemsize * prod(m.shape))
        found[m.name] = from_storage(raw.view(m.dtype.storage), m.dtype).reshape(m.shape).copy()
    return found, self.fastest(handles, repeat_seconds) if repeat_seconds else 0.0

  def once(self, handles: dict[str, list[Any]]) -> None:
    kinds = {m.name: m.dtype.itemsize * prod(m.shape) for m in self.plan.memory}
    for step in self.steps:
      if isinstance(step, Copy):
        source, target = (self.home[n] or self.device for n in step[:2])
        slot, at = self.slots[source][step.source]
        data = Device[source].shim.download(handles[source][slot], kinds[step.source], at)
        slot, at = self.slots[target][step.target]
        Device[target].shim.upload(handles[target][slot], data, at)
      elif error := step[1].run(handles[step[0]]):
        raise AxisError(f"an index is out of bounds for an axis of size {error >> 32 & 0xFFFFFFFF}")

  def fastest(self, handles: dict[str, list[Any]], seconds: float) -> float:
    best, start = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - start < seconds:
      t = time.perf_counter()
      self.once(handles)
      for d in self.devices:
        Device[d].shim.wait()
      best = min(best, time.perf_counter() - t)
    return best


# ---------------------------------------------------------------- random inputs, and results that should agree


def random_array(m: Memory, among: list[Memory], rng: np.random.Generator) -> np.ndarray:
  """Normal numbers; integers that are indices of every axis there is; zeros for what is written."""
  if m.where == "out":
    return np.zeros(m.shape, m.dtype.np)
  if m.dtype.kind != "f":
    below = min([n for other in among for n in other.shape if n > 1], default=2)
    return rng.integers(0, 2 if m.dtype.kind == "b" else min(below, 100), m.shape).astype(m.dtype.np)
  x = np.asarray(rng.standard_normal(m.shape), m.dtype.np)
  return to_bfloat16(x) if m.dtype is dtypes.bfloat16 else x


def difference(want: np.ndarray, got: np.ndarray) -> float:
  """The largest, relative to 1 + the largest wanted result; infinite where only one is NaN or infinite."""
  if want.dtype.kind != "f":
    return float((want != got).any())
  with np.errstate(all="ignore"):
    same = (want == got) | (np.isnan(want) & np.isnan(got))
    apart = np.where(same, 0, np.abs(want.astype(np.float64) - got.astype(np.float64)))
    scale = 1 + np.abs(want[np.isfinite(want)]).max(initial=0)
  return float("inf") if not np.isfinite(apart).all() else float(apart.max(initial=0) / scale)
