"""Every public method of Tensor and every module of mini.nn, a row each, against an independent reference. The rows stand in
the files beside this one, a file for each family; test/test_methods.py checks them; what is here says how a row reads and what
it is evaluated with.

A file has up to four things:

  ROWS      "KINDS: expression   expression   ..."   expressions, three spaces between them, on lines with the types they take
  MISTAKES  "expression   !   part of the message"   one on a line, and what its error has to say
  INPUTS    {name: function of a random generator r}   more inputs; a function of something else is one that rows may call
  FIXED     the names of float inputs to which no gradient is passed

KINDS are letters: f float32 and float64, h float16 and bfloat16, i and u the integers with and without a sign, b bool, and
`*` for all of them; c complex64 and complex128. Float inputs of the expression take each of these types in turn; without KINDS inputs are what they are.
A `~` among them: no gradient is compared (say why above the line). A `+`: they are large to compile, and compiled
in full runs alone. A line that begins with # is a comment.

An expression is evaluated with our Tensors and with PyTorch's. There is `T` (Tensor and torch), `M` (mini and torch), `F32 I64 ...` (types), `S`
(S[1:, None] is an index) and the inputs below. A method that torch.Tensor lacks is looked for in torch.nn.functional, then
in torch. Where names differ, `ours => theirs`; where theirs mentions `np`, it is NumPy's, on arrays: the reference of
what PyTorch lacks. Where theirs is a function, it is the cumulative distribution from which ours is a sample.

`nn.Name(...)(...)` is a module of either library: both have the same parameters, their values are of their names and shapes.
Names of the state and buffers afterwards are compared, too, and gradients of parameters like those of inputs. Where PyTorch
lacks the module, theirs has the parameters by `param(name, *shape)`, in the order of their names.
"""

from __future__ import annotations

import ast
import functools
import importlib
import math
import operator
import pkgutil
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

import mini
from mini import Tensor, dtypes, nn
from mini.types import HANDED_IN, DType

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
  "c": (dtypes.complex64, dtypes.complex128),
}
TYPES = {d.short.upper(): d for d in (*dtypes.all, *KINDS["c"])}


# ---------------------------------------------------------------- rows


@dataclass(frozen=True)
class Row:
  family: str
  ours: str
  theirs: str
  types: tuple[DType | None, ...]  # what its float inputs are in turn; None: what they are
  differentiable: bool
  slow: bool = False

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
    return "np" in names_in(self.theirs) or not names_in(self.theirs) & {
      "T",
      "M",
      "F",
      "torch",
      "nn",
      *self.inputs,
    }


@functools.cache
def names_in(expression: str) -> frozenset[str]:
  return frozenset(n.id for n in ast.walk(ast.parse(expression, mode="eval")) if isinstance(n, ast.Name))


def rows_of(family: str, text: str) -> list[Row]:
  found = []
  for line in filter(None, map(str.strip, text.splitlines())):
    if line.startswith("#"):
      continue
    head, colon, rest = line.partition(": ")
    typed = colon and not head.strip("fhiubc~*+")
    kinds, body = (head, rest) if typed else ("", line)
    types = tuple(d for k in kinds.replace("*", "fhiub") for d in KINDS.get(k, ())) or (None,)
    for one in filter(None, map(str.strip, body.split("   "))):
      ours, _, theirs = map(str.strip, one.partition("=>"))
      found.append(Row(family, ours, theirs or ours, types, "~" not in kinds, "+" in kinds))
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
  if d.kind == "c":
    other = np.roll(array[::-1], 1, -1) if array.ndim else array
    return (array + np.complex64(0.7j) * other).astype(d.np)
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


class Modules:
  """A library's modules by name. `made` are the outermost ones of an expression, filled and moved; `hold` puts them somewhere."""

  def __init__(self, library: Any, hold: Any, moved: float = 0.0):
    self.library, self.hold, self.moved, self.made = library, hold, moved, []

  def __getattr__(self, name: str) -> Any:
    def make(*args: Any, **options: Any) -> Any:
      module = self.hold(getattr(self.library, name)(*args, **options))
      inside = {id(m) for m in module.modules()}
      self.made = [*(m for m in self.made if id(m) not in inside), module]
      self.fill(module)
      return module

    return make

  def fill(self, module: Any) -> None:
    for name, p in module.named_parameters():
      value = self.value(name, p.shape)
      if self.library is nn:
        p.assign(Tensor(value, dtype=p.dtype, device=p.device))
      else:
        p.data.copy_(torch.from_numpy(value))

  def value(self, name: str, shape: Any) -> np.ndarray:
    drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(tuple(shape)) * 0.4
    return drawn.astype(np.float32) + self.moved * weights(tuple(shape))

  def param(self, name: str, *shape: int) -> Any:
    """A parameter of a module that PyTorch lacks."""
    module = torch.nn.Module()
    module.register_parameter(
      name.replace(".", "_"), torch.nn.Parameter(torch.from_numpy(self.value(name, shape)).float())
    )
    self.made.append(module)
    return next(module.parameters())

  def parameters(self) -> list[Any]:
    return [p for m in self.made for _, p in sorted(m.named_parameters()) if p.requires_grad]

  def state(self) -> list[Any]:
    """The names, then what is no parameter."""
    states = [(m.state_dict(), dict(m.named_parameters())) for m in self.made]
    return [
      sorted(n for state, _ in states for n in state),
      [s[n] for s, ps in states for n in sorted(s) if n not in ps],
    ]


