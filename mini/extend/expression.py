"""The values of a scalar function: its expressions, for all elements at once.

A value is a Python number, an index (indices.py), a tensor along the axes of what is computed, or a tuple of such. A
condition that differs from element to element is a `Test`; what stands behind one is evaluated for all, and read from
arrays only where it holds.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn

from mini.extend.indices import Axes, OutOfBounds, Path, Test, gated, read
from mini.extend.source import KernelError, Source, loaded, stored
from mini.ir import graph
from mini.ir.uop import UOp, add, bounds, div, linear, mod, mul
from mini.tensor import Tensor
from mini.types import DType, MiniError, dtypes

STEPS = 10_000  # statements that are written out, at most
Env = dict[str, Any]

BINARY: dict[type, Callable[[Any, Any], Any]] = {
  ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
  ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
  ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
  ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
  ast.NotEq: operator.ne,
}  # fmt: skip
# Functions of one number: the method of a tensor. Those of WHOLE give an integer.
FUNCTIONS: dict[Any, str] = {
  abs: "abs", math.fabs: "abs", math.sqrt: "sqrt", math.exp: "exp", math.log: "log", math.log2: "log2",
  math.log1p: "log1p", math.expm1: "expm1", math.sin: "sin", math.cos: "cos", math.tan: "tan", math.tanh: "tanh",
  math.sinh: "sinh", math.cosh: "cosh", math.asin: "asin", math.acos: "acos", math.atan: "atan", math.erf: "erf",
  math.isnan: "isnan", math.isinf: "isinf", math.isfinite: "isfinite",
}  # fmt: skip
WHOLE = {math.floor: "floor", math.ceil: "ceil", math.trunc: "trunc", int: "trunc", round: "round"}


@dataclass(frozen=True)
class Unset:
  """A variable that has no value for some elements."""

  why: str


class Unrolled(Exception):
  """A loop's steps have to be written out after all: something wants what its last step left."""


