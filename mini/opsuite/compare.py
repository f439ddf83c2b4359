"""How far the result of a case may be from the reference.

The reference is the interpreter, on the same inputs. Of an elementwise operation on floats of up to 32 bits it computes
in float64, and is rounded once: so its own error is not counted. Integers, booleans, comparisons, and what only moves
numbers, must be equal to the bit; so must sums and products of those inputs for which every order gives the same.

NaN equals NaN, whatever its bits. The sign of a zero counts, but where the standard for the operation leaves it open.
"""

from __future__ import annotations

import numpy as np

from mini.ir.composites import ROWS
from mini.ir.interp import evaluate
from mini.ir.ops import is_elementwise
from mini.ir.uop import UOp, rebuild, toposort, uop
from mini.opsuite.cases import Case
from mini.opsuite.data import limits, rounded, values
from mini.types import DType, dtypes

# Units in the last place of float32 that a language's specification allows (the docstrings of mini/render say where it
# stands), of those that do not print a body of composites.py, as C does: that is as far off as its row says. A language
# that is not here may be as far off as any.
LANGUAGES = ("C", "CUDA", "OpenCL", "Metal")
# fmt: off
ACCURACY: dict[str, tuple[float, ...]] = {
  "exp2":  (2, 3, 4),
  "log2":  (2, 3, 4),
  "sin":   (2, 4, 4),
  "cos":   (2, 4, 4),
  "exp":   (2, 3, 4),
  "log":   (1, 3, 4),
  "tanh":  (2, 5, 5),
  "erf":   (2, 2, 2),
  "expm1": (1, 2, 2),
  "atan":  (2, 5, 5),
  "pow":   (4, 3.5, 3.5),
  "rsqrt": (2, 2, 1.5),
}
C = {"sin": 1}  # its own functions
# fmt: on
FLOAT64 = 16  # of functions in float64: OpenCL's table 8.2 goes up to that (pow, erf), and NumPy's own are up to 4 off
ANY_ZERO = {"max", "min", "order"}  # 0.0 == -0.0: either may come out


def ulps(case: Case, language: str) -> float:
  """Units in the last place of the case's type by which its result may be off."""
  d = case.root.dtype
  if case.accuracy == "rounding":  # rounded once
    return 0
  body = ROWS[case.accuracy].ulp if case.accuracy in ROWS else C.get(case.accuracy, 0)
  row = (body, *ACCURACY.get(case.accuracy, [body] * 3))
  if d.kind != "f" or not max(row):
    return 0
  if d is dtypes.float64:
    return FLOAT64
  return 1 if d.itemsize == 2 else row[LANGUAGES.index(language)] if language in LANGUAGES else max(row)


def wide(u: UOp, memo: dict[UOp, UOp]) -> UOp:
  """The same in float64."""
  for x in toposort(u):
    if x not in memo:
      src = tuple(memo[s] for s in x.src)
      narrow = x.dtype.kind == "f" and x.op != "buffer"
      memo[x] = uop(x.op, dtypes.float64, src, x.arg) if narrow else rebuild(x, src)
  return memo[u]


def reference(case: Case, flushed: bool) -> np.ndarray:
  """What is right. IndexError where that is."""
  root, d = case.root, case.root.dtype
  if is_elementwise(case.accuracy) and any(s.dtype.kind == "f" and s.dtype.itemsize < 8 for s in root.src):
    memo: dict[UOp, UOp] = {}
    (found,) = evaluate(
      [wide(root, memo)],
      lambda u: values(u, flushed).astype(np.float64 if u.dtype.kind == "f" else u.dtype.np),
    )
    return rounded(found, d)
  return evaluate([root], lambda u: values(u, flushed))[0]


def spacing(x: np.ndarray, d: DType) -> np.ndarray:
  """A unit in the last place of each number, in float64."""
  bits = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}[d]
  _, least, subnormal = limits(d)
  exponent = np.frexp(np.maximum(np.abs(x.astype(np.float64)), least))[1]
  return np.maximum(np.ldexp(1.0, exponent - bits), subnormal)


def agree(got: np.ndarray, want: np.ndarray, case: Case, allowed: float, flushed: bool) -> np.ndarray:
  """Which elements are as they should be."""
  d = case.root.dtype
  if d.kind != "f":
    return got == want
  with np.errstate(all="ignore"):
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if case.accuracy not in ANY_ZERO:
      same &= (got != 0) | (want != 0) | (np.signbit(got) == np.signbit(want))
    apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
    near = np.isfinite(got) & np.isfinite(want) & (got != want) & (apart <= allowed * spacing(want, d))
    least = limits(d)[1]
    tiny = (np.abs(got) <= least) & (np.abs(want) <= least) if flushed else np.zeros(got.shape, bool)
  return same | near | tiny


def wrong(got: np.ndarray, want: np.ndarray, case: Case, allowed: float, flushed: bool) -> str:
  """What is wrong with a result; "" if nothing is."""
  if got.shape != want.shape:
    return f"shape {got.shape}, not {want.shape}"
  fine = agree(got, want, case, allowed, flushed)
  if fine.all():
    return ""
  at = tuple(int(i) for i in np.argwhere(~fine)[0])
  more = f", and {fine.size - np.count_nonzero(fine) - 1} more" if np.count_nonzero(~fine) > 1 else ""
  return f"{got[at]!s}, not {want[at]!s} at {list(at)}{more}"


def differs(case: Case, got: np.ndarray, language: str, flushed: bool) -> str:
  return wrong(got, reference(case, flushed), case, ulps(case, language), flushed)
