"""A training step of an MLP, 784-512-512-10 with ReLU, beside PyTorch's: batch 128, Adam, the loss read each step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import training

SIZES, BATCH, LR = (784, 512, 512, 10), 128, 1e-3


PARAMETERS = sum(n * m for n, m in pairwise(SIZES))
# the first layer's input needs no gradient; a parameter, its gradient and two moments are read, and written but for the gradient
AMOUNTS = {"gflop": 2e-9 * BATCH * (3 * PARAMETERS - SIZES[0] * SIZES[1]), "gb": 28e-9 * PARAMETERS}


def weights() -> list[tuple[np.ndarray, np.ndarray]]:
  """f32[n, m] and f32[m] of each layer"""
  rng = np.random.default_rng(0)
  return [
    (rng.standard_normal((n, m), np.float32) * np.float32(n**-0.5), np.zeros(m, np.float32))
    for n, m in pairwise(SIZES)
  ]


BATCHES = [
  (rng.standard_normal((BATCH, SIZES[0]), np.float32), rng.integers(0, SIZES[-1], BATCH))
  for rng in map(np.random.default_rng, range(8))
]


def ours(args):
  from mini import Tensor, jit, nn, stats

  layers = [nn.Linear(n, m) for n, m in pairwise(SIZES)]
  for layer, (w, b) in zip(layers, weights()):
    layer.weight.assign(Tensor(w.T.copy())).realize()
    layer.bias.assign(Tensor(b)).realize()
  model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
  optimizer = nn.optim.Adam(list(model.parameters()), lr=LR)
  kernels = 0

  @jit
  def step(x, y):
    optimizer.zero_grad()
    loss = model(x).cross_entropy(y)
    loss.backward()
    optimizer.step()
    return loss

  def run(n: int) -> float:
    nonlocal kernels
    before = stats.kernels
    x, y = BATCHES[n % len(BATCHES)]
    loss = step(Tensor(x), Tensor(y)).item()
    kernels = stats.kernels - before
    return loss

  return run, lambda: {"kernels": kernels, **AMOUNTS}


def theirs(args, compiled: bool = False):
  import torch
  from torch import nn

  layers = [nn.Linear(n, m) for n, m in pairwise(SIZES)]
  with torch.no_grad():
    for layer, (w, b) in zip(layers, weights()):
      layer.weight.copy_(torch.from_numpy(w.T.copy()))
      layer.bias.copy_(torch.from_numpy(b))
  model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
  optimizer = torch.optim.Adam(model.parameters(), lr=LR, fused=True)

  def forward(x, y):
    return nn.functional.cross_entropy(model(x), y)

  loss_of = torch.compile(forward) if compiled else forward

  def run(n: int) -> float:
    x, y = map(torch.from_numpy, BATCHES[n % len(BATCHES)])
    optimizer.zero_grad()
    loss = loss_of(x, y)
    loss.backward()
    optimizer.step()
    return loss.item()

  return run, dict


def tinygrad(args):
  from tinygrad import Context, Tensor, TinyJit, nn

  layers = [nn.Linear(n, m) for n, m in pairwise(SIZES)]
  for layer, (w, b) in zip(layers, weights()):
    layer.weight.assign(Tensor(w.T.copy())).realize()
    layer.bias.assign(Tensor(b)).realize()
  optimizer = nn.optim.Adam(nn.state.get_parameters(layers), lr=LR)

  @TinyJit
  def step(x, y):
    with Context(TRAINING=1):
      optimizer.zero_grad()
      h = layers[1](layers[0](x).relu()).relu()
      loss = layers[2](h).sparse_categorical_crossentropy(y).backward()
      return loss.realize(*optimizer.schedule_step())

  def run(n: int) -> float:
    x, y = BATCHES[n % len(BATCHES)]
    return step(Tensor(x), Tensor(y)).item()

  return run, dict


if __name__ == "__main__":
  training.main(
    __doc__,
    {
      "mini": ours,
      "torch": theirs,
      "compile": lambda args: theirs(args, compiled=True),
      "tinygrad": tinygrad,
    },
    block=20,
  )
