"""Random numbers, and the dropout of activations, beside PyTorch's and NumPy's: nanoseconds for an element. Before that,
the mean of what each makes is looked at."""

from __future__ import annotations

import numpy as np
from common import arguments, chosen, in_turns, peer, show

from mini import Tensor, jit

SHAPE = (8, 256, 768)  # of a GPT-2's activations
COUNT = int(np.prod(SHAPE))
KEPT = np.ones(SHAPE, np.float32)

# name, mean; ours, NumPy's, PyTorch's
WORK = [
  ("rand", 0.5, lambda x: Tensor.rand(*SHAPE), lambda rng: rng.random(SHAPE, np.float32),
   lambda torch, x: torch.rand(SHAPE)),
  ("randn", 0.0, lambda x: Tensor.randn(*SHAPE), lambda rng: rng.standard_normal(SHAPE, np.float32),
   lambda torch, x: torch.randn(SHAPE)),
  ("dropout", 1.0, lambda x: x.dropout(0.1, training=True), lambda rng: KEPT * (rng.random(SHAPE, np.float32) > 0.1) / 0.9,
   lambda torch, x: torch.nn.functional.dropout(x, 0.1)),
  ("bernoulli", 1.0, lambda x: x.bernoulli(), lambda rng: (rng.random(SHAPE, np.float32) < KEPT).astype(np.float32),
   lambda torch, x: torch.bernoulli(x)),
  ("randint", 4.5, lambda x: Tensor.randint(0, 10, SHAPE), lambda rng: rng.integers(0, 10, SHAPE),
   lambda torch, x: torch.randint(0, 10, SHAPE)),
]  # fmt: skip


def calls_of(ours, numpy, theirs):
  rng, x, jitted = np.random.default_rng(0), Tensor(KEPT).realize(), jit(ours)
  calls = {"mini": lambda: jitted(x), "numpy": lambda: numpy(rng)}
  if torch := peer("torch"):
    y = torch.from_numpy(KEPT)
    calls["torch"] = lambda: theirs(torch, y)
  return calls


def main() -> None:
  args = arguments(__doc__)
  found: dict[str, float] = {}
  for name, mean, *functions in WORK:
    if not chosen(name, args):
      continue
    calls = calls_of(*functions)
    for who, call in calls.items():
      made = call()
      made = np.asarray(made if isinstance(made, np.ndarray) else made.numpy(), np.float64)
      assert made.shape == SHAPE and abs(made.mean() - mean) < 0.02, (name, who, made.mean())
    for who, t in in_turns(calls, args.seconds, args.rounds).items():
      found[f"{name}, ns an element, {who}"] = t.median * 1e9 / COUNT
    if "torch" in calls:
      ours, torch = (found[f"{name}, ns an element, {who}"] for who in ("mini", "torch"))
      found[f"{name}, of torch's time"] = ours / torch
  show(found, args)


if __name__ == "__main__":
  main()
