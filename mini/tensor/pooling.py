"""Pooling: the largest value or the average of windows of the last axes, and of a fixed number of them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.gradient_rules import with_gradient
from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.tensor.algebra import equals, inverted
from mini.tensor.convolution import Convolution, each_axis, numbers, on_last
from mini.tensor.convolved import Form, Ints, derivative
from mini.tensor.data import Sizes, sizes_of
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.promotion import wide
from mini.tensor.resample import averages, covering, mapped
from mini.tensor.scattering import least_of
from mini.tensor.split import windows
from mini.types import ArgumentError, ShapeError

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Pooling(Convolution):
  """Pooling. All but max_unpool have the option channels_last (`on_last`)."""

  @on_last(1)
  def max_pool1d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
    """`max_pool2d` of the last axis.   T[.., L] -> T[.., L']"""
    return self._max_pool("max_pool1d", 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  @on_last(2)
  def max_pool2d(self, kernel_size: Sizes = 2, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
    """The largest value of each window of the last two axes.   T[.., H, W] -> T[.., H', W']

    stride is kernel_size if None; padding is by -inf, at most half of the kernel. ceil_mode: a window may begin within
    x and end outside. return_indices: also where it is, as int64, counted through the two axes; of equal ones the
    first.

    >>> Tensor([[1, 2, 3, 4], [5, 6, 7, 8]]).max_pool2d(2)
    Tensor([[6, 8]])
    """
    return self._max_pool("max_pool2d", 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  @on_last(3)
  def max_pool3d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
    """`max_pool2d` of the last three axes.   T[.., D, H, W] -> T[.., D', H', W']"""
    return self._max_pool("max_pool3d", 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  @on_last(1)
  def avg_pool1d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> Tensor:  # fmt: skip
    """`avg_pool2d` of the last axis.   T[.., L] -> T[.., L']"""
    return self._avg_pool("avg_pool1d", 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)

  @on_last(2)
  def avg_pool2d(self, kernel_size: Sizes = 2, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
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

  @on_last(3)
  def avg_pool3d(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:  # fmt: skip
    """`avg_pool2d` of the last three axes.   T[.., D, H, W] -> T[.., D', H', W']"""
    return self._avg_pool(
      "avg_pool3d", 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )

  @on_last(1)
  def lp_pool1d(
    self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
  ) -> Tensor:
    """`lp_pool2d` of the last axis.   T[.., L] -> T[.., L']"""
    return self._lp_pool("lp_pool1d", 1, norm_type, kernel_size, stride, ceil_mode)

  @on_last(2)
  def lp_pool2d(
    self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
  ) -> Tensor:
    """(the sum of x**p over each window of the last two axes)**(1 / p), p being norm_type.

    T[.., H, W] -> T[.., H', W']

    What ceil_mode cuts off counts as the average of the window.

    >>> Tensor([[3.0, 4.0]]).lp_pool2d(2, (1, 2))
    Tensor([[5.]])
    """
    return self._lp_pool("lp_pool2d", 2, norm_type, kernel_size, stride, ceil_mode)

  @on_last(3)
  def lp_pool3d(
    self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
  ) -> Tensor:
    """`lp_pool2d` of the last three axes.   T[.., D, H, W] -> T[.., D', H', W']"""
    return self._lp_pool("lp_pool3d", 3, norm_type, kernel_size, stride, ceil_mode)

  def max_unpool1d(self, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                   output_size: Sizes | None = None) -> Tensor:  # fmt: skip
    """`max_unpool2d` of the last axis.   T[.., L'] -> T[.., L]"""
    return self._max_unpool("max_unpool1d", 1, indices, kernel_size, stride, padding, output_size)

  def max_unpool2d(self, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                   output_size: Sizes | None = None) -> Tensor:  # fmt: skip
    """Each value at the place where `max_pool2d` with return_indices found it, and zeros.

    T[.., H', W'] -> T[.., H, W]

    output_size: (H, W), or the whole shape, where several sizes give as many windows.
    Of values at one place the last stays.

    >>> x, where = Tensor([[1, 5, 3, 4]]).max_pool2d((1, 2), return_indices=True)
    >>> x.max_unpool2d(where, (1, 2))
    Tensor([[0, 5, 0, 4]])
    """
    return self._max_unpool("max_unpool2d", 2, indices, kernel_size, stride, padding, output_size)

  def max_unpool3d(self, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                   output_size: Sizes | None = None) -> Tensor:  # fmt: skip
    """`max_unpool2d` of the last three axes.   T[.., D', H', W'] -> T[.., D, H, W]"""
    return self._max_unpool("max_unpool3d", 3, indices, kernel_size, stride, padding, output_size)

  @on_last(1)
  def adaptive_avg_pool1d(self, output_size: Sizes) -> Tensor:
    """`adaptive_avg_pool2d` of the last axis."""
    return self._adaptive_avg_pool("adaptive_avg_pool1d", 1, output_size)

  @on_last(2)
  def adaptive_avg_pool2d(self, output_size: Sizes) -> Tensor:
    """The averages of windows of the last two axes that give output_size: window i is i * H // h ..
    ceil((i + 1) * H / h).

    output_size: a number, or one for each axis; None leaves an axis as it is.

    >>> Tensor([[1.0, 2.0, 6.0]]).adaptive_avg_pool2d((1, 2))
    Tensor([[1.5, 4. ]])
    """
    return self._adaptive_avg_pool("adaptive_avg_pool2d", 2, output_size)

  @on_last(3)
  def adaptive_avg_pool3d(self, output_size: Sizes) -> Tensor:
    """`adaptive_avg_pool2d` of the last three axes."""
    return self._adaptive_avg_pool("adaptive_avg_pool3d", 3, output_size)

  @on_last(1)
  def adaptive_max_pool1d(self, output_size: Sizes, return_indices: bool = False) -> Any:
    """`adaptive_max_pool2d` of the last axis."""
    return self._adaptive_max_pool("adaptive_max_pool1d", 1, output_size, return_indices)

  @on_last(2)
  def adaptive_max_pool2d(self, output_size: Sizes, return_indices: bool = False) -> Any:
    """The largest values of the windows that `adaptive_avg_pool2d` takes; return_indices as in `max_pool2d`."""
    return self._adaptive_max_pool("adaptive_max_pool2d", 2, output_size, return_indices)

  @on_last(3)
  def adaptive_max_pool3d(self, output_size: Sizes, return_indices: bool = False) -> Any:
    """`adaptive_max_pool2d` of the last three axes."""
    return self._adaptive_max_pool("adaptive_max_pool3d", 3, output_size, return_indices)

  # ---------------------------------------------------------------- how

  def _max_pool(self, what: str, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
                return_indices: bool) -> Any:  # fmt: skip
    form, sides = self._windows(what, n, kernel_size, stride, padding, dilation, ceil_mode)
    size = self.shape[self.ndim - n :]
    found = cut(self.pad(sides, value=least_of(self, "amax"))._node, form, self.ndim - n)
    place = Handle._final.arange(prod(size)).reshape(size).pad(sides[-n:], value=prod(size))
    return self._largest(found, cut(place._node, form, 0), n, return_indices)

  def _largest(self, found: UOp, place: UOp, n: int, return_indices: bool) -> Any:
    """The maxima of windows.   found: T[.., h, H', w, W'], and the numbers of its places   ->   T[.., H', W']

    Of equal ones the first counts, and gets the gradient, as in PyTorch.
    """
    axes = tuple(range(self.ndim - n, self.ndim + n, 2))
    most = graph.reduce(found, "max", axes)
    s, short = graph.shape(found), tuple(m for a, m in enumerate(graph.shape(most)) if a not in axes)

    def first(number: UOp) -> UOp:
      """The least number of those that are the maximum."""
      value, top = self._new(found), self._new(graph.expand(most, s))
      hit = ((value == top) | value.isnan())._node
      none = const(int(np.iinfo(number.dtype.np).min), number.dtype)
      turned = graph.alu("where", hit, inverted(graph.expand_to(number, s)), none)
      return inverted(graph.reduce(turned, "max", axes))

    def rule(g: UOp, out: UOp, found: UOp) -> tuple[UOp]:
      kernel = tuple(s[a] if a in axes else 1 for a in range(len(s)))
      number = graph.expand_to(graph.reshape(graph.iota(prod(kernel)), kernel), s)
      chosen = equals(number, graph.expand(graph.stage(first(number)), s))
      return (graph.alu("where", chosen, graph.expand(g, s), const(0, g.dtype)),)

    out = self._new(graph.reshape(with_gradient(most, rule, found), short))
    return (out, self._new(graph.reshape(first(place), short))) if return_indices else out

  def _avg_pool(self, what: str, n: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                count_include_pad: bool, divisor_override: int | None) -> Tensor:  # fmt: skip
    form, sides = self._windows(what, n, kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override == 0:
      fail(ArgumentError, f"{what}: the divisor is 0", x=self)
    lead, size = self.shape[: self.ndim - n], self.shape[self.ndim - n :]
    ones = graph.full((1, 1, 1, *form.kernel), 1, self.dtype)
    x = graph.reshape(self.pad(sides)._node, (prod(lead), 1, 1, *form.size))
    total = self._new(graph.reshape(derivative(form, "y", x=x, w=ones), (*lead, *form.count)))
    p = numbers(padding, n)
    rounding = None if self.dtype.kind == "f" else "trunc"
    if divisor_override is not None:
      return total.div(divisor_override, rounding_mode=rounding)
    if all(hi == q and (count_include_pad or not q) for (_, hi), q in zip(sides[-n:], p)):
      return total.div(prod(form.kernel), rounding_mode=rounding)  # whole windows
    counted = self._new(graph.full(size, 1, self.dtype))
    if count_include_pad:
      counted = self._new(graph.full(tuple(m + 2 * q for m, q in zip(size, p)), 1, self.dtype))
      sides = [(0, hi - q) for (_, hi), q in zip(sides[-n:], p)]
    count = graph.reduce(cut(counted.pad(sides[-n:])._node, form, 0), "add", tuple(range(0, 2 * n, 2)))
    return total.div(self._new(graph.reshape(count, form.count)), rounding_mode=rounding)

  def _windows(
    self, what: str, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
  ) -> tuple[Form, list[Ints]]:
    """The windows of the padded tensor, and the widths of its padding for all axes."""
    kernel, pads, gaps = numbers(kernel_size, n), numbers(padding, n), numbers(dilation, n)
    steps = kernel if stride is None or stride == () else numbers(stride, n)
    if any(len(v) != n for v in (kernel, pads, gaps, steps)) or min(*kernel, *gaps, *steps) < 1:
      message = f"{what}: kernel_size, stride and dilation are numbers >= 1, one or {n} of them"
      fail(ArgumentError, message, x=self)
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

  def _lp_pool(self, what: str, n: int, p: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    average = (self**p)._avg_pool(what, n, kernel_size, stride, 0, ceil_mode, True, None)
    return (average * prod(numbers(kernel_size, n))) ** (1 / p)

  def _max_unpool(self, what: str, n: int, indices: Tensor, kernel_size: Any, stride: Any, padding: Any,
                  output_size: Any) -> Tensor:  # fmt: skip
    kernel, before = numbers(kernel_size, n), numbers(padding, n)
    steps = kernel if stride is None else numbers(stride, n)
    if any(len(v) != n for v in (kernel, before, steps)) or min(*kernel, *steps) < 1:
      fail(ArgumentError, f"{what}: kernel_size and stride are numbers >= 1, one or {n} of them", x=self)
    if self.ndim < n or indices.shape != self.shape or indices.dtype.kind not in "iu":
      fail(
        ShapeError,
        f"{what}: x must have {n} axes or more, and an integer for each value",
        x=self,
        indices=indices,
      )
    lead, count = self.shape[: self.ndim - n], self.shape[self.ndim - n :]
    usual = tuple((m - 1) * s + k - 2 * p for m, s, k, p in zip(count, steps, kernel, before))
    size = usual if output_size is None else sizes_of((output_size,))[-n:]
    if len(size) != n or any(abs(m - u) >= s for m, u, s in zip(size, usual, steps)) or min(size) < 1:
      fail(
        ShapeError,
        f"{what}: output_size is {usual}, or differs by less than the stride {steps}; not {size}",
        x=self,
      )
    room = Handle._final.zeros(*lead, prod(size), dtype=self.dtype, device=self.device)
    flat = (*lead, prod(count))
    return room.scatter(-1, indices.reshape(flat), self.reshape(flat)).reshape(*lead, *size)

  def _adaptive_sizes(self, what: str, n: int, output_size: Any) -> Ints:
    """How many windows of each axis."""
    old = self.shape[self.ndim - n :] if self.ndim >= n else ()
    sizes = numbers([k if m is None else m for k, m in zip(old, each_axis(output_size, n))], n)
    if len(sizes) != n or min(*sizes, *old) < 1:
      fail(
        ShapeError,
        f"{what}: x must have {n} axes or more, and output_size be >= 1 for each, not {output_size}",
        x=self,
      )
    return sizes

  def _adaptive_avg_pool(self, what: str, n: int, output_size: Any) -> Tensor:
    sizes = self._adaptive_sizes(what, n, output_size)
    lead, old = self.shape[: self.ndim - n], self.shape[self.ndim - n :]
    x = graph.cast(self._node, wide(self.dtype))
    # axes with windows of one size at once, as views; the others one after another
    pairs = [(m, k // m) if k % m == 0 else (k, 1) for k, m in zip(old, sizes)]
    x = graph.reshape(x, (*lead, *(m for pair in pairs for m in pair)))
    x = graph.reduce(x, "add", tuple(range(len(lead) + 1, len(lead) + 2 * n, 2)))
    x = graph.reshape(x, (*lead, *(m for m, _ in pairs)))
    if (each := prod(k for _, k in pairs)) > 1:
      x = graph.alu("div", x, const(each, x.dtype))
    rest = {a: averages(k, m) for a, (k, m) in enumerate(zip(old, sizes), len(lead)) if k % m}
    return self._new(graph.cast(mapped(x, rest, self.device), self.dtype))

  def _adaptive_max_pool(self, what: str, n: int, output_size: Any, return_indices: bool) -> Any:
    sizes = self._adaptive_sizes(what, n, output_size)
    size = self.shape[self.ndim - n :]
    found, place = self._node, Handle._final.arange(prod(size)).reshape(size)._node
    for a, m in enumerate(sizes):
      found = covered(found, self.ndim - n + 2 * a, m, self.device)
      place = covered(place, 2 * a, m, self.device)
    return self._largest(found, place, n, return_indices)


def cut(u: UOp, form: Form, axis: int) -> UOp:
  """The axes from `axis` on, each as (offset within the window, which window)."""
  for a, (kernel, stride, dilation) in enumerate(zip(form.kernel, form.stride, form.dilation)):
    u = windows(u, axis + 2 * a, kernel, stride, dilation)
  return u


def covered(u: UOp, axis: int, m: int, device: Any) -> UOp:
  """m windows that cover an axis, which becomes (offset within the window, which window)."""
  s = graph.shape(u)
  if s[axis] % m == 0:
    return windows(u, axis, s[axis] // m, s[axis] // m)
  places, _ = covering(s[axis], m)
  k = places.shape[1]
  index = Handle._final(places.T.ravel().astype(np.int32), device=device)._node
  index = graph.reshape(index, tuple(m * k if a == axis else 1 for a in range(len(s))))
  got = graph.gather(u, graph.expand(index, (*s[:axis], m * k, *s[axis + 1 :])), axis)
  return graph.reshape(got, (*s[:axis], k, m, *s[axis + 1 :]))
