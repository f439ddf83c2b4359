"""Complex tensors: what they are and hold, edge values, gradients, jit, and that nothing below knows of them.

Values, types and gradients of every method are the rows of test/methods/complex.py.
"""

import copy
import functools
import inspect
import pickle
from itertools import product

import numpy as np
import pytest

import mini
from mini import Tensor, dtypes
from mini.tensor.aliases import ALIASES
from mini.tensor.analytic import FUNCTIONS
from mini.tensor.complex import EACH_PART, MADE_OF_THESE, ComplexTensor
from mini.types import BY_SHORT, DTypeError, MiniError, as_dtype
from runtime.base import DeviceError

NUMPY = {
  "asin": "arcsin",
  "acos": "arccos",
  "atan": "arctan",
  "asinh": "arcsinh",
  "acosh": "arccosh",
  "atanh": "arctanh",
}
TYPES = [np.complex64, np.complex128]


def numbers(rng, *shape, dtype=np.complex64):
  return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


# ---------------------------------------------------------------- what they are


def test_how_they_are_made():
  for made in (Tensor([1, 2j]), Tensor(np.array([1, 2j], np.complex64)), Tensor([1, 0], dtype="complex64") + [0, 2j - 0][0],
               Tensor(Tensor([1 + 0j])), Tensor([1.0]).to("complex64"), Tensor([1]).cast(complex)):  # fmt: skip
    assert type(made) is ComplexTensor and isinstance(made, Tensor) and made.dtype is dtypes.complex64
  assert (
    Tensor(np.array([1j])).dtype
    is dtypes.complex128
    is Tensor([1.0], dtype="float64").cfloat().cdouble().dtype
  )
  assert Tensor(2j).shape == () and Tensor(2j).item() == 2j and complex(Tensor([1 + 1j])) == 1 + 1j
  assert Tensor(np.array([[1, 2j]])[:, ::-1]).tolist() == [[2j, 1]]
  assert Tensor(np.zeros((0, 2), complex)).shape == (0, 2)
  assert as_dtype(np.complex128) is dtypes.cdouble and as_dtype("cfloat") is dtypes.complex64
  with pytest.raises(DTypeError, match=r"a complex number is no float32; its \.real would fit"):
    Tensor([1j], dtype="float32")


def test_repr_copies_and_other_libraries():
  z = Tensor([1 + 2j, -0.5j], requires_grad=True)
  assert repr(z) == "Tensor([ 1.+2.j , -0.-0.5j], dtype=complex64, requires_grad=True)"
  for other in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z)):
    assert other.equal(z) and other.requires_grad and other.dtype is z.dtype
  assert np.asarray(z).dtype == np.complex64 and np.from_dlpack(z.detach()).tolist() == z.tolist()
  assert Tensor.from_dlpack(np.array([1j])).tolist() == [1j]
  assert z.nbytes == 16 and bytes(memoryview(z.numpy())) == z.numpy().tobytes()
  assert "complex64" in z._repr_html_()


def test_promotion():
  torch = pytest.importorskip("torch")
  kinds = [
    d for d in dtypes.all if (d.kind != "u" or d.itemsize == 1) and d is not dtypes.float16
  ]  # its complex32
  kinds += [dtypes.complex64, dtypes.complex128]
  for a, b in product(kinds, kinds[-2:]):
    want = torch.promote_types(getattr(torch, a.name), getattr(torch, b.name))
    assert (
      dtypes.promote_types(a, b).name == str(want).removeprefix("torch.") == dtypes.promote_types(b, a).name
    )
    for s, t in (((2,), ()), ((), (2,)), ((), ())):
      mine = Tensor.ones(s, dtype=a) * Tensor.ones(t, dtype=b)
      theirs = torch.ones(s, dtype=getattr(torch, a.name)) * torch.ones(t, dtype=getattr(torch, b.name))
      assert mine.dtype.name == str(theirs.dtype).removeprefix("torch.")
  for a in kinds:
    want = (torch.ones(2, dtype=getattr(torch, a.name)) * 1j).dtype
    assert (Tensor.ones(2, dtype=a) * 1j).dtype.name == str(want).removeprefix("torch.")
  assert (Tensor([1.0], dtype="float64") * (0.1 + 0.3j)).item() == 0.1 + 0.3j  # not rounded on the way


