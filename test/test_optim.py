"""Optimizers: trajectories beside PyTorch's, flat buffers, exact restoring; clipping, schedules, jit."""

import warnings
import weakref

import numpy as np
import pytest

from mini import Device, Tensor, jit, nn, stats
from mini.ir.graph import shape
from mini.nn.state import StateError, get_state_dict, load_state_dict, part_of
from mini.types import DTypeError, MiniError, dtypes

STEPS = 12


def net():
  return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def data(n=STEPS):
  rng = np.random.default_rng(0)
  return rng.normal(size=(n, 4, 3)).astype(np.float32), rng.normal(size=(n, 4, 2)).astype(np.float32)


def loss_of(model, x, y):
  return (model(Tensor(x)) - Tensor(y)).square().mean()


def train(model, optimizer, steps=range(STEPS), before=lambda i: None, after=lambda i: None):
  x, y = data()
  losses = []
  for i in steps:
    optimizer.zero_grad()
    loss = loss_of(model, x[i], y[i])
    loss.backward()
    before(i)
    optimizer.step()
    after(i)
    losses.append(loss.item())
  return losses


def values(model):
  return [p.numpy() for p in model.parameters()]


def two_groups(model, **matrices):
  return [
    {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1, **matrices},
  ]


CASES = {
  "sgd": ("SGD", {"lr": 0.1}, None),
  "momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}, None),
  "dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}, None),
  "nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, None),
  "sgd groups": ("SGD", {"lr": 0.1}, {"momentum": 0.9, "nesterov": True}),
  "adam": ("Adam", {"lr": 0.01}, None),
  "adam decay": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-3}, None),
  "adamw": ("AdamW", {"lr": 0.01}, None),
  "adamw no decay": ("AdamW", {"lr": 0.01, "weight_decay": 0.0}, None),
  "adamw groups": ("AdamW", {"lr": 0.01}, {}),
  "adamw rates": ("AdamW", {"lr": 0.01}, {"lr": 0.03, "betas": (0.7, 0.8)}),
  "beta 0": ("AdamW", {"lr": 0.01, "betas": (0.0, 0.9)}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_trajectory(case):
  torch = pytest.importorskip("torch")
  name, settings, groups = CASES[case]
  theirs = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
  ours = net()
  ours.load_state_dict({n: t.numpy() for n, t in theirs.state_dict().items()})
  chosen = (lambda m: m.parameters()) if groups is None else (lambda m: two_groups(m, **groups))
  mine = getattr(nn.optim, name)(chosen(ours), **settings)
  other = getattr(torch.optim, name)(chosen(theirs), **settings)
  losses = train(ours, mine)
  for i, (x, y) in enumerate(zip(*data())):
    other.zero_grad()
    loss = ((theirs(torch.tensor(x)) - torch.tensor(y)) ** 2).mean()
    loss.backward()
    other.step()
    assert losses[i] == pytest.approx(loss.item(), rel=1e-5)
  for a, b in zip(values(ours), theirs.parameters()):
    np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("packed", [True, False])
def test_clip_grad_norm(norm_type, packed):
  torch = pytest.importorskip("torch")
  x, y = data(1)
  for limit in (0.05, 100.0):
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    ours = net()
    ours.load_state_dict({n: t.numpy() for n, t in theirs.state_dict().items()})
    if packed:
      nn.optim.AdamW(two_groups(ours))
    loss_of(ours, x[0], y[0]).backward()
    ((theirs(torch.tensor(x[0])) - torch.tensor(y[0])) ** 2).mean().backward()
    norm = nn.optim.clip_grad_norm(ours.parameters(), limit, norm_type)
    assert norm.item() == pytest.approx(
      torch.nn.utils.clip_grad_norm_(theirs.parameters(), limit, norm_type).item(), rel=1e-5
    )
    for a, b in zip(ours.parameters(), theirs.parameters()):
      np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-7)


