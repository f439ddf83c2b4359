"""An index that is outside, where a gather or scatter takes several axes as one: a number far below 0 stands for it,
which says along which axis, and what it was. The guard that finds it knows 32 bits of it, and nothing else.
"""

from __future__ import annotations

from mini.ir.graph import alu
from mini.ir.uop import UOp, const
from mini.types import AxisError

AXES, MOST = 8, 1 << 26  # more is said as the last, and as the most
FIRST = -(1 << 31)  # axis a, index i: FIRST + a * 2 * MOST + MOST + i
LAST = FIRST + AXES * 2 * MOST
MOST_SIZE = (1 << 31) - 1  # of an axis, in the error word: larger ones say this


def outside(index: UOp, axis: int) -> UOp:
  """What stands for an index along this axis: int32 or int64, of any shape."""
  minus = const(-1, index.dtype)
  i = alu("max", index, const(-MOST, index.dtype))
  i = alu(
    "mul", alu("max", alu("mul", i, minus), const(1 - MOST, index.dtype)), minus
  )  # the least of it and MOST - 1
  return alu("add", i, const(FIRST + min(axis, AXES - 1) * 2 * MOST + MOST, index.dtype))


def out_of_bounds(what: str, index: int, size: int) -> AxisError:
  """The error of an index that a guard found.

  >>> out_of_bounds("gather", 7, 3)
  AxisError('gather: index 7 is out of bounds for an axis of size 3')
  """
  if not FIRST <= index < LAST:
    return AxisError(f"{what}: index {index} is out of bounds for an axis of size {size}")
  axis, i = divmod(index - FIRST, 2 * MOST)
  i -= MOST
  beyond = f" or {'less' if i < 0 else 'more'}" * (i in (-MOST, MOST - 1))
  return AxisError(f"{what}: index {i}{beyond} is out of bounds for axis {axis}")
