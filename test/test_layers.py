"""Norms, recurrent networks, attention and transformers beside PyTorch's: values, gradients, names of the state."""

import numpy as np
import pytest

from mini import ShapeError, Tensor, nn

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)


def array(*s):
  return RNG.standard_normal(s).astype(np.float32)


def flat(out):
  """The tensors in what a module gives."""
  return [t for x in out for t in flat(x)] if isinstance(out, tuple) else [] if out is None else [out]


def pair(name, *args, **options):
  """The module here and PyTorch's, with the same state."""
  theirs = getattr(torch.nn, name)(*args, **options)
  ours = getattr(nn, name)(*args, **options)
  for p in theirs.parameters():
    p.data.copy_(torch.randn_like(p) * 0.4)
  ours.load_state_dict({n: t.numpy() for n, t in theirs.state_dict().items()})
  return ours, theirs


def check(ours, theirs, inputs, tolerance=2e-5, **options):
  """Values, and gradients of the inputs that are floats and of all parameters."""
  mine = [Tensor(x, requires_grad=x.dtype == np.float32) for x in inputs]
  other = [torch.tensor(x, requires_grad=x.dtype == np.float32) for x in inputs]
  a, b = (flat(m(*x, **{k: make(v) for k, v in options.items()})) for m, x, make in
          ((ours, mine, lambda v: Tensor(v) if isinstance(v, np.ndarray) else v),
           (theirs, other, lambda v: torch.tensor(v) if isinstance(v, np.ndarray) else v)))  # fmt: skip
  assert [t.shape for t in a] == [tuple(t.shape) for t in b]
  ws = [np.cos(np.arange(t.numel(), dtype=np.float32)).reshape(t.shape) + 0.3 for t in a]
  sum(((t * Tensor(w)).sum() for t, w in zip(a, ws)), Tensor(0.0)).backward()
  sum((t * torch.tensor(w)).sum() for t, w in zip(b, ws)).backward()
  names = [n for n, _ in theirs.named_parameters()]
  assert sorted(names) == sorted(n for n, _ in ours.named_parameters())
  own, others = dict(ours.named_parameters()), dict(theirs.named_parameters())
  found = [*a, *(t.grad for t in mine if t.requires_grad), *(own[n].grad for n in names)]
  wanted = [*b, *(t.grad for t in other if t.requires_grad), *(others[n].grad for n in names)]
  Tensor.realize(*(t for t in found if t is not None))
  for x, y in zip(found, wanted):
    assert (x is None) == (y is None)
    if x is not None:
      np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=tolerance, atol=tolerance)


NORMS = [
  ("GroupNorm", (2, 6), {}, (3, 6, 5)),
  ("GroupNorm", (3, 6), {"affine": False, "eps": 0.1}, (2, 6)),
  ("InstanceNorm1d", (3,), {"affine": True}, (2, 3, 5)),
  ("InstanceNorm1d", (3,), {"track_running_stats": True}, (3, 5)),
  ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True, "momentum": 0.3}, (2, 3, 4, 5)),
  ("InstanceNorm3d", (2,), {}, (2, 2, 2, 3, 2)),
  ("BatchNorm1d", (3,), {}, (4, 3)),
  ("BatchNorm2d", (3,), {"momentum": None}, (2, 3, 4, 5)),
  ("BatchNorm3d", (2,), {"affine": False, "track_running_stats": False}, (2, 2, 2, 3, 2)),
  ("LayerNorm", ((4, 5),), {"bias": False}, (2, 4, 5)),
  ("RMSNorm", (5,), {}, (2, 4, 5)),
  ("LocalResponseNorm", (3,), {"alpha": 0.1}, (2, 5, 4)),
]


@pytest.mark.parametrize("name, args, options, shape", [n for n in NORMS if hasattr(nn, n[0])])
def test_norms(name, args, options, shape):
  ours, theirs = pair(name, *args, **options)
  for _ in range(2):
    x = array(*shape)
    check(ours, theirs, [x])
    ours.zero_grad(), theirs.zero_grad()
  assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
  for n, t in theirs.state_dict().items():
    np.testing.assert_allclose(ours.state_dict()[n].numpy(), t.numpy(), rtol=1e-5, atol=1e-6, err_msg=n)
  check(ours.eval(), theirs.eval(), [x])


