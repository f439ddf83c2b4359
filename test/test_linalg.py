"""Linear algebra: values as PyTorch's or by what defines them; gradients of first and second order;
vmap, jvp; errors."""

import numpy as np
import pytest

import mini
from mini import DTypeError, MiniError, ShapeError, Tensor, linalg
from mini.tensor.linalg import LinAlgError

torch = pytest.importorskip("torch")

rng = np.random.default_rng(8)


def normal(*s):
  return rng.normal(size=s)


def symmetric(*s):
  a = normal(*s)
  return a + np.swapaxes(a, -1, -2)


def positive(*s):
  a = normal(*s)
  return a @ np.swapaxes(a, -1, -2) + np.eye(s[-1])


def triangular(*s):
  return np.triu(normal(*s)) + 2 * np.eye(s[-1])


def condition(l, a, p):
  """(The gradient of PyTorch's cond fails for norms that take an inverse.)"""
  return l.cond(a, p) if l is linalg or p in (None, -2) else l.matrix_norm(a, p) * l.matrix_norm(l.inv(a), p)


# What differs by the signs of eigenvectors is squared. Each: (a function of both libraries, inputs).
# fmt: off
ROWS = {
  "inv": (lambda l, a: l.inv(a), normal(2, 3, 3)),
  "solve": (lambda l, a, b: l.solve(a, b), normal(2, 3, 3), normal(2, 3, 4)),
  "solve, one for many": (lambda l, a, b: l.solve(a, b), normal(3, 3), normal(2, 3, 4)),
  "solve vector": (lambda l, a, b: l.solve(a, b), normal(3, 3), normal(3)),
  "solve vectors": (lambda l, a, b: l.solve(a, b), normal(2, 3, 3), normal(2, 3)),
  "solve right": (lambda l, a, b: l.solve(a, b, left=False), normal(3, 3), normal(4, 3)),
  "solve_triangular": (lambda l, a, b: l.solve_triangular(a, b, upper=True), triangular(2, 3, 3) + 9 * np.tril(np.ones((3, 3)), -1), normal(2, 3, 2)),
  "solve_triangular, ones": (lambda l, a, b: l.solve_triangular(a, b, upper=False, unitriangular=True), normal(3, 3), normal(3, 2)),
  "solve_triangular right": (lambda l, a, b: l.solve_triangular(a, b, upper=True, left=False), triangular(3, 3), normal(2, 3)),
  "pinv tall": (lambda l, a: l.pinv(a), normal(2, 5, 3)),
  "pinv wide": (lambda l, a: l.pinv(a), normal(3, 5)),
  "lstsq": (lambda l, a, b: l.lstsq(a, b).solution, normal(2, 5, 3), normal(2, 5, 2)),
  "det": (lambda l, a: l.det(a), normal(2, 3, 3)),
  "slogdet": (lambda l, a: l.slogdet(a)[1], normal(2, 3, 3)),
  "cholesky": (lambda l, a: l.cholesky(a), positive(2, 3, 3)),
  "cholesky upper": (lambda l, a: l.cholesky(a, upper=True), positive(3, 3)),
  "qr q": (lambda l, a: l.qr(a)[0], normal(2, 4, 3)),
  "qr r": (lambda l, a: l.qr(a)[1], normal(2, 4, 3)),
  "qr wide": (lambda l, a: l.qr(a)[1] * l.qr(a)[0].sum(), normal(3, 5)),
  "eigvalsh": (lambda l, a: l.eigvalsh(a), symmetric(2, 3, 3)),
  "eigh": (lambda l, a: l.eigh(a)[1] ** 2, symmetric(2, 3, 3)),
  "eigh of U": (lambda l, a: l.eigh(a, UPLO="U")[0], normal(3, 3)),
  "svdvals": (lambda l, a: l.svdvals(a), normal(2, 3, 4)),
  "svd u": (lambda l, a: l.svd(a, full_matrices=False)[0] ** 2, normal(2, 4, 3)),
  "svd v": (lambda l, a: l.svd(a, full_matrices=False)[2] ** 2, normal(3, 4)),
  "svd square": (lambda l, a: l.svd(a)[0] @ (l.svd(a)[1].unsqueeze(-1) ** 2 * l.svd(a)[2]), normal(3, 3)),
  "matrix_exp": (lambda l, a: l.matrix_exp(a), normal(2, 3, 3) * 2),
  "matrix_power": (lambda l, a: l.matrix_power(a, 5), normal(2, 3, 3)),
  "matrix_power -3": (lambda l, a: l.matrix_power(a, -3), normal(3, 3)),
  "norm": (lambda l, a: l.norm(a), normal(2, 3)),
  "norm axis": (lambda l, a: l.norm(a, 3, dim=1), normal(2, 3)),
  **{f"matrix_norm {o}": (lambda l, a, o=o: l.matrix_norm(a, o, keepdim=True), normal(2, 3, 4)) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)},
  "norm nuc": (lambda l, a: l.norm(a, "nuc"), normal(4, 3)),
  "vector_norm": (lambda l, a: l.vector_norm(a, np.inf, dim=(0, 1)), normal(2, 3, 2)),
  **{f"cond {p}": (lambda l, a, p=p: condition(l, a, p), normal(2, 3, 3)) for p in (None, -2, 1, "fro")},
  "multi_dot": (lambda l, a, b: l.multi_dot([a, b]), normal(2, 3), normal(3, 2)),
  "cross": (lambda l, a, b: l.cross(a, b), normal(2, 3), normal(1, 3)),
  "vecdot": (lambda l, a, b: l.vecdot(a, b, dim=0), normal(2, 3), normal(2, 3)),
  "diagonal": (lambda l, a: l.diagonal(a, offset=1), normal(2, 3, 3)),
}
# fmt: on