def test_parts_are_views():
  re = Tensor([1.0, 2.0])
  z = Tensor.complex(re, re)
  z[0] = 5j
  part = z.real
  part += 1
  assert re.tolist() == [1, 2] and z.tolist() == [1 + 5j, 3 + 2j] and part.tolist() == [1, 3]
  w = z
  w += 1
  assert z is w and z.tolist() == [2 + 5j, 4 + 2j] and part.tolist() == [2, 4]
  z.assign(Tensor([7, 8])).replace(Tensor([1.0]))
  assert z.tolist() == [1] and z.dtype is dtypes.complex64


def test_nothing_below_knows_of_them():
  assert not {"c64", "c128"} & {*BY_SHORT} and not any(d.kind == "c" for d in dtypes.all)
  z = Tensor([1j])
  with pytest.raises(DTypeError, match="does not take complex64"):
    z.uop  # noqa: B018
  with pytest.raises(DTypeError, match="no tensor is made in complex64"):
    Tensor.arange(3, dtype="complex64")


def test_every_method_is_in_the_table_or_refuses():
  listed = {name.partition("=")[0] for name in EACH_PART.split()} | {*MADE_OF_THESE.split(), *ALIASES}
  assert all(hasattr(Tensor, name) for name in listed)
  z = Tensor([[1j, 2.0]])
  functions = [
    n for n in dir(Tensor) if n[0] != "_" and inspect.isfunction(inspect.getattr_static(Tensor, n))
  ]
  same = {
    n for n in functions if inspect.getattr_static(ComplexTensor, n) is inspect.getattr_static(Tensor, n)
  }
  assert {n for n in same if not n.endswith("_")} <= listed
  for name in (
    "sort",
    "argsort",
    "max",
    "min",
    "argmin",
    "relu",
    "gelu",
    "median",
    "topk",
    "cummax",
    "floor",
    "round",
    "unique",
  ):
    with pytest.raises(DTypeError, match=f"^{name} does not take complex64"):
      getattr(z, name)()


# ---------------------------------------------------------------- values


NAMES = [*FUNCTIONS, "abs", "angle", "square"]
NO_ANNEX_G = {"sigmoid", "exp2", "expm1"}  # NumPy has no function, or none with these values of C99's Annex G
NO_LONG_DOUBLE = {"sigmoid", "log1p", "expm1", "exp2"}  # NumPy has none, or none as exact


def edges():
  """All pairs of nine parts."""
  parts = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan])
  x = np.empty((9, 9), complex)
  x.real, x.imag = parts[:, None], parts
  return x.ravel()


@functools.cache
def functions(dtype, seed):
  """(numbers, {name: its values}), the edges first. Computed once, together: a compiler takes long for them."""
  rng, sizes = np.random.default_rng(seed), (1e-12, 1e-3, 1, 4, 60)
  x = np.concatenate([numbers(rng, 300, dtype=np.complex128) * [s] + 0 for s in sizes])
  x = np.concatenate([edges(), x, *(x.real * s + 1j * x.imag for s in (1e-6, 1e3))]).astype(dtype)
  found = {n: getattr(Tensor(x), n)() for n in NAMES}
  Tensor.realize(*found.values())
  return x, {n: t.numpy() for n, t in found.items()}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [n for n in NAMES if n not in NO_ANNEX_G])
def test_edge_values_are_those_of_numpy(name, request):
  """Where C99 leaves a sign open, or NumPy follows its own formula, they are not compared."""
  x = edges()
  with np.errstate(all="ignore"):
    want = getattr(np, NUMPY.get(name, name))(x)
  got = functions(np.complex128, request.config.option.seed)[1][name][: x.size]
  open_sign = {
    "sinh": np.isinf(x.real) & ~np.isfinite(x.imag),
    "sin": ~np.isfinite(x.real) & np.isinf(x.imag),
  }
  far = np.isinf(x.real) & np.isnan(x.imag)
  open_sign |= {"atan": np.isinf(x.imag) & np.isnan(x.real), "atanh": far, "acos": far}
  compared = ~open_sign.get(name, np.zeros(x.shape, bool))
  for g, w in ((got.real, want.real), (got.imag, want.imag)):
    np.testing.assert_allclose(g[compared], w[compared], rtol=1e-13)
    zero = compared & (w == 0) & np.isfinite(x)
    np.testing.assert_array_equal(np.signbit(g)[zero], np.signbit(w)[zero])


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.full
def test_functions_are_within_a_few_units_of_the_last_place(dtype, request):
  """Of the distance in the plane, against long double, where parts are of very different sizes, too."""
  x, found = functions(dtype, request.config.option.seed)
  drawn = slice(edges().size, None)
  with np.errstate(all="ignore"):
    for name in {*FUNCTIONS} - NO_LONG_DOUBLE:
      want = getattr(np, NUMPY.get(name, name))(x[drawn].astype(np.clongdouble))
      fits = np.isfinite(want.astype(dtype)) & (abs(want) > 1e4 * np.finfo(dtype).tiny)
      off = abs(found[name][drawn] - want)[fits] / abs(want)[fits] / np.finfo(dtype).eps
      assert off.max() < 4, name


