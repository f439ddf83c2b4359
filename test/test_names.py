"""What a PyTorch user takes for granted beside operations: sizes, devices and types that know what they are, generators,
gradients by function, buffers that no checkpoint has."""

import ast
import importlib
import inspect
import os
import runpy

import numpy as np
import pytest

import mini
from mini import Tensor, dtypes, jit, nn
from mini.nn.module import layers_of
from mini.types import MiniError, ShapeError


def test_a_shape_knows_how_many_elements_there_are():
  x = Tensor.zeros(2, 3)
  assert (x.shape.numel(), x.size().numel(), Tensor(1).shape.numel(), Tensor.zeros(0, 2).shape.numel()) == (
    6,
    6,
    1,
    0,
  )
  assert x.shape == (2, 3) and isinstance(x.shape, tuple) and isinstance(x.shape, mini.Size)
  assert x.shape[1:] == (3,) and hash(x.shape) == hash((2, 3)) and repr(x.shape) == "(2, 3)"
  assert Tensor([1j]).shape.numel() == 1
  assert jit(lambda x: x.reshape(x.shape.numel()))(x).shape == (6,)


def test_a_device_has_a_type_and_an_index():
  x = Tensor([1.0], device="cpu:1")
  assert (x.device, x.device.type, x.device.index) == ("CPU:1", "cpu", 1)
  assert (Tensor([1.0], device="CPU").device.type, mini.device("cpu").index) == ("cpu", None)
  assert (mini.device("cuda").index, mini.device("cuda:0"), mini.device("CUDA", 2)) == (0, "CUDA", "CUDA:2")
  assert Tensor([1.0], device=mini.device("cpu", 1)).device == x.device == mini.device("cpu:1")
  with pytest.raises(mini.tensor.data.DeviceError, match="did you mean CUDA"):
    mini.device("cudo")


def test_a_type_says_what_it_is():
  said = [
    (d.is_floating_point, d.is_complex, d.is_signed) for d in (dtypes.bfloat16, dtypes.complex64, dtypes.int8)
  ]
  assert said == [(True, False, True), (False, True, True), (False, False, True)]
  assert [d.is_signed for d in (dtypes.uint8, dtypes.bool)] == [False, False]


def test_the_default_type():
  assert mini.get_default_dtype() is dtypes.float32
  f = jit(lambda x: x + Tensor.ones(1).sum())
  assert f(Tensor([1])).dtype is dtypes.float32
  mini.set_default_dtype("float64")
  try:
    made = (
      Tensor([1.5]),
      Tensor.zeros(2),
      Tensor.rand(2),
      Tensor.arange(0.5),
      Tensor([1]) / 2,
      Tensor(2).sqrt(),
    )
    assert {t.dtype for t in made} == {dtypes.float64}
    assert Tensor([1j]).dtype is dtypes.complex128 and nn.Linear(2, 3).weight.dtype is dtypes.float64
    assert f(Tensor([1])).dtype is dtypes.float64
  finally:
    mini.set_default_dtype(dtypes.float32)
  assert Tensor([1.5]).dtype is dtypes.float32
  with pytest.raises(mini.DTypeError, match="a float type, not int32"):
    mini.set_default_dtype(dtypes.int32)


DRAWS = {
  "rand": lambda g: Tensor.rand(3, generator=g), "randn": lambda g: Tensor.randn(3, generator=g),
  "randint": lambda g: Tensor.randint(0, 1000, (3,), generator=g), "randperm": lambda g: Tensor.randperm(9, generator=g),
  "normal": lambda g: Tensor.normal(3, mean=1.0, generator=g), "uniform": lambda g: Tensor.uniform(3, generator=g),
  "rand_like": lambda g: Tensor.zeros(3).rand_like(generator=g), "gamma": lambda g: Tensor.gamma(3, generator=g),
  "bernoulli": lambda g: Tensor.full((50,), 0.5).bernoulli(generator=g),
  "multinomial": lambda g: Tensor.ones(50).multinomial(20, generator=g),
  "uniform_": lambda g: Tensor.zeros(3).uniform_(generator=g), "normal_": lambda g: Tensor.zeros(3).normal_(generator=g),
  "exponential_": lambda g: Tensor.zeros(3).exponential_(generator=g),
  "kaiming_uniform": lambda g: Tensor.kaiming_uniform(2, 3, generator=g),
}  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_of_ones_own(name):
  """Its numbers follow from its seed, and the common generator does not move."""
  Tensor.manual_seed(1)
  draw, g = DRAWS[name], mini.Generator("cpu").manual_seed(4)
  first, second = draw(g).tolist(), draw(g).tolist()
  assert Tensor.generator.get_state() == (1, 0) and first != second
  assert [draw(g.manual_seed(4)).tolist(), draw(g).tolist()] == [first, second]
  state = g.get_state()
  third = draw(g).tolist()
  g.set_state(state)
  assert draw(g).tolist() == third and g.initial_seed() == 4
  assert draw(None).tolist() != third


