"""Distributions beside PyTorch's: densities and what follows of them, their gradients; samples by their moments and
cumulative probabilities."""

import numpy as np
import pytest
from quickly import compile_quickly

import mini
from mini import Tensor, distributions, jit
from mini.types import MiniError

a, b, c = [0.5, 1.3, 4.0], [1.5, 0.7, 2.0], [-0.3, 0.0, 2.5]
spread = [[2.0, 0.3], [0.3, 1.0]]

# family: (its parameters, values)
# fmt: off
CASES = {
  "Normal": ({"loc": c, "scale": a}, [0.1, -2.0, 3.0]), "LogNormal": ({"loc": c, "scale": b}, [0.1, 2.0, 3.0]),
  "HalfNormal": ({"scale": a}, [0.1, 0.5, 3.0]), "Uniform": ({"low": c, "high": 5.0}, [0.1, 2.0, 4.5]),
  "Exponential": ({"rate": a}, [0.1, 2.0, 3.0]), "Laplace": ({"loc": c, "scale": a}, [0.1, -2.0, 3.0]),
  "Cauchy": ({"loc": c, "scale": a}, [0.1, -2.0, 3.0]), "Gumbel": ({"loc": c, "scale": a}, [0.1, -2.0, 3.0]),
  "Gamma": ({"concentration": a, "rate": b}, [0.1, 2.0, 3.0]), "Chi2": ({"df": b}, [0.1, 2.0, 3.0]),
  "StudentT": ({"df": [1.5, 2.5, 7.0], "loc": c, "scale": b}, [0.1, -2.0, 3.0]),
  "Beta": ({"concentration1": a, "concentration0": b}, [0.1, 0.5, 0.9]),
  "Dirichlet": ({"concentration": [a, b]}, [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]),
  "Bernoulli": ({"probs": [0.2, 0.5, 0.9]}, [1.0, 0.0, 1.0]), "Geometric": ({"probs": [0.2, 0.5, 0.9]}, [3.0, 0.0, 1.0]),
  "Binomial": ({"total_count": 7, "probs": [0.2, 0.5, 0.9]}, [3.0, 0.0, 7.0]),
  "Poisson": ({"rate": [0.5, 6.0, 40.0]}, [3.0, 0.0, 45.0]),
  "Categorical": ({"probs": [a, b]}, [2, 0]), "OneHotCategorical": ({"probs": [a, b]}, [[0.0, 0, 1], [1, 0, 0]]),
  "Multinomial": ({"total_count": 5, "probs": [a, b]}, [[1.0, 1, 3], [0, 5, 0]]),
  "MultivariateNormal": ({"loc": [1.0, -1.0], "covariance_matrix": spread}, [[0.0, 0.0], [1.0, 2.0]]),
}
# fmt: on
MODES = ("Binomial", "Multinomial", "Gamma", "Chi2", "Beta", "Dirichlet")
LOGITS = {"Bernoulli", "Geometric", "Binomial", "Categorical", "Multinomial"}


QUICK = {"Normal", "Gamma", "Categorical", "MultivariateNormal"}


def each(names):
  """The others in full runs alone: each is compiled."""
  return pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.full) for n in names]
  )


def both(name, options):
  """The distribution of ours and PyTorch's, and the parameters that gradients are taken of."""
  torch = pytest.importorskip("torch")
  made = []
  for library, tensor in (
    (distributions, lambda x: Tensor(x, "float64")),
    (torch.distributions, lambda x: torch.tensor(x, dtype=torch.float64)),
  ):
    held = {k: tensor(v).requires_grad_() if isinstance(v, list) else v for k, v in options.items()}
    made.append(
      (getattr(library, name)(**held), [t for t in held.values() if not isinstance(t, (int, float))])
    )
  return torch, *made


def close(got, want):
  np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-6, atol=1e-9)


