"""The CPU: C source becomes functions that run on a pool of threads.
pool.c is the native half, compiler.py the way to it.

Who owns what: a `Memory` owns its block and gives it back when it dies, to a free list that the shim owns; code stays
loaded as long as somebody holds the address of a function in it. Nothing is asynchronous: when `run` returns, the
results are in memory. No compiler, or a source that does not compile, is a DeviceError; no memory is a MemoryError with
the size that was asked for; what a kernel itself found to be wrong is the error word that `run` returns.
"""

from __future__ import annotations

import atexit
import itertools
import os
import struct
import threading
from array import array
from collections.abc import Callable
from collections.abc import Sequence as Many
from ctypes import c_char_p, c_long, c_longlong, c_void_p
from functools import partial
from typing import Any, ClassVar
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from runtime import compiler as compilers
from runtime import heap, host, pages
from runtime.base import Cache, Call, Info
from runtime.compiler import Build, Compiler
from runtime.heap import COUNTERS, Counters, Heap
from runtime.library import Library

PARALLEL_NS = 2000  # a launch below this runs on one thread: a dispatch costs 0.2 us, waking a thread 50
SHARE_NS = 1000  # of work, at least, for each thread
CHUNK_NS = 25000  # a thread that is done early helps the others in pieces of at least this ...
CHUNKS = 8  # ... and at most so many for each thread
STACK_BYTES = 3840 << 10  # that a kernel's stages take, at most
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"


def open(cc: str = "", threads: int = 0, cache: Cache | None = None, counters: Counters | None = None) -> CPU:
  """The CPU as a device.

  cc: the compiler's command; "" for the first of cc, gcc, clang and the ziglang wheel. threads: 0 for as many as this
  process may use. cache: keeps compiled code between processes. counters: a dict to count up, with the keys in
  COUNTERS.
  """
  return CPU(compilers.find(cc, cache), threads or host.available_threads(), cache, counters)