class Expressions:
  """One call of one function. `forced`: loops whose steps are written out, whatever they look like. `spent`: statements
  so far, and calls within calls."""

  def __init__(
    self, source: Source, axes: Axes, kind: DType, path: Path, forced: set[ast.AST], spent: list[int]
  ):
    self.source, self.axes, self.kind, self.forced, self.spent = source, axes, kind, forced, spent
    self.path: Path | None = path  # of the statement that runs now; None: no element gets there
    self.env: Env = {}
    self.at: ast.AST = source.tree

  def fail(self, why: str, error: type[Exception] = KernelError) -> NoReturn:
    self.source.fail(self.at, why, error)

  def call(self, env: Env) -> Any:
    """What the function returns for these arguments: scalar.py."""
    raise NotImplementedError

  # ---------------------------------------------------------------- values

  def tensor(self, x: Any) -> Tensor:
    """A value as a tensor."""
    if isinstance(x, Test):
      return x.value
    if isinstance(x, UOp):
      return self.axes.tensor(x, dtypes.default_int)
    if isinstance(x, (bool, int, float)):
      kind = dtypes.bool if isinstance(x, bool) else dtypes.default_int if isinstance(x, int) else self.kind
      return Tensor._new(graph.full((), x, kind))
    if isinstance(x, Tensor):
      return x
    self.fail(f"{x.why if isinstance(x, Unset) else f'{type(x).__name__} is no number'}")

  def operand(self, x: Any) -> Any:
    """A value as what Tensor's operators take."""
    return x if isinstance(x, (bool, int, float)) else self.tensor(x)

  def alike(self, a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands: with a float, whole numbers are of the kernel's float type, and not of the default one."""
    a, b = self.operand(a), self.operand(b)
    if isinstance(a, float) or isinstance(b, float):
      a, b = (x.cast(self.kind) if isinstance(x, Tensor) and x.dtype.kind != "f" else x for x in (a, b))
    return a, b

  def chosen(self, mask: Tensor, a: Any, b: Any) -> Any:
    """a for the elements of the mask, b for the others."""
    if a is b or (type(a) is type(b) and isinstance(a, (bool, int, float)) and repr(a) == repr(b)):
      return a
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
      return tuple(self.chosen(mask, x, y) for x, y in zip(a, b))
    for x in (a, b):
      if isinstance(x, (Unset, Unrolled)):
        return x
    a, b = self.alike(a, b)
    return mask.where(*(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else map(self.tensor, (a, b)))

  def within(self, env: Env, mask: Tensor | None, statements: Sequence[ast.stmt]) -> Env:
    """The variables, to which no gradient passes but from the elements of the mask."""
    used = loaded(statements)
    return {n: gated(v, mask) if n in used and isinstance(v, Tensor) and n not in self.source.arrays else v
            for n, v in env.items()}  # fmt: skip

  # ---------------------------------------------------------------- expressions

  def value(self, e: ast.expr) -> Any:
    before, self.at = self.at, e
    try:
      return getattr(self, f"of_{type(e).__name__}")(e)
    except (KernelError, Unrolled, IndexError):
      raise
    except (MiniError, ArithmeticError, TypeError, ValueError) as error:
      self.fail(f"{ast.unparse(e)}: {error}")
    finally:
      self.at = before

  def of_Constant(self, e: ast.Constant) -> Any:
    if not isinstance(e.value, (bool, int, float)):
      self.fail(f"{e.value!r}: a kernel knows numbers")
    return e.value

  def of_Tuple(self, e: ast.Tuple) -> tuple[Any, ...]:
    return tuple(map(self.value, e.elts))

  def of_Name(self, e: ast.Name) -> Any:
    if e.id in self.env:
      found = self.env[e.id]
      if isinstance(found, Unrolled):
        raise found
      if isinstance(found, Unset):
        self.fail(f"{e.id}: {found.why}")
      return found
    if e.id in stored(self.source.tree.body):
      self.fail(f"{e.id} is read before it has a value")
    try:
      found = self.source.free(e.id)
    except KeyError:
      self.fail(f"{e.id} is not defined")
    if isinstance(found, Tensor):
      self.fail(f"{e.id} is a tensor from outside: hand it in as an argument")
    return found

  def of_Attribute(self, e: ast.Attribute) -> Any:
    x = self.value(e.value)
    if isinstance(x, Tensor):
      if e.attr in ("shape", "ndim"):
        return getattr(x, e.attr)
      self.fail(f"{ast.unparse(e)}: of an array a kernel knows elements and .shape")
    found = getattr(x, e.attr, None)
    if found is None:
      self.fail(f"{ast.unparse(e)} is not defined")
    return found

  def of_Subscript(self, e: ast.Subscript) -> Any:
    x = self.value(e.value)
    index = self.value(e.slice)
    index = index if isinstance(index, tuple) else (index,)
    if isinstance(x, tuple):
      if len(index) != 1 or type(index[0]) is not int:
        self.fail(f"{ast.unparse(e)}: an element of a tuple has a number")
      return x[index[0]]
    if not isinstance(x, Tensor):
      self.fail(f"{ast.unparse(e)}: {ast.unparse(e.value)} is no array")
    if len(index) != x.ndim:
      self.fail(f"{ast.unparse(e)}: {len(index)} indices for {x.ndim} axes")
    assert self.path is not None
    try:
      return read(x, [self.position(i, n) for i, n in zip(index, x.shape)], self.axes, self.path)
    except OutOfBounds as o:
      axis, lo, hi = o.args
      one = e.slice.elts[axis] if isinstance(e.slice, ast.Tuple) else e.slice
      at = f"is {lo}" if lo == hi else f"goes from {lo} to {hi}"
      self.fail(f"{ast.unparse(e)}: {ast.unparse(one)} {at}, and axis {axis} has {x.shape[axis]}", IndexError)

  def position(self, i: Any, n: int) -> Any:
    """An index as `read` wants it; a negative number counts from the end."""
    if type(i) is int:
      return i + n if i < 0 else i
    if isinstance(i, UOp) or (isinstance(i, Tensor) and i.dtype.kind in "iu"):
      return i
    if isinstance(i, Test):
      return i.value.cast(dtypes.int32)
    if isinstance(i, Tensor):
      self.fail(f"an index is an integer, not {i.dtype.name}: int(...) cuts towards 0")
    self.fail(f"an index is an integer, not {i!r}")

  def of_UnaryOp(self, e: ast.UnaryOp) -> Any:
    x = self.value(e.operand)
    if isinstance(e.op, ast.Not):
      t = self.test(x)
      return not t if isinstance(t, bool) else Test(t.value.logical_not(), t.otherwise, t.facts)
    if isinstance(e.op, ast.USub):
      return self.binary(ast.Mult(), x, -1) if isinstance(x, UOp) else -self.operand(x)
    return self.operand(x) if isinstance(e.op, ast.UAdd) else ~self.operand(x)

  def of_BinOp(self, e: ast.BinOp) -> Any:
    return self.binary(e.op, self.value(e.left), self.value(e.right))

  def binary(self, op: ast.operator, a: Any, b: Any) -> Any:
    if isinstance(a, UOp) or isinstance(b, UOp):
      found = self.on_indices(op, a, b)
      if found is not None:
        return found
    a, b = self.alike(a, b)
    if isinstance(op, ast.Div) and (isinstance(a, Tensor) or isinstance(b, Tensor)):
      a = a.cast(self.kind) if isinstance(a, Tensor) and a.dtype.kind != "f" else a
      b = b.cast(self.kind) if isinstance(b, Tensor) and b.dtype.kind != "f" else b
    return BINARY[type(op)](a, b)

  def on_indices(self, op: ast.operator, a: Any, b: Any) -> UOp | None:
    """a op b as an index, where it is one."""
    if not all(isinstance(x, UOp) or type(x) is int for x in (a, b)):
      return None
    if isinstance(op, (ast.Add, ast.Sub)):
      a = a if isinstance(a, UOp) else add(mul(b, 0), a)
      return add(a, mul(b, -1) if isinstance(b, UOp) else -b) if isinstance(op, ast.Sub) else add(a, b)
    if isinstance(op, ast.Mult) and int in (type(a), type(b)):
      return mul(a, b) if isinstance(a, UOp) else mul(b, a)
    if isinstance(op, (ast.FloorDiv, ast.Mod)) and type(b) is int and b > 0:
      return div(a, b) if isinstance(op, ast.FloorDiv) else mod(a, b)
    return None

  # ---------------------------------------------------------------- conditions

  def test(self, x: Any) -> Test | bool:
    """A value as a condition: a bool, where it is the same for all."""
    if isinstance(x, (bool, int, float)):
      return bool(x)
    if isinstance(x, Test):
      return x
    t = self.tensor(x)
    return Test(t if t.dtype is dtypes.bool else t != 0)

  def of_Compare(self, e: ast.Compare) -> Any:
    values = [self.value(x) for x in (e.left, *e.comparators)]
    found: Test | bool = True
    for op, a, b in zip(e.ops, values, values[1:]):
      found = self.both(found, self.compared(op, a, b))
    return found

  def compared(self, op: ast.cmpop, a: Any, b: Any) -> Test | bool:
    if not (isinstance(a, UOp) or isinstance(b, UOp)) or not all(
      isinstance(x, UOp) or type(x) is int for x in (a, b)
    ):
      found = COMPARE[type(op)](self.operand(a), self.operand(b))
      return Test(found) if isinstance(found, Tensor) else found
    if isinstance(op, (ast.Gt, ast.GtE)):
      return self.compared(ast.Lt() if isinstance(op, ast.Gt) else ast.LtE(), b, a)
    ahead = self.on_indices(ast.Sub(), b, a)  # b - a
    assert ahead is not None
    lo, hi = bounds(ahead)
    behind = mul(ahead, -1)
    if isinstance(op, (ast.Lt, ast.LtE)):
      least = 1 if isinstance(op, ast.Lt) else 0
      if lo >= least or hi < least:
        return lo >= least
      return Test(self.at_least(ahead, least), (add(ahead, -least),), (add(behind, least - 1),))
    if lo == hi == 0 or lo > 0 or hi < 0:
      return (lo == hi == 0) == isinstance(op, ast.Eq)
    apart = (add(ahead, -1),) if lo == 0 else (add(behind, -1),) if hi == 0 else ()
    equal = Test(self.axes.tensor(ahead) == 0, (ahead, behind), apart)
    return equal if isinstance(op, ast.Eq) else Test(equal.value.logical_not(), apart, equal.facts)

  def at_least(self, e: UOp, least: int) -> Tensor:
    """e >= least, as one comparison with the index on the left, whose sign is plus where it can be."""
    if all(c < 0 for c in linear(e)[0].values()):
      return self.axes.tensor(mul(e, -1)) < 1 - least
    return (self.axes.tensor(e) < least).logical_not()

  def both(self, a: Test | bool, b: Test | bool) -> Test | bool:
    if isinstance(a, bool) or isinstance(b, bool):
      return False if a is False or b is False else b if a is True else a
    return Test(a.value & b.value, (*a.facts, *b.facts))

  def of_BoolOp(self, e: ast.BoolOp) -> Any:
    """The right side counts, and reads arrays, only where the left one does not decide."""
    is_and, path = isinstance(e.op, ast.And), self.path
    assert path is not None
    found: Test | bool = is_and
    for x in e.values:
      one = self.test(self.value(x))
      if isinstance(one, bool):
        if one is not is_and:
          found = (
            one if isinstance(found, bool) else Test(found.value & False if is_and else found.value | True)
          )
          break
        continue
      if isinstance(found, bool):
        found = one
      elif is_and:
        found = Test(found.value & one.value, (*found.facts, *one.facts))
      else:
        found = Test(found.value | one.value, (), (*found.otherwise, *one.otherwise))
      goes_on = one if is_and else Test(one.value.logical_not(), one.otherwise)
      self.path = self.path.where(goes_on)  # type: ignore[union-attr]
    self.path = path
    return found

  def of_IfExp(self, e: ast.IfExp) -> Any:
    test = self.test(self.value(e.test))
    if isinstance(test, bool):
      return self.value(e.body if test else e.orelse)
    path, env = self.path, self.env
    assert path is not None
    found = []
    for t, x in ((test, e.body), (Test(test.value.logical_not(), test.otherwise), e.orelse)):
      self.path = path.where(t)
      self.env = self.within(env, self.path.mask, [ast.Expr(x)])
      found.append(self.value(x))
    self.path, self.env = path, env
    return self.chosen(test.value, *found)

  # ---------------------------------------------------------------- calls

  def of_Call(self, e: ast.Call) -> Any:
    f = self.value(e.func)
    args = [self.value(a) for a in e.args]
    if f in (min, max):
      return self.extreme(f.__name__, args)
    if f is len and len(args) == 1 and isinstance(args[0], (Tensor, tuple)):
      return args[0].shape[0] if isinstance(args[0], Tensor) else len(args[0])
    if not callable(f):
      self.fail(f"{ast.unparse(e.func)} is no function")
    source = getattr(f, "source", None)
    if isinstance(source, Source) or isinstance(f, FunctionType):
      return self.inner(source if isinstance(source, Source) else Source(f), args)
    if all(isinstance(a, (bool, int, float)) for a in args) and (
      f in FUNCTIONS or f in WHOLE or f in (float, bool, pow)
    ):
      return f(*args)
    if f is pow and len(args) == 2:
      return self.binary(ast.Pow(), *args)
    if f is math.pow and len(args) == 2:
      return self.binary(ast.Pow(), *(self.real(a) for a in args))
    if len(args) != 1 or f not in (*FUNCTIONS, *WHOLE, float, bool):
      self.fail(f"{ast.unparse(e)}: a kernel knows no such function")
    return self.function(f, args[0])

  def function(self, f: Any, x: Any) -> Any:
    """A function of one number, which is no Python number."""
    if f in (int, math.floor, math.ceil, math.trunc, round) and isinstance(x, UOp):
      return x
    if f is bool:
      return self.test(x)
    t = self.tensor(x)
    if f is abs:
      return t.abs()
    if f is float:
      return self.real(t)
    if f in WHOLE:
      return (getattr(t, WHOLE[f])() if t.dtype.kind == "f" else t).cast(dtypes.default_int)
    return getattr(self.real(t), FUNCTIONS[f])()

  def real(self, x: Any) -> Any:
    t = self.tensor(x)
    return t if t.dtype.kind == "f" else t.cast(self.kind)

  def extreme(self, how: str, args: Sequence[Any]) -> Any:
    args = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    found, *others = map(self.operand, args)
    for x in others:
      if isinstance(found, Tensor) or isinstance(x, Tensor):
        found, x = self.alike(found, x)
        a, b = (found, x) if isinstance(found, Tensor) else (x, found)
        found = a.maximum(b) if how == "max" else a.minimum(b)
      else:
        found = max(found, x) if how == "max" else min(found, x)
    return found

  def inner(self, source: Source, args: Sequence[Any]) -> Any:
    """A call of another scalar function."""
    if len(args) != len(source.params):
      self.fail(f"{source.name} takes {len(source.params)} arguments, not {len(args)}")
    assert self.path is not None
    self.spent[0] += 1
    if self.spent[0] > STEPS or self.spent[1] > 50:
      self.fail(f"{source.name}: calls within calls come to no end")
    self.spent[1] += 1
    run = type(self)(source, self.axes, self.kind, self.path, self.forced, self.spent)
    try:
      return run.call(dict(zip(source.params, args)))
    finally:
      self.spent[1] -= 1
