#define INLINE static inline
INLINE char max_i8(char a, char b) { return a > b ? a : b; }

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void row_sum(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  const int t = get_local_id(0);
  const int kl = t & 31;
  const int il = t >> 5;
  __local float m6[256] __attribute__((aligned(16)));
  __local float m6b[256] __attribute__((aligned(16)));
  for (int io = get_group_id(0); io < 3; io += get_num_groups(0)) {
    float acc6 = 0.0f;
    for (int ko = 0; ko < 3; ko++) {
      float v3 = a1[io * 800 + (il * 100) + (ko * 32) + kl];
      acc6 = (acc6 + v3);
    }
    m6[0 + t] = acc6;
    barrier(CLK_LOCAL_MEM_FENCE);
    float f0_6 = ((m6[0 + (t & 252)] + m6[1 + (t & 252)]) + (m6[2 + (t & 252)] + m6[3 + (t & 252)]));
    m6b[0 + t] = f0_6;
    barrier(CLK_LOCAL_MEM_FENCE);
    float v6 = (((m6b[0 + (t & 227)] + m6b[4 + (t & 227)]) + (m6b[8 + (t & 227)] + m6b[12 + (t & 227)])) + ((m6b[16 + (t & 227)] + m6b[20 + (t & 227)]) + (m6b[24 + (t & 227)] + m6b[28 + (t & 227)])));
    float acc12 = 0.0f;
    for (int k_rest = 0; k_rest < 4; k_rest++) {
      float v9 = a1[io * 800 + (il * 100) + k_rest + 96];
      acc12 = (acc12 + v9);
    }
    float v12 = acc12;
    if (!(t & 31)) a0[io * 8 + il] = (v6 + v12);
  }
}

__kernel __attribute__((reqd_work_group_size(512, 1, 1))) void whole_sum(__global float *a0_, long a0_at, __global char *a1_, long a1_at, __global const float *a2_, long a2_at, __global const char *a3_, long a3_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global char *a1 = (__global char *)((__global char *)a1_ + a1_at);
  __global const float *a2 = (__global const float *)((__global const char *)a2_ + a2_at);
  __global const char *a3 = (__global const char *)((__global const char *)a3_ + a3_at);
  const int t = get_local_id(0);
  const int kl = t;
  const int ml = t & 63;
  __local float m5[512] __attribute__((aligned(16)));
  __local float m5b[512] __attribute__((aligned(16)));
  __local char m11[512] __attribute__((aligned(16)));
  __local char m11b[512] __attribute__((aligned(16)));
  float acc5 = 0.0f;
  for (int ko = 0; ko < 4; ko++) {
    float v2 = a2[ko * 512 + kl];
    acc5 = (acc5 + v2);
  }
  m5[0 + t] = acc5;
  barrier(CLK_LOCAL_MEM_FENCE);
  float f0_5 = (((m5[0 + (t & 504)] + m5[1 + (t & 504)]) + (m5[2 + (t & 504)] + m5[3 + (t & 504)])) + ((m5[4 + (t & 504)] + m5[5 + (t & 504)]) + (m5[6 + (t & 504)] + m5[7 + (t & 504)])));
  m5b[0 + t] = f0_5;
  barrier(CLK_LOCAL_MEM_FENCE);
  float f1_5 = (((m5b[0 + (t & 455)] + m5b[8 + (t & 455)]) + (m5b[16 + (t & 455)] + m5b[24 + (t & 455)])) + ((m5b[32 + (t & 455)] + m5b[40 + (t & 455)]) + (m5b[48 + (t & 455)] + m5b[56 + (t & 455)])));
  m5[0 + t] = f1_5;
  barrier(CLK_LOCAL_MEM_FENCE);
  float v5 = (((m5[0 + (t & 63)] + m5[64 + (t & 63)]) + (m5[128 + (t & 63)] + m5[192 + (t & 63)])) + ((m5[256 + (t & 63)] + m5[320 + (t & 63)]) + (m5[384 + (t & 63)] + m5[448 + (t & 63)])));
  char acc11 = (-127 - 1);
  for (int mo = 0; mo < 32; mo++) {
    char v8 = a3[mo * 64 + ml];
    acc11 = max_i8(acc11, v8);
  }
  m11[0 + t] = acc11;
  barrier(CLK_LOCAL_MEM_FENCE);
  char f0_11 = max_i8(max_i8(max_i8(m11[0 + (t & 504)], m11[1 + (t & 504)]), max_i8(m11[2 + (t & 504)], m11[3 + (t & 504)])), max_i8(max_i8(m11[4 + (t & 504)], m11[5 + (t & 504)]), max_i8(m11[6 + (t & 504)], m11[7 + (t & 504)])));
  m11b[0 + t] = f0_11;
  barrier(CLK_LOCAL_MEM_FENCE);
  char v11 = max_i8(max_i8(max_i8(m11b[0 + (t & 455)], m11b[8 + (t & 455)]), max_i8(m11b[16 + (t & 455)], m11b[24 + (t & 455)])), max_i8(max_i8(m11b[32 + (t & 455)], m11b[40 + (t & 455)]), max_i8(m11b[48 + (t & 455)], m11b[56 + (t & 455)])));
  for (int i = 0; i < 1; i++) {
    if (!(t & 511)) a0[i] = v5;
    if (!(t & 511)) a1[i] = v11;
  }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void add_rows(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  const int t = get_local_id(0);
  const int kl = t;
  __local float m7[64] __attribute__((aligned(16)));
  __local float m7b[64] __attribute__((aligned(16)));
  for (int i = get_group_id(0); i < 6; i += get_num_groups(0)) {
    float v1 = a0[i];
    float acc7 = 0.0f;
    for (int ko = 0; ko < 4; ko++) {
      float v4 = a1[i * 256 + (ko * 64) + kl];
      acc7 = (acc7 + v4);
    }
    m7[0 + t] = acc7;
    barrier(CLK_LOCAL_MEM_FENCE);
    float f0_7 = (((m7[0 + (t & 56)] + m7[1 + (t & 56)]) + (m7[2 + (t & 56)] + m7[3 + (t & 56)])) + ((m7[4 + (t & 56)] + m7[5 + (t & 56)]) + (m7[6 + (t & 56)] + m7[7 + (t & 56)])));
    m7b[0 + t] = f0_7;
    barrier(CLK_LOCAL_MEM_FENCE);
    float v7 = (((m7b[0 + (t & 7)] + m7b[8 + (t & 7)]) + (m7b[16 + (t & 7)] + m7b[24 + (t & 7)])) + ((m7b[32 + (t & 7)] + m7b[40 + (t & 7)]) + (m7b[48 + (t & 7)] + m7b[56 + (t & 7)])));
    if (!(t & 63)) a0[i] = (v1 + v7);
  }
}
