// The part of CUDA C++ that rendered kernels use: one thread at a time, in blocks of one.
#pragma once
#include "half.h"
#define __global__
#define __device__
#define __forceinline__ inline
struct Dim { unsigned x; };
#define blockIdx Dim{(unsigned)emu_id}
#define gridDim Dim{(unsigned)emu_ids}
#define blockDim Dim{1}
#define threadIdx Dim{0}
#define __int_as_float bits_as<float, int>
#define __float_as_int bits_as<int, float>
#define __longlong_as_double bits_as<double, long long>
#define __double_as_longlong bits_as<long long, double>
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / std::sqrt(x); }
// The only instructions are those that convert float16: "cvt..." : "=f"(r) : "h"(x), and the other way.
static inline void convert(float &r, unsigned short x) { r = half_value(x); }
static inline void convert(unsigned short &r, float x) { r = half_bits(x); }
#define asm(...) convert(r, x)
