"""Memory on several devices that is one tensor: whole on each of them, or a part along an axis on each.

To the graph it is one leaf; which memory it is made of matters where programs are made of graphs
(mini/engine/spmd.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np

from mini.engine.buffer import Buffer
from mini.engine.device_of import noted
from mini.stats import stats
from mini.types import DType


class Layout(NamedTuple):
  """How a value lies on several devices. outer: see Sharded. sizes: the elements of each part."""

  devices: tuple[str, ...]
  outer: int
  sizes: tuple[int, ...]


class Sharded(Buffer):
  """Buffers that together are one value, in the order of their devices; `device` is a tuple of names.

  outer 0: each holds the whole. outer n: the elements are n rows in row-major order, and each buffer holds a piece of
  every row, the first ones first. So it is said for any shape of which an axis was cut.
  """

  __slots__ = ("outer", "parts")

  def __init__(self, parts: Sequence[Buffer], outer: int):
    self.parts, self.outer, self.leaves = tuple(parts), outer, {}
    self.device = noted(tuple(b.device for b in parts))
    self.dtype = parts[0].dtype
    self.size = sum(b.size for b in parts) if outer else parts[0].size

  @property
  def layout(self) -> Layout:
    return Layout(self.device, self.outer, tuple(b.size for b in self.parts))  # type: ignore[arg-type]

  def copy(self) -> Sharded:
    return Sharded([b.copy() for b in self.parts], self.outer)

  def numpy(self) -> np.ndarray:
    """A flat copy of the elements of the whole."""
    if not self.outer:
      return self.parts[0].numpy()
    rows = [b.numpy().reshape(self.outer, b.size // self.outer) for b in self.parts]
    return np.concatenate(rows, 1).reshape(-1)

  def axis_of(self, s: tuple[int, ...]) -> int | None:
    """Along which axis a whole of this shape is cut; None if every part is the whole. ValueError if along none."""
    return cut_axis(s, self.outer, [b.size for b in self.parts]) if self.outer else None

  def fits(self, s: tuple[int, ...]) -> bool:
    """Are its parts those of a whole of this shape?"""
    try:
      self.axis_of(s)
      return True
    except ValueError:
      return False


def cut_axis(s: tuple[int, ...], outer: int, sizes: Sequence[int]) -> int:
  """The axis of shape s with `outer` rows before it, of each of which `sizes` lie in the parts.
  ValueError if there is none."""
  for axis in reversed(range(len(s))):
    behind = prod(s[axis + 1 :])
    if outer and behind and prod(s[:axis]) == outer and not any(n // outer % behind for n in sizes):
      return axis
  raise ValueError("the parts are not cut along an axis of this shape")


def layout(b: Buffer) -> Layout | str:
  """Where memory is, and how it is cut."""
  return b.layout if isinstance(b, Sharded) else b.device


def sharded(b: Buffer, s: tuple[int, ...], devices: tuple[str, ...], axis: int | None) -> Sharded:
  """Copies of memory of shape s on several devices: of all of it, or of a part along axis each."""
  array, n = b.numpy().reshape(s), len(devices)
  ends = [] if axis is None else list(accumulate(portions(s[axis], n)))[:-1]
  parts = [array] * n if axis is None else np.split(array, ends, axis)
  stats["copies"] += sum(d != b.device for d in devices)
  return Sharded(
    [Buffer.of(a, b.dtype, d) for a, d in zip(parts, devices)], 0 if axis is None else prod(s[:axis])
  )


def memory(array: np.ndarray, dtype: DType, device: str | tuple[str, ...]) -> Buffer:
  """The array's elements on a device, or whole on each of several."""
  if isinstance(device, str):
    return Buffer.of(array, dtype, device)
  return Sharded([Buffer.of(array, dtype, d) for d in device], 0)


def zeros(size: int, dtype: DType, device: str | tuple[str, ...]) -> Buffer:
  """Zeros on a device, or on each of several."""
  if isinstance(device, str):
    return Buffer.zeros(size, dtype, device)
  return Sharded([Buffer.zeros(size, dtype, d) for d in device], 0)


def buffers(b: Buffer) -> tuple[Buffer, ...]:
  """What it is made of: several, where it is on several devices."""
  return b.parts if isinstance(b, Sharded) else (b,)


def portions(n: int, count: int) -> list[int]:
  """n in `count` parts: of equal sizes, or the first ones larger by 1.

  >>> portions(10, 4)
  [3, 3, 2, 2]
  """
  return [n // count + (k < n % count) for k in range(count)]
