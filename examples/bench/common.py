"""What the benchmarks share: peers that may be missing, interleaved timing, a check of the results, a table or JSON.

A machine is seldom alone: everything is run in turns, in blocks, and the median and the best are told. A result is
compared with NumPy's in float64 before it is timed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mini import Context, Device, stats
from mini.engine import limits, profile


def peer(name: str) -> Any:
  """A package to compare with, or None."""
  try:
    return importlib.import_module(name)
  except ImportError:
    return None


def environment(**changed: str) -> dict[str, str]:
  """That of a process which starts as a user's does: Python keeps what it has compiled of the sources."""
  return {**{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}, **changed}


def settle(longest: float = 2.0) -> None:
  """Wait until no thread of this process works. A library's threads wait for more work by spinning (OpenBLAS's for 2**26
  cycles and more, 0.1 s on some machines), and would take a core from who comes next."""
  end, idle = time.perf_counter() + longest, 0
  while idle < 3 and time.perf_counter() < end:
    begun, used = time.perf_counter(), time.process_time()
    time.sleep(0.01)
    works = time.process_time() - used > 0.05 * (time.perf_counter() - begun)
    idle = 0 if works else idle + 1


class Time(NamedTuple):
  """Seconds of a call."""

  median: float
  best: float


def in_turns(calls: dict[str, Callable[[], Any]], seconds: float = 1.0, rounds: int = 7) -> dict[str, Time]:
  """Time calls in `rounds` blocks each, in turns, `seconds` for each call in all. A block's first run is not counted.

  One that takes longer than `seconds` is run three times in all. Before a block all threads come to rest.
  """
  times: dict[str, list[float]] = {name: [] for name in calls}

  def timed(name: str) -> float:
    start = time.perf_counter()
    calls[name]()
    return time.perf_counter() - start

  slow = {name: timed(name) > seconds for name in calls}
  for n in range(rounds):
    for name in calls:
      settle()
      if slow[name]:
        times[name] += [timed(name)] if n < 3 else []
        continue
      timed(name)
      end = time.perf_counter() + seconds / rounds
      while True:
        times[name].append(timed(name))
        if time.perf_counter() > end:
          break
  return {name: Time(statistics.median(t), min(t)) for name, t in times.items()}


class Tinygrad:
  """A call of an expression, a function of tensors, in a Python that has tinygrad. `numpy()` is the last result.

  Its process begins with the first call, and answers over a pipe, which adds some 0.05 ms.
  """

  def __init__(self, python: str, expression: str, arrays: list[np.ndarray]):
    self.python, self.expression, self.arrays = python, expression, arrays
    self.process: subprocess.Popen | None = None

  def start(self) -> subprocess.Popen:
    self.folder = tempfile.TemporaryDirectory()
    np.savez(os.path.join(self.folder.name, "in.npz"), *self.arrays)
    worker = str(Path(__file__).with_name("tinygrad_peer.py"))
    command, pipe = [self.python, worker, self.expression, self.folder.name], subprocess.PIPE
    env = {**os.environ, "DEV": "CPU"}
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env)

  def ask(self, line: str) -> None:
    self.process = self.process or self.start()
    assert self.process.stdin and self.process.stdout
    self.process.stdin.write(line + "\n")
    self.process.stdin.flush()
    if not self.process.stdout.readline():
      raise RuntimeError(f"tinygrad could not do {self.expression}")

  def __call__(self) -> Tinygrad:
    self.ask("run")
    return self

  def numpy(self) -> np.ndarray:
    self.ask("save")
    return np.load(os.path.join(self.folder.name, "out.npy"))

  def close(self) -> None:
    if self.process:
      self.process.communicate()
      self.folder.cleanup()


class Case(NamedTuple):
  """Something to time: the same work by each of `calls`, of which the first is ours."""

  name: str
  calls: dict[str, Callable[[], Any]]
  expected: Callable[[], np.ndarray]  # in float64
  amount: float  # of work in a call, in units of `unit`
  unit: str  # for example GFLOP: what is told is GFLOP/s


def error(got: Any, expected: np.ndarray) -> float:
  """The largest difference, relative to the largest value. Several results are stacked."""
  parts = got if isinstance(got, (tuple, list)) else [got]
  arrays = [np.asarray(p.numpy() if hasattr(p, "numpy") else p, np.float64) for p in parts]
  scale = float(np.abs(expected).max()) or 1.0
  return float(np.abs((np.stack(arrays) if parts is got else arrays[0]) - expected).max()) / scale


def peers(
  args: argparse.Namespace,
  arrays: list[np.ndarray],
  numpy: Callable | None = None,
  torch: Callable | None = None,
  tinygrad: str = "",
) -> dict[str, Callable[[], Any]]:
  """The same function of the same arrays in each library that is here and asked for: calls of it.

  torch: a function of its tensors; with --compile it is also compiled. tinygrad: the text of a function of its tensors.
  """
  calls: dict[str, Callable[[], Any]] = {}
  if numpy:
    calls["numpy"] = lambda: numpy(*arrays)
  if torch and (library := peer("torch")):
    tensors = [library.from_numpy(a) for a in arrays]
    calls["torch"] = lambda: torch(*tensors)
    if args.compile:
      library._dynamo.reset()  # or the next shape is taken as any shape
      compiled = library.compile(torch)
      calls["compile"] = lambda: compiled(*tensors)
  if tinygrad and args.tinygrad:
    calls["tinygrad"] = Tinygrad(args.tinygrad, tinygrad, arrays)
  return calls