def test_what_would_overflow_or_cancel():
  huge, tiny = 3e38, 1e-45
  assert Tensor([complex(2e38, 2e38)]).abs().item() == pytest.approx(abs(complex(2e38, 2e38)), rel=1e-6)
  assert (Tensor([complex(1e38, 1e38)]) / complex(1e38, 1e38)).item() == 1
  assert (Tensor([complex(tiny, tiny)]) / Tensor([complex(tiny, tiny)])).item() == 1
  assert (
    Tensor([complex(huge, huge)]).sqrt().isfinite().item() and Tensor([complex(tiny, 0)]).sqrt().item() != 0
  )
  assert Tensor([complex(huge, huge)]).log().real.item() == pytest.approx(np.log(huge * np.sqrt(2)), rel=1e-6)
  near = Tensor(np.array([1 + 1e-9j]))
  assert near.log().real.item() == pytest.approx(5e-19, rel=1e-9)
  assert Tensor(np.array([1e-12 + 1e-12j])).log1p().real.item() == pytest.approx(1e-12, rel=1e-9)
  assert Tensor([complex(89, np.pi / 4)]).exp().isfinite().item()
  assert Tensor([100 + 1j]).tanh().item().real == 1 and Tensor([-800 + 1j]).sigmoid().item() == 0


def test_powers():
  z = Tensor([0, 1 + 1j])
  np.testing.assert_allclose((z ** (2 - 1j)).numpy(), np.array([0, 1 + 1j]) ** (2 - 1j), rtol=1e-5)
  assert (z**0).tolist() == [1, 1] and (z ** Tensor([0, 0])).tolist() == [1, 1]
  assert (z**5).tolist() == [0, (1 + 1j) ** 5]


# ---------------------------------------------------------------- gradients


def test_the_convention_of_a_gradient():
  z = Tensor([3 + 4j], requires_grad=True)
  (z.abs() ** 2).sum().backward()  # it points where the loss grows: d/d(re) + i d/d(im)
  assert z.grad.tolist() == pytest.approx([6 + 8j], rel=1e-6)
  z.grad = None
  (z * z).backward(Tensor([1 + 0j]))
  assert z.grad.tolist() == [6 - 8j]
  assert z.is_leaf and z.requires_grad and not (z * 2).is_leaf
  assert Tensor([1.0, 2.0], requires_grad=True).cfloat().requires_grad


def test_a_real_leaf_gets_a_real_gradient():
  x = Tensor([2.0], requires_grad=True)
  y = x.cfloat() * (1 + 2j)
  y.retain_grad()
  y.abs().sum().backward()
  assert x.grad.dtype is dtypes.float32 and x.grad.item() == pytest.approx(5**0.5)
  assert y.grad.item() == pytest.approx((1 + 2j) / 5**0.5)
  (g,) = y.abs().sum().gradient(y)
  assert g.item() == pytest.approx((1 + 2j) / 5**0.5)


