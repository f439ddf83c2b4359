"""Sums, products, extremes, statistics, and their running forms."""

ROWS = """
# PyTorch's any and all of uint8 are uint8
fhib: x.any()   x.all()   x.any(1)   x.all(0,keepdim=True)
u: x.any() => (x!=0).any()   x.all(0) => (x!=0).all(0)
fhiub: x.sum()   x.sum(1)   x.count_nonzero()   x.count_nonzero(0)   x.cumsum(1)
fhiub: x.max(1) => x.amax(1)   x.min(1) => x.amin(1)   x.amax((0,1))   x.amin(2)   x.max()   x.min()
fiu: x.prod(1)   x.argmax()   x.argmin()   x.argmax(1)   x.argmin(-1,keepdim=True)   x.cumprod(2)   x.cummax(1)   x.cummin(0)   x.aminmax(dim=1)
fh: x.mean()   x.mean(1)   x.mean((0,1),keepdim=True)   x.softmax(-1)   x.log_softmax(1)   x.var(1)   x.std(1)   x.norm()   x.logsumexp(1)
f: x.sum((0,2))   x.sum(-1,keepdim=True)   x.prod()   x.var()   x.var(1,correction=0)   x.std()   x.std((0,2))   x.logsumexp((0,1))   (x*100).logsumexp(-1,keepdim=True)   x.softmax(0)   (x*1000).softmax(1)   (x*1000).log_softmax(-1)   x.cumsum(-1)   x.softmin(1)
f: T.var_mean(x,1)   T.std_mean(x,(0,1))   T.var_mean(x,1,correction=0)   x.norm(1,1)   x.norm(math.inf)   x.norm(3,2)   y.norm(2,0,keepdim=True)   x.norm(0)   y.var(0,keepdim=True)   odd.sum(1)   odd.mean((0,2))   odd.std(0)   odd.softmax(1)   odd.cumsum(1)
f: s.sum()   s.max()   s.mean()   s.softmax(0)   s.cumsum(0)   s.argmax()   z.sum()   z.sum(0)   z.prod()   z.prod(1)   z.mean()   z.any()   z.all()   z.sum(1)   z.logsumexp(0)   z.softmax(0)   z.cumsum(0)   x.sum(dim=1)   x.argmax(dim=1)   y.sum(dtype=F64)   i.sum(dtype=F32)
i.sum()   b.sum()   b.sum(0)   u.sum(1)   i.prod(0)   i.max()   i.min()   b.any()   b.all()   b.any(1)   b.all(0,keepdim=True)   i.any()   y.all(1)   i.argmax(1)   i.argmin(0)   e.argmax()   e.argmin()   e.max()   e.min()   u.min()   h.softmax(-1)   h.sum()   h.mean(1)   i.cumsum(0)   b.cumsum(0)   i.cummin(0)   i.count_nonzero(0)
"""

MISTAKES = """
x.sum(3)                  !   sum: there is no axis 3: x has 3 axes
x.sum((0, 0))             !   an axis appears twice
x.sum(0.5)                !   an axis is an integer
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
