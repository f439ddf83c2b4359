"""Normalization, embedding and dropout. Halves are normalized in float32 and rounded once."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from mini.gradient_rules import with_gradient
from mini.ir.sizes import Variable
from mini.ir.uop import UOp
from mini.tensor.data import Axes, Sizes
from mini.tensor.distance import Distance
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.promotion import wide
from mini.types import ArgumentError, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Normalize(Distance):
  """What networks are made of, besides products."""

  training: bool = (
    False  # does dropout act, and does batch norm learn? Set by `with Tensor.train():` or by hand
  )

  # ---------------------------------------------------------------- normalization

  def layer_norm(
    self, normalized_shape: Sizes, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
  ) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last axes, those of normalized_shape.
    https://arxiv.org/abs/1607.06450

    >>> Tensor([[1.0, 3.0]]).layer_norm(2, eps=0.0)
    Tensor([[-1.,  1.]])
    """
    axes = self._last("layer_norm", normalized_shape)
    x = self._wide()
    centered = x - x.mean(axes, True)
    out = (centered * (centered.square().mean(axes, True) + eps).rsqrt()).to(self.dtype)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias

  def rms_norm(
    self, normalized_shape: Sizes, weight: Tensor | None = None, eps: float | None = None
  ) -> Tensor:
    """x / sqrt(mean(x**2) + eps) * weight over the last axes, those of normalized_shape.
    https://arxiv.org/abs/1910.07467

    eps is the distance from 1 to the next float32 if None, as in PyTorch.
    """
    axes = self._last("rms_norm", normalized_shape)
    x = self._wide()
    tiny = float(dtypes.finfo(wide(self.dtype)).eps) if eps is None else eps
    out = (x * (x.square().mean(axes, True) + tiny).rsqrt()).to(self.dtype)
    return out if weight is None else out * weight

  def batch_norm(self, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
                 bias: Tensor | None = None, training: bool = False, momentum: float | Tensor = 0.1,
                 eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel, axis 1, as PyTorch's `F.batch_norm`.
    https://arxiv.org/abs/1502.03167

    training: mean and variance are those of the batch, and running_mean and running_var, where given, are moved towards
    them by a share `momentum`; otherwise the running ones are used. The running variance is without bias (over n - 1).

    >>> Tensor([[1.0], [3.0]]).batch_norm(None, None, training=True, eps=1e-9)
    Tensor([[-1.],
            [ 1.]])
    """
    if training and eps <= 0:
      fail(ArgumentError, f"batch_norm: eps is greater than 0, not {eps}", x=self)
    self._expect_channels(
      "batch_norm", running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    x, axes = self._wide(), (0, *range(2, self.ndim))
    if not training:
      if running_mean is None or running_var is None:
        fail(ArgumentError, "batch_norm: without running statistics it is for training only", x=self)
      mean, var = self._channels(running_mean), self._channels(running_var)
      return ((x - mean) * (var + eps).rsqrt()).to(self.dtype)._affine(weight, bias)
    n = prod(self.shape[a] for a in axes)
    varied = type(n) is Variable  # known only when it runs
    if not varied and n == 1:
      fail(ArgumentError, "batch_norm: a batch of one value for each channel has no variance", x=self)
    mean = x.mean(axes, True)
    var = (x - mean).square().mean(axes, True)
    share = Handle._final(n) / (n - 1) if varied else n / max(n - 1, 1)
    for running, now in ((running_mean, mean), (running_var, var * share)):
      if running is not None:
        running.assign(running + (now.detach().reshape(-1).to(running.dtype) - running) * momentum)
    return self._standardized(x, axes, mean, (var + eps).rsqrt(), weight, bias)

  def _standardized(self, x: Tensor, axes: tuple[int, ...], mean: Tensor, scale: Tensor, weight: Tensor | None,
                    bias: Tensor | None) -> Tensor:  # fmt: skip
    """(x - mean) * scale * weight + bias, where mean and scale are statistics of x over axes, and all else that weight
    and bias have one number for. Two sums, which are the gradients of bias and weight, are all that the gradient of x
    takes.
    """
    scales = [] if weight is None else [weight]
    given = [x, mean, scale, *scales, *([] if bias is None else [bias])]

    def rule(g: UOp, out: UOp, *nodes: UOp) -> tuple[UOp | None, ...]:
      back = self._new(g).to(mean.dtype)
      x, mean_, scale_, *affine = map(self._new, nodes)
      normal = (x - mean_) * scale_
      total, along = back.sum(axes, True), (back * normal).sum(axes, True)
      whole = scale_ * self._channels(affine[0]) if scales else scale_
      n = prod(self.shape[a] for a in axes)
      sums = [along, total] if scales else [total]
      rest = [t.reshape(-1).to(v.dtype)._node for t, v in zip(sums, affine)]
      return ((whole * (back - total / n - normal * (along / n)))._node, None, None, *rest)

    out = ((x - mean) * scale).to(self.dtype)._affine(weight, bias)
    return self._new(with_gradient(out._node, rule, *(v._node for v in given)))

  def _affine(self, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """x * weight + bias, with one number of each for a channel."""
    out: Any = self if weight is None else self * self._channels(weight)
    return out if bias is None else out + self._channels(bias)

  def _expect_channels(self, what: str, **given: Tensor | None) -> None:
    if self.ndim < 2 or self.dtype.kind != "f":
      fail(ShapeError, f"{what}: x holds floats, and channels are its axis 1", x=self)
    for name, v in given.items():
      if v is not None and v.shape != (self.shape[1],):
        about = f"{what}: {name} has one number for each channel, axis 1 of x"
        fail(ShapeError, about, "", **{"x": self, name: v})

  def _channels(self, v: Tensor) -> Tensor:
    """One number for each channel, to go with x."""
    return v.reshape(-1, *(1,) * (self.ndim - 2))

  def group_norm(
    self, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
  ) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias; mean and variance of each group of channels (axis 1) of each item
    of the batch (axis 0), weight and bias of each channel. https://arxiv.org/abs/1803.08494

    >>> Tensor([[1.0, 3.0, 5.0, 9.0]]).group_norm(2, eps=0.0)
    Tensor([[-1.,  1., -1.,  1.]])
    """
    self._expect_channels("group_norm", weight=weight, bias=bias)
    if num_groups < 1 or self.shape[1] % num_groups:
      fail(ShapeError, f"group_norm: {self.shape[1]} channels do not fall into {num_groups} groups", x=self)
    n = prod(self.shape[1:]) // num_groups
    x = self._wide().reshape(self.shape[0], num_groups, n)
    centered = x - x.mean(-1, True)
    out = (centered * (centered.square().mean(-1, True) + eps).rsqrt()).to(self.dtype).reshape(self.shape)
    return out._affine(weight, bias)

  def instance_norm(self, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                    momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """`batch_norm` of each item of the batch by itself, as PyTorch's `F.instance_norm`.
    https://arxiv.org/abs/1607.08022

    use_input_stats: mean and variance are those of each item and channel, and the running ones, where given, are moved
    towards their averages; otherwise the running ones are used.
    """
    if not use_input_stats:
      return self.batch_norm(running_mean, running_var, weight, bias, False, momentum, eps)
    self._expect_channels(
      "instance_norm", running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    if self.ndim < 3:
      fail(ShapeError, "instance_norm: x must have the axes batch, channel, and at least one more", x=self)
    x, axes = self._wide(), tuple(range(2, self.ndim))
    n = prod(self.shape[2:])
    if n < 2:
      fail(ArgumentError, "instance_norm: one value for each channel has no variance", x=self)
    if running_mean is not None and running_var is not None:
      for running, now in ((running_mean, x.mean(axes)), (running_var, x.var(axes))):
        share = now.detach().mean(0).to(running.dtype)
        running.assign(running + (share - running) * momentum)
    return self.group_norm(self.shape[1], weight, bias, eps)

  def layernorm(self, axis: Axes = -1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) over any axes."""
    centered = self - self.mean(axis, True)
    return centered * (centered.square().mean(axis, True) + eps).rsqrt()

  def _last(self, what: str, normalized_shape: Any) -> tuple[int, ...]:
    s = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    if not s or self.shape[-len(s) :] != s:
      fail(ShapeError, f"{what}: the last axes of x are not {s}", x=self)
    if self.dtype.kind != "f":
      fail(DTypeError, f"{what}: x is {self.dtype.name}; x.float() would fit", x=self)
    return tuple(range(self.ndim - len(s), self.ndim))

  def normalize(self, p: float = 2.0, axis: int = 1, eps: float = 1e-12, *, dim: int | None = None) -> Tensor:
    """x over its p-norm along an axis, the norm being at least eps."""
    return self / self.norm(p, axis if dim is None else dim, True).maximum(eps)

  # ---------------------------------------------------------------- dropout and embedding

  def dropout(self, p: float = 0.5, training: bool | None = None) -> Tensor:
    """Zeros with probability p, all else over 1 - p; only while training (`Tensor.training`, if None).

    The mask comes from the generator's state: it is computed again where it is needed again, and not kept.

    >>> Tensor.ones(3).dropout(0.5, training=False)
    Tensor([1., 1., 1.])
    """
    if not 0 <= p <= 1:
      fail(ArgumentError, f"dropout: {p} is no probability", x=self)
    if not (type(self).training if training is None else training) or p == 0:
      return self._new(self._node)
    kept = Distance.rand(*self.shape, device=self.device) >= p
    return kept.where(self * (1 / (1 - p)) if p < 1 else self * 0, 0)

  def embedding(self, index: Tensor) -> Tensor:
    """Rows of a table.   self: T[n, d]   index: int[..]   ->   T[.., d]

    IndexError, when it is computed, where an index is out of bounds.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).embedding(Tensor([1, 1, 0])).shape
    (3, 2)
    """
    if not isinstance(index, Handle) or index.dtype.kind not in "iu":
      fail(DTypeError, "embedding: the index is no integer tensor", table=self, index=index)
    return self[index]
