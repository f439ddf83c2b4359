"""@jit and training: gradients, optimizers, schedules, state dicts, dropout;
captured whole or in parts, as without jit."""

import subprocess
import sys

import numpy as np
import pytest
from test_jit import Costs, floats, free, same

from mini import Tensor, grad, jit, nn, no_grad, value_and_grad
from mini.capture import JitError
from mini.nn.state import get_state_dict, load_state_dict


def test_gradient_functions_inside_and_outside():
  w = Tensor([2.0, 3.0])
  inside = jit(lambda w, x: value_and_grad(lambda w: (w * w * x).sum())(w))
  for n in range(1, 3):
    value, g = inside(w, float(n))
    assert value.item() == 13.0 * n and g.tolist() == [4.0 * n, 6.0 * n]
  f = jit(lambda w: (w * w * w).sum())
  assert f(w).item() == 35.0
  assert grad(f)(w).tolist() == [12.0, 27.0]  # runs as it is: a result of a routine has no graph
  assert f(w).item() == 35.0


def test_no_gradient_passes_in_from_outside():
  w = Tensor([2.0], requires_grad=True)
  y = w * 3

  @jit
  def f(x):
    return (y * x).sum()

  with pytest.raises(
    JitError, match=r"no gradient passes into a jitted function(.|\n)*x\.detach\(\) would do"
  ):
    f(Tensor([1.0]))
  with no_grad():
    assert f(Tensor([1.0])).item() == 6.0


def net(seed=0):
  Tensor.manual_seed(seed)
  return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def batches(n=6):
  return [(floats(4, 3, seed=k), floats(4, 2, seed=100 + k)) for k in range(n)]


def loss_of(model, x, y):
  return (model(x) - y).square().mean()


def trained(parts, optimizer=lambda p: nn.optim.AdamW(p, lr=0.01), n=6):
  """Losses and parameters after some steps. parts(model, optimizer) -> step(x, y)."""
  model = net()
  opt = optimizer(model.parameters())
  step = parts(model, opt)
  losses = [step(Tensor(x), Tensor(y)).item() for x, y in batches(n)]
  return losses, [p.numpy() for p in model.parameters()], step


def eager(model, opt):
  def step(x, y):
    opt.zero_grad()
    loss = loss_of(model, x, y)
    loss.backward()
    nn.optim.clip_grad_norm(model.parameters(), 0.5)
    opt.step()
    return loss

  return step


def whole(model, opt):
  return jit(eager(model, opt))


def in_two(model, opt):
  @jit
  def gradient(x, y):
    loss = loss_of(model, x, y)
    loss.backward()
    return loss

  @jit
  def update():
    nn.optim.clip_grad_norm(model.parameters(), 0.5)
    opt.step()
    opt.zero_grad()

  def step(x, y):
    loss = gradient(x, y)
    update()
    return loss

  return step


def in_pieces(model, opt):
  @jit
  def value(x, y):
    return loss_of(model, x, y)

  @jit
  def gradients(x, y):
    opt.zero_grad()
    loss_of(model, x, y).backward()
    return [p.grad for p in model.parameters()]

  clip = jit(lambda: nn.optim.clip_grad_norm(model.parameters(), 0.5))
  update = jit(lambda: opt.step())

  def step(x, y):
    loss = value(x, y)
    gradients(x, y)
    clip()
    update()
    return loss

  return step


def gradient_jitted(model, opt):
  gradient = jit(lambda x, y: loss_of(model, x, y).backward())

  def step(x, y):
    opt.zero_grad()
    with no_grad():
      loss = loss_of(model, x, y).realize()
    gradient(x, y)
    nn.optim.clip_grad_norm(model.parameters(), 0.5)
    opt.step()
    return loss

  return step


def update_jitted(model, opt):
  @jit
  def update():
    nn.optim.clip_grad_norm(model.parameters(), 0.5)
    opt.step()

  def step(x, y):
    opt.zero_grad()
    loss = loss_of(model, x, y)
    loss.backward()
    update()
    return loss

  return step


