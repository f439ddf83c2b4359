"""Layers: what no row of test/methods/modules.py says. Packed sequences, dropouts, containers, surgery, initial values."""

import re

import numpy as np
import pytest

from mini import Context, Tensor, nn, no_grad

RNG = np.random.default_rng(0)


def array(*s):
  return RNG.standard_normal(s).astype(np.float32)


def flat(out):
  """The tensors in what a module gives."""
  return [t for x in out for t in flat(x)] if isinstance(out, tuple) else [] if out is None else [out]


# ---------------------------------------------------------------- recurrent

full = pytest.mark.full


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_a_step_reads_its_part_of_the_products_where_it_stands(name, capsys):
  """Those of the input, which are one product, were copied step by step."""
  layer, x = getattr(nn, name)(8, 16), Tensor(array(6, 4, 8))
  with Context(SHOW="kernel"), no_grad():
    Tensor.realize(*flat(layer(x)))
  copies = re.findall(r"(%\d+) = load \S+\[\d, .*\n  store %\w+\[.*\], \1\n", capsys.readouterr().err)
  assert not copies


@pytest.mark.parametrize("name", ["LSTM", *(pytest.param(n, marks=full) for n in ("RNN", "GRU"))])
def test_lengths_are_packed_sequences(name):
  torch = pytest.importorskip("torch")
  ours, theirs = (getattr(m, name)(3, 4, 2, bidirectional=True, batch_first=True) for m in (nn, torch.nn))
  ours.load_state_dict({n: t.numpy() for n, t in theirs.state_dict().items()})
  x, lengths = array(3, 5, 3), [5, 2, 3]
  pack = torch.nn.utils.rnn
  packed = pack.pack_padded_sequence(torch.tensor(x), lengths, batch_first=True, enforce_sorted=False)
  out, state = theirs(packed)
  wanted = [pack.pad_packed_sequence(out, batch_first=True)[0], *flat(state)]
  found = flat(ours(Tensor(x), lengths=lengths))
  Tensor.realize(*found)
  for a, b in zip(found, wanted):
    np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
  again = nn.utils.rnn.pack_padded_sequence(Tensor(x), lengths, batch_first=True, enforce_sorted=False)
  out, state = ours(again)
  assert (nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0] == found[0]).all()
  assert all((a == b).all() for a, b in zip(flat(state), found[1:]))


def of_padding(rnn, tensor, numbers):
  """What nn.utils.rnn makes of sequences."""
  rows = [tensor(a) for a in numbers]
  yield rnn.pad_sequence(rows)
  yield rnn.pad_sequence(rows, batch_first=True, padding_value=7.0, padding_side="left")
  for options in ({}, {"batch_first": True, "padding_value": -1.0, "total_length": 6}):
    packed = rnn.pack_sequence(rows, enforce_sorted=False)
    yield from rnn.pad_packed_sequence(packed, **options)
  yield from rnn.unpad_sequence(rnn.pad_sequence(rows), tensor([2, 4, 1]))


def test_padding():
  torch = pytest.importorskip("torch")
  numbers = [array(n, 3) for n in (2, 4, 1)]
  ours = [*of_padding(nn.utils.rnn, Tensor, numbers)]
  theirs = [*of_padding(torch.nn.utils.rnn, torch.tensor, numbers)]
  for a, b in zip(ours, theirs, strict=True):
    np.testing.assert_array_equal(a.numpy(), b.numpy())
  rnn, x = nn.utils.rnn, Tensor.ones(4, 2, 3)
  for wrong, about in (
    ([1, 4], "enforce_sorted=False"),
    ([5, 1], "from 1 to 4"),
    ([3], "2 lengths"),
    ([1, 0], "1 to 4"),
  ):
    with pytest.raises(ValueError, match=f"pack_padded_sequence.*{about}"):
      rnn.pack_padded_sequence(x, wrong)
  with pytest.raises(ValueError, match="total_length=1 is less than 2"):
    rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [2, 1]), total_length=1)


