"""python -m mini test-device NAME ...: every operation of a device, on every type, against the interpreter.

  NAME ...         devices: CPU, CL, CUDA, METAL, INTERP, CUDA:1, ..., or one that a file registers
  SETTING=VALUE    for the devices that follow: EMULATE=1 CUDA METAL; NOOPT=1 CPU
  --from FILE.py   imports a file first, which registers a device (Device.register)
  --rows A,B       rows or operations of these names alone
  --types A,B      columns alone: float32,int8
  --report FILE    writes the tables as Markdown: a section for each device, in place of the one that FILE has

Each line says what failed in a row: how many cases, and of the first its type, its layout, and what came out. The last
is `N passed, N failed`; the exit status is 1 if anything failed or a device cannot be had, and 2 if the command is
wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from mini.command import BadCommand, Parser
from mini.config import ConfigError, Context
from mini.engine.device import canonical
from mini.opsuite import report
from mini.opsuite.workers import Setup, Verdicts, import_file, run_suite, settings_here
from mini.types import dtypes


def arguments(argv: Sequence[str]) -> argparse.Namespace:
  parser = Parser()
  parser.add_argument("words", nargs="*")
  parser.add_argument("--from", dest="files", action="append", default=[])
  parser.add_argument("--rows", default="")
  parser.add_argument("--types", default="")
  parser.add_argument("--report")
  args = parser.parse_intermixed_args(argv)
  if not args.words:
    raise BadCommand((__doc__ or "").strip())
  return args


def names(text: str) -> tuple[str, ...]:
  return tuple(part.strip() for part in text.split(",") if part.strip())


def setups(args: argparse.Namespace) -> list[Setup]:
  """The devices that are asked for."""
  known = {d.name for d in dtypes.all}
  if unknown := [t for t in names(args.types) if t not in known]:
    raise BadCommand(f"there is no type {unknown[0]!r}; there are {', '.join(d.name for d in dtypes.all)}")
  for path in args.files:
    import_file(path)
  settings: dict[str, Any] = {}
  found = []
  for word in args.words:
    name, is_setting, value = word.partition("=")
    if is_setting:
      settings[name] = value
    try:
      with Context(**settings):
        here = settings_here()
    except ConfigError as e:
      raise BadCommand(str(e)) from None
    if not is_setting:
      found.append(Setup(canonical(word), here, tuple(args.files), names(args.rows), names(args.types)))
  return found


def main(argv: Sequence[str]) -> int:
  """The command's exit status. Prints what failed."""
  args = arguments(argv)
  done: list[Verdicts] = []
  for setup in setups(args):
    v = run_suite(setup, progress(setup.device))
    if not v.rows:
      raise BadCommand(f"there is no row {args.rows}; `python -m mini ops --all` lists operations")
    done.append(v)
    name = report.title(v)
    for line in report.failures(v):
      print(f"{name}: {line}")
    if len(args.words) > 1:
      print(f"{name}: {report.summary(v)}")
  if args.report:
    report.write(args.report, done)
  passed, failed = map(sum, zip(*map(report.counts, done)))
  print(f"{passed} passed, {failed} failed")
  return 1 if failed else 0


def progress(device: str) -> Any:
  """What tells how far it is, where somebody looks."""
  shown = sys.stderr.isatty()

  def tell(done: int) -> None:
    if shown:
      sys.stderr.write(f"\r{device}: {done} cases\x1b[K\r")

  return tell
