"""C with vector extensions, for gcc and clang: no intrinsics, no header, one function per kernel.

  void NAME(void **args, long lo, long hi)      runs the kernel's parallel range from lo to hi

A vector has `width` elements of any type; a mask (bool) is a vector of int, 0 or -1. float16 and bfloat16 are float in
registers, and are rounded where they are stored or cast. What has no infix form is a small inline function, written out
once per source: from its body (composites.py) or, for a vector, as a loop over its lanes.
"""
from __future__ import annotations

import math

from mini.ir.composites import BODIES, has_body
from mini.ir.uop import UOp, toposort, uop
from mini.render.cstyle import Language, Renderer
from mini.types import DType, dtypes

# fmt: off
REGISTER = {dtypes.bool: "int", dtypes.int8: "signed char", dtypes.int16: "short", dtypes.int32: "int", dtypes.int64: "long",
            dtypes.uint8: "unsigned char", dtypes.uint16: "unsigned short", dtypes.uint32: "unsigned", dtypes.uint64: "unsigned long",
            dtypes.float16: "float", dtypes.bfloat16: "float", dtypes.float32: "float", dtypes.float64: "double",
            dtypes.index: "long"}
STORAGE = {**REGISTER, dtypes.bool: "unsigned char", dtypes.float16: "_Float16", dtypes.bfloat16: "unsigned short"}
INFIX = {"add": "+", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "lt": "<", "ne": "!="}
ON_BOOL = {"add": "|", "mul": "&", "max": "|", "and": "&", "or": "|", "xor": "^", "ne": "^"}
LIBM = {"exp2", "log2", "sin", "sqrt", "exp", "log", "cos", "tanh", "erf", "atan", "pow", "floor", "ceil", "trunc"}
RENAMED = {"round": "rint", "abs": "fabs"}
# fmt: on


def compute(d: DType) -> DType:
  """The type in which a value of type d is held in a register."""
  return dtypes.float32 if d in (dtypes.float16, dtypes.bfloat16) else dtypes.int32 if d is dtypes.bool else d


def literal(value: float | bool, d: DType) -> str:
  if d.kind == "f":
    f = "f" if compute(d) is dtypes.float32 else ""
    if math.isnan(value) or math.isinf(value):
      return f"{'-' if value < 0 else ''}__builtin_{'nan' if math.isnan(value) else 'inf'}{f}({repr('').replace(chr(39), chr(34)) if math.isnan(value) else ''})"
    return f"{float(value)!r}{f}"
  suffix = ("u" if d.kind == "u" else "") + ("L" if d.itemsize == 8 else "")
  value = int(value)
  if d.kind == "i" and value == -(1 << (8 * d.itemsize - 1)):
    return f"({value + 1}{suffix} - 1)"
  return f"{value}{suffix}"


