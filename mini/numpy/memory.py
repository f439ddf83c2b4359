"""The memory of an array, which its views share, the steps that lead from it to a view, and when it is computed."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.ir.uop import UOp
from mini.numpy.types import depth, mini_type
from mini.tensor import Tensor
from mini.tensor.trace import local

# Operations in a row that are put off; then they are computed, so that a loop stays a loop.
LONGEST = 128
# Integers beyond that are data, so that one program serves all rows of an array and all rounds of a loop.
SMALL = 8

Step = tuple[str, Any]


class Memory:
  """What an array and its views share: a tensor, and how often it was replaced."""

  __slots__ = ("__weakref__", "owner", "readonly", "tensor", "trace", "version")

  def __init__(self, tensor: Tensor, readonly: bool = False):
    self.version, self.readonly, self.trace = 0, readonly, local.current
    self.owner: Callable[[], Any] = lambda: None
    self.hold(tensor)

  def read(self) -> Tensor:
    """The tensor. What a jitted function reads that is no argument of it nobody may write anymore."""
    if local.current is not None and self.trace is not local.current:
      self.readonly = True
    return self.tensor

  def hold(self, tensor: Tensor) -> None:
    """Have another value, which is computed where too much has been put off."""
    self.tensor = tensor
    for node in nodes_of(tensor):
      if node.op != "buffer":
        if (
          "array" not in node.memo or node.memo["array"]() is None
        ):  # else an array's, of which this is a scalar
          node.memo["array"] = weakref.ref(self)
        if has_values() and depth(node) > LONGEST:
          compute(tensor)


def has_values() -> bool:
  """May a value be asked for? Not where a function is captured by `jit`, or runs for many samples (`vmap`)."""
  return local.current is None and local.samples is None


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
