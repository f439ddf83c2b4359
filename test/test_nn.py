"""Modules: parameters and state by path, training mode, and each layer beside PyTorch's."""

import numpy as np
import pytest

from mini import Tensor, nn
from mini.nn.state import StateError
from mini.types import MiniError, ShapeError, dtypes


def names(module):
  return [name for name, _ in module.named_parameters()]


class Block(nn.Module):
  def __init__(self, d):
    self.norm = nn.LayerNorm(d)
    self.inner = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d, bias=False))
    self.drop = nn.Dropout(0.5)

  def forward(self, x):
    return x + self.drop(self.inner(self.norm(x)))


class Net(nn.Module):
  def __init__(self):
    self.table = nn.Embedding(7, 4)
    self.blocks = nn.ModuleList([Block(4) for _ in range(2)])
    self.scale = nn.Parameter(Tensor.ones(4))
    self.register_buffer("steps", Tensor([0]))
    self.head = nn.Linear(4, 7, bias=False)
    self.head.weight = self.table.weight  # tied

  def forward(self, i):
    x = self.table(i) * self.scale
    for b in self.blocks:
      x = b(x)
    return self.head(x)


def test_paths():
  net = Net()
  block = [
    f"{n}.{p}"
    for n, p in (
      ("norm", "weight"),
      ("norm", "bias"),
      ("inner.0", "weight"),
      ("inner.0", "bias"),
      ("inner.2", "weight"),
    )
  ]
  expected = ["scale", "table.weight", *(f"blocks.{n}.{p}" for n in range(2) for p in block)]
  assert sorted(names(net)) == sorted(expected)
  assert sorted(net.state_dict()) == sorted([*expected, "steps", "head.weight"])
  assert len(list(net.parameters())) == len(expected)
  assert net(Tensor([[1, 2, 3]])).shape == (1, 3, 7)


def test_frozen_parameters_are_still_parameters():
  net = Net()
  before = names(net)
  net.requires_grad_(False)
  assert names(net) == before and not any(p.requires_grad for p in net.parameters())
  net.requires_grad_()
  assert all(p.requires_grad for p in net.parameters())


def test_train_and_eval_reach_every_module():
  net = Net()
  assert all(m.training for m in net.modules())
  assert not any(m.training for m in net.eval().modules())
  x = Tensor([[1, 2]])
  np.testing.assert_array_equal(net(x).numpy(), net(x).numpy())
  net.train()
  assert not np.array_equal(net(x).numpy(), net(x).numpy())


def test_state_goes_around():
  a, b = Net(), Net()
  a.steps.assign(Tensor([5]))
  b.load_state_dict(a.state_dict())
  for x, y in zip(a.state_dict().values(), b.state_dict().values()):
    np.testing.assert_array_equal(x.numpy(), y.numpy())
  assert b.head.weight is b.table.weight and b.scale.requires_grad and not b.steps.requires_grad


def test_what_does_not_fit_changes_nothing():
  net = nn.Linear(2, 3)
  before = net.weight.numpy()
  with pytest.raises(StateError, match="missing: bias\n.*not in the model: extra"):
    net.load_state_dict({"weight": np.zeros((3, 2)), "extra": np.zeros(1)})
  with pytest.raises(ShapeError, match=r"weight: \(2, 3\) in the state, \(3, 2\) here"):
    net.load_state_dict({"weight": np.zeros((2, 3)), "bias": np.zeros(3)})
  np.testing.assert_array_equal(net.weight.numpy(), before)
  net.load_state_dict({"weight": np.ones((3, 2)), "extra": 0}, strict=False)
  assert net.weight.tolist() == [[1, 1]] * 3 and net.weight.dtype is dtypes.float32


def test_plain_objects_lists_and_dicts():
  class Plain:
    def __init__(self):
      self.w = Tensor([1.0], requires_grad=True)
      self.layers = [nn.Linear(1, 1), {"deep": nn.Linear(1, 1, bias=False)}]
      self.me, self._hidden, self.name = self, Tensor([2.0]), "x"

    def __call__(self, x):
      return x * self.w

  found = nn.state.get_state_dict(Plain())
  assert sorted(found) == ["layers.0.bias", "layers.0.weight", "layers.1.deep.weight", "w"]
  assert len(nn.state.get_parameters(Plain())) == 4


