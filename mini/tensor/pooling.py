"""Pooling: the largest value or the average of windows of the last axes, and of a fixed number of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.tensor.convolution import Convolution, Form, Ints, derivative, numbers
from mini.tensor.handle import Handle, fail
from mini.tensor.indexing import least_of
from mini.tensor.movement import windows
from mini.types import ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Pooling(Convolution):
  """Pooling."""

  def max_pool1d(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> Any:  # fmt: skip
    """`max_pool2d` of the last axis.   T[.., L] -> T[.., L']"""
    return self._max_pool("max_pool1d", 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  def max_pool2d(self, kernel_size: Any = 2, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> Any:  # fmt: skip
    """The largest value of each window of the last two axes.   T[.., H, W] -> T[.., H', W']

    stride is kernel_size if None; padding is by -inf, at most half of the kernel. ceil_mode: a window may begin within x
    and end outside. return_indices: also where it is, as int64, counted through the two axes; of equal ones the first.

    >>> Tensor([[1, 2, 3, 4], [5, 6, 7, 8]]).max_pool2d(2)
    Tensor([[6, 8]])
    """
    return self._max_pool("max_pool2d", 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  def max_pool3d(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> Any:  # fmt: skip
    """`max_pool2d` of the last three axes.   T[.., D, H, W] -> T[.., D', H', W']"""
    return self._max_pool("max_pool3d", 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  def avg_pool1d(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> Tensor:  # fmt: skip
    """`avg_pool2d` of the last axis.   T[.., L] -> T[.., L']"""
    return self._avg_pool("avg_pool1d", 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)

  def avg_pool2d(self, kernel_size: Any = 2, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:  # fmt: skip
    """The average of each window of the last two axes.   T[.., H, W] -> T[.., H', W']

    Padding counts as zeros, unless count_include_pad is False; what ceil_mode adds never counts. divisor_override: what
    the sums are divided by instead.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).avg_pool2d(2)
    Tensor([[2.5]])
    """
    return self._avg_pool(
      "avg_pool2d", 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )

  def avg_pool3d(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:  # fmt: skip
    """`avg_pool2d` of the last three axes.   T[.., D, H, W] -> T[.., D', H', W']"""
    return self._avg_pool(
      "avg_pool3d", 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )

  def adaptive_avg_pool1d(self, output_size: Any) -> Tensor:
    """`adaptive_avg_pool2d` of the last axis."""
    return self._adaptive("adaptive_avg_pool1d", "add", 1, output_size)

  def adaptive_avg_pool2d(self, output_size: Any) -> Tensor:
    """The averages of windows of the last two axes that give output_size: window i is i * H // h .. ceil((i + 1) * H / h).

    output_size: a number, or one for each axis; None leaves an axis as it is.

    >>> Tensor([[1.0, 2.0, 6.0]]).adaptive_avg_pool2d((1, 2))
    Tensor([[1.5, 4. ]])
    """
    return self._adaptive("adaptive_avg_pool2d", "add", 2, output_size)

  def adaptive_avg_pool3d(self, output_size: Any) -> Tensor:
    """`adaptive_avg_pool2d` of the last three axes."""
    return self._adaptive("adaptive_avg_pool3d", "add", 3, output_size)

  def adaptive_max_pool1d(self, output_size: Any) -> Tensor:
    """`adaptive_max_pool2d` of the last axis."""
    return self._adaptive("adaptive_max_pool1d", "max", 1, output_size)

  def adaptive_max_pool2d(self, output_size: Any) -> Tensor:
    """The largest values of the windows that `adaptive_avg_pool2d` takes."""
    return self._adaptive("adaptive_max_pool2d", "max", 2, output_size)

  def adaptive_max_pool3d(self, output_size: Any) -> Tensor:
    """`adaptive_max_pool2d` of the last three axes."""
    return self._adaptive("adaptive_max_pool3d", "max", 3, output_size)

  # ---------------------------------------------------------------- how

  def _max_pool(self, what: str, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
                return_indices: bool) -> Any:  # fmt: skip
    form, sides = self._windows(what, n, kernel_size, stride, padding, dilation, ceil_mode)
    axes = tuple(range(self.ndim - n, self.ndim + n, 2))
    found = cut(self.pad(sides, value=least_of(self, "amax")).uop, form, self.ndim - n)
    most = graph.reduce(found, "max", axes)
    out = self._new(graph.reshape(most, (*self.shape[: self.ndim - n], *form.count)))
    if not return_indices:
      return out
    size = self.shape[self.ndim - n :]
    place = Handle._final.arange(prod(size)).reshape(size).pad(sides[-n:], value=prod(size))
    where = graph.expand_to(cut(place.uop, form, 0), graph.shape(found))
    value, top = self._new(found), self._new(graph.expand(most, graph.shape(found)))
    hit = (value == top) | value.isnan()
    first = hit.where(self._new(where), prod(size)).amin(axes)
    return out, first

  def _avg_pool(self, what: str, n: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                count_include_pad: bool, divisor_override: int | None) -> Tensor:  # fmt: skip
    form, sides = self._windows(what, n, kernel_size, stride, padding, 1, ceil_mode)
    lead, size = self.shape[: self.ndim - n], self.shape[self.ndim - n :]
    ones = graph.full((1, 1, 1, *form.kernel), 1, self.dtype)
    x = graph.reshape(self.pad(sides).uop, (prod(lead), 1, 1, *form.size))
    total = self._new(graph.reshape(derivative(form, "y", x=x, w=ones), (*lead, *form.count)))
    p = numbers(padding, n)
    if divisor_override is not None:
      return total / divisor_override
    if all(hi == q and (count_include_pad or not q) for (_, hi), q in zip(sides[-n:], p)):
      return total / prod(form.kernel)  # whole windows
    counted = self._new(graph.full(size, 1, self.dtype))
    if count_include_pad:
      counted = self._new(graph.full(tuple(m + 2 * q for m, q in zip(size, p)), 1, self.dtype))
      sides = [(0, hi - q) for (_, hi), q in zip(sides[-n:], p)]
    count = graph.reduce(cut(counted.pad(sides[-n:]).uop, form, 0), "add", tuple(range(0, 2 * n, 2)))
    return total / self._new(graph.reshape(count, form.count))

  def _windows(
    self, what: str, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
  ) -> tuple[Form, list[Ints]]:
    """The windows of the padded tensor, and the widths of its padding for all axes."""
    kernel, pads, gaps = numbers(kernel_size, n), numbers(padding, n), numbers(dilation, n)
    steps = kernel if stride is None or stride == () else numbers(stride, n)
    if any(len(v) != n for v in (kernel, pads, gaps, steps)) or min(*kernel, *gaps, *steps) < 1:
      message = f"{what}: kernel_size, stride and dilation are numbers >= 1, one or {n} of them"
      fail(ValueError, message, x=self)
    if self.ndim < n or any(2 * p > k or p < 0 for p, k in zip(pads, kernel)):
      fail(ShapeError, f"{what}: needs {n} axes and padding of at most half of the kernel {kernel}", x=self)
    sides: list[Ints] = []
    count: list[int] = []
    for m, k, s, p, d in zip(self.shape[self.ndim - n :], kernel, steps, pads, gaps):
      over = m + 2 * p - d * (k - 1) - 1  # where the last window could begin
      found = (over + (s - 1 if ceil_mode else 0)) // s + 1
      if ceil_mode and (found - 1) * s >= m + p:
        found -= 1  # it would begin in what is behind x
      if found < 1:
        fail(ShapeError, f"{what}: the window {kernel} is larger than x", x=self)
      sides.append((p, p + max((found - 1) * s - over, 0)))
      count.append(found)
    size = tuple(m + lo + hi for m, (lo, hi) in zip(self.shape[self.ndim - n :], sides))
    form = Form(size, kernel, (*count,), steps, (0,) * n, gaps)
    return form, [(0, 0)] * (self.ndim - n) + sides

  def _adaptive(self, what: str, kind: str, n: int, output_size: Any) -> Tensor:
    sizes = numbers(output_size, n)
    if self.ndim < n or len(sizes) != n or any(m is not None and m < 1 for m in sizes):
      fail(ShapeError, f"{what}: needs {n} axes and a size >= 1 for each, not {output_size}", x=self)
    u = self.uop
    for axis, m in enumerate(sizes, self.ndim - n):
      if m is not None and m != self.shape[axis]:
        u = adapted(u, axis, m, kind, least_of(self, "amax") if kind == "max" else 0)
    return self._new(u)


def cut(u: UOp, form: Form, axis: int) -> UOp:
  """The axes from `axis` on, each as (offset within the window, which window)."""
  for a, (kernel, stride, dilation) in enumerate(zip(form.kernel, form.stride, form.dilation)):
    u = windows(u, axis + 2 * a, kernel, stride, dilation)
  return u


def adapted(u: UOp, axis: int, m: int, kind: str, outside: Any) -> UOp:
  """m windows that cover an axis, reduced: all elements of it are looked at for each, but for windows of one size."""
  s = graph.shape(u)
  n = s[axis]
  if n % m == 0:
    u = graph.reshape(u, (*s[:axis], m, n // m, *s[axis + 1 :]))
    sizes: UOp = const(n // m, u.dtype)
  else:
    one = graph.expand_to(graph.reshape(graph.iota(m), (m, 1)), (m, n))
    at = graph.expand_to(graph.iota(n), (m, n))
    inside = graph.alu("and", *bounds(at, one, n, m))
    tail = (1,) * (len(s) - axis - 1)
    full = (*s[:axis], m, n, *s[axis + 1 :])
    spread = graph.expand_to(graph.reshape(inside, (m, n, *tail)), full)
    u = graph.expand(graph.reshape(u, (*s[:axis], 1, n, *s[axis + 1 :])), full)
    u = graph.alu("where", spread, u, const(outside, u.dtype))
    sizes = graph.expand_to(
      graph.reshape(graph.reduce(graph.cast(inside, u.dtype), "add", (1,)), (m, *tail)),
      (*s[:axis], m, *s[axis + 1 :]),
    )
  out = graph.reshape(graph.reduce(u, kind, (axis + 1,)), (*s[:axis], m, *s[axis + 1 :]))
  return graph.alu("div", out, sizes) if kind == "add" else out


def bounds(at: UOp, i: UOp, n: int, m: int) -> Sequence[UOp]:
  """i * n // m <= at, and at < ceil((i + 1) * n / m), without divisions: at * m > i * n - m, and at * m < (i + 1) * n"""

  def times(x: UOp, k: int) -> UOp:
    return graph.alu("mul", x, const(k, dtypes.int32))

  first = graph.alu("lt", times(i, n), graph.alu("add", times(at, m), const(m, dtypes.int32)))
  return first, graph.alu("lt", times(at, m), graph.alu("add", times(i, n), const(n, dtypes.int32)))
