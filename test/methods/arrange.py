"""Turning, padding and cutting to a shape, rearranging named axes; other libraries."""

ROWS = """
*: y.rot90()   x.rot90(-1,(1,2))   y.pad_to(5,6) => F.pad(y,(0,2,0,2))   y.shrink_to(2,3) => y[:2,:3]   x.rearrange('a b c -> (c a) b') => x.permute(2,0,1).reshape(8,3)
f: y.rot90(2)   y.rot90(3,(1,0))   y.rot90(4)   y.pad_to((None,6),value=7.0) => F.pad(y,(0,2),value=7.0)   y.shrink_to(None,1) => y[:,:1]   s.pad_to() => s   s.shrink_to() => s   z.pad_to(2,3) => F.pad(z,(0,0,0,2))
f: x.rearrange('a b c -> b a c') => x.permute(1,0,2)   x.rearrange('... c -> c ...') => x.permute(2,0,1)   x.rearrange('a (b1 b2) c -> b1 (a b2) c',b1=3) => x.permute(1,0,2)   x.rearrange('a b (h w) -> a (w b) h',h=2) => x.reshape(2,3,2,2).permute(0,3,1,2).reshape(2,6,2)
f: x.rearrange('a b c -> a 1 b 1 c') => x[:,None,:,None]   x[:,:1].rearrange('a 1 c -> a c') => x[:,0]   x.rearrange('a ... -> a (...)') => x.reshape(2,12)   x.rearrange('... -> (...)') => x.reshape(-1)   s.rearrange('-> 1') => s.reshape(1)   z.rearrange('a b -> b a') => z.T
y.rename('a','b').names == ('a','b') => True   y.rename('a','b').sum('b').tensor => y.sum(1)   y.refine_names('a','b').align_to('b','a').tensor => y.T
y.__dlpack_device__() == (1, 0) => True   T.from_dlpack(y)   len(y._repr_html_()) > 9 => True
"""

MISTAKES = """
y.rename('a')             !   rename: 1 names for 2 axes
y.refine_names('a')       !   refine_names: 1 names for 2 axes
x.rot90(1, (0, 1, 2))     !   dims are two axes
x.rot90(1, (0, 3))        !   rot90: there is no axis 3
y.pad_to(2, 9)            !   x is larger than (2, 9)
y.pad_to(9)               !   1 sizes for the 2 axes
y.shrink_to(9, 1)         !   x is smaller than (9, 1)
y.shrink_to(1)            !   1 sizes for the 2 axes
x.rearrange('a b -> b a') !   x has 3 axes, the left side 2
x.rearrange('a b c -> a b')   !   each name stands once on either side
x.rearrange('a (b d) c -> a b c d')   !   give the size of b or of d
x.rearrange('a (b d) c -> a b c d', b=2)   !   an axis of size 3 is not (b d)
x.rearrange('a b c -> a b c', d=2)   !   no axis is called d
x.rearrange('a (b c -> a b c')   !   the parentheses do not match
x.rearrange('a b c')      !   a formula reads as
x.rearrange(3)            !   formula is 3, not a string
T.from_dlpack([1])        !   list has no __dlpack__
"""