def test_layer_norm_2d():
  ours, theirs = nn.LayerNorm2d(3), torch.nn.LayerNorm(3)
  x = array(2, 3, 4, 5)
  wanted = theirs(torch.tensor(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
  np.testing.assert_allclose(ours(Tensor(x)).numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------- recurrent

full = pytest.mark.full
LAYERS = [
  pytest.param("RNN", (3, 4), {}, marks=full),
  ("RNN", (3, 4), {"nonlinearity": "relu", "num_layers": 2, "bias": False, "batch_first": True}),
  ("LSTM", (3, 4), {"bidirectional": True, "num_layers": 2}),
  ("LSTM", (3, 4), {"proj_size": 2, "batch_first": True}),
  ("GRU", (3, 4), {"bidirectional": True, "batch_first": True}),
  pytest.param("GRU", (3, 4), {"num_layers": 2, "bias": False}, marks=full),
]


@pytest.mark.parametrize("name, args, options", LAYERS)
def test_recurrent(name, args, options):
  ours, theirs = pair(name, *args, **options)
  assert list(dict(ours.named_parameters())) == list(dict(theirs.named_parameters()))
  check(ours, theirs, [array(5, 2, 3)])


def test_begin_and_without_a_batch():
  ours, theirs = pair("LSTM", 3, 4, 2)
  x, h, c = array(5, 3), array(2, 4), array(2, 4)
  a, b = ours(Tensor(x), (Tensor(h), Tensor(c))), theirs(torch.tensor(x), (torch.tensor(h), torch.tensor(c)))
  for mine, other in zip(flat(a), flat(b)):
    np.testing.assert_allclose(mine.numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["LSTM", *(pytest.param(n, marks=full) for n in ("RNN", "GRU"))])
def test_lengths_are_packed_sequences(name):
  ours, theirs = pair(name, 3, 4, 2, bidirectional=True, batch_first=True)
  x, lengths = array(3, 5, 3), [5, 2, 3]
  pack = torch.nn.utils.rnn
  packed = pack.pack_padded_sequence(torch.tensor(x), lengths, batch_first=True, enforce_sorted=False)
  out, state = theirs(packed)
  wanted = [pack.pad_packed_sequence(out, batch_first=True)[0], *flat(state)]
  found = flat(ours(Tensor(x), lengths=lengths))
  Tensor.realize(*found)
  for a, b in zip(found, wanted):
    np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name):
  ours, theirs = pair(name, 3, 4)
  check(ours, theirs, [array(2, 3)])
  state = array(2, 4)
  state = (state, state * 2) if name == "LSTMCell" else state
  a = ours(Tensor(x := array(2, 3)), tuple(map(Tensor, state)) if name == "LSTMCell" else Tensor(state))
  b = theirs(torch.tensor(x), tuple(map(torch.tensor, state)) if name == "LSTMCell" else torch.tensor(state))
  for mine, other in zip(flat(a), flat(b)):
    np.testing.assert_allclose(mine.numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_all_steps_are_the_same_kernels(capsys):
  """A layer of twice as many steps has as many different contractions."""
  from mini.engine import program

  found = []
  compile_kernels = program.compile_kernels
  try:
    program.compile_kernels = lambda kernels, opened: (
      found.append(len(set(kernels))) or compile_kernels(kernels, opened)
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


# ---------------------------------------------------------------- attention

MASK = np.triu(np.ones((4, 4), bool), 1)
PADDING = np.array([[False, False, False, True], [False] * 4])


@pytest.mark.parametrize(
  "options", [{}, {"kdim": 3, "vdim": 5}, {"add_bias_kv": True, "add_zero_attn": True}, {"bias": False}]
)
def test_attention_options(options):
  ours, theirs = pair("MultiheadAttention", 6, 2, batch_first=True, **options)
  k, v = options.get("kdim", 6), options.get("vdim", 6)
  assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
  check(ours, theirs, [array(2, 3, 6), array(2, 4, k), array(2, 4, v)], key_padding_mask=PADDING)


BLOCKS = [
  {},
  {"norm_first": True, "activation": "gelu"},
  pytest.param({"batch_first": True, "bias": False}, marks=full),
]


@pytest.mark.parametrize("options", BLOCKS)
def test_transformer_layers(options):
  ours, theirs = pair("TransformerEncoderLayer", 6, 2, 8, dropout=0.0, **options)
  assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
  x = array(2, 4, 6) if options.get("batch_first") else array(4, 2, 6)
  check(ours, theirs, [x], 5e-5, src_mask=MASK, src_key_padding_mask=PADDING)
  ours, theirs = pair("TransformerDecoderLayer", 6, 2, 8, dropout=0.0, **options)
  check(ours, theirs, [x, x * 0.5], 5e-5, tgt_mask=MASK, memory_key_padding_mask=PADDING)


@full
def test_transformer():
  ours, theirs = pair("Transformer", 6, 2, 2, 1, 8, dropout=0.0, batch_first=True)
  assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
  check(ours, theirs, [array(2, 3, 6), array(2, 4, 6)], 1e-4, tgt_mask=MASK)


def test_rotary_positions():
  x = array(2, 3, 7, 8)
  angle = np.arange(7)[:, None] * 10000.0 ** (-np.arange(0, 8, 2) / 8)
  turned = (x[..., :4] + 1j * x[..., 4:]) * np.exp(1j * angle)
  wanted = np.concatenate([turned.real, turned.imag], -1)
  rotary = nn.RotaryEmbedding(8)
  np.testing.assert_allclose(rotary(Tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(rotary(Tensor(x[:, :, 2:]), 2).numpy(), rotary(Tensor(np.pad(x[:, :, 2:], ((0, 0), (0, 0), (2, 0), (0, 0))))).numpy()[:, :, 2:], rtol=1e-5, atol=1e-6)  # fmt: skip


def test_grouped_queries():
  m = nn.GroupedQueryAttention(8, 4, 2)
  x = array(2, 5, 8)
  q, k, v, o = (p.weight.numpy() for p in (m.q_proj, m.k_proj, m.v_proj, m.o_proj))
  heads = lambda y, n: torch.tensor(y).reshape(2, 5, n, 2).transpose(1, 2)
  k, v = (heads(x @ w.T, 2).repeat_interleave(2, 1) for w in (k, v))
  out = torch.nn.functional.scaled_dot_product_attention(heads(x @ q.T, 4), k, v, is_causal=True)
  wanted = out.transpose(1, 2).reshape(2, 5, 8).numpy() @ o.T
  np.testing.assert_allclose(m(Tensor(x), is_causal=True).numpy(), wanted, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- others


def test_bilinear():
  check(*pair("Bilinear", 3, 4, 5), [array(2, 6, 3), array(2, 6, 4)])
  check(*pair("Bilinear", 3, 4, 5, bias=False), [array(3), array(4)])


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


def test_errors():
  with pytest.raises(ShapeError, match="6 channels do not fall into 4 groups"):
    nn.GroupNorm(4, 6)
  with pytest.raises(ShapeError, match="lengths: there must be one for each of 2 sequences"):
    nn.GRU(3, 4)(Tensor.ones(5, 2, 3), lengths=[1])
  with pytest.raises(ValueError, match='"tanh" or "relu", not "selu"|not \'selu\''):
    nn.RNN(3, 4, nonlinearity="selu")
  with pytest.raises(ShapeError, match="the last of x's 3 axes is not 3"):
    nn.LSTM(3, 4)(Tensor.ones(5, 2, 4))
  with pytest.raises(ValueError, match="activation is"):
    nn.TransformerEncoderLayer(4, 2, activation="tanh")


# ---------------------------------------------------------------- surgery, initial values


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
  for s, groups in (((4, 2, 3), 2), ((3, 4, 3, 2), 1), ((4, 3, 1, 2, 3), 2)):
    wanted = torch.nn.init.dirac_(torch.zeros(s), groups).numpy()
    np.testing.assert_array_equal(nn.init.dirac_(Tensor.zeros(*s), groups).numpy(), wanted)
  Tensor.manual_seed(3)
  assert np.array_equal(nn.init.trunc_normal_(Tensor.zeros(4000), 1.0, 2.0, 0.0, 3.0).numpy(), x)
  for name, param in (
    ("linear", None),
    ("selu", None),
    ("leaky_relu", 0.3),
    ("tanh", None),
    ("conv_transpose2d", None),
  ):
    assert nn.init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)
