"""Convolutions of any number of axes: Tensor's methods. What they compute, and their gradients, is in convolved.py."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

from mini.ir import graph
from mini.ir.uop import UOp
from mini.tensor.convolved import Form, Ints, derivative
from mini.tensor.data import Sizes
from mini.tensor.errors import fail
from mini.tensor.multiply import Multiply, common
from mini.tensor.promotion import result_type, wide
from mini.types import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
  from mini.tensor import Tensor

Method = TypeVar("Method", bound=Callable[..., Any])


def each_axis(x: Any, n: int) -> tuple[Any, ...]:
  """One for each of n axes; () if there are neither one nor n."""
  if isinstance(x, (tuple, list, range)):
    return tuple(x) if len(x) == n else tuple(x) * n if len(x) == 1 else ()
  return (x,) * n


def numbers(x: Any, n: int) -> Ints:
  """An integer for each of n axes."""
  try:
    return tuple(map(operator.index, each_axis(x, n)))
  except TypeError:
    raise DTypeError(f"sizes and steps are integers, not {x!r}") from None


def on_last(n: int) -> Callable[[Method], Method]:
  """A method that works on windows of the last n axes gets the option channels_last: x, and what it gives, are T[..,
  L.., C] and not T[.., C, L..], and weights stay as they are.

  That is a view on the way in and one on the way out: addresses in kernels, which copy nothing for it.

  >>> Tensor.ones(1, 4, 5, 2).max_pool2d(2, channels_last=True).shape
  (1, 2, 2, 2)
  """

  def with_option(method: Method) -> Method:
    @wraps(method)
    def on_either(self: Any, *args: Any, channels_last: bool = False, **options: Any) -> Any:
      if not channels_last:
        return method(self, *args, **options)
      if self.ndim <= n:
        fail(ShapeError, f"{method.__name__}: channels come behind {n} axes, and x has {self.ndim}", x=self)
      found = method(self.movedim(-1, -n - 1), *args, **options)
      if isinstance(found, tuple):
        return tuple(t.movedim(-n - 1, -1) for t in found)
      return found.movedim(-n - 1, -1)

    option = Parameter("channels_last", Parameter.KEYWORD_ONLY, default=False, annotation="bool")
    found = signature(method)
    found = found.replace(parameters=[*found.parameters.values(), option])
    on_either.__signature__ = found  # type: ignore[attr-defined]
    code = on_either.__code__  # type: ignore[attr-defined]
    on_either.__code__ = code.replace(co_name=method.__name__)  # type: ignore[attr-defined]  # as errors call it
    return on_either  # type: ignore[return-value]

  return with_option


class Convolution(Multiply):
  """Convolutions. Each has the option channels_last (`on_last`)."""

  @on_last(1)
  def conv1d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
             dilation: Sizes = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """`conv2d` of one axis.   T[N, C, L] -> T[N, O, L']"""
    return self._convolved("conv1d", 1, weight, bias, stride, padding, dilation, groups)

  @on_last(2)
  def conv2d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
             dilation: Sizes = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """A weighted sum over each window of the last two axes, as PyTorch's `F.conv2d`.

    self: T[N, C, H, W], or without N   weight: T[O, C / groups, h, w]   bias: T[O]   ->   T[N, O, H', W']

    stride, padding (by zeros), dilation: a number, or one for each axis. padding "valid" is 0; with "same" and stride 1
    the sizes stay. groups: channels fall into so many parts, each of which makes its part of O. float16 and bfloat16
    are summed in float32. ShapeError where channels or sizes do not fit.

    >>> Tensor.ones(1, 1, 3, 3).conv2d(Tensor.ones(1, 1, 2, 2))
    Tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    return self._convolved("conv2d", 2, weight, bias, stride, padding, dilation, groups)

  @on_last(3)
  def conv3d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
             dilation: Sizes = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """`conv2d` of three axes.   T[N, C, D, H, W] -> T[N, O, D', H', W']"""
    return self._convolved("conv3d", 3, weight, bias, stride, padding, dilation, groups)

  @on_last(1)
  def conv_transpose1d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0,
                       output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1) -> Tensor:  # fmt: skip
    """`conv_transpose2d` of one axis.   T[N, C, L] -> T[N, O, L']"""
    return self._spread(
      "conv_transpose1d", 1, weight, bias, stride, padding, output_padding, groups, dilation
    )

  @on_last(2)
  def conv_transpose2d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0,
                       output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1) -> Tensor:  # fmt: skip
    """The transpose of `conv2d` as a linear map of its input, which is also its gradient:
    PyTorch's `F.conv_transpose2d`.

    self: T[N, C, H, W], or without N   weight: T[C, O / groups, h, w]   bias: T[O]   ->   T[N, O, H', W']

    H' = (H - 1) * stride - 2 * padding + dilation * (h - 1) + output_padding + 1

    >>> Tensor.ones(1, 1, 1, 2).conv_transpose2d(Tensor([[[[1.0, 2.0]]]]), stride=2)
    Tensor([[[[1., 2., 1., 2.]]]])
    """
    return self._spread(
      "conv_transpose2d", 2, weight, bias, stride, padding, output_padding, groups, dilation
    )

  @on_last(3)
  def conv_transpose3d(self, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0,
                       output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1) -> Tensor:  # fmt: skip
    """`conv_transpose2d` of three axes.   T[N, C, D, H, W] -> T[N, O, D', H', W']"""
    return self._spread(
      "conv_transpose3d", 3, weight, bias, stride, padding, output_padding, groups, dilation
    )

  def _convolved(self, what: str, n: int, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
                 groups: int) -> Tensor:  # fmt: skip
    self._fits(what, n, weight, groups, 0)
    if self.ndim == n + 1:
      return self.unsqueeze(0)._convolved(what, n, weight, bias, stride, padding, dilation, groups).squeeze(0)
    batch, channels, *size = self.shape
    outputs, each, *kernel = weight.shape
    if each * groups != channels:
      message = f"{what}: x has {channels} channels, and a weight for {each} of them in {groups} groups"
      fail(ShapeError, message, x=self, weight=weight)
    steps, gaps = self._steps(what, n, stride, dilation)
    sides = self._sides(what, n, padding, kernel, steps, gaps)
    count = []
    for m, k, s, d, (lo, hi) in zip(size, kernel, steps, gaps, sides):
      count.append((m + lo + hi - d * (k - 1) - 1) // s + 1)
    if min(count) < 1:
      fail(ShapeError, f"{what}: the window {(*kernel,)} is larger than x with its padding", x=self)
    before = tuple(lo for lo, _ in sides)
    form = Form((*size,), (*kernel,), (*count,), steps, before, gaps)
    kind = common(what, self, weight)
    x = graph.reshape(graph.cast(self._node, wide(kind)), (batch, groups, each, *size))
    w = graph.reshape(graph.cast(weight._node, wide(kind)), (groups, outputs // groups, each, *kernel))
    return self._finished(what, derivative(form, "y", x=x, w=w), kind, (batch, outputs, *count), bias)

  def _spread(self, what: str, n: int, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
              output_padding: Any, groups: int, dilation: Any) -> Tensor:  # fmt: skip
    self._fits(what, n, weight, groups, 1)
    if self.ndim == n + 1:
      args = (weight, bias, stride, padding, output_padding, groups, dilation)
      return self.unsqueeze(0)._spread(what, n, *args).squeeze(0)
    batch, channels, *count = self.shape
    _, each, *kernel = weight.shape
    if weight.shape[0] != channels:
      fail(ShapeError, f"{what}: x has {channels} channels, weight {weight.shape[0]}", x=self, weight=weight)
    steps, gaps = self._steps(what, n, stride, dilation)
    before, more = numbers(padding, n), numbers(output_padding, n)
    if len(before) != n or len(more) != n or min(*before, *more) < 0:
      fail(ArgumentError, f"{what}: padding and output_padding are numbers >= 0, for each axis", x=self)
    if any(e >= max(s, d) for e, s, d in zip(more, steps, gaps)):
      fail(ArgumentError, f"{what}: output_padding must be smaller than the stride or the dilation", x=self)
    size = []
    for m, k, s, p, d, e in zip(count, kernel, steps, before, gaps, more):
      size.append((m - 1) * s - 2 * p + d * (k - 1) + e + 1)
    if min(size) < 1:
      fail(ShapeError, f"{what}: the padding {before} leaves nothing", x=self)
    form = Form((*size,), (*kernel,), (*count,), steps, before, gaps)
    kind = common(what, self, weight)
    y = graph.reshape(graph.cast(self._node, wide(kind)), (batch, groups, channels // groups, *count))
    w = graph.reshape(graph.cast(weight._node, wide(kind)), (groups, channels // groups, each, *kernel))
    return self._finished(what, derivative(form, "x", y=y, w=w), kind, (batch, each * groups, *size), bias)

  def _finished(self, what: str, u: UOp, kind: Any, s: Ints, bias: Tensor | None) -> Tensor:
    out = self._new(graph.reshape(graph.cast(u, kind), s))
    if bias is not None and bias.shape != s[1:2]:
      fail(ShapeError, f"{what}: a bias has one number for each of the {s[1]} outputs", x=self, bias=bias)
    if bias is not None and result_type(out, bias) is not kind:
      fail(
        DTypeError, f"{what}: the bias is {bias.dtype.name}; bias.to(x.dtype) would fit", x=self, bias=bias
      )
    return out if bias is None else out + bias.reshape(-1, *(1,) * (len(s) - 2))

  def _fits(self, what: str, n: int, weight: Tensor, groups: int, axis: int) -> None:
    """Are there as many axes as windows of n need, and do the groups divide what they are groups of?"""
    if self.ndim not in (n + 1, n + 2) or weight.ndim != n + 2:
      message = f"{what}: x must have {n + 2} axes, or {n + 1} without a batch, and the weight {n + 2}"
      fail(ShapeError, message, x=self, weight=weight)
    if 0 in weight.shape[2:]:
      fail(ShapeError, f"{what}: the window {weight.shape[2:]} has no places", x=self, weight=weight)
    if groups < 1 or weight.shape[0] % groups:
      message = f"{what}: {weight.shape[0]} {('outputs', 'channels')[axis]} do not fall into {groups} groups"
      fail(ShapeError, message, x=self, weight=weight)

  def _steps(self, what: str, n: int, stride: Any, dilation: Any) -> tuple[Ints, Ints]:
    steps, gaps = numbers(stride, n), numbers(dilation, n)
    if len(steps) != n or len(gaps) != n or min(*steps, *gaps) < 1:
      fail(ArgumentError, f"{what}: stride and dilation are numbers >= 1, for each axis", x=self)
    return steps, gaps

  def _sides(self, what: str, n: int, padding: Any, kernel: Sequence[int], steps: Ints,
             gaps: Ints) -> list[Ints]:  # fmt: skip
    """Zeros (before, after) each axis."""
    if padding == "same":
      if max(steps) > 1:
        fail(ArgumentError, f'{what}: padding="same" goes with stride 1', x=self)
      return [(d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2) for k, d in zip(kernel, gaps)]
    word = isinstance(padding, str) and padding != "valid"
    found = () if word else numbers(0 if padding == "valid" else padding, n)
    if len(found) != n or min(found) < 0:
      message = f'{what}: padding is "same", "valid" or numbers >= 0, for each axis, not {padding!r}'
      fail(ArgumentError, message, x=self)
    return [(p, p) for p in found]
