"""einsum: sums of products over axes that have names; and of what else is multiplied and added.

formula.py reads the formula, mini/shapes.py finds the sizes, contract.py computes. Here stands what a call is, and its
errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.shapes import Clash, Sizes, Undetermined, Use, reach
from mini.tensor.contract import OPERATIONS, REDUCTIONS, Algebra, Plan, evaluated
from mini.tensor.data import complex_numbers, is_complex
from mini.tensor.errors import fail, named
from mini.tensor.formula import Formula, Index, Join, Label, Term, expanded, labels_of, name_of, parsed
from mini.tensor.handle import Handle
from mini.tensor.promotion import result_type, wide
from mini.types import DTypeError, ShapeError, dtypes


def einsum(formula: Any, *operands: Any, op: Any = "mul", reduce: str = "sum", **sizes: int) -> Handle:
  """See Tensor.einsum."""
  if isinstance(formula, Handle):
    formula, operands = _from_lists((formula, *operands))
  elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
    operands = tuple(operands[0])
  if other := _other(formula, operands):
    return other._einsum(formula, operands, {"op": op, "reduce": reduce, **sizes})
  if any(map(is_complex, operands)):
    return complex_numbers().einsum(formula, operands, op, reduce, sizes)
  call = Call(formula, operands)
  if call.formula.reduce:
    call.wrong("x.einsum_ accumulates")
  return call.result(op, reduce, sizes)


def accumulated(
  target: Handle, formula: str, operands: Sequence[Any], op: Any, sizes: dict[str, int]
) -> Handle:
  """What target becomes by an accumulating formula."""
  if other := _other(formula, operands):
    return other._accumulated(target, formula, operands, {"op": op, **sizes})
  call = Call(formula, operands, target)
  if not call.formula.reduce:
    call.wrong('einsum_ accumulates, as in "i += i j"')
  found = call.result(op, call.formula.reduce, sizes)
  kind = result_type(target, found)
  join = call.algebra(op, call.formula.reduce).joined
  return Handle._new(join(graph.cast(target._node, kind), graph.cast(found._node, kind)))


def block(rows: Sequence[Any]) -> Handle:
  """A tensor of blocks, as NumPy's `block`: the innermost lists are put together along the last axis, those around them
  along the one before, and so on. Blocks with fewer axes get axes of size 1 in front.

  >>> from mini import Tensor
  >>> block([[Tensor([[1, 2]]), Tensor([[3]])], [Tensor([[4, 5]]), Tensor([[6]])]])
  Tensor([[1, 2, 3],
          [4, 5, 6]])
  """
  depth, flat = _leaves(rows)
  ndim = max(depth, *(t.ndim for t in flat))

  def joined(x: Any, axis: int) -> Any:
    if isinstance(x, Handle):
      return x.reshape((1,) * (ndim - x.ndim) + x.shape)  # type: ignore[attr-defined]
    return Handle._final._joined([joined(y, axis + 1) for y in x], axis)

  return joined(rows, ndim - depth)


def _leaves(x: Any) -> tuple[int, list[Handle]]:
  """How deep tensors lie in lists, and all of them."""
  if isinstance(x, Handle):
    return 0, [x]
  if not isinstance(x, (list, tuple)) or not x:
    raise DTypeError(f"block: tensors in lists, not {x!r}")
  found = [_leaves(y) for y in x]
  if len({depth for depth, _ in found}) > 1:
    raise ShapeError("block: not all tensors lie equally deep in lists")
  return found[0][0] + 1, [t for _, ts in found for t in ts]


def _other(formula: Any, operands: Sequence[Any]) -> Any:
  """The class of an operand that is no tensor, and has an einsum of its own."""
  for t in operands:
    if not isinstance(t, Handle):
      if not hasattr(type(t), "_einsum"):
        raise DTypeError(f"einsum({formula!r}): operands are tensors, not {t!r}")
      return type(t)
  return None


# ---------------------------------------------------------------- a call


class Call:
  """A formula and its operands, for errors that name them."""

  def __init__(self, formula: Any, operands: Sequence[Any], target: Handle | None = None):
    self.text, self.operands, self.target = formula, operands, target
    if not isinstance(formula, str):
      fail(DTypeError, f"einsum({formula!r}): a formula is a string", **named(operands))
    try:
      self.formula: Formula = parsed(formula)
    except ShapeError as e:
      self.wrong(str(e))

  def wrong(self, message: str, error: type[Exception] = ShapeError) -> NoReturn:
    given = named(self.operands)
    if self.target is not None:
      given["x"] = self.target
    fail(error, f'einsum("{self.text}"): {message}', **given)

  def result(self, op: Any, reduce: str, sizes: dict[str, int]) -> Handle:
    algebra = self.algebra(op, reduce)
    inputs, output = self.terms()
    if reduce == "mean":
      self.averaged(inputs, output)
    plan = self.planned(inputs, output, sizes)
    if reduce in ("max", "min"):
      self.some(plan, reduce)
    if (
      (op, reduce) == ("mul", "sum")
      and len(inputs) == 1
      and (view := self.view(inputs[0], output)) is not None
    ):
      return view
    return Handle._new(algebra.finished(plan, evaluated(plan, self.nodes(algebra), algebra)))

  def view(self, term: Term, output: Term) -> Handle | None:
    """The operand with its axes in another order, or its diagonals, where the formula says no more."""
    before, after = ([a.label if isinstance(a, Index) else None for a in t] for t in (term, output))
    if None in before or {*before} != {*after} or len({*after}) < len(after):
      return None
    x: Any = self.operands[0]
    for label in after:
      while before.count(label) > 1:
        first = before.index(label)
        second = before.index(label, first + 1)
        x = x.diagonal(0, first, second)
        before = [*before[:first], *before[first + 1 : second], *before[second + 1 :], label]
    return x.permute(tuple(map(before.index, after)))

  def algebra(self, op: Any, reduce: str) -> Algebra:
    if not callable(op) and op not in OPERATIONS:
      self.wrong(f"op is one of {', '.join(OPERATIONS)}, or a function of two tensors, not {op!r}")
    if reduce not in REDUCTIONS:
      self.wrong(f"reduce is one of {', '.join(REDUCTIONS)}, not {reduce!r}")
    kind = dtypes.bool if reduce in ("any", "all") else result_type(*self.operands)
    if reduce == "mean" and kind.kind != "f":
      self.wrong(f"the average of {kind.name} is no integer; cast an operand to a float type", DTypeError)
    return Algebra(op, reduce, kind)

  def averaged(self, inputs: list[Term], output: Term) -> None:
    """Of what is an average, all places are the average of as many."""
    if any(isinstance(a, Join) or len(a.terms) > 1 for term in (*inputs, output) for a in term):
      self.wrong("an average of parts or at reckoned indices is not of equally many everywhere; sum them")

  def some(self, plan: Plan, reduce: str) -> None:
    """Where the largest or smallest is taken, there is one."""
    for label in {n for term in plan.inputs for n in labels_of(term)} - {*labels_of(plan.output)}:
      if plan.sizes[label] == 0:
        self.wrong(f"there is no {reduce} over {name_of(label)}, which has no elements")

  def nodes(self, algebra: Algebra) -> list[UOp]:
    """The operands in the type in which they are multiplied."""
    if algebra.op in ("and", "or"):
      return [
        t._node if t.dtype is dtypes.bool else graph.alu("ne", t._node, const(0, t.dtype))
        for t in self.operands
      ]
    kind = wide(result_type(*self.operands))
    return [graph.cast(t._node, kind) for t in self.operands]

  def terms(self) -> tuple[list[Term], Term]:
    try:
      ndim = None if self.target is None else self.target.ndim
      inputs, output = expanded(self.formula, [t.ndim for t in self.operands], ndim)
    except ShapeError as e:
      self.wrong(str(e))
    return inputs, output

  def planned(self, inputs: list[Term], output: Term, told: dict[str, int]) -> Plan:
    """With the sizes of all names."""
    sizes = None if told or self.target is not None else _agreed(inputs, self.operands)
    if sizes is None or not sizes.keys() >= {*labels_of(output)}:
      sizes = self.solved(inputs, output, told)
    return Plan(inputs, output, sizes, self.result_shape(output, sizes))

  def solved(self, inputs: list[Term], output: Term, told: dict[str, int]) -> dict[Label, Any]:
    found = Sizes()
    for n, (term, t) in enumerate(zip(inputs, self.operands)):
      say(found, term, t.shape, self.use(n, t), n)
    names: set[Label] = {*labels_of(output)}.union(*map(labels_of, inputs))
    for name, size in told.items():
      if name not in names:
        self.wrong(f"no axis is called {name}")
      found.given(name, size, Use("", 0, f"{name}={size}"))
      found.exact(name)
    if self.target is not None:
      file, line = self.target._where
      say(found, output, self.target.shape, Use(file, line, "x, the result"), -1)
      for label in labels_of(output):
        found.exact(label)
    for label in names:
      found.find(label)
    try:
      return {name: fact.size for name, fact in found.solve().items()}
    except Clash as e:
      self.clash(e)
    except Undetermined as e:
      self.undetermined(e, inputs)

  def clash(self, e: Clash) -> NoReturn:
    one, other = e.first, e.second
    if isinstance(e.name, Place):
      what = f"axis {e.name.axis} of {one.use.what}"
      self.wrong(f"{what} has size {one.size}, and its names make {other.size}")
    what = f"{name_of(e.name)} has size {one.size} and size {other.size}"
    self.wrong(f"{what}: {one.use.what}, and {other.use.what}")

  def use(self, n: int, t: Handle) -> Use:
    """What an operand says, for errors that have two of them."""
    file, line = t._where
    return Use(file, line, f'"{self.formula.texts[n]}" of {"abcdefgh"[n : n + 1] or n}')

  def undetermined(self, e: Undetermined, inputs: list[Term]) -> NoReturn:
    there = {n for term in inputs for n in labels_of(term)}
    names = sorted(str(n) for n in e.names if not isinstance(n, Place))
    if new := [n for n in names if n not in there]:
      self.wrong(f"the result has an axis {new[0]}, which no operand has")
    self.wrong(f"the size of {' and of '.join(names)} is not determined; {names[0]}=... would tell it")

  def result_shape(self, output: Term, sizes: dict[Label, Any]) -> tuple[Any, ...]:
    if self.target is not None:
      return self.target.shape
    if any(isinstance(a, Index) and not a.terms for a in output):
      self.wrong(
        "the size of an axis of the result that has a number is not determined; x.einsum_ has it of x"
      )
    labels = list(labels_of(output))
    if len({*labels}) < len(labels):
      self.wrong("an axis of the result has a name twice")
    return tuple(size_of(axis, sizes) for axis in output)


class Place(NamedTuple):
  """The size of an axis that is more than a name."""

  call: int
  operand: int
  axis: int


def _agreed(inputs: list[Term], operands: Sequence[Handle]) -> dict[Label, Any] | None:
  """The sizes where every axis is a name, and all is well: most formulas."""
  sizes: dict[Label, Any] = {}
  for term, t in zip(inputs, operands):
    for axis, n in zip(term, t.shape):
      label = None if isinstance(axis, Join) else axis.label
      known = sizes.get(label, 1) if label is not None else None
      if label is None or (n != known and 1 not in (n, known)):
        return None
      sizes[label] = n if known == 1 else known
  return sizes


def say(
  found: Sizes, term: Term, s: Sequence[Any], use: Use, n: int, call: int = 0, tight: bool = False
) -> None:
  """What operand n of shape s says of sizes. Where there are several calls, names are those of one of them, and sizes
  of the shape may be names, too. tight: the shape has no room for more."""

  def of(label: Label) -> Any:
    return (call, label) if call else label

  for a, (axis, size) in enumerate(zip(term, s)):
    label = None if isinstance(axis, Join) else axis.label
    place = of(label) if label is not None else Place(call, n, a)
    if isinstance(size, tuple):
      found.same(place, size)
    else:
      found.given(place, size, use)
    if isinstance(axis, Join):
      found.sum(place, map(of, axis.parts), use)
    elif label is None:
      plus = axis.plus if axis.plus >= 0 else -axis.plus - 1
      found.room(place, [(of(name), factor) for name, factor in axis.terms], plus, use, tight)


def size_of(axis: Index | Join, sizes: dict[Label, Any]) -> Any:
  """The smallest size of an axis of the result."""
  if isinstance(axis, Join):
    return sum(sizes[n] for n in axis.parts)
  if axis.label is not None:
    return sizes[axis.label]
  return reach([(sizes[n], f) for n, f in axis.terms], axis.plus)


def _from_lists(given: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
  """einsum(a, [0, 1], b, [1, 2], [0, 2]) as a formula and operands."""
  names = [given[n] for n in range(1, len(given), 2)] + ([given[-1]] if len(given) % 2 else [])

  def spelled(axes: Sequence[Any]) -> str:
    return "".join("..." if a is Ellipsis else chr(a + ord("A") + (6 if a >= 26 else 0)) for a in axes)

  count = len(given) // 2
  arrow = f"->{spelled(names[count])}" if len(given) % 2 else ""
  return ",".join(map(spelled, names[:count])) + arrow, tuple(given[0 : 2 * count : 2])
