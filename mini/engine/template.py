"""What `python -m mini new-device NAME` writes: a device that works, for a newcomer to edit.

It is template.txt with another name: the text of examples/new_device.py, where it is to be read.
"""

from __future__ import annotations

import os

from mini.engine.device import KINDS
from mini.types import MiniError
from runtime import host

TEST = '''"""TOY computes what NumPy does. `python toy_device.py` tests every operation."""

import numpy as np
import toy_device  # noqa: F401  registers it

from mini import Tensor


def test_toy():
  x, y = np.random.default_rng(0).standard_normal((2, 30, 40), np.float32)
  got = (Tensor(x, device="TOY") @ Tensor(y, device="TOY").T).sum(axis=1)
  np.testing.assert_allclose(got.numpy(), (x @ y.T).sum(axis=1), atol=1e-3)
'''


def new_device(name: str, folder: str = ".") -> list[str]:
  """Writes NAME_device.py and test_NAME.py, and returns their paths.
  MiniError if the name or a file is there already."""
  if not (name.isascii() and name.isidentifier()) or name.upper() in KINDS:
    raise MiniError(f"{name!r} is no name for a device: letters and digits, and none of {', '.join(KINDS)}")
  name = name.lower()
  texts = (host.read(os.path.join(os.path.dirname(__file__), "template.txt")), TEST)
  paths = [os.path.join(folder, f"{name}_device.py"), os.path.join(folder, f"test_{name}.py")]
  if there := [path for path in paths if os.path.exists(path)]:
    raise MiniError(f"{' and '.join(there)} would be written over: choose another name, or another folder")
  for path, text in zip(paths, texts):
    for old, new in (("TOY", name.upper()), ("Toy", name.capitalize()), ("toy", name)):
      text = text.replace(old, new)
    with open(path, "x", encoding="utf-8") as f:
      f.write(text)
  return paths
