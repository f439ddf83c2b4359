"""Rewrite rules on whole operations: matrix products and named operations become calls of a library."""

from __future__ import annotations

import numpy as np
import pytest

import mini
from mini import Context, Tensor, dtypes
from mini.ir.replace import product_of
from mini.ir.rewrite import RewriteError
from mini.types import MiniError, ShapeError

made = []


@mini.wrap_as_operation(shape=lambda x, y: (*x[:-1], y[-1]))
def numpys(x, y):
  made.append((x.shape, y.shape))
  return x @ y


to_numpy = mini.rule("to_numpy", "matmul(x, y)", numpys, why="a library")


@pytest.fixture(params=["CPU", "INTERP"])
def device(request):
  with Context(DEV=request.param):
    yield request.param


@pytest.fixture
def operands(rng):
  made.clear()
  shapes = {"a": (3, 4), "b": (4, 5), "x": (2, 3, 4), "z": (2, 4, 5), "v": (4,)}
  return {n: Tensor(rng.standard_normal(s).astype(np.float32)).realize() for n, s in shapes.items()}


# What is spelled as a product, and the shapes that the library gets.
# fmt: off
PRODUCTS = {
  "matmul":     (lambda a, b, x, z, v: (a @ b).relu() + 1,                     [((3, 4), (4, 5))]),
  "transposed": (lambda a, b, x, z, v: b.T @ a.T,                              [((5, 4), (4, 3))]),
  "rows":       (lambda a, b, x, z, v: x @ b,                                  [((6, 4), (4, 5))]),
  "batch":      (lambda a, b, x, z, v: x @ z,                                  [((2, 3, 4), (2, 4, 5))]),
  "vector":     (lambda a, b, x, z, v: a @ v,                                  [((3, 4), (4, 1))]),
  "einsum":     (lambda a, b, x, z, v: mini.einsum("bik,kj->jib", x, b),       [((6, 4), (4, 5))]),
  "two inner":  (lambda a, b, x, z, v: mini.einsum("bik,bkj->ij", x, z),       [((3, 8), (8, 5))]),
  "of two":     (lambda a, b, x, z, v: (a @ b) @ (b.T @ a.T),                  [((3, 4), (4, 5)), ((5, 4), (4, 3)), ((3, 5), (5, 3))]),
  "gradient":   (lambda a, b, x, z, v: mini.grad(lambda a: ((a @ b) ** 2).sum())(a), [((3, 4), (4, 5)), ((3, 5), (5, 4))]),
  "no product": (lambda a, b, x, z, v: (a.reshape(3, 4, 1) * b).sum(0) + (a * v).sum() + (a * 2).sum(0).max(),   []),
}
# fmt: on


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_goes_to_the_library_however_it_is_spelled(name, operands, device):
  f, shapes = PRODUCTS[name]
  with mini.rewrite(to_numpy):
    got = f(**operands).numpy()
  if name == "two inner":  # which axes are joined is free, and so is their order
    assert [sorted(map(np.prod, m)) for m in made] == [sorted(map(np.prod, m)) for m in shapes]
  else:
    assert sorted(made) == sorted(shapes)
  made.clear()
  assert np.allclose(got, f(**operands).numpy(), rtol=1e-5, atol=1e-6) and not made


def test_behind_the_block_all_is_as_it_was(operands, device):
  a, b = operands["a"], operands["b"]
  before = (a @ b).numpy()
  with mini.rewrite(to_numpy):
    (a @ b).numpy()
    with mini.rewrite(
      mini.rule("zero", "matmul(x, y)", lambda x, y: Tensor.zeros(*x.shape[:-1], y.shape[-1]))
    ):
      assert not (a @ b).numpy().any()  # the innermost first
    (a @ b).numpy()
  assert len(made) == 2
  with pytest.raises(ZeroDivisionError), mini.rewrite(to_numpy):
    1 / 0  # noqa: B018
  assert np.array_equal((a @ b).numpy(), before) and len(made) == 2


def test_what_is_computed_already_stays(operands, device):
  y = operands["a"] @ operands["b"]
  want = y.numpy()
  with mini.rewrite(to_numpy):
    assert np.array_equal((y + 1).numpy(), want + 1) and not made


