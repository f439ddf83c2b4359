"""Whole networks: ResNet-18 and -50, MobileNetV2, EfficientNet-B0, a UNet, a small ViT, a DCGAN's generator and an LSTM
of characters, forward alone and a training step (SGD with momentum), beside PyTorch's. The classes below are written
once: the names of layers are the same in both.

  python examples/bench/models.py                  all, at batch 2 (10 minutes, most of which compilers take)
  python examples/bench/models.py --only MobileNet --batch 16 --size 224
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import Case, against_peers, arguments, chosen, peer, run

import mini
from mini import Tensor, jit, nn
from mini.nn import functional

torch = peer("torch")
CLASSES, NOISE = 1000, 100
LETTERS, LETTERS_IN_LINE = 96, 64


def residual(nn: Any, counts: tuple[int, ...], wide: int) -> Any:
  """wide: 1 for blocks of two convolutions of 3x3; 4 for those of 1x1, 3x3 and 1x1 that is so many times as wide."""

  class Block(nn.Module):
    def __init__(self, i: int, o: int, stride: int):
      super().__init__()
      sizes = (
        [(i, o, 3, stride), (o, o, 3, 1)]
        if wide == 1
        else [(i, o, 1, 1), (o, o, 3, stride), (o, wide * o, 1, 1)]
      )
      layers = [
        x
        for a, b, k, s in sizes
        for x in (nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b), nn.ReLU())
      ]
      self.main, self.end = nn.Sequential(*layers[:-1]), nn.ReLU()
      changes = stride > 1 or i != wide * o
      around = [nn.Conv2d(i, wide * o, 1, stride, bias=False), nn.BatchNorm2d(wide * o)] if changes else []
      self.around = nn.Sequential(*around)

    def forward(self, x: Any) -> Any:
      return self.end(self.main(x) + self.around(x))

  layers, i = (
    [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)],
    64,
  )
  for n, count in enumerate(counts):
    for m in range(count):
      layers.append(Block(i, 64 << n, 2 if n and not m else 1))
      i = (64 << n) * wide
  return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, CLASSES))


def mobile(nn: Any) -> Any:
  """MobileNetV2."""

  def layer(i: int, o: int, k: int = 1, stride: int = 1, groups: int = 1) -> list[Any]:
    return [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o), nn.ReLU6()]

  class Block(nn.Module):
    def __init__(self, i: int, o: int, stride: int, times: int):
      super().__init__()
      hidden = times * i
      layers = [
        *(layer(i, hidden) if times > 1 else []),
        *layer(hidden, hidden, 3, stride, hidden),
        *layer(hidden, o)[:2],
      ]
      self.main, self.adds = nn.Sequential(*layers), stride == 1 and i == o

    def forward(self, x: Any) -> Any:
      return x + self.main(x) if self.adds else self.main(x)

  layers, i = layer(3, 32, 3, 2), 32
  for times, o, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):  # fmt: skip
    for n in range(count):
      layers.append(Block(i, o, stride if n == 0 else 1, times))
      i = o
  return nn.Sequential(
    *layers, *layer(320, 1280), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, CLASSES)
  )


def efficient(nn: Any) -> Any:
  """EfficientNet-B0, without its random depth."""

  def layer(i: int, o: int, k: int = 1, stride: int = 1, groups: int = 1) -> list[Any]:
    return [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o), nn.SiLU()]

  class Gate(nn.Module):
    def __init__(self, hidden: int, narrow: int):
      super().__init__()
      self.of = nn.Sequential(
        nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, narrow, 1), nn.SiLU(), nn.Conv2d(narrow, hidden, 1), nn.Sigmoid()
      )  # fmt: skip

    def forward(self, x: Any) -> Any:
      return x * self.of(x)

  class Block(nn.Module):
    def __init__(self, i: int, o: int, k: int, stride: int, times: int):
      super().__init__()
      hidden = times * i
      layers = [
        *(layer(i, hidden) if times > 1 else []),
        *layer(hidden, hidden, k, stride, hidden),
        Gate(hidden, max(1, i // 4)),
        *layer(hidden, o)[:2],
      ]
      self.main, self.adds = nn.Sequential(*layers), stride == 1 and i == o

    def forward(self, x: Any) -> Any:
      return x + self.main(x) if self.adds else self.main(x)

  layers, i = layer(3, 32, 3, 2), 32
  for times, o, k, count, stride in ((1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 40, 5, 2, 2), (6, 80, 3, 3, 2), (6, 112, 5, 3, 1), (6, 192, 5, 4, 2), (6, 320, 3, 1, 1)):  # fmt: skip
    for n in range(count):
      layers.append(Block(i, o, k, stride if n == 0 else 1, times))
      i = o
  return nn.Sequential(
    *layers, *layer(320, 1280), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, CLASSES)
  )


def unet(nn: Any) -> Any:
  """Of four levels, from 32 channels on."""

  def twice(i: int, o: int) -> Any:
    layers = [x for a in (i, o) for x in (nn.Conv2d(a, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())]
    return nn.Sequential(*layers)

  class Level(nn.Module):
    """What is beneath sees half the height and width, and is joined with what it began with."""

    def __init__(self, i: int, wide: int, depth: int):
      super().__init__()
      self.down, self.pool = twice(i, wide), nn.MaxPool2d(2)
      self.beneath = Level(wide, 2 * wide, depth - 1) if depth else twice(wide, 2 * wide)
      self.up, self.joined = nn.ConvTranspose2d(2 * wide, wide, 2, 2), twice(2 * wide, wide)

    def forward(self, x: Any) -> Any:
      x = self.down(x)
      return self.joined(cat([x, self.up(self.beneath(self.pool(x)))], 1))

  cat = torch.cat if torch and nn is torch.nn else lambda parts, axis: parts[0].cat(*parts[1:], dim=axis)
  return nn.Sequential(Level(3, 32, 2), nn.Conv2d(32, 3, 1))


def transformer(nn: Any) -> Any:
  """A ViT of patches of 16 x 16, 192 numbers a patch, 6 layers, which takes the mean of all for the class."""

  class Patches(nn.Module):
    def __init__(self) -> None:
      super().__init__()
      self.of = nn.Conv2d(3, 192, 16, 16)

    def forward(self, x: Any) -> Any:
      return self.of(x).flatten(2).transpose(1, 2)

  class Mean(nn.Module):
    def forward(self, x: Any) -> Any:
      return x.mean(1)

  layers = [
    nn.TransformerEncoderLayer(192, 3, 768, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(6)
  ]
  return nn.Sequential(Patches(), *layers, nn.LayerNorm(192), Mean(), nn.Linear(192, CLASSES))


def letters(nn: Any) -> Any:
  """Two layers of 256 numbers, over lines of characters."""

  class Characters(nn.Module):
    def __init__(self) -> None:
      super().__init__()
      self.embedding = nn.Embedding(LETTERS, 256)
      self.layers, self.end = nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, LETTERS)

    def forward(self, x: Any) -> Any:
      return self.end(self.layers(self.embedding(x))[0]).flatten(0, 1)

  return Characters()


def generator(nn: Any) -> Any:
  """A DCGAN's, to images of 3 x 64 x 64."""
  layers: list[Any] = []
  for i, o, stride, padding in ((NOISE, 512, 1, 0), (512, 256, 2, 1), (256, 128, 2, 1), (128, 64, 2, 1)):
    layers += [nn.ConvTranspose2d(i, o, 4, stride, padding, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
  return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())


MODELS: dict[str, Callable[[Any], Any]] = {
  "ResNet-18": lambda nn: residual(nn, (2, 2, 2, 2), 1),
  "ResNet-50": lambda nn: residual(nn, (3, 4, 6, 3), 4),
  "MobileNetV2": mobile,
  "EfficientNet-B0": efficient,
  "UNet": unet,
  "ViT": transformer,
  "DCGAN": generator,
  "LSTM": letters,
}


def given(name: str, batch: int, size: int) -> np.ndarray:
  """What a network is called with."""
  rng = np.random.default_rng(0)
  if name == "LSTM":
    return rng.integers(0, LETTERS, (batch, LETTERS_IN_LINE))
  shape = (batch, NOISE, 1, 1) if name == "DCGAN" else (batch, 3, size, size)
  return rng.standard_normal(shape, np.float32)


def double(x: Any) -> Any:
  return x.double() if x.is_floating_point() else x


def forward(name: str, x: np.ndarray) -> Case:
  """In evaluation mode, without gradients."""
  theirs, ours = MODELS[name](torch.nn).eval(), MODELS[name](nn).eval()
  ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
  a, b = Tensor(x), torch.from_numpy(x)

  @jit
  def call(x: Tensor) -> Tensor:
    with mini.no_grad():
      return ours(x)

  def peers(x: Any = b) -> Any:
    with torch.no_grad():
      return theirs(x)

  def expected() -> np.ndarray:
    found = theirs.double()(double(b)).detach().numpy()
    theirs.float()
    return found

  return Case(
    f"{name}, forward of {len(x)}",
    {"mini": lambda: call(a), "torch": peers},
    expected,
    len(x),
    "items",
  )


def step(name: str, x: np.ndarray) -> Case:
  """The loss is a cross entropy or, of generated images, their mean square; it is read."""
  theirs, ours = MODELS[name](torch.nn), MODELS[name](nn)
  ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
  labels = np.arange(x.size if name == "LSTM" else len(x)) % 10

  def loss(F: Any, out: Any, y: Any) -> Any:
    return (out * out).mean() if out.ndim > 2 else F.cross_entropy(out, y)

  def stepping(F: Any, model: Any, optimizer: Any, x: Any, y: Any) -> Callable[[Any, Any], Any]:
    def call(x: Any, y: Any) -> Any:
      optimizer.zero_grad()
      found = loss(F, model(x), y)
      found.backward()
      optimizer.step()
      return found

    return call

  a, b = [Tensor(x), Tensor(labels)], [torch.from_numpy(x), torch.from_numpy(labels)]
  F = torch.nn.functional
  mine = jit(stepping(functional, ours, nn.optim.SGD(ours.parameters(), lr=1e-3, momentum=0.9), *a))
  other = stepping(F, theirs, torch.optim.SGD(theirs.parameters(), lr=1e-3, momentum=0.9), *b)

  def expected() -> np.ndarray:
    copy = MODELS[name](torch.nn).double()
    copy.load_state_dict(theirs.state_dict())
    return loss(F, copy(double(b[0])), b[1]).detach().numpy()

  calls = {"mini": lambda: mine(*a).item(), "torch": lambda: other(*b).item()}
  return Case(f"{name}, step of {len(x)}", calls, expected, len(x), "items")


def cases(batch: int, size: int, args: Any) -> Iterator[Case]:
  for name in MODELS:
    for make in (forward, step):
      if chosen(f"{name}, {make.__name__}", args):
        yield make(name, given(name, batch, size))


if __name__ == "__main__":
  args = arguments(
    __doc__,
    ("--batch", {"type": int, "default": 2, "help": "images, or lines"}),
    ("--size", {"type": int, "default": 96, "help": "height and width of an image"}),
  )
  if not torch:
    sys.exit("models.py compares with PyTorch: pip install torch")
  run(cases(args.batch, args.size, args), args, against_peers)
