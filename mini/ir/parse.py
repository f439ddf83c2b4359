"""Text -> programs: the inverse of text.py. One grammar for every stage.

  file       = { size | program }
  size       = %NAME = var "NAME" LOW..HIGH      a symbolic size, bound when the file is read: HIGH unless told otherwise
  program    = graph NAME(inputs) { lines }  |  kernel ...  |  uops ...  |  source NAME "LANGUAGE" { ... } end source
  line       = %NAME = OP operands [{ATTRIBUTE=VALUE}] : TYPE  |  store ...  |  return ...  |  end ...
  operand    = %NAME  |  NUMBER  |  TYPE(NUMBER)  |  an index expression or condition, infix
  # a comment goes to the end of its line

A size may stand wherever an integer does. What is read is verified, and its sizes and memory are capped, so that a
program from a file can neither reach outside its buffers nor ask for all memory. Whatever is wrong is a TextError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, TypeVar

from mini.ir.graph import full, shape
from mini.ir.kernel import Index, all_ranges, kernel, reduce_over, scan_over, stage_at, store
from mini.ir.ops import OPS, is_elementwise
from mini.ir.text import (
  ATTRIBUTES,
  IDENTIFIER,
  KINDS,
  SOURCE_END,
  graph_program,
  implied_dtype,
  lane_text,
  source_program,
  type_text,  # fmt: skip
  uops_program,
)
from mini.ir.uop import (
  TRUE,
  UOp,
  add,
  both,
  bounds,
  const,
  div,
  least,
  less,
  mod,
  mul,
  range_,
  rsize,
  toposort,
  uop,
)
from mini.ir.verify import VerifyError, check_graph_node, check_kernel_node, nbytes, verify
from mini.types import BY_SHORT, DType, MiniError, dtypes

MAX_ELEMENTS = 1 << 31  # of one value
MAX_BYTES = 16 << 30  # of one program
MAX_STEPS = 1 << 44  # iterations around one value
MAX_DEPTH = 32  # brackets within brackets
MAX_TERMS = 200  # operators of one index expression or condition
MAX_INT = 1 << 62

TOKEN = re.compile(
  r"""[ \t\r]+ | \#[^\n]* | (?P<token> \n | %[A-Za-z0-9_][\w.]* | "[^"\n]*" | \d+(?:\.(?!\.)\d*)?(?:e[+-]?\d+)?
    | [A-Za-z_][\w.]* | // | && | >= | \.\. | [][(){}<>:,=+*%-] )""",
  re.ASCII | re.VERBOSE,
)
T = TypeVar("T")


class TextError(MiniError):
  """Text that is no program: where, the line, a caret and the reason."""


class Literal(NamedTuple):
  """A number whose type is not known yet."""

  spelled: str
  token: int


