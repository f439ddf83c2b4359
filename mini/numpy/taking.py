"""Functions that take elements by their places, put others there, and leave some out; and `astype`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from mini import Tensor
from mini.numpy.array import Lazy, array_of, asarray, converted, made, ndarray, operand, stored
from mini.numpy.few import at_hand, quietly
from mini.numpy.function import FUNCTIONS, publish
from mini.numpy.host import at_once, ours
from mini.numpy.manipulation import along, concatenate, ravel
from mini.numpy.types import numpy_type, stand_in, theirs


def take(a: Any, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Any:
  a = ravel(a) if axis is None or not np.ndim(stand_in(a)) else asarray(a)
  axis = 0 if axis is None else normalize_axis_index(axis, a.ndim)
  i: Any = asarray(indices) if isinstance(indices, (Lazy, Tensor)) else np.asarray(indices)
  i = i.astype(np.intp) if i.size == 0 else i
  n = a.shape[axis]
  i = i % n if mode == "wrap" else i.clip(0, n - 1) if mode == "clip" else i
  out = a[along(axis, i)]
  return out if isinstance(out, Lazy) and not isinstance(out, ndarray) else made(out._tensor)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> ndarray:
  a, i = asarray(arr), asarray(indices)
  if i.dtype.kind not in "iu":
    raise IndexError("`indices` must be an integer array")
  if axis is not None and a.ndim != i.ndim:
    raise ValueError("`indices` and `arr` must have the same number of dimensions")
  return array_of(a._tensor.take_along_dim(i._tensor, axis))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
  i = np.broadcast_to(np.asarray(indices), np.shape(stand_in(indices)))
  if axis is None:
    arr.reshape(-1)[i] = values
    return
  axis = normalize_axis_index(axis, arr.ndim)
  grid = np.ogrid[tuple(slice(n) for n in arr.shape)]
  arr[tuple(i if n == axis else g for n, g in enumerate(grid))] = values


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
  i = np.asarray(ind).ravel()
  i = i % a.size if mode == "wrap" else i.clip(0, a.size - 1) if mode == "clip" else i
  values = np.resize(np.asarray(v), i.shape) if i.size else np.asarray(v)[:0]
  a.flat[i] = values


def putmask(a: Any, mask: Any, values: Any) -> None:
  places = np.flatnonzero(np.asarray(mask))
  a.flat[places] = np.resize(np.asarray(values), a.size)[places]


def place(arr: Any, mask: Any, vals: Any) -> None:
  put(arr, np.flatnonzero(np.asarray(mask)), vals)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
  src = src if isinstance(src, Lazy) else asarray(src)
  if not theirs.can_cast(src.dtype, dst.dtype, casting):
    raise TypeError(
      f"Cannot cast array data from {src.dtype!r} to {dst.dtype!r} according to the rule '{casting}'"
    )
  value = operand(src, dst.dtype).expand(dst.shape)
  stored(dst, value if where is True else operand(where).expand(dst.shape).where(value, operand(dst)))


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
  if a.ndim != 2 or wrap:
    raise ValueError(
      "array must be at least 2-d" if a.ndim < 2 else "fill_diagonal: of a matrix, without wrap"
    )
  n = np.arange(min(a.shape))
  a[n, n] = val


def append(arr: Any, values: Any, axis: int | None = None) -> ndarray:
  if axis is None:
    return concatenate((ravel(arr), ravel(values)))
  return concatenate((arr, values), axis)


def _by_places(name: str) -> Callable[..., ndarray]:
  """What NumPy's function makes of the places of elements says which ones are taken."""

  def f(arr: Any, *args: Any, **kwargs: Any) -> ndarray:
    a = asarray(arr)
    at = at_once(getattr(np, name))(np.arange(a.size).reshape(a.shape), *args, **kwargs)
    return (
      array_of(a._tensor.reshape(-1)[at._host()])
      if at.size and a.size
      else FUNCTIONS["zeros"](at.shape, a.dtype)
    )

  return f


delete, resize = _by_places("delete"), _by_places("resize")


def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> ndarray:
  return asarray(x, dtype, copy=copy, device=device)


def cast(
  x: Any, dtype: Any, order: Any = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
  """`ndarray.astype`."""
  if not theirs.can_cast(x.dtype, np.dtype(dtype), casting):
    raise TypeError(
      f"Cannot cast array data from {x.dtype!r} to {np.dtype(dtype)!r} according to the rule '{casting}'"
    )
  if not copy and x.dtype == np.dtype(dtype):
    return x
  kind = numpy_type(dtype)
  if (few := at_hand(x)) and (few[0].dtype.kind != "c" or kind.kind in "cb"):
    return (
      ours(np.asarray(quietly(few[0].astype, kind, "C")))
      if isinstance(x, ndarray)
      else ours(quietly(few[0].astype, kind))
    )
  t = converted(x._tensor, dtype)
  return array_of(t) if isinstance(x, ndarray) else made(t)


publish(globals())
