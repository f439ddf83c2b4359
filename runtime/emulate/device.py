"""An emulated GPU: a shim like the others, in the order of its use.

Each block of memory stands alone, full of 0xA5, between guards: a copy past its end, a block that was freed twice or is
another device's, and a kernel that wrote into a guard are DeviceErrors. Sequences are in sequence.py.
"""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Sequence as Many
from ctypes import c_char_p, c_long, c_size_t, c_uint, c_void_p
from functools import lru_cache
from typing import Any

import numpy as np

from runtime import compiler as compilers
from runtime import cpu, host
from runtime import library as libraries
from runtime.base import Cache, Call, DeviceError, Info
from runtime.emulate import source as sources
from runtime.emulate.sequence import Sequence
from runtime.emulate.source import Kernel

DEVICES = 4  # of each language
MEMORY_BYTES = 4 << 30
ALIGNMENT = 256  # of a block, in bytes
GUARD_BYTES = 64  # before and behind each block
POISON = 0xA5
GUARD = bytes([POISON]) * GUARD_BYTES
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
COUNTERS = "compiles disk_hits bytes_allocated bytes_held bytes_peak"
# By language: bytes of shared memory (as the headers have it), threads of a warp, and matrix instructions.
SHARED = {"CUDA": 48 << 10, "METAL": 32 << 10, "CL": 32 << 10}
WARPS = {"CUDA": 32, "METAL": 32, "CL": 1}
MATRICES = {
  "CUDA": frozenset({"m16n8k16 f16", "m16n8k16 bf16", "m16n8k8 tf32"}),
  "METAL": frozenset({"8x8 f32", "8x8 f16"}),
  "CL": frozenset(),
}


def open(language: str, index: int = 0, cc: str = "", cache: Cache | None = None,
         counters: dict[str, int] | None = None, check: bool = False, seed: int = 0,
         delay: float = 0) -> Emulation:  # fmt: skip
  """An emulated device.

  language: "CUDA", "METAL" or "CL". index: there are four of each. cc: the C++ compiler's command; "" for the first of
  c++, g++, clang++ and the ziglang wheel. cache: keeps compiled code between processes. counters: a dict to count up,
  with the keys in COUNTERS. check: also reports accesses outside of all memory that a launch was given, races between
  its threads, and calls of different queues that touch the same memory in no order; it is some 15 times slower.
  seed: of the order of threads, groups and queues. delay: seconds that a call may wait at most, for queues that are
  threads; 0: one thread does all, in an order that is drawn by chance.
  """
  if language not in sources.HEADERS:
    raise DeviceError(f"no emulation of {language}: there is one of {', '.join(sources.HEADERS)}")
  if not 0 <= index < DEVICES:
    raise DeviceError(
      f"{language}:{index}: {DEVICES} devices are emulated, with the numbers 0 to {DEVICES - 1}"
    )
  return Emulation(language, cc, cache, counters, check, seed, delay)


