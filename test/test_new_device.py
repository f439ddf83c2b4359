"""A device of one's own: the example, and what `python -m mini new-device` writes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mini.__main__ import BadCommand, main
from mini.types import MiniError

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "new_device.py"


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
  return subprocess.run(
    [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=120, check=False
  )


@pytest.mark.full
def test_it_works_unedited_and_is_never_written_over(tmp_path):
  written = run("-m", "mini", "new-device", "npu", folder=tmp_path)
  assert written.returncode == 0 and "npu_device.py is a device: edit it" in written.stdout, written.stderr
  assert sorted(os.listdir(tmp_path)) == ["npu_device.py", "test_npu.py"]
  tested = run("-m", "pytest", "-q", "test_npu.py", folder=tmp_path)
  assert tested.returncode == 0 and "1 passed" in tested.stdout, tested.stdout
  again = run("-m", "mini", "new-device", "NPU", folder=tmp_path)
  assert again.returncode == 1 and "npu_device.py and ./test_npu.py would be written over" in again.stderr
  text = (tmp_path / "npu_device.py").read_text()
  assert "toy" not in text.lower() and text == EXAMPLE.read_text().replace("TOY", "NPU").replace("Toy", "Npu")


@pytest.mark.parametrize("name", ["cuda", "interp", "2d", "a-b", "\u00e4pple", "a/b", ""])
def test_a_name_has_to_be_one_and_free(name, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(MiniError, match="is no name for a device"):
    main(["new-device", name])
  assert not os.listdir(tmp_path)


def test_the_command_wants_one_name():
  with pytest.raises(BadCommand, match="new-device NAME"):
    main(["new-device"])


def test_the_example_has_fewer_than_60_lines_of_code():
  source = EXAMPLE.read_text()
  documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
  texts = [
    n.body[0] for n in ast.walk(ast.parse(source)) if isinstance(n, documented) and ast.get_docstring(n)
  ]
  comments = {line for text in texts for line in range(text.lineno, text.end_lineno + 1)}
  lines = enumerate(map(str.strip, source.splitlines()), 1)
  assert sum(bool(s) and s[0] != "#" and n not in comments for n, s in lines) < 60


TOY = """
import numpy as np
import new_device
from mini import Tensor, dtypes
from mini.engine.device import Device
x = np.arange(6, dtype=np.float32).reshape(2, 3)
a = Tensor(x, device="TOY")
print((a @ a.T).tolist(), abs(a.exp().sum().item() / np.exp(x).sum() - 1) < 1e-6, a.cast(dtypes.float64).sqrt().tolist()[1][1])
try:
  a[Tensor(np.array([7]), device="TOY")].numpy()
except IndexError as e:
  print(str(e).splitlines()[0])
try:
  Device["TOY"].shim.compile("int x = nonsense;")
except Exception as e:
  print(type(e).__name__, "nonsense" in str(e))
"""


def test_the_example_is_a_device():
  done = run("-c", TOY, folder=ROOT / "examples")
  assert done.stdout.splitlines() == [
    "[[5.0, 14.0], [14.0, 50.0]] True 2.0",
    "gather: index 7 is out of bounds for an axis of size 2",
    "DeviceError True",
  ], done.stderr
