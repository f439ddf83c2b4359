"""In place: what a chain of methods that end in an underscore gives, each bound to the handle before it."""

from methods.random import INPUTS  # noqa: F401  the distributions

ROWS = """
*: y.clone().copy_(p)   y.clone().copy_(v[0])   y.clone().fill_(3)   y.clone().zero_()   i.clone().copy_(y)   y.clone().masked_scatter_(b,p)   y.masked_scatter(b[0],p)   y[0].masked_scatter(b,p)   z.masked_scatter(z>0,v[:0])   y.clone().masked_scatter_(y==99,v[:0])   y.real   y.names == (None,None) => True
f: y.clone().add_(p).sub_(v,alpha=2).mul_(p).div_(q).pow_(2).neg_().abs_().sqrt_()   y.clone().clamp_(-1,1).clip_(-0.5).lerp_(p,0.3).square_().round_()   q.clone().lgamma_().digamma_().rad2deg_().deg2rad_()   y.clone().floor_().ceil_().sign_()   y.clone().masked_fill_(b,7).index_add_(0,k,p).index_copy_(0,k[:1],q[:1])   y.clone().index_put_((k,),p[0])
f: y.clone().squeeze_(0).unsqueeze_(0).transpose_(0,2).swapaxes_(0,1)   y[:3,:3].clone().addmm_(p,y.T)   v.clone()[:3].addmv_(y,v)   y[:3,:3].clone().addr_(v[:3],v[1:])   x[0,:,:3].clone().addbmm_(x,x.mT)   x[:,:,:3].clone().baddbmm_(x,x.mT)   y.detach().clone().requires_grad_().detach_().requires_grad
# PyTorch takes no gradient of some of these in place
f~: p.clone().log_().exp_().log2_().exp2_().log1p_().expm1_().log10_().rsqrt_().reciprocal_()   r.clone().asin_().sin_().acos_().cos_().atan_().tan_().asinh_().sinh_().tanh_().atanh_()   p.clone().cosh_().acosh_().erf_().erfinv_().erfc_().sinc_()   y.clone().relu_().sigmoid_().frac_().trunc_()
f~: y.clone().atan2_(p).hypot_(q).copysign_(y).fmod_(p).remainder_(q)   y.clone().floor_divide_(p)   y.clone().cumsum_(0).cumprod_(1).tril_().triu_(-1)   y.clone().scatter_(1,d[:,:1],5.0).scatter_add_(1,d,p).scatter_reduce_(1,d,p,'amax')
~: y.clone().lt_(p)   y.clone().le_(p).ge_(b)   y.clone().gt_(0).eq_(b).ne_(p)   y.clone().logical_and_(b).logical_or_(p>1).logical_xor_(b).logical_not_()   e.clone().nan_to_num_(1,2,3).heaviside_(s)   y.clone().nextafter_(p)
i.clone().bitwise_and_(6).bitwise_or_(j).bitwise_xor_(3).bitwise_not_()   i.clone().add_(u).mul_(j)   b.clone().logical_not_()
T.zeros(3000).uniform_(-2,3) => flat(-2,3)   T.zeros(3000).normal_(2,3) => bell(2,3)   T.zeros(3000).exponential_(2.0) => falling(2.0)   T.zeros(4000,dtype=I32).bernoulli_(0.3) => among(0.7,0.3)
"""

MISTAKES = """
i.exp_()                  !   a.exp_(...): the result is float32 and cannot be kept in a, which is int64
b.add_(1)                 !   a.add_(...): the result is int64 and cannot be kept in a, which is bool
v.add_(y)                 !   a.add_(...): the result has shape (3, 4) and does not fit into a
v.copy_(y)                !   expand
v.fill_(y)                !   expand
y.requires_grad_().zero_()   !   a.fill_(b): a is a leaf that requires a gradient; do it under no_grad()
y.requires_grad_().unsqueeze_(0)   !   a.unsqueeze_(...): a is a leaf
i.normal_()               !   randn: random numbers in [0, 1) are no int64
v.masked_scatter(y, v)    !   masked_scatter: the mask is boolean
y.masked_scatter(b, i)    !   masked_scatter: x and source are of different types
y.masked_scatter(y < 99, v)   !   out of bounds
y.imag                    !   imag: float32 is not complex
"""
