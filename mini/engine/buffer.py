"""Memory on a device, as the engine sees it: a type, a number of elements, and the device's handle."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from mini.engine.device import Device
from mini.ir.uop import UOp
from mini.stats import stats
from mini.types import DType, from_storage, to_storage


def leaf_of(u: UOp) -> UOp | None:
  """The buffer leaf that already holds the value of u."""
  return u if u.op == "buffer" else u.memo.get("leaf")


class Buffer:
  """`size` elements of `dtype` on `device`. Given back when nobody holds it.

  Its elements change with `write`, and where tensor/store.py writes some of them: a program that updates memory in
  place hands it to a new Buffer (`over`). So what was copied to the host or to another device holds as long as the
  buffer does, and is copied once.
  """

  __slots__ = ("__weakref__", "copies", "device", "dtype", "failure", "host", "leaves", "lent", "memory",
               "size")  # fmt: skip

  def __init__(self, device: str, dtype: DType, size: int, memory: Any = None):
    self.device, self.dtype, self.size = device, dtype, size
    self.leaves: dict[Any, Any] = {}  # its graph nodes, by shape and type, while somebody holds them
    self.memory = Device[device].alloc(size * dtype.itemsize) if memory is None else memory
    self.lent = False  # is the memory another library's, which is never written to?
    self.host: np.ndarray | None = None  # the bytes, once somebody asked for them
    self.failure: IndexError | None = None  # of the program that was to compute the elements
    self.copies: dict[str, ref[Buffer]] | None = None  # on other devices, while somebody holds them

  @property
  def nbytes(self) -> int:
    return self.size * self.dtype.itemsize

  @staticmethod
  def of(array: np.ndarray, dtype: DType, device: str) -> Buffer:
    """A buffer with a copy of the array's elements."""
    b = Buffer(device, dtype, array.size)
    b.write(array)
    return b

  @staticmethod
  def zeros(size: int, dtype: DType, device: str) -> Buffer:
    return Buffer(device, dtype, size, Device[device].zeros(size * dtype.itemsize))

  @staticmethod
  def over(memory: Any, device: str, dtype: DType, size: int) -> Buffer:
    """A buffer of memory that another one had."""
    return Buffer(device, dtype, size, memory)

  def write(self, array: np.ndarray) -> None:
    """Other elements."""
    Device[self.device].upload(self.memory, np.ascontiguousarray(to_storage(array, self.dtype)))
    self.changed()

  def changed(self) -> None:
    """Copies hold no longer."""
    self.host = self.copies = self.failure = None

  def copy(self) -> Buffer:
    """Another buffer with the same elements."""
    b = Buffer(self.device, self.dtype, self.size)
    Device[self.device].copy(b.memory, self.memory, self.nbytes)
    return b

  def bytes(self) -> np.ndarray:
    """The elements as uint8, to be read only: a device's memory is downloaded once."""
    opened = Device[self.device]
    if opened.is_host:
      return np.asarray(self.memory)[: self.nbytes]
    if self.host is None and self.failure is None:
      self.host = opened.download(self.memory, self.nbytes)
    if self.failure is not None:
      self.host = None
      raise self.failure
    return self.host  # type: ignore[return-value]

  def on(self, device: str) -> Buffer:
    """The same elements on another device, through the host: the copy that somebody holds, or a new one."""
    if device == self.device:
      return self
    if self.copies is None:
      self.copies = {}
    known = self.copies.get(device)
    there = None if known is None else known()
    if there is None:
      there = Buffer(device, self.dtype, self.size)
      stats["copies"] += 1
      Device[device].upload(there.memory, self.bytes())
      self.copies[device] = ref(there)
    return there

  def numpy(self) -> np.ndarray:
    """A flat copy of the elements; bfloat16 as float32."""
    return from_storage(self.bytes().copy().view(self.dtype.storage), self.dtype)
