"""SEARCH=n: the recipe of a kernel is searched for, by time on the device, and what was found is kept on disk.

The heuristic's recipe comes first, and another one takes its place only if it is clearly faster, each time that both
are timed in turns. Candidates come from codegen/search.py; they run in a process of their own (timing.py), which is
ended when it takes too long, and what crashed it is left out. Programs use what is known of a kernel, whatever SEARCH
is; a result is known of one kernel, one machine, one compiler and one recipe of the heuristic's: if any of these
changes, it is no longer read.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mini.codegen.recipe_builder import Machine
from mini.codegen.search import VERSION, Candidate, candidate, neighbours
from mini.config import PREFIX, TABLE, config, spelled
from mini.engine.cache import result_cache, warn
from mini.ir.uop import UOp
from mini.text.printer import kernel_text
from runtime import host
from runtime.files import remove

CLEARLY = 0.97  # of the heuristic's time: what a recipe must stay below to take its place
AGAIN, FINALISTS = 3, 4  # times that it must do so once more, in a row; how many may try
WORTH_SECONDS = 2e-6  # what takes less is not searched for: most of that is the call
ROUNDS = 4  # of candidates, each around the best of those before
BEAM = 3  # how many the next round begins with
SETTINGS = ("CC", "THREADS", "CACHE", "MACHINE", "FAST")  # that hold in the process, too
LIMIT_SECONDS = 30.0  # for one candidate; for the first also to compile them all
MADE_SECONDS = 10.0  # of Python, to write the candidates of a round


class Timing(NamedTuple):
  """Of a recipe, beside its base."""

  seconds: float  # of one call, at best
  ratio: (
    float  # of its time to the base's: the median over pairs of turns, or that of the best ones if it is more
  )
  why: str = ""  # it does not count


Times = Callable[[UOp, str, list[str]], Iterator[Timing]]  # (kernel, base, recipes) -> of each, in order


class Found(NamedTuple):
  """What a search has found."""

  recipe: str
  heuristic: str
  ratio: float  # of the time of the recipe to that of the heuristic's; 1 where that is the best
  seconds: float  # of a call with the heuristic's recipe; 0 where it was not timed
  tried: int = 0
  refused: tuple[str, ...] = ()  # "recipe: why it did not count"


def search(
  kernel: UOp, heuristic: str, machine: Machine, width: int, times: Times, deadline: float = float("inf")
) -> Found:
  """The fastest recipe that is found. width: candidates of a round.
  deadline: of time.perf_counter(), for new rounds."""
  first = candidate(kernel, heuristic.splitlines(), machine)
  if first is None:
    return Found(heuristic, heuristic, 1, 0)
  tried: dict[UOp, tuple[float, Candidate]] = {first.kernel: (1.0, first)}
  refused: list[str] = []
  beam = [first]
  (own,) = times(kernel, heuristic, [heuristic])
  if own.why:
    return Found(heuristic, heuristic, 1, 0, 0, (f"the heuristic's: {own.why}",))
  for n in range(ROUNDS if own.seconds >= WORTH_SECONDS else 0):
    fresh = around(kernel, beam, machine, width, set(tried)) if time.perf_counter() < deadline else []
    if not fresh:
      break
    before = min(ratio for ratio, _ in tried.values())
    for c, t in zip(fresh, times(kernel, heuristic, [c.recipe for c in fresh])):
      tried[c.kernel] = (t.ratio if not t.why else float("inf")), c
      if t.why:
        refused.append(f"{'; '.join(c.recipe.splitlines())}: {t.why}")
    ranked = sorted(tried.values(), key=lambda rc: rc[0])  # of equals the one that was found first
    beam = [c for _, c in ranked[:BEAM]]
    if n and ranked[0][0] > before * CLEARLY:  # two moves may gain what neither does
      break
  found = Found(heuristic, heuristic, 1, own.seconds, len(tried) - 1, tuple(refused))
  for ratio, c in sorted(tried.values(), key=lambda rc: rc[0])[:FINALISTS]:
    again: list[float] = []
    while ratio < CLEARLY and len(again) < AGAIN:
      (t,) = times(kernel, heuristic, [c.recipe])
      again.append(ratio := t.ratio if not t.why else 1)
    if ratio < CLEARLY:
      return found._replace(recipe=c.recipe, ratio=sorted(again)[AGAIN // 2])
  return found


def around(
  kernel: UOp, beam: list[Candidate], machine: Machine, width: int, seen: set[UOp]
) -> list[Candidate]:
  """New candidates, one move away from one of the beam: those that the model thinks best. Each of the beam has its
  share, so that what is fast against the model's opinion is followed, too."""
  found: list[Candidate] = []
  stop = time.perf_counter() + MADE_SECONDS
  for n, c in enumerate(beam):
    near = [x for x in neighbours(kernel, c.recipe, machine) if x.kernel not in seen]
    share = -(-(width - len(found)) // (len(beam) - n))
    found += near[:share]
    seen |= {x.kernel for x in near[:share]}
    if time.perf_counter() > stop:
      break
  return found


# ---------------------------------------------------------------- on the device, in another process


class Timer:
  """The process that times. `with Timer() as times: search(..., times)`"""

  command = (sys.executable, "-m", "mini.engine.timing")

  def __init__(self, seconds: float = LIMIT_SECONDS):
    self.seconds = seconds
    self.process: subprocess.Popen[bytes] | None = None
    self.rest = b""

  def __enter__(self) -> Timer:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
    return self

  def __exit__(self, *exception: object) -> None:
    self.end()

  def __call__(self, kernel: UOp, base: str, recipes: list[str]) -> Iterator[Timing]:
    """One Timing for each recipe. Where the process ends before all have theirs, the one whose turn it was has ended
    it; or, where none has one yet, any of them: then they are tried one by one."""
    while recipes:
      done, why = 0, ""
      self.send({"kernel": kernel_text(kernel), "base": base, "recipes": recipes, "limit": self.seconds})
      while done < len(recipes) and not why:
        found = self.answer()
        if isinstance(found, str):
          why = found
        else:
          done += 1
          yield found
      if why and not done and len(recipes) > 1:
        for one in recipes:
          yield from self(kernel, base, [one])
        return
      if why:
        yield Timing(0, 0, why)
      recipes = recipes[done + bool(why) :]

  def send(self, job: dict[str, Any]) -> None:
    if self.process is None or self.process.poll() is not None:
      self.end()
      root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
      others = {n: v for n, v in os.environ.items() if n.removeprefix(PREFIX) not in TABLE}
      settings = {PREFIX + name: spelled(getattr(config, name)) for name in SETTINGS}
      path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
      self.process = subprocess.Popen(
        self.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**others, **settings, "PYTHONPATH": path},
      )
      self.rest = b""
    assert self.process.stdin is not None
    try:
      self.process.stdin.write(json.dumps(job).encode() + b"\n")
      self.process.stdin.flush()
    except BrokenPipeError:  # `answer` says why
      pass

  def answer(self) -> Timing | str:
    """The next line; or why there is none, and then no process."""
    assert self.process is not None and self.process.stdout is not None
    stop, out = time.monotonic() + self.seconds + 5, self.process.stdout.fileno()
    while b"\n" not in self.rest:
      ready, _, _ = select.select([out], [], [], max(0, stop - time.monotonic()))
      data = os.read(out, 1 << 16) if ready else b""
      if not data:
        status = self.process.wait(5) if ready else -signal.SIGALRM
        self.end()
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        return (
          f"took more than {self.seconds:g} s, and was ended"
          if status == -signal.SIGALRM
          else f"crashed: {name}"
        )
      self.rest += data
    line, _, self.rest = self.rest.partition(b"\n")
    return Timing(*json.loads(line))

  def end(self) -> None:
    """Ends the process, and the compilers that it may have started."""
    process, self.process = self.process, None
    if process is None:
      return
    try:
      os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass
    process.wait()
    for pipe in (process.stdin, process.stdout):
      if pipe is not None:
        try:
          pipe.close()
        except BrokenPipeError:
          pass


