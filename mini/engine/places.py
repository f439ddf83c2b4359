"""Parts of memory, `x[i]`, that a loop reads each time elsewhere. Few elements are read where they lie. Of a graph that
is made of such parts, the first few programs know where they are; where more are asked for that differ in nothing else,
one takes the places as arguments, as what `x[i] = v` makes does (tensor/views.py)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.engine.buffer import Buffer, leaf_of
from mini.engine.device import Device
from mini.ir.graph import alu, buffer, cast, expand, gather, iota, numel, reshape, shape
from mini.ir.sizes import Size, varies
from mini.ir.uop import UOp, alone, const
from mini.types import DType, dtypes, from_storage

if TYPE_CHECKING:
  from mini.engine.realize import Structure

FEW = 4096  # elements that NumPy copies in less time than a program is looked up in
MOST = 1 << 20  # elements of a part whose place is an argument
ONCE_EACH = 2  # programs of known places, before there is one for all
MOST_ASKED = 1024
NAMES = ("reshape", "detach", "tag")  # of the elements of their source, in the same order
_asked: dict[tuple, int] = {}  # how many programs of known places there were
# of a view: what NumPy makes of its source
VIEWS: dict[str, Callable[[np.ndarray, UOp], np.ndarray]] = {
  "reshape": lambda x, u: x.reshape(u.arg),
  "detach": lambda x, u: x,
  "tag": lambda x, u: x,
  "shrink": lambda x, u: x[tuple(slice(lo, hi) for lo, hi in u.arg)],
  "permute": lambda x, u: x.transpose(u.arg),
}


def few(u: UOp) -> UOp | None:
  """A leaf with the values of a few elements of memory that the host sees; None of anything else."""
  views: list[UOp] = []
  below = u
  while (leaf := leaf_of(below)) is None:
    if below.op not in VIEWS or varies(shape(below)):
      return None
    views.append(below)
    below = below.src[0]
  b = leaf.arg[0]
  if all(v.op != "shrink" for v in views) or numel(u) > FEW or type(b) is not Buffer or varies(shape(below)):
    return None
  if not Device[b.device].is_host:
    return None
  x = b.bytes().view(b.dtype.storage).reshape(shape(below))
  for v in reversed(views):
    if v.op == "reshape" and numel(v) > FEW and not x.flags.c_contiguous:
      return None  # NumPy would copy all of it
    x = VIEWS[v.op](x, v)
  return buffer(Buffer.of(from_storage(x.flatten(), u.dtype), u.dtype, b.device), shape(u), u.dtype)


def memory_of(u: UOp) -> UOp | None:
  """The leaf of which u is a part, of many; None if it is none."""
  s = shape(u.src[0]) if u.op == "shrink" else ()
  if leaf_of(u) is not None or varies((*s, *shape(u))) or not 0 < numel(u) <= min(prod(s) // 8, MOST):
    return None
  u = u.src[0]
  while leaf_of(u) is None and u.op in NAMES:
    u = u.src[0]
  return leaf_of(u)


def known_by(key: tuple, found: Structure) -> tuple:
  """The key of a program for a structure whose own key is new: that, or the key of what is told where parts are. These
  places are then numbers of the structure."""
  parts = {u: n for u, n in found.index.items() if u.op == "shrink" and memory_of(u) is not None}
  if not parts:
    return key
  alike: list[Any] = [*key]
  for u, n in parts.items():
    alike[n] = ("part", u.dtype, shape(u), alike[n][-1])
  general = tuple(alike)
  asked = _asked.pop(general, 0)
  _asked[general] = asked + 1
  while len(_asked) > MOST_ASKED:
    _asked.pop(next(iter(_asked)), None)
  if asked < ONCE_EACH:
    return key
  found.at = {u: len(found.numbers) + n for n, u in enumerate(parts)}
  found.numbers += [alone("const", counter(u), (), Size(first(u))) for u in parts]
  return general


def counter(part: UOp) -> DType:
  return dtypes.int32 if numel(part.src[0]) < 1 << 31 else dtypes.int64


def first(part: UOp) -> int:
  """Which element of what a part is taken from is its first."""
  s = shape(part.src[0])
  return sum(lo * prod(s[a + 1 :]) for a, (lo, _) in enumerate(part.arg))


def part_at(part: UOp, x: UOp, number: int) -> UOp:
  """A part of x, which is memory in some shape, that begins at the element that a number tells."""
  s, sizes, kind = shape(x), shape(part), counter(part)
  while x.op == "reshape":  # an index that is data would not pass through it
    x = x.src[0]
  last = max(a for a, n in enumerate(sizes) if n != s[a])  # what is taken along it lies side by side
  axes = [(n, prod(s[a + 1 :])) for a, n in enumerate(sizes[:last]) if n > 1]
  axes.append((prod(sizes[last:]), 1))
  room = tuple(n for n, _ in axes)
  at = buffer(f"c{number}", (), kind)
  for a, (n, step) in enumerate(axes):
    line = alu("mul", cast(iota(n), kind), const(step, kind))
    at = alu("add", expand(reshape(line, tuple(n if b == a else 1 for b in range(len(room)))), room), at)
  return reshape(gather(x, reshape(at, (numel(part),)), 0), sizes)
