// The part of CUDA C++ (as NVRTC knows it, without headers) that rendered kernels use.
#pragma once
#define EMULATE_SHARED_BYTES (48 << 10)
#include "core.h"
#include "types.h"

#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define threadIdx emulate::place.thread
#define blockIdx emulate::place.group
#define blockDim emulate::place.threads
#define gridDim emulate::place.groups

#define __syncthreads() emulate::barrier_at(__LINE__)
#define __syncwarp(...) emulate::sync_warp()

// ---------------------------------------------------------------- numbers

extern "C" {
#define EMULATE_C(name) float name##f(float); double name(double);
EMULATE_C(exp2) EMULATE_C(log2) EMULATE_C(sin) EMULATE_C(sqrt) EMULATE_C(exp) EMULATE_C(log) EMULATE_C(cos)
EMULATE_C(tanh) EMULATE_C(erf) EMULATE_C(erfc) EMULATE_C(expm1) EMULATE_C(atan) EMULATE_C(floor) EMULATE_C(ceil)
EMULATE_C(trunc) EMULATE_C(rint)
EMULATE_C(fabs)
#define EMULATE_C2(name) float name##f(float, float); double name(double, double);
EMULATE_C2(pow) EMULATE_C2(fmod) EMULATE_C2(copysign)
float fmaf(float, float, float);
double fma(double, double, double);
}
static inline float rsqrtf(float x) { return emulate::math::rsqrt(x); }
static inline double rsqrt(double x) { return emulate::math::rsqrt(x); }

#define __int_as_float emulate::bits_as<float, int>
#define __float_as_int emulate::bits_as<int, float>
#define __uint_as_float emulate::bits_as<float, unsigned>
#define __float_as_uint emulate::bits_as<unsigned, float>
#define __longlong_as_double emulate::bits_as<double, long long>
#define __double_as_longlong emulate::bits_as<long long, double>

#define EMULATE_VECTORS(T, name)                                                                     \
  typedef emulate::vector<T, 2> name##2;                                                             \
  typedef emulate::vector<T, 4> name##4;                                                             \
  static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                  \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATE_VECTORS(signed char, char)
EMULATE_VECTORS(unsigned char, uchar)
EMULATE_VECTORS(short, short)
EMULATE_VECTORS(unsigned short, ushort)
EMULATE_VECTORS(int, int)
EMULATE_VECTORS(unsigned, uint)
EMULATE_VECTORS(long long, longlong)
EMULATE_VECTORS(unsigned long long, ulonglong)
EMULATE_VECTORS(float, float)
EMULATE_VECTORS(double, double)

// ---------------------------------------------------------------- exchanges within a warp

// width: the warp counts as several of so many lanes. The mask is not looked at: all lanes must come.
template <class T> CORE T __shfl_sync(unsigned, T x, int from, int width = 32) {
  return emulate::from_lane(x, (emulate::lane() & -width) | (from & (width - 1)));
}
template <class T> CORE T __shfl_xor_sync(unsigned, T x, int mask, int width = 32) {
  unsigned l = emulate::lane(), other = l ^ mask;
  return emulate::from_lane(x, (other & -width) <= l ? other : l);
}
template <class T> CORE T __shfl_down_sync(unsigned, T x, unsigned by, int width = 32) {
  unsigned l = emulate::lane();
  return emulate::from_lane(x, (l & (width - 1)) + by < (unsigned)width ? l + by : l);
}
template <class T> CORE T __shfl_up_sync(unsigned, T x, unsigned by, int width = 32) {
  unsigned l = emulate::lane();
  return emulate::from_lane(x, (l & (width - 1)) >= by ? l - by : l);
}
CORE unsigned __ballot_sync(unsigned, int predicate) {
  const int *all = emulate::gather(predicate);
  unsigned bits = 0;
  for (unsigned i = 0; i < emulate::lanes(); i++) bits |= (unsigned)(all[i] != 0) << i;
  return bits;
}
CORE int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
CORE int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

