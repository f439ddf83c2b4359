"""Compiled code that was loaded: from a file, or from its bytes, also where temporary files may not be executed."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_void_p
from pathlib import Path

from runtime.base import Cache, DeviceError
from runtime.files import mark


class Library:
  """Loaded code: `library[name]` is the address of a function."""

  def __init__(self, code: ctypes.CDLL):
    self.code = code
    self.addresses: dict[str, int] = {}

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

  def __getitem__(self, name: str) -> int:
    if name not in self.addresses:
      address = ctypes.cast(getattr(self.code, name), c_void_p).value
      assert address is not None
      self.addresses[name] = address
    return self.addresses[name]


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
