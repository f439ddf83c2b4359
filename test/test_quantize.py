"""Integers with scales: what they are off by is bounded, products read them as they are, and no float32 copy is made."""

import importlib.util
import itertools
import os
import pickle
import shutil
import subprocess
import sys

import gpt2
import numpy as np
import pytest
from generate import Generator

import mini
from mini import Context, DTypeError, ShapeError, Tensor, dtypes, float8, nn, no_grad, stats
from mini.quantization import Quantized

CXX = shutil.which("g++") or shutil.which("clang++")
EPS = 2.0**-23
WAYS = [(None, None), (0, None), (1, None), (0, 8), (1, 8)]  # (axis, block)
ALL = list(itertools.product((8, 4), WAYS, (True, False)))


@pytest.fixture
def kinds(dev, request):
  """(bits, (axis, block), symmetric): all; of what is compiled in a quick run every third, which has each of them once."""
  return ALL if dev == "INTERP" or request.config.option.full else ALL[::3]


def spread(t, shape):
  """Scales for each element."""
  a = t.numpy().astype(np.float32)
  for axis, n in enumerate(shape):
    a = np.repeat(a, n // a.shape[axis], axis)
  return a


def by_hand(x, bits, axis, block, symmetric):
  """(codes, scale, zero) for each element, in NumPy."""
  groups = x if block is None else x.reshape(*x.shape[:axis], -1, block, *x.shape[axis + 1 :])
  shared = tuple(n for n in range(groups.ndim) if (n != axis if block is None else n == axis + 1))
  most = 2 ** (bits - 1) - 1
  if symmetric:
    scale = np.abs(groups).max(shared, keepdims=True) / np.float32(most)
    zero = np.zeros_like(scale)
    low, high = -most, most
  else:
    least = np.minimum(groups.min(shared, keepdims=True), 0)
    scale = (np.maximum(groups.max(shared, keepdims=True), 0) - least) / np.float32(2 * most + 1)
    scale = np.maximum(scale, np.float32(2.0**-126))
    zero = np.rint(-least / scale)
    low, high = 0, 2 * most + 1
  scale = np.maximum(scale, np.float32(2.0**-126))
  codes = np.clip(np.rint(groups / scale) + zero, low, high)
  return [np.broadcast_to(a, groups.shape).reshape(x.shape) for a in (codes, scale, zero)]


def data(rng, kind):
  x = rng.standard_normal((16, 24)).astype(np.float32)
  if kind == "edges":
    x[0] = 0  # nothing to tell apart
    x[1] = 3.5  # of one sign
    x[2, :12], x[2, 12:] = 1e-38, -2e-38
    x[:, 5] = -np.abs(x[:, 5])
    x[3] *= 1e30
  return x


@pytest.mark.sample(4)
@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
@pytest.mark.parametrize("kind", ["normal", "edges"])
def test_codes_are_those_by_hand_and_within_half_a_scale(rng, dev, kind, kinds):
  x = data(rng, kind)
  with Context(DEV=dev):
    for bits, (axis, block), symmetric in kinds:
      q = mini.quantize(Tensor(x), bits, axis, block, symmetric).realize()
      about = bits, axis, block, symmetric
      codes, scale, zero = by_hand(x, bits, axis, block, symmetric)
      got = q._unpacked().numpy().astype(np.float32)
      got -= 8 if symmetric and bits == 4 else 0
      assert np.array_equal(got, codes), about
      assert np.array_equal(spread(q.scale, x.shape), scale), about
      assert q.zero is None if symmetric else np.array_equal(spread(q.zero, x.shape), zero), about
      values = q.dequantize().numpy()
      assert np.array_equal(values, (codes - zero) * scale), about
      assert (np.abs(values - x) <= scale * (0.5 + 256 * EPS)).all(), about
      assert q.codes.nbytes == x.size * bits // 8, about


def installed(name):
  return importlib.import_module(name) if importlib.util.find_spec(name) else None


def small_floats(name):
  """What the 256 codes stand for, by the definition."""
  mantissa, bias, special = (3, 7, False) if name == "e4m3" else (2, 15, True)
  out = []
  for code in range(256):
    e, m = (code & 127) >> mantissa, code & (1 << mantissa) - 1
    size = (m / 2**mantissa + (e > 0)) * 2.0 ** (max(e, 1) - bias)
    if special and e == 31:
      size = np.nan if m else np.inf
    out.append(np.nan if code & 127 == 127 else -size if code & 128 else size)
  return np.array(out, np.float32)


@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_floats_of_8_bits_are_the_nearest(rng, dev, name):
  values = small_floats(name)
  finite = np.unique(values[np.isfinite(values)])
  x = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, [np.inf, -np.inf, 1e9, -1e9, 1e-30, 0.0, -0.0],
                      *(rng.standard_normal(2000) * s for s in (1e-6, 1e-3, 1.0, 100.0, 1e4))]).astype(np.float32)  # fmt: skip
  with Context(DEV=dev):
    read = float8.decode(Tensor(np.arange(256, dtype=np.uint8)), name).numpy()
    assert np.array_equal(read, values, equal_nan=True)
    number = ~np.isnan(values)
    assert np.array_equal(np.signbit(read[number]), np.signbit(values[number]))
    codes = float8.encode(Tensor(x), name).numpy()
    assert np.isnan(values[float8.encode(Tensor([np.nan]), name).numpy()])
  got = values[codes].astype(np.float64)
  within = np.clip(x.astype(np.float64), finite[0], finite[-1])
  distance = np.abs(finite.astype(np.float64)[:, None] - within)
  assert np.array_equal(np.abs(got - within), distance.min(0))
  tied = (distance == distance.min(0)).sum(0) > 1
  assert tied.sum() >= finite.size - 1 and not (codes[tied] & 1).any()
  assert np.array_equal(np.signbit(got), np.signbit(x))
  if torch := installed("torch"):
    kind = torch.float8_e4m3fn if name == "e4m3" else torch.float8_e5m2
    there = np.abs(x) <= finite[-1]
    assert np.array_equal(torch.tensor(x[there]).to(kind).view(torch.uint8).numpy(), codes[there])


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_floats_of_8_bits_have_a_type_that_no_tensor_has(name):
  """It names codes; where a tensor of it is asked for, the error says what makes them."""
  kind, x = getattr(dtypes, f"float8_{name}"), Tensor([1.0, 1.1, -300.0])
  assert kind.itemsize == 1 and kind not in dtypes.all and pickle.loads(pickle.dumps(kind)) is kind
  assert float8.encode(x, kind).tolist() == float8.encode(x, name).tolist()
  assert (
    float8.decode(float8.encode(x, kind), kind).tolist()
    == float8.decode(float8.encode(x, name), name).tolist()
  )
  assert mini.quantize(x, kind).codes.tolist() == mini.quantize(x, name).codes.tolist()
  for ask in (x.cast, x.to, x.type, lambda d: Tensor([1.0], dtype=d), lambda d: Tensor.zeros(2, dtype=d)):
    for d in (kind, kind.name):
      with pytest.raises(
        DTypeError, match=f"no tensor is float8_{name}.* mini.float8.encode.* mini.quantize"
      ):
        ask(d)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_floats_of_8_bits_with_scales(rng, dev, name):
  form = float8.FORMATS[name]
  for kind, (axis, block) in itertools.product(("normal", "edges"), WAYS):
    w = data(rng, kind)
    with Context(DEV=dev):
      q = mini.quantize(Tensor(w), name, axis, block).realize()
      scale, values = spread(q.scale, w.shape).astype(np.float64), q.dequantize().numpy().astype(np.float64)
      assert q.codes.nbytes == w.size and q.codes.dtype is dtypes.uint8
      off = np.maximum(np.abs(w) / 2 ** (form.mantissa + 1), scale * form.least / 2) * (1 + 4 * EPS)
      assert (np.abs(values - w) <= off).all(), (kind, axis, block)
      if kind == "normal":
        x = rng.standard_normal((5, 16)).astype(np.float32)
        rounded = 64 * EPS * (np.abs(x) @ (np.abs(values) + scale))
        assert (np.abs((Tensor(x) @ q).numpy() - x @ values) <= rounded).all()
        assert (np.abs((Tensor(x[0]) @ q).numpy() - x[0] @ w) <= np.abs(x[0]) @ off + rounded[0]).all()
        assert np.array_equal(q.embedding(Tensor([3, 15])).numpy(), values[[3, 15]].astype(np.float32))


