"""NVIDIA's driver for cuda.py, by ctypes: the context of a device, memory, copies, code, launches, graphs, and errors.

  with driver:    makes the device's context current in this thread. What fails inside is a DeviceError with the
                  driver's words; after an error that the driver does not recover from, every later use says
                  that the device is lost.

Everything is in the order of one stream. The functions are those that the drivers of CUDA 12 and 13 both have, with the
names that the header cuda.h gives them in the library (cuMemAlloc is cuMemAlloc_v2). driver_pycuda.py is the same
interface over pycuda.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from collections.abc import Sequence as Many
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

import numpy as np

from runtime.base import DeviceError

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY, NO_DEVICE, NOT_READY = 2, 100, 600
TYPES = {"p": c_void_p, "i": c_int, "u": c_uint, "n": c_size_t, "a": c_uint64, "s": c_char_p}  # a: an address

# fmt: off
FUNCTIONS = {  # name -> the type of each argument, a letter of TYPES
  "cuInit": "u",                       "cuDriverGetVersion": "p",        "cuDeviceGetCount": "p",
  "cuDeviceGet": "pi",                 "cuDeviceGetName": "pii",         "cuDeviceTotalMem_v2": "pi",
  "cuDeviceGetAttribute": "pii",       "cuDevicePrimaryCtxRetain": "pi", "cuCtxSetCurrent": "p",
  "cuMemAlloc_v2": "pn",               "cuMemFree_v2": "a",              "cuMemHostGetFlags": "pp",
  "cuMemcpyHtoDAsync_v2": "apnp",      "cuMemcpyDtoHAsync_v2": "panp",   "cuMemcpyDtoDAsync_v2": "aanp",
  "cuMemsetD8Async": "aunp",           "cuStreamCreate": "pu",           "cuStreamSynchronize": "p",
  "cuStreamQuery": "p",                "cuModuleLoadData": "pp",         "cuModuleGetFunction": "pps",
  "cuFuncGetAttribute": "pip",         "cuLaunchKernel": "puuuuuuuppp",  "cuEventCreate": "pu",
  "cuEventRecord": "pp",               "cuEventElapsedTime": "ppp",      "cuEventDestroy_v2": "p",
  "cuGraphCreate": "pu",               "cuGraphAddKernelNode_v2": "pppnp", "cuGraphInstantiateWithFlags": "ppa",
  "cuGraphExecKernelNodeSetParams_v2": "ppp", "cuGraphLaunch": "pp",     "cuGraphExecDestroy": "p",
  "cuGraphDestroy": "p",               "cuGetErrorName": "ip",           "cuGetErrorString": "ip",
}
ATTRIBUTES = {"MAX_THREADS_PER_BLOCK": 1, "MAX_SHARED_MEMORY_PER_BLOCK": 8, "WARP_SIZE": 10, "MULTIPROCESSOR_COUNT": 16,
              "L2_CACHE_SIZE": 38, "COMPUTE_CAPABILITY_MAJOR": 75, "COMPUTE_CAPABILITY_MINOR": 76,
              "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 81}
# fmt: on


def load(path: str = "") -> ctypes.CDLL:
  """libcuda, or the file that stands in for it. DeviceError says what is missing."""
  try:
    return ctypes.CDLL(path or LIBRARY, mode=ctypes.RTLD_GLOBAL)  # pycuda finds it by its name
  except OSError as e:
    what = f"CUDA needs NVIDIA's driver: {e}"
    raise DeviceError(f"{what} (install the driver of the GPU, or take another device: DEV=CPU)") from None


class Failed(Exception):
  """A call that the driver refused."""

  def __init__(self, call: str, code: int, words: str):
    super().__init__(f"{call} failed: {words}")
    self.code = code


class Driver:
  """libcuda by ctypes, for one device."""

  errors: tuple[type[Exception], ...] = (Failed,)  # what calls of the driver raise
  context: Any

  def __init__(self, index: int, library: ctypes.CDLL):
    self.name = f"CUDA:{index}" if index else "CUDA"
    self.pid, self.lost = os.getpid(), ""
    self.running = ""  # names of the kernels that were launched last, for errors
    try:
      self.functions = {name: self.declare(library, name, types) for name, types in FUNCTIONS.items()}
    except AttributeError as e:
      raise DeviceError(f"{self.name}: the driver is older than CUDA 12: {e}") from None
    self.launch, self.launch_graph = self.unchecked("cuLaunchKernel"), self.unchecked("cuGraphLaunch")
    try:
      self.call("cuInit", 0)
      count, version = c_int(), c_int()
      self.call("cuDeviceGetCount", byref(count))
      if index >= count.value:
        raise Failed("cuDeviceGetCount", NO_DEVICE, f"there are {count.value} devices")
      self.call("cuDriverGetVersion", byref(version))
      self.version = (version.value // 1000, version.value % 1000 // 10)
      self.connect(index)
    except self.errors as e:
      raise DeviceError(f"{self.name} cannot be had: {e}") from None

  def connect(self, index: int) -> None:
    """Holds the device's primary context, and makes the stream."""
    self.device, context, stream = c_int(), c_void_p(), c_void_p()
    name, nbytes = ctypes.create_string_buffer(256), c_size_t()
    self.call("cuDeviceGet", byref(self.device), index)
    self.call("cuDeviceGetName", name, len(name), self.device)
    self.call("cuDeviceTotalMem_v2", byref(nbytes), self.device)
    self.call("cuDevicePrimaryCtxRetain", byref(context), self.device)
    self.title, self.memory_bytes, self.context = name.value.decode(), nbytes.value, context.value
    self.enter()
    self.call("cuStreamCreate", byref(stream), 0)  # 0: in order with what others launch on the default stream
    self.stream = stream.value

  def attribute(self, name: str) -> int:
    """What the device says of itself; `name` as in the header, without CU_DEVICE_ATTRIBUTE_."""
    value = c_int()
    self.call("cuDeviceGetAttribute", byref(value), ATTRIBUTES[name], self.device)
    return value.value

  # ---------------------------------------------------------------- calls and their errors

  def declare(self, library: ctypes.CDLL, name: str, types: str) -> Any:
    function = library[name]
    arguments: list[Any] = [TYPES[letter] for letter in types]
    function.argtypes, function.restype = arguments, c_int
    return function

  def call(self, name: str, *args: Any) -> None:
    """A function of libcuda; Failed when it does not return 0."""
    self.check(name, self.functions[name](*args))

  def unchecked(self, name: str) -> Any:
    """The function itself, which returns a code: one call into C, so no signal comes between it and who asks it."""
    return self.functions[name]

  def check(self, name: str, code: int | None) -> None:
    if code:
      raise Failed(name, code, self.words(code))

  def words(self, code: int) -> str:
    """The driver's name and words for a code."""
    found = []
    for name in ("cuGetErrorName", "cuGetErrorString"):
      text = c_char_p()
      self.functions[name](code, byref(text))
      found.append((text.value or b"?").decode())
    return ": ".join(dict.fromkeys(found))

  def enter(self) -> None:
    self.call("cuCtxSetCurrent", self.context)

  def leave(self) -> None:
    """The context stays current in this thread."""

  def __enter__(self) -> Driver:  # noqa: PYI034 - Self is newer than Python 3.10
    if os.getpid() != self.pid:
      raise DeviceError(f"{self.name} was opened before this process was forked: start it with spawn")
    if self.lost:
      raise DeviceError(self.lost)
    self.enter()
    return self

  def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
    try:
      if isinstance(error, self.errors):
        raise self.explained(error) from None
    finally:
      self.leave()

  def explained(self, error: BaseException) -> DeviceError:
    """The error that users see. An error from which the driver does not recover is the answer to every later call."""
    code = self.functions["cuStreamQuery"](self.stream)
    kernels = f" (kernels launched last: {self.running})" if self.running else ""
    if code in (0, NOT_READY):
      return DeviceError(f"{self.name}: {error}{kernels}")
    self.lost = (
      f"{self.name} is lost: {self.words(code)}{kernels}. What was in its memory is gone; "
      "start a new process to use it again. Other devices go on"
    )
    return DeviceError(self.lost)

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> int:
    """The address of new memory. MemoryError with the driver's words."""
    address = c_uint64()
    try:
      self.call("cuMemAlloc_v2", byref(address), nbytes)
    except Failed as e:
      if e.code != OUT_OF_MEMORY:
        raise
      raise MemoryError(str(e)) from None
    return address.value

  def free(self, address: int) -> None:
    self.call("cuMemFree_v2", address)

  def write(self, address: int, data: np.ndarray) -> None:
    """Memory of the host goes to the device. The host's may be changed at once, unless `is_pinned`."""
    self.call("cuMemcpyHtoDAsync_v2", address, data.ctypes.data, data.nbytes, self.stream)

  def is_pinned(self, data: np.ndarray) -> bool:
    """Does the device read this memory of the host by itself, later?"""
    return self.functions["cuMemHostGetFlags"](byref(c_uint()), data.ctypes.data) == 0

  def read(self, data: np.ndarray, address: int) -> None:
    """Memory of the device comes to the host; `wait` for it."""
    self.call("cuMemcpyDtoHAsync_v2", data.ctypes.data, address, data.nbytes, self.stream)

  def copy(self, target: int, source: int, nbytes: int) -> None:
    self.call("cuMemcpyDtoDAsync_v2", target, source, nbytes, self.stream)

  def clear(self, address: int, nbytes: int) -> None:
    self.call("cuMemsetD8Async", address, 0, nbytes, self.stream)

  def wait(self) -> None:
    self.call("cuStreamSynchronize", self.stream)

  # ---------------------------------------------------------------- code

  def load(self, image: bytes) -> Any:
    """A module, from a cubin or PTX. It stays as long as the process."""
    module = c_void_p()
    self.call("cuModuleLoadData", byref(module), image)
    return module.value

  def function(self, module: Any, name: str) -> Any:
    function = c_void_p()
    self.call("cuModuleGetFunction", byref(function), module, name.encode())
    return function.value

  def most_threads(self, function: Function) -> int:
    """Of one block of this function: what its registers and its shared memory allow."""
    value = c_int()
    self.call("cuFuncGetAttribute", byref(value), 0, function.function)
    return value.value

  def handle(self, function: Function) -> int:
    """The function as graphs know it."""
    return function.function

  # ---------------------------------------------------------------- launches

  def row(self, function: Function, groups: int, threads: int, values: np.ndarray) -> tuple[Any, ...]:
    """What `launch` takes; the arguments of the kernel are in `values` when it is called."""
    pointers = self.pointers(values)
    return (function.function, groups, 1, 1, threads, 1, 1, 0, self.stream, pointers, None)

  def pointers(self, values: np.ndarray) -> Any:
    """A pointer to each 8-byte argument."""
    return (c_void_p * len(values))(*(values.ctypes.data + 8 * n for n in range(len(values))))

  def times(self, rows: Many[tuple[Any, ...]]) -> list[float]:
    """Launches one after another; the seconds of each."""
    events: list[c_void_p] = []
    try:
      for n in range(len(rows) + 1):
        events.append(c_void_p())
        self.call("cuEventCreate", byref(events[-1]), 0)
        if n:
          self.check("cuLaunchKernel", self.launch(*rows[n - 1]))
        self.call("cuEventRecord", events[-1], self.stream)
      self.wait()
      ms = [c_float() for _ in rows]
      for n, result in enumerate(ms):
        self.call("cuEventElapsedTime", byref(result), events[n], events[n + 1])
      return [result.value / 1e3 for result in ms]
    finally:
      for event in events:
        self.functions["cuEventDestroy_v2"](event)