def test_clip_grad_value():
  w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
  (w * Tensor([-5.0, 0.1, 5.0])).sum().backward()
  nn.optim.clip_grad_value([w], 1.0)
  np.testing.assert_allclose(w.grad.numpy(), [-1, 0.1, 1])


# ---------------------------------------------------------------- layout


def test_parameters_are_parts_of_one_buffer():
  model = net()
  before = values(model)
  nn.optim.AdamW(two_groups(model))
  flats = {part_of(p.uop)[0] for p in model.parameters()}
  (flat,) = flats
  assert flat.op == "buffer" and shape(flat) == (64,)
  starts = {name: part_of(p.uop)[1] for name, p in model.named_parameters()}
  assert starts == {"0.weight": 0, "2.weight": 15, "0.bias": 25, "2.bias": 30}  # decayed ones first
  for a, b in zip(before, values(model)):
    np.testing.assert_array_equal(a, b)
  assert {part_of(p.uop)[0] for p in model.parameters()} == flats  # reading a value moves nothing


def test_a_step_is_one_kernel():
  model = net()
  optimizer = nn.optim.AdamW(two_groups(model), lr=0.01)
  train(model, optimizer)
  for p in model.parameters():
    p.grad = Tensor(np.ones(p.shape, np.float32))
  nn.optim.clip_grad_value(model.parameters(), 1.0)  # gradients in one buffer
  flat = part_of(model[0].weight.grad._node)[0]
  Tensor(flat).realize()
  before = dict(stats)["kernels"]
  optimizer.step()
  assert dict(stats)["kernels"] - before <= 2  # the other one counts the step


@pytest.mark.parametrize("jitted", [False, True])
def test_gradients_in_memory_are_not_copied(jitted):
  """They stay what they are, and each is read by a kernel of its own; the numbers are those of gradients in a row, to
  the bit where a compiler joins the same multiplications and additions in both, which one for GPUs need not."""
  rng = np.random.default_rng(0)
  shapes = [(64, 4), (130,), (3, 3)]
  values, slopes = ([rng.standard_normal(s).astype(np.float32) for s in shapes] for _ in range(2))
  apart, together = ([Tensor(x, requires_grad=True) for x in values] for _ in range(2))
  first, second = (
    nn.optim.AdamW([{"params": ps[:1], "weight_decay": 0.1}, {"params": ps[1:]}], lr=0.1)
    for ps in (apart, together)
  )
  grads = [Tensor(x) for x in slopes]

  def step(*grads):
    for p, g in zip(apart, grads):
      p.grad = g
    first.step()

  step = jit(step) if jitted else step
  for _ in range(3):
    before = stats.kernels
    step(*grads)
    for p, g in zip(together, grads):
      p.grad = g * 1.0
    kernels = stats.kernels - before
    second.step()
    for p, q, x in zip(apart, together, slopes):
      np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=0 if Device.DEFAULT == "CPU" else 1e-6)
      np.testing.assert_array_equal(p.grad.numpy(), x)
  # in the order of their decay 256, 128 and 2, 9; the padding of parameters and of both states; the step's number, and
  # two that are made of it
  assert kernels <= 4 + 3 + 3


def test_a_new_rate_and_a_new_step_compile_nothing():
  model = net()
  optimizer = nn.optim.AdamW(two_groups(model), lr=0.01)
  train(model, optimizer, range(1))
  before = dict(stats)
  optimizer.lr = 0.002
  train(model, optimizer, range(1, 5))
  assert dict(stats)["compiles"] == before["compiles"] and dict(stats)["schedules"] == before["schedules"]


