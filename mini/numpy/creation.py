"""Functions that make arrays: constants, ranges, grids, from values and from other libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.numpy.array import Lazy, array_of, asarray, held, ndarray, operand, stand_in_shape
from mini.numpy.few import limit
from mini.numpy.function import FUNCTIONS, AtOnce, publish, tensor
from mini.numpy.types import common_type, mini_type, numpy_type
from mini.tensor import Tensor
from mini.tensor.dlpack import taken_over

_of = asarray  # without what `publish` puts around it


def array(object: Any, dtype: Any = None, *, copy: Any = True, ndmin: int = 0, **how: Any) -> ndarray:
  out = _of(object, dtype, copy=copy)
  return out if out.ndim >= ndmin else out.reshape((1,) * (ndmin - out.ndim) + out.shape)


def copy(a: Any) -> ndarray:
  return array_of(tensor(a))


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> ndarray:
  """`numpy.from_dlpack`: of what is on the CPU the memory itself, unless copy."""
  out = array_of(Tensor(np.array(np.from_dlpack(x))) if copy else taken_over(np.from_dlpack(x)))
  return out if device is None else out.to_device(device)


# ---------------------------------------------------------------- constants


def _filled(shape: Any, value: Any, dtype: Any, device: Any = None) -> ndarray:
  room, dtype = stand_in_shape(shape), numpy_type(dtype)
  if device is None and math.prod(room) <= limit() and not isinstance(value, Lazy):
    return array_of(np.full(room, value, dtype))
  value = value if isinstance(value, Lazy) or np.ndim(value) else np.asarray(value, dtype)[()].item()
  t = operand(value, np.dtype(dtype)).expand(room)
  return array_of(t if device is None else t.to(device))


def _constant(value: int) -> tuple[Callable[..., ndarray], Callable[..., ndarray]]:
  """`zeros` and `zeros_like`."""

  def of_shape(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> ndarray:
    return _filled(shape, value, float if dtype is None else dtype, device)

  def like(
    a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
  ) -> ndarray:
    return full_like(a, value, dtype, shape=shape, device=device)

  return of_shape, like


zeros, zeros_like = _constant(0)
ones, ones_like = _constant(1)
empty, empty_like = _constant(0)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> ndarray:
  return _filled(shape, fill_value, asarray(fill_value).dtype if dtype is None else dtype, device)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, device: Any = None) -> ndarray:
  a = a if isinstance(a, Lazy) else asarray(a)
  return _filled(a.shape if shape is None else shape, fill_value, a.dtype if dtype is None else dtype, device)


def eye(N: int, M: Any = None, k: int = 0, dtype: Any = float, *, device: Any = None) -> ndarray:
  rows, columns = stand_in_shape((N, N if M is None else M))
  if device is None and rows * columns <= limit():
    return array_of(held(np.eye(rows, columns, k, numpy_type(dtype))))
  on = Tensor.arange(rows).reshape(-1, 1) + k == Tensor.arange(columns)
  return asarray(array_of(on), float if dtype is None else dtype, device=device)


def identity(n: int, dtype: Any = None) -> ndarray:
  return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> ndarray:
  return asarray(array_of(Tensor.arange(N).reshape(-1, 1) + k >= Tensor.arange(N if M is None else M)), dtype)


# ---------------------------------------------------------------- ranges and grids


def arange(
  start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> ndarray:
  start, stop, step = (x.item() if isinstance(x, (Lazy, np.generic)) else x for x in (start, stop, step))
  start, stop = (0, start) if stop is None else (start or 0, stop)
  step = 1 if step is None else step
  kind = common_type(*map(np.asarray, (start, stop, step))) if dtype is None else np.dtype(dtype)
  n = max(0, math.ceil((stop - start) / step))
  if (kind.kind == "b" and n > 2) or (device is None and n <= limit()):
    raise AtOnce
  held = kind if kind.kind in "iufc" else np.dtype(np.int64)
  line = operand(array_of(Tensor.arange(n)), held)
  first, second = (np.asarray(x, held).item() for x in (start, start + step))
  return asarray(array_of(line * (second - first) + first), kind, device=device)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
             axis: int = 0, device: Any = None) -> Any:  # fmt: skip
  num = int(num)
  if num < 0:
    raise ValueError(f"Number of samples, {num}, must be non-negative.")
  if device is None and num <= limit():
    raise AtOnce
  kind = common_type(start, stop, float(num))
  a, b = (tensor(x).cast(mini_type(kind)) for x in (start, stop))
  parts = num - 1 if endpoint else num
  step = (b - a) / parts if parts > 0 else (b - a) * math.nan
  line = Tensor.arange(num, dtype=mini_type(kind.type(0).real.dtype)).reshape(-1, *(1,) * max(a.ndim, b.ndim))
  out = (line * step if parts > 0 else line * (b - a)) + a
  if endpoint and num > 1:
    out = (line == num - 1).where(b, out)
  whole = dtype is not None and np.dtype(dtype).kind in "iu"
  result = asarray(array_of((out.floor() if whole else out).movedim(0, axis)), dtype, device=device)
  return (result, array_of(step)[()]) if retstep else result


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[ndarray, ...]:
  if indexing not in ("xy", "ij"):
    raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
  vectors = [tensor(x).reshape(-1) for x in xi]
  n = len(vectors)
  order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else [*range(n)]
  sizes = tuple(vectors[i].numel() for i in order)
  thin = [v.reshape(*(v.numel() if i == j else 1 for j in order)) for i, v in enumerate(vectors)]
  return tuple(array_of(v if sparse else v.expand(sizes)) for v in thin)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
  lines = [FUNCTIONS["arange"](n, dtype=dtype) for n in dimensions]
  grids = meshgrid(*lines, sparse=sparse, indexing="ij")
  return grids if sparse else FUNCTIONS["stack"](grids)


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
  return function(*indices(shape, dtype), **kwargs)


class Grid:
  """`mgrid` and `ogrid`: a range for each slice."""

  def __init__(self, sparse: bool):
    self.sparse = sparse

  def __getitem__(self, key: Any) -> Any:
    lines = [self.line(s) for s in (key if isinstance(key, tuple) else (key,))]
    if not isinstance(key, tuple):
      return lines[0]
    common = common_type(*lines)
    grids = meshgrid(*(asarray(x, common) for x in lines), sparse=self.sparse, indexing="ij")
    return grids if self.sparse else FUNCTIONS["stack"](grids)

  def line(self, s: slice) -> ndarray:
    start = 0 if s.start is None else s.start
    if isinstance(s.step, complex):
      return linspace(start, s.stop, int(abs(s.step)))
    return arange(start, s.stop, 1 if s.step is None else s.step)


class Joined:
  """`r_` and `c_`: arrays, numbers and ranges side by side."""

  def __init__(self, columns: bool):
    self.columns = columns

  def __getitem__(self, key: Any) -> Any:
    parts = [
      Grid(True).line(k) if isinstance(k, slice) else k for k in (key if isinstance(key, tuple) else (key,))
    ]
    join = FUNCTIONS["column_stack" if self.columns else "hstack"]
    return join([FUNCTIONS["atleast_1d"](p) for p in parts])


mgrid, ogrid = Grid(False), Grid(True)
r_, c_ = Joined(False), Joined(True)
publish(globals(), asarray=asarray, asanyarray=asarray, ascontiguousarray=asarray, asfortranarray=asarray)
