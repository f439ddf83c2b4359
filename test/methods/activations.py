"""Activations."""

ROWS = """
fh: y.sigmoid()   y.silu()   y.gelu()   y.gelu(approximate='tanh')   y.softplus()   y.hardtanh()   y.hardswish()   y.hardsigmoid()   y.leaky_relu()   y.elu()   y.logsigmoid()
f: y.relu6()   (y*5).relu6()   y.leaky_relu(0.1)   y.elu(0.5)   y.celu()   y.celu(0.5)   y.selu()   y.mish()   y.softplus(2.0, 1.0)   y.softsign()   y.hardtanh(-0.5,0.7)   (y*5).hardswish()   (y*5).hardsigmoid()
f: y.swish() => F.silu(y)   y.quick_gelu() => y * (1.702 * y).sigmoid()   odd.gelu()   z.sigmoid()   s.silu()
fhiu: y.relu()
e.relu()   i.relu()   i.sigmoid()   w.softmin(-1)
"""

MISTAKES = """
y.gelu('erf')             !   approximate is "none" or "tanh", not 'erf'
"""
