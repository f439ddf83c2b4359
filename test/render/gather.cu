#define INLINE static __device__ __forceinline__

extern "C" __global__ void gather(float *a0, const int *a1, const float *a2, long long *err) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < 6; i += gridDim.x * (long long)blockDim.x) {
    for (long long j = 0; j < 4; j++) {
      int v2 = a1[i * 4 + j];
      if (!((long long)v2 > -1 && (long long)v2 < 10)) *err = ((long long)10 << 32) | ((long long)v2 & 0xffffffffLL);
      float v3 = ((long long)v2 > -1 && (long long)v2 < 10) ? a2[(long long)v2 * 4 + j] : 0.0f;
      a0[i * 4 + j] = v3;
    }
  }
}
