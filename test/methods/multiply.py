"""Products of matrices and vectors; attention."""

from methods import normal

INPUTS = {
  "Q": normal(2, 3, 5, 8), "K": normal(2, 3, 7, 8), "V": normal(2, 3, 7, 8), "M": normal(5, 7), "B": lambda r: r.random((5, 7)) < 0.6,
  "Q4": normal(2, 4, 5, 8), "K2": normal(2, 2, 5, 8), "V2": normal(2, 2, 5, 8),
}  # fmt: skip

ROWS = """
fhiu: y@v   v@v   y@y.T   x@y.T   v@y.T   x@x.mT   x[:,None]@x.mT   y.mm(y.T)   x.bmm(x.mT)   y.mv(v)   v.outer(v)   v.dot(v)   v.inner(v)
f: z@z.T   z.T@z   y.inner(y)   T.matmul(y,v)   y.matmul(y.T)   y.addmm(y@y.T,p,beta=0.5,alpha=2)   y.addmm(y@y.T,p)   y.linear(p)   y.linear(p,v[:3])   odd@odd[:,:3].mT   i@i.T   h@h.T
f: v[:3].addmv(y,v)   v[:3].addmv(y,v,beta=0.5,alpha=2)   y.addr(v[:3],v)   y[:3,:3].addbmm(x[:,:,:3],x[:,:,:3].mT)   x[:,:,:3].baddbmm(x,x.mT,beta=0.5,alpha=2)   p.bilinear(q,x.permute(2,1,0)[:,:,:1].expand(4,3,4).permute(1,0,2))   y[:,:3].cross(p[:,:3])   y[:,:3].cross(p[:,:3],dim=1)   v.kron(y)   y.kron(p)   v.vdot(v)
f: T.einsum('ij,kj->ik',y,p)   T.einsum('aij,ajk->aik',x,x.mT)   T.einsum('ij->',y)   T.einsum('...i,i',x,v)   T.einsum('ii->i',y[:,:3])   y.tensordot(p,2)   x.tensordot(y,([1,2],[0,1]))   T.chain_matmul(y,y.T,y) => y@y.T@y   T.multi_dot([y,y.T,y]) => y@y.T@y
f: Q.scaled_dot_product_attention(K,V)   Q.scaled_dot_product_attention(K,V,is_causal=True)   Q.scaled_dot_product_attention(K,V,attn_mask=M)   Q4.scaled_dot_product_attention(K2,V2,enable_gqa=True,scale=0.3)
# a row without any true is NaN in PyTorch's gradient
f: Q.scaled_dot_product_attention(K,V,attn_mask=B|(M>M.min()-1)[:1])
fi: y.kron(y)   y.kron(v)   x.tensordot(x,3)   x.tensordot(y,([1,2],[0,1]))   (y[:,:3]).cross(y[:,1:])   y.cross(y*2,dim=0)   v.vdot(v)   y.inner(x)
fi: T.einsum("ij,kj->ik",y,y)   T.einsum("bij,ij->b",x,y)   T.einsum("...ij->...ji",x)   T.einsum("ij,j,i",y,v,v[:3])   T.einsum("ii->i",y[:,:3])   T.chain_matmul(y,y.T,y)
f: T.multi_dot([y,y.T,y,v]) => np.linalg.multi_dot([y,y.T,y,v])   T.multi_dot([v,y.T,y]) => np.linalg.multi_dot([v,y.T,y])   T.multi_dot([v,y.T,y,v]) => np.linalg.multi_dot([v,y.T,y,v])   v[:3].addmv(y,v,beta=2)   y.addr(v[:3],v,alpha=3)   x.baddbmm(x@x.mT,x,beta=0.5)   y.addbmm(x@x.mT,x,alpha=2)   y.addmm(y@y.T,p,beta=0)
f: y.bilinear(p,x.flatten()[:16].reshape(1,4,4))   y.bilinear(p,x.flatten()[:16].reshape(1,4,4),v[:1])
~: y.numpy()@y.T => y@y.T   v.numpy()@y.T => v@y.T
T.einsum("ij->i",i,reduce="any") => i.any(1)   T.einsum("ij->j",i,reduce="all") => i.all(0)   T.einsum("ij->i",b,reduce="any") => b.any(1)
imatmul(y+0, p.T@p) => y @ (p.T@p)
"""

MISTAKES = """
y.bilinear(y, y)          !   names 3 axes of an operand that has 2
y.bilinear(p, T.ones(2, 3, 4))   !   axis n has size 3 and size 4
y.addbmm(y, y)            !   addbmm: a has 2 axes, not 3
y.addr(y, y)              !   a has 2 axes, not 1
x.baddbmm(y, y)           !   a has 2 axes, not 3
y.vdot(y)                 !   vdot: a has 2 axes, not 1
y @ y                     !   a @ b: the last axis of a is 4
y.matmul(y)               !   a @ b: the last axis of a is 4
y.mm(v)                   !   mm
y.bmm(y)                  !   bmm
y.mv(y)                   !   mv
y.outer(x)                !   outer
y.dot(y)                  !   the last axis of a is 4
y.inner(k)                !   which meet, do not have the same sizes
T.einsum("ij,jk", y, y)   !   axis j has size 3 and size 4
y.cross(y, 1)             !   cross: axis 1 does not have size 3
y.tensordot(y, 3)         !   tensordot: a and b do not both have 3 axes
T.multi_dot([y, y])       !   multi_dot: matrices beside each other
v.addmv(y, v)             !   addmv: x does not repeat
y.linear(y.T)             !   linear: the last axis of x is 4, and the weight takes 3
y.addmm(y, y)             !   a @ b
Q.scaled_dot_product_attention(y, V)   !   key
y.kron(3)                 !   kron: other is 3, not a tensor
T.chain_matmul(y, y)      !   multi_dot: matrices beside each other do not fit
T.chain_matmul([y, y])    !   chain_matmul: matrices is [f32[3,4], f32[3,4]], not a tensor
T.chain_matmul(v)         !   chain_matmul: matrix has 1 axes, not 2
"""
