"""einsum: sums of products over axes that have names.

Each operand's axes are named; the letters of an ellipsis are numbers, -1 for its last axis. Operands are multiplied two
at a time, those first whose product has the fewest elements to multiply, and what no other operand and no result needs
is summed at once. A product of two is one multiplication under a sum, as a matrix product is (multiply.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod
from typing import Any, NoReturn

from mini.ir import graph
from mini.ir.graph import shape
from mini.ir.uop import UOp
from mini.tensor.errors import fail, named
from mini.tensor.handle import Handle
from mini.tensor.promotion import result_type, wide
from mini.types import ShapeError

Label = str | int
Labels = tuple[Label, ...]
Named = tuple[UOp, Labels]  # a node and the names of its axes


def einsum(formula: Any, *operands: Any) -> Handle:
  """See Tensor.einsum."""
  if isinstance(formula, Handle):
    formula, operands = _from_lists((formula, *operands))
  elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
    operands = tuple(operands[0])

  def wrong(message: str) -> NoReturn:
    fail(ShapeError, f'einsum("{formula}"): {message}', **named(operands))

  inputs, output = parsed(formula, [len(t.shape) for t in operands], wrong)
  sizes = _sizes([t.shape for t in operands], inputs, wrong)
  for label in output:
    if label not in sizes:
      wrong(f"the result has an axis {label}, which no operand has")
  kind = result_type(*operands)
  todo = [_distinct(graph.cast(t.uop, wide(kind)), labels, sizes) for t, labels in zip(operands, inputs)]
  while len(todo) > 1:
    a, b = min(combinations(todo, 2), key=lambda pair: prod(sizes[n] for n in {*pair[0][1], *pair[1][1]}))
    todo = [t for t in todo if t is not a and t is not b]
    needed = {*output}.union(*(labels for _, labels in todo))
    todo.append(_product(_summed(a, needed.union(b[1])), _summed(b, needed.union(a[1])), needed, sizes))
  out, labels = _summed(todo[0], {*output})
  return Handle._new(graph.cast(_arranged(out, labels, output), kind))


# ---------------------------------------------------------------- the formula


def _from_lists(given: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
  """einsum(a, [0, 1], b, [1, 2], [0, 2]) as a formula and operands."""
  names = [given[n] for n in range(1, len(given), 2)] + ([given[-1]] if len(given) % 2 else [])

  def spelled(axes: Sequence[Any]) -> str:
    return "".join("..." if a is Ellipsis else chr(a + ord("A") + (6 if a >= 26 else 0)) for a in axes)

  count = len(given) // 2
  arrow = f"->{spelled(names[count])}" if len(given) % 2 else ""
  return ",".join(map(spelled, names[:count])) + arrow, tuple(given[0 : 2 * count : 2])


def parsed(
  formula: str, ndims: Sequence[int], wrong: Callable[[str], NoReturn]
) -> tuple[list[Labels], Labels]:
  """The names of the axes of each operand and of the result."""
  left, arrow, right = formula.replace(" ", "").partition("->")
  terms = left.split(",")
  if len(terms) != len(ndims):
    wrong(f"names the axes of {len(terms)} operands, and there are {len(ndims)}")
  inputs = []
  for term, ndim in zip(terms, ndims):
    before, dots, after = term.partition("...")
    rest = ndim - len(before) - len(after)
    if rest < 0 or (rest and not dots):
      wrong(f'"{term}" names {len(before) + len(after)} axes of an operand that has {ndim}')
    inputs.append((*before, *range(-rest, 0), *after))
  for name in {n for labels in inputs for n in labels if isinstance(n, str)} | {*right.replace("...", "")}:
    if not name.isalpha():
      wrong(f"an axis is named by a letter, not {name!r}")
  longest = max((-n for labels in inputs for n in labels if isinstance(n, int)), default=0)
  counts = Counter(n for labels in inputs for n in labels)
  if not arrow:
    once = sorted(n for n, c in counts.items() if c == 1 and isinstance(n, str))
    return inputs, (*range(-longest, 0), *once)
  before, dots, after = right.partition("...")
  output: Labels = (*before, *(range(-longest, 0) if dots else ()), *after)
  if len({*output}) < len(output):
    wrong("an axis of the result has a name twice")
  return inputs, output


def _sizes(
  shapes: Sequence[tuple[int, ...]], inputs: Sequence[Labels], wrong: Callable[[str], NoReturn]
) -> dict[Label, int]:
  """The size of each name; an axis of size 1 goes with any."""
  sizes: dict[Label, int] = {}
  for s, labels in zip(shapes, inputs):
    for n, label in zip(s, labels):
      known = sizes.get(label, 1)
      if n != known and 1 not in (n, known):
        where = f"axis {label}" if isinstance(label, str) else "an axis of the ellipsis"
        wrong(f"{where} has size {known} and size {n}")
      sizes[label] = n if known == 1 else known
  return sizes


# ---------------------------------------------------------------- on nodes


def _distinct(u: UOp, labels: Labels, sizes: dict[Label, int]) -> Named:
  """Each name once: of axes with one name the diagonal; and none that is repeated along its axis."""
  labels = tuple(labels)
  keep = [a for a, n in enumerate(labels) if shape(u)[a] == sizes[n]]
  u, labels = graph.reshape(u, tuple(shape(u)[a] for a in keep)), tuple(labels[a] for a in keep)
  while len({*labels}) < len(labels):
    name = next(n for n in labels if labels.count(n) > 1)
    i, j = [a for a, n in enumerate(labels) if n == name][:2]
    rest = [a for a in range(len(labels)) if a not in (i, j)]
    s, n = tuple(shape(u)[a] for a in rest), sizes[name]
    u = graph.reshape(graph.permute(u, (*rest, i, j)), (*s, n * n))
    # padded, n rows of n + 1 elements begin with the diagonal
    u = graph.reshape(graph.pad(u, (*((0, 0) for _ in s), (0, n))), (*s, n, n + 1))
    u = (
      graph.reshape(graph.shrink(u, (*((0, m) for m in s), (0, n), (0, min(n, 1)))), (*s, n))
      if n
      else graph.reshape(u, (*s, 0))
    )
    labels = (*(labels[a] for a in rest), name)
  return u, labels


def _summed(x: Named, needed: set[Label]) -> Named:
  """Without the axes that nobody needs."""
  u, labels = x
  gone = tuple(a for a, n in enumerate(labels) if n not in needed)
  if not gone:
    return x
  s = tuple(n for a, n in enumerate(shape(u)) if a not in gone)
  return graph.reshape(graph.reduce(u, "add", gone), s), tuple(n for n in labels if n in needed)


def _arranged(u: UOp, labels: Labels, wanted: Labels) -> UOp:
  """The axes in this order; of those that it does not have, size 1."""
  u = graph.permute(u, tuple(labels.index(n) for n in wanted if n in labels))
  rest = iter(shape(u))
  return graph.reshape(u, tuple(next(rest) if n in labels else 1 for n in wanted))


def _product(a: Named, b: Named, needed: set[Label], sizes: dict[Label, int]) -> Named:
  """Multiplied, and summed over what both have and nobody needs."""
  both = [n for n in a[1] if n in b[1]]
  out = (
    [n for n in both if n in needed] + [n for n in a[1] if n not in both] + [n for n in b[1] if n not in both]
  )
  order = (*out, *(n for n in both if n not in needed))
  s = tuple(sizes[n] for n in order)
  x, y = (graph.expand(_arranged(u, labels, order), s) for u, labels in (a, b))
  return _summed((graph.alu("mul", x, y), order), {*out})
