"""Tensors on several devices: every operation on parts and on wholes, training on 1, 2 and 4,
what is copied, errors."""

import pickle
from functools import partial
from math import prod

import fuzz_tensor
import gpt2
import numpy as np
import pytest

from mini import Tensor, jit, nn, stats
from mini.engine import multi_program
from mini.engine.realize import Numbered
from mini.engine.sharded import cut_axis, portions
from mini.engine.spmd import spread
from mini.ir.uop import closed, rsize, toposort
from mini.nn.state import part_of
from mini.types import ShapeError
from runtime.base import DeviceError

CPUS = ("CPU", "CPU:1", "CPU:2", "CPU:3")
TWO, THREE = CPUS[:2], CPUS[:3]


def memory(t):
  """The buffers of a tensor on several devices."""
  return t.realize()._leaf().arg[0]


def axis_of(t):
  return memory(t).axis_of(t.shape)


def data(*s, kind=np.float32):
  return np.arange(np.prod(s)).reshape(s).astype(kind) % 13 - 6


def test_of_which_shapes_parts_are_pieces():
  x = memory(Tensor(data(4, 6)).shard(TWO, 1))
  assert x.fits((4, 6)) and x.fits((2, 2, 6)) and not x.fits((6, 4))
  assert memory(Tensor(data(4, 6)).shard(TWO)).fits((6, 4))


# ---------------------------------------------------------------- random programs


class Shards(fuzz_tensor.Fuzzer):
  """What enters a program is on several devices, in parts or whole."""

  def __init__(self, seed, devices):
    super().__init__(seed)
    self.devices, self.how = devices, np.random.default_rng(seed)  # the same program for all devices
    self.leaves = []

  def tensor(self, a, dtype=None):
    t = super().tensor(a, dtype)
    if self.how.random() < 0.3:
      t = t + 0 if t.dtype.kind != "b" else t | False  # not in memory yet
    axes = [axis for axis, n in enumerate(t.shape) if n >= 4]
    axis = int(self.how.choice(axes)) if axes and self.how.random() < 0.75 else None
    early = self.how.random() < 0.5
    if early and t.dtype.kind == "f":
      self.leaves.append(t.requires_grad_())
    t = t.shard(self.devices, axis)
    if not early and t.dtype.kind == "f":
      self.leaves.append(t.requires_grad_())
    return t


def failed(fuzzer):
  return f"{fuzzer.devices}:\n  " + "\n  ".join(fuzzer.log)


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[pytest.mark.full] * (n >= 4)) for n in range(32)])
def test_random_programs(seed):
  fuzzer = Shards(seed, CPUS[: 1 + seed % 4])
  try:
    fuzzer.run()
  except Exception as e:
    raise AssertionError(failed(fuzzer)) from e


class Smooth(Shards):
  """Programs that have gradients everywhere, which do not grow."""

  step_put = step_realize = step_unary = step_cast = lambda self: None


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[pytest.mark.full] * (n >= 2)) for n in range(10)])
def test_gradients_of_random_programs(seed):
  found = []
  for n in (1, 2 + seed % 3):
    fuzzer = Smooth(seed, CPUS[:n])
    fuzzer.run(8)
    outputs = [t for t, _ in fuzzer.pairs if t.requires_grad]
    for t in outputs:
      t.cast("float64").nan_to_num(0, 0, 0).sum().backward()
    found.append([t.grad.numpy() for t in fuzzer.leaves if t.grad is not None])
  for a, b in zip(*found, strict=True):
    np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-3 * np.abs(a[np.isfinite(a)]).max(initial=1))


# ---------------------------------------------------------------- each operation

