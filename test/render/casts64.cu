#define INLINE static __device__ __forceinline__
INLINE float f16_to_f32(unsigned short x) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x)); return r; }
INLINE unsigned short f32_to_f16(float x) { unsigned short r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
INLINE float round_f16(float x) { return f16_to_f32(f32_to_f16(x)); }
INLINE float cast_f64_f16(double a) { float t0 = (float)a; double t1 = (double)t0; int t2 = (t1 != a); unsigned t3 = (unsigned)__float_as_int(t0); int t4 = (a < 0.0); int t5 = (t1 < a); int t6 = (a < t1); int t7 = (t4 ? t5 : t6); unsigned t8 = (t7 ? 4294967295u : 0u); unsigned t9 = (t3 + t8); unsigned t10 = (t9 | 1u); unsigned t11 = (t2 ? t10 : t3); float t12 = __int_as_float(t11); float t13 = round_f16(t12); return t13; }
INLINE float bf16_to_f32(unsigned short x) { return __int_as_float((unsigned)x << 16); }
INLINE unsigned short f32_to_bf16(float f) { unsigned b = __float_as_int(f); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
INLINE float round_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }
INLINE float cast_f64_bf16(double a) { float t0 = (float)a; double t1 = (double)t0; int t2 = (t1 != a); unsigned t3 = (unsigned)__float_as_int(t0); int t4 = (a < 0.0); int t5 = (t1 < a); int t6 = (a < t1); int t7 = (t4 ? t5 : t6); unsigned t8 = (t7 ? 4294967295u : 0u); unsigned t9 = (t3 + t8); unsigned t10 = (t9 | 1u); unsigned t11 = (t2 ? t10 : t3); float t12 = __int_as_float(t11); float t13 = round_bf16(t12); return t13; }

extern "C" __global__ void cast_f64(unsigned char *u_bool_out, signed char *u_i8_out, long long *u_i64_out, unsigned *u_u32_out, unsigned short *f16_out_, unsigned short *u_bf16_out, float *f32_out_, const double *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    double v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long long)v1;
    u_i64_out[i] = (long long)v1;
    u_u32_out[i] = (unsigned)(long long)v1;
    f16_out_[i] = f32_to_f16(cast_f64_f16(v1));
    u_bf16_out[i] = f32_to_bf16(cast_f64_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

extern "C" __global__ void cast_bool(double *f64_out_, signed char *u_i8_out, long long *u_i64_out, unsigned *u_u32_out, unsigned short *f16_out_, unsigned short *u_bf16_out, float *f32_out_, const unsigned char *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    int v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_i8_out[i] = (signed char)v1;
    u_i64_out[i] = (long long)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = f32_to_f16(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

extern "C" __global__ void cast_i8(double *f64_out_, unsigned char *u_bool_out, long long *u_i64_out, unsigned *u_u32_out, unsigned short *f16_out_, unsigned short *u_bf16_out, float *f32_out_, const signed char *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    signed char v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i64_out[i] = (long long)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = f32_to_f16(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

extern "C" __global__ void cast_i64(double *f64_out_, unsigned char *u_bool_out, signed char *u_i8_out, unsigned *u_u32_out, unsigned short *f16_out_, unsigned short *u_bf16_out, float *f32_out_, const long long *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    long long v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = f32_to_f16(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

extern "C" __global__ void cast_u32(double *f64_out_, unsigned char *u_bool_out, signed char *u_i8_out, long long *u_i64_out, unsigned short *f16_out_, unsigned short *u_bf16_out, float *f32_out_, const unsigned *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    unsigned v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i64_out[i] = (long long)v1;
    f16_out_[i] = f32_to_f16(round_f16(v1));
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

extern "C" __global__ void cast_f16(double *f64_out_, unsigned char *u_bool_out, signed char *u_i8_out, long long *u_i64_out, unsigned *u_u32_out, unsigned short *u_bf16_out, float *f32_out_, const unsigned short *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    float v1 = f16_to_f32(x_[i]);
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long long)v1;
    u_i64_out[i] = (long long)v1;
    u_u32_out[i] = (unsigned)(long long)v1;
    u_bf16_out[i] = f32_to_bf16(v1);
    f32_out_[i] = (float)v1;
  }
}

extern "C" __global__ void cast_bf16(double *f64_out_, unsigned char *u_bool_out, signed char *u_i8_out, long long *u_i64_out, unsigned *u_u32_out, unsigned short *f16_out_, float *f32_out_, const unsigned short *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    float v1 = bf16_to_f32(x_[i]);
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long long)v1;
    u_i64_out[i] = (long long)v1;
    u_u32_out[i] = (unsigned)(long long)v1;
    f16_out_[i] = f32_to_f16(v1);
    f32_out_[i] = (float)v1;
  }
}

extern "C" __global__ void cast_f32(double *f64_out_, unsigned char *u_bool_out, signed char *u_i8_out, long long *u_i64_out, unsigned *u_u32_out, unsigned short *f16_out_, unsigned short *u_bf16_out, const float *x_) {
  for (int i = blockIdx.x * (int)blockDim.x + threadIdx.x; i < 5; i += gridDim.x * (int)blockDim.x) {
    float v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long long)v1;
    u_i64_out[i] = (long long)v1;
    u_u32_out[i] = (unsigned)(long long)v1;
    f16_out_[i] = f32_to_f16(v1);
    u_bf16_out[i] = f32_to_bf16(v1);
  }
}
