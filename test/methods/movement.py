"""Other shapes and orders; joining and cutting; other types."""

ROWS = """
*: x.reshape(6,4)   x.permute(2,0,1)   y.flip(0)   y.pad((1,2))   x[:1].squeeze()   y.expand(2,-1,-1)   y.roll(1,0)   y.tril()   T.cat([y,p])   T.stack([y,p])   y.repeat(2,1)   y.T   y.t()   v.t()   y.unfold(1,2,1)   y.pad((1,2),value=1)   y.diag()   v.diag()   v.diag_embed()   y.diagonal(1)   y.contiguous()   y.clone()
f: x.reshape(-1)   x.reshape((2,-1))   x.view(3,8)   x.flatten()   x.flatten(1)   x.flatten(0,1)   s.flatten()   x.permute(-1,0,1)   x.transpose(0,2)   x.mT   x.movedim(0,-1)   x.movedim((0,1),(2,0))   x.swapaxes(0,1)   y.unsqueeze(0)   y.unsqueeze(-1)   x[:1].squeeze(0)   x.squeeze(0)
f: y.repeat_interleave(T.tensor([2,0,1]),0)   y.repeat_interleave(T.tensor([3]),1)   v.repeat_interleave(T.tensor([1,0,2,1]))   v.repeat_interleave(T.tensor(2))
f: v.expand(3,4)   x.flip((0,2))   x.flip(dims=(0,2))   x.permute(dims=(2,0,1))   T.tile(y,dims=(2,1)) => torch.tile(y,dims=(2,1))   y.unfold(dimension=1,size=2,step=1)   y.roll(-5)   x.roll((1,2),(0,2))   y.repeat(2,1,3)   v.tile(2)   y.tile((2,))   y.repeat_interleave(2,1)   x.repeat_interleave(2,0)   x.repeat_interleave(3,1)   y.repeat_interleave(2)   y.tril(1)   y.triu()   y.triu(-1)   x.triu(1)   y.diagonal(-1)   y.diagonal(9)   x.diagonal(0,1,2)   y.diag_embed(1)   y.diag_embed(-2)   y.diag_embed(1,0,2)   y.diag_embed(0,-1,-2)   v.expand_as(y)
f: y.narrow(1,1,2)   y.select(0,-1)   x.unfold(2,3,1)   x.unfold(1,2,2)   x.unfold(2,1,3)   y.unfold(1,1,4)   y.unfold(1,2,5)   y.unflatten(1,(2,-1))   z.reshape(3,0)   z.sum(0).expand(2,3)   y.broadcast_to((2,3,4))   T.cat([y,i],1)   T.cat([y,p],-1)   T.stack([y,p],-1)   T.hstack([y,p])   T.vstack([v,v])   T.cat([z,y[:,:3]])   T.stack([v,v],1)
f: y.pad((1,2,3,0),value=7.0)   y.pad((-1,2))   w.pad((1,2,3,0),mode='reflect')   w.pad((1,2,3,0),mode='replicate')   w.pad((1,2,3,0),mode='circular')   y.split(2)   y.split([1,3],1)   y.chunk(2,1)   y.chunk(3,1)   y.chunk(1)   y.chunk(2)   y.unbind(1)   odd.transpose(0,1)   odd.flip((0,1,2))   odd.reshape(7,15)
f: y.shrink(((1,3),None)) => y[1:3]   y.shrink(((0,2),(1,4))) => y[:2,1:4]   T.concat([y,p]) => torch.cat([y,p])
*: y.float()   y.long()   y.int()   y.bool()   y.double()   y.type_as(i)   y.to(F32)   y.to(I64)   y.to(F64,True)   y.to(I32,copy=True)   y.char()   y.short()   y.half()   y.bfloat16()
*: y.cast(F64) => y.to(F64)   y.astype(F32) => y.to(F32)   y.type(I32) => y.to(I32)   y.cast(U8) => y.to(U8)
~: v.bitcast(I32) => v.view(I32)
i.float()   b.float()   (y*100).abs().to(U8) // 200   y.cpu()   y.to('CPU') => y.to('cpu')   i.bitcast(F64) => i.view(F64)   i.view(U8)   i.view(I32)   i.view(U8).view(F64)
T.meshgrid(v,k.float(),indexing='ij')   T.meshgrid([v,v],indexing='ij')   T.meshgrid(k,k,indexing='xy')
~: v.shard_(('CPU','CPU:1')) => v   v.shard(('CPU','CPU:1')) => v
"""