INDEX = np.array([[0, 3, 1, 2, 2], [3, 3, 0, 1, 0], [1, 2, 3, 0, 1]])  # into an axis of 4
# name: (function of f32[6, 4, 5] and of a function that places other tensors, for each axis that x is cut along: where
# the result is cut, "whole" if the parts are brought together, "merged" if results are)
WHOLE, MERGED = "whole", "merged"
OPERATIONS = {
  "unary": (lambda x, on: (x * 0.25).exp(), (0, 1, 2)),
  "binary": (lambda x, on: x * x + x, (0, 1, 2)),
  "with a number": (lambda x, on: 2 * x - 1, (0, 1, 2)),
  "with one of memory": (lambda x, on: x * Tensor(3.0), (0, 1, 2)),
  "with a whole": (lambda x, on: x + on(data(4, 1)), (0, 1, 2)),
  "with a range": (lambda x, on: x + Tensor.arange(5), (0, 1, 2)),
  "where": (lambda x, on: (x > Tensor.arange(4).unsqueeze(1)).where(x, on(data(5))), (0, 1, 2)),
  "cast": (lambda x, on: x.cast("int32") // 3, (0, 1, 2)),
  "bitcast": (lambda x, on: x.bitcast("int32"), (0, 1, 2)),
  "sum": (lambda x, on: x.sum(0), (MERGED, 0, 1)),
  "sum of all": (lambda x, on: x.sum(), (MERGED, MERGED, MERGED)),
  "mean": (lambda x, on: x.mean((0, 2), keepdim=True), (MERGED, 1, MERGED)),
  "max": (lambda x, on: x.amax(1), (0, MERGED, 1)),
  "product": (lambda x, on: (x * 0.5).prod(2), (0, 1, MERGED)),
  "any": (lambda x, on: (x > 5).any(1), (0, MERGED, 1)),
  "permute": (lambda x, on: x.permute(2, 0, 1), (1, 2, 0)),
  "flatten": (lambda x, on: x.flatten(0, 1), (0, WHOLE, 1)),
  "flatten all": (lambda x, on: x.flatten(), (0, WHOLE, WHOLE)),
  "unflatten": (lambda x, on: x.unflatten(2, (5, 1)).unflatten(0, (1, 6)), (1, 2, 3)),
  "expand": (lambda x, on: x.unsqueeze(1).expand(6, 3, 4, 5), (0, 2, 3)),
  "pad": (lambda x, on: x.pad(((1, 2), (0, 0), (3, 1))), (0, 1, 2)),
  "shrink": (lambda x, on: x[1:5, :, 1:], (0, 1, 2)),
  "one of": (lambda x, on: x[:, 2], (0, 1, 1)),
  "flip": (lambda x, on: x.flip(1), (0, WHOLE, 2)),
  "cumsum": (lambda x, on: x.cumsum(2), (0, 1, WHOLE)),
  "matmul": (lambda x, on: x @ on(data(5, 7)), (0, 1, MERGED)),
  "batched matmul": (lambda x, on: x @ x.transpose(1, 2), (0, WHOLE, MERGED)),
  "softmax": (lambda x, on: x.softmax(1), (0, MERGED, 2)),
  "cat": (lambda x, on: Tensor.cat([x, x * 2], 1), (0, WHOLE, 2)),
  "cat with a whole": (lambda x, on: Tensor.cat([on(data(6, 1, 5)), x], 1), (0, WHOLE, 2)),
  "stack": (lambda x, on: Tensor.stack([x, x], 0), (1, 2, 3)),
  "rows": (lambda x, on: x[:, on(INDEX[0])], (0, WHOLE, 2)),
  "contiguous": (lambda x, on: (x + 1).contiguous() * 2, (0, 1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, 2, None])
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.sample(15)
def test_operation(name, axis, request):
  """On two devices and on three; in a quick run on three where that makes parts of unequal size."""
  f, cuts = OPERATIONS[name]
  a = data(6, 4, 5)
  want = f(Tensor(a), Tensor)
  for devices in (TWO, THREE) if request.config.option.full else (THREE,) if axis in (1, 2) else (TWO,):
    x = Tensor(a).shard(devices, axis)
    stats.reset()
    got = f(x, partial(Tensor, device=devices)).realize()
    copies, n = stats.copies, len(devices)
    if name in ("unary", "product", "softmax", "mean"):  # other kernels, or another order
      np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)
    else:
      np.testing.assert_array_equal(got.numpy(), want.numpy())
    assert got.device == devices and got.shape == want.shape and got.dtype is want.dtype
    cut = None if axis is None else cuts[axis]
    if isinstance(cut, str):
      assert copies and copies % (n * (n - 1)) == 0
    else:
      assert axis_of(got) == cut
      assert copies == (n - 1 if name == "with one of memory" else 0)
    if cut is None and devices == TWO:
      assert all((p.numpy() == memory(got).parts[0].numpy()).all() for p in memory(got).parts)


@pytest.mark.sample(3)
@pytest.mark.parametrize("devices", [THREE, pytest.param(TWO, marks=pytest.mark.full)])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("where", [0, 1, None])
def test_gather_and_scatter(devices, axis, where):
  """Table and indices, each in parts along either axis, or whole."""
  table, index = data(4, 5), INDEX
  t, i = Tensor(table).shard(devices, axis), Tensor(index).shard(devices, where)
  np.testing.assert_array_equal(t.gather(0, i).numpy(), np.take_along_axis(table, index, 0))
  for kind in ("sum", "amax", "prod"):
    want = Tensor(table).scatter_reduce(0, Tensor(index), Tensor(data(3, 5)), kind)
    got = t.scatter_reduce(0, i, Tensor(data(3, 5)).shard(devices, where), kind)
    np.testing.assert_array_equal(got.numpy(), want.numpy())
  got = t.scatter(0, i, Tensor(data(3, 5)).shard(devices, where))
  np.testing.assert_array_equal(
    got.numpy(), Tensor(table).scatter(0, Tensor(index), Tensor(data(3, 5))).numpy()
  )


def test_from_one_way_to_another():
  a = data(6, 4)
  x = Tensor(a).shard(TWO, 0)
  stats.reset()
  assert axis_of(x.shard(TWO, 1)) == 1 and stats.copies == 2  # each sends the other what it lacks
  assert axis_of(x.shard(TWO)) is None and axis_of(x.shard(TWO).shard(TWO, 1)) == 1
  assert memory(x.shard(CPUS[2:], 0)).device == CPUS[2:]
  for y in (x.shard(TWO, 1), x.shard(TWO), x.shard(CPUS[2:], 1), x.to("CPU:1"), x.to("CPU:3"), x.to(CPUS)):
    np.testing.assert_array_equal(y.numpy(), a)
  assert x.to("CPU:1").device == "CPU:1" and x.shard(("cpu:1",), 0).device == "CPU:1"
  other = Tensor(a[:4]).shard(TWO, 0) + x[2:]  # parts of 2 and 2, of 1 and 3
  np.testing.assert_array_equal(other.numpy(), a[:4] + a[2:])
  assert axis_of(Tensor(data(6, 2)).shard(THREE, 0).unflatten(0, (3, 2))) == 0  # two rows of each
  assert axis_of(Tensor(data(6, 2)).shard(TWO, 0).unflatten(0, (3, 2))) is None
  assert (x[1] + x[5]).tolist() == (a[1] + a[5]).tolist()


def test_sizes_of_parts():
  assert [portions(n, 4) for n in (8, 10, 3)] == [[2, 2, 2, 2], [3, 3, 2, 2], [1, 1, 1, 0]]
  assert [b.size for b in memory(Tensor(data(7, 3)).shard(CPUS, 0)).parts] == [6, 6, 6, 3]
  assert cut_axis((2, 3, 4), 2, (16, 8)) == 1 and cut_axis((1, 6), 1, (3, 3)) == 1
  with pytest.raises(ValueError, match="not cut along an axis"):
    cut_axis((24,), 2, (16, 8))


def test_memory_of_each_device():
  x = Tensor(data(8, 100))
  assert [b.nbytes for b in memory(x.shard(CPUS, 0)).parts] == [800] * 4
  assert [b.nbytes for b in memory(x.shard(CPUS)).parts] == [3200] * 4
  assert [b.device for b in memory(x.shard(CPUS, 1)).parts] == list(CPUS)
  before = stats.bytes_live
  y = (x.shard(CPUS, 0) * 2).realize()
  assert stats.bytes_live - before < 2 * x.nbytes and y.device == CPUS
  assert pickle.loads(pickle.dumps(y)).tolist() == y.tolist()


def test_what_is_in_memory_is_sent_once():
  x = Tensor(data(8, 3)).shard(TWO, 0)
  stats.reset()
  for _ in range(3):
    (x * 2).realize()
  assert not stats.copies


# ---------------------------------------------------------------- gradients


@pytest.mark.parametrize("axis", [0, 1, None])
def test_gradients_go_home(axis):
  a = data(6, 4)
  w = Tensor(a, requires_grad=True)
  (w.shard(TWO, axis) * Tensor(a).shard(TWO, 0)).sum().backward()
  assert w.grad.device == "CPU"
  np.testing.assert_array_equal(w.grad.numpy(), a)
  w = Tensor(a, requires_grad=True).shard_(TWO, axis)
  ((w * 2).to("CPU:2") * Tensor(a, device="CPU:2")).sum().backward()
  assert w.is_leaf and w.grad.device == TWO
  np.testing.assert_array_equal(w.grad.numpy(), 2 * a)


def test_normalization_is_over_the_whole_batch():
  a, w = data(6, 3, 5), data(7, 5)

  def gradient(place, near):
    v = near(Tensor(w, requires_grad=True))
    y = place(Tensor(a)) @ v.T
    y = (y - y.mean((0, 1))) / (y.var((0, 1)) + 1e-5).sqrt()
    (y.tanh() * Tensor.arange(7)).sum().backward()
    return v.grad.numpy()

  want = gradient(lambda x: x, lambda p: p)
  got = gradient(lambda x: x.shard(THREE, 0), lambda p: p.shard_(THREE))
  np.testing.assert_allclose(got, want, atol=1e-5)


# ---------------------------------------------------------------- random numbers


class Sizes(list):
  """How many elements each copy has."""

  def __init__(self, monkeypatch):
    super().__init__()
    transfer = multi_program.Run.transfer
    monkeypatch.setattr(
      multi_program.Run, "transfer", lambda run, a, b: (self.append(a.size), transfer(run, a, b))[1]
    )


def test_random_bits_are_made_where_they_are_used(monkeypatch):
  sizes = Sizes(monkeypatch)
  a = data(6, 40)
  found = []
  with Tensor.train():
    for place in (
      lambda x: x,
      lambda x: x.shard(TWO, 0),
      lambda x: x.shard(THREE, 1),
      lambda x: x.shard(TWO),
    ):
      Tensor.manual_seed(5)
      x = place(Tensor(a))
      found.append((x.dropout(0.4) + Tensor.rand(6, 40, device=x.device)).numpy())
  assert all((f == found[0]).all() for f in found) and (found[0] != a).any()
  assert not sizes or max(sizes) == 1
  x = Tensor(a).shard(TWO, 0).dropout(0.4, training=True)
  (value,) = spread([x._uop])
  numbered = Numbered(list(value.parts))
  for part in numbered.program(numbered.roots).parts:
    (kernel,) = part.program.schedule.src
    assert any(u.op == "threefry" for u in toposort(kernel))
    assert prod(map(rsize, closed(kernel))) == 3 * 40  # each makes its own


# ---------------------------------------------------------------- training


def mlp():
  return nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.LayerNorm(32), nn.Dropout(0.2), nn.Linear(32, 5))


