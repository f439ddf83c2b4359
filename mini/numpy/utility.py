"""What asks about arrays, their types and their memory, and `evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mini.numpy.array import Lazy, asarray, generic, made
from mini.numpy.function import FUNCTIONS, publish
from mini.numpy.memory import STEPS, Memory, compute
from mini.numpy.types import stand_in
from mini.numpy.ufunc import UFUNCS


def evaluate(*arrays: Any) -> Any:
  """Compute arrays together, now: what they share is computed once. The arrays themselves are returned.

  >>> from mini import numpy as np
  >>> x = np.arange(3.0)
  >>> evaluate(x + 1, x * 2)
  (array([1., 2., 3.]), array([0., 2., 4.]))
  """
  found = [a for a in arrays if isinstance(a, Lazy) and a._values() is None]
  if found:
    compute(*(a._tensor for a in found))
  for a in found:
    if a._steps and type(a) is generic:
      a._memory, a._steps = Memory(a._tensor), ()
  return arrays[0] if len(arrays) == 1 else arrays


# What NumPy says of stand-ins.
ABOUT = "common_type result_type can_cast shape ndim size iterable isrealobj iscomplexobj"


def _about(f: Callable[..., Any]) -> Callable[..., Any]:
  return lambda *args, **kwargs: f(*map(stand_in, args), **kwargs)


def isscalar(element: Any) -> bool:
  return isinstance(element, generic) or np.isscalar(element)


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
  """`numpy.shares_memory`: do views overlap?"""
  a, b = asarray(a), asarray(b)
  if a._memory is not b._memory:
    return False
  places = np.arange(a._memory.tensor.numel()).reshape(a._memory.tensor.shape)
  return bool(np.intersect1d(_places(a, places), _places(b, places)).size)


def _places(a: Any, places: Any) -> Any:
  for name, what in a._steps:
    places = places if name == "bits" else STEPS[name][1](places, what)
  return places


def ndenumerate(arr: Any) -> Any:
  return ((index, arr[index]) for index in np.ndindex(arr.shape))


# ---------------------------------------------------------------- parts of complex numbers


def _part(name: str) -> property:
  """`real` or `imag`: a view of complex arrays."""

  def get(val: Any) -> Any:
    a = val if isinstance(val, Lazy) else asarray(val)
    if a.dtype.kind == "c":
      return made(getattr(a._tensor, name)) if isinstance(a, generic) else a._view(name, None)
    return a if name == "real" else made(a._tensor.zeros_like())

  def put(a: Any, value: Any) -> None:
    get(a)[...] = value

  return property(get, put)


def angle(z: Any, deg: bool = False) -> Any:
  z = asarray(z)
  turn = made(z._tensor.angle()) if z.dtype.kind == "c" else UFUNCS["arctan2"](0, z)
  return turn * 180 / np.pi if deg else turn


REAL, IMAG = _part("real"), _part("imag")
real, imag = REAL.fget, IMAG.fget
publish(globals(), may_share_memory=shares_memory)
FUNCTIONS.update({name: _about(getattr(np, name)) for name in ABOUT.split()})
