"""PyTorch's other names of methods, and its methods that are a line of others."""

import numpy as np

from methods import constant

ROWS = """
f: y.absolute()   r.arccos()   (p+1).arccosh()   r.arcsin()   y.arcsinh()   y.arctan()   y.arctan2(p)   r.arctanh()   y.divide(q)   y.true_divide(2)   y.fix()   v.ger(y[:,0])   y.negative()   y.multiply(p)   y.subtract(p,alpha=2)
f: x.moveaxis(0,-1)   x.swapdims(0,2)   x.ravel()   y.reshape_as(x[0])   x[0].view_as(y)   y.clamp_min(0.1)   y.clamp_max(0.1)   y.addcmul(p,q,value=0.5)   y.addcdiv(p,q)   y.addcdiv(v,q,value=-2)   p.xlogy(q)   p.xlogy(2.5)   (p/9).logit()   y.logit(0.1)   y.index_fill(1,k,2.5)   y.index_fill(-2,k,s)
y.isin(v) => torch.isin(y,v)   i.isin(j) => torch.isin(i,j)   i.isin(z.flatten()) => torch.zeros_like(i)>0   y.clone().fill_diagonal_(3)
~: y.greater(p)   y.greater_equal(p)   y.less(p)   y.less_equal(p)   y.not_equal(p)   x.ndimension()   x.nelement()   x.stride()   x.stride(-2)   x.is_contiguous()   zero.xlogy(odd1)   i.xlogy(2)   i.divide(j,rounding_mode='floor')
y.new_zeros(2,3)   i.new_ones((2,))   h.new_full((2,3),1.5)   y.new_tensor([1,2])   y.new_empty(2,0)   y.new_zeros((2,),dtype=I32)
y.clone().addcmul_(p,q).addcdiv_(p,q,value=2).clamp_min_(0).clamp_max_(1).xlogy_(p)
"""

MISTAKES = """
y.stride(2)               !   stride: there is no axis 2
y.view_as(v)              !   x has 12 elements
x.fill_diagonal_(0)       !   fill_diagonal_: x has 3 axes
y.index_fill(2, k, 0)     !   index_fill: there is no axis 2
y.isin(3)                 !   isin: test_elements is 3, not a tensor
y.logit('a')              !   logit: eps is 'a', not a number
y.addcmul(p, 'a')         !   tensor2 is 'a', not a tensor
"""

# zero: where x is 0, beside all kinds of numbers
INPUTS = {
  "zero": constant([0, 0, 0, 0, 0, 1, 1], np.float32),
  "odd1": constant([0, -1, np.inf, np.nan, 2, 0, -1], np.float32),
}
