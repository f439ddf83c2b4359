"""Apple's GPUs: Metal source becomes kernels that run when a command buffer of them is committed. macOS 10.15 and
later; nothing is needed beside the system, to which objc.py speaks.

Who owns what: a `Memory` owns a shared buffer, which the CPU and the GPU both see, and gives it back to the heap when
it dies, at once: Metal keeps what a command buffer uses until that has run. Launches are asynchronous, each run of a
sequence is one command buffer, and the GPU runs them in order. `upload`, `download`, `copy` and `error` wait for what
they have to; who asks for nothing is not made to wait. No Metal, or a source that does not compile, is a DeviceError
with the system's words; so is work that failed, when somebody next waits; no memory is a MemoryError; what a kernel
itself found to be wrong is the error word. After a fork the child cannot use the GPU: DeviceError.

Nothing is cached on disk here: the system keeps what it compiled.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from array import array
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Many
from ctypes import POINTER, byref, c_bool, c_double, c_long, c_ulong, c_void_p
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from runtime import host
from runtime.base import Cache, Call, DeviceError, Info, geometry
from runtime.heap import COUNTERS, Counters, Heap, Memory
from runtime.objc import OWNED, Objc, Owned

FRAMEWORKS = "/System/Library/Frameworks/{0}.framework/{0}"
STAGED_BYTES = (
  1 << 20
)  # an upload of at most so many does not wait for the GPU, which copies the data in its turn
SHARED = 0  # MTLResourceStorageModeShared
SERIAL, CONCURRENT = 0, 1  # MTLDispatchType
BUFFERS = 1  # MTLBarrierScopeBuffers
NOT_ENQUEUED, COMPLETED, FAILED = 0, 4, 5  # MTLCommandBufferStatus
APPLE7 = 1007  # MTLGPUFamily: an M1, and whatever came after it
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32"
# Compile as it is written: no fast math, MTLMathModeSafe, MTLMathFloatingPointFunctionsPrecise.
# Newer systems know more.
EXACT = {"setFastMathEnabled:": False, "setMathMode:": 0, "setMathFloatingPointFunctions:": 1}
# From which macOS on which Metal is known: 2.3 has simdgroup matrices, 3.1 has bfloat.
# (Some programs call macOS 11 10.16.)
LANGUAGES = (((14,), (3, 1)), ((10, 16), (2, 3)), ((), (2, 2)))


class Size(ctypes.Structure):
  """MTLSize. It is passed by value."""

  _fields_ = (("width", c_ulong), ("height", c_ulong), ("depth", c_ulong))


class Range(ctypes.Structure):
  """NSRange."""

  _fields_ = (("location", c_ulong), ("length", c_ulong))


# fmt: off
MESSAGES = {  # result, arguments
  "registryID":                                      (ctypes.c_uint64,),
  "name":                                            (c_void_p,),
  "supportsFamily:":                                 (c_bool, c_long),
  "recommendedMaxWorkingSetSize":                    (ctypes.c_uint64,),
  "maxBufferLength":                                 (c_ulong,),
  "maxThreadgroupMemoryLength":                      (c_ulong,),
  "newCommandQueue":                                 (OWNED,),
  "newBufferWithLength:options:":                    (c_void_p, c_ulong, c_ulong),  # ours too: the heap releases it
  "newBufferWithBytes:length:options:":              (OWNED, c_void_p, c_ulong, c_ulong),
  "contents":                                        (c_void_p,),
  "setFastMathEnabled:":                             (None, c_bool),
  "setMathMode:":                                    (None, c_long),
  "setMathFloatingPointFunctions:":                  (None, c_long),
  "setLanguageVersion:":                             (None, c_ulong),
  "newLibraryWithSource:options:error:":             (OWNED, c_void_p, c_void_p, POINTER(c_void_p)),
  "functionNames":                                   (c_void_p,),
  "newFunctionWithName:":                            (OWNED, c_void_p),
  "newComputePipelineStateWithFunction:error:":      (OWNED, c_void_p, POINTER(c_void_p)),
  "maxTotalThreadsPerThreadgroup":                   (c_ulong,),
  "commandBuffer":                                   (c_void_p,),
  "blitCommandEncoder":                              (c_void_p,),
  "computeCommandEncoderWithDispatchType:":          (c_void_p, c_ulong),
  "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:": (None, c_void_p, c_ulong, c_void_p, c_ulong, c_ulong),
  "setComputePipelineState:":                        (None, c_void_p),
  "setBuffers:offsets:withRange:":                   (None, c_void_p, c_void_p, Range),
  "memoryBarrierWithScope:":                         (None, c_ulong),
  "dispatchThreadgroups:threadsPerThreadgroup:":     (None, Size, Size),
  "endEncoding":                                     (None,),
  "commit":                                          (None,),
  "status":                                          (c_ulong,),
  "waitUntilCompleted":                              (None,),
  "error":                                           (c_void_p,),
  "GPUStartTime":                                    (c_double,),
  "GPUEndTime":                                      (c_double,),
}
# fmt: on


def open(
  index: int = 0, cache: Cache | None = None, counters: Counters | None = None, library: str = ""
) -> Metal:
  """A GPU as a device: the system's default one, or another by number.

  cache: is not used. counters: a dict to count up, with the keys in COUNTERS. library: a file that stands in for the
  system's libraries.
  """
  if sys.platform != "darwin" and not library:
    raise DeviceError(
      f"METAL needs macOS, and this is {platform.system()} (EMULATE=1 runs its kernels on the CPU)"
    )
  try:
    objc = Objc(MESSAGES, library)
    if not library:
      ctypes.CDLL(FRAMEWORKS.format("CoreGraphics"))  # without it a program has no default device
    metal = ctypes.CDLL(library or FRAMEWORKS.format("Metal"))
    default, every = metal.MTLCreateSystemDefaultDevice, metal.MTLCopyAllDevices
  except (OSError, AttributeError) as e:
    raise DeviceError(f"METAL needs macOS 10.15 or later: {e}") from None
  default.restype = every.restype = c_void_p
  with objc.pool():
    device = objc.owned(default())
    if not device:
      raise DeviceError("METAL has no GPU here that it can use")
    if index:
      found = objc.owned(every())
      first = objc.send(device, "registryID")
      others = [d for d in objc.array(found) if objc.send(d, "registryID") != first]
      if index > len(others):
        raise DeviceError(f"METAL:{index}: the GPUs that this machine has are numbered 0 to {len(others)}")
      device = objc.send(others[index - 1], "retain")
    return Metal(objc, device, counters)


class Metal:
  """An open GPU. `info` says what it is."""

  def __init__(self, objc: Objc, device: Any, counters: Counters | None):
    self.objc, self.send, self.device = objc, objc.send, device
    self.counters = dict.fromkeys(COUNTERS.split(), 0) if counters is None else counters
    self.info = self.describe()
    self.queue = self.send(device, "newCommandQueue")
    self.heap = Heap("METAL device", self.info.memory_bytes, self.buffer, self.release, self.counters)
    self.libraries: dict[str, Library] = {}
    # Command buffers that were committed, and not yet seen to have ended; what they run.
    self.flight: deque[tuple[Owned, str]] = deque()
    self.failure = ""  # of the first that failed since `wait` was called
    self.lock = threading.RLock()

  def describe(self) -> Info:
    """Metal tells neither how many cores a GPU has nor what they are made of: the numbers are an M1's, the smallest."""
    name = self.objc.text(self.send(self.device, "name"))
    apple = self.send(self.device, "supportsFamily:", APPLE7)  # others have simdgroups of 8 to 64 threads
    return Info(
      name="METAL", target=name, lanes=4, registers=32, threads=1, l1_bytes=8 << 10, l2_bytes=768 << 10,
      stack_bytes=4 << 10, memory_bytes=self.send(self.device, "recommendedMaxWorkingSetSize"),
      dtypes=frozenset(DTYPES.split()), kind="gpu", group=1024, warp=32 if apple else 1,
      shared_bytes=self.send(self.device, "maxThreadgroupMemoryLength"), units=8,
      matrices=frozenset(["8x8 f32", "8x8 f16"] if apple else []), queues=4,
    )  # fmt: skip

  def mine(self) -> threading.RLock:
    """The lock; in a forked child, where it may never be opened again, a DeviceError."""
    if os.getpid() != self.objc.process:
      raise DeviceError("METAL cannot be used in a forked process: start processes by the method spawn")
    return self.lock

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> Memory:
    """A block of memory, its contents arbitrary. MemoryError names the size."""
    with self.mine():
      return self.heap.take(nbytes)

  def buffer(self, nbytes: int) -> int | None:
    """A new MTLBuffer, or None."""
    most = self.send(self.device, "maxBufferLength")
    if nbytes > most:
      raise MemoryError(f"one buffer has at most {most:,}")
    found = self.send(self.device, "newBufferWithLength:options:", nbytes, SHARED)
    if not found and self.busy():  # what was given back is free when it is not in use any more
      self.wait()
      found = self.send(self.device, "newBufferWithLength:options:", nbytes, SHARED)
    return found

  def release(self, buffer: int) -> None:
    self.send(buffer, "release")

  def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
    # getpid is bound before: when a process ends, modules may be gone
    if hasattr(self, "heap") and getpid() == self.objc.process:
      self.heap.trim()

  def upload(self, handle: Memory, data: Any, offset: int = 0) -> None:
    """Copies a contiguous bytes-like object or array to the block, from byte `offset` on."""
    source = np.ascontiguousarray(data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8))
    nbytes = within(handle, source.nbytes, offset)
    staged = None
    if 0 < nbytes <= STAGED_BYTES and not (nbytes | offset) & 3 and self.busy():
      message = "newBufferWithBytes:length:options:"
      staged = self.send(self.device, message, source.ctypes.data, nbytes, SHARED)
    if staged:
      self.blit(staged, handle.address, nbytes, offset)
    else:
      self.wait()
      ctypes.memmove(self.send(handle.address, "contents") + offset, source.ctypes.data, nbytes)

  def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
    """Copies the first `nbytes` bytes from one block to another, after what was launched before."""
    within(target, within(source, nbytes))
    if nbytes and not nbytes & 3:
      self.blit(source.address, target.address, nbytes)
    else:
      self.upload(target, self.download(source, nbytes))

  def blit(self, source: Owned | int, target: int, nbytes: int, offset: int = 0) -> None:
    """A copy that the GPU makes in its turn. Of whole words: macOS has it so."""
    message = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"
    args = (source, 0, target, offset, nbytes)
    self.launch(lambda encoder: self.send(encoder, message, *args), "a copy", "blitCommandEncoder")

  def download(self, handle: Memory, nbytes: int, offset: int = 0) -> np.ndarray:
    """A copy of `nbytes` bytes, as uint8, when all that was launched has run."""
    result = np.empty(within(handle, nbytes, offset), np.uint8)
    self.wait()
    ctypes.memmove(result.ctypes.data, self.send(handle.address, "contents") + offset, nbytes)
    return result

  def free(self, handle: Memory) -> None:
    """Gives the block back now. The same happens when the handle dies."""
    handle.close()

  # ---------------------------------------------------------------- code

  def compile(self, source: str) -> Library:
    """Metal source -> its kernels. DeviceError with the compiler's words."""
    return self.compile_all([source])[0]

  def compile_all(self, sources: Many[str]) -> list[Library]:
    """The same for several sources. All of them are compiled at once, and then all of their kernels."""
    from concurrent.futures import ThreadPoolExecutor  # 10 ms that a process which compiles nothing saves

    self.mine()
    new = [s for s in dict.fromkeys(sources) if s not in self.libraries]
    with ThreadPoolExecutor(host.available_threads()) as threads:
      libraries = list(threads.map(self.library, new))
      parts = [(library, name) for library in libraries for name in self.names(library)]
      functions = list(threads.map(lambda part: self.function(*part), parts))
    for source, library in zip(new, libraries):
      self.libraries[source] = {f.name: f for f, (of, _) in zip(functions, parts) if of is library}
      self.counters["compiles"] += 1
    return [self.libraries[s] for s in sources]

  def library(self, source: str) -> Owned:
    """An MTLLibrary: source that has been checked and translated, but not for this GPU yet."""
    error = c_void_p()
    with self.objc.pool():
      options = self.send(self.objc.class_("MTLCompileOptions"), "new")
      for name, value in EXACT.items():
        if self.objc.has(options, name):
          self.send(options, name, value)
      self.send(options, "setLanguageVersion:", language_version())
      text = self.objc.string(source)
      library = self.send(self.device, "newLibraryWithSource:options:error:", text, options, byref(error))
      if not library:
        raise DeviceError("the Metal compiler failed:\n" + excerpt(self.words(error)))
      return library

  def names(self, library: Owned) -> list[str]:
    """Of the kernels in it."""
    with self.objc.pool():
      return [self.objc.text(name) for name in self.objc.array(self.send(library, "functionNames"))]

  def function(self, library: Owned, name: str) -> Function:
    """A kernel, compiled for this GPU."""
    error = c_void_p()
    with self.objc.pool():
      function = self.send(library, "newFunctionWithName:", self.objc.string(name))
      message = "newComputePipelineStateWithFunction:error:"
      pipeline = function and self.send(self.device, message, function, byref(error))
      if not pipeline:
        raise DeviceError(f"METAL cannot build the kernel {name}:\n" + excerpt(self.words(error)))
      return Function(name, pipeline, self.send(pipeline, "maxTotalThreadsPerThreadgroup"))

  def words(self, error: Any) -> str:
    """What an NSError says."""
    return self.objc.text(self.send(error, "localizedDescription")) or "no reason was given"

  # ---------------------------------------------------------------- running

  def sequence(self, calls: Many[Call]) -> Sequence:
    """Calls that become one command buffer. DeviceError where a kernel does not fit into groups of its size."""
    return Sequence(self, calls)

  def launch(
    self, encode: Callable[[int], object], what: str, kind: str, *args: int, done: list[int] | None = None
  ) -> Owned:
    """Commits a command buffer of what `encode` tells an encoder, which the message `kind` begins. what: for errors.

    Ctrl-C may come between any two steps of Python. An encoder that was begun has to be ended, or the process is; and
    `done` gets its 0 if and only if the work was committed. So each pair is one step, which `map` makes inside.
    """
    begin, end, commit = (self.objc.functions[name] for name in (kind, "endEncoding", "commit"))
    encoders: list[int] = []
    with self.mine(), self.objc.pool():
      self.reap()
      buffer = self.send(self.send(self.queue, "commandBuffer"), "retain")
      if not buffer:
        raise DeviceError(f"METAL gave no command buffer for {what}")
      ended = map(end[0], encoders, repeat(end[1]))
      try:
        encoders.extend(map(begin[0], (buffer,), (begin[1],), *((a,) for a in args)))
        if not encoders[0]:
          raise DeviceError(f"METAL gave no encoder for {what}")
        encode(encoders[0])
      finally:
        list(ended)
      self.flight.append((buffer, what))
      committed = map(commit[0], (buffer,), (commit[1],))  # gives None
      (done if done is not None else []).extend(map(int, map(bool, committed)))
    return buffer

  def busy(self) -> bool:
    """Is something still to run?"""
    with self.mine():
      self.reap()
      return bool(self.flight)

  def reap(self) -> None:
    """Lets go of the command buffers that have ended; keeps what is wrong with the first that failed."""
    while self.flight:
      buffer, what = self.flight[0]
      status = self.send(buffer, "status")
      if NOT_ENQUEUED < status < COMPLETED:
        break
      if status == FAILED and not self.failure:
        with self.objc.pool():
          words = self.words(self.send(buffer, "error"))
        self.failure = f"METAL failed in {what}: {words}"
      self.flight.popleft()

  def wait(self) -> None:
    """Until all that was launched has run. DeviceError if some of it failed since this was asked last."""
    with self.mine():
      flight = [buffer for buffer, _ in self.flight]
    with self.objc.pool():
      for buffer in flight:
        if self.send(buffer, "status") != NOT_ENQUEUED:  # Ctrl-C came before it was committed
          self.send(buffer, "waitUntilCompleted")
    with self.mine():
      self.reap()
      failure, self.failure = self.failure, ""
    if failure:
      raise DeviceError(failure)


