"""Products: matrices and attention.

A matrix product is a multiplication under a sum - a[.., n, 1, k] * b[.., 1, m, k], summed over k - and nothing else:
the scheduler finds it there. float16 and bfloat16 are multiplied and summed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mini.gradient_rules import constant_in
from mini.ir import graph
from mini.tensor.data import Number, complex_numbers
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.promotion import broadcast_shape, result_type, wide
from mini.tensor.sorting import Sorting
from mini.tensor.split import below
from mini.types import ArgumentError, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Multiply(Sorting):
  """Matrix products, attention."""

  def matmul(self, other: Tensor) -> Tensor:
    """Matrix product; `a @ b` is the same.

    self: T[..., n, k]   other: T[..., k, m]   ->   T[..., n, m]

    A vector on the left is a row, on the right a column, and that axis is gone afterwards. Leading axes broadcast, as
    in the Python array API standard 2024.12, `matmul`. ShapeError if the two k differ.

    >>> (Tensor.ones(2, 3) @ Tensor.ones(3, 4)).shape
    (2, 4)
    """
    if not isinstance(other, Handle):
      coerced = self._coerced(other)
      if coerced is NotImplemented or isinstance(coerced, Number):
        fail(DTypeError, f"a @ b: b is {other!r}, not a tensor", a=self)
      return self.matmul(coerced)
    if other._complex:
      return complex_numbers().matmul(self, other)
    left, right, batch = meeting(self, other)
    kind, k = common("a @ b", self, other), self.shape[-1]
    n, m = left[-1], right[-1]
    a, b = graph.cast(self._node, wide(kind)), graph.cast(other._node, wide(kind))
    b = (
      graph.permute(b, (*range(other.ndim - 2), other.ndim - 1, other.ndim - 2))
      if other.ndim > 1
      else graph.reshape(b, (1, k))
    )
    a = graph.reshape(a, (*left[:-1], n, 1, k))
    b = graph.reshape(b, (*right[:-1], 1, m, k))
    product = graph.alu("mul", graph.expand_to(a, (*batch, n, m, k)), graph.expand_to(b, (*batch, n, m, k)))
    out = graph.cast(graph.reduce(product, "add", (len(batch) + 2,)), kind)
    out = constant_in(out, a, b) if type(k) is int and not k else out  # not of a size that varies
    shape = (*batch, *((n,) if self.ndim > 1 else ()), *((m,) if other.ndim > 1 else ()))
    return self._new(graph.reshape(out, shape))

  def __matmul__(self, other: Any) -> Tensor:
    other = self._coerced(other)
    return self.matmul(other) if isinstance(other, Handle) else NotImplemented  # type: ignore[arg-type]

  def __rmatmul__(self, other: Any) -> Tensor:
    other = self._coerced(other)
    return other.matmul(self) if isinstance(other, Handle) else NotImplemented  # type: ignore[attr-defined]

  def dot(self, other: Tensor) -> Tensor:
    """`matmul`: of two vectors the inner product.

    >>> Tensor([1, 2]).dot(Tensor([3, 4]))
    Tensor(11)
    """
    return self.matmul(other)

  def mm(self, mat2: Tensor) -> Tensor:
    """`matmul` of two matrices."""
    self._expect("mm", 2, a=self, b=mat2)
    return self.matmul(mat2)

  def bmm(self, mat2: Tensor) -> Tensor:
    """`matmul` of two stacks of equally many matrices."""
    self._expect("bmm", 3, a=self, b=mat2)
    return self.matmul(mat2)

  def mv(self, vec: Tensor) -> Tensor:
    """`matmul` of a matrix and a vector."""
    self._expect("mv", 2, a=self)
    self._expect("mv", 1, b=vec)
    return self.matmul(vec)

  @staticmethod
  def _expect(what: str, ndim: int, **tensors: Any) -> None:
    for name, t in tensors.items():
      if t.ndim != ndim:
        fail(ShapeError, f"{what}: {name} has {t.ndim} axes, not {ndim}", **tensors)

  def outer(self, vec2: Tensor) -> Tensor:
    """Every element of one vector times every element of another.   T[n], T[m] -> T[n, m]

    >>> Tensor([1, 2]).outer(Tensor([3, 4]))
    Tensor([[3, 4],
            [6, 8]])
    """
    self._expect("outer", 1, a=self, b=vec2)
    return self.reshape(-1, 1) * vec2.reshape(1, -1)

  def inner(self, other: Tensor) -> Tensor:
    """The sums of products over the last axes of both.   T[.., k], T[..', k] -> T[.., ..']

    >>> Tensor([[1, 2], [3, 4]]).inner(Tensor([1, 10]))
    Tensor([21, 43])
    """
    if not self.shape or not other.shape:
      return self * other
    return self.tensordot(other, ([-1], [-1]))

  def vdot(self, other: Tensor) -> Tensor:
    """The inner product of two vectors."""
    self._expect("vdot", 1, a=self, b=other)
    return self.matmul(other)

  @staticmethod
  def einsum(formula: Any, *operands: Any, op: Any = "mul", reduce: str = "sum", **sizes: int) -> Tensor:
    """Sums of products over axes that have names, as PyTorch's `einsum`; and more.

    "ij,jk->ik": a name is a letter; one that is not in the result is summed over; one that an operand has twice takes
    its diagonal. "..." are axes that broadcast. Without "->", the result has the names that are there once, in order.
    Lists of numbers may stand behind each operand instead of the formula. ShapeError where a name has two sizes, unless
    one of them is 1, and where a size is not determined; `sizes` tells it.

    With "=>" names are words, with blanks between them, and "..name.." are axes as "...", of which there may be more
    than one kind. An integer takes that element of an axis. An index that is reckoned, 2*o+k, makes windows, without a
    copy; its sizes are the largest that fit. In the result it adds up what meets. a^b is an axis of parts: those of the
    result stand one behind another, and an operand counts in the parts of which it has the names; what has none is 0.

    op: "mul", "add", "max", "min", "and", "or", or a function of two tensors. reduce: "sum", "prod", "max", "min",
    "mean", "any" or "all". Several operands are multiplied in the order of the fewest operations, where op distributes
    over reduce; then what overflows, or is infinite, may depend on the order.

    >>> Tensor.einsum("ij,kj->ik", Tensor([[1, 2], [3, 4]]), Tensor([[1, 10]]))
    Tensor([[21],
            [43]])
    >>> signal, kernel = Tensor([1, 2, 3, 4, 5]), Tensor([1, 10])
    >>> Tensor.einsum("2*out+tap, tap => out", signal, kernel)
    Tensor([21, 43])
    >>> Tensor.einsum("i, k => 2*i+k", Tensor([1, 2]), kernel)
    Tensor([ 1, 10,  2, 20])
    >>> Tensor.einsum("i, j => i^j", Tensor([1, 2]), Tensor([3]))
    Tensor([1, 2, 3])
    >>> Tensor.einsum("i^j => j", Tensor([1, 2, 3]), j=1)
    Tensor([3])
    >>> Tensor.einsum("ij,jk->ik", Tensor([[0, 5], [2, 0]]), Tensor([[0, 1], [9, 0]]), op="add", reduce="min")
    Tensor([[0, 1],
            [2, 0]])
    """
    from mini.tensor.einsum import einsum  # formulas: for whom they are

    return einsum(formula, *operands, op=op, reduce=reduce, **sizes)  # type: ignore[return-value]

  def tensordot(self, other: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """The sums of products over the last `dims` axes of this and the first ones of the other;
    or over the axes of two lists.

    >>> Tensor.ones(2, 3, 4).tensordot(Tensor.ones(4, 3, 5), ([1, 2], [1, 0])).shape
    (2, 5)
    """
    if isinstance(dims, int):
      if not 0 <= dims <= min(self.ndim, other.ndim):
        fail(ShapeError, f"tensordot: a and b do not both have {dims} axes", a=self, b=other)
      dims = range(self.ndim - dims, self.ndim), range(dims)
    first, second = ([t._axis(d, "tensordot") for d in ds] for t, ds in zip((self, other), dims))
    pairs = [*zip(first, second)]
    for d, e in pairs:  # what meets one element is added up
      if (
        1 in (self.shape[d], other.shape[e]) and self.shape[d] != other.shape[e] and len(first) == len(second)
      ):
        x, y = self.sum(d, True, dtype=self.dtype), other.sum(e, True, dtype=other.dtype)
        return x.tensordot(y, dims)
    if [self.shape[d] for d in first] != [other.shape[d] for d in second]:
      about = f"tensordot: the axes {first} of a and {second} of b, which meet, do not have the same sizes"
      fail(ShapeError, about, a=self, b=other)
    names = [*range(self.ndim)], [*range(self.ndim, self.ndim + other.ndim)]
    for a, b in pairs:
      names[1][b] = a
    out = [n for n in (*names[0], *names[1]) if n not in first]
    return self.einsum(self, names[0], other, names[1], out)

  def kron(self, other: Tensor) -> Tensor:
    """The Kronecker product: each element of this times the other, side by side.   T[n, m], T[k, l] -> T[n*k, m*l]

    >>> Tensor([1, 10]).kron(Tensor([1, 2, 3]))
    Tensor([ 1,  2,  3, 10, 20, 30])
    """
    ndim = max(self.ndim, other.ndim)
    a, b = ((1,) * (ndim - t.ndim) + t.shape for t in (self, other))
    x = self.reshape(*(m for n in a for m in (n, 1)))
    y = other.reshape(*(m for n in b for m in (1, n)))
    return (x * y).reshape(*(n * m for n, m in zip(a, b)))

  def cross(self, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors along an axis of size 3; None: the first one of that size.

    >>> Tensor([1, 0, 0]).cross(Tensor([0, 1, 0]))
    Tensor([0, 0, 1])
    """
    s = broadcast_shape(self.shape, other.shape)
    if s is None:
      fail(ShapeError, "cross: the shapes do not repeat to a common one", a=self, b=other)
    if dim is None and 3 not in s:
      fail(ShapeError, "cross: no axis has size 3", a=self, b=other)
    axis = s.index(3) if dim is None else self._axis(dim, "cross", len(s))
    if not s or {t.shape[axis - len(s)] for t in (self, other) if t.ndim >= len(s) - axis} != {3}:
      fail(ShapeError, f"cross: axis {axis} does not have size 3", a=self, b=other)
    a, b = self.expand(*s), other.expand(*s)
    return a.roll(-1, axis) * b.roll(1, axis) - a.roll(1, axis) * b.roll(-1, axis)

  @staticmethod
  def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications; the first may be a row, the
    last a column.

    >>> Tensor.multi_dot([Tensor.ones(2, 9), Tensor.ones(9, 3), Tensor.ones(3)]).tolist()
    [27.0, 27.0]
    """
    if len(tensors) < 2:
      fail(ShapeError, f"multi_dot: {len(tensors)} matrices; a product has two or more")
    first, *middle, last = tensors
    for t in middle:
      t._expect("multi_dot", 2, matrix=t)
    matrices = [first.unsqueeze(0) if first.ndim == 1 else first, *middle]
    matrices.append(last.unsqueeze(1) if last.ndim == 1 else last)
    for a, b in pairwise(matrices):
      a._expect("multi_dot", 2, a=a, b=b)
      if a.shape[1] != b.shape[0]:
        fail(
          ShapeError,
          "multi_dot: matrices beside each other do not fit",
          hint=_fitting(a.shape, b.shape),
          a=a,
          b=b,
        )
    out = _cheapest(matrices)
    out = out.squeeze(0) if first.ndim == 1 else out
    return out.squeeze(-1) if last.ndim == 1 else out

  @staticmethod
  def chain_matmul(*matrices: Tensor) -> Tensor:
    """`multi_dot` of arguments; of one, that matrix."""
    if len(matrices) > 1:
      return Multiply.multi_dot(matrices)
    if not matrices:
      fail(ShapeError, "chain_matmul: no matrices")
    matrices[0]._expect("chain_matmul", 2, matrix=matrices[0])
    return matrices[0]

  def bilinear(self, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight[o] @ y for each o, as PyTorch's `F.bilinear`.

    x: T[.., n]   y: T[.., m]   weight: T[o, n, m]   ->   T[.., o]

    >>> Tensor.ones(5, 2).bilinear(Tensor.ones(5, 3), Tensor.ones(4, 2, 3)).shape
    (5, 4)
    """
    out = self.einsum("...n,onm,...m->...o", self, weight, input2)
    return out if bias is None else out + bias

  def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias, as PyTorch's `F.linear`.   x: T[.., k]   weight: T[m, k]   bias: T[m]   ->   T[.., m]"""
    if self.ndim and weight.ndim == 2 and self.shape[-1] != weight.shape[1]:
      message = f"linear: the last axis of x is {self.shape[-1]}, and the weight takes {weight.shape[1]}"
      fail(ShapeError, message, x=self, weight=weight)
    out = self @ weight.T
    return out if bias is None else out + bias

  def addmm(self, mat1: Tensor, mat2: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * self + alpha * mat1 @ mat2; where beta is 0, self does not matter, whatever it holds."""
    return self._plus("addmm", mat1.mm(mat2), beta, alpha)

  def addmv(self, mat: Tensor, vec: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """The same of a matrix and a vector."""
    return self._plus("addmv", mat.mv(vec), beta, alpha)

  def addr(self, vec1: Tensor, vec2: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """The same of the outer product of two vectors."""
    return self._plus("addr", vec1.outer(vec2), beta, alpha)

  def baddbmm(self, batch1: Tensor, batch2: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """The same of stacks of matrices."""
    return self._plus("baddbmm", batch1.bmm(batch2), beta, alpha)

  def addbmm(self, batch1: Tensor, batch2: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """The same of the sum of the products of two stacks of matrices.

    >>> Tensor([[5.0]]).addbmm(Tensor.ones(2, 1, 3), Tensor.ones(2, 3, 1), beta=0)
    Tensor([[6.]])
    """
    self._expect("addbmm", 3, a=batch1, b=batch2)
    return self._plus("addbmm", self.einsum("bnk,bkm->nm", batch1, batch2), beta, alpha)

  def _plus(self, what: str, product: Tensor, beta: float, alpha: float) -> Tensor:
    if broadcast_shape(self.shape, product.shape) != product.shape:
      fail(ShapeError, f"{what}: x does not repeat to the shape of the product, {product.shape}", x=self)
    kind = result_type(self, product)
    if kind is dtypes.bool:
      return (self & bool(beta)) | (product & bool(alpha))
    if kind.kind in "iu":
      alpha, beta = int(alpha), int(beta)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
      return scaled.to(kind)
    return (self if beta == 1 else self * beta) + scaled

  # ---------------------------------------------------------------- attention

  def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                   dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                   enable_gqa: bool = False) -> Tensor:  # fmt: skip
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
      fail(
        ArgumentError, "scaled_dot_product_attention: give is_causal or attn_mask, not both", mask=attn_mask
      )
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
    if attn_mask is not None:
      weights, total = scores._seen()
    else:
      weights = (scores - scores.detach().amax(-1, True)).exp()
      if see is not None:
        weights = see.where(weights, 0)  # as it is: now the sums of it are seen to end there
      total = weights.sum(-1, True)
    if dropout_p:
      weights = weights.dropout(dropout_p, training=True)
    return (weights.matmul(v) / total).to(kind)

  def _seen(self) -> tuple[Tensor, Tensor]:
    """What makes weights of scores: exp(a), but for a factor, and its sum along the last axis. Of a row of which
    nothing is seen, -inf everywhere, 0 and 1: what it attends to is 0, and so are all its gradients."""
    weights = (self - self._peak(-1)).exp()  # type: ignore[attr-defined]  # of a later family
    total = weights.sum(-1, True)
    return weights, (total == 0).where(1, total)


def _cheapest(matrices: Sequence[Tensor]) -> Tensor:
  """Their product: of each run of them, where to cut it last is known once it is of all shorter ones."""
  n = len(matrices)
  sizes = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
  cost = [[0] * n for _ in range(n)]
  cut = [[0] * n for _ in range(n)]
  for length in range(1, n):
    for i in range(n - length):
      j = i + length
      costs = [cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
      cost[i][j] = min(costs)
      cut[i][j] = i + costs.index(cost[i][j])

  def product(i: int, j: int) -> Tensor:
    return matrices[i] if i == j else product(i, cut[i][j]) @ product(cut[i][j] + 1, j)

  return product(0, n - 1)


def common(what: str, a: Handle, b: Handle) -> Any:
  try:
    return result_type(a, b)
  except DTypeError as e:
    fail(DTypeError, f"{what}: {e}", a=a, b=b)


def meeting(a: Handle, b: Handle) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
  """The axes of two factors of a matrix product but for the one that is summed, and their leading ones in common."""
  if not a.shape or not b.shape:
    fail(ShapeError, "a @ b: a 0-d tensor has no axis to sum over; a * b would fit", a=a, b=b)
  k, met = a.shape[-1], b.shape[-2] if b.ndim > 1 else b.shape[0]
  if k != met:
    message = f"a @ b: the last axis of a is {k}, but the axis of b that it meets is {met}"
    fail(ShapeError, message, hint=_fitting(a.shape, b.shape), a=a, b=b)
  left = a.shape[:-1] if a.ndim > 1 else (1,)
  right = (*b.shape[:-2], b.shape[-1]) if b.ndim > 1 else (1,)
  batch = broadcast_shape(left[:-1], right[:-1])
  if batch is None:
    about = f"a @ b: the leading axes {left[:-1]} and {right[:-1]} do not repeat to common ones"
    fail(ShapeError, about, a=a, b=b)
  return left, right, batch


def _fitting(a: Sequence[int], b: Sequence[int]) -> str:
  """What would make two shapes fit a matrix product, where something simple does."""
  if len(b) >= 2 and b[-1] == a[-1]:
    return "b.T would fit" if len(b) == 2 else "b.mT would fit"
  if len(a) >= 2 and a[-2] == (b[-2] if len(b) > 1 else b[0]):
    return "a.T would fit" if len(a) == 2 else "a.mT would fit"
  return ""