def derived(lib, f, arrays, cotangent):
  """f's value, its gradients, and the gradients of a function of these."""
  xs = [Tensor(a) if lib is mini else torch.tensor(a) for a in arrays]
  weights = [Tensor(w) if lib is mini else torch.tensor(w) for w in cotangent]
  func, which = (mini if lib is mini else torch.func), tuple(range(len(xs)))
  loss = lambda *xs: (f(lib.linalg, *xs) * weights[0]).sum()
  first = func.grad(loss, which)
  second = func.grad(lambda *xs: sum((g * w).sum() for g, w in zip(first(*xs), weights[1:])), which)
  return [f(lib.linalg, *xs), *first(*xs), *second(*xs)]


def together(pairs):
  """{name: ([tensors], [arrays or tensors])}, of which the first ones are computed at once."""
  ours = [t for found, _ in pairs.values() for t in found]
  ours[0].realize(*ours[1:])
  return pairs


@pytest.fixture(scope="module")
def values():
  found = {}
  for name, (f, *arrays) in ROWS.items():
    like = f(torch.linalg, *map(torch.tensor, arrays))
    cotangent = [normal(*like.shape), *(normal(*a.shape) for a in arrays)]
    ours, theirs = (derived(lib, f, arrays, cotangent) for lib in (mini, torch))
    single = f(linalg, *(Tensor(a, dtype="float32") for a in arrays))
    found[name] = [*ours, single], [t.detach().numpy(force=True) for t in (*theirs, like)]
  return together(found)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients(name, values):
  *ours, single = values[name][0]
  *theirs, like = values[name][1]
  for a, b in zip(ours, theirs, strict=True):
    assert a.shape == b.shape and a.dtype.name == "float64"
    np.testing.assert_allclose(a.numpy(), b, rtol=1e-7, atol=1e-8)
  assert single.dtype.name == "float32"
  np.testing.assert_allclose(single.numpy(), like, rtol=1e-2, atol=1e-3)


# ---------------------------------------------------------------- complex matrices


def complex_normal(*s):
  return normal(*s) + 1j * normal(*s)


def hermitian(a):
  return (a + a.mH) / 2


def exp_by(found, inverse):
  """The exponential by eigenvalues and eigenvectors."""
  w, v = found
  return (v * w.exp().unsqueeze(-2)) @ inverse(v)


def by_squares(q, r):
  return q @ r**2


def root_by(u, s, vh):
  return (u * s.sqrt().unsqueeze(-2)) @ vh