def test_parameters_are_a_vector():
  model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
  optimizer = nn.optim.SGD(model.parameters(), lr=1.0)
  v = nn.utils.parameters_to_vector(model.parameters())
  assert v.shape == (13,) and (v[:6] == model[0].weight.flatten()).all()
  nn.utils.vector_to_parameters(Tensor.arange(13).float(), model.parameters())
  model(Tensor.zeros(1, 2)).sum().backward()
  optimizer.step()
  assert model[1].bias.tolist() == [11] and model[0].weight.tolist() == [[0, 1], [2, 3], [4, 5]]
  with pytest.raises(ValueError, match="13 elements are wanted"):
    nn.utils.vector_to_parameters(v[:3], model.parameters())


def test_all_steps_are_the_same_kernels(capsys):
  """A layer of twice as many steps has as many different contractions."""
  from mini.engine import program

  found = []
  compile_kernels = program.compile_kernels
  try:
    program.compile_kernels = lambda kernels, *about: (
      found.append(len(set(kernels))) or compile_kernels(kernels, *about)
    )
    for steps in (6, 12):
      net = nn.LSTM(4, 8)
      x = Tensor(array(steps, 2, 4)).realize(*net.parameters())
      found.clear()
      net(x)[0].square().sum().backward()
      Tensor.realize(*(p.grad for p in net.parameters()))
      last = found[-1]
      few = last if steps == 6 else few  # noqa: F821
  finally:
    program.compile_kernels = compile_kernels
  assert last - few <= 3 * 6, (
    few,
    last,
  )  # copies of a step's row have its number in them: three for each step


def test_rotary_positions():
  x = array(2, 3, 7, 8)
  angle = np.arange(7)[:, None] * 10000.0 ** (-np.arange(0, 8, 2) / 8)
  turned = (x[..., :4] + 1j * x[..., 4:]) * np.exp(1j * angle)
  wanted = np.concatenate([turned.real, turned.imag], -1)
  rotary = nn.RotaryEmbedding(8)
  np.testing.assert_allclose(rotary(Tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(rotary(Tensor(x[:, :, 2:]), 2).numpy(), rotary(Tensor(np.pad(x[:, :, 2:], ((0, 0), (0, 0), (2, 0), (0, 0))))).numpy()[:, :, 2:], rtol=1e-5, atol=1e-6)  # fmt: skip


# ---------------------------------------------------------------- others


def test_dropouts():
  x = Tensor.ones(50, 40, 3, 2)
  for m in (nn.Dropout1d(0.3), nn.Dropout2d(0.3), nn.Dropout3d(0.3)):
    y = m(x).numpy()
    assert np.allclose(np.unique(y), [0, 1 / 0.7]) and (y == y[:, :, :1, :1]).all()
    assert abs((y == 0).mean() - 0.3) < 0.05
    assert (m.eval()(x).numpy() == 1).all()
  y = nn.AlphaDropout(0.2)(Tensor(array(100, 100))).numpy()
  assert abs(y.mean()) < 0.05 and abs(y.std() - 1) < 0.05


def test_dicts_and_lists():
  d = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
  d["c"] = nn.Linear(3, 1, bias=False)
  assert d.keys() == ["a", "b", "c"] and sorted(d.state_dict()) == ["a.bias", "a.weight", "c.weight"]
  assert isinstance(d.pop("b"), nn.ReLU) and "b" not in d and len(d) == 2
  with pytest.raises(ValueError, match="'forward' cannot be a name"):
    d["forward"] = nn.ReLU()
  p = nn.ParameterDict({"w": Tensor([1.0]), "v": nn.Parameter(Tensor([2.0]))})
  assert [n for n, _ in p.named_parameters()] == ["w", "v"]
  assert nn.Unflatten(1, (2, 3))(Tensor.ones(4, 6)).shape == (4, 2, 3)


# ---------------------------------------------------------------- surgery, initial values


def test_lists_are_cut():
  net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4), nn.Tanh())
  x = Tensor.ones(5, 2)
  wanted = net[0](x)
  del net[2:]
  assert len(net) == 2 and [*net.state_dict()] == ["0.weight", "0.bias"]
  assert isinstance(net.pop(), nn.ReLU) and (net(x) == wanted).all()
  longer = net + nn.Sequential(nn.Tanh())
  assert isinstance(longer, nn.Sequential) and len(net) == 1 and (longer(x) == wanted.tanh()).all()
  layers = nn.ModuleList([nn.Linear(1, 1), nn.Identity()])
  layers += [nn.Linear(1, 2)]
  del layers[0]
  assert [n for n, _ in layers.named_parameters()] == ["1.weight", "1.bias"] and len(layers + layers) == 4
  with pytest.raises(IndexError):
    layers.pop(5)