OPTIMIZERS = {
  "AdamW": lambda p: nn.optim.AdamW(p, lr=0.01),
  "SGD": lambda p: nn.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_any_cut_of_a_step_gives_the_same_parameters(optimizer):
  want_losses, want, _ = trained(eager, OPTIMIZERS[optimizer])
  for parts in (whole, in_two, in_pieces, gradient_jitted, update_jitted):
    losses, got, step = trained(parts, OPTIMIZERS[optimizer])
    assert np.allclose(losses, want_losses, rtol=1e-6, atol=1e-7), parts.__name__
    for a, b in zip(got, want):
      assert np.allclose(a, b, rtol=1e-5, atol=1e-6), parts.__name__
    x, y = map(Tensor, batches(1)[0])
    with free():
      step(x, y)


def test_without_an_optimizer():
  model = net()
  want = [p.numpy() for p in model.parameters()]

  @jit
  def step(x, y, lr):
    loss = loss_of(model, x, y)
    grads = loss.gradient(*model.parameters())
    with no_grad():
      for p, g in zip(model.parameters(), grads):
        p.assign(p - lr * g)
    return loss

  other = net()
  opt = nn.optim.SGD(other.parameters(), lr=0.1)
  for x, y in batches():
    loss = step(Tensor(x), Tensor(y), 0.1)
    opt.zero_grad()
    expected = loss_of(other, Tensor(x), Tensor(y))
    expected.backward()
    opt.step()
    assert np.isclose(loss.item(), expected.item(), rtol=1e-6)
  for p, q, old in zip(model.parameters(), other.parameters(), want):
    assert np.allclose(p.numpy(), q.numpy(), atol=1e-6) and not same(p.numpy(), old)
    assert p.requires_grad and p.is_leaf


def test_gradients_accumulate_over_calls():
  model, other = net(), net()
  opt, plain = nn.optim.SGD(model.parameters(), lr=0.1), nn.optim.SGD(other.parameters(), lr=0.1)
  gradient = jit(lambda x, y: (loss_of(model, x, y) / 3).backward())

  @jit
  def update():
    opt.step()
    opt.zero_grad()

  rounds = [batches(3) for _ in range(3)]
  for n, micro in enumerate(rounds):
    costs = Costs().__enter__()
    for x, y in micro:
      gradient(Tensor(x), Tensor(y))
    update()
    costs.__exit__()
    assert n == 0 or costs.schedules == 0  # a capture without gradients, and one with them
    for x, y in micro:
      (loss_of(other, Tensor(x), Tensor(y)) / 3).backward()
    plain.step()
    plain.zero_grad()
    for p, q in zip(model.parameters(), other.parameters()):
      assert p.grad is None and np.allclose(p.numpy(), q.numpy(), atol=1e-6)


def test_forgotten_zero_grad_accumulates_as_without_jit():
  model, other = net(), net()

  def stepper(m):
    opt = nn.optim.SGD(m.parameters(), lr=0.1)

    def step(x, y):
      loss_of(m, x, y).backward()
      opt.step()

    return step

  plain, captured = stepper(other), jit(stepper(model))
  for x, y in batches(4):
    plain(Tensor(x), Tensor(y))
    captured(Tensor(x), Tensor(y))
  for p, q in zip(model.parameters(), other.parameters()):
    assert np.allclose(p.numpy(), q.numpy(), atol=1e-6) and np.allclose(
      p.grad.numpy(), q.grad.numpy(), atol=1e-6
    )


def test_gradients_stay_readable():
  model = net()
  opt = nn.optim.SGD(model.parameters(), lr=0.1)
  step = whole(model, opt)
  kept = []
  for x, y in batches(3):
    step(Tensor(x), Tensor(y))
    kept.append((model[0].weight.grad, model[0].weight.grad.numpy()))
  for g, values in kept:
    assert same(g.numpy(), values)
  assert not same(kept[0][1], kept[1][1])


def test_learning_rates_set_between_calls():
  def run(wrap, set_rate):
    model = net()
    opt = nn.optim.SGD(two_groups(model), lr=0.1)
    step = wrap(model, opt)
    for n, (x, y) in enumerate(batches(5)):
      if n == 2:
        captured = Costs().__enter__()
      if n:
        set_rate(opt, 0.1 / (n + 1))
      step(Tensor(x), Tensor(y))
    captured.__exit__()
    return [p.numpy() for p in model.parameters()], captured

  def attribute(opt, lr):
    opt.lr = lr

  def all_groups(opt, lr):
    for g in opt.param_groups:
      g["lr"] = lr

  def one_group(opt, lr):
    opt.param_groups[0]["lr"] = lr

  for set_rate in (attribute, all_groups, one_group):
    want, _ = run(eager, set_rate)
    got, costs = run(whole, set_rate)
    assert costs.compiles == 0 and costs.schedules == 0, set_rate.__name__
    for a, b in zip(got, want):
      assert np.allclose(a, b, atol=1e-6), set_rate.__name__


def two_groups(model):
  ps = list(model.parameters())
  return [{"params": ps[:2]}, {"params": ps[2:]}]


def test_settings_of_an_optimizer_changed_between_calls():
  def run(wrap):
    model = net()
    opt = nn.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = wrap(model, opt)
    for n, (x, y) in enumerate(batches(4)):
      opt.param_groups[0]["weight_decay"] = 0.1 * (n > 1)
      step(Tensor(x), Tensor(y))
    return [p.numpy() for p in model.parameters()]

  for a, b in zip(run(whole), run(eager)):
    assert np.allclose(a, b, atol=1e-6)


def test_a_schedule_beside_and_inside():
  def run(wrap, inside):
    model = net()
    opt = nn.optim.AdamW(model.parameters(), lr=0.1)
    schedule = nn.optim.lr_scheduler.LambdaLR(opt, lambda t: 0.5**t)
    one = eager(model, opt)

    def both(x, y):
      loss = one(x, y)
      schedule.step()
      return loss

    step = wrap(both if inside else one)
    for x, y in batches(4):
      step(Tensor(x), Tensor(y))
      if not inside:
        schedule.step()
    return [p.numpy() for p in model.parameters()], opt.lr.item()

  want, rate = run(lambda f: f, True)
  for inside in (True, False):
    got, lr = run(jit, inside)
    assert lr == rate and all(np.allclose(a, b, atol=1e-6) for a, b in zip(got, want))


def test_two_optimizers():
  def run(wrap):
    model = net()
    a, b = nn.optim.SGD(model[0].parameters(), lr=0.1), nn.optim.Adam(model[2].parameters(), lr=0.01)

    def step(x, y):
      a.zero_grad()
      b.zero_grad()
      loss_of(model, x, y).backward()
      a.step()
      b.step()

    step = wrap(step)
    for x, y in batches(4):
      step(Tensor(x), Tensor(y))
    return [p.numpy() for p in model.parameters()]

  for a, b in zip(run(jit), run(lambda f: f)):
    assert np.allclose(a, b, atol=1e-6)


def test_parameters_frozen_and_thawed():
  def run(wrap):
    model = net()
    opt = nn.optim.AdamW(model.parameters(), lr=0.01)
    step = wrap(model, opt)
    for n, (x, y) in enumerate(batches(6)):
      for p in model[0].parameters():
        p.requires_grad_(n not in (2, 3))
      step(Tensor(x), Tensor(y))
    return [p.numpy() for p in model.parameters()]

  for a, b in zip(run(whole), run(eager)):
    assert np.allclose(a, b, atol=1e-6)


def test_a_state_dict_loaded_between_calls():
  model, opt = net(), None
  opt = nn.optim.AdamW(model.parameters(), lr=0.01)
  step = whole(model, opt)
  data = [(Tensor(x), Tensor(y)) for x, y in batches()]
  for x, y in data[:2]:
    step(x, y)
  snapshot = {k: v.detach().clone() for k, v in get_state_dict(model).items()}
  arrays = {k: v.numpy() for k, v in snapshot.items()}
  moments = {k: v.numpy() for k, v in get_state_dict(opt).items()}
  first = [step(x, y).item() for x, y in data[2:]]
  for k, v in snapshot.items():
    assert same(v.numpy(), arrays[k])  # the snapshot did not move with the parameters
  with Costs() as c:
    load_state_dict(model, snapshot)
    load_state_dict(opt, moments)
  with Costs() as c:
    again = [step(x, y).item() for x, y in data[2:]]
  assert again == first and c.schedules == 0
  model[0].weight.assign(Tensor(arrays["0.weight"]))  # no longer in the flat buffer
  load_state_dict(model, arrays)
  load_state_dict(opt, moments)
  assert [step(x, y).item() for x, y in data[2:]] == first


def test_dropout_draws_a_new_mask_each_call():
  Tensor.manual_seed(3)
  f = jit(lambda x: x.dropout(0.5))
  with Tensor.train():
    masks = [f(Tensor(np.ones(64, np.float32))).numpy() for _ in range(4)]
    assert len({m.tobytes() for m in masks}) == 4
    Tensor.manual_seed(3)
    assert all(same(a, f(Tensor(np.ones(64, np.float32))).numpy()) for a in masks)
    Tensor.manual_seed(3)
    assert all(same(a, Tensor(np.ones(64, np.float32)).dropout(0.5).numpy()) for a in masks)
  assert f(Tensor([1.0, 1.0])).tolist() == [1.0, 1.0]  # not in training: another capture


def test_a_generator_that_nobody_seeded():
  code = """
from mini import Tensor, jit
f = jit(lambda: Tensor.rand(4))
print(len({str(f().tolist()) for _ in range(4)}))
"""
  assert (
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "4\n"
  )


def test_the_state_of_the_generator():
  Tensor.manual_seed(1)
  f = jit(lambda: Tensor.rand(3))
  f()
  state = Tensor.generator.get_state()
  a = [f().tolist(), Tensor.rand(3).tolist(), f().tolist()]
  Tensor.generator.set_state(state)
  assert [f().tolist(), f().tolist(), Tensor.rand(3).tolist()] == a
