"""The emulation of CUDA, Metal and OpenCL: kernels written by hand compute what they mean,
and mistakes in them are found."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import threading
import weakref

import numpy as np
import pytest

from mini import Context, Tensor
from mini.types import dtypes, from_storage, to_storage
from runtime import emulate
from runtime.base import Call, DeviceError
from runtime.emulate import source as sources

CXX = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(CXX is None, reason="no C++ compiler found")
LANGUAGES = ("CUDA", "METAL", "CL")

# ---------------------------------------------------------------- one way to write a kernel for all three

HEADS = {
  "CUDA": 'extern "C" __global__ void {name}({params}) {{ const int t = threadIdx.x, g = blockIdx.x;',
  "METAL": "kernel void {name}({params}, uint g [[threadgroup_position_in_grid]], "
  "uint t [[thread_index_in_threadgroup]]) {{",
  "CL": "__kernel void {name}({params}) {{ {pointers} const int t = get_local_id(0), g = get_group_id(0);",
}
WORDS = {
  "CUDA": {"SHARED": "__shared__", "BARRIER": "__syncthreads();", "LONG": "long long"},
  "METAL": {
    "SHARED": "threadgroup",
    "BARRIER": "threadgroup_barrier(mem_flags::mem_threadgroup);",
    "LONG": "long",
  },
  "CL": {"SHARED": "__local", "BARRIER": "barrier(CLK_LOCAL_MEM_FENCE);", "LONG": "long"},
}
PRELUDES = {"CUDA": "", "METAL": "#include <metal_stdlib>\nusing namespace metal;\n", "CL": ""}


def written(language, name, params, body):
  """A kernel in this language. params: "float *c, const float *a"; body: with t and g, and the words of WORDS."""
  names = [p.strip().rpartition("*") for p in params.split(",")]
  pointers = ""
  if language == "METAL":
    params = ", ".join(f"device {t}*{p} [[buffer({n})]]" for n, (t, _, p) in enumerate(names))
  if language == "CL":
    params = ", ".join(
      f"__global {t}*{p}_, long {p}_at" if p != "err" else f"__global {t}*err" for t, _, p in names
    )
    pointers = " ".join(f"__global {t}*{p} = (__global {t}*)((__global char *){p}_ + {p}_at);"
                        for t, _, p in names if p != "err")  # fmt: skip
  text = HEADS[language].format(name=name, params=params, pointers=pointers) + body + "\n}\n"
  for word, spelled in WORDS[language].items():
    text = re.sub(rf"\b{word}\b", spelled, text)
  return text


def source_of(language, kernels):
  """{name: (params, body)} -> one source."""
  return PRELUDES[language] + "\n".join(written(language, name, *k) for name, k in kernels.items())


# 32 x 32 times 32 x 32, in groups of 16 x 16 threads, each of which computes one element.
MATMUL = """
  SHARED float x[16][16]; SHARED float y[16][16];
  const int i = t / 16, j = t % 16, row = g / 2 * 16 + i, column = g % 2 * 16 + j;
  float sum = 0;
  for (int k = 0; k < 32; k += 16) {
    x[i][j] = a[row * 32 + k + j]; y[i][j] = b[(k + i) * 32 + column];
    BARRIER
    for (int n = 0; n < 16; n++) sum += x[i][n] * y[n][j];
    BARRIER
  }
  c[row * 32 + column] = sum;"""
# Each group adds 256 numbers.
TREE = """
  SHARED float m[256];
  m[t] = a[g * 256 + t];
  BARRIER
  for (int n = 128; n > 0; n /= 2) { if (t < n) m[t] += m[t + n]; BARRIER }
  if (t == 0) c[g] = m[0];"""
COMMON = {
  "matmul": ("float *c, const float *a, const float *b", MATMUL),
  "tree": ("float *c, const float *a", TREE),
  "late": ("float *c, const float *a, const float *b", MATMUL.replace("BARRIER", "", 1)),
  "early": ("float *c, const float *a, const float *b", MATMUL[::-1].replace("REIRRAB", "", 1)[::-1]),
  "unordered": ("float *c, const float *a", TREE.replace("m[t + n]; BARRIER", "m[t + n];")),
  "unready": ("float *c, const float *a", TREE.replace("BARRIER", "", 1)),
  "add": ("float *c, const float *a, const float *b", "const int i = g * 64 + t; c[i] = a[i] + b[i];"),
  "past": ("float *c, const float *a", "const int i = g * 64 + t; c[i + 1] = a[i];"),
  "below": ("float *c, const float *a", "const int i = g * 64 + t; c[i] = a[i - 1];"),
  "fill": ("float *c", "for (int i = 0; i < 4; i++) c[t * 4 + i] = 7;"),
  "fails": ("float *c, LONG *err", "c[g * 64 + t] = t; if (t % 7 == 3) *err = t;"),
  "diverges": ("float *c", "if (t < 16) { BARRIER }\n  c[t] = 1;"),
  "parts": ("float *c", "if (t < 16) { BARRIER\n } else { BARRIER\n }\n  c[t] = 1;"),
  "overlap": ("float *c", "if (t < 32) c[g * 8 + t] = g * 8 + t;"),
  "meets": ("float *c", "c[t / 2] = t;"),
  "mixes": ("float *c", "c[t] = c[63 - t] + 1;"),
  "groups": ("float *c", "c[t] = g;"),
  "sees": ("float *c", "if (t == 0) c[g] = c[1];"),
  "index": ("float *c", "SHARED float m[32]; m[t] = 3; BARRIER c[t] = m[t];"),
  "large": ("float *c", "SHARED float m[13000]; m[t] = 3; c[t] = m[t];"),
  "poison": ("int *c", "SHARED int m[64]; c[t] = m[t];"),
  "order": ("int *c", "c[1 + c[0]] = g * 64 + t; c[0]++;"),
}


class Emulated:
  """Kernels on an emulated device."""

  def __init__(self, language, kernels, **options):
    self.device = emulate.open(language, **options)
    text = kernels if isinstance(kernels, str) else source_of(language, kernels)
    self.library = self.device.compile(text)

  def __call__(self, name, *arrays, groups=1, threads=64):
    """Runs it on these arrays; what becomes of the first."""
    self.blocks = [self.device.alloc(a.nbytes) for a in arrays]
    for block, a in zip(self.blocks, arrays):
      self.device.upload(block, a)
    args = [(n, 0) for n in range(len(arrays))]
    args += [(-1, 0)] if self.library[name].pointers > len(arrays) else []
    self.sequence = self.device.sequence([Call(self.library[name], args, groups, 0, threads)])
    self.sequence.run(self.blocks)
    return (
      self.device.download(self.blocks[0], arrays[0].nbytes).view(arrays[0].dtype).reshape(arrays[0].shape)
    )


@pytest.fixture(scope="module", params=LANGUAGES)
def plain(request):
  return Emulated(request.param, COMMON)


@pytest.fixture(scope="module", params=LANGUAGES)
def checked(request):
  return Emulated(request.param, COMMON, check=True)


@pytest.fixture
def ab(rng):
  return rng.standard_normal((2, 32, 32)).astype(np.float32)


def zeros(*shape):
  return np.zeros(shape, np.float32)


# ---------------------------------------------------------------- groups, barriers, shared memory


@pytest.mark.sample(3)
def test_matmul(plain, ab):
  for _ in range(5):
    got = plain("matmul", zeros(32, 32), *ab, groups=4, threads=256)
    np.testing.assert_allclose(got, ab[0] @ ab[1], rtol=1e-5, atol=1e-5)


def test_sums(plain, rng):
  a = rng.standard_normal((7, 256)).astype(np.float32)
  np.testing.assert_allclose(
    plain("tree", zeros(7), a, groups=7, threads=256), a.sum(1), rtol=1e-4, atol=1e-4
  )


@pytest.mark.parametrize("mutant", ["late", "early", "unordered", "unready"])
def test_without_a_barrier_the_result_is_wrong(plain, ab, mutant):
  if mutant in ("late", "early"):
    got = [plain(mutant, zeros(32, 32), *ab, groups=4, threads=256) for _ in range(3)]
    right = [np.allclose(x, ab[0] @ ab[1], rtol=1e-5, atol=1e-5) for x in got]
  else:
    got = [plain(mutant, zeros(4), ab[0], groups=4, threads=256) for _ in range(3)]
    right = [np.allclose(x, ab[0].reshape(4, 256).sum(1), rtol=1e-4, atol=1e-4) for x in got]
  assert not any(right)


def test_groups_and_threads_come_in_any_order(plain):
  first = plain("order", np.zeros(65, np.int32))[1:]
  assert sorted(first) == list(range(64)) and list(first) != sorted(first)
  assert (plain("order", np.zeros(65, np.int32))[1:] != first).any()
  # one of 128 orders is that of their numbers
  groups = [[*plain("order", np.zeros(17, np.int32), groups=16, threads=1)[1:] // 64] for _ in range(4)]
  assert all(sorted(g) == [*range(16)] for g in groups) and any(g != [*range(16)] for g in groups)


def test_equal_seeds_give_equal_orders():
  orders = [
    Emulated("CUDA", {"order": COMMON["order"]}, seed=seed)("order", np.zeros(65, np.int32))
    for seed in (1, 1, 2)
  ]
  assert (orders[0] == orders[1]).all() and (orders[0] != orders[2]).any()


def test_shared_memory_is_full_of_nans(plain):
  assert (plain("poison", np.zeros(64, np.int32)) == -1).all()


def test_the_error_word_waits_until_it_is_asked_for(plain):
  got = plain("fails", zeros(128), groups=2)
  assert (got == np.tile(np.arange(64), 2)).all()
  word = plain.sequence.error()
  assert word % 7 == 3 and plain.sequence.error() == 0


def test_a_divergent_barrier_is_an_error_and_the_next_launch_works(plain, ab):
  with pytest.raises(
    DeviceError, match=r"diverges: divergent barrier: of the 64 threads of group 0, 16 wait"
  ):
    plain("diverges", zeros(64))
  with pytest.raises(
    DeviceError, match=r"parts: divergent barrier: threads of a group wait in line \d+ and in line \d+"
  ):
    plain("parts", zeros(64))
  got = plain("matmul", zeros(32, 32), *ab, groups=4, threads=256)
  np.testing.assert_allclose(got, ab[0] @ ab[1], rtol=1e-5, atol=1e-5)


def test_what_a_group_may_have(plain):
  assert (plain("fill", zeros(4096), threads=1024) == 7).all()
  with pytest.raises(DeviceError, match="1025 threads in a group: it takes 1 to 1024"):
    plain("add", zeros(1025), zeros(1025), zeros(1025), threads=1025)
  with pytest.raises(DeviceError, match="takes 52000 bytes of shared memory; there are (49152|32768)"):
    plain("large", zeros(64))


def test_a_kernel_says_for_how_many_threads_it_is():
  cuda = Emulated(
    "CUDA", 'extern "C" __global__ void __launch_bounds__(32) f(float *a) { a[threadIdx.x] = 1; }'
  )
  assert cuda("f", zeros(8), threads=8).all()
  with pytest.raises(DeviceError, match="64 threads in a group: it takes 1 to 32"):
    cuda("f", zeros(64))
  text = "__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void f(__global float *a) { a[get_local_id(0)] = 1; }"
  with pytest.raises(DeviceError, match="8 threads in a group: it takes 32 to 32"):
    Emulated("CL", text)("f", zeros(8), threads=8)


# ---------------------------------------------------------------- check


@pytest.mark.sample(3)
def test_what_is_right_passes_the_check(checked, ab):
  got = checked("matmul", zeros(32, 32), *ab, groups=4, threads=256)
  np.testing.assert_allclose(got, ab[0] @ ab[1], rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(checked("tree", zeros(4), ab[0], groups=4, threads=256),
                             ab[0].reshape(4, 256).sum(1), rtol=1e-4, atol=1e-4)  # fmt: skip
  assert (
    checked("add", zeros(128), np.arange(128, dtype=np.float32), zeros(128), groups=2) == np.arange(128)
  ).all()
  assert (checked("overlap", zeros(40), groups=2) == np.arange(40)).all()  # tiles may: both write the same
  checked("fails", zeros(128), groups=2)  # all of them may set the error word
  assert checked.sequence.error() % 7 == 3


@pytest.mark.parametrize(
  "language, source",
  [
    ("CUDA", 'extern "C" __global__ void f() { }'),
    ("METAL", "kernel void f() { }"),
    ("CL", "__kernel void f() { }"),
  ],
)
def test_a_kernel_without_arguments_runs(language, source):
  found = Emulated(language, source)
  assert not found.device.sequence([Call(found.library["f"], [], 2, 0, 2)]).run([])


TILES = """#include <metal_stdlib>
using namespace metal;
kernel void f(device float *y [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
  const int i = t < 3 ? t * 4 : 9;
  *(device packed_float4 *)(y + i) = packed_float4(float4(%s, i + 1, i + 2, i + 3));
}"""


def test_vectors_that_overlap_in_some_elements():
  """Of which the others change, in whatever order the threads run."""
  got = Emulated("METAL", TILES % "i", check=True)("f", zeros(13), threads=4)
  np.testing.assert_array_equal(got, np.arange(13))
  with pytest.raises(
    DeviceError, match=r"a race: thread [23] of group 0 writes y\[9\], and thread [23] of group 0"
  ):
    Emulated("METAL", TILES % "t * 4", check=True)("f", zeros(13), threads=4)


@pytest.mark.parametrize("mutant", ["late", "early", "unordered", "unready"])
def test_without_a_barrier_there_is_a_race(checked, ab, mutant):
  many = mutant in ("late", "early")
  with pytest.raises(DeviceError, match=rf"{mutant}: a race: thread \d+ of group (\d) (reads|writes) [xym]\[\d+\], and "
                                        r"thread \d+ of group \1 (reads|writes) it"):  # fmt: skip
    checked(mutant, zeros(32, 32), *ab[: 2 if many else 1], groups=4, threads=256)


@pytest.mark.parametrize(
  "name, words",
  [
    ("meets", r"thread (\d+) of group 0 writes c\[\d+\], and thread (?!\1)\d+ of group 0 writes it"),
    ("mixes", r"thread \d+ of group 0 (reads c\[\d+\], and .* writes it|writes c\[\d+\], and .* reads it)"),
    ("groups", r"thread (\d+) of group (\d) writes c\[\1\], and thread \1 of group (?!\2)\d writes it"),
    ("sees", r"thread 0 of group \d (reads|writes) c\[1\]"),
  ],
)
def test_races_in_memory(checked, name, words):
  with pytest.raises(DeviceError, match=f"{name}: a race: {words}"):
    checked(name, zeros(64), groups=3 if name in ("groups", "sees") else 1)


def test_what_lies_outside(checked):
  with pytest.raises(DeviceError, match=r"past: thread 63 of group 1 writes 4 bytes at c\[128\], outside of all memory "
                                        r"that it was given: it has 128 elements"):  # fmt: skip
    checked("past", zeros(128), zeros(128), groups=2)
  with pytest.raises(DeviceError, match=r"below: thread 0 of group 0 reads 4 bytes at a\[-1\], outside"):
    checked("below", zeros(128), zeros(128), groups=2)
  with pytest.raises(
    DeviceError, match=r"index: thread \d+ of group 0, line \d+: index \d+ of an array 'float ?\[32\]'"
  ):
    checked("index", zeros(64))
  assert (checked("add", zeros(64), zeros(64), zeros(64)) == 0).all()


def test_offsets_into_one_block(checked):
  """Names and elements count from the pointer that was passed, races from the memory."""
  device, add = checked.device, checked.library["add"]
  block = device.alloc(4 * 192)
  device.upload(block, np.arange(192, dtype=np.float32))
  device.sequence([Call(add, [(0, 0), (0, 256), (0, 512)], 1, 0, 64)]).run([block])
  assert (device.download(block, 256).view(np.float32) == np.arange(64) * 2 + 192).all()
  with pytest.raises(DeviceError, match=r"at b\[63\], outside .* it has 63 elements"):
    device.sequence([Call(add, [(0, 0), (0, 256), (0, 516)], 1, 0, 64)]).run([block])
  with pytest.raises(DeviceError, match="a race: "):
    device.sequence([Call(add, [(0, 4), (0, 0), (0, 512)], 1, 0, 64)]).run([block])


def test_a_vector_at_a_wrong_address():
  text = 'extern "C" __global__ void f(float *a) { *(float4 *)(a + 1) = make_float4(1, 2, 3, 4); }'
  assert (Emulated("CUDA", text)("f", zeros(8), threads=1) == [0, 1, 2, 3, 4, 0, 0, 0]).all()
  if "clang" not in str(CXX):  # which does not check what it copies as a whole
    with pytest.raises(DeviceError, match=r"a\[1\] is no multiple of 16 bytes, the alignment of '.*float4'"):
      Emulated("CUDA", text, check=True)("f", zeros(8), threads=1)


def test_without_the_check_guards_see_what_is_written_past_the_end(plain):
  with pytest.raises(DeviceError, match="past wrote outside of its memory, a block of 512 bytes"):
    plain("past", zeros(128), zeros(128), groups=2)


# ---------------------------------------------------------------- exchanges within a warp

WARP = {
  "CUDA": {
    "every": "__shfl_xor_sync(0xffffffff, x, 1 << n)",
    "all_of": "for (int n = 16; n; n /= 2) s += __shfl_down_sync(0xffffffff, s, n); "
    "s = __shfl_sync(0xffffffff, s, 0); const int votes = __ballot_sync(0xffffffff, x < 0.5f);",
  },
  "METAL": {
    "every": "simd_shuffle_xor(x, 1 << n)",
    "all_of": "s = simd_sum(s); const int votes = simd_sum(x < 0.5f ? 1 << t % 32 : 0);",
  },
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("language", WARP)
@pytest.mark.parametrize("check", [False, True])
def test_exchanges_within_a_warp(language, check, rng):
  words = WARP[language]
  kernels = {
    "butterfly": ("float *c, const float *a",
                  f"float x = a[t]; for (int n = 0; n < 5; n++) x += {words['every']}; c[t] = x;"),
    "warps": ("float *c, int *v, const float *a",
              f"float x = a[t], s = x; {words['all_of']} c[t] = s; v[t] = votes;"),
    "some": ("float *c, const float *a", f"float x = a[t]; const int n = 0; if (t < 16) x += {words['every']}; c[t] = x;"),
  }  # fmt: skip
  run = Emulated(language, kernels, check=check)
  for threads in (32, 96):
    a = rng.random(threads, np.float32)
    sums = np.repeat(a.reshape(-1, 32).sum(1), 32)
    np.testing.assert_allclose(run("butterfly", zeros(threads), a, threads=threads), sums, rtol=1e-5)
    votes = np.zeros(threads, np.int32)
    np.testing.assert_allclose(run("warps", zeros(threads), votes, a, threads=threads), sums, rtol=1e-5)
    got = run.device.download(run.blocks[1], votes.nbytes).view(np.uint32)
    want = ((a.reshape(-1, 32) < 0.5) << np.arange(32, dtype=np.uint64)).sum(1)
    assert (got.reshape(-1, 32) == want[:, None]).all()
  np.testing.assert_allclose(
    run("butterfly", zeros(4), a[:4], threads=4)[0], a[:4].sum() * 8, rtol=1e-5
  )  # a small warp
  with pytest.raises(
    DeviceError, match="divergent barrier: .* 16 for the other lanes of their warp, and 16 have ended"
  ):
    run("some", zeros(32), a, threads=32)


# ---------------------------------------------------------------- matrices

MMA = """
INLINE void mma_NAME(float *d, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.SHAPE.row.col.f32.TYPE.TYPE.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
"""
# 16 x 16 times 16 x 8 of 16-bit numbers, and 16 x 8 times 8 x 8 of 32-bit ones: rows of a, columns of b
HALVES = """
  const unsigned short *x = (const unsigned short *)a, *y = (const unsigned short *)b;
  const int row = t / 4, k = t % 4 * 2;
  unsigned p[4], q[2];
  for (int i = 0; i < 4; i++) p[i] = *(const unsigned *)(x + (row + i % 2 * 8) * 16 + k + i / 2 * 8);
  for (int i = 0; i < 2; i++) q[i] = *(const unsigned *)(y + row * 16 + k + i * 8);
"""
SINGLES = """
  const int row = t / 4, k = t % 4;
  unsigned p[4], q[2];
  for (int i = 0; i < 4; i++) p[i] = rounded(a[(row + i % 2 * 8) * 8 + k + i / 2 * 4]);
  for (int i = 0; i < 2; i++) q[i] = rounded(b[row * 8 + k + i * 4]);
"""
RESULT = """
  float d[4];
  for (int i = 0; i < 4; i++) d[i] = c[(t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2];
  mma_NAME(d, p, q);
  for (int i = 0; i < 4; i++) c[(t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = d[i];"""
ROUNDED = """
#define INLINE static __device__ __forceinline__
INLINE unsigned rounded(float x) { unsigned r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x)); return r; }
"""


def mma(name, shape, loads):
  helper = MMA.replace("NAME", name).replace("SHAPE", shape).replace("TYPE", name)
  return helper + written(
    "CUDA", name, "float *c, const float *a, const float *b", loads + RESULT.replace("NAME", name)
  )


def test_matrices_of_a_warp(rng):
  """PTX's mma, with the parts of each lane as its manual lays them out."""
  run = Emulated("CUDA", ROUNDED + mma("f16", "m16n8k16", HALVES) + mma("bf16", "m16n8k16", HALVES)
                 + mma("tf32", "m16n8k8", SINGLES), check=True)  # fmt: skip
  for name, dtype in (("f16", dtypes.float16), ("bf16", dtypes.bfloat16), ("tf32", dtypes.float32)):
    k = 8 if name == "tf32" else 16
    c, x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 8), (16, k), (8, k)))
    a, b = (np.ascontiguousarray(to_storage(z, dtype)) for z in (x, y))
    got = run(name, c, a.view(np.float32), b.view(np.float32), threads=32)
    want = c + from_storage(a, dtype).astype(np.float32) @ from_storage(b, dtype).astype(np.float32).T
    rough = 2e-3 if name == "tf32" else 1e-5
    np.testing.assert_allclose(got, want, rtol=rough, atol=4 * rough)
    assert name != "tf32" or np.abs(got - want).max() > 1e-6  # 10 bits of mantissa


