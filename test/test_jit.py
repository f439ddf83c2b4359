"""@jit: what is captured, what later calls may cost, what they update, and what nobody may see change."""

import gc
import signal
import sys
import threading
import weakref
from collections import namedtuple

import numpy as np
import pytest

import mini
from mini import Context, Device, Tensor, Variable, dtypes, jit, jitted, nn, no_grad, rewrite, rule, stats
from mini.capture import JitError
from mini.engine import profile
from mini.engine.program import Program
from mini.fast_call import Direct
from mini.nn.state import get_state_dict
from mini.numpy import asarray as array


def floats(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def same(a, b):
  """Equal to the bit."""
  return np.asarray(a).tobytes() == np.asarray(b).tobytes()


class Costs:
  """with Costs() as c: ... - what the block scheduled and compiled."""

  def __enter__(self):
    self.before = dict(stats)
    return self

  def __exit__(self, *exception):
    self.schedules = stats["schedules"] - self.before["schedules"]
    self.compiles = stats["compiles"] - self.before["compiles"]
    self.kernels = stats["kernels"] - self.before["kernels"]


class free:
  """with free(): ... - nothing in the block is scheduled or compiled."""

  def __enter__(self):
    self.costs = Costs().__enter__()

  def __exit__(self, kind, *exception):
    self.costs.__exit__()
    if kind is None:
      assert (self.costs.schedules, self.costs.compiles) == (0, 0)


# ---------------------------------------------------------------- arguments and results


def test_later_calls_bind_and_launch():
  traced = []

  @jit
  def f(x, y):
    traced.append(1)
    return (x @ y).relu()

  a, b = floats(3, 4), floats(4, 5, seed=1)
  assert np.allclose(f(Tensor(a), Tensor(b)).numpy(), np.maximum(a @ b, 0), atol=1e-6)
  with free():
    for n in range(3):
      c = floats(3, 4, seed=n)
      assert np.allclose(f(Tensor(c), Tensor(b)).numpy(), np.maximum(c @ b, 0), atol=1e-6)
  assert len(traced) == 1


def test_a_capture_for_each_shape_and_type():
  traced = []

  @jit
  def f(x):
    traced.append(x.shape)
    return (x * 2).sum()

  arguments = [
    Tensor(floats(3)),
    Tensor(floats(4)),
    Tensor(floats(3)).half(),
    Tensor(floats(3), requires_grad=True),
  ]
  values = [f(x).item() for x in arguments]
  with free():
    assert [f(x).item() for x in arguments] == values
  assert len(traced) == 4


def test_numbers_and_arrays_as_arguments():
  traced = []

  @jit
  def f(x, n, scale=1.0, flag=True):
    traced.append(flag)
    return x * n + scale if flag else x

  x = Tensor([1.0, 2.0])
  assert f(x, 3).tolist() == [4.0, 7.0]
  assert f(x, 3, scale=0.5).tolist() == [3.5, 6.5]
  with free():
    assert f(np.array([2.0, 2.0], np.float32), -1).tolist() == [-1.0, -1.0]
    assert f(x, 5, scale=0.25).tolist() == [5.25, 10.25]
  assert f(x, 3, flag=False).tolist() == [1.0, 2.0]  # a bool is part of the key
  assert traced == [True, True, False]


def test_a_number_has_no_value_inside():
  @jit
  def f(x, n):
    return x.reshape(n, -1)

  with pytest.raises(JitError, match="inside a jitted function"):
    f(Tensor(floats(6)), 2)


def test_lazy_arguments_and_views_are_computed_first():
  f = jit(lambda x: x + 1)
  data = Tensor(floats(10, 4))
  f(data[0])
  for n in range(1, 10):
    assert same(f(data[n]).numpy(), data.numpy()[n] + 1)
  with Costs() as c:
    f(data[3])
  assert c.compiles == 0


def test_nested_arguments_and_results():
  Pair = namedtuple("Pair", "left right")

  @jit
  def f(tree, named):
    return {"sum": tree["a"] + tree["b"][0], "pair": Pair(named.right, (named.left, None, "text", 3))}

  for n in range(2):
    a, b, c, d = (Tensor(floats(3, seed=4 * n + k)) for k in range(4))
    out = f({"a": a, "b": [b]}, Pair(c, d))
    assert same(out["sum"].numpy(), a.numpy() + b.numpy())
    assert isinstance(out["pair"], Pair) and out["pair"].right[1:] == (None, "text", 3)
    assert same(out["pair"].left.numpy(), d.numpy()) and same(out["pair"].right[0].numpy(), c.numpy())


def test_results_that_are_arguments_constants_or_nothing():
  w = Tensor([5.0])

  @jit
  def f(x):
    return x, x.reshape(2, 1), Tensor([1.0, 2.0]), Tensor.zeros(3), w, [], None

  for n in range(3):
    x, view, data, zeros, outer, empty, none = f(Tensor([float(n), 1.0]))
    assert x.tolist() == [n, 1.0] and view.tolist() == [[n], [1.0]]
    assert data.tolist() == [1.0, 2.0] and zeros.tolist() == [0.0, 0.0, 0.0] and outer.tolist() == [5.0]
    assert empty == [] and none is None
  nothing = jit(lambda: None)
  assert nothing() is None and nothing() is None


def test_the_same_tensor_twice():
  f = jit(lambda x, y: x * 10 + y)
  a, b = Tensor([1.0]), Tensor([2.0])
  assert [f(a, a).item(), f(a, b).item(), f(b, b).item(), f(b, a).item()] == [11.0, 12.0, 22.0, 21.0]


def test_nothing_of_size_zero():
  w = Tensor(np.zeros((0, 3), np.float32))

  @jit
  def f(x):
    w.assign(w + x)
    return x * 2, x.sum(), w.sum(0)

  for _ in range(3):
    double, total, columns = f(Tensor(np.zeros((0, 3), np.float32)))
    assert double.shape == (0, 3) and total.item() == 0 and columns.tolist() == [0.0, 0.0, 0.0]


def test_results_of_earlier_calls_stay():
  w = Tensor([1.0, 1.0])

  @jit
  def f(x):
    w.assign(w + x)
    return w, w * 2, w.reshape(2, 1), x + 1

  kept = [f(Tensor([float(n), 0.0])) for n in range(5)]
  total = 1.0
  for n, (a, b, c, d) in enumerate(kept):
    total += n
    assert b.tolist() == [2 * total, 2.0] and d.tolist() == [n + 1.0, 1.0]
    assert a.tolist() == [11.0, 1.0] and c.tolist() == [[11.0], [1.0]]  # w, and a view of it, as without @jit


def test_methods_and_keyword_arguments():
  class Model:
    def __init__(self, w):
      self.w = Tensor([w])

    @jit
    def scaled(self, x, *, by):
      return x * self.w * by

  a, b = Model(2.0), Model(3.0)
  assert a.scaled(Tensor([1.0]), by=2).item() == 4.0
  assert b.scaled(Tensor([1.0]), by=2).item() == 6.0
  with free():
    assert a.scaled(Tensor([2.0]), by=1).item() == 4.0


def test_what_cannot_be_a_key():
  with pytest.raises(JitError, match="an argument of a jitted function is a set"):
    jit(lambda x, s: x)(Tensor([1.0]), {1, 2})


# ---------------------------------------------------------------- state


def test_a_state_of_another_shape_is_updated_once():
  """18 elements in vectors of 16 overlap: what is written over what it is made of may not be computed twice."""
  x = Tensor(np.arange(18.0, dtype=np.float32).reshape(3, 2, 3)).realize()

  @jit
  def negated():
    y = -x.unsqueeze(1)
    x.assign(y.contiguous().squeeze(1))
    return y * 1

  for sign in (-1, 1, -1):
    np.testing.assert_array_equal(negated().numpy().reshape(-1), sign * np.arange(18.0))
    np.testing.assert_array_equal(x.numpy().reshape(-1), sign * np.arange(18.0))


@pytest.mark.skipif(Device.DEFAULT != "CPU", reason="the interpreter does not write in place")
def test_state_is_updated_in_place():
  w = Tensor(floats(1000)).realize()

  @jit
  def f(x):
    w.assign(w * 0.5 + x)

  want = w.numpy()
  for n in range(4):
    x = floats(1000, seed=n)
    if n == 2:
      memory = w.uop.arg[0].memory.address
    f(Tensor(x))
    want = want * np.float32(0.5) + x
    assert np.allclose(w.numpy(), want, atol=1e-6)
  assert w.uop.arg[0].memory.address == memory


@pytest.mark.parametrize("keep", [lambda w: w.clone(), lambda w: w * 1, lambda w: w.reshape(2, 2).clone(),
                                  lambda w: w[[1]], lambda w: w.reshape(2, 2).clone().realize(),
                                  lambda w: get_state_dict({"w": w})["w"].detach().clone(), lambda w: Tensor(w),
                                  lambda w: (w + 1).realize() - 1])  # fmt: skip
def test_an_old_value_that_somebody_holds_is_copied_first(keep):
  w = Tensor([1.0, 2.0, 3.0, 4.0])

  @jit
  def f(x):
    w.assign(w * x)

  f(Tensor(2.0))
  for n in range(3):
    old = keep(w)
    want = keep(Tensor(w.numpy())).numpy()
    f(Tensor(2.0))
    f(Tensor(2.0))
    assert same(old.numpy(), want)
    assert w.tolist() == [2.0 * 4 ** (n + 1) * k for k in (1, 2, 3, 4)]


def test_the_old_value_as_a_result():
  w = Tensor([1.0])

  @jit
  def f():
    old = w.clone()
    w.assign(w * 2)
    return old

  assert [f().item() for _ in range(4)] == [1.0, 2.0, 4.0, 8.0]


def test_values_change_places():
  a, b = Tensor([1.0]), Tensor([2.0])

  @jit
  def f():
    t = a.clone()
    a.assign(b)
    b.assign(t)

  for n in range(4):
    f()
    assert (a.item(), b.item()) == ((2.0, 1.0) if n % 2 == 0 else (1.0, 2.0))

  @jit
  def g():
    old = a.clone()
    a.assign(b + 1)
    b.assign(old * 2)

  for _ in range(3):
    want = b.item() + 1, a.item() * 2
    g()
    assert (a.item(), b.item()) == want


def test_equal_beginnings_become_different():
  """Two zeros are one memory until they are written."""
  m, v = Tensor.zeros(3), Tensor.zeros(3)

  @jit
  def f(x):
    m.assign(m + x)
    v.assign(v + x * x)

  f(Tensor([1.0, 2.0, 3.0]))
  with free():
    f(Tensor([1.0, 2.0, 3.0]))
  assert m.tolist() == [2.0, 4.0, 6.0] and v.tolist() == [2.0, 8.0, 18.0]


def test_equal_ends_become_different():
  a, b = Tensor([1.0]), Tensor([2.0])

  @jit
  def both(x):
    a.assign(a * 0 + x + 1)
    b.assign(b * 0 + x + 1)

  @jit
  def apart(x):
    a.assign(a + x)
    b.assign(b - x)

  for _ in range(3):
    both(1.0)
    apart(1.0)
    assert (a.item(), b.item()) == (3.0, 1.0)


def test_in_place_operators_and_items():
  w, counter = Tensor(floats(4)), Tensor(0)
  want = w.numpy()

  @jit
  def f(x):
    w[1] = x
    w[2:] *= 2
    counter.__iadd__(1)

  for n in range(3):
    f(float(n))
    want[1] = n
    want[2:] *= 2
    assert same(w.numpy(), want) and counter.item() == n + 1


def put(t, i, v):
  t[i] = v


def plus(t, i, v):
  t[i] += v


def put_twice(t, i, v):
  t[i, i] = v


def put_column(t, i, v):
  t[:, i] = v


def put_fixed(t, i, v):
  t[2:4] = v


def put_row(t, i, v):
  t[-1] = v


def scale_box(t, i, v):
  t[1:3, 2:] *= 3


@pytest.mark.skipif(Device.DEFAULT != "CPU", reason="the interpreter does not write in place")
@pytest.mark.parametrize("update", [put, plus, put_twice, put_column, put_fixed, put_row, scale_box])
def test_a_part_is_updated_without_a_copy(update):
  t = Tensor(floats(5, 7)).realize()
  want = t.numpy()
  step = jit(lambda i, v: update(t, i, v))
  for n in range(4):
    i, v = Tensor(n).realize(), Tensor(float(n)).realize()
    update(want, n, n)
    address = t.uop.arg[0].memory.address
    before = dict(stats)
    step(i, v)
    assert stats.kernels - before["kernels"] == 1
    assert n == 0 or stats.bytes_allocated == before["bytes_allocated"]
    assert t.uop.arg[0].memory.address == address
    assert same(t.numpy(), want)


def test_who_reads_the_old_value_sees_it():
  table, index, rows = Tensor(floats(6, 3)).realize(), np.array([4, 1, 4]), floats(3, 3, seed=1)

  @jit
  def f(index, rows):
    old, picked = table.sum(), table[index]
    table[index] = rows + table[[1, 2, 3]]
    return old, picked, table.sum(), table[index] - picked, table.T.contiguous()

  for n in range(3):
    want = table.numpy()
    old, picked, new, moved, turned = f(Tensor(index), Tensor(rows + n))
    before, was = want.sum(), want[index]
    want[index] = rows + n + want[[1, 2, 3]]
    assert np.allclose(old.item(), before, atol=1e-5) and np.allclose(new.item(), want.sum(), atol=1e-5)
    assert same(picked.numpy(), was) and same(moved.numpy(), want[index] - was)
    assert same(turned.numpy(), np.ascontiguousarray(want.T)) and same(table.numpy(), want)


def test_one_cache_in_two_tensors_is_no_longer_one():
  a = Tensor.zeros(4).realize()
  b = Tensor(a)

  @jit
  def f(i):
    a[i] = 1.0
    return a + b

  for n in range(3):
    want = np.zeros(4, np.float32)
    want[: n + 1] = 1
    assert same(f(Tensor(n)).numpy(), want) and same(a.numpy(), want) and not b.numpy().any()


def test_a_state_that_is_computed_in_another_order():
  w, x = Tensor(floats(2, 3)).realize(), floats(3, 2, seed=1)
  want = w.numpy()

  @jit
  def f(x):
    w.assign((w.T + x).T)

  for _ in range(3):
    f(Tensor(x))
    want = (want.T + x).T
  assert same(w.numpy(), np.ascontiguousarray(want)) and len(f.captured) == 1


def test_a_tensor_that_the_user_binds_anew():
  w = Tensor([1.0, 2.0])

  @jit
  def f(x):
    w.assign(w + x)
    return w.sum()

  assert f(1.0).item() == 5.0
  w.assign(Tensor([10.0, 20.0]))
  with free():
    assert f(1.0).item() == 32.0
  w.assign(w * 2)  # pending
  assert f(1.0).item() == 66.0
  w.replace(Tensor([1.0, 1.0, 1.0]))  # another shape: traced again
  assert f(1.0).item() == 6.0
  assert f(1.0).item() == 9.0


def test_arguments_may_be_updated():
  @jit
  def f(w, x):
    w.assign(w + x)
    return w * 2

  w, v = Tensor([1.0]), Tensor([10.0])
  old = w.detach().clone()
  assert [f(w, 1.0).item(), f(w, 2.0).item(), f(v, 1.0).item()] == [4.0, 8.0, 22.0]
  assert (w.item(), v.item(), old.item()) == (4.0, 11.0, 1.0)


def test_arguments_may_get_gradients():
  @jit
  def f(w, x):
    (w * x).sum().backward()
    return w.grad

  for n in range(3):
    w = Tensor([1.0, 2.0], requires_grad=True)
    f(w, Tensor([3.0, float(n)]))
    assert w.grad.tolist() == [3.0, n]
    assert f(w, Tensor([1.0, 1.0])).tolist() == [4.0, n + 1.0]  # accumulated, as without jit
    assert w.grad.tolist() == [4.0, n + 1.0] and w.requires_grad and w.is_leaf


def test_an_argument_that_is_reached_from_outside_too():
  w = Tensor([2.0])
  reads = jit(lambda x: x * w)
  assert reads(w).item() == 4.0 and reads(Tensor([3.0])).item() == 6.0

  @jit
  def writes(x):
    w.assign(x + 1)

  with pytest.raises(JitError, match="also reaches it from outside"):
    writes(w)
  assert w.item() == 2.0
  writes(Tensor([3.0]))
  assert w.item() == 4.0


def test_a_parameter_in_a_flat_buffer_as_an_argument():
  layer = nn.Linear(3, 2)
  optimizer = nn.optim.SGD(layer.parameters(), lr=0.5)
  f = jit(lambda w: w.sum())
  for n in range(3):
    assert np.isclose(f(layer.weight).item(), layer.weight.numpy().sum(), atol=1e-6)
    layer(Tensor(floats(4, 3))).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if n == 1:
      with free():
        f(layer.weight)


def test_captured_values_are_constants():
  scale = 2.0
  f = jit(lambda x: x * scale)
  assert f(Tensor([1.0])).item() == 2.0
  scale = 3.0
  assert f(Tensor([1.0])).item() == 2.0
  assert "constant of the capture" in jit.__doc__


# ---------------------------------------------------------------- values inside


@pytest.mark.parametrize("ask", [lambda t: t.item(), lambda t: t.numpy(), lambda t: bool(t), lambda t: float(t),
                                 lambda t: t.tolist(), lambda t: int(t), lambda t: np.asarray(t)])  # fmt: skip
def test_a_value_inside_is_an_error(ask):
  w, kept = Tensor([1.0], requires_grad=True), Tensor([2.0])

  @jit
  def f(x):
    kept.assign(kept * x)
    (w * x).sum().backward()
    return ask((x + 1).sum())

  before = w.uop, kept.uop
  with pytest.raises(
    JitError,
    match=r"inside a jitted function: a traced tensor has no value(.|\n)*made at \S*test_jit\.py:\d+",
  ):
    f(Tensor([3.0]))
  assert (w.uop, kept.uop) == before and w.grad is None
  assert (kept * w).tolist() == [2.0]


def test_printing_inside():
  shown = []
  jit(lambda x: shown.append(repr(x + 1)))(Tensor([1.0, 2.0]))
  assert shown == ["Tensor(f32[2] being traced)"]


def test_realize_inside():
  w = Tensor([1.0])

  @jit
  def f(x):
    y = (x * 2).realize()
    w.assign(w + y).realize()
    return Tensor.realize(y, w)

  assert [f(Tensor([1.0])).item(), f(Tensor([2.0])).item(), w.item()] == [2.0, 4.0, 7.0]


def test_an_exception_inside_leaves_everything():
  w, m = Tensor([1.0], requires_grad=True), Tensor([1.0])
  (w * 3).sum().backward()
  gradient, first = w.grad, w.grad.item()

  @jit
  def f(x, broken):
    m.assign(m + 1)
    (w * x).sum().backward()
    with no_grad():
      w.assign(w - w.grad)
    w.grad = None
    if broken:
      raise KeyError("broken")
    return m * x

  with pytest.raises(KeyError):
    f(Tensor([2.0]), True)
  assert w.grad is gradient and (w.grad.item(), first, w.item(), m.item()) == (3.0, 3.0, 1.0, 1.0)
  assert w.requires_grad and w.is_leaf
  assert f(Tensor([2.0]), False).item() == 4.0
  assert (w.item(), m.item(), w.grad) == (-4.0, 2.0, None)


def test_what_leaks_has_no_value():
  leaked = []
  w = Tensor([2.0])

  @jit
  def f(x):
    leaked.append(x + w)
    leaked.append(Tensor.ones(2) * 3)
    return x

  f(Tensor([1.0]))
  for use in (
    lambda t: t.item(),
    lambda t: t + 1,
    lambda t: print(t),
    lambda t: jit(lambda y: y + t)(Tensor([1.0])),
  ):
    with pytest.raises(JitError, match=r"made inside a jitted function(.|\n)*test_jit\.py"):
      use(leaked[0])
  assert leaked[1].tolist() == [3.0, 3.0]  # depends on nothing


def test_nested_jit():
  w = Tensor([1.0])

  @jit
  def inner(x):
    w.assign(w + x)
    return w * 2

  @jit
  def outer(x):
    return inner(x) + inner(x)

  assert outer(Tensor([1.0])).item() == 10.0
  with free():
    assert outer(Tensor([1.0])).item() == 18.0
  assert inner(Tensor([1.0])).item() == 12.0


# ---------------------------------------------------------------- what goes wrong


def test_an_index_out_of_bounds_leaves_a_valid_state():
  table, counts = Tensor(floats(5, 3)), Tensor([0.0])

  @jit
  def f(index):
    counts.assign(counts + 1)
    table.assign(table * 0.5)
    return table[index]

  f(Tensor([0, 1]))
  with pytest.raises(IndexError, match="index 7 is out of bounds for an axis of size 5"):
    f(Tensor([0, 7]))
    Device[counts.device].synchronize()  # an asynchronous device tells then
  assert counts.item() in (1.0, 2.0)
  assert np.allclose(table.numpy(), floats(5, 3) * 0.5 ** counts.item())
  assert np.allclose(f(Tensor([0, 1])).numpy(), table.numpy()[:2])


def test_ctrl_c_leaves_a_valid_state():
  """Whenever it comes: all tensors have new values, or none has."""
  a, b = Tensor(np.zeros(1000, np.float32)), Tensor(np.zeros(1000, np.float32), requires_grad=True)
  c = Tensor(np.zeros(3, np.float32))

  @jit
  def f():
    with no_grad():
      a.assign(a + 1)
      b.assign(b + 1)
      c.assign(c + 1)
    return a.sum()

  f()
  interrupted = 0
  previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
  try:
    for n in range(150):
      try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 + 4e-6 * n)
        for _ in range(1000):
          f()
      except KeyboardInterrupt:
        interrupted += 1
      signal.setitimer(signal.ITIMER_REAL, 0)
      values = {*a.tolist(), *b.tolist(), *c.tolist()}
      assert len(values) == 1 and b.requires_grad and b.is_leaf
  finally:
    signal.signal(signal.SIGALRM, previous)
  assert interrupted > 100


