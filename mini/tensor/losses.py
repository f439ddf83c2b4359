"""Losses: how far what a model gives is from what it should give. PyTorch's names, arguments and reductions.

`reduction` is "mean", "sum" or "none". Logarithms of probabilities may be -inf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mini.gradient_rules import with_gradient
from mini.ir import graph
from mini.ir.uop import UOp
from mini.tensor.data import Operand
from mini.tensor.elementwise import sloped
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.normalize import Normalize
from mini.types import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
  from mini.tensor import Tensor

NEVER = (
  -1e30
)  # the logarithm of the probability of what cannot be; finite, so that differences of two of it are


class Losses(Normalize):
  """How far off a model is, as numbers to make small."""

  def _mean_or(self, reduction: str) -> Tensor:
    if reduction not in ("mean", "sum", "none"):
      fail(ArgumentError, f'reduction is "mean", "sum" or "none", not {reduction!r}', x=self)
    return self._new(self._node) if reduction == "none" else self.sum() if reduction == "sum" else self.mean()

  def cross_entropy(self, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                    reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """-log softmax(x)[target], for logits whose classes are axis 1 (axis 0 of a vector),
    as PyTorch's `F.cross_entropy`.

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
    if not 0 <= label_smoothing <= 1:
      fail(ArgumentError, f"cross_entropy: label_smoothing is between 0 and 1, not {label_smoothing}", x=self)
    x = self._wide()
    lse = x.logsumexp(axis, True)
    if target.dtype.kind == "f":
      self._expect_shape("cross_entropy", target, self.shape)
      if ignore_index >= 0:
        fail(ArgumentError, "cross_entropy: probabilities have no ignore_index", x=self, target=target)
      wanted = (
        target * (1 - label_smoothing) + label_smoothing / self.shape[axis] if label_smoothing else target
      )
      scores = (lse - x) * wanted
      scores = scores if weight is None else scores * self._per_class(weight)
      loss = scores.sum(axis).to(self.dtype)
      return loss._mean_or(reduction) if reduction != "mean" else (loss.sum() / max(loss.numel(), 1))
    self._expect_shape("cross_entropy", target, (*self.shape[:axis], *self.shape[axis + 1 :]))
    loss, scale = lse.squeeze(axis) - x._picked(target, axis, ignore_index), None
    if weight is not None:
      scale = self._per_class(weight).expand(self.shape)._picked(target, axis, ignore_index)
      loss = loss * scale
    if label_smoothing:
      spread = (lse - x) if weight is None else (lse - x) * self._per_class(weight)
      loss = loss * (1 - label_smoothing) + spread.sum(axis) * (label_smoothing / self.shape[axis])
    return self._counted(loss, scale, target, ignore_index, reduction)

  def _is_class(self, target: Tensor, axis: int) -> Tensor:
    """Where the class is the target's; compares, so that the backward pass is element by element."""
    classes = Handle._new(graph.iota(self.shape[axis], target.dtype))
    return classes.reshape((-1,) + (1,) * (self.ndim - 1 - axis)) == target.unsqueeze(axis)

  def _picked(self, target: Tensor, axis: int, ignore_index: int) -> Tensor:
    """x at the target's class, or at class 0 where that is ignored; an IndexError, when computed, if it is no class.
    Its gradient compares classes instead of scattering, so that the backward pass is element by element."""
    at = (target != ignore_index).where(target, 0).unsqueeze(axis)

    def rule(g: UOp, out: UOp, x: UOp) -> tuple[UOp]:
      return (self._is_class(at.squeeze(axis), axis).where(Handle._new(g), 0)._node,)

    found = self._new(with_gradient(self.gather(axis, at)._node, rule, self._node))
    return found.squeeze(axis)

  def _per_class(self, weight: Tensor) -> Tensor:
    if weight.shape != (self.shape[1 if self.ndim > 1 else 0],):
      fail(ShapeError, "cross_entropy: there must be one weight for each class", x=self, weight=weight)
    return weight.reshape((-1,) + (1,) * max(self.ndim - 2, 0))

  def _expect_shape(self, what: str, target: Tensor, wanted: tuple[int, ...]) -> None:
    if target.shape != wanted:
      classes_last = wanted == (*self.shape[:1], *self.shape[2:]) and target.shape == self.shape[:-1]
      fail(
        ShapeError,
        f"{what}: for x of shape {self.shape} the target has shape {wanted}, not {target.shape}",
        hint="x.movedim(-1, 1) would fit" if classes_last else "",
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
    self._expect_classes("nll_loss", target)
    self._expect_shape("nll_loss", target, (*self.shape[:axis], *self.shape[axis + 1 :]))
    loss, scale = -self._picked(target, axis, ignore_index), None
    if weight is not None:
      scale = self._per_class(weight).expand(self.shape)._picked(target, axis, ignore_index)
      loss = loss * scale
    return self._counted(loss, scale, target, ignore_index, reduction)

  def sparse_categorical_crossentropy(
    self, target: Tensor, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
  ) -> Tensor:
    """`cross_entropy` whose classes are the last axis."""
    flat = self.reshape(-1, self.shape[-1])
    loss = flat.cross_entropy(target.reshape(-1), None, ignore_index, reduction, label_smoothing)
    return loss.reshape(target.shape) if reduction == "none" else loss

  def mse_loss(self, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """(x - target)**2. weight: of each element, T in x's shape; the mean is then weighted, too.

    >>> Tensor([1.0, 2.0]).mse_loss(Tensor([1.0, 4.0]))
    Tensor(2.)
    """
    return self._weighted_mean("mse_loss", (self - target).square(), weight, reduction)

  def l1_loss(self, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """|x - target|; weight as in `mse_loss`."""
    return self._weighted_mean("l1_loss", (self - target).abs(), weight, reduction)

  def _weighted_mean(self, what: str, loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is not None and weight.shape != self.shape:
      fail(ShapeError, f"{what}: there is not a weight for each element", x=self, weight=weight)
    if weight is None or reduction != "mean" or what == "huber_loss":
      return _weighted(loss, weight)._mean_or(reduction)
    return (loss * weight).sum() / weight.sum()

  def smooth_l1_loss(self, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """(x - target)**2 / (2 beta) where |x - target| < beta, else |x - target| - beta / 2."""
    if not beta >= 0:
      fail(ArgumentError, f"smooth_l1_loss: beta is 0 or greater, not {beta}", x=self)
    if not beta:
      return (self - target).abs()._mean_or(reduction)
    return ((self - target)._huber(beta) / beta)._mean_or(reduction)

  def huber_loss(
    self, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
  ) -> Tensor:
    """(x - target)**2 / 2 where |x - target| <= delta, else delta * (|x - target| - delta / 2); times weight, if it is
    given: T in x's shape. The mean is over the number of elements, as PyTorch's."""
    if isinstance(delta, complex) or not delta > 0:
      fail(ArgumentError, f"huber_loss: delta is a number greater than 0, not {delta}", x=self)
    return self._weighted_mean("huber_loss", (self - target)._huber(delta), weight, reduction)

  def _huber(self, delta: float) -> Tensor:
    """a**2 / 2 where |a| <= delta, else delta * (|a| - delta / 2)."""
    d = self.abs()
    loss = (d <= delta).where(d.square() / 2, delta * (d - delta / 2))
    return sloped(loss, lambda x, y: x.clamp(-delta, delta), self)

  def binary_cross_entropy(
    self, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
  ) -> Tensor:
    """-(t log x + (1 - t) log(1 - x)), the logarithms being at least -100, for probabilities x.

    >>> Tensor([0.5]).binary_cross_entropy(Tensor([1.0]))
    Tensor(0.6931472)
    """
    self._expect_shape("binary_cross_entropy", target, self.shape)
    yes, no = self.log().maximum(-100), (-self).log1p().maximum(-100)
    loss = -(target * yes + (1 - target) * no)

    def slopes(p: Tensor, t: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
      both = (p * (1 - p)).maximum(1e-12)
      bend = lambda p, t, y: ((p * p - 2 * p * t + t) / both / both, -1 / both)
      return sloped((p - t) / both, bend, p, t), no - yes

    return _weighted(sloped(loss, slopes, self, target), weight)._mean_or(reduction)

  def binary_cross_entropy_with_logits(
    self,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
  ) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; pos_weight: what t log x is multiplied by."""
    self._expect_shape("binary_cross_entropy_with_logits", target, self.shape)
    if pos_weight is None:
      loss = self._log_loss(target)
    else:
      loss = (1 - target) * self - (1 + (pos_weight - 1) * target) * self.logsigmoid()
    return _weighted(loss, weight)._mean_or(reduction)

  def _log_loss(self, target: Tensor) -> Tensor:
    """softplus(x) - x * target, where the two do not cancel."""
    loss = self * ((self > 0).where(1, 0) - target) + (-self.abs()).exp().log1p()
    return sloped(loss, lambda x, t, y: (x.sigmoid() - t, -x), self, target)

  def binary_crossentropy(self, target: Tensor, reduction: str = "mean") -> Tensor:
    """tinygrad's name of `binary_cross_entropy`."""
    return self.binary_cross_entropy(target, None, reduction)

  def binary_crossentropy_logits(
    self, target: Tensor, reduction: str = "mean", pos_weight: Tensor | None = None
  ) -> Tensor:
    """tinygrad's name of `binary_cross_entropy_with_logits`."""
    return self.binary_cross_entropy_with_logits(target, None, reduction, pos_weight)

  def kl_div(self, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log target - x); reduction may also be "batchmean": the sum over the size of axis 0."""
    if log_target:
      loss = target.exp() * (target - self)
    else:
      none = target == 0
      loss = none.where(0, target * (none.where(1, target).log() - self))
    if reduction == "batchmean":
      return loss.sum() / self.shape[0] if self.ndim else loss.sum()
    return loss._mean_or(reduction)

  # ---------------------------------------------------------------- of distributions

  def poisson_nll_loss(
    self,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
  ) -> Tensor:
    """exp(x) - target * x; without log_input x - target * log(x + eps). full: with Stirling's log(target!)."""
    loss = self.exp() - target * self if log_input else self - target * (self + eps).log()
    if full:
      many = target > 1
      t = many.where(target, 1)
      loss = loss + many.where(t * t.log() - t + 0.5 * (2 * math.pi * t).log(), 0)
    return loss._mean_or(reduction)

  def gaussian_nll_loss(
    self, target: Tensor, var: Operand, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
  ) -> Tensor:
    """(log var + (x - target)**2 / var) / 2, var being at least eps; full: with log(2 pi) / 2.

    var: a number, or T in x's shape, or without its last axis, or with that of size 1
    """
    spread: Any = var if isinstance(var, Handle) else self.full_like(var)
    if self.ndim and spread.shape == self.shape[:-1]:
      spread = spread.unsqueeze(-1)
    spread = spread + (spread.maximum(eps) - spread).detach()
    loss = 0.5 * (spread.log() + (self - target).square() / spread)
    return (loss + 0.5 * math.log(2 * math.pi) if full else loss)._mean_or(reduction)

  # ---------------------------------------------------------------- of margins

  def hinge_embedding_loss(self, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """x where the target is 1; max(0, margin - x) where it is -1."""
    near, far = (target == -1).where(0, self), (target == 1).where(0, (margin - self).clamp(min=0))
    return (near + far)._mean_or(reduction)

  def margin_ranking_loss(
    self, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
  ) -> Tensor:
    """max(0, -target * (x - input2) + margin): with the target 1, x should be the larger one."""
    return (-target * (self - input2) + margin).clamp(min=0)._mean_or(reduction)

  def soft_margin_loss(self, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * x)), without overflow; targets are 1 and -1."""
    return (-(self * target).logsigmoid())._mean_or(reduction)

  def multilabel_soft_margin_loss(
    self, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
  ) -> Tensor:
    """The mean over the last axis, of classes, of `binary_cross_entropy_with_logits`."""
    loss = -(target * self.logsigmoid() + (1 - target) * (-self).logsigmoid())
    return _weighted(loss, weight).mean(-1)._mean_or(reduction)

  def multi_margin_loss(
    self,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
  ) -> Tensor:
    """The mean over classes i, but for the target's, of max(0, margin - x[target] + x[i]) ** p.

    self: T[N, C] or T[C]   target: int[N] or int[]   weight: T[C]
    """
    if not self.ndim:
      return self.reshape(1).multi_margin_loss(target, p, margin, weight, reduction)
    self._some_classes("multi_margin_loss")
    self._expect_classes("multi_margin_loss", target)
    if self.ndim == 1 and target.shape == (1,):
      target = target.reshape(())
    self._expect_shape("multi_margin_loss", target, self.shape[:-1])
    hit = self._is_class(target, self.ndim - 1)
    gap = (margin - hit.where(self, 0).sum(-1, True) + self).relu()
    loss = hit.where(0, gap if p == 1 else gap**p)
    if weight is not None:
      loss = loss * hit.where(self._per_class(weight), 0).sum(-1, True)
    return loss.mean(-1)._mean_or(reduction)

  def multilabel_margin_loss(self, target: Tensor, reduction: str = "mean") -> Tensor:
    """The sum of max(0, 1 - x[j] + x[i]) over targets j and other classes i, over the number of classes.

    self: T[N, C] or T[C]   target: int[N, C] or int[C], the classes before the first -1
    """
    if not self.ndim:
      return self.reshape(1).multilabel_margin_loss(target.reshape(1), reduction)
    self._some_classes("multilabel_margin_loss")
    self._expect_classes("multilabel_margin_loss", target)
    self._expect_shape("multilabel_margin_loss", target, self.shape)
    held = (target < 0).cumsum(-1) == 0
    classes = Handle._new(graph.iota(self.shape[-1], target.dtype))
    hit = held.unsqueeze(-1) & (target.unsqueeze(-1) == classes)  # [.., which target, class]
    wanted = hit.where(self.unsqueeze(-2), 0).sum(-1, True)
    gap = (1 - wanted + self.unsqueeze(-2)).relu()
    counts = held.unsqueeze(-1) & hit.any(-2, True).logical_not()
    return (counts.where(gap, 0).sum((-2, -1)) / self.shape[-1])._mean_or(reduction)

  def _expect_classes(self, what: str, target: Tensor) -> None:
    if target.dtype.kind not in "iu":
      fail(
        ArgumentError,
        f"{what}: the target has classes, integers, and not {target.dtype.name}",
        x=self,
        target=target,
      )

  def _some_classes(self, what: str) -> None:
    if self.ndim > 2 or not self.shape[-1]:
      fail(ShapeError, f"{what}: x is a vector or a matrix, of one class or more", x=self)

  # ---------------------------------------------------------------- of distances

  def triplet_margin_loss(
    self,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
  ) -> Tensor:
    """max(0, |x - positive| - |x - negative| + margin), with `pairwise_distance`.

    swap: |positive - negative| counts instead of |x - negative| where it is smaller.
    """
    return self.triplet_margin_with_distance_loss(
      positive, negative, lambda a, b: a.pairwise_distance(b, p, eps), margin, swap, reduction
    )

  def triplet_margin_with_distance_loss(
    self,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
  ) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own, a function of two tensors."""
    if margin <= 0:
      fail(ArgumentError, f"triplet_margin_loss: margin is greater than 0, not {margin}", x=self)
    between = distance_function or (lambda a, b: a.pairwise_distance(b))
    near, far = between(self, positive), between(self, negative)
    if swap:
      far = far.minimum(between(positive, negative))
    return (near - far + margin).clamp(min=0)._mean_or(reduction)

  def cosine_embedding_loss(
    self, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
  ) -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1; cos of the angle along the last axis."""
    squares = (self.square().sum(-1) + 1e-12) * (input2.square().sum(-1) + 1e-12)
    cos = (self * input2).sum(-1) / squares.sqrt()
    near, far = (target == 1).where(1 - cos, 0), (target == -1).where((cos - margin).clamp(min=0), 0)
    return (near + far)._mean_or(reduction)

  # ---------------------------------------------------------------- of sequences

  def ctc_loss(
    self,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
  ) -> Tensor:
    """Connectionist temporal classification: -log of the probability of all ways to spell the target over time.
    A. Graves et al., Connectionist temporal classification, ICML 2006.

    self: T[T, N, C] of log probabilities   targets: int[N, S], or int[sum of target_lengths]   lengths: ints, [N]
    Without a batch, N is absent. "mean" divides each loss by its target's length first. Where a target does not
    fit, the loss is infinite; 0 with zero_infinity.

    >>> Tensor([[0.5, 0.5], [0.5, 0.5]]).log().ctc_loss(Tensor([1]), 2, 1)
    Tensor(0.2876821)
    """
    if targets.dtype.kind not in "iu":
      fail(DTypeError, "ctc_loss: targets are integers", x=self, targets=targets)
    if self.ndim == 2:
      times, size = (Handle._final(n, device=self.device) for n in (input_lengths, target_lengths))
      for name, n in (("input_lengths", times), ("target_lengths", size)):
        if n.numel() != 1:
          fail(ShapeError, f"ctc_loss: without a batch {name} is one number", x=self, lengths=n)
      times, size = times.reshape(1), size.reshape(1)
      loss = self.unsqueeze(1).ctc_loss(targets.reshape(1, -1), times, size, blank, reduction, zero_infinity)
      return loss.reshape(()) if reduction == "none" else loss
    if self.ndim != 3:
      fail(ShapeError, "ctc_loss: log probabilities have the axes time, batch and class", x=self)
    times, size = (_lengths(n, self.device) for n in (input_lengths, target_lengths))
    if targets.ndim == 1:
      targets = _padded(targets, size.tolist())
    steps, batch, classes = self.shape
    if targets.shape[0] != batch or times.shape != (batch,) or size.shape != (batch,):
      fail(
        ShapeError, f"ctc_loss: targets and lengths are not of a batch of {batch}", x=self, targets=targets
      )
    x, s = self._wide(), targets.shape[1]
    # blank, label, blank, label, .., blank: what is spelled, and the labels that may follow the one before at once
    spelled = targets.unsqueeze(-1).pad((1, 0), value=blank).reshape(batch, 2 * s).pad((0, 1), value=blank)
    place = Handle._new(graph.iota(2 * s + 1))
    before = spelled.pad((2, -2), value=blank)
    jumps = (spelled != blank) & (spelled != before)
    index = spelled.clamp(0, classes - 1).expand(steps, batch, 2 * s + 1)
    scores = x.gather(2, index)  # [T, N, 2 S + 1]
    alive = Handle._new(graph.iota(steps)).reshape(-1, 1, 1) < times.reshape(1, -1, 1)
    way = _spelled((place < 2).where(scores[0], NEVER), scores, jumps, alive)
    last = 2 * size.unsqueeze(1)
    loss = -((place == last) | (place == last - 1)).where(way, NEVER).logsumexp(1)
    fits = loss < -NEVER / 2
    loss = fits.where(loss, 0 if zero_infinity else math.inf).to(self.dtype)
    return (loss / size.maximum(1)).mean() if reduction == "mean" else loss._mean_or(reduction)


def _spelled(way: Tensor, scores: Tensor, jumps: Tensor, alive: Tensor) -> Tensor:
  """The logarithm of the probability of all ways to each place of what is spelled, after all steps.

  way: T[N, L], those after the first step   scores: T[T, N, L]   jumps: bool[N, L]   alive: bool[T, N, 1]
  """
  for t in range(
    1, scores.shape[0]
  ):  # what a step reads is apart in memory, so that all steps are one kernel
    score, lasts = scores[t].contiguous(), alive[t].contiguous()
    one, two = way.pad((1, -1), value=NEVER), jumps.where(way.pad((2, -2), value=NEVER), NEVER)
    top = way.maximum(one).maximum(two).detach()
    total = (way - top).exp() + (one - top).exp() + (two - top).exp()
    way = lasts.where(top + total.log() + score, way)
  return way


def _weighted(loss: Tensor, weight: Tensor | None) -> Tensor:
  return loss if weight is None else loss * weight


def _lengths(lengths: Any, device: Any) -> Tensor:
  given = isinstance(lengths, Handle)
  return lengths if given else Handle._final(list(lengths), device=device)  # type: ignore[return-value]


def _padded(targets: Tensor, lengths: Sequence[int]) -> Tensor:
  """Rows of these lengths, which stand one after another, as a matrix; what is behind a row's end does not count."""
  rows, at = [], 0
  for n in lengths:
    rows.append(targets[at : at + n].pad((0, max(lengths) - n)))
    at += n
  return rows[0].stack(*rows[1:])
