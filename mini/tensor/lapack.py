"""What NumPy's LAPACK computes on the host, of stacks of small dense matrices, real or complex, with gradients:
inverses and solutions, determinants. With the decompositions (decompose.py), it is the part of `mini.linalg`
(linalg.py) that is not lazy; in a jitted function it is a call of the host's in the middle of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from mini.ir import graph
from mini.ir.sizes import varies
from mini.tensor.autograd import custom_gradient
from mini.tensor.data import complex_numbers
from mini.tensor.errors import described, fail
from mini.tensor.handle import Handle
from mini.tensor.promotion import broadcast_shape
from mini.tensor.trace import local
from mini.types import BY_NUMPY, DTypeError, MiniError, ShapeError, dtypes, real_of

if TYPE_CHECKING:
  Tensor = Any  # the class is made of this file's


class LinAlgError(MiniError, RuntimeError):
  """A matrix is singular, or not positive definite, or an iteration did not converge."""


# ---------------------------------------------------------------- on the host


def host(
  what: str, f: Callable[..., Any], *tensors: Handle, real: Sequence[int] = (), about: str = ""
) -> list[Tensor]:
  """f of arrays of stacks, as tensors that no gradient passes to; within vmap, of all samples at once.

  real: the numbers of the results that are real of complex matrices, too. about: a line of errors, of what it is.
  """
  if any(t._complex for t in tensors):
    return _complex_host(what, f, tensors, real)
  samples = local.samples
  if samples is not None:
    many = samples.all([t._node for t in tensors])
    shared = all(u is None for u in many)
    with samples.left():
      whole = [stacked(t, None if shared else u, 0 if shared else samples.n) for t, u in zip(tensors, many)]
      found = host(what, f, *whole, about=about)
    return found if shared else [Handle._new(samples.one(t._node)) for t in found]
  about = about or described("x", tensors[0])

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


def _complex_host(
  what: str, f: Callable[..., Any], tensors: Sequence[Handle], real: Sequence[int]
) -> list[Tensor]:
  """`host` of real and imaginary parts."""

  def of_parts(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    rest = iter(arrays)
    results = f(*(_whole(*(next(rest) for _ in t._parts())) for t in tensors))
    found = map(np.asarray, results if isinstance(results, tuple) else (results,))
    return tuple(p for n, r in enumerate(found) for p in ((r,) if n in real else (r.real, r.imag)))

  about = described("x", tensors[0])
  rest = host(what, of_parts, *(p for t in tensors for p in t._parts()), about=about)
  joined = complex_numbers().joined
  found: list[Tensor] = []
  while rest:
    found.append(rest.pop(0) if len(found) in real else joined(rest.pop(0), rest.pop(0)))
  return found


def _whole(re: np.ndarray, im: np.ndarray | None = None) -> np.ndarray:
  if im is None:
    return re
  z = np.empty(re.shape, np.result_type(re, np.complex64))
  z.real, z.imag = re, im
  return z


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
  flat = Handle._new(called(row, [graph.detach(t._node) for t in tensors], (sum(sizes),), kind))
  return [part.reshape(r.shape) for part, r in zip(flat.split(sizes), found)]


def stacked(t: Handle, many: Any, n: int) -> Handle:
  if many is None:
    many = graph.expand_to(t._node, (n, *t.shape)) if n else t._node
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
  if real_of(a.dtype) not in (dtypes.float32, dtypes.float64):
    fail(
      DTypeError, f"{what}: x is {a.dtype.name}, not float32, float64 or complex", "x.float() would fit", x=a
    )
  return a


def same_type(what: str, a: Handle, b: Handle) -> None:
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


@custom_gradient(lambda g, out, a: -(out.mH @ g @ out.mH))
def _inv(a: Tensor) -> Tensor:
  return host("inv", np.linalg.inv, a)[0]


def inv(A: Tensor) -> Tensor:
  """The inverse.   T[.., n, n] -> T[.., n, n].   LinAlgError if a matrix is singular.

  >>> mini.linalg.inv(Tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
  [[0.5, 0.0], [0.0, 0.25]]
  """
  return _inv(expect_matrix("inv", A, square=True))


def _of_solve(g: Tensor, out: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
  by_b = inv(a).mH @ g
  return _to(-(by_b @ out.mH), a.shape), _to(by_b, b.shape)


_solve = custom_gradient(_of_solve)(lambda a, b: host("solve", np.linalg.solve, a, b)[0])


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
  """X of A @ X = B; left=False: of X @ A = B. LinAlgError if A is singular.

  A: T[.., n, n]   B: T[.., n, k], or T[n] or T[.., n] for stacks of vectors, as torch.linalg.solve   ->   B's shape

  >>> mini.linalg.solve(Tensor([[2.0, 0.0], [0.0, 4.0]]), Tensor([2.0, 2.0])).tolist()
  [1.0, 0.5]
  """
  expect_matrix("solve", A, square=True)
  same_type("solve", A, B)
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


def _singular(a: np.ndarray, hermitian: bool) -> np.ndarray:
  return np.abs(np.linalg.eigvalsh(a)) if hermitian else np.linalg.svd(a, compute_uv=False)


def _counts(s: np.ndarray, shape: Sequence[int], atol: Any, rtol: Any) -> np.ndarray:
  """Which singular values `matrix_rank` counts.   T[.., k] -> bool[.., k]"""
  least = np.asarray(0.0 if atol is None else atol)
  if rtol is None:
    rtol = np.where(least > 0, 0.0, max(shape[-2:], default=0) * np.finfo(s.dtype).eps)
  return s > np.maximum(least, rtol * s.max(-1, initial=0))[..., None]


def _numbers(what: str, A: Tensor, tolerance: Any) -> Any:
  if not isinstance(tolerance, Handle):
    return tolerance
  if broadcast_shape(tolerance.shape, A.shape[:-2]) != A.shape[:-2]:
    fail(ShapeError, f"{what}: a tolerance is a number, or one for each matrix", x=A, tolerance=tolerance)
  return tolerance.detach().numpy()  # type: ignore[attr-defined]


def matrix_rank(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
  """How many singular values are above max(atol, rtol * the largest one).   T[.., n, m] -> i64[..]

  atol: 0; rtol: max(n, m) times the type's eps, or 0 where atol is given: numbers, or tensors of one for each matrix,
  whose values are asked for. hermitian: A is, and its lower triangle counts.

  >>> mini.linalg.matrix_rank(Tensor([[1.0, 2.0], [2.0, 4.0]])).item()
  1
  """
  expect_matrix("matrix_rank", A, square=hermitian)
  a, r = (_numbers("matrix_rank", A, t) for t in (atol, rtol))

  def rank(x: np.ndarray) -> np.ndarray:
    return _counts(_singular(x, hermitian), x.shape, a, r).sum(-1)

  return host("matrix_rank", rank, A, real=(0,))[0]


def _of_pinv(g: Tensor, out: Tensor, a: Tensor, *tolerances: Any) -> Tensor:
  """Golub and Pereyra, The differentiation of pseudo-inverses, SIAM J. Numer. Anal. 10 (1973)."""
  n, m = a.shape[-2:]
  left, right = eye(n, a) - a @ out, eye(m, a) - out @ a
  return -(out.mH @ g @ out.mH) + left @ g.mH @ out @ out.mH + out.mH @ out @ g.mH @ right


def _host_pinv(a: np.ndarray, atol: Any, rtol: Any, hermitian: bool) -> np.ndarray:
  u, s, vh = np.linalg.svd(a, full_matrices=False, hermitian=hermitian)
  inverse = np.divide(1, s, where=_counts(s, a.shape, atol, rtol), out=np.zeros_like(s))
  return (vh.swapaxes(-1, -2).conj() * inverse[..., None, :]) @ u.swapaxes(-1, -2).conj()


_pinv = custom_gradient(_of_pinv)(lambda a, *how: host("pinv", lambda x: _host_pinv(x, *how), a)[0])


def pinv(A: Tensor, rtol: Any = None, *, atol: Any = None, hermitian: bool = False) -> Tensor:
  """The pseudoinverse (Moore and Penrose).   T[.., n, m] -> T[.., m, n]

  Singular values that `matrix_rank` does not count are 0; atol, rtol, hermitian: as there.

  >>> mini.linalg.pinv(Tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
  [[0.5, 0.0], [0.0, 0.0]]
  """
  expect_matrix("pinv", A, square=hermitian)
  return _pinv(A, *(_numbers("pinv", A, t) for t in (atol, rtol)), hermitian)


# ---------------------------------------------------------------- determinants


def _host_cofactors(a: np.ndarray) -> np.ndarray:
  """The conjugate derivatives of the determinant, also where it is 0: of a = u s v, conj(det(u v)) u (products of the
  other s) v."""
  u, s, v = np.linalg.svd(a)
  n = s.shape[-1]
  others = np.where(np.eye(n, dtype=bool), 1, np.broadcast_to(s[..., None, :], (*s.shape, n))).prod(-1)
  sign = (np.linalg.det(u) * np.linalg.det(v)).conj()
  return ((sign[..., None, None] * u * others[..., None, :]) @ v).astype(a.dtype, copy=False)


def _of_cofactors(g: Tensor, out: Tensor, a: Tensor) -> Tensor:
  inverse = inv(a)
  return (g.conj() * out).sum((-2, -1), True) * inverse.mH - out @ g.mH @ inverse.mH


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
  """What `slogdet` returns: of a complex determinant the sign is on the unit circle."""

  sign: Tensor
  logabsdet: Tensor


def _of_slogdet(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], a: Tensor) -> Tensor:
  """The logarithm of the determinant is log + i angle, and that of a real one turns nowhere."""
  slope = g[1]
  if a.is_complex():
    slope = complex_numbers().joined(g[1], -(g[0].conj() * out[0]).imag)
  return slope.unsqueeze(-1).unsqueeze(-1) * inv(a).mH


@custom_gradient(_of_slogdet)
def _slogdet(a: Tensor) -> tuple[Tensor, Tensor]:
  sign, log = host("slogdet", lambda x: tuple(np.linalg.slogdet(x)), a, real=(1,))
  return sign, log


def slogdet(A: Tensor) -> SignAndLog:
  """The sign of the determinant and the logarithm of its magnitude: 0 and -inf where it is 0.

  T[.., n, n] -> T[..], T[..]

  >>> mini.linalg.slogdet(Tensor([[-1.0, 0.0], [0.0, 1.0]])).sign
  Tensor(-1.)
  """
  sign, log = _slogdet(expect_matrix("slogdet", A, square=True))
  return SignAndLog(sign if A.is_complex() else sign.detach(), log)


def logdet(A: Tensor) -> Tensor:
  """The logarithm of the determinant: nan where that is negative."""
  sign, log = slogdet(A)
  if A.is_complex():
    return A.complex(log, sign.angle())
  return (sign < 0).where(math.nan, log)
