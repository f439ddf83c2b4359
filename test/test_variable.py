"""Sizes and indices that are known only at run time: one program serves all, and its results are NumPy's."""

from dataclasses import replace

import numpy as np
import pytest

from mini import ShapeError, Tensor, Variable, grad, jit, nn, stats
from mini.codegen.autoschedule import Machine, write_recipe
from mini.engine.dynamic_shapes import plain
from mini.engine.plan import nameless
from mini.ir.kernel import all_ranges, stores, wanted
from mini.ir.uop import rkind, rsize
from mini.schedule import schedule
from mini.schedule.dead_stores import without_unread
from mini.text.parser import parse
from mini.text.printer import kernel_text
from mini.text.verifier import verify

N = Variable("n", 1, 9)
RNG = np.random.default_rng(5)
X = RNG.normal(size=(9, 6)).astype(np.float32)
W = RNG.normal(size=(6, 6)).astype(np.float32)
BEYOND = X.copy()  # what lies beyond the size may be anything
BEYOND[8:] = np.nan


def largest(x, axis=0):
  return x.max(axis) if isinstance(x, np.ndarray) else x.amax(axis)


def softmax(x, axis):
  e = np.exp(x - x.max(axis, keepdims=True))
  return e / e.sum(axis, keepdims=True)


# Each takes x: f32[n, 6] and the k that n is; what tensors call otherwise stands in `both`.
PROGRAMS = {
  "elementwise": lambda m, x, k: (x * 2 - x[:1]) / 3,
  "sum": lambda m, x, k: x.sum(0),
  "sum of all": lambda m, x, k: x.sum(),
  "max": lambda m, x, k: largest(x),
  "min": lambda m, x, k: -largest(-x) - largest(-x, 1).sum(),
  "prod": lambda m, x, k: x.prod(0),
  "mean": lambda m, x, k: x.mean(0) + x.mean(),
  "var": lambda m, x, k: (x * x + 1).mean(1),
  "argmax": lambda m, x, k: x.argmax(0),
  "cumsum": lambda m, x, k: x.cumsum(0),
  "product": lambda m, x, k: x @ m(W),
  "products": lambda m, x, k: (x @ x.T) @ x,
  "inner": lambda m, x, k: x.T @ x,
  "reshape": lambda m, x, k: x.reshape(-1, 3, 2).sum(1) if k is None else x.reshape(k, 3, 2).sum(1),
  "flat": lambda m, x, k: x.reshape(-1) * 2,
  "first": lambda m, x, k: x[0],
  "last": lambda m, x, k: x[-1] + x[[-1, 0]].sum(0),
  "rows": lambda m, x, k: m(X)[m(np.array([1, 0, 8]))] + x.sum(0),
}


def cases(x, k):
  return {name: f(np.asarray, x, k) for name, f in PROGRAMS.items()} | {
    "softmax": softmax(x, 0),
    "padded": np.vstack([x, 0 * X[k:]]),
  }


def test_one_program_for_all_sizes():
  @jit
  def run(x, n):
    y = x[:n]
    found = {name: f(Tensor, y, None) for name, f in PROGRAMS.items()}
    return found | {"softmax": y.softmax(0), "padded": y.pad((0, 0, 0, 9 - n))}

  for t in run(Tensor(BEYOND), N.bind(3)).values():
    t.numpy()  # "first" is a view of x
  before = stats["compiles"], stats["schedules"]
  for k in range(1, 9):
    found = run(Tensor(BEYOND), N.bind(k))
    for name, want in cases(X[:k], k).items():
      got = found[name].numpy()
      assert got.shape == want.shape, name
      np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5, err_msg=f"{name}, {k}")
  assert (stats["compiles"], stats["schedules"]) == before


def test_without_jit_too():
  for k in (2, 7):
    y = Tensor(BEYOND)[: N.bind(k)].realize()
    assert y.shape == (N.bind(k), 6) and repr(y.shape) == f"(n={k}, 6)"
    np.testing.assert_allclose((y + 1).softmax(0).numpy(), softmax(X[:k] + 1, 0), rtol=1e-5)
    if k == 2:
      before = stats["compiles"]
  assert stats["compiles"] == before


def test_results_go_on():
  """What a jitted function returns has the size of that call."""
  f = jit(lambda x, n: x[:n] * 2)
  a, b = f(Tensor(X), N.bind(4)), Tensor(X)[: N.bind(4)]
  np.testing.assert_array_equal((a + b).numpy(), X[:4] * 3)
  assert f(Tensor(X), N.bind(5)).shape[0] != a.shape[0]


