"""Optimizers and schedules beside PyTorch's, or beside their papers' formulas in NumPy: trajectories of 50 steps."""

import inspect

import numpy as np
import pytest

import mini
from mini import ShapeError, Tensor, jit, nn

torch = pytest.importorskip("torch")

STEPS = 50
SHAPES = [(4, 3), (4,), (2, 4)]
RNG = np.random.default_rng(1)
BEGIN = [RNG.standard_normal(s).astype(np.float32) for s in SHAPES]
GOAL = [RNG.standard_normal(s).astype(np.float32) for s in SHAPES]
SCALE = [np.exp(RNG.standard_normal(s)).astype(np.float32) for s in SHAPES]


def gradients(params):
  """Of sum of scale * (p - goal)**2 / 2 + sin(p), for NumPy arrays."""
  return [(s * (p - t) + np.cos(p)).astype(p.dtype) for p, t, s in zip(params, GOAL, SCALE)]


def loss_of(params, like):
  terms = [(like(s) * (p - like(t)) ** 2).sum() / 2 + p.sin().sum() for p, t, s in zip(params, GOAL, SCALE)]
  return terms[0] + terms[1] + terms[2]


def trained(cls, groups, **options):
  """Our parameters after each 10th step, jitted."""
  params = [Tensor(p, requires_grad=True) for p in BEGIN]
  optimizer = cls(groups(params), **options)

  @jit
  def step():
    optimizer.zero_grad()
    loss_of(params, Tensor).backward()
    optimizer.step()

  found = []
  for n in range(STEPS):
    step()
    if n % 10 in (0, 9):
      found.append([p.numpy() for p in params])
  return found


CASES = {
  "Adagrad": [{}, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}],
  "Adadelta": [{}, {"rho": 0.8, "weight_decay": 0.1, "maximize": True}],
  "RMSprop": [{}, {"lr": 0.02, "centered": True, "momentum": 0.5, "weight_decay": 0.1, "eps": 1e-2}],
  "NAdam": [{"lr": 0.02}, {"momentum_decay": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}],
  "RAdam": [{"lr": 0.02}, {"lr": 0.02, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}],
  "Adamax": [{"lr": 0.02}, {"betas": (0.7, 0.8), "weight_decay": 0.1, "eps": 1e-3}],
  "Adam": [
    {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True},
    {"lr": 0.1, "betas": (0.5, 0.6), "amsgrad": True},
    {"lr": 0.02, "weight_decay": 0.1, "maximize": True, "amsgrad": True},
  ],
  "AdamW": [
    {"lr": 0.1, "betas": (0.5, 0.6), "maximize": True},
    {"lr": 0.02, "weight_decay": 0.1, "amsgrad": True},
  ],
  "SGD": [{"lr": 0.02, "momentum": 0.9, "weight_decay": 0.1, "maximize": True, "nesterov": True}],
  "ASGD": [{}, {"lr": 0.05, "lambd": 0.1, "alpha": 0.5, "t0": 10, "weight_decay": 0.1}],
  "Adafactor": [{}, {"lr": 0.02, "beta2_decay": -0.5, "d": 1.5, "eps": (1e-4, 1e-2), "weight_decay": 0.1}],
  "Rprop": [{}, {"lr": 0.2, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.5), "maximize": True}],
}


@pytest.mark.parametrize("name, options", [(n, o) for n, os in CASES.items() for o in os])
def test_trajectory(name, options):
  def groups(ps):
    rest = {"weight_decay": 0.3, "lr": 0.05, "maximize": False}
    return list(ps) if "weight_decay" not in options else [{"params": ps[:2]}, {"params": ps[2:], **rest}]

  params = [torch.tensor(p, requires_grad=True) for p in BEGIN]
  optimizer = getattr(torch.optim, name)(groups(params), **options)
  found = iter(trained(getattr(nn.optim, name), groups, **options))
  for n in range(STEPS):
    optimizer.zero_grad()
    loss_of(params, torch.tensor).backward()
    optimizer.step()
    if n % 10 in (0, 9):
      for a, b in zip(next(found), params):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-5, atol=1e-5, err_msg=f"step {n}")


