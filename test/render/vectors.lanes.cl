#define INLINE static inline
#pragma clang fp contract(fast)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PART(n, k) ((long)(n) * (long)(get_global_id(0) + k) / (long)get_global_size(0))
INLINE uint8 bf16_x8(float8 f) { uint8 b = as_uint8(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void half_rows(__global float *a0_, long a0_at, __global half *a3_, long a3_at, __global ushort *a5_, long a5_at, __global const float *a1_, long a1_at, __global const half *a2_, long a2_at, __global const ushort *a4_, long a4_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global half *a3 = (__global half *)((__global char *)a3_ + a3_at);
  __global ushort *a5 = (__global ushort *)((__global char *)a5_ + a5_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  __global const half *a2 = (__global const half *)((__global const char *)a2_ + a2_at);
  __global const ushort *a4 = (__global const ushort *)((__global const char *)a4_ + a4_at);
  for (int g = PART(54, 0); g < PART(54, 1); g++) {
    float8 v1_0 = ((1) && (((g % 9) * 8 + 7) < 71)) ? vload8(0, a1 + (g / 9) * 71 + ((g % 9) * 8)) : (float8)((a1[(g / 9) * 71 + ((g % 9) * 8)]), (a1[(g / 9) * 71 + ((g % 9) * 8) + 1]), (a1[(g / 9) * 71 + ((g % 9) * 8) + 2]), (a1[(g / 9) * 71 + ((g % 9) * 8) + 3]), (a1[(g / 9) * 71 + ((g % 9) * 8) + 4]), (a1[(g / 9) * 71 + ((g % 9) * 8) + 5]), (a1[(g / 9) * 71 + ((g % 9) * 8) + 6]), ((((g % 9) * 8 + 7) < 71) ? a1[(g / 9) * 71 + ((g % 9) * 8) + 7] : 0.0f));
    float8 v2_0 = vload_half8(0, a2 + g * 8);
    float8 v5_0 = as_float8(convert_uint8(vload8(0, a4 + (g % 9) * 8)) << 16);
    vstore8(((v1_0 + convert_float8(v2_0)) + convert_float8(v5_0)), 0, a0 + g * 8);
    vstore_half8(v2_0, 0, a3 + g * 8);
    vstore8(convert_ushort8(bf16_x8(v5_0)), 0, a5 + g * 8);
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void guarded_pairs(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  for (int g = PART(210, 0); g < PART(210, 1); g++) {
    float2 v1_0 = ((g / 35) < 5) ? vload2(0, a1 + (g / 35) * 71 + ((g % 35) * 2) + 1) : (float2)(0.0f);
    vstore2(v1_0, 0, a0 + g * 2);
  }
}
