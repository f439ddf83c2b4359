"""Making a program ready to run takes time in proportion to the program: counted in calls, not in seconds. So is what
`import mini` takes: in modules that it has no need of."""

import gc
import os
import subprocess
import sys
from collections import Counter
from importlib import import_module

import numpy as np
import pytest
from fuzz_graph import scheduled

from mini import Device, Tensor, nn
from mini.config import config
from mini.ir.kernel import params_of
from mini.ir.uop import toposort
from mini.schedule.cost import MOST_READ, MOST_WORK, WORK, Weights
from mini.schedule.cuts import LOOP
from mini.schedule.memory import Need, Taken, plan
from mini.tensor.realize_group import company

bench = import_module("compile")  # examples/bench/compile.py


def counted_in(run, hook, counted):
  """How many events are counted while something runs.
  hook: sys.setprofile or sys.settrace; counted: what it calls, with a list to count in."""
  count = [0]
  before = sys.gettrace() if hook is sys.settrace else sys.getprofile()
  gc.collect()
  hook(counted(count))
  try:
    run()
  finally:
    hook(before)
  return count[0]


def step_of(layers):
  """What captures a training step of a GPT-2."""
  step, tokens = bench.training_step(layers)
  return lambda: bench.captured(step, tokens)


def calls(run):
  """Of functions, Python's and C's."""

  def counted(count):
    def called(frame, event, arg):
      count[0] += event in ("call", "c_call")

    return called

  return counted_in(run, sys.setprofile, counted)


def lines(run):
  """Of the scheduler, that run."""

  def counted(count):
    def local(frame, event, arg):
      count[0] += event == "line"
      return local

    return lambda frame, event, arg: (
      local if "/mini/schedule/" in frame.f_code.co_filename.replace("\\", "/") else None
    )

  return counted_in(run, sys.settrace, counted)


@pytest.mark.full
def test_twice_the_layers_are_twice_the_work():
  bench.capture(2)  # what is imported and compiled once, and the kernels of any number of layers
  few, more, most = (calls(step_of(n)) for n in (2, 3, 5))
  assert most - more < 2.2 * (more - few), (few, more, most)
  assert most - more < 2 * 600_000, most  # 340,000 for each layer when this was written


@pytest.mark.full
def test_no_pass_of_the_scheduler_goes_through_all_for_each_value():
  """Where calls are few, a loop may yet be long. 480,000 for two layers when this was written."""
  few, more, most = (lines(step_of(n)) for n in (2, 4, 8))
  assert most - more < 2.6 * (more - few), (few, more, most)
  assert few < 2 * 480_000, few


def test_a_memory_of_many_pieces_is_scheduled_in_linear_time():
  def run(n):
    numbers = [Tensor([float(k)]).realize() for k in range(n)]
    return lambda: scheduled({"out": Tensor.cat(*numbers).uop})

  few, more, most = (lines(run(n)) for n in (50, 100, 200))
  assert most - more < 2.6 * (more - few), (few, more, most)


def pieces(n):
  """As many pieces of a memory as readers."""
  x = Tensor.cat([Tensor([float(k)] * 8).realize().sin() for k in range(n)])
  return [x[8 * k : 8 * k + 8].cos().sum() for k in range(n)]


def layers(n):
  """Gradients for the weights of each layer."""
  ws = [Tensor(np.full((8, 8), 0.1, np.float32), requires_grad=True).realize() for _ in range(n)]
  x = Tensor.ones(4, 8).realize()
  for w in ws:
    x = (x @ w).tanh()
  x.sum().backward()
  return [w.grad for w in ws]


def writes(n):
  """Into one memory, none of which is read; nothing is stored while somebody has it."""
  x = Tensor.zeros(100_000).realize()
  seen = x.detach()
  for k in range(n):
    x[k] = float(k)
  return [x, seen]


def gathers(n):
  """Each at an index that is made of what the one before found."""
  x, table = Tensor.ones(4, 6).realize(), Tensor.arange(5.0).realize()
  for k in range(n):
    x = (x > k).where(x.sin() + table[(x * 2).long() % 5], x.sin())
  return [x]


@pytest.mark.parametrize("made, n", [(pieces, 100), (layers, 25), (writes, 50), (gathers, 5)])
def test_large_graphs_are_scheduled_in_linear_time(made, n):
  def run(n):
    outputs = {f"out{k}": x.uop for k, x in enumerate(made(n))}
    return lambda: scheduled(outputs)

  few, more, most = (lines(run(m)) for m in (n, 2 * n, 4 * n))
  assert most - more < 2.6 * (more - few), (few, more, most)


def test_gradients_of_one_pass_are_looked_for_once():
  found = layers(25)
  assert len(company(found, True)) <= 2 * len(found)