# ---------------------------------------------------------------- from papers


def norm(x):
  return np.sqrt((x * x).sum())


def lion(p, g, s, t, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
  m = s.setdefault("m", np.zeros_like(p))
  s["m"] = betas[1] * m + (1 - betas[1]) * g
  return p - lr * (np.sign(betas[0] * m + (1 - betas[0]) * g) + weight_decay * p)


def lamb(p, g, s, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
  s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
  s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g * g
  r = s["m"] / (1 - betas[0] ** t) / (np.sqrt(s["v"] / (1 - betas[1] ** t)) + eps) + weight_decay * p
  return p - lr * norm(p) / norm(r) * r


def lars(p, g, s, t, lr=0.1, momentum=0.9, weight_decay=0.0, trust_coefficient=0.001):
  rate = lr * trust_coefficient * norm(p) / (norm(g) + weight_decay * norm(p))
  s["v"] = momentum * s.get("v", 0) + rate * (g + weight_decay * p)
  return p - s["v"]


def muon(p, g, s, t, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, adjust_lr_fn=None):
  s["m"] = momentum * s.get("m", 0) + (1 - momentum) * g
  x = (1 - momentum) * g + momentum * s["m"] if nesterov else s["m"]
  x = x / norm(x)
  for _ in range(5):
    a = x @ x.T
    x = 3.4445 * x - 4.775 * a @ x + 2.0315 * a @ a @ x
  rows, columns = p.shape
  scale = 0.2 * max(rows, columns) ** 0.5 if adjust_lr_fn else max(1, rows / columns) ** 0.5
  return p * (1 - lr * weight_decay) - lr * scale * x


PAPERS = [
  ("Lion", lion, {"lr": 0.01}),
  ("Lion", lion, {"lr": 0.02, "betas": (0.5, 0.8), "weight_decay": 0.1}),
  ("LAMB", lamb, {"lr": 0.02}),
  ("LAMB", lamb, {"lr": 0.02, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
  ("LARS", lars, {"trust_coefficient": 0.1}),
  ("LARS", lars, {"lr": 0.2, "momentum": 0.5, "weight_decay": 0.1, "trust_coefficient": 0.1}),
  ("Muon", muon, {"lr": 0.02}),
  ("Muon", muon, {"lr": 0.02, "nesterov": False, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0}),
]


@pytest.mark.parametrize("name, formula, options", PAPERS)
def test_paper(name, formula, options):
  keep = [0, 2] if name == "Muon" else [0, 1, 2]
  found = iter(trained(getattr(nn.optim, name), lambda ps: [ps[n] for n in keep], **options))
  params, states = [p.astype(np.float64) for p in BEGIN], [{} for _ in BEGIN]
  for n in range(STEPS):
    gs = gradients(params)
    for i in keep:
      params[i] = formula(params[i], gs[i], states[i], n + 1, **options)
    if n % 10 in (0, 9):
      for i, a in zip(range(3), next(found)):
        np.testing.assert_allclose(a, params[i], rtol=1e-5, atol=2e-5, err_msg=f"step {n}")


def test_state_goes_around():
  params = [Tensor(p, requires_grad=True) for p in BEGIN]
  first = nn.optim.RMSprop(params, momentum=0.9, centered=True)
  for _ in range(2):
    first.zero_grad(), loss_of(params, Tensor).backward(), first.step()
  assert sorted(first.state_dict()["state"][0]) == ["grad_avg", "momentum_buffer", "square_avg", "step"]
  second = nn.optim.RMSprop(
    [Tensor(p.numpy(), requires_grad=True) for p in params], momentum=0.9, centered=True
  )
  second.load_state_dict(first.state_dict())
  for o in (first, second):
    ps = o.param_groups[0]["params"]
    o.zero_grad(), loss_of(ps, Tensor).backward(), o.step()
  for a, b in zip(params, second.param_groups[0]["params"]):
    assert np.array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Rprop", "LAMB"])
def test_optimize_is_a_step_that_touches_nothing(name):
  """Beside step(), to the last bit; jitted or not, its state handed on or the optimizer's own."""

  def made():
    ps = [Tensor(p, requires_grad=True) for p in BEGIN]
    decays = [{"params": ps[:2]}, {"params": ps[2:], "weight_decay": 0.1}]
    return ps, getattr(nn.optim, name)(decays, lr=0.05, **({"momentum": 0.9} if name == "SGD" else {}))

  ps, stepped = made()
  own, optimizer = made()
  slopes = mini.grad(lambda tree: loss_of([*tree["a"], tree["b"]], Tensor))
  step = jit(lambda tree, gs, state: nn.optim.optimize(tree, gs, optimizer, state))
  # outside of jit small sums are added up in another order
  first = mini.optimize if name != "LAMB" else jit(mini.optimize)
  tree, state = {"a": [Tensor(p) for p in BEGIN[:2]], "b": Tensor(BEGIN[2])}, None
  for n in range(5):
    gs = slopes(tree)
    for p, g in zip(ps, [*gs["a"], gs["b"]]):
      p.grad = Tensor(g.numpy())
    stepped.step()
    tree, state = first(tree, gs, optimizer) if n == 0 else step(tree, gs, state)
    for p, q in zip(ps, [*tree["a"], tree["b"]]):
      assert np.array_equal(p.numpy(), q.numpy()), n
  assert [np.array_equal(p.numpy(), b) for p, b in zip(own, BEGIN)] == [True] * 3
  assert optimizer.state_dict()["state"][0]["step"].item() == 0 and sorted(state) == [f"0.{n}" for n in sorted(("step", *optimizer.slots))]  # fmt: skip


def test_optimize_can_be_differentiated():
  sgd, w, g = (
    nn.optim.SGD([Tensor([1.0, 2.0], requires_grad=True)], lr=0.5),
    Tensor([3.0, 4.0]),
    Tensor([1.0, 1.0]),
  )
  through = mini.grad(lambda w, g: mini.optimize([w], [g], sgd)[0][0].square().sum(), argnums=(0, 1))(w, g)
  assert [t.tolist() for t in through] == [[5.0, 7.0], [-2.5, -3.5]]
  with pytest.raises(ShapeError, match="as the optimizer's 1 parameters"):
    mini.optimize([w, w], [g, g], sgd)
  with pytest.raises(ValueError, match="no 0.step"):
    mini.optimize([w], [g], sgd, {})


def test_errors():
  w = [Tensor([1.0], requires_grad=True)]
  with pytest.raises(
    TypeError,
    match=r"Lion\(params, lr=0.0001, betas=.*, maximize=False, master_weights=False.*\): got an unexpected keyword argument 'beta'",
  ):
    nn.optim.Lion(w, beta=1)
  with pytest.raises(ShapeError, match="Muon: a parameter is no matrix"):
    nn.optim.Muon(w)
  with pytest.raises(ValueError, match="not between 0 and 1"):
    nn.optim.NAdam(w, betas=(1.0, 0.5))
  with pytest.raises(AttributeError, match="nn.optim' has no attribute 'Adagard'"):
    nn.optim.Adagard  # noqa: B018


def test_words_without_effect():
  """foreach, fused, capturable and differentiable are taken, and change nothing; they are no settings of groups."""
  for name in CASES:
    w = [Tensor([1.0], requires_grad=True)]
    optimizer = getattr(nn.optim, name)(w, foreach=True, fused=False, capturable=True, differentiable=False)
    assert not {"foreach", "fused", "capturable", "differentiable"} & optimizer.param_groups[0].keys()


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}])
def test_a_group_that_is_added_later(options):
  ps, qs = (
    [Tensor(p, requires_grad=True) for p in BEGIN],
    [torch.tensor(p, requires_grad=True) for p in BEGIN],
  )
  a, b = nn.optim.SGD(ps[:1], lr=0.02, **options), torch.optim.SGD(qs[:1], lr=0.02, **options)
  for n in range(6):
    if n == 2:
      a.add_param_group({"params": ps[1:], "lr": 0.05, "momentum": 0.5})
      b.add_param_group({"params": qs[1:], "lr": 0.05, "momentum": 0.5})
      assert sorted(a.state_dict()["state"]) == [0, 1, 2]
    for optimizer, params, like in ((a, ps, Tensor), (b, qs, torch.tensor)):
      optimizer.zero_grad(), loss_of(params, like).backward(), optimizer.step()
    if n == 1:  # gradients of what is no parameter yet do not go
      for p in (*ps[1:], *qs[1:]):
        p.grad = None
  for p, q in zip(ps, qs):
    np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6)
  assert [g["lr"].item() for g in a.param_groups] == pytest.approx([0.02, 0.05])


