"""The memory of an array, which its views share, the steps that lead from it to a view, and when it is computed.

A program's call takes longer than NumPy does for a few numbers. So what is made of few values that are there NumPy
computes at once, and they are kept as NumPy's array; a tensor is made of them where one is asked for.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.engine.device import Device
from mini.ir.uop import UOp
from mini.numpy.few import has_values, limit
from mini.numpy.types import depth, mini_type
from mini.tensor import Tensor
from mini.tensor.trace import local, outside
from mini.types import HANDED_IN

# Operations in a row that are put off; then they are computed, so that a loop stays a loop.
LONGEST = 128
# Integers beyond that are data, so that one program serves all rows of an array and all rounds of a loop.
SMALL = 8

Step = tuple[str, Any]


class Memory:
  """What an array and its views share: a tensor, or few values, and how often it was replaced."""

  __slots__ = ("__weakref__", "_tensor", "is_lent", "owner", "readonly", "trace", "values", "version")

  values: np.ndarray | None
  _tensor: Tensor | None

  def __init__(self, value: Tensor | np.ndarray, readonly: bool = False):
    self.version, self.readonly, self.trace = 0, readonly, local.current
    self.owner: Callable[[], Any] | None = None
    self.is_lent = False  # somebody else has the tensor, and may write it
    if isinstance(value, np.ndarray):
      value.setflags(write=False)
      self.values, self._tensor = value, None
    else:
      self.hold(value)

  @property
  def tensor(self) -> Tensor:
    """Of few values one on the device that is the default now: they go along with whatever they meet."""
    if self._tensor is None or (self.values is not None and self._tensor.device != Device.DEFAULT):
      with outside():
        self._tensor = Tensor(self.values)
    return self._tensor

  def read(self) -> Tensor:
    """The tensor. What a jitted function reads that is no argument of it nobody may write anymore."""
    if local.current is not None and self.trace is not local.current:
      self.readonly = True
    return self.tensor

  def hold(self, value: Tensor | np.ndarray) -> None:
    """Have another value, which is computed where too much has been put off."""
    if isinstance(value, np.ndarray):
      value.setflags(write=False)
      self.values, self._tensor = value, None
      return
    self.values, self._tensor = None, value
    for node in nodes_of(value):
      if node.op != "buffer":
        if (
          "array" not in node.memo or node.memo["array"]() is None
        ):  # else an array's, of which this is a scalar
          node.memo["array"] = weakref.ref(self)
        if has_values() and depth(node) > LONGEST:
          compute(value)

  def remember(self, values: np.ndarray) -> None:
    """Keep what the tensor was found to be, if that is few values and nobody else may change them."""
    t = self.tensor
    at_home = t.device == Device.DEFAULT and HANDED_IN.get(values.dtype) is t.dtype
    if at_home and not self.is_lent and not t.requires_grad and values.size <= limit():
      self.values = values.copy()
      self.values.flags.writeable = False

  def has(self, most: int) -> bool:
    """Are the values there, and at most so many?"""
    return self.values is not None and self.values.size <= most

  def unlocked(self) -> np.ndarray:
    """The values, to be written and then to be held: a copy, if anybody else has them or a view of them."""
    values = self.values
    assert values is not None
    if values.base is not None or sys.getrefcount(values) != _alone:
      return values.copy()
    values.setflags(write=True)
    return values

  def lend(self) -> Tensor:
    """The tensor, for whoever may write it."""
    tensor, self.is_lent, self.values = self.tensor, True, None
    return tensor


class _Probe:
  """Counts as `unlocked` does, of what nobody else has."""

  def __init__(self) -> None:
    self.values = np.zeros(())

  def count(self) -> int:
    values = self.values
    return sys.getrefcount(values)


_alone = _Probe().count()


def nodes_of(t: Tensor) -> list[UOp]:
  """Its node; of a complex tensor those of its parts."""
  return [part._uop for part in t._parts()]


def compute(*tensors: Tensor) -> None:
  """Compute tensors, and with them the arrays that they are made of and that somebody still holds: who goes on with
  those begins there, so that each round of a loop builds the same graph, which is compiled once."""
  pending = [node for t in tensors if not t.is_realized for node in nodes_of(t)]
  kept, seen = dict.fromkeys(tensors), set(pending)
  while pending:
    node = pending.pop()
    memory = node.memo["array"]() if "array" in node.memo else None
    if memory is not None and node in nodes_of(memory.tensor):
      kept[memory.tensor] = None
    below = [s for s in node.src if s not in seen and s.op != "buffer" and "leaf" not in s.memo]
    seen.update(below)
    pending += below
  first, *others = kept
  first.realize(*others)


# ---------------------------------------------------------------- steps


def as_data(index: tuple) -> tuple:
  """An index with integers that are not small as arrays."""
  return tuple(np.asarray(i) if type(i) is int and not -SMALL <= i < SMALL else i for i in index)


def _replaced(parent: Tensor, index: tuple, new: Any) -> Tensor:
  out = parent.clone()
  out[as_data(index)] = new
  return out


# fmt: off
# name: (of a tensor, of a NumPy array, back: what the tensor is once the view is `new`)
STEPS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Tensor] | None]] = {
  "index":  (lambda t, i: t[as_data(i)],      lambda a, i: a[i],            _replaced),
  "order":  (lambda t, o: t.permute(*o),      lambda a, o: a.transpose(o),
             lambda parent, o, new: new.permute(*np.argsort(o).tolist())),
  "shape":  (lambda t, s: t.reshape(s),       lambda a, s: a.reshape(s),
             lambda parent, s, new: new.reshape(parent.shape)),
  "bits":   (lambda t, d: t.bitcast(mini_type(d)), lambda a, d: a.view(d),
             lambda parent, d, new: new.bitcast(parent.dtype)),
  "real":   (lambda t, _: t.real,             lambda a, _: a.real,
             lambda parent, _, new: Tensor.complex(new, parent.imag)),
  "imag":   (lambda t, _: t.imag,             lambda a, _: a.imag,
             lambda parent, _, new: Tensor.complex(parent.real, new)),
  "repeat": (lambda t, s: t.expand(s),        np.broadcast_to,              None),
}
# fmt: on