def test_sizes_from_outside():
  """What has a size that varies may be an argument of a jitted function, or reached from one."""
  known = (Tensor(X) * 2)[: N.bind(4)].realize()
  f = jit(lambda x: (x + known).sum(0))
  for _ in range(2):
    np.testing.assert_allclose(f(known * 1).numpy(), 4 * X[:4].sum(0), rtol=1e-5)


def random_program(rng, t, size):
  """Random steps that keep two axes; t is a tensor or an array."""
  for step in rng.integers(0, 7, 5):
    t = step_of(step, t, size)
  return t


def step_of(step, t, size):
  return [
    lambda: t * 0.5 + t.mean(0),
    lambda: t - largest(t),
    lambda: t + (t @ t.T).mean(1).reshape(size, 1),
    lambda: t.T.reshape(2, 3, size).sum(0).sum(0).reshape(size, 1) * t / 8,
    lambda: (t.T @ t / 9).mean() + t,
    lambda: t.cumsum(0) / 4,
    lambda: t * (t > t.mean()),
  ][step]()


def test_random_programs():
  f = jit(lambda x, n: [random_program(np.random.default_rng(s), x[:n], n) for s in range(12)])
  f(Tensor(BEYOND.astype(np.float64)), N.bind(2))
  before = stats["compiles"]
  for k in (1, 4, 8):
    for s, got in enumerate(f(Tensor(BEYOND.astype(np.float64)), N.bind(k))):
      want = random_program(np.random.default_rng(s), X[:k].astype(np.float64), k)
      np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-9, err_msg=f"{s}, {k}")
  assert stats["compiles"] == before


def test_gradients():
  def loss(x, n):
    y = x[:n]
    return ((y.softmax(0) * y).sum() + (y @ y.T).square().mean() + y[-1].sum() + y.amax(0).sum()) / n

  slope = jit(lambda x, n: grad(loss)(x, n))
  x = X.astype(np.float64)
  for k in (1, 5, 9):
    got = slope(Tensor(x), N.bind(k)).numpy()
    want = np.zeros((9, 6))
    want[:k] = grad(loss)(Tensor(x[:k]), k).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_attention():
  q, keys, values = (RNG.normal(size=(2, t, 4)).astype(np.float32) for t in (3, 9, 9))
  f = jit(lambda q, k, v, n: q.scaled_dot_product_attention(k[:, :n], v[:, :n]))
  for k in (1, 5, 9):
    got = f(Tensor(q), Tensor(keys), Tensor(values), N.bind(k)).numpy()
    scores = q @ keys[:, :k].transpose(0, 2, 1) / 2
    np.testing.assert_allclose(got, softmax(scores, -1) @ values[:, :k], rtol=1e-4, atol=1e-6)


def test_what_lies_beyond_is_not_computed():
  """Every loop over the largest size ends at the size of the run, but that of the results."""
  n = replace(
    Variable("n", 1, 1000).bind(7), value=Tensor(7, dtype="int32").realize().uop
  )  # as a jitted one has
  q, k = Tensor.zeros(2, 1, 64).realize(), Tensor.zeros(2, 1000, 64).realize()
  y = q.scaled_dot_product_attention(k[:, :n], k[:, :n]) + 1
  kernels, _ = schedule({"y": plain(y.uop)})
  assert any("if" in kernel_text(each).splitlines()[-2] for each in kernels), "all of a temporary is wanted"
  for each in kernels:
    tuned, recipe = write_recipe(nameless(each).kernel, Machine(lanes=8))
    verify(tuned)
    for r in all_ranges(tuned):
      assert rsize(r) < 1000 // 64 or r.src or rkind(r) != "loop" or rsize(r) == 64, (
        kernel_text(tuned),
        recipe,
      )
  results, _ = schedule({"y": plain((k[:, :n] * 2).uop)})
  assert " if " not in kernel_text(results[0])


