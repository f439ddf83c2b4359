"""The engine: how many kernels, what is compiled again, what memory a loop takes, threads, forks, and running out."""

import gc
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from mini import Device, Tensor, jit, nn, stats
from mini.engine.profile import Sum
from mini.engine.program import cost
from mini.engine.realize import Numbered
from mini.ir import graph
from mini.ir.uop import interned_count, without_collector
from mini.nn.state import lay, views
from mini.text.parser import parse


def floats(*shape, seed=0):
  return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def counted(what, do):
  """By how much a counter grows."""
  before = stats[what]
  do()
  return stats[what] - before


def kernels(*tensors):
  return counted("kernels", lambda: Tensor.realize(*tensors))


# ---------------------------------------------------------------- kernel counts


# fmt: off
COUNTS = {
  "max_pool2d, relu":       (1, lambda: floats(2, 3, 8, 8).max_pool2d(2).relu()),
  "relu, max_pool2d":       (1, lambda: floats(2, 3, 9, 9).relu().max_pool2d(3)),
  "matmul, relu":           (1, lambda: (floats(64, 32) @ floats(32, 128)).relu()),
  "a chain, and its sum":   (1, lambda: (floats(100, 100) * floats(100, 100, seed=1) + floats(100, 100)).relu().sum()),
  "softmax":                (1, lambda: floats(5, 60).softmax(-1)),
  "softmax of 3 axes":      (1, lambda: floats(2, 3, 70).softmax(-1)),
  "softmax of long rows":   (1, lambda: floats(4, 5000).softmax(-1)),
  "log_softmax":            (1, lambda: floats(5, 60).log_softmax(-1)),
  "layer norm":             (1, lambda: nn.LayerNorm(60)(floats(5, 60))),
  "layer norm of 3 axes":   (1, lambda: nn.LayerNorm(60)(floats(3, 5, 60))),
  "RMS norm":               (1, lambda: nn.RMSNorm(60)(floats(5, 60))),
  "cross entropy":          (1, lambda: floats(8, 30).cross_entropy(Tensor(np.arange(8)))),
  "gelu":                   (1, lambda: floats(8, 30).gelu()),
  "views of views":         (1, lambda: floats(6, 8).T.reshape(4, 12)[1:, ::-1].pad(((0, 0), (1, 1))) + 1),
}
# fmt: on


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", COUNTS)
def test_counts(what):
  want, make = COUNTS[what]
  assert kernels(make()) == want


@pytest.mark.parametrize("shape", [(5, 60), (3, 5, 60), (64, 256)])
def test_layer_norm_backward_is_two_kernels(shape):
  """One for x; one for the weight and the bias together."""
  x, w, b = (
    floats(*shape).requires_grad_(),
    floats(shape[-1]).requires_grad_(),
    floats(shape[-1]).requires_grad_(),
  )
  y = x.layer_norm((shape[-1],), w, b)
  y.realize()
  y.backward(floats(*shape, seed=1).realize())
  assert kernels(x.grad, w.grad, b.grad) <= 2


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_an_optimizer_step_is_one_kernel(name):
  """And one that counts the steps."""
  model = nn.Sequential(nn.Linear(3, 40), nn.Linear(40, 5))
  optimizer = getattr(nn.optim, name)(model.parameters(), lr=0.1)
  params = list(model.parameters())
  row = lay([graph.full(p.shape, 1, p.dtype) for p in params])  # as backward() leaves them for a step
  for p, u in zip(params, views(Tensor(row).realize().uop, [p.shape for p in params])):
    p.grad = Tensor(u)
  assert counted("kernels", optimizer.step) <= 2


# ---------------------------------------------------------------- what is compiled once


class Block:
  def __init__(self, n):
    self.norm, self.up, self.down = nn.LayerNorm(n), nn.Linear(n, 4 * n), nn.Linear(4 * n, n)

  def __call__(self, x):
    return x + self.down(self.up(self.norm(x)).gelu())


