"""OpenCL: GPUs, accelerators and CPUs of any platform. pyopencl finds them;
the library that it brings is called by ctypes.

Who owns what: a `Memory` lends a cl_mem of the shim's heap until it dies; a `Sequence` owns a cl_kernel for each of its
calls, with its arguments set, so that a run sets only what changed. Programs stay until the process ends.

Asynchronous are `run`, `copy` and an `upload` of little: they return when the command is in the queue. One in-order
queue does everything; others work only between the beginning and the end of a run. `download`, `wait` and `error` wait.
What a kernel found to be wrong is the error word of its sequence.

No driver, a source that does not compile and a command that failed are a DeviceError with the name that OpenCL has for
it; memory that cannot be had is a MemoryError, also when a driver notices at a launch. A Ctrl-C comes before a run or
after it: its launches are one call into C. A forked child cannot use the device of its parent, and is told so.
"""

from __future__ import annotations

import atexit
import builtins
import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Many
from ctypes import byref, c_char_p, c_int, c_long, c_size_t, c_ulong
from functools import partial
from itertools import chain, compress
from operator import methodcaller
from typing import Any
from weakref import WeakSet

import numpy as np

from runtime import host, icd
from runtime.base import Cache, Call, DeviceError, Info, geometry
from runtime.heap import COUNTERS, Counters, Heap, Memory
from runtime.icd import CPU_DRIVER, Functions, P

GPU_QUEUES = 4
GROUPS = 4  # for each core of a CPU, at least, so that one which is done early finds more to do
COPIED_BYTES = 1 << 20  # an upload of at most so much is copied, and does not wait for what was launched
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
FORKED = (
  "OpenCL was opened before this process was forked, and works only in the process that opened it "
  "(start processes with multiprocessing's method 'spawn')"
)

ONE_CALL: Any = methodcaller("__call__")


def open(
  index: int = 0, queues: int = 0, cache: Cache | None = None, counters: Counters | None = None
) -> OpenCL:
  """The device with this number among all of all platforms: GPUs first, then accelerators, then CPUs.

  queues: how many launches it may work on at once; 0 for what suits it. cache: keeps compiled code between processes.
  counters: a dict to count up, with the keys in COUNTERS.
  """
  return OpenCL(*icd.find(index), queues, cache, counters)


