"""OpenCL: GPUs, accelerators and CPUs of any platform. pyopencl finds them; the library that it brings is called by ctypes.

Who owns what: a `Memory` lends a cl_mem of the shim's heap until it dies; a `Sequence` owns a cl_kernel for each of its calls,
with its arguments set, so that a run sets only what changed. Programs stay until the process ends.

Asynchronous are `upload` of little, `copy` and `run`: they return when the command is in the queue. One in-order queue does
everything; others only work between the beginning and the end of one run. `download`, `wait` and `error` wait. What a kernel
found to be wrong is the error word of its sequence.

No driver, a source that does not compile and a command that failed are a DeviceError with the name that OpenCL has for
it; memory that cannot be had is a MemoryError, also when a driver notices at a launch. A Ctrl-C comes before a run or after
it: its launches are one call into C. A forked child cannot use the device of its parent, and is told so.
"""

from __future__ import annotations

import atexit
import builtins
import ctypes
import os
import threading
from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Many
from ctypes import byref, c_char_p, c_int, c_long, c_size_t, c_uint, c_ulong, c_void_p
from functools import partial
from itertools import chain, compress
from operator import methodcaller
from typing import Any
from weakref import WeakSet

import numpy as np

from runtime import host
from runtime.base import Cache, Call, DeviceError, Info, geometry
from runtime.heap import COUNTERS, Counters, Heap, Memory

ORDER = ("GPU", "ACCELERATOR", "CPU", "CUSTOM")  # of the devices
GPU_QUEUES = 4
COPIED_BYTES = 1 << 20  # an upload of at most so much is copied, and does not wait for what was launched
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
CPU_DRIVER = "apt install pocl-opencl-icd, or pip install intel-opencl-rt intel-cmplr-lib-rt"

# fmt: off
# The functions of OpenCL 1.2 that are called: the types of their arguments. A cl..Create.. returns an object and has a pointer
# to an error code as its last argument, all others return the code.
P, N, U, B = c_void_p, c_size_t, c_uint, c_ulong
FUNCTIONS: dict[str, tuple[Any, ...]] = {
  "clCreateCommandQueue":         (P, P, B, P),              # context, device, properties
  "clCreateBuffer":               (P, B, N, P, P),           # context, flags, bytes, host pointer
  "clCreateProgramWithSource":    (P, U, P, P, P),           # context, count, texts, lengths
  "clCreateProgramWithBinary":    (P, U, P, P, P, P, P),     # context, count, devices, lengths, binaries, their codes
  "clCreateKernel":               (P, c_char_p, P),
  "clBuildProgram":               (P, U, P, c_char_p, P, P), # program, count, devices, options, callback, its data
  "clGetProgramBuildInfo":        (P, P, U, N, P, P),        # program, device, what, bytes, value, bytes needed
  "clGetProgramInfo":             (P, U, N, P, P),
  "clGetKernelWorkGroupInfo":     (P, P, U, N, P, P),
  "clGetEventInfo":               (P, U, N, P, P),
  "clGetEventProfilingInfo":      (P, U, N, P, P),
  "clSetKernelArg":               (P, U, N, P),
  "clEnqueueNDRangeKernel":       (P, P, U, P, P, P, U, P, P),  # queue, kernel, axes, offsets, sizes, groups, waits, event
  "clEnqueueWriteBuffer":         (P, P, U, N, N, P, U, P, P),  # queue, memory, does it wait, offset, bytes, data, ...
  "clEnqueueReadBuffer":          (P, P, U, N, N, P, U, P, P),
  "clEnqueueCopyBuffer":          (P, P, P, N, N, N, U, P, P),
  "clEnqueueMigrateMemObjects":   (P, U, P, B, U, P, P),
  "clEnqueueMarkerWithWaitList":  (P, U, P, P),              # queue, waits, event
  "clEnqueueBarrierWithWaitList": (P, U, P, P),
  "clFlush":                      (P,),
  "clFinish":                     (P,),
  "clReleaseMemObject":           (P,),
  "clReleaseProgram":             (P,),
  "clReleaseKernel":              (P,),
  "clReleaseEvent":               (P,),
}
PROFILING = 1 << 1              # a queue with times
CONTENT_UNDEFINED = 1 << 1      # of memory that moves to the device
BUILD_LOG, BINARY_SIZES, BINARIES = 0x1183, 0x1165, 0x1166
KERNEL_GROUP_SIZE, EVENT_STATUS, EVENT_START, EVENT_END = 0x11B0, 0x11D3, 0x1282, 0x1283
CORRECTLY_ROUNDED = 1 << 7      # of the bits that say how float32 computes
NO_MEMORY = {-4, -5, -6, -61}   # allocation failure, out of resources, out of host memory, too large a buffer
# fmt: on

