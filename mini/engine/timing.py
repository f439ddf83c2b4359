"""A process that times recipes of kernels: what one of them does wrong, it does here. `python -m mini.engine.timing`
reads jobs as lines of JSON from its input, and answers with a line for each recipe. engine/search.py starts it, and
ends it.

A recipe is compared with a base: first what it computes, on random inputs; then its time, in turns with the base, so
that both see the same machine. A recipe that takes longer than its limit ends the process (SIGALRM), whatever it is
doing.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mini.codegen.recipe import RecipeError, apply
from mini.engine.device import Device, Opened
from mini.engine.launch import TOLERANCE, difference, interface, random_array
from mini.engine.program import Compiled, cost, rendered
from mini.engine.search import Timing
from mini.ir.kernel import guarded, params_of
from mini.ir.uop import UOp
from mini.text.parser import parse
from mini.types import AxisError, from_storage, to_storage
from runtime.base import Call, DeviceError

BATCH_SECONDS = 1e-3  # of one of the turns, at least: as many calls as that takes
PAIRS, PAIR_SECONDS = 25, 0.3  # turns of both, at most
HOPELESS = 1.15  # times the base's time: three turns are enough


class Bench:
  """A kernel with memory for it, and the functions of its recipes."""

  def __init__(self, kernel: UOp, recipes: list[str], opened: Opened):
    self.opened, self.shim = opened, opened.shim
    self.params = params_of(kernel)
    memory, rng = interface(kernel), np.random.default_rng(0)
    self.data = {m.name: random_array(m, memory, rng) for m in memory}
    self.written = [m for m in memory if m.where != "in"]
    self.slots = {m.name: n for n, m in enumerate(memory)}
    self.handles = [self.shim.alloc(max(1, self.raw(m.name, m.dtype).nbytes)) for m in memory]
    for m in memory:
      self.shim.upload(self.handles[self.slots[m.name]], self.raw(m.name, m.dtype))
    self.made: dict[str, Compiled | str] = {r: self.compiled(kernel, r) for r in recipes}
    self.functions = opened.build([c.code for c in self.made.values() if isinstance(c, Compiled)])

  def raw(self, name: str, dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(to_storage(self.data[name], dtype))

  def compiled(self, kernel: UOp, recipe: str) -> Compiled | str:
    """The kernel with a recipe, or why there is none."""
    try:
      return rendered(apply(kernel, recipe), recipe, self.opened, cost(kernel))
    except (RecipeError, DeviceError) as e:
      return str(e)

  def sequence(self, recipe: str, times: int) -> Any:
    c = self.made[recipe]
    assert isinstance(c, Compiled)
    args = [(self.slots[p.arg[0]], 0) for p in params_of(c.kernel)] + [(-1, 0)] * guarded(c.kernel)
    return self.shim.sequence([Call(self.functions[c.code], args, c.extent, c.nanoseconds, c.group)] * times)

  def results(self, recipe: str) -> dict[str, np.ndarray]:
    """What it writes, from the same beginning each time."""
    for m in self.written:
      self.shim.upload(self.handles[self.slots[m.name]], self.raw(m.name, m.dtype))
    if self.sequence(recipe, 1).run(self.handles):
      raise AxisError("an index is out of bounds")
    found = {}
    for m in self.written:
      got = self.shim.download(self.handles[self.slots[m.name]], self.raw(m.name, m.dtype).nbytes)
      found[m.name] = from_storage(got.view(m.dtype.storage), m.dtype).reshape(m.shape)
    return found

  def apart(self, want: dict[str, np.ndarray], recipe: str) -> str:
    """By how much it computes something else; "" if it does not."""
    got = self.results(recipe)
    for m in self.written:
      error = difference(want[m.name], got[m.name])
      if error > TOLERANCE.get(m.dtype, 0):
        return f"its result differs by {error:.1e}"
    return ""

  def turns(self, base: str, recipe: str) -> Timing:
    once = self.timed(self.sequence(base, 1))
    once = min(once, self.timed(self.sequence(base, 1)))
    times = max(1, min(1000, int(BATCH_SECONDS / max(once, 1e-7))))
    both = [self.sequence(base, times), self.sequence(recipe, times)]
    pairs: list[tuple[float, float]] = []
    start = time.perf_counter()
    while len(pairs) < 3 or (len(pairs) < PAIRS and time.perf_counter() - start < PAIR_SECONDS):
      order = (0, 1) if len(pairs) % 2 else (1, 0)  # neither always comes second
      found = {n: self.timed(both[n]) / times for n in order}
      pairs.append((found[0], found[1]))
      if len(pairs) == 3 and min(b for _, b in pairs) > HOPELESS * min(a for a, _ in pairs):
        break
    best = min(b for _, b in pairs)
    middle = statistics.median(b / a for a, b in pairs)
    return Timing(best, max(middle, best / min(a for a, _ in pairs)))

  def timed(self, sequence: Any) -> float:
    start = time.perf_counter()
    sequence.run(self.handles)
    return time.perf_counter() - start


def answers(job: dict[str, Any]) -> Iterator[Timing]:
  """A job's recipes against its base, one by one."""
  limit(job["limit"])
  bench = Bench(parse(job["kernel"]), [job["base"], *job["recipes"]], Device["CPU"])
  want = bench.results(job["base"])
  for recipe in job["recipes"]:
    limit(job["limit"])
    made = bench.made[recipe]
    wrong = made if isinstance(made, str) else bench.apart(want, recipe)
    yield Timing(0, 0, wrong) if wrong else bench.turns(job["base"], recipe)


def limit(seconds: float) -> None:
  """This process ends unless it sets another limit by then. No handler: C code does not come back to Python."""
  signal.signal(signal.SIGALRM, signal.SIG_DFL)
  signal.setitimer(signal.ITIMER_REAL, seconds)


def main() -> None:
  out = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)  # whatever else prints
  Device["CPU"].shim.cache = None  # what is timed once is not kept
  for line in sys.stdin:
    for found in answers(json.loads(line)):
      print(json.dumps(found), file=out, flush=True)
    limit(0)


if __name__ == "__main__":
  main()