@pytest.mark.filterwarnings("ignore:.*quantized tensor creation functions.*")
def test_pytorchs_codes(rng):
  torch = pytest.importorskip("torch")
  x = data(rng, "normal")
  for axis, symmetric in itertools.product((None, 0, 1), (True, False)):
    q = mini.quantize(Tensor(x), 8, axis, symmetric=symmetric)
    kind = torch.qint8 if symmetric else torch.quint8
    scale = torch.tensor(q.scale.numpy()).flatten()
    zero = torch.zeros_like(scale) if q.zero is None else torch.tensor(q.zero.numpy()).flatten()
    if axis is None:
      want = torch.quantize_per_tensor(torch.tensor(x), float(scale), int(zero), kind)
    else:
      want = torch.quantize_per_channel(torch.tensor(x), scale, zero.int(), axis, kind)
    assert np.array_equal(q.codes.numpy(), want.int_repr().numpy())
    np.testing.assert_allclose(q.dequantize().numpy(), want.dequantize().numpy(), rtol=EPS)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
def test_products_are_within_the_bound_of_their_sum(rng, dev, kinds):
  """|x @ w - x @ q| <= sum of |x| * scale / 2, and it is the product with what `dequantize` gives."""
  w = data(rng, "normal")
  with Context(DEV=dev):
    for (bits, (axis, block), symmetric), shape in zip(kinds, itertools.cycle([(16,), (1, 16), (2, 5, 16)])):
      q = mini.quantize(Tensor(w), bits, axis, block, symmetric).realize()
      scale, values = spread(q.scale, w.shape).astype(np.float64), q.dequantize().numpy().astype(np.float64)
      x = rng.standard_normal(shape).astype(np.float32)
      rounded = 64 * EPS * (np.abs(x) @ (np.abs(values) + 256 * scale))
      for turned in (False, True):
        m, d = (q.T.T, values) if turned else (q, values)
        got = (Tensor(x) @ m).numpy()
        assert got.shape == (x @ w).shape and got.dtype == np.float32
        assert (np.abs(got - x @ d) <= rounded).all(), (bits, axis, block, symmetric, turned)
        assert (np.abs(got - x @ w) <= np.abs(x) @ (scale / 2) + rounded).all()
      y = rng.standard_normal(24).astype(np.float32)
      np.testing.assert_allclose((Tensor(y) @ q.T).numpy(), values @ y, atol=1e-4)
      rows = q.embedding(Tensor([[3, 1], [15, 3]])).numpy()
      assert np.array_equal(rows, values.astype(np.float32)[[[3, 1], [15, 3]]])


