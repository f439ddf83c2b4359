// Metal has no matrix instruction m16n8k16 f16; it has 8x8 f32, 8x8 f16
