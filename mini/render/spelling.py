"""What languages of C's family share: what a `Language` says of itself, the table of spellings that its own rows stand
in front of, and `Spelling`, which looks operations up and writes out the helper functions that they call.

A row is (operations, types, spelling); the first that matches counts.

  types      words of KINDS, of the last operand; "A>B" where B is the result's. float16 and bfloat16 are float in
             registers: what has no row of their own is spelled as of f32. A bool is an int, 0 or 1.
  spelling   an expression: {0} {1} {2} are the operands. Where one of them stands twice it is made a function, so that
             each is evaluated once
             "... return ...;": the body of such a function, with the operands a, b, c
             a function on nodes: a body of composites.py, which is printed in the language's own operations; a Near:
             the same, with the spelling of single numbers for those that it is not meant for
             None: no spelling
  in it      {T} the result's type   {W} unsigned, as wide as it and 4 bytes at least: wraps   {I} the type of indices
             {f} f for float, nothing for double   {op} the operation   @name the language's name of a math function
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from mini.ir.composites import COMPOSITES, Near, to_odd
from mini.ir.graph import cast
from mini.ir.ops import OPS
from mini.ir.uop import UOp, toposort, uop
from mini.types import DType, MiniError, dtypes


class RenderError(MiniError):
  """A kernel that this language cannot express."""


Text = str | Near | Callable[..., UOp]
Row = tuple[str, str, Text | None]

HALVES = (dtypes.float16, dtypes.bfloat16)
CONVERSIONS = ("cast", "bitcast")


def held(d: DType) -> DType:
  """The type in which a value of type d is held in a register."""
  return dtypes.float32 if d in HALVES else dtypes.int32 if d is dtypes.bool else d


KINDS: dict[str, tuple[DType, ...]] = {
  "any": (*dtypes.all, dtypes.index),
  "int": tuple(d for d in dtypes.all if d.kind in "iu"),
  "signed": tuple(d for d in dtypes.all if d.kind == "i"),
  "unsigned": tuple(d for d in dtypes.all if d.kind == "u"),
  "small": tuple(d for d in dtypes.all if d.kind in "iu" and d.itemsize < 4),
  "float": tuple(d for d in dtypes.all if d.kind == "f"),
  **{f"{n}-byte": tuple(d for d in dtypes.all if held(d).itemsize == n) for n in (1, 2, 4, 8)},
  **{d.short: (d,) for d in dtypes.all},
}

# of the float f, whose bits are b: to the nearest, half to even; NaN stays one, and quiet
TO_BF16 = "return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }"

# fmt: off
BASE: tuple[Row, ...] = (
  ("load",     "bf16",        "bf16_to_f32({0}[{1}])"),
  ("load",     "any",         "{0}[{1}]"),
  ("store",    "bf16",        "{0}[{1}] = f32_to_bf16({2});"),
  ("store",    "any",         "{0}[{1}] = {2};"),

  ("cast",     "any>bool",    "({0} != 0)"),
  ("cast",     "f64>f16",     lambda x: cast(to_odd(x), dtypes.float16)),  # through float32 it would round twice
  ("cast",     "f64>bf16",    lambda x: cast(to_odd(x), dtypes.bfloat16)),
  ("cast",     "any>f16",     "round_f16({0})"),
  ("cast",     "any>bf16",    "round_bf16({0})"),
  ("cast",     "float>small", "({T})({I}){0}"),               # so that it wraps: out of range is undefined
  ("cast",     "any>any",     "({T}){0}"),
  ("bitcast",  "f16>bf16",    "bf16_to_f32(f32_to_f16({0}))"),
  ("bitcast",  "bf16>f16",    "f16_to_f32(f32_to_bf16({0}))"),
  ("bitcast",  "f16>any",     "({T})f32_to_f16({0})"),
  ("bitcast",  "bf16>any",    "({T})f32_to_bf16({0})"),
  ("bitcast",  "any>f16",     "f16_to_f32({0})"),
  ("bitcast",  "any>bf16",    "bf16_to_f32({0})"),
  ("bitcast",  "any>bool",    "({0} != 0)"),
  ("bitcast",  "bool int>int", "({T}){0}"),

  ("add or max", "bool",      "({0} | {1})"),
  ("mul and min", "bool",     "({0} & {1})"),
  ("ne xor",   "bool",        "({0} ^ {1})"),
  ("add",      "small",       "({T})({0} + {1})"),            # C adds them as int
  ("mul",      "small",       "({T})(({W}){0} * {1})"),       # 65535 * 65535 overflows an int
  ("and",      "small",       "({T})({0} & {1})"),
  ("or",       "small",       "({T})({0} | {1})"),
  ("xor",      "small",       "({T})({0} ^ {1})"),
  ("add",      "any",         "({0} + {1})"),
  ("mul",      "any",         "({0} * {1})"),
  ("and",      "int",         "({0} & {1})"),
  ("or",       "int",         "({0} | {1})"),
  ("xor",      "int",         "({0} ^ {1})"),
  ("lt",       "any",         "({0} < {1})"),
  ("ne",       "any",         "({0} != {1})"),
  ("where",    "any",         "({0} ? {1} : {2})"),

  ("div",      "float",       "({0} / {1})"),
  ("div",      "signed",      ("{1} == 0 ? 0 : {1} == -1 ? ({T})(0 - ({W}){0}) : "
                              "{0} / {1} - ({0} % {1} != 0 && ({0} % {1} < 0) != ({1} < 0))")),
  ("div",      "unsigned",    "{1} == 0 ? 0 : {0} / {1}"),
  ("mod",      "float",       ("{T} r = @fmod(a, b); "
                              "return r != 0 ? ((r < 0) != (b < 0) ? r + b : r) : @copysign(({T})0, b);")),
  ("mod",      "signed",      ("{1} == 0 || {1} == -1 ? 0 : "
                              "{0} % {1} + ({0} % {1} != 0 && ({0} % {1} < 0) != ({1} < 0) ? {1} : 0)")),
  ("mod",      "unsigned",    "{1} == 0 ? 0 : {0} % {1}"),
  ("max",      "float",       "{0} > {1} || {0} != {0} ? {0} : {1}"),  # not fmax: it drops NaN
  ("max",      "int",         "{0} > {1} ? {0} : {1}"),
  ("min",      "float",       "{0} < {1} || {0} != {0} ? {0} : {1}"),
  ("min",      "int",         "{0} < {1} ? {0} : {1}"),
  ("abs",      "float",       "@fabs({0})"),
  ("abs",      "signed",      "{0} < 0 ? ({T})(0 - ({W}){0}) : {0}"),
  ("round",    "float",       "@rint({0})"),                  # half to even; C's round is half away from 0
  ("pow",      "float",       "@pow({0}, {1})"),
  ("pow",      "signed",      ("if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0; {W} r = 1, x = ({W})a; "
                              "for (; b; b >>= 1) { if (b & 1) r *= x; x *= x; } return ({T})r;")),
  ("pow",      "unsigned",    "{W} r = 1, x = a; for (; b; b >>= 1) { if (b & 1) r *= x; x *= x; } return ({T})r;"),
  (" ".join(op.name for op in OPS.values() if (op.arity, op.kinds) == (1, "f")), "float", "@{op}({0})"),
  ("abs floor ceil trunc round", "int bool", "({0})"),
)

HELPERS = {  # functions that spellings call by name; the languages add how bits become numbers
  "round_f16":  "INLINE float round_f16(float x) { return f16_to_f32(f32_to_f16(x)); }",
  "round_bf16": "INLINE float round_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }",
}


TAKES = {"f32": "f32", "u32": "u32", "any": "float"}


def bodies(native: str) -> tuple[Row, ...]:
  """Rows for a language that has these composites, and as exact, as functions of its own: bodies of the others."""
  return tuple((c.name, TAKES[c.types], c.body) for c in COMPOSITES.values() if c.name not in native.split())


# What undefined behaviour leaves to a compiler that has no -fwrapv: signed sums wrap through unsigned ones. And numbers
# that no int holds are cut to 32 bits as everywhere; these languages' own conversions saturate.
WRAPPING: tuple[Row, ...] = (
  ("add",      "i32 i64",     "({T})(({W}){0} + ({W}){1})"),
  ("mul",      "i32 i64",     "({T})(({W}){0} * ({W}){1})"),
  ("cast",     "float>small i32 u32", "({T})({I}){0}"),
)
# fmt: on


WORD = re.compile(r"[A-Za-z_]\w*")
SLOT = re.compile(r"\{([A-Zfo]\w*)\}|@(\w+|\{op\})")


class Found(NamedTuple):
  """A row's text, and what follows from it."""

  text: Text | None
  inline: bool  # an expression, no function
  plain: bool  # with nothing but operands to fill in