FORKED = (
  "OpenCL was opened before this process was forked, and works only in the process that opened it "
  "(start processes with multiprocessing's method 'spawn')"
)
CALL: Any = methodcaller("__call__")


def open(
  index: int = 0, queues: int = 0, cache: Cache | None = None, counters: Counters | None = None
) -> OpenCL:
  """The device with this number among all of all platforms: GPUs first, then accelerators, then CPUs.

  queues: how many launches it may work on at once; 0 for what suits it. cache: keeps compiled code between processes.
  counters: a dict to count up, with the keys in COUNTERS.
  """
  try:
    import pyopencl  # type: ignore[import-not-found, unused-ignore]
  except ImportError as e:
    raise DeviceError(f"OpenCL needs pyopencl: pip install pyopencl ({e})") from None
  found = devices(pyopencl)
  if not found:
    raise DeviceError(f"OpenCL has no device: install the driver of a GPU, or one for the CPU ({CPU_DRIVER})")
  if index >= len(found):
    names = ", ".join(f"{n}: {d.name.strip()}" for n, d in enumerate(found))
    raise DeviceError(f"OpenCL has no device {index}; there are {names}")
  return OpenCL(pyopencl, found[index], queues, cache, counters)


def devices(pyopencl: Any) -> list[Any]:
  """All devices that are there, the best first."""
  found: list[Any] = []
  try:
    for platform in pyopencl.get_platforms():
      try:
        found += platform.get_devices()
      except pyopencl.Error:  # a platform without devices, or whose driver is broken
        pass
  except pyopencl.Error:  # no platform
    pass
  kinds = [getattr(pyopencl.device_type, name) for name in ORDER]
  return sorted(found, key=lambda d: next((n for n, kind in enumerate(kinds) if d.type & kind), len(kinds)))


