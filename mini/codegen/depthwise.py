"""Recipes for windows that slide over what is no product of matrices (convolution.py): each output sees one channel.

Depthwise convolutions, and pooling whose windows overlap: out[.., p, q] = sum of seen[.., p + k, q + l] * other[k, l].
A row of outputs is in registers at once, one row of the window after another; so the sums do not wait for each other,
and a number of `other` is read once for all of them. Which vectors lie at an edge is known where each has a line of
its own.

The gradient of a depthwise convolution's weight: out[.., places] = sum of seen[.., along + places] * other[.., along].
All places have their sums in registers at once. A vector of `other` is read once for them, those of `seen` are in the
first cache for all but one of them, and the sums do not wait for each other.
"""

from __future__ import annotations

from math import prod

from mini.codegen.recipe_builder import (
  Machine,
  Writer,
  accesses,
  coefficient,
  collapse_outputs,
  cut,
  flat_index,
  shared,
)
from mini.codegen.stream import contiguous
from mini.ir.kernel import access
from mini.ir.uop import UOp, closed, linear, rname, rsize, toposort

WIDE = 8  # vectors of a row at once, at most
TAPS = 11  # places of a window in a row, each with lines of its own
WINDOW = 128  # places of all: what has more is better done in another way


def slid(w: Writer, machine: Machine) -> bool:
  """Outputs row by row; False where no window slides along one."""
  total = only_sum(w)
  row = contiguous(w.kernel, w.kernel, True)
  if total is None or row is None or rsize(row) < 4:
    return False
  tap = find_tap(total, row)
  if tap is None or prod(map(rsize, closed(total))) > WINDOW:
    return False
  size = max(1, total.dtype.itemsize // 4)  # registers
  most = min(WIDE, (machine.registers - 2) // size - rsize(tap))
  name, lanes = rname(row), min(machine.lanes, 1 << rsize(row).bit_length() - 1)
  outer = [rname(r) for r in closed(w.kernel) if r is not row]
  tiles = -(-rsize(row) // (max(most, 1) * lanes))
  if tiles > 1:  # of as many vectors each
    tile = -(-rsize(row) // (tiles * lanes)) * lanes
    if tile < rsize(row) and w.attempt(f"split {name} {tile} -> {name}t, {name} overlap"):
      outer.append(f"{name}t")
  w.attempt(f"unroll {rname(tap)}")
  loop, _ = cut(w, name, rsize(w.range(name)), lanes, "vec")
  if loop:
    w.attempt(f"unroll {loop}")
  shared(w, outer, machine)
  return True


def only_sum(w: Writer) -> UOp | None:
  """What a kernel reduces, if that is all it does; its outputs are then in as few ranges as can be."""
  order = toposort(w.kernel)
  if sum(u.op == "reduce" for u in order) != 1 or any(u.op in ("stage", "scan") for u in order):
    return None
  collapse_outputs(w)
  return next(u for u in toposort(w.kernel) if u.op == "reduce")


def find_tap(total: UOp, row: UOp) -> UOp | None:
  """The summed range that slides along a row, where windows overlap, and all that is read lies along the row."""
  flats = [flat_index(u) for u in accesses(total.src[0])]
  if any(coefficient(f, row) not in (0, 1, 2) for f in flats):
    return None
  indices = [linear(i)[0] for u in accesses(total.src[0]) for i in access(u)[1]]
  taps = {r for terms in indices if row in terms for r in closed(total) if terms.get(r) == 1}
  steps = [terms[row] for terms in indices if row in terms]
  tap = next(iter(taps)) if len(taps) == 1 else None
  return tap if tap is not None and max(steps) < rsize(tap) <= TAPS else None


def places(w: Writer, machine: Machine) -> bool:
  """The places of a window as lanes; False where the kernel is no such sum."""
  total = only_sum(w)
  found = find_places(w.kernel, total) if total is not None else None
  if total is None or found is None:
    return False
  window, row = found
  most, lanes = machine.registers * 3 // 4 // max(1, total.dtype.itemsize // 4), machine.lanes
  unrolled: list[UOp] = []
  for r in reversed(window):
    if prod(map(rsize, [*unrolled, r])) <= most:
      unrolled.append(r)
  if not unrolled or rsize(row) < 4:
    return False
  for r in unrolled:
    w.attempt(f"unroll {rname(r)}")
  outer = [rname(r) for r in closed(w.kernel) if r not in window]
  vectors(w, rname(row), rsize(row), min(lanes, 1 << rsize(row).bit_length() - 1))
  shared(w, outer or [rname(r) for r in window if r not in unrolled], machine)
  return True


def find_places(kernel: UOp, total: UOp) -> tuple[list[UOp], UOp] | None:
  """(the outputs that are places in the window, the summed range that the vectors run along)."""
  product, summed = total.src[0], closed(total)
  if total.arg.what != "add" or product.op != "mul" or any(s.op != "load" for s in product.src):
    return None
  for seen, other in (product.src, product.src[::-1]):
    steps = [linear(i)[0] for i in access(seen)[1]]
    window = [r for r in closed(kernel) if any(r in terms and terms.keys() & set(summed) for terms in steps)]
    row = next((r for r in summed if coefficient(flat_index(other), r) == 1), None)
    if window and row is not None and not any(r in other.free for r in window):
      return window, row
  return None


def vectors(w: Writer, name: str, size: int, lanes: int) -> None:
  """A summed range in vectors, and what is over in the longest that leave nothing."""
  rest = size % lanes
  if size == lanes:
    w.attempt(f"vec {name}")
  elif w.attempt(f"split {name} {lanes} -> {name}o, {name}v{' peel' if rest else ''}"):
    w.attempt(f"vec {name}v")
  part = rest & -rest
  if part == rest > 1:
    w.attempt(f"vec {name}.rest")
  elif part > 1 and w.attempt(f"split {name}.rest {part} -> {name}r, {name}rv"):
    w.attempt(f"vec {name}rv")
