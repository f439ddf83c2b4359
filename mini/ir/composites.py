"""Composites: operations with a name that are made of the primitives. Each is one row here, and joins the table of ops.

A composite stays one node: gradients know it by its name, and a language that has the function spells it. One that has
not prints the `body`, which is made of primitives, for float32 and for any number of lanes: no branches, no tables. The
primitives exp2 and log2 have bodies too, for plain C has them for single numbers only.

How the coefficients were found: least squares of the relative error on 1,500 Chebyshev nodes, with targets of 40 digits
(mpmath) and Lawson's weights (each node's weight is multiplied by its error, 400 times), which converges to the minimax
fit; then coefficient after coefficient, from the lowest, is rounded to float32 and the rest are fitted again. For P/Q
the error times Q is what is linear: the same, with the Q of the step before as a weight.

How they were tested: `pytest --full test/test_composites.py` compares the C of every body, with and without contraction
to fused multiply-adds, with libm in float64 on all 2^32 arguments. `ulp` in the table bounds what that found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mini.ir.graph import bitcast, cast
from mini.ir.ops import OPS, Op
from mini.ir.uop import UOp, const, uop
from mini.types import DType, dtypes


class Composite(NamedTuple):
  name: str
  arity: int
  numpy: Callable  # the meaning, on arrays of the inputs
  body: Callable[..., UOp]  # of inputs as nodes
  types: str  # the body takes: f32, u32, or any
  ulp: float  # the float32 body is at most this far from the exact result, in units in its last place
  cycles: float  # as of an Op
  kinds: str = "f"
  note: str = ""


# ---------------------------------------------------------------- meanings that NumPy lacks

_math_erf, _math_erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def numpy_erf(x: np.ndarray) -> np.ndarray:
  return np.asarray(_math_erf(x)).astype(np.asarray(x).dtype)


def numpy_erfc(x: np.ndarray) -> np.ndarray:
  return np.asarray(_math_erfc(x)).astype(np.asarray(x).dtype)


def numpy_rsqrt(x: np.ndarray) -> np.ndarray:
  return np.reciprocal(np.sqrt(x))


def numpy_pow(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """a ** b; of integers wrapping, and cut towards zero where b is negative (NumPy refuses that)."""
  a, b = np.asarray(a), np.asarray(b)
  if a.dtype.kind != "i":
    return np.power(a, b)
  unit = np.where(b % 2 == 0, a * a, a)  # 1 or -1, if a is
  return np.where(b < 0, np.where(abs(a) == 1, unit, 0), np.power(a, np.maximum(b, 0))).astype(a.dtype)


TURNS = (13, 15, 26, 6), (17, 29, 16, 24)
PARITY = 0x1BD11BDA


def numpy_threefry(*words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  x, y, k0, k1 = np.atleast_1d(*words)
  keys = k0, k1, k0 ^ k1 ^ np.uint32(PARITY)
  x, y = x + k0, y + k1
  for n in range(1, 6):
    for turn in TURNS[(n - 1) % 2]:
      x = x + y
      y = (y << np.uint32(turn) | y >> np.uint32(32 - turn)) ^ x
    x, y = x + keys[n % 3], y + keys[(n + 1) % 3] + np.uint32(n)
  s = np.broadcast_shapes(*map(np.shape, words))
  return x.reshape(s), y.reshape(s)


# ---------------------------------------------------------------- nodes
# Numbers among the arguments become constants of the type of the last node.


def _maker(op: str) -> Callable[..., UOp]:
  def make(*args: UOp | float) -> UOp:
    kind = next(a.dtype for a in reversed(args) if isinstance(a, UOp))
    src = tuple(a if isinstance(a, UOp) else const(a, kind) for a in args)
    return uop(op, dtypes.bool if OPS[op].result == "bool" else kind, src)

  return make


add, mul, div, where, lt, ne = map(_maker, ("add", "mul", "div", "where", "lt", "ne"))
both, either, unlike, sqrt, sin = map(_maker, ("and", "or", "xor", "sqrt", "sin"))


def sub(a: UOp | float, b: UOp) -> UOp:
  return add(mul(b, -1), a)


def polynomial(x: UOp, coefficients: Sequence[float]) -> UOp:
  """coefficients[0] + coefficients[1] x + ..., by Horner's rule."""
  *others, last = coefficients
  total: UOp | float = last
  for c in reversed(others):
    total = add(mul(x, total), c)
  assert isinstance(total, UOp)
  return total


