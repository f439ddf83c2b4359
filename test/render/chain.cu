#define INLINE static __device__ __forceinline__
INLINE float mod_f32(float a, float b) { float r = fmodf(a, b); return r != 0 ? ((r < 0) != (b < 0) ? r + b : r) : copysignf((float)0, b); }
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

extern "C" __global__ void chain(float *a0, const float *a1, const float *a2) {
  for (long long io = blockIdx.x * (long long)blockDim.x + threadIdx.x; io < 3; io += (long long)gridDim.x * blockDim.x) {
    float v1_0 = a1[(io * 16 < 21 ? io * 16 : 21)];
    float v1_1 = a1[(io * 16 < 21 ? io * 16 : 21) + 1];
    float v1_2 = a1[(io * 16 < 21 ? io * 16 : 21) + 2];
    float v1_3 = a1[(io * 16 < 21 ? io * 16 : 21) + 3];
    float v1_4 = a1[(io * 16 < 21 ? io * 16 : 21) + 4];
    float v1_5 = a1[(io * 16 < 21 ? io * 16 : 21) + 5];
    float v1_6 = a1[(io * 16 < 21 ? io * 16 : 21) + 6];
    float v1_7 = a1[(io * 16 < 21 ? io * 16 : 21) + 7];
    float v1_8 = a1[(io * 16 < 21 ? io * 16 : 21) + 8];
    float v1_9 = a1[(io * 16 < 21 ? io * 16 : 21) + 9];
    float v1_10 = a1[(io * 16 < 21 ? io * 16 : 21) + 10];
    float v1_11 = a1[(io * 16 < 21 ? io * 16 : 21) + 11];
    float v1_12 = a1[(io * 16 < 21 ? io * 16 : 21) + 12];
    float v1_13 = a1[(io * 16 < 21 ? io * 16 : 21) + 13];
    float v1_14 = a1[(io * 16 < 21 ? io * 16 : 21) + 14];
    float v1_15 = a1[(io * 16 < 21 ? io * 16 : 21) + 15];
    float v2_0 = a2[(io * 16 < 21 ? io * 16 : 21)];
    float v2_1 = a2[(io * 16 < 21 ? io * 16 : 21) + 1];
    float v2_2 = a2[(io * 16 < 21 ? io * 16 : 21) + 2];
    float v2_3 = a2[(io * 16 < 21 ? io * 16 : 21) + 3];
    float v2_4 = a2[(io * 16 < 21 ? io * 16 : 21) + 4];
    float v2_5 = a2[(io * 16 < 21 ? io * 16 : 21) + 5];
    float v2_6 = a2[(io * 16 < 21 ? io * 16 : 21) + 6];
    float v2_7 = a2[(io * 16 < 21 ? io * 16 : 21) + 7];
    float v2_8 = a2[(io * 16 < 21 ? io * 16 : 21) + 8];
    float v2_9 = a2[(io * 16 < 21 ? io * 16 : 21) + 9];
    float v2_10 = a2[(io * 16 < 21 ? io * 16 : 21) + 10];
    float v2_11 = a2[(io * 16 < 21 ? io * 16 : 21) + 11];
    float v2_12 = a2[(io * 16 < 21 ? io * 16 : 21) + 12];
    float v2_13 = a2[(io * 16 < 21 ? io * 16 : 21) + 13];
    float v2_14 = a2[(io * 16 < 21 ? io * 16 : 21) + 14];
    float v2_15 = a2[(io * 16 < 21 ? io * 16 : 21) + 15];
    a0[(io * 16 < 21 ? io * 16 : 21)] = mod_f32(floorf(((v1_0 < v2_0) ? powf(max_f32((v1_0 * v2_0), 0.5f), erff(v2_0)) : expf(v1_0))), v2_0);
    a0[(io * 16 < 21 ? io * 16 : 21) + 1] = mod_f32(floorf(((v1_1 < v2_1) ? powf(max_f32((v1_1 * v2_1), 0.5f), erff(v2_1)) : expf(v1_1))), v2_1);
    a0[(io * 16 < 21 ? io * 16 : 21) + 2] = mod_f32(floorf(((v1_2 < v2_2) ? powf(max_f32((v1_2 * v2_2), 0.5f), erff(v2_2)) : expf(v1_2))), v2_2);
    a0[(io * 16 < 21 ? io * 16 : 21) + 3] = mod_f32(floorf(((v1_3 < v2_3) ? powf(max_f32((v1_3 * v2_3), 0.5f), erff(v2_3)) : expf(v1_3))), v2_3);
    a0[(io * 16 < 21 ? io * 16 : 21) + 4] = mod_f32(floorf(((v1_4 < v2_4) ? powf(max_f32((v1_4 * v2_4), 0.5f), erff(v2_4)) : expf(v1_4))), v2_4);
    a0[(io * 16 < 21 ? io * 16 : 21) + 5] = mod_f32(floorf(((v1_5 < v2_5) ? powf(max_f32((v1_5 * v2_5), 0.5f), erff(v2_5)) : expf(v1_5))), v2_5);
    a0[(io * 16 < 21 ? io * 16 : 21) + 6] = mod_f32(floorf(((v1_6 < v2_6) ? powf(max_f32((v1_6 * v2_6), 0.5f), erff(v2_6)) : expf(v1_6))), v2_6);
    a0[(io * 16 < 21 ? io * 16 : 21) + 7] = mod_f32(floorf(((v1_7 < v2_7) ? powf(max_f32((v1_7 * v2_7), 0.5f), erff(v2_7)) : expf(v1_7))), v2_7);
    a0[(io * 16 < 21 ? io * 16 : 21) + 8] = mod_f32(floorf(((v1_8 < v2_8) ? powf(max_f32((v1_8 * v2_8), 0.5f), erff(v2_8)) : expf(v1_8))), v2_8);
    a0[(io * 16 < 21 ? io * 16 : 21) + 9] = mod_f32(floorf(((v1_9 < v2_9) ? powf(max_f32((v1_9 * v2_9), 0.5f), erff(v2_9)) : expf(v1_9))), v2_9);
    a0[(io * 16 < 21 ? io * 16 : 21) + 10] = mod_f32(floorf(((v1_10 < v2_10) ? powf(max_f32((v1_10 * v2_10), 0.5f), erff(v2_10)) : expf(v1_10))), v2_10);
    a0[(io * 16 < 21 ? io * 16 : 21) + 11] = mod_f32(floorf(((v1_11 < v2_11) ? powf(max_f32((v1_11 * v2_11), 0.5f), erff(v2_11)) : expf(v1_11))), v2_11);
    a0[(io * 16 < 21 ? io * 16 : 21) + 12] = mod_f32(floorf(((v1_12 < v2_12) ? powf(max_f32((v1_12 * v2_12), 0.5f), erff(v2_12)) : expf(v1_12))), v2_12);
    a0[(io * 16 < 21 ? io * 16 : 21) + 13] = mod_f32(floorf(((v1_13 < v2_13) ? powf(max_f32((v1_13 * v2_13), 0.5f), erff(v2_13)) : expf(v1_13))), v2_13);
    a0[(io * 16 < 21 ? io * 16 : 21) + 14] = mod_f32(floorf(((v1_14 < v2_14) ? powf(max_f32((v1_14 * v2_14), 0.5f), erff(v2_14)) : expf(v1_14))), v2_14);
    a0[(io * 16 < 21 ? io * 16 : 21) + 15] = mod_f32(floorf(((v1_15 < v2_15) ? powf(max_f32((v1_15 * v2_15), 0.5f), erff(v2_15)) : expf(v1_15))), v2_15);
  }
}
