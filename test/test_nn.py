"""Modules: parameters and state by path, training mode."""

import numpy as np
import pytest

from mini import Tensor, nn, no_grad
from mini.nn.state import StateError
from mini.types import ShapeError, dtypes


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
  left = net.load_state_dict({"weight": np.ones((3, 2)), "extra": 0}, strict=False)
  assert left.missing_keys == ["bias"] and left.unexpected_keys == ["extra"]
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


def test_names_of_torch_modules():
  m = nn.Module()
  m.add_module("norm", nn.BatchNorm1d(2))
  m.register_parameter("scale", nn.Parameter(Tensor.ones(2)))
  assert [n for n, _ in m.named_parameters()] == ["scale", "norm.weight", "norm.bias"]
  assert [n for n, _ in m.named_buffers()] == [
    "norm.running_mean",
    "norm.running_var",
    "norm.num_batches_tracked",
  ]
  assert [t.shape for t in m.buffers()] == [(2,), (2,), ()]
  for kind in ("half", "bfloat16", "double", "float"):
    assert (
      getattr(m, kind)() is m
      and m.scale.dtype is m.norm.running_mean.dtype is getattr(Tensor.ones(1), kind)().dtype
    )
  m.load_state_dict(state_dict={n: t + 1 for n, t in m.state_dict().items()})
  assert m.scale.tolist() == [2, 2] and m.norm.num_batches_tracked.item() == 1


def test_hooks_of_modules():
  """What PyTorch's hooks get, and what becomes of what they return."""
  torch = pytest.importorskip("torch")
  found = []
  for lib, T in ((nn, Tensor), (torch.nn, torch.tensor)):
    m, seen = lib.ReLU(), []
    outer = lib.Sequential(m, lib.Identity())
    x = T([-1.0, 2.0])
    double = m.register_forward_pre_hook(lambda module, args: args[0] * 2)
    m.register_forward_pre_hook(
      lambda module, args, seen=seen: seen.append(("first", args[0].tolist())), prepend=True
    )
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, kwargs), with_kwargs=True)
    m.register_forward_hook(lambda module, args, out: out + 1)
    m.register_forward_hook(lambda module, args, kwargs, out, seen=seen: seen.append((args[0].tolist(), out.tolist())),
                            with_kwargs=True)  # fmt: skip
    seen.append(outer(x).tolist())
    double.remove()
    seen.append(outer(x).tolist())
    found.append(seen)
  assert found[0] == found[1] and found[0][2] == [1.0, 5.0] and found[0][-1] == [1.0, 3.0]
  assert list(m.state_dict()) == [] == list(nn.ReLU().state_dict())


def test_parameters_keep_nothing_but_themselves():
  """Of the values that they were made of, unless somebody else holds these: then they share them."""
  layer = nn.BatchNorm1d(3)
  state = [*layer.parameters(), *layer.buffers()]
  assert all(t._base is None for t in state)
  layer.load_state_dict({name: t.numpy() + 1 for name, t in layer.state_dict().items()})
  assert all(t._base is None for t in state) and layer.weight.tolist() == [2.0, 2.0, 2.0]
  for made in (Tensor.zeros(3), Tensor(np.zeros(3, np.float32)).realize()):
    p, q = nn.Parameter(made), nn.Parameter(made)
    with no_grad():
      q[1] = 5.0
      made[2] = 7.0
    assert p.tolist() == q.tolist() == made.tolist() == [0.0, 5.0, 7.0]
    del made
    with no_grad():
      p[0] = 9.0
    assert p.tolist() == q.tolist() == [9.0, 5.0, 7.0]