@each([*CASES, *(f"{n}.logits" for n in sorted(LOGITS))])
def test_formulas(name, monkeypatch):
  compile_quickly(monkeypatch)
  family, _, logits = name.partition(".")
  options, values = CASES[family]
  if logits:
    options = {"logits" if k == "probs" else k: v for k, v in options.items()}
  torch, (ours, mine), (theirs, other) = both(family, options)
  assert (ours.batch_shape, ours.event_shape) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
  x, y = Tensor(values, None if family == "Categorical" else "float64"), torch.tensor(values)
  y = y if family == "Categorical" else y.double()
  log, want = ours.log_prob(x), theirs.log_prob(y)
  close(log, want)
  log.sum().backward()
  want.sum().backward()
  for p, q in zip(mine, other):
    close(p.grad, q.grad)
  for what in ("mean", "variance", "stddev", "mode", "entropy", "cdf", "icdf"):
    given = () if what not in ("cdf", "icdf") else (torch.tensor([0.2, 0.5, 0.9]).double(),)
    try:
      found = getattr(theirs, what)
      found = found(*(y if what == "cdf" else g for g in given)) if callable(found) else found
    except NotImplementedError:
      continue
    if (what == "mode" and family in MODES) or (what == "entropy" and family in ("Binomial", "Multinomial")):
      continue  # PyTorch's modes at the edges, and its entropies by enumeration
    own = getattr(ours, what)
    close(own(*(x if what == "cdf" else Tensor(g.numpy()) for g in given)) if callable(own) else own, found)


CONTINUOUS = [
  "Normal",
  "LogNormal",
  "HalfNormal",
  "Uniform",
  "Exponential",
  "Laplace",
  "Cauchy",
  "Gumbel",
  "Gamma",
]


@pytest.mark.sample(2)
@each(CASES)
def test_samples(name, monkeypatch):
  """Their shape, and that their mean is within five standard errors of the mean; of continuous ones that their
  cumulative probabilities are uniform."""
  compile_quickly(monkeypatch)
  Tensor.manual_seed(11)
  options, _ = CASES[name]
  d = getattr(distributions, name)(**{k: Tensor(v) if isinstance(v, list) else v for k, v in options.items()})
  n = 2000
  x = d.sample((n,))
  assert x.shape == (n, *d.batch_shape, *d.event_shape) and not x.requires_grad
  if name in CONTINUOUS:
    u = np.sort(d.cdf(x).numpy(), 0)
    expected = (np.arange(n)[:, None] + 0.5) / n
    assert abs(u - expected).max() < 1.95 / n**0.5
    return
  if name == "Categorical":
    share = [np.bincount(column, minlength=3) / n for column in x.numpy().T]
    assert abs(share - d.probs.numpy()).max() < 5 * 0.5 / n**0.5
    return
  mean, variance = (t.broadcast_to(x.shape[1:]).numpy() for t in (d.mean, d.variance))
  known = np.isfinite(variance)
  assert (abs(x.numpy().mean(0) - mean) < 6 * (variance / n) ** 0.5 + 1e-6)[known].all()


@each(["Gamma", "Beta", "Dirichlet", "StudentT", "Chi2", "Normal", "MultivariateNormal"])
def test_gradients_of_samples(name):
  """The gradient of the mean of x + x**2 over samples is that of what it is expected to be."""
  Tensor.manual_seed(3)
  options = {"Gamma": {"concentration": [0.7, 3.0], "rate": [1.5, 0.8]}, "Beta": {"concentration1": [0.7, 3.0], "concentration0": [1.5, 2.0]},
             "Dirichlet": {"concentration": [0.7, 3.0, 2.0]}, "StudentT": {"df": [9.0], "loc": [0.5], "scale": [0.5]},
             "Chi2": {"df": [1.5, 4.0]}, "Normal": {"loc": [0.5], "scale": [2.0]},
             "MultivariateNormal": {"loc": [0.5, 1.0], "scale_tril": [[1.0, 0.0], [0.5, 0.7]]}}[name]  # fmt: skip
  given = {k: Tensor(v, "float64", "INTERP").requires_grad_() for k, v in options.items()}
  d = getattr(distributions, name)(**given)
  x = d.rsample((3000,))
  drawn = mini.autograd.grad((x + x * x).sum() / 3000, list(given.values()), materialize_grads=True)
  exact = (d.mean + d.variance + d.mean**2).sum()
  want = mini.autograd.grad(exact, list(given.values()), materialize_grads=True)
  for g, w in zip(drawn, want):
    np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=0.25, atol=0.25)


PAIRS = {
  "Normal": {"loc": a, "scale": b}, "Laplace": {"loc": a, "scale": b}, "Exponential": {"rate": b}, "Poisson": {"rate": b},
  "Gamma": {"concentration": b, "rate": a}, "Beta": {"concentration1": b, "concentration0": a}, "Dirichlet": {"concentration": b},
  "Bernoulli": {"probs": [0.3, 0.6, 0.2]}, "Categorical": {"probs": b}, "Geometric": {"probs": [0.3, 0.6, 0.2]},
  "Uniform": {"low": [-9.0, -1.0, 0.0], "high": 9.0}, "HalfNormal": {"scale": b}, "LogNormal": {"loc": a, "scale": b},
  "MultivariateNormal": {"loc": [0.0, 1.0], "covariance_matrix": [[1.0, 0.2], [0.2, 3.0]]}, "OneHotCategorical": {"probs": b},
}  # fmt: skip