def test_gradients_where_there_is_no_slope():
  torch = pytest.importorskip("torch")
  for f in (lambda z: z.abs().sum(), lambda z: z.sgn().real.sum(), lambda z: (z**2).abs().sum(),
            lambda z: (z * 0 + z ** (2 + 0j)).real.sum(), lambda z: z.angle().sum()):  # fmt: skip
    mine, theirs = Tensor([0j, 1 + 1j], requires_grad=True), torch.tensor([0j, 1 + 1j], requires_grad=True)
    f(mine).backward()
    f(theirs).backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_functions_of_gradients(rng):
  z = numbers(rng, 3)
  _, g = mini.value_and_grad(lambda z: (z.exp() * z.conj()).real.sum())(Tensor(z))
  leaf = Tensor(z, requires_grad=True)
  (leaf.exp() * leaf.conj()).real.sum().backward()
  np.testing.assert_allclose(g.numpy(), leaf.grad.numpy(), rtol=1e-6)
  again = mini.grad(lambda z: mini.grad(lambda z: (z**3).real.sum())(z).real.sum())(Tensor(z))
  np.testing.assert_allclose(again.numpy(), np.conj(6 * z), rtol=1e-5)  # of Re conj(3 z^2)
  mapped = mini.vmap(lambda z: (z * z.conj()).sum())(Tensor(numbers(rng, 4, 3)))
  assert mapped.dtype is dtypes.complex64 and mapped.shape == (4,)
  point = mini.checkpoint(lambda z: z.exp(), leaf)
  np.testing.assert_allclose(
    point.abs().sum().gradient(leaf)[0].numpy(), leaf.exp().abs().sum().gradient(leaf)[0].numpy()
  )
  with pytest.raises(MiniError, match="a loss is real, y is complex"):
    leaf.sum().gradient(leaf)


# ---------------------------------------------------------------- jit, devices


def test_a_jitted_function_takes_and_returns_them(rng):
  state = Tensor([1j, 2.0])

  @mini.jit
  def step(z, factor):
    state.assign(state * factor)
    return {"sum": (z + state).sum(), "z": z.exp()}, z.abs()

  held = np.array([1j, 2.0])
  for factor in (2j, 0.5 + 0j, 1j):
    z = numbers(rng, 2)
    out, size = step(Tensor(z), factor)
    held = held * factor
    np.testing.assert_allclose(out["sum"].numpy(), (z + held).sum(), rtol=1e-5)
    np.testing.assert_allclose(out["z"].numpy(), np.exp(z), rtol=1e-5)
    np.testing.assert_allclose(size.numpy(), abs(z), rtol=1e-5)
  np.testing.assert_allclose(state.numpy(), held, rtol=1e-6)
  assert len(step.captured) == 1
  np.testing.assert_allclose(mini.jit(lambda z: z * 2)(numbers(rng, 2) * 0 + 1j).numpy(), [2j, 2j])
  with pytest.raises(MiniError, match="a traced tensor has no value yet"):
    mini.jit(lambda z: z.item())(Tensor([1j]))


def test_a_jitted_step_trains_one():
  z = Tensor([3 + 1j], requires_grad=True)

  @mini.jit
  def step():
    z.grad = None
    loss = (z - (1 - 2j)).abs().square().sum()
    loss.backward()
    with mini.no_grad():
      z.assign(z - 0.25 * z.grad)
    return loss

  losses = [step().item() for _ in range(20)]
  assert losses[-1] < 1e-6 < losses[0] and z.item() == pytest.approx(1 - 2j, abs=1e-3)


@pytest.mark.sample(3)
@pytest.mark.parametrize("device", ["CPU", "INTERP", "CL", "CUDA", "METAL"])
def test_on_every_device(device, rng):
  z = numbers(rng, 4, 4)
  with mini.Context(EMULATE=int(device in ("CUDA", "METAL"))):
    try:
      x = Tensor(z, device=device, requires_grad=True)
      got = ((x @ x).exp() / (x.abs() + 2j)).sum(0)
      slope = got.abs().sum().gradient(x)[0].numpy()
    except DeviceError as e:
      pytest.skip(str(e))
  assert got.device.startswith(device)
  np.testing.assert_allclose(got.numpy(), (np.exp(z @ z) / (abs(z) + 2j)).sum(0), rtol=1e-4)
  y = Tensor(z, device="INTERP", requires_grad=True)
  want = ((y @ y).exp() / (y.abs() + 2j)).sum(0).abs().sum().gradient(y)[0]
  np.testing.assert_allclose(slope, want.numpy(), rtol=1e-3, atol=1e-3 * abs(slope).max())


