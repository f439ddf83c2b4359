"""Mixed precision: which types results have, what they are, that gradients stay float32, and the scale of a loss;
numbers that are none of a type."""

import math
import re
import threading

import numpy as np
import pytest

import mini
from mini import Context, DTypeError, MiniError, Tensor, autocast, dtypes, jit, nn
from mini.tensor.autocast import FULL, LOW

# What PyTorch's lists for CPUs and GPUs agree on. x: f32[4, 6]   w: f32[6, 5]   b: f32[5]   i: f32[2, 3, 8, 8]   k: f32[4, 3, 3, 3]
SAME = """
x @ w   x.mm(w)   F.linear(x, w.T, b)   b.addmm(x, w)   x.unsqueeze(0).bmm(w.unsqueeze(0))   F.conv2d(i, k)   (x @ w).relu()
F.mse_loss(x @ w, x @ w * 2)   F.l1_loss(x @ w, x[:, :5])   F.cross_entropy(x @ w, t)   (x @ w).prod()   (x @ w) + b
F.scaled_dot_product_attention(x[None], x[None], x[None])   T.einsum("ij,jk->ik", x, w)   x + 1   x.double() @ w.double()
F.smooth_l1_loss(x @ w, x[:, :5])   F.kl_div(F.log_softmax(x, 1), F.softmax(x * 2, 1))   F.huber_loss(x @ w, x[:, :5])
"""
SAME_ROWS = [text for text in re.split(r"   |\n", SAME) if text]


class Functions:
  """torch.nn.functional, of methods."""

  def __getattr__(self, name):
    return getattr(Tensor, name)


def inputs(rng):
  shapes = {"x": (4, 6), "w": (6, 5), "b": (5,), "i": (2, 3, 8, 8), "k": (4, 3, 3, 3)}
  return {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()} | {
    "t": np.array([0, 3, 2, 4])
  }


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
@pytest.mark.parametrize("low", ["bfloat16", "float16"])
@pytest.mark.parametrize("text", SAME_ROWS)
def test_types_and_values_are_pytorchs(rng, text, low):
  torch = pytest.importorskip("torch")
  data = inputs(rng)
  theirs = {n: torch.tensor(a) for n, a in data.items()}
  ours = {n: Tensor(a) for n, a in data.items()}
  with torch.autocast("cpu", getattr(torch, low)):
    want = eval(text, {"F": torch.nn.functional, "T": torch, **theirs})
  with autocast(low):
    got = eval(text, {"F": Functions(), "T": Tensor, **ours})
  assert got.dtype.name == str(want.dtype).removeprefix("torch.")
  tight = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-8 if low == "bfloat16" else 2.0**-10}
  tolerance = tight.get(got.dtype.name, 1e-12)
  want = want.double().numpy()
  np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance * np.abs(want).max())


def test_every_name_is_a_method_on_one_list():
  low, full = LOW.split(), FULL.split()
  assert not set(low) & set(full) and all(hasattr(Tensor, name) for name in (*low, *full))


@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
def test_what_16_bits_are_too_coarse_for_is_float32(rng, dev):
  """GPU list of PyTorch: the exact result of what was rounded once, by the product."""
  x = inputs(rng)["x"]
  with Context(DEV=dev), autocast():
    y = Tensor(x).cast(dtypes.bfloat16)
    exact = y.numpy().astype(np.float64)
    for got, want in (
      (y.sum(), exact.sum()),
      (y.softmax(1), np.exp(exact) / np.exp(exact).sum(1, keepdims=True)),
      (y.exp(), np.exp(exact)),
      (y**2, exact**2),
      (y.norm(), np.sqrt((exact**2).sum())),
      (
        y.layer_norm((6,)),
        (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5),
      ),
    ):
      assert got.dtype is dtypes.float32
      np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
    assert (y + y).dtype is y.relu().dtype is dtypes.bfloat16
    assert (y.double() @ y.double().T).dtype is dtypes.float64 and (Tensor([[2]]) @ Tensor([[3]])).item() == 6


def test_blocks_nest_and_are_of_a_thread(rng):
  a = Tensor.ones(2, 2)

  @autocast("float16")
  def decorated():
    return (a @ a).dtype

  with autocast():
    assert (a @ a).dtype is dtypes.bfloat16 and decorated() is dtypes.float16
    with autocast(enabled=False):
      assert (a @ a).dtype is dtypes.float32
    with pytest.raises(ZeroDivisionError), autocast("float16"):
      1 / 0  # noqa: B018
    assert (a @ a).dtype is dtypes.bfloat16
  assert (a @ a).dtype is dtypes.float32
  with pytest.raises(DTypeError, match="not float32"):
    autocast("float32")


