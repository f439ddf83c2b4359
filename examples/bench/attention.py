"""Attention of GPT-2's size, 4 x 12 heads x 256 tokens x 64, forward and with its gradients, full and causal. GFLOP/s
of the products alone; of the causal ones, half.
"""

import numpy as np
from common import Case, arguments, peers, run

from mini import Tensor, jit

SIZES = B, H, T, D = 4, 12, 256, 64


def np_weights(q, k, causal):
  """softmax(q k' / sqrt(D)): [B, H, T, T]"""
  s = q @ k.swapaxes(-1, -2) / np.sqrt(D)
  s = np.where(np.tri(T, dtype=bool), s, -np.inf) if causal else s
  e = np.exp(s - s.max(-1, keepdims=True))
  return e / e.sum(-1, keepdims=True)


def np_backward(q, k, v, g, causal):
  """The gradients of (attention * g).sum() for q, k and v, one after another: [3, B, H, T, D]"""
  p = np_weights(q, k, causal)
  dp = g @ v.swapaxes(-1, -2)
  ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / np.sqrt(D)
  return np.stack([ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g])


def case(args, backward: bool, causal: bool) -> Case:
  rng = np.random.default_rng(0)
  arrays = [rng.standard_normal(SIZES, np.float32) for _ in range(4 if backward else 3)]
  tensors = [Tensor(a) for a in arrays]

  def forward(q, k, v):
    return q.scaled_dot_product_attention(k, v, is_causal=causal)

  def torch_forward(q, k, v):
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

  @jit
  def gradients(q, k, v, g):
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    (forward(q, k, v) * g).sum().backward()
    return q.grad, k.grad, v.grad

  def torch_gradients(q, k, v, g):
    import torch

    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    return torch.autograd.grad(torch_forward(*inputs), inputs, g)

  name = f"attention {'backward' if backward else 'forward'}{' causal' * causal} {B}x{H}x{T}x{D}"
  # forward two products of T x T x D; with the gradients five more
  gflop = 2e-9 * B * H * T * T * D * (7 if backward else 2) / (2 if causal else 1)
  if backward:
    calls = {"mini": lambda: gradients(*tensors), **peers(args, arrays, torch=torch_gradients)}
    expected = lambda: np_backward(*(a.astype(np.float64) for a in arrays), causal)
  else:
    ours = jit(forward)
    text = f"lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal={causal})"
    calls = {"mini": lambda: ours(*tensors), **peers(args, arrays, torch=torch_forward, tinygrad=text)}
    q, k, v = (a.astype(np.float64) for a in arrays[:3])
    expected = lambda: np_weights(q, k, causal) @ v
  return Case(name, calls, expected, gflop, "GFLOP")


if __name__ == "__main__":
  args = arguments(__doc__)
  run((case(args, backward, causal) for backward in (False, True) for causal in (False, True)), args)
