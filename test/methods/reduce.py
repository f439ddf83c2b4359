"""Sums, products, extremes, statistics, and their running forms."""

import numpy as np

ROWS = """
fhiub: x.any()   x.all()   x.any(1)   x.all(0)   x.all(0,keepdim=True)   x.amax(1,keepdims=True)
fhiub: x.sum()   x.sum(1)   x.count_nonzero()   x.count_nonzero(0)   x.cumsum(1)
# PyTorch's gradients of var and std over dim=() are others than those over all axes
f: x.sum(dim=())   x.mean(dim=())   x.var(dim=()) => x.var()   x.std(dim=()) => x.std()   x.norm(dim=())   x.nansum(dim=())   x.nanmean(dim=(),keepdim=True)   x.count_nonzero(dim=())   T.var_mean(x,dim=1,unbiased=False)   T.std_mean(x,dim=(),unbiased=False) => T.std_mean(x,unbiased=False)   T.var_mean(x,dim=(0,2),keepdim=True,unbiased=True)
fhiub: x.amax(dim=())   x.amin(dim=[],keepdim=True)   x.max(1)   x.min(1)   x.max(-1,True)   x.min(dim=0,keepdim=True)   x.amax((0,1))   x.amin(2)   x.max()   x.min()   x.max(x*0) => x.maximum(x*0)   x.min(x*0) => x.minimum(x*0)
fiu: x.prod(1)   x.argmax()   x.argmin()   x.argmax(1)   x.argmin(-1,keepdim=True)   x.cumprod(2)   x.cummax(1)   x.cummin(0)   x.aminmax(dim=1)
fh: x.mean()   x.mean(1)   x.mean((0,1),keepdim=True)   x.softmax(-1)   x.log_softmax(1)   x.var(1)   x.std(1)   x.norm()   x.logsumexp(1)
f: x.sum((0,2))   x.sum(-1,keepdim=True)   x.prod()   x.var()   x.var(1,correction=0)   x.std()   x.std((0,2))   x.logsumexp((0,1))   (x*100).logsumexp(-1,keepdim=True)   x.softmax(0)   (x*1000).softmax(1)   (x*1000).log_softmax(-1)   x.cumsum(-1)   x.softmin(1)   x.softmin(1,dtype=F64)   x.norm(1,1,dtype=F64)
f: T.var_mean(x,1)   T.std_mean(x,(0,1))   T.var_mean(x,1,correction=0)   x.norm(1,1)   x.norm(math.inf)   x.norm(3,2)   y.norm(2,0,keepdim=True)   x.norm(0)   y.var(0,keepdim=True)   odd.sum(1)   odd.mean((0,2))   odd.std(0)   odd.softmax(1)   odd.cumsum(1)
f: s.sum()   s.max()   s.max(0)   s.min(-1)   z.max(1)[0]   z.min(1,True)[1]   s.mean()   s.softmax(0)   s.cumsum(0)   s.argmax()   z.sum()   z.sum(0)   z.prod()   z.prod(1)   z.mean()   z.any()   z.all()   z.sum(1)   z.logsumexp(0)   z.softmax(0)   z.cumsum(0)   x.sum(dim=1)   x.argmax(dim=1)   y.sum(dtype=F64)   i.sum(dtype=F32)
i.sum()   b.sum()   b.sum(0)   u.sum(1)   i.prod(0)   i.max()   i.min()   b.any()   b.all()   b.any(1)   b.all(0,keepdim=True)   i.any()   y.all(1)   i.argmax(1)   i.argmin(0)   e.argmax()   e.argmin()   e.max()   e.min()   u.min()   h.softmax(-1)   h.sum()   h.mean(1)   i.cumsum(0)   b.cumsum(0)   i.cummin(0)   i.count_nonzero(0)
fh: x.nansum()   x.nanmean(1)   x.logcumsumexp(1)   x.diff()
fiub: y.diff(dim=0)
~: e.nansum()   e.nanmean()   edge.nansum(1,True)   edge.nanmean(1)   edge.nanmean(0)   edge.logcumsumexp(0)   edge.logcumsumexp(1)   far.logcumsumexp(0)   far[:7].logcumsumexp(0)   z.nansum(0)   z.nanmean(0)   z.logcumsumexp(0)   s.logcumsumexp(0)   s.nanmean()
i.nansum(0)   i.nansum(dtype=F32)   x.diff(2,1)   x.diff(9)   x.diff(0)   y.diff(prepend=p)   y.diff(1,0,p,p)   y.diff(append=p[:,:1])   i.diff(prepend=j)   b.diff(2)   z.diff(dim=0)   far.logcumsumexp(0)
zeros.cumprod(1)   zeros.cumprod(0)   zeros.prod(1)   zeros.prod()   zeros.cumsum(0)   T.std_mean(y,0,keepdim=True)   y.aminmax()   T.var_mean(y,correction=2)
"""

MISTAKES = """
x.nansum(3)               !   there is no axis 3
i.nanmean()               !   nanmean: the average of int64 is no integer
x.nanmean(3)              !   there is no axis 3
i.logcumsumexp(0)         !   logcumsumexp: of int64
x.logcumsumexp(3)         !   logcumsumexp: there is no axis 3
x.diff(1, 3)              !   diff: there is no axis 3
s.diff()                  !   diff: 1 times, of a tensor with 0 axes
x.diff(-1)                !   diff: -1 times
x.sum(3)                  !   sum: there is no axis 3: x has 3 axes
x.sum((0, 0))             !   an axis appears twice
x.sum(0.5)                !   axis is 0.5, not an axis
x.prod(3)                 !   prod: there is no axis 3
x.max(3)                  !   max: there is no axis 3
z.max()                   !   no max over an axis without elements
x.min(3)                  !   min: there is no axis 3
z.min(0)                  !   no min over an axis without elements
x.amax(3)                 !   there is no axis 3
x.amin(3)                 !   there is no axis 3
x.aminmax(3)              !   there is no axis 3
x.any(3)                  !   any: there is no axis 3
x.all(3)                  !   all: there is no axis 3
x.count_nonzero(3)        !   there is no axis 3
x.argmax(3)               !   argmax: there is no axis 3
x.argmin(3)               !   argmin: there is no axis 3
i.mean()                  !   the average of int64 is no integer
x.mean(3)                 !   mean: there is no axis 3
i.var()                   !   var: of int64
i.std()                   !   of int64
i.var_mean()              !   of int64
i.std_mean()              !   of int64
x.norm(2, 3)              !   there is no axis 3
x.logsumexp(3)            !   logsumexp: there is no axis 3
x.softmax(3)              !   softmax: there is no axis 3
x.log_softmax(3)          !   there is no axis 3
x.softmin(3)              !   there is no axis 3
x.cumsum(3)               !   cumsum: there is no axis 3
x.cumprod(3)              !   cumprod: there is no axis 3
x.cummax(3)               !   cummax: there is no axis 3
x.cummin(3)               !   cummin: there is no axis 3
"""

# edge: with NaN and infinities   far: numbers far apart   zeros: no, one or two in a row
INPUTS = {
  "edge": lambda r: np.array(
    [[1, np.nan, 2, 0], [-np.inf, -np.inf, 3, np.inf], [np.nan, np.nan, np.nan, np.nan]], np.float32
  ),
  "far": lambda r: np.array([-1000, 3, 2, -500, 700, 700, 0, 701, -2], np.float32),
  "zeros": lambda r: np.array([[1, 2, 3, 4], [2, 0, 3, 4], [0, 5, 0, 2], [3, 2, 1, 0]], np.float32),
}
