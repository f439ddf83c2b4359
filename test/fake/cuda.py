"""The CUDA shim's surroundings in tests: the fake libcuda, kernels, and a few words to use them with."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
from pathlib import Path

import numpy as np

from runtime.base import Call
from runtime.emulate import build

HERE = os.path.dirname(os.path.abspath(__file__))
EACH = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < {}; i += gridDim.x * blockDim.x)"
SOURCE = f"""
extern "C" __global__ void add(float *c, const float *a, const float *b) {{
  {EACH.format(96)} c[i] = a[i] + b[i];
}}
extern "C" __global__ void count(int *a) {{
  {EACH.format(1000)} a[i] += 1;
}}
extern "C" __global__ void visit(int *a) {{ a[blockIdx.x * blockDim.x + threadIdx.x] += 1; }}
extern "C" __global__ void twice(int *b, const int *a) {{
  if (blockIdx.x == 0 && threadIdx.x == 0) b[0] = 2 * a[0] + 1;
}}
extern "C" __global__ void fail(const int *a, long long *err) {{
  if (a[0]) *err = a[0];
}}
extern "C" __global__ void past(int *a) {{ a[1 << 10] = 1; }}
extern "C" __global__ void diverge(int *a) {{
  if (threadIdx.x < 3) __syncthreads();
}}
extern "C" __global__ void __launch_bounds__(64) reversed(int *b, const int *a) {{
  __shared__ int part[64];
  const int t = threadIdx.x;
  for (int i = blockIdx.x; i < 5; i += gridDim.x) {{
    part[t] = a[64 * i + t];
    __syncthreads();
    b[64 * i + t] = part[63 - t];
    __syncthreads();
  }}
}}
"""


def make(folder) -> str:
  """Compiles the fake library into a folder. Its path: it has the name by which pycuda finds it."""
  path = os.path.join(folder, "libcuda.so.1")
  flags = "-O1 -Wall -shared -fPIC -Wl,-soname,libcuda.so.1 -o"
  command = ["gcc", *flags.split(), path, os.path.join(HERE, "libcuda.c"), "-ldl", "-lpthread"]
  subprocess.run(command, check=True)
  os.environ["FAKE_CUDA_KEPT"] = str(folder)
  return path


@functools.cache
def compiler(source: str) -> bytes:
  """What stands in for NVRTC. What it made is kept beside the library, for other processes."""
  kept = Path(os.environ["FAKE_CUDA_KEPT"]) / hashlib.sha1(source.encode()).hexdigest()
  if not kept.exists():
    kept.write_bytes(build(source, "CUDA"))
  return kept.read_bytes()


class Fake:
  """The library, loaded, and its switches."""

  def __init__(self, path: str):
    self.path, self.library = path, ctypes.CDLL(path)
    self.library.fake_live.restype = ctypes.c_long

  def live(self, kind: str) -> int:
    return self.library.fake_live(kind.encode())

  def fail(self, function: str, code: int) -> None:
    """The next call of the function returns the code."""
    self.library.fake_fail(function.encode(), code)

  def lose(self, device: int, code: int) -> None:
    self.library.fake_lose(device, code)

  def limit(self, nbytes: int) -> None:
    self.library.fake_limit(ctypes.c_size_t(nbytes))

  def most(self, threads: int) -> None:
    self.library.fake_most(threads)

  def pin(self, array: np.ndarray | None) -> None:
    self.library.fake_pin(ctypes.c_void_p(array.ctypes.data if array is not None else None))

  def reset(self) -> None:
    self.fail("", 0)
    for device in (0, 1):
      self.lose(device, 0)
    self.limit(1 << 30)
    self.most(1024)
    self.pin(None)


def filled(device, array):
  block = device.alloc(array.nbytes)
  device.upload(block, array)
  return block


def read(device, block, dtype=np.int32):
  return device.download(block, block.nbytes).view(dtype)


def trim(device):
  """The driver gets back what is idle."""
  with device.driver:
    device.heap.trim()


def peek(block, dtype=np.int32):
  """What is in the memory now: work that was put off has not run."""
  return np.frombuffer(ctypes.string_at(block.address, block.nbytes), dtype)


def call(function, *slots, extent=1, **more):
  return Call(function, [s if isinstance(s, tuple) else (s, 0) for s in slots], extent, 0.0, **more)