SIMDGROUP = """#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
kernel void product(device float *c [[buffer(0)]], device const float *a [[buffer(1)]], device const float *b [[buffer(2)]],
                    uint group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float m[64] __attribute__((aligned(16)));
  simdgroup_float8x8 x, y, sum = simdgroup_float8x8(0.0f);
  for (int k = 0; k < 32; k += 8) {
    for (int i = t; i < 64; i += 32) m[i] = a[i / 8 * 32 + k + i % 8];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(x, (threadgroup const float *)m, 8);
    simdgroup_load(y, b + k * 8, 8);
    simdgroup_multiply_accumulate(sum, x, y, sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  simdgroup_store(sum, c, 8);
}
kernel void elements(device float *c [[buffer(0)]], device const half *a [[buffer(1)]], device const half *b [[buffer(2)]],
                     uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_half8x8 x, y;
  simdgroup_load(x, a, 8);
  simdgroup_load(y, b, 8, ulong2(0, 0), true);
  x.thread_elements()[0] *= 2;
  x.thread_elements()[1] *= 2;
  simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  simdgroup_multiply_accumulate(sum, x, y, sum);
  const uint row = (lane / 4 & 4) + lane / 2 % 4, column = (lane / 2 & 4) + lane % 2 * 2;
  c[row * 8 + column] = sum.thread_elements()[0];
  c[row * 8 + column + 1] = sum.thread_elements()[1];
}
"""


