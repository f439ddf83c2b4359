"""OpenCL C 1.2, for any device: lanes are scalars, the parallel range is walked by the global index.

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

from mini.ir.composites import COMPOSITES, power_single
from mini.render.spelling import BASE, HELPERS, TO_BF16, WRAPPING, Language, Row, Threads, Wide
from mini.types import DType, dtypes

# Without it, division may be 2.5 ulp off, and sqrt 3. For devices that have CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT.
BUILD = ("-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt")

# fmt: off
TYPES = {dtypes.bool: "int", dtypes.int8: "char", dtypes.int16: "short", dtypes.int32: "int", dtypes.int64: "long",
         dtypes.uint8: "uchar", dtypes.uint16: "ushort", dtypes.uint32: "uint", dtypes.uint64: "ulong",
         dtypes.float16: "float", dtypes.bfloat16: "float", dtypes.float32: "float", dtypes.float64: "double",
         dtypes.index: "long"}
STORAGE = {dtypes.bool: "uchar", dtypes.float16: "half", dtypes.bfloat16: "ushort"}

ROWS: tuple[Row, ...] = (
  ("load",     "f16",         "vload_half({1}, {0})"),        # half is a type of memory alone
  ("store",    "f16",         "vstore_half({2}, {1}, {0});"), # to nearest even
  ("inf",      "float",       "({T})INFINITY"),
  ("nan",      "float",       "({T})NAN"),
  *((op, "f32", COMPOSITES[op].body) for op in ("erf", "erfc", "expm1")),
  ("pow",      "f32",         power_single),                  # float64, which the other body needs, is optional
  ("threefry", "u32",         COMPOSITES["threefry"].body),
  ("threefry2", "u32",        COMPOSITES["threefry2"].body),
  ("bitcast",  "f32 f64>int", "as_{T}({0})"),
  ("bitcast",  "int>f32 f64", "as_{T}({0})"),
  *WRAPPING,
  *BASE,
)

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
