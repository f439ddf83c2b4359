#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
INLINE float round_f16(float x) {
  _Float16 h = x;
#ifdef __AVX512FP16__
  __asm__("" : "+v"(h));
#endif
  return h;
}
INLINE float bitcast_u32_f32(unsigned a) { float r; __builtin_memcpy(&r, &a, sizeof r); return r; }
INLINE unsigned bitcast_f32_u32(float a) { unsigned r; __builtin_memcpy(&r, &a, sizeof r); return r; }
INLINE float cast_f64_f16(double a) { float t0 = (float)a; double t1 = (double)t0; int t2 = (t1 != a); unsigned t3 = bitcast_f32_u32(t0); int t4 = (a < 0.0); int t5 = (t1 < a); int t6 = (a < t1); int t7 = (t4 ? t5 : t6); unsigned t8 = (t7 ? 4294967295u : 0u); unsigned t9 = (t3 + t8); unsigned t10 = (t9 | 1u); unsigned t11 = (t2 ? t10 : t3); float t12 = bitcast_u32_f32(t11); float t13 = round_f16(t12); return t13; }
INLINE float bf16_to_f32(unsigned short x) { unsigned b = (unsigned)x << 16; float f; __builtin_memcpy(&f, &b, 4); return f; }
INLINE unsigned short f32_to_bf16(float f) { unsigned b; __builtin_memcpy(&b, &f, 4); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
INLINE float round_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }
INLINE float cast_f64_bf16(double a) { float t0 = (float)a; double t1 = (double)t0; int t2 = (t1 != a); unsigned t3 = bitcast_f32_u32(t0); int t4 = (a < 0.0); int t5 = (t1 < a); int t6 = (a < t1); int t7 = (t4 ? t5 : t6); unsigned t8 = (t7 ? 4294967295u : 0u); unsigned t9 = (t3 + t8); unsigned t10 = (t9 | 1u); unsigned t11 = (t2 ? t10 : t3); float t12 = bitcast_u32_f32(t11); float t13 = round_bf16(t12); return t13; }

void cast_f64(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  long *u_i64_out = args[2];
  unsigned *u_u32_out = args[3];
  _Float16 *f16_out_ = args[4];
  unsigned short *u_bf16_out = args[5];
  float *f32_out_ = args[6];
  const double *x_ = args[7];
  for (long i = lo; i < hi; i++) {
    double v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long)v1;
    u_i64_out[i] = (long)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = cast_f64_f16(v1);
    u_bf16_out[i] = f32_to_bf16(cast_f64_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_bool(void **args, long lo, long hi) {
  double *f64_out_ = args[0];
  signed char *u_i8_out = args[1];
  long *u_i64_out = args[2];
  unsigned *u_u32_out = args[3];
  _Float16 *f16_out_ = args[4];
  unsigned short *u_bf16_out = args[5];
  float *f32_out_ = args[6];
  const unsigned char *x_ = args[7];
  for (long i = lo; i < hi; i++) {
    int v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_i8_out[i] = (signed char)v1;
    u_i64_out[i] = (long)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_i8(void **args, long lo, long hi) {
  double *f64_out_ = args[0];
  unsigned char *u_bool_out = args[1];
  long *u_i64_out = args[2];
  unsigned *u_u32_out = args[3];
  _Float16 *f16_out_ = args[4];
  unsigned short *u_bf16_out = args[5];
  float *f32_out_ = args[6];
  const signed char *x_ = args[7];
  for (long i = lo; i < hi; i++) {
    signed char v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i64_out[i] = (long)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_i64(void **args, long lo, long hi) {
  double *f64_out_ = args[0];
  unsigned char *u_bool_out = args[1];
  signed char *u_i8_out = args[2];
  unsigned *u_u32_out = args[3];
  _Float16 *f16_out_ = args[4];
  unsigned short *u_bf16_out = args[5];
  float *f32_out_ = args[6];
  const long *x_ = args[7];
  for (long i = lo; i < hi; i++) {
    long v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_u32(void **args, long lo, long hi) {
  double *f64_out_ = args[0];
  unsigned char *u_bool_out = args[1];
  signed char *u_i8_out = args[2];
  long *u_i64_out = args[3];
  _Float16 *f16_out_ = args[4];
  unsigned short *u_bf16_out = args[5];
  float *f32_out_ = args[6];
  const unsigned *x_ = args[7];
  for (long i = lo; i < hi; i++) {
    unsigned v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i64_out[i] = (long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_f16(void **args, long lo, long hi) {
  double *f64_out_ = args[0];
  unsigned char *u_bool_out = args[1];
  signed char *u_i8_out = args[2];
  long *u_i64_out = args[3];
  unsigned *u_u32_out = args[4];
  unsigned short *u_bf16_out = args[5];
  float *f32_out_ = args[6];
  const _Float16 *x_ = args[7];
  for (long i = lo; i < hi; i++) {
    float v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long)v1;
    u_i64_out[i] = (long)v1;
    u_u32_out[i] = (unsigned)v1;
    u_bf16_out[i] = f32_to_bf16(v1);
    f32_out_[i] = (float)v1;
  }
}

void cast_bf16(void **args, long lo, long hi) {
  double *f64_out_ = args[0];
  unsigned char *u_bool_out = args[1];
  signed char *u_i8_out = args[2];
  long *u_i64_out = args[3];
  unsigned *u_u32_out = args[4];
  _Float16 *f16_out_ = args[5];
  float *f32_out_ = args[6];
  const unsigned short *x_ = args[7];
  for (long i = lo; i < hi; i++) {
    float v1 = bf16_to_f32(x_[i]);
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long)v1;
    u_i64_out[i] = (long)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = v1;
    f32_out_[i] = (float)v1;
  }
}

void cast_f32(void **args, long lo, long hi) {
  double *f64_out_ = args[0];
  unsigned char *u_bool_out = args[1];
  signed char *u_i8_out = args[2];
  long *u_i64_out = args[3];
  unsigned *u_u32_out = args[4];
  _Float16 *f16_out_ = args[5];
  unsigned short *u_bf16_out = args[6];
  const float *x_ = args[7];
  for (long i = lo; i < hi; i++) {
    float v1 = x_[i];
    f64_out_[i] = (double)v1;
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long)v1;
    u_i64_out[i] = (long)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = v1;
    u_bf16_out[i] = f32_to_bf16(v1);
  }
}
