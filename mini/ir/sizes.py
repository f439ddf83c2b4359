"""Sizes that are known only when a graph is run, and shapes that have them.

A Variable stands in a shape where an int would. Memory has room for its largest value; what lies beyond the value of
a run is never seen: what would mix it with the rest (a sum, an index, a pad) is masked (engine/dynamic_shapes.py). So
views, gradients and types know nothing of it, and one kernel serves all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, NoReturn

from mini.ir.uop import UOp, const, uop
from mini.types import DType, DTypeError, ShapeError, dtypes


class Size(int):
  """The value of a size: a program takes it as an argument. As a node it is another one than the constant."""

  def __repr__(self) -> str:
    return f"Size({int(self)})"


@dataclass(frozen=True)
class Variable:
  """An integer from least to most that one compiled program takes as an argument: a size, or an index.

  `bind` gives it the value for a run. What is bound stands in slices (`x[:n]`), in sizes, in `x.at(n)` and among the
  arguments of a jitted function, and goes with ints in sums and products. Two sizes are the same if the variable and
  the value are.

  >>> from mini import Tensor, jit
  >>> n = Variable("n", 1, 4)
  >>> @jit
  ... def last_and_sum(x, n):
  ...   return x.at(n - 1), x[:n].sum()
  >>> [[t.item() for t in last_and_sum(Tensor([1, 2, 3, 4]), n.bind(k))] for k in (2, 4)]
  [[2, 3], [4, 10]]
  """

  used: ClassVar[bool] = False  # has one ever been made? Otherwise nobody needs to look for them

  name: str
  first: int
  last: int
  value: Any = None  # a 0-d int32 node; a tensor among the arguments of a jitted function; None: not bound
  times: int = 1
  plus: int = 0

  def __post_init__(self) -> None:
    Variable.used = True
    if not 0 <= self.first <= self.last < 2**31:
      raise ShapeError(
        f"Variable({self.name!r}, {self.first}, {self.last}): its range is empty, or not of int32 from 0 on"
      )

  def bind(self, value: int) -> Variable:
    """The variable with its value for a run. ValueError where that is not within its range.

    >>> Variable("n", 1, 10).bind(3)
    n=3
    """
    if not hasattr(value, "__index__") or isinstance(value, (bool, Variable)):
      raise DTypeError(f"{self.name}.bind: a value is an integer, not {value!r}")
    if self.value is not None or self.times != 1 or self.plus:
      raise ShapeError(f"{self!r}.bind({value}): it is bound already")
    if not self.first <= value.__index__() <= self.last:
      raise ShapeError(
        f"{self.name}.bind({value}): {self.name} is a Variable from {self.first} to {self.last}"
      )
    return replace(self, value=uop("const", dtypes.int32, (), Size(value)))

  @property
  def least(self) -> int:
    return min(self.first * self.times, self.last * self.times) + self.plus

  @property
  def most(self) -> int:
    return max(self.first * self.times, self.last * self.times) + self.plus

  @property
  def node(self) -> UOp:
    """Its value, a 0-d int32 node."""
    if self.value is None:
      raise ShapeError(f"{self!r} has no value: {self.name}.bind({self.first}) would give it one")
    u = self.value
    for op, k in (("mul", self.times), ("add", self.plus)):
      u = u if k == (op == "mul") else uop(op, dtypes.int32, (u, const(k, dtypes.int32)))
    return u

  def known(self) -> int:
    """Its value, for who has the memory."""
    u = self.value if self.value is not None else self.node
    return int(u.arg if u.op == "const" else u.arg[0].numpy()[0]) * self.times + self.plus

  def __repr__(self) -> str:
    shown = self.name if self.times == 1 else f"{self.times}*{self.name}"
    shown += f"{self.plus:+}" if self.plus else ""
    return f"{shown}={self.known()}" if getattr(self.value, "op", "") == "const" else shown

  # ---------------------------------------------------------------- what can be reckoned with it

  def __mul__(self, k: Any) -> Any:
    if type(k) is not int:
      return self._other(k)
    return replace(self, times=self.times * k, plus=self.plus * k) if k else 0

  def __add__(self, other: Any) -> Any:
    if type(other) is int:
      return replace(self, plus=self.plus + other)
    if type(other) is not Variable or replace(self, times=1, plus=0) != replace(other, times=1, plus=0):
      return self._other(other)
    times, plus = self.times + other.times, self.plus + other.plus
    return replace(self, times=times, plus=plus) if times else plus

  def __sub__(self, other: Any) -> Any:
    return self + other * -1 if isinstance(other, (int, Variable)) else self._other(other)

  def __rsub__(self, other: Any) -> Any:
    return self * -1 + other

  def __neg__(self) -> Any:
    return self * -1

  def __floordiv__(self, k: Any) -> Any:
    if type(k) is not int or not k or self.times % k or self.plus % k:
      return self._other(k)
    return replace(self, times=self.times // k, plus=self.plus // k)

  def __lt__(self, other: Any) -> bool:
    gap = self - other
    if gap is NotImplemented:
      return gap
    low, high = (gap.least, gap.most) if type(gap) is Variable else (gap, gap)
    return high < 0 or (low < 0 and self.refuse())

  def __ge__(self, other: Any) -> bool:
    return not self < other if type(other) in (int, Variable) else self._other(other)

  def __gt__(self, other: Any) -> bool:
    return self >= other + 1 if type(other) in (int, Variable) else self._other(other)

  def __le__(self, other: Any) -> bool:
    return self < other + 1 if type(other) in (int, Variable) else self._other(other)

  __radd__, __rmul__ = __add__, __mul__

  def _other(self, x: Any) -> Any:
    """An operand of another kind: a tensor knows what to do."""
    return NotImplemented if hasattr(x, "_uop") else self.refuse()

  def refuse(self, *_: Any) -> NoReturn:
    """Wherever something asks a Variable for what only a number has, or cannot be told of all of its values."""
    from mini.tensor.errors import refused  # who made what is known there

    refused(
      f"{self!r}, from {self.least} to {self.most}, is known only when it runs, and this does not go with all of these"
    )

  __index__ = __int__ = __float__ = __bool__ = refuse
  __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = refuse


# ---------------------------------------------------------------- shapes with variables in them


def varies(s: Sequence[Any]) -> bool:
  """Is one of these sizes a Variable?"""
  return Variable.used and any(type(n) is Variable for n in s)


def most(n: Any) -> int:
  """How much room a size takes."""
  return n.most if type(n) is Variable else n


def bound(n: Any) -> Any:
  """A size that has its value: ShapeError of a Variable that has none."""
  return n.node and n if type(n) is Variable else n


def known(n: Any) -> int:
  """A size, for who has the memory of those that vary."""
  return n.known() if type(n) is Variable else n


def number(sizes: Sequence[Any], dtype: DType) -> UOp:
  """The product of sizes as a 0-d node."""
  u = const(prod(n for n in sizes if type(n) is not Variable), dtype)
  for n in sizes:
    if type(n) is Variable:
      v = uop("cast", dtype, (n.node,)) if dtype is not dtypes.int32 else n.node
      u = uop("mul", dtype, (u, v)) if u.arg != 1 else v
  return u


def segments(s: Sequence[Any]) -> list[Any]:
  """A shape up to what reshapes change: what the sizes before the first variable make together, and each variable with
  those up to the next: so many elements, from the first on, are there."""
  out: list[Any] = [1]
  for n in s:
    if type(n) is Variable:
      out.append(n)
    else:
      out[-1] *= n
  return out


def filled(old: Sequence[Any], sizes: Sequence[Any]) -> tuple[Any, ...] | None:
  """The sizes, with what is left for -1, of a shape that the elements of shape `old` fill; None if they do not."""
  if not varies(old) and not varies(sizes):
    total = prod(old)
    if -1 in sizes:
      rest = prod(n for n in sizes if n != -1)
      if tuple(sizes).count(-1) == 1 and rest and total % rest == 0:
        sizes = [total // rest if n == -1 else n for n in sizes]
    return tuple(sizes) if prod(sizes) == total and min(sizes, default=0) >= 0 else None
  given = prod(n for n in sizes if type(n) is int and n != -1) or 1
  variables = [n for n in old if type(n) is Variable and n not in sizes]
  whole = prod(n for n in old if type(n) is int)
  guesses = [
    whole // given,
    *(v * whole // given for v in variables if not (v.times * whole % given or v.plus * whole % given)),
  ]
  for guess in guesses:
    found = tuple(guess if type(n) is int and n == -1 else n for n in sizes)
    if segments(found) == segments(old):
      return found
  return None
