// The part of the Metal Shading Language that rendered kernels use, as C++.
#pragma once
#define EMULATE_SHARED_BYTES (32 << 10)
#include "core.h"
#include "types.h"

typedef emulate::half half;

#define threadgroup_barrier(flags) emulate::barrier_at(__LINE__)
#define simdgroup_barrier(flags) emulate::sync_warp()

namespace metal {
enum class mem_flags { mem_none, mem_device, mem_threadgroup };

using namespace emulate::math;
namespace precise {
using namespace emulate::math;
}
template <class To, class From> static inline To as_type(From x) { return emulate::bits_as<To>(x); }

// A vector in memory, at any address of an element.
template <class T, int N> struct packed {
  T s[N];
  explicit packed(emulate::vector<T, N> x) {
    for (int n = 0; n < N; n++) s[n] = x[n];
  }
  operator emulate::vector<T, N>() const {
    emulate::vector<T, N> x;
    for (int n = 0; n < N; n++) x[n] = s[n];
    return x;
  }
};

#define EMULATE_VECTORS(T)            \
  typedef emulate::vector<T, 2> T##2; \
  typedef emulate::vector<T, 4> T##4; \
  typedef packed<T, 2> packed_##T##2; \
  typedef packed<T, 4> packed_##T##4;
EMULATE_VECTORS(char)
EMULATE_VECTORS(uchar)
EMULATE_VECTORS(short)
EMULATE_VECTORS(ushort)
EMULATE_VECTORS(int)
EMULATE_VECTORS(uint)
EMULATE_VECTORS(long)
EMULATE_VECTORS(ulong)
EMULATE_VECTORS(half)
EMULATE_VECTORS(float)

// ---------------------------------------------------------------- exchanges within a SIMD-group

template <class T> CORE T simd_shuffle(T x, ushort from) { return emulate::from_lane(x, from); }
template <class T> CORE T simd_shuffle_xor(T x, ushort mask) { return emulate::from_lane(x, emulate::lane() ^ mask); }
template <class T> CORE T simd_shuffle_down(T x, ushort by) { return emulate::from_lane(x, emulate::lane() + by); }
template <class T> CORE T simd_broadcast(T x, ushort from) { return emulate::from_lane(x, from); }
template <class T> CORE T simd_sum(T x) {
  const T *all = emulate::gather(x);
  T sum = all[0];
  for (unsigned i = 1; i < emulate::lanes(); i++) sum = sum + all[i];
  return sum;
}
template <class T> CORE T simd_max(T x) {
  const T *all = emulate::gather(x);
  T most = all[0];
  for (unsigned i = 1; i < emulate::lanes(); i++) most = all[i] > most ? all[i] : most;
  return most;
}

// ---------------------------------------------------------------- matrices of a SIMD-group

// Each lane has two elements, next to each other in a row. Which they are Apple does not say; it is known from hardware
// that the lane's bits are, from the highest: row 4, column 4, row 2, row 1, column 2.
template <class T, int ROWS, int COLUMNS> struct simdgroup_matrix {
  static_assert(ROWS == 8 && COLUMNS == 8, "the only size");
  emulate::vector<T, 2> elements;
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T x) : elements(x) {}
  emulate::vector<T, 2> &thread_elements() { return elements; }
  const emulate::vector<T, 2> &thread_elements() const { return elements; }
  static uint row() { return (emulate::lane() >> 2 & 4) | (emulate::lane() >> 1 & 3); }
  static uint column() { return (emulate::lane() >> 1 & 4) | (emulate::lane() << 1 & 2); }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;

template <class T, int N, int M> static inline simdgroup_matrix<T, N, M> make_filled_simdgroup_matrix(T x) {
  return simdgroup_matrix<T, N, M>(x);
}

template <class T>
static inline void simdgroup_load(simdgroup_matrix<T, 8, 8> &m, const T *p, ulong stride = 8, ulong2 = ulong2(0),
                                  bool transposed = false) {
  for (int i = 0; i < 2; i++)
    m.elements[i] = transposed ? p[(m.column() + i) * stride + m.row()] : p[m.row() * stride + m.column() + i];
}

template <class T>
static inline void simdgroup_store(simdgroup_matrix<T, 8, 8> m, T *p, ulong stride = 8, ulong2 = ulong2(0),
                                   bool transposed = false) {
  for (int i = 0; i < 2; i++)
    (transposed ? p[(m.column() + i) * stride + m.row()] : p[m.row() * stride + m.column() + i]) = m.elements[i];
}

// d = a b + c, summed in float.
template <class D, class A, class B, class C>
CORE void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8> &d, simdgroup_matrix<A, 8, 8> a,
                                        simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c) {
  struct Operands {
    float a[8][8], b[8][8];
  } *m = (Operands *)emulate::slot();
  uint row = d.row(), column = d.column();
  for (int i = 0; i < 2; i++) {
    m->a[row][column + i] = a.elements[i];
    m->b[row][column + i] = b.elements[i];
  }
  emulate::sync_warp();
  for (int i = 0; i < 2; i++) {
    float sum = c.elements[i];
    for (int k = 0; k < 8; k++) sum += m->a[row][k] * m->b[k][column + i];
    d.elements[i] = D(sum);
  }
}
}  // namespace metal

// What the launcher passes for an attribute of a parameter.
namespace emulate {
CORE uint position_thread_position_in_grid() { return place.group.x * place.threads.x + place.thread.x; }
CORE uint position_threads_per_grid() { return place.groups.x * place.threads.x; }
CORE uint position_threadgroup_position_in_grid() { return place.group.x; }
CORE uint position_threadgroups_per_grid() { return place.groups.x; }
CORE uint position_thread_index_in_threadgroup() { return now.current; }
CORE uint position_thread_position_in_threadgroup() { return place.thread.x; }
CORE uint position_threads_per_threadgroup() { return place.threads.x; }
CORE uint position_thread_index_in_simdgroup() { return lane(); }
CORE uint position_simdgroup_index_in_threadgroup() { return now.current / WARP; }
}  // namespace emulate

// Address spaces are words of the language: no name may be one of them.
#define kernel static
#define device
#define constant const
#define threadgroup
#define thread
