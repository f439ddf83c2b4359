"""A training step of GPT-2 124M beside PyTorch's: float32, B=4, T=64, AdamW over all parameters,
the loss read each step.

python examples/bench/gpt2_step.py --json           one line, with `ms_median`
python examples/bench/gpt2_step.py --model small    6 layers, 384 wide, B=8, T=256
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import training

sys.path.insert(0, str(Path(__file__).parent.parent))
LR = 1e-4
# layers, heads, width, the longest text, vocabulary; batch and tokens of a step
MODELS = {
  "gpt2": (12, 12, 768, 1024, 50257, 4, 64),
  "small": (6, 6, 384, 256, 65, 8, 256),
  "tiny": (2, 2, 64, 64, 256, 4, 64),
}


def sizes(name: str) -> SimpleNamespace:
  """The configuration, without importing either library."""
  names = ("layers", "heads", "width", "block", "vocabulary", "batch", "tokens")
  return SimpleNamespace(**dict(zip(names, MODELS[name])), dropout=0.0)


def amounts(config) -> dict[str, float]:
  """The least that a step is: products of 6 operations for each weight and token, and of attention below its diagonal;
  each parameter, its gradient and two moments read, and written but for the gradient."""
  c, v = config.width, config.vocabulary
  weights, tokens = 12 * config.layers * c * c + c * v, config.batch * config.tokens
  return {
    "gflop": 6e-9 * tokens * (weights + config.layers * c * config.tokens),
    "gb": 28e-9 * (weights + config.block * c),
  }


def batch(n: int, config) -> tuple[np.ndarray, np.ndarray]:
  """tokens and targets of step n: i64[B, T] each"""
  both = np.random.default_rng(n).integers(0, config.vocabulary, (config.batch, config.tokens + 1))
  return both[:, :-1], both[:, 1:]


def weights(shapes: dict[str, tuple[int, ...]]):
  """(name, f32 array) of each parameter: the same for both."""
  rng = np.random.default_rng(0)
  for name, shape in sorted(shapes.items()):
    made = rng.standard_normal(shape, np.float32) * np.float32(0.02)
    yield name, made + np.float32(1) if "ln_" in name and name.endswith("weight") else made


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
    x, y = batch(n, config)
    loss = step(Tensor(x), Tensor(y)).item()
    seen[:] = [stats.kernels - before, stats.bytes_peak]
    return loss

  return run, lambda: {"kernels": seen[0], "peak_bytes_of_tensors": seen[1], **amounts(config)}


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
    x, y = (torch.from_numpy(a).to(device) for a in batch(n, config))
    optimizer.zero_grad()
    value = loss(w, x, y, config.heads)
    value.backward()
    optimizer.step()
    return value.item()

  return run, dict


if __name__ == "__main__":
  training.main(
    __doc__,
    {
      "mini": lambda args: ours(sizes(args.model), args.same),
      "torch": lambda args: theirs(sizes(args.model), args.same),
      "compile": lambda args: theirs(sizes(args.model), args.same, compiled=True),
    },
    ("--model", {"default": "gpt2", "choices": MODELS}),
  )
