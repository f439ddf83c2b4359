"""One step of AdamW over 124 million parameters in one piece, beside PyTorch's fused one. What is compared is a parameter."""

from __future__ import annotations

import training

COUNT, LR = 124_439_808, 1e-3
AMOUNTS = {
  "gb": 28e-9 * COUNT
}  # a parameter, its gradient and two moments read, and written but for the gradient


def ours(args):
  from mini import Tensor, jit, nn, stats

  w = nn.Parameter(Tensor.full((args.count,), 0.5).contiguous().realize())
  g = Tensor.full((args.count,), 0.25).contiguous().realize()
  optimizer = nn.optim.AdamW([w], lr=LR)
  kernels = 0

  @jit
  def step(g):
    w.grad = g
    optimizer.step()

  def run(n: int) -> float:
    nonlocal kernels
    before = stats.kernels
    step(g)
    kernels = stats.kernels - before
    return 0.0 if n else w[-1].item()

  return run, lambda: {"kernels": kernels, **AMOUNTS}


def theirs(args):
  import torch

  w = torch.full((args.count,), 0.5, requires_grad=True)
  w.grad = torch.full((args.count,), 0.25)
  optimizer = torch.optim.AdamW([w], lr=LR, fused=True)

  def run(n: int) -> float:
    optimizer.step()
    return 0.0 if n else w[-1].item()

  return run, dict


if __name__ == "__main__":
  training.main(__doc__, {"mini": ours, "torch": theirs}, ("--count", {"type": int, "default": COUNT}))