def test_rebound_parameters_keep_working():
  a, b = net(), net()
  b.load_state_dict(a.state_dict())
  oa, ob = (nn.optim.AdamW(two_groups(m), lr=0.01) for m in (a, b))
  fresh = np.full((5, 3), 0.5, np.float32)
  train(a, oa, range(3))
  train(b, ob, range(3))
  a[0].weight.assign(Tensor(fresh))
  b.load_state_dict({**b.state_dict(), "0.weight": fresh})
  assert train(a, oa, range(3, 8)) == train(b, ob, range(3, 8))
  for m in (a, b):
    assert len({part_of(p.uop)[0] for p in m.parameters()}) == 1
  for x, y in zip(values(a), values(b)):
    np.testing.assert_array_equal(x, y)


def test_loading_a_model_keeps_its_parameters_together():
  model = net()
  optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
  model.load_state_dict(net().state_dict())
  (flat,) = {part_of(p.uop)[0] for p in model.parameters()}
  assert flat.op == "buffer"
  train(model, optimizer, range(1))


def test_shared_parameters_appear_once():
  class Tied(nn.Module):
    def __init__(self):
      self.table = nn.Embedding(5, 3)
      self.head = nn.Linear(3, 5, bias=False)
      self.head.weight = self.table.weight

    def forward(self, i):
      return self.head(self.table(i))

  model = Tied()
  optimizer = nn.optim.SGD([*model.parameters(), model.table.weight], lr=0.1)
  assert len(optimizer.param_groups[0]["params"]) == 1
  before = model.table.weight.numpy()
  model(Tensor([1, 2])).cross_entropy(Tensor([0, 4])).backward()
  g = model.table.weight.grad.numpy()
  optimizer.step()
  # where both cancel, the rounding of their product is left
  np.testing.assert_allclose(model.head.weight.numpy(), before - np.float32(0.1) * g, rtol=1e-6, atol=1e-8)


def test_parameters_without_gradient_are_left_alone():
  torch = pytest.importorskip("torch")
  start = [np.ones(3, np.float32), np.full(2, 2, np.float32), np.full(4, 3, np.float32)]
  mine = [Tensor(x, requires_grad=True) for x in start]
  theirs = [torch.tensor(x, requires_grad=True) for x in start]
  a, b = nn.optim.AdamW(mine, lr=0.1), torch.optim.AdamW(theirs, lr=0.1)
  for used in ([0, 1], [0], [0, 1, 2], [2], [0, 1, 2]):
    a.zero_grad(), b.zero_grad()
    for ws, o in ((mine, a), (theirs, b)):
      sum(((ws[n] * (n + 1)) ** 2).sum() for n in used).backward()
      o.step()
    for x, y in zip(mine, theirs):
      np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.float16, dtypes.bfloat16])
def test_types(dtype):
  w = Tensor(np.linspace(-1, 1, 7), dtype=dtype).requires_grad_()
  v = Tensor(np.linspace(-1, 1, 7), requires_grad=True, dtype=dtypes.float32)
  optimizer = nn.optim.AdamW([w, v], lr=0.1)
  for _ in range(3):
    optimizer.zero_grad()
    ((w.float() - v) ** 2 + w.float() ** 2).sum().backward()
    optimizer.step()
  assert w.dtype is dtype and w.grad.dtype is dtype
  np.testing.assert_allclose(w.numpy()[3], 0, atol=0.05)
  assert abs(w.numpy()).max() < 0.8


def stepped(make, kind, count=20, **options):
  """1 after steps against a gradient of 1 + 1/64, which bfloat16 has."""
  w = Tensor.ones(4, 4, dtype=kind).requires_grad_()
  optimizer = make([w], lr=1e-3, **options)
  for _ in range(count):
    optimizer.zero_grad()
    (w.float() * (1 + 1 / 64)).sum().backward()
    optimizer.step()
  return w, optimizer


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adafactor", "LAMB", "Rprop"])
def test_master_weights_add_up_what_is_less_than_half_of_the_last_place(name):
  make = getattr(nn.optim, name)
  want, _ = stepped(make, dtypes.float32)
  w, optimizer = stepped(make, dtypes.bfloat16, master_weights=True)
  if name != "Rprop":  # whose steps grow
    assert stepped(make, dtypes.bfloat16)[0].numpy().max() == 1, "the steps are too large to be lost"
  state = optimizer.state_dict()["state"][0]
  np.testing.assert_allclose(state["master_param"].numpy(), want.numpy(), rtol=1e-6)
  np.testing.assert_array_equal(w.numpy(), want.bfloat16().numpy())
  assert w.dtype is dtypes.bfloat16
  assert {t.dtype for n, t in state.items() if n != "step"} == {dtypes.float32}