def test_module_list():
  ms = nn.ModuleList([nn.ReLU(), nn.Tanh()])
  ms.append(nn.GELU())
  ms.insert(0, nn.Identity())
  assert [type(m).__name__ for m in ms] == ["Identity", "ReLU", "Tanh", "GELU"]
  assert isinstance(ms[-1], nn.GELU) and len(ms[1:3]) == 2 and isinstance(ms[1:], nn.ModuleList)
  assert isinstance(nn.Sequential(*ms)[:2], nn.Sequential)
  with pytest.raises(IndexError):
    ms[4]


def test_repr():
  assert repr(nn.Sequential(nn.Linear(2, 3), nn.ReLU())) == (
    "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n)"
  )


def test_errors():
  with pytest.raises(MiniError, match="Module has no forward"):
    nn.Module()(1)
  with pytest.raises(ShapeError, match="does not divide into 3 heads"):
    nn.MultiheadAttention(8, 3)
  with pytest.raises(ShapeError, match="padding_idx 4 is none of 3 rows"):
    nn.Embedding(3, 2, padding_idx=4)
  with pytest.raises(ValueError, match="no probability"):
    nn.Dropout(1.5)


def test_padding_row():
  e = nn.Embedding(4, 3, padding_idx=-4)
  assert e.weight[0].tolist() == [0, 0, 0]
  e(Tensor([0, 1, 0])).sum().backward()
  assert e.weight.grad.tolist() == [[0] * 3, [1] * 3, [0] * 3, [0] * 3]


# ---------------------------------------------------------------- initial values


@pytest.mark.parametrize(
  "fill, std",
  [
    (lambda t: nn.init.uniform_(t, -1, 2), 3 / 12**0.5),
    (lambda t: nn.init.normal_(t, 1, 0.5), 0.5),
    (nn.init.xavier_uniform_, (2 / 300) ** 0.5),
    (nn.init.xavier_normal_, (2 / 300) ** 0.5),
    (nn.init.kaiming_uniform_, (2 / 100) ** 0.5),
    (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), (2 / 200) ** 0.5),
    (nn.init.zeros_, 0),
  ],
)
def test_init(fill, std):
  t = Tensor.empty(200, 100).requires_grad_()
  assert fill(t) is t and t.requires_grad
  assert t.numpy().std() == pytest.approx(std, rel=0.03)


def test_default_initial_values():
  lin, emb = nn.Linear(100, 50), nn.Embedding(50, 100)
  assert abs(lin.weight.numpy()).max() <= 0.1 and abs(lin.bias.numpy()).max() <= 0.1
  assert lin.weight.numpy().std() == pytest.approx(0.1 / 3**0.5, rel=0.05)
  assert emb.weight.numpy().std() == pytest.approx(1, rel=0.05)
  mha = nn.MultiheadAttention(8, 2)
  assert not mha.in_proj_bias.numpy().any() and not mha.out_proj.bias.numpy().any()
  assert abs(mha.in_proj_weight.numpy()).max() <= (6 / 32) ** 0.5


# ---------------------------------------------------------------- beside PyTorch


def beside(ours, theirs, *inputs, run=lambda m, *x: m(*x)):
  """Same weights, same inputs: the same output, the same gradients of weights and inputs."""
  torch = pytest.importorskip("torch")
  assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
  ours.load_state_dict({name: t.detach().numpy() for name, t in theirs.state_dict().items()})
  mine = [Tensor(x).requires_grad_(x.dtype.kind == "f") for x in inputs]
  other = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in inputs]
  a, b = run(ours, *mine), run(theirs, *other)
  np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)
  w = np.random.default_rng(1).normal(size=a.shape).astype(np.float32)
  (a * Tensor(w)).sum().backward()
  (b * torch.tensor(w)).sum().backward()
  theirs_by_name = dict(theirs.named_parameters())
  pairs = [(p.grad, theirs_by_name[name].grad) for name, p in ours.named_parameters()]
  pairs += [(x.grad, y.grad) for x, y in zip(mine, other) if x.requires_grad]
  for g, h in pairs:
    np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-4, atol=1e-5)