# ---------------------------------------------------------------- schedules

SCHEDULES = """
MultiStepLR(o,[3,7],0.5)   ConstantLR(o,0.3,4)   PolynomialLR(o,8,2.0)   CosineAnnealingWarmRestarts(o,5)
CosineAnnealingWarmRestarts(o,3,2,0.1)   StepLR(o,4,0.3)   LinearLR(o,0.2,0.9,6)   ExponentialLR(o,0.9)
CosineAnnealingLR(o,30,0.1)
CyclicLR(o,0.1,0.8,3,5,cycle_momentum=False)   CyclicLR(o,0.1,0.8,4,mode='triangular2',cycle_momentum=False)
CyclicLR(o,0.1,0.8,3,mode='exp_range',gamma=0.9,cycle_momentum=False)   OneCycleLR(o,2.0,20,cycle_momentum=False)
OneCycleLR(o,2.0,20,anneal_strategy='linear',three_phase=True,pct_start=0.4,cycle_momentum=False)
SequentialLR(o,[ConstantLR(o,0.1,3),ExponentialLR(o,0.9)],[5])
ChainedScheduler([ConstantLR(o,0.1,3),ExponentialLR(o,0.9)],o)   ChainedScheduler([LinearLR(o),ExponentialLR(o,0.9)])   MultiplicativeLR(o,lambda t: 0.9)
SequentialLR(o,[LambdaLR(o,lambda t: 0.5**t),ExponentialLR(o,0.9)],[3])   LambdaLR(o,[lambda t: 1/(t+1)])
"""


