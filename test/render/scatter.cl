#define INLINE static inline

__kernel void scatter0(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  for (long io = get_global_id(0); io < 3; io += get_global_size(0)) {
    float v1_0 = a1[(io * 16 < 24 ? io * 16 : 24)];
    float v1_1 = a1[(io * 16 < 24 ? io * 16 : 24) + 1];
    float v1_2 = a1[(io * 16 < 24 ? io * 16 : 24) + 2];
    float v1_3 = a1[(io * 16 < 24 ? io * 16 : 24) + 3];
    float v1_4 = a1[(io * 16 < 24 ? io * 16 : 24) + 4];
    float v1_5 = a1[(io * 16 < 24 ? io * 16 : 24) + 5];
    float v1_6 = a1[(io * 16 < 24 ? io * 16 : 24) + 6];
    float v1_7 = a1[(io * 16 < 24 ? io * 16 : 24) + 7];
    float v1_8 = a1[(io * 16 < 24 ? io * 16 : 24) + 8];
    float v1_9 = a1[(io * 16 < 24 ? io * 16 : 24) + 9];
    float v1_10 = a1[(io * 16 < 24 ? io * 16 : 24) + 10];
    float v1_11 = a1[(io * 16 < 24 ? io * 16 : 24) + 11];
    float v1_12 = a1[(io * 16 < 24 ? io * 16 : 24) + 12];
    float v1_13 = a1[(io * 16 < 24 ? io * 16 : 24) + 13];
    float v1_14 = a1[(io * 16 < 24 ? io * 16 : 24) + 14];
    float v1_15 = a1[(io * 16 < 24 ? io * 16 : 24) + 15];
    a0[(io * 16 < 24 ? io * 16 : 24)] = v1_0;
    a0[(io * 16 < 24 ? io * 16 : 24) + 1] = v1_1;
    a0[(io * 16 < 24 ? io * 16 : 24) + 2] = v1_2;
    a0[(io * 16 < 24 ? io * 16 : 24) + 3] = v1_3;
    a0[(io * 16 < 24 ? io * 16 : 24) + 4] = v1_4;
    a0[(io * 16 < 24 ? io * 16 : 24) + 5] = v1_5;
    a0[(io * 16 < 24 ? io * 16 : 24) + 6] = v1_6;
    a0[(io * 16 < 24 ? io * 16 : 24) + 7] = v1_7;
    a0[(io * 16 < 24 ? io * 16 : 24) + 8] = v1_8;
    a0[(io * 16 < 24 ? io * 16 : 24) + 9] = v1_9;
    a0[(io * 16 < 24 ? io * 16 : 24) + 10] = v1_10;
    a0[(io * 16 < 24 ? io * 16 : 24) + 11] = v1_11;
    a0[(io * 16 < 24 ? io * 16 : 24) + 12] = v1_12;
    a0[(io * 16 < 24 ? io * 16 : 24) + 13] = v1_13;
    a0[(io * 16 < 24 ? io * 16 : 24) + 14] = v1_14;
    a0[(io * 16 < 24 ? io * 16 : 24) + 15] = v1_15;
  }
}

__kernel void scatter1(__global float *a0_, long a0_at, __global const float *a1_, long a1_at, __global const long *a2_, long a2_at, __global long *err) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  __global const long *a2 = (__global const long *)((__global const char *)a2_ + a2_at);
  for (long j = get_global_id(0); j < 4; j += get_global_size(0)) {
    for (long i = 0; i < 6; i++) {
      float v2 = a1[i * 4 + j];
      long v3 = a2[i * 4 + j];
      if (!(((long)v3 * -1) < 1 && (long)v3 < 10)) *err = ((long)10 << 32) | ((long)v3 & 0xffffffffL);
      if (((long)v3 * -1) < 1 && (long)v3 < 10) a0[(long)v3 * 4 + j] = (a0[(long)v3 * 4 + j] + v2);
    }
  }
}
