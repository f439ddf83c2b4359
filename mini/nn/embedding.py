"""Tables of rows that are looked up: one row for each index, or a sum, mean or maximum for each bag of them."""

from __future__ import annotations

from typing import Any

from mini.nn import init
from mini.nn.functional import embedding, embedding_bag
from mini.nn.layers import weight
from mini.nn.module import Module, Parameter
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError, ShapeError


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
    rule = self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, False
    return embedding_bag(
      index, self.weight, offsets, *rule, per_sample_weights, self.include_last_offset, self.padding_idx
    )


__all__ = ["Embedding", "EmbeddingBag"]
