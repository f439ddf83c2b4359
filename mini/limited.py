"""Programs of strangers in a process of their own, which ends when it has taken too much time or memory:
`python -m mini FILE.mini` and `tune`. Whatever ends it is said in one line.

Time is wall time, and its end also ends what the process has started. Memory is what each process has for itself
(RLIMIT_DATA: Linux keeps it, macOS does not).
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from mini.command import BadCommand, Parser

UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
SECONDS = {"tune": 600}  # by command; of others TEST_SECONDS
TEST_SECONDS = 120


class Limits(NamedTuple):
  """0 for none."""

  seconds: float
  nbytes: int


def add_arguments(parser: Parser) -> None:
  """--time and --memory, which are kept here, and only need to be known there."""
  parser.add_argument("--time")
  parser.add_argument("--memory", default="4G")


def of(argv: list[str]) -> Limits:
  """What a command line says of its limits."""
  parser = Parser()
  add_arguments(parser)
  args, _ = parser.parse_known_args(argv)
  seconds, size = args.time or str(SECONDS.get(argv[0], TEST_SECONDS)), args.memory
  if not re.fullmatch(r"\d+(\.\d+)?s?", seconds):
    raise BadCommand(f"--time={seconds}: seconds, such as 120; 0 for no limit")
  spelled = re.fullmatch(r"(\d{1,9})([KMGT]?)B?", size.upper())
  if not spelled:
    raise BadCommand(f"--memory={size}: bytes, such as 512M or 4G; 0 for no limit")
  return Limits(float(seconds.rstrip("s")), int(spelled[1]) << UNITS[spelled[2]])


def inside(status: Callable[[list[str]], int], argv: list[str], limits: Limits) -> None:
  """The child: a group of processes, so that its compilers end with it."""
  os.setpgid(0, 0)
  if limits.nbytes:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = limits.nbytes if hard == resource.RLIM_INFINITY else min(limits.nbytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
  try:
    code = status(argv)
  except MemoryError:
    print(f"{file_of(argv)}: it takes more than {spelled(limits.nbytes)} of memory: stopped "
          f"(--memory={spelled(2 * limits.nbytes)} allows more)", file=sys.stderr)  # fmt: skip
    code = 1
  except KeyboardInterrupt:
    code = 130
  atexit._run_exitfuncs()  # multiprocessing leaves them out
  sys.exit(code)


def spelled(nbytes: int) -> str:
  unit = max((u for u, bits in UNITS.items() if nbytes % (1 << bits) == 0), key=lambda u: UNITS[u])
  return f"{nbytes >> UNITS[unit]}{unit}"


def file_of(argv: list[str]) -> str:
  return next(a for a in argv if a.endswith(".mini"))


def run(status: Callable[[list[str]], int], argv: list[str]) -> int:
  """The exit status of `status(argv)`, in a process that is ended at its limits."""
  try:
    limits = of(argv)
  except BadCommand as e:
    print(e, file=sys.stderr)
    return 2
  start: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
  child = start.Process(target=inside, args=(status, argv, limits))
  child.start()
  stopped = ""
  try:
    child.join(limits.seconds or None)
    if child.exitcode is None:
      stopped = (
        f"it takes more than {limits.seconds:g} s: stopped (--time={2 * limits.seconds:g} allows more)"
      )
  except KeyboardInterrupt:
    stopped = "interrupted"
  if stopped:
    end(child, signal.SIGINT)  # it may have files to remove, and processes to end
    child.join(1)
    end(child, signal.SIGKILL)
    child.join()
  elif child.exitcode >= 0:
    return child.exitcode
  why = stopped or f"the process that ran it ended by {signal.Signals(-child.exitcode).name}"
  print(f"{file_of(argv)}: {why}", file=sys.stderr)
  return 1


def end(child: Any, by: signal.Signals) -> None:
  """The signal, to the child and to what it has started."""
  with suppress(ProcessLookupError, PermissionError):
    os.killpg(child.pid, by)
