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
"""
