"""What it costs to make a training step ready to run: CPU seconds of each part, for models of more and more layers.

Twice the layers should take twice the time: `ratio` is that of the last two models, of all parts but the C compiler,
which sees a kernel once however often it is launched. Nothing is launched, so weights are small: the graph is that of
any width.

  python examples/bench/compile.py --json        GPT-2, in one line, with `ratio`
  python examples/bench/compile.py --model rnn   steps of a recurrent network; or resnet, blocks in each of four stages
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


def supervised(model, x):
  """(a step of SGD on what a model gives, its input)"""
  from mini import Tensor, nn

  params = list(model.parameters())
  Tensor.realize(*params)
  optimizer = nn.optim.SGD(params, lr=0.1, momentum=0.9)

  def step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss

  return step, Tensor(x).realize()


def recurrent(steps: int):
  """An RNN's cell, called in a loop of Python."""
  from mini import Tensor, nn

  class Unrolled(nn.Module):
    def __init__(self):
      super().__init__()
      self.cell = nn.RNNCell(32, 64)

    def forward(self, x):
      h = Tensor.zeros(4, 64)
      for t in range(steps):
        h = self.cell(x[t], h)
      return h

  return supervised(Unrolled(), np.zeros((steps, 4, 32), np.float32))


def residual(blocks: int):
  """A ResNet of 12 * blocks + 2 convolutions and products; ResNet-50 has 3, 4, 6 and 3 blocks in its stages."""
  from models import residual

  from mini import nn

  return supervised(residual(nn, (blocks,) * 4, 4), np.zeros((2, 3, 64, 64), np.float32))


MODELS = {  # each with how many of its layers
  "gpt2": (training_step, (2, 6, 12, 24)),
  "rnn": (recurrent, (100, 250, 500, 1000)),
  "resnet": (residual, (2, 4, 8)),
}


def captured(step, x):
  """A step, ready to run."""
  from mini.compiled_function import Routine

  return Routine(step, ((x,), {}), [x], set(), "CPU")


def capture(layers: int):
  return captured(*training_step(layers))


def measured(make: Callable, layers: int, spent: Counter) -> dict[str, float]:
  from mini.engine.device import Device

  step, x = make(layers)
  cpu = Device["CPU"]
  cpu.compiled.clear()
  cpu.functions.clear()
  cpu.shim.libraries.clear()
  spent.clear()
  routine = captured(step, x)
  found = {part: round(spent[part], 3) for part in PARTS}
  return {"kernels": len(routine.program.runs), **found, "all": round(sum(spent.values()), 3)}


def main() -> None:
  args = arguments(
    __doc__,
    ("--model", {"default": "gpt2", "choices": MODELS}),
    ("--layers", {"type": int, "nargs": "+", "help": "numbers of layers, steps or blocks"}),
  )
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
    make, sizes = MODELS[args.model]
    for n in args.layers or sizes:
      rows = [measured(make, n, spent) for _ in range(3)]
      best = {part: min(row[part] for row in rows) for part in rows[0]}
      python[n] = best["all"] - best["load"]
      result.update({f"{n}_{part}": value for part, value in best.items()})
  if len(python) > 1:
    last, before = [*python.values()][:-3:-1]
    result["ratio"] = round(last / before, 2)
  show(result, args)


if __name__ == "__main__":
  main()