def test_halves_come_out_as_halves(rng):
  q = mini.quantize(Tensor(data(rng, "normal")), axis=1)
  x = rng.standard_normal((3, 16)).astype(np.float16)
  got = Tensor(x) @ q
  want = x.astype(np.float64) @ q.dequantize().numpy()
  assert got.dtype is dtypes.float16
  np.testing.assert_allclose(got.numpy(), want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("bits,block", [(8, None), (8, 64), (4, None), (4, 64), ("e4m3", None), ("e5m2", 64)])
@pytest.mark.sample(15)
def test_no_float_copy_is_allocated(rng, bits, block, rows):
  """Neither by products, whichever way the matrix lies, nor by an embedding. What the blocks give to a vector's product
  is as large as their scales."""
  n = 512
  w = Tensor(rng.standard_normal((n, n)).astype(np.float32))
  for axis in (0, 1):
    q = mini.quantize(w, bits, axis if block is None else 1 - axis, block).realize()
    assert q.nbytes <= n * n * (4 if bits == 4 else 8) // 8 + n * 4 * (n // block if block else 1)
    m = q if axis == 1 else q.T
    parts = q.scale.nbytes if m is q and block and rows == 1 else 0
    x = Tensor(rng.standard_normal((rows, n)).astype(np.float32)).realize()
    for once in range(2):
      stats.reset()
      before = stats.bytes_live
      y = (x @ m).realize()
      assert stats.bytes_peak - before <= y.nbytes + parts + 4096, once
      del y
    stats.reset()
    before = stats.bytes_live
    y = q.embedding(Tensor(np.arange(rows))).realize()
    assert stats.bytes_peak - before <= y.nbytes + 4096
    del y


def test_mistakes(rng):
  x = Tensor(rng.standard_normal((6, 9)).astype(np.float32))
  with pytest.raises(ValueError, match="8 or 4 bits, or are of e4m3 or e5m2, not 3"):
    mini.quantize(x, 3)
  with pytest.raises(ValueError, match="of e4m3 or e5m2, not 'e3m4'"):
    mini.quantize(x, "e3m4")
  with pytest.raises(ValueError, match="e4m3 has a sign, and no zero point"):
    mini.quantize(x, "e4m3", symmetric=False)
  with pytest.raises(DTypeError, match="not of floats"):
    mini.quantize(Tensor([1, 2]))
  with pytest.raises(ShapeError, match="does not fall into blocks of 4"):
    mini.quantize(x, 8, 1, 4)
  with pytest.raises(ShapeError, match="lie along an axis"):
    mini.quantize(x, 8, None, 3)
  with pytest.raises(ShapeError, match="share a byte, and axis 1, or a block of it, has 9"):
    mini.quantize(x, 4, 0)
  with pytest.raises(ShapeError, match="share a byte, and no axis"):
    mini.quantize(Tensor(1.0), 4)
  with pytest.raises(ShapeError, match="there is no axis 2"):
    mini.quantize(x, 8, 2)
  q = mini.quantize(x)
  with pytest.raises(ShapeError, match="the last axis of x is not 6"):
    x @ q
  with pytest.raises(DTypeError, match=r"x.float\(\) would fit"):
    Tensor([1] * 6) @ q
  with pytest.raises(ShapeError, match="is no matrix"):
    Tensor([1.0]) @ mini.quantize(Tensor([1.0]))
  with pytest.raises(ShapeError, match="no module 2, nothing to skip"):
    nn.quantized(nn.Sequential(nn.Linear(2, 2)), skip=["nothing", "2"])


# ---------------------------------------------------------------- models


def test_layers_are_replaced_by_path_and_gradients_pass_through(rng):
  model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8), nn.Linear(8, 4))
  plain = {name: p.numpy() for name, p in model.named_parameters()}
  assert nn.quantized(model, skip=["3"]) is model
  assert [name for name, _ in model.named_parameters()] == ["0.bias", "2.bias", "3.weight", "3.bias"]
  assert model.state_dict()["0.weight.codes"].dtype is dtypes.int8
  x = rng.standard_normal((5, 16)).astype(np.float32)
  t = Tensor(x, requires_grad=True)
  model(t).sum().backward()
  w = [m.weight.dequantize().numpy() if n != 3 else m.weight.numpy() for n, m in enumerate(model) if n != 1]
  assert np.abs(w[0] - plain["0.weight"]).max() <= spread(model[0].weight.scale, w[0].shape).max() / 2
  hidden = x @ w[0].T + plain["0.bias"]
  out = (np.maximum(hidden, 0) @ w[1].T + plain["2.bias"]) @ w[2].T + plain["3.bias"]
  np.testing.assert_allclose(model(Tensor(x)).numpy(), out, atol=1e-5)
  slope = (np.ones((5, 4)) @ w[2] @ w[1] * (hidden > 0)) @ w[0]
  np.testing.assert_allclose(t.grad.numpy(), slope, atol=1e-5)
  again = nn.quantized(
    nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8), nn.Linear(8, 4)), skip=["3"]
  )
  again.load_state_dict(model.state_dict())
  assert again(Tensor(x)).equal(model(Tensor(x)))