def test_a_generator_in_a_jitted_function():
  g = mini.Generator().manual_seed(7)
  eager = [Tensor.rand(2, generator=g).tolist() for _ in range(4)]
  g.manual_seed(7)
  step = jit(lambda x: x + Tensor.rand(2, generator=g))
  assert [step(Tensor.zeros(2)).tolist() for _ in range(4)] == eager
  assert mini.Generator().seed() != mini.Generator().seed()


def test_autograd_grad():
  x, w, unused = (Tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0], [5.0]))
  gx, gw = mini.autograd.grad((x * w).sum(), [x, w])
  assert (gx.tolist(), gw.tolist(), gx.requires_grad, x.grad) == ([3, 4], [1, 2], False, None)
  (g,) = mini.autograd.grad((x**3).sum(), x, create_graph=True)
  assert mini.autograd.grad(g.sum(), x)[0].tolist() == [6.0, 12.0]
  assert mini.autograd.grad([x * 2, w * x], x, [Tensor([1.0, 1.0]), Tensor([1.0, 0.0])])[0].tolist() == [
    5.0,
    2.0,
  ]
  with pytest.raises(MiniError, match="no output depends on x"):
    mini.autograd.grad(x.sum(), unused)
  assert mini.autograd.grad(x.sum(), [x, unused], allow_unused=True)[1] is None
  assert mini.autograd.grad(x.sum(), unused, materialize_grads=True)[0].tolist() == [0.0]
  with pytest.raises(ShapeError, match="y has 2 elements"):
    mini.autograd.grad(x * 2, x)
  with pytest.raises(MiniError, match="y does not require a gradient"):
    mini.autograd.grad(Tensor(1.0), x)
  with pytest.raises(MiniError, match="x does not require a gradient"):
    mini.autograd.grad(x.sum(), Tensor([1.0]))
  y = x * x
  assert mini.autograd.grad(y.sum(), y)[0].tolist() == [1.0, 1.0]
  z = Tensor([1 + 2j], requires_grad=True)
  assert mini.autograd.grad((z * z.conj()).real.sum(), z)[0].tolist() == [2 + 4j]


def test_autograd_backward_and_functional():
  x, y = (Tensor([v], requires_grad=True) for v in (2.0, 3.0))
  mini.autograd.backward([x * y, x * x], [Tensor([1.0]), Tensor([10.0])])
  assert (x.grad.tolist(), y.grad.tolist()) == ([43.0], [2.0])
  f = mini.autograd.functional
  a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
  assert [t.tolist() for t in f.jacobian(lambda a, b: a * b, (a, b))] == [[[3, 0], [0, 4]], [[1, 0], [0, 2]]]
  assert f.hessian(lambda a: (a**3).sum(), a).tolist() == [[6.0, 0.0], [0.0, 12.0]]
  assert f.vjp(lambda a: a * a, a, b)[1].tolist() == [6.0, 16.0]
  assert f.jvp(lambda a: a * a, a, b)[1].tolist() == [6.0, 16.0]