class Emulation:
  """An open emulated device. `info` says what it is."""

  def __init__(self, language: str, cc: str, cache: Cache | None, counters: dict[str, int] | None, check: bool,
               seed: int, delay: float):  # fmt: skip
    self.language, self.cache, self.check, self.seed, self.delay = language, cache, check, seed, delay
    self.compiler = sources.compiler(cc, cache)
    self.counters = dict.fromkeys(COUNTERS.split(), 0) if counters is None else counters
    self.random = random.Random(seed)
    dtypes = frozenset(DTYPES.split()) - ({"float64"} if language == "METAL" else set())
    self.info = Info(
      language, f"{sources.NAMES[language]}, emulated on {os.uname().machine} ({self.compiler.name})", lanes=4,
      registers=64, threads=host.available_threads(), l1_bytes=128 << 10, l2_bytes=4 << 20, stack_bytes=16 << 10,
      memory_bytes=min(MEMORY_BYTES, host.available_memory()), dtypes=dtypes, kind="gpu", group=1024,
      warp=WARPS[language], shared_bytes=SHARED[language], units=4, matrices=MATRICES[language], queues=4,
      compilers=host.available_threads())  # fmt: skip
    self.libraries: dict[str, Library] = {}
    self.live = 0  # bytes in use

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> Memory:
    """A block of memory, aligned to 256 bytes, full of 0xA5. MemoryError names the size."""
    if self.live + nbytes > self.info.memory_bytes:
      used = f"{self.live:,} of {self.info.memory_bytes:,} are in use"
      raise MemoryError(f"the emulated {self.language} device cannot allocate {nbytes:,} bytes: {used}")
    block = Memory(self, nbytes)
    self.live += nbytes
    self.counters["bytes_allocated"] += nbytes
    self.counters["bytes_held"] += nbytes
    self.counters["bytes_peak"] = max(self.counters["bytes_peak"], self.counters["bytes_held"])
    return block

  def upload(self, handle: Memory, data: Any, offset: int = 0) -> None:
    """Copies a contiguous bytes-like object or array to `offset` bytes from the beginning of the block."""
    source = np.asarray(data) if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    source = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
    self.part(handle, offset, source.nbytes, "upload to")[:] = source

  def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
    """The first `nbytes` bytes of one block to another."""
    self.part(target, 0, nbytes, "copy to")[:] = self.part(source, 0, nbytes, "copy from")

  def download(self, handle: Memory, nbytes: int, offset: int = 0) -> np.ndarray:
    """A copy of `nbytes` bytes from `offset` on, as uint8."""
    return self.part(handle, offset, nbytes, "download from").copy()

  def part(self, handle: Memory, offset: int, nbytes: int, what: str) -> np.ndarray:
    """The bytes of a block, without a copy; DeviceError where it has no such bytes."""
    block = self.own(handle)
    if offset < 0 or nbytes < 0 or offset + nbytes > block.nbytes:
      raise DeviceError(f"{what} bytes {offset:,} to {offset + nbytes:,} of a block of {block.nbytes:,}")
    return block.bytes[offset : offset + nbytes]

  def own(self, handle: Memory) -> Memory:
    """The block, if it is one of this device's that is in use; DeviceError if not."""
    if not isinstance(handle, Memory) or handle.device is not self:
      raise DeviceError(f"{handle!r} is no memory of this {self.language} device")
    if handle.freed:
      raise DeviceError(f"a block of {handle.nbytes:,} bytes is used after it was freed")
    return handle

  def free(self, handle: Memory) -> None:
    """Gives the block back now. The same happens when the handle dies. DeviceError if it has been given back before."""
    self.own(handle).close()

  # ---------------------------------------------------------------- code

  def compile(self, source: str) -> Library:
    """Source -> its kernels. DeviceError with the compiler's words."""
    return self.compile_all([source])[0]

  def compile_all(self, sources_: Many[str]) -> list[Library]:
    """The same for several sources, with as many compilers at work as there are processors."""
    todo = [s for s in dict.fromkeys(sources_) if s not in self.libraries and not self._from_cache(s)]
    builds = (sources.start(self.compiler, s, self.language, self.check) for s in todo)
    for source, data in zip(todo, compilers.finish_all(builds, self.info.threads)):
      self.counters["compiles"] += 1
      self.libraries[source] = Library(
        self, source, libraries.Library.kept(self.cache, self._key(source), data)
      )
    return [self.libraries[s] for s in sources_]

  def _key(self, source: str) -> str:
    return sources.key(self.compiler, source, self.language, self.check)

  def _from_cache(self, source: str) -> bool:
    path = self.cache.get(self._key(source)) if self.cache else None
    if path:
      try:
        self.libraries[source] = Library(self, source, libraries.Library.at(path))
        self.counters["disk_hits"] += 1
      except OSError:  # another process has just cleared the cache
        path = None
    return path is not None

  # ---------------------------------------------------------------- running

  def sequence(self, calls: Many[Call]) -> Sequence:
    """Calls that `run` launches; their queues and waits say which order they need."""
    return Sequence(self, calls)

  def wait(self) -> None:
    """Returns at once: what was launched has run."""


class Memory:
  """A block of an emulated device's memory, between two guards."""

  __slots__ = ("__weakref__", "address", "bytes", "device", "freed", "nbytes")

  def __init__(self, device: Emulation, nbytes: int):
    whole = np.full(nbytes + 2 * GUARD_BYTES + ALIGNMENT, POISON, np.uint8)
    first = -(whole.ctypes.data + GUARD_BYTES) % ALIGNMENT + GUARD_BYTES
    self.device, self.nbytes, self.freed = device, nbytes, False
    self.bytes = whole[first : first + nbytes]  # keeps the whole alive
    self.address = whole.ctypes.data + first

  def is_whole(self) -> bool:
    """Are the guards what they were?"""
    below, above = self.address - GUARD_BYTES, self.address + self.nbytes
    return ctypes.string_at(below, GUARD_BYTES) == GUARD == ctypes.string_at(above, GUARD_BYTES)

  def close(self) -> None:
    """Gives the block back."""
    self.freed = True
    self.device.live -= self.nbytes
    self.device.counters["bytes_held"] -= self.nbytes
    self.bytes = self.bytes[:0].copy()

  def __del__(self) -> None:
    if hasattr(self, "address") and not self.freed:
      self.close()


class Function:
  """A kernel: how it is launched, and what it takes."""

  def __init__(self, library: Library, name: str, kernel: Kernel):
    self.library, self.name = library, name
    self.parameters = [p for p in kernel.parameters if p.is_argument]
    self.pointers = sum(p.is_pointer for p in self.parameters)
    self.launch = getattr(library.code, name + "__launch")
    self.launch.restype, self.launch.argtypes = None, [c_void_p] * 3


class Library:
  """Loaded code: `library[name]` is a function."""

  def __init__(self, device: Emulation, source: str, loaded: cpu.Library):
    self.code = loaded.code
    self.code.emulate_failure.restype = c_char_p
    self.code.emulate_extents.argtypes = [c_long, c_void_p, c_void_p]
    self.code.emulate_touched.argtypes = [c_long, c_void_p]
    self.code.emulate_seed(c_uint(device.seed))
    self.code.emulate_stacks.restype, self.code.emulate_stacks.argtypes = c_size_t, [c_void_p]
    self.code.emulate_stacks(stacks(self.code.emulate_stacks(None)).ctypes.data)
    self.kernels = sources.kernels(source, device.language)
    self.functions: dict[str, Function] = {}

  def __getitem__(self, name: str) -> Function:
    if name not in self.functions:
      self.functions[name] = Function(self, name, self.kernels[name])
    return self.functions[name]


@lru_cache
def stacks(nbytes: int) -> np.ndarray:
  """Memory for the stacks of threads, which all libraries use: one launch runs at a time."""
  return np.empty(nbytes, np.uint8)
