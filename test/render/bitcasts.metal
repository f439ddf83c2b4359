#include <metal_stdlib>
using namespace metal;
#define INLINE static inline
INLINE float bf16_to_f32(ushort x) { return as_type<float>((uint)x << 16); }
INLINE ushort f32_to_bf16(float f) { uint b = as_type<uint>(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }

kernel void bitcast_i8(device uchar *u_u8_out [[buffer(0)]], device const char *x_ [[buffer(1)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    char v1 = x_[i];
    u_u8_out[i] = (uchar)v1;
  }
}

kernel void bitcast_i16(device ushort *u_u16_out [[buffer(0)]], device half *f16_out_ [[buffer(1)]], device ushort *u_bf16_out [[buffer(2)]], device const short *x_ [[buffer(3)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    ushort v1 = ((device const ushort *)x_)[i];
    u_u16_out[i] = v1;
    float v3 = float(((device const half *)x_)[i]);
    f16_out_[i] = half(v3);
    float v5 = bf16_to_f32(((device const ushort *)x_)[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

kernel void bitcast_i32(device uint *u_u32_out [[buffer(0)]], device float *f32_out_ [[buffer(1)]], device const int *x_ [[buffer(2)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    int v1 = x_[i];
    u_u32_out[i] = (uint)v1;
    f32_out_[i] = as_type<float>(v1);
  }
}

kernel void bitcast_i64(device ulong *u_u64_out [[buffer(0)]], device const long *x_ [[buffer(1)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    long v1 = x_[i];
    u_u64_out[i] = (ulong)v1;
  }
}

kernel void bitcast_u8(device char *u_i8_out [[buffer(0)]], device const uchar *x_ [[buffer(1)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    uchar v1 = x_[i];
    u_i8_out[i] = (char)v1;
  }
}

kernel void bitcast_u16(device short *u_i16_out [[buffer(0)]], device half *f16_out_ [[buffer(1)]], device ushort *u_bf16_out [[buffer(2)]], device const ushort *x_ [[buffer(3)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    short v1 = ((device const short *)x_)[i];
    u_i16_out[i] = v1;
    float v3 = float(((device const half *)x_)[i]);
    f16_out_[i] = half(v3);
    float v5 = bf16_to_f32(x_[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

kernel void bitcast_u32(device int *u_i32_out [[buffer(0)]], device float *f32_out_ [[buffer(1)]], device const uint *x_ [[buffer(2)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    uint v1 = x_[i];
    u_i32_out[i] = (int)v1;
    f32_out_[i] = as_type<float>(v1);
  }
}

kernel void bitcast_u64(device long *u_i64_out [[buffer(0)]], device const ulong *x_ [[buffer(1)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    ulong v1 = x_[i];
    u_i64_out[i] = (long)v1;
  }
}

kernel void bitcast_f16(device short *u_i16_out [[buffer(0)]], device ushort *u_u16_out [[buffer(1)]], device ushort *u_bf16_out [[buffer(2)]], device const half *x_ [[buffer(3)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    short v1 = ((device const short *)x_)[i];
    u_i16_out[i] = v1;
    ushort v3 = ((device const ushort *)x_)[i];
    u_u16_out[i] = v3;
    float v5 = bf16_to_f32(((device const ushort *)x_)[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

kernel void bitcast_bf16(device short *u_i16_out [[buffer(0)]], device ushort *u_u16_out [[buffer(1)]], device half *f16_out_ [[buffer(2)]], device const ushort *x_ [[buffer(3)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    short v1 = ((device const short *)x_)[i];
    u_i16_out[i] = v1;
    ushort v3 = x_[i];
    u_u16_out[i] = v3;
    float v5 = float(((device const half *)x_)[i]);
    f16_out_[i] = half(v5);
  }
}

kernel void bitcast_f32(device int *u_i32_out [[buffer(0)]], device uint *u_u32_out [[buffer(1)]], device const float *x_ [[buffer(2)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 5; i += ids) {
    float v1 = x_[i];
    u_i32_out[i] = as_type<int>(v1);
    u_u32_out[i] = as_type<uint>(v1);
  }
}
