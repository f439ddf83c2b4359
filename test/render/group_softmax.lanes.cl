#define INLINE static inline
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void group_softmax(__global float *a0_, long a0_at, __global const float *a1_, long a1_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  const int t = get_local_id(0);
  const int k1l = t & 63;
  const int sl = t;
  const int kl = t & 63;
  const int jl = t;
  __local float m6[128] __attribute__((aligned(16)));
  __local float m6b[128] __attribute__((aligned(16)));
  __local float m13[256] __attribute__((aligned(16)));
  __local float m21[128] __attribute__((aligned(16)));
  __local float m21b[128] __attribute__((aligned(16)));
  for (int i = get_group_id(0); i < 6; i += get_num_groups(0)) {
    float acc6 = -(float)INFINITY;
    for (int k1o = 0; k1o < 4; k1o++) {
      float v3 = a1[i * 256 + (k1o * 64) + k1l];
      acc6 = max_f32(acc6, v3);
    }
    m6[0 + t] = acc6;
    barrier(CLK_LOCAL_MEM_FENCE);
    float f0_6 = max_f32(max_f32(max_f32(m6[0 + (t & 120)], m6[1 + (t & 120)]), max_f32(m6[2 + (t & 120)], m6[3 + (t & 120)])), max_f32(max_f32(m6[4 + (t & 120)], m6[5 + (t & 120)]), max_f32(m6[6 + (t & 120)], m6[7 + (t & 120)])));
    m6b[0 + t] = f0_6;
    barrier(CLK_LOCAL_MEM_FENCE);
    float v6 = max_f32(max_f32(max_f32(m6b[0 + (t & 71)], m6b[8 + (t & 71)]), max_f32(m6b[16 + (t & 71)], m6b[24 + (t & 71)])), max_f32(max_f32(m6b[32 + (t & 71)], m6b[40 + (t & 71)]), max_f32(m6b[48 + (t & 71)], m6b[56 + (t & 71)])));
    float v7 = (v6 * -1.0f);
    for (int so = 0; so < 2; so++) {
      float v10 = a1[i * 256 + (so * 128) + sl];
      m13[so * 128 + sl] = exp((v10 + v7));
    }
    float acc21 = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int ko = 0; ko < 4; ko++) {
      float v18 = m13[ko * 64 + kl];
      acc21 = (acc21 + v18);
    }
    m21[0 + t] = acc21;
    barrier(CLK_LOCAL_MEM_FENCE);
    float f0_21 = (((m21[0 + (t & 120)] + m21[1 + (t & 120)]) + (m21[2 + (t & 120)] + m21[3 + (t & 120)])) + ((m21[4 + (t & 120)] + m21[5 + (t & 120)]) + (m21[6 + (t & 120)] + m21[7 + (t & 120)])));
    m21b[0 + t] = f0_21;
    barrier(CLK_LOCAL_MEM_FENCE);
    float v21 = (((m21b[0 + (t & 71)] + m21b[8 + (t & 71)]) + (m21b[16 + (t & 71)] + m21b[24 + (t & 71)])) + ((m21b[32 + (t & 71)] + m21b[40 + (t & 71)]) + (m21b[48 + (t & 71)] + m21b[56 + (t & 71)])));
    for (int jo = 0; jo < 2; jo++) {
      float v23 = m13[jo * 128 + jl];
      a0[i * 256 + (jo * 128) + jl] = (v23 / v21);
    }
  }
}
