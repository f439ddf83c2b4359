"""What every device shim offers, in the order of use: open, alloc, upload, compile, launch, wait, download, free.

A shim knows addresses, sources and calls. Element types, shapes and lifetimes are the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Any, NamedTuple, Protocol


class DeviceError(RuntimeError):
  """A device that cannot be had, or that failed. The text says what was asked and what would help."""


class Info(NamedTuple):
  """What a device is, as far as code for it depends on that."""

  name: str  # "CPU"
  target: str  # what code is compiled for, for a reader: "x86-64 znver3 avx512 (gcc 12.2.0)"
  lanes: int  # float32 elements in one vector register
  registers: int  # vector registers
  threads: int  # that one launch may use
  l1_bytes: int  # data cache of one core
  l2_bytes: int
  stack_bytes: int  # that one kernel may use for its stages
  memory_bytes: int  # that this process may hold
  dtypes: frozenset[str]  # the element types of kernels, by mini's names
  kind: str = "cpu"  # cpu | gpu: which recipes suit it
  group: int = 1  # most threads of one group (block, work-group, threadgroup)
  warp: int = 1  # threads that run in step and exchange values; 1: none do
  shared_bytes: int = 0  # memory that the threads of a group share
  units: int = 1  # multiprocessors
  matrices: frozenset[str] = frozenset()  # its matrix instructions, by the names of the language's table
  queues: int = 1  # streams of launches that it works on at once
  compilers: int = 1  # sources that are worth compiling at once
  streams: int = 8  # places in memory from which a core reads the most at once
  issue: int = 4  # instructions that a core begins in a cycle


class Cache(Protocol):
  """Where compiled code is kept between processes. A shim may be opened without one."""

  def get(self, key: str) -> str | None:
    """The path of the entry, whose bytes have been verified, or None."""

  def put(self, key: str, data: bytes) -> str | None:
    """Keeps `data` and returns the path of the entry; None where that cannot be done."""


class Library(Protocol):
  """Compiled kernels, by name."""

  def __getitem__(self, name: str) -> Any:
    """What a `Call` takes as its function."""


class Call(NamedTuple):
  """One launch of a kernel, as a sequence is made of them."""

  function: Any  # library[name]
  # (slot, byte offset) of each parameter; slot -1: the error word, an int64; -2: the offset itself
  args: Many[tuple[int, int]]
  extent: int  # of the parallel range, 1 where there is none
  work: float  # ns that it takes one core, estimated
  group: int = 0  # threads of a group that the kernel was written for; 0: it runs with any number
  queue: int = 0  # where it waits for what stands before it ...
  waits: tuple[int, ...] = ()  # ... and for these calls, which stand before it in other queues
  name: str = ""  # for errors


MOST_GROUPS = 1 << 16


def geometry(call: Call, info: Info) -> tuple[int, int]:
  """(groups, threads in each) for a launch: kernels walk their range, whatever its size, in steps of the grid."""
  extent = max(call.extent, 1)  # no device launches nothing
  if call.group:
    return min(extent, MOST_GROUPS), call.group
  threads = min(256, info.group, 1 << (extent - 1).bit_length())
  return min(-(-extent // threads), MOST_GROUPS), threads


class Sequence(Protocol):
  """Calls, bound to memory anew on each run."""

  def run(self, handles: Many[Any], done: list[int] | None = None) -> int:
    """Launches everything with `handles[i]` in slot i. The error word, which is 0 when all went well; an asynchronous
    device returns 0 at once, and `error` tells. done: gets the same when all is launched, even if Ctrl-C comes then."""

  def error(self) -> int:
    """Waits; the error word of the runs since it was asked for last."""

  def profile(self, handles: Many[Any]) -> list[float]:
    """Like `run`, one call after another; the seconds of each."""

  def timed(self, handles: Many[Any]) -> tuple[int, list[float]]:
    """Both: (error word, seconds)."""


class Shim(Protocol):
  """An open device. What is launched runs in the order of the calls of one sequence, and sequences run one after
  another; so does what is copied. A device may be asynchronous: then `download`, `wait` and `error` wait for what was
  launched."""

  info: Info

  def alloc(self, nbytes: int) -> Any: ...
  def upload(self, handle: Any, data: Any, offset: int = 0) -> None: ...
  def copy(self, target: Any, source: Any, nbytes: int) -> None: ...
  def compile(self, source: str) -> Library: ...
  def compile_all(self, sources: Many[str]) -> Many[Library]: ...
  def sequence(self, calls: Many[Call]) -> Sequence: ...
  def wait(self) -> None: ...
  def download(self, handle: Any, nbytes: int, offset: int = 0) -> Any: ...
  def free(self, handle: Any) -> None: ...
