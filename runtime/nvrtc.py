"""NVRTC, NVIDIA's compiler as a library, by ctypes: CUDA C++ -> code for one kind of GPU.
No header is needed, and no GPU.

It is looked for in the wheels nvidia-cuda-nvrtc (CUDA 13) and nvidia-cuda-nvrtc-cu12, in the toolkit, and wherever the
system looks for libraries. What comes out is a cubin, machine code for the device's own architecture; a device that is
newer than the NVRTC gets PTX for the newest that it knows, which the driver translates.
"""

from __future__ import annotations

import ctypes
import glob
import logging
import os
import re
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from importlib.util import find_spec
from typing import Any

from runtime import compiler
from runtime.base import DeviceError

log = logging.getLogger("mini")

# As exact as the language promises: a * b + c may round once, nothing else changes a result.
# (These are NVRTC's defaults.)
EXACT = ("--fmad=true", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
OPTIONS = (*EXACT, "--diag-suppress=177")  # functions that nobody calls are no mistake
OLD = re.compile(r"^nvrtc: warning: Architectures prior to .*\n?", re.MULTILINE)  # says nothing of the source
KERNEL = re.compile(r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)")
MAJORS = (13, 12)
WHEELS = {
  13: ("nvidia-cuda-nvrtc", "cu13"),
  12: ("nvidia-cuda-nvrtc-cu12", "cuda_nvrtc"),
}  # -> its name, its folder


def open(capability: int, newest: int = MAJORS[0]) -> NVRTC:
  """The NVRTC for devices of a compute capability, 90 for 9.0. newest: the major version of CUDA that the driver knows:
  code that a newer NVRTC made may not load. DeviceError says what to install."""
  refused = []
  for path in candidates(newest):
    try:
      return NVRTC(path, capability)
    except OSError:  # there is none
      pass
    except DeviceError as e:
      refused.append(str(e))
  if refused:
    raise DeviceError(refused[0])
  wheel = next(name for major, (name, _) in WHEELS.items() if major <= newest)
  raise DeviceError(f"CUDA needs NVRTC to compile kernels, and none was found: pip install {wheel}")


def candidates(newest: int) -> list[str]:
  """Where an NVRTC may be, the newest first."""
  paths = []
  spec = find_spec("nvidia")
  nvcc = compiler.which("nvcc")
  toolkits = [os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))] if nvcc else []
  toolkits += sorted(glob.glob("/usr/local/cuda*"), reverse=True)
  for major in (m for m in MAJORS if m <= newest):
    name = f"libnvrtc.so.{major}"
    for folder in spec.submodule_search_locations or () if spec else ():
      paths.append(os.path.join(folder, WHEELS[major][1], "lib", name))
    paths += [os.path.join(folder, "lib64", name) for folder in toolkits]
    paths.append(name)
  return list(dict.fromkeys(paths))


class NVRTC:
  """One library, for one architecture. Calling it compiles; any number of threads may."""

  def __init__(self, path: str, capability: int):
    """OSError where there is no such library, DeviceError where it does not know the architecture."""
    if os.path.dirname(path):
      if not os.path.exists(path):
        raise OSError(path)
      # It looks for this by its bare name, but not beside itself.
      for part in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so.*")):
        ctypes.CDLL(part, mode=ctypes.RTLD_GLOBAL)
    self.library = ctypes.CDLL(path)
    self.library.nvrtcGetErrorString.restype = c_char_p
    major, minor, count = c_int(), c_int(), c_int()
    self.call("nvrtcVersion", byref(major), byref(minor))
    self.version = f"{major.value}.{minor.value}"
    self.call("nvrtcGetNumSupportedArchs", byref(count))
    known = (c_int * count.value)()
    self.call("nvrtcGetSupportedArchs", known)
    fitting = [arch for arch in known if arch <= capability]
    if not fitting:
      have = f"NVRTC {self.version} compiles for sm_{min(known)} and newer, this device is sm_{capability}"
      raise DeviceError(f"{have}: pip install {WHEELS[MAJORS[-1]][0]}")
    self.is_exact = capability in fitting
    self.architecture = f"{'sm' if self.is_exact else 'compute'}_{max(fitting)}"

  def key(self, source: str) -> str:
    """What decides the bytes that come out: equal keys mean equal code."""
    return "\n".join(["cuda", self.version, self.architecture, *OPTIONS, source])

  def __call__(self, source: str) -> bytes:
    """The code. DeviceError with the compiler's words and the kernel's name. Warnings go to the log."""
    code, words = self.compile(source)
    if words:
      log.warning("NVRTC %s on %s:\n%s", self.version, kernel_of(source, words), indented(words))
    return code

  def compile(self, source: str, more: tuple[str, ...] = ()) -> tuple[bytes, str]:
    """(the code, what the compiler says). more: options."""
    program = c_void_p()
    text = [option.encode() for option in (f"--gpu-architecture={self.architecture}", *OPTIONS, *more)]
    options = (c_char_p * len(text))(*text)
    self.call("nvrtcCreateProgram", byref(program), source.encode(), b"kernels.cu", 0, None, None)
    try:
      failed = self.library.nvrtcCompileProgram(program, len(options), options)
      words = OLD.sub("", self.text(program, "nvrtcGetProgramLog").decode(errors="replace").strip("\0\n"))
      if failed:
        raise DeviceError(f"NVRTC {self.version} refuses {kernel_of(source, words)}:\n{indented(words)}")
      return self.text(program, "nvrtcGetCUBIN" if self.is_exact else "nvrtcGetPTX"), words
    finally:
      self.library.nvrtcDestroyProgram(byref(program))

  def text(self, program: c_void_p, name: str) -> bytes:
    """What one of the pairs of functions NAMESize and NAME gives."""
    nbytes = c_size_t()
    self.call(name + "Size", program, byref(nbytes))
    data = ctypes.create_string_buffer(nbytes.value)
    self.call(name, program, data)
    return data.raw

  def call(self, name: str, *args: Any) -> None:
    code = getattr(self.library, name)(*args)
    if code:
      raise DeviceError(f"{name}: {self.library.nvrtcGetErrorString(code).decode()}")


def kernel_of(source: str, words: str) -> str:
  """The kernel that the compiler speaks of first, for people."""
  line = re.search(r"kernels\.cu\((\d+)\)", words)
  if line:
    names = KERNEL.findall("\n".join(source.splitlines()[: int(line[1])]))[-1:]
  else:  # the assembler names functions
    names = re.findall(r"[Ff]unction '(\w+)'", words) or KERNEL.findall(source)
  return f"kernel {names[0]}" if names else "the source"


def indented(words: str) -> str:
  """The first lines of a compiler's output."""
  lines = [line for line in words.splitlines() if line.strip()]
  return "\n".join("  " + line for line in lines[:8])
