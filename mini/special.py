"""torch.special's names: functions of mathematics, element by element, with gradients of any order.

Halves are computed in float32, integers in the default type. What float64 (float32) reaches is in units of its eps,
relative, or where a function has zeros relative to its amplitude: test/test_special_functions.py.

Bessel's and Airy's functions are averages over nodes of Gauss's rules instead of tables of coefficients: with
M = mean of (1 + c u / 2x)**(nu - 1/2), weighted by u**(nu - 1/2) exp(-u), c = 1, -1 and i give K, I and J + iY (NIST
Digital Library of Mathematical Functions, 10.32.8 and 10.9.13); near 0 there are power series. The incomplete gamma
functions are integrals by such nodes, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.tensor import Tensor
from mini.tensor.argument_check import guard_functions
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.promotion import result_type, wide
from mini.tensor.special import BERNOULLI, EULER, polynomial
from mini.types import ArgumentError, DTypeError, dtypes

T = Any  # a tensor of float32 or float64


def elementwise(f: Callable[..., T]) -> Callable[..., Tensor]:
  """f, which computes in float32 or float64, of tensors or numbers of any real type."""

  @functools.wraps(f)
  def function(*operands: Any, **options: Any) -> Tensor:
    if not any(isinstance(x, Handle) for x in operands):
      fail(DTypeError, f"{f.__name__}: there is no tensor among {operands}; Tensor(x) would fit")
    kind = result_type(*operands)
    if kind.kind == "c":
      fail(DTypeError, f"{f.__name__}: not of complex numbers", x=operands[0])
    kind = kind if kind.kind == "f" else dtypes.default_float
    home = next((x.device for x in operands if isinstance(x, Handle)), None)
    made: Any = (x if isinstance(x, Handle) else Tensor(x, wide(kind), home) for x in operands)
    return f(*(x.cast(wide(kind)) for x in made), **options).cast(kind)

  return function


def _constants(like: T, *arrays: np.ndarray) -> list[T]:
  """Nodes and weights, as vectors of the type and on the device of a tensor."""
  home = like.device if isinstance(like.device, str) else like.device[0]
  return [Tensor(a, like.dtype, home) for a in arrays]


# ---------------------------------------------------------------- Bessel's functions

LAGUERRE = (
  40  # nodes: within some eps of float64 for K from x = 2 on, for J and Y from 3 on, for I from 20 on
)


@functools.cache
def laguerre(a: float) -> tuple[np.ndarray, np.ndarray]:
  """Nodes and weights, whose sum is 1, of Gauss's rule for u**a exp(-u) on u > 0. (G. Golub and J. Welsch, 1969.)"""
  k = np.arange(LAGUERRE)
  off = np.sqrt(k[1:] * (k[1:] + a))
  nodes, vectors = np.linalg.eigh(np.diag(2 * k + a + 1) + np.diag(off, 1) + np.diag(off, -1))
  return nodes, vectors[0] ** 2


def _average(x: T, nu: float, c: int) -> T:
  """The mean of (1 + c u / 2x)**(nu - 1/2), c = 1 or -1: for -1 without the nodes beyond 2x, which weigh nothing."""
  u, w = _constants(x, *laguerre(nu - 0.5))
  t = 1 + c * u / (2 * x.unsqueeze(-1))
  inside = t > 0
  t, p = inside.where(t, 1), nu - 0.5
  power = t.sqrt() if p == 0.5 else t.rsqrt() if p == -0.5 else t**p
  return inside.where(w * power, 0).sum(-1)


def _wave(x: T, nu: float) -> tuple[T, T]:
  """The mean of (1 + i u / 2x)**(nu - 1/2): its real and imaginary part."""
  u, w = _constants(x, *laguerre(nu - 0.5))
  y = u / (2 * x.unsqueeze(-1))
  size, angle = w * (1 + y * y) ** (nu / 2 - 0.25), (nu - 0.5) * y.atan()
  return (size * angle.cos()).sum(-1), (size * angle.sin()).sum(-1)


def _series(x: T, nu: int, sign: int, most: float, weighted: bool = False) -> T:
  """The sum of (sign x**2 / 4)**k / k! / (k + nu)!, for |x| <= most; times digamma(k + 1) + digamma(k + nu + 1)."""
  psi = [-EULER + sum(1 / j for j in range(1, k + 1)) for k in range(32)]
  terms = [sign**k / math.factorial(k) / math.factorial(k + nu) for k in range(30)]
  terms = [t * (psi[k] + psi[k + nu]) for k, t in enumerate(terms)] if weighted else terms
  return polynomial(x * x * 0.25, terms, most * most / 4)


