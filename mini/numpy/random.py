"""`numpy.random`: NumPy's own generators, whose numbers are the same for a seed, with arrays of ours as results."""

from __future__ import annotations

from typing import Any

import numpy as np

from mini.numpy.array import Lazy, asarray


def _ours(x: Any) -> Any:
  return asarray(x) if isinstance(x, np.ndarray) else x


def _theirs(x: Any) -> Any:
  return x._host() if isinstance(x, Lazy) else x


class Generator:
  """A generator of NumPy's: its methods give arrays."""

  def __init__(self, generator: Any):
    self._generator = getattr(generator, "_generator", None) or (
      generator
      if hasattr(generator, "random") and hasattr(generator, "normal")
      else np.random.Generator(generator)
    )

  def __getattr__(self, name: str) -> Any:
    method = getattr(self._generator, name)
    if not callable(method):
      return method

    def draw(*args: Any, **kwargs: Any) -> Any:
      return _ours(method(*map(_theirs, args), **{k: _theirs(v) for k, v in kwargs.items()}))

    return draw

  def shuffle(self, x: Any, axis: int = 0) -> None:
    """In place, along an axis."""
    values = np.array(_theirs(x))
    self._generator.shuffle(values, *([axis] if axis else []))
    x[...] = values

  def spawn(self, n: int) -> list[Generator]:
    return [Generator(g) for g in self._generator.spawn(n)]

  def __repr__(self) -> str:
    return repr(self._generator)


def default_rng(seed: Any = None) -> Generator:
  """`numpy.random.default_rng`."""
  return seed if isinstance(seed, Generator) else Generator(np.random.default_rng(_theirs(seed)))


def RandomState(seed: Any = None) -> Generator:
  """`numpy.random.RandomState`."""
  return Generator(np.random.RandomState(_theirs(seed)))


def __getattr__(name: str) -> Any:
  """Functions of NumPy's global generator, and its bit generators."""
  if name.startswith("_") or not hasattr(np.random, name):
    raise AttributeError(f"mini.numpy.random has no {name!r}")
  found = getattr(np.random, name)
  return found if isinstance(found, type) else getattr(Generator(np.random.mtrand._rand), name)
