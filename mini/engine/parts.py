"""A program over several devices: one program for each device and level, and copies between them.

A value's level is how often it has come from another device: what stands on one device at one level is one program, which
needs the copies of lower levels. Where a value of a lower level is used again, it is an output of its program; views of
it are not. What has no memory beneath it (constants, random bits) is computed wherever it is used.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.program import Program
from mini.ir.graph import buffer, numel, shape
from mini.ir.ops import VIEWS
from mini.ir.uop import UOp, toposort, uop
from mini.stats import stats
from runtime.base import DeviceError

Place = tuple[str, int]  # (device, "" for any; level)


def places(roots: Sequence[UOp], devices: Sequence[str]) -> dict[UOp, Place]:
  """Where each node is computed. devices: of the inputs in0, in1, ... DeviceError where two devices meet."""
  found: dict[UOp, Place] = {}
  for u in toposort(*roots):
    if u.op == "buffer":
      name = u.arg[0]
      found[u] = (devices[int(name[2:])] if name[0] == "i" else "", 0)
      continue
    device = ""
    for s in u.src:
      other = found[s][0]
      if other and device and other != device:
        raise DeviceError(f"{u.op} of memory on {device} and on {other}: copy one with .to()")
      device = device or other
    level = max((found[s][1] for s in u.src), default=0)
    found[u] = (u.arg, level + bool(device)) if u.op == "copy" and u.arg != device else (device, level)
  return found


class Part(NamedTuple):
  """What runs on one device. Its inputs and outputs are numbers of values."""

  program: Program
  inputs: list[int]
  outputs: list[int]


class Transfer(NamedTuple):
  """A value that is copied to another device."""

  source: int
  target: int


class Parts:
  """Runs like a Program. A value is an input, an output of a part, or a copy; the inputs are the first values."""

  def __init__(
    self, roots: Sequence[UOp], devices: Sequence[str], default: str, inout: dict[int, int] | None = None
  ):
    """roots: over leaves in0, in1, ..., which are on `devices`. default: where what has no memory is computed."""
    self.place = {u: (d or default, level) for u, (d, level) in places(roots, devices).items()}
    self.anywhere = {u for u, (d, _) in places(roots, devices).items() if not d}
    self.kinds: list[tuple[str, Any, int]] = [
      (d, None, 0) for d in devices
    ]  # of values: device, type, elements
    self.number: dict[UOp, int] = {}  # of the values that are computed or copied
    self.wanted: dict[Place, dict[UOp, int]] = {}  # what each part has to compute
    self.steps: list[Part | Transfer] = []
    transfers: dict[UOp, Transfer] = {}

    self.roots = [self.value(u, transfers) for u in roots]
    built: list[tuple[Place, list[UOp], list[int], list[int]]] = []
    top = max((level for _, level in self.place.values()), default=0)
    for level in range(top, -1, -1):
      for place in [p for p in self.wanted if p[1] == level]:
        inputs: dict[int, UOp] = {}
        outputs = self.built(place, inputs, transfers)
        built.append((place, outputs, list(inputs), list(self.wanted[place].values())))
    last = {
      v: place for place, _, inputs, _ in reversed(built) for v in inputs
    }  # the last part to read a value
    copied = {t.source for t in transfers.values()}  # nobody knows when

    self.inplace: dict[int, int] = {}
    self.same = [self.roots.index(v) for v in self.roots]
    for (device, level), outputs, sources, numbers in sorted(built, key=lambda b: b[0][1]):
      self.steps += [t for u, t in transfers.items() if self.place[u] == (device, level)]
      mine = {
        numbers.index(self.roots[n]): sources.index(i)
        for n, i in (inout or {}).items()
        if self.roots[n] in numbers and i in sources and last[i] == (device, level) and i not in copied
      }
      program = Program(outputs, len(sources), device, mine)
      self.steps.append(Part(program, sources, numbers))
      for k, j in program.inplace.items():
        self.inplace.update({n: sources[j] for n, v in enumerate(self.roots) if v == numbers[k]})
      for k, m in enumerate(program.same):
        if k != m and numbers[k] in self.roots and numbers[m] in self.roots:
          self.same[self.roots.index(numbers[k])] = self.roots.index(numbers[m])
    self.steps += [t for t in transfers.values() if t not in self.steps]
    self.devices = [self.kinds[v][0] for v in self.roots]

  # ---------------------------------------------------------------- what each part computes

  def value(self, u: UOp, transfers: dict[UOp, Transfer]) -> int:
    """The number of the value of u, which some step is to make."""
    while u.op == "reshape" or (u.op == "copy" and not self.crosses(u)):
      u = u.src[0]
    if u.op == "buffer" and u.arg[0][0] == "i":
      return int(u.arg[0][2:])
    got = self.number.get(u)
    if got is None:
      got = self.number[u] = len(self.kinds)
      self.kinds.append((self.place[u][0], u.dtype, numel(u)))
      if self.crosses(u):
        transfers[u] = Transfer(self.value(u.src[0], transfers), got)
      else:
        self.wanted.setdefault(self.place[u], {})[u] = got
    return got

  def crosses(self, u: UOp) -> bool:
    return u.op == "copy" and u.src[0] not in self.anywhere and self.place[u.src[0]][0] != u.arg

  def built(self, place: Place, inputs: dict[int, UOp], transfers: dict[UOp, Transfer]) -> list[UOp]:
    """What a part computes, over leaves in0, in1, ... of its own."""
    memo: dict[UOp, UOp] = {}
    wanted = self.wanted[place]
    stack = [(u, False) for u in reversed(wanted)]
    while stack:
      u, done = stack.pop()
      if u in memo:
        continue
      lower = self.place[u][1] < place[1] and u not in self.anywhere and u.op not in VIEWS
      if (u.op == "buffer" and u.arg[0][0] == "i") or self.crosses(u) or (lower and u.op != "copy"):
        n = self.value(u, transfers)
        name = f"in{list(inputs).index(n) if n in inputs else len(inputs)}"
        memo[u] = buffer(name, shape(u), u.dtype)
        inputs.setdefault(n, memo[u])
      elif done:
        src = tuple(memo[s] for s in u.src)
        memo[u] = src[0] if u.op == "copy" else uop(u.op, u.dtype, src, u.arg)
      else:
        stack.append((u, True))
        stack.extend((s, False) for s in reversed(u.src))
    return [memo[u] for u in wanted]

  # ---------------------------------------------------------------- running

  def run(
    self,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    numbers: bytes = b"",
    ran: list[int] | None = None,
  ) -> None:
    """As Program.run. Devices that are asynchronous get their work first; several CPUs work in a thread each."""
    run = Run(self, inputs, outputs, numbers)
    hosts = list(dict.fromkeys(d for d in map(self.device_of, self.steps) if Device[d].is_host))
    if len(hosts) > 1:
      run.in_threads(hosts)
    else:
      run.in_order(self.steps)
    if ran is not None:
      ran.append(0)

  def device_of(self, step: Part | Transfer) -> str:
    return step.program.device if isinstance(step, Part) else self.kinds[step.target][0]

  @contextmanager
  def named(self) -> Iterator[None]:
    with ExitStack() as stack:
      for step in self.steps:
        if isinstance(step, Part):
          stack.enter_context(step.program.named())
          break
      yield


class Run:
  """One run of a program over several devices: its values as they come to be."""

  def __init__(self, parts: Parts, inputs: Sequence[Buffer], outputs: Sequence[Buffer], numbers: bytes):
    self.parts, self.numbers = parts, numbers
    self.buffers: list[Buffer | None] = [*inputs, *[None] * (len(parts.kinds) - len(inputs))]
    self.targets = dict(zip(parts.roots, outputs))
    self.failed: list[BaseException] = []
    self.ready: list[threading.Event] = []  # of the values, where threads wait for them

  def target(self, value: int) -> Buffer:
    """Memory for a value: an output of the program, or new."""
    device, dtype, size = self.parts.kinds[value]
    found = self.targets.get(value)
    return Buffer(device, dtype, size) if found is None else found

  def step(self, step: Part | Transfer) -> None:
    if isinstance(step, Transfer):
      source, b = self.buffers[step.source], self.target(step.target)
      Device[b.device].upload(b.memory, source.bytes())  # type: ignore[union-attr]
      self.buffers[step.target] = b
      stats["copies"] += 1
      return
    program = step.program
    made = [
      self.buffers[step.inputs[program.inplace[k]]] if k in program.inplace
      else self.target(value) if program.same[k] == k else None
      for k, value in enumerate(step.outputs)
    ]  # fmt: skip
    made = [made[m] for m in program.same]
    program.run([self.buffers[v] for v in step.inputs], made, self.numbers)  # type: ignore[misc,arg-type]
    for value, made_of in zip(step.outputs, made):
      self.buffers[value] = made_of

  def in_order(self, steps: Sequence[Part | Transfer]) -> None:
    for step in steps:
      self.step(step)

  # ---------------------------------------------------------------- several CPUs at once

  def in_threads(self, hosts: list[str]) -> None:
    """A thread for each host device but the first, which this thread works for, as for all that is asynchronous."""
    self.ready = [threading.Event() for _ in self.buffers]
    mine: dict[str, list[Part | Transfer]] = {h: [] for h in hosts}
    for step in self.parts.steps:
      d = self.parts.device_of(step)
      mine[d if d in mine else hosts[0]].append(step)
    context = contextvars.copy_context()
    threads = [threading.Thread(target=context.copy().run, args=(self.work, mine[h])) for h in hosts[1:]]
    for t in threads:
      t.start()
    try:
      self.work(mine[hosts[0]])
    finally:
      for t in threads:
        t.join()
    if self.failed:
      raise self.failed[0]

  def work(self, steps: list[Part | Transfer]) -> None:
    inputs = len(self.buffers) - sum(b is None for b in self.buffers)
    try:
      for step in steps:
        for v in step.inputs if isinstance(step, Part) else [step.source]:
          if self.buffers[v] is None:
            self.ready[v].wait()
        if self.failed:
          return
        self.step(step)
        for v in step.outputs if isinstance(step, Part) else [step.target]:
          self.ready[v].set()
    except BaseException as e:  # noqa: BLE001 (raised by who waits for this thread)
      self.failed.append(e)
    finally:
      if self.failed:
        for event in self.ready[inputs:]:
          event.set()
