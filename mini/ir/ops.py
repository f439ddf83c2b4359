"""THE TABLE: every operation, one row each. At most 27 compute; leaves and marks stand below them.

A row says what the operation is called, how many inputs it has, what type it gives, what it means in NumPy, what kinds
of number it takes and what it costs. Its gradient is the row of the same name in `mini/grad.py`, whose import fails
where one is missing; how a device spells it is the row in `mini/render/`. Composites (exp, tanh, ...) are rows of
`composites.py`, and join this table when that is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from mini.types import DType, dtypes


class Op(NamedTuple):
  name: str
  family: str  # view | data | unary | binary | ternary | leaf | mark | composite
  arity: int  # -1: any number
  result: str  # same: the type of the last input; bool; arg: named by the node itself
  numpy: Callable | None  # on arrays of the inputs; None: needs the node's argument (see interp.py)
  note: str = ""
  kinds: str = "biuf"  # of number that it takes: booleans, signed and unsigned integers, floats
  cycles: float = 0.5  # of one vector, about, on a CPU


def floor_div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """Division of floats; of integers rounded towards minus infinity, 0 where the divisor is 0."""
  a = np.asarray(a)
  with np.errstate(all="ignore"):
    return np.true_divide(a, b, dtype=a.dtype) if a.dtype.kind == "f" else np.floor_divide(a, b)


def floor_mod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  with np.errstate(all="ignore"):
    return np.mod(a, b)


# fmt: off
OPS: dict[str, Op] = {op.name: op for op in (
  Op("reshape", "view",    1, "same", None, "same elements in row-major order"),
  Op("permute", "view",    1, "same", None, "axes reordered"),
  Op("expand",  "view",    1, "same", None, "axes of size 1 repeated"),
  Op("pad",     "view",    1, "same", None, "zeros around it"),
  Op("shrink",  "view",    1, "same", None, "[start, stop) of every axis"),
  Op("flip",    "view",    1, "same", None, "axes reversed"),
  Op("gather",  "data",    2, "arg",  None, "out[.., i, ..] = x[.., index[.., i, ..], ..] along one axis"),
  Op("scatter", "data",    3, "arg",  None, "base with value written (set) or accumulated (add, mul, max) at index"),
  Op("reduce",  "data",    1, "same", None, "add, mul or max over axes, which stay with size 1"),
  Op("scan",    "data",    1, "same", None, "the running add, mul or max along one axis: the prefix form of reduce"),
  Op("cast",    "data",    1, "arg",  None, "to another type; float to integer rounds towards zero"),
  Op("bitcast", "data",    1, "arg",  None, "the same bits as another type of the same size"),
  Op("exp2",    "unary",   1, "same", np.exp2, kinds="f", cycles=8),
  Op("log2",    "unary",   1, "same", np.log2, kinds="f", cycles=10),
  Op("sin",     "unary",   1, "same", np.sin, kinds="f", cycles=15),
  Op("sqrt",    "unary",   1, "same", np.sqrt,        "correctly rounded", kinds="f", cycles=6),
  Op("add",     "binary",  2, "same", np.add,         "integers wrap"),
  Op("mul",     "binary",  2, "same", np.multiply,    "integers wrap"),
  Op("div",     "binary",  2, "same", floor_div,      "of integers the floor; 0 where the divisor is 0", "iuf", 5),
  Op("mod",     "binary",  2, "same", floor_mod,      "the divisor's sign, as in Python; integers by 0: 0", "iuf", 10),
  Op("max",     "binary",  2, "same", np.maximum,     "NaN wins, as in NumPy; C's fmax drops it"),
  Op("lt",      "binary",  2, "bool", np.less,        "false when either is NaN"),
  Op("ne",      "binary",  2, "bool", np.not_equal,   "true when either is NaN"),
  Op("and",     "binary",  2, "same", np.bitwise_and, "of booleans or integers, as or and xor", "biu"),
  Op("or",      "binary",  2, "same", np.bitwise_or, kinds="biu"),
  Op("xor",     "binary",  2, "same", np.bitwise_xor, kinds="biu"),
  Op("where",   "ternary", 3, "same", np.where,       "evaluates both sides: a select, not a branch"),

  Op("const",   "leaf",    0, "arg",  None, "a Python number; shape ()"),
  Op("buffer",  "leaf",    0, "arg",  None, "memory that exists"),
  Op("iota",    "leaf",    0, "arg",  None, "0, 1, 2, ... along its one axis"),

  Op("copy",    "mark",    1, "same", None, "to another device; or whole to each of several"),
  Op("shard",   "mark",    1, "same", None, "to several devices, each of which gets a part along an axis"),
  Op("stage",   "mark",    1, "same", None, "in memory of its own (contiguous)"),
  Op("cat",     "mark",   -1, "same", None, "in one memory, its inputs one after another along an axis"),
  Op("detach",  "mark",    1, "same", None, "no gradient passes"),
  Op("tag",     "mark",    1, "same", None, "itself, told by a number from its like: what a gradient is taken by"),
  Op("call",    "mark",   -1, "arg",  None, "what a function of the host's makes of its inputs, on INTERP"),
  Op("invoke",  "mark",   -1, "arg",  None, "an output of a graph that is known, of its inputs; it is written out"),
  Op("after",   "mark",    2, "arg",  None, "the first input, from which to compute again once the second is there"),
)}
# fmt: on

VIEWS = {name for name, op in OPS.items() if op.family == "view"}
PRIMITIVES = [op for op in OPS.values() if op.family not in ("leaf", "mark")]
REDUCERS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum}


def require(table: str, found: Collection[str]) -> None:
  """ImportError where a table of another file has no row for an operation."""
  lacking = [name for name in OPS if name not in found]
  if lacking:
    raise ImportError(f"{table}: no row for {', '.join(lacking)}")


def identity(kind: str, dtype: DType) -> float | int | bool:
  """The value that a reduction by `kind` starts from."""
  if kind != "max":
    return dtype.np.type({"add": 0, "mul": 1}[kind]).item()
  if dtype.kind == "f":
    return float("-inf")
  return False if dtype is dtypes.bool else int(np.iinfo(dtype.np).min)


def is_elementwise(name: str) -> bool:
  op = OPS.get(name)
  return op is not None and (
    op.family in ("unary", "binary", "ternary", "composite") or name in ("cast", "bitcast")
  )


def result_dtype(name: str, operands: tuple[DType, ...]) -> DType:
  return dtypes.bool if OPS[name].result == "bool" else operands[-1]
