"""Counters: a dict with attributes, from any thread; reset keeps what is a level and not a count."""

from __future__ import annotations

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
  s.count(kernels=3, bytes_live=100, bytes_peak=500)
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
  s.count(bytes_live=1234567)
  assert len(str(s).splitlines()) == len(COUNTERS) and "1,234,567" in str(s)


def test_mini_has_the_one_of_this_process():
  assert mini.stats is stats