def test_matrices_of_a_simdgroup(rng):
  run = Emulated("METAL", SIMDGROUP, check=True)
  a, b = rng.standard_normal((8, 32)).astype(np.float32), rng.standard_normal((32, 8)).astype(np.float32)
  np.testing.assert_allclose(run("product", zeros(8, 8), a, b, threads=32), a @ b, rtol=1e-5, atol=1e-5)
  a, b = rng.standard_normal((2, 8, 8)).astype(np.float16)
  want = 1 + 2 * a.astype(np.float32) @ b.astype(np.float32).T
  np.testing.assert_allclose(run("elements", zeros(8, 8), a, b, threads=32), want, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------- numbers and vectors

HALF_CASTS = """#define INLINE static __device__ __forceinline__
INLINE float wide(unsigned short x) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x)); return r; }
INLINE unsigned short narrow(float x) { unsigned short r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
"""
CONVERSIONS = {  # (type in memory, widening, rounding)
  "CUDA": ("unsigned short", "y[i] = wide(x[i]);", "y[i] = narrow(x[i]);"),
  "METAL": ("half", "y[i] = float(x[i]);", "y[i] = half(x[i]);"),
  "CL": ("half", "y[i] = vload_half(i, x);", "vstore_half(x[i], i, y);"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_float16(language):
  half, widen, narrow = CONVERSIONS[language]
  text = source_of(language, {
    "widen": (f"float *y, const {half} *x", "const int i = g * 64 + t; " + widen),
    "narrow": (f"{half} *y, const float *x", "const int i = g * 64 + t; " + narrow),
  })  # fmt: skip
  run = Emulated(language, HALF_CASTS + text if language == "CUDA" else text)
  bits = np.arange(1 << 16).astype(np.uint16)
  want = bits.view(np.float16).astype(np.float32)
  got = run("widen", zeros(1 << 16), bits, groups=1 << 10)
  nan = np.isnan(want)
  assert (got.view(np.uint32)[~nan] == want.view(np.uint32)[~nan]).all() and np.isnan(got[nan]).all()
  exact = np.unique(want[np.isfinite(want)])
  middle = (exact[1:] + exact[:-1]) / 2  # which go to the even one of their neighbours
  x = [exact, middle, np.nextafter(middle, -9), np.nextafter(middle, 9), np.float32([np.inf, -1e9, 65520])]
  x = np.concatenate(x).astype(np.float32)
  x = np.concatenate([x, np.zeros(-x.size % 64, np.float32)])
  got = run("narrow", np.zeros(x.size, np.uint16), x, groups=x.size // 64)
  with np.errstate(over="ignore"):
    assert (got == x.astype(np.float16).view(np.uint16)).all()


VECTORS = {
  "CUDA": """extern "C" __global__ void sums(float *y, const float *x, const unsigned short *n) {
  const int i = threadIdx.x * 4;
  float4 a = *(const float4 *)(x + i), s;
  ushort4 k = *(const ushort4 *)(n + i);
  s.x = a.x + k.x; s.y = a.y + k.y; s.z = a.z + k.z; s.w = a.w + k.w;
  *(float4 *)(y + i) = s;
}""",
  "METAL": """#include <metal_stdlib>
using namespace metal;
kernel void sums(device float *y [[buffer(0)]], device const float *x [[buffer(1)]], device const ushort *n [[buffer(2)]],
                 uint t [[thread_index_in_threadgroup]]) {
  const int i = t * 4;
  float4 a = float4(*(device const packed_float4 *)(x + i)), b;
  ushort4 k = ushort4(*(device const packed_ushort4 *)(n + i));
  b.x = k.x; b.y = k.y; b.z = k.z; b.w = k.w;
  *(device packed_float4 *)(y + i) = packed_float4(a + b * 1.0f);
}""",
  "CL": """__kernel void sums(__global float *y, __global const float *x, __global const ushort *n) {
  const int i = get_local_id(0) * 4;
  float4 a = vload4(0, x + i);
  ushort4 k = vload4(get_local_id(0), n);
  vstore4(a + (float4)(k.x, k.y, k.z, k.w), 0, y + i);
}""",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("check", [False, True])
def test_vectors(language, check, rng):
  run = Emulated(language, VECTORS[language], check=check)
  x, n = rng.random(32, np.float32), np.arange(32, dtype=np.uint16)
  assert (run("sums", zeros(32), x, n, threads=8) == x + n).all()
  with pytest.raises(DeviceError, match=r"outside of all memory" if check else "wrote outside"):
    run("sums", zeros(31), x, n, threads=8)


# ---------------------------------------------------------------- the source


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_source_stays_line_by_line(language):
  text = source_of(language, COMMON) + (
    ROUNDED + mma("f16", "m16n8k16", HALVES) if language == "CUDA" else ""
  )
  lines, kept = text.splitlines(), sources.rewrite(text, language).splitlines()
  changed = {line for line, now in zip(lines, kept) if line != now}
  assert all(re.search(r"__shared__|__local|threadgroup|asm|^ *[:\"]|#include", line) for line in changed)
  assert all(line.startswith("EMULATE_KERNEL(") for line in kept[len(lines) :] if line)


def test_what_does_not_compile_is_an_error_with_the_line():
  with pytest.raises(DeviceError, match=r"(?s)the C compiler failed.*<stdin>:2:\d+: error: .*nonsense"):
    Emulated("CUDA", 'extern "C" __global__ void f(float *a) {\nnonsense; }')
  with pytest.raises(DeviceError, match="error"):  # an address space is no name
    Emulated(
      "METAL",
      "kernel void f(device float *a [[buffer(0)]], uint thread [[thread_position_in_grid]]) { a[thread] = 1; }",
    )


COMPILERS = [cc for cc in ("g++", "clang++", "clang++-19") if shutil.which(cc)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("cc", [*COMPILERS, *(f"{cc} -DEMULATE_UCONTEXT" for cc in COMPILERS[:1])])
def test_compilers(cc, ab):
  """Each that is here, and the way to switch stacks on processors that have none of their own."""
  for language, check in (("CUDA", False), ("METAL", True)):
    run = Emulated(language, COMMON, cc=cc, check=check)
    got = run("matmul", zeros(32, 32), *ab, groups=4, threads=256)
    np.testing.assert_allclose(got, ab[0] @ ab[1], rtol=1e-5, atol=1e-5)
    with pytest.raises(DeviceError, match="divergent barrier"):
      run("diverges", zeros(64))
    if check:
      with pytest.raises(DeviceError, match="a race"):
        run("late", zeros(32, 32), *ab, groups=4, threads=256)


def test_a_library_by_itself(tmp_path, ab):
  """As what stands in for a driver uses it."""
  path = tmp_path / "kernels.so"
  path.write_bytes(emulate.build(source_of("CL", COMMON), "CL", check=True))
  code = ctypes.CDLL(str(path))
  code.emulate_failure.restype = ctypes.c_char_p
  y, x, zero = zeros(64), np.arange(65, dtype=np.float32), 4
  values = [y.ctypes.data, 0, x.ctypes.data, zero, x.ctypes.data, 0]
  packed = (ctypes.c_longlong * 6)(*values)
  args = (ctypes.c_void_p * 6)()
  code.add__unpack(packed, args)
  assert list(args) == [ctypes.addressof(packed) + 8 * n for n in range(6)]
  grid, block = (ctypes.c_uint * 3)(1, 1, 1), (ctypes.c_uint * 3)(64, 1, 1)
  code.emulate_seed(5)
  code.add__launch(grid, block, args)
  assert code.emulate_failure() == b"" and (y == 2 * x[:64] + 1).all()
  starts, sizes = (ctypes.c_void_p * 2)(y.ctypes.data, x.ctypes.data), (ctypes.c_long * 2)(y.nbytes, 16)
  code.emulate_extents(ctypes.c_long(2), starts, sizes)
  code.add__launch(grid, block, args)
  assert b"add: thread" in code.emulate_failure() and code.emulate_failure() == b""


# ---------------------------------------------------------------- the shim


@pytest.fixture
def device():
  return emulate.open("CUDA")


def test_devices_that_there_are():
  with pytest.raises(DeviceError, match="no emulation of VULKAN: there is one of CUDA, METAL, CL"):
    emulate.open("VULKAN")
  with pytest.raises(DeviceError, match="CUDA:4: 4 devices are emulated"):
    emulate.open("CUDA", 4)
  for language in LANGUAGES:
    info = emulate.open(language, 3).info
    assert info.name == language and info.kind == "gpu" and info.group == 1024
    assert info.warp == (1 if language == "CL" else 32) and ("float64" in info.dtypes) == (
      language != "METAL"
    )


def test_memory_is_aligned_poisoned_and_copied(device):
  for nbytes in (0, 1, 255, 4096):
    a, b = device.alloc(nbytes), device.alloc(nbytes)
    assert a.address % 256 == 0 and (device.download(a, nbytes) == 0xA5).all()
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    device.upload(a, data.tobytes())
    device.copy(b, a, nbytes)
    assert (device.download(b, nbytes) == data).all()
  device.upload(b, np.float32([3, 4]), offset=8)
  assert (device.download(b, 8, offset=8).view(np.float32) == [3, 4]).all() and (
    device.download(b, 8) == data[:8]
  ).all()
  device.wait()


def test_memory_that_is_used_wrongly(device):
  block, other = device.alloc(64), emulate.open("CUDA").alloc(64)
  with pytest.raises(DeviceError, match="upload to bytes 32 to 72 of a block of 64"):
    device.upload(block, np.zeros(40, np.uint8), offset=32)
  with pytest.raises(DeviceError, match="download from bytes 0 to 65"):
    device.download(block, 65)
  with pytest.raises(DeviceError, match="copy to bytes 0 to 100"):
    device.copy(block, device.alloc(200), 100)
  for foreign in (other, None):
    with pytest.raises(DeviceError, match="is no memory of this CUDA device"):
      device.download(foreign, 4)
  device.free(block)
  for use in (device.free, lambda b: device.download(b, 4), lambda b: device.upload(b, b"x")):
    with pytest.raises(DeviceError, match="is used after it was freed"):
      use(block)


def test_memory_is_counted_and_ends():
  device = emulate.open("CUDA")
  a = device.alloc(1000)
  b = device.alloc(24)
  del a
  assert device.counters["bytes_allocated"] == 1024 == device.counters["bytes_peak"]
  assert device.counters["bytes_held"] == 24 == device.live
  device.free(b)
  with pytest.raises(MemoryError, match="cannot allocate 1,099,511,627,776 bytes: 0 of"):
    device.alloc(1 << 40)
  assert device.counters["bytes_held"] == 0


class Kept:
  """A cache of files in a folder."""

  def __init__(self, folder):
    self.folder, self.paths = folder, {}

  def get(self, key):
    return self.paths.get(key)

  def put(self, key, data):
    path = self.folder / f"{len(self.paths)}.so"
    path.write_bytes(data)
    self.paths[key] = str(path)
    return self.paths[key]


def test_compiled_code_is_kept(tmp_path):
  cache = Kept(tmp_path)
  kernels = {"add": COMMON["add"]}
  for check, compiles, hits in ((False, 1, 0), (False, 0, 1), (True, 1, 0), (True, 0, 1)):
    device = emulate.open("METAL", cache=cache, check=check)
    run = device.compile_all([source_of("METAL", kernels)] * 2)
    assert run[0] is run[1] and run[0]["add"].name == "add"
    assert (device.counters["compiles"], device.counters["disk_hits"]) == (compiles, hits)
  sources_ = [source_of("METAL", {"add": ("float *c", f"c[t] = {n};")}) for n in range(3)]
  assert len(set(device.compile_all(sources_))) == 3 and device.counters["compiles"] == 3


# ---------------------------------------------------------------- sequences

STEPS = source_of("CUDA", {
  "double_": ("float *c", "c[t] = c[t] * 2;"),
  "bump": ("float *c", "c[t] = c[t] + 1;"),
  "copy": ("float *c, const float *a", "c[t] = a[t];"),
})  # fmt: skip


def calls_of(lib, *rows):
  """(kernel, slots, queue, waits)"""
  return [
    Call(lib[name], [(s, 0) for s in slots], 1, 0, 64, queue, waits, name)
    for name, slots, queue, waits in rows
  ]


@pytest.mark.parametrize("options", [{}, {"delay": 0.003}])
def test_queues_keep_the_order_that_is_promised_and_no_other(options):
  results, kept = set(), set()
  device = emulate.open("CUDA", **options)
  lib = device.compile(STEPS)
  block = device.alloc(256)
  for turn in range(200):  # the order is drawn: one of the two may come many times in a row
    free = device.sequence(calls_of(lib, ("bump", [0], 0, ()), ("double_", [0], 1, ())))
    tied = device.sequence(calls_of(lib, ("bump", [0], 1, ()), ("double_", [0], 2, (0,)), ("bump", [0], 2, ()),
                                    ("double_", [0], 0, (2, 1))))  # fmt: skip
    for sequence, found in ((free, results), (tied, kept)):
      device.upload(block, np.ones(64, np.float32))
      assert sequence.run([block]) == 0
      found.add(float(device.download(block, 4).view(np.float32)[0]))
    if turn >= 7 and len(results) == 2:
      break
  assert results == {3, 4} and kept == {10}


@pytest.mark.parametrize("options", [{}, {"delay": 0.001}])
def test_the_check_finds_calls_that_nothing_orders(options):
  device = emulate.open("CUDA", check=True, **options)
  lib = device.compile(STEPS)
  blocks = [device.alloc(512) for _ in range(3)]

  def run(*rows):
    device.sequence(
      [c._replace(args=[(s // 2, s % 2 * 256) for s, _ in c.args]) for c in calls_of(lib, *rows)]
    ).run(blocks)

  for first, second in (
    (("bump", [0]), ("copy", [0, 2])),
    (("copy", [2, 0]), ("bump", [0])),
    (("bump", [0]), ("bump", [0])),
  ):
    words = r"\w+ \(call 0\) and \w+ \(call 2\) touch byte 0 of one block, one of them writes, and nothing orders them"
    with pytest.raises(DeviceError, match=words):
      run((*first, 0, ()), ("bump", [4], 1, ()), (*second, 1, ()))
    run((*first, 0, ()), ("bump", [4], 1, (0,)), (*second, 1, ()))
  run(
    ("copy", [2, 0], 0, ()), ("copy", [4, 0], 1, ()), ("bump", [1], 2, ()), ("bump", [3], 3, ())
  )  # other bytes


@pytest.mark.parametrize("options", [{}, {"delay": 0.001}])
def test_a_failure_ends_a_sequence(options):
  device = emulate.open("CUDA", **options)
  lib = device.compile(STEPS + written("CUDA", "diverges", *COMMON["diverges"]))
  block = device.alloc(256)
  s = device.sequence(calls_of(lib, ("bump", [0], 0, ()), ("diverges", [0], 1, ()), ("bump", [0], 2, (1,))))
  for _ in range(3):
    with pytest.raises(DeviceError, match="divergent barrier"):
      s.run([block])
  device.sequence(calls_of(lib, ("bump", [0], 0, ()))).run([block])


def test_sequences_that_cannot_be(device):
  lib = device.compile(STEPS)
  with pytest.raises(DeviceError, match="copy takes 2 buffers, and is called with 1"):
    device.sequence(calls_of(lib, ("copy", [0], 0, ())))
  with pytest.raises(DeviceError, match="bump is call 1: it cannot wait for 1, but for earlier ones"):
    device.sequence(calls_of(lib, ("bump", [0], 0, ()), ("bump", [0], 1, (1,))))
  s = device.sequence(calls_of(lib, ("bump", [1], 0, ())))
  block = device.alloc(256)
  device.free(block)
  with pytest.raises(DeviceError, match="used after it was freed"):
    s.run([device.alloc(256), block])


def test_runs_and_times(device):
  lib = device.compile(STEPS)
  a, b, done = device.alloc(256), device.alloc(256), []
  device.upload(a, np.arange(64, dtype=np.float32))
  s = device.sequence(calls_of(lib, ("copy", [1, 0], 0, ()), ("bump", [1], 0, ())))
  assert s.run([a, b], done) == 0 == s.error() and done == [0]
  assert (device.download(b, 256).view(np.float32) == np.arange(64) + 1).all()
  word, seconds = s.timed([b, a])
  assert word == 0 and len(seconds) == 2 and all(x > 0 for x in [*seconds, *s.profile([a, b])])
  assert device.sequence([]).run([]) == 0


def test_kernels_without_groups_of_their_own_run_with_any_number(device):
  text = """extern "C" __global__ void count(int *c, long long *err) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < 1000; i += (long long)gridDim.x * blockDim.x) {
    c[i] += 1; if (!(c[i] < 3)) *err = 3LL << 32 | i; }
}"""
  lib = device.compile(text)
  block = device.alloc(4000)
  for extent in (1, 100, 1000):
    device.upload(block, np.zeros(1000, np.int32))
    s = device.sequence([Call(lib["count"], [(0, 0), (-1, 0)], extent, 0)])
    s.run([block])
    assert (device.download(block, 4000).view(np.int32) == 1).all() and s.error() == 0
  s.run([block])
  s.run([block])
  assert s.error() >> 32 == 3


# ---------------------------------------------------------------- processes and threads


def test_threads_launch_one_after_another():
  device = emulate.open("CUDA")
  lib = device.compile(source_of("CUDA", COMMON))
  wrong = []

  def work(n):
    a = np.random.default_rng(n).random(1024, np.float32)
    blocks = [device.alloc(16), device.alloc(a.nbytes)]
    device.upload(blocks[1], a)
    s = device.sequence([Call(lib["tree"], [(0, 0), (1, 0)], 4, 0, 256)])
    for _ in range(20):
      s.run(blocks)
      if not np.allclose(
        device.download(blocks[0], 16).view(np.float32), a.reshape(4, 256).sum(1), rtol=1e-4
      ):
        wrong.append(n)

  threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not wrong


def test_a_forked_child_goes_on_by_itself(plain, ab):
  busy = threading.Thread(
    target=plain, args=("matmul", zeros(32, 32), *ab), kwargs={"groups": 4, "threads": 256}
  )
  plain("matmul", zeros(32, 32), *ab, groups=4, threads=256)
  busy.start()
  pid = os.fork()
  if pid == 0:
    ok = False
    try:
      got = plain("matmul", zeros(32, 32), *ab, groups=4, threads=256)
      ok = np.allclose(got, ab[0] @ ab[1], rtol=1e-5, atol=1e-5)
    finally:
      os._exit(0 if ok else 1)
  assert os.waitpid(pid, 0)[1] == 0
  busy.join()


@pytest.mark.parametrize("check", [0, 1])
def test_an_index_out_of_bounds_is_seen_after_the_launch(check):
  """Asynchronous devices say so when they are asked, with CHECK=1 after each kernel."""
  with (
    Context(DEV="CUDA", EMULATE=1, CHECK=check),
    pytest.raises(IndexError, match="out of bounds for an axis of size 3"),
  ):
    Tensor([1.0, 2.0, 3.0])[Tensor([0, 7])].numpy()


def test_a_download_that_is_shown_lives_as_long_as_the_array():
  with Context(DEV="CUDA", EMULATE=1):
    t = Tensor([1.0, 2.0]).realize()
    array, buffer = np.from_dlpack(t), t._leaf().arg[0]
    download = weakref.ref(buffer.host)
    buffer.write(np.zeros(2, np.float32))  # which drops it
    assert download() is not None and array.tolist() == [1, 2]
    del array
    assert download() is None
