"""Tensors that share memory, with gradients and under jit, beside PyTorch: leaves that are views, gradients that are parts
of one buffer, arguments that alias, detached tensors that are written."""

import copy
import pickle

import numpy as np
import pytest

import mini
from mini import Tensor, nn
from mini.capture import JitError

torch = pytest.importorskip("torch")


class Ours:
  """One of the two libraries, by the names that the programs below use."""

  def T(self, x, **options):
    return Tensor(np.array(x, np.float32), **options)

  jit = staticmethod(mini.jit)
  no_grad = staticmethod(mini.no_grad)
  SGD = nn.optim.SGD
  Adam = nn.optim.Adam
  clip = staticmethod(nn.utils.clip_grad_norm_)


class Theirs:
  def T(self, x, **options):
    return torch.tensor(np.array(x, np.float32), **options)

  jit = staticmethod(lambda f: f)
  no_grad = staticmethod(torch.no_grad)
  SGD = torch.optim.SGD
  Adam = torch.optim.Adam
  clip = staticmethod(torch.nn.utils.clip_grad_norm_)


PROGRAMS = []


def program(f):
  """f: a library -> the tensors, and None, that are to be alike."""
  PROGRAMS.append(f)
  return f


@program
def a_leaf_that_is_a_view(L):
  flat = L.T([1.0, 2.0, 3.0, 4.0])
  p, w = flat[:2].requires_grad_(), L.T([1.0, 1.0], requires_grad=True)

  @L.jit
  def step():
    p.grad = w.grad = None
    (p * w).sum().backward()

  for _ in range(3):
    flat.mul_(2)
    flat.tolist()
    step()
    yield p.grad, w.grad


@program
def an_optimizer_of_views(L):
  flat = L.T([1.0, 2.0, 3.0, 4.0])
  p, q = flat[:2].requires_grad_(), flat[2:].requires_grad_()
  optimizer = L.SGD([p, q], lr=0.1, momentum=0.5)

  @L.jit
  def step():
    optimizer.zero_grad()
    ((p * p).sum() + (q * q).sum()).backward()
    optimizer.step()

  for _ in range(3):
    step()
    yield flat, p, q
    with L.no_grad():
      flat.mul_(0.5)
    yield flat, p, q


@program
def gradients_in_one_buffer(L):
  flat = L.T([0.0] * 4)
  p, q = L.T([1.0, 2.0], requires_grad=True), L.T([3.0, 4.0], requires_grad=True)
  p.grad, q.grad = flat[:2], flat[2:]
  optimizer = L.SGD([p, q], lr=0.5)
  for _ in range(3):
    (p * q).sum().backward()
    yield flat, p.grad, q.grad
    flat.mul_(2)
    yield p.grad, q.grad
    L.clip([p, q], 1.0)
    yield flat, p.grad
    optimizer.step()
    flat.zero_()
    yield flat, p.grad, p, q


@program
def who_holds_a_gradient(L):
  w, v = L.T([1.0, 2.0], requires_grad=True), L.T([1.0, 2.0], requires_grad=True)
  optimizer = L.SGD([w, v], lr=0.5)
  (w * w * v).sum().backward()
  g = w.grad
  optimizer.step()
  g.zero_()
  (w * 1).sum().backward()
  yield w.grad, g, w
  L.clip([w, v], 0.5)
  yield w.grad, g


@program
def gradients_that_become_zeros(L):
  for kind in (L.SGD, L.Adam):
    w = L.T([1.0, 2.0], requires_grad=True)
    optimizer = kind([w], lr=0.5, **({"momentum": 0.5} if kind is L.SGD else {}))
    (w * w).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    optimizer.step()
    yield w, w.grad
    optimizer.zero_grad()
    yield (w.grad,)