class Stack:
  def __init__(self, depth, n=24):
    self.blocks = [Block(n) for _ in range(depth)]

  def __call__(self, x):
    for b in self.blocks:
      x = b(x)
    return x


def size_of(depth, step):
  """How many kernels a program of so many blocks has, and how many different ones."""
  run = jit(step(Stack(depth)))
  run(floats(2, 8, 24))
  program = next(iter(run.captured.values()))[0].program
  return len(program.runs), len({c.name for c in program.compiled})


def test_big_kernels_that_share_only_numbers_are_one_that_runs_for_each():
  """Such as those that give weights their first values; small ones share a launch."""

  def launches(n):
    run = jit(lambda scale, *xs: [x.exp() * scale for x in xs])
    xs = [floats(n) for _ in range(4)]
    for x, found in zip(xs, run(2.5, *xs)):
      assert np.allclose(found.numpy(), np.exp(x.numpy()) * 2.5)
    return list(Counter(c.name for c in next(iter(run.captured.values()))[0].program.compiled).values())

  assert launches(5000) == [4] and launches(50) == [1]


def test_identical_blocks_compile_once():
  """A block is three kernels: the norm, a product and its gelu, a product and its sum. The first norm reads an argument
  and may differ."""

  def forward(model):
    return lambda x: model(x)

  def step(model):
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=0.01)

    def step(x):
      optimizer.zero_grad()
      loss = model(x).square().mean()
      loss.backward()
      optimizer.step()
      return loss

    return step

  sizes = [size_of(depth, forward) for depth in (1, 3, 7)]
  assert [launches for launches, _ in sizes] == [3, 9, 21] and all(different <= 4 for _, different in sizes)
  one, three, seven = (size_of(depth, step) for depth in (1, 3, 7))
  assert seven[0] - three[0] <= 2 * (three[0] - one[0])
  # what grows with the depth is the row of all gradients, and the update of all parameters
  assert seven[1] <= three[1] + 4


def test_the_same_graph_again_compiles_nothing():
  def step(x, lr, n):
    return (x * lr + (x @ x.T).sum(1, keepdim=True) / n).tanh()

  step(floats(6, 6), 0.3, 7.0).realize()
  for k in range(3):
    before = dict(stats)
    step(floats(6, 6, seed=k), 0.01 * k + 0.005, k + 2.5).realize()
    assert (stats["schedules"], stats["compiles"]) == (before["schedules"], before["compiles"])
    assert stats["cache_hits"] == before["cache_hits"] + 1


def test_an_eager_loop_compiles_nothing_after_its_second_step():
  step, optimizer = training(lambda f: f)
  for n in range(5):
    before = dict(stats)
    optimizer.lr = 0.1 / (n + 1)
    step(floats(4, 3, seed=n), floats(4, 2, seed=n))
    assert n < 2 or (stats["schedules"], stats["compiles"]) == (before["schedules"], before["compiles"])


# ---------------------------------------------------------------- memory


def training(wrap, seed=0):
  Tensor.manual_seed(seed)
  model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
  optimizer = nn.optim.AdamW(model.parameters(), lr=0.01)

  @wrap
  def step(x, y):
    with Tensor.train():
      optimizer.zero_grad()
      loss = (model(x) - y).square().mean()
      loss.backward()
      nn.optim.clip_grad_norm(model.parameters(), 1.0)
      optimizer.step()
      return loss

  return step, optimizer


@pytest.mark.sample(2)
@pytest.mark.parametrize("wrap", [jit, lambda f: f], ids=["jit", "eager"])
def test_a_steady_loop_takes_no_more_memory(wrap, request):
  """Nothing is asked of the system after the second step;
  nothing that is alive adds up, without the collector's help."""
  step, _ = training(wrap)
  steps = 1000 if wrap is jit or request.config.option.full else 200

  def run(n):
    for k in range(n):
      step(floats(4, 3, seed=k), floats(4, 2, seed=k)).item()

  run(2)
  gc.collect()
  gc.disable()
  try:
    run(1)
    before = stats["bytes_live"], interned_count(), stats["bytes_allocated"], len(gc.get_objects())
    run(steps)
    after = stats["bytes_live"], interned_count(), stats["bytes_allocated"], len(gc.get_objects())
  finally:
    gc.enable()
  assert after[:3] == before[:3]
  assert after[3] - before[3] < 100


