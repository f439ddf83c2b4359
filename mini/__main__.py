"""The command line: programs as text, and the tables that mini is made of.

  python -m mini FILE.mini            verifies, and prints the canonical text
    --passes=A,B,...                  what to run first (`python -m mini passes` lists them)
    --recipe="STEP; STEP; ..."        a recipe for the kernels, instead of the heuristic's (for one kernel, in the file:
                                      `kernel NAME(...) recipe("STEP", ...) {`)
    --show=graph,schedule,kernel,uops,source
                                      the stages to print, instead of the result of the last pass
    --test [n=64,m=64]                runs on random inputs, and compares with the interpreter; binds symbolic sizes
    --dev=CPU|CL|CUDA|METAL|INTERP    where --test runs; the language of --show=source
    --time=120 --memory=4G            what this may take, in a process of its own; 0 for no limit

The exit status is 1 if results differ or a program cannot be run, and 2 if the text or the command is wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mini import __version__, limited
from mini.command import BadCommand, Parser, did_you_mean
from mini.config import config
from mini.engine.device import Device, canonical
from mini.ir import composites  # noqa: F401  its rows join the table
from mini.ir.ops import OPS
from mini.ir.uop import UOp
from mini.text.lexer import TextError
from mini.text.parser import parse_file
from mini.text.printer import text
from mini.text.verifier import verify
from mini.types import MiniError, dtypes
from runtime.base import DeviceError

DEFAULT_PASSES = "simplify,schedule,recipe"
STAGES = ("graph", "schedule", "kernel", "uops", "source")


# ---------------------------------------------------------------- the tables


def columns(rows: Sequence[tuple[str, ...]]) -> str:
  """Rows whose cells stand beneath each other; the first begins its line."""
  widths = [max(len(r[n]) for r in rows) for n in range(len(rows[0]) - 1)] if rows else []
  return "\n".join("  ".join([*(c.ljust(w) for c, w in zip(r, widths)), r[-1]]).rstrip() for r in rows)


def ops(everything: bool, methods: bool) -> str:
  if methods:
    from mini import reference

    return columns(reference.coverage())
  rows = [(o.name, o.family, "any" if o.arity < 0 else str(o.arity), o.result, o.note) for o in OPS.values()
          if everything or o.family not in ("leaf", "mark", "composite")]  # fmt: skip
  return columns(rows)


def docs() -> str:
  from mini import reference

  return reference.document().rstrip("\n")


def ulp() -> str:
  from mini.opsuite import accuracy

  return accuracy.page()


def rules() -> str:
  from mini.ir.rules import RULES

  return columns(
    [(r.name, f"{r.left}  ->  {r.right}", "FAST=1" * getattr(r, "fast", False), r.why) for r in RULES]
  )


def pass_table() -> str:
  from mini.engine.passes import passes

  return columns([(name, ", ".join(p.takes), p.meaning) for name, p in passes().items()])


def devices() -> str:
  """Every device that there is, and for each kind that cannot be had here what would help."""
  from mini.engine.device import KINDS
  from mini.render import LANGUAGES

  rows: list[tuple[str, str, str]] = []
  for kind in KINDS:
    for n in range(1 if kind in ("CPU", "INTERP") else 16):
      try:
        device = Device[f"{kind}:{n}"]
      except DeviceError as e:
        if n == 0:
          rows.append((kind, "missing", " ".join(str(e).split())))
        break
      state = "default" if device.name == Device.DEFAULT else "ready"
      first, *_ = rows[-1][0].split(" ") if rows else [""]
      if n and rows[-1] == (rows[-1][0], "ready", about(device)):  # like the one before
        rows[-1] = (f"{first} to :{n}", *rows[-1][1:])
      else:
        rows.append((device.name, state, about(device)))
  missing = [
    kind for kind, state, why in rows if state == "missing" and kind in LANGUAGES and "EMULATE" not in why
  ]
  hint = f"\nEMULATE=1 runs the kernels of {', '.join(missing)} on the CPU: slowly, to test them." * bool(
    missing
  )
  return columns(rows) + hint


def about(device: Any) -> str:
  """A device in one line."""
  if device.interprets:
    return "NumPy, needs no compiler"
  info = device.shim.info
  what = [info.target, f"{info.threads} threads" if info.kind == "cpu" else f"{info.units} units"]
  lacks = [d.name for d in dtypes.all if d.name not in info.dtypes]
  return ", ".join([*what, f"{info.memory_bytes / 1e9:.0f} GB", *(f"no {name}" for name in lacks)])


def cache(clear: bool) -> str:
  from mini.engine.cache import disk_cache, result_cache

  caches = [
    found for found in (disk_cache(), result_cache()) if found
  ]  # code; recipes that were searched for
  if not caches:
    return "the cache is off"
  if clear:
    count, nbytes = map(sum, zip(*(found.clear() for found in caches)))
    return f"removed {count} entries, {nbytes} bytes"
  return "\n".join(found.describe() for found in caches)


# ---------------------------------------------------------------- programs


def read(path: str, sizes: dict[str, int]) -> list[UOp]:
  try:
    with open(path, "rb") as f:
      raw = f.read(64 << 20)
  except OSError as e:
    raise BadCommand(f"{path}: {e.strerror}") from None
  try:
    return parse_file(raw.decode(), path, sizes)
  except UnicodeDecodeError as e:
    line = raw.count(b"\n", 0, e.start) + 1
    raise TextError(f"{path}:{line}:1: this is no UTF-8 text") from None


def steps_for(program: UOp, args: argparse.Namespace, machine: Any) -> list[Any]:
  """The passes that --passes and --recipe ask for. Without --passes, a graph goes as far as is asked, a kernel is left
  as it was written."""
  from mini.engine.passes import passes, step_pass

  table = passes(machine, language_of(args.dev))
  further = args.test is not None or args.recipe or set(args.show) - {"graph"}
  default = DEFAULT_PASSES if program.op == "graph" and further else ""
  names = [n for n in (default if args.passes is None else args.passes).split(",") if n]
  if unknown := [n for n in names if n not in table]:
    raise BadCommand(f"there is no pass {unknown[0]!r}; there are {', '.join(table)}")
  if not args.recipe:
    return [table[n] for n in names]
  if "recipe" not in names:
    names.append("recipe")
  return [step_pass(args.recipe.replace(";", "\n")) if n == "recipe" else table[n] for n in names]


def lowered(program: UOp, args: argparse.Namespace, machine: Any) -> dict[str, list[UOp]]:
  """{stage: the programs as they were at it last}, and as "result" what the last pass gave."""
  from mini.engine.passes import run_pass

  programs, seen = [program], {program.op: [program]}
  for step in steps_for(program, args, machine):
    programs = run_pass(step, programs)
    for p in programs:
      verify(p)
    seen.update({op: [p for p in programs if p.op == op] for op in {p.op for p in programs}})
  seen["result"] = programs
  return seen


def language_of(dev: str) -> str:
  """The device in whose language a source for this one is written."""
  return "CPU" if dev == "INTERP" else dev.partition(":")[0]


def stage_programs(seen: dict[str, list[UOp]], stage: str, machine: Any, dev: str) -> list[UOp]:
  """What --show prints of a stage: what a pass gave, or what follows from the last kernels."""
  from mini.engine.passes import kernels_of, passes, run_pass

  if stage in seen:
    return seen[stage]
  last = [p for p in seen["result"] if p.op in ("schedule", "kernel")]
  if stage == "kernel":
    return [k for p in last for k in kernels_of(p)]
  return run_pass(passes(machine, language_of(dev))[stage], last) if stage in ("uops", "source") else []


def test(program: UOp, final: UOp, dev: str) -> bool:
  """Run both on the same random inputs; print a line; do they agree?"""
  from mini.engine.launch import (
    TOLERANCE,
    Launchable,
    difference,
    interface,
    interpret,
    random_array,
    returned,
  )
  from mini.engine.passes import as_given

  rng = np.random.default_rng(0)
  data = {m.name: random_array(m, interface(program), rng) for m in interface(program)}
  inputs = {m.name: data.get(as_given(m.name, data), np.zeros(m.shape, m.dtype.np)) for m in interface(final)}
  want = interpret(program, data)
  start = time.perf_counter()
  if dev == "INTERP":
    got, flops = interpret(final, inputs), 0
    seconds = time.perf_counter() - start
  else:
    launchable = Launchable(final, dev)
    got, seconds = launchable.run(inputs)
    flops = launchable.flops
  pairs = list(zip(returned(program), returned(final)))
  errors = [difference(want[a], got[b]) for a, b in pairs]
  kinds = {m.name: m.dtype for m in interface(final)}
  runs = (
    len(final.arg.runs) if final.op == "schedule" else 1
  )  # from one to the next, roundings add up like random steps
  fine = all(e <= TOLERANCE.get(kinds[n], 0) * runs**0.5 for (_, n), e in zip(pairs, errors))
  speed = f"  {flops / seconds / 1e9:.2f} GFLOP/s" if flops else ""
  error = f"error {max(errors, default=0):.1e}"
  names = {
    "graph": lambda: program.arg.name,
    "schedule": lambda: program.arg.name,
    "kernel": lambda: program.arg.what,
  }
  print(
    f"# {program.op} {names[program.op]()} on {dev}: {seconds * 1e3:.3f} ms{speed}"
    f"  {error}  {'ok' if fine else 'DIFFERS'}"
  )
  return fine


def run_tests(programs: list[UOp], args: argparse.Namespace, machine: Any) -> bool:
  fine = True
  for p in programs:
    if p.op == "source":
      continue
    program = p.src[0] if p.op == "uops" else p
    seen = lowered(program, args, machine)
    (final,) = [q for q in seen["result"] if q.op in ("graph", "schedule", "kernel")][:1] or [program]
    if final.op == "graph" and args.dev != "INTERP":
      raise BadCommand("a graph runs once it has a schedule: --passes=schedule")
    fine &= test(program, final, args.dev)
  return fine


def sizes_of(spelled: str) -> dict[str, int]:
  try:
    return {name: int(value) for name, value in (part.split("=") for part in spelled.split(",") if part)}
  except ValueError:
    raise BadCommand(f"--test {spelled}: sizes are written n=64,m=64") from None


def program_command(args: argparse.Namespace) -> int:
  from mini.engine.program import assumed

  programs = read(args.what, sizes_of(args.test or ""))
  machine = assumed()
  if args.test is not None and args.dev != "INTERP":
    from mini.engine.program import machine_of

    machine = machine_of(Device[args.dev].shim.info)
  args.show = [s for s in (args.show or "").split(",") if s]
  if unknown := [s for s in args.show if s not in STAGES]:
    raise BadCommand(f"there is no stage {unknown[0]!r}; there are {', '.join(STAGES)}")
  if args.show or args.test is None:
    seen = [lowered(p, args, machine) for p in programs]
    results = [p for one in seen for p in one["result"]]
    shown = (
      [p for s in args.show for one in seen for p in stage_programs(one, s, machine, args.dev)]
      if args.show
      else results
    )
    print("\n".join(text(p, comments=True) for p in shown))
  return 0 if args.test is None or run_tests(programs, args, machine) else 1


def arguments(argv: Sequence[str]) -> argparse.Namespace:
  parser = Parser()
  parser.add_argument("what")
  parser.add_argument("--passes")
  parser.add_argument("--recipe", default="")
  parser.add_argument("--show")
  parser.add_argument("--test", nargs="?", const="")
  parser.add_argument("--dev", default=None)
  limited.add_arguments(parser)
  if "--test" in argv[:-1] and argv[argv.index("--test") + 1].endswith(".mini"):  # --test FILE
    argv = [*argv, "--test"]
    argv.remove("--test")
  return parser.parse_args(argv)


# ---------------------------------------------------------------- the commands


class Command(NamedTuple):
  """A command: what follows its name, in one sentence what it does, and the function of those words: text to print, or
  the exit status of one that prints by itself. help: a module whose docstring says more."""

  takes: str
  meaning: str
  run: Callable[[list[str]], str | int]
  help: str = ""


def tune_command(argv: list[str]) -> int:
  from mini import tune

  return tune.main(argv, read, columns)


def test_device(argv: list[str]) -> int:
  from mini.opsuite import command

  return command.main(argv)


def new_device(names: list[str]) -> str:
  from mini.engine import template

  if len(names) != 1:
    raise BadCommand("python -m mini new-device NAME: what is it to be called?")
  device, test = template.new_device(names[0])
  return f"{device} is a device: edit it. `python {device}` tests every operation on it, `pytest {test}` the first one."


# fmt: off
COMMANDS = {
  "ops":     Command("[--all | --coverage]", "the operations; or of each method of Tensor which ones it is made of",
                     lambda argv: ops("--all" in argv, "--coverage" in argv)),
  "rules":   Command("", "the rewrites", lambda argv: rules()),
  "passes":  Command("", "the passes, in the order in which a graph goes through them", lambda argv: pass_table()),
  "config":  Command("", "the settings: value, where it came from, meaning", lambda argv: str(config)),
  "devices": Command("", "what is here, and of the rest the one line that would help", lambda argv: devices()),
  "cache":   Command("[clear]", "what is kept on disk", lambda argv: cache("clear" in argv)),
  "docs":    Command("", "every method of Tensor, from the docstrings, in Markdown", lambda argv: docs()),
  "ulp":     Command("", "how far functions are from exact results: docs/accuracy.md", lambda argv: ulp()),
  "tune":    Command("FILE.mini | --model gpt2 [...]", "searches for faster recipes, kernel by kernel, and keeps them",
                     tune_command, "mini.tune"),
  "test-device": Command("NAME [...]", "every operation of a device, on every type, against the interpreter",
                         test_device, "mini.opsuite.command"),
  "new-device":  Command("NAME", "writes NAME_device.py, which works, and its test: to begin a device with",
                         new_device),
}
# fmt: on
FREE = ("tune", "test-device", "new-device")  # they look at their words themselves


def usage() -> str:
  rows = [(f"  python -m mini {name} {c.takes}", c.meaning) for name, c in COMMANDS.items()]
  return f"{(__doc__ or '').strip()}\n\n{columns(rows)}\n\n  COMMAND --help says more; --version"


def command_help(name: str) -> str:
  command = COMMANDS[name]
  if command.help:
    return (import_module(command.help).__doc__ or "").strip()
  return f"python -m mini {name} {command.takes}".rstrip() + f"\n  {command.meaning}"


def run_command(name: str, argv: list[str]) -> int:
  command = COMMANDS[name]
  if {"-h", "--help"} & {*argv}:
    print(command_help(name))
    return 0
  known = re.findall(r"[-\w]+", command.takes)
  if name not in FREE and (unknown := [a for a in argv if a not in known]):
    takes = f"takes {command.takes}" if known else "takes nothing more"
    raise BadCommand(f"{name} {takes}, not {unknown[0]!r}{did_you_mean(unknown[0], known)}")
  found = command.run(argv)
  if isinstance(found, int):
    return found
  print(found)
  return 0


def main(argv: list[str]) -> int:
  """The exit status of a command line; errors are raised."""
  if not argv or argv[0] in ("-h", "--help", "help", "--version"):
    print(f"mini {__version__}" if argv[:1] == ["--version"] else usage())
    return 0 if argv else 2
  if argv[0] in COMMANDS:
    return run_command(argv[0], argv[1:])
  args = arguments(argv)
  if not re.search(r"[./]", args.what) and not os.path.exists(args.what):
    raise BadCommand(
      f"there is no command {args.what!r}{did_you_mean(args.what, COMMANDS)}\n"
      f"  there are {', '.join(COMMANDS)}, and FILE.mini; --help says more"
    )
  try:
    args.dev = canonical(args.dev or Device.DEFAULT)
  except DeviceError as e:
    raise BadCommand(str(e)) from None
  return program_command(args)


def status(argv: list[str]) -> int:
  """The exit status of a command line, whose errors are printed: one line where the text of an error has one."""
  try:
    return main(argv)
  except (TextError, BadCommand) as e:
    print(e, file=sys.stderr)
    return 2
  except (MiniError, DeviceError, IndexError, RecursionError) as e:
    print(f"{type(e).__name__}: {e}", file=sys.stderr)
    return 1
  except BrokenPipeError:
    return 0


def entry() -> NoReturn:
  """Programs are read, run and tuned in a process with limits: their text may be a stranger's."""
  argv = sys.argv[1:]
  has_file = any(a.endswith(".mini") for a in argv)
  sys.exit(limited.run(status, argv) if has_file else status(argv))


if __name__ == "__main__":
  entry()
