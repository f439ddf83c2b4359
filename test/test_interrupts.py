"""Ctrl-C at any moment: tensors have the values from before a step or from after it, all of them, and nothing is lost.

Python looks for signals when a function begins, when a call into C returns, and where a loop turns. `sweep` interrupts
a piece of work at the first such place, anew at the second, and so on to the last; the floods send signals.
"""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mini import Tensor, jit, nn, no_grad
from mini.config import Context
from mini.nn.state import fill, load_state_dict
from mini.tensor.trace import local


class Interrupts:
  """Raises KeyboardInterrupt at the n-th place where a signal may be seen; and, if `again`, when the next function
  begins after that: in what cleans up."""

  def __init__(self, n, again=False):
    self.left, self.again = n, again

  def profile(self, frame, event, arg):
    # (where a generator goes on no signal is looked for when that is because it dies)
    if event == "c_return" or (event == "call" and not frame.f_code.co_flags & inspect.CO_GENERATOR):
      self.left -= 1
      if self.left == 0:
        if self.again:
          sys.settrace(self.trace)
        raise KeyboardInterrupt

  def trace(self, frame, event, arg):
    if self.again and event == "call" and not frame.f_code.co_flags & inspect.CO_GENERATOR:
      self.again = False
      raise KeyboardInterrupt

  def during(self, work):
    """Did one come before the work was done?"""
    before = sys.gettrace()
    try:
      sys.setprofile(self.profile)
      work()
    except KeyboardInterrupt:
      pass
    finally:
      sys.setprofile(None)
      sys.settrace(before)
    return self.left <= 0


def values(tensors):
  return [None if t is None else t.detach().numpy() for t in tensors]


def are_same(a, b):
  return all(
    x is y is None or (x is not None and y is not None and np.array_equal(x, y)) for x, y in zip(a, b)
  )


