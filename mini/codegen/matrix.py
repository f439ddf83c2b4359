"""Matrix instructions: a tile of a product that the threads of a warp multiply together.

What an instruction works on is spread over the registers of a warp. Each axis of the tile is a number whose digits,
from the highest, are a thread's (`Lane`) or tell its registers apart (`Register`): so the rows and columns of the
result become local ranges and lanes like any others, and loads, stores and what is done with the result need nothing of
their own. The recipe's step splits the tile so, and marks the sum:

  %5 = reduce.add %4 over (%ko, %k) by m16n8k16 f16 (%i0, %i1, %j0, %j1, %k) : f32

which still means what it says. `lower`, for the renderers, gives each factor the index that its registers have, and
makes

  mma  src = (a, b, *the tile's ranges, *registers of a, *registers of b)      closes those registers

Which thread has which element: PTX ISA 8.0, "Matrix Fragments for mma.m16n8k16 with floating point type" and "... for
mma.m16n8k8". Apple does not say it of simdgroup_matrix; other libraries that reach its elements agree on it.
"""

from __future__ import annotations

from typing import NamedTuple

from mini.ir.kernel import reduce_over
from mini.ir.uop import (
  Over,
  UOp,
  add,
  closed,
  const,
  copy,
  div,
  mod,
  mul,
  range_,
  rkind,
  rname,
  rsize,
  substitute,
  toposort,
  uop,
)
from mini.types import DType, dtypes


class Register(NamedTuple):
  size: int


class Lane(NamedTuple):
  size: int
  stride: int  # in the number of the thread


Axis = tuple  # of Register | Lane, the highest digit first


class Instruction(NamedTuple):
  """result[rows, columns] += a[rows, a_inner] * b[b_inner, b_columns]. Registers count up along an axis, those of the
  inner one around those of the rows or columns, but for the lowest digit of the inner one."""

  operand: DType
  rows: Axis
  columns: Axis
  a_inner: Axis
  b_inner: Axis
  b_columns: Axis


# fmt: off
QUADS, PAIRS = (Register(2), Lane(8, 4)), (Lane(4, 1), Register(2))
SPREAD = (Register(2), Lane(4, 1))
EIGHTS = (Lane(2, 16), Lane(4, 2))
EIGHTS_IN_PAIRS = (Lane(2, 8), Lane(2, 1), Register(2))
INSTRUCTIONS = {
  **{f"m16n8k16 {d.short}": Instruction(d, QUADS, PAIRS, (Register(2), *PAIRS), (Register(2), *PAIRS), (Lane(8, 4),))
     for d in (dtypes.float16, dtypes.bfloat16)},
  "m16n8k8 tf32": Instruction(dtypes.float32, QUADS, PAIRS, SPREAD, SPREAD, (Lane(8, 4),)),
  **{f"8x8 {d.short}": Instruction(d, EIGHTS, EIGHTS_IN_PAIRS, EIGHTS_IN_PAIRS, EIGHTS, EIGHTS_IN_PAIRS)
     for d in (dtypes.float32, dtypes.float16)},
}
# fmt: on


def tile_size(axis: Axis) -> int:
  n = 1
  for digit in axis:
    n *= digit.size
  return n


def ranges_for(name: str, axis: Axis) -> list[UOp]:
  """A range for each digit: of a register's, the lowest is a vector."""
  kinds = ["local" if isinstance(d, Lane) else "vec" if d is axis[-1] else "unroll" for d in axis]
  return [range_(f"{name}{n}", d.size, kind) for n, (d, kind) in enumerate(zip(axis, kinds))]


def number_of(digits: list[UOp]) -> UOp:
  """The number that has these digits."""
  total = const(0)
  for d in digits:
    total = add(mul(total, rsize(d)), d)
  return total


# ---------------------------------------------------------------- the mark on a sum


def instruction_of(u: UOp) -> str:
  """The name of the instruction that a reduce is marked with, or ""."""
  return u.arg.shape[0] if u.op == "reduce" and u.arg.shape else ""


def tile(u: UOp) -> tuple[UOp, ...]:
  """The ranges of a marked reduce: the digits of its rows and of its columns, and the inner range."""
  return u.src[1 : len(u.src) - u.arg.count]


def marked(u: UOp, name: str, ranges: tuple[UOp, ...]) -> UOp:
  return uop("reduce", u.dtype, (u.src[0], *ranges, *closed(u)), u.arg._replace(shape=(name,)))


def factors(u: UOp, name: str, rows: list[UOp], columns: list[UOp]) -> tuple[UOp, UOp]:
  """The factors of a product, the one with the rows first. ValueError if the instruction does not fit."""
  row = INSTRUCTIONS[name]
  product = u.src[0]
  if u.op != "reduce" or u.arg.what != "add" or u.dtype is not dtypes.float32 or product.op != "mul":
    raise ValueError("a matrix instruction adds products in float32")
  a, b = product.src
  if any(r in a.free for r in columns):
    a, b = b, a
  if any(r in a.free for r in columns) or any(r in b.free for r in rows):
    raise ValueError("both factors depend on the rows, or on the columns, of the tile")
  if row.operand is not dtypes.float32:
    if not all(x.op == "cast" and x.src[0].dtype is row.operand for x in (a, b)):
      raise ValueError(f"{name} multiplies {row.operand.short}, cast to float32")
    a, b = a.src[0], b.src[0]
  return a, b


