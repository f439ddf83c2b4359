"""What must hold of a program, so that running it cannot read or write outside its buffers.

A graph: every node has the type and shape that its constructor gives. A kernel: nothing is free at its root;
every range has one name and one owner and every value one place; every axis of every access is in bounds, by
intervals or by its guard; lanes fit; memory on the stack and of a group is bounded, and so are a group's threads; a
parameter that is read and written is so at one index. The verifier refuses what it cannot prove.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from itertools import pairwise
from math import prod

from mini.codegen.linearize import is_loop, lanes, local_ranges, places
from mini.codegen.matrix import check, instruction_of
from mini.codegen.threads import (
  MOST_THREADS,
  above,
  digits,
  is_shared,
  meeting,
  on_stack,
  stage_bytes,
  threads,
)
from mini.ir import composites  # noqa: F401  its rows join the table
from mini.ir import graph as build
from mini.ir.bounded import leaves_wanted, too_little
from mini.ir.contract import products
from mini.ir.graph import numel, shape
from mini.ir.guards import guarded_bounds
from mini.ir.index import flatten
from mini.ir.kernel import (
  access,
  all_ranges,
  directions,
  is_inline,
  memory_shape,
  stage_index,
  stores,
  wanted,
)
from mini.ir.machine import compares, under, wraps
from mini.ir.ops import OPS, REDUCERS, VIEWS, is_elementwise
from mini.ir.races import is_injective, may_race
from mini.ir.uop import (
  FALSE,
  TRUE,
  UOp,
  bounds,
  closed,
  conjuncts,
  free_in,
  index_nodes,
  is_condition,
  loop_limits,
  rkind,
  rname,
  rsize,
  toposort,
)
from mini.text.printer import IDENTIFIER, Copy, Memory, Names, Run, expr, value_names
from mini.types import DType, MiniError, dtypes

STACK_BYTES = 4 << 20  # of all stages of a kernel
SHARED_BYTES = 48 << 10  # of all stages of a kernel that the threads of a group share
DEVICE = re.compile(r"[A-Z][A-Z0-9_]*(:[1-9][0-9]*)?")  # as text names one
TOO_WIDE = "is not proved to stay within 62 bits on the way"
LANE_BYTES = 1 << 20  # of all values: what registers do not hold is on the stack, too
MAX_LANES = 4096  # of one value: each group of lanes is a variable in the source


class VerifyError(MiniError):
  """A program that breaks a rule; `node` is where."""

  def __init__(self, node: UOp, reason: str):
    super().__init__(reason)
    self.node = node


def verify(program: UOp) -> None:
  """VerifyError with the reason if a rule is broken."""
  VERIFIERS[program.op](program)


# ---------------------------------------------------------------- types of elementwise operations


def check_types(op: str, source: tuple[DType, ...], dtype: DType) -> str | None:
  """What is wrong with the types of an elementwise line, if anything."""
  row = OPS[op]
  if row.arity >= 0 and len(source) != row.arity:
    return f"{op} has {row.arity} input{'s' * (row.arity != 1)}, not {len(source)}"
  if op == "cast":
    return None
  spelled = ", ".join(d.short for d in source)
  if op == "bitcast":
    fits = source[0].itemsize == dtype.itemsize and dtypes.index not in (source[0], dtype)
    return None if fits else f"bitcast of {spelled} to {dtype.short}: the sizes differ"
  values = source[1:] if op == "where" else source
  if any(d is not values[0] for d in values) or (op == "where" and source[0] is not dtypes.bool):
    return f"{op}: inputs are {spelled}"
  kind = values[0].kind
  if kind not in row.kinds or (op in ("threefry", "threefry2") and values[0].itemsize != 4):
    return f"{op} does not take {spelled}"
  want = dtypes.bool if row.result == "bool" else values[-1]
  return None if dtype is want else f"{op} of {spelled} is {want.short}, not {dtype.short}"


# ---------------------------------------------------------------- graph

# A node is right if its constructor takes its parts, and gives its type.
CONSTRUCTORS: dict[str, Callable[[UOp], UOp]] = {
  "reshape": lambda u: build.reshape(u.src[0], u.arg),
  "expand": lambda u: build.expand(u.src[0], u.arg),
  "permute": lambda u: build.permute(u.src[0], u.arg),
  "pad": lambda u: build.pad(u.src[0], u.arg),
  "shrink": lambda u: build.shrink(u.src[0], u.arg),
  "flip": lambda u: build.flip(u.src[0], u.arg),
  "reduce": lambda u: build.reduce(u.src[0], *u.arg),
  "scan": lambda u: build.scan(u.src[0], *u.arg),
  "gather": lambda u: build.gather(u.src[0], u.src[1], u.arg),
  "scatter": lambda u: build.scatter(u.src[0], u.src[1], u.src[2], *u.arg),
  "cat": lambda u: build.cat(u.src, u.arg),
  "shard": lambda u: build.shard(u.src[0], *u.arg),
}


def check_graph_node(u: UOp) -> None:
  """The types and shapes of one node of a graph, given that those of its sources are right."""
  row = OPS.get(u.op)
  if row is None:
    raise VerifyError(u, f"{u.op} is no operation of a graph")
  if row.arity >= 0 and len(u.src) != row.arity or row.arity < 0 and not u.src:
    raise VerifyError(u, f"{u.op} has {max(row.arity, 1)} input{'s' * (row.arity != 1)}, not {len(u.src)}")
  if u.dtype not in dtypes.all:
    raise VerifyError(u, f"a value of a graph is not {u.dtype.short}")
  kind, axes = u.arg if u.op in ("reduce", "scan", "scatter") else ("add", u.arg)
  if kind not in REDUCERS and not (u.op == "scatter" and kind == "set"):
    raise VerifyError(u, f"{u.op} knows {', '.join(REDUCERS)}, not {kind}")
  if u.op in ("reduce", "flip") and axes != tuple(sorted(set(axes))):
    raise VerifyError(u, f"{u.op}: the axes {list(axes)} are not in order")
  if u.op == "cat" and not 0 <= u.arg < len(shape(u.src[0])):
    raise VerifyError(u, f"cat: {u.arg} is no axis of {list(shape(u.src[0]))}")
  if is_elementwise(u.op):
    wrong = check_types(u.op, tuple(s.dtype for s in u.src), u.dtype)
    shapes = {shape(s) for s in u.src if shape(s)}
    if wrong or len(shapes) > 1:
      raise VerifyError(u, wrong or f"{u.op}: shapes {', '.join(str(list(shape(s))) for s in u.src)} differ")
  if u.op in CONSTRUCTORS:
    try:
      made = CONSTRUCTORS[u.op](u)
    except (MiniError, IndexError) as e:
      raise VerifyError(u, str(e)) from None
    if shape(made) != shape(u) or made.dtype is not u.dtype:
      raise VerifyError(u, f"{u.op} of this is {made.dtype.short}{list(shape(made))}")


def verify_graph(graph: UOp) -> None:
  for u in toposort(*graph.src):
    check_graph_node(u)
  taken: set[UOp] = set()
  for n, b in graph.arg.into:
    out = graph.src[n]
    if b.op != "buffer" or b.dtype is not out.dtype or numel(b) != numel(out):
      raise VerifyError(
        graph, f"output {n} goes into {b.op}, which is no input of as many elements of its type"
      )
    if b in taken:
      raise VerifyError(graph, f"two outputs go into %{b.arg[0]}")
    taken.add(b)


# ---------------------------------------------------------------- kernel


def provable(index: UOp, size: int, gate: UOp) -> bool:
  """Is 0 <= index < size wherever the gate is true?"""
  lo, hi = bounds(index)
  if lo < 0 or hi >= size:
    lo, hi = guarded_bounds(index, gate)
  return 0 <= lo and hi < size


def kept_apart(k: UOp, u: UOp) -> str:
  """Why loops of u, which closes them, cannot run around those of a stage that it fills; empty where they can."""
  if u.op != "reduce" or len(u.src) != 1 + u.arg.count or any(rkind(r) == "local" for r in closed(u)):
    return "no loop of a plain reduce"
  users = [x for x in toposort(k) if u in x.src]
  if len(users) != 1 or users[0].op != "stage" or users[0].src[0] is not u or users[0].arg.what != "stack":
    return "a loop of a reduce that no stage on the stack holds"
  stage = users[0]
  if not is_injective(stage_index(stage), stage.arg.shape, closed(stage)):
    return "a loop of a reduce whose stage may write an element twice"
  return ""


def check_kernel_node(u: UOp, show: Callable[[], Names]) -> None:
  """The types of one node of a kernel and the bounds of its indices, given that its sources are right.

  show: how the program that u stands in spells its values; asked when something is wrong.
  """
  if "right" in u.memo:
    return
  check_kernel_types(u)
  for s in u.src if not is_inline(u) else ():
    wrong = [c for c in conjuncts(s) if not compares(c)] if is_condition(s) else []
    if wrong or (u.op == "cast" and s.dtype is dtypes.index and wraps(s)):
      raise VerifyError(u, f"{u.op}: {expr(wrong[0] if wrong else s, show())} {TOO_WIDE}")
  if u.op in ("load", "store"):
    memory, index, gate = access(u)
    _check_access(u, index, memory_shape(memory), gate, show)
  elif u.op == "stage":
    if len(stage_index(u)) != len(u.arg.shape):
      raise VerifyError(u, f"stage: {len(stage_index(u))} indices for memory of shape {list(u.arg.shape)}")
    _check_access(u, stage_index(u), u.arg.shape, TRUE, show)
  u.memo["right"] = True


def check_kernel_types(u: UOp) -> None:
  if u.op in ("load", "store"):
    memory, index, gate = access(u)
    if memory.op not in (("param", "stage") if u.op == "load" else ("param",)):
      raise VerifyError(u, f"{u.op}: {memory.op} is no memory")
    if len(index) != len(memory_shape(memory)):
      raise VerifyError(u, f"{u.op}: {len(index)} indices for memory of shape {list(memory_shape(memory))}")
    if not is_condition(gate):
      raise VerifyError(u, f"{u.op}: the guard is no condition on indices")
    value = u if u.op == "load" else u.src[1]
    if value.dtype is not memory.dtype:
      raise VerifyError(u, f"{u.op}: the value is {value.dtype.short}, the memory {memory.dtype.short}")
    if u.op == "store" and u.arg is not None and u.arg not in REDUCERS:
      raise VerifyError(u, f"store knows {', '.join(REDUCERS)}, not {u.arg}")
  elif u.op in ("reduce", "scan"):
    kind = u.arg.what if u.op == "reduce" else u.arg
    if kind not in REDUCERS:
      raise VerifyError(u, f"{u.op} knows {', '.join(REDUCERS)}, not {kind}")
  elif u.op == "cast" and len(u.src) == 1 and dtypes.index in (u.dtype, u.src[0].dtype):
    other = u.src[0].dtype if u.dtype is dtypes.index else u.dtype
    if u.dtype is dtypes.index and other.kind not in "biu":
      raise VerifyError(u, f"an index is an integer, not {other.short}")
  elif is_elementwise(u.op) and not is_inline(u):
    wrong = check_types(u.op, tuple(s.dtype for s in u.src), u.dtype)
    if wrong:
      raise VerifyError(u, wrong)
  elif not is_inline(u) and u.op not in ("stage", "kernel"):
    raise VerifyError(u, f"{u.op} is no operation of a kernel")
  if u.op in ("reduce", "scan", "stage") and u.src[0].dtype is not u.dtype:
    raise VerifyError(u, f"{u.op} of {u.src[0].dtype.short} is not {u.dtype.short}")


def _check_access(
  u: UOp, index: tuple[UOp, ...], s: tuple[int, ...], gate: UOp, show: Callable[[], Names]
) -> None:
  for i, n in zip(index, s):
    if not provable(i, n, gate):
      by = "" if gate is TRUE else f" by {expr(gate, show())}"
      raise VerifyError(u, f"{u.op}: {expr(i, show())} is not proved to be in 0..{n - 1}{by}")
  flat = flatten(index, s)
  # what is never computed is still text
  if wraps(flat, dict.fromkeys(index_nodes(flat), (0, 0)) if gate is FALSE else under(gate)):
    raise VerifyError(u, f"{u.op}: {expr(flat, show())} {TOO_WIDE}")


def _check_lanes(u: UOp, value: UOp, index: tuple[UOp, ...]) -> None:
  if not set(lanes(value) + local_ranges(value)) <= {r for i in index for r in lanes(i) + local_ranges(i)}:
    raise VerifyError(u, "a stored value has a lane that its index lacks")


def _check_names(kernel: UOp) -> None:
  names = [rname(r) for r in all_ranges(kernel)] + [u.arg[0] for u in toposort(kernel) if u.op == "param"]
  for n in names:
    if not IDENTIFIER.fullmatch(n):
      raise VerifyError(kernel, f"{n!r} is no name for a range or a parameter")
  if len(set(names)) < len(names):
    twice = next(n for n in names if names.count(n) > 1)
    raise VerifyError(kernel, f"%{twice} names two ranges or parameters")


def _check_shared(kernel: UOp) -> None:
  """What is read and written is so at one index, of which no two iterations share a cell."""
  ranges = closed(kernel)
  loads = [u for u in toposort(kernel) if u.op == "load" and u.src[0].op == "param"]
  for s in stores(kernel):
    target, index, _ = access(s)
    mine = [u for u in loads if u.src[0] is target]
    if any(access(u)[1] != index for u in mine):
      raise VerifyError(s, f"%{target.arg[0]} is read at another index than it is written")
    if mine and (s.arg or not is_injective(index, memory_shape(target), ranges)):
      raise VerifyError(s, f"%{target.arg[0]} is read and written, but two iterations may share a cell")
    for r in ranges:
      if rkind(r) in ("par", "local") and may_race(s, r):
        does = "accumulate into" if s.arg else "write to"
        raise VerifyError(s, f"threads {does} the same cell of %{target.arg[0]}")


def _check_threads(kernel: UOp, order: list[UOp], shared_bytes: int) -> None:
  """The local ranges are digits of a thread's number, and what the threads share is shared.

  That all threads come to each barrier equally often needs no check: a loop's rounds are a number, a line's place
  follows from its loops, and nothing else decides whether a line is run.
  """
  for u in order:
    for r in closed(u):
      if rkind(r) == "local" and rsize(r).bit_count() != 1:
        raise VerifyError(u, f"%{rname(r)} is local: {rsize(r)} is no power of two")
      if rkind(r) == "local" and u.op == "stage" and not is_shared(u):
        raise VerifyError(u, f"%{rname(r)} is local, but a thread sees no other's memory in {u.arg.what}")
    if instruction_of(u):
      try:
        check(u)
      except ValueError as e:
        raise VerifyError(u, str(e)) from None
  strides = digits(kernel)
  for rs in meeting(kernel):
    mine = sorted((strides[r], above(r, strides[r]), rname(r)) for r in rs if r in strides)
    for (_, ends, a), (starts, _, b) in pairwise(mine):
      if starts < ends:
        raise VerifyError(kernel, f"%{a} and %{b} are lanes of two matrix instructions at once")
  count = threads(kernel)
  if count > MOST_THREADS:
    raise VerifyError(kernel, f"its local ranges take {count} threads; at most {MOST_THREADS}")
  shared = [u for u in order if is_shared(u)]
  if shared and not count:
    raise VerifyError(shared[0], "a stage in shared memory, but no range is local")
  taken = sum(map(stage_bytes, shared))
  if taken > shared_bytes:
    raise VerifyError(kernel, f"its stages take {taken} bytes of shared memory; at most {shared_bytes}")


def verify_kernel(kernel: UOp, stack_bytes: int = STACK_BYTES, shared_bytes: int = SHARED_BYTES) -> None:
  """Everything that the head of this file lists."""
  if kernel.free:
    raise VerifyError(kernel, f"nothing closes %{min(map(rname, kernel.free))}")
  if not stores(kernel) or not all(map(is_condition, wanted(kernel))):
    raise VerifyError(kernel, "a kernel has stores, and conditions on indices, as its results")
  _check_names(kernel)
  order = toposort(kernel)
  for u in order:
    check_kernel_node(u, lambda: Names(value_names(kernel)))
  try:
    places(kernel)  # one owner per range, one place per value
  except ValueError as e:
    raise VerifyError(kernel, str(e)) from None
  values = 0
  for u in order:
    if any(r.op != "range" for r in closed(u)) or len(set(closed(u))) < len(closed(u)):
      raise VerifyError(u, f"{u.op}: what it closes are not different ranges")
    if any(rkind(r) == "around" for r in closed(u)) and (why := kept_apart(kernel, u)):
      raise VerifyError(u, f"%{rname(next(r for r in closed(u) if rkind(r) == 'around'))} is {why}")
    if u.op == "store":
      summed = [r for r in u.src[1].free if u.arg and rkind(r) == "unroll"]  # one after another
      _check_lanes(u, u.src[1], (*access(u)[1], *summed))
    elif u.op == "stage":
      _check_lanes(u, u.src[0], (*stage_index(u), *(r for r in u.free if not is_loop(r))))
      if u.arg.what not in ("stack", "shared") and any(rkind(r) in ("par", "local") for r in u.free):
        raise VerifyError(u, f"threads share the memory of this stage in {u.arg.what}")
    elif u.op == "scan" and (u.src[1].op != "range" or rkind(u.src[1]) != "loop"):
      raise VerifyError(u, "a scan runs along a range that is a plain loop")
    if u.dtype is not dtypes.index and not is_condition(u):
      if sum(rkind(r) == "vec" for r in lanes(u)) > 1:
        raise VerifyError(u, f"{u.op} depends on two vec ranges")
      count = prod(map(rsize, lanes(u)))
      if count > MAX_LANES:
        raise VerifyError(u, f"{u.op} has {count} lanes; at most {MAX_LANES}")
      values += count * u.dtype.itemsize
      if values > LANE_BYTES:
        raise VerifyError(u, f"with {u.op}, its values take {values} bytes; at most {LANE_BYTES}")
  outer = {x for x in closed(kernel) if is_loop(x) and not x.src}
  for u in order:
    for r in closed(u):
      if r.src and (rkind(r) != "loop" or not free_in(r.src) <= outer):
        raise VerifyError(u, f"%{rname(r)}: limits are for loops, by output loops")
      if any(wraps(e) for e in loop_limits(r)):
        raise VerifyError(u, f"%{rname(r)}: one of its limits {TOO_WIDE}")
      if r.src and u is kernel and leaves_wanted(kernel, r):
        raise VerifyError(u, f"%{rname(r)}: with these limits it may leave out what is wanted")
      if any(x.op == "cast" and x.free for e in r.src for x in index_nodes(e)):
        raise VerifyError(u, f"%{rname(r)}: its limits depend on data that is not the same everywhere")
  if (found := too_little(kernel)) is not None:
    raise VerifyError(*found)
  if (stack := on_stack(kernel)) > stack_bytes:
    raise VerifyError(kernel, f"its stages take {stack} bytes of stack; at most {stack_bytes}")
  _check_threads(kernel, order, shared_bytes)
  _check_shared(kernel)


# ---------------------------------------------------------------- schedule


def _check_run(program: UOp, run: Run, memory: dict[str, Memory]) -> list[tuple[str, str]]:
  """(name, direction) of what a run touches, after checking that its memory is what the kernel expects."""
  kernel = program.src[run.kernel]
  params = directions(kernel)
  if len(params) != len(run.names):
    raise VerifyError(program, f"run {kernel.arg.what}: it takes {len(params)} different memories")
  parts: dict[str, list[tuple[int, int]]] = {}
  for p, n, start in zip(params, run.names, run.starts or (None,) * len(run.names)):
    first, last = start or 0, (start or 0) + prod(p.arg[1])
    squeezed = ([m for m in s if m != 1] for s in (p.arg[1], memory[n].shape))
    fits = operator.eq(*squeezed) if start is None else last <= prod(memory[n].shape)
    if p.dtype is not memory[n].dtype or not fits:
      want, has = (f"{d.short}{list(s)}" for d, s in ((p.dtype, p.arg[1]), memory[n][2:4]))
      at = "" if start is None else f" from element {start} on"
      raise VerifyError(program, f"run {kernel.arg.what}: %{p.arg[0]} is {want}, but %{n} is {has}{at}")
    if any(a < last and first < b for a, b in parts.setdefault(n, [])):
      raise VerifyError(
        program,
        f"run {kernel.arg.what}: it takes {len(params)} different memories, and two of them overlap in %{n}",
      )
    parts[n].append((first, last))
  return list(zip(run.names, params.values()))


def device_of(program: UOp, run: Run, memory: dict[str, Memory]) -> str:
  """The one device that a run's memory is on; "" where none is said."""
  devices = list(dict.fromkeys(d for n in run.names if (d := memory[n].device)))
  if len(devices) > 1:
    what = program.src[run.kernel].arg.what
    raise VerifyError(program, f"run {what}: its memory is on {' and on '.join(devices)}")
  return devices[0] if devices else ""


