"""What an einsum computes, on nodes: the order of its products, and its parts.

Where the operation distributes over the reduction, operands are multiplied two at a time, those first whose product has
the fewest elements to multiply, and what no other operand and no result needs is summed at once; otherwise all of them
at once. A product of two is one multiplication under a sum, as a matrix product is (multiply.py). Axes that are indices
become views in indices.py; convolutions among them are found in einsum_to_conv.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod
from typing import Any, NamedTuple

from mini.gradient_rules import constant_in
from mini.ir import graph
from mini.ir.graph import shape
from mini.ir.ops import identity
from mini.ir.sizes import most, number
from mini.ir.uop import UOp, const
from mini.tensor.algebra import add, inverted, least, negated
from mini.tensor.einsum_to_conv import convolution
from mini.tensor.formula import Index, Join, Label, Term, labels_of
from mini.tensor.handle import Handle
from mini.tensor.indices import Labels, placed, viewed
from mini.tensor.promotion import wide
from mini.types import DType, ShapeError, dtypes

Named = tuple[UOp, Labels]  # a node and the names of its axes
Binary = Callable[[UOp, UOp], UOp]


class Plan(NamedTuple):
  """The axes of the operands and of the result, and the sizes of the names."""

  inputs: list[Term]
  output: Term
  sizes: dict[Label, Any]
  shape: tuple[Any, ...]  # of the result


# ---------------------------------------------------------------- what multiplies, and what adds


class Algebra(NamedTuple):
  """An operation on operands, a reduction of what it gives, and the type in which both are done."""

  op: Any
  reduce: str
  kind: DType  # of the result, where it is that of the operands

  def both(self, a: UOp, b: UOp) -> UOp:
    if callable(self.op):
      return self.op(Handle._new(a), Handle._new(b))._node
    return OPERATIONS[self.op](a, b)

  def joined(self, a: UOp, b: UOp) -> UOp:
    """Two results of the reduction as one."""
    return JOINS[REDUCTIONS[self.reduce]](a, b)

  def reduced(self, u: UOp, axes: tuple[int, ...]) -> UOp:
    """Over axes, which stay with size 1."""
    kind = REDUCTIONS[self.reduce]
    if kind == "min":
      turned = negated if u.dtype.kind == "f" else inverted
      return turned(graph.reduce(turned(u), "max", axes))
    out = graph.reduce(u, kind, axes)
    return constant_in(out, u) if 0 in graph.shape(u) else out

  def prepared(self, u: UOp) -> UOp:
    """What the reduction is taken of."""
    if self.reduce in ("any", "all") and u.dtype is not dtypes.bool:
      return graph.alu("ne", u, const(0, u.dtype))
    if u.dtype is dtypes.bool and self.kind is not dtypes.bool and REDUCTIONS[self.reduce] in ("add", "mul"):
      return graph.cast(u, wide(self.kind) if self.reduce == "mean" else dtypes.int64)
    return u

  @property
  def distributes(self) -> bool:
    return (self.op, self.reduce) in DISTRIBUTE

  @property
  def adds(self) -> bool:
    """Is nothing the same as 0?"""
    return REDUCTIONS[self.reduce] == "add"

  def identity(self, kind: DType) -> UOp:
    """The reduction of nothing, a 0-d node."""
    if REDUCTIONS[self.reduce] != "min":
      return const(identity(REDUCTIONS[self.reduce], kind), kind)
    return (negated if kind.kind == "f" else inverted)(const(identity("max", kind), kind))

  def finished(self, plan: Plan, u: UOp) -> UOp:
    if self.reduce == "mean":
      gone = {n for term in plan.inputs for n in labels_of(term)} - {*labels_of(plan.output)}
      u = graph.alu("div", u, number([plan.sizes[n] for n in sorted(gone, key=repr)], u.dtype))
    return graph.cast(u, self.kind) if u.dtype is wide(self.kind) else u


# fmt: off
OPERATIONS: dict[str, Binary] = {
  "mul": lambda a, b: graph.alu("mul", a, b), "add": add, "max": lambda a, b: graph.alu("max", a, b), "min": least,
  "and": lambda a, b: graph.alu("and", a, b), "or": lambda a, b: graph.alu("or", a, b),
}
REDUCTIONS = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "mean": "add", "any": "max", "all": "mul"}
JOINS = {"add": add, "mul": OPERATIONS["mul"], "max": OPERATIONS["max"], "min": least}
# reduce of a op b, over what b alone has, is  a op reduce of b  - as far as nothing overflows or is rounded
DISTRIBUTE = {("mul", "sum"), ("mul", "mean"), ("add", "max"), ("add", "min"), ("max", "max"), ("max", "min"),
              ("min", "max"), ("min", "min"), ("and", "any"), ("and", "all"), ("or", "any"), ("or", "all")}
# fmt: on


# ---------------------------------------------------------------- parts


def evaluated(plan: Plan, nodes: Sequence[UOp], algebra: Algebra) -> UOp:
  """The result. Where axes have parts: of each choice of them, from the operands that have no name of another part.

  What comes of several choices for one place is reduced; what comes of none is the identity of the reduction.
  """
  if (algebra.op, algebra.reduce) == ("mul", "sum"):
    found = convolution(plan.inputs, plan.output, plan.sizes, nodes)
    if found is not None:
      return found
  blocks: dict[Labels, UOp] = {}
  joins = [axis for axis in plan.output if isinstance(axis, Join)]
  named = {label for term in plan.inputs for label in labels_of(term)}
  for chosen, gone in _choices(plan):
    output = _narrowed(plan.output, chosen)
    there = [(u, t) for u, t in zip(nodes, plan.inputs) if not gone.intersection(_alone(t))]
    covered = {label for _, t in there for label in labels_of(_narrowed(t, chosen))}
    wanted = tuple(dict.fromkeys(labels_of(output)))
    if not there or named.intersection(wanted) - covered:
      continue
    u = contracted([viewed(u, t, plan.sizes, chosen) for u, t in there], wanted, plan.sizes, algebra)
    sizes = tuple(
      plan.sizes[chosen[a]] if isinstance(a, Join) else n for a, n in zip(plan.output, plan.shape)
    )
    u, key = placed(u, output, sizes, algebra), tuple(chosen[j] for j in joins)
    blocks[key] = algebra.joined(blocks[key], u) if key in blocks else u
  kind = next(iter(blocks.values())).dtype if blocks else nodes[0].dtype
  return _assembled(blocks, plan, algebra.identity(kind))


def _choices(plan: Plan) -> Iterator[tuple[dict[Join, Label], set[Label]]]:
  """One part of every axis that has parts, and the other parts."""
  joins = list(dict.fromkeys(a for term in (*plan.inputs, plan.output) for a in term if isinstance(a, Join)))
  for choice in product(*(j.parts for j in joins)):
    chosen = dict(zip(joins, choice))
    if all(part == chosen[j] for j in joins for part in j.parts if part in choice):
      yield chosen, {part for j in joins for part in j.parts} - {*choice}


def _narrowed(term: Term, chosen: Mapping[Join, Label]) -> Term:
  return tuple(Index(((chosen[a], 1),)) if isinstance(a, Join) else a for a in term)


def _alone(term: Term) -> set[Label]:
  """The names that are no part of an axis."""
  return {*labels_of([a for a in term if isinstance(a, Index)])}


def _assembled(blocks: dict[Labels, UOp], plan: Plan, fill: UOp) -> UOp:
  """Blocks one behind another along the axes that have parts."""

  def along(done: Labels, axes: list[int]) -> UOp:
    if axes:
      join = plan.output[axes[0]]
      assert isinstance(join, Join)
      return graph.cat(tuple(along((*done, part), axes[1:]) for part in join.parts), axes[0])
    if done in blocks:
      return blocks[done]
    parts = iter(done)
    s = tuple(plan.sizes[next(parts)] if isinstance(a, Join) else n for a, n in zip(plan.output, plan.shape))
    return graph.expand(graph.reshape(fill, (1,) * len(s)), s)

  return along((), [a for a, axis in enumerate(plan.output) if isinstance(axis, Join)])


# ---------------------------------------------------------------- products


def contracted(views: list[Named], wanted: Labels, sizes: Mapping[Label, Any], algebra: Algebra) -> UOp:
  """Views multiplied, and reduced over what the result does not name.   -> an axis for each wanted name"""
  if not algebra.distributes or len(views) == 1:
    return _at_once(views, wanted, sizes, algebra)
  todo = list(views)
  while len(todo) > 1:
    a, b = min(
      combinations(todo, 2), key=lambda pair: prod(most(sizes[n]) for n in {*pair[0][1], *pair[1][1]})
    )
    todo = [t for t in todo if t is not a and t is not b]
    needed = {*wanted}.union(*(labels for _, labels in todo))
    a, b = _reduced(a, needed.union(b[1]), algebra), _reduced(b, needed.union(a[1]), algebra)
    todo.append(_product(a, b, needed, sizes, algebra))
  out, labels = _reduced(todo[0], {*wanted}, algebra)
  return _repeated(out, labels, wanted, sizes)


def _at_once(views: list[Named], wanted: Labels, sizes: Mapping[Label, Any], algebra: Algebra) -> UOp:
  """All operands repeated to all names, and one reduction."""
  if len(views) == 1:
    (u, labels), *_ = views
  else:
    rest = dict.fromkeys(n for _, names in views for n in names if n not in wanted)
    labels = (*(n for n in wanted if any(n in names for _, names in views)), *rest)
    u, *others = (_repeated(x, names, labels, sizes) for x, names in views)
    for x in others:
      u = algebra.both(u, x)
    if shape(u) != tuple(sizes[n] for n in labels):
      raise ShapeError(f"op gives the shape {shape(u)} for {tuple(sizes[n] for n in labels)}")
  out, labels = _reduced((algebra.prepared(u), labels), {*wanted}, algebra)
  return _repeated(out, labels, wanted, sizes)


def _reduced(x: Named, needed: set[Label], algebra: Algebra) -> Named:
  """Without the axes that nobody needs."""
  u, labels = x
  gone = tuple(a for a, n in enumerate(labels) if n not in needed)
  if not gone:
    return x
  s = tuple(n for a, n in enumerate(shape(u)) if a not in gone)
  return graph.reshape(algebra.reduced(u, gone), s), tuple(n for n in labels if n in needed)


def _arranged(u: UOp, labels: Labels, wanted: Labels) -> UOp:
  """The axes in this order; of those that it does not have, size 1."""
  u = graph.permute(u, tuple(labels.index(n) for n in wanted if n in labels))
  rest = iter(shape(u))
  return graph.reshape(u, tuple(next(rest) if n in labels else 1 for n in wanted))


def _repeated(u: UOp, labels: Labels, wanted: Labels, sizes: Mapping[Label, Any]) -> UOp:
  return graph.expand(_arranged(u, labels, wanted), tuple(sizes[n] for n in wanted))


def _product(a: Named, b: Named, needed: set[Label], sizes: Mapping[Label, Any], algebra: Algebra) -> Named:
  """Multiplied, and summed over what both have and nobody needs."""
  both = [n for n in a[1] if n in b[1]]
  out = (
    [n for n in both if n in needed] + [n for n in a[1] if n not in both] + [n for n in b[1] if n not in both]
  )
  order = (*out, *(n for n in both if n not in needed))
  x, y = (_repeated(u, labels, order, sizes) for u, labels in (a, b))
  return _reduced((algebra.both(x, y), order), {*out}, algebra)
