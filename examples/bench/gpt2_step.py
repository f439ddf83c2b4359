"""A training step of GPT-2 124M beside PyTorch's: float32, B=4, T=64, AdamW over all parameters, the loss read each step.

Each library has a process of its own; they take steps in turns, from the same weights and data, and their losses are
compared. Before that, the time from the start of a process to its first loss: with an empty cache, and with a full one.

  python examples/bench/gpt2_step.py --json        one line, with `ms_median`
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import arguments, peer, show

sys.path.insert(0, str(Path(__file__).parent.parent))
B, T, LR = 4, 64, 1e-4


def batch(n: int, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
  """tokens and targets of step n: i64[B, T] each"""
  both = np.random.default_rng(n).integers(0, vocabulary, (B, T + 1))
  return both[:, :-1], both[:, 1:]


def weights(shapes: dict[str, tuple[int, ...]]):
  """(name, f32 array) of each parameter: the same for both."""
  rng = np.random.default_rng(0)
  for name, shape in sorted(shapes.items()):
    made = rng.standard_normal(shape, np.float32) * np.float32(0.02)
    yield name, made + np.float32(1) if "ln_" in name and name.endswith("weight") else made


# ---------------------------------------------------------------- the two workers


def ours(config, same: bool, dtype: str = "float32"):
  """A function that takes step n and gives its loss, and one that tells figures. dtype: of the parameters."""
  from gpt2 import GPT2

  from mini import Tensor, dtypes, jit, nn, stats

  model = GPT2(config)
  if dtype != "float32":
    model.to(getattr(dtypes, dtype))
  named = nn.state.get_state_dict(model)
  if same:
    for name, a in weights({name: t.shape for name, t in named.items()}):
      named[name].assign(Tensor(a).cast(named[name].dtype)).realize()
  Tensor.realize(*named.values())
  optimizer = nn.optim.AdamW(list(model.parameters()), lr=LR, weight_decay=0.0)

  @jit
  def step(x, y):
    optimizer.zero_grad()
    loss = model.loss(x, y)
    loss.backward()
    optimizer.step()
    return loss

  seen = [0, 0]

  def run(n: int) -> float:
    before = stats.kernels
    x, y = batch(n, config.vocabulary)
    loss = step(Tensor(x), Tensor(y)).item()
    seen[:] = [stats.kernels - before, stats.bytes_peak]
    return loss

  return run, lambda: {"kernels": seen[0], "peak_bytes_of_tensors": seen[1]}


def theirs(config, same: bool, dtype: str = "float32", device: str = "cpu", compiled: bool = False):
  """The same of PyTorch. compiled: by torch.compile."""
  import torch
  from torch_gpt2 import loss

  if compiled:
    loss = torch.compile(loss)

  c = config.width
  shapes = {
    "wte.weight": (config.vocabulary, c),
    "wpe.weight": (config.block, c),
    "ln_f.weight": (c,),
    "ln_f.bias": (c,),
  }
  for n in range(config.layers):
    for name, i, o in (
      ("attn.c_attn", 1, 3),
      ("attn.c_proj", 1, 1),
      ("mlp.c_fc", 1, 4),
      ("mlp.c_proj", 4, 1),
    ):
      shapes.update({f"h.{n}.{name}.weight": (i * c, o * c), f"h.{n}.{name}.bias": (o * c,)})
    shapes.update({f"h.{n}.{name}.{part}": (c,) for name in ("ln_1", "ln_2") for part in ("weight", "bias")})
  where = {"device": device, "dtype": getattr(torch, dtype)}
  if same:
    w = {name: torch.from_numpy(a).to(**where).requires_grad_() for name, a in weights(shapes)}
  else:
    w = {
      name: torch.empty(shape, **where).normal_(0, 0.02).requires_grad_() for name, shape in shapes.items()
    }
  optimizer = torch.optim.AdamW(w.values(), lr=LR, weight_decay=0.0, fused=True)

  def run(n: int) -> float:
    x, y = (torch.from_numpy(a).to(device) for a in batch(n, config.vocabulary))
    optimizer.zero_grad()
    value = loss(w, x, y, config.heads)
    value.backward()
    optimizer.step()
    return value.item()

  return run, dict


def sizes(name: str):
  """The configuration, without importing either library."""
  from types import SimpleNamespace

  table = {"gpt2": (12, 12, 768, 1024, 50257), "tiny": (2, 2, 64, 64, 256)}
  return SimpleNamespace(
    **dict(zip(("layers", "heads", "width", "block", "vocabulary"), table[name]), dropout=0.0)
  )


def work(library: str, model: str, same: bool) -> None:
  """Read step numbers from stdin, write losses, times and figures to stdout."""
  run, figures = (ours if library == "mini" else theirs)(sizes(model), same)
  for line in sys.stdin:
    start = time.perf_counter()
    loss = run(int(line))
    ms = (time.perf_counter() - start) * 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"loss": loss, "ms": ms, "peak_bytes": peak, **figures()}), flush=True)


# ---------------------------------------------------------------- the parent


class Worker:
  """A process of one library that takes steps when asked."""

  def __init__(self, library: str, model: str, same: bool, **env: str):
    self.start = time.perf_counter()
    command = [sys.executable, __file__, "--worker", library, "--model", model, *(["--same"] if same else [])]
    pipe = subprocess.PIPE
    self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, **env})

  def step(self, n: int) -> dict:
    assert self.process.stdin and self.process.stdout
    self.process.stdin.write(f"{n}\n")
    self.process.stdin.flush()
    line = self.process.stdout.readline()
    if not line:
      sys.exit(f"{' '.join(map(str, self.process.args))} ended: {self.process.wait()}")  # type: ignore[union-attr]
    return json.loads(line)

  def end(self) -> None:
    assert self.process.stdin
    self.process.stdin.close()
    self.process.wait()


def first_step(library: str, model: str, **env: str) -> float:
  """Seconds from the start of a process to its first loss."""
  worker = Worker(library, model, False, **env)
  worker.step(0)
  seconds = time.perf_counter() - worker.start
  worker.end()
  return seconds


def main() -> None:
  flag = {"action": "store_true"}
  args = arguments(
    __doc__,
    ("--steps", {"type": int, "default": 10, "help": "timed, of each library"}),
    ("--no-first", {**flag, "help": "skip the times to the first step"}),
    ("--no-peer", {**flag, "help": "ours alone"}),
    ("--model", {"default": "gpt2", "choices": ("gpt2", "tiny")}),
    ("--worker", {"help": "mini or torch: be one of the two processes"}),
    ("--same", {**flag, "help": "for a worker: begin with the weights that both have"}),
  )
  if args.worker:
    return work(args.worker, args.model, args.same)
  libraries = ["mini", "torch"] if peer("torch") and not args.no_peer else ["mini"]
  result: dict = {}
  if not args.no_first:
    with tempfile.TemporaryDirectory() as cache:
      for name in ("cold", "warm"):
        result[f"first_step_{name}_s"] = round(first_step("mini", args.model, MINI_CACHE=cache), 2)
    for name in libraries[1:]:
      result[f"{name}_first_step_s"] = round(first_step(name, args.model), 2)

  workers = {name: Worker(name, args.model, True) for name in libraries}
  rows: dict[str, list[dict]] = {name: [] for name in libraries}
  for n in range(args.steps + 2):  # two of them to warm up
    for name, worker in workers.items():
      rows[name].append(worker.step(n))
  for worker in workers.values():
    worker.end()
  for name in libraries:
    own = "" if name == "mini" else f"{name}_"
    ms = [row["ms"] for row in rows[name][2:]]
    result[f"{own}ms_median"] = round(statistics.median(ms), 2)
    result[f"{own}ms_best"] = round(min(ms), 2)
    result.update({own + key: value for key, value in rows[name][-1].items() if key not in ("ms", "loss")})
    result[f"{own}loss"] = rows[name][-1]["loss"]
  if "torch" in rows:
    pairs = zip(rows["mini"], rows["torch"])
    result["loss_difference"] = max(abs(a["loss"] - b["loss"]) for a, b in pairs)
    result["times_torch"] = round(result["ms_median"] / result["torch_ms_median"], 3)
    assert result["loss_difference"] < 1e-3, f"the losses differ: {result}"
  show(result, args)


if __name__ == "__main__":
  main()
