"""How far the functions of mini.special are from mpmath's, in units of eps, and the identities that hold between them and
their derivatives."""

import numpy as np
import pytest

import mini
from mini import Tensor

special = mini.special
X = np.concatenate(
  [[1e-20, 1e-6, 0.1, 1.9, 2.0, 2.1, 2.9, 3.0, 3.1, 19.9, 20.0, 20.1, 60.0], np.linspace(0.05, 30, 60)]
)
BOTH = np.concatenate([-X, X])
P = np.concatenate([10.0 ** -np.arange(1, 18), np.linspace(0.01, 0.99, 60)])

# name: (the function by mpmath m, arguments, eps of float32, of float64), relative; of what waves, to the amplitude
# fmt: off
ACCURACY = {
  "airy_ai":   (lambda m, x: m.airyai(x),           np.concatenate([-X[X < 12], X[X < 8]]), 60, 60),
  "bessel_j0": (lambda m, x: m.besselj(0, x),       BOTH, 6, 6),
  "bessel_j1": (lambda m, x: m.besselj(1, x),       BOTH, 6, 6),
  "bessel_y0": (lambda m, x: m.bessely(0, x),       X, 6, 6),
  "bessel_y1": (lambda m, x: m.bessely(1, x),       X, 8, 8),
  "spherical_bessel_j0": (lambda m, x: m.sinc(x),   BOTH, 3, 3),
  "i0":        (lambda m, x: m.besseli(0, x),       BOTH, 6, 12),
  "i1":        (lambda m, x: m.besseli(1, x),       BOTH, 6, 12),
  "i0e":       (lambda m, x: m.besseli(0, x) * m.exp(-abs(x)), BOTH, 6, 12),
  "i1e":       (lambda m, x: m.besseli(1, x) * m.exp(-abs(x)), BOTH, 6, 12),
  "modified_bessel_k0":        (lambda m, x: m.besselk(0, x), X, 6, 12),
  "modified_bessel_k1":        (lambda m, x: m.besselk(1, x), X, 6, 12),
  "scaled_modified_bessel_k0": (lambda m, x: m.besselk(0, x) * m.exp(x), X, 6, 12),
  "scaled_modified_bessel_k1": (lambda m, x: m.besselk(1, x) * m.exp(x), X, 6, 12),
  "erfcx":     (lambda m, x: m.erfc(x) * m.exp(x * x), BOTH[BOTH > -4], 12, 12),
  "ndtr":      (lambda m, x: m.ncdf(x),             BOTH[BOTH > -4], 12, 24),
  "log_ndtr":  (lambda m, x: m.log(m.ncdf(x)),      BOTH[BOTH < 4], 12, 24),
  "entr":      (lambda m, x: -x * m.log(x),         X, 4, 4),
  "ndtri":     (lambda m, x: m.sqrt(2) * m.erfinv(2 * x - 1), P, 6, 12),
  "zeta":      (lambda m, x: m.zeta(2, x),          X, 6, 6),
  "trigamma":  (lambda m, x: m.polygamma(1, x),     np.concatenate([X, -X[X < 9] - 0.3]), 60, 60),
}
# fmt: on
WAVES = {"airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0"}
OTHERS = {"zeta": lambda x: special.zeta(2.0, x), "trigamma": lambda x: special.polygamma(1, x)}


@pytest.mark.full
@pytest.mark.parametrize("name", ACCURACY)
def test_accuracy(name):
  """Against mpmath, which PyTorch brings along: its own are less accurate, and of bessel_y1 off by 1e-6 in float64."""
  mpmath = pytest.importorskip("mpmath")
  exact, arguments, *most = ACCURACY[name]
  for d, bound in zip(("float32", "float64"), most):
    x = arguments.astype(d)
    got = OTHERS.get(name, getattr(special, name, None))(Tensor(x)).numpy().astype(np.float64)
    with mpmath.workdps(40):
      want = np.array([float(exact(mpmath, mpmath.mpf(float(t)))) for t in x])
    held = (abs(want) > 4 * np.finfo(d).tiny) & (abs(want) < np.finfo(d).max)
    waving = (name in WAVES) & ((x < 0) | (name != "airy_ai"))
    amplitude = np.where(waving, np.maximum(abs(want), np.minimum(1, abs(x) ** -0.5)), abs(want))
    far = (abs(got - want) / amplitude / np.finfo(d).eps)[held]
    assert far.max() <= bound, (d, x[held][far.argmax()])


def of(*values, **options):
  return [Tensor(v, dtype="float64", device="INTERP", requires_grad=True) for v in values]


def close(a, b, eps=200):
  scale = np.maximum(abs(b.numpy()), 1e-300)
  assert (abs(a.numpy() - b.numpy()) / scale).max() < eps * 2.3e-16


