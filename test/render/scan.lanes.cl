#define INLINE static inline
#pragma clang fp contract(fast)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PART(n, k) ((long)(n) * (long)(get_global_id(0) + k) / (long)get_global_size(0))
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void scan0(__global int *a0_, long a0_at, __global const int *a1_, long a1_at) {
  __global int *a0 = (__global int *)((__global char *)a0_ + a0_at);
  __global const int *a1 = (__global const int *)((__global const char *)a1_ + a1_at);
  for (int i = PART(3, 0); i < PART(3, 1); i++) {
    int acc4 = 0;
    for (int j = 0; j < 5; j++) {
      int v3 = a1[i * 5 + j];
      acc4 = (int)((uint)acc4 + (uint)v3);
      int v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void scan1(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  for (int i = PART(3, 0); i < PART(3, 1); i++) {
    float acc4 = -(float)INFINITY;
    for (int j = 0; j < 5; j++) {
      float v3 = a1[i * 5 + j];
      acc4 = max_f32(acc4, v3);
      float v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}
