"""Writes recipes: from a kernel's shape and the machine's description to steps that make it fast.

For a processor two families: a *contraction* (contraction.py) is tiled into registers, everything else *streams*
(stream.py). A product of products, whose rows are on the stack, is of both (rows.py). For devices with groups of
threads there is gpu.py. What a step cannot do to a kernel it refuses (RecipeError), and the kernel stays as it was: the
heuristic tries, it does not prove.
"""

from __future__ import annotations

from mini.codegen.contraction import tile
from mini.codegen.convolution import windows
from mini.codegen.depthwise import places, slid
from mini.codegen.rows import rows
from mini.codegen.stream import stream
from mini.codegen.window_sums import sums
from mini.codegen.writer import Machine, Writer, accesses, bound, in_turns, split_runs
from mini.ir.kernel import below_data, contractions, wanted
from mini.ir.uop import UOp, closed, toposort


def write_recipe(kernel: UOp, machine: Machine) -> tuple[UOp, str]:
  """(the kernel with the recipe applied, the recipe)."""
  w = Writer(kernel) if machine.kind == "gpu" else begun(kernel)
  if machine.kind == "gpu":
    from mini.codegen import gpu  # which a start on a CPU does without

    gpu.write(w, machine)
  else:
    if not any(family(w, machine) for family in (rows, sums, windows, tile, slid, places)):
      stream(w, machine)
    in_turns(w, machine)
  if any(below_data(u) for u in toposort(w.kernel)) or wanted(w.kernel):
    bound(w)
  return w.kernel, "\n".join(w.lines)


def begun(kernel: UOp) -> Writer:
  """Without steps or, where a reshape has made one axis of groups, with a loop over groups: each is a product."""
  if any(u.op == "reduce" for u in toposort(kernel)) and not contractions(kernel):
    w = Writer(kernel)
    split_runs(w, closed(kernel), accesses(kernel))
    if contractions(w.kernel):
      return w
  return Writer(kernel)


__all__ = ["Machine", "write_recipe"]
