"""Movement: other shapes and orders of the same elements. All of it but `cat` is views: nothing is copied.

Axes may count from the end; `dim=` may be written `axis=` by position. Sizes are given as a tuple or as several ints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

from mini.engine.shards import sharded
from mini.given import with_gradient
from mini.ir import graph
from mini.ir.sizes import filled, varies
from mini.ir.uop import UOp, const
from mini.tensor.activations import Activations
from mini.tensor.data import Sizes, Spans, complex_numbers, device_named, sizes_of
from mini.tensor.errors import fail, named, spelled
from mini.tensor.handle import Handle, needs, on_device, untagged
from mini.tensor.promotion import result_type
from mini.tensor.trace import local
from mini.types import DType, DTypeError, ShapeError, as_dtype, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


def strided(u: UOp, axis: int, step: int) -> UOp:
  """Every step-th element along an axis, from the first on."""
  s = graph.shape(u)
  count = -(-s[axis] // step)
  u = graph.pad(u, around(s, axis, 0, count * step - s[axis]))
  u = graph.reshape(u, (*s[:axis], count, step, *s[axis + 1 :]))
  u = graph.shrink(u, tuple((0, 1 if a == axis + 1 else n) for a, n in enumerate(graph.shape(u))))
  return graph.reshape(u, (*s[:axis], count, *s[axis + 1 :]))


def spread(u: UOp, axis: int, step: int, size: int) -> UOp:
  """The inverse of `strided`: zeros between the elements, so that the axis has `size`."""
  s = graph.shape(u)
  u = graph.reshape(u, (*s[: axis + 1], 1, *s[axis + 1 :]))
  u = graph.pad(u, around(graph.shape(u), axis + 1, 0, step - 1))
  u = graph.reshape(u, (*s[:axis], s[axis] * step, *s[axis + 1 :]))
  if s[axis] * step < size:
    return graph.pad(u, around(graph.shape(u), axis, 0, size - s[axis] * step))
  return graph.shrink(u, tuple((0, size if a == axis else n) for a, n in enumerate(graph.shape(u))))


def around(s: Sequence[int], axis: int, before: int, after: int) -> tuple[tuple[int, int], ...]:
  """Widths that pad one axis."""
  return tuple((before, after) if a == axis else (0, 0) for a in range(len(s)))


def span(u: UOp, axis: int, start: int, stop: int) -> UOp:
  """Elements start..stop-1 along an axis."""
  return graph.shrink(u, tuple((start, stop) if a == axis else (0, n) for a, n in enumerate(graph.shape(u))))


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
      about = f"x.reshape({', '.join(map(str, sizes))}): x has {has}, which do not fill that shape"
      fail(ShapeError, about, x=self)
    return self._new(graph.reshape(self.uop, found))

  def view(self, *shape: Sizes) -> Tensor:
    """`reshape`: here a view never fails, and never aliases."""
    return self.reshape(*shape)

  def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes start_dim..end_dim, both included, as one.

    >>> Tensor.zeros(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    a, b = self._axis(start_dim, "flatten"), self._axis(end_dim, "flatten")
    if a > b:
      fail(ShapeError, f"flatten: start_dim {start_dim} lies behind end_dim {end_dim}", x=self)
    return self._new(
      graph.reshape(self.uop, (*self.shape[:a], prod(self.shape[a : b + 1]), *self.shape[b + 1 :]))
    )

  def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
    """One axis as several; a size of -1 is what is left.

    >>> Tensor.zeros(2, 12).unflatten(1, (3, -1)).shape
    (2, 3, 4)
    """
    a = self._axis(dim, "unflatten")
    return self.reshape(*self.shape[:a], *(self._left(sizes, self.shape[a])), *self.shape[a + 1 :])

  @staticmethod
  def _left(sizes: Sequence[int], total: int) -> tuple[int, ...]:
    rest = prod(n for n in sizes if n != -1)
    return tuple(total // rest if n == -1 and rest else n for n in sizes)

  def squeeze(self, dim: Sizes | None = None) -> Tensor:
    """Without the axes of size 1: all of them, or of those in dim.

    >>> Tensor.zeros(1, 2, 1).squeeze().shape
    (2,)
    """
    axes = self._axes(dim, "squeeze")
    return self._new(
      graph.reshape(self.uop, tuple(n for a, n in enumerate(self.shape) if n != 1 or a not in axes))
    )

  def unsqueeze(self, dim: int) -> Tensor:
    """With an axis of size 1 put in at dim."""
    a = self._axis(dim, "unsqueeze", self.ndim + 1)
    return self._new(graph.reshape(self.uop, (*self.shape[:a], 1, *self.shape[a:])))

  def expand(self, *shape: Sizes) -> Tensor:
    """Axes of size 1 repeated, new ones put in front. -1 leaves a size as it is.

    >>> Tensor([[1], [2]]).expand(2, 3)
    Tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    sizes = sizes_of(shape)
    own = (1,) * (len(sizes) - self.ndim) + self.shape
    sizes = tuple(n if m == -1 else m for n, m in zip(own, sizes)) if len(own) == len(sizes) else sizes
    if len(own) != len(sizes) or any(n not in (1, m) for n, m in zip(own, sizes)):
      fail(
        ShapeError,
        f"x.expand({', '.join(map(str, sizes))}): {self.shape} does not repeat to that: only axes of size 1 do",
        x=self,
      )
    return self._new(graph.expand_to(self.uop, sizes))

  def broadcast_to(self, *shape: Sizes) -> Tensor:
    """NumPy's name of `expand`."""
    return self.expand(*shape)

  def expand_as(self, other: Tensor) -> Tensor:
    """Expanded to the shape of other."""
    return self.expand(*other.shape)

  # ---------------------------------------------------------------- orders

  def permute(self, *order: Sizes) -> Tensor:
    """The axes in another order: axis i of the result is axis order[i].

    >>> Tensor.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    axes = tuple(self._axis(a, "permute") for a in sizes_of(order))
    if sorted(axes) != list(range(self.ndim)):
      fail(ShapeError, f"x.permute{axes}: that is no order of the {self.ndim} axes of x", x=self)
    return self._new(graph.permute(self.uop, axes))

  def transpose(self, dim0: int = 1, dim1: int = 0) -> Tensor:
    """Two axes exchanged."""
    a, b = self._axis(dim0, "transpose"), self._axis(dim1, "transpose")
    order = list(range(self.ndim))
    if order:
      order[a], order[b] = order[b], order[a]
    return self._new(graph.permute(self.uop, tuple(order)))

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
    return self._new(
      graph.permute(self.uop, tuple(there[a] if a in there else next(rest) for a in range(self.ndim)))
    )

  @property
  def T(self) -> Tensor:
    """With the axes in reverse order; of a matrix the transpose.

    >>> Tensor([[1, 2]]).T
    Tensor([[1],
            [2]])
    """
    return self._new(graph.permute(self.uop, tuple(reversed(range(self.ndim)))))

  @property
  def mT(self) -> Tensor:
    """With the last two axes exchanged."""
    if self.ndim < 2:
      fail(ShapeError, "x.mT: x has fewer than two axes", x=self)
    return self.transpose(-1, -2)

  def flip(self, *dims: Sizes) -> Tensor:
    """Reversed along the axes dims; along all of them if none is given.

    >>> Tensor([1, 2, 3]).flip(0)
    Tensor([3, 2, 1])
    """
    axes = self._axes(sizes_of(dims) if dims else None, "flip")
    return self._new(graph.flip(self.uop, axes))

  def roll(self, shifts: Sizes, dims: Sizes | None = None) -> Tensor:
    """Shifted along axes; what falls out at the end comes in at the beginning. Without dims: of the flattened tensor.

    >>> Tensor([1, 2, 3]).roll(1)
    Tensor([3, 1, 2])
    """
    if dims is None:
      flat: Any = self.flatten() if self.ndim else self.reshape(1)
      return flat.roll(shifts, 0).reshape(self.shape)
    by = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    axes = [self._axis(a, "roll") for a in (dims if isinstance(dims, (tuple, list)) else (dims,))]
    if len(by) != len(axes):
      fail(ShapeError, f"roll: {len(by)} shifts for {len(axes)} axes", x=self)
    u = self.uop
    for shift, a in zip(by, axes):
      n = graph.shape(u)[a]
      if n and shift % n:
        u = span(_tiled(u, a, 2), a, n - shift % n, 2 * n - shift % n)
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
    u = graph.reshape(self.uop, (1,) * (len(times) - self.ndim) + self.shape)
    for a, n in enumerate(times):
      u = _tiled(u, a, n)
    return self._new(u)

  def tile(self, *repeats: Sizes) -> Tensor:
    """NumPy's `repeat`: fewer repeats than axes count from the last axis on."""
    times = sizes_of(repeats)
    return self.repeat((1,) * (self.ndim - len(times)) + times)

  def repeat_interleave(self, repeats: int, dim: int | None = None) -> Tensor:
    """Every element `repeats` times along dim; without dim, of the flattened tensor.

    >>> Tensor([1, 2]).repeat_interleave(2)
    Tensor([1, 1, 2, 2])
    """
    if dim is None:
      return self.reshape(-1).repeat_interleave(repeats, 0)
    a = self._axis(dim, "repeat_interleave")
    s = self.shape
    u = graph.reshape(self.uop, (*s[: a + 1], 1, *s[a + 1 :]))
    u = graph.expand(u, (*s[: a + 1], repeats, *s[a + 1 :]))
    return self._new(graph.reshape(u, (*s[:a], s[a] * repeats, *s[a + 1 :])))

  # ---------------------------------------------------------------- padding and cutting

  def pad(
    self, padding: Sequence[int] | Sequence[Sequence[int]], mode: str = "constant", value: float = 0
  ) -> Tensor:
    """Elements put around it, or, where a width is negative, cut off.

    padding: (before, after) of the last axis, then of the one before it, as PyTorch's `F.pad`; or a pair for each axis.
    mode: "constant" (`value`), "reflect", "replicate" (the edge), "circular".

    >>> Tensor([1, 2]).pad((1, 2), value=9)
    Tensor([9, 1, 2, 9, 9])
    """
    widths = self._widths(padding)
    if mode not in ("constant", "reflect", "replicate", "circular"):
      fail(ValueError, f'pad: mode is "constant", "reflect", "replicate" or "circular", not {mode!r}', x=self)
    if mode != "constant":
      out: Any = self
      for a, (before, after) in enumerate(widths):
        out = out._padded_from_itself(a, before, after, mode)
      return out
    s = self.shape
    u = graph.shrink(self.uop, tuple((max(0, -lo), n - max(0, -hi)) for n, (lo, hi) in zip(s, widths)))
    widths = tuple((max(lo, 0), max(hi, 0)) for lo, hi in widths)
    padded = graph.pad(u, widths)
    if value == 0 or padded is u:
      return self._new(padded)
    inside = graph.pad(graph.full(graph.shape(u), True, dtypes.bool), widths)
    return self._alu("where", inside, padded, const(value, self.dtype))

  def _widths(self, padding: Sequence[Any]) -> tuple[Any, ...]:
    if len(padding) and isinstance(padding[0], (tuple, list)):
      widths: tuple[Any, ...] = tuple(map(sizes_of, padding))
    else:
      pairs = [*map(sizes_of, zip(padding[::2], padding[1::2]))]
      widths = ((0, 0),) * (self.ndim - len(pairs)) + tuple(reversed(pairs))
      if len(padding) % 2:
        fail(ShapeError, f"pad: {len(padding)} widths are not pairs (before, after)", x=self)
    if len(widths) != self.ndim or any(
      n + min(0, lo) + min(0, hi) < 0 for n, (lo, hi) in zip(self.shape, widths)
    ):
      fail(ShapeError, f"pad: the widths {tuple(padding)} do not fit the {self.ndim} axes of x", x=self)
    return widths

  def _padded_from_itself(self, axis: int, before: int, after: int, mode: str) -> Tensor:
    if not (before or after):
      return self._new(self.uop)
    n, u = self.shape[axis], self.uop
    most = n - 1 if mode == "reflect" else n
    if n == 0 or min(before, after) < 0 or (mode != "replicate" and max(before, after) > most):
      fail(ShapeError, f"pad: {mode} widths {before} and {after} do not fit an axis of size {n}", x=self)
    if mode == "circular":
      sides = span(u, axis, n - before, n), span(u, axis, 0, after)
    elif mode == "reflect":
      sides = (
        graph.flip(span(u, axis, 1, before + 1), (axis,)),
        graph.flip(span(u, axis, n - 1 - after, n - 1), (axis,)),
      )
    else:
      sides = _tiled(span(u, axis, 0, 1), axis, before), _tiled(span(u, axis, n - 1, n), axis, after)
    return self._new(graph.cat((sides[0], u, sides[1]), axis))

  def shrink(self, spans: Spans) -> Tensor:
    """[start, stop) of every axis; None: all of it.

    >>> Tensor([1, 2, 3, 4]).shrink(((1, 3),))
    Tensor([2, 3])
    """
    found = tuple((0, n) if s is None else (int(s[0]), int(s[1])) for s, n in zip(spans, self.shape))
    if len(spans) != self.ndim or any(not 0 <= lo <= hi <= n for (lo, hi), n in zip(found, self.shape)):
      fail(ShapeError, f"shrink: {tuple(spans)} does not lie within x", x=self)
    return self._new(graph.shrink(self.uop, found))

  def narrow(self, dim: int, start: int, length: int) -> Tensor:
    """`length` elements along dim, from start on."""
    a = self._axis(dim, "narrow")
    n = self.shape[a]
    start = start + n if start < 0 else start
    if not 0 <= start <= start + length <= n:
      fail(
        ShapeError, f"narrow: {length} elements from {start} on do not lie within an axis of size {n}", x=self
      )
    return self._new(span(self.uop, a, start, start + length))

  def select(self, dim: int, index: int) -> Tensor:
    """The element `index` along dim, without that axis."""
    a = self._axis(dim, "select")
    return self.narrow(a, index, 1).squeeze(a)

  def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Cut along dim: into pieces of a size (the last may be smaller), or of these sizes.

    >>> [t.tolist() for t in Tensor.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    a = self._axis(dim, "split")
    n = self.shape[a]
    if isinstance(sizes, int):
      if sizes < 1:
        fail(ShapeError, f"split: pieces of size {sizes}", x=self)
      sizes = [min(sizes, n - i) for i in range(0, max(n, 1), sizes)]
    if sum(sizes) != n:
      fail(
        ShapeError,
        f"split: the sizes {tuple(sizes)} add up to {sum(sizes)}, not to the {n} of axis {a}",
        x=self,
      )
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return tuple(self._new(span(self.uop, a, end - n, end)) for n, end in zip(sizes, ends))

  def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut along dim into at most `chunks` pieces, all of one size but for the last."""
    if chunks < 1:
      fail(ShapeError, f"chunk: {chunks} pieces", x=self)
    n = self.shape[self._axis(dim, "chunk")]
    return (
      self.split(max(-(-n // chunks), 1), dim) if n else tuple(self._new(self.uop) for _ in range(chunks))
    )

  def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
    """The elements along dim, as tensors without that axis."""
    return tuple(self.select(dim, i) for i in range(self.shape[self._axis(dim, "unbind")]))

  def unfold(self, dim: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements along dim, `step` apart, as a new last axis.

    >>> Tensor.arange(5).unfold(0, 3, 2)
    Tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    a = self._axis(dim, "unfold")
    if size > self.shape[a] or step < 1:
      fail(
        ShapeError, f"unfold: no window of {size}, {step} apart, in an axis of size {self.shape[a]}", x=self
      )
    s = self.ndim
    order = (*range(a), a + 1, *range(a + 2, s + 1), a)
    return self._new(graph.permute(windows(self.uop, a, size, step), order))

  # ---------------------------------------------------------------- triangles and diagonals

  def tril(self, diagonal: int = 0) -> Tensor:
    """Zeros above a diagonal of the last two axes.

    >>> Tensor.ones(2, 2, dtype="int64").tril()
    Tensor([[1, 0],
            [1, 1]])
    """
    return self._alu("where", self._below("tril", diagonal), self.uop, const(0, self.dtype))

  def triu(self, diagonal: int = 0) -> Tensor:
    """Zeros below a diagonal of the last two axes."""
    return self._alu("where", self._below("triu", diagonal - 1), const(0, self.dtype), self.uop)

  def _below(self, what: str, diagonal: int) -> UOp:
    """column - row <= diagonal, in this shape."""
    if self.ndim < 2:
      fail(ShapeError, f"{what}: x has fewer than two axes", x=self)
    return graph.expand_to(below(self.shape[-2], self.shape[-1], diagonal), self.shape)

  def diag(self, diagonal: int = 0) -> Tensor:
    """Of a vector the matrix with it on a diagonal; of a matrix that diagonal."""
    if self.ndim not in (1, 2):
      fail(ShapeError, "diag: x is neither a vector nor a matrix", x=self)
    return self.diagonal(diagonal) if self.ndim == 2 else self.diag_embed(diagonal)

  def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal of two axes, as the last axis.

    >>> Tensor([[1, 2], [3, 4]]).diagonal()
    Tensor([1, 4])
    """
    if self.ndim < 2:
      fail(ShapeError, "diagonal: x has fewer than two axes", x=self)
    x = self.movedim((dim1, dim2), (-2, -1)).uop
    *_, n, m = graph.shape(x)
    last = len(graph.shape(x)) - 1
    size = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    x = span(x, last - 1, max(-offset, 0), max(-offset, 0) + size) if size else span(x, last - 1, 0, 0)
    x = span(x, last, max(offset, 0), max(offset, 0) + size) if size else span(x, last, 0, 0)
    s = graph.shape(x)[:-2]
    flat = graph.reshape(x, (*s, size * size))  # the diagonal has every size+1-th element
    flat = graph.pad(flat, around(graph.shape(flat), len(s), 0, size))
    return self._new(
      graph.reshape(span(graph.reshape(flat, (*s, size, size + 1)), len(s) + 1, 0, 1), (*s, size))
    )

  def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, as the axes dim1 and dim2, with the last axis on a diagonal and zeros elsewhere."""
    *s, n = self.shape
    size = n + abs(offset)
    x = graph.reshape(self.uop, (*s, n, 1) if offset >= 0 else (*s, 1, n))
    side = len(s) if offset >= 0 else len(s) + 1
    x = graph.pad(x, around(graph.shape(x), side, 0, abs(offset)))
    row, column = _grid(size, size)
    on = equals_offset(row, column, offset)
    out = self._alu(
      "where",
      graph.expand_to(on, (*s, size, size)),
      graph.expand_to(x, (*s, size, size)),
      const(0, self.dtype),
    )
    return out.movedim((-2, -1), (dim1, dim2))

  # ---------------------------------------------------------------- joining

  @staticmethod
  def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`cat`: another name."""
    return Movement._joined(tensors, dim)

  def cat(self: Any, *others: Any, dim: int = 0) -> Tensor:
    """Tensors one after another along dim, in one memory: `Tensor.cat([a, b], dim=0)` or `a.cat(b)`.

    Types promote. ShapeError if the other axes differ.

    >>> Tensor.cat([Tensor([1]), Tensor([2, 3])])
    Tensor([1, 2, 3])
    """
    tensors, dim = _several(self, others, dim)
    return Movement._joined(tensors, dim)

  @staticmethod
  def _joined(tensors: Sequence[Any], dim: int) -> Tensor:
    if any(t._complex for t in tensors):
      return complex_numbers().cat(tensors, dim)
    first = tensors[0]
    a = first._axis(dim, "cat")
    names = named(tensors)
    for t in tensors:
      if not t.shape:
        fail(ShapeError, "cat: a 0-d tensor has no axis to be joined along; Tensor.stack makes one", **names)
      if t.ndim != first.ndim or any(n != m for b, (n, m) in enumerate(zip(first.shape, t.shape)) if b != a):
        fail(
          ShapeError,
          f"cat: {spelled(t)} does not go behind {spelled(first)} along axis {a}: the other axes differ",
          **names,
        )
    kind = _promoted("cat", tensors)
    return Handle._new(graph.cat(tuple(graph.cast(t.uop, kind) for t in tensors), a))

  def stack(self: Any, *others: Any, dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis: `Tensor.stack([a, b], dim=0)` or `a.stack(b)`.

    >>> Tensor.stack([Tensor([1, 2]), Tensor([3, 4])], dim=1)
    Tensor([[1, 3],
            [2, 4]])
    """
    tensors, dim = _several(self, others, dim)
    for t in tensors:
      if t.shape != tensors[0].shape:
        fail(ShapeError, "stack: the shapes differ", **named(tensors))
    return Movement._joined(
      [t.unsqueeze(tensors[0]._axis(dim, "stack", tensors[0].ndim + 1)) for t in tensors], dim
    )

  @staticmethod
  def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side: along axis 1, vectors along axis 0."""
    return Movement._joined(tensors, 0 if tensors[0].ndim == 1 else 1)

  @staticmethod
  def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """One below another: along axis 0, vectors as rows."""
    return Movement._joined([t.reshape(1, -1) if t.ndim == 1 else t for t in tensors], 0)

  @staticmethod
  def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid from the vectors of its axes; indexing "ij" or "xy".

    >>> [t.tolist() for t in Tensor.meshgrid(Tensor([1, 2]), Tensor([3, 4]))]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    if wrong := [t for t in tensors if t.ndim > 1]:
      fail(ShapeError, "meshgrid: each axis is a vector, and x is none", x=wrong[0])
    if indexing not in ("ij", "xy"):
      fail(ValueError, f'meshgrid: indexing is "ij" or "xy", not {indexing!r}')
    shape = tuple(t.numel() for t in tensors)
    grids = [
      t.reshape([-1 if b == a else 1 for b in range(len(shape))]).expand(shape) for a, t in enumerate(tensors)
    ]
    return tuple(g.transpose(0, 1) for g in grids) if indexing == "xy" and len(grids) > 1 else tuple(grids)

  # ---------------------------------------------------------------- memory

  def contiguous(self) -> Tensor:
    """In memory of its own when it is computed: not recomputed by those who use it."""
    return self._new(graph.stage(self.uop))

  def clone(self) -> Tensor:
    """Another handle with the same values; tensors are values, so nothing is copied."""
    return self._new(self.uop)

  def to(self, *args: Any, **kwargs: Any) -> Tensor:
    """On another device, of another type, or both: `x.to("CPU:1")`, `x.to(dtypes.float16)`, `x.to("CPU",
    dtypes.float16)`; `x.to(y)` is y's device and type. A gradient goes back the same way. DeviceError where there is no
    such device.

    >>> Tensor([1.0, 2.0]).to("cpu:1", dtypes.float64).device
    'CPU:1'
    """
    device, kind = wanted_of(args, kwargs)
    if kind is not None and kind.kind == "c":
      return self.cast(kind) if device is None else self.cast(kind).to(device)  # type: ignore[attr-defined]
    u = self.uop if kind is None else graph.cast(self.uop, kind)
    return self._new(u if device is None else on_device(u, device))

  def shard(self, devices: Sequence[str], axis: int | None = None) -> Tensor:
    """On several devices: a part along axis on each, or, without axis, all of it on each.

    What is computed of it is computed there, and is on these devices again; shapes and values are those of the whole.
    Sizes need not divide: the first parts are larger by 1. Training on several devices is a batch in parts and
    parameters that are whole on each: each device computes its share of the gradients, which are added up once for all
    parameters of an optimizer (n * (n - 1) copies between n devices), and steps for itself. A sum over `axis` copies
    its result; what needs several parts at once (`flip`, `cumsum` or `cat` along axis, a shape in which the parts do
    not lie one behind another) copies all of them to every device first.

    ShapeError if there are more devices than elements along axis.

    >>> x = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).shard(("CPU", "CPU:1"), 0)
    >>> x.shape, x.device, x.sum(0)
    ((3, 2), ('CPU', 'CPU:1'), Tensor([ 9., 12.]))
    """
    names = device_named(tuple(devices))
    if isinstance(names, str):
      return self.to(names)
    a = None if axis is None else self._axis(axis, "shard")
    if a is not None and (not self.shape or self.shape[a] < len(names)):
      few = f"axis {axis} of x has no element for each of {len(names)} devices"
      fail(ShapeError, f"x.shard(devices, {axis}): {few}", x=self)
    leaf = self._leaf()
    if leaf is not None and isinstance(self.device, str) and local.current is None and not needs(self._uop):
      parts = sharded(leaf.arg[0], self.shape, names, a)  # at once: it is sent once, however often it is used
      return self._new(graph.buffer(parts, self.shape, self.dtype))
    return self._new(graph.copy(self.uop, names) if a is None else graph.shard(self.uop, a, names))

  def shard_(self, devices: Sequence[str], axis: int | None = None) -> Tensor:
    """`shard` of this tensor itself. A leaf that requires a gradient stays one, and its gradient comes there, too.

    >>> w = Tensor([1.0, 2.0], requires_grad=True).shard_(("CPU", "CPU:1"))
    >>> (w * w).sum().backward()
    >>> w.grad.device
    ('CPU', 'CPU:1')
    """
    if not self._is_own_tag():
      return self.replace(self.shard(devices, axis))
    self._tag(self._new(untagged(self.uop)).shard(devices, axis).uop)
    return self  # type: ignore[return-value]

  def cpu(self) -> Tensor:
    """On the CPU."""
    return self.to("CPU")

  def cuda(self, index: int = 0) -> Tensor:
    """On a CUDA device, by its number."""
    return self.to(f"CUDA:{index}")


# ---------------------------------------------------------------- on nodes


def wanted_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, DType | None]:
  """(device, type) that `to` is asked for, each None if it is not: in any order, or those of a tensor."""
  device, kind = None, None
  for x in (*args, *kwargs.values()):
    if isinstance(x, Handle):
      device, kind = x.device, x.dtype
    elif isinstance(x, (tuple, list)) or (isinstance(x, str) and not hasattr(dtypes, x)):
      device = device_named(x)
    elif x is not None and not isinstance(x, bool):
      kind = as_dtype(x)
  return device, kind


def _several(first: Any, others: tuple[Any, ...], dim: int) -> tuple[list[Any], int]:
  """`Tensor.cat([a, b], 1)` and `a.cat(b, dim=1)` alike."""
  if isinstance(first, Handle):
    tensors = [first, *(t for o in others for t in (o if isinstance(o, (list, tuple)) else [o]))]
  else:
    tensors = list(first)
    dim = others[0] if others else dim
  if not tensors:
    fail(ShapeError, "cat: there are no tensors to join")
  for t in tensors:
    if not isinstance(t, Handle):
      fail(DTypeError, f"cat: {t!r} is no tensor")
  return tensors, dim


def _promoted(what: str, tensors: Sequence[Handle]) -> Any:
  try:
    return result_type(*tensors)
  except DTypeError as e:
    fail(DTypeError, f"{what}: {e}", **named(tensors))


def _tiled(u: UOp, axis: int, times: int) -> UOp:
  """The whole of an axis, several times."""
  s = graph.shape(u)
  if times == 1:
    return u
  u = graph.reshape(u, (*s[:axis], 1, *s[axis:]))
  return graph.reshape(
    graph.expand(u, (*s[:axis], times, *s[axis:])), (*s[:axis], times * s[axis], *s[axis + 1 :])
  )


def windows(u: UOp, axis: int, size: int, step: int = 1, dilation: int = 1) -> UOp:
  """Windows of an axis: axis becomes two, (offset within the window, which window).

  [.., n, ..] -> [.., size, count, ..]

  By views alone: the axis repeated with a period of n + dilation, so that every repetition starts one element later.
  """
  s = graph.shape(u)
  n, before, after = s[axis], s[:axis], s[axis + 1 :]
  count = (n - dilation * (size - 1) - 1) // step + 1
  if dilation == 1 and step == size:
    u = graph.reshape(span(u, axis, 0, count * size), (*before, count, size, *after))
    return graph.permute(u, (*range(axis), axis + 1, axis, *range(axis + 2, len(s) + 1)))
  period = n + dilation if count * step <= n + dilation else 2 * n + dilation
  out = span(_tiled(u, axis, -(-size * period // n)), axis, 0, size * period)
  out = span(graph.reshape(out, (*before, size, period, *after)), axis + 1, 0, count * step)
  out = graph.reshape(out, (*before, size, count, step, *after))
  out = graph.reshape(span(out, axis + 2, 0, 1), (*before, size, count, *after))
  if size == 1 or u.dtype.kind != "f":
    return out
  return with_gradient(out, lambda g, out, u: (overlapped(g, axis, n, step, dilation),), u)


def overlapped(g: UOp, axis: int, n: int, step: int = 1, dilation: int = 1) -> UOp:
  """The transpose of `windows`: what was taken from one place, added up there.   [.., size, count, ..] -> [.., n, ..]

  Offsets that differ by a multiple of the step meet; so many sums stand between one another in the result.
  """
  if dilation > 1 and step > 1:
    g, step = spread(g, axis + 1, step, (graph.shape(g)[axis + 1] - 1) * step + 1), 1
  s = graph.shape(g)
  taps = -(-s[axis] // step)
  g = graph.pad(g, around(s, axis, 0, taps * step - s[axis]))
  g = graph.reshape(g, (*s[:axis], taps, step, *s[axis + 1 :]))
  terms = [span(g, axis, q, q + 1) for q in range(taps)]
  last = dilation * (taps - 1)
  placed = [
    graph.pad(t, around(graph.shape(t), axis + 2, dilation * q, last - dilation * q))
    for q, t in enumerate(terms)
  ]
  total = reduce(lambda a, b: graph.alu("add", a, b), placed)
  blocks = s[axis + 1] + last
  order = (*range(axis), axis, axis + 2, axis + 1, *range(axis + 3, len(s) + 1))
  out = graph.reshape(graph.permute(total, order), (*s[:axis], blocks * step, *s[axis + 2 :]))
  out = span(out, axis, 0, min(n, blocks * step))
  return graph.pad(out, around(graph.shape(out), axis, 0, n - graph.shape(out)[axis]))


def _grid(n: int, m: int) -> tuple[UOp, UOp]:
  """Row and column numbers of an n x m matrix."""
  row, column = graph.reshape(graph.iota(n), (n, 1)), graph.reshape(graph.iota(m), (1, m))
  return graph.expand(row, (n, m)), graph.expand(column, (n, m))


def below(n: int, m: int, diagonal: int) -> UOp:
  """column - row <= diagonal.   -> bool[n, m]"""
  row, column = _grid(n, m)
  return graph.alu("lt", column, graph.alu("add", row, const(diagonal + 1, row.dtype)))


def equals_offset(row: UOp, column: UOp, offset: int) -> UOp:
  """column - row == offset."""
  differs = graph.alu("ne", column, graph.alu("add", row, const(offset, row.dtype)))
  return graph.alu("xor", differs, const(True, dtypes.bool))
