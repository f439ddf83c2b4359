"""docs/accuracy.md: the errors that it lists are not exceeded, on some of its arguments; with --full on all of them."""

from pathlib import Path

import pytest

from mini.opsuite import accuracy
from mini.types import dtypes

PAGE = (Path(__file__).parent.parent / "docs" / "accuracy.md").read_text()


def bounds(d):
  """What the page says of a type, by function."""
  lines = [
    [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| ")
  ]
  column = lines[0].index(d.name)
  return {row[0]: float(row[column]) for row in lines[1:] if row[0] in accuracy.FUNCTIONS}


def exceeded(d, samples):
  found, said = accuracy.measured(d, samples), bounds(d)
  assert set(found) == set(said), "python -m mini ulp > docs/accuracy.md"
  return {name: (most, said[name]) for name, most in found.items() if most > said[name]}


def test_float32_is_as_exact_as_the_page_says():
  assert not exceeded(dtypes.float32, 1 << 12)


def test_what_is_promised():
  """Of float32 at most 2: a table that was written of something worse is not accepted."""
  said = bounds(dtypes.float32)
  assert all(said[name] <= 2 for name in ("erf", "erfc", "expm1", "tanh", "exp", "log"))


@pytest.mark.full
@pytest.mark.parametrize("d", accuracy.TYPES, ids=lambda d: d.name)
def test_all_types_are_as_exact_as_the_page_says(d):
  assert not exceeded(d, accuracy.SAMPLES)


def test_page_begins_as_the_command_prints_it():
  assert PAGE.startswith(accuracy.HEAD)
