"""The memory that a device lends: blocks that died are kept in a free list, for whoever asks for their size again."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

# What the free list may hold beyond the peak of what was in use, or a 32nd of the peak.
SLACK_BYTES = 8 << 20
BIG_BYTES = 1 << 20
COUNTERS = "compiles disk_hits bytes_allocated bytes_held bytes_peak"

Counters = dict[str, int]


class Memory:
  """A block of a device's memory, which gives itself back when it dies.

  Its finalizer is a call into C: a Ctrl-C that came within one of Python's would be lost.
  """

  __slots__ = ("__del__", "__weakref__", "address", "heap", "nbytes")
  __del__: Callable[[], object]

  def __init__(self, heap: Heap, address: Any, nbytes: int):
    self.heap, self.address, self.nbytes = heap, address, nbytes
    self.__del__ = partial(heap.given.append, (address, nbytes))

  def close(self) -> None:
    """Gives the block back; to use it afterwards is an AttributeError."""
    address = self.address
    self.__del__ = bool  # first: a Ctrl-C may lose the block, and never give it twice
    del self.address
    self.heap.given.append((address, self.nbytes))
    self.heap.settle()


class Heap:
  """The free list: idle blocks by size, so that a loop which asks for the same sizes again asks the system for nothing.

  A size is rounded up to one of eight classes between two powers of two, or 32 for big ones; the tail of a big block is
  never touched, so on a CPU it costs no memory but the rest of its last huge page. Where the process would hold more
  than the peak of what was in use and some slack, the size classes that were idle for longest go back to the system.
  """

  def __init__(
    self,
    name: str,
    limit: int,
    fresh: Callable[[int], Any],
    free: Callable[[Any], object],
    counters: Counters,
    memory: type[Memory] = Memory,
    ahead: Callable[[Any, int], object] | None = None,
  ):
    """name: of the device, for errors. limit: bytes that may be in use. fresh: a new block of so many bytes, by what
    the device knows it; where there is none 0, or a MemoryError with the device's words. free: gives such a block back.
    ahead: is told of a new block, and how much of it will be used, before it is.

    What a block is known by must not free it when it dies: in a cycle of garbage, Python finalizes it together with the
    Memory that gives it back for others to use."""
    self.name, self.limit, self.counters, self.memory = name, limit, counters, memory
    self.system_fresh, self.system_free, self.ahead = fresh, free, ahead
    self.asked = 0  # blocks that the system was asked for
    # bytes: in use, the most that ever were, what we have from the system
    self.live = self.peak = self.held = 0
    self.idle: dict[int, list[Any]] = {}  # capacity -> addresses; the capacity idle for longest comes first
    # blocks that died: a finalizer runs anywhere, so takes no lock
    self.given: deque[tuple[Any, int]] = deque()
    self.lock = threading.RLock()

  @staticmethod
  def capacity(nbytes: int) -> int:
    """The size of the block for a request: at most an eighth more, or a 32nd for big ones."""
    step = 64 if nbytes <= 512 else 1 << (nbytes - 1).bit_length() - (4 if nbytes < BIG_BYTES else 6)
    return -(-max(nbytes, 1) // step) * step

  def take(self, nbytes: int) -> Any:
    """A block for `nbytes`. MemoryError says how many were in use, and what the device said."""
    address = self.given_last(nbytes)
    if address is None:
      capacity = self.capacity(nbytes)
      with self.lock:
        self.sort()
        blocks = self.idle.get(capacity)
        address = blocks.pop() if blocks else self.fresh(nbytes, capacity)
        self.live += capacity
        self.peak = max(self.peak, self.live)
        counters = self.counters  # whose `get` is quick, and settles nothing
        counters["bytes_held"] = live = counters.get("bytes_held", 0) + nbytes
        if live > counters.get("bytes_peak", 0):
          counters["bytes_peak"] = live
    return self.memory(self, address, nbytes)

  def given_last(self, nbytes: int) -> Any:
    """The block that was given last, if it is of this size: it still counts as in use. Takes no lock."""
    try:
      block = self.given.pop()
    except IndexError:
      return None
    if block[1] == nbytes:
      return block[0]
    self.given.append(block)
    return None

  def settle(self) -> None:
    """Count what was given as free: `bytes_held` is exact then."""
    with self.lock:
      self.sort()

  def sort(self) -> None:
    """Moves what was given into `idle`."""
    given, freed = self.given, 0
    while given:
      try:
        address, nbytes = given.popleft()
      except IndexError:  # another thread was quicker
        break
      capacity = self.capacity(nbytes)
      blocks = self.idle.pop(capacity, [])
      blocks.append(address)
      self.idle[capacity] = blocks
      self.live -= capacity
      freed += nbytes
    self.counters["bytes_held"] = self.counters.get("bytes_held", 0) - freed

  def fresh(self, nbytes: int, capacity: int) -> Any:
    """A block from the system, if need be after it got all idle ones back."""
    peak = max(self.peak, self.live + capacity)
    self.trim(peak + max(SLACK_BYTES, peak // 32) - capacity)
    address, words = None, ""
    if self.live + nbytes <= self.limit:  # the system may promise what it does not have
      address, words = self.ask(capacity)
      if not address:
        self.trim()
        address, words = self.ask(capacity)
    if not address:
      used = f"{self.live:,} of {self.limit:,} are in use"
      raise MemoryError(f"the {self.name} cannot allocate {nbytes:,} bytes: {used}{words and ': '}{words}")
    self.held += capacity
    self.asked += 1
    if self.ahead:
      self.ahead(address, nbytes)
    self.counters["bytes_allocated"] += nbytes
    return address

  def ask(self, capacity: int) -> tuple[Any, str]:
    """(a block or nothing, what the device said)."""
    try:
      return self.system_fresh(capacity), ""
    except MemoryError as e:
      return None, str(e)

  def trim(self, nbytes: int = 0) -> None:
    """Gives idle blocks back to the system until at most `nbytes` are held, or none is idle."""
    with self.lock:
      self.sort()
      while self.held > nbytes and self.idle:
        capacity, blocks = next(iter(self.idle.items()))
        if blocks:
          self.system_free(blocks.pop(0))
          self.held -= capacity
        else:
          del self.idle[capacity]
