"""@jit and training: gradients, optimizers, schedules, state dicts, dropout;
captured whole or in parts, as without jit."""

import subprocess
import sys
import weakref

import numpy as np
import pytest
from test_jit import Costs, floats, free, same

import mini
from mini import Tensor, grad, jit, nn, no_grad, value_and_grad
from mini.capture import JitError
from mini.gradient_rules import gradient_inputs
from mini.nn.state import get_state_dict, load_state_dict


def test_gradient_functions_inside_and_outside():
  w = Tensor([2.0, 3.0])
  inside = jit(lambda w, x: value_and_grad(lambda w: (w * w * x).sum())(w))
  for n in range(1, 3):
    value, g = inside(w, float(n))
    assert value.item() == 13.0 * n and g.tolist() == [4.0 * n, 6.0 * n]
  f = jit(lambda w: (w * w * w).sum())
  assert f(w).item() == 35.0
  assert grad(f)(w).tolist() == [12.0, 27.0]
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


# ---------------------------------------------------------------- gradients through a call


def both(make, steps=3):
  """What a function of (f -> values) gives with a function as it is, and each time with that captured."""
  f, use = make()
  expected = use(f)
  fast = jit(f)
  for _ in range(steps):
    for a, b in zip(expected, use(fast)):
      np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-4, atol=1e-5)
  return fast


def leaf(*shape, seed=0):
  return Tensor(floats(*shape, seed=seed), requires_grad=True)


def of_leaves(loss, *leaves):
  for t in leaves:
    t.grad = None
  loss.backward()
  return [loss.detach(), *(t.grad for t in leaves)]


def test_a_gradient_passes_through_a_call():
  w, b, x = leaf(4, 3), leaf(3), Tensor(floats(5, 4))
  both(lambda: (lambda x: (x @ w + b).tanh(), lambda f: of_leaves((f(x) ** 2).sum(), w, b)))


def test_a_gradient_passes_into_arguments_leaves_and_computed():
  w, x = leaf(4, 3), leaf(5, 4, seed=1)
  use = lambda f: of_leaves(f(x.sin()).mean() + f(x).sum(), w, x)
  fast = both(lambda: (lambda x: (x @ w).exp(), use))
  assert sum(map(len, fast.captured.values())) == 1  # what was computed has the kind of a leaf


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1, 2), (2, 0)])
def test_each_of_several_results_passes_its_gradient(used):
  w, x = leaf(4, 3), Tensor(floats(5, 4))

  def f(x):
    h = x @ w
    return h.tanh(), {"n": h.argmax(1), "s": [h.exp().sum(), h.cast("float64").sin()]}

  def use(f):
    a, rest = f(x)
    results = a, *rest["s"]
    return of_leaves(sum((results[n] * (n + 2)).sum().float() for n in used), w)

  both(lambda: (f, use))


def test_calls_in_a_chain():
  """One captured network before another, and what neither captured between them."""
  one, two = nn.Linear(4, 6), nn.Linear(6, 2)
  x = Tensor(floats(5, 4))
  leaves = [*one.parameters(), *two.parameters()]
  expected = of_leaves(two(one(x).relu()).square().mean(), *leaves)
  fast_one, fast_two = jit(one), jit(two)
  for _ in range(3):
    found = of_leaves(fast_two(fast_one(x).relu()).square().mean(), *leaves)
    for a, b in zip(expected, found):
      np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-5, atol=1e-6)
  assert len(fast_one.captured) == len(fast_two.captured) == 1


def test_a_gradient_of_a_gradient_passes_through_a_call():
  w, x = leaf(3, 3), leaf(5, 3, seed=1)

  def use(f):
    (g,) = mini.autograd.grad(f(x).sum(), (x,), create_graph=True)
    return of_leaves((g * g).sum(), w, x)

  both(lambda: (lambda x: (x @ w).sin(), use))


def test_transforms_of_a_captured_function():
  w, x = leaf(3, 3), Tensor(floats(3))
  f = lambda x: (x @ w).sin()
  fast = jit(f)
  fast(x)
  for of in (mini.jacobian, lambda f: mini.hessian(lambda x: f(x).sum())):
    np.testing.assert_allclose(of(fast)(x).numpy(), of(f)(x).numpy(), rtol=1e-5, atol=1e-6)
  assert (mini.vmap(fast)(x.stack(x)) == f(x)).all().item()
  tangents = (Tensor(floats(3, seed=1)),)
  np.testing.assert_allclose(
    mini.jvp(fast, (x,), tangents)[1].numpy(), mini.jvp(f, (x,), tangents)[1].numpy(), 1e-5
  )
  total = lambda f: of_leaves(mini.checkpoint(f, x * 2).sum(), w)[1]
  np.testing.assert_allclose(total(fast).numpy(), total(f).numpy(), rtol=1e-5)


