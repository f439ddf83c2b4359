"""Into how many kernels common work is made. Each result is compared with NumPy's."""

import numpy as np
from common import arguments, chosen, error, show

from mini import Tensor, stats

RNG = np.random.default_rng(0)


def random(*sizes: int) -> np.ndarray:
  return RNG.standard_normal(sizes, np.float32)


def np_softmax(a):
  e = np.exp(a - a.max(-1, keepdims=True))
  return e / e.sum(-1, keepdims=True)


def np_layer_norm(a):
  d = a - a.mean(-1, keepdims=True)
  return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)


def np_pool(a):
  b, c, h, w = a.shape
  return np.maximum(a.reshape(b, c, h // 2, 2, w // 2, 2).max((3, 5)), 0)


def np_attention(q, k, v):
  return np_softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def np_gelu(a):
  return 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))


# fmt: off
WORK = [  # name, inputs, ours, NumPy's
  ("max_pool2d+relu",              [(4, 8, 32, 32)],      lambda a: a.max_pool2d(2).relu(),    np_pool),
  ("matmul+relu",                  [(64, 32), (32, 128)], lambda a, b: (a @ b).relu(),         lambda a, b: np.maximum(a @ b, 0)),
  ("relu(a*b+a).sum()",            [(100, 100)] * 2,      lambda a, b: (a * b + a).relu().sum(), lambda a, b: np.maximum(a * b + a, 0).sum()),
  ("relu(a*b+a).sum() of 1048576", [(1024, 1024)] * 2,    lambda a, b: (a * b + a).relu().sum(), lambda a, b: np.maximum(a * b + a, 0).sum()),
  ("softmax",                      [(256, 512)],          lambda a: a.softmax(-1),             np_softmax),
  ("layer norm",                   [(256, 768)],          lambda a: a.layer_norm((768,)),      np_layer_norm),
  ("gelu",                         [(256, 768)],          lambda a: a.gelu(approximate="tanh"), np_gelu),
  ("attention",                    [(2, 4, 256, 64)] * 3,  lambda q, k, v: q.scaled_dot_product_attention(k, v), np_attention),
]
# fmt: on


def main() -> None:
  args = arguments(__doc__)
  counts = {}
  for name, sizes, ours, theirs in WORK:
    if chosen(name, args):
      arrays = [random(*s) for s in sizes]
      tensors = [Tensor(a).realize() for a in arrays]
      before = stats.kernels
      result = ours(*tensors).realize()
      counts[name] = stats.kernels - before
      assert error(result, theirs(*(a.astype(np.float64) for a in arrays))) < 1e-5, name
  show(counts, args)


if __name__ == "__main__":
  main()
