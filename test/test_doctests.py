"""The example in every docstring of mini runs, and gives what it says."""

import doctest
import importlib
import pkgutil

import pytest

import mini

MODULES = sorted(
  m.name for m in pkgutil.walk_packages(mini.__path__, "mini.") if not m.name.endswith("__main__")
)
NAMES = {name: getattr(mini, name) for name in mini.__all__}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
  module = importlib.import_module(name)
  failed, _ = doctest.testmod(module, extraglobs={"mini": mini, **NAMES, **vars(module)})
  assert not failed
