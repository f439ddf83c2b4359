"""mini.nn.functional: PyTorch's names, with its parameters in its order. (What the methods compute: test/methods.)"""

import inspect

import numpy as np
import pytest

import mini
import mini.nn.functional as F
from mini import Tensor, nn

torch = pytest.importorskip("torch")
TF = torch.nn.functional

# what torch.nn.functional has besides: {name: why it is not here}
HELPERS = "it helps to make the module, and is no function of tensors"
PRIVATE_USE = "it scales numbers of 8 and 4 bits for one vendor's products; mini.quantize has them"
WITH_INDICES = "return_indices=True is the same"
ABSENT = {
  **dict.fromkeys(("Callable", "DType", "Optional", "Tensor", "assert_int_or_pair", "boolean_dispatch"), HELPERS),
  **dict.fromkeys(("handle_torch_function", "has_torch_function", "has_torch_function_unary"), HELPERS),
  **dict.fromkeys(("has_torch_function_variadic", "native_channel_shuffle"), HELPERS),
  **dict.fromkeys(("ScalingType", "SwizzleType", "grouped_mm", "scaled_grouped_mm", "scaled_mm"), PRIVATE_USE),
  **dict.fromkeys((f"{kind}max_pool{n}d_with_indices" for kind in ("", "adaptive_") for n in (1, 2, 3)), WITH_INDICES),
  **dict.fromkeys((f"fractional_max_pool{n}d_with_indices" for n in (2, 3)), WITH_INDICES),
  "conv_tbc": "conv1d of transposed axes is the same",
  "linear_cross_entropy": "cross_entropy of linear is the same",
  "multi_head_attention_forward": "nn.MultiheadAttention is the same",
}  # fmt: skip


def test_every_name_is_here_or_is_said_not_to_be():
  theirs = {name for name in dir(TF) if not name.startswith("_") and callable(getattr(TF, name))}
  assert theirs - set(F.__all__) <= set(ABSENT) and not set(ABSENT) & set(F.__all__)
  assert all(callable(getattr(F, name)) for name in F.__all__) and set(dir(F)) == set(F.__all__)
  with pytest.raises(AttributeError, match="mini.nn.functional has no 'conv_tbc'"):
    F.conv_tbc  # noqa: B018


def told(name):
  """The names of PyTorch's parameters; none where it does not tell them: of what is written in another language."""
  try:
    found = inspect.signature(getattr(TF, name)).parameters.values()
  except ValueError:
    return []
  return [] if any(p.kind is p.VAR_KEYWORD for p in found) else [p.name for p in found]


@pytest.mark.parametrize("name", [name for name in F.__all__ if told(name)])
def test_parameters_are_those_of_pytorch(name):
  gone = {"size_average", "reduce", "_stacklevel", "out"}  # of old versions
  gone |= {"eps"} if name == "gumbel_softmax" else set()
  wanted = [n for n in told(name) if n not in gone]
  wanted = [n for n in wanted if not (name.endswith("_") and n == "inplace")]
  ours = list(inspect.signature(getattr(F, name)).parameters)
  assert [n for n in ours if n in wanted] == wanted
  assert set(ours) - set(wanted) <= {"inplace", "dtype", "channels_last", "full_dim"}


def pair(*shape, seed=0):
  a = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
  return Tensor(a), torch.tensor(a)


CALLS = {
  "softmax": lambda F, x: F.softmax(input=x, dim=1),
  "pad": lambda F, x: F.pad(x, pad=(1, 2), value=3.0),
  "unfold": lambda F, x: F.unfold(x.reshape(1, 3, 4), kernel_size=(1, 2)),
  "cosine_similarity": lambda F, x: F.cosine_similarity(x1=x, x2=x + 1, dim=1),
  "margin_ranking_loss": lambda F, x: F.margin_ranking_loss(
    input1=x, input2=x + 1, target=x.sign(), margin=0.5
  ),
  "leaky_relu": lambda F, x: F.leaky_relu(x, 0.3),
  "dropout that is off": lambda F, x: F.dropout(x, 0.5, False),
  "dropout2d that is off": lambda F, x: F.dropout2d(x.reshape(1, 3, 2, 2), 0.5, training=False),
  "embedding": lambda F, x: F.embedding(x[:, 0].abs().long(), x, padding_idx=-1),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
  x, theirs = pair(3, 4)
  np.testing.assert_allclose(CALLS[name](F, x).numpy(), CALLS[name](TF, theirs).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call", [lambda F, x: F.elu(x, 0.7, True), lambda F, x: F.threshold_(x, 0.1, 5.0),
                                  lambda F, x: F.relu(x * 1, inplace=True), lambda F, x: F.hardtanh_(x)])  # fmt: skip
def test_in_place(call):
  x, theirs = pair(3, 4)
  np.testing.assert_allclose(call(F, x).numpy(), call(TF, theirs).numpy(), rtol=1e-6)
  np.testing.assert_allclose(x.numpy(), theirs.numpy(), rtol=1e-6)


def test_dropout_acts_unless_it_is_told_not_to():
  """As PyTorch's; `Tensor.dropout` asks `Tensor.training`."""
  Tensor.manual_seed(1)
  x = Tensor.ones(4, 6, 5, 5)
  assert 0.3 < (F.dropout(x) == 0).float().mean().item() < 0.7
  channels = F.dropout2d(x).sum((2, 3)).numpy()
  assert set(channels.ravel().tolist()) == {0.0, 50.0}
  assert F.alpha_dropout(x) is x and (F.alpha_dropout(x, training=True) != 1).any().item()


