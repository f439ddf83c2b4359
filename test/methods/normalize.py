"""Normalizing."""

from methods import normal, positive

INPUTS = {"mean": normal(2), "var": positive(2), "scale": positive(2), "shift": normal(2), "six": normal(6)}
FIXED = ("mean", "var")

ROWS = """
fh: w.layer_norm((6,))
f: w.layer_norm((6,6))   w.layer_norm((6,),six,six)   w.rms_norm((6,))   w.rms_norm((6,),six,1e-3)   w.normalize()   w.normalize(1.0,2)   w.normalize(dim=-1)
f: w.batch_norm(mean,var)   w.batch_norm(mean,var,scale,shift)   w.batch_norm(None,None,scale,shift,training=True)   w.layernorm() => F.layer_norm(w,(6,))   w.layernorm((1,2,3)) => F.layer_norm(w,(2,6,6))
f: w.group_norm(2)   w.group_norm(1,scale,shift,1e-3)   w.instance_norm()   w.instance_norm(None,None,scale,shift)   w.instance_norm(mean,var,scale,shift,False)
y.dropout(0.5,training=False)   y.dropout(0.0,training=True)   y.dropout(1.0,training=True)
"""

MISTAKES = """
w.layer_norm((5,))        !   layer_norm
w.rms_norm((5,))          !   rms_norm
w.batch_norm(v, v)        !   batch_norm: running_mean has one number for each channel
w.batch_norm(None, None, None, v, True) ! batch_norm: bias has one number for each channel
w.group_norm(3)           !   group_norm
w.instance_norm(v)        !   instance_norm
w.normalize(2, 9)         !   there is no axis 9
y.dropout(2.0)            !   dropout
y.layernorm(5)            !   there is no axis 5
i.layernorm()             !   the average of int64 is no integer
"""