class OpenCL:
  """An open device. `info` says what it is."""

  def __init__(self, pyopencl: Any, device: Any, queues: int, cache: Cache | None, counters: Counters | None):
    self.pid, self.cache = os.getpid(), cache
    self.counters = dict.fromkeys(COUNTERS.split(), 0) if counters is None else counters
    self.status_names = pyopencl.status_code
    self.info = describe(pyopencl, device, queues)
    self.cl = load(pyopencl)
    # Division and sqrt may be 2.5 and 3 ulp off on a device that cannot round them correctly.
    rounded = device.single_fp_config & CORRECTLY_ROUNDED
    self.options = "-cl-std=CL1.2" + (" -cl-fp32-correctly-rounded-divide-sqrt" if rounded else "")
    versions = (device.platform.version, device.name, device.version, device.driver_version)
    self.key = "\n".join(["opencl", *versions, self.options, ""])
    try:
      self.owned = (pyopencl.Context([device]), device)
    except pyopencl.Error as e:
      raise DeviceError(f"OpenCL cannot open {device.name.strip()}: {e}") from None
    self.context, self.device = self.owned[0].int_ptr, device.int_ptr
    self.queues = [self.queue() for _ in range(self.info.queues)]
    self.timer = 0  # a queue that measures
    self.libraries: dict[str, Library] = {}
    self.pending: deque[tuple[int, bytes]] = deque()  # uploads under way: event, data
    self.lock = threading.RLock()
    self.destroyed = 0  # blocks: after each, a new one may look like it
    name = f"OpenCL device {device.name.strip()}"
    self.heap = Heap(name, self.info.memory_bytes, self.allocate, self.destroy, self.counters)
    atexit.register(self.close)
    _opened.add(self)

  def queue(self, properties: int = 0) -> int:
    """An in-order queue."""
    return self.create("clCreateCommandQueue", self.context, self.device, properties)

  # ---------------------------------------------------------------- errors

  def create(self, name: str, *args: Any) -> int:
    """Calls a function that makes an object."""
    code = c_int()
    made = self.cl[name](*args, byref(code))
    self.check(code.value, name)
    return made

  def call(self, name: str, *args: Any, what: str = "") -> None:
    """Calls any other function."""
    self.check(self.cl[name](*args), name, what)

  def check(self, code: int, name: str, what: str = "") -> None:
    """An error unless the code is 0."""
    if code:
      words = self.status_names.to_string(code, "error %d")
      text = f"{what + ': ' if what else ''}{name} says {words} ({code}) on {self.info.target}"
      raise MemoryError(text) if code in NO_MEMORY else DeviceError(text)

  def ours(self) -> None:
    """DeviceError in a forked process."""
    if os.getpid() != self.pid:
      raise DeviceError(FORKED)

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> Memory:
    """A block of device memory, its contents arbitrary. MemoryError names the size."""
    self.ours()
    return self.heap.take(nbytes)

  def allocate(self, nbytes: int) -> int:
    """A cl_mem, which is moved to the device now: else some drivers find out at a launch that there is no room."""
    block = self.create("clCreateBuffer", self.context, 0, nbytes, None)
    try:
      self.call(
        "clEnqueueMigrateMemObjects", self.queues[0], 1, byref(P(block)), CONTENT_UNDEFINED, 0, None, None
      )
    except BaseException:
      self.cl["clReleaseMemObject"](block)
      raise
    return block

  def destroy(self, block: int) -> None:
    """Gives a cl_mem back; what was launched has it until it is done."""
    self.destroyed += 1
    self.cl["clReleaseMemObject"](block)

  def upload(self, handle: Memory, data: Any, offset: int = 0) -> None:
    """Copies a contiguous bytes-like object or array to the block, from byte `offset` on, after what was launched."""
    self.ours()
    source = np.asarray(data) if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    source = np.ascontiguousarray(source)
    if not source.nbytes:
      return
    target = (self.queues[0], handle.address)
    with self.lock:
      self.forget()
      if source.nbytes > COPIED_BYTES:
        self.call(
          "clEnqueueWriteBuffer", *target, 1, offset, source.nbytes, source.ctypes.data, 0, None, None
        )
        return
      event, kept = P(), source.tobytes()
      try:
        self.call("clEnqueueWriteBuffer", *target, 0, offset, len(kept), kept, 0, None, byref(event))
      finally:
        if event.value:
          self.pending.append((event.value, kept))

  def forget(self) -> None:
    """Lets go of the data of uploads that are done."""
    status = c_int()
    while self.pending:
      event, _ = self.pending[0]
      self.cl["clGetEventInfo"](event, EVENT_STATUS, 4, byref(status), None)
      if status.value > 0:  # 0: complete; below: it failed
        break
      self.pending.popleft()
      self.cl["clReleaseEvent"](event)

  def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
    """Copies the first `nbytes` bytes from one block to another, after what was launched."""
    self.ours()
    if nbytes:
      self.call(
        "clEnqueueCopyBuffer", self.queues[0], source.address, target.address, 0, 0, nbytes, 0, None, None
      )
      self.call("clFlush", self.queues[0])

  def download(self, handle: Memory, nbytes: int, offset: int = 0) -> np.ndarray:
    """A copy of `nbytes` bytes, as uint8. Waits for what was launched."""
    self.ours()
    result = np.empty(nbytes, np.uint8)
    if nbytes:
      to = result.ctypes.data
      self.call("clEnqueueReadBuffer", self.queues[0], handle.address, 1, offset, nbytes, to, 0, None, None)
    return result

  def free(self, handle: Memory) -> None:
    """Gives the block back now. The same happens when the handle dies."""
    handle.close()

  # ---------------------------------------------------------------- code

  def compile(self, source: str) -> Library:
    """OpenCL C -> its kernels, by name. DeviceError with the compiler's words."""
    return self.compile_all([source])[0]

  def compile_all(self, sources: Many[str]) -> list[Library]:
    """The same for several sources, each a program."""
    self.ours()
    with self.lock:
      for source in dict.fromkeys(sources):
        if source not in self.libraries:
          self.libraries[source] = Library(self, self.cached(source) or self.build(source))
      return [self.libraries[s] for s in sources]

  def build(self, source: str) -> int:
    """A program from its source."""
    text = c_char_p(source.encode())
    program = self.create("clCreateProgramWithSource", self.context, 1, byref(text), None)
    code = self.link(program)
    if code:
      log = self.text("clGetProgramBuildInfo", program, self.device, BUILD_LOG).decode(errors="replace")
      self.cl["clReleaseProgram"](program)
      raise DeviceError(self.failure(log or self.status_names.to_string(code, "error %d")))
    self.counters["compiles"] += 1
    if self.cache:
      self.cache.put(self.key + source, self.binary(program))
    return program

  def link(self, program: int) -> int:
    """Compiles a program for the device; the code of an error."""
    return self.cl["clBuildProgram"](program, 1, byref(P(self.device)), self.options.encode(), None, None)

  def failure(self, log: str) -> str:
    """The text of an error of the compiler."""
    lines = [line for line in log.splitlines() if line.strip()]
    first = next((n for n, line in enumerate(lines) if "error" in line), 0)
    hint = f"  this driver does not know this processor: another is had by {CPU_DRIVER}"
    return "\n".join([f"the OpenCL compiler failed: {self.info.target} {self.options}",
                      *("  " + line for line in lines[first : first + 8]),
                      *([hint] if "unknown target CPU" in log else [])])  # fmt: skip

  def cached(self, source: str) -> int:
    """A program from the cache; 0 where there is none, or where the driver does not take it."""
    path = self.cache.get(self.key + source) if self.cache else None
    if not path:
      return 0
    try:
      with builtins.open(path, "rb") as f:
        data = f.read()
    except OSError:  # another process has just cleared the cache
      return 0
    kept, code, status = c_char_p(data), c_int(), c_int()
    program = self.cl["clCreateProgramWithBinary"](self.context, 1, byref(c_void_p(self.device)), byref(c_size_t(len(data))),
                                                   byref(kept), byref(status), byref(code))  # fmt: skip
    if code.value or status.value or self.link(program):
      if program:
        self.cl["clReleaseProgram"](program)
      return 0
    self.counters["disk_hits"] += 1
    return program

  def binary(self, program: int) -> bytes:
    """The compiled code of a program, for the device alone."""
    size = c_size_t()
    self.call("clGetProgramInfo", program, BINARY_SIZES, 8, byref(size), None)
    data = ctypes.create_string_buffer(size.value)
    self.call("clGetProgramInfo", program, BINARIES, 8, byref(c_void_p(ctypes.addressof(data))), None)
    return data.raw

  def text(self, name: str, *args: Any) -> bytes:
    """What a question about an object answers, without the 0 at its end."""
    size = c_size_t()
    self.call(name, *args, 0, None, byref(size))
    data = ctypes.create_string_buffer(size.value + 1)
    self.call(name, *args, size.value, data, None)
    return data.value

  # ---------------------------------------------------------------- running

  def sequence(self, calls: Many[Call]) -> Sequence:
    """Calls that `run` puts in the queues at once."""
    self.ours()
    return Sequence(self, calls)

  def wait(self) -> None:
    """Returns when all that was launched has run; DeviceError when it failed."""
    self.ours()
    for queue in self.queues:
      self.call("clFinish", queue)
    with self.lock:
      self.forget()

  def close(self) -> None:
    """Waits, as a driver may crash when its process ends under it. Everything else ends with the process."""
    if os.getpid() == self.pid:
      for queue in self.queues:
        self.cl["clFinish"](queue)