def train(devices, model, loss_of, batches, optimizer, jitted=False, clip=False):
  """Parameters, losses, and how many copies each step made."""
  if len(devices) > 1:
    model.to(devices)
  o = optimizer(model.parameters())

  def step(x, y):
    o.zero_grad()
    loss = loss_of(model, x, y)
    loss.backward()
    if clip:
      nn.optim.clip_grad_norm(model.parameters(), 0.5)
    o.step()
    return loss

  run = jit(step) if jitted else step
  losses, copies = [], []
  for x, y in batches:
    x, y = Tensor(x).shard(devices, 0), Tensor(y).shard(devices, 0)
    stats.reset()
    losses.append(run(x, y).item())
    copies.append(stats.copies)
  if jitted:
    assert len(run.captured) == 1
  return [p.numpy() for p in model.parameters()], losses, copies


def batches(n, *s, classes=5):
  rng = np.random.default_rng(0)
  return [(rng.standard_normal(s).astype(np.float32), rng.integers(0, classes, s[0])) for _ in range(n)]


SETTINGS = {
  "adamw": (lambda p: nn.optim.AdamW(p, lr=0.01), {}),
  "jitted": (lambda p: nn.optim.AdamW(p, lr=0.01), {"jitted": True}),
  "clipped": (lambda p: nn.optim.AdamW(p, lr=0.01), {"jitted": True, "clip": True}),
  "sgd": (lambda p: nn.optim.SGD(p, lr=0.1), {}),
  "momentum": (lambda p: nn.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1), {"jitted": True}),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.full
