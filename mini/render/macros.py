"""Macros of C for what processors have, or compilers call, each in its own way."""

# Non-temporal stores: only whole registers at addresses that are their multiples.
STREAM = {
  n: f"""#if defined(__clang__)
#define STREAM{n}(p, x) __builtin_nontemporal_store(x, (__typeof__(x) *)(p))
#elif defined({macro})
typedef long long past{n} __attribute__((vector_size({n})));
#define STREAM{n}(p, x) __builtin_ia32_movntdq{suffix}((past{n} *)(p), (past{n})(x))
#else
#define STREAM{n}(p, x) __builtin_memcpy(p, &x, {n})
#endif"""
  for n, macro, suffix in ((16, "__SSE2__", ""), (32, "__AVX__", "256"), (64, "__AVX512F__", "512"))
}
FENCE = """#if defined(__SSE2__)
#define FENCE() __builtin_ia32_sfence()
#else
#define FENCE()
#endif"""
# a * b + c with one rounding where vectors have it: by -ffp-contract=fast, of a compiler that optimizes.
FUSED = """#if defined(__OPTIMIZE__) && (defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMA))
#define FUSED(f, a, b, c) f(a, b, c)
#else
#define FUSED(f, a, b, c) ((a) * (b) + (c))
#endif"""
# No prefetch of long streams on AMD's processors, which alone have CLZERO: their own prefetchers find those. Without
# that, on two cores of a Zen 4, AdamW takes 0.92 of the time, a chain of five operations 0.91, gradients of layer norms
# 0.6 to 0.8, a vector times 50257 rows of 768 0.73; on two of a Zen 3 a sum of 64 MB in four places 0.87, one of rows
# of 768 0.86. (Two of an Ice Lake do AdamW at 42 GB/s with it, and scale numbers in place at 34 without.)
AHEAD = """#if defined(__CLZERO__)
#define AHEAD(p, cache)
#else
#define AHEAD(p, cache) __builtin_prefetch(p, 0, cache)
#endif"""
