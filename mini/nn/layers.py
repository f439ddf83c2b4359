"""The layers: PyTorch's names, arguments, parameter names, layouts and initial values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from mini.nn import init
from mini.nn.module import Module, Parameter
from mini.tensor import Tensor
from mini.tensor.handle import fail
from mini.types import ShapeError, dtypes


def weight(*s: int, dtype: Any = None, device: str | None = None) -> Tensor:
  """A parameter whose values are still to be set."""
  return Parameter(Tensor.empty(*s, dtype=dtype, device=device))


class Linear(Module):
  """x @ weight.T + bias.   x: T[.., n]   weight: T[m, n]   ->   T[.., m]

  >>> Linear(3, 2)(Tensor.ones(5, 3)).shape
  (5, 2)
  """

  def __init__(
    self, in_features: int, out_features: int, bias: bool = True, device: str | None = None, dtype: Any = None
  ):
    self.in_features, self.out_features = in_features, out_features
    self.weight = weight(out_features, in_features, dtype=dtype, device=device)
    self.bias = weight(out_features, dtype=dtype, device=device) if bias else None
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Uniform within 1 / sqrt(in_features) of 0, weight and bias."""
    bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
    init.uniform_(self.weight, -bound, bound)
    if self.bias is not None:
      init.uniform_(self.bias, -bound, bound)

  def forward(self, x: Tensor) -> Tensor:
    return x.linear(self.weight, self.bias)

  def extra_repr(self) -> str:
    return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
  """Rows of a table.   index: int[..]   weight: T[n, d]   ->   T[.., d]

  padding_idx: a row that is 0 at the beginning and gets no gradient.

  >>> Embedding(10, 4)(Tensor([1, 2, 1])).shape
  (3, 4)
  """

  def __init__(
    self,
    num_embeddings: int,
    embedding_dim: int,
    padding_idx: int | None = None,
    device: str | None = None,
    dtype: Any = None,
  ):
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

  def forward(self, index: Tensor) -> Tensor:
    rows = self.weight.embedding(index)
    return (
      rows
      if self.padding_idx is None
      else (index != self.padding_idx).unsqueeze(-1).where(rows, rows.detach())
    )

  def extra_repr(self) -> str:
    return f"{self.num_embeddings}, {self.embedding_dim}"


def _sizes(s: int | Iterable[int]) -> tuple[int, ...]:
  return (s,) if isinstance(s, int) else tuple(s)


