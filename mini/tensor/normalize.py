"""Normalization, embedding, dropout, and losses.

Losses take `reduction`: "mean", "sum" or "none". Halves are normalized in float32 and rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mini.ir import graph
from mini.tensor.handle import Handle, fail, wide
from mini.tensor.pooling import Pooling
from mini.types import DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Normalize(Pooling):
  """What networks are made of, besides products."""

  training: bool = (
    False  # does dropout act, and does batch norm learn? Set by `with Tensor.train():` or by hand
  )

  # ---------------------------------------------------------------- normalization

  def layer_norm(
    self, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
  ) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last axes, those of normalized_shape. https://arxiv.org/abs/1607.06450

    >>> Tensor([[1.0, 3.0]]).layer_norm(2, eps=0.0)
    Tensor([[-1.,  1.]])
    """
    axes = self._last("layer_norm", normalized_shape)
    x = self._wide()
    centered = x - x.mean(axes, True)
    out = (centered * (centered.square().mean(axes, True) + eps).rsqrt()).to(self.dtype)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias

  def rms_norm(self, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x**2) + eps) * weight over the last axes, those of normalized_shape. https://arxiv.org/abs/1910.07467

    eps is the distance from 1 to the next float32 if None, as in PyTorch.
    """
    axes = self._last("rms_norm", normalized_shape)
    x = self._wide()
    tiny = float(dtypes.finfo(wide(self.dtype)).eps) if eps is None else eps
    out = (x * (x.square().mean(axes, True) + tiny).rsqrt()).to(self.dtype)
    return out if weight is None else out * weight

  def batch_norm(self, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None,
                 training: bool = False, momentum: float | Tensor = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel, axis 1, as PyTorch's `F.batch_norm`. https://arxiv.org/abs/1502.03167

    training: mean and variance are those of the batch, and running_mean and running_var, where given, are moved towards
    them by a share `momentum`; otherwise the running ones are used. The running variance is without bias (over n - 1).

    >>> Tensor([[1.0], [3.0]]).batch_norm(None, None, training=True, eps=0.0)
    Tensor([[-1.],
            [ 1.]])
    """
    if self.ndim < 2 or self.dtype.kind != "f":
      fail(ShapeError, "batch_norm: x holds floats, and channels are its axis 1", x=self)
    x, axes = self._wide(), (0, *range(2, self.ndim))
    if training:
      n = self.numel() // max(self.shape[1], 1)
      if n < 2:
        fail(ValueError, "batch_norm: a batch of one value for each channel has no variance", x=self)
      mean = x.mean(axes, True)
      centered = x - mean
      var = centered.square().mean(axes, True)
      for running, now in ((running_mean, mean), (running_var, var * (n / (n - 1)))):
        if running is not None:
          running.assign(running + (now.detach().reshape(-1).to(running.dtype) - running) * momentum)
    else:
      if running_mean is None or running_var is None:
        fail(ValueError, "batch_norm: without running statistics it is for training only", x=self)
      mean, var = self._channels(running_mean), self._channels(running_var)
      centered = x - mean
    out = (centered * (var + eps).rsqrt()).to(self.dtype)
    out = out if weight is None else out * self._channels(weight)
    return out if bias is None else out + self._channels(bias)

  def _channels(self, v: Tensor) -> Tensor:
    """One number for each channel, to go with x."""
    if v.shape != (self.shape[1],):
      fail(ShapeError, "batch_norm: there must be one number for each channel, axis 1 of x", x=self, v=v)
    return v.reshape(-1, *(1,) * (self.ndim - 2))

  def layernorm(self, axis: Any = -1, eps: float = 1e-5) -> Tensor:
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
      fail(ValueError, f"dropout: {p} is no probability", x=self)
    if not (type(self).training if training is None else training) or p == 0:
      return self._new(self.uop)
    kept = Pooling.rand(*self.shape, device=self.device) >= p
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

  # ---------------------------------------------------------------- losses

  def _mean_or(self, reduction: str) -> Tensor:
    if reduction not in ("mean", "sum", "none"):
      fail(ValueError, f'reduction is "mean", "sum" or "none", not {reduction!r}', x=self)
    return self._new(self.uop) if reduction == "none" else self.sum() if reduction == "sum" else self.mean()

  def cross_entropy(self, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                    label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """-log softmax(x)[target], for logits whose classes are axis 1 (axis 0 of a vector), as PyTorch's `F.cross_entropy`.

    self: T[N, C, ..]   target: int[N, ..], or T[N, C, ..] of probabilities   ->   a number, or T[N, ..] for "none"

    Targets equal to ignore_index count for nothing. weight: T[C]; the mean is then weighted, too.

    >>> Tensor([[0.0, 0.0]]).cross_entropy(Tensor([1]))
    Tensor(0.6931472)
    """
    axis = 1 if self.ndim > 1 else 0
    if not self.ndim or self.dtype.kind != "f":
      fail(
        DTypeError if self.ndim else ShapeError,
        "cross_entropy: x holds logits, floats with an axis of classes",
        x=self,
      )
    x = self._wide()
    lse = x.logsumexp(axis, True)
    if target.dtype.kind == "f":
      self._expect_shape("cross_entropy", target, self.shape)
      wanted = (
        target * (1 - label_smoothing) + label_smoothing / self.shape[axis] if label_smoothing else target
      )
      scores = (lse - x) * wanted
      scores = scores if weight is None else scores * self._per_class(weight)
      loss = scores.sum(axis).to(self.dtype)
      return loss._mean_or(reduction) if reduction != "mean" else (loss.sum() / max(loss.numel(), 1))
    self._expect_shape("cross_entropy", target, (*self.shape[:axis], *self.shape[axis + 1 :]))
    hit = self._is_class(target, axis)
    picked = hit.where(x, 0).sum(axis)
    loss, scale = lse.squeeze(axis) - picked, None
    if weight is not None:
      scale = hit.where(self._per_class(weight), 0).sum(axis)
      loss = loss * scale
    if label_smoothing:
      spread = (lse - x) if weight is None else (lse - x) * self._per_class(weight)
      loss = loss * (1 - label_smoothing) + spread.sum(axis) * (label_smoothing / self.shape[axis])
    return self._counted(loss, scale, target, ignore_index, reduction)

  def _is_class(self, target: Tensor, axis: int) -> Tensor:
    """Where the class is the target's; compares, so that the backward pass is element by element."""
    classes = Handle._new(graph.iota(self.shape[axis], target.dtype)).reshape(
      (-1,) + (1,) * (self.ndim - 1 - axis)
    )
    return classes == target.unsqueeze(axis)

  def _per_class(self, weight: Tensor) -> Tensor:
    if weight.shape != (self.shape[1 if self.ndim > 1 else 0],):
      fail(ShapeError, "cross_entropy: there must be one weight for each class", x=self, weight=weight)
    return weight.reshape((-1,) + (1,) * max(self.ndim - 2, 0))

  def _expect_shape(self, what: str, target: Tensor, wanted: tuple[int, ...]) -> None:
    if target.shape != wanted:
      hint = (
        "x.transpose(1, -1) would fit"
        if self.ndim > 2 and (*self.shape[:1], *self.shape[2:-1], self.shape[1]) == target.shape[:-1]
        else ""
      )
      fail(
        ShapeError,
        f"{what}: for x of shape {self.shape} the target has shape {wanted}, not {target.shape}",
        hint=hint,
        x=self,
        target=target,
      )

  def _counted(
    self, loss: Tensor, scale: Tensor | None, target: Tensor, ignore_index: int, reduction: str
  ) -> Tensor:
    """Without what is to be ignored; the mean is over what counts."""
    counts = target != ignore_index
    loss = counts.where(loss, 0)
    if reduction != "mean":
      return loss.to(self.dtype)._mean_or(reduction)
    weights = counts.to(loss.dtype) if scale is None else counts.where(scale, 0)
    return (loss.sum() / weights.sum()).to(self.dtype)

  def nll_loss(
    self, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
  ) -> Tensor:
    """-x[target], for log probabilities whose classes are axis 1 (axis 0 of a vector).

    >>> Tensor([[0.5, 0.25]]).log().nll_loss(Tensor([1]))
    Tensor(1.3862944)
    """
    axis = 1 if self.ndim > 1 else 0
    self._expect_shape("nll_loss", target, (*self.shape[:axis], *self.shape[axis + 1 :]))
    hit = self._is_class(target, axis)
    loss, scale = -hit.where(self, 0).sum(axis), None
    if weight is not None:
      scale = hit.where(self._per_class(weight), 0).sum(axis)
      loss = loss * scale
    return self._counted(loss, scale, target, ignore_index, reduction)

  def sparse_categorical_crossentropy(
    self, target: Tensor, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
  ) -> Tensor:
    """`cross_entropy` whose classes are the last axis."""
    flat = self.reshape(-1, self.shape[-1])
    loss = flat.cross_entropy(target.reshape(-1), None, ignore_index, reduction, label_smoothing)
    return loss.reshape(target.shape) if reduction == "none" else loss

  def mse_loss(self, target: Tensor, reduction: str = "mean") -> Tensor:
    """(x - target)**2.

    >>> Tensor([1.0, 2.0]).mse_loss(Tensor([1.0, 4.0]))
    Tensor(2.)
    """
    return (self - target).square()._mean_or(reduction)

  def l1_loss(self, target: Tensor, reduction: str = "mean") -> Tensor:
    """|x - target|."""
    return (self - target).abs()._mean_or(reduction)

  def smooth_l1_loss(self, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """(x - target)**2 / (2 beta) where |x - target| < beta, else |x - target| - beta / 2."""
    d = (self - target).abs()
    return (
      (d < beta).where(d.square() / (2 * beta), d - beta / 2)._mean_or(reduction)
      if beta
      else d._mean_or(reduction)
    )

  def huber_loss(self, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """(x - target)**2 / 2 where |x - target| <= delta, else delta * (|x - target| - delta / 2)."""
    d = (self - target).abs()
    return (d <= delta).where(d.square() / 2, delta * (d - delta / 2))._mean_or(reduction)

  def binary_cross_entropy(
    self, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
  ) -> Tensor:
    """-(t log x + (1 - t) log(1 - x)), the logarithms being at least -100."""
    loss = -(target * self.log().maximum(-100) + (1 - target) * (-self).log1p().maximum(-100))
    return (loss if weight is None else loss * weight)._mean_or(reduction)

  def binary_cross_entropy_with_logits(
    self,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
  ) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow."""
    if pos_weight is None:
      loss = self.relu() - self * target + (-self.abs()).exp().log1p()
    else:
      loss = (1 - target) * self - (1 + (pos_weight - 1) * target) * self.logsigmoid()
    return (loss if weight is None else loss * weight)._mean_or(reduction)

  def kl_div(self, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log target - x); reduction may also be "batchmean": the sum over the size of axis 0."""
    loss = (
      target.exp() * (target - self) if log_target else (target > 0).where(target * (target.log() - self), 0)
    )
    return loss.sum() / self.shape[0] if reduction == "batchmean" else loss._mean_or(reduction)