SMALL = gpt2.Config(layers=2, heads=2, width=32, block=16, vocabulary=64)


def small(rng, bits, block=None, config=SMALL):
  """(a GPT-2 of random numbers, the same with integers, that with what the integers stand for)"""
  models = [gpt2.GPT2(config).eval() for _ in range(3)]
  w = {n: rng.standard_normal(p.shape).astype(np.float32) * 0.1 for n, p in models[0].named_parameters()}
  for m in models:
    nn.state.load_state_dict(m, w)
  gpt2.quantized(models[1], bits, block)
  for m, source in zip(models[2].modules(), models[1].modules()):
    if isinstance(getattr(source, "weight", None), Quantized):
      m.weight.assign(source.weight.dequantize()).realize()
  return models


@pytest.mark.sample(2)
@pytest.mark.parametrize(
  "bits,block", [(8, None), (4, 8), *(pytest.param(*p, marks=pytest.mark.full) for p in ((8, 16), (4, None)))]
)
def test_a_quantized_gpt2_is_within_its_bound(rng, bits, block):
  """To first order a logit moves by at most sum |d logit / d w| * scale / 2; curvature may add half of that at 4 bits.
  And it is, but for roundings, the model whose weights are what the integers stand for."""
  model, integers, stood_for = small(rng, bits, block)
  tokens = Tensor(rng.integers(64, size=(1, 6)))
  got, want = integers(tokens).numpy(), model(tokens).numpy()
  np.testing.assert_allclose(got, stood_for(tokens).numpy(), atol=2e-5 * np.abs(want).max())
  assert integers.wte.weight is not model.wte.weight and integers.h[0].attn.c_attn.weight.bits == bits
  weights = dict(model.named_parameters())
  half = {
    f"{name}.weight": spread(m.weight.scale, m.weight.shape) / 2
    for name, m in integers.named_modules()
    if isinstance(getattr(m, "weight", None), Quantized)
  }
  assert len(half) == 4 * SMALL.layers + 1
  for place in ((0, 0, 3), (0, 5, 60)):
    model.zero_grad()
    model(tokens)[place].backward()
    bound = sum((np.abs(weights[name].grad.numpy()) * h).sum() for name, h in half.items())
    assert np.abs(got[place] - want[place]) <= bound * (1 if bits == 8 else 1.5)
    assert bound < (0.5 if bits == 8 else 10) * np.abs(want).max()  # it says something


