"""Optimizers' steps, with gradients that are there:
AdamW over all parameters at once or in many tensors, with clipping, SGD.

GB/s of what has to be read and written: parameters, gradients, and the optimizer's state."""

from functools import partial

import numpy as np
from common import Case, arguments, peer, run

from mini import Tensor, jit
from mini.nn import optim

# name, tensors, bytes for each parameter, clipped?, optimizer of mini.nn.optim or torch.optim with its options
WORK = [
  ("AdamW, one tensor", 1, 28, False, "AdamW", {"lr": 1e-3}),
  ("AdamW, 148 tensors", 148, 28, False, "AdamW", {"lr": 1e-3}),
  ("AdamW, clipped to norm 1", 1, 32, True, "AdamW", {"lr": 1e-3}),
  ("SGD with momentum", 1, 20, False, "SGD", {"lr": 1e-3, "momentum": 0.9}),
  ("SGD", 1, 12, False, "SGD", {"lr": 1e-3}),
]


def data(tensors, size):
  rng = np.random.default_rng(0)
  return [[rng.standard_normal(size, np.float32) for _ in range(tensors)] for _ in range(2)]


def ours(clipped, name, options, parameters, gradients):
  """A step that returns the first parameter."""
  params = [Tensor(p, requires_grad=True) for p in parameters]
  grads = [Tensor(g) for g in gradients]
  optimizer = getattr(optim, name)(params, **options)

  @jit
  def step(*grads):
    for p, g in zip(params, grads):
      p.grad = g
    if clipped:
      optim.clip_grad_norm(params, 1.0)
    optimizer.step()

  def run_step():
    step(*grads)
    return params[0]

  return run_step


def theirs(torch, clipped, name, options, parameters, gradients):
  params = [torch.nn.Parameter(torch.from_numpy(p.copy())) for p in parameters]
  grads = [torch.from_numpy(g.copy()) for g in gradients]
  optimizer = getattr(torch.optim, name)(params, fused=True, **options)

  def run_step():
    for p, g in zip(params, grads):
      p.grad = g.clone() if clipped else g
    if clipped:
      torch.nn.utils.clip_grad_norm_(params, 1.0)
    optimizer.step()
    return params[0].detach()

  return run_step


def expected(clipped, name, options, parameters, gradients):
  """What the first step gives, by PyTorch's formulas."""
  p, g = (x[0].astype(np.float64) for x in (parameters, gradients))
  if clipped:
    g /= np.sqrt(sum((x.astype(np.float64) ** 2).sum() for x in gradients))
  if name == "SGD":
    return p - options["lr"] * g
  return p * (1 - options["lr"] * 0.01) - options["lr"] * g / (np.abs(g) + 1e-8)


def case(count, label, tensors, nbytes, *what) -> Case:
  arrays = data(tensors, count // tensors)
  calls = {"mini": ours(*what, *arrays)}
  if torch := peer("torch"):
    calls["torch"] = theirs(torch, *what, *arrays)
  return Case(
    f"{label}, {count // 10**6}M", calls, partial(expected, *what, *arrays), count * nbytes * 1e-9, "GB"
  )


if __name__ == "__main__":
  args = arguments(__doc__, ("--parameters", {"type": int, "default": 124_000_000}))
  run((case(args.parameters, *work) for work in WORK), args)  # one at a time: each takes some GB