class Library:
  """A program: `library[name]` is a function for `Call`, from which each sequence makes kernels of its own."""

  def __init__(self, device: OpenCL, program: int):
    self.device, self.program = device, program

  def __getitem__(self, name: str) -> tuple[int, bytes]:
    kernel = self.device.create("clCreateKernel", self.program, name.encode())
    self.device.cl["clReleaseKernel"](kernel)
    return self.program, name.encode()


class Sequence:
  """Calls in order, each with a kernel whose arguments are set. Two threads may run one; the second waits."""

  def __init__(self, device: OpenCL, calls: Many[Call]):
    self.device, self.calls, self.kernels = device, list(calls), []
    self.patches: dict[
      int, list[tuple[int, int]]
    ] = {}  # slot -> the arguments that it fills: kernel, position
    self.bound: dict[int, int] = {}  # slot -> the cl_mem that they are set to
    self.destroyed = 0  # blocks of the heap when that was so
    self.word: Memory | None = None
    self.asked = True  # for the error word, since the last run
    # the sizes of each launch: global, local
    self.sizes = (c_size_t * (2 * len(self.calls)))()
    self.events = (c_void_p * (3 * device.info.queues + len(self.calls)))()
    for n, call in enumerate(self.calls):
      self.kernels.append(self.prepare(n, call))
    self.commands = self.arrange()
    self.last = [*(0 for _ in self.commands), 1]

  def prepare(self, n: int, call: Call) -> int:
    """The kernel of a call, with the arguments that stay."""
    device = self.device
    kernel = device.create("clCreateKernel", *call.function)
    size = c_size_t()
    device.call("clGetKernelWorkGroupInfo", kernel, device.device, KERNEL_GROUP_SIZE, 8, byref(size), None)
    groups, threads = geometry(call, device.info)
    if threads > size.value and call.group:
      raise DeviceError(
        f"{call.name}: it needs {threads} threads in a group, and {device.info.target} can give it {size.value}"
      )
    threads = min(threads, size.value)
    self.sizes[2 * n : 2 * n + 2] = [groups * threads, threads]
    position = 0
    for slot, offset in call.args:
      if slot < 0:
        if self.word is None:
          self.word = device.alloc(8)
          device.upload(self.word, bytes(8))
        device.call("clSetKernelArg", kernel, position, 8, byref(c_void_p(self.word.address)), what=call.name)
        position += 1
      else:
        self.patches.setdefault(slot, []).append((kernel, position))
        device.call("clSetKernelArg", kernel, position + 1, 8, byref(c_long(offset)), what=call.name)
        position += 2
    return kernel

  def arrange(self) -> list[Any]:
    """The commands of a run. An event is a place in `events` that one command fills, and that others wait for."""
    cl, queues, count = self.device.cl, self.device.queues, len(self.calls)
    at = ctypes.addressof(self.events)
    commands: list[Any] = []

    def signal(n: int, queue: int) -> None:
      """Event n comes when all that the queue has is done."""
      commands.append(partial(cl["clEnqueueMarkerWithWaitList"], queue, 0, None, at + 8 * n))
      commands.append(partial(cl["clFlush"], queue))

    def await_(n: int, queue: int) -> None:
      commands.append(partial(cl["clEnqueueBarrierWithWaitList"], queue, 1, at + 8 * n, None))

    where = [call.queue % len(queues) for call in self.calls]
    others = sorted(set(where) - {0})
    awaited = {w for n, call in enumerate(self.calls) for w in call.waits if where[w] != where[n]}
    if others:
      signal(count, queues[0])
    for q in others:
      await_(count, queues[q])
    for n, call in enumerate(self.calls):
      for w in call.waits:
        if where[w] != where[n]:
          await_(w, queues[where[n]])
      commands.append(self.launch(n, queues[where[n]]))
      if n in awaited:
        signal(n, queues[where[n]])
    for q in others:
      signal(count + q, queues[q])
      await_(count + q, queues[0])
    commands.append(partial(cl["clFlush"], queues[0]))
    return commands

  def launch(self, n: int, queue: int, event: Any = None) -> Any:
    at = ctypes.addressof(self.sizes) + 16 * n
    function = self.device.cl["clEnqueueNDRangeKernel"]
    return partial(function, queue, self.kernels[n], 1, None, at, at + 8, 0, None, event)

  def bind(self, handles: Many[Memory]) -> None:
    """Sets the arguments that are not what they were."""
    device = self.device
    if self.destroyed != device.destroyed:
      self.bound.clear()
      self.destroyed = device.destroyed
    for slot, places in self.patches.items():
      block = handles[slot].address
      if self.bound.get(slot) != block:
        self.bound.pop(slot, None)
        value = c_void_p(block)
        for kernel, position in places:
          device.call("clSetKernelArg", kernel, position, 8, byref(value))
        self.bound[slot] = block

  def run(self, handles: Many[Memory], done: list[int] | None = None) -> int:
    """Launches everything with `handles[i]` in slot i, and returns 0: `error` tells how it went.

    done: gets a 0, too. After a Ctrl-C it tells whether everything was launched, or nothing.
    """
    device = self.device
    codes: list[int] = []
    done = [] if done is None else done
    device.ours()
    with device.lock:
      self.bind(handles)
      self.asked = False
      try:
        # one call into C, which ends with the 0: no signal in between
        done.extend(compress(chain(map(codes.append, map(CALL, self.commands)), (0,)), self.last))
      finally:
        self.release()
    if any(codes):
      self.explain(codes)
    return 0

  def release(self) -> None:
    """Lets go of the events of a run."""
    if any(self.events):
      deque(map(self.device.cl["clReleaseEvent"], filter(None, self.events)), maxlen=0)
      ctypes.memset(self.events, 0, ctypes.sizeof(self.events))

  def explain(self, codes: Iterable[int]) -> None:
    """Raises the first error of a run."""
    code, command = next((code, command) for code, command in zip(codes, self.commands) if code)
    kernels = dict(zip(self.kernels, self.calls))
    call = kernels.get(command.args[1])
    self.device.check(code, command.func.__name__, call.name if call else "")

  def error(self) -> int:
    """Waits; the error word of the runs since it was asked for last, 0 when all went well."""
    if self.word is None or self.asked:
      return 0
    device = self.device
    with device.lock:
      word = int(device.download(self.word, 8).view(np.int64)[0])
      if word:
        device.upload(self.word, bytes(8))
      self.asked = True
    return word

  def profile(self, handles: Many[Memory]) -> list[float]:
    """Like `run`, one call after another; the seconds of each, by the clock of the device."""
    return self.timed(handles)[1]

  def timed(self, handles: Many[Memory]) -> tuple[int, list[float]]:
    """Both: (error word, seconds)."""
    device = self.device
    seconds: list[float] = []
    device.ours()
    with device.lock:
      device.wait()
      device.timer = device.timer or device.queue(PROFILING)
      self.bind(handles)
      self.asked = False
      event, begun, ended = c_void_p(), c_ulong(), c_ulong()
      for n, call in enumerate(self.calls):
        device.check(self.launch(n, device.timer, byref(event))(), "clEnqueueNDRangeKernel", call.name)
        try:
          device.call("clFinish", device.timer, what=call.name)
          device.call("clGetEventProfilingInfo", event, EVENT_START, 8, byref(begun), None)
          device.call("clGetEventProfilingInfo", event, EVENT_END, 8, byref(ended), None)
        finally:
          device.cl["clReleaseEvent"](event)
        seconds.append((ended.value - begun.value) * 1e-9)
    return self.error(), seconds

  def __del__(self) -> None:
    if self.device.pid == os.getpid():
      for kernel in self.kernels:
        self.device.cl["clReleaseKernel"](kernel)


