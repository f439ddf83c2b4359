"""Every public method of Tensor, a row each, against an independent reference. The rows stand in the files beside this one,
a file for each family; test/test_methods.py checks them; what is here says how a row reads and what it is evaluated with.

A file has up to four things:

  ROWS      "KINDS: expression   expression   ..."   expressions, three spaces between them, on lines with the types they take
  MISTAKES  "expression   !   part of the message"   one on a line, and what its error has to say
  INPUTS    {name: function of a random generator r}   more inputs; a function of something else is one that rows may call
  FIXED     the names of float inputs to which no gradient is passed

KINDS are letters: f float32 and float64, h float16 and bfloat16, i and u the integers with and without a sign, b bool, and
`*` for all of them. Float inputs of the expression take each of these types in turn; without KINDS inputs are what they are.
A `~` among them: no gradient is compared (say why above the line). A line that begins with # is a comment.

An expression is evaluated with our Tensors and with PyTorch's. There is `T` (Tensor and torch), `F32 I64 ...` (types), `S`
(S[1:, None] is an index) and the inputs below. A method that torch.Tensor lacks is looked for in torch.nn.functional, then
in torch. Where names differ, `ours => theirs`; where theirs mentions `np`, it is NumPy's, on arrays: the reference of
what PyTorch lacks. Where theirs is a function, it is the cumulative distribution from which ours is a sample.
"""

from __future__ import annotations

import ast
import functools
import importlib
import math
import operator
import pkgutil
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini import Tensor, dtypes
from mini.types import DType

try:
  import torch
except ImportError:
  torch = None

EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-8, -1e-8, 1e30, -1e30, 88.0, -88.0,
         np.inf, -np.inf, np.nan)  # fmt: skip


def normal(*shape):
  return lambda r: r.standard_normal(shape).astype(np.float32)


def positive(*shape, low=0.1, high=3.0):
  return lambda r: r.uniform(low, high, shape).astype(np.float32)


def integers(low, high, *shape, dtype=np.int64):
  return lambda r: r.integers(low, high, shape).astype(dtype)


def constant(values, dtype):
  return lambda r: np.array(values, dtype)


# fmt: off
INPUTS = {
  "x": normal(2, 3, 4),      "y": normal(3, 4),         "v": normal(4),          "w": normal(2, 2, 6, 6),
  "p": positive(3, 4),       "q": positive(3, 4, low=0.4),       "r": positive(3, 4, low=-0.95, high=0.95),
  "s": constant(1.5, np.float32),                       "z": constant(np.zeros((0, 3)), np.float32),
  "e": constant(EDGES, np.float32),                     "odd": normal(5, 7, 3),
  "h": lambda r: r.standard_normal((3, 4)).astype(np.float16),
  "i": integers(-3, 4, 3, 4),                           "j": integers(1, 5, 3, 4),
  "u": integers(0, 200, 3, 4, dtype=np.uint8),          "b": lambda r: r.random((3, 4)) < 0.5,
  "k": integers(0, 3, 3),    "d": integers(0, 4, 3, 2), "n": constant(3, np.int32),
}
# fmt: on

