"""The op suite in processes of its own: a kernel that crashes or hangs is one failed case, and two cores work at once.

A worker gets the numbers of cases, and answers with verdicts as it goes. Where one dies, or is silent for too long, a
new one goes on with what is left, more carefully: program by program, then case by case.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple

from mini.config import TABLE, Context, config
from mini.engine.device import KINDS
from mini.ir.uop import toposort
from mini.opsuite.cases import Case, Row, rows
from mini.opsuite.run import Runner, grouped, one_line
from mini.types import DType, dtypes
from runtime.base import DeviceError

SILENCE = (
  120,
  40,
  40,
)  # seconds without an answer after which a worker is ended, by care: a batch compiles in a few
MOST_WORKERS = 4
BATCH = 160  # cases that are compiled together, at most


class Setup(NamedTuple):
  """What is tested, and how."""

  device: str
  settings: dict[str, Any]  # that hold while it is, by name
  files: tuple[str, ...] = ()  # imported first: they register devices
  rows: tuple[str, ...] = ()  # of these names, or of operations of these names; () for all
  types: tuple[str, ...] = ()  # columns; () for all


class Facts(NamedTuple):
  """What a device says of itself."""

  language: str
  lacks: tuple[str, ...]  # types
  flushes: tuple[str, ...]  # types whose subnormal numbers become 0


class Verdicts(NamedTuple):
  """The outcome of a run."""

  setup: Setup
  facts: Facts
  rows: list[Row]
  cases: list[Case]
  wrong: dict[int, str]  # of each case that ran, by number: what is wrong; "" if nothing is


def settings_here() -> dict[str, Any]:
  return {name: getattr(config, name) for name in TABLE}


def import_file(path: str) -> None:
  """Run a file as a module, unless it is imported."""
  full = str(Path(path).resolve())
  if any(getattr(m, "__file__", None) == full for m in list(sys.modules.values())):
    return
  spec = importlib.util.spec_from_file_location(Path(path).stem, full)
  if spec is None or spec.loader is None:
    raise DeviceError(f"{path} is no Python file")
  module = importlib.util.module_from_spec(spec)
  sys.modules[spec.name] = module
  try:
    spec.loader.exec_module(module)
  except OSError as e:
    raise DeviceError(f"{path}: {e.strerror}") from None


def planned(setup: Setup) -> tuple[list[Row], list[Case]]:
  """The rows that are asked for, and their cases in an order that every process finds."""
  wanted = [r for r in rows() if not setup.rows or r.name in setup.rows or r.name.split()[0] in setup.rows]
  if setup.types:
    wanted = [r._replace(cells={d: c for d, c in r.cells.items() if d.name in setup.types}) for r in wanted]
  return wanted, [
    case for r in wanted for cell in r.cells.values() if not isinstance(cell, str) for case in cell
  ]


def runs_on(case: Case, lacks: Sequence[str]) -> bool:
  return not any(u.dtype.name in lacks for u in toposort(case.root))


# ---------------------------------------------------------------- in the worker

Message = tuple[str, Any]


def facts_of(runner: Runner) -> Facts:
  flushes = tuple(d.name for d, flushed in runner.flushes.items() if flushed)
  return Facts(runner.language, tuple(d.name for d in runner.lacks()), flushes)


def examine(runner: Runner, cases: list[Case], numbers: list[int], care: int) -> Iterator[Message]:
  """begun: what runs next; done: its verdicts. care 0: all kernels are compiled at once; 1: those of a program, and its
  cases run one by one; 2: those of a case."""
  number = {id(cases[n]): n for n in numbers}
  groups = grouped([cases[n] for n in numbers])
  if care == 0:
    runner.prepare(groups)
  for group in groups:
    parts = [group] if care == 0 else [[case] for case in group]
    if care == 1:
      yield "begun", [number[id(case)] for case in group]
      runner.prepare(parts)
    for part in parts:
      yield "begun", [number[id(case)] for case in part]
      yield "done", {number[id(case)]: wrong for case, wrong in runner.verdicts(part)}
  yield "end", None


def work(conn: Connection, setup: Setup) -> None:
  """A worker's life: it opens the device, then runs what it is asked to until it is told to stop."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
  try:
    for path in setup.files:
      import_file(path)
    with Context(**setup.settings):
      if setup.device.partition(":")[0] not in KINDS:
        conn.send(("unknown", None))
        return
      runner = Runner(setup.device)
      conn.send(("opened", facts_of(runner)))
      _, cases = planned(setup)
      while (asked := conn.recv()) is not None:
        for message in examine(runner, cases, *asked):
          conn.send(message)
  except (EOFError, BrokenPipeError):
    pass
  except Exception as e:  # noqa: BLE001 (it is said where the command was given)
    conn.send(("failed", str(e) if isinstance(e, DeviceError) else one_line(e)))


# ---------------------------------------------------------------- in the command


class Died(Exception):
  """A worker ended, or had to be ended, before it had answered."""