def weights(shape: tuple[int, ...]) -> np.ndarray:
  """Of the elements of an array, such that no two count the same."""
  return np.cos(np.arange(math.prod(shape), dtype=np.float64).reshape(shape) + 1)


def inputs_of(row: Row, expression: str, d: DType | None) -> dict[str, tuple[Any, DType | None]]:
  """{name: (array, its type)} of what an expression reads, floats in type d; functions have None."""
  found: dict[str, tuple[Any, DType | None]] = {}
  for name, array in arrays(row.family).items():
    if name not in names_in(expression):
      continue
    if not isinstance(array, np.ndarray):
      found[name] = array, None
      continue
    single = array.dtype == np.float32
    kind = d if d is not None and single else dtypes_of(array)
    found[name] = retyped(array, kind) if single else array, kind
  return found


def ours(
  row: Row,
  d: DType | None,
  device: str | None = None,
  view: bool = False,
  grad: bool = False,
  moved: float = 0.0,
) -> tuple[Any, list[Tensor]]:
  """What the row gives in mini, and the inputs and parameters of float types. moved: how far along `weights` these are."""
  there = [x for x in (device, d) if x is not None and x is not dtypes.float32]
  modules = Modules(nn, lambda m: m.to(*there) if there else m, moved)
  names: dict[str, Any] = {**COMMON, "T": Tensor, "M": mini, "nn": modules, **TYPES}
  leaves = []
  Tensor.manual_seed(5)
  for name, (array, kind) in inputs_of(row, row.ours, d).items():
    names[name] = array
    if kind is None:
      continue
    trained = kind.kind in "fc" and grad and name not in fixed(row.family)
    array = array + moved * weights(array.shape) if trained and moved else array
    names[name] = reordered(array, device, kind) if view else Tensor(array, dtype=kind, device=device)
    if trained:
      leaves.append(names[name].requires_grad_())
  result = eval(row.ours, names)
  if "nn" in names_in(row.theirs):
    result = result, modules.state()
  return result, leaves + modules.parameters() * grad


def dtypes_of(array: np.ndarray) -> DType:
  return HANDED_IN[array.dtype]


def theirs(row: Row, d: DType | None, grad: bool = False, wider: bool = False) -> tuple[Any, list[Any]]:
  """What the reference gives, and its inputs and parameters of float types (PyTorch's)."""
  names: dict[str, Any] = {**COMMON, "np": np, "torch": torch, "T": torch, "M": torch}
  if row.by_numpy:
    names.update((name, array) for name, (array, _) in inputs_of(row, row.theirs, d).items())
    return eval(row.theirs, names), []
  modules = Modules(torch.nn, lambda m: m)
  names.update({n: getattr(torch, t.name, None) for n, t in TYPES.items()}, F=torch.nn.functional)
  names.update(nn=modules, param=modules.param)
  leaves = []
  for name, (array, kind) in inputs_of(row, row.theirs, d).items():
    names[name] = array
    if kind is None:
      continue
    held = WIDER[kind.kind] if wider else kind
    names[name] = torch.from_numpy(np.array(array, held.np)).to(getattr(torch, held.name))
    if kind.kind in "fc" and grad and name not in fixed(row.family):
      leaves.append(names[name].requires_grad_())
  result = eval(compiled(row.theirs), names)
  if "nn" in names_in(row.theirs):
    result = result, modules.state()
  return result, leaves + modules.parameters() * grad


WIDER = {
  "f": dtypes.float32,
  "i": dtypes.int64,
  "u": dtypes.int64,
  "b": dtypes.bool,
  "c": dtypes.complex64,
}


class _Functions(ast.NodeTransformer):
  """x.name(...) of what torch.Tensor lacks becomes F.name(x, ...) or torch.name(x, ...)."""

  def visit_Call(self, node: ast.Call) -> ast.AST:
    self.generic_visit(node)
    f = node.func
    room = f
    while isinstance(room, ast.Attribute):
      room = room.value
    library = isinstance(room, ast.Name) and room.id in ("M", "F", "torch", "nn")
    if not isinstance(f, ast.Attribute) or library or (isinstance(f.value, ast.Name) and f.value.id == "T"):
      return node
    if hasattr(torch.Tensor, f.attr) or hasattr(torch.nn.Module, f.attr):
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
  return [] if result is None else [result]