def test_memory_that_is_only_read_is_where_its_tensors_say():
  """Its addresses are kept from call to call: whatever happens to the tensors in between, the values are theirs."""
  x, flat = floats(4), Tensor(floats(12, seed=1)).realize()
  w, view, late = Tensor(floats(4, seed=2), requires_grad=True), flat[4:8], Tensor(floats(4, seed=3)) * 2
  tensors = [w, view, late]

  @jit
  def f(x):
    return (x * w + view).sum() - late.max()

  @jit
  def train(lr):
    w.assign(w - lr)

  def right():
    found = f(x).item()
    a, b, c = (t.detach().numpy().astype(np.float64) for t in tensors)
    return abs(found - ((x * a + b).sum() - c.max())) < 1e-5

  f(x), train(0.0)
  assert right()
  for change in (
    lambda: train(0.5),  # in place
    lambda: train(0.25),
    lambda: w.assign(floats(4, seed=4)),
    lambda: late.assign(late + 1),  # pending
    lambda: late.assign(Tensor(floats(4, seed=5)).realize()),
    lambda: flat.assign(flat * 3).realize(),
    lambda: view.assign(flat[4:8]),
    lambda: train(1.0),
  ):
    change()
    assert right()
    with free():
      assert right()


def test_a_node_is_known_by_what_it_is_once_it_is_computed():
  """It may come back before that, or when there is memory beneath it that was not there."""
  w, v, zero = Tensor(floats(5)).realize(), Tensor(floats(5, seed=1)).realize(), Tensor.zeros(5)
  above = Tensor(floats(10, seed=2), requires_grad=True) * 2
  view, x = above[5:], floats(5, seed=3)
  f, g, h = jit(lambda x: x + w), jit(lambda x: (w, x + w)), jit(lambda x: x + view + v)
  f(x), f(x), g(x), g(x)
  for _ in range(3):
    w.assign(zero)
    assert same(f(x).numpy(), x) and same(g(x)[1].numpy(), x)
  big = Tensor(floats(10, seed=4)).realize() + 100
  half = big[5:]
  for _ in range(2):
    w.assign(half)
    assert same(f(x).numpy(), x + floats(10, seed=4)[5:] + np.float32(100))
    big.realize()
  want = x + floats(10, seed=2)[5:] * 2 + floats(5, seed=1)
  with no_grad():
    for step in (list, list, above.realize, lambda: v.assign(floats(5, seed=1))):
      step()
      assert np.allclose(h(x).numpy(), want)