WRITES = """kernel a(%t: out f32[9], %x: in f32[9]) {
  %i = range 9
  %0 = load %x[%i] : f32
  %1 = exp %0      : f32
  store %t[%i], %1
  end over (%i)
}"""
GOES_ON = WRITES.replace("a(%t", "b(%u").replace("%x", "%t").replace("store %t", "store %u")
SUMS = """kernel r(%y: out f32[], %t: in f32[9], %n: in i32[]) {
  %k = range 9
  %0 = cast %k                   : i32
  %1 = load %n[]                 : i32
  %2 = lt %0, %1                 : bool
  %3 = load %t[%k]               : f32
  %4 = where %2, %3, 0.0         : f32
  %5 = reduce.add %4 over (%k)   : f32
  store %y[], %5
  end over ()
}"""
BOTH = SUMS.replace("reduce.add %4", "reduce.add %6").replace("  %5 =", "  %6 = add %4, %3 : f32\n  %5 =")
OTHERWISE = SUMS.replace("where %2, %3, 0.0", "where %2, 0.0, %3")
COPIES = GOES_ON.replace("kernel b", "kernel c").replace("%u", "%z")
SIZE = """kernel n(%n: out i32[], %m: in i32[]) {
  %0 = load %m[] : i32
  store %n[], %0
  end over ()
}"""
LIMITED = {  # kernels, and whether something is wanted below %n alone
  "read below a size": ([WRITES, SUMS], True),
  "read on the way": ([WRITES, GOES_ON, SUMS.replace("%t", "%u")], True),
  "read in one place below it": ([WRITES, BOTH], False),
  "read beyond it": ([WRITES, OTHERWISE], False),
  "one reader reads all": ([WRITES, SUMS, COPIES], False),
  "all readers are below it": ([WRITES, SUMS, SUMS.replace("%y", "%v")], True),
  "two sizes": ([WRITES, SUMS, SUMS.replace("%y", "%v").replace("%n", "%m")], False),
  "the size comes later": ([WRITES, SIZE, SUMS], False),
  "the size comes first": ([SIZE, WRITES, SUMS], True),
  "nobody reads it below a size": ([WRITES, GOES_ON], False),
  "accumulated": ([WRITES.replace("store %t", "store.add %t"), SUMS], False),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITED)
def test_what_is_wanted_of_a_temporary(case):
  sources, limited = LIMITED[case]
  kernels = [parse(s) for s in sources]
  found = without_unread(kernels, {"y", "z", "v"})
  assert [stores(k) for k in found] == [stores(k) for k in kernels]
  assert any(map(wanted, found)) == limited
  assert all(parse(kernel_text(k)) is k for k in found)
  assert not any(wanted(k) for k in without_unread(kernels, {"y", "z", "v", "t", "u"}))


def test_layers():
  model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
  f = jit(lambda x, n: model(x[:n]))
  for k in (2, 8):
    np.testing.assert_allclose(
      f(Tensor(X), N.bind(k)).numpy(), model(Tensor(X[:k])).numpy(), rtol=1e-4, atol=1e-5
    )


def test_half_of_a_size():
  """Both of its numbers are halves, or it is no size."""
  n = Variable("n", 1, 8)
  assert (n * 2 + 4) // 2 == n + 2
  for odd in (n + 4, n * 2 + 1):
    with pytest.raises((TypeError, ShapeError)):
      odd // 2


# ---------------------------------------------------------------- indices


def test_at():
  i = Variable("i", 0, 8)
  f = jit(lambda x, i: (x.at(i), x.T.at(8 - (8 - i), axis=1), x[i, 2]))
  f(Tensor(X), i.bind(0))
  before = stats["compiles"]
  for k in range(9):
    a, b, c = (t.numpy() for t in f(Tensor(X), i.bind(k)))
    np.testing.assert_array_equal(a, X[k])
    np.testing.assert_array_equal(b, X[k])
    assert c == X[k, 2]
  assert stats["compiles"] == before


def test_set_at_and_a_cache():
  """One position after another is written, and what is there by then is summed up."""
  cache = Tensor.zeros(9, 6).realize()

  @jit
  def step(row, i):
    cache[i] = row
    return cache[: i + 1].sum(0)

  i = Variable("i", 0, 8)
  for k in range(9):
    if k == 1:
      before = stats["compiles"]
    np.testing.assert_allclose(step(Tensor(X[k]), i.bind(k)).numpy(), X[: k + 1].sum(0), rtol=1e-5, atol=1e-6)
  assert stats["compiles"] == before
  np.testing.assert_array_equal(cache.numpy(), X)


# ---------------------------------------------------------------- what is refused


