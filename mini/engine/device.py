"""Devices by name: a shim that was opened, the kernels that it has, and the memory that it lends.

  Device["CPU"]      opens it on first use      Device.DEFAULT      what DEV says, or CPU

The compiler is imported when a device first needs it: `import mini` is quick.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from mini.config import config
from mini.ir.uop import UOp, toposort
from mini.stats import stats
from runtime.base import DeviceError

NAMES = ("CPU", "INTERP")


class Opened:
  """One device of this process."""

  def __init__(self, name: str):
    self.name = name
    self.lock = threading.RLock()
    self.compiled: dict[UOp, Any] = {}
    self.plain: dict[UOp, Any] = {}  # with NOOPT=1
    self.functions: dict[str, Any] = {}
    if name == "CPU":
      from mini.engine.cache import disk_cache
      from runtime import cpu

      self.shim = cpu.open(cc=config.CC, threads=config.THREADS, cache=disk_cache(), counters=stats)

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> Any:
    if self.name == "INTERP":
      return np.empty(nbytes, np.uint8)
    return self.shim.alloc(nbytes)

  def upload(self, memory: Any, data: np.ndarray) -> None:
    stats["bytes_uploaded"] += data.nbytes
    if self.name == "INTERP":
      memory[:] = data.reshape(-1).view(np.uint8)
    else:
      self.shim.upload(memory, data)

  def download(self, memory: Any, nbytes: int) -> np.ndarray:
    stats["bytes_downloaded"] += nbytes
    if self.name == "INTERP":
      return memory.copy()
    return self.shim.download(memory, nbytes)

  # ---------------------------------------------------------------- kernels

  def render(self, kernel: UOp) -> tuple[str, dict[str, str]]:
    """(the kernel's function, called KERNEL; the helper functions that it calls, by name)."""
    from mini.render.c import fitting
    from mini.render.cstyle import Renderer

    r = Renderer(kernel, fitting(kernel, self.shim.info.lanes), "KERNEL")
    return r.source(), r.helpers

  def guarded(self, kernel: UOp) -> bool:
    """Does the kernel take the error word as its last argument?"""
    from mini.ir.kernel import access, carries_value

    return any(carries_value(access(u)[2]) for u in toposort(kernel) if u.op in ("load", "store"))

  def build(self, made: list) -> None:
    """Compile kernels that were rendered together: as many sources as there are cores, at once."""
    from mini.render.c import link

    new = [c for c in made if c.name not in self.functions]
    if not new:
      return
    units = min(len(new), max(1, self.shim.info.threads))
    groups = [new[n::units] for n in range(units)]
    sources = [link({c.name: (c.source, c.helpers) for c in group}) for group in groups]
    for group, library in zip(groups, self.shim.compile_all(sources)):
      for c in group:
        self.functions[c.name] = library[c.name]


class Devices:
  """The devices that were opened, by name."""

  def __init__(self) -> None:
    self.opened: dict[str, Opened] = {}
    self.lock = threading.Lock()

  def __getitem__(self, name: str) -> Opened:
    got = self.opened.get(name)
    if got is None:
      if name not in NAMES:
        raise DeviceError(f"no device {name!r}; there are {', '.join(NAMES)}")
      with self.lock:
        got = self.opened.get(name) or self.opened.setdefault(name, Opened(name))
    return got

  @property
  def DEFAULT(self) -> str:
    return config.DEV or "CPU"


Device = Devices()
