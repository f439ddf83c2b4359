"""Devices by name: a shim that was opened, the kernels that it has, and the memory that it lends.

  Device["CUDA:1"]   the second CUDA device; "CUDA" is the first. It is opened on first use
  Device.DEFAULT     what DEV says, or the first that opens of CUDA, METAL, CL on a GPU, CPU
  Device.register    a kind of device of one's own

A kind is one row: how it is opened, and the language of its kernels. With EMULATE=1 the GPU kinds are opened as
emulations, which compile their source for this CPU; what was opened stays what it is as long as the process lives.
The compiler is imported when a device first needs it: `import mini` is quick.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from mini.config import DEVICES, config, nearest
from mini.engine.progress import compiling
from mini.ir.uop import UOp, toposort
from mini.stats import stats
from mini.types import dtypes
from runtime.base import DeviceError

if TYPE_CHECKING:
  from mini.render.spelling import Language


class Kind(NamedTuple):
  """A kind of device."""

  open: Callable[[int], Any]  # the number of the device -> its shim; None for the interpreter
  language: Callable[[UOp, Any], Language]  # (kernel, the shim's info) -> what it is printed in


class Code(NamedTuple):
  """What a device compiles: a kernel's function, the helper functions that it calls, and what stands before both.
  It is looked up by all of its text: a name is short, for people, and two kernels may have the same."""

  name: str
  source: str
  helpers: tuple[tuple[str, str], ...]  # (name, text), in order
  prelude: str


def disk() -> Any:
  from mini.engine.cache import disk_cache

  return disk_cache()


def open_cpu(index: int) -> Any:
  from runtime import cpu

  return cpu.open(cc=config.CC, threads=config.THREADS, cache=disk(), counters=stats)


def open_gpu(name: str) -> Callable[[int], Any]:
  """The shim of this kind: the real one, or with EMULATE=1 the emulation."""

  def opened(index: int) -> Any:
    if config.EMULATE:
      return import_module("runtime.emulate").open(name, index, config.CC, disk(), stats, check=config.CHECK)
    shim = import_module("runtime." + {"CL": "opencl", "CUDA": "cuda", "METAL": "metal"}[name])
    return shim.open(index, cache=disk(), counters=stats)

  return opened


def language_of(name: str) -> Callable[[UOp, Any], Language]:
  def language(kernel: UOp, info: Any) -> Language:
    from mini.render import language_for

    return language_for(name, kernel, info.lanes if info.kind == "cpu" else 0)

  return language


KINDS: dict[str, Kind] = {
  "CPU": Kind(open_cpu, language_of("CPU")),
  **{name: Kind(open_gpu(name), language_of(name)) for name in ("CL", "CUDA", "METAL")},
  "INTERP": Kind(lambda index: None, language_of("CPU")),
}


def bytes_of_numpy(nbytes: int) -> np.ndarray:
  return np.empty(nbytes, np.uint8)


FUNCTIONS = 4096  # that a device remembers; programs hold theirs
UNIT = 8  # kernels of a source, about: a core that is done takes the next, and a person sees that it goes on
AHEAD_BYTES = 16 << 20  # of memory: it takes a moment to make so many ready
# Of the devices that are like each other, which so compute the same to the last bit.
COMPILED: dict[tuple, tuple[dict[tuple, dict[UOp, Any]], dict[Any, Any], dict[Any, Any]]] = {}


class Opened:
  """One device of this process."""

  def __init__(self, name: str):
    kind, _, index = name.partition(":")
    self.name, self.kind = name, KINDS[kind]
    self.lock = threading.RLock()
    self.functions: dict[Code, Any] = {}
    # Programs that were launched, and whose guards may have fired, each with what it computed.
    self.unchecked: dict[Any, dict[int, ref[Any]]] = {}
    self.shim = self.kind.open(int(index or 0))
    self.interprets = self.shim is None
    if (heap := getattr(self.shim, "heap", None)) is not None:
      stats.heaps.append(ref(heap))
    self.take: Callable[[int], Any] = bytes_of_numpy if self.interprets else self.shim.alloc
    # Recipes and sources by the settings that they depend on; kernels that are the same up to sizes, by their source,
    # and by their structure.
    of_its_like = (self.kind, None if self.interprets else self.shim.info)
    self.compiled, self.families, self.alike = COMPILED.setdefault(of_its_like, ({}, {}, {}))
    # Does NumPy see its memory?
    self.is_host = self.interprets or kind == "CPU"

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> Any:
    return self.take(nbytes)

  def zeros(self, nbytes: int) -> Any:
    """Memory that is all zeros."""
    if self.is_host:
      return np.zeros(nbytes, np.uint8) if self.interprets else self.shim.zeros(nbytes)
    memory = self.alloc(nbytes)
    self.upload(memory, np.zeros(nbytes, np.uint8))
    return memory

  def ahead(self, sizes: Iterable[int]) -> list[Any]:
    """Blocks for what will soon be asked for in these sizes, which the device makes ready in the meantime, if they are
    big. Who gives them back will get them."""
    try:
      return [self.alloc(n) for n in sizes if n >= AHEAD_BYTES] if self.is_host else []
    except MemoryError:  # who needs them will say what for
      return []

  def upload(self, memory: Any, data: np.ndarray) -> None:
    if not self.is_host:
      stats["bytes_uploaded"] += data.nbytes
    if self.interprets:
      memory[:] = data.reshape(-1).view(np.uint8)
    else:
      self.shim.upload(memory, data)

  def download(self, memory: Any, nbytes: int) -> np.ndarray:
    """A copy of the bytes. What was launched before has run; IndexError if one of its guards fired."""
    if not self.is_host:
      stats["bytes_downloaded"] += nbytes
    found = memory.copy() if self.interprets else self.shim.download(memory, nbytes)
    self.check()
    return found

  def copy(self, target: Any, source: Any, nbytes: int) -> None:
    if self.interprets:
      target[:] = source[:nbytes]
    else:
      self.shim.copy(target, source, nbytes)

  def synchronize(self) -> None:
    """Until all that was launched has run. DeviceError if the device failed, IndexError if a guard fired."""
    if not self.interprets:
      self.shim.wait()
      self.check()

  def check(self) -> None:
    """IndexError if a guard fired in a program that was launched since this was asked last. What such a program
    computed raises the same whenever it is read."""
    while self.unchecked:
      program, outputs = self.unchecked.popitem()
      try:
        program.check()
      except IndexError as e:
        for b in [b for known in outputs.values() if (b := known()) is not None]:
          b.failure = e
        raise

  # ---------------------------------------------------------------- kernels

  def render(self, kernel: UOp) -> Code:
    """The kernel's function, called KERNEL.

    DeviceError where the device lacks a type of the kernel, with the devices that have it, or stack for its stages.
    """
    from mini.codegen.threads import on_stack
    from mini.render.cstyle import Renderer

    for dtype in {u.dtype.name for u in toposort(kernel) if u.dtype not in (dtypes.void, dtypes.index)}:
      if dtype not in self.shim.info.dtypes:
        raise DeviceError(lacks(self, dtype))
    # recipes take half of a thread's stack at most; who writes a kernel may take half of the rest, too
    taken, room = on_stack(kernel), self.shim.info.stack_bytes * 3 // 2
    if self.shim.info.name == "CPU" and taken > room:
      raise DeviceError(
        f"{self.name}: stages of a kernel take {taken:,} bytes of a thread's stack, which has {room:,} for them\n"
        "  split the loops that they are over, so that they hold less; or give threads more: ulimit -s"
      )
    language = self.kind.language(kernel, self.shim.info)
    r = Renderer(kernel, language, "KERNEL")
    return Code("KERNEL", r.source(), tuple(r.helpers.items()), language.prelude)

  def build(self, codes: Iterable[Code]) -> dict[Code, Any]:
    """The functions of kernels, compiled together: in as many sources as the device compiles at once, or more of them
    that are not too long."""
    from mini.render.cstyle import link

    found = {c: self.functions.get(c) for c in codes}
    new = [c for c, function in found.items() if function is None]
    groups = in_units(new, min(len(new), max(self.shim.info.compilers, len(new) // UNIT)))
    sources = [link([(c.source, c.helpers) for c in group], group[0].prelude) for group in groups]
    before = stats["compiles"]
    with compiling(len(new), lambda: sum(map(len, groups[: max(0, stats["compiles"] - before)]))):
      libraries = self.shim.compile_all(sources) if sources else []
    for group, library in zip(groups, libraries):
      for c in group:
        found[c] = self.functions[c] = library[c.name]
    while len(self.functions) > max(FUNCTIONS, len(found)):
      self.functions.pop(next(iter(self.functions)), None)
    return found


def in_units(codes: list[Code], count: int) -> list[list[Code]]:
  """Codes in so many sources, in each of which a name is that of one text; whatever shares a name with another text has
  one of its own."""
  meaning: dict[str, str] = {}
  together: list[Code] = []
  apart: list[list[Code]] = []
  for c in codes:
    names = {"": c.prelude, c.name: c.source, **dict(c.helpers)}
    if all(meaning.get(name, text) == text for name, text in names.items()):
      meaning.update(names)
      together.append(c)
    else:
      apart.append([c])
  return [group for n in range(count) if (group := together[n::count])] + apart


def lacks(device: Opened, dtype: str) -> str:
  """What is wrong with a kernel for this device, and where it would run."""
  others = [d for d in Device.opened.values() if d.interprets or dtype in d.shim.info.dtypes]
  names = ", ".join(dict.fromkeys(["CPU", *(d.name for d in others)]))
  return (
    f"{device.name} ({device.shim.info.target}) has no {dtype}\n"
    f'  {names} has it: x.to("CPU"); or cast to another type'
  )


def canonical(name: str) -> str:
  """A device's one name: "cuda:0" -> "CUDA". DeviceError for what names none."""
  kind, colon, index = name.upper().partition(":")
  if kind not in KINDS or (colon and not index.isdigit()):
    close = nearest(kind, KINDS)
    hint = f"\n  did you mean {close}{colon + index if index.isdigit() else ''}?" if close else ""
    raise DeviceError(
      f"no device {name!r}; there are {', '.join(KINDS)}, with :1, :2, ... for more of a kind{hint}"
    )
  return f"{kind}:{int(index)}" if index and int(index) else kind


