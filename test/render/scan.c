#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
INLINE float max_f32(float a, float b) { float r = a > b ? a : b; return a != a ? a : r; }

void scan0(void **args, long lo, long hi) {
  int *a0 = args[0];
  const int *a1 = args[1];
  for (long i = lo; i < hi; i++) {
    int acc4 = 0;
    for (long j = 0; j < 5; j++) {
      int v3 = a1[i * 5 + j];
      acc4 = (acc4 + v3);
      int v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}

void scan1(void **args, long lo, long hi) {
  float *a0 = args[0];
  const float *a1 = args[1];
  for (long i = lo; i < hi; i++) {
    float acc4 = -__builtin_inff();
    for (long j = 0; j < 5; j++) {
      float v3 = a1[i * 5 + j];
      acc4 = max_f32(acc4, v3);
      float v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}
