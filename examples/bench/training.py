"""Training steps beside other libraries': each has a process of its own, and they take steps in turns, in blocks, from
the same weights and data; their losses are compared. Before that, the time from the start of a process to its first
loss: with an empty cache of ours, and with a full one.
What is trained, a script says (gpt2_step.py, mlp_step.py, convnet.py).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, environment, settle, show

Step = Callable[[int], float]  # the number of a step -> its loss
Made = tuple[Step, Callable[[], dict]]  # and a function that tells figures
Make = Callable[[argparse.Namespace], Made]

NEEDS = {"mini": "mini", "torch": "torch", "compile": "torch"}


class Worker:
  """A process of one library that takes steps when asked."""

  def __init__(self, library: str, args: argparse.Namespace, same: bool, **env: str):
    self.start = time.perf_counter()
    python = args.tinygrad if library == "tinygrad" else sys.executable
    command = [python, *sys.argv, "--worker", library, *(["--same"] if same else [])]
    pipe = subprocess.PIPE
    # a Python of its own need not have mini, whose `stats` the benchmarks import
    other = {"DEV": "CPU", "PYTHONPATH": str(Path(__file__).parents[2])} if library == "tinygrad" else {}
    where = environment(**env, **other)
    self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=where)

  def steps(self, first: int, count: int) -> list[dict]:
    assert self.process.stdin and self.process.stdout
    self.process.stdin.write(f"{first} {count}\n")
    self.process.stdin.flush()
    line = self.process.stdout.readline()
    if not line:
      sys.exit(f"{' '.join(map(str, self.process.args))} ended: {self.process.wait()}")  # type: ignore[union-attr]
    return json.loads(line)

  def rest(self) -> None:
    """After `steps`: until its threads, which may wait for more work by spinning, are at rest."""
    assert self.process.stdout
    self.process.stdout.readline()

  def end(self) -> None:
    assert self.process.stdin
    self.process.stdin.close()
    self.process.wait()


def classifiers(
  layers: Callable[[Any], list],
  weights: Callable[[], list[np.ndarray]],
  batches: list[tuple[np.ndarray, np.ndarray]],
  lr: float,
  amounts: dict[str, float],
  tinygrad: Callable[[list[np.ndarray]], tuple[list, Callable]],
) -> dict[str, Make]:
  """Training by Adam on the cross-entropy of batches, in each library.

  layers: of nn, ours or PyTorch's, whose names are the same. weights: of those that have any, in their order; biases
  begin as zeros. tinygrad: its parameters and its model, from the weights.
  """

  def ours(args: argparse.Namespace) -> Made:
    from mini import Tensor, jit, nn, stats

    made = layers(nn)
    for layer, w in zip(trained(made), weights()):
      layer.weight.assign(Tensor(w)).realize()
      layer.bias.assign(Tensor.zeros(*layer.bias.shape)).realize()
    model = nn.Sequential(*made)
    optimizer = nn.optim.Adam(list(model.parameters()), lr=lr)
    kernels = 0

    @jit
    def step(x, y):
      optimizer.zero_grad()
      loss = model(x).cross_entropy(y)
      loss.backward()
      optimizer.step()
      return loss

    def run(n: int) -> float:
      nonlocal kernels
      before = stats.kernels
      loss = step(*map(Tensor, batches[n % len(batches)])).item()
      kernels = stats.kernels - before
      return loss

    return run, lambda: {"kernels": kernels, **amounts}

  def theirs(args: argparse.Namespace, compiled: bool = False) -> Made:
    import torch

    made = layers(torch.nn)
    with torch.no_grad():
      for layer, w in zip(trained(made), weights()):
        layer.weight.copy_(torch.from_numpy(w))
        layer.bias.zero_()
    model = torch.nn.Sequential(*made)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)

    def forward(x, y):
      return torch.nn.functional.cross_entropy(model(x), y)

    loss_of = torch.compile(forward) if compiled else forward

    def run(n: int) -> float:
      optimizer.zero_grad()
      loss = loss_of(*map(torch.from_numpy, batches[n % len(batches)]))
      loss.backward()
      optimizer.step()
      return loss.item()

    return run, dict

  def tinygrads(args: argparse.Namespace) -> Made:
    from tinygrad import Context, Tensor, TinyJit, nn

    parameters, model = tinygrad(weights())
    optimizer = nn.optim.Adam(parameters, lr=lr)

    @TinyJit
    def step(x, y):
      with Context(TRAINING=1):
        optimizer.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    return lambda n: step(*map(Tensor, batches[n % len(batches)])).item(), dict

  return {
    "mini": ours,
    "torch": theirs,
    "compile": lambda args: theirs(args, compiled=True),
    "tinygrad": tinygrads,
  }


def trained(layers: list) -> list:
  """Those that `classifiers` gives weights: linear layers and convolutions."""
  return [x for x in layers if type(x).__name__ in ("Linear", "Conv2d")]


def work(made: Made) -> None:
  """Read the first step and how many from stdin; write losses, times and figures to stdout, and a line when at rest."""
  step, figures = made
  for line in sys.stdin:
    first, count = map(int, line.split())
    rows = []
    for n in range(first, first + count):
      start, cpu = time.perf_counter(), time.process_time()
      loss = step(n)
      rows.append({
        "loss": loss,
        "ms": (time.perf_counter() - start) * 1e3,
        "cpu_ms": (time.process_time() - cpu) * 1e3,
      })  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    rows[-1].update(peak_bytes=peak, **figures())
    print(json.dumps(rows), flush=True)
    settle()
    print(flush=True)


def first_step(library: str, args: argparse.Namespace, **env: str) -> float:
  """Seconds from the start of a process to its first loss."""
  worker = Worker(library, args, False, **env)
  worker.steps(0, 1)
  seconds = time.perf_counter() - worker.start
  worker.end()
  return seconds


def main(
  description: str | None,
  libraries: dict[str, Make],
  *more: tuple[str, dict[str, Any]],
  block: int = 1,
  tolerance: float = 1e-3,
) -> None:
  """libraries: how each of mini, torch, compile (torch.compile) and tinygrad makes its step. block: steps in a turn.
  tolerance: by how much losses may differ."""
  flag = {"action": "store_true"}
  args = arguments(
    description,
    ("--steps", {"type": int, "default": 10, "help": "timed, of each library"}),
    ("--block", {"type": int, "default": block, "help": "steps in a turn"}),
    ("--no-first", {**flag, "help": "skip the times to the first step"}),
    ("--no-peer", {**flag, "help": "ours alone"}),
    ("--worker", {"choices": libraries, "help": "be one of the processes"}),
    ("--same", {**flag, "help": "for a worker: begin with the weights that all have"}),
    *more,
  )
  if args.worker:
    return work(libraries[args.worker](args))
  asked = {"mini": True, "torch": not args.no_peer, "compile": args.compile, "tinygrad": bool(args.tinygrad)}
  names = [name for name in libraries if asked[name] and (name == "tinygrad" or find_spec(NEEDS[name]))]
  result: dict = {}
  if not args.no_first:
    with tempfile.TemporaryDirectory() as cache:
      for name in ("cold", "warm"):
        result[f"first_step_{name}_s"] = round(first_step("mini", args, MINI_CACHE=cache), 2)
      for name in names[1:]:
        fresh = os.path.join(cache, name)  # what torch.compile and tinygrad keep
        keep = {"TORCHINDUCTOR_CACHE_DIR": fresh, "XDG_CACHE_HOME": fresh}
        result[f"{name}_first_step_s"] = round(first_step(name, args, **keep), 2)

  workers = {name: Worker(name, args, True) for name in names}
  rows: dict[str, list[dict]] = {name: [] for name in names}
  count, warm = args.block, max(2, args.block)
  for n in range(0, warm + args.steps, count):
    for name, worker in workers.items():
      rows[name] += worker.steps(n, min(count, warm + args.steps - n))
      worker.rest()
  for worker in workers.values():
    worker.end()
  for name in names:
    own = "" if name == "mini" else f"{name}_"
    for unit in ("ms", "cpu_ms"):
      times = [row[unit] for row in rows[name][warm:]]
      result[f"{own}{unit}_median"] = round(statistics.median(times), 3)
      result[f"{own}{unit}_best"] = round(min(times), 3)
    last = rows[name][-1]
    result.update({own + key: value for key, value in last.items() if key not in ("ms", "cpu_ms")})
  for name in names[1:]:
    pairs = zip(rows["mini"], rows[name])
    worst = max(abs(a["loss"] - b["loss"]) for a, b in pairs)
    result["loss_difference"] = max(worst, result.get("loss_difference", 0.0))
    result[f"times_{name}"] = round(result["ms_median"] / result[f"{name}_ms_median"], 3)
  assert result.get("loss_difference", 0.0) < tolerance, f"the losses differ: {result}"
  show(result, args)
