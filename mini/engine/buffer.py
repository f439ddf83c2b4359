"""Memory on a device, as the engine sees it: a type, a number of elements, and the device's handle."""

from __future__ import annotations

from typing import Any

import numpy as np

from mini.engine.device import Device
from mini.types import DType, from_storage, to_storage


class Buffer:
  """`size` elements of `dtype` on `device`. Given back when nobody holds it."""

  __slots__ = ("__weakref__", "device", "dtype", "memory", "size")

  def __init__(self, device: str, dtype: DType, size: int):
    self.device, self.dtype, self.size = device, dtype, size
    self.memory = Device[device].alloc(self.nbytes)

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
  def over(memory: Any, device: str, dtype: DType, size: int) -> Buffer:
    """A buffer of memory that another one had."""
    b = object.__new__(Buffer)
    b.memory, b.device, b.dtype, b.size = memory, device, dtype, size
    return b

  def write(self, array: np.ndarray) -> None:
    Device[self.device].upload(self.memory, np.ascontiguousarray(to_storage(np.asarray(array), self.dtype)))

  def copy(self) -> Buffer:
    """Another buffer with the same elements."""
    b = Buffer(self.device, self.dtype, self.size)
    opened = Device[self.device]
    opened.upload(b.memory, opened.download(self.memory, self.nbytes))
    return b

  def numpy(self) -> np.ndarray:
    """A flat copy of the elements; bfloat16 as float32."""
    return from_storage(
      Device[self.device].download(self.memory, self.nbytes).view(self.dtype.storage), self.dtype
    )
