"""Tables of rows that are looked up: one row for each index, or a sum, mean or maximum for each bag of them."""

from __future__ import annotations

import math
from typing import Any

from mini.nn import init
from mini.nn.functional import embedding
from mini.nn.layers import weight
from mini.nn.module import Module, Parameter, layers_of
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError, DTypeError, ShapeError


class Embedding(Module):
  """Rows of a table.   index: int[..]   weight: T[n, d]   ->   T[.., d]

  padding_idx: a row that is 0 at the beginning and gets no gradient. max_norm, norm_type, scale_grad_by_freq: see
  nn.functional.embedding. sparse has no effect: gradients are dense.

  >>> Embedding(10, 4)(Tensor([1, 2, 1])).shape
  (3, 4)
  """

  def __init__(
    self,
    num_embeddings: int,
    embedding_dim: int,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
    device: str | None = None,
    dtype: Any = None,
  ):
    self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
    self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
    if padding_idx is not None:
      if not -num_embeddings <= padding_idx < num_embeddings:
        fail(ShapeError, f"Embedding: padding_idx {padding_idx} is none of {num_embeddings} rows")
      self.padding_idx = padding_idx % num_embeddings
    self.weight = weight(num_embeddings, embedding_dim, dtype=dtype, device=device)
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Normal with variance 1."""
    init.normal_(self.weight)
    if self.padding_idx is not None:
      self.weight.assign(
        (Tensor.arange(self.num_embeddings) != self.padding_idx).unsqueeze(1).where(self.weight.detach(), 0)
      )

  def forward(self, input: Tensor) -> Tensor:
    rule = self.max_norm, self.norm_type, self.scale_grad_by_freq
    return embedding(input, self.weight, self.padding_idx, *rule)

  @classmethod
  def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Embedding:
    """With a table of one's own, which is trained unless it is frozen.

    >>> Embedding.from_pretrained(Tensor([[1.0, 2.0], [3.0, 4.0]]))(Tensor(1))
    Tensor([3., 4.])
    """
    rows, width = embeddings.shape
    made = cls(rows, width, **options)
    made.weight = Parameter(embeddings, requires_grad=not freeze)
    return made

  def extra_repr(self) -> str:
    return f"{self.num_embeddings}, {self.embedding_dim}"


class EmbeddingBag(Embedding):
  """The sum, mean or maximum of the rows of each bag; 0 of a bag that is empty.   weight: T[n, d]   ->   T[B, d]

  index: int[B, k], a bag in each row; or int[N] with offsets, int[B]: where each bag begins, the first at 0; if
  include_last_offset, with N behind them. per_sample_weights: T, in index's shape, for sums. padding_idx: a row that no
  bag has.

  >>> EmbeddingBag(10, 4)(Tensor([1, 2, 1]), Tensor([0, 2])).shape
  (2, 4)
  """

  def __init__(
    self,
    num_embeddings: int,
    embedding_dim: int,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    *,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    device: str | None = None,
    dtype: Any = None,
  ):
    if mode not in ("sum", "mean", "max"):
      fail(ArgumentError, f'EmbeddingBag: mode is "sum", "mean" or "max", not {mode!r}')
    self.mode, self.include_last_offset = mode, include_last_offset
    rule = max_norm, norm_type, scale_grad_by_freq, sparse
    super().__init__(num_embeddings, embedding_dim, padding_idx, *rule, device, dtype)

  def forward(  # type: ignore[override]
    self, index: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
  ) -> Tensor:
    self._expect(index, offsets, per_sample_weights)
    rows, there = super().forward(index), self._there(index)
    if per_sample_weights is not None:
      rows = rows * per_sample_weights.unsqueeze(-1)
    if self.mode == "max":
      rows = there.where(rows, -math.inf)
    else:
      rows = there.where(rows, 0)
    if offsets is None:
      found = rows.amax(1) if self.mode == "max" else rows.sum(1)
      count = there.sum(1)
    else:
      found, count = self._bags(rows, there, offsets)
    if self.mode == "max":
      return (count > 0).where(found, 0)
    return found / count.maximum(1).to(found.dtype) if self.mode == "mean" else found

  def _there(self, index: Tensor) -> Tensor:
    """Which indices count.   -> bool[.., 1]"""
    if self.padding_idx is None:
      return index.full_like(True, dtype="bool").unsqueeze(-1)
    return (index != self.padding_idx).unsqueeze(-1)

  def _bags(self, rows: Tensor, there: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """(the sum or maximum of the rows, the number of those that count) of each bag."""
    starts = offsets[:-1] if self.include_last_offset else offsets
    n, (bags,) = rows.shape[0], starts.shape
    at = starts.searchsorted(Tensor.arange(n, dtype=starts.dtype, device=rows.device), right=True) - 1
    to = at.unsqueeze(-1).expand(rows.shape)
    begin = rows.full_like(-math.inf if self.mode == "max" else 0)[:1].expand(bags, rows.shape[1])
    found = begin.scatter_reduce(0, to, rows, "amax" if self.mode == "max" else "sum")
    count = Tensor.zeros(bags, 1, dtype="int64", device=rows.device).scatter_add(0, to[:, :1], there.long())
    return found, count

  def _expect(self, index: Tensor, offsets: Tensor | None, weights: Tensor | None) -> None:
    """ShapeError, DTypeError or ValueError for what does not go together."""
    if index.ndim != (2 if offsets is None else 1):
      fail(ShapeError, "EmbeddingBag: index has two axes, or one and offsets", index=index, offsets=offsets)
    if offsets is not None and (offsets.ndim != 1 or offsets.dtype.kind not in "iu"):
      fail(DTypeError, "EmbeddingBag: offsets are a vector of integers", offsets=offsets)
    if weights is not None and self.mode != "sum":
      fail(ArgumentError, f"EmbeddingBag: per_sample_weights are for sums, and mode is {self.mode!r}")
    if weights is not None and weights.shape != index.shape:
      fail(ShapeError, "EmbeddingBag: there is one weight for each index", index=index, weights=weights)


__all__ = layers_of(globals())
