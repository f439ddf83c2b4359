"""Thread-local state of the front end: who traces, whether gradients are recorded,
and of how many samples a function is.

While `jit` traces a function it sets `local.current`; every handle then reports what happens to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, NoReturn, Protocol
from weakref import ref

from mini.changes import During

if TYPE_CHECKING:
  from mini.tensor.batching import Samples
  from mini.tensor.handle import Handle
  from mini.tensor.random import Generator
  from mini.types import DType


class Tracer(Protocol):
  """What a tracer is told."""

  goes_on: bool  # may what was made in it still be read?

  def read(self, handle: Handle) -> None:
    """The handle's node becomes part of a graph."""

  def rebind(self, handle: Handle) -> None:
    """The handle is about to get another node; it still has the old one."""

  def has_changed(self, handles: Iterable[Handle]) -> bool:
    """Has the traced function given one of them another value?"""

  def realize(self, handles: list[Handle]) -> None:
    """`realize()` was called; nothing is computed while tracing."""

  def gradient(self, handle: Handle, looks: bool) -> None:
    """The handle's `.grad` is looked at, or about to be set."""

  def differentiates(self) -> None:
    """A gradient is taken with respect to tensors that there were before."""

  def relies(self, on: Callable[[], Hashable]) -> None:
    """What is traced depends on this Python value: a learning rate's tensor, a number that may be set."""

  def value(self, handle: Handle, what: str) -> NoReturn:
    """`what` (`item()`, `numpy()`, ...) asked for a value, which a trace has not: raises."""

  def escaped(self, handle: Handle) -> None:
    """The handle was made in this trace, which is over: raises if its value depends on what was traced."""


class _Local(threading.local):
  current: Tracer | None = None
  gradients: bool = True  # False inside no_grad()
  once: bool = False  # are gradients made of which no gradient will be taken?
  again: bool = False  # is what is made computed again for its gradient (checkpoint)?
  generator: Generator | None = None  # the one that was given as generator=
  low: DType | None = None  # the type of products inside autocast()
  samples: Samples | None = None  # those of which a function runs for one (vmap)
  # what was updated in place and is not computed yet, by id (realize_group.py)
  states: dict[int, ref[Handle]] | None = None


local = _Local()


def outside() -> During:
  """What is done at once, even while a function is traced."""
  return During(local, "current", None)
