"""Matrix products: squares, and those of GPT-2's forward and backward pass at 256 rows. GFLOP/s."""

import numpy as np
from common import Case, arguments, peers, run

from mini import Tensor, jit

SQUARES = [128, 512, 1024, 2048]
# what it is, n x k x m, and whether a or b comes transposed: `a[n,k] @ b[k,m]`
GPT2 = [
  ("attention qkv", 256, 768, 2304, ""),
  ("attention out", 256, 768, 768, ""),
  ("mlp up", 256, 768, 3072, ""),
  ("mlp down", 256, 3072, 768, ""),
  ("logits", 256, 768, 50257, "b"),
  ("d input of mlp up", 256, 3072, 768, "b"),
  ("d input of logits", 256, 50257, 768, ""),
  ("d weight of mlp up", 768, 256, 3072, "a"),
  ("d weight of logits", 50257, 256, 768, "a"),
]


def case(args, name: str, n: int, k: int, m: int, transposed: str) -> Case:
  rng = np.random.default_rng(0)
  a = rng.standard_normal((k, n) if transposed == "a" else (n, k), np.float32)
  b = rng.standard_normal((m, k) if transposed == "b" else (k, m), np.float32)

  def product(a, b):
    return (a.T if transposed == "a" else a) @ (b.T if transposed == "b" else b)

  ours, x, y = jit(product), Tensor(a), Tensor(b)
  text = f"lambda a, b: a{'.T' * (transposed == 'a')} @ b{'.T' * (transposed == 'b')}"
  calls = {"mini": lambda: ours(x, y), **peers(args, [a, b], product, product, text)}
  # float32 BLAS as the reference: float64 would take minutes here, and 1e-4 is far above the error of either
  return Case(f"{name} {n}x{k}x{m}", calls, lambda: product(a, b), 2e-9 * n * k * m, "GFLOP")


if __name__ == "__main__":
  args = arguments(__doc__, ("--quick", {"action": "store_true", "help": "the small ones only"}))
  cases = [("square", n, n, n, "") for n in SQUARES] + GPT2
  run((case(args, *c) for c in cases if not args.quick or c[1] * c[2] * c[3] < 1e9), args)