@pytest.mark.parametrize("options", [{"max_norm": 1.0}, {"max_norm": 1.5, "norm_type": 1.0, "padding_idx": 1},
                                     {"scale_grad_by_freq": True}, {"scale_grad_by_freq": True, "padding_idx": 0}])  # fmt: skip
def test_embedding(options):
  """Values, the table, which max_norm changes, and its gradient, of the function and of the module."""
  weight, theirs = pair(5, 3)
  index = np.array([[0, 3, 3], [1, 3, 0]])
  module, torch_module = nn.Embedding(5, 3, **options), torch.nn.Embedding(5, 3, **options)
  module.load_state_dict({"weight": weight})
  torch_module.load_state_dict({"weight": theirs})
  got, want = module(Tensor(index)), torch_module(torch.tensor(index))
  np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-5)
  (got * got).sum().backward()
  (want * want).sum().backward()
  np.testing.assert_allclose(module.weight.detach().numpy(), torch_module.weight.detach().numpy(), rtol=1e-5)
  np.testing.assert_allclose(module.weight.grad.numpy(), torch_module.weight.grad.numpy(), rtol=1e-5)
  np.testing.assert_allclose(
    F.embedding(Tensor(index), weight, **options).numpy(), want.detach().numpy(), rtol=1e-5
  )


def test_losses_by_name():
  x, theirs = pair(3, 4)
  t = torch.nn.MSELoss()(input=theirs, target=theirs + 2)
  assert nn.MSELoss()(input=x, target=x + 2).item() == pytest.approx(t.item())
  out, h = nn.GRU(4, 2)(x, hx=Tensor.ones(1, 2))
  assert out.shape == (3, 2) and h.shape == (1, 2)
  assert [t.shape for t in x.split(split_size=2)] == [(2, 4), (1, 4)]
  with pytest.raises(TypeError, match="missing a required argument: 'target'"):
    nn.MSELoss()(input=x)


BAGS = {
  "two axes": {"input": [[0, 2], [1, 1]]}, "offsets": {"input": [0, 2, 1, 1, 3], "offsets": [0, 2, 2, 4]},
  "sum": {"input": [0, 2, 1], "offsets": [0, 1], "mode": "sum", "per_sample_weights": [1.0, 2.0, -1.0]},
  "max": {"input": [0, 2, 1], "offsets": [0, 1, 1], "mode": "max", "padding_idx": 1},
  "last": {"input": [0, 2, 1], "offsets": [0, 1, 3], "include_last_offset": True, "mode": "sum", "padding_idx": -1},
}  # fmt: skip


@pytest.mark.parametrize("name", BAGS)
def test_embedding_bag(name):
  options = BAGS[name]
  table = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)
  found = []
  for make, library in ((torch.tensor, TF), (Tensor, F)):
    w = make(table, requires_grad=True)
    given = {k: make(v) if isinstance(v, list) else v for k, v in options.items()}
    out = library.embedding_bag(given.pop("input"), w, **given)
    (out * out).sum().backward()
    found.append((out.detach().numpy(), w.grad.numpy()))
  for want, got in zip(*found):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("how", [{"output_size": 3}, {"output_ratio": (0.5, 0.6, 0.4)}, {"output_size": 1}])
def test_fractional_max_pool(n, how):
  """With the same samples, values and places are PyTorch's."""
  r, how = np.random.default_rng(2), {k: v[:n] if isinstance(v, tuple) else v for k, v in how.items()}
  x, u = r.standard_normal((2, 2) + (7, 8, 6)[:n]).astype(np.float32), r.random((2, 2, n)).astype(np.float32)
  name = f"fractional_max_pool{n}d"
  want = getattr(TF, name)(torch.tensor(x), 2, **how, return_indices=True, _random_samples=torch.tensor(u))
  got = getattr(F, name)(Tensor(x), 2, **how, return_indices=True, _random_samples=Tensor(u))
  for a, b in zip(got, want):
    np.testing.assert_array_equal(a.numpy(), b.numpy())
  assert getattr(F, name)(Tensor(x[0]), 2, **how).shape == want[0].shape[1:]
  layer = getattr(nn, f"FractionalMaxPool{n}d")(2, **how, _random_samples=Tensor(u))
  np.testing.assert_array_equal(layer(Tensor(x)).numpy(), want[0].numpy())
  with pytest.raises(ValueError, match="give output_size or output_ratio"):
    getattr(F, name)(Tensor(x), 2)


def test_older_names_and_channels():
  x = np.random.default_rng(2).standard_normal((2, 3, 4, 5)).astype(np.float32)
  for name, options in (
    ("upsample", {"size": 7}),
    ("upsample_nearest", {"scale_factor": 2}),
    ("upsample_bilinear", {"size": (6, 9)}),
  ):
    want = getattr(TF, name)(torch.tensor(x), **options)
    np.testing.assert_allclose(
      getattr(F, name)(Tensor(x), **options).numpy(), want.numpy(), rtol=1e-5, atol=1e-6
    )
  assert F.feature_alpha_dropout(Tensor(x), 0.5).tolist() == Tensor(x).tolist()
  out = F.feature_alpha_dropout(Tensor.ones(50, 20, 3), 0.4, training=True).numpy().round(5)
  assert (out == out[:, :, :1]).all() and len(np.unique(out)) == 2


@pytest.mark.parametrize("name", ["hfft2", "hfftn", "ihfft2", "ihfftn"])
def test_hermitian_transforms_of_several_axes(name):
  x = np.random.default_rng(2).standard_normal((2, 3, 4)).astype(np.float32)
  for options in ({}, {"s": (4, 5), "dim": (0, 2), "norm": "ortho"}, {"norm": "forward"}):
    want = getattr(torch.fft, name)(torch.tensor(x), **options).numpy()
    got = getattr(mini.fft, name)(Tensor(x), **options)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)
