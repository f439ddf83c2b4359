"""Axes of other sizes: the sparse linear maps behind `interpolate` and adaptive pooling.

An element of the result is a weighted sum of a few elements. Their places and weights are tables, made here with NumPy;
a mode is a row of `MODES`. The gradient is the same map with its tables transposed. Axes are mapped one after another:
with k elements along each of d axes, a result costs k * d and not k ** d.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mini.gradient_rules import with_gradient
from mini.ir import graph
from mini.ir.uop import UOp
from mini.tensor.handle import Handle
from mini.tensor.views import strided

# ---------------------------------------------------------------- sparse maps of an axis


class Sparse(NamedTuple):
  """out[i] = sum over k of weights[i, k] * x[places[i, k]], for x of `size` elements.

  places: int[m, K]   weights: f64[m, K]
  """

  size: int
  places: np.ndarray
  weights: np.ndarray

  def transposed(self) -> Sparse:
    """The map that takes a gradient back."""
    m, k = self.places.shape
    used = self.weights.ravel() != 0
    froms, tos = self.places.ravel()[used], np.repeat(np.arange(m), k)[used]
    order = np.argsort(froms, kind="stable")
    froms, tos = froms[order], tos[order]
    counts = np.bincount(froms, minlength=self.size)
    column = np.arange(len(froms)) - (np.cumsum(counts) - counts)[froms]
    places = np.zeros((self.size, max(counts.max(initial=0), 1)), np.int64)
    weights = np.zeros(places.shape)
    places[froms, column] = tos
    weights[froms, column] = self.weights.ravel()[used][order]
    return Sparse(m, places, weights)


def mapped(x: UOp, maps: Mapping[int, Sparse], device: Any) -> UOp:
  """x with each of these axes mapped. What shrinks comes first, and else the last axis: the elements that it takes lie
  apart, and it is best when the others are still small."""
  grows = {a: len(s.places) > s.size for a, s in maps.items()}
  for a in sorted(maps, key=lambda a: (grows[a], -a if grows[a] else a)):
    x = along(x, a, maps[a], device)
  return x


def along(x: UOp, axis: int, sparse: Sparse, device: Any) -> UOp:
  """One axis mapped."""
  out = repeated(x, axis, sparse) if sparse.places.shape[1] == 1 and (sparse.weights == 1).all() else None
  if out is not None:
    return out

  def shaped(values: np.ndarray, dtype: Any) -> UOp:
    table = Handle._final(values, dtype=dtype, device=device)._node
    return graph.reshape(table, tuple(values.size if a == axis else 1 for a in range(len(graph.shape(x)))))

  s = graph.shape(x)
  m, k = sparse.places.shape
  index = shaped(sparse.places.astype(np.int32).ravel(), None)
  got = graph.gather(x, graph.expand(index, (*s[:axis], m * k, *s[axis + 1 :])), axis)
  weights = graph.expand(shaped(sparse.weights.ravel(), x.dtype), graph.shape(got))
  parts = graph.reshape(graph.alu("mul", got, weights), (*s[:axis], m, k, *s[axis + 1 :]))
  out = graph.reshape(graph.reduce(parts, "add", (axis + 1,)), (*s[:axis], m, *s[axis + 1 :]))
  return with_gradient(out, lambda g, out, x: (along(g, axis, sparse.transposed(), device),), x)


def repeated(x: UOp, axis: int, sparse: Sparse) -> UOp | None:
  """The map as views, where it takes every element equally often, or every n-th one."""
  s, n, m = graph.shape(x), sparse.size, len(sparse.places)
  if m % n == 0 and (sparse.places[:, 0] == np.arange(m) // (m // n)).all():
    out = graph.expand(
      graph.reshape(x, (*s[: axis + 1], 1, *s[axis + 1 :])), (*s[: axis + 1], m // n, *s[axis + 1 :])
    )
    return graph.reshape(out, (*s[:axis], m, *s[axis + 1 :]))
  if n % m == 0 and (sparse.places[:, 0] == np.arange(m) * (n // m)).all():
    return strided(x, axis, n // m)
  return None


# ---------------------------------------------------------------- the table of modes
# Each makes the map of n elements to m from `scale`, the distance of two results in elements.


def nearest(n: int, m: int, scale: float, corners: bool, smooth: bool) -> Sparse:
  return picked(n, np.floor(np.arange(m, dtype=np.float32) * np.float32(scale)))


def nearest_exact(n: int, m: int, scale: float, corners: bool, smooth: bool) -> Sparse:
  return picked(n, np.floor((np.arange(m, dtype=np.float32) + np.float32(0.5)) * np.float32(scale)))


def picked(n: int, at: np.ndarray) -> Sparse:
  places = np.minimum(at.astype(np.int64), n - 1)[:, None]
  return Sparse(n, places, np.ones(places.shape))


def linear(n: int, m: int, scale: float, corners: bool, smooth: bool) -> Sparse:
  if smooth:
    return smoothed(n, m, scale, 1, lambda d: np.maximum(1 - d, 0))
  at = np.minimum(np.maximum(centers(m, scale, corners), 0), n - 1)
  return weighted(n, at, (0, 1), lambda d: np.maximum(1 - d, 0))


def cubic(n: int, m: int, scale: float, corners: bool, smooth: bool) -> Sparse:
  if smooth:
    return smoothed(n, m, scale, 2, lambda d: keys(d, -0.5))
  return weighted(n, centers(m, scale, corners), (-1, 0, 1, 2), lambda d: keys(d, -0.75))


def area(n: int, m: int, scale: float, corners: bool, smooth: bool) -> Sparse:
  return averages(n, m)


MODES: dict[
  str, tuple[tuple[int, ...], Callable[..., Sparse]]
] = {  # the numbers of axes that it is for, its map
  "nearest": ((1, 2, 3), nearest),
  "nearest-exact": ((1, 2, 3), nearest_exact),
  "linear": ((1,), linear),
  "bilinear": ((2,), linear),
  "trilinear": ((3,), linear),
  "bicubic": ((2,), cubic),
  "area": ((1, 2, 3), area),
}


def centers(m: int, scale: float, corners: bool) -> np.ndarray:
  """Where the results lie among the elements: both as points, or as squares of which these are the middles."""
  return np.arange(m) * scale if corners else (np.arange(m) + 0.5) * scale - 0.5


def weighted(
  n: int, at: np.ndarray, taps: tuple[int, ...], weight: Callable[[np.ndarray], np.ndarray]
) -> Sparse:
  """Elements around each place, weighted by their distance; outside, those at the edge."""
  places = np.floor(at).astype(np.int64)[:, None] + np.array(taps)
  return Sparse(n, np.clip(places, 0, n - 1), weight(np.abs(places - at[:, None])))


def keys(d: np.ndarray, a: float) -> np.ndarray:
  """The cubic kernel. R. Keys, Cubic convolution interpolation for digital image processing, 1981."""
  near = ((a + 2) * d - (a + 3)) * d * d + 1
  far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
  return np.where(d <= 1, near, np.where(d < 2, far, 0))


def smoothed(
  n: int, m: int, scale: float, reach: float, weight: Callable[[np.ndarray], np.ndarray]
) -> Sparse:
  """The kernel stretched so that, where the image shrinks, every element counts;
  weights add up to 1 at the edges, too."""
  stretch = max(scale, 1.0)
  center = (np.arange(m) + 0.5) * scale
  first = np.maximum((center - reach * stretch + 0.5).astype(np.int64), 0)
  last = np.minimum((center + reach * stretch + 0.5).astype(np.int64), n)
  places = first[:, None] + np.arange((last - first).max())
  weights = weight(np.abs(places - center[:, None] + 0.5) / stretch) * (places < last[:, None])
  return Sparse(n, np.minimum(places, n - 1), weights / weights.sum(1, keepdims=True))


def averages(n: int, m: int) -> Sparse:
  """Of window i, from i * n // m to ceil((i + 1) * n / m)."""
  places, inside = covering(n, m)
  return Sparse(n, places, inside / inside.sum(1, keepdims=True))


def covering(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
  """m windows that cover n elements: the elements of each, and which of these are in it;
  shorter ones end with their last
  element again.   -> int[m, K], bool[m, K]"""
  i = np.arange(m)
  first, last = i * n // m, -(-(i + 1) * n // m) - 1
  places = first[:, None] + np.arange((last - first).max() + 1)
  return np.minimum(places, last[:, None]), places <= last[:, None]


@lru_cache(256)
def axis_map(mode: str, n: int, m: int, scale: float, corners: bool, smooth: bool) -> Sparse:
  return MODES[mode][1](n, m, scale, corners, smooth)
