"""Functions of mathematics. How many units in the last place they may be off: test_mathematics.py."""

ROWS = """
fiub: y.exp()   y.exp2()   y.expm1()   p.sqrt()   y.sin()   y.cos()   y.tanh()   y.atan()   y.asinh()   y.erf()   p.log1p()   y.sinh()   y.cosh()   p.rsqrt()   p.log()   p.log2()   p.log10()
h: y.exp()   y.exp2()   p.sqrt()   y.sin()   y.cos()   y.tanh()   y.atan()   y.erf()   p.rsqrt()   p.log()   p.log2()   p.log10()   y.floor()   y.round()
f: y.tan()   r.asin()   r.acos()   r.atanh()   (p+1).acosh()   (y*10).asinh()   (y*10).sinh()   odd.tanh()   z.exp()   s.log()
fiu: y.floor()   y.ceil()   y.trunc()   y.round()
f: y.round(decimals=1)   (y*1000).round(decimals=-2)   y.frac()
e.sqrt()   e.exp()   e.log()   e.log1p()   e.expm1()   e.floor()   e.ceil()   e.trunc()   e.round()   e.frac()   e.rsqrt()   e.log2()   e.log10()   e.exp2()   e.sigmoid()   e.tanh()   e.atan()   e.erf()
i.exp()   b.exp()   h.exp()   i.round()   y.asin()   y.acos()   y.atanh()
"""

MISTAKES = """
y.round(0.5)              !   round: decimals is 0.5, not an integer
"""