SAID = {  # what is done to x: f32[9, 6] and n = 3 -> what the error says
  "n.bind(10)": (ValueError, "n.bind\\(10\\): n is a Variable from 1 to 9"),
  "n.bind(0)": (ValueError, "from 1 to 9"),
  "n.bind(2.5)": (TypeError, "an integer"),
  "n.bind(2).bind(2)": (ShapeError, "bound already"),
  "x[:n]": (ShapeError, "n has no value: n.bind\\(1\\)"),
  "x.at(n)": (ShapeError, "n has no value"),
  "y + x": (ShapeError, "\\(n=3, 6\\) and \\(9, 6\\)"),
  "y + x[:n.bind(4)]": (ShapeError, "\\(n=3, 6\\) and \\(n=4, 6\\)"),
  "y @ x": (ShapeError, "a @ b"),
  "x.T @ y": (ShapeError, "a @ b"),
  "y.flip(0)": (ShapeError, "flip: n=3, from 1 to 9"),
  "y.cat(y)": (ShapeError, "cat: n=3"),
  "y.sort(0)": (ShapeError, "sort: n=3"),
  "y.reshape(18)": (ShapeError, "reshape"),
  "y.T.flatten()": (ShapeError, "reshape"),
  "list(y)": (ShapeError, "iter: n=3"),
  "y[3].numpy()": (IndexError, "out of bounds"),
  "y[::2]": (IndexError, "step 1"),
  "x[:4][:n.bind(3)]": (ShapeError, "getitem: n=3"),
  "y.at(Tensor(3)).numpy()": (IndexError, "out of bounds"),
  "x.at(Variable('i', 0, 20).bind(9)).numpy()": (IndexError, "out of bounds"),
  "Variable('n', 5, 4)": (ValueError, "range is empty"),
}  # fmt: skip


def test_windows():
  """As many elements from anywhere on, to get and to set."""
  i = Variable("i", 0, 5)

  @jit
  def shifted(x, i):
    y = x * 1
    y[i : i + 3] = x[i + 1 : i + 4]
    return y, x[i : i + 3]

  for k in (0, 5):
    y, window = shifted(Tensor(X), i.bind(k))
    want = X.copy()
    want[k : k + 3] = X[k + 1 : k + 4]
    np.testing.assert_array_equal(y.numpy(), want)
    np.testing.assert_array_equal(window.numpy(), X[k : k + 3])


@pytest.mark.parametrize("done", SAID)
def test_errors(done):
  names = {"x": Tensor(X), "n": N, "y": Tensor(X)[: N.bind(3)], "Tensor": Tensor, "Variable": Variable}
  with pytest.raises(SAID[done][0], match=SAID[done][1]):
    eval(done, names)


LAYERS = {
  "BatchNorm1d": (lambda: nn.BatchNorm1d(6), (6,)),
  "BatchNorm2d": (lambda: nn.BatchNorm2d(3), (3, 2, 2)),
  "GroupNorm": (lambda: nn.GroupNorm(3, 6), (6,)),
  "LSTM": (lambda: nn.LSTM(6, 4, batch_first=True, bidirectional=True), (3, 6)),
  "GRUCell": (lambda: nn.GRUCell(6, 4), (6,)),
  "LSTM, steps": (lambda: nn.LSTM(6, 4, 2, bidirectional=True), (2, 6)),
  "GRU, steps": (lambda: nn.GRU(6, 4), (2, 6)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.sample(10)
def test_layers_of_a_batch_or_steps_that_vary(name, rng):
  """Statistics, states and gradients are those of the batch alone, and one program serves all batches."""
  make, rest = LAYERS[name]
  model, other = make(), make()
  other.load_state_dict(model.state_dict())
  first = lambda out: out[0] if isinstance(out, tuple) else out

  def step(model, x):
    model.zero_grad()
    loss = (first(model(x)) * x.square().mean(-1, True).mean()).square().sum()
    loss.backward()
    return loss, [p.grad for p in model.parameters()]

  run = jit(lambda x, n: step(model, x[:n]))
  x = rng.normal(size=(9, *rest)).astype(np.float32)
  with Tensor.train():
    for k in (5, 3, 8):
      beyond = x.copy()
      beyond[k:] = np.nan
      loss, slopes = run(Tensor(beyond), N.bind(k))
      want, wanted = step(other, Tensor(x[:k]))
      assert loss.item() == pytest.approx(want.item(), rel=1e-5)
      for a, b in zip(slopes, wanted):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
      assert first(model(Tensor(x)[: N.bind(k)])).numpy().shape == first(other(Tensor(x[:k]))).shape
      for a, b in zip(
        model.state_dict().values(), other.state_dict().values()
      ):  # the running statistics, too
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
