#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
INLINE f32x8 splat_f32x8(float x) { return (f32x8){x, x, x, x, x, x, x, x}; }

void matmul(void **args, long lo, long hi) {
  float *a0 = args[0];
  const float *a1 = args[1];
  const float *a2 = args[2];
  for (long jo = lo; jo < hi; jo++) {
    float m4[128] __attribute__((aligned(64)));
    for (long k_a2 = 0; k_a2 < 8; k_a2++) {
      f32x8 v3_0 = (f32x8)*(const f32x8u*)(a2 + k_a2 * 32 + (jo * 16));
      f32x8 v3_1 = (f32x8)*(const f32x8u*)(a2 + k_a2 * 32 + (jo * 16) + 8);
      *(f32x8u*)(m4 + k_a2 * 16) = v3_0;
      *(f32x8u*)(m4 + k_a2 * 16 + 8) = v3_1;
    }
    for (long io = 0; io < 2; io++) {
      f32x8 acc14_0_0 = splat_f32x8(0.0f);
      f32x8 acc14_0_1 = splat_f32x8(0.0f);
      f32x8 acc14_1_0 = splat_f32x8(0.0f);
      f32x8 acc14_1_1 = splat_f32x8(0.0f);
      f32x8 acc14_2_0 = splat_f32x8(0.0f);
      f32x8 acc14_2_1 = splat_f32x8(0.0f);
      f32x8 acc14_3_0 = splat_f32x8(0.0f);
      f32x8 acc14_3_1 = splat_f32x8(0.0f);
      f32x8 acc14_4_0 = splat_f32x8(0.0f);
      f32x8 acc14_4_1 = splat_f32x8(0.0f);
      f32x8 acc14_5_0 = splat_f32x8(0.0f);
      f32x8 acc14_5_1 = splat_f32x8(0.0f);
      for (long k = 0; k < 8; k++) {
        f32x8 v10_0 = (f32x8)*(const f32x8u*)(m4 + k * 16);
        f32x8 v10_1 = (f32x8)*(const f32x8u*)(m4 + k * 16 + 8);
        float v9_0 = a1[io * 48 + k];
        acc14_0_0 = (acc14_0_0 + (splat_f32x8(v9_0) * v10_0));
        acc14_0_1 = (acc14_0_1 + (splat_f32x8(v9_0) * v10_1));
        float v9_1 = a1[io * 48 + k + 8];
        acc14_1_0 = (acc14_1_0 + (splat_f32x8(v9_1) * v10_0));
        acc14_1_1 = (acc14_1_1 + (splat_f32x8(v9_1) * v10_1));
        float v9_2 = a1[io * 48 + k + 16];
        acc14_2_0 = (acc14_2_0 + (splat_f32x8(v9_2) * v10_0));
        acc14_2_1 = (acc14_2_1 + (splat_f32x8(v9_2) * v10_1));
        float v9_3 = a1[io * 48 + k + 24];
        acc14_3_0 = (acc14_3_0 + (splat_f32x8(v9_3) * v10_0));
        acc14_3_1 = (acc14_3_1 + (splat_f32x8(v9_3) * v10_1));
        float v9_4 = a1[io * 48 + k + 32];
        acc14_4_0 = (acc14_4_0 + (splat_f32x8(v9_4) * v10_0));
        acc14_4_1 = (acc14_4_1 + (splat_f32x8(v9_4) * v10_1));
        float v9_5 = a1[io * 48 + k + 40];
        acc14_5_0 = (acc14_5_0 + (splat_f32x8(v9_5) * v10_0));
        acc14_5_1 = (acc14_5_1 + (splat_f32x8(v9_5) * v10_1));
      }
      f32x8 v14_0_0 = acc14_0_0;
      f32x8 v14_0_1 = acc14_0_1;
      *(f32x8u*)(a0 + io * 192 + (jo * 16)) = v14_0_0;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 8) = v14_0_1;
      f32x8 v14_1_0 = acc14_1_0;
      f32x8 v14_1_1 = acc14_1_1;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 32) = v14_1_0;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 40) = v14_1_1;
      f32x8 v14_2_0 = acc14_2_0;
      f32x8 v14_2_1 = acc14_2_1;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 64) = v14_2_0;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 72) = v14_2_1;
      f32x8 v14_3_0 = acc14_3_0;
      f32x8 v14_3_1 = acc14_3_1;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 96) = v14_3_0;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 104) = v14_3_1;
      f32x8 v14_4_0 = acc14_4_0;
      f32x8 v14_4_1 = acc14_4_1;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 128) = v14_4_0;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 136) = v14_4_1;
      f32x8 v14_5_0 = acc14_5_0;
      f32x8 v14_5_1 = acc14_5_1;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 160) = v14_5_0;
      *(f32x8u*)(a0 + io * 192 + (jo * 16) + 168) = v14_5_1;
    }
  }
}
