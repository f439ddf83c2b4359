#include <metal_stdlib>
using namespace metal;
#define INLINE static inline
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

kernel void group_softmax(device float *a0 [[buffer(0)]], device const float *a1 [[buffer(1)]], uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]], uint t [[thread_index_in_threadgroup]]) {
  const int k1l = t & 63;
  const int sl = t;
  const int kl = t & 63;
  const int jl = t;
  threadgroup float m6[128] __attribute__((aligned(16)));
  threadgroup float m13[256] __attribute__((aligned(16)));
  threadgroup float m21[128] __attribute__((aligned(16)));
  for (int i = group; i < 6; i += groups) {
    float acc6 = -INFINITY;
    for (int k1o = 0; k1o < 4; k1o++) {
      float v3 = a1[i * 256 + (k1o * 64) + k1l];
      acc6 = max_f32(acc6, v3);
    }
    float f6 = acc6;
    f6 = max_f32(f6, simd_shuffle_xor(f6, 1));
    f6 = max_f32(f6, simd_shuffle_xor(f6, 2));
    f6 = max_f32(f6, simd_shuffle_xor(f6, 4));
    f6 = max_f32(f6, simd_shuffle_xor(f6, 8));
    f6 = max_f32(f6, simd_shuffle_xor(f6, 16));
    m6[0 + t] = f6;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float v6 = max_f32(m6[0 + (t & 95)], m6[32 + (t & 95)]);
    float v7 = (v6 * -1.0f);
    for (int so = 0; so < 2; so++) {
      float v10 = a1[i * 256 + (so * 128) + sl];
      m13[so * 128 + sl] = precise::exp((v10 + v7));
    }
    float acc21 = 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int ko = 0; ko < 4; ko++) {
      float v18 = m13[ko * 64 + kl];
      acc21 = (acc21 + v18);
    }
    float f21 = acc21;
    f21 = (f21 + simd_shuffle_xor(f21, 1));
    f21 = (f21 + simd_shuffle_xor(f21, 2));
    f21 = (f21 + simd_shuffle_xor(f21, 4));
    f21 = (f21 + simd_shuffle_xor(f21, 8));
    f21 = (f21 + simd_shuffle_xor(f21, 16));
    m21[0 + t] = f21;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float v21 = (m21[0 + (t & 95)] + m21[32 + (t & 95)]);
    for (int jo = 0; jo < 2; jo++) {
      float v23 = m13[jo * 128 + jl];
      a0[i * 256 + (jo * 128) + jl] = (v23 / v21);
    }
  }
}