def test_training(name):
  """The parameters of one device, after 20 steps; and what each step copies, whatever the model is."""
  optimizer, how = SETTINGS[name]
  found = {}
  for n in (1, 2, 4):
    Tensor.manual_seed(3)
    model = mlp()
    found[n] = train(
      CPUS[:n],
      model,
      lambda model, x, y: model(x).cross_entropy(y),
      batches(20, 10, 12),
      optimizer,
      **how,
    )
    if n > 1:
      for replicas in {part_of(p.uop)[0].arg[0] for p in model.parameters()}:
        assert all((p.numpy() == replicas.parts[0].numpy()).all() for p in replicas.parts)
  for n in (2, 4):
    for a, b in zip(found[1][0], found[n][0]):
      np.testing.assert_allclose(b, a, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found[n][1], found[1][1], rtol=1e-6)
    # the gradients, the loss, and how many rows count are merged; the state of the generator goes to n - 1 devices
    assert set(found[n][2]) == {3 * n * (n - 1) + 2 * (n - 1)}


def test_what_is_sent_is_not_made_by_a_kernel_that_waits():
  """The loss of one device is there before those of the others come: a kernel of the gradients, which has to wait for
  them, does not make on its way what the loss is made of."""
  rng = np.random.default_rng(0)
  h, w, y = rng.standard_normal((4, 64, 8)), rng.standard_normal((8, 16)), rng.integers(0, 16, (4, 64))

  def run(devices):
    x, target = Tensor(h.astype(np.float32)).shard(devices, 0), Tensor(y).shard(devices, 0)
    x.requires_grad_()
    made = x.scaled_dot_product_attention(x, x, is_causal=True) @ w.astype(np.float32)
    loss = made.reshape(-1, 16).cross_entropy(target.reshape(-1))
    (found,) = loss.gradient(x)
    Tensor.realize(loss, found)
    return loss.numpy(), found.numpy()

  for got, want in zip(run(("CPU", "CPU:1")), run(("CPU",))):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.full
