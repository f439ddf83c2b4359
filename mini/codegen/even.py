"""Recipes of kernels with little to do, which are the same for any size: what a loop over sizes asks for then needs a
compiler once, where recipes that make the most of each size need it again and again.

A range is short, and stays a loop, or long: then its last vectors overlap, also where they need not, and of a sum some
elements are left to a loop, also where they fill a vector. With a range of one element, which is none, each size has
one of three kinds of code.
"""

from __future__ import annotations

from mini.codegen.linearize import is_loop
from mini.codegen.stream import along_memory, collapse_sums
from mini.codegen.writer import Machine, Writer
from mini.ir.uop import UOp, closed, rkind, rname, rsize, toposort

LANES = 8  # of a vector; what has more elements is long
ROWS = 4  # of sums, which are added up at once: each addition waits for the one before it
SIMPLE = 50  # nodes: of more a compiler would see too much


def even(w: Writer, machine: Machine) -> None:
  collapse_sums(w)
  along_memory(w, machine, cut_evenly)
  rows = (r for u in toposort(w.kernel) if sums_in_vectors(u) for r in closed(w.kernel) if r in u.free)
  name = next((rname(r) for r in rows if rsize(r) > LANES and rkind(r) == "loop"), "")
  if name and len(toposort(w.kernel)) <= SIMPLE and w.attempt(f"split {name} {ROWS} -> {name}o, {name}u any"):
    w.attempt(f"unroll {name}u")
  loops = [rname(r) for r in closed(w.kernel) if is_loop(r)]
  if loops:
    w.attempt(f"par {loops[0]}")


def sums_in_vectors(u: UOp) -> bool:
  return u.op == "reduce" and any(rkind(r) == "vec" for r in u.free)


def cut_evenly(w: Writer, owner: UOp, r: UOp, machine: Machine) -> None:
  """A long range in vectors."""
  name = rname(r)
  if rsize(r) > LANES and w.attempt(f"split {name} {LANES} -> {name}o, {name}v any"):
    w.attempt(f"vec {name}v")
