"""Gather and scatter, as PyTorch names them: elements at places along an axis, and elements where a mask is true.

`t[index]` is in indexing.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mini.ir import graph
from mini.ir.uop import UOp
from mini.tensor.data import Operand, Scalar
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.indexing import Indexing
from mini.tensor.promotion import broadcast_shape, constant, wide
from mini.tensor.views import Cut, cut, from_front, put
from mini.types import ArgumentError, AxisError, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Scattering(Indexing):
  """Elements from places that a tensor names, and to them."""

  # ---------------------------------------------------------------- gather and scatter, as PyTorch names them

  def gather(self, dim: int, index: Tensor) -> Tensor:
    """out[i][j] = self[index[i][j]][j] for dim 0, and so on; index has as many axes as self.

    IndexError, when it is computed, where an index is out of bounds.

    >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[0], [1]]))
    Tensor([[1],
            [4]])
    """
    a = self._along("gather", dim, index)
    if not index.numel():
      return self.flatten().narrow(0, 0, 0).reshape(index.shape)
    if not self.ndim:
      return self.reshape(1).gather(0, index.reshape(-1)).reshape(index.shape)
    u = graph.shrink(
      self._node, tuple((0, n if b == a else m) for b, (n, m) in enumerate(zip(self.shape, index.shape)))
    )
    return self._new(graph.gather(u, index._node, a))

  def take_along_dim(self, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` whose other axes repeat; negative indices count from the end. Without dim: of the flattened tensor.

    >>> Tensor([[3, 1], [2, 9]]).take_along_dim(Tensor([[-1]]), 1)
    Tensor([[1],
            [9]])
    """
    if dim is None:
      return self.reshape(-1).take_along_dim(indices.reshape(-1), 0)
    a = self._axis(dim, "take_along_dim")
    if indices.ndim != self.ndim:
      fail(
        ShapeError,
        f"take_along_dim: indices have {indices.ndim} axes, x has {self.ndim}",
        x=self,
        indices=indices,
      )
    rest = broadcast_shape(*((*s[:a], 1, *s[a + 1 :]) for s in (self.shape, indices.shape)))
    if rest is None:
      fail(
        ShapeError, "take_along_dim: the other axes do not repeat to a common shape", x=self, indices=indices
      )
    x = graph.expand(self._node, (*rest[:a], self.shape[a], *rest[a + 1 :]))
    i = graph.expand(from_front(indices._node, self.shape[a]), (*rest[:a], indices.shape[a], *rest[a + 1 :]))
    return self._new(graph.gather(x, i, a))

  def take(self, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in index's shape."""
    return self.reshape(-1)[index]

  def index_select(self, dim: int, index: Tensor) -> Tensor:
    """The elements along dim that a vector of integers names.

    >>> Tensor([[1, 2], [3, 4]]).index_select(1, Tensor([1, 1]))
    Tensor([[2, 2],
            [4, 4]])
    """
    if index.ndim > 1:
      fail(AxisError, "index_select: the index is no vector", x=self, index=index)
    if not self.ndim:
      return self.reshape(1).index_select(dim, index).reshape(())
    return self[(slice(None),) * self._axis(dim, "index_select") + (index.reshape(-1),)]

  def scatter(
    self,
    dim: int,
    index: Tensor,
    src: Operand | None = None,
    reduce: str | None = None,
    *,
    value: Scalar | None = None,
  ) -> Tensor:
    """self with out[index[i][j]][j] = src[i][j] for dim 0, and so on; of several the last one wins.

    src: a tensor that covers index, or a number, which may be called value. reduce: None, "add" or "multiply".

    >>> Tensor.zeros(3, dtype="int64").scatter(0, Tensor([2, 0]), Tensor([5, 6]))
    Tensor([6, 0, 5])
    """
    if (src is None) == (value is None):
      about = "src is missing" if src is None else f"src and value={value} are the same argument"
      fail(DTypeError, f"scatter: {about}", x=self, index=index)
    src = value if src is None else src
    kinds = {None: "set", "add": "add", "multiply": "mul"}
    if reduce not in kinds:
      fail(ArgumentError, f'scatter: reduce is None, "add" or "multiply", not {reduce!r}', x=self)
    return self._new(self._scattered("scatter", dim, index, src, kinds[reduce]))

  def scatter_add(self, dim: int, index: Tensor, src: Operand) -> Tensor:
    """self with out[index[i][j]][j] += src[i][j] for dim 0, and so on.

    >>> Tensor.zeros(2, dtype="int64").scatter_add(0, Tensor([1, 1]), Tensor([5, 6]))
    Tensor([ 0, 11])
    """
    return self._new(self._scattered("scatter_add", dim, index, src, "add"))

  def scatter_reduce(
    self, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True
  ) -> Tensor:
    """As scatter_add, with reduce = "sum", "prod", "mean", "amax" or "amin"; self takes part if include_self."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
      fail(
        ArgumentError,
        f'scatter_reduce: reduce is "sum", "prod", "mean", "amax" or "amin", not {reduce!r}',
        x=self,
      )
    x: Any = self
    if not include_self:
      start = {"sum": 0, "mean": 0, "prod": 1}.get(reduce)
      touched = Handle._new(
        Indexing.full(self.shape, False, dtypes.bool)._scattered("scatter_reduce", dim, index, True, "set")
      )
      x = touched.where(least_of(self, reduce) if start is None else start, self).to(self.dtype)
    if reduce == "amin":
      turned, back = (x.neg(), src.neg()) if self.dtype.kind == "f" else (~x, ~src)
      out = Handle._new(turned._scattered("scatter_reduce", dim, index, back, "max"))
      return out.neg() if self.dtype.kind == "f" else ~out
    out = Handle._new(
      x._scattered(
        "scatter_reduce", dim, index, src, {"sum": "add", "mean": "add", "prod": "mul", "amax": "max"}[reduce]
      )
    )
    if reduce != "mean":
      return out
    count = x.full_like(1 if include_self else 0).scatter_add(dim, index, src.full_like(1)).maximum(1)
    return out / count if self.dtype.kind == "f" else out.div(count, rounding_mode="floor")

  def _scattered(self, what: str, dim: int, index: Any, src: Any, kind: str) -> UOp:
    a = self._along(what, dim, index)
    if isinstance(src, Handle):
      if src.ndim != index.ndim or any(n > m for n, m in zip(index.shape, src.shape)):
        fail(ShapeError, f"{what}: src does not cover the index", x=self, index=index, src=src)
      if src.dtype is not self.dtype:
        fail(
          DTypeError,
          f"{what}: src is {src.dtype.name}, x is {self.dtype.name}; src.to(x.dtype) would fit",
          x=self,
          src=src,
        )
      value = graph.shrink(src._node, tuple((0, n) for n in index.shape))
    else:
      value = graph.expand_to(constant(what, src, self.dtype, (self, index, src)), index.shape)
    if not self.ndim:
      one, at, new = (graph.reshape(u, (1,)) for u in (self._node, index._node, value))
      return graph.reshape(graph.scatter(one, at, new, kind, 0), ())
    cuts = [Cut(n, 0, 1, n if b == a else m, False) for b, (n, m) in enumerate(zip(self.shape, index.shape))]
    base = cut(self._node, cuts)
    wider = wide(self.dtype) if kind in ("add", "mul") else self.dtype
    new = graph.cast(
      graph.scatter(graph.cast(base, wider), index._node, graph.cast(value, wider), kind, a), self.dtype
    )
    if all(c.taken == c.size for c in cuts):
      return new
    return put(self._node, cuts, new)

  def _along(self, what: str, dim: int, index: Any) -> int:
    a = self._axis(dim, what)
    if not isinstance(index, Handle) or index.dtype.kind not in "iu":
      fail(DTypeError, f"{what}: the index is no integer tensor", x=self, index=index)
    if index.numel() == 0 and what == "gather":
      return a
    if max(index.ndim, 1) != max(self.ndim, 1) or any(
      n > m for b, (n, m) in enumerate(zip(index.shape, self.shape)) if b != a
    ):
      fail(
        ShapeError,
        f"{what}: the index has more axes than x or is larger along another axis than {a}",
        x=self,
        index=index,
      )
    return a

  def index_add(self, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    """self with the elements of source added at the places along dim that a vector names."""
    return self._at_places("index_add", dim, index, source if alpha == 1 else source * alpha, "add")

  def index_copy(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """self with the elements of source put at the places along dim that a vector names."""
    return self._at_places("index_copy", dim, index, source, "set")

  def _at_places(self, what: str, dim: int, index: Any, source: Any, kind: str) -> Tensor:
    a = self._axis(dim, what)
    if index.dtype.kind not in "iu":
      fail(DTypeError, f"{what}: the index is {index.dtype.name}, and holds no integers", x=self, index=index)
    if index.ndim > 1 or source.shape != (
      *self.shape[:a],
      *(index.numel(),) * bool(self.ndim),
      *self.shape[a + 1 :],
    ):
      fail(
        ShapeError,
        f"{what}: source does not have x's shape with {index.numel()} along axis {a}",
        x=self,
        index=index,
        source=source,
      )
    if not self.ndim:
      return self.reshape(1)._at_places(what, dim, index, source.reshape(1), kind).reshape(())
    ones = (1,) * (self.ndim - 1 - a)
    i = graph.expand_to(graph.reshape(index._node, (index.numel(), *ones)), source.shape)
    return self._new(graph.scatter(self._node, i, graph.cast(source._node, self.dtype), kind, a))

  def index_put(self, indices: tuple[Any, ...], values: Operand, accumulate: bool = False) -> Tensor:
    """self with self[indices] = values, or += values of every index if accumulate."""
    if not accumulate:
      out = self.clone()
      out[tuple(indices)] = values
      return out
    return self._new(self._replaced(self._plan(tuple(indices)), values, "add"))

  # ---------------------------------------------------------------- masks

  def nonzero(self, as_tuple: bool = False) -> Any:
    """The places of what is not zero, a row each; as_tuple: a vector for each axis. Computed at once.

    >>> Tensor([[0, 1], [2, 0]]).nonzero()
    Tensor([[0, 1],
            [1, 0]])
    """
    values = self.numpy()
    places = [p.astype(np.int64) for p in np.nonzero(np.atleast_1d(values))]
    if as_tuple:
      return tuple(Handle._final(p, device=self.device) for p in places)
    return Handle._final(np.stack(places, 1)[:, : values.ndim], device=self.device)

  def masked_select(self, mask: Tensor) -> Tensor:
    """The elements where mask is true, as a vector. Computed at once.

    >>> Tensor([1, 2, 3]).masked_select(Tensor([True, False, True]))
    Tensor([1, 3])
    """
    s = broadcast_shape(self.shape, mask.shape)
    if s is None:
      fail(ShapeError, "masked_select: the shapes do not repeat to a common one", x=self, mask=mask)
    return self.expand(s)[mask.expand(s)]

  def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
    """self with the elements of source, one after another, where mask is true.

    IndexError, when it is computed, if source has too few of them.

    >>> Tensor([1, 2, 3]).masked_scatter(Tensor([True, False, True]), Tensor([7, 8, 9]))
    Tensor([7, 2, 8])
    """
    shape = broadcast_shape(self.shape, mask.shape)
    if shape is None or mask.dtype is not dtypes.bool:
      fail(ShapeError, "masked_scatter: the mask is boolean, and repeats to x's shape", x=self, mask=mask)
    if source.dtype is not self.dtype:
      fail(DTypeError, "masked_scatter: x and source are of different types", x=self, source=source)
    mask = mask.expand(shape)
    number = mask.reshape(-1).cumsum(0).reshape(shape)  # of the true ones, from 1 on
    taken = source.reshape(-1).pad((1, 0))[mask.where(number, 0)]
    return mask.where(taken, self)


def least_of(x: Handle, reduce: str) -> Any:
  """What every other value wins over, when the largest (amax) or the smallest (amin) is looked for."""
  if x.dtype.kind == "f":
    return float("-inf") if reduce == "amax" else float("inf")
  if x.dtype is dtypes.bool:
    return reduce == "amin"
  info = np.iinfo(x.dtype.np)
  return int(info.min if reduce == "amax" else info.max)
