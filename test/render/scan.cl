#define INLINE static inline
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

__kernel void scan0(__global int *a0_, long a0_at, __global const int *a1_, long a1_at) {
  __global int *a0 = (__global int *)((__global char *)a0_ + a0_at);
  __global const int *a1 = (__global const int *)((__global const char *)a1_ + a1_at);
  for (int i = get_global_id(0); i < 3; i += get_global_size(0)) {
    int acc4 = 0;
    for (int j = 0; j < 5; j++) {
      int v3 = a1[i * 5 + j];
      acc4 = (int)((uint)acc4 + (uint)v3);
      int v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}

__kernel void scan1(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  for (int i = get_global_id(0); i < 3; i += get_global_size(0)) {
    float acc4 = -(float)INFINITY;
    for (int j = 0; j < 5; j++) {
      float v3 = a1[i * 5 + j];
      acc4 = max_f32(acc4, v3);
      float v4 = acc4;
      a0[i * 5 + j] = v4;
    }
  }
}
