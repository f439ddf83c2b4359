"""What it costs to make a training step of GPT-2 ready to run:
CPU seconds of each part, for models of more and more layers.

Twice the layers should take twice the time: `ratio` is that of the last two models, of all parts but the C compiler,
which sees a kernel once however often it is launched. Nothing is launched, so weights are small: the graph is that of
any width.

  python examples/bench/compile.py --json        one line, with `ratio`
"""

from __future__ import annotations

import functools
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
from common import arguments, show

sys.path.insert(0, str(Path(__file__).parent.parent))
LAYERS = (2, 6, 12, 24)
PARTS = {  # each without those that it calls
  "graph": ("mini.compiled_function", "Routine.__init__"),
  "gradient": ("mini.tensor", "Tensor.backward"),
  "program": ("mini.engine.program", "Program.__init__"),
  "simplify": ("mini.engine.program", "simplify"),
  "schedule": ("mini.engine.program", "scheduled"),
  "recipes": ("mini.engine.program", "write_recipe"),
  "render": ("mini.engine.program", "rendered"),
  "load": ("mini.engine.device", "Opened.build"),
}


def cpu_seconds() -> float:
  """Of this process and its ended children."""
  return time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def timed(spent: Counter, part: str, fn: Callable) -> Callable:
  @functools.wraps(fn)
  def run(*args, **kwargs):
    inner, start = sum(spent.values()), cpu_seconds()
    try:
      return fn(*args, **kwargs)
    finally:
      spent[part] += cpu_seconds() - start - (sum(spent.values()) - inner)

  return run


def training_step(layers: int, width: int = 64):
  """(a step of a GPT-2, its tokens): what `jit` would capture."""
  from gpt2 import GPT2, Config

  from mini import Tensor, nn

  model = GPT2(Config(layers, 4, width, 64, 512))
  params = list(model.parameters())
  Tensor.realize(*params)
  optimizer = nn.optim.AdamW(params, lr=1e-4)

  def step(tokens):
    optimizer.zero_grad()
    loss = model.loss(tokens, tokens)
    loss.backward()
    optimizer.step()
    return loss

  return step, Tensor(np.zeros((4, 64), np.int32)).realize()


def captured(step, tokens):
  """A step, ready to run."""
  from mini.compiled_function import Routine

  return Routine(step, ((tokens,), {}), [tokens], set(), "CPU")


def capture(layers: int):
  return captured(*training_step(layers))


def measured(layers: int, spent: Counter) -> dict[str, float]:
  from mini.engine.device import Device

  step, tokens = training_step(layers)
  cpu = Device["CPU"]
  cpu.compiled.clear()
  cpu.functions.clear()
  cpu.shim.libraries.clear()
  spent.clear()
  routine = captured(step, tokens)
  found = {part: round(spent[part], 3) for part in PARTS}
  return {"kernels": len(routine.program.runs), **found, "all": round(sum(spent.values()), 3)}


def main() -> None:
  args = arguments(__doc__)
  from mini.config import Context

  spent: Counter = Counter()
  for part, (module, name) in PARTS.items():
    *path, last = name.split(".")
    owner = functools.reduce(getattr, path, import_module(module))
    setattr(owner, last, timed(spent, part, getattr(owner, last)))
  result: dict = {}
  python = {}
  with Context(CACHE="0"):  # the C compiler is part of it, and nothing is found
    capture(1)  # opens the device, imports
    for n in LAYERS:
      rows = [measured(n, spent) for _ in range(3)]
      best = {part: min(row[part] for row in rows) for part in rows[0]}
      python[n] = best["all"] - best["load"]
      result.update({f"{n}_{part}": value for part, value in best.items()})
  result["ratio"] = round(python[LAYERS[-1]] / python[LAYERS[-2]], 2)
  show(result, args)


if __name__ == "__main__":
  main()
