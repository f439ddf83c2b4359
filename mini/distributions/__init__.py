"""torch.distributions's names: probability distributions, their densities, samples, entropies and divergences.

Parameters are tensors or numbers, which repeat to the shape of a batch. Numbers are checked, and tensors, whose values
would have to be computed for it, if validate_args=True. `rsample` passes gradients to the parameters, `sample` does
not.
"""

from mini.distributions import transforms
from mini.distributions.base import Distribution, Independent, TransformedDistribution
from mini.distributions.divergence import kl_divergence, register_kl
from mini.distributions.families import (
  Bernoulli,
  Beta,
  Binomial,
  Categorical,
  Cauchy,
  Chi2,
  Dirichlet,
  Exponential,
  Gamma,
  Geometric,
  Gumbel,
  HalfNormal,
  Laplace,
  LogNormal,
  Multinomial,
  MultivariateNormal,
  Normal,
  OneHotCategorical,
  Poisson,
  StudentT,
  Uniform,
)

__all__ = [
  "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution", "Exponential", "Gamma",
  "Geometric", "Gumbel", "HalfNormal", "Independent", "Laplace", "LogNormal", "Multinomial", "MultivariateNormal",
  "Normal", "OneHotCategorical", "Poisson", "StudentT", "TransformedDistribution", "Uniform", "kl_divergence",
  "register_kl", "transforms",
]  # fmt: skip
