// OpenCL has no matrix instruction 8x8 f32; it has none