# What differs by a turn of vectors is multiplied so that it does not show.
# fmt: off
COMPLEX_ROWS = {
  "inv": (lambda l, a: l.inv(a), complex_normal(2, 3, 3)),
  "solve": (lambda l, a, b: l.solve(a, b), complex_normal(2, 3, 3), complex_normal(2, 3, 4)),
  "solve, one for many": (lambda l, a, b: l.solve(a, b), complex_normal(3, 3), complex_normal(2, 3, 2)),
  "solve right": (lambda l, a, b: l.solve(a, b, left=False), complex_normal(3, 3), complex_normal(4, 3)),
  "solve_triangular": (lambda l, a, b: l.solve_triangular(a, b, upper=True), complex_normal(3, 3), complex_normal(3, 2)),
  "pinv": (lambda l, a: l.pinv(a), complex_normal(2, 4, 3)),
  "pinv wide": (lambda l, a: l.pinv(a), complex_normal(3, 4)),
  "lstsq": (lambda l, a, b: l.lstsq(a, b)[0], complex_normal(4, 3), complex_normal(4, 2)),
  "det": (lambda l, a: l.det(a), complex_normal(2, 3, 3)),
  "sign": (lambda l, a: l.slogdet(a)[0], complex_normal(2, 3, 3)),
  "logabsdet": (lambda l, a: l.slogdet(a)[1], complex_normal(2, 3, 3)),
  "cholesky": (lambda l, a: l.cholesky(hermitian(a @ a.mH)), complex_normal(2, 3, 3)),
  "cholesky upper": (lambda l, a: l.cholesky(hermitian(a @ a.mH), upper=True), complex_normal(3, 3)),
  "qr": (lambda l, a: by_squares(*l.qr(a)), complex_normal(2, 4, 3)),
  "qr wide": (lambda l, a: by_squares(*l.qr(a)), complex_normal(3, 5)),
  "eigvalsh": (lambda l, a: l.eigvalsh(hermitian(a)), complex_normal(2, 3, 3)),
  "eigh": (lambda l, a: exp_by(l.eigh(hermitian(a)), lambda v: v.mH), complex_normal(3, 3)),
  "eigvals": (lambda l, a: (l.eigvals(a) ** 3).sum(-1), complex_normal(2, 3, 3)),
  "eig": (lambda l, a: (l.eig(a)[1].abs() ** 2).sum(-1), complex_normal(3, 3)),
  "eig of a real matrix": (lambda l, a: exp_by(l.eig(a), l.inv), normal(2, 3, 3)),
  "svdvals": (lambda l, a: l.svdvals(a), complex_normal(2, 3, 4)),
  "svd": (lambda l, a: root_by(*l.svd(a, full_matrices=False)), complex_normal(3, 4)),
  "svd tall": (lambda l, a: l.svd(a, full_matrices=False)[0].abs() ** 2, complex_normal(4, 3)),
  "matrix_exp": (lambda l, a: l.matrix_exp(a), complex_normal(2, 3, 3)),
  "matrix_power": (lambda l, a: l.matrix_power(a, -3), complex_normal(3, 3)),
  "nuc": (lambda l, a: l.matrix_norm(a, "nuc"), complex_normal(3, 4)),
  "cond": (lambda l, a: l.cond(a), complex_normal(3, 3)),
}
# fmt: on
TWICE = (
  "inv",
  "solve",
  "pinv",
  "det",
  "sign",
  "logabsdet",
  "cholesky",
  "eigvalsh",
  "svdvals",
)  # second derivatives, too


def complex_gradients(lib, f, arrays, weights, twice):
  """f's value, its gradients, and those of the sum of their squares."""
  of = (lambda a, **o: Tensor(a, device="INTERP", **o)) if lib is mini else torch.tensor
  xs = [of(a, requires_grad=True) for a in arrays]
  out = f(lib.linalg, *xs)
  loss = out * of(weights)
  loss = (loss.real if loss.is_complex() else loss).sum()
  first = loss.gradient(*xs) if lib is mini else torch.autograd.grad(loss, xs, create_graph=twice)
  total = sum((g.abs() ** 2).sum() for g in first)
  second = [] if not twice else total.gradient(*xs) if lib is mini else torch.autograd.grad(total, xs)
  return [out, *first, *second]