class LayerNorm(Module):
  """(x - mean) / sqrt(var + eps) * weight + bias over the last axes. https://arxiv.org/abs/1607.06450

  >>> LayerNorm(4)(Tensor.ones(2, 4)).shape
  (2, 4)
  """

  def __init__(
    self,
    normalized_shape: int | Iterable[int],
    eps: float = 1e-5,
    elementwise_affine: bool = True,
    bias: bool = True,
    device: str | None = None,
    dtype: Any = None,
  ):
    self.normalized_shape, self.eps = _sizes(normalized_shape), eps
    self.weight = weight(*self.normalized_shape, dtype=dtype, device=device) if elementwise_affine else None
    self.bias = (
      weight(*self.normalized_shape, dtype=dtype, device=device) if elementwise_affine and bias else None
    )
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Weight 1, bias 0."""
    if self.weight is not None:
      init.ones_(self.weight)
    if self.bias is not None:
      init.zeros_(self.bias)

  def forward(self, x: Tensor) -> Tensor:
    return x.layer_norm(self.normalized_shape, self.weight, self.bias, self.eps)

  def extra_repr(self) -> str:
    return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class RMSNorm(Module):
  """x / sqrt(mean(x**2) + eps) * weight over the last axes. https://arxiv.org/abs/1910.07467"""

  def __init__(
    self,
    normalized_shape: int | Iterable[int],
    eps: float | None = None,
    elementwise_affine: bool = True,
    device: str | None = None,
    dtype: Any = None,
  ):
    self.normalized_shape, self.eps = _sizes(normalized_shape), eps
    self.weight = weight(*self.normalized_shape, dtype=dtype, device=device) if elementwise_affine else None
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Weight 1."""
    if self.weight is not None:
      init.ones_(self.weight)

  def forward(self, x: Tensor) -> Tensor:
    return x.rms_norm(self.normalized_shape, self.weight, self.eps)

  def extra_repr(self) -> str:
    return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class Dropout(Module):
  """While training: zeros with probability p, all else over 1 - p.

  >>> Dropout(0.5).eval()(Tensor.ones(2))
  Tensor([1., 1.])
  """

  def __init__(self, p: float = 0.5, inplace: bool = False):
    if not 0 <= p <= 1:
      fail(ValueError, f"Dropout: {p} is no probability")
    self.p = p

  def forward(self, x: Tensor) -> Tensor:
    return x.dropout(self.p, training=self.training)

  def extra_repr(self) -> str:
    return f"p={self.p}"


# ---------------------------------------------------------------- containers


class ModuleList(Module):
  """Modules in a list; the n-th has the path `n`.

  >>> [m.out_features for m in ModuleList([Linear(2, 3), Linear(3, 4)])]
  [3, 4]
  """

  def __init__(self, modules: Iterable[Any] = ()):
    self._length = 0
    self.extend(modules)

  def append(self, module: Any) -> ModuleList:
    """One more at the end."""
    setattr(self, str(self._length), module)
    self._length += 1
    return self

  def extend(self, modules: Iterable[Any]) -> ModuleList:
    """More at the end."""
    for m in modules:
      self.append(m)
    return self

  def insert(self, index: int, module: Any) -> None:
    """One more before the one at `index`."""
    everything = list(self)
    everything.insert(index, module)
    self._length = 0
    self.extend(everything)

  def __len__(self) -> int:
    return self._length

  def __iter__(self) -> Iterator[Any]:
    return (getattr(self, str(n)) for n in range(self._length))

  def __getitem__(self, index: int | slice) -> Any:
    if isinstance(index, slice):
      return type(self)(list(self)[index]) if type(self) is ModuleList else type(self)(*list(self)[index])
    return getattr(self, str(range(self._length)[index]))

  def __setitem__(self, index: int, module: Any) -> None:
    setattr(self, str(range(self._length)[index]), module)


class Sequential(ModuleList):
  """Modules, or any functions of a tensor, one after the other.

  >>> Sequential(Linear(4, 8), nn.ReLU(), Linear(8, 2))(Tensor.ones(3, 4)).shape
  (3, 2)
  """

  def __init__(self, *modules: Any):
    super().__init__(modules)

  def forward(self, x: Any) -> Any:
    for m in self:
      x = m(x)
    return x


# ---------------------------------------------------------------- attention


class MultiheadAttention(Module):
  """Attention of several heads, with its projections. https://arxiv.org/abs/1706.03762

  query: T[L, N, E]   key, value: T[S, N, E]   ->   T[L, N, E], and the weights T[N, L, S]

  Weights that are not averaged over the heads are T[N, heads, L, S].

  With batch_first, N comes first; without a batch, N is absent. A boolean mask says what is
  *not* seen, as in PyTorch.

  >>> x = Tensor.ones(2, 5, 8)
  >>> out, weights = MultiheadAttention(8, 2, batch_first=True)(x, x, x)
  >>> out.shape, weights.shape
  ((2, 5, 8), (2, 5, 5))
  """

  def __init__(
    self,
    embed_dim: int,
    num_heads: int,
    dropout: float = 0.0,
    bias: bool = True,
    batch_first: bool = False,
    device: str | None = None,
    dtype: Any = None,
  ):
    if num_heads < 1 or embed_dim % num_heads:
      fail(ShapeError, f"MultiheadAttention: {embed_dim} does not divide into {num_heads} heads")
    self.embed_dim, self.num_heads, self.dropout, self.batch_first = (
      embed_dim,
      num_heads,
      dropout,
      batch_first,
    )
    self.in_proj_weight = weight(3 * embed_dim, embed_dim, dtype=dtype, device=device)
    self.in_proj_bias = weight(3 * embed_dim, dtype=dtype, device=device) if bias else None
    self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
    init.xavier_uniform_(self.in_proj_weight)
    if self.in_proj_bias is not None and self.out_proj.bias is not None:
      init.zeros_(self.in_proj_bias)
      init.zeros_(self.out_proj.bias)

  def forward(
    self,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
  ) -> tuple[Tensor, Tensor | None]:
    """(what is attended to, the weights or None).

    key_padding_mask: [N, S]   attn_mask: [L, S] or [N * heads, L, S]
    """
    q, k, v = self._projected(query, key, value)  # [N, heads, L or S, E / heads]
    mask = self._mask(q, k, key_padding_mask, attn_mask, is_causal)
    p = self.dropout if self.training else 0.0
    weights = None
    if need_weights:
      scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.mT
      weights = (scores if mask is None else scores + mask).softmax(-1)
      weights = weights.dropout(p, training=True) if p else weights
      out = weights @ v
      weights = weights.mean(1) if average_attn_weights else weights
    else:
      out = q.scaled_dot_product_attention(k, v, attn_mask=mask, dropout_p=p)
    n, _, length, _ = out.shape
    out = self.out_proj(out.transpose(1, 2).reshape(n, length, self.embed_dim))
    if query.ndim == 2:
      return out[0], None if weights is None else weights[0]
    return out if self.batch_first else out.transpose(0, 1), weights

  def _projected(self, *inputs: Tensor) -> list[Tensor]:
    e, found = self.embed_dim, []
    if inputs[0] is inputs[1] is inputs[2]:
      found = list(inputs[0].linear(self.in_proj_weight, self.in_proj_bias).chunk(3, -1))
    else:
      for n, x in enumerate(inputs):
        rows = slice(n * e, (n + 1) * e)
        found.append(
          x.linear(self.in_proj_weight[rows], None if self.in_proj_bias is None else self.in_proj_bias[rows])
        )
    return [self._heads(x) for x in found]

  def _heads(self, x: Tensor) -> Tensor:
    if x.ndim == 2:
      x = x.unsqueeze(0)
    elif not self.batch_first:
      x = x.transpose(0, 1)
    n, length, e = x.shape
    return x.reshape(n, length, self.num_heads, e // self.num_heads).transpose(1, 2)

  def _mask(
    self, q: Tensor, k: Tensor, padding: Tensor | None, mask: Tensor | None, is_causal: bool
  ) -> Tensor | None:
    """What is added to the scores, [.., L, S]: 0, or -inf where nothing is seen."""
    n, heads, length, _ = q.shape
    terms = []
    if is_causal and mask is None:
      mask = Tensor.ones(length, k.shape[2], dtype=dtypes.bool).tril().logical_not()
    if mask is not None:
      added = self._added(mask, q)
      terms.append(added.reshape(n, heads, *mask.shape[1:]) if mask.ndim == 3 else added)
    if padding is not None:
      terms.append(self._added(padding, q).reshape(n, 1, 1, k.shape[2]))
    return sum(terms[1:], terms[0]) if terms else None

  @staticmethod
  def _added(mask: Tensor, q: Tensor) -> Tensor:
    return (
      mask.where(-math.inf, Tensor.zeros(*mask.shape, dtype=q.dtype)) if mask.dtype is dtypes.bool else mask
    )

  def extra_repr(self) -> str:
    return f"{self.embed_dim}, {self.num_heads}"


# ---------------------------------------------------------------- shapes


class Identity(Module):
  """x itself."""

  def __init__(self, *args: Any, **kwargs: Any):
    pass

  def forward(self, x: Any) -> Any:
    return x


class Flatten(Module):
  """Axes start_dim to end_dim as one."""

  def __init__(self, start_dim: int = 1, end_dim: int = -1):
    self.start_dim, self.end_dim = start_dim, end_dim

  def forward(self, x: Tensor) -> Tensor:
    return x.flatten(self.start_dim, self.end_dim)
