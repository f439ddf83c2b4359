"""docs/adding.md: what it adds to the source works, all of it together, in a copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENT = (ROOT / "docs" / "adding.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
PLACE = re.compile(r'# (mini/\S+\.py), (above|below) "(.*)"\n')
EDITS = [b for b in BLOCKS if PLACE.match(b)]
CHECKS = [b for b in BLOCKS if not PLACE.match(b)]
PRINTED = [
  """CPU [2.0, -3.0, 0.0, inf]
INTERP [2.0, -3.0, 0.0, inf]
CUDA [2.0, -3.0, 0.0, inf]
METAL [2.0, -3.0, 0.0, inf]
Tensor([0.08333334, 0.03703704,        inf, 0.        ]) Tensor([299.30685  ,   0.       ,   0.4337808])""",
  "[3.0, 5.0]",
  "graph f(%x: f32[4]) {\n  %0 = mul %x, %x : f32[4]\n  return %0\n}",
  "by short in mini/codegen/autoschedule.py 128.0",
]


def added(folder, edits):
  """A copy of the source with these blocks in it."""
  for package in ("mini", "runtime"):
    shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
  for block in edits:
    name, where, anchor = PLACE.match(block).groups()
    path, text = folder / name, block.split("\n", 1)[1]
    lines = path.read_text().splitlines(keepends=True)
    (at,) = (n for n, line in enumerate(lines) if line.startswith(anchor))
    lines.insert(at + (where == "below"), text)
    path.write_text("".join(lines))
  return folder


def run(folder, code):
  env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
  return subprocess.run(
    [sys.executable, "-c", code], env=env, cwd=folder, capture_output=True, text=True, check=False
  )


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
  return added(tmp_path_factory.mktemp("added"), EDITS)


@pytest.mark.parametrize("n", range(len(PRINTED)))
def test_what_is_added_works(copy, n):
  assert len(CHECKS) == len(PRINTED)
  done = run(copy, CHECKS[n])
  assert (done.stdout.strip(), done.returncode) == (PRINTED[n], 0), done.stderr


def test_an_operation_without_a_row_is_told_at_import(tmp_path):
  """By file and table, as the document says."""
  done = run(added(tmp_path, EDITS[:2]), "import mini.grad")
  assert (
    done.returncode
    and done.stderr.splitlines()[-1] == "ImportError: " + re.search(r'fails: "(.*)"', DOCUMENT)[1]
  ), done.stderr
