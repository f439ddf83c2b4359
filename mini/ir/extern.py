"""Functions of the host's that a graph calls: NumPy code, a library. What a call is stands in graph.py (`call`).

A graph in text names them: `call %0 {function="sgemm"}`. The name resolves only to a function of this process that is
alive, so text that is read from a file runs nothing that this process did not bring along.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from mini.types import DType, MiniError, ShapeError

HOST = "INTERP"  # the device whose memory is arrays: there every call is
_known: dict[str, ref[Extern]] = {}  # while somebody holds them; an entry goes in one call into C (uop.py)
_lock = threading.Lock()
calling: ContextVar[str] = ContextVar("the function that a graph calls now", default="")


class Extern:
  """f(*arrays) -> array, and the name by which text knows it: no other function has it while this one is there."""

  __slots__ = ("__weakref__", "f", "name", "of_many")

  def __init__(self, name: str, f: Callable[..., Any]):
    self.f = f
    self.of_many: dict[Any, Extern] = {}  # what it is for many samples, by which inputs these share
    with _lock:
      self.name, n = name, 0
      while self.name in _known:
        n += 1
        self.name = f"{name}.{n}"
      _known[self.name] = ref(self, partial(_known.pop, self.name))

  def __repr__(self) -> str:
    return self.name

  def __call__(self, arrays: Sequence[np.ndarray], shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Its value for these arrays, which it cannot write. ShapeError if that is not what the graph says."""
    token = calling.set(self.name)
    try:
      out = np.asarray(self.f(*map(unwritable, arrays)))
    finally:
      calling.reset(token)
    if out.shape != shape or out.dtype != dtype.np:
      raise ShapeError(
        f"{self.name} returned {out.dtype}{list(out.shape)}, and was to return {dtype.np}{list(shape)}"
      )
    return out


def unwritable(x: np.ndarray) -> np.ndarray:
  x = x.view()
  x.flags.writeable = False
  return x


def extern(name: str) -> Extern | None:
  """The function of this name, if there is one."""
  known = _known.get(name)
  return None if known is None else known()


def refuse_within() -> NoReturn:
  """MiniError inside a function that a graph calls: what it computes would wait for what waits for it."""
  raise MiniError(
    f"{calling.get()} is called in the middle of a graph, and asks for the value of a tensor\n"
    "  it gets arrays: compute with NumPy, and hand tensors in as arguments"
  )
