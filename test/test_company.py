"""What is computed together (mini/tensor/realize_group.py): loops without jit neither grow their graphs nor compile on."""

import gc

import numpy as np
import pytest

from mini import Tensor, gradient, nn, no_grad, stats
from mini.tensor.views import root_of


def waiting(t):
  """How many nodes are to be computed for it."""
  stack, seen = [t._uop], set()
  while stack:
    u = stack.pop()
    if u not in seen and u.op != "buffer" and "leaf" not in u.memo:
      seen.add(u)
      stack += u.src
  return len(seen)


def by_hand():
  """Gradient descent without an optimizer."""
  x, y = Tensor.ones(16, 4), Tensor.zeros(16, 1)
  w = Tensor.ones(4, 1).requires_grad_()

  def turn():
    nonlocal w
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    with no_grad():
      w -= 0.01 * w.grad
    w.grad = None
    loss.item()
    return w

  return turn, lambda n: np.full((4, 1), (1 - 0.01 * 8) ** n)


def statistics():
  """A running mean that nothing reads."""
  model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))
  optimizer = nn.optim.SGD(model.parameters(), lr=0.1)

  def turn():
    loss = model(Tensor([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return model[0].running_mean

  return turn, lambda n: np.array([2.0, 3.0, 4.0]) * (1 - 0.9**n)


def average():
  """An average of parameters."""
  w, mean = Tensor.ones(3).requires_grad_(), Tensor.zeros(3)
  optimizer = nn.optim.SGD([w], lr=0.0)

  def turn():
    w.sum().backward()
    optimizer.step()
    with no_grad():
      mean.mul_(0.5).add_(w, alpha=0.5)
    return mean

  return turn, lambda n: np.full(3, 1 - 0.5**n)


def counts():
  """A bandit's, in place by index."""
  n = Tensor.zeros(4)

  def turn():
    n[n.argmin().item()] += 1
    return n

  return turn, lambda turns: np.bincount(np.arange(turns) % 4, minlength=4)


def recurrent():
  """A state that is held, of which something else is asked for."""
  w, h = Tensor.full((8, 8), 0.01), Tensor.ones(1, 8)

  def turn():
    nonlocal h
    for _ in range(8):
      h = ((h @ w).exp() - 1).relu().tanh() * 2 + 1
    (h * 3).argmax().item()
    return h

  def wanted(n):
    a = np.ones((1, 8))
    for _ in range(8 * n):
      a = np.tanh(np.maximum(np.exp(a @ np.full((8, 8), 0.01)) - 1, 0)) * 2 + 1
    return a

  return turn, wanted


@pytest.mark.sample(2)
@pytest.mark.parametrize("loop", [by_hand, statistics, average, counts, recurrent])
def test_a_loop_does_not_grow(loop):
  turn, wanted = loop()
  for _ in range(14):
    turn()
  gc.collect()
  before = stats["schedules"]
  sizes = [waiting(turn()) for _ in range(14)]
  assert max(sizes) < 300 and stats["schedules"] == before, (sizes, stats["schedules"] - before)
  np.testing.assert_allclose(turn().numpy(), wanted(29), rtol=1e-5)


@pytest.mark.parametrize("functional", [False, True])
def test_gradients_come_together(functional):
  x = Tensor.ones(4, 3)
  params = [Tensor.full((3, 3), 0.1 * n).requires_grad_() for n in range(1, 5)]
  loss = x
  for p in params:
    loss = (loss @ p).tanh()
  loss = loss.sum()
  if functional:
    gradients = gradient(loss, params)
  else:
    loss.backward()
    gradients = [p.grad for p in params]
  first = gradients[1].numpy()
  before = stats["kernels"]
  assert all(np.isfinite(g.numpy()).all() for g in gradients)
  if not functional:
    assert np.isfinite(loss.item())
  assert stats["kernels"] == before and (gradients[1].numpy() == first).all()


def test_a_sampler_computes_each_state_once():
  """Of an LSTM's states somebody holds the last ones, which the next step begins with; its parameters are drawn once."""
  layers = nn.LSTM(4, 4, num_layers=2, batch_first=True)
  state, kernels, schedules = None, [], []
  for _ in range(6):
    before = stats["kernels"], stats["schedules"]
    with no_grad():
      out, state = layers(Tensor.ones(1, 1, 4), state)
    out.argmax().item()
    kernels.append(stats["kernels"] - before[0])
    schedules.append(stats["schedules"] - before[1])
  assert set(kernels[2:]) == {kernels[2]} and not any(schedules[2:]), (kernels, schedules)


@pytest.mark.parametrize(
  "value, kept",
  [
    (lambda x: x @ x, True),
    (lambda x: (x @ x).reshape(9), True),
    (lambda x: (x @ x).detach(), True),
    (lambda x: x.cumsum(0), True),
    (lambda x: Tensor.rand(3, 3), True),
    (lambda x: x * 2 + 1, False),
    (lambda x: (x * 2).T, False),
  ],
)
def test_what_is_held_and_takes_work_is_kept(value, kept):
  y = value(Tensor.ones(3, 3).realize())
  y.detach()  # another handle of it, which nobody holds
  first = (y * 2).tolist()
  before = stats["kernels"]
  assert (y * 2).tolist() == first and stats["kernels"] == before + 1
  base = y if y._base is None else root_of(y)
  assert base.is_realized == kept


def test_what_a_kept_value_is_made_into_is_not_kept():
  """Only the product takes work again."""
  x = Tensor.ones(3, 3).realize()
  y = x @ x
  z = y + 1
  z.sum().item()
  assert y.is_realized and not z.is_realized


def test_what_nobody_holds_has_no_memory():
  x = Tensor.ones(64, 64).realize()
  (x @ x).sum().item()
  gc.collect()
  before = stats["bytes_live"]
  ((x @ x) * 2).sum().item()
  gc.collect()
  assert stats["bytes_live"] <= before


def test_what_failed_is_not_asked_for_again():
  n = Tensor.zeros(3)
  n[Tensor([7])] += 1
  with pytest.raises(IndexError, match="out of bounds"):
    Tensor([1.0, 2.0]).exp().numpy()
  assert Tensor([0.0]).exp().item() == 1