@pytest.mark.parametrize(
  "expression", [e.strip() for line in SCHEDULES.strip().splitlines() for e in line.split("   ")]
)
def test_schedule(expression):
  ours = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
  theirs = torch.optim.SGD([torch.tensor([1.0], requires_grad=True)], lr=0.5)
  a = eval(expression, {**vars(nn.optim.lr_scheduler), "o": ours})
  b = eval(expression, {**vars(torch.optim.lr_scheduler), "o": theirs})
  found, wanted = [], []
  for _ in range(20):
    found.append(ours.lr.item()), wanted.append(theirs.param_groups[0]["lr"])
    theirs.step(), a.step() if len(found) < 20 else None, b.step() if len(found) < 20 else None
  np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


GOING_ON = """
StepLR(o,4,0.3,last_epoch=5)   LinearLR(o,0.2,0.9,6,2)   ExponentialLR(o,0.9,last_epoch=3)   MultiStepLR(o,[3,7],0.5,4)
CosineAnnealingLR(o,30,0.1,6)   PolynomialLR(o,8,2.0,3)   ConstantLR(o,0.3,4,last_epoch=1)   LambdaLR(o,lambda t: 1/(t+1),4)
CosineAnnealingWarmRestarts(o,5,last_epoch=7)   OneCycleLR(o,2.0,20,cycle_momentum=False,last_epoch=9)
CyclicLR(o,0.1,0.8,3,5,cycle_momentum=False,last_epoch=3)
"""


