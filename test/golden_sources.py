"""Golden sources: test/render/NAME.mini holds kernels, and NAME.c .cl .cu .metal what the renderers make of them;
NAME.lanes.cl is OpenCL on a processor.

  python test/golden_sources.py            compares          python test/golden_sources.py --accept    writes them

`Emulated` runs such sources on the CPU: C as it is, OpenCL with vectors by a driver of the CPU, the others by
runtime.emulate. This proves what a source means, on real numbers; it says nothing about a device's compiler.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mini.codegen.threads import threads as threads_of
from mini.engine.launch import interface
from mini.ir.kernel import access, all_ranges, carries_value
from mini.ir.uop import rkind, rsize, toposort
from mini.render import render_for
from mini.render.cstyle import RenderError
from mini.text.parser import parse_file
from mini.text.verifier import verify
from mini.types import dtypes, from_storage, to_storage
from runtime import emulate, opencl
from runtime.base import Call

FOLDER = Path(__file__).parent / "render"
PROCESSOR = "CL on a processor"
ENDING = {"CPU": ".c", "CL": ".cl", PROCESSOR: ".lanes.cl", "CUDA": ".cu", "METAL": ".metal"}
COMMENT = "// "
CC = shutil.which("gcc") or shutil.which("clang")
CXX = shutil.which("g++") or shutil.which("clang++")
CLANG = shutil.which("clang-19") or shutil.which("clang")
NVCC = shutil.which("nvcc")


def programs():
  return sorted(FOLDER.glob("*.mini"))


def kernels_in(path):
  """{name: kernel} of a file, each verified."""
  kernels = parse_file(path.read_text(), path.name)
  for k in kernels:
    verify(k)
  return {k.arg.what: k for k in kernels}


def rendered(kernels, dev):
  return render_for("CL", kernels, 8) if dev == PROCESSOR else render_for(dev, kernels)


def source(path, dev):
  """What this device's renderer makes of the file; its refusal, where it cannot."""
  try:
    return rendered(kernels_in(path), dev)
  except RenderError as e:
    return f"{COMMENT}{e}\n"


def check(path, dev, accept=False):
  """ "ok", "accepted", or what is wrong."""
  golden, got = path.with_suffix(ENDING[dev]), source(path, dev)
  if golden.exists() and golden.read_text() == got:
    return "ok"
  if accept:
    golden.write_text(got)
    return "accepted"
  return f"{golden.name} should now be\n{got}\n(python test/golden_sources.py --accept)"


class Emulated:
  """A source of this device's language, compiled for this machine. check: races and overruns are DeviceErrors."""

  def __init__(self, text, dev, check=False):
    self.dev = dev
    if dev != "CPU":
      self.shim = opencl.open() if dev == PROCESSOR else emulate.open(dev, check=check)
      self.library = self.shim.compile(text)
      return
    with tempfile.TemporaryDirectory() as folder:
      output = os.path.join(folder, "kernels.so")
      flags = (
        "-x c -std=gnu11 -fwrapv -fno-strict-aliasing -O1 -w -march=native -ffp-contract=fast -fPIC -shared"
      )
      subprocess.run([CC, *flags.split(), "-", "-o", output, "-lm"], input=text, text=True, check=True)
      self.library = ctypes.CDLL(output)

  def run(self, kernel, data, threads=1):
    """What the kernel writes, by name, and its error word. `data` are arrays as the interpreter holds them.

    threads: at least so many; a kernel that has local ranges gets the groups that it wants.
    """
    params = interface(kernel)
    memory = [np.array(to_storage(data[m.name], m.dtype)) for m in params]  # of a single number, too
    error = np.zeros(1, np.int64)
    if self.dev == "CPU":
      self._call(kernel, [*memory, error], threads)
    else:
      error[0] = self._launch(kernel, memory, threads)
    written = {m.name: from_storage(x, m.dtype) for m, x in zip(params, memory) if m.where != "in"}
    return written, int(error[0])

  def _call(self, kernel, memory, parts):
    """Runs C on the memory itself, `parts` parts of the range one after another."""
    pointers = (ctypes.c_void_p * len(memory))(*(m.ctypes.data for m in memory))
    part = extent(kernel) // parts
    for n in range(parts):
      hi = extent(kernel) if n == parts - 1 else (n + 1) * part
      getattr(self.library, kernel.arg.what)(pointers, ctypes.c_long(n * part), ctypes.c_long(hi))

  def _launch(self, kernel, memory, threads):
    """Runs a kernel on an emulated device, and copies its memory back; returns the error word."""
    blocks = [self.shim.alloc(m.nbytes) for m in memory]
    for block, m in zip(blocks, memory):
      self.shim.upload(block, m)
    args = [(n, 0) for n in range(len(memory))] + ([(-1, 0)] if guarded(kernel) else [])
    group = threads_of(kernel)
    call = Call(self.library[kernel.arg.what], args, extent(kernel) if group else threads, 0, group)
    sequence = self.shim.sequence([call])
    sequence.run(blocks)
    for block, m in zip(blocks, memory):
      m[...] = self.shim.download(block, m.nbytes).view(m.dtype).reshape(m.shape)
    return sequence.error()


def guarded(kernel):
  """Does the kernel take the error word?"""
  return any(carries_value(access(u)[2]) for u in toposort(kernel) if u.op in ("load", "store"))


def extent(kernel):
  """The size of the parallel range."""
  return next((rsize(r) for r in all_ranges(kernel) if rkind(r) == "par"), 1)


def random_inputs(kernel, seed, laced=True):
  """Numbers for a kernel's parameters: half of the floats are edge values;
  integers are small, and also out of range."""
  rng = np.random.default_rng(seed)
  data = {}
  for m in interface(kernel):
    if m.dtype.kind == "f":
      edges = rng.choice([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan], m.shape)
      x = np.where(laced & (rng.random(m.shape) < 0.3), edges, rng.standard_normal(m.shape))
      data[m.name] = from_storage(to_storage(x.astype(np.float32), m.dtype), m.dtype)
    else:
      data[m.name] = rng.integers(0, 2 if m.dtype is dtypes.bool else 7, m.shape).astype(m.dtype.np)
  return data


if __name__ == "__main__":
  results = {(p, dev): check(p, dev, "--accept" in sys.argv) for p in programs() for dev in ENDING}
  for (path, dev), result in results.items():
    print(path.stem, dev, result)
  sys.exit(any(r not in ("ok", "accepted") for r in results.values()))
