"""Functions that move elements: other shapes and orders, joining, splitting, repeating, padding, taking and putting.

What NumPy gives as a view is one here, too: it reads and writes the memory of what it is a view of.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from mini.numpy.array import Lazy, array_of, asarray, held, ndarray, stand_in
from mini.numpy.few import limit
from mini.numpy.function import FUNCTIONS, AtOnce, publish, tensor
from mini.numpy.types import common_type, mini_type
from mini.tensor import Tensor


def _arrays(xs: Any) -> list[Any]:
  return [x if isinstance(x, Lazy) else asarray(x) for x in xs]


def _typed(xs: list[Any], dtype: Any = None) -> list[Tensor]:
  """Arrays in their common type."""
  common = mini_type(common_type(*xs) if dtype is None else dtype)
  return [x._tensor.cast(common) for x in xs]


def along(axis: int, index: Any) -> tuple[Any, ...]:
  """An index of one axis."""
  return (*(slice(None),) * axis, index)


# ---------------------------------------------------------------- shapes: views


def reshape(a: Any, /, shape: Any, *sizes: Any, order: str = "C", copy: bool | None = None) -> ndarray:
  a = asarray(a)
  wanted = (shape, *sizes) if sizes else shape
  wanted = tuple(map(int, wanted)) if isinstance(wanted, (tuple, list)) else (int(wanted),)
  if order == "F":
    inner = reshape(transpose(a), wanted[::-1], copy=copy)
    return transpose(inner)
  found = stand_in(a).reshape(wanted)
  s = found.shape
  values = a._values()
  if values is not None and values.size <= limit():
    if not copy and (not found.size or np.may_share_memory(found, values)):
      return a._view("shape", s)
    if copy is not False:
      return array_of(held(found))
  if copy:
    return array_of(a._tensor.reshape(s))
  try:
    a._strided().reshape(s, copy=False)
  except ValueError:
    if copy is False:
      raise
    return array_of(a._tensor.reshape(s))
  return a._view("shape", s)


def ravel(a: Any, order: str = "C") -> ndarray:
  return reshape(a, (-1,), order="F" if order == "F" else "C")


def flatten(a: Any, order: str = "C") -> ndarray:
  """A copy, as a vector."""
  return array_of(ravel(a, order)._tensor)


def transpose(a: Any, axes: Any = None, *more: Any) -> ndarray:
  a = asarray(a)
  return _ordered(np.transpose, a, (axes, *more) if more else axes)


def _ordered(f: Any, a: ndarray, *args: Any) -> ndarray:
  """A view with its axes in the order that NumPy's function gives those of an array whose sizes tell which is which."""
  sizes = f(np.broadcast_to(False, range(2, a.ndim + 2)), *args).shape
  return a._view("order", tuple(n - 2 for n in sizes))


def matrix_transpose(x: Any) -> ndarray:
  return _ordered(np.matrix_transpose, asarray(x))


