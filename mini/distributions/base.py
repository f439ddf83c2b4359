"""What every distribution has: shapes, samples, and what follows of its density; and distributions made of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.data import sizes_of
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.types import ArgumentError, MiniError, Size, dtypes

CONDITIONS = {
  "positive": lambda x: x > 0,
  "not negative": lambda x: x >= 0,
  "a probability": lambda x: (x >= 0) & (x <= 1),
}


def tensors(*values: Any) -> list[Any]:
  """Parameters as float tensors of one shape."""
  first: Any = next((x for x in values if isinstance(x, Handle)), None)
  kind = dtypes.default_float if first is None or first.dtype.kind != "f" else first.dtype
  made: list[Any] = [
    x if isinstance(x, Handle) else Tensor(x, kind, None if first is None else first.device) for x in values
  ]
  made = [x if x.dtype.kind == "f" else x.cast(kind) for x in made]
  return list(Tensor.broadcast_tensors(*made))


class Distribution:
  """A distribution: a batch of them has batch_shape, what is drawn of one event_shape.

  A family has `parameters`, each with the condition for it, `draw` (a sample of a shape), `log_prob`, and of `mean`,
  `variance`, `entropy`, `cdf`, `icdf`, `mode` what is known in closed form.
  """

  parameters: tuple[tuple[str, str], ...] = ()
  event_dim = 0  # axes of what is drawn
  has_rsample = True  # do gradients pass through samples?
  event_shape: Size = Size()

  def __init__(self, *values: Any, validate_args: bool | None = None):
    self._check(values, validate_args)
    held = tensors(*values)
    for (name, _), x in zip(self.parameters, held):
      setattr(self, name, x)
    self._shapes(held[0].shape)

  def _check(self, values: Sequence[Any], validate_args: bool | None) -> None:
    for (name, condition), x in zip(self.parameters, values):
      known = validate_args if isinstance(x, Handle) else validate_args is not False
      if not condition or not known:
        continue
      if not (CONDITIONS[condition](x if isinstance(x, Handle) else np.asarray(x))).all():
        fail(ArgumentError, f"{type(self).__name__}: {name} is {condition}, and not {x}")

  def _shapes(self, shape: tuple[int, ...]) -> None:
    cut = len(shape) - self.event_dim
    self.batch_shape, self.event_shape = Size(shape[:cut]), Size(shape[cut:])

  def draw(self, shape: tuple[int, ...]) -> Any:
    """A sample of a shape, which ends with those of the batch and the event."""
    return self._unknown("sample")

  def log_prob(self, value: Any) -> Any:
    """The logarithm of the density, or of the probability, of values: T[.., *batch, *event] -> T[.., *batch]."""
    return self._unknown("log_prob")

  def rsample(self, sample_shape: Any = ()) -> Any:
    """A sample T[*sample_shape, *batch, *event], through which gradients pass to the parameters."""
    if not self.has_rsample:
      self._unknown("rsample")
    return self.draw((*sizes_of((sample_shape,)), *self.batch_shape, *self.event_shape))

  def sample(self, sample_shape: Any = ()) -> Any:
    """A sample T[*sample_shape, *batch, *event], to which no gradient is passed."""
    with no_grad():
      return self.draw((*sizes_of((sample_shape,)), *self.batch_shape, *self.event_shape)).detach()

  def _unknown(self, what: str) -> Any:
    fail(MiniError, f"{type(self).__name__} has no {what}")

  @property
  def mean(self) -> Any:
    """The expected value."""
    return self._unknown("mean")

  @property
  def variance(self) -> Any:
    """The expected square of the distance from the mean."""
    return self._unknown("variance")

  @property
  def stddev(self) -> Any:
    """The root of the variance."""
    return self.variance.sqrt()

  @property
  def mode(self) -> Any:
    """Where the density is largest."""
    return self._unknown("mode")

  def entropy(self) -> Any:
    """The expected -log_prob."""
    return self._unknown("entropy")

  def perplexity(self) -> Any:
    """exp(entropy)."""
    return self.entropy().exp()

  def cdf(self, value: Any) -> Any:
    """The probability of what is below."""
    return self._unknown("cdf")

  def icdf(self, value: Any) -> Any:
    """The inverse of `cdf`."""
    return self._unknown("icdf")

  def expand(self, batch_shape: Any) -> Any:
    """The same for a batch of another shape, to which its own repeats."""
    batch = sizes_of((batch_shape,))
    other = object.__new__(type(self))
    for name, x in vars(self).items():
      own = x.shape[len(self.batch_shape) :] if isinstance(x, Tensor) else ()
      setattr(other, name, x.expand(*batch, *own) if isinstance(x, Tensor) else x)
    other.batch_shape = Size(batch)
    return other

  def __repr__(self) -> str:
    shown = ((name, getattr(self, name)) for name, _ in self.parameters)
    inner = ", ".join(f"{n}: {x.item() if not x.shape else tuple(x.shape)}" for n, x in shown)
    return f"{type(self).__name__}({inner})"


def of_event(x: Any, n: int) -> Any:
  """The sum over the last n axes."""
  return x.sum(tuple(range(x.ndim - n, x.ndim))) if n else x


class Independent(Distribution):
  """The last axes of a batch as axes of one event.

  >>> d = mini.distributions.Independent(mini.distributions.Normal(Tensor.zeros(2, 3), 1.0), 1)
  >>> d.batch_shape, d.event_shape, d.log_prob(Tensor.zeros(2, 3)).shape
  ((2,), (3,), (2,))
  """

  def __init__(
    self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: Any = None
  ):
    self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
    if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
      fail(ArgumentError, f"Independent: the batch has less than {reinterpreted_batch_ndims} axes")
    cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
    shape = base_distribution.batch_shape + base_distribution.event_shape
    self.batch_shape, self.event_shape = Size(shape[:cut]), Size(shape[cut:])
    self.has_rsample = base_distribution.has_rsample

  def draw(self, shape: tuple[int, ...]) -> Any:
    return self.base_dist.draw(shape)

  def log_prob(self, value: Any) -> Any:
    return of_event(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

  def entropy(self) -> Any:
    return of_event(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

  def expand(self, batch_shape: Any) -> Any:
    inner = self.base_dist.batch_shape[len(self.batch_shape) :]
    return Independent(
      self.base_dist.expand((*sizes_of((batch_shape,)), *inner)), self.reinterpreted_batch_ndims
    )

  mean = property(lambda self: self.base_dist.mean)
  variance = property(lambda self: self.base_dist.variance)
  mode = property(lambda self: self.base_dist.mode)

  def __repr__(self) -> str:
    return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
  """What transforms, one after another, make of samples of a distribution.

  >>> t = mini.distributions.transforms
  >>> d = mini.distributions.TransformedDistribution(mini.distributions.Normal(0.0, 1.0), [t.ExpTransform()])
  >>> d.log_prob(Tensor([1.0])).round(decimals=4)
  Tensor([-0.9189])
  """

  def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: Any = None):
    self.base_dist = base_distribution
    self.transforms = list(transforms) if isinstance(transforms, (list, tuple)) else [transforms]
    self.batch_shape, self.event_shape = base_distribution.batch_shape, base_distribution.event_shape
    self.has_rsample = base_distribution.has_rsample

  def draw(self, shape: tuple[int, ...]) -> Any:
    x = self.base_dist.draw(shape)
    for t in self.transforms:
      x = t(x)
    return x

  def log_prob(self, value: Any) -> Any:
    y, lost = value, 0
    for t in reversed(self.transforms):
      x = t.inv(y)
      lost, y = lost + of_event(t.log_abs_det_jacobian(x, y), len(self.event_shape)), x
    return self.base_dist.log_prob(y) - lost

  def cdf(self, value: Any) -> Any:
    sign = 1
    for t in reversed(self.transforms):
      value, sign = t.inv(value), sign * t.sign
    below = self.base_dist.cdf(value)
    return below if isinstance(sign, int) and sign == 1 else sign * (below - 0.5) + 0.5

  def icdf(self, value: Any) -> Any:
    sign = 1
    for t in self.transforms:
      sign = sign * t.sign
    x = self.base_dist.icdf(value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5)
    for t in self.transforms:
      x = t(x)
    return x

  def expand(self, batch_shape: Any) -> Any:
    return TransformedDistribution(self.base_dist.expand(batch_shape), self.transforms)

  def __repr__(self) -> str:
    return f"{type(self).__name__}({self.base_dist!r}, {self.transforms})"


__all__ = ["Distribution", "Independent", "TransformedDistribution"]
