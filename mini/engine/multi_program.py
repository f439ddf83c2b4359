"""A program over several devices: one program for each device, in segments, and copies between them.

What a device does (partition.py) is one program, with all that is copied to it as inputs; a segment of it is what can
run once the copies of one level have arrived. So no kernel is there because of the devices, only copies.
"""

from __future__ import annotations

import contextvars
import threading
import time
from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from mini.config import config
from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.partition import Division, Share, Transfer
from mini.engine.plan import taken_over
from mini.engine.program import Bound, Program
from mini.ir.uop import UOp
from mini.stats import stats
from mini.text.printer import graph_program


class Part(NamedTuple):
  """What one device does. Its inputs and outputs are numbers of values."""

  program: Program
  inputs: list[int]
  outputs: list[int]


class Step(NamedTuple):
  """What is done at once."""

  level: int
  device: str
  what: Transfer | tuple[int, int]  # (number of the part, its segment)
  after: tuple[int, ...] = ()  # the numbers of steps of other devices


class Parts:
  """Runs like a Program. The first values are its inputs."""

  is_part = False
  is_one_call = False

  def __init__(
    self,
    roots: Sequence[UOp],
    devices: Sequence[str],
    homes: Sequence[str],
    inout: dict[int, int] | None = None,
    free: Sequence[bool] = (),
  ):
    """roots: over leaves in0, in1, ..., which are on `devices`;
    those that are `free` are copied wherever they are read.
    homes: where each root is to be."""
    self.device, self.inout = homes[0], inout or {}
    self.often = inout is not None  # of a jitted function
    self.division = Division(roots, devices, homes, free)
    self.graph = graph_program("g", self.division.graph, taken_over(self.division.graph, self.inout, devices))
    self.values, self.roots = self.division.values, self.division.roots
    self.parts = [self.part(share) for share in self.division.shares]
    self.settle()
    self.steps = self.ordered()
    if config.EDIT:
      from mini.engine import edited, show

      edited.not_for_several(self.graph, self.on, lambda: show.PartsView(self, "g").schedule[0])

  @property
  def on(self) -> list[str]:
    """The devices that compute something."""
    return [part.program.device for part in self.parts]

  def part(self, share: Share) -> Part:
    inout = self.division.taken_over(share, self.inout) if self.often else None
    program = Program(share.roots, len(share.inputs), share.device, inout, share.levels)
    program.is_part = True
    return Part(program, share.inputs, share.outputs)

  def settle(self) -> None:
    """Which values share memory, and with it the roots."""
    self.owner = list(range(len(self.values)))
    for part in self.parts:
      for k, v in enumerate(part.outputs):
        k = part.program.same[k]
        self.owner[v] = part.inputs[part.program.inplace[k]] if k in part.program.inplace else part.outputs[k]
    owners = [self.owner[v] for v in self.roots]
    self.same = [owners.index(v) for v in owners]
    self.inplace = {n: v for n, v in enumerate(owners) if v in self.inout.values() and self.same[n] == n}
    self.devices = [self.values[v].device for v in self.roots]

  # ---------------------------------------------------------------- steps

  def ordered(self) -> list[Step]:
    """By levels: first what arrives, then what is computed, on devices that are asynchronous before the others."""
    transfers = self.division.transfers
    steps = [Step(t.level, self.values[t.target].device, t) for t in transfers]
    for n, part in enumerate(self.parts):
      steps += [Step(s.level, part.program.device, (n, k)) for k, s in enumerate(part.program.segments)]
    steps.sort(key=lambda s: (s.level, not isinstance(s.what, Transfer), Device[s.device].is_host))
    number = {s.what: n for n, s in enumerate(steps)}
    maker = {v: n for n, part in enumerate(self.parts) for v in part.outputs}
    arrival = {t.target: t for t in transfers}

    def after(s: Step) -> tuple[int, ...]:
      if not isinstance(s.what, Transfer):
        part = self.parts[s.what[0]]
        return tuple(number[t] for v in part.inputs if (t := arrival.get(v)) and t.level <= s.level)
      source = s.what.source
      if source in arrival:
        return (number[arrival[source]],)
      if source not in maker:
        return ()
      segments = self.parts[maker[source]].program.segments
      last = max(k for k, segment in enumerate(segments) if segment.level <= self.division.level[source])
      return (number[maker[source], last],)

    return [s._replace(after=after(s)) for s in steps]

  def run(
    self,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    numbers: bytes = b"",
    ran: list[int] | None = None,
  ) -> None:
    """As Program.run."""
    if config.SHOW or config.DEBUG:
      from mini.engine import show

      show.show(self)
    Run(self, inputs, outputs, numbers).all([] if ran is None else ran)

  def lacking(self, e: MemoryError) -> MemoryError:
    return self.parts[0].program.lacking(e) if self.parts else e


