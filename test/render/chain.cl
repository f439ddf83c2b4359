#define INLINE static inline
INLINE float mod_f32(float a, float b) { float r = fmod(a, b); return r != 0 ? ((r < 0) != (b < 0) ? r + b : r) : copysign((float)0, b); }
INLINE float pow_f32(float a, float b) { int t0 = (a != 1.0f); int t1 = (b != 0.0f); int t2 = (t0 & t1); int t3 = (a < 0.0f); int t4 = (-(float)INFINITY < a); int t5 = (t3 & t4); uint t6 = as_uint(b); uint t7 = (t6 & 2147483647u); float t8 = as_float(t7); int t9 = (t8 < 8388608.0f); float t10 = (t8 + 8388608.0f); float t11 = (t10 + -8388608.0f); float t12 = (t9 ? t11 : t8); uint t13 = as_uint(t12); uint t14 = (t6 & 2147483648u); uint t15 = (t13 | t14); float t16 = as_float(t15); int t17 = (t16 != b); int t18 = (t5 & t17); uint t19 = as_uint(a); uint t20 = (t19 & 2147483647u); float t21 = as_float(t20); int t22 = (0.0f < t21); int t23 = (t21 < (float)INFINITY); int t24 = (t22 & t23); int t25 = (b < -4294967296.0f); float t26 = (t25 ? -4294967296.0f : b); int t27 = (4294967296.0f < t26); float t28 = (t27 ? 4294967296.0f : t26); uint t29 = as_uint(t28); uint t30 = (t29 & 4294963200u); float t31 = as_float(t30); int t32 = (t21 < 1.1754943508222875e-38f); float t33 = (t21 * 8388608.0f); float t34 = (t32 ? t33 : t21); uint t35 = as_uint(t34); uint t36 = (t35 + 3234528013u); uint t37 = (t36 & 4286578688u); int t38 = (int)t37; float t39 = (float)t38; float t40 = (t39 + -192937984.0f); float t41 = (t32 ? t40 : t39); float t42 = (t41 * 1.1920928955078125e-07f); uint t43 = (t37 * 4294967295u); uint t44 = (t35 + t43); float t45 = as_float(t44); float t46 = (t45 + -1.0f); float t47 = (t46 + 2.0f); float t48 = (t46 / t47); uint t49 = as_uint(t48); uint t50 = (t49 & 4294963200u); float t51 = as_float(t50); float t52 = (t51 * 2.884765625f); float t53 = (t51 * 0.0006244567921385169f); uint t54 = as_uint(t47); uint t55 = (t54 & 4294963200u); float t56 = as_float(t55); float t57 = (t51 * t56); float t58 = (t57 * -1.0f); float t59 = (t46 + t58); float t60 = (t56 + -2.0f); float t61 = (t60 * -1.0f); float t62 = (t46 + t61); float t63 = (t51 * t62); float t64 = (t63 * -1.0f); float t65 = (t59 + t64); float t66 = (t65 / t47); float t67 = (t66 * 2.885390043258667f); float t68 = (t53 + t67); float t69 = (t48 * t48); float t70 = (t48 * t69); float t71 = (t69 * 0.3407352566719055f); float t72 = (t71 + 0.411672443151474f); float t73 = (t69 * t72); float t74 = (t73 + 0.5770835876464844f); float t75 = (t69 * t74); float t76 = (t75 + 0.9617967009544373f); float t77 = (t70 * t76); float t78 = (t68 + t77); float t79 = (t52 + t78); float t80 = (t42 + t79); uint t81 = as_uint(t80); uint t82 = (t81 & 4294963200u); float t83 = as_float(t82); float t84 = (t31 * t83); float t85 = (t42 * -1.0f); float t86 = (t83 + t85); float t87 = (t52 * -1.0f); float t88 = (t86 + t87); float t89 = (t88 * -1.0f); float t90 = (t78 + t89); float t91 = (t31 * t90); float t92 = (t31 * -1.0f); float t93 = (t28 + t92); float t94 = (t83 + t90); float t95 = (t93 * t94); float t96 = (t91 + t95); float t97 = (t84 + t96); int t98 = (t97 < -152.0f); float t99 = (t98 ? -152.0f : t97); int t100 = (130.0f < t99); float t101 = (t100 ? 130.0f : t99); float t102 = (t101 + 12582912.0f); float t103 = (t102 + -12582912.0f); float t104 = (t103 * -1.0f); float t105 = (t84 + t104); float t106 = (t105 + t96); int t107 = (t106 < -1.0f); float t108 = (t107 ? -1.0f : t106); int t109 = (1.0f < t108); float t110 = (t109 ? 1.0f : t108); float t111 = (t110 * 0.00015326496213674545f); float t112 = (t111 + 0.001339081209152937f); float t113 = (t110 * t112); float t114 = (t113 + 0.009618505835533142f); float t115 = (t110 * t114); float t116 = (t115 + 0.05550359934568405f); float t117 = (t110 * t116); float t118 = (t117 + 0.24022647738456726f); float t119 = (t110 * t118); float t120 = (t119 + 0.6931471824645996f); float t121 = (t110 * t120); float t122 = (t121 + 1.0f); float t123 = (t103 * 0.5f); float t124 = (t123 + 12583039.0f); uint t125 = as_uint(t124); uint t126 = (t125 * 8388608u); float t127 = as_float(t126); float t128 = (t122 * t127); float t129 = (t124 + -12583039.0f); float t130 = (t129 * -1.0f); float t131 = (t103 + t130); float t132 = (t131 + 12583039.0f); uint t133 = as_uint(t132); uint t134 = (t133 * 8388608u); float t135 = as_float(t134); float t136 = (t128 * t135); int t137 = (b != b); int t138 = (b < 0.0f); float t139 = (1.0f / t21); float t140 = (t138 ? t139 : t21); float t141 = (t137 ? b : t140); float t142 = (t24 ? t136 : t141); uint t143 = as_uint(t142); float t144 = (b * 0.5f); uint t145 = as_uint(t144); uint t146 = (t145 & 2147483647u); float t147 = as_float(t146); int t148 = (t147 < 8388608.0f); float t149 = (t147 + 8388608.0f); float t150 = (t149 + -8388608.0f); float t151 = (t148 ? t150 : t147); uint t152 = as_uint(t151); uint t153 = (t145 & 2147483648u); uint t154 = (t152 | t153); float t155 = as_float(t154); int t156 = (t155 != t144); int t157 = (t17 ^ 1); int t158 = (t156 & t157); uint t159 = (t19 & 2147483648u); uint t160 = (t158 ? t159 : 0u); uint t161 = (t143 | t160); float t162 = as_float(t161); float t163 = (t18 ? (float)NAN : t162); float t164 = (t2 ? t163 : 1.0f); return t164; }
INLINE float max_f32(float a, float b) { return a > b || a != a ? a : b; }
INLINE float erf_f32(float a) { int t0 = (a < -3.9200000762939453f); float t1 = (t0 ? -3.9200000762939453f : a); int t2 = (3.9200000762939453f < t1); float t3 = (t2 ? 3.9200000762939453f : t1); float t4 = (t3 * t3); float t5 = (t4 * 2.0419774955371395e-06f); float t6 = (t5 + 0.00028480662149377167f); float t7 = (t4 * t6); float t8 = (t7 + 0.0037795379757881165f); float t9 = (t4 * t8); float t10 = (t9 + 0.05279006063938141f); float t11 = (t4 * t10); float t12 = (t11 + 0.19078223407268524f); float t13 = (t4 * t12); float t14 = (t13 + 1.1283791065216064f); float t15 = (t4 * 3.8004040106898174e-05f); float t16 = (t15 + 0.0011651947861537337f); float t17 = (t4 * t16); float t18 = (t17 + 0.014997294172644615f); float t19 = (t4 * t18); float t20 = (t19 + 0.114256851375103f); float t21 = (t4 * t20); float t22 = (t21 + 0.502409040927887f); float t23 = (t4 * t22); float t24 = (t23 + 1.0f); float t25 = (t14 / t24); float t26 = (t3 * t25); int t27 = (t26 < -1.0f); float t28 = (t27 ? -1.0f : t26); int t29 = (1.0f < t28); float t30 = (t29 ? 1.0f : t28); return t30; }

