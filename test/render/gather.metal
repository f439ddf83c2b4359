#include <metal_stdlib>
using namespace metal;
#define INLINE static inline

kernel void gather(device float *a0 [[buffer(0)]], device const int *a1 [[buffer(1)]], device const float *a2 [[buffer(2)]], device long *err [[buffer(3)]], uint id [[thread_position_in_grid]], uint ids [[threads_per_grid]]) {
  for (long i = id; i < 6; i += ids) {
    for (long j = 0; j < 4; j++) {
      int v2 = a1[i * 4 + j];
      if (!((long)v2 > -1 && (long)v2 < 10)) *err = ((long)10 << 32) | ((long)v2 & 0xffffffffL);
      float v3 = ((long)v2 > -1 && (long)v2 < 10) ? a2[(long)v2 * 4 + j] : 0.0f;
      a0[i * 4 + j] = v3;
    }
  }
}
