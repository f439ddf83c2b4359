"""einsum and the products beside matmul: values, types and gradients as PyTorch's; errors."""

import numpy as np
import pytest

import mini
from mini import ShapeError, Tensor
from mini.ir.kernel import contractions
from mini.ir.uop import toposort
from mini.schedule import schedule

torch = pytest.importorskip("torch")

rng = np.random.default_rng(4)

FORMULAS = [
  ("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)), ("ij,kj->ki", (3, 4), (5, 4)),
  ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
  ("i,j->ji", (3,), (4,)), ("i,i", (3,), (3,)), ("ij->", (3, 4)), ("ij->ji", (3, 4)), ("ba", (3, 4)), ("ii", (3, 3)),
  ("ii->i", (3, 3)),
  ("iji->j", (3, 2, 3)), ("iii->i", (2, 2, 2)), ("...ii->...i", (2, 3, 3)), ("ijij->ij", (2, 3, 2, 3)),
  ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
  ("...", (2, 3)), ("i...->...i", (2, 3, 4)), ("b...d,b...d->b...", (2, 3, 4), (2, 3, 4)),
  ("...a,...b->...", (2, 3), (2, 4)), ("...i->...", (3, 4)),
  ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("a,b,c->abc", (2,), (3,), (4,)),
  ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("ij,ij->", (3, 4), (3, 4)),
  ("bn,anm,bm->ba", (2, 3), (4, 3, 5), (2, 5)), ("ij,i,j->", (3, 4), (3,), (4,)),
  (" i j , j k -> i k ", (3, 4), (4, 5)), ("ij,jk->ik", (3, 1), (4, 5)),
  ("ij,ij->ij", (3, 1), (3, 4)), ("aB,Bc->ca", (2, 3), (3, 4)), ("ij,jk->ik", (0, 4), (4, 5)),
  ("ij,jk->ik", (3, 0), (0, 5)), ("ii->i", (0, 0)),
  (",->", (), ()), (",ij->ij", (), (2, 3)), ("ij,kl->", (2, 3), (4, 5)),
  ("ijk,jil,kl->ki", (2, 3, 4), (3, 2, 5), (4, 5)), ("ii,ij->j", (3, 3), (3, 2)),
]  # fmt: skip


def equal(ours, theirs, rtol=1e-12):
  ours[0].realize(*ours[1:])
  for a, b in zip(ours, theirs):
    assert a.shape == tuple(b.shape) and a.dtype.name == str(b.dtype).removeprefix("torch.")
    np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=rtol, atol=1e-12)


def with_gradients(lib, f, arrays):
  """f's value, and the gradients of a sum in which every element counts differently."""
  xs = [Tensor(a) if lib is mini else torch.tensor(a) for a in arrays]
  for x in xs:
    x.requires_grad_()
  out = f(*xs)
  if any(0 in x.shape for x in xs):  # a sum of nothing depends on nothing
    return [out]
  weight = np.cos(np.arange(out.numel())).reshape(tuple(out.shape))
  (out * (Tensor(weight) if lib is mini else torch.tensor(weight))).sum().backward()
  return [out, *(x.grad for x in xs)]


def check(ours, theirs, shapes):
  arrays = [rng.normal(size=s) for s in shapes]
  equal(with_gradients(mini, ours, arrays), with_gradients(torch, theirs, arrays))


@pytest.mark.parametrize(("formula", "shapes"), [(f, s) for f, *s in FORMULAS])
def test_einsum(formula, shapes):
  check(lambda *xs: mini.einsum(formula, *xs), lambda *xs: torch.einsum(formula, *xs), shapes)


# fmt: off
PRODUCTS = {
  "lists": (lambda lib, a, b: lib.einsum(a, [0, 1], b, [1, 30], [30, 0]), (2, 3), (3, 4)),
  "lists, dots": (lambda lib, a, b: lib.einsum(a, [..., 0, 1], b, [..., 1, 2]), (5, 2, 3), (3, 4)),
  "tensordot": (lambda lib, a, b: lib.tensordot(a, b), (2, 3, 4), (3, 4, 5)),
  "tensordot 0": (lambda lib, a, b: lib.tensordot(a, b, 0), (2, 3), (4,)),
  "tensordot lists": (lambda lib, a, b: lib.tensordot(a, b, ([0, -1], [1, 0])), (2, 3, 4), (4, 2, 5)),
  "kron": (lambda lib, a, b: lib.kron(a, b), (2, 3), (4, 5)),
  "kron of others": (lambda lib, a, b: lib.kron(a, b), (2, 3, 2), (4,)),
  "cross": (lambda lib, a, b: lib.cross(a, b, dim=-1), (2, 3), (2, 3)),
  "cross dim": (lambda lib, a, b: lib.cross(a, b, dim=0), (3, 2), (3, 1)),
  "inner": (lambda lib, a, b: lib.inner(a, b), (2, 3), (4, 5, 3)),
  "inner of vectors": (lambda lib, a, b: lib.inner(a, b), (3,), (3,)),
  "inner with 0-d": (lambda lib, a, b: lib.inner(a, b), (), (3,)),
  "outer": (lambda lib, a, b: lib.outer(a, b), (3,), (4,)),
  "vdot": (lambda lib, a, b: lib.vdot(a, b), (3,), (3,)),
  "addmm": (lambda lib, x, a, b: lib.addmm(x, a, b, beta=0.5, alpha=2), (3,), (2, 4), (4, 3)),
  "addmv": (lambda lib, x, a, b: lib.addmv(x, a, b, beta=2), (2,), (2, 4), (4,)),
  "addr": (lambda lib, x, a, b: lib.addr(x, a, b, alpha=3), (2, 4), (2,), (4,)),
  "baddbmm": (lambda lib, x, a, b: lib.baddbmm(x, a, b), (1, 3), (5, 2, 4), (5, 4, 3)),
  "addbmm": (lambda lib, x, a, b: lib.addbmm(x, a, b), (2, 3), (5, 2, 4), (5, 4, 3)),
}
# fmt: on


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
  f, *shapes = PRODUCTS[name]
  check(lambda *xs: f(Tensor, *xs), lambda *xs: f(torch, *xs), shapes)


