#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

void scatter0(void **args, long lo, long hi) {
  float *a0 = args[0];
  const float *a1 = args[1];
  for (long io = lo; io < hi; io++) {
    f32x8 v1_0 = (f32x8)*(const f32x8u*)(a1 + (io * 16 < 24 ? io * 16 : 24));
    f32x8 v1_1 = (f32x8)*(const f32x8u*)(a1 + (io * 16 < 24 ? io * 16 : 24) + 8);
    *(f32x8u*)(a0 + (io * 16 < 24 ? io * 16 : 24)) = v1_0;
    *(f32x8u*)(a0 + (io * 16 < 24 ? io * 16 : 24) + 8) = v1_1;
  }
}

void scatter1(void **args, long lo, long hi) {
  float *a0 = args[0];
  const float *a1 = args[1];
  const long *a2 = args[2];
  long long *err = args[3];
  for (long j = lo; j < hi; j++) {
    for (long i = 0; i < 6; i++) {
      float v2 = a1[i * 4 + j];
      long v3 = a2[i * 4 + j];
      if (!((long)v3 > -1 && (long)v3 < 10)) *err = ((long long)10 << 32) | (((long)v3 == (int)((long)v3) ? (long)v3 : 0) & 0xffffffffL);
      if ((long)v3 > -1 && (long)v3 < 10) a0[(long)v3 * 4 + j] = (a0[(long)v3 * 4 + j] + v2);
    }
  }
}