class CPU:
  """An open CPU. `info` says what it is."""

  def __init__(self, compiler: Compiler, threads: int, cache: Cache | None, counters: Counters | None):
    self.compiler, self.cache = compiler, cache
    self.counters = dict.fromkeys(COUNTERS.split(), 0) if counters is None else counters
    vectors, lanes, registers = compiler.vectors()
    stack = min(STACK_BYTES, host.stack_bytes())
    self.info = Info("CPU", f"{os.uname().machine} {vectors} ({compiler.name})", lanes, registers, threads,
                     *host.cache_bytes(), stack, host.available_memory(), frozenset(DTYPES.split()),
                     compilers=threads, streams=compiler.streams(), issue=compiler.issue())  # fmt: skip
    self.libraries: WeakValueDictionary[str, Library] = WeakValueDictionary()
    self.begun: dict[str, Build] = {}  # compilers at work on what will be needed, by source
    self.heap = Heap(
      "CPU", self.info.memory_bytes, pages.take, pages.give, self.counters, Memory, self._touch
    )
    pool = None if compiler.key(POOL) in Native.loaded else self._from_cache(compiler.key(POOL))
    if pool is not None or compiler.key(POOL) in Native.loaded:
      Native.of(self)
    else:
      self.begun[POOL] = compiler.start(POOL)
      atexit.register(self.close)
    _opened.add(self)

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> Memory:
    """A block of memory, aligned to 64 bytes, its contents arbitrary. MemoryError names the size."""
    return self.heap.take(nbytes)

  def zeros(self, nbytes: int) -> Memory:
    """A block of zeros, which a big one is that comes from the system."""
    with self.heap.lock:
      before = self.heap.asked
      block = self.heap.take(nbytes)
      is_fresh = self.heap.asked > before
    if not is_fresh or nbytes < pages.MAPPED_BYTES:
      pages.LIBC.memset(block.address, 0, nbytes)
    return block

  def _touch(self, address: int, nbytes: int) -> None:
    """Have a big block ready that comes from the system, once pool.c is here."""
    if (
      nbytes >= pages.AHEAD_BYTES
      and self.info.threads > 1
      and (key := self.compiler.key(POOL)) in Native.loaded
    ):
      pages.ahead.touch(Native.loaded[key].touch, address, nbytes)

  def upload(self, handle: Memory, data: Any, offset: int = 0) -> None:
    """Copies a contiguous bytes-like object or array to the block, from byte `offset` on."""
    source = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    source = source if source.flags.c_contiguous else np.ascontiguousarray(source)
    if not 0 <= offset <= handle.nbytes - source.nbytes:
      raise ValueError(f"{source.nbytes:,} bytes at {offset:,} do not fit into a block of {handle.nbytes:,}")
    few = source.nbytes <= 4096  # to copy them twice takes less time than to ask where they are
    there = source.tobytes() if few else source.__array_interface__["data"][0]
    pages.LIBC.memcpy(handle.address + offset, there, source.nbytes)

  def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
    """Copies the first `nbytes` bytes from one block to another."""
    np.asarray(target)[:nbytes] = np.asarray(source)[:nbytes]

  def download(self, handle: Memory, nbytes: int, offset: int = 0) -> np.ndarray:
    """A copy of `nbytes` bytes, as uint8."""
    return np.asarray(handle)[offset : offset + nbytes].copy()

  def free(self, handle: Memory) -> None:
    """Gives the block back now. The same happens when the handle dies."""
    handle.close()

  # ---------------------------------------------------------------- code

  def compile(self, source: str) -> Library:
    """C source -> its functions, `void NAME(void **args, long lo, long hi)`. DeviceError with the compiler's words."""
    return self.compile_all([source])[0]

  def compile_all(self, sources: Many[str]) -> list[Library]:
    """The same for several sources, with as many compilers at work as there are threads."""
    keys = {s: self.compiler.key(s) for s in sources}
    found = {s: self.libraries.get(key) or self._from_cache(key) for s, key in keys.items()}
    todo = [s for s, library in found.items() if library is None]
    builds = (self.begun.pop(s) if s in self.begun else self.compiler.start(s) for s in todo)
    for source, data in zip(todo, compilers.finish_all(builds, self.info.threads)):
      self.counters["compiles"] += 1
      found[source] = self.libraries[keys[source]] = Library.kept(self.cache, keys[source], data)
    return [library for s in sources if (library := found[s]) is not None]

  def _from_cache(self, key: str) -> Library | None:
    path = self.cache.get(key) if self.cache else None
    if not path:
      return None
    try:
      self.libraries[key] = library = Library.at(path)
    except OSError:  # another process has just cleared the cache
      return None
    self.counters["disk_hits"] += 1
    return library

  def close(self) -> None:
    """Ends compilers whose work nobody asked for. Everything else ends with the process."""
    while self.begun:
      self.begun.popitem()[1].close()

  # ---------------------------------------------------------------- running

  def sequence(self, calls: Many[Call]) -> Sequence:
    """Calls that one native call will run in order, whatever their queues; their work decides on how many threads."""
    return Sequence(self, calls)

  def wait(self) -> None:
    """Returns at once: nothing is asynchronous here."""


