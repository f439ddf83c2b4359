"""Constants, ranges, grids."""

ROWS = """
T.arange(5)   T.arange(2,9,3)   T.arange(5,0,-2)   T.arange(0,1,0.25)   T.arange(0.5,3)   T.arange(0)   T.linspace(0,1,7)   T.linspace(3,-1,4)   T.linspace(2,5,1)   T.linspace(2,5,0)   T.eye(3)   T.eye(2,4)   T.full((2,3),7)   T.full((2,),1.5)   T.full((),True)
T.zeros(2,3)   T.ones((2,))   T.tensor([[1,2],[3,4]])   T.tensor(1.5)   T.tensor(True)   T.tensor([])   T.zeros(0,3)   T.zeros(2,dtype=I8)   T.ones(2,dtype=BF16)   T.arange(3,dtype=F16)   tuple(T.empty(2,3).shape)   T.tensor([1,2],dtype=U8)
*: y.zeros_like()   y.ones_like()   y.full_like(1)   tuple(y.empty_like().shape)
T.tri(3,4,1) => np.tri(3,4,1,dtype=np.float32)   T.tri(3) => np.tri(3,dtype=np.float32)   T.from_numpy(put(T.arange(3),0,5).numpy())
"""

MISTAKES = """
T.full((-1,), 0)          !   full: a size is negative
T.zeros(-1)               !   zeros: a size is negative
T.ones(-1)                !   ones: a size is negative
T.empty(-1)               !   empty: a size is negative
T.eye(-1)                 !   eye: a size is negative
T.tri(-1)                 !   a size is negative
T.arange(1, 2, 0)         !   arange: step is 0
T.linspace(0, 1, -1)      !   linspace: -1 numbers
T.from_numpy([1])         !   list is no numpy.ndarray
T.tensor([[1], [1, 2]])   !   do not all have the same length
T.tensor(S)               !   no tensor can be made
y.full_like(y)            !   full_like: fill_value is f32[3,4], not a number
T.full_like(3, 1)         !   full_like: x is 3, not a tensor
T.zeros_like(3)           !   zeros_like: x is 3, not a tensor
y.ones_like(dtype='f31')  !   no dtype 'f31'
y.empty_like(device=3)    !   empty_like: device is 3, not a string
k.one_hot(2)              !   index 2 is out of bounds for an axis of size 2
(k - 3).one_hot(3)        !   is out of bounds for an axis of size 3
"""
