#include <metal_stdlib>
using namespace metal;
#define INLINE static inline

kernel void matmul(device float *a0 [[buffer(0)]], device const float *a1 [[buffer(1)]], device const float *a2 [[buffer(2)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int jo = id; jo < 2; jo += ids) {
    float m4[128];
    for (int k_a2 = 0; k_a2 < 8; k_a2++) {
      float4 w3_0 = float4(*(device const packed_float4 *)(a2 + k_a2 * 32 + (jo * 16)));
      float v3_0 = w3_0.x, v3_1 = w3_0.y, v3_2 = w3_0.z, v3_3 = w3_0.w;
      float4 w3_4 = float4(*(device const packed_float4 *)(a2 + k_a2 * 32 + (jo * 16) + 4));
      float v3_4 = w3_4.x, v3_5 = w3_4.y, v3_6 = w3_4.z, v3_7 = w3_4.w;
      float4 w3_8 = float4(*(device const packed_float4 *)(a2 + k_a2 * 32 + (jo * 16) + 8));
      float v3_8 = w3_8.x, v3_9 = w3_8.y, v3_10 = w3_8.z, v3_11 = w3_8.w;
      float4 w3_12 = float4(*(device const packed_float4 *)(a2 + k_a2 * 32 + (jo * 16) + 12));
      float v3_12 = w3_12.x, v3_13 = w3_12.y, v3_14 = w3_12.z, v3_15 = w3_12.w;
      m4[k_a2 * 16] = v3_0;
      m4[k_a2 * 16 + 1] = v3_1;
      m4[k_a2 * 16 + 2] = v3_2;
      m4[k_a2 * 16 + 3] = v3_3;
      m4[k_a2 * 16 + 4] = v3_4;
      m4[k_a2 * 16 + 5] = v3_5;
      m4[k_a2 * 16 + 6] = v3_6;
      m4[k_a2 * 16 + 7] = v3_7;
      m4[k_a2 * 16 + 8] = v3_8;
      m4[k_a2 * 16 + 9] = v3_9;
      m4[k_a2 * 16 + 10] = v3_10;
      m4[k_a2 * 16 + 11] = v3_11;
      m4[k_a2 * 16 + 12] = v3_12;
      m4[k_a2 * 16 + 13] = v3_13;
      m4[k_a2 * 16 + 14] = v3_14;
      m4[k_a2 * 16 + 15] = v3_15;
    }
    for (int io = 0; io < 2; io++) {
      float acc14_0_0 = 0.0f;
      float acc14_0_1 = 0.0f;
      float acc14_0_2 = 0.0f;
      float acc14_0_3 = 0.0f;
      float acc14_0_4 = 0.0f;
      float acc14_0_5 = 0.0f;
      float acc14_0_6 = 0.0f;
      float acc14_0_7 = 0.0f;
      float acc14_0_8 = 0.0f;
      float acc14_0_9 = 0.0f;
      float acc14_0_10 = 0.0f;
      float acc14_0_11 = 0.0f;
      float acc14_0_12 = 0.0f;
      float acc14_0_13 = 0.0f;
      float acc14_0_14 = 0.0f;
      float acc14_0_15 = 0.0f;
      float acc14_1_0 = 0.0f;
      float acc14_1_1 = 0.0f;
      float acc14_1_2 = 0.0f;
      float acc14_1_3 = 0.0f;
      float acc14_1_4 = 0.0f;
      float acc14_1_5 = 0.0f;
      float acc14_1_6 = 0.0f;
      float acc14_1_7 = 0.0f;
      float acc14_1_8 = 0.0f;
      float acc14_1_9 = 0.0f;
      float acc14_1_10 = 0.0f;
      float acc14_1_11 = 0.0f;
      float acc14_1_12 = 0.0f;
      float acc14_1_13 = 0.0f;
      float acc14_1_14 = 0.0f;
      float acc14_1_15 = 0.0f;
      float acc14_2_0 = 0.0f;
      float acc14_2_1 = 0.0f;
      float acc14_2_2 = 0.0f;
      float acc14_2_3 = 0.0f;
      float acc14_2_4 = 0.0f;
      float acc14_2_5 = 0.0f;
      float acc14_2_6 = 0.0f;
      float acc14_2_7 = 0.0f;
      float acc14_2_8 = 0.0f;
      float acc14_2_9 = 0.0f;
      float acc14_2_10 = 0.0f;
      float acc14_2_11 = 0.0f;
      float acc14_2_12 = 0.0f;
      float acc14_2_13 = 0.0f;
      float acc14_2_14 = 0.0f;
      float acc14_2_15 = 0.0f;
      float acc14_3_0 = 0.0f;
      float acc14_3_1 = 0.0f;
      float acc14_3_2 = 0.0f;
      float acc14_3_3 = 0.0f;
      float acc14_3_4 = 0.0f;
      float acc14_3_5 = 0.0f;
      float acc14_3_6 = 0.0f;
      float acc14_3_7 = 0.0f;
      float acc14_3_8 = 0.0f;
      float acc14_3_9 = 0.0f;
      float acc14_3_10 = 0.0f;
      float acc14_3_11 = 0.0f;
      float acc14_3_12 = 0.0f;
      float acc14_3_13 = 0.0f;
      float acc14_3_14 = 0.0f;
      float acc14_3_15 = 0.0f;
      float acc14_4_0 = 0.0f;
      float acc14_4_1 = 0.0f;
      float acc14_4_2 = 0.0f;
      float acc14_4_3 = 0.0f;
      float acc14_4_4 = 0.0f;
      float acc14_4_5 = 0.0f;
      float acc14_4_6 = 0.0f;
      float acc14_4_7 = 0.0f;
      float acc14_4_8 = 0.0f;
      float acc14_4_9 = 0.0f;
      float acc14_4_10 = 0.0f;
      float acc14_4_11 = 0.0f;
      float acc14_4_12 = 0.0f;
      float acc14_4_13 = 0.0f;
      float acc14_4_14 = 0.0f;
      float acc14_4_15 = 0.0f;
      float acc14_5_0 = 0.0f;
      float acc14_5_1 = 0.0f;
      float acc14_5_2 = 0.0f;
      float acc14_5_3 = 0.0f;
      float acc14_5_4 = 0.0f;
      float acc14_5_5 = 0.0f;
      float acc14_5_6 = 0.0f;
      float acc14_5_7 = 0.0f;
      float acc14_5_8 = 0.0f;
      float acc14_5_9 = 0.0f;
      float acc14_5_10 = 0.0f;
      float acc14_5_11 = 0.0f;
      float acc14_5_12 = 0.0f;
      float acc14_5_13 = 0.0f;
      float acc14_5_14 = 0.0f;
      float acc14_5_15 = 0.0f;
      for (int k = 0; k < 8; k++) {
        float v10_0 = m4[k * 16];
        float v10_1 = m4[k * 16 + 1];
        float v10_2 = m4[k * 16 + 2];
        float v10_3 = m4[k * 16 + 3];
        float v10_4 = m4[k * 16 + 4];
        float v10_5 = m4[k * 16 + 5];
        float v10_6 = m4[k * 16 + 6];
        float v10_7 = m4[k * 16 + 7];
        float v10_8 = m4[k * 16 + 8];
        float v10_9 = m4[k * 16 + 9];
        float v10_10 = m4[k * 16 + 10];
        float v10_11 = m4[k * 16 + 11];
        float v10_12 = m4[k * 16 + 12];
        float v10_13 = m4[k * 16 + 13];
        float v10_14 = m4[k * 16 + 14];
        float v10_15 = m4[k * 16 + 15];
        float v9_0 = a1[io * 48 + k];
        acc14_0_0 = (acc14_0_0 + (v9_0 * v10_0));
        acc14_0_1 = (acc14_0_1 + (v9_0 * v10_1));
        acc14_0_2 = (acc14_0_2 + (v9_0 * v10_2));
        acc14_0_3 = (acc14_0_3 + (v9_0 * v10_3));
        acc14_0_4 = (acc14_0_4 + (v9_0 * v10_4));
        acc14_0_5 = (acc14_0_5 + (v9_0 * v10_5));
        acc14_0_6 = (acc14_0_6 + (v9_0 * v10_6));
        acc14_0_7 = (acc14_0_7 + (v9_0 * v10_7));
        acc14_0_8 = (acc14_0_8 + (v9_0 * v10_8));
        acc14_0_9 = (acc14_0_9 + (v9_0 * v10_9));
        acc14_0_10 = (acc14_0_10 + (v9_0 * v10_10));
        acc14_0_11 = (acc14_0_11 + (v9_0 * v10_11));
        acc14_0_12 = (acc14_0_12 + (v9_0 * v10_12));
        acc14_0_13 = (acc14_0_13 + (v9_0 * v10_13));
        acc14_0_14 = (acc14_0_14 + (v9_0 * v10_14));
        acc14_0_15 = (acc14_0_15 + (v9_0 * v10_15));
        float v9_1 = a1[io * 48 + k + 8];
        acc14_1_0 = (acc14_1_0 + (v9_1 * v10_0));
        acc14_1_1 = (acc14_1_1 + (v9_1 * v10_1));
        acc14_1_2 = (acc14_1_2 + (v9_1 * v10_2));
        acc14_1_3 = (acc14_1_3 + (v9_1 * v10_3));
        acc14_1_4 = (acc14_1_4 + (v9_1 * v10_4));
        acc14_1_5 = (acc14_1_5 + (v9_1 * v10_5));
        acc14_1_6 = (acc14_1_6 + (v9_1 * v10_6));
        acc14_1_7 = (acc14_1_7 + (v9_1 * v10_7));
        acc14_1_8 = (acc14_1_8 + (v9_1 * v10_8));
        acc14_1_9 = (acc14_1_9 + (v9_1 * v10_9));
        acc14_1_10 = (acc14_1_10 + (v9_1 * v10_10));
        acc14_1_11 = (acc14_1_11 + (v9_1 * v10_11));
        acc14_1_12 = (acc14_1_12 + (v9_1 * v10_12));
        acc14_1_13 = (acc14_1_13 + (v9_1 * v10_13));
        acc14_1_14 = (acc14_1_14 + (v9_1 * v10_14));
        acc14_1_15 = (acc14_1_15 + (v9_1 * v10_15));
        float v9_2 = a1[io * 48 + k + 16];
        acc14_2_0 = (acc14_2_0 + (v9_2 * v10_0));
        acc14_2_1 = (acc14_2_1 + (v9_2 * v10_1));
        acc14_2_2 = (acc14_2_2 + (v9_2 * v10_2));
        acc14_2_3 = (acc14_2_3 + (v9_2 * v10_3));
        acc14_2_4 = (acc14_2_4 + (v9_2 * v10_4));
        acc14_2_5 = (acc14_2_5 + (v9_2 * v10_5));
        acc14_2_6 = (acc14_2_6 + (v9_2 * v10_6));
        acc14_2_7 = (acc14_2_7 + (v9_2 * v10_7));
        acc14_2_8 = (acc14_2_8 + (v9_2 * v10_8));
        acc14_2_9 = (acc14_2_9 + (v9_2 * v10_9));
        acc14_2_10 = (acc14_2_10 + (v9_2 * v10_10));
        acc14_2_11 = (acc14_2_11 + (v9_2 * v10_11));
        acc14_2_12 = (acc14_2_12 + (v9_2 * v10_12));
        acc14_2_13 = (acc14_2_13 + (v9_2 * v10_13));
        acc14_2_14 = (acc14_2_14 + (v9_2 * v10_14));
        acc14_2_15 = (acc14_2_15 + (v9_2 * v10_15));
        float v9_3 = a1[io * 48 + k + 24];
        acc14_3_0 = (acc14_3_0 + (v9_3 * v10_0));
        acc14_3_1 = (acc14_3_1 + (v9_3 * v10_1));
        acc14_3_2 = (acc14_3_2 + (v9_3 * v10_2));
        acc14_3_3 = (acc14_3_3 + (v9_3 * v10_3));
        acc14_3_4 = (acc14_3_4 + (v9_3 * v10_4));
        acc14_3_5 = (acc14_3_5 + (v9_3 * v10_5));
        acc14_3_6 = (acc14_3_6 + (v9_3 * v10_6));
        acc14_3_7 = (acc14_3_7 + (v9_3 * v10_7));
        acc14_3_8 = (acc14_3_8 + (v9_3 * v10_8));
        acc14_3_9 = (acc14_3_9 + (v9_3 * v10_9));
        acc14_3_10 = (acc14_3_10 + (v9_3 * v10_10));
        acc14_3_11 = (acc14_3_11 + (v9_3 * v10_11));
        acc14_3_12 = (acc14_3_12 + (v9_3 * v10_12));
        acc14_3_13 = (acc14_3_13 + (v9_3 * v10_13));
        acc14_3_14 = (acc14_3_14 + (v9_3 * v10_14));
        acc14_3_15 = (acc14_3_15 + (v9_3 * v10_15));
        float v9_4 = a1[io * 48 + k + 32];
        acc14_4_0 = (acc14_4_0 + (v9_4 * v10_0));
        acc14_4_1 = (acc14_4_1 + (v9_4 * v10_1));
        acc14_4_2 = (acc14_4_2 + (v9_4 * v10_2));
        acc14_4_3 = (acc14_4_3 + (v9_4 * v10_3));
        acc14_4_4 = (acc14_4_4 + (v9_4 * v10_4));
        acc14_4_5 = (acc14_4_5 + (v9_4 * v10_5));
        acc14_4_6 = (acc14_4_6 + (v9_4 * v10_6));
        acc14_4_7 = (acc14_4_7 + (v9_4 * v10_7));
        acc14_4_8 = (acc14_4_8 + (v9_4 * v10_8));
        acc14_4_9 = (acc14_4_9 + (v9_4 * v10_9));
        acc14_4_10 = (acc14_4_10 + (v9_4 * v10_10));
        acc14_4_11 = (acc14_4_11 + (v9_4 * v10_11));
        acc14_4_12 = (acc14_4_12 + (v9_4 * v10_12));
        acc14_4_13 = (acc14_4_13 + (v9_4 * v10_13));
        acc14_4_14 = (acc14_4_14 + (v9_4 * v10_14));
        acc14_4_15 = (acc14_4_15 + (v9_4 * v10_15));
        float v9_5 = a1[io * 48 + k + 40];
        acc14_5_0 = (acc14_5_0 + (v9_5 * v10_0));
        acc14_5_1 = (acc14_5_1 + (v9_5 * v10_1));
        acc14_5_2 = (acc14_5_2 + (v9_5 * v10_2));
        acc14_5_3 = (acc14_5_3 + (v9_5 * v10_3));
        acc14_5_4 = (acc14_5_4 + (v9_5 * v10_4));
        acc14_5_5 = (acc14_5_5 + (v9_5 * v10_5));
        acc14_5_6 = (acc14_5_6 + (v9_5 * v10_6));
        acc14_5_7 = (acc14_5_7 + (v9_5 * v10_7));
        acc14_5_8 = (acc14_5_8 + (v9_5 * v10_8));
        acc14_5_9 = (acc14_5_9 + (v9_5 * v10_9));
        acc14_5_10 = (acc14_5_10 + (v9_5 * v10_10));
        acc14_5_11 = (acc14_5_11 + (v9_5 * v10_11));
        acc14_5_12 = (acc14_5_12 + (v9_5 * v10_12));
        acc14_5_13 = (acc14_5_13 + (v9_5 * v10_13));
        acc14_5_14 = (acc14_5_14 + (v9_5 * v10_14));
        acc14_5_15 = (acc14_5_15 + (v9_5 * v10_15));
      }
      float v14_0_0 = acc14_0_0;
      float v14_0_1 = acc14_0_1;
      float v14_0_2 = acc14_0_2;
      float v14_0_3 = acc14_0_3;
      float v14_0_4 = acc14_0_4;
      float v14_0_5 = acc14_0_5;
      float v14_0_6 = acc14_0_6;
      float v14_0_7 = acc14_0_7;
      float v14_0_8 = acc14_0_8;
      float v14_0_9 = acc14_0_9;
      float v14_0_10 = acc14_0_10;
      float v14_0_11 = acc14_0_11;
      float v14_0_12 = acc14_0_12;
      float v14_0_13 = acc14_0_13;
      float v14_0_14 = acc14_0_14;
      float v14_0_15 = acc14_0_15;
      { float4 x; x.x = v14_0_0; x.y = v14_0_1; x.z = v14_0_2; x.w = v14_0_3; *(device packed_float4 *)(a0 + io * 192 + (jo * 16)) = packed_float4(x); }
      { float4 x; x.x = v14_0_4; x.y = v14_0_5; x.z = v14_0_6; x.w = v14_0_7; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 4) = packed_float4(x); }
      { float4 x; x.x = v14_0_8; x.y = v14_0_9; x.z = v14_0_10; x.w = v14_0_11; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 8) = packed_float4(x); }
      { float4 x; x.x = v14_0_12; x.y = v14_0_13; x.z = v14_0_14; x.w = v14_0_15; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 12) = packed_float4(x); }
      float v14_1_0 = acc14_1_0;
      float v14_1_1 = acc14_1_1;
      float v14_1_2 = acc14_1_2;
      float v14_1_3 = acc14_1_3;
      float v14_1_4 = acc14_1_4;
      float v14_1_5 = acc14_1_5;
      float v14_1_6 = acc14_1_6;
      float v14_1_7 = acc14_1_7;
      float v14_1_8 = acc14_1_8;
      float v14_1_9 = acc14_1_9;
      float v14_1_10 = acc14_1_10;
      float v14_1_11 = acc14_1_11;
      float v14_1_12 = acc14_1_12;
      float v14_1_13 = acc14_1_13;
      float v14_1_14 = acc14_1_14;
      float v14_1_15 = acc14_1_15;
      { float4 x; x.x = v14_1_0; x.y = v14_1_1; x.z = v14_1_2; x.w = v14_1_3; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 32) = packed_float4(x); }
      { float4 x; x.x = v14_1_4; x.y = v14_1_5; x.z = v14_1_6; x.w = v14_1_7; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 36) = packed_float4(x); }
      { float4 x; x.x = v14_1_8; x.y = v14_1_9; x.z = v14_1_10; x.w = v14_1_11; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 40) = packed_float4(x); }
      { float4 x; x.x = v14_1_12; x.y = v14_1_13; x.z = v14_1_14; x.w = v14_1_15; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 44) = packed_float4(x); }
      float v14_2_0 = acc14_2_0;
      float v14_2_1 = acc14_2_1;
      float v14_2_2 = acc14_2_2;
      float v14_2_3 = acc14_2_3;
      float v14_2_4 = acc14_2_4;
      float v14_2_5 = acc14_2_5;
      float v14_2_6 = acc14_2_6;
      float v14_2_7 = acc14_2_7;
      float v14_2_8 = acc14_2_8;
      float v14_2_9 = acc14_2_9;
      float v14_2_10 = acc14_2_10;
      float v14_2_11 = acc14_2_11;
      float v14_2_12 = acc14_2_12;
      float v14_2_13 = acc14_2_13;
      float v14_2_14 = acc14_2_14;
      float v14_2_15 = acc14_2_15;
      { float4 x; x.x = v14_2_0; x.y = v14_2_1; x.z = v14_2_2; x.w = v14_2_3; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 64) = packed_float4(x); }
      { float4 x; x.x = v14_2_4; x.y = v14_2_5; x.z = v14_2_6; x.w = v14_2_7; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 68) = packed_float4(x); }
      { float4 x; x.x = v14_2_8; x.y = v14_2_9; x.z = v14_2_10; x.w = v14_2_11; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 72) = packed_float4(x); }
      { float4 x; x.x = v14_2_12; x.y = v14_2_13; x.z = v14_2_14; x.w = v14_2_15; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 76) = packed_float4(x); }
      float v14_3_0 = acc14_3_0;
      float v14_3_1 = acc14_3_1;
      float v14_3_2 = acc14_3_2;
      float v14_3_3 = acc14_3_3;
      float v14_3_4 = acc14_3_4;
      float v14_3_5 = acc14_3_5;
      float v14_3_6 = acc14_3_6;
      float v14_3_7 = acc14_3_7;
      float v14_3_8 = acc14_3_8;
      float v14_3_9 = acc14_3_9;
      float v14_3_10 = acc14_3_10;
      float v14_3_11 = acc14_3_11;
      float v14_3_12 = acc14_3_12;
      float v14_3_13 = acc14_3_13;
      float v14_3_14 = acc14_3_14;
      float v14_3_15 = acc14_3_15;
      { float4 x; x.x = v14_3_0; x.y = v14_3_1; x.z = v14_3_2; x.w = v14_3_3; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 96) = packed_float4(x); }
      { float4 x; x.x = v14_3_4; x.y = v14_3_5; x.z = v14_3_6; x.w = v14_3_7; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 100) = packed_float4(x); }
      { float4 x; x.x = v14_3_8; x.y = v14_3_9; x.z = v14_3_10; x.w = v14_3_11; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 104) = packed_float4(x); }
      { float4 x; x.x = v14_3_12; x.y = v14_3_13; x.z = v14_3_14; x.w = v14_3_15; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 108) = packed_float4(x); }
      float v14_4_0 = acc14_4_0;
      float v14_4_1 = acc14_4_1;
      float v14_4_2 = acc14_4_2;
      float v14_4_3 = acc14_4_3;
      float v14_4_4 = acc14_4_4;
      float v14_4_5 = acc14_4_5;
      float v14_4_6 = acc14_4_6;
      float v14_4_7 = acc14_4_7;
      float v14_4_8 = acc14_4_8;
      float v14_4_9 = acc14_4_9;
      float v14_4_10 = acc14_4_10;
      float v14_4_11 = acc14_4_11;
      float v14_4_12 = acc14_4_12;
      float v14_4_13 = acc14_4_13;
      float v14_4_14 = acc14_4_14;
      float v14_4_15 = acc14_4_15;
      { float4 x; x.x = v14_4_0; x.y = v14_4_1; x.z = v14_4_2; x.w = v14_4_3; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 128) = packed_float4(x); }
      { float4 x; x.x = v14_4_4; x.y = v14_4_5; x.z = v14_4_6; x.w = v14_4_7; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 132) = packed_float4(x); }
      { float4 x; x.x = v14_4_8; x.y = v14_4_9; x.z = v14_4_10; x.w = v14_4_11; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 136) = packed_float4(x); }
      { float4 x; x.x = v14_4_12; x.y = v14_4_13; x.z = v14_4_14; x.w = v14_4_15; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 140) = packed_float4(x); }
      float v14_5_0 = acc14_5_0;
      float v14_5_1 = acc14_5_1;
      float v14_5_2 = acc14_5_2;
      float v14_5_3 = acc14_5_3;
      float v14_5_4 = acc14_5_4;
      float v14_5_5 = acc14_5_5;
      float v14_5_6 = acc14_5_6;
      float v14_5_7 = acc14_5_7;
      float v14_5_8 = acc14_5_8;
      float v14_5_9 = acc14_5_9;
      float v14_5_10 = acc14_5_10;
      float v14_5_11 = acc14_5_11;
      float v14_5_12 = acc14_5_12;
      float v14_5_13 = acc14_5_13;
      float v14_5_14 = acc14_5_14;
      float v14_5_15 = acc14_5_15;
      { float4 x; x.x = v14_5_0; x.y = v14_5_1; x.z = v14_5_2; x.w = v14_5_3; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 160) = packed_float4(x); }
      { float4 x; x.x = v14_5_4; x.y = v14_5_5; x.z = v14_5_6; x.w = v14_5_7; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 164) = packed_float4(x); }
      { float4 x; x.x = v14_5_8; x.y = v14_5_9; x.z = v14_5_10; x.w = v14_5_11; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 168) = packed_float4(x); }
      { float4 x; x.x = v14_5_12; x.y = v14_5_13; x.z = v14_5_14; x.w = v14_5_15; *(device packed_float4 *)(a0 + io * 192 + (jo * 16) + 172) = packed_float4(x); }
    }
  }
}