class Tokens:
  """The text as tokens, and a position in it."""

  def __init__(self, text: str, where: str):
    self.text, self.where = text, where
    self.tokens: list[str] = []
    self.starts: list[int] = []
    self.at = 0
    position = 0
    while position < len(text):
      m = TOKEN.match(text, position)
      if m is None:
        self._fail_at(position, f"unexpected character {text[position]!r}")
      assert m is not None
      if m.group("token"):
        self.tokens.append(m.group("token"))
        self.starts.append(m.start("token"))
      position = m.end()
      if self.tokens[-3:-2] == ["source"] or self.tokens[-4:-3] == ["source"]:
        position = self._skip_source(position)
    self.tokens.append("")
    self.starts.append(len(text))

  def _skip_source(self, position: int) -> int:
    """After  source NAME "LANGUAGE" {  everything up to its end is one token."""
    if self.tokens[-1] != "{" or not self.tokens[-2].startswith('"'):
      return position
    end = self.text.find("\n" + SOURCE_END, position)
    if end < 0:
      self._fail_at(position, f"this source has no line {SOURCE_END!r}")
    self.tokens.append(self.text[position:end].partition("\n")[2])
    self.starts.append(position)
    return end

  def _fail_at(self, position: int, reason: str) -> None:
    line = self.text.count("\n", 0, position) + 1
    start = self.text.rfind("\n", 0, position) + 1
    shown = self.text[start:].split("\n", 1)[0][:200]
    caret = "".join("\t" if c == "\t" else " " for c in self.text[start:position])
    raise TextError(f"{self.where}:{line}:{position - start + 1}: {reason}\n  {shown}\n  {caret}^")

  def fail(self, reason: str, token: int | None = None) -> Any:
    self._fail_at(self.starts[self.at if token is None else token], reason)

  @property
  def next(self) -> str:
    return self.tokens[self.at]

  def take(self, want: str | None = None) -> str:
    got = self.next
    if want is not None and got != want:
      self.fail(f"expected {want}, found {self.shown()}")
    if not got and want is None:
      self.fail("the text ends here")
    self.at += 1
    return got

  def shown(self) -> str:
    return {"": "the end of the text", "\n": "the end of the line"}.get(self.next, self.next[:40])

  def accept(self, want: str) -> bool:
    if self.next == want:
      self.at += 1
      return True
    return False

  def name(self, what: str) -> str:
    """%NAME, without its sign."""
    if not self.next.startswith("%") or len(self.next) < 2:
      self.fail(f"expected {what}, such as %x, found {self.shown()}")
    return self.take()[1:]

  def word(self, what: str, known: Any = None) -> str:
    if not IDENTIFIER.fullmatch(self.next) or (known is not None and self.next not in known):
      names = f" ({', '.join(known)})" if known is not None and len(known) < 20 else ""
      self.fail(f"expected {what}{names}, found {self.shown()}")
    return self.take()

  def newline(self) -> None:
    if self.next not in ("\n", "", "}"):
      self.fail(f"expected the end of the line, found {self.shown()}")
    self.blank()

  def blank(self) -> None:
    while self.next == "\n":
      self.at += 1

  def list(self, item: Callable[[], T], opening: str, closing: str) -> list[T]:
    """opening item, item ... closing, over as many lines as it likes."""
    self.take(opening)
    out: list[T] = []
    self.blank()
    while not self.accept(closing):
      if out:
        self.take(",")
        self.blank()
      out.append(item())
      self.blank()
    return out


