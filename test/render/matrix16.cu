#define INLINE static __device__ __forceinline__
INLINE ushort2 load_ushort2(const unsigned short *p) { ushort2 r; if ((unsigned long long)p & 3) { r.x = p[0]; r.y = p[1]; } else r = *(const ushort2 *)p; return r; }
INLINE void mma_m16n8k16_f16(float &c0, float &c1, float &c2, float &c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) { asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); }
INLINE float f16_to_f32(unsigned short x) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x)); return r; }
INLINE void store_ushort2(unsigned short *p, ushort2 x) { if ((unsigned long long)p & 3) { p[0] = x.x; p[1] = x.y; } else *(ushort2 *)p = x; }
INLINE unsigned short f32_to_f16(float x) { unsigned short r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
INLINE float round_f16(float x) { return f16_to_f32(f32_to_f16(x)); }
INLINE float bf16_to_f32(unsigned short x) { return __int_as_float((unsigned)x << 16); }
INLINE unsigned short f32_to_bf16(float f) { unsigned b = __float_as_int(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
INLINE void mma_m16n8k16_bf16(float &c0, float &c1, float &c2, float &c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) { asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); }
INLINE void store_float2(float *p, float2 x) { if ((unsigned long long)p & 7) { p[0] = x.x; p[1] = x.y; } else *(float2 *)p = x; }

extern "C" __global__ void __launch_bounds__(32) half_product(unsigned short *a0, const unsigned short *a1, const unsigned short *a2, const unsigned short *a3) {
  const int t = threadIdx.x;
  const int i1 = t >> 2;
  const int j0 = t & 3;
  for (int g = blockIdx.x; g < 6; g += gridDim.x) {
    float acc8_0_0_0 = 0.0f;
    float acc8_0_0_1 = 0.0f;
    float acc8_0_1_0 = 0.0f;
    float acc8_0_1_1 = 0.0f;
    float acc8_1_0_0 = 0.0f;
    float acc8_1_0_1 = 0.0f;
    float acc8_1_1_0 = 0.0f;
    float acc8_1_1_1 = 0.0f;
    for (int ko = 0; ko < 4; ko++) {
      ushort2 w3_0_0_0 = load_ushort2(a1 + (g / 3) * 1024 + (i1 * 64) + (ko * 16) + (j0 * 2));
      unsigned short v3_0_0_0 = w3_0_0_0.x, v3_0_0_1 = w3_0_0_0.y;
      unsigned short v4_0_0_0 = a2[ko * 768 + (j0 * 96) + ((g % 3) * 16) + i1];
      unsigned short v4_0_0_1 = a2[ko * 768 + (j0 * 96) + ((g % 3) * 16) + i1 + 48];
      unsigned short v4_0_1_0 = a2[ko * 768 + (j0 * 96) + ((g % 3) * 16) + i1 + 384];
      unsigned short v4_0_1_1 = a2[ko * 768 + (j0 * 96) + ((g % 3) * 16) + i1 + 432];
      unsigned short v4_1_0_0 = a2[ko * 768 + (j0 * 96) + ((g % 3) * 16) + i1 + 8];
      unsigned short v4_1_0_1 = a2[ko * 768 + (j0 * 96) + ((g % 3) * 16) + i1 + 56];
      unsigned short v4_1_1_0 = a2[ko * 768 + (j0 * 96) + ((g % 3) * 16) + i1 + 392];
      unsigned short v4_1_1_1 = a2[ko * 768 + (j0 * 96) + ((g % 3) * 16) + i1 + 440];
      ushort2 w3_0_1_0 = load_ushort2(a1 + (g / 3) * 1024 + (i1 * 64) + (ko * 16) + (j0 * 2) + 8);
      unsigned short v3_0_1_0 = w3_0_1_0.x, v3_0_1_1 = w3_0_1_0.y;
      ushort2 w3_1_0_0 = load_ushort2(a1 + (g / 3) * 1024 + (i1 * 64) + (ko * 16) + (j0 * 2) + 512);
      unsigned short v3_1_0_0 = w3_1_0_0.x, v3_1_0_1 = w3_1_0_0.y;
      ushort2 w3_1_1_0 = load_ushort2(a1 + (g / 3) * 1024 + (i1 * 64) + (ko * 16) + (j0 * 2) + 520);
      unsigned short v3_1_1_0 = w3_1_1_0.x, v3_1_1_1 = w3_1_1_0.y;
      mma_m16n8k16_f16(acc8_0_0_0, acc8_0_0_1, acc8_1_0_0, acc8_1_0_1, (unsigned)v3_0_0_0 | (unsigned)v3_0_0_1 << 16, (unsigned)v3_1_0_0 | (unsigned)v3_1_0_1 << 16, (unsigned)v3_0_1_0 | (unsigned)v3_0_1_1 << 16, (unsigned)v3_1_1_0 | (unsigned)v3_1_1_1 << 16, (unsigned)v4_0_0_0 | (unsigned)v4_0_0_1 << 16, (unsigned)v4_0_1_0 | (unsigned)v4_0_1_1 << 16);
      mma_m16n8k16_f16(acc8_0_1_0, acc8_0_1_1, acc8_1_1_0, acc8_1_1_1, (unsigned)v3_0_0_0 | (unsigned)v3_0_0_1 << 16, (unsigned)v3_1_0_0 | (unsigned)v3_1_0_1 << 16, (unsigned)v3_0_1_0 | (unsigned)v3_0_1_1 << 16, (unsigned)v3_1_1_0 | (unsigned)v3_1_1_1 << 16, (unsigned)v4_1_0_0 | (unsigned)v4_1_0_1 << 16, (unsigned)v4_1_1_0 | (unsigned)v4_1_1_1 << 16);
    }
    float v8_0_0_0 = acc8_0_0_0;
    float v8_0_0_1 = acc8_0_0_1;
    ushort2 w10_0_0 = load_ushort2(a3 + (g % 3) * 16 + (j0 * 2));
    float v10_0_0 = f16_to_f32(w10_0_0.x), v10_0_1 = f16_to_f32(w10_0_0.y);
    { ushort2 x; x.x = f32_to_f16((round_f16(v8_0_0_0) + v10_0_0)); x.y = f32_to_f16((round_f16(v8_0_0_1) + v10_0_1)); store_ushort2(a0 + (g / 3) * 768 + (i1 * 48) + ((g % 3) * 16) + (j0 * 2), x); }
    float v8_0_1_0 = acc8_0_1_0;
    float v8_0_1_1 = acc8_0_1_1;
    ushort2 w10_1_0 = load_ushort2(a3 + (g % 3) * 16 + (j0 * 2) + 8);
    float v10_1_0 = f16_to_f32(w10_1_0.x), v10_1_1 = f16_to_f32(w10_1_0.y);
    { ushort2 x; x.x = f32_to_f16((round_f16(v8_0_1_0) + v10_1_0)); x.y = f32_to_f16((round_f16(v8_0_1_1) + v10_1_1)); store_ushort2(a0 + (g / 3) * 768 + (i1 * 48) + ((g % 3) * 16) + (j0 * 2) + 8, x); }
    float v8_1_0_0 = acc8_1_0_0;
    float v8_1_0_1 = acc8_1_0_1;
    { ushort2 x; x.x = f32_to_f16((round_f16(v8_1_0_0) + v10_0_0)); x.y = f32_to_f16((round_f16(v8_1_0_1) + v10_0_1)); store_ushort2(a0 + (g / 3) * 768 + (i1 * 48) + ((g % 3) * 16) + (j0 * 2) + 384, x); }
    float v8_1_1_0 = acc8_1_1_0;
    float v8_1_1_1 = acc8_1_1_1;
    { ushort2 x; x.x = f32_to_f16((round_f16(v8_1_1_0) + v10_1_0)); x.y = f32_to_f16((round_f16(v8_1_1_1) + v10_1_1)); store_ushort2(a0 + (g / 3) * 768 + (i1 * 48) + ((g % 3) * 16) + (j0 * 2) + 392, x); }
  }
}

extern "C" __global__ void __launch_bounds__(64) bf16_product(float *a0, const unsigned short *a1, const unsigned short *a2) {
  const int t = threadIdx.x;
  const int i1 = t >> 2 & 7;
  const int j0 = t & 3;
  const int ft = t;
  const int et = t;
  const int iw = t >> 5;
  __shared__ __align__(16) unsigned short m7[1024];
  __shared__ __align__(16) unsigned short m13[1024];
  for (int g = blockIdx.x; g < 2; g += gridDim.x) {
    float acc24_0_0_0 = 0.0f;
    float acc24_0_0_1 = 0.0f;
    float acc24_0_1_0 = 0.0f;
    float acc24_0_1_1 = 0.0f;
    float acc24_0_2_0 = 0.0f;
    float acc24_0_2_1 = 0.0f;
    float acc24_0_3_0 = 0.0f;
    float acc24_0_3_1 = 0.0f;
    float acc24_1_0_0 = 0.0f;
    float acc24_1_0_1 = 0.0f;
    float acc24_1_1_0 = 0.0f;
    float acc24_1_1_1 = 0.0f;
    float acc24_1_2_0 = 0.0f;
    float acc24_1_2_1 = 0.0f;
    float acc24_1_3_0 = 0.0f;
    float acc24_1_3_1 = 0.0f;
    for (int ko = 0; ko < 2; ko++) {
      __syncthreads();
      for (int fo = 0; fo < 8; fo++) {
        ushort2 w6_0 = load_ushort2(a1 + g * 2048 + (fo * 256) + ((ft / 16) * 64) + (ko * 32) + ((ft % 16) * 2));
        float v6_0 = bf16_to_f32(w6_0.x), v6_1 = bf16_to_f32(w6_0.y);
        { ushort2 x; x.x = f32_to_bf16(v6_0); x.y = f32_to_bf16(v6_1); store_ushort2(m7 + fo * 128 + (ft * 2), x); }
      }
      for (int kt_2 = 0; kt_2 < 2; kt_2++) {
        for (int eo = 0; eo < 8; eo++) {
          float v12 = bf16_to_f32(a2[ko * 1024 + (kt_2 * 512) + (eo * 64) + et]);
          m13[(et % 32) * 32 + (kt_2 * 16) + (eo * 2) + (et / 32)] = f32_to_bf16(v12);
        }
      }
      __syncthreads();
      for (int kt = 0; kt < 2; kt++) {
        ushort2 w18_0_0_0 = load_ushort2(m7 + iw * 512 + (i1 * 32) + (kt * 16) + (j0 * 2));
        unsigned short v18_0_0_0 = w18_0_0_0.x, v18_0_0_1 = w18_0_0_0.y;
        ushort2 w19_0_0_0 = load_ushort2(m13 + i1 * 32 + (kt * 16) + (j0 * 2));
        unsigned short v19_0_0_0 = w19_0_0_0.x, v19_0_0_1 = w19_0_0_0.y;
        ushort2 w19_0_1_0 = load_ushort2(m13 + i1 * 32 + (kt * 16) + (j0 * 2) + 8);
        unsigned short v19_0_1_0 = w19_0_1_0.x, v19_0_1_1 = w19_0_1_0.y;
        ushort2 w19_1_0_0 = load_ushort2(m13 + i1 * 32 + (kt * 16) + (j0 * 2) + 256);
        unsigned short v19_1_0_0 = w19_1_0_0.x, v19_1_0_1 = w19_1_0_0.y;
        ushort2 w19_1_1_0 = load_ushort2(m13 + i1 * 32 + (kt * 16) + (j0 * 2) + 264);
        unsigned short v19_1_1_0 = w19_1_1_0.x, v19_1_1_1 = w19_1_1_0.y;
        ushort2 w19_2_0_0 = load_ushort2(m13 + i1 * 32 + (kt * 16) + (j0 * 2) + 512);
        unsigned short v19_2_0_0 = w19_2_0_0.x, v19_2_0_1 = w19_2_0_0.y;
        ushort2 w19_2_1_0 = load_ushort2(m13 + i1 * 32 + (kt * 16) + (j0 * 2) + 520);
        unsigned short v19_2_1_0 = w19_2_1_0.x, v19_2_1_1 = w19_2_1_0.y;
        ushort2 w19_3_0_0 = load_ushort2(m13 + i1 * 32 + (kt * 16) + (j0 * 2) + 768);
        unsigned short v19_3_0_0 = w19_3_0_0.x, v19_3_0_1 = w19_3_0_0.y;
        ushort2 w19_3_1_0 = load_ushort2(m13 + i1 * 32 + (kt * 16) + (j0 * 2) + 776);
        unsigned short v19_3_1_0 = w19_3_1_0.x, v19_3_1_1 = w19_3_1_0.y;
        ushort2 w18_0_1_0 = load_ushort2(m7 + iw * 512 + (i1 * 32) + (kt * 16) + (j0 * 2) + 8);
        unsigned short v18_0_1_0 = w18_0_1_0.x, v18_0_1_1 = w18_0_1_0.y;
        ushort2 w18_1_0_0 = load_ushort2(m7 + iw * 512 + (i1 * 32) + (kt * 16) + (j0 * 2) + 256);
        unsigned short v18_1_0_0 = w18_1_0_0.x, v18_1_0_1 = w18_1_0_0.y;
        ushort2 w18_1_1_0 = load_ushort2(m7 + iw * 512 + (i1 * 32) + (kt * 16) + (j0 * 2) + 264);
        unsigned short v18_1_1_0 = w18_1_1_0.x, v18_1_1_1 = w18_1_1_0.y;
        mma_m16n8k16_bf16(acc24_0_0_0, acc24_0_0_1, acc24_1_0_0, acc24_1_0_1, (unsigned)v18_0_0_0 | (unsigned)v18_0_0_1 << 16, (unsigned)v18_1_0_0 | (unsigned)v18_1_0_1 << 16, (unsigned)v18_0_1_0 | (unsigned)v18_0_1_1 << 16, (unsigned)v18_1_1_0 | (unsigned)v18_1_1_1 << 16, (unsigned)v19_0_0_0 | (unsigned)v19_0_0_1 << 16, (unsigned)v19_0_1_0 | (unsigned)v19_0_1_1 << 16);
        mma_m16n8k16_bf16(acc24_0_1_0, acc24_0_1_1, acc24_1_1_0, acc24_1_1_1, (unsigned)v18_0_0_0 | (unsigned)v18_0_0_1 << 16, (unsigned)v18_1_0_0 | (unsigned)v18_1_0_1 << 16, (unsigned)v18_0_1_0 | (unsigned)v18_0_1_1 << 16, (unsigned)v18_1_1_0 | (unsigned)v18_1_1_1 << 16, (unsigned)v19_1_0_0 | (unsigned)v19_1_0_1 << 16, (unsigned)v19_1_1_0 | (unsigned)v19_1_1_1 << 16);
        mma_m16n8k16_bf16(acc24_0_2_0, acc24_0_2_1, acc24_1_2_0, acc24_1_2_1, (unsigned)v18_0_0_0 | (unsigned)v18_0_0_1 << 16, (unsigned)v18_1_0_0 | (unsigned)v18_1_0_1 << 16, (unsigned)v18_0_1_0 | (unsigned)v18_0_1_1 << 16, (unsigned)v18_1_1_0 | (unsigned)v18_1_1_1 << 16, (unsigned)v19_2_0_0 | (unsigned)v19_2_0_1 << 16, (unsigned)v19_2_1_0 | (unsigned)v19_2_1_1 << 16);
        mma_m16n8k16_bf16(acc24_0_3_0, acc24_0_3_1, acc24_1_3_0, acc24_1_3_1, (unsigned)v18_0_0_0 | (unsigned)v18_0_0_1 << 16, (unsigned)v18_1_0_0 | (unsigned)v18_1_0_1 << 16, (unsigned)v18_0_1_0 | (unsigned)v18_0_1_1 << 16, (unsigned)v18_1_1_0 | (unsigned)v18_1_1_1 << 16, (unsigned)v19_3_0_0 | (unsigned)v19_3_0_1 << 16, (unsigned)v19_3_1_0 | (unsigned)v19_3_1_1 << 16);
      }
    }
    float v24_0_0_0 = acc24_0_0_0;
    float v24_0_0_1 = acc24_0_0_1;
    { float2 x; x.x = v24_0_0_0; x.y = v24_0_0_1; store_float2(a0 + g * 1024 + (iw * 512) + (i1 * 32) + (j0 * 2), x); }
    float v24_0_1_0 = acc24_0_1_0;
    float v24_0_1_1 = acc24_0_1_1;
    { float2 x; x.x = v24_0_1_0; x.y = v24_0_1_1; store_float2(a0 + g * 1024 + (iw * 512) + (i1 * 32) + (j0 * 2) + 8, x); }
    float v24_0_2_0 = acc24_0_2_0;
    float v24_0_2_1 = acc24_0_2_1;
    { float2 x; x.x = v24_0_2_0; x.y = v24_0_2_1; store_float2(a0 + g * 1024 + (iw * 512) + (i1 * 32) + (j0 * 2) + 16, x); }
    float v24_0_3_0 = acc24_0_3_0;
    float v24_0_3_1 = acc24_0_3_1;
    { float2 x; x.x = v24_0_3_0; x.y = v24_0_3_1; store_float2(a0 + g * 1024 + (iw * 512) + (i1 * 32) + (j0 * 2) + 24, x); }
    float v24_1_0_0 = acc24_1_0_0;
    float v24_1_0_1 = acc24_1_0_1;
    { float2 x; x.x = v24_1_0_0; x.y = v24_1_0_1; store_float2(a0 + g * 1024 + (iw * 512) + (i1 * 32) + (j0 * 2) + 256, x); }
    float v24_1_1_0 = acc24_1_1_0;
    float v24_1_1_1 = acc24_1_1_1;
    { float2 x; x.x = v24_1_1_0; x.y = v24_1_1_1; store_float2(a0 + g * 1024 + (iw * 512) + (i1 * 32) + (j0 * 2) + 264, x); }
    float v24_1_2_0 = acc24_1_2_0;
    float v24_1_2_1 = acc24_1_2_1;
    { float2 x; x.x = v24_1_2_0; x.y = v24_1_2_1; store_float2(a0 + g * 1024 + (iw * 512) + (i1 * 32) + (j0 * 2) + 272, x); }
    float v24_1_3_0 = acc24_1_3_0;
    float v24_1_3_1 = acc24_1_3_1;
    { float2 x; x.x = v24_1_3_0; x.y = v24_1_3_1; store_float2(a0 + g * 1024 + (iw * 512) + (i1 * 32) + (j0 * 2) + 280, x); }
  }
}
