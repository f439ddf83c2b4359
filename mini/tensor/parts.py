"""Complex tensors from real ones, and real ones from complex ones.

What there is of a complex tensor itself stands in complex.py; here is what every tensor can be asked: a real one is a
complex one whose imaginary part is 0, without holding it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mini.ir import graph
from mini.tensor.data import complex_numbers
from mini.tensor.errors import checked, fail
from mini.tensor.handle import Handle
from mini.tensor.linalg import LinearAlgebra
from mini.types import DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Parts(LinearAlgebra):
  """Real and imaginary parts, magnitude and angle, conjugates."""

  @staticmethod
  def complex(real: Any, imag: Any) -> Tensor:
    """real + i imag, of two float32 or float64 tensors of one type; shapes broadcast. A gradient passes to both.

    DTypeError of other types.

    >>> Tensor.complex(Tensor([1.0, 2.0]), Tensor([0.0, -1.0]))
    Tensor([1.+0.j, 2.-1.j], dtype=complex64)
    """
    for x in (real, imag):
      if not isinstance(x, Handle) or x.dtype not in (dtypes.float32, dtypes.float64):
        fail(DTypeError, "complex: the parts are float32 or float64 tensors", real=real, imag=imag)
    if real.dtype is not imag.dtype:
      fail(DTypeError, "complex: the parts are of different types", real=real, imag=imag)
    z = complex_numbers().joined(real.clone(), imag.clone())
    checked(graph.alu("add", *(p._node for p in z._parts())))  # as of any operation of the two
    return z

  @staticmethod
  def polar(abs: Any, angle: Any) -> Tensor:
    """abs * (cos(angle) + i sin(angle)), of two float32 or float64 tensors of one type.

    >>> Tensor.polar(Tensor([2.0]), Tensor([0.0]))
    Tensor([2.+0.j], dtype=complex64)
    """
    for x in (abs, angle):
      if not isinstance(x, Handle) or x.dtype not in (dtypes.float32, dtypes.float64):
        fail(DTypeError, "polar: magnitude and angle are float32 or float64 tensors", abs=abs, angle=angle)
    return Parts.complex(abs * angle.cos(), abs * angle.sin())

  def view_as_complex(self) -> Tensor:
    """The pairs along the last axis, which has size 2, as complex numbers.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).view_as_complex()
    Tensor([1.+2.j, 3.+4.j], dtype=complex64)
    """
    if not self.ndim or self.shape[-1] != 2:
      fail(ShapeError, "view_as_complex: the last axis holds pairs, and has size 2", x=self)
    if self.dtype not in (dtypes.float32, dtypes.float64):
      fail(DTypeError, "view_as_complex: the parts are float32 or float64", x=self)
    return complex_numbers().joined(self[..., 0], self[..., 1])

  def view_as_real(self) -> Tensor:
    """Real and imaginary parts as a new last axis of size 2. DTypeError of a real tensor. It is a copy that cannot be
    written to: write to `x.real` and `x.imag`.

    >>> Tensor([1 + 2j]).view_as_real()
    Tensor([[1., 2.]])
    """
    if not self._complex:
      fail(DTypeError, f"view_as_real: {self.dtype.name} is not complex", x=self)
    return self.real.stack(self.imag, dim=-1)._computed(lambda x: x)

  def is_complex(self) -> bool:
    """Is the type one of the complex types?"""
    return self._complex

  def isreal(self) -> Tensor:
    """Where the imaginary part is 0; in a real tensor everywhere.

    >>> Tensor([1 + 2j, 1 + 0j]).isreal()
    Tensor([False,  True])
    """
    return self.imag == 0 if self._complex else self._filled(True)

  def cfloat(self) -> Tensor:
    """In complex64."""
    return self.to(dtypes.complex64)

  def cdouble(self) -> Tensor:
    """In complex128."""
    return self.to(dtypes.complex128)

  # ---------------------------------------------------------------- conjugates

  def conj(self) -> Tensor:
    """The complex conjugate; of a real tensor the tensor itself.

    >>> Tensor([1 + 2j]).conj()
    Tensor([1.-2.j], dtype=complex64)
    """
    return self._view(("same", None))

  def conj_physical(self) -> Tensor:
    """`conj` in a memory of its own."""
    return self.conj().clone() if self._complex else self.conj()

  def resolve_conj(self) -> Tensor:
    """The tensor itself: nothing is put off here."""
    return self._mapped(lambda t: t._view(("same", None)))

  @property
  def mH(self) -> Tensor:
    """The conjugate, with the last two axes exchanged.

    >>> Tensor([[1j, 2.0]]).mH.shape
    (2, 1)
    """
    return self.mT.conj()

  @property
  def H(self) -> Tensor:
    """`mH` of a matrix. ShapeError if there are not two axes."""
    if self.ndim != 2:
      fail(ShapeError, f"x.H: x has {self.ndim} axes, not 2; x.mH would fit", x=self)
    return self.mT.conj()

  def adjoint(self) -> Tensor:
    """`mH`."""
    return self.mH

  # ---------------------------------------------------------------- magnitude and angle

  def angle(self) -> Tensor:
    """The angle of each number in the complex plane, in -pi..pi: of a real one 0 or, where it is negative, pi.

    >>> Tensor([1.0, -1.0]).angle()
    Tensor([0.       , 3.1415927])
    """
    x = self._new(self._float())
    turned = (x < 0).where(math.pi, 0).cast(x.dtype)  # type: ignore[attr-defined]
    return x.isnan().where(x, turned)

  def sgn(self) -> Tensor:
    """a / |a|, 0 where it is 0; of a real tensor `sign`.

    >>> Tensor([3 + 4j, 0]).sgn()
    Tensor([0.6+0.8j, 0. +0.j ], dtype=complex64)
    """
    return self.sign()
