"""What this machine can do at most: GFLOP/s of multiply-adds and GB/s read, as PROFILE measures them, and besides GB/s
copied past the caches and scaled in place, by kernels of C. The best of several rounds.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from common import arguments, show

from mini.config import config
from mini.engine import limits
from mini.engine.device import Device
from runtime import compiler
from runtime.base import Call
from runtime.host import available_threads

BLOCK, BLOCKS = 1 << 16, 1 << 11  # bytes of one index of a kernel, and how many: 128 MiB, beyond every cache
SAID = ("model name", "cpu family", "model", "cache size")  # of /proc/cpuinfo
# fmt: off
SOURCE = """typedef float vector __attribute__((vector_size(4 * LANES)));
#ifdef __clang__
#define STREAM(p, x) __builtin_nontemporal_store(x, p)
#elif defined(__AVX512F__)
#define STREAM(p, x) __builtin_ia32_movntps512((float *)(p), x)
#elif defined(__AVX__)
#define STREAM(p, x) __builtin_ia32_movntps256((float *)(p), x)
#elif defined(__SSE__)
#define STREAM(p, x) __builtin_ia32_movntps((float *)(p), x)
#else
#define STREAM(p, x) (*(p) = (x))
#endif
void copied(void **args, long lo, long hi) {
  vector *q = (vector *)((char *)args[0] + lo * BLOCK), *p = (vector *)((char *)args[1] + lo * BLOCK);
  for (long i = 0; i < (hi - lo) * BLOCK / (4 * LANES); i++) STREAM(q + i, p[i]);
}
void scaled(void **args, long lo, long hi) {
  vector *p = (vector *)((char *)args[0] + lo * BLOCK);
  for (long i = 0; i < (hi - lo) * BLOCK / (4 * LANES); i++) p[i] *= 1.5f;
}
"""
# fmt: on


def measure(seconds: float = 1.0) -> dict[str, float]:
  """seconds: for each of what PROFILE does not measure."""
  shim = Device["CPU"].shim
  library = shim.compile(SOURCE.replace("LANES", str(shim.info.lanes)).replace("BLOCK", str(BLOCK)))
  memory = [shim.alloc(BLOCK * BLOCKS) for _ in range(2)]
  for m in memory:
    shim.upload(m, bytes(BLOCK * BLOCKS))
  most = limits.measure(shim)
  best = {"GFLOP/s": most.gflops, "GB/s read": most.gbs}
  for name, args in {"copied": [(0, 0), (1, 0)], "scaled": [(0, 0)]}.items():
    sequence = shim.sequence([Call(library[name], args, BLOCKS, 1e6)])
    end = time.perf_counter() + seconds
    shortest = float("inf")
    while time.perf_counter() < end:
      shortest = min(shortest, *sequence.timed(memory)[1])
    best[f"GB/s {name}"] = 2e-9 * BLOCK * BLOCKS / shortest
  for m in memory:
    shim.free(m)
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
