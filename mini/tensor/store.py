"""`x[i] = v` as a store into memory: few elements of a tensor that is there, that the host sees, and that nobody else
has.

What is a store is no graph, and nothing is looked up. All else is another value of x (indexing.py, views.py): in what
is traced, where a gradient passes, on other devices, and where a view, another tensor, an array, or a graph that is
still to be computed, has the memory, as counted references say (engine/sole.py, of what a program writes).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.device_of import place
from mini.engine.places import FEW
from mini.engine.sole import ONE, reads
from mini.gradient_rules import needs
from mini.ir.graph import shape
from mini.ir.sizes import varies
from mini.ir.uop import const
from mini.tensor.data import Number, fits
from mini.tensor.trace import local
from mini.tensor.views import derived, root_of, steps_of, views_of

if TYPE_CHECKING:
  from mini.tensor.handle import Handle

PLAIN = frozenset((int, slice, type(None), type(...)))  # NumPy's meaning of these is ours
NOTHING = const(0)


def store(t: Handle, index: Any, value: Any) -> bool:
  """Is `t[index] = value` done?"""
  at = index if type(index) is tuple else (index,)
  plain = PLAIN.issuperset(map(type, at)) and t._base is None and may_be_written(t._uop)
  if not plain or any(True for _ in views_of(t)):
    return False
  if isinstance(value, Number):
    number: Any = value.item() if isinstance(value, np.generic) else value
    if not fits(number, t.dtype):
      return False
    number = const(number, t.dtype).arg
  elif (number := values_of(value, t)) is None:
    return False
  return is_sole(t) and put(t, at if ... in at else (*at, ...), number)


def store_through(view: Handle, value: Handle) -> bool:
  """Is a view given this value, and its base?"""
  base = root_of(view)
  if base is None or not may_be_written(base._uop) or any(v is not view for v in views_of(base)):
    return False
  steps = steps_of(view._how)
  if [kind for kind, _ in steps] not in (["cut"], ["cut", "shape"]) or value.shape != view.shape:
    return False
  if needs(view._uop):
    return False
  if (number := values_of(value, base)) is None:
    return False
  cuts = steps[0][1]
  view._uop = NOTHING  # its own holds the memory
  at = tuple(
    [slice(c.start, c.start + (c.taken - 1) * c.step + 1, c.step) if c.taken else slice(0) for c in cuts]
  )
  reshaped = number.reshape([c.taken for c in cuts])
  found = not any(c.flipped for c in cuts) and is_sole(base) and put(base, at, reshaped)
  view._uop = derived(base._uop, view._how)
  return found


def put(t: Handle, at: tuple[Any, ...], number: Any) -> bool:
  memory: Buffer = t._uop.arg[0]
  try:
    part = elements(memory, shape(t._uop))[at]
    if part.size > FEW:
      return False
    part[...] = number
  except (IndexError, TypeError, ValueError):  # it is told what does not fit
    return False
  memory.changed()
  return True


def may_be_written(u: Any) -> bool:
  """Is this memory whose elements the host can write as they are?"""
  if u.op != "buffer" or type(u.arg[0]) is not Buffer or varies(shape(u)):
    return False
  if local.current is not None or local.samples is not None:
    return False
  b: Buffer = u.arg[0]
  on = Device[b.device]
  return (
    on.is_host and not on.interprets and not b.lent and b.failure is None and b.dtype.np == b.dtype.storage
  )


def elements(b: Buffer, s: tuple[int, ...]) -> np.ndarray:
  return b.bytes().view(b.dtype.storage).reshape(s)


def values_of(value: Any, t: Handle) -> np.ndarray | None:
  """The elements of a few that are in memory. What is read of the memory that is written has to be there before: it is
  computed now."""
  u = value._uop
  if value._complex or u.dtype is not t.dtype or needs(u) or value._trace is not None:
    return None
  if varies(value.shape) or value.numel() > FEW or place(u) not in ("", place(t._uop)):
    return None
  leaf = value._leaf()
  if leaf is None:
    return value._values("a[i] = b", kept=True) if reads(u, t._uop) else None
  return elements(leaf.arg[0], value.shape) if may_be_written(leaf) else None


# ---------------------------------------------------------------- who else has it


def count(t: Any) -> int:
  """The references to the node of a handle."""
  u = t._uop
  return sys.getrefcount(u)


class _Probe:
  """A handle whose node nobody else has."""

  def __init__(self) -> None:
    self._uop = object()


_alone = count(_Probe())


def is_sole(t: Handle) -> bool:
  """Does nothing but this handle have its node, and nothing but that the memory?"""
  return count(t) == _alone and sys.getrefcount(t._uop.arg[0]) == ONE
