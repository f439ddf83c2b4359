"""Recipes for a sum of products at each place of a window, as the gradient of a depthwise convolution's weight is one:
out[.., places] = sum of seen[.., along + places] * other[.., along]. There is no product of matrices in it
(convolution.py): no output is of `other` alone.

All places have their sums in registers at once. A vector of `other` is read once for them, those of `seen` are in the
first cache for all but one of them, and the sums do not wait for each other.
"""

from __future__ import annotations

from math import prod

from mini.codegen.convolution import shared
from mini.codegen.writer import Machine, Writer, coefficient, collapse_outputs, flat_index
from mini.ir.kernel import access
from mini.ir.uop import UOp, closed, linear, rname, rsize, toposort


def places(w: Writer, machine: Machine) -> bool:
  """The places of a window as lanes; False where the kernel is no such sum."""
  order = toposort(w.kernel)
  if sum(u.op == "reduce" for u in order) != 1 or any(u.op in ("stage", "scan") for u in order):
    return False
  collapse_outputs(w)
  total = next(u for u in toposort(w.kernel) if u.op == "reduce")
  found = find_places(w.kernel, total)
  if found is None:
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