def clamp(x: UOp, lo: float, hi: float) -> UOp:
  """x within lo..hi; NaN stays."""
  x = where(lt(x, lo), lo, x)
  return where(lt(hi, x), hi, x)


SIGN = 1 << 31


def magnitude(x: UOp) -> UOp:
  return bitcast(both(bitcast(x, dtypes.uint32), SIGN - 1), dtypes.float32)


def sign_of(x: UOp) -> UOp:
  return both(bitcast(x, dtypes.uint32), SIGN)


def signed(y: UOp, sign: UOp) -> UOp:
  """y, which has no sign bit, with this one."""
  return bitcast(either(bitcast(y, dtypes.uint32), sign), dtypes.float32)


# ---------------------------------------------------------------- coefficients, lowest power first

# fmt: off
EXP = 0.50000036, 0.16666618, 0.041661233, 0.008335937, 0.0014104676, 1.9629205e-04  # (e^r - 1 - r) / r^2, |r| <= ln 2
EXP2 = 0.6931472, 0.24022648, 0.0555036, 0.009618506, 0.0013390812, 1.5326496e-04  # (2^r - 1) / r, |r| <= 1/2
LOG = (0.3333333, -0.2500082, 0.20001242, -0.16623409, 0.1420158, -0.1315961,  # (log(1 + r) - r + r^2/2) / r^3,
       0.12762217, -0.07636439)                                                # sqrt(1/2) <= 1 + r <= sqrt(2)
LOG2 = (1.442695, -0.7213475, 0.48090374, -0.36068264, 0.28830606, -0.23978853, 0.20883979,  # log2(1 + r) / r
        -0.19330294, 0.1635865, -0.079956815)
LOG2_WIDE = (2.8853900817901157, 0.9617966733163587, 0.5770835895476111,  # log2(1 + r) / s as a function of s^2, where
             0.4116724446809531, 0.34073525557125034)                     # s = r / (2 + r); float64, to 2^-37
EXPM1 = 0.49999997, 0.16666548, 0.0416674204, 0.00836628582, 0.00138705363  # (e^r - 1 - r) / r^2, |r| <= ln(2) / 2
LN2 = 0.693115234375, 3.1946184945e-05  # the first has 12 bits
ERF_NEAR = (0.128379121, -0.37612322, 0.112801544, -0.026710717,  # erf(x) / x - 1 as a function of x^2, |x| <= 1
            0.00491695898, -0.00056292821)
ERF_FAR = (0.445314318, -0.293794364, 0.00308379345, 0.0357858576,  # the fourth root of erfc(x) / 4 as a function of
           -0.0022693749, -0.00437790668, 0.00129279319, -0.000111081186)  # x - 1, 1 <= x <= 4.1
ERFC = (1.27697837, -0.0927638113, -0.166030496, 0.164049894, -0.0542132109,  # (1 + 2x) e^x^2 erfc(x) as a function of
        -0.00801482424, 0.00866158027, 0.00117660058, -0.00126315281, -0.000261012494)  # (x - 2) / (x + 2), x >= 0.45
SIN = -0.16666667, 0.0083333505, -0.00019843093, 2.762705e-06, -2.5502594e-08  # (sin(r) - r) / r^3, |r| <= pi / 2
HALF_PI = 1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12  # the first three: 12 bits
ATAN = (-0.333333, 0.1999853, -0.14264016, 0.109508805, -0.083993055, 0.057881333,  # (atan(t) - t) / t^3 as a function
        -0.031096848, 0.010868547, -0.0017827713)                                   # of t^2, t <= 1
# fmt: on

# ---------------------------------------------------------------- whole numbers


def round_magnitude(a: UOp) -> UOp:
  """a >= 0 to a whole number, half to even: the sum with 2^23 has no room for a fraction; what is larger has none."""
  return where(lt(a, 2.0**23), add(add(a, 2.0**23), -(2.0**23)), a)


