"""python -m mini ulp: how far functions are from exact results. docs/accuracy.md is what it prints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.tensor import Tensor
from mini.types import DType, dtypes

TYPES = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
SAMPLES = 1 << 16
EVERY = (-math.inf, math.inf)


def each(f: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
  """A function of Python's on arrays."""
  return np.vectorize(f, otypes=[np.float64])


def sigmoid(x: np.ndarray) -> np.ndarray:
  return 1 / (1 + np.exp(-x))


def gelu(x: np.ndarray) -> np.ndarray:
  return x * (0.5 * each(math.erfc)(-np.asarray(x, np.float64) * math.sqrt(0.5)))


# a method: what is exact, and from where to where
# fmt: off
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[float, float]]] = {
  "sqrt":     (np.sqrt,          (0, math.inf)),
  "rsqrt":    (lambda x: 1 / np.sqrt(x), (1e-300, math.inf)),
  "exp":      (np.exp,           EVERY),
  "exp2":     (np.exp2,          EVERY),
  "expm1":    (np.expm1,         EVERY),
  "log":      (np.log,           (0, math.inf)),
  "log2":     (np.log2,          (0, math.inf)),
  "log10":    (np.log10,         (0, math.inf)),
  "log1p":    (np.log1p,         (-1, math.inf)),
  "sin":      (np.sin,           (-1e4, 1e4)),
  "cos":      (np.cos,           (-1e4, 1e4)),
  "tan":      (np.tan,           (-1.5, 1.5)),
  "asin":     (np.arcsin,        (-1, 1)),
  "acos":     (np.arccos,        (-1, 1)),
  "atan":     (np.arctan,        EVERY),
  "sinh":     (np.sinh,          EVERY),
  "cosh":     (np.cosh,          EVERY),
  "tanh":     (np.tanh,          EVERY),
  "asinh":    (np.arcsinh,       EVERY),
  "acosh":    (np.arccosh,       (1, math.inf)),
  "atanh":    (np.arctanh,       (-1, 1)),
  "erf":      (each(math.erf),   EVERY),
  "erfc":     (each(math.erfc),  EVERY),
  "lgamma":   (each(math.lgamma), (3, 1e30)),
  "sigmoid":  (sigmoid,          (-87, math.inf)),
  "silu":     (lambda x: x * sigmoid(x), (-87, math.inf)),
  "softplus": (lambda x: np.where(x > 20, x, np.log1p(np.exp(x))), EVERY),
  "gelu":     (gelu,             (-2, math.inf)),
}
# fmt: on


def arguments(d: DType, low: float, high: float, samples: int) -> np.ndarray:
  """Finite numbers of a type from low to high, evenly spread by their bits."""
  bits = 8 * d.itemsize
  words = (np.arange(samples, dtype=np.uint64) << np.uint64(bits - 16)) * np.uint64((1 << 16) // samples)
  words += np.uint64((1 << bits - 16) // 3)  # not only round numbers
  if d is dtypes.bfloat16:
    x = (words.astype(np.uint32) << 16).view(np.float32)
  else:
    x = words.astype(f"u{d.itemsize}").view(d.np)
  with np.errstate(all="ignore"):
    wide = x.astype(np.float64)
  return np.sort(x[np.isfinite(x) & (wide >= low) & (wide <= high)])


def ulps(got: np.ndarray, exact: np.ndarray, d: DType) -> float:
  """The largest distance in units in the last place of the type, where the exact result fits it."""
  info = dtypes.finfo(d)
  digits = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}[d]
  with np.errstate(all="ignore"):
    fits = np.abs(exact) < float(info.max)
    least = math.frexp(float(info.tiny))[1]
    unit = np.ldexp(np.ones_like(exact), np.maximum(np.frexp(exact)[1], least) - 1 - digits)
    away = np.abs(got.astype(exact.dtype) - exact) / unit
  return float(np.max(away[fits], initial=0.0))


def measured(d: DType, samples: int = SAMPLES) -> dict[str, float]:
  """The largest error of each function in a type."""
  inputs = {name: arguments(d, *span, samples) for name, (_, span) in FUNCTIONS.items()}
  found = {name: getattr(Tensor(x, dtype=d), name)() for name, x in inputs.items()}
  Tensor.realize(*found.values())
  out = {}
  for name, (exact, _) in FUNCTIONS.items():
    with np.errstate(all="ignore"):
      want = np.asarray(exact(inputs[name].astype(np.longdouble)), np.longdouble)
    got = found[name].numpy() if d is not dtypes.bfloat16 else found[name].float().numpy()
    out[name] = ulps(got, want, d)
  return out


HEAD = """# How exact functions are

`python -m mini ulp > docs/accuracy.md` writes this page: the largest error that was found, in units in the last place
of a type, rounded up to the next half. Half a unit is what rounding takes, whatever the formula. Arguments are all
numbers of float16 and bfloat16, and as many of float32 and float64, evenly spread by their bits; "from" and "to" are
the least and the largest. Exact is what NumPy's longest float gives; for erf, erfc, lgamma and gelu what Python's
`math` gives in float64, which float64's own erf and erfc are on the CPU. These are the CPU's; where other devices
differ: [devices.md](devices.md).
"""


def page() -> str:
  """The table, in Markdown."""
  columns = [measured(d) for d in TYPES]
  lines = [f"| | from | to | {' | '.join(d.name for d in TYPES)} |", f"|{' --- |' * (len(TYPES) + 3)}"]
  for name, (_, span) in FUNCTIONS.items():
    bounds = [f"{math.ceil(2 * column[name]) / 2:g}" for column in columns]
    ends = ["" if math.isinf(x) else f"{x:g}" for x in span]
    lines.append(f"| {' | '.join([name, *ends, *bounds])} |")
  return "\n".join([HEAD, *lines])
