"""Functions that choose, search, sort and count, sets among them.

Results whose shape depends on values (`nonzero`, `unique`, a mask's elements) are computed at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from mini.numpy.array import array_of, asarray, made, ndarray, operand
from mini.numpy.function import AtOnce, publish, tensor
from mini.numpy.host import HOST
from mini.numpy.manipulation import ravel
from mini.numpy.statistics import all_
from mini.numpy.taking import take
from mini.numpy.types import common_type, mini_type, stand_in
from mini.numpy.ufunc import UFUNCS, axes_of
from mini.tensor import Tensor


def _operands(*xs: Any) -> list[Tensor]:
  """Operands in their common type; Python numbers count less."""
  xs = tuple(x if type(x) in (bool, int, float) else asarray(x) for x in xs)
  kind = common_type(*xs)
  return [operand(x, kind) for x in xs]


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
  if x is None and y is None:
    return HOST["nonzero"](condition)
  if x is None or y is None:
    raise ValueError("either both or neither of x and y should be given")
  a, b = _operands(x, y)
  mask = tensor(condition).bool()
  np.broadcast_shapes(mask.shape, a.shape, b.shape)
  return array_of(mask.where(a, b))


def clip(a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Any:
  bounds = (a_min if min is None else min, a_max if max is None else max)
  low, high = (x if x is None or type(x) in (bool, int, float) else asarray(x) for x in bounds)
  kind = common_type(asarray(a), *(x for x in (low, high) if x is not None))
  t = operand(asarray(a), kind)
  t = t if low is None else t.maximum(_bound(low, kind))
  return made(t if high is None else t.minimum(_bound(high, kind)))


def _bound(x: Any, kind: np.dtype) -> Tensor:
  if type(x) is int and kind.kind in "iu":
    info = np.iinfo(kind)
    x = min(max(x, int(info.min)), int(info.max))
  return operand(x, kind)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
  if len(condlist) != len(choicelist):
    raise ValueError("list of cases must be same length as list of conditions")
  choices = _operands(*choicelist, default)
  out = choices.pop()
  for c, x in zip(reversed(condlist), reversed(choices)):
    out = tensor(c).where(x, out)
  return array_of(out)


# ---------------------------------------------------------------- sorting and searching


def sort(a: Any, axis: int | None = -1, *, descending: bool = False) -> Any:
  a = ravel(a) if axis is None else asarray(a)
  axis = normalize_axis_index(-1 if axis is None else axis, a.ndim)
  return array_of(a._tensor.sort(axis, descending)[0])


def argsort(a: Any, axis: int | None = -1, *, descending: bool = False) -> Any:
  a = ravel(a) if axis is None or not np.ndim(stand_in(a)) else asarray(a)
  axis = normalize_axis_index(-1 if axis is None else axis, a.ndim)
  return array_of(a._tensor.argsort(axis, descending))


def partition(a: Any, axis: int | None = -1) -> Any:
  return sort(a, axis)


def argpartition(a: Any, axis: int | None = -1) -> Any:
  return argsort(a, axis)


def sort_in_place(self: ndarray, axis: int = -1, kind: Any = None, order: Any = None, **how: Any) -> None:
  """`ndarray.sort`."""
  self._store(sort(self, axis)._tensor)


def partition_in_place(self: ndarray, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
  """`ndarray.partition`: what is sorted is partitioned."""
  self._store(sort(self, axis)._tensor)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
  a = asarray(a)
  if a.ndim != 1:
    raise ValueError("object of too small depth for desired array")
  a = a if sorter is None else take(a, sorter)
  x, y = _operands(a, v)
  if side not in ("left", "right"):
    raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
  found = x.searchsorted(y.reshape(-1), right=side == "right")
  return made(found.reshape(y.shape))


def median(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
  a = asarray(a)
  if a.dtype.kind == "c" or not a.size:
    raise AtOnce
  a = a.astype(np.uint8) if a.dtype.kind == "b" else a
  return _of_order(a, np.asarray(0.5), axis, "median", keepdims)


def percentile(
  a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Any:
  return quantile(a, np.asarray(q) / 100.0, axis, method=method, keepdims=keepdims, weights=weights)


# How much of the step from an order statistic to the next one, of what part of it the quantile is away.
METHODS: dict[str, Callable[[Any], Any]] = {
  "linear": lambda part: part,
  "lower": lambda part: 0 * part,
  "higher": lambda part: (part > 0) * 1.0,
  "midpoint": lambda part: (part > 0) * 0.5,
}


def quantile(
  a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Any:
  a, q = asarray(a), np.asarray(q, np.float64)
  if weights is not None or method not in METHODS or not a.size or a.dtype.kind in "bc":
    raise AtOnce
  if not ((q >= 0) & (q <= 1)).all():
    raise ValueError("Quantiles must be in the range [0, 1]")
  return _of_order(a, q, axis, method, keepdims)


def _of_order(a: Any, q: np.ndarray, axis: Any, method: str, keepdims: bool) -> Any:
  """Quantiles, or the median, of what is not empty."""
  axes = axes_of(axis, a.ndim)
  kind = a.dtype if a.dtype.kind == "f" else np.dtype(np.float64)
  rest = [n for n in range(a.ndim) if n not in axes]
  rows = a._tensor.permute(*rest, *axes).reshape(*(a.shape[n] for n in rest), -1)
  at = q.reshape(-1) * (rows.shape[-1] - 1)
  low = np.floor(at).astype(np.int64)
  high = np.minimum(low + 1, rows.shape[-1] - 1)
  ordered = rows.sort(-1)[0]
  x, y = (ordered[..., i].cast(mini_type(kind)) for i in (low, high))
  if method == "median":
    mixed = Tensor(at == low).where(x, (x + y) / 2)
  else:
    t = Tensor(METHODS[method](at - low).astype(kind))
    mixed = (t < 0.5).where(x + (y - x) * t, y - (y - x) * (1 - t))
  if method in ("lower", "higher"):
    mixed = (t == 0).where(x, y)
  if a.dtype.kind == "f":
    mixed = rows.isnan().any(-1, True).where(math.nan, mixed)
  elif method in ("lower", "higher"):
    mixed = mixed.cast(a._tensor.dtype)
  left = tuple(1 if k in axes else n for k, n in enumerate(a.shape) if keepdims or k not in axes)
  return made(mixed.movedim(-1, 0).reshape(*q.shape, *left))


def isin(element: Any, test_elements: Any, invert: bool = False) -> Any:
  x, known = _operands(asarray(element), asarray(test_elements))
  known = known.reshape(-1).sort(0)[0] if known.numel() else known.reshape(-1)
  if not known.numel():
    return array_of(Tensor.full(x.shape, invert))
  at = known.searchsorted(x.reshape(-1)).clamp(0, known.numel() - 1)
  found = (known[at] == x.reshape(-1)).reshape(x.shape)
  return array_of(~found if invert else found)


# ---------------------------------------------------------------- comparing whole arrays


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
  a, b = asarray(a), asarray(b)
  kind = common_type(a, b, np.dtype(np.float32))
  x, y = operand(a, kind), operand(b, kind)
  near, far = (operand(v, y.abs().dtype.np) for v in (atol, rtol))
  close = (y.isfinite() & ((x - y).abs() <= near + far * y.abs())) | (x == y)
  return made(close | (x.isnan() & y.isnan()) if equal_nan else close)


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
  return bool(all_(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
  a, b = asarray(a1), asarray(a2)
  if a.shape != b.shape:
    return False
  same = UFUNCS["equal"](a, b)
  if equal_nan and a.dtype.kind == b.dtype.kind == "f":
    same = same | (UFUNCS["isnan"](a) & UFUNCS["isnan"](b))
  return bool(all_(same))


def array_equiv(a1: Any, a2: Any) -> bool:
  a, b = asarray(a1), asarray(a2)
  try:
    np.broadcast_shapes(a.shape, b.shape)
  except ValueError:
    return False
  return bool(all_(UFUNCS["equal"](a, b)))


# ---------------------------------------------------------------- element by element, of several ufuncs


def round_(a: Any, decimals: int = 0) -> Any:
  a = asarray(a)
  if a.dtype.kind == "c":
    return made(Tensor.complex(*(round_(part, decimals)._tensor for part in (a.real, a.imag))))
  if a.dtype.kind == "f" and decimals:
    scale = 10.0 ** abs(decimals)
    t = a._tensor
    return made((t * scale).round() / scale if decimals > 0 else (t / scale).round() * scale)
  if (a.dtype.kind in "iu" and decimals < 0) or (a.dtype.kind == "b" and decimals):
    raise AtOnce
  return made(a._tensor.cast(mini_type(np.float16)) if a.dtype.kind == "b" else a._tensor.round())


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
  x = asarray(x)
  out = x._tensor.nan_to_num(nan, posinf, neginf)
  return made(out) if copy else x._store(out)


def sinc(x: Any) -> Any:
  t = tensor(x)
  return made((t if t.dtype.kind == "f" else t.double()).sinc())


def fix(x: Any) -> Any:
  return UFUNCS["trunc"](x)


def _infinite(value: float) -> Callable[..., Any]:
  def f(x: Any) -> Any:
    t = tensor(x)
    if t.dtype.kind == "c":
      raise AtOnce
    return made(t == value)

  return f


isposinf, isneginf = _infinite(math.inf), _infinite(-math.inf)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
  if period is not None:
    raise AtOnce
  a, at, f = (tensor(v).double() for v in (x, xp, fp))
  if at.ndim != 1 or at.shape != f.shape or not at.numel():
    raise ValueError("fp and xp are not of the same length.")
  n = at.numel()
  flat = a.reshape(-1)
  i = (at.searchsorted(flat, right=True) - 1).clamp(0, max(n - 2, 0))
  j = (i + 1).clamp(0, n - 1)
  width = at[j] - at[i]
  out = f[i] + (flat - at[i]) * ((f[j] - f[i]) / (width == 0).where(1, width))
  out = (flat > at[n - 1]).where(
    f[n - 1] if right is None else right, (flat < at[0]).where(f[0] if left is None else left, out)
  )
  out = (flat == at[n - 1]).where(f[n - 1], out)
  return made(flat.isnan().where(math.nan, out).reshape(a.shape))


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
  """As sums of shifted products: of short arrays of weights."""
  a, v = asarray(a), asarray(v)
  if a.ndim > 1 or v.ndim > 1:
    raise ValueError("object too deep for desired array")
  x, w = _operands(a.reshape(-1), v.reshape(-1))
  if not x.numel() or not w.numel():
    raise ValueError("a cannot be empty" if not x.numel() else "v cannot be empty")
  x, w = (x, w) if x.numel() >= w.numel() else (w, x)
  n, m = x.numel(), w.numel()
  windows = x.pad((m - 1, m - 1)).unfold(0, m, 1)
  out = windows @ w.flip(0)
  extra = {"full": 0, "same": (m - 1) // 2, "valid": m - 1}[mode]
  length = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
  return array_of(out[extra : extra + length])


publish(globals(), around=round_)
