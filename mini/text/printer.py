"""Programs as text: how each stage prints. parser.py reads it back, and gives the same node.

  graph    a tensor program            kernel   scalars over ranges, with any recipe applied
  schedule kernels in the order in which they run, and where their memory is
  uops     a kernel in the order of its loops   source   what a renderer wrote: printed, never read as a program

The text of a program is canonical: it depends on the program alone. Values are numbered in the order in which
they are printed; inputs and ranges keep their names, which recipes refer to. A number stands where it is
used; it carries its type, as in `i32(3)`, where nothing else tells it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple
from weakref import ref

from mini.codegen.linearize import Line, is_loop, lanes, linearize, local_ranges
from mini.codegen.matrix import instruction_of, tile
from mini.ir.graph import shape
from mini.ir.kernel import access, all_ranges, carries_value, directions, is_inline, stage_index, wanted
from mini.ir.ops import OPS
from mini.ir.uop import TRUE, UOp, both, closed, conjuncts, mul, rkind, rname, rsize, toposort, uop
from mini.types import DType, dtypes

IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)  # the name of an input or a range; values have numbers
Notes = Mapping[Any, Sequence[str]]  # memory, or a value of a graph -> sentences
WIDTH = 56  # types stand in one column, not further to the right than this


class Graph(NamedTuple):
  """The argument of a graph, whose sources are its outputs."""

  name: str
  into: tuple[tuple[int, UOp], ...] = ()  # (output, the input whose memory it may take)


def graph_program(name: str, outputs: tuple[UOp, ...], into: Mapping[int, UOp] = MappingProxyType({})) -> UOp:
  """A tensor program as one node: what `graph NAME(...) { ... return ... }` reads as."""
  pairs = tuple((n, into[n]) for n in sorted(into))
  return uop("graph", dtypes.void, tuple(outputs), Graph(name, pairs))


class Memory(NamedTuple):
  """Memory that a schedule names: an argument, or a part of its arena."""

  name: str
  where: str | int  # in | out | inout, or the offset in the arena in bytes
  dtype: DType
  shape: tuple[int, ...]
  device: str = ""  # where there are several; what is on none of them is there for all


class Run(NamedTuple):
  """One launch: which kernel of the schedule, and the memory that its parameters stand for, in their order."""

  kernel: int
  names: tuple[str, ...]
  starts: tuple[int | None, ...] = ()  # of those that are parts of a memory: the element at which they begin

  @property
  def parts(self) -> list[tuple[str, int]]:
    """(memory, the element at which a parameter begins) of each."""
    return [(name, start or 0) for name, start in zip_longest(self.names, self.starts)]


class Copy(NamedTuple):
  """Memory that is copied to other memory, which is on another device."""

  source: str
  target: str
  kernel: None = None  # which a Run has


class Plan(NamedTuple):
  """The argument of a schedule, whose sources are its kernels."""

  name: str
  memory: tuple[Memory, ...]  # arguments first
  runs: tuple[Run | Copy, ...]
  results: tuple[str, ...] = ()  # the memory of each output; by default what is written, in order

  @property
  def returned(self) -> tuple[str, ...]:
    return self.results or tuple(m.name for m in self.memory if m.where in ("out", "inout"))


def schedule_program(plan: Plan, kernels: tuple[UOp, ...]) -> UOp:
  """Kernels (each with a name of its own), their order and their memory, as one node."""
  return uop("schedule", dtypes.void, tuple(kernels), plan)


def uops_program(kernel: UOp) -> UOp:
  """The kernel, to be shown in the order of its loops."""
  return uop("uops", dtypes.void, (kernel,))


def source_program(name: str, language: str, source: str) -> UOp:
  """Text that a renderer wrote. It can be printed and read back, and does nothing."""
  return uop("source", dtypes.void, (), (name, language, source))


def text(program: UOp, comments: bool = False) -> str:
  """The text of a program, of whichever stage, without a newline at the end.
  comments: with those that `noted` gave it."""
  commented = {"schedule": schedule_text, "graph": graph_text}.get(program.op) if comments else None
  return commented(program, noted_of(program)) if commented else PRINTERS[program.op](program)


def noted(program: UOp, why: Notes) -> UOp:
  """The same program, with comments, which are no part of it: of a schedule on memory, to be printed where it is
  written; of a graph on values."""
  program.memo["why"] = why
  return program


def noted_of(program: UOp) -> Notes:
  why = program.memo.get("why", {})
  if program.op != "graph":
    return why
  again = [u for u in toposort(*program.src) if "region" in u.memo]
  return {**why, **{u: (*why.get(u, ()), CHECKPOINT) for u in again}}


CHECKPOINT = "in a checkpoint: a gradient makes it again, which this text does not hold"


# ---------------------------------------------------------------- numbers, types, index expressions


def number(value: float | bool, dtype: DType) -> str:
  """The shortest spelling that reads back as the same constant."""
  if dtype.kind == "b":
    return "true" if value else "false"
  return str(dtype.np.type(value)) if dtype.kind == "f" else str(value)


def type_text(u: UOp) -> str:
  return u.dtype.short + dims(shape(u))


def on(device: str) -> str:
  return f' on "{device}"' if device else ""


def dims(s: Any) -> str:
  return f"[{', '.join(map(str, s))}]"


def over(rs: tuple[UOp, ...]) -> str:
  return f"({', '.join('%' + rname(r) for r in rs)})"


def by(u: UOp) -> str:
  """The matrix instruction that a reduce is marked with, and the ranges of its tile (codegen/matrix.py)."""
  return f' by "{instruction_of(u)}" {over(tile(u))}' if instruction_of(u) else ""


def expr(u: UOp, name: Callable[[UOp], str] = lambda u: f"%{rname(u)}") -> str:
  """An index expression, or a condition on indices, infix. `name` spells a range, or a value cast to an index."""
  if u.op == "and":
    return " && ".join(expr(c, name) for c in conjuncts(u))
  if u.dtype is dtypes.bool:
    return number(u.arg, u.dtype) if u.op == "const" else _comparison(u, name)
  if u.op == "const":
    return str(u.arg)
  if u.op == "range":
    return name(u)
  if u.op == "cast":
    return name(u.src[0])
  if u.op == "min":
    return f"min({expr(u.src[0], name)}, {expr(u.src[1], name)})"
  if u.op == "add":
    return expr(u.src[0], name) + _signed(u.src[1], name)
  if u.op == "mul":
    return f"-{_atom(u.src[0], name)}" if u.src[1].arg == -1 else f"{_atom(u.src[0], name)}*{u.src[1].arg}"
  return f"{_atom(u.src[0], name)} {'//' if u.op == 'div' else '%'} {u.src[1].arg}"


def _atom(u: UOp, name: Callable[[UOp], str]) -> str:
  return f"({expr(u, name)})" if u.op in ("add", "mul", "div", "mod") else expr(u, name)


def _signed(u: UOp, name: Callable[[UOp], str]) -> str:
  """A further term of a sum, with its sign."""
  negative = u.arg < 0 if u.op == "const" else u.op == "mul" and u.src[1].arg < 0
  return f" - {expr(mul(u, -1), name)}" if negative else f" + {expr(u, name)}"


def _comparison(u: UOp, name: Callable[[UOp], str]) -> str:
  """a < c; where a begins with a minus, the same as -a >= 1 - c."""
  a, c = u.src[0], u.src[1].arg
  first = a
  while first.op == "add":
    first = first.src[0]
  negative = first.op == "mul" and first.src[1].arg < 0
  return f"{expr(mul(a, -1), name)} >= {1 - c}" if negative else f"{expr(a, name)} < {c}"


# ---------------------------------------------------------------- what graphs and kernels share


def implied_dtype(op: str, n: int, dtype: DType, known: list[DType | None]) -> DType | None:
  """The type that input n of a line `op ... : dtype` must have, judged by the rest of the line.

  known: the types of its inputs, None for numbers. None where the number itself must tell.
  """
  if op in ("cast", "bitcast") or (op in ("gather", "scatter") and n == 1):
    return None
  if op == "where" and n == 0:
    return dtypes.bool
  if OPS[op].result == "bool":
    return next((d for d in known if d is not None), None)
  return dtype


class Names:
  """The names in one program, and how an operand is spelled."""

  def __init__(self, names: dict[UOp, str]):
    self.names = names

  def __call__(self, u: UOp) -> str:
    if u.op == "const":  # a number that is cast to an index
      return f"idx({u.dtype.short}({number(u.arg, u.dtype)}))"
    return self.names[u] if u in self.names else f"%{rname(u)}"

  def operand(self, s: UOp, dtype: DType | None) -> str:
    if s in self.names:
      return self.names[s]
    if s.op == "const" and s.dtype is not dtypes.index:
      spelled = number(s.arg, s.dtype)
      return spelled if s.dtype is dtype or s.dtype is dtypes.bool else f"{s.dtype.short}({spelled})"
    bare = s.op in ("const", "cast")  # an index that would read as a value
    return f"idx({expr(s, self)})" if bare else expr(s, self)

  def operands(self, u: UOp) -> str:
    known = [None if s.op == "const" else s.dtype for s in u.src]
    return ", ".join(self.operand(s, implied_dtype(u.op, n, u.dtype, known)) for n, s in enumerate(u.src))

  def at(self, index: tuple[UOp, ...]) -> str:
    return f"[{', '.join(expr(i, self) for i in index)}]"

  def guard(self, gate: UOp) -> str:
    return "" if gate is TRUE else f" if {self.operand(gate, dtypes.bool)}"


def block(head: str, rows: list[tuple[str, str]]) -> str:
  """head { rows }, each a statement and its type, in two columns."""
  width = min(WIDTH, max((len(s) for s, kind in rows if kind), default=0))
  return "\n".join([head + " {", *("  " + (f"{s:{width}} : {kind}" if kind else s) for s, kind in rows), "}"])


def header(stage: str, name: str, inputs: list[str]) -> str:
  """On one line if it fits, else one input a line."""
  line = f"{stage} {name}({', '.join(inputs)})"
  return line if len(line) <= 100 else f"{stage} {name}(\n  " + ",\n  ".join(inputs) + ")"


# ---------------------------------------------------------------- graph

# How the argument of an operation is written: an attribute, by name.
# fmt: off
ATTRIBUTES = {"reshape": "shape", "expand": "shape", "permute": "axes", "flip": "axes", "pad": "widths",
              "shrink": "spans", "reduce": "axes", "scan": "axis", "gather": "axis", "scatter": "axis", "cat": "axis",
              "copy": "device", "shard": "place", "call": "function", "tag": "mark"}
# fmt: on
GIVEN = "given"  # a tag whose gradient is (mini/gradient_rules.py)
KINDS = ("reduce", "scan", "scatter")  # these have a kind in front of it, written after the name: reduce.add


_marked: dict[int, ref[UOp]] = {}  # tags that were printed, by their numbers, while somebody holds them


def mark(u: UOp) -> Any:
  """What text says of a tag: its number, by which this process finds it again, and whether its gradient is given by a
  function, which is not in the text."""
  if u.arg is not None:
    _marked[u.arg] = ref(u, partial(_marked.pop, u.arg))
  return (u.arg, GIVEN) if GIVEN in u.memo else u.arg


def tag_of(x: UOp, number: int) -> UOp:
  """The tag of x that was printed with this number; a new one where there is none in this process."""
  known = _marked.get(number)
  u = None if known is None else known()
  return u if u is not None and u.src == (x,) else uop("tag", x.dtype, (x,), number)


def attribute(u: UOp) -> str:
  if u.op not in ATTRIBUTES:
    return ""
  value = (
    u.arg[1] if u.op in KINDS else u.arg[0].name if u.op == "call" else mark(u) if u.op == "tag" else u.arg
  )
  if value is None:
    return ""
  return f" {{{ATTRIBUTES[u.op]}={_nested(value)}}}"


def _nested(v: Any) -> str:
  return dims(map(_nested, v)) if isinstance(v, tuple) else f'"{v}"' if isinstance(v, str) else str(v)


def input_names(graph: UOp) -> dict[UOp, str]:
  """The buffers of a graph: by the name they have, or, for memory of this process, by number."""
  buffers = [u for u in toposort(*graph.src, *(b for _, b in graph.arg.into)) if u.op == "buffer"]
  named = {u: u.arg[0] for u in buffers if isinstance(u.arg[0], str) and IDENTIFIER.fullmatch(u.arg[0])}
  fresh = (f"b{n}" for n in range(2 * len(buffers)) if f"b{n}" not in named.values())
  return {u: f"%{named[u] if u in named else next(fresh)}" for u in buffers}


def graph_text(graph: UOp, notes: Notes = MappingProxyType({})) -> str:
  names = input_names(graph)
  inputs = [f"{name}: {type_text(u)}{on(''.join(u.arg[2:]))}" for u, name in names.items()]
  show = Names(names)
  rows: list[tuple[str, str]] = []
  for n, u in enumerate(u for u in toposort(*graph.src) if u.op not in ("const", "buffer")):
    operands = show.operands(u)
    names[u] = f"%{n}"
    name = f"{u.op}.{u.arg[0]}" if u.op in KINDS else u.op
    rows.append((f"{names[u]} = {name}{' ' if operands else ''}{operands}{attribute(u)}", type_text(u)))
    rows += [(f"# {note}", "") for note in notes.get(u, ())]
  into = {n: f" into {names[b]}" for n, b in graph.arg.into}
  returned = [show.operand(u, None) + into.get(n, "") for n, u in enumerate(graph.src)]
  rows.append((f"return {', '.join(returned)}", ""))
  return block(header("graph", graph.arg.name, inputs), rows)


# ---------------------------------------------------------------- kernel


def value_names(kernel: UOp) -> dict[UOp, str]:
  """{value or param: its name}: values numbered in the order of the text."""
  names, count = {}, 0
  for u in toposort(kernel):
    if u.op == "param":
      names[u] = f"%{u.arg[0]}"
    elif not is_inline(u) and u.op not in ("store", "kernel"):
      names[u] = f"%{count}"
      count += 1
  return names


def _kernel_header(stage: str, kernel: UOp) -> str:
  found = directions(kernel).items()
  return header(
    stage, kernel.arg.what, [f"%{p.arg[0]}: {d} {p.dtype.short}{dims(p.arg[1])}" for p, d in found]
  )


def range_text(r: UOp, show: Names) -> str:
  return (
    f"%{rname(r)} = range {rsize(r)}" + ("" if rkind(r) == "loop" else f" {rkind(r)}") + limits_text(r, show)
  )


def limits_text(r: UOp, show: Names) -> str:
  return f" from {expr(r.src[0], show)} to {expr(r.src[1], show)}" if r.src else ""


def store_text(u: UOp, show: Names) -> str:
  target, index, gate = access(u)
  how, value = f".{u.arg}" if u.arg else "", show.operand(u.src[1], target.dtype)
  return f"store{how} {show(target)}{show.at(index)}, {value}{show.guard(gate)}"


def end_text(kernel: UOp, show: Names) -> str:
  """The last line: the ranges, and where what is stored is wanted."""
  return f"end over {over(closed(kernel))}{show.guard(reduce(both, wanted(kernel), TRUE))}"


def value_text(u: UOp, show: Names) -> str:
  """The right side of a value's line."""
  if u.op == "load":
    memory, index, gate = access(u)
    return f"load {show(memory)}{show.at(index)}{show.guard(gate)}"
  if u.op == "reduce":
    return f"reduce.{u.arg.what} {show.operand(u.src[0], u.dtype)} over {over(closed(u))}{by(u)}"
  if u.op == "scan":
    return f"scan.{u.arg} {show.operand(u.src[0], u.dtype)} along {expr(u.src[1], show)}"
  if u.op == "stage":
    value, at = show.operand(u.src[0], u.dtype), show.at(stage_index(u))
    return f"stage {value} at {at} over {over(closed(u))} {u.arg.what}"
  return f"{u.op} {show.operands(u)}"