class OpenCL:
  """An open device. `info` says what it is."""

  def __init__(self, pyopencl: Any, device: Any, queues: int, cache: Cache | None, counters: Counters | None):
    self.pid, self.cache = os.getpid(), cache
    self.counters = dict.fromkeys(COUNTERS.split(), 0) if counters is None else counters
    self.info = describe(pyopencl, device, queues)
    self.cl = Functions(pyopencl, self.info.target)
    # On a device that cannot round them correctly, float32 division may be 2.5 ulp off, and sqrt 3.
    rounds = device.single_fp_config & icd.CORRECTLY_ROUNDED
    self.options = "-cl-std=CL1.2" + (" -cl-fp32-correctly-rounded-divide-sqrt" if rounds else "")
    versions = (device.platform.version, device.name, device.version, device.driver_version)
    self.key = "\n".join(["opencl", *versions, self.options, ""])
    try:
      self.owner = pyopencl.Context([device])
    except pyopencl.Error as e:
      raise DeviceError(f"OpenCL cannot open {device.name.strip()}: {e}") from None
    self.context, self.device = self.owner.int_ptr, device.int_ptr
    self.queues = [self.queue() for _ in range(self.info.queues)]
    self.timer = 0  # a queue that measures, once it is needed
    self.libraries: dict[str, Library] = {}
    self.pending: deque[tuple[int, bytes]] = deque()  # uploads under way: event, data
    self.destroyed = 0  # blocks of memory: from then on a new one may look like an old one
    name = f"OpenCL device {device.name.strip()}"
    self.heap = Heap(name, self.info.memory_bytes, self.fresh, self.destroy, self.counters)
    self.lock = threading.RLock()
    atexit.register(self.close)
    _opened.add(self)

  def queue(self, properties: int = 0) -> int:
    """A new queue, which keeps the order."""
    return self.cl.create("clCreateCommandQueue", self.context, self.device, properties)

  def ours(self) -> None:
    """DeviceError in a forked process."""
    if os.getpid() != self.pid:
      raise DeviceError(FORKED)

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> Memory:
    """A block of device memory, its contents arbitrary. MemoryError names the size."""
    self.ours()
    return self.heap.take(nbytes)

  def fresh(self, nbytes: int) -> int:
    """A cl_mem, which is moved to the device now: else some drivers find out at a launch that there is no room."""
    block = 0
    try:
      block = self.cl.create("clCreateBuffer", self.context, 0, nbytes, None)
      move = (self.queues[0], 1, byref(P(block)), icd.CONTENT_UNDEFINED, 0, None, None)
      self.cl.call("clEnqueueMigrateMemObjects", *move)
    except (DeviceError, MemoryError) as e:
      if block:
        self.cl["clReleaseMemObject"](block)
      raise MemoryError(str(e)) from None
    return block

  def destroy(self, block: int) -> None:
    """Gives a cl_mem back. What was launched keeps it until it is done."""
    self.destroyed += 1
    self.cl["clReleaseMemObject"](block)

  def upload(self, handle: Memory, data: Any, offset: int = 0) -> None:
    """Copies a contiguous bytes-like object or array to the block, from byte `offset` on, after what was launched."""
    self.ours()
    source = np.ascontiguousarray(data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8))
    if not source.nbytes:
      return
    with self.lock:
      self.forget()
      if source.nbytes > COPIED_BYTES:
        self.write(handle, True, offset, source.nbytes, source.ctypes.data, 0, None, None)
        return
      event, kept = P(), source.tobytes()
      try:
        self.write(handle, False, offset, len(kept), kept, 0, None, byref(event))
      finally:
        if event.value:
          self.pending.append((event.value, kept))

  def write(self, handle: Memory, *rest: Any) -> None:
    """Puts an upload into the queue."""
    self.cl.call("clEnqueueWriteBuffer", self.queues[0], handle.address, *rest)

  def forget(self) -> None:
    """Lets go of the data of uploads that are done."""
    status = c_int()
    while self.pending:
      event, _ = self.pending[0]
      self.cl["clGetEventInfo"](event, icd.EVENT_STATUS, 4, byref(status), None)
      if status.value > 0:  # 0: it is complete; below: it failed
        break
      self.pending.popleft()
      self.cl["clReleaseEvent"](event)

  def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
    """Copies the first `nbytes` bytes from one block to another, after what was launched."""
    self.ours()
    if nbytes:
      blocks = (source.address, target.address)
      self.cl.call("clEnqueueCopyBuffer", self.queues[0], *blocks, 0, 0, nbytes, 0, None, None)
      self.cl.call("clFlush", self.queues[0])

  def download(self, handle: Memory, nbytes: int, offset: int = 0) -> np.ndarray:
    """A copy of `nbytes` bytes, as uint8. Waits for what was launched."""
    self.ours()
    result = np.empty(nbytes, np.uint8)
    if nbytes:
      place = (self.queues[0], handle.address, True, offset, nbytes, result.ctypes.data)
      self.cl.call("clEnqueueReadBuffer", *place, 0, None, None)
    return result

  def free(self, handle: Memory) -> None:
    """Gives the block back now. The same happens when the handle dies."""
    handle.close()

  # ---------------------------------------------------------------- code

  def compile(self, source: str) -> Library:
    """OpenCL C -> its kernels, by name. DeviceError with the compiler's words."""
    return self.compile_all([source])[0]

  def compile_all(self, sources: Many[str]) -> list[Library]:
    """The same for several sources, each a program. One after another: drivers hold a lock while they compile."""
    self.ours()
    with self.lock:
      for source in dict.fromkeys(sources):
        if source not in self.libraries:
          self.libraries[source] = Library(self, self.cached(source) or self.build(source))
      return [self.libraries[s] for s in sources]

  def build(self, source: str) -> int:
    """A program from its source, which is kept in the cache."""
    program = self.cl.create(
      "clCreateProgramWithSource", self.context, 1, byref(c_char_p(source.encode())), None
    )
    code = self.link(program)
    if code:
      log = self.log(program) or self.cl.words(code)
      self.cl["clReleaseProgram"](program)
      raise DeviceError(self.failure(log))
    self.counters["compiles"] += 1
    if self.cache:
      size = c_size_t()
      self.cl.call("clGetProgramInfo", program, icd.BINARY_SIZES, 8, byref(size), None)
      data = ctypes.create_string_buffer(size.value)
      self.cl.call("clGetProgramInfo", program, icd.BINARIES, 8, byref(P(ctypes.addressof(data))), None)
      self.cache.put(self.key + source, data.raw)
    return program

  def link(self, program: int) -> int:
    """Makes a program ready for the device; the code of an error."""
    return self.cl["clBuildProgram"](program, 1, byref(P(self.device)), self.options.encode(), None, None)

  def log(self, program: int) -> str:
    """What the compiler said of a program."""
    data = ctypes.create_string_buffer(1 << 20)
    self.cl["clGetProgramBuildInfo"](program, self.device, icd.BUILD_LOG, len(data), data, None)
    return data.value.decode(errors="replace")

  def failure(self, log: str) -> str:
    """The text of an error of the compiler."""
    lines = [line for line in log.splitlines() if line.strip()]
    first = next((n for n, line in enumerate(lines) if "error" in line), 0)
    found = [f"the OpenCL compiler failed: {self.info.target} {self.options}", *lines[first : first + 8]]
    if "unknown target CPU" in log:
      found.append(f"this driver is older than this processor; for another one, {CPU_DRIVER}")
    return "\n  ".join(found)

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
    code, state = c_int(), c_int()
    binary = (byref(c_size_t(len(data))), byref(c_char_p(data)), byref(state))
    program = self.cl["clCreateProgramWithBinary"](
      self.context, 1, byref(P(self.device)), *binary, byref(code)
    )
    if code.value or state.value or self.link(program):
      if program:
        self.cl["clReleaseProgram"](program)
      return 0
    self.counters["disk_hits"] += 1
    return program

  # ---------------------------------------------------------------- running

  def sequence(self, calls: Many[Call]) -> Sequence:
    """Calls that `run` puts into the queues at once."""
    self.ours()
    return Sequence(self, calls)

  def wait(self) -> None:
    """Returns when all that was launched has run; DeviceError when it failed."""
    self.ours()
    self.cl.call("clFinish", self.queues[0])
    with self.lock:
      self.forget()

  def close(self) -> None:
    """Waits: a driver may crash when its process ends under it. All else ends with the process."""
    if os.getpid() == self.pid:
      self.cl["clFinish"](self.queues[0])


