"""OpenCL C 1.2, for any device: lanes are scalars, the parallel range is walked by the global index. On a processor
lanes are OpenCL's vectors, and a work-item, a group by itself, has one part of the range. (Its compiler makes vectors
of work-items, not of lanes: a 3x3 convolution, a tile of rows and lanes, took 20 times as long so as in C.)

  __kernel void NAME(__global T *a0_, long a0_at, ...)      any global size runs the whole kernel; a size of 1 serially

Memory is a buffer and an offset in bytes, for which a sub-buffer would need more alignment. A kernel that has local
ranges wants groups of just as many work-items; any number of groups runs the whole. Values are exchanged through local
memory: subgroups are no part of 1.2.

Needs no extension: float16 is stored as half and computed as float; float64 asks a device that has it. Accuracy is that
of table 8.1 of the specification (single precision, full profile): exp, exp2, log, log2 3 ulp, sin, cos 4, tanh, atan
5, rsqrt 2; fmod, rint, floor exact. erf, erfc and pow may be 16 ulp off there, expm1 3: they are
printed as bodies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from mini.ir.composites import power_single
from mini.ir.kernel import all_ranges
from mini.ir.uop import UOp, rkind
from mini.render.expressions import fitting_width
from mini.render.spelling import (
  BASE,
  HELPERS,
  TO_BF16,
  WRAPPING,
  Language,
  Row,
  Spelling,
  Threads,
  Wide,
  bodies,
  held,
)
from mini.types import DType, dtypes

# Without it, division may be 2.5 ulp off, and sqrt 3. For devices that have CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT.
BUILD = ("-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt")

# fmt: off
TYPES = {dtypes.bool: "int", dtypes.int8: "char", dtypes.int16: "short", dtypes.int32: "int", dtypes.int64: "long",
         dtypes.uint8: "uchar", dtypes.uint16: "ushort", dtypes.uint32: "uint", dtypes.uint64: "ulong",
         dtypes.float16: "float", dtypes.bfloat16: "float", dtypes.float32: "float", dtypes.float64: "double",
         dtypes.index: "long"}
STORAGE = {dtypes.bool: "uchar", dtypes.float16: "half", dtypes.bfloat16: "ushort"}

BODIES: tuple[Row, ...] = (
  ("pow",      "f32",         power_single),                  # float64, which the other body needs, is optional
  *bodies("exp log cos tanh atan pow rsqrt floor ceil trunc round abs min"),
)

ROWS: tuple[Row, ...] = (
  ("load",     "f16",         "vload_half({1}, {0})"),        # half is a type of memory alone
  ("store",    "f16",         "vstore_half({2}, {1}, {0});"), # to nearest even
  ("inf",      "float",       "({T})INFINITY"),
  ("nan",      "float",       "({T})NAN"),
  *BODIES,
  ("bitcast",  "f32 f64>int", "as_{T}({0})"),
  ("bitcast",  "int>f32 f64", "as_{T}({0})"),
  *WRAPPING,
  *BASE,
)

# Of vectors. What has no row here is spelled as of single numbers: operators and functions take both, and a choice by a
# vector is one for each lane. Rows without a spelling go lane by lane. A comparison gives 0 or -1 in as many bytes as
# its operands have, {S}; a bool has those of an int, {M}.   {N}: how many lanes   {V}: unsigned, as wide as the result
VECTORS: tuple[Row, ...] = (
  ("load",     "bool",        "(-convert_{T}(vload{N}(0, {0} + {1})))"),
  ("load",     "f16",         "vload_half{N}(0, {0} + {1})"),
  ("load",     "bf16",        "as_{T}(convert_uint{N}(vload{N}(0, {0} + {1})) << 16)"),
  ("load",     "any",         "vload{N}(0, {0} + {1})"),
  ("store",    "bool",        "vstore{N}(convert_uchar{N}({2} & 1), 0, {0} + {1});"),
  ("store",    "f16",         "vstore_half{N}({2}, 0, {0} + {1});"),
  ("store",    "bf16",        "vstore{N}(convert_ushort{N}(bf16_x{N}({2})), 0, {0} + {1});"),
  ("store",    "any",         "vstore{N}({2}, 0, {0} + {1});"),
  ("lt",       "bool",        "(~{0} & {1})"),
  ("ne",       "bool",        "({0} ^ {1})"),
  ("lt",       "4-byte",      "({0} < {1})"),
  ("ne",       "4-byte",      "({0} != {1})"),
  ("lt",       "any",         "convert_{M}({0} < {1})"),
  ("ne",       "any",         "convert_{M}({0} != {1})"),
  ("where",    "4-byte",      "({0} ? {1} : {2})"),
  ("where",    "any",         "(convert_{S}({0}) ? {1} : {2})"),
  ("add",      "signed",      "as_{T}(as_{V}({0}) + as_{V}({1}))"),
  ("mul",      "signed",      "as_{T}(as_{V}({0}) * as_{V}({1}))"),
  ("add",      "unsigned",    "({0} + {1})"),
  ("mul",      "unsigned",    "({0} * {1})"),
  ("and",      "int",         "({0} & {1})"),
  ("or",       "int",         "({0} | {1})"),
  ("xor",      "int",         "({0} ^ {1})"),
  ("abs",      "signed",      "as_{T}(abs({0}))"),
  ("div mod pow", "int",      None),
  ("cast",     "bool f64 i64 u64>f16 bf16", None),
  ("cast",     "any>f16",     ("ushort{N} h; vstore_half{N}(convert_{T}(a), 0, (half *)&h); "
                              "return vload_half{N}(0, (half *)&h);")),
  ("cast",     "any>bf16",    "as_{T}(bf16_x{N}(convert_{T}({0})) << 16)"),
  ("cast",     "4-byte>bool", "({0} != 0)"),
  ("cast bitcast", "any>bool", "convert_{T}({0} != (char)0)"),
  ("cast bitcast", "bool>any", "convert_{T}(-{0})"),
  ("cast",     "float>small", "convert_{T}(convert_{M}({0}))"),
  ("cast",     "any>any",     "convert_{T}({0})"),
  ("bitcast",  "int f32 f64>int f32 f64", "as_{T}({0})"),
  ("bitcast",  "any>any",     None),
  *BODIES,
  *BASE,
)
INTS = {1: "char", 2: "short", 4: "int", 8: "long"}
BF16 = "INLINE uint{N} bf16_x{N}(float{N} f) {{ uint{N} b = as_uint{N}(f); "
# Past the caches, where the address allows it
PAST = """INLINE void {name}(__global {T} *p, {V} x) {{
  if ((ulong)p % sizeof(x)) vstore{N}(x, 0, p); else __builtin_nontemporal_store(x, (__global {V} *)p);
}}"""
# Drivers of processors are made of clang. A product and a sum are rounded once as in C, also across statements; a part
# of the parallel range begins, and the next one, where PART says.
PRELUDE = """#pragma clang fp contract(fast)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PART(n, k) ((long)(n) * (long)(get_global_id(0) + k) / (long)get_global_size(0))
"""

BITS = {
  "f16_to_f32":  """INLINE float f16_to_f32(ushort x) {
  uint s = (uint)(x & 0x8000) << 16, e = x >> 10 & 31, m = x & 1023;
  return e == 0 ? as_float(as_uint(m * 0x1p-24f) | s) : \
as_float(s | (e == 31 ? 0x7f800000 : (e + 112) << 23) | m << 13);
}""",
  "f32_to_f16":  """INLINE ushort f32_to_f16(float x) {
  uint s = as_uint(x) >> 16 & 0x8000, a = as_uint(x) & 0x7fffffff;
  if (a > 0x7f800000) return s | 0x7e00;
  if (a >= 0x477ff000) return s | 0x7c00;
  if (a < 0x38800000) return s | (as_uint(as_float(a) + 0.5f) - 0x3f000000);
  return s | (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13;
}""",
  "bf16_to_f32": "INLINE float bf16_to_f32(ushort x) { return as_float((uint)x << 16); }",
  "f32_to_bf16": "INLINE ushort f32_to_bf16(float f) { uint b = as_uint(f); " + TO_BF16,
}
# fmt: on


def wide(d: DType, n: int) -> Wide:
  """vload and vstore take any address of an element; those of half convert."""
  if d is dtypes.float16:
    return Wide(n, f"float{n}", f"vload_half{n}(0, {{p}})", f"vstore_half{n}(x, 0, {{p}});")
  get, put = ("bf16_to_f32({0})", "f32_to_bf16({0})") if d is dtypes.bfloat16 else ("{0}", "{0}")
  t = (STORAGE.get(d) or TYPES[d]) + str(n)
  return Wide(n, t, f"vload{n}(0, {{p}})", f"vstore{n}(x, 0, {{p}});", get, put)


OPENCL = Language(
  name="OpenCL",
  rows=ROWS,
  types=TYPES,
  storage=STORAGE,
  staged={dtypes.float16: dtypes.float32},  # private memory cannot be half
  helpers={**HELPERS, **BITS},
  prelude="#define INLINE static inline\n",
  function="{op}",
  head="__kernel void {name}({params}) {{\n",
  param="__global {const}{T} *{name}_, long {name}_at",
  pointer="__global {const}{T} *{name} = (__global {const}{T} *)((__global {const}char *){name}_ + {name}_at);",
  error="__global long *err",
  between=", ",
  par="for ({I} {i} = get_global_id(0); {i} < {n}; {i} += get_global_size(0)) {{",
  raise_="if ({fails}) *err = ((long){size} << 32) | ({index} & 0xffffffffL);",
  wide={d: tuple(wide(d, n) for n in (4, 2) if n * d.itemsize <= 16) for d in TYPES if d is not dtypes.index},
  address={"param": "__global", "shared": "__local"},
  small_index="int",
  spaces={"stack": "{T} {name}[{n}];", "shared": "__local {T} {name}[{n}] __attribute__((aligned(16)));"},
  threads=Threads(
    head="__kernel __attribute__((reqd_work_group_size({threads}, 1, 1))) void {name}({params}) {{\n",
    number="const int t = get_local_id(0);",
    par="for ({I} {i} = get_group_id(0); {i} < {n}; {i} += get_num_groups(0)) {{",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    fence="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
  ),
)


class Vectors(Spelling):
  """OpenCL's vectors of 2, 4, 8 or 16 elements."""

  def type(self, d: DType, width: int = 1) -> str:
    return super().type(d) + (str(width) if width > 1 else "")

  def slot(self, name: str, op: str, of: DType, d: DType, width: int) -> str:
    if name == "N":
      return str(width)
    if name in "SMV":
      return ("u" if name == "V" else "") + INTS[4 if name == "M" else held(of).itemsize] + str(width)
    return super().slot(name, op, of, d, width)

  def vector(self, elements: Iterable[str], d: DType, width: int) -> str:
    return f"({self.type(d, width)})({', '.join(elements)})"

  def splat(self, s: str, d: DType) -> str:
    return self.vector(["-" * (d is dtypes.bool) + s], d, self.lang.width)

  def spaced(self, p: str, i: str, d: DType, width: int, step: int) -> str:
    last = width - 1
    if step == -1:
      return f"{self.load(p, f'{i} - {last}', d, width)}.s{''.join(f'{n:x}' for n in range(last, -1, -1))}"
    first, second = self.load(p, i, d, width), self.load(p, f"{i} + {last}", d, width)
    return self.vector([f"{first}.even", f"{second}.odd"], d, width)

  def store_past(self, p: str, i: str, x: str, d: DType, width: int) -> str:
    if d in STORAGE:
      return self.store(p, i, x, d, width)
    name = f"past_{d.short}x{width}"
    self.helpers.setdefault(name, PAST.format(name=name, T=self.type(d), V=self.type(d, width), N=width))
    return f"{name}({p} + {i}, {x});"


@lru_cache(None)
def on_processor(width: int) -> Language:
  """OpenCL for vectors of `width` elements."""
  return replace(
    OPENCL,
    vector_rows=VECTORS,
    speller=Vectors,
    width=width,
    helpers={**OPENCL.helpers, f"bf16_x{width}": BF16.format(N=width) + TO_BF16},
    prelude=OPENCL.prelude + PRELUDE,
    head="__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void {name}({params}) {{\n",
    par="for ({I} {i} = PART({n}, 0); {i} < PART({n}, 1); {i}++) {{",
    fence="mem_fence(CLK_GLOBAL_MEM_FENCE);",
    spaces={"stack": "{T} {name}[{n}] __attribute__((aligned(64)));"},
    threads=None,
    found={},
    words=set(),
  )


def fitting(kernel: UOp, width: int) -> Language:
  """OpenCL for a kernel on a processor, whose vector registers hold `width` elements."""
  grouped = any(rkind(r) == "local" for r in all_ranges(kernel))
  return OPENCL if grouped else on_processor(fitting_width(kernel, width))