def test_memory_that_is_only_read_is_not_kept():
  w = Tensor(floats(1 << 16)).realize()
  total = jit(lambda x: (w * x).sum())
  old = weakref.ref(w.uop.arg[0])
  assert same(total(1.0).numpy(), total(1.0).numpy()) and old() is not None
  w.assign(Tensor(floats(1 << 16, seed=1)).realize())
  assert old() is None


@pytest.mark.skipif(Device.DEFAULT != "CPU", reason="of programs that are one call into C")
def test_what_a_running_program_reads_is_not_written(monkeypatch):
  w = Tensor(floats(8)).realize()
  total, step = jit(lambda x: (w * x).sum()), jit(lambda: w.assign(w + 1.0))
  want = [total(1.0).item(), step(), total(1.0).item()][-1]
  run_at, others = Program.run_at, [step]

  def run_beside(self, *args):
    if others:
      others.pop()()  # as another thread might
    return run_at(self, *args)

  monkeypatch.setattr(Program, "run_at", run_beside)
  assert total(1.0).item() == want
  assert abs(total(1.0).item() - want - 8) < 1e-4


def test_nothing_is_left_behind():
  """A routine that is forgotten takes its memory with it."""
  before, size = stats["bytes_live"], 1 << 16

  def use():
    w = Tensor(np.zeros(size, np.float32))

    @jit
    def f(x):
      w.assign(w + x)
      return w.sum()

    assert [f(1.0).item(), f(2.0).item()] == [size, 3.0 * size]
    assert stats["bytes_live"] < before + 4 * size + 4096

  use()
  gc.collect()
  assert stats["bytes_live"] < before + 4096


