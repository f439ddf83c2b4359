"""Images: resampling, windows as columns, shuffles."""

from methods import normal

INPUTS = {
  "c2": normal(2, 4, 5, 6), "c3": normal(1, 2, 3, 4, 5), "c1": normal(2, 3, 7), "at": normal(2, 3, 4, 2), "turn": normal(2, 2, 3), "columns": normal(2, 16, 20),
}  # fmt: skip

ROWS = """
f: c2.interpolate(scale_factor=2)   c2.interpolate(size=(7,4),mode='bilinear')   c2.interpolate(size=(7,4),mode='bilinear',align_corners=True)   c2.interpolate(size=(7,9),mode='bicubic')   c2.interpolate(size=(3,11),mode='bicubic',align_corners=True)   c2.interpolate(scale_factor=(0.6,1.7),mode='bicubic')   c2.interpolate(size=(3,4),mode='bicubic',antialias=True)   c2.interpolate(size=(2,3),mode='area')   c1.interpolate(size=4,mode='linear')   c3.interpolate(size=(2,5,3),mode='trilinear')
f: c2.interpolate(size=(7,4),mode='nearest-exact')   c2.grid_sample(at,align_corners=False)   c2.grid_sample(at,mode='nearest',padding_mode='border',align_corners=False)   c2.grid_sample(at,padding_mode='reflection',align_corners=True)   turn.affine_grid((2,1,3,4),align_corners=False)
f: c2.im2col(2) => F.unfold(c2,2)   c2.im2col((3,2),padding=1,stride=2) => F.unfold(c2,(3,2),padding=1,stride=2)   columns.fold((5,6),2)   c2.pixel_shuffle(2)   c2[:,:,:4].pixel_unshuffle(2)   c2.channel_shuffle(2)   x.channel_shuffle(3)   x.local_response_norm(2)   c2.local_response_norm(3)   c2.local_response_norm(2,0.1,0.5,2.0)
"""

MISTAKES = """
c2.interpolate()          !   interpolate
c2.interpolate(size=(2,2),mode='cubist')   !   'cubist'
c2.grid_sample(c2)        !   grid_sample
turn.affine_grid((3,1,3,4))   !   affine_grid
c2.im2col(99)             !   im2col
columns.fold((9,9),2)     !   fold
c2.pixel_shuffle(3)       !   pixel_shuffle
c2.pixel_unshuffle(4)     !   pixel_unshuffle
c2.channel_shuffle(3)     !   channel_shuffle
c2.local_response_norm(0) !   size is >= 1
"""
