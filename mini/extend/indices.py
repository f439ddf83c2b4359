"""Index values of a kernel: what is known of them, and how an array is read at them.

An index is an expression of dtype index over ranges (mini/ir/uop.py), one range for each axis of what is computed. What
is affine in one range per axis is read by views, all else by a gather. No element outside is ever read: bounds follow
from the ranges, or from the conditions under which the read stands; where neither suffices, the gather has a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from mini.gradient_rules import with_gradient
from mini.ir import graph
from mini.ir.outside import outside
from mini.ir.uop import UOp, add, bounds, const, linear, mul, range_, rsize
from mini.tensor import Tensor
from mini.tensor.handle import needs
from mini.tensor.promotion import broadcast_shape
from mini.types import DType, dtypes


class Test(NamedTuple):
  """A condition that depends on indices. Where it is true, the expressions of `facts` are >= 0; where it is false,
  those of `otherwise`."""

  value: Tensor
  facts: tuple[UOp, ...] = ()
  otherwise: tuple[UOp, ...] = ()


class Path(NamedTuple):
  """Where a statement runs: for the elements of the mask (None: all), for which these expressions are >= 0."""

  mask: Tensor | None = None
  facts: tuple[UOp, ...] = ()

  def where(self, t: Test) -> Path:
    return Path(t.value if self.mask is None else self.mask & t.value, (*self.facts, *t.facts))


class Axes:
  """The ranges of what is computed: those of the result, and in front of them those of the loops around."""

  def __init__(self, sizes: Sequence[int]):
    self.ranges: list[UOp] = []  # the last axis first
    self.count = 0
    for n in reversed(sizes):
      self.push(n)

  def push(self, size: int) -> UOp:
    """A new axis, in front of all others."""
    self.count += 1
    r = range_(f"r{self.count}", size)
    self.ranges.append(r)
    return r

  def pop(self) -> None:
    self.ranges.pop()

  def tensor(self, e: UOp, dtype: DType = dtypes.int32) -> Tensor:
    """An index as a value, along its axes."""
    terms, k = linear(e)
    total: Any = None
    for atom, c in terms.items():
      one = self.atom(atom, dtype)
      one = one if c == 1 else one * c
      total = one if total is None else total + one
    return Tensor._new(graph.full((), k, dtype)) if total is None else total + k if k else total

  def atom(self, u: UOp, dtype: DType) -> Tensor:
    if u.op == "range":
      at = self.ranges.index(u)
      n = rsize(u)
      return Tensor._new(graph.reshape(graph.iota(n, dtype), (n, *(1,) * at)))
    inner = self.tensor(u.src[0], dtype)
    return inner // u.src[1].arg if u.op == "div" else inner % u.src[1].arg


def least_and_most(e: UOp, facts: Sequence[UOp]) -> tuple[int, int]:
  """The bounds of an index, from its ranges and from each of the facts: e = f + (e - f), and f >= 0."""
  lo, hi = bounds(e)
  for f in facts:
    lo = max(lo, bounds(add(e, mul(f, -1)))[0])
    hi = min(hi, bounds(add(e, f))[1])
  return lo, hi


def gated(t: Tensor, mask: Tensor | None) -> Tensor:
  """t, to which a gradient passes from the elements of the mask alone: an infinite slope on the way not taken would
  else be multiplied by 0."""
  if mask is None or not needs(t._node):
    return t
  s = broadcast_shape(t.shape, mask.shape)
  assert s is not None
  x, m = t.expand(s), mask.expand(s)

  def rule(g: UOp, out: UOp, x: UOp, m: UOp) -> tuple[UOp | None, ...]:
    return graph.alu("where", m, g, const(0, g.dtype)), None

  return Tensor._new(with_gradient(x._node, rule, x._node, m._node))


class OutOfBounds(Exception):
  """A read that all elements make, and some or all of them outside: (axis, least, most)."""


def read(array: Tensor, index: Sequence[Any], axes: Axes, path: Path) -> Tensor:
  """array[index], for the elements of a path. index: ints, index expressions, tensors of integers."""
  proved = []
  for axis, (e, n) in enumerate(zip(index, array.shape)):
    if isinstance(e, Tensor):
      proved.append(False)
      continue
    lo, hi = least_and_most(e, path.facts) if isinstance(e, UOp) else (e, e)
    proved.append(0 <= lo and hi < n)
    exact = not isinstance(e, UOp) or all(t.op == "range" for t in linear(e)[0])
    if path.mask is None and (hi < 0 or lo >= n or (exact and not proved[-1])):
      raise OutOfBounds(axis, lo, hi)
    if lo > hi:  # the conditions are never true together
      return Tensor._new(graph.full((), 0, array.dtype))
  got = views(array, index, axes) if all(proved) else None
  if got is None:
    got = gathered(array, index, proved, axes, path)
  return gated(got, path.mask)


def views(array: Tensor, index: Sequence[Any], axes: Axes) -> Tensor | None:
  """The read by views alone; None where they do not suffice. What a guard keeps from being read is padded."""
  places: list[int] = []
  x = array
  for axis, (e, n) in enumerate(zip(index, array.shape)):
    terms, k = linear(e) if isinstance(e, UOp) else ({}, e)
    if not terms:
      x = x.narrow(axis, k, 1)
      places.append(-1)
      continue
    ((r, c), *more) = terms.items()
    if more or r.op != "range" or axes.ranges.index(r) in places:
      return None
    lo, hi = bounds(e)
    before, after = max(0, -lo), max(0, hi - n + 1)
    if before + after > 2 * (n + rsize(r)):
      return None
    if before or after:
      x = Tensor._new(
        graph.pad(x._node, tuple((before, after) if a == axis else (0, 0) for a in range(x.ndim)))
      )
    cut = [slice(None)] * x.ndim
    cut[axis] = slice(lo + before, hi + before + 1, abs(c))
    x = x[tuple(cut)]
    x = x.flip(axis) if c < 0 else x
    places.append(axes.ranges.index(r))
  order = sorted((a for a, p in enumerate(places) if p >= 0), key=lambda a: -places[a])
  ones = [a for a, p in enumerate(places) if p < 0]
  x = x.permute(*ones, *order) if x.ndim else x
  most = max(places, default=-1)
  sizes = {places[a]: x.shape[len(ones) + k] for k, a in enumerate(order)}
  return x.reshape(tuple(sizes.get(p, 1) for p in range(most, -1, -1)))


def gathered(array: Tensor, index: Sequence[Any], proved: Sequence[bool], axes: Axes, path: Path) -> Tensor:
  """The read by one gather. Where an index is outside it is an IndexError when it is computed; off the path, the first
  element."""
  size = prod(array.shape)
  dtype = dtypes.int32 if size < 1 << 31 else dtypes.int64
  if array.ndim == 1 and isinstance(index[0], Tensor):  # the guard of the gather sees the index itself
    dtype = (
      dtypes.int64 if index[0].dtype.itemsize > 2 and index[0].dtype is not dtypes.int32 else dtypes.int32
    )
    return taken(array, index[0].cast(dtype), path)
  flat: Any = 0
  unsure: list[tuple[int, Tensor, Tensor]] = []  # axis, index, whether it is inside
  for axis, (e, n, sure) in enumerate(zip(index, array.shape, proved)):
    one = axes.tensor(e, dtype) if isinstance(e, UOp) else e
    if not sure:
      one = (
        one.cast(dtypes.int64) if isinstance(one, Tensor) else Tensor._new(graph.full((), one, dtypes.int64))
      )
      unsure.append((axis, one, (one >= 0) & (one < n)))
    flat = flat * n + one
  flat = flat if isinstance(flat, Tensor) else Tensor._new(graph.full((), flat, dtype))
  for axis, one, inside in reversed(unsure):
    flat = inside.where(flat, Tensor._new(outside(one._node, axis)))
  return taken(array, flat.cast(dtype), path)


def taken(array: Tensor, flat: Tensor, path: Path) -> Tensor:
  """The elements of all axes as one: off the path, the first."""
  if path.mask is not None:
    flat = path.mask.where(flat, 0)
  at = graph.reshape(flat._node, (prod(flat.shape),))
  one = graph.reshape(array._node, (prod(array.shape),))
  return Tensor._new(graph.reshape(graph.gather(one, at, 0), flat.shape))
