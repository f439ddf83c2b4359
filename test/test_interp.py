"""The interpreter's own shortcut: a sum of products that is a matrix product is computed as one."""

import numpy as np
import pytest

from mini.ir import contract
from mini.ir import graph as G
from mini.ir.contract import sum_of_products
from mini.ir.interp import evaluate, run_kernel
from mini.ir.ops import OPS
from mini.ir.uop import const
from mini.schedule import schedule
from mini.types import dtypes

AXES = {  # is it an axis of a, and of b?
  "row": (True, False),
  "column": (False, True),
  "batch": (True, True),
  "neither": (False, False),
  "inner": (True, True),
  "inner of one": (True, False),
  "inner of none": (False, False),
}


@pytest.mark.parametrize("seed", range(40))
def test_any_axes(seed, monkeypatch):
  """Each axis in a, in b, in both or in neither, there as size 1 or repeated; summed or kept."""
  monkeypatch.setattr(contract, "SMALL", 0)
  rng = np.random.default_rng(seed)
  kinds = rng.permutation(["row", "column", "inner", *rng.choice([*AXES], rng.integers(4))])
  full = rng.integers(2, 4, len(kinds))
  arrays = []
  for n in range(2):
    x = rng.standard_normal([size if AXES[kind][n] else 1 for kind, size in zip(kinds, full)])
    arrays.append(np.broadcast_to(x, full) if rng.random() < 0.5 else x)
  axes = tuple(n for n, kind in enumerate(kinds) if kind.startswith("inner"))
  got = sum_of_products(*arrays, axes)
  sizes = np.broadcast_shapes(*(x.shape for x in arrays))
  repeated = any(kind == "inner of none" and n > 1 for kind, n in zip(kinds, sizes))
  assert (got is None) == ("inner of one" in kinds or repeated)
  if got is not None:
    want = (arrays[0] * arrays[1]).sum(axes, keepdims=True)
    assert np.allclose(np.broadcast_to(got, want.shape), want)


def matmul(n, k, m):
  a, b = G.buffer("a", (n, k), dtypes.float32), G.buffer("b", (k, m), dtypes.float32)
  x = G.expand(G.reshape(a, (n, 1, k)), (n, m, k))
  y = G.expand(G.reshape(G.permute(b, (1, 0)), (1, m, k)), (n, m, k))
  return G.reshape(G.reduce(G.alu("mul", x, y), "add", (2,)), (n, m))


def test_the_product_of_a_matmul_is_not_made():
  """It would take 13 GB."""
  n = 1500
  rng = np.random.default_rng(0)
  data = {name: rng.standard_normal((n, n)).astype(np.float32) for name in "ab"}
  (got,) = evaluate([matmul(n, n, n)], lambda u: data[u.arg[0]])
  assert np.allclose(got, data["a"] @ data["b"], atol=1e-3)


def test_a_kernel_of_a_matmul(monkeypatch):
  made = []
  plain = OPS["mul"].numpy
  monkeypatch.setitem(OPS, "mul", OPS["mul"]._replace(numpy=lambda a, b: made.append(a.shape) or plain(a, b)))
  rng = np.random.default_rng(0)
  data = {"a": rng.standard_normal((40, 50)), "b": rng.standard_normal((50, 30))}
  data = {name: x.astype(np.float32) for name, x in data.items()}
  ((kernel,), _) = schedule({"c": matmul(40, 50, 30)})
  run_kernel(kernel, data)
  assert np.allclose(data["c"].reshape(40, 30), data["a"] @ data["b"], atol=1e-4) and not made


def test_a_product_that_is_read_twice_is_made():
  """And with nan and inf the result is that of the plain sum."""
  x = G.expand(G.reshape(G.buffer("a", (30, 30), dtypes.float32), (30, 1, 30)), (30, 30, 30))
  product = G.alu("mul", x, const(2.0, dtypes.float32))
  a = np.zeros((30, 30), np.float32)
  a[0, 0], a[1, 1] = np.inf, np.nan
  total, kept = evaluate([G.reduce(product, "add", (2,)), product], lambda u: a)
  assert np.array_equal(kept, np.broadcast_to(2 * a[:, None], (30, 30, 30)), equal_nan=True)
  assert np.array_equal(total, kept.sum(2, keepdims=True), equal_nan=True)
