"""Element by element: arithmetic, comparisons, logic, choosing.

Operands promote as in PyTorch (`result_type`): Python numbers adapt to tensors, of whose type they have to be. Shapes
broadcast as in NumPy. Integers wrap. Integer `//` and `%` round towards minus infinity, as in Python; by 0 they give 0.
Every comparison with NaN is false, but for `!=`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mini.gradient_rules import with_gradient
from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.tensor.algebra import (
  add,
  both,
  div,
  either,
  equals,
  floor_div,
  fmod,
  ge,
  gt,
  integer_power,
  inverted,
  largest,
  le,
  least,
  lt,
  mod,
  mul,
  ne,
  negated,
  on_truth,
  one_of,
  power,
  shift_left,
  shift_right,
  sub,
  trunc_div,
)
from mini.tensor.data import Number, Operand, complex_numbers, is_complex
from mini.tensor.errors import fail
from mini.tensor.handle import Handle, needs
from mini.tensor.operators import Operators
from mini.tensor.promotion import broadcast, nodes, result_type, wide
from mini.types import ArgumentError, DType, DTypeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


def sloped(value: Tensor, slopes: Callable[..., Any], *inputs: Handle) -> Tensor:
  """value, which is computed element by element, with the derivatives that `slopes(*inputs, value)` gives: one for each
  input. For a formula whose operations, differentiated one by one, cancel or overflow where the function does not.

  value, inputs: T[s]   ->   T[s]
  """
  if not any(needs(x._node) for x in inputs):
    return value

  def rule(g: UOp, out: UOp, *src: UOp) -> tuple[UOp | None, ...]:
    found = slopes(*map(Handle._new, (*src, out)))
    found = found if isinstance(found, tuple) else (found,)
    return tuple(
      graph.cast((d * Handle._new(g))._node, x.dtype) if x.dtype.kind == "f" else None
      for d, x in zip(found, src)
    )

  return Handle._new(with_gradient(value._node, rule, *(x._node for x in inputs)))


class Elementwise(Operators):
  """Operations that give an element for an element."""

  def _float(self, what: str = "") -> UOp:
    """The node, as a float if it is none."""
    return graph.cast(self._node, self.dtype if self.dtype.kind == "f" else dtypes.default_float)

  def _real(self) -> tuple[Tensor, DType]:
    """As float32 or float64, and the float type of the result."""
    x = self._float()
    return self._new(graph.cast(x, wide(x.dtype))), x.dtype

  def _math(self, op: str) -> Tensor:
    return self._alu(op, self._float())

  # ---------------------------------------------------------------- arithmetic

  def add(self, other: Operand, alpha: Operand = 1) -> Tensor:
    """a + b; with alpha, a + alpha * b.

    >>> Tensor([1, 2]) + 0.5
    Tensor([1.5, 2.5])
    """
    return self._named("a + b", add, other if isinstance(alpha, int) and alpha == 1 else alpha * other)

  def sub(self, other: Operand, alpha: Operand = 1) -> Tensor:
    """a - b; with alpha, a - alpha * b."""
    return self._named("a - b", sub, other if isinstance(alpha, int) and alpha == 1 else alpha * other)

  def mul(self, other: Operand) -> Tensor:
    """a * b. Of booleans: and."""
    return self._named("a * b", mul, other)

  def div(self, other: Operand, rounding_mode: str | None = None) -> Tensor:
    """a / b: of integers a float. rounding_mode: None, "floor" (as //) or "trunc" (towards zero).

    >>> Tensor([7, -7]).div(2, rounding_mode="trunc")
    Tensor([ 3, -3])
    """
    if rounding_mode == "floor":
      return self.floor_divide(other)
    if rounding_mode == "trunc":
      kind = result_type(self, other)
      return (
        self._named("div", trunc_div, other) if kind.kind != "f" else self._named("a / b", div, other).trunc()
      )
    if rounding_mode is not None:
      fail(ArgumentError, f'div: rounding_mode is None, "floor" or "trunc", not {rounding_mode!r}')
    return self._named(
      "a / b",
      div,
      other,
      dtype=self._common(self._coerced(other)) if isinstance(other, (Handle, *Number)) else None,
    )

  def floor_divide(self, other: Operand) -> Tensor:
    """a // b, rounded towards minus infinity. ZeroDivisionError of integers by the number 0;
    by a tensor's 0 they are 0, or the same error with CHECK=1, outside of jitted functions.

    >>> Tensor([7, -7]) // 2
    Tensor([ 3, -4])
    """
    return self._named("a // b", floor_div, other)

  def remainder(self, other: Operand) -> Tensor:
    """a % b, with the sign of b, as in Python. ZeroDivisionError of integers by the number 0;
    by a tensor's 0 it is 0, or the same error with CHECK=1, outside of jitted functions.

    >>> Tensor([7, -7]) % 3
    Tensor([1, 2])
    """
    return self._named("a % b", mod, other)

  def fmod(self, other: Operand) -> Tensor:
    """The remainder with the sign of a, as in C."""
    out = self._named("fmod", fmod, other)
    if not needs(out._node):
      return out
    a, b = (self._new(u) for u in broadcast("fmod", nodes("fmod", (self, other)), (self, other)))
    return sloped(out, lambda a, b, y: (1, -((b == 0) | a.isinf()).where(a / b, (a - y) / b).round()), a, b)

  def pow(self, exponent: Operand) -> Tensor:
    """a ** b. Integers to integers stay integers (and wrap).

    >>> Tensor([1, 2, 3]) ** 2
    Tensor([1, 4, 9])
    """
    if isinstance(exponent, (int, float)) and not isinstance(exponent, bool):
      kind = result_type(self, exponent)
      simple = integer_power(graph.cast(self._node, kind), exponent)
      if simple is not None:
        return self._new(simple) if exponent else self._flat(simple)
      if kind.kind != "f" and exponent < 0:
        fail(
          ArgumentError,
          "a ** b: integers to negative integer powers are not integers; cast a to a float type",
          a=self,
        )
    return self._named("a ** b", power, exponent)

  def neg(self) -> Tensor:
    """-a. DTypeError on booleans."""
    if self.dtype is dtypes.bool:
      fail(DTypeError, "-a: booleans have no negative; ~a inverts them", a=self)
    return self._new(negated(self._node))

  def abs(self) -> Tensor:
    """The magnitude; of the least integer that integer itself."""
    return self._new(self._node) if self.dtype.kind in "bu" else self._alu("abs", self._node)

  def sign(self) -> Tensor:
    """-1, 0 or 1; 0 where it is NaN, as in PyTorch."""
    x, zero = self._node, const(0, self.dtype)
    below = graph.alu("where", graph.alu("lt", x, zero), const(-1, x.dtype), zero)
    return self._flat(graph.alu("where", graph.alu("lt", zero, x), const(1, x.dtype), below))

  def reciprocal(self) -> Tensor:
    """1 / a."""
    x = self._float()
    return self._alu("div", const(1, x.dtype), x)

  def lerp(self, end: Operand, weight: Operand) -> Tensor:
    """a + weight * (end - a), reckoned from the nearer one, as in PyTorch: with weight 1 it is `end`, to the bit.

    >>> Tensor([1e8]).lerp(Tensor([1.0]), 1.0)
    Tensor([1.])
    """
    far = end - self
    near, rest = self + weight * far, end - (1 - weight) * far
    if isinstance(weight, Handle):
      return (weight.abs() < 0.5).where(near, rest)  # type: ignore[attr-defined]
    return near if abs(weight) < 0.5 else rest

  def __pow__(self, other: Operand) -> Tensor:
    return self.pow(other) if self._coerced(other) is not NotImplemented else NotImplemented

  def __neg__(self) -> Tensor:
    return self.neg()

  def __pos__(self) -> Tensor:
    return self._view(("same", None))

  def __abs__(self) -> Tensor:
    return self.abs()

  # ---------------------------------------------------------------- comparisons

  def lt(self, other: Operand) -> Tensor:
    """a < b, as booleans.

    >>> Tensor([1.0, 2.0, float("nan")]) < 2
    Tensor([ True, False, False])
    """
    return self._named("a < b", lt, other)

  def gt(self, other: Operand) -> Tensor:
    """a > b, as booleans."""
    return self._named("a > b", gt, other)

  def le(self, other: Operand) -> Tensor:
    """a <= b, as booleans."""
    return self._named("a <= b", le, other)

  def ge(self, other: Operand) -> Tensor:
    """a >= b, as booleans."""
    return self._named("a >= b", ge, other)

  def eq(self, other: Operand) -> Tensor:
    """a == b, as booleans."""
    return self._named("a == b", equals, other)

  def ne(self, other: Operand) -> Tensor:
    """a != b, as booleans; true where either is NaN."""
    return self._named("a != b", ne, other)

  def isnan(self) -> Tensor:
    """Where it is not a number."""
    return (
      self._new(graph.alu("ne", self._node, self._node)) if self.dtype.kind == "f" else self._filled(False)
    )

  def isinf(self) -> Tensor:
    """Where it is plus or minus infinity."""
    return self.abs() == math.inf if self.dtype.kind == "f" else self._filled(False)

  def isfinite(self) -> Tensor:
    """Where it is neither infinite nor NaN."""
    return self.abs() < math.inf if self.dtype.kind == "f" else self._filled(True)

  def _filled(self, value: Any, dtype: DType = dtypes.bool) -> Tensor:
    return self._new(graph.full(self.shape, value, dtype))

  def isclose(
    self, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
  ) -> Tensor:
    """Where |a - b| <= atol + rtol * |b|, or both are equal."""
    if rtol < 0 or atol < 0:
      fail(ArgumentError, f"isclose: rtol {rtol} and atol {atol} are not negative", a=self)
    other = other if isinstance(other, Elementwise) else Handle._final(other, device=self.device)
    if self.dtype is other.dtype is dtypes.bool:
      return self == other
    close = (self == other) | (((self - other).abs() <= atol + rtol * other.abs()) & other.isfinite())
    return close | (self.isnan() & other.isnan()) if equal_nan else close

  def allclose(self, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Is |a - b| <= atol + rtol * |b| everywhere? A Python boolean.

    >>> Tensor([1.0]).allclose(Tensor([1.0 + 1e-7]))
    True
    """
    return bool(self.isclose(other, rtol, atol, equal_nan).numpy().all())

  def equal(self, other: Tensor) -> bool:
    """Are shapes and values equal? A Python boolean."""
    return self.shape == other.shape and bool((self == other).numpy().all())

  # ---------------------------------------------------------------- logic and bits

  def logical_not(self) -> Tensor:
    """Where it is zero."""
    return self._new(equals(self._node, const(0, self.dtype)))

  def logical_and(self, other: Operand) -> Tensor:
    """Where both are not zero."""
    return self._named("logical_and", on_truth("and"), other)

  def logical_or(self, other: Operand) -> Tensor:
    """Where either is not zero."""
    return self._named("logical_or", on_truth("or"), other)

  def logical_xor(self, other: Operand) -> Tensor:
    """Where exactly one is not zero."""
    return self._named("logical_xor", on_truth("xor"), other)

  def bitwise_not(self) -> Tensor:
    """~a: of booleans not, of integers every bit. DTypeError on floats."""
    self._integers("~a")
    return self._new(inverted(self._node))

  def bitwise_and(self, other: Operand) -> Tensor:
    """a & b. DTypeError on floats.

    >>> Tensor([6, 5]) & 3
    Tensor([2, 1])
    """
    return self._bits("a & b", both, other)

  def bitwise_or(self, other: Operand) -> Tensor:
    """a | b. DTypeError on floats."""
    return self._bits("a | b", either, other)

  def bitwise_xor(self, other: Operand) -> Tensor:
    """a ^ b. DTypeError on floats."""
    return self._bits("a ^ b", one_of, other)

  def lshift(self, n: int | Tensor) -> Tensor:
    """a << n: times 2**n."""
    return self._bits("a << b", shift_left, n)

  def rshift(self, n: int | Tensor) -> Tensor:
    """a >> n: divided by 2**n, rounded towards minus infinity."""
    return self._bits("a >> b", shift_right, n)

  def __invert__(self) -> Tensor:
    return self.bitwise_not()

  # ---------------------------------------------------------------- choosing

  def maximum(self, other: Operand) -> Tensor:
    """The larger one; NaN where either is NaN."""
    return self._named("maximum", largest, other)

  def minimum(self, other: Operand) -> Tensor:
    """The smaller one; NaN where either is NaN."""
    return self._named("minimum", least, other)

  def clamp(self, min: Operand = None, max: Operand = None) -> Tensor:
    """At least `min` and at most `max`; where min > max it is max. What is at a bound has the slope 1, as in PyTorch.

    >>> Tensor([-2, 0, 2]).clamp(-1, 1)
    Tensor([-1,  0,  1])
    """
    if min is None and max is None:
      fail(ArgumentError, "clamp: give min, max or both", x=self)
    low: Any = self if min is None else self.maximum(min)
    out: Any = low if max is None else low.minimum(max)
    return out if self.dtype.kind != "f" else (self == out).where(self, out)  # equals share a maximum's slope

  def clip(self, min: Operand = None, max: Operand = None) -> Tensor:
    """NumPy's name of `clamp`."""
    return self.clamp(min, max)

  def where(self, a: Operand | None = None, b: Operand | None = None) -> Any:
    """a where self is true, b where it is false. DTypeError if self is not boolean.
    Of a condition alone `nonzero(as_tuple=True)`, as in PyTorch.

    >>> Tensor([True, False]).where(1, Tensor([5, 6]))
    Tensor([1, 6])
    >>> Tensor([True, False, True]).where()
    (Tensor([0, 2]),)
    """
    if a is None and b is None:
      return self.nonzero(as_tuple=True)  # type: ignore[attr-defined]  # of a later family
    if a is None or b is None:
      fail(DTypeError, f"where: {'a' if a is None else 'b'} is missing", condition=self)
    if self.dtype is not dtypes.bool:
      fail(DTypeError, f"where: the condition is {self.dtype.name}, not bool", condition=self)
    a, b = self._coerced(a), self._coerced(b)
    if is_complex(a) or is_complex(b):
      return complex_numbers().where(self, a, b)
    found = broadcast("where", [self._node, *nodes("where", (a, b))], (self, a, b))
    return self._alu("where", *found)

  def masked_fill(self, mask: Tensor, value: Operand) -> Tensor:
    """value where mask is true, self elsewhere, in self's type.

    >>> Tensor([1, 2, 3]).masked_fill(Tensor([True, False, True]), 0)
    Tensor([0, 2, 0])
    """
    if mask.dtype is not dtypes.bool:
      fail(DTypeError, f"masked_fill: the mask is {mask.dtype.name}, not bool", x=self, mask=mask)
    picked, kept = nodes("masked_fill", (value, self), self.dtype)
    return self._alu("where", *broadcast("masked_fill", [mask._node, picked, kept], (mask, value, self)))

  def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and the infinities replaced: by 0, the largest and the least number, if not told otherwise."""
    if self.dtype.kind != "f":
      return self._new(self._node)
    top = float(dtypes.finfo(self.dtype).max)
    out = (self == math.inf).where(top if posinf is None else posinf, self)
    out = (self == -math.inf).where(-top if neginf is None else neginf, out)
    return self.isnan().where(nan, out)  # type: ignore[arg-type]
