"""Memory on a device, as the engine sees it: a type, a number of elements, and the device's handle."""
from __future__ import annotations

import numpy as np

from mini.types import DType, from_storage, to_storage


class Buffer:
  """`size` elements of `dtype` on `device`. Freed when nobody holds it."""

  __slots__ = ("__weakref__", "device", "dtype", "memory", "size")

  def __init__(self, device: str, dtype: DType, size: int):
    self.device, self.dtype, self.size = device, dtype, size
    self.memory = np.empty(size, dtype.storage)

  @property
  def nbytes(self) -> int:
    return self.size * self.dtype.itemsize

  @staticmethod
  def of(array: np.ndarray, dtype: DType, device: str) -> Buffer:
    """A buffer with a copy of the array's elements."""
    b = Buffer(device, dtype, array.size)
    b.memory[:] = to_storage(np.ascontiguousarray(array), dtype).reshape(-1)
    return b

  def numpy(self) -> np.ndarray:
    """A flat copy of the elements; bfloat16 as float32."""
    return from_storage(self.memory, self.dtype).copy()