__kernel void chain(__global float *a0_, long a0_at, __global const float *a1_, long a1_at, __global const float *a2_, long a2_at) {
  __global float *a0 = (__global float *)((__global char *)a0_ + a0_at);
  __global const float *a1 = (__global const float *)((__global const char *)a1_ + a1_at);
  __global const float *a2 = (__global const float *)((__global const char *)a2_ + a2_at);
  for (long io = get_global_id(0); io < 3; io += get_global_size(0)) {
    float v1_0 = a1[(io * 16 < 21 ? io * 16 : 21)];
    float v1_1 = a1[(io * 16 < 21 ? io * 16 : 21) + 1];
    float v1_2 = a1[(io * 16 < 21 ? io * 16 : 21) + 2];
    float v1_3 = a1[(io * 16 < 21 ? io * 16 : 21) + 3];
    float v1_4 = a1[(io * 16 < 21 ? io * 16 : 21) + 4];
    float v1_5 = a1[(io * 16 < 21 ? io * 16 : 21) + 5];
    float v1_6 = a1[(io * 16 < 21 ? io * 16 : 21) + 6];
    float v1_7 = a1[(io * 16 < 21 ? io * 16 : 21) + 7];
    float v1_8 = a1[(io * 16 < 21 ? io * 16 : 21) + 8];
    float v1_9 = a1[(io * 16 < 21 ? io * 16 : 21) + 9];
    float v1_10 = a1[(io * 16 < 21 ? io * 16 : 21) + 10];
    float v1_11 = a1[(io * 16 < 21 ? io * 16 : 21) + 11];
    float v1_12 = a1[(io * 16 < 21 ? io * 16 : 21) + 12];
    float v1_13 = a1[(io * 16 < 21 ? io * 16 : 21) + 13];
    float v1_14 = a1[(io * 16 < 21 ? io * 16 : 21) + 14];
    float v1_15 = a1[(io * 16 < 21 ? io * 16 : 21) + 15];
    float v2_0 = a2[(io * 16 < 21 ? io * 16 : 21)];
    float v2_1 = a2[(io * 16 < 21 ? io * 16 : 21) + 1];
    float v2_2 = a2[(io * 16 < 21 ? io * 16 : 21) + 2];
    float v2_3 = a2[(io * 16 < 21 ? io * 16 : 21) + 3];
    float v2_4 = a2[(io * 16 < 21 ? io * 16 : 21) + 4];
    float v2_5 = a2[(io * 16 < 21 ? io * 16 : 21) + 5];
    float v2_6 = a2[(io * 16 < 21 ? io * 16 : 21) + 6];
    float v2_7 = a2[(io * 16 < 21 ? io * 16 : 21) + 7];
    float v2_8 = a2[(io * 16 < 21 ? io * 16 : 21) + 8];
    float v2_9 = a2[(io * 16 < 21 ? io * 16 : 21) + 9];
    float v2_10 = a2[(io * 16 < 21 ? io * 16 : 21) + 10];
    float v2_11 = a2[(io * 16 < 21 ? io * 16 : 21) + 11];
    float v2_12 = a2[(io * 16 < 21 ? io * 16 : 21) + 12];
    float v2_13 = a2[(io * 16 < 21 ? io * 16 : 21) + 13];
    float v2_14 = a2[(io * 16 < 21 ? io * 16 : 21) + 14];
    float v2_15 = a2[(io * 16 < 21 ? io * 16 : 21) + 15];
    a0[(io * 16 < 21 ? io * 16 : 21)] = mod_f32(floor(((v1_0 < v2_0) ? pow_f32(max_f32((v1_0 * v2_0), 0.5f), erf_f32(v2_0)) : exp(v1_0))), v2_0);
    a0[(io * 16 < 21 ? io * 16 : 21) + 1] = mod_f32(floor(((v1_1 < v2_1) ? pow_f32(max_f32((v1_1 * v2_1), 0.5f), erf_f32(v2_1)) : exp(v1_1))), v2_1);
    a0[(io * 16 < 21 ? io * 16 : 21) + 2] = mod_f32(floor(((v1_2 < v2_2) ? pow_f32(max_f32((v1_2 * v2_2), 0.5f), erf_f32(v2_2)) : exp(v1_2))), v2_2);
    a0[(io * 16 < 21 ? io * 16 : 21) + 3] = mod_f32(floor(((v1_3 < v2_3) ? pow_f32(max_f32((v1_3 * v2_3), 0.5f), erf_f32(v2_3)) : exp(v1_3))), v2_3);
    a0[(io * 16 < 21 ? io * 16 : 21) + 4] = mod_f32(floor(((v1_4 < v2_4) ? pow_f32(max_f32((v1_4 * v2_4), 0.5f), erf_f32(v2_4)) : exp(v1_4))), v2_4);
    a0[(io * 16 < 21 ? io * 16 : 21) + 5] = mod_f32(floor(((v1_5 < v2_5) ? pow_f32(max_f32((v1_5 * v2_5), 0.5f), erf_f32(v2_5)) : exp(v1_5))), v2_5);
    a0[(io * 16 < 21 ? io * 16 : 21) + 6] = mod_f32(floor(((v1_6 < v2_6) ? pow_f32(max_f32((v1_6 * v2_6), 0.5f), erf_f32(v2_6)) : exp(v1_6))), v2_6);
    a0[(io * 16 < 21 ? io * 16 : 21) + 7] = mod_f32(floor(((v1_7 < v2_7) ? pow_f32(max_f32((v1_7 * v2_7), 0.5f), erf_f32(v2_7)) : exp(v1_7))), v2_7);
    a0[(io * 16 < 21 ? io * 16 : 21) + 8] = mod_f32(floor(((v1_8 < v2_8) ? pow_f32(max_f32((v1_8 * v2_8), 0.5f), erf_f32(v2_8)) : exp(v1_8))), v2_8);
    a0[(io * 16 < 21 ? io * 16 : 21) + 9] = mod_f32(floor(((v1_9 < v2_9) ? pow_f32(max_f32((v1_9 * v2_9), 0.5f), erf_f32(v2_9)) : exp(v1_9))), v2_9);
    a0[(io * 16 < 21 ? io * 16 : 21) + 10] = mod_f32(floor(((v1_10 < v2_10) ? pow_f32(max_f32((v1_10 * v2_10), 0.5f), erf_f32(v2_10)) : exp(v1_10))), v2_10);
    a0[(io * 16 < 21 ? io * 16 : 21) + 11] = mod_f32(floor(((v1_11 < v2_11) ? pow_f32(max_f32((v1_11 * v2_11), 0.5f), erf_f32(v2_11)) : exp(v1_11))), v2_11);
    a0[(io * 16 < 21 ? io * 16 : 21) + 12] = mod_f32(floor(((v1_12 < v2_12) ? pow_f32(max_f32((v1_12 * v2_12), 0.5f), erf_f32(v2_12)) : exp(v1_12))), v2_12);
    a0[(io * 16 < 21 ? io * 16 : 21) + 13] = mod_f32(floor(((v1_13 < v2_13) ? pow_f32(max_f32((v1_13 * v2_13), 0.5f), erf_f32(v2_13)) : exp(v1_13))), v2_13);
    a0[(io * 16 < 21 ? io * 16 : 21) + 14] = mod_f32(floor(((v1_14 < v2_14) ? pow_f32(max_f32((v1_14 * v2_14), 0.5f), erf_f32(v2_14)) : exp(v1_14))), v2_14);
    a0[(io * 16 < 21 ? io * 16 : 21) + 15] = mod_f32(floor(((v1_15 < v2_15) ? pow_f32(max_f32((v1_15 * v2_15), 0.5f), erf_f32(v2_15)) : exp(v1_15))), v2_15);
  }
}
