"""The axes of a tensor, and its values as NumPy arrays, Python numbers and text: for these the program waits.

How they are computed is `realize` (handle.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.engine.device_of import shown
from mini.engine.dynamic_shapes import plain, room
from mini.engine.places import few
from mini.ir.inline import inlined
from mini.ir.sizes import known, varies
from mini.tensor.errors import fail, spelled
from mini.tensor.handle import Handle, untagged
from mini.tensor.trace import local
from mini.tensor.views import root_of
from mini.types import AxisError, DType, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Values(Handle):
  """Its axes, and its values, asked for."""

  # ---------------------------------------------------------------- sizes and axes

  def element_size(self) -> int:
    """Bytes of an element."""
    return self.dtype.itemsize

  def size(self, dim: int | None = None) -> Any:
    """The shape, or one of its sizes.

    >>> Tensor.zeros(2, 3).size(-1)
    3
    """
    return self.shape if dim is None else self.shape[self._axis(dim, "size")]

  def is_floating_point(self) -> bool:
    """Is the type one of the float types?"""
    return self.dtype.kind == "f"

  def _axis(self, axis: Any, what: str, ndim: int | None = None) -> int:
    """A non-negative axis from one that may count from the end."""
    n = self.ndim if ndim is None else ndim
    if not hasattr(axis, "__index__") or isinstance(axis, bool):
      fail(DTypeError, f"{what}: an axis is an integer, not {axis!r}", x=self)
    if not -max(n, 1) <= axis < max(n, 1):
      fail(AxisError, f"{what}: there is no axis {axis}: x has {n} axes", x=self)
    return int(axis) % max(n, 1)

  def _axis_of_some(self, what: str, axis: Any) -> int:
    """As `_axis`, of what a 0-d tensor lacks."""
    if not self.ndim:
      fail(AxisError, f"{what}: a 0-d tensor has no axes", x=self)
    return self._axis(axis, what)

  def _axes(self, axis: Any, what: str) -> tuple[int, ...]:
    """Axes from None (all), one or several."""
    if axis is None:
      return tuple(range(self.ndim))
    axes = tuple(self._axis(a, what) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) != len(axes):
      fail(ShapeError, f"{what}: an axis appears twice in {axis}", x=self)
    return axes if self.ndim else ()

  # ---------------------------------------------------------------- numbers

  def numpy(self) -> np.ndarray:
    """The values as a NumPy array of its own; bfloat16 as float32.

    >>> Tensor([1, 2]).numpy()
    array([1, 2])
    """
    return self._values("x.numpy()")

  def _values(self, what: str, kept: bool = False) -> np.ndarray:
    """numpy(), in the name of what was called. kept: in memory of their own, so that nothing else is held for them."""
    if local.current is not None:
      local.current.value(self, what)
    if local.states and (base := root_of(self)) is not None and id(base) in local.states:
      base.realize()  # of which this is then a part in memory
    node = untagged(self._uop)
    at_once = local.states is None and self._trace is None and not self._is_part()
    if at_once and (found := few(node, kept)) is not None:
      array, leaf = found
      if leaf is not None:
        node.memo["leaf"] = leaf
        self._keep_leaf({node: leaf})
      return array
    self.realize()
    leaf = self._leaf()
    if leaf is None:
      from mini.ir.interp import evaluate

      array = evaluate([*map(plain, inlined([untagged(self._uop)]))], lambda u: u.arg[0].numpy())[0].copy()
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

  def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
    memo[id(self)] = copied = self.realize().detach().clone().requires_grad_(self._is_own_tag())
    copied.grad = None if self.grad is None else deepcopy(self.grad, memo)
    return copied

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
