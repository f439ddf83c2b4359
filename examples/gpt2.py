"""GPT-2 (Radford et al. 2019): pre-LN blocks, tanh-GELU, learned positions, the embedding tied to the output.

Parameters have the names and layouts of the published weights (as in `model.safetensors` of Hugging Face's gpt2), so
loading one is reading names. Training is in train_gpt2.py, sampling in generate.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from mini import Tensor, Variable, dtypes, nn


@dataclass(frozen=True)
class Config:
  """The sizes of a GPT-2."""

  layers: int = 12
  heads: int = 12
  width: int = 768
  block: int = 1024  # tokens that it can see
  vocabulary: int = 50257
  dropout: float = 0.0


MODELS = {
  "pico": Config(2, 2, 32, block=64),
  "nano": Config(4, 4, 128, block=128),
  "micro": Config(6, 6, 384, block=256),
  "gpt2": Config(12, 12, 768),
  "gpt2-medium": Config(24, 16, 1024),
  "gpt2-large": Config(36, 20, 1280),
  "gpt2-xl": Config(48, 25, 1600),
}


class Conv1D(nn.Module):
  """GPT-2's name for a linear layer with the weight as [in, out]."""

  def __init__(self, n: int, m: int, std: float = 0.02):
    self.weight = nn.Parameter(Tensor.normal(n, m, std=std))
    self.bias = nn.Parameter(Tensor.zeros(m))

  def forward(self, x: Tensor) -> Tensor:
    # x: T[..., n]   ->   T[..., m]
    return x @ self.weight.cast(x.dtype) + self.bias.cast(x.dtype)


class LayerNorm(nn.LayerNorm):
  """In float32, whatever comes in."""

  def forward(self, x: Tensor) -> Tensor:
    return super().forward(x.float()).cast(x.dtype)


