"""Linear algebra of small dense matrices: `mini.linalg`, with the names of torch.linalg, and methods.

Decompositions, inverses and solutions are computed by NumPy's LAPACK on the host, in the type of the matrix, real or
complex (lapack.py, decompose.py): at once, or, under `jit`, by a call in the middle of the graph. All take stacks of
matrices, T[.., n, m], and all have gradients of any order, made of tensor operations, so `vmap`, `jvp` and `jacobian`
work. What is made of products alone is lazy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mini.tensor.argument_check import guard_functions
from mini.tensor.autograd import Autograd
from mini.tensor.decompose import QR, SVD, Eigh, cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from mini.tensor.errors import fail
from mini.tensor.factors import (
  LU,
  PLU,
  LUAndInfo,
  Reflectors,
  cholesky_ex,
  cholesky_inverse,
  cholesky_solve,
  geqrf,
  householder_product,
  inv_ex,
  lu,
  lu_factor,
  lu_factor_ex,
  lu_solve,
  lu_unpack,
  ormqr,
  pca_lowrank,
  solve_ex,
  svd_lowrank,
  tensorinv,
  tensorsolve,
  vander,
)
from mini.tensor.handle import Handle
from mini.tensor.lapack import (
  LinAlgError,
  SignAndLog,
  det,
  expect_matrix,
  eye,
  inv,
  logdet,
  matrix_rank,
  pinv,
  same_type,
  slogdet,
  solve,
  solve_triangular,
  stacked,
)
from mini.tensor.trace import local
from mini.types import ArgumentError, ShapeError, dtypes, real_of

if TYPE_CHECKING:
  Tensor = Any  # the class is made of this file's


# ---------------------------------------------------------------- numbers of a matrix


def vector_norm(
  x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
  """(sum |a|**ord) ** (1/ord) over axes; ord may be inf, -inf or 0, which counts. dtype: of the computation."""
  if isinstance(ord, str):
    fail(ArgumentError, f"vector_norm: ord is a number, not {ord!r}", x=x)
  return x.norm(ord, dim, keepdim, dtype)


def matrix_norm(
  A: Tensor, ord: Any = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
  """A norm of matrices: "fro", "nuc", inf, -inf, 1, -1 (sums of magnitudes of rows or columns),
  2 or -2 (singular values). dtype: of the computation.

  >>> mini.linalg.matrix_norm(Tensor([[3.0, -4.0], [0.0, 1.0]]), 1).item()
  5.0
  """
  A = A if dtype is None else A.to(dtype)
  if A.ndim < 2 or real_of(A.dtype).kind != "f" or not isinstance(dim, (tuple, list)) or len(dim) != 2:
    fail(ShapeError, f"matrix_norm: of the axes {dim} of x there are no matrices of floats", x=A)
  row, column = A._axes(tuple(dim), "matrix_norm")
  if ord == "fro":
    return A.norm(2, (row, column), keepdim)
  a = A.movedim((row, column), (-2, -1))
  if ord in ("nuc", 2, -2):
    s = svdvals(a)
    out = s.sum(-1) if ord == "nuc" else _extreme(s, ord)
  elif ord in (1, -1, math.inf, -math.inf):
    out = _extreme(a.abs().sum(-2 if abs(ord) == 1 else -1), ord)
  else:
    fail(ArgumentError, f'matrix_norm: ord is "fro", "nuc", inf, -inf, 1, -1, 2 or -2, not {ord!r}', x=A)
  if not keepdim:
    return out
  return out.reshape(*(1 if a in (row, column) else n for a, n in enumerate(A.shape)))


def _extreme(x: Tensor, ord: float) -> Tensor:
  """The largest along the last axis, or the smallest; of no norms the largest is 0."""
  if ord > 0:
    return x.amax(-1) if x.shape[-1] else x.sum(-1)
  return x.amin(-1)


def norm(x: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
  """`vector_norm` over one axis or, without ord, all; `matrix_norm` over two, or of a matrix where ord is given."""
  if ord is not None and (isinstance(dim, (tuple, list)) and len(dim) == 2 or dim is None and x.ndim == 2):
    return matrix_norm(x, ord, (-2, -1) if dim is None else tuple(dim), keepdim, dtype=dtype)
  if ord is not None and dim is None and x.ndim != 1 or isinstance(ord, str):
    fail(ShapeError, f"norm: of ord {ord!r} are norms of a vector, or of a matrix, and x is neither", x=x)
  return vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
  """The condition number: the largest singular value over the least (p None, 2; -2 the other way round), or, in another
  `matrix_norm`, that of A times that of its inverse.   T[.., n, n] -> T[..]

  >>> mini.linalg.cond(Tensor([[4.0, 0.0], [0.0, 2.0]])).item()
  2.0
  """
  if p in (None, 2, -2):
    s = svdvals(expect_matrix("cond", A))
    return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
  return matrix_norm(A, p) * matrix_norm(inv(A), p)


class LeastSquares(NamedTuple):
  """What `lstsq` returns. residuals: the sums of squares of A @ X - B, none unless n > m and all ranks are m.
  rank: none of "gels". singular_values: of "gelsd" and "gelss"."""

  solution: Tensor
  residuals: Tensor
  rank: Tensor
  singular_values: Tensor


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
  """X for which |A @ X - B| is least, and of these the least one. By singular values, whichever of LAPACK's drivers is
  named.

  A: T[.., n, m]   B: T[.., n, k]   ->   solution: T[.., m, k]

  >>> mini.linalg.lstsq(Tensor([[2.0], [0.0]]), Tensor([[4.0], [3.0]])).solution
  Tensor([[2.]])
  """
  expect_matrix("lstsq", A)
  expect_matrix("lstsq", B)
  if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
    fail(ArgumentError, f'lstsq: driver is "gels", "gelsy", "gelsd" or "gelss", not {driver!r}', A=A)
  same_type("lstsq", A, B)
  if A.shape[-2] != B.shape[-2]:
    fail(ShapeError, f"lstsq: A has {A.shape[-2]} rows, and B has {B.shape[-2]}", A=A, B=B)
  solution = pinv(A, rtol=rcond) @ B
  kind = real_of(A.dtype)
  residuals = none = A.zeros(0, dtype=kind, device=A.device)
  rank = matrix_rank(A, rtol=rcond)
  unseen = driver == "gels" or local.current is not None or local.samples is not None
  if A.shape[-2] > A.shape[-1] and (unseen or bool((rank == A.shape[-1]).all())):
    residuals = (A @ solution - B).abs().square().sum(-2)
  singular_values = svdvals(A.detach()) if driver in ("gelsd", "gelss") else none
  return LeastSquares(solution, residuals, none.long() if driver == "gels" else rank, singular_values)


# ---------------------------------------------------------------- of products


def matrix_power(A: Tensor, n: int) -> Tensor:
  """A @ A @ ... @ A; the identity for n = 0, of the inverse for n < 0.   T[.., n, n] -> T[.., n, n]

  >>> mini.linalg.matrix_power(Tensor([[1.0, 1.0], [0.0, 1.0]]), 10)[0, 1].item()
  10.0
  """
  if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
    fail(ShapeError, "matrix_power: x is not a square matrix", x=A)
  if n == 0 and A._complex:
    return A.complex(matrix_power(A.real, 0), matrix_power(A.imag, 0) * 0)
  if n == 0:
    return A._flat(eye(A.shape[-1], A).expand(*A.shape)._node)
  power, out = inv(A) if n < 0 else A, None
  for bit in reversed(f"{abs(n):b}"):
    if bit == "1":
      out = power if out is None else out @ power
    power = power @ power  # the last one is not used, and so not computed
  return out


TAYLOR = [1 / math.factorial(k) for k in range(17)]  # of exp: within an ulp of float64 for norms up to 1/2


def matrix_exp(A: Tensor) -> Tensor:
  """The exponential series of matrices: of A / 2**s, whose norm is at most 1/2, squared s times.

  T[.., n, n] -> T[.., n, n]

  >>> mini.linalg.matrix_exp(Tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
  [[1.0, 1.0], [0.0, 1.0]]
  """
  if A.dtype in (dtypes.float16, dtypes.bfloat16):
    return matrix_exp(A.float()).to(A.dtype)
  expect_matrix("matrix_exp", A, square=True)
  if not A.numel():
    return A
  largest = _largest(A)
  s = max(0, math.ceil(math.log2(largest)) + 1) if 0 < largest < math.inf else 0
  x = A * 2.0**-s
  powers = [eye(A.shape[-1], A), x, x @ x]
  powers += [powers[2] @ x, powers[2] @ powers[2]]
  out = powers[0] * TAYLOR[16]
  for k in range(12, -1, -4):  # Paterson and Stockmeyer: Horner's rule in x**4
    out = powers[4] @ out + sum((powers[j] * TAYLOR[k + j] for j in range(1, 4)), powers[0] * TAYLOR[k])
  for _ in range(s):
    out = out @ out
  return out


def _largest(A: Tensor) -> float:
  """The largest 1-norm of the matrices, of all samples."""
  samples = local.samples
  if samples is None:
    return float(A.abs().sum(-2).max()._number("matrix_exp"))
  (many,) = samples.all([A.abs()._node])
  with samples.left():
    return _largest(stacked(A, many, 0))


def newton_schulz(
  A: Tensor, steps: int, params: Sequence[float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7
) -> Tensor:
  """About the nearest matrix with orthonormal rows or columns: A over its norm, put `steps` times into the polynomial
  params[0] X + params[1] (X X^H) X + params[2] (X X^H)^2 X + ...   T[.., n, m] -> T[.., n, m]

  With (2, -1.5, 0.5) it converges slowly and exactly, with the default, Muon's, fast and roughly
  (https://kellerjordan.github.io/posts/muon).

  >>> x = mini.linalg.newton_schulz(Tensor([[3.0, 0.0], [0.0, 1.0]]), 12, (2, -1.5, 0.5))
  >>> x.isclose(Tensor([[1.0, 0.0], [0.0, 1.0]]), atol=1e-5).all().item()
  True
  """
  if A.ndim < 2:
    fail(ShapeError, f"newton_schulz: a matrix has two axes, and x has {A.ndim}", x=A)
  x = A / ((A * A.conj()).real.sum((-2, -1), True).sqrt() + eps)
  tall = A.shape[-2] > A.shape[-1]
  x = x.mT if tall else x
  for _ in range(steps):
    square = x @ x.mH
    term, out = x, x * params[0]
    for p in params[1:]:
      term = square @ term
      out = out + term * p
    x = out
  return x.mT if tall else x


def multi_dot(tensors: Any) -> Tensor:
  """See Tensor.multi_dot."""
  return Handle._final.multi_dot(tensors)


def cross(a: Tensor, b: Tensor, *, dim: int = -1) -> Tensor:
  """See Tensor.cross; along the last axis."""
  return a.cross(b, dim)


def vecdot(a: Tensor, b: Tensor, *, dim: int = -1) -> Tensor:
  """The sums of products along an axis, which both have; of complex tensors with the conjugate of a."""
  return (a.conj() * b).sum(dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
  """See Tensor.diagonal; of the last two axes."""
  return A.diagonal(offset, dim1, dim2)


# ---------------------------------------------------------------- methods


class Triangular(NamedTuple):
  """What `triangular_solve` returns."""

  solution: Tensor
  cloned_coefficient: Tensor


class LinearAlgebra(Autograd):
  """Methods, as PyTorch's; the functions above, of the same names, say what they do."""

  def inv(self) -> Tensor:
    """`mini.linalg.inv`."""
    return inv(self)

  def inverse(self) -> Tensor:
    """`mini.linalg.inv`."""
    return inv(self)

  def pinv(self, rtol: float | None = None) -> Tensor:
    """`mini.linalg.pinv`."""
    return pinv(self, rtol)

  def pinverse(self, rcond: float = 1e-15) -> Tensor:
    """`mini.linalg.pinv`, with PyTorch's other tolerance."""
    return pinv(self, rtol=rcond)

  def det(self) -> Tensor:
    """`mini.linalg.det`."""
    return det(self)

  def logdet(self) -> Tensor:
    """The logarithm of the determinant: nan where that is negative.

    >>> Tensor([[1.0, 0.0], [0.0, 1.0]]).logdet().item()
    0.0
    """
    return logdet(self)

  def slogdet(self) -> SignAndLog:
    """`mini.linalg.slogdet`."""
    return slogdet(self)

  def cholesky(self, upper: bool = False) -> Tensor:
    """`mini.linalg.cholesky`."""
    return cholesky(self, upper=upper)

  def qr(self, some: bool = True) -> QR:
    """`mini.linalg.qr`; some=False: "complete"."""
    return qr(self, "reduced" if some else "complete")

  def svd(self, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of U @ diag(S) @ V.mH: as PyTorch's method, V and not its transpose, and not the full ones unless
    some=False. `mini.linalg.svd` has Vh. compute_uv=False: zeros for U and V.

    >>> [x.shape for x in Tensor([[1.0, 2.0, 3.0]]).svd()]
    [(1, 1), (1,), (3, 1)]
    """
    u, s, vh = svd(self, not some)
    return (u, s, vh.mH) if compute_uv else (u.zeros_like(), s, vh.mT.zeros_like())

  def eigh(self, UPLO: str = "L") -> Eigh:
    """`mini.linalg.eigh`."""
    return eigh(self, UPLO)

  def eigvalsh(self, UPLO: str = "L") -> Tensor:
    """`mini.linalg.eigvalsh`."""
    return eigvalsh(self, UPLO)

  def solve(self, other: Tensor) -> Tensor:
    """X of self @ X = other: `mini.linalg.solve`."""
    return solve(self, other)

  def lstsq(self, other: Tensor, rcond: float | None = None) -> LeastSquares:
    """`mini.linalg.lstsq`."""
    return lstsq(self, other, rcond)

  def triangular_solve(
    self, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
  ) -> Triangular:
    """X of A @ X = self, with A triangular: `mini.linalg.solve_triangular`; transpose: of A.mT @ X = self; and A.

    >>> Tensor([[2.0], [3.0]]).triangular_solve(Tensor([[1.0, 1.0], [0.0, 1.0]])).solution.tolist()
    [[-1.0], [3.0]]
    """
    a, up = (A.mT, not upper) if transpose else (A, upper)
    return Triangular(solve_triangular(a, self, upper=up, unitriangular=unitriangular), A)

  def matrix_power(self, n: int) -> Tensor:
    """`mini.linalg.matrix_power`."""
    return matrix_power(self, n)

  def matrix_exp(self) -> Tensor:
    """`mini.linalg.matrix_exp`."""
    return matrix_exp(self)

  def matrix_rank(self, *, atol: float | None = None, rtol: float | None = None) -> Tensor:
    """`mini.linalg.matrix_rank`."""
    return matrix_rank(self, atol=atol, rtol=rtol)

  def cond(self, p: Any = None) -> Tensor:
    """`mini.linalg.cond`."""
    return cond(self, p)

  def newton_schulz(
    self, steps: int, params: Sequence[float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7
  ) -> Tensor:
    """`mini.linalg.newton_schulz`."""
    return newton_schulz(self, steps, params, eps)

  def lu(self, pivot: bool = True, get_infos: bool = False) -> LU | LUAndInfo:
    """`mini.linalg.lu_factor`, with get_infos `lu_factor_ex`."""
    found = lu_factor_ex(self, pivot=pivot)
    return found if get_infos else LU(*found[:2])

  def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X of A @ X = self, with A as `lu` packed it: `mini.linalg.lu_solve`.

    >>> packed = Tensor([[2.0, 1.0], [1.0, 2.0]]).lu()
    >>> Tensor([[3.0], [3.0]]).lu_solve(*packed).round(decimals=4).tolist()
    [[1.0], [1.0]]
    """
    return lu_solve(LU_data, LU_pivots, self)

  def lu_unpack(self, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> PLU:
    """P, L and U of what `lu` packed."""
    return lu_unpack(self, LU_pivots, unpack_data, unpack_pivots)

  def cholesky_solve(self, input2: Tensor, upper: bool = False) -> Tensor:
    """X of A @ X = self, with input2 the factor of A that `cholesky` gives."""
    return cholesky_solve(self, input2, upper)

  def cholesky_inverse(self, upper: bool = False) -> Tensor:
    """The inverse of the matrix whose factor this is: of self @ self.mH."""
    return cholesky_inverse(self, upper)

  def geqrf(self) -> Reflectors:
    """The QR decomposition as LAPACK packs it, without a gradient: R, below it reflectors, and their factors."""
    return geqrf(self)

  def orgqr(self, tau: Tensor) -> Tensor:
    """`mini.linalg.householder_product`."""
    return householder_product(self, tau)

  def ormqr(self, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q @ other, with Q the product of the reflectors that `geqrf` packed; see `mini.tensor.factors`."""
    return ormqr(self, tau, other, left, transpose)

  def svd_lowrank(self, q: int = 6, niter: Any = 2, M: Tensor | None = None) -> SVD:
    """U, S and V of the q largest singular values: here exactly."""
    return svd_lowrank(self, q, niter, M)

  def pca_lowrank(self, q: int | None = None, center: bool = True, niter: Any = 2) -> SVD:
    """U, S and V of the principal components, exactly; V has their directions."""
    return pca_lowrank(self, q, center, niter)

  def vander(self, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers N - 1, .. 1, 0 of each element of a vector, a row each; increasing: 0, 1, .. N - 1.

    >>> Tensor([2, 3]).vander(3)
    Tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    return vander(self, N) if increasing else vander(self, N).flip(-1)

  def trace(self) -> Tensor:
    """The sum of the diagonal of a matrix.

    >>> Tensor([[1, 2], [3, 4]]).trace()
    Tensor(5)
    """
    self._expect("trace", 2, x=self)
    return self.diagonal().sum()


__all__ = [
  "LinAlgError", "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "cond", "cross", "det", "diagonal",
  "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex", "logdet", "lstsq", "lu", "lu_factor",
  "lu_factor_ex", "lu_solve", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "newton_schulz",
  "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv",
  "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

guard_functions(__all__, globals())
