"""Kullback and Leibler's divergence of two distributions: a table by their families."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mini.distributions import families as f
from mini.distributions.base import Distribution, Independent, of_event
from mini.tensor.errors import fail
from mini.tensor.lapack import solve_triangular
from mini.types import MiniError

T = Any  # a tensor


def _of_gamma(p: Any, q: Any) -> T:
  a, b = p.concentration, q.concentration
  return (
    b * (p.rate / q.rate).log()
    + b.lgamma()
    - a.lgamma()
    + (a - b) * a.digamma()
    + (q.rate - p.rate) * a / p.rate
  )


def _of_dirichlet(p: Any, q: Any) -> T:
  a, b = p.concentration, q.concentration
  total = a.sum(-1)
  apart = ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)
  return total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1) + apart


def _of_beta(p: Any, q: Any) -> T:
  (a, b), (c, d) = ((x.concentration1, x.concentration0) for x in (p, q))
  ratio = c.lgamma() + d.lgamma() + (a + b).lgamma() - (c + d).lgamma() - a.lgamma() - b.lgamma()
  return ratio + (a - c) * a.digamma() + (b - d) * b.digamma() + (c + d - a - b) * (a + b).digamma()


def _of_normal(p: Any, q: Any) -> T:
  ratio = (p.scale / q.scale) ** 2
  return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


def _of_vectors(p: Any, q: Any) -> T:
  logs = (q.scale_tril.diagonal(0, -2, -1).log() - p.scale_tril.diagonal(0, -2, -1).log()).sum(-1)
  spread = (solve_triangular(q.scale_tril, p.scale_tril, upper=False) ** 2).sum((-2, -1))
  off = (solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False) ** 2).sum((-2, -1))
  return logs + 0.5 * (spread + off - p.loc.shape[-1])


def _of_categories(p: Any, q: Any) -> T:
  terms = p.probs * (p.logits - q.logits)
  return (p.probs == 0).where(0, (q.probs == 0).where(math.inf, terms)).sum(-1)


def _of_bernoulli(p: Any, q: Any) -> T:
  return p.probs * (p.logits - q.logits) + q.logits.softplus() - p.logits.softplus()


def _of_laplace(p: Any, q: Any) -> T:
  off, ratio = (p.loc - q.loc).abs(), p.scale / q.scale
  return -ratio.log() + off / q.scale + ratio * (-off / p.scale).exp() - 1


def _of_independent(p: Any, q: Any) -> T:
  if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
    fail(MiniError, "kl_divergence: the events have different axes")
  return of_event(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _of_uniform(p: Any, q: Any) -> T:
  inside = (q.low <= p.low) & (q.high >= p.high)
  return inside.where(((q.high - q.low) / (p.high - p.low)).log(), math.inf)


def _of_exponential(p: Any, q: Any) -> T:
  ratio = q.rate / p.rate
  return ratio - ratio.log() - 1


# fmt: off
DIVERGENCES: dict[tuple[type, type], Callable[[Any, Any], T]] = {
  (f.Bernoulli, f.Bernoulli):     _of_bernoulli,
  (f.Beta, f.Beta):               _of_beta,
  (f.Binomial, f.Binomial):       lambda p, q: p.total_count * _of_bernoulli(p, q),
  (f.Categorical, f.Categorical): _of_categories,
  (f.Dirichlet, f.Dirichlet):     _of_dirichlet,
  (f.Exponential, f.Exponential): _of_exponential,
  (f.Gamma, f.Gamma):             _of_gamma,
  (f.Geometric, f.Geometric):     lambda p, q: -p.entropy() - (-q.probs).log1p() / p.probs - q.logits,
  (f.HalfNormal, f.HalfNormal):   lambda p, q: 0.5 * ((p.scale / q.scale) ** 2 - 1) - (p.scale / q.scale).log(),
  (f.Laplace, f.Laplace):         _of_laplace,
  (f.LogNormal, f.LogNormal):     _of_normal,
  (f.MultivariateNormal, f.MultivariateNormal): _of_vectors,
  (f.Normal, f.Normal):           _of_normal,
  (f.Poisson, f.Poisson):         lambda p, q: p.rate * (p.rate.log() - q.rate.log()) - p.rate + q.rate,
  (f.Uniform, f.Uniform):         _of_uniform,
  (Independent, Independent):     _of_independent,
}
# fmt: on


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
  """A decorator: the function computes kl_divergence(p, q) of these families."""

  def add(formula: Any) -> Any:
    DIVERGENCES[type_p, type_q] = formula
    return formula

  return add


def kl_divergence(p: Distribution, q: Distribution) -> T:
  """The expectation under p of log p - log q.

  >>> d = mini.distributions
  >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
  Tensor(0.5)
  """
  for a in type(p).__mro__:
    for b in type(q).__mro__:
      if (a, b) in DIVERGENCES:
        return DIVERGENCES[a, b](p, q)
  fail(MiniError, f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}")


__all__ = ["kl_divergence", "register_kl"]