def test_complex_numbers_and_transforms_are_not_rounded(rng):
  x = rng.standard_normal((8, 60)).astype(np.float32)
  z = x[:, :8] + 1j * x[:, 8:16]
  c, k = Tensor(z, device="INTERP"), z[None, :3, :2]
  found = []
  with autocast():
    found += [
      (c @ c, z @ z),
      (c @ c.real, z @ z.real),
      (c.real @ c, z.real @ z),
      (c.exp().sum(), np.exp(z).sum()),
    ]
    found += [(c.linear(c), z @ z.T), (Tensor.einsum("ij,kj->ik", c, c), z @ z.T), (c**2.5, z**2.5)]
    found += [(c[:3, :2].unsqueeze(0).conv1d(Tensor(k, device="INTERP")).flatten(), (k * k).sum())]
    found += [(f(Tensor(y, device="INTERP")), getattr(np.fft, f.__name__)(y))
              for f, y in ((mini.fft.fft, z), (mini.fft.rfft, x), (mini.fft.irfft, z))]  # fmt: skip
  for got, want in found:
    assert got.dtype.name in ("complex64", "float32") and {p.dtype for p in got._parts()} == {dtypes.float32}
    assert abs(got.numpy() - want).max() < 2e-6 * abs(want).max()


def test_a_decorated_function_in_several_threads():
  """Each leaves the policy that it found, whoever comes and goes in between."""
  entered, left, both, found = threading.Event(), threading.Event(), threading.Barrier(2), {}

  @autocast("float16")
  def decorated(last):
    entered.set()
    both.wait(10)
    if last:
      left.wait(10)

  def call(last):
    with autocast("bfloat16", enabled=last):
      decorated(last)
      left.set()
      found[last] = (Tensor.ones(2, 2) @ Tensor.ones(2, 2)).dtype

  threads = [threading.Thread(target=call, args=(last,)) for last in (False, True)]
  for t in threads:
    t.start()
    entered.wait(10)
  for t in threads:
    t.join()
  assert found == {False: dtypes.float32, True: dtypes.bfloat16}


def test_sums_of_a_product_are_float32():
  """1024 + 1023 ones: in float16 or bfloat16 the sum would stay where it is."""
  x = Tensor.ones(1, 4096)
  with autocast("bfloat16"):
    assert (x @ x.T).item() == 4096


def test_a_jitted_function_is_captured_for_each_policy():
  f = jit(lambda x: x @ x)
  x = Tensor.ones(3, 3)
  for _ in range(2):
    with autocast():
      assert f(x).dtype is dtypes.bfloat16
    assert f(x).dtype is dtypes.float32
    with autocast("float16"):
      assert f(x).dtype is dtypes.float16


def test_parameters_and_gradients_are_float32_while_values_are_not(rng):
  """Gradients of many small steps add up in float32, where bfloat16 would lose them: as those of PyTorch."""
  torch = pytest.importorskip("torch")
  data = inputs(rng)
  w, v = Tensor(data["w"], requires_grad=True), torch.tensor(data["w"], requires_grad=True)
  seen = []
  for n in range(20):
    x = data["x"] * np.float32(1 if n == 0 else 1e-3)
    with autocast():
      y = Tensor(x) @ w
      seen.append(y.dtype)
      y.relu().sum().backward()
    with torch.autocast("cpu", torch.bfloat16):
      z = (torch.tensor(x) @ v).relu()
    z.float().sum().backward()
  assert set(seen) == {dtypes.bfloat16} and w.dtype is w.grad.dtype is dtypes.float32
  np.testing.assert_allclose(w.grad.numpy(), v.grad.numpy(), rtol=0.02, atol=0.02)
  first = np.abs(w.grad.numpy())
  rounded = w.grad.cast(dtypes.bfloat16).numpy()
  assert (rounded != w.grad.numpy()).any() and first.max() > 0


# ---------------------------------------------------------------- loss scaling


def test_a_scale_saves_what_float16_would_lose():
  def gradient(scaler):
    w = Tensor([[1.0]], requires_grad=True)
    optimizer = nn.optim.SGD([w], lr=1.0)
    with autocast("float16"):
      y = Tensor([[1.0]]) @ w
    loss = y.float() * 1e-9  # that of y, 1e-9, is less than the smallest float16
    scaler.scale(loss.sum()).backward()
    scaler.unscale_(optimizer)
    return w.grad.item()

  assert gradient(nn.GradScaler(enabled=False)) == 0
  assert gradient(nn.GradScaler()) == pytest.approx(1e-9, rel=0.01)


