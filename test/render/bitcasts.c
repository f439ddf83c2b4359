#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
INLINE float bf16_to_f32(unsigned short x) { unsigned b = (unsigned)x << 16; float f; __builtin_memcpy(&f, &b, 4); return f; }
INLINE unsigned short f32_to_bf16(float f) { unsigned b; __builtin_memcpy(&b, &f, 4); return f != f ? (b >> 16) | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
INLINE float bitcast_i32_f32(int a) { float r; __builtin_memcpy(&r, &a, sizeof r); return r; }
INLINE float bitcast_u32_f32(unsigned a) { float r; __builtin_memcpy(&r, &a, sizeof r); return r; }
INLINE int bitcast_f32_i32(float a) { int r; __builtin_memcpy(&r, &a, sizeof r); return r; }
INLINE unsigned bitcast_f32_u32(float a) { unsigned r; __builtin_memcpy(&r, &a, sizeof r); return r; }

void bitcast_i8(void **args, long lo, long hi) {
  unsigned char *u_u8_out = args[0];
  const signed char *x_ = args[1];
  for (long i = lo; i < hi; i++) {
    signed char v1 = x_[i];
    u_u8_out[i] = (unsigned char)v1;
  }
}

void bitcast_i16(void **args, long lo, long hi) {
  unsigned short *u_u16_out = args[0];
  _Float16 *f16_out_ = args[1];
  unsigned short *u_bf16_out = args[2];
  const short *x_ = args[3];
  for (long i = lo; i < hi; i++) {
    unsigned short v1 = (( const unsigned short *)x_)[i];
    u_u16_out[i] = v1;
    float v3 = (( const _Float16 *)x_)[i];
    f16_out_[i] = v3;
    float v5 = bf16_to_f32((( const unsigned short *)x_)[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

void bitcast_i32(void **args, long lo, long hi) {
  unsigned *u_u32_out = args[0];
  float *f32_out_ = args[1];
  const int *x_ = args[2];
  for (long i = lo; i < hi; i++) {
    int v1 = x_[i];
    u_u32_out[i] = (unsigned)v1;
    f32_out_[i] = bitcast_i32_f32(v1);
  }
}

void bitcast_i64(void **args, long lo, long hi) {
  unsigned long *u_u64_out = args[0];
  const long *x_ = args[1];
  for (long i = lo; i < hi; i++) {
    long v1 = x_[i];
    u_u64_out[i] = (unsigned long)v1;
  }
}

void bitcast_u8(void **args, long lo, long hi) {
  signed char *u_i8_out = args[0];
  const unsigned char *x_ = args[1];
  for (long i = lo; i < hi; i++) {
    unsigned char v1 = x_[i];
    u_i8_out[i] = (signed char)v1;
  }
}

void bitcast_u16(void **args, long lo, long hi) {
  short *u_i16_out = args[0];
  _Float16 *f16_out_ = args[1];
  unsigned short *u_bf16_out = args[2];
  const unsigned short *x_ = args[3];
  for (long i = lo; i < hi; i++) {
    short v1 = (( const short *)x_)[i];
    u_i16_out[i] = v1;
    float v3 = (( const _Float16 *)x_)[i];
    f16_out_[i] = v3;
    float v5 = bf16_to_f32(x_[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

void bitcast_u32(void **args, long lo, long hi) {
  int *u_i32_out = args[0];
  float *f32_out_ = args[1];
  const unsigned *x_ = args[2];
  for (long i = lo; i < hi; i++) {
    unsigned v1 = x_[i];
    u_i32_out[i] = (int)v1;
    f32_out_[i] = bitcast_u32_f32(v1);
  }
}

void bitcast_u64(void **args, long lo, long hi) {
  long *u_i64_out = args[0];
  const unsigned long *x_ = args[1];
  for (long i = lo; i < hi; i++) {
    unsigned long v1 = x_[i];
    u_i64_out[i] = (long)v1;
  }
}

void bitcast_f16(void **args, long lo, long hi) {
  short *u_i16_out = args[0];
  unsigned short *u_u16_out = args[1];
  unsigned short *u_bf16_out = args[2];
  const _Float16 *x_ = args[3];
  for (long i = lo; i < hi; i++) {
    short v1 = (( const short *)x_)[i];
    u_i16_out[i] = v1;
    unsigned short v3 = (( const unsigned short *)x_)[i];
    u_u16_out[i] = v3;
    float v5 = bf16_to_f32((( const unsigned short *)x_)[i]);
    u_bf16_out[i] = f32_to_bf16(v5);
  }
}

void bitcast_bf16(void **args, long lo, long hi) {
  short *u_i16_out = args[0];
  unsigned short *u_u16_out = args[1];
  _Float16 *f16_out_ = args[2];
  const unsigned short *x_ = args[3];
  for (long i = lo; i < hi; i++) {
    short v1 = (( const short *)x_)[i];
    u_i16_out[i] = v1;
    unsigned short v3 = x_[i];
    u_u16_out[i] = v3;
    float v5 = (( const _Float16 *)x_)[i];
    f16_out_[i] = v5;
  }
}

void bitcast_f32(void **args, long lo, long hi) {
  int *u_i32_out = args[0];
  unsigned *u_u32_out = args[1];
  const float *x_ = args[2];
  for (long i = lo; i < hi; i++) {
    float v1 = x_[i];
    u_i32_out[i] = bitcast_f32_i32(v1);
    u_u32_out[i] = bitcast_f32_u32(v1);
  }
}
