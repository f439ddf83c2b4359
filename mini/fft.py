"""Fourier transforms: `mini.fft`, with the names and arguments of torch.fft.

A transform is a sum over an axis of the elements times roots of unity, X[k] = sum x[j] exp(-2 pi i j k / n); the
inverse has the other sign. norm says which has the scale: "backward" (None; the inverse has 1/n), "ortho" (both have
1/sqrt(n)), "forward" (the other way round). Integers and halves are transformed in complex64, float64 in complex128.
Any length takes O(n log n): how is in mini/tensor/fourier.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mini.tensor import Tensor
from mini.tensor.argument_check import guard_functions
from mini.tensor.errors import fail
from mini.tensor.fourier import from_half, to_half, transformed
from mini.tensor.handle import Handle
from mini.types import ArgumentError, AxisError, DTypeError, ShapeError, complex_of, dtypes

Ints = int | Sequence[int] | None


# ---------------------------------------------------------------- along one axis


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """The transform along an axis, which is cut or padded with zeros to n elements first.

  >>> fft(Tensor([1.0, 2.0, 3.0, 4.0]))
  Tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
  """
  return _along("fft", input, n, dim, norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """The inverse of `fft`.

  >>> ifft(fft(Tensor([1.0, 2.0]))).real
  Tensor([1., 2.])
  """
  return _along("ifft", input, n, dim, norm, True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """The first n // 2 + 1 elements of `fft` of a real tensor: the others are their conjugates. DTypeError of a complex
  one.

  >>> rfft(Tensor([1.0, 2.0, 3.0, 4.0]))
  Tensor([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
  """
  _real("rfft", input)
  x, a, scale = _prepared("rfft", input, n, dim, norm, False)
  return _scaled(to_half(x).movedim(-1, a), scale)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """The inverse of `rfft`: n real elements, 2 (m - 1) of m if not told. The imaginary part of the first element, and
  for an even n that of the last, does not count.

  >>> irfft(rfft(Tensor([1.0, 2.0, 3.0])), n=3)
  Tensor([1., 2., 3.])
  """
  a, n = _hermitian("irfft", input, n, dim)
  half = _sized(input.to(complex_of(input.dtype)), a, n // 2 + 1).movedim(a, -1)
  return _scaled(from_half(half, n).movedim(-1, a), _scale("irfft", norm, n, True))


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """The transform, which is real, of what is given by its first half: the other half are conjugates. n elements,
  2 (m - 1) of m if not told.

  >>> hfft(Tensor([1.0, 2.0, 3.0]))
  Tensor([ 8., -2.,  0., -2.])
  """
  a, n = _hermitian("hfft", input, n, dim)
  return irfft(input.conj(), n, a, _opposite("hfft", norm))


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """The inverse of `hfft`, of a real tensor: n // 2 + 1 elements. DTypeError of a complex one.

  >>> ihfft(hfft(Tensor([1.0, 2.0, 3.0]))).real
  Tensor([1., 2., 3.])
  """
  _real("ihfft", input)
  return rfft(input, n, dim, _opposite("ihfft", norm)).conj()


# ---------------------------------------------------------------- along several axes


def fftn(input: Tensor, s: Ints = None, dim: Ints = None, norm: str | None = None) -> Tensor:
  """`fft` along several axes: all, or the last len(s), if not told.

  >>> fftn(Tensor([[1.0, 2.0], [3.0, 4.0]])).real
  Tensor([[10., -2.],
          [-4.,  0.]])
  """
  for n, a in _axes("fftn", input, s, dim):
    input = fft(input, n, a, norm)
  return input


def ifftn(input: Tensor, s: Ints = None, dim: Ints = None, norm: str | None = None) -> Tensor:
  """The inverse of `fftn`."""
  for n, a in _axes("ifftn", input, s, dim):
    input = ifft(input, n, a, norm)
  return input


def rfftn(input: Tensor, s: Ints = None, dim: Ints = None, norm: str | None = None) -> Tensor:
  """`rfft` along the last of several axes, and `fft` along the others. DTypeError of a complex tensor."""
  _real("rfftn", input)
  *others, (n, a) = _some("rfftn", input, _axes("rfftn", input, s, dim))
  input = rfft(input, n, a, norm)
  for n, a in others:
    input = fft(input, n, a, norm)
  return input


def irfftn(input: Tensor, s: Ints = None, dim: Ints = None, norm: str | None = None) -> Tensor:
  """The inverse of `rfftn`: `ifft` along all axes but the last, and `irfft` along that.

  >>> irfftn(rfftn(Tensor([[1.0, 2.0], [3.0, 4.0]])))
  Tensor([[1., 2.],
          [3., 4.]])
  """
  *others, (n, a) = _some("irfftn", input, _axes("irfftn", input, s, dim))
  for m, b in others:
    input = ifft(input, m, b, norm)
  return irfft(input, n, a, norm)


def fft2(input: Tensor, s: Ints = None, dim: Ints = (-2, -1), norm: str | None = None) -> Tensor:
  """`fftn` along the last two axes."""
  return fftn(input, s, dim, norm)


def ifft2(input: Tensor, s: Ints = None, dim: Ints = (-2, -1), norm: str | None = None) -> Tensor:
  """`ifftn` along the last two axes."""
  return ifftn(input, s, dim, norm)


def rfft2(input: Tensor, s: Ints = None, dim: Ints = (-2, -1), norm: str | None = None) -> Tensor:
  """`rfftn` along the last two axes."""
  return rfftn(input, s, dim, norm)


def irfft2(input: Tensor, s: Ints = None, dim: Ints = (-2, -1), norm: str | None = None) -> Tensor:
  """`irfftn` along the last two axes."""
  return irfftn(input, s, dim, norm)


def hfftn(input: Tensor, s: Ints = None, dim: Ints = None, norm: str | None = None) -> Tensor:
  """The transform, which is real, of what is given by its first half along the last of several axes."""
  return irfftn(input.conj(), s, dim, _opposite("hfftn", norm))


def ihfftn(input: Tensor, s: Ints = None, dim: Ints = None, norm: str | None = None) -> Tensor:
  """The inverse of `hfftn`, of a real tensor.

  >>> ihfftn(hfftn(Tensor([[1.0, 2.0], [3.0, 4.0]]))).real.tolist()
  [[1.0, 2.0], [3.0, 4.0]]
  """
  return rfftn(input, s, dim, _opposite("ihfftn", norm)).conj()


def hfft2(input: Tensor, s: Ints = None, dim: Ints = (-2, -1), norm: str | None = None) -> Tensor:
  """`hfftn` along the last two axes."""
  return hfftn(input, s, dim, norm)


def ihfft2(input: Tensor, s: Ints = None, dim: Ints = (-2, -1), norm: str | None = None) -> Tensor:
  """`ihfftn` along the last two axes."""
  return ihfftn(input, s, dim, norm)


# ---------------------------------------------------------------- frequencies


def fftfreq(
  n: int, d: float = 1.0, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
  """The frequencies of `fft`'s elements, in cycles per unit of d, the distance of the samples.

  >>> fftfreq(4)
  Tensor([ 0.  ,  0.25, -0.5 , -0.25])
  """
  return _frequencies("fftfreq", np.fft.fftfreq, n, d, dtype, device, requires_grad)


def rfftfreq(
  n: int, d: float = 1.0, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
  """The frequencies of `rfft`'s elements.

  >>> rfftfreq(4)
  Tensor([0.  , 0.25, 0.5 ])
  """
  return _frequencies("rfftfreq", np.fft.rfftfreq, n, d, dtype, device, requires_grad)


def fftshift(input: Tensor, dim: Ints = None) -> Tensor:
  """Turned so that the frequency 0 stands in the middle of the axes.

  >>> fftshift(Tensor([0, 1, 2, -2, -1]))
  Tensor([-2, -1,  0,  1,  2])
  """
  axes = input._axes(dim, "fftshift")
  return input.roll([input.shape[a] // 2 for a in axes], list(axes))


def ifftshift(input: Tensor, dim: Ints = None) -> Tensor:
  """The inverse of `fftshift`.

  >>> ifftshift(Tensor([-2, -1, 0, 1, 2]))
  Tensor([ 0,  1,  2, -2, -1])
  """
  axes = input._axes(dim, "ifftshift")
  return input.roll([-(input.shape[a] // 2) for a in axes], list(axes))


# ---------------------------------------------------------------- what they have in common


def _along(what: str, x: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool) -> Tensor:
  x, a, scale = _prepared(what, x, n, dim, norm, inverse)
  return _scaled(transformed(x, inverse).movedim(-1, a), scale)


def _prepared(
  what: str, x: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool
) -> tuple[Tensor, int, float]:
  """(x of n elements along its last axis, the axis that this was, the scale)"""
  a = _tensor(what, x)._axis(dim, what)
  if not x.ndim:
    fail(AxisError, f"{what}: a 0-d tensor has no axis to be transformed", x=x)
  x = _sized(x, a, _count(what, x, x.shape[a] if n is None else n))
  return x.movedim(a, -1), a, _scale(what, norm, x.shape[a], inverse)


def _scaled(out: Tensor, scale: float) -> Tensor:
  return out if scale == 1 else out * scale


def _scale(what: str, norm: str | None, n: int, inverse: bool) -> float:
  power = _power(what, norm)
  return n ** -(1 - power if inverse else power)


def _power(what: str, norm: str | None) -> float:
  """The transform has the scale n ** -power, the inverse what is left of 1 / n."""
  powers = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
  if norm not in powers:
    fail(ArgumentError, f'{what}: norm is "backward", "ortho" or "forward", not {norm!r}')
  return powers[norm]


def _opposite(what: str, norm: str | None) -> str:
  return {0.0: "forward", 0.5: "ortho", 1.0: "backward"}[_power(what, norm)]


def _sized(x: Tensor, a: int, n: int) -> Tensor:
  """Cut or padded along an axis."""
  size = x.shape[a]
  if n < size:
    return x.narrow(a, 0, n)
  return x.pad([(0, n - size if b == a else 0) for b in range(x.ndim)]) if n > size else x


def _count(what: str, x: Tensor, n: int) -> int:
  if n < 1:
    fail(ShapeError, f"{what}: {n} elements: there is at least one", x=x)
  return n


def _hermitian(what: str, x: Tensor, n: int | None, dim: int) -> tuple[int, int]:
  """The axis, and how many elements come out."""
  a = _tensor(what, x)._axis(dim, what)
  if not x.ndim:
    fail(AxisError, f"{what}: a 0-d tensor has no axis to be transformed", x=x)
  return a, _count(what, x, 2 * (x.shape[a] - 1) if n is None else n)


def _axes(what: str, x: Tensor, s: Ints, dim: Ints) -> list[tuple[int | None, int]]:
  """(size, axis) of each axis; a size of -1 is as it is."""
  sizes = None if s is None else [s] if isinstance(s, int) else list(s)
  if sizes is not None and len(sizes) > _tensor(what, x).ndim:
    fail(ShapeError, f"{what}: {len(sizes)} sizes for the {x.ndim} axes of x", x=x)
  told = list(range(x.ndim - len(sizes), x.ndim)) if dim is None and sizes is not None else dim
  if told is not None and not x.ndim:
    fail(AxisError, f"{what}: a 0-d tensor has no axes {told}", x=x)
  axes = _tensor(what, x)._axes(told, what)
  if sizes is not None and len(sizes) != len(axes):
    fail(ShapeError, f"{what}: {len(sizes)} sizes for {len(axes)} axes", x=x)
  wanted: list[int | None] = [None] * len(axes) if sizes is None else [None if n == -1 else n for n in sizes]
  return list(zip(wanted, axes))


def _some(what: str, x: Tensor, axes: list[tuple[int | None, int]]) -> list[tuple[int | None, int]]:
  if not axes:
    fail(AxisError, f"{what}: there is no axis to be transformed", x=x)
  return axes


def _tensor(what: str, x: Any) -> Tensor:
  if not isinstance(x, Handle):
    fail(DTypeError, f"{what}: x is {x!r}, not a tensor")
  return x  # type: ignore[return-value]


def _real(what: str, x: Any) -> None:
  if _tensor(what, x).is_complex():
    fail(DTypeError, f"{what}: x is {x.dtype.name}, and not real; fft takes it", x=x)


def _frequencies(
  what: str, find: Any, n: int, d: float, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
  if not isinstance(n, int) or n < 1:
    fail(ArgumentError, f"{what}: n is a positive integer, not {n!r}")
  return Tensor(find(n, d), dtype or dtypes.default_float, device, requires_grad)


__all__ = [
  "fft",
  "fft2",
  "fftfreq",
  "fftn",
  "fftshift",
  "hfft",
  "hfft2",
  "hfftn",
  "ifft",
  "ifft2",
  "ifftn",
  "ifftshift",
  "ihfft",
  "ihfft2",
  "ihfftn",
  "irfft",
  "irfft2",
  "irfftn",
  "rfft",
  "rfft2",
  "rfftfreq",
  "rfftn",
]
guard_functions(__all__, globals())
