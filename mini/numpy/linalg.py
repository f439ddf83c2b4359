"""Products of arrays and `numpy.linalg`: made of Tensor's products and of `mini.linalg`."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
from numpy.linalg import LinAlgError

from mini.numpy.array import Lazy, array_of, asarray, made, operand
from mini.numpy.function import FUNCTIONS, LINALG, F, public, tensor
from mini.numpy.host import at_once
from mini.numpy.manipulation import diagonal as _diagonal
from mini.numpy.types import common_type, floating, loop
from mini.tensor import Tensor
from mini.tensor import linalg as ours


def _pair(*xs: Any) -> list[Tensor]:
  """Operands of a product in their common type."""
  arrays = [x if isinstance(x, Lazy) else asarray(x) for x in xs]
  kind = common_type(*arrays)
  return [operand(a, kind) for a in arrays]


def _product(a: Tensor, b: Tensor) -> Tensor:
  """a @ b; of booleans whether there is a pair of true ones."""
  return (a.int() @ b.int()).bool() if a.dtype.kind == "b" else a @ b


# ---------------------------------------------------------------- products


@public()
def matmul(x1: Any, x2: Any, /, *, dtype: Any = None, casting: Any = None) -> Any:
  a, b = (x if isinstance(x, Lazy) else asarray(x) for x in (x1, x2))
  kind = loop("matmul", (a.dtype, b.dtype, None))[0] if dtype is None else np.dtype(dtype)
  result = _product(operand(a, kind), operand(b, kind))
  return made(result)


for _sign, _f in {
  "__matmul__": lambda a, b: matmul(a, b),
  "__rmatmul__": lambda a, b: matmul(b, a),
  "__imatmul__": lambda a, b: FUNCTIONS["matmul"](a, b, out=a),
}.items():
  setattr(Lazy, _sign, _f)


@public()
def dot(a: Any, b: Any, out: Any = None) -> Any:
  x, y = _pair(a, b)
  if not x.ndim or not y.ndim:
    return made(x * y)
  if y.ndim <= 2:
    return made(_product(x, y))
  return made(x.tensordot(y, ([x.ndim - 1], [y.ndim - 2])))


@public()
def vdot(a: Any, b: Any, /) -> Any:
  x, y = _pair(a, b)
  return made(_product(_conj(x).reshape(-1), y.reshape(-1)))


def _conj(x: Tensor) -> Tensor:
  return x.conj() if x.dtype.kind == "c" else x  # type: ignore[attr-defined]


@public()
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1, **how: Any) -> Any:
  x, y = _pair(x1, x2)
  x, y = (t.movedim(normalize_axis_index(axis, t.ndim), -1) for t in (x, y))
  if x.shape[-1] != y.shape[-1]:
    raise ValueError("vecdot: vectors of two lengths")
  return made(_product(_conj(x).unsqueeze(-2), y.unsqueeze(-1)).squeeze(-1).squeeze(-1))


@public()
def matvec(x1: Any, x2: Any, /, **how: Any) -> Any:
  x, y = _pair(x1, x2)
  return made(_product(x, y.unsqueeze(-1)).squeeze(-1))


@public()
def vecmat(x1: Any, x2: Any, /, **how: Any) -> Any:
  x, y = _pair(x1, x2)
  return made(_product(_conj(x).unsqueeze(-2), y).squeeze(-2))


@public()
def inner(a: Any, b: Any, /) -> Any:
  x, y = _pair(a, b)
  return made(x.inner(y))


@public()
def outer(a: Any, b: Any, out: Any = None) -> Any:
  x, y = _pair(a, b)
  return array_of(x.reshape(-1, 1) * y.reshape(1, -1))


@public()
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
  x, y = _pair(a, b)
  if not isinstance(axes, int):
    axes = [[int(n)] if np.ndim(n) == 0 else [int(k) for k in n] for n in axes]
  return array_of(x.tensordot(y, axes))


@public()
def kron(a: Any, b: Any) -> Any:
  x, y = _pair(a, b)
  return made(x.kron(y))


@public()
def einsum(*operands: Any, **how: Any) -> Any:
  """`numpy.einsum`: a formula with arrays, or arrays with lists of axes."""
  if isinstance(operands[0], str):
    return made(Tensor.einsum(operands[0], *_pair(*operands[1:])))
  count = len(operands) // 2
  tensors = _pair(*operands[: 2 * count : 2])
  lists = [list(x) for x in operands[1 : 2 * count : 2]]
  letters = {n: chr(97 + i) for i, n in enumerate(sorted({n for x in lists for n in x if n is not Ellipsis}))}
  spell = lambda x: "".join("..." if n is Ellipsis else letters[n] for n in x)
  formula = ",".join(map(spell, lists)) + ("->" + spell(operands[-1]) if len(operands) % 2 else "")
  return made(Tensor.einsum(formula, *tensors))


@public()
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
  x, y = _pair(a, b)
  axisa, axisb, axisc = (axis, axis, axis) if axis is not None else (axisa, axisb, axisc)
  x, y = x.movedim(axisa, -1), y.movedim(axisb, -1)
  if x.shape[-1] != 3 or y.shape[-1] != 3:
    raise ValueError("cross: vectors have three elements")
  s = np.broadcast_shapes(x.shape, y.shape)
  return made(x.expand(s).cross(y.expand(s), -1).movedim(-1, axisc))


@public()
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
  return _diagonal(a, offset, axis1, axis2).sum(-1, dtype=dtype)


# ---------------------------------------------------------------- numpy.linalg

# Of complex matrices NumPy computes these, at once.
OF_REAL = """
inv det matrix_power cond slogdet svdvals cholesky eigh eigvalsh qr svd solve pinv matrix_rank matrix_norm multi_dot
"""


def linalg() -> Callable[[F], F]:
  """A row of `numpy.linalg`."""

  def register(f: F) -> F:
    name = f.__name__
    theirs = at_once(getattr(np.linalg, name))

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
      is_complex = any(isinstance(a, Lazy) and a.dtype.kind == "c" for a in args)
      return (theirs if is_complex and name in OF_REAL.split() else f)(*args, **kwargs)

    return public(into=LINALG, room=np.linalg)(call)  # type: ignore[return-value]

  return register


class QRResult(NamedTuple):
  """`linalg.qr`."""

  Q: Any
  R: Any


class EighResult(NamedTuple):
  """`linalg.eigh`."""

  eigenvalues: Any
  eigenvectors: Any


class EigResult(NamedTuple):
  """`linalg.eig`."""

  eigenvalues: Any
  eigenvectors: Any


class SVDResult(NamedTuple):
  """`linalg.svd`."""

  U: Any
  S: Any
  Vh: Any


class SlogdetResult(NamedTuple):
  """`linalg.slogdet`."""

  sign: Any
  logabsdet: Any


def _matrices(*xs: Any, square: bool = False) -> list[Tensor]:
  """Operands in a float type, the first one matrices."""
  arrays = [x if isinstance(x, Lazy) else asarray(x) for x in xs]
  kind = floating(common_type(*arrays))
  if kind == np.float16:
    raise TypeError("array type float16 is unsupported in linalg")
  if arrays[0].ndim < 2:
    raise LinAlgError(f"{arrays[0].ndim}-dimensional array given. Array must be at least two-dimensional")
  if square and arrays[0].shape[-1] != arrays[0].shape[-2]:
    raise LinAlgError("Last 2 dimensions of the array must be square")
  return [operand(a, kind) for a in arrays]


def _lapack(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
  """What mini.linalg gives, with NumPy's error."""
  try:
    return f(*args, **kwargs)
  except ours.LinAlgError as e:
    raise Unsolved(str(e).splitlines()[0]) from e


