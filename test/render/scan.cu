#define INLINE static __device__ __forceinline__
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

extern "C" __global__ void scan0(int *a0, const int *a1) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 3; i += gridDim.x * (int)blockDim.x) {
    int acc4 = 0;
    for (int j = 0; j < 5; j++) {
      int v3 = a1[i * 5 + j];
      acc4 = (int)((unsigned)acc4 + (unsigned)v3);
      int v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}

extern "C" __global__ void scan1(float *a0, const float *a1) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 3; i += gridDim.x * (int)blockDim.x) {
    float acc4 = -__int_as_float(0x7f800000);
    for (int j = 0; j < 5; j++) {
      float v3 = a1[i * 5 + j];
      acc4 = max_f32(acc4, v3);
      float v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}
