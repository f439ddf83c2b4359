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
from mini.codegen.writer import Machine, Writer, bound, in_turns
from mini.ir.kernel import below_data, wanted
from mini.ir.uop import UOp, toposort


def write_recipe(kernel: UOp, machine: Machine) -> tuple[UOp, str]:
  """(the kernel with the recipe applied, the recipe)."""
  w = Writer(kernel)
  if machine.kind == "gpu":
    from mini.codegen import gpu  # which a start on a CPU does without

    gpu.write(w, machine)
  elif not any(family(w, machine) for family in (rows, sums, windows, tile, slid, places)):
    stream(w, machine)
  if machine.kind != "gpu":
    in_turns(w, machine)
  if any(below_data(u) for u in toposort(w.kernel)) or wanted(w.kernel):
    bound(w)
  return w.kernel, "\n".join(w.lines)


__all__ = ["Machine", "write_recipe"]
