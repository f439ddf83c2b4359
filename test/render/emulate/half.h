// What the three headers share: where a thread is, and float16 for compilers that lack it.
#pragma once
#include <cmath>
#include <cstring>

extern "C" { long emu_id = 0, emu_ids = 1; }

template <class To, class From> static inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To r;
  memcpy(&r, &x, sizeof r);
  return r;
}

// To nearest even; the sum with 0.5 has the spacing of the subnormal numbers.
static inline unsigned short half_bits(float f) {
  unsigned x = bits_as<unsigned>(f), s = x >> 16 & 0x8000, a = x & 0x7fffffff;
  if (a >= 0x7f800000) return s | (a > 0x7f800000 ? 0x7e00 : 0x7c00);
  if (a >= 0x477ff000) return s | 0x7c00;
  if (a < 0x38800000) return s | (bits_as<unsigned>(bits_as<float>(a) + 0.5f) - 0x3f000000);
  return s | ((a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13);
}

static inline float half_value(unsigned short x) {
  int e = x >> 10 & 31, m = x & 1023;
  float a = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp((float)(m + 1024), e - 25) : std::ldexp((float)m, -24);
  return x & 0x8000 ? -a : a;
}

struct half {
  unsigned short bits;
  half() = default;
  explicit half(float f) : bits(half_bits(f)) {}
  operator float() const { return half_value(bits); }
};

using std::exp2, std::log2, std::sin, std::sqrt, std::exp, std::log, std::cos, std::tanh, std::erf, std::atan;
using std::pow, std::floor, std::ceil, std::trunc, std::rint, std::fabs, std::fmod, std::copysign;
