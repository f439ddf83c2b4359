"""Composites: operations with a name that are made of the primitives. Each is one row here, and joins the table of ops.

A composite stays one node until a device needs it: a language that has the function spells it, another one prints the
float32 `body`, and gradients are known by the name.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

import numpy as np

from mini.ir.ops import OPS, Op
from mini.ir.uop import UOp


@dataclass(frozen=True)
class Composite:
  name: str
  arity: int
  numpy: Callable  # the meaning, on arrays of the inputs
  body: Callable[..., UOp] | None = None  # on float32 nodes; None: a device spells it
  ulp: float = 0  # most that the body is away from the exact result rounded, in units of the last place of float32
  note: str = ""


_math_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: np.ndarray) -> np.ndarray:
  """The error function (NumPy has none): math.erf of every element."""
  return _math_erf(x).astype(np.asarray(x).dtype) if np.ndim(x) else np.asarray(math.erf(x), np.asarray(x).dtype)


def rsqrt(x: np.ndarray) -> np.ndarray:
  return np.reciprocal(np.sqrt(x))


def power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """a ** b; of integers wrapping, and cut towards zero where b is negative (NumPy refuses that)."""
  a, b = np.asarray(a), np.asarray(b)
  if a.dtype.kind == "f":
    return np.power(a, b)
  odd = np.where(b % 2 == 0, a.dtype.type(1), a)
  fraction = np.where(a == 1, a, np.where(a + a.dtype.type(1) == 0, odd, a.dtype.type(0)))
  return np.where(b < 0, fraction, np.power(a, np.maximum(b, 0)))


def threefry(counter: np.ndarray, key: np.ndarray) -> np.ndarray:
  """Threefry-2x32 with 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; SC 2011)."""
  c, k = np.asarray(counter, np.uint64), np.asarray(key, np.uint64)
  x, y, k0, k1 = (np.asarray(w, np.uint32) for w in (c & 0xFFFFFFFF, c >> 32, k & 0xFFFFFFFF, k >> 32))
  keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
  x, y = x + k0, y + k1
  for turn in range(5):
    for r in (13, 15, 26, 6) if turn % 2 == 0 else (17, 29, 16, 24):
      x = x + y
      y = (y << np.uint32(r) | y >> np.uint32(32 - r)) ^ x
    x, y = x + keys[(turn + 1) % 3], y + keys[(turn + 2) % 3] + np.uint32(turn + 1)
  return x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)


# fmt: off
COMPOSITES: dict[str, Composite] = {row.name: row for row in (
  Composite("exp",      1, np.exp),
  Composite("log",      1, np.log),
  Composite("cos",      1, np.cos),
  Composite("tanh",     1, np.tanh),
  Composite("erf",      1, erf),
  Composite("atan",     1, np.arctan),
  Composite("pow",      2, power,       note="of integers: wraps; to a negative power the fraction is cut to 0"),
  Composite("rsqrt",    1, rsqrt),
  Composite("floor",    1, np.floor),
  Composite("ceil",     1, np.ceil),
  Composite("trunc",    1, np.trunc),
  Composite("round",    1, np.rint,     note="half to even"),
  Composite("abs",      1, np.abs,      note="of the least integer: itself"),
  Composite("min",      2, np.minimum,  note="NaN wins, as in max"),
  Composite("threefry", 2, threefry,    note="of uint64 counter and key; the low word is the first"),
)}
# fmt: on

BODIES: dict[str, Callable[..., UOp]] = {}

OPS.update({row.name: Op(row.name, "composite", row.arity, "same", row.numpy, row.note) for row in COMPOSITES.values()})
