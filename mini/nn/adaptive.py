"""A softmax over very many classes, of which most are rare. https://arxiv.org/abs/1609.04309"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from mini.nn.layers import Linear, ModuleList, Sequential
from mini.nn.module import Module
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError, ShapeError


class AdaptiveOutput(NamedTuple):
  """output: T[n], the logarithm of each target's probability; loss: its mean, negative."""

  output: Tensor
  loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
  """The classes in order of how often they come; those from cutoffs[i] to cutoffs[i + 1] - 1 are a cluster, whose
  matrix has an inner size that is div_value times smaller than the one before.   T[n, k], int[n] -> (T[n], T[])

  Every row is computed in every cluster, so that no shape depends on the targets. ValueError where the cutoffs do not
  rise, or are not within 1..n_classes - 1.

  >>> m = AdaptiveLogSoftmaxWithLoss(16, 100, [10, 40])
  >>> [tuple(p.shape) for p in m.parameters()]
  [(12, 16), (4, 16), (30, 4), (1, 16), (60, 1)]
  >>> m(Tensor.ones(3, 16), Tensor([0, 50, 99])).output.shape
  (3,)
  """

  def __init__(
    self,
    in_features: int,
    n_classes: int,
    cutoffs: Sequence[int],
    div_value: float = 4.0,
    head_bias: bool = False,
    device: str | None = None,
    dtype: Any = None,
  ):
    bounds = [0, *cutoffs, n_classes]
    if not cutoffs or any(a >= b for a, b in pairwise(bounds)):
      raise ArgumentError(
        f"AdaptiveLogSoftmaxWithLoss: the cutoffs rise within 1..{n_classes - 1}, not {list(cutoffs)}"
      )
    self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
    self.cutoffs = bounds[1:]
    sizes = [b - a for a, b in pairwise(self.cutoffs)]
    common = {"device": device, "dtype": dtype}
    self.head = Linear(in_features, cutoffs[0] + len(sizes), head_bias, **common)
    self.tail = ModuleList()
    for n, size in enumerate(sizes, 1):
      inner = int(in_features // div_value**n)
      self.tail.append(
        Sequential(Linear(in_features, inner, False, **common), Linear(inner, size, False, **common))
      )

  def log_prob(self, x: Tensor) -> Tensor:
    """The logarithms of all classes' probabilities.   T[n, k] -> T[n, n_classes]"""
    if x.ndim != 2 or x.shape[1] != self.in_features:
      fail(ShapeError, f"AdaptiveLogSoftmaxWithLoss: x is T[n, {self.in_features}]", x=x)
    first = self.cutoffs[0]
    head = self.head(x).log_softmax(1)
    rare = [m(x).log_softmax(1) + head[:, first + n, None] for n, m in enumerate(self.tail)]
    return head[:, :first].cat(*rare, dim=1)

  def predict(self, x: Tensor) -> Tensor:
    """The most probable class of each row.   T[n, k] -> int64[n]"""
    return self.log_prob(x).argmax(1)

  def forward(self, input: Tensor, target: Tensor) -> AdaptiveOutput:
    if input.ndim == 1 and target.ndim == 0:
      out = self.log_prob(input.unsqueeze(0))[0].gather(0, target.unsqueeze(0)).squeeze(0)
    elif input.ndim == 2 and target.shape == input.shape[:1]:
      out = self.log_prob(input).gather(1, target.unsqueeze(1)).squeeze(1)
    else:
      fail(
        ShapeError, "AdaptiveLogSoftmaxWithLoss: x and target are T[n, k] and int[n]", x=input, target=target
      )
    return AdaptiveOutput(out, -out.mean())


__all__ = ["AdaptiveLogSoftmaxWithLoss"]
