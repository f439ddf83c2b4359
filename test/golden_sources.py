"""Golden sources: test/render/NAME.mini holds kernels, and NAME.c .cl .cu .metal what the renderers make of them.

  python test/golden_sources.py            compares          python test/golden_sources.py --accept    writes them

`Emulated` runs such sources on the CPU: C as it is, the others as C++ against the headers in test/render/emulate, thread
after thread. This proves what a source means, on real numbers; it says nothing about a device's compiler.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mini.engine.launch import interface
from mini.ir.kernel import access, all_ranges, carries_value
from mini.ir.parse import parse_file
from mini.ir.uop import rkind, rsize, toposort
from mini.ir.verify import verify
from mini.render import render_for
from mini.render.cstyle import RenderError
from mini.types import dtypes, from_storage, to_storage

FOLDER = Path(__file__).parent / "render"
ENDING = {"CPU": ".c", "CL": ".cl", "CUDA": ".cu", "METAL": ".metal"}
COMMENT = "// "
CC = shutil.which("gcc") or shutil.which("clang")
CXX = shutil.which("g++") or shutil.which("clang++")
CLANG = shutil.which("clang-19") or shutil.which("clang")
NVCC = shutil.which("nvcc")
HEADERS = {"CL": "cl.h", "CUDA": "cuda.h", "METAL": "metal_stdlib"}


def programs():
  return sorted(FOLDER.glob("*.mini"))


def kernels_in(path):
  """{name: kernel} of a file, each verified."""
  kernels = parse_file(path.read_text(), path.name)
  for k in kernels:
    verify(k)
  return {k.arg.what: k for k in kernels}


def source(path, dev):
  """What this device's renderer makes of the file; its refusal, where it cannot."""
  try:
    return render_for(dev, kernels_in(path))
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
  """A source of this device's language, compiled for this machine."""

  def __init__(self, text, dev):
    self.dev = dev
    with tempfile.TemporaryDirectory() as folder:
      output = os.path.join(folder, "kernels.so")
      contract = ["-march=native", "-ffp-contract=fast"]  # as devices do: a * b + c may round once
      common = ["-O1", "-w", *contract, "-fPIC", "-shared", "-", "-o", output, "-lm"]
      if dev == "CPU":
        command = [CC, "-x", "c", "-std=gnu11", "-fwrapv", "-fno-strict-aliasing", *common]
      else:
        emulate = str(FOLDER / "emulate")
        header = ["-I", emulate, "-include", os.path.join(emulate, HEADERS[dev])]
        command = [CXX, "-x", "c++", "-std=gnu++17", *header, *common]
      subprocess.run(command, input=text, text=True, check=True)
      self.library = ctypes.CDLL(output)

  def run(self, kernel, data, threads=1):
    """What the kernel writes, by name, and its error word. `data` are arrays as the interpreter holds them."""
    params = interface(kernel)
    memory = [to_storage(data[m.name], m.dtype).copy() for m in params]
    error = np.zeros(1, np.int64)
    pointers = [ctypes.c_void_p(m.ctypes.data) for m in (*memory, error)]
    function = getattr(self.library, kernel.arg.what)
    for thread in range(threads):
      if self.dev == "CPU":
        array = (ctypes.c_void_p * len(pointers))(*pointers)
        part = extent(kernel) // threads
        hi = extent(kernel) if thread == threads - 1 else (thread + 1) * part
        function(array, ctypes.c_long(thread * part), ctypes.c_long(hi))
      else:
        ctypes.c_long.in_dll(self.library, "emu_id").value = thread
        ctypes.c_long.in_dll(self.library, "emu_ids").value = threads
        place = [ctypes.c_uint(thread), ctypes.c_uint(threads)] if self.dev == "METAL" else []
        passed = pointers[:-1]
        if self.dev == "CL":  # each with its offset in bytes
          passed = [x for p in passed for x in (p, ctypes.c_long(0))]
        function(*passed, *(pointers[-1:] if guarded(kernel) else []), *place)
    written = {m.name: from_storage(x, m.dtype) for m, x in zip(params, memory) if m.where != "in"}
    return written, int(error[0])


def guarded(kernel):
  """Does the kernel take the error word?"""
  return any(carries_value(access(u)[2]) for u in toposort(kernel) if u.op in ("load", "store"))


def extent(kernel):
  """The size of the parallel range."""
  return next((rsize(r) for r in all_ranges(kernel) if rkind(r) == "par"), 1)


def random_inputs(kernel, seed, laced=True):
  """Numbers for a kernel's parameters: half of the floats are edge values; integers are small, and also out of range."""
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
