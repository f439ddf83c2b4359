"""Counters: a dict with attributes, from any thread; reset keeps what is a level and not a count."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

import mini
from mini.stats import COUNTERS, Stats, stats


def test_it_is_a_dict_with_attributes():
  s = Stats()
  s.count(kernels=3, compiles=1)
  s["kernels"] += 1
  assert s.kernels == s["kernels"] == dict(s)["kernels"] == 4
  assert set(dict(s)) == set(COUNTERS)
  with pytest.raises(AttributeError, match="no counter 'kernel'"):
    _ = s.kernel
  with pytest.raises(KeyError):
    s.count(kernel=1)


def test_reset_keeps_what_is_in_use():
  s = Stats()
  s.count(kernels=3, bytes_held=100, bytes_peak=500)
  s.reset()
  assert {name: n for name, n in s.items() if n} == {"bytes_live": 100, "bytes_peak": 100}


def test_threads_lose_no_count():
  s = Stats()

  def work():
    for _ in range(20000):
      s["kernels"] += 1

  threads = [threading.Thread(target=work) for _ in range(4)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert s.kernels == 80000


def test_it_prints_as_a_table():
  s = Stats()
  s.count(bytes_held=1234567)
  assert len(str(s).splitlines()) == len(COUNTERS) and "1,234,567" in str(s)


def test_mini_has_the_one_of_this_process():
  assert mini.stats is stats


PROGRAMS = {
  "values": """
y = (x * 2).realize()
z = (y.exp() + x).realize()
(z @ z).item()
""",
  "training": """
layers = [nn.Linear(1500, 1500) for _ in range(6)]
o = nn.optim.AdamW([p for l in layers for p in l.parameters()], lr=0.1)
@jit
def step(x):
  o.zero_grad()
  for l in layers:
    x = l(x).gelu()
  x.mean().backward()
  o.step()
  return x.max()
for _ in range(3):
  step(x[:600_000].reshape(400, 1500)).item()
""",
  "sizes": """
for n in [23, 9, 17, 5, 21, 13, 7, 19, 11, 15] * 2:
  (Tensor.ones(n * 1_000_000) * 2.0).realize().sum().item()
""",
}


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="Linux tells the peak of a process")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.sample(4)
def test_the_peak_is_what_the_system_says(program):
  """bytes_peak against the growth of resident memory, for a hundred MB and more.
  The compiler's own memory is not in it."""
  code = f"""
import gc
import numpy as np
from mini import Tensor, jit, nn, stats
def status(name):
  return int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1]) << 10
def run(x):
{textwrap.indent(PROGRAMS[program], "  ")}
run(Tensor.ones(25_000_000).realize())  # programs and code
gc.collect()
Device = __import__("mini").Device
Device["CPU"].shim.heap.trim()
before = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
stats.reset()
live = stats.bytes_live
run(Tensor(np.ones(25_000_000, np.float32)))
print(status("VmHWM") - before, stats.bytes_peak - live)
"""
  out = subprocess.run(
    [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
  ).stdout
  resident, peak = map(int, out.split())
  assert peak > 100e6 and 0.95 < resident / peak < 1.05, (resident, peak)
