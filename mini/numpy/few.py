"""Few values that are there NumPy computes at once: a program's call takes longer than all that it would compute.

An array of few elements keeps them as NumPy's array, once they are known (memory.py). A function of such arrays is
NumPy's own, of those; so a loop over small arrays runs as under NumPy, and compiles nothing. Where something is traced
- in `jit`, `vmap`, gradients - under rules of the user's, and on devices that are not the host, all is lazy, as it is
with FEW=0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from mini.config import config, settings_here
from mini.engine.device import Device
from mini.ir.rules import users_here
from mini.tensor.trace import local

PLAIN = {int, float, bool, complex, str, slice, NoneType, EllipsisType, type(np._NoValue)}

OURS = -1


def has_values() -> bool:
  """May a value be asked for? Not where a function is captured by `jit`, or runs for many samples (`vmap`)."""
  return local.current is None and local.samples is None


class _Last:
  """The settings that were asked last, and how many values are few under them."""

  known: tuple[Any, int] = (None, 0)


def limit() -> int:
  """As many values are kept as NumPy's array, here and now; -1 where none are."""
  if local.current is not None or local.samples is not None or users_here():
    return -1
  settings, found = _Last.known
  here = settings_here()
  if settings is not here:
    found = (
      config.FEW
      if Device[Device.DEFAULT].is_host and config.FEW and not config.watched and not config.EDIT
      else -1
    )
    _Last.known = here, found
  return found


class _Quiet(threading.local):
  """What NumPy is called in so that it warns of nothing: to enter it takes less than `numpy.errstate` does."""

  context: Context | None = None


_quiet = _Quiet()


def quietly(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
  """f of these, without warnings of infinities and NaNs."""
  context, _quiet.context = _quiet.context, None  # nobody enters it twice: a finalizer may call this, too
  if context is None:
    context = Context()
    context.run(np.seterr, all="ignore")
  try:
    return context.run(f, *args, **kwargs)
  finally:
    _quiet.context = context


def at_hand(*given: Any, most: int | None = None) -> list[Any] | None:
  """What is given, with NumPy's arrays in the place of ours: where there are some, their values are there, and few, or
  at most so many."""
  most = limit() if most is None else most
  if most < 0:
    return None
  sizes: list[int] = []
  found: list[Any] = []
  try:
    for x in given:
      if type(x) not in PLAIN:
        x = _theirs(x, sizes)
      found.append(x)
  except LookupError:
    return None
  return found if OURS in sizes and sum(sizes) <= most else None


def _theirs(x: Any, sizes: list[int]) -> Any:
  """sizes: of what was met, with a mark for each array of ours. LookupError: it is not at hand."""
  if hasattr(x, "_memory"):
    x = x._values()
    if x is None:
      raise LookupError
    sizes += (OURS, x.size)
  elif isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc":
    sizes.append(x.size)
  elif type(x) in (list, tuple):
    return type(x)([y if type(y) in PLAIN else _theirs(y, sizes) for y in x])
  elif type(x) not in PLAIN and not isinstance(x, (np.dtype, type)):
    raise LookupError
  return x


def fit_together(values: list[Any]) -> bool:
  """Do they broadcast, to few? Those that do not NumPy refuses."""
  most = limit()
  room = 1
  for x in values:
    if type(x) not in PLAIN:
      room *= most + 1 if type(x) in (list, tuple) else x.size
  if room <= most:
    return True
  try:
    return len(values) == 1 or np.broadcast(*values).size <= most
  except ValueError:
    return False


def shares(found: Any, few: Any) -> bool:
  """Is it, or does it hold, a view of one of these?"""
  if isinstance(found, np.generic):
    return False
  if isinstance(found, (list, tuple)):
    return any(shares(x, few) for x in found)
  if isinstance(few, (list, tuple)):
    for x in few:
      if type(x) not in PLAIN and shares(found, x):
        return True
    return False
  if isinstance(found, np.ndarray) and found.base is None:
    return found is few  # it has memory of its own
  both = isinstance(found, np.ndarray) and isinstance(few, np.ndarray)
  return both and (not found.size or np.may_share_memory(found, few))
