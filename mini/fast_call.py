"""What is left of a routine (compiled_function.py) whose calls have nothing to look after.

Most jitted functions that are called often and take no time compute new values of their arguments, and that is all: no
state, no gradients, one device, whose memory is the host's. A call of such a one is memory for the results, one call
into C, and handles: half of what it takes where a routine first asks whether there is more to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mini.capture import SLOT, filled, viewed
from mini.compiled_function import Routine
from mini.engine.buffer import Buffer
from mini.ir.uop import memory_leaf
from mini.stats import stats
from mini.tensor import Tensor
from mini.tensor.errors import user_line

if TYPE_CHECKING:
  from mini.engine.program import Program


class Direct:
  """Called with the arguments as tensors, each of which is memory of its own. What goes wrong the routine tells."""

  @staticmethod
  def of(r: Routine) -> Direct | None:
    """None where a call has more to do."""
    from mini.engine.program import Program  # which is there if the routine has one

    program = r.program
    looks = r.outside or r.looked or r.settings or r.updated or r.graded or r.varying
    if looks or r.shared_results or r.is_cut or r.fixed or r.shared or not isinstance(program, Program):
      return None
    returns_new = all(result.memory >= r.made for result in r.results)
    return Direct(r, program) if program.is_one_call and returns_new else None

  def __init__(self, r: Routine, program: Program):
    self.routine = r
    argument = {n: i for n, i, _ in r.bound}  # all places are arguments, in their order
    self.arguments = [argument[n] for n, _ in r.inputs]
    self.take, (self.sequence,), self.kernels = program.opened.take, program.sequences, len(program.calls)
    self.made = [(device, dtype, size, size * dtype.itemsize) for _, device, dtype, size in r.fresh]
    at = {n: k for k, ((n, _), *_) in enumerate(r.fresh)}
    self.written = [at[n] for n, _ in r.outputs]
    self.arena_bytes = program.arena_bytes
    self.leaves = [(at[n], s, dtype) for n, dtype, s in r.given]
    number = {n: k for k, (n, *_) in enumerate(r.given)}
    self.results = [(number[n], steps) for n, steps in r.results]
    self.is_alone = r.result is SLOT and self.results == [(0, ())]

  def __call__(self, args: Sequence[Tensor]) -> Any:
    take = self.take
    try:
      made = [Buffer(device, dtype, size, take(nbytes)) for device, dtype, size, nbytes in self.made]
      blocks = [args[i]._uop.arg[0].memory for i in self.arguments]
      blocks += [made[k].memory for k in self.written]
      if self.arena_bytes:
        blocks += [take(self.arena_bytes)] * 2  # as in Program.bind
      failed = self.sequence.run(blocks)
    except MemoryError:
      failed = 1
    if failed:  # nothing but new memory was written: the routine may run it again, and say what is wrong
      made = blocks = []
      return self.routine(args, self.routine.find(args))
    stats["kernels"] += self.kernels
    line = user_line()
    leaves = [memory_leaf(made[k], s, dtype) for k, s, dtype in self.leaves]
    if self.is_alone:
      return Tensor._at(leaves[0], line)
    nodes = (viewed(leaves[n], steps) for n, steps in self.results)
    handles = [Tensor._at(u, line) for u in nodes]
    self.routine.tie(handles, line)
    return filled(self.routine.result, iter(handles))