// ---------------------------------------------------------------- instructions
// asm("cvt.f32.f16 ..." : "=f"(r) : "h"(x)) is rewritten to ptx::cvt_f32_f16(r, x): the operands in their order.

namespace ptx {
CORE void cvt_f32_f16(float &r, unsigned short x) { r = emulate::half_value(x); }
CORE void cvt_rn_f16_f32(unsigned short &r, float x) { r = x != x ? 0x7fff : emulate::half_bits(x); }
CORE void cvt_rn_bf16_f32(unsigned short &r, float x) {
  unsigned b = __float_as_uint(x);
  r = x != x ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16;
}
CORE void cvt_rna_tf32_f32(unsigned &r, float x) {  // 10 bits of mantissa; halves go away from 0
  r = x - x != 0 ? __float_as_uint(x) : (__float_as_uint(x) + 0x1000) & ~0x1fffu;
}

// The two matrices of a warp's product. Each lane fills in its part, waits for the others, and sums its part of the
// result; which part that is: PTX ISA, "Matrix fragments for mma.m16n8k16" and "... for mma.m16n8k8".
struct Operands {
  float a[16][16], b[8][16];  // b transposed
};
static_assert(sizeof(Operands) <= emulate::SLOT_BYTES, "fits");

template <int K> CORE void accumulate(const Operands *m, float *const *d, const float *c) {
  unsigned row = emulate::lane() / 4, column = emulate::lane() % 4 * 2;
  for (int i = 0; i < 4; i++) {
    const float *a = m->a[row + i / 2 * 8], *b = m->b[column + i % 2];
    float sum = c[i];
    for (int k = 0; k < K; k++) sum += a[k] * b[k];
    *d[i] = sum;
  }
}

// Each register of a and b holds two numbers.
template <float value(ushort)>
CORE void product16(float *const *d, const unsigned *a, const unsigned *b, const float *c) {
  Operands *m = (Operands *)emulate::slot();
  unsigned row = emulate::lane() / 4, k = emulate::lane() % 4 * 2;
  for (int i = 0; i < 8; i++)
    m->a[row + i / 2 % 2 * 8][k + i % 2 + i / 4 * 8] = value(a[i / 2] >> i % 2 * 16 & 0xffff);
  for (int i = 0; i < 4; i++) m->b[row][k + i % 2 + i / 2 * 8] = value(b[i / 2] >> i % 2 * 16 & 0xffff);
  emulate::sync_warp();
  accumulate<16>(m, d, c);
}

// The 13 low bits of a register are not looked at.
CORE void product_tf32(float *const *d, const unsigned *a, const unsigned *b, const float *c) {
  Operands *m = (Operands *)emulate::slot();
  unsigned row = emulate::lane() / 4, k = emulate::lane() % 4;
  for (int i = 0; i < 4; i++) m->a[row + i % 2 * 8][k + i / 2 * 4] = __uint_as_float(a[i] & ~0x1fffu);
  for (int i = 0; i < 2; i++) m->b[row][k + i * 4] = __uint_as_float(b[i] & ~0x1fffu);
  emulate::sync_warp();
  accumulate<8>(m, d, c);
}

// With the sum in registers of its own, or ("+f") in those of the result.
#define EMULATE_MMA(name, product)                                                                                     \
  CORE void name(float &d0, float &d1, float &d2, float &d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,       \
                 unsigned b0, unsigned b1, float c0, float c1, float c2, float c3) {                                   \
    float *d[4] = {&d0, &d1, &d2, &d3}, c[4] = {c0, c1, c2, c3};                                                       \
    unsigned a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};                                                                 \
    product(d, a, b, c);                                                                                               \
  }                                                                                                                    \
  CORE void name(float &d0, float &d1, float &d2, float &d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,       \
                 unsigned b0, unsigned b1) {                                                                           \
    name(d0, d1, d2, d3, a0, a1, a2, a3, b0, b1, d0, d1, d2, d3);                                                      \
  }
EMULATE_MMA(mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32, product16<emulate::half_value>)
EMULATE_MMA(mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32, product16<emulate::bfloat_value>)
EMULATE_MMA(mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32, product_tf32)
}  // namespace ptx