def test_others():
  check(
    lambda x, y, w, b: x.bilinear(y, w, b), torch.nn.functional.bilinear, [(5, 2), (5, 3), (4, 2, 3), (4,)]
  )
  for shapes in (
    [(9, 2), (2, 8), (8, 1), (1, 7)],
    [(2,), (2, 8), (8, 3)],
    [(2, 3), (3, 8), (8,)],
    [(3,), (3,)],
  ):
    check(lambda *xs: Tensor.multi_dot(xs), lambda *xs: torch.linalg.multi_dot(xs), shapes)
  check(Tensor.chain_matmul, torch.chain_matmul, [(2, 3), (3, 4), (4, 5)])
  nan = Tensor([[float("nan")]])
  assert nan.addmm(Tensor([[2.0]]), Tensor([[3.0]]), beta=0).item() == 6


def test_types():
  for kinds in (("float16",), ("bfloat16",), ("int32",), ("uint8",), ("float32",)):
    arrays = [rng.integers(0, 5, s) for s in ((3, 300), (300, 2))]
    (kind,) = kinds
    a, b = (Tensor(x).cast(kind) for x in arrays)
    ta, tb = (torch.tensor(x).to(getattr(torch, kind)) for x in arrays)
    out = mini.einsum("ij,jk->ik", a, b)
    assert out.dtype.name == kind
    np.testing.assert_array_equal(out.numpy(), torch.einsum("ij,jk->ik", ta, tb).float().numpy())
  assert mini.einsum("i,i->i", Tensor([1]), Tensor([1.5])).tolist() == [1.5]


def test_one_contraction():
  """A formula of two operands is one product, as that of matmul."""
  for formula, shapes in (("ij,jk->ik", ((8, 9), (9, 7))), ("bihd,bjhd->bhij", ((2, 8, 3, 5), (2, 7, 3, 5)))):
    kernels, _ = schedule({"out": mini.einsum(formula, *(Tensor.ones(*s).contiguous() for s in shapes)).uop})
    assert sum(bool(contractions(k)) for k in kernels) == 1, formula
  a, b = Tensor(np.ones((64, 65))), Tensor(np.ones((65, 66)))
  assert len(toposort(mini.einsum("ij,jk->ik", a, b).uop)) <= len(toposort((a @ b).uop)) + 1


ERRORS = {
  "names the axes of 1 operands, and there are 2": ("ij", (2, 3), (3, 4)),
  '"ijk" names 3 axes of an operand that has 2': ("ijk->i", (2, 3)),
  '"i" names 1 axes of an operand that has 2': ("i->i", (2, 3)),
  "axis j has size 3 and size 4": ("ij,jk->ik", (2, 3), (4, 5)),
  "the result has an axis x, which no operand has": ("ij->ix", (2, 3)),
  "an axis of the result has a name twice": ("ij->ii", (2, 3)),
  "'%' is no axis; an axis is named by a letter": ("i%->i", (2, 3)),
  "an axis of the ellipsis has size 2 and size 3": ("...i,...i->...", (2, 4), (3, 4)),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
  formula, *shapes = ERRORS[message]
  with pytest.raises(ShapeError, match=message):
    mini.einsum(formula, *(Tensor.ones(*s) for s in shapes))


def test_errors_of_products():
  one, two, three = Tensor.ones(3), Tensor.ones(2, 3), Tensor.ones(2, 3, 4)
  for message, bad in {
    "outer: b has 2 axes, not 1": lambda: one.outer(two),
    "tensordot: a and b do not both have 3 axes": lambda: two.tensordot(three, 3),
    r"tensordot: the axes \[1\] of a and \[0\] of b": lambda: two.tensordot(three, ([1], [0])),
    "cross: axis 0 does not have size 3": lambda: two.cross(two, 0),
    "cross: no axis has size 3": lambda: Tensor.ones(2).cross(Tensor.ones(2)),
    "multi_dot: matrices beside each other": lambda: Tensor.multi_dot([two, two]),
    "multi_dot: 1 matrices": lambda: Tensor.multi_dot([two]),
    "addmm: x does not repeat": lambda: three.addmm(two, two.T),
  }.items():
    with pytest.raises(ShapeError, match=message):
      bad()
