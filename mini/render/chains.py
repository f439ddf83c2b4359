"""Long sums in several accumulators: a few terms are added up, then what they gave, and so on.

A sum of n terms in one accumulator is off by up to n roundings, and is where the terms are alike. Cut so, the error
grows with the logarithm of n. (1e8 times 0.1 in float32: off by 8e-7, in one accumulator a lane by 1.3e-4.) The loops
that a recipe has made stay as they are, in the IR and on every device; what is printed goes through them piece by
piece, and the order depends on sizes alone.
"""

from __future__ import annotations

from math import prod

from mini.codegen.linearize import Line, lanes, loops_of
from mini.codegen.matrix import instruction_of
from mini.ir.kernel import is_contraction
from mini.ir.uop import UOp, rsize, toposort
from mini.render.folds import Folds

TERMS = 128  # that one accumulator adds up before it is added to the next
RUNNING = 32  # the same of a running sum, where each value that it takes is a result
PRODUCT_TERMS = 256  # the same of a product of matrices, whose tile leaves the registers between pieces
TILE = 8  # accumulators of a thread of a GPU: with so many it has no registers for those of pieces


def cuts(kernel: UOp, width: int) -> dict[UOp, list[tuple[UOp, int]]]:
  """{a loop: [(the sum, so many of its values at a time), ...], the largest pieces first}"""
  found: dict[UOp, list[tuple[UOp, int]]] = {}
  for u in toposort(kernel):
    if u.op in ("reduce", "scan") and u.dtype.kind == "f" and not instruction_of(u.src[0]):
      for r, step in reversed(pieces(u, width, kernel)):
        found.setdefault(r, []).append((u, step))
  return found


def pieces(u: UOp, width: int, kernel: UOp) -> list[tuple[UOp, int]]:
  """[(a loop of a sum, so many of its values at a time), ...], the smallest pieces first."""
  kind, loops = (u.arg, u.src[1:]) if u.op == "scan" else (u.arg.what, loops_of(u))
  registers = prod(rsize(r) for r in lanes(u.src[0])) // width
  most = RUNNING if u.op == "scan" else PRODUCT_TERMS if is_contraction(u, kernel) else TERMS
  if kind != "add" or (registers >= TILE and width == 1):
    return []
  found = []
  terms = 1
  for r in reversed(loops):
    step = 1
    while terms * -(-rsize(r) // step) > most:
      step *= max(1, most // terms)
      terms = 1
      found.append((r, step))
    terms *= -(-rsize(r) // step)
  return found


class Chains(Folds):
  """The loops over pieces, and the accumulators of each. cstyle.py prints what a line of a piece is."""

  cuts: dict[UOp, list[tuple[UOp, int]]]
  depths: dict[UOp, int]

  def run(self, segment: list[Line]) -> None:
    raise NotImplementedError

  def accumulator(self, u: UOp, env: dict[UOp, int], out: int = 0) -> str:
    """What a sum is added to in this piece of it, or in the one around."""
    return f"acc{self.number[u]}" + "p" * (self.depths.get(u, 0) - out) + self.suffix(lanes(u.src[0]), env)

  def sofar(self, u: UOp, env: dict[UOp, int], out: int = 0) -> str:
    """What the pieces of a scan before this one had, or before the one around."""
    return f"sofar{self.number[u]}" + "p" * (self.depths[u] - out) + self.suffix(lanes(u.src[0]), env)

  def open_pieces(self, r: UOp, first: str, end: str) -> tuple[str, str]:
    """The loops over the pieces of sums along r: (where r begins and ends in one of them)."""
    for u, step in self.cuts.get(r, ()):
      depth = self.depths[u] = self.depths.get(u, 0) + 1
      i = f"at{self.number[u]}" + "p" * depth
      self.emit(f"for ({self.index} {i} = {first}; {i} < {end}; {i} += {step}) {{")
      self.depth += 1
      self.emit(f"const {self.index} {i}e = {end} - {i} < {step} ? {end} : {i} + {step};")
      self.run([Line("acc", u)] + [Line("sofar", u)] * (u.op == "scan"))
      first, end = i, f"{i}e"
    return first, end

  def close_pieces(self, r: UOp) -> None:
    for u, _ in self.cuts.get(r, ()):
      self.run([Line("join", u)])
      self.depths[u] -= 1
      self.depth -= 1
      self.emit("}")
