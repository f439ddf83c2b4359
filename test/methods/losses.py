"""Losses."""

import numpy as np

from methods import constant, integers, normal, positive

INPUTS = {
  "l": normal(5, 4), "l3": normal(2, 4, 3), "soft": positive(5, 4), "weight": positive(4, low=0.5, high=2.0), "unit": positive(3, 4, low=0.05, high=0.95), "target": positive(3, 4, low=0.0, high=1.0),
  "at": constant([-100, 3, 2, 0, 1], np.int64), "at3": integers(0, 4, 2, 3), "one": constant(2, np.int64),
}  # fmt: skip

FIXED = ("weight", "target", "q")
REDUCTIONS = ("mean", "sum", "none")
SIMPLE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "kl_div")
ROWS = """
f: y.huber_loss(p,delta=0.3)   y.smooth_l1_loss(p,beta=0.3)   y.kl_div(p,reduction='batchmean')   y.kl_div(r,log_target=True)   unit.binary_cross_entropy(target)   unit.binary_cross_entropy(target,q)   y.binary_cross_entropy_with_logits(target,q)
f: y.binary_cross_entropy_with_logits(target,pos_weight=weight)   l.log_softmax(1).nll_loss(at)   l.log_softmax(1).nll_loss(at,weight)   l.cross_entropy(soft/soft.sum(1,keepdim=True),label_smoothing=0.2)
f: l.sparse_categorical_crossentropy(at,ignore_index=-100) => F.cross_entropy(l,at)   l3.mT.sparse_categorical_crossentropy(at3) => F.cross_entropy(l3,at3)
"""
ROWS += "".join(f"f: y.{name}(p,reduction={r!r})\n" for name in SIMPLE for r in REDUCTIONS)
ROWS += "".join(f"f: {x}.cross_entropy({at},{weight},reduction={r!r},label_smoothing={smooth})\n"
                for x, at in (("l", "at"), ("l3", "at3"), ("l[0]", "one")) for r in REDUCTIONS
                for weight in ("None", "weight") for smooth in (0.0, 0.1))  # fmt: skip

MISTAKES = """
y.mse_loss(k)             !   a - b
y.l1_loss(k)              !   a - b
y.smooth_l1_loss(k)       !   a - b
y.huber_loss(k)           !   a - b
y.kl_div(k.float())       !   a - b
y.mse_loss(p, 'max')      !   reduction
unit.binary_cross_entropy(k)   !   a
y.binary_cross_entropy_with_logits(k)   !   a
l.cross_entropy(k)        !   cross_entropy
l.cross_entropy(at, reduction='max')   !   reduction
l.nll_loss(k)             !   nll_loss
l.sparse_categorical_crossentropy(k)   !   cross
"""
