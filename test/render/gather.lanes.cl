#define INLINE static inline
#pragma clang fp contract(fast)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PART(n, k) ((long)(n) * (long)(get_global_id(0) + k) / (long)get_global_size(0))

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void gather(__global float *a0_, long a0_at, __global const int *a1_, long a1_at, __global const float *a2_, long a2_at, __global long *err) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const int *a1 = (__global const int *)((__global const char *)a1_ + a1_at);
  __global const float *a2 = (__global const float *)((__global const char *)a2_ + a2_at);
  for (long i = PART(6, 0); i < PART(6, 1); i++) {
    for (long j = 0; j < 4; j++) {
      int v2 = a1[i * 4 + j];
      if (!((long)v2 > -1 && (long)v2 < 10)) *err = ((long)10 << 32) | ((long)v2 & 0xffffffffL);
      float v3 = ((long)v2 > -1 && (long)v2 < 10) ? a2[(long)v2 * 4 + j] : 0.0f;
      a0[i * 4 + j] = v3;
    }
  }
}