class Wide(NamedTuple):
  """How a language moves `count` elements that stand together in memory, at any address of one element.

  In it: {p} the pointer, {S} its space, x the variable to store. The elements of a variable are x, y, z, w.
  """

  lanes: int
  type: str  # of the variable
  load: str  # an expression
  store: str  # a statement
  get: str = "{0}"  # from an element to the register
  put: str = "{0}"


@dataclass(frozen=True)
class Threads:
  """How a language spells groups of threads, for kernels that have local ranges.
  `t` is the thread's number in its group."""

  head: str  # how such a kernel opens: {name}, {params}, {threads}
  number: str  # the statement that defines t, where the head does not
  par: str  # how the loop opens whose rounds are groups: {i}, {n}
  barrier: str  # waits for the group, and makes the memory that it shares agree
  fence: str  # the same, of all memory
  warp: int = 1  # threads that exchange values by the rows "shuffle": value, bit, mask of threads
  nbytes: int = 32 << 10  # of shared memory that all devices have


@dataclass(frozen=True, eq=False)
class Language:
  """What a device's language calls things: plain data, but for how it writes vectors."""

  name: str
  rows: tuple[Row, ...]
  types: Mapping[DType, str]  # in registers; what is missing the language lacks
  storage: Mapping[DType, str]  # in memory, where it is not the register's
  helpers: Mapping[str, str]  # definitions by name, of what the rows call
  prelude: str  # what a source begins with; defines INLINE
  function: str  # a math function's name, from {op} and {f}
  head: str  # how a kernel opens: {name}, {params}
  param: str  # one of them: {const}, {T}, {name}, its number {n}
  error: str  # the parameter that holds the error word, where there is one
  between: str  # the parameters
  par: str  # how a loop opens whose rounds are threads: {i}, {n}
  raise_: str  # sets the error word, if {fails}: {size}, {index}
  spaces: Mapping[str, str]  # stage memory: {T}, {name}, {n}
  staged: Mapping[DType, DType] = field(default_factory=dict)  # what stages hold as another type
  pointer: str = ""  # a statement that makes a pointer of a parameter: {const}, {T}, {name}
  threads: Threads | None = None
  # where lanes are scalars; the widest first
  wide: Mapping[DType, tuple[Wide, ...]] = field(default_factory=dict)
  address: Mapping[str, str] = field(default_factory=dict)  # {S} of a Wide: of a param, of shared memory
  # instructions (codegen/matrix.py): {c}, {a}, {b} registers
  matrices: Mapping[str, str] = field(default_factory=dict)
  bits: bool = False  # which take operands of 16 bits in pairs, as they are in memory
  small_index: str = ""  # the type of indices that 32 bits hold
  long: str = "L"  # ends a 64-bit literal
  most_params: int = 1 << 10
  width: int = 1  # elements of a vector register; 1: lanes are scalars
  vector_rows: tuple[Row, ...] = ()
  speller: type[Spelling] | None = None  # that writes vectors
  fence: str = ""  # a statement after non-temporal stores; "": there are none
  prefetch: str = ""  # a statement that prefetches the cache line at an address {p}; "": none does
  prefetch_store: str = ""  # the same, of one that will be written
  prefetch_stream: str = ""  # ... of a long stream without gaps
  prefetch_second: str = ""  # ... into the second cache, not the first
  found: dict[tuple, Found] = field(default_factory=dict, repr=False)  # rows that were looked up
  words: set[str] = field(default_factory=set, repr=False)

  def spelling(self) -> Spelling:
    """A fresh set of helper functions, and what fills it."""
    return (self.speller or Spelling)(self)

  def row(self, op: str, of: DType, d: DType, wide: bool) -> Found:
    key = op, of, d, wide
    got = self.found.get(key)
    if got is None:
      rows = self.vector_rows if wide else self.rows
      text = next((t for ops, types, t in rows if op in ops.split() and matches(op, types, of, d)), None)
      s = text if isinstance(text, str) else "return"
      inline = "return" not in s and not any(s.count(f"{{{n}}}") > 1 for n in range(3))
      got = self.found[key] = Found(text, inline, inline and not SLOT.search(s) and not self.calls(s))
    return got

  def calls(self, text: str) -> list[str]:
    """The helper functions that a text names."""
    return [w for w in WORD.findall(text) if w in self.helpers]

  def identifiers(self) -> set[str]:
    """The words that its spellings use: no range or parameter may be called so."""
    if not self.words:
      texts = [t for _, _, t in (*self.rows, *self.vector_rows) if isinstance(t, str)]
      texts += [*self.types.values(), *self.storage.values(), *self.helpers.values(), *self.spaces.values()]
      texts += [self.prelude, self.function, self.head, self.param, self.error, self.par, self.raise_]
      texts += [s for s in vars(self.threads or object).values() if isinstance(s, str)]
      names = [op for ops, _, _ in self.rows for op in ops.split()]
      self.words.update(w for w in (*WORD.findall(" ".join(texts)), *names) if len(w) > 2)
    return self.words


