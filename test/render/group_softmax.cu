#define INLINE static __device__ __forceinline__
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

extern "C" __global__ void __launch_bounds__(128) group_softmax(float *a0, const float *a1) {
  const int t = threadIdx.x;
  const int k1l = t & 63;
  const int sl = t;
  const int kl = t & 63;
  const int jl = t;
  __shared__ __align__(16) float m6[128];
  __shared__ __align__(16) float m13[256];
  __shared__ __align__(16) float m21[128];
  for (int i = blockIdx.x; i < 6; i += gridDim.x) {
    float acc6 = -__int_as_float(0x7f800000);
    for (int k1o = 0; k1o < 4; k1o++) {
      float v3 = a1[i * 256 + (k1o * 64) + k1l];
      acc6 = max_f32(acc6, v3);
    }
    float f6 = acc6;
    f6 = max_f32(f6, __shfl_xor_sync(0xffffffff, f6, 1));
    f6 = max_f32(f6, __shfl_xor_sync(0xffffffff, f6, 2));
    f6 = max_f32(f6, __shfl_xor_sync(0xffffffff, f6, 4));
    f6 = max_f32(f6, __shfl_xor_sync(0xffffffff, f6, 8));
    f6 = max_f32(f6, __shfl_xor_sync(0xffffffff, f6, 16));
    m6[0 + t] = f6;
    __syncthreads();
    float v6 = max_f32(m6[0 + (t & 95)], m6[32 + (t & 95)]);
    float v7 = (v6 * -1.0f);
    for (int so = 0; so < 2; so++) {
      float v10 = a1[i * 256 + (so * 128) + sl];
      m13[so * 128 + sl] = expf((v10 + v7));
    }
    float acc21 = 0.0f;
    __syncthreads();
    for (int ko = 0; ko < 4; ko++) {
      float v18 = m13[ko * 64 + kl];
      acc21 = (acc21 + v18);
    }
    float f21 = acc21;
    f21 = (f21 + __shfl_xor_sync(0xffffffff, f21, 1));
    f21 = (f21 + __shfl_xor_sync(0xffffffff, f21, 2));
    f21 = (f21 + __shfl_xor_sync(0xffffffff, f21, 4));
    f21 = (f21 + __shfl_xor_sync(0xffffffff, f21, 8));
    f21 = (f21 + __shfl_xor_sync(0xffffffff, f21, 16));
    m21[0 + t] = f21;
    __syncthreads();
    float v21 = (m21[0 + (t & 95)] + m21[32 + (t & 95)]);
    for (int jo = 0; jo < 2; jo++) {
      float v23 = m13[jo * 128 + jl];
      a0[i * 256 + (jo * 128) + jl] = (v23 / v21);
    }
  }
}
