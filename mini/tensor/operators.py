"""Operations of two tensors, or of a tensor and a number: how they are built, and Python's operators, a row each.
Elementwise (elementwise.py) has their names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from mini.config import config
from mini.ir.uop import UOp
from mini.tensor.algebra import (
  COMPARISONS,
  add,
  both,
  div,
  either,
  equals,
  floor_div,
  fmod,
  ge,
  gt,
  le,
  lt,
  mod,
  mul,
  ne,
  one_of,
  power,
  shift_left,
  shift_right,
  sub,
  trunc_div,
)
from mini.tensor.data import TOO_LARGE, Complex, Operand, complex_numbers, fits
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.host import Values
from mini.tensor.promotion import nodes, result_type
from mini.tensor.trace import local
from mini.types import DivisionError, DType, DTypeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

LEAST_TOO_LARGE = min(TOO_LARGE.values())
Build = Callable[[UOp, UOp], UOp]
Operator = Callable[[Any, Operand], "Tensor"]
DIVISIONS = frozenset((floor_div, mod, fmod, trunc_div))  # of integers


def operators(what: str, build: Build, way: str = "_binary") -> tuple[Operator, Operator]:
  """What Python calls for an operator: of the tensor on its left, and of the one on its right."""

  def left(self: Any, other: Operand) -> Tensor:
    return getattr(self, way)(what, build, other)

  def right(self: Any, other: Operand) -> Tensor:
    return getattr(self, way)(what, build, other, True)

  return left, right


def compared(build: Build, x: float, dtype: DType) -> float:
  """A number for comparisons in this type. One beyond a float type stands for another of which the same is true: no
  number of the type is equal to it, and none lies between the largest one and infinity."""
  if dtype.kind != "f" or fits(x, dtype):
    return x
  if build in (equals, ne):
    return math.nan
  far = math.inf if (build in (lt, ge)) is (x > 0) else float(dtypes.finfo(dtype).max)
  return far if x > 0 else -far


def is_zero(divisor: Any) -> bool:
  """Is it the number 0 or, with CHECK=1 and outside of jitted functions, a tensor that has a 0?"""
  if isinstance(divisor, Handle):
    return config.CHECK and local.current is None and bool(divisor.eq(0).any().item())  # type: ignore[attr-defined]
  return divisor == 0


class Operators(Values):
  """`a + b` and its like."""

  def _binary(
    self, what: str, build: Build, other: Operand, swap: bool = False, dtype: DType | None = None
  ) -> Tensor:
    """Promote, broadcast, build. NotImplemented, for Python to ask `other`, if that is no operand."""
    operand = self._coerced(other)
    if operand is NotImplemented:
      if isinstance(other, Sequence):  # which Python would ask for as many repetitions as the tensor says
        self._foreign(what, other)
      return operand
    if operand._complex if isinstance(operand, Handle) else isinstance(operand, Complex):
      return complex_numbers().binary(what, *((operand, self) if swap else (self, operand)))
    if type(operand) is int and build in COMPARISONS and self.dtype.kind in "iu" and self.dtype.itemsize < 8:
      limits = dtypes.iinfo(self.dtype)  # a number beyond the type is compared, too
      dtype = dtype if limits.min <= operand <= limits.max else dtypes.int64
    elif build in COMPARISONS and isinstance(operand, (int, float)) and abs(operand) >= LEAST_TOO_LARGE:
      operand = compared(build, operand, result_type(self, operand))
    a, b = nodes(what, (operand, self) if swap else (self, operand), dtype)
    if build in DIVISIONS and a.dtype.kind in "iu" and is_zero(self if swap else operand):
      fail(DivisionError, f"{what}: integers divided by 0", a=self, b=operand)
    return self._new(build(a, b))

  def _foreign(self, what: str, other: Any) -> NoReturn:
    fail(DTypeError, f"{what}: b is a {type(other).__name__}, neither a tensor nor a number", a=self)

  def _named(self, what: str, build: Build, other: Operand, dtype: DType | None = None) -> Tensor:
    out = self._binary(what, build, other, dtype=dtype)
    if out is NotImplemented:
      self._foreign(what, other)
    return out

  def _quotient(self, what: str, build: Build, other: Operand, swap: bool = False) -> Tensor:
    """As `_binary`, in a float type."""
    other = self._coerced(other)
    return other if other is NotImplemented else self._binary(what, build, other, swap, self._common(other))

  def _common(self, other: Operand) -> DType:
    """The float type in which a quotient is taken."""
    found = result_type(self, other)
    return found if found.kind == "f" else dtypes.default_float

  def _integers(self, what: str, *operands: Operand) -> None:
    for x in (self, *operands):
      if isinstance(x, float) or (isinstance(x, Handle) and x.dtype.kind == "f"):
        fail(
          DTypeError, f"{what}: bits of float numbers are not operated on; cast to an integer type", a=self
        )

  def _bits(self, what: str, build: Build, other: Operand, swap: bool = False) -> Tensor:
    self._integers(what, other)
    return self._binary(what, build, other, swap)

  # fmt: off
  __add__, __radd__           = operators("a + b", add)
  __sub__, __rsub__           = operators("a - b", sub)
  __mul__, __rmul__           = operators("a * b", mul)
  __truediv__, __rtruediv__   = operators("a / b", div, "_quotient")
  __floordiv__, __rfloordiv__ = operators("a // b", floor_div)
  __mod__, __rmod__           = operators("a % b", mod)
  __rpow__                    = operators("a ** b", power)[1]
  __and__, __rand__           = operators("a & b", both, "_bits")
  __or__, __ror__             = operators("a | b", either, "_bits")
  __xor__, __rxor__           = operators("a ^ b", one_of, "_bits")
  __lshift__, __rlshift__     = operators("a << b", shift_left, "_bits")
  __rshift__, __rrshift__     = operators("a >> b", shift_right, "_bits")
  __lt__ = operators("a < b", lt)[0]
  __gt__ = operators("a > b", gt)[0]
  __le__ = operators("a <= b", le)[0]
  __ge__ = operators("a >= b", ge)[0]
  __eq__: ClassVar[Operator] = operators("a == b", equals)[0]  # type: ignore[assignment]
  __ne__: ClassVar[Operator] = operators("a != b", ne)[0]  # type: ignore[assignment]
  # fmt: on

  __hash__ = Handle.__hash__
