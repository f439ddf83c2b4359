"""OpenCL's devices, and the functions of its library. pyopencl finds the first and is linked with the second.

An ICD is a driver: the library that programs are linked with only loads those that are installed, and passes calls on.
opencl.py is the device that is made of this.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_ulong, c_void_p
from functools import partial
from typing import Any

from runtime.base import DeviceError

ORDER = ("GPU", "ACCELERATOR", "CPU")  # of the devices; any other is last
VENDORS = "OCL_ICD_VENDORS"  # a setting of OpenCL's loader: the drivers, or a folder that names them
CPU_DRIVER = "pip install 'intel-opencl-rt<2026' 'intel-cmplr-lib-rt<2026', or apt install pocl-opencl-icd"

# fmt: off
# What is called of OpenCL 1.2, and the types of its arguments. A clCreate... returns an object, and has a pointer to an
# error code as its last argument; all others return the code.
P, N, U, B = c_void_p, c_size_t, c_uint, c_ulong
FUNCTIONS: dict[str, tuple[Any, ...]] = {
  "clCreateCommandQueue":         (P, P, B, P),                 # context, device, properties
  "clCreateBuffer":               (P, B, N, P, P),              # context, flags, bytes, host memory
  "clCreateProgramWithSource":    (P, U, P, P, P),              # context, count, texts, lengths
  "clCreateProgramWithBinary":    (P, U, P, P, P, P, P),        # context, count, devices, lengths, binaries, codes
  "clBuildProgram":               (P, U, P, c_char_p, P, P),    # program, count, devices, options, callback, its data
  "clGetProgramBuildInfo":        (P, P, U, N, P, P),           # program, device, what, bytes, value, bytes needed
  "clGetProgramInfo":             (P, U, N, P, P),
  "clCreateKernel":               (P, c_char_p, P),             # program, name
  "clGetKernelWorkGroupInfo":     (P, P, U, N, P, P),
  "clSetKernelArg":               (P, U, N, P),                 # kernel, position, bytes, value
  "clEnqueueNDRangeKernel":       (P, P, U, P, P, P, U, P, P),  # queue, kernel, axes, offsets, sizes, waits, event
  "clEnqueueMigrateMemObjects":   (P, U, P, B, U, P, P),        # queue, count, memory, flags
  "clEnqueueWriteBuffer":         (P, P, U, N, N, P, U, P, P),  # queue, memory, does it wait, offset, bytes, data
  "clEnqueueReadBuffer":          (P, P, U, N, N, P, U, P, P),
  "clEnqueueCopyBuffer":          (P, P, P, N, N, N, U, P, P),  # queue, source, target, offsets, bytes
  "clEnqueueMarkerWithWaitList":  (P, U, P, P),                 # queue, waits, event
  "clEnqueueBarrierWithWaitList": (P, U, P, P),
  "clGetEventInfo":               (P, U, N, P, P),
  "clGetEventProfilingInfo":      (P, U, N, P, P),
  "clFlush":                      (P,),
  "clFinish":                     (P,),
  "clReleaseMemObject":           (P,),
  "clReleaseProgram":             (P,),
  "clReleaseKernel":              (P,),
  "clReleaseEvent":               (P,),
}
# fmt: on
PROFILING = 1 << 1  # a queue with times
CONTENT_UNDEFINED = 1 << 1  # of memory that moves
BINARY_SIZES, BINARIES, BUILD_LOG, KERNEL_GROUP_SIZE = 0x1165, 0x1166, 0x1183, 0x11B0
EVENT_STATUS, EVENT_START, EVENT_END = 0x11D3, 0x1282, 0x1283
CORRECTLY_ROUNDED = 1 << 7  # of the bits that say how float32 computes
NO_MEMORY = {-4, -6, -61}  # allocation failure, out of host memory, too large a buffer
HINTS = {
  -61: "one buffer cannot be so large there",
  -5: "a kernel needs more registers or shared memory than there are, or one before it failed",
  -2: "it was lost; start the program again",
  -36: "it was lost, or a kernel failed; start the program again",
}


def find(index: int) -> tuple[Any, Any]:
  """(pyopencl, its device with this number). DeviceError says what to install."""
  try:
    import pyopencl  # type: ignore[import-not-found, unused-ignore]
  except ImportError as e:
    more = f"and where there is no driver one for CPUs: {CPU_DRIVER}"
    raise DeviceError(f"OpenCL needs pyopencl: pip install pyopencl; {more} ({e})") from None
  found = devices(pyopencl)
  if not found:
    raise DeviceError(f"OpenCL has no device: install the driver of a GPU, or one for CPUs ({CPU_DRIVER})")
  if index >= len(found):
    names = ", ".join(f"{n}: {d.name.strip()}" for n, d in enumerate(found))
    raise DeviceError(f"OpenCL has no device {index}; there are {names}")
  return pyopencl, found[index]


def devices(pyopencl: Any) -> list[Any]:
  """All devices that are there, the best first."""
  found: list[Any] = []
  with wheel_driver():
    try:
      platforms = pyopencl.get_platforms()
    except pyopencl.Error:  # there is none
      platforms = []
  for platform in platforms:
    try:
      found += platform.get_devices()
    except pyopencl.Error:  # it has none, or its driver is broken
      pass
  kinds = [getattr(pyopencl.device_type, name) for name in ORDER]
  return sorted(found, key=lambda d: next((n for n, kind in enumerate(kinds) if d.type & kind), len(kinds)))


@contextmanager
def wheel_driver() -> Iterator[None]:
  """Tells the loader of the driver in the wheel intel-opencl-rt, which registers itself nowhere,
  where there is no other.

  The loader asks for drivers once in a process, when it is first called.
  """
  path = os.path.join(sysconfig.get_path("data"), "lib", "libintelocl.so")
  if VENDORS in os.environ or glob.glob("/etc/OpenCL/vendors/*.icd") or not os.path.exists(path):
    yield
    return
  os.environ[VENDORS] = path
  try:
    yield
  finally:
    del os.environ[VENDORS]


class Functions:
  """OpenCL's functions: `functions[name]` as they are; `create` and `call` raise what they say is wrong."""

  def __init__(self, pyopencl: Any, where: str):
    """where: the device, for errors."""
    self.where = where
    self.words = partial(pyopencl.status_code.to_string, default_format="error %d")
    self.table: dict[str, Any] = {}
    library = ctypes.CDLL(pyopencl._cl.__file__)
    for name, args in FUNCTIONS.items():
      self.table[name] = f = getattr(library, name)
      f.restype, f.argtypes = P if name.startswith("clCreate") else c_int, args

  def __getitem__(self, name: str) -> Any:
    return self.table[name]

  def create(self, name: str, *args: Any) -> int:
    """Calls a function that makes an object."""
    code = c_int()
    made = self.table[name](*args, byref(code))
    self.check(code.value, name)
    return made

  def call(self, name: str, *args: Any, what: str = "") -> None:
    """Calls any other function."""
    self.check(self.table[name](*args), name, what)

  def check(self, code: int, name: str, what: str = "") -> None:
    """DeviceError or MemoryError that names the function, and `what` it was for, unless the code is 0."""
    if code:
      hint = HINTS.get(code, "")
      text = (
        f"{what}{what and ': '}{name} says {self.words(code)} ({code}) on {self.where}{hint and ': '}{hint}"
      )
      raise MemoryError(text) if code in NO_MEMORY else DeviceError(text)