class Unsolved(LinAlgError):
  """Of values, which stand-ins do not have."""


def _decomposed(name: str, result: type | None = None, square: bool = True) -> None:
  """A row: the function of mini.linalg with NumPy's name, of matrices."""

  def f(a: Any, /, *args: Any, **kwargs: Any) -> Any:
    (x,) = _matrices(a, square=square)
    found = _lapack(getattr(ours, name), x, *args, **kwargs)
    return result(*map(made, found)) if result else made(found)

  f.__name__ = name
  f.__doc__ = f"`numpy.linalg.{name}`."
  linalg()(f)


for _name in ("inv", "det", "matrix_power", "cond"):
  _decomposed(_name, square=_name != "cond")
_decomposed("slogdet", SlogdetResult)
_decomposed("svdvals", square=False)


@linalg()
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
  (x,) = _matrices(a, square=True)
  return made(_lapack(ours.cholesky, x, upper=upper))


@linalg()
def eigh(a: Any, UPLO: str = "L") -> EighResult:
  (x,) = _matrices(a, square=True)
  return EighResult(*map(made, _lapack(ours.eigh, x, UPLO.upper())))


@linalg()
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
  (x,) = _matrices(a, square=True)
  return made(_lapack(ours.eigvalsh, x, UPLO.upper()))


