"""Random programs agree with NumPy. A failure names its seed: `python test/fuzz_tensor.py 1 SEED` repeats it."""

import fuzz_tensor
import pytest


@pytest.mark.parametrize("block", range(4))
@pytest.mark.sample(4)
def test_programs(block):
  for seed in range(block * 10, block * 10 + 10):
    fuzz_tensor.run(seed)


@pytest.mark.full
def test_new_programs(seed):
  for n in range(150):
    fuzz_tensor.run(seed + n)
