"""python -m mini tune: searches for the recipes of every kernel of a program, or of a training step of GPT-2, and says
what that gains. What is found is kept (engine/search.py), and used from then on.

  python -m mini tune FILE.mini        the kernels of the file's programs
  python -m mini tune --model gpt2     those of a training step; or nano, pico, ... (examples/gpt2.py)
    --width N      candidates that are timed in a round (8)
    --seconds S    no new round begins after that; the longest kernels come first
    --batch B --tokens T   of the training step (4, 64)
    --again        also kernels whose recipe is known
    --out FILE     writes those that are faster as a file for RECIPES, which other machines and programs may read, too
    --time=600 --memory=4G   what a file's programs may take, in a process of their own; 0 for no limit
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mini import limited
from mini.codegen.autoschedule import write_recipe
from mini.command import BadCommand, Parser
from mini.config import Context, config
from mini.engine.device import Device
from mini.engine.passes import kernels_of, passes, run_pass
from mini.engine.plan import name_of, nameless
from mini.engine.program import cost, machine_of
from mini.engine.search import Found, Timer, found_for, known, result_key
from mini.ir.uop import UOp

WIDTH = 8
BAR = 30  # characters


# ---------------------------------------------------------------- what is tuned


def of_programs(programs: list[UOp]) -> list[UOp]:
  """The kernels of graphs, schedules and kernels, without names."""
  table = passes(machine_of(Device["CPU"].shim.info))
  for name in ("simplify", "schedule"):
    programs = run_pass(table[name], programs)
  return [nameless(k).kernel for p in programs for k in kernels_of(p)]


def of_training_step(name: str, batch: int, tokens: int) -> list[UOp]:
  """The kernels of a training step with AdamW, of a model of examples/gpt2.py: one is made, and takes a step."""
  import numpy as np

  from mini import Tensor, jit, nn

  path = Path(__file__).parent.parent / "examples" / "gpt2.py"
  spec = importlib.util.spec_from_file_location("gpt2", path)
  if not path.exists() or spec is None or spec.loader is None:
    raise BadCommand(f"--model needs {path}, which comes with the sources of mini")
  gpt2 = importlib.util.module_from_spec(spec)
  sys.modules["gpt2"] = gpt2  # its dataclasses look there
  spec.loader.exec_module(gpt2)
  if name not in gpt2.MODELS:
    raise BadCommand(f"there is no model {name}; there are {', '.join(gpt2.MODELS)}")
  model = gpt2.GPT2(gpt2.MODELS[name])
  optimizer = nn.optim.AdamW(list(model.parameters()), lr=1e-4)

  @jit
  def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = model.loss(x, y)
    loss.backward()
    optimizer.step()
    return loss

  both = np.random.default_rng(0).integers(0, gpt2.MODELS[name].vocabulary, (batch, tokens + 1))
  x, y = Tensor(both[:, :-1]).realize(), Tensor(both[:, 1:]).realize()
  compiled = lambda: [k for known in Device["CPU"].compiled.values() for k in known]
  before = set(compiled())
  for _ in range(2):
    step(x, y).item()
  return [k for k in compiled() if k not in before]


# ---------------------------------------------------------------- tuning


def tune(
  kernels: list[UOp], width: int, seconds: float, again: bool = False
) -> list[tuple[str, Found | None]]:
  """(kernel, what is known of it now) for each, the longest first; None for those that the time did not suffice for."""
  opened = Device["CPU"]
  machine, compiler = machine_of(opened.shim.info), opened.shim.compiler.key("")
  deadline = time.perf_counter() + seconds
  order = sorted(dict.fromkeys(kernels), key=lambda k: -max(cost(k)[0] / 8, cost(k)[1] / 16))
  rows: list[tuple[str, Found | None]] = []
  with Timer() as timer:
    for n, k in enumerate(order):
      progress(n, len(order), name_of(k), rows)
      heuristic = write_recipe(k, machine)[1]
      key = result_key(k, heuristic, machine, compiler)
      found = known(key)
      if time.perf_counter() < deadline and (again or found is None):
        found = found_for(k, heuristic, machine, compiler, timer, width, deadline)
      rows.append((name_of(k), found))
  progress(len(order), len(order), "", rows)
  return rows


def progress(done: int, total: int, what: str, rows: list[tuple[str, Found | None]]) -> None:
  """A line that the next one writes over; nothing where nobody looks."""
  if not sys.stderr.isatty():
    return
  full = BAR * done // max(total, 1)
  better = sum(found is not None and found.ratio < 1 for _, found in rows)
  line = f"[{'#' * full}{'.' * (BAR - full)}] {done}/{total}, {better} faster  {what}"
  sys.stderr.write(f"\r{line[:100]:100}" + "\n" * (done == total))
  sys.stderr.flush()


def difference(found: Found) -> str:
  """The steps that a recipe has more than the heuristic's, and those that it lacks."""
  old, new = Counter(found.heuristic.splitlines()), Counter(found.recipe.splitlines())
  changed = [f"-{line}" for line in (old - new)] + [f"+{line}" for line in (new - old)]
  return "; ".join(changed)


def report(rows: list[tuple[str, Found | None]]) -> list[tuple[str, ...]]:
  """The table, and a line for each candidate that did not count."""
  table: list[tuple[str, ...]] = [("kernel", "heuristic us", "best us", "ratio", "tried", "recipe")]
  for name, found in rows:
    if found is None or not found.seconds:
      table.append((name, "", "", "", "", "not reached" if found is None else "not timed"))
      continue
    us = found.seconds * 1e6
    table.append(
      (
        name,
        f"{us:.1f}",
        f"{us * found.ratio:.1f}",
        f"{found.ratio:.2f}",
        str(found.tried),
        difference(found),
      )
    )
  return table


def main(argv: list[str], read: Any, columns: Any) -> int:
  """read: a file's programs; columns: rows as text (both of mini/__main__.py)."""
  parser = Parser()
  limited.add_arguments(parser)
  parser.add_argument("file", nargs="?")
  parser.add_argument("--model")
  parser.add_argument("--width", type=int, default=config.SEARCH or WIDTH)
  parser.add_argument("--seconds", type=float, default=float("inf"))
  parser.add_argument("--batch", type=int, default=4)
  parser.add_argument("--tokens", type=int, default=64)
  parser.add_argument("--again", action="store_true")
  parser.add_argument("--out")
  args = parser.parse_args(argv)
  if (args.file is None) == (args.model is None):
    print((__doc__ or "").strip())
    return 2
  with Context(SEARCH=0, DEV="CPU"):  # what is only made here is not searched for
    if args.model:
      kernels = of_training_step(args.model, args.batch, args.tokens)
    else:
      kernels = of_programs(read(args.file, {}))
  rows = tune(kernels, args.width, args.seconds, args.again)
  print(columns(report(rows)))
  if args.out:
    pins = [f"{name}: {'; '.join(f.recipe.splitlines())}\n" for name, f in rows if f and f.ratio < 1]
    try:
      Path(args.out).write_text("# kernel: recipe, for RECIPES (python -m mini tune)\n" + "".join(pins))
    except OSError as e:
      raise BadCommand(f"{args.out}: {e.strerror}") from None
    print(f"{len(pins)} recipes in {args.out}")
  for name, found in rows:
    for line in found.refused if found else ():
      print(f"! {name}: {line}")
  return 0