def test_surgery():
  net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 3)))
  net.set_submodule("1.0", nn.GELU())
  assert isinstance(net.get_submodule("1.0"), nn.GELU) and net.get_submodule("") is net
  net.get_submodule("1.1").weight = net.get_parameter("1.1.weight")
  net.get_submodule("1").requires_grad_(False)
  assert [n for n, p in net.named_parameters() if p.requires_grad] == ["0.weight", "0.bias"]
  net.get_submodule("1.1").bias = net.get_submodule("0").bias  # shared
  assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.1.weight"]
  with pytest.raises(AttributeError, match="1 has no module '2'; there are 0, 1"):
    net.set_submodule("1.2", nn.ReLU())
  with pytest.raises(AttributeError, match="has no parameter '0.w'"):
    net.get_parameter("0.w")
  plain = nn.Module()
  plain.blocks = [nn.Linear(1, 1), {"deep": nn.ReLU()}]
  plain.set_submodule("blocks.1.deep", nn.Tanh())
  assert isinstance(plain.blocks[1]["deep"], nn.Tanh)


def test_initial_values():
  Tensor.manual_seed(3)
  x = nn.init.trunc_normal_(Tensor.zeros(4000), 1.0, 2.0, 0.0, 3.0).numpy()
  assert x.min() >= 0 and x.max() <= 3 and abs(x.mean() - 1.413) < 0.05
  for s in ((3, 5), (5, 3), (4, 2, 3)):
    w = nn.init.orthogonal_(Tensor.zeros(*s), 2.0).numpy().reshape(s[0], -1)
    square = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-5)
  w = nn.init.sparse_(Tensor.zeros(10, 6), 0.25).numpy()
  assert ((w == 0).sum(0) == 3).all()
  Tensor.manual_seed(3)
  assert np.array_equal(nn.init.trunc_normal_(Tensor.zeros(4000), 1.0, 2.0, 0.0, 3.0).numpy(), x)


def test_initial_values_of_pytorch():
  torch = pytest.importorskip("torch")
  for s, groups in (((4, 2, 3), 2), ((3, 4, 3, 2), 1), ((4, 3, 1, 2, 3), 2)):
    wanted = torch.nn.init.dirac_(torch.zeros(s), groups).numpy()
    np.testing.assert_array_equal(nn.init.dirac_(Tensor.zeros(*s), groups).numpy(), wanted)
  for name, param in (
    ("linear", None),
    ("selu", None),
    ("leaky_relu", 0.3),
    ("tanh", None),
    ("conv_transpose2d", None),
  ):
    assert nn.init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)


def test_adaptive_softmax():
  """All probabilities, their sum, and the class that has the largest."""
  m, x = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 7], 2.0), Tensor(array(5, 8))
  log_prob = m.log_prob(x).numpy()
  np.testing.assert_allclose(np.exp(log_prob).sum(1), 1, rtol=1e-5)
  assert m.predict(x).tolist() == log_prob.argmax(1).tolist()
  np.testing.assert_allclose(
    m(x, Tensor([3, 4, 6, 7, 11])).output.numpy(), log_prob[range(5), [3, 4, 6, 7, 11]]
  )
