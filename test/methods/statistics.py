"""Covariances, histograms, integrals, distances of whole tensors; more arithmetic."""

import numpy as np

from methods import constant, integers, normal, positive

INPUTS = {
  "small": constant([1e-5, -6e-8, 0.0, 3.0], np.float16),
  "o": constant([[-2.0, -0.5, 0.0, 0.5, 1.0, 2.5]], np.float32), "f": integers(1, 4, 4), "a": positive(4),
  "m": integers(-3, 4, 7, 1), "rep": constant([1, 1, 2, 2, 2, 1, 3], np.int64), "near": normal(4, 3),
  "rows": constant([[1, 2], [1, 2], [3, 4]], np.int64), "many": integers(-60, 60, 8, 5),
  "more": integers(-60, 60, 8, 5), "tiny": constant([1e-40, -3e-39, 0.0, 6.5, -1e38, 0.1], np.float32),
}  # fmt: skip
FIXED = ("a", "o")

ROWS = """
f: y.cov()   y[0].cov()   y.cov(correction=0)   y.cov(fweights=f)   y.cov(aweights=a)   y.cov(fweights=f,aweights=a,correction=0)   y.corrcoef()   y[0].corrcoef()
# PyTorch has no gradient of them
f~: near[0].histogram(5,range=(-2.0,2.0))   near[0].histogram(o[0])   near[0].histogram(3)   near[0].histogram(4,range=(-2.0,2.0),weight=near[0]*near[0])   near[0].histogram(4,density=True)   near.histogramdd([2,3,2],range=[-1.,1.,-2.,2.,-3.,3.])   near[:,:2].histogramdd([o[0],o[0,:3]*1])   near.histogramdd(2,density=True)
rep.unique_consecutive()   rep.unique_consecutive(return_inverse=True)   rep.unique_consecutive(True,True)   rows.unique_consecutive(dim=0,return_counts=True)   rep[:0].unique_consecutive()   rows.unique_consecutive(return_inverse=True)
f: y.trapezoid()   y.trapezoid(dim=0)   y.trapezoid(dx=0.5)   y.trapezoid(v)   y.trapezoid(p,dim=0)   y.trapz(v)   y.cumulative_trapezoid()   y.cumulative_trapezoid(p,dim=0)   y.cumulative_trapezoid(dx=2.0)   y[:,:1].trapezoid()   z.trapezoid(dim=0)
i.trapezoid()
# PyTorch's own gradient of it fails: it counts the elements that differ
f~: y.dist(p,0)
f: y.dist(p)   y.dist(v,1)   y.dist(p,float('inf'))   near.pdist()   near.pdist(1)   near.pdist(3.5)   near[:1].pdist()   (y*3).renorm(2,0,1.0)   (x*3).renorm(1,-1,0.5)   (x*3).renorm(3,1,1.0)
fiu: y.positive()   y.rsub(p)   y.rsub(2,alpha=3)
fhiu: p.float_power(2)   p.float_power(-0.5)   p.float_power(q)
T.float_power(j,i)   y.float_power(2) => torch.float_power(y,2)
f~: tiny.frexp()   (tiny*1e-5).frexp()
f: y.frexp()[0]   y.ldexp(j)   y.ldexp(s)
h.frexp()   h.ldexp(j)   i.ldexp(i)   e.frexp()[0]   e.ldexp(s)   small.frexp()
many.gcd(more)   many.lcm(more)   many.int().gcd(more.int())   many[:,:1].char().gcd(more.char())   u.gcd(6) => torch.gcd(u,torch.tensor(6))   many.gcd(0) => many.abs()   (many*10**15).lcm(more)   many.lcm(more*0)
fhiub: y.isposinf()   y.isneginf()
e.isposinf()   e.isneginf()   (-e).isposinf()
many.clone().gcd_(more).lcm_(more)   y.clone().ldexp_(j)   y.double().clone().float_power_(2)   (y*3).clone().renorm_(2,0,1.0)
i.bitwise_left_shift(j)   many.bitwise_right_shift(1)
"""

MISTAKES = """
y.cov(aweights=y)           !   cov: weights are vectors
y.cov(fweights=a)           !   cov: fweights count
x.cov()                     !   cov: x is no matrix
i.histogram(3)              !   histogram: x has floats
y.histogram(0)              !   histogram: 0 bins
y.histogramdd([2])          !   histogram: 1 bins for 4 dimensions
y.trapezoid(v, dx=1.0)      !   trapezoid: x says how far
v.pdist()                   !   pdist: x is no list
y.renorm(2, 5, 1.0)         !   renorm: there is no axis 5
y.gcd(p)                    !   gcd: of integers
i.frexp()                   !   frexp: of floats
b.positive()                !   positive: not of booleans
"""
