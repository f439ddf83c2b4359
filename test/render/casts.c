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
INLINE float bf16_to_f32(unsigned short x) { unsigned b = (unsigned)x << 16; float f; __builtin_memcpy(&f, &b, 4); return f; }
INLINE unsigned short f32_to_bf16(float f) { unsigned b; __builtin_memcpy(&b, &f, 4); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
INLINE float round_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }

void cast_bool(void **args, long lo, long hi) {
  signed char *u_i8_out = args[0];
  short *u_i16_out = args[1];
  int *u_i32_out = args[2];
  long *u_i64_out = args[3];
  unsigned char *u_u8_out = args[4];
  unsigned short *u_u16_out = args[5];
  unsigned *u_u32_out = args[6];
  unsigned long *u_u64_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const unsigned char *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    int v1 = x_[i];
    u_i8_out[i] = (signed char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)v1;
    u_u16_out[i] = (unsigned short)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_i8(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  short *u_i16_out = args[1];
  int *u_i32_out = args[2];
  long *u_i64_out = args[3];
  unsigned char *u_u8_out = args[4];
  unsigned short *u_u16_out = args[5];
  unsigned *u_u32_out = args[6];
  unsigned long *u_u64_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const signed char *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    signed char v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)v1;
    u_u16_out[i] = (unsigned short)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_i16(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  int *u_i32_out = args[2];
  long *u_i64_out = args[3];
  unsigned char *u_u8_out = args[4];
  unsigned short *u_u16_out = args[5];
  unsigned *u_u32_out = args[6];
  unsigned long *u_u64_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const short *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    short v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)v1;
    u_u16_out[i] = (unsigned short)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_i32(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  long *u_i64_out = args[3];
  unsigned char *u_u8_out = args[4];
  unsigned short *u_u16_out = args[5];
  unsigned *u_u32_out = args[6];
  unsigned long *u_u64_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const int *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    int v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i16_out[i] = (short)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)v1;
    u_u16_out[i] = (unsigned short)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_i64(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  int *u_i32_out = args[3];
  unsigned char *u_u8_out = args[4];
  unsigned short *u_u16_out = args[5];
  unsigned *u_u32_out = args[6];
  unsigned long *u_u64_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const long *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    long v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_u8_out[i] = (unsigned char)v1;
    u_u16_out[i] = (unsigned short)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_u8(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  int *u_i32_out = args[3];
  long *u_i64_out = args[4];
  unsigned short *u_u16_out = args[5];
  unsigned *u_u32_out = args[6];
  unsigned long *u_u64_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const unsigned char *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    unsigned char v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u16_out[i] = (unsigned short)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_u16(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  int *u_i32_out = args[3];
  long *u_i64_out = args[4];
  unsigned char *u_u8_out = args[5];
  unsigned *u_u32_out = args[6];
  unsigned long *u_u64_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const unsigned short *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    unsigned short v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_u32(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  int *u_i32_out = args[3];
  long *u_i64_out = args[4];
  unsigned char *u_u8_out = args[5];
  unsigned short *u_u16_out = args[6];
  unsigned long *u_u64_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const unsigned *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    unsigned v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)v1;
    u_u16_out[i] = (unsigned short)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_u64(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  int *u_i32_out = args[3];
  long *u_i64_out = args[4];
  unsigned char *u_u8_out = args[5];
  unsigned short *u_u16_out = args[6];
  unsigned *u_u32_out = args[7];
  _Float16 *f16_out_ = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const unsigned long *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    unsigned long v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)v1;
    u_i16_out[i] = (short)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)v1;
    u_u16_out[i] = (unsigned short)v1;
    u_u32_out[i] = (unsigned)v1;
    f16_out_[i] = round_f16(v1);
    u_bf16_out[i] = f32_to_bf16(round_bf16(v1));
    f32_out_[i] = (float)v1;
  }
}

void cast_f16(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  int *u_i32_out = args[3];
  long *u_i64_out = args[4];
  unsigned char *u_u8_out = args[5];
  unsigned short *u_u16_out = args[6];
  unsigned *u_u32_out = args[7];
  unsigned long *u_u64_out = args[8];
  unsigned short *u_bf16_out = args[9];
  float *f32_out_ = args[10];
  const _Float16 *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    float v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long)v1;
    u_i16_out[i] = (short)(long)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)(long)v1;
    u_u16_out[i] = (unsigned short)(long)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    u_bf16_out[i] = f32_to_bf16(v1);
    f32_out_[i] = (float)v1;
  }
}

void cast_bf16(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  int *u_i32_out = args[3];
  long *u_i64_out = args[4];
  unsigned char *u_u8_out = args[5];
  unsigned short *u_u16_out = args[6];
  unsigned *u_u32_out = args[7];
  unsigned long *u_u64_out = args[8];
  _Float16 *f16_out_ = args[9];
  float *f32_out_ = args[10];
  const unsigned short *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    float v1 = bf16_to_f32(x_[i]);
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long)v1;
    u_i16_out[i] = (short)(long)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)(long)v1;
    u_u16_out[i] = (unsigned short)(long)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = v1;
    f32_out_[i] = (float)v1;
  }
}

void cast_f32(void **args, long lo, long hi) {
  unsigned char *u_bool_out = args[0];
  signed char *u_i8_out = args[1];
  short *u_i16_out = args[2];
  int *u_i32_out = args[3];
  long *u_i64_out = args[4];
  unsigned char *u_u8_out = args[5];
  unsigned short *u_u16_out = args[6];
  unsigned *u_u32_out = args[7];
  unsigned long *u_u64_out = args[8];
  _Float16 *f16_out_ = args[9];
  unsigned short *u_bf16_out = args[10];
  const float *x_ = args[11];
  for (long i = lo; i < hi; i++) {
    float v1 = x_[i];
    u_bool_out[i] = (v1 != 0);
    u_i8_out[i] = (signed char)(long)v1;
    u_i16_out[i] = (short)(long)v1;
    u_i32_out[i] = (int)v1;
    u_i64_out[i] = (long)v1;
    u_u8_out[i] = (unsigned char)(long)v1;
    u_u16_out[i] = (unsigned short)(long)v1;
    u_u32_out[i] = (unsigned)v1;
    u_u64_out[i] = (unsigned long)v1;
    f16_out_[i] = v1;
    u_bf16_out[i] = f32_to_bf16(v1);
  }
}
