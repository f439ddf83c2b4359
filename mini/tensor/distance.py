"""Distances between vectors, and how alike their directions are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mini.tensor.errors import fail
from mini.tensor.image import Image
from mini.tensor.promotion import broadcast_shape
from mini.types import ArgumentError, ShapeError

if TYPE_CHECKING:
  from mini.tensor import Tensor


MODES = "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"


class Distance(Image):
  """Norms of differences."""

  def cdist(
    self, other: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
  ) -> Tensor:
    """The p-norms of all differences between two lists of vectors.   T[.., n, k], T[.., m, k] -> T[.., n, m]

    The differences are summed as they are, never by way of a product, whatever compute_mode says: near vectors have
    exact distances.

    >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0], [0.0, 0.0]]))
    Tensor([[5., 0.]])
    """
    if compute_mode not in MODES:
      fail(ArgumentError, f"cdist: compute_mode is one of {', '.join(MODES)}, not {compute_mode!r}", x=self)
    if min(self.ndim, other.ndim) < 2 or self.shape[-1] != other.shape[-1] or p < 0:
      fail(
        ShapeError, "cdist: x and other are lists of vectors of one length, and p >= 0", x=self, other=other
      )
    if broadcast_shape(self.shape[:-2], other.shape[:-2]) is None:
      fail(ShapeError, "cdist: the leading axes do not repeat to common ones", x=self, other=other)
    return (self.unsqueeze(-2) - other.unsqueeze(-3)).norm(p, -1)

  def pairwise_distance(self, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x - x2 + eps along the last axis.

    >>> Tensor([3.0, 0.0]).pairwise_distance(Tensor([0.0, 4.0]), eps=0.0)
    Tensor(5.)
    """
    return (self - x2 + eps).norm(p, -1, keepdim)

  def cosine_similarity(self, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis: their product over their lengths, each at least eps.

    >>> Tensor([1.0, 0.0]).cosine_similarity(Tensor([3.0, 4.0]), 0)
    Tensor(0.6)
    """
    s = broadcast_shape(self.shape, x2.shape)
    if s is None:
      fail(ShapeError, "cosine_similarity: the shapes do not repeat to a common one", x=self, x2=x2)
    if not eps >= 0:
      fail(ArgumentError, f"cosine_similarity: eps is 0 or greater, not {eps}", x=self)
    a, b = self.expand(s), x2.expand(s)
    lengths = (t.norm(2, dim, True).maximum(eps) for t in (a, b))
    first, second = lengths
    return ((a / first) * (b / second)).sum(dim)