def _apart(x: T, at: float) -> tuple[T, T, T]:
  """(where x < at, x there and else a harmless number, x beyond and else a harmless number)"""
  near = x < at
  return near, near.where(x, at / 2), near.where(at, x)


def _first_kind(x: T, nu: int) -> T:
  """J, even for nu = 0 and odd for nu = 1."""
  near, _, large = _apart(x.abs(), 3.0)
  small = near.where(x, 1)  # with its sign, as the gradient at 0 has to pass
  p, q = _wave(large, nu)
  s, c = large.sin(), large.cos()
  even, odd = (c + s, s - c) if nu == 0 else (s - c, -(s + c))  # of x - pi / 4, x - 3 pi / 4
  far = large.isinf().where(0, (p * even - q * odd) / (math.pi * large).sqrt())
  return near.where((small * 0.5) ** nu * _series(small, nu, -1, 3.0), far if nu == 0 else far * x._unit())


def _second_kind(x: T, nu: int) -> T:
  """Y: NaN below 0, -infinite at 0."""
  near, small, large = _apart(x, 3.0)
  zero = small <= 0
  small = zero.where(1, small)
  p, q = _wave(large, nu)
  s, c = large.sin(), large.cos()
  even, odd = (c + s, s - c) if nu == 0 else (s - c, -(s + c))
  far = large.isinf().where(0, (p * odd + q * even) / (math.pi * large).sqrt())
  half = (small * 0.5) ** nu
  first = 2 * (small * 0.5).log() * half * _series(small, nu, -1, 3.0)
  close = (first - half * _series(small, nu, -1, 3.0, True) - (2 / small if nu else 0)) / math.pi
  edge = (x == 0).where(-math.inf, math.nan)
  return near.where(zero.where(edge, close), far)


def _scaled_first(x: T, nu: int) -> T:
  """exp(-|x|) I, by the series, by nodes on a circle, and by Laguerre's."""
  near, _, more = _apart(x.abs(), 3.0)
  small = near.where(x, 1)  # with its sign, as above
  middle, medium, large = _apart(more, 20.0)
  turns = np.pi * (np.arange(32) + 0.5) / 32
  below, weight = _constants(x, -2 * np.sin(turns / 2) ** 2, np.cos(nu * turns) / 32)
  circle = (weight * (medium.unsqueeze(-1) * below).exp()).sum(-1)
  far = _average(large, nu, -1) * (2 * math.pi * large).rsqrt()
  close = (small * 0.5) ** nu * _series(small, nu, 1, 3.0) * (-small.abs()).exp()
  beyond = middle.where(circle, far)
  return near.where(close, beyond if nu == 0 else beyond * x._unit())


def _scaled_second(x: T, nu: int) -> T:
  """exp(x) K: NaN below 0, infinite at 0."""
  near, small, large = _apart(x, 2.0)
  zero = small <= 0
  small = zero.where(1, small)
  half = (small * 0.5) ** nu
  series, weighted = _series(small, nu, 1, 2.0), _series(small, nu, 1, 2.0, True)
  close = half * ((small * 0.5).log() * series - weighted * 0.5)
  close = (1 / small + close if nu else -close) * small.exp()
  far = _average(large, nu, 1) * (math.pi / 2 / large).sqrt()
  edge = (x == 0).where(math.inf, math.nan)
  return near.where(zero.where(edge, close), far)


def _times_exp(x: T, scaled: T, sign: int) -> T:
  """scaled * exp(sign |x|), in two steps that do not overflow before their product does."""
  endless = x.isinf() & (sign > 0)
  e = (endless.where(0, x).abs() * (sign * 0.5)).exp()
  return endless.where(scaled._unit() * math.inf, scaled * e * e)


def _sine_over(x: T) -> T:
  near = x.abs() < 0.5  # where its gradient would cancel
  small, large = near.where(x, 0), (near | x.isinf()).where(1, x)
  close = polynomial(small * small, [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)])
  return near.where(close, x.isinf().where(0, large.sin() / large))


AIRY = 3 ** (-2 / 3) / math.gamma(2 / 3), 3 ** (-1 / 3) / math.gamma(1 / 3)  # Ai(0), -Ai'(0)


