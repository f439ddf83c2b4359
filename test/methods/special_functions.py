"""mini.special and mini.signal.windows. How far values may be off: test_special_functions.py."""

import numpy as np

from methods import constant

# t: around the bounds between formulas; b: both signs; c: integers as floats; d: degrees; a, x: of the gamma functions
INPUTS = {
  "t": constant([0.0, 0.1, 0.9, 1.5, 2.5, 4.0, 12.0, 19.0, 25.0, 60.0], np.float32),
  "b": constant([-12.0, -5.5, -2.3, -2.1, -0.7, 0.0, 0.3, 1.1, 1.3, 2.9, 3.1, 7.0], np.float32),
  "deg": constant([0, 1, 2, 3, 5, 8, -1, 4, 2, 1, 0, 3], np.int64),
  "ga": constant([0.3, 0.9, 1.5, 3.0, 3.0, 9.5, 20.0, 40.0], np.float32),
  "gx": constant([0.5, 3.0, 0.2, 2.0, 7.0, 8.0, 25.0, 30.0], np.float32),
  "pole": constant([-3.7, -2.5, -1.3, 0.2, 0.6, 1.0, 4.5, 30.0], np.float32),
  "prob": constant([0.0, 1e-12, 1e-3, 0.1, 0.16, 0.4, 0.5, 0.7, 0.9, 0.999, 1.0, 1.5], np.float32),
  "order": constant([1.5, 2.0, 3.3, 10.0, 1.0, 0.5, 2.0, 3.0], np.float32),
  "shift": constant([0.3, 1.0, 5.0, 0.2, 1.0, 1.0, -2.5, -3.0], np.float32),
}

ROWS = """
# PyTorch has no gradients of them; test_special_functions.py compares with differences
f~+: M.special.airy_ai(t/4-2)   M.special.bessel_j0(b)   M.special.bessel_j1(b)   M.special.bessel_y0(t)   M.special.bessel_y1(t)   M.special.modified_bessel_i0(b)   M.special.modified_bessel_i1(b)   M.special.modified_bessel_k0(t)   M.special.modified_bessel_k1(t)   M.special.scaled_modified_bessel_k0(t)   M.special.scaled_modified_bessel_k1(t)   M.special.spherical_bessel_j0(b)
f~+: M.special.chebyshev_polynomial_t(r.flatten(),deg)   M.special.chebyshev_polynomial_u(b,deg)   M.special.chebyshev_polynomial_v(b,deg)   M.special.chebyshev_polynomial_w(b,deg)   M.special.hermite_polynomial_h(b,deg)   M.special.hermite_polynomial_he(b,deg)   M.special.laguerre_polynomial_l(b,deg)   M.special.legendre_polynomial_p(b,deg)   M.special.chebyshev_polynomial_t(b,3)   M.special.legendre_polynomial_p(y,0)
f~+: M.special.shifted_chebyshev_polynomial_t(p,4)   M.special.shifted_chebyshev_polynomial_u(p,deg[:4])   M.special.shifted_chebyshev_polynomial_v(p,3)   M.special.shifted_chebyshev_polynomial_w(p,2)
f~+: M.special.entr(b)   M.special.ndtri(prob)   M.special.zeta(order,shift)   ga.igamma(gx)   ga.igammac(gx)   M.special.gammainc(gx,ga)   M.special.gammaincc(gx,ga)   M.special.erfcx(e)   M.special.log_ndtr(e)   M.special.i0e(e)   M.special.i1e(e)
f+: M.special.entr(p)   M.special.erfcx(b)   M.special.i0e(b)   M.special.i1e(b)   M.special.i1(b/4)   (b/4).i0()   M.special.log_ndtr(b)   M.special.ndtr(b)   M.special.ndtri(p/4)   M.special.xlog1py(y,p)   M.special.xlog1py(2.0,p)   M.special.xlog1py(y*0,p)   pole.polygamma(2)   pole.polygamma(3)   pole[3:].polygamma(1)   M.special.polygamma(0,pole)   (p+1).mvlgamma(3)   M.special.multigammaln(p+1,2)
fhiu+: M.special.i0(q)   M.special.ndtr(q)   M.special.xlog1py(q,p)   M.special.entr(j)
iu+: M.special.bessel_j0(j)   M.special.i0e(j)   j.igamma(3) => torch.igamma(j.float(),torch.tensor(3.0))
f: M.special.psi(p)   M.special.expit(y)   M.special.gammaln(p)   M.special.digamma(p)   M.special.erf(y)   M.special.erfc(y)   M.special.erfinv(r)   M.special.exp2(y)   M.special.expm1(y)   M.special.log1p(p)   M.special.log_softmax(y,1)   M.special.softmax(y,0)   M.special.logit(p/4)   M.special.logsumexp(y,1)   M.special.round(y,decimals=1)   M.special.sinc(y)   M.special.xlogy(y,p)
M.signal.windows.bartlett(7)   M.signal.windows.blackman(8,sym=False)   M.signal.windows.cosine(6)   M.signal.windows.cosine(6,sym=False)   M.signal.windows.exponential(7,tau=2.0)   M.signal.windows.exponential(7,center=1.0,sym=False)   M.signal.windows.gaussian(9,std=1.5)   M.signal.windows.general_cosine(5,a=[0.4,0.3,0.2])   M.signal.windows.general_hamming(6,alpha=0.6)   M.signal.windows.hamming(5)   M.signal.windows.hann(6,sym=False)   M.signal.windows.kaiser(9,beta=5.0)   M.signal.windows.kaiser(8)   M.signal.windows.nuttall(9)   M.signal.windows.hann(1)   M.signal.windows.hann(0)   M.signal.windows.hann(4,dtype=F64)
"""

MISTAKES = """
pole.polygamma(-1)                        !   polygamma: there is no derivative -1
M.signal.windows.hann(-1)                 !   hann: no window of M=-1
M.signal.windows.gaussian(3, std=0.0)     !   gaussian: no window of M=3
M.signal.windows.hann(3, dtype=I32)       !   hann: a window is of float32 or float64
M.signal.windows.general_cosine(3)        !   see 'a'
M.signal.windows.exponential(3, center=1.0)  !   exponential: no window
y.igamma('a')                             !   igamma: other is 'a'
y.igammac('a')                            !   igammac: other is 'a'
y.mvlgamma('a')                           !   mvlgamma: p is 'a'
M.special.i0(y+1j)                        !   i0: not of complex numbers
"""
