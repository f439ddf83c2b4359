"""The corpus: the graph, the schedule, the kernels and the source of training steps and of networks, as text, with the time
of each kernel. Who changes a pass writes it before and after, on one machine, and compares.

  python examples/bench/corpus.py /tmp/before
  python examples/bench/corpus.py /tmp/after --beside /tmp/before     what differs, and the kernels that became slower
  python examples/bench/corpus.py /tmp/after --only GPT-2 --rounds 0  texts alone

Of each program it also says where what SHOW prints is not, byte for byte, what the list of passes makes of its graph.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import convnet
import gpt2_step
import models
import numpy as np
from common import chosen

from mini import Context, Device, Tensor, jit, nn
from mini.engine.passes import kernels_of, passes, run_pass
from mini.engine.program import machine_of
from mini.nn import functional
from mini.text.parser import parse_file
from mini.text.printer import text

STAGES = {"graph": "graph.mini", "schedule": "schedule.mini", "kernel": "kernels.mini", "source": "source.c"}
LAYERS, VOCABULARY = 2, 8192  # of a GPT-2 as wide as the one of 124M: every layer has the same kernels
TIME = re.compile(r"^# (\S+) +([\d.]+) ms", re.MULTILINE)
DIGEST = re.compile(r"_[0-9a-f]{10}\b")  # that ends a kernel's name, of its source
NUMBER = re.compile(
  r"^(graph|schedule|source) g\d+", re.MULTILINE
)  # of a program, counts what was shown before
SLOWER = 1.1  # times as long: a kernel that is told,
SHARE = 0.01  # where it loses so much of the step


def language_model(tokens: int) -> Callable[[], Any]:
  sizes = LAYERS, 12, 768, 1024, VOCABULARY, 1, tokens
  gpt2_step.MODELS["corpus"] = sizes
  config = gpt2_step.sizes("corpus")
  step, _ = gpt2_step.ours(config, same=False)
  return lambda: step(0)


def network(name: str, layers: Any, x: np.ndarray) -> Callable[[], Any]:
  """A training step: a cross entropy, or a mean square of images."""
  optimizer = nn.optim.SGD(layers.parameters(), lr=1e-3, momentum=0.9)
  a, labels = Tensor(x), Tensor(np.arange(x.size if name == "LSTM" else len(x)) % 10)

  @jit
  def step(a: Tensor, labels: Tensor) -> Tensor:
    optimizer.zero_grad()
    out = layers(a)
    loss = out.square().mean() if out.ndim > 2 else functional.cross_entropy(out, labels)
    loss.backward()
    optimizer.step()
    return loss

  return lambda: step(a, labels).item()


def programs() -> dict[str, Callable[[], Callable[[], Any]]]:
  """By name, what makes a step."""
  found: dict[str, Callable[[], Callable[[], Any]]] = {
    f"GPT-2 of {n} tokens": lambda n=n: language_model(n) for n in (64, 256, 1024)
  }
  image = lambda: np.random.default_rng(0).standard_normal((32, 1, 28, 28), np.float32)
  found["convnet"] = lambda: network("convnet", nn.Sequential(*convnet.layers(nn)), image())
  for name, make in models.MODELS.items():
    found[name] = lambda name=name, make=make: network(name, make(nn), models.given(name, 2, 96))
  return found


def said(call: Callable[[], Any], **settings: Any) -> str:
  """What a call prints of itself under settings."""
  with contextlib.redirect_stderr(io.StringIO()) as found, Context(**settings):
    call()
  return found.getvalue()


def times(call: Callable[[], Any], rounds: int) -> list[tuple[str, float]]:
  """(kernel, the least of its times in ms) of each launch, in order."""
  runs = [[(name, float(ms)) for name, ms in TIME.findall(said(call, DEBUG=2))] for _ in range(rounds)]
  return [(each[0][0], min(ms for _, ms in each)) for each in zip(*runs)]


def write(folder: Path, call: Callable[[], Any], rounds: int) -> None:
  folder.mkdir(parents=True, exist_ok=True)
  for _ in range(3):  # it is captured, and its places are settled
    call()
  for stage, file in STAGES.items():
    (folder / file).write_text(said(call, SHOW=stage))
  (folder / "times.json").write_text(json.dumps(times(call, rounds)))


def unlisted(folder: Path) -> Iterator[str]:
  """The stages that are not what the list of passes makes of the graph."""
  shown = {stage: parse_file((folder / file).read_text()) for stage, file in STAGES.items()}
  table, found = passes(machine_of(Device["CPU"].shim.info)), shown["graph"]
  for name in ("simplify", "schedule", "recipe", "source"):
    found = run_pass(table[name], found)
    made = [k for p in found for k in kernels_of(p)] if name == "recipe" else found
    stage = "kernel" if name == "recipe" else name
    here, there = (
      [NUMBER.sub(r"\1 g", text(p)) for p in programs] for programs in (made, shown.get(stage, made))
    )
    if here != there:
      yield f"{stage}: SHOW prints other text than the list of passes makes"


def bare(printed: str) -> str:
  """Without digests of sources, and without the numbers of programs, which count what was shown before."""
  return NUMBER.sub(r"\1 g", DIGEST.sub("", printed))


def differing(before: Path, after: Path) -> Iterator[str]:
  """The stages of a program that differ, and where."""
  for stage, file in STAGES.items():
    a, b = (bare((folder / file).read_text()).splitlines() for folder in (before, after))
    if a != b:
      at = next((n for n, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
      yield f"{stage}: {len(a)} and {len(b)} lines, other ones from line {at + 1} on"


def slower(before: Path, after: Path) -> Iterator[str]:
  """What became of the times of the same kernels."""
  old, new = (json.loads((folder / "times.json").read_text()) for folder in (before, after))
  if not old or [DIGEST.sub("", name) for name, _ in old] != [DIGEST.sub("", name) for name, _ in new]:
    return
  ratios, whole = [b / a for (_, a), (_, b) in zip(old, new) if a and b], sum(ms for _, ms in old)
  yield f"kernels: {sum(ms for _, ms in new) / whole:.3f} of the time, {geometric_mean(ratios):.3f} in geometric mean"
  for (name, a), (_, b) in zip(old, new):
    if b > SLOWER * a and b - a > SHARE * whole:
      yield f"  {name}: {a:.3f} -> {b:.3f} ms"


def main() -> None:
  p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("folder", type=Path, help="where the texts go")
  p.add_argument("--beside", type=Path, help="a folder that an earlier tree has written")
  p.add_argument(
    "--only", default="", help="programs whose name contains one of these, with commas between them"
  )
  p.add_argument(
    "--rounds", type=int, default=5, help="runs of which the least time of each kernel counts; 0: none"
  )
  args = p.parse_args()
  if args.beside and not args.beside.is_dir():
    p.error(f"--beside {args.beside}: there is no such folder")
  for name, make in programs().items():
    if not chosen(name, args):
      continue
    folder = re.sub(r"\W+", "_", name)
    write(args.folder / folder, make(), args.rounds)
    said_otherwise = [*unlisted(args.folder / folder)]
    if args.beside is None:
      print("\n  ".join([name, *said_otherwise]), flush=True)
      continue
    both = args.beside / folder, args.folder / folder
    if not both[0].is_dir():
      print(f"{name}\n  {args.beside} has no texts of it", flush=True)
      continue
    found = [*differing(*both)] or ["the same text"]
    print("\n  ".join([name, *said_otherwise, *found, *slower(*both)]), flush=True)


if __name__ == "__main__":
  main()