@pytest.mark.parametrize(
  "expression", [e.strip() for line in GOING_ON.strip().splitlines() for e in line.split("   ")]
)
def test_schedule_goes_on(expression):
  """As a schedule without last_epoch that has made those steps."""
  ours, whole = (nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5) for _ in range(2))
  name, rest = expression.split("(", 1)
  schedules, theirs = vars(nn.optim.lr_scheduler), inspect.signature(getattr(torch.optim.lr_scheduler, name))
  bound = theirs.bind(*eval(f"(lambda *a, **k: (a, k))({rest}", {"o": None})[0])
  for keyword, value in eval(f"(lambda *a, **k: k)({rest}", {"o": None}).items():
    bound.arguments[keyword] = value
  done = bound.arguments.pop("last_epoch")
  bound.arguments["optimizer"] = whole
  b = schedules[name](*bound.args, **bound.kwargs)
  for _ in range(done + 1):
    b.step()
  with pytest.raises(KeyError, match="a group has no initial_lr"):
    eval(expression, {**schedules, "o": ours})
  ours = nn.optim.SGD([{"params": [Tensor([1.0], requires_grad=True)], "initial_lr": 0.5}], lr=0.3)
  a = eval(expression, {**schedules, "o": ours})
  for _ in range(5):
    assert ours.lr.item() == pytest.approx(whole.lr.item(), rel=1e-5)
    a.step(), b.step()


MOVING = """
CyclicLR(o,0.01,0.08,3,5)   CyclicLR(o,0.01,0.08,4,mode='triangular2',base_momentum=0.5,max_momentum=0.8)
CyclicLR(o,0.01,0.08,3,mode='exp_range',gamma=0.9)   CyclicLR(o,0.01,0.08,2,scale_fn=lambda n: 1/(n+1),scale_mode='iterations')
CyclicLR(o,0.01,0.08,2,scale_fn=lambda n: 1/n)   OneCycleLR(o,0.1,20)
OneCycleLR(o,0.1,20,anneal_strategy='linear',three_phase=True,pct_start=0.4,base_momentum=0.6)
"""


@pytest.mark.parametrize(
  "expression", [e.strip() for line in MOVING.strip().splitlines() for e in line.split("   ")]
)
@pytest.mark.parametrize(
  "name, options",
  [("SGD", {"momentum": 0.7, "dampening": 0.2}), ("SGD", {}), ("AdamW", {}), ("NAdam", {}), ("RMSprop", {})],
)
@pytest.mark.sample(3)
def test_momentum_that_moves(expression, name, options):
  """20 steps with a schedule inside of the jitted step, which is compiled once."""
  ps, qs = (
    [Tensor(p, requires_grad=True) for p in BEGIN],
    [torch.tensor(p, requires_grad=True) for p in BEGIN],
  )
  ours, theirs = getattr(nn.optim, name)(ps, **options), getattr(torch.optim, name)(qs, **options)
  a = eval(expression, {**vars(nn.optim.lr_scheduler), "o": ours})
  b = eval(expression, {**vars(torch.optim.lr_scheduler), "o": theirs})

  @jit
  def step():
    ours.zero_grad()
    loss_of(ps, Tensor).backward()
    ours.step(), a.step()

  for n in range(19):
    step()
    theirs.zero_grad(), loss_of(qs, torch.tensor).backward(), theirs.step(), b.step()
  for p, q in zip(ps, qs):
    np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=2e-5, atol=1e-5)


