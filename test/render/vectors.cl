#define INLINE static inline
INLINE float bf16_to_f32(ushort x) { return as_float((uint)x << 16); }
INLINE ushort f32_to_bf16(float f) { uint b = as_uint(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }

__kernel void half_rows(__global float *a0_, long a0_at, __global half *a3_, long a3_at, __global ushort *a5_, long a5_at, __global const float *a1_, long a1_at, __global const half *a2_, long a2_at, __global const ushort *a4_, long a4_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global half *a3 = (__global half *)((__global char *)a3_ + a3_at);
  __global ushort *a5 = (__global ushort *)((__global char *)a5_ + a5_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  __global const half *a2 = (__global const half *)((__global const char *)a2_ + a2_at);
  __global const ushort *a4 = (__global const ushort *)((__global const char *)a4_ + a4_at);
  for (int g = get_global_id(0); g < 54; g += get_global_size(0)) {
    float v1_0 = a1[(g / 9) * 71 + ((g % 9) * 8)];
    float v1_1 = a1[(g / 9) * 71 + ((g % 9) * 8) + 1];
    float v1_2 = a1[(g / 9) * 71 + ((g % 9) * 8) + 2];
    float v1_3 = a1[(g / 9) * 71 + ((g % 9) * 8) + 3];
    float v1_4 = a1[(g / 9) * 71 + ((g % 9) * 8) + 4];
    float v1_5 = a1[(g / 9) * 71 + ((g % 9) * 8) + 5];
    float v1_6 = a1[(g / 9) * 71 + ((g % 9) * 8) + 6];
    float v1_7 = (((g % 9) * 8 + 7) < 71) ? a1[(g / 9) * 71 + ((g % 9) * 8) + 7] : 0.0f;
    float4 w2_0 = vload_half4(0, a2 + g * 8);
    float v2_0 = w2_0.x, v2_1 = w2_0.y, v2_2 = w2_0.z, v2_3 = w2_0.w;
    float4 w2_4 = vload_half4(0, a2 + g * 8 + 4);
    float v2_4 = w2_4.x, v2_5 = w2_4.y, v2_6 = w2_4.z, v2_7 = w2_4.w;
    ushort4 w5_0 = vload4(0, a4 + (g % 9) * 8);
    float v5_0 = bf16_to_f32(w5_0.x), v5_1 = bf16_to_f32(w5_0.y), v5_2 = bf16_to_f32(w5_0.z), v5_3 = bf16_to_f32(w5_0.w);
    ushort4 w5_4 = vload4(0, a4 + (g % 9) * 8 + 4);
    float v5_4 = bf16_to_f32(w5_4.x), v5_5 = bf16_to_f32(w5_4.y), v5_6 = bf16_to_f32(w5_4.z), v5_7 = bf16_to_f32(w5_4.w);
    { float4 x; x.x = ((v1_0 + (float)v2_0) + (float)v5_0); x.y = ((v1_1 + (float)v2_1) + (float)v5_1); x.z = ((v1_2 + (float)v2_2) + (float)v5_2); x.w = ((v1_3 + (float)v2_3) + (float)v5_3); vstore4(x, 0, a0 + g * 8); }
    { float4 x; x.x = ((v1_4 + (float)v2_4) + (float)v5_4); x.y = ((v1_5 + (float)v2_5) + (float)v5_5); x.z = ((v1_6 + (float)v2_6) + (float)v5_6); x.w = ((v1_7 + (float)v2_7) + (float)v5_7); vstore4(x, 0, a0 + g * 8 + 4); }
    { float4 x; x.x = v2_0; x.y = v2_1; x.z = v2_2; x.w = v2_3; vstore_half4(x, 0, a3 + g * 8); }
    { float4 x; x.x = v2_4; x.y = v2_5; x.z = v2_6; x.w = v2_7; vstore_half4(x, 0, a3 + g * 8 + 4); }
    { ushort4 x; x.x = f32_to_bf16(v5_0); x.y = f32_to_bf16(v5_1); x.z = f32_to_bf16(v5_2); x.w = f32_to_bf16(v5_3); vstore4(x, 0, a5 + g * 8); }
    { ushort4 x; x.x = f32_to_bf16(v5_4); x.y = f32_to_bf16(v5_5); x.z = f32_to_bf16(v5_6); x.w = f32_to_bf16(v5_7); vstore4(x, 0, a5 + g * 8 + 4); }
  }
}

__kernel void guarded_pairs(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  for (int g = get_global_id(0); g < 210; g += get_global_size(0)) {
    float v1_0 = 0.0f, v1_1 = 0.0f;
    if ((g / 35) < 5) { float2 w1_0 = vload2(0, a1 + (g / 35) * 71 + ((g % 35) * 2) + 1); v1_0 = w1_0.x; v1_1 = w1_0.y; }
    { float2 x; x.x = v1_0; x.y = v1_1; vstore2(x, 0, a0 + g * 2); }
  }
}
