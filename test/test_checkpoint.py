"""checkpoint: what is not kept is computed again, to the same bits, in less memory."""

import gc

import numpy as np
import pytest

from mini import Tensor, checkpoint, grad, jit, nn, stats, value_and_grad
from mini.config import Context

LAYERS, N, WIDTH = 8, 256, 64


def layers():
  Tensor.manual_seed(1)
  made = [(nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
  Tensor.realize(*(p for pair in made for m in pair for p in m.parameters()))
  return made


def block(pair, x, p=0.0):
  h = pair[0](x).gelu()
  h = h * h.sum(1, keepdim=True).tanh()
  return x + pair[1](h.dropout(p) if p else h)


def halves(pair, x, p=0.0):
  """A checkpoint within one."""
  h = checkpoint(lambda x: pair[0](x).gelu(), x)
  h = checkpoint(lambda h: h * h.sum(1, keepdim=True).tanh(), h)
  return x + pair[1](h.dropout(p) if p else h)


def gradients(wrapped, p=0.0, jitted=False, block=block):
  """(the loss and all gradients, the most bytes in use) of a deep MLP whose layers go through `wrapped`."""
  made = layers()
  params = [q for pair in made for m in pair for q in m.parameters()]
  x = Tensor(np.random.default_rng(0).standard_normal((N, WIDTH)).astype(np.float32)).realize()

  def step(x):
    Tensor.manual_seed(7)
    for q in params:
      q.grad = None
    y = x
    for pair in made:
      y = wrapped(lambda z, pair=pair: block(pair, z, p), y)
    loss = (y * y).mean()
    loss.backward()
    return [loss, *(q.grad for q in params)]

  if jitted:
    Tensor.manual_seed(7)
    step = jit(step)
  gc.collect()  # what other tests left, which would be freed on the way
  stats.reset()
  live = stats.bytes_live
  found = step(x)
  Tensor.realize(*found)
  return [g.numpy() for g in found], stats.bytes_peak - live


def plain(f, *xs):
  return f(*xs)


@pytest.mark.parametrize("p", [0.0, 0.3])
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.sample(4)
@pytest.mark.full
def test_the_same_bits_in_less_memory(p, jitted):
  want, most = gradients(plain, p, jitted and not p)
  got, less = gradients(checkpoint, p, jitted and not p)
  for a, b in zip(want, got):
    np.testing.assert_array_equal(a, b)
  wide = 4 * N * WIDTH * 4  # bytes of a hidden value
  assert most - less > LAYERS * 1.5 * wide, (most, less, wide)


def test_checkpoints_nest():
  want, _ = gradients(plain)
  got, _ = gradients(checkpoint, block=halves)
  whole, _ = gradients(lambda f, x: checkpoint(lambda y: checkpoint(f, y), x))
  for a, b, c in zip(want, got, whole):  # other kernels, whose sums may have another order
    for x in (b, c):
      np.testing.assert_allclose(x, a, rtol=0, atol=16 * np.finfo(np.float32).eps * abs(a).max())


def test_several_inputs_and_outputs_and_what_is_closed_over():
  def run(wrapped):
    a, b, c = (Tensor([1.0, 2.0, n], requires_grad=True) for n in (3.0, 4.0, 5.0))
    z = (c * 2).exp()  # made outside, and wanted inside

    def f(x, y, scale):
      u = (x * y).sin() * z
      return {"sum": u + y, "rest": [u.exp() * scale, x.detach()]}

    out = wrapped(f, a, b, 0.5)
    (out["sum"] * out["rest"][0] + out["rest"][1]).sum().backward()
    return [t.grad.numpy() for t in (a, b, c)]

  for x, y in zip(run(plain), run(checkpoint)):
    np.testing.assert_array_equal(x, y)


def test_gradients_of_gradients():
  def f(x):
    return (x.sin() * x).exp()

  x = Tensor([0.5, -1.0, 2.0])

  def third(g):
    return grad(lambda x: grad(lambda x: grad(lambda x: g(x).sum())(x).sum())(x).sum())(x).numpy()

  np.testing.assert_allclose(third(checkpoint(f)), third(f), rtol=1e-5)
  value, dx = value_and_grad(lambda x: grad(lambda x: checkpoint(f)(x).sum())(x).sum())(x)
  again, dy = value_and_grad(lambda x: grad(lambda x: f(x).sum())(x).sum())(x)
  np.testing.assert_allclose([value.item(), *dx.numpy()], [again.item(), *dy.numpy()], rtol=1e-5)


@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
def test_a_parameter_alone(dev):
  """No argument requires a gradient; the function is called many times;
  and with known gradients (softmax, layer norm)."""
  with Context(DEV=dev):
    w = Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), requires_grad=True)
    x = Tensor(np.linspace(-2, 1, 15, dtype=np.float32).reshape(5, 3))

    def f(x):
      return ((x @ w).softmax(1) @ w.T).log_softmax(1).logsumexp(1)

    found = []
    for g in (f, checkpoint(f), checkpoint(f)):
      w.grad = None
      (g(x) * x.sum(1)).sum().backward()
      found.append(w.grad.numpy())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_on_several_devices():
  x = Tensor(np.arange(24, dtype=np.float32).reshape(6, 4) / 10)
  w = Tensor(np.ones((4, 3), np.float32), requires_grad=True)
  found = []
  for wrapped in (plain, checkpoint):
    for where in ("CPU", ("CPU", "CPU:1")):
      v = Tensor(w.numpy()).to(where)
      v.requires_grad = True
      y = x if where == "CPU" else x.shard(where, axis=0)
      wrapped(lambda y, v=v: (y @ v).exp().sin(), y).sum().backward()
      found.append(v.grad.numpy())
  for g in found[1:]:
    np.testing.assert_allclose(g, found[0], rtol=1e-5)


def test_what_it_gives_is_an_ordinary_function():
  @checkpoint
  def twice(x, *, by=2):
    """x, twice."""
    return x * by

  assert twice.__name__ == "twice" and twice.__doc__ == "x, twice."
  assert twice(Tensor([1.0]), by=3).item() == 3 == checkpoint(lambda x: x * 3, Tensor(1)).item()
