"""Reductions too long for one kernel are cut in two before scheduling: partial results, then their reduction.

A sum of everything would run on one core; a matmul whose inner axis is a vocabulary would pack panels larger than the
cache. The number of parts depends on sizes alone, so a result does not change with the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mini.ir.graph import cat, permute, reduce, reshape, shape, shrink, stage
from mini.ir.uop import UOp, rebuild, toposort
from mini.schedule.cost import is_contraction

LONG = 1 << 15  # elements per result from which a plain reduction is cut
PARTS = 64  # the most that it is cut into, ...
PART = 1 << 14  # ... or as many of this length, up to ...
MOST_PARTS = 1024
GROUPS = 1024  # of threads, that a GPU should have at least
CHUNK = 3072  # the longest inner axis of a contraction, and what a longer one is cut to


def split_reductions(roots: Sequence[UOp], gpu: bool = False) -> list[UOp]:
  """gpu: also sums with several results are cut, until there is something to do for each of very many threads."""
  memo: dict[UOp, UOp] = {}
  for u in toposort(*roots):
    new = rebuild(u, tuple(memo[s] for s in u.src))
    if new.op == "reduce":
      new = _split_contraction(new) if is_contraction(new) else _split_plain(new, gpu)
    memo[u] = new
  return [memo[u] for u in roots]


def _split_plain(u: UOp, gpu: bool) -> UOp:
  x, (kind, axes) = u.src[0], u.arg
  s = shape(x)
  length, results = prod(s[a] for a in axes), prod(shape(u))
  axis = next((a for a in axes if s[a] >= 16), axes[0])
  if gpu:  # a group of threads adds up a row, one thread a column
    wanted = GROUPS if len(s) - 1 in axes else GROUPS * 64
    most = min(wanted // max(results, 1), length // 256, s[axis])
  else:
    most = min(max(PARTS, length // PART), MOST_PARTS, s[axis]) if length >= LONG and results <= 8 else 1
  parts = next((p for p in range(most, 1, -1) if s[axis] % p == 0), 1)
  if parts < 4:
    return u
  cut = reshape(x, (*s[:axis], parts, s[axis] // parts, *s[axis + 1 :]))
  inner = stage(reduce(cut, kind, tuple(a + (a >= axis) for a in axes)))  # keeps the parts
  return reshape(
    reduce(reshape(inner, (*shape(u)[:axis], parts, *shape(u)[axis + 1 :])), kind, (axis,)), shape(u)
  )


def _split_contraction(u: UOp) -> UOp:
  """The parts come first, as a batch of products of which each keeps its rows and columns; what is left over is one more."""
  x, (kind, axes) = u.src[0], u.arg
  s = shape(x)
  axis = max(axes, key=lambda a: s[a])
  n = s[axis]
  if n <= CHUNK or len(axes) != 1:
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