def sweep(work, state, prepare, rng, most, again=False):
  """Interrupt `work` at so many places, about, and return how many there are. `state()` is as before or as after; what
  that is, the work says when it is let alone. prepare: makes the state from before again."""
  prepare()
  count = Interrupts(1 << 60)
  count.during(work)
  places = (1 << 60) - count.left
  step = max(1, places // most)
  for n in range(1 + int(rng.integers(step)), places + step + 1, step):
    prepare()
    before = values(state())
    interrupted = Interrupts(n, again).during(work)
    found = values(state())
    assert local.gradients and local.current is None, f"place {n}"
    if not are_same(found, before):
      prepare()
      work()
      after = values(state())
      assert are_same(found, after), f"place {n}: {before} or {after}, and not {found}"
    if not interrupted:
      break
  return places


@pytest.fixture(autouse=True)
def nothing_is_ignored(monkeypatch):
  """Python drops what comes while an object dies, and would print it."""
  found = []
  monkeypatch.setattr(
    sys, "unraisablehook", lambda e: found.append(f"{e.err_msg}: {e.object!r} {e.exc_value!r}")
  )
  yield
  assert not found


def floats(*shape, seed=0):
  return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def restorer(tensors):
  """Gives tensors the values again that they have now; no gradients."""
  held = [t.detach().clone().realize() for t in tensors]

  def restore():
    fill(tensors, held)
    for t in tensors:
      t.grad = None

  return restore


class Case:
  """Work, what it changes, and what makes that as it was."""

  def __init__(self, dtype="float32"):
    Tensor.manual_seed(0)
    self.model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(dtype)
    self.params = list(self.model.parameters())
    self.x, self.y = (
      Tensor(floats(5, 3), dtype=dtype).realize(),
      Tensor(floats(5, 2, seed=1), dtype=dtype).realize(),
    )

  def trained(self, jitted, **kwargs):
    optimizer = nn.optim.Adam(self.params, lr=0.01, **kwargs)

    def step():
      optimizer.zero_grad()
      (self.model(self.x) - self.y).square().mean().backward()
      optimizer.step()

    work = jit(step) if jitted else step
    work(), work()
    inner = [b.t for b in optimizer._buckets] + [s for b in optimizer._buckets for s in b.slots.values()]
    state = [*self.params, *inner]
    return work, lambda: [*self.params, *(b.t for b in optimizer._buckets), *inner[1:]], restorer(state)


@pytest.fixture(params=[False, True], ids=["once", "twice"])
def again(request):
  return request.param


@pytest.fixture
def most(request):
  """Of the places, how many to interrupt at; a jitted step has 700 and an eager one 6,000."""
  return 500 if request.config.option.full else 16


@pytest.mark.parametrize("dtype, kwargs", [("float32", {}), ("bfloat16", {"master_weights": True})])
def test_a_jitted_step(dtype, kwargs, again, most, rng):
  assert sweep(*Case(dtype).trained(True, **kwargs), rng, most, again) > 50


def test_a_step(again, most, rng):
  assert sweep(*Case().trained(False), rng, most, again) > 500


def test_states_of_every_kind(again, most, rng):
  """In the place of the old value and elsewhere, held by somebody and not, in another order, and without elements."""
  a, b = Tensor(floats(4, 4)).realize(), Tensor(floats(4, 4, seed=1), requires_grad=True).realize()
  c, flat, none = Tensor(np.arange(3)).realize(), Tensor(floats(6)).realize(), Tensor(floats(0, 3)).realize()
  view = flat[2:4]
  tensors = [a, b, c, flat, none, view]

  @jit
  def work():
    with no_grad():
      a.assign(a.T + 1)
      b.assign(b * 2)
      c.assign(c + 1)
      flat.assign(flat - view.sum())
      view.assign(view * 3)
      none.assign(none + 1)
      a[1] = c.sum()
    return a.sum()

  work(), work()
  restore, kept, seen = restorer(tensors), [], []
  assert sweep(work, lambda: tensors, restore, rng, most, again) > 50

  def held():
    """Somebody sees the old values, and somebody what becomes of them."""
    restore()
    kept[:] = [b.detach().clone(), c.clone()]
    seen[:] = [b.detach(), c[1:], a.T]

  held()
  old = values(kept)
  sweep(work, lambda: [*tensors, *kept, *seen], held, rng, most, again)
  assert are_same(values(kept), old)


def test_gradients_that_add_up(again, most, rng):
  """Over jitted calls: what there was before is not lost."""
  case = Case()

  @jit
  def work():
    (case.model(case.x) - case.y).square().mean().backward()

  def prepare():
    for p in case.params:
      p.grad = None
    work(), work()
    Tensor.realize(*(p.grad for p in case.params))

  prepare()
  assert sweep(work, lambda: [p.grad for p in case.params], prepare, rng, most, again) > 50


@pytest.mark.parametrize("dev", ["INTERP", ("CPU", "CPU:1")], ids=str)
def test_other_devices(dev, most, rng):
  with Context(DEV="INTERP" if dev == "INTERP" else "CPU"):
    a, b = (Tensor(floats(4, 2, seed=n)).realize() for n in range(2))
    if dev != "INTERP":
      a, b = a.shard(dev, 0).realize(), b.shard(dev, 0).realize()
    work = jit(lambda: (a.assign(a + 1), b.assign(b.flip(1) * 2)))
    work(), work()
    first = a.clone().realize(), b.clone().realize()

    def restore():
      a.assign(first[0]).realize(), b.assign(first[1]).realize()

    sweep(work, lambda: [a, b], restore, rng, most)


# ---------------------------------------------------------------- without jit


@pytest.mark.parametrize("optimized", [False, True])
def test_loading_is_whole(optimized, most, rng):
  case = Case()
  other = {n: (t * 2 + 1).realize() for n, t in case.model.state_dict().items()}
  if optimized:
    nn.optim.SGD(case.params, lr=0.1)  # now they are parts of one buffer
  load = lambda: load_state_dict(case.model, other)
  assert sweep(load, lambda: case.params, restorer(case.params), rng, most) > 50


def test_the_state_of_an_optimizer_is_loaded_whole(most, rng):
  case = Case()
  optimizer = nn.optim.Adam(case.params, lr=0.01)
  case.model(case.x).sum().backward()
  optimizer.step()
  states = [{n: (t + k).realize() for n, t in optimizer.named_state().items()} for k in (0, 1)]
  first, other = states
  state = lambda: [*optimizer.named_state().values()]
  sweep(
    lambda: optimizer.load_named_state(other), state, lambda: optimizer.load_named_state(first), rng, most
  )


def test_gradients_change_together(most, rng):
  case, scaler = Case(), nn.GradScaler(init_scale=8.0)
  optimizer = nn.optim.SGD(case.params, lr=0.1)

  def prepare():
    scaler._stages, scaler._found = {}, {}
    for p in case.params:
      p.grad = None
    scaler.scale((case.model(case.x) - case.y).square().mean()).backward()
    Tensor.realize(*(p.grad for p in case.params))

  def gradients():
    return [p.grad for p in case.params]

  def as_a_step_takes_them():
    """What is not divided yet will be."""
    return [p.grad if scaler._stages else p.grad / 8 for p in case.params]

  prepare()
  want = values(as_a_step_takes_them())
  sweep(lambda: scaler.unscale_(optimizer), as_a_step_takes_them, prepare, rng, most)
  assert are_same(values(as_a_step_takes_them()), want)
  for work in (
    lambda: nn.optim.clip_grad_norm(case.params, 0.1),
    lambda: nn.optim.clip_grad_value_(case.params, 0.01),
    lambda: (case.model(case.x) - case.y).square().mean().backward(),
  ):
    sweep(work, gradients, prepare, rng, most)


def test_a_complex_value_is_whole(most, rng):
  z, w = Tensor(floats(3) + 1j * floats(3, seed=1)), Tensor(floats(3, seed=2) + 1j * floats(3, seed=3))
  first = z.numpy()
  for work in (lambda: z.assign(w), lambda: z.__iadd__(w), lambda: z.__setitem__(1, 2 + 3j)):
    sweep(work, lambda: [z.real.clone(), z.imag.clone()], lambda: z.assign(Tensor(first)), rng, most)


def test_a_trace_that_is_interrupted_leaves_no_trace(again, most, rng):
  """The first call, which traces and compiles."""
  case = Case()
  optimizer = nn.optim.SGD(case.params, lr=0.1, momentum=0.9)

  def step():
    optimizer.zero_grad()
    (case.model(case.x) - case.y).square().mean().backward()
    optimizer.step()

  step()
  (b,) = optimizer._buckets
  restore = restorer([*case.params, b.t, *b.slots.values()])
  assert sweep(lambda: jit(step)(), lambda: case.params, restore, rng, most // 2, again) > 1000


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize("floods", [1, pytest.param(10, marks=pytest.mark.full)])
@pytest.mark.parametrize("how", ["jitted", pytest.param("eager", marks=pytest.mark.full)])
def test_floods(how, floods, seed):
  """Of 1,000 signals each, at random moments and in bursts; each seen by the training alone."""
  script = str(Path(__file__).parent / "flood.py")
  for n in range(floods):
    command = [sys.executable, script, how, str(seed + n), "1000" if floods > 1 else "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gnored" not in done.stderr and "Traceback" not in done.stderr, done.stderr
