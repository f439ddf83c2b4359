"""Arithmetic on nodes of one type and shape, of the graph's operations: what elementwise.py's methods take."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.types import DTypeError, dtypes


def of(op: str) -> Callable[[UOp, UOp], UOp]:
  """What is an operation of the graph already."""
  return partial(graph.alu, op)


add, mul, div, mod, largest = map(of, ("add", "mul", "div", "mod", "max"))
lt, ne, both, either, one_of = map(of, ("lt", "ne", "and", "or", "xor"))


def negated(u: UOp) -> UOp:
  """-u: times -1, because 0 - 0.0 is not -0.0."""
  return graph.alu("mul", u, const(-1, u.dtype))


def inverted(u: UOp) -> UOp:
  """~u: of booleans, or of the bits."""
  return graph.alu("xor", u, const(True if u.dtype is dtypes.bool else -1, u.dtype))


def least(a: UOp, b: UOp) -> UOp:
  """The smaller one; NaN wins."""
  return graph.alu("and", a, b) if a.dtype is dtypes.bool else graph.alu("min", a, b)


def equals(a: UOp, b: UOp) -> UOp:
  return inverted(graph.alu("ne", a, b))


def sub(a: UOp, b: UOp) -> UOp:
  if a.dtype is dtypes.bool:
    raise DTypeError(
      "a - b: booleans have no difference; a ^ b would fit, and ~a where a is to be turned round"
    )
  return graph.alu("add", a, negated(b))


def gt(a: UOp, b: UOp) -> UOp:
  return graph.alu("lt", b, a)


def le(a: UOp, b: UOp) -> UOp:
  return graph.alu("or", graph.alu("lt", a, b), equals(a, b))  # not (b < a): false for NaN


def ge(a: UOp, b: UOp) -> UOp:
  return le(b, a)


COMPARISONS = {lt, gt, le, ge, ne, equals}


def on_truth(op: str) -> Callable[[UOp, UOp], UOp]:
  """The operation on what each input is as a boolean."""
  return lambda a, b: graph.alu(
    op, graph.alu("ne", a, const(0, a.dtype)), graph.alu("ne", b, const(0, b.dtype))
  )


def floor_div(a: UOp, b: UOp) -> UOp:
  if a.dtype.kind != "f":
    return graph.alu("div", a, b)
  zero, rest = const(0, b.dtype), fmod(a, b)  # that of an infinite b is a
  quotient = graph.alu("round", graph.alu("div", sub(a, rest), b))  # a whole number, but for rounding
  above = graph.alu("and", graph.alu("ne", rest, zero), graph.alu("ne", lt(rest, zero), lt(b, zero)))
  quotient = sub(quotient, graph.cast(above, a.dtype))
  return graph.alu("where", equals(b, zero), graph.alu("div", a, b), quotient)


def magnitude(u: UOp) -> UOp:
  return graph.alu("abs", u)


def with_sign_of(a: UOp, u: UOp) -> UOp:
  return graph.alu("where", graph.alu("lt", a, const(0, a.dtype)), negated(u), u)


def fmod(a: UOp, b: UOp) -> UOp:
  """The rest, with the sign of a."""
  if a.dtype.kind == "f":
    return with_sign_of(a, graph.alu("mod", with_sign_of(a, a), magnitude(b)))
  rest = graph.alu("mod", a, b)
  return graph.alu("where", _floored(a, b), sub(rest, b), rest) if a.dtype.kind == "i" else rest


def trunc_div(a: UOp, b: UOp) -> UOp:
  """Of integers."""
  quotient = graph.alu("div", a, b)
  return graph.alu("add", quotient, graph.cast(_floored(a, b), a.dtype)) if a.dtype.kind == "i" else quotient


def _floored(a: UOp, b: UOp) -> UOp:
  """Is floor(a / b) less than a / b towards zero? (Not asked of magnitudes: the least integer has none.)"""
  zero = const(0, a.dtype)
  apart = graph.alu("ne", graph.alu("lt", a, zero), graph.alu("lt", b, zero))
  return graph.alu("and", apart, graph.alu("ne", graph.alu("mod", a, b), zero))


def integer_power(x: UOp, n: float) -> UOp | None:
  """x ** n by multiplications, where that is as good as pow; else None."""
  if n == 0:
    return graph.full(graph.shape(x), 1, x.dtype)
  if x.dtype.kind == "f" and n == 0.5:
    return graph.alu("sqrt", x)
  if x.dtype.kind == "f" and n == -0.5:
    return graph.alu("rsqrt", x)
  if x.dtype.kind == "f" and n == -1:
    return graph.alu("div", const(1, x.dtype), x)
  if not 0 <= n < math.inf or n != int(n) or (x.dtype.kind == "f" and n > 4):
    return None
  n, square, out = int(n), x, None
  while n:
    if n & 1:
      out = square if out is None else mul(out, square)
    n >>= 1
    square = mul(square, square) if n else square
  return out


def power(a: UOp, b: UOp) -> UOp:
  return graph.alu("pow", a, b)


def shift_left(a: UOp, b: UOp) -> UOp:
  return mul(a, two_to(b))


def shift_right(a: UOp, b: UOp) -> UOp:
  bits = 8 * a.dtype.itemsize - (a.dtype.kind == "i")
  nothing = const(0, a.dtype)
  sign = graph.alu("where", graph.alu("lt", a, nothing), const(-1, a.dtype), nothing)
  gone = sign if a.dtype.kind == "i" else mul(a, nothing)  # what is left once every digit is shifted out
  if b.op == "const":
    return graph.alu("div", a, two_to(b)) if 0 <= b.arg < bits else gone
  least = graph.alu("lt", const(-1, b.dtype), b) if b.dtype.kind == "i" else None
  short = graph.alu("lt", b, const(bits, b.dtype))
  inside = short if least is None else graph.alu("and", least, short)
  return graph.alu("where", inside, graph.alu("div", a, two_to(b)), gone)


def two_to(n: UOp) -> UOp:
  """0 where it does not fit, as in what is shifted out."""
  if n.op == "const":
    return const(1 << n.arg if 0 <= n.arg < 8 * n.dtype.itemsize else 0, n.dtype)
  return power(const(2, n.dtype), n)
