"""torch.signal.windows's names: weights of M samples, from formulas of their places.

All take M and, by name, `sym` (False: one period of M + 1 samples without the last), dtype, device, requires_grad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mini.tensor import Tensor
from mini.tensor.argument_check import guard_functions
from mini.tensor.errors import fail
from mini.types import ArgumentError, as_dtype, dtypes


def _cosines(j: np.ndarray, n: float, a: Iterable[float]) -> np.ndarray:
  turns = 2 * np.pi * j / n
  return sum(((-1) ** k * c * np.cos(k * turns) for k, c in enumerate(a)), np.zeros(len(j)))


# fmt: off
# name: (the weight at sample j of 0..n, what it takes besides, with defaults)
WINDOWS: dict[str, tuple[Callable[..., np.ndarray], dict[str, Any]]] = {
  "bartlett":        (lambda j, n: 1 - abs(2 * j / n - 1), {}),
  "blackman":        (lambda j, n: _cosines(j, n, (0.42, 0.5, 0.08)), {}),
  "cosine":          (lambda j, n: np.sin(np.pi * (j + 0.5) / (n + 1)), {}),
  "exponential":     (lambda j, n, center, tau: np.exp(-abs(j - (n / 2 if center is None else center)) / tau),
                      {"center": None, "tau": 1.0}),
  "gaussian":        (lambda j, n, std: np.exp(-0.5 * ((j - n / 2) / std) ** 2), {"std": 1.0}),
  "general_cosine":  (lambda j, n, a: _cosines(j, n, a), {"a": None}),
  "general_hamming": (lambda j, n, alpha: _cosines(j, n, (alpha, 1 - alpha)), {"alpha": 0.54}),
  "hamming":         (lambda j, n: _cosines(j, n, (0.54, 0.46)), {}),
  "hann":            (lambda j, n: _cosines(j, n, (0.5, 0.5)), {}),
  "kaiser":          (lambda j, n, beta: np.i0(beta * np.sqrt(np.maximum(1 - (2 * j / n - 1) ** 2, 0))) / np.i0(beta),
                      {"beta": 12.0}),
  "nuttall":         (lambda j, n: _cosines(j, n, (0.3635819, 0.4891775, 0.1365995, 0.0106411)), {}),
}
# fmt: on


def _window(name: str) -> Callable[..., Tensor]:
  formula, taken = WINDOWS[name]

  def window(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False,
             layout: Any = None, **given: Any) -> Tensor:  # fmt: skip
    if unknown := [
      *(given.keys() - taken.keys()),
      *(k for k, v in taken.items() if v is None and k == "a" not in given),
    ]:
      raise TypeError(f"{name}: takes M and, by name, {', '.join([*taken, 'sym'])}: see {unknown[0]!r}")
    options = {**taken, **given}
    kind = as_dtype(dtype or dtypes.default_float)
    if kind not in (dtypes.float32, dtypes.float64):
      fail(ArgumentError, f"{name}: a window is of float32 or float64, not {kind.name}")
    if (
      M < 0
      or options.get("std", 1) <= 0
      or options.get("tau", 1) <= 0
      or options.get("beta", 0) < 0
      or options.get("a", 1) in ((), [])
      or (sym and options.get("center") is not None)
    ):
      fail(ArgumentError, f"{name}: no window of M={M} with {given or 'these'}, sym={sym}")
    n = float(M - 1 if sym else M)
    weights = np.ones(M) if M < 2 else formula(np.arange(M), n, **options)
    return Tensor(weights, kind, device, requires_grad)

  window.__name__ = window.__qualname__ = name
  window.__doc__ = (
    f"The window, M samples; by name {', '.join([*taken, 'sym', 'dtype', 'device', 'requires_grad'])}."
  )
  return window


for name in WINDOWS:
  globals()[name] = _window(name)

__all__ = [*WINDOWS]
guard_functions(__all__, globals())
