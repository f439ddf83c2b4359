"""Matrix products, in GFLOP/s: squares in every layout and those of GPT-2's forward and backward pass at 256 rows, or
with --odd the shapes that fit no tile. Of all rows the geometric mean beside each peer, and the worst."""

import numpy as np
from common import Case, against_peers, arguments, peers, run

from mini import Tensor, jit

SQUARES = [256, 512, 1024, 2048]
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
# what it is, how many of them at once, n x k x m, layout
ODD = [
  ("primes", 1, 127, 131, 137, ""),
  ("primes", 1, 509, 511, 513, ""),
  ("vector times matrix", 1, 1, 768, 768, ""),
  ("vector times matrix", 1, 1, 768, 3072, ""),
  ("vector times matrix", 1, 1, 4096, 4096, ""),
  ("vector times matrix", 1, 1, 768, 2304, "b"),
  ("vector times matrix", 1, 1, 768, 50257, "b"),
  ("matrix times vector", 1, 768, 768, 1, ""),
  ("matrix times vector", 1, 4096, 4096, 1, ""),
  ("few rows", 1, 2, 768, 768, ""),
  ("few rows", 1, 3, 768, 768, "b"),
  ("few rows", 1, 7, 1000, 1000, ""),
  ("few columns", 1, 1000, 1000, 7, ""),
  ("long sums", 1, 64, 8192, 64, ""),
  ("long sums", 1, 128, 8192, 16, ""),
  ("long sums", 1, 2, 4096, 2, ""),
  ("long sums", 1, 31, 997, 61, "a"),
  ("short sums", 1, 4096, 16, 4096, ""),
  ("short sums", 1, 1000, 3, 1000, ""),
  ("tall", 1, 8192, 64, 64, ""),
  ("wide", 1, 33, 65, 1025, ""),
  ("tiny", 1, 16, 16, 16, ""),
  ("tiny", 1, 17, 19, 23, ""),
  ("small", 1, 64, 32, 128, ""),
  ("small", 1, 128, 128, 128, ""),
  ("small", 1, 128, 128, 128, "a"),
  ("batch", 512, 16, 16, 16, ""),
  ("batch", 48, 64, 64, 64, ""),
  ("batch", 48, 256, 64, 256, "b"),
  ("batch", 16, 128, 128, 128, ""),
]


def case(args, name: str, batch: int, n: int, k: int, m: int, transposed: str) -> Case:
  rng = np.random.default_rng(0)
  of = (batch,) if batch > 1 else ()
  a = rng.standard_normal(of + ((k, n) if transposed == "a" else (n, k)), np.float32)
  b = rng.standard_normal(of + ((m, k) if transposed == "b" else (k, m)), np.float32)

  def product(a, b):
    return (a.mT if transposed == "a" else a) @ (b.mT if transposed == "b" else b)

  ours, x, y = jit(product), Tensor(a), Tensor(b)
  turned = ".transpose(-1, -2)"
  text = f"lambda a, b: a{turned * (transposed == 'a')} @ b{turned * (transposed == 'b')}"
  calls = {"mini": lambda: ours(x, y), **peers(args, [a, b], product, product, text)}
  shape = f"{f'{batch} of ' if batch > 1 else ''}{n}x{k}x{m}{f' {transposed}.T' if transposed else ''}"
  # float32 BLAS as the reference: float64 would take minutes here, and 1e-4 is far above the error of either
  return Case(f"{name} {shape}", calls, lambda: product(a, b), 2e-9 * batch * n * k * m, "GFLOP")


if __name__ == "__main__":
  quick = ("--quick", {"action": "store_true", "help": "the small ones only"})
  args = arguments(__doc__, quick, ("--odd", {"action": "store_true", "help": "shapes that fit no tile"}))
  squares = [("square", 1, n, n, n, layout) for layout in ("", "a", "b") for n in SQUARES]
  cases = ODD if args.odd else [*squares, *((name, 1, *rest) for name, *rest in GPT2)]
  run(
    (case(args, *c) for c in cases if not args.quick or c[1] * c[2] * c[3] * c[4] < 1e9), args, against_peers
  )