class Function(NamedTuple):
  """A kernel that is ready to run."""

  name: str
  pipeline: Owned
  group: int  # threads that a group of it may have, which depends on the registers that it needs


Library = dict[str, Function]


class Step(NamedTuple):
  """A call, as it is encoded."""

  pipeline: Owned
  groups: Size
  threads: Size
  first: int  # of its arguments, among those of all calls
  nargs: Range
  barrier: bool  # before it


class Sequence:
  """Calls, bound to memory anew on each run. The GPU runs those of different queues at once: there is a barrier before
  a call that has to wait for one since the last barrier."""

  def __init__(self, device: Metal, calls: Many[Call]):
    self.device, self.send = device, device.send
    self.concurrent = len({c.queue for c in calls}) > 1
    self.slots = [slot for c in calls for slot, _ in c.args]
    self.offsets = array("Q", [offset for c in calls for _, offset in c.args])
    self.steps = self.plan(calls)
    self.what = summary([c.name or c.function.name for c in calls])
    self.word = None  # where kernels say what is wrong: 8 bytes
    if -1 in self.slots:
      self.word = device.alloc(8)
      device.upload(self.word, bytes(8))

  def plan(self, calls: Many[Call]) -> list[Step]:
    """How each call is encoded."""
    steps: list[Step] = []
    last: dict[int, int] = {}  # the last call of each queue
    since: set[int] = set()  # calls since the last barrier
    first = 0
    for n, call in enumerate(calls):
      groups, threads = grid(call, self.device.info)
      barrier = self.concurrent and not since.isdisjoint([*call.waits, last.get(call.queue, -1)])
      since = {n} if barrier else since | {n}
      last[call.queue] = n
      nargs = Range(0, len(call.args))
      sizes = Size(groups, 1, 1), Size(threads, 1, 1)
      steps.append(Step(call.function.pipeline, *sizes, first, nargs, barrier))
      first += len(call.args)
    return steps

  def launch(
    self, handles: Many[Memory], steps: list[Step], kind: int, done: list[int] | None = None
  ) -> Owned:
    """Commits some of the calls as one command buffer."""
    send = self.send
    buffers = [h.address for h in (*handles, *([self.word] if self.word else []))]
    table = array("Q", [buffers[slot] for slot in self.slots])  # slot -1 is the last
    first_buffer, first_offset = table.buffer_info()[0], self.offsets.buffer_info()[0]

    def encode(encoder: int) -> None:
      for step in steps:
        if step.barrier:
          send(encoder, "memoryBarrierWithScope:", BUFFERS)
        at = 8 * step.first
        send(encoder, "setComputePipelineState:", step.pipeline)
        send(encoder, "setBuffers:offsets:withRange:", first_buffer + at, first_offset + at, step.nargs)
        send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", step.groups, step.threads)

    message = "computeCommandEncoderWithDispatchType:"
    return self.device.launch(encode, self.what, message, kind, done=done)

  def run(self, handles: Many[Memory], done: list[int] | None = None) -> int:
    """Launches everything with `handles[i]` in slot i, and returns 0. done: gets a 0 when all is launched, even if
    Ctrl-C comes then."""
    self.launch(handles, self.steps, CONCURRENT if self.concurrent else SERIAL, done)
    return 0

  def error(self) -> int:
    """Waits; the error word of the runs since it was asked for last. 0 at once where no kernel has one."""
    if self.word is None:
      return 0
    value = int(self.device.download(self.word, 8).view(np.int64)[0])
    if value:
      self.device.upload(self.word, bytes(8))
    return value

  def profile(self, handles: Many[Memory]) -> list[float]:
    """Like `run`, one call after another; the seconds of each on the GPU."""
    return self.timed(handles)[1]

  def timed(self, handles: Many[Memory]) -> tuple[int, list[float]]:
    """Both: (error word, seconds)."""
    seconds = []
    for step in self.steps:
      buffer = self.launch(handles, [step], SERIAL)
      self.device.wait()
      seconds.append(self.send(buffer, "GPUEndTime") - self.send(buffer, "GPUStartTime"))
    return self.error(), seconds


