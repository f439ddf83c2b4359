"""In place: what a chain of methods that end in an underscore gives, each bound to the handle before it."""

from methods.random import INPUTS  # noqa: F401  the distributions

ROWS = """
*: y.clone().copy_(p)   y.clone().copy_(v[0])   y.clone().fill_(3)   y.clone().zero_()   i.clone().copy_(y)   y.clone().masked_scatter_(b,p)   y.masked_scatter(b[0],p)   y[0].masked_scatter(b,p)   z.masked_scatter(z>0,v[:0])   y.clone().masked_scatter_(y==99,v[:0])   y.real   y.names == (None,None) => True
f: y.clone().add_(p).sub_(v,alpha=2).mul_(p).div_(q).pow_(2).neg_().abs_().sqrt_()   y.clone().clamp_(-1,1).clip_(-0.5).lerp_(p,0.3).square_().round_()   q.clone().lgamma_().digamma_().rad2deg_().deg2rad_()   y.clone().floor_().ceil_().sign_()   y.clone().masked_fill_(b,7).index_add_(0,k,p).index_copy_(0,k[:1],q[:1]).index_fill_(1,k,0.5)   (p/9).clone().logit_()   y.clone().index_put_((k,),p[0])
f: y.clone().squeeze_(0).unsqueeze_(0).transpose_(0,2).swapaxes_(0,1).swapdims_(1,2)   y.clone().t_()   y[:3,:3].clone().addmm_(p,y.T)   v.clone()[:3].addmv_(y,v)   y[:3,:3].clone().addr_(v[:3],v[1:])   x[0,:,:3].clone().addbmm_(x,x.mT)   x[:,:,:3].clone().baddbmm_(x,x.mT)   y.detach().clone().requires_grad_().detach_().requires_grad
# PyTorch takes no gradient of some of these in place
f~: p.clone().log_().exp_().log2_().exp2_().log1p_().expm1_().log10_().rsqrt_().reciprocal_()   r.clone().asin_().sin_().acos_().cos_().atan_().tan_().asinh_().sinh_().tanh_().atanh_()   p.clone().cosh_().acosh_().erf_().erfinv_().erfc_().sinc_()   y.clone().relu_().sigmoid_().frac_().trunc_()
f~: y.clone().atan2_(p).hypot_(q).copysign_(y).fmod_(p).remainder_(q)   y.clone().floor_divide_(p)   y.clone().cumsum_(0).cumprod_(1).tril_().triu_(-1)   y.clone().scatter_(1,d[:,:1],5.0).scatter_add_(1,d,p).scatter_reduce_(1,d,p,'amax')
~: y.clone().lt_(p)   y.clone().le_(p).ge_(b)   y.clone().gt_(0).eq_(b).ne_(p)   y.clone().logical_and_(b).logical_or_(p>1).logical_xor_(b).logical_not_()   e.clone().nan_to_num_(1,2,3).heaviside_(s)   y.clone().nextafter_(p)
f: y.clone().absolute_().multiply_(p).subtract_(v).divide_(q).true_divide_(2).negative_()   y.clone().fix_()   y.clone().conj_physical_()   y.clone().sgn_()
f~: r.clone().arcsin_()   r.clone().arccos_()   y.clone().arctan_()   y.clone().arcsinh_()   (p+1).clone().arccosh_()   r.clone().arctanh_()   y.clone().arctan2_(p)   y.clone().i0_()   p.clone().igamma_(q)   p.clone().igammac_(q)   p.clone().polygamma_(1)   (p+1).clone().mvlgamma_(1)
~: y.clone().less_(p)   y.clone().less_equal_(p)   y.clone().greater_(p)   y.clone().greater_equal_(p)   y.clone().not_equal_(p)
i.clone().bitwise_left_shift_(1).bitwise_right_shift_(2)   i.clone().lshift_(1).rshift_(2) => (i<<1)>>2
i.clone().bitwise_and_(6).bitwise_or_(j).bitwise_xor_(3).bitwise_not_()   i.clone().add_(u).mul_(j)   b.clone().logical_not_()
f: y.clone().einsum_("i j += i k, k j", y@y.T, p) => y+y@y.T@p   y[:,:3].clone().einsum_("i i += i", v[:3]) => y[:,:3]+v[:3].diag()
T.zeros(3000).uniform_(-2,3) => flat(-2,3)   T.zeros(3000).normal_(2,3) => bell(2,3)   T.zeros(3000).exponential_(2.0) => falling(2.0)   T.zeros(4000,dtype=I32).bernoulli_(0.3) => among(0.7,0.3)
"""

