"""What each ufunc computes: a row is a name and what it is on tensors of the type in which NumPy computes it, a method
by its name or a function. How they are called, and along axes, is in ufunc.py.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.tensor import Tensor
from mini.types import dtypes


def method(body: Any) -> Callable[..., Any]:
  """A name is a method of the first tensor, whichever class that has."""
  return (lambda x, *more, **how: getattr(x, body)(*more, **how)) if isinstance(body, str) else body


def _odd(name: str) -> Callable[[Tensor], Tensor]:
  """A method that is odd, with the sign of its argument: of -0.0 it is -0.0."""
  return lambda x: getattr(x, name)()._signed_as(x) if x.dtype.kind == "f" else getattr(x, name)()


def _power(a: Any, b: Any) -> Tensor:
  if a.dtype.kind != "c":
    n = b._node.arg if b._node.op == "const" else None  # a number: most are products, a root or a quotient
    return a**b if n is None or n == -0.5 or (n < 0 and a.dtype.kind != "f") else a.pow(n)
  found = ((a == 0) & (b.real <= 0)).where(complex(math.nan, math.nan), a**b)
  return (b == 0).where(1, (b == 1).where(a, found))


def _cbrt(x: Tensor) -> Tensor:
  size = x.abs()
  plain = (size > 0) & (size < math.inf)
  safe = plain.where(size, 1)
  y = safe.pow(1 / 3)
  y = y - (y * y * y - safe) / (3 * y * y)  # a step of Newton's method: pow's 1/3 is not a third
  return plain.where(y, size)._signed_as(x)


def _remainder(a: Tensor, b: Tensor) -> Tensor:
  """a - b * floor(a / b); a zero has the sign of b."""
  if a.dtype.kind != "f":
    return a % b
  r = a % b
  return (r == 0).where(r.zeros_like()._signed_as(b), r)


def _floor_divide(a: Tensor, b: Tensor) -> Tensor:
  """The largest whole number not above a / b; of an infinite a NaN."""
  if a.dtype.kind != "f":
    return a // b
  q = a // b
  return (q == 0).where(q.zeros_like()._signed_as(a / b), q)


def _fmod(a: Tensor, b: Tensor) -> Tensor:
  if a.dtype.kind != "f":
    return a.fmod(b)
  r = a.fmod(b)
  return (r == 0).where(r._signed_as(a), r)


def _arctan2(a: Tensor, b: Tensor) -> Tensor:
  return (a.isnan() | b.isnan()).where(math.nan, a.atan2(b))


def _rint(x: Any) -> Tensor:
  return Tensor.complex(x.real.round(), x.imag.round()) if x.dtype.kind == "c" else x.round()


def _sign(x: Tensor) -> Tensor:
  if x.dtype.kind == "c":
    return x.sgn()
  return x.isnan().where(x, x.sign()) if x.dtype.kind == "f" else x.sign()


def _shift(x: Tensor, n: Tensor, left: bool) -> Tensor:
  """By at least as many bits as there are: 0, or of a negative number -1."""
  most = 8 * x.dtype.itemsize - 1
  if x.dtype.kind == "u" or left:
    within = n.clamp(0, most)
    return ((n > most) | (n != within)).where(0, x << within if left else x >> within)
  within = n.clamp(0, most - 1)
  return (n != within).where((x < 0).where(-1, 0).cast(x.dtype), x >> within)


def _bit_count(x: Tensor) -> Tensor:
  size = x.abs()
  digits = [(size >> n) & 1 for n in range(8 * x.dtype.itemsize - (x.dtype.kind == "i"))]
  low = functools.reduce(operator.add, digits)
  least = x == int(np.iinfo(x.dtype.np).min)
  return least.where(1, low) if x.dtype.kind == "i" else low


def _spacing(x: Tensor) -> Tensor:
  size = x.abs()
  return (size.nextafter(math.inf) - size)._signed_as(x)


def _modf(x: Tensor) -> tuple[Tensor, Tensor]:
  whole = x.trunc()
  return x.isinf().where(0, x - whole)._signed_as(x), whole._signed_as(x)


def _ldexp(x: Tensor, n: Tensor) -> Tensor:
  """In three steps, for 2.0**n alone may be too large or too small."""
  most = (
    3 * 1000 if x.dtype is dtypes.float64 else 3 * 120
  )  # from the least number to the largest, and further
  n = n.clamp(-most, most)
  third = n // 3
  power = lambda k: k.cast(x.dtype).exp2()
  return (x.isfinite() & (x != 0)).where(x * power(third) * power(third) * power(n - 2 * third), x)


def _in_order(op: Callable[..., Tensor], a: Any, b: Any) -> Tensor:
  """Of complex numbers: by their real parts, of equal ones by the imaginary parts."""
  without_nan = ~(a.imag.isnan() | b.imag.isnan())
  return (op(a.real, b.real) & (a.real != b.real) & without_nan) | ((a.real == b.real) & op(a.imag, b.imag))


def _extreme(name: str, op: Callable[..., Tensor], skips: bool) -> Callable[..., Tensor]:
  """The Tensor's method of that name; of complex numbers the first one in their order. A NaN wins, or is skipped."""

  def body(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.kind != "c":
      return getattr(a, name)(b)
    return (_in_order(op, a, b) | (b if skips else a).isnan()).where(a, b)

  return body


def _comparison(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
  """Of int64 and uint64, too, of which a negative number is below all; and of complex numbers."""

  def body(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.kind == "c" and op not in (operator.eq, operator.ne):
      return _in_order(op, a, b)
    if {a.dtype.kind, b.dtype.kind} != {"i", "u"}:
      return op(a, b)
    below = a < 0 if a.dtype.kind == "i" else b < 0
    order = op(0, 1) if a.dtype.kind == "i" else op(1, 0)
    return below.where(order, op(a.cast(dtypes.uint64), b.cast(dtypes.uint64)))

  return body


def _on_truth(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
  return lambda *xs: op(*(x.bool() for x in xs))


# fmt: off
TABLE: dict[str, Any] = {
  "add":          lambda a, b: a | b if a.dtype.kind == "b" else a + b,
  "subtract":     operator.sub,
  "multiply":     operator.mul,
  "divide":       operator.truediv,
  "floor_divide": _floor_divide,
  "remainder":    _remainder,
  "fmod":         _fmod,
  "divmod":       lambda a, b: (_floor_divide(a, b), _remainder(a, b)),
  "power":        _power,
  "float_power":  _power,
  "negative":     operator.neg,
  "positive":     lambda x: x,
  "absolute":     "abs",
  "fabs":         "abs",
  "rint":         _rint,
  "sign":         _sign,
  "heaviside":    lambda x, v: x.isnan().where(x, x.heaviside(v)),
  "conjugate":    lambda x: x.conj() if x.dtype.kind == "c" else x,
  "exp":          "exp",
  "exp2":         "exp2",
  "expm1":        _odd("expm1"),
  "log":          "log",
  "log2":         "log2",
  "log10":        "log10",
  "log1p":        "log1p",
  "sqrt":         "sqrt",
  "square":       "square",
  "cbrt":         _cbrt,
  "reciprocal":   lambda x: x.reciprocal() if x.dtype.kind in "fc" else ((x == 1) | (x == -1)).where(x, 0),
  "sin":          "sin",
  "cos":          "cos",
  "tan":          "tan",
  "arcsin":       _odd("asin"),
  "arccos":       "acos",
  "arctan":       "atan",
  "arctan2":      _arctan2,
  "hypot":        "hypot",
  "sinh":         _odd("sinh"),
  "cosh":         "cosh",
  "tanh":         "tanh",
  "arcsinh":      _odd("asinh"),
  "arccosh":      "acosh",
  "arctanh":      _odd("atanh"),
  "deg2rad":      "deg2rad",
  "rad2deg":      "rad2deg",
  "degrees":      "rad2deg",
  "radians":      "deg2rad",
  "bitwise_and":  operator.and_,
  "bitwise_or":   operator.or_,
  "bitwise_xor":  operator.xor,
  "invert":       operator.invert,
  "left_shift":   functools.partial(_shift, left=True),
  "right_shift":  functools.partial(_shift, left=False),
  "bitwise_count": _bit_count,
  "greater":      _comparison(operator.gt),
  "greater_equal": _comparison(operator.ge),
  "less":         _comparison(operator.lt),
  "less_equal":   _comparison(operator.le),
  "equal":        _comparison(operator.eq),
  "not_equal":    _comparison(operator.ne),
  "logical_and":  _on_truth(operator.and_),
  "logical_or":   _on_truth(operator.or_),
  "logical_xor":  _on_truth(operator.xor),
  "logical_not":  _on_truth(operator.invert),
  "maximum":      _extreme("maximum", operator.ge, skips=False),
  "minimum":      _extreme("minimum", operator.le, skips=False),
  "fmax":         _extreme("fmax", operator.ge, skips=True),
  "fmin":         _extreme("fmin", operator.le, skips=True),
  "isfinite":     "isfinite",
  "isinf":        "isinf",
  "isnan":        "isnan",
  "signbit":      "signbit",
  "copysign":     "copysign",
  "nextafter":    "nextafter",
  "spacing":      _spacing,
  "modf":         _modf,
  "ldexp":        _ldexp,
  "floor":        "floor",
  "ceil":         "ceil",
  "trunc":        "trunc",
  "logaddexp":    "logaddexp",
  "logaddexp2":   "logaddexp2",
}
REDUCED: dict[str, Any] = {
  "add":         "sum",
  "multiply":    "prod",
  "maximum":     "amax",
  "minimum":     "amin",
  "logical_and": "all",
  "logical_or":  "any",
}
RUNNING: dict[str, Any] = {
  "add":      "cumsum",
  "multiply": "cumprod",
  "maximum":  lambda x, axis: x.cummax(axis)[0],
  "minimum":  lambda x, axis: x.cummin(axis)[0],
}
# fmt: on