def _check_devices(program: UOp, memory: dict[str, Memory]) -> None:
  """Names are as devices have them; memory of which none is said is used on one, if it is written."""
  for m in memory.values():
    if m.device and not DEVICE.fullmatch(m.device):
      raise VerifyError(program, f"%{m.name} is on {m.device!r}, which is no device, such as CPU or CPU:1")
  home: dict[str, str] = {}
  for run in program.arg.runs:
    names = (run.source, run.target) if isinstance(run, Copy) else run.names
    at = "" if isinstance(run, Copy) else device_of(program, run, memory)
    for n in names:
      if not memory[n].device and memory[n].where != "in" and home.setdefault(n, at) != at:
        first, second = sorted((home[n], at))
        other = f"on {first} and " if first else "without a device and "
        raise VerifyError(program, f"%{n} is on no device, and used {other}on {second}")


def _check_copy(program: UOp, run: Copy, memory: dict[str, Memory]) -> list[tuple[str, str]]:
  source, target = memory[run.source], memory[run.target]
  if source.dtype is not target.dtype or prod(source.shape) != prod(target.shape) or source is target:
    raise VerifyError(
      program, f"copy %{run.source} -> %{run.target}: they do not hold equally many of one type"
    )
  return [(run.source, "in"), (run.target, "out")]


