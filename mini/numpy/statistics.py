"""Functions along axes: sums, extremes, averages, running forms, differences, and those that leave NaNs out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from mini.numpy.array import array_of, asarray, made, operand
from mini.numpy.function import FUNCTIONS, AtOnce, publish, tensor
from mini.numpy.types import floating, mini_type, stand_in
from mini.numpy.ufunc import UFUNCS, axes_of
from mini.tensor import Tensor

Axes = Any


def _reduction(name: str) -> Callable[..., Any]:
  def f(
    a: Any,
    axis: Axes = None,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
  ) -> Any:
    return UFUNCS[name].reduce(asarray(a), axis, dtype, None, bool(keepdims), initial, where)

  return f


def _truth(name: str) -> Callable[..., Any]:
  def f(a: Any, axis: Axes = None, keepdims: Any = False, where: Any = True) -> Any:
    return UFUNCS[name].reduce(array_of(tensor(a).bool()), axis, None, None, bool(keepdims), None, where)

  return f


sum_, prod, max_, min_ = map(_reduction, ("add", "multiply", "maximum", "minimum"))
all_, any_ = _truth("logical_and"), _truth("logical_or")


def mean(a: Any, axis: Axes = None, dtype: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
  t, axes, kind = _averaged(a, axis, dtype)
  return made(_mean(t, axes, bool(keepdims), where).cast(mini_type(kind)))


def _averaged(a: Any, axis: Axes, dtype: Any = None) -> tuple[Tensor, tuple[int, ...], np.dtype]:
  """The array in the type in which it is averaged, the axes, and the type of the result."""
  a = asarray(a)
  kind = floating(a.dtype) if dtype is None else np.dtype(dtype)
  held = np.dtype(np.float32) if kind == np.float16 else kind
  return a._tensor.cast(mini_type(held)), axes_of(axis, a.ndim), kind


def _mean(t: Tensor, axes: tuple[int, ...], keepdims: bool, where: Any) -> Tensor:
  total = UFUNCS["add"]._folded(t if where is True else operand(where).where(t, 0), axes, keepdims)
  return total / _count(t, axes, keepdims, where)


def _count(t: Tensor, axes: tuple[int, ...], keepdims: bool, where: Any) -> Any:
  if where is True:
    return float(math.prod(t.shape[a] for a in axes))
  return operand(where).expand(t.shape).sum(axes, keepdims).cast(t.dtype)


def var(a: Any, axis: Axes = None, dtype: Any = None, ddof: float = 0, keepdims: Any = False, where: Any = True,
        mean: Any = None, correction: Any = None) -> Any:  # fmt: skip
  t, axes, kind = _averaged(a, axis, dtype)
  center = _mean(t, axes, True, where) if mean is None else tensor(mean)
  squares = (t - center).square() if t.dtype.kind != "c" else (t - center).abs().square()
  if where is not True:
    squares = operand(where).where(squares, 0)
  total = UFUNCS["add"]._folded(squares, axes, bool(keepdims))
  left = _count(t, axes, bool(keepdims), where) - (ddof if correction is None else correction)
  left = max(left, 0.0) if isinstance(left, float) else left.maximum(0)
  return made((total / left).cast(mini_type(np.dtype(kind).type(0).real.dtype)))


def std(a: Any, axis: Axes = None, dtype: Any = None, ddof: float = 0, keepdims: Any = False, where: Any = True,
        mean: Any = None, correction: Any = None) -> Any:  # fmt: skip
  how = {} if mean is None else {"mean": mean}
  ddof = ddof if correction is None else correction
  return UFUNCS["sqrt"](var(a, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, **how))


def average(
  a: Any, axis: Axes = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
  a = asarray(a)
  if weights is None:
    out = mean(a, axis, keepdims=keepdims)
    total: Any = UFUNCS["add"](UFUNCS["multiply"](out, 0), a.size / max(out.size, 1))
  else:
    w = asarray(weights)
    if w.shape != a.shape:
      np.average(np.empty(a.shape), axis, np.ones(w.shape))  # TypeError, ValueError
      w = w.reshape((-1,) + (1,) * (a.ndim - 1 - normalize_axis_index(axis, a.ndim)))
    kind = np.result_type(a.dtype, w.dtype, *([np.float64] if a.dtype.kind in "biu" else []))
    total = sum_(w * UFUNCS["add"](a * 0, 1), axis, dtype=kind, keepdims=keepdims)
    out = sum_(UFUNCS["multiply"](a, w, dtype=kind), axis, keepdims=keepdims) / total
  return (out, total) if returned else out


def ptp(a: Any, axis: Axes = None, keepdims: Any = False) -> Any:
  return max_(a, axis, keepdims=keepdims) - min_(a, axis, keepdims=keepdims)


def count_nonzero(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
  return sum_(array_of(tensor(a).bool()), axis, dtype=np.intp, keepdims=keepdims)


def _position(name: str) -> Callable[..., Any]:
  def f(a: Any, axis: int | None = None, keepdims: Any = False) -> Any:
    t = tensor(a)
    axis = None if axis is None or (not t.ndim and axis in (0, -1)) else normalize_axis_index(axis, t.ndim)
    if (t.shape[axis] if axis is not None else t.numel()) == 0:
      raise ValueError(f"attempt to get {name} of an empty sequence")
    t = t.cast(mini_type(np.uint8)) if t.dtype.kind == "b" else t
    return made(getattr(t, name)(axis, bool(keepdims)))

  return f


argmax, argmin = _position("argmax"), _position("argmin")


# ---------------------------------------------------------------- running forms


def _running(name: str) -> Callable[..., Any]:
  def f(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    a = asarray(a)
    return UFUNCS[name].accumulate(a.reshape(-1) if axis is None or not a.ndim else a, axis or 0, dtype)

  return f


def _cumulative(name: str) -> Callable[..., Any]:
  def f(x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    x = asarray(x) if np.ndim(stand_in(x)) else asarray(x).reshape(1)
    if axis is None and x.ndim > 1:
      raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    axis = axis or 0
    found = UFUNCS[name].accumulate(x, axis, dtype)._tensor
    if include_initial:
      first = (*found.shape[:axis], 1, *found.shape[axis % found.ndim + 1 :])
      found = Tensor.full(first, UFUNCS[name].identity, dtype=found.dtype).cat(found, dim=axis)
    return array_of(found)

  return f


cumsum, cumprod = _running("add"), _running("multiply")
cumulative_sum, cumulative_prod = _cumulative("add"), _cumulative("multiply")


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
  a = asarray(a)
  if n < 0:
    raise ValueError(f"order must be non-negative but got {n}")
  if n == 0:
    return a
  if not a.ndim:
    raise ValueError("diff requires input that is at least one dimensional")
  axis = normalize_axis_index(axis, a.ndim)
  one = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
  sides = [None if x is None else tensor(x) for x in (prepend, append)]
  before, after = (x if x is None or x.ndim else x.expand(one) for x in sides)
  parts = [x for x in (before, a._tensor, after) if x is not None]
  return array_of(parts[0].cat(*parts[1:], dim=axis).diff(n, axis))


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
  """`numpy.gradient`: second order inside, first or second at the ends."""
  f = asarray(f)
  if f.dtype.kind == "b":
    raise AtOnce
  axes = axes_of(axis, f.ndim)
  spaces = list(varargs) or [1.0]
  spaces = spaces * len(axes) if len(spaces) == 1 else spaces
  if len(spaces) != len(axes):
    raise TypeError("invalid number of arguments")
  t = f._tensor.cast(mini_type(floating(f.dtype)))
  found = [array_of(_slope(t.movedim(a, -1), h, edge_order).movedim(-1, a)) for a, h in zip(axes, spaces)]
  return found[0] if len(found) == 1 else tuple(found)


def _slope(x: Tensor, h: Any, edge_order: int) -> Tensor:
  n = x.shape[-1]
  if n < edge_order + 1:
    raise ValueError("Shape of array too small to calculate a numerical gradient, "
                     "at least (edge_order + 1) elements are required.")  # fmt: skip
  space = tensor(h)
  d = space.diff() if space.ndim else space.expand(n - 1)
  d = d.cast(x.dtype)
  left, right = d[:-1], d[1:]
  inner = (x[..., 2:] - x[..., 1:-1]) * (left / right) + (x[..., 1:-1] - x[..., :-2]) * (right / left)
  inner = inner / (left + right)
  steps = x.diff() / d
  if edge_order == 1:
    first, last = steps[..., :1], steps[..., -1:]
  else:
    a, b = (
      (steps[..., 1:2] - steps[..., :1]) / (d[0] + d[1]),
      (steps[..., -1:] - steps[..., -2:-1]) / (d[-1] + d[-2]),
    )
    first, last = steps[..., :1] - a * d[0], steps[..., -1:] + b * d[-1]
  return first.cat(inner, last, dim=-1)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
  y = asarray(y)
  t = y._tensor.movedim(axis, -1)
  if x is None:
    d = dx
  else:
    at = tensor(x)
    d = array_of((at if at.ndim == 1 else at.movedim(axis, -1)).diff())
  pairs: Any = array_of(t[..., 1:] + t[..., :-1])
  return sum_(d * pairs / 2.0, -1)


# ---------------------------------------------------------------- without NaNs


def _without(name: str, fill: float) -> Callable[..., Any]:
  """As the function without `nan`, with a number that does not count in their place."""

  def f(a: Any, axis: Axes = None, keepdims: Any = False, **how: Any) -> Any:
    a = asarray(a)
    if a.dtype.kind == "c" and name in ("max", "min"):
      raise AtOnce
    keep = a if a.dtype.kind not in "fc" else made(a._tensor.isnan().where(fill, a._tensor))
    out = FUNCTIONS[name](keep, axis, keepdims=keepdims, **how)
    if name not in ("max", "min") or a.dtype.kind != "f":
      return out
    return made(all_(UFUNCS["isnan"](a), axis, keepdims=keepdims)._tensor.where(math.nan, out._tensor))

  return f


nansum, nanprod = _without("sum", 0), _without("prod", 1)
nanmax, nanmin = _without("max", -math.inf), _without("min", math.inf)


def nanmean(a: Any, axis: Axes = None, dtype: Any = None, keepdims: Any = False) -> Any:
  a = asarray(a)
  return mean(a, axis, dtype, keepdims=keepdims, where=~UFUNCS["isnan"](a) if a.dtype.kind in "fc" else True)


# ---------------------------------------------------------------- of several variables


def cov(
  m: Any,
  y: Any = None,
  rowvar: bool = True,
  bias: bool = False,
  ddof: Any = None,
  fweights: Any = None,
  aweights: Any = None,
  *,
  dtype: Any = None,
) -> Any:
  x = asarray(m)
  x = x.reshape(1, -1) if x.ndim < 2 else x if rowvar else x.T
  kind = np.result_type(x.dtype, np.float64) if dtype is None else dtype
  x = asarray(x, kind)
  if y is not None:
    other = asarray(y, kind)
    other = other.reshape(1, -1) if other.ndim < 2 else other if rowvar else other.T
    x = array_of(x._tensor.cat(other._tensor))
  w = None
  for weight in (fweights, aweights):
    if weight is not None:
      w = asarray(weight, kind) if w is None else w * asarray(weight, kind)
  ddof = (0 if bias else 1) if ddof is None else ddof
  center, total = average(x, 1, w, returned=True)
  total = total[0] if w is not None else x.shape[1]
  if ddof == 0 or aweights is None:
    left = max(total - ddof, 0) if w is None else UFUNCS["maximum"](total - ddof, 0)
  else:
    left = total - ddof * sum_(w * asarray(aweights, kind)) / total
  d = x - center.reshape(-1, 1)
  product = array_of(d._tensor @ (d if w is None else d * w).conj()._tensor.T)
  return (product / left).squeeze()


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
  c = cov(x, y, rowvar, dtype=dtype)
  if c.dtype.kind == "c":
    raise AtOnce
  if not c.ndim:
    return c / c
  scale = array_of(c._tensor.diagonal().sqrt())
  return UFUNCS["minimum"](UFUNCS["maximum"](c / scale.reshape(-1, 1) / scale, -1), 1)


publish(globals(), amax=max_, amin=min_)