def test_random_numbers():
  """Of variance 1, half of it in each part."""
  Tensor.manual_seed(3)
  z, u = Tensor.randn(20000, dtype="complex64"), Tensor.rand(20000, dtype="complex128")
  w = Tensor.uniform(20000, low=-2.0, high=-1.0, dtype="complex64")
  Tensor.realize(*z._parts(), *u._parts(), *w._parts())
  z, u, w = z.numpy(), u.numpy(), w.numpy()
  assert z.dtype == w.dtype == np.complex64 and u.dtype == complex
  assert abs(z.real.var() - 0.5) < 0.03 > abs(z.imag.var() - 0.5) and abs((z.real * z.imag).mean()) < 0.02
  for part in (u.real, u.imag, w.real + 2, w.imag + 2):
    assert 0 <= part.min() < 0.01 and 0.99 < part.max() <= 1 and abs(part.mean() - 0.5) < 0.02
  assert Tensor([1j]).randn_like().dtype is dtypes.complex64
  linear = mini.nn.Linear(64, 8, dtype="complex64")
  assert linear.weight.dtype is linear.bias.dtype is dtypes.complex64 and linear.weight.requires_grad
  assert (
    max(abs(p.numpy()).max() for p in linear.weight._parts())
    <= 1 / 8
    < 2 * abs(linear.weight.imag.numpy()).max()
  )
  assert linear(Tensor.randn(3, 64, dtype="complex64")).shape == (3, 8)


# ---------------------------------------------------------------- modules, files, optimizers


class Turn(mini.nn.Module):
  def __init__(self, rng):
    self.weight = Tensor(numbers(rng, 3, 2), requires_grad=True)
    self.bias = Tensor(np.zeros(3, np.complex64), requires_grad=True)

  def forward(self, z):
    return z.linear(self.weight, self.bias)


def test_a_module_with_complex_parameters_is_trained_saved_and_loaded(rng, tmp_path):
  model, wanted = Turn(rng), numbers(rng, 3, 2)
  optimizer = mini.nn.optim.Adam(model.parameters(), lr=0.1)
  assert {name: p.dtype for name, p in model.named_parameters()} == dict.fromkeys(
    ("weight", "bias"), dtypes.complex64
  )
  z = numbers(rng, 16, 2)

  @mini.jit
  def step(z):
    optimizer.zero_grad()
    loss = (model(z) - z @ Tensor(wanted).T).abs().square().mean()
    loss.backward()
    optimizer.step()
    return loss

  losses = [step(Tensor(z)).item() for _ in range(150)]
  assert losses[-1] < 1e-3 * losses[0]
  np.testing.assert_allclose(model.weight.numpy(), wanted, atol=0.05)
  mini.nn.state.safe_save(mini.nn.state.get_state_dict(model), tmp_path / "a.safetensors")
  again = Turn(np.random.default_rng(9))
  mini.nn.state.load_state_dict(again, mini.nn.state.safe_load(tmp_path / "a.safetensors"))
  assert (
    again.weight.equal(model.weight) and again.weight.requires_grad and again.weight.dtype is dtypes.complex64
  )
  with pytest.raises(MiniError, match="complex128, which the format does not have"):
    mini.nn.state.safe_save({"a": Tensor(np.zeros(2, complex))}, tmp_path / "b.safetensors")


def test_a_module_becomes_complex(rng):
  """Shared tensors stay shared, also those in lists; what is no float stays as it is."""
  model = mini.nn.Sequential(mini.nn.Linear(2, 3), mini.nn.BatchNorm1d(3))
  model[1].others = [model[0].weight, {"x": Tensor.ones(2)}]
  z, weight = numbers(rng, 4, 2), model[0].weight.numpy()
  assert model.to(dtypes.complex64)[0].weight is model[1].others[0]
  kinds = {name: t.dtype.name for name, t in model.state_dict().items()}
  assert kinds.pop("1.num_batches_tracked") == "int64" and set(kinds.values()) == {"complex64"}
  assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
  optimizer = mini.nn.optim.SGD(model.parameters(), lr=0.5)
  (model[0](Tensor(z)) * 1j).sum().real.backward()
  optimizer.step()
  got, want = model.to(dtypes.complex128)[0].weight, weight - 0.5 * np.conj(1j * z.sum(0))
  assert got.dtype is dtypes.complex128
  np.testing.assert_allclose(got.numpy(), np.broadcast_to(want, got.shape), rtol=1e-5)


def test_a_cast_to_real_numbers_is_a_copy():
  z = Tensor([1 + 2j, 3 + 0j])
  with pytest.warns(UserWarning, match="imaginary"):
    copies = [z.float(), z.to(dtypes.float32), z.type(dtypes.float32)]
  for c in copies:
    c.zero_()
  assert z.tolist() == [1 + 2j, 3 + 0j]
  z[0] = 5j
  assert [c.tolist() for c in copies] == [[0, 0]] * 3
  z.real.zero_()  # which is a view
  assert z.tolist() == [5j, 0]
