#include <metal_stdlib>
using namespace metal;
#define INLINE static inline
INLINE float f16_to_f32(ushort x) { return float(as_type<half>(x)); }
INLINE ushort f32_to_f16(float x) { return as_type<ushort>(half(x)); }
INLINE float round_f16(float x) { return f16_to_f32(f32_to_f16(x)); }
INLINE float bf16_to_f32(ushort x) { return as_type<float>((uint)x << 16); }
INLINE ushort f32_to_bf16(float f) { uint b = as_type<uint>(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
INLINE float round_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }

kernel void cast_bool(device char *u_i8_out [[buffer(0)]], device short *u_i16_out [[buffer(1)]], device int *u_i32_out [[buffer(2)]], device long *u_i64_out [[buffer(3)]], device uchar *u_u8_out [[buffer(4)]], device ushort *u_u16_out [[buffer(5)]], device uint *u_u32_out [[buffer(6)]], device ulong *u_u64_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const uchar *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    int v1 = x_[i];
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_i8(device uchar *u_bool_out [[buffer(0)]], device short *u_i16_out [[buffer(1)]], device int *u_i32_out [[buffer(2)]], device long *u_i64_out [[buffer(3)]], device uchar *u_u8_out [[buffer(4)]], device ushort *u_u16_out [[buffer(5)]], device uint *u_u32_out [[buffer(6)]], device ulong *u_u64_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const char *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    char v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_i16(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device int *u_i32_out [[buffer(2)]], device long *u_i64_out [[buffer(3)]], device uchar *u_u8_out [[buffer(4)]], device ushort *u_u16_out [[buffer(5)]], device uint *u_u32_out [[buffer(6)]], device ulong *u_u64_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const short *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    short v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_i32(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device long *u_i64_out [[buffer(3)]], device uchar *u_u8_out [[buffer(4)]], device ushort *u_u16_out [[buffer(5)]], device uint *u_u32_out [[buffer(6)]], device ulong *u_u64_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const int *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    int v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_i64(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device int *u_i32_out [[buffer(3)]], device uchar *u_u8_out [[buffer(4)]], device ushort *u_u16_out [[buffer(5)]], device uint *u_u32_out [[buffer(6)]], device ulong *u_u64_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const long *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    long v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_u8(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device int *u_i32_out [[buffer(3)]], device long *u_i64_out [[buffer(4)]], device ushort *u_u16_out [[buffer(5)]], device uint *u_u32_out [[buffer(6)]], device ulong *u_u64_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const uchar *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    uchar v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_u16(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device int *u_i32_out [[buffer(3)]], device long *u_i64_out [[buffer(4)]], device uchar *u_u8_out [[buffer(5)]], device uint *u_u32_out [[buffer(6)]], device ulong *u_u64_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const ushort *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    ushort v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u32_out[i] = (uint)v1;
    u_u64_out[i] = (ulong)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_u32(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device int *u_i32_out [[buffer(3)]], device long *u_i64_out [[buffer(4)]], device uchar *u_u8_out [[buffer(5)]], device ushort *u_u16_out [[buffer(6)]], device ulong *u_u64_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const uint *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    uint v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u64_out[i] = (ulong)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_u64(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device int *u_i32_out [[buffer(3)]], device long *u_i64_out [[buffer(4)]], device uchar *u_u8_out [[buffer(5)]], device ushort *u_u16_out [[buffer(6)]], device uint *u_u32_out [[buffer(7)]], device half *f16_out_ [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const ulong *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    ulong v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (uchar)v1;
    u_u16_out[i] = (ushort)v1;
    u_u32_out[i] = (uint)v1;
    f16_out_[i] = half(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_f16(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device int *u_i32_out [[buffer(3)]], device long *u_i64_out [[buffer(4)]], device uchar *u_u8_out [[buffer(5)]], device ushort *u_u16_out [[buffer(6)]], device uint *u_u32_out [[buffer(7)]], device ulong *u_u64_out [[buffer(8)]], device ushort *u_bf16_out [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const half *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    float v1 = float(x_[i]);
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

kernel void cast_bf16(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device int *u_i32_out [[buffer(3)]], device long *u_i64_out [[buffer(4)]], device uchar *u_u8_out [[buffer(5)]], device ushort *u_u16_out [[buffer(6)]], device uint *u_u32_out [[buffer(7)]], device ulong *u_u64_out [[buffer(8)]], device half *f16_out_ [[buffer(9)]], device float *f32_out_ [[buffer(10)]], device const ushort *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
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
    f16_out_[i] = half(v1);
    f32_out_[i] = (float)v1;
  }
}

kernel void cast_f32(device uchar *u_bool_out [[buffer(0)]], device char *u_i8_out [[buffer(1)]], device short *u_i16_out [[buffer(2)]], device int *u_i32_out [[buffer(3)]], device long *u_i64_out [[buffer(4)]], device uchar *u_u8_out [[buffer(5)]], device ushort *u_u16_out [[buffer(6)]], device uint *u_u32_out [[buffer(7)]], device ulong *u_u64_out [[buffer(8)]], device half *f16_out_ [[buffer(9)]], device ushort *u_bf16_out [[buffer(10)]], device const float *x_ [[buffer(11)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
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
    f16_out_[i] = half(v1);
    u_bf16_out[i] = f32_to_bf16(v1);
  }
}
