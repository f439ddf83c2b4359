#define INLINE static inline
#pragma clang fp contract(fast)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PART(n, k) ((long)(n) * (long)(get_global_id(0) + k) / (long)get_global_size(0))
INLINE float f16_to_f32(ushort x) {
  uint s = (uint)(x & 0x8000) << 16, e = x >> 10 & 31, m = x & 1023;
  return e == 0 ? as_float(as_uint(m * 0x1p-24f) | s) : as_float(s | (e == 31 ? 0x7f800000 : (e + 112) << 23) | m << 13);
}
INLINE ushort f32_to_f16(float x) {
  uint s = as_uint(x) >> 16 & 0x8000, a = as_uint(x) & 0x7fffffff;
  if (a > 0x7f800000) return s | 0x7e00;
  if (a >= 0x477ff000) return s | 0x7c00;
  if (a < 0x38800000) return s | (as_uint(as_float(a) + 0.5f) - 0x3f000000);
  return s | (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13;
}
INLINE float round_f16(float x) { return f16_to_f32(f32_to_f16(x)); }
INLINE float bf16_to_f32(ushort x) { return as_float((uint)x << 16); }
INLINE ushort f32_to_bf16(float f) { uint b = as_uint(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
INLINE float round_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_bool(__global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const uchar *x__, long x__at) {
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const uchar *x_ = (__global const uchar *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    int v1 = x_[i];
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_i8(__global uchar *u_bool_out_, long u_bool_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const char *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const char *x_ = (__global const char *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    char v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_i16(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const short *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const short *x_ = (__global const short *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    short v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_i32(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const int *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const int *x_ = (__global const int *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    int v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_i64(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const long *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const long *x_ = (__global const long *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    long v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_u8(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const uchar *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const uchar *x_ = (__global const uchar *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    uchar v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_u16(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const ushort *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const ushort *x_ = (__global const ushort *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    ushort v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_u32(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const uint *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const uint *x_ = (__global const uint *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    uint v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_u64(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const ulong *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const ulong *x_ = (__global const ulong *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    ulong v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    vstore_half(round_f16(v1), i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_f16(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global float *f32_out__, long f32_out__at, __global const half *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const half *x_ = (__global const half *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    float v1 = vload_half(i, x_);
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)(long)v1;
    u_i16_out[i] = (short)(long)v1;
    u_i32_out[i] = (int)(long)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)(long)v1;
    u_u16_out[i] = (ushort)(long)v1;
    u_u32_out[i] = (uint)(long)v1;
    u_u64_out[i] = (ulong)v1;
    u_bf16_out[i] = f32_to_bf16(v1);
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_bf16(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global float *f32_out__, long f32_out__at, __global const ushort *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global float *f32_out_ = (__global float *)((__global char *)f32_out__ + f32_out__at);
  __global const ushort *x_ = (__global const ushort *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    float v1 = bf16_to_f32(x_[i]);
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)(long)v1;
    u_i16_out[i] = (short)(long)v1;
    u_i32_out[i] = (int)(long)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)(long)v1;
    u_u16_out[i] = (ushort)(long)v1;
    u_u32_out[i] = (uint)(long)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(v1, i, f16_out_);
    f32_out_[i] = (float)v1;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float4))) void cast_f32(__global uchar *u_bool_out_, long u_bool_out_at, __global char *u_i8_out_, long u_i8_out_at, __global short *u_i16_out_, long u_i16_out_at, __global int *u_i32_out_, long u_i32_out_at, __global long *u_i64_out_, long u_i64_out_at, __global uchar *u_u8_out_, long u_u8_out_at, __global ushort *u_u16_out_, long u_u16_out_at, __global uint *u_u32_out_, long u_u32_out_at, __global ulong *u_u64_out_, long u_u64_out_at, __global half *f16_out__, long f16_out__at, __global ushort *u_bf16_out_, long u_bf16_out_at, __global const float *x__, long x__at) {
  __global uchar *u_bool_out = (__global uchar *)((__global char *)u_bool_out_ + u_bool_out_at);
  __global char *u_i8_out = (__global char *)((__global char *)u_i8_out_ + u_i8_out_at);
  __global short *u_i16_out = (__global short *)((__global char *)u_i16_out_ + u_i16_out_at);
  __global int *u_i32_out = (__global int *)((__global char *)u_i32_out_ + u_i32_out_at);
  __global long *u_i64_out = (__global long *)((__global char *)u_i64_out_ + u_i64_out_at);
  __global uchar *u_u8_out = (__global uchar *)((__global char *)u_u8_out_ + u_u8_out_at);
  __global ushort *u_u16_out = (__global ushort *)((__global char *)u_u16_out_ + u_u16_out_at);
  __global uint *u_u32_out = (__global uint *)((__global char *)u_u32_out_ + u_u32_out_at);
  __global ulong *u_u64_out = (__global ulong *)((__global char *)u_u64_out_ + u_u64_out_at);
  __global half *f16_out_ = (__global half *)((__global char *)f16_out__ + f16_out__at);
  __global ushort *u_bf16_out = (__global ushort *)((__global char *)u_bf16_out_ + u_bf16_out_at);
  __global const float *x_ = (__global const float *)((__global const char *)x__ + x__at);
  for (int i = PART(5, 0); i < PART(5, 1); i++) {
    float v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)(long)v1;
    u_i16_out[i] = (short)(long)v1;
    u_i32_out[i] = (int)(long)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)(long)v1;
    u_u16_out[i] = (ushort)(long)v1;
    u_u32_out[i] = (uint)(long)v1;
    u_u64_out[i] = (ulong)v1;
    vstore_half(v1, i, f16_out_);
    u_bf16_out[i] = f32_to_bf16(v1);
  }
}