def test_a_buffer_that_is_not_persistent():
  class Inner(nn.Module):
    def __init__(self):
      self.w = nn.Parameter(Tensor.ones(2))
      self.register_buffer("mask", Tensor.ones(2), persistent=False)
      self.register_buffer("mean", Tensor.zeros(2))

  model = nn.Sequential(Inner(), Inner())
  assert [*model.state_dict()] == ["0.w", "0.mean", "1.w", "1.mean"]
  assert [n for n, _ in model.named_buffers()] == ["0.mask", "0.mean", "1.mask", "1.mean"]
  assert model.to(dtypes.float64)[1].mask.dtype is dtypes.float64
  model.load_state_dict(model.state_dict())
  model[0].register_buffer("mask", Tensor.ones(2))
  assert "0.mask" in model.state_dict()


# ---------------------------------------------------------------- weights that are computed, and L-BFGS


def both_linear(torch):
  """A layer of ours and one of PyTorch's with the same values."""
  theirs = torch.nn.Linear(4, 3)
  ours = nn.Linear(4, 3)
  ours.load_state_dict({n: t.detach().numpy() for n, t in theirs.state_dict().items()})
  return ours, theirs


def test_weight_norm_is_pytorchs():
  torch = pytest.importorskip("torch")
  x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
  for wrap in (lambda u: u.weight_norm, lambda u: u.parametrizations.weight_norm):
    ours, theirs = both_linear(torch)
    wrap(nn.utils)(ours), wrap(torch.nn.utils)(theirs)
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    (ours(Tensor(x)) ** 2).sum().backward()
    (theirs(torch.from_numpy(x)) ** 2).sum().backward()
    grads = {n: p.grad.numpy() for n, p in theirs.named_parameters()}
    for n, p in ours.named_parameters():
      np.testing.assert_allclose(p.grad.numpy(), grads[n], rtol=1e-4, atol=1e-5)
  weight = ours.weight.tolist()
  nn.utils.parametrize.remove_parametrizations(ours, "weight")
  assert (
    ours.weight.tolist() == weight
    and sorted(ours.state_dict()) == ["bias", "weight"]
    and type(ours) is nn.Linear
  )
  nn.utils.remove_weight_norm(nn.utils.weight_norm(ours))
  np.testing.assert_allclose(ours.weight.numpy(), weight, rtol=1e-6)


@pytest.mark.parametrize("wrap", [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm])
def test_spectral_norm(wrap):
  """In training the largest singular value comes to 1; in eval() the vectors stay. Trained under jit."""
  Tensor.manual_seed(0)
  layer = wrap(nn.Conv2d(2, 3, 2))
  optimizer = nn.optim.SGD(layer.parameters(), lr=0.01)

  @jit
  def step(x):
    optimizer.zero_grad()
    loss = layer(x).square().sum()
    loss.backward()
    optimizer.step()
    return loss

  losses = [step(Tensor.ones(1, 2, 3, 3)).item() for _ in range(30)]
  assert losses[-1] < losses[0]
  largest = mini.linalg.svdvals(layer.weight.detach().flatten(1))[0].item()
  assert largest == pytest.approx(1, rel=1e-3)
  state = [t.tolist() for t in layer.eval().state_dict().values()]
  layer(Tensor.ones(1, 2, 3, 3)).realize()
  assert [t.tolist() for t in layer.state_dict().values()] == state


def test_parametrizations_one_after_another():
  class Symmetric(nn.Module):
    def forward(self, x):
      return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
      return x.triu()

  class Doubled(nn.Module):
    def forward(self, x):
      return x * 2

  p = nn.utils.parametrize
  layer = nn.Linear(2, 2, bias=False)
  p.register_parametrization(layer, "weight", Symmetric())
  layer.weight = Tensor([[1.0, 2.0], [2.0, 3.0]])
  assert layer.parametrizations.weight.original.tolist() == [[1.0, 2.0], [0.0, 3.0]]
  p.register_parametrization(layer, "weight", Doubled())
  assert layer.weight.tolist() == [[2.0, 4.0], [4.0, 6.0]] and p.is_parametrized(layer, "weight")
  with pytest.raises(MiniError, match="Doubled has no right_inverse"):
    layer.weight = Tensor.ones(2, 2)
  assert [n for n, _ in layer.named_parameters()] == ["parametrizations.weight.original"]
  p.remove_parametrizations(layer, "weight", leave_parametrized=False)
  assert layer.weight.tolist() == [[1.0, 2.0], [0.0, 3.0]] and not p.is_parametrized(layer)
  with pytest.raises(MiniError, match="has no tensor 'nothing'"):
    p.register_parametrization(layer, "nothing", Doubled())