def check(u: UOp) -> None:
  """ValueError if a marked reduce is not what its instruction does."""
  name = instruction_of(u)
  if name not in INSTRUCTIONS:
    raise ValueError(f"there is no matrix instruction {name}; there are {', '.join(INSTRUCTIONS)}")
  row, ranges = INSTRUCTIONS[name], tile(u)
  n, m = len(row.rows), len(row.rows) + len(row.columns)
  if len(ranges) != m + 1 or any(r.op != "range" for r in ranges) or len(set(ranges)) < len(ranges):
    raise ValueError(f"{name} works on {m + 1} ranges")
  for r, digit in zip(ranges, (*row.rows, *row.columns)):
    kinds = ("local",) if isinstance(digit, Lane) else ("unroll", "vec")
    if rkind(r) not in kinds or rsize(r) != digit.size:
      raise ValueError(f"{name}: %{rname(r)} is no {kinds[0]} range of size {digit.size}")
  inner = ranges[-1]
  if inner not in closed(u) or rsize(inner) != tile_size(row.a_inner) or rkind(inner) != "unroll":
    raise ValueError(
      f"{name}: %{rname(inner)} is no unrolled range of size {tile_size(row.a_inner)} that is summed over"
    )
  factors(u, name, list(ranges[:n]), list(ranges[n:m]))
  if not set(ranges) <= u.src[0].free:
    raise ValueError(f"{name}: its product does not depend on all of the tile")


def lane_strides(u: UOp) -> dict[UOp, int]:
  """{local range of the tile: its stride in the thread's number}, of a marked reduce or an mma."""
  if u.op == "mma":
    name, ranges = u.arg.what, u.src[2:]
  else:
    name, ranges = instruction_of(u), tile(u) if instruction_of(u) else ()
  if name not in INSTRUCTIONS:
    return {}
  digits = (*INSTRUCTIONS[name].rows, *INSTRUCTIONS[name].columns)
  return {r: d.stride for r, d in zip(ranges, digits) if isinstance(d, Lane)}


# ---------------------------------------------------------------- for the renderers


def lower(kernel: UOp, bits: bool) -> UOp:
  """The kernel with an `mma` for each marked sum, and what reads the bits of memory alone. bits: operands of 16 bits as
  what memory holds, in uint16."""
  kernel = reading_bits(kernel)
  while (u := next((u for u in toposort(kernel) if instruction_of(u)), None)) is not None:
    kernel = substitute(kernel, {u: _lowered(u, bits)})
  return kernel


def reading_bits(kernel: UOp) -> UOp:
  """The kernel, which reads halves in memory as what it wants of them, where that is their bits: to float32 and back,
  which is how they are read otherwise, one NaN becomes another."""
  found: dict[UOp, UOp] = {}
  for u in toposort(kernel):
    if u.op == "bitcast" and u.dtype.itemsize == 2:
      x = found.get(u.src[0], u.src[0])
      if x.op == "load" and x.src[0].op == "param":
        found[u] = uop("load", u.dtype, x.src)
  return substitute(kernel, found) if found else kernel


def _lowered(u: UOp, bits: bool) -> UOp:
  name, ranges = instruction_of(u), tile(u)
  row, inner = INSTRUCTIONS[name], ranges[-1]
  n, m = len(row.rows), len(row.rows) + len(row.columns)
  columns = list(ranges[n:m])
  lanes = {stride: r for r, stride in lane_strides(u).items()}
  a, b = factors(u, name, list(ranges[:n]), columns)

  def digits(axis: Axis, called: str) -> list[UOp]:
    """A register's digits are new ranges, a lane's are those that the threads have."""
    made = ranges_for(called, axis)
    return [lanes[d.stride] if isinstance(d, Lane) else r for d, r in zip(axis, made)]

  a_inner, b_inner = digits(row.a_inner, rname(inner) + ".left"), digits(row.b_inner, rname(inner) + ".right")
  table = {inner: number_of(b_inner)}
  if row.b_columns != row.columns:
    at, below = number_of(digits(row.b_columns, "")), 1
    for r in reversed(columns):
      table[r] = mod(div(at, below), rsize(r))
      below *= rsize(r)
  a = _operand(copy(a, {inner: number_of(a_inner)}, ".left"), bits)
  b = _operand(copy(b, table, ".right"), bits)
  registers = [r for r in (*a_inner, *b_inner) if rkind(r) != "local"]
  mma = uop("mma", dtypes.float32, (a, b, *ranges[:-1], *registers), Over(name, len(registers)))
  return reduce_over("add", mma, tuple(r for r in closed(u) if r is not inner))


def _operand(x: UOp, bits: bool) -> UOp:
  if not bits or x.dtype is dtypes.float32:
    return x
  if x.op == "load":  # as it is, not to float32 and back
    return uop("load", dtypes.uint16, x.src)
  return uop("bitcast", dtypes.uint16, (x,))


class Parts(NamedTuple):
  """What an mma works on."""

  a: UOp
  b: UOp
  a_registers: tuple[UOp, ...]  # in the order in which the instruction takes them
  b_registers: tuple[UOp, ...]
  registers: tuple[UOp, ...]  # of the result


def parts(u: UOp) -> Parts:
  row = INSTRUCTIONS[u.arg.what]
  n = len(row.rows)
  rows = [r for r in u.src[2 : 2 + n] if rkind(r) != "local"]
  columns = [r for r in u.src[2 + n : 2 + n + len(row.columns)] if rkind(r) != "local"]
  made = closed(u)
  count = sum(isinstance(d, Register) for d in row.a_inner)
  a, b = made[:count], made[count:]
  b_columns = columns if row.b_columns == row.columns else []
  return Parts(u.src[0], u.src[1], (*a[:1], *rows, *a[1:]), (*b, *b_columns), (*rows, *columns))