def test_identities():
  """Wronski's determinants, and functions after their inverses."""
  (x,) = of(X[1:])
  s = special
  close(s.bessel_j1(x) * s.bessel_y0(x) - s.bessel_j0(x) * s.bessel_y1(x), 2 / (np.pi * x))
  close(s.i0e(x) * s.scaled_modified_bessel_k1(x) + s.i1e(x) * s.scaled_modified_bessel_k0(x), 1 / x)
  (p,) = of(np.concatenate([10.0 ** -np.arange(1.0, 300, 20), np.linspace(0.01, 0.99, 21)]))
  close(s.log_ndtr(s.ndtri(p)), p.log())
  (y,) = of(np.linspace(-5, 20, 40))
  close(s.erfcx(y) * (-y * y).exp(), y.erfc(), 2000)
  a, z = of(
    np.repeat([0.2, 1.0, 5.0, 30.0, 500.0], 5),
    np.outer([0.2, 1.0, 5.0, 30.0, 500.0], [0.3, 0.9, 1, 1.1, 2]).ravel(),
  )
  close(s.gammainc(a, z) + s.gammaincc(a, z), z * 0 + 1)
  step = ((a * z.log() - z) - (a + 1).lgamma()).exp()
  close(s.gammainc(a, z), s.gammainc(a + 1, z) + step, 100_000)
  close(s.polygamma(1, z), s.zeta(2.0, z))


DERIVATIVES = {
  "bessel_j0": lambda x: -special.bessel_j1(x),
  "bessel_y0": lambda x: -special.bessel_y1(x),
  "i0": lambda x: special.i1(x),
  "modified_bessel_k0": lambda x: -special.modified_bessel_k1(x),
  "erfcx": lambda x: 2 * x * special.erfcx(x) - 2 / np.sqrt(np.pi),
  "ndtr": lambda x: (-x * x / 2).exp() / np.sqrt(2 * np.pi),
  "ndtri": lambda x: (special.ndtri(x) ** 2 / 2).exp() * np.sqrt(2 * np.pi),
  "spherical_bessel_j0": lambda x: (x.cos() - special.spherical_bessel_j0(x)) / x,
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
  (x,) = of(np.array([0.05, 0.3, 0.7, 0.9]) if name == "ndtri" else np.array([0.3, 1.9, 2.5, 4.0, 21.0]))
  slope = mini.autograd.grad(getattr(special, name)(x).sum(), x)[0]
  close(slope, DERIVATIVES[name](x.detach()), 20_000)


def test_derivatives_of_two_arguments():
  """The gamma density, and Airy's equation Ai'' = x Ai."""
  a, x = of([0.5, 2.0, 8.0, 40.0], [0.7, 3.0, 6.0, 50.0])
  by_a, by_x = mini.autograd.grad(special.gammainc(a, x).sum(), [a, x])
  close(by_x, ((a - 1) * x.log() - x - a.lgamma()).exp(), 50_000)
  moved = (special.gammainc(a + 1e-6, x) - special.gammainc(a - 1e-6, x)) / 2e-6
  np.testing.assert_allclose(by_a.numpy(), moved.numpy(), rtol=1e-7)
  (t,) = of([-6.0, -2.5, -1.0, 0.5, 1.5, 4.0])
  (first,) = mini.autograd.grad(special.airy_ai(t).sum(), t, create_graph=True)
  (second,) = mini.autograd.grad(first.sum(), t)
  np.testing.assert_allclose(second.numpy(), (t * special.airy_ai(t)).detach().numpy(), rtol=1e-8)


@pytest.mark.full
def test_edges():
  """Of 0, infinities, NaN and what is out of the domain."""
  x = Tensor([0.0, np.inf, -np.inf, np.nan, -1.0])
  want = {
    "bessel_j0": [1, 0, 0, np.nan, 0.7651977], "bessel_y0": [-np.inf, 0, np.nan, np.nan, np.nan],
    "bessel_y1": [-np.inf, 0, np.nan, np.nan, np.nan], "i0": [1, np.inf, np.inf, np.nan, 1.266066],
    "i0e": [1, 0, 0, np.nan, 0.465760], "modified_bessel_k0": [np.inf, 0, np.nan, np.nan, np.nan],
    "scaled_modified_bessel_k1": [np.inf, 0, np.nan, np.nan, np.nan], "airy_ai": [0.3550281, 0, 0, np.nan, 0.5355609],
    "erfcx": [1, 0, np.inf, np.nan, 5.00898], "log_ndtr": [-0.6931472, 0, -np.inf, np.nan, -1.841022],
    "ndtri": [-np.inf, np.nan, np.nan, np.nan, np.nan], "entr": [0, -np.inf, -np.inf, np.nan, -np.inf],
    "spherical_bessel_j0": [1, 0, 0, np.nan, 0.841471],
  }  # fmt: skip
  found = {name: getattr(special, name)(x.to("INTERP")).numpy() for name in want}
  wrong = {n: found[n] for n, w in want.items() if not np.allclose(found[n], w, rtol=1e-5, equal_nan=True)}
  assert not wrong
  a, b = Tensor([0.0, 0.0, 1.0, np.inf, -1.0, 1.0, np.inf]), Tensor([0.0, 1.0, 0.0, 1.0, 1.0, np.inf, np.inf])
  np.testing.assert_array_equal(special.gammainc(a, b).numpy(), [np.nan, 1, 0, 0, np.nan, 1, np.nan])
  np.testing.assert_array_equal(special.gammaincc(a, b).numpy(), [np.nan, 0, 1, 1, np.nan, 0, np.nan])
  assert special.xlog1py(0, Tensor(np.inf)).item() == 0
  with pytest.raises(mini.DTypeError, match="i0: there is no tensor"):
    special.i0(2)
  assert special.i0(Tensor([])).shape == (0,)
