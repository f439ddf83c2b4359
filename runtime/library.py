"""Compiled code that was loaded: from a file, or from its bytes, also where temporary files may not be executed."""

from __future__ import annotations

import _ctypes
import ctypes
import os
from ctypes import c_void_p
from pathlib import Path
from weakref import finalize

from runtime.base import Cache, DeviceError
from runtime.files import mark


class Address(int):
  """Where a function is; the library stays loaded as long as somebody holds this."""

  library: Library


class Library:
  """Loaded code: `library[name]` is the `Address` of a function. A process can have some 13,000 libraries at once, so
  one that nobody holds any more is unloaded."""

  def __init__(self, code: ctypes.CDLL):
    self.code = code
    if hasattr(_ctypes, "dlclose"):
      finalize(code, _ctypes.dlclose, code._handle).atexit = False  # at the end threads may still be in it

  @staticmethod
  def at(path: str) -> Library:
    """From a file, or from its bytes where its file system executes nothing. OSError where there is no file."""
    try:
      return Library(ctypes.CDLL(path))
    except OSError:
      return Library.of(Path(path).read_bytes())

  @staticmethod
  def of(data: bytes) -> Library:
    """From the bytes of a shared library, which needs no file once it is loaded. DeviceError where none can be."""
    import tempfile  # 3 ms that a start with a warm cache saves

    with tempfile.NamedTemporaryFile(prefix=mark(), suffix=".so") as f:
      f.write(data)
      f.flush()
      try:
        return Library(ctypes.CDLL(f.name))
      except OSError as e:
        refused = e
    try:
      return Library(in_memory(data))
    except OSError:
      where = f"if nothing in {tempfile.gettempdir()} may be executed, TMPDIR=FOLDER takes another"
      raise DeviceError(f"compiled code cannot be loaded: {refused}\n  {where}") from None

  @staticmethod
  def kept(cache: Cache | None, key: str, data: bytes) -> Library:
    """From bytes that the cache then has, too."""
    path = cache.put(key, data) if cache else None
    try:
      return Library.at(path) if path else Library.of(data)
    except OSError:  # another process has just cleared the cache
      return Library.of(data)

  def __getitem__(self, name: str) -> Address:
    address = Address(ctypes.cast(self.code[name], c_void_p).value or 0)
    address.library = self
    return address


def in_memory(data: bytes) -> ctypes.CDLL:
  """A shared library without a file, on Linux: where temporary files are, nothing may be executed. A link gives each a
  name of its own; glibc takes equal names for equal libraries. OSError where that cannot be had."""
  import tempfile

  if not hasattr(os, "memfd_create"):
    raise OSError("a library needs a file here")
  with os.fdopen(os.memfd_create("mini"), "wb") as f, tempfile.TemporaryDirectory(prefix=mark()) as folder:
    f.write(data)
    f.flush()
    path = os.path.join(folder, "library.so")
    os.symlink(f"/proc/self/fd/{f.fileno()}", path)
    return ctypes.CDLL(path)