def test_training_a_gpt():
  """Dropout, a tied embedding, groups with and without weight decay. AdamW's eps is larger than the rounding errors of
  gradients that are 0 (those of the keys' bias), which it would blow up."""
  config = gpt2.sized("pico", layers=1, width=16, vocabulary=61, block=8, dropout=0.1)
  rng = np.random.default_rng(1)
  tokens = rng.integers(0, 61, (20, 4, 9))
  found = {}
  for n in (1, 2, 4):
    Tensor.manual_seed(3)
    found[n] = train(
      CPUS[:n],
      gpt2.GPT2(config),
      lambda model, x, y: model.loss(x, y),
      [(t[:, :-1], t[:, 1:]) for t in tokens],
      lambda p: nn.optim.AdamW(
        [{"params": [q for q in p if q.ndim >= 2]}], lr=1e-3, weight_decay=0.1, eps=1e-6
      ),
      jitted=True,
      clip=True,
    )
  for n in (2, 4):
    for a, b in zip(found[1][0], found[n][0]):
      np.testing.assert_allclose(b, a, rtol=0, atol=1e-6)


def test_a_jitted_step_works_in_place():
  w = Tensor(data(6, 4)).shard(TWO, 0)
  v = Tensor(data(4)).shard(TWO)

  @jit
  def step(x, lr):
    w.assign(w - lr * x)
    v.assign(v + x.sum(0))
    return (w * v).sum(1)

  want, total = data(6, 4), data(4)
  for k in range(4):
    x = data(6, 4) + k
    got = step(Tensor(x).shard(TWO, 0), 0.5)
    want, total = want - np.float32(0.5) * x, total + x.sum(0)
    np.testing.assert_array_equal(got.numpy(), (want * total).sum(1))
    if k == 2:
      before = [p.memory for p in (*memory(w).parts, *memory(v).parts)]
  assert axis_of(got) == 0 and axis_of(w) == 0 and axis_of(v) is None
  assert [p.memory for p in (*memory(w).parts, *memory(v).parts)] == before
  held = memory(w)
  kept = held.numpy()
  step(Tensor(x).shard(TWO, 0), 0.5)
  np.testing.assert_array_equal(held.numpy(), kept)  # who holds the old value keeps it
  assert len(step.captured) == 1
  step(Tensor(x).shard(TWO, 1), 0.5)  # cut in another way: captured anew
  assert len(step.captured) == 2


def test_sharding_inside_of_jit():
  w = Tensor(data(4), device=TWO)

  @jit
  def f(x):
    y = x.shard(TWO, 0) * w
    return y, y.sum(0), x.shard(TWO), y.to("CPU")

  for k in range(3):
    a = data(6, 4) + k
    y, total, whole, near = f(Tensor(a))
    np.testing.assert_array_equal(y.numpy(), a * data(4))
    np.testing.assert_array_equal(near.numpy(), a * data(4))
    np.testing.assert_array_equal(total.numpy(), (a * data(4)).sum(0))
    np.testing.assert_array_equal(whole.numpy(), a)
    assert (axis_of(y), axis_of(whole), near.device) == (0, None, "CPU")


