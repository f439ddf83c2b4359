"""C with vector extensions, for gcc and clang: no header, one function per kernel. Where gcc has no other way (for
non-temporal stores, loads by mask, three conversions), its builtins or asm.

  void NAME(void **args, long lo, long hi)      runs the kernel's parallel range from lo to hi

A vector has `width` elements of any type; a mask (bool) is a vector of int, 0 or -1. float16 and bfloat16 are float in
registers, and are rounded where they are stored or cast. What has no spelling for vectors is a loop over their lanes,
in an inline function.
"""

from __future__ import annotations

from functools import lru_cache, partial

from mini.ir.composites import BODIES, NEAR, ROWS, Near, greatest, least, power_single
from mini.ir.uop import UOp
from mini.render import cstyle
from mini.render.expressions import fitting_width
from mini.render.macros import AHEAD, FENCE, FUSED, STREAM
from mini.render.spelling import BASE, HELPERS, TAKES, TO_BF16, Language, Row, Spelling, held
from mini.types import DType, dtypes

# fmt: off
REGISTER = {dtypes.bool: "int", dtypes.int8: "signed char", dtypes.int16: "short", dtypes.int32: "int",
            dtypes.int64: "long", dtypes.uint8: "unsigned char", dtypes.uint16: "unsigned short",
            dtypes.uint32: "unsigned", dtypes.uint64: "unsigned long", dtypes.float16: "float",
            dtypes.bfloat16: "float", dtypes.float32: "float", dtypes.float64: "double", dtypes.index: "long"}
STORAGE = {dtypes.bool: "unsigned char", dtypes.float16: "_Float16", dtypes.bfloat16: "unsigned short"}

BY_BODY: tuple[Row, ...] = tuple((op, TAKES[ROWS[op].types], body) for op, body in BODIES.items())

SCALARS: tuple[Row, ...] = (
  ("max",      "float",       "{T} r = a > b ? a : b; return a != a ? a : r;"),  # one, and a jump never taken
  ("min",      "float",       "{T} r = a < b ? a : b; return a != a ? a : r;"),
  ("inf",      "float",       "__builtin_inf{f}()"),
  ("nan",      "float",       '__builtin_nan{f}("")'),
  ("bitcast",  "f32 f64>int", "{T} r; __builtin_memcpy(&r, &a, sizeof r); return r;"),
  ("bitcast",  "int>f32 f64", "{T} r; __builtin_memcpy(&r, &a, sizeof r); return r;"),
  ("fma",      "f32 f64",     "FUSED(@fma, {0}, {1}, {2})"),
  *BY_BODY,
)