def describe(pyopencl: Any, device: Any, queues: int) -> Info:
  """What a device is. Of a GPU OpenCL does not tell how many registers it has."""
  cpu = bool(device.type & pyopencl.device_type.CPU)
  dtypes = frozenset(DTYPES.split()) - (set() if device.double_fp_config else {"float64"})
  l1, l2 = host.cache_bytes() if cpu else (device.local_mem_size, device.global_mem_cache_size)
  lanes = device.native_vector_width_float if cpu else 4
  memory = min(device.global_mem_size, host.available_memory()) if cpu else device.global_mem_size
  return Info(
    "CL",
    f"{device.name.strip()} ({device.platform.name.strip()}, {device.driver_version.strip()})",
    lanes=max(lanes, 4),
    registers=32 if lanes > 8 or not cpu else 16,
    threads=device.max_compute_units,
    l1_bytes=l1,
    l2_bytes=l2,
    stack_bytes=(64 if cpu else 4) << 10,
    memory_bytes=memory,
    dtypes=dtypes,
    kind="cpu" if cpu else "gpu",
    group=device.max_work_group_size,
    shared_bytes=device.local_mem_size,
    units=device.max_compute_units,
    queues=queues or (1 if cpu else GPU_QUEUES),
  )


def load(pyopencl: Any) -> dict[str, Any]:
  """The functions of the library that pyopencl was linked with."""
  library, functions = ctypes.CDLL(pyopencl._cl.__file__), {}
  for name, args in FUNCTIONS.items():
    functions[name] = f = getattr(library, name)
    f.restype, f.argtypes = c_void_p if name.startswith("clCreate") else c_int, args
  return functions


_opened: WeakSet[OpenCL] = WeakSet()


def _in_child() -> None:
  """After a fork: what the parent opened must not be closed here, as the driver's threads are not."""
  for device in _opened:
    for kept in device.owned:
      ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


os.register_at_fork(after_in_child=_in_child)
