"""`__array_namespace_info__` of the array API standard 2024.12: what this namespace can, its types and devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mini.engine.device import Device
from mini.types import HANDED_IN

KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
         "complex floating": "c", "numeric": "iufc"}  # fmt: skip
HALF = np.dtype(np.float16)  # is no type of the standard


class __array_namespace_info__:
  """What the namespace can, by the standard's names."""

  def capabilities(self) -> dict[str, Any]:
    """Masks and functions whose results' shapes depend on values are there: they are computed at once."""
    return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

  def default_device(self) -> str:
    return Device.DEFAULT.lower()

  def devices(self) -> list[str]:
    """Those that are open."""
    return [name.lower() for name in dict.fromkeys([Device.DEFAULT, *Device.opened])]

  def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
    whole = np.dtype(int)
    found = {"real floating": np.dtype(float), "complex floating": np.dtype(complex)}
    found.update({"integral": whole, "indexing": whole})
    return {kind: d for kind, d in found.items() if d in HANDED_IN}

  def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
    if isinstance(kind, tuple):
      return {name: d for k in kind for name, d in self.dtypes(kind=k).items()}
    if kind is not None and kind not in KINDS:
      raise ValueError(f"unsupported kind: {kind!r}")
    kinds = "biufc" if kind is None else KINDS[kind]
    return {d.name: d for d in HANDED_IN if d.kind in kinds and d != HALF}
