"""What PyTorch makes of a small GPT-2: logits, gradients, the losses of ten AdamW steps.

`python test/gpt2_reference.py` writes them to fixtures/gpt2_small.npz, so that test_gpt2.py needs no PyTorch.
"""

import sys
from pathlib import Path

import numpy as np

HEADS, LAYERS, WIDTH, BLOCK, VOCABULARY = 2, 2, 16, 12, 61
FIXTURE = Path(__file__).parent / "fixtures" / "gpt2_small.npz"
ADAMW = {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8}
DECAY = 0.1


def weights(rng, layers=LAYERS, width=WIDTH, block=BLOCK, vocabulary=VOCABULARY):
  """Random weights under the published names, large enough that every part matters."""
  shapes = {"wte.weight": (vocabulary, width), "wpe.weight": (block, width)}
  for n in range(layers):
    for name, (i, o) in {
      "attn.c_attn": (1, 3),
      "attn.c_proj": (1, 1),
      "mlp.c_fc": (1, 4),
      "mlp.c_proj": (4, 1),
    }.items():
      shapes[f"h.{n}.{name}.weight"] = (i * width, o * width)
      shapes[f"h.{n}.{name}.bias"] = (o * width,)
    for name in ("ln_1", "ln_2"):
      shapes[f"h.{n}.{name}.weight"] = shapes[f"h.{n}.{name}.bias"] = (width,)
  shapes["ln_f.weight"] = shapes["ln_f.bias"] = (width,)
  made = {name: rng.standard_normal(s).astype(np.float32) * np.float32(0.2) for name, s in shapes.items()}
  return {
    name: a + np.float32(1) if "ln_" in name and name.endswith("weight") else a for name, a in made.items()
  }


def reference(w, tokens, targets, heads=HEADS, steps=10):
  """{"logits", "grad.NAME"..., "losses"} by PyTorch. tokens, targets: i64[steps, B, T];
  gradients are of the first batch."""
  import torch
  from torch_gpt2 import forward, loss

  w = {name: torch.tensor(a, requires_grad=True) for name, a in w.items()}
  tokens, targets = torch.tensor(tokens), torch.tensor(targets)
  made = {"logits": forward(w, tokens[0], heads).detach().numpy()}
  loss(w, tokens[0], targets[0], heads).backward()
  made.update({f"grad.{name}": p.grad.numpy().copy() for name, p in w.items()})
  decayed = [p for p in w.values() if p.ndim >= 2]
  others = [p for p in w.values() if p.ndim < 2]
  groups = [{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
  optimizer = torch.optim.AdamW(groups, **ADAMW)
  losses = []
  for n in range(steps):
    optimizer.zero_grad()
    step = loss(w, tokens[n], targets[n], heads)
    step.backward()
    torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
    optimizer.step()
    losses.append(step.item())
  return {**made, "losses": np.array(losses)}


def batches(rng, vocabulary=VOCABULARY, steps=10, batch=3, seq=BLOCK):
  """tokens and targets: i64[steps, batch, seq] each"""
  both = rng.integers(0, vocabulary, (steps, batch, seq + 1))
  return both[..., :-1], both[..., 1:]


if __name__ == "__main__":
  sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "bench"))
  rng = np.random.default_rng(0)
  w = weights(rng)
  tokens, targets = batches(rng)
  made = reference(w, tokens, targets)
  FIXTURE.parent.mkdir(exist_ok=True)
  inputs = {"tokens": tokens.astype(np.uint8), "targets": targets.astype(np.uint8)}
  np.savez_compressed(FIXTURE, **{f"w.{name}": a for name, a in w.items()}, **inputs, **made)
  print(f"{FIXTURE}: {FIXTURE.stat().st_size:,} bytes")
