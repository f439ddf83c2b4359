#include <metal_stdlib>
using namespace metal;
#define INLINE static inline

kernel void scatter0(device float *a0 [[buffer(0)]], device const float *a1 [[buffer(1)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int io = id; io < 3; io += ids) {
    float4 w1_0 = float4(*(device const packed_float4 *)(a1 + (io * 16 < 24 ? io * 16 : 24)));
    float v1_0 = w1_0.x, v1_1 = w1_0.y, v1_2 = w1_0.z, v1_3 = w1_0.w;
    float4 w1_4 = float4(*(device const packed_float4 *)(a1 + (io * 16 < 24 ? io * 16 : 24) + 4));
    float v1_4 = w1_4.x, v1_5 = w1_4.y, v1_6 = w1_4.z, v1_7 = w1_4.w;
    float4 w1_8 = float4(*(device const packed_float4 *)(a1 + (io * 16 < 24 ? io * 16 : 24) + 8));
    float v1_8 = w1_8.x, v1_9 = w1_8.y, v1_10 = w1_8.z, v1_11 = w1_8.w;
    float4 w1_12 = float4(*(device const packed_float4 *)(a1 + (io * 16 < 24 ? io * 16 : 24) + 12));
    float v1_12 = w1_12.x, v1_13 = w1_12.y, v1_14 = w1_12.z, v1_15 = w1_12.w;
    { float4 x; x.x = v1_0; x.y = v1_1; x.z = v1_2; x.w = v1_3; *(device packed_float4 *)(a0 + (io * 16 < 24 ? io * 16 : 24)) = packed_float4(x); }
    { float4 x; x.x = v1_4; x.y = v1_5; x.z = v1_6; x.w = v1_7; *(device packed_float4 *)(a0 + (io * 16 < 24 ? io * 16 : 24) + 4) = packed_float4(x); }
    { float4 x; x.x = v1_8; x.y = v1_9; x.z = v1_10; x.w = v1_11; *(device packed_float4 *)(a0 + (io * 16 < 24 ? io * 16 : 24) + 8) = packed_float4(x); }
    { float4 x; x.x = v1_12; x.y = v1_13; x.z = v1_14; x.w = v1_15; *(device packed_float4 *)(a0 + (io * 16 < 24 ? io * 16 : 24) + 12) = packed_float4(x); }
  }
}

kernel void scatter1(device float *a0 [[buffer(0)]], device const float *a1 [[buffer(1)]], device const long *a2 [[buffer(2)]], device long *err [[buffer(3)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (long j = id; j < 4; j += ids) {
    for (long i = 0; i < 6; i++) {
      float v2 = a1[i * 4 + j];
      long v3 = a2[i * 4 + j];
      if (!((long)v3 > -1 && (long)v3 < 10)) *err = ((long)10 << 32) | (((long)v3 == (int)((long)v3) ? (long)v3 : 0) & 0xffffffffL);
      if ((long)v3 > -1 && (long)v3 < 10) a0[(long)v3 * 4 + j] = (a0[(long)v3 * 4 + j] + v2);
    }
  }
}
