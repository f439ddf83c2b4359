"""Public methods with arguments that make no sense: whatever is raised is an error of ours, or a TypeError, with a text.

    python test/fuzz_errors.py [--seconds 60] [--seed 0] [NAME...]     # each failure once, with the call that repeats it

A call is a method of Tensor, a function of mini.nn.functional, mini.linalg or mini.fft, with arguments that are of the
wrong rank, type, sign or size. What it gives is computed, so that no error waits for the values.
"""

from __future__ import annotations

import argparse
import inspect
import random
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_files import within

import mini
from mini import Context, MiniError, Tensor, dtypes
from runtime.base import DeviceError

HERE = str(Path(mini.__file__).parent)
INTERNAL = (
  AssertionError,
  AttributeError,
  KeyError,
  NameError,
  RecursionError,
  UnboundLocalError,
  ZeroDivisionError,
)

TENSORS: dict[str, Callable[[], Tensor]] = {
  "T(1.5)": lambda: Tensor(1.5),
  "T[3]": lambda: Tensor([1.0, -2.0, 3.0]),
  "T[2,3]": lambda: Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
  "T[2,3,4]": lambda: Tensor.ones(2, 3, 4),
  "T[1,2,3,4]": lambda: Tensor.ones(1, 2, 3, 4),
  "T[0]": lambda: Tensor.zeros(0),
  "T[2,0]": lambda: Tensor.zeros(2, 0),
  "T[3,3]": lambda: Tensor.eye(3),
  "i[3]": lambda: Tensor([0, 1, 2]),
  "i[2,3]": lambda: Tensor([[0, 5, -9], [1, 2, 10**6]]),
  "i()": lambda: Tensor(2),
  "b[3]": lambda: Tensor([True, False, True]),
  "h[3]": lambda: Tensor([1.0, 2.0, 3.0], dtype="float16"),
  "c[3]": lambda: Tensor([1j, 2.0, 3.0]),
}
PLAIN: list[Any] = [None, -1, 0, 1, 2, 5, -7, 10**6, 2**40, 0.5, -2.5, float("nan"), float("inf"), 1j, True, "", "mean", "typo",
                    (), (0,), (1, 1), (-1, 2), (0, 0, 0), [2, 3], [[0, 1], [1, 0]], ("a",), {}, object, dtypes.int32, "int64",
                    np.float32(2), np.arange(3), slice(None), ...]  # fmt: skip
MOST_BYTES = 4 << 30
SKIPPED = {  # what runs code or reads memory of its own, or has nothing to be fuzzed: why
  "realize": "",
  "numpy": "",
  "train": "a context",
  "kernel": "",
  "map": "",
}


def subjects() -> Iterator[tuple[str, Callable[..., Any]]]:
  """The public functions, by name."""
  for name in dir(Tensor):
    method = inspect.getattr_static(Tensor, name)
    if not name.startswith("_") and (isinstance(method, staticmethod) or inspect.isfunction(method)):
      yield f"Tensor.{name}", getattr(Tensor, name)
  for module in (mini.nn.functional, mini.linalg, mini.fft):
    for name in getattr(module, "__all__", None) or [*module.METHODS.split()]:
      found = getattr(module, name)
      if inspect.isfunction(found):
        yield f"{module.__name__}.{name}", found


def drawn(draw: random.Random, tensor: bool) -> tuple[str, Any]:
  """An argument, as it is written and as it is."""
  if draw.random() < (0.9 if tensor else 0.25):
    name = draw.choice([*TENSORS])
    return name, TENSORS[name]()
  value = draw.choice(PLAIN)
  return repr(value), value


def call(draw: random.Random, f: Callable[..., Any]) -> tuple[list[str], list[Any]]:
  """Arguments for a function: as many as it has to have, or some more, or one less."""
  try:
    parameters = [p for p in inspect.signature(f).parameters.values() if p.kind < p.KEYWORD_ONLY]
  except (TypeError, ValueError):
    parameters = []
  least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
  count = min(draw.choice([least, least, least + 1, least + 2, len(parameters)]), 7)
  tensors = [
    n == 0 or n < len(parameters) and "Tensor" in str(parameters[n].annotation) for n in range(count)
  ]
  pairs = [drawn(draw, t) for t in tensors]
  return [name for name, _ in pairs], [value for _, value in pairs]


def unclear(e: BaseException) -> str:
  """Why an error is none that a user should see; empty if it is."""
  if isinstance(e, (MiniError, DeviceError)):
    return "" if str(e) else "no text"
  if isinstance(e, TypeError) and not isinstance(e, INTERNAL):
    frames = traceback.extract_tb(e.__traceback__)
    ours = [
      f for f in frames if f.filename.startswith(HERE) and f.name not in ("gated", "function", "on_either")
    ]
    text = str(e)
    said = any(word in text for word in ("argument", "positional", "keyword"))
    return "" if said and len(ours) <= 1 or isinstance(e, MiniError) else "a TypeError from inside"
  if isinstance(e, (MemoryError, Slow)):
    return ""
  return "raw"


class Slow(BaseException):
  """A call that takes longer than it may."""


def late(*_: Any) -> None:
  raise Slow


def attempt(f: Callable[..., Any], values: list[Any], seconds: float = 2.0) -> BaseException | None:
  """The error of a call, computed, with so much time, and MOST_BYTES of memory that are not there yet."""
  before, limits = signal.signal(signal.SIGALRM, late), resource.getrlimit(resource.RLIMIT_AS)
  within(MOST_BYTES)
  signal.setitimer(signal.ITIMER_REAL, seconds)
  try:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
      warnings.simplefilter("ignore")
      found = f(*values)
      for t in found if isinstance(found, (tuple, list)) else (found,):
        if isinstance(t, Tensor) and t.numel() < 10**6:
          t.realize()
  except (Exception, Slow) as e:  # noqa: BLE001  whatever it is: that is what is judged
    return e
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    resource.setrlimit(resource.RLIMIT_AS, limits)
  return None


def fuzz(seed: int, rounds: int, names: set[str] | None = None, seconds: float = 1e9) -> dict[str, str]:
  """Failures, one for each function and line: where, and the call."""
  draw, found, end = random.Random(seed), {}, time.monotonic() + seconds
  table = [(n, f) for n, f in subjects() if n.split(".")[-1] not in SKIPPED and (not names or n in names)]
  with Context(DEV="INTERP"):
    for _ in range(rounds):
      for name, f in table:
        if time.monotonic() > end:
          return found
        shown, values = call(draw, f)
        e = attempt(f, values)
        if e is not None and (why := unclear(e)):
          last = traceback.extract_tb(e.__traceback__)[-1]
          at = f"{Path(last.filename).name}:{last.lineno}"
          found.setdefault(
            f"{name} {type(e).__name__} {at}",
            f"{name}({', '.join(shown)}): {why}: {type(e).__name__}: {str(e)[:100]} at {at}",
          )
  return found


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--seconds", type=float, default=60)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("names", nargs="*")
  options = parser.parse_args()
  found = fuzz(options.seed, 10**6, {*options.names}, options.seconds)
  print(*found.values(), f"{len(found)} failures", sep="\n")