def round_to_even(x: UOp) -> UOp:
  return signed(round_magnitude(magnitude(x)), sign_of(x))


def trunc(x: UOp) -> UOp:
  a = magnitude(x)
  r = round_magnitude(a)
  return signed(where(lt(a, r), add(r, -1), r), sign_of(x))


def floor(x: UOp) -> UOp:
  r = round_to_even(x)
  return signed(magnitude(where(lt(x, r), add(r, -1), r)), sign_of(x))


def ceil(x: UOp) -> UOp:
  r = round_to_even(x)
  return signed(magnitude(where(lt(r, x), add(r, 1), r)), sign_of(x))  # of -0.5 it is -0.0


def least(a: UOp, b: UOp) -> UOp:
  return where(ne(a, a), a, where(lt(a, b), a, b))


def greatest(a: UOp, b: UOp) -> UOp:
  return where(ne(a, a), a, where(lt(b, a), a, b))


# ---------------------------------------------------------------- powers

# m + MAGIC, for |m| < 2^22, is m rounded to even with m + 127 in its low bits; minus MAGIC it is m again, as a float.
MAGIC = 1.5 * 2**23 + 127


def two_to(shifted: UOp) -> UOp:
  """2^m of m + MAGIC, for -127 < m < 128: the low bits become the exponent. For m = -127 it is 0."""
  return bitcast(mul(bitcast(shifted, dtypes.uint32), 1 << 23), dtypes.float32)


def exp(x: UOp) -> UOp:
  """4^m e^r with |r| <= ln 2. The factor 2^m comes twice: it is normal even where the result is subnormal or infinite.
  (e^r - 1) 2^m + 2^m is the same number as e^r 2^m, and one multiply-add. At the lower bound 2^m is 0: what a mask has
  left out does not underflow, which takes a processor as long as ten times the rest."""
  x = clamp(x, -176.0, 90.0)
  shifted = add(mul(x, 0.5 / math.log(2)), MAGIC)
  m = add(shifted, -MAGIC)
  r = add(x, mul(m, -1.38623046875))  # ln 4 in two parts, of which the first times m is exact
  r = add(r, mul(m, -6.389236989e-05))
  p, scale = add(mul(mul(r, r), polynomial(r, EXP)), r), two_to(shifted)
  return mul(add(mul(p, scale), scale), scale)


def exp2(x: UOp) -> UOp:
  x = clamp(x, -254.0, 129.0)
  n = add(add(x, MAGIC), -MAGIC)
  return two_to_sum(n, sub(x, n))


def two_to_sum(n: UOp, r: UOp) -> UOp:
  """2^(n + r) with n whole and |r| <= 1/2, exact where r is 0. The factor 2^n comes as two halves, as in exp."""
  p = add(mul(r, polynomial(r, EXP2)), 1)
  half = add(mul(n, 0.5), MAGIC)
  rest = add(sub(n, add(half, -MAGIC)), MAGIC)
  return mul(mul(p, two_to(half)), two_to(rest))


def split(x: UOp) -> tuple[UOp, UOp]:
  """(r, e) of a positive finite x = 2^(e / 2^23) (1 + r), where 1 + r lies in sqrt(1/2)..sqrt(2)."""
  tiny = lt(x, 2.0**-126)
  bits = bitcast(where(tiny, mul(x, 2.0**23), x), dtypes.uint32)
  top = both(add(bits, -0x3F3504F3), 0xFF800000)  # the bits of sqrt(1/2)
  e = cast(bitcast(top, dtypes.int32), dtypes.float32)
  return add(bitcast(sub(bits, top), dtypes.float32), -1), where(tiny, add(e, -23 * 2.0**23), e)


def edges(x: UOp, logarithm: UOp) -> UOp:
  """The logarithm of x where x is positive and finite, else what belongs there."""
  y = where(lt(x, math.inf), logarithm, x)  # inf, nan
  return where(lt(x, 0), math.nan, where(ne(x, 0), y, -math.inf))