class Library:
  """A program: `library[name]` is a function for `Call`, from which each sequence makes kernels of its own."""

  def __init__(self, device: OpenCL, program: int):
    self.device, self.program = device, program

  def __getitem__(self, name: str) -> tuple[int, bytes]:
    kernel = self.device.cl.create("clCreateKernel", self.program, name.encode())
    self.device.cl["clReleaseKernel"](kernel)
    return self.program, name.encode()


class Sequence:
  """Calls in order, each with a kernel whose arguments are set. Two threads may run one; the second waits."""

  def __init__(self, device: OpenCL, calls: Many[Call]):
    self.device, self.calls = device, list(calls)
    self.kernels: list[int] = []
    self.patches: dict[int, list[tuple[int, int]]] = {}  # slot -> (kernel, position) of what it fills
    self.bound: dict[int, int] = {}  # slot -> the cl_mem that these are set to ...
    self.destroyed = 0  # ... when so many blocks of the device had been destroyed
    self.word: Memory | None = None  # where kernels store what was wrong
    self.asked = True  # for the error word, since the last run
    self.sizes = (c_size_t * (2 * len(self.calls)))()  # of each launch: threads in all, threads in a group
    # The call's; then, for a run, that of queue 0 before it, and those of the other queues after it.
    self.events = (P * (len(self.calls) + device.info.queues))()
    for n, call in enumerate(self.calls):
      self.prepare(n, call)
    self.commands = self.arrange()
    self.only_last = [0] * len(self.commands) + [1]

  def prepare(self, n: int, call: Call) -> None:
    """Makes the kernel of a call, with its size and the arguments that stay."""
    device, size = self.device, c_size_t()
    kernel = device.cl.create("clCreateKernel", *call.function)
    self.kernels.append(kernel)
    device.cl.call(
      "clGetKernelWorkGroupInfo", kernel, device.device, icd.KERNEL_GROUP_SIZE, 8, byref(size), None
    )
    groups, threads = grid(call, device.info)
    if threads > size.value and call.group:
      can = f"{device.info.target} can give it {size.value}"
      raise DeviceError(f"{call.name}: the kernel needs {threads} threads in a group, and {can}")
    threads = min(threads, size.value)
    self.sizes[2 * n : 2 * n + 2] = [max(groups, 1) * threads, threads]
    position = 0
    for slot, offset in call.args:
      if slot >= 0:
        self.patches.setdefault(slot, []).append((kernel, position))
        device.cl.call("clSetKernelArg", kernel, position + 1, 8, byref(c_long(offset)), what=call.name)
        position += 2
      else:
        if self.word is None:
          self.word = device.alloc(8)
          device.upload(self.word, bytes(8))
        device.cl.call("clSetKernelArg", kernel, position, 8, byref(P(self.word.address)), what=call.name)
        position += 1

  def arrange(self) -> list[Any]:
    """The commands of a run. A queue waits for another by an event:
    one command fills its place, others read it there."""
    cl, queues, count = self.device.cl, self.device.queues, len(self.calls)
    events = ctypes.addressof(self.events)
    commands: list[Any] = []

    def signal(n: int, queue: int) -> None:
      """Event n comes when all that is in the queue is done."""
      commands.append(partial(cl["clEnqueueMarkerWithWaitList"], queue, 0, None, events + 8 * n))
      commands.append(partial(cl["clFlush"], queue))

    def wait(n: int, queue: int) -> None:
      """What comes next in the queue waits for event n."""
      commands.append(partial(cl["clEnqueueBarrierWithWaitList"], queue, 1, events + 8 * n, None))

    where = [call.queue % len(queues) for call in self.calls]
    across = [[w for w in call.waits if where[w] != where[n]] for n, call in enumerate(self.calls)]
    awaited = {w for waits in across for w in waits}
    others = sorted(set(where) - {0})
    if others:
      signal(count, queues[0])
    for q in others:
      wait(count, queues[q])
    for n, q in enumerate(where):
      for w in across[n]:
        wait(w, queues[q])
      commands.append(self.launch(n, queues[q]))
      if n in awaited:
        signal(n, queues[q])
    for q in others:
      signal(count + q, queues[q])
      wait(count + q, queues[0])
    commands.append(partial(cl["clFlush"], queues[0]))
    return commands

  def launch(self, n: int, queue: int, event: Any = None) -> Any:
    """The command of a call."""
    sizes = ctypes.addressof(self.sizes) + 16 * n
    enqueue = self.device.cl["clEnqueueNDRangeKernel"]
    return partial(enqueue, queue, self.kernels[n], 1, None, sizes, sizes + 8, 0, None, event)

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
        value = byref(P(block))
        for kernel, position in places:
          device.cl.call("clSetKernelArg", kernel, position, 8, value)
        self.bound[slot] = block

  def run(self, handles: Many[Memory], done: list[int] | None = None) -> int:
    """Launches everything with `handles[i]` in slot i, and returns 0: `error` tells how it went.

    done: gets a 0, too. After a Ctrl-C it tells whether everything was launched, or nothing.
    """
    device = self.device
    device.ours()
    done = [] if done is None else done
    codes: list[int] = []
    with device.lock:
      self.bind(handles)
      self.asked = False
      try:
        # one call into C, of which only the 0 at the end is kept: no signal in between
        launched: Any = chain(map(codes.append, map(ONE_CALL, self.commands)), (0,))
        done.extend(compress(launched, self.only_last))
      finally:
        self.release()
    if any(codes):
      self.explain(codes)
    return 0

  def release(self) -> None:
    """Lets go of the events of a run."""
    events = [event for event in self.events if event]
    if events:
      ctypes.memset(self.events, 0, ctypes.sizeof(self.events))
      for event in events:
        self.device.cl["clReleaseEvent"](event)

  def explain(self, codes: list[int]) -> None:
    """Raises the first error of a run."""
    code, command = next((code, command) for code, command in zip(codes, self.commands) if code)
    names = {kernel: call.name for kernel, call in zip(self.kernels, self.calls)}
    self.device.cl.check(code, command.func.__name__, names.get(command.args[1], ""))

  def error(self) -> int:
    """Waits; the error word of the runs since it was asked for last, 0 when all went well."""
    if self.word is None or self.asked:
      return 0
    with self.device.lock:
      word = int(self.device.download(self.word, 8).view(np.int64)[0])
      if word:
        self.device.upload(self.word, bytes(8))
      self.asked = True
    return word

  def profile(self, handles: Many[Memory]) -> list[float]:
    """Like `run`, one call after another; the seconds of each, by the clock of the device."""
    return self.timed(handles)[1]

  def timed(self, handles: Many[Memory]) -> tuple[int, list[float]]:
    """Both: (error word, seconds)."""
    device, seconds = self.device, []
    device.ours()
    with device.lock:
      device.wait()
      device.timer = device.timer or device.queue(icd.PROFILING)
      self.bind(handles)
      self.asked = False
      for n, call in enumerate(self.calls):
        seconds.append(self.measure(n, call.name))
    return self.error(), seconds

  def measure(self, n: int, name: str) -> float:
    """Runs one call; the seconds that it took."""
    device, event, times = self.device, P(), [c_ulong(), c_ulong()]
    device.cl.check(self.launch(n, device.timer, byref(event))(), "clEnqueueNDRangeKernel", name)
    try:
      device.cl.call("clFinish", device.timer, what=name)
      for what, time in zip((icd.EVENT_START, icd.EVENT_END), times):
        device.cl.call("clGetEventProfilingInfo", event, what, 8, byref(time), None, what=name)
    finally:
      device.cl["clReleaseEvent"](event)
    return (times[1].value - times[0].value) * 1e-9

  def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
    # getpid is bound before: when a process ends, modules may be gone
    if hasattr(self, "kernels") and getpid() == self.device.pid:
      for kernel in self.kernels:
        self.device.cl["clReleaseKernel"](kernel)


