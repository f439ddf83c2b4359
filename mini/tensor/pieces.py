"""Tensors put together and taken apart by PyTorch's other names: stacks, splits, grids, and values put into a part.

All of it is made of methods of other families, and has their gradients.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.tensor.data import Operand, Scalar, Sizes, sizes_of
from mini.tensor.errors import fail, named
from mini.tensor.handle import Handle
from mini.tensor.promotion import broadcast_shape
from mini.tensor.spectral import Spectral
from mini.types import ArgumentError, DTypeError, ShapeError, as_dtype, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Pieces(Spectral):
  """atleast_1d, column_stack, tensor_split, block_diag, select_scatter and the like."""

  # ---------------------------------------------------------------- axes

  def atleast_1d(self: Any, *others: Tensor) -> Any:
    """With one axis at least: of one tensor, or of several or a list of them as a tuple.

    >>> Tensor(3).atleast_1d()
    Tensor([3])
    """
    return _each(self, others, lambda t: t if t.ndim else t.reshape(1))

  def atleast_2d(self: Any, *others: Tensor) -> Any:
    """With two axes at least, of a vector as a row; see `atleast_1d`."""
    return _each(self, others, lambda t: t if t.ndim > 1 else t.reshape(1, -1))

  def atleast_3d(self: Any, *others: Tensor) -> Any:
    """With three axes at least: of a matrix T[n, m, 1], of a vector T[1, n, 1]; see `atleast_1d`."""
    return _each(self, others, lambda t: t if t.ndim > 2 else t.atleast_2d().unsqueeze(-1))

  def fliplr(self) -> Tensor:
    """Backwards along axis 1."""
    return self.flip(1)

  def flipud(self) -> Tensor:
    """Backwards along axis 0."""
    return self.flip(0) if self.ndim else fail(ShapeError, "flipud: x has no axis", x=self)

  @staticmethod
  def broadcast_shapes(*shapes: Sizes) -> tuple[int, ...]:
    """The shape that all repeat to. ShapeError if there is none.

    >>> Tensor.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    common = broadcast_shape(*(sizes_of((s,)) for s in shapes))
    if common is None:
      fail(ShapeError, f"broadcast_shapes: {', '.join(map(str, shapes))} do not repeat to a common shape")
    return common

  @staticmethod
  def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors, repeated to their common shape."""
    several = _listed(tensors)
    common = broadcast_shape(*(t.shape for t in several))
    if common is None:
      fail(ShapeError, "broadcast_tensors: the shapes do not repeat to a common one", **named(several))
    return tuple(t.expand(common) for t in several)

  def sum_to_size(self, *size: Sizes) -> Tensor:
    """Added up over axes so that it has a shape which repeats to this one.

    >>> Tensor.ones(2, 3).sum_to_size(1, 3)
    Tensor([[2., 2., 2.]])
    """
    s = sizes_of(size)
    if broadcast_shape(s, self.shape) != self.shape:
      fail(ShapeError, f"sum_to_size: {s} does not repeat to the shape of x", x=self)
    extra = self.ndim - len(s)
    axes = tuple(a for a, n in enumerate(self.shape) if a < extra or s[a - extra] != n)
    return self.sum(axes).reshape(s) if axes or not self.ndim else self.reshape(s)

  # ---------------------------------------------------------------- put together

  @staticmethod
  def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side: along axis 1, vectors along axis 0."""
    several = _each(tensors, (), Pieces.atleast_1d)
    return Pieces.concat(several, 0 if several[0].ndim == 1 else 1)

  @staticmethod
  def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """One below another: along axis 0, vectors as rows."""
    return Pieces.concat(_each(tensors, (), Pieces.atleast_2d), 0)

  @staticmethod
  def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """One behind another: along axis 2, see `atleast_3d`."""
    return Pieces.concat(_each(tensors, (), Pieces.atleast_3d), 2)

  @staticmethod
  def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side, vectors as columns.

    >>> Tensor.column_stack([Tensor([1, 2]), Tensor([3, 4])])
    Tensor([[1, 3],
            [2, 4]])
    """
    return Pieces.concat([t if t.ndim > 1 else t.reshape(-1, 1) for t in tensors], 1)

  @staticmethod
  def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """Matrices along the diagonal of one, zeros elsewhere; a vector is a row.

    >>> Tensor.block_diag(Tensor([[1, 2]]), Tensor(3))
    Tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    blocks = [t.atleast_2d() for t in _listed(tensors)]
    if any(t.ndim > 2 for t in blocks):
      fail(ShapeError, "block_diag: a block has more than two axes", **named(blocks))
    total, before, rows = sum(t.shape[1] for t in blocks), 0, []
    for t in blocks:
      rows.append(t.pad((before, total - before - t.shape[1])))
      before += t.shape[1]
    return Pieces.concat(rows)

  @staticmethod
  def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """All tuples of elements of vectors, a row each.

    >>> Tensor.cartesian_prod(Tensor([1, 2]), Tensor([5, 6])).tolist()
    [[1, 5], [1, 6], [2, 5], [2, 6]]
    """
    several = _listed(tensors)
    if any(t.ndim != 1 for t in several):
      fail(ShapeError, "cartesian_prod: each is a vector", **named(several))
    if len(several) == 1:
      return several[0]
    return Pieces.stack(list(Pieces.meshgrid(*several)), dim=-1).reshape(-1, len(several))

  def combinations(self, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, a row each, in the order of the elements.

    >>> Tensor([1, 2, 3]).combinations().tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if self.ndim != 1 or r < 0:
      fail(ShapeError, f"combinations: {r} elements of a vector", x=self)
    if r == 0:
      return self[:0]
    n = self.numel()
    count = comb(n + r - 1 if with_replacement else n, r)
    chosen = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    found = itertools.chain.from_iterable(chosen(range(n), r)) if count else ()
    # memory for all of them first: there may be none
    index = np.fromiter(found, np.int64, count * r).reshape(-1, r)
    return self[index]

  # ---------------------------------------------------------------- taken apart

  def tensor_split(self, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut along dim before these places, or into so many parts, of which the first may be larger by 1.

    >>> [t.tolist() for t in Tensor.arange(5).tensor_split(2)]
    [[0, 1, 2], [3, 4]]
    >>> [t.tolist() for t in Tensor.arange(5).tensor_split((1, 3))]
    [[0], [1, 2], [3, 4]]
    """
    a, cuts = self._axis(dim, "tensor_split"), indices_or_sections
    cuts = cuts.numpy().tolist() if isinstance(cuts, Handle) else cuts  # type: ignore[attr-defined]
    if not isinstance(cuts, int) and not all(hasattr(i, "__index__") for i in cuts):
      fail(DTypeError, f"tensor_split: places are integers, not {cuts!r}", x=self)
    n = self.shape[a] if self.shape else fail(ShapeError, "tensor_split: x has no axis", x=self)
    if isinstance(cuts, int):
      if cuts < 1:
        fail(ShapeError, f"tensor_split: into {cuts} parts", x=self)
      cuts = [i * (n // cuts) + min(i, n % cuts) for i in range(1, cuts)]
    before = (slice(None),) * a
    return tuple(self[before + (slice(i, j),)] for i, j in zip((0, *cuts), (*cuts, n)))

  def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 1, of a vector along axis 0; into equal parts."""
    return self._equal_split("hsplit", indices_or_sections, 0 if self.ndim == 1 else 1)

  def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 0 of a matrix or more; into equal parts."""
    return self._equal_split("vsplit", indices_or_sections, 0, 2)

  def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 2; into equal parts."""
    return self._equal_split("dsplit", indices_or_sections, 2)

  def _equal_split(self, what: str, cuts: Any, a: int, least: int = 0) -> tuple[Tensor, ...]:
    if self.ndim <= a or self.ndim < least:
      fail(ShapeError, f"{what}: x has {self.ndim} axes", x=self)
    if isinstance(cuts, int) and (cuts < 1 or self.shape[a] % cuts):
      fail(ShapeError, f"{what}: an axis of size {self.shape[a]} in {cuts} equal parts", x=self)
    return self.tensor_split(cuts, a)

  # ---------------------------------------------------------------- a part of it replaced

  def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor:
    """self with src in the place of `select(dim, index)`.

    >>> Tensor.zeros(2, 2, dtype="int64").select_scatter(Tensor([1, 2]), 0, 1)
    Tensor([[0, 0],
            [1, 2]])
    """
    before = (slice(None),) * self._axis(dim, "select_scatter")
    return self._scattered_into("select_scatter", (*before, index), src)

  def slice_scatter(
    self, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
  ) -> Tensor:
    """self with src in the place of start:end:step along dim."""
    before = (slice(None),) * self._axis(dim, "slice_scatter")
    return self._scattered_into("slice_scatter", (*before, slice(start, end, step)), src)

  def diagonal_scatter(self, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """self with src in the place of `diagonal(offset, dim1, dim2)`."""
    x: Any = self.movedim((dim1, dim2), (-2, -1))
    at = np.arange(self.diagonal(offset, dim1, dim2).shape[-1])
    out = x._scattered_into("diagonal_scatter", (..., at - min(offset, 0), at + max(offset, 0)), src)
    return out.movedim((-2, -1), (dim1, dim2))

  def _scattered_into(self, what: str, index: tuple[Any, ...], src: Tensor) -> Tensor:
    room = self[index].shape
    if src.shape != room:
      fail(ShapeError, f"{what}: the place has shape {room}, and src {src.shape}", x=self, src=src)
    return self.index_put(index, src)

  def put(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """self, flattened, with the elements of source at these places, or with them added there.

    >>> Tensor([[1, 2], [3, 4]]).put(Tensor([0, 3]), Tensor([8, 9]))
    Tensor([[8, 2],
            [3, 9]])
    """
    if index.numel() != source.numel():
      fail(ShapeError, "put: there is not an element of source for each place", index=index, source=source)
    flat = (index.reshape(-1),)
    return self.reshape(-1).index_put(flat, source.reshape(-1), accumulate).reshape(self.shape)

  def index_reduce(
    self, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
  ) -> Tensor:
    """`scatter_reduce` ("prod", "mean", "amax" or "amin") of slices along dim, to the places that a vector names.

    >>> Tensor([1, 5]).index_reduce(0, Tensor([0, 0]), Tensor([3, 2]), "amax")
    Tensor([3, 5])
    """
    if not self.ndim:
      flat = self.reshape(1).index_reduce(dim, index, source.reshape(1), reduce, include_self=include_self)
      return flat.reshape(())
    a = self._axis(dim, "index_reduce")
    wide = index.reshape(-1, *(1,) * (source.ndim - 1 - a)).expand(source.shape)
    return self.scatter_reduce(a, wide, source, reduce, include_self)

  def diagflat(self, offset: int = 0) -> Tensor:
    """The matrix with the elements on a diagonal."""
    return self.reshape(-1).diag(offset)

  # ---------------------------------------------------------------- in memory, as if it were in row-major order

  def as_strided(self, size: Sizes, stride: Sizes, storage_offset: int | None = None) -> Tensor:
    """The elements, which lie in row-major order, so far apart along each axis. It is a view that cannot be written to.

    >>> Tensor.arange(5).as_strided((3, 2), (1, 2)).tolist()
    [[0, 2], [1, 3], [2, 4]]
    """
    places = _places(size, stride, storage_offset or 0)
    return self._computed(lambda x: x.reshape(-1)[places])

  def as_strided_scatter(
    self, src: Tensor, size: Sizes, stride: Sizes, storage_offset: int | None = None
  ) -> Tensor:
    """self with src in the place of `as_strided(size, stride, storage_offset)`."""
    places = (_places(size, stride, storage_offset or 0),)
    return self.reshape(-1).index_put(places, src).reshape(self.shape)

  # ---------------------------------------------------------------- indices

  @staticmethod
  def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Rows and columns of what is on and below a diagonal.   -> int64[2, n]

    >>> Tensor.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return Handle._final(np.stack(np.tril_indices(row, offset, col)), dtype or dtypes.int64, device)

  @staticmethod
  def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Rows and columns of what is on and above a diagonal.   -> int64[2, n]"""
    return Handle._final(np.stack(np.triu_indices(row, offset, col)), dtype or dtypes.int64, device)

  def unravel_index(self, shape: Sizes) -> tuple[Tensor, ...]:
    """Places in a flattened tensor as an index for each axis of its shape.

    >>> [t.tolist() for t in Tensor([4, 5]).unravel_index((2, 3))]
    [[1, 1], [1, 2]]
    """
    if self.dtype.kind not in "iu":
      fail(DTypeError, f"unravel_index: places are integers, not {self.dtype.name}", x=self)
    rest, found = self.to(dtypes.int64), []
    for n in reversed(sizes_of((shape,))):
      found.append(rest % n)
      rest = rest // n
    return tuple(reversed(found))

  def argwhere(self) -> Tensor:
    """The places of what is not zero, a row each: `nonzero`."""
    return self.nonzero()

  def nonzero_static(self, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero`, cut or filled up to a number of rows."""
    found = self.nonzero()[:size]
    return found.pad((0, 0, 0, size - found.shape[0]), value=fill_value)

  # ---------------------------------------------------------------- new ones

  @staticmethod
  def logspace(
    start: Scalar, end: Scalar, steps: int, base: float = 10.0, dtype: Any = None, device: str | None = None
  ) -> Tensor:
    """base to the powers `linspace(start, end, steps)`.

    >>> Tensor.logspace(0, 2, 3)
    Tensor([  1.,  10., 100.])
    """
    kind = as_dtype(dtype or dtypes.default_float)
    start, end = (x.item() if isinstance(x, Handle) else x for x in (start, end))  # type: ignore[attr-defined]
    if kind.kind in "iu":
      start, end = int(start), int(end)
    powers = Pieces.linspace(start, end, steps, kind if kind.kind in "fc" else dtypes.float64, device)
    return (base**powers).cast(kind)

  @staticmethod
  def scalar_tensor(
    s: Any, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False
  ) -> Tensor:
    """A number as a tensor, float32 unless dtype says otherwise."""
    return Handle._final(s, dtype or dtypes.default_float, device, requires_grad)

  @staticmethod
  def empty_strided(size: Sizes, stride: Sizes, **options: Any) -> Tensor:
    """`empty`; memory is in row-major order whatever stride is."""
    return Pieces.empty_permuted(size, stride, **options)

  @staticmethod
  def empty_permuted(size: Sizes, physical_layout: Sizes, **options: Any) -> Tensor:
    """`empty`; memory is in row-major order whatever physical_layout is."""
    sizes, order = sizes_of((size,)), sizes_of((physical_layout,))
    if len(sizes) != len(order):
      fail(ShapeError, f"empty: there is no place in memory for each axis of {sizes} in {order}")
    return Pieces.empty(*sizes, **options)

  def constant_pad_nd(self, pad: Sequence[int], value: float = 0) -> Tensor:
    """`pad` with a number."""
    return self.pad(pad, value=value)

  def fill(self, value: Operand) -> Tensor:
    """One value everywhere, in this shape and type: a number, or a tensor without axes."""
    return Handle._final(value, self.dtype, self.device).expand(self.shape)


def _listed(tensors: tuple[Any, ...]) -> list[Any]:
  """Several tensors, or those of a list."""
  return [*tensors[0]] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else [*tensors]


def _each(first: Any, others: tuple[Any, ...], f: Any) -> Any:
  """f of a tensor; a tuple of several or of those of a list."""
  if isinstance(first, Handle) and not others:
    return f(first)
  return tuple(map(f, _listed((first, *others))))


def _places(size: Sizes, stride: Sizes, offset: int) -> np.ndarray:
  """Where the elements of a strided view lie."""
  sizes, steps = sizes_of((size,)), sizes_of((stride,))
  if len(sizes) != len(steps):
    fail(ShapeError, f"as_strided: {len(sizes)} sizes and {len(steps)} strides")
  if min(*sizes, *steps, offset) < 0:
    fail(ArgumentError, f"as_strided: sizes {sizes}, strides {steps} and offset {offset} may not be negative")
  grid = np.indices(sizes)
  return offset + sum((step * i for step, i in zip(steps, grid)), np.zeros(sizes, np.int64))
