"""Axes of einsum that are indices reckoned from others, as views: what an operand gives at them, where a result goes.

An index is  sum of factor * label + plus. An operand that is read at one gets an axis for each label - a span, every
n-th element, windows (split.py) - and a result, which has an axis for each label, is put at one by the transpose
of that: its rows are moved apart, each against the one before, and what meets is reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mini.ir import graph
from mini.ir.graph import shape
from mini.ir.uop import UOp
from mini.tensor.formula import Join, Label, Term
from mini.tensor.split import windows
from mini.tensor.views import around, span, spread, strided
from mini.types import dtypes

if TYPE_CHECKING:
  from mini.tensor.contract import Algebra

Labels = tuple[Label, ...]


def viewed(
  u: UOp, term: Term, sizes: Mapping[Label, Any], chosen: Mapping[Join, Label]
) -> tuple[UOp, Labels]:
  """u with an axis for each name: of axes with one name the diagonal, and none that is repeated along its axis. Of an
  axis of parts, the chosen one."""
  labels: list[Label] = []
  for axis in term:
    a, n = len(labels), shape(u)[len(labels)]
    if isinstance(axis, Join):
      before = axis.parts[: axis.parts.index(chosen[axis])]
      start = sum(sizes[part] for part in before)
      u = span(u, a, start, start + sizes[chosen[axis]])
      labels.append(chosen[axis])
    elif axis.label is None:
      plus = axis.plus if axis.plus >= 0 else n + axis.plus
      u, order = opened(u, a, [(sizes[label], f) for label, f in axis.terms], plus)
      labels += [axis.terms[i][0] for i in order]
    elif n == sizes[axis.label]:
      labels.append(axis.label)
    else:
      u = without(u, a)
  return _diagonal(u, labels, sizes)


def without(u: UOp, axis: int) -> UOp:
  """Without an axis of size 1."""
  return graph.reshape(u, (*shape(u)[:axis], *shape(u)[axis + 1 :]))


def opened(u: UOp, axis: int, parts: Sequence[tuple[int, int]], plus: int) -> tuple[UOp, list[int]]:
  """The axis as one axis for each of the (size, factor) of an index, and which part each of them is."""
  s = shape(u)
  if any(n == 0 for n, _ in parts):
    return graph.full((*s[:axis], *(n for n, _ in parts), *s[axis + 1 :]), 0, u.dtype), [*range(len(parts))]
  u = span(u, axis, plus, plus + 1 + sum(f * (n - 1) for n, f in parts))
  if not parts:
    return without(u, axis), []
  last = max(
    range(len(parts)), key=lambda i: parts[i]
  )  # the longest tells which window, the others where in it
  step = parts[last][1]
  others = [i for i in range(len(parts)) if i != last]
  rest = [parts[i] for i in others]
  if not rest:
    return (strided(u, axis, step) if step > 1 else u), [last]
  if len(rest) == 1:
    return windows(u, axis, *rest[0][:1], step, rest[0][1]), [*others, last]
  u = windows(u, axis, 1 + sum(f * (n - 1) for n, f in rest), step)
  u, order = opened(u, axis, rest, 0)
  return u, [*(others[i] for i in order), last]


def _diagonal(u: UOp, labels: list[Label], sizes: Mapping[Label, Any]) -> tuple[UOp, Labels]:
  while len({*labels}) < len(labels):
    name = next(n for n in labels if labels.count(n) > 1)
    i, j = [a for a, n in enumerate(labels) if n == name][:2]
    rest = [a for a in range(len(labels)) if a not in (i, j)]
    s, n = tuple(shape(u)[a] for a in rest), sizes[name]
    u = graph.reshape(graph.permute(u, (*rest, i, j)), (*s, n * n))
    # padded, n rows of n + 1 elements begin with the diagonal
    u = graph.reshape(graph.pad(u, around((*s, n), len(s), 0, n)), (*s, n, n + 1))
    u = without(span(u, len(s) + 1, 0, 1), len(s) + 1) if n else graph.reshape(u, (*s, 0))
    labels = [*(labels[a] for a in rest), name]
  return u, tuple(labels)


# ---------------------------------------------------------------- where a result goes


def placed(u: UOp, term: Term, s: Sequence[Any], algebra: Algebra) -> UOp:
  """A result at the indices of a term, each axis of which has the size that s says. u has an axis for each name, in the
  order in which they first stand there. Where nothing is put, it is the identity of the reduction."""
  indices = [axis for axis in term if not isinstance(axis, Join)]
  labels = [label for axis in indices for label, _ in axis.terms]
  if len({*labels}) == len(labels) == len(s) and all(axis.label is not None for axis in indices):
    return u
  if 0 in shape(u):
    return graph.expand(graph.reshape(algebra.identity(u.dtype), (1,) * len(s)), tuple(s))
  spots = Spots(u, algebra)
  order: list[int] = []
  first = list(dict.fromkeys(labels))
  for k, label in enumerate(labels):
    again = label in labels[:k]
    order.append(spots.repeated(first.index(label)) if again else first.index(label))
  spots.move(lambda x: graph.permute(x, tuple(order)))
  at = len(order)
  for axis, n in zip(reversed(indices), reversed(s)):
    at -= len(axis.terms)
    spots.joined(at, [f for _, f in axis.terms], axis.plus if axis.plus >= 0 else n + axis.plus, n)
  return spots.filled()


class Spots:
  """A result on its way, and where it is something, if that has to be known: a sum is 0 elsewhere anyway."""

  def __init__(self, u: UOp, algebra: Algebra):
    self.algebra = algebra
    self.layers = [u] if algebra.adds else [u, graph.full(shape(u), True, dtypes.bool)]

  def move(self, view: Callable[[UOp], UOp]) -> None:
    self.layers = [view(x) for x in self.layers]

  def filled(self) -> UOp:
    """With the identity where it is nothing."""
    u = self.layers[0]
    return u if self.algebra.adds else graph.alu("where", self.layers[1], u, self.algebra.identity(u.dtype))

  def repeated(self, axis: int) -> int:
    """The axis as two, with its elements where both are the same; which is the second one: the last."""
    s = shape(self.layers[0])
    n, last = s[axis], len(s)

    def view(x: UOp) -> UOp:
      x = graph.reshape(graph.permute(x, (*(a for a in range(last) if a != axis), axis)), (*rest, n, 1))
      x = graph.pad(
        x, around((*rest, n, 1), last, 0, n)
      )  # n rows of n + 1 elements, which begin with the diagonal
      x = span(graph.reshape(x, (*rest, n * (n + 1))), last - 1, 0, n * n)
      x = graph.reshape(x, (*rest, n, n))
      return graph.permute(x, (*range(axis), last - 1, *range(axis, last - 1), last))

    rest = tuple(m for a, m in enumerate(s) if a != axis)
    self.move(view)
    return last

  def joined(self, at: int, factors: Sequence[int], plus: int, n: int) -> None:
    """The axes from `at` on as one of size n, at the index that these factors make of them."""
    if not factors:
      self.move(lambda x: graph.reshape(x, (*shape(x)[:at], 1, *shape(x)[at:])))
    else:
      size = factors[0] * (shape(self.layers[0])[at] - 1) + 1
      self.move(lambda x: spread(x, at, factors[0], size))
    for factor in factors[1:]:
      self.sheared(at, factor)
    size = shape(self.layers[0])[at]
    self.move(lambda x: graph.pad(x, around(shape(x), at, plus, n - plus - size)))

  def sheared(self, at: int, factor: int) -> None:
    """The axes at and at + 1 as one: element i of row k goes to i + factor * k, and what meets is reduced.

    Rows that are longer by `factor` than what comes out, read as rows of its length, are moved so."""
    size, rows = shape(self.layers[0])[at : at + 2]
    out = size + factor * (rows - 1)

    def view(x: UOp) -> UOp:
      order = (*range(at), at + 1, at, *range(at + 2, len(shape(x))))
      x = graph.permute(x, order)
      x = graph.pad(x, around(shape(x), at + 1, 0, out + factor - size))
      before, after = shape(x)[:at], shape(x)[at + 2 :]
      x = span(graph.reshape(x, (*before, rows * (out + factor), *after)), at, 0, rows * out)
      return graph.reshape(x, (*before, rows, out, *after))

    self.move(view)
    self.layers[0] = self.filled()
    self.layers[0] = self.algebra.reduced(self.layers[0], (at,))
    self.layers[1:] = [graph.reduce(x, "max", (at,)) for x in self.layers[1:]]
    self.move(lambda x: without(x, at))
