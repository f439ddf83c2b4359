"""Cutting and padding: parts of an axis, windows that slide along it, triangles and diagonals.

Axes, orders and repetition are in movement.py, from which the parts on nodes come.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from mini.gradient_rules import with_gradient
from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.tensor.data import Spans, sizes_of
from mini.tensor.errors import fail
from mini.tensor.movement import Movement, tiled
from mini.tensor.promotion import constant
from mini.tensor.views import Cut, around, span, spread, whole
from mini.types import ArgumentError, AxisError, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Cutting(Movement):
  """Parts of a tensor, and what is put around it."""

  # ---------------------------------------------------------------- padding and cutting

  def pad(
    self, pad: Sequence[int] | Sequence[Sequence[int]], mode: str = "constant", value: float = 0
  ) -> Tensor:
    """Elements put around it, or, where a width is negative, cut off.

    pad: (before, after) of the last axis, then of the one before it, as PyTorch's `F.pad`; or a pair for each axis.
    mode: "constant" (`value`), "reflect", "replicate" (the edge), "circular".

    >>> Tensor([1, 2]).pad((1, 2), value=9)
    Tensor([9, 1, 2, 9, 9])
    """
    widths = self._widths(pad, mode)
    if mode not in ("constant", "reflect", "replicate", "circular"):
      fail(
        ArgumentError, f'pad: mode is "constant", "reflect", "replicate" or "circular", not {mode!r}', x=self
      )
    if mode != "constant":
      out: Any = self
      for a, (before, after) in enumerate(widths):
        out = out._padded_from_itself(a, before, after, mode)
      return out
    s = self.shape
    u = graph.shrink(self._node, tuple((max(0, -lo), n - max(0, -hi)) for n, (lo, hi) in zip(s, widths)))
    widths = tuple((max(lo, 0), max(hi, 0)) for lo, hi in widths)
    padded = graph.pad(u, widths)
    if value == 0 or padded is u:
      return self._new(padded)
    inside = graph.pad(graph.full(graph.shape(u), True, dtypes.bool), widths)
    return self._alu("where", inside, padded, constant("pad", value, self.dtype, (self,)))

  def _widths(self, padding: Sequence[Any], mode: str) -> tuple[Any, ...]:
    if len(padding) and isinstance(padding[0], (tuple, list)):
      widths: tuple[Any, ...] = tuple(map(sizes_of, padding))
    else:
      pairs = [*map(sizes_of, zip(padding[::2], padding[1::2]))]
      widths = ((0, 0),) * (self.ndim - len(pairs)) + tuple(reversed(pairs))
      if len(padding) % 2:
        fail(ShapeError, f"pad: {len(padding)} widths are not pairs (before, after)", x=self)
    if len(widths) != self.ndim or any(
      n + (min(0, lo) + min(0, hi) if mode == "constant" else lo + hi) < 0
      for n, (lo, hi) in zip(self.shape, widths)
    ):
      fail(ShapeError, f"pad: the widths {tuple(padding)} do not fit the {self.ndim} axes of x", x=self)
    return widths

  def _padded_from_itself(self, axis: int, before: int, after: int, mode: str) -> Tensor:
    if not (before or after):
      return self._new(self._node)
    n, u = self.shape[axis], self._node
    if min(before, after) < 0:  # cut off: of a ring at first, elsewhere of what was put around
      cut = [(0, 0)] * axis + [(min(before, 0), min(after, 0))] + [(0, 0)] * (self.ndim - axis - 1)
      around_it = axis, max(before, 0), max(after, 0), mode
      return (
        self.pad(cut)._padded_from_itself(*around_it)
        if mode == "circular"
        else self._padded_from_itself(*around_it).pad(cut)
      )
    most = n - 1 if mode == "reflect" else n
    if n == 0 or (mode != "replicate" and max(before, after) > most):
      fail(ShapeError, f"pad: {mode} widths {before} and {after} do not fit an axis of size {n}", x=self)
    if mode == "circular":
      sides = span(u, axis, n - before, n), span(u, axis, 0, after)
    elif mode == "reflect":
      sides = (
        graph.flip(span(u, axis, 1, before + 1), (axis,)),
        graph.flip(span(u, axis, n - 1 - after, n - 1), (axis,)),
      )
    else:
      sides = tiled(span(u, axis, 0, 1), axis, before), tiled(span(u, axis, n - 1, n), axis, after)
    return self._new(graph.cat((sides[0], u, sides[1]), axis))

  def shrink(self, spans: Spans) -> Tensor:
    """[start, stop) of every axis; None: all of it.

    >>> Tensor([1, 2, 3, 4]).shrink(((1, 3),))
    Tensor([2, 3])
    """
    found = tuple((0, n) if s is None else (int(s[0]), int(s[1])) for s, n in zip(spans, self.shape))
    if len(spans) != self.ndim or any(not 0 <= lo <= hi <= n for (lo, hi), n in zip(found, self.shape)):
      fail(ShapeError, f"shrink: {tuple(spans)} does not lie within x", x=self)
    return self._view(("cut", tuple(Cut(n, lo, 1, hi - lo, False) for n, (lo, hi) in zip(self.shape, found))))

  def narrow(self, dim: int, start: int, length: int) -> Tensor:
    """`length` elements along dim, from start on."""
    a = self._axis_of_some("narrow", dim)
    if not hasattr(start, "__index__") or getattr(start, "dtype", None) is dtypes.bool:
      fail(DTypeError, f"narrow: start is an integer, not {start!r}", x=self)
    n, start = self.shape[a], int(start)
    start = start + n if start < 0 else start
    if not 0 <= start <= start + length <= n:
      fail(
        AxisError, f"narrow: {length} elements from {start} on do not lie within an axis of size {n}", x=self
      )
    return self._part(a, start, length)

  def _part(self, a: int, start: int, length: int) -> Tensor:
    """A view of elements along an axis."""
    return self._view(
      (
        "cut",
        tuple(Cut(n, start, 1, length, False) if b == a else whole(n) for b, n in enumerate(self.shape)),
      )
    )

  def select(self, dim: int, index: int) -> Tensor:
    """The element `index` along dim, without that axis."""
    a = self._axis_of_some("select", dim)
    n = self.shape[a]
    if not -n <= index < n:
      fail(AxisError, f"select: there is no element {index} along axis {a}, which has size {n}", x=self)
    return self.narrow(a, index, 1).squeeze(a)

  def split(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Cut along dim: into pieces of a size (the last may be smaller), or of these sizes.

    >>> [t.tolist() for t in Tensor.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    a = self._axis_of_some("split", dim)
    n = self.shape[a]
    sizes = split_size
    if isinstance(sizes, int):
      if sizes < 0 or (sizes < 1 and n):
        fail(ShapeError, f"split: pieces of size {sizes}", x=self)
      sizes = [min(sizes, n - i) for i in range(0, max(n, 1), max(sizes, 1))]
    if sum(sizes) != n:
      fail(
        ShapeError,
        f"split: the sizes {tuple(sizes)} add up to {sum(sizes)}, not to the {n} of axis {a}",
        x=self,
      )
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return tuple(self._part(a, end - n, n) for n, end in zip(sizes, ends))

  def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut along dim into at most `chunks` pieces, all of one size but for the last."""
    if chunks < 1:
      fail(ShapeError, f"chunk: {chunks} pieces", x=self)
    n = self.shape[self._axis_of_some("chunk", dim)]
    return (
      self.split(max(-(-n // chunks), 1), dim) if n else tuple(self._new(self._node) for _ in range(chunks))
    )

  def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
    """The elements along dim, as tensors without that axis."""
    return tuple(self.select(dim, i) for i in range(self.shape[self._axis_of_some("unbind", dim)]))

  def unfold(self, dimension: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements along an axis, `step` apart, as a new last axis.

    >>> Tensor.arange(5).unfold(0, 3, 2)
    Tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    a = self._axis(dimension, "unfold")
    n = self.shape[a] if self.ndim else 1
    if not 0 <= size <= n or step < 1:
      fail(ShapeError, f"unfold: no window of {size}, {step} apart, in an axis of size {n}", x=self)
    if not self.ndim:
      return self.reshape(1).narrow(0, 0, size)
    count = (n - size) // step + 1
    if count == 1 or not size:
      first = self.narrow(a, 0, size).movedim(a, -1).unsqueeze(a)
      return first if count == 1 else first.expand(*self.shape[:a], count, *self.shape[a + 1 :], 0)
    m = self.ndim
    order = (*range(a), a + 1, *range(a + 2, m + 1), a)
    if step == size:  # windows that lie one behind another
      s = self.shape
      part = self._part(a, 0, count * size)
      shape = *s[:a], count, size, *s[a + 1 :]
      return part._view(("shape", shape), ("order", (*range(a + 1), *range(a + 2, m + 1), a + 1)))

    def found(u: UOp) -> UOp:
      return graph.permute(windows(u, a, size, step), order)

    def strides(k: tuple[int, ...]) -> tuple[int, ...]:
      return (*k[:a], k[a] * step, *k[a + 1 :], k[a])

    return self._view(("computed", (found, strides)))

  # ---------------------------------------------------------------- triangles and diagonals

  def tril(self, diagonal: int = 0) -> Tensor:
    """Zeros above a diagonal of the last two axes.

    >>> Tensor.ones(2, 2, dtype="int64").tril()
    Tensor([[1, 0],
            [1, 1]])
    """
    return self._alu("where", self._below("tril", diagonal), self._node, const(0, self.dtype))

  def triu(self, diagonal: int = 0) -> Tensor:
    """Zeros below a diagonal of the last two axes."""
    return self._alu("where", self._below("triu", diagonal - 1), const(0, self.dtype), self._node)

  def _below(self, what: str, diagonal: int) -> UOp:
    """column - row <= diagonal, in this shape."""
    if self.ndim < 2:
      fail(ShapeError, f"{what}: x has fewer than two axes", x=self)
    return graph.expand_to(below(self.shape[-2], self.shape[-1], diagonal), self.shape)

  def diag(self, diagonal: int = 0) -> Tensor:
    """Of a vector the matrix with it on a diagonal; of a matrix that diagonal."""
    if self.ndim not in (1, 2):
      fail(ShapeError, "diag: x is neither a vector nor a matrix", x=self)
    return self.diagonal(diagonal).clone() if self.ndim == 2 else self.diag_embed(diagonal)

  def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal of two axes, as the last axis.

    >>> Tensor([[1, 2], [3, 4]]).diagonal()
    Tensor([1, 4])
    """
    if self.ndim < 2:
      fail(ShapeError, "diagonal: x has fewer than two axes", x=self)
    x = self.movedim((dim1, dim2), (-2, -1))
    n, m = x.shape[-2:]
    size = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    starts = (max(-offset, 0), max(offset, 0)) if size else (0, 0)
    square = (Cut(k, start, 1, size, False) for k, start in zip((n, m), starts))
    return x._view(("cut", (*map(whole, x.shape[:-2]), *square)), ("diagonal", None))

  def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, as the axes dim1 and dim2, with the last axis on a diagonal and zeros elsewhere."""
    if not self.shape:
      fail(AxisError, "diag_embed: x has no axis to lay on a diagonal", x=self)
    *s, n = self.shape
    size = n + abs(offset)
    x = graph.reshape(self._node, (*s, n, 1) if offset >= 0 else (*s, 1, n))
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


# ---------------------------------------------------------------- on nodes


def windows(u: UOp, axis: int, size: int, step: int = 1, dilation: int = 1) -> UOp:
  """Windows of an axis: axis becomes two, (offset within the window, which window).

  [.., n, ..] -> [.., size, count, ..]

  By views alone: the axis repeated with a period of n + dilation, so that every repetition starts one element later.
  """
  s = graph.shape(u)
  n, before, after = s[axis], s[:axis], s[axis + 1 :]
  count = (n - dilation * (size - 1) - 1) // step + 1
  if count == 1:  # the step leads nowhere, and may be longer than the axis
    step = size if dilation == 1 else 1
  if dilation == 1 and step == size:
    u = graph.reshape(span(u, axis, 0, count * size), (*before, count, size, *after))
    return graph.permute(u, (*range(axis), axis + 1, axis, *range(axis + 2, len(s) + 1)))
  period = n + dilation if count * step <= n + dilation else 2 * n + dilation
  out = span(tiled(u, axis, -(-size * period // n)), axis, 0, size * period)
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
  kind = graph.counter(n, m)
  row, column = graph.reshape(graph.iota(n, kind), (n, 1)), graph.reshape(graph.iota(m, kind), (1, m))
  return graph.expand(row, (n, m)), graph.expand(column, (n, m))


def below(n: int, m: int, diagonal: int) -> UOp:
  """column - row <= diagonal.   -> bool[n, m]"""
  row, column = _grid(n, m)
  return graph.alu("lt", column, graph.alu("add", row, const(diagonal + 1, row.dtype)))


def equals_offset(row: UOp, column: UOp, offset: int) -> UOp:
  """column - row == offset."""
  differs = graph.alu("ne", column, graph.alu("add", row, const(offset, row.dtype)))
  return graph.alu("xor", differs, const(True, dtypes.bool))
