#include <metal_stdlib>
using namespace metal;
#define INLINE static inline

kernel void group_matmul(device float *a0 [[buffer(0)]], device const float *a1 [[buffer(1)]], device const float *a2 [[buffer(2)]], uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]], uint t [[thread_index_in_threadgroup]]) {
  const int ft = t;
  const int ht = t;
  const int jt = t & 15;
  const int it = t >> 4;
  threadgroup float m6[1024] __attribute__((aligned(16)));
  threadgroup float m9[1024] __attribute__((aligned(16)));
  for (int g = group; g < 6; g += groups) {
    float acc18_0_0 = 0.0f;
    float acc18_0_1 = 0.0f;
    float acc18_0_2 = 0.0f;
    float acc18_0_3 = 0.0f;
    float acc18_1_0 = 0.0f;
    float acc18_1_1 = 0.0f;
    float acc18_1_2 = 0.0f;
    float acc18_1_3 = 0.0f;
    float acc18_2_0 = 0.0f;
    float acc18_2_1 = 0.0f;
    float acc18_2_2 = 0.0f;
    float acc18_2_3 = 0.0f;
    float acc18_3_0 = 0.0f;
    float acc18_3_1 = 0.0f;
    float acc18_3_2 = 0.0f;
    float acc18_3_3 = 0.0f;
    for (int ko = 0; ko < 2; ko++) {
      float v3_0 = a1[(g / 3) * 2048 + ((ft / 16) * 32) + (ko * 16) + (ft % 16)];
      float v3_1 = a1[(g / 3) * 2048 + ((ft / 16) * 32) + (ko * 16) + (ft % 16) + 512];
      float v3_2 = a1[(g / 3) * 2048 + ((ft / 16) * 32) + (ko * 16) + (ft % 16) + 1024];
      float v3_3 = a1[(g / 3) * 2048 + ((ft / 16) * 32) + (ko * 16) + (ft % 16) + 1536];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      m6[(ft % 16) * 64 + (ft / 16)] = v3_0;
      float v7_0 = a2[ko * 3072 + ((ht / 64) * 192) + ((g % 3) * 64) + (ht % 64)];
      float v7_1 = a2[ko * 3072 + ((ht / 64) * 192) + ((g % 3) * 64) + (ht % 64) + 768];
      float v7_2 = a2[ko * 3072 + ((ht / 64) * 192) + ((g % 3) * 64) + (ht % 64) + 1536];
      float v7_3 = a2[ko * 3072 + ((ht / 64) * 192) + ((g % 3) * 64) + (ht % 64) + 2304];
      m6[(ft % 16) * 64 + (ft / 16) + 16] = v3_1;
      m6[(ft % 16) * 64 + (ft / 16) + 32] = v3_2;
      m6[(ft % 16) * 64 + (ft / 16) + 48] = v3_3;
      m9[ht] = v7_0;
      m9[ht + 256] = v7_1;
      m9[ht + 512] = v7_2;
      m9[ht + 768] = v7_3;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int ki = 0; ki < 16; ki++) {
        float4 w13_0 = float4(*(threadgroup const packed_float4 *)(m9 + ki * 64 + (jt * 4)));
        float v13_0 = w13_0.x, v13_1 = w13_0.y, v13_2 = w13_0.z, v13_3 = w13_0.w;
        float v12_0 = m6[ki * 64 + (it * 4)];
        acc18_0_0 = (acc18_0_0 + (v12_0 * v13_0));
        acc18_0_1 = (acc18_0_1 + (v12_0 * v13_1));
        acc18_0_2 = (acc18_0_2 + (v12_0 * v13_2));
        acc18_0_3 = (acc18_0_3 + (v12_0 * v13_3));
        float v12_1 = m6[ki * 64 + (it * 4) + 1];
        acc18_1_0 = (acc18_1_0 + (v12_1 * v13_0));
        acc18_1_1 = (acc18_1_1 + (v12_1 * v13_1));
        acc18_1_2 = (acc18_1_2 + (v12_1 * v13_2));
        acc18_1_3 = (acc18_1_3 + (v12_1 * v13_3));
        float v12_2 = m6[ki * 64 + (it * 4) + 2];
        acc18_2_0 = (acc18_2_0 + (v12_2 * v13_0));
        acc18_2_1 = (acc18_2_1 + (v12_2 * v13_1));
        acc18_2_2 = (acc18_2_2 + (v12_2 * v13_2));
        acc18_2_3 = (acc18_2_3 + (v12_2 * v13_3));
        float v12_3 = m6[ki * 64 + (it * 4) + 3];
        acc18_3_0 = (acc18_3_0 + (v12_3 * v13_0));
        acc18_3_1 = (acc18_3_1 + (v12_3 * v13_1));
        acc18_3_2 = (acc18_3_2 + (v12_3 * v13_2));
        acc18_3_3 = (acc18_3_3 + (v12_3 * v13_3));
      }
    }
    float v18_0_0 = acc18_0_0;
    float v18_0_1 = acc18_0_1;
    float v18_0_2 = acc18_0_2;
    float v18_0_3 = acc18_0_3;
    { float4 x; x.x = v18_0_0; x.y = v18_0_1; x.z = v18_0_2; x.w = v18_0_3; *(device packed_float4 *)(a0 + (g / 3) * 12288 + (it * 768) + ((g % 3) * 64) + (jt * 4)) = packed_float4(x); }
    float v18_1_0 = acc18_1_0;
    float v18_1_1 = acc18_1_1;
    float v18_1_2 = acc18_1_2;
    float v18_1_3 = acc18_1_3;
    { float4 x; x.x = v18_1_0; x.y = v18_1_1; x.z = v18_1_2; x.w = v18_1_3; *(device packed_float4 *)(a0 + (g / 3) * 12288 + (it * 768) + ((g % 3) * 64) + (jt * 4) + 192) = packed_float4(x); }
    float v18_2_0 = acc18_2_0;
    float v18_2_1 = acc18_2_1;
    float v18_2_2 = acc18_2_2;
    float v18_2_3 = acc18_2_3;
    { float4 x; x.x = v18_2_0; x.y = v18_2_1; x.z = v18_2_2; x.w = v18_2_3; *(device packed_float4 *)(a0 + (g / 3) * 12288 + (it * 768) + ((g % 3) * 64) + (jt * 4) + 384) = packed_float4(x); }
    float v18_3_0 = acc18_3_0;
    float v18_3_1 = acc18_3_1;
    float v18_3_2 = acc18_3_2;
    float v18_3_3 = acc18_3_3;
    { float4 x; x.x = v18_3_0; x.y = v18_3_1; x.z = v18_3_2; x.w = v18_3_3; *(device packed_float4 *)(a0 + (g / 3) * 12288 + (it * 768) + ((g % 3) * 64) + (jt * 4) + 576) = packed_float4(x); }
  }
}