class Reader(Tokens):
  """What all stages have in common: sizes, types, numbers, index expressions, operands."""

  def __init__(self, text: str, where: str, sizes: dict[str, int]):
    super().__init__(text, where)
    self.bound = sizes  # by the caller
    self.sizes: dict[str, int] = {}  # the variables of the file
    self.env: dict[str, UOp] = {}  # the names of the program that is being read
    self.lines: dict[UOp, int] = {}  # the token at which a node's line begins
    self.depth = self.terms = 0

  # -------------------------------------------------------------- sizes and types

  def is_variable(self) -> bool:
    return self.tokens[self.at + 1 : self.at + 3] == ["=", "var"]

  def variable(self) -> None:
    """%n = var "n" 1..1024"""
    at = self.at
    name = self.name("a size")
    self.take("=")
    self.take("var")
    if self.take() != f'"{name}"':
      self.fail(f'expected "{name}"', self.at - 1)
    low = self.integer()
    self.take("..")
    high = self.integer()
    value = self.bound.get(name, high)
    if name in self.sizes:
      self.fail(f"%{name} is defined twice", at)
    if not low <= value <= high:
      self.fail(f"{name}={value} is not in {low}..{high}", at)
    self.sizes[name] = value

  def integer(self, least_: int = -MAX_INT) -> int:
    """An integer, a size, or a product of them."""
    at, value = self.at, self._factor()
    while self.accept("*"):
      value *= self._factor()
    if not max(least_, -MAX_INT) <= value <= MAX_INT:
      self.fail(f"expected at least {least_}" if value < least_ else "this number is too large", at)
    return value

  def _factor(self) -> int:
    if self.accept("-"):
      return -self._factor() if self.tokens[self.at - 2] != "-" else self.fail("expected a number")
    if self.next[1:] in self.sizes and self.next[0] == "%":
      return self.sizes[self.take()[1:]]
    if not self.next.isdigit() or len(self.next) > 20:
      self.fail(f"expected an integer, found {self.shown()}")
    return int(self.take())

  def dims(self) -> tuple[int, ...]:
    at = self.at
    s = tuple(self.list(lambda: self.integer(0), "[", "]"))
    if prod(s) > MAX_ELEMENTS or len(s) > 32:
      self.fail(f"too many elements or axes: at most {MAX_ELEMENTS} in 32 axes", at)
    return s

  def dtype(self) -> DType:
    return BY_SHORT[self.word("a type", [d.short for d in dtypes.all])]

  def literal(self, l: Literal, dtype: DType | None) -> UOp:
    if dtype is None:
      self.fail(f"the type of {l.spelled} is not told by its line; write f32({l.spelled})", l.token)
    assert dtype is not None
    s = l.spelled
    if dtype.kind == "b" and s in ("true", "false"):
      return const(s == "true", dtype)
    if dtype.kind == "f" and s not in ("true", "false"):
      return const(float(s), dtype)
    digits = s.removeprefix("-").isdigit() and len(s) < 22
    if dtype.kind in "iu" and digits and const(int(s), dtype).arg == int(s):
      return const(int(s), dtype)
    return self.fail(f"{s[:40]} is no {dtype.short}", l.token)

  def number(self) -> Literal:
    at = self.at
    sign = "-" if self.accept("-") else ""
    if not (self.next[:1].isdigit() or self.next in ("inf", "nan", "true", "false")):
      self.fail(f"expected a number, found {self.shown()}")
    return Literal(sign + self.take(), at)

  # -------------------------------------------------------------- index expressions and conditions

  def _limited(self, e: UOp) -> UOp:
    self.terms += 1
    lo, hi = bounds(e) if e.dtype is dtypes.index else (0, 0)
    if self.terms > MAX_TERMS or lo < -(MAX_INT**2) or hi > MAX_INT**2:
      self.fail("this expression is too large")
    return e

  def atom(self) -> UOp:
    if self.accept("-"):
      return mul(self.atom(), -1) if self.tokens[self.at - 2] != "-" else self.fail("expected an index")
    if self.depth > MAX_DEPTH:
      self.fail("brackets are nested too deeply")
    self.depth += 1
    e = self._atom()
    self.depth -= 1
    return e

  def _atom(self) -> UOp:
    if self.accept("("):
      e = self.sum()
      self.take(")")
      return e
    if self.next == "idx" and self.tokens[self.at + 2] in BY_SHORT:
      return self.number_as_index()
    if self.accept("min") or self.accept("idx"):
      smallest = self.tokens[self.at - 1] == "min"
      self.take("(")
      e = self.sum()
      if smallest:
        self.take(",")
        e = least(e, self.integer())
      self.take(")")
      return e
    if self.next[:1] == "%" and self.next[1:] not in self.sizes:
      at, u = self.at, self.defined()
      if u.dtype is dtypes.index:
        return u
      if u.dtype.kind not in "biu" or u.op in ("param", "stage"):
        self.fail(f"an index is an integer, not {u.dtype.short}", at)
      return uop("cast", dtypes.index, (u,))
    return const(self._factor())

  def number_as_index(self) -> UOp:
    """idx(i32(3)): a number of the program that is cast to an index, other than the index 3."""
    self.take("idx")
    self.take("(")
    at, u = self.at, self.operand()
    self.take(")")
    if isinstance(u, Literal) or u.dtype.kind not in "biu":
      self.fail("an index is an integer", at)
    assert isinstance(u, UOp)
    return uop("cast", dtypes.index, (u,))

  def term(self) -> UOp:
    e = self.atom()
    while self.next in ("*", "//", "%"):
      op = self.take()
      k = self._factor()
      if op != "*" and k <= 0:
        self.fail("a divisor is at least 1", self.at - 1)
      e = self._limited({"*": mul, "//": div, "%": mod}[op](e, k))
    return e

  def sum(self) -> UOp:
    e = self.term()
    while self.next in ("+", "-"):
      sign = 1 if self.take() == "+" else -1
      e = self._limited(add(e, mul(self.term(), sign)))
    return e

  def condition(self, first: UOp | None = None) -> UOp:
    """a < 3 && b >= 1, after its first sum if that was read already."""
    g = TRUE
    while True:
      a = self.sum() if first is None else first
      first = None
      if self.next not in ("<", ">="):
        self.fail(f"expected < or >=, found {self.shown()}")
      below = self.take() == "<"
      c = self.integer()
      g = self._limited(both(g, less(a, c) if below else less(mul(a, -1), 1 - c)))
      if not self.accept("&&"):
        return g

  def expression(self) -> UOp:
    """An index expression or a condition."""
    self.terms = 0
    e = self.sum()
    return self.condition(e) if self.next in ("<", ">=") else e

  def index(self) -> Index:
    self.terms = 0
    return tuple(self.list(self.sum, "[", "]"))

  def guard(self) -> UOp:
    self.terms = 0
    if not self.accept("if"):
      return TRUE
    if self.next in ("true", "false"):
      return const(self.take() == "true", dtypes.bool)
    return self.condition()

  # -------------------------------------------------------------- values

  def defined(self) -> UOp:
    at = self.at
    name = self.name("a value")
    u = self.env.get(name)
    if u is None:
      self.fail(f"%{name} is not defined above", at)
    assert u is not None
    return u

  def define(self, name: str, u: UOp, at: int) -> None:
    if name in self.env or name in self.sizes:
      self.fail(f"%{name} is defined twice", at)
    self.env[name] = u

  def operand(self) -> UOp | Literal:
    t, after = self.next, self.tokens[self.at + 1 : self.at + 2]
    known = self.env.get(t[1:]) if t[:1] == "%" else None
    if known is not None and known.dtype is not dtypes.index and after not in INFIX:
      if known.op in ("param", "stage"):
        self.fail(f"{t} is memory: load from it")
      return self.defined()
    if t in BY_SHORT and after == ["("] and t != "idx":
      dtype = self.dtype()
      self.take("(")
      u = self.literal(self.number(), dtype)
      self.take(")")
      return u
    minus_name = t == "-" and after[0][:1] in ("%", "(", "m")
    if t[:1] == "%" or t in ("(", "min", "idx") or minus_name:
      return self.expression()
    return self.number()

  def value(self, dtype: DType | None) -> UOp:
    """An operand of which the type is known."""
    x = self.operand()
    return self.literal(x, dtype) if isinstance(x, Literal) else x

  def operands(self) -> list[UOp | Literal]:
    out: list[UOp | Literal] = []
    while self.next not in (":", "{", "\n", ""):
      if out:
        self.take(",")
      out.append(self.operand())
    return out

  def resolve(self, op: str, got: list[UOp | Literal], dtype: DType) -> tuple[UOp, ...]:
    known = [None if isinstance(x, Literal) or x.op == "const" else x.dtype for x in got]
    implied = [implied_dtype(op, n, dtype, known) for n in range(len(got))]
    return tuple(self.literal(x, d) if isinstance(x, Literal) else x for x, d in zip(got, implied))

  def head(self, item: Callable[[], None]) -> str:
    """STAGE NAME(item, ...) {"""
    self.env, self.lines = {}, {}
    self.take()
    name = self.word("a name")
    self.list(item, "(", ")")
    self.take("{")
    self.newline()
    return name

  def finish(self, program: UOp, start: int) -> UOp:
    """The program that was read, if it is right and within the limits."""
    try:
      verify(program)
    except VerifyError as e:
      self.fail(str(e), self.lines.get(e.node, start))
    if nbytes(program) > MAX_BYTES:
      self.fail(f"this program takes {nbytes(program)} bytes; at most {MAX_BYTES}", start)
    return program

  def checked(self, u: UOp, check: Callable[[UOp], None], line: int, spot: int) -> UOp:
    try:
      check(u)
    except VerifyError as e:
      self.fail(str(e), spot)
    self.lines.setdefault(u, line)
    return u

  # -------------------------------------------------------------- graph

  def graph(self) -> UOp:
    start = self.at
    name = self.head(self.graph_input)
    while not self.accept("return"):
      if self.next == "}":
        self.fail("a graph ends with return")
      self.graph_line()
      self.newline()
    outputs = [self.value(None)]
    while self.accept(","):
      outputs.append(self.value(None))
    self.newline()
    self.take("}")
    return self.finish(graph_program(name, tuple(outputs)), start)

  def graph_input(self) -> None:
    at = self.at
    name = self.name("an input")
    if not IDENTIFIER.fullmatch(name):
      self.fail(f"an input has a name, not a number: %{name}", at)
    self.take(":")
    dtype = self.dtype()
    self.define(name, uop("buffer", dtype, (), (name, self.dims() if self.next == "[" else ())), at)

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
    else:
      u = uop(op, dtype, self.resolve(op, got, dtype), (kind, arg) if kind else arg)
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
    if name is None:
      return None
    self.take("{")
    self.take(name)
    self.take("=")
    value = ATTRIBUTE_READERS[name](self)
    self.take("}")
    return value

  def integers(self) -> tuple[int, ...]:
    return tuple(self.list(lambda: self.integer(0), "[", "]"))

  def pairs(self) -> tuple[tuple[int, int], ...]:
    at = self.at
    got = tuple(self.list(self.integers, "[", "]"))
    if any(len(p) != 2 for p in got):
      self.fail("expected pairs", at)
    return got  # type: ignore[return-value]

  def string(self) -> str:
    if not self.next.startswith('"'):
      self.fail(f"expected a string, found {self.shown()}")
    return self.take()[1:-1]

  # -------------------------------------------------------------- kernel

  def param(self) -> None:
    at = self.at
    name = self.name("a parameter")
    self.take(":")
    self.word("a direction", ("in", "out", "inout"))
    dtype = self.dtype()
    self.define(name, uop("param", dtype, (), (name, self.dims() if self.next == "[" else ())), at)

  def memory(self) -> UOp:
    at, m = self.at, self.defined()
    if m.op not in ("param", "stage"):
      self.fail(f"{self.tokens[at]} is no memory", at)
    return m

  def range_list(self) -> tuple[UOp, ...]:
    def one() -> UOp:
      at, r = self.at, self.defined()
      return r if r.op == "range" else self.fail(f"{self.tokens[at]} is no range", at)

    return tuple(self.list(one, "(", ")"))

  def over(self) -> tuple[UOp, ...]:
    self.take("over")
    return self.range_list()

  def along(self) -> UOp:
    self.take("along")
    at, r = self.at, self.defined()
    return r if r.op == "range" else self.fail(f"{self.tokens[at]} is no range", at)

  def kernel(self) -> UOp:
    start = self.at
    name = self.head(self.param)
    stores: list[UOp] = []
    while not self.accept("end"):
      if self.next == "}":
        self.fail("a kernel ends with: end over (...)")
      if self.next.partition(".")[0] == "store":
        stores.append(self.store_line())
      else:
        self.kernel_line()
      self.newline()
    ranges = self.over()
    self.newline()
    self.take("}")
    return self.finish(self.limited(kernel(name, tuple(stores), ranges), start), start)

  def limited(self, k: UOp, start: int) -> UOp:
    for u in toposort(k):
      if prod(map(rsize, u.free)) > MAX_STEPS:
        self.fail(f"more than {MAX_STEPS} iterations", self.lines.get(u, start))
    if prod(map(rsize, all_ranges(k))) > MAX_STEPS:
      self.fail(f"more than {MAX_STEPS} iterations", start)
    return k

  def store_line(self) -> UOp:
    at = self.at
    how = self.take().partition(".")[2] or None
    target = self.memory()
    index = self.index()
    self.take(",")
    value = self.value(target.dtype)
    return self.checked(store(target, index, value, self.guard(), how), check_kernel_node, at, at)

  def kernel_line(self) -> None:
    if self.is_variable():
      self.variable()
      return
    at = self.at
    target = self.name("a value, or store or end")
    self.take("=")
    if self.next == "range":
      self.define(target, self.range(target), at)
      return
    spot = self.at
    u = self.kernel_value()
    self.checked(u, check_kernel_node, at, spot)
    self.define(target, u, at)

  def range(self, name: str) -> UOp:
    self.take()
    if not IDENTIFIER.fullmatch(name):
      self.fail(f"a range has a name, not a number: %{name}", self.at - 3)
    size = self.integer(1)
    plain = self.next in ("\n", "", "}")
    return range_(name, size, "loop" if plain else self.word("a kind", RANGE_KINDS))

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
      return reduce_over(kind, self.typed_source(x), rs)
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
    ranges = self.over()
    self.newline()
    self.take("}")
    k = self.finish(self.limited(kernel(name, tuple(reader.stores), ranges), start), start)
    reader.check_lanes()
    return uops_program(k)

  # -------------------------------------------------------------- source, file

  def source(self) -> UOp:
    self.take()
    name = self.word("a name")
    language = self.string()
    self.take("{")
    body = self.take()
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