def test_the_gradient_is_of_the_values_that_the_call_read():
  """Whatever has become of them since: an update in place, of part of them, by a captured function."""
  w, x = leaf(3), Tensor(floats(3, seed=1)).realize()
  f = jit(lambda x: (w * x * w).sum())

  @jit
  def change():
    with no_grad():
      w.assign(w * 0)

  for n in range(3):
    before = w.numpy() * x.numpy() * 2
    loss = f(x)
    with no_grad():
      x.mul_(2.0)
      x[0] = 7.0
      w.add_(1.0)
    if n:
      change()
    w.grad = None
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), before, rtol=1e-6)
    with no_grad():
      w.assign(Tensor(floats(3, seed=n)))


def test_random_numbers_are_the_same_in_the_gradient():
  w = leaf(64)
  f = jit(lambda: (w * 2).dropout(0.5, training=True))
  for _ in range(3):
    out = f()
    w.grad = None
    out.sum().backward()
    np.testing.assert_array_equal(w.grad.numpy() != 0, out.numpy() != 0)
  assert (f().numpy() != out.numpy()).any()


def test_hooks_run_once_and_running_statistics_move_once():
  w, seen = leaf(3), []
  w.register_hook(lambda g: seen.append(1) or g * 2)
  f = jit(lambda x: (w * x).sum())
  for n in range(1, 4):
    w.grad = None
    f(Tensor([1.0, 2.0, 3.0])).backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0] and len(seen) == n
  norm = nn.BatchNorm1d(3)
  fast, x = jit(norm), Tensor(floats(8, 3))
  for n in range(1, 4):
    fast(x).square().sum().backward()
    assert norm.num_batches_tracked.item() == n


def test_what_has_no_graph_after_a_call():
  """Where no gradient is recorded; where the function takes gradients itself; where it updates much of what it reads."""
  w, x, cache = leaf(300), Tensor(floats(300)), Tensor.zeros(300).realize()
  f = jit(lambda x: w * x)
  with no_grad():
    assert not f(x).requires_grad
  assert f(x).requires_grad

  @jit
  def step(x):
    loss = (w * x).sum()
    loss.backward()
    return loss

  assert not step(x).requires_grad

  @jit
  def cached(x):
    cache.assign(cache + x)
    return w * cache

  assert not cached(x).requires_grad and not cached(x).requires_grad


def test_a_function_that_takes_gradients_of_what_was_computed_just_runs():
  w = leaf(3)

  @jit
  def f(x):
    x.sum().backward()
    return x * 2

  for n in range(1, 4):
    assert f(w * 3).requires_grad
    assert w.grad.tolist() == [3.0 * n] * 3


def test_complex_and_16_bits():
  w = leaf(4)
  use = lambda f: of_leaves(f(w).abs().sum().float(), w)
  both(lambda: (lambda w: Tensor.complex(w, w * w) * 2, use))
  both(lambda: (lambda w: w.cast("bfloat16") * 3, use))


def test_a_result_that_is_an_argument_or_a_view_of_another():
  w = leaf(4)

  def f(x):
    y = x * 2
    return x, y, y[1:], y

  def use(f):
    a, b, c, d = f(w)
    return of_leaves((a * b).sum() + (c * 3).sum() + d.sum(), w)

  both(lambda: (f, use))


def test_only_so_many_captures_are_kept():
  f = jit(lambda x: x + 1, most=2)
  for n in (1, 2, 3, 1, 2, 3):
    assert f(Tensor.zeros(n).realize()).tolist() == [1.0] * n
  assert len(f.captured) == 2


def test_arguments_that_are_views_or_parts_of_an_optimizers_buffer():
  w, b = leaf(6), leaf(3, seed=1)
  views = (
    lambda t: t[2:5],
    lambda t: t.flip(0)[:3],
    lambda t: t[::2],
    lambda t: t[1:2].expand(3),
    lambda t: t.reshape(2, 3),
  )
  f = lambda x: (x * b).sin()
  for view in views:
    both(lambda view=view: (f, lambda f: of_leaves(f(view(w)).sum(), w, b)))
  ps = [leaf(3, 4), leaf(4, seed=1)]
  nn.optim.SGD(ps, lr=0.1)
  both(lambda: (lambda w, b: (w.sin() + b).cos(), lambda f: of_leaves(f(*ps).sum(), *ps)))


