"""What this machine can do at most: products per second, bytes per second, launches per second.

Measured by three small kernels, once for each processor and number of threads, and kept on disk; the setting LIMITS
overrides what was found. PROFILE compares kernels with them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from mini.config import config
from runtime import host
from runtime.base import Call

BURSTS = 20  # of which the best counts: other processes may have the cores
ROUNDS = 50_000  # of a burst of products: about 0.1 ms
CHAINS = 12  # sums that do not wait for each other: two units that take 4 or 5 cycles each have enough, in 16 registers
BLOCK, BLOCKS = 1 << 20, 1 << 8  # bytes of one index of the reading kernel, and how many: beyond every cache
STREAMS = 16  # places of it that are read at once: an Ice Lake reads 28 GB/s so, and 12 to 21 of one
# fmt: off
SOURCE = """typedef float vector __attribute__((vector_size(4 * LANES)));
void products(void **args, long lo, long hi) {
  for (long i = lo; i < hi; i++) {
    vector x = {0.5f}, y = {1.0f}DECLARED;
    for (long n = 0; n < ROUNDS; n++) {
      __asm__ volatile("" : "+x"(x));
      STEPS
    }
    *(vector *)((char *)args[0] + i * 64) = x SUM;
  }
}
void reading(void **args, long lo, long hi) {
  for (long i = lo; i < hi; i++) {
    vector *p = (vector *)((char *)args[0] + i * BLOCK), a = p[0], b = a, c = a, d = a;
    for (long n = 0; n < PART; n++) { READS }
    p[0] = a + b + c + d;
  }
}
void nothing(void **args, long lo, long hi) {}
"""
# fmt: on


class Limits(NamedTuple):
  """Of all threads together."""

  gflops: float  # 10^9 multiplications and additions of float32 a second
  gbs: float  # 10^9 bytes read from memory a second
  us: float  # microseconds to hand a kernel to the threads, and to wait for them

  def nearest(self, seconds: float, flops: float, nbytes: float) -> tuple[float, str]:
    """Of one call of a kernel: (how much of it the limit that it is nearest to explains, in words)."""
    share, limit = max(
      (flops / seconds / 1e9 / self.gflops, f"compute: {self.gflops:.0f} GFLOP/s"),
      (nbytes / seconds / 1e9 / self.gbs, f"memory: {self.gbs:.0f} GB/s"),
      (self.us / seconds / 1e6, f"latency: {self.us:.1f} us"),
    )
    cached = ", its data in a cache" if share > 1 and limit.startswith("memory") else ""
    return share, f"{100 * share:.0f} % of {limit}{cached}"


def of(shim: Any) -> Limits:
  """The limits of a CPU, with those of the setting LIMITS instead."""
  given = dict(config.LIMITS)
  if set(given) == set(Limits._fields):
    return Limits(**given)
  return _measured(shim)._replace(**given)


@lru_cache(8)
def _measured(shim: Any) -> Limits:
  key = "\n".join(["limits", SOURCE, str(shim.info.threads), shim.compiler.name, host.processor()])
  path = shim.cache.get(key) if shim.cache else None
  if path:
    return Limits(*json.loads(host.read(path)))
  found = measure(shim)
  if shim.cache:
    shim.cache.put(key, json.dumps(found).encode())
  return found


def source(lanes: int) -> str:
  names = [f"a{n}" for n in range(CHAINS)]
  part = BLOCK // STREAMS // (4 * lanes)  # vectors of a stream
  return (
    SOURCE.replace("DECLARED", "".join(f", {a} = y * {n}.0f" for n, a in enumerate(names)))
    .replace("STEPS", " ".join(f"{a} = {a} * x + y;" for a in names))
    .replace("READS", " ".join(f"{'abcd'[n % 4]} += p[n + {n * part}];" for n in range(STREAMS)))
    .replace("PART", str(part))
    .replace("SUM", "".join(f" + {a}" for a in names))
    .replace("LANES", str(lanes)).replace("ROUNDS", str(ROUNDS)).replace("BLOCK", str(BLOCK))
  )  # fmt: skip


def measure(shim: Any) -> Limits:
  """Half a second, and a third for the C compiler. Products are those of one thread, times the threads."""
  threads, lanes = shim.info.threads, shim.info.lanes
  library = shim.compile(source(lanes))
  memory = shim.alloc(BLOCK * BLOCKS)
  shim.upload(memory, bytes(BLOCK * BLOCKS))

  def times(name: str, extent: int, calls: int) -> list[float]:
    work = 1e6  # ns: all threads take part
    sequence = shim.sequence([Call(library[name], [(0, 0)], extent, work)] * calls)
    return sorted(max(s, 1e-9) for s in sequence.timed([memory])[1])

  found = Limits(
    2 * lanes * CHAINS * ROUNDS * threads / times("products", 1, BURSTS)[0] / 1e9,
    BLOCK * BLOCKS / times("reading", BLOCKS, BURSTS)[0] / 1e9,
    times("nothing", threads, 200)[100] * 1e6,
  )
  shim.free(memory)
  return found