class UopsReader:
  """The lines of uops: open loops, accumulators, and memory that is written after it is named."""

  def __init__(self, reader: Reader):
    self.r = reader
    self.open: list[str] = []
    self.accumulators: dict[str, str] = {}  # name.acc -> kind
    self.accumulated: dict[str, tuple[UOp | Literal, int]] = {}
    self.memory: dict[str, tuple[str, DType, tuple[int, ...]]] = {}  # of stages: space, type, shape
    self.stores: list[UOp] = []
    self.lanes: list[tuple[UOp, str, int]] = []  # declared types, to be compared at the end
    self.declared: list[tuple[str, str, int]] = []  # those of acc and alloc, by name

  def end(self) -> None:
    name = self.r.name("a loop")
    if not self.open or self.open.pop() != name:
      self.r.fail(f"%{name} is not the innermost open loop", self.r.at - 1)

  def closed(self) -> None:
    if self.open:
      self.r.fail(f"the loop %{self.open[-1]} has no end")
    if left := set(self.accumulators) - set(self.accumulated):
      self.r.fail(f"%{min(left)} is never used")
    if self.memory:
      self.r.fail(f"%{min(self.memory)} is never written")

  def line(self) -> None:
    r = self.r
    at, op = r.at, r.next.partition(".")[0]
    if op == "store" and r.tokens[at + 1][1:] in self.memory:
      self.stage_store()
    elif op == "store":
      self.stores.append(r.store_line())
    elif op == "accum":
      self.accum(None, r.take().partition(".")[2], at)
    else:
      target = r.name("a value, store, accum or end")
      r.take("=")
      self.definition(target, at)

  def definition(self, target: str, at: int) -> None:
    r = self.r
    op, _, kind = r.next.partition(".")
    if op == "range":
      r.define(target, r.range(target), at)
    elif op == "loop":
      r.take()
      size = r.integer(1)
      r.define(target, range_(target, size, "par" if r.accept("par") else "loop"), at)
      self.open.append(target)
    elif op == "alloc":
      r.take()
      space, spot = r.word("a space", SPACES), r.at
      dtype, lanes = self.type()
      if target in self.memory:
        r.fail(f"%{target} is defined twice", at)
      self.memory[target] = space, dtype, r.dims() if r.next == "[" else ()
      self.declared.append((target, lanes, spot))
    elif op == "acc":
      r.take()
      spot = r.at
      _, lanes = self.type()
      if not target.endswith(".acc") or target in self.accumulators:
        r.fail("an accumulator is called after its value: %3.acc, once", at)
      self.accumulators[target] = kind
      self.declared.append((target, lanes, spot))
    elif op == "accum":
      r.take()
      self.accum(target, kind, at)
    else:
      spot = r.at
      r.define(target, self.typed(self.fold(target) if op == "fold" else r.kernel_value, at, spot), at)

  def type(self) -> tuple[DType, str]:
    """: TYPE<LANES>"""
    r = self.r
    dtype = r.type_after()
    return dtype, dtype.short + self.lane_list()

  def lane_list(self) -> str:
    r, found = self.r, []
    if r.next != "<":
      return ""
    r.take("<")
    while not r.accept(">"):
      found.append(r.take())
      if len(found) > 100 or found[-1] == "\n":
        r.fail("expected lanes, such as <i:4u, j:8v>")
    return "<" + "".join(", " if t == "," else t for t in found) + ">"

  def typed(self, make: Callable[[], UOp], at: int, spot: int) -> UOp:
    u = self.r.checked(make(), check_kernel_node, at, spot)
    self.lanes.append((u, u.dtype.short + self.lane_list(), spot))
    return u

  def accum(self, target: str | None, kind: str, at: int) -> None:
    """accum.KIND %x.acc, VALUE; with a target and `along`, a scan."""
    r = self.r
    name, spot = r.name("an accumulator"), r.at - 1
    if self.accumulators.get(name) != kind or name in self.accumulated:
      r.fail(f"%{name} is no accumulator of {kind}, or is used already", spot)
    r.take(",")
    x = r.operand()
    self.accumulated[name] = x, at
    if target is not None:
      along = r.along()
      r.define(target, self.typed(lambda: scan_over(kind, r.typed_source(x), along), at, spot), at)

  def fold(self, target: str) -> Callable[[], UOp]:
    r = self.r

    def make() -> UOp:
      kind, spot = r.take().partition(".")[2], r.at
      acc = f"{target}.acc"
      if r.next == "%" + acc:
        r.take()
        if acc not in self.accumulated:
          r.fail(f"%{acc} holds nothing yet", spot)
        x: UOp | Literal = self.accumulated[acc][0]
        if self.accumulators[acc] != kind:
          r.fail(f"%{acc} accumulates {self.accumulators[acc]}", spot)
      else:
        x = r.operand()
      rs = r.over()
      if not rs:
        r.fail("a fold closes at least one range", spot)
      return reduce_over(kind, r.typed_source(x), rs)

    return make

  def stage_store(self) -> None:
    r = self.r
    at = r.at
    r.take("store")
    name = r.name("memory")
    space, dtype, s = self.memory.pop(name)
    index = r.index()
    r.take(",")
    x = r.operand()
    value = r.literal(x, dtype) if isinstance(x, Literal) else x
    if value.dtype is not dtype:
      r.fail(f"the value is {value.dtype.short}, the memory {dtype.short}", at)
    u = r.checked(stage_at(value, index, r.over(), space, s), check_kernel_node, at, at)
    r.define(name, u, at)

  def check_lanes(self) -> None:
    """The types that the text gives are those that the values have."""
    r = self.r
    for name, lanes, spot in self.declared:
      u = r.env.get(name.removesuffix(".acc"))
      if u is not None:
        self.lanes.append((u.src[0] if name.endswith(".acc") else u, lanes, spot))
    for u, lanes, spot in self.lanes:
      if lanes != lane_text(u):
        r.fail(f"this is {lane_text(u)}, not {lanes}", spot)


