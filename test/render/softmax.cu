#define INLINE static __device__ __forceinline__
INLINE float4 load_float4(const float *p) { float4 r; if ((unsigned long long)p & 15) { r.x = p[0]; r.y = p[1]; r.z = p[2]; r.w = p[3]; } else r = *(const float4 *)p; return r; }
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }
INLINE void store_float4(float *p, float4 x) { if ((unsigned long long)p & 15) { p[0] = x.x; p[1] = x.y; p[2] = x.z; p[3] = x.w; } else *(float4 *)p = x; }

extern "C" __global__ void softmax(float *a0, const float *a1) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 6; i += gridDim.x * (int)blockDim.x) {
    float acc6_0 = -__int_as_float(0x7f800000);
    float acc6_1 = -__int_as_float(0x7f800000);
    float acc6_2 = -__int_as_float(0x7f800000);
    float acc6_3 = -__int_as_float(0x7f800000);
    float acc6_4 = -__int_as_float(0x7f800000);
    float acc6_5 = -__int_as_float(0x7f800000);
    float acc6_6 = -__int_as_float(0x7f800000);
    float acc6_7 = -__int_as_float(0x7f800000);
    for (int k1o = 0; k1o < 3; k1o++) {
      float4 w3_0 = load_float4(a1 + i * 24 + (k1o * 8));
      float v3_0 = w3_0.x, v3_1 = w3_0.y, v3_2 = w3_0.z, v3_3 = w3_0.w;
      float4 w3_4 = load_float4(a1 + i * 24 + (k1o * 8) + 4);
      float v3_4 = w3_4.x, v3_5 = w3_4.y, v3_6 = w3_4.z, v3_7 = w3_4.w;
      acc6_0 = max_f32(acc6_0, v3_0);
      acc6_1 = max_f32(acc6_1, v3_1);
      acc6_2 = max_f32(acc6_2, v3_2);
      acc6_3 = max_f32(acc6_3, v3_3);
      acc6_4 = max_f32(acc6_4, v3_4);
      acc6_5 = max_f32(acc6_5, v3_5);
      acc6_6 = max_f32(acc6_6, v3_6);
      acc6_7 = max_f32(acc6_7, v3_7);
    }
    float v6 = max_f32(max_f32(max_f32(acc6_0, acc6_1), max_f32(acc6_2, acc6_3)), max_f32(max_f32(acc6_4, acc6_5), max_f32(acc6_6, acc6_7)));
    float v7 = (v6 * -1.0f);
    float m13[24];
    for (int so = 0; so < 3; so++) {
      float4 w10_0 = load_float4(a1 + i * 24 + (so * 8));
      float v10_0 = w10_0.x, v10_1 = w10_0.y, v10_2 = w10_0.z, v10_3 = w10_0.w;
      float4 w10_4 = load_float4(a1 + i * 24 + (so * 8) + 4);
      float v10_4 = w10_4.x, v10_5 = w10_4.y, v10_6 = w10_4.z, v10_7 = w10_4.w;
      m13[so * 8] = expf((v10_0 + v7));
      m13[so * 8 + 1] = expf((v10_1 + v7));
      m13[so * 8 + 2] = expf((v10_2 + v7));
      m13[so * 8 + 3] = expf((v10_3 + v7));
      m13[so * 8 + 4] = expf((v10_4 + v7));
      m13[so * 8 + 5] = expf((v10_5 + v7));
      m13[so * 8 + 6] = expf((v10_6 + v7));
      m13[so * 8 + 7] = expf((v10_7 + v7));
    }
    float acc20_0 = 0.0f;
    float acc20_1 = 0.0f;
    float acc20_2 = 0.0f;
    float acc20_3 = 0.0f;
    float acc20_4 = 0.0f;
    float acc20_5 = 0.0f;
    float acc20_6 = 0.0f;
    float acc20_7 = 0.0f;
    for (int ko = 0; ko < 3; ko++) {
      float v17_0 = m13[ko * 8];
      float v17_1 = m13[ko * 8 + 1];
      float v17_2 = m13[ko * 8 + 2];
      float v17_3 = m13[ko * 8 + 3];
      float v17_4 = m13[ko * 8 + 4];
      float v17_5 = m13[ko * 8 + 5];
      float v17_6 = m13[ko * 8 + 6];
      float v17_7 = m13[ko * 8 + 7];
      acc20_0 = (acc20_0 + v17_0);
      acc20_1 = (acc20_1 + v17_1);
      acc20_2 = (acc20_2 + v17_2);
      acc20_3 = (acc20_3 + v17_3);
      acc20_4 = (acc20_4 + v17_4);
      acc20_5 = (acc20_5 + v17_5);
      acc20_6 = (acc20_6 + v17_6);
      acc20_7 = (acc20_7 + v17_7);
    }
    float v20 = (((acc20_0 + acc20_1) + (acc20_2 + acc20_3)) + ((acc20_4 + acc20_5) + (acc20_6 + acc20_7)));
    for (int jo = 0; jo < 3; jo++) {
      float v22_0 = m13[jo * 8];
      float v22_1 = m13[jo * 8 + 1];
      float v22_2 = m13[jo * 8 + 2];
      float v22_3 = m13[jo * 8 + 3];
      float v22_4 = m13[jo * 8 + 4];
      float v22_5 = m13[jo * 8 + 5];
      float v22_6 = m13[jo * 8 + 6];
      float v22_7 = m13[jo * 8 + 7];
      { float4 x; x.x = (v22_0 / v20); x.y = (v22_1 / v20); x.z = (v22_2 / v20); x.w = (v22_3 / v20); store_float4(a0 + i * 24 + (jo * 8), x); }
      { float4 x; x.x = (v22_4 / v20); x.y = (v22_5 / v20); x.z = (v22_6 / v20); x.w = (v22_7 / v20); store_float4(a0 + i * 24 + (jo * 8) + 4, x); }
    }
  }
}
