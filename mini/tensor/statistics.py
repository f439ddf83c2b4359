"""Covariances, histograms, integrals, distances of whole tensors; and more arithmetic element by element.

All of it is made of methods of other families, and has their gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mini.ir import graph
from mini.tensor.data import Operand
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.pieces import Pieces
from mini.tensor.promotion import nodes, result_type
from mini.types import ArgumentError, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Histogram(NamedTuple):
  """What `histogram` returns."""

  hist: Any
  bin_edges: Any


class MantissaAndExponent(NamedTuple):
  """What `frexp` returns."""

  mantissa: Any
  exponent: Any


class Statistics(Pieces):
  """cov, histogram, trapezoid, dist, renorm, gcd, frexp and the like."""

  # ---------------------------------------------------------------- covariances

  def cov(
    self, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
  ) -> Tensor:
    """The covariances of variables, a row each.   T[n, m] -> T[n, n]

    fweights: how often each observation was made; aweights: how much each counts; divided by m - correction.

    >>> Tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).cov().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if self.ndim > 2:
      fail(ShapeError, "cov: x is no matrix of observations", x=self)
    if any(w is not None and w.shape != self.shape[-1:] for w in (fweights, aweights)):
      fail(ShapeError, "cov: weights are vectors, one for each observation", x=self)
    if fweights is not None and fweights.dtype.kind not in "iu":
      fail(DTypeError, f"cov: fweights count, and are integers, not {fweights.dtype.name}", x=self)
    x: Any = self.atleast_2d()
    x = x if x.dtype.kind in "fc" else x.float()
    w: Any = fweights if aweights is None else aweights if fweights is None else aweights * fweights
    if w is None:
      norm, mean = x.shape[1] - correction, x.mean(1, True)
      apart = weighted = x - mean
    else:
      total = w.sum()
      apart = x - (x * w).sum(1, True) / total
      weighted = apart * w
      norm = total - correction * (1 if aweights is None else (w * aweights).sum() / total)
      norm = norm.clamp(min=0)
    return (weighted @ apart.mH / (max(norm, 0) if w is None else norm)).squeeze()

  def corrcoef(self) -> Tensor:
    """The coefficients of correlation of variables, a row each, within -1 and 1.   T[n, m] -> T[n, n]"""
    c = self.cov()
    if not c.ndim:
      return c / c
    scale = c.diagonal().real.sqrt()
    out = c / scale.unsqueeze(-1) / scale
    return out if out.is_complex() else out.clamp(-1, 1)

  # ---------------------------------------------------------------- histograms

  def histogram(
    self,
    bins: int | Tensor,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
  ) -> Histogram:
    """How many elements, or how much of their weight, lie in each interval, and the ends of the intervals.

    bins: how many of one size from range[0] to range[1], or their ends. density: over the size of the interval and the
    total. The last interval has its right end, too.

    >>> Tensor([1.0, 2.0, 1.0]).histogram(4, range=(0.0, 3.0)).hist
    Tensor([0., 2., 1., 0.])
    """
    found = self.reshape(-1, 1).histogramdd([bins], range=range, weight=weight, density=density)
    return Histogram(found.hist, found.bin_edges[0])

  def histogramdd(
    self,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
  ) -> Histogram:
    """`histogram` of points in several dimensions.   T[.., d] -> T[bins of each], the ends for each dimension

    bins: for each dimension a number or the ends, or one number; range: left and right end for each in turn.
    """
    if self.dtype.kind != "f" or not self.ndim:
      fail(DTypeError, "histogram: x has floats; x.float() would fit", x=self)
    x: Any = self.detach().reshape(-1, self.shape[-1])
    bins = [bins] * x.shape[1] if isinstance(bins, int) else [*bins]
    if len(bins) != x.shape[1]:
      fail(ShapeError, f"histogram: {len(bins)} bins for {x.shape[1]} dimensions", x=self)
    edges: list[Any] = [
      b if isinstance(b, Handle) else _edges(x[:, d], b, range and range[2 * d : 2 * d + 2])
      for d, b in enumerate(bins)
    ]
    sizes = tuple(e.numel() - 1 for e in edges)
    place, inside = x[:, 0].zeros_like(dtypes.int64), x[:, 0] == x[:, 0]
    for d, e in enumerate(edges):
      column, n = x[:, d], e.numel() - 1
      at = e.searchsorted(column, right=True) - 1
      inside = inside & (column >= e[0]) & (column <= e[-1])
      place = place * n + at.clamp(0, n - 1)
    counted: Any = inside.cast(x.dtype) if weight is None else inside.where(weight.detach().reshape(-1), 0)
    hist = x.new_zeros(math.prod(sizes)).scatter_add(0, place, counted.cast(x.dtype)).reshape(sizes)
    if density:
      hist = hist / hist.sum()
      for d, e in enumerate(edges):
        hist = hist / e.diff().reshape(-1, *(1,) * (len(edges) - 1 - d))
    return Histogram(hist, tuple(edges))

  def unique_consecutive(
    self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
  ) -> Any:
    """The values without those that are equal to the one before; along dim, slices. Computed at once.

    return_inverse: where among them each element is, too. return_counts: how often each occurs in a row, too.

    >>> Tensor([1, 1, 2, 1]).unique_consecutive(return_counts=True)
    (Tensor([1, 2, 1]), Tensor([2, 1, 1]))
    """
    values = self.numpy()
    rows = (
      values.reshape(values.size, 1) if dim is None else np.moveaxis(values, self._axis(dim, "unique"), 0)
    )
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(tuple(range(1, rows.ndim)))
    at = np.flatnonzero(new)
    inverse = np.cumsum(new) - 1
    found = self.reshape(-1)[at] if dim is None else self.movedim(dim, 0)[at].movedim(0, dim)
    wanted = [(inverse.reshape(values.shape) if dim is None else inverse, return_inverse)]
    wanted += [(np.diff(np.append(at, len(rows))), return_counts)]
    rest = tuple(Handle._final(t, dtypes.int64, self.device) for t, asked in wanted if asked)
    return (found.detach(), *rest) if rest else found.detach()

  # ---------------------------------------------------------------- integrals and distances

  def trapezoid(self, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral along dim by the trapezoidal rule, of values at the places x, or at places dx (1) apart.

    >>> Tensor([1.0, 2.0, 3.0]).trapezoid()
    Tensor(4.)
    """
    return self._trapezoids(x, dx, dim).sum(dim)

  def cumulative_trapezoid(
    self, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1
  ) -> Tensor:
    """The integral by the trapezoidal rule up to each place but the first; see `trapezoid`."""
    return self._trapezoids(x, dx, dim).cumsum(dim)

  def _trapezoids(self, x: Tensor | None, dx: float | None, dim: int) -> Any:
    a = self._axis(dim, "trapezoid")
    n = self.shape[a]
    both = self.narrow(a, 0, max(n - 1, 0)) + self.narrow(a, min(n, 1), max(n - 1, 0))
    if x is None:
      return both * (0.5 if dx is None else dx * 0.5)
    if dx is not None:
      fail(ArgumentError, "trapezoid: x says how far the places are apart, and so does dx", x=x)
    apart = x.diff().reshape(-1, *(1,) * (self.ndim - 1 - a)) if x.ndim == 1 else x.diff(dim=dim)
    return both * apart * 0.5

  def dist(self, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of all of a - b.

    >>> Tensor([3.0, 0.0]).dist(Tensor([0.0, 4.0]))
    Tensor(5.)
    """
    return (self - other).norm(p)

  def pdist(self, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows.   T[n, d] -> T[n (n - 1) / 2]

    >>> Tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]).pdist()
    Tensor([5.       , 1.       , 4.2426405])
    """
    if self.ndim != 2:
      fail(ShapeError, "pdist: x is no list of vectors", x=self)
    a, b = np.triu_indices(self.shape[0], 1)
    return (self[a] - self[b]).norm(p, -1)

  def renorm(self, p: float, dim: int, maxnorm: float) -> Tensor:
    """Each slice along dim whose p-norm is above maxnorm is scaled to have that.

    >>> Tensor([[3.0, 4.0], [0.0, 1.0]]).renorm(2, 0, 1.0).round(decimals=4)
    Tensor([[0.6, 0.8],
            [0. , 1. ]])
    """
    if self.ndim < 2:
      fail(ShapeError, "renorm: x has fewer than two axes", x=self)
    if not (p > 0 and maxnorm >= 0):
      fail(ArgumentError, f"renorm: p = {p} is to be above 0, and maxnorm = {maxnorm} not below", x=self)
    a = self._axis(dim, "renorm")
    norms = self.norm(p, tuple(b for b in range(self.ndim) if b != a), True)
    return self * (norms > maxnorm).where(maxnorm / (norms + 1e-7), 1).cast(self.dtype)

  # ---------------------------------------------------------------- arithmetic

  def positive(self) -> Tensor:
    """+a. DTypeError of booleans."""
    if self.dtype is dtypes.bool:
      fail(DTypeError, "positive: not of booleans", x=self)
    return self._mapped(lambda t: t._view(("same", None)))

  def rsub(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """other - alpha * a."""
    return other - (self if alpha == 1 else self * alpha)

  def float_power(self, exponent: Operand) -> Tensor:
    """`pow` in float64, of complex numbers in complex128.

    >>> Tensor([2]).float_power(-1)
    Tensor([0.5], dtype=float64)
    """
    both = [x if isinstance(x, Handle) else Handle._final(x, device=self.device) for x in (self, exponent)]
    kind = dtypes.complex128 if any(x.dtype.kind == "c" for x in both) else dtypes.float64
    return both[0].cast(kind) ** both[1].cast(kind)  # type: ignore[attr-defined]

  def isposinf(self) -> Tensor:
    """Where it is infinite and positive."""
    return self == math.inf if self.dtype.kind == "f" else self.zeros_like(dtypes.bool)

  def isneginf(self) -> Tensor:
    """Where it is infinite and negative."""
    return self == -math.inf if self.dtype.kind == "f" else self.zeros_like(dtypes.bool)

  def gcd(self, other: Operand) -> Tensor:
    """The greatest common divisor of integers, not negative.

    Euclid's algorithm, in as many steps as the type may need: two neighbours of Fibonacci's numbers.

    >>> Tensor([12, 0]).gcd(Tensor([-8, 5]))
    Tensor([4, 5])
    """
    a, b = map(self._new, nodes("gcd", (self, self._coerced(other))))
    if a.dtype.kind not in "iu":
      fail(DTypeError, f"gcd: of integers, not of {a.dtype.name}", x=self)
    a, b = a.abs(), b.abs()
    for _ in range(int(8 * a.dtype.itemsize * 1.4405) + 2):
      zero = b == 0
      a, b = zero.where(a, b), a % zero.where(1, b)
    return a

  def lcm(self, other: Operand) -> Tensor:
    """The least common multiple of integers, not negative.

    >>> Tensor([4, 0]).lcm(6)
    Tensor([12,  0])
    """
    common = self.gcd(other)
    return (self // (common == 0).where(1, common) * other).abs()

  def ldexp(self, other: Operand) -> Tensor:
    """a * 2 ** b."""
    power: Any = other if isinstance(other, Handle) else Handle._final(other, device=self.device)
    return (self * 2.0**power).cast(result_type(self, power, 2.0))

  def frexp(self) -> MantissaAndExponent:
    """The mantissa, whose magnitude is in [0.5, 1), and the exponent, int32: a = mantissa * 2 ** exponent.

    >>> Tensor([6.0]).frexp()
    MantissaAndExponent(mantissa=Tensor([0.75]), exponent=Tensor([3], dtype=int32))
    """
    if self.dtype.kind != "f":
      fail(DTypeError, f"frexp: of floats, not of {self.dtype.name}", x=self)
    x: Any = self if self.dtype is dtypes.float64 else self.to(dtypes.float32)
    kind, digits, bias = (dtypes.int64, 52, 1022) if x.dtype is dtypes.float64 else (dtypes.int32, 23, 126)
    tiny = x.abs() < float(dtypes.finfo(x.dtype).tiny)
    normal = tiny.where(x * 2.0**digits, x)
    bits = x._new(graph.bitcast(normal.detach()._node, kind))
    found = (bits >> digits) & (2 * bias + 3)
    none = (x == 0) | x.isfinite().logical_not()
    exponent = none.where(0, found - bias - tiny.where(digits, 0))
    half = exponent // 2
    mantissa = x * (-half).cast(x.dtype).exp2() * (half - exponent).cast(x.dtype).exp2()
    return MantissaAndExponent(mantissa.cast(self.dtype), exponent.cast(dtypes.int32))


def _edges(x: Any, bins: int, between: Sequence[float] | None) -> Tensor:
  """The ends of intervals of one size: of the values themselves where there is nothing between the ends told."""
  if bins < 1:
    fail(ArgumentError, f"histogram: {bins} bins", x=x)
  low, high = between if between else (float(t.item()) for t in x.aminmax()) if x.numel() else (0.0, 1.0)
  if low == high:
    low, high = low - 0.5, high + 0.5
  if not low < high < math.inf:
    fail(ArgumentError, f"histogram: no intervals from {low} to {high}", x=x)
  return Handle._final.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
