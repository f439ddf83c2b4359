#define INLINE static inline

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void group_matmul(__global float *a0_, long a0_at, __global const float *a1_, long a1_at, __global const float *a2_, long a2_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  __global const float *a2 = (__global const float *)((__global const char *)a2_ + a2_at);
  const int t = get_local_id(0);
  const int ft = t;
  const int ht = t;
  const int jt = t & 15;
  const int it = t >> 4;
  __local float m6[1024] __attribute__((aligned(16)));
  __local float m9[1024] __attribute__((aligned(16)));
  for (int g = get_group_id(0); g < 6; g += get_num_groups(0)) {
    float acc18_0_0 = 0.0f;
    float acc18_0_1 = 0.0f;
    float acc18_0_2 = 0.0f;
    float acc18_0_3 = 0.0f;
    float acc18_1_0 = 0.0f;
    float acc18_1_1 = 0.0f;
    float acc18_1_2 = 0.0f;
    float acc18_1_3 = 0.0f;
    float acc18_2_0 = 0.0f;
    float acc18_2_1 = 0.0f;
    float acc18_2_2 = 0.0f;
    float acc18_2_3 = 0.0f;
    float acc18_3_0 = 0.0f;
    float acc18_3_1 = 0.0f;
    float acc18_3_2 = 0.0f;
    float acc18_3_3 = 0.0f;
    for (int ko = 0; ko < 2; ko++) {
      float v3_0 = a1[(g / 3) * 2048 + ((ft / 16) * 32) + (ko * 16) + (ft % 16)];
      float v3_1 = a1[(g / 3) * 2048 + ((ft / 16) * 32) + (ko * 16) + (ft % 16) + 512];
      float v3_2 = a1[(g / 3) * 2048 + ((ft / 16) * 32) + (ko * 16) + (ft % 16) + 1024];
      float v3_3 = a1[(g / 3) * 2048 + ((ft / 16) * 32) + (ko * 16) + (ft % 16) + 1536];
      barrier(CLK_LOCAL_MEM_FENCE);
      m6[(ft % 16) * 64 + (ft / 16)] = v3_0;
      float v7_0 = a2[ko * 3072 + ((ht / 64) * 192) + ((g % 3) * 64) + (ht % 64)];
      float v7_1 = a2[ko * 3072 + ((ht / 64) * 192) + ((g % 3) * 64) + (ht % 64) + 768];
      float v7_2 = a2[ko * 3072 + ((ht / 64) * 192) + ((g % 3) * 64) + (ht % 64) + 1536];
      float v7_3 = a2[ko * 3072 + ((ht / 64) * 192) + ((g % 3) * 64) + (ht % 64) + 2304];
      m6[(ft % 16) * 64 + (ft / 16) + 16] = v3_1;
      m6[(ft % 16) * 64 + (ft / 16) + 32] = v3_2;
      m6[(ft % 16) * 64 + (ft / 16) + 48] = v3_3;
      m9[ht] = v7_0;
      m9[ht + 256] = v7_1;
      m9[ht + 512] = v7_2;
      m9[ht + 768] = v7_3;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int ki = 0; ki < 16; ki++) {
        float4 w13_0 = vload4(0, m9 + ki * 64 + (jt * 4));
        float v13_0 = w13_0.x, v13_1 = w13_0.y, v13_2 = w13_0.z, v13_3 = w13_0.w;
        float v12_0 = m6[ki * 64 + (it * 4)];
        acc18_0_0 = (acc18_0_0 + (v12_0 * v13_0));
        acc18_0_1 = (acc18_0_1 + (v12_0 * v13_1));
        acc18_0_2 = (acc18_0_2 + (v12_0 * v13_2));
        acc18_0_3 = (acc18_0_3 + (v12_0 * v13_3));
        float v12_1 = m6[ki * 64 + (it * 4) + 1];
        acc18_1_0 = (acc18_1_0 + (v12_1 * v13_0));
        acc18_1_1 = (acc18_1_1 + (v12_1 * v13_1));
        acc18_1_2 = (acc18_1_2 + (v12_1 * v13_2));
        acc18_1_3 = (acc18_1_3 + (v12_1 * v13_3));
        float v12_2 = m6[ki * 64 + (it * 4) + 2];
        acc18_2_0 = (acc18_2_0 + (v12_2 * v13_0));
        acc18_2_1 = (acc18_2_1 + (v12_2 * v13_1));
        acc18_2_2 = (acc18_2_2 + (v12_2 * v13_2));
        acc18_2_3 = (acc18_2_3 + (v12_2 * v13_3));
        float v12_3 = m6[ki * 64 + (it * 4) + 3];
        acc18_3_0 = (acc18_3_0 + (v12_3 * v13_0));
        acc18_3_1 = (acc18_3_1 + (v12_3 * v13_1));
        acc18_3_2 = (acc18_3_2 + (v12_3 * v13_2));
        acc18_3_3 = (acc18_3_3 + (v12_3 * v13_3));
      }
    }
    float v18_0_0 = acc18_0_0;
    float v18_0_1 = acc18_0_1;
    float v18_0_2 = acc18_0_2;
    float v18_0_3 = acc18_0_3;
    { float4 x; x.x = v18_0_0; x.y = v18_0_1; x.z = v18_0_2; x.w = v18_0_3; vstore4(x, 0, a0 + (g / 3) * 12288 + (it * 768) + ((g % 3) * 64) + (jt * 4)); }
    float v18_1_0 = acc18_1_0;
    float v18_1_1 = acc18_1_1;
    float v18_1_2 = acc18_1_2;
    float v18_1_3 = acc18_1_3;
    { float4 x; x.x = v18_1_0; x.y = v18_1_1; x.z = v18_1_2; x.w = v18_1_3; vstore4(x, 0, a0 + (g / 3) * 12288 + (it * 768) + ((g % 3) * 64) + (jt * 4) + 192); }
    float v18_2_0 = acc18_2_0;
    float v18_2_1 = acc18_2_1;
    float v18_2_2 = acc18_2_2;
    float v18_2_3 = acc18_2_3;
    { float4 x; x.x = v18_2_0; x.y = v18_2_1; x.z = v18_2_2; x.w = v18_2_3; vstore4(x, 0, a0 + (g / 3) * 12288 + (it * 768) + ((g % 3) * 64) + (jt * 4) + 384); }
    float v18_3_0 = acc18_3_0;
    float v18_3_1 = acc18_3_1;
    float v18_3_2 = acc18_3_2;
    float v18_3_3 = acc18_3_3;
    { float4 x; x.x = v18_3_0; x.y = v18_3_1; x.z = v18_3_2; x.w = v18_3_3; vstore4(x, 0, a0 + (g / 3) * 12288 + (it * 768) + ((g % 3) * 64) + (jt * 4) + 576); }
  }
}