def floats(*s):
  return np.random.default_rng(sum(s)).normal(size=s).astype(np.float32)


MODULES = {
  "Linear": ((5, 3), (floats(2, 4, 5),)),
  "Embedding": ((6, 3), (np.array([[1, 5], [1, 0]]),)),
  "LayerNorm": ((5,), (floats(2, 3, 5),)),
  "RMSNorm": ((5,), (floats(2, 3, 5),)),
  "ReLU": ((), (floats(9),)),
  "GELU": ((), (floats(9),)),
  "SiLU": ((), (floats(9),)),
  "Sigmoid": ((), (floats(9),)),
  "Tanh": ((), (floats(9),)),
  "LeakyReLU": ((0.2,), (floats(9),)),
  "ELU": ((), (floats(9),)),
  "Softplus": ((2.0,), (floats(9),)),
  "Softmax": ((1,), (floats(3, 4),)),
  "LogSoftmax": ((1,), (floats(3, 4),)),
  "Flatten": ((), (floats(2, 3, 4),)),
  "MaxPool2d": ((2,), (floats(1, 2, 4, 6),)),
  "MSELoss": ((), (floats(3, 4), floats(4, 3).T.copy())),
  "CrossEntropyLoss": ((), (floats(3, 4), np.array([1, 0, 3]))),
}


@pytest.mark.parametrize("name", MODULES)
def test_layer(name):
  torch = pytest.importorskip("torch")
  args, inputs = MODULES[name]
  beside(getattr(nn, name)(*args), getattr(torch.nn, name)(*args), *inputs)


def test_layer_options():
  torch = pytest.importorskip("torch")
  beside(nn.Linear(3, 2, bias=False), torch.nn.Linear(3, 2, bias=False), floats(2, 3))
  beside(nn.LayerNorm((3, 4), bias=False), torch.nn.LayerNorm((3, 4), bias=False), floats(2, 3, 4))
  beside(nn.LayerNorm(4, 1e-2, False), torch.nn.LayerNorm(4, 1e-2, False), floats(2, 4))
  beside(nn.GELU("tanh"), torch.nn.GELU("tanh"), floats(9))
  beside(nn.RMSNorm(4, eps=0.1), torch.nn.RMSNorm(4, eps=0.1), floats(2, 4))


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_attention(batch_first, bias):
  torch = pytest.importorskip("torch")
  args = {"bias": bias, "batch_first": batch_first}
  ours, theirs = nn.MultiheadAttention(8, 2, **args), torch.nn.MultiheadAttention(8, 2, **args)
  x = floats(3, 5, 8)
  beside(ours, theirs, x, run=lambda m, x: m(x, x, x)[0])
  beside(ours, theirs, x, run=lambda m, x: m(x, x, x)[1])
  q, kv = (floats(3, 2, 8), floats(3, 4, 8)) if batch_first else (floats(2, 3, 8), floats(4, 3, 8))
  beside(ours, theirs, q, kv, run=lambda m, q, kv: m(q, kv, kv, need_weights=False)[0])
  beside(ours, theirs, floats(5, 8), run=lambda m, x: m(x, x, x)[0])


def test_attention_masks():
  torch = pytest.importorskip("torch")
  ours, theirs = (
    nn.MultiheadAttention(8, 2, batch_first=True),
    torch.nn.MultiheadAttention(8, 2, batch_first=True),
  )
  x = floats(2, 4, 8)
  causal = np.triu(np.ones((4, 4), bool), 1)
  padding = np.array([[False, False, False, True], [False, False, True, True]])
  added = floats(4, 4, 4)

  def masked(weights, **masks):
    def run(m, x):
      make = Tensor if isinstance(m, nn.Module) else torch.tensor
      return m(x, x, x, need_weights=weights, **{k: make(v) for k, v in masks.items()})[0]

    return run

  for weights in (True, False):
    beside(ours, theirs, x, run=masked(weights, attn_mask=causal))
    beside(ours, theirs, x, run=masked(weights, key_padding_mask=padding))
    beside(ours, theirs, x, run=masked(weights, attn_mask=added))
    beside(ours, theirs, x, run=masked(weights, attn_mask=causal, key_padding_mask=padding))
