"""How functions become NumPy's: a table by name, errors that are NumPy's own, `out=`, and the methods of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mini.numpy.array import Lazy, asarray
from mini.numpy.types import asked_again
from mini.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
FUNCTIONS: dict[str, Callable[..., Any]] = {}  # of the main namespace
LINALG: dict[str, Callable[..., Any]] = {}
FFT: dict[str, Callable[..., Any]] = {}


def public(*others: str, into: dict[str, Callable[..., Any]] = FUNCTIONS, room: Any = np) -> Callable[[F], F]:
  """A function of the namespace, under its name (without an underscore at the end) and others."""

  def register(f: F) -> F:
    name = f.__name__.rstrip("_")
    theirs = getattr(room, name)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
      out = kwargs.pop("out", None)
      try:
        result = f(*args, **kwargs)
        if out is None:
          return result
        if not np.can_cast(result.dtype, out.dtype, "same_kind"):
          raise TypeError(f"{name}: the result is {result.dtype}, and out= is {out.dtype}")
        return out._store(tensor(result))
      except Exception as e:  # noqa: BLE001  which one it is NumPy says
        asked_again(theirs, args, kwargs if out is None else {**kwargs, "out": out}, e)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f.__doc__ or f"`{room.__name__}.{name}`."
    for n in (name, *others):
      into[n] = call
    return call  # type: ignore[return-value]

  return register


def tensor(x: Any) -> Tensor:
  """Any operand as a tensor of its own type."""
  return x if isinstance(x, Tensor) else x._tensor if isinstance(x, Lazy) else asarray(x)._tensor
