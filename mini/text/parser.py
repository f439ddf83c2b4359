"""Text -> programs: the inverse of printer.py. One grammar for every stage.

  file       = { size | program }
  size       = %NAME = var "NAME" LOW..HIGH      symbolic; bound when the file is read: HIGH unless told otherwise
  program    = graph NAME(inputs) { lines }  |  schedule ...  |  uops ...
             | kernel NAME(params) [recipe("STEP", ...)] { lines }    the steps (codegen/recipe.py) are applied
             | source NAME "LANGUAGE" { ... } end source
  line       = %NAME = OP operands [{ATTRIBUTE=VALUE}] : TYPE  |  store ...  |  end ...  |
               return operand [into %NAME], ...      an output that may take the memory of an input
               in a schedule  %NAME = arena OFFSET [on "DEVICE"] : TYPE  |  kernel ...  |  copy %NAME -> %NAME  |
                              run KERNEL(%NAME [+ ELEMENT], ...)  |  return %NAME, ...
               in a kernel    %NAME = range SIZE [KIND] [from EXPRESSION to EXPRESSION]
  operand    = %NAME  |  NUMBER  |  TYPE(NUMBER)  |  an index expression or condition, infix
  # a comment goes to the end of its line

A size may stand wherever an integer does. What is read is verified, and its sizes and memory are capped, so
that a program from a file can neither reach outside its buffers nor ask for all memory. Whatever is wrong is
a TextError.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from math import prod
from typing import Any

from mini.codegen.matrix import marked
from mini.gradient_rules import with_lost_gradient
from mini.ir.extern import Extern, extern
from mini.ir.graph import buffer, full, shape
from mini.ir.kernel import directions, kernel, reduce_over, scan_over, stage_at, store
from mini.ir.ops import OPS, is_elementwise
from mini.ir.uop import UOp, closed, conjuncts, range_, rsize, toposort, uop
from mini.text.lexer import Literal, TextError
from mini.text.operands import MAX_RANGES, MAX_STEPS, Operands
from mini.text.printer import (
  ATTRIBUTES,
  GIVEN,
  IDENTIFIER,
  KINDS,
  SOURCE_END,
  Copy,
  Memory,
  Plan,
  Run,
  graph_program,
  schedule_program,
  source_program,
  tag_of,
  type_text,
  uops_program,
)
from mini.text.uops_parser import SPACES, UopsReader
from mini.text.verifier import check_graph_node
from mini.types import DType, dtypes

__all__ = ["TextError", "parse", "parse_file"]

DIRECTIONS = ("in", "out", "inout")
RANGE_KINDS = ("loop", "par", "around", "vec", "unroll", "local")


class Reader(Operands):
  """One program after another."""

  def graph(self) -> UOp:
    start = self.at
    name = self.head(self.graph_input)
    while not self.accept("return"):
      if self.next == "}":
        self.fail("a graph ends with return")
      self.graph_line()
      self.newline()
    outputs: list[UOp] = []
    into: dict[int, UOp] = {}
    while not outputs or self.accept(","):
      outputs.append(self.value(None))
      if self.accept("into"):
        into[len(outputs) - 1] = self.defined()
    self.newline()
    self.take("}")
    return self.finish(graph_program(name, tuple(outputs), into), start)

  def graph_input(self) -> None:
    at = self.at
    name = self.name("an input")
    if not IDENTIFIER.fullmatch(name):
      self.fail(f"an input has a name, not a number: %{name}", at)
    self.take(":")
    dtype = self.dtype()
    s = self.dims() if self.next == "[" else ()
    self.define(name, buffer(name, s, dtype, self.device()), at)

  def device(self) -> str:
    """on "CPU:1"; where it is left out, wherever the program runs."""
    return self.string() if self.accept("on") else ""

  def graph_line(self) -> None:
    if self.is_variable():
      self.variable()
      return
    at = self.at
    target = self.name("a value")
    self.take("=")
    spot = self.at
    op, _, kind = self.word("an operation").partition(".")
    if (op not in OPS or op == "buffer") or bool(kind) != (op in KINDS):
      self.fail(f"expected {op}.KIND" if op in KINDS else f"{op} is no operation of a graph", spot)
    got = self.operands()
    arg = self.attribute(op)
    self.take(":")
    declared = self.at
    dtype = self.dtype()
    s = self.dims() if self.next == "[" else ()
    if op == "const":
      u = full(s, self.only_number(got, dtype, spot), dtype)
    elif op == "iota":
      if len(s) != 1 or got:
        self.fail("iota has one axis and no inputs", spot)
      u = uop("iota", dtype, (), s[0])
    elif op == "tag" and arg is not None and len(got) == 1:
      (x,) = self.resolve(op, got, dtype)
      u = with_lost_gradient(tag_of(x, arg[0])) if arg[1:] else tag_of(x, arg[0])
    else:
      u = uop(
        op, dtype, self.resolve(op, got, dtype), (kind, arg) if kind else (arg, s) if op == "call" else arg
      )
      if any(x.dtype is dtypes.index for x in u.src):
        self.fail("a graph knows no index expressions", spot)
    self.checked(u, check_graph_node, at, spot)
    if shape(u) != s:
      self.fail(f"{op} of this is {type_text(u)}", declared)
    self.define(target, u, at)

  def only_number(self, got: list[UOp | Literal], dtype: DType, spot: int) -> Any:
    if len(got) != 1 or not isinstance(got[0], Literal):
      self.fail("const has one number", spot)
    return self.literal(got[0], dtype).arg  # type: ignore[arg-type]

  def attribute(self, op: str) -> Any:
    name = ATTRIBUTES.get(op)
    if name is None or (op == "tag" and self.next != "{"):
      return None
    self.take("{")
    self.take(name)
    self.take("=")
    value = ATTRIBUTE_READERS[name](self)
    self.take("}")
    return value

  def integers(self) -> tuple[int, ...]:
    return tuple(self.listed(lambda: self.integer(0), "[", "]"))

  def pairs(self) -> tuple[tuple[int, int], ...]:
    at = self.at
    got = tuple(self.listed(self.integers, "[", "]"))
    if any(len(p) != 2 for p in got):
      self.fail("expected pairs", at)
    return got  # type: ignore[return-value]

  def devices(self) -> str | tuple[str, ...]:
    return tuple(self.listed(self.string, "[", "]")) if self.next == "[" else self.string()

  def mark(self) -> tuple[Any, ...]:
    """7, or [7, "given"]"""
    if not self.accept("["):
      return (self.integer(0),)
    number = self.integer(0)
    self.take(",")
    self.take(f'"{GIVEN}"')
    self.take("]")
    return number, GIVEN

  def function(self) -> Extern:
    at, name = self.at, self.string()
    return extern(name) or self.fail(f"this process has no function {name}", at)

  def place(self) -> tuple[int, tuple[str, ...]]:
    self.take("[")
    axis = self.integer(0)
    self.take(",")
    names = tuple(self.listed(self.string, "[", "]"))
    self.take("]")
    return axis, names

  # -------------------------------------------------------------- schedule

  def schedule(self) -> UOp:
    start, memory, kernels = self.at, [], []
    runs: list[Run | Copy] = []
    results: list[str] = []
    env: dict[str, Memory] = {}

    def place(name: str, where: str | int, at: int, device: str | None = None) -> None:
      if name in env or name in self.sizes or not IDENTIFIER.fullmatch(name):
        self.fail(f"%{name} is defined twice, or is no name for memory", at)
      dtype = self.dtype()
      s = self.dims() if self.next == "[" else ()
      env[name] = Memory(name, where, dtype, s, self.device() if device is None else device)
      memory.append(env[name])

    def argument() -> None:
      at, name = self.at, self.name("memory")
      self.take(":")
      place(name, self.word("a direction", DIRECTIONS), at)

    name = self.head(argument)
    named: dict[str, int] = {}
    heads: list[list[str]] = []
    while not self.accept("}"):
      at = self.at
      if self.is_variable():
        self.variable()
      elif self.next == "kernel":
        kernels.append(self.kernel())
        heads.append([*self.declared])
        if named.setdefault(kernels[-1].arg.what, len(named)) != len(kernels) - 1:
          self.fail(f"there are two kernels {kernels[-1].arg.what}", at)
      elif self.accept("run"):
        which = named[self.word("a kernel", named)]
        got = self.listed(
          lambda: (self.one_of(env).name, self.integer(0) if self.accept("+") else None), "(", ")"
        )
        names, starts = zip(*got) if got else ((), ())
        head = {name: n for n, name in enumerate(heads[which])}
        if len(names) == len(head):  # in whose order they are given: that of the lines may be another
          places = [head[p.arg[0]] for p in directions(kernels[which])]
          names, starts = (tuple(values[n] for n in places) for values in (names, starts))
        runs.append(Run(which, names, () if set(starts) <= {None} else starts))
      elif self.accept("copy"):
        source = self.one_of(env).name
        self.take("-")
        self.take(">")
        runs.append(Copy(source, self.one_of(env).name))
      elif self.accept("return"):
        results = [self.one_of(env).name]
        while self.accept(","):
          results.append(self.one_of(env).name)
      else:
        target = self.name("memory, or kernel, run, copy or return")
        self.take("=")
        self.take("arena")
        offset, device = self.integer(0), self.device()
        self.take(":")
        place(target, offset, at, device)
      self.newline()
    plan = Plan(name, tuple(memory), tuple(runs))
    if tuple(results) != plan.returned:
      plan = plan._replace(results=tuple(results))
    return self.finish(schedule_program(plan, tuple(kernels)), start)

  def one_of(self, env: dict[str, Memory]) -> Memory:
    at, name = self.at, self.name("memory")
    return env[name] if name in env else self.fail(f"%{name} is not defined above", at)

  # -------------------------------------------------------------- kernel

  def param(self) -> None:
    at = self.at
    name = self.name("a parameter")
    self.take(":")
    self.directions[name] = self.word("a direction", DIRECTIONS), at
    dtype = self.dtype()
    self.define(name, uop("param", dtype, (), (name, self.dims() if self.next == "[" else ())), at)

  def directed(self, stores: Iterable[UOp]) -> None:
    """What is said to be written is, and nothing else."""
    written = {s.src[0].arg[0] for s in stores if s.src[0].op == "param"}
    for name, (direction, at) in self.directions.items():
      if (direction != "in") != (name in written):
        self.fail(f"%{name} is {direction}, and {'' if name in written else 'never '}written", at)

  def memory(self) -> UOp:
    at, m = self.at, self.defined()
    if m.op not in ("param", "stage"):
      self.fail(f"{self.tokens[at]} is no memory", at)
    return m

  def range_list(self) -> tuple[UOp, ...]:
    def one() -> UOp:
      at, r = self.at, self.defined()
      return r if r.op == "range" else self.fail(f"{self.tokens[at]} is no range", at)

    return tuple(self.listed(one, "(", ")"))

  def over(self) -> tuple[UOp, ...]:
    self.take("over")
    return self.range_list()

  def along(self) -> UOp:
    self.take("along")
    at, r = self.at, self.defined()
    return r if r.op == "range" else self.fail(f"{self.tokens[at]} is no range", at)

  def kernel(self) -> UOp:
    start = self.at
    name, steps = self.head(self.param), self.steps
    stores: dict[UOp, None] = {}
    while not self.accept("end"):
      if self.next == "}":
        self.fail("a kernel ends with: end over (...)")
      if self.next.partition(".")[0] == "store":
        stores[self.store_line(stores)] = None
      else:
        self.kernel_line()
      self.newline()
    self.directed(stores)
    ranges, conditions = self.over(), conjuncts(self.guard())
    self.newline()
    self.take("}")
    k = self.finish(self.limited(kernel(name, (*stores, *conditions), ranges), start), start)
    return self.tuned(k, steps, start) if steps else k

  def tuned(self, k: UOp, steps: list[tuple[int, str]], start: int) -> UOp:
    """The kernel with the recipe in its head applied; values are called as they are here."""
    from mini.codegen.recipe import RecipeError, Tuning

    tuning = Tuning(k)
    tuning.named.update({f"%{name}": u for name, u in self.env.items() if u.op not in ("param", "range")})
    for at, step in steps:
      try:
        tuning.step(step)
      except RecipeError as e:
        self.fail(str(e), at)
    return self.finish(self.limited(tuning.kernel, start), start)

  def limited(self, k: UOp, start: int) -> UOp:
    for u in toposort(k):
      if prod(map(rsize, u.free.union(closed(u)))) > MAX_STEPS:
        self.fail(f"more than {MAX_STEPS} iterations", self.lines.get(u, start))
    return k

  def store_line(self, others: Container[UOp]) -> UOp:
    """others: those that stand above."""
    at = self.at
    how = self.take().partition(".")[2] or None
    target = self.memory()
    index = self.index()
    self.take(",")
    value = self.value(target.dtype)
    found = self.value_node(store(target, index, value, self.guard(), how), at, at)
    return found if found not in others else self.fail("the same is stored in the same place twice", at)

  def kernel_line(self) -> None:
    if self.is_variable():
      self.variable()
      return
    at = self.at
    target = self.name("a value, or store or end")
    self.take("=")
    if self.next == "range":
      self.define(target, self.range_line(target), at)
      return
    spot = self.at
    u = self.kernel_value()
    self.value_node(u, at, spot)
    self.define(target, u, at)

  def range_line(self, name: str) -> UOp:
    self.take()
    if not IDENTIFIER.fullmatch(name):
      self.fail(f"a range has a name, not a number: %{name}", self.at - 3)
    size = self.range_size()
    plain = self.next in ("\n", "", "}", "from")
    kind = "loop" if plain else self.word("a kind", RANGE_KINDS)
    return range_(name, size, kind, self.limits())

  def range_size(self) -> int:
    self.ranges += 1
    if self.ranges > MAX_RANGES:  # each value knows all that it depends on
      self.fail(f"a kernel has at most {MAX_RANGES} ranges")
    return self.integer(1)

  def limits(self) -> tuple[UOp, ...]:
    """from EXPRESSION to EXPRESSION, of a loop that does not take all of its values."""
    if not self.accept("from"):
      return ()
    self.terms = 0
    first = self.sum()
    self.take("to")
    return first, self.sum()

  def kernel_value(self) -> UOp:
    spot = self.at
    op, _, kind = self.word("an operation").partition(".")
    if op == "load":
      memory, index = self.memory(), self.index()
      u = uop("load", memory.dtype, (memory, self.guard(), *index))
      return self.typed(u)
    if op == "reduce":
      x = self.operand()
      rs = self.over()
      if not rs:
        self.fail("a reduce closes at least one range", spot)
      return self.by(lambda: reduce_over(kind, self.typed_source(x), rs))
    if op == "scan":
      x = self.operand()
      r = self.along()
      return scan_over(kind, self.typed_source(x), r)
    if op == "stage":
      return self.stage()
    if kind or not is_elementwise(op):
      self.fail(f"{op}{'.' * bool(kind)}{kind} is no operation of a kernel", spot)
    got = self.operands()
    dtype = self.type_after()
    return uop(op, dtype, self.resolve(op, got, dtype))

  def by(self, reduced: Callable[[], UOp]) -> UOp:
    """by "INSTRUCTION" (%RANGE, ...), in front of a reduce's type."""
    if not self.accept("by"):
      return reduced()
    name, ranges = self.string(), self.range_list()
    return marked(reduced(), name, ranges)

  def type_after(self) -> DType:
    """: TYPE, and the lanes that it may have in uops, which the caller compares."""
    self.take(":")
    return self.dtype()

  def typed(self, u: UOp) -> UOp:
    dtype = self.type_after()
    return u if dtype is u.dtype else self.fail(f"this is {u.dtype.short}", self.at - 1)

  def typed_source(self, x: UOp | Literal) -> UOp:
    dtype = self.type_after()
    value = self.literal(x, dtype) if isinstance(x, Literal) else x
    return value if value.dtype is dtype else self.fail(f"its input is {value.dtype.short}", self.at - 1)

  def stage(self) -> UOp:
    x = self.operand()
    self.take("at")
    index, rs = self.index(), self.over()
    space = self.word("a space", SPACES)
    value = self.typed_source(x)
    return stage_at(value, index, rs, space, self.dims() if self.next == "[" else ())

  # -------------------------------------------------------------- uops

  def uops(self) -> UOp:
    """Loops and accumulators become ranges and reduces again; where a line stands follows from the kernel."""
    start = self.at
    name = self.head(self.param)
    reader = UopsReader(self)
    while not self.accept("end") or self.next != "over":
      if self.tokens[self.at - 1] == "end":
        reader.end()
      elif self.next in ("}", ""):
        self.fail("uops end with: end over (...)")
      else:
        reader.line()
      self.newline()
    reader.closed()
    self.directed(reader.stores)
    ranges, conditions = self.over(), conjuncts(self.guard())
    self.newline()
    self.take("}")
    order = {
      u: n for n, u in enumerate(self.env.values())
    }  # a store stands where its loops end: that is not its place
    stores = sorted(reader.stores, key=lambda s: order[s.src[0]])
    k = self.finish(self.limited(kernel(name, (*stores, *conditions), ranges), start), start)
    reader.check_lanes()
    return uops_program(k)

  # -------------------------------------------------------------- source, file

  def source(self) -> UOp:
    self.take()
    name = self.word("a name")
    language = self.string()
    self.take("{")
    body = self.next  # may be empty
    self.at += 1
    self.blank()
    for word in SOURCE_END.split():
      self.take(word)
    return source_program(name, language, body)

  def file(self) -> list[UOp]:
    programs = []
    self.blank()
    while self.next:
      if self.next.startswith("%"):
        self.variable()
        self.newline()
      elif self.next in STAGES:
        programs.append(STAGES[self.next](self))
        if self.next not in ("\n", ""):
          self.fail(f"expected the end of the line, found {self.shown()}")
      else:
        self.fail(f"expected {', '.join(STAGES)} or a size, found {self.shown()}")
      self.blank()
    unknown = [n for n in self.bound if n not in self.sizes]
    if unknown:
      self.fail(f"this file has no size %{unknown[0]}", 0)
    return programs


