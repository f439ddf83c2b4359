"""Tensors of unknown shape: a parameter gets its shape from the einsums that it stands in.

An einsum of an Unknown is not computed at once, but gives an Unknown, too; so do `+ - * / ** @` and functions of each
element (EACH), which are einsums as far as sizes go. What else is asked of one - a shape, a value, a method - is asked
of its tensor, and then all sizes must follow from what all connected uses say together (shapes.py), whatever their
order: from operands to results, and back.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple, NoReturn

from mini.shapes import Clash, Fact, Sizes, Undetermined, Use
from mini.tensor import Tensor
from mini.tensor.einsum import accumulated, einsum, say
from mini.tensor.errors import described, user_line
from mini.tensor.formula import Row, expanded, labels_of, parsed
from mini.types import DTypeError, ShapeError

EACH = """
abs cos elu erf exp gelu leaky_relu log neg relu rsqrt selu sigmoid silu sin softplus sqrt square tanh
"""
SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**"}
_serials = count(1)


class Spot(NamedTuple):
  """The name of the size of an Unknown's axis."""

  serial: int
  axis: int


class Unknown:
  """A tensor whose shape follows from its use in einsums.

  sizes: those that are known, None for an axis that is not; without any, the number of axes is unknown, too: the first
  einsum tells it, and behind a @ it is a matrix. init: what makes the tensor of its sizes, once they are known;
  Tensor.randn unless told. In an einsum with an Unknown, axes of size 1 do not repeat.

  `tensor` is what it has become, and whatever else is asked of it is asked of that. ShapeError if einsums say different
  things of a size, with the lines of two of them, and if they do not say enough.

  >>> from mini import Tensor, einsum
  >>> weight, bias = Unknown(None, 4), Unknown(init=Tensor.zeros)
  >>> hidden = einsum("bi,io->bo", Tensor.ones(2, 3), weight)
  >>> einsum("bo,o->bo", hidden, bias, op="add").shape
  (2, 4)
  >>> weight.shape, bias.tensor.requires_grad
  ((3, 4), True)
  >>> first, second = Unknown(), Unknown()
  >>> score = (Tensor.ones(2, 3) @ first).relu() @ second - Tensor.ones(2, 1)
  >>> (einsum("bo,bo->", score, Tensor.ones(2, 1)) + einsum("io->", first, o=8)).shape, second.shape
  ((), (8, 1))
  """

  def __init__(
    self, *sizes: int | None, init: Callable[..., Tensor] | None = None, requires_grad: bool = True
  ):
    self._begin(list(sizes) if sizes else None)
    make = Tensor.randn if init is None else init
    self._init: Any = lambda *s: make(*s).detach().requires_grad_(requires_grad)

  def _begin(self, sizes: list[int | None] | None) -> None:
    self._serial, self._sizes, self._where = next(_serials), sizes, user_line()
    self._because: list[Use] = []  # what determined each size
    self._uses: list[PutOff] = []
    self._tensor: Tensor | None = None

  @property
  def tensor(self) -> Tensor:
    """The tensor, as soon as its shape is known."""
    if self._tensor is None:
      determine(self)
    assert self._tensor is not None
    return self._tensor

  def __getattr__(self, name: str) -> Any:
    if name.startswith("_"):
      raise AttributeError(name)
    if name in EACH.split() and self._tensor is None and self._sizes is not None:
      return lambda *args, **how: put_off(f"x.{name}", lambda t: getattr(t, name)(*args, **how), self)
    return getattr(self.tensor, name)

  def __repr__(self) -> str:
    if self._tensor is not None:
      return f"Unknown: {self._tensor!r}"
    return f"Unknown({', '.join('?' if n is None else str(n) for n in self._sizes or ())})"

  def _spots(self) -> list[Spot]:
    """The names of its sizes."""
    return [Spot(self._serial, a) for a in range(len(self._sizes or ()))]

  @staticmethod
  def _einsum(formula: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """An einsum with an Unknown among its operands."""
    return PutOff(formula, operands, options).result

  @staticmethod
  def _accumulated(target: Tensor, formula: str, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """That is not put off: the value of the target is asked for."""
    call = PutOff(formula, operands, options, target)
    return call.compute(determine(call.unknown()[0]))

  @property
  def _made(self) -> str:
    return "{}:{}".format(*self._where)


def put_off(what: str, f: Callable[..., Tensor], *operands: Any) -> Any:
  """f of each element, of tensors and Unknowns with as many axes as is known. An axis of size 1 of a tensor repeats."""
  ndim, alone = max(map(_ndim, operands)), max(map(_ndim, operands)) - min(map(_ndim, operands))

  def term(x: Any) -> str:
    first = ndim - _ndim(x)
    repeats = [not isinstance(x, Unknown) and x.shape[a] == 1 and first + a >= alone for a in range(_ndim(x))]
    return " ".join("0" if r else f"x{first + a}" for a, r in enumerate(repeats))

  formula = f"{', '.join(map(term, operands))} => {' '.join(f'x{a}' for a in range(ndim))}"
  return PutOff(formula, operands, {}, done=(what, f)).result


def _ndim(x: Any) -> int:
  """How many axes; 0 where nobody has said."""
  return len(x._sizes or ()) if isinstance(x, Unknown) else x.ndim


def _waits(x: Any) -> bool:
  """Is its shape not known, but how many axes it has?"""
  return isinstance(x, Unknown) and x._tensor is None and x._sizes is not None


def _known(x: Any) -> Any:
  return x.tensor if isinstance(x, Unknown) else x


def _operator(name: str, turned: bool) -> Callable[..., Any]:
  apply = getattr(operator, name)

  def method(self: Any, other: Any) -> Any:
    operands = (other, self) if turned else (self, other)
    if not (_waits(self) or _waits(other)) or name not in SIGNS:
      return apply(*map(_known, operands))
    if all(isinstance(x, Tensor) or (isinstance(x, Unknown) and x._sizes is not None) for x in operands):
      return put_off(f"a {SIGNS[name]} b", apply, *operands)
    if isinstance(other, (bool, int, float)):
      f = (lambda t: apply(other, t)) if turned else (lambda t: apply(t, other))
      return put_off(f"a {SIGNS[name]} b", f, self)
    return apply(*map(_known, operands))

  return method


def _product(turned: bool) -> Callable[..., Any]:
  """a @ b, where b is a matrix, or nobody has said what it is."""

  def method(self: Any, other: Any) -> Any:
    a, b = (other, self) if turned else (self, other)
    new = isinstance(b, Unknown) and b._sizes is None
    waits = _waits(a) or _waits(b) or (new and isinstance(a, Tensor))
    if waits and isinstance(a, (Tensor, Unknown)) and (new or _ndim(b) == 2) and _ndim(a):
      rows = " ".join(f"x{n}" for n in range(_ndim(a) - 1))
      return PutOff(f"{rows} i, i o => {rows} o", (a, b), {}, done=("a @ b", operator.matmul)).result
    return _known(a) @ _known(b)

  return method


for _name in SIGNS:
  setattr(Unknown, f"__{_name}__", _operator(_name, False))
  setattr(Unknown, f"__r{_name}__", _operator(_name, True))
for _name, _method in {
  "matmul": _product(False),
  "rmatmul": _product(True),
  "neg": lambda self: self.neg(),
  "getitem": lambda self, index: self.tensor[_known(index)],
}.items():
  setattr(Unknown, f"__{_name}__", _method)


# ---------------------------------------------------------------- einsums that wait


class PutOff:
  """An einsum of which not all shapes are known: its operands, its result, and what it says of their sizes."""

  def __init__(
    self,
    formula: Any,
    operands: Sequence[Any],
    options: dict[str, Any],
    target: Tensor | None = None,
    done: tuple[str, Callable[..., Tensor]] | None = None,
  ):
    """done: what computes it instead, and how that is called."""
    self.what: str = done[0] if done else f'einsum("{formula}")'
    self.done = done[1] if done else None
    for x in operands:
      if not isinstance(x, (Tensor, Unknown)):
        raise DTypeError(f"einsum({formula!r}): operands are tensors, not {x!r}")
    self.text, self.operands, self.options = formula, operands, options
    self.told = {n: size for n, size in options.items() if n not in ("op", "reduce")}
    self.serial, self.where = next(_serials), user_line()
    self.formula = parsed(formula)
    for x, term in zip(operands, self.formula.inputs):
      if isinstance(x, Unknown) and x._sizes is None:
        if any(isinstance(axis, Row) for axis in term):
          self.wrong(
            "the number of axes of an Unknown that has a row is not determined; Unknown(None, None) tells it"
          )
        x._sizes = [None] * len(term)
    ndims = [len(x._sizes or ()) if isinstance(x, Unknown) else x.ndim for x in operands]
    try:
      self.inputs, self.output = expanded(self.formula, ndims, None if target is None else target.ndim)
    except ShapeError as e:
      self.wrong(str(e))
    self.result: Any = target
    if target is None:
      self.result = Unknown.__new__(Unknown)
      self.result._begin([None] * len(self.output))
      self.result._init = None
      self.result._uses.append(self)
    for x in self.unknown():
      x._uses.append(self)

  def unknown(self) -> list[Unknown]:
    return [x for x in self.operands if isinstance(x, Unknown)]

  def wrong(self, message: str) -> NoReturn:
    lines = [f"{self.what}: {message}"]
    for name, x in zip("abcdefgh", self.operands):
      shown = f"  {name}: {x!r}   made at {x._made}" if isinstance(x, Unknown) else described(name, x)
      lines.append(shown)
    raise ShapeError("\n".join(lines))

  def use(self, what: str) -> Use:
    file, line = self.where
    return Use(file, line, f"{what} in {self.what}")

  def say(self, found: Sizes) -> None:
    """All that it says of sizes."""
    operands = [
      (term, x, f'"{text}"') for term, x, text in zip(self.inputs, self.operands, self.formula.texts)
    ]
    for n, (term, x, text) in enumerate([*operands, (self.output, self.result, "the result")]):
      sizes = x._spots() if isinstance(x, Unknown) else x.shape
      say(
        found, term, sizes, self.use(text), n, self.serial, tight=isinstance(x, Unknown) and x is self.result
      )
    for term in (*self.inputs, self.output):
      for label in labels_of(term):
        found.exact((self.serial, label))
    for name, size in self.told.items():
      found.given((self.serial, name), size, self.use(f"{name}={size}"))

  def compute(self, found: dict[Any, Fact]) -> Any:
    """The result, now that all operands are known."""
    operands = [_known(x) for x in self.operands]
    if self.done is not None:
      return self.done(*operands)
    labels = {label for term in (*self.inputs, self.output) for label in labels_of(term)}
    sizes = {n: found[self.serial, n].size for n in labels if isinstance(n, str)}
    if isinstance(self.result, Unknown):
      return einsum(self.text, *operands, **{**self.options, **sizes})
    return accumulated(self.result, self.text, operands, self.options["op"], sizes)


# ---------------------------------------------------------------- all that is said together


def connected(x: Unknown) -> tuple[list[Unknown], list[PutOff]]:
  """What stands in einsums together with x, and those einsums, in the order in which they were made."""
  unknown, calls, todo = {x._serial: x}, dict[int, PutOff](), [x]
  while todo:
    for call in todo.pop()._uses:
      if call.serial not in calls:
        calls[call.serial] = call
        others = [*call.unknown(), *([call.result] if isinstance(call.result, Unknown) else [])]
        todo += [y for y in others if y._serial not in unknown]
        unknown.update((y._serial, y) for y in others)
  return [unknown[n] for n in sorted(unknown)], [calls[n] for n in sorted(calls)]


def determine(x: Unknown) -> dict[Any, Fact]:
  """Find the sizes of x and of all that is connected with it, and make their tensors."""
  unknown, calls = connected(x)
  found = Sizes()
  for y in unknown:
    for spot, n in zip(y._spots(), y._sizes or ()):
      found.exact(spot)
      if n is not None:
        here = Use(*y._where, f"axis {spot.axis} of an Unknown")
        found.given(spot, n, y._because[spot.axis] if y._because else here)
  for call in calls:
    call.say(found)
  try:
    facts = found.solve()
  except Clash as e:
    unsatisfiable(e)
  except Undetermined as e:
    undetermined(e, unknown)
  if x._sizes is None:
    raise ShapeError(
      f"the number of axes of an Unknown is not determined: no einsum has it\n  made at {x._made}"
    )
  settle(unknown, calls, facts)
  return facts


def settle(unknown: list[Unknown], calls: list[PutOff], facts: dict[Any, Fact]) -> None:
  """Make the tensors, whose sizes are known."""
  for y in unknown:
    found = [facts[spot] for spot in y._spots()]
    y._sizes, y._because = [f.size for f in found], [f.use for f in found]
    if y._tensor is None and y._init is not None:
      y._tensor = y._init(*y._sizes)
  for call in calls:
    if isinstance(call.result, Unknown):
      call.result._tensor = call.compute(facts)
  for y in unknown:
    y._uses = []


def unsatisfiable(e: Clash) -> NoReturn:
  def told(fact: Fact) -> str:
    return f"  size {fact.size}: {fact.use.what}   at {fact.use.file}:{fact.use.line}"

  lines = [f"an axis has size {e.first.size} and size {e.second.size}", told(e.first), told(e.second)]
  raise ShapeError("\n".join(lines)) from None


def undetermined(e: Undetermined, unknown: list[Unknown]) -> NoReturn:
  """Of the first Unknown that is not a result, where one is."""
  missing = {name for name in e.names if isinstance(name, Spot)}
  about = sorted(unknown, key=lambda y: (y._init is None, y._where, y._serial))
  y, spot = next(((y, spot) for y in about for spot in y._spots() if spot in missing), (about[0], None))
  what = f"axis {spot.axis} of an Unknown" if spot else f"the size of {e.names[0][1]}"
  lines = [f"{what} is not determined   made at {y._made}"]
  uses = sorted({call.use("") for call in y._uses})
  raise ShapeError("\n".join([*lines, *(f" {u.what}   at {u.file}:{u.line}" for u in uses)])) from None
