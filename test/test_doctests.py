"""The example in every docstring of mini runs, and gives what it says."""

import doctest
import importlib
import pkgutil

import pytest

import mini
from mini import Context

MODULES = sorted(
  m.name for m in pkgutil.walk_packages(mini.__path__, "mini.") if not m.name.endswith("__main__")
)
NAME_THE_DEVICE = {"mini.ir.rules", "mini.tensor.data"}
NAMES = {name: getattr(mini, name) for name in mini.__all__}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, request):
  """In a quick run in the interpreter, where nothing is compiled."""
  module = importlib.import_module(name)
  compiled = request.config.option.full or name in NAME_THE_DEVICE
  with Context(DEV="CPU" if compiled else "INTERP"):
    failed, _ = doctest.testmod(module, extraglobs={"mini": mini, **NAMES, **vars(module)})
  assert not failed