def test_two_that_begin_with_the_same_memory():
  """A part may be the memory of another tensor: each of them is updated for itself."""
  a = Tensor(data(4)).realize()
  b = a.to(TWO).realize()
  assert memory(b).parts[0] is a._leaf().arg[0]

  @jit
  def step(x):
    a.assign(a + x)
    return b + x.to(TWO)

  for k in range(3):
    assert step(Tensor(data(4))).tolist() == (2 * data(4)).tolist()
  assert a.tolist() == (4 * data(4)).tolist()


def test_devices_of_several_kinds():
  devices = ("CPU", "INTERP", "INTERP:1")
  found = {}
  for names in (("CPU",), devices):
    Tensor.manual_seed(3)
    found[names] = train(
      names,
      mlp(),
      lambda model, x, y: model(x).cross_entropy(y),
      batches(5, 10, 12),
      lambda p: nn.optim.SGD(p, lr=0.1),
      jitted=True,
    )
  for a, b in zip(found["CPU",][0], found[devices][0]):
    np.testing.assert_allclose(b, a, atol=1e-5)


def test_an_optimizer_that_was_there_before():
  """Its state follows the parameters to several devices, and back."""
  found = []
  for places in ([None] * 4, [None, TWO, TWO, "CPU"]):
    Tensor.manual_seed(0)
    model = nn.Linear(12, 3)
    o = nn.optim.AdamW(model.parameters(), lr=0.1)
    for place, (x, _) in zip(places, batches(4, 8, 12)):
      if place is not None:
        model.to(place)
      x = Tensor(x).shard(place, 0) if isinstance(place, tuple) else Tensor(x)
      o.zero_grad()
      model(x).square().mean().backward()
      o.step()
    found.append([p.numpy() for p in model.parameters()])
  for a, b in zip(*found):
    np.testing.assert_allclose(b, a, atol=1e-6)


def test_state_is_saved_and_loaded(tmp_path):
  model, other = mlp().to(TWO), mlp()
  nn.state.safe_save(nn.state.get_state_dict(model), tmp_path / "m")
  other.load_state_dict(nn.state.safe_load(tmp_path / "m"))
  model.load_state_dict(other.state_dict())
  for a, b in zip(model.parameters(), other.parameters()):
    assert a.device == TWO and b.device == "CPU" and (a.numpy() == b.numpy()).all()


# ---------------------------------------------------------------- errors


def test_errors():
  x = Tensor(data(6, 4)).shard(TWO, 0)
  with pytest.raises(DeviceError) as e:
    x + Tensor(data(4))
  assert "a + b: its inputs are on CPU and CPU:1 and on CPU" in str(e.value)
  assert str(e.value).count("made at ") == 2 and "b.shard(('CPU', 'CPU:1')) would fit" in str(e.value)
  with pytest.raises(DeviceError, match="CPU and CPU:1 and on CPU and CPU:2"):
    x * Tensor(data(4)).shard(("CPU", "CPU:2"))
  with pytest.raises(DeviceError, match="different ones, not CPU, CPU"):
    x.shard(("CPU", "cpu:0"))
  with pytest.raises(DeviceError, match="no device 'GPU'"):
    x.shard(("CPU", "GPU"), 0)
  with pytest.raises(ShapeError, match="axis 1 of x has no element for each of 2 devices"):
    Tensor(data(6, 1)).shard(TWO, 1)
  with pytest.raises(ShapeError, match="there is no axis 2"):
    x.shard(TWO, 2)
  with pytest.raises(IndexError, match="index 7 is out of bounds for an axis of size 6"):
    Tensor(data(6, 4)).shard(TWO)[Tensor([1, 2, 3, 7]).shard(TWO, 0)].realize()
  with pytest.raises(DeviceError, match="linear: its inputs are on CPU and on CPU and CPU:1"):
    nn.Linear(4, 2).to(TWO)(Tensor(data(6, 4)))


def test_each_part_that_goes_to_another_device_is_a_copy():
  x = Tensor(np.ones((4, 2), np.float32)).realize()
  for devices, copies in ((TWO, 1), (THREE, 2)):
    before = stats["copies"]
    x.to(devices).realize()
    assert stats["copies"] - before == copies
    x.shard(devices, 0).realize()
    assert stats["copies"] - before == 2 * copies
