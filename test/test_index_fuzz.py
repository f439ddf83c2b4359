"""Random indexing agrees with NumPy. A failure names its seed: `python test/fuzz_index.py 1 SEED` repeats it."""

import fuzz_index
import pytest


@pytest.mark.parametrize("block", range(4))
def test_programs(block):
  for seed in range(block * 10, block * 10 + 10):
    fuzz_index.run(seed, jitted=seed % 5 == 0)


@pytest.mark.full
@pytest.mark.parametrize("block", range(10))
def test_many_programs(block):
  for seed in range(block * 200, block * 200 + 200):
    fuzz_index.run(seed, jitted=seed % 5 == 0)