# ---------------------------------------------------------------- what a call costs


def python_calls(f):
  """How many functions of Python, and methods of C, one call of f is made of, when all is known."""
  f(), f()
  calls = []
  sys.setprofile(lambda frame, event, arg: calls.append(event) if event in ("call", "c_call") else None)
  try:
    f()
  finally:
    sys.setprofile(None)
  return len(calls)


@pytest.mark.skipif(Device.DEFAULT != "CPU", reason="of the CPU's launches")
def test_a_call_is_made_of_few_calls(monkeypatch):
  monkeypatch.setattr(Variable, "used", False)  # else each graph is asked for them: 5 calls more
  x, y = Tensor(floats(8)).realize(), Tensor(floats(8, seed=1)).realize()
  w, add = Tensor(floats(8)).realize(), jit(lambda a, b: a + b)
  step = jit(lambda a, lr: w.assign(w - lr * a))
  more = 8 * profile.start.cache_info().currsize  # once PROFILE was set, two around each of what it times
  assert python_calls(lambda: add(x, y)) <= 50
  assert python_calls(lambda: step(x, 0.5)) <= 220 + more
  assert python_calls(lambda: (x + y).realize()) <= 250 + more


DIRECT = {
  "a sum": lambda x, y: x + y,
  "several results": lambda x, y: {"a": (x @ y, x.sum()), "b": [y.max(0).values, y.min(1)]},
  "views of results": lambda x, y: ((x @ y).T, (x @ y)[1:, ::2]),
  "one result twice": lambda x, y: (x * 2, x * 2),
  "temporaries": lambda x, y: ((x @ y).softmax(1) @ y).softmax(0),
  "no elements": lambda x, y: (x[:0] + 1, x + y),
  "an index": lambda x, y: x[(y.abs() * 3).int().clip(0, 7)],
  "a number": lambda x, y: x * y - 0.125,
}
MORE_TO_DO = {
  "an argument comes back": lambda x, y: (x, x + y),
  "a view of one": lambda x, y: (y.T, x + y),
  "nothing is computed": lambda x, y: x[:0] * 2,
  "an array of its own": lambda x, y: x + y * Tensor(floats(8, seed=3)),
}


