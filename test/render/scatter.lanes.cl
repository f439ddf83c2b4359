#define INLINE static inline
#pragma clang fp contract(fast)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PART(n, k) ((long)(n) * (long)(get_global_id(0) + k) / (long)get_global_size(0))

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void scatter0(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  for (int io = PART(3, 0); io < PART(3, 1); io++) {
    float8 v1_0 = vload8(0, a1 + (io * 16 < 24 ? io * 16 : 24));
    float8 v1_1 = vload8(0, a1 + (io * 16 < 24 ? io * 16 : 24) + 8);
    vstore8(v1_0, 0, a0 + (io * 16 < 24 ? io * 16 : 24));
    vstore8(v1_1, 0, a0 + (io * 16 < 24 ? io * 16 : 24) + 8);
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void scatter1(__global float *a0_, long a0_at, __global const float *a1_, long a1_at, __global const long *a2_, long a2_at, __global long *err) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  __global const long *a2 = (__global const long *)((__global const char *)a2_ + a2_at);
  for (long j = PART(4, 0); j < PART(4, 1); j++) {
    for (long i = 0; i < 6; i++) {
      float v2 = a1[i * 4 + j];
      long v3 = a2[i * 4 + j];
      if (!((long)v3 > -1 && (long)v3 < 10)) *err = ((long)10 << 32) | (((long)v3 == (int)((long)v3) ? (long)v3 : 0) & 0xffffffffL);
      if ((long)v3 > -1 && (long)v3 < 10) a0[(long)v3 * 4 + j] = (a0[(long)v3 * 4 + j] + v2);
    }
  }
}
