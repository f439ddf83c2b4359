"""The examples of docs/extending.md: on every device, and what they print; the document's own blocks run, too."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from mini import Context
from mini.extend.source import KernelError

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# What each says when all is well.
SAYS = {
  "new_op": [r"%y = softplus %2 ", r"values within \de-0[78]", r"slopes within \de-0[678]", "fused .*: 1 kernel", ": 101$"],
  "custom_kernel": ["element by element: True", r"noise 0.088 becomes 0.029, within \de-1[4567]", "0.000016, by differences 0.000016"],
  "blas_rewrite": [r"1 product of \(300, 200, 400\)", r"differ by at most \d.\de-0[56]|at most 0.0e\+00", "0 more calls, .* True"],
  "numpy_callback": ["0.177 becomes 0.008", r"differs by at most [01]?\d?e?[-+]?0?[0-9]+", "passes: 2$"],
}  # fmt: skip


def check(name: str, printed: str) -> None:
  for said in SAYS[name]:
    assert re.search(said, printed, re.MULTILINE), f"{said}\n{printed}"


@pytest.mark.full
@pytest.mark.parametrize("device", ["CPU", "INTERP"])
@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs(name, device, capsys):
  try:
    with Context(DEV=device):
      runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
  except SystemExit as e:
    pytest.skip(str(e))  # NumPy has no OpenBLAS of its own here, and scipy-openblas64 is not installed
  check(name, capsys.readouterr().out)


@pytest.mark.full
@pytest.mark.parametrize("device", ["CL", "CUDA", "METAL"])
@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs_on_an_emulated_device(name, device):
  done = subprocess.run(
    [sys.executable, f"examples/{name}.py"], env={**os.environ, "DEV": device, "EMULATE": "1"}, cwd=ROOT,
    capture_output=True, text=True, check=False,
  )  # fmt: skip
  if name == "custom_kernel" and device == "METAL":
    assert "float64" in done.stderr  # which Metal has not, and the comparison with Python wants
  elif "there is no OpenBLAS" in done.stderr:
    pytest.skip(done.stderr)
  else:
    assert done.returncode == 0, done.stderr
    check(name, done.stdout)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_has_fewer_than_60_lines(name):
  assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) < 60


def test_the_blocks_of_the_document_print_what_stands_under_them(tmp_path, capsys):
  blocks = BLOCK.findall((ROOT / "docs" / "extending.md").read_text())
  assert len(blocks) >= 10
  for n, ((language, code), (below, output)) in enumerate(zip(blocks[::2], blocks[1::2])):
    assert (language, below) == ("python", "text")
    script = tmp_path / f"{n}" / "extending.py"
    script.parent.mkdir()
    script.write_text(code)
    said = ""
    try:
      with Context(DEV="CPU"):
        runpy.run_path(str(script))
    except KernelError as e:
      said = f"KernelError: {e}\n".replace(f"{script.parent}/", "")
    assert capsys.readouterr().out + said == output