@pytest.fixture(scope="module")
def complex_values():
  found = {}
  for name, (f, *arrays) in COMPLEX_ROWS.items():
    like = f(torch.linalg, *map(torch.tensor, arrays))
    weights = complex_normal(*like.shape) if like.is_complex() else normal(*like.shape)
    ours, theirs = (complex_gradients(lib, f, arrays, weights, name in TWICE) for lib in (mini, torch))
    found[name] = ours, [t.detach().resolve_conj().numpy() for t in theirs]
  return together(found)


@pytest.mark.parametrize("name", COMPLEX_ROWS)
def test_complex_matrices(name, complex_values):
  for a, b in zip(*complex_values[name], strict=True):
    assert a.shape == b.shape and a.numpy().dtype == b.dtype
    np.testing.assert_allclose(a.numpy(), b, rtol=1e-7, atol=1e-8 * max(1, abs(b).max()))


def test_complex_matrices_in_jit_and_vmap_and_their_errors():
  a = complex_normal(2, 3, 3)
  f = lambda a: (linalg.svd(a)[1], linalg.inv(a) @ a, linalg.eigvals(a).sum(-1), linalg.logdet(a).exp())
  want = [
    np.linalg.svd(a)[1],
    np.broadcast_to(np.eye(3), a.shape),
    np.trace(a, axis1=1, axis2=2),
    np.linalg.det(a),
  ]
  for found in (mini.jit(f)(Tensor(a)), mini.vmap(f)(Tensor(a)), f(Tensor(a))):
    for got, w in zip(found, want):
      np.testing.assert_allclose(got.numpy(), w, atol=1e-12)
  np.testing.assert_allclose(
    mini.vmap(linalg.matrix_exp)(Tensor(a)).numpy(), linalg.matrix_exp(Tensor(a)).numpy()
  )
  u, s, v = Tensor(a).svd()
  np.testing.assert_allclose(((u * s.unsqueeze(-2)) @ v.mH).numpy(), a, atol=1e-12)
  x = linalg.newton_schulz(Tensor(a), 40, (2, -1.5, 0.5))
  np.testing.assert_allclose((x @ x.mH).numpy(), np.broadcast_to(np.eye(3), a.shape), atol=1e-9)
  assert linalg.inv(Tensor(a, dtype="complex64")).dtype is mini.dtypes.complex64
  with pytest.raises(LinAlgError, match=r"inv: singular matrix, of those in x\[1\](.|\n)*x: c128\[2,2,2\]"):
    linalg.inv(Tensor(np.array([np.eye(2), np.zeros((2, 2))], complex)))


# of stacks, one of which is a sample
STACKS = [
  n for n, (_, *arrays) in ROWS.items() if arrays[0].ndim == 3 and n not in ("vector_norm", "solve vectors")
]


@pytest.fixture(scope="module")
def transformed(request):
  found = {}
  for name in STACKS if request.config.option.full else STACKS[::4]:
    f, *arrays = ROWS[name]
    g = lambda *xs, f=f: f(linalg, *xs)
    loss = lambda *xs, g=g: (g(*xs) ** 2).sum()
    xs, moves = [Tensor(a) for a in arrays], [Tensor(normal(*a.shape)) for a in arrays]
    every = tuple(range(len(xs)))
    ours, wanted = [], []
    for h in (g, mini.grad(loss)):
      ours.append(mini.vmap(h)(*xs))
      wanted.append(Tensor.stack([h(*(x[n] for x in xs)) for n in range(len(arrays[0]))]))
    back = mini.grad(loss, every)(*xs)
    ours += mini.grad(lambda *xs, g=g: (mini.vmap(g)(*xs) ** 2).sum(), every)(*xs)
    ours.append(mini.jvp(loss, xs, moves)[1])
    wanted += [*back, sum((d * m).sum() for d, m in zip(back, moves))]
    found[name] = [*ours, *wanted], len(ours)
  return together(found)