def _airy(x: T) -> T:
  """Ai: its Maclaurin series within -2.2..1.2, beyond them by Bessel's functions of order 1/3 (DLMF, 9.6)."""
  middle = (x > -2.2) & (x < 1.2)
  small, a = middle.where(x, 0), middle.where(3, x.abs())
  f, g = [AIRY[0]], [-AIRY[1]]
  for k in range(1, 14):
    f.append(f[-1] / (3 * k) / (3 * k - 1))
    g.append(g[-1] / (3 * k) / (3 * k + 1))
  cube = small * small * small
  close = polynomial(cube, f, 11.0) + small * polynomial(cube, g, 11.0)
  z, root = a * a.sqrt() * (2 / 3), a.sqrt().sqrt()
  decaying = 0.5 * (-z).exp() * _average(z, 1 / 3, 1)
  p, q = _wave(z, 1 / 3)
  s, c = z.sin(), z.cos()
  waving = ((c + s) * p - (s - c) * q) * 0.5**0.5
  far = (x < 0).where(waving, decaying) / (math.sqrt(math.pi) * root)
  return middle.where(close, a.isinf().where(0, far))


# ---------------------------------------------------------------- the error function and the normal distribution


# (1 + 2z) exp(z^2) erfc(z) as a polynomial of (z - 2.5) / (z + 2.5), z >= 0: the Chebyshev series at 80 nodes, of 40
# digits, cut where it is below 1e-17
# fmt: off
ERFC = (
  1.2648381843668615, -0.12235676308240419, -0.09902453957360054, 0.15762991902320475, -0.10296705603863399,
  0.03276089326912973, 0.0009318928184352962, -0.004382078347539035, 0.0004918658041021489, 0.0006321243999471835,
  -8.847920687669829e-05, -0.00011352263330159166, 6.266010784972976e-06, 2.2700321802206237e-05,
  2.6086713496937893e-06, -4.218714353172795e-06, -1.5844422539027936e-06, 5.270042406441144e-07,
  5.323857055177547e-07, 3.4821591847815385e-08, -1.250612981958526e-07, -4.304925430265938e-08,
  1.928916211860086e-08, 1.1903099290545922e-08, -1.4759816086462547e-09, -1.3684070995217539e-09,
)
# fmt: on


def _erfcx(x: T) -> T:
  below = x < 0
  z = below.where(-x, x)
  t = z.isinf().where(1, (z - 2.5) / (z + 2.5))
  out = polynomial(t, ERFC) / (1 + 2 * z)
  square = below.where(x * x, 0)
  return below.where(2 * square.exp() - out, out)


def _log_ndtr(x: T) -> T:
  far = x < -1
  low, high = far.where(x, -2) * -(0.5**0.5), far.where(0, x) * 0.5**0.5
  return far.where((_erfcx(low) * 0.5).log() - low * low, (-0.5 * high.erfc()).log1p())


def _ndtri(p: T) -> T:
  """The error function's inverse in the middle; below it, the root of log_ndtr(x) = log(p) by Halley's steps from the
  approximation 26.2.23 of M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 1964; above it, mirrored."""
  upper = p > 0.5
  low = upper.where(1 - p, p)
  middle, inside = low > 0.15, low > 0
  small = (middle | inside.logical_not()).where(0.1, low)
  log = small.log()
  t = (-2 * log).sqrt()
  x = polynomial(t, (2.515517, 0.802853, 0.010328)) / polynomial(t, (1, 1.432788, 0.189269, 0.001308)) - t
  for _ in range(2):
    above = _log_ndtr(x)
    slope = (-0.5 * x * x - above).exp() * (2 * math.pi) ** -0.5
    off = (above - log) / slope
    x = x - off / (1 + 0.5 * off * (x + slope))
  tail = inside.where(x, (low == 0).where(-math.inf, math.nan))
  return middle.where(2**0.5 * middle.where(2 * p - 1, 0).erfinv(), upper.where(-tail, tail))


def _xlog1py(x: T, y: T) -> T:
  nothing = (x == 0) & y.isnan().logical_not()
  return nothing.where(0, x * nothing.where(0, y).log1p())


# ---------------------------------------------------------------- the gamma function's relatives