@program
def detached_tensors_that_are_written(L):
  h, w = L.T([1.0, 2.0]), L.T([5.0, 7.0], requires_grad=True)
  s = h.detach()
  s[0] = w[0]
  (s * w).sum().backward()
  yield w.grad, h, s
  w.grad, a = None, L.T([0.0, 0.0])
  d = a.data
  d += w * 2
  (d * w).sum().backward()
  yield w.grad, a, d


@program
def arguments_that_are_no_rows(L):
  @L.jit
  def f(x):
    v = x.reshape(-1)
    v[0] = 9
    return x * 1

  for y in (
    L.T([[1.0, 2.0], [3.0, 4.0]]).t(),
    L.T([[1.0, 2.0], [3.0, 4.0]]),
    L.T([[1.0, 2.0], [3.0, 4.0]])[:, :1],
  ):
    yield f(y), y


@program
def a_state_that_gets_other_memory(L):
  a = L.T([1.0, 2.0])
  b = a[:]

  @L.jit
  def f(x):
    b.add_(x)

  f(L.T([1.0, 1.0]))
  yield a, b
  b.data = L.T([7.0, 7.0])
  f(L.T([1.0, 1.0]))
  yield a, b


@program
def states_that_become_one(L):
  a, b = L.T([1.0, 2.0]), L.T([3.0, 4.0])

  @L.jit
  def f(x):
    a.add_(x)
    return b * 1

  yield f(L.T([1.0, 1.0])), a, b
  b.data = a
  yield f(L.T([1.0, 1.0])), a, b


def seen(values):
  return [None if t is None else t.detach().numpy().copy() for t in values]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_what_shares_memory_is_what_it_is_in_pytorch(f):
  for n, (ours, theirs) in enumerate(zip(f(Ours()), f(Theirs()), strict=True)):
    for k, (a, b) in enumerate(zip(seen(ours), seen(theirs), strict=True)):
      assert (a is None) == (b is None), (n, k)
      a, b = (0 if x is None else x for x in (a, b))
      np.testing.assert_allclose(
        a, b, rtol=1e-6, atol=1e-7, err_msg=f"{n}, {k}"
      )  # numbers of 1: 0.1 is rounded


def test_arguments_that_come_to_share_memory_are_refused():
  """As they are in the first call."""
  w = Tensor([0.0, 0.0])

  @mini.jit
  def both(x, y):
    x.add_(1)
    return y * 1

  @mini.jit
  def state(x):
    w.add_(1)
    return x + w

  z = Tensor([1.0, 2.0, 3.0])
  for x, y in ((z[:2], z[1:]), (z, z[:]), (z, z.detach())):
    both(Tensor(np.ones(x.shape, np.float32)), Tensor(np.ones(y.shape, np.float32)))
    with pytest.raises(JitError, match="do either, not both"):
      both(x, y)
  state(Tensor([1.0, 1.0]))
  with pytest.raises(JitError, match="do either, not both"):
    state(w)
  assert z.tolist() == [1.0, 2.0, 3.0] and w.tolist() == [1.0, 1.0]
  b = Tensor([1.0, 2.0])
  e = b.expand(2, 2)
  with pytest.raises(JitError, match="holds elements twice"):
    mini.jit(lambda x: x.add_(1))(e)
  assert e.tolist() == [[1.0, 2.0], [1.0, 2.0]] and b.tolist() == [1.0, 2.0]


def test_containers_that_are_arguments_do_not_change():
  for change in (lambda x: x.append(x[0]), lambda x: x.__setitem__(0, x[0] + 1), lambda x: x.clear()):
    f = mini.jit(lambda x, change=change: (x[0] * 2, change(x))[0])
    with pytest.raises(
      JitError, match="a list or a dict that is an argument of a jitted function is changed in it"
    ):
      f([Tensor([1.0]), Tensor([2.0])])
  with pytest.raises(JitError, match="return what it becomes"):
    mini.jit(lambda d, x: d.update(k=d["k"] + x))({"k": Tensor([1.0])}, Tensor([1.0]))
  assert mini.jit(lambda d: d["k"] + 1)({"k": Tensor([1.0])}).tolist() == [2.0]


