"""Functions of mathematics, element by element; of integers in float32, but for rounding.

What is a composite (mini/ir/composites.py) is one node; the others are made of these.
"""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING

from mini.ir import graph
from mini.tensor.elementwise import Elementwise
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
    u = graph.cast(self.uop, dtypes.default_int) if self.dtype is dtypes.bool else self.uop
    return self._alu("mul", u, u)

  def exp(self) -> Tensor:
    """e to the power of a."""
    return self._math("exp")

  def exp2(self) -> Tensor:
    """2 to the power of a."""
    return self._math("exp2")

  def expm1(self) -> Tensor:
    """exp(a) - 1, accurate near 0: in float32 within 4 units in the last place."""
    x = self._new(self._float())
    small = x.abs() < 0.35  # where a difference would lose more than tanh does
    t = small.where(x * 0.5, 0).tanh()
    return small.where(2 * t / (1 - t), x.exp() - 1)

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
    x = self._new(self._float())
    u = 1 + x
    lost = ((u == x) | (u == 0)).where(0, x - (u - 1)).detach()  # none of huge and of infinite ones
    zero = x == 0
    small = zero.where(x, 0)  # where the sign of 0 counts
    out = u.log() + lost / (u == 0).where(1, u)
    return zero.where(small * (1 - small * (0.5 - small / 3)), out)

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
    return (self / ((1 - self) * (1 + self)).sqrt()).atan()

  def acos(self) -> Tensor:
    """The inverse cosine, in radians."""
    return 2 * ((1 - self) / (1 + self)).sqrt().atan()

  def atan(self) -> Tensor:
    """The inverse tangent, in radians."""
    return self._math("atan")

  def sinh(self) -> Tensor:
    """The hyperbolic sine, in float32 within 4 units in the last place."""
    x = self._new(self._float())
    small = x.abs() < 0.5
    t = small.where(x * 0.5, 0).tanh()
    return small.where(2 * t / (1 - t * t), (x.exp() - (-x).exp()) * 0.5)

  def cosh(self) -> Tensor:
    """The hyperbolic cosine."""
    x = self._new(self._float())
    return (x.exp() + (-x).exp()) * 0.5

  def tanh(self) -> Tensor:
    """The hyperbolic tangent."""
    return self._math("tanh")

  def asinh(self) -> Tensor:
    """The inverse hyperbolic sine."""
    a = self._new(self._float())
    x = (a < 0).where(-a, a)  # |a|, which has no slope at 0
    near = x < 1e6
    small = near.where(x, 1)
    out = near.where(
      (small + small.square() / (1 + (small.square() + 1).sqrt())).log1p(), x.maximum(1).log() + math.log(2)
    )
    return (a < 0).where(-out, out)

  def acosh(self) -> Tensor:
    """The inverse hyperbolic cosine."""
    t = self - 1
    near = t < 1e6
    small = near.where(t, 1)
    return near.where(
      (small + small.sqrt() * (small + 2).sqrt()).log1p(), self.maximum(1).log() + math.log(2)
    )

  def atanh(self) -> Tensor:
    """The inverse hyperbolic tangent."""
    x = self._new(self._float())
    sign = (x < 0).where(-1, 1)  # of a negative number, 1 + the quotient would lose what counts
    x = x * sign
    return (2 * x / (1 - x)).log1p() * 0.5 * sign

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
    return self._alu(op, self.uop) if self.dtype.kind == "f" else self._new(self.uop)
