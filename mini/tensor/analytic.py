"""Functions of complex numbers, as formulas of their real and imaginary parts.

A number is a pair (a, b) of real tensors of one float type. Each formula holds where its parts, but not its result,
would overflow or cancel as it is written in a textbook, and on the branch that C99's Annex G and NumPy take: signs of
zeros count. W. Kahan, Branch cuts for complex elementary functions, 1987.

FUNCTIONS is the table: a name, the formula, and the derivative, in tensors (complex.py makes methods of it).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mini.types import dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

Pair = tuple[Any, Any]  # (real part, imaginary part)


def _of(a: Tensor, single: float, double: float) -> float:
  """The bound for a's type."""
  return double if a.dtype is dtypes.float64 else single


def sided(b: Tensor, value: float) -> Tensor:
  """A value with the sign of b."""
  return b._unit() * value


def times_i(z: Pair) -> Pair:
  return -z[1], z[0]


def over_i(z: Pair) -> Pair:
  return z[1], -z[0]


def turned(f: Callable[..., Pair]) -> Callable[..., Pair]:
  """-i f(i z): sin of sinh, tan of tanh, asinh of asin, atan of atanh."""
  return lambda a, b: over_i(f(*times_i((a, b))))


# ---------------------------------------------------------------- arithmetic


def multiply(z: Pair, w: Pair) -> Pair:
  (a, b), (c, d) = z, w
  return a * c - b * d, a * d + b * c


def divide(z: Pair, w: Pair) -> Pair:
  """By the larger part of w first. R. Smith, Algorithm 116: Complex division, 1962."""
  (a, b), (c, d) = z, w
  wide = c.abs() >= d.abs()
  large, small = wide.where(c, d), wide.where(d, c)
  ratio = small / ((c == 0) & (d == 0)).where(1, large)
  total = large + small * ratio
  re = wide.where(a + b * ratio, a * ratio + b) / total
  im = wide.where(b - a * ratio, b * ratio - a) / total
  return re, im


def log_magnitude(a: Tensor, b: Tensor) -> Tensor:
  """log |a + ib|: near 1 by what it differs from 1, elsewhere by the larger part."""
  x, y = a.abs(), b.abs()
  large, small = x.maximum(y), x.minimum(y)
  near = (large > 0.5) & (large < 2)
  one = near.where(large, 1)
  close = 0.5 * ((one - 1) * (one + 1) + near.where(small, 0).square()).log1p()
  ratio = small / ((large == 0) | large.isinf()).where(1, large)
  far = large.log() + 0.5 * ratio.square().log1p()
  return (x.isinf() | y.isinf()).where(math.inf, near.where(close, far))


# ---------------------------------------------------------------- powers and logarithms


def exp(a: Tensor, b: Tensor) -> Pair:
  over = a > _of(a, 80, 700)  # e^a may overflow where its products with cos b and sin b do not
  e = over.where(a * 0.5, a).exp()
  rest = over.where(e, 1)
  re, im = e * b.cos() * rest, e * b.sin() * rest
  endless = b.isfinite().logical_not()
  nothing, lost = (a == -math.inf) & endless, (a == math.inf) & endless
  re = lost.where(math.inf, nothing.where(0, re))
  return re, (b == 0).where(b, nothing.where(0, im))


def exp2(a: Tensor, b: Tensor) -> Pair:
  over = a > _of(a, 120, 1000)
  e, angle = over.where(a * 0.5, a).exp2(), b * math.log(2)
  rest = over.where(e, 1)
  return e * angle.cos() * rest, (b == 0).where(b, e * angle.sin() * rest)


def expm1(a: Tensor, b: Tensor) -> Pair:
  half, (re, im) = (b * 0.5).sin(), exp(a, b)
  large = (a > 10) | (a < -40)
  return large.where(re - 1, large.where(1, a).expm1() * b.cos() - 2 * half * half), im


def log(a: Tensor, b: Tensor) -> Pair:
  return log_magnitude(a, b), b.atan2(a)


def log_to(base: float) -> Callable[..., Pair]:
  scale = 1 / math.log(base)
  return lambda a, b: (log_magnitude(a, b) * scale, b.atan2(a) * scale)


