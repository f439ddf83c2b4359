"""Sequences of calls on an emulated device.

Everything has run when `run` returns. Only what is promised of the order of calls holds: those of one queue run one
after another, and a call runs after those that it waits for. Which of the calls that may run comes next is drawn by
chance; with `delay`, every queue is a thread, which sleeps for a random while before each call. So a missing edge gives
wrong results soon. With `check` it is found whatever the order was: what each call read and wrote is kept, and two
calls that nothing orders may not touch the same bytes if one of them writes.

What a launch reports (core.h, check.h) is a DeviceError; the text names the kernel.
"""

from __future__ import annotations

import ctypes
import os
import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from collections.abc import Sequence as Many
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_long, c_longlong, c_uint, c_void_p
from typing import TYPE_CHECKING

import numpy as np

from runtime.base import Call, DeviceError, Info, geometry

if TYPE_CHECKING:
  from runtime.emulate.device import Emulation, Memory

WRITTEN = 2  # what `emulate_touched` says; 1: only read


Touched = dict[int, np.ndarray]  # {address of a block: a flag for each byte}


class Launch:
  """What a kernel's launcher is called with: `passed`. All but the addresses of blocks is known beforehand."""

  def __init__(self, call: Call, info: Info, error_word: int):
    parameters = call.function.parameters
    groups, threads = geometry(call, info)
    self.values = (c_longlong * len(parameters))()  # of the arguments
    first = ctypes.addressof(self.values)
    where = (c_void_p * len(parameters))(*range(first, first + ctypes.sizeof(self.values), 8))
    self.passed = (c_uint * 3)(groups, 1, 1), (c_uint * 3)(threads, 1, 1), where
    self.pointers: list[tuple[int, int, int]] = []  # (argument, slot, offset in bytes)
    args, offset = iter(call.args), 0
    for n, p in enumerate(parameters):
      if not p.is_pointer:  # OpenCL: the offset of the pointer before it
        self.values[n] = offset
        continue
      slot, offset = next(args)
      if slot < 0:
        self.values[n] = error_word
      else:
        self.pointers.append((n, slot, 0 if p.has_offset else offset))

  def bind(self, blocks: Many[Memory]) -> dict[int, Memory]:
    """Fills in the addresses; the blocks that they point into, by address."""
    used = {}
    for n, slot, offset in self.pointers:
      address = blocks[slot].address
      used[address] = blocks[slot]
      self.values[n] = address + offset
    return used


