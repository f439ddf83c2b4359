"""Recipes for products of products, as attention is one: the scheduler left the rows of the inner product on the stack
of the outer one (schedule/fused_chains.py). A few rows at a time go through the whole kernel: both products then have a
register tile of those rows by two vectors, or four; what is read again for each few rows is packed once, outside, and
what is between the products runs along the rows in vectors."""

from __future__ import annotations

from math import ceil

from mini.codegen.contraction import factors, flat_index_of, step_cycles
from mini.codegen.linearize import is_loop
from mini.codegen.recipe_builder import (
  Machine,
  Writer,
  accesses,
  bound,
  coefficient,
  collapse_outputs,
  cut,
  cut_sum,
  flat_index,
)
from mini.codegen.threads import stage_bytes
from mini.ir.bounded import accumulated
from mini.ir.kernel import all_ranges, contractions, is_contraction, stores
from mini.ir.ops import REDUCERS
from mini.ir.uop import UOp, closed, rkind, rname, rsize, toposort

MOST_ROWS = 8  # of a tile: what is between the products stands in the code once for each


def inner_products(kernel: UOp) -> list[tuple[UOp, UOp]]:
  """(stage, contraction): the products whose rows are on the stack."""
  found = []
  for u in toposort(kernel):
    if u.op == "stage" and len(closed(u)) == 1:
      found += [
        (u, c) for c in contractions(kernel) if closed(u)[0] in c.free and c in set(toposort(u.src[0]))
      ]
  return found


def rows(w: Writer, machine: Machine) -> bool:
  """Tiles of rows; False if the kernel holds no rows of a product."""
  if not inner_products(w.kernel):
    return False
  collapse_outputs(w)
  outputs, flat = closed(w.kernel), flat_index(stores(w.kernel)[-1])
  columns = next((r for r in reversed(outputs) if coefficient(flat, r) == 1), None)
  inner = set().union(*(c.free for _, c in inner_products(w.kernel)))
  row = next((r for r in reversed(outputs) if r is not columns and r in inner), None)
  if columns is None or row is None or columns in inner:
    return False
  # each row adds to all that lies along these
  across = [rname(r) for r in outputs if accumulated(w.kernel, r)]
  rest = [rname(r) for r in outputs if r is not row and r is not columns and rname(r) not in across]
  name, size, n = rname(row), rsize(row), rsize(columns)
  vectors = tile_vectors(n, machine)
  wide = min(vectors, n // machine.lanes) * machine.lanes
  column_loop = cut(w, rname(columns), n, wide, "vec")[0] if wide else rname(columns)
  row_loop, _ = cut(w, name, size, tile_rows(size, vectors, machine, bool(across)), "unroll")
  loops = [*rest, *filter(None, [row_loop, column_loop]), *across]
  if len(loops) > 1:
    w.attempt("order " + " ".join(loops))
  for r in dict.fromkeys(closed(stage)[0] for stage, _ in inner_products(w.kernel)):
    # of few panels a mask leaves out the less the wider they are
    narrow = across and rsize(r) < 8 * vectors * machine.lanes
    panels(w, rname(r), 2 if narrow else vectors, machine)
  along(w, machine)
  if loops:  # of one tile there is none
    w.attempt(f"par {loops[0]}")
  bound(w, " finite")
  return True


def tile_vectors(n: int, machine: Machine) -> int:
  """Of a tile, where n is to be cut: four need fewer loads for each multiply-add than two, and six rows of them fit
  into 32 registers. A tile of 6 by 4 reaches 0.9 of an Ice Lake's multiply-adds, one of 8 by 2 0.8."""
  return 4 if machine.registers >= 32 and n % (4 * machine.lanes) == 0 else 2


def tile_rows(size: int, vectors: int, machine: Machine, whole: bool = False) -> int:
  """Of a tile: as many as make all rows the fastest, with room for an operand of each kind. whole: the last one may not
  begin within the one before."""
  most = min((machine.registers - 1 - vectors) // vectors, size, MOST_ROWS)
  found = [n for n in range(most, 0, -1) if not whole or size % n == 0]
  return min(found, key=lambda n: ceil(size / n) * step_cycles(n, vectors))


def panels(w: Writer, name: str, vectors: int, machine: Machine) -> None:
  """Some vectors of a row at once; what has them in a product is packed, for all rows."""
  products = [c for stage, c in inner_products(w.kernel) if rname(closed(stage)[0]) == name]
  r = next(r for r in all_ranges(w.kernel) if rname(r) == name)
  operands = [f for c in products for f in factors(c) if r in f.free]
  packed = [(n, u) for n, u in w.named.items() if u in operands]
  summed = [[rname(x) for x in closed(c) if is_loop(x)] for c in products for f in factors(c) if r in f.free]
  by = {u: ks for u, ks in zip(operands, summed)}
  wide = machine.lanes * next((n for n in (vectors, 2) if rsize(r) >= n * machine.lanes), 1)
  if rsize(r) < wide:
    return
  loop, lane = cut(w, name, rsize(r), wide, "vec")
  lanes = next(x for x in all_ranges(w.kernel) if rname(x) == lane)
  for n, u in packed if loop else []:
    x = n[1:]
    if coefficient(flat_index_of(w.named[n]), lanes) == 1 or not by[u]:
      continue
    saved = w.kernel, dict(w.named)
    if not w.attempt(f"stage {x} over ({', '.join([loop, *by[u], lane])}) stack"):
      continue
    if sum(stage_bytes(v) for v in toposort(w.kernel) if v.op == "stage") > machine.stack_bytes:
      w.kernel, w.named = saved
      w.lines.pop()
      continue
    copied = f"{by[u][-1]}.{x}"
    if w.attempt(f"split {copied} {machine.lanes} -> {copied}o, {copied}v overlap"):
      w.attempt(f"unroll {lane}.{x}")
      w.attempt(f"vec {copied}v")


def along(w: Writer, machine: Machine) -> None:
  """What runs along a row takes vectors of it, before what is computed for each of its elements does."""
  done: set[str] = set()
  while True:
    owners = [u for u in reversed(toposort(w.kernel)) if u.op in ("reduce", "stage") and len(closed(u)) == 1]
    plain = (u for u in owners if is_loop(closed(u)[0]) and not any(rkind(r) == "vec" for r in u.src[0].free))
    plain = (u for u in plain if not adds_along(u.src[0], w.kernel))
    found = next((u for u in plain if rname(closed(u)[0]) not in done), None)
    if found is None:
      return
    name, size = rname(closed(found)[0]), rsize(closed(found)[0])
    done |= {name, f"{name}.rest"}
    wide = 2 * machine.lanes if size >= 2 * machine.lanes else machine.lanes
    if size == wide:
      w.attempt(f"vec {name}")
    elif size > wide:
      if found.op == "reduce":
        cut_sum(w, name, wide, machine.lanes)
      elif w.attempt(f"split {name} {wide} -> {name}o, {name}v overlap"):
        w.attempt(f"vec {name}v")


def adds_along(u: UOp, k: UOp) -> bool:
  """Is it a sum along what memory holds in order, or what one was cut into? A vector runs there, and none across."""
  if u.op in REDUCERS:
    return any(adds_along(x, k) for x in u.src)
  if u.op != "reduce" or is_contraction(u, k):
    return False
  return any(all(coefficient(flat_index(x), r) == 1 for x in accesses(u.src[0])) for r in closed(u))