def log1p(a: Tensor, b: Tensor) -> Pair:
  small = (a.abs() < 0.5) & (b.abs() < 0.5)
  x, y = small.where(a, 0), small.where(b, 0)
  close = 0.5 * (x * (2 + x) + y * y).log1p()
  return small.where(close, log_magnitude(1 + a, b)), b.atan2(1 + a)


def sqrt(a: Tensor, b: Tensor) -> Pair:
  large = a.abs().maximum(b.abs())
  down, up = large > _of(a, 2.0**124, 2.0**1020), large < _of(a, 2.0**-100, 2.0**-960)
  scale = down.where(2.0**-4, up.where(_of(a, 2.0**24, 2.0**54), 1)).cast(a.dtype)
  back = down.where(4.0, up.where(_of(a, 2.0**-12, 2.0**-27), 1)).cast(a.dtype)
  x, y = a * scale, b * scale
  long = ((x.abs() + x.hypot(y)) * 0.5).sqrt()
  short = y.abs() / (2 * (long == 0).where(1, long))
  right = a >= 0
  re, im = right.where(long, short) * back, right.where(short, long) * back
  return b.isinf().where(math.inf, re), b.isinf().where(b, im._signed_as(b))


def power(z: Pair, w: Pair) -> Pair:
  """exp(w log z); 0 to a power whose real part is positive is 0, anything to 0 is 1."""
  re, im = exp(*multiply(w, log(*z)))
  zero = (z[0] == 0) & (z[1] == 0)
  one, none = (w[0] == 0) & (w[1] == 0), zero & (w[0] > 0)
  return one.where(1, none.where(0, re)), (one | none).where(0, im)


def whole_power(z: Pair, n: int) -> Pair:
  """z ** n by multiplications, n > 0."""
  out: Pair | None = None
  while n:
    if n & 1:
      out = z if out is None else multiply(out, z)
    n >>= 1
    z = multiply(z, z) if n else z
  assert out is not None
  return out


def sigmoid(a: Tensor, b: Tensor) -> Pair:
  below = a < 0  # exp of what is negative does not overflow
  e = exp(below.where(a, -a), below.where(b, -b))
  return divide((below.where(e[0], 1), below.where(e[1], 0)), (1 + e[0], e[1]))


# ---------------------------------------------------------------- hyperbolic functions


