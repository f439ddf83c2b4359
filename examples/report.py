"""What a run tells: a progress line, a log of JSON lines, the loss curve as a picture, and mistakes in a line."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from data import Missing

from mini.config import ConfigError
from mini.nn.state import StateError
from runtime.base import DeviceError
from runtime.files import written


@contextmanager
def mistakes_in_a_line() -> Iterator[None]:
  """What a user can mend is told without a traceback."""
  try:
    yield
  except (Missing, ConfigError, StateError, DeviceError, OSError) as e:
    sys.exit(str(e))
  except KeyboardInterrupt:
    print("\nended at once; what was saved last stands", file=sys.stderr)
    sys.exit(130)


def at_least(least: float) -> Callable[[str], float]:
  """The type of a setting: a number that is not less, whole if `least` is."""

  def parse(text: str) -> float:
    value = type(least)(text)
    if not least <= value < math.inf:
      raise argparse.ArgumentTypeError(f"{text} is not at least {least}")
    return value

  parse.__name__ = type(least).__name__  # argparse says "invalid int value"
  return parse


class Log:
  """A file of JSON objects, one for each step. Going on at a step drops what the file has from there on.

  Where it cannot be written, as on a full disk, a line says so once, and each step tries again."""

  def __init__(self, path: Path, step: int = 0):
    self.path, self.failed = path, False
    self.rows = [row for row in _read(path) if row["step"] < step]
    self.write()

  def write(self) -> None:
    """All of it."""
    with written(self.path) as f:
      f.write("".join(json.dumps(row) + "\n" for row in self.rows).encode())

  def add(self, row: dict) -> None:
    self.rows.append(row)
    try:
      if self.failed:  # it may end in the middle of a line
        self.write()
      else:
        with open(self.path, "a") as f:
          f.write(json.dumps(row) + "\n")
      self.failed = False
    except OSError as e:
      if not self.failed:
        print(f"\nwarning: {self.path} could not be written: {e.strerror}", file=sys.stderr)
      self.failed = True


def _read(path: Path) -> list[dict]:
  """The whole objects of a log; a process that was killed may have left half of a last one."""
  rows = []
  for line in path.read_text().splitlines() if path.exists() else ():
    try:
      row = json.loads(line)
      row["step"], row["loss"]
    except (ValueError, TypeError, KeyError):
      break
    rows.append(row)
  return rows


class Progress:
  """One line that is written over and over on a terminal; elsewhere, now and then a line."""

  def __init__(self, start: int, steps: int, tokens: int):
    self.start, self.steps, self.tokens = start, steps, tokens
    self.live = sys.stderr.isatty()
    self.times = [time.perf_counter()]  # of the last steps; the first one compiles
    self.validation = ""

  def step(self, step: int, loss: float, validation: float | None) -> None:
    self.times = [*self.times[-20:], time.perf_counter()]
    steady = self.times[1:] if len(self.times) > 2 and step - self.start < 20 else self.times
    seconds = (steady[-1] - steady[0]) / max(1, len(steady) - 1) or self.times[-1] - self.times[0]
    if validation is not None:
      self.validation = f"  validation {validation:.3f}"
    done = step + 1
    bar = ("━" * (24 * done // self.steps)).ljust(24, "─")
    left = (self.steps - done) * seconds
    text = f"{done:>{len(str(self.steps))}}/{self.steps} {bar} loss {loss:.3f}{self.validation}"
    if step == self.start:  # says nothing of the others
      text += f"  {seconds:.1f} s with compiling"
    else:
      text += (
        f"  {self.tokens / max(seconds, 1e-9):,.0f} tokens/s  {int(left) // 60}:{int(left) % 60:02} left"
      )
    if self.live:
      print(f"\r\033[K{text}", end="" if done < self.steps else "\n", file=sys.stderr, flush=True)
    elif done % max(1, self.steps // 20) == 0 or done == self.steps or step == self.start:
      print(text, file=sys.stderr, flush=True)


def picture(rows: list[dict], path: Path) -> str:
  """Draw the loss curve; what to tell about it."""
  try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
  except ImportError:
    return "no picture of the loss: pip install matplotlib"
  figure = Figure(figsize=(8, 4.5), layout="constrained")
  axes = figure.add_subplot()
  axes.plot([r["step"] for r in rows], [r["loss"] for r in rows], lw=0.6, alpha=0.5, label="training")
  seen = [r for r in rows if "val_loss" in r]
  axes.plot([r["step"] for r in seen], [r["val_loss"] for r in seen], marker="o", ms=3, label="validation")
  axes.set(xlabel="step", ylabel="loss (nats per token)")
  axes.grid(alpha=0.3)
  axes.legend()
  try:
    with written(path) as f:
      FigureCanvasAgg(figure).print_png(f)
  except OSError as e:
    return f"no picture of the loss: {e}"
  return f"loss curve: {path}"
