"""What this machine can do at most, by kernels of C (limits.c): GFLOP/s of multiply-adds on one core and on all, GB/s of memory
read, copied past the caches, and scaled in place. The best of several rounds.
"""

from __future__ import annotations

import ctypes
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from common import arguments, show

from mini.config import config
from runtime import compiler
from runtime.cpu import Library
from runtime.host import available_threads

FLOATS = 1 << 25  # 128 MB, several times the last cache
SAID = ("model name", "cpu family", "model", "cache size")  # of /proc/cpuinfo


def aligned(n: int) -> np.ndarray:
  """f32[n] that begins at a cache line, each page of it written to"""
  memory = np.zeros(n + 16, np.float32)
  memory += 1
  start = -memory.ctypes.data % 64 // 4
  return memory[start : start + n]


def measure(seconds: float = 1.0) -> dict[str, float]:
  """seconds: for each figure. ctypes lets go of Python's lock while C runs, so threads of Python do."""
  made = compiler.find(config.CC)
  lib = Library.of(made.start(Path(__file__).with_name("limits.c").read_text()).finish()).code
  lib.fma_rounds.restype = lib.read_all.restype = ctypes.c_float
  threads, lanes = config.THREADS or available_threads(), made.vectors()[1]
  a, b = aligned(FLOATS), aligned(FLOATS)
  part = FLOATS // threads // 1024 * 1024

  def pointer(x: np.ndarray, n: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data + 4 * part * n)

  rounds, size = 1 << 20, ctypes.c_long(part)
  works: dict[str, tuple[int, float, Callable[[int], object]]] = {
    "GFLOP/s of one core": (1, 24e-9 * lanes * rounds, lambda n: lib.fma_rounds(ctypes.c_long(rounds))),
    "GFLOP/s": (threads, 24e-9 * lanes * rounds, lambda n: lib.fma_rounds(ctypes.c_long(rounds))),
    "GB/s read": (threads, 4e-9 * part, lambda n: lib.read_all(pointer(a, n), size)),
    "GB/s copied": (threads, 8e-9 * part, lambda n: lib.copy_all(pointer(b, n), pointer(a, n), size)),
    "GB/s scaled": (threads, 8e-9 * part, lambda n: lib.scale_all(pointer(b, n), ctypes.c_float(1.0), size)),
  }
  best = dict.fromkeys(works, 0.0)
  with ThreadPoolExecutor(threads) as pool:
    for name, (used, amount, work) in works.items():
      end = time.perf_counter() + seconds
      while time.perf_counter() < end:
        start = time.perf_counter()
        list(pool.map(work, range(used)))
        best[name] = max(best[name], used * amount / (time.perf_counter() - start))
  return best


def machine() -> str:
  """What a reader must know of it."""
  lines = (
    Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines() if os.path.exists("/proc/cpuinfo") else []
  )
  said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
  names = [said[key] if key == "model name" else f"{key} {said[key]}" for key in SAID if key in said]
  made = compiler.find(config.CC)
  return ", ".join([
    *names, made.vectors()[0], f"{config.THREADS or available_threads()} threads",
    made.name, f"Python {platform.python_version()}",
  ])  # fmt: skip


if __name__ == "__main__":
  args = arguments(__doc__)
  show({"machine": machine(), **measure(args.seconds)}, args)
