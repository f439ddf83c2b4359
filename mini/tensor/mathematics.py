"""Functions of mathematics, element by element; of integers in float32, but for rounding.

What is a composite (mini/ir/composites.py) is one node; the others are made of these.
"""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING

from mini.ir import graph
from mini.tensor.elementwise import Elementwise, sloped
from mini.tensor.errors import fail
from mini.types import DTypeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Mathematics(Elementwise):
  """Powers, exponentials, logarithms, trigonometry, rounding."""

  @property
  def real(self) -> Tensor:
    """The real part; of a real tensor the tensor itself.

    >>> Tensor([1 + 2j]).real
    Tensor([1.])
    """
    return self  # type: ignore[return-value]

  @property
  def imag(self) -> Tensor:
    """The imaginary part of complex numbers. DTypeError of a real tensor.

    >>> Tensor([1 + 2j]).imag
    Tensor([2.])
    """
    fail(DTypeError, f"imag: {self.dtype.name} is not complex; x.zeros_like() would fit", x=self)

  def sqrt(self) -> Tensor:
    """The square root; NaN of negative numbers.

    >>> Tensor([4, 9]).sqrt()
    Tensor([2., 3.])
    """
    return self._math("sqrt")

  def rsqrt(self) -> Tensor:
    """1 / sqrt(a)."""
    return self._math("rsqrt")

  def square(self) -> Tensor:
    """a * a; of booleans as integers."""
    u = graph.cast(self._node, dtypes.default_int) if self.dtype is dtypes.bool else self._node
    return self._alu("mul", u, u)

  def exp(self) -> Tensor:
    """e to the power of a."""
    return self._math("exp")

  def exp2(self) -> Tensor:
    """2 to the power of a."""
    return self._math("exp2")

  def expm1(self) -> Tensor:
    """exp(a) - 1, accurate near 0."""
    return self._math("expm1")

  def log(self) -> Tensor:
    """The natural logarithm; -inf of 0, NaN of negative numbers."""
    return self._math("log")

  def log2(self) -> Tensor:
    """The logarithm to the base 2."""
    return self._math("log2")

  def log10(self) -> Tensor:
    """The logarithm to the base 10."""
    return self.log2() * math.log10(2)

  def log1p(self) -> Tensor:
    """log(1 + a), accurate near 0: log(u) + c / u with u = 1 + a, and c what u lost of it."""
    x, kind = self._real()
    u = 1 + x
    lost = ((u == x) | (u == 0)).where(0, x - (u - 1))  # none of huge and of infinite ones
    out = (x == 0).where(x, u.log() + lost / (u == 0).where(1, u))
    return sloped(out, lambda x, y: 1 / (1 + x), x).cast(kind)

  def sin(self) -> Tensor:
    """The sine of radians."""
    return self._math("sin")

  def cos(self) -> Tensor:
    """The cosine of radians."""
    return self._math("cos")

  def tan(self) -> Tensor:
    """The tangent of radians."""
    return self.sin() / self.cos()

  def asin(self) -> Tensor:
    """The inverse sine, in radians."""
    x, kind = self._real()
    out = (x / ((1 - x) * (1 + x)).sqrt()).atan()
    return sloped(out, lambda x, y: x._secant(), x).cast(kind)

  def acos(self) -> Tensor:
    """The inverse cosine, in radians."""
    x, kind = self._real()
    out = 2 * ((1 - x) / (1 + x)).sqrt().atan()
    return sloped(out, lambda x, y: -x._secant(), x).cast(kind)

  def _secant(self) -> Tensor:
    """1 / sqrt(1 - a * a), exact near 1, with a slope that is exact near 0."""
    return sloped(((1 - self) * (1 + self)).rsqrt(), lambda x, y: x * y * y * y, self)

  def atan(self) -> Tensor:
    """The inverse tangent, in radians."""
    return self._math("atan")

  def sinh(self) -> Tensor:
    """The hyperbolic sine, in float32 within 4 units in the last place."""
    x, kind = self._real()
    small = x.abs() < 0.5
    t, half = small.where(x * 0.5, 0).tanh(), x._half_exp()
    out = small.where(2 * t / (1 - t * t), (half - 0.25 / half) * (x < 0).where(-1, 1))
    return sloped(out, lambda x, y: x.cosh(), x).cast(kind)

  def cosh(self) -> Tensor:
    """The hyperbolic cosine."""
    x, kind = self._real()
    half = x._half_exp()
    return sloped(half + 0.25 / half, lambda x, y: x.sinh(), x).cast(kind)

  def _half_exp(self) -> Tensor:
    """exp(|a|) / 2, also where exp(|a|) overflows."""
    x = self.abs()
    over = x > (700 if x.dtype is dtypes.float64 else 80)
    e = over.where(x * 0.5, x).exp()
    return e * 0.5 * over.where(e, 1)

  def tanh(self) -> Tensor:
    """The hyperbolic tangent."""
    return self._math("tanh")

  def asinh(self) -> Tensor:
    """The inverse hyperbolic sine."""
    a, kind = self._real()
    x = a.abs()
    near = x < 1e10
    small = near.where(x, 1)
    out = near.where(
      (small + small.square() / (1 + (small.square() + 1).sqrt())).log1p(), x.maximum(1).log() + math.log(2)
    )
    return sloped((a < 0).where(-out, out), lambda x, y: (x * x + 1).rsqrt(), a).cast(kind)

  def acosh(self) -> Tensor:
    """The inverse hyperbolic cosine."""
    x, kind = self._real()
    t = x - 1
    near = t < 1e10
    small = near.where(t, 1)
    out = near.where((small + small.sqrt() * (small + 2).sqrt()).log1p(), x.maximum(1).log() + math.log(2))

    def slope(x: Tensor, y: Tensor) -> Tensor:
      return sloped(((x - 1) * (x + 1)).rsqrt(), lambda x, y: -x * y * y * y, x)

    return sloped(out, slope, x).cast(kind)

  def atanh(self) -> Tensor:
    """The inverse hyperbolic tangent."""
    a, kind = self._real()
    x = a.abs()  # of a negative number, 1 + the quotient would lose what counts
    out = (2 * x / (1 - x)).log1p() * (a < 0).where(-0.5, 0.5)

    def slope(x: Tensor, y: Tensor) -> Tensor:
      return sloped(1 / ((1 - x) * (1 + x)), lambda x, y: 2 * x * y * y, x)

    return sloped(out, slope, a).cast(kind)

  def erf(self) -> Tensor:
    """The error function."""
    return self._math("erf")

  def floor(self) -> Tensor:
    """The largest integer not above a, as a float; integers stay."""
    return self._rounded("floor")

  def ceil(self) -> Tensor:
    """The least integer not below a, as a float; integers stay."""
    return self._rounded("ceil")

  def trunc(self) -> Tensor:
    """Without the fraction: rounded towards zero."""
    return self._rounded("trunc")

  def round(self, decimals: int = 0) -> Tensor:
    """The nearest integer, halves to the even one; with decimals, so many digits behind the point.

    >>> Tensor([0.5, 1.5, 2.5]).round()
    Tensor([0., 2., 2.])
    """
    if decimals == 0 or self.dtype.kind != "f":
      return self._rounded("round")
    scale = 10.0 ** abs(index(decimals))
    return (self * scale).round() / scale if decimals > 0 else (self / scale).round() * scale

  def frac(self) -> Tensor:
    """What trunc takes away."""
    return self - self.trunc()

  def _rounded(self, op: str) -> Tensor:
    return self._alu(op, self._node) if self.dtype.kind == "f" else self._new(self._node)
