"""How far functions of mathematics are from Python's, which are C's:
in units in the last place of float32 and float64."""

import math

import numpy as np
import pytest

from mini import Tensor, dtypes


def spaced(low, high, n=400):
  return np.linspace(low, high, n)


def powers(low, high, n=400):
  return np.concatenate([-(10.0 ** spaced(low, high, n // 2)), 10.0 ** spaced(low, high, n // 2)])


def ulps(got, exact, kind):
  """Distances in units of the last place; subnormals in units of the smallest normal number's."""
  eps, tiny = np.finfo(kind.np).eps, np.finfo(kind.np).tiny
  size = 2.0 ** np.floor(np.log2(np.maximum(abs(exact), tiny))) * eps
  return abs(got.astype(np.float64) - exact) / size


# name: (Python's function, arguments, ulps of float32, of float64)
# fmt: off
ACCURACY = {
  "sin":   (math.sin,   spaced(-20, 20),    2, 1),   "cos":   (math.cos,   spaced(-20, 20),  2, 1),
  "tan":   (math.tan,   spaced(-1.5, 1.5),  4, 3),   "asin":  (math.asin,  spaced(-1, 1),    4, 3),
  "acos":  (math.acos,  spaced(-1, 1),      4, 3),   "atan":  (math.atan,  powers(-5, 5),    3, 2),
  "sinh":  (math.sinh,  spaced(-20, 20),    4, 3),   "cosh":  (math.cosh,  spaced(-20, 20),  4, 2),
  "tanh":  (math.tanh,  spaced(-9, 9),      2, 2),   "asinh": (math.asinh, powers(-5, 5),    4, 3),
  "acosh": (math.acosh, spaced(1, 100),     4, 3),   "atanh": (math.atanh, spaced(-.99, .99), 4, 3),
  "exp":   (math.exp,   spaced(-80, 80),    2, 1),   "expm1": (math.expm1, powers(-5, 1),    2, 2),
  "log":   (math.log,   10.0 ** spaced(-5, 5), 2, 1), "log1p": (math.log1p, 10.0 ** spaced(-5, 5), 4, 3),
  "log10": (math.log10, 10.0 ** spaced(-5, 5), 4, 2), "erf":  (math.erf,   powers(-5, .5),   2, 2),
  "erfc":  (math.erfc,  spaced(-3, 8),      2, 2),   "lgamma": (math.lgamma, spaced(3, 60),     8, 8),
}
# fmt: on


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [dtypes.float32, dtypes.float64], ids=lambda d: d.short)
def test_accuracy(kind):
  inputs = {name: row[1].astype(kind.np) for name, row in ACCURACY.items()}
  found = {name: getattr(Tensor(x), name)() for name, x in inputs.items()}
  Tensor.realize(*found.values())
  far = {}
  for name, (f, _, *bounds) in ACCURACY.items():
    exact = np.array([f(t) for t in inputs[name].astype(np.float64).tolist()])
    most = ulps(found[name].numpy(), exact, kind).max()
    if most > bounds[kind is dtypes.float64]:
      far[name] = most
  assert not far


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind, fine", [(dtypes.float32, 2e-6), (dtypes.float64, 1e-14)], ids=["f32", "f64"])
def test_special_values(kind, fine):
  """digamma against differences of lgamma in float64, erfinv through erf and erfc, atan2 in all quadrants."""
  x = spaced(-3.4, 20.3).astype(kind.np)
  wide = x.astype(np.float64)
  h = 1e-5
  slope = [(math.lgamma(t + h) - math.lgamma(t - h)) / (2 * h) for t in wide.tolist()]
  np.testing.assert_allclose(Tensor(x).digamma().numpy(), slope, rtol=1e-5, atol=1e-5)
  y = np.concatenate(
    [spaced(-0.999, 0.999), 1 - 10.0 ** -spaced(1, 6, 30), 10.0 ** -spaced(1, 20, 30)]
  ).astype(kind.np)
  back = np.array([math.erf(t) for t in Tensor(y).erfinv().numpy().astype(np.float64).tolist()])
  np.testing.assert_allclose(back, y, rtol=fine, atol=0)
  a, b = np.meshgrid(
    [*powers(-3, 3, 12), 0.0, -0.0, np.inf, -np.inf], [*powers(-3, 3, 12), 0.0, -0.0, np.inf, -np.inf]
  )
  a, b = a.astype(kind.np), b.astype(kind.np)
  np.testing.assert_allclose(
    Tensor(a).atan2(Tensor(b)).numpy(), np.arctan2(a, b), rtol=5e-7 if fine > 1e-9 else 1e-15
  )
  np.testing.assert_array_equal(Tensor(a).nextafter(Tensor(b)).numpy(), np.nextafter(a, b))
  np.testing.assert_array_equal(np.signbit(Tensor(a).copysign(Tensor(b)).numpy()), np.signbit(b))
  np.testing.assert_allclose(Tensor(a).hypot(Tensor(b)).numpy(), np.hypot(a, b), rtol=3e-7)


def test_where_functions_are_nearly_zero_or_their_slopes_are():
  """lgamma around 1 and 2 against its Taylor series there; the slope of log1p where 1 + x has lost most of x."""
  h = np.array([-1e-5, -3e-7, 2e-7, 1e-5])
  near = Tensor(np.concatenate([1 + h, 2 + h])).lgamma().numpy()
  h1, h2, euler = (1 + h) - 1, (2 + h) - 2, 0.5772156649015329
  zeta3 = 1.2020569031595942
  want = [
    -euler * h1 + math.pi**2 / 12 * h1**2 - zeta3 / 3 * h1**3,
    (1 - euler) * h2 + (math.pi**2 / 12 - 0.5) * h2**2 - (zeta3 - 1) / 3 * h2**3,
  ]
  np.testing.assert_allclose(near, np.concatenate(want), rtol=1e-13)
  x = Tensor([-0.0, 0.0, 1e-8, 1e-6, -3e-7, 0.1, 1e10], requires_grad=True)
  slope = x.log1p().sum().gradient(x)[0]
  np.testing.assert_allclose(slope.numpy(), 1 / (1 + x.numpy()), rtol=3e-7)
  np.testing.assert_allclose(slope.sum().gradient(x)[0].numpy(), -1 / (1 + x.numpy()) ** 2, rtol=1e-6)
  assert np.signbit(x.log1p().numpy())[:2].tolist() == [True, False]
  low = Tensor([0.05, 0.3, 0.7, 0.9, 1.2, 1.7, 2.3, -0.5, -1.5, -7.3], dtype="float64")
  np.testing.assert_allclose(low.lgamma().numpy(), [math.lgamma(t) for t in low.tolist()], rtol=1e-13)


def test_second_derivatives():
  """Of lgamma, through its graph: trigamma(1) is pi^2 / 6; of erfc: 4 x exp(-x^2) / sqrt(pi)."""
  x = Tensor([1.0, 0.3, 9.0], dtype="float64", requires_grad=True)
  first = x.lgamma().sum().gradient(x)[0]
  np.testing.assert_allclose(first.numpy(), x.digamma().numpy(), rtol=1e-11)
  second = first.sum().gradient(x)[0].numpy()
  assert second[0] == pytest.approx(math.pi**2 / 6, rel=1e-9)
  first = x.erfc().sum().gradient(x)[0]
  t = x.numpy()
  np.testing.assert_allclose(first.numpy(), -2 / math.sqrt(math.pi) * np.exp(-t * t), rtol=1e-10)
  np.testing.assert_allclose(
    first.sum().gradient(x)[0].numpy(), 4 * t / math.sqrt(math.pi) * np.exp(-t * t), rtol=1e-8
  )
