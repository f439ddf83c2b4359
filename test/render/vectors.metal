#include <metal_stdlib>
using namespace metal;
#define INLINE static inline
INLINE float bf16_to_f32(ushort x) { return as_type<float>((uint)x << 16); }
INLINE ushort f32_to_bf16(float f) { uint b = as_type<uint>(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }

kernel void half_rows(device float *a0 [[buffer(0)]], device half *a3 [[buffer(1)]], device ushort *a5 [[buffer(2)]], device const float *a1 [[buffer(3)]], device const half *a2 [[buffer(4)]], device const ushort *a4 [[buffer(5)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int g = id; g < 54; g += ids) {
    float v1_0 = a1[(g / 9) * 71 + ((g % 9) * 8)];
    float v1_1 = a1[(g / 9) * 71 + ((g % 9) * 8) + 1];
    float v1_2 = a1[(g / 9) * 71 + ((g % 9) * 8) + 2];
    float v1_3 = a1[(g / 9) * 71 + ((g % 9) * 8) + 3];
    float v1_4 = a1[(g / 9) * 71 + ((g % 9) * 8) + 4];
    float v1_5 = a1[(g / 9) * 71 + ((g % 9) * 8) + 5];
    float v1_6 = a1[(g / 9) * 71 + ((g % 9) * 8) + 6];
    float v1_7 = (((g % 9) * 8 + 7) < 71) ? a1[(g / 9) * 71 + ((g % 9) * 8) + 7] : 0.0f;
    half4 w2_0 = half4(*(device const packed_half4 *)(a2 + g * 8));
    float v2_0 = w2_0.x, v2_1 = w2_0.y, v2_2 = w2_0.z, v2_3 = w2_0.w;
    half4 w2_4 = half4(*(device const packed_half4 *)(a2 + g * 8 + 4));
    float v2_4 = w2_4.x, v2_5 = w2_4.y, v2_6 = w2_4.z, v2_7 = w2_4.w;
    ushort4 w5_0 = ushort4(*(device const packed_ushort4 *)(a4 + (g % 9) * 8));
    float v5_0 = bf16_to_f32(w5_0.x), v5_1 = bf16_to_f32(w5_0.y), v5_2 = bf16_to_f32(w5_0.z), v5_3 = bf16_to_f32(w5_0.w);
    ushort4 w5_4 = ushort4(*(device const packed_ushort4 *)(a4 + (g % 9) * 8 + 4));
    float v5_4 = bf16_to_f32(w5_4.x), v5_5 = bf16_to_f32(w5_4.y), v5_6 = bf16_to_f32(w5_4.z), v5_7 = bf16_to_f32(w5_4.w);
    { float4 x; x.x = ((v1_0 + (float)v2_0) + (float)v5_0); x.y = ((v1_1 + (float)v2_1) + (float)v5_1); x.z = ((v1_2 + (float)v2_2) + (float)v5_2); x.w = ((v1_3 + (float)v2_3) + (float)v5_3); *(device packed_float4 *)(a0 + g * 8) = packed_float4(x); }
    { float4 x; x.x = ((v1_4 + (float)v2_4) + (float)v5_4); x.y = ((v1_5 + (float)v2_5) + (float)v5_5); x.z = ((v1_6 + (float)v2_6) + (float)v5_6); x.w = ((v1_7 + (float)v2_7) + (float)v5_7); *(device packed_float4 *)(a0 + g * 8 + 4) = packed_float4(x); }
    { half4 x; x.x = v2_0; x.y = v2_1; x.z = v2_2; x.w = v2_3; *(device packed_half4 *)(a3 + g * 8) = packed_half4(x); }
    { half4 x; x.x = v2_4; x.y = v2_5; x.z = v2_6; x.w = v2_7; *(device packed_half4 *)(a3 + g * 8 + 4) = packed_half4(x); }
    { ushort4 x; x.x = f32_to_bf16(v5_0); x.y = f32_to_bf16(v5_1); x.z = f32_to_bf16(v5_2); x.w = f32_to_bf16(v5_3); *(device packed_ushort4 *)(a5 + g * 8) = packed_ushort4(x); }
    { ushort4 x; x.x = f32_to_bf16(v5_4); x.y = f32_to_bf16(v5_5); x.z = f32_to_bf16(v5_6); x.w = f32_to_bf16(v5_7); *(device packed_ushort4 *)(a5 + g * 8 + 4) = packed_ushort4(x); }
  }
}

kernel void guarded_pairs(device float *a0 [[buffer(0)]], device const float *a1 [[buffer(1)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int g = id; g < 210; g += ids) {
    float v1_0 = 0.0f, v1_1 = 0.0f;
    if ((g / 35) < 5) { float2 w1_0 = float2(*(device const packed_float2 *)(a1 + (g / 35) * 71 + ((g % 35) * 2) + 1)); v1_0 = w1_0.x; v1_1 = w1_0.y; }
    { float2 x; x.x = v1_0; x.y = v1_1; *(device packed_float2 *)(a0 + g * 2) = packed_float2(x); }
  }
}