def test_a_recurrent_layer_trains_as_its_plan_does():
  """Its parameters are parts of one buffer."""
  layer, x = nn.LSTM(3, 5), Tensor(floats(7, 2, 3))
  optimizer = nn.optim.SGD(layer.parameters(), lr=0.5)
  fast = jit(lambda: mini.autograd.grad(layer(x)[0].square().mean(), [*layer.parameters()]))
  for _ in range(3):
    optimizer.zero_grad()
    expected = fast()
    layer(x)[0].square().mean().backward()
    for p, g in zip(layer.parameters(), expected):
      np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-4, atol=1e-6)
    optimizer.step()


def test_rules_and_hooks_hold_values_of_the_function():
  """Of cross entropy the classes; of a gradient that is given what it reads, inside and outside."""
  w, x, target = leaf(4, 5), Tensor(floats(6, 4)), Tensor(np.arange(6) % 5)

  def twice(f):
    (g,) = mini.autograd.grad(f(x, target), w, create_graph=True)
    return of_leaves((g * g).sum() + f(x, target), w)

  both(lambda: (lambda x, t: (x @ w).cross_entropy(t), twice))
  scale = Tensor([2.0]).realize()

  def f(x):
    factor = x.cos()

    @mini.custom_gradient(lambda g, out, y: g * factor * scale)
    def rounded(y):
      return y.round()

    y = rounded(x * w)
    y.register_hook(lambda g: g * (scale + factor))
    return y.sin()

  def use(f):
    found = []
    for n in range(3):
      scale.assign(Tensor([n + 1.0]))
      found += of_leaves(f(w * 2).sum(), w)
      (g,) = mini.autograd.grad(f(w * 2).sum(), w, create_graph=True)
      found += of_leaves((g * g).sum(), w)
    return found

  both(lambda: (f, use))


def test_gradients_once_and_then_gradients_of_gradients():
  w, x = leaf(4, 5), Tensor(floats(6, 4))
  norm = nn.BatchNorm1d(5)

  def use(f):
    found = of_leaves((f(x) * x[:, :1]).sum(), w)
    (g,) = mini.autograd.grad((f(x) * x[:, :1]).sum(), w, create_graph=True)
    return found + of_leaves((g * g).sum(), w)

  for f in (Tensor.softmax, lambda x: (x * x + 1).lgamma(), norm):
    both(lambda f=f: (lambda x: f(x @ w), use))


def test_what_no_result_that_is_used_depends_on_has_no_gradient():
  w, b = leaf(3), leaf(3, seed=1)
  f = jit(lambda x: ((x * w).sum(), (x * b).sum(), (x * w * b.detach()).sum()))
  for n in (0, 2):
    w.grad = None
    f(Tensor([1.0, 2.0, 3.0]))[n].backward()
    assert w.grad is not None and b.grad is None


def test_a_function_keeps_no_memory_from_outside():
  w = leaf(300)
  f = jit(lambda x: (w * x).sum())
  x = Tensor(floats(300)).realize()
  f(x).backward()
  gone = weakref.ref(w._uop.src[0].arg[0])
  w.grad = None
  with no_grad():
    w.assign(w.detach() * 2).realize()
  assert gone() is None
  f(x).backward()
  np.testing.assert_allclose(w.grad.numpy(), x.numpy())


def test_an_argument_that_is_updated_in_place_keeps_its_graph():
  w = leaf(3)

  def f(x):
    x.mul_(2.0)
    return (x * x).sum()

  def use(f):
    x = w * 3
    return of_leaves(f(x) + x.sum(), w)

  both(lambda: (f, use))

  @jit
  def g(x):
    x.add_(w)
    return x.sum()

  x = Tensor([1.0, 2.0, 3.0]).realize()
  assert not g(x).requires_grad  # as x has no graph: what is passed back would be a part of the gradient


def test_a_recurrent_layer_on_several_devices():
  layer, x = nn.LSTM(3, 5), Tensor(floats(7, 4, 3))
  layer(x)[0].square().mean().backward()
  expected = [p.grad.numpy() for p in layer.parameters()]
  for name, p in [*layer.named_parameters()]:
    setattr(layer, name, nn.Parameter(p.detach().shard(("CPU", "CPU:1"))))
  for _ in range(2):
    for p in layer.parameters():
      p.grad = None
    layer(x.shard(("CPU", "CPU:1"), axis=1))[0].square().mean().backward()
    for p, g in zip(layer.parameters(), expected):
      np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-4, atol=1e-6)


