"""Attention and transformers: PyTorch's modules, with its names; grouped queries and rotary positions beside them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from mini.nn import init
from mini.nn.layers import Dropout, Linear, ModuleList, weight
from mini.nn.module import Module
from mini.nn.normalization import LayerNorm
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError, ShapeError, dtypes


class MultiheadAttention(Module):
  """Attention of several heads, with its projections. https://arxiv.org/abs/1706.03762

  query: T[L, N, E]   key: T[S, N, K]   value: T[S, N, V]   ->   T[L, N, E], and the weights T[N, L, S]

  Weights that are not averaged over the heads are T[N, heads, L, S].

  K and V are E unless kdim and vdim say otherwise. With batch_first, N comes first; without a batch, N is absent. A
  boolean mask says what is *not* seen, as in PyTorch. add_bias_kv: a key and a value more, which are learned;
  add_zero_attn: and ones of zeros.

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
    add_bias_kv: bool = False,
    add_zero_attn: bool = False,
    kdim: int | None = None,
    vdim: int | None = None,
    batch_first: bool = False,
    device: str | None = None,
    dtype: Any = None,
  ):
    if num_heads < 1 or embed_dim % num_heads:
      fail(ShapeError, f"MultiheadAttention: {embed_dim} does not divide into {num_heads} heads")
    self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
    self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
    self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
    made = {"dtype": dtype, "device": device}
    if self.kdim == self.vdim == embed_dim:
      self.in_proj_weight: Tensor | None = weight(3 * embed_dim, embed_dim, **made)
    else:
      self.in_proj_weight = None
      self.q_proj_weight = weight(embed_dim, embed_dim, **made)
      self.k_proj_weight = weight(embed_dim, self.kdim, **made)
      self.v_proj_weight = weight(embed_dim, self.vdim, **made)
    self.in_proj_bias = weight(3 * embed_dim, **made) if bias else None
    self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
    self.bias_k = weight(1, 1, embed_dim, **made) if add_bias_kv else None
    self.bias_v = weight(1, 1, embed_dim, **made) if add_bias_kv else None
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Projections of Xavier's uniform values, biases 0, the learned key and value of Xavier's normal ones."""
    for w in self._projections():
      init.xavier_uniform_(w)
    if self.in_proj_bias is not None and self.out_proj.bias is not None:
      init.zeros_(self.in_proj_bias)
      init.zeros_(self.out_proj.bias)
    if self.bias_k is not None and self.bias_v is not None:
      init.xavier_normal_(self.bias_k)
      init.xavier_normal_(self.bias_v)

  def _projections(self) -> list[Tensor]:
    if self.in_proj_weight is not None:
      return [self.in_proj_weight]
    return [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]

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
    k, v, mask = self._with_more(k, v, mask)
    p = self.dropout if self.training else 0.0
    weights = None
    if need_weights:
      scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.mT
      if mask is None:
        weights = scores.softmax(-1)
      else:
        seen, total = (scores + mask)._seen()
        weights = seen / total
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
    e, bias, packed = self.embed_dim, self.in_proj_bias, self.in_proj_weight
    if packed is not None and inputs[0] is inputs[1] is inputs[2]:
      return [self._heads(x) for x in inputs[0].linear(packed, bias).chunk(3, -1)]
    rows = [slice(n * e, (n + 1) * e) for n in range(3)]
    ws = self._projections() if packed is None else [packed[r] for r in rows]
    return [self._heads(x.linear(w, None if bias is None else bias[r])) for x, w, r in zip(inputs, ws, rows)]

  def _heads(self, x: Tensor) -> Tensor:
    if x.ndim == 2:
      x = x.unsqueeze(0)
    elif not self.batch_first:
      x = x.transpose(0, 1)
    n, length, e = x.shape
    return x.reshape(n, length, self.num_heads, e // self.num_heads).transpose(1, 2)

  def _with_more(self, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """With the learned key and value, and those of zeros, which are always seen."""
    for more in ([(self.bias_k, self.bias_v)] if self.bias_k is not None else []) + (
      [(None, None)] if self.add_zero_attn else []
    ):
      s = (k.shape[0], self.num_heads, 1, k.shape[-1])
      ends = [
        Tensor.zeros(*s, dtype=k.dtype)
        if b is None
        else b.reshape(1, self.num_heads, 1, k.shape[-1]).expand(*s)
        for b in more
      ]
      k, v = k.cat(ends[0], dim=2), v.cat(ends[1], dim=2)
      mask = None if mask is None else mask.pad((0, 1))
    return k, v, mask

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


class RotaryEmbedding(Module):
  """Positions as rotations of pairs of features, (i, i + dim / 2), by position / base ** (2 i / dim).
  https://arxiv.org/abs/2104.09864

  x: T[.., L, dim]; `offset` is the position of the first, an int or i64[].

  >>> RotaryEmbedding(4)(Tensor.ones(2, 3, 4)).shape
  (2, 3, 4)
  """

  def __init__(self, dim: int, base: float = 10000.0):
    if dim % 2:
      fail(ShapeError, f"RotaryEmbedding: {dim} features are no pairs")
    self.dim, self.base = dim, base

  def forward(self, x: Tensor, offset: Any = 0) -> Tensor:
    if x.shape[-1] != self.dim:
      fail(ShapeError, f"RotaryEmbedding: the last axis of x is not {self.dim}", x=x)
    position = (Tensor.arange(x.shape[-2]) + offset).float().unsqueeze(1)
    angle = position * (Tensor.arange(0, self.dim, 2).float() * (-math.log(self.base) / self.dim)).exp()
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return (a * cos - b * sin).cat(b * cos + a * sin, dim=-1)

  def extra_repr(self) -> str:
    return f"{self.dim}, base={self.base}"


class GroupedQueryAttention(Module):
  """Self-attention in which each head of keys and values serves several of queries. https://arxiv.org/abs/2305.13245

  x: T[N, L, E] -> T[N, L, E], without biases unless asked for; rotary: the base of `RotaryEmbedding`, or None.

  >>> GroupedQueryAttention(8, 4, 2, rotary=10000.0)(Tensor.ones(2, 5, 8), is_causal=True).shape
  (2, 5, 8)
  """

  def __init__(
    self,
    embed_dim: int,
    num_heads: int,
    num_kv_heads: int,
    bias: bool = False,
    dropout: float = 0.0,
    rotary: float | None = None,
    device: str | None = None,
    dtype: Any = None,
  ):
    if num_kv_heads < 1 or embed_dim % num_heads or num_heads % num_kv_heads:
      fail(
        ShapeError,
        f"GroupedQueryAttention: {embed_dim} features, {num_heads} heads and {num_kv_heads} of keys do not divide",
      )
    self.num_heads, self.num_kv_heads, self.dropout = num_heads, num_kv_heads, dropout
    self.head_dim = embed_dim // num_heads
    narrow = num_kv_heads * self.head_dim
    self.q_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
    self.k_proj = Linear(embed_dim, narrow, bias, device, dtype)
    self.v_proj = Linear(embed_dim, narrow, bias, device, dtype)
    self.o_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
    self.rotary = None if rotary is None else RotaryEmbedding(self.head_dim, rotary)

  def forward(self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
    """attn_mask: boolean (true: take part) or added to the scores, [.., L, L]"""
    n, length, e = x.shape
    q, k, v = (
      p(x).reshape(n, length, heads, self.head_dim).transpose(1, 2)
      for p, heads in (
        (self.q_proj, self.num_heads),
        (self.k_proj, self.num_kv_heads),
        (self.v_proj, self.num_kv_heads),
      )
    )
    if self.rotary is not None:
      q, k = self.rotary(q), self.rotary(k)
    p = self.dropout if self.training else 0.0
    out = q.scaled_dot_product_attention(k, v, attn_mask, p, is_causal, enable_gqa=True)
    return self.o_proj(out.transpose(1, 2).reshape(n, length, e))


# ---------------------------------------------------------------- transformers


class _Block(Module):
  """What layers of encoders and decoders share: residual parts, each with its norm and dropout, named by numbers."""

  attentions: tuple[str, ...]  # a part for each, and one for the linear layers
  norm_first: bool

  def __init__(
    self,
    d_model: int,
    nhead: int,
    dim_feedforward: int = 2048,
    dropout: float = 0.1,
    activation: Any = "relu",
    layer_norm_eps: float = 1e-5,
    batch_first: bool = False,
    norm_first: bool = False,
    bias: bool = True,
    device: str | None = None,
    dtype: Any = None,
  ):
    made: dict[str, Any] = {"device": device, "dtype": dtype}
    for name in self.attentions:
      setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made))
    self.linear1, self.linear2 = (
      Linear(d_model, dim_feedforward, bias, **made),
      Linear(dim_feedforward, d_model, bias, **made),
    )
    self.dropout, self.norm_first = Dropout(dropout), norm_first
    for n in range(1, len(self.attentions) + 2):
      setattr(self, f"norm{n}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
      setattr(self, f"dropout{n}", Dropout(dropout))
    if isinstance(activation, str) and activation not in ("relu", "gelu"):
      fail(
        ArgumentError,
        f'{type(self).__name__}: activation is "relu", "gelu" or a function, not {activation!r}',
      )
    self.activation = activation

  def _act(self, x: Tensor) -> Tensor:
    return getattr(x, self.activation)() if isinstance(self.activation, str) else self.activation(x)

  def _part(self, n: int, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
    """The n-th residual part."""
    norm, drop = getattr(self, f"norm{n}"), getattr(self, f"dropout{n}")
    return x + drop(f(norm(x))) if self.norm_first else norm(x + drop(f(x)))

  def _feed(self, x: Tensor) -> Tensor:
    return self.linear2(self.dropout(self._act(self.linear1(x))))


class TransformerEncoderLayer(_Block):
  """Self-attention and two linear layers, each around with a residual and a LayerNorm. https://arxiv.org/abs/1706.03762

  src: T[S, N, E], with batch_first T[N, S, E], or T[S, E]. norm_first: norms before, not behind. activation: "relu",
  "gelu" or a function of a tensor.

  >>> TransformerEncoderLayer(8, 2, 16, batch_first=True)(Tensor.ones(2, 5, 8)).shape
  (2, 5, 8)
  """

  attentions = ("self_attn",)
  self_attn: MultiheadAttention

  def forward(
    self,
    src: Tensor,
    src_mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool = False,
  ) -> Tensor:
    """Masks as of MultiheadAttention."""

    def attend(x: Tensor) -> Tensor:
      return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

    return self._part(2, self._part(1, src, attend), self._feed)


class TransformerDecoderLayer(_Block):
  """As TransformerEncoderLayer, with attention to what an encoder gave (`memory`) between.

  >>> TransformerDecoderLayer(8, 2, 16)(Tensor.ones(5, 2, 8), Tensor.ones(3, 2, 8)).shape
  (5, 2, 8)
  """

  attentions = ("self_attn", "multihead_attn")
  self_attn: MultiheadAttention
  multihead_attn: MultiheadAttention

  def forward(
    self,
    tgt: Tensor,
    memory: Tensor,
    tgt_mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
    tgt_key_padding_mask: Tensor | None = None,
    memory_key_padding_mask: Tensor | None = None,
    tgt_is_causal: bool = False,
    memory_is_causal: bool = False,
  ) -> Tensor:
    """Masks as of MultiheadAttention."""

    def attend(x: Tensor) -> Tensor:
      return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

    def attend_memory(x: Tensor) -> Tensor:
      return self.multihead_attn(
        x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
      )[0]

    return self._part(3, self._part(2, self._part(1, tgt, attend), attend_memory), self._feed)


class TransformerEncoder(Module):
  """Copies of a layer, one after the other, and a norm behind them if given."""

  def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None, **ignored: Any):
    self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
    self.num_layers, self.norm = num_layers, norm

  def forward(
    self,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool = False,
  ) -> Tensor:
    """Masks as of MultiheadAttention."""
    for layer in self.layers:
      src = layer(src, mask, src_key_padding_mask, bool(is_causal))
    return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
  """Copies of a layer, one after the other, and a norm behind them if given."""

  def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
    self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
    self.num_layers, self.norm = num_layers, norm

  def forward(self, tgt: Tensor, memory: Tensor, *masks: Any, **named_masks: Any) -> Tensor:
    """Masks as of TransformerDecoderLayer."""
    for layer in self.layers:
      tgt = layer(tgt, memory, *masks, **named_masks)
    return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
  """An encoder and a decoder. https://arxiv.org/abs/1706.03762   src: T[S, N, E]   tgt: T[L, N, E]   ->   T[L, N, E]

  >>> Transformer(8, 2, 1, 1, 16)(Tensor.ones(5, 2, 8), Tensor.ones(3, 2, 8)).shape
  (3, 2, 8)
  """

  def __init__(
    self,
    d_model: int = 512,
    nhead: int = 8,
    num_encoder_layers: int = 6,
    num_decoder_layers: int = 6,
    dim_feedforward: int = 2048,
    dropout: float = 0.1,
    activation: Any = "relu",
    custom_encoder: Module | None = None,
    custom_decoder: Module | None = None,
    layer_norm_eps: float = 1e-5,
    batch_first: bool = False,
    norm_first: bool = False,
    bias: bool = True,
    device: str | None = None,
    dtype: Any = None,
  ):
    made = {"device": device, "dtype": dtype}
    rest = (
      d_model,
      nhead,
      dim_feedforward,
      dropout,
      activation,
      layer_norm_eps,
      batch_first,
      norm_first,
      bias,
    )
    norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, **made) for _ in range(2)]
    self.encoder = custom_encoder or TransformerEncoder(
      TransformerEncoderLayer(*rest, **made), num_encoder_layers, norms[0]
    )
    self.decoder = custom_decoder or TransformerDecoder(
      TransformerDecoderLayer(*rest, **made), num_decoder_layers, norms[1]
    )
    self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
    for p in self.parameters():
      if p.ndim > 1:
        init.xavier_uniform_(p)

  def forward(
    self,
    src: Tensor,
    tgt: Tensor,
    src_mask: Tensor | None = None,
    tgt_mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    tgt_key_padding_mask: Tensor | None = None,
    memory_key_padding_mask: Tensor | None = None,
    src_is_causal: bool = False,
    tgt_is_causal: bool = False,
    memory_is_causal: bool = False,
  ) -> Tensor:
    """Masks as of MultiheadAttention."""
    memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
    masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
    return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

  @staticmethod
  def generate_square_subsequent_mask(sz: int, device: str | None = None, dtype: Any = None) -> Tensor:
    """-inf above the diagonal, zeros elsewhere.

    >>> Transformer.generate_square_subsequent_mask(2)
    Tensor([[  0., -inf],
            [  0.,   0.]])
    """
    seen = Tensor.ones(sz, sz, dtype=dtypes.bool, device=device).tril()
    return seen.where(Tensor.zeros(sz, sz, dtype=dtype, device=device), -math.inf)


__all__ = ["GroupedQueryAttention", "MultiheadAttention", "RotaryEmbedding", "Transformer", "TransformerDecoder",
           "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]  # fmt: skip