class Library:
  """Loaded code: `library[name]` is a function."""

  def __init__(self, driver: Driver, image: bytes):
    self.driver, self.image = driver, image
    self.module = driver.load(image)
    self.again: Any = None  # the module for graphs, where they need one of their own
    self.functions: dict[str, Function] = {}

  def __getitem__(self, name: str) -> Function:
    if name not in self.functions:
      with self.driver:
        self.functions[name] = Function(self, name)
    return self.functions[name]


class Function:
  """A kernel on a device."""

  def __init__(self, library: Library, name: str):
    self.library, self.name = library, name
    try:
      self.function = library.driver.function(library.module, name)
    except library.driver.errors as e:
      raise DeviceError(f"{library.driver.name}: kernel {name}: {e}") from None


class Parameters(ctypes.Structure):
  """CUDA_KERNEL_NODE_PARAMS_v2: a launch in a graph."""

  _fields_ = [("function", c_void_p), ("grid", c_uint * 3), ("block", c_uint * 3), ("shared_bytes", c_uint),
              ("arguments", c_void_p), ("extra", c_void_p), ("kernel", c_void_p), ("context", c_void_p)]  # fmt: skip


class Graph:
  """Launches that go to the device at once: each follows those that it names."""

  def __init__(
    self, driver: Driver, launches: Many[tuple[Function, int, int, np.ndarray]], after: Many[Many[int]]
  ):
    """launches: function, groups, threads, arguments. after[n]: the launches before n that it waits for."""
    self.graph, self.program, self.driver = c_void_p(), c_void_p(), driver
    self.nodes: list[c_void_p] = []
    self.parameters: list[Parameters] = []
    self.kept: list[Any] = []  # arrays that the parameters point at
    driver.call("cuGraphCreate", byref(self.graph), 0)
    for (function, groups, threads, values), before in zip(launches, after):
      pointers = driver.pointers(values)
      self.kept.append(pointers)
      what = Parameters(
        driver.handle(function), (groups, 1, 1), (threads, 1, 1), 0, ctypes.addressof(pointers)
      )
      edges = (c_void_p * len(before))(*(self.nodes[n].value for n in before))
      node = c_void_p()
      driver.call("cuGraphAddKernelNode_v2", byref(node), self.graph, edges, len(before), byref(what))
      self.nodes.append(node)
      self.parameters.append(what)
    driver.call("cuGraphInstantiateWithFlags", byref(self.program), self.graph, 0)
    self.row = (self.program, driver.stream)  # what `driver.launch_graph` takes

  def update(self, n: int) -> None:
    """Launch n takes its arguments again, from the next run on."""
    what = byref(self.parameters[n])
    self.driver.call("cuGraphExecKernelNodeSetParams_v2", self.program, self.nodes[n], what)

  def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
    # getpid is bound before: when a process ends, modules may be gone
    # unless a Ctrl-C came before there was anything; whoever still runs it is not disturbed
    if hasattr(self, "driver") and getpid() == self.driver.pid:
      for name, handle in (("cuGraphExecDestroy", self.program), ("cuGraphDestroy", self.graph)):
        if handle:
          self.driver.functions[name](handle)
