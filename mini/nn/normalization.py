"""Normalization as modules: PyTorch's names, arguments and state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mini.nn import init
from mini.nn.layers import weight as parameter
from mini.nn.module import Module
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ShapeError, dtypes


class _Affine(Module):
  """What has a weight, 1 at the beginning, and a bias, 0; or neither."""

  weight: Tensor | None
  bias: Tensor | None

  def _affine(self, s: tuple[int, ...], weight: bool, bias: bool, device: str | None, dtype: Any) -> None:
    made = {"dtype": dtype, "device": device}
    self.weight, self.bias = (parameter(*s, **made) if there else None for there in (weight, bias))
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Weight 1, bias 0."""
    if self.weight is not None:
      init.ones_(self.weight)
    if self.bias is not None:
      init.zeros_(self.bias)


def _sizes(s: int | Iterable[int]) -> tuple[int, ...]:
  return (s,) if isinstance(s, int) else tuple(s)


class LayerNorm(_Affine):
  """(x - mean) / sqrt(var + eps) * weight + bias over the last axes. https://arxiv.org/abs/1607.06450

  >>> LayerNorm(4)(Tensor.ones(2, 4)).shape
  (2, 4)
  """

  def __init__(
    self,
    normalized_shape: int | Iterable[int],
    eps: float = 1e-5,
    elementwise_affine: bool = True,
    bias: bool = True,
    device: str | None = None,
    dtype: Any = None,
  ):
    self.normalized_shape, self.eps = _sizes(normalized_shape), eps
    self._affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

  def forward(self, input: Tensor) -> Tensor:
    return input.layer_norm(self.normalized_shape, self.weight, self.bias, self.eps)

  def extra_repr(self) -> str:
    return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class LayerNorm2d(LayerNorm):
  """tinygrad's: `LayerNorm` over the channels, axis 1, of T[N, C, H, W]."""

  def forward(self, input: Tensor) -> Tensor:
    return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm(_Affine):
  """x / sqrt(mean(x**2) + eps) * weight over the last axes. https://arxiv.org/abs/1910.07467"""

  def __init__(
    self,
    normalized_shape: int | Iterable[int],
    eps: float | None = None,
    elementwise_affine: bool = True,
    device: str | None = None,
    dtype: Any = None,
  ):
    self.normalized_shape, self.eps = _sizes(normalized_shape), eps
    self._affine(self.normalized_shape, elementwise_affine, False, device, dtype)

  def forward(self, input: Tensor) -> Tensor:
    return input.rms_norm(self.normalized_shape, self.weight, self.eps)

  def extra_repr(self) -> str:
    return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class GroupNorm(_Affine):
  """Each group of channels of each item with mean 0 and variance 1; see Tensor.group_norm.   T[N, C, ..]

  >>> GroupNorm(2, 4)(Tensor.ones(3, 4, 5)).shape
  (3, 4, 5)
  """

  def __init__(
    self,
    num_groups: int,
    num_channels: int,
    eps: float = 1e-5,
    affine: bool = True,
    device: str | None = None,
    dtype: Any = None,
    *,
    bias: bool = True,
  ):
    if num_groups < 1 or num_channels % num_groups:
      fail(ShapeError, f"GroupNorm: {num_channels} channels do not fall into {num_groups} groups")
    self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
    self._affine((num_channels,), affine, affine and bias, device, dtype)

  def forward(self, input: Tensor) -> Tensor:
    return input.group_norm(self.num_groups, self.weight, self.bias, self.eps)

  def extra_repr(self) -> str:
    return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.weight is not None}"