# Rows without a spelling go lane by lane, as do operations without a row.
# {S}: the mask of the operands' own size, which their comparison gives; {M}: that of int, which a bool is
# 8-byte integers fill two registers: gcc 12 computes with such vectors as it should, but compares element by element
# {B}: {0}, of 1 or 2 bytes, as ints
VECTORS: tuple[Row, ...] = (
  ("add or max", "bool",      "({0} | {1})"),
  ("mul and min", "bool",     "({0} & {1})"),
  ("ne xor",   "bool",        "({0} ^ {1})"),
  ("lt",       "bool",        "(~{0} & {1})"),
  ("lt",       "4-byte",      "({0} < {1})"),
  ("ne",       "4-byte",      "({0} != {1})"),
  ("lt",       "i64",         ("__typeof__(a) s = (a & ~b) | (~(a ^ b) & (a - b)); "
                              "return __builtin_convertvector(s >> 32, {M}) >> 31;")),
  ("lt",       "u64",         ("__typeof__(a) s = (~a & b) | (~(a ^ b) & (a - b)); "
                              "return __builtin_convertvector(s >> 32, {M}) >> 31;")),
  ("ne",       "i64 u64",     "__typeof__(a) d = a ^ b; return __builtin_convertvector(d | d >> 32, {M}) != 0;"),
  ("lt",       "any",         "__builtin_convertvector(({0} < {1}), {M})"),
  ("ne",       "any",         "__builtin_convertvector(({0} != {1}), {M})"),
  ("add",      "any",         "({0} + {1})"),
  ("mul",      "any",         "({0} * {1})"),
  ("div",      "float",       "({0} / {1})"),
  ("and",      "int",         "({0} & {1})"),
  ("or",       "int",         "({0} | {1})"),
  ("xor",      "int",         "({0} ^ {1})"),
  ("where",    "4-byte bool", "return ({T})((a & ({M})b) | (~a & ({M})c));"),
  ("where",    "any",         "{S} m = __builtin_convertvector(a, {S}); return ({T})((m & ({S})b) | (~m & ({S})c));"),
  ("max",      "i64",         ("__typeof__(a) s = (b & ~a) | (~(a ^ b) & (b - a)), m = s >> 63; "
                              "return (m & a) | (~m & b);")),
  ("max",      "u64",         ("__typeof__(a) s = (~b & a) | (~(a ^ b) & (b - a)), m = -(s >> 63); "
                              "return (m & a) | (~m & b);")),
  ("max",      "f32",         greatest),
  ("min",      "f32",         least),
  ("max",      "float",       "{S} m = (b < a) | (a != a); return ({T})((m & ({S})a) | (~m & ({S})b));"),
  ("max",      "int",         "{S} m = b < a; return ({T})((m & ({S})a) | (~m & ({S})b));"),
  ("cast",     "any>f16 bf16", None),
  ("cast",     "4-byte>bool", "({0} != 0)"),
  ("cast",     "i64 u64>bool", "return __builtin_convertvector(a | a >> 32, {T}) != 0;"),
  ("cast",     "any>bool",    "__builtin_convertvector(({0} != 0), {T})"),
  ("cast",     "bool>any",    "__builtin_convertvector((-{0}), {T})"),
  ("cast",     "i8 i16 u8 u16>i32 u32 f32", "__builtin_convertvector({B}, {T})"),
  ("cast",     "float>small", "__builtin_convertvector(__builtin_convertvector({0}, {M}), {T})"),
  ("cast",     "any>any",     "__builtin_convertvector({0}, {T})"),
  ("bitcast",  "int f32 f64>int f32 f64", "({T}){0}"),
  *((op, "f32", row) for op, row in NEAR.items()),
  ("pow",      "f32",         power_single),                  # twice as fast as with vectors of float64
  *(row for row in BY_BODY if row[0] != "pow"),
)

BITS = {
  "f16_to_f32":  "INLINE float f16_to_f32(unsigned short x) { _Float16 f; __builtin_memcpy(&f, &x, 2); return f; }",
  "f32_to_f16":  "INLINE unsigned short f32_to_f16(float f) { _Float16 h = f; unsigned short r; "
                 "__builtin_memcpy(&r, &h, 2); return r; }",
  "bf16_to_f32": "INLINE float bf16_to_f32(unsigned short x) { unsigned b = (unsigned)x << 16; float f; "
                 "__builtin_memcpy(&f, &b, 4); return f; }",
  "f32_to_bf16": "INLINE unsigned short f32_to_bf16(float f) { unsigned b; __builtin_memcpy(&b, &f, 4); " + TO_BF16,
  # gcc 12 takes the two conversions for none, where all elements of a vector pass them
  "round_f16":   "INLINE float round_f16(float x) {\n  _Float16 h = x;\n#ifdef __AVX512FP16__\n"
                 '  __asm__("" : "+v"(h));\n#endif\n  return h;\n}',
}

# The larger and the smaller of two vectors: b where they are equal or one is NaN, as x86's instructions have it. clang
# finds them in the expression; gcc 12 in a loop over elements, too, but that takes it a third of a kernel's time.
EXTREME = """
#if defined({macro}) && !defined(__clang__)
  return __builtin_ia32_{what}ps{rest};
#else
  {{M}} m = a {sign} b; return ({{T}})((m & ({{M}})a) | (~m & ({{M}})b));
#endif
"""
# where so many elements are a register, and how the names of gcc's functions go on
X86 = {4: ("__SSE__", "(a, b)"), 8: ("__AVX__", "256(a, b)"), 16: ("__AVX512F__", "512_mask(a, b, a, (short)-1, 4)")}