@pytest.mark.parametrize(
  "name", [n if n in STACKS[::4] else pytest.param(n, marks=pytest.mark.full) for n in STACKS]
)
def test_transforms(name, transformed):
  """vmap, also of a gradient; a gradient of vmap; the derivative in a direction."""
  found, n = transformed[name]
  for a, b in zip(found[:n], found[n:], strict=True):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-9)


def test_jacobian_of_inverse():
  a = normal(3, 3)
  ours, theirs = mini.jacobian(linalg.inv)(Tensor(a)), torch.func.jacrev(torch.linalg.inv)(torch.tensor(a))
  np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9)
  ours, theirs = (
    mini.hessian(lambda a: linalg.slogdet(a)[1])(Tensor(a)),
    torch.func.hessian(lambda a: torch.linalg.slogdet(a)[1])(torch.tensor(a))
  )  # fmt: skip
  np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-8, atol=1e-9)


def test_singular_and_zero_size():
  a = Tensor([[1.0, 2.0], [2.0, 4.0]], dtype="float64")
  np.testing.assert_allclose(mini.grad(linalg.det)(a).numpy(), [[4, -2], [-2, 1]], atol=1e-12)
  sign, log = linalg.slogdet(a)
  assert (sign.item(), log.item()) == (0, -np.inf)
  assert linalg.matrix_rank(a).item() == 1 and linalg.matrix_rank(a, atol=9.0).item() == 0
  assert Tensor([[-1.0]]).logdet().isnan().item()
  assert linalg.lstsq(Tensor(normal(4, 2)), Tensor(normal(4, 1))).residuals.shape == (1,)
  for f, s, wanted in (
    (linalg.inv, (0, 3, 3), (0, 3, 3)), (linalg.inv, (0, 0), (0, 0)), (linalg.det, (0, 0), ()),
    (linalg.det, (0, 2, 2), (0,)),
    (linalg.svdvals, (0, 3), (0,)), (linalg.matrix_exp, (0, 2, 2), (0, 2, 2)), (linalg.cholesky, (0, 0), (0, 0)),
    (linalg.pinv, (0, 3), (3, 0)), (linalg.eigvalsh, (0, 0), (0,)), (lambda a: linalg.qr(a)[1], (0, 3), (0, 3)),
  ):  # fmt: skip
    assert f(Tensor.ones(*s)).shape == wanted


def test_methods():
  a, b = Tensor(positive(3, 3)), Tensor(normal(3, 2))
  t, u = torch.tensor(a.numpy()), torch.tensor(b.numpy())
  for ours, theirs in (
    (a.inverse(), t.inverse()), (a.det(), t.det()), (a.logdet(), t.logdet()), (a.slogdet()[1], t.slogdet()[1]),
    (a.cholesky(), t.cholesky()),
    (a.trace(), t.trace()), (a.pinverse(), t.pinverse()), (a.matrix_power(2), t.matrix_power(2)),
    (a.matrix_exp(), t.matrix_exp()),
    (b.triangular_solve(a)[0], torch.linalg.solve_triangular(t.triu(), u, upper=True)),
    (b.qr()[1], torch.linalg.qr(u)[1]),
    (b.triangular_solve(a, transpose=True)[0], torch.linalg.solve_triangular(t.triu().mT, u, upper=False)),
    (b.svd()[2] ** 2, u.svd()[2] ** 2),
    (b.qr(some=False)[0], torch.linalg.qr(u, "complete")[0]), (a.solve(b), torch.linalg.solve(t, u)),
    (a.cond(), torch.linalg.cond(t)),
  ):  # fmt: skip
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-8, atol=1e-9)
  for s in ((4, 3), (3, 4), (2, 3, 3)):
    x = Tensor(normal(*s)).newton_schulz(40, (2, -1.5, 0.5)).numpy()
    gram = x @ x.swapaxes(-1, -2) if s[-2] <= s[-1] else x.swapaxes(-1, -2) @ x
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(3), gram.shape), atol=1e-6)
  w = Tensor(normal(3, 4), requires_grad=True)
  assert mini.jit(lambda x: (x @ x.T).matrix_power(3).trace())(w).shape == ()


