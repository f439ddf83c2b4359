"""What is bound by memory: sums, softmax, layer norm, an element-wise chain. GB/s of what has to be read and written."""

import numpy as np
from common import Case, arguments, peer, run

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


# name, sizes, how many inputs, ours, NumPy's, PyTorch's by name, bytes moved for each element of an input
WORK = [
  ("chain of 5", (16, 1024, 1024), 2, chain, chain, lambda t: chain, 12),
  ("sum", (16, 1024, 1024), 1, lambda a: a.sum(), lambda a: a.sum(), lambda t: t.sum, 4),
  (
    "sum over axis 0",
    (4096, 4096),
    1,
    lambda a: a.sum(0),
    lambda a: a.sum(0),
    lambda t: lambda a: a.sum(0),
    4,
  ),
  (
    "sum over axis 1",
    (4096, 4096),
    1,
    lambda a: a.sum(1),
    lambda a: a.sum(1),
    lambda t: lambda a: a.sum(1),
    4,
  ),
  ("softmax", (4096, 1024), 1, lambda a: a.softmax(1), np_softmax, lambda t: lambda a: a.softmax(1), 8),
  (
    "layer norm",
    (4096, 768),
    1,
    layer_norm,
    np_layer_norm,
    lambda t: lambda a: t.nn.functional.layer_norm(a, (768,)),
    8,
  ),
]


def case(name, sizes, inputs, ours, numpy, torch_of, nbytes) -> Case:
  rng = np.random.default_rng(0)
  arrays = [rng.standard_normal(sizes, np.float32) for _ in range(inputs)]
  jitted, tensors = jit(ours), [Tensor(a) for a in arrays]
  calls = {"mini": lambda: jitted(*tensors), "numpy": lambda: numpy(*arrays)}
  if torch := peer("torch"):
    theirs, copies = torch_of(torch), [torch.from_numpy(a) for a in arrays]
    calls["torch"] = lambda: theirs(*copies)
  expected = lambda: numpy(*(a.astype(np.float64) for a in arrays))
  return Case(f"{name} {'x'.join(map(str, sizes))}", calls, expected, arrays[0].size * nbytes * 1e-9, "GB")


if __name__ == "__main__":
  args = arguments(__doc__)
  run([case(*w) for w in WORK], args)