def log(x: UOp) -> UOp:
  r, e = split(x)
  r2 = mul(r, r)
  low = add(mul(e, 1.42860682e-06 * 2.0**-23), mul(mul(r, r2), polynomial(r, LOG)))  # of ln 2, as in exp
  return edges(x, add(mul(e, 0.693145751953125 * 2.0**-23), add(r, add(mul(r2, -0.5), low))))


def log2(x: UOp) -> UOp:
  r, e = split(x)
  linear, *others = LOG2
  y = add(mul(r, linear), mul(mul(r, r), polynomial(r, others)))
  return edges(x, add(mul(e, 2.0**-23), y))


def power(a: UOp, b: UOp) -> UOp:
  """2^(b log2 |a|), the logarithm and the product in float64; then the cases of C99's pow (annex F.9.4.4)."""
  x = magnitude(a)
  r, e = split(x)
  wide = cast(r, dtypes.float64)
  s = div(wide, add(wide, 2))  # log2(1 + r) = atanh(s) 2 / ln 2
  log = add(mul(cast(e, dtypes.float64), 2.0**-23), mul(s, polynomial(mul(s, s), LOG2_WIDE)))
  log = where(both(lt(0, x), lt(x, math.inf)), log, cast(where(ne(x, 0), x, -math.inf), dtypes.float64))
  b_finite = clamp(b, -(2.0**32), 2.0**32)  # enough to send any a but 1 to 0 or infinity, and still even
  t = clamp(mul(cast(b_finite, dtypes.float64), log), -152.0, 130.0)
  n = add(add(t, 1.5 * 2.0**52), -1.5 * 2.0**52)
  return power_cases(two_to_sum(cast(n, dtypes.float32), cast(sub(t, n), dtypes.float32)), a, b)


def power_cases(y: UOp, a: UOp, b: UOp) -> UOp:
  """|a| ** b, as a ** b."""
  half, fraction = mul(b, 0.5), ne(round_to_even(b), b)
  odd = both(ne(round_to_even(half), half), unlike(fraction, True))
  y = signed(y, where(odd, sign_of(a), 0))
  y = where(both(both(lt(a, 0), lt(-math.inf, a)), fraction), math.nan, y)
  return where(both(ne(a, 1), ne(b, 0)), y, 1)


def power_single(a: UOp, b: UOp) -> UOp:
  """power without float64, for devices that have none: numbers are sums of two parts, of which the first has 12 bits,
  so that products of first parts are exact (as in fdlibm's e_powf.c). At most 5 ulp; a fused multiply-add does no
  harm."""
  x = magnitude(a)
  r, e = split(x)
  e, t = mul(e, 2.0**-23), add(r, 2)
  s = div(r, t)  # log2(1 + r) = atanh(s) 2 / ln 2
  sh, th = high(s), high(t)
  sl = div(sub(sub(r, mul(sh, th)), mul(sh, sub(r, add(th, -2)))), t)
  first, *others = LOG2_WIDE
  ch = 2.884765625  # of `first`
  p = mul(sh, ch)
  z = mul(s, s)
  missed = mul(mul(z, 3 * others[0]), add(sub(sh, s), sl))  # by the cube of s, which is sh + sl rounded
  pl = add(add(add(mul(sh, first - ch), mul(sl, first)), missed), mul(mul(s, z), polynomial(z, others)))
  h = high(add(e, add(p, pl)))
  low = sub(pl, sub(sub(h, e), p))
  b_finite = clamp(b, -(2.0**32), 2.0**32)
  bh = high(b_finite)
  t, tl = mul(bh, h), add(mul(bh, low), mul(sub(b_finite, bh), add(h, low)))
  n = add(add(clamp(add(t, tl), -152.0, 130.0), 1.5 * 2.0**23), -1.5 * 2.0**23)
  y = two_to_sum(n, clamp(add(sub(t, n), tl), -1.0, 1.0))
  edge = where(ne(b, b), b, where(lt(b, 0), div(1, x), x))  # of 0, inf and nan
  return power_cases(where(both(lt(0, x), lt(x, math.inf)), y, edge), a, b)


