"""NVIDIA's driver for cuda.py, by pycuda: context, memory, copies, the stream, modules, launches, events.

pycuda has no graphs, and tells nobody the handle of a function, which a graph needs. So those are inherited, and the
code of a graph is loaded once more, by ctypes, into the context that pycuda holds: both speak to one library.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import warnings
from collections.abc import Sequence as Many
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from runtime.driver import Driver, Failed, Function


class Pycuda(Driver):
  """pycuda, for one device. Its contexts are a stack in each thread, which must be empty when the thread ends.

  ImportError where there is no pycuda.
  """

  def __init__(self, index: int, library: ctypes.CDLL):
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # pycuda's guess why it does not import
      self.pycuda: Any = import_module("pycuda.driver")
    self.errors = (Failed, self.pycuda.Error)
    self.blocks: dict[int, Any] = {}  # address -> pycuda's owner of the memory
    self.modules: list[Any] = []
    super().__init__(index, library)
    self.launch = self.pycuda.Function._launch_kernel

  def connect(self, index: int) -> None:
    self.pycuda.init()
    device = self.pycuda.Device(index)
    self.properties, self.title, self.memory_bytes = device, device.name(), device.total_memory()
    self.context = device.retain_primary_context()
    self.context.push()
    self.pystream = self.pycuda.Stream()
    self.stream = self.pystream.handle
    self.context.pop()
    atexit.register(self.close)
    os.register_at_fork(after_in_child=self.abandon)

  def close(self) -> None:
    """At the end of the process: what pycuda destroys after this, it knows to be gone. (A Ctrl-C may have left the
    context on the stack, where pycuda must not find it.)"""
    if os.getpid() == self.pid:
      try:
        while self.pycuda.Context.get_current():
          self.pycuda.Context.pop()
        self.context.detach()
      except self.pycuda.Error:  # a lost device
        pass

  def abandon(self) -> None:
    """In a forked child: what is destroyed there would call the driver, which has no such process,
    and end it by that."""
    for owner in (self.context, self.pystream, *self.modules, *self.blocks.values()):
      ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))

  def attribute(self, name: str) -> int:
    return self.properties.get_attribute(getattr(self.pycuda.device_attribute, name))

  def enter(self) -> None:
    self.context.push()

  def leave(self) -> None:
    self.pycuda.Context.pop()

  # ---------------------------------------------------------------- memory

  def alloc(self, nbytes: int) -> int:
    try:
      block = self.pycuda.mem_alloc(nbytes)
    except self.pycuda.MemoryError as e:
      raise MemoryError(str(e)) from None
    self.blocks[int(block)] = block
    return int(block)

  def free(self, address: int) -> None:
    self.blocks.pop(address).free()

  def write(self, address: int, data: np.ndarray) -> None:
    self.pycuda.memcpy_htod_async(address, data, self.pystream)

  def read(self, data: np.ndarray, address: int) -> None:
    self.pycuda.memcpy_dtoh_async(data, address, self.pystream)

  def copy(self, target: int, source: int, nbytes: int) -> None:
    self.pycuda.memcpy_dtod_async(target, source, nbytes, self.pystream)

  def clear(self, address: int, nbytes: int) -> None:
    self.pycuda.memset_d8_async(address, 0, nbytes, self.pystream)

  def wait(self) -> None:
    self.pystream.synchronize()

  # ---------------------------------------------------------------- code and launches

  def load(self, image: bytes) -> Any:
    self.modules.append(self.pycuda.module_from_buffer(image))
    return self.modules[-1]

  def function(self, module: Any, name: str) -> Any:
    return module.get_function(name)

  def most_threads(self, function: Function) -> int:
    return function.function.get_attribute(self.pycuda.function_attribute.MAX_THREADS_PER_BLOCK)

  def handle(self, function: Function) -> int:
    library = function.library
    if library.again is None:
      library.again = Driver.load(self, library.image)
    return Driver.function(self, library.again, function.name)

  def row(self, function: Function, groups: int, threads: int, values: np.ndarray) -> tuple[Any, ...]:
    return (function.function, (groups, 1, 1), (threads, 1, 1), values, 0, self.pystream)

  def times(self, rows: Many[tuple[Any, ...]]) -> list[float]:
    events = [self.pycuda.Event().record(self.pystream)]
    for row in rows:
      self.launch(*row)
      events.append(self.pycuda.Event().record(self.pystream))
    self.wait()
    return [before.time_till(after) / 1e3 for before, after in pairwise(events)]