MISTAKES = """
y.repeat_interleave(T.tensor([1, 2]), 0)   !   repeats is no integer for each of 3 elements
y.repeat_interleave(T.tensor([1, 2, -1]), 0)   !   an element is repeated -1 times
y.unfold(1, 0.5, 1)       !   unfold: size is 0.5, not an integer
y.repeat_interleave(0.5)  !   repeat_interleave: repeats is 0.5, not an integer or a tensor
i.one_hot(0.5)            !   one_hot: num_classes is 0.5, not an integer
T.stack(5)                !   5 is no tensor
y.chunk(0)                !   chunk: 0 pieces
y.chunk(2, 5)             !   chunk: there is no axis 5
x.diag()                  !   diag: x is neither a vector nor a matrix
y.diag_embed(0, 5, 1)     !   there is no axis 5
y.diagonal(0, 0, 0)       !   an axis appears twice
v.tril()                  !   tril: x has fewer than two axes
v.triu()                  !   triu: x has fewer than two axes
y.unfold(1, 9, 1)         !   unfold: no window of 9, 1 apart, in an axis of size 4
y.unfold(1, 2, 0)         !   unfold: no window of 2, 0 apart
y.unbind(9)               !   unbind: there is no axis 9
T.vstack([y, x])          !   f32[2,3,4] does not go behind f32[3,4] along axis 0
T.hstack([y, x])          !   f32[2,3,4] does not go behind f32[3,4] along axis 1
T.concat([y, p], 5)       !   there is no axis 5
y.split(-1)               !   split: pieces of size -1
y.split([1, 1], 0)        !   split: the sizes (1, 1) add up to 2, not to the 3 of axis 0
y.shrink(((0, 9), (0, 1)))   !   shrink: ((0, 9), (0, 1)) does not lie within x
y.expand_as(v)            !   only axes of size 1 do
y.repeat(2)               !   repeat: 1 repeats for the 2 axes of x
y.tile(2, -1)             !   repeat: (2, -1) times, of which one is negative
T.meshgrid(v, y)          !   meshgrid: each axis is a vector
T.meshgrid(v, v, indexing='ji')   !   indexing is "ij" or "xy"
y.to('nodevice')          !   no device 'nodevice'
y.astype('floaty')        !   no dtype 'floaty'
y.type('x')               !   no dtype 'x'
y.size(9)                 !   size: there is no axis 9
y.item()                  !   x.item(): x has 12 elements, not one
i.requires_grad_()        !   only float tensors have gradients
i.backward()              !   only float tensors have gradients
x.reshape(5)              !   x has 24 elements
x.view(5)                 !   x has 24 elements
x.flatten(2, 1)           !   start_dim 2 lies behind end_dim 1
x.t()                     !   t: x has 3 axes, more than two
x.unflatten(1, (2, 2))    !   axis 1 has 3 elements
x.squeeze(3)              !   squeeze: there is no axis 3: x has 3 axes
x.unsqueeze(5)            !   unsqueeze: there is no axis 5
y.expand(2, 4)            !   only axes of size 1 do
y.broadcast_to(2, 4)      !   only axes of size 1 do
y.expand_as(v)            !   expand
x.permute(0, 1)           !   no order of the 3 axes
x.transpose(0, 3)         !   transpose: there is no axis 3
x.swapaxes(0, 3)          !   there is no axis 3
x.movedim((0, 1), 0)      !   not equally many axes
v.mT                      !   x has fewer than two axes
x.flip(3)                 !   flip: there is no axis 3
x.flip(0.5)               !   axes is 0.5, not an integer
x.flip(0, dims=1)         !   flip: (0,) and dims=1 are the same argument
x.roll(1, 3)              !   roll: there is no axis 3
x.roll((1, 2), 0)         !   2 shifts for 1 axes
x.repeat(2, 2)            !   2 repeats for the 3 axes
y.repeat_interleave(2, 2)   !   repeat_interleave: there is no axis 2
y.pad((1, 2, 3))          !   3 widths are not pairs
y.pad((1, 1), mode='edge')   !   mode is "constant", "reflect", "replicate" or "circular", not 'edge'
y.pad((9, 0), mode='reflect')   !   do not fit an axis of size 4
y.shrink(((0, 9), None))  !   does not lie within x
y.narrow(1, 3, 2)         !   do not lie within an axis of size 4
y.select(2, 0)            !   select: there is no axis 2
T.cat([y, v])             !   cat
T.stack([y, v])           !   stack
y.to('nowhere')           !   nowhere
y.cast(y)                 !   no dtype in a Tensor
y.cast([1])               !   no dtype in a list
y.cast(None)              !   no dtype in a NoneType
s.diag_embed()            !   diag_embed: x has no axis
y.cast('float33')         !   float33
y.bitcast(F64)            !   bitcast
v.shard('CPU', 0)         !   shard: devices is 'CPU', not a sequence of strings
v.shard_(('CPU', 'CPU:1'), 1)   !   shard: there is no axis 1
v.shard_(('CPU', 'CPU'))  !   several devices are different ones
"""