def high(x: UOp) -> UOp:
  """x cut to 12 bits."""
  return bitcast(both(bitcast(x, dtypes.uint32), 0xFFFFF000), dtypes.float32)


def to_odd(x: UOp) -> UOp:
  """float64 to float32, where it is none to the odd one of its two neighbours: its nearest number of a shorter type is
  that of x. (S. Boldo, G. Melquiond, Emulation of FMA and correctly rounded sums, 2008.)"""
  near = cast(x, dtypes.float32)
  back, bits = cast(near, dtypes.float64), bitcast(near, dtypes.uint32)
  beyond = where(lt(x, 0), lt(back, x), lt(x, back))
  odd = either(add(bits, where(beyond, const(-1, dtypes.uint32), 0)), 1)
  return bitcast(where(ne(back, x), odd, bits), dtypes.float32)


def rsqrt(x: UOp) -> UOp:
  return div(1, sqrt(x))


# ---------------------------------------------------------------- others


def reduced(x: UOp, shifted: UOp, more: float | UOp = 0) -> tuple[UOp, UOp]:
  """e^r - 1 where r = x + more - n ln 2, |r| <= ln(2) / 2 and n is what `shifted` has in its low bits; and what
  rounding lost of it."""
  n = add(shifted, 1 - MAGIC)
  top, low = add(x, mul(n, -LN2[0])), add(mul(n, -LN2[1]), more)
  r = add(top, low)
  rest = mul(mul(r, r), polynomial(r, EXPM1))
  p = add(rest, r)
  return p, add(add(rest, sub(r, p)), add(low, sub(top, r)))


def half_expm1(x: UOp) -> UOp:
  """(e^x - 1) / 2, for -18 < x < 89: 2^(n-1) (e^r - 1) + (2^(n-1) - 1/2), of which the second part is 0 where n is."""
  shifted = add(mul(x, 1 / math.log(2)), MAGIC - 1)
  half = two_to(shifted)
  return add(mul(reduced(x, shifted)[0], half), add(half, -0.5))


def expm1(x: UOp) -> UOp:
  return signed(magnitude(mul(half_expm1(clamp(x, -17.5, 89.0)), 2)), sign_of(x))  # of -0.0 it is -0.0


def tanh(x: UOp) -> UOp:
  """(1 - t) / (1 + t), where t = e^-2|x| = 2^n e^r with n <= 0 and |r| <= ln(2) / 2. Each of the two is 1 - 2^n or
  1 + 2^n, which is exact where x is small, and a multiple of e^r - 1."""
  a = magnitude(x)
  a = where(lt(10, a), 10, a)  # beyond, it rounds to 1
  shifted = add(mul(a, -2 / math.log(2)), MAGIC)
  n, scale = add(shifted, -MAGIC), two_to(shifted)
  r = add(mul(n, -LN2[1]), add(mul(n, -LN2[0]), mul(a, -2)))
  p = mul(add(mul(mul(r, r), polynomial(r, EXPM1)), r), scale)
  return signed(div(sub(sub(1, scale), p), add(p, add(scale, 1))), sign_of(x))


def erf(x: UOp) -> UOp:
  """Beyond 1, 1 less 4 times the fourth power of a polynomial: below 1/2, it is rounded more finely."""
  a = magnitude(x)
  z = mul(x, x)
  near = add(mul(x, polynomial(z, ERF_NEAR)), x)
  root = polynomial(add(where(lt(4.1, a), 4.1, a), -1), ERF_FAR)  # beyond, it rounds to 1
  square = mul(root, root)
  far = add(mul(mul(square, -4), square), 1)
  return where(lt(a, 1), near, signed(far, sign_of(x)))