class C:
  """The spellings of C for vectors of `width` elements."""

  def __init__(self, width: int):
    self.width = width

  # ---------------------------------------------------------------- types

  def vector(self, d: DType, helpers: dict[str, str]) -> str:
    d = compute(d)
    name = f"{d.short}x{self.width}"
    if name not in helpers:
      size = d.itemsize * self.width
      helpers[name] = f"typedef {REGISTER[d]} {name} __attribute__((vector_size({size})));"
    return name

  def unaligned(self, d: DType, helpers: dict[str, str]) -> str:
    """The same vector where memory holds it: at any address, of any type."""
    name = f"{d.short}x{self.width}u"
    if name not in helpers:
      size = d.itemsize * self.width
      helpers[name] = f"typedef {STORAGE[d]} {name} __attribute__((vector_size({size}), aligned({d.itemsize}), may_alias));"
    return name

  def splat(self, s: str, d: DType, helpers: dict[str, str]) -> str:
    t = self.vector(d, helpers)
    minus = "-" if d is dtypes.bool else ""
    name = f"splat_{compute(d).short}"
    if name not in helpers:
      helpers[name] = f"INLINE {t} {name}({REGISTER[compute(d)]} x) {{ return ({t}){{{', '.join(['x'] * self.width)}}}; }}"
    return f"{name}({minus}{s})"

  # ---------------------------------------------------------------- memory

  def load(self, p: str, i: str, d: DType, width: int, helpers: dict[str, str]) -> str:
    if width == 1:
      return f"bf16_to_f32({p}[{i}])" if d is dtypes.bfloat16 and self.bf16(helpers) else f"{p}[{i}]"
    if d not in (dtypes.bool, dtypes.float16, dtypes.bfloat16):
      return f"({self.vector(d, helpers)})*(const {self.unaligned(d, helpers)}*)({p} + {i})"
    t, name, one = self.vector(d, helpers), f"load_{d.short}x{self.width}", self.load("p", "i", d, 1, helpers)
    if name not in helpers:
      minus = "-" if d is dtypes.bool else ""
      helpers[name] = f"INLINE {t} {name}(const {STORAGE[d]} *p) {{ {t} r; for (int i = 0; i < {self.width}; i++) r[i] = {minus}{one}; return r; }}"
    return f"{name}({p} + {i})"

  def store(self, p: str, i: str, x: str, d: DType, width: int, helpers: dict[str, str]) -> str:
    if width == 1:
      return f"{p}[{i}] = f32_to_bf16({x});" if d is dtypes.bfloat16 and self.bf16(helpers) else f"{p}[{i}] = {x};"
    if d not in (dtypes.bool, dtypes.float16, dtypes.bfloat16):
      return f"*({self.unaligned(d, helpers)}*)({p} + {i}) = {x};"
    t, name = self.vector(d, helpers), f"store_{d.short}x{self.width}"
    one = self.store("p", "i", "x[i] & 1" if d is dtypes.bool else "x[i]", d, 1, helpers)
    if name not in helpers:
      helpers[name] = f"INLINE void {name}({STORAGE[d]} *p, {t} x) {{ for (int i = 0; i < {self.width}; i++) {one} }}"
    return f"{name}({p} + {i}, {x});"

  def bf16(self, helpers: dict[str, str]) -> bool:
    helpers.setdefault("bf16_to_f32", "INLINE float bf16_to_f32(unsigned short x) { unsigned b = (unsigned)x << 16; float f; __builtin_memcpy(&f, &b, 4); return f; }")
    helpers.setdefault("f32_to_bf16", "INLINE unsigned short f32_to_bf16(float f) { unsigned b; __builtin_memcpy(&b, &f, 4); "
                                      "return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }")  # fmt: skip
    return True

  # ---------------------------------------------------------------- operations

  def spell(self, u: UOp, width: int, helpers: dict[str, str]) -> str:
    """A format string for the operands of u, each of which is evaluated once."""
    op, d = u.op, u.src[-1].dtype if u.src else u.dtype
    if op == "cast":
      return self.cast(u.src[0].dtype, u.dtype, width, helpers)
    if d is dtypes.bool and op in ON_BOOL:
      return f"({{0}} {ON_BOOL[op]} {{1}})"
    if op in ("lt", "ne"):
      s = f"({{0}} {INFIX[op]} {{1}})"
      if d is dtypes.bool:
        s = "(~{0} & {1})" if width > 1 else "({0} < {1})"
      return s if width == 1 or compute(d).itemsize == 4 else f"__builtin_convertvector({s}, {self.vector(dtypes.bool, helpers)})"
    divisor = u.src[1].arg if op == "div" and d.kind in "iu" and u.src[1].op == "const" else 0
    if divisor > 0 and divisor.bit_count() == 1:  # of negative numbers too: both round towards minus infinity
      return f"({{0}} >> {divisor.bit_length() - 1})"
    if op in INFIX and not (op == "div" and d.kind != "f"):
      s = f"({{0}} {INFIX[op]} {{1}})"
      return s if width > 1 or d.kind == "f" or d.itemsize >= 4 else f"({REGISTER[d]}){s}"
    if op == "where" and width == 1:
      return "({0} ? {1} : {2})"
    if op == "bitcast" and width > 1:
      return f"({self.vector(u.dtype, helpers)}){{0}}"
    return self.function(u, width, helpers) + "(" + ", ".join(f"{{{n}}}" for n in range(len(u.src))) + ")"

  def cast(self, source: DType, d: DType, width: int, helpers: dict[str, str]) -> str:
    small = dtypes.is_int(d) and d.itemsize < 4 and source.kind == "f"  # through a wider integer, so that it wraps
    if width == 1:
      if d is dtypes.bool:
        return "({0} != 0)"
      if d in (dtypes.float16, dtypes.bfloat16):
        return self.rounded(d, 1, helpers)
      return f"({REGISTER[d]})(long){{0}}" if small else f"({REGISTER[d]}){{0}}"
    if d is dtypes.bool:
      s = "({0} != 0)"
      return s if compute(source).itemsize == 4 else f"__builtin_convertvector({s}, {self.vector(d, helpers)})"
    x = "(-{0})" if source is dtypes.bool else "{0}"
    if small:
      x = f"__builtin_convertvector({x}, {self.vector(dtypes.int32, helpers)})"
    if d in (dtypes.float16, dtypes.bfloat16):
      x = f"__builtin_convertvector({x}, {self.vector(dtypes.float32, helpers)})"
      return self.rounded(d, width, helpers).format(x)
    return f"__builtin_convertvector({x}, {self.vector(d, helpers)})"

  def rounded(self, d: DType, width: int, helpers: dict[str, str]) -> str:
    name = f"round_{d.short}"
    if name not in helpers:
      self.bf16(helpers)
      helpers[name] = f"INLINE float {name}(float x) {{ return {'(float)(_Float16)x' if d is dtypes.float16 else 'bf16_to_f32(f32_to_bf16(x))'}; }}"
    if width == 1:
      return name + "({0})"
    t = self.vector(d, helpers)
    helpers.setdefault(f"{name}x{width}", f"INLINE {t} {name}x{width}({t} x) {{ for (int i = 0; i < {width}; i++) x[i] = {name}(x[i]); return x; }}")
    return f"{name}x{width}({{0}})"

  def function(self, u: UOp, width: int, helpers: dict[str, str]) -> str:
    """The name of the inline function for what has no infix form; written into `helpers` when first asked for."""
    d = u.src[-1].dtype
    kind = compute(d)
    name = f"{u.op}_{d.short if d is dtypes.bool else kind.short}" + (f"_{compute(u.dtype).short}" if u.op == "bitcast" else "") + (f"x{width}" if width > 1 else "")
    if name in helpers:
      return name
    bool_in = u.op == "where"
    result = self.vector(u.dtype, helpers) if width > 1 else REGISTER[compute(u.dtype)]
    each = [self.vector(s.dtype, helpers) if width > 1 else REGISTER[compute(s.dtype)] for s in u.src]
    names = "abc"[: len(u.src)]
    body = self.body(u, kind, width, helpers, names)
    if body is None:
      scalar = self.function(u, 1, helpers)
      body = f"{result} r; for (int i = 0; i < {width}; i++) r[i] = {scalar}({', '.join(n + '[i]' for n in names)}); return r;"
    assert not bool_in or width > 1
    helpers[name] = f"INLINE {result} {name}({', '.join(f'{t} {n}' for t, n in zip(each, names))}) {{ {body} }}"
    return name

  def body(self, u: UOp, d: DType, width: int, helpers: dict[str, str], names: str) -> str | None:
    op = u.op
    if op == "where":
      mask = self.vector(dtypes.bool, helpers)
      if d.itemsize == 4:
        t = self.vector(d, helpers)
        return f"return ({t})((a & ({mask})b) | (~a & ({mask})c));"
      same = {1: dtypes.int8, 2: dtypes.int16, 8: dtypes.int64}[d.itemsize]
      m, t = self.vector(same, helpers), self.vector(d, helpers)
      return f"{m} m = __builtin_convertvector(a, {m}); return ({t})((m & ({m})b) | (~m & ({m})c));"
    if op == "max":
      if width == 1:
        return "return a > b || a != a ? a : b;" if d.kind == "f" else "return a > b ? a : b;"
      where = uop("where", d, (uop("param", dtypes.bool, (), ("a", ())), *u.src))
      test = uop("lt", dtypes.bool, u.src)
      s = self.spell(test, width, helpers).format("b", "a")
      if d.kind == "f":
        s = f"({s} | {self.spell(uop('ne', dtypes.bool, u.src), width, helpers).format('a', 'a')})"
      return f"return {self.spell(where, width, helpers).format(s, 'a', 'b')};"
    if op == "bitcast":
      return f"{REGISTER[compute(u.dtype)]} r; __builtin_memcpy(&r, &a, {u.dtype.itemsize}); return r;"
    if op in BODIES and has_body(op, d):
      return self.from_body(op, d, width, helpers, names)
    if width > 1:
      return None
    if op == "div":
      overflow = f"b == -1 ? ({REGISTER[d]})(0 - ({REGISTER[unsigned(d)]})a) : " if d.kind == "i" else ""
      floor = "a / b - (a % b != 0 && (a % b < 0) != (b < 0))" if d.kind == "i" else "a / b"
      return f"return b == 0 ? 0 : {overflow}{floor};"
    if op == "mod" and d.kind == "f":
      f = "f" if d is dtypes.float32 else ""
      return f"{REGISTER[d]} r = __builtin_fmod{f}(a, b); return r != 0 ? ((r < 0) != (b < 0) ? r + b : r) : __builtin_copysign{f}(0, b);"
    if op == "mod":
      return "return b == 0 || b == -1 ? 0 : a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);" if d.kind == "i" else "return b == 0 ? 0 : a % b;"
    if op == "pow" and d.kind != "f":
      t = REGISTER[d]
      negative = "if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0; " if d.kind == "i" else ""
      return f"{negative}{t} r = 1; while (b) {{ if (b & 1) r = ({t})(r * a); a = ({t})(a * a); b >>= 1; }} return r;"
    if op == "abs" and d.kind != "f":
      return "return a < 0 ? -a : a;" if d.kind == "i" else "return a;"
    if op == "min":
      return "return a < b || a != a ? a : b;" if d.kind == "f" else "return a < b ? a : b;"
    if op in LIBM or op in RENAMED:
      f = "f" if d is dtypes.float32 else ""
      return f"return __builtin_{RENAMED.get(op, op)}{f}({', '.join(names)});" if d.kind == "f" else "return a;"
    raise NotImplementedError(f"no spelling for {op} of {d.name} in C")

  def from_body(self, op: str, d: DType, width: int, helpers: dict[str, str], names: str) -> str:
    xs = [uop("param", d, (), (n, ())) for n in names]
    root = BODIES[op](*xs)
    ref: dict[UOp, str] = dict(zip(xs, names))
    lines = []
    for u in toposort(root):
      if u in ref:
        continue
      if u.op == "const":
        ref[u] = self.splat(literal(u.arg, u.dtype), u.dtype, helpers) if width > 1 else literal(u.arg, u.dtype)
        continue
      t = self.vector(u.dtype, helpers) if width > 1 else REGISTER[compute(u.dtype)]
      ref[u] = f"t{len(lines)}"
      lines.append(f"{t} {ref[u]} = {self.spell(u, width, helpers).format(*(ref[s] for s in u.src))};")
    return " ".join(lines) + f" return {ref[root]};"

  def transpose(self, d: DType, helpers: dict[str, str]) -> str:
    """A butterfly: in log2(width) rounds vectors i and i + d exchange the lanes in which their numbers differ."""
    t, name, w = self.vector(d, helpers), f"transpose_{compute(d).short}x{self.width}", self.width
    if name not in helpers:
      rows, step = [], 1
      while step < w:
        low = ", ".join(str(n if not n & step else w + n - step) for n in range(w))
        high = ", ".join(str(n + step if not n & step else w + n) for n in range(w))
        for i in (i for i in range(w) if not i & step):
          rows.append(f"  a = x[{i}], b = x[{i + step}]; x[{i}] = SHUFFLE(a, b, {low}); x[{i + step}] = SHUFFLE(a, b, {high});")
        step *= 2
      helpers[name] = f"INLINE void {name}({t} *x) {{\n  {t} a, b;\n" + "\n".join(rows) + "\n}"
    return name

  # ---------------------------------------------------------------- the function around it

  @staticmethod
  def head(name: str, params: list[tuple[UOp, bool]], guarded: bool) -> str:
    rows = [f"  {'' if out else 'const '}{STORAGE[p.dtype]} *{p.arg[0]} = args[{n}];" for n, (p, out) in enumerate(params)]
    rows += [f"  long long *err = args[{len(params)}];"] if guarded else []
    return f"void {name}(void **args, long lo, long hi) {{\n" + "\n".join(rows)

  def language(self) -> Language:
    return Language(
      name="C", width=self.width, types=REGISTER, storage=STORAGE, spell=self.spell, literal=literal, vector=self.vector,
      splat=self.splat, load=self.load, store=self.store, head=self.head, transpose=self.transpose,
      par=lambda i, size: f"for (long {i} = lo; {i} < hi; {i}++) {{",
      stack=lambda t, name, n: f"{t} {name}[{n}] __attribute__((aligned(64)));",
    )  # fmt: skip


def unsigned(d: DType) -> DType:
  return getattr(dtypes, "u" + d.name)


PRELUDE = """#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
"""


def link(kernels: dict[str, tuple[str, dict[str, str]]]) -> str:
  """One translation unit of kernels that were rendered apart: {name: (function, helper functions by name)}."""
  helpers: dict[str, str] = {}
  for _, called in kernels.values():
    helpers.update({name: text for name, text in called.items() if name not in helpers})
  return PRELUDE + "\n".join(helpers.values()) + "\n\n" + "\n".join(source for source, _ in kernels.values())


def render(kernels: dict[str, UOp], width: int) -> str:
  """One translation unit with a function for each kernel, by name."""
  lang = C(width).language()
  made = {}
  for name, k in kernels.items():
    r = Renderer(k, lang, name)
    made[name] = (r.source(), r.helpers)
  return link(made)
