// The part of OpenCL C 1.2 that rendered kernels use, as C++.
#pragma once
#define EMULATE_SHARED_BYTES (32 << 10)
#include "core.h"
#include "types.h"

#define __kernel static
#define __global
#define __local
#define __private
#define __constant const
#define restrict __restrict

typedef emulate::half half;
using namespace emulate::math;

#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(fence) emulate::barrier_at(__LINE__)

static inline ulong get_local_id(uint) { return emulate::place.thread.x; }
static inline ulong get_group_id(uint) { return emulate::place.group.x; }
static inline ulong get_local_size(uint) { return emulate::place.threads.x; }
static inline ulong get_num_groups(uint) { return emulate::place.groups.x; }
static inline ulong get_global_id(uint) { return get_group_id(0) * get_local_size(0) + get_local_id(0); }
static inline ulong get_global_size(uint) { return get_num_groups(0) * get_local_size(0); }

#define as_int emulate::bits_as<int>
#define as_uint emulate::bits_as<uint>
#define as_long emulate::bits_as<long>
#define as_ulong emulate::bits_as<ulong>
#define as_float emulate::bits_as<float>
#define as_double emulate::bits_as<double>

static inline float vload_half(ulong i, const half *p) { return p[i]; }
static inline void vstore_half(float x, ulong i, half *p) { p[i] = half(x); }

// vloadN reads N elements at p + i * N: aligned to an element, not to the vector.
#define EMULATE_VECTORS(N)                                                                             \
  typedef emulate::vector<char, N> char##N;                                                            \
  typedef emulate::vector<short, N> short##N;                                                          \
  typedef emulate::vector<int, N> int##N;                                                              \
  typedef emulate::vector<long, N> long##N;                                                            \
  typedef emulate::vector<uchar, N> uchar##N;                                                          \
  typedef emulate::vector<ushort, N> ushort##N;                                                        \
  typedef emulate::vector<uint, N> uint##N;                                                            \
  typedef emulate::vector<ulong, N> ulong##N;                                                          \
  typedef emulate::vector<float, N> float##N;                                                          \
  typedef emulate::vector<double, N> double##N;                                                        \
  template <class T> static inline emulate::vector<T, N> vload##N(ulong i, const T *p) {               \
    emulate::vector<T, N> r;                                                                           \
    for (int n = 0; n < N; n++) r[n] = p[i * N + n];                                                   \
    return r;                                                                                          \
  }                                                                                                    \
  template <class T> static inline void vstore##N(emulate::vector<T, N> x, ulong i, T *p) {            \
    for (int n = 0; n < N; n++) p[i * N + n] = x[n];                                                   \
  }                                                                                                    \
  static inline float##N vload_half##N(ulong i, const half *p) {                                       \
    float##N r;                                                                                        \
    for (int n = 0; n < N; n++) r[n] = p[i * N + n];                                                   \
    return r;                                                                                          \
  }                                                                                                    \
  static inline void vstore_half##N(float##N x, ulong i, half *p) {                                    \
    for (int n = 0; n < N; n++) p[i * N + n] = half(x[n]);                                             \
  }
EMULATE_VECTORS(2)
EMULATE_VECTORS(4)
EMULATE_VECTORS(8)
EMULATE_VECTORS(16)