@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
def test_the_scale_goes_where_pytorchs_goes(dev):
  """Through steps that are left out, growth, and limits that are set: weights, scale and state at every step."""
  torch = pytest.importorskip("torch")
  settings = {"init_scale": 2.0**14, "growth_interval": 3, "growth_factor": 4.0, "backoff_factor": 0.25}
  with Context(DEV=dev):
    w, v = Tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
    ours, theirs = nn.optim.SGD([w], lr=0.01), torch.optim.SGD([v], lr=0.01)
    scaler, scaled = nn.GradScaler(**settings), torch.amp.GradScaler("cpu", **settings)
    for n in range(24):
      factor = float("inf") if n in (2, 3, 11) else float("nan") if n == 7 else 1.0 + n
      for loss, s, optimizer in (
        ((w * w * Tensor([factor, 1.0])).sum(), scaler, ours),
        ((v * v * torch.tensor([factor, 1.0])).sum(), scaled, theirs),
      ):
        optimizer.zero_grad()
        s.scale(loss).backward()
        if n % 2:
          s.unscale_(optimizer)
        s.step(optimizer)
        s.update(new_scale=2.0**100 if n == 16 else None)
      assert np.isfinite(w.numpy()).all()
      np.testing.assert_allclose(w.numpy(), v.detach().numpy(), rtol=1e-5)
      assert scaler.get_scale() == scaled.get_scale()
    assert scaler.state_dict() == scaled.state_dict()
  again = nn.GradScaler()
  again.load_state_dict(scaled.state_dict())
  assert again.state_dict() == scaler.state_dict()


def test_a_scale_never_becomes_infinite():
  scaler = nn.GradScaler(init_scale=3e38, growth_interval=1)
  w = Tensor([1.0], requires_grad=True)
  optimizer = nn.optim.SGD([w], lr=0.0)
  w.grad = Tensor([1.0])
  scaler.step(optimizer)
  scaler.update()
  assert scaler.get_scale() == pytest.approx(3e38)


