"""What all stages of the grammar have in common: sizes, types, numbers, index expressions, operands."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from mini.ir.kernel import Index
from mini.ir.uop import TRUE, UOp, add, both, bounds, const, div, least, less, mod, mul, uop
from mini.text.lexer import Literal, Tokens
from mini.text.printer import Names, implied_dtype
from mini.text.verifier import VerifyError, check_kernel_node, nbytes, verify
from mini.types import BY_SHORT, DType, dtypes

MAX_ELEMENTS = 1 << 40  # of one value, which a view repeats at no cost
MAX_BYTES = 16 << 30  # of one program
MAX_STEPS = 1 << 44  # iterations around one value
MAX_RANGES = 1024  # of one kernel
MAX_DEPTH = 32  # brackets within brackets
MAX_TERMS = 200  # operators of one index expression or condition
MAX_INT = 1 << 62

INFIX = [[t] for t in ("+", "-", "*", "//", "%", "<", ">=")]


class Operands(Tokens):
  """What all stages have in common: sizes, types, numbers, index expressions, operands."""

  def __init__(self, text: str, where: str, sizes: dict[str, int]):
    super().__init__(text, where)
    self.bound = sizes  # by the caller
    self.sizes: dict[str, int] = {}  # the variables of the file
    self.env: dict[str, UOp] = {}  # the names of the program that is being read
    self.lines: dict[UOp, int] = {}  # the token at which a node's line begins
    self.directions: dict[str, tuple[str, int]] = {}  # of a kernel's parameters, and where they stand
    self.declared: dict[
      str, UOp
    ] = {}  # the inputs of a graph or the parameters of a kernel, as its head lists them
    self.steps: list[tuple[int, str]] = []  # the recipe in its head, with the token of each step
    self.depth = self.terms = self.ranges = 0

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
    s = tuple(self.listed(lambda: self.integer(0), "[", "]"))
    if prod(s) > MAX_ELEMENTS or len(s) > 32:
      self.fail(f"too many elements or axes: at most {MAX_ELEMENTS} in 32 axes", at)
    return s

  def dtype(self) -> DType:
    return BY_SHORT[self.word("a type", [d.short for d in dtypes.all])]

  def literal(self, l: Literal, dtype: DType | None) -> UOp:
    if dtype is None and l.spelled in ("true", "false"):
      dtype = dtypes.bool
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
    if not (self.next[:1].isdigit() or self.next in ("inf", "nan") + ("true", "false") * (not sign)):
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
      op, at = self.take(), self.at
      if op == "*":
        e = self._limited(self.product(e, self.atom(), at))
        continue
      k = self._factor()
      if k <= 0:
        self.fail("a divisor is at least 1", self.at - 1)
      e = self._limited(div(e, k) if op == "//" else mod(e, k))
    return e

  def product(self, a: UOp, b: UOp, at: int) -> UOp:
    if b.op != "const":
      a, b = b, a
    return (
      mul(a, b.arg) if b.op == "const" else self.fail("one factor of a product of indices is a number", at)
    )

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
    return tuple(self.listed(self.sum, "[", "]"))

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
      if known.op == "param" or (
        known.op == "stage" and known.arg is not None
      ):  # a graph's has no memory of its own
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

  def value_node(self, u: UOp, line: int, spot: int) -> UOp:
    """A node of a kernel that was just read, if its types and indices are right."""
    return self.checked(u, lambda v: check_kernel_node(v, self.names), line, spot)

  def names(self) -> Names:
    return Names({v: f"%{name}" for name, v in self.env.items()})

  def head(self, item: Callable[[], None]) -> str:
    """STAGE NAME(item, ...) {   and of a kernel also   STAGE NAME(item, ...) recipe("STEP", ...) {"""
    self.env, self.lines, self.directions, self.steps, self.ranges = {}, {}, {}, [], 0
    takes_recipe = self.take() == "kernel"
    name = self.word("a name")
    self.listed(item, "(", ")")
    self.declared = dict(self.env)
    if takes_recipe and self.accept("recipe"):
      self.steps = self.listed(lambda: (self.at, self.string()), "(", ")")
    self.take("{")
    self.newline()
    return name

  def string(self) -> str:
    if not self.next.startswith('"'):
      self.fail(f"expected a string, found {self.shown()}")
    return self.take()[1:-1]

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
