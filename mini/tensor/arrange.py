"""Movement that is told by sizes or by a formula: turning, padding and cutting to a shape, rearranging named axes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from mini.tensor.concat import Joining
from mini.tensor.data import Sizes, sizes_of
from mini.tensor.errors import fail
from mini.types import ShapeError

if TYPE_CHECKING:
  from mini.tensor import Tensor

Groups = list[
  list[str]
]  # a side of a formula: the names of the axes that are one axis; none: an axis of size 1


class Arrange(Joining):
  """names, rot90, pad_to, shrink_to, rearrange."""

  @property
  def names(self) -> tuple[None, ...]:
    """The names of the axes, as PyTorch's: a Tensor's have none. `rename` gives them names."""
    return (None,) * self.ndim

  def rename(self, *names: Any, **labelled: Any) -> Any:
    """With a name for each axis, or None: a Named (mini/named_axes.py), whose methods take names for axes.

    A last axis may have a label, c=Dim(3, "rgb"); and one text may say which axes are those of a batch, of an input and
    of an output: "batch | input -> output".

    >>> x = Tensor([[1, 2], [3, 4]]).rename("row", "column")
    >>> x.sum("row")
    Tensor([4, 6]).rename('column')
    """
    from mini.named_axes import Named, renamed  # who has no names does without

    return Named(self, renamed(self, names, labelled))  # type: ignore[arg-type]

  def refine_names(self, *names: Any) -> Any:
    """`rename`, as PyTorch calls it where an axis has no name yet.

    >>> Tensor([1, 2]).refine_names("row").names
    ('row',)
    """
    return self.rename(*(None,) * self.ndim).refine_names(*names)

  def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees, from the first of two axes to the second.

    >>> Tensor([[1, 2], [3, 4]]).rot90()
    Tensor([[2, 4],
            [1, 3]])
    """
    axes = self._axes(tuple(dims), "rot90")
    if len(axes) != 2:
      fail(ShapeError, f"rot90: dims are two axes, not {tuple(dims)}", x=self)
    a, b = axes
    turned: Any = self if k % 2 == 0 else self.transpose(a, b)
    return turned.flip(*{0: (), 1: (a,), 2: (a, b), 3: (b,)}[k % 4]) if k % 4 else self._new(self._node)

  def pad_to(self, *shape: Sizes | None, value: float = 0) -> Tensor:
    """Padded behind its elements to a shape; None leaves an axis as it is.

    >>> Tensor([1, 2]).pad_to(4)
    Tensor([1, 2, 0, 0])
    """
    sizes = self._sizes_for("pad_to", shape)
    if any(m < n for n, m in zip(self.shape, sizes)):
      fail(ShapeError, f"pad_to: x is larger than {sizes}; shrink_to cuts", x=self)
    return (
      self.pad([(0, m - n) for n, m in zip(self.shape, sizes)], value=value)
      if sizes
      else self._new(self._node)
    )

  def shrink_to(self, *shape: Sizes | None) -> Tensor:
    """The first elements of each axis, as many as the shape says; None leaves an axis as it is.

    >>> Tensor([1, 2, 3]).shrink_to(2)
    Tensor([1, 2])
    """
    sizes = self._sizes_for("shrink_to", shape)
    if any(m > n for n, m in zip(self.shape, sizes)):
      fail(ShapeError, f"shrink_to: x is smaller than {sizes}; pad_to pads", x=self)
    return self.shrink([(0, m) for m in sizes])

  def _sizes_for(self, what: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A size for each axis, from what a user gives."""
    given = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if len(given) != self.ndim:
      fail(ShapeError, f"{what}: {len(given)} sizes for the {self.ndim} axes of x", x=self)
    return sizes_of(tuple(n if m is None else m for n, m in zip(self.shape, given)))

  def rearrange(self, formula: str, **sizes: int) -> Tensor:
    """Axes by name, in another order, joined and split: the `rearrange` of einops.

    Names on both sides of "->"; in parentheses, those that are one axis, the size of all but one of which `sizes` tells
    where it is split; "..." are axes without names, 1 an axis of size 1. ShapeError where sizes or names do not fit.

    >>> Tensor.zeros(2, 12, 5).rearrange("b (h w) c -> b c h w", h=3).shape
    (2, 5, 3, 4)
    """
    left, right = self._both_sides(formula)
    known = self._axis_sizes(formula, left, dict(sizes))
    before, after = ([name for group in side for name in group] for side in (left, right))
    if sorted(before) != sorted(after) or len(set(before)) != len(before):
      fail(ShapeError, f"rearrange({formula!r}): each name stands once on either side", x=self)
    apart = self.reshape(tuple(known[name] for name in before))
    moved = apart.permute(tuple(before.index(name) for name in after)) if before else apart
    return moved.reshape(tuple(prod(known[name] for name in group) for group in right))

  def _both_sides(self, formula: str) -> tuple[Groups, Groups]:
    """The groups of names of both sides; "..." as names of their own."""
    sides = [side.split() for side in re.sub(r"\(|\)|\.\.\.", r" \g<0> ", formula).split("->")]
    if len(sides) != 2 or not all(
      re.fullmatch(r"\(|\)|\.\.\.|1|[A-Za-z_]\w*", token) for side in sides for token in side
    ):
      fail(ShapeError, f'rearrange({formula!r}): a formula reads as "a (b c) -> a b c"', x=self)
    groups = [_grouped(side) for side in sides]
    if any(g is None for g in groups) or sum(g == ["..."] for g in groups[0] or ()) > 1:
      fail(
        ShapeError, f"rearrange({formula!r}): the parentheses do not match, or there are several ...", x=self
      )
    dots = [f"...{n}" for n in range(self.ndim - len(groups[0] or ()) + 1)]
    left, right = ([h for g in side or () for h in _spelled_out(g, dots)] for side in groups)
    if len(left) != self.ndim:
      fail(ShapeError, f"rearrange({formula!r}): x has {self.ndim} axes, the left side {len(left)}", x=self)
    return left, right

  def _axis_sizes(self, formula: str, left: Groups, known: dict[str, int]) -> dict[str, int]:
    """The size of every name: those that are not told follow from x's shape."""
    if unused := [name for name in known if not any(name in group for group in left)]:
      fail(ShapeError, f"rearrange({formula!r}): no axis is called {unused[0]}", x=self)
    for n, group in zip(self.shape, left):
      unknown = [name for name in group if name not in known]
      told = prod(known[name] for name in group if name in known)
      if len(unknown) > 1:
        fail(ShapeError, f"rearrange({formula!r}): give the size of {unknown[0]} or of {unknown[1]}", x=self)
      if unknown:
        known[unknown[0]] = n // told if told else 0
      if prod(known[name] for name in group) != n:
        fail(ShapeError, f"rearrange({formula!r}): an axis of size {n} is not ({' '.join(group)})", x=self)
    return known


def _grouped(tokens: list[str]) -> Groups | None:
  """The names that are one axis together; None if parentheses do not match. In parentheses, "..." is " ..."."""
  groups: Groups = []
  inside = False
  for token in tokens:
    if token in "()":
      if inside == (token == "("):
        return None
      inside = not inside
      groups += [[]] * inside
    elif inside:
      groups[-1] = [*groups[-1], *([] if token == "1" else [" ..." if token == "..." else token])]
    else:
      groups.append([] if token == "1" else [token])
  return None if inside else groups


def _spelled_out(group: list[str], dots: list[str]) -> Groups:
  """The group with names for "...": an axis each, or in parentheses all of them as one."""
  if group == ["..."]:
    return [[name] for name in dots]
  return [[n for name in group for n in (dots if name == " ..." else [name])]]
