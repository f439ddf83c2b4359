"""Decompositions of stacks of small dense matrices, real or complex, with gradients: Cholesky's, QR, of eigenvalues and
of singular values. They are computed on the host, as lapack.py says.

What is unique up to a sign, or a complex number on the unit circle, such as an eigenvector, has the gradient of what
does not depend on it. (M. Giles, An extended collection of matrix derivative results, 2008.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mini.tensor.autograd import custom_gradient
from mini.tensor.errors import fail
from mini.tensor.lapack import expect_matrix, eye, host, inv
from mini.types import ArgumentError, MiniError, complex_of

if TYPE_CHECKING:
  Tensor = Any  # the class is made of files that use this one

# ---------------------------------------------------------------- into triangles


def _of_cholesky(g: Tensor, out: Tensor, a: Tensor) -> Tensor:
  inverse = inv(out)
  inner = out.mH @ g
  half = inner.tril() - inner * (eye(a.shape[-1], a) * 0.5)
  return inverse.mH @ (half + half.mH) @ inverse * 0.5


_cholesky = custom_gradient(_of_cholesky)(lambda a: host("cholesky", np.linalg.cholesky, a)[0])


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
  """The lower triangular L of A = L @ L.mH, or the upper one of A = U.mH @ U.   T[.., n, n] -> T[.., n, n]

  A is symmetric, a complex one Hermitian: its lower triangle counts. LinAlgError if it is not positive definite.

  >>> mini.linalg.cholesky(Tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
  [[2.0, 0.0], [1.0, 2.0]]
  """
  out = _cholesky(expect_matrix("cholesky", A, square=True))
  return out.mH if upper else out


class QR(NamedTuple):
  """What `qr` returns."""

  Q: Tensor
  R: Tensor


def _of_qr(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], a: Tensor) -> Tensor:
  """Of what has more columns than rows: the first ones, which make Q, and the others. (Walter, Lehmann, Lamour: On
  evaluating higher-order derivatives of the QR decomposition, 2012.)"""
  (gq, gr), (q, r), n = g, out, out[0].shape[-1]
  rest = a[..., n:]
  gq, gu, u = gq + rest @ gr[..., n:].mH, gr[..., :n], r[..., :n]
  m = u @ gu.mH - gq.mH @ q
  both = m.tril(-1) + m.tril(-1).mH + m.diagonal(0, -2, -1).real.diag_embed()
  first = (gq + q @ both) @ inv(u).mH
  return type(first).cat([first, q @ gr[..., n:]], dim=-1) if rest.shape[-1] else first


_qr = custom_gradient(_of_qr)(lambda a: tuple(host("qr", lambda x: tuple(np.linalg.qr(x)), a)))


def qr(A: Tensor, mode: str = "reduced") -> QR:
  """Q with orthonormal columns and R, upper triangular, of A = Q @ R.

  T[.., n, m] -> T[.., n, k], T[.., k, m], k = min(n, m)

  mode: "complete": k = n, without a gradient where n > m; "r": Q is empty.

  >>> q, r = mini.linalg.qr(Tensor([[3.0, 1.0], [4.0, 2.0]]))
  >>> (q @ r).isclose(Tensor([[3.0, 1.0], [4.0, 2.0]]), atol=1e-6).all().item()
  True
  """
  expect_matrix("qr", A)
  if mode not in ("reduced", "complete", "r"):
    fail(ArgumentError, f'qr: mode is "reduced", "complete" or "r", not {mode!r}', x=A)
  if mode == "complete" and A.shape[-2] > A.shape[-1]:
    if A.requires_grad:
      fail(MiniError, 'qr: mode="complete" has no gradient where there are more rows than columns', x=A)
    return QR(*host("qr", lambda x: tuple(np.linalg.qr(x, "complete")), A))
  q, r = _qr(A)
  return QR(A.zeros(0, dtype=A.dtype, device=A.device) if mode == "r" else q, r)


def _apart(x: Tensor, s: Tensor, squares: bool) -> Tensor:
  """x over s_j - s_i, or over the difference of their squares; 0 on the diagonal, and where both are 0."""
  row, column = s.unsqueeze(-2), s.unsqueeze(-1)
  d = (
    (row - column) * (row + column) if squares else row - column
  )  # a*a - b*b may be fused, and is not 0 for a = b then
  x = (eye(s.shape[-1], s) == 0).where(x, 0)
  return x / ((d == 0) & (x == 0)).where(1, d)


# ---------------------------------------------------------------- eigenvalues


class Eigh(NamedTuple):
  """What `eigh` returns."""

  eigenvalues: Tensor
  eigenvectors: Tensor


def _of_eigh(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], a: Tensor, uplo: str) -> Tensor:
  (gw, gv), (w, v) = g, out
  inner = v.mH @ gv
  return v @ (_apart((inner - inner.mH) * 0.5, w, False) + gw.diag_embed()) @ v.mH


_eigh = custom_gradient(_of_eigh)(
  lambda a, uplo: tuple(host("eigh", lambda x: tuple(np.linalg.eigh(x, uplo)), a, real=(0,)))
)


def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
  """The eigenvalues, ascending, and eigenvectors (columns) of a symmetric or, if complex, Hermitian matrix.

  T[.., n, n] -> T[.., n], T[.., n, n]

  UPLO: which triangle counts, "L" or "U". The gradient of eigenvectors is infinite where eigenvalues are equal.

  >>> mini.linalg.eigh(Tensor([[3.0, 0.0], [0.0, 2.0]])).eigenvalues.tolist()
  [2.0, 3.0]
  """
  if UPLO.upper() not in ("L", "U"):
    fail(ArgumentError, f'eigh: UPLO is "L" or "U", not {UPLO!r}', x=A)
  return Eigh(*_eigh(expect_matrix("eigh", A, square=True), UPLO.upper()))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
  """The eigenvalues of a symmetric matrix, ascending."""
  return eigh(A, UPLO).eigenvalues


class Eig(NamedTuple):
  """What `eig` returns."""

  eigenvalues: Tensor
  eigenvectors: Tensor


def _of_eig(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], a: Tensor) -> Tensor:
  """C. Boeddeker et al., On the computation of complex-valued gradients with application to statistically optimum
  beamforming, 2017, 4.77; eigenvectors have length 1."""
  (gw, gv), (w, v) = g, out
  inner = v.mH @ gv
  inner = inner - (v.mH @ v) * inner.diagonal(0, -2, -1).real.unsqueeze(-2)
  gaps = w.unsqueeze(-2) - w.unsqueeze(-1)
  same = eye(w.shape[-1], w).real != 0
  inner = same.where(gw.diag_embed(), inner / same.where(1, gaps).conj())
  back = inv(v).mH
  return back @ inner @ v.mH


_eig = custom_gradient(_of_eig)(lambda a: tuple(host("eig", lambda x: _host_eig(x), a)))


def _host_eig(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  w, v = np.linalg.eig(a)
  return w.astype(a.dtype, copy=False), v.astype(a.dtype, copy=False)


def eig(A: Tensor) -> Eig:
  """The eigenvalues and eigenvectors (columns, of length 1) of any square matrix: complex, in no order.

  T[.., n, n] -> C[.., n], C[.., n, n]

  The gradient is infinite where eigenvalues are equal.

  >>> mini.linalg.eig(Tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.imag.abs().tolist()
  [1.0, 1.0]
  """
  x = expect_matrix("eig", A, square=True)
  return Eig(*_eig(x if x.is_complex() else x.to(complex_of(x.dtype))))


def eigvals(A: Tensor) -> Tensor:
  """The eigenvalues of any square matrix: complex, in no order."""
  return eig(A).eigenvalues


# ---------------------------------------------------------------- singular values


class SVD(NamedTuple):
  """What `svd` returns."""

  U: Tensor
  S: Tensor
  Vh: Tensor


def _of_svd(g: tuple[Tensor, ...], out: tuple[Tensor, ...], a: Tensor, full: bool) -> Tensor:
  k, (u, s, vh), (gu, gs, gvh) = min(a.shape[-2:]), out, g
  u, gu, v, gv = u[..., :k], gu[..., :k], vh[..., :k, :].mH, gvh[..., :k, :].mH

  def inner(x: Tensor, gx: Tensor) -> Tensor:
    return _apart(x.mH @ gx - gx.mH @ x, s, True)

  row, column = s.unsqueeze(-2), s.unsqueeze(-1)
  middle = inner(u, gu) * row + column * inner(v, gv) + gs.diag_embed()
  if a.is_complex():  # a turn of both vectors of a pair together changes nothing
    turn = ((u.conj() * gu).sum(-2).imag - (v.conj() * gv).sum(-2).imag) / (2 * s)
    middle = middle + a.complex(turn.zeros_like(), turn).diag_embed()
  out_a = u @ middle @ v.mH
  if a.shape[-2] > k:
    out_a = out_a + (gu - u @ (u.mH @ gu)) / row @ v.mH
  if a.shape[-1] > k:
    out_a = out_a + u / row @ (gv - v @ (v.mH @ gv)).mH
  return out_a


_svd = custom_gradient(_of_svd)(
  lambda a, full: tuple(host("svd", lambda x: tuple(np.linalg.svd(x, full_matrices=full)), a, real=(1,)))
)


def svd(A: Tensor, full_matrices: bool = True) -> SVD:
  """A = U @ diag(S) @ Vh, the singular values descending.

  T[.., n, m] -> T[.., n, n], T[.., k], T[.., m, m], k = min(n, m)

  full_matrices=False: U: T[.., n, k], Vh: T[.., k, m]. No gradient passes to what else is in the full ones. That of U
  and Vh is infinite where singular values are equal.

  >>> mini.linalg.svd(Tensor([[0.0, 2.0], [1.0, 0.0]])).S.tolist()
  [2.0, 1.0]
  """
  return SVD(*_svd(expect_matrix("svd", A), full_matrices))


def svdvals(A: Tensor) -> Tensor:
  """The singular values, descending."""
  return svd(A, False).S
