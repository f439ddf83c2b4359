"""Recipes for contractions, matmul and its kin: a tile in registers, 6 rows by 2 vectors, with the operand that is read again
for every block of rows packed into a panel."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from mini.codegen.linearize import is_loop
from mini.codegen.writer import Machine, Writer, coefficient, collapse_outputs, cut, flat_index
from mini.ir.kernel import all_ranges, contractions, stores
from mini.ir.uop import UOp, closed, const, rkind, rname, rsize, toposort


class Product(NamedTuple):
  """A contraction as a tile sees it: out[.., rows, .., columns] = sum of a[rows, ..] * b[.., columns]."""

  a: UOp
  b: UOp
  rows: UOp
  columns: UOp  # along which the output is contiguous


def factors(contraction: UOp) -> tuple[UOp, ...]:
  product = contraction.src[0]
  while product.op == "cast":
    product = product.src[0]
  return product.src


def find_product(kernel: UOp) -> Product | None:
  """The one contraction of a kernel, if it has columns to make vectors of and rows to unroll."""
  found = contractions(kernel)
  if len(found) != 1:
    return None
  outputs, flat = closed(kernel), flat_index(stores(kernel)[-1])
  columns = next((r for r in reversed(outputs) if coefficient(flat, r) == 1), None)
  a, b = factors(found[0])
  if columns in a.free:
    a, b = b, a
  if columns is None or columns in a.free or columns not in b.free:
    return None
  rows = max((r for r in outputs if r in a.free and r not in b.free), key=rsize, default=None)
  return None if rows is None else Product(a, b, rows, columns)


def tile(w: Writer, machine: Machine) -> bool:
  """The register tile; False where the shape gives none."""
  order = toposort(w.kernel)
  single = sum(u.op == "reduce" for u in order) == 1
  if not contractions(w.kernel) or not single or any(u.op in ("stage", "scan") for u in order):
    return False
  collapse_outputs(w)
  found = find_product(w.kernel)
  if found is None or rsize(found.columns) < machine.lanes:
    return False
  a, b, rows, columns = found
  rest = [rname(r) for r in closed(w.kernel) if r is not rows and r is not columns]
  n = rsize(columns)
  column_loop, lane = cut(
    w, rname(columns), n, 2 * machine.lanes if n >= 2 * machine.lanes else machine.lanes, "vec"
  )
  if column_loop == rname(columns):
    return False
  tall = min(machine.rows, rsize(rows))
  row_loop, row = cut(w, rname(rows), rsize(rows), tall, "unroll")
  blocks = block_rows(w, found, row_loop, tall, machine)
  loops = [*rest, *blocks, *filter(None, [column_loop, row_loop])]
  if len(loops) > 1:
    w.attempt("order " + " ".join(loops))
  summed = [rname(r) for r in closed(contractions(w.kernel)[0]) if is_loop(r)]
  if blocks and coefficient(flat_index_of(a), rows) == 1:
    pack(
      w, [row_loop, *summed], row, a, machine
    )  # its columns are rows here: read in order from a packed copy
  if row_loop and rsize(rows) >= 4 * tall:
    pack(w, summed, lane, b, machine)
  spread(w, loops, rest, machine)
  return True


def spread(w: Writer, loops: list[str], rest: list[str], machine: Machine) -> None:
  """The outermost loop that is long enough runs in parallel; one of the `rest`, a batch, moves outside for that."""
  sizes = {rname(r): rsize(r) for r in closed(w.kernel) if is_loop(r)}
  wide = [x for x in loops if x in sizes]
  if wide:
    enough = (x for x in wide if sizes[x] >= 4 * machine.threads)
    best = next(enough, max(wide, key=lambda x: sizes[x]))
    if best in rest and wide[0] != best:
      w.attempt("order " + " ".join([best, *(x for x in wide if x != best)]))
    w.attempt(f"par {best}")


def flat_index_of(value: UOp) -> UOp:
  """The offset that an operand, a load or a cast of one, is read at."""
  while value.op == "cast":
    value = value.src[0]
  return flat_index(value) if value.op == "load" else const(0)


def block_rows(w: Writer, found: Product, row_loop: str, tall: int, machine: Machine) -> list[str]:
  """Many rows are taken in blocks that stay in the cache while all columns pass; panels are then packed for each block,
  which costs little where packing is a copy, and more where it transposes."""
  a, b, rows, columns = found
  k = prod(rsize(r) for r in a.free & b.free if r not in closed(w.kernel))
  tiles = max(16, machine.l2_bytes // 4 // (a.dtype.itemsize * k * tall))
  if coefficient(flat_index_of(b), columns) != 1:
    tiles = max(tiles, 64)
  if not row_loop or rsize(rows) < 4 * tiles * tall:
    return []
  return [f"{row_loop}b"] if w.attempt(f"split {row_loop} {tiles} -> {row_loop}b, {row_loop} overlap") else []


def pack(w: Writer, ks: list[str], inner: str, operand: UOp, machine: Machine) -> None:
  """An operand that is read again and again goes into a panel: its lanes together, one step of the sum after another."""
  ranges = {rname(r): r for r in all_ranges(w.kernel)}
  found = next((s for s in factors(contractions(w.kernel)[0]) if ranges[inner] in s.free), None)
  name = next((name for name, u in w.named.items() if u is found), None)
  mine = [k for k in ks if found is not None and ranges[k] in found.free]
  size = operand.dtype.itemsize * rsize(ranges[inner]) * prod(rsize(ranges[k]) for k in mine)
  if name is None or found is None or not mine or size > machine.panel_bytes:
    return
  flat, k = flat_index_of(found), mine[-1]
  transposed = (
    rkind(ranges[inner]) == "vec"
    and coefficient(flat, ranges[inner]) != 1
    and coefficient(flat, ranges[k]) == 1
  )
  if not w.attempt(f"stage {name[1:]} over ({', '.join([*mine, inner])}) stack"):
    return
  if (
    transposed
    and rsize(ranges[inner]) % machine.lanes == 0
    and rsize(ranges[k]) >= machine.lanes
    and is_loop(ranges[k])
  ):
    copied = f"{k}.{name[1:]}"  # read along the sum, written along the lanes
    if w.attempt(f"split {copied} {machine.lanes} -> {copied}o, {copied}v overlap"):
      w.attempt(f"unroll {inner}.{name[1:]}")
      w.attempt(f"vec {copied}v")
