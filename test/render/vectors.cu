#define INLINE static __device__ __forceinline__
INLINE ushort4 load_ushort4(const unsigned short *p) { ushort4 r; if ((unsigned long long)p & 7) { r.x = p[0]; r.y = p[1]; r.z = p[2]; r.w = p[3]; } else r = *(const ushort4 *)p; return r; }
INLINE float f16_to_f32(unsigned short x) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x)); return r; }
INLINE float bf16_to_f32(unsigned short x) { return __int_as_float((unsigned)x << 16); }
INLINE void store_float4(float *p, float4 x) { if ((unsigned long long)p & 15) { p[0] = x.x; p[1] = x.y; p[2] = x.z; p[3] = x.w; } else *(float4 *)p = x; }
INLINE void store_ushort4(unsigned short *p, ushort4 x) { if ((unsigned long long)p & 7) { p[0] = x.x; p[1] = x.y; p[2] = x.z; p[3] = x.w; } else *(ushort4 *)p = x; }
INLINE unsigned short f32_to_f16(float x) { unsigned short r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
INLINE unsigned short f32_to_bf16(float f) { unsigned b = __float_as_int(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
INLINE float2 load_float2(const float *p) { float2 r; if ((unsigned long long)p & 7) { r.x = p[0]; r.y = p[1]; } else r = *(const float2 *)p; return r; }
INLINE void store_float2(float *p, float2 x) { if ((unsigned long long)p & 7) { p[0] = x.x; p[1] = x.y; } else *(float2 *)p = x; }

extern "C" __global__ void half_rows(float *a0, unsigned short *a3, unsigned short *a5, const float *a1, const unsigned short *a2, const unsigned short *a4) {
  for (int g = blockIdx.x * (int)blockDim.x + threadIdx.x; g < 54; g += gridDim.x * (int)blockDim.x) {
    float v1_0 = a1[(g / 9) * 71 + ((g % 9) * 8)];
    float v1_1 = a1[(g / 9) * 71 + ((g % 9) * 8) + 1];
    float v1_2 = a1[(g / 9) * 71 + ((g % 9) * 8) + 2];
    float v1_3 = a1[(g / 9) * 71 + ((g % 9) * 8) + 3];
    float v1_4 = a1[(g / 9) * 71 + ((g % 9) * 8) + 4];
    float v1_5 = a1[(g / 9) * 71 + ((g % 9) * 8) + 5];
    float v1_6 = a1[(g / 9) * 71 + ((g % 9) * 8) + 6];
    float v1_7 = (((g % 9) * 8 + 7) < 71) ? a1[(g / 9) * 71 + ((g % 9) * 8) + 7] : 0.0f;
    ushort4 w2_0 = load_ushort4(a2 + g * 8);
    float v2_0 = f16_to_f32(w2_0.x), v2_1 = f16_to_f32(w2_0.y), v2_2 = f16_to_f32(w2_0.z), v2_3 = f16_to_f32(w2_0.w);
    ushort4 w2_4 = load_ushort4(a2 + g * 8 + 4);
    float v2_4 = f16_to_f32(w2_4.x), v2_5 = f16_to_f32(w2_4.y), v2_6 = f16_to_f32(w2_4.z), v2_7 = f16_to_f32(w2_4.w);
    ushort4 w5_0 = load_ushort4(a4 + (g % 9) * 8);
    float v5_0 = bf16_to_f32(w5_0.x), v5_1 = bf16_to_f32(w5_0.y), v5_2 = bf16_to_f32(w5_0.z), v5_3 = bf16_to_f32(w5_0.w);
    ushort4 w5_4 = load_ushort4(a4 + (g % 9) * 8 + 4);
    float v5_4 = bf16_to_f32(w5_4.x), v5_5 = bf16_to_f32(w5_4.y), v5_6 = bf16_to_f32(w5_4.z), v5_7 = bf16_to_f32(w5_4.w);
    { float4 x; x.x = ((v1_0 + (float)v2_0) + (float)v5_0); x.y = ((v1_1 + (float)v2_1) + (float)v5_1); x.z = ((v1_2 + (float)v2_2) + (float)v5_2); x.w = ((v1_3 + (float)v2_3) + (float)v5_3); store_float4(a0 + g * 8, x); }
    { float4 x; x.x = ((v1_4 + (float)v2_4) + (float)v5_4); x.y = ((v1_5 + (float)v2_5) + (float)v5_5); x.z = ((v1_6 + (float)v2_6) + (float)v5_6); x.w = ((v1_7 + (float)v2_7) + (float)v5_7); store_float4(a0 + g * 8 + 4, x); }
    { ushort4 x; x.x = f32_to_f16(v2_0); x.y = f32_to_f16(v2_1); x.z = f32_to_f16(v2_2); x.w = f32_to_f16(v2_3); store_ushort4(a3 + g * 8, x); }
    { ushort4 x; x.x = f32_to_f16(v2_4); x.y = f32_to_f16(v2_5); x.z = f32_to_f16(v2_6); x.w = f32_to_f16(v2_7); store_ushort4(a3 + g * 8 + 4, x); }
    { ushort4 x; x.x = f32_to_bf16(v5_0); x.y = f32_to_bf16(v5_1); x.z = f32_to_bf16(v5_2); x.w = f32_to_bf16(v5_3); store_ushort4(a5 + g * 8, x); }
    { ushort4 x; x.x = f32_to_bf16(v5_4); x.y = f32_to_bf16(v5_5); x.z = f32_to_bf16(v5_6); x.w = f32_to_bf16(v5_7); store_ushort4(a5 + g * 8 + 4, x); }
  }
}

extern "C" __global__ void guarded_pairs(float *a0, const float *a1) {
  for (int g = blockIdx.x * (int)blockDim.x + threadIdx.x; g < 210; g += gridDim.x * (int)blockDim.x) {
    float v1_0 = 0.0f, v1_1 = 0.0f;
    if ((g / 35) < 5) { float2 w1_0 = load_float2(a1 + (g / 35) * 71 + ((g % 35) * 2) + 1); v1_0 = w1_0.x; v1_1 = w1_0.y; }
    { float2 x; x.x = v1_0; x.y = v1_1; store_float2(a0 + g * 2, x); }
  }
}