def test_master_weights_follow_what_is_set_and_are_restored():
  w, optimizer = stepped(nn.optim.AdamW, dtypes.bfloat16, master_weights=True)
  v, other = stepped(nn.optim.AdamW, dtypes.bfloat16, 3, master_weights=True)
  v.assign(w)
  other.load_state_dict(optimizer.state_dict())
  for o, x in ((optimizer, w), (other, v)):
    x.grad = Tensor.ones(4, 4, dtype="bfloat16")
    o.step()
  master = optimizer.state_dict()["state"][0]["master_param"].numpy()
  np.testing.assert_array_equal(other.state_dict()["state"][0]["master_param"].numpy(), master)
  before = v.numpy()[1, 1]
  held = v.numpy().copy()
  held[0] = 8.0
  v.assign(Tensor(held, dtype="bfloat16"))
  v.grad = Tensor.ones(4, 4, dtype="bfloat16")
  other.step()
  master = other.state_dict()["state"][0]["master_param"].numpy()
  assert abs(master[0] - 8).max() < 0.01 and abs(master[1:] - before).max() < 0.01
  with pytest.raises(StateError, match="master_param"):
    stepped(nn.optim.AdamW, dtypes.bfloat16, 1)[1].load_state_dict(other.state_dict())
  plain, masters = (stepped(nn.optim.AdamW, dtypes.bfloat16, 3, master_weights=m) for m in (False, True))
  masters[1].load_state_dict(plain[1].state_dict())  # they begin where the parameter is
  masters[0].grad = Tensor.ones(4, 4, dtype="bfloat16")
  masters[1].step()
  assert 0.99 < masters[1].state_dict()["state"][0]["master_param"].numpy().min() < 1


def test_master_weights_beside_wide_parameters_in_a_jitted_step():
  ws = [Tensor.ones(3, dtype=kind).requires_grad_() for kind in ("bfloat16", "float32", "float16")]
  optimizer = nn.optim.SGD(ws, lr=1e-4, momentum=0.9, master_weights=True)

  @jit
  def step():
    optimizer.zero_grad()
    sum((w.float() * 2).sum() for w in ws).backward()
    optimizer.step()

  for _ in range(8):
    step()
  state = optimizer.state_dict()["state"]
  assert ["master_param" in state[n] for n in range(3)] == [True, False, True]
  for n in (0, 2):
    np.testing.assert_allclose(state[n]["master_param"].numpy(), ws[1].numpy(), rtol=1e-6)
    np.testing.assert_array_equal(ws[n].numpy(), ws[1].cast(ws[n].dtype).numpy())


