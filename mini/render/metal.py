"""Metal Shading Language 2.2 and later: lanes are scalars, the parallel range is walked by the thread's position.

  kernel void NAME(device T *a0 [[buffer(0)]], ...)      any grid runs the whole kernel; a single thread serially

A kernel that has local ranges wants threadgroups of just as many threads; any number of them runs the whole.

To be compiled with fast math off (`fastMathEnabled = NO`, -fno-fast-math): with it a compiler may assume that there is
no NaN. Accuracy is then that of the specification's section 8, table "single precision": exp, exp2, log, log2, sin, cos
4 ulp, tanh, atan 5; division, sqrt, rsqrt exact. pow may be 16 ulp off there, and erf, erfc and expm1 are missing:
they are printed as bodies. No Apple GPU has float64. Subnormal numbers may be flushed to zero (section 8.1).
"""

from __future__ import annotations

from mini.ir.composites import power_single
from mini.render.spelling import BASE, HELPERS, TO_BF16, WRAPPING, Language, Row, Threads, Wide, bodies
from mini.types import DType, dtypes

# fmt: off
TYPES = {dtypes.bool: "int", dtypes.int8: "char", dtypes.int16: "short", dtypes.int32: "int", dtypes.int64: "long",
         dtypes.uint8: "uchar", dtypes.uint16: "ushort", dtypes.uint32: "uint", dtypes.uint64: "ulong",
         dtypes.float16: "float", dtypes.bfloat16: "float", dtypes.float32: "float",
         dtypes.index: "long"}
STORAGE = {dtypes.bool: "uchar", dtypes.float16: "half", dtypes.bfloat16: "ushort"}  # bfloat needs Metal 3.1

ROWS: tuple[Row, ...] = (
  ("load",     "f16",         "float({0}[{1}])"),
  ("store",    "f16",         "{0}[{1}] = half({2});"),
  ("inf",      "float",       "INFINITY"),
  ("nan",      "float",       "NAN"),
  ("pow",      "f32",         power_single),
  ("shuffle",  "small",       "({T})simd_shuffle_xor((int){0}, {1})"),
  ("shuffle",  "i64 u64",     "({T})shuffle_u64((ulong){0}, {1})"),
  ("shuffle",  "any",         "simd_shuffle_xor({0}, {1})"),
  *bodies("exp log cos tanh atan pow rsqrt floor ceil trunc round abs min"),
  ("exp2 log2 sin sqrt exp log cos tanh atan rsqrt", "f32", "precise::{op}({0})"),  # whatever the build's default
  ("bitcast",  "f32>int",     "as_type<{T}>({0})"),
  ("bitcast",  "int>f32",     "as_type<{T}>({0})"),
  *WRAPPING,
  *BASE,
)

BITS = {
  "shuffle_u64": "INLINE ulong shuffle_u64(ulong x, ushort bit) { "
                 "return (ulong)simd_shuffle_xor((uint)(x >> 32), bit) << 32 | simd_shuffle_xor((uint)x, bit); }",
  "f16_to_f32":  "INLINE float f16_to_f32(ushort x) { return float(as_type<half>(x)); }",
  "f32_to_f16":  "INLINE ushort f32_to_f16(float x) { return as_type<ushort>(half(x)); }",
  "bf16_to_f32": "INLINE float bf16_to_f32(ushort x) { return as_type<float>((uint)x << 16); }",
  "f32_to_bf16": "INLINE ushort f32_to_bf16(float f) { uint b = as_type<uint>(f); " + TO_BF16,
}
# fmt: on


def wide(d: DType, n: int) -> Wide:
  """Packed vectors are aligned to an element."""
  get, put = ("bf16_to_f32({0})", "f32_to_bf16({0})") if d is dtypes.bfloat16 else ("{0}", "{0}")
  t = (STORAGE.get(d) or TYPES[d]) + str(n)
  load, store = f"{t}(*({{S}} const packed_{t} *)({{p}}))", f"*({{S}} packed_{t} *)({{p}}) = packed_{t}(x);"
  return Wide(n, t, load, store, get, put)


def product(t: str) -> str:
  """A SIMD-group's product of 8 x 8: of operands in t, in float."""
  filled = "".join(f"{x}.thread_elements()[{n}] = {x}{n}; " for x in "abc" for n in range(2))
  return (
    f"INLINE void mma_8x8_{t}(thread float &c0, thread float &c1, {t} a0, {t} a1, {t} b0, {t} b1) {{ "
    f"simdgroup_{t}8x8 a, b; simdgroup_float8x8 c; {filled}simdgroup_multiply_accumulate(c, a, b, c); "
    "c0 = c.thread_elements()[0]; c1 = c.thread_elements()[1]; }"
  )


METAL = Language(
  name="Metal",
  rows=ROWS,
  types=TYPES,
  storage=STORAGE,
  helpers={**HELPERS, **BITS, **{f"mma_8x8_{t}": product(t) for t in ("float", "half")}},
  prelude="#include <metal_stdlib>\nusing namespace metal;\n#define INLINE static inline\n",
  function="{op}",
  head=(
    "kernel void {name}({params}, uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {{\n"
  ),
  param="device {const}{T} *{name} [[buffer({n})]]",
  error="device long *err [[buffer({n})]]",
  between=", ",
  par="for ({I} {i} = id; {i} < {n}; {i} += ids) {{",
  raise_="if ({fails}) *err = ((long){size} << 32) | ({index} & 0xffffffffL);",
  wide={d: tuple(wide(d, n) for n in (4, 2)) for d in TYPES if d.itemsize <= 4},
  address={"param": "device", "shared": "threadgroup"},
  matrices={"8x8 f32": "mma_8x8_float({c}, {a}, {b});", "8x8 f16": "mma_8x8_half({c}, {a}, {b});"},
  small_index="int",
  spaces={"stack": "{T} {name}[{n}];", "shared": "threadgroup {T} {name}[{n}] __attribute__((aligned(16)));"},
  threads=Threads(
    head=(
      "kernel void {name}({params}, uint group [[threadgroup_position_in_grid]], "
      "uint groups [[threadgroups_per_grid]], uint t [[thread_index_in_threadgroup]]) {{\n"
    ),
    number="",
    par="for ({I} {i} = group; {i} < {n}; {i} += groups) {{",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup);",
    fence="threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
    warp=32,
  ),
  most_params=31,  # the buffers of a compute function's argument table
)