def describe(pyopencl: Any, device: Any, queues: int) -> Info:
  """What a device is. OpenCL does not tell how many registers a GPU has."""
  cpu = bool(device.type & pyopencl.device_type.CPU)
  registers = 32 if device.native_vector_width_float == 16 or not cpu else 16  # AVX-512 has 32
  l1_bytes, l2_bytes = host.cache_bytes() if cpu else (device.local_mem_size, device.global_mem_cache_size)
  return Info(
    name="CL",
    target=f"{device.name.strip()} ({device.platform.name.strip()}, {device.driver_version.strip()})",
    lanes=max(4, device.native_vector_width_float) if cpu else 4,
    registers=registers,
    threads=device.max_compute_units,
    l1_bytes=l1_bytes,
    l2_bytes=l2_bytes,
    stack_bytes=(1024 if cpu else 4) << 10,
    memory_bytes=min(device.global_mem_size, host.available_memory()) if cpu else device.global_mem_size,
    dtypes=frozenset(DTYPES.split()) - (set() if device.double_fp_config else {"float64"}),
    kind="cpu" if cpu else "gpu",
    group=device.max_work_group_size,
    shared_bytes=device.local_mem_size,
    units=device.max_compute_units,
    queues=queues or (1 if cpu else GPU_QUEUES),
  )


def grid(call: Call, info: Info) -> tuple[int, int]:
  """(groups, threads in each) for a launch. On a CPU a group is run by one core, and is one thread, which takes a part
  of the range."""
  if info.kind == "cpu" and not call.group:
    return min(max(call.extent, 1), GROUPS * info.units), 1
  return geometry(call, info)


_opened: WeakSet[OpenCL] = WeakSet()


def _before_fork() -> None:
  """A driver with work that is not done would wait for it when the child ends, and for ever."""
  for device in _opened:
    device.close()


def _in_child() -> None:
  """A context must not be closed where the threads of its driver are not."""
  for device in _opened:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(device.owner))


os.register_at_fork(before=_before_fork, after_in_child=_in_child)
