// What the three languages share in types and functions: bits of numbers, float16, short vectors, mathematics.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned uint;
typedef unsigned long ulong;

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

namespace emulate {

template <class To, class From> static inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To r;
  __builtin_memcpy(&r, &x, sizeof r);
  return r;
}

// The bytes of an element of an array, of however many axes.
template <class T> constexpr unsigned element_bytes(const T &) { return sizeof(T); }
template <class T, unsigned long N> constexpr unsigned element_bytes(const T (&a)[N]) { return element_bytes(a[0]); }

// ---------------------------------------------------------------- float16 and bfloat16

// To nearest even; the sum with 0.5 has the spacing of the subnormal numbers.
static inline ushort half_bits(float f) {
  uint x = bits_as<uint>(f), s = x >> 16 & 0x8000, a = x & 0x7fffffff;
  if (a >= 0x7f800000) return s | (a > 0x7f800000 ? 0x7e00 : 0x7c00);
  if (a >= 0x477ff000) return s | 0x7c00;
  if (a < 0x38800000) return s | (bits_as<uint>(bits_as<float>(a) + 0.5f) - 0x3f000000);
  return s | ((a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13);
}

static inline float half_value(ushort x) {
  uint s = (uint)(x & 0x8000) << 16, e = x >> 10 & 31, m = x & 1023;
  if (e == 0) return bits_as<float>(bits_as<uint>(m * 0x1p-24f) | s);
  return bits_as<float>(s | (e == 31 ? 0x7f800000 : (e + 112) << 23) | m << 13);
}

static inline float bfloat_value(ushort x) { return bits_as<float>((uint)x << 16); }

struct half {
  ushort bits;
  constexpr half() : bits(0) {}  // constant: g++ would look, each time, whether an array in shared memory is made yet
  half(float f) : bits(half_bits(f)) {}
  operator float() const { return half_value(bits); }
  half &operator+=(float x) { return *this = *this + x; }
  half &operator*=(float x) { return *this = *this * x; }
};

// ---------------------------------------------------------------- vectors

// Their alignment is the device's only where it is checked: elsewhere a wrong address must not end the process.
#ifdef EMULATE_CHECK
#define EMULATE_ALIGNED(n) alignas(n)
#else
#define EMULATE_ALIGNED(n)
#endif

template <class T, int N> struct EMULATE_ALIGNED(N * sizeof(T)) vector {
  T s[N];
  T &operator[](int n) { return s[n]; }
  const T &operator[](int n) const { return s[n]; }
};

template <class T> struct EMULATE_ALIGNED(2 * sizeof(T)) vector<T, 2> {
  T x, y;
  vector() = default;
  vector(T x, T y) : x(x), y(y) {}
  explicit vector(T a) : x(a), y(a) {}
  T &operator[](int n) { return (&x)[n]; }
  const T &operator[](int n) const { return (&x)[n]; }
};

template <class T> struct EMULATE_ALIGNED(4 * sizeof(T)) vector<T, 4> {
  T x, y, z, w;
  vector() = default;
  vector(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
  explicit vector(T a) : x(a), y(a), z(a), w(a) {}
  T &operator[](int n) { return (&x)[n]; }
  const T &operator[](int n) const { return (&x)[n]; }
};

#define EMULATE_OPERATOR(op)                                                                   \
  template <class T, int N> static inline vector<T, N> operator op(vector<T, N> a, vector<T, N> b) { \
    for (int n = 0; n < N; n++) a[n] = a[n] op b[n];                                           \
    return a;                                                                                  \
  }                                                                                            \
  template <class T, int N> static inline vector<T, N> operator op(vector<T, N> a, T b) {      \
    for (int n = 0; n < N; n++) a[n] = a[n] op b;                                              \
    return a;                                                                                  \
  }                                                                                            \
  template <class T, int N> static inline vector<T, N> operator op(T a, vector<T, N> b) {      \
    for (int n = 0; n < N; n++) b[n] = a op b[n];                                              \
    return b;                                                                                  \
  }
EMULATE_OPERATOR(+)
EMULATE_OPERATOR(-)
EMULATE_OPERATOR(*)
EMULATE_OPERATOR(/)

// ---------------------------------------------------------------- mathematics, by overloads

namespace math {
#define EMULATE_MATH(name)                                                \
  static inline float name(float x) { return __builtin_##name##f(x); }    \
  static inline double name(double x) { return __builtin_##name(x); }
#define EMULATE_MATH2(name)                                                              \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); }       \
  static inline double name(double x, double y) { return __builtin_##name(x, y); }
EMULATE_MATH(exp2)
EMULATE_MATH(log2)
EMULATE_MATH(sin)
EMULATE_MATH(sqrt)
EMULATE_MATH(exp)
EMULATE_MATH(log)
EMULATE_MATH(cos)
EMULATE_MATH(tanh)
EMULATE_MATH(erf)
EMULATE_MATH(erfc)
EMULATE_MATH(expm1)
EMULATE_MATH(atan)
EMULATE_MATH(floor)
EMULATE_MATH(ceil)
EMULATE_MATH(trunc)
EMULATE_MATH(rint)
EMULATE_MATH(fabs)
EMULATE_MATH2(pow)
EMULATE_MATH2(fmod)
EMULATE_MATH2(copysign)
static inline float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
static inline double rsqrt(double x) { return 1 / __builtin_sqrt(x); }
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
}  // namespace math
}  // namespace emulate
