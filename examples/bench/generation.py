"""Tokens per second of a GPT-2 that generates, one after another from a cache, in float32 and with weights kept as
bfloat16, int8 and int4; and PyTorch's, with a cache of its own. The logits are compared first, and the time of a step
is a median, as is a ratio.

python examples/bench/generation.py --model gpt2
"""

import sys
import time
from pathlib import Path

import numpy as np
from common import arguments, error, peer, settle, show

sys.path.insert(0, str(Path(__file__).parent.parent))

from generate import Generator
from gpt2 import GPT2, INTEGERS, MODELS, quantized, sized

from mini import Tensor, dtypes, nn

OFF = {
  "bfloat16": 0.05,
  "int8": 0.15,
  "int4": 1.0,
}  # by how much logits of random weights may differ, at most
COUNTED = 14  # tokens of a block, after two


def torch_generator(torch, weights, config):
  """The same model in PyTorch: a function that takes tokens and gives the next one's logits,
  with keys and values kept."""
  f = torch.nn.functional
  w = {name: torch.from_numpy(a) for name, a in weights.items()}
  heads, width = config.heads, config.width // config.heads
  keys, values = ([torch.zeros(1, heads, config.block, width) for _ in range(config.layers)] for _ in "kv")
  length = 0

  def norm(x, name):
    return f.layer_norm(x, (config.width,), w[f"{name}.weight"], w[f"{name}.bias"])

  def linear(x, name):
    return torch.addmm(w[f"{name}.bias"], x, w[f"{name}.weight"])

  @torch.no_grad()
  def step(tokens):
    nonlocal length
    t, start = len(tokens), length
    length += t
    x = w["wte.weight"][tokens] + w["wpe.weight"][start:length]
    for n in range(config.layers):
      h = f"h.{n}"
      q, k, v = linear(norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn").view(t, 3, heads, width).permute(1, 2, 0, 3)
      keys[n][0, :, start:length], values[n][0, :, start:length] = k, v
      y = f.scaled_dot_product_attention(
        q[None], keys[n][:, :, :length], values[n][:, :, :length], is_causal=t > 1
      )
      x = x + linear(y[0].transpose(0, 1).reshape(t, -1), f"{h}.attn.c_proj")
      y = f.gelu(linear(norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc"), approximate="tanh")
      x = x + linear(y, f"{h}.mlp.c_proj")
    return (norm(x[-1:], "ln_f") @ w["wte.weight"].T)[0].numpy()

  return step


def main() -> None:
  args = arguments(
    __doc__,
    ("--model", {"default": "gpt2", "choices": sorted(MODELS)}),
    ("--layers", {"type": int, "help": "of it (as many as it has)"}),
    ("--tokens", {"type": int, "default": 48, "help": "that are timed, of each (%(default)s)"}),
    ("--prompt", {"type": int, "default": 32, "help": "tokens before (%(default)s)"}),
  )
  config = sized(args.model, layers=args.layers) if args.layers else MODELS[args.model]
  model = GPT2(config)
  Tensor.realize(*model.parameters())
  weights = {name: p.numpy() for name, p in model.named_parameters()}
  steps = {"mini": Generator(model).logits}
  if torch := peer("torch"):
    steps["torch"] = torch_generator(torch, weights, config)
  for kept in OFF:
    small = GPT2(config)
    nn.state.load_state_dict(small, {name: Tensor(a) for name, a in weights.items()})
    small = quantized(small, *INTEGERS[kept]) if kept in INTEGERS else small.to(getattr(dtypes, kept))
    steps[f"mini, {kept} weights"] = Generator(small).logits
  rng = np.random.default_rng(0)
  prompt = rng.integers(config.vocabulary, size=args.prompt).tolist()
  logits = {name: step(prompt) for name, step in steps.items()}
  times: dict[str, list[float]] = {name: [] for name in steps}
  found: dict[str, float] = {}
  for n in range(-(-args.tokens // COUNTED)):
    tokens = rng.integers(config.vocabulary, size=(COUNTED + 2, 1)).tolist()
    for name, step in steps.items():
      settle()
      for token in tokens:
        start = time.perf_counter()
        logits[name] = step(token)
        times[name].append(time.perf_counter() - start)
      del times[name][-COUNTED - 2 : -COUNTED]
    if "torch" in steps:
      assert error(logits["mini"], logits["torch"].astype(np.float64)) < 1e-4, n
    for kept, most in OFF.items():
      assert error(logits[f"mini, {kept} weights"], logits["mini"].astype(np.float64)) < most, n
  found["gb"] = 4e-9 * (
    sum(a.size for a in weights.values()) - config.block * config.width
  )  # read for each token
  for name, t in times.items():
    found[f"ms a token, {name}"] = float(np.median(t)) * 1e3
    found[f"tokens/s, {name}"] = 1e3 / found[f"ms a token, {name}"]
    found[f"ms at best, {name}"] = min(t) * 1e3
  # Ratios are of blocks in one round, and the middle one: memory may be fast in one round and slow in the next.
  blocks = {name: np.median(np.reshape(t, (-1, COUNTED)), 1) for name, t in times.items()}
  if "torch" in steps:
    found["times torch"] = float(np.median(blocks["torch"] / blocks["mini"]))
  for kept in OFF:
    found[f"{kept}, times float32"] = float(np.median(blocks["mini"] / blocks[f"mini, {kept} weights"]))
  show(found, args)


if __name__ == "__main__":
  main()
