"""Random programs agree with NumPy. A failure names its seed: `python test/fuzz_tensor.py 1 SEED` repeats it."""

import fuzz_tensor
import pytest


@pytest.mark.parametrize("block", [pytest.param(n, marks=[pytest.mark.full] * (n >= 4)) for n in range(10)])
def test_programs(block):
  for seed in range(block * 10, block * 10 + 10):
    fuzz_tensor.run(seed)


@pytest.mark.full
def test_new_programs(seed):
  for n in range(300):
    fuzz_tensor.run(seed + n)