def kernel_text(kernel: UOp, names: dict[UOp, str] | None = None) -> str:
  show = Names(value_names(kernel) if names is None else names)
  rows = [(range_text(r, show), "") for r in all_ranges(kernel) if not any(map(carries_value, r.src))]
  for u in toposort(kernel):
    if u.op == "range" and any(map(carries_value, u.src)):  # after the data in its limits
      rows.append((range_text(u, show), ""))
    elif u.op == "store":
      rows.append((store_text(u, show), ""))
    elif u.op == "kernel":
      rows.append((end_text(u, show), ""))
    elif u in show.names and u.op != "param":
      kind = u.dtype.short + (dims(u.arg.shape) if u.op == "stage" else "")
      rows.append((f"{show(u)} = {value_text(u, show)}", kind))
  return block(_kernel_header("kernel", kernel), rows)


# ---------------------------------------------------------------- schedule


def schedule_text(program: UOp, why: Notes = MappingProxyType({})) -> str:
  plan = program.arg
  arguments = [m for m in plan.memory if isinstance(m.where, str)]
  rows = [
    (f"%{m.name} = arena {m.where}{on(m.device)}", m.dtype.short + dims(m.shape))
    for m in plan.memory
    if m not in arguments
  ]
  printed: set[int] = set()
  told: set[str] = set()
  for run in plan.runs:
    if isinstance(run, Copy):
      rows.append((f"copy %{run.source} -> %{run.target}", ""))
      continue
    kernel = program.src[run.kernel]
    if run.kernel not in printed:
      rows += [(line, "") for line in kernel_text(kernel).split("\n")]
      printed.add(run.kernel)
    filled = [n for n, d in zip(run.names, directions(kernel).values()) if d != "in" and n not in told]
    rows += [(f"# {n}: {reason}", "") for n in filled for reason in why.get(n, ())]
    told.update(filled)
    starts = run.starts or [None] * len(run.names)
    touched = [f"%{n}" if start is None else f"%{n} + {start}" for n, start in zip(run.names, starts)]
    rows.append((f"run {kernel.arg.what}({', '.join(touched)})", ""))
  if plan.returned != plan._replace(results=()).returned:
    rows.append((f"return {', '.join('%' + n for n in plan.returned)}", ""))
  head = [f"%{m.name}: {m.where} {m.dtype.short}{dims(m.shape)}{on(m.device)}" for m in arguments]
  return block(header("schedule", plan.name, head), rows)