class Cache:
  """Keys and values of the tokens so far, of each layer in one tensor: T[2, B, heads, block, width/heads]."""

  def __init__(self, config: Config, batch: int, dtype=dtypes.float32):
    shape = (2, batch, config.heads, config.block, config.width // config.heads)
    self.layers = [Tensor.zeros(*shape, dtype=dtype).realize() for _ in range(config.layers)]
    self.seen = Variable("seen", 1, config.block)

  def extend(self, layer: int, places: Tensor, kv: Tensor) -> Tensor:
    """Put keys and values at these places; those of all that is seen by then. kv: T[2, B, heads, T, width/heads]"""
    self.layers[layer][:, :, :, places] = kv
    return self.layers[layer][:, :, :, : self.seen]


class Attention(nn.Module):
  def __init__(self, config: Config, layer: int):
    self.heads, self.layer, self.dropout = config.heads, layer, config.dropout
    self.c_attn = Conv1D(config.width, 3 * config.width)
    self.c_proj = Conv1D(config.width, config.width, std=0.02 / (2 * config.layers) ** 0.5)

  def forward(self, x: Tensor, places: Tensor, cache: Cache | None) -> Tensor:
    # x: T[B, T, C]   places: i64[T]   ->   T[B, T, C]
    b, t, c = x.shape
    qkv = self.c_attn(x).reshape(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
    if cache is None:
      q, k, v = qkv
      p = self.dropout if self.training else 0.0
      y = q.scaled_dot_product_attention(k, v, is_causal=True, dropout_p=p)
    else:
      q, (k, v) = qkv[0], cache.extend(self.layer, places, qkv[1:])
      past = places.unsqueeze(1) >= Tensor.arange(cache.layers[0].shape[3])[: cache.seen] if t > 1 else None
      y = q.scaled_dot_product_attention(k, v, attn_mask=past)
    return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class MLP(nn.Module):
  def __init__(self, config: Config):
    self.c_fc = Conv1D(config.width, 4 * config.width)
    self.c_proj = Conv1D(4 * config.width, config.width, std=0.02 / (2 * config.layers) ** 0.5)

  def forward(self, x: Tensor) -> Tensor:
    return self.c_proj(self.c_fc(x).gelu(approximate="tanh"))


class Block(nn.Module):
  def __init__(self, config: Config, layer: int):
    self.ln_1 = LayerNorm(config.width)
    self.attn = Attention(config, layer)
    self.ln_2 = LayerNorm(config.width)
    self.mlp = MLP(config)
    self.drop = nn.Dropout(config.dropout)

  def forward(self, x: Tensor, places: Tensor, cache: Cache | None) -> Tensor:
    x = x + self.drop(self.attn(self.ln_1(x), places, cache))
    return x + self.drop(self.mlp(self.ln_2(x)))


class GPT2(nn.Module):
  """Tokens to logits. Parameters are float32; `dtype` is what activations are."""

  def __init__(self, config: Config, dtype=dtypes.float32):
    self.config, self.dtype = config, dtype
    self.wte = nn.Embedding(config.vocabulary, config.width)
    self.wpe = nn.Embedding(config.block, config.width)
    nn.init.normal_(self.wte.weight, std=0.02)
    nn.init.normal_(self.wpe.weight, std=0.01)
    self.drop = nn.Dropout(config.dropout)
    self.h = nn.ModuleList([Block(config, layer) for layer in range(config.layers)])
    self.ln_f = LayerNorm(config.width)

  def features(self, tokens: Tensor, cache: Cache | None = None) -> Tensor:
    # tokens: i[B, T]   ->   T[B, T, C]; a cache is extended by these tokens
    places = Tensor.arange(tokens.shape[1])
    if cache is not None:
      places = places + (cache.seen - tokens.shape[1])
    x = self.drop(self.wte(tokens).cast(self.dtype) + self.wpe(places).cast(self.dtype))
    for block in self.h:
      x = block(x, places, cache)
    return self.ln_f(x)

  def forward(self, tokens: Tensor) -> Tensor:
    """tokens: i[B, T]   ->   logits f32[B, T, V]"""
    return self.logits(self.features(tokens))

  def logits(self, x: Tensor) -> Tensor:
    return (x @ self.wte.weight.cast(x.dtype).T).float()

  def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy in nats of the token after each. tokens, targets: i[B, T]   ->   f32[]"""
    return self(tokens).flatten(0, 1).cross_entropy(targets.flatten())

  def next(self, tokens: Tensor, cache: Cache, seen: Variable) -> Tensor:
    """Logits of the token after the last, which the cache has not seen yet. tokens: i[B, T]   ->   f32[B, V]

    seen: how many tokens there are with these; no more than so many of the cache are read.
    """
    cache.seen = seen
    return self.logits(self.features(tokens, cache)[:, -1])

  def groups(self, decay: float) -> list[dict]:
    """The parameters for an optimizer: weight decay on matrices only."""
    parameters = list(self.parameters())
    return [
      {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": decay},
      {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]


def quantized(model: GPT2, bits: int = 8, block: int | None = None) -> GPT2:
  """The model with its matrices as integers; positions stay as they are."""
  nn.quantized(model, bits, block, channels={Conv1D: 1}, skip=["wpe"])
  return model


def read_weights(path: str | Path) -> dict[str, Tensor]:
  """The tensors of a safetensors file, under this model's names."""
  return {name.removeprefix("transformer."): t for name, t in nn.state.safe_load(path).items()}


def load_weights(model: GPT2, path: str | Path) -> None:
  """Fill a model from a file. What else is in it is left alone: causal masks, the tied lm_head.weight, an optimizer."""
  weights, names = read_weights(path), nn.state.get_state_dict(model)
  nn.state.load_state_dict(model, {name: weights[name].float() for name in names if name in weights})


INTEGERS = {
  "int8": (8, None),
  "int4": (4, 32),
}  # bits, and how many inputs of a column share a scale: None is all


def config_of(path: str | Path) -> Config:
  weights = read_weights(path)
  vocabulary, width = weights["wte.weight"].shape
  layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("h."))
  beside = Path(path).parent / "config.json"
  said = nn.state.safe_load_metadata(path)
  if "heads" in said:
    heads = int(said["heads"])
  else:
    heads = json.loads(beside.read_text())["n_head"] if beside.exists() else width // 64
  if layers > len(weights) or heads < 1 or width % heads:
    raise ValueError(f"{layers} layers of width {width} with {heads} heads")
  return Config(layers, heads, width, weights["wpe.weight"].shape[0], vocabulary)


def load(path: str | Path, dtype=dtypes.float32, kept=dtypes.float32) -> GPT2:
  """A GPT-2 from published weights (a safetensors file in the naming of Hugging Face), or from a checkpoint. Its
  weights are in memory as `kept`, and are widened or narrowed to dtype, that of the activations, where they are used;
  as "int8" or "int4" its matrices are integers with scales.

  Sizes are read off the tensors; the number of heads off a config.json beside the file, or it is width / 64, as in all
  published ones.
  """
  try:
    config = config_of(path)
  except (KeyError, ValueError, TypeError, RecursionError) as e:
    raise nn.state.StateError(f"{path} is no GPT-2: {type(e).__name__}: {e}") from None
  model = GPT2(config, dtype)
  load_weights(model, path)
  return quantized(model, *INTEGERS[kept]) if kept in INTEGERS else model.to(kept)


def save(model: GPT2, path: str | Path) -> None:
  """The weights alone, as published ones are."""
  nn.state.safe_save(nn.state.get_state_dict(model), path)


def sized(name: str, **sizes) -> Config:
  """A named configuration with other sizes."""
  return replace(MODELS[name], **sizes)
