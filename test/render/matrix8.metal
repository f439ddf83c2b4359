#include <metal_stdlib>
using namespace metal;
#define INLINE static inline
INLINE void mma_8x8_float(thread float &c0, thread float &c1, float a0, float a1, float b0, float b1) { simdgroup_float8x8 a, b; simdgroup_float8x8 c; a.thread_elements()[0] = a0; a.thread_elements()[1] = a1; b.thread_elements()[0] = b0; b.thread_elements()[1] = b1; c.thread_elements()[0] = c0; c.thread_elements()[1] = c1; simdgroup_multiply_accumulate(c, a, b, c); c0 = c.thread_elements()[0]; c1 = c.thread_elements()[1]; }
INLINE void mma_8x8_half(thread float &c0, thread float &c1, half a0, half a1, half b0, half b1) { simdgroup_half8x8 a, b; simdgroup_float8x8 c; a.thread_elements()[0] = a0; a.thread_elements()[1] = a1; b.thread_elements()[0] = b0; b.thread_elements()[1] = b1; c.thread_elements()[0] = c0; c.thread_elements()[1] = c1; simdgroup_multiply_accumulate(c, a, b, c); c0 = c.thread_elements()[0]; c1 = c.thread_elements()[1]; }

kernel void product8(device float *a0 [[buffer(0)]], device const float *a1 [[buffer(1)]], device const float *a2 [[buffer(2)]], uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]], uint t [[thread_index_in_threadgroup]]) {
  const int i0 = t >> 4 & 1;
  const int i1 = t >> 1 & 3;
  const int j0 = t >> 3 & 1;
  const int j1 = t & 1;
  const int kw = t >> 5;
  threadgroup float m9[128] __attribute__((aligned(16)));
  for (int g = group; g < 6; g += groups) {
    float acc9_0 = 0.0f;
    float acc9_1 = 0.0f;
    for (int ko = 0; ko < 2; ko++) {
      float2 w3_0 = float2(*(device const packed_float2 *)(a1 + (g / 3) * 256 + (i0 * 128) + (i1 * 32) + (ko * 16) + (kw * 8) + (j0 * 4) + (j1 * 2)));
      float v3_0 = w3_0.x, v3_1 = w3_0.y;
      float2 w4_0 = float2(*(device const packed_float2 *)(a2 + ko * 384 + (kw * 192) + (i0 * 96) + (i1 * 24) + ((g % 3) * 8) + (j0 * 4) + (j1 * 2)));
      float v4_0 = w4_0.x, v4_1 = w4_0.y;
      mma_8x8_float(acc9_0, acc9_1, v3_0, v3_1, v4_0, v4_1);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    m9[0 + t] = acc9_0;
    m9[64 + t] = acc9_1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float v9_0 = (m9[0 + (t & 31)] + m9[32 + (t & 31)]);
    float v9_1 = (m9[64 + (t & 31)] + m9[96 + (t & 31)]);
    if (!(t & 32)) { float2 x; x.x = v9_0; x.y = v9_1; *(device packed_float2 *)(a0 + (g / 3) * 192 + (i0 * 96) + (i1 * 24) + ((g % 3) * 8) + (j0 * 4) + (j1 * 2)) = packed_float2(x); }
  }
}

kernel void half8(device half *a0 [[buffer(0)]], device const half *a1 [[buffer(1)]], device const half *a2 [[buffer(2)]], uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]], uint t [[thread_index_in_threadgroup]]) {
  const int i0 = t >> 4;
  const int i1 = t >> 1 & 3;
  const int j0 = t >> 3 & 1;
  const int j1 = t & 1;
  half2 w0_0 = half2(*(device const packed_half2 *)(a1 + i0 * 32 + (i1 * 8) + (j0 * 4) + (j1 * 2)));
  float v0_0 = w0_0.x, v0_1 = w0_0.y;
  for (int jo = group; jo < 2; jo += groups) {
    float v2_0 = float(a2[jo * 64 + (j0 * 32) + (j1 * 16) + (i0 * 4) + i1]);
    float v2_1 = float(a2[jo * 64 + (j0 * 32) + (j1 * 16) + (i0 * 4) + i1 + 8]);
    float v3_0 = 0.0f;
    float v3_1 = 0.0f;
    mma_8x8_half(v3_0, v3_1, v0_0, v0_1, v2_0, v2_1);
    { half2 x; x.x = v3_0; x.y = v3_1; *(device packed_half2 *)(a0 + i0 * 64 + (i1 * 16) + (jo * 8) + (j0 * 4) + (j1 * 2)) = packed_half2(x); }
  }
}