# ---------------------------------------------------------------- uops


def lane_text(u: UOp) -> str:
  """The type of a value in the order of the loops: with its threads and lanes, as in f32<t:32l, ii:6u, ji:16v>."""
  found = ", ".join(f"{rname(r)}:{rsize(r)}{rkind(r)[0]}" for r in local_ranges(u) + lanes(u))
  return u.dtype.short + (f"<{found}>" if found else "")


def line_text(line: Line, show: Names) -> tuple[str, str]:
  u, op = line.node, line.op
  if op == "loop":
    kind = "" if rkind(u) == "loop" else f" {rkind(u)}"
    return f"%{rname(u)} = loop {rsize(u)}{kind}{limits_text(u, show)}", ""
  if op == "end":
    return f"end %{rname(u)}", ""
  if op == "alloc":
    return f"{show(u)} = alloc {u.arg.what}", lane_text(u) + dims(u.arg.shape)
  if op == "acc":
    return f"{show(u)}.acc = acc.{u.arg if u.op == 'scan' else u.arg.what}", lane_text(u.src[0])
  if op == "store" and u.op == "store":
    return store_text(u, show), ""
  value = show.operand(u.src[0], u.dtype) if u.src else ""
  if op == "accum" and u.op == "scan":
    return f"{show(u)} = accum.{u.arg} {show(u)}.acc, {value} along {expr(u.src[1], show)}", lane_text(u)
  if op == "accum":
    return f"accum.{u.arg.what} {show(u)}.acc, {value}", ""
  if op == "fold":
    looped = any(rkind(r) in ("loop", "par") for r in closed(u))
    source = f"{show(u)}.acc" if looped else value
    return f"{show(u)} = fold.{u.arg.what} {source} over {over(closed(u))}{by(u)}", lane_text(u)
  if op == "store":
    return f"store {show(u)}{show.at(stage_index(u))}, {value} over {over(closed(u))}", ""
  return f"{show(u)} = {value_text(u, show)}", lane_text(u)


def uops_text(program: UOp) -> str:
  kernel = program.src[0]
  show = Names(value_names(kernel))
  rows = [(range_text(r, show), "") for r in all_ranges(kernel) if not is_loop(r)]
  depth = 0
  for line in linearize(kernel):
    depth -= line.op == "end"
    statement, kind = line_text(line, show)
    rows.append(("  " * depth + statement, kind))
    depth += line.op == "loop"
  rows.append((end_text(kernel, show), ""))
  return block(_kernel_header("uops", kernel), rows)


# ---------------------------------------------------------------- source

SOURCE_END = "} end source"


def source_text(program: UOp) -> str:
  name, language, source = program.arg
  if any(line == SOURCE_END for line in source.split("\n")):
    raise ValueError(f"source {name} has a line {SOURCE_END!r}")
  return f'source {name} "{language}" {{\n{source}\n{SOURCE_END}'


PRINTERS: dict[str, Callable[[UOp], str]] = {
  "graph": graph_text,
  "schedule": schedule_text,
  "kernel": kernel_text,
  "uops": uops_text,
  "source": source_text,
}
