// The part of OpenCL C that rendered kernels use, as C++: one work-item at a time, the global index from outside.
#pragma once
#include "half.h"
#define __kernel extern "C"
#define __global
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned uint;
typedef unsigned long ulong;
static inline long get_global_id(int) { return emu_id; }
static inline long get_global_size(int) { return emu_ids; }
static inline float vload_half(long i, const half *p) { return p[i]; }
static inline void vstore_half(float x, long i, half *p) { p[i] = half(x); }
static inline float rsqrt(float x) { return 1 / std::sqrt(x); }
static inline double rsqrt(double x) { return 1 / std::sqrt(x); }
#define as_int bits_as<int>
#define as_uint bits_as<uint>
#define as_long bits_as<long>
#define as_ulong bits_as<ulong>
#define as_float bits_as<float>
#define as_double bits_as<double>