# A vector in registers, from one in memory, x, of which `ints` is the same as ints.
WIDE_LOADS = {
  dtypes.bool:     "return -{ints};",
  dtypes.bfloat16: "return ({T})({ints} << 16);",
  dtypes.float16:  """
#if defined(__F16C__) && (defined(__AVX512F__) || {width} < 16)
  {T} r; __asm__("vcvtph2ps %1, %0" : "=v"(r) : "m"({x})); return r; /* gcc 12 converts one at a time */
#else
  {I} x = {ints} << 16; {T} f = ({T})((x & 0x7fffffff) >> 3) * 0x1p112f; /* 112 lies between the exponents' biases */
  return ({T})(({I})f | (x & -0x7fffffff - 1) | ((f >= 65536.0f) & 0x7f800000)); /* inf and nan stay */
#endif
""",
}

WIDEN = """
#if defined(__clang__)
  return __builtin_convertvector(x, {I});
#elif {width} > 4 && (defined(__AVX512F__) && {width} <= 16 || defined(__AVX2__) && {width} <= 8)
  {I} r; __asm__("vpmov{extend}d %1, %0" : "=v"(r) : "vm"(x)); return r;
#elif __GNUC__ >= 12
  return {shuffles};
#else
  {I} r; for (int i = 0; i < {width}; i++) r[i] = x[i]; return r;
#endif
"""

# The elements where a mask, m, holds; memory is not touched where it does not. Of the loop gcc makes jumps in a kernel.
MASKED_LOAD = """
#if defined(__AVX512F__) && {nbytes} == 64
  {S} s = __builtin_convertvector(m, {S});
  unsigned short k; __asm__("vptestm{int} %1, %1, %0" : "=Yk"(k) : "v"(s));
  {T} r; __asm__("vmovup{float} %1, %0%{{%2%}}%{{z%}}" : "=v"(r) : "m"(*(const {U} *)p), "Yk"(k)); return r;
#elif defined(__AVX__) && ({nbytes} == 32 || {nbytes} == 16)
  {S} s = __builtin_convertvector(m, {S});
  {T} r; __asm__("vmaskmovp{float} %1, %2, %0" : "=x"(r) : "m"(*(const {U} *)p), "x"(s)); return r;
#else
  {T} r; for (int i = 0; i < {width}; i++) r[i] = m[i] ? p[i] : 0; return r;
#endif
"""
SUFFIX = {4: {"int": "d", "float": "s"}, 8: {"int": "q", "float": "d"}}  # of x86's instructions, by an element's bytes

ROUNDED = "return ((b + 0x7fff + (b >> 16 & 1)) & ~nan) | ((b | 0x400000) & nan);"  # TO_BF16 before its shift

# gcc 12 converts one number at a time
HALF = "#if defined(__F16C__) && (defined(__AVX512F__) || {width} < 16) && {width} "
WIDE_ROUND = HALF + """> 3
  {H} h; {T} r; __asm__("vcvtps2ph $0, %1, %0" : "=v"(h) : "v"(a));
  __asm__("vcvtph2ps %1, %0" : "=v"(r) : "v"(h)); return r;
#else
  {T} r; for (int i = 0; i < {width}; i++) r[i] = round_f16(a[i]); return r;
#endif
"""
WIDE_STORE = HALF + """> 4
  __asm__("vcvtps2ph $0, %1, %0" : "=m"(*({H}u *)p) : "v"(x));
#else
  for (int i = 0; i < {width}; i++) {one}
#endif
"""

PRELUDE = """#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
"""
# fmt: on


MASKS = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def extremes(width: int) -> tuple[Row, ...]:
  """What `extreme` finds, of vectors of `width` float32."""
  macro, rest = X86.get(width, ("__NO_REGISTER__", ""))
  text = partial(EXTREME.format, macro=macro, rest=rest)
  return ("larger", "f32", text(what="max", sign=">")), ("smaller", "f32", text(what="min", sign="<"))


def extreme(u: UOp) -> str:
  """Which of two numbers a choice by their order takes: "larger", "smaller"; "" for any other operation."""
  if u.op != "where" or u.src[0].op != "lt" or held(u.dtype) is not dtypes.float32:
    return ""
  less = u.src[0].src
  return "smaller" if u.src[1:] == less else "larger" if u.src[1:] == less[::-1] else ""


