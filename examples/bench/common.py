"""What the benchmarks share: peers that may be missing, interleaved timing, a check of the results, a table or JSON.

A machine is seldom alone: everything is run in turns, in blocks, and the median and the best are told. A result is
compared with NumPy's in float64 before it is timed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


def peer(name: str) -> Any:
  """A package to compare with, or None."""
  try:
    return importlib.import_module(name)
  except ImportError:
    return None


class Time(NamedTuple):
  """Seconds of a call."""

  median: float
  best: float


def in_turns(calls: dict[str, Callable[[], Any]], seconds: float = 1.0, rounds: int = 5) -> dict[str, Time]:
  """Time calls in `rounds` blocks each, in turns, `seconds` for each call in all. A block's first run is not counted."""
  times: dict[str, list[float]] = {name: [] for name in calls}
  for call in calls.values():
    call()
  for _ in range(rounds):
    for name, call in calls.items():
      call()
      end = time.perf_counter() + seconds / rounds
      while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        times[name].append(now - start)
        if now > end:
          break
  return {name: Time(statistics.median(t), min(t)) for name, t in times.items()}


class Case(NamedTuple):
  """Something to time: the same work by each of `calls`, of which the first is ours."""

  name: str
  calls: dict[str, Callable[[], Any]]
  expected: Callable[[], np.ndarray]  # in float64
  amount: float  # of work in a call, in units of `unit`
  unit: str  # for example GFLOP: what is told is GFLOP/s


def error(got: Any, expected: np.ndarray) -> float:
  """The largest difference, relative to the largest value."""
  scale = float(np.abs(expected).max()) or 1.0
  return (
    float(np.abs(np.asarray(got.numpy() if hasattr(got, "numpy") else got, np.float64) - expected).max())
    / scale
  )


def arguments(description: str | None, *more: tuple[str, dict[str, Any]]) -> argparse.Namespace:
  p = argparse.ArgumentParser(description=description)
  p.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
  p.add_argument("--seconds", type=float, default=1.0, help="for each row and library")
  for name, options in more:
    p.add_argument(name, **options)
  return p.parse_args()


def run(cases: list[Case], args: argparse.Namespace) -> None:
  """Check, time and print."""
  rows = []
  for case in cases:
    expected = case.expected()
    errors = {name: error(call(), expected) for name, call in case.calls.items()}
    worst = max(errors.values())
    assert worst < 1e-4, f"{case.name}: off by {errors}"
    del expected
    row: dict[str, Any] = {"case": case.name, "unit": f"{case.unit}/s"}
    for name, t in in_turns(case.calls, args.seconds).items():
      row[name] = {
        "ms_median": t.median * 1e3,
        "ms_best": t.best * 1e3,
        "rate": case.amount / t.median,
        "error": errors[name],
      }
    rows.append(row)
    if not args.json:
      if len(rows) == 1:
        print(f"{'median ms (best)':34}" + "".join(f"{name:>36}" for name in case.calls))
      parts = [
        f"{r['ms_median']:.3f} ({r['ms_best']:.3f}) {r['rate']:6.1f} {case.unit}/s"
        for r in map(row.get, case.calls)
      ]
      print(f"{case.name:34}" + "".join(f"{part:>36}" for part in parts), flush=True)
  if args.json:
    print(json.dumps({"rows": rows}))


def show(result: dict[str, Any], args: argparse.Namespace) -> None:
  """Print figures: one JSON line, or a line each."""
  if args.json:
    print(json.dumps(result))
    return
  for name, value in result.items():
    print(f"{name:40} {value:.4g}" if isinstance(value, float) else f"{name:40} {value}")
