"""Convolutions and batch normalization as modules: PyTorch's names, arguments, layouts and initial values."""

from __future__ import annotations

import math
from typing import Any

from mini.nn import init
from mini.nn.layers import weight
from mini.nn.module import Module, layers_of
from mini.tensor import Tensor
from mini.tensor.convolution import numbers
from mini.tensor.errors import fail
from mini.types import ShapeError, dtypes

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
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    init.uniform_(self.weight, -bound, bound)
    if self.bias is not None:
      init.uniform_(self.bias, -bound, bound)

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
        ValueError,
        f"{type(self).__name__}: padding_mode is one of {', '.join(PADDING)}, not {padding_mode!r}",
      )
    self.padding, self.padding_mode = (
      padding if isinstance(padding, str) else numbers(padding, self.axes),
      padding_mode,
    )
    self.weight = weight(out_channels, in_channels // groups, *self.kernel_size, dtype=dtype, device=device)
    self.bias = weight(out_channels, dtype=dtype, device=device) if bias else None
    self.reset_parameters()

  def forward(self, x: Tensor) -> Tensor:
    padding: Any = self.padding
    if self.padding_mode != "zeros":
      sides = x._sides(type(self).__name__, self.axes, padding, self.kernel_size, self.stride, self.dilation)
      rest = [(0, 0)] * (x.ndim - self.axes)
      around = [*rest[1:], *sides, *rest[:1]] if self.channels_last else [*rest, *sides]
      x, padding = x.pad(around, mode=PADDING[self.padding_mode]), 0
    options = self.stride, padding, self.dilation, self.groups
    function = getattr(x, f"conv{self.axes}d")
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
      fail(ValueError, f'{type(self).__name__}: padding_mode is "zeros", not {padding_mode!r}')
    self.padding, self.output_padding = numbers(padding, self.axes), numbers(output_padding, self.axes)
    self.weight = weight(in_channels, out_channels // groups, *self.kernel_size, dtype=dtype, device=device)
    self.bias = weight(out_channels, dtype=dtype, device=device) if bias else None
    self.reset_parameters()

  def forward(self, x: Tensor) -> Tensor:
    function = getattr(x, f"conv_transpose{self.axes}d")
    options = self.stride, self.padding, self.output_padding, self.groups, self.dilation
    return function(self.weight, self.bias, *options, channels_last=self.channels_last)


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


# ---------------------------------------------------------------- batch normalization


class _BatchNorm(Module):
  """x: T[N, C, ..]; running_mean, running_var: T[C], num_batches_tracked: i64[]"""

  ndims: tuple[int, ...]

  def __init__(
    self,
    num_features: int,
    eps: float = 1e-5,
    momentum: float | None = 0.1,
    affine: bool = True,
    track_running_stats: bool = True,
    device: str | None = None,
    dtype: Any = None,
  ):
    self.num_features, self.eps, self.momentum = num_features, eps, momentum
    self.weight = weight(num_features, dtype=dtype, device=device) if affine else None
    self.bias = weight(num_features, dtype=dtype, device=device) if affine else None
    tracked = track_running_stats
    self.running_mean = Tensor.zeros(num_features, dtype=dtype, device=device) if tracked else None
    self.running_var = Tensor.ones(num_features, dtype=dtype, device=device) if tracked else None
    self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int64, device=device) if tracked else None
    if self.weight is not None and self.bias is not None:
      init.ones_(self.weight)
      init.zeros_(self.bias)

  def forward(self, x: Tensor) -> Tensor:
    if x.ndim not in self.ndims:
      fail(ShapeError, f"{type(self).__name__}: x must have {' or '.join(map(str, self.ndims))} axes", x=x)
    count, momentum = self.num_batches_tracked, self.momentum
    if count is None or not self.training:
      return x.batch_norm(
        self.running_mean, self.running_var, self.weight, self.bias, count is None, 0.0, self.eps
      )
    count.assign(count + 1)
    share = 1.0 / count.float() if momentum is None else momentum
    return x.batch_norm(self.running_mean, self.running_var, self.weight, self.bias, True, share, self.eps)

  def extra_repr(self) -> str:
    return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.weight is not None}"


class BatchNorm1d(_BatchNorm):
  """Each channel with mean 0 and variance 1 over a batch.   T[N, C] or T[N, C, L]; see BatchNorm2d."""

  ndims = 2, 3


class BatchNorm2d(_BatchNorm):
  """(x - mean) / sqrt(var + eps) * weight + bias for each channel of T[N, C, H, W]. https://arxiv.org/abs/1502.03167

  While training, mean and variance are those of the batch, and running_mean and running_var move towards them by a
  share `momentum` (None: so that they are the averages of all batches); in `eval()` these are used.

  >>> BatchNorm2d(3)(Tensor.ones(2, 3, 4, 4)).shape
  (2, 3, 4, 4)
  """

  ndims = (4,)


class BatchNorm3d(_BatchNorm):
  """Of T[N, C, D, H, W]; see BatchNorm2d."""

  ndims = (5,)


__all__ = layers_of(globals())