def test_a_model_learns_in_float16_with_a_scale(rng):
  x = rng.standard_normal((64, 8)).astype(np.float32)
  y = (x[:, :1] * x[:, 1:2]).astype(np.float32)
  model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
  optimizer, scaler = (
    nn.optim.AdamW(model.parameters(), lr=0.02),
    nn.GradScaler(init_scale=2.0**20, growth_interval=40),
  )
  losses, scales = [], []
  for _ in range(60):
    optimizer.zero_grad()
    scales.append(scaler.get_scale())
    with autocast("float16"):
      loss = model(Tensor(x)).mse_loss(Tensor(y))
    assert loss.dtype is dtypes.float32
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.optim.clip_grad_norm(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
  assert losses[-1] < 0.2 * losses[0] and len(set(scales)) > 1  # it may have come back to where it began
  assert all(p.dtype is dtypes.float32 for p in model.parameters())


def test_calls_out_of_order_are_errors():
  w = Tensor([1.0], requires_grad=True)
  optimizer, scaler = nn.optim.SGD([w], lr=1.0), nn.GradScaler()
  with pytest.raises(MiniError, match="no gradients were looked at"):
    scaler.update()
  w.grad = Tensor([1.0])
  scaler.unscale_(optimizer)
  with pytest.raises(MiniError, match="already been called"):
    scaler.unscale_(optimizer)
  scaler.step(optimizer)
  with pytest.raises(MiniError, match="already been called"):
    scaler.step(optimizer)
  with pytest.raises(MiniError, match="comes before step"):
    scaler.unscale_(optimizer)
  scaler.update()
  half = Tensor([1.0], dtype=dtypes.float16, requires_grad=True)
  half.grad = Tensor([1.0], dtype=dtypes.float16)
  with pytest.raises(MiniError, match="a gradient is float16"):
    scaler.unscale_(nn.optim.SGD([half], lr=1.0))
  with pytest.raises(ValueError, match="growth factor"):
    nn.GradScaler(growth_factor=1.0)
  with pytest.raises(ValueError, match="backoff factor"):
    nn.GradScaler(backoff_factor=1.0)
  with pytest.raises(MiniError, match="closure"):
    scaler.step(optimizer, closure=lambda: None)


def test_without_being_enabled_nothing_changes():
  w = Tensor([1.0], requires_grad=True)
  optimizer, scaler = nn.optim.SGD([w], lr=1.0), nn.GradScaler(enabled=False)
  loss = (w * 2).sum()
  assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and not scaler.is_enabled()
  loss.backward()
  scaler.step(optimizer)
  scaler.update()
  assert w.tolist() == [-1.0] and scaler.state_dict() == {}


# ---------------------------------------------------------------- numbers that are none of a type


@pytest.mark.parametrize(
  "text",
  [
    "Tensor([300], dtype='uint8')",
    "Tensor([1, -129], dtype='int8')",
    "Tensor(-256, dtype='uint8')",
    "Tensor([300.5], dtype='uint8')",
    "Tensor.full((2,), 300, dtype='uint8')",
    "Tensor.full((2,), float('nan'), dtype='int32')",
    "small + 1000",
    "1000 - small",
    "small * 128",
    "small.clamp(-1000, 1000)",
    "(small > 0).where(small, 1000)",
    "small // 1000",
    "small.pad((1, 0), value=300)",
    "small.scatter(0, Tensor([0]), 300)",
    "small.index_fill(0, Tensor([0]), -1e9)",
    "small.__setitem__(0, 300)",
    "small.__setitem__(slice(1), [300])",
  ],
)
def test_an_integer_that_is_none_of_the_type_is_an_error(text):
  with pytest.raises(OverflowError, match="is no u?int(8|32)"):
    eval(text, {"Tensor": Tensor, "small": Tensor([1], dtype="int8")})


@pytest.mark.filterwarnings("error")
def test_a_list_is_compared_without_a_warning():
  half = Tensor([1.0, 2.0], dtype="float16")
  with pytest.raises(OverflowError, match="1000000000.0 is no float16"):
    half[:] = [1e9, 1.0]
  half[:] = [math.inf, 1.5]
  assert half.tolist() == [math.inf, 1.5]
  assert Tensor([Tensor(1.0), Tensor(2.0)]).tolist() == [1.0, 2.0]


# fmt: off
FLOATS = (  # the largest number, and what is rounded to it
  ("float16", 65504.0, 65519.0),
  ("bfloat16", 3.3895313892515355e38, 3.39e38),
  ("float32", 3.4028234663852886e38, 3.4028235e38),
  ("float64", 1.7976931348623157e308, 1.7976931348623157e308),
)
MEETS = {  # a number v meets a vector x, of which a mask m takes some; or becomes one like x
  "x + v": lambda x, v, m: x + v,
  "v * x": lambda x, v, m: v * x,
  "x / v": lambda x, v, m: x / v,
  "v - x": lambda x, v, m: v - x,
  "x += v": lambda x, v, m: x.clone().add_(v),
  "x.add(alpha)": lambda x, v, m: x.add(x, alpha=v),
  "maximum": lambda x, v, m: x.maximum(v),
  "clamp(max)": lambda x, v, m: x.clamp(max=v),
  "where": lambda x, v, m: m.where(x, v),
  "masked_fill": lambda x, v, m: x.masked_fill(m, v),
  "pad": lambda x, v, m: x.pad((1, 0), value=v),
  "x[0] = v": lambda x, v, m: put(x, 0, v),
  "x[m] = v": lambda x, v, m: put(x, m, v),
  "x[i] = v": lambda x, v, m: put(x, Tensor([1]), v),
  "scatter": lambda x, v, m: x.scatter(0, Tensor([1]), v),
  "index_fill": lambda x, v, m: x.index_fill(0, Tensor([1]), v),
  "hardtanh": lambda x, v, m: x.hardtanh(-1, abs(v)) * v,
  "full": lambda x, v, m: Tensor.full((2,), v, dtype=x.dtype),
  "fill_": lambda x, v, m: x.clone().fill_(v),
  "Tensor(v)": lambda x, v, m: Tensor(v, dtype=x.dtype),
  "Tensor([v])": lambda x, v, m: Tensor([1, v, math.nan], dtype=x.dtype),
  "linspace": lambda x, v, m: Tensor.linspace(0, v, 3, dtype=x.dtype),
}
# fmt: on


def put(x, i, v):
  x = x.clone()
  x[i] = v
  return x


@pytest.mark.parametrize("dtype, most, rounded", FLOATS, ids=[row[0] for row in FLOATS])
def test_a_finite_number_that_a_float_type_does_not_hold_is_an_error(dtype, most, rounded):
  """It would become infinite, as in PyTorch. What is rounded to the largest one fits, and so do infinities and NaN."""
  x, m = Tensor([1.0, 2.0], dtype=dtype), Tensor([True, False])
  beyond = 10**400 if dtype == "float64" else rounded * 1.01
  says = re.escape(f" is no {dtype}, whose largest number is {most:g}") + r'(.|\n)*float\("-?inf"\) would fit'
  for name, make in MEETS.items():
    if beyond != 10**400 or not name.startswith("Tensor"):  # of such integers there are no arrays
      for v in (beyond, -beyond):
        with pytest.raises(OverflowError, match=says):
          make(x, v, m)
    for v in (rounded, -math.inf)[: 1 if name == "linspace" else 2]:
      assert make(x, v, m).dtype == x.dtype
  assert (x * 0 + rounded).tolist() == [most, most] == [dtypes.finfo(x.dtype).max] * 2
  assert (x * 0 + math.inf).tolist() == [math.inf] * 2 and math.isnan((x + math.nan).tolist()[0])


def test_an_error_of_a_number_says_what_would_fit():
  half, single = Tensor([1.0], dtype="float16"), Tensor([1.0])
  for make, says in (
    (lambda: half * 1e9, r"(?s)a \* b: 1000000000.0 is no float16, whose largest number is 65504\n  a: f16\[1\]   made at .*b: 1000"),
    (lambda: half * 1e9, r"  float\(\"inf\"\) would fit; 1000000000.0 would after .float\(\)$"),
    (lambda: half - 1e300, r"1e\+300 would after .double\(\)$"),
    (lambda: half + 10**400, r"float\(\"inf\"\) would fit$"),
    (lambda: Tensor([True]) + 1e300, "is no float32"),
    (lambda: single * np.float64(1e300), "is no float32"),
    (lambda: half * np.float32(1e9), "is no float16"),
    (lambda: Tensor([1e300]), "is no float32"),
  ):  # fmt: skip
    with pytest.raises(OverflowError, match=says):
      make()
  assert (half.float() * 1e9).tolist() == [1e9] and (single.double() - 1e300).tolist() == [-1e300]
  assert Tensor(np.array([1e9]), dtype="float16").tolist() == [math.inf] == Tensor([1e9]).half().tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "bool"])
