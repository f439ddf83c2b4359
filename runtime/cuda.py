"""NVIDIA GPUs: CUDA C++ becomes code by NVRTC (nvrtc.py) and runs through the driver (driver.py).

Who owns what: a `Memory` owns its block and gives it back when it dies, to a free list that the shim owns; code stays
loaded until the process ends. Launches and copies are asynchronous and happen in the order in which they were asked
for; `wait`, `download`, `error` and `timed` wait. A sequence of more than a few calls is one CUDA graph. What the
driver or the compiler refuses is a DeviceError with its words, and so is what a kernel did wrong, at the next call that
waits; memory that cannot be had is a MemoryError; what a kernel itself found to be wrong is the error word, which
`error` returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from collections.abc import Sequence as Many
from itertools import starmap
from typing import Any

import numpy as np

from runtime import driver as drivers
from runtime import host, nvrtc
from runtime.base import Cache, Call, DeviceError, Info, geometry
from runtime.driver import Driver, Graph, Library
from runtime.heap import COUNTERS, Counters, Heap, Memory

LANES = 4  # the widest load has 16 bytes
REGISTERS = 255  # of one thread
STACK_BYTES = 1024  # the driver keeps as much for each thread that could be at work
MATRICES = ("m16n8k16 f16", "m16n8k16 bf16", "m16n8k8 tf32")  # of mma.sync, from sm_80 on
QUEUES = 4  # branches of a graph
DIRECT = 2  # as many calls are launched one by one
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"


def open(
  index: int = 0,
  cache: Cache | None = None,
  counters: Counters | None = None,
  library: str = "",
  compiler: Callable[[str], bytes] | None = None,
  api: str = "",
) -> CUDA:
  """A CUDA device.

  index: which. cache: keeps code between processes. counters: a dict to count up, with the keys in heap.COUNTERS.
  library: a file that stands in for libcuda. compiler: source -> code, in place of NVRTC; with a method `key`, as NVRTC
  has, its code is cached. api: "pycuda", "ctypes", or "" for pycuda where it imports. DeviceError says what is missing.
  """
  return CUDA(connect(index, library, api), cache, counters, compiler)


def connect(index: int, library: str, api: str) -> Driver:
  """The driver, by the interface that was asked for."""
  loaded = drivers.load(library)
  if api != "ctypes":
    try:
      from runtime.driver_pycuda import Pycuda  # pycuda's imports take longer than all of ours

      return Pycuda(index, loaded)
    except ImportError as e:
      if api:
        raise DeviceError(f"CUDA by pycuda: {e} (pip install pycuda, or do not ask for it)") from None
  return Driver(index, loaded)


class CUDA:
  """An open device. `info` says what it is."""

  def __init__(self, driver: Driver, cache: Cache | None, counters: Counters | None,
               compiler: Callable[[str], bytes] | None):  # fmt: skip
    self.driver, self.cache = driver, cache
    self.counters = dict.fromkeys(COUNTERS.split(), 0) if counters is None else counters
    ask = driver.attribute
    capability = 10 * ask("COMPUTE_CAPABILITY_MAJOR") + ask("COMPUTE_CAPABILITY_MINOR")
    self.compiler: Any = compiler or nvrtc.open(capability, driver.version[0])
    self.info = Info(
      name=driver.name,
      target=f"{driver.title} sm_{capability} (CUDA {driver.version[0]}.{driver.version[1]})",
      lanes=LANES,
      registers=REGISTERS,
      threads=1,
      compilers=host.available_threads(),
      l1_bytes=ask("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
      l2_bytes=ask("L2_CACHE_SIZE"),
      stack_bytes=STACK_BYTES,
      memory_bytes=driver.memory_bytes,
      dtypes=frozenset(DTYPES.split()),
      kind="gpu",
      group=ask("MAX_THREADS_PER_BLOCK"),
      warp=ask("WARP_SIZE"),
      shared_bytes=ask("MAX_SHARED_MEMORY_PER_BLOCK"),
      units=ask("MULTIPROCESSOR_COUNT"),
      matrices=frozenset(MATRICES if capability >= 80 else ()),
      queues=QUEUES,
    )
    self.libraries: dict[str, Library] = {}
    self.heap = Heap(driver.name, driver.memory_bytes, driver.alloc, self._release, self.counters)

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> Memory:
    """A block of the device's memory, aligned to 256 bytes, its contents arbitrary. MemoryError names the size."""
    with self.driver:
      return self.heap.take(nbytes)

  def _release(self, address: int) -> None:
    self.driver.wait()  # what was launched may still use it
    self.driver.free(address)

  def upload(self, handle: Memory, data: Any, offset: int = 0) -> None:
    """Copies a contiguous bytes-like object or array to the block, from byte `offset` on;
    then `data` may be changed."""
    source = np.asarray(data) if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    source = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
    address = inside(handle, offset, source.nbytes)
    if source.nbytes:
      with self.driver as driver:
        driver.write(address, source)
        if driver.is_pinned(source):
          driver.wait()

  def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
    """Copies the first `nbytes` bytes from one block to another."""
    addresses = inside(target, 0, nbytes), inside(source, 0, nbytes)
    if nbytes:
      with self.driver as driver:
        driver.copy(*addresses, nbytes)

  def download(self, handle: Memory, nbytes: int, offset: int = 0) -> np.ndarray:
    """A copy of `nbytes` bytes, as uint8, once everything before has run."""
    address, result = inside(handle, offset, nbytes), np.empty(nbytes, np.uint8)
    with self.driver as driver:
      if nbytes:
        driver.read(result, address)
      driver.wait()
    return result

  def free(self, handle: Memory) -> None:
    """Gives the block back now. The same happens when the handle dies."""
    handle.close()

  # ---------------------------------------------------------------- code

  def compile(self, source: str) -> Library:
    """CUDA C++ -> its kernels, whose parameters are all pointers. DeviceError with the compiler's words."""
    return self.compile_all([source])[0]

  def compile_all(self, sources: Many[str]) -> list[Library]:
    """The same for several sources, which are compiled at once."""
    todo = [s for s in dict.fromkeys(sources) if s not in self.libraries]
    if len(todo) > 1:
      from concurrent.futures import ThreadPoolExecutor  # 10 ms that a single source saves

      with ThreadPoolExecutor(min(len(todo), self.info.compilers)) as pool:
        images = list(pool.map(self._image, todo))
    else:
      images = [self._image(s) for s in todo]
    with self.driver as driver:
      for source, image in zip(todo, images):
        self.libraries[source] = Library(driver, image)
    return [self.libraries[s] for s in sources]

  def _image(self, source: str) -> bytes:
    """The code of a source, from the cache or the compiler."""
    key = self.compiler.key(source) if self.cache and hasattr(self.compiler, "key") else ""
    path = self.cache.get(key) if self.cache and key else None
    if path:
      try:
        image = np.fromfile(path, np.uint8).tobytes()
        self.counters["disk_hits"] += 1
        return image
      except OSError:  # another process has just cleared the cache
        pass
    image = self.compiler(source)
    self.counters["compiles"] += 1
    if self.cache and key:
      self.cache.put(key, image)
    return image

  # ---------------------------------------------------------------- running

  def sequence(self, calls: Many[Call]) -> Sequence:
    """Calls that are launched together. DeviceError for a kernel that cannot have as many threads as it was written
    for."""
    return Sequence(self, calls)

  def wait(self) -> None:
    """Returns when everything that was launched has run; DeviceError if it failed."""
    with self.driver as driver:
      driver.wait()