KINDS = {
  "f": (dtypes.float32, dtypes.float64),
  "h": (dtypes.float16, dtypes.bfloat16),
  "i": (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8),
  "u": (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
  "b": (dtypes.bool,),
}
TYPES = {d.short.upper(): d for d in dtypes.all}


# ---------------------------------------------------------------- rows


@dataclass(frozen=True)
class Row:
  family: str
  ours: str
  theirs: str
  types: tuple[DType | None, ...]  # what its float inputs are in turn; None: what they are
  differentiable: bool

  @property
  def name(self) -> str:
    return f"{self.family}: {self.ours}"

  @property
  def inputs(self) -> list[str]:
    """The names of the arrays that it reads."""
    return [
      n for n, a in arrays(self.family).items() if n in names_in(self.ours) and isinstance(a, np.ndarray)
    ]

  @property
  def by_numpy(self) -> bool:
    return "np" in names_in(self.theirs) or not names_in(self.theirs) & {"T", "F", "torch", *self.inputs}


@functools.cache
def names_in(expression: str) -> frozenset[str]:
  return frozenset(n.id for n in ast.walk(ast.parse(expression, mode="eval")) if isinstance(n, ast.Name))


def rows_of(family: str, text: str) -> list[Row]:
  found = []
  for line in filter(None, map(str.strip, text.splitlines())):
    if line.startswith("#"):
      continue
    head, colon, rest = line.partition(": ")
    typed = colon and not head.strip("fhiub~*")
    kinds, body = (head, rest) if typed else ("", line)
    types = tuple(d for k in kinds.replace("*", "fhiub") for d in KINDS.get(k, ())) or (None,)
    for one in filter(None, map(str.strip, body.split("   "))):
      ours, _, theirs = map(str.strip, one.partition("=>"))
      found.append(Row(family, ours, theirs or ours, types, "~" not in kinds))
  return found


@functools.cache
def family(name: str) -> Any:
  return importlib.import_module(f"{__name__}.{name}")


FAMILIES = sorted(m.name for m in pkgutil.iter_modules(__path__))


@functools.cache
def rows() -> list[Row]:
  return [row for name in FAMILIES for row in rows_of(name, getattr(family(name), "ROWS", ""))]


@functools.cache
def mistakes() -> list[tuple[str, str, str]]:
  """(family, expression, what the error says)"""
  lines = [(n, line) for n in FAMILIES for line in getattr(family(n), "MISTAKES", "").splitlines() if line]
  pairs = [(n, *map(str.strip, line.split("   !   "))) for n, line in lines if not line.startswith("#")]
  return [pair for pair in pairs if len(pair) == 3]


METHODS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
           ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
           ast.LShift: "lshift", ast.RShift: "rshift", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
           ast.Eq: "eq", ast.NotEq: "ne", ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
           ast.Subscript: "getitem"}  # fmt: skip


@functools.cache
def called(expression: str) -> frozenset[str]:
  """The methods and properties that an expression uses by name or by sign."""
  nodes = list(ast.walk(ast.parse(expression, mode="eval")))
  signs = {f"__{METHODS[type(n)]}__" for n in nodes if type(n) in METHODS}
  signs |= {f"__{name}__" for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor",
            "ilshift", "irshift", "imatmul") if name in names_in(expression)}  # fmt: skip
  signs |= {f"__{n.id}__" for n in nodes if isinstance(n, ast.Name)}
  return frozenset({n.attr for n in nodes if isinstance(n, ast.Attribute)} | signs)


# ---------------------------------------------------------------- evaluation


@functools.cache
def arrays(family_name: str) -> dict[str, Any]:
  """Inputs and functions of a family, by name: its own first, the same ones in every run."""
  found: dict[str, Any] = {}
  for name, make in {**INPUTS, **getattr(family(family_name), "INPUTS", {})}.items():
    code = getattr(make, "__code__", None)
    seeded = code is not None and code.co_varnames[:1] == ("r",)
    found[name] = make(np.random.default_rng(sum(map(ord, name)))) if seeded else make
  return found


def fixed(family_name: str) -> tuple[str, ...]:
  """Float inputs to which no gradient is passed."""
  return getattr(family(family_name), "FIXED", ())


def retyped(array: np.ndarray, d: DType) -> np.ndarray:
  """Small numbers of a type: what NumPy holds it in."""
  if d.kind == "f":
    return array.astype(d.np)
  whole = np.rint(np.nan_to_num(array, nan=0, posinf=9, neginf=-9).clip(-9, 9) * 3)
  return np.asarray(abs(whole) if d.kind == "u" else whole).astype(d.np)


def reordered(array: np.ndarray, device: str | None, d: DType) -> Tensor:
  """The tensor as a view: turned around and transposed in memory."""
  turned = np.ascontiguousarray(array.T[tuple([slice(None, None, -1)] * array.ndim)])
  t = Tensor(turned.reshape(array.T.shape), dtype=d, device=device)
  return t.flip(*range(t.ndim)).T if t.ndim else t


