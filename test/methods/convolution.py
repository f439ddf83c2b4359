"""Convolutions and pooling."""

import numpy as np

from methods import constant, normal

INPUTS = {
  "a1": normal(2, 4, 9), "w1": normal(6, 4, 3), "g1": normal(6, 2, 3), "t1": normal(4, 3, 3), "c6": normal(6), "c3": normal(3),
  "a2": normal(2, 4, 7, 6), "w2": normal(6, 4, 3, 2), "g2": normal(6, 2, 3, 3), "t2": normal(4, 3, 3, 2),
  "a3": normal(1, 2, 5, 4, 5), "w3": normal(3, 2, 2, 3, 2), "t3": normal(2, 3, 2, 2, 3),
  "u1": normal(2, 1, 2), "at1": constant([[[1, 2]], [[0, 3]]], np.int64), "u2": normal(1, 1, 2, 2), "at2": constant([[[[1, 2], [12, 15]]]], np.int64),
  "u3": normal(1, 1, 1, 1, 2), "at3": constant([[[[[1, 3]]]]], np.int64),
}  # fmt: skip

ROWS = """
fh: a2.conv2d(w2)   a1.conv1d(w1)   w.max_pool2d(2)   w.avg_pool2d(2)
f: a1.conv1d(w1,c6,2,1)   a1.conv1d(g1,groups=2,dilation=2)   a2.conv2d(w2,c6,stride=(2,1),padding=(1,0))   a2.conv2d(g2,padding=1,groups=2)   a2.conv2d(g2,stride=2,padding=2,dilation=2,groups=2)   a2[0].conv2d(w2)   a3.conv3d(w3)   a3.conv3d(w3,c3,2,1)
f: a1.conv_transpose1d(t1)   a1.conv_transpose1d(t1,c3,2,1,1)   a2.conv_transpose2d(t2)   a2.conv_transpose2d(t2,c3,stride=2,padding=1,output_padding=1)   a3.conv_transpose3d(t3)   a3.conv_transpose3d(t3,c3,2)
f: w.max_pool2d(3,2)   w.max_pool2d(3,1,1)   w.max_pool2d((2,3),(2,1),(1,1))   w.max_pool2d(2,2,0,2)   w.max_pool2d(4,3,0,1,True)   a1.max_pool1d(3,2)   a3.max_pool3d(2,1)   w.max_pool2d(2,return_indices=True)
f: w.avg_pool2d(3,2,1)   w.avg_pool2d(3,2,1,False,False)   w.avg_pool2d(4,3,1,True)   a1.avg_pool1d(3,2)   a3.avg_pool3d(2,1)   a3.avg_pool3d(2)
f: a1.adaptive_avg_pool1d(4)   a2.adaptive_avg_pool2d((3,2))   a3.adaptive_avg_pool3d(2)   a1.adaptive_max_pool1d(4)   a2.adaptive_max_pool2d((3,2))   a3.adaptive_max_pool3d(2)
f: w.abs().lp_pool2d(2,2)   a1.lp_pool1d(1,3,2)   a3.abs().lp_pool3d(3,2,1)   w.adaptive_max_pool2d((4,5),return_indices=True)
f: u1.max_unpool1d(at1,2)   u2.max_unpool2d(at2,2,output_size=(5,4))   u3.max_unpool3d(at3,(1,1,2))
"""

MISTAKES = """
a1.lp_pool1d(2, 99)       !   lp_pool1d: the window (99,) is larger than x
a1.adaptive_avg_pool1d(0) !   adaptive_avg_pool1d: x must have 1 axes or more, and output_size be >= 1
a1.adaptive_max_pool1d(0) !   adaptive_max_pool1d: x must have 1 axes or more, and output_size be >= 1
a1[0, 0].adaptive_avg_pool2d(2)   !   adaptive_avg_pool2d: x must have 2 axes or more
a1[0, 0].adaptive_avg_pool3d(2)   !   adaptive_avg_pool3d: x must have 3 axes or more
a1[0, 0].adaptive_max_pool2d(2)   !   adaptive_max_pool2d: x must have 2 axes or more
a1[0, 0].adaptive_max_pool3d(2)   !   adaptive_max_pool3d: x must have 3 axes or more
a2.max_unpool2d(g1.long(), 2)     !   max_unpool2d: x must have 2 axes or more, and an integer for each value
a2.max_unpool3d(g1.long(), 2)     !   max_unpool3d: x must have 3 axes or more, and an integer for each value
a1[0].local_response_norm(2)      !   local_response_norm: x must have at least 3 axes
a1.conv1d(g1)             !   conv1d
a2.conv2d(g2)             !   conv2d
a2.conv2d(w2, padding=0.5)          !   conv2d: padding is 0.5, not an integer
a2.avg_pool2d((None,))              !   sizes and steps are integers, not (None,)
a2.adaptive_avg_pool2d(0.5)         !   adaptive_avg_pool2d: output_size is 0.5, not an integer
nn.Conv2d(2, 2, 0.5)                !   sizes and steps are integers, not 0.5
a2.conv2d(w2, c3)         !   conv2d: a bias has one number for each of the
a3.conv3d(w2)             !   conv3d
a1.conv_transpose1d(w1)   !   conv_transpose1d
a2.conv_transpose2d(w2)   !   conv_transpose2d
a3.conv_transpose3d(w2)   !   conv_transpose3d
a1.max_pool1d(99)         !   max_pool1d
w.max_pool2d(99)          !   max_pool2d
a3.max_pool3d(99)         !   max_pool3d
a1.avg_pool1d(99)         !   avg_pool1d
w.avg_pool2d(99)          !   avg_pool2d
a3.avg_pool3d(99)         !   avg_pool3d
v.adaptive_avg_pool2d(2)  !   adaptive_avg_pool2d
a2.adaptive_max_pool2d(0) !   adaptive_max_pool2d
w.lp_pool2d(2,99)         !   lp_pool2d
u1.max_unpool1d(at2,2)    !   max_unpool1d
a1.lp_pool3d(2, 99)       !   lp_pool3d
"""
