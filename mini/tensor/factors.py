"""Factors of matrices beyond those of decompose.py: LU, packed reflectors, and solutions by given factors; with those,
forms of decompositions that do not raise.

LU is computed on the host, in NumPy; the rest is made of solutions with triangles and of products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mini.tensor.autograd import custom_gradient
from mini.tensor.decompose import SVD, cholesky, svd
from mini.tensor.errors import fail
from mini.tensor.lapack import LinAlgError, expect_matrix, eye, host, inv, solve, solve_triangular
from mini.types import ShapeError, dtypes, prod

if TYPE_CHECKING:
  Tensor = Any  # the class is made of files that use this one


# ---------------------------------------------------------------- LU


class LU(NamedTuple):
  """L without its diagonal of ones, and U, in one matrix; and with which row each was exchanged, counted from 1."""

  LU: Tensor
  pivots: Tensor


class LUAndInfo(NamedTuple):
  """`LU`, and the number of the first pivot that is 0, or 0."""

  LU: Tensor
  pivots: Tensor
  info: Tensor


class PLU(NamedTuple):
  """A = P @ L @ U."""

  P: Tensor
  L: Tensor
  U: Tensor


def _host_lu(a: np.ndarray, pivot: bool) -> tuple[np.ndarray, np.ndarray]:
  """Gaussian elimination, of all matrices of a stack together."""
  a, k = a.copy(), min(a.shape[-2:])
  pivots = np.empty((*a.shape[:-2], k), np.int32)
  for j in range(k):
    column = a[..., j:, j]
    size = abs(column.real) + abs(column.imag)  # by which LAPACK chooses, too
    at = size.argmax(-1) + j if pivot else np.full(a.shape[:-2], j)
    pivots[..., j] = at + 1
    index = at[..., None, None]
    row, own = np.take_along_axis(a, index, -2), a[..., j : j + 1, :].copy()
    np.put_along_axis(a, index, own, -2)
    a[..., j : j + 1, :] = row
    head = row[..., :, j : j + 1]
    a[..., j + 1 :, j : j + 1] /= np.where(head == 0, 1, head)
    a[..., j + 1 :, j + 1 :] -= a[..., j + 1 :, j : j + 1] * row[..., :, j + 1 :]
  return a, pivots


def _host_order(pivots: np.ndarray, n: int) -> np.ndarray:
  """The rows of A in the order in which L @ U has them."""
  order = np.broadcast_to(np.arange(n), (*pivots.shape[:-1], n)).copy()
  for j in range(pivots.shape[-1]):
    index = pivots[..., j : j + 1].astype(np.int64) - 1
    other = np.take_along_axis(order, index, -1)
    np.put_along_axis(order, index, order[..., j : j + 1].copy(), -1)
    order[..., j : j + 1] = other
  return order


def _order(pivots: Tensor, n: int) -> Tensor:
  return host("lu", lambda p: _host_order(p[..., 0], n), pivots.unsqueeze(-1))[0]


def _rows(x: Tensor, order: Tensor) -> Tensor:
  """The rows of matrices in an order."""
  batch = np.broadcast_shapes(x.shape[:-2], order.shape[:-1])
  index = order.unsqueeze(-1).expand(*batch, order.shape[-1], x.shape[-1])
  return x.expand(*batch, *x.shape[-2:]).gather(-2, index)


def _back(x: Tensor, order: Tensor) -> Tensor:
  """The inverse of `_rows`."""
  return _rows(x, order.argsort(-1))


def _of_lu(g: Tensor, out: Tensor, a: Tensor, lu: Tensor, order: Tensor) -> tuple[Tensor, None, None]:
  """Of the first k rows and columns, and of what more rows or columns there are. (As PyTorch's `plu_backward`.)"""
  k = min(a.shape[-2:])
  l, u, gl, gu = out[..., :k, :k], out[..., :k, :k], g[..., :k, :k].tril(-1), g[..., :k, :k].triu()
  l, u = l.tril(-1) + eye(k, a), u.triu()
  lower, upper = l.mH @ gl, gu @ u.mH
  below, right, gbelow, gright = out[..., k:, :], out[..., k:], g[..., k:, :], g[..., k:]
  if right.shape[-1]:
    lower = lower - gright @ right.mH
  if below.shape[-2]:
    upper = upper - below.mH @ gbelow
  found = solve_triangular(l.mH, lower.tril(-1) + upper.triu(), upper=True, unitriangular=True)
  found = solve_triangular(u.mH, found, upper=False, left=False)
  if right.shape[-1]:
    found = found.cat(solve_triangular(l.mH, gright, upper=True, unitriangular=True), dim=-1)
  if below.shape[-2]:
    found = found.cat(solve_triangular(u.mH, gbelow, upper=False, left=False), dim=-2)
  return _back(found, order), None, None


_with_gradient = custom_gradient(_of_lu)(lambda a, lu, order: lu)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUAndInfo:
  """`lu_factor`, and info: the number of the first pivot that is 0, from 1 on, or 0; check_errors: LinAlgError."""
  expect_matrix("lu_factor", A)
  lu: Tensor = host("lu_factor", lambda x: _host_lu(x, pivot)[0], A)[0]
  pivots = host("lu_factor", lambda x: _host_lu(x, pivot)[1], A, real=(0,))[0]
  info = _first(lu.diagonal(0, -2, -1) == 0)
  if check_errors:
    _check("lu_factor", info, A)
  if A.requires_grad:
    lu = _with_gradient(A, lu, _order(pivots, A.shape[-2]))
  return LUAndInfo(lu, pivots, info)


def lu_factor(A: Tensor, *, pivot: bool = True) -> LU:
  """L and U of A, whose rows are exchanged for the largest pivot, in one matrix.

  T[.., n, m] -> T[.., n, m], int32[.., k]

  pivots: with which row each of the first k = min(n, m) was exchanged, in turn, counted from 1.

  >>> mini.linalg.lu_factor(Tensor([[1.0, 2.0], [2.0, 2.0]])).LU.tolist()
  [[2.0, 2.0], [0.5, 1.0]]
  """
  return LU(*lu_factor_ex(A, pivot=pivot)[:2])


def lu_unpack(
  LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> PLU:
  """P, L and U of what `lu_factor` packed; empty tensors for what is not asked for."""
  n, m = LU_data.shape[-2:]
  k = min(n, m)
  none = LU_data.zeros(0, dtype=LU_data.dtype, device=LU_data.device)
  p, l, u = none, none, none
  if unpack_pivots:
    p = _order(LU_pivots, n).one_hot(n).mT.cast(LU_data.dtype)
  if unpack_data:
    ones = LU_data.eye(n, k, dtype=LU_data.dtype, device=LU_data.device)
    l, u = LU_data[..., :k].tril(-1) + ones, LU_data[..., :k, :].triu()
  return PLU(p, l, u)


def lu(A: Tensor, *, pivot: bool = True) -> PLU:
  """A = P @ L @ U: P exchanges rows, the diagonal of L is 1. pivot=False: P is empty.

  >>> P, L, U = mini.linalg.lu(Tensor([[1.0, 2.0], [2.0, 2.0]]))
  >>> (P @ L @ U).tolist()
  [[1.0, 2.0], [2.0, 2.0]]
  """
  packed, pivots = lu_factor(A, pivot=pivot)
  return lu_unpack(packed, pivots, unpack_pivots=pivot)


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
  """X of A @ X = B, with A as `lu_factor` packed it; left=False: of X @ A = B. adjoint: of A.mH."""
  if not left:
    return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
  order = _order(pivots, LU.shape[-1])
  if adjoint:
    half = solve_triangular(LU.mH, B, upper=False)
    return _back(solve_triangular(LU.mH, half, upper=True, unitriangular=True), order)
  half = solve_triangular(LU, _rows(B, order), upper=False, unitriangular=True)
  return solve_triangular(LU, half, upper=True)


# ---------------------------------------------------------------- what does not raise


class InverseAndInfo(NamedTuple):
  """What `inv_ex` returns."""

  inverse: Tensor
  info: Tensor


class ResultAndInfo(NamedTuple):
  """What `solve_ex` returns."""

  result: Tensor
  info: Tensor


class LAndInfo(NamedTuple):
  """What `cholesky_ex` returns."""

  L: Tensor
  info: Tensor


def _first(wrong: Tensor) -> Tensor:
  """The number of the first along the last axis where something is wrong, from 1 on; 0 where nothing is."""
  if not wrong.shape[-1]:
    return wrong.any(-1).cast(dtypes.int32)
  return wrong.any(-1).where(wrong.cast(dtypes.int32).argmax(-1) + 1, 0).cast(dtypes.int32)


def _check(what: str, info: Tensor, A: Tensor) -> None:
  if info.any().item():
    fail(LinAlgError, f"{what}: info is {info.tolist()}: a matrix is singular, or not positive definite", x=A)


def _harmless(what: str, A: Tensor, info: Tensor, check_errors: bool) -> Tensor:
  """A, and where something is wrong with it the identity."""
  if check_errors:
    _check(what, info, A)
  return (info == 0).unsqueeze(-1).unsqueeze(-1).where(A, eye(A.shape[-1], A))


def inv_ex(A: Tensor, *, check_errors: bool = False) -> InverseAndInfo:
  """`inv`, and info, which is not 0 where a matrix is singular; what the inverse is there is not said."""
  info = lu_factor_ex(expect_matrix("inv_ex", A, square=True).detach()).info
  return InverseAndInfo(inv(_harmless("inv_ex", A, info, check_errors)), info)


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> ResultAndInfo:
  """`solve`, and info, which is not 0 where a matrix is singular; what the solution is there is not said."""
  info = lu_factor_ex(expect_matrix("solve_ex", A, square=True).detach()).info
  return ResultAndInfo(solve(_harmless("solve_ex", A, info, check_errors), B, left=left), info)


def _host_definite(a: np.ndarray) -> np.ndarray:
  """The size of the first leading minor that is not positive, or 0, of each matrix."""
  n, out = a.shape[-1], np.zeros(prod(a.shape[:-2]), np.int32)
  for i, matrix in enumerate(a.reshape(len(out), n, n)):
    for size in (n, *range(1, n)):
      try:
        np.linalg.cholesky(matrix[:size, :size])
      except np.linalg.LinAlgError:
        out[i] = size
        if size < n:
          break
      else:
        if size == n:
          break
  return out.reshape(a.shape[:-2])


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> LAndInfo:
  """`cholesky`, and info: the size of the first leading minor that is not positive definite, or 0; what L is there is
  not said."""
  expect_matrix("cholesky_ex", A, square=True)
  info = host("cholesky_ex", _host_definite, A, real=(0,))[0]
  return LAndInfo(cholesky(_harmless("cholesky_ex", A, info, check_errors), upper=upper), info)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
  """X of L @ L.mH @ X = B, or, upper, of L.mH @ L @ X = B.

  >>> mini.linalg.cholesky_solve(Tensor([[8.0]]), Tensor([[2.0]])).tolist()
  [[2.0]]
  """
  first, second = (L.mH, L) if upper else (L, L.mH)
  return solve_triangular(second, solve_triangular(first, B, upper=False), upper=True)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
  """The inverse of L @ L.mH, or, upper, of L.mH @ L."""
  expect_matrix("cholesky_inverse", L, square=True)
  return cholesky_solve(eye(L.shape[-1], L).expand(*L.shape), L, upper)


# ---------------------------------------------------------------- reflectors


class Reflectors(NamedTuple):
  """What `geqrf` returns: R, and below it the vectors of Householder's reflectors; and their factors."""

  a: Tensor
  tau: Tensor


def geqrf(A: Tensor) -> Reflectors:
  """The QR decomposition as LAPACK packs it, without a gradient.   T[.., n, m] -> T[.., n, m], T[.., min(n, m)]"""
  expect_matrix("geqrf", A)
  packed, tau = host("geqrf", lambda x: tuple(np.linalg.qr(x, "raw")), A)
  return Reflectors(packed.mT, tau)


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
  """Q @ other, with the square Q whose reflectors are packed below the diagonal of input; transpose: Q.mH @ other;
  left=False: other @ Q."""
  if not left:
    return ormqr(input, tau, other.mH, True, not transpose).mH
  n, k = input.shape[-2], tau.shape[-1]
  v = input[..., :k].tril(-1) + input.eye(n, k, dtype=input.dtype, device=input.device)
  out = other
  for j in range(k) if transpose else reversed(range(k)):
    column, t = v[..., j : j + 1], tau[..., j : j + 1].unsqueeze(-1)
    out = out - (t.conj() if transpose else t) * column @ (column.mH @ out)
  return out


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
  """The first m columns of the product of reflectors that are packed below the diagonal of A: T[.., n, m]."""
  expect_matrix("householder_product", A)
  one = A.eye(*A.shape[-2:], dtype=A.dtype, device=A.device)
  return ormqr(A, tau, one.expand(*A.shape))


# ---------------------------------------------------------------- of more axes, and of fewer values


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
  """The inverse of a tensor as a matrix of its first `ind` axes by the others.

  >>> mini.linalg.tensorinv(Tensor.eye(4).reshape(2, 2, 4), 2).shape
  (4, 2, 2)
  """
  n = prod(A.shape[:ind])
  if ind < 1 or n != prod(A.shape[ind:]):
    fail(
      ShapeError,
      f"tensorinv: of the first {ind} axes and of the others x does not have as many elements",
      x=A,
    )
  return inv(A.reshape(n, n)).reshape(*A.shape[ind:], *A.shape[:ind])


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
  """X of tensordot(A, X, X.ndim) = B; dims: axes of A that are moved to its end before."""
  a = A if dims is None else A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
  rest = a.shape[B.ndim :]
  if prod(rest) != B.numel() or a.numel() != B.numel() ** 2:
    fail(ShapeError, "tensorsolve: A is no square matrix of B's elements by those of X", A=A, B=B)
  return solve(a.reshape(B.numel(), -1), B.reshape(-1)).reshape(rest)


def vander(x: Tensor, N: int | None = None) -> Tensor:
  """The powers 0, 1, .. N - 1 of each element, as a new last axis.   T[.., n] -> T[.., n, N]

  >>> mini.linalg.vander(Tensor([2, 3]), 3).tolist()
  [[1, 2, 4], [1, 3, 9]]
  """
  x = x.atleast_1d() if x.dtype.kind in "fc" else x.atleast_1d().long()
  count = x.shape[-1] if N is None else N
  if count > 1:
    return x.unsqueeze(-1).ones_like().cat(x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1), dim=-1)
  return x.unsqueeze(-1).ones_like()[..., :count]


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> SVD:
  """The q largest singular values of A - M with their vectors, U, S and V: here exactly. niter has no effect."""
  u, s, vh = svd(A if M is None else A - M, False)
  return SVD(u[..., :q], s[..., :q], vh[..., :q, :].mH)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:
  """`svd_lowrank` of the rows' differences from their mean: V has the principal directions."""
  return svd_lowrank(A - A.mean(-2, True) if center else A, min(6, *A.shape[-2:]) if q is None else q)


__all__ = [
  "cholesky_ex", "cholesky_inverse", "cholesky_solve", "geqrf", "householder_product", "inv_ex", "lu", "lu_factor",
  "lu_factor_ex", "lu_solve", "lu_unpack", "ormqr", "pca_lowrank", "solve_ex", "svd_lowrank", "tensorinv",
  "tensorsolve", "vander",
]  # fmt: skip