@each(PAIRS)
def test_divergences(name, monkeypatch):
  compile_quickly(monkeypatch)
  first = {
    k: v[0] if name in ("Dirichlet", "Categorical", "OneHotCategorical") else v
    for k, v in CASES[name][0].items()
  }
  torch, (p, _), (r, _) = both(name, first)
  _, (q, _), (s, _) = both(name, PAIRS[name])
  close(distributions.kl_divergence(p, q), torch.distributions.kl_divergence(r, s))
  close(distributions.kl_divergence(p, p), p.log_prob(p.sample()) * 0)


@pytest.mark.full
def test_transforms_and_independence():
  torch = pytest.importorskip("torch")
  t, u = distributions.transforms, torch.distributions.transforms
  for make in (
    lambda m: [m.AffineTransform(1.0, -2.0), m.SigmoidTransform()],
    lambda m: [m.TanhTransform(), m.AffineTransform(2.0, 0.5), m.PowerTransform(3.0)],
    lambda m: [m.SoftplusTransform()],
    lambda m: [m.ComposeTransform([m.ExpTransform(), m.AffineTransform(0.0, 3.0)]), m.ExpTransform().inv],
  ):
    x = np.linspace(-0.9, 0.9, 5)
    mine, theirs = Tensor(x), torch.tensor(x)
    for ours, other in zip(make(t), make(u)):
      y, z = ours(mine), other(theirs)
      close(y, z)
      close(ours.inv(y), mine)
      close(ours.log_abs_det_jacobian(mine, y), other.log_abs_det_jacobian(theirs, z))
      mine, theirs = y, z
    base, reference = (
      distributions.Normal(Tensor([0.1] * 5, "float64"), 1.0),
      torch.distributions.Normal(torch.tensor([0.1] * 5).double(), 1.0),
    )
    ours = distributions.TransformedDistribution(distributions.Independent(base, 1), make(t))
    other = torch.distributions.TransformedDistribution(
      torch.distributions.Independent(reference, 1), make(u)
    )
    close(ours.log_prob(mine), other.log_prob(theirs))
    close(
      distributions.TransformedDistribution(base, make(t)).cdf(mine),
      torch.distributions.TransformedDistribution(reference, make(u)).cdf(theirs),
    )
    assert ours.rsample((3,)).shape == (3, 5) and ours.expand((2,)).batch_shape == (2,)


def test_under_jit_and_mistakes():
  d = distributions
  step = jit(lambda m: d.Normal(m, 1.0).rsample((3,)) + d.Categorical(logits=Tensor.zeros(4)).sample((3,)))
  Tensor.manual_seed(2)
  first, second = step(Tensor([1.0, 2.0, 3.0])).tolist(), step(Tensor([1.0, 2.0, 3.0])).tolist()
  assert first != second
  with pytest.raises(ValueError, match="Normal: scale is positive, and not -1.0"):
    d.Normal(0.0, -1.0)
  with pytest.raises(ValueError, match="Gamma: rate is positive"):
    d.Gamma(Tensor([1.0]), Tensor([-1.0]), validate_args=True)
  with pytest.raises(ValueError, match="Bernoulli: give probs or logits"):
    d.Bernoulli()
  with pytest.raises(ValueError, match="Bernoulli: probs is a probability"):
    d.Bernoulli(1.5)
  with pytest.raises(MiniError, match="no formula for Normal and Gamma"):
    d.kl_divergence(d.Normal(0.0, 1.0), d.Gamma(1.0, 1.0))
  with pytest.raises(MiniError, match="Poisson has no rsample"):
    d.Poisson(1.0).rsample()
  with pytest.raises(ValueError, match="one of covariance_matrix"):
    d.MultivariateNormal(Tensor.zeros(2))
  assert repr(d.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)" and d.Normal(0.0, 1.0).expand(
    (2, 3)
  ).sample().shape == (2, 3)
  q = d.MultivariateNormal(Tensor.zeros(2), precision_matrix=Tensor(spread))
  np.testing.assert_allclose(q.precision_matrix.numpy(), spread, rtol=1e-5)
  np.testing.assert_allclose((q.covariance_matrix @ Tensor(spread)).numpy(), np.eye(2), atol=1e-5)
