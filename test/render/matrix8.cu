// CUDA has no matrix instruction 8x8 f32; it has m16n8k16 f16, m16n8k16 bf16, m16n8k8 tf32