class BatchNorm(_Affine):
  """(x - mean) / sqrt(var + eps) * weight + bias for each channel of T[N, C, ..]. https://arxiv.org/abs/1502.03167

  While training, mean and variance are those of the batch, and running_mean and running_var, T[C], move towards them by
  a share `momentum` (None: so that they are the averages of all batches); in `eval()` these are used.

  >>> BatchNorm(3)(Tensor.ones(2, 3, 4, 4)).shape
  (2, 3, 4, 4)
  """

  ndims: tuple[int, ...] = ()  # what x may have; none named: 2 or more

  def __init__(
    self,
    num_features: int,
    eps: float = 1e-5,
    momentum: float | None = 0.1,
    affine: bool = True,
    track_running_stats: bool = True,
    device: str | None = None,
    dtype: Any = None,
    *,
    bias: bool = True,
  ):
    self.num_features, self.eps, self.momentum = num_features, eps, momentum
    self._affine((num_features,), affine, affine and bias, device, dtype)
    tracked = track_running_stats
    self.running_mean = Tensor.zeros(num_features, dtype=dtype, device=device) if tracked else None
    self.running_var = Tensor.ones(num_features, dtype=dtype, device=device) if tracked else None
    self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int64, device=device) if tracked else None

  def forward(self, input: Tensor) -> Tensor:
    if input.ndim not in (self.ndims or range(2, input.ndim + 1)):
      wanted = " or ".join(map(str, self.ndims)) or "2 or more"
      fail(ShapeError, f"{type(self).__name__}: x must have {wanted} axes", x=input)
    count, momentum = self.num_batches_tracked, self.momentum
    if count is None or not self.training:
      return input.batch_norm(
        self.running_mean, self.running_var, self.weight, self.bias, count is None, 0.0, self.eps
      )
    count.assign(count + 1)
    share = 1.0 / count.float() if momentum is None else momentum
    return input.batch_norm(
      self.running_mean, self.running_var, self.weight, self.bias, True, share, self.eps
    )

  def extra_repr(self) -> str:
    return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.weight is not None}"


class BatchNorm1d(BatchNorm):
  """Each channel with mean 0 and variance 1 over a batch.   T[N, C] or T[N, C, L]; see BatchNorm."""

  ndims = 2, 3


class BatchNorm2d(BatchNorm):
  """Of T[N, C, H, W]; see BatchNorm."""

  ndims = (4,)


class BatchNorm3d(BatchNorm):
  """Of T[N, C, D, H, W]; see BatchNorm."""

  ndims = (5,)


class InstanceNorm(BatchNorm):
  """Each channel of each item of T[N, C, ..] with mean 0 and variance 1; see Tensor.instance_norm.

  >>> InstanceNorm(3)(Tensor.rand(2, 3, 4, 4)).shape
  (2, 3, 4, 4)
  """

  ndim: int | None = None  # of x with a batch, which then may be left out; None: 3 or more

  def __init__(
    self,
    num_features: int,
    eps: float = 1e-5,
    momentum: float | None = 0.1,
    affine: bool = False,
    track_running_stats: bool = False,
    device: str | None = None,
    dtype: Any = None,
    *,
    bias: bool = True,
  ):
    super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

  def forward(self, input: Tensor) -> Tensor:
    if self.ndim is not None and input.ndim not in (self.ndim - 1, self.ndim):
      fail(
        ShapeError,
        f"{type(self).__name__}: x must have {self.ndim} axes, or without a batch one less",
        x=input,
      )
    if input.ndim == (self.ndim or 0) - 1:
      return self.forward(input.unsqueeze(0)).squeeze(0)
    own = self.training or self.running_mean is None
    running = (self.running_mean, self.running_var)
    momentum = 0.0 if self.momentum is None else self.momentum
    return input.instance_norm(*running, self.weight, self.bias, own, momentum, self.eps)


class InstanceNorm1d(InstanceNorm):
  """Each channel of each item with mean 0 and variance 1.   T[N, C, L] or T[C, L]; see InstanceNorm."""

  ndim = 3


class InstanceNorm2d(InstanceNorm):
  """Of T[N, C, H, W] or T[C, H, W]; see InstanceNorm."""

  ndim = 4


class InstanceNorm3d(InstanceNorm):
  """Of T[N, C, D, H, W] or T[C, D, H, W]; see InstanceNorm."""

  ndim = 5


__all__ = ["BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm", "InstanceNorm1d",
           "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LayerNorm2d", "RMSNorm"]  # fmt: skip