def erfc(x: UOp) -> UOp:
  """From 1/2 on e^-x^2 times what varies little, with the square in two parts, of which the first is exact."""
  a = where(lt(10.1, x), 10.1, x)  # beyond, it is 0
  first = high(a)
  square = mul(mul(first, -1), first)
  rest = mul(add(a, mul(first, -1)), mul(add(a, first), -1))
  shifted = add(mul(mul(a, a), -1 / math.log(2)), MAGIC - 1)
  n = add(shifted, 1 - MAGIC)
  p, lost = reduced(square, shifted, rest)
  y, low = precise_quotient(div(add(a, -2), add(a, 2)), a)
  half = add(mul(n, 0.5), MAGIC)
  others = add(sub(n, add(half, -MAGIC)), MAGIC)
  low = add(mul(lost, y), add(mul(p, low), low))
  tail = mul(mul(add(add(mul(p, y), low), y), two_to(half)), two_to(others))
  return where(lt(x, 0.5), sub(1, erf(x)), tail)


def precise_quotient(q: UOp, a: UOp) -> tuple[UOp, UOp]:
  """The polynomial ERFC of q over 1 + 2a, and what rounding lost of it; products of 12 bits are exact, as in
  power_single."""
  first, *others = ERFC
  t = mul(q, polynomial(q, others))
  top = add(t, first)
  d = add(mul(a, 2), 1)
  y = div(top, d)
  dh, yh = high(d), high(y)
  dl, yl = sub(mul(a, 2), add(dh, -1)), sub(y, yh)
  left = sub(sub(sub(top, mul(yh, dh)), mul(yh, dl)), mul(yl, d))
  left = add(left, sub(t, add(top, -first)))
  return y, mul(left, mul(y, 0.8))  # 0.8: about 1 / top


FAR = (
  6400.0  # up to here 12 bits hold how often pi / 2 fits in, and their products with 12 bits of it are exact
)
EVEN = 1.5 * 2**23  # as MAGIC, with n in the low bits


def sin_near(x: UOp) -> UOp:
  """sin(r) (-1)^n, where |x| = n pi + r, for |x| < FAR."""
  a = magnitude(x)
  shifted = add(mul(a, 1 / math.pi), EVEN)
  n = add(shifted, -EVEN)
  return alternating(sin_of_rest(a, mul(n, 2)), shifted, sign_of(x))


def cos_near(x: UOp) -> UOp:
  """sin(r) (-1)^n, where |x| = (n - 1/2) pi + r, for |x| < FAR."""
  a = magnitude(x)
  shifted = add(add(mul(a, 1 / math.pi), 0.5), EVEN)
  n = add(shifted, -EVEN)
  return alternating(sin_of_rest(a, add(mul(n, 2), -1)), shifted, 0)


def sin_of_rest(a: UOp, quarters: UOp) -> UOp:
  """sin(a - quarters pi / 2), which is at most pi / 2 away from 0."""
  for part in HALF_PI:
    a = add(a, mul(quarters, -part))
  z = mul(a, a)
  return add(a, mul(mul(a, z), polynomial(z, SIN)))


def alternating(y: UOp, shifted: UOp, sign: UOp | int) -> UOp:
  """y with its sign changed by `sign`, and where n is odd."""
  flips = unlike(mul(bitcast(shifted, dtypes.uint32), SIGN), sign)
  return bitcast(unlike(bitcast(y, dtypes.uint32), flips), dtypes.float32)


def atan(x: UOp) -> UOp:
  """Where |x| > 1, pi/2 - atan(1 / |x|)."""
  a = magnitude(x)
  large = lt(1, a)
  t = where(large, div(-1, a), a)
  z = mul(t, t)
  y = add(t, mul(mul(t, z), polynomial(z, ATAN)))
  return signed(where(large, add(y, math.pi / 2), y), sign_of(x))


def cos(x: UOp) -> UOp:
  """1 - 2 sin(x/2)^2 in float64: halving is exact, so the largest x is as good as any."""
  s = sin(mul(cast(x, dtypes.float64), 0.5))
  return cast(add(mul(mul(s, s), -2), 1), dtypes.float32)


def threefry(x: UOp, y: UOp, k0: UOp, k1: UOp) -> tuple[UOp, UOp]:
  """Threefry-2x32 with 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011)."""
  keys = k0, k1, unlike(unlike(k0, k1), PARITY)
  x, y = add(x, k0), add(y, k1)
  for n in range(1, 6):
    for turn in TURNS[(n - 1) % 2]:
      x = add(x, y)
      y = unlike(either(mul(y, 1 << turn), div(y, 1 << (32 - turn))), x)
    x, y = add(x, keys[n % 3]), add(add(y, keys[(n + 1) % 3]), n)
  return x, y