class Vectors(Spelling):
  """Vectors of `width` elements: their types, and how memory and single numbers become vectors."""

  def spell(self, u: UOp, width: int = 1) -> str:
    if (
      width > 1 and u.op in ("max", "min") and u.src[1].op == "const"
    ):  # of which it is known that it is no NaN
      return self.operation(u.op, (u.dtype, u.dtype), u.dtype, width).format("{1}", "{0}")
    if width == 1 or not (found := extreme(u)):
      return super().spell(u, width)
    return self.operation(found, (u.dtype, u.dtype), u.dtype, width).format("{1}", "{2}")

  def type(self, d: DType, width: int = 1) -> str:
    if width == 1:
      return super().type(d)
    d = held(d)
    name = f"{d.short}x{width}"
    if name not in self.helpers:
      self.helpers[name] = f"typedef {REGISTER[d]} {name} __attribute__((vector_size({d.itemsize * width})));"
    return name

  def unaligned(self, d: DType, width: int) -> str:
    """The same vector where memory holds it: at any address, of any type."""
    name = f"{d.short}x{width}u"
    if name not in self.helpers:
      how = f"vector_size({d.itemsize * width}), aligned({d.itemsize}), may_alias"
      self.helpers[name] = f"typedef {self.memory(d)} {name} __attribute__(({how}));"
    return name

  def widened(self, d: DType, width: int) -> str:
    """A function from vectors of 1 or 2 bytes to those of int: an instruction, which gcc 12 does not find (it takes the
    vector apart), or shuffles with 0."""
    name = f"int_{d.short}x{width}"
    if name not in self.helpers:
      t, ints = self.bits(d, width), self.type(dtypes.int32, width)
      body = WIDEN.format(
        width=width,
        extend=("sx" if d.kind == "i" else "zx") + ("b" if d.itemsize == 1 else "w"),
        shuffles=self.shuffled("x", d, width),
        I=ints,
      )
      self.helpers[name] = f"INLINE {ints} {name}({t} x) {{{body}}}"
    return name

  def shuffled(self, x: str, d: DType, width: int) -> str:
    """x, a vector of 1 or 2 bytes, as one of int: beside bytes that are 0, which a shift fills with a sign."""
    if d.itemsize == 4:
      return f"({self.type(dtypes.int32, width)}){x}"
    twice = MASKS[2 * d.itemsize] if d.kind == "i" else {1: dtypes.uint16, 2: dtypes.uint32}[d.itemsize]
    order = [(width, n) if d.kind == "i" else (n, width) for n in range(width)]
    made = f"SHUFFLE({x}, ({self.bits(d, width)}){{0}}, {', '.join(str(n) for pair in order for n in pair)})"
    made = f"(({self.bits(twice, width)}){made})"
    return self.shuffled(f"({made} >> {8 * d.itemsize})" if d.kind == "i" else made, twice, width)

  def bits(self, d: DType, width: int) -> str:
    """A vector's type where memory and registers agree on what an element is."""
    t = f"{d.short}x{width}"
    self.helpers.setdefault(
      t, f"typedef {REGISTER[d]} {t} __attribute__((vector_size({d.itemsize * width})));"
    )
    return t

  def slot(self, name: str, op: str, of: DType, d: DType, width: int) -> str:
    if name == "B":
      return f"{self.widened(of, width)}({{0}})"
    if name == "S":
      return self.type(MASKS[held(of).itemsize], width)
    return self.type(dtypes.bool, width) if name == "M" else super().slot(name, op, of, d, width)

  def splat(self, s: str, d: DType) -> str:
    w = self.lang.width
    t, name = self.type(d, w), f"splat_{held(d).short}x{w}"
    if name not in self.helpers:
      x = ", ".join(["x"] * w)
      self.helpers[name] = f"INLINE {t} {name}({REGISTER[held(d)]} x) {{ return ({t}){{{x}}}; }}"
    return f"{name}({'-' if d is dtypes.bool else ''}{s})"

  def load(self, p: str, i: str, d: DType, width: int = 1) -> str:
    if width == 1:
      return super().load(p, i, d)
    t = self.type(d, width)
    if d not in (dtypes.bool, dtypes.float16, dtypes.bfloat16):
      return f"({t})*(const {self.unaligned(d, width)}*)({p} + {i})"
    name = f"load_{d.short}x{width}"
    if name not in self.helpers:
      as_int, bits = self.type(dtypes.int32, width), dtypes.uint8 if d is dtypes.bool else dtypes.uint16
      x = f"*(const {self.unaligned(bits, width)} *)p"
      ints = f"{self.widened(bits, width)}({x})"
      body = WIDE_LOADS[d].format(T=t, I=as_int, x=x, ints=ints, width=width)
      self.helpers[name] = f"INLINE {t} {name}(const {self.memory(d)} *p) {{ {body} }}"
    return f"{name}({p} + {i})"

  def rounded(self, width: int) -> str:
    """A function from floats to words whose upper halves are bfloat16. (Of a loop over `f32_to_bf16` gcc 12 makes code
    that takes 1.6 times as long, clang 14 15 times.)"""
    words, name = self.type(dtypes.uint32, width), f"rounded_bf16x{width}"
    if name not in self.helpers:
      body = f"{words} b = ({words})a, nan = ({words})(a != a); " + ROUNDED
      self.helpers[name] = f"INLINE {words} {name}({self.type(dtypes.float32, width)} a) {{ {body} }}"
    return name

  def spaced(self, p: str, i: str, d: DType, width: int, step: int) -> str:
    """Backwards a vector that is turned around; of every second element two vectors, of which the second ends with the
    last one that is asked for."""
    if d in (dtypes.bool, dtypes.float16, dtypes.bfloat16):
      return ""
    last = width - 1
    word, first, second, order = {
      -1: ("backwards", -last, -last, range(last, -1, -1)),
      2: ("evens", 0, last, (*range(0, width, 2), *range(width + 1, 2 * width, 2))),
    }[step]
    t, u, name = self.type(d, width), self.unaligned(d, width), f"{word}_{d.short}x{width}"
    if name not in self.helpers:
      parts = ", ".join(f"{x} = ({t})*(const {u} *)(p + {n})" for x, n in (("a", first), ("b", second)))
      lanes = ", ".join(map(str, order))
      self.helpers[name] = f"""INLINE {t} {name}(const {self.memory(d)} *p) {{
  {t} {parts}; return SHUFFLE(a, b, {lanes});
}}"""
    return f"{name}({p} + {i})"

  def load_masked(self, p: str, i: str, mask: str, d: DType, width: int) -> str:
    if d.itemsize not in SUFFIX:
      return ""
    t, m, name = self.type(d, width), self.type(dtypes.bool, width), f"masked_{d.short}x{width}"
    if name not in self.helpers:
      types = {"T": t, "S": self.type(MASKS[d.itemsize], width), "U": self.unaligned(d, width)}
      body = MASKED_LOAD.format(**types, **SUFFIX[d.itemsize], nbytes=d.itemsize * width, width=width)
      self.helpers[name] = f"INLINE {t} {name}(const {self.memory(d)} *p, {m} m) {{{body}}}"
    return f"{name}({p} + {i}, {mask})"

  def store(self, p: str, i: str, x: str, d: DType, width: int = 1) -> str:
    if width == 1:
      return super().store(p, i, x, d)
    if d not in (dtypes.bool, dtypes.float16, dtypes.bfloat16):
      return f"*({self.unaligned(d, width)}*)({p} + {i}) = {x};"
    t, name = self.type(d, width), f"store_{d.short}x{width}"
    if name not in self.helpers and d is dtypes.bfloat16:
      half = f"__builtin_convertvector({self.rounded(width)}(x) >> 16, {self.bits(dtypes.uint16, width)})"
      body = f"*({self.unaligned(dtypes.uint16, width)} *)p = {half};"
      self.helpers[name] = f"INLINE void {name}({self.memory(d)} *p, {t} x) {{ {body} }}"
    elif name not in self.helpers:
      one = super().store("p", "i", "x[i] & 1" if d is dtypes.bool else "x[i]", d)
      body = f"for (int i = 0; i < {width}; i++) {one}"
      if d is dtypes.float16:
        self.unaligned(dtypes.uint16, width)
        body = "\n" + WIDE_STORE.format(H=f"u16x{width}", width=width, one=one)
      self.helpers[name] = f"INLINE void {name}({self.memory(d)} *p, {t} x) {{ {body} }}"
    return f"{name}({p} + {i}, {x});"

  def store_past(self, p: str, i: str, x: str, d: DType, width: int) -> str:
    nbytes = d.itemsize * width
    if d in (dtypes.bool, dtypes.float16, dtypes.bfloat16) or nbytes not in STREAM:
      return self.store(p, i, x, d, width)
    t, name = self.type(d, width), f"past_{d.short}x{width}"
    if name not in self.helpers:
      self.helpers[f"STREAM{nbytes}"] = STREAM[nbytes]
      body = (
        f"if ((unsigned long)p % {nbytes}) {self.store('p', '0', 'x', d, width)} else STREAM{nbytes}(p, x);"
      )
      self.helpers[name] = f"INLINE void {name}({self.memory(d)} *p, {t} x) {{ {body} }}"
    return f"{name}({p} + {i}, {x});"

  def each_lane(self, op: str, sources: tuple[DType, ...], d: DType, width: int, names: str) -> str:
    narrows = op == "cast" and held(sources[0]) is dtypes.float32
    if narrows and d is dtypes.bfloat16:
      return f"return ({self.type(d, width)})({self.rounded(width)}(a) & 0xffff0000u);"
    each = super().each_lane(op, sources, d, width, names)
    if narrows and d is dtypes.float16:
      half = self.type(dtypes.uint16, max(width, 8))  # of a whole register
      return "\n" + WIDE_ROUND.format(H=half, T=self.type(d, width), width=width)
    return each

  def near(self, row: Near, op: str, sources: tuple[DType, ...], d: DType, width: int) -> str:
    """The body for all lanes, and then the language's own function for each of those that are too large for it."""
    t, mask, name = self.type(d, width), self.type(dtypes.bool, width), f"{op}_near_x{width}"
    self.helpers[name] = f"INLINE {t} {name}({t} a) {{ {self.from_nodes(row.body, held(d), 'a', width)} }}"
    one = self.operation(op, sources, d).format("a[i]")
    far = f"{mask} far = ~((a < {row.within}f) & (a > -{row.within}f));"
    words = held(d).itemsize * width // 8
    some = f"long long w[{words}]; __builtin_memcpy(w, &far, sizeof w);"
    any_ = " | ".join(f"w[{n}]" for n in range(words))
    mend = f"for (int i = 0; i < {width}; i++) if (far[i]) r[i] = {one};"
    return f"{t} r = {name}(a); {far} {some} if (__builtin_expect(({any_}) != 0, 0)) {mend} return r;"