def test_memory_is_given_back():
  def work():
    x = floats(64, 64)
    w = floats(64, 64, seed=1).requires_grad_()
    loss = (x @ w).softmax(1).square().sum()
    loss.backward()
    return loss.item() + w.grad.sum().item()

  work()
  gc.collect()
  before = stats["bytes_live"], interned_count()
  for _ in range(3):
    work()
  gc.collect()
  assert (stats["bytes_live"], interned_count()) == before


@pytest.mark.full
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="what is loaded is read there")
def test_code_that_no_program_has_any_more_is_unloaded(monkeypatch):
  """A process can map some 13,000 libraries. What a program has that somebody holds stays."""
  monkeypatch.setattr("mini.engine.device.FUNCTIONS", 8)
  monkeypatch.setattr("mini.engine.realize.PROGRAMS", 4)
  loaded = lambda: Path("/proc/self/maps").read_text().count("r-xp")
  monkeypatch.setattr("mini.engine.program.FUNCTIONS", 8)
  kept = jit(lambda x: (x * 3.5).sin() + 1)
  want = kept(Tensor.arange(7)).numpy()
  before = loaded()
  for n in range(40):
    assert (Tensor.arange(n + 11) * 2 + n).cos().sum().isfinite().item()
  gc.collect()  # programs are in cycles
  assert loaded() < before + 20
  assert np.array_equal(kept(Tensor.arange(7)).numpy(), want)
  several = [(Tensor.arange(11) * 2 + n).cos().sum() + Tensor.ones(n + 2).sin().sum() for n in range(12)]
  Tensor.realize(*several)  # more than are remembered, of which some were


def test_the_cost_of_a_kernel():
  """What PROFILE compares with the machine's limits: each element of memory once, each operation as often as it runs."""
  source = """kernel f(%y: out f64[6], %x: in f32[5, 6], %z: in i8[6]) {
  %j = range 6
  %k = range 5
  %0 = load %x[%k, %j] : f32
  %1 = exp %0 : f32
  %2 = reduce.add %1 over (%k) : f32
  %3 = load %z[%j] : i8
  %4 = load %x[0, %j] : f32
  %5 = add %2, %4 : f32
  %6 = cast %5 : f64
  %7 = cast %3 : f64
  %8 = add %6, %7 : f64
  store %y[%j], %8
  end over (%j)
}"""
  flops, nbytes = cost(parse(source))
  assert nbytes == 4 * 30 + 6 + 8 * 6
  assert flops == 30 + 30 + 4 * 6


def test_temporaries_share_an_arena():
  """A chain of matmuls needs two temporaries at a time, however long it is."""
  x, w = floats(128, 128), floats(128, 128, seed=1)
  y = x
  for _ in range(10):
    y = (y @ w) * 0.1
  stats.reset()
  before = stats["bytes_live"]
  y.realize()
  assert stats["bytes_peak"] - before <= 4 * x.nbytes


# ---------------------------------------------------------------- the same bits


DIGEST = """
import hashlib, numpy as np
from mini import Tensor, jit, nn
Tensor.manual_seed(1)
r = np.random.default_rng(0)
f = lambda *s: Tensor(r.normal(size=s).astype(np.float32))
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 64))
optimizer = nn.optim.AdamW(model.parameters(), lr=0.01)
@jit
def step(x):
  optimizer.zero_grad()
  loss = (model(x).softmax(-1) - x).square().mean()
  loss.backward()
  optimizer.step()
  return loss
values = [step(f(128, 64)).item() for _ in range(5)] + [f(1000, 100).sum().item(), (f(300, 200) @ f(200, 300)).sum(0).numpy()]
print(hashlib.sha1(b"".join(np.asarray(v).tobytes() for v in values)).hexdigest(), values[4])
"""


