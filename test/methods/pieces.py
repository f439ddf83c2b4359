"""Stacks, splits, grids of indices, and values put into a part."""

import numpy as np

INPUTS = {"g2": lambda r: np.array([[0, 0, 1], [2, 0, 0]]), "n6": lambda r: np.array([0, 5, 2]), "x34": lambda r: r.random((3, 4)).astype("float32"), "x3": lambda r: r.random(3).astype("float32")}  # fmt: skip

ROWS = """
fhiub: y.fliplr()   y.flipud()   s.atleast_1d()   s.atleast_2d()   y[0].atleast_2d()   y[0].atleast_3d()   y.atleast_3d()   T.atleast_2d(y,y[0])   T.atleast_1d([s,y[0]])
f: T.hstack([y,p])   T.hstack([s,y[0]])   T.vstack([y[0],p])   T.dstack([y,p])   T.dstack([y[0],p[0]])   T.column_stack([y[0],p[:2].T])   T.column_stack([s,s])   T.block_diag(y,v,s)   T.block_diag(y)   T.cartesian_prod(v,y[0,:3],v[:2])   T.cartesian_prod(v)   T.broadcast_tensors(y[:,:1],v,s)   y.sum_to_size(3,1)   y.sum_to_size(4)   y.sum_to_size(())
tuple(T.broadcast_shapes((2,1),(3,),())) => (2,3)   v.combinations(2)   v.combinations(3,with_replacement=True)   v.combinations(0)   v.combinations(9)
f: y.tensor_split(3,1)   y.tensor_split((1,3),1)   y.tensor_split((2,-1,9))   y.tensor_split(n6[2:],-1)   y.hsplit(2)   v.hsplit([1,3])   y.vsplit([2])   x.dsplit(2)   z.tensor_split(2)
f: x.select_scatter(x34[:2]*1,1,-1)   x.slice_scatter(x[:,:,1:3]*2,2,1,3)   y.slice_scatter(y[::2]*2,0,None,None,2)   y.diagonal_scatter(x3)   y.diagonal_scatter(x3,1)   x.diagonal_scatter(x[:,0,:2]*1.0,-1,1,2)   y.index_reduce(0,k,x34,'prod')   y.index_reduce(1,k,x34[:,:3]*1,'mean')   y.index_reduce(1,k,x34[:,:3]*1,'amax',include_self=False)   v.diagflat(1)   y.diagflat()
f: y.put(n6,x3)   y.put(n6,x3,True)   y.put(n6*0,x3,accumulate=True)   y.as_strided((3,2),(1,3),2)   v.as_strided((3,2),(1,1))   y.fill(3)   y.fill(s)
# PyTorch's gradient of x is that of src
f~: y.as_strided_scatter(x34[:,:2]*1,(3,2),(4,1))
T.tril_indices(3,4)   T.tril_indices(4,3,-1)   T.triu_indices(3,4,1)   T.triu_indices(0,2)   g2.unravel_index((2,3))   g2.argwhere()   s.argwhere()   g2.nonzero_static(size=2)   g2.nonzero_static(size=4,fill_value=7)
T.logspace(-2,2,5)   T.logspace(0,3,4,base=2,dtype=F64)   T.logspace(1,2,0)   T.scalar_tensor(3)   T.scalar_tensor(2,dtype=I64)   tuple(T.empty_strided((2,3),(3,1)).shape) => (2,3)   tuple(T.empty_permuted((2,3),(0,1)).shape) => (2,3)   y.byte() => y.int().byte()
f: y.narrow_copy(1,1,2)   y.constant_pad_nd((1,2),3.0) => torch.constant_pad_nd(y,(1,2),3.0)   y.unsafe_chunk(2,1)   y.unsafe_split(2)   y.split_with_sizes([1,2])   y.resolve_neg()
f: y.as_strided_copy((2,),(1,)) => torch.as_strided_copy(y,(2,),(1,))   y.diagonal_copy(1) => torch.diagonal_copy(y,1)   v.expand_copy(2,4) => torch.expand_copy(v,(2,4))   x.permute_copy((2,0,1)) => torch.permute_copy(x,(2,0,1))   y.split_with_sizes_copy([1,2]) => torch.split_with_sizes_copy(y,[1,2])   y[:1].squeeze_copy(0) => torch.squeeze_copy(y[:1],0)
f: y.t_copy() => torch.t_copy(y)   y.transpose_copy(0,1) => torch.transpose_copy(y,0,1)   y.unbind_copy(1) => torch.unbind_copy(y,1)   y.unfold_copy(1,2,1) => torch.unfold_copy(y,1,2,1)   y.unsqueeze_copy(1) => torch.unsqueeze_copy(y,1)   y.view_copy(4,3) => torch.view_copy(y,(4,3))
y.clone().put_(n6,x3)   y.clone().index_reduce_(0,k,x34,'prod')
"""

MISTAKES = """
T.broadcast_shapes((2,),(3,))      !   do not repeat to a common shape
T.broadcast_tensors(y, k)          !   broadcast_tensors: the shapes do not repeat
y.sum_to_size(2)                   !   sum_to_size: (2,) does not repeat
T.block_diag(x)                    !   block_diag: a block has more than two axes
T.cartesian_prod(y)                !   cartesian_prod: each is a vector
y.combinations()                   !   combinations: 2 elements of a vector
y.tensor_split(0)                  !   tensor_split: into 0 parts
s.tensor_split(2)                  !   tensor_split: x has no axis
y.hsplit(3)                        !   hsplit: an axis of size 4 in 3 equal parts
v.vsplit(2)                        !   vsplit: x has 1 axes
y.dsplit(2)                        !   dsplit: x has 2 axes
y.select_scatter(v, 1, 0)          !   select_scatter: the place has shape (3,), and src (4,)
y.slice_scatter(v)                 !   slice_scatter: the place has shape (3, 4)
y.diagonal_scatter(v)              !   diagonal_scatter: the place has shape (3,)
y.put(k, v)                        !   put: there is not an element of source for each place
y.as_strided((2,), (1, 1))         !   as_strided: 1 sizes and 2 strides
T.empty_permuted((2, 3), (0,))     !   empty: there is no place in memory for each axis
y.unravel_index((2, 3))            !   unravel_index: places are integers
"""
