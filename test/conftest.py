"""What all tests share: the option --full, random numbers whose seed is printed, and what can be imported."""

import gc
import os
import random
import signal
import sys
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
MANY = 12  # parameters of a test, from which --share takes some
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "examples" / "bench")]
# a background job of a shell ignores Ctrl-C, and so would the programs that the tests start
signal.signal(signal.SIGINT, signal.default_int_handler)
# for scripts under test, too
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
# a test that starts a program with CACHE=... means it, whatever MINI_CACHE the whole run has
for prefixed in [name for name in os.environ if name.startswith("MINI_")]:
  os.environ[prefixed.removeprefix("MINI_")] = os.environ.pop(prefixed)
# tests are of what we compute, also of arrays as small as NumPy would compute at once; those of that say so
os.environ["MINI_FEW"] = "0"
import mini  # noqa: F401  it reads the settings

del os.environ["MINI_FEW"]


def pytest_addoption(parser):
  parser.addoption("--full", action="store_true", help="run the tests marked full, too")
  parser.addoption(
    "--share", type=int, default=1, help="with --full, of a test with many parameters run every n-th, by seed"
  )
  parser.addoption("--seed", type=int, help="of the random tests (default: 0, or a new one with --full)")


def pytest_configure(config):
  if config.option.seed is None:
    config.option.seed = random.SystemRandom().randrange(1 << 31) if config.option.full else 0


def pytest_report_header(config):
  return f"random seed: {config.option.seed} (repeat with --seed {config.option.seed})"


def pytest_collection_modifyitems(config, items):
  if config.option.full:
    counts, share = Counter(map(test_of, items)), config.option.share
    chosen = [
      item
      for item in items
      if counts[test_of(item)] < MANY or (zlib.crc32(item.nodeid.encode()) ^ config.option.seed) % share == 0
    ]
  else:
    seen = Counter()
    chosen = [item for item in items if not item.get_closest_marker("full") and is_sampled(item, seen)]
  config.hook.pytest_deselected(items=[*dict.fromkeys(items).keys() - {*chosen}])
  items[:] = chosen


def test_of(item):
  """The test that a parametrized item is one of."""
  return item.parent.nodeid, getattr(item, "originalname", item.name)


def is_sampled(item, seen):
  """Is it among every n-th of its test's parameters? seen: how many of each test came before."""
  mark = item.get_closest_marker("sample")
  if mark is None:
    return True
  seen[test_of(item)] += 1
  return seen[test_of(item)] % mark.args[0] == 1


@pytest.fixture
def seed(request):
  """This test's own seed, from the run's; a failing test shows it."""
  n = zlib.crc32(request.node.nodeid.encode()) ^ request.config.option.seed
  request.node.add_report_section("setup", "seed", f"seed {n}, of --seed {request.config.option.seed}")
  return n


@pytest.fixture
def rng(seed):
  """A NumPy generator with this test's own seed."""
  return np.random.default_rng(seed)


@pytest.fixture(scope="module", autouse=True)
def small_heap():
  """Collections pass over what earlier files left: a test that collects took 0.9 s with all of it."""
  gc.collect()
  gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def compiled_quickly(request):
  """In a quick run the C compiler does not optimize, which is most of its time; with --full it does, as for users."""
  from quickly import OPTIMIZED, compiler, unoptimized

  with pytest.MonkeyPatch.context() as monkeypatch:
    if not request.config.option.full:
      monkeypatch.setattr(compiler, "BASE_FLAGS", unoptimized(OPTIMIZED))
    yield


@pytest.fixture
def mostly_unoptimized(seed, monkeypatch):
  """For thousands of tests of small kernels: the C compiler optimizes for a quarter of them, others with each seed."""
  from quickly import compile_quickly

  if seed % 4:
    compile_quickly(monkeypatch)


@pytest.fixture
def optimized(monkeypatch):
  """A test that looks at machine code sees what users get."""
  from quickly import OPTIMIZED, compile_with

  compile_with(monkeypatch, OPTIMIZED)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_found():
  """Tests are of what makes programs: each is made anew, whatever an earlier run has kept of it. And the device is this
  machine's: a fake driver that a test loads would be found, too."""
  from mini import Device
  from mini.engine import plan_cache

  assert Device.DEFAULT
  large, plan_cache.LARGE = plan_cache.LARGE, sys.maxsize
  yield
  plan_cache.LARGE = large


@pytest.fixture(scope="session", autouse=True)
def kernels_read_back(request):
  """Whatever kernels a test compiles: the text of each, or in a quick run of every fourth, reads back as the same nodes."""
  from mini.engine import program
  from mini.text.parser import parse
  from mini.text.printer import text, uops_program

  compile_kernels = program.compile_kernels

  def checked(kernels, opened, often=True):
    fresh = [k for k in dict.fromkeys(kernels) if not any(k in known for known in opened.compiled.values())]
    compiled = compile_kernels(kernels, opened, often)
    for k in fresh[:: 1 if request.config.option.full else 4]:
      for p in (k, compiled[k].kernel, uops_program(compiled[k].kernel)):
        assert parse(text(p)) is p
    return compiled

  program.compile_kernels = checked
  yield
  program.compile_kernels = compile_kernels