def verify_schedule(program: UOp) -> None:
  """Every run gets the memory that its kernel expects, nothing is read before it is written, and parts of the
  arena that overlap are not in use at the same time."""
  plan = program.arg
  memory = {m.name: m for m in plan.memory}
  for k in program.src:
    verify_kernel(k)
  used: dict[str, list[int]] = {}
  written: set[str] = {m.name for m in plan.memory if m.where in ("in", "inout")}
  for n, run in enumerate(plan.runs):
    check = _check_copy if isinstance(run, Copy) else _check_run
    for name, direction in check(program, run, memory):  # type: ignore[operator]
      used.setdefault(name, []).append(n)
      if direction != "out" and name not in written:
        raise VerifyError(program, f"%{name} is read before it is written")
      if direction != "in" and memory[name].where == "in":
        raise VerifyError(program, f"%{name} is an input, and written")
      if direction != "in":
        written.add(name)
  if idle := {*range(len(program.src))} - {run.kernel for run in plan.runs}:
    raise VerifyError(program, f"no run of kernel {program.src[min(idle)].arg.what}")
  if empty := [m.name for m in plan.memory if m.where == "out" and m.name not in written and prod(m.shape)]:
    raise VerifyError(program, f"%{empty[0]} is out, and never written")
  if lost := [n for n in plan.results if memory[n].where not in ("out", "inout", "in")]:
    raise VerifyError(program, f"%{lost[0]} is returned, and a part of the arena")
  arena = [
    (m.where, m.where + prod(m.shape) * m.dtype.itemsize, m) for m in plan.memory if isinstance(m.where, int)
  ]
  live: list[tuple[int, int, Memory]] = []
  for lo, hi, m in sorted(arena, key=lambda part: used.get(part[2].name, [0])[0]):
    if lo % m.dtype.itemsize:
      raise VerifyError(program, f"%{m.name} is not aligned")
    if m.name not in used:
      continue
    live = [part for part in live if used[part[2].name][-1] >= used[m.name][0]]
    for start, end, other in live:
      if start < hi and lo < end and (m.device == other.device or "" in (m.device, other.device)):
        raise VerifyError(program, f"%{m.name} and %{other.name} share memory while both are in use")
    live.append((lo, hi, m))
  _check_devices(program, memory)


