"""Convolutions of images, as networks have them: 3x3, with a stride, and 1x1. GFLOP/s."""

import numpy as np
from common import Case, arguments, peers, run

from mini import Tensor, jit

# images, channels, height and width, filters, size of a filter, stride, padding
WORK = [
  (8, 64, 56, 64, 3, 1, 1),
  (8, 64, 56, 128, 3, 2, 1),
  (8, 256, 14, 256, 3, 1, 1),
  (8, 256, 28, 64, 1, 1, 0),
]


def np_conv2d(x, w, stride, padding):
  x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
  windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
  return np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def case(args, n: int, c: int, size: int, filters: int, k: int, stride: int, padding: int) -> Case:
  rng = np.random.default_rng(0)
  x = rng.standard_normal((n, c, size, size), np.float32)
  w = rng.standard_normal((filters, c, k, k), np.float32)

  def torch_conv2d(x, w):
    import torch

    return torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)

  ours, a, b = jit(lambda x, w: x.conv2d(w, stride=stride, padding=padding)), Tensor(x), Tensor(w)
  text = f"lambda x, w: x.conv2d(w, stride={stride}, padding={padding})"
  out = (size + 2 * padding - k) // stride + 1
  return Case(
    f"conv2d {n}x{c}x{size}x{size} by {filters} of {k}x{k} stride {stride}",
    {"mini": lambda: ours(a, b), **peers(args, [x, w], None, torch_conv2d, text)},
    lambda: np_conv2d(x.astype(np.float64), w.astype(np.float64), stride, padding),
    2e-9 * n * filters * out * out * c * k * k,
    "GFLOP",
  )


if __name__ == "__main__":
  args = arguments(__doc__)
  run((case(args, *w) for w in WORK), args)
