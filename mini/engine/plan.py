"""A graph becomes a schedule: one node that says which kernels run, in which order, on which memory. It is what a
program runs, what SHOW=schedule prints, and what the pass of that name gives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from math import prod
from typing import NamedTuple

from mini.codegen.linearize import is_loop
from mini.config import config
from mini.ir.graph import buffer, numel, shape
from mini.ir.kernel import access, contractions, kernel, param, params_of, results, stores
from mini.ir.uop import UOp, closed, const, rebuild, rsize, substitute, toposort, uop
from mini.schedule import NONE, Why, schedule
from mini.schedule.alias_outputs import overwrite
from mini.schedule.concat_rewrites import in_pieces
from mini.schedule.memory import Need, in_place, plan
from mini.schedule.merge import MOST_PARAMS, levels_of
from mini.schedule.order import early
from mini.schedule.split import split_reductions
from mini.schedule.subbuffers import regions
from mini.text.printer import Copy, Memory, Plan, Run, noted, schedule_program
from mini.types import DType


def taken_over(
  outputs: Sequence[UOp], inout: Mapping[int, int], devices: Sequence[str] = ()
) -> dict[int, UOp]:
  """{output: the input whose memory it may take}, of inputs in0, in1, ... by number, some of which nothing may read.
  devices: of the inputs, where there are several."""
  leaves = {u.arg[0]: u for u in toposort(*outputs) if u.op == "buffer"} if inout else {}
  unread = lambda i, o: buffer(f"in{i}", shape(o), o.dtype, devices[i] if devices else "")
  return {n: leaves.get(f"in{i}") or unread(i, outputs[n]) for n, i in inout.items()}


class Scheduled(NamedTuple):
  """Kernels in the order in which they run, over memory called in0, in1, ..., out0, t0, ..."""

  kernels: list[UOp]
  results: list[str]  # the memory of each output: its own, an equal one's, or an input's that it takes over
  why: Why


def sharing(results: Sequence[str]) -> list[int]:
  """Of each output, by its memory, the one whose memory it shares."""
  first: dict[str, int] = {}
  return [first.setdefault(name, n) for n, name in enumerate(results)]


def updates(results: Sequence[str]) -> dict[int, int]:
  """{output: the input whose memory it takes over}"""
  found = enumerate(zip(results, sharing(results)))
  return {n: int(name[2:]) for n, (name, m) in found if m == n and name.startswith("in")}


def scheduled(graph: UOp, gpu: bool = False, levels: Sequence[int] = ()) -> Scheduled:
  """The kernels of a graph. levels: how late its inputs in0, in1, ... come."""
  why: Why = {}
  roots = in_pieces(graph.src)
  kernels, aliases = schedule(
    {f"out{n}": o for n, o in enumerate(roots if config.NOOPT else split_reductions(roots, gpu)) if numel(o)},
    late(levels),
    why,
    gpu,
    not config.NOOPT,
  )
  into = {f"out{n}": b.arg[0] for n, b in graph.arg.into if numel(b)}
  kernels, done = overwrite(kernels, {o: i for o, i in into.items() if o not in aliases}, late(levels))
  for out, old in done.items():
    if out in why:
      why[old] = why.pop(out)
  kernels = early(kernels, late(levels))
  if not config.NOOPT:
    kernels, place = in_place(kernels)
    for new, old in place.items():
      if new in why:
        why.setdefault(old, []).extend(f"then {reason}" for reason in why.pop(new))
  owners = [aliases.get(f"out{n}", f"out{n}") for n in range(len(graph.src))]
  return Scheduled(kernels, [done.get(name, name) for name in owners], why)


def as_schedule(graph: UOp, found: Scheduled, inout: Container[str]) -> UOp:
  """Of a graph and what it was scheduled as. inout: the memory of outputs that holds something before."""
  untouched = {name: (o.dtype, shape(o)) for name, o in zip(found.results, graph.src)}  # some, by any kernel
  return planned(graph.arg.name, found.kernels, found.results, inout, found.why, untouched)


def late(levels: Sequence[int]) -> dict[str, int]:
  """The inputs that are not there at once."""
  return {f"in{n}": level for n, level in enumerate(levels) if level}


class Segment(NamedTuple):
  """Launches start..stop-1 of a program, which need inputs up to this level."""

  level: int
  start: int
  stop: int


def segments_of(kernels: list[UOp], levels: Sequence[int]) -> list[Segment]:
  found = [Segment(0, 0, 0)]
  for n, level in enumerate(levels_of(kernels, late(levels))):
    if level > found[-1].level:
      found.append(Segment(level, n, n))
    found[-1] = found[-1]._replace(stop=n + 1)
  return found[1:] if found[0].stop == 0 < len(found) - 1 else found


class Launch(NamedTuple):
  """A kernel, free of names, and what it runs on this time."""

  kernel: UOp  # its params are a0, a1, ...
  names: tuple[str, ...]  # of the memory that a0, a1, ... stand for
  starts: tuple[int | None, ...] = ()  # of parts of a memory: the elements at which a0, a1, ... begin


def nameless(k: UOp, split: bool = False) -> Launch:
  """Kernels that are equal up to their memory become one node; with `split`, those that are so up to offsets too."""
  body, where = regions(k) if split else (k, {})
  params = params_of(body)
  if len(params) > MOST_PARAMS:  # parts of one memory, each by itself
    body, where = k, {}
    params = params_of(body)
  whole = {p.arg[0]: p.arg[1] for p in params_of(k)}
  found = [where.get(p, (p.arg[0], 0)) for p in params]
  starts = [None if p.arg[1] == whole[name] else first for p, (name, first) in zip(params, found)]
  body = without_ones(body)
  body = substitute(body, {p: param(f"a{n}", p.arg[1], p.dtype) for n, p in enumerate(params_of(body))})
  return Launch(
    kernel("k", results(body), closed(body)),
    tuple(name for name, _ in found),
    () if set(starts) <= {None} else tuple(starts),
  )


def without_ones(k: UOp) -> UOp:
  """The kernel, for whose memories axes of size 1 do not count, where every index there is 0."""
  order = toposort(k)
  uses = [(u, *access(u)[:2]) for u in order if u.op in ("load", "store") and access(u)[0].op == "param"]
  left = {p: {a for a, n in enumerate(p.arg[1]) if n == 1} for _, p, _ in uses}
  for _, p, index in uses:
    left[p] = {a for a in left[p] if index[a] is const(0)}
  kept = {p: [a for a in range(len(p.arg[1])) if a not in axes] for p, axes in left.items() if axes}
  memo: dict[UOp, UOp] = {}
  for u in order if kept else ():
    src = [memo[s] for s in u.src]
    if u in kept:
      memo[u] = param(u.arg[0], tuple(u.arg[1][a] for a in kept[u]), u.dtype)
    elif u.op in ("load", "store") and u.src[0] in kept:
      first = len(src) - len(u.src[0].arg[1])
      memo[u] = uop(u.op, u.dtype, (*src[:first], *(src[first + a] for a in kept[u.src[0]])), u.arg)
    else:
      memo[u] = rebuild(u, tuple(src))
  return memo.get(k, k)


def family(k: UOp) -> str:
  """What a profile calls a kernel: its shape of work and its output sizes."""
  reduces = any(u.op == "reduce" for u in toposort(k))
  what = (
    "contract" if contractions(k) else "rows" if reduces and closed(k) else "reduce" if reduces else "map"
  )
  return "_".join([what, *(str(rsize(r)) for r in closed(k) if is_loop(r))])


def name_of(k: UOp) -> str:
  """What a nameless kernel is called in the text of every stage and in profiles: its family and a digest of what it
  computes, whatever its recipe and its device."""
  found = k.memo.get("name")
  if found is None:
    number: dict[UOp, int] = {}
    lines = []
    for n, u in enumerate(toposort(k)):
      number[u] = n
      lines.append(f"{u.op} {u.dtype.name} {u.arg!r} {[number[s] for s in u.src]}")
    digest = hashlib.sha1("\n".join(lines).encode()).hexdigest()
    found = k.memo["name"] = f"{family(k)}_{digest[:10]}"
  return found


def renamed(k: UOp, name: str) -> UOp:
  return kernel(name, results(k), closed(k))


Kinds = dict[str, tuple[DType, tuple[int, ...]]]  # of memory, by name


def planned(
  name: str,
  steps: Sequence[UOp | Copy],
  returned: Sequence[str],
  inout: Container[str] = (),
  why: Mapping[str, Sequence[str]] = NONE,
  kinds: Mapping[str, tuple[DType, tuple[int, ...]]] = NONE,
  devices: Mapping[str, str] = NONE,
) -> UOp:
  """Kernels and copies in order, as a schedule whose temporaries have their places in an arena of their device.

  returned: the memory of each output. inout: of these, what holds something before. why: comments on memory. kinds: of
  memory that no kernel touches. devices: of memory, by name, if there are several.
  """
  known: dict[UOp, int] = {}
  runs: list[Run | Copy] = []
  needs: dict[str, Need] = {}
  found: Kinds = dict(kinds)
  written: dict[str, None] = {}
  for at, step in enumerate(steps):
    if isinstance(step, Copy):
      runs.append(step)
      touched = [step.source, step.target]
      written[step.target] = None
    else:
      launch = nameless(step, split=True)
      runs.append(Run(known.setdefault(launch.kernel, len(known)), launch.names, launch.starts))
      touched = [p.arg[0] for p in params_of(step)]
      found.update({p.arg[0]: (p.dtype, p.arg[1]) for p in params_of(step)})
      written.update(dict.fromkeys(s.src[0].arg[0] for s in stores(step)))
    for n in touched:
      nbytes = prod(found[n][1]) * found[n][0].itemsize
      needs[n] = Need(n, nbytes, needs[n].first if n in needs else at, at)
  outputs = dict.fromkeys(returned)
  temporary = {n for n in written if n not in outputs}
  offsets: dict[str, int] = {}
  for d in dict.fromkeys(devices.get(n, "") for n in needs if n in temporary):
    mine = [need for n, need in needs.items() if n in temporary and devices.get(n, "") == d]
    offsets.update(plan(mine)[0])
  inputs = sorted((n for n in needs if n not in written), key=lambda n: needs[n].first)
  where = {n: "in" if n in inputs else "inout" if n in inout else "out" for n in (*outputs, *inputs)}
  memory = [Memory(n, w, *found[n], devices.get(n, "")) for n, w in where.items()]
  memory += [Memory(n, offsets[n], *found[n], devices.get(n, "")) for n in needs if n in temporary]
  made = Plan(name, tuple(memory), tuple(runs))
  if made.returned != tuple(returned):
    made = made._replace(results=tuple(returned))
  return noted(schedule_program(made, tuple(renamed(k, name_of(k)) for k in known)), why)