def graph_bytes(graph: UOp) -> int:
  order = toposort(*graph.src)
  unmade = {x for x in products(order, graph.src) if repeats_apart(*x.src)}
  last = {x: n for n, u in enumerate(order) for x in u.src} | dict.fromkeys(graph.src, len(order))
  ends: dict[int, int] = {}
  live = peak = 0
  for n, u in enumerate(order):
    if u.op not in VIEWS and u.op != "const" and u not in unmade:
      size = numel(u) * u.dtype.itemsize
      live += size
      peak = max(peak, live)
      if u.op != "buffer" and u in last:
        ends[last[u]] = ends.get(last[u], 0) + size
    live -= ends.pop(n, 0)
  return peak


def repeats_apart(a: UOp, b: UOp) -> bool:
  """Do two factors repeat along axes of their own, as those of a matrix product do?"""
  if a.op != "expand" or b.op != "expand":
    return False
  own = [{n for n, (m, k) in enumerate(zip(shape(x.src[0]), shape(x))) if m != k} for x in (a, b)]
  return bool(own[0] - own[1]) and bool(own[1] - own[0])


def nbytes(program: UOp) -> int:
  """Memory that a program reads, writes and makes on its way, interpreted: of a graph the inputs, and the most that is
  in use at once; of a kernel all buffers."""
  if program.op == "graph":
    return graph_bytes(program)
  if program.op == "schedule":
    stages = [u for u in toposort(*program.src) if u.op == "stage"]
    named = sum(prod(m.shape) * m.dtype.itemsize for m in program.arg.memory)
    ends = [
      m.where + prod(m.shape) * m.dtype.itemsize for m in program.arg.memory if isinstance(m.where, int)
    ]
    return max(named, *ends, 0) + sum(prod(memory_shape(u)) * u.dtype.itemsize for u in stages)
  memories = [u for u in toposort(program) if u.op in ("param", "stage")]
  return sum(prod(memory_shape(u)) * u.dtype.itemsize for u in memories)


VERIFIERS: dict[str, Callable[[UOp], None]] = {
  "graph": verify_graph,
  "schedule": verify_schedule,
  "kernel": verify_kernel,
  "uops": lambda program: verify_kernel(program.src[0]),
  "source": lambda program: None,
}