@pytest.mark.parametrize(
  "again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"]
)
def test_an_optimizer_is_copied_with_its_parameters(again):
  w = Tensor([1.0, 2.0], requires_grad=True)
  optimizer = nn.optim.Adam([w], lr=0.5)

  def step(o, p):
    o.zero_grad()
    (p * p).sum().backward()
    o.step()
    return p.tolist()

  step(optimizer, w)
  other = again(optimizer)
  (p,) = other.param_groups[0]["params"]
  assert p is not w and p.tolist() == w.tolist() and other.param_groups[0]["lr"].item() == 0.5
  before = w.tolist()
  moved = step(other, p)
  assert w.tolist() == before and step(optimizer, w) == moved
  other.param_groups[0]["lr"] = 0.1
  assert optimizer.param_groups[0]["lr"].item() == 0.5


def test_parameters_that_have_elements_in_common_are_refused():
  p = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
  for q in (p.detach().t().requires_grad_(), p.detach()[0].requires_grad_()):
    optimizer = nn.optim.SGD([p, q], lr=1.0)
    ((p * p).sum() + (q * 3).sum()).backward()
    with pytest.raises(mini.MiniError, match="shares elements with another parameter"):
      optimizer.step()
    q.grad = None
    before = p.tolist()
    optimizer.step()  # of one alone
    assert p.tolist() != before
    optimizer.zero_grad()


def test_what_changes_nothing_is_the_tensor_itself():
  x = Tensor([1.0, 2.0])
  assert all(y is x for y in (x.float(), x.to("CPU"), x.to(x), x.cast(x.dtype), x.flatten(), x.type_as(x)))
  assert not any(y is x for y in (x.double(), x.clone(), x.detach(), x.view(2), x.to("CPU:1")))
  assert x.to("CPU").requires_grad_() is x and x.requires_grad
  with mini.no_grad():
    assert x.float().requires_grad


@pytest.mark.parametrize("values", ([1.0, 2.0], [1 + 2j, 2.0]))
def test_a_copy_that_is_asked_for_is_one(values):
  x = Tensor(values)
  kind = x.dtype
  for y in (
    x.to("CPU", copy=True),
    x.to(kind, copy=True),
    x.to("CPU", kind, False, True),
    x.to(x, copy=True),
  ):
    y[0] = 9.0
    assert y.tolist()[0] == 9 and x.tolist() == values
  y = x.to("CPU", True)  # non_blocking
  y[0] = 9.0
  assert x.tolist()[0] == 9


@pytest.mark.parametrize("values", ([1.0, 2.0], [1 + 2j]))
def test_a_deep_copy_has_its_own_values_and_gradient(values):
  x = Tensor(values, requires_grad=True)
  (x * x).abs().sum().backward()
  y, again = copy.deepcopy([x, x])
  assert y is again and y.requires_grad and y.is_leaf and y.grad.tolist() == x.grad.tolist()
  before, gradient = x.tolist(), x.grad.tolist()
  y.grad[0] = 9.0
  with mini.no_grad():
    y[0] = 7.0
  assert x.tolist() == before and x.grad.tolist() == gradient and y.tolist()[0] == 7


def test_a_deep_copy_is_where_its_original_is():
  x = Tensor([1.0, 2.0, 3.0]).shard(("CPU", "CPU:1"), 0).requires_grad_()
  y = copy.deepcopy(x)
  assert y.device == x.device and y.requires_grad and y.tolist() == x.tolist()


def test_a_gradient_that_a_jitted_function_returns_is_the_one_it_sets():
  w = Tensor([1.0, 2.0], requires_grad=True)

  @mini.jit
  def step(x):
    w.grad = None
    (w * x).sum().backward()
    return w.grad, w.grad[0]

  for n in range(4):
    gradient, part = step(Tensor([3.0, float(n)]))
    assert gradient is w.grad
    part.add_(1)
    assert w.grad.tolist() == [4, n]
