#define INLINE static __device__ __forceinline__
INLINE signed char max_i8(signed char a, signed char b) { return a > b ? a : b; }

extern "C" __global__ void __launch_bounds__(256) row_sum(float *a0, const float *a1) {
  const int t = threadIdx.x;
  const int kl = t & 31;
  const int il = t >> 5;
  for (int io = blockIdx.x; io < 3; io += gridDim.x) {
    float acc6 = 0.0f;
    for (int ko = 0; ko < 3; ko++) {
      float v3 = a1[io * 800 + (il * 100) + (ko * 32) + kl];
      acc6 = (acc6 + v3);
    }
    float f6 = acc6;
    f6 = (f6 + __shfl_xor_sync(0xffffffff, f6, 1));
    f6 = (f6 + __shfl_xor_sync(0xffffffff, f6, 2));
    f6 = (f6 + __shfl_xor_sync(0xffffffff, f6, 4));
    f6 = (f6 + __shfl_xor_sync(0xffffffff, f6, 8));
    f6 = (f6 + __shfl_xor_sync(0xffffffff, f6, 16));
    float v6 = f6;
    float acc12 = 0.0f;
    for (int k_rest = 0; k_rest < 4; k_rest++) {
      float v9 = a1[io * 800 + (il * 100) + k_rest + 96];
      acc12 = (acc12 + v9);
    }
    float v12 = acc12;
    if (!(t & 31)) a0[io * 8 + il] = (v6 + v12);
  }
}

extern "C" __global__ void __launch_bounds__(512) whole_sum(float *a0, signed char *a1, const float *a2, const signed char *a3) {
  const int t = threadIdx.x;
  const int kl = t;
  const int ml = t & 63;
  __shared__ __align__(16) float m5[512];
  __shared__ __align__(16) signed char m11[512];
  float acc5 = 0.0f;
  for (int ko = 0; ko < 4; ko++) {
    float v2 = a2[ko * 512 + kl];
    acc5 = (acc5 + v2);
  }
  float f5 = acc5;
  f5 = (f5 + __shfl_xor_sync(0xffffffff, f5, 1));
  f5 = (f5 + __shfl_xor_sync(0xffffffff, f5, 2));
  f5 = (f5 + __shfl_xor_sync(0xffffffff, f5, 4));
  f5 = (f5 + __shfl_xor_sync(0xffffffff, f5, 8));
  f5 = (f5 + __shfl_xor_sync(0xffffffff, f5, 16));
  m5[0 + t] = f5;
  __syncthreads();
  float v5 = ((((m5[0 + (t & 31)] + m5[32 + (t & 31)]) + (m5[64 + (t & 31)] + m5[96 + (t & 31)])) + ((m5[128 + (t & 31)] + m5[160 + (t & 31)]) + (m5[192 + (t & 31)] + m5[224 + (t & 31)]))) + (((m5[256 + (t & 31)] + m5[288 + (t & 31)]) + (m5[320 + (t & 31)] + m5[352 + (t & 31)])) + ((m5[384 + (t & 31)] + m5[416 + (t & 31)]) + (m5[448 + (t & 31)] + m5[480 + (t & 31)]))));
  signed char acc11 = (-127 - 1);
  for (int mo = 0; mo < 32; mo++) {
    signed char v8 = a3[mo * 64 + ml];
    acc11 = max_i8(acc11, v8);
  }
  signed char f11 = acc11;
  f11 = max_i8(f11, (signed char)__shfl_xor_sync(0xffffffff, (int)f11, 1));
  f11 = max_i8(f11, (signed char)__shfl_xor_sync(0xffffffff, (int)f11, 2));
  f11 = max_i8(f11, (signed char)__shfl_xor_sync(0xffffffff, (int)f11, 4));
  f11 = max_i8(f11, (signed char)__shfl_xor_sync(0xffffffff, (int)f11, 8));
  f11 = max_i8(f11, (signed char)__shfl_xor_sync(0xffffffff, (int)f11, 16));
  m11[0 + t] = f11;
  __syncthreads();
  signed char v11 = max_i8(m11[0 + (t & 479)], m11[32 + (t & 479)]);
  for (int i = 0; i < 1; i++) {
    if (!(t & 511)) a0[i] = v5;
    if (!(t & 511)) a1[i] = v11;
  }
}

extern "C" __global__ void __launch_bounds__(64) add_rows(float *a0, const float *a1) {
  const int t = threadIdx.x;
  const int kl = t;
  __shared__ __align__(16) float m8[64];
  for (int i = blockIdx.x; i < 6; i += gridDim.x) {
    float v1 = a0[i];
    float acc8 = 0.0f;
    for (int ko = 0; ko < 4; ko++) {
      float v4 = a1[i * 256 + (ko * 64) + kl];
      acc8 = (acc8 + v4);
    }
    __syncthreads();
    float f8 = acc8;
    f8 = (f8 + __shfl_xor_sync(0xffffffff, f8, 1));
    f8 = (f8 + __shfl_xor_sync(0xffffffff, f8, 2));
    f8 = (f8 + __shfl_xor_sync(0xffffffff, f8, 4));
    f8 = (f8 + __shfl_xor_sync(0xffffffff, f8, 8));
    f8 = (f8 + __shfl_xor_sync(0xffffffff, f8, 16));
    m8[0 + t] = f8;
    __syncthreads();
    float v8 = (m8[0 + (t & 31)] + m8[32 + (t & 31)]);
    if (!(t & 63)) a0[i] = (v1 + v8);
  }
}
