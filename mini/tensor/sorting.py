"""Sorting: the order of elements along an axis, and what follows from it.

`order` is a radix sort, stable, on the lazy graph: a key of b bits takes ceil(b / 3) passes, and a pass is linear in
the number of elements - it counts the digits in blocks (a scan), adds up the counts of the blocks, and puts each
element where it goes (a scatter). All passes are the same few kernels, for each carries what is left of the key.
Of few elements, as `topk` wants, `best` finds one after another, `leading` sorts groups by their first ones and what is
left of them; one at a rank, as a median is, `at_rank` finds bit by bit.
What depends on values in its size (`unique`, `bincount`) is computed at once, as `nonzero` is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.tensor.algebra import negated
from mini.tensor.data import Number, Operand
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.promotion import result_type, wide
from mini.tensor.results import ValuesAndIndices
from mini.tensor.scattering import Scattering
from mini.tensor.views import span
from mini.types import ArgumentError, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

WORD = dtypes.uint64
DIGIT = 3  # bits of the key that a pass sorts by
BLOCK = 128  # elements whose digits are counted together: a count has 8 bits, and the 8 counts one word
CHUNK = 32  # bits of the key that are carried with the position: the other bits of the word are left to that
LONGEST = (1 << 31) - 1
FEW = 16  # so many are found one after another in less time than they are sorted
INTERPOLATIONS: dict[str, Any] = {
  "linear": lambda rank: rank,
  "lower": lambda rank: rank.floor(),
  "higher": lambda rank: rank.ceil(),
  "nearest": lambda rank: rank.round(),
  "midpoint": lambda rank: (rank.floor() + rank.ceil()) * 0.5,
}


# ---------------------------------------------------------------- words


def _word(op: str, u: UOp, n: int | UOp) -> UOp:
  return graph.alu(op, u, const(n, u.dtype) if isinstance(n, int) else n)


def _power(digit: UOp) -> UOp:
  """256 ** digit, without a branch: digits are random."""
  bits = [_word("and", _word("div", digit, 2**b), 1) for b in range(DIGIT)]
  factors = [_word("add", _word("mul", bit, 256**2**b - 1), 1) for b, bit in enumerate(bits)]
  return _word("mul", _word("mul", factors[0], factors[1]), factors[2])


def _counter(digit: UOp) -> UOp:
  """A word of 8 counters, that of 0 in its highest byte, in which that of this digit is 1."""
  return _power(_word("xor", digit, 2**DIGIT - 1))


def _counted(counters: UOp, digit: UOp) -> UOp:
  """What the counter of this digit holds: the highest byte, once it is moved there.   -> i32"""
  return graph.cast(_word("div", _word("mul", counters, _power(digit)), 1 << 56), dtypes.int32)


# ---------------------------------------------------------------- keys


def key(u: UOp, descending: bool = False) -> tuple[UOp, int]:
  """Elements as unsigned integers that compare as they do, and how many bits those have.   -> u64[shape]

  NaN is larger than all numbers, and all NaN are equal; so are 0.0 and -0.0. Descending: the order turned round.
  """
  bits = 1 if u.dtype is dtypes.bool else 8 * u.dtype.itemsize
  raw = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[u.dtype.itemsize]
  top, ones = 1 << (bits - 1), (1 << bits) - 1
  if u.dtype is dtypes.bool:
    k = graph.cast(u, raw)
  else:
    k = graph.bitcast(_word("add", u, const(0, u.dtype)) if u.dtype.kind == "f" else u, raw)
    if u.dtype.kind == "i":
      k = _word("xor", k, top)
    elif u.dtype.kind == "f":
      negative = _word("lt", const(top - 1, raw), k)
      k = _word("xor", k, graph.alu("where", negative, const(ones, raw), const(top, raw)))
      k = graph.alu("where", graph.alu("ne", u, u), const(ones, raw), k)
  k = graph.cast(k, WORD)
  return (_word("xor", k, ones) if descending else k), bits


# ---------------------------------------------------------------- the order


def order(k: UOp, bits: int) -> UOp:
  """Where the elements of each row stand that are sorted by their keys of so many bits; equal ones keep their order.

  k: u64[r, n]   ->   i32[r, n]
  """
  rows, n = graph.shape(k)
  width = min(n, BLOCK)
  blocks = -(-n // width)
  size = blocks * width
  k = _filled(k, size, (1 << bits) - 1)
  at = _spread(graph.reshape(graph.iota(size, WORD), (1, size)), 0, rows)
  for low in range(0, bits, CHUNK):
    part = k
    if bits > CHUNK:
      part = _word("and", _word("div", k, 1 << low), (1 << CHUNK) - 1)
      part = graph.gather(part, graph.cast(at, dtypes.int32), 1) if low else part
    passes = -(-min(CHUNK, bits) // DIGIT)
    at = _word("add", _word("mul", at, 1 << (DIGIT * passes)), part)
    for _ in range(passes):
      at = _pass(at, blocks, width)
  return graph.cast(graph.shrink(at, ((0, rows), (0, n))), dtypes.int32)


def best(k: UOp, count: int) -> UOp:
  """Where the elements with the largest keys, of 32 bits at most, stand in each row: the largest first, of equal ones
  the one that comes first. Each is the largest word (its key, and its place from the end) below the one before.

  k: u64[r, n]   ->   i32[r, count]
  """
  rows, n = graph.shape(k)
  last = (1 << 32) - 1
  places = _spread(graph.reshape(_word("xor", graph.iota(n, WORD), last), (1, n)), 0, rows)
  words = _word("add", _word("mul", k, 1 << 32), places)
  found = [graph.reduce(words, "max", (1,))]
  while len(found) < count:
    below = graph.alu("lt", words, _spread(found[-1], 1, n))
    left = graph.alu("where", below, words, graph.full((rows, n), 0, WORD))
    found.append(graph.reduce(left, "max", (1,)))
  return graph.cast(_word("xor", _word("and", graph.cat(tuple(found), 1), last), last), dtypes.int32)


def leading(k: UOp, bits: int, count: int) -> UOp:
  """The first of `order(k, bits)`. They are in the groups of neighbours whose least keys are the first `count` of all
  groups': before one in another group so many elements would stand.

  k: u64[r, n]   ->   i32[r, count]
  """
  rows, n = graph.shape(k)
  few, ones = count <= FEW and bits <= 32, (1 << bits) - 1
  if n < (32 if few else 8) * count or (few and count <= 2):
    some = best(_word("xor", k, ones), count) if few else order(k, bits)
    return graph.shrink(some, ((0, rows), (0, count)))
  length = (
    1 << (n // count).bit_length() // 2
  )  # of a group: their keys and those of the chosen ones are about as many
  groups = -(-n // length)
  k = graph.stage(_filled(k, groups * length, ones))
  least = graph.reduce(graph.reshape(_word("xor", k, ones), (rows, groups, length)), "max", (2,))
  least = _word("xor", graph.reshape(least, (rows, groups)), ones)
  chosen = leading(graph.stage(least), bits, count)
  # as they stand, so that of equal elements the first one stays the first
  chosen = graph.gather(chosen, leading(graph.cast(chosen, WORD), groups.bit_length(), count), 1)
  begin = _spread(graph.reshape(_word("mul", chosen, length), (rows, count, 1)), 2, length)
  within = _spread(_spread(graph.reshape(graph.iota(length), (1, 1, length)), 0, rows), 1, count)
  places = graph.stage(
    graph.reshape(graph.alu("add", begin, graph.cast(within, dtypes.int32)), (rows, count * length))
  )
  return graph.gather(places, leading(graph.stage(graph.gather(k, places, 1)), bits, count), 1)


def at_rank(k: UOp, bits: int, rank: UOp) -> UOp:
  """What stands at a rank of `order(k, bits)`. Its key is the largest that at most so many are below.

  k: u64[r, n]   rank: i32[r, 1]   ->   i32[r, 1]
  """
  rows, n = graph.shape(k)
  k = graph.stage(graph.cast(k, dtypes.uint32 if bits <= 32 else WORD))
  counted = lambda condition: graph.reduce(graph.cast(condition, dtypes.int32), "add", (1,))
  below = lambda key: counted(graph.alu("lt", k, _spread(key, 1, n)))
  found = graph.full((rows, 1), 0, k.dtype)
  for b in reversed(range(bits)):
    probe = _word("add", found, 1 << b)
    found = graph.alu("where", graph.alu("lt", rank, below(probe)), found, probe)
  found = graph.stage(found)
  same = _word("xor", graph.alu("ne", k, _spread(found, 1, n)), True)
  number = graph.scan(graph.cast(same, dtypes.int32), "add", 1)  # which of the equal ones each is, from 1 on
  wanted = graph.alu("add", rank, negated(below(found)))
  hit = _word("and", same, graph.alu("lt", _spread(wanted, 1, n), number))
  place = _spread(graph.reshape(graph.cast(graph.iota(n), dtypes.int32), (1, n)), 0, rows)
  last = graph.full((rows, n), n, dtypes.int32)
  first = graph.reduce(negated(graph.alu("where", hit, place, last)), "max", (1,))
  return negated(first)


def _filled(k: UOp, size: int, value: int) -> UOp:
  """k as long as whole blocks, with the largest key behind it, so that what is put there stays there."""
  rows, n = graph.shape(k)
  if n == size:
    return k
  widths = ((0, 0), (0, size - n))
  here = graph.pad(graph.full((rows, n), True, dtypes.bool), widths)
  return graph.alu("where", here, graph.pad(k, widths), const(value, WORD))


def _pass(carried: UOp, blocks: int, width: int) -> UOp:
  """Words in the order of their lowest digit, and without it.   u64[r, blocks * width] -> the same"""
  rows, size = graph.shape(carried)
  digit = _word("and", carried, 2**DIGIT - 1)

  # in each block the digits up to each element, and all of them
  running = graph.scan(graph.reshape(_counter(digit), (rows, blocks, width)), "add", 2)
  held = graph.shrink(running, ((0, rows), (0, blocks), (width - 1, width)))

  # where the elements of each digit and block end: behind those of smaller digits and of blocks before
  digits = _spread(_spread(graph.reshape(graph.iota(2**DIGIT, WORD), (1, 2**DIGIT, 1)), 0, rows), 2, blocks)
  counts = _counted(_spread(graph.reshape(held, (rows, 1, blocks)), 1, 2**DIGIT), digits)
  ends = graph.scan(graph.reshape(counts, (rows, 2**DIGIT * blocks)), "add", 1)

  block = _spread(_spread(graph.reshape(graph.iota(blocks), (1, blocks, 1)), 0, rows), 2, width)
  place = _word(
    "add", _word("mul", graph.cast(digit, dtypes.int32), blocks), graph.reshape(block, (rows, size))
  )
  behind = graph.alu("add", _spread(held, 2, width), negated(running))
  behind = _word("add", _counted(graph.reshape(behind, (rows, size)), digit), 1)
  goal = graph.stage(graph.alu("add", graph.gather(ends, place, 1), negated(behind)))
  return graph.scatter(graph.full((rows, size), 0, WORD), goal, _word("div", carried, 2**DIGIT), "set", 1)


def _last(u: UOp, axis: int) -> UOp:
  """With this axis behind the others."""
  return graph.permute(u, (*(b for b in range(len(graph.shape(u))) if b != axis), axis))


def _spread(u: UOp, axis: int, n: int) -> UOp:
  """u repeated n times along an axis of size 1."""
  return graph.expand(u, tuple(n if a == axis else m for a, m in enumerate(graph.shape(u))))


class Sorting(Scattering):
  """The order of elements, what stands at places of it, and how often values occur."""

  # ---------------------------------------------------------------- sorting

  def _order(self, a: int, descending: bool = False, first: int | None = None) -> UOp:
    """Where the elements stand that are sorted along axis a, or the first of them, as int32."""
    n = self.shape[a] if self.ndim else 1
    count = n if first is None else first
    if n <= 1 or not self.numel() or not count:
      return graph.full(tuple(count if b == a else m for b, m in enumerate(self.shape)), 0, dtypes.int32)
    k, bits = self._keys(a, descending)
    return self._from_rows(a, order(k, bits) if first is None else leading(k, bits, count))

  def _keys(self, a: int, descending: bool = False) -> tuple[UOp, int]:
    """Those of the elements along axis a, as rows, and their bits.   -> u64[r, n]"""
    n = self.shape[a]
    if n > LONGEST:
      fail(ShapeError, f"sort: an axis of {n:,} elements; those of up to {LONGEST:,} are sorted", x=self)
    k, bits = key(_last(self._node, a), descending)
    return graph.reshape(k, (self.numel() // n, n)), bits

  def _from_rows(self, a: int, rows: UOp) -> UOp:
    """Rows of as many elements as they may have, which are laid along axis a.   [r, m] -> this shape, with m there"""
    axes = (*(b for b in range(self.ndim) if b != a), a)
    shape = (*(self.shape[b] for b in axes[:-1]), graph.shape(rows)[1])
    return graph.permute(graph.reshape(rows, shape), tuple(axes.index(b) for b in range(self.ndim)))

  def _placed(self, at: UOp, a: int) -> ValuesAndIndices:
    """The elements that stand at places along axis a, and the places, as int64."""
    values = graph.gather(self._node, at, a) if self.ndim else self._node
    return ValuesAndIndices(self._new(values), self._new(graph.cast(at, dtypes.int64)))

  def sort(
    self, axis: int = -1, descending: bool = False, stable: bool = False, *, dim: int | None = None
  ) -> ValuesAndIndices:
    """The elements along an axis in ascending order, and where they stood, as int64.

    NaN is larger than every number. Equal elements keep their order, stable or not.

    >>> Tensor([3, 1, 2]).sort()
    ValuesAndIndices(values=Tensor([1, 2, 3]), indices=Tensor([1, 2, 0]))
    """
    a = self._axis(axis if dim is None else dim, "sort")
    return self._placed(self._order(a, descending), a)

  def argsort(
    self, axis: int = -1, descending: bool = False, stable: bool = False, *, dim: int | None = None
  ) -> Tensor:
    """Where the elements stand that `sort` gives, as int64."""
    return self.sort(axis, descending, stable, dim=dim)[1]

  def msort(self) -> Tensor:
    """The elements sorted along the first axis."""
    return self.sort(0)[0]

  def topk(
    self, k: int, axis: int = -1, largest: bool = True, sorted: bool = True, *, dim: int | None = None
  ) -> ValuesAndIndices:
    """The k largest (or smallest) elements along an axis, the best first, and where they stood, as int64.

    >>> Tensor([3, 1, 2]).topk(2).values
    Tensor([3, 2])
    """
    k, a = operator.index(k), self._axis(axis if dim is None else dim, "topk")
    n = self.shape[a] if self.ndim else 1
    if not 0 <= k <= n:
      fail(ShapeError, f"topk: {k} of the {n} elements along axis {a}", x=self)
    return self._placed(self._order(a, largest, k if self.ndim else None), a)

  # ---------------------------------------------------------------- the element at a rank of the order

  def _at_rank(self, rank: Any, a: int, keepdim: bool) -> ValuesAndIndices:
    """The element that stands at a rank (an int, or a tensor of size 1 along axis a) of the order, and its place."""
    if not self.ndim or (isinstance(rank, int) and rank < FEW):
      at = self._order(a, first=rank + 1 if isinstance(rank, int) and self.ndim else None)
      at = span(at, a, rank, rank + 1) if isinstance(rank, int) and self.ndim else at
    else:
      k, bits = self._keys(a)
      rows = (graph.shape(k)[0], 1)
      numbered = isinstance(rank, int)
      wanted = graph.full(rows, rank, dtypes.int32) if numbered else graph.reshape(_last(rank._node, a), rows)
      at = self._from_rows(a, at_rank(k, bits, graph.cast(wanted, dtypes.int32)))
    found = self._placed(at, a)
    return found if keepdim or not self.ndim else ValuesAndIndices(*(t.squeeze(a) for t in found))

  def kthvalue(
    self, k: int, axis: int = -1, keepdim: bool = False, *, dim: int | None = None
  ) -> ValuesAndIndices:
    """The k-th smallest element along an axis, counted from 1, and where it stands, as int64.

    >>> Tensor([3, 1, 2]).kthvalue(2).values
    Tensor(2)
    """
    a = self._axis(axis if dim is None else dim, "kthvalue")
    n = self.shape[a] if self.ndim else 1
    if not 1 <= k <= n:
      fail(ShapeError, f"kthvalue: number {k} of the {n} elements along axis {a}", x=self)
    return self._at_rank(k - 1, a, keepdim)

  def median(self, axis: int | None = None, keepdim: bool = False, *, dim: int | None = None) -> Any:
    """The middle element, of an even number the lower one; NaN if there is one, or over nothing. Along an axis
    `(values, indices)`: where they stand, too, as int64.

    >>> Tensor([3, 1, 2, 9]).median()
    Tensor(2)
    """
    return self._middle("median", axis if dim is None else dim, keepdim)

  def nanmedian(self, axis: int | None = None, keepdim: bool = False, *, dim: int | None = None) -> Any:
    """The middle one of the elements that are not NaN, of an even number the lower one; NaN if there is none. Along an
    axis `(values, indices)`."""
    return self._middle("nanmedian", axis if dim is None else dim, keepdim)

  def _middle(self, what: str, axis: int | None, keepdim: bool) -> Any:
    if axis is None:
      flat = self.reshape(-1)
      out = flat._middle(what, 0, False)[0] if self.numel() or self.dtype.kind != "f" else flat.mean()
      return out.reshape((1,) * self.ndim) if keepdim else out
    a = self._axis(axis, what)
    self._some(what, a)
    n = self.shape[a] if self.ndim else 1
    rank: Any = (n - 1) // 2
    if self.dtype.kind == "f" and self.ndim:
      numbers = (~self.isnan()).sum(a, True)
      rank = (numbers - 1).maximum(0) // 2
      rank = rank if what == "nanmedian" else (numbers == n).where(rank, numbers)  # the first NaN
    return self._at_rank(rank, a, keepdim)

  def mode(self, axis: int = -1, keepdim: bool = False, *, dim: int | None = None) -> ValuesAndIndices:
    """The most frequent element along an axis, of several the smallest, and where the last of it stands, as int64.

    >>> Tensor([1, 2, 2, 3, 3]).mode().values
    Tensor(2)
    """
    a = self._axis(axis if dim is None else dim, "mode")
    self._some("mode", a)
    if not self.ndim:
      return self._at_rank(0, a, keepdim)
    n = self.shape[a]
    ordered = self.detach().sort(a)[0]
    here = Scattering.arange(n, device=self.device).reshape(n, *(1,) * (self.ndim - 1 - a)).expand(self.shape)
    first = (here == 0) | (ordered != ordered.roll(1, a))
    ahead = here - first.where(here, 0).cummax(a)[0]  # the equal ones before each
    return self._at_rank(ahead.argmax(a, True), a, keepdim)

  def quantile(
    self,
    q: Operand | Sequence[float],
    axis: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
    *,
    dim: int | None = None,
  ) -> Tensor:
    """The element at rank q (n - 1) of the order along an axis, between two of them interpolated; NaN if there is one.

    q: in [0, 1]; a vector of them gives a first axis. interpolation: linear, lower, higher, midpoint or nearest.

    >>> Tensor([1.0, 2.0, 4.0]).quantile(0.75)
    Tensor(3.)
    """
    return self._quantile("quantile", q, axis if dim is None else dim, keepdim, interpolation)

  def nanquantile(
    self,
    q: Operand | Sequence[float],
    axis: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
    *,
    dim: int | None = None,
  ) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN if there is none."""
    return self._quantile("nanquantile", q, axis if dim is None else dim, keepdim, interpolation)

  def _quantile(self, what: str, q: Any, axis: int | None, keepdim: bool, interpolation: str) -> Tensor:
    if interpolation not in INTERPOLATIONS:
      fail(
        ArgumentError, f"{what}: interpolation is {', '.join(INTERPOLATIONS)}, not {interpolation!r}", x=self
      )
    if self.dtype.kind != "f":
      fail(DTypeError, f"{what}: of {self.dtype.name}; x.float().{what}(q) would fit", x=self)
    if not isinstance(q, Handle):
      if not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        fail(ArgumentError, f"{what}: q lies in [0, 1], and is {q}", x=self)
      q = Handle._final(q, dtype=wide(self.dtype), device=self.device)
    if q.ndim > 1:
      fail(ShapeError, f"{what}: q is a number or a vector of numbers", x=self, q=q)
    if axis is None or not self.ndim:
      out = self.reshape(-1)._quantile(what, q, 0, False, interpolation)
      return out.reshape((*q.shape, *(1,) * self.ndim)) if keepdim else out
    a = self._axis(axis, what)
    self._some(what, a)
    n = self.shape[a]
    ordered = self.sort(a)[0].movedim(a, 0).to(wide(self.dtype))  # [n, ...]
    numbers = (~self.isnan()).sum(a)  # [...]
    rank = q.to(ordered.dtype).reshape(-1, *(1,) * (self.ndim - 1)) * (numbers - 1).maximum(0)  # [m, ...]
    rank = rank if what == "nanquantile" else (numbers == n).where(rank, n - 1)
    rank = INTERPOLATIONS[interpolation](rank)
    below, above = (ordered.gather(0, r.to(dtypes.int64)) for r in (rank.floor(), rank.ceil()))
    part = rank - rank.floor()
    out = (part == 0).where(below, below.lerp(above, part)).to(self.dtype)  # without: inf - inf
    out = out.unsqueeze(a + 1) if keepdim else out
    return out if q.ndim else out.squeeze(0)

  # ---------------------------------------------------------------- places in what is sorted

  def searchsorted(
    self,
    values: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
  ) -> Tensor:
    """Where values would stand in this, which is sorted along its last axis: before equal elements, or behind them.

    self: a vector, or with values' axes but for the last. right, or side = "right": behind. sorter: what sorts self.

    >>> Tensor([1, 3, 3, 5]).searchsorted(Tensor([3, 4]))
    Tensor([1, 3])
    """
    if side not in (None, "left", "right"):
      fail(ArgumentError, f'searchsorted: side is "left" or "right", not {side!r}', x=self)
    x = self if sorter is None else self.gather(-1, sorter)
    v = values if isinstance(values, Handle) else Handle._final(values, device=self.device)
    if not x.ndim or x.ndim > 1 and x.shape[:-1] != v.shape[:-1]:
      fail(
        ShapeError,
        "searchsorted: what is sorted is a vector, or has the axes of the values but for the last",
        x=self,
        values=v,
      )
    n = x.shape[-1]
    if 0 in x.shape or 0 in v.shape:  # before or behind nothing
      return Handle._new(graph.full(v.shape, 0, dtypes.int32 if out_int32 else dtypes.int64))
    kind = result_type(x, values if isinstance(values, Number) else v)
    x, v = (Handle._new(key(graph.cast(t._node, kind))[0]) for t in (x, v))
    shape, v = v.shape, v.reshape(*x.shape[:-1], -1)
    at = v._filled(0, dtypes.int32 if n <= LONGEST else dtypes.int64)  # as many are known to be before it
    for b in reversed(range(n.bit_length())):
      probe = at + ((1 << b) - 1)
      met = x.gather(-1, probe.minimum(n - 1))
      before = met <= v if right or side == "right" else met < v
      at = ((probe < n) & before).where(at + (1 << b), at)
    return at.reshape(shape).to(dtypes.int32 if out_int32 else dtypes.int64)

  def bucketize(self, boundaries: Tensor, out_int32: bool = False, right: bool = False) -> Tensor:
    """In which interval between sorted boundaries each element lies: `boundaries.searchsorted(self)`.

    >>> Tensor([0, 3, 9]).bucketize(Tensor([1, 3, 5]))
    Tensor([0, 1, 3])
    """
    if boundaries.ndim != 1:
      fail(ShapeError, "bucketize: the boundaries are no vector", x=self, boundaries=boundaries)
    return boundaries.searchsorted(self, out_int32, right)

  # ---------------------------------------------------------------- how often values occur

  def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from min to max;
    of the elements themselves where they are equal.

    >>> Tensor([1.0, 2.0, 1.0]).histc(4, 0, 3)
    Tensor([0., 2., 1., 0.])
    """
    if self.dtype.kind != "f":
      fail(DTypeError, f"histc: of {self.dtype.name}; x.float().histc() would fit", x=self)
    if bins < 1 or not -math.inf < min <= max < math.inf:
      fail(ArgumentError, f"histc: {bins} bins from {min} to {max}", x=self)
    x = self.detach().reshape(-1)
    low, high = (Handle._final(float(n), dtype=x.dtype, device=x.device) for n in (min, max))
    if min == max and x.numel():
      low, high = x.aminmax()
    apart = low != high
    low, high = apart.where(low, low - 1), apart.where(high, high + 1)
    inside = (low <= x) & (x <= high)
    at = ((x - low) * bins / (high - low)).floor()
    at = inside.where(at, 0).minimum(bins - 1).to(dtypes.int64)
    return (
      Handle._new(graph.full((bins,), 0, dtypes.int64))
      .scatter_add(0, at, inside.to(dtypes.int64))
      .to(x.dtype)
    )

  def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often 0, 1, 2, ... occur in a vector of integers, or the sums of their weights. The size is computed at once.

    >>> Tensor([1, 3, 1]).bincount()
    Tensor([0, 2, 0, 1])
    """
    if self.ndim != 1 or self.dtype.kind not in "iu" or minlength < 0:
      fail(DTypeError, "bincount: of a vector of integers, with minlength >= 0", x=self)
    low, high = (int(t.item()) for t in self.aminmax()) if self.numel() else (0, -1)
    if low < 0:
      fail(ArgumentError, f"bincount: the numbers are counted from 0 on, and there is {low}", x=self)
    if weights is not None and weights.shape != self.shape:
      fail(ShapeError, "bincount: there is not a weight for each element", x=self, weights=weights)
    kind = dtypes.int64 if weights is None else dtypes.float64
    kind = kind if weights is None or weights.dtype is not dtypes.float32 else dtypes.float32
    counts = Handle._new(graph.full((high + 1 if high >= minlength else minlength,), 0, kind))
    return counts.scatter_add(0, Handle._new(self._node), 1 if weights is None else weights.to(kind))

  def unique(
    self,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
  ) -> Any:
    """The values that occur, in ascending order; along dim, the slices that do. Computed at once.

    return_inverse: where among them each element is, too. return_counts: how often each occurs, too.

    >>> Tensor([3, 1, 3]).unique(return_counts=True)
    (Tensor([1, 3]), Tensor([1, 2]))
    """
    a = None if dim is None else self._axis(dim, "unique")
    values = self.numpy()
    if a is not None and not values.size and any(n == 0 for b, n in enumerate(values.shape) if b != a):
      fail(ShapeError, f"unique: slices along axis {a} have no elements", x=self)
    found, inverse, counts = np.unique(values, False, True, True, a, equal_nan=False)  # type: ignore[call-overload]
    inverse = inverse.reshape(values.shape if a is None else -1)
    wanted = [
      (found, self.dtype, True),
      (inverse, dtypes.int64, return_inverse),
      (counts, dtypes.int64, return_counts),
    ]
    out = tuple(Handle._final(t, dtype=d, device=self.device) for t, d, asked in wanted if asked)
    return out if len(out) > 1 else out[0]
