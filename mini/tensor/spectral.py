"""Windows, and transforms of short pieces of a signal: the short-time Fourier transform and its inverse.

The transforms are those of fourier.py; all others of them are functions, in mini/fft.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.parts import Parts
from mini.tensor.split import overlapped
from mini.tensor.trace import local
from mini.types import ArgumentError, DTypeError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

LEAST = 1e-11  # of the sum of squared windows over a place that can be had back


class Spectral(Parts):
  """stft, istft, windows."""

  # ---------------------------------------------------------------- windows

  @staticmethod
  def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """(1 - cos(2 pi j / N)) / 2; N is window_length, or, where it is not periodic, one less.

    >>> Tensor.hann_window(4)
    Tensor([0. , 0.5, 1. , 0.5])
    """
    t = _turns("hann_window", window_length, periodic)
    return _window(0.5 - 0.5 * np.cos(t), dtype, device, requires_grad)

  @staticmethod
  def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """alpha - beta cos(2 pi j / N)."""
    t = _turns("hamming_window", window_length, periodic)
    return _window(alpha - beta * np.cos(t), dtype, device, requires_grad)

  @staticmethod
  def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """0.42 - 0.5 cos(2 pi j / N) + 0.08 cos(4 pi j / N)."""
    t = _turns("blackman_window", window_length, periodic)
    return _window(0.42 - 0.5 * np.cos(t) + 0.08 * np.cos(2 * t), dtype, device, requires_grad)

  @staticmethod
  def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """1 - |2 j / N - 1|: a triangle."""
    t = _turns("bartlett_window", window_length, periodic) / np.pi
    return _window(1 - abs(t - 1) * (window_length > 1), dtype, device, requires_grad)

  @staticmethod
  def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """I0(beta sqrt(1 - (2 j / N - 1)^2)) / I0(beta), with the modified Bessel function I0."""
    t = _turns("kaiser_window", window_length, periodic) / np.pi - (window_length > 1)
    inside = np.sqrt(np.maximum(1 - t * t, 0))
    return _window(np.i0(beta * inside) / np.i0(beta), dtype, device, requires_grad)

  # ---------------------------------------------------------------- pieces of a signal

  def stft(
    self,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
  ) -> Tensor:
    """The transforms of pieces of n_fft samples, hop_length apart, by a window.   T[.., n] -> C[.., frequency, piece]

    hop_length: n_fft // 4 if not told. window: of win_length (n_fft), in the middle of a piece; ones if not told.
    center: padded by n_fft // 2 on both sides, by pad_mode, so that piece i is around sample i * hop_length.
    normalized: by 1 / sqrt(n_fft). onesided: n_fft // 2 + 1 frequencies, which is enough of real samples, and what
    they get if not told. return_complex must be told of real samples; False gives the parts as a last axis of size 2.
    (PyTorch's.)

    >>> Tensor.ones(16).stft(4, window=Tensor.hann_window(4), return_complex=True).abs()[:, 0]
    Tensor([2., 1., 0.])
    """
    hop, window = self._pieces("stft", n_fft, hop_length, win_length, window)
    real = not (self._complex or window._complex)
    if return_complex is None and real:
      fail(
        ArgumentError,
        "stft: return_complex is to be told of real samples: True is what is wanted, mostly",
        x=self,
      )
    if onesided and not real:
      fail(ArgumentError, "stft: onesided: of complex numbers, all frequencies are needed", x=self)
    if self.ndim not in (1, 2):
      fail(ShapeError, f"stft: x has {self.ndim} axes, not one, or two with a batch", x=self)
    x: Any = self
    if center:
      x = x.pad((n_fft // 2, n_fft // 2), mode=pad_mode)
    if x.shape[-1] < n_fft:
      fail(ShapeError, f"stft: x has fewer samples than a piece, {n_fft}", x=self)
    pieces = x.unfold(-1, n_fft, hop) * window
    functions = import_module("mini.fft")
    transform = functions.rfft if onesided or (onesided is None and real) else functions.fft
    out = transform(pieces, norm="ortho" if normalized else None).mT
    return out.view_as_real() if return_complex is False else out

  def istft(
    self,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
  ) -> Tensor:
    """The signal that has this `stft`, or is nearest to having it.   C[.., frequency, piece] -> T[.., n]

    D. Griffin and J. Lim, Signal estimation from modified short-time Fourier transform, 1984. The arguments are those
    of `stft`; length: how many samples. ShapeError where no window covers a sample.

    >>> x, w = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Tensor.hann_window(4)
    >>> x.stft(4, window=w, return_complex=True).istft(4, window=w).round(decimals=4)
    Tensor([1., 2., 3., 4., 5., 6.])
    """
    hop, window = self._pieces("istft", n_fft, hop_length, win_length, window)
    if not self._complex:
      fail(DTypeError, "istft: x is not complex; x.view_as_complex() makes it of pairs", x=self)
    whole = n_fft if return_complex or onesided is False else n_fft // 2 + 1
    if self.ndim not in (2, 3) or self.shape[-2] != whole:
      fail(
        ShapeError,
        f"istft: x has the axes (frequency, piece), maybe after a batch, and {whole} frequencies",
        x=self,
      )
    functions, norm = import_module("mini.fft"), "ortho" if normalized else None
    pieces = self.mT
    if return_complex:
      pieces = functions.ifft(pieces, norm=norm)
    else:
      pieces = functions.irfft(pieces[..., : n_fft // 2 + 1], n_fft, norm=norm)
    pieces = pieces * window
    squares = (window * window.conj()).real.expand(self.shape[-1], n_fft)
    start = n_fft // 2 if center else 0
    total = n_fft + hop * (self.shape[-1] - 1)
    stop = total - start if length is None else min(start + length, total)
    cover = _added_up(squares, hop, total).narrow(-1, start, max(stop - start, 0))
    if local.current is None and not (cover.abs() > LEAST).all().item():
      fail(ShapeError, "istft: there is a sample that no window covers", x=self, window=window)
    out = _added_up(pieces, hop, total).narrow(-1, start, max(stop - start, 0)) / cover
    return out if length is None else out.pad((0, length - out.shape[-1]))

  def _pieces(self, what: str, n_fft: int, hop: Any, length: Any, window: Any) -> tuple[int, Any]:
    """The distance of pieces, and a window of the size of one."""
    hop = n_fft // 4 if hop is None else hop
    length = n_fft if length is None else length
    if hop < 1 or not 0 < length <= n_fft:
      fail(
        ArgumentError, f"{what}: pieces of {n_fft} samples, {hop} apart, with a window of {length}", x=self
      )
    if window is None:
      kind = dtypes.float64 if self.dtype in (dtypes.float64, dtypes.complex128) else dtypes.float32
      window = Parts.ones(length, dtype=kind, device=self.device)
    if window.shape != (length,):
      fail(ShapeError, f"{what}: the window does not have {length} elements", x=self, window=window)
    left = (n_fft - length) // 2
    return hop, window.pad((left, n_fft - length - left))


def _added_up(pieces: Any, hop: int, total: int) -> Any:
  """Pieces where they were taken from, added up where they overlap.   T[.., piece, n] -> T[.., total]"""

  def of_part(p: Any) -> Any:
    u = p.mT._node
    return Handle._new(overlapped(u, p.ndim - 2, total, hop))

  return pieces._mapped(of_part)


def _turns(what: str, n: int, periodic: bool) -> np.ndarray:
  """2 pi j / N, for each j."""
  if n < 0:
    fail(ArgumentError, f"{what}: {n} elements")
  return 2 * np.pi * np.arange(n) / max(n - (not periodic), 1)


def _window(values: np.ndarray, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
  """A window of one element is 1."""
  values = np.ones(1) if len(values) == 1 else values
  return Handle._final(values, dtype or dtypes.default_float, device, requires_grad)
