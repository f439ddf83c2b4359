#define INLINE static __device__ __forceinline__
INLINE float f16_to_f32(unsigned short x) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x)); return r; }
INLINE unsigned short f32_to_f16(float x) { unsigned short r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
INLINE float bf16_to_f32(unsigned short x) { return __int_as_float((unsigned)x << 16); }
INLINE unsigned short f32_to_bf16(float f) { unsigned b = __float_as_int(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }

extern "C" __global__ void bitcast_i8(unsigned char *u_u8_out, const signed char *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    signed char v1 = x_[i];
    u_u8_out[i] = (unsigned char)v1;
  }
}

extern "C" __global__ void bitcast_i16(unsigned short *u_u16_out, unsigned short *f16_out_, unsigned short *u_bf16_out, const short *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    unsigned short v1 = (( const unsigned short *)x_)[i];
    u_u16_out[i] = v1;
    float v3 = f16_to_f32((( const unsigned short *)x_)[i]);
    f16_out_[i] = f32_to_f16(v3);
    float v5 = bf16_to_f32((( const unsigned short *)x_)[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

extern "C" __global__ void bitcast_i32(unsigned *u_u32_out, float *f32_out_, const int *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    int v1 = x_[i];
    u_u32_out[i] = (unsigned)v1;
    f32_out_[i] = __int_as_float(v1);
  }
}

extern "C" __global__ void bitcast_i64(unsigned long long *u_u64_out, const long long *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    long long v1 = x_[i];
    u_u64_out[i] = (unsigned long long)v1;
  }
}

extern "C" __global__ void bitcast_u8(signed char *u_i8_out, const unsigned char *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    unsigned char v1 = x_[i];
    u_i8_out[i] = (signed char)v1;
  }
}

extern "C" __global__ void bitcast_u16(short *u_i16_out, unsigned short *f16_out_, unsigned short *u_bf16_out, const unsigned short *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    short v1 = (( const short *)x_)[i];
    u_i16_out[i] = v1;
    float v3 = f16_to_f32(x_[i]);
    f16_out_[i] = f32_to_f16(v3);
    float v5 = bf16_to_f32(x_[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

extern "C" __global__ void bitcast_u32(int *u_i32_out, float *f32_out_, const unsigned *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    unsigned v1 = x_[i];
    u_i32_out[i] = (int)v1;
    f32_out_[i] = __int_as_float(v1);
  }
}

extern "C" __global__ void bitcast_u64(long long *u_i64_out, const unsigned long long *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    unsigned long long v1 = x_[i];
    u_i64_out[i] = (long long)v1;
  }
}

extern "C" __global__ void bitcast_f16(short *u_i16_out, unsigned short *u_u16_out, unsigned short *u_bf16_out, const unsigned short *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    short v1 = (( const short *)x_)[i];
    u_i16_out[i] = v1;
    unsigned short v3 = x_[i];
    u_u16_out[i] = v3;
    float v5 = bf16_to_f32(x_[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

extern "C" __global__ void bitcast_bf16(short *u_i16_out, unsigned short *u_u16_out, unsigned short *f16_out_, const unsigned short *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    short v1 = (( const short *)x_)[i];
    u_i16_out[i] = v1;
    unsigned short v3 = x_[i];
    u_u16_out[i] = v3;
    float v5 = f16_to_f32(x_[i]);
    f16_out_[i] = f32_to_f16(v5);
  }
}

extern "C" __global__ void bitcast_f32(int *u_i32_out, unsigned *u_u32_out, const float *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    float v1 = x_[i];
    u_i32_out[i] = (int)__float_as_int(v1);
    u_u32_out[i] = (unsigned)__float_as_int(v1);
  }
}
