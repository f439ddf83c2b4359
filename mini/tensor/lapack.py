"""What NumPy's LAPACK computes on the host, of stacks of small dense matrices, with gradients: inverses and solutions,
determinants, decompositions. It is the part of `mini.linalg` (linalg.py) that is not lazy; in a jitted function it is a
call of the host's in the middle of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from mini.ir import graph
from mini.ir.sizes import varies
from mini.tensor.autograd import custom_gradient
from mini.tensor.errors import described, fail
from mini.tensor.handle import Handle
from mini.tensor.promotion import broadcast_shape
from mini.tensor.trace import local
from mini.types import BY_NUMPY, DTypeError, MiniError, ShapeError, dtypes

if TYPE_CHECKING:
  Tensor = Any  # the class is made of this file's


class LinAlgError(MiniError):
  """A matrix is singular, or not positive definite, or an iteration did not converge."""


# ---------------------------------------------------------------- on the host


def host(what: str, f: Callable[..., Any], *tensors: Handle) -> list[Tensor]:
  """f of arrays of stacks, as tensors that no gradient passes to; within vmap, of all samples at once."""
  samples = local.samples
  if samples is not None:
    many = samples.all([t.uop for t in tensors])
    shared = all(u is None for u in many)
    with samples.left():
      whole = [stacked(t, None if shared else u, 0 if shared else samples.n) for t, u in zip(tensors, many)]
      found = host(what, f, *whole)
    return found if shared else [Handle._new(samples.one(t.uop)) for t in found]
  about = described("x", tensors[0])

  def several(*arrays: np.ndarray) -> list[np.ndarray]:
    try:
      results = f(*arrays)
    except np.linalg.LinAlgError as e:
      _failed(what, f, arrays, str(e), about)
    return [*map(np.asarray, results if isinstance(results, tuple) else (results,))]

  if local.current is not None:
    return _traced(what, several, *tensors)
  device = tensors[0].device
  home = device if isinstance(device, str) else device[0]
  return [Handle._final(r, device=home) for r in several(*(t.detach().numpy() for t in tensors))]


def _traced(what: str, several: Callable[..., list[np.ndarray]], *tensors: Handle) -> list[Tensor]:
  """Results of which no value is known yet: one call of the host in the middle of the graph, whose results lie one
  behind another. Their shapes are those that unit matrices give."""
  from mini.extend.host import called  # which is rarely needed
  from mini.ir.extern import Extern

  for t in tensors:
    if varies(t.shape):
      fail(ShapeError, f"{what}: the host needs sizes, and x has one that varies", x=t)
  units = [np.broadcast_to(np.eye(*t.shape[-2:], dtype=t.dtype.np), t.shape) for t in tensors]
  found = several(*units)
  row = Extern(what, lambda *arrays: np.concatenate([r.reshape(-1) for r in several(*arrays)]))
  kind, sizes = BY_NUMPY[found[0].dtype], [r.size for r in found]
  flat = Handle._new(called(row, [graph.detach(t.uop) for t in tensors], (sum(sizes),), kind))
  return [part.reshape(r.shape) for part, r in zip(flat.split(sizes), found)]


def stacked(t: Handle, many: Any, n: int) -> Handle:
  if many is None:
    many = graph.expand_to(t.uop, (n, *t.shape)) if n else t.uop
  return Handle._new(graph.detach(many))


def _failed(what: str, f: Callable[..., Any], arrays: Sequence[np.ndarray], why: str, about: str) -> NoReturn:
  """Which of the matrices it was."""
  stack = arrays[0].reshape(-1, *arrays[0].shape[-2:])
  at = ""
  for n, matrix in enumerate(stack if arrays[0].ndim > 2 else ()):
    try:
      f(
        matrix,
        *(
          np.broadcast_to(a, (*arrays[0].shape[:-2], *a.shape[-2:])).reshape(-1, *a.shape[-2:])[n]
          for a in arrays[1:]
        ),
      )
    except np.linalg.LinAlgError:
      at = f", of those in x[{', '.join(map(str, np.unravel_index(n, arrays[0].shape[:-2])))}]"
      break
  lines = [f"{what}: {why[:1].lower()}{why[1:]}{at}", about]
  raise LinAlgError("\n".join(lines)) from None


def expect_matrix(what: str, a: Tensor, square: bool = False) -> Tensor:
  if not isinstance(a, Handle):
    fail(DTypeError, f"{what}: {a!r} is no tensor")
  if a.ndim < 2:
    fail(ShapeError, f"{what}: a matrix has two axes, and x has {a.ndim}", x=a)
  if square and a.shape[-1] != a.shape[-2]:
    fail(ShapeError, f"{what}: x is {a.shape[-2]} by {a.shape[-1]}, and not square", x=a)
  if a.dtype not in (dtypes.float32, dtypes.float64):
    fail(DTypeError, f"{what}: x is {a.dtype.name}, not float32 or float64", "x.float() would fit", x=a)
  return a


def _same(what: str, a: Handle, b: Handle) -> None:
  if a.dtype is not b.dtype:
    fail(DTypeError, f"{what}: a is {a.dtype.name} and b is {b.dtype.name}", a=a, b=b)


def eye(n: int, like: Tensor) -> Tensor:
  """The identity in the type of another tensor, on its device."""
  return Handle._final.eye(n, dtype=like.dtype, device=like.device if isinstance(like.device, str) else None)


def _to(g: Tensor, shape: tuple[int, ...]) -> Tensor:
  """A gradient of what was repeated, added up."""
  extra = g.ndim - len(shape)
  axes = [*range(extra), *(a + extra for a, n in enumerate(shape) if n == 1 and g.shape[a + extra] != 1)]
  return (g.sum(tuple(axes)) if axes else g).reshape(shape)


# ---------------------------------------------------------------- inverses and solutions


@custom_gradient(lambda g, out, a: -(out.mT @ g @ out.mT))
def _inv(a: Tensor) -> Tensor:
  return host("inv", np.linalg.inv, a)[0]


def inv(A: Tensor) -> Tensor:
  """The inverse.   T[.., n, n] -> T[.., n, n].   LinAlgError if a matrix is singular.

  >>> mini.linalg.inv(Tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
  [[0.5, 0.0], [0.0, 0.25]]
  """
  return _inv(expect_matrix("inv", A, square=True))


def _of_solve(g: Tensor, out: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
  by_b = inv(a).mT @ g
  return _to(-(by_b @ out.mT), a.shape), _to(by_b, b.shape)


_solve = custom_gradient(_of_solve)(lambda a, b: host("solve", np.linalg.solve, a, b)[0])


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
  """X of A @ X = B; left=False: of X @ A = B. LinAlgError if A is singular.

  A: T[.., n, n]   B: T[.., n, k], or T[n] or T[.., n] for stacks of vectors, as torch.linalg.solve   ->   B's shape

  >>> mini.linalg.solve(Tensor([[2.0, 0.0], [0.0, 4.0]]), Tensor([2.0, 2.0])).tolist()
  [1.0, 0.5]
  """
  expect_matrix("solve", A, square=True)
  _same("solve", A, B)
  if not left:
    return solve(A.mT, B.mT).mT
  vectors = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
  right = B.unsqueeze(-1) if vectors else B
  batch = None if right.ndim < 2 else broadcast_shape(A.shape[:-2], right.shape[:-2])
  if batch is None or right.shape[-2] != A.shape[-1]:
    fail(ShapeError, "solve: A @ X = B has no X of any shape", A=A, B=B)
  a, b = A.expand(*batch, *A.shape[-2:]), right.expand(*batch, *right.shape[-2:])
  out = _solve(a, b)
  return out.squeeze(-1) if vectors else out


def solve_triangular(
  A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
  """`solve` where A is triangular: the other elements do not matter, nor, with unitriangular,
  those of the diagonal, which are 1.

  >>> mini.linalg.solve_triangular(Tensor([[2.0, 9.0], [2.0, 1.0]]), Tensor([[2.0], [3.0]]), upper=False).tolist()
  [[1.0], [1.0]]
  """
  expect_matrix("solve_triangular", A, square=True)
  expect_matrix("solve_triangular", B)
  kept = A.triu() if upper else A.tril()
  if unitriangular:
    kept = (A.triu(1) if upper else A.tril(-1)) + eye(A.shape[-1], A)
  return solve(kept, B, left=left)


def _of_pinv(g: Tensor, out: Tensor, a: Tensor, rtol: Any) -> Tensor:
  """Golub and Pereyra, The differentiation of pseudo-inverses, SIAM J. Numer. Anal. 10 (1973)."""
  n, m = a.shape[-2:]
  left, right = eye(n, a) - a @ out, eye(m, a) - out @ a
  return -(out.mT @ g @ out.mT) + left @ g.mT @ out @ out.mT + out.mT @ out @ g.mT @ right


def _host_pinv(a: np.ndarray, rtol: float | None) -> np.ndarray:
  rtol = max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
  return np.linalg.pinv(a, rtol).astype(a.dtype, copy=False)


_pinv = custom_gradient(_of_pinv)(lambda a, rtol: host("pinv", lambda x: _host_pinv(x, rtol), a)[0])


def pinv(A: Tensor, rtol: float | None = None) -> Tensor:
  """The pseudoinverse (Moore and Penrose).   T[.., n, m] -> T[.., m, n]

  Singular values up to rtol times the largest one count as 0; None: max(n, m) times the type's eps.

  >>> mini.linalg.pinv(Tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
  [[0.5, 0.0], [0.0, 0.0]]
  """
  return _pinv(expect_matrix("pinv", A), rtol)


class LeastSquares(NamedTuple):
  """What `lstsq` returns. residuals: the sums of squares of A @ X - B, none unless n > m; singular_values: none."""

  solution: Tensor
  residuals: Tensor
  rank: Tensor
  singular_values: Tensor


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None) -> LeastSquares:
  """X for which |A @ X - B| is least, and of these the least one.

  A: T[.., n, m]   B: T[.., n, k]   ->   solution: T[.., m, k]

  >>> mini.linalg.lstsq(Tensor([[2.0], [0.0]]), Tensor([[4.0], [3.0]])).solution
  Tensor([[2.]])
  """
  expect_matrix("lstsq", A)
  expect_matrix("lstsq", B)
  _same("lstsq", A, B)
  if A.shape[-2] != B.shape[-2]:
    fail(ShapeError, f"lstsq: A has {A.shape[-2]} rows, and B has {B.shape[-2]}", A=A, B=B)
  solution = pinv(A, rcond) @ B
  rank = matrix_rank(A, rtol=rcond)
  none = A.zeros(0, dtype=A.dtype, device=A.device)
  residuals = (A @ solution - B).square().sum(-2) if A.shape[-2] > A.shape[-1] else none
  return LeastSquares(solution, residuals, rank, none)


# ---------------------------------------------------------------- determinants


def _host_cofactors(a: np.ndarray) -> np.ndarray:
  """The derivatives of the determinant, also where it is 0: of a = u s v, det(u v) u (products of the other s) v."""
  u, s, v = np.linalg.svd(a)
  n = s.shape[-1]
  others = np.where(np.eye(n, dtype=bool), 1, np.broadcast_to(s[..., None, :], (*s.shape, n))).prod(-1)
  sign = np.linalg.det(u) * np.linalg.det(v)
  return ((sign[..., None, None] * u * others[..., None, :]) @ v).astype(a.dtype, copy=False)


def _of_cofactors(g: Tensor, out: Tensor, a: Tensor) -> Tensor:
  inverse = inv(a)
  return (g * out).sum((-2, -1), True) * inverse.mT - out @ g.mT @ inverse.mT


_cofactors = custom_gradient(_of_cofactors)(lambda a: host("det", _host_cofactors, a)[0])
_det = custom_gradient(lambda g, out, a: g.unsqueeze(-1).unsqueeze(-1) * _cofactors(a))(
  lambda a: host("det", np.linalg.det, a)[0]
)


def det(A: Tensor) -> Tensor:
  """The determinant.   T[.., n, n] -> T[..]

  >>> mini.linalg.det(Tensor([[2.0, 1.0], [0.0, 4.0]])).item()
  8.0
  """
  return _det(expect_matrix("det", A, square=True))


class SignAndLog(NamedTuple):
  """What `slogdet` returns."""

  sign: Tensor
  logabsdet: Tensor


@custom_gradient(lambda g, out, a: g[1].unsqueeze(-1).unsqueeze(-1) * inv(a).mT)
def _slogdet(a: Tensor) -> tuple[Tensor, Tensor]:
  sign, log = host("slogdet", lambda x: tuple(np.linalg.slogdet(x)), a)
  return sign, log


def slogdet(A: Tensor) -> SignAndLog:
  """The sign of the determinant and the logarithm of its magnitude: 0 and -inf where it is 0.

  T[.., n, n] -> T[..], T[..]

  >>> mini.linalg.slogdet(Tensor([[-1.0, 0.0], [0.0, 1.0]])).sign
  Tensor(-1.)
  """
  sign, log = _slogdet(expect_matrix("slogdet", A, square=True))
  return SignAndLog(sign.detach(), log)


def logdet(A: Tensor) -> Tensor:
  """The logarithm of the determinant: nan where that is negative."""
  sign, log = slogdet(A)
  return (sign < 0).where(math.nan, log)


# ---------------------------------------------------------------- decompositions


def _of_cholesky(g: Tensor, out: Tensor, a: Tensor) -> Tensor:
  inverse = inv(out)
  inner = out.mT @ g
  half = inner.tril() - inner * (eye(a.shape[-1], a) * 0.5)
  return inverse.mT @ (half + half.mT) @ inverse * 0.5


_cholesky = custom_gradient(_of_cholesky)(lambda a: host("cholesky", np.linalg.cholesky, a)[0])


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
  """The lower triangular L of A = L @ L.mT, or the upper one of A = U.mT @ U.   T[.., n, n] -> T[.., n, n]

  A is symmetric: its lower triangle counts. LinAlgError if it is not positive definite.

  >>> mini.linalg.cholesky(Tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
  [[2.0, 0.0], [1.0, 2.0]]
  """
  out = _cholesky(expect_matrix("cholesky", A, square=True))
  return out.mT if upper else out


class QR(NamedTuple):
  """What `qr` returns."""

  Q: Tensor
  R: Tensor


def _of_qr(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], a: Tensor) -> Tensor:
  """Of what has more columns than rows: the first ones, which make Q, and the others. (Walter, Lehmann, Lamour: On
  evaluating higher-order derivatives of the QR decomposition, 2012.)"""
  (gq, gr), (q, r), n = g, out, out[0].shape[-1]
  rest = a[..., n:]
  gq, gu, u = gq + rest @ gr[..., n:].mT, gr[..., :n], r[..., :n]
  m = u @ gu.mT - gq.mT @ q
  both = m.tril() + m.tril(-1).mT
  first = (gq + q @ both) @ inv(u).mT
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
    fail(ValueError, f'qr: mode is "reduced", "complete" or "r", not {mode!r}', x=A)
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


class Eigh(NamedTuple):
  """What `eigh` returns."""

  eigenvalues: Tensor
  eigenvectors: Tensor


def _of_eigh(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], a: Tensor, uplo: str) -> Tensor:
  (gw, gv), (w, v) = g, out
  inner = v.mT @ gv
  return v @ (_apart((inner - inner.mT) * 0.5, w, False) + gw.diag_embed()) @ v.mT


_eigh = custom_gradient(_of_eigh)(
  lambda a, uplo: tuple(host("eigh", lambda x: tuple(np.linalg.eigh(x, uplo)), a))
)


def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
  """The eigenvalues, ascending, and eigenvectors (columns) of a symmetric matrix.

  T[.., n, n] -> T[.., n], T[.., n, n]

  UPLO: which triangle counts, "L" or "U". The gradient of eigenvectors is infinite where eigenvalues are equal.

  >>> mini.linalg.eigh(Tensor([[3.0, 0.0], [0.0, 2.0]])).eigenvalues.tolist()
  [2.0, 3.0]
  """
  if UPLO.upper() not in ("L", "U"):
    fail(ValueError, f'eigh: UPLO is "L" or "U", not {UPLO!r}', x=A)
  return Eigh(*_eigh(expect_matrix("eigh", A, square=True), UPLO.upper()))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
  """The eigenvalues of a symmetric matrix, ascending."""
  return eigh(A, UPLO).eigenvalues


class SVD(NamedTuple):
  """What `svd` returns."""

  U: Tensor
  S: Tensor
  Vh: Tensor


def _of_svd(g: tuple[Tensor, ...], out: tuple[Tensor, ...], a: Tensor, full: bool) -> Tensor:
  k, (u, s, vh), (gu, gs, gvh) = min(a.shape[-2:]), out, g
  u, gu, v, gv = u[..., :k], gu[..., :k], vh[..., :k, :].mT, gvh[..., :k, :].mT

  def inner(x: Tensor, gx: Tensor) -> Tensor:
    return _apart(x.mT @ gx - gx.mT @ x, s, True)

  row, column = s.unsqueeze(-2), s.unsqueeze(-1)
  out_a = u @ (inner(u, gu) * row + column * inner(v, gv) + gs.diag_embed()) @ v.mT
  if a.shape[-2] > k:
    out_a = out_a + (gu - u @ (u.mT @ gu)) / row @ v.mT
  if a.shape[-1] > k:
    out_a = out_a + u / row @ (gv - v @ (v.mT @ gv)).mT
  return out_a


_svd = custom_gradient(_of_svd)(
  lambda a, full: tuple(host("svd", lambda x: tuple(np.linalg.svd(x, full_matrices=full)), a))
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


def matrix_rank(A: Tensor, *, atol: float | None = None, rtol: float | None = None) -> Tensor:
  """How many singular values are above max(atol, rtol * the largest one).   T[.., n, m] -> i64[..]

  atol: 0; rtol: max(n, m) times the type's eps, or 0 where atol is given.

  >>> mini.linalg.matrix_rank(Tensor([[1.0, 2.0], [2.0, 4.0]])).item()
  1
  """
  s = svdvals(expect_matrix("matrix_rank", A).detach())
  if rtol is None:
    rtol = 0.0 if atol else max(A.shape[-2:]) * float(np.finfo(A.dtype.np).eps)
  if not s.shape[-1]:
    return s.sum(-1).to(dtypes.int64)
  return (s > (s.max(-1, True) * rtol).clamp(min=atol or 0)).sum(-1)