def launches_directly(t):
  opened = Device[t.device]
  return opened.is_host and not opened.interprets


def values(tree):
  if isinstance(tree, dict):
    return [v for k in tree for v in values(tree[k])]
  return [v for t in tree for v in values(t)] if isinstance(tree, (list, tuple)) else [tree.numpy()]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [*DIRECT, *MORE_TO_DO])
def test_what_computes_new_values_alone_runs_directly(name, monkeypatch):
  calls, run = [], Direct.__call__
  monkeypatch.setattr(Direct, "__call__", lambda self, args: calls.append(1) or run(self, args))
  f = {**DIRECT, **MORE_TO_DO}[name]
  g, kept = jit(f), []
  for n in range(4):
    x, y = Tensor(floats(8, 8, seed=n)).realize(), Tensor(floats(8, 8, seed=n + 9)).realize()
    want = jit(f)(x, y)  # a first call is a routine's
    before = stats["kernels"]
    kept.append((g(x, y), want))
    launched = stats["kernels"] - before
  assert all(same(a, b) for got, want in kept for a, b in zip(values(got), values(want), strict=True))
  assert len(calls) == (3 if name in DIRECT and launches_directly(x) else 0)
  assert Device[x.device].interprets or launched == sum(
    len(r.program.calls) for (r,) in g.captured.values() if r.program
  )