@lru_cache(None)
def C(width: int) -> Language:
  """C for vectors of `width` elements."""
  return Language(
    name="C",
    rows=(*SCALARS, *BASE),
    vector_rows=(*extremes(width), *VECTORS),
    speller=Vectors,
    width=width,
    types=REGISTER,
    storage=STORAGE,
    helpers={**HELPERS, **BITS, "FENCE": FENCE, "FUSED": FUSED, "AHEAD": AHEAD},
    fence="FENCE();",
    prefetch="__builtin_prefetch({p});",
    prefetch_store="__builtin_prefetch({p}, 1);",
    prefetch_stream="AHEAD({p}, 3);",
    prefetch_second="AHEAD({p}, 2);",
    prelude=PRELUDE,
    function="__builtin_{op}{f}",
    head="void {name}(void **args, long lo, long hi) {{\n{params}\n",
    param="  {const}{T} *{name} = args[{n}];",
    error="  long long *err = args[{n}];",
    between="\n",
    par="for (long {i} = lo; {i} < hi; {i}++) {{",
    raise_="if ({fails}) *err = ((long long){size} << 32) | ({index} & 0xffffffffL);",
    spaces={"stack": "{T} {name}[{n}] __attribute__((aligned(64)));"},
  )


def fitting(kernel: UOp, width: int) -> Language:
  """C for the vectors of a kernel."""
  return C(fitting_width(kernel, width))


def render(kernels: dict[str, UOp], width: int) -> str:
  """One translation unit with a function for each kernel, by name."""
  renderers = [cstyle.Renderer(k, fitting(k, width), name) for name, k in kernels.items()]
  return cstyle.link([(r.source(), r.helpers.items()) for r in renderers], PRELUDE)


__all__ = ["PRELUDE", "C", "fitting", "render"]