def arguments(description: str | None, *more: tuple[str, dict[str, Any]]) -> argparse.Namespace:
  p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
  p.add_argument("--seconds", type=float, default=1.0, help="for each row and library")
  p.add_argument("--rounds", type=int, default=7, help="in turns, at least so many runs of each")
  p.add_argument("--only", default="", help="rows whose name contains one of these, with commas between them")
  p.add_argument("--below", action="store_true", help="kernels far below the machine's limits, too")
  p.add_argument("--compile", action="store_true", help="torch.compile, too")
  p.add_argument("--tinygrad", default="", metavar="PYTHON", help="tinygrad, too: the Python that has it")
  for name, options in more:
    p.add_argument(name, **options)
  return p.parse_args()


def chosen(name: str, args: argparse.Namespace) -> bool:
  """Whether --only asks for this row."""
  return not args.only or any(part in name for part in args.only.split(","))


def run(
  cases: Iterable[Case],
  args: argparse.Namespace,
  summary: Callable[[list[dict[str, Any]]], dict[str, Any]] | None = None,
) -> None:
  """Check, time and print; summary: what is said of all rows."""
  rows = []
  for case in cases:
    if not chosen(case.name, args):
      continue
    expected = case.expected()
    errors, first = {}, {}
    for name, call in case.calls.items():
      begun = time.perf_counter()
      errors[name] = error(call(), expected)
      first[name] = time.perf_counter() - begun
    assert all(e < 1e-4 for e in errors.values()), f"{case.name}: off by {errors}"
    del expected
    before = stats.kernels
    next(iter(case.calls.values()))()
    row: dict[str, Any] = {"case": case.name, "unit": f"{case.unit}/s", "kernels": stats.kernels - before}
    for name, t in in_turns(case.calls, args.seconds, args.rounds).items():
      row[name] = {
        "ms_median": t.median * 1e3,
        "ms_best": t.best * 1e3,
        "rate": case.amount / t.median,
        "error": errors[name],
        "first_s": first[name],
      }
    if args.below:
      row["below"] = below(case.calls["mini"])
    for call in case.calls.values():
      if isinstance(call, Tinygrad):
        call.close()
    rows.append(row)
    if not args.json:
      if len(rows) == 1:
        print(f"{'median ms (best)':34}" + "".join(f"{name:>36}" for name in case.calls))
      parts = [
        f"{r['ms_median']:.3f} ({r['ms_best']:.3f}) {r['rate']:6.1f} {case.unit}/s"
        for r in map(row.get, case.calls)
      ]
      lines = [f"{case.name:34}" + "".join(f"{part:>36}" for part in parts), *row.get("below", ())]
      print("\n  ".join(lines), flush=True)
  told = summary(rows) if summary and rows else {}
  if args.json:
    print(json.dumps({"rows": rows, **({"summary": told} if told else {})}))
  else:
    for name, value in told.items():
      print(f"{name:34}{value}")


def below(call: Callable[[], Any], rounds: int = 3, calls: int = 5) -> list[str]:
  """The kernels of a call that take over a twentieth of its kernels' time, at under a tenth of what the machine can do at
  most: in each of some rounds, for other processes may have the cores in one."""
  slow: list[dict[str, str]] = []
  most = limits.of(Device["CPU"].shim)
  for _ in range(rounds):
    with Context(PROFILE=1):
      profile.reset()
      for _ in range(calls):
        call()
      kernels = {r.what: r.sum for r in profile.rows() if r.limit}
      profile.reset()
    total = sum(s.seconds for s in kernels.values())
    slow.append({})
    for name, (count, seconds, flops, nbytes) in kernels.items():
      share, limit = most.nearest(seconds / count, flops / count, nbytes / count)
      if share < 0.1 and seconds > 0.05 * total:
        slow[-1][name] = f"{name} {1e3 * seconds / calls:.3f} ms, {limit}"
  return [text for name, text in slow[-1].items() if all(name in found for found in slow)]


def against_peers(rows: list[dict[str, Any]]) -> dict[str, Any]:
  """Geometric means of how many times as fast as each peer ours is, and the rows where it does worst."""
  told: dict[str, Any] = {}
  for peer in [name for name, cell in rows[0].items() if isinstance(cell, dict) and name != "mini"]:
    ratios = {row["case"]: row["mini"]["rate"] / row[peer]["rate"] for row in rows}
    worst = sorted(ratios, key=lambda case: ratios[case])[:3]
    told[f"times {peer}, geometric mean"] = round(statistics.geometric_mean(ratios.values()), 3)
    told[f"times {peer}, worst"] = ", ".join(f"{case}: {ratios[case]:.2f}" for case in worst)
  return told


def show(result: dict[str, Any], args: argparse.Namespace) -> None:
  """Print figures: one JSON line, or a line each."""
  if args.json:
    print(json.dumps(result))
    return
  for name, value in result.items():
    print(f"{name:40} {value:.4g}" if isinstance(value, float) else f"{name:40} {value}")