@pytest.mark.full
def test_runs_repeat_to_the_bit():
  """On the same machine, with the same number of threads."""
  found = {}
  for threads in ("1", "2"):
    env = {**os.environ, "THREADS": threads}
    runs = [
      subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True, env=env)
      for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    found[threads] = float(runs[0].stdout.split()[1])
  assert found["1"] == pytest.approx(found["2"], rel=1e-5)


# ---------------------------------------------------------------- threads and processes


def test_two_threads_realize_at_once():
  x = floats(64, 64)
  want = {n: np.tanh(x.numpy() @ x.numpy() * n + n).sum(1) for n in range(4)}
  problems = []

  def work(me):
    try:
      step = jit(lambda t, n: (t @ t * n + n).tanh().sum(1))
      for k in range(30):
        n = (me + k) % 4
        eager = (x @ x * n + n).tanh().sum(1).numpy()
        jitted = step(x, float(n)).numpy()
        fresh = (floats(8 + me, 8 + k % 3) + me).sum().item()
        assert (
          np.allclose(eager, want[n], atol=1e-3)
          and np.allclose(jitted, want[n], atol=1e-3)
          and np.isfinite(fresh)
        )
    except BaseException as e:  # noqa: BLE001 - the main thread says which
      problems.append(repr(e))

  threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
  for t in threads:
    t.start()
  for t in threads:
    t.join(60)
  assert not problems and not any(t.is_alive() for t in threads)


