"""A training step of a small convolutional network beside PyTorch's: 28x28 images, two blocks of two convolutions with ReLU,
batch normalization and pooling, a linear layer; batch 128, Adam, the loss read each step.
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


def ours(args):
  from mini import Tensor, jit, nn, stats

  made = layers(nn)
  for layer, w in zip([x for x in made if isinstance(x, (nn.Conv2d, nn.Linear))], weights()):
    layer.weight.assign(Tensor(w)).realize()
    layer.bias.assign(Tensor.zeros(*layer.bias.shape)).realize()
  model = nn.Sequential(*made)
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

  made = layers(nn)
  with torch.no_grad():
    for layer, w in zip([x for x in made if isinstance(x, (nn.Conv2d, nn.Linear))], weights()):
      layer.weight.copy_(torch.from_numpy(w))
      layer.bias.zero_()
  model = nn.Sequential(*made)
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

  convs, norms, linear = (
    [nn.Conv2d(*c) for c in CONVS],
    [nn.BatchNorm(32), nn.BatchNorm(64)],
    nn.Linear(FEATURES, CLASSES),
  )
  for layer, w in zip([*convs, linear], weights()):
    layer.weight.assign(Tensor(w)).realize()
    layer.bias.assign(Tensor.zeros(*layer.bias.shape)).realize()
  optimizer = nn.optim.Adam(nn.state.get_parameters([convs, norms, linear]), lr=LR)

  @TinyJit
  def step(x, y):
    with Context(TRAINING=1):
      optimizer.zero_grad()
      for n, conv in enumerate(convs):
        x = conv(x).relu()
        x = norms[n // 2](x).max_pool2d() if n % 2 else x
      loss = linear(x.flatten(1)).sparse_categorical_crossentropy(y).backward()
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
  )