@pytest.mark.parametrize(
  "options", [{}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.25, "history_size": 2, "max_iter": 7}]
)
def test_lbfgs_goes_as_pytorchs(options):
  """On Rosenbrock's function, in float64: the same values at the same number of evaluations."""
  torch = pytest.importorskip("torch")
  start = np.array([[-1.2, 1.0], [0.5, 2.0]])
  w, v = Tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
  pairs = (w, nn.optim.LBFGS([w], **options)), (v, torch.optim.LBFGS([v], **options))
  traces = []
  for x, optimizer in pairs:
    seen = []

    def closure(x=x, optimizer=optimizer, seen=seen):
      optimizer.zero_grad()
      loss = ((1 - x[:, 0]) ** 2 + 5 * (x[:, 1] - x[:, 0] ** 2) ** 2).sum()
      loss.backward()
      seen.append(loss.item())
      return loss

    for _ in range(3):
      optimizer.step(closure)
    traces.append(seen)
  np.testing.assert_allclose(traces[0], traces[1], rtol=1e-6, atol=1e-12)
  np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), rtol=1e-6)


def test_lbfgs_state():
  def problem():
    w = Tensor([4.0, -3.0], requires_grad=True)
    optimizer = nn.optim.LBFGS([w], max_iter=2)

    def closure():
      optimizer.zero_grad()
      loss = (w**4).sum()
      loss.backward()
      return loss

    return w, optimizer, closure

  w, optimizer, closure = problem()
  optimizer.step(closure)
  v, other, again = problem()
  v.data = w
  other.load_state_dict(optimizer.state_dict())
  optimizer.step(closure), other.step(again)
  assert w.tolist() == v.tolist()
  with pytest.raises(MiniError, match="give a closure"):
    optimizer.step()
  with pytest.raises(MiniError, match="strong_wolfe"):
    nn.optim.LBFGS([w], line_search_fn="exact")


def test_what_pytorch_does_in_place_is_in_place_here():
  torch = pytest.importorskip("torch")
  theirs = [
    n for n in dir(torch.Tensor) if n.endswith("_") and not n.startswith("_") and hasattr(Tensor, n[:-1])
  ]
  assert len(theirs) > 140
  assert [n for n in theirs if not hasattr(Tensor, n)] == ["as_strided_"]  # whose view is no part of it here
  x, y = Tensor([1.0, -2.0]), Tensor([1.0, -2.0])
  assert x.absolute_().multiply_(3).divide_(2).subtract_(1).negative_() is x
  assert x.tolist() == [-0.5, -2.0] and y.greater_(0).tolist() == [1.0, 0.0]


def test_editors_see_what_is_imported_later():
  """The names that mini imports when they are first asked for, and those that type checkers read, are the same."""
  (block,) = (
    node for node in ast.parse(inspect.getsource(mini)).body
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
  )  # fmt: skip
  seen = {}
  for line in block.body:
    for name in line.names:
      whole = (f"{line.module}.{name.name}", None) if line.module == "mini" else (line.module, name.name)
      seen[name.asname or name.name] = ("mini.tensor.linalg", None) if name.name == "linalg" else whole
  assert seen == mini._LATER


def test_files_of_layers_list_them():
  """As `__all__`, written out: type checkers call nothing."""
  for name in [
    "adaptive",
    "attention",
    "convolution",
    "embedding",
    "functions",
    "layers",
    "normalization",
    "pooling",
    "recurrent",
  ]:
    module = importlib.import_module(f"mini.nn.{name}")
    assert sorted(module.__all__) == sorted(
      n
      for n in layers_of(vars(module))
      if vars(module)[n].__module__ in (module.__name__, nn.ReLU.__module__)
    )


def test_calls_that_type_checkers_read_run(capsys):
  runpy.run_path(os.path.join(os.path.dirname(__file__), "types", "calls.py"))
  assert "schedule" in capsys.readouterr().out
