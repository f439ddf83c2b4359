"""Convolutions of images, as networks have them: 3x3, with a stride, 1x1, the 7x7 of a first layer, in groups and
depthwise; and the gradients of some by their input and by their weight. GFLOP/s."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from common import Case, arguments, peers, run

from mini import Tensor, grad, jit


class Work(NamedTuple):
  images: int
  channels: int
  size: int  # height and width
  filters: int
  kernel: int
  stride: int
  padding: int
  groups: int = 1

  @property
  def name(self) -> str:
    n, c, size, filters, k, stride, _, groups = self
    if groups == c == filters:
      return f"depthwise conv2d {n}x{c}x{size}x{size} of {k}x{k} stride {stride}"
    text = f"conv2d {n}x{c}x{size}x{size} by {filters} of {k}x{k} stride {stride}"
    return text if groups == 1 else f"{text} in {groups} groups"

  @property
  def out(self) -> int:
    return (self.size + 2 * self.padding - self.kernel) // self.stride + 1


SQUARE = Work(8, 64, 56, 64, 3, 1, 1)
STRIDED = Work(8, 64, 56, 128, 3, 2, 1)
DEEP = Work(8, 256, 14, 256, 3, 1, 1)
FIRST = Work(8, 3, 224, 64, 7, 2, 3)
GROUPED = Work(8, 128, 28, 128, 3, 1, 1, 8)
DEPTHWISE = Work(8, 128, 56, 128, 3, 1, 1, 128)
DEPTHWISE_STRIDED = Work(8, 128, 56, 128, 3, 2, 1, 128)

FORWARD, INPUT, WEIGHT = "", "d input of ", "d weight of "
ROWS = [
  (FORWARD, SQUARE),
  (FORWARD, STRIDED),
  (FORWARD, DEEP),
  (FORWARD, Work(8, 256, 28, 64, 1, 1, 0)),
  *((what, SQUARE) for what in (INPUT, WEIGHT)),
  *((what, STRIDED) for what in (INPUT, WEIGHT)),
  *((what, DEEP) for what in (INPUT, WEIGHT)),
  *((what, FIRST) for what in (FORWARD, WEIGHT)),
  *((what, work) for work in (GROUPED, DEPTHWISE, DEPTHWISE_STRIDED) for what in (FORWARD, INPUT, WEIGHT)),
]


def padded(x: np.ndarray, work: Work) -> np.ndarray:
  return np.pad(x, ((0, 0), (0, 0), *((work.padding, work.padding),) * 2))


def at(x: np.ndarray, work: Work, i: int, j: int) -> np.ndarray:
  """A view of padded x: what the weights at (i, j) are multiplied with.   T[N, G, C, H', W']"""
  n, c = x.shape[:2]
  reach = (work.out - 1) * work.stride + 1
  x = x[:, :, i : i + reach : work.stride, j : j + reach : work.stride]
  return x.reshape(n, work.groups, c // work.groups, work.out, work.out)


def reference(what: str, work: Work, x: np.ndarray, w: np.ndarray, g: np.ndarray) -> np.ndarray:
  """A product of matrices for each place in the window. g: the gradient of the result."""
  k, groups = work.kernel, work.groups
  grouped = w.reshape(groups, work.filters // groups, -1, k, k)
  whole = padded(x, work)
  y = g.reshape(work.images, groups, -1, work.out, work.out)
  out = {FORWARD: np.zeros_like(y), INPUT: np.zeros_like(whole), WEIGHT: np.zeros_like(grouped)}[what]
  for i, j in np.ndindex(k, k):
    here, weight = at(whole, work, i, j), grouped[..., i, j]
    if what == FORWARD:
      out += np.einsum("ngchw,goc->ngohw", here, weight, optimize=True)
    elif what == INPUT:
      place = at(np.arange(whole.size).reshape(whole.shape), work, i, j)
      out.flat[place] += np.einsum("ngohw,goc->ngchw", y, weight, optimize=True)
    else:
      out[..., i, j] = np.einsum("ngchw,ngohw->goc", here, y, optimize=True)
  if what == INPUT:
    return out[:, :, work.padding : work.padding + work.size, work.padding : work.padding + work.size]
  return out.reshape(g.shape if what == FORWARD else w.shape)


def case(args, what: str, work: Work) -> Case:
  n, c, size, filters, k, stride, padding, groups = work
  rng = np.random.default_rng(0)
  x = rng.standard_normal((n, c, size, size), np.float32)
  w = rng.standard_normal((filters, c // groups, k, k), np.float32)
  g = rng.standard_normal((n, filters, work.out, work.out), np.float32)
  given = [x, w] if what == FORWARD else [x, w, g]
  mask = [what == INPUT, what == WEIGHT, False]

  def torch_conv2d(x, w, g=None):
    import torch

    if g is None:
      return torch.nn.functional.conv2d(x, w, stride=stride, padding=padding, groups=groups)
    steps = ([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups)
    return torch.ops.aten.convolution_backward(g, x, w, None, *steps, mask)[mask.index(True)]

  def conv2d(x: Tensor, w: Tensor) -> Tensor:
    return x.conv2d(w, stride=stride, padding=padding, groups=groups)

  ours: Callable[..., Tensor] = jit(conv2d)
  if what:
    ours = jit(grad(lambda x, w, g: (conv2d(x, w) * g).sum(), mask.index(True)))
  tensors = [Tensor(a) for a in given]
  text = f"lambda x, w: x.conv2d(w, stride={stride}, padding={padding}, groups={groups})"
  return Case(
    what + work.name,
    {"mini": lambda: ours(*tensors), **peers(args, given, None, torch_conv2d, "" if what else text)},
    lambda: reference(what, work, x.astype(np.float64), w.astype(np.float64), g.astype(np.float64)),
    2e-9 * n * filters * work.out**2 * (c // groups) * k * k,
    "GFLOP",
  )


if __name__ == "__main__":
  args = arguments(__doc__)
  run((case(args, *row) for row in ROWS), args)
