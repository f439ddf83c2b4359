"""A training step of a small GPT on one virtual CPU device, and on two that share its batch: milliseconds.

Each device has one core; the parameters are whole on both, and gradients are merged once in a step.
"""

import os
import sys
from pathlib import Path

import numpy as np
from common import arguments, in_turns, show

os.environ["MINI_THREADS"] = "1"  # of each device; mini reads it when it is imported
sys.path.insert(0, str(Path(__file__).parent.parent))
from gpt2 import GPT2, Config

from mini import Tensor, jit, nn, stats

CONFIG = Config(4, 4, 128, block=128, vocabulary=1024)
B = 8


def training(devices):
  """A function that takes a step and gives its loss: the same on any number of devices."""
  Tensor.manual_seed(0)
  model = GPT2(CONFIG)
  if len(devices) > 1:
    model.to(devices)
  optimizer = nn.optim.AdamW(model.groups(0.1), lr=1e-4)

  @jit
  def step(x, y):
    optimizer.zero_grad()
    loss = model.loss(x, y)
    loss.backward()
    nn.optim.clip_grad_norm(model.parameters(), 1.0)
    optimizer.step()
    return loss

  tokens = np.random.default_rng(0).integers(0, CONFIG.vocabulary, (B, CONFIG.block + 1))
  x, y = (Tensor(part).shard(devices, 0) for part in (tokens[:, :-1], tokens[:, 1:]))
  return lambda: step(x, y).item()


def main() -> None:
  args = arguments(__doc__)
  one, two = training(("CPU",)), training(("CPU", "CPU:1"))
  before = stats.copies
  differences = [abs(one() - two()) for _ in range(5)]
  assert max(differences) < 1e-5, f"the losses differ: {differences}"
  result = {"loss_difference": max(differences), "copies in a step": (stats.copies - before) / 5}
  times = in_turns({"one": one, "two": two}, args.seconds)
  result.update({f"ms, {name}": t.median * 1e3 for name, t in times.items()})
  show({**result, "times faster": times["one"].median / times["two"].median}, args)


if __name__ == "__main__":
  main()
