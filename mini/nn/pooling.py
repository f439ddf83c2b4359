"""Pooling, padding and resizing as modules: PyTorch's names and arguments.
What is a method with options has a row below."""

from __future__ import annotations

from typing import Any

from mini.nn import functional
from mini.nn.functions import row
from mini.nn.module import Module
from mini.tensor import Tensor
from mini.tensor.convolution import numbers
from mini.tensor.errors import fail
from mini.types import ArgumentError


class _MaxUnpool(Module):
  method: str

  def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
    self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

  def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
    return getattr(input, self.method)(indices, self.kernel_size, self.stride, self.padding, output_size)

  def extra_repr(self) -> str:
    return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _Pad(Module):
  """padding: a width for all sides, or (before, after) of the last axis, then of the one before it."""

  axes: int
  mode = "constant"
  value: float = 0.0

  def __init__(self, padding: Any):
    self.padding = numbers(padding, 2 * self.axes)
    if len(self.padding) != 2 * self.axes:
      fail(
        ArgumentError, f"{type(self).__name__}: padding is a width or {2 * self.axes} of them, not {padding}"
      )

  def forward(self, input: Tensor) -> Tensor:
    return input.pad(self.padding, self.mode, self.value)

  def extra_repr(self) -> str:
    return str(self.padding)


class _ConstantPad(_Pad):
  def __init__(self, padding: Any, value: float):
    super().__init__(padding)
    self.value = value

  def extra_repr(self) -> str:
    return f"padding={self.padding}, value={self.value}"


class MaxUnpool1d(_MaxUnpool):
  """Values back at the places where MaxPool1d found them; see Tensor.max_unpool1d."""

  method = "max_unpool1d"


class MaxUnpool2d(_MaxUnpool):
  """Values back at the places where MaxPool2d found them; see Tensor.max_unpool2d."""

  method = "max_unpool2d"


class MaxUnpool3d(_MaxUnpool):
  """Values back at the places where MaxPool3d found them; see Tensor.max_unpool3d."""

  method = "max_unpool3d"


class _FractionalMaxPool(Module):
  """One of output_size and output_ratio. ArgumentError of both or none, and where a ratio is not between 0 and 1."""

  axes: int

  def __init__(
    self,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
  ):
    if (output_size is None) == (output_ratio is None):
      fail(ArgumentError, f"{type(self).__name__}: give output_size or output_ratio")
    ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else [output_ratio]
    if not all(r is None or 0 < r < 1 for r in ratios):
      fail(
        ArgumentError, f"{type(self).__name__}: an output_ratio is between 0 and 1, as {output_ratio} is not"
      )
    self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
    self.return_indices, self._random_samples = return_indices, _random_samples

  def forward(self, input: Tensor) -> Any:
    pool = getattr(functional, f"fractional_max_pool{self.axes}d")
    return pool(
      input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
    )

  def extra_repr(self) -> str:
    return f"kernel_size={self.kernel_size}, output_size={self.output_size}, output_ratio={self.output_ratio}"


class FractionalMaxPool2d(_FractionalMaxPool):
  """The largest of windows at random places; see nn.functional.fractional_max_pool2d."""

  axes = 2


class FractionalMaxPool3d(_FractionalMaxPool):
  """The largest of windows at random places; see nn.functional.fractional_max_pool3d."""

  axes = 3


def padding(name: str, what: str, axes: int, mode: str = "constant", base: type[_Pad] = _Pad) -> Any:
  """A class of modules that pad so many axes."""
  along = "the last axis" if axes == 1 else f"the last {('two', 'three')[axes - 2]} axes"
  about = f"{what} around {along}; see Tensor.pad."
  return type(name, (base,), {"axes": axes, "mode": mode, "__doc__": about, "__module__": "mini.nn"})


# fmt: off
ZeroPad1d         = padding("ZeroPad1d", "Zeros", 1)
ZeroPad2d         = padding("ZeroPad2d", "Zeros", 2)
ZeroPad3d         = padding("ZeroPad3d", "Zeros", 3)
ConstantPad1d     = padding("ConstantPad1d", "A number", 1, base=_ConstantPad)
ConstantPad2d     = padding("ConstantPad2d", "A number", 2, base=_ConstantPad)
ConstantPad3d     = padding("ConstantPad3d", "A number", 3, base=_ConstantPad)
ReflectionPad1d   = padding("ReflectionPad1d", "Its reflection", 1, "reflect")
ReflectionPad2d   = padding("ReflectionPad2d", "Its reflection", 2, "reflect")
ReflectionPad3d   = padding("ReflectionPad3d", "Its reflection", 3, "reflect")
ReplicationPad1d  = padding("ReplicationPad1d", "Its edge, repeated,", 1, "replicate")
ReplicationPad2d  = padding("ReplicationPad2d", "Its edge, repeated,", 2, "replicate")
ReplicationPad3d  = padding("ReplicationPad3d", "Its edge, repeated,", 3, "replicate")
CircularPad1d     = padding("CircularPad1d", "Its other end", 1, "circular")
CircularPad2d     = padding("CircularPad2d", "Its other end", 2, "circular")
CircularPad3d     = padding("CircularPad3d", "Its other end", 3, "circular")

MaxPool1d         = row("MaxPool1d",          "max_pool1d", last="ceil_mode")
MaxPool2d         = row("MaxPool2d",          "max_pool2d", last="ceil_mode")
MaxPool3d         = row("MaxPool3d",          "max_pool3d", last="ceil_mode")
AvgPool1d         = row("AvgPool1d",          "avg_pool1d")
AvgPool2d         = row("AvgPool2d",          "avg_pool2d")
AvgPool3d         = row("AvgPool3d",          "avg_pool3d")
AdaptiveAvgPool1d = row("AdaptiveAvgPool1d",  "adaptive_avg_pool1d")
AdaptiveAvgPool2d = row("AdaptiveAvgPool2d",  "adaptive_avg_pool2d")
AdaptiveAvgPool3d = row("AdaptiveAvgPool3d",  "adaptive_avg_pool3d")
AdaptiveMaxPool1d = row("AdaptiveMaxPool1d",  "adaptive_max_pool1d")
AdaptiveMaxPool2d = row("AdaptiveMaxPool2d",  "adaptive_max_pool2d")
AdaptiveMaxPool3d = row("AdaptiveMaxPool3d",  "adaptive_max_pool3d")
LPPool1d          = row("LPPool1d",           "lp_pool1d")
LPPool2d          = row("LPPool2d",           "lp_pool2d")
LPPool3d          = row("LPPool3d",           "lp_pool3d")

ChannelShuffle       = row("ChannelShuffle",  "channel_shuffle")
Fold                 = row("Fold",            "fold")
LocalResponseNorm    = row("LocalResponseNorm","local_response_norm")
PixelShuffle         = row("PixelShuffle",    "pixel_shuffle")
PixelUnshuffle       = row("PixelUnshuffle",  "pixel_unshuffle")
Unfold               = row("Unfold",          "im2col")
Upsample             = row("Upsample",        "interpolate")
UpsamplingNearest2d  = row("UpsamplingNearest2d","interpolate")
UpsamplingBilinear2d = row("UpsamplingBilinear2d","interpolate", mode="bilinear", align_corners=True)
# fmt: on


__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
           "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "ChannelShuffle",
           "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
           "ConstantPad3d", "Fold", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d",
           "LPPool3d", "LocalResponseNorm", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d",
           "MaxUnpool2d", "MaxUnpool3d", "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d",
           "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
           "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d",
           "ZeroPad3d"]  # fmt: skip
