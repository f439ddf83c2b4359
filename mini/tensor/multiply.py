"""Products: matrices and attention.

A matrix product is a multiplication under a sum - a[.., n, 1, k] * b[.., 1, m, k], summed over k - and nothing else:
the scheduler finds it there. float16 and bfloat16 are multiplied and summed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mini.ir import graph
from mini.tensor.handle import Handle, Number, broadcast_shape, fail, result_type, wide
from mini.tensor.indexing import Indexing
from mini.tensor.movement import below
from mini.types import DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Multiply(Indexing):
  """Matrix products, attention."""

  def matmul(self, other: Tensor) -> Tensor:
    """Matrix product; `a @ b` is the same.

    self: T[..., n, k]   other: T[..., k, m]   ->   T[..., n, m]

    A vector on the left is a row, on the right a column, and that axis is gone afterwards. Leading axes broadcast, as in
    the Python array API standard 2024.12, `matmul`. ShapeError if the two k differ.

    >>> (Tensor.ones(2, 3) @ Tensor.ones(3, 4)).shape
    (2, 4)
    """
    if not isinstance(other, Handle):
      coerced = self._coerced(other)
      if coerced is NotImplemented or isinstance(coerced, Number):
        fail(DTypeError, f"a @ b: b is {other!r}, not a tensor", a=self)
      return self.matmul(coerced)
    if not self.shape or not other.shape:
      fail(ShapeError, "a @ b: a 0-d tensor has no axis to sum over; a * b would fit", a=self, b=other)
    kind = common("a @ b", self, other)
    k, met = self.shape[-1], other.shape[-2] if other.ndim > 1 else other.shape[0]
    if k != met:
      fail(
        ShapeError,
        f"a @ b: the last axis of a is {k}, but the axis of b that it meets is {met}",
        hint=_fitting(self.shape, other.shape),
        a=self,
        b=other,
      )
    left = self.shape[:-1] if self.ndim > 1 else (1,)
    right = (*other.shape[:-2], other.shape[-1]) if other.ndim > 1 else (1,)
    batch = broadcast_shape(left[:-1], right[:-1])
    if batch is None:
      fail(
        ShapeError,
        f"a @ b: the leading axes {left[:-1]} and {right[:-1]} do not repeat to common ones",
        a=self,
        b=other,
      )
    n, m = left[-1], right[-1]
    a, b = graph.cast(self.uop, wide(kind)), graph.cast(other.uop, wide(kind))
    b = (
      graph.permute(b, (*range(other.ndim - 2), other.ndim - 1, other.ndim - 2))
      if other.ndim > 1
      else graph.reshape(b, (1, k))
    )
    a = graph.reshape(a, (*left[:-1], n, 1, k))
    b = graph.reshape(b, (*right[:-1], 1, m, k))
    product = graph.alu("mul", graph.expand_to(a, (*batch, n, m, k)), graph.expand_to(b, (*batch, n, m, k)))
    out = graph.cast(graph.reduce(product, "add", (len(batch) + 2,)), kind)
    shape = (*batch, *((n,) if self.ndim > 1 else ()), *((m,) if other.ndim > 1 else ()))
    return self._new(graph.reshape(out, shape))

  def __matmul__(self, other: Any) -> Tensor:
    other = self._coerced(other)
    return self.matmul(other) if isinstance(other, Handle) else NotImplemented  # type: ignore[arg-type]

  def __rmatmul__(self, other: Any) -> Tensor:
    other = self._coerced(other)
    return other.matmul(self) if isinstance(other, Handle) else NotImplemented  # type: ignore[attr-defined]

  def __imatmul__(self, other: Any) -> Tensor:
    return self._update(self @ other, "a @= b")

  def dot(self, other: Tensor) -> Tensor:
    """`matmul`: of two vectors the inner product.

    >>> Tensor([1, 2]).dot(Tensor([3, 4]))
    Tensor(11)
    """
    return self.matmul(other)

  def mm(self, other: Tensor) -> Tensor:
    """`matmul` of two matrices."""
    self._expect("mm", 2, a=self, b=other)
    return self.matmul(other)

  def bmm(self, other: Tensor) -> Tensor:
    """`matmul` of two stacks of equally many matrices."""
    self._expect("bmm", 3, a=self, b=other)
    return self.matmul(other)

  def mv(self, other: Tensor) -> Tensor:
    """`matmul` of a matrix and a vector."""
    self._expect("mv", 2, a=self)
    self._expect("mv", 1, b=other)
    return self.matmul(other)

  @staticmethod
  def _expect(what: str, ndim: int, **tensors: Any) -> None:
    for name, t in tensors.items():
      if t.ndim != ndim:
        fail(ShapeError, f"{what}: {name} has {t.ndim} axes, not {ndim}", **tensors)

  def outer(self, other: Tensor) -> Tensor:
    """Every element of one vector times every element of another.   T[n], T[m] -> T[n, m]

    >>> Tensor([1, 2]).outer(Tensor([3, 4]))
    Tensor([[3, 4],
            [6, 8]])
    """
    self._expect("outer", 1, a=self, b=other)
    return self.reshape(-1, 1) * other.reshape(1, -1)

  def inner(self, other: Tensor) -> Tensor:
    """The sums of products over the last axes of both."""
    return (
      self @ other.transpose(-1, -2)
      if other.ndim > 1 and self.ndim < 2
      else self @ other
      if other.ndim < 2
      else self.matmul(other.mT)
    )

  def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias, as PyTorch's `F.linear`.   x: T[.., k]   weight: T[m, k]   bias: T[m]   ->   T[.., m]"""
    out = self.matmul(weight.T)
    return out if bias is None else out + bias

  def addmm(self, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * self + alpha * a @ b."""
    return (self if beta == 1 else self * beta) + (a @ b if alpha == 1 else a @ b * alpha)

  # ---------------------------------------------------------------- attention

  def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                   is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:  # fmt: skip
    """softmax(q @ k.T * scale + mask) @ v, as PyTorch's function of that name. https://arxiv.org/abs/1706.03762

    self: T[.., H, L, E]   key: T[.., H, S, E]   value: T[.., H, S, V]   ->   T[.., H, L, V]

    attn_mask: boolean (true: take part) or added to the scores; repeats to [.., L, S]. is_causal: position i sees 0..i.
    scale: 1 / sqrt(E) if None. dropout_p acts whether or not this is training. enable_gqa: key and value have fewer
    heads, each of which serves several.

    >>> q = Tensor.ones(1, 2, 4)
    >>> q.scaled_dot_product_attention(q, q, is_causal=True).shape
    (1, 2, 4)
    """
    if is_causal and attn_mask is not None:
      fail(ValueError, "scaled_dot_product_attention: give is_causal or attn_mask, not both", mask=attn_mask)
    if enable_gqa:
      times = self.shape[-3] // key.shape[-3]
      key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    if self.shape[-1] != key.shape[-1]:
      fail(
        ShapeError, "scaled_dot_product_attention: the last axes of query and key differ", query=self, key=key
      )
    kind = common("scaled_dot_product_attention", self, value)
    q, k, v = (t.to(wide(kind)) for t in (self, key, value))
    scores = q.matmul(k.mT) * (1 / math.sqrt(self.shape[-1]) if scale is None else scale)
    see = None
    if is_causal:
      see = Handle._new(graph.expand_to(below(scores.shape[-2], scores.shape[-1], 0), scores.shape))
      scores = see.where(scores, -math.inf)
    elif attn_mask is not None:
      scores = attn_mask.where(scores, -math.inf) if attn_mask.dtype is dtypes.bool else scores + attn_mask
    weights = (scores - scores.detach().max(-1, True)).exp()
    if see is not None:
      weights = see.where(weights, 0)  # as it is: now the sums of it are seen to end there
    total = weights.sum(-1, True)
    if dropout_p:
      weights = weights.dropout(dropout_p, training=True)
    return (weights.matmul(v) / total).to(kind)


def common(what: str, a: Handle, b: Handle) -> Any:
  try:
    return result_type(a, b)
  except DTypeError as e:
    fail(DTypeError, f"{what}: {e}", a=a, b=b)


def _fitting(a: Sequence[int], b: Sequence[int]) -> str:
  """What would make two shapes fit a matrix product, where something simple does."""
  if len(b) >= 2 and b[-1] == a[-1]:
    return "b.T would fit" if len(b) == 2 else "b.mT would fit"
  if len(a) >= 2 and a[-2] == (b[-2] if len(b) > 1 else b[0]):
    return "a.T would fit" if len(a) == 2 else "a.mT would fit"
  return ""
