#define INLINE static __device__ __forceinline__
INLINE float4 load_float4(const float *p) { float4 r; if ((unsigned long long)p & 15) { r.x = p[0]; r.y = p[1]; r.z = p[2]; r.w = p[3]; } else r = *(const float4 *)p; return r; }
INLINE void store_float4(float *p, float4 x) { if ((unsigned long long)p & 15) { p[0] = x.x; p[1] = x.y; p[2] = x.z; p[3] = x.w; } else *(float4 *)p = x; }
INLINE float mod_f32(float a, float b) { float r = fmodf(a, b); return r != 0 ? ((r < 0) != (b < 0) ? r + b : r) : copysignf((float)0, b); }
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

extern "C" __global__ void chain(float *a0, const float *a1, const float *a2) {
  for (int io = blockIdx.x * (int)blockDim.x + threadIdx.x; io < 3; io += gridDim.x * (int)blockDim.x) {
    float4 w1_0 = load_float4(a1 + (io * 16 < 21 ? io * 16 : 21));
    float v1_0 = w1_0.x, v1_1 = w1_0.y, v1_2 = w1_0.z, v1_3 = w1_0.w;
    float4 w1_4 = load_float4(a1 + (io * 16 < 21 ? io * 16 : 21) + 4);
    float v1_4 = w1_4.x, v1_5 = w1_4.y, v1_6 = w1_4.z, v1_7 = w1_4.w;
    float4 w1_8 = load_float4(a1 + (io * 16 < 21 ? io * 16 : 21) + 8);
    float v1_8 = w1_8.x, v1_9 = w1_8.y, v1_10 = w1_8.z, v1_11 = w1_8.w;
    float4 w1_12 = load_float4(a1 + (io * 16 < 21 ? io * 16 : 21) + 12);
    float v1_12 = w1_12.x, v1_13 = w1_12.y, v1_14 = w1_12.z, v1_15 = w1_12.w;
    float4 w2_0 = load_float4(a2 + (io * 16 < 21 ? io * 16 : 21));
    float v2_0 = w2_0.x, v2_1 = w2_0.y, v2_2 = w2_0.z, v2_3 = w2_0.w;
    float4 w2_4 = load_float4(a2 + (io * 16 < 21 ? io * 16 : 21) + 4);
    float v2_4 = w2_4.x, v2_5 = w2_4.y, v2_6 = w2_4.z, v2_7 = w2_4.w;
    float4 w2_8 = load_float4(a2 + (io * 16 < 21 ? io * 16 : 21) + 8);
    float v2_8 = w2_8.x, v2_9 = w2_8.y, v2_10 = w2_8.z, v2_11 = w2_8.w;
    float4 w2_12 = load_float4(a2 + (io * 16 < 21 ? io * 16 : 21) + 12);
    float v2_12 = w2_12.x, v2_13 = w2_12.y, v2_14 = w2_12.z, v2_15 = w2_12.w;
    { float4 x; x.x = mod_f32(floorf(((v1_0 < v2_0) ? powf(max_f32((v1_0 * v2_0), 0.5f), erff(v2_0)) : expf(v1_0))), v2_0); x.y = mod_f32(floorf(((v1_1 < v2_1) ? powf(max_f32((v1_1 * v2_1), 0.5f), erff(v2_1)) : expf(v1_1))), v2_1); x.z = mod_f32(floorf(((v1_2 < v2_2) ? powf(max_f32((v1_2 * v2_2), 0.5f), erff(v2_2)) : expf(v1_2))), v2_2); x.w = mod_f32(floorf(((v1_3 < v2_3) ? powf(max_f32((v1_3 * v2_3), 0.5f), erff(v2_3)) : expf(v1_3))), v2_3); store_float4(a0 + (io * 16 < 21 ? io * 16 : 21), x); }
    { float4 x; x.x = mod_f32(floorf(((v1_4 < v2_4) ? powf(max_f32((v1_4 * v2_4), 0.5f), erff(v2_4)) : expf(v1_4))), v2_4); x.y = mod_f32(floorf(((v1_5 < v2_5) ? powf(max_f32((v1_5 * v2_5), 0.5f), erff(v2_5)) : expf(v1_5))), v2_5); x.z = mod_f32(floorf(((v1_6 < v2_6) ? powf(max_f32((v1_6 * v2_6), 0.5f), erff(v2_6)) : expf(v1_6))), v2_6); x.w = mod_f32(floorf(((v1_7 < v2_7) ? powf(max_f32((v1_7 * v2_7), 0.5f), erff(v2_7)) : expf(v1_7))), v2_7); store_float4(a0 + (io * 16 < 21 ? io * 16 : 21) + 4, x); }
    { float4 x; x.x = mod_f32(floorf(((v1_8 < v2_8) ? powf(max_f32((v1_8 * v2_8), 0.5f), erff(v2_8)) : expf(v1_8))), v2_8); x.y = mod_f32(floorf(((v1_9 < v2_9) ? powf(max_f32((v1_9 * v2_9), 0.5f), erff(v2_9)) : expf(v1_9))), v2_9); x.z = mod_f32(floorf(((v1_10 < v2_10) ? powf(max_f32((v1_10 * v2_10), 0.5f), erff(v2_10)) : expf(v1_10))), v2_10); x.w = mod_f32(floorf(((v1_11 < v2_11) ? powf(max_f32((v1_11 * v2_11), 0.5f), erff(v2_11)) : expf(v1_11))), v2_11); store_float4(a0 + (io * 16 < 21 ? io * 16 : 21) + 8, x); }
    { float4 x; x.x = mod_f32(floorf(((v1_12 < v2_12) ? powf(max_f32((v1_12 * v2_12), 0.5f), erff(v2_12)) : expf(v1_12))), v2_12); x.y = mod_f32(floorf(((v1_13 < v2_13) ? powf(max_f32((v1_13 * v2_13), 0.5f), erff(v2_13)) : expf(v1_13))), v2_13); x.z = mod_f32(floorf(((v1_14 < v2_14) ? powf(max_f32((v1_14 * v2_14), 0.5f), erff(v2_14)) : expf(v1_14))), v2_14); x.w = mod_f32(floorf(((v1_15 < v2_15) ? powf(max_f32((v1_15 * v2_15), 0.5f), erff(v2_15)) : expf(v1_15))), v2_15); store_float4(a0 + (io * 16 < 21 ? io * 16 : 21) + 12, x); }
  }
}
