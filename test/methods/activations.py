"""Activations."""

ROWS = """
fh: y.sigmoid()   y.silu()   y.gelu()   y.gelu(approximate='tanh')   y.softplus()   y.hardtanh()   y.hardswish()   y.hardsigmoid()   y.leaky_relu()   y.elu()   y.logsigmoid()
f: y.relu6()   (y*5).relu6()   y.leaky_relu(0.1)   y.elu(0.5)   y.celu()   y.celu(0.5)   y.selu()   y.mish()   y.softplus(2.0, 1.0)   y.softsign()   y.hardtanh(-0.5,0.7)   (y*5).hardswish()   (y*5).hardsigmoid()
f: y.swish() => F.silu(y)   y.quick_gelu() => y * (1.702 * y).sigmoid()   odd.gelu()   z.sigmoid()   s.silu()
f: y.hardshrink()   y.hardshrink(0.7)   y.softshrink(0.3)   y.tanhshrink()   y.threshold(0.2,7.0)   y.glu()   y.glu(1)   x.prelu(v[:3].abs())   y.prelu(v[:1])   y.rrelu(0.25,0.25)   y.rrelu(training=False)
fhiu: y.relu()
e.relu()   i.relu()   i.sigmoid()   w.softmin(-1)
"""

MISTAKES = """
odd.glu()                 !   glu
x.prelu(v)                !   prelu

y.gelu('erf')             !   approximate is "none" or "tanh", not 'erf'
y.leaky_relu('a')         !   leaky_relu: negative_slope is 'a', not a number
y.elu(v[:3])              !   elu: alpha is f32[3], not a number
y.celu(0)                 !   celu: alpha is 0
y.softplus(v[:3])         !   softplus: beta is f32[3], not a number
y.hardtanh(3, 1)          !   hardtanh: min_val 3 is greater than max_val 1
y.rrelu(0.5, 0.25)        !   rrelu: lower 0.5 is greater than upper 0.25
y.hardshrink('a')         !   hardshrink: lambd is 'a', not a number
y.softshrink(-1)          !   softshrink: lambd is -1, less than 0
y.threshold(v[:3], 1)     !   threshold: threshold is f32[3], not a number
y.gumbel_softmax(axis=2)  !   softmax: there is no axis 2
"""
