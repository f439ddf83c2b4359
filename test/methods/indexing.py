"""Indexing, gathering, scattering."""

ROWS = """
*: x[0]   x[:,1]   x[...,::2]   y[k]   y[:,k]   y.gather(1,d)   y.index_select(1,k)   y[b]   y.masked_select(b)   put(y, S[1:, 2], p[0, 0])   y.scatter(1,d[:,:1],p[:,:1])   y.take(d)
fiu: y.scatter_add(1,d,p[:,:2])   y.scatter_reduce(1,d,p[:,:2],'amax')   y.scatter_reduce(1,d,p[:,:2],'amin')   y.index_add(0,k,p)
f: x[-1]   x[...,2]   x[1,2,3]   x[0,...,1:]   x[None]   x[:,None,:,None]   x[::2]   x[...,1::2]   x[:,-2:]   x[:,5:]   x[1:1]   y[k,k]   y[k[:,None],k]   x[:,k]   x[:,k,k]   x[0,:,k]   x[...,-1]   odd[::2,1::3,-1]
f: x[k[:2]%2,:,k[:2]]   x[k[:2]%2,1]   x[1,k]   y[d[:,0]%3,d[:,1]]   x[:,b]   x[0,b]   y[[0,2]]   y[[0,-1],1]   x[...,k]   y[-k-1]   y[k][:,None]   x[:,:,[True,False,True,True]]   y[n-1]   y[k.long()%2]   s[None]   s[...]   z[:,1]   y[y>0]   x[:,k[None]]   x[None,:,k]
f: y.gather(0,d%3)   y.take_along_dim(d,1)   y.index_select(0,k)   y.scatter(1,d[:,:1],5.0)   y.scatter(1,d[:,:1],value=5.0)   y.scatter_reduce(1,d,p[:,:2],'sum')   y.scatter_reduce(1,d,p[:,:2],'prod')   y.scatter_reduce(1,d,p[:,:2],'mean')   y.scatter_reduce(1,d,p[:,:2],'amax',include_self=False)   y.scatter_reduce(1,d,p[:,:2],'mean',include_self=False)   y.scatter_reduce(1,d,p[:,:2],'sum',include_self=False)
f: y.index_add(0,k,p,alpha=2)   y.index_copy(0,k[:1],p[:1])   y.index_put((k,),p[0])   y.index_put((k,k),p[0,0],accumulate=True)   i.scatter_add(1,d,j)   i.scatter_reduce(1,d,j,'amin')   i.nonzero()   b.nonzero()   i.nonzero(as_tuple=True)   s.nonzero(as_tuple=True)   s.nonzero()   (s*0).nonzero()   y.embedding(k) => F.embedding(k, y)
f: put(y, 0, 7)   put(y, -1, p[0])   put(y, S[1:3], 7)   put(y, S[1:3], p[1:])   put(y, S[:,1], p[:,0])   put(y, S[...,::2], p[:,:2])   put(y, S[:,1:4:2], 7)   put(y, k, p[0])   put(y, (k,k), 7)   put(y, S[:,k], 7)   put(y, b, 7)   put(y, (None,0), p[0])   put(y, S[1:3,k], 7)   put(y, [0,2], p[:2])   put(y, S[...], v)
# an index without axes stands for an int; a boolean without axes is a new one
f: x[n-2,:,k]   x[k[0]%2,None,:,k]   x[:,k[:2],k[1],None]   x[:,k[1],k]   put(x, S[k[0]%2,:,k], v[:3])   x.at(1) => x[1]   x.at(k[1],-1) => x[...,k[1]]   x[True]   x[:,False]   x[S[True,1,k]]   y[b[0,0]]   put(y, S[True,1:], 7)   put(y, S[b.any(),k], p[0])   z[z[:,0]>0]
put(i, b, j[b])   put(u, 0, 300 // 2)   put(y, 0, i[0])   i.one_hot(4) if False else j.one_hot(9)   k.one_hot()
"""

MISTAKES = """
y.at(9)                   !   index 9 is out of bounds for axis 0
y.at(1, 7)                !   at: there is no axis 7
y[3]                      !   out of bounds
y[0, 0, 0]                !   axes
y[0.5]                    !   ind
y[b[:2]]                  !   mask
y[k + 5]                  !   out of bounds
y.gather(2, d)            !   gather: there is no axis 2
y.gather(1, v)            !   gather
y.gather(1, d * 9)        !   out of bounds
y.take_along_dim(v, 1)    !   take_along_dim
y.take(d + 99)            !   out of bounds
y.index_select(0, d)      !   index_select
y.scatter(1, v, 0.0)      !   scatter
y.scatter(1, d)           !   scatter: src is missing
y.scatter(1, d, p, value=1)   !   src and value=1 are the same argument
y.scatter(1, d, p, reduce='xor')   !   reduce
y.scatter_add(1, v, p)    !   scatter
y.scatter_reduce(1, d, p, 'xor')   !   reduce
y.index_add(0, d, p)      !   index_add
y.index_copy(0, d, p)     !   index_copy
y.index_put((k,), x)      !   what x[i] takes has (3, 4)
y.index_put(5, 1.0)       !   indices is 5, not a sequence of indices
i.masked_fill(b, -math.inf)   !   -inf is no int64
y.masked_select(y)        !   i is float32
y.embedding(v)            !   embedding
y.one_hot()               !   places are integers, not float32
put(y, 0, x)              !   a
"""