@pytest.mark.parametrize("keep,most", [("int8", 0.27), pytest.param("int4", 0.18, marks=pytest.mark.full)])
def test_a_kept_gpt2_takes_the_memory_of_its_integers(rng, tmp_path, keep, most):
  """In a file, and from there with integers: weights, a step's memory, and tokens with a cache as without one."""
  config = gpt2.sized("nano", layers=2, vocabulary=1000)
  gpt2.save(gpt2.GPT2(config), tmp_path / "w.safetensors")
  floats = gpt2.load(tmp_path / "w.safetensors")
  plain = sum(p.nbytes for p in floats.parameters())
  model = gpt2.load(tmp_path / "w.safetensors", kept=keep)
  held = {id(t): t.nbytes for t in model.state_dict().values()}
  assert sum(held.values()) < most * plain + config.block * config.width * 4
  generator = Generator(model)
  tokens = [int(n) for n in rng.integers(0, 1000, 12)]
  generator.logits(tokens[:10])
  generator.logits(tokens[10:11])
  generator.logits(tokens[11:])
  stats.reset()
  logits = generator.logits(tokens[:1])
  assert stats.bytes_allocated == 0 and stats.schedules == 0
  assert stats.bytes_peak - stats.bytes_live < config.width * config.width  # less than the smallest matrix
  with no_grad():
    want = model(Tensor([[*tokens, tokens[0]]])).numpy()[0, -1]
  np.testing.assert_allclose(logits, want, atol=1e-4 * np.abs(want).max())


ON_A_GPU = """
import numpy as np, mini
rng = np.random.default_rng(0)
w, x = rng.standard_normal((32, 48)).astype(np.float32), rng.standard_normal((5, 32)).astype(np.float32)
for bits, axis, block in ((8, 1, None), (4, 0, 8), ("e4m3", 1, None)):
  q = mini.quantize(mini.Tensor(w), bits, axis, block).realize()
  assert q.codes.device != "CPU"
  for a in (x, x[0]):
    np.testing.assert_allclose((mini.Tensor(a) @ q).numpy(), a @ q.dequantize().numpy(), atol=1e-4)
"""


@pytest.mark.skipif(CXX is None, reason="no C++ compiler found")
@pytest.mark.parametrize("dev", ["CL", pytest.param("CUDA", marks=pytest.mark.full)])
def test_products_on_emulated_devices(dev):
  env = {**os.environ, "DEV": dev, "EMULATE": "1"}
  subprocess.run([sys.executable, "-c", ON_A_GPU], env=env, check=True)