class Devices:
  """The devices that were opened, by name."""

  def __init__(self) -> None:
    self.opened: dict[str, Opened] = {}
    self.lock = threading.RLock()
    self.first = ""  # the default where DEV says none

  def __getitem__(self, name: str) -> Opened:
    """The device, opened. DeviceError where it cannot be had."""
    got = self.opened.get(name)
    if got is None:
      name = canonical(name)
      with self.lock:
        got = self.opened.get(name)
        if got is None:
          try:
            got = self.opened[name] = Opened(name)
          except DeviceError as e:  # its text says it all: where in the shim it was found helps nobody
            raise e.with_traceback(None) from None
    return got

  @property
  def DEFAULT(self) -> str:
    """Where tensors are made."""
    return config.DEV or self.first or self.probe()

  def probe(self) -> str:
    """The first device that opens of CUDA, METAL, CL on a GPU, CPU.
    Where there is no sign of a kind it is not tried."""
    with self.lock:
      for name in ("CUDA", "METAL", "CL"):
        if config.EMULATE or not SIGNS[name]():
          continue
        try:
          if self[name].shim.info.kind == "gpu":
            self.first = name
            return name
        except DeviceError:
          pass
      self.first = "CPU"
      return self.first

  def register(
    self, name: str, open: Callable[[int], Any], language: Language | Callable[[UOp, Any], Language]
  ) -> None:
    """A kind of device of one's own: `Device.register("TOY", open=shim_for_index, language=TABLE)`.

    open: the number of a device -> its shim (runtime/base.py says what that is). language: the table of spellings of
    its kernels, or a function of a kernel and the shim's info that gives it. ValueError if the name is taken or is no
    name.
    """
    if name in KINDS or not name.isidentifier() or name != name.upper():
      raise ValueError(f"Device.register: {name!r} is taken, or is no name in capitals")
    DEVICES.append(name)
    KINDS[name] = Kind(open, language if callable(language) else lambda kernel, info: language)


def has_opencl_gpu() -> bool:
  """Is there a driver that is none of a CPU? To load OpenCL takes a tenth of a second."""
  drivers = glob.glob(os.environ.get("OCL_ICD_VENDORS", "/etc/OpenCL/vendors").rstrip("/") + "/*.icd")
  return find_spec("pyopencl") is not None and any("pocl" not in os.path.basename(d) for d in drivers)


def has_libcuda() -> bool:
  import ctypes

  try:
    return ctypes.CDLL("libcuda.so.1" if os.name == "posix" else "nvcuda.dll") is not None
  except OSError:
    return False


# What is looked at before a kind is tried, because to try takes time.
SIGNS: dict[str, Callable[[], bool]] = {
  "CUDA": has_libcuda,
  "METAL": lambda: os.path.exists("/System/Library/Frameworks/Metal.framework"),
  "CL": has_opencl_gpu,
}

Device = Devices()
