// C has no groups of threads, of which %k1l, %sl, %kl, %jl would be a part
