"""A training step of an MLP, 784-512-512-10 with ReLU, beside PyTorch's: batch 128, Adam, the loss read each step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import training

SIZES, BATCH, LR = (784, 512, 512, 10), 128, 1e-3

PARAMETERS = sum(n * m for n, m in pairwise(SIZES))
# the first layer's input needs no gradient; a parameter, its gradient and two moments are read,
# and written but for the gradient
AMOUNTS = {"gflop": 2e-9 * BATCH * (3 * PARAMETERS - SIZES[0] * SIZES[1]), "gb": 28e-9 * PARAMETERS}


def weights() -> list[np.ndarray]:
  """f32[m, n] of each layer"""
  rng = np.random.default_rng(0)
  return [rng.standard_normal((m, n), np.float32) * np.float32(n**-0.5) for n, m in pairwise(SIZES)]


def layers(nn) -> list:
  """The same in ours and in PyTorch, whose names are the same."""
  made = [nn.Linear(n, m) for n, m in pairwise(SIZES)]
  return [made[0], nn.ReLU(), made[1], nn.ReLU(), made[2]]


BATCHES = [
  (rng.standard_normal((BATCH, SIZES[0]), np.float32), rng.integers(0, SIZES[-1], BATCH))
  for rng in map(np.random.default_rng, range(8))
]


def tinygrad(weights):
  from tinygrad import Tensor, nn

  layers = [nn.Linear(n, m) for n, m in pairwise(SIZES)]
  for layer, w in zip(layers, weights):
    layer.weight.assign(Tensor(w)).realize()
    layer.bias.assign(Tensor.zeros(*layer.bias.shape)).realize()
  return nn.state.get_parameters(layers), lambda x: layers[2](layers[1](layers[0](x).relu()).relu())


if __name__ == "__main__":
  training.main(__doc__, training.classifiers(layers, weights, BATCHES, LR, AMOUNTS, tinygrad), block=20)
