"""What sums are off by, and that they are the same to the bit with any number of threads."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mini import Tensor, dtypes

# Of the sum of what is added: what it may be off by. A piece of 128 terms may be off by 128 half units of the last place;
# half of that is what all pieces together stay below, however long the sum is.
BOUND = {"float64": 1e-14, "float32": 64 * 2.0**-24, "float16": 2.0**-11 + 4e-6, "bfloat16": 2.0**-8 + 4e-6}


def matrix(x, n):
  return x[: len(x) // n * n].reshape(-1, n)


# A row: what is computed of a long vector x, by mini or by NumPy in float64. Where all terms are alike, each addition is
# rounded the same way: that is the worst for a sum.
# fmt: off
SUMS = {
  "sum":       lambda x: x.sum(),
  "mean":      lambda x: x.mean(),
  "norm":      lambda x: x.norm().square() if isinstance(x, Tensor) else (x * x).sum(),
  "dot":       lambda x: x.dot(x),
  "logsumexp": lambda x: x.logsumexp(0).exp() if isinstance(x, Tensor) else np.exp(x).sum(),
  "fused":     lambda x: (x * 2 + 1).sum() / 2,
  "cumsum":    lambda x: x.cumsum(0)[-7:],
  "column":    lambda x: matrix(x, 1).sum(0),
  "columns":   lambda x: matrix(x, 100).sum(0),
  "rows":      lambda x: matrix(x, len(x) // 3).sum(1),
  "across":    lambda x: matrix(x, len(x) // 3).T.sum(0),
  "matmul":    lambda x: matrix(x, len(x) // 16) @ matrix(x, len(x) // 16).T,
  "vector":    lambda x: matrix(x, len(x) // 16) @ x[: len(x) // 16],
}
# fmt: on


def off_by(name, values, d):
  """Of its bound: by how much is what mini computes off?"""
  x = Tensor(values).cast(getattr(dtypes, d)).realize()
  y = x.double().numpy().astype(np.longdouble if d == "float64" else np.float64)
  true, got = SUMS[name](y), SUMS[name](x).double().numpy()
  bound = BOUND[d] * (4 if name == "matmul" else 1)  # whose tiles are added to longer
  return np.max(np.abs(got - true) / np.abs(true)) / bound


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SUMS)
def test_the_error_of_a_long_sum_does_not_grow_with_it(name):
  assert off_by(name, np.full(1_000_003, 0.1, np.float32), "float32") < 1


# what these hold at all; the truth in more bits takes long
MOST = {"float64": 1_000_000, "float32": 20_000_000, "float16": 50_000, "bfloat16": 20_000_000}


@pytest.mark.full
@pytest.mark.parametrize("d", BOUND)
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_every_length_and_type(name, d, rng):
  if d in ("float16", "bfloat16") and name in ("norm", "logsumexp", "fused"):
    pytest.skip("what is added is rounded first, or the sum before it is squared")
  for n in [100, 127, 129, 1000, 4097, 70_001, 1_000_000, 3_000_017, 20_000_000]:
    for values in (np.full(n, 0.1, np.float32), rng.uniform(0.1, 0.3, n).astype(np.float32)):
      assert n > MOST[d] or off_by(name, values, d) < 1, (n, values[0])


def test_a_variance_far_from_zero():
  x = np.tile(np.array([1000.0, 1001.0], np.float32), 500_000)
  assert abs(Tensor(x).var(correction=0).item() - 0.25) < 1e-5


@pytest.mark.full
def test_a_sum_of_a_hundred_million():
  tenth = float(np.float32(0.1))
  x = Tensor.full((10**8,), 0.1).contiguous().realize()
  assert abs(x.sum().item() / (tenth * 10**8) - 1) < BOUND["float32"]
  assert abs(x.mean().item() / tenth - 1) < BOUND["float32"]
  assert abs(x.dot(x).item() / (tenth**2 * 10**8) - 1) < BOUND["float32"]
  assert abs(x.cumsum(0)[-1].item() / (tenth * 10**8) - 1) < BOUND["float32"]


def test_infinities_and_nans_go_through_a_long_cumulative_sum():
  x = np.ones(1000, np.float32)
  x[300] = np.inf
  assert np.array_equal(Tensor(x).cumsum(0).numpy(), np.cumsum(x))
  x[700] = -np.inf
  with np.errstate(invalid="ignore"):
    assert np.array_equal(Tensor(x).cumsum(0).numpy(), np.cumsum(x), equal_nan=True)
  assert np.isnan(Tensor(x).sum().item())


def bits():
  """{what: a digest of the sum} of vectors and matrices, along all axes."""
  rng = np.random.default_rng(0)
  out = {}
  for s in [
    (1000,),
    (40_000,),
    (1_000_003,),
    (3, 100_000),
    (100_000, 3),
    (100, 20_000),
  ]:
    x = Tensor(rng.standard_normal(s).astype(np.float32)).realize()
    sums = {
      "sum": x.sum(),
      "exp": (x * 2 + 1).exp().sum(),
      "var": x.var(),
      "norm": x.norm(),
      "dot": (x * x).sum(),
    }
    sums |= {f"axis {a}": x.sum(a) for a in range(len(s))} | {"half": x.half().sum(), "cumsum": x.cumsum(-1)}
    out |= {f"{s} {k}": hashlib.sha1(v.numpy().tobytes()).hexdigest() for k, v in sums.items()}
  return out


@pytest.mark.full
def test_a_sum_has_the_same_bits_with_any_number_of_threads(request):
  code = "import json, test_sums; print(json.dumps(test_sums.bits()))"
  found = []
  for threads in "123" if request.config.option.full else "13":
    got = subprocess.run(
      [sys.executable, "-c", code],
      cwd=Path(__file__).parent,
      env={**os.environ, "THREADS": threads},
      capture_output=True,
      check=True,
    )
    found.append(json.loads(got.stdout))
  assert all(bits == found[0] for bits in found)
