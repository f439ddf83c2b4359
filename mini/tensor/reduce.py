"""Reductions: fewer elements than there were, along one axis, several or all; and their running forms.

`axis` (PyTorch's dim) is None for all axes, an int, or a tuple of them; `keepdim` leaves the axes with size 1.
Sums of float16 and bfloat16 are taken in float32 and rounded once, at the end.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mini.gradient_rules import constant_in, with_gradient
from mini.ir import graph
from mini.ir.sizes import number
from mini.ir.uop import UOp, const
from mini.tensor.algebra import equals, inverted, negated
from mini.tensor.arrange import Arrange
from mini.tensor.data import Axes, Number
from mini.tensor.errors import fail
from mini.tensor.handle import Handle, needs
from mini.tensor.promotion import wide
from mini.tensor.results import MinAndMax, ValuesAndIndices
from mini.types import ArgumentError, AxisError, DType, DTypeError, ShapeError, as_dtype, dtypes, prod

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Reduce(Arrange):
  """Sums, products, extremes, statistics, norms, softmax."""

  def _reduced(self, what: str, kind: str, u: UOp, axis: Axes, keepdim: bool) -> UOp:
    axes = self._axes(axis, what)
    out = graph.reduce(u, kind, axes)
    if 0 in graph.shape(u):
      out = constant_in(out, u)
    return out if keepdim else graph.reshape(out, tuple(n for a, n in enumerate(self.shape) if a not in axes))

  def _total(self, what: str, kind: str, axis: Axes, keepdim: bool, dtype: Any) -> Tensor:
    """A sum or product: of integers and booleans in int64, of halves in float32."""
    result = as_dtype(dtype) if dtype is not None else _sum_dtype(self.dtype)
    u = graph.cast(self._node, wide(result))
    return self._new(graph.cast(self._reduced(what, kind, u, axis, keepdim), result))

  def sum(self, axis: Axes = None, keepdim: bool = False, dtype: Any = None, *, dim: Axes = None) -> Tensor:
    """The sum over axes; of integers and booleans an int64. Over no elements: 0.

    >>> Tensor([[1, 2], [3, 4]]).sum(0)
    Tensor([4, 6])
    """
    return self._total("sum", "add", _reduced_axes(axis, dim), keepdim, dtype)

  def prod(self, axis: Axes = None, keepdim: bool = False, dtype: Any = None, *, dim: Axes = None) -> Tensor:
    """The product over axes. Over no elements: 1.

    >>> Tensor([2, 3, 4]).prod()
    Tensor(24)
    """
    return self._total("prod", "mul", axis if dim is None else dim, keepdim, dtype)

  def max(self, axis: Axes | Tensor = None, keepdim: bool = False, *, dim: int | None = None) -> Any:
    """The largest value; along an axis `(values, indices)`, as in PyTorch: the values, and where the first of each
    stands, as int64, which is computed only where it is asked for. NaN if there is one. ShapeError over no elements.
    Of two tensors it is `maximum`. Values alone, and those over several axes: `amax`.

    >>> Tensor([[1, 5], [3, 4]]).max()
    Tensor(5)
    >>> values, indices = Tensor([[1, 5], [3, 4]]).max(1)
    >>> values, indices
    (Tensor([5, 4]), Tensor([1, 1]))
    >>> Tensor([1, 5]).max(Tensor([3, 4]))
    Tensor([3, 5])
    """
    return self.maximum(axis) if isinstance(axis, Handle) else self._extreme("max", axis, dim, keepdim)

  def min(self, axis: Axes | Tensor = None, keepdim: bool = False, *, dim: int | None = None) -> Any:
    """The smallest value; along an axis `(values, indices)`, as `max`. Of two tensors it is `minimum`."""
    return self.minimum(axis) if isinstance(axis, Handle) else self._extreme("min", axis, dim, keepdim)

  def _extreme(self, what: str, axis: Any, dim: Any, keepdim: bool) -> Any:
    axis = axis if dim is None else dim
    if isinstance(axis, (tuple, list)):
      fail(
        DTypeError, f"{what}: values and indices are along one axis; x.a{what}({axis!r}) would fit", x=self
      )
    if axis is None:
      return self._most(what, None, keepdim)
    a = self._axis(axis, what)
    values, indices = self._most(what, a, True), self.detach()._position(f"arg{what}", what, a, True)
    if (
      needs(self._node) and self.ndim
    ):  # the gradient passes to where they stand, and is not shared by equal ones

      def rule(g: UOp, out: UOp, x: UOp, at: UOp) -> tuple[UOp, None]:
        chosen = equals(graph.expand(at, graph.shape(x)), _places(graph.shape(x), a))
        return graph.alu("where", chosen, graph.expand(g, graph.shape(x)), const(0, x.dtype)), None

      values = self._new(with_gradient(values._node, rule, self._node, indices._node))
    found = ValuesAndIndices(values, indices)
    return found if keepdim or not self.ndim else ValuesAndIndices(*(t.squeeze(a) for t in found))

  def amax(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Tensor:
    """The largest value along axes; NaN if there is one. Equal ones share the gradient. ShapeError over no elements.

    >>> Tensor([[1, 5], [3, 4]]).amax(1)
    Tensor([5, 4])
    """
    return self._most("max", _reduced_axes(axis, dim), keepdim)

  def amin(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Tensor:
    """The smallest value along axes, as `amax`."""
    return self._most("min", _reduced_axes(axis, dim), keepdim)

  def aminmax(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> MinAndMax:
    """The smallest and the largest value along axes."""
    axis = axis if dim is None else dim
    return MinAndMax(self.amin(axis, keepdim), self.amax(axis, keepdim))

  def _most(self, what: str, axis: Axes, keepdim: bool) -> Tensor:
    self._some(what, axis)
    if what == "max":
      return self._new(self._reduced(what, "max", self._node, axis, keepdim))
    turned = negated if self.dtype.kind == "f" else inverted
    return self._new(turned(self._reduced(what, "max", turned(self._node), axis, keepdim)))

  def _some(self, what: str, axis: Axes) -> None:
    if not all(self.shape[a] > 0 for a in self._axes(axis, what)):
      fail(AxisError, f"{what}: there is no {what} over an axis without elements", x=self)

  def any(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Tensor:
    """Is some element not zero?"""
    return self._verdict("any", "max", axis if dim is None else dim, keepdim)

  def all(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Tensor:
    """Is no element zero?

    >>> Tensor([[True, False], [True, True]]).all(1)
    Tensor([False,  True])
    """
    return self._verdict("all", "mul", axis if dim is None else dim, keepdim)

  def _verdict(self, what: str, kind: str, axis: Axes, keepdim: bool) -> Tensor:
    """A boolean; of uint8, which was PyTorch's boolean once, a uint8."""
    out = self._new(self._reduced(what, kind, self._truth(), axis, keepdim))
    return out.to(dtypes.uint8) if self.dtype is dtypes.uint8 else out

  def _truth(self) -> UOp:
    return self._node if self.dtype is dtypes.bool else graph.alu("ne", self._node, const(0, self.dtype))

  def nansum(
    self, axis: Axes = None, keepdim: bool = False, dtype: Any = None, *, dim: Axes = None
  ) -> Tensor:
    """The sum over axes of what is not NaN. Over no elements: 0.

    >>> Tensor([1.0, float("nan"), 2.0]).nansum()
    Tensor(3.)
    """
    return self.isnan().where(0, self).sum(_reduced_axes(axis, dim), keepdim, dtype)

  def count_nonzero(self, axis: Axes = None, *, dim: Axes = None) -> Tensor:
    """How many elements are not zero, as int64."""
    return self._new(self._truth()).sum(_reduced_axes(axis, dim))

  def argmax(self, axis: int | None = None, keepdim: bool = False, *, dim: int | None = None) -> Tensor:
    """The position of the largest value, the first of several, as int64; of the first NaN if there is one.

    Without axis: in the flattened tensor.

    >>> Tensor([[1, 5], [7, 4]]).argmax(1)
    Tensor([1, 0])
    """
    return self._position("argmax", "max", axis if dim is None else dim, keepdim)

  def argmin(self, axis: int | None = None, keepdim: bool = False, *, dim: int | None = None) -> Tensor:
    """The position of the smallest value, the first of several, as int64; of the first NaN if there is one."""
    return self._position("argmin", "min", axis if dim is None else dim, keepdim)

  def _position(self, what: str, kind: str, axis: int | None, keepdim: bool) -> Tensor:
    if axis is None:
      flat = self.reshape(-1)._position(what, kind, 0, False)
      return flat.reshape((1,) * self.ndim) if keepdim else flat
    a = self._axis(axis, what)
    if not self.ndim:
      return self._new(const(0, dtypes.int64))
    self._some(what, a)
    best = self._most(kind, a, True)
    x = self._node
    found = equals(x, graph.expand(best._node, self.shape))
    if x.dtype.kind == "f":
      found = graph.alu("or", found, graph.alu("ne", x, x))
    n = self.shape[a]
    left = graph.alu("add", number([n], graph.counter(n)), negated(graph.iota(n)))  # n, n-1, ..., 1
    left = graph.expand_to(graph.reshape(left, (n, *(1,) * (self.ndim - 1 - a))), self.shape)
    most = graph.reduce(graph.alu("where", found, left, const(0, left.dtype)), "max", (a,))
    at = graph.cast(graph.alu("add", number([n], left.dtype), negated(most)), dtypes.int64)
    return self._new(at if keepdim else graph.reshape(at, (*self.shape[:a], *self.shape[a + 1 :])))

  # ---------------------------------------------------------------- statistics

  def mean(self, axis: Axes = None, keepdim: bool = False, dtype: Any = None, *, dim: Axes = None) -> Tensor:
    """The average over axes. DTypeError on integers without dtype=; NaN over no elements.

    >>> Tensor([1.0, 2.0, 6.0]).mean()
    Tensor(3.)
    """
    axis = _reduced_axes(axis, dim)
    kind = as_dtype(dtype) if dtype is not None else self.dtype
    if kind.kind != "f":
      fail(DTypeError, f"mean: the average of {kind.name} is no integer; x.float().mean() would fit", x=self)
    total = self._reduced("mean", "add", graph.cast(self._node, wide(kind)), axis, keepdim)
    count = number([self.shape[a] for a in self._axes(axis, "mean")], total.dtype)
    return self._new(graph.cast(graph.alu("div", total, count), kind))

  def nanmean(
    self, axis: Axes = None, keepdim: bool = False, dtype: Any = None, *, dim: Axes = None
  ) -> Tensor:
    """The average over axes of what is not NaN; NaN where there is nothing else.

    >>> Tensor([1.0, float("nan"), 2.0]).nanmean()
    Tensor(1.5)
    """
    axis = _reduced_axes(axis, dim)
    kind = as_dtype(dtype) if dtype is not None else self.dtype
    if kind.kind != "f":
      fail(
        DTypeError,
        f"nanmean: the average of {kind.name} is no integer; x.float().nanmean() would fit",
        x=self,
      )
    total = self.nansum(axis, keepdim, wide(kind))
    return (total / (~self.isnan()).sum(axis, keepdim)).to(kind)

  def _count(self, axis: Axes) -> int:
    return prod(self.shape[a] for a in self._axes(axis, "mean"))

  def var(
    self,
    axis: Axes = None,
    correction: float | None = 1,
    keepdim: bool = False,
    *,
    dim: Axes = None,
    unbiased: bool | None = None,
  ) -> Tensor:
    """The variance over axes: the squared distances from the mean, summed, over n - correction.

    >>> Tensor([1.0, 2.0, 6.0]).var()
    Tensor(7.)
    """
    axis, correction = _of_variance(axis, correction, dim, unbiased)
    if self.dtype.kind != "f":
      fail(DTypeError, f"var: of {self.dtype.name}; x.float().var() would fit", x=self)
    x = self._wide()
    squares = (x - x.mean(axis, True)).square()
    left = max(self._count(axis) - correction, 0)
    total = squares._reduced("var", "add", squares._node, axis, keepdim)
    return self._new(graph.cast(graph.alu("div", total, number([left], total.dtype)), self.dtype))

  def std(
    self,
    axis: Axes = None,
    correction: float | None = 1,
    keepdim: bool = False,
    *,
    dim: Axes = None,
    unbiased: bool | None = None,
  ) -> Tensor:
    """The square root of `var`. Where that is 0, the slope is 0, as in PyTorch."""
    var = self.var(*_of_variance(axis, correction, dim, unbiased), keepdim)
    flat = var == 0
    return flat.where(0, flat.where(1, var).sqrt())

  def var_mean(
    self,
    axis: Axes = None,
    correction: float | None = 1,
    keepdim: bool = False,
    *,
    dim: Axes = None,
    unbiased: bool | None = None,
  ) -> tuple[Tensor, Tensor]:
    """`var` and `mean`."""
    axis, correction = _of_variance(axis, correction, dim, unbiased)
    return self.var(axis, correction, keepdim), self.mean(axis, keepdim)

  def std_mean(
    self,
    axis: Axes = None,
    correction: float | None = 1,
    keepdim: bool = False,
    *,
    dim: Axes = None,
    unbiased: bool | None = None,
  ) -> tuple[Tensor, Tensor]:
    """`std` and `mean`."""
    axis, correction = _of_variance(axis, correction, dim, unbiased)
    return self.std(axis, correction, keepdim), self.mean(axis, keepdim)

  def norm(
    self,
    p: Any = 2,
    axis: Axes = None,
    keepdim: bool = False,
    dtype: Any = None,
    *,
    dim: Axes = None,
  ) -> Tensor:
    """The p-norm of the elements along axes: (sum |a|**p) ** (1/p); p may be inf, -inf or 0. dtype: of the computation.

    >>> Tensor([3.0, 4.0]).norm()
    Tensor(5.)
    """
    axis = _reduced_axes(axis, dim)
    if isinstance(p, str) and p == "nuc":
      x = self if dtype is None else self.to(as_dtype(dtype))
      return import_module("mini.tensor.linalg").matrix_norm(
        x, p, tuple(range(self.ndim)) if axis is None else axis, keepdim
      )
    if not isinstance(p, Number) and p != "fro":
      fail(ArgumentError, f'norm: p is a number, "fro" or "nuc", not {p!r}', x=self)
    x = self._new(self._float()) if dtype is None else self.to(as_dtype(dtype))
    if p in (math.inf, -math.inf):
      return x.abs()._most("max" if p > 0 else "min", axis, keepdim)
    if p == 0:
      return x._flat((x != 0).sum(axis, keepdim, dtype=x.dtype)._node)
    if p == 1:
      return x.abs().sum(axis, keepdim)
    wider, square = x._wide(), p in (2, "fro")
    total = (wider.square() if square else wider.abs() ** p).sum(axis, keepdim)
    some = total != 0  # the root has no slope at 0: there it passes no gradient
    safe = some.where(total, 1)
    return some.where(safe.sqrt() if square else safe.pow(1 / p), 0 if square or p > 0 else math.inf).to(
      x.dtype
    )

  def _wide(self) -> Tensor:
    """In the type in which sums are taken."""
    return self._new(graph.cast(self._node, wide(self.dtype)))

  # ---------------------------------------------------------------- exponential sums

  def logsumexp(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Tensor:
    """log(sum(exp(a))) along axes, without overflow.

    >>> Tensor([1000.0, 1000.0]).logsumexp(0)
    Tensor(1000.6932)
    """
    axis = axis if dim is None else dim
    x = self._new(graph.cast(self._float(), wide(self._float().dtype)))
    if any(self.shape[a] == 0 for a in self._axes(axis, "logsumexp")):
      return x.exp().sum(axis, keepdim).log()
    top = x._peak(axis)
    out = (x - top).exp().sum(axis, keepdim).log()
    flat = top if keepdim else top.reshape(out.shape)
    return (out + flat).to(self._float().dtype)

  def _peak(self, axis: Axes) -> Tensor:
    """The maximum along axes, 0 where that is infinite: what is subtracted before exp. No gradient: it cancels."""
    top = self.detach().amax(axis, True)
    return top.isfinite().where(top, 0)

  def softmax(self, axis: Axes = -1, dtype: Any = None, *, dim: Axes = None) -> Tensor:
    """exp(a) / sum(exp(a)) along an axis: positive numbers that sum to 1. Halves are computed in float32.

    >>> Tensor([0.0, 0.0]).softmax()
    Tensor([0.5, 0.5])
    """
    x, axis, result = self._shifted(axis if dim is None else dim, dtype)
    e = x.exp()
    value = e * (1 / e.sum(axis, True))  # a division for each row, not for each element

    def rule(g: UOp, out: UOp, x: UOp) -> tuple[UOp]:
      """It is nothing, to the bit, where all but one of the results are."""
      d, p = Handle._new(g), Handle._new(out)
      return ((p * (d - (d * p).sum(axis, True)))._node,)

    return (self._new(with_gradient(value._node, rule, x._node)) if needs(x._node) else value).to(result)

  def log_softmax(self, axis: Axes = -1, dtype: Any = None, *, dim: Axes = None) -> Tensor:
    """log(softmax(a)) along an axis, without overflow."""
    x, axis, result = self._shifted(axis if dim is None else dim, dtype)
    return (x - x.exp().sum(axis, True).log()).to(result)

  def softmin(self, axis: int = -1, dtype: Any = None, *, dim: int | None = None) -> Tensor:
    """softmax(-a)."""
    return self.neg().softmax(axis if dim is None else dim, dtype)

  def _shifted(self, axis: Any, dtype: Any) -> tuple[Tensor, Any, DType]:
    """The input minus its maximum, in the type of the computation; the axis; the type of the result."""
    x = self if dtype is None else self.to(as_dtype(dtype))
    axes = self._axes(axis, "softmax")
    wider = x._new(graph.cast(x._float(), wide(x._float().dtype)))
    top = wider if any(self.shape[a] == 0 for a in axes) else wider - wider.detach().amax(axes, True)
    return top, axes, x._float().dtype

  # ---------------------------------------------------------------- running forms

  def cumsum(self, axis: int = 0, dtype: Any = None, *, dim: int | None = None) -> Tensor:
    """The running sum along an axis; of integers and booleans in int64.

    >>> Tensor([1, 2, 3]).cumsum(0)
    Tensor([1, 3, 6])
    """
    return self._running("cumsum", "add", axis if dim is None else dim, dtype)

  def cumprod(self, axis: int = 0, dtype: Any = None, *, dim: int | None = None) -> Tensor:
    """The running product along an axis; of integers and booleans in int64."""
    return self._running("cumprod", "mul", axis if dim is None else dim, dtype)

  def _running(self, what: str, kind: str, axis: int, dtype: Any) -> Tensor:
    result = as_dtype(dtype) if dtype is not None else _sum_dtype(self.dtype)
    a = self._axis(axis, what)
    u = graph.cast(self._node, wide(result))
    return self._new(graph.cast(graph.scan(u, kind, a) if self.ndim else u, result))

  def logcumsumexp(self, axis: int = 0, *, dim: int | None = None) -> Tensor:
    """The logarithm of the running sum of exp(a) along an axis, without overflow.

    >>> Tensor([1000.0, 1000.0]).logcumsumexp(0)
    Tensor([1000.    , 1000.6932])
    """
    a = self._axis(axis if dim is None else dim, "logcumsumexp")
    if self.dtype.kind != "f":
      fail(DTypeError, f"logcumsumexp: of {self.dtype.name}; x.float().logcumsumexp(0) would fit", x=self)
    if not self.ndim:
      return self._new(self._node)
    return self._wide().movedim(a, -1)._log_sums().movedim(-1, a).to(self.dtype)

  def _log_sums(self) -> Tensor:
    """Along the last axis: of neighbours together first, then between them, which is linear."""
    n = self.shape[-1]
    if n <= 1:
      return self._new(self._node)
    x = self._new(self._node)
    firsts, seconds = x[..., 0::2], x[..., 1::2]
    sums = firsts[..., : n // 2]._log_sum(seconds)._log_sums()  # up to 1, 3, 5, ...
    between = sums[..., : (n - 1) // 2]._log_sum(firsts[..., 1:])  # up to 2, 4, 6, ...
    evens = firsts[..., :1].cat(between, dim=-1)
    odds = sums if n % 2 == 0 else sums.pad((0, 1))
    return evens.stack(odds, dim=-1).flatten(-2)[..., :n]

  def _log_sum(self, other: Tensor) -> Tensor:
    """log(exp(a) + exp(b)); both may be -inf, which passes no gradient."""
    top = self.detach().maximum(other.detach())
    top = top.isfinite().where(top, 0)
    total = (self - top).exp() + (other - top).exp()
    nothing = total == 0
    return nothing.where(-math.inf, nothing.where(1, total).log() + top)

  def diff(
    self,
    n: int = 1,
    axis: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    dim: int | None = None,
  ) -> Tensor:
    """The differences of neighbours along an axis, n times over; of booleans where they differ.

    prepend, append: tensors that stand before and behind it first.

    >>> Tensor([1, 4, 9, 16]).diff(2)
    Tensor([2, 2])
    """
    if not self.ndim or n < 0:
      fail(ShapeError, f"diff: {n} times, of a tensor with {self.ndim} axes", x=self)
    a = self._axis(axis if dim is None else dim, "diff")
    parts = [t for t in (prepend, self, append) if t is not None]
    x = parts[0].cat(*parts[1:], dim=a) if len(parts) > 1 else self._new(self._node)
    if n == 0:  # PyTorch's: nothing stands before or behind what is left alone
      return self._new(self._node)
    for _ in range(min(n, x.shape[a])):
      later, sooner = x.narrow(a, 1, x.shape[a] - 1), x.narrow(a, 0, x.shape[a] - 1)
      x = later ^ sooner if x.dtype is dtypes.bool else later - sooner
    return x

  def _slope(self, axis: int, spacing: Any, edge_order: int) -> Tensor:
    """The slope along an axis, in the middle of three points by the parabola through them; spacing: between points, a
    number, or a vector of where they are."""
    if self._complex:
      return self._mapped(lambda part: part._slope(axis, spacing, edge_order))
    f: Any = self._new(self._float())._wide().movedim(axis, -1)
    n = f.shape[-1]
    if n < edge_order + 1:
      fail(ShapeError, f"gradient: axis {axis} has {n} points, and takes {edge_order + 1} or more", x=self)
    if isinstance(spacing, Handle):
      if spacing.shape != (n,):
        fail(ShapeError, f"gradient: spacing is a number, or a vector of {n}", x=self, spacing=spacing)
      h: Any = spacing.to(f.dtype).diff()  # type: ignore[attr-defined]
    else:
      h = f.full((n - 1,), spacing, f.dtype, f.device)
    first = (f[..., 1:2] - f[..., :1]) / h[:1]
    last = (f[..., -1:] - f[..., -2:-1]) / h[-1:]
    lines = (f[..., 1:] - f[..., :-1]) / h  # between neighbours
    p, q = h[:-1], h[1:]
    if edge_order == 2:
      bend = (lines[..., 1:] - lines[..., :-1]) / (p + q)
      first, last = first - bend[..., :1] * h[:1], last + bend[..., -1:] * h[-1:]
    inner = (lines[..., :-1] * q + lines[..., 1:] * p) / (p + q)
    return first.cat(inner, last, dim=-1).movedim(-1, axis).to(self._float().dtype)

  def cummax(self, axis: int = 0, *, dim: int | None = None) -> ValuesAndIndices:
    """The running maximum along an axis, and where it stands (the last of equals), as int64."""
    a = self._axis(axis if dim is None else dim, "cummax")
    values = self._new(graph.scan(self._node, "max", a) if self.ndim else self._node)
    return ValuesAndIndices(values, self._latest(values, a))

  def cummin(self, axis: int = 0, *, dim: int | None = None) -> ValuesAndIndices:
    """The running minimum along an axis, and where it stands (the last of equals), as int64."""
    a = self._axis(axis if dim is None else dim, "cummin")
    turned = negated if self.dtype.kind == "f" else inverted
    values = self._new(turned(graph.scan(turned(self._node), "max", a)) if self.ndim else self._node)
    return ValuesAndIndices(values, self._latest(values, a))

  def _latest(self, values: Tensor, a: int) -> Tensor:
    """Where a running extreme was last taken."""
    if not self.ndim:
      return self._new(const(0, dtypes.int64))
    here = (values == self) | (values.isnan() & self.isnan())
    at = _places(self.shape, a)
    return self._new(graph.scan(graph.alu("where", here._node, at, const(0, dtypes.int64)), "max", a))


def _places(shape: tuple[int, ...], a: int) -> UOp:
  """Each element's place along an axis.   -> i64[shape]"""
  line = graph.iota(shape[a], dtypes.int64)
  return graph.expand_to(graph.reshape(line, (shape[a],) + (1,) * (len(shape) - 1 - a)), shape)


def _reduced_axes(axis: Axes, dim: Axes) -> Axes:
  """axis, or dim if it is given: of NumPy's axis=() there is none, but PyTorch's dim=() are all."""
  return axis if dim is None else None if isinstance(dim, (tuple, list)) and not dim else dim


def _of_variance(axis: Any, correction: Any, dim: Axes, unbiased: bool | None) -> tuple[Axes, float]:
  """(axes, correction): x.var(True) is x.var(unbiased=True), and without a correction it is 1."""
  if isinstance(axis, bool):
    axis, unbiased = None, axis
  correction = 1 if correction is None else correction
  return _reduced_axes(axis, dim), correction if unbiased is None else int(unbiased)


def _sum_dtype(d: DType) -> DType:
  return d if d.kind == "f" or d is dtypes.uint64 else dtypes.int64
