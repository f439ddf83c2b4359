"""Parts of memory, `x[i]`, that a loop reads each time elsewhere. Few elements are read where they lie. Of a graph that
is made of such parts, the first few programs know where they are; where more are asked for that differ in nothing else,
one takes the places as arguments, as what `x[i] = v` makes does (tensor/views.py)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mini.config import config
from mini.engine.buffer import Buffer, leaf_of
from mini.engine.device import Device
from mini.ir.graph import alu, buffer, cast, expand, gather, iota, numel, reshape, shape
from mini.ir.ops import OPS
from mini.ir.sizes import Size, Variable, varies
from mini.ir.uop import UOp, alone, const
from mini.types import DType, dtypes, from_storage

if TYPE_CHECKING:
  from mini.engine.realize import Structure

FEW = 4096  # elements that NumPy copies in less time than a program is looked up in
MOST = 1 << 20  # elements of a part whose place is an argument
ONCE_EACH = 2  # programs of known places, before there is one for all
MOST_ASKED = 1024
EXACT = frozenset(("add", "mul", "div", "max", "lt", "ne", "and", "or", "xor", "where"))
MOST_OPERATIONS = 16  # with numbers; of more a program is looked up
NAMES = ("reshape", "detach", "tag")  # of the elements of their source, in the same order
_asked: dict[int, int] = {}  # how many programs of known places there were, by a hash: a key may be large
# of a view: what NumPy makes of its source
VIEWS: dict[str, Callable[[np.ndarray, UOp], np.ndarray]] = {
  "reshape": lambda x, u: x.reshape(u.arg),
  "detach": lambda x, u: x,
  "tag": lambda x, u: x,
  "shrink": lambda x, u: x[tuple(slice(lo, hi) for lo, hi in u.arg)],
  "permute": lambda x, u: x.transpose(u.arg),
  "expand": lambda x, u: np.broadcast_to(x, u.arg),
}


class Found:
  """What a few elements were found to be made of."""

  def __init__(self) -> None:
    self.devices: set[str] = set()
    self.operations = 0
    self.is_part = False  # of any memory?


def few(u: UOp, kept: bool = False) -> tuple[np.ndarray, UOp | None] | None:
  """The values of a few elements of memory that the host sees, or of what a few operations make of such, and of these
  a leaf: None of one element that need not be kept, which is read again as soon. None of anything else."""
  if varies(shape(u)) or numel(u) > FEW:
    return None
  found = Found()
  with np.errstate(all="ignore"):
    x = looked_up(u, found)
  if x is None or not found.is_part or len(found.devices) != 1:
    return None
  values = from_storage(x.flatten(), u.dtype).reshape(shape(u))
  if values.size == 1 and not found.operations and not kept:
    return values, None
  (device,) = found.devices
  return values, buffer(Buffer.of(values, u.dtype, device), shape(u), u.dtype)


def looked_up(u: UOp, found: Found) -> np.ndarray | None:
  """The values of few elements, as they are stored."""
  views: list[UOp] = []
  below = u
  while (leaf := leaf_of(below)) is None and below.op in VIEWS:
    views.append(below)
    below = below.src[0]
  if Variable.used and any(varies(shape(v)) for v in (*views, below)):
    return None
  x = computed(below, found) if leaf is None else stored(leaf, found)
  if x is None:
    return None
  for v in reversed(views):
    if v.op == "reshape" and numel(v) > FEW and not x.flags.c_contiguous:
      return None  # NumPy would copy all of it
    x = VIEWS[v.op](x, v)
    found.is_part = found.is_part or v.op == "shrink"
  return x


def stored(leaf: UOp, found: Found) -> np.ndarray | None:
  b = leaf.arg[0]
  if type(b) is not Buffer or not Device[b.device].is_host:
    return None
  found.devices.add(b.device)
  return b.bytes().view(b.dtype.storage).reshape(shape(leaf))


def computed(u: UOp, found: Found) -> np.ndarray | None:
  """What NumPy computes to the last bit as a program would: of numbers that are no halves, where nobody is to be told
  of programs, or has rules for them."""
  from mini.ir.rules import users_here  # with what `import mini` does without

  if not found.operations and (config.watched or users_here()):
    return None
  found.operations += 1
  if (
    numel(u) > FEW
    or found.operations > MOST_OPERATIONS
    or not (u.dtype.kind in "iub" or u.dtype.itemsize > 2)
    or any(s.dtype.np != s.dtype.storage for s in u.src)
  ):
    return None
  if u.op == "const":
    return np.asarray(u.arg, u.dtype.np) if type(u.arg) in (int, float, bool) else None
  if u.op not in EXACT:
    return None
  if u.op == "add" and u.dtype.kind == "f":
    products = [*map(product_of, u.src)]
    if any(products):
      return with_product(u, products, found)
  values: list[np.ndarray] = []
  for s in u.src:
    x = looked_up(s, found)
    if x is None:
      return None
    values.append(x)
  meaning = OPS[u.op].numpy
  assert meaning is not None
  return np.asarray(meaning(*values))


def with_product(u: UOp, products: list[Signed | None], found: Found) -> np.ndarray | None:
  """A number that is a product plus another. A compiler may fuse the two, which rounds once: None, where that would be
  another number."""
  signed, other = next(p for p in products if p), u.src[products.index(None)] if None in products else u
  if other is u or numel(u) != 1 or numel(signed.product) != 1:
    return None
  values = [looked_up(s, found) for s in (*signed.product.src, other)]
  if any(x is None for x in values):
    return None
  a, b, c = [np.asarray(x).reshape(shape(u)) for x in values]
  wide = np.float64 if u.dtype.itemsize == 4 else np.longdouble
  rounded = a * b
  twice = np.asarray(signed.sign * rounded + c)
  is_normal = np.finfo(rounded.dtype).tiny <= abs(rounded) < np.inf
  if is_normal and any(abs(np.frexp(x)[0]) == 0.5 for x in (a, b)):  # a power of two, so that it is exact
    return twice
  exact, added = signed.sign * np.multiply(a, b, dtype=wide), c.astype(wide)
  error = 4 * np.finfo(wide).eps * (abs(exact) + abs(added))
  # half of the distance to the next number, about
  half = 0.499999 * np.spacing(np.nextafter(abs(twice), twice.dtype.type(0)))
  return twice if abs(exact + added - twice) + error < half else None


class Signed(NamedTuple):
  sign: int
  product: UOp


def product_of(u: UOp) -> Signed | None:
  """The product that is not in memory of which this is a view, or the negative."""
  sign = 1
  while leaf_of(u) is None and (u.op in VIEWS or u.op == "mul"):
    if u.op in VIEWS:
      u = u.src[0]
      continue
    signs = [s.op == "const" and abs(s.arg) == 1 for s in u.src]
    if not any(signs):
      return Signed(sign, u)
    n = signs.index(True)
    sign, u = sign * int(u.src[n].arg), u.src[1 - n]
  return None


def part_of(u: UOp) -> tuple[UOp, int] | None:
  """(the leaf of which u is a part, of many, and at which element of it u begins); None if it is none. A part of a row
  is one, too."""
  if u.op != "shrink" or leaf_of(u) is not None or varies((*shape(u.src[0]), *shape(u))):
    return None
  start, below = first(u), u.src[0]
  while (leaf := leaf_of(below)) is None:
    if below.op == "shrink" and not varies(shape(below.src[0])) and lies_side_by_side(below):
      start += first(below)
    elif below.op not in NAMES:
      return None
    below = below.src[0]
  return (leaf, start) if 0 < numel(u) <= min(numel(below) // 8, MOST) else None


def memory_of(part: UOp) -> UOp:
  found = part_of(part)
  assert found is not None
  return found[0]


def first(part: UOp) -> int:
  """Which element of its source is its first."""
  s = shape(part.src[0])
  return sum(lo * prod(s[a + 1 :]) for a, (lo, _) in enumerate(part.arg))


def last_cut(part: UOp) -> int:
  """The last axis along which it has not all of its source."""
  return max((a for a, (n, m) in enumerate(zip(shape(part), shape(part.src[0]))) if n != m), default=0)


def lies_side_by_side(part: UOp) -> bool:
  return prod(shape(part)[: last_cut(part)]) == 1


def known_by(key: tuple, found: Structure) -> tuple:
  """The key of a program for a structure whose own key is new: that, or the key of what is told where parts are. These
  places are then numbers of the structure."""
  parts = {u: (n, *at) for u, n in found.index.items() if u.op == "shrink" and (at := part_of(u)) is not None}
  if not parts:
    return key
  alike: list[Any] = [*key]
  for u, (n, _, _) in parts.items():
    alike[n] = ("part", u.dtype, shape(u), alike[n][-1])
  general = tuple(alike)
  mark = hash(general)
  asked = _asked.pop(mark, 0)
  _asked[mark] = asked + 1
  while len(_asked) > MOST_ASKED:
    _asked.pop(next(iter(_asked)), None)
  if asked < ONCE_EACH:
    return key
  found.at = {u: len(found.numbers) + n for n, u in enumerate(parts)}
  found.numbers += [alone("const", counter(m), (), Size(start)) for _, m, start in parts.values()]
  return general


def counter(memory: UOp) -> DType:
  return dtypes.int32 if numel(memory) < 1 << 31 else dtypes.int64


def part_at(part: UOp, x: UOp, number: int) -> UOp:
  """A part of x, which is memory in some shape, that begins at the element that a number tells."""
  while x.op == "reshape":  # an index that is data would not pass through it
    x = x.src[0]
  sizes, s, kind, last = shape(part), shape(part.src[0]), counter(x), last_cut(part)
  axes = [(n, prod(s[a + 1 :])) for a, n in enumerate(sizes[:last]) if n > 1]
  axes.append((prod(sizes[last:]), 1))  # what is taken along the last lies side by side
  room = tuple(n for n, _ in axes)
  at = buffer(f"c{number}", (), kind)
  for a, (n, step) in enumerate(axes):
    line = alu("mul", cast(iota(n), kind), const(step, kind))
    at = alu("add", expand(reshape(line, tuple(n if b == a else 1 for b in range(len(room)))), room), at)
  return reshape(gather(x, reshape(at, (numel(part),)), 0), sizes)