def sinh_and_cosh(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
  """Those of a real number, and a factor of both that is not 1 where they may overflow."""
  x = a.abs()
  over = x > _of(a, 80, 700)
  e, rest = over.where(x * 0.5, 0).exp(), over.where(1, a)
  return over.where(0.5 * e._signed_as(a), rest.sinh()), over.where(0.5 * e, rest.cosh()), over.where(e, 1)


def sinh(a: Tensor, b: Tensor) -> Pair:
  endless = b.isfinite().logical_not()
  s, c, rest = sinh_and_cosh(a)
  re, im = s * b.cos() * rest, c * b.sin() * rest
  return (endless & ((a == 0) | a.isinf())).where(a, re), (b == 0).where(b, im)


def cosh(a: Tensor, b: Tensor) -> Pair:
  lost = a.isinf() & b.isfinite().logical_not()
  s, c, rest = sinh_and_cosh(a)
  re, im = c * b.cos() * rest, s * b.sin() * rest
  zero = a._unit() * b._unit() * 0
  return lost.where(math.inf, re), ((a == 0) | (b == 0)).where(zero, im)


def tanh(a: Tensor, b: Tensor) -> Pair:
  far = a.abs() > _of(a, 11, 22)  # there it is 1, but for a trace of the imaginary part
  s, t = far.where(1, a).sinh(), b.tan()
  beta = 1 + t * t
  total = 1 + beta * s * s
  re, im = beta * (1 + s * s).sqrt() * s / total, t / total
  trace = b.isfinite().where(4 * b.sin() * b.cos() * (-2 * a.abs()).exp(), 0)
  one = (a > 0).where(1.0, -1.0).cast(a.dtype)
  return far.where(one, (a == 0).where(a, re)), (b == 0).where(b, far.where(trace, im))


def asin(a: Tensor, b: Tensor) -> Pair:
  left, right = sqrt(1 - a, -b), sqrt(1 + a, b)
  re, im = a.atan2(multiply(left, right)[0]), multiply((left[0], -left[1]), right)[1].asinh()
  far = a.isinf() | b.isinf()
  re = far.where(a.atan2(b.abs()), (a == 0).where(a, re))
  return re, far.where(math.inf, im)._signed_as(b)


def acos(a: Tensor, b: Tensor) -> Pair:
  left, right = sqrt(1 - a, -b), sqrt(1 + a, b)
  re, im = 2 * left[0].atan2(right[0]), multiply((right[0], -right[1]), left)[1].asinh()
  far = a.isinf() | b.isinf()
  re = far.where(b.abs().atan2(a), (a == 0).where(math.pi / 2, re))
  return re, far.where(math.inf, im)._signed_as(-b)


def acosh(a: Tensor, b: Tensor) -> Pair:
  left, right = sqrt(a - 1, b), sqrt(a + 1, b)
  re, im = multiply((left[0], -left[1]), right)[0].asinh(), 2 * left[1].atan2(right[0])
  far = a.isinf() | b.isinf()
  return far.where(math.inf, re), far.where(b.atan2(a), (a == 0).where(sided(b, math.pi / 2), im))


def atanh(a: Tensor, b: Tensor) -> Pair:
  x, size = a.abs(), a.hypot(b)
  far = size > _of(a, 1e8, 1e16)  # 1 / z, and the imaginary part of its logarithm
  p, q = far.where(0, x), far.where(0, b)
  re = 0.25 * (4 * p / ((1 - p).square() + q.square())).log1p()
  im = 0.5 * (2 * q).atan2((1 - p) * (1 + p) - q * q)
  bound = size.isinf().where(1, size)
  tail = size.isinf().where(0, x / bound / bound)
  re = (a == 0).where(a, far.where(tail, re)._signed_as(a))
  unknown = b.isnan() & ~a.isnan()  # of an infinite a
  return re, unknown.where(math.nan, far.where(sided(b, math.pi / 2), im))


# ---------------------------------------------------------------- the table

# fmt: off
FUNCTIONS: dict[str, tuple[Callable[..., Pair], Callable[[Any], Any]]] = {
  "exp":     (exp,            lambda z: z.exp()),
  "exp2":    (exp2,           lambda z: z.exp2() * math.log(2)),
  "expm1":   (expm1,          lambda z: z.exp()),
  "log":     (log,            lambda z: z.reciprocal()),
  "log2":    (log_to(2),      lambda z: z.reciprocal() / math.log(2)),
  "log10":   (log_to(10),     lambda z: z.reciprocal() / math.log(10)),
  "log1p":   (log1p,          lambda z: (1 + z).reciprocal()),
  "sqrt":    (sqrt,           lambda z: 0.5 / z.sqrt()),
  "sigmoid": (sigmoid,        lambda z: z.sigmoid() * (1 - z.sigmoid())),
  "sin":     (turned(sinh),   lambda z: z.cos()),
  "cos":     (lambda a, b: cosh(-b, a), lambda z: -z.sin()),
  "tan":     (turned(tanh),   lambda z: 1 + z.tan().square()),
  "sinh":    (sinh,           lambda z: z.cosh()),
  "cosh":    (cosh,           lambda z: z.sinh()),
  "tanh":    (tanh,           lambda z: 1 - z.tanh().square()),
  "asin":    (asin,           lambda z: ((1 - z).sqrt() * (1 + z).sqrt()).reciprocal()),
  "acos":    (acos,           lambda z: -((1 - z).sqrt() * (1 + z).sqrt()).reciprocal()),
  "atan":    (turned(atanh),  lambda z: (1 + z.square()).reciprocal()),
  "asinh":   (turned(asin),   lambda z: (1 + z.square()).sqrt().reciprocal()),
  "acosh":   (acosh,          lambda z: ((z - 1).sqrt() * (z + 1).sqrt()).reciprocal()),
  "atanh":   (atanh,          lambda z: (1 - z.square()).reciprocal()),
}
# fmt: on
