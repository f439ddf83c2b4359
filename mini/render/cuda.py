"""CUDA C++ for NVRTC, without any header: lanes are scalars, the parallel range is walked by the thread's index.

  extern "C" __global__ void NAME(T *a0, ...)      any grid runs the whole kernel; a single thread serially

A kernel that has local ranges wants blocks of just as many threads; any number of blocks runs the whole.

float16 and bfloat16 are stored as their bits and computed as float. Accuracy is that of the CUDA C++ Programming Guide,
"Mathematical Functions" (single precision, neither -use_fast_math nor -ftz): exp2f, expf, log2f, tanhf, erff, sinf,
cosf, atanf, rsqrtf 2 ulp, logf, expm1f 1, powf 4; division, sqrtf and fmodf exact. So no body is needed but those of
erfc, for erfcf is 4 ulp off, and threefry.
"""

from __future__ import annotations

from mini.render.spelling import BASE, HELPERS, TO_BF16, WRAPPING, Language, Row, Threads, Wide, bodies
from mini.types import DType, dtypes

BUILD = ("--fmad=true", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")

# fmt: off
TYPES = {dtypes.bool: "int", dtypes.int8: "signed char", dtypes.int16: "short", dtypes.int32: "int",
         dtypes.int64: "long long", dtypes.uint8: "unsigned char", dtypes.uint16: "unsigned short",
         dtypes.uint32: "unsigned", dtypes.uint64: "unsigned long long",
         dtypes.float16: "float", dtypes.bfloat16: "float", dtypes.float32: "float", dtypes.float64: "double",
         dtypes.index: "long long"}  # a long has 32 bits on Windows
STORAGE = {dtypes.bool: "unsigned char", dtypes.float16: "unsigned short", dtypes.bfloat16: "unsigned short"}

ROWS: tuple[Row, ...] = (
  ("load",     "f16",         "f16_to_f32({0}[{1}])"),
  ("store",    "f16",         "{0}[{1}] = f32_to_f16({2});"),
  ("inf",      "f64",         "__longlong_as_double(0x7ff0000000000000LL)"),  # INFINITY needs a header
  ("inf",      "float",       "__int_as_float(0x7f800000)"),
  ("nan",      "f64",         "__longlong_as_double(0x7ff8000000000000LL)"),
  ("nan",      "float",       "__int_as_float(0x7fc00000)"),
  ("shuffle",  "small",       "({T})__shfl_xor_sync({2}, (int){0}, {1})"),
  ("shuffle",  "any",         "__shfl_xor_sync({2}, {0}, {1})"),
  *bodies("exp log cos tanh erf expm1 atan pow rsqrt floor ceil trunc round abs min"),
  ("bitcast",  "f32>i32 u32", "({T})__float_as_int({0})"),
  ("bitcast",  "f64>i64 u64", "({T})__double_as_longlong({0})"),
  ("bitcast",  "i32 u32>f32", "__int_as_float({0})"),
  ("bitcast",  "i64 u64>f64", "__longlong_as_double({0})"),
  *WRAPPING,
  *BASE,
)

BITS = {  # cuda_fp16.h is not in NVRTC's wheel
  "f16_to_f32":  'INLINE float f16_to_f32(unsigned short x) { float r; '
                 'asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x)); return r; }',
  "f32_to_f16":  'INLINE unsigned short f32_to_f16(float x) { unsigned short r; '
                 'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }',
  "bf16_to_f32": "INLINE float bf16_to_f32(unsigned short x) { return __int_as_float((unsigned)x << 16); }",
  "f32_to_bf16": "INLINE unsigned short f32_to_bf16(float f) { unsigned b = __float_as_int(f); " + TO_BF16,
}
# fmt: on

NAMES = {"signed char": "char", "unsigned char": "uchar", "unsigned short": "ushort", "unsigned": "uint",
         "long long": "longlong", "unsigned long long": "ulonglong"}  # fmt: skip
CODED = {
  dtypes.float16: ("f16_to_f32({0})", "f32_to_f16({0})"),
  dtypes.bfloat16: ("bf16_to_f32({0})", "f32_to_bf16({0})"),
}


def wide(d: DType, n: int) -> tuple[Wide, dict[str, str]]:
  """How n elements move, and the functions for it: a vector's address is a multiple of its size, and where it is not,
  its elements go one by one."""
  t = STORAGE.get(d) or TYPES[d]
  v = NAMES.get(t, t) + str(n)
  apart = f"(unsigned long long)p & {n * d.itemsize - 1}"
  loads = " ".join(f"r.{e} = p[{i}];" for i, e in enumerate("xyzw"[:n]))
  stores = " ".join(f"p[{i}] = x.{e};" for i, e in enumerate("xyzw"[:n]))
  functions = {
    f"load_{v}": f"INLINE {v} load_{v}(const {t} *p) "
    f"{{ {v} r; if ({apart}) {{ {loads} }} else r = *(const {v} *)p; return r; }}",
    f"store_{v}": f"INLINE void store_{v}({t} *p, {v} x) {{ if ({apart}) {{ {stores} }} else *({v} *)p = x; }}",
  }
  get, put = CODED.get(d, ("{0}", "{0}"))
  return Wide(n, v, f"load_{v}({{p}})", f"store_{v}({{p}}, x);", get, put), functions


WIDE = {d: [wide(d, n) for n in (4, 2) if n * d.itemsize <= 16] for d in TYPES if d is not dtypes.index}


def product(shape: str, kind: str, t: str) -> tuple[str, str]:
  """(name, function) of a matrix instruction whose operands arrive as t."""
  parameters = ", ".join([*(f"float &c{n}" for n in range(4)), *(f"{t} {x}" for x in PARTS)])
  values = ", ".join(f'"r"({x if t == "unsigned" else f"f32_to_tf32({x})"})' for x in PARTS)
  text = f"mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 "
  text += "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
  sums = ", ".join(f'"+f"(c{n})' for n in range(4))
  name = f"mma_{shape}_{kind}"
  return name, f'INLINE void {name}({parameters}) {{ asm volatile("{text}" : {sums} : {values}); }}'


PARTS = ("a0", "a1", "a2", "a3", "b0", "b1")
MATRICES = {  # from compute capability 8.0 on
  "m16n8k16 f16": product("m16n8k16", "f16", "unsigned"),
  "m16n8k16 bf16": product("m16n8k16", "bf16", "unsigned"),
  "m16n8k8 tf32": product("m16n8k8", "tf32", "float"),
}
TF32 = (
  "INLINE unsigned f32_to_tf32(float x) { unsigned r; "
  'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x)); return r; }'
)

CUDA = Language(
  name="CUDA",
  rows=ROWS,
  types=TYPES,
  storage=STORAGE,
  helpers={
    **HELPERS,
    **BITS,
    "f32_to_tf32": TF32,
    **dict(MATRICES.values()),
    **{name: f for ways in WIDE.values() for _, fs in ways for name, f in fs.items()},
  },
  prelude="#define INLINE static __device__ __forceinline__\n",
  function="{op}{f}",
  head='extern "C" __global__ void {name}({params}) {{\n',
  param="{const}{T} *{name}",
  error="long long *err",
  between=", ",
  par=(
    "for ({I} {i} = blockIdx.x * ({I})blockDim.x + threadIdx.x; {i} < {n}; "
    "{i} += gridDim.x * ({I})blockDim.x) {{"
  ),
  raise_="if ({fails}) *err = ((long long){size} << 32) | ({index} & 0xffffffffLL);",
  wide={d: tuple(w for w, _ in ways) for d, ways in WIDE.items()},
  address={"param": "", "shared": ""},
  matrices={name: f"{function}({{c}}, {{a}}, {{b}});" for name, (function, _) in MATRICES.items()},
  bits=True,
  small_index="int",
  spaces={"stack": "{T} {name}[{n}];", "shared": "__shared__ __align__(16) {T} {name}[{n}];"},
  threads=Threads(
    head='extern "C" __global__ void __launch_bounds__({threads}) {name}({params}) {{\n',
    number="const int t = threadIdx.x;",
    par="for ({I} {i} = blockIdx.x; {i} < {n}; {i} += gridDim.x) {{",
    barrier="__syncthreads();",
    fence="__syncthreads();",
    warp=32,
    nbytes=48 << 10,
  ),
  long="LL",
)