def _hurwitz(s: T, q: T, terms: int = 10) -> T:
  """The sum of (q + k)**-s over k >= 0, for q > 0: so many terms, and Euler and Maclaurin's formula for the rest."""
  total = sum(((q + k) ** -s for k in range(1, terms)), q**-s)
  w = q + terms
  last = w**-s
  rest = w / (s - 1) + 0.5
  factor = s / w
  for k, b in enumerate(BERNOULLI, 1):
    rest = rest + b / math.factorial(2 * k) * factor
    factor = factor * (s + (2 * k - 1)) * (s + 2 * k) / (w * w)
  return total + last * rest


NEGATIVE = 24  # terms of what is below 0


def _zeta(s: T, q: T) -> T:
  """Hurwitz's zeta function: of q < 0, where s is a whole number, as far as -24; NaN beyond, and where s < 1."""
  s, q = s.broadcast_tensors(s, q)
  below = q < 0
  some = (below & (q > -NEGATIVE)).where(q, 0.5)
  more = below.where(some, 0)
  total = _hurwitz((s > 1).where(s, 2), below.where(some + NEGATIVE, (q > 0).where(q, 1)))
  for k in range(NEGATIVE):
    total = total + below.where((more + k) ** -s, 0)
  whole = (s == s.round()) & (q > -NEGATIVE)
  total = (below & whole.logical_not()).where(math.nan, total)
  pole = (q <= 0) & (q == q.round())
  return (s < 1).where(math.nan, ((s == 1) | pole).where(math.inf, total))


def polygamma(n: int, input: Tensor) -> Tensor:
  """The n-th derivative of `digamma`; 1 is trigamma.

  >>> mini.special.polygamma(1, Tensor([1.0])).round(decimals=4)
  Tensor([1.6449])
  """
  if n < 0:
    fail(ArgumentError, f"polygamma: there is no derivative {n}", x=input)
  return _polygamma(input, n=n) if n else input.digamma()


@elementwise
def _polygamma(x: T, n: int) -> T:
  """Below 1/2 by the reflection formula (DLMF, 5.15.6), with the n-th derivative of cot as a polynomial of cot."""
  low = x < 0.5
  y = low.where(1 - x, x)
  out = (-1) ** (n + 1) * math.factorial(n) * _hurwitz(y * 0 + (n + 1), y.isinf().where(1, y))
  out = y.isinf().where(0, out)
  c = [0.0, 1.0]
  for _ in range(n):
    d = [k * a for k, a in enumerate(c)][1:]
    c = [-math.pi * ((d[k] if k < len(d) else 0) + (d[k - 2] if k > 1 else 0)) for k in range(len(d) + 2)]
  part = x - x.round().detach()
  pole = part == 0
  part = (low & pole.logical_not() & x.isfinite()).where(part, 0.25)
  steep = part.abs() > 0.25
  angle = math.pi * steep.where(part._unit() * (0.5 - part.abs()), part)  # exact where cot is near 0
  cot = steep.where(angle.tan(), 1 / steep.where(1, angle).tan())
  slope: Any = c[-1]
  for a in reversed(c[:-1]):
    slope = slope * cot + a
  mirrored = (-1) ** n * out - math.pi * slope
  return low.where(pole.where(math.inf * (-1) ** (n + 1), mirrored), out)


@functools.cache
def legendre() -> tuple[np.ndarray, np.ndarray]:
  """Nodes and weights of Gauss's rule on [0, 1]."""
  nodes, weights = np.polynomial.legendre.leggauss(64)
  return (nodes + 1) / 2, weights / 2


def _log_density(a: T, x: T) -> T:
  """log(x**a exp(-x) / gamma(a + 1)), for large a without what cancels."""
  large = a > 10
  b = large.where(a, 20)
  off, v = (x - b) / b, 1 / b
  near = off.abs() < 0.5
  r = near.where(off / (2 + off), 0)  # log(1 + off) - off by what its first terms leave
  odd = polynomial(r * r, [1 / (2 * k + 3) for k in range(18)])
  lost = near.where(2 * r * r * (r * odd - 1 / (1 - r)), (x / b).log() - off)
  terms = [c / (2 * k * (2 * k - 1)) for k, c in enumerate(BERNOULLI, 1)]
  far = b * lost - 0.5 * (2 * math.pi * b).log() - v * polynomial(v * v, terms, 0.01)
  c = large.where(1, a)
  return large.where(far, c * x.log() - x - (c + 1).lgamma())


