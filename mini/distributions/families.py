"""The families of distributions, by their formulas. Those of counts have no gradient through samples."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from mini.distributions.base import Distribution, TransformedDistribution, tensors
from mini.distributions.transforms import ExpTransform
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.tensor.lapack import solve_triangular
from mini.tensor.random import standard_gamma
from mini.types import ArgumentError, Size

special: Any = import_module("mini.special")
EULER = 0.5772156649015329
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
T = Any  # a tensor


def uniform(like: T, shape: tuple[int, ...]) -> T:
  """Numbers in (0, 1) of the type of a parameter, on its device."""
  u: Any = Tensor.rand(*shape, dtype=like.dtype, device=like.device)
  return u.maximum(1e-7) if like.dtype.itemsize < 8 else u.maximum(1e-16)


def normal(like: T, shape: tuple[int, ...]) -> T:
  return Tensor.randn(*shape, dtype=like.dtype, device=like.device)


def gamma(concentration: T, shape: tuple[int, ...]) -> T:
  """Gamma variables of rate 1, with the gradient of what has the same cumulative probability: by how that changes with
  the concentration, over the density. (M. Figurnov et al., Implicit reparameterization gradients, 2018.)"""
  a = concentration.expand(shape)
  x = standard_gamma(a.detach()).detach().maximum(1e-30)
  if not a.requires_grad:
    return x
  below, log = special.gammainc(a, x), ((a - 1) * x.log() - x - a.lgamma()).detach()
  return x + (below.detach() - below) * (-log).clamp(max=80).exp()


# ---------------------------------------------------------------- of one real number


class Normal(Distribution):
  """Mean loc, standard deviation scale.

  >>> d = mini.distributions.Normal(0.0, 2.0)
  >>> d.log_prob(Tensor([0.0, 2.0])).round(decimals=4)
  Tensor([-1.6121, -2.1121])
  """

  parameters = (("loc", ""), ("scale", "positive"))
  loc: T
  scale: T

  mean = mode = property(lambda self: self.loc)  # type: ignore[assignment]
  variance = property(lambda self: self.scale**2)

  def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
    super().__init__(loc, scale, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    return self.loc + self.scale * normal(self.loc, shape)

  def log_prob(self, value: T) -> T:
    return -0.5 * ((value - self.loc) / self.scale) ** 2 - self.scale.log() - HALF_LOG_2PI

  def entropy(self) -> T:
    return 0.5 + HALF_LOG_2PI + self.scale.log()

  def cdf(self, value: T) -> T:
    return 0.5 * ((self.loc - value) / self.scale * 0.5**0.5).erfc()

  def icdf(self, value: T) -> T:
    return self.loc + self.scale * special.ndtri(value)


class LogNormal(TransformedDistribution):
  """exp of a normal variable."""

  def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
    super().__init__(Normal(loc, scale, validate_args), ExpTransform())

  loc = property(lambda self: self.base_dist.loc)
  scale = property(lambda self: self.base_dist.scale)
  mean = property(lambda self: (self.loc + self.scale**2 / 2).exp())
  mode = property(lambda self: (self.loc - self.scale**2).exp())
  variance = property(lambda self: (self.scale**2).expm1() * (2 * self.loc + self.scale**2).exp())

  def entropy(self) -> T:
    return self.base_dist.entropy() + self.loc


class HalfNormal(Distribution):
  """The magnitude of a normal variable."""

  parameters = (("scale", "positive"),)
  scale: T
  mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
  mode = property(lambda self: self.scale * 0)
  variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi))

  def __init__(self, scale: Any, validate_args: bool | None = None):
    super().__init__(scale, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    return (self.scale * normal(self.scale, shape)).abs()

  def log_prob(self, value: T) -> T:
    density = -0.5 * (value / self.scale) ** 2 - self.scale.log() - HALF_LOG_2PI + math.log(2)
    return (value >= 0).where(density, -math.inf)

  def entropy(self) -> T:
    return 0.5 + HALF_LOG_2PI - math.log(2) + self.scale.log()

  def cdf(self, value: T) -> T:
    return (value / self.scale * 0.5**0.5).erf()

  def icdf(self, value: T) -> T:
    return self.scale * special.ndtri(0.5 * (value + 1))


class Uniform(Distribution):
  """Every number between low and high alike."""

  parameters = (("low", ""), ("high", ""))
  low: T
  high: T
  mean = property(lambda self: (self.low + self.high) / 2)
  mode = property(lambda self: self.low * math.nan)
  variance = property(lambda self: (self.high - self.low) ** 2 / 12)

  def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
    super().__init__(low, high, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    u: Any = Tensor.rand(*shape, dtype=self.low.dtype, device=self.low.device)
    return self.low + (self.high - self.low) * u

  def log_prob(self, value: T) -> T:
    inside = (value >= self.low) & (value < self.high)
    return inside.where(-(self.high - self.low).log(), -math.inf)

  def entropy(self) -> T:
    return (self.high - self.low).log()

  def cdf(self, value: T) -> T:
    return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

  def icdf(self, value: T) -> T:
    return self.low + (self.high - self.low) * value


class Exponential(Distribution):
  """The time to an event that happens `rate` times in a unit of it."""

  parameters = (("rate", "positive"),)
  rate: T
  mean = stddev = property(lambda self: 1 / self.rate)  # type: ignore[assignment]
  mode = property(lambda self: self.rate * 0)
  variance = property(lambda self: self.rate**-2)

  def __init__(self, rate: Any, validate_args: bool | None = None):
    super().__init__(rate, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    return -uniform(self.rate, shape).log() / self.rate

  def log_prob(self, value: T) -> T:
    return self.rate.log() - self.rate * value

  def entropy(self) -> T:
    return 1 - self.rate.log()

  def cdf(self, value: T) -> T:
    return -(-self.rate * value).expm1()

  def icdf(self, value: T) -> T:
    return -(-value).log1p() / self.rate


class Laplace(Distribution):
  """Exponential to both sides of loc."""

  parameters = (("loc", ""), ("scale", "positive"))
  loc: T
  scale: T
  mean = mode = property(lambda self: self.loc)  # type: ignore[assignment]
  variance = property(lambda self: 2 * self.scale**2)

  def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
    super().__init__(loc, scale, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    u = 2 * uniform(self.loc, shape) - 1
    return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

  def log_prob(self, value: T) -> T:
    return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

  def entropy(self) -> T:
    return 1 + (2 * self.scale).log()

  def cdf(self, value: T) -> T:
    off = (value - self.loc) / self.scale
    return 0.5 - 0.5 * off.sign() * (-off.abs()).expm1()

  def icdf(self, value: T) -> T:
    off = value - 0.5
    return self.loc - self.scale * off.sign() * (-2 * off.abs()).log1p()


class Cauchy(Distribution):
  """A ratio of two normal variables: it has no mean."""

  parameters = (("loc", ""), ("scale", "positive"))
  loc: T
  scale: T
  mode = property(lambda self: self.loc)
  mean = property(lambda self: self.loc * math.nan)
  variance = property(lambda self: self.loc * 0 + math.inf)

  def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
    super().__init__(loc, scale, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    return self.icdf(uniform(self.loc, shape))

  def log_prob(self, value: T) -> T:
    return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

  def entropy(self) -> T:
    return math.log(4 * math.pi) + self.scale.log()

  def cdf(self, value: T) -> T:
    return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

  def icdf(self, value: T) -> T:
    return self.loc + self.scale * (math.pi * (value - 0.5)).tan()


class Gumbel(Distribution):
  """The largest of many: -log(-log(u))."""

  parameters = (("loc", ""), ("scale", "positive"))
  loc: T
  scale: T
  mode = property(lambda self: self.loc)
  mean = property(lambda self: self.loc + EULER * self.scale)
  variance = property(lambda self: (math.pi * self.scale) ** 2 / 6)

  def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
    super().__init__(loc, scale, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    return self.icdf(uniform(self.loc, shape))

  def log_prob(self, value: T) -> T:
    y = (self.loc - value) / self.scale
    return y - y.exp() - self.scale.log()

  def entropy(self) -> T:
    return self.scale.log() + (1 + EULER)

  def cdf(self, value: T) -> T:
    return (-((self.loc - value) / self.scale).exp()).exp()

  def icdf(self, value: T) -> T:
    return self.loc - self.scale * (-value.log()).log()


class Gamma(Distribution):
  """The sum of `concentration` exponential variables of a rate; mean concentration / rate."""

  parameters = (("concentration", "positive"), ("rate", "positive"))
  concentration: T
  rate: T
  mean = property(lambda self: self.concentration / self.rate)
  mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
  variance = property(lambda self: self.concentration / self.rate**2)

  def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
    super().__init__(concentration, rate, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    return gamma(self.concentration, shape) / self.rate

  def log_prob(self, value: T) -> T:
    a, b = self.concentration, self.rate
    return a.xlogy(b) + (a - 1).xlogy(value) - b * value - a.lgamma()

  def entropy(self) -> T:
    a = self.concentration
    return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

  def cdf(self, value: T) -> T:
    return special.gammainc(self.concentration, self.rate * value)


class Chi2(Gamma):
  """The sum of df squares of normal variables."""

  def __init__(self, df: Any, validate_args: bool | None = None):
    (half,) = tensors(df)
    super().__init__(half * 0.5, 0.5, validate_args)

  df = property(lambda self: self.concentration * 2)


class StudentT(Distribution):
  """A normal variable over the root of a mean of df squares of others."""

  parameters = (("df", "positive"), ("loc", ""), ("scale", "positive"))
  df: T
  loc: T
  scale: T
  mean = property(lambda self: (self.df > 1).where(self.loc, math.nan))
  mode = property(lambda self: self.loc)

  def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
    super().__init__(df, loc, scale, validate_args=validate_args)

  @property
  def variance(self) -> T:
    wide = self.df > 2
    found = self.scale**2 * self.df / (wide.where(self.df, 3) - 2)
    return wide.where(found, (self.df > 1).where(math.inf, math.nan))

  def draw(self, shape: tuple[int, ...]) -> T:
    squares = gamma(self.df * 0.5, shape) * 2
    return self.loc + self.scale * normal(self.loc, shape) * (squares / self.df).rsqrt()

  def log_prob(self, value: T) -> T:
    y, n = (value - self.loc) / self.scale, self.df
    scale = self.scale.log() + 0.5 * (n * math.pi).log() + (n * 0.5).lgamma() - ((n + 1) * 0.5).lgamma()
    return -0.5 * (n + 1) * (y * y / n).log1p() - scale

  def entropy(self) -> T:
    n = self.df
    lbeta = (n * 0.5).lgamma() + math.lgamma(0.5) - ((n + 1) * 0.5).lgamma()
    slopes = ((n + 1) * 0.5).digamma() - (n * 0.5).digamma()
    return self.scale.log() + 0.5 * (n + 1) * slopes + 0.5 * n.log() + lbeta


# ---------------------------------------------------------------- of shares


class Dirichlet(Distribution):
  """Shares that add up to 1, along the last axis of concentration."""

  parameters = (("concentration", "positive"),)
  event_dim = 1
  concentration: T
  mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

  def __init__(self, concentration: Any, validate_args: bool | None = None):
    super().__init__(concentration, validate_args=validate_args)

  @property
  def variance(self) -> T:
    total = self.concentration.sum(-1, True)
    return self.mean * (1 - self.mean) / (total + 1)

  def draw(self, shape: tuple[int, ...]) -> T:
    x = gamma(self.concentration, shape)
    return x / x.sum(-1, True)

  def log_prob(self, value: T) -> T:
    a = self.concentration
    return (a - 1).xlogy(value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

  def entropy(self) -> T:
    a, total = self.concentration, self.concentration.sum(-1)
    rest = (a.shape[-1] - total) * total.digamma() + ((a - 1) * a.digamma()).sum(-1)
    return a.lgamma().sum(-1) - total.lgamma() - rest


class Beta(Distribution):
  """A share of two: concentration1 counts what it is of, concentration0 the rest."""

  parameters = (("concentration1", "positive"), ("concentration0", "positive"))
  concentration1: T
  concentration0: T
  total = property(lambda self: self.concentration1 + self.concentration0)
  mean = property(lambda self: self.concentration1 / self.total)
  variance = property(lambda self: self.mean * (1 - self.mean) / (self.total + 1))

  def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
    super().__init__(concentration1, concentration0, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    x, y = gamma(self.concentration1, shape), gamma(self.concentration0, shape)
    return x / (x + y)

  def log_prob(self, value: T) -> T:
    a, b = self.concentration1, self.concentration0
    return (a - 1).xlogy(value) + (b - 1).xlogy(1 - value) + (a + b).lgamma() - a.lgamma() - b.lgamma()

  def entropy(self) -> T:
    a, b, n = self.concentration1, self.concentration0, self.total
    slopes = (a - 1) * a.digamma() + (b - 1) * b.digamma() - (n - 2) * n.digamma()
    return a.lgamma() + b.lgamma() - n.lgamma() - slopes


# ---------------------------------------------------------------- of counts and choices


class _Choice(Distribution):
  """What has probs or logits; of choices (event_dim, or last axis) or of single events."""

  has_rsample = False
  several = False  # probabilities along the last axis, or of one event
  given: T

  def _hold(self, probs: Any, logits: Any, *others: Any, validate_args: bool | None = None) -> list[Any]:
    """Either; returns the other parameters, in the same shape."""
    name = type(self).__name__
    if (probs is None) == (logits is None):
      fail(ArgumentError, f"{name}: give probs or logits")
    if probs is not None and not self.several:
      self.parameters = (("probs", "a probability"),)
      self._check([probs], validate_args)
    self.from_probs = logits is None
    self.given, *rest = tensors(probs if logits is None else logits, *others)
    if self.several:
      self.given = self.given / self.given.sum(-1, True) if self.from_probs else self.given.log_softmax(-1)
    self.parameters = (("probs" if self.from_probs else "logits", ""),)
    self.batch_shape = Size(self.given.shape[:-1] if self.several else self.given.shape)
    self.event_shape = Size(self.given.shape[-1:] if self.event_dim else ())
    return rest

  @property
  def probs(self) -> T:
    """The probabilities."""
    if self.from_probs:
      return self.given
    return self.given.softmax(-1) if self.several else self.given.sigmoid()

  @property
  def logits(self) -> T:
    """Their logarithms; of single events the logarithm of p / (1 - p)."""
    if not self.from_probs:
      return self.given
    eps = 1.2e-7 if self.given.dtype.itemsize < 8 else 2.3e-16
    safe = self.given.clamp(eps, 1 - eps)
    return safe.log() if self.several else safe.logit()


class Bernoulli(_Choice):
  """1 with probability probs, else 0."""

  mean = property(lambda self: self.probs)
  variance = property(lambda self: self.probs * (1 - self.probs))
  mode = property(lambda self: (self.probs == 0.5).where(math.nan, (self.probs > 0.5).cast(self.given.dtype)))

  def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._hold(probs, logits, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    u: Any = Tensor.rand(*shape, device=self.given.device)
    return (u < self.probs).cast(self.given.dtype)

  def log_prob(self, value: T) -> T:
    return value * self.logits - self.logits.softplus()

  def entropy(self) -> T:
    return self.logits.softplus() - self.probs * self.logits


class Geometric(_Choice):
  """How often an event fails, before it succeeds with probability probs."""

  mean = property(lambda self: 1 / self.probs - 1)
  mode = property(lambda self: self.probs * 0)
  variance = property(lambda self: (1 / self.probs - 1) / self.probs)

  def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._hold(probs, logits, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    return (uniform(self.given, shape).log() / (-self.probs).log1p()).floor()

  def log_prob(self, value: T) -> T:
    return value.xlogy(1 - self.probs) + self.probs.log()

  def entropy(self) -> T:
    return (self.logits.softplus() - self.probs * self.logits) / self.probs


class Binomial(_Choice):
  """How many of total_count events succeed; a sample draws each of them."""

  def __init__(
    self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
  ):
    (self.total_count,) = self._hold(probs, logits, total_count, validate_args=validate_args)

  mean = property(lambda self: self.total_count * self.probs)
  mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().minimum(self.total_count))
  variance = property(lambda self: self.mean * (1 - self.probs))

  def draw(self, shape: tuple[int, ...]) -> T:
    most = int(self.total_count.max().item())
    u: Any = Tensor.rand(*shape, most, device=self.given.device)
    counted = Tensor.arange(most, device=self.given.device) < self.total_count.unsqueeze(-1)
    return ((u < self.probs.unsqueeze(-1)) & counted).sum(-1).cast(self.given.dtype)

  def log_prob(self, value: T) -> T:
    n, z = self.total_count, self.logits
    ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
    return ways + value * z - n * z.softplus()


class Categorical(_Choice):
  """One of the places along the last axis of probs (or logits), int64.

  >>> d = mini.distributions.Categorical(Tensor([1.0, 1.0, 2.0]))
  >>> d.log_prob(Tensor([2])).exp(), d.probs
  (Tensor([0.5]), Tensor([0.25, 0.25, 0.5 ]))
  """

  several = True
  mode = property(lambda self: self.given.argmax(-1))
  mean = variance = property(lambda self: self.given[..., 0] * math.nan)  # type: ignore[assignment]

  def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._hold(probs, logits, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    n = len(shape) - len(self.batch_shape)
    times = math.prod(shape[:n])
    drawn = self.probs.reshape(-1, self.given.shape[-1]).multinomial(times, True)
    return drawn.T.reshape(*shape[:n], *self.batch_shape)

  def log_prob(self, value: T) -> T:
    index = value.long().unsqueeze(-1)
    shape = Tensor.broadcast_shapes(index.shape[:-1], self.batch_shape)
    logits = self.logits.expand(*shape, self.given.shape[-1])
    return logits.gather(-1, index.expand(*shape, 1)).squeeze(-1)

  def entropy(self) -> T:
    return -(self.probs * self.logits).sum(-1)

  def enumerate_support(self, expand: bool = True) -> T:
    """All places, as a first axis."""
    places = Tensor.arange(self.given.shape[-1]).reshape(-1, *(1,) * len(self.batch_shape))
    return places.expand(-1, *self.batch_shape) if expand else places


class OneHotCategorical(Categorical):
  """`Categorical`, with 1 at the place and else zeros."""

  event_dim = 1
  mean = property(lambda self: self.probs)
  mode = property(lambda self: self.given.argmax(-1).one_hot(self.given.shape[-1]).cast(self.given.dtype))
  variance = property(lambda self: self.probs * (1 - self.probs))

  def draw(self, shape: tuple[int, ...]) -> T:
    return super().draw(shape[:-1]).one_hot(shape[-1]).cast(self.given.dtype)

  def log_prob(self, value: T) -> T:
    return super().log_prob(value.argmax(-1))


class Multinomial(_Choice):
  """How often each place comes in total_count draws."""

  several, event_dim = True, 1

  def __init__(
    self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
  ):
    self.total_count = int(total_count)
    self._hold(probs, logits, validate_args=validate_args)

  mean = property(lambda self: self.total_count * self.probs)
  variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

  def draw(self, shape: tuple[int, ...]) -> T:
    one = Categorical(probs=self.probs)
    drawn = one.draw((self.total_count, *shape[:-1]))
    return drawn.one_hot(shape[-1]).sum(0).cast(self.given.dtype)

  def log_prob(self, value: T) -> T:
    ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
    return ways + ((value == 0) & self.logits.isinf()).where(0, value * self.logits).sum(-1)


FEW = 12.0  # below, the probabilities of 0 .. 47 are added up


class Poisson(Distribution):
  """How often something happens that happens `rate` times on average."""

  parameters = (("rate", "not negative"),)
  has_rsample = False
  rate: T
  mean = variance = property(lambda self: self.rate)  # type: ignore[assignment]
  mode = property(lambda self: self.rate.floor())

  def __init__(self, rate: Any, validate_args: bool | None = None):
    super().__init__(rate, validate_args=validate_args)

  def draw(self, shape: tuple[int, ...]) -> T:
    """By inversion: the first count whose cumulative probability is above a uniform number; of large rates it is one of
    five about the Cornish-Fisher expansion."""
    u, r = uniform(self.rate, shape).unsqueeze(-1), self.rate.expand(shape).unsqueeze(-1)
    few = r < FEW
    small, large = few.where(r, 1), few.where(FEW, r)
    k: Any = Tensor.arange(48, dtype=r.dtype, device=r.device)
    below = (k.xlogy(small) - small - (k + 1).lgamma()).exp().cumsum(-1)
    counted = (u > below).sum(-1)
    z = special.ndtri(u)
    start = (large + large.sqrt() * z + (z * z - 1) / 6).floor() - 2
    near = start + k[:5]
    found = start.squeeze(-1) + (u > special.gammaincc((near + 1).clamp(min=1), large)).sum(-1)
    return few.squeeze(-1).where(counted.cast(r.dtype), found)

  def log_prob(self, value: T) -> T:
    return value.xlogy(self.rate) - self.rate - (value + 1).lgamma()


# ---------------------------------------------------------------- of vectors


class MultivariateNormal(Distribution):
  """Normal vectors, by their mean and covariance_matrix, precision_matrix, or scale_tril, the covariance's Cholesky
  factor.   loc: T[.., n]

  >>> d = mini.distributions.MultivariateNormal(Tensor.zeros(2), Tensor.eye(2))
  >>> d.log_prob(Tensor.zeros(2)).round(decimals=4)
  Tensor(-1.8379)
  """

  event_dim = 1
  loc: T

  def __init__(
    self, loc: T, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
    validate_args: bool | None = None,
  ):  # fmt: skip
    given = [x for x in (covariance_matrix, precision_matrix, scale_tril) if x is not None]
    if len(given) != 1:
      fail(ArgumentError, "MultivariateNormal: give one of covariance_matrix, precision_matrix, scale_tril")
    factor = scale_tril
    if covariance_matrix is not None:
      factor = covariance_matrix.cholesky()
    elif precision_matrix is not None:  # inverse and transposed, about both diagonals
      factor = precision_matrix.flip(-2, -1).cholesky().flip(-2, -1).mT.inv()
    n = loc.shape[-1]
    self.batch_shape = Size(Tensor.broadcast_shapes(loc.shape[:-1], factor.shape[:-2]))
    self.event_shape = Size((n,))
    self.loc = loc.expand(*self.batch_shape, n)
    self.scale_tril = factor.expand(*self.batch_shape, n, n)
    self.parameters = (("loc", ""), ("scale_tril", ""))

  mean = mode = property(lambda self: self.loc)  # type: ignore[assignment]
  variance = property(lambda self: (self.scale_tril**2).sum(-1))
  covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
  precision_matrix = property(lambda self: self.scale_tril.cholesky_inverse())

  def draw(self, shape: tuple[int, ...]) -> T:
    return self.loc + (self.scale_tril @ normal(self.loc, shape).unsqueeze(-1)).squeeze(-1)

  def log_prob(self, value: T) -> T:
    off = (value - self.loc).unsqueeze(-1)
    half = solve_triangular(self.scale_tril, off, upper=False).squeeze(-1)
    logs = self.scale_tril.diagonal(0, -2, -1).log().sum(-1)
    return -0.5 * (half * half).sum(-1) - logs - off.shape[-2] * HALF_LOG_2PI

  def entropy(self) -> T:
    logs = self.scale_tril.diagonal(0, -2, -1).log().sum(-1)
    return logs + self.loc.shape[-1] * (0.5 + HALF_LOG_2PI)