def test_dropout_between_recurrent_layers():
  layer, x = nn.LSTM(3, 5, num_layers=2, dropout=0.5), Tensor(floats(6, 4, 3))
  run = lambda: layer(x)[0].tolist()
  Tensor.manual_seed(3)
  first = [run(), run(), run()]
  assert first[0] != first[1] != first[2]
  Tensor.manual_seed(3)
  assert [run(), run(), run()] == first
  layer.eval()
  assert run() == run() != first[0]


def test_a_step_of_a_loop_looks_at_no_step_before(monkeypatch):
  w, seen = leaf(3, 3), []
  f = jit(lambda h: (h @ w).tanh())
  monkeypatch.setattr(mini.jitted, "gradient_inputs", lambda u: seen.append(1) or gradient_inputs(u))
  h, counts = Tensor(floats(2, 3)), []
  for _ in range(30):
    h = f(h)
    counts.append(len(seen))
    seen.clear()
  assert counts[-1] == counts[3] > 0
  h.sum().backward()
  assert w.grad is not None


def test_results_on_several_devices():
  w, far = leaf(4), Tensor(floats(4, seed=1), device="CPU:1", requires_grad=True)
  f = lambda x: (x * w, (x * w).to("CPU:1") * far)
  x = Tensor(floats(4))
  losses = (
    lambda a, b: a.sum(),
    lambda a, b: b.sum(),
    lambda a, b: a.sum() + b.sum().to("CPU"),
  )
  for loss in losses:
    both(lambda loss=loss: (f, lambda f: of_leaves(loss(*f(x)), w)))
    assert far.grad is None or far.grad.device == "CPU:1"


def test_gradients_of_a_wider_type_are_not_rounded():
  def use(f):
    w, x = Tensor(floats(64), dtype="bfloat16", requires_grad=True), Tensor(floats(64, seed=1))
    w.grad_dtype = "float32"
    for n in (1.1, 2.3):
      f(w, x * n).backward()
    return [w.grad]

  f = lambda w, x: (w * x).sum()
  np.testing.assert_allclose(use(jit(f))[0].numpy(), use(f)[0].numpy(), rtol=1e-6)


def test_what_no_grad_updates_stays_as_gradients_see_it():
  w, f = leaf(3), jit(lambda x: (x.assign(x * 2),)[0])
  for _ in range(2):
    x = w * Tensor([1.0, 2.0, 3.0])
    with no_grad():
      f(x)
    np.testing.assert_allclose(x.numpy(), w.numpy() * [2, 4, 6], rtol=1e-6)
    w.grad = None
    x.sum().backward()
    assert not x.is_leaf and w.grad.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_a_step_describes_nothing_anew(kind, monkeypatch):
  """What a step updates, and the views that follow: once they are known to be the same after a call, the next one
  compares numbers and looks at no node, until somebody gives one of them another value or freezes it."""
  from mini import compiled_function

  model, plain = (nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)) for _ in range(2))
  values = {k: v.numpy() for k, v in plain.state_dict().items()}
  held = []
  for m in (model, plain):
    for at, name in (key.split(".") for key, _ in [*m.named_parameters()]):
      held.append(Tensor(values[f"{at}.{name}"]).realize())
      setattr(m[int(at)], name, nn.Parameter(held[-1]))
    assert all(p._base is not None for p in m.parameters())  # views of what they were made of
  seen = []

  def counted(find):
    def found(t):
      seen.append(t)
      return find(t)

    return found

  for name in ("view_of", "kind"):
    monkeypatch.setattr(compiled_function, name, counted(getattr(compiled_function, name)))

  def stepping(model):
    optimizer = getattr(nn.optim, kind)(model.parameters(), lr=0.1)

    def step(x):
      optimizer.zero_grad()
      loss = (model(x) ** 2).mean()
      loss.backward()
      optimizer.step()
      return loss

    return step

  captured, by_hand = jit(stepping(model)), stepping(plain)
  x = Tensor(np.random.default_rng(0).standard_normal((16, 4), np.float32)).realize()
  described = []
  for n in range(12):
    if n == 5:
      for m in (model, plain):
        m[2].bias.assign(m[2].bias + 1)
        m[2].bias.realize()
    if n == 7:
      for m in (model, plain):
        m[0].weight.requires_grad_(False)
    seen.clear()
    got = captured(x).item()
    described.append(len(seen))
    assert got == pytest.approx(by_hand(x).item(), rel=1e-4), n
  assert described[2:5] == [0, 0, 0] and described[5] and described[7] and described[10:] == [0, 0], described
