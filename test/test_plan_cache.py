"""What large programs have become, kept on disk: the next process does the same without a schedule, or makes it anew
where anything that it depends on is another."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

from mini import Context, Tensor
from mini.codegen.recipe_builder import Machine
from mini.engine import plan_cache, program
from mini.engine.cache import result_cache
from mini.engine.plan_cache import LARGE
from mini.ir import graph as g
from mini.ir.extern import Extern
from mini.text.printer import graph_program, text
from mini.types import dtypes


def steps(n=3):
  """A function that was jitted, of more than LARGE nodes and few different kernels; what n calls computed."""
  import numpy as np

  from mini import Tensor, jit

  w = Tensor(np.random.default_rng(0).standard_normal((32, 32), np.float32) / 4)
  total = Tensor.zeros(8).contiguous().realize()

  @jit
  def step(x):
    for _ in range(120):
      x = (x @ w).tanh()
    total.assign(total + x.sum(1))
    return x

  for k in range(n):
    x = step(Tensor(np.full((8, 32), k + 1.0, np.float32)).realize())
  return step, np.concatenate([x.numpy().ravel(), total.numpy()])


@pytest.fixture(autouse=True)
def large(monkeypatch):
  """As it is outside of the tests."""
  monkeypatch.setattr(plan_cache, "LARGE", LARGE)


@pytest.fixture
def folder(tmp_path):
  with Context(CACHE=str(tmp_path / "cache")):
    yield str(tmp_path / "cache")


def only(step):
  """The program of a jitted function that was called with one kind of arguments."""
  return next(iter(step.captured.values()))[0].program


def refuses(*args, **kwargs):
  raise AssertionError("a schedule was made")


def test_the_next_process_makes_no_schedule(tmp_path):
  """Whatever its hashes are; it computes the same, bit for bit."""
  found = []
  for seed in "123":
    env = {**os.environ, "MINI_CACHE": str(tmp_path), "PYTHONHASHSEED": seed, "DEV": "CPU"}
    for name in ("SHOW", "DEBUG", "PROFILE", "CHECK"):
      env.pop(name, None)
    said = "stats['schedules'], stats['compiles'], x.tobytes().hex()"
    code = f"{inspect.getsource(steps)}\nx = steps()[1]\nfrom mini import stats\nprint({said})"
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    found.append(out.stdout.split())
  (first, compiles, x), *others = found
  assert int(compiles) > 0
  assert all((int(s), c, y) == (int(first) - 1, "0", x) for s, c, y in others), found


@pytest.mark.skipif(Tensor([0.0]).device != "CPU", reason="plans are kept of programs for the CPU")
class TestOnTheCPU:
  def test_a_program_is_found_again_and_can_be_looked_at(self, folder, monkeypatch):
    first, want = steps()
    before = only(first)
    with monkeypatch.context() as patch:
      patch.setattr(program, "scheduled", refuses)
      step, got = steps()
    assert (got == want).all()
    again = only(step)
    assert "schedule" in vars(before) and "schedule" not in vars(again)
    names = ("plan", "same", "inplace", "slots", "temporaries", "arena_bytes", "segments", "calls", "inout")
    for name in names:
      assert getattr(again, name) == getattr(before, name), name
    assert again.inplace and again.temporaries and len(again.segments) == 1
    assert again.kept.schedule == text(before.schedule)
    with Context(CHECK=1):
      step(Tensor(np.ones((8, 32), np.float32)).realize())
    assert again.schedule is before.schedule and "scheduled" not in vars(again)
    assert [c.name for c in again.compiled] == [c.name for c in again.calls]

  def test_a_damaged_plan_is_made_anew(self, folder, monkeypatch, caplog):
    _, want = steps()
    plan = max((os.path.join(folder, n) for n in os.listdir(folder)), key=os.path.getsize)
    for name in os.listdir(folder):
      path = os.path.join(folder, name)
      with open(path, "rb") as f:
        data = f.read()
      if b"rows_" in data or b"contract_" in data:
        with open(path, "wb") as f:
          f.write(data[:-9])
    assert (steps()[1] == want).all()
    assert "damaged" in caplog.text and os.path.exists(plan)
    monkeypatch.setattr(program, "scheduled", refuses)
    assert (steps()[1] == want).all()

  @pytest.mark.parametrize(
    "settings", [{"FAST": 1}, {"MACHINE": "lanes=4"}, {"MACHINE": "streams=2"}, {"NOOPT": 1}]
  )
  def test_another_setting_is_another_program(self, folder, monkeypatch, settings):
    steps()
    monkeypatch.setattr(program, "scheduled", refuses)
    with Context(**settings), pytest.raises(AssertionError, match="a schedule was made"):
      steps()

  def test_another_line_of_mini_is_another_program(self, folder, monkeypatch):
    steps()
    monkeypatch.setattr(plan_cache, "sources", lambda: "of another version")
    monkeypatch.setattr(program, "scheduled", refuses)
    with pytest.raises(AssertionError, match="a schedule was made"):
      steps()

  def test_without_a_cache_nothing_is_kept(self, monkeypatch):
    with Context(CACHE="0"):
      steps()
      monkeypatch.setattr(program, "scheduled", refuses)
      with pytest.raises(AssertionError, match="a schedule was made"):
        steps()


def chain(x, n=LARGE):
  """A graph of more than n nodes."""
  for _ in range(n):
    x = g.alu("sin", x)
  return graph_program("g", (x,))


def vector(name="in0", size=4, dtype=dtypes.float32):
  return g.buffer(name, (size,), dtype)


def key(graph, inputs=1, inout=None, levels=(), device="CPU", machine=None, often=False):
  return plan_cache.key_of(graph, inputs, inout or {}, levels, device, machine or Machine(), often)


def test_a_key_tells_programs_apart(folder):
  x = vector()
  numbers = [g.full((4,), value, dtypes.float32) for value in (0.0, -0.0, 1.0, float("nan"), float("inf"))]
  graphs = [
    chain(x),
    chain(x, LARGE + 1),
    chain(vector("in1")),
    chain(vector(size=5)),
    chain(vector(dtype=dtypes.float64)),
  ]
  graphs += [chain(g.alu("add", x, n)) for n in numbers]
  graphs += [chain(g.alu("add", g.alu("mul", x, x), y)) for y in (x, g.alu("mul", x, x))]
  keys = [key(u) for u in graphs]
  keys += [key(graphs[0], **other) for other in (
    {"inputs": 2}, {"inout": {0: 0}}, {"levels": (1,)}, {"machine": Machine(16)}, {"machine": Machine(threads=2)},
    {"often": True})]  # fmt: skip
  assert "" not in keys and len(set(keys)) == len(keys)
  assert key(chain(vector())) == keys[0]


def test_what_is_not_kept(folder):
  """What is small, what somebody looks at or searches recipes for, what is for another device or calls a library, and
  where there is no cache."""
  graph = chain(vector())
  assert key(graph)
  assert key(graph, device="CPU:1") == key(graph)
  assert not key(chain(vector(), LARGE - 3)) and not key(graph, device="TOY") and not key(graph, device="CL")
  for setting in ({"PROFILE": 1}, {"DEBUG": 1}, {"CHECK": 1}, {"SEARCH": 2}, {"CACHE": "0"}):
    with Context(**setting):
      assert not key(graph), setting
  called = g.call(Extern("f", lambda out, x: None), (vector(),), (4,), dtypes.float32)
  assert not key(chain(called))


def test_recipes_that_were_found_make_another_program(folder):
  graph = chain(vector())
  before = key(graph)
  result_cache(make=True).put("a kernel", b"vec i")
  assert key(graph) not in ("", before)


def test_every_file_of_mini_counts(monkeypatch, tmp_path, folder):
  """A file that is changed, renamed or new; what Python makes of it does not, nor what cannot be read."""
  package, runtime = tmp_path / "mini", tmp_path / "runtime"
  for made in (package / "engine" / "__pycache__", runtime):
    made.mkdir(parents=True)
  monkeypatch.setattr(plan_cache, "__file__", str(package / "engine" / "plan_cache.py"))

  def digest():
    plan_cache.sources.cache_clear()
    return plan_cache.sources()

  try:
    assert digest() == "" and not key(chain(vector()))  # nothing says which version this is
    found = []
    for path, line in (
      ("mini/a.py", "1"),
      ("mini/a.py", "2"),
      ("mini/engine/b.py", "2"),
      ("runtime/pool.c", "3"),
    ):
      (tmp_path / path).write_text(line)
      found.append(digest())
    for path in ("c.py", "engine/c.py"):
      (package / ("a.py" if path == "c.py" else "c.py")).rename(package / path)
      found.append(digest())
    assert len(set(found)) == len(found)
    (package / "engine" / "__pycache__" / "a.pyc").write_text("4")
    (package / ".#c.py").symlink_to("nobody@nowhere.1")  # an editor's lock
    assert digest() == found[-1]
  finally:
    plan_cache.sources.cache_clear()