def test_an_arena_is_laid_out_as_if_all_that_lives_were_looked_at():
  """{a size: the lowest place that is free}, and where many lie side by side they are one stretch."""
  rng = np.random.default_rng(0)
  for n in (1, 5, 40, 200):
    first, last = np.sort(rng.integers(0, n, (2, n)), axis=0)
    sizes = rng.choice([1, 64, 100, 4096], n)
    needs = [Need(f"t{k}", int(sizes[k]), int(first[k]), int(last[k])) for k in range(n)]
    offsets, total = plan(needs)
    placed = []
    for need in sorted(needs, key=lambda n: (-n.nbytes, n.first, n.name)):
      at = 0
      for lo, hi, other in sorted(placed, key=lambda p: p[0]):
        if other.first <= need.last and need.first <= other.last and at + need.nbytes > lo:
          at = max(at, hi)
        elif at + need.nbytes <= lo:
          break
      placed.append((at, -(-(at + need.nbytes) // 64) * 64, need))
      assert offsets[need.name] == at
    assert total == max(hi for _, hi, _ in placed)
  taken = Taken(999)
  for k in range(1000):
    taken.take(k, 999, 64 * k, 64 * k + 64)
  assert len(taken.during(500, 999)) < 30


def test_of_many_memories_it_does_not_matter_how_many():
  """A set of all for each of the sums would take the square of their number."""
  x = sum(Tensor([float(k)] * 8).realize() for k in range(200))
  order = toposort(x.uop)
  sets = Weights(order, Counter(s for u in order for s in u.src)).reads.values()
  assert MOST_READ < max(map(len, sets)) < 2 * MOST_READ


@pytest.mark.parametrize("n, least", [(40, 1), (150, 3), (600, 10)])
def test_a_long_chain_is_several_kernels(n, least):
  """gcc took 21 s for one of 200 sines. Each piece reads what the one before wrote."""
  x = y = Tensor.ones(4, 4).realize()
  for _ in range(n):
    y = (y * 0.5 + x).sin()
  kernels = scheduled({"out": y.uop})[0]
  sines = [sum(u.op == "sin" for u in toposort(k)) for k in kernels]
  assert sum(sines) == n and max(sines) <= MOST_WORK / WORK["sin"] and least <= len(kernels) <= 2 * least


@pytest.mark.parametrize(
  "step",
  [
    lambda x: x - x.mean(1, keepdim=True),
    lambda x: x - x.logsumexp(1, keepdim=True),
    lambda x: x.layer_norm(30),
  ],
)
def test_a_long_chain_of_reductions_is_several_kernels(step):
  """gcc took 42 s for one of 64 logsumexps. What goes from one kernel to the next are rows."""
  x = Tensor.ones(5, 30).realize()
  for _ in range(40):
    x = step(x)
  kernels = scheduled({"out": x.uop})[0]
  loops = [sum(u.op == "reduce" for u in toposort(k)) for k in kernels]
  assert max(loops) <= MOST_WORK / LOOP and len(kernels) <= sum(loops) * LOOP / MOST_WORK * 2.5
  assert all(len(params_of(k)) <= 4 for k in kernels)


def test_parts_of_a_wide_kernel_are_its_terms():
  """All of which were made before their sum: as few of them get memory as there are parts."""
  x = Tensor.ones(4, 4).realize()
  terms = [(x + k).sin() for k in range(150)]
  kernels = scheduled({"out": sum(terms).uop})[0]
  assert 3 <= len(kernels) <= 6 and all(len(params_of(k)) <= 4 for k in kernels)


def test_what_several_want_is_counted_once():
  """128 squares of squares are few operations, whatever their tree would be."""
  x = y = Tensor.ones(4, 4).realize()
  for _ in range(128):
    y = y * y + x
  assert len(scheduled({"out": y.uop})[0]) == 1


def test_more_steps_of_a_recurrent_layer_are_no_more_kernels():
  def kernels(steps):
    cell, x = nn.RNN(3, 5), Tensor.ones(steps, 2, 3)
    cell(x)[0].square().sum().backward()
    known = Device["CPU"].compiled.setdefault(config.code, {})
    before = len(known)
    Tensor.realize(*(w.grad for w in cell.parameters()))
    return len(known) - before

  kernels(5)
  assert kernels(20) <= 12  # those whose loops go over all steps, and those of the first and the last one


# what a program does, and what it has no need of
LATER = {
  "import mini; mini.Tensor([1, 2]) + 1": """
    mini.tensor.batching mini.capture mini.codegen mini.drawing mini.engine.program mini.engine.realize mini.extend mini.fft
    mini.ir.interp mini.ir.rewrite mini.ir.rules mini.text.printer mini.text.verifier mini.jitted mini.named_axes mini.nn mini.numpy
    mini.quantization mini.render mini.compiled_function mini.schedule mini.tensor.complex mini.tensor.contract
    mini.tensor.einsum mini.tensor.formula mini.tensor.complex_handle mini.tensor.transforms mini.lazy_shapes
    asyncio json logging subprocess""",
  "import mini; mini.einsum('ij->', mini.Tensor.ones(2, 3))": "mini.engine.realize mini.named_axes mini.lazy_shapes",
  "import mini; (mini.Tensor([1, 2]) + 1).tolist()": "mini.extend mini.jitted mini.text.parser mini.nn mini.numpy json",
}


@pytest.mark.parametrize("program", LATER)
def test_what_is_not_needed_is_not_imported(program, tmp_path):
  code = f"import sys, numpy; before = {{*sys.modules}}; {program}; print(*{{*sys.modules}} - before)"
  env = {
    **os.environ,
    "MINI_CACHE": str(tmp_path),
  }  # in the user's there may be recipes that were searched for
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
  loaded = set(done.stdout.split())
  assert "mini.tensor" in loaded and not loaded & set(LATER[program].split())
