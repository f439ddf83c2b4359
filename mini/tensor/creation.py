"""Creation: constants, ranges, grids, and tensors from the data of other libraries.

All take `dtype=`, `device=` and `requires_grad=`. What is constant needs no memory until it is asked for.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.ir import graph
from mini.ir.sizes import Variable
from mini.ir.uop import UOp, const
from mini.tensor.data import Scalar, Sizes, complex_numbers, device_named, is_complex, sizes_of
from mini.tensor.dlpack import shared, taken_over
from mini.tensor.errors import fail
from mini.tensor.handle import Handle, on_device
from mini.tensor.promotion import constant, scalar_dtype
from mini.tensor.reduce import Reduce
from mini.types import ArgumentError, DType, DTypeError, ShapeError, as_dtype, dtypes, real_of

if TYPE_CHECKING:
  from mini.tensor import Tensor


def placed(u: UOp, device: str | None, requires_grad: bool) -> Tensor:
  """A new tensor on a device."""
  if device is not None:
    u = on_device(u, device_named(device))
  t = Handle._new(u)
  return t.requires_grad_() if requires_grad else t


def checked_sizes(what: str, sizes: tuple[Any, ...]) -> tuple[int, ...]:
  s = sizes_of(sizes)
  if min((n for n in s if type(n) is not Variable), default=0) < 0:
    fail(ShapeError, f"{what}: a size is negative: {s}")
  return s


class Creation(Reduce):
  """Static methods that make tensors."""

  @staticmethod
  def full(
    size: Sizes, fill_value: Scalar, dtype: Any = None, device: str | None = None, requires_grad: bool = False
  ) -> Tensor:
    """One value everywhere.

    >>> Tensor.full((2, 2), 7)
    Tensor([[7, 7],
            [7, 7]])
    """
    kind = as_dtype(dtype) if dtype is not None else scalar_dtype(fill_value)
    s = checked_sizes("full", (size,))
    if kind.kind == "c":
      return complex_numbers().full(s, fill_value, kind, device, requires_grad)
    if is_complex(fill_value):
      fail(DTypeError, f"full: a complex number is no {kind.name}", value=fill_value)
    u = graph.expand_to(constant("full", fill_value, kind), s)
    return placed(u, device, requires_grad)

  @staticmethod
  def zeros(
    *size: Sizes, dtype: Any = None, device: str | None = None, requires_grad: bool = False
  ) -> Tensor:
    """Zeros; float32 unless dtype says otherwise.

    >>> Tensor.zeros(2, 2, dtype=dtypes.int64)
    Tensor([[0, 0],
            [0, 0]])
    """
    return Creation.full(
      checked_sizes("zeros", size), 0, dtype or dtypes.default_float, device, requires_grad
    )

  @staticmethod
  def ones(*size: Sizes, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Ones; float32 unless dtype says otherwise."""
    return Creation.full(checked_sizes("ones", size), 1, dtype or dtypes.default_float, device, requires_grad)

  @staticmethod
  def empty(
    *size: Sizes, dtype: Any = None, device: str | None = None, requires_grad: bool = False
  ) -> Tensor:
    """Values that nothing is promised of (here zeros)."""
    return Creation.full(
      checked_sizes("empty", size), 0, dtype or dtypes.default_float, device, requires_grad
    )

  def full_like(
    self, fill_value: Scalar, dtype: Any = None, device: str | None = None, requires_grad: bool = False
  ) -> Tensor:
    """One value everywhere, in this shape and type."""
    return Creation.full(self.shape, fill_value, dtype or self.dtype, device or self.device, requires_grad)

  def zeros_like(self, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Zeros, in this shape and type."""
    return self.full_like(0, dtype, device, requires_grad)

  def ones_like(self, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Ones, in this shape and type."""
    return self.full_like(1, dtype, device, requires_grad)

  def empty_like(self, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Values that nothing is promised of, in this shape and type."""
    return self.full_like(0, dtype, device, requires_grad)

  @staticmethod
  def arange(
    start: Scalar,
    end: Scalar | None = None,
    step: Scalar = 1,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """start, start + step, ... up to, but without, end. With one number: from 0 up to it. int64 of ints, else float32.

    >>> Tensor.arange(2, 8, 2)
    Tensor([2, 4, 6])
    """
    start, end = (0, start) if end is None else (start, end)
    kind = None if dtype is None else as_dtype(dtype)
    if kind is not None and kind.kind in "iu":
      start, end, step = (x if isinstance(x, Variable) else int(x) for x in (start, end, step))
    if step == 0:
      fail(ArgumentError, "arange: step is 0")
    if not any(isinstance(x, Variable) for x in (start, end, step)) and (end - start) * step < 0:
      fail(ArgumentError, f"arange: no step of {step} leads from {start} to {end}")
    whole = all(isinstance(x, (int, np.integer, Variable)) for x in (start, end, step))
    if not whole and not math.isfinite((end - start) / step):
      fail(ArgumentError, f"arange: from {start} to {end} by {step} there is no number of steps")
    if not whole and (end - start) / step >= 1 << 62:
      fail(ArgumentError, f"arange: from {start} to {end} by {step} there are too many steps")
    kind = kind or (dtypes.default_int if whole else dtypes.default_float)
    n = max(0, -((start - end) // step) if whole else math.ceil((end - start) / step))
    return placed(
      _line(n, start, step, kind, dtypes.int64 if whole else dtypes.float64), device, requires_grad
    )

  @staticmethod
  def linspace(
    start: complex,
    end: complex,
    steps: int,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """`steps` numbers from start to end, both included, equally far apart; of complex ones on the line between them.

    >>> Tensor.linspace(0, 1, 5)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> Tensor.linspace(0, 2j, 3)
    Tensor([0.+0.j, 0.+1.j, 0.+2.j], dtype=complex64)
    """
    kind = as_dtype(dtype) if dtype is not None else dtypes.default_float
    start, end = (x.item() if isinstance(x, Handle) else x for x in (start, end))  # type: ignore[attr-defined]
    steps = operator.index(steps)
    if steps < 0:
      fail(ShapeError, f"linspace: {steps} numbers")
    if kind.kind == "c" or isinstance(start, complex) or isinstance(end, complex):
      if dtype is not None and kind.kind != "c":
        fail(
          DTypeError, f"linspace: from {start} to {end} lie complex numbers, of which {kind.name} has none"
        )
      ends = [(z.real, z.imag) for z in map(complex, (start, end))]
      parts = (Creation.linspace(a, b, steps, real_of(kind), device) for a, b in zip(*ends))
      return complex_numbers().joined(*parts).requires_grad_(requires_grad)
    for x in (start, end):
      constant("linspace", x, kind)
    if kind.kind in "iu":  # between whole numbers, as in PyTorch
      start, end = int(start), int(end)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    line = _line(steps, start, step, dtypes.float64, dtypes.float64)
    # from the end on, which is met so
    left = _line(steps, 1 - steps, 1, dtypes.float64, dtypes.float64)
    back = graph.alu("add", graph.alu("mul", left, const(step, left.dtype)), const(end, left.dtype))
    first = graph.alu("lt", graph.iota(steps), const(max(steps // 2, 1), graph.counter(steps)))
    return placed(graph.cast(graph.alu("where", first, line, back), kind), device, requires_grad)

  @staticmethod
  def eye(
    n: int, m: int | None = None, dtype: Any = None, device: str | None = None, requires_grad: bool = False
  ) -> Tensor:
    """Ones on the diagonal of an n x m matrix, zeros elsewhere.

    >>> Tensor.eye(2)
    Tensor([[1., 0.],
            [0., 1.]])
    """
    s = checked_sizes("eye", (n, n if m is None else m))
    kind = as_dtype(dtype or dtypes.default_float)
    if kind.kind == "c":
      return Creation.eye(n, m, real_of(kind), device).to(kind).requires_grad_(requires_grad)
    on = Creation._new(graph.expand_to(_column(s[0]), s)) == Creation._new(
      graph.expand_to(graph.iota(s[1]), s)
    )
    return placed(graph.cast(on._node, kind), device, requires_grad)

  @staticmethod
  def tri(
    n: int,
    m: int | None = None,
    k: int = 0,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """Ones on and below the k-th diagonal of an n x m matrix, zeros above it."""
    return (
      Creation.ones(n, n if m is None else m, dtype=dtype, device=device)
      .tril(k)
      .requires_grad_(requires_grad)
    )

  @staticmethod
  def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor with a copy of an array's elements, of its type."""
    if not isinstance(array, np.ndarray):
      fail(
        DTypeError,
        f"from_numpy: {type(array).__name__} is no numpy.ndarray; Tensor(...) takes lists and numbers",
      )
    return Handle._final(array)

  @staticmethod
  def from_dlpack(x: Any) -> Tensor:
    """A tensor over the memory of another library's array on the CPU, by the DLPack protocol.

    Nothing is copied where this device's memory is the host's: what the other library writes there afterwards, the
    tensor has, too. What is read only, or not in row-major order, is copied.

    >>> Tensor.from_dlpack(np.arange(3))
    Tensor([0, 1, 2])
    """
    if not hasattr(x, "__dlpack__"):
      fail(
        DTypeError, f"from_dlpack: {type(x).__name__} has no __dlpack__; Tensor(...) takes lists and numbers"
      )
    return taken_over(np.from_dlpack(x))

  def __dlpack__(
    self,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
  ) -> Any:
    """The values for another library, on the CPU: the memory itself, unless copy or where the host does not see it."""
    if self.dtype is dtypes.bfloat16:
      fail(
        DTypeError,
        "__dlpack__: NumPy, which hands over the values, has no bfloat16; x.float() would fit",
        x=self,
      )
    array = self.numpy() if copy else shared(self)  # type: ignore[arg-type]
    return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

  def __dlpack_device__(self) -> tuple[int, int]:
    """(1, 0): the CPU, in DLPack's numbers."""
    return 1, 0

  @staticmethod
  def tensor(data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """`Tensor(data, ...)`, as PyTorch spells it."""
    return Handle._final(data, dtype, device, requires_grad)

  def one_hot(self, num_classes: int = -1) -> Tensor:
    """A new last axis of 0 and 1, with the 1 at the place that the integer says; int64.

    num_classes -1: one more than the largest value, which has to be computed for it. IndexError, when computed, if an
    integer is negative or no class.

    >>> Tensor([2, 0]).one_hot(3)
    Tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if self.dtype.kind not in "iu":
      fail(DTypeError, f"one_hot: places are integers, not {self.dtype.name}", x=self)
    if num_classes < -1 or (num_classes < 1 and not (num_classes and self.numel())):
      fail(
        ArgumentError,
        f"one_hot: num_classes is {num_classes}; 1 or more would fit, or -1 where x has elements",
        x=self,
      )
    n = num_classes if num_classes > 0 else int(self.max().item()) + 1
    return (self._place(n).unsqueeze(-1) == self._new(graph.iota(n, dtypes.int64))).to(dtypes.int64)

  def _place(self, n: int) -> Tensor:
    """These integers as int64; an IndexError, when computed, if one of them is not in 0..n-1."""
    places = self._new(graph.iota(n, dtypes.int64))
    return places.gather(0, self.flatten().long()).reshape(self.shape)  # type: ignore[attr-defined]


def _column(n: int) -> UOp:
  return graph.reshape(graph.iota(n), (n, 1))


def _line(n: int, start: Any, step: Any, kind: DType, held: DType) -> UOp:
  """start + i * step, computed in the type `held`."""
  if (
    isinstance(start, float)
    and isinstance(step, float)
    and start.is_integer()
    and step.is_integer()
    and held is dtypes.float64
  ):
    held, start, step = dtypes.int64, int(start), int(step)
  u = graph.iota(n, kind if held is dtypes.int64 and kind.kind in "iu" else held)
  u = graph.alu("mul", u, const(step, u.dtype)) if step != 1 else u
  return graph.cast(graph.alu("add", u, const(start, u.dtype)) if start != 0 else u, kind)