def test_what_looks_beyond_its_arguments_does_not_run_directly():
  w, x = Tensor(floats(8), requires_grad=True), Tensor(floats(8, seed=1)).realize()
  scaled = jit(lambda x: x * 2 if w.grad is None else x * 3)
  assert all(same(scaled(x).numpy(), x.numpy() * 2) for _ in range(3))
  w.square().sum().backward()
  assert all(same(scaled(x).numpy(), x.numpy() * 3) for _ in range(3))

  @jit
  def doubled(x):
    before = x * 1
    x.assign(x * 2)
    return before, x + 1

  for n in range(3):
    before, after = doubled(x)
    want = floats(8, seed=1) * 2**n
    assert same(before.numpy(), want) and same(after.numpy(), want * 2 + 1) and same(x.numpy(), want * 2)


def test_direct_calls_name_what_goes_wrong(monkeypatch):
  table, rows = Tensor(floats(5, 3)).realize(), [Tensor([0, n]).realize() for n in (1, 2, 7)]
  f = jit(lambda t, i: t[i] * 2)
  f(table, rows[0]), f(table, rows[1])
  with pytest.raises(IndexError, match="index 7 is out of bounds for an axis of size 5"):
    f(table, rows[2]).numpy()
  assert same(f(table, rows[1]).numpy(), floats(5, 3)[[0, 2]] * 2)
  if launches_directly(table):
    heap, held = Device[table.device].shim.heap, []
    with monkeypatch.context() as m, pytest.raises(MemoryError, match="the program of .* needs .* at once"):
      m.setattr(heap, "limit", 0)
      while len(held) < 10**5:  # until no idle block is left
        held.append(f(table, rows[1]))
  assert same(f(table, rows[0]).numpy(), floats(5, 3)[[0, 1]] * 2)


def test_numbers_are_known_by_their_types():
  """Calls of plain arguments, which are looked up by kinds: what is another tensor is another kind."""
  double = jit(lambda s: s.float() * 2)
  assert [double(n).item() for n in (1, 3, 2**63, -5)] == [2.0, 6.0, 2.0**64, -10.0]
  x, scale, before = (
    Tensor([1.0, 2.0]).realize(),
    jit(lambda x, s: x * s),
    (dtypes.default_float, dtypes.default_int),
  )
  assert [scale(x, 0.5).tolist(), scale(x, 0.25).tolist()] == [[0.5, 1.0], [0.25, 0.5]]
  try:
    dtypes.default_float, dtypes.default_int = dtypes.float16, dtypes.int32
    assert scale(x, 0.125).tolist() == [0.125, 0.25] and double(4).item() == 8.0
  finally:
    dtypes.default_float, dtypes.default_int = before
  assert scale(x, 0.75).tolist() == [0.75, 1.5]


def test_a_size_and_what_follows_from_it_are_one_argument():
  f = jit(lambda x, n, m, a: x[:n].sum() + x[:m].sum() + a)
  x = Tensor(np.arange(8, dtype=np.float32)).realize()
  for k in (1, 2, 5):
    n = Variable("n", 1, 6).bind(k)
    other = Variable("m", 1, 8).bind(k + 2)
    for m, count in ((n + 1, k + 1), (other, k + 2)):
      want = np.arange(k).sum() + np.arange(count).sum() + 10.0 * k
      for _ in range(2):
        assert f(x, n, m, np.full(3, 10.0 * k, np.float32)).tolist() == [want] * 3


def test_who_looks_on_sees_direct_calls(capsys):
  x, f = Tensor(floats(8)).realize(), jit(lambda x: x * 2)
  f(x), f(x)
  with Context(DEBUG=2):
    f(x), f(x)
    assert capsys.readouterr().err.count(" ms ") == 2 or Device[x.device].interprets
  f(x), f(x)
  assert not capsys.readouterr().err


def test_threads_call_one_function_and_several():
  """Each gets its own results; the state that they share gets all updates."""
  total = Tensor(0.0).realize()
  double = jit(lambda x: x * 2)
  count = jit(lambda x: total.assign(total + x))
  wrong, start = [], threading.Barrier(4)

  def work(k):
    mine = jit(lambda x: x - k)
    start.wait()
    for n in range(50):
      x = Tensor([float(n), float(k)]).realize()
      if double(x).tolist() != [2.0 * n, 2.0 * k] or mine(x).tolist() != [n - k, 0.0]:
        wrong.append((k, n))
      count(1.0)

  threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not wrong and total.item() == 200.0


def test_settings_of_a_block_hold_for_known_arguments_too():
  x = Tensor([1.0, 2.0]).realize()
  f = jit(lambda x: x.sin())
  want = f(x).tolist()
  with Costs() as c, Context(NOOPT=1):
    assert f(x).tolist() == want
  assert c.schedules == 1
  with rewrite(rule("no_sine", "sin(x)", "x")):
    assert f(x).tolist() != want
  with free():
    assert f(x).tolist() == want


def test_an_argument_that_becomes_another_kind():
  f = jit(lambda x, y: x + y)
  x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
  assert f(x, y).tolist() == [4.0, 6.0] == f(x, y).tolist()
  assert f(x, x).tolist() == [2.0, 4.0]
  assert f(x, x + 1).tolist() == [3.0, 5.0]
  assert (
    f(x, 1).tolist() == [2.0, 3.0] and f(x, 1.5).tolist() == [2.5, 3.5] and f(x, True).tolist() == [2.0, 3.0]
  )
  assert f(x, y.reshape(2, 1)).shape == (2, 2)
  y = np.array([5.0, 6.0], np.float32)
  assert f(x, y).tolist() == [6.0, 8.0] == f(x, y).tolist() and f(y, y).tolist() == [10.0, 12.0]
  assert f(x, y.astype(np.float64)).dtype is dtypes.float64 and f(x, y[:1]).tolist() == [6.0, 7.0]
  w = Tensor([1.0, 1.0], requires_grad=True)
  assert f(x, w).tolist() == [2.0, 3.0] and f(w * 2, x).requires_grad


def test_results_without_elements_alone():
  """Nothing is to be computed, and what is returned has memory."""
  f = jit(lambda x: (x[1:1] * 2, x[::-1][5:].reshape(-1)))
  for _ in range(3):
    assert [t.tolist() for t in f(Tensor([1.0, 2.0]))] == [[], []]


