#define INLINE static inline
#pragma clang fp contract(fast)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PART(n, k) ((long)(n) * (long)(get_global_id(0) + k) / (long)get_global_size(0))

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void matmul(__global float *a0_, long a0_at, __global const float *a1_, long a1_at, __global const float *a2_, long a2_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  __global const float *a2 = (__global const float *)((__global const char *)a2_ + a2_at);
  for (int jo = PART(2, 0); jo < PART(2, 1); jo++) {
    float m4[128] __attribute__((aligned(64)));
    for (int k_a2 = 0; k_a2 < 8; k_a2++) {
      float8 v3_0 = vload8(0, a2 + k_a2 * 32 + (jo * 16));
      float8 v3_1 = vload8(0, a2 + k_a2 * 32 + (jo * 16) + 8);
      vstore8(v3_0, 0, m4 + k_a2 * 16);
      vstore8(v3_1, 0, m4 + k_a2 * 16 + 8);
    }
    for (int io = 0; io < 2; io++) {
      float8 acc14_0_0 = (float8)(0.0f);
      float8 acc14_0_1 = (float8)(0.0f);
      float8 acc14_1_0 = (float8)(0.0f);
      float8 acc14_1_1 = (float8)(0.0f);
      float8 acc14_2_0 = (float8)(0.0f);
      float8 acc14_2_1 = (float8)(0.0f);
      float8 acc14_3_0 = (float8)(0.0f);
      float8 acc14_3_1 = (float8)(0.0f);
      float8 acc14_4_0 = (float8)(0.0f);
      float8 acc14_4_1 = (float8)(0.0f);
      float8 acc14_5_0 = (float8)(0.0f);
      float8 acc14_5_1 = (float8)(0.0f);
      for (int k = 0; k < 8; k++) {
        float8 v10_0 = vload8(0, m4 + k * 16);
        float8 v10_1 = vload8(0, m4 + k * 16 + 8);
        float v9_0 = a1[io * 48 + k];
        acc14_0_0 = (acc14_0_0 + ((float8)(v9_0) * v10_0));
        acc14_0_1 = (acc14_0_1 + ((float8)(v9_0) * v10_1));
        float v9_1 = a1[io * 48 + k + 8];
        acc14_1_0 = (acc14_1_0 + ((float8)(v9_1) * v10_0));
        acc14_1_1 = (acc14_1_1 + ((float8)(v9_1) * v10_1));
        float v9_2 = a1[io * 48 + k + 16];
        acc14_2_0 = (acc14_2_0 + ((float8)(v9_2) * v10_0));
        acc14_2_1 = (acc14_2_1 + ((float8)(v9_2) * v10_1));
        float v9_3 = a1[io * 48 + k + 24];
        acc14_3_0 = (acc14_3_0 + ((float8)(v9_3) * v10_0));
        acc14_3_1 = (acc14_3_1 + ((float8)(v9_3) * v10_1));
        float v9_4 = a1[io * 48 + k + 32];
        acc14_4_0 = (acc14_4_0 + ((float8)(v9_4) * v10_0));
        acc14_4_1 = (acc14_4_1 + ((float8)(v9_4) * v10_1));
        float v9_5 = a1[io * 48 + k + 40];
        acc14_5_0 = (acc14_5_0 + ((float8)(v9_5) * v10_0));
        acc14_5_1 = (acc14_5_1 + ((float8)(v9_5) * v10_1));
      }
      float8 v14_0_0 = acc14_0_0;
      float8 v14_0_1 = acc14_0_1;
      vstore8(v14_0_0, 0, a0 + io * 192 + (jo * 16));
      vstore8(v14_0_1, 0, a0 + io * 192 + (jo * 16) + 8);
      float8 v14_1_0 = acc14_1_0;
      float8 v14_1_1 = acc14_1_1;
      vstore8(v14_1_0, 0, a0 + io * 192 + (jo * 16) + 32);
      vstore8(v14_1_1, 0, a0 + io * 192 + (jo * 16) + 40);
      float8 v14_2_0 = acc14_2_0;
      float8 v14_2_1 = acc14_2_1;
      vstore8(v14_2_0, 0, a0 + io * 192 + (jo * 16) + 64);
      vstore8(v14_2_1, 0, a0 + io * 192 + (jo * 16) + 72);
      float8 v14_3_0 = acc14_3_0;
      float8 v14_3_1 = acc14_3_1;
      vstore8(v14_3_0, 0, a0 + io * 192 + (jo * 16) + 96);
      vstore8(v14_3_1, 0, a0 + io * 192 + (jo * 16) + 104);
      float8 v14_4_0 = acc14_4_0;
      float8 v14_4_1 = acc14_4_1;
      vstore8(v14_4_0, 0, a0 + io * 192 + (jo * 16) + 128);
      vstore8(v14_4_1, 0, a0 + io * 192 + (jo * 16) + 136);
      float8 v14_5_0 = acc14_5_0;
      float8 v14_5_1 = acc14_5_1;
      vstore8(v14_5_0, 0, a0 + io * 192 + (jo * 16) + 160);
      vstore8(v14_5_1, 0, a0 + io * 192 + (jo * 16) + 168);
    }
  }
}
