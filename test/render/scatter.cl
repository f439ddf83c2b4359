#define INLINE static inline

__kernel void scatter0(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  for (int io = get_global_id(0); io < 3; io += get_global_size(0)) {
    float4 w1_0 = vload4(0, a1 + (io * 16 < 24 ? io * 16 : 24));
    float v1_0 = w1_0.x, v1_1 = w1_0.y, v1_2 = w1_0.z, v1_3 = w1_0.w;
    float4 w1_4 = vload4(0, a1 + (io * 16 < 24 ? io * 16 : 24) + 4);
    float v1_4 = w1_4.x, v1_5 = w1_4.y, v1_6 = w1_4.z, v1_7 = w1_4.w;
    float4 w1_8 = vload4(0, a1 + (io * 16 < 24 ? io * 16 : 24) + 8);
    float v1_8 = w1_8.x, v1_9 = w1_8.y, v1_10 = w1_8.z, v1_11 = w1_8.w;
    float4 w1_12 = vload4(0, a1 + (io * 16 < 24 ? io * 16 : 24) + 12);
    float v1_12 = w1_12.x, v1_13 = w1_12.y, v1_14 = w1_12.z, v1_15 = w1_12.w;
    { float4 x; x.x = v1_0; x.y = v1_1; x.z = v1_2; x.w = v1_3; vstore4(x, 0, a0 + (io * 16 < 24 ? io * 16 : 24)); }
    { float4 x; x.x = v1_4; x.y = v1_5; x.z = v1_6; x.w = v1_7; vstore4(x, 0, a0 + (io * 16 < 24 ? io * 16 : 24) + 4); }
    { float4 x; x.x = v1_8; x.y = v1_9; x.z = v1_10; x.w = v1_11; vstore4(x, 0, a0 + (io * 16 < 24 ? io * 16 : 24) + 8); }
    { float4 x; x.x = v1_12; x.y = v1_13; x.z = v1_14; x.w = v1_15; vstore4(x, 0, a0 + (io * 16 < 24 ? io * 16 : 24) + 12); }
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
      if (!((long)v3 > -1 && (long)v3 < 10)) *err = ((long)10 << 32) | (((long)v3 == (int)((long)v3) ? (long)v3 : 0) & 0xffffffffL);
      if ((long)v3 > -1 && (long)v3 < 10) a0[(long)v3 * 4 + j] = (a0[(long)v3 * 4 + j] + v2);
    }
  }
}