def _gamma_parts(a: T, x: T) -> tuple[T, T]:
  """The regularized incomplete gamma functions P and Q, each accurate where it is small.

  P below a + 1: ten terms of its series, and the integral of (1 - s)**(a + 9) exp(x s); Q above: that of
  exp(-u) (1 + u / x)**(a - 1). Both over what is above 1e-18 of the largest value, by Gauss's rule.
  """
  a, x = a.broadcast_tensors(a, x)
  inside = (a > 0) & (x > 0) & a.isfinite() & x.isfinite()
  b, y = inside.where(a, 1), inside.where(x, 1)
  low = y < b + 1
  t, w = _constants(y, *legendre())

  p, z = low.where(b, 1), low.where(y, 0.5)
  more = p + 10
  width = (8.8 * more.rsqrt()).minimum(38 / (more - 1 - z)).clamp(max=1).detach().unsqueeze(-1)
  s = width * t
  integral = (w * width * ((more - 1).unsqueeze(-1) * (-s).log1p() + z.unsqueeze(-1) * s).exp()).sum(-1)
  lower, term = _log_density(more, z).exp() * more * integral, _log_density(p, z).exp()
  for k in range(1, 11):
    lower, term = lower + term, term * z / (p + k)

  q, z = low.where(1, b), low.where(3, y)
  width = (38 * z / (z - q + 1)).minimum(38 + 10.5 * q.sqrt()).detach().unsqueeze(-1)
  u = width * t
  integral = (w * width * ((q - 1).unsqueeze(-1) * (u / z.unsqueeze(-1)).log1p() - u).exp()).sum(-1)
  upper = _log_density(q, z).exp() * q / z * integral

  done = (x.isinf() | (a == 0)).cast(x.dtype)  # 1, where all of it lies below x
  unknown = (a < 0) | (x < 0) | a.isnan() | x.isnan() | ((a == 0) & (x == 0)) | (a.isinf() & x.isinf())
  found = low.where(lower, 1 - upper), low.where(1 - lower, upper)
  edges = unknown.where(math.nan, done), unknown.where(math.nan, 1 - done)
  return inside.where(found[0], edges[0]), inside.where(found[1], edges[1])


def multigammaln(input: Tensor, p: int) -> Tensor:
  """The logarithm of the multivariate gamma function of dimension p."""
  terms = ((input - 0.5 * j).lgamma() for j in range(1, p))
  return sum(terms, input.lgamma()) + 0.25 * p * (p - 1) * math.log(math.pi)


# ---------------------------------------------------------------- orthogonal polynomials

