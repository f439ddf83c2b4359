"""Complex numbers: of complex inputs, everything that takes them."""

INPUTS = {
  "Z": lambda r: (r.standard_normal((3, 4)) + 1j * r.standard_normal((3, 4))).astype("complex64"),
  "W": lambda r: (r.standard_normal(4) + 1j * r.standard_normal(4)).astype("complex64"),
}

ROWS = """
fc: T.complex(y.real,p.real)   T.polar(p.abs(),y.real)   x[...,:2].real.contiguous().view_as_complex() => T.view_as_complex(x[...,:2].real.contiguous())   y.angle()   y.sgn()   y.conj()   y.conj_physical()   y.resolve_conj()   y.mH   y.H   y.adjoint()   y.is_complex()   y.isreal()   y.cfloat()   y.cdouble()   y.abs()   y.real   v.vdot(v)
c: y.imag   T.view_as_real(y)   y.view_as_real() => T.view_as_real(y)   y.real*y.imag   T.complex(y.real,y.imag)   y.isnan()   y.isinf()   y.isfinite()   y.is_floating_point()   abs(y)   y.element_size()   y.nbytes   y.dtype.itemsize   y.tolist()   y[0,0].item()   complex(y[0,0])   [t for t in v] => list(v)   bool(y[0,0])   len(y)
c: y+v   y-p   y*p   y/p   y**p   y**2   y**3   y**-2   y**0.5   y**2.5   y**0   2**y   y+1   1-y   y*2j   2j*y   (1+2j)/y   y/(1+2j)   y*i   i/y   y/j   y==y   y!=y   y!=p   y!=y.conj()   y==1   -y   +y   y.neg()   y.add(p,alpha=2)   y.sub(p,alpha=2)   y.mul(v)   y.div(p)   y.pow(2)   y.eq(p)   y.ne(p)   y.square()   y.reciprocal()   y.rsqrt()   y.lerp(p,0.25)
c: y.exp()   y.exp2()   y.expm1()   y.log()   y.log2()   y.log10()   y.log1p()   y.sqrt()   y.sigmoid()   y.sin()   y.cos()   y.tan()   y.sinh()   y.cosh()   y.tanh()   y.asin()   y.acos()   y.atan()   y.asinh()   y.acosh()   y.atanh()   y.silu() => y/(1+(-y).exp())   y.swish() => y/(1+(-y).exp())   y.sinc()   (y*0).sinc()
c: y.logical_and(p)   y.logical_or(p)   y.logical_xor(p)   y.logical_not()   y.isclose(y)   y.isclose(p,rtol=1,atol=1)   y.allclose(y)   y.equal(p)   b.where(y,p) => torch.where(b,y,p)   b.where(y,1.5) => torch.where(b,y,torch.tensor(1.5))   y.masked_fill(b,2)   y.masked_fill(b,2+1j)
c: x.reshape(4,6)   x.view(6,4)   x.flatten(1)   x.unflatten(2,(2,2))   x[:1].squeeze(0)   x.unsqueeze(1)   v.expand(3,4)   v.broadcast_to(3,4)   v.expand_as(y)   x.permute(2,0,1)   x.transpose(0,2)   x.swapaxes(0,1)   x.movedim(0,2)   y.T   x.mT   x.flip(0) => torch.flip(x,(0,))   y.roll(1,1)   y.repeat(2,1)   y.tile(2)   y.repeat_interleave(2,1)   y.rot90()   y.rearrange("a b -> b a") => y.T
c: y.narrow(1,1,2)   y.select(0,1)   y.split(2)   y.chunk(2,1)   y.unbind(1)   y.unfold(1,2,1)   y.tril()   y.triu(1)   y.diag()   y.diagonal(1)   v.diag_embed()   y.trace()   y.pad((1,2),value=1.5)   y.pad((1,2))   y.pad((1,1),mode='reflect')   y.pad((0,-1))   T.cat([y,p])   T.cat([y,i.real])   T.stack([y,p],1)   T.hstack([y,p])   T.vstack([y,p])   T.concat([y,p],1)   y.cat(p,dim=1) => T.cat([y,p],1)   y.pad_to(4,5) => F.pad(y,(0,1,0,1))   y.shrink_to(2,2) => y[:2,:2]   y.shrink(((1,3),None)) => y[1:3]
c: y[1]   y[:,1:3]   y[k]   y[b]   y[k,1]   y[...,None]   y.gather(1,d)   y.take_along_dim(d,1)   y.take(k)   y.index_select(1,k)   y.masked_select(b)   put(y,0,p[0])   put(y,(k,),1+2j)   put(y,b,0.5)   y.index_add(0,k,p)   y.index_copy(0,k[:1],p[:1])   y.index_put((k[:1],),p[:1])   y.scatter(1,d[:,:1],p[:,:1])   y.masked_scatter(b,p)   y.at(k) => y[k]   y.nonzero()   y.embedding(k) => y[k]   y.clone()   y.contiguous()   y.detach()
c: y.float()   y.double()   y.long()
c: x.sum()   x.sum(1)   x.sum(dim=(0,2),keepdim=True)   x.mean()   x.mean(1)   y.prod()   x.prod(1)   x.prod(2,keepdim=True)   x.cumsum(1)   y.cumprod(0)   y.cumprod(1)   y.var()   y.var(1)   y.var(1,correction=0)   y.std()   y.std(0)   y.norm()   y.norm(1)   y.norm(2,1)   y.l1_loss(p)   y.l1_loss(p,reduction='none')   y.any()   y.all(1)   y.count_nonzero()   y.diff()   y.diff(prepend=y[:,:1])   z.sum()   z.prod(1)
c: y@v   v@v   y@y.T   x@x.mT   x[:,None]@x.mT   y.mm(p.T)   x.bmm(x.mT)   y.mv(v)   v.dot(v)   v.vdot(v)   v.inner(v)   v.outer(v)   v.kron(y)   y.tensordot(p,2)   x.tensordot(y,([1,2],[0,1]))   y[:,:3].cross(p[:,:3],dim=1)   T.einsum('ij,kj->ik',y,p)   T.einsum('ij,j,i',y,v,v[:3])   T.einsum('ii->i',y[:,:3])   T.chain_matmul(y,y.T,y)   y.linear(p)   y.linear(p,v[:3])   y.matmul(v)   y@v.real.to(v.dtype)   y.std_mean()   y.var_mean(1)
c: v[:3].addmv(y,v,beta=0.5,alpha=2)   y.addr(v[:3],v)   y.addmm(y@y.T,p)   y[:3,:3].addbmm(x[:,:,:3],x[:,:,:3].mT)   x[:,:,:3].baddbmm(x,x.mT,beta=0.5)
c: x.conv1d(x[...,:2])   x.conv1d(x[...,:3],v[:2],2,1)   x[:,None].conv2d(x[:,None,:2,:2],padding='same')   x[:,None].conv_transpose2d(x[:1,None,:2,:2],stride=2)   x[:,:2].conv1d(x[:,:1,:2],groups=2)
c: y.zeros_like()   y.ones_like()   y.full_like(1+2j)   y.full_like(2)   y.bool()   y.to(C128)   y.type(C64)   y.type_as(v)   y.clone().add_(p).mul_(v).exp_()   y.clone().zero_()   y.clone().fill_(2j)   y.clone().copy_(p)   iadd(y+0,v)   imul(y+0,2j)   itruediv(y+0,p)   isub(y+0,p)
T.linspace(0,1j,3)   T.linspace(2-1j,3,4,dtype=C128)   T.linspace(0,1,3,dtype=C64)   T.linspace(1j,2,1)   T.zeros(2,dtype=C64)   T.ones(2,dtype=C128)   T.full((2,),1j)   T.full((2,),3,dtype=C64)   T.eye(2,dtype=C64)   T.tensor([1j,2.0])   T.tensor(2j)
# PyTorch takes no gradient of these
c~: y.scatter_reduce(1,d,p,'sum')   y.scatter_reduce(1,d,p,'mean')   y.scatter_reduce(1,d,p,'mean',include_self=False)   y.scatter_reduce(1,d,p,'sum',include_self=False)   y.scatter_add(1,d,p)   y.nan_to_num()
f~: b.where(y,W) => torch.where(b,y,W)
# a real tensor with a complex one, and numbers
f: x.real*W   W+y   y-W   y/W   W/y   y@W => y.to(W.dtype)@W if y.dtype==F32 else y.to(C128)@W.to(C128)   y.T@Z => y.T.to(Z.dtype)@Z if y.dtype==F32 else y.T.to(C128)@Z.to(C128)   y*2j   1j+y   y**(1+1j)   T.cat([y,Z]) => T.cat([y.to(Z.dtype),Z]) if y.dtype==F32 else T.cat([y,Z.to(C128)])   T.stack([v,W]) => T.stack([v.to(W.dtype),W]) if v.dtype==F32 else T.stack([v,W.to(C128)])   y==Z   y.add(W)   y.mul(W)   y.div(W)   y.pow(W)   v.outer(W)   y.to(C64)   y.cfloat()
i*W   i+W   b*W   i/W   i*1j   h*1j => h.to(C64)*1j   b.cfloat()   s*Z   n+Z   Z*s   Z.sum()*y
"""

