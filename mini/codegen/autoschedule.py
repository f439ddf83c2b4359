"""Writes recipes: from a kernel's shape and the machine's description to steps that make it fast.

For a processor two families: a *contraction* (contraction.py) is tiled into registers, everything else *streams*
(stream.py). A product of products, whose rows are on the stack, is of both (rows.py). For devices with groups of
threads there is gpu.py. What a step cannot do to a kernel it refuses (RecipeError), and the kernel stays as it was: the
heuristic tries, it does not prove.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mini.codegen.contraction import tile
from mini.codegen.convolution import windows
from mini.codegen.depthwise import places, slid
from mini.codegen.even import even
from mini.codegen.recipe_builder import Machine, Writer, accesses, bound, flat_index, in_turns
from mini.codegen.rows import rows
from mini.codegen.stream import stream
from mini.codegen.window_sums import sums
from mini.ir.kernel import below_data, contractions, wanted
from mini.ir.uop import UOp, closed, index_nodes, rname, rsize, toposort

# The first that takes a kernel writes its recipe, and says so; all others `stream` writes.
FAMILIES: tuple[Callable[[Writer, Machine], Any], ...] = (
  rows,  # products of products: attention
  sums,  # gradients of a convolution's weight
  windows,  # convolutions
  tile,  # products of matrices
  slid,  # windows of one channel each: depthwise convolutions, pooling
  places,  # gradients of a depthwise convolution's weight
)
PARTS = "div", "mod"  # of an index, which are ranges of their own once it is split


def write_recipe(kernel: UOp, machine: Machine, little: bool = False, alike: bool = False) -> tuple[UOp, str]:
  """(the kernel with the recipe applied, the recipe). little: one that is the same for any size. alike: one whose sums
  are added up in the same order whatever their size."""
  w, _ = written(kernel, machine, little, alike)
  return w.kernel, "\n".join(w.lines)


def explained(
  kernel: UOp, machine: Machine, little: bool = False, alike: bool = False
) -> tuple[str, str, list[str]]:
  """(the recipe of `write_recipe`, who wrote it and by which estimates, the steps that were refused, with reasons)."""
  w, by = written(kernel, machine, little, alike)
  told = f"by {by.__name__} in {by.__module__.replace('.', '/')}.py"
  if w.notes:
    told += f": {'; else '.join(w.notes)}"
  return "\n".join(w.lines), told, w.refused


def written(kernel: UOp, machine: Machine, little: bool, alike: bool) -> tuple[Writer, Callable[..., Any]]:
  """(what `write_recipe` gives, the writer of its family)"""
  w = Writer(kernel) if machine.kind == "gpu" or little else begun(kernel, alike)
  by: Callable[..., Any] = even
  if machine.kind == "gpu":
    from mini.codegen import gpu  # which a start on a CPU does without

    by = gpu.write
    gpu.write(w, machine)
  elif little:
    even(w, machine)
  else:
    by = next((family for family in FAMILIES if family(w, machine)), stream)
    if by is stream:
      stream(w, machine)
    in_turns(w, machine)
  if any(below_data(u) for u in toposort(w.kernel)) or wanted(w.kernel):
    bound(w)
  return w, by


def begun(kernel: UOp, alike: bool) -> Writer:
  """Without steps or, where a reshape has made one axis of groups or of the phases of a stride, with a loop over these:
  both factors depend on it, and within each group is a product."""
  w = Writer(kernel, alike)
  sums = [accesses(u.src[0]) for u in toposort(kernel) if u.op == "reduce"]
  for r in closed(kernel):
    read = [x for operands in sums if all(r in x.free for x in operands) for x in operands]
    parts = (e for x in read for e in index_nodes(flat_index(x)) if e.op in PARTS and e.src[0] is r)
    n = min((e.src[1].arg for e in parts), default=0)
    if n and rsize(r) % n == 0:
      w.attempt(f"split {rname(r)} {n} -> {rname(r)}h, {rname(r)}")
  return w if contractions(w.kernel) else Writer(kernel, alike)


__all__ = ["Machine", "write_recipe"]