# ---------------------------------------------------------------- the table

# fmt: off
COMPOSITES: dict[str, Composite] = {row.name: row for row in (
  Composite("exp",      1, np.exp,         exp,           "f32", 2, 10),
  Composite("log",      1, np.log,         log,           "f32", 1, 12),
  Composite("cos",      1, np.cos,         cos,           "f32", 1, 15, "f", "the body needs sin of float64"),
  Composite("tanh",     1, np.tanh,        tanh,          "f32", 2, 15),
  Composite("erf",      1, numpy_erf,      erf,           "f32", 2, 20),
  Composite("erfc",     1, numpy_erfc,     erfc,          "f32", 2, 40),
  Composite("expm1",    1, np.expm1,       expm1,         "f32", 2, 15),
  Composite("atan",     1, np.arctan,      atan,          "f32", 2.5, 15),
  Composite("pow",      2, numpy_pow,      power,         "f32", 1.5, 30, "iuf",
            "integers wrap; negative powers: cut towards 0"),
  Composite("rsqrt",    1, numpy_rsqrt,    rsqrt,         "any", 1.5, 6),
  Composite("floor",    1, np.floor,       floor,         "f32", 0, 0.5),
  Composite("ceil",     1, np.ceil,        ceil,          "f32", 0, 0.5),
  Composite("trunc",    1, np.trunc,       trunc,         "f32", 0, 0.5),
  Composite("round",    1, np.rint,        round_to_even, "f32", 0, 0.5, "f", "half to even"),
  Composite("abs",      1, np.abs,         magnitude,     "f32", 0, 0.5, "biuf", "of the least integer: itself"),
  Composite("min",      2, np.minimum,     least,         "any", 0, 0.5, "biuf", "NaN wins, as in max"),
  Composite("threefry", 4, lambda *w: numpy_threefry(*w)[0], lambda *w: threefry(*w)[0],
            "u32", 0, 40, "u", "random bits of a counter and a key, of two words each: the first word"),
  Composite("threefry2", 4, lambda *w: numpy_threefry(*w)[1], lambda *w: threefry(*w)[1],
            "u32", 0, 40, "u", "the second word"),
)}

PRIMITIVES: dict[str, Composite] = {row.name: row for row in (
  Composite("exp2",     1, np.exp2,        exp2,          "f32", 1.5, 8, "f", "of whole numbers exact"),
  Composite("log2",     1, np.log2,        log2,          "f32", 2.5, 10, "f", "of powers of 2 exact"),
)}
# fmt: on


class Near(NamedTuple):
  """A body for arguments of a magnitude below `within`;
  what is larger, infinite or NaN takes a function of the language's."""

  body: Callable[..., UOp]
  within: float
  ulp: float


NEAR = {"sin": Near(sin_near, FAR, 2.5), "cos": Near(cos_near, FAR, 2.5)}

OPS.update(
  {
    row.name: Op(row.name, "composite", row.arity, "same", row.numpy, row.note, row.kinds, row.cycles)
    for row in COMPOSITES.values()
  }
)

# What plain C should print as a body. Its own functions are better for the others: cosf is five times as fast as the
# body, fabsf and a comparison are single instructions.
ROWS = {**COMPOSITES, **PRIMITIVES}
BODIES = {name: row.body for name, row in ROWS.items() if name not in ("cos", "abs", "min")}


def has_body(op: str, dtype: DType) -> bool:
  return op in ROWS and ROWS[op].types in ("any", dtype.short)


def expand(u: UOp) -> UOp:
  """u as its body: of float16 and bfloat16 through float32. What has no body for its type (float64, integers) stays."""
  if u.dtype in (dtypes.float16, dtypes.bfloat16) and has_body(u.op, dtypes.float32):
    return cast(ROWS[u.op].body(*(cast(s, dtypes.float32) for s in u.src)), u.dtype)
  return ROWS[u.op].body(*u.src) if has_body(u.op, u.dtype) else u
