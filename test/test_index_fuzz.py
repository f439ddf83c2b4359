"""Random indexing agrees with NumPy. A failure names its seed: `python test/fuzz_index.py 1 SEED` repeats it."""

import fuzz_index
import pytest


@pytest.mark.sample(2)
@pytest.mark.parametrize("block", range(4))
def test_programs(block):
  for seed in range(block * 10, block * 10 + 10):
    fuzz_index.run(seed, jitted=seed % 5 == 0)


@pytest.mark.full
def test_new_programs(seed):
  for n in range(300):
    fuzz_index.run(seed + n, jitted=n % 5 == 0)