MISTAKES = """
Z.sort()                  !   sort does not take complex64
Z.max()                   !   max does not take complex64
Z.argmax()                !   argmax does not take complex64
Z.relu()                  !   relu does not take complex64
Z.relu_()                 !   relu_ does not take complex64
Z.floor()                 !   floor does not take complex64
Z.softmax()               !   softmax does not take complex64
Z.bitcast('int64')        !   bitcast does not take complex64
Z.conv2d(Z)               !   conv2d: x must have 4 axes
Z.max_pool1d(2)           !   max_pool1d does not take complex64
Z < 1                     !   a < b: not of complex numbers, which have no order
y < Z                     !   not of complex numbers, which have no order
y.maximum(Z)              !   maximum: not of complex numbers, which have no order
Z.maximum(y)              !   maximum does not take complex64
Z // 2                    !   a // b: not of complex numbers
y // 2j                   !   a // b: not of complex numbers
Z & Z                     !   a & b: not of complex numbers
y.hypot(1j)               !   hypot: not of complex numbers
y.atan2(Z)                !   atan2: not of complex numbers
x.conv1d(Z[None])         !   conv1d does not take complex64
y.mse_loss(Z).sqrt().relu()   !   relu does not take complex64
y.scatter_add(1, d, Z)    !   scatter_add: src is complex64, x is float32
put(y, 0, Z[0])           !   a[i] = b: a complex number is no float32
put(y, 0, 1j)             !   a[i] = b: a complex number is no float32
y.masked_fill(b, 1j)      !   masked_fill: not of complex numbers
iadd(y+0, Z)              !   a += b: the result is complex64 and cannot be kept in a, which is float32
y.full_like(1j)           !   full: a complex number is no float32
y.assign(Z)               !   assign does not take complex64
float(Z[0, 0])            !   complex
T([1j], dtype='float32')  !   a complex number is no float32
T.arange(3, dtype=C64)    !   no tensor is made in complex64 here
y.sum(dtype=C64)          !   no tensor is made in complex64 here
Z + Z[:, :3]              !   a + b: the shapes (3, 4) and (3, 3) do not repeat to a common one
Z @ Z                     !   a @ b: the last axis of a is 4
Z @ v[:3]                 !   a: c64[3,4]
Z.backward()              !   a loss is real
T.complex(y, i)           !   complex: the parts are float32 or float64 tensors
T.complex(y, y.double())  !   complex: the parts are of different types
T.complex(y, k.float())   !   do not repeat to a common one
T.polar(i, y)             !   polar: magnitude and angle are float32 or float64 tensors
y.view_as_complex()       !   view_as_complex: the last axis holds pairs
y.view_as_real()          !   view_as_real: float32 is not complex
y.imag                    !   imag: float32 is not complex
x.H                       !   x.H: x has 3 axes, not 2
Z.where(1, 2)             !   the condition is complex64, not bool
Z.register_hook(abs)      !   register_hook does not take complex64
Z.requires_grad_().zero_()   !   a.fill_(b): a is a leaf that requires a gradient
"""