FORKS = """
import os, threading, numpy as np
from mini import Tensor, jit
x = Tensor(np.ones((300, 300), np.float32))
step = jit(lambda t: (t @ t).sum())
assert step(x).item() == 300.0**3
stop = threading.Event()
def busy():
  n = 0
  while not stop.is_set():
    n += 1
    (x @ x + n).sum().item()
thread = threading.Thread(target=busy)
thread.start()
children = []
for _ in range(5):
  pid = os.fork()
  if pid == 0:
    stop.set()
    good = step(x).item() == 300.0**3 and (x * 2).sum().item() == 180000.0
    good = good and (x.softmax(1) * 300).sum().item() > 0
    os._exit(0 if good else 1)
  children.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
stop.set()
thread.join()
print(codes)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_realizes():
  """While another thread of its parent is at it, too."""
  run = subprocess.run(
    [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=120, check=False
  )
  assert run.stdout == "[0, 0, 0, 0, 0]\n", run.stderr


# ---------------------------------------------------------------- what goes wrong


@pytest.fixture
def little_memory(monkeypatch):
  """A device that has 64 MiB more than is in use."""
  gc.collect()
  shim = Device["CPU"].shim
  shim.heap.trim()
  monkeypatch.setattr(shim.heap, "limit", shim.heap.live + (64 << 20))


def outer_product():
  """16 KiB and 16 KiB make 64 MiB, and with those there is no room for it."""
  return floats(4096, 1), floats(4096, seed=1)


@pytest.mark.parametrize("wrap", [jit, lambda f: f], ids=["jit", "eager"])
def test_out_of_memory_names_the_program(wrap, little_memory):
  """And the process goes on."""
  a, b = outer_product()

  @wrap
  def outer(a, b):
    return (a * b).realize()

  for _ in range(2):
    with pytest.raises(MemoryError) as e:
      outer(a, b)
    text = str(e.value)
    assert "map_4096_4096" in text and "needs 64.0 MiB at once" in text
    assert "out0: f32[4096,4096]   64.0 MiB" in text and "in0: f32[4096,1]   16.0 KiB" in text
    assert (a.sum() * 0 + b.sum() * 0).item() == 0


def test_out_of_memory_for_temporaries(little_memory):
  a, b = outer_product()
  with pytest.raises(MemoryError, match=r"needs 64\.\d MiB at once(.|\n)*temporary t\d   64.0 MiB"):
    ((a * b).cumsum(0).amax(1)[0].sum() + 0).item()


def test_out_of_memory_in_a_step_leaves_the_state(little_memory):
  w = Tensor([1.0])
  a, b = outer_product()

  @jit
  def step():
    w.assign(w + 1)
    return a * b

  for _ in range(2):
    with pytest.raises(MemoryError):
      step()
    assert w.item() == 1.0


def test_an_index_out_of_bounds():
  x, index = floats(5, 3), Tensor([0, 7, 2])
  with pytest.raises(
    IndexError,
    match=r"gather: index 7 is out of bounds for an axis of size 5(.|\n)*made at \S*test_engine\.py:\d+",
  ):
    x[index].numpy()
  with pytest.raises(IndexError, match=r"gather: index -6 is out of bounds for an axis of size 5"):
    x.gather(0, Tensor([[0, -6, 2]])).numpy()
  with pytest.raises(IndexError, match=r"scatter: index 9 is out of bounds for an axis of size 5"):
    x.scatter(0, Tensor([[0, 9, 2]]), Tensor([[1.0, 1.0, 1.0]])).numpy()
  assert x[Tensor([4])].shape == (1, 3) and (x + 1).sum().item() == pytest.approx(
    x.numpy().sum() + 15, abs=1e-4
  )


def test_an_index_out_of_bounds_in_a_jitted_function():
  x = floats(5, 3)
  f = jit(lambda index: x[index] * 2)
  f(Tensor([1, 2]))
  with pytest.raises(
    IndexError,
    match=r"gather: index 7 is out of bounds for an axis of size 5(.|\n)*f32\[2,3\]   made at \S*test_engine\.py:\d+",
  ):
    f(Tensor([1, 7]))
  assert f(Tensor([1, 2])).shape == (2, 3)


# fmt: off
READ = {  # what is read at an index, all of 4 elements
  "memory":   lambda at: Tensor([1.0, 2.0, 3.0, 4.0], device=at).realize(),
  "a number": lambda at: Tensor.full((4,), 3, dtype="int8", device=at),
  "a shrunk number": lambda at: Tensor.ones(9, device=at)[2:6],
  "a range":  lambda at: Tensor.arange(4, device=at),
  "computed": lambda at: Tensor.arange(4, device=at) * 2.0,
}
AT = {  # an index for which 4 elements are too few, and what it is
  "memory":   (lambda at: Tensor([1, 7], device=at).realize(), 7),
  "negative": (lambda at: Tensor([-9, 0], device=at).realize(), None),  # counted from the end by some
  "a number": (lambda at: Tensor.full((2,), 5, dtype="int32", device=at), 5),
  "a range":  (lambda at: Tensor.arange(5, device=at), 4),
  "computed": (lambda at: Tensor.arange(2, device=at) * 6, 6),
}
BY = {
  "x[i]":         lambda x, i: x[i],
  "gather":       lambda x, i: x.gather(0, i),
  "index_select": lambda x, i: x.index_select(0, i).sum(),
  "take":         lambda x, i: x.take(i.reshape(-1, 1)) + 1,
  "embedding":    lambda x, i: nn.functional.embedding(i, x.reshape(4, 1)),
  "x[i] = v":     lambda x, i: x.index_put((i,), x[:1].expand(i.shape)),
  "scatter":      lambda x, i: x.scatter(0, i, 1),
  "scatter_add":  lambda x, i: x.scatter_add(0, i, x[:1].expand(i.shape)),
}
# fmt: on


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("read", READ)
@pytest.mark.sample(9)
def test_an_index_is_checked_whatever_it_is_and_whatever_it_reads(read, at):
  index, value = AT[at]
  for how, by in BY.items():
    for device, run in (("CPU", by), ("INTERP", by), ("CPU", jit(by)))[: 3 if how == "x[i]" else 2]:
      with pytest.raises(IndexError, match="out of bounds for an axis of size 4") as e:
        run(READ[read](device), index(device)).realize()
      assert value is None or f"index {value} " in str(e.value), how


def test_no_check_is_left_of_an_index_that_is_seen_to_be_within():
  x, y, one = floats(5).realize(), floats(9).realize(), Tensor.ones(5)
  i = Tensor.arange(3) + 1
  for make in (
    lambda: x[i],
    lambda: one[i] + y[i],
    lambda: x.gather(0, i - 1),
    lambda: x[Tensor.full((4,), 2)],
    lambda: y.scatter(0, i + 2, x[:3]),
    lambda: y.scatter_add(0, i, one[:3]),
  ):
    graph = Numbered([make().uop])
    assert not any(c.guarded for c in graph.program(graph.roots).compiled)
  np.testing.assert_array_equal((x[i] + one[i]).numpy(), x.numpy()[1:4] + 1)


def test_an_index_is_not_checked_where_nothing_is_read_around_a_pad():
  """The index is computed there, too, of zeros."""
  x, i = floats(4).realize(), Tensor([-7, -6]).realize()
  for t in (x, Tensor.ones(4)):
    want = np.pad(t.numpy()[:2], 1)
    np.testing.assert_array_equal(t[i + 7].pad((1, 1)).numpy(), want)
    with pytest.raises(IndexError, match="index 9 is out of bounds for an axis of size 4"):
      t[i + 15].pad((1, 1)).realize()


def test_the_axis_of_an_index_has_something():
  i = Tensor([0])
  for x in (Tensor.ones(0, 2), Tensor(np.zeros((0, 2), np.float32)).realize()):
    for wrong in (
      lambda x: x[i],
      lambda x: x.gather(0, i.reshape(1, 1)),
      lambda x: x.scatter(0, i.reshape(1, 1), 1.0),
      lambda x: x.index_put((i,), Tensor(1.0)),
      lambda x: nn.functional.embedding(i, x),
    ):
      with pytest.raises(IndexError, match="out of bounds for axis 0 .* which has size 0"):
        wrong(x)
    assert x[Tensor([], dtype="int64")].shape == (0, 2) and x.T[Tensor([1])].shape == (1, 0)
  assert Tensor(5.0).gather(0, Tensor(0)).item() == 5
  with pytest.raises(IndexError, match="index 1 is out of bounds for an axis of size 1"):
    Tensor(5.0).gather(0, Tensor(1)).realize()


def test_what_is_gathered_from_a_range_has_memory():
  """A load knows what is out of bounds."""
  index = Tensor([3, 1, 2]).realize()
  assert Tensor.arange(10).gather(0, index).tolist() == [3, 1, 2]
  assert (Tensor.arange(36).reshape(6, 6).gather(0, index.reshape(1, 3)) * 2).tolist() == [[36, 14, 28]]
  with pytest.raises(IndexError, match="index 10 is out of bounds"):
    Tensor.arange(10).gather(0, index + 7).realize()


def test_the_collector_is_as_it_was_after_a_program_was_made():
  """Of two threads the one that begins later may end later, too."""
  order = [threading.Event() for _ in range(3)]

  @without_collector
  def first():
    order[0].set()
    assert not gc.isenabled() and order[1].wait(10)

  @without_collector
  def second():
    order[1].set()
    assert order[2].wait(10)

  assert gc.isenabled()
  threads = [threading.Thread(target=first), threading.Thread(target=second)]
  threads[0].start()
  assert order[0].wait(10)
  threads[1].start()
  threads[0].join()
  order[2].set()
  threads[1].join()
  assert gc.isenabled()
  gc.disable()
  try:
    without_collector(lambda: None)()
    assert not gc.isenabled()
  finally:
    gc.enable()


def test_rows_of_a_profile_add_up():
  assert Sum(1, 0.5, 10, 20).plus(Sum(2, 0.25, 1, 2)) == Sum(3, 0.75, 11, 22)