# ---------------------------------------------------------------- what a capture is looked up by


def test_training_mode_is_honoured():
  model = nn.Sequential(
    nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.MultiheadAttention(4, 2, dropout=0.5)
  )
  head = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.9))
  f = jit(lambda x: head(x))
  x = Tensor(floats(8, 4))
  for mode in (True, False, True, False, False, True):
    head.train(mode)
    before = head[1].running_mean.numpy()
    first, second = f(x).numpy(), f(x).numpy()
    assert same(first, second) != mode  # dropout draws anew
    assert same(before, head[1].running_mean.numpy()) != mode
    if not mode:
      assert np.allclose(first, head(x).numpy(), atol=1e-6)
  assert sum(map(len, f.captured.values())) == 2  # each once
  head[2].eval()
  head[0].train()
  f(x)
  head[2].training = True
  assert not same(f(x).numpy(), f(x).numpy())
  attend = jit(lambda x: model[3](x, x, x)[0])
  x = Tensor(floats(5, 2, 4))
  assert not same(attend(x).numpy(), attend(x).numpy())
  model.eval()
  assert same(attend(x).numpy(), attend(x).numpy())


def test_modes_and_hooks_are_honoured():
  w = Tensor([1.0, 2.0], requires_grad=True)
  f = jit(lambda x: (x * w).sum() + Tensor.zeros(2).sum())
  x = Tensor([1.0, 1.0])
  assert f(x).item() == 3
  with no_grad():
    assert f(x).item() == 3
  with mini.autocast("bfloat16"):
    assert jit(lambda x: x.reshape(1, 2) @ w)(x).dtype is dtypes.bfloat16
  g = jit(lambda x: x + Tensor([1.5]).cast(dtypes.default_float))
  kinds = []
  for kind in (dtypes.float32, dtypes.float64, dtypes.float32):
    mini.set_default_dtype(kind)
    kinds.append(g(Tensor([1], dtype="int32")).dtype)
  assert kinds == [dtypes.float32, dtypes.float64, dtypes.float32]
  draw = jit(lambda: Tensor.rand(3))
  draw()
  Tensor.manual_seed(3)
  one = draw().numpy()
  Tensor.manual_seed(3)
  assert same(one, draw().numpy())
  layer = nn.Linear(2, 2)
  run = jit(lambda x: layer(x))
  run(x)
  hook = layer.register_forward_hook(lambda m, a, out: out * 0)
  assert run(x).tolist() == [0, 0]
  hook.remove()
  assert run(x).tolist() != [0, 0]

  @jit
  def slope(x):
    w.grad = None
    (w * x).sum().backward()
    return w.grad

  assert slope(x).tolist() == [1, 1]
  hook = w.register_hook(lambda g: g * 10)
  assert slope(x).tolist() == [10, 10]
  hook.remove()
  assert slope(x).tolist() == [1, 1]


# ---------------------------------------------------------------- what is updated in place, and what adds to a sum

UPDATES = {
  "a stepped slice": (lambda x, v: x.__setitem__(slice(1, 9, 2), 7.0), lambda x, v: x.__setitem__(slice(1, 9, 2), 7.0)),
  "a stepped slice, of values": (lambda x, v: x.__setitem__(slice(0, 9, 3), v), lambda x, v: x.__setitem__(slice(0, 9, 3), v)),
  "a stepped slice, from itself": (lambda x, v: x.__setitem__(slice(1, 9, 2), x[1:9:2] * 2), lambda x, v: x.__setitem__(slice(1, 9, 2), x[1:9:2] * 2)),
  "the other half of it": (lambda x, v: x.__setitem__(slice(1, 9, 2), x[0:8:2] + 1), lambda x, v: x.__setitem__(slice(1, 9, 2), x[0:8:2] + 1)),
  "a mask": (lambda x, v: x.assign((Tensor.arange(9) < 3).where(1.0, x)), lambda x, v: np.copyto(x, 1.0, where=np.arange(9) < 3)),
  "a mask of its values": (lambda x, v: x.__setitem__(x > 4, 0.5), lambda x, v: np.copyto(x, 0.5, where=x > 4)),
  "a mask, reversed": (lambda x, v: x.assign((Tensor.arange(9) < 3).where(x.flip(0), x)), lambda x, v: np.copyto(x, x[::-1].copy(), where=np.arange(9) < 3)),
}  # fmt: skip


# what leaves a state as it is, and says so only once the graph is simplified
UNCHANGED = {
  "nothing of it": lambda x: x.__setitem__(slice(0, 0), 7.0),
  "a mask that nowhere holds": lambda x: x.assign((Tensor.arange(9) < 0).where(1.0, x)),
  "itself": lambda x: x.assign(x * 1),
  "a part of itself": lambda x: x.__setitem__(slice(2, 5), x[2:5] * 1),
}
# another state that is made of it, but for some elements
MADE_OF = {
  "one of them": lambda y, x: (y.copy_(x), y.__setitem__(4, 2.0)),
  "a slice": lambda y, x: (y.copy_(x), y.__setitem__(slice(3, 6), 2.0)),
  "a mask": lambda y, x: y.assign((Tensor.arange(9) < 3).where(2.0, x)),
  "where it is": lambda y, x: y.assign((Tensor.arange(9) < 3).where(x, 2.0)),
}


@pytest.mark.parametrize("made", MADE_OF)
@pytest.mark.parametrize("unchanged", UNCHANGED)
def test_a_state_that_stays_is_no_memory_of_what_is_made_of_it(unchanged, made):
  """A kernel for both wrote one element of the second, and took the first for the rest of it."""
  values = np.arange(9, dtype=np.float32)
  found = []
  for wrap in (lambda f: f, jit):
    x, y = Tensor(values + 10).realize(), Tensor(-values).realize()

    @wrap
    def step(n, x=x, y=y):
      UNCHANGED[unchanged](x)
      MADE_OF[made](y, x)
      return n

    for _ in range(2):
      step(Tensor(1.0))
    found += [x.numpy(), y.numpy()]
  np.testing.assert_array_equal(found[0], values + 10)
  np.testing.assert_array_equal(found[0], found[2])
  np.testing.assert_array_equal(found[1], found[3])
  assert (found[1] == 2).sum() in (1, 3, 6) and not set(found[1].tolist()) - {2, *range(10, 19)}


