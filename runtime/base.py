"""What every device shim offers, in the order of use: open, alloc, upload, compile, launch, wait, download, free.

A shim knows addresses, sources and calls. Element types, shapes and lifetimes are the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any, Protocol


class DeviceError(RuntimeError):
  """A device that cannot be had, or that failed. The text says what was asked and what would help."""


@dataclass(frozen=True)
class Info:
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


class Cache(Protocol):
  """Where compiled code is kept between processes. A shim may be opened without one."""

  def get(self, key: str) -> str | None:
    """The path of the entry, whose bytes have been verified, or None."""

  def put(self, key: str, data: bytes) -> str | None:
    """Keeps `data` and returns the path of the entry; None where that cannot be done."""


class Library(Protocol):
  """Compiled kernels, by name."""

  def __getitem__(self, name: str) -> int:
    """What `Shim.sequence` takes as a function."""


Call = tuple[int, Many[tuple[int, int]], int, float]  # function, [(slot, byte offset)], extent, work in ns


class Sequence(Protocol):
  """Calls in order, bound to memory anew on each run."""

  def run(self, handles: Many[Any]) -> int:
    """Launches everything with `handles[i]` in slot i and returns the error word, 0 when all went well."""

  def profile(self, handles: Many[Any]) -> list[float]:
    """The same, one call after another; the seconds of each."""

  def timed(self, handles: Many[Any]) -> tuple[int, list[float]]:
    """Both: (error word, seconds)."""


class Shim(Protocol):
  """An open device."""

  info: Info

  def alloc(self, nbytes: int) -> Any: ...
  def upload(self, handle: Any, data: Any) -> None: ...
  def compile(self, source: str) -> Library: ...
  def sequence(self, calls: Many[Call]) -> Sequence: ...
  def wait(self) -> None: ...
  def download(self, handle: Any, nbytes: int) -> Any: ...
  def free(self, handle: Any) -> None: ...
