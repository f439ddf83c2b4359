#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a != a)){__VA_ARGS__})
#endif
typedef float f32x8 __attribute__((vector_size(32)));
INLINE f32x8 splat_f32x8(float x) { return (f32x8){x, x, x, x, x, x, x, x}; }
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));
INLINE f32x8 where_f32x8(i32x8 a, f32x8 b, f32x8 c) { return (f32x8)((a & (i32x8)b) | (~a & (i32x8)c)); }
INLINE f32x8 larger_f32x8(f32x8 a, f32x8 b) { 
#if defined(__AVX__) && !defined(__clang__)
  return __builtin_ia32_maxps256(a, b);
#else
  i32x8 m = a > b; return (f32x8)((m & (i32x8)a) | (~m & (i32x8)b));
#endif
 }
INLINE f32x8 max_f32x8(f32x8 a, f32x8 b) { i32x8 t0 = (a != a); f32x8 t1 = larger_f32x8(a, b); f32x8 t2 = where_f32x8(t0, a, t1); return t2; }
typedef unsigned u32x8 __attribute__((vector_size(32)));
INLINE f32x8 smaller_f32x8(f32x8 a, f32x8 b) { 
#if defined(__AVX__) && !defined(__clang__)
  return __builtin_ia32_minps256(a, b);
#else
  i32x8 m = a < b; return (f32x8)((m & (i32x8)a) | (~m & (i32x8)b));
#endif
 }
INLINE u32x8 splat_u32x8(unsigned x) { return (u32x8){x, x, x, x, x, x, x, x}; }
INLINE f32x8 exp_f32x8(f32x8 a) { f32x8 t0 = larger_f32x8(splat_f32x8(-176.0f), a); f32x8 t1 = smaller_f32x8(splat_f32x8(90.0f), t0); f32x8 t2 = (t1 * splat_f32x8(0.7213475108146667f)); f32x8 t3 = (t2 + splat_f32x8(12583039.0f)); f32x8 t4 = (t3 + splat_f32x8(-12583039.0f)); f32x8 t5 = (t4 * splat_f32x8(-1.38623046875f)); f32x8 t6 = (t1 + t5); f32x8 t7 = (t4 * splat_f32x8(-6.389236659742892e-05f)); f32x8 t8 = (t6 + t7); f32x8 t9 = (t8 * t8); f32x8 t10 = (t8 * splat_f32x8(0.00019629205053206533f)); f32x8 t11 = (t10 + splat_f32x8(0.0014104675501585007f)); f32x8 t12 = (t8 * t11); f32x8 t13 = (t12 + splat_f32x8(0.008335936814546585f)); f32x8 t14 = (t8 * t13); f32x8 t15 = (t14 + splat_f32x8(0.041661232709884644f)); f32x8 t16 = (t8 * t15); f32x8 t17 = (t16 + splat_f32x8(0.166666179895401f)); f32x8 t18 = (t8 * t17); f32x8 t19 = (t18 + splat_f32x8(0.5000003576278687f)); f32x8 t20 = (t9 * t19); f32x8 t21 = (t20 + t8); u32x8 t22 = (u32x8)t3; u32x8 t23 = (t22 << 23); f32x8 t24 = (f32x8)t23; f32x8 t25 = (t21 * t24); f32x8 t26 = (t25 + t24); f32x8 t27 = (t26 * t24); return t27; }

void softmax(void **args, long lo, long hi) {
  float *a0 = args[0];
  const float *a1 = args[1];
  for (long i = lo; i < hi; i++) {
    f32x8 acc6_0 = splat_f32x8(-__builtin_inff());
    for (long k1o = 0; k1o < 3; k1o++) {
      f32x8 v3_0 = (f32x8)*(const f32x8u*)(a1 + i * 24 + (k1o * 8));
      acc6_0 = max_f32x8(acc6_0, v3_0);
    }
    f32x8 f6 = acc6_0;
    f6 = max_f32x8(f6, SHUFFLE(f6, f6, 4, 5, 6, 7, 0, 1, 2, 3));
    f6 = max_f32x8(f6, SHUFFLE(f6, f6, 2, 3, 4, 5, 6, 7, 0, 1));
    f6 = max_f32x8(f6, SHUFFLE(f6, f6, 1, 2, 3, 4, 5, 6, 7, 0));
    float v6 = f6[0];
    float v7 = (v6 * -1.0f);
    float m13[24] __attribute__((aligned(64)));
    for (long so = 0; so < 3; so++) {
      f32x8 v10_0 = (f32x8)*(const f32x8u*)(a1 + i * 24 + (so * 8));
      *(f32x8u*)(m13 + so * 8) = exp_f32x8((v10_0 + splat_f32x8(v7)));
    }
    f32x8 acc20_0 = splat_f32x8(0.0f);
    for (long ko = 0; ko < 3; ko++) {
      f32x8 v17_0 = (f32x8)*(const f32x8u*)(m13 + ko * 8);
      acc20_0 = (acc20_0 + v17_0);
    }
    f32x8 f20 = acc20_0;
    f20 = (f20 + SHUFFLE(f20, f20, 4, 5, 6, 7, 0, 1, 2, 3));
    f20 = (f20 + SHUFFLE(f20, f20, 2, 3, 4, 5, 6, 7, 0, 1));
    f20 = (f20 + SHUFFLE(f20, f20, 1, 2, 3, 4, 5, 6, 7, 0));
    float v20 = f20[0];
    for (long jo = 0; jo < 3; jo++) {
      f32x8 v22_0 = (f32x8)*(const f32x8u*)(m13 + jo * 8);
      *(f32x8u*)(a0 + i * 24 + (jo * 8)) = (v22_0 / splat_f32x8(v20));
    }
  }
}
