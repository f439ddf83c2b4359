"""What is bound by memory: sums, softmax, layer norm, an element-wise chain.
GB/s of what has to be read and written."""

import numpy as np
from common import Case, arguments, peers, run

from mini import Tensor, jit


def chain(a, b):
  return ((a * b + a) * 0.5 - b) * a


def np_softmax(a):
  e = np.exp(a - a.max(1, keepdims=True))
  return e / e.sum(1, keepdims=True)


def np_layer_norm(a):
  d = a - a.mean(1, keepdims=True)
  return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)


def layer_norm(a):
  return a.layer_norm((a.shape[-1],))


def torch_layer_norm(a):
  import torch

  return torch.nn.functional.layer_norm(a, a.shape[-1:])


# fmt: off
# name, sizes, how many inputs, bytes moved for each element of one; ours, NumPy's, PyTorch's, tinygrad's
WORK = [
  ("chain of 5",      (16, 1024, 1024), 2, 12, chain, chain, chain, "lambda a, b: ((a * b + a) * 0.5 - b) * a"),
  ("sum",             (16, 1024, 1024), 1, 4, *[lambda a: a.sum()] * 3, "lambda a: a.sum()"),
  ("sum over axis 0", (4096, 4096),     1, 4, *[lambda a: a.sum(0)] * 3, "lambda a: a.sum(0)"),
  ("sum over axis 1", (4096, 4096),     1, 4, *[lambda a: a.sum(1)] * 3, "lambda a: a.sum(1)"),
  ("softmax",         (4096, 1024),     1, 8, lambda a: a.softmax(1), np_softmax, lambda a: a.softmax(1), "lambda a: a.softmax(1)"),
  ("layer norm",      (4096, 768),      1, 8, layer_norm, np_layer_norm, torch_layer_norm, "lambda a: a.layernorm()"),
]
# fmt: on


def case(args, name, sizes, inputs, nbytes, ours, numpy, torch, tinygrad) -> Case:
  rng = np.random.default_rng(0)
  arrays = [rng.standard_normal(sizes, np.float32) for _ in range(inputs)]
  jitted, tensors = jit(ours), [Tensor(a) for a in arrays]
  calls = {"mini": lambda: jitted(*tensors), **peers(args, arrays, numpy, torch, tinygrad)}
  expected = lambda: numpy(*(a.astype(np.float64) for a in arrays))
  return Case(f"{name} {'x'.join(map(str, sizes))}", calls, expected, arrays[0].size * nbytes * 1e-9, "GB")


if __name__ == "__main__":
  args = arguments(__doc__)
  run((case(args, *w) for w in WORK), args)
