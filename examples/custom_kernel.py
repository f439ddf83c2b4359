"""Kernels written as scalar Python: what is computed of one element. They are compiled for the device."""

import math

import numpy as np

import mini
from mini import Tensor


@mini.kernel
def mandelbrot(re, im, steps):
  """How many steps a point takes to escape."""
  zr, zi, n = 0.0, 0.0, 0
  for _ in range(steps):
    zr, zi = zr * zr - zi * zi + re, 2 * zr * zi + im
    if zr * zr + zi * zi > 4:
      break
    n += 1
  return n


@mini.kernel
def bilateral(i, j, image, sharpness):
  """A blur that keeps edges: the window's mean, weighted by how alike its pixels are."""
  total, weight = 0.0, 0.0
  for di in range(-2, 3):
    for dj in range(-2, 3):
      if 0 <= i + di < image.shape[0] and 0 <= j + dj < image.shape[1]:
        w = math.exp(-sharpness * (image[i + di, j + dj] - image[i, j]) ** 2)
        total += w * image[i + di, j + dj]
        weight += w
  return total / weight


if __name__ == "__main__":
  x, y = np.linspace(-2, 0.6, 64), np.linspace(-1, 1, 20)
  image = mandelbrot(Tensor(x), Tensor(y).reshape(20, 1), 24).numpy()
  for row in image:
    print("".join(" .:-=+*#%@"[n * 9 // 24] for n in row))
  same = [[mandelbrot.f(a, b, 24) for a in x.tolist()] for b in y.tolist()]
  print(f"equal to Python's own, element by element: {(image == same).all()}")

  noisy = np.random.default_rng(0).normal(np.arange(16) // 8, 0.1, (12, 16))
  got = bilateral[noisy.shape](Tensor(noisy), 8.0)
  want = [[bilateral.f(i, j, noisy, 8.0) for j in range(16)] for i in range(12)]
  print(f"a blur of an edge: noise {noisy[:, :8].std():.3f} becomes {got.numpy()[:, :8].std():.3f}, ", end="")
  print(f"within {np.abs(got.numpy() - want).max():.0e} of Python's")
  s = Tensor(8.0, requires_grad=True, dtype="float64")
  bilateral[noisy.shape](Tensor(noisy), s)[0, 0].backward()
  slope = (bilateral.f(0, 0, noisy, 8 + 1e-6) - bilateral.f(0, 0, noisy, 8 - 1e-6)) / 2e-6
  print(f"its slope by sharpness: {s.grad.item():.6f}, by differences {slope:.6f}")