def test_a_gradient_of_a_wider_type_than_its_parameter():
  """In bfloat16, 256 + 1 is 256."""
  found = []
  for kind in (dtypes.bfloat16, dtypes.float32):
    w = Tensor.ones(2, dtype="bfloat16").requires_grad_()
    assert w.grad_dtype is dtypes.bfloat16
    w.grad_dtype = kind
    for factor in (256.0, *[1.0] * 16):
      (w.float() * factor).sum().backward()
      w.grad.realize()  # within a kernel, sums are not rounded
    norm = nn.optim.clip_grad_norm_([w], 1e9)
    optimizer = nn.optim.SGD([w], lr=2.0**-8)
    assert w.grad.dtype is w.grad_dtype is kind
    optimizer.step()
    found.append((w.grad.tolist(), w.tolist(), norm.item()))
    assert w.grad.dtype is kind and w.dtype is dtypes.bfloat16
  assert found[0][:2] == ([256.0] * 2, [0.0] * 2) and found[1][:2] == ([272.0] * 2, [-0.0625] * 2)
  assert found[1][2] == pytest.approx(272 * 2**0.5)
  x = np.random.default_rng(0).standard_normal((64, 3)).astype(np.float32)
  w = Tensor.ones(3, 2, dtype="bfloat16").requires_grad_()
  w.grad_dtype = dtypes.float32
  rounded = Tensor(x).bfloat16()
  (rounded @ w).sum().backward()  # what a product sums in float32 is not rounded on its way
  np.testing.assert_allclose(w.grad.numpy()[:, 0], rounded.numpy().sum(0), rtol=1e-5)
  for wrong in (
    lambda: setattr(w, "grad_dtype", dtypes.bfloat16),
    lambda: setattr(w * 2, "grad_dtype", dtypes.float32),
  ):
    with pytest.raises(MiniError, match="another type|was computed"):
      wrong()
  with pytest.raises(DTypeError, match="not int32"):
    w.grad_dtype = "int32"


# ---------------------------------------------------------------- state


@pytest.mark.parametrize("form", ["nested", "named", "arrays"])
def test_state_restores_exactly(form):
  straight, a, b = net(), net(), net()
  a.load_state_dict(straight.state_dict())
  whole = train(straight, nn.optim.AdamW(two_groups(straight), lr=0.01))
  oa = nn.optim.AdamW(two_groups(a), lr=0.01)
  first = train(a, oa, range(5))
  b.load_state_dict(a.state_dict())
  ob = nn.optim.AdamW(two_groups(b), lr=0.5)
  if form == "nested":
    ob.load_state_dict(oa.state_dict())
  elif form == "named":
    load_state_dict(ob, get_state_dict(oa))
  else:
    load_state_dict(ob, {name: t.numpy() for name, t in get_state_dict(oa).items()})
  assert first + train(b, ob, range(5, STEPS)) == whole
  for x, y in zip(values(b), values(straight)):
    np.testing.assert_array_equal(x, y)


def test_state_of_pytorch():
  torch = pytest.importorskip("torch")
  torch.manual_seed(0)
  theirs = torch.nn.Linear(3, 2)
  other = torch.optim.AdamW(theirs.parameters(), lr=0.1)

  def step():
    other.zero_grad()
    (theirs(torch.ones(1, 3)) ** 2).sum().backward()
    other.step()

  step(), step()
  ours = nn.Linear(3, 2)
  ours.load_state_dict({n: t.numpy() for n, t in theirs.state_dict().items()})
  mine = nn.optim.AdamW(ours.parameters(), lr=0.1)
  mine.load_state_dict(other.state_dict())
  step()
  (ours(Tensor.ones(1, 3)) ** 2).sum().backward()
  mine.step()
  np.testing.assert_allclose(ours.weight.numpy(), theirs.weight.detach().numpy(), rtol=1e-5)


def test_state_of_other_parameters():
  a, b = nn.optim.Adam(net().parameters()), nn.optim.Adam(nn.Linear(2, 2).parameters())
  with pytest.raises(StateError, match="other groups"):
    b.load_state_dict(a.state_dict())
  with pytest.raises(StateError, match="no state of this Adam"):
    load_state_dict(b, get_state_dict(a))


def test_errors():
  w = Tensor([1.0], requires_grad=True)
  with pytest.raises(MiniError, match="no parameters"):
    nn.optim.SGD([])
  with pytest.raises(MiniError, match="was not computed"):
    nn.optim.SGD([w * 2])
  with pytest.raises(ValueError, match="negative"):
    nn.optim.SGD([w], lr=-1.0)
  with pytest.raises(ValueError, match="nesterov needs momentum"):
    nn.optim.SGD([w], nesterov=True)
  with pytest.raises(ValueError, match="betas"):
    nn.optim.Adam([w], betas=(1.0, 0.9))


