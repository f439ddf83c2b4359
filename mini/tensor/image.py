"""Images: other sizes, samples at any place, patches, and channels that become places.

An image is T[N, C, H, W]; where several numbers of axes make sense, they are the last ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.ir import graph
from mini.tensor.convolution import each_axis, numbers
from mini.tensor.convolved import Form, Ints
from mini.tensor.data import Sizes
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.pooling import Pooling, cut
from mini.tensor.promotion import wide
from mini.tensor.resample import MODES, axis_map, mapped
from mini.tensor.split import overlapped
from mini.types import ArgumentError, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

LINEAR = ("linear", "bilinear", "bicubic", "trilinear")  # modes with align_corners
TAPS = {
  "nearest": (0,),
  "bilinear": (0, 1),
  "bicubic": (-1, 0, 1, 2),
}  # of grid_sample: places around a sample


class Image(Pooling):
  """Resizing, sampling, folding, shuffling."""

  # ---------------------------------------------------------------- other sizes

  def interpolate(self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None,
                  mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                  antialias: bool = False) -> Tensor:  # fmt: skip
    """The last axes in another size, as PyTorch's `F.interpolate`.   T[N, C, L..] -> T[N, C, L'..]

    size: the new sizes, or scale_factor: by how much they grow; a number, or one for each axis. mode: "nearest",
    "nearest-exact", "area" for 1 to 3 axes, "linear" for 1, "bilinear" and "bicubic" for 2, "trilinear" for 3.
    align_corners: the outermost elements stay in their places. recompute_scale_factor: what the sizes say is the scale,
    not scale_factor. antialias: when the image shrinks, all elements count ("bilinear", "bicubic").

    >>> Tensor([[[1.0, 3.0]]]).interpolate(scale_factor=2, mode="linear")
    Tensor([[[1. , 1.5, 2.5, 3. ]]])
    """
    n = self.ndim - 2
    if n not in (MODES[mode][0] if mode in MODES else ()):
      fits = ", ".join(m for m, (axes, _) in MODES.items() if n in axes)
      what = f"interpolate: for the {n} axes behind N and C mode is one of {fits}, not {mode!r}"
      fail(
        ArgumentError,
        what if fits else "interpolate: x must have 3 to 5 axes, the first being N and C",
        x=self,
      )
    if align_corners is not None and mode not in LINEAR:
      fail(
        ArgumentError, f"interpolate: align_corners goes with {', '.join(LINEAR)}, not with {mode!r}", x=self
      )
    if antialias and mode not in ("bilinear", "bicubic"):
      fail(ArgumentError, f"interpolate: antialias goes with bilinear and bicubic, not with {mode!r}", x=self)
    if self.dtype.kind != "f" and "nearest" not in mode:
      fail(DTypeError, f"interpolate: x is {self.dtype.name}; x.float() would fit", x=self)
    old = self.shape[2:]
    new, scales = self._new_sizes(n, size, scale_factor, bool(recompute_scale_factor))
    maps = {}
    for a, (m, l, scale) in enumerate(zip(old, new, scales), 2):
      if align_corners:
        scale = (m - 1) / (l - 1) if l > 1 else 0.0
      if m != l:  # what keeps its size stays as it is, whatever scale_factor says
        maps[a] = axis_map(mode, m, l, scale, bool(align_corners), antialias)
    x = graph.cast(self._node, wide(self.dtype))
    return self._new(graph.cast(mapped(x, maps, self.device), self.dtype))

  def _new_sizes(self, n: int, size: Any, scale_factor: Any, again: bool) -> tuple[Ints, tuple[float, ...]]:
    """The new sizes, and how far apart their elements lie in x."""
    old = self.shape[2:]
    if (size is None) == (scale_factor is None):
      fail(ArgumentError, "interpolate: give size or scale_factor, one of them", x=self)
    given = numbers(size, n) if scale_factor is None else each_axis(scale_factor, n)
    if not all(map(math.isfinite, given)):
      fail(ArgumentError, f"interpolate: scale_factor={scale_factor} leads to no sizes", x=self)
    new = given if scale_factor is None else tuple(math.floor(m * f) for m, f in zip(old, given))
    if len(given) != n or min(*new, *old) < 1:
      what = f"size={size}" if scale_factor is None else f"scale_factor={scale_factor}"
      fail(ShapeError, f"interpolate: {what} is no size >= 1 for each of the axes {old}", x=self)
    if scale_factor is None or again:
      return new, tuple(m / l for m, l in zip(old, new))
    return new, tuple(1 / f for f in given)

  # ---------------------------------------------------------------- samples

  def grid_sample(
    self, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
  ) -> Tensor:
    """The values at places that a tensor names, between the elements, too, as PyTorch's `F.grid_sample`.

    self: T[N, C, H, W]   grid: T[N, H', W', 2]   ->   T[N, C, H', W'];   or with three axes and 3 coordinates

    A place is (x, y) - the last axis first - in -1..1: from edge to edge of the image, or with align_corners from the
    middle of the outermost elements to the other. mode: "bilinear", "nearest" or "bicubic" (two axes).
    padding_mode: what is outside is "zeros", the "border", or its "reflection".

    >>> Tensor([[[[1.0, 3.0]]]]).grid_sample(Tensor([[[[0.0, 0.0]]]]))
    Tensor([[[[2.]]]])
    """
    self._expect_grid(grid, mode, padding_mode)
    batch, channels, *size = self.shape
    index, weight = _taps(grid._wide().flatten(1, -2), size, mode, padding_mode, align_corners)
    taken, count = index.shape[1:]
    flat = index.reshape(batch, 1, taken * count).expand(batch, channels, taken * count)
    got = self._wide().reshape(batch, channels, prod(size)).gather(2, flat)
    out = (got.reshape(batch, channels, taken, count) * weight.unsqueeze(1)).sum(2)
    return out.reshape(batch, channels, *grid.shape[1:-1]).to(self.dtype)

  def _expect_grid(self, grid: Tensor, mode: str, padding_mode: str) -> None:
    n = self.ndim - 2
    if n not in (2, 3) or grid.ndim != n + 2 or grid.shape[-1] != n or grid.shape[0] != self.shape[0]:
      one = f"({self.shape[0]}, {'H, W, 2' if n == 2 else 'D, H, W, 3'})"
      fits = one if n in (2, 3) else "of 4 or 5 axes, as x"
      about = f"grid_sample: the grid's shape is {grid.shape}, but for this x it is {fits}"
      fail(ShapeError, about, x=self, grid=grid)
    if grid.dtype is not self.dtype or self.dtype.kind != "f":
      fail(DTypeError, "grid_sample: x and grid are of the same float type", x=self, grid=grid)
    if mode not in TAPS or (mode == "bicubic" and n == 3):
      fail(ArgumentError, f"grid_sample: mode is {', '.join(TAPS)} (two axes only), not {mode!r}", x=self)
    if padding_mode not in ("zeros", "border", "reflection"):
      about = f'grid_sample: padding_mode is "zeros", "border" or "reflection", not {padding_mode!r}'
      fail(ArgumentError, about, x=self)
    if not prod(self.shape[2:]):
      fail(ShapeError, "grid_sample: x has no elements to take a sample of", x=self)

  def affine_grid(self, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """The grid for `grid_sample` of an affine map of the places in the result, as PyTorch's `F.affine_grid`.

    self: T[N, 2, 3], size (N, C, H, W)   ->   T[N, H, W, 2];   or T[N, 3, 4], (N, C, D, H, W)   ->   T[N, D, H, W, 3]

    >>> Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]]).affine_grid((1, 1, 1, 2))
    Tensor([[[[-0.5,  0.5],
              [ 0.5,  0.5]]]])
    """
    n = len(size) - 2
    if n not in (2, 3) or self.shape != (size[0], n, n + 1) or min(size) < 1:
      fail(
        ShapeError,
        f"affine_grid: for the size {tuple(size)} theta is T[N, 2, 3] or T[N, 3, 4] with N of it",
        theta=self,
      )
    if self.dtype.kind != "f":
      fail(DTypeError, f"affine_grid: theta is {self.dtype.name}; theta.float() would fit", theta=self)
    axes = [middles(m, align_corners) for m in size[2:]]
    base = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(tuple(size[2:]))], -1)
    places = Handle._final(base.reshape(-1, n + 1), dtype=self.dtype, device=self.device)
    return (places @ self.mT).reshape(size[0], *size[2:], n)

  # ---------------------------------------------------------------- patches

  def im2col(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Each window as a column, as PyTorch's `F.unfold` and `nn.Unfold` (`Tensor.unfold` is along one axis,
    here as there).

    self: T[N, C, H, W], or without N   ->   T[N, C * h * w, windows]

    >>> Tensor([[[1, 2, 3]]]).im2col((1, 2))
    Tensor([[1, 2],
            [2, 3]])
    """
    if self.ndim == 3:
      return self.unsqueeze(0).im2col(kernel_size, dilation, padding, stride).squeeze(0)
    if self.ndim != 4:
      fail(ShapeError, "im2col: x must have 4 axes, or 3 without a batch", x=self)
    form, before = self._patches("im2col", self.shape[2:], kernel_size, dilation, padding, stride)
    x = graph.pad(self._node, ((0, 0), (0, 0), *((p, p) for p in before)))
    columns = (self.shape[0], self.shape[1] * prod(form.kernel), prod(form.count))
    return self._new(graph.reshape(graph.permute(cut(x, form, 2), (0, 1, 2, 4, 3, 5)), columns))

  def fold(
    self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
  ) -> Tensor:
    """The sum of columns at the places that `im2col` takes them from, as PyTorch's `F.fold`: its transpose.

    self: T[N, C * h * w, windows], or without N   ->   T[N, C, H, W] of output_size (H, W)

    >>> Tensor([[1.0, 1.0], [1.0, 1.0]]).fold((1, 3), (1, 2))
    Tensor([[[1., 2., 1.]]])
    """
    if self.ndim == 2:
      return self.unsqueeze(0).fold(output_size, kernel_size, dilation, padding, stride).squeeze(0)
    size = numbers(output_size, 2)
    if self.ndim != 3 or len(size) != 2:
      fail(
        ShapeError,
        f"fold: x must have 3 axes, or 2 without a batch, and output_size two numbers, not {output_size}",
        x=self,
      )
    form, before = self._patches("fold", size, kernel_size, dilation, padding, stride)
    batch, rows, columns = self.shape
    if rows % prod(form.kernel) or columns != prod(form.count):
      wanted = f"x of shape (N, C * {prod(form.kernel)}, {prod(form.count)})"
      fail(
        ShapeError,
        f"fold: for the output_size {size} and the kernel_size {form.kernel} there must be {wanted}",
        x=self,
      )
    whole = (batch, rows // prod(form.kernel), *form.size)
    (h, w), (y, x) = form.kernel, form.count
    u = graph.permute(graph.reshape(self._node, (*whole[:2], h, w, y, x)), (0, 1, 2, 4, 3, 5))
    out = u
    for axis, (n, step, gap) in enumerate(zip(form.size, form.stride, form.dilation), 2):
      out = overlapped(out, axis, n, step, gap)
    return self._new(graph.shrink(out, tuple((p, n - p) for p, n in zip((0, 0, *before), whole))))

  def _patches(self, what: str, size: Sequence[int], kernel_size: Any, dilation: Any, padding: Any,
               stride: Any) -> tuple[Form, Ints]:  # fmt: skip
    """The windows of an image, and how many zeros stand before and behind it."""
    kernel, gaps, before, steps = (numbers(v, 2) for v in (kernel_size, dilation, padding, stride))
    if (
      any(len(v) != 2 for v in (kernel, gaps, before, steps))
      or min(*kernel, *gaps, *steps, *(p + 1 for p in before)) < 1
    ):
      fail(
        ArgumentError,
        f"{what}: kernel_size, dilation and stride are numbers >= 1, padding >= 0; one or two of them",
        x=self,
      )
    whole = tuple(m + 2 * p for m, p in zip(size, before))
    count = tuple((m - d * (k - 1) - 1) // s + 1 for m, k, d, s in zip(whole, kernel, gaps, steps))
    if min(count) < 1:
      fail(
        ShapeError,
        f"{what}: the window {kernel} is larger than the image {tuple(size)} with its padding",
        x=self,
      )
    return Form(whole, kernel, count, steps, (0, 0), gaps), before

  # ---------------------------------------------------------------- channels and places

  def pixel_shuffle(self, upscale_factor: int) -> Tensor:
    """Channels as places: r * r of them for each.   T[.., C * r * r, H, W] -> T[.., C, H * r, W * r]

    >>> Tensor([[[1]], [[2]], [[3]], [[4]]]).pixel_shuffle(2)
    Tensor([[[1, 2],
             [3, 4]]])
    """
    r = upscale_factor
    if self.ndim < 3 or r < 1 or self.shape[-3] % (r * r):
      fail(
        ShapeError, f"pixel_shuffle: the channels, axis -3 of x, do not fall into groups of {r} * {r}", x=self
      )
    *lead, c, h, w = self.shape
    n = len(lead)
    x = self.reshape(*lead, c // (r * r), r, r, h, w)
    return x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // (r * r), h * r, w * r)

  def pixel_unshuffle(self, downscale_factor: int) -> Tensor:
    """The inverse of `pixel_shuffle`.   T[.., C, H * r, W * r] -> T[.., C * r * r, H, W]"""
    r = downscale_factor
    if self.ndim < 3 or r < 1 or self.shape[-1] % r or self.shape[-2] % r:
      fail(ShapeError, f"pixel_unshuffle: the last two axes of x are not multiples of {r}", x=self)
    *lead, c, h, w = self.shape
    n = len(lead)
    x = self.reshape(*lead, c, h // r, r, w // r, r)
    return x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r * r, h // r, w // r)

  def channel_shuffle(self, groups: int) -> Tensor:
    """One channel of each group in turn.   T[N, C, ..] -> T[N, C, ..]

    >>> Tensor([[1, 2, 3, 4]]).unsqueeze(-1).channel_shuffle(2).flatten()
    Tensor([1, 3, 2, 4])
    """
    if self.ndim < 3 or groups < 1 or self.shape[1] % groups:
      fail(
        ShapeError, f"channel_shuffle: the channels, axis 1 of x, do not fall into {groups} groups", x=self
      )
    return self.unflatten(1, (groups, -1)).transpose(1, 2).reshape(self.shape)

  def local_response_norm(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * the mean of x**2 over `size` channels around each)**beta.   T[N, C, ..] -> T[N, C, ..]

    ImageNet classification with deep convolutional neural networks (2012), section 3.3.
    Zeros stand around the channels.
    """
    if self.ndim < 3 or size < 1:
      fail(
        ShapeError, f"local_response_norm: x must have at least 3 axes, and size be >= 1, not {size}", x=self
      )
    squares = self.square().pad(((0, 0), (size // 2, (size - 1) // 2), *((0, 0),) * (self.ndim - 2)))
    total = squares.unfold(1, size, 1).sum(-1, dtype=self.dtype)
    return (
      self / (total.div(size, rounding_mode=None if self.dtype.kind == "f" else "trunc") * alpha + k) ** beta
    )


# ---------------------------------------------------------------- on nodes and numbers


def _taps(
  places: Tensor, size: Sequence[int], mode: str, padding_mode: str, align_corners: bool
) -> tuple[Tensor, Tensor]:
  """The elements from which a sample is taken at each place, and what they count.

  places: T[N, P, n]   ->   (int32[N, taps, P] among all elements in a row, T[N, taps, P])
  """
  index: Any = 0
  weight: Any = None
  for a, m in enumerate(size):
    place = places[..., len(size) - 1 - a] + 1
    c = place * ((m - 1) / 2) if align_corners else place * (m / 2) - 0.5
    if mode != "bicubic":
      c = folded_back(c, m, padding_mode, align_corners)
    first = c.detach().round() if mode == "nearest" else c.detach().floor()
    taps = Handle._final(np.array(TAPS[mode]), dtype=c.dtype, device=places.device)
    # [N, taps along the axes before, along this one, P]
    at = first.unsqueeze(1) + taps.unsqueeze(1)
    w = around(mode, c.unsqueeze(1) - at)
    if mode == "bicubic":
      at = folded_back(at, m, padding_mode, align_corners)
    inside = (at >= 0) & (at <= m - 1)
    w = inside.where(w, 0)
    at = inside.where(at, 0).to(dtypes.int32)
    index = at if weight is None else (index.unsqueeze(2) * m + at.unsqueeze(1)).flatten(1, 2)
    weight = w if weight is None else (weight.unsqueeze(2) * w.unsqueeze(1)).flatten(1, 2)
  return index, weight


def folded_back(c: Tensor, size: int, padding_mode: str, corners: bool) -> Tensor:
  """Coordinates, those outside brought to the border or reflected at it:
  at the outermost elements, or at their edges."""
  if padding_mode == "reflection":
    low, span = (0.0, size - 1) if corners else (-0.5, size)
    c = (span - ((c - low).abs() % (2 * span) - span).abs()) + low if span else c * 0
  return c if padding_mode == "zeros" else c.clamp(0, size - 1)


def around(mode: str, d: Tensor) -> Tensor:
  """The weights of places at a distance."""
  d = d.abs()
  if mode == "nearest":
    return d.ones_like()
  if mode == "bilinear":
    return 1 - d
  near, far = (
    ((1.25 * d - 2.25) * d) * d + 1,
    ((-0.75 * d + 3.75) * d - 6) * d + 3,
  )  # Keys's kernel with a = -3/4
  return (d <= 1).where(near, far)


def middles(m: int, corners: bool) -> np.ndarray:
  """The places of m elements in -1..1."""
  if corners:
    return np.linspace(-1, 1, m) if m > 1 else np.zeros(1)
  return (2 * np.arange(m) + 1) / m - 1