def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
  return _ordered(np.swapaxes, asarray(a), axis1, axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
  return _ordered(np.moveaxis, asarray(a), source, destination)


def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
  return _ordered(np.rollaxis, asarray(a), axis, start)


def squeeze(a: Any, axis: Any = None) -> ndarray:
  a = asarray(a)
  return a._view("shape", np.squeeze(stand_in(a), axis).shape)


def expand_dims(a: Any, axis: Any) -> ndarray:
  a = asarray(a)
  return a._view("shape", np.expand_dims(stand_in(a), axis).shape)


def broadcast_to(array: Any, shape: Any) -> ndarray:
  a = asarray(array)
  return a._view("repeat", np.broadcast_to(stand_in(a), shape).shape)


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[ndarray, ...]:
  arrays = _arrays(args)
  shape = np.broadcast_shapes(*(a.shape for a in arrays))
  return tuple(broadcast_to(a, shape) for a in arrays)


def _at_least(n: int) -> Any:
  f = getattr(np, f"atleast_{n}d")

  def view(*arys: Any) -> Any:
    found = tuple(a if a.ndim >= n else a._view("shape", f(stand_in(a)).shape) for a in map(asarray, arys))
    return found if len(found) != 1 else found[0]

  return view


atleast_1d, atleast_2d, atleast_3d = map(_at_least, (1, 2, 3))


def flip(m: Any, axis: Any = None) -> ndarray:
  a = asarray(m)
  axes = range(a.ndim) if axis is None else normalize_axis_tuple(axis, a.ndim)
  return a[tuple(slice(None, None, -1) if n in axes else slice(None) for n in range(a.ndim))]


def fliplr(m: Any) -> ndarray:
  if np.ndim(stand_in(m)) < 2:
    raise ValueError("Input must be >= 2-d.")
  return flip(m, 1)


def flipud(m: Any) -> ndarray:
  if not np.ndim(stand_in(m)):
    raise ValueError("Input must be >= 1-d.")
  return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> ndarray:
  a = asarray(m)
  np.rot90(stand_in(a), k, axes)
  i, j = (n % a.ndim for n in axes)
  k %= 4
  turned = flip(a, j) if k == 1 else flip(a, (i, j)) if k == 2 else a
  turned = a[:] if k == 0 else turned
  return flip(swapaxes(a, i, j), j) if k == 3 else swapaxes(turned, i, j) if k == 1 else turned


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
  a = asarray(a)
  np.diagonal(stand_in(a), offset, axis1, axis2)
  return array_of(a._tensor.diagonal(offset, axis1, axis2))


# ---------------------------------------------------------------- joining, splitting, repeating


def concatenate(arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
  parts = _arrays(arrays)
  np.concatenate([*map(stand_in_thin, parts)], axis)
  if axis is None:
    parts, axis = [ravel(p) for p in parts], 0
  tensors = _typed(parts, dtype)
  return array_of(tensors[0].cat(*tensors[1:], dim=axis))


def stand_in_thin(a: Any) -> np.ndarray:
  """For NumPy to check shapes: joining booleans costs it little."""
  return np.broadcast_to(np.zeros((), bool), a.shape) if a.size < 1 << 16 else np.empty(a.shape, bool)


def stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> ndarray:
  parts = _arrays(arrays)
  if not parts:
    raise ValueError("need at least one array to stack")
  if len({p.shape for p in parts}) > 1:
    raise ValueError("all input arrays must have the same shape")
  axis = normalize_axis_index(axis, parts[0].ndim + 1)
  first, *rest = _typed(parts, dtype)
  return array_of(first.stack(*rest, dim=axis))


def hstack(tup: Any, *, dtype: Any = None) -> ndarray:
  parts = [atleast_1d(a) for a in tup]
  return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype)


def vstack(tup: Any, *, dtype: Any = None) -> ndarray:
  return concatenate([atleast_2d(a) for a in tup], 0, dtype=dtype)


def dstack(tup: Any) -> ndarray:
  return concatenate([atleast_3d(a) for a in tup], 2)


def column_stack(tup: Any) -> ndarray:
  return concatenate([transpose(atleast_2d(a)) if asarray(a).ndim < 2 else a for a in tup], 1)


def block(arrays: Any) -> ndarray:
  def joined(x: Any, depth: int, deepest: int) -> ndarray:
    if not isinstance(x, list):
      a = asarray(x)
      return a if a.ndim >= deepest else a.reshape((1,) * (deepest - a.ndim) + a.shape)
    return concatenate([joined(y, depth + 1, deepest) for y in x], depth - deepest)

  def levels(x: Any) -> int:
    return 1 + max(map(levels, x)) if isinstance(x, list) else 0

  def widest(x: Any) -> int:
    return max(map(widest, x)) if isinstance(x, list) else asarray(x).ndim

  n = max(levels(arrays), widest(arrays))
  offset = n - levels(arrays)
  return joined(arrays, offset, n)


def unstack(x: Any, *, axis: int = 0) -> tuple[Any, ...]:
  a = asarray(x)
  if not a.ndim:
    raise ValueError("Input array must be at least 1-d.")
  moved = moveaxis(a, axis, 0)
  return tuple(moved[n] for n in range(moved.shape[0]))


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
  a = asarray(ary)
  axis = normalize_axis_index(axis, a.ndim)
  n = a.shape[axis]
  if np.ndim(indices_or_sections) == 0:
    sections = int(indices_or_sections)
    if sections <= 0:
      raise ValueError("number sections must be larger than 0.")
    ends = np.cumsum([n // sections + (i < n % sections) for i in range(sections)]).tolist()[:-1]
  else:
    ends = [int(i) for i in indices_or_sections]
  return [a[along(axis, slice(i, j))] for i, j in zip([0, *ends], [*ends, n])]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
  if np.ndim(indices_or_sections) == 0 and asarray(ary).shape[axis] % indices_or_sections:
    raise ValueError("array split does not result in an equal division")
  return array_split(ary, indices_or_sections, axis)


def _splitting(name: str, axis: int) -> Any:
  def f(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    a = asarray(ary)
    if a.ndim <= axis and (name != "hsplit" or not a.ndim):
      raise ValueError(f"{name}: of {a.ndim} axes")
    return split(a, indices_or_sections, min(axis, a.ndim - 1))

  return f


vsplit, hsplit, dsplit = _splitting("vsplit", 0), _splitting("hsplit", 1), _splitting("dsplit", 2)


def tile(A: Any, reps: Any) -> ndarray:
  reps = tuple(reps) if np.ndim(reps) else (reps,)
  if not all(reps):
    return FUNCTIONS["zeros"](np.tile(stand_in_thin(asarray(A)), reps).shape, asarray(A).dtype)
  return array_of(tensor(A).tile(*map(int, reps)))


def repeat(a: Any, repeats: Any, axis: int | None = None) -> ndarray:
  a = ravel(a) if axis is None or not np.ndim(stand_in(a)) else asarray(a)
  axis = 0 if axis is None else normalize_axis_index(axis, a.ndim)
  if np.ndim(stand_in(repeats)) == 0 and not isinstance(repeats, Lazy):
    return array_of(a._tensor.repeat_interleave(operator.index(repeats), axis))
  times = np.broadcast_to(np.asarray(repeats), a.shape[axis : axis + 1])
  return a[along(axis, np.repeat(np.arange(a.shape[axis]), times))]


def roll(a: Any, shift: Any, axis: Any = None) -> ndarray:
  t = tensor(a)
  if axis is None:
    return array_of(t.roll(int(shift)))
  axes = normalize_axis_tuple(axis, t.ndim, allow_duplicate=True)
  for s, n in np.broadcast(shift, np.asarray(axes)):
    t = t.roll(int(s), int(n)) if t.shape[n] else t
  return array_of(t)


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> ndarray:
  a = asarray(array)
  if not a.ndim:
    raise AtOnce
  if isinstance(pad_width, dict):
    pad_width = [pad_width.get(n, pad_width.get(n - a.ndim, (0, 0))) for n in range(a.ndim)]
    pad_width = [(w, w) if np.ndim(w) == 0 else w for w in pad_width]
  widths = np.broadcast_to(np.asarray(pad_width), (a.ndim, 2)).tolist()
  if (
    mode in ("edge", "reflect", "symmetric", "wrap") and not kwargs and a.size
  ):  # where each element comes from
    return array_of(a._tensor.reshape(-1)[np.pad(np.arange(a.size).reshape(a.shape), widths, mode)])
  value = kwargs.get("constant_values", 0)
  if (
    mode != "constant" or np.ndim(value) or set(kwargs) - {"constant_values"} or np.min(widths, initial=0) < 0
  ):
    raise AtOnce
  value = np.asarray(value, a.dtype).item()
  return array_of(a._tensor.pad(tuple(map(tuple, widths)), value=value))


def tril(m: Any, k: int = 0) -> ndarray:
  t = tensor(m)
  return array_of((t if t.ndim > 1 else t.expand(t.shape[0], t.shape[0])).tril(k))


def triu(m: Any, k: int = 0) -> ndarray:
  t = tensor(m)
  return array_of((t if t.ndim > 1 else t.expand(t.shape[0], t.shape[0])).triu(k))


def diag(v: Any, k: int = 0) -> ndarray:
  if np.ndim(stand_in(v)) not in (1, 2):
    raise ValueError("Input must be 1- or 2-d.")
  return array_of(tensor(v).diag(k))


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> ndarray:
  """`numpy.lib.stride_tricks.sliding_window_view`, of elements of its own."""
  a = asarray(x)
  sizes = tuple(window_shape) if np.ndim(window_shape) else (window_shape,)
  axes = tuple(range(a.ndim)) if axis is None else normalize_axis_tuple(axis, a.ndim, allow_duplicate=True)
  np.lib.stride_tricks.sliding_window_view(stand_in(a), window_shape, axis)
  t = a._tensor
  for n, at in zip(sizes, axes):
    t = t.unfold(at, int(n), 1)
  return array_of(t)


publish(globals(), {}, np.lib.stride_tricks)
publish(globals(), concat=concatenate, permute_dims=transpose, row_stack=vstack)