@pytest.mark.sample(6)
def test_numbers_beyond_a_type_are_compared(dtype):
  """With every number of the type the comparison is exact, and with the infinities."""
  values = [0, 1, -1]
  if "float" in dtype:
    limits = dtypes.finfo(getattr(dtypes, dtype))
    values += [limits.max, limits.min, math.inf, -math.inf, math.nan]
  x = Tensor(values, dtype=dtype)
  want = np.array(x.double().tolist())
  for v in (1e300, -1e300, *((1e39, -1e39) if dtype != "float16" else (65520.0, -1e5, 10**6))):
    found = [x < v, x <= v, x > v, x >= v, x == v, x != v, v < x, v == x]
    exact = [want < v, want <= v, want > v, want >= v, want == v, want != v, v < want, v == want]
    np.testing.assert_array_equal([t.numpy() for t in found], exact, err_msg=str(v))


def test_numpys_arrays_become_infinite_as_numpys():
  from mini import numpy as mnp

  half = mnp.ones(2, dtype=mnp.float16)
  for make in (
    lambda: half * 1e9,
    lambda: half + 1e9,
    lambda: mnp.full(2, 1e9, dtype=mnp.float16),
    lambda: mnp.array([1e9] * 2, dtype=mnp.float16),
  ):
    with pytest.warns(RuntimeWarning, match="overflow"):
      found = make()
    assert found.tolist() == [math.inf] * 2
  with pytest.warns(RuntimeWarning, match="overflow"):
    found = half < 1e9
  assert found.tolist() == [True] * 2


def test_what_fits_and_what_wraps_as_in_pytorch():
  small, byte = Tensor([1], dtype="int8"), Tensor([1], dtype="uint8")
  assert (
    (small + 126).tolist() == [127] and (small - 127).tolist() == [-126] and (byte * 255).tolist() == [255]
  )
  assert Tensor([-1], dtype="uint8").tolist() == [255] and (byte + -1).tolist() == [0]  # -1 is the largest
  assert (Tensor([100], dtype="uint8") < 300).tolist() == [True] and (small == 257).tolist() == [False]
  assert (byte > -1).tolist() == [True] and (255 + byte * 0 == -1).tolist() == [False]
  assert (small + 1000.0).tolist() == [1001.0] and (Tensor([True]) + 300).tolist() == [301]
  assert Tensor(np.array([300]), dtype="uint8").tolist() == [44] and Tensor([300]).cast("uint8").tolist() == [
    44
  ]
