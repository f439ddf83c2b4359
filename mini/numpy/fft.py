"""`numpy.fft`: `mini.fft` under NumPy's names, lazily; a row is a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mini import fft as ours
from mini.numpy.array import array_of, asarray
from mini.numpy.function import FFT, publish, tensor
from mini.tensor import Tensor


def _wide(a: Any) -> Tensor:
  """As NumPy transforms it: integers as float64."""
  t = tensor(a)
  return t if t.dtype.kind in "fc" else t.double()


def _line(name: str) -> Callable[..., Any]:
  def f(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    return array_of(getattr(ours, name)(_wide(a), n, axis, norm))

  return f


def _room(name: str) -> Callable[..., Any]:
  last = (-2, -1) if name.endswith("2") else None

  def f(a: Any, s: Any = None, axes: Any = last, norm: str | None = None) -> Any:
    return array_of(getattr(ours, name)(_wide(a), s, axes, norm))

  return f


def _shift(name: str) -> Callable[..., Any]:
  return lambda x, axes=None: array_of(getattr(ours, name)(tensor(x), axes))


def _frequencies(name: str) -> Callable[..., Any]:
  """At once; dtype is the standard's."""

  def f(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    return asarray(getattr(np.fft, name)(n, d), dtype, device=device)

  return f


ROWS = {
  _line: "fft ifft rfft irfft hfft ihfft",
  _room: "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn",
  _shift: "fftshift ifftshift",
  _frequencies: "fftfreq rfftfreq",
}
publish(
  globals(), FFT, np.fft, **{name: make(name) for make, names in ROWS.items() for name in names.split()}
)
