"""The algebra of values. test/test_rules.py evaluates both sides of every rule, on every type, and compares
the bits.

What is missing is often missing on purpose: on floats x * 0 is not 0 (nan, inf, -0.0), x + 0 is not x (-0.0),
x - x is not 0 (inf), and (x + c0) + c1 rounds twice.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from mini.config import config
from mini.ir.interp import elementwise
from mini.ir.ops import OPS, identity, is_elementwise
from mini.ir.replace import Replacement
from mini.ir.rewrite import Match, Procedure, Rule, Rules, Step, rule
from mini.ir.uop import UOp, const, uop
from mini.types import DType, dtypes

# ---------------------------------------------------------------- conditions


def is_int(m: Match) -> bool:
  return m.dtype.kind in "iu"


def is_float(m: Match) -> bool:
  return m.dtype.kind == "f"


def is_bool(m: Match) -> bool:
  return m.dtype.kind == "b"


def x_is_bool(m: Match) -> bool:
  return m["x"].dtype.kind == "b"


def is_discrete(m: Match) -> bool:
  return m.dtype.kind in "biu"


def p_is_bool(m: Match) -> bool:
  return m["p"].dtype.kind == "b"


def is_number(m: Match) -> bool:
  return m.dtype.kind != "b"


def only_left_is_const(m: Match) -> bool:
  return m["x"].op != "const"


def may_swap_max(m: Match) -> bool:
  return only_left_is_const(m) and is_discrete(m)


def is_moderate(m: Match) -> bool:
  """Floats, and constants with which nothing overflows or vanishes that would not have."""
  constants = [v.arg for name, v in m.items() if name[0] == "c"]
  return m.dtype.kind == "f" and all(2**-10 <= abs(c) <= 2**10 for c in constants)


def is_lowest(m: Match) -> bool:
  return m["c"].arg == identity("max", m.dtype)


def is_all_ones(m: Match) -> bool:
  return is_discrete(m) and m["c"] is const(-1, m.dtype)


def is_power_of_two(m: Match) -> bool:
  """A float c of which 1 / c is exact, and normal."""
  c = m["c"].arg
  if m.dtype.kind != "f" or not math.isfinite(c) or c == 0 or abs(math.frexp(c)[0]) != 0.5:
    return False
  tiny = 2.0**-126 if m.dtype is dtypes.bfloat16 else float(np.finfo(m.dtype.np).tiny)
  return tiny <= abs(1 / c) <= 1 / tiny


def holds(d: DType, t: DType) -> bool:
  """Is every value of type d also one of type t?"""
  if d is t or d.kind == "b":
    return "x" not in d.kind + t.kind
  if t.kind == "f":
    return digits(d) <= digits(t) and (
      d.kind != "f" or (d.itemsize <= t.itemsize and exponents(d) <= exponents(t))
    )
  if d.kind == "f" or t.kind not in "iu" or d.kind not in "iu":
    return False
  return d.itemsize < t.itemsize and not (d.kind == "i" and t.kind == "u")


def digits(d: DType) -> int:
  """Bits that a value of this type has at most, beside its sign and exponent."""
  floats = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}
  return floats.get(d, 8 * d.itemsize - (d.kind == "i"))


def exponents(d: DType) -> int:
  return {dtypes.float16: 5, dtypes.float64: 11}.get(d, 8)


def inner_is_exact(m: Match) -> bool:
  x, t, to = m["x"].dtype, m["t"], m["t0"]
  wraps = x.kind in "iu" and t.kind == "f" and to.kind in "iu" and not holds(x, to)  # as floats do not
  return holds(x, t) and not wraps


def no_bfloat16(m: Match) -> bool:
  return dtypes.bfloat16 not in (m["x"].dtype, m["t"], m["t0"])


def same_type(m: Match) -> bool:
  return m["x"].dtype is m["t"]


# ---------------------------------------------------------------- what no pattern can tell

SPLATS = ("reshape", "expand", "permute", "flip", "shrink")


def fold(u: UOp) -> UOp | None:
  """An operation on numbers is what the interpreter computes."""
  if any(s.op != "const" for s in u.src) or OPS[u.op].numpy is None and u.op not in ("cast", "bitcast"):
    return None
  value = elementwise(u, [np.asarray(s.arg, s.dtype.np) for s in u.src])
  return const(value.item(), u.dtype)


def unrepeat(u: UOp) -> UOp | None:
  """A number that a view repeats is that number: inputs of shape () repeat by themselves."""
  src = tuple(map(number_beneath, u.src))
  return None if src == u.src else uop(u.op, u.dtype, src)


def number_beneath(u: UOp) -> UOp:
  v = u
  while v.op in SPLATS:
    v = v.src[0]
  return v if v.op == "const" else u


# ---------------------------------------------------------------- the rules

# fmt: off
RULES = (
  Procedure("unrepeat", "op(view(c), x)", "op(c, x)", unrepeat, "a number repeats by itself"),
  Procedure("fold",     "op(c0, c1)",     "c",        fold,     "with the interpreter's meaning"),

  # numbers stand on the right
  rule("add_order",   "c + x",               "x + c",             when=only_left_is_const),
  rule("mul_order",   "c * x",               "x * c",             when=only_left_is_const),
  rule("max_order",   "max(c, x)",           "max(x, c)",         when=may_swap_max,
       why="which of 0.0 and -0.0 is larger is left open"),
  rule("and_order",   "and(c, x)",           "and(x, c)",         when=only_left_is_const),
  rule("or_order",    "or(c, x)",            "or(x, c)",          when=only_left_is_const),
  rule("xor_order",   "xor(c, x)",           "xor(x, c)",         when=only_left_is_const),
  rule("ne_order",    "c != x",              "x != c",            when=only_left_is_const),

  # neutral and absorbing numbers
  rule("add_zero",    "x + 0",               "x",                 when=is_int, why="-0.0 + 0.0 is 0.0"),
  rule("add_minus_zero", "x + -0.0",         "x",                 when=is_float, why="0.0 + -0.0 is 0.0"),
  rule("add_false",   "x + 0",               "x",                 when=is_bool),
  rule("mul_one",     "x * 1",               "x"),
  rule("mul_zero",    "x * 0",               "0",                 when=is_discrete, why="nan * 0 and inf * 0 are nan"),
  rule("div_one",     "x / 1",               "x",                 when=is_number),
  rule("mod_one",     "x % 1",               "0",                 when=is_int),
  rule("max_lowest",  "max(x, c)",           "x",                 when=is_lowest, why="nan stays: it wins"),
  rule("and_zero",    "and(x, 0)",           "0"),
  rule("and_ones",    "and(x, c)",           "x",                 when=is_all_ones),
  rule("or_zero",     "or(x, 0)",            "x"),
  rule("or_ones",     "or(x, c)",            "c",                 when=is_all_ones),
  rule("xor_zero",    "xor(x, 0)",           "x"),

  # the same value twice
  rule("max_same",    "max(x, x)",           "x"),
  rule("and_same",    "and(x, x)",           "x"),
  rule("or_same",     "or(x, x)",            "x"),
  rule("xor_same",    "xor(x, x)",           "0"),
  rule("lt_same",     "x < x",               "0"),
  rule("ne_same",     "x != x",              "0",                 when=is_discrete, why="nan != nan"),
  rule("sub_same",    "x + x * -1",          "0",                 when=is_int, why="inf - inf is nan"),
  rule("factor",      "x * c0 + x * c1",     "x * (c0 + c1)",     when=is_int),
  rule("factor_one",  "x + x * c",           "x * (c + 1)",       when=is_int),

  # numbers come together
  rule("add_add",     "x + c0 + c1",         "x + (c0 + c1)",     when=is_int, why="floats round after each"),
  rule("mul_mul",     "x * c0 * c1",         "x * (c0 * c1)",     when=is_int, why="floats round after each"),
  rule("max_max",     "max(max(x, c0), c1)", "max(x, max(c0, c1))", when=is_discrete),
  rule("mod_mod",     "x % c % c",           "x % c",             when=is_int, why="floats may round up to c"),
  rule("neg_neg",     "x * -1 * -1",         "x"),
  rule("not_not",     "(x != 1) != 1",       "x",                 when=x_is_bool),
  rule("ne_false",    "x != 0",              "x",                 when=is_bool),
  rule("xor_xor",     "xor(xor(x, c0), c1)", "xor(x, xor(c0, c1))"),
  rule("div_power",   "x / c",               "x * (1 / c)",       when=is_power_of_two, why="1 / c is exact"),
  rule("div_const",   "x / c",               "x * (1 / c)",       when=is_moderate, fast=True, why="rounds twice"),
  rule("mul_mul_fast", "x * c0 * c1",        "x * (c0 * c1)",     when=is_moderate, fast=True, why="rounds once"),
  rule("add_add_fast", "x + c0 + c1",        "x + (c0 + c1)",     when=is_moderate, fast=True, why="rounds once"),

  # choices
  rule("where_true",  "where(1, x, y)",      "x"),
  rule("where_false", "where(0, x, y)",      "y"),
  rule("where_same",  "where(p, x, x)",      "x"),
  rule("where_bool",  "where(p, 1, 0)",      "p",                 when=is_bool),
  rule("where_not",   "where(p != 1, x, y)", "where(p, y, x)",    when=p_is_bool),
  rule("where_left",  "where(p, where(p, x, y), z)", "where(p, x, z)"),
  rule("where_right", "where(p, x, where(p, y, z))", "where(p, x, z)"),

  # types
  rule("cast_same",   "cast(x, t)",          "x",                 when=same_type),
  rule("cast_cast",   "cast(cast(x, t), t0)", "cast(x, t0)",      when=inner_is_exact),
  rule("bits_same",   "bitcast(x, t)",       "x",                 when=same_type),
  rule("bits_bits",   "bitcast(bitcast(x, t), t0)", "bitcast(x, t0)", when=no_bfloat16,
       why="reading a bfloat16 makes its nan quiet"),
)
# fmt: on


@lru_cache(maxsize=64)
def _rules(fast: bool, users: tuple[Step, ...]) -> Rules:
  own = (r for r in users if not isinstance(r, Replacement))
  rules = Rules((*own, *(r for r in RULES if fast or isinstance(r, Procedure) or not r.fast)))
  rules.replacements = tuple(r for r in users if isinstance(r, Replacement))
  return rules


def rules_here() -> Rules:
  """The rules that hold here and now: those above, with FAST=1 the inexact ones too, and those of `rewrite` blocks."""
  return _rules(config.FAST, _users.get())


def simplify(roots: list[UOp]) -> list[UOp]:
  """The roots, rewritten until no rule applies."""
  return rules_here()(roots)


_users: ContextVar[tuple[Step, ...]] = ContextVar("rules of rewrite blocks", default=())
users_here = _users.get


class rewrite:
  """A block in which your own rules hold, before the built-in ones: in this thread, for what is realized in it.

  >>> from mini import Tensor, rewrite, rule
  >>> with rewrite(rule("no_sine", "sin(x)", "x")):
  ...   Tensor([2.0]).sin().item()
  2.0
  """

  def __init__(self, *rules: Rule | Replacement):
    self.rules = rules
    self.tokens: list[Any] = []

  def __enter__(self) -> None:
    self.tokens.append(_users.set((*self.rules, *_users.get())))

  def __exit__(self, *exception: object) -> None:
    _users.reset(self.tokens.pop())


assert all(is_elementwise(r.patterns[0].op) for r in RULES if not isinstance(r, Procedure))
