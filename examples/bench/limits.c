// What a machine can do at most: multiply-adds of vectors in registers, and memory read, copied, scaled.
// No header; vectors as wide as the target has. limits.py compiles and calls it, from as many threads as there are cores.

#ifdef __AVX512F__
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
typedef float vec __attribute__((vector_size(BYTES), aligned(BYTES)));
enum { LANES = BYTES / 4 };

#ifdef __clang__
#define STREAM(p, x) __builtin_nontemporal_store(x, p)
#elif defined(__AVX512F__)
#define STREAM(p, x) __builtin_ia32_movntps512((float *)(p), x)
#elif defined(__AVX__)
#define STREAM(p, x) __builtin_ia32_movntps256((float *)(p), x)
#elif defined(__SSE__)
#define STREAM(p, x) __builtin_ia32_movntps((float *)(p), x)
#else
#define STREAM(p, x) (*(p) = (x))
#endif

// 2 * 12 * LANES operations in each of n rounds: 12 sums hide the latency of a multiply-add
float fma_rounds(long n) {
  vec s[12], a, b;
  for (int l = 0; l < LANES; l++) a[l] = 1.0f, b[l] = 1e-9f;
  for (int j = 0; j < 12; j++) s[j] = a * (float)j;
  for (long i = 0; i < n; i++) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; j++) s[j] = s[j] * a + b;
  }
  float sum = 0;
  for (int j = 0; j < 12; j++) sum += s[j][0];
  return sum;
}

float read_all(const float *p, long n) {
  vec s[8] = {0};
  for (long i = 0; i < n; i += 8 * LANES)
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) s[j] += *(const vec *)(p + i + j * LANES);
  vec t = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
  return t[0];
}

void copy_all(float *q, const float *p, long n) {
  for (long i = 0; i < n; i += 4 * LANES)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) STREAM((vec *)(q + i + j * LANES), *(const vec *)(p + i + j * LANES));
  __asm__ volatile("" ::: "memory");
}

// in place: read and written again
void scale_all(float *p, float by, long n) {
  for (long i = 0; i < n; i += 4 * LANES)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) *(vec *)(p + i + j * LANES) *= by;
}