# ---------------------------------------------------------------- rates


SCHEDULES = {
  "StepLR": {"step_size": 3, "gamma": 0.5},
  "ExponentialLR": {"gamma": 0.8},
  "LinearLR": {"start_factor": 0.25, "end_factor": 1.0, "total_iters": 4},
  "CosineAnnealingLR": {"T_max": 10, "eta_min": 0.01},
  "LambdaLR": {"lr_lambda": lambda t: 0.5**t if t < 3 else 1 / (t + 1)},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name):
  torch = pytest.importorskip("torch")
  args = SCHEDULES[name]
  theirs = torch.nn.Linear(2, 2)
  other = torch.optim.SGD(theirs.parameters(), lr=0.4)
  mine = nn.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.4)
  a, b = (
    getattr(nn.optim.lr_scheduler, name)(mine, **args),
    getattr(torch.optim.lr_scheduler, name)(other, **args),
  )
  for _ in range(8):
    assert mine.lr.item() == pytest.approx(other.param_groups[0]["lr"], rel=1e-5)
    assert a.get_last_lr() == pytest.approx(b.get_last_lr(), rel=1e-5)
    other.step()
    a.step(), b.step()


def test_warmup_and_cosine():
  optimizer = nn.optim.SGD(nn.Linear(2, 2).parameters(), lr=2.0)
  schedule = nn.optim.lr_scheduler.WarmupCosineLR(optimizer, warmup=4, total=12, floor=0.1)
  found = []
  for _ in range(15):
    found.append(optimizer.lr.item())
    schedule.step()
  warm = [2 * (t + 1) / 4 for t in range(4)]
  down = [2 * (0.1 + 0.9 * (1 + np.cos(np.pi * t / 8)) / 2) for t in range(9)]
  np.testing.assert_allclose(found, [*warm, *down, 0.2, 0.2], rtol=1e-5)


def test_rates_of_groups():
  model = net()
  optimizer = nn.optim.SGD(two_groups(model), lr=0.5)
  assert len(optimizer.rates()) == 1
  optimizer.param_groups[1]["lr"] = 0.25
  assert [g["lr"].item() for g in optimizer.param_groups] == [0.5, 0.25]
  optimizer.lr = 0.125
  assert [g["lr"].item() for g in optimizer.param_groups] == [0.125, 0.125]


# ---------------------------------------------------------------- inside jit


def test_jitted_step_with_schedule_and_clipping():
  """The whole step as one routine gives what the same step gives without jit."""
  a, b = net(), net()
  b.load_state_dict(a.state_dict())
  x, y = data()

  def stepper(model):
    optimizer = nn.optim.AdamW(two_groups(model), lr=0.05)
    schedule = nn.optim.lr_scheduler.WarmupCosineLR(optimizer, 3, 10)

    def step(x, y):
      optimizer.zero_grad()
      loss = (model(x) - y).square().mean()
      loss.backward()
      norm = nn.optim.clip_grad_norm(model.parameters(), 0.5)
      optimizer.step()
      schedule.step()
      return loss, norm

    return step

  plain, captured = stepper(a), jit(stepper(b))
  for i in range(STEPS):
    args = Tensor(x[i]), Tensor(y[i])
    for p, q in zip(plain(*args), captured(*args)):
      assert p.item() == pytest.approx(q.item(), rel=1e-5)
  for p, q in zip(values(a), values(b)):
    np.testing.assert_allclose(p, q, rtol=1e-5, atol=1e-7)


