"""Prints a digest of what programs become, in a process whose nodes and tensors hash as its argument says: `salted.py SALT
FIRST COUNT`. Where something walks a set of nodes, another salt is another order, as another address would be."""

import builtins
import contextlib
import hashlib
import io
import sys
from pathlib import Path

salt, first, count = map(int, sys.argv[1:])
build_class = builtins.__build_class__


def salted(body, name, *bases, **keywords):
  made = build_class(body, name, *bases, **keywords)
  if name == "UOp":
    made.__hash__ = lambda u: hash((u.serial, salt))
  elif name == "Tensor":
    made.__hash__ = lambda t: hash((id(t), salt))
  return made


builtins.__build_class__ = salted  # before mini makes its first nodes

sys.path += [str(Path(__file__).parent), str(Path(__file__).parent.parent / "examples")]

import numpy as np
from fuzz_graph import program, scheduled
from gpt2 import GPT2, Config

from mini import Context, Tensor, jit, nn
from mini.codegen.autoschedule import write_recipe
from mini.codegen.recipe_builder import Machine
from mini.text.printer import kernel_text

for seed in range(first, first + count):
  kernels = [write_recipe(k, Machine())[0] for k in scheduled(program(seed)[0])[0]]
  print(seed, hashlib.sha256("\n".join(map(kernel_text, kernels)).encode()).hexdigest()[:12])

model = GPT2(Config(layers=2, heads=2, width=32, block=32, vocabulary=64, dropout=0.1))
params = list(model.parameters())
optimizer = nn.optim.AdamW(params, lr=1e-3)


@jit
def step(x, y):
  optimizer.zero_grad()
  for n in range(2):
    (model.loss(x[n], y[n]) / 2).backward()
  nn.optim.clip_grad_norm(params, 1.0)
  optimizer.step()
  return params[0].sum()


tokens = np.arange(128, dtype=np.int32).reshape(2, 2, 32) % 64
shown = io.StringIO()
with contextlib.redirect_stderr(shown), Context(SHOW="schedule,kernel,source"), Tensor.train():
  step(Tensor(tokens), Tensor((tokens * 7 + 1) % 64)).item()
for part in shown.getvalue().split("\n\n"):
  print(part.strip().split("\n")[0], hashlib.sha256(part.encode()).hexdigest()[:12])
