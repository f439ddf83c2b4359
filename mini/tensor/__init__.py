"""Tensor: the class that users see. Its methods stand in one file for each family, in the order in which they build on
each other: views, handle, host, operators, elementwise, mathematics, special, activations, movement, split,
concat, arrange, reduce, creation, random, indexing, scattering, sorting, multiply, convolution, pooling, image,
distance, normalize, losses, autograd, linalg, parts, spectral, pieces, statistics, aliases, inplace.
"""

from __future__ import annotations

from typing import Any

from mini.ir import graph
from mini.tensor.argument_check import guard
from mini.tensor.autocast import listed
from mini.tensor.data import complex_numbers
from mini.tensor.handle import Handle
from mini.tensor.inplace import InPlace
from mini.tensor.promotion import result_type
from mini.tensor.random import Generator, Random, drawing
from mini.tensor.rounding import once
from mini.tensor.template import templates
from mini.types import DType, as_dtype, dtypes


class _Training:
  """`with Tensor.train():` - dropout acts, batch norm learns."""

  def __init__(self, mode: bool = True):
    self.mode = mode

  def __enter__(self) -> None:
    self.before, Tensor.training = Tensor.training, self.mode

  def __exit__(self, *exception: object) -> None:
    Tensor.training = self.before


class Tensor(InPlace):
  """Numbers of one type in an array of any number of axes; lazy, differentiable.

  data: a number, (nested) lists, a NumPy array, bytes, or a tensor. dtype: bool, int64, float32 or complex64 by what
  the numbers are, and that of an array, unless given. Nothing is computed until a value is asked for.

  A Python number takes the type of the tensor that it meets. OverflowError where it is none of that type: too large an
  integer, or a finite number that would be rounded to infinity (`half * 1e9`), which PyTorch takes for infinity in
  products, sums, masks and `torch.tensor`. Comparisons with such numbers are exact.

  >>> (Tensor([[1, 2], [3, 4]]) * 10).sum(1)
  Tensor([30, 70])
  >>> Tensor([1.0], dtype="float16") < 1e9
  Tensor([ True])
  """

  train = _Training

  @staticmethod
  def result_type(*operands: Any) -> DType:
    """The type that an operation gives of these tensors and numbers, as PyTorch's `result_type`. DTypeError of what is
    neither.

    >>> Tensor.result_type(Tensor([1, 2]), 0.5).name
    'float32'
    """
    return result_type(*operands)

  def cast(self, dtype: Any) -> Tensor:
    """In another type: floats to integers round towards zero, to smaller integers wrap. Of its own type: itself.

    >>> Tensor([1.7, -1.7]).cast("int32").tolist()
    [1, -1]
    """
    kind = as_dtype(dtype)
    if kind.kind == "c":
      return complex_numbers().from_real(self, kind)
    return self if kind is self.dtype else self._new(graph.cast(self._node, kind))

  def type(self, dtype: Any) -> Tensor:
    """Another name of `cast`."""
    return self.cast(dtype)

  def astype(self, dtype: Any) -> Tensor:
    """NumPy's name of `cast`."""
    return self.cast(dtype)

  def type_as(self, other: Tensor) -> Tensor:
    """In the type of another tensor."""
    return self.cast(other.dtype)

  def bitcast(self, dtype: Any) -> Tensor:
    """The same bits, read as another type of the same size. DTypeError if the sizes differ.

    >>> Tensor([1.0]).bitcast("int32").item() == 0x3F800000
    True
    """
    return self._view(("bits", as_dtype(dtype)))

  def half(self) -> Tensor:
    """In float16."""
    return self.cast(dtypes.float16)

  def bfloat16(self) -> Tensor:
    """In bfloat16."""
    return self.cast(dtypes.bfloat16)

  def float(self) -> Tensor:
    """In float32."""
    return self.cast(dtypes.float32)

  def double(self) -> Tensor:
    """In float64."""
    return self.cast(dtypes.float64)

  def char(self) -> Tensor:
    """In int8."""
    return self.cast(dtypes.int8)

  def short(self) -> Tensor:
    """In int16."""
    return self.cast(dtypes.int16)

  def int(self) -> Tensor:
    """In int32."""
    return self.cast(dtypes.int32)

  def long(self) -> Tensor:
    """In int64."""
    return self.cast(dtypes.int64)

  def byte(self) -> Tensor:
    """In uint8."""
    return self.cast(dtypes.uint8)

  def bool(self) -> Tensor:
    """As booleans: true where it is not zero."""
    return self.cast(dtypes.bool)


for family in Tensor.__mro__[:-1]:
  drawing(family)
  once(family)
  listed(family)
  templates(family)
  guard(family)
Handle._final = Tensor
Random.generator = Generator()

__all__ = ["Tensor"]
