"""`numpy.linalg`, made of `mini.linalg`. Of complex matrices NumPy computes most of it, at once."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.linalg import LinAlgError

from mini.numpy import products
from mini.numpy.array import Lazy, asarray, made, operand
from mini.numpy.function import FUNCTIONS, LINALG, AtOnce, publish, tensor
from mini.numpy.host import at_once
from mini.numpy.manipulation import diagonal as _diagonal
from mini.numpy.types import common_type, floating
from mini.tensor import Tensor
from mini.tensor import linalg as ours


class Unsolved(LinAlgError):
  """Of values, which stand-ins do not have."""


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
  if kind.kind == "c":
    raise AtOnce
  return [operand(a, kind) for a in arrays]


def _lapack(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
  """What mini.linalg gives, with NumPy's error."""
  try:
    found = f(*args, **kwargs)
  except ours.LinAlgError as e:
    raise Unsolved(str(e).splitlines()[0]) from e
  return tuple(map(made, found)) if isinstance(found, tuple) else made(found)


# ---------------------------------------------------------------- decompositions and what follows from them

QRResult = namedtuple("QRResult", "Q R")
EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")
SVDResult = namedtuple("SVDResult", "U S Vh")
SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")


def inv(a: Any) -> Any:
  return _lapack(ours.inv, *_matrices(a, square=True))


def det(a: Any) -> Any:
  return _lapack(ours.det, *_matrices(a, square=True))


def slogdet(a: Any) -> SlogdetResult:
  return SlogdetResult(*_lapack(ours.slogdet, *_matrices(a, square=True)))


def matrix_power(a: Any, n: int) -> Any:
  if n >= 0 and asarray(a).dtype.kind in "iu":  # stay integers
    raise AtOnce
  return _lapack(ours.matrix_power, *_matrices(a, square=True), n)


def cond(x: Any, p: Any = None) -> Any:
  return _lapack(ours.cond, *_matrices(x), p)


def cholesky(a: Any, upper: bool = False) -> Any:
  return _lapack(ours.cholesky, *_matrices(a, square=True), upper=upper)


def eigh(a: Any, UPLO: str = "L") -> EighResult:
  return EighResult(*_lapack(ours.eigh, *_matrices(a, square=True), UPLO.upper()))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
  return _lapack(ours.eigvalsh, *_matrices(a, square=True), UPLO.upper())


def eig(a: Any) -> EigResult:
  """At once: the results are complex only where they have to be."""
  (x,) = _matrices(a, square=True)
  return EigResult(*map(asarray, np.linalg.eig(x.numpy())))


def eigvals(a: Any) -> Any:
  """At once, as `eig`."""
  (x,) = _matrices(a, square=True)
  return asarray(np.linalg.eigvals(x.numpy()))


def qr(a: Any, mode: str = "reduced") -> Any:
  (x,) = _matrices(a)
  if mode not in ("reduced", "complete", "r"):
    raise ValueError(f"Unrecognized mode '{mode}'")
  found = _lapack(ours.qr, x, mode)
  return found[1] if mode == "r" else QRResult(*found)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
  return SVDResult(*_lapack(ours.svd, *_matrices(a), full_matrices)) if compute_uv else svdvals(a)


def svdvals(x: Any) -> Any:
  return _lapack(ours.svdvals, *_matrices(x))


def solve(a: Any, b: Any) -> Any:
  x, y = _matrices(a, b, square=True)
  return _lapack(ours.solve, x, y.unsqueeze(-1)).squeeze(-1) if y.ndim == 1 else _lapack(ours.solve, x, y)


def pinv(a: Any, rcond: Any = None, rtol: Any = None) -> Any:
  rtol = rtol if rcond is None else rcond
  return _lapack(ours.pinv, *_matrices(a), 1e-15 if rtol is None else rtol)


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, ...]:
  """At once: how many residuals there are depends on the rank."""
  x, y = _matrices(a, b)
  found = np.linalg.lstsq(x.numpy(), y.numpy(), rcond)
  return asarray(found[0]), asarray(found[1]), found[2], asarray(found[3])


def matrix_rank(A: Any, tol: Any = None, rtol: Any = None) -> Any:
  if asarray(A).ndim < 2:
    return int(not (asarray(A) == 0).all())
  s = svdvals(A)._tensor
  if tol is None:
    rtol = max(asarray(A).shape[-2:]) * float(np.finfo(s.dtype.np).eps) if rtol is None else rtol
    bound = s.amax(-1, True) * tensor(rtol).cast(s.dtype).unsqueeze(-1)
  else:
    bound = tensor(tol).unsqueeze(-1)
  return made((s > bound).sum(-1))


# ---------------------------------------------------------------- norms


def _measured(x: Any, axis: Any) -> tuple[Tensor, tuple[int, ...]]:
  """The tensor in a float type, and its axes."""
  t = tensor(x)
  axes = tuple(range(t.ndim)) if axis is None else normalize_axis_tuple(axis, t.ndim)
  return (t if t.dtype.kind in "fc" else t.double()), axes


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
  t, axes = _measured(x, axis)
  if axis is None and ord is None:
    flat = t.reshape(-1).norm()
    return made(flat.reshape((1,) * t.ndim) if keepdims else flat)
  if len(axes) == 1:
    if isinstance(ord, str):
      raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return made(t.norm(2 if ord is None else ord, axes, keepdims))
  if len(axes) != 2:
    raise ValueError("Improper number of dimensions to norm.")
  if ord not in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
    raise ValueError("Invalid norm order for matrices.")
  if t.dtype.kind == "c" and ord in ("nuc", 2, -2):
    raise AtOnce
  t = t.abs() if t.dtype.kind == "c" else t
  return made(ours.matrix_norm(t, "fro" if ord is None else ord, axes, keepdims))


def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
  t, axes = _measured(x, axis)
  return made(t.norm(ord, axes, keepdims) if t.ndim else t.abs())


def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Any:
  return norm(x, ord, (-2, -1), keepdims)


# ---------------------------------------------------------------- products, with the standard's signatures


def multi_dot(arrays: Any) -> Any:
  return made(Tensor.multi_dot(products.pair(*arrays)))


def diagonal(x: Any, offset: int = 0) -> Any:
  return _diagonal(x, offset, -2, -1)


def trace(x: Any, offset: int = 0, dtype: Any = None) -> Any:
  return _diagonal(x, offset, -2, -1).sum(-1, dtype=dtype)


def cross(x1: Any, x2: Any, axis: int = -1) -> Any:
  return products.cross(x1, x2, axis=axis)


def outer(x1: Any, x2: Any) -> Any:
  a, b = asarray(x1), asarray(x2)
  if a.ndim != 1 or b.ndim != 1:
    raise ValueError(
      f"Input arrays must be one-dimensional, but they are x1.ndim={a.ndim} and x2.ndim={b.ndim}."
    )
  return products.outer(a, b)


matmul, tensordot, vecdot = products.matmul, products.tensordot, products.vecdot
matrix_transpose = FUNCTIONS["matrix_transpose"]
publish(globals(), LINALG, np.linalg)
LINALG.update(matmul=matmul, tensordot=tensordot, vecdot=vecdot, matrix_transpose=matrix_transpose)
LINALG.update({name: at_once(getattr(np.linalg, name)) for name in ("tensorinv", "tensorsolve")})
globals().update(LINALG)