JITTED = {
  "inv": linalg.inv, "solve": lambda a: linalg.solve(a, a @ a), "solve of a vector": lambda a: linalg.solve(a, a[..., 0]),
  "det": linalg.det, "slogdet": lambda a: linalg.slogdet(a)[1], "cholesky": lambda a: linalg.cholesky(a @ a.mT + 1e-2 * Tensor.eye(3, dtype="float64")),
  "qr": lambda a: linalg.qr(a)[1], "eigh": lambda a: linalg.eigh(a + a.mT)[0], "svd": lambda a: linalg.svd(a)[1], "pinv": Tensor.pinverse,
  "lstsq": lambda a: a.lstsq(a @ a)[0], "matrix_power": lambda a: a.matrix_power(-2), "norm": lambda a: linalg.matrix_norm(a, 2),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", JITTED)
def test_in_a_jitted_function(name, rng):
  """Values and gradients as outside, between lazy operations, for other matrices than it was traced with, and within vmap."""
  f = JITTED[name]
  value, slope = (lambda a: f(a * 1.5).sin() + 1), mini.grad(lambda a: f(a * 1.5).sin().sum())
  fast, steep = mini.jit(value), mini.jit(slope)
  many = mini.jit(mini.vmap(value))
  for _ in range(3):
    a = Tensor(rng.standard_normal((2, 3, 3)) + 3 * np.eye(3))
    np.testing.assert_allclose(fast(a).numpy(), value(a).numpy(), rtol=1e-12)
    np.testing.assert_allclose(steep(a).numpy(), slope(a).numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(many(a).numpy(), value(a).numpy(), rtol=1e-12)


ERRORS = {
  "inv: x is 2 by 3, and not square": (ShapeError, lambda: linalg.inv(Tensor.ones(2, 3))),
  r"inv: singular matrix\n  x: f32\[2,2\]   made at": (LinAlgError, lambda: linalg.inv(Tensor.ones(2, 2))),
  r"inv: singular matrix, of those in x\[1, 0\]": (LinAlgError, lambda: linalg.inv(Tensor.stack([Tensor.eye(2), Tensor.zeros(2, 2)]).unsqueeze(1))),
  "cholesky: matrix is not positive definite": (LinAlgError, lambda: linalg.cholesky(Tensor.eye(2) * -1)),
  "det: a matrix has two axes, and x has 1": (ShapeError, lambda: linalg.det(Tensor.ones(2))),
  r"svd: x is int64, not float32, float64 or complex(.|\n)*x.float\(\) would fit": (DTypeError, lambda: linalg.svd(Tensor([[1]]))),
  "solve: A @ X = B has no X": (ShapeError, lambda: linalg.solve(Tensor.eye(3), Tensor.ones(2, 3))),
  "solve: a is float32 and b is float64": (DTypeError, lambda: linalg.solve(Tensor.eye(3), Tensor.ones(3, 3, dtype="float64"))),
  'mode is "reduced"': (ValueError, lambda: linalg.qr(Tensor.eye(3), "some")),
  'mode="complete" has no gradient': (MiniError, lambda: linalg.qr(Tensor.ones(3, 2, requires_grad=True), "complete")),
  "matrix_exp inside a jitted function": (MiniError, lambda: mini.jit(linalg.matrix_exp)(Tensor.eye(2))),
  r"inv: singular matrix\n  x: f32\[2,2\]": (LinAlgError, lambda: mini.jit(linalg.inv)(Tensor.zeros(2, 2)).numpy()),
  "inv: the host needs sizes, and x has one that varies": (ShapeError, lambda: mini.jit(lambda x, n: linalg.inv(x[:n, :n]))(Tensor.eye(4), mini.Variable("n", 1, 4).bind(2))),
  "matrix_norm: ord is": (ValueError, lambda: linalg.matrix_norm(Tensor.eye(2), 3)),
  "trace: x has 3 axes, not 2": (ShapeError, lambda: Tensor.ones(2, 2, 2).trace()),
}  # fmt: skip


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
  error, bad = ERRORS[message]
  with pytest.raises(error, match=message):
    bad()
