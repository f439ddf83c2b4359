"""What the inputs of cases hold: values that follow from a leaf's name, laced with those at which devices differ."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from mini.ir.graph import buffer
from mini.ir.uop import UOp
from mini.types import DType, dtypes, from_storage, to_storage


class Leaf(NamedTuple):
  """The name of an input: `n` tells those of a kind apart."""

  kind: str  # a row of KINDS
  n: int


def leaf(kind: str, shape: tuple[int, ...], dtype: DType, n: int = 0) -> UOp:
  return buffer(Leaf(kind, n), shape, dtype)


def rounded(x: np.ndarray, d: DType) -> np.ndarray:
  """x as the interpreter holds values of type d; integers wrap."""
  with np.errstate(all="ignore"):
    return from_storage(to_storage(np.asarray(x, np.float32 if d is dtypes.bfloat16 else None), d), d)


def limits(d: DType) -> tuple[float, float, float]:
  """(the largest number, the least normal one, the least subnormal one) of a type of floats."""
  if d is dtypes.bfloat16:
    return float.fromhex("0x1.fep127"), 2.0**-126, 2.0**-133
  info = np.finfo(d.np)
  return float(info.max), float(info.tiny), float(info.tiny * info.eps)


# ---------------------------------------------------------------- values by kind: (type, how many, n) -> array


def float_edges(d: DType) -> np.ndarray:
  most, least, subnormal = limits(d)
  ordinary = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 20.25, -0.1]
  return rounded(np.array([*ordinary, np.inf, -np.inf, np.nan, least, subnormal, most, -most]), d)


def int_edges(d: DType) -> np.ndarray:
  low, high = int(np.iinfo(d.np).min), int(np.iinfo(d.np).max)
  found = [0, 1, 2, 3, 5, 7, 8, -1, -2, -5, -7, low, low + 1, high, high - 1, high // 3]
  return np.array([x % (1 << 8 * d.itemsize) for x in found], np.uint64).astype(d.np)


def edges_of(d: DType) -> np.ndarray:
  """16 values of a type; of a boolean two."""
  if d is dtypes.bool:
    return np.array([False, True])
  return float_edges(d) if d.kind == "f" else int_edges(d)


def edges(d: DType, count: int, n: int) -> np.ndarray:
  """Edges among random values; where there is room, behind every pair of two operands' edges."""
  found = edges_of(d)
  rng = np.random.default_rng([1, count, n])
  spread = np.abs(rng.standard_normal(count)) * 10.0 ** rng.integers(-2, 3, count)
  other = rounded(spread * rng.choice([-1, 1], count), d) if d.kind == "f" else rng.integers(0, 100, count)
  out = np.where(rng.random(count) < 0.5, rng.choice(found, count), other.astype(d.np))
  if count > len(found) ** 2:
    pairs = np.tile(found, len(found)) if n == 0 else np.repeat(found, len(found))
    out[: len(pairs)] = np.roll(pairs, n // 2)
  return out


def signs(d: DType, count: int, n: int) -> np.ndarray:
  """Floats whose sums and products are exact in any order: 1 or -1, and now and then another power of 2."""
  rng = np.random.default_rng([3, count, n])
  return rounded(rng.choice([1.0, -1.0, 2.0, 0.5], count, p=[0.49, 0.49, 0.01, 0.01]), d)


def laced(d: DType, count: int, n: int) -> np.ndarray:
  """The same, with an infinity at the end and a NaN before it."""
  x = signs(d, count, n)
  x[-1:], x[-2:-1] = np.inf, np.nan
  return x


def below(power: int, d: DType, count: int, n: int) -> np.ndarray:
  """Floats of a size below 2^power."""
  most = min(limits(d)[0], 2.0**power * (1 - 2.0**-8))
  fractions = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 0.99, -0.99]
  # of narrower integers, which wrap
  borders = [127.9, 128, -129, 255.5, 256, 32768, -32769, 65535.5, most, -most]
  rng = np.random.default_rng([4, count, n])
  listed = rng.choice(np.clip([*fractions, *borders], -most, most), count)
  return rounded(np.where(rng.random(count) < 0.5, listed, rng.uniform(-300, 300, count)), d)


def whole(d: DType, count: int, n: int) -> np.ndarray:
  """Floats that an int32 holds, once cut to a whole number."""
  return below(31, d, count, n)


def whole_int64(d: DType, count: int, n: int) -> np.ndarray:
  return below(63, d, count, n)


def whole_uint32(d: DType, count: int, n: int) -> np.ndarray:
  return np.abs(below(32, d, count, n))


def whole_uint64(d: DType, count: int, n: int) -> np.ndarray:
  return np.abs(below(64, d, count, n))


def index(d: DType, count: int, n: int) -> np.ndarray:
  """Indices of an axis of n elements, each of which comes several times where there are enough of them."""
  return np.random.default_rng([5, count, n]).integers(0, max(n, 1), count).astype(d.np)


def outside(d: DType, count: int, n: int) -> np.ndarray:
  """Indices of an axis of n elements, of which one is not."""
  x = index(d, count, n)
  x[count // 2] = n
  return x


def negative(d: DType, count: int, n: int) -> np.ndarray:
  """The same, with one that is negative; of unsigned types, one that is huge."""
  x = index(d, count, n)
  x[count // 2] = -1 if d.kind == "i" else np.iinfo(d.np).max
  return x


LISTED = (edges, signs, laced, whole, whole_int64, whole_uint32, whole_uint64, index, outside, negative)
KINDS: dict[str, Callable[[DType, int, int], np.ndarray]] = {f.__name__: f for f in LISTED}


@lru_cache(4096)
def values(u: UOp, flushed: bool = False) -> np.ndarray:
  """The array of a leaf. flushed: without subnormal numbers, for a device that does not keep them."""
  (kind, n), shape = u.arg
  x = KINDS[kind](u.dtype, prod(shape), n)
  if flushed and u.dtype.kind == "f":
    x = np.where(np.abs(x) < limits(u.dtype)[1], np.zeros((), x.dtype), x)
  return x.reshape(shape)
