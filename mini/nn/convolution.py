"""Convolutions as modules: PyTorch's names, arguments, layouts and initial values."""

from __future__ import annotations

import math
from typing import Any

from mini.nn import init
from mini.nn.layers import uniform_within, weight
from mini.nn.module import Module
from mini.tensor import Tensor
from mini.tensor.convolution import numbers
from mini.tensor.errors import fail
from mini.types import ArgumentError, ShapeError

PADDING = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class _Windows(Module):
  """What convolutions and their transposes share."""

  axes: int
  weight: Tensor
  bias: Tensor | None

  def _begin(
    self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, dilation: Any, groups: int
  ) -> None:
    name = type(self).__name__
    if groups < 1 or in_channels % groups or out_channels % groups:
      fail(ShapeError, f"{name}: {in_channels} and {out_channels} do not fall into {groups} groups")
    self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
    self.kernel_size, self.stride, self.dilation = (
      numbers(x, self.axes) for x in (kernel_size, stride, dilation)
    )

  def reset_parameters(self) -> None:
    """Uniform within 1 / sqrt(fan in) of 0, weight and bias."""
    fan_in, _ = init.fans(self.weight)
    uniform_within(1 / math.sqrt(fan_in) if fan_in else 0.0, self.weight, self.bias)

  def extra_repr(self) -> str:
    return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"


class _Conv(_Windows):
  def __init__(
    self,
    in_channels: int,
    out_channels: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    bias: bool = True,
    padding_mode: str = "zeros",
    device: str | None = None,
    dtype: Any = None,
    *,
    channels_last: bool = False,
  ):
    self._begin(in_channels, out_channels, kernel_size, stride, dilation, groups)
    self.channels_last = channels_last
    if padding_mode not in PADDING:
      fail(
        ArgumentError,
        f"{type(self).__name__}: padding_mode is one of {', '.join(PADDING)}, not {padding_mode!r}",
      )
    if isinstance(padding, str) and (
      padding not in ("same", "valid") or padding == "same" and max(self.stride) > 1
    ):
      message = f'padding is widths, "valid" or, where the stride is 1, "same", not {padding!r}'
      fail(ArgumentError, f"{type(self).__name__}: {message}")
    self.padding, self.padding_mode = (
      padding if isinstance(padding, str) else numbers(padding, self.axes),
      padding_mode,
    )
    self.weight = weight(out_channels, in_channels // groups, *self.kernel_size, dtype=dtype, device=device)
    self.bias = weight(out_channels, dtype=dtype, device=device) if bias else None
    self.reset_parameters()

  def forward(self, input: Tensor) -> Tensor:
    padding: Any = self.padding
    if self.padding_mode != "zeros":
      sides = input._sides(
        type(self).__name__, self.axes, padding, self.kernel_size, self.stride, self.dilation
      )
      rest = [(0, 0)] * (input.ndim - self.axes)
      around = [*rest[1:], *sides, *rest[:1]] if self.channels_last else [*rest, *sides]
      input, padding = input.pad(around, mode=PADDING[self.padding_mode]), 0
    options = self.stride, padding, self.dilation, self.groups
    function = getattr(input, f"conv{self.axes}d")
    return function(self.weight, self.bias, *options, channels_last=self.channels_last)


class Conv1d(_Conv):
  """A weighted sum over each window of an axis; see Tensor.conv2d.   T[N, C, L] -> T[N, O, L']"""

  axes = 1


class Conv2d(_Conv):
  """A weighted sum over each window; see Tensor.conv2d.   T[N, C, H, W] -> T[N, O, H', W']

  weight: T[O, C / groups, h, w]   bias: T[O]   padding_mode: zeros, reflect, replicate or circular.
  channels_last: x, and what it gives, are T[N, H, W, C].

  >>> Conv2d(3, 8, 3, padding=1)(Tensor.ones(2, 3, 5, 5)).shape
  (2, 8, 5, 5)
  """

  axes = 2


class Conv3d(_Conv):
  """A weighted sum over each window of three axes; see Tensor.conv2d."""

  axes = 3


class _ConvTranspose(_Windows):
  def __init__(
    self,
    in_channels: int,
    out_channels: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    bias: bool = True,
    dilation: Any = 1,
    padding_mode: str = "zeros",
    device: str | None = None,
    dtype: Any = None,
    *,
    channels_last: bool = False,
  ):
    self._begin(in_channels, out_channels, kernel_size, stride, dilation, groups)
    self.channels_last = channels_last
    if padding_mode != "zeros":
      fail(ArgumentError, f'{type(self).__name__}: padding_mode is "zeros", not {padding_mode!r}')
    self.padding, self.output_padding = numbers(padding, self.axes), numbers(output_padding, self.axes)
    self.weight = weight(in_channels, out_channels // groups, *self.kernel_size, dtype=dtype, device=device)
    self.bias = weight(out_channels, dtype=dtype, device=device) if bias else None
    self.reset_parameters()

  def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
    """output_size: of the windows' axes of the result, in place of what output_padding makes of them."""
    function = getattr(input, f"conv_transpose{self.axes}d")
    more = self.output_padding if output_size is None else self._more(input, output_size)
    options = self.stride, self.padding, more, self.groups, self.dilation
    return function(self.weight, self.bias, *options, channels_last=self.channels_last)

  def _more(self, x: Tensor, output_size: Any) -> tuple[int, ...]:
    """The output_padding that makes the result so large."""
    n = self.axes
    size = x.shape[-n - 1 : -1] if self.channels_last else x.shape[-n:]
    rule = zip(size, self.kernel_size, self.stride, self.padding, self.dilation)
    least = [(m - 1) * s - 2 * p + d * (k - 1) + 1 for m, k, s, p, d in rule]
    wanted = tuple(output_size)[-n:]
    more = tuple(a - b for a, b in zip(wanted, least))
    if len(wanted) != n or not all(0 <= e < s for e, s in zip(more, self.stride)):
      most = [m + s - 1 for m, s in zip(least, self.stride)]
      fail(ArgumentError, f"{type(self).__name__}: output_size {wanted} is not within {least} to {most}", x=x)
    return more


class ConvTranspose1d(_ConvTranspose):
  """The transpose of Conv1d; see Tensor.conv_transpose2d."""

  axes = 1


class ConvTranspose2d(_ConvTranspose):
  """The transpose of Conv2d; see Tensor.conv_transpose2d.   T[N, C, H, W] -> T[N, O, H', W']

  weight: T[C, O / groups, h, w]   bias: T[O]

  >>> ConvTranspose2d(8, 3, 2, stride=2)(Tensor.ones(1, 8, 4, 4)).shape
  (1, 3, 8, 8)
  """

  axes = 2


class ConvTranspose3d(_ConvTranspose):
  """The transpose of Conv3d; see Tensor.conv_transpose2d."""

  axes = 3


__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