class Worker:
  """A process, and what it says."""

  def __init__(self, setup: Setup):
    context = multiprocessing.get_context("spawn")  # not fork: a driver would not survive that
    self.conn, theirs = context.Pipe()
    self.process = context.Process(target=work, args=(theirs, setup), daemon=True)
    self.process.start()
    theirs.close()
    kind, self.facts = self.receive(SILENCE[0])
    if kind == "unknown":
      raise LookupError(setup.device)
    if kind != "opened":
      raise DeviceError(self.facts)

  def receive(self, seconds: float) -> Message:
    try:
      if self.conn.poll(seconds):
        return self.conn.recv()
      self.process.kill()
      raise Died(f"it did not end within {seconds} s")
    except (EOFError, OSError):
      self.process.join()
      code = self.process.exitcode or 0
      why = signal.Signals(-code).name if code < 0 else f"exit status {code}"
      raise Died(f"the process crashed: {why}") from None

  def ask(self, numbers: list[int], care: int) -> Iterator[Message]:
    self.conn.send((numbers, care))
    while (message := self.receive(SILENCE[care]))[0] != "end":
      if message[0] == "failed":
        raise Died(message[1])
      yield message

  def close(self) -> None:
    self.conn.close()
    self.process.kill()
    self.process.join()


class Driver:
  """Batches of cases, and the workers that run them."""

  def __init__(self, setup: Setup, cases: list[Case], tell: Callable[[int], object] = lambda done: None):
    self.setup, self.cases, self.tell = setup, cases, tell
    self.batches: deque[list[int]] = deque()
    self.wrong: dict[int, str] = {}
    self.crashed: set[str] = set()  # rows, whose other cases are not tried any more
    self.lock = Lock()
    self.failed: list[BaseException] = []
    self.workers: list[Worker] = []
    self.over = False

  def plan(self, lacks: Sequence[str]) -> None:
    """What has the same inputs stands together, and is compiled together: a batch is some layouts of a column."""
    alike: dict[tuple[DType, str], list[int]] = {}
    for n, case in enumerate(self.cases):
      if runs_on(case, lacks):
        alike.setdefault((case.column, case.layout), []).append(n)
    for (column, _), numbers in sorted(alike.items(), key=lambda item: dtypes.all.index(item[0][0])):
      last = self.batches[-1] if self.batches else []
      if last and self.cases[last[0]].column is column and len(last) + len(numbers) <= BATCH:
        last += numbers
      else:
        self.batches.append(numbers)

  def start(self) -> Worker:
    worker = Worker(self.setup)
    self.workers.append(worker)
    return worker

  def run(self) -> Facts:
    first = self.start()
    try:
      self.plan(first.facts.lacks)
      cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
      count = max(1, min(cores, MOST_WORKERS, len(self.batches)))
      threads = [
        Thread(target=self.drive, args=(first if n == 0 else None,), daemon=True) for n in range(count)
      ]
      for t in threads:
        t.start()
      for t in threads:
        t.join()
    finally:
      self.over = True  # so that nobody starts another
      for worker in self.workers:
        worker.close()
    if self.failed:
      raise self.failed[0]
    return first.facts

  def drive(self, worker: Worker | None) -> None:
    try:
      while True:
        try:
          batch = self.batches.popleft()
        except IndexError:
          return
        worker = self.finish(worker, batch)
    except BaseException as e:  # noqa: BLE001 (raised by who waits)
      self.failed.append(e)
      self.batches.clear()

  def finish(self, worker: Worker | None, batch: list[int]) -> Worker | None:
    """Run a batch to its end, whatever dies. The worker that lives."""
    care, left = 0, batch
    while not self.over and (left := [n for n in left if n not in self.wrong and not self.gives_up(n)]):
      worker = worker or self.start()
      begun: list[int] = []
      try:
        for kind, value in worker.ask(left, care):
          begun = value if kind == "begun" else []
          if kind == "done":
            with self.lock:
              self.wrong.update(value)
              self.tell(len(self.wrong))
      except (Died, BrokenPipeError) as e:
        worker.close()
        worker = None
        if len(begun) == 1:
          self.wrong[begun[0]] = str(e)
          self.crashed.add(self.cases[begun[0]].row)
        elif care == 2:
          raise DeviceError(f"{self.setup.device}: the device cannot be kept open: {e}") from None
        care = min(care + (len(begun) != 1), 2)
    return worker

  def gives_up(self, n: int) -> bool:
    row = self.cases[n].row
    if row in self.crashed:
      self.wrong[n] = f"not run: {row} ended the process"
    return row in self.crashed


def run_suite(setup: Setup, tell: Callable[[int], object] = lambda done: None) -> Verdicts:
  """All cases of a device. DeviceError where it cannot be opened."""
  for path in setup.files:  # operations of one's own have rows, too
    import_file(path)
  table, cases = planned(setup)
  driver = Driver(setup, cases, tell)
  try:
    facts = driver.run()
    return Verdicts(setup, facts, table, cases, driver.wrong)
  except LookupError:
    return run_here(setup, table, cases)


def run_here(setup: Setup, table: list[Row], cases: list[Case]) -> Verdicts:
  """The same in this process, for a device that no other process knows."""
  wrong: dict[int, str] = {}
  with Context(**setup.settings):
    runner = Runner(setup.device)
    facts = facts_of(runner)
    for d in dtypes.all:
      mine = [n for n, case in enumerate(cases) if case.column is d and runs_on(case, facts.lacks)]
      for kind, value in examine(runner, cases, mine, 0):
        if kind == "done":
          wrong.update(value)
  return Verdicts(setup, facts, table, cases, wrong)