ATTRIBUTE_READERS: dict[str, Callable[[Reader], Any]] = {
  "shape": Reader.dims,
  "axes": Reader.integers,
  "axis": lambda r: r.integer(0),
  "widths": Reader.pairs,
  "spans": Reader.pairs,
  "device": Reader.devices,
  "place": Reader.place,
  "function": Reader.function,
  "mark": Reader.mark,
}
STAGES: dict[str, Callable[[Reader], UOp]] = {
  "graph": Reader.graph,
  "schedule": Reader.schedule,
  "kernel": Reader.kernel,
  "uops": Reader.uops,
  "source": Reader.source,
}


def parse_file(text: str, where: str = "<text>", sizes: dict[str, int] | None = None) -> list[UOp]:
  """The programs in a text, in order. `sizes` binds its symbolic sizes; the others take their upper bounds."""
  return Reader(text, where, sizes or {}).file()


def parse(text: str, where: str = "<text>", sizes: dict[str, int] | None = None) -> UOp:
  """The one program in a text: the inverse of `text`.

  >>> from mini.text.printer import text
  >>> p = parse("graph f(%x: f32[2]) {\\n  %0 = add %x, 1.0 : f32[2]\\n  return %0\\n}")
  >>> parse(text(p)) is p
  True
  """
  return with_arguments(text, where, sizes)[0]


def with_arguments(
  text: str, where: str = "<text>", sizes: dict[str, int] | None = None
) -> tuple[UOp, list[Memory]]:
  """(the one program in a text, its arguments in the order in which its head lists them)"""
  reader = Reader(text, where, sizes or {})
  programs = reader.file()
  if len(programs) != 1:
    reader.fail(f"expected one program, found {len(programs)}", 0)
  program, directions = programs[0], reader.directions
  if program.op == "schedule":
    return program, [m for m in program.arg.memory if isinstance(m.where, str)]
  way = lambda name: directions[name][0] if name in directions else "in"
  return program, [Memory(n, way(n), u.dtype, u.arg[1]) for n, u in reader.declared.items()]