MISTAKES = """
i.exp_()                  !   a.exp_(...): the result is float32 and cannot be kept in a, which is int64
b.add_(1)                 !   a.add_(...): the result is int64 and cannot be kept in a, which is bool
v.add_(y)                 !   a.add_(...): the result has shape (3, 4) and does not fit into a
v.copy_(y)                !   copy_
v.fill_(y)                !   copy_
y.requires_grad_().zero_()   !   a.fill_(b): a is a leaf that requires a gradient; do it under no_grad()
y.requires_grad_().unsqueeze_(0)   !   a.unsqueeze_(...): a is a leaf
y.clone().einsum_("i i += i", v[:3])   !   axis i has size 3 and size 4
i.normal_()               !   randn: random numbers in [0, 1) are no int64
v.masked_scatter(y, v)    !   masked_scatter: the mask is boolean
y.masked_scatter(b, i)    !   masked_scatter: x and source are of different types
y.masked_scatter(y < 99, v)   !   out of bounds
y.imag                    !   imag: float32 is not complex
v.atan2_(y)               !   a.atan2_(...): the result has shape (3, 4) and does not fit into a
v.clamp_(y)               !   a.clamp_(...): the result has shape (3, 4) and does not fit into a
v.clip_(y)                !   a.clip_(...): the result has shape (3, 4) and does not fit into a
v.copysign_(y)            !   a.copysign_(...): the result has shape (3, 4) and does not fit into a
v.eq_(y)                  !   a.eq_(...): the result has shape (3, 4) and does not fit into a
v.floor_divide_(y)        !   a.floor_divide_(...): the result has shape (3, 4) and does not fit into a
v.ge_(y)                  !   a.ge_(...): the result has shape (3, 4) and does not fit into a
v.gt_(y)                  !   a.gt_(...): the result has shape (3, 4) and does not fit into a
v.heaviside_(y)           !   a.heaviside_(...): the result has shape (3, 4) and does not fit into a
v.hypot_(y)               !   a.hypot_(...): the result has shape (3, 4) and does not fit into a
v.le_(y)                  !   a.le_(...): the result has shape (3, 4) and does not fit into a
v.logical_and_(y)         !   a.logical_and_(...): the result has shape (3, 4) and does not fit into a
v.logical_or_(y)          !   a.logical_or_(...): the result has shape (3, 4) and does not fit into a
v.logical_xor_(y)         !   a.logical_xor_(...): the result has shape (3, 4) and does not fit into a
v.lt_(y)                  !   a.lt_(...): the result has shape (3, 4) and does not fit into a
v.mul_(y)                 !   a.mul_(...): the result has shape (3, 4) and does not fit into a
v.ne_(y)                  !   a.ne_(...): the result has shape (3, 4) and does not fit into a
v.nextafter_(y)           !   a.nextafter_(...): the result has shape (3, 4) and does not fit into a
v.pow_(y)                 !   a.pow_(...): the result has shape (3, 4) and does not fit into a
v.remainder_(y)           !   a.remainder_(...): the result has shape (3, 4) and does not fit into a
v.sub_(y)                 !   a.sub_(...): the result has shape (3, 4) and does not fit into a
k.bitwise_and_(i)         !   a & b: the shapes (3,) and (3, 4) do not repeat to a common one
k.bitwise_or_(i)          !   a | b: the shapes (3,) and (3, 4) do not repeat to a common one
k.bitwise_xor_(i)         !   a ^ b: the shapes (3,) and (3, 4) do not repeat to a common one
i.clamp_(0.5)             !   a.clamp_(...): the result is float32 and cannot be kept in a, which is int64
i.cumsum_(0,F32)          !   a.cumsum_(...): the result is float32 and cannot be kept in a, which is int64
i.cumprod_(0,F32)         !   a.cumprod_(...): the result is float32 and cannot be kept in a, which is int64
i.div_(2)                 !   a.div_(...): the result is float32 and cannot be kept in a, which is int64
i.fmod_(0.5)              !   a.fmod_(...): the result is float32 and cannot be kept in a, which is int64
i.lerp_(i,0.5)            !   a.lerp_(...): the result is float32 and cannot be kept in a, which is int64
i.mul_(0.5)               !   a.mul_(...): the result is float32 and cannot be kept in a, which is int64
i.pow_(0.5)               !   a.pow_(...): the result is float32 and cannot be kept in a, which is int64
i.sub_(i,alpha=0.5)       !   a.sub_(...): the result is float32 and cannot be kept in a, which is int64
i.nextafter_(i)           !   a.nextafter_(...): the result is float32 and cannot be kept in a, which is int64
v.lerp_(y, 0.5)           !   a.lerp_(...): the result has shape (3, 4)
v.masked_fill_(b, 0)      !   a.masked_fill_(...): the result has shape (3, 4)
y.masked_fill_(y, 0)      !   masked_fill: the mask is float32, not bool
y.masked_scatter_(y, p)   !   masked_scatter: the mask is boolean
i.bitwise_and_(y)         !   a & b: bits of float numbers
y.addbmm_(x, x.mT)        !   addbmm: x does not repeat to the shape of the product, (3, 3)
y.addmm_(y, y.T)          !   addmm: x does not repeat to the shape of the product, (3, 3)
y.addmv_(y, v)            !   addmv: x does not repeat to the shape of the product, (3,)
y.addr_(v, v)             !   addr: x does not repeat to the shape of the product, (4, 4)
x.baddbmm_(x, x.mT)       !   baddbmm: x does not repeat to the shape of the product, (2, 3, 3)
y.bernoulli_(v[:3])       !   the shapes (3, 4) and (3,) do not repeat to a common one
i.uniform_()              !   random numbers in [0, 1) are no int64
i.exponential_()          !   random numbers in [0, 1) are no int64
y.exponential_(-1.0)      !   exponential: rate is positive, not -1.0
y.cumsum_(2)              !   cumsum: there is no axis 2
y.cumprod_(2)             !   cumprod: there is no axis 2
y.div_(2, rounding_mode='up')   !   rounding_mode is None, "floor" or "trunc", not 'up'
y.index_add_(0, y, y)     !   index_add: the index is float32, and holds no integers
y.index_add_(0, k, v)     !   index_add: source does not have x's shape with 3 along axis 0
y.index_copy_(0, k[:2], y)   !   index_copy: source does not have x's shape with 2 along axis 0
y.index_put_((k,), v[:3])   !   v has shape (3,), what x[i] takes has (3, 4)
y.nan_to_num_('a')        !   nan_to_num_: nan is 'a', not a number
y.round_('a')             !   round_: decimals is 'a', not an integer
y.scatter_(1, y, y)       !   scatter: the index is no integer tensor
y.scatter_add_(1, d, v)   !   scatter_add: src does not cover the index
y.scatter_reduce_(1, d, y, 'max')   !   not 'max'
v.tril_()                 !   tril: x has fewer than two axes
v.triu_()                 !   triu: x has fewer than two axes
y.squeeze_(2)             !   squeeze: there is no axis 2
y.swapaxes_(0, 2)         !   there is no axis 2
y.transpose_(0, 2)        !   there is no axis 2
"""
