"""The values of a tensor, as NumPy arrays, Python numbers and text: here the program waits for them.

How they are computed is `realize` (handle.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.engine.masked import plain, room
from mini.engine.place import shown
from mini.ir.sizes import known, varies
from mini.tensor.errors import fail, spelled
from mini.tensor.handle import Handle, untagged
from mini.tensor.trace import local
from mini.types import DType, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Values(Handle):
  """Its values, asked for."""

  def numpy(self) -> np.ndarray:
    """The values as a NumPy array of its own; bfloat16 as float32.

    >>> Tensor([1, 2]).numpy()
    array([1, 2])
    """
    return self._values("x.numpy()")

  def _values(self, what: str) -> np.ndarray:
    """numpy(), in the name of what was called."""
    if local.current is not None:
      local.current.value(self, what)
    self.realize()
    leaf = self._leaf()
    if leaf is None:
      from mini.ir.interp import evaluate

      array = evaluate([plain(untagged(self._uop))], lambda u: u.arg[0].numpy())[0].copy()
    else:
      array = leaf.arg[0].numpy().reshape(room(self.shape))
    return array[tuple(slice(known(n)) for n in self.shape)].copy() if varies(self.shape) else array

  def item(self) -> Any:
    """The value of a tensor of one element, as a Python number.

    >>> Tensor([[3.5]]).item()
    3.5
    """
    return self._number("x.item()", "x.tolist() gives all of them")

  def tolist(self) -> Any:
    """The values as nested lists; a number where there are no axes.

    >>> Tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return self._values("x.tolist()").tolist()

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    array = self._values("np.asarray(x)")
    return array if dtype is None else array.astype(dtype)

  def __reduce__(self) -> tuple:  # of pickle and copy: the values
    device = self.device if isinstance(self.device, str) else None
    return _rebuilt, (self.numpy(), self.dtype, self._is_own_tag(), device)

  def __repr__(self) -> str:
    about = (
      ""
      if self.dtype in (dtypes.default_float, dtypes.default_int, dtypes.bool)
      else f", dtype={self.dtype.name}"
    )
    about += ", requires_grad=True" if self.requires_grad else ""
    if local.current is not None:
      return f"Tensor({spelled(self)} being traced)"
    array = self.numpy()
    text = np.array2string(array, separator=", ", prefix="Tensor(")
    if not array.size:
      about = f", shape={self.shape}" + about
    return f"Tensor({text}{about})"

  def _repr_html_(self) -> str:
    """What notebooks show: what it is, and its values."""
    from html import escape  # only notebooks need it

    about = f"Tensor, {self.dtype.name}, shape {self.shape}, on {shown(self.device)}"
    values = "" if local.current is not None else np.array2string(self.numpy(), separator=", ")
    return f"<div>{escape(about)}<pre>{escape(values)}</pre></div>"

  def __format__(self, spec: str) -> str:
    return format(self.item(), spec) if spec else repr(self)

  def _number(self, what: str, hint: str = "x.sum() or x.mean() makes one of them") -> Any:
    if self.numel() != 1:
      fail(ShapeError, f"{what}: x has {self.numel()} elements, not one", hint, x=self)
    return self._values(what).item()

  def __bool__(self) -> bool:
    return bool(self._number("bool(x)", "x.any() or x.all() makes one of them"))

  def __int__(self) -> int:
    return int(self._number("int(x)"))

  def __float__(self) -> float:
    return float(self._number("float(x)"))

  def __index__(self) -> int:
    if self.dtype.kind not in "iu":
      fail(DTypeError, f"a {self.dtype.name} tensor is no index", x=self)
    return int(self._number("index(x)"))

  def __iter__(self) -> Iterator[Tensor]:
    if not self.shape:
      fail(ShapeError, "iter(x): a 0-d tensor has no elements to go through", x=self)
    return (self[i] for i in range(self.shape[0]))  # type: ignore[index]


def _rebuilt(array: np.ndarray, dtype: DType, requires_grad: bool, device: str | None = None) -> Tensor:
  return Handle._final(array, dtype=dtype, device=device, requires_grad=requires_grad)
