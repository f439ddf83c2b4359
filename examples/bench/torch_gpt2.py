"""GPT-2 in PyTorch, as a function of its weights: what ours is compared with, in numbers and in time."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def forward(w: dict[str, torch.Tensor], tokens: torch.Tensor, heads: int) -> torch.Tensor:
  """w: weights under the published names   tokens: i64[B, T]   ->   logits f32[B, T, V]"""
  b, t = tokens.shape
  c = w["wte.weight"].shape[1]

  def linear(x, name):
    return torch.addmm(w[name + ".bias"], x.reshape(-1, x.shape[-1]), w[name + ".weight"]).view(b, t, -1)

  def norm(x, name):
    return F.layer_norm(x, (c,), w[name + ".weight"], w[name + ".bias"])

  x = F.embedding(tokens, w["wte.weight"]) + w["wpe.weight"][:t]
  for n in range(sum(name.endswith("ln_1.weight") for name in w)):
    q, k, v = linear(norm(x, f"h.{n}.ln_1"), f"h.{n}.attn.c_attn").split(c, dim=2)
    q, k, v = (a.view(b, t, heads, c // heads).transpose(1, 2) for a in (q, k, v))
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + linear(a.transpose(1, 2).reshape(b, t, c), f"h.{n}.attn.c_proj")
    m = F.gelu(linear(norm(x, f"h.{n}.ln_2"), f"h.{n}.mlp.c_fc"), approximate="tanh")
    x = x + linear(m, f"h.{n}.mlp.c_proj")
  return norm(x, "ln_f") @ w["wte.weight"].T


def loss(w: dict[str, torch.Tensor], tokens: torch.Tensor, targets: torch.Tensor, heads: int) -> torch.Tensor:
  """Mean cross entropy. tokens, targets: i64[B, T]   ->   f32[]"""
  return F.cross_entropy(forward(w, tokens, heads).flatten(0, 1), targets.flatten())