def put(t: Any, at: Any, value: Any) -> Any:
  """t with t[at] = value; t stays."""
  t = t.clone()
  t[at] = value
  return t


COMMON = {
  "math": math,
  "put": put,
  "S": np.s_,
  "abs": abs,
  **{n: getattr(operator, n) for n in dir(operator) if n[0] == "i"},
}


def ours(
  row: Row, d: DType | None, device: str | None = None, view: bool = False, grad: bool = False
) -> tuple[Any, list[Tensor]]:
  """What the row gives in mini, and the inputs of float types."""
  names: dict[str, Any] = {**COMMON, "T": Tensor, **TYPES}
  leaves = []
  Tensor.manual_seed(5)
  for name, array in arrays(row.family).items():
    if name not in names_in(row.ours):
      continue
    if not isinstance(array, np.ndarray):
      names[name] = array
      continue
    kind = d if d is not None and array.dtype == np.float32 else dtypes_of(array)
    array = retyped(array, kind) if array.dtype == np.float32 else array
    t = reordered(array, device, kind) if view else Tensor(array, dtype=kind, device=device)
    names[name] = t
    if kind.kind == "f" and grad and name not in fixed(row.family):
      leaves.append(t.requires_grad_())
  return eval(row.ours, names), leaves


def dtypes_of(array: np.ndarray) -> DType:
  return next(d for d in dtypes.all if d.np == array.dtype and d is not dtypes.bfloat16)


def theirs(row: Row, d: DType | None, grad: bool = False, wider: bool = False) -> tuple[Any, list[Any]]:
  """What the reference gives, and its inputs of float types (PyTorch's)."""
  arithmetic = row.by_numpy
  names: dict[str, Any] = {**COMMON, "np": np, "torch": torch, "T": torch}
  if torch is not None:
    names.update({n: getattr(torch, t.name, None) for n, t in TYPES.items()}, F=torch.nn.functional)
  leaves = []
  for name, array in arrays(row.family).items():
    if name not in names_in(row.theirs):
      continue
    if not isinstance(array, np.ndarray):
      names[name] = array
      continue
    kind = d if d is not None and array.dtype == np.float32 else dtypes_of(array)
    array = retyped(array, kind) if array.dtype == np.float32 else array
    if arithmetic:
      names[name] = array
      continue
    held = (
      {"f": dtypes.float32, "i": dtypes.int64, "u": dtypes.int64, "b": dtypes.bool}[kind.kind]
      if wider
      else kind
    )
    t = torch.from_numpy(np.array(array, held.np)).to(getattr(torch, held.name))
    names[name] = t
    if kind.kind == "f" and grad and name not in fixed(row.family):
      leaves.append(t.requires_grad_())
  return eval(row.theirs if arithmetic else compiled(row.theirs), names), leaves


class _Functions(ast.NodeTransformer):
  """x.name(...) of what torch.Tensor lacks becomes F.name(x, ...) or torch.name(x, ...)."""

  def visit_Call(self, node: ast.Call) -> ast.AST:
    self.generic_visit(node)
    f = node.func
    if not isinstance(f, ast.Attribute) or (
      isinstance(f.value, ast.Name) and f.value.id in ("T", "F", "torch")
    ):
      return node
    if hasattr(torch.Tensor, f.attr):
      return node
    room = "F" if hasattr(torch.nn.functional, f.attr) else "torch"
    func = ast.Attribute(ast.Name(room, ast.Load()), f.attr, ast.Load())
    return ast.Call(func, [f.value, *node.args], node.keywords)


@functools.cache
def compiled(expression: str) -> Any:
  tree = _Functions().visit(ast.parse(expression, mode="eval"))
  return compile(ast.fix_missing_locations(tree), expression, "eval")


def parts(result: Any) -> list[Any]:
  """The tensors, arrays and numbers of a result, in order."""
  if isinstance(result, (tuple, list)) and type(result).__name__ != "Size":
    return [p for r in result for p in parts(r)]
  return [result]