def matches(op: str, types: str, of: DType, d: DType) -> bool:
  left, _, right = types.partition(">")
  as_f32 = of in HALVES and op not in CONVERSIONS and dtypes.float32 in kinds(left)
  return (of in kinds(left) or as_f32) and (not right or d in kinds(right))


@lru_cache(None)
def kinds(words: str) -> frozenset[DType]:
  return frozenset(d for w in words.split() for d in KINDS[w])


class Spelling:
  """One kernel's operations in a language; `helpers` are the functions that they call,
  each after those that it calls."""

  def __init__(self, lang: Language):
    self.lang = lang
    self.helpers: dict[str, str] = {}

  # ---------------------------------------------------------------- types and numbers

  def type(self, d: DType, width: int = 1) -> str:
    """What a register of this type is called."""
    if d not in self.lang.types:
      advice = "cast it to another type, or use a device that has it"
      raise RenderError(f"{self.lang.name} has no {d.name}: {advice}")
    return self.lang.types[d]

  def memory(self, d: DType, staged: bool = False) -> str:
    """What an element in memory is called."""
    if staged:
      d = self.lang.staged.get(d, d)
    return self.lang.storage.get(d) or self.type(d)

  def literal(self, value: float | bool, d: DType) -> str:
    if d.kind == "f":
      self.type(d)
      f = "f" if held(d) is dtypes.float32 else ""
      if math.isfinite(value):
        return f"{float(value)!r}{f}"
      return ("-" if value < 0 else "") + self.operation("nan" if math.isnan(value) else "inf", (d,), d)
    suffix = ("u" if d.kind == "u" else "") + (self.lang.long if d.itemsize == 8 else "")
    value = int(value)
    if d.kind == "i" and value == -(1 << (8 * d.itemsize - 1)):
      return f"({value + 1}{suffix} - 1)"
    return f"{value}{suffix}"

  # ---------------------------------------------------------------- memory

  def load(self, p: str, i: str, d: DType, width: int = 1) -> str:
    return self.operation("load", (d,), d, width).format(p, i)

  def store(self, p: str, i: str, x: str, d: DType, width: int = 1) -> str:
    return self.operation("store", (d,), d, width).format(p, i, x)

  # ---------------------------------------------------------------- operations

  def spell(self, u: UOp, width: int = 1) -> str:
    """A format string for the operands of u, each of which is evaluated once."""
    number = u.src[1].arg if u.dtype.kind in "iu" and len(u.src) == 2 and u.src[1].op == "const" else 0
    if number > 0 and number.bit_count() == 1:
      if u.op == "div":  # of negative numbers too: both round towards minus infinity
        return f"({{0}} >> {number.bit_length() - 1})"
      if u.op == "mul" and u.dtype.kind == "u" and u.dtype.itemsize >= 4:
        return f"({{0}} << {number.bit_length() - 1})"
    return self.operation(u.op, tuple(s.dtype for s in u.src), u.dtype, width)

  def operation(self, op: str, sources: tuple[DType, ...], d: DType, width: int = 1) -> str:
    of = sources[0] if op in CONVERSIONS else sources[-1]
    text, inline, plain = self.lang.row(op, of, d, width > 1)
    if text is None and (width == 1 or self.lang.row(op, of, d, False).text is None):
      raise RenderError(f"{self.lang.name} has no spelling for {op} of {of.name}")
    if inline:
      return text if plain else self.fill(text, op, of, d, width)  # type: ignore[return-value,arg-type]
    what = of.short if of is dtypes.bool else held(of).short
    name = f"{op}_{of.short}_{d.short}" if op in CONVERSIONS else f"{op}_{what}"
    name += f"x{width}" if width > 1 else ""
    if name not in self.helpers:
      made = self.define(name, op, sources, d, width, text)
      self.helpers[name] = made  # after those that it calls
    return name + "(" + ", ".join(f"{{{n}}}" for n in range(len(sources))) + ")"

  def fill(self, text: str, op: str, of: DType, d: DType, width: int) -> str:
    """A row's text with everything but the operands in place, and the helpers that it names."""

    def slot(m: re.Match[str]) -> str:
      if m[2]:
        name = m[2].replace("{op}", op)
        return self.lang.function.format(op=name, f="f" if held(of) is dtypes.float32 else "")
      return self.slot(m[1], op, of, d, width)

    text = SLOT.sub(slot, text)
    self.need(text)
    return text

  def slot(self, name: str, op: str, of: DType, d: DType, width: int) -> str:
    if name == "T":
      return self.type(d, width)
    if name == "W":
      return self.type(dtypes.uint64 if d.itemsize == 8 else dtypes.uint32)
    f = "f" if held(of) is dtypes.float32 else ""
    return {"I": self.lang.types[dtypes.index], "f": f, "op": op}[name]

  def need(self, text: str) -> None:
    for name in self.lang.calls(text):
      if name not in self.helpers:
        self.need(self.lang.helpers[name].replace(name, ""))
        self.helpers[name] = self.lang.helpers[name]

  def define(
    self, name: str, op: str, sources: tuple[DType, ...], d: DType, width: int, text: Text | None
  ) -> str:
    """The inline function for what has no expression."""
    of = sources[0] if op in CONVERSIONS else sources[-1]
    names = "abcd"[: len(sources)]
    result, each = self.type(d, width), [self.type(s, width) for s in sources]
    if text is None:
      body = self.each_lane(op, sources, d, width, names)
    elif isinstance(text, str):
      text = text if "return" in text else f"return {text};"
      body = self.fill(text, op, of, d, width)
      for n, a in enumerate(names):
        body = body.replace(f"{{{n}}}", a)
    elif isinstance(text, Near):
      body = self.near(text, op, sources, d, width)
    else:
      body = self.from_nodes(text, held(of), names, width)
    return f"INLINE {result} {name}({', '.join(f'{t} {a}' for t, a in zip(each, names))}) {{ {body} }}"

  def from_nodes(self, make: Callable[..., UOp], d: DType, names: str, width: int) -> str:
    """A body that is made of nodes."""
    xs = [uop("param", d, (), (n, ())) for n in names]
    root = make(*xs)
    spelled: dict[UOp, str] = {}  # what the result is made of
    wanted = {root}
    for u in reversed(toposort(root)):
      if u in wanted and u.src:
        text = spelled[u] = self.spell(u, width)
        wanted.update(s for n, s in enumerate(u.src) if f"{{{n}}}" in text)
    ref: dict[UOp, str] = dict(zip(xs, names))
    lines: list[str] = []
    for u in toposort(root):
      if u.op == "const":
        s = self.literal(u.arg, u.dtype)
        ref[u] = self.splat(s, u.dtype) if width > 1 else s
      elif u in spelled:
        value = spelled[u].format(*(ref.get(s, "") for s in u.src))
        ref[u] = f"t{len(lines)}"
        lines.append(f"{self.type(u.dtype, width)} {ref[u]} = {value};")
    return " ".join(lines) + f" return {ref[root]};"

  # ---------------------------------------------------------------- vectors: of languages that have them, and SHUFFLE

  def each_lane(self, op: str, sources: tuple[DType, ...], d: DType, width: int, names: str) -> str:
    """A body that goes lane by lane."""
    lanes = [f"({a}[i] & 1)" if s is dtypes.bool else f"{a}[i]" for a, s in zip(names, sources)]
    one = self.operation(op, sources, d).format(*lanes)
    minus = "-" if d is dtypes.bool else ""
    return f"{self.type(d, width)} r; for (int i = 0; i < {width}; i++) r[i] = {minus}{one}; return r;"

  def vector(self, elements: Iterable[str], d: DType, width: int) -> str:
    return f"({self.type(d, width)}){{{', '.join(elements)}}}"

  def near(self, row: Near, op: str, sources: tuple[DType, ...], d: DType, width: int) -> str:
    raise RenderError(f"{self.lang.name} has no vectors")

  def splat(self, s: str, d: DType) -> str:
    raise RenderError(f"{self.lang.name} has no vectors")

  def spaced(self, p: str, i: str, d: DType, width: int, step: int) -> str:
    """A load of every second element (2), or backwards (-1), from element i on; "" where a language has none."""
    return ""

  def load_masked(self, p: str, i: str, mask: str, d: DType, width: int) -> str:
    """A load of the elements where a mask holds, and of 0 where it does not; "" where a language has none."""
    return ""

  def store_past(self, p: str, i: str, x: str, d: DType, width: int) -> str:
    """A store of what no cache should hold."""
    raise RenderError(f"{self.lang.name} has no vectors")

  def rotated(self, x: str, n: int) -> str:
    """The vector x with the lanes from n on first."""
    order = ", ".join(str((i + n) % self.lang.width) for i in range(self.lang.width))
    return f"SHUFFLE({x}, {x}, {order})"

  def interleaved(self, a: str, b: str) -> tuple[str, ...]:
    """Two vectors that hold the elements of a and b in turns."""
    w = self.lang.width
    order = [n for pair in zip(range(w), range(w, 2 * w)) for n in pair]
    return tuple(f"SHUFFLE({a}, {b}, {', '.join(map(str, half))})" for half in (order[:w], order[w:]))

  def transpose(self, d: DType) -> str:
    """A butterfly: in log2(width) rounds vectors i and i + d exchange the lanes in which their numbers differ."""
    w = self.lang.width
    t, name = self.type(d, w), f"transpose_{held(d).short}x{w}"
    if name not in self.helpers:
      rows, step = [], 1
      while step < w:
        low = ", ".join(str(n if not n & step else w + n - step) for n in range(w))
        high = ", ".join(str(n + step if not n & step else w + n) for n in range(w))
        for i in (i for i in range(w) if not i & step):
          j = i + step
          rows.append(
            f"  a = x[{i}], b = x[{j}]; x[{i}] = SHUFFLE(a, b, {low}); x[{j}] = SHUFFLE(a, b, {high});"
          )
        step *= 2
      self.helpers[name] = f"INLINE void {name}({t} *x) {{\n  {t} a, b;\n" + "\n".join(rows) + "\n}"
    return name
