"""Reductions too long for one kernel are cut in two before scheduling: partial results, then their reduction.

A sum of everything would run on one core; a matmul whose inner axis is a vocabulary would pack panels larger than the
cache. The number of parts depends on sizes alone, so a result does not change with the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from mini.ir.graph import alu, cat, numel, permute, reduce, reshape, shape, shrink, stage
from mini.ir.uop import UOp, rebuild, toposort
from mini.schedule.cost import is_contraction, repeats
from mini.schedule.fused_chains import factors, find_chains

LONG = 1 << 15  # elements for each of what runs in parallel, from which a plain reduction is cut
PARTS = 64  # the most that it is cut into, ...
PART = 1 << 14  # ... or as many of this length, up to ...
MOST_PARTS = 1024
COLUMNS = 256  # results that stand side by side are added up together, so many at once ...
NARROW = 64  # ... and where there are fewer than this, several rows are seen as one
MATRIX = 1 << 19  # elements: a larger matrix that a vector is multiplied by is read in parts of its rows ...
ROWS = 1 << 17  # ... of so many elements, ...
ROW_PARTS = 64, 32, 16, 8  # ... as many of these as fit
# Half as many are each read from so many places at once, where the part before it ended, ...
PLACES = 4, 2, 1
LONG_ROW = 1 << 12  # ... if the sums of a row can wait in a first cache, ...
WHOLE_LINES = 32  # ... and so many elements, which rows are multiples of, are a line of 64 bytes or several
GROUPS = 1024  # of threads, that a GPU should have at least
CHUNKS = 4096
CHUNK = 3072  # the longest inner axis of a contraction, and what a longer one is cut to


def split_reductions(roots: Sequence[UOp], gpu: bool = False) -> list[UOp]:
  """gpu: also sums with several results are cut, until there is something to do for each of very many threads."""
  memo: dict[UOp, UOp] = {}
  order = toposort(*roots)
  wide = (
    frozenset() if gpu else find_chains(order, set(roots)).wide
  )  # whose rows are on the stack: they need no panels
  for u in order:
    new = rebuild(u, tuple(memo[s] for s in u.src))
    if new.op == "reduce" and not (is_contraction(u) and not wide.isdisjoint(factors(u))):
      new = _split_contraction(new) if is_contraction(new) else _split_plain(new, gpu)
    memo[u] = new
  return [memo[u] for u in roots]


def _split_plain(u: UOp, gpu: bool) -> UOp:
  """Every axis that is cut becomes (parts, q, side by side), of which the first kernel adds up q and the second the
  others. What does not fill a part, less than there are parts, is left to the second."""
  x, (kind, axes) = u.src[0], u.arg
  s = shape(x)
  length, results = prod(s[a] for a in axes), prod(shape(u))
  last = max((a for a, n in enumerate(s) if n > 1), default=0)
  if not gpu and _is_vector_by_matrix(u):
    return _in_rows(u)
  if gpu:  # a group of threads adds up a row, one thread a column
    wanted = min((GROUPS if last in axes else GROUPS * 64) // max(results, 1), length // 256)
  else:
    tasks = results if last in axes else -(-results // COLUMNS)
    wanted = min(max(PARTS, length // PART), MOST_PARTS) // tasks if length >= LONG * tasks > 0 else 1
  beside = {} if gpu or last in axes else _side_by_side(s, axes)
  parts: dict[int, int] = {}
  for a in axes:
    n = s[a] // beside.get(a, 1)
    most = min(wanted, n)
    if most > 1:
      parts[a] = next((p for p in range(most, most // 2, -1) if n % p == 0), most)
      wanted //= most
  if prod(parts.values()) * prod(beside.values()) < 4:
    return u
  whole = [(0, n) for n in s]
  cut: list[int] = []
  inner, outer, tails = [], [], []
  for a, n in enumerate(s):
    p, i = parts.get(a, 1), beside.get(a, 1)
    if p * i > 1:
      q = n // (p * i)
      if q * p * i < n:
        tails.append((*whole[:a], (q * p * i, n), *whole[a + 1 :]))
        whole[a] = 0, q * p * i
      outer += [len(cut), len(cut) + 2]
      inner.append(len(cut) + 1)
      cut += [p, q, i]
    else:
      inner += [len(cut)] if a in axes else []
      cut.append(n)
  partial = stage(reduce(reshape(shrink(x, tuple(whole)), tuple(cut)), kind, tuple(inner)))  # keeps the parts
  total = reshape(reduce(partial, kind, tuple(outer)), shape(u))
  for tail in tails:
    total = alu(kind, total, reduce(shrink(x, tail), kind, axes))
  return total


def _is_vector_by_matrix(u: UOp) -> bool:
  """Does it add up the rows of a large matrix in memory, each by a number of its own?"""
  x, (kind, axes) = u.src[0], u.arg
  s = shape(x)
  long = [a for a in axes if s[a] > 1]
  if kind != "add" or len(long) != 1 or s[long[0]] % min(ROW_PARTS) or numel(x) < MATRIX:
    return False
  turned = prod(s[: long[0]]) > 1  # its columns come before its rows
  x = _below(x, "reshape", "cast")
  return (
    x.op == "mul"
    and numel(x) // s[long[0]] >= COLUMNS
    and any(repeats(a) and _lies_in_rows(b, turned) for a, b in (x.src, x.src[::-1]))
  )


def _lies_in_rows(u: UOp, turned: bool) -> bool:
  """Is it a matrix in memory, row by row? turned: its transpose."""
  u = _below(u, "reshape", "cast")
  if turned and (u.op != "permute" or u.arg != (1, 0)):
    return False
  return _below(u.src[0] if turned else u, "reshape", "cast", "shrink", "detach", "tag").op == "buffer"


def _below(u: UOp, *ops: str) -> UOp:
  while u.op in ops:
    u = u.src[0]
  return u


def _in_rows(u: UOp) -> UOp:
  """Parts of the rows, and then what they gave: a core reads whole rows, one after another, faster than pieces of
  them."""
  x, (kind, axes) = u.src[0], u.arg
  s = shape(x)
  axis = max(axes, key=lambda a: s[a])
  n, row = s[axis], numel(x) // s[axis]
  apart = row <= LONG_ROW and row % WHOLE_LINES == 0
  least = 2 * ROWS if apart else ROWS
  parts = next((p for p in ROW_PARTS if n % p == 0 and numel(x) >= p * least), min(ROW_PARTS))
  places = next(p for p in PLACES if n % (p * parts) == 0) if apart else 1
  cut = reshape(x, (*s[:axis], places, parts, n // (places * parts), *s[axis + 1 :]))
  front = (axis + 1, *(a for a in range(len(s) + 2) if a != axis + 1))
  inner = (axis + 1, axis + 2, *(a + 1 + 2 * (a > axis) for a in axes if a != axis))
  return reshape(reduce(stage(reduce(permute(cut, front), kind, inner)), kind, (0,)), shape(u))


def _side_by_side(s: tuple[int, ...], axes: tuple[int, ...]) -> dict[int, int]:
  """{axis: how many of its rows are one row of a width that is good for vectors}:
  where results next to each other are few."""
  axis = max(axes)
  narrow = prod(s[axis + 1 :])
  rows = NARROW // gcd(NARROW, narrow)
  return {axis: rows} if narrow < NARROW and s[axis] >= 64 * rows else {}


def _split_contraction(u: UOp) -> UOp:
  """The parts come first, as a batch of products of which each keeps its rows and columns;
  what is left over is one more."""
  x, (kind, axes) = u.src[0], u.arg
  if len(axes) > 1:
    return _split_axes(u)
  s = shape(x)
  axis = max(axes, key=lambda a: s[a])
  n = s[axis]
  if n <= CHUNK:
    return u
  least = -(-n // CHUNK)
  parts = next((p for p in range(least, 2 * least) if n % p == 0), 0)
  length = n // parts if parts else CHUNK
  main = n // length * length
  within = tuple((0, m) for m in s)
  cut = reshape(
    shrink(x, (*within[:axis], (0, main), *within[axis + 1 :])),
    (*s[:axis], main // length, length, *s[axis + 1 :]),
  )
  front = (axis, *(a for a in range(len(s) + 1) if a != axis))
  partial = reduce(permute(cut, front), kind, (axis + 1,))
  if main < n:
    rest = reduce(shrink(x, (*within[:axis], (main, n), *within[axis + 1 :])), kind, axes)
    partial = cat((partial, reshape(rest, (1, *shape(rest)))), 0)
  return reshape(reduce(stage(partial), kind, (0,)), shape(u))


def _split_axes(u: UOp) -> UOp:
  """A contraction over several axes, as the gradient of a convolution's weight is one over a batch of images: in parts
  of the first axes."""
  x, (kind, axes) = u.src[0], u.arg
  s, rest = shape(x), prod(shape(x)[a] for a in axes)
  if rest <= CHUNKS:
    return u
  cut: list[int] = []  # sizes with each axis as two: which part, and what is in it
  parts, inner = [], []
  for a, n in enumerate(s):
    count = 1
    if a in axes and rest > CHUNKS:
      rest //= n
      count = next(p for p in range(1, n + 1) if n % p == 0 and (n // p * rest <= CHUNKS or p == n))
    cut += [count, n // count] if count > 1 else [n]
    if count > 1:
      parts.append(len(cut) - 2)
    if a in axes:
      inner.append(len(cut) - 1)
  partial = reduce(reshape(x, tuple(cut)), kind, tuple(inner))
  return reshape(reduce(stage(partial), kind, tuple(parts)), shape(u))
