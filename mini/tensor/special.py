"""Special functions, element by element, and those of two tensors that have names of their own.
Halves are computed in float32.

What is made here is made of other methods, so that gradients of any order follow; where a branch is not taken, its
input is a harmless number, or the gradient would be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mini.ir import graph
from mini.ir.uop import const
from mini.tensor.data import Operand
from mini.tensor.elementwise import sloped
from mini.tensor.mathematics import Mathematics
from mini.tensor.promotion import broadcast, nodes, result_type
from mini.types import DType, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

# fmt: off
# (zeta(k) - 1) (-1)^k / k, k = 2, 3, ...: lgamma(2 + z) = (1 - Euler's constant) z + their sum times z^k
LGAMMA = (
  0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986, 0.0028905103307415234,
  -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939, 9.945751278180853e-05,
  -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06, 4.374866789907488e-06,
  -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07, 2.1207184805554665e-07,
  -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08, 1.0838659214896955e-08,
  -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09, 5.731367241678862e-10,
  -2.7595228851242334e-10,
)
BERNOULLI = 1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510  # B2, B4, ...
# fmt: on
EULER = 0.5772156649015329
FAR = 8.5  # from here on Stirling's series with these terms is exact to 3e-16


def polynomial(x: Tensor, coefficients: Sequence[float], scale: float = 1.0) -> Tensor:
  """coefficients[0] + coefficients[1] x + ..., without those that the type does not see for |x| <= scale."""
  least = 1e-18 if x.dtype is dtypes.float64 else 1e-9
  seen = [c for n, c in enumerate(coefficients) if abs(c) * scale**n > least]
  total: Any = seen[-1]
  for c in reversed(seen[:-1]):
    total = x * total + c
  return total


def shares(rate: float) -> Callable[..., tuple[Tensor, Tensor]]:
  """The slopes of log(exp(a) + exp(b)): how much of the sum each is; rate: the logarithm of another base."""

  def slopes(a: Tensor, b: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    apart = ((a == b) & a.isinf()).where(0, a - b) * rate
    return apart.sigmoid(), (-apart).sigmoid()

  return slopes


class Special(Mathematics):
  """The error function's complement and inverse, the gamma function's logarithm, and functions of two tensors."""

  def _pair(self, what: str, other: Operand) -> tuple[Tensor, Tensor]:
    """Both of one float type, in one shape."""
    other = self._coerced(other)
    kind = result_type(self, other)
    a, b = nodes(what, (self, other), kind if kind.kind == "f" else dtypes.default_float)
    return self._new(a), self._new(b)

  def _real_pair(self, what: str, other: Operand) -> tuple[Tensor, Tensor, DType]:
    """Both as float32 or float64, in one shape, and the float type of the result."""
    a, b = self._pair(what, other)
    return a._real()[0], b._real()[0], a.dtype

  def _sign_bit(self) -> Tensor:
    """Where a float is negative, or -0.0, or NaN with the sign bit."""
    as_int = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[self.dtype.itemsize]
    return self._new(graph.bitcast(self._node, as_int)) < 0

  def signbit(self) -> Tensor:
    """Where it is negative; of floats also where it is -0.0.

    >>> Tensor([-1.0, -0.0, 0.0]).signbit()
    Tensor([ True,  True, False])
    """
    return self._sign_bit() if self.dtype.kind == "f" else self < 0

  def _unit(self) -> Tensor:
    """1 or, where the sign bit is set, -1: a factor."""
    return self._flat(
      self._sign_bit().where(self._new(const(-1, self.dtype)), self._new(const(1, self.dtype)))._node
    )

  def copysign(self, other: Operand) -> Tensor:
    """The magnitude of a with the sign of b; of -0.0 it is minus. Its slope at 0 is 0, as in PyTorch.

    >>> Tensor([1.0, -2.0]).copysign(Tensor([-0.0, 3.0]))
    Tensor([-1.,  2.])
    """
    a, b = self._pair("copysign", other)
    return a.abs() * b._unit()

  def _signed_as(self, other: Tensor) -> Tensor:
    """`copysign`, through which gradients pass at 0, too."""
    a, b = self._pair("copysign", other)
    return a * a._unit() * b._unit()

  def hypot(self, other: Operand) -> Tensor:
    """sqrt(a**2 + b**2), without overflow; infinite where either is.

    >>> Tensor([3.0]).hypot(Tensor([4.0]))
    Tensor([5.])
    """
    a, b, kind = self._real_pair("hypot", other)
    x, y = a.abs(), b.abs()
    large, small = (x < y).where(y, x), (x < y).where(x, y)
    ratio = small / ((large == 0) | large.isinf()).where(1, large)
    out = (x.isinf() | y.isinf()).where(math.inf, large * (1 + ratio * ratio).sqrt())

    def slopes(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
      length = (c == 0).where(1, c)
      return a / length, b / length

    return sloped(out, slopes, a, b).cast(kind)

  def atan2(self, other: Operand) -> Tensor:
    """The angle of the point (b, a), in radians, between -pi and pi: atan(a / b) in the right quadrant.

    >>> Tensor([1.0, -1.0]).atan2(Tensor([-1.0, -1.0]))
    Tensor([ 2.3561945, -2.3561945])
    """
    y, x, kind = self._real_pair("atan2", other)
    sy, sx = y._unit(), x._unit()
    a, b = y * sy, x * sx
    steep = b < a
    short, long = steep.where(b, a), steep.where(a, b)
    both = short.isinf()
    ratio = both.where(1, short) / (both | (long == 0)).where(1, long)
    angle = ratio.atan()
    angle = steep.where(math.pi / 2 - angle, angle)
    angle = (sx < 0).where(math.pi - angle, angle) * sy

    def slopes(y: Tensor, x: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
      r = y.hypot(x)
      r = (r == 0).where(1, r)
      return x / r / r, -(y / r / r)

    return sloped((y.isnan() | x.isnan()).where(math.nan, angle), slopes, y, x).cast(kind)

  def logaddexp(self, other: Operand) -> Tensor:
    """log(exp(a) + exp(b)), without overflow.

    >>> Tensor([1000.0]).logaddexp(Tensor([1000.0]))
    Tensor([1000.6932])
    """
    a, b, kind = self._real_pair("logaddexp", other)
    apart = (a == b).where(0, a - b).abs()
    return sloped(a.maximum(b) + (-apart).exp().log1p(), shares(1), a, b).cast(kind)

  def logaddexp2(self, other: Operand) -> Tensor:
    """log2(2**a + 2**b), without overflow."""
    a, b, kind = self._real_pair("logaddexp2", other)
    apart = (a == b).where(0, a - b).abs()
    out = a.maximum(b) + (-apart).exp2().log1p() * (1 / math.log(2))
    return sloped(out, shares(math.log(2)), a, b).cast(kind)

  def fmax(self, other: Operand) -> Tensor:
    """The larger one; where one is NaN, the other."""
    return self._without_nan("fmax", other, "maximum", lambda a, b: a >= b)

  def fmin(self, other: Operand) -> Tensor:
    """The smaller one; where one is NaN, the other.

    >>> Tensor([1.0, float("nan")]).fmin(Tensor([0.5, 2.0]))
    Tensor([0.5, 2. ])
    """
    return self._without_nan("fmin", other, "minimum", lambda a, b: a <= b)

  def _without_nan(self, what: str, other: Operand, name: str, first: Callable[..., Tensor]) -> Tensor:
    """Of equal ones the first has the slope, as in PyTorch."""
    found = nodes(what, (self, self._coerced(other)))
    a, b = map(self._new, broadcast(what, found, (self, other)))
    out = a.isnan().where(b, b.isnan().where(a, getattr(a, name)(b)))

    def slopes(a: Tensor, b: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
      share = (first(a, b) | b.isnan()).cast(a.dtype)
      return share, 1 - share

    return sloped(out, slopes, a, b)

  def heaviside(self, values: Operand) -> Tensor:
    """0 where it is negative or NaN, 1 where it is positive, and values where it is 0.

    >>> Tensor([-1.0, 0.0, 2.0]).heaviside(Tensor(0.5))
    Tensor([0. , 0.5, 1. ])
    """
    a, b = map(self._new, nodes("heaviside", (self, values)))
    return (a == 0).where(b, (a > 0).cast(a.dtype))

  def nextafter(self, other: Operand) -> Tensor:
    """The next number of the type towards b.

    >>> (Tensor([1.0]).nextafter(2.0) - 1).item() == 2**-23
    True
    """
    a, b = self._pair("nextafter", other)
    as_int = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[a.dtype.itemsize]
    bits = self._new(graph.bitcast(a.detach()._node, as_int))
    away = (a < b) == (a > 0)  # from zero: its bits are one more
    near_zero = b._sign_bit().where(self._new(const(-(2 ** (8 * a.dtype.itemsize - 1)), as_int)), 0) + 1
    stepped = (a == 0).where(near_zero, bits + away.where(1, -1)).cast(as_int)
    moved = self._new(graph.bitcast(stepped._node, a.dtype))
    out = (a == b).where(b, (a.isnan() | b.isnan()).where(math.nan, moved))
    return sloped(out.detach(), lambda a, b, y: ((a != b).cast(a.dtype), 0), a, b)

  def sinc(self) -> Tensor:
    """sin(pi a) / (pi a), 1 at 0.

    >>> Tensor([0.0, 0.5]).sinc().round(decimals=4)
    Tensor([1.    , 0.6366])
    """
    x, kind = self._real()
    safe = (x == 0).where(1, x)
    out = (x == 0).where(1, safe._sin_pi() / (math.pi * safe))
    return sloped(out, lambda x, y: x._sinc_slope(y), x).cast(kind)

  def _sinc_slope(self, y: Tensor) -> Tensor:
    """(cos(pi a) - sinc(a)) / a; near 0, where that cancels, its Taylor series."""
    near = self.abs() < 0.5
    far, z = near.where(1, self), (near.where(self, 0) * math.pi).square()
    terms = [(-1) ** k * 2 * k * math.pi**2 / math.factorial(2 * k + 1) for k in range(1, 9)]
    series = near.where(self, 0) * polynomial(z, terms, math.pi**2 / 4)
    return near.where(series, ((math.pi * (far - (far * 0.5).round().detach() * 2)).cos() - y) / far)

  def _sin_pi(self) -> Tensor:
    """sin(pi a), of how far a is from the nearest whole number."""
    whole = self.round().detach()
    odd = (whole * 0.5).round() * 2 != whole
    return (math.pi * (self - whole)).sin() * odd.where(-1, 1)

  # ---------------------------------------------------------------- the error function

  def erfc(self) -> Tensor:
    """1 - erf(a), accurate where that is small.

    >>> (Tensor([5.0]).erfc() * 1e12).round(decimals=4)
    Tensor([1.5375])
    """
    return self._math("erfc")

  def erfinv(self) -> Tensor:
    """The number whose erf is a: infinite at -1 and 1, NaN beyond. S. Winitzki's approximation, and Halley's steps.

    >>> Tensor([0.5]).erfinv().round(decimals=4)
    Tensor([0.4769])
    """
    y, kind = self._real()
    a = y.abs()
    central, outside = a < 0.5, (a < 1).logical_not()
    slope = 2 / math.sqrt(math.pi)
    small = central.where(y, 0)
    x = small * (1 + math.pi / 12 * small * small) / slope
    rest = (central | outside).where(0.25, 1 - a)
    log, c = (rest * (2 - rest)).log(), 0.147
    half = 2 / (math.pi * c) + log / 2
    far = ((half * half - log / c).sqrt() - half).sqrt()
    for _ in range(3 if y.dtype is dtypes.float64 else 2):
      off = (x.erf() - small) / (slope * (-x * x).exp())
      x = x - off / (1 + x * off)
      off = (rest - far.erfc()) / (slope * (-far * far).exp())
      far = far - off / (1 + far * off)
    edge = (a == 1).where(math.inf, math.nan)
    tail = outside.where(edge, far) * (y < 0).where(-1, 1)
    return sloped(central.where(x, tail), lambda y, x: (x * x).exp() / slope, y).cast(kind)

  # ---------------------------------------------------------------- the gamma function

  def lgamma(self) -> Tensor:
    """The logarithm of the gamma function's magnitude: infinite at 0, -1, -2, ...

    Its Taylor series around 2, Stirling's series (NIST Digital Library of Mathematical Functions, 5.7.3 and 5.11.1)
    from 8.5 on, in between and below the recurrence and the reflection.

    >>> Tensor([1.0, 5.0]).lgamma().exp().round(decimals=4)
    Tensor([ 1., 24.])
    """
    x, kind = self._real()
    low = x < 0.5
    y = low.where(1 - x, x)
    is_near = y < FAR
    m, product = is_near.where(y, 2), y * 0 + 1
    for _ in range(6):
      over = m >= 2.5
      product, m = over.where(product * (m - 1), product), over.where(m - 1, m)
    one = m < 1.5
    z = one.where(m - 1, m - 2)
    series = z * (1 - EULER) + z * z * polynomial(z, LGAMMA, 0.5)
    near = series - one.where(z.log1p(), 0) + is_near.where(product, 1).log()
    w = is_near.where(FAR, y)
    v = 1 / w
    terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)]
    stirling = (
      (w - 0.5) * (w.log() - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + v * polynomial(v * v, terms, FAR**-2)
    )
    out = is_near.where(near, stirling)
    reflected = low & x.isfinite()
    part = (x - x.round()).abs()
    sine = (part < 1e-9).where(part, x._sin_pi().abs() / math.pi)
    mirrored = -(reflected.where(sine, 1).log() + reflected.where(out, 0))
    pole = x.isinf() | (reflected & (sine == 0))
    return sloped(pole.where(math.inf, reflected.where(mirrored, out)), lambda x, y: x.digamma(), x).cast(
      kind
    )

  def polygamma(self, n: int) -> Tensor:
    """The n-th derivative of digamma: `mini.special.polygamma`."""
    return import_module("mini.special").polygamma(n, self)

  def mvlgamma(self, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p.

    >>> Tensor([3.0]).mvlgamma(2).round(decimals=4)
    Tensor([1.5502])
    """
    return import_module("mini.special").multigammaln(self, p)

  def igamma(self, other: Operand) -> Tensor:
    """The regularized lower incomplete gamma function of a = self and x = other: `mini.special.gammainc`.

    >>> Tensor([1.0]).igamma(2.0).round(decimals=4)
    Tensor([0.8647])
    """
    return import_module("mini.special").gammainc(self, other)

  def igammac(self, other: Operand) -> Tensor:
    """1 - `igamma`, accurate where that is small: `mini.special.gammaincc`."""
    return import_module("mini.special").gammaincc(self, other)

  def i0(self) -> Tensor:
    """Bessel's modified function of the first kind, of order 0: `mini.special.i0`."""
    return import_module("mini.special").i0(self)

  def digamma(self) -> Tensor:
    """The derivative of lgamma: NaN at -1, -2, ..., infinite at 0. (NIST Digital Library, 5.5.2, 5.5.4 and 5.11.2.)

    >>> Tensor([1.0]).digamma().round(decimals=4)
    Tensor([-0.5772])
    """
    x, kind = self._real()
    low = x < 0.5
    m = low.where(1 - x, x)
    total = m * 0
    for _ in range(8):
      less = m < FAR
      total, m = less.where(total + 1 / m, total), less.where(m + 1, m)
    v = 1 / m
    terms = [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)]
    out = m.log() - 0.5 * v - v * v * polynomial(v * v, terms, FAR**-2) - total
    part = x - x.round()
    whole = part == 0
    safe = (low & whole.logical_not() & x.isfinite()).where(part, 0.25)
    mirrored = out - math.pi / (math.pi * safe).tan()
    pole = (x == 0).where(-math.inf * x._unit(), math.nan)
    out = low.where((whole | x.isinf()).where(pole, mirrored), (x == math.inf).where(math.inf, out))
    return sloped(out, lambda x, y: x._trigamma(), x).cast(kind)

  def _trigamma(self) -> Tensor:
    """The derivative of digamma: infinite at 0, -1, ... (NIST Digital Library, 5.15.5, 5.15.6 and 5.15.8.)"""
    low = self < 0.5
    m = low.where(1 - self, self)
    total: Any = 0
    for _ in range(8):
      less = m < FAR
      total, m = total + less.where(1 / (m * m), 0), less.where(m + 1, m)
    v = 1 / m
    out = v + 0.5 * v * v + v * v * v * polynomial(v * v, BERNOULLI, FAR**-2) + total
    return low.where((math.pi / low.where(self, 0.5)._sin_pi()).square() - out, out)

  # ---------------------------------------------------------------- other names

  def mod(self, other: Operand) -> Tensor:
    """tinygrad's name of `remainder`: a % b.

    >>> Tensor([-7]).mod(3)
    Tensor([2])
    """
    return self.remainder(other)

  def idiv(self, other: Operand) -> Tensor:
    """tinygrad's integer division, rounded towards zero.

    >>> Tensor([-7]).idiv(2)
    Tensor([-3])
    """
    return self.div(other, rounding_mode="trunc")

  def deg2rad(self) -> Tensor:
    """Degrees as radians."""
    return self * (math.pi / 180)

  def rad2deg(self) -> Tensor:
    """Radians as degrees."""
    return self * (180 / math.pi)