def test_a_condition_decides(operands):
  small = mini.rule("small", "matmul(x, y)", numpys, when=lambda m: m["x"].shape[0] < 4 and m["y"].ndim == 2)
  with mini.rewrite(small):
    operands["a"] @ operands["b"]
    (operands["a"] @ operands["b"]).numpy()
    (operands["b"].T @ operands["a"].T).numpy()
    (operands["x"] @ operands["z"]).numpy()
  assert made == [((3, 4), (4, 5))]


def test_routines_are_traced_for_the_rules_that_hold(operands, device):
  step = mini.jit(lambda a: (a @ operands["b"]).sum())
  a = operands["a"]
  want = step(a).item()
  assert [np.isclose(step(a).item(), want) for _ in range(2)] == [True] * 2 and not made
  with mini.rewrite(to_numpy):
    assert [np.isclose(step(a).item(), want, rtol=1e-5) for _ in range(3)] == [True] * 3
  assert len(made) == 3
  assert step(a).item() == want and len(made) == 3


def test_a_named_operation_is_replaced_in_graphs_that_are_there(device):
  @mini.op
  def twice(x):
    return x * 2

  x = Tensor([1.0, 2.0])
  y = twice(twice(x) + 1)
  with mini.rewrite(
    mini.rule("thrice", "twice(x)", lambda x: x * 3, when=lambda m: m["x"].dtype is dtypes.float32)
  ):
    assert (y + 0.5).tolist() == [12.5, 21.5]
    assert twice(Tensor([1.0], dtype="float64")).tolist() == [2.0]
  assert (y + 0.25).tolist() == [6.25, 10.25]


def test_rules_on_scalars_hold_beside_it(operands):
  with mini.rewrite(to_numpy, mini.rule("no_sine", "sin(x)", "x")):
    got = (operands["a"] @ operands["b"]).sin().numpy()
  assert len(made) == 1 and np.allclose(got, operands["a"].numpy() @ operands["b"].numpy(), rtol=1e-5)


def test_the_factors_of_any_product_are_found(rng):
  """Random contractions: the product of the factors, put back, is the contraction."""
  for _ in range(20):
    sizes = dict(zip("abcde", rng.integers(1, 4, 5).tolist()))
    left, right, out = (rng.permutation([n for n in "abcde" if rng.random() < p]) for p in (0.7, 0.7, 0.5))
    out = [n for n in out if n in left or n in right]
    x, y = (Tensor(rng.standard_normal([sizes[n] for n in names])) for names in (left, right))
    spec = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    with Context(DEV="INTERP"), mini.rewrite(to_numpy):
      assert np.allclose(mini.einsum(spec, x, y).numpy(), np.einsum(spec, x.numpy(), y.numpy())), spec


def test_rules_that_cannot_be_are_errors(operands):
  for left in ("matmul", "matmul(x)", "matmul(x, x)", "matmul(x, y, z)", "f(1)", "x + y"):
    with pytest.raises(RewriteError):
      mini.rule("bad", left, numpys)
  mini.op(lambda x: x * 2, name="twice_or_so")
  for left, said in [
    ("matmull(x, y)", r"no 'matmull'; did you mean matmul\?\n  there are matmul,"),
    ("twice_or_sow(x)", r"no 'twice_or_sow'; did you mean twice_or_so\?"),
    ("sin(x)", "made before; there is no 'sin'"),
  ]:
    with pytest.raises(RewriteError, match=said):
      mini.rule("bad", left, numpys)
  mini.rule("good", "twice_or_so(x)", lambda x: x)
  for right, error, said in [
    (lambda x, y: x, ShapeError, r"rule bad: f32\[3, 4\] takes the place of f32\[3, 5\]"),
    (lambda x, y: 3, MiniError, "returned int, not a tensor"),
  ]:
    with pytest.raises(error, match=said), mini.rewrite(mini.rule("bad", "matmul(x, y)", right)):
      (operands["a"] @ operands["b"]).numpy()
  assert product_of((operands["a"] + 1).uop) is None
