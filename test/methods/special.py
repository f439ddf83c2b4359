"""Special functions; how far they may be off: test_special.py."""

from methods import constant, normal

INPUTS = {
  "g": constant([-3.5, -2.2, -0.7, 0.1, 0.4, 0.9, 1.0, 1.3, 2.0, 2.7, 5.5, 9.0, 30.0], "float32"),
  "n2": normal(3, 4),
}

ROWS = """
fh: y.hypot(q)
iu: y.hypot(q) => np.hypot(y,q*1.0)
fhiu: y.atan2(q)   y.copysign(n2)   y.erfc()   p.lgamma()   p.digamma()   y.sinc()
f: y.atan2(n2)   n2.atan2(y)   y.hypot(n2)   y.copysign(-2.0)   y.logaddexp(n2)   y.logaddexp(y)   y.logaddexp2(n2)   r.erfinv()   g.lgamma()   g.digamma()   g.erfc()   s.lgamma()   z.erfc()
fhiub: y.fmax(v)   y.fmin(v)   y.signbit()
# PyTorch has no gradient of them
fhiu~: y.heaviside(p)
f~: y.nextafter(n2)   y.heaviside(s)
f: y.deg2rad()   y.rad2deg()   y.mod(q) => y.remainder(q)
iu: y.mod(q) => y % q   y.idiv(q) => y.div(q,rounding_mode='trunc')
e.erfc()   e.lgamma()   e.fmax(s)   e.fmin(s)   e.signbit()   e.copysign(s)   s.copysign(e)   e.atan2(e.flip(0))   e.hypot(e.flip(0))   e.atan2(e)   e.logaddexp(e.flip(0))   e.nextafter(e.flip(0))   e.heaviside(s)   e.erfinv()
e[:11].sinc()   e[:8].digamma()   e[18:].digamma()
"""

MISTAKES = """
y.atan2(k)                !   atan2: the shapes (3, 4) and (3,)
y.atan2('a')              !   atan2: other is 'a'
y.hypot(k)                !   hypot: the shapes
y.copysign(k)             !   copysign: the shapes
y.logaddexp(k)            !   logaddexp: the shapes
y.logaddexp2(k)           !   logaddexp2: the shapes
y.fmax(k)                 !   fmax: the shapes
y.fmax('a')               !   fmax: other is 'a'
y.fmin(k)                 !   fmin: the shapes
y.heaviside(k)            !   heaviside: the shapes
y.nextafter(k)            !   nextafter: the shapes
y.mod(k)                  !   a % b
y.idiv(k)                 !   a / b
"""
