#include <metal_stdlib>
using namespace metal;
#define INLINE static inline
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

kernel void scan0(device int *a0 [[buffer(0)]], device const int *a1 [[buffer(1)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 3; i += ids) {
    int acc4 = 0;
    for (int j = 0; j < 5; j++) {
      int v3 = a1[i * 5 + j];
      acc4 = (int)((uint)acc4 + (uint)v3);
      int v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}

kernel void scan1(device float *a0 [[buffer(0)]], device const float *a1 [[buffer(1)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (int i = id; i < 3; i += ids) {
    float acc4 = -INFINITY;
    for (int j = 0; j < 5; j++) {
      float v3 = a1[i * 5 + j];
      acc4 = max_f32(acc4, v3);
      float v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}