def grid(call: Call, info: Info) -> tuple[int, int]:
  """(groups, threads in each). DeviceError where the kernel does not fit."""
  groups, threads = geometry(call, info)
  most = call.function.group
  if call.group > most:
    name = call.name or call.function.name
    raise DeviceError(f"METAL cannot run {name} in groups of {call.group} threads: it needs so many registers that "
                      f"a group has at most {most}; write it for smaller groups")  # fmt: skip
  return groups, min(threads, most)


def within(handle: Memory, nbytes: int, offset: int = 0) -> int:
  """nbytes. ValueError if so many from there on are not in the block."""
  if offset < 0 or offset + nbytes > handle.nbytes:
    raise ValueError(f"bytes {offset:,} to {offset + nbytes:,} of a block of {handle.nbytes:,}")
  return nbytes


def summary(names: list[str]) -> str:
  """Of kernels, for an error."""
  names = list(dict.fromkeys(names))
  return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def excerpt(words: str) -> str:
  """The lines that say what is wrong."""
  lines = [line for line in words.splitlines() if line.strip()]
  return "\n".join("  " + line for line in ([line for line in lines if "error" in line] or lines)[:8])


def language_version() -> int:
  """MTLLanguageVersion: the newest of LANGUAGES that this system knows."""
  system = tuple(int(part) for part in platform.mac_ver()[0].split(".") if part.isdigit())
  major, minor = next(language for first, language in LANGUAGES if system >= first)
  return major << 16 | minor
