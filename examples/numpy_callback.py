"""NumPy code in the middle of a graph: a median filter, which no operation of ours is, between two kernels of ours."""

import numpy as np

import mini
from mini import Tensor


@mini.wrap_as_operation(gradient=lambda g, out, image, width: straight_through(g, image, width))
def median(image, width):
  """f32[h, w]   ->   f32[h, w]: of each window of an odd width, the middle value."""
  edge = np.pad(image, width // 2, mode="edge")
  windows = np.lib.stride_tricks.sliding_window_view(edge, (width, width))
  return np.median(windows, axis=(2, 3)).astype(image.dtype)


def straight_through(g, image, width):
  """As if the filter were not there."""
  return g


@mini.jit
def cleaned(image):
  return (median(image * 255, 3) / 255).clip(0, 1)


if __name__ == "__main__":
  rng = np.random.default_rng(0)
  waves = (np.sin(np.linspace(0, 6, 64))[:, None] * np.cos(np.linspace(0, 6, 64)) + 1) / 2
  noisy = np.where(rng.random((64, 64)) < 0.1, rng.integers(0, 2, (64, 64)), waves).astype(np.float32)
  for _ in range(3):  # traced once, called three times
    got = cleaned(Tensor(noisy)).numpy()

  error = [np.sqrt(((x - waves) ** 2).mean()) for x in (noisy, got)]
  print(f"salt and pepper: an error of {error[0]:.3f} becomes {error[1]:.3f}")
  edge = np.pad(noisy * np.float32(255), 1, mode="edge")
  columns = [edge[i : i + 64, j : j + 64] for i in range(3) for j in range(3)]
  want = (np.sort(columns, axis=0)[4] / np.float32(255)).clip(0, 1)
  print(f"the same by sorting, in NumPy alone: differs by at most {np.abs(got - want).max():.0e}")
  x = Tensor(noisy, requires_grad=True)
  (median(x, 3) * 2).sum().backward()
  print(f"the gradient that was given passes: {x.grad.min().item():.0f}")
