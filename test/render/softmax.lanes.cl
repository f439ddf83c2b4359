#define INLINE static inline
#pragma clang fp contract(fast)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PART(n, k) ((long)(n) * (long)(get_global_id(0) + k) / (long)get_global_size(0))
INLINE float8 max_f32x8(float8 a, float8 b) { return a > b || a != a ? a : b; }

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void softmax(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  for (int i = PART(6, 0); i < PART(6, 1); i++) {
    float8 acc6_0 = (float8)(-(float)INFINITY);
    for (int k1o = 0; k1o < 3; k1o++) {
      float8 v3_0 = vload8(0, a1 + i * 24 + (k1o * 8));
      acc6_0 = max_f32x8(acc6_0, v3_0);
    }
    float8 f6 = acc6_0;
    f6 = max_f32x8(f6, SHUFFLE(f6, f6, 4, 5, 6, 7, 0, 1, 2, 3));
    f6 = max_f32x8(f6, SHUFFLE(f6, f6, 2, 3, 4, 5, 6, 7, 0, 1));
    f6 = max_f32x8(f6, SHUFFLE(f6, f6, 1, 2, 3, 4, 5, 6, 7, 0));
    float v6 = f6[0];
    float v7 = (v6 * -1.0f);
    float m13[24] __attribute__((aligned(64)));
    for (int so = 0; so < 3; so++) {
      float8 v10_0 = vload8(0, a1 + i * 24 + (so * 8));
      vstore8(exp((v10_0 + (float8)(v7))), 0, m13 + so * 8);
    }
    float8 acc20_0 = (float8)(0.0f);
    for (int ko = 0; ko < 3; ko++) {
      float8 v17_0 = vload8(0, m13 + ko * 8);
      acc20_0 = (acc20_0 + v17_0);
    }
    float8 f20 = acc20_0;
    f20 = (f20 + SHUFFLE(f20, f20, 4, 5, 6, 7, 0, 1, 2, 3));
    f20 = (f20 + SHUFFLE(f20, f20, 2, 3, 4, 5, 6, 7, 0, 1));
    f20 = (f20 + SHUFFLE(f20, f20, 1, 2, 3, 4, 5, 6, 7, 0));
    float v20 = f20[0];
    for (int jo = 0; jo < 3; jo++) {
      float8 v22_0 = vload8(0, m13 + jo * 8);
      vstore8((v22_0 / (float8)(v20)), 0, a0 + i * 24 + (jo * 8));
    }
  }
}
