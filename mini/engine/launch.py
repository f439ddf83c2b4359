"""Kernels and schedules that were read from text, run on arrays: by the interpreter, or compiled."""

from __future__ import annotations

import time
from math import prod
from typing import Any

import numpy as np

from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.passes import kernels_of
from mini.engine.program import Compiled, cost, params_of, rendered
from mini.ir.interp import evaluate, run_kernel, run_schedule
from mini.ir.kernel import directions
from mini.ir.text import Memory, Plan, Run, input_names
from mini.ir.uop import UOp
from mini.types import dtypes
from runtime.base import Call

Arrays = dict[str, np.ndarray]  # by name, as the interpreter holds them


def interface(program: UOp) -> list[Memory]:
  """The memory that a program gets from outside, by name. What a graph returns is called out0, out1, ..."""
  if program.op == "graph":
    return [Memory(name[1:], "in", u.dtype, u.arg[1]) for u, name in input_names(program.src).items()]
  if program.op == "schedule":
    return [m for m in program.arg.memory if isinstance(m.where, str)]
  return [Memory(p.arg[0], d, p.dtype, p.arg[1]) for p, d in directions(program).items()]


def interpret(program: UOp, data: Arrays) -> Arrays:
  """What a program writes, by name, as the reference interpreter computes it. `data` is left as it is."""
  data = {name: x.copy() for name, x in data.items()}
  if program.op == "graph":
    names = {u: name[1:] for u, name in input_names(program.src).items()}
    values = evaluate(list(program.src), lambda u: data[names[u]])
    return {f"out{n}": v for n, v in enumerate(values)}
  (run_schedule if program.op == "schedule" else run_kernel)(program, data)
  return {m.name: data[m.name] for m in interface(program) if m.where != "in"}


class Launchable:
  """A kernel or a schedule on a device: compiled, with memory of its own."""

  def __init__(self, program: UOp, device: str = "CPU"):
    self.opened = Device[device]
    self.program = program
    self.plan = program.arg if program.op == "schedule" else self.plan_of(program)
    kernels = kernels_of(program)
    self.work = [cost(k) for k in kernels]
    compiled = [self.compiled(k, w) for k, w in zip(kernels, self.work)]
    self.opened.build(compiled)
    self.arguments = [m for m in self.plan.memory if isinstance(m.where, str)]
    offsets = {m.name: m.where for m in self.plan.memory if isinstance(m.where, int)}
    self.slots = {m.name: (n, 0) for n, m in enumerate(self.arguments)}
    self.slots.update({name: (len(self.arguments), at) for name, at in offsets.items()})
    ends = [m.where + m.dtype.itemsize * prod(m.shape) for m in self.plan.memory if isinstance(m.where, int)]
    self.arena_bytes = max([1, *ends])
    calls: list[Any] = []
    for run in self.plan.runs:
      c = compiled[run.kernel]
      slots = [self.slots[n] for n in run.names] + [(-1, 0)] * c.guarded
      calls.append(Call(self.opened.functions[c.name], slots, c.extent, c.nanoseconds, c.group, name=c.name))
    self.sequence = self.opened.shim.sequence(calls)

  @staticmethod
  def plan_of(kernel: UOp) -> Plan:
    """A kernel as a schedule of one run."""
    memory = interface(kernel)
    return Plan(kernel.arg.what, tuple(memory), (Run(0, tuple(m.name for m in memory)),))

  def compiled(self, k: UOp, work: tuple[int, int]) -> Compiled:
    assert params_of(k) == list(directions(k)), "the arguments of a kernel have one order"
    return rendered(k, "", "text", self.opened, work)

  @property
  def flops(self) -> int:
    return sum(self.work[run.kernel][0] for run in self.plan.runs)

  def run(self, data: Arrays, repeat_seconds: float = 0.2) -> tuple[Arrays, float]:
    """(what it writes, the seconds of the fastest of several runs). IndexError where a guard fired."""
    buffers = [
      Buffer.of(data.get(m.name, np.zeros(m.shape, m.dtype.np)), m.dtype, self.opened.name)
      for m in self.arguments
    ]
    arena = Buffer(self.opened.name, dtypes.uint8, self.arena_bytes)
    handles = [b.memory for b in (*buffers, arena)]
    error = self.sequence.run(handles) or self.sequence.error()
    if error:
      raise IndexError(f"an index is out of bounds for an axis of size {error >> 32}")
    found = {
      m.name: b.numpy().reshape(m.shape).copy() for m, b in zip(self.arguments, buffers) if m.where != "in"
    }
    return found, self.fastest(handles, repeat_seconds)

  def fastest(self, handles: list[Any], seconds: float) -> float:
    best, start = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - start < seconds:
      t = time.perf_counter()
      self.sequence.run(handles)
      self.opened.shim.wait()
      best = min(best, time.perf_counter() - t)
    return best