def test_a_jitted_step_is_captured_once():
  """Also after a model was loaded, or once more where a parameter was bound to other memory: it becomes a part of the
  buffer again. The steps are those of an eager loop."""
  x, y = data()
  losses = []
  for wrap in (lambda f: f, jit):
    Tensor.manual_seed(1)
    model = net()
    optimizer = nn.optim.AdamW(two_groups(model), lr=0.05)
    model.load_state_dict(net().state_dict())
    model[0].bias.assign(Tensor.ones(5))

    def step(x, y, model=model, optimizer=optimizer):
      optimizer.zero_grad()
      loss = (model(x) - y).square().mean()
      loss.backward()
      optimizer.step()
      return loss

    run = wrap(step)
    for i in range(5):
      losses.append(run(Tensor(x[i]), Tensor(y[i])).item())
      if i == 1:
        before = dict(stats)["schedules"]
      optimizer.lr = 0.1 / (i + 1)
  assert dict(stats)["schedules"] == before
  assert losses[5:] == pytest.approx(losses[:5], rel=1e-5)
  assert len({part_of(p.uop)[0] for p in model.parameters()}) == 1


def test_a_jitted_step_of_some_parameters():
  """Those that get no gradient are set apart while the step is traced."""
  a, b = net(), net()
  b.load_state_dict(a.state_dict())
  x, y = data()

  def stepper(model):
    optimizer = nn.optim.AdamW(two_groups(model), lr=0.05)

    def step(x, y):
      optimizer.zero_grad()
      loss = (model[0](x).tanh() @ model[2].weight.T - y).square().mean()  # no bias
      loss.backward()
      optimizer.step()
      return loss

    return step

  plain, captured = stepper(a), jit(stepper(b))
  for i in range(4):
    args = Tensor(x[i]), Tensor(y[i])
    assert plain(*args).item() == pytest.approx(captured(*args).item(), rel=1e-5)
  for p, q in zip(values(a), values(b)):
    np.testing.assert_allclose(p, q, rtol=1e-5, atol=1e-7)


def test_a_step_before_any_gradient_is_a_warning():
  """PyTorch says nothing; a schedule that is only looked at may step so, and goes on."""
  w = Tensor([1.0], requires_grad=True)
  optimizer = nn.optim.SGD([w], lr=0.5)
  with pytest.warns(UserWarning, match=r"SGD.step\(\): no parameter has a gradient yet.*backward") as said:
    optimizer.step()
  assert w.tolist() == [1.0] and said[0].filename == __file__
  (3 * w).sum().backward()
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    optimizer.step()
    optimizer.zero_grad()
    optimizer.step()  # there is none now: it was seen to
  assert w.tolist() == [-0.5]


def test_a_step_of_ones_own_runs_each_time():
  class Slower(nn.optim.SGD):
    steps = 0

    def way(self, p, g, state, t, choose):
      self.steps += 1
      return p - g / self.steps, state

  w = Tensor([1.0], requires_grad=True)
  optimizer = Slower([w], lr=1.0)
  for _ in range(3):
    w.grad = None
    w.sum().backward()
    optimizer.step()
  assert w.item() == pytest.approx(1 - 1 - 1 / 2 - 1 / 3) and optimizer.steps == 3


def test_numbers_that_a_schedule_moves_compile_nothing():
  w = Tensor([1.0, 2.0], requires_grad=True)
  optimizer = nn.optim.AdamW([w], lr=0.1)
  made = []
  for n in range(6):
    optimizer.param_groups[0]["weight_decay"] = 0.01 * (n + 1)
    w.grad = None
    (w * w).sum().backward()
    optimizer.step()
    made.append(stats["schedules"])
  assert made[-1] == made[2]


def test_a_captured_step_holds_no_old_parameters():
  w = Tensor(np.ones(1000, np.float32), requires_grad=True)
  optimizer = nn.optim.SGD([w], lr=0.5)

  @jit
  def step():
    optimizer.zero_grad()
    loss = (w * w).sum()
    loss.backward()
    optimizer.step()
    return loss

  before = weakref.ref(optimizer._buckets[0].flat._uop.arg[0])
  for _ in range(2):
    step()
  assert before() is None and not w.numpy().any()