def test_momentum_that_moves_is_kept_by_a_state():
  def made():
    ps = [Tensor(p, requires_grad=True) for p in BEGIN]
    optimizer = nn.optim.AdamW(ps)
    return ps, optimizer, nn.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, 3)

  def go(ps, optimizer, schedule, n):
    for _ in range(n):
      optimizer.zero_grad(), loss_of(ps, Tensor).backward(), optimizer.step(), schedule.step()

  first, second = made(), made()
  go(*first, 2)
  for p, q in zip(first[0], second[0]):
    q.assign(p.detach())
  second[1].load_state_dict(first[1].state_dict()), second[2].load_state_dict(first[2].state_dict())
  assert second[1].param_groups[0]["betas"][0].item() == first[1].param_groups[0]["betas"][0].item() != 0.9
  go(*first, 2), go(*second, 2)
  for p, q in zip(first[0], second[0]):
    np.testing.assert_array_equal(p.numpy(), q.numpy())
  with pytest.raises(
    ValueError, match="Adagrad has neither momentum nor betas: cycle_momentum=False would fit"
  ):
    nn.optim.lr_scheduler.OneCycleLR(nn.optim.Adagrad(first[0]), 0.1, 20)


@pytest.mark.parametrize(
  "options", [{}, {"mode": "max", "threshold_mode": "abs", "cooldown": 2, "min_lr": 0.01}]
)
def test_plateaus(options):
  ours = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
  theirs = torch.optim.SGD([torch.tensor([1.0], requires_grad=True)], lr=0.5)
  a = nn.optim.lr_scheduler.ReduceLROnPlateau(ours, patience=2, factor=0.3, **options)
  b = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, patience=2, factor=0.3, **options)
  for value in np.random.default_rng(0).integers(0, 9, 40):
    a.step(float(value)), b.step(float(value))
    np.testing.assert_allclose(ours.lr.item(), theirs.param_groups[0]["lr"], rtol=1e-6)


# ---------------------------------------------------------------- states that go between the libraries

STATES = {**CASES, "SGD": [{"lr": 0.02}, {"lr": 0.02, "momentum": 0.9, "dampening": 0.5}, *CASES["SGD"]]}


def torch_side(values, name, options):
  params = [torch.tensor(p, requires_grad=True) for p in values]
  return params, getattr(torch.optim, name)(params, **options)


def our_side(values, name, options):
  params = [Tensor(p, requires_grad=True) for p in values]
  return params, getattr(nn.optim, name)(params, **options)


def steps(params, optimizer, n=5):
  for _ in range(n):
    optimizer.zero_grad()
    loss_of(params, torch.tensor if isinstance(params[0], torch.Tensor) else Tensor).backward()
    optimizer.step()
  return [p.detach().numpy().copy() for p in params]


def for_torch(x):
  """A state dict of ours, as torch.load would give it."""
  if isinstance(x, dict):
    return {k: float(v.item()) if k == "lr" else for_torch(v) for k, v in x.items()}
  if isinstance(x, list):
    return [for_torch(v) for v in x]
  return torch.tensor(x.numpy()) if isinstance(x, Tensor) else x


@pytest.mark.sample(3)
@pytest.mark.parametrize("name, options", [(n, o) for n, os in STATES.items() for o in os])
@pytest.mark.parametrize("ours_first", [False, True])
def test_a_state_of_the_other_library_goes_on(name, options, ours_first, tmp_path):
  """5 steps there, 5 here: where 10 there come to. The other way round, too."""
  wanted = steps(*torch_side(BEGIN, name, options), 10)
  first, second = (our_side, torch_side) if ours_first else (torch_side, our_side)
  params, optimizer = first(BEGIN, name, options)
  values = steps(params, optimizer)
  if ours_first:
    state = for_torch(optimizer.state_dict())
  else:
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    state = nn.state.torch_load(tmp_path / "state.pt")
  params, optimizer = second(values, name, {"lr": 0.5})  # all settings come with the state
  optimizer.load_state_dict(state)
  for a, b in zip(steps(params, optimizer), wanted):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
