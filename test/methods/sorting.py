"""Sorting, ranks, quantiles, places in what is sorted, and how often values occur."""

import numpy as np

ROWS = """
*: y.sort(stable=True)
f: m.sort(1)   m.sort(0,descending=True)   m.msort()   m.argsort(dim=0)   m.mT.sort(1)   m.topk(2)   m.topk(2,0,False)   m.topk(0)   m.kthvalue(2)   m.kthvalue(1,0,True)   m.median()   m.nanmedian()   m.median(1)   m.median(0,True)   m.nanmedian(1)   m.median(1)[1]
m.quantile(0.3)   m.quantile(0.3,1)   m.quantile(0.0)   m.quantile(1.0,1)   m.quantile(part,0)   m.quantile(part,1,True)   m.quantile(part,keepdim=True)   m.nanquantile(0.5,0)
m.quantile(0.4,1,interpolation='lower')   m.quantile(0.4,1,interpolation='higher')   m.quantile(0.4,1,interpolation='nearest')   m.nanquantile(0.4,1,interpolation='midpoint')
# of NaN and of equal ones the gradients are shared in other ways
~: edge.sort(stable=True)   edge.sort(descending=True,stable=True)   edge.topk(3)[0]   edge.kthvalue(4)[0]   edge.median()   edge.nanmedian()   edge.median(1)[0]   edge.nanmedian(dim=1,keepdim=True)[0]   (m*0/(m!=m[0])).median(1)   edge.quantile(0.5,1)
~: edge[::2].nanquantile(part,1,True)   edge[::2].nanquantile(part)   far.sort(stable=True)   far.quantile(part)   far.mode()[0]   z.reshape(-1).median()   s.sort()   s.topk(1)   s.kthvalue(1)   s.median()   s.mode()   s.quantile(0.5)   z.sort()   z.sort(0)
~: far.histc(7,-20,20)   m.histc(4)   m.histc(4,-1,1)   m.histc(3,2,2)   z.histc(3)   edge.unique()   z.unique()
i.sort(dim=0,stable=True)   b.sort(descending=True,stable=True)   byte.sort(stable=True)   (far>0).sort(stable=True)   byte.topk(7)[0]   i.median()   i.median(0)[0]   i.mode()   i.mode(0,True)   b.mode() => b.int().mode()[0].bool(), b.int().mode()[1]
byte.bincount()   byte.bincount(minlength=12)   byte.bincount(byte.double()*0.5)   byte[:0].bincount(minlength=3)   byte[:0].bincount()
byte.unique()   b.unique()   i.unique(return_inverse=True)   i.unique(return_counts=True)   i.unique(dim=1)   i.unique(dim=1,return_inverse=True,return_counts=True)
~: o.searchsorted(o,right=True) => T.searchsorted(o,o,right=True)   o[0].searchsorted(m) => T.searchsorted(o[0],m)   o[0].searchsorted(s,side='right') => T.searchsorted(o[0],s,side='right')   o[None].searchsorted(m[None]) => T.searchsorted(o[None],m[None])   o[0,:3].searchsorted(o) => T.searchsorted(o[0,:3],o)   o[:,:0].searchsorted(m) => T.searchsorted(o[:,:0],m)
~: m.bucketize(o[0]) => T.bucketize(m,o[0])   m.bucketize(o[1],True,True) => T.bucketize(m,o[1],out_int32=True,right=True)   edge.bucketize(o[0]) => T.bucketize(edge,o[0])   z.bucketize(o[0]) => T.bucketize(z,o[0])
"""

MISTAKES = """
y.topk(2.0)               !   k is 2.0, not an integer
m.sort(2)                 !   sort: there is no axis 2
m.argsort(2)              !   there is no axis 2
s.msort().sort(1)         !   sort: there is no axis 1
m.topk(6)                 !   topk: 6 of the 5 elements along axis 1
m.topk(-1)                !   topk: -1 of the 5
m.kthvalue(0)             !   kthvalue: number 0 of the 5 elements along axis 1
m.median(2)               !   median: there is no axis 2
z.median(0)               !   no median over an axis without elements
z.nanmedian(0)            !   no nanmedian over an axis without elements
z.mode(0)                 !   no mode over an axis without elements
z.quantile(0.5)           !   no quantile over an axis without elements
m.quantile(1.5)           !   quantile: q lies in [0, 1], and is 1.5
m.quantile(0.5, interpolation='even')   !   interpolation is linear, lower, higher, nearest, midpoint, not 'even'
m.quantile([[0.5]])       !   q is [[0.5]], not a tensor or a number
i.nanquantile(0.5)        !   nanquantile: of int64
m.searchsorted(m[0])      !   searchsorted: what is sorted is a vector
m.searchsorted(m, side='middle')   !   searchsorted: side is
m.bucketize(m)            !   bucketize: the boundaries are no vector
i.histc(3)                !   histc: of int64
m.histc(0)                !   histc: 0 bins
i.bincount()              !   bincount: of a vector of integers
i[0].bincount()           !   bincount: the numbers are counted from 0 on
byte.bincount(m)          !   bincount: there is not a weight for each element
z.unique(dim=1)           !   unique: slices along axis 1 have no elements
"""

# m: f32[3, 5], all different   edge: f32[3, 5], with ties, NaN and infinities   far: f32[300], ties   byte: u8[40]
# o: f32[3, 4], rows sorted   part: what is asked of quantile
INPUTS = {
  "m": lambda r: ((r.permutation(15) - 7) / 3).reshape(3, 5).astype(np.float32),
  "edge": lambda r: np.array(
    [[1, np.nan, -0.0, 0, 1], [np.inf, -np.inf, np.nan, 2, np.nan], [-1, 2, 2, -1, 2]], np.float32
  ),
  "far": lambda r: r.integers(-40, 40, 300).astype(np.float32),
  "byte": lambda r: r.integers(0, 9, 40).astype(np.uint8),
  "o": lambda r: np.sort(r.integers(-4, 5, (3, 4)) / 2).astype(np.float32),
  "part": lambda r: np.array([0, 0.3, 1], np.float32),
}

FIXED = ("part",)
