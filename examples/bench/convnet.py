"""A training step of a small convolutional network beside PyTorch's: 28x28 images, two blocks of two convolutions with
ReLU, batch normalization and pooling, a linear layer; batch 128, Adam, the loss read each step.
"""

from __future__ import annotations

import numpy as np
import training

BATCH, LR = 128, 1e-4
CONVS = [(1, 32, 5), (32, 32, 5), (32, 64, 3), (64, 64, 3)]  # from, to, size
PLACES = [24, 20, 8, 6]  # what remains of 28 x 28 behind each
FEATURES, CLASSES = 576, 10
BATCHES = [
  (rng.standard_normal((BATCH, 1, 28, 28), np.float32), rng.integers(0, CLASSES, BATCH))
  for rng in map(np.random.default_rng, range(4))
]
PRODUCTS = [2e-9 * BATCH * p * p * i * o * k * k for (i, o, k), p in zip(CONVS, PLACES)]
# the first layer's input needs no gradient
AMOUNTS = {"gflop": 3 * sum(PRODUCTS) - PRODUCTS[0] + 6e-9 * BATCH * FEATURES * CLASSES}


def weights() -> list[np.ndarray]:
  """f32[out, in, k, k] of each convolution, f32[10, 576]"""
  rng = np.random.default_rng(0)
  sizes = [(o, i, k, k) for i, o, k in CONVS] + [(CLASSES, FEATURES)]
  return [rng.standard_normal(s, np.float32) * np.float32(np.prod(s[1:]) ** -0.5) for s in sizes]


def layers(nn) -> list:
  """The same in ours and in PyTorch, whose names are the same."""
  made: list = []
  for n, (i, o, k) in enumerate(CONVS):
    made += [nn.Conv2d(i, o, k), nn.ReLU()]
    if n % 2:
      made += [nn.BatchNorm2d(o), nn.MaxPool2d(2)]
  return [*made, nn.Flatten(), nn.Linear(FEATURES, CLASSES)]


def tinygrad(weights):
  from tinygrad import Tensor, nn

  convs, norms, linear = (
    [nn.Conv2d(*c) for c in CONVS],
    [nn.BatchNorm(32), nn.BatchNorm(64)],
    nn.Linear(FEATURES, CLASSES),
  )
  for layer, w in zip([*convs, linear], weights):
    layer.weight.assign(Tensor(w)).realize()
    layer.bias.assign(Tensor.zeros(*layer.bias.shape)).realize()

  def model(x):
    for n, conv in enumerate(convs):
      x = conv(x).relu()
      x = norms[n // 2](x).max_pool2d() if n % 2 else x
    return linear(x.flatten(1))

  return nn.state.get_parameters([convs, norms, linear]), model


if __name__ == "__main__":
  training.main(__doc__, training.classifiers(layers, weights, BATCHES, LR, AMOUNTS, tinygrad))