# ---------------------------------------------------------------- what is known


_known: dict[str, Found] = {}  # in this process


def result_key(kernel: UOp, heuristic: str, machine: Machine, compiler: str) -> str:
  parts = [f"recipe {VERSION}", repr(machine), host.processor(), compiler, heuristic, kernel_text(kernel)]
  return "\n".join(parts)


def known(key: str) -> Found | None:
  """What a search has found, here or in another process."""
  if key not in _known and (disk := result_cache()) is not None and (path := disk.get(key)):
    try:
      found = Found(**json.loads(host.read(path)))
      if not isinstance(found.recipe, str):
        raise TypeError("a recipe is text")
      _known[key] = found
    except (ValueError, TypeError):
      warn("a result of a search cannot be read, and is not: %s", path)
  return _known.get(key)


def keep(key: str, found: Found) -> None:
  """A search that is made again has the last word."""
  _known[key] = found
  disk = result_cache(make=True)
  if disk is None:
    return
  old = disk.get(key)
  path = disk.put(key, json.dumps(found._asdict()).encode())
  if old and path and old != path:
    remove(old)


def recipe_for(kernel: UOp, heuristic: str, machine: Machine, compiler: str) -> str:
  """The best that is known of, searched for now where nothing is and SEARCH says so; else the heuristic's."""
  found = known(result_key(kernel, heuristic, machine, compiler))
  if found is None and config.SEARCH:
    with Timer() as timer:
      found = found_for(kernel, heuristic, machine, compiler, timer, config.SEARCH)
    for line in found.refused:
      warn("search: a candidate did not count: %s", line)
  return found.recipe if found else heuristic


def found_for(
  kernel: UOp, heuristic: str, machine: Machine, compiler: str, times: Times, width: int,
  deadline: float = float("inf"),
) -> Found:  # fmt: skip
  """Search, and keep what is found; nothing where the heuristic's could not be timed or, unless something is better,
  where the time did not suffice."""
  found = search(kernel, heuristic, machine, width, times, deadline)
  if found.seconds and (found.ratio < 1 or time.perf_counter() < deadline):
    keep(result_key(kernel, heuristic, machine, compiler), found)
  return found