class Run:
  """One run of a program over several devices.

  All memory is there before anything runs. Each CPU works in a thread of its own, and one thread works for all devices
  that are asynchronous. A Ctrl-C waits until everything has run.
  """

  def __init__(self, parts: Parts, inputs: Sequence[Buffer], outputs: Sequence[Buffer], numbers: bytes):
    self.parts = parts
    found: list[Any] = [*inputs, *[None] * (len(parts.values) - len(inputs))]
    for v, b in zip(reversed(parts.roots), reversed(outputs)):
      if parts.owner[v] >= len(inputs):
        found[parts.owner[v]] = b
    for v, (device, dtype, s) in enumerate(parts.values):
      if found[parts.owner[v]] is None:
        found[parts.owner[v]] = Buffer(device, dtype, prod(s))
    self.buffers: list[Buffer] = [found[v] for v in parts.owner]
    self.bound = [self.bind(part, numbers) for part in parts.parts]
    self.done = [threading.Event() for _ in parts.steps]
    self.failed: list[BaseException] = []  # what kept something from running
    self.late: list[BaseException] = []  # what was found wrong once it had run

  def bind(self, part: Part, numbers: bytes) -> Bound:
    d, free = part.program.device, self.parts.division.free
    inputs = [self.buffers[v].on(d) if v in free else self.buffers[v] for v in part.inputs]
    return part.program.bind(inputs, [self.buffers[v] for v in part.outputs], numbers)

  # ---------------------------------------------------------------- threads

  def all(self, ran: list[int]) -> None:
    """Every step. ran: gets an entry if they all have run."""
    running = allocate_lock()  # an Event is Python inside, where a signal leaves it broken
    running.acquire()
    started: list[int] = []
    finished: list[int] = []  # gets an entry before the lock is released
    interrupts: list[BaseException] = []
    args = (contextvars.copy_context(), running, finished, ran)
    try:
      started.extend(map(start_new_thread, [self.supervise], [args]))  # one call into C: no signal in between
    except KeyboardInterrupt as e:
      interrupts.append(e)
    while started and not finished:
      try:
        running.acquire()
      except KeyboardInterrupt as e:
        interrupts.append(e)
    for wrong in (*self.failed, *self.late, *interrupts):
      raise wrong

  def supervise(
    self, context: contextvars.Context, running: LockType, finished: list[int], ran: list[int]
  ) -> None:
    """A thread that signals do not reach starts the others, and waits for them."""
    threads: list[threading.Thread] = []
    try:
      groups: dict[str, list[int]] = {}
      for n, step in enumerate(self.parts.steps):
        groups.setdefault(step.device if Device[step.device].is_host else "", []).append(n)
      mine, *others = groups.values()
      for steps in others:
        t = threading.Thread(target=context.copy().run, args=(self.work, steps))
        t.start()
        threads.append(t)
      context.run(self.work, mine)
    except BaseException as e:  # noqa: BLE001 (raised by who waits)
      self.fail(e)
    finally:
      for t in threads:
        t.join()
      if not self.failed:
        ran.append(0)
      finished.append(0)
      running.release()

  def fail(self, e: BaseException) -> None:
    self.failed.append(e)
    for event in self.done:
      event.set()

  def work(self, steps: list[int]) -> None:
    try:
      for n in steps:
        for other in self.parts.steps[n].after:
          self.done[other].wait()
        if self.failed:
          return
        self.step(self.parts.steps[n].what)
        self.done[n].set()
    except BaseException as e:  # noqa: BLE001 (raised by who waits)
      self.fail(e)

  # ---------------------------------------------------------------- steps

  def step(self, what: Transfer | tuple[int, int]) -> None:
    if isinstance(what, Transfer):
      return self.transfer(self.buffers[what.source], self.buffers[what.target])
    part, segment = what
    ran: list[int] = []
    try:
      self.parts.parts[part].program.launch(self.bound[part], segment, ran)
    except IndexError as e:
      if not ran:
        raise
      self.late.append(e)

  def transfer(self, source: Buffer, target: Buffer) -> None:
    start = time.perf_counter()
    if source.device == target.device:
      Device[target.device].copy(target.memory, source.memory, target.nbytes)
      return
    try:
      data = source.bytes()
    except IndexError as e:  # of a program that was launched before; it has run all the same
      self.late.append(e)
      data = Device[source.device].shim.download(source.memory, source.nbytes)
    Device[target.device].upload(target.memory, data)
    stats["copies"] += 1
    if config.DEBUG >= 2 or config.PROFILE:
      from mini.engine import show

      name = f"copy {source.device} -> {target.device}"
      show.note(target.device, [(name, time.perf_counter() - start, 0, target.nbytes)])