class Sequence:
  """Calls, bound to memory anew on each run."""

  def __init__(self, device: Emulation, calls: Many[Call]):
    self.device, self.calls = device, list(calls)
    self.nslots = 1 + max((slot for c in calls for slot, _ in c.args), default=-1)
    self.word = np.zeros(1, np.int64)
    self.queues: dict[int, list[int]] = {}  # the numbers of the calls of each
    self.before: list[set[int]] = []  # of each call: those that have run when it runs
    self.launches: list[Launch] = []
    for n, call in enumerate(self.calls):
      self._verify(n, call)
      self.launches.append(Launch(call, device.info, self.word.ctypes.data))
      queue = self.queues.setdefault(call.queue, [])
      after = {*call.waits, *queue[-1:]}
      self.before.append(after.union(*(self.before[m] for m in after)))
      queue.append(n)

  def _verify(self, n: int, call: Call) -> None:
    takes = call.function.pointers
    if len(call.args) != takes:
      raise DeviceError(f"{name(call)} takes {takes} buffers, and is called with {len(call.args)}")
    if not all(0 <= w < n for w in call.waits):
      waits = ", ".join(map(str, call.waits))
      raise DeviceError(f"{name(call)} is call {n}: it cannot wait for {waits}, but for earlier ones")

  # ---------------------------------------------------------------- running

  def run(self, handles: Many[Memory], done: list[int] | None = None) -> int:
    """Launches everything with `handles[i]` in slot i and returns 0; `error` tells the error word.

    DeviceError, which names the kernel, where a launch failed. done: gets a 0, too, once everything has run.
    """
    blocks = [self.device.own(h) for h in handles[: self.nslots]]
    ran: dict[int, Touched] = {}
    if self.device.delay:
      self._run_queues(blocks, ran)
    else:
      for n in self._order():
        self._launch(n, blocks, ran)
    if done is not None:
      done.append(0)
    return 0

  def error(self) -> int:
    """The error word of the runs since it was asked for last: 0 when all went well."""
    word = int(self.word[0])
    self.word[0] = 0
    return word

  def profile(self, handles: Many[Memory]) -> list[float]:
    """Like `run`, one call after another; the seconds that each took."""
    return self.timed(handles)[1]

  def timed(self, handles: Many[Memory]) -> tuple[int, list[float]]:
    """Both: (error word, seconds)."""
    blocks, seconds = [self.device.own(h) for h in handles[: self.nslots]], []
    for n in range(len(self.calls)):
      begun = time.perf_counter()
      self._launch(n, blocks)
      seconds.append(time.perf_counter() - begun)
    return self.error(), seconds

  def _order(self) -> Iterator[int]:
    """The numbers of the calls: each after those before it in its queue and those that it waits for,
    otherwise by chance."""
    left = {queue: deque(numbers) for queue, numbers in self.queues.items()}
    ended: set[int] = set()
    while left:
      ready = [q for q, numbers in left.items() if ended.issuperset(self.calls[numbers[0]].waits)]
      queue = self.device.random.choice(ready)
      n = left[queue].popleft()
      if not left[queue]:
        del left[queue]
      yield n
      ended.add(n)

  def _run_queues(self, blocks: list[Memory], ran: dict[int, Touched]) -> None:
    """Every queue on a thread, which sleeps before each call."""
    ended = [threading.Event() for _ in self.calls]

    def work(numbers: list[int], chance: random.Random) -> None:
      try:
        for n in numbers:
          for w in self.calls[n].waits:
            ended[w].wait()
          time.sleep(chance.uniform(0, self.device.delay))
          self._launch(n, blocks, ran)
          ended[n].set()
      finally:  # where a launch failed, others wait no more
        for n in numbers:
          ended[n].set()

    chances = [random.Random(self.device.random.random()) for _ in self.queues]
    with ThreadPoolExecutor(max(len(self.queues), 1)) as pool:
      for done in [pool.submit(work, *of) for of in zip(self.queues.values(), chances)]:
        done.result()

  # ---------------------------------------------------------------- one call

  def _launch(self, n: int, blocks: list[Memory], ran: dict[int, Touched] | None = None) -> None:
    """Runs a call. ran: what those that ran before it have touched; this one is added."""
    call, code = self.calls[n], self.calls[n].function.library.code
    with _lock:
      used = self.launches[n].bind(blocks)
      if self.device.check:
        sizes = (c_long * len(used))(*(b.nbytes for b in used.values()))
        code.emulate_extents(len(used), (c_void_p * len(used))(*used), sizes)
      call.function.launch(*self.launches[n].passed)
      failure = code.emulate_failure()
      if failure:
        where = f"{call.name}, " if call.name else ""
        raise DeviceError(f"{where}emulated {self.device.language}: {failure.decode(errors='replace')}")
      if self.device.check and ran is not None and len(self.queues) > 1:
        self._compare(n, {a: touched(code, k, b) for k, (a, b) in enumerate(used.items())}, ran)
    for block in used.values():
      if not block.is_whole():
        raise DeviceError(f"{name(call)} wrote outside of its memory, a block of {block.nbytes:,} bytes")

  def _compare(self, n: int, mine: Touched, ran: dict[int, Touched]) -> None:
    """DeviceError if a call that has run in no order with this one has touched the same."""
    for m, theirs in ran.items():
      if m in self.before[n]:
        continue
      for address in mine.keys() & theirs.keys():
        a, b = mine[address], theirs[address]
        clash = np.flatnonzero((a != 0) & (b != 0) & ((a == WRITTEN) | (b == WRITTEN)))
        if clash.size:
          first, second = sorted((m, n))
          raise DeviceError(
            f"{name(self.calls[first])} (call {first}) and {name(self.calls[second])} (call {second}) touch byte "
            f"{clash[0]} of one block, one of them writes, and nothing orders them"
          )
    ran[n] = mine


def name(call: Call) -> str:
  return call.name or call.function.name


def touched(code: ctypes.CDLL, extent: int, block: Memory) -> np.ndarray:
  """What the last launch did with each byte of the memory that it was given as this extent."""
  flags = np.zeros(block.nbytes, np.uint8)
  code.emulate_touched(extent, flags.ctypes.data)
  return flags


# One launch at a time in a process: a library's fibers and shared memory are its own, and devices may share a library.
_lock = threading.Lock()


def _in_child() -> None:
  """After a fork: whoever held the lock in the parent does not exist here."""
  global _lock
  _lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)
