// OpenCL has no matrix instruction m16n8k16 f16; it has none
