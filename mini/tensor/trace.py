"""Thread-local state of the front end: who traces, and whether gradients are recorded.

While `jit` traces a function it sets `local.current`; every handle then reports what happens to it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn, Protocol

if TYPE_CHECKING:
  from mini.tensor.handle import Handle


class Tracer(Protocol):
  """What a tracer is told."""

  def read(self, handle: Handle) -> None:
    """The handle's node becomes part of a graph."""

  def rebind(self, handle: Handle) -> None:
    """The handle is about to get another node; it still has the old one."""

  def realize(self, handles: list[Handle]) -> None:
    """`realize()` was called; nothing is computed while tracing."""

  def value(self, handle: Handle, what: str) -> NoReturn:
    """`what` (`item()`, `numpy()`, ...) asked for a value, which a trace has not: raises."""


class _Local(threading.local):
  current: Tracer | None = None
  gradients: bool = True  # False inside no_grad()


local = _Local()
