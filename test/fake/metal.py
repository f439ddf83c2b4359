"""The Metal shim's surroundings in tests: the fake library, kernels, and a few words to use them with."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

import numpy as np

from runtime.base import Call

HERE = os.path.dirname(os.path.abspath(__file__))
IDS = "uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]"
SOURCE = f"""#include <metal_stdlib>
using namespace metal;
kernel void add(device float *c [[buffer(0)]], device const float *a [[buffer(1)]], device const float *b [[buffer(2)]], {IDS}) {{
  for (long i = id; i < 96; i += ids) c[i] = a[i] + b[i];
}}
kernel void count(device int *a [[buffer(0)]], {IDS}) {{
  for (long i = id; i < 1000; i += ids) a[i] += 1;
}}
kernel void bump(device int *a [[buffer(0)]], {IDS}) {{
  if (id == 0) a[0] += 1;
}}
kernel void twice(device int *b [[buffer(0)]], device const int *a [[buffer(1)]], {IDS}) {{
  if (id == 0) b[0] = 2 * a[0] + 1;
}}
kernel void fail(device const int *a [[buffer(0)]], device long *err [[buffer(1)]], {IDS}) {{
  if (id == 0 && a[0]) *err = a[0];
}}
kernel void reversed(device int *b [[buffer(0)]], device const int *a [[buffer(1)]], uint group [[threadgroup_position_in_grid]],
                     uint groups [[threadgroups_per_grid]], uint t [[thread_index_in_threadgroup]]) {{
  threadgroup int part[64];
  for (long i = group; i < 5; i += groups) {{
    part[t] = a[64 * i + t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    b[64 * i + t] = part[63 - t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }}
}}
"""
CLASSES = "Device Buffer Queue CommandBuffer ComputeEncoder BlitEncoder CompileOptions Library Function Pipeline String Error Array"


def make(folder) -> str:
  """Compiles the fake library into a folder, where it keeps what it compiles. Its path."""
  kept = folder / "kept"
  kept.mkdir()
  path = str(folder / "metal.so")
  command = [
    "cc",
    "-O1",
    "-Wall",
    "-shared",
    "-fPIC",
    os.path.join(HERE, "metal.c"),
    "-o",
    path,
    "-ldl",
    "-lpthread",
  ]
  subprocess.run(command, check=True)
  os.environ["FAKE_METAL_COMPILER"] = f"{sys.executable} -S -E {HERE}/compile.py METAL {kept}"
  return path


class Fake:
  """A copy of the library that is loaded."""

  def __init__(self, path):
    self.path = str(path)
    self.library = ctypes.CDLL(self.path)

  def live(self, name: str) -> int:
    return self.library.fake_live(name.encode())

  def fail(self, selector: str, after: int = 0) -> None:
    """The message after so many more returns nil; what a `commit` starts fails."""
    self.library.fake_fail(selector.encode(), ctypes.c_long(after))

  def limit_threads(self, most: int) -> None:
    ctypes.c_ulong.in_dll(self.library, "fake_threads").value = most

  def all_live(self) -> dict[str, int]:
    gc.collect()
    return {name: self.live(name) for name in CLASSES.split() if self.live(name)}


def filled(device, array):
  block = device.alloc(array.nbytes)
  device.upload(block, array)
  return block


def read(device, block, dtype=np.int32):
  return device.download(block, block.nbytes).view(dtype)


def call(function, *slots, extent=1, **more):
  return Call(function, [s if isinstance(s, tuple) else (s, 0) for s in slots], extent, 0.0, **more)
