"""Movement: other shapes and orders of the same elements. In the graph all of it is views but `cat`, and
`repeat_interleave` by a vector; what is a view that shares memory is PyTorch's choice (views.py).

Axes may count from the end; `dim=` may be written `axis=` by position. Sizes are given as a tuple or as several ints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.ir import graph
from mini.ir.sizes import filled, varies
from mini.ir.uop import UOp
from mini.tensor.activations import Activations
from mini.tensor.data import Sizes, sizes_of
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.views import fits, span
from mini.types import ArgumentError, DType, ShapeError, as_dtype, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}  # by bytes


class Movement(Activations):
  """Shapes, orders, joining and cutting."""

  # ---------------------------------------------------------------- shapes

  def reshape(self, *shape: Sizes) -> Tensor:
    """The same elements, in row-major order, in another shape. One size may be -1: what is left.

    ShapeError if the number of elements differs.

    >>> Tensor.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    sizes = sizes_of(shape)
    found = filled(self.shape, sizes)
    if found is None:
      has = "a size known only at run time" if varies((*self.shape, *sizes)) else f"{self.numel()} elements"
      why = "" if sum(n == -1 for n in sizes) < 2 else ": only one size may be -1"
      about = f"x.reshape({', '.join(map(str, sizes))}): x has {has}, which do not fill that shape{why}"
      fail(ShapeError, about, x=self)
    return self._in_shape(found)

  def _in_shape(self, shape: tuple[int, ...]) -> Tensor:
    """A view where the strides allow one, else a copy."""
    return self._view(("shape", shape)) if fits(self, shape) else self._new(graph.reshape(self._node, shape))

  def view(self, *shape: Any) -> Tensor:
    """`reshape` that never copies, so that what is written to it is written to x; here it never fails. Of a type: the
    bytes, read as that type, of which the last axis has as many more or fewer elements; it cannot be written to, where
    elements of x and of it are not one to one.

    >>> Tensor([1, 2], dtype="int16").view(dtypes.uint8)
    Tensor([1, 0, 2, 0], dtype=uint8)
    """
    if len(shape) == 1 and isinstance(shape[0], (DType, np.dtype, type)):
      return self._bytes_as(as_dtype(shape[0]))
    return self._view(("shape", self.reshape(*shape).shape))

  def _computed(self, f: Callable[[Any], Any]) -> Tensor:
    """f of this tensor, which is computed anew where that is written to, and cannot be written to itself."""
    return self._view(("computed", (lambda u: f(self._new(u))._node, lambda strides: None)))

  def _bytes_as(self, kind: DType) -> Tensor:
    if self.dtype.itemsize != kind.itemsize:
      return self._computed(lambda x: x._other_bytes(kind))
    return self.bitcast(kind)  # type: ignore[attr-defined]

  def _other_bytes(self, kind: DType) -> Tensor:
    old, new = self.dtype.itemsize, kind.itemsize
    if dtypes.bool in (self.dtype, kind):
      return self.bitcast(kind)  # type: ignore[attr-defined]
    if not self.ndim or old < new and self.shape[-1] * old % new:
      message = f"view: the last axis of {self.dtype.name} does not hold whole elements of {kind.name}"
      fail(ShapeError, message, x=self)
    whole: Any = self.bitcast(UNSIGNED[old])  # type: ignore[attr-defined]
    if old > new:
      parts = [(whole >> 8 * new * i).cast(UNSIGNED[new]) for i in range(old // new)]
      return parts[0].stack(*parts[1:], dim=-1).flatten(-2).bitcast(kind)
    parts = whole.unflatten(-1, (-1, new // old)).cast(UNSIGNED[new]).unbind(-1)
    total = parts[0]
    for i, part in enumerate(parts[1:], 1):
      total = total | (part << 8 * old * i)
    return total.bitcast(kind)

  def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes start_dim..end_dim, both included, as one.

    >>> Tensor.zeros(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    a, b = self._axis(start_dim, "flatten"), self._axis(end_dim, "flatten")
    if a > b:
      fail(ShapeError, f"flatten: start_dim {start_dim} lies behind end_dim {end_dim}", x=self)
    if self.shape and a == b:
      return self  # type: ignore[return-value]
    return self._in_shape((*self.shape[:a], prod(self.shape[a : b + 1]), *self.shape[b + 1 :]))

  def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
    """One axis as several; a size of -1 is what is left.

    >>> Tensor.zeros(2, 12).unflatten(1, (3, -1)).shape
    (2, 3, 4)
    """
    a = self._axis(dim, "unflatten")
    total, rest = self.shape[a], prod(n for n in sizes if n != -1)
    found = [total // rest if n == -1 and rest else n for n in sizes]
    if prod(found) != total or min(found, default=0) < 0 or [*sizes].count(-1) > 1:
      fail(
        ShapeError, f"unflatten: axis {a} has {total} elements, which are not of sizes {(*sizes,)}", x=self
      )
    return self.reshape(*self.shape[:a], *found, *self.shape[a + 1 :])

  def squeeze(self, dim: Sizes | None = None) -> Tensor:
    """Without the axes of size 1: all of them, or of those in dim.

    >>> Tensor.zeros(1, 2, 1).squeeze().shape
    (2,)
    """
    axes = self._axes(dim, "squeeze")
    return self._view(("shape", tuple(n for a, n in enumerate(self.shape) if n != 1 or a not in axes)))

  def unsqueeze(self, dim: int) -> Tensor:
    """With an axis of size 1 put in at dim."""
    a = self._axis(dim, "unsqueeze", self.ndim + 1)
    return self._view(("shape", (*self.shape[:a], 1, *self.shape[a:])))

  def expand(self, *shape: Sizes) -> Tensor:
    """Axes of size 1 repeated, new ones put in front. -1 leaves a size as it is.

    >>> Tensor([[1], [2]]).expand(2, 3)
    Tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    sizes = sizes_of(shape)
    own = (-1,) * (len(sizes) - self.ndim) + self.shape  # a new axis has no size to be left as it is
    sizes = tuple(n if m == -1 else m for n, m in zip(own, sizes)) if len(own) == len(sizes) else sizes
    if len(own) != len(sizes) or any(m < 0 or n not in (-1, 1, m) for n, m in zip(own, sizes)):
      fail(
        ShapeError,
        f"x.expand({', '.join(map(str, sizes))}): {self.shape} does not repeat to that: only axes of size 1 do",
        x=self,
      )
    return self._view(("repeated", sizes) if sizes != self.shape else ("same", None))

  def broadcast_to(self, *shape: Sizes) -> Tensor:
    """NumPy's name of `expand`."""
    return self.expand(*shape)

  def expand_as(self, other: Tensor) -> Tensor:
    """Expanded to the shape of other."""
    return self.expand(*other.shape)

  # ---------------------------------------------------------------- orders

  def _once(self, what: str, given: tuple[Sizes, ...], dims: Sizes | None) -> tuple[int, ...]:
    """Numbers that come as they are or by PyTorch's name."""
    if given and dims is not None:
      fail(ArgumentError, f"{what}: {sizes_of(given)} and dims={dims} are the same argument", x=self)
    return sizes_of(given if dims is None else (dims,))

  def permute(self, *order: Sizes, dims: Sizes | None = None) -> Tensor:
    """The axes in another order: axis i of the result is axis order[i]. dims: the order, by PyTorch's name.

    >>> Tensor.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    axes = tuple(self._axis(a, "permute") for a in self._once("permute", order, dims))
    if sorted(axes) != list(range(self.ndim)):
      fail(ShapeError, f"x.permute{axes}: that is no order of the {self.ndim} axes of x", x=self)
    return self._view(("order", axes))

  def transpose(self, dim0: int = 1, dim1: int = 0) -> Tensor:
    """Two axes exchanged."""
    a, b = self._axis(dim0, "transpose"), self._axis(dim1, "transpose")
    order = list(range(self.ndim))
    if order:
      order[a], order[b] = order[b], order[a]
    return self._view(("order", tuple(order)))

  def swapaxes(self, axis0: int, axis1: int) -> Tensor:
    """NumPy's name of `transpose`."""
    return self.transpose(axis0, axis1)

  def movedim(self, source: Sizes, destination: Sizes) -> Tensor:
    """Axes `source` moved to `destination`, the others in their order.

    >>> Tensor.zeros(2, 3, 4).movedim(0, -1).shape
    (3, 4, 2)
    """
    froms, tos = self._axes(source, "movedim"), self._axes(destination, "movedim")
    if len(froms) != len(tos):
      fail(ShapeError, f"movedim: {source} and {destination} are not equally many axes", x=self)
    there = dict(zip(tos, froms))
    rest = iter(a for a in range(self.ndim) if a not in froms)
    return self._view(("order", tuple(there[a] if a in there else next(rest) for a in range(self.ndim))))

  @property
  def T(self) -> Tensor:
    """With the axes in reverse order; of a matrix the transpose.

    >>> Tensor([[1, 2]]).T
    Tensor([[1],
            [2]])
    """
    return self._view(("order", tuple(reversed(range(self.ndim)))))

  def t(self) -> Tensor:
    """The transpose of a matrix; a vector stays as it is. ShapeError of more than two axes.

    >>> Tensor([[1, 2]]).t().shape
    (2, 1)
    """
    if self.ndim > 2:
      fail(ShapeError, f"t: x has {self.ndim} axes, more than two", "x.mT or x.T would fit", x=self)
    return self.T

  @property
  def mT(self) -> Tensor:
    """With the last two axes exchanged."""
    if self.ndim < 2:
      fail(ShapeError, "x.mT: x has fewer than two axes", x=self)
    return self.transpose(-1, -2)

  def flip(self, *axes: Sizes, dims: Sizes | None = None) -> Tensor:
    """Reversed along the axes, or dims; along all of them if none is given.

    >>> Tensor([1, 2, 3]).flip(0)
    Tensor([3, 2, 1])
    """
    given = self._once("flip", axes, dims)
    return self._new(graph.flip(self._node, self._axes(given if axes or dims is not None else None, "flip")))

  def roll(self, shifts: Sizes, dims: Sizes | None = None) -> Tensor:
    """Shifted along axes; what falls out at the end comes in at the beginning. Without dims: of the flattened tensor.

    >>> Tensor([1, 2, 3]).roll(1)
    Tensor([3, 1, 2])
    """
    if dims is None:
      flat: Any = self.flatten() if self.ndim else self.reshape(1)
      return flat.roll(shifts, 0).reshape(self.shape)
    by = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    axes = [self._axis_of_some("roll", a) for a in (dims if isinstance(dims, (tuple, list)) else (dims,))]
    if len(by) != len(axes):
      fail(ShapeError, f"roll: {len(by)} shifts for {len(axes)} axes", x=self)
    u = self._node
    for shift, a in zip(by, axes):
      n = graph.shape(u)[a]
      if n and shift % n:
        u = span(tiled(u, a, 2), a, n - shift % n, 2 * n - shift % n)
    return self._new(u)

  # ---------------------------------------------------------------- repeating

  def repeat(self, *repeats: Sizes) -> Tensor:
    """The whole tensor repeats[i] times along axis i; more repeats than axes put axes in front.

    >>> Tensor([1, 2]).repeat(2, 2)
    Tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    times = sizes_of(repeats)
    if len(times) < self.ndim:
      fail(ShapeError, f"repeat: {len(times)} repeats for the {self.ndim} axes of x", x=self)
    if any(n < 0 for n in times):
      fail(ShapeError, f"repeat: {times} times, of which one is negative", x=self)
    u = graph.reshape(self._node, (1,) * (len(times) - self.ndim) + self.shape)
    for a, n in enumerate(times):
      u = tiled(u, a, n)
    return self._new(u)

  def tile(self, *repeats: Sizes, dims: Sizes | None = None) -> Tensor:
    """NumPy's `repeat`: fewer repeats than axes count from the last axis on. dims: the repeats, by PyTorch's name."""
    times = self._once("tile", repeats, dims)
    return self.repeat((1,) * (self.ndim - len(times)) + times)

  def repeat_interleave(
    self, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None
  ) -> Tensor:
    """Every element `repeats` times along dim; without dim, of the flattened tensor.

    repeats: a number, or a vector of one for each element, whose values are computed at once, for the size.
    output_size: that size, if it is known: it is checked.

    >>> Tensor([1, 2]).repeat_interleave(2)
    Tensor([1, 1, 2, 2])
    """
    if dim is None:
      return self.reshape(-1).repeat_interleave(repeats, 0, output_size=output_size)
    a = self._axis(dim, "repeat_interleave")
    s = self.shape
    if not self.ndim:
      return self.reshape(1).repeat_interleave(repeats, 0, output_size=output_size)
    places = repeats if isinstance(repeats, int) else self._repeated(repeats, s[a])
    size = s[a] * places if isinstance(places, int) else places.numel()
    if size < 0 or output_size not in (None, size):
      message = f"repeat_interleave: {s[a]} elements {repeats} times are not {output_size}"
      fail(ArgumentError, message, x=self)
    if not isinstance(places, int):
      return self._new(self._node).index_select(a, places)
    u = graph.reshape(self._node, (*s[: a + 1], 1, *s[a + 1 :]))
    u = graph.expand(u, (*s[: a + 1], places, *s[a + 1 :]))
    return self._new(graph.reshape(u, (*s[:a], size, *s[a + 1 :])))

  def _repeated(self, repeats: Tensor, n: int) -> Tensor:
    """0 as often as the first number says, 1 as often as the second, and so on."""
    if repeats.shape not in ((), (1,), (n,)) or repeats.dtype.kind not in "iu":
      message = f"repeat_interleave: repeats is no integer for each of {n} elements"
      fail(ShapeError, message, x=self, repeats=repeats)
    counts = np.broadcast_to(repeats.numpy(), (n,))
    if (counts < 0).any():
      fail(ArgumentError, f"repeat_interleave: an element is repeated {counts.min()} times", x=self)
    return Handle._final(np.repeat(np.arange(n), counts), device=self.device)


# ---------------------------------------------------------------- on nodes


def tiled(u: UOp, axis: int, times: int) -> UOp:
  """The whole of an axis, several times."""
  s = graph.shape(u)
  if times == 1:
    return u
  u = graph.reshape(u, (*s[:axis], 1, *s[axis:]))
  return graph.reshape(
    graph.expand(u, (*s[:axis], times, *s[axis:])), (*s[:axis], times * s[axis], *s[axis + 1 :])
  )
