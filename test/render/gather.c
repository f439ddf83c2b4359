#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif

void gather(void **args, long lo, long hi) {
  float *a0 = args[0];
  const int *a1 = args[1];
  const float *a2 = args[2];
  long long *err = args[3];
  for (long i = lo; i < hi; i++) {
    for (long j = 0; j < 4; j++) {
      int v2 = a1[i * 4 + j];
      if (!((long)v2 > -1 && (long)v2 < 10)) *err = ((long long)10 << 32) | ((long)v2 & 0xffffffffL);
      float v3 = ((long)v2 > -1 && (long)v2 < 10) ? a2[(long)v2 * 4 + j] : 0.0f;
      a0[i * 4 + j] = v3;
    }
  }
}