# fmt: off
# name: (that of degree 1, that of degree k + 1 by those of degree k and k - 1)
POLYNOMIALS: dict[str, tuple[Callable[[T], T], Callable[[T, int, T, T], T]]] = {
  "chebyshev_polynomial_t":  (lambda x: x,         lambda x, k, p, q: 2 * x * p - q),
  "chebyshev_polynomial_u":  (lambda x: 2 * x,     lambda x, k, p, q: 2 * x * p - q),
  "chebyshev_polynomial_v":  (lambda x: 2 * x - 1, lambda x, k, p, q: 2 * x * p - q),
  "chebyshev_polynomial_w":  (lambda x: 2 * x + 1, lambda x, k, p, q: 2 * x * p - q),
  "hermite_polynomial_h":    (lambda x: 2 * x,     lambda x, k, p, q: 2 * x * p - 2 * k * q),
  "hermite_polynomial_he":   (lambda x: x,         lambda x, k, p, q: x * p - k * q),
  "laguerre_polynomial_l":   (lambda x: 1 - x,     lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
  "legendre_polynomial_p":   (lambda x: x,         lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}
# fmt: on


def _orthogonal(name: str, shifted: bool = False) -> Callable[..., Tensor]:
  first, following = POLYNOMIALS[name]

  @elementwise
  def values(x: T, n: T) -> T:
    x = 2 * x - 1 if shifted else x
    most = int(n.max().item()) if n.numel() else 0
    n = n.trunc()
    q, p = x * 0 + n * 0 + 1, first(x) + n * 0
    out = (n == 1).where(p, (n < 0).where(0, q))
    for k in range(1, most):
      q, p = p, following(x, k, p, q)
      out = (n == k + 1).where(p, out)
    return out

  at = "2 x - 1" if shifted else "x"
  values.__name__ = values.__qualname__ = ("shifted_" if shifted else "") + name
  values.__doc__ = (
    f"The polynomial of degree n at {at}; 0 for n < 0. Degrees in a tensor are looked at at once."
  )
  return values


# ---------------------------------------------------------------- the table

# fmt: off
# name: (its formula, what it is)
FUNCTIONS: dict[str, tuple[Callable[..., T], str]] = {
  "airy_ai":             (_airy,                                         "Airy's function Ai."),
  "bessel_j0":           (lambda x: _first_kind(x, 0),                   "Bessel's function J of order 0."),
  "bessel_j1":           (lambda x: _first_kind(x, 1),                   "Bessel's function J of order 1."),
  "bessel_y0":           (lambda x: _second_kind(x, 0),                  "Bessel's function Y of order 0."),
  "bessel_y1":           (lambda x: _second_kind(x, 1),                  "Bessel's function Y of order 1."),
  "i0":                  (lambda x: _times_exp(x, _scaled_first(x, 0), 1),  "Bessel's function I of order 0."),
  "i1":                  (lambda x: _times_exp(x, _scaled_first(x, 1), 1),  "Bessel's function I of order 1."),
  "i0e":                 (lambda x: _scaled_first(x, 0),                 "exp(-|x|) i0(x)."),
  "i1e":                 (lambda x: _scaled_first(x, 1),                 "exp(-|x|) i1(x)."),
  "modified_bessel_k0":  (lambda x: _times_exp(x, _scaled_second(x, 0), -1), "Bessel's function K of order 0."),
  "modified_bessel_k1":  (lambda x: _times_exp(x, _scaled_second(x, 1), -1), "Bessel's function K of order 1."),
  "scaled_modified_bessel_k0": (lambda x: _scaled_second(x, 0),          "exp(x) modified_bessel_k0(x)."),
  "scaled_modified_bessel_k1": (lambda x: _scaled_second(x, 1),          "exp(x) modified_bessel_k1(x)."),
  "spherical_bessel_j0": (_sine_over,                                  "sin(x) / x."),
  "entr":                (lambda x: (x < 0).where(-math.inf, -x.xlogy(x)),  "-x log(x): 0 at 0, -infinite below."),
  "erfcx":               (_erfcx,                                        "exp(x**2) erfc(x)."),
  "log_ndtr":            (_log_ndtr,                                     "log(ndtr(x)), accurate where that is small."),
  "ndtr":                (lambda x: 0.5 * (x * -(0.5**0.5)).erfc(),      "The probability of a normal number below x."),
  "ndtri":               (_ndtri,                                        "The inverse of `ndtr`."),
  "gammainc":            (lambda a, x: _gamma_parts(a, x)[0],            "The incomplete gamma function P(a, x)."),
  "gammaincc":           (lambda a, x: _gamma_parts(a, x)[1],            "1 - gammainc(a, x): Q."),
  "xlog1py":             (_xlog1py,                                      "x log(1 + y), 0 where x is 0."),
  "zeta":                (_zeta,                                         _zeta.__doc__ or ""),
}
# fmt: on
SAME = {"modified_bessel_i0": "i0", "modified_bessel_i1": "i1"}
METHODS = {"psi": "digamma", "expit": "sigmoid", "gammaln": "lgamma"}
SAME_METHODS = (
  "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "log_softmax", "logit", "logsumexp", "round", "sinc",
  "softmax", "xlogy",
)  # fmt: skip


def _published(name: str, formula: Callable[..., T], doc: str) -> Callable[..., Tensor]:
  def row(*operands: T) -> T:
    return formula(*operands)

  row.__name__ = row.__qualname__ = name
  row.__doc__ = doc
  return elementwise(row)


def _method(name: str) -> Callable[..., Tensor]:
  """A method of tensors, as a function."""

  def function(input: Any, *args: Any, **options: Any) -> Tensor:
    return getattr(input if isinstance(input, Handle) else Tensor(input), name)(*args, **options)

  function.__doc__ = f"`Tensor.{name}`."
  return function


_found = {name: _published(name, *row) for name, row in FUNCTIONS.items()}
_found.update((name, _found[same]) for name, same in SAME.items())
_found.update(
  (name, _method(method)) for name, method in (*METHODS.items(), *zip(SAME_METHODS, SAME_METHODS))
)
_found.update((name, _orthogonal(name)) for name in POLYNOMIALS)
_found.update(
  (f"shifted_{name}", _orthogonal(name, True)) for name in POLYNOMIALS if name.startswith("chebyshev")
)
globals().update(_found)

__all__ = ["multigammaln", "polygamma", *_found]
guard_functions(__all__, globals())