class Memory(heap.Memory):
  """A block of a CPU's memory. `numpy.asarray(block)` is its bytes without a copy, and keeps it alive."""

  __slots__ = ()

  @property
  def __array_interface__(self) -> dict[str, Any]:
    return {"version": 3, "shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False)}


class Native:
  """pool.c. A process has one pool, however often the CPU is opened in it."""

  loaded: ClassVar[dict[str, Native]] = {}  # by compiler key
  lock = threading.Lock()

  def __init__(self, library: Library):
    self.library = library
    # fmt: off
    self.create  = self.function("mini_sequence",      c_void_p, c_long, c_char_p, c_long, c_long, c_char_p, c_char_p)
    self.run     = self.function("mini_run",           c_longlong, c_void_p, c_void_p, c_void_p)
    self.destroy = self.function("mini_sequence_free", None, c_void_p)
    self.touch   = self.function("mini_touch",         None, c_void_p, c_void_p, c_void_p)
    # fmt: on

  def function(self, name: str, result: Any, *args: Any) -> Any:
    f = getattr(self.library.code, name)
    f.restype, f.argtypes = result, args
    return f

  @staticmethod
  def of(device: CPU) -> Native:
    key = device.compiler.key(POOL)
    with Native.lock:
      if key not in Native.loaded:
        Native.loaded[key] = Native(device.compile(POOL))
      return Native.loaded[key]


class Sequence:
  """Calls in order, in one native structure. Two threads may run one; the second waits."""

  __slots__ = ("__del__", "__dict__", "__weakref__")
  __del__: Callable[[], object]  # as that of heap.Memory

  def __init__(self, device: CPU, calls: Many[Call]):
    self.native, self.ncalls = Native.of(device), len(calls)
    self.functions = [c.function for c in calls]  # loaded as long as this
    self.nslots = 1 + max((slot for c in calls for slot, _ in c.args), default=-1)
    # Of each slot the positions that it fills, each with its offset; then those of numbers, and of the error word.
    patches: list[list[int]] = [[] for _ in range(self.nslots + 2)]
    records: list[int] = []
    nargs = 0
    for function, args, extent, work, *_ in calls:
      shares = min(device.info.threads, extent, int(work) // SHARE_NS) if work >= PARALLEL_NS else 1
      chunks = min(max(int(work / max(shares, 1) / CHUNK_NS), 1), CHUNKS)
      records += (function, nargs, extent, shares, chunks)
      for position, (slot, offset) in enumerate(args, nargs):
        patches[slot] += (position, offset)
      nargs += len(args)
    first = [0, *itertools.accumulate(len(p) // 2 for p in patches)]
    flat = array("q", [x for p in patches for x in p])
    self.pack = struct.Struct(f"{self.nslots}P").pack
    self.address = self.native.create(self.ncalls, array("q", records).tobytes(), nargs, self.nslots,
                                      array("q", first).tobytes(), flat.tobytes())  # fmt: skip
    if not self.address:
      raise MemoryError(f"the CPU cannot allocate a sequence of {self.ncalls:,} calls")
    self.__del__ = partial(self.native.destroy, self.address)

  def run(self, handles: Many[Memory], done: list[int] | None = None) -> int:
    """Runs everything with `handles[i]` in slot i; returns the error word, 0 when all went well.

    done: gets the error word, too. After a Ctrl-C it tells whether everything has run, or nothing.
    """
    slots = self.pack(*[h.address for h in handles[: self.nslots]])
    if done is None:
      return self.native.run(self.address, slots, None)
    # one call into C: no signal in between
    done.extend(map(self.native.run, (self.address,), (slots,), (None,)))
    return done[-1]

  def run_at(self, addresses: array[int], done: list[int]) -> None:
    """`run`, with addresses of memory that somebody else keeps alive."""
    done.extend(map(self.native.run, (self.address,), (addresses.buffer_info()[0],), (None,)))

  def error(self) -> int:
    """Nothing is left over: `run` returns the error word."""
    return 0

  def profile(self, handles: Many[Memory]) -> list[float]:
    """The same; the seconds that each call took."""
    return self.timed(handles)[1]

  def timed(self, handles: Many[Memory]) -> tuple[int, list[float]]:
    """Both: (error word, seconds)."""
    seconds = array("d", bytes(8 * self.ncalls))
    slots = self.pack(*[h.address for h in handles[: self.nslots]])
    error = self.native.run(self.address, slots, seconds.buffer_info()[0])
    return error, seconds.tolist()


POOL = host.read(os.path.join(os.path.dirname(__file__), "pool.c"))


_opened: WeakSet[CPU] = WeakSet()


def _in_child() -> None:
  """After a fork: whoever held a lock in the parent does not exist here."""
  Native.lock = threading.Lock()
  for device in _opened:
    device.heap.lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)