def inside(handle: Memory, offset: int, nbytes: int) -> int:
  """The address of a part of a block."""
  if offset < 0 or offset + nbytes > handle.nbytes:
    raise ValueError(f"{nbytes:,} bytes at {offset:,} do not fit a block of {handle.nbytes:,}")
  return handle.address + offset


class Sequence:
  """Calls that are launched together. Two threads may run one; the second waits until the first has launched it."""

  def __init__(self, device: CUDA, calls: Many[Call]):
    self.device, self.calls = device, calls
    self.lock = threading.Lock()
    # Every argument of every call, one after another: from which slot, at which byte, and what it was in the last run.
    slots = [slot for call in calls for slot, _ in call.args]
    self.slots = np.array(slots, np.int64)
    self.offsets = np.array([offset for call in calls for _, offset in call.args], np.uint64)
    self.values = np.zeros(len(slots), np.uint64)
    self.owners = np.array([n for n, call in enumerate(calls) for _ in call.args], np.int64)  # the calls
    self.nslots = 1 + max(slots, default=-1)
    names = list(dict.fromkeys(call.function.name for call in calls))
    self.names = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    self.graph: Graph | None = None
    with device.driver as driver:
      for call in calls:
        fits(driver, call, device.info)
      ends = np.cumsum([len(call.args) for call in calls]).tolist()
      arguments = [self.values[end - len(call.args) : end] for call, end in zip(calls, ends)]
      self.launches = [(c.function, *geometry(c, device.info), a) for c, a in zip(calls, arguments)]
      self.rows = [driver.row(*launch) for launch in self.launches]
      self.word: Memory | None = None  # the error word
      if -1 in slots:
        self.word = device.heap.take(8)
        driver.clear(self.word.address, 8)

  def run(self, handles: Many[Memory], done: list[int] | None = None) -> int:
    """Launches everything with `handles[i]` in slot i, and returns 0.

    done: gets 0, too. After a Ctrl-C it tells whether everything was launched, or nothing.
    """
    done = [] if done is None else done
    before = len(done)
    with self.lock, self.device.driver as driver:
      self._bind(handles)
      launch, rows = driver.launch, self.rows
      if len(rows) > DIRECT:
        assert self.graph
        launch, rows = driver.launch_graph, [self.graph.row]
      driver.running = self.names
      try:
        done.extend(starmap(launch, rows))  # one call into C: no signal in between
      except driver.errors:
        del done[before:]
        raise
      failed = next(filter(None, done[before:]), 0)
      done[before:] = [] if failed else [0]
      driver.check("the launch", failed)
    return 0

  def _bind(self, handles: Many[Memory]) -> None:
    """Puts addresses in the place of arguments, and into the graph those that changed."""
    graph, self.graph = self.graph, None  # what is interrupted here leaves none
    bases = [h.address for h in handles[: self.nslots]]
    bases.append(self.word.address if self.word else 0)  # where slot -1 points
    values = np.array(bases, np.uint64)[self.slots] + self.offsets
    changed = np.flatnonzero(values != self.values)
    self.values[:] = values
    if graph:
      for n in dict.fromkeys(self.owners[changed].tolist()):
        graph.update(n)
    elif len(self.rows) > DIRECT:
      graph = Graph(self.device.driver, self.launches, dependencies(self.calls))
    self.graph = graph

  def error(self) -> int:
    """Waits; the error word of the runs since it was asked for last. 0 at once where no kernel has a guard."""
    if self.word is None:
      return 0
    with self.lock, self.device.driver as driver:
      word = int(self.device.download(self.word, 8).view(np.int64)[0])
      if word:
        driver.clear(self.word.address, 8)
    return word

  def profile(self, handles: Many[Memory]) -> list[float]:
    """Like `run`, one call after another; the seconds of each."""
    return self.timed(handles)[1]

  def timed(self, handles: Many[Memory]) -> tuple[int, list[float]]:
    """Both: (error word, seconds)."""
    with self.lock, self.device.driver as driver:
      self._bind(handles)
      driver.running = self.names
      seconds = driver.times(self.rows)
    return self.error(), seconds


def fits(driver: Driver, call: Call, info: Info) -> None:
  """DeviceError for a kernel whose registers or shared memory are too many for its threads."""
  threads = geometry(call, info)[1]
  most = driver.most_threads(call.function)
  if threads > most:
    name = call.name or call.function.name
    raise DeviceError(f"{driver.name}: kernel {name} needs groups of {threads} threads, but its registers and shared "
                      f"memory allow {most}: give it fewer in its recipe")  # fmt: skip


def dependencies(calls: Many[Call]) -> list[list[int]]:
  """For each call those that it follows: the one before it in its queue, and those that it waits for."""
  last: dict[int, int] = {}
  result = []
  for n, call in enumerate(calls):
    result.append(sorted({*call.waits, *([last[call.queue]] if call.queue in last else [])}))
    last[call.queue] = n
  return result
