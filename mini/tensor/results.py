"""What methods with two results return: tuples whose parts have PyTorch's names, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
  Tensor = Any  # the class is made of files that use this one


class ValuesAndIndices(NamedTuple):
  """Elements, and where along an axis they stood."""

  values: Tensor
  indices: Tensor


class MinAndMax(NamedTuple):
  """What `aminmax` returns."""

  min: Tensor
  max: Tensor


__all__ = ["MinAndMax", "ValuesAndIndices"]
