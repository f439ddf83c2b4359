"""PyTorch's other names of methods, and its methods that are a line of others."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mini.tensor.data import Operand, Scalar, Sizes, sizes_of
from mini.tensor.elementwise import sloped
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.statistics import Statistics
from mini.tensor.views import packed, strides_of
from mini.types import ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

ALIASES = {
  "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
  "arctan2": "atan2", "arctanh": "atanh", "bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift",
  "divide": "div", "fix": "trunc", "ger": "outer", "greater": "gt", "greater_equal": "ge",
  "less": "lt", "less_equal": "le", "moveaxis": "movedim", "multiply": "mul", "narrow_copy": "narrow",
  "ndimension": "dim", "negative": "neg", "nelement": "numel", "not_equal": "ne", "reshape_as": "view_as",
  "resolve_neg": "resolve_conj", "split_with_sizes": "split", "subtract": "sub",
  "swapdims": "transpose", "trapz": "trapezoid", "true_divide": "div", "unsafe_chunk": "chunk",
  "unsafe_split": "split",
  # those whose results are no views
  **{f"{name}_copy": name for name in ("as_strided", "diagonal", "expand", "permute", "split_with_sizes", "squeeze",
                                       "t", "transpose", "unbind", "unfold", "unsqueeze", "view")},
}  # fmt: skip


class Aliases(Statistics):
  """ALIASES, clamp_min, addcmul, xlogy, new_zeros and the like."""

  def view_as(self, other: Tensor) -> Tensor:
    """In the shape of another tensor."""
    return self.view(other.shape)

  def ravel(self) -> Tensor:
    """As one axis."""
    return self.reshape(-1)

  def stride(self, dim: int | None = None) -> Any:
    """How many elements apart the neighbours along each axis are, or along one: of a view in the tensor of which it is
    one, and in the order of its axes otherwise.

    >>> Tensor.zeros(2, 3, 4).stride(), Tensor.zeros(2, 3).T.stride()
    ((12, 4, 1), (1, 3))
    """
    found = strides_of(self._parts()[0]) or packed(self.shape)
    return found if dim is None else found[self._axis(dim, "stride")]

  def is_contiguous(self) -> bool:
    """Do its elements stand in the order of its axes, one beside the other? `reshape` copies what does not."""
    pairs = zip(self.shape, self.stride(), packed(self.shape))
    return 0 in self.shape or all(n == 1 or own == dense for n, own, dense in pairs)

  def clamp_min(self, min: Operand) -> Tensor:
    """`clamp` from below."""
    return self.clamp(min=min)

  def clamp_max(self, max: Operand) -> Tensor:
    """`clamp` from above."""
    return self.clamp(max=max)

  def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """a + value * tensor1 * tensor2.

    >>> Tensor([1, 2]).addcmul(Tensor([3, 4]), Tensor([5, 6]), value=10)
    Tensor([151, 242])
    """
    return self + value * tensor1 * tensor2

  def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """a + value * tensor1 / tensor2."""
    return self + value * tensor1 / tensor2

  def logit(self, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of `sigmoid`; x is kept within eps and 1 - eps first, if eps is given.

    >>> Tensor([0.5, 1.0]).logit()
    Tensor([ 0., inf])
    """
    x = self if eps is None else self.clamp(eps, 1 - eps)
    y, kind = x._real()
    inside = (y >= 0) & (y <= 1)
    return sloped((y / (1 - y)).log(), lambda y, _: inside.where(1 / (y * (1 - y)), math.nan), y).cast(kind)

  def isin(self, test_elements: Tensor) -> Tensor:
    """Is each element among those of another tensor? By a search in them, sorted.

    >>> Tensor([1, 2, 3]).isin(Tensor([3, 1]))
    Tensor([ True, False,  True])
    """
    known = test_elements.flatten().sort()[0]
    if not known.numel():
      return Handle._final.zeros(self.shape, dtype=dtypes.bool, device=self.device)
    place = known.searchsorted(self).clamp(max=known.numel() - 1)
    return known[place] == self

  def index_fill(self, dim: int, index: Tensor, value: Operand) -> Tensor:
    """One value at the places `index` along dim.

    >>> Tensor([1, 2, 3]).index_fill(0, Tensor([0, -1]), 7)
    Tensor([7, 2, 7])
    """
    out: Any = self.clone()
    a = self._axis(dim, "index_fill")
    if not self.ndim:
      return self.reshape(1).index_fill(0, index, value).reshape(())
    out[(slice(None),) * a + (index,)] = value
    return out

  def fill_diagonal_(self, fill_value: Scalar) -> Tensor:
    """One value along the diagonal of a matrix, in place.

    >>> Tensor.ones(2, 2).fill_diagonal_(0)
    Tensor([[0., 1.],
            [1., 0.]])
    """
    if self.ndim != 2:
      fail(ShapeError, f"fill_diagonal_: x has {self.ndim} axes, a matrix has two", x=self)
    n, m = self.shape
    eye = Handle._final.eye(n, m, dtype=dtypes.bool, device=self.device)
    return self._update(self.masked_fill(eye, fill_value), "a.fill_diagonal_(b)")

  def xlogy(self, other: Operand) -> Tensor:
    """a * log(other); 0 where a is 0, unless the other is NaN.

    >>> Tensor([0.0, 2.0]).xlogy(Tensor([0.0, 1.0]))
    Tensor([0., 0.])
    """
    kind = self._float().dtype
    y: Any = other if isinstance(other, Handle) else Handle._final(other, dtype=kind, device=self.device)
    a, b, kind = self._real_pair("xlogy", y)
    nothing = (a == 0) & ((b <= 0) | (b == math.inf))

    def slopes(a: Tensor, b: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
      return nothing.where(0, nothing.where(1, b).log()), a / ((a == 0) & (b == 0)).where(1, b)

    return sloped(nothing.where(0, a * nothing.where(1, b).log()), slopes, a, b).cast(kind)

  def new_full(
    self,
    size: Sizes,
    fill_value: Scalar,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """One value everywhere, in a shape, of this type and on this device unless others are given.

    >>> Tensor([1.5]).new_full((2,), 3)
    Tensor([3., 3.])
    """
    shape = sizes_of((size,))
    return Handle._final.full(shape, fill_value, dtype or self.dtype, device or self.device, requires_grad)

  def new_zeros(self, *size: Sizes, **options: Any) -> Tensor:
    """Zeros; see `new_full`."""
    return self.new_full(sizes_of(size), 0, **options)

  def new_ones(self, *size: Sizes, **options: Any) -> Tensor:
    """Ones; see `new_full`."""
    return self.new_full(sizes_of(size), 1, **options)

  def new_empty(self, *size: Sizes, **options: Any) -> Tensor:
    """Values that nothing is promised of; see `new_full`."""
    return self.new_full(sizes_of(size), 0, **options)

  def new_tensor(
    self, data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False
  ) -> Tensor:
    """A tensor of data, of this type and on this device unless others are given.

    >>> Tensor([1.5]).new_tensor([2, 3])
    Tensor([2., 3.])
    """
    return Handle._final(data, dtype or self.dtype, device or self.device, requires_grad)


def _alias(name: str, target: str) -> Callable[..., Any]:
  copies = name.endswith("_copy")

  def called(self: Aliases, *args: Any, **options: Any) -> Any:
    found = getattr(self, target)(*args, **options)
    return (
      found if not copies else tuple(t.clone() for t in found) if isinstance(found, tuple) else found.clone()
    )

  called.__doc__ = f"`{target}` that is no view." if copies else f"Another name of `{target}`."
  return functools.update_wrapper(called, getattr(Aliases, target), assigned=(), updated=())


for _name, _target in ALIASES.items():
  setattr(Aliases, _name, _alias(_name, _target))