RANGE_KINDS = ("loop", "par", "vec", "unroll", "local")
INFIX = [[t] for t in ("+", "-", "*", "//", "%", "<", ">=")]
SPACES = ("stack", "register", "shared", "scratch", "global")
ATTRIBUTE_READERS: dict[str, Callable[[Reader], Any]] = {
  "shape": Reader.dims,
  "axes": Reader.integers,
  "axis": lambda r: r.integer(0),
  "widths": Reader.pairs,
  "spans": Reader.pairs,
  "device": Reader.string,
}
STAGES: dict[str, Callable[[Reader], UOp]] = {
  "graph": Reader.graph,
  "kernel": Reader.kernel,
  "uops": Reader.uops,
  "source": Reader.source,
}


def parse_file(text: str, where: str = "<text>", sizes: dict[str, int] | None = None) -> list[UOp]:
  """The programs in a text, in order. `sizes` binds its symbolic sizes; the others take their upper bounds."""
  return Reader(text, where, sizes or {}).file()


def parse(text: str, where: str = "<text>", sizes: dict[str, int] | None = None) -> UOp:
  """The one program in a text: the inverse of `text`.

  >>> from mini.ir.text import text
  >>> p = parse("graph f(%x: f32[2]) {\\n  %0 = add %x, 1.0 : f32[2]\\n  return %0\\n}")
  >>> parse(text(p)) is p
  True
  """
  reader = Reader(text, where, sizes or {})
  programs = reader.file()
  if len(programs) != 1:
    reader.fail(f"expected one program, found {len(programs)}", 0)
  return programs[0]
