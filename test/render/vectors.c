#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));
INLINE i32x8 splat_i32x8(int x) { return (i32x8){x, x, x, x, x, x, x, x}; }
INLINE f32x8 masked_f32x8(const float *p, i32x8 m) {
#if defined(__AVX512F__) && 32 == 64
  i32x8 s = __builtin_convertvector(m, i32x8);
  unsigned short k; __asm__("vptestmd %1, %1, %0" : "=Yk"(k) : "v"(s));
  f32x8 r; __asm__("vmovups %1, %0%{%2%}%{z%}" : "=v"(r) : "m"(*(const f32x8u *)p), "Yk"(k)); return r;
#elif defined(__AVX__) && (32 == 32 || 32 == 16)
  i32x8 s = __builtin_convertvector(m, i32x8);
  f32x8 r; __asm__("vmaskmovps %1, %2, %0" : "=x"(r) : "m"(*(const f32x8u *)p), "x"(s)); return r;
#else
  f32x8 r; for (int i = 0; i < 8; i++) r[i] = m[i] ? p[i] : 0; return r;
#endif
}
typedef unsigned short u16x8u __attribute__((vector_size(16), aligned(2), may_alias));
typedef unsigned short u16x8 __attribute__((vector_size(16)));
typedef unsigned u32x8 __attribute__((vector_size(32)));
INLINE i32x8 int_u16x8(u16x8 x) {
#if defined(__clang__)
  return __builtin_convertvector(x, i32x8);
#elif 8 > 4 && (defined(__AVX512F__) && 8 <= 16 || defined(__AVX2__) && 8 <= 8)
  i32x8 r; __asm__("vpmovzxwd %1, %0" : "=v"(r) : "vm"(x)); return r;
#elif __GNUC__ >= 12
  return (i32x8)((u32x8)SHUFFLE(x, (u16x8){0}, 0, 8, 1, 8, 2, 8, 3, 8, 4, 8, 5, 8, 6, 8, 7, 8));
#else
  i32x8 r; for (int i = 0; i < 8; i++) r[i] = x[i]; return r;
#endif
}
INLINE f32x8 load_f16x8(const _Float16 *p) { 
#if defined(__F16C__) && (defined(__AVX512F__) || 8 < 16)
  f32x8 r; __asm__("vcvtph2ps %1, %0" : "=v"(r) : "m"(*(const u16x8u *)p)); return r; /* gcc 12 converts one at a time */
#else
  i32x8 x = int_u16x8(*(const u16x8u *)p) << 16; f32x8 f = (f32x8)((x & 0x7fffffff) >> 3) * 0x1p112f; /* 112 lies between the exponents' biases */
  return (f32x8)((i32x8)f | (x & -0x7fffffff - 1) | ((f >= 65536.0f) & 0x7f800000)); /* inf and nan stay */
#endif
 }
INLINE f32x8 load_bf16x8(const unsigned short *p) { return (f32x8)(int_u16x8(*(const u16x8u *)p) << 16); }
INLINE void store_f16x8(_Float16 *p, f32x8 x) { 
#if defined(__F16C__) && (defined(__AVX512F__) || 8 < 16) && 8 > 4
  __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(u16x8u *)p) : "v"(x));
#else
  for (int i = 0; i < 8; i++) p[i] = x[i];
#endif
 }
INLINE u32x8 rounded_bf16x8(f32x8 a) { u32x8 b = (u32x8)a, nan = (u32x8)(a != a); return ((b + 0x7fff + (b >> 16 & 1)) & ~nan) | ((b | 0x400000) & nan); }
INLINE void store_bf16x8(unsigned short *p, f32x8 x) { *(u16x8u *)p = __builtin_convertvector(rounded_bf16x8(x) >> 16, u16x8); }
typedef float f32x2 __attribute__((vector_size(8)));
typedef float f32x2u __attribute__((vector_size(8), aligned(4), may_alias));
INLINE f32x2 splat_f32x2(float x) { return (f32x2){x, x}; }

void half_rows(void **args, long lo, long hi) {
  float *a0 = args[0];
  _Float16 *a3 = args[1];
  unsigned short *a5 = args[2];
  const float *a1 = args[3];
  const _Float16 *a2 = args[4];
  const unsigned short *a4 = args[5];
  for (long g = lo; g < hi; g++) {
    f32x8 v1_0 = ((1) && (((g % 9) * 8 + 7) < 71)) ? (f32x8)*(const f32x8u*)(a1 + (g / 9) * 71 + ((g % 9) * 8)) : masked_f32x8(a1 + (g / 9) * 71 + ((g % 9) * 8), ((splat_i32x8((int)((g % 9) * 8 + -71)) < (i32x8){0, -1, -2, -3, -4, -5, -6, -7})));
    f32x8 v2_0 = load_f16x8(a2 + g * 8);
    f32x8 v5_0 = load_bf16x8(a4 + (g % 9) * 8);
    *(f32x8u*)(a0 + g * 8) = ((v1_0 + __builtin_convertvector(v2_0, f32x8)) + __builtin_convertvector(v5_0, f32x8));
    store_f16x8(a3 + g * 8, v2_0);
    store_bf16x8(a5 + g * 8, v5_0);
  }
}

void guarded_pairs(void **args, long lo, long hi) {
  float *a0 = args[0];
  const float *a1 = args[1];
  for (long g = lo; g < hi; g++) {
    f32x2 v1_0 = ((g / 35) < 5) ? (f32x2)*(const f32x2u*)(a1 + (g / 35) * 71 + ((g % 35) * 2) + 1) : splat_f32x2(0.0f);
    *(f32x2u*)(a0 + g * 2) = v1_0;
  }
}
