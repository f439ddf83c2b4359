"""Memory that is shared with other libraries: NumPy's arrays over a tensor's memory, and tensors over theirs.

On a device whose memory the host sees (CPU, INTERP) nothing is copied, either way. Tensors are values, memory is not:
what the other library writes afterwards is seen here, and what is computed here is never written there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.ir import graph
from mini.tensor.data import default_device
from mini.tensor.handle import Handle
from mini.types import BY_NUMPY

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Lent:
  """Memory of another library, as a block of ours: an address, which lives as long as this does."""

  def __init__(self, array: np.ndarray):
    self.array, self.nbytes = array, array.nbytes
    self.__array_interface__ = {**array.reshape(-1).view(np.uint8).__array_interface__}
    self.address = self.__array_interface__["data"][0]


class Shown:
  """A buffer's bytes, for an array that holds the buffer: no jitted function writes what somebody else sees."""

  def __init__(self, buffer: Buffer):
    array = buffer.bytes()
    self.held = buffer, array  # of a device, a download, which the buffer may drop
    self.__array_interface__ = {**array.__array_interface__}


def host_view(t: Tensor) -> np.ndarray:
  """The values, computed now: the memory itself where the host sees it, not to be written."""
  array = shared(t)
  array.flags.writeable = False
  return array


def shared(t: Tensor) -> np.ndarray:
  """A NumPy array over the tensor's memory, if the host sees it; else with a copy."""
  t.realize()
  if t._complex:
    return t.numpy()
  leaf = t._leaf()
  if leaf is None or not isinstance(leaf.arg[0].device, str) or t.dtype.np != t.dtype.storage:
    return t.numpy()
  flat = np.asarray(Shown(leaf.arg[0])).view(t.dtype.storage)
  return flat[: t.numel()].reshape(t.shape)


def taken_over(array: np.ndarray) -> Tensor:
  """A tensor over an array's memory, if the device takes it as it is; else with a copy."""
  device = Device[default_device()]
  dtype = BY_NUMPY.get(array.dtype)
  fits = array.flags.carray and array.size  # in row-major order, aligned, and to be written
  if dtype is None or not fits or not device.is_host:
    return Handle._final(array)
  memory: Any = array.reshape(-1).view(np.uint8) if device.interprets else Lent(array)
  buffer = Buffer.over(memory, device.name, dtype, array.size)
  buffer.lent = True
  return Handle._new(graph.buffer(buffer, array.shape, dtype))