@pytest.mark.parametrize("what", UPDATES)
@pytest.mark.parametrize("held", [False, True])
def test_states_are_updated_by_slices_and_masks(what, held):
  ours, theirs = UPDATES[what]
  x, want = Tensor.arange(9).float().clone().realize(), np.arange(9, dtype=np.float32)
  step = jit(lambda v: (ours(x, v), x.sum())[1])
  for n in range(4):
    v = np.array([n, n + 1.5, -n], np.float32)
    old, before = x.clone() if held else None, want.copy()
    theirs(want, v)
    total = step(Tensor(v).realize())
    assert same(x.numpy(), want) and total.item() == want.sum()
    assert old is None or same(old.numpy(), before)  # what it was before is still there
    x += 1
    want += 1


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("axis", [0, None])
def test_a_constant_is_added_to_a_sum_over_shares_once(jitted, axis):
  devices = ("CPU", "CPU:1")
  a = floats(6, 4)
  for f, want in (
    (lambda x: x.sum(0) + 1.0, a.sum(0) + 1),
    (lambda x: (x * 2).sum(0) * 3 - 0.5, a.sum(0) * 6 - 0.5),
    (lambda x: (x + 1.0).sum(), (a + 1).sum()),
    (lambda x: 2.0 - x.amax(0), 2 - a.max(0)),
  ):
    f = jit(f) if jitted else f
    for _ in range(2):
      assert np.allclose(f(Tensor(a).shard(devices, axis)).numpy(), want, rtol=1e-5, atol=1e-5)


def test_arguments_by_name_are_found_as_fast():
  """In whatever order; the same tensors in other places are another call."""
  x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
  traced = []

  @jit
  def f(x, y=1.0, *, z=2.0):
    traced.append(1)
    return x * 10 + y * 100 + z

  for _ in range(3):
    assert f(x, y).tolist() == f(x, y=y).tolist() == f(y=y, x=x).tolist() == [312, 422]
    assert f(y=x, x=y).tolist() == [132, 242] and f(x, z=y).tolist() == [113, 124]
    assert f(z=x, x=y).tolist() == [131, 142] and f(x, y, z=5.0).tolist() == [315, 425]
    count = len(traced)
  assert f(x, z=7.0).tolist() == [117, 127] and len(traced) <= count + 1


def test_a_leaf_and_what_is_detached_from_it_are_other_arguments():
  """Both are found again; what the function gives for the one is not what it gives for the other."""
  w, x = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0]).realize()
  traced = []

  @jit
  def f(w, x):
    traced.append(w.requires_grad)
    return (w * x * w).sum().gradient(w)[0] if w.requires_grad else w * x

  for _ in range(3):
    assert f(w, x).tolist() == [6, 16] and f(w.detach(), x).tolist() == [3, 8]
    assert not f(w, x).requires_grad
    with mini.no_grad():
      w.mul_(1.0)
  assert sorted(traced) == [False, True]
  # whose gradient would have to pass into it: it just runs
  assert f(w * 2, x).tolist() == [12, 32] and len(traced) == 3
  other = w.clone()  # has the same node
  f(other, x)
  assert len(traced) == 4

  @jit
  def g(w, x):
    return w * x

  assert g(w, x).requires_grad and not g(w.detach(), x).requires_grad
  assert g(other, x).requires_grad and g(w, x).requires_grad


def leaves_of(a):
  if isinstance(a, dict):
    a = list(a.values())
  return [x for part in a for x in leaves_of(part)] if isinstance(a, (list, tuple)) else [a]


@pytest.mark.parametrize(
  "given, f",
  [
    (lambda x, n: ([x, x + 1], n), lambda xs, n: xs[0] * n - xs[1]),
    (lambda x, n: ({"a": x, "b": [x + 1]}, n), lambda d, n: d["a"] * n - d["b"][0]),
    (lambda x, n: ((x, (n, x + 1)),), lambda t: t[0] * t[1][0] - t[1][1]),
    (lambda x, n: (array(x.numpy()), array((x + 1).numpy()), n), lambda x, y, n: x * n - y),
    (lambda x, n: ([array(x.numpy()), n], x + 1), lambda xs, y: xs[0].tensor() * xs[1] - y),
  ],
)
def test_what_is_plain_is_looked_up_by_its_kinds_alone(given, f, monkeypatch):
  """In lists, tuples and dicts, and arrays of mini.numpy."""
  fast = jit(f)
  for k in range(4):
    x = Tensor([1.0 + k, 2.0, 3.0]).realize()
    args = given(x, 2.0 + k)
    for t in leaves_of(args):
      if isinstance(t, Tensor):
        t.realize()
    if k == 2:
      monkeypatch.setattr(jitted, "signature", None)  # whoever asks more fails
    assert fast(*args).tolist() == (x * (2.0 + k) - (x + 1)).tolist()


def test_kinds_of_arguments_are_told_apart_wherever_they_stand():
  seen = []

  @jit
  def f(a):
    seen.append(a)
    first, *_, last = [*leaves_of(a), *leaves_of(a)]
    return first - last * 2

  x, y, z = (Tensor([n]).realize() for n in (1.0, 2.0, 3.0))
  nests = (
    [x, y],
    (x, y),
    [x],
    [[x], y],
    [[x, y]],
    {"x": x},
    {"x": x, "y": y},
    {"y": x, "x": y},
    [x, x],
    x,
    [x, 2.0],
  )
  for _ in range(3):
    for a in nests:
      first, last = (t if isinstance(t, float) else t.item() for t in (leaves_of(a)[0], leaves_of(a)[-1]))
      assert f(a).tolist() == [first - last * 2]
  assert len(seen) == len(nests)
  assert f([z, x]).tolist() == [1.0] and f({"y": z, "x": x}).tolist() == [1.0] and len(seen) == len(nests)