@linalg()
def qr(a: Any, mode: str = "reduced") -> Any:
  (x,) = _matrices(a, square=False)
  if mode not in ("reduced", "complete", "r"):
    raise ValueError(f"Unrecognized mode '{mode}'")
  q, r = _lapack(ours.qr, x, mode)
  return made(r) if mode == "r" else QRResult(made(q), made(r))


@linalg()
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
  (x,) = _matrices(a)
  if not compute_uv:
    return made(_lapack(ours.svdvals, x))
  return SVDResult(*map(made, _lapack(ours.svd, x, full_matrices)))


@linalg()
def solve(a: Any, b: Any) -> Any:
  x, y = _matrices(a, b, square=True)
  if y.ndim == 1:
    return made(_lapack(ours.solve, x, y.unsqueeze(-1)).squeeze(-1))
  return made(_lapack(ours.solve, x, y))


@linalg()
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
  (x,) = _matrices(a)
  rtol = rtol if rcond is None else rcond
  return made(_lapack(ours.pinv, x, rtol if rtol is not None else 1e-15))


@linalg()
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, ...]:
  x, y = _matrices(a, b)
  found = np.linalg.lstsq(x.numpy(), y.numpy(), rcond)
  return asarray(found[0]), asarray(found[1]), found[2], asarray(found[3])


@linalg()
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
  if asarray(A).ndim < 2:
    return int(not (asarray(A) == 0).all())
  (x,) = _matrices(A)
  s = _lapack(ours.svdvals, x)
  eps = float(np.finfo(s.dtype.np).eps)
  if tol is None:
    rtol = max(x.shape[-2:]) * eps if rtol is None else rtol
    bound = s.max(-1, True) * tensor(rtol).cast(s.dtype).unsqueeze(-1)
  else:
    bound = tensor(tol).unsqueeze(-1)
  return made((s > bound).sum(-1))


@linalg()
def eig(a: Any) -> Any:
  """At once: the results are complex only where they have to be."""
  (x,) = _matrices(a, square=True)
  return EigResult(*map(asarray, np.linalg.eig(x.numpy())))


@linalg()
def eigvals(a: Any) -> Any:
  """At once, as `eig`."""
  (x,) = _matrices(a, square=True)
  return asarray(np.linalg.eigvals(x.numpy()))


@linalg()
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
  t = tensor(x)
  t = t if t.dtype.kind in "fc" else t.double()
  if axis is None and ord is None:
    flat = t.reshape(-1).norm()
    return made(flat.reshape((1,) * t.ndim) if keepdims else flat)
  axes = tuple(range(t.ndim)) if axis is None else normalize_axis_tuple(axis, t.ndim)
  if len(axes) == 1:
    if isinstance(ord, str):
      raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return made(t.norm(2 if ord is None else ord, axes, keepdims))
  if len(axes) != 2:
    raise ValueError("Improper number of dimensions to norm.")
  if ord not in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
    raise ValueError("Invalid norm order for matrices.")
  if t.dtype.kind == "c":
    if ord in ("nuc", 2, -2):
      return at_once(np.linalg.norm)(x, ord, axis, keepdims)
    t = t.abs()
  return made(ours.matrix_norm(t, "fro" if ord is None else ord, axes, keepdims))


@linalg()
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
  t = tensor(x)
  t = t if t.dtype.kind in "fc" else t.double()
  axes = tuple(range(t.ndim)) if axis is None else normalize_axis_tuple(axis, t.ndim)
  return made(t.norm(ord, axes, keepdims) if t.ndim else t.abs())


@linalg()
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
  return norm(x, ord, (-2, -1), keepdims)


@linalg()
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
  return made(Tensor.multi_dot(_pair(*arrays)))


def _others() -> None:
  """Functions of the main namespace that linalg has with other signatures."""

  @linalg()
  def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return _diagonal(x, offset, -2, -1)

  @linalg()
  def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return _diagonal(x, offset, -2, -1).sum(-1, dtype=dtype)

  @linalg()
  def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return _cross(x1, x2, axis=axis)

  @linalg()
  def outer(x1: Any, x2: Any, /) -> Any:
    if asarray(x1).ndim != 1 or asarray(x2).ndim != 1:
      raise ValueError("Input arrays must be one-dimensional, but they are "
                       f"x1.ndim={asarray(x1).ndim} and x2.ndim={asarray(x2).ndim}.")  # fmt: skip
    return _outer(x1, x2)


_cross, _outer = cross, outer
_others()
LINALG.update(
  matmul=matmul, tensordot=tensordot, vecdot=vecdot, matrix_transpose=FUNCTIONS["matrix_transpose"]
)
LINALG.update(LinAlgError=LinAlgError)
sys.modules[__name__].__dict__.update(LINALG)
