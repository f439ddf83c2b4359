#define INLINE static __device__ __forceinline__
INLINE float4 load_float4(const float *p) { float4 r; if ((unsigned long long)p & 15) { r.x = p[0]; r.y = p[1]; r.z = p[2]; r.w = p[3]; } else r = *(const float4 *)p; return r; }
INLINE void store_float4(float *p, float4 x) { if ((unsigned long long)p & 15) { p[0] = x.x; p[1] = x.y; p[2] = x.z; p[3] = x.w; } else *(float4 *)p = x; }

extern "C" __global__ void scatter0(float *a0, const float *a1) {
  for (int io = blockIdx.x * (int)blockDim.x + threadIdx.x; io < 3; io += gridDim.x * (int)blockDim.x) {
    float4 w1_0 = load_float4(a1 + (io * 16 < 24 ? io * 16 : 24));
    float v1_0 = w1_0.x, v1_1 = w1_0.y, v1_2 = w1_0.z, v1_3 = w1_0.w;
    float4 w1_4 = load_float4(a1 + (io * 16 < 24 ? io * 16 : 24) + 4);
    float v1_4 = w1_4.x, v1_5 = w1_4.y, v1_6 = w1_4.z, v1_7 = w1_4.w;
    float4 w1_8 = load_float4(a1 + (io * 16 < 24 ? io * 16 : 24) + 8);
    float v1_8 = w1_8.x, v1_9 = w1_8.y, v1_10 = w1_8.z, v1_11 = w1_8.w;
    float4 w1_12 = load_float4(a1 + (io * 16 < 24 ? io * 16 : 24) + 12);
    float v1_12 = w1_12.x, v1_13 = w1_12.y, v1_14 = w1_12.z, v1_15 = w1_12.w;
    { float4 x; x.x = v1_0; x.y = v1_1; x.z = v1_2; x.w = v1_3; store_float4(a0 + (io * 16 < 24 ? io * 16 : 24), x); }
    { float4 x; x.x = v1_4; x.y = v1_5; x.z = v1_6; x.w = v1_7; store_float4(a0 + (io * 16 < 24 ? io * 16 : 24) + 4, x); }
    { float4 x; x.x = v1_8; x.y = v1_9; x.z = v1_10; x.w = v1_11; store_float4(a0 + (io * 16 < 24 ? io * 16 : 24) + 8, x); }
    { float4 x; x.x = v1_12; x.y = v1_13; x.z = v1_14; x.w = v1_15; store_float4(a0 + (io * 16 < 24 ? io * 16 : 24) + 12, x); }
  }
}

extern "C" __global__ void scatter1(float *a0, const float *a1, const long long *a2, long long *err) {
  for (long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x; j < 4; j += gridDim.x * (long long)blockDim.x) {
    for (long long i = 0; i < 6; i++) {
      float v2 = a1[i * 4 + j];
      long long v3 = a2[i * 4 + j];
      if (!((long long)v3 > -1 && (long long)v3 < 10)) *err = ((long long)10 << 32) | (((long long)v3 == (int)((long long)v3) ? (long long)v3 : 0) & 0xffffffffLL);
      if ((long long)v3 > -1 && (long long)v3 < 10) a0[(long long)v3 * 4 + j] = (a0[(long long)v3 * 4 + j] + v2);
    }
  }
}
