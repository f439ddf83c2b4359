"""What the op suite computes: rows that follow from the table of operations, each with cases for every type.

An elementwise operation needs nothing here: how many inputs it has and which types it takes, the table and the verifier
say. What views, data movements and leaves are called with is a function of GENERATORS; a row of the table that has none
is a row that fails and says so.

Layouts of inputs: contiguous (with more elements than a group has threads), strided (permuted, flipped, cut out of
something larger), broadcast (expanded), one element, none, and a constant for the last input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from mini.ir import composites  # noqa: F401  its rows join the table
from mini.ir import graph as g
from mini.ir.extern import HOST, Extern
from mini.ir.ops import OPS, REDUCERS, is_elementwise
from mini.ir.uop import UOp, const
from mini.opsuite.data import leaf
from mini.text.verifier import check_types
from mini.types import DType, dtypes

HERE, OTHER = (
  "this device",
  "another device",
)  # in the arguments of copies: filled in where it is known which they are


class Case(NamedTuple):
  """One thing to compute, of which the device and the interpreter must say the same."""

  row: str
  column: DType
  layout: str
  root: UOp  # over leaves of data.py
  accuracy: str = "exact"  # a row of compare.ACCURACY; exact: to the bit, but for the bits of NaNs
  raises: bool = False  # an IndexError is what is right


Cell = list[Case] | str  # a string: why there is nothing to compute


class Row(NamedTuple):
  """A line of the table."""

  name: str
  cells: dict[DType, Cell]
  unknown: str = ""  # why nothing is known of it: it fails


class Unknown(Exception):
  """An operation that the suite does not know how to call."""


Roots = Iterator[tuple[str, UOp]]  # (layout, what to compute)


# ---------------------------------------------------------------- inputs


def strided(kind: str, rows: int, columns: int, d: DType, n: int = 0) -> UOp:
  """[rows, columns] of something larger, backwards along an axis, and transposed unless n is odd."""
  if n % 2:
    return g.flip(leaf(kind, (rows, columns), d, n), (0,))
  return g.permute(
    g.flip(g.shrink(leaf(kind, (columns + 1, rows + 2), d, n), ((1, columns + 1), (0, rows))), (1,)), (1, 0)
  )


def repeated(kind: str, rows: int, columns: int, d: DType, n: int = 0) -> UOp:
  """[rows, columns], the same along the last axis; along the first if n is odd."""
  own = (1, columns) if n % 2 else (rows, 1)
  return g.expand(leaf(kind, own, d, n), (rows, columns))


def layouts(kinds: tuple[DType, ...], kind: str = "edges") -> Iterator[tuple[str, list[UOp]]]:
  """(layout, the inputs of an elementwise operation)."""
  each = list(enumerate(kinds))
  yield "contiguous", [leaf(kind, (513,), d, n) for n, d in each]
  yield "strided", [strided(kind, 17, 3, d, n) for n, d in each]
  yield "broadcast", [repeated(kind, 3, 17, d, n) for n, d in each]
  yield "one element", [leaf(kind, (1,), d, n) for n, d in each]
  yield "no element", [leaf(kind, (0, 3), d, n) for n, d in each]


# ---------------------------------------------------------------- elementwise


def elementwise(op: str) -> Iterator[Row]:
  takes = [
    d
    for d in dtypes.all
    if not check_types(op, inputs_of(op, d), dtypes.bool if OPS[op].result == "bool" else d)
  ]
  cells: dict[DType, Cell] = dict.fromkeys(dtypes.all, only(takes))
  for d in takes:
    cells[d] = [Case(op, d, *root, op) for root in calls(op, inputs_of(op, d), d is takes[0])]
  yield Row(op, cells)


def inputs_of(op: str, d: DType) -> tuple[DType, ...]:
  return (dtypes.bool, d, d) if op == "where" else (d,) * OPS[op].arity


def only(takes: list[DType]) -> str:
  """Which types an operation takes, in words."""
  kinds = "".join(dict.fromkeys(d.kind for d in takes))
  of_kind = [d for d in dtypes.all if d.kind in kinds]
  names = {"f": "floats only", "iuf": "numbers only", "iu": "integers only", "biu": "integers and bool only"}
  return names[kinds] if takes == of_kind and kinds in names else f"{', '.join(d.name for d in takes)} only"


def calls(op: str, inputs: tuple[DType, ...], first: bool) -> Roots:
  """One element, which no other program computes in the same kernel, for the first type alone."""
  for layout, xs in layouts(inputs):
    if first or layout != "one element":
      yield layout, g.alu(op, *xs)
  if len(inputs) > 1:
    d = inputs[-1]
    value = {"f": 0.75, "b": True}.get(d.kind, 8)  # of integers a power of 2: languages shift
    yield (
      "constant",
      g.alu(op, *(leaf("edges", (3,), d, n) for n, d in enumerate(inputs[:-1])), const(value, d)),
    )


def casts(op: str) -> Iterator[Row]:
  """A row for every type that is converted to; the columns are those that are converted from."""
  for to in dtypes.all:
    yield Row(f"{op} to {to.name}", {d: cast_cell(op, d, to) for d in dtypes.all})


def cast_cell(op: str, d: DType, to: DType) -> Cell:
  if d is to:
    return "the same type"
  if check_types(op, (d,), to):
    return "another size"
  kind = "edges"
  if op == "cast" and d.kind == "f" and to.kind in "iu":  # out of range it is undefined
    kind = f"whole_{to.name}" if to in (dtypes.int64, dtypes.uint32, dtypes.uint64) else "whole"
  if op == "bitcast" and to is dtypes.bool:
    return "a bool is 0 or 1"
  accuracy = "rounding" if op == "cast" and to.kind == "f" else "exact"
  convert = g.cast if op == "cast" else g.bitcast
  return [Case(f"{op} to {to.name}", d, layout, convert(x, to), accuracy)
          for layout, (x,) in layouts((d,), kind) if layout in ("contiguous", "strided", "no element")]  # fmt: skip


# ---------------------------------------------------------------- views


def view(op: str, of: Callable[[UOp], UOp]) -> Iterator[Row]:
  def roots(d: DType) -> Roots:
    for layout, (x,) in layouts((d,)):
      if layout != "one element" or d is dtypes.all[0]:
        yield layout, of(g.reshape(x, (1, g.numel(x))) if len(g.shape(x)) == 1 else x)

  yield everywhere(op, roots)


def everywhere(name: str, roots: Callable[[DType], Roots], accuracy: str = "exact") -> Row:
  """A row that has cases for every type."""
  return Row(name, {d: [Case(name, d, *root, accuracy) for root in roots(d)] for d in dtypes.all})


def expanded(x: UOp) -> UOp:
  rows, columns = g.shape(x)
  return g.expand(g.reshape(x, (rows, 1, columns)), (rows, 3, columns))


def cut(x: UOp) -> UOp:
  return g.shrink(x, tuple((min(1, n - 1), n) if n else (0, 0) for n in g.shape(x)))


# ---------------------------------------------------------------- along axes


def reductions(op: str) -> Iterator[Row]:
  for kind in REDUCERS:
    yield everywhere(f"{op} {kind}", partial(reduced, kind), "order")


def reduced(kind: str, d: DType) -> Roots:
  data = "edges" if d.kind != "f" or kind == "max" else "laced"  # the same, where that can be: one kernel
  plain = "edges" if d.kind != "f" else "signs"
  yield "last axis", g.reduce(leaf(data, (3, 257), d), kind, (1,))
  yield "first axis", g.reduce(leaf(data, (257, 17), d), kind, (0,))
  yield "two axes", g.reduce(leaf(data, (5, 17, 3), d), kind, (0, 2))
  if d.itemsize == 4:  # cut in two kernels, of which only the second is of its own
    yield "everything", g.reduce(leaf(plain, (40000,), d), kind, (0,))
  yield "strided", g.reduce(strided(data, 17, 3, d), kind, (1,))
  yield "broadcast", g.reduce(repeated(plain, 3, 17, d), kind, (1,))
  yield "no element", g.reduce(leaf(data, (0, 3), d), kind, (0,))
  if kind == "add" and d is not dtypes.bool:
    yield "matrix product", product(leaf(plain, (33, 65), d), g.permute(leaf(plain, (65, 17), d), (1, 0)))
    a, b = (leaf(plain, (64, 64), d, n) for n in range(2))
    if d.itemsize == 2 and d.kind == "f":  # as matrix instructions have it
      a, b = g.cast(a, dtypes.float32), g.cast(b, dtypes.float32)
    if d.kind == "f":
      yield "matrix product of whole tiles", product(a, b)


def product(a: UOp, b: UOp) -> UOp:
  """[n, k], [m, k] -> [n, m, 1]"""
  (n, k), (m, _) = g.shape(a), g.shape(b)
  s = (n, m, k)
  x, y = g.expand(g.reshape(a, (n, 1, k)), s), g.expand(g.reshape(b, (1, m, k)), s)
  return g.reduce(g.alu("mul", x, y), "add", (2,))


def scans(op: str) -> Iterator[Row]:
  def scanned(kind: str, d: DType) -> Roots:
    data = "edges" if d.kind != "f" or kind == "max" else "signs"
    yield "last axis", g.scan(leaf(data, (3, 257), d), kind, 1)
    yield "strided", g.scan(strided(data, 17, 3, d), kind, 0)
    yield "no element", g.scan(leaf(data, (0, 3), d), kind, 1)

  for kind in REDUCERS:
    yield everywhere(f"{op} {kind}", partial(scanned, kind), "order")


# ---------------------------------------------------------------- through an index


def by_index(n: int, kind: str = "index", d: DType = dtypes.int32) -> UOp:
  """[257, 3] indices of an axis of n elements."""
  return leaf(kind, (257, 3), d, n)


def gathers(op: str) -> Iterator[Row]:
  def gathered(d: DType) -> Roots:
    yield "first axis", g.gather(leaf("edges", (17, 3), d), by_index(17), 0)
    yield "last axis", g.gather(leaf("edges", (5, 17), d), leaf("index", (5, 3), dtypes.int64, 17), 1)
    yield "strided", g.gather(strided("edges", 17, 3, d), strided("index", 17, 3, dtypes.int32, 3), 1)
    yield "no element", g.gather(leaf("edges", (17, 3), d), leaf("index", (0, 3), dtypes.int32, 17), 0)

  yield everywhere(op, gathered)
  yield indices(f"{op} by index", lambda i: g.gather(leaf("edges", (17, 3), dtypes.float32), i, 0))


def scatters(op: str) -> Iterator[Row]:
  def scattered(how: str, d: DType) -> Roots:
    data = "edges" if d.kind != "f" or how in ("set", "max") else "signs"
    yield "first axis", g.scatter(leaf(data, (17, 3), d), by_index(17), leaf(data, (257, 3), d, 1), how, 0)
    i, value = strided("index", 17, 3, dtypes.int64, 4), strided(data, 17, 3, d, 1)
    yield "strided", g.scatter(strided(data, 17, 4, d), i, value, how, 1)
    if how == "add":
      yield "broadcast", g.scatter(g.full((17, 3), 0, d), by_index(17), repeated(data, 257, 3, d), how, 0)
    nothing = leaf("index", (0, 3), dtypes.int32, 17), leaf(data, (0, 3), d)
    yield "no element", g.scatter(leaf(data, (17, 3), d), *nothing, how, 0)

  for how in ("set", *REDUCERS):
    yield everywhere(f"{op} {how}", partial(scattered, how), "order")
  base, value = leaf("signs", (17, 3), dtypes.float32), leaf("signs", (257, 3), dtypes.float32)
  yield indices(f"{op} by index", lambda i: g.scatter(base, i, value, "add", 0))


def indices(name: str, of: Callable[[UOp], UOp]) -> Row:
  """A row whose columns are the types of an index: valid ones, and those that must raise an IndexError."""
  cells: dict[DType, Cell] = dict.fromkeys(dtypes.all, "integers only")
  for d in dtypes.all:
    if d.kind in "iu":
      bad = [
        Case(name, d, kind, of(by_index(17, kind, d)), "order", True) for kind in ("outside", "negative")
      ]
      cells[d] = [Case(name, d, "valid", of(by_index(17, "index", d)), "order"), *bad]
  return Row(name, cells)


# ---------------------------------------------------------------- leaves and marks


def constants(op: str) -> Iterator[Row]:
  def full(d: DType) -> Roots:
    numbers = {"f": (0.75, -0.0, float("-inf"), float("nan")), "b": (False, True)}.get(d.kind)
    bits = 8 * d.itemsize - (d.kind == "i")
    for value in numbers or (-(1 << bits) if d.kind == "i" else 3, (1 << bits) - 1):
      yield f"{value}", g.full((3,), value, d)

  yield everywhere(op, full)


def counts(op: str) -> Iterator[Row]:
  def counted(d: DType) -> Roots:
    yield "contiguous", g.iota(257 if d.itemsize > 1 else 127, d)
    yield "one element", g.iota(1, d)

  row = everywhere(op, counted)
  yield row._replace(cells={**row.cells, dtypes.bool: "numbers only"})


def memories(op: str) -> Iterator[Row]:
  def held(d: DType) -> Roots:
    for layout, size in (("257", 257), ("17", 17), ("3", 3), ("one element", 1), ("no element", 0)):
      yield layout, leaf("edges", (size,), d)

  yield everywhere(op, held)


def copies(op: str) -> Iterator[Row]:
  def copied(d: DType) -> Roots:
    for layout, (x,) in layouts((d,)):
      yield layout, g.copy(x, OTHER)

  yield everywhere(op, copied)


def parts(op: str) -> Iterator[Row]:
  def cut(d: DType) -> Roots:
    for layout, (x,) in layouts((d,)):
      if g.numel(x) > 1:
        yield layout, g.shard(x, len(g.shape(x)) - 1, (HERE, OTHER))

  yield everywhere(op, cut)


def marks(op: str, of: Callable[[UOp], UOp]) -> Iterator[Row]:
  def marked(d: DType) -> Roots:
    for layout, (x,) in layouts((d,)):
      if layout in ("strided", "broadcast", "no element"):
        yield layout, g.flip(of(x), (0,))

  yield everywhere(op, marked)


REVERSED = Extern("reversed", lambda x: x[::-1])


def called(x: UOp) -> UOp:
  """A call, which takes the value to the host, and back."""
  return g.copy(g.call(REVERSED, (g.copy(x, HOST),), g.shape(x), x.dtype), HERE)


def joins(op: str) -> Iterator[Row]:
  def joined(d: DType) -> Roots:
    x = leaf("edges", (17, 5), d)
    yield "first axis", g.cat((x, leaf("edges", (1, 5), d), g.flip(x, (0,))), 0)
    yield "strided", g.cat((strided("edges", 17, 3, d), x, repeated("edges", 17, 2, d)), 1)
    yield "one element", g.cat((leaf("edges", (1,), d), leaf("edges", (1,), d, 1)), 0)
    yield "no element", g.cat((leaf("edges", (0, 3), d), leaf("edges", (0, 3), d, 1)), 0)

  yield everywhere(op, joined)


# ---------------------------------------------------------------- the rows

GENERATORS: dict[str, Callable[[str], Iterator[Row]]] = {
  "reshape": lambda op: view(op, lambda x: g.reshape(x, g.shape(x)[::-1])),
  "permute": lambda op: view(op, lambda x: g.permute(x, (1, 0))),
  "expand": lambda op: view(op, expanded),
  "pad": lambda op: view(op, lambda x: g.pad(x, ((1, 2), (0, 3)))),
  "shrink": lambda op: view(op, cut),
  "flip": lambda op: view(op, lambda x: g.flip(x, (0, 1))),
  "gather": gathers,
  "scatter": scatters,
  "reduce": reductions,
  "scan": scans,
  "cast": casts,
  "bitcast": casts,
  "const": constants,
  "buffer": memories,
  "iota": counts,
  "copy": copies,
  "shard": parts,
  "stage": lambda op: marks(op, g.stage),
  "cat": joins,
  "detach": lambda op: marks(op, g.detach),
  "tag": lambda op: marks(op, g.tag),
  "call": lambda op: marks(op, called),
  "after": lambda op: marks(op, lambda x: g.after(x, x)),
  "invoke": lambda op: iter(()),  # written out before a device sees it
}


def rows_of(op: str) -> Iterator[Row]:
  """The rows of an operation."""
  make = GENERATORS.get(op, elementwise if is_elementwise(op) else None)
  if make is None:
    raise Unknown(
      f"the op suite does not know how to call it: {op}, of family {OPS[op].family}, needs a row in GENERATORS"
    )
  yield from make(op)


def rows() -> list[Row]:
  """Every row, in the order of the table of operations."""
  out: list[Row] = []
  for op in OPS:
    try:
      out += rows_of(op)
    except Exception as e:  # noqa: BLE001 (whatever a new operation does here: it is what its row says)
      out.append(Row(op, {}, " ".join(str(e).split()) or type(e).__name__))
  return out
