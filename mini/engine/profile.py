"""PROFILE=1: where the time went. Imported only where it is set.

Kernels are timed where they run. The rest of mini is timed by the functions of SECTIONS, each without what it calls
that has a row of its own; what is left is the program's own Python. So the rows add up to the wall time, but for
threads of the program's own, which count beside each other.
"""

from __future__ import annotations

import atexit
import functools
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from mini.config import config
from mini.engine import limits
from mini.engine.device import Device

# fmt: off
SECTIONS = (  # row, module, what is timed
  ("capture a jitted function",        "mini.compiled_function",         "Routine.__init__"),
  ("bind a jitted function's memory",  "mini.compiled_function",         "Routine.__call__"),
  ("gradients",                        "mini.tensor.autograd", "Autograd.backward"),
  ("realize",                          "mini.engine.realize",  "compute"),
  ("make a program",                   "mini.engine.program",  "Program.__init__"),
  ("schedule",                         "mini.engine.program",  "scheduled"),
  ("recipes and sources",              "mini.engine.program",  "compile_kernels"),
  ("compiler, or the cache on disk",   "mini.engine.device",   "Opened.build"),
  ("open a device",                    "mini.engine.device",   "Opened.__init__"),
  ("launch",                           "mini.engine.program",  "Program.launch"),
  ("bind a program's memory",          "mini.engine.program",  "Program.bind"),
  ("allocate memory",                  "mini.engine.device",   "Opened.alloc"),
  ("upload",                           "mini.engine.device",   "Opened.upload"),
  ("download",                         "mini.engine.device",   "Opened.download"),
  ("download",                         "mini.engine.buffer",   "Buffer.numpy"),
  ("copy",                             "mini.engine.device",   "Opened.copy"),
  ("wait",                             "mini.engine.device",   "Opened.synchronize"),
)
# fmt: on
PYTHON = "the program's own Python"


class Sum(NamedTuple):
  """Of a row."""

  calls: int = 0
  seconds: float = 0.0
  flops: int = 0
  nbytes: int = 0

  def plus(self, other: Sum) -> Sum:
    return Sum(
      self.calls + other.calls,
      self.seconds + other.seconds,
      self.flops + other.flops,
      self.nbytes + other.nbytes,
    )


class Nested(threading.local):
  inner = 0.0  # seconds of rows within the section that this thread is in


_nested = Nested()
_lock = threading.Lock()
_kernels: dict[tuple[str, str], Sum] = {}  # (device, kernel)
_sections: dict[str, Sum] = {}
_since = 0.0


def add_kernels(device: str, times: list[tuple[str, float, int, int]]) -> None:
  """(kernel, seconds, arithmetic operations, bytes of distinct memory) of launches."""
  with _lock:
    for name, s, flops, nbytes in times:
      key = device, name
      _kernels[key] = _kernels.get(key, Sum()).plus(Sum(1, s, flops, nbytes))
      _nested.inner += s


def timed(row: str, fn: Callable) -> Callable:
  @functools.wraps(fn)
  def run(*args: Any, **kwargs: Any) -> Any:
    if not config.PROFILE:
      return fn(*args, **kwargs)
    outer, _nested.inner = _nested.inner, 0.0
    start = time.perf_counter()
    try:
      return fn(*args, **kwargs)
    finally:
      seconds = time.perf_counter() - start
      with _lock:
        _sections[row] = _sections.get(row, Sum()).plus(Sum(1, seconds - _nested.inner))
      _nested.inner = outer + seconds

  return run


@functools.cache
def start() -> None:
  """From here on time is counted, wherever PROFILE is set; the table is printed when the process ends."""
  for row, module, name in SECTIONS:
    *path, last = name.split(".")
    owner = functools.reduce(getattr, path, import_module(module))
    setattr(owner, last, timed(row, getattr(owner, last)))
  reset()
  atexit.register(report)


def reset() -> None:
  """Forgets what was counted."""
  global _since
  with _lock:
    _kernels.clear()
    _sections.clear()
  _since = time.perf_counter()


class Row(NamedTuple):
  what: str
  sum: Sum
  rates: str = ""  # of a kernel
  limit: str = ""


def rates(seconds: float, flops: float, nbytes: float) -> str:
  seconds = max(seconds, 1e-9)
  return f"{flops / seconds / 1e9:9.2f} GFLOP/s {nbytes / seconds / 1e9:8.2f} GB/s"


def rows() -> list[Row]:
  """Kernels and sections since the last `reset`, the costliest first, and what is left for Python."""
  wall = time.perf_counter() - _since
  with _lock:
    kernels, sections = dict(_kernels), dict(_sections)
  found = [Row(row, s) for row, s in sections.items()]
  for (device, name), s in kernels.items():
    opened = Device[device]
    limit = ""
    if not opened.interprets and opened.shim.info.kind == "cpu":
      limit = limits.of(opened.shim).nearest(
        max(s.seconds, 1e-9) / s.calls, s.flops / s.calls, s.nbytes / s.calls
      )[1]
    found.append(Row(name, s, rates(s.seconds, s.flops, s.nbytes), limit))
  left = wall - sum(r.sum.seconds for r in found)
  return sorted([*found, Row(PYTHON, Sum(0, max(left, 0.0)))], key=lambda r: -r.sum.seconds)


def table() -> list[str]:
  """The rows as comments; the last line names the slowest kernel's limit."""
  found = rows()
  total = sum(r.sum.seconds for r in found)
  kernels = [r for r in found if r.rates]
  seconds, launches = sum(r.sum.seconds for r in kernels), sum(r.sum.calls for r in kernels)
  lines = [f"# {total:.3f} s, of which {seconds:.3f} s in {launches:,} launches"]
  for what, (calls, s, *_), rate, limit in found:
    share, each = 100 * s / max(total, 1e-9), f"{calls:8} x {1e3 * s / calls:10.4f} ms" if calls else ""
    lines.append(f"# {share:5.1f} % {s:9.4f} s {each:24} {what:40} {rate} {limit}".rstrip())
  if kernels and kernels[0].limit:
    lines.append(f"# the slowest kernel, {kernels[0].what}: {kernels[0].limit}")
  return lines


def report() -> None:
  """Prints the table, if mini did anything, and begins anew."""
  with _lock:
    idle = not _kernels and not _sections
  if idle:
    return
  lines = table()
  reset()
  sys.stderr.write("\n".join(lines) + "\n")
  sys.stderr.flush()
