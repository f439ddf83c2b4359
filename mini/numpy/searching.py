"""Functions that choose, search, sort and count, sets among them.

Results whose shape depends on values (`nonzero`, `unique`, a mask's elements) are computed at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from mini.numpy.array import array_of, asarray, made, ndarray, operand
from mini.numpy.function import public, tensor
from mini.numpy.manipulation import ravel
from mini.numpy.statistics import all_
from mini.numpy.taking import take
from mini.numpy.types import common_type, mini_type, stand_in, theirs
from mini.numpy.ufunc import UFUNCS, kind_of
from mini.tensor import Tensor


def _operands(*xs: Any) -> tuple[list[Tensor], np.dtype]:
  """Operands in their common type; Python numbers count less."""
  xs = tuple(x if type(x) in (bool, int, float) else asarray(x) for x in xs)
  kind = common_type(*xs)
  return [operand(x, kind) for x in xs], kind


@public()
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
  if x is None and y is None:
    return nonzero(condition)
  if x is None or y is None:
    raise ValueError("either both or neither of x and y should be given")
  (a, b), _ = _operands(x, y)
  mask = tensor(condition).bool()
  np.broadcast_shapes(mask.shape, a.shape, b.shape)
  return array_of(mask.where(a, b))


@public()
def clip(
  a: Any,
  a_min: Any = None,
  a_max: Any = None,
  out: Any = None,
  *,
  min: Any = None,
  max: Any = None,
  **how: Any,
) -> Any:
  low, high = a_min if min is None else min, a_max if max is None else max
  a = asarray(a)
  bounds = [None if x is None or type(x) in (bool, int, float) else asarray(x) for x in (low, high)]
  kind = common_type(a, *(x if b is None else b for x, b in zip((low, high), bounds) if x is not None))
  t = operand(a, kind)
  t = t if low is None else t.maximum(_bound(low, kind))
  return made(t if high is None else t.minimum(_bound(high, kind)))


def _bound(x: Any, kind: np.dtype) -> Tensor:
  if type(x) is int and kind.kind in "iu":
    info = np.iinfo(kind)
    x = min(max(x, int(info.min)), int(info.max))
  return operand(x, kind)


@public()
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
  if len(condlist) != len(choicelist):
    raise ValueError("list of cases must be same length as list of conditions")
  choices, _ = _operands(*choicelist, default)
  out = choices.pop()
  for c, x in zip(reversed(condlist), reversed(choices)):
    out = tensor(c).where(x, out)
  return array_of(out)


# ---------------------------------------------------------------- what is where, computed at once


@public()
def nonzero(a: Any) -> tuple[ndarray, ...]:
  return tuple(map(asarray, np.nonzero(np.asarray(asarray(a)._host()))))


@public()
def flatnonzero(a: Any) -> ndarray:
  return nonzero(ravel(a))[0]


@public()
def argwhere(a: Any) -> ndarray:
  return asarray(np.argwhere(asarray(a)._host()))


@public()
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
  places = np.flatnonzero(asarray(condition)._host())
  return take(a, places, axis)


@public()
def extract(condition: Any, arr: Any) -> Any:
  return take(arr, np.flatnonzero(asarray(condition)._host()))


# ---------------------------------------------------------------- sorting and searching


@public()
def sort(
  a: Any,
  axis: int | None = -1,
  kind: Any = None,
  order: Any = None,
  *,
  stable: Any = None,
  descending: bool = False,
) -> Any:
  a = ravel(a) if axis is None else asarray(a)
  axis = normalize_axis_index(-1 if axis is None else axis, a.ndim)
  return array_of(a._tensor.sort(axis, descending)[0])


@public()
def argsort(
  a: Any,
  axis: int | None = -1,
  kind: Any = None,
  order: Any = None,
  *,
  stable: Any = None,
  descending: bool = False,
) -> Any:
  a = ravel(a) if axis is None or not np.ndim(stand_in(a)) else asarray(a)
  axis = normalize_axis_index(-1 if axis is None else axis, a.ndim)
  return array_of(a._tensor.argsort(axis, descending))


@public()
def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = "introselect", order: Any = None) -> Any:
  return sort(a, axis)


@public()
def argpartition(
  a: Any, kth: Any, axis: int | None = -1, kind: Any = "introselect", order: Any = None
) -> Any:
  return argsort(a, axis)


def sort_in_place(self: ndarray, axis: int = -1, kind: Any = None, order: Any = None, **how: Any) -> None:
  """`ndarray.sort` and, since what is sorted is partitioned, `ndarray.partition`."""
  self._store(sort(self, axis)._tensor)


@public()
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
  a = asarray(a)
  if a.ndim != 1:
    raise ValueError("object of too small depth for desired array")
  a = a if sorter is None else take(a, sorter)
  (x, y), _ = _operands(a, v)
  if side not in ("left", "right"):
    raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
  return made(
    x.searchsorted(y, right=side == "right")
    if y.ndim
    else x.searchsorted(y.reshape(1), right=side == "right").reshape(())
  )


@public()
def median(
  a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
  return _quantile(a, 0.5, axis, keepdims, "linear")


@public()
def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False, *, weights: Any = None) -> Any:  # fmt: skip
  return _quantile(a, q, axis, keepdims, method, weights)


@public()
def percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False, *, weights: Any = None) -> Any:  # fmt: skip
  return _quantile(a, np.asarray(q) / 100.0, axis, keepdims, method, weights)


METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(a: Any, q: Any, axis: Any, keepdims: bool, method: str, weights: Any = None) -> Any:
  a, q = asarray(a), np.asarray(q, np.float64)
  if weights is not None or method not in METHODS or not a.size:
    return asarray(theirs.quantile(a._host(), q, axis, method=method, keepdims=keepdims, weights=weights))[
      ...
    ]
  if not ((q >= 0) & (q <= 1)).all():
    raise ValueError("Quantiles must be in the range [0, 1]")
  axes = tuple(range(a.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, a.ndim)
  kind = a.dtype if a.dtype.kind == "f" else np.dtype(np.float64)
  rest = [n for n in range(a.ndim) if n not in axes]
  rows = a._tensor.permute(*rest, *axes).reshape(*(a.shape[n] for n in rest), -1)
  n = rows.shape[-1]
  ordered = rows.sort(-1)[0]
  at = q.reshape(-1) * (n - 1)
  low, high = np.floor(at).astype(np.int64), np.ceil(at).astype(np.int64)
  part = at - low
  part = {"lower": 0 * part, "higher": (part > 0) * 1.0, "midpoint": (part > 0) * 0.5,
          "nearest": np.rint(at) - low}.get(method, part)  # fmt: skip
  x, y = (ordered[..., i].cast(mini_type(kind)) for i in (low, high))
  t = Tensor(part.astype(kind))
  mixed = (t < 0.5).where(x + (y - x) * t, y - (y - x) * (1 - t))
  mixed = (t == 0).where(x, (t == 1).where(y, mixed))
  if a.dtype.kind == "f":
    mixed = rows.isnan().any(-1, True).where(math.nan, mixed)
  if a.dtype.kind != "f" and method in ("lower", "higher", "nearest"):
    mixed = mixed.cast(a._tensor.dtype)
  out = mixed.movedim(-1, 0)
  left = (
    tuple(1 if k in axes else s for k, s in enumerate(a.shape))
    if keepdims
    else tuple(a.shape[k] for k in rest)
  )
  return made(out.reshape(*q.shape, *left))


@public()
def isin(
  element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
  (x, known), _ = _operands(asarray(element), asarray(test_elements))
  known = known.reshape(-1).sort(0)[0] if known.numel() else known.reshape(-1)
  if not known.numel():
    return array_of(Tensor.full(x.shape, invert))
  at = known.searchsorted(x.reshape(-1)).clamp(0, known.numel() - 1)
  found = (known[at] == x.reshape(-1)).reshape(x.shape)
  return array_of(~found if invert else found)


# ---------------------------------------------------------------- comparing whole arrays


@public()
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
  kind = np.result_type(
    *(kind_of(x) if type(x) in (int, float) else asarray(x).dtype for x in (a, b)), np.float32
  )
  x, y = (operand(v if type(v) in (int, float) else asarray(v), kind) for v in (a, b))
  near, far = (operand(v, y.abs().dtype.np) for v in (atol, rtol))
  close = (y.isfinite() & ((x - y).abs() <= near + far * y.abs())) | (x == y)
  return made(close | (x.isnan() & y.isnan()) if equal_nan else close)


@public()
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
  return bool(all_(isclose(a, b, rtol, atol, equal_nan)))


@public()
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
  a, b = asarray(a1), asarray(a2)
  if a.shape != b.shape:
    return False
  same = UFUNCS["equal"](a, b)
  if equal_nan and a.dtype.kind == b.dtype.kind == "f":
    same = same | (UFUNCS["isnan"](a) & UFUNCS["isnan"](b))
  return bool(all_(same))


@public()
def array_equiv(a1: Any, a2: Any) -> bool:
  a, b = asarray(a1), asarray(a2)
  try:
    np.broadcast_shapes(a.shape, b.shape)
  except ValueError:
    return False
  return bool(all_(UFUNCS["equal"](a, b)))


# ---------------------------------------------------------------- element by element, of several ufuncs


@public("around")
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
  a = asarray(a)
  if a.dtype.kind == "c":
    return made(Tensor.complex(*(round_(part, decimals)._tensor for part in (a.real, a.imag))))
  if a.dtype.kind == "f" and decimals:
    scale = 10.0 ** abs(decimals)
    t = a._tensor
    return made((t * scale).round() / scale if decimals > 0 else (t / scale).round() * scale)
  if a.dtype.kind in "iu" and decimals < 0:
    return asarray(np.round(a._host(), decimals))
  return made(a._tensor.cast(mini_type(np.float16)) if a.dtype.kind == "b" else a._tensor.round())


@public()
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
  x = asarray(x)
  out = x._tensor.nan_to_num(nan, posinf, neginf)
  return made(out) if copy else x._store(out)


@public()
def sinc(x: Any) -> Any:
  t = tensor(x)
  return made((t if t.dtype.kind == "f" else t.double()).sinc())


@public()
def fix(x: Any, out: Any = None) -> Any:
  return UFUNCS["trunc"](x)


@public()
def isposinf(x: Any, out: Any = None) -> Any:
  return made(tensor(x) == math.inf)


@public()
def isneginf(x: Any, out: Any = None) -> Any:
  return made(tensor(x) == -math.inf)


@public()
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
  if period is not None:
    return asarray(
      np.interp(asarray(x)._host(), asarray(xp)._host(), asarray(fp)._host(), left, right, period)
    )[...]
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


@public()
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
  """As sums of shifted products: of short arrays of weights."""
  (x, w), _ = _operands(asarray(a).reshape(-1), asarray(v).reshape(-1))
  if not x.numel() or not w.numel():
    raise ValueError("a cannot be empty" if not x.numel() else "v cannot be empty")
  x, w = (x, w) if x.numel() >= w.numel() else (w, x)
  n, m = x.numel(), w.numel()
  windows = x.pad((m - 1, m - 1)).unfold(0, m, 1)
  out = windows @ w.flip(0)
  extra = {"full": 0, "same": (m - 1) // 2, "valid": m - 1}[mode]
  length = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
  return array_of(out[extra : extra + length])
