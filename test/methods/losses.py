"""Losses."""

import numpy as np

from methods import constant, integers, normal, positive

INPUTS = {
  "l": normal(5, 4), "l3": normal(2, 4, 3), "soft": positive(5, 4), "weight": positive(4, low=0.5, high=2.0), "unit": positive(3, 4, low=0.05, high=0.95), "target": positive(3, 4, low=0.0, high=1.0),
  "at": constant([-100, 3, 2, 0, 1], np.int64), "at3": integers(0, 4, 2, 3), "one": constant(2, np.int64), "plus": lambda r: np.sign(r.standard_normal((3, 4))).astype(np.float32), "plus1": lambda r: np.sign(r.standard_normal(3)).astype(np.float32), "a": normal(3, 4), "c": normal(3, 4),
  "classes": constant([[0, 3, -1, 1], [-1, 0, 1, 2], [2, 1, 0, 3]], np.int64), "time": normal(6, 2, 5), "texts": integers(1, 5, 2, 3), "lengths": constant([6, 5], np.int64), "sizes": constant([3, 2], np.int64),
}  # fmt: skip

FIXED = ("plus", "plus1", "weight", "target", "q")
REDUCTIONS = ("mean", "sum", "none")
SIMPLE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "kl_div")
ROWS = """
f: y.mse_loss(p,weight=q) => F.mse_loss(y,p,weight=q)   y.l1_loss(p,'sum',q) => F.l1_loss(y,p,reduction='sum',weight=q)   y.huber_loss(p,weight=q) => F.huber_loss(y,p,weight=q)   y.l1_loss(p,'none',q) => F.l1_loss(y,p,reduction='none',weight=q)   y.huber_loss(p,delta=0.3)   y.smooth_l1_loss(p,beta=0.3)   y.kl_div(p,reduction='batchmean')   y.kl_div(r,log_target=True)   unit.binary_cross_entropy(target)   unit.binary_cross_entropy(target,q)   y.binary_cross_entropy_with_logits(target,q)
f: y.poisson_nll_loss(p)   y.poisson_nll_loss(p,full=True)   p.poisson_nll_loss(q,log_input=False)   y.gaussian_nll_loss(a,p)   y.gaussian_nll_loss(a,p,full=True,reduction='sum')   y.hinge_embedding_loss(plus)   y.hinge_embedding_loss(plus,margin=0.3,reduction='none')   y.margin_ranking_loss(a,plus,margin=0.2)   y.soft_margin_loss(plus)
f: y.multilabel_soft_margin_loss(target)   y.multilabel_soft_margin_loss(target,weight)   l.multi_margin_loss(at.clamp(min=0))   l.multi_margin_loss(at.clamp(min=0),p=2,margin=0.5,weight=weight,reduction='none')   y.multilabel_margin_loss(classes)   y.triplet_margin_loss(a,c)   y.triplet_margin_loss(a,c,margin=0.3,p=1.0,swap=True)   y.triplet_margin_with_distance_loss(a,c)
f: y.cosine_embedding_loss(a,plus1)   y.cosine_embedding_loss(a,plus1,margin=0.3,reduction='none')   y.cosine_similarity(a)   y.cosine_similarity(a,dim=0)   y.pairwise_distance(a)   y.pairwise_distance(a,p=1.0,keepdim=True)   y.cdist(a)   y.cdist(a,p=1.0)   x.cdist(x[:1]*2+1)
f: time.log_softmax(2).ctc_loss(texts,lengths,sizes)   time.log_softmax(2).ctc_loss(texts,lengths,sizes,reduction='none')   unit.binary_crossentropy(target) => F.binary_cross_entropy(unit,target)   y.binary_crossentropy_logits(target) => F.binary_cross_entropy_with_logits(y,target)
f: y.binary_cross_entropy_with_logits(target,pos_weight=weight)   l.log_softmax(1).nll_loss(at)   l.log_softmax(1).nll_loss(at,weight)   l.cross_entropy(soft/soft.sum(1,keepdim=True),label_smoothing=0.2)
f: l.sparse_categorical_crossentropy(at,ignore_index=-100) => F.cross_entropy(l,at)   l3.mT.sparse_categorical_crossentropy(at3) => F.cross_entropy(l3,at3)
"""
ROWS += "".join(f"f: y.{name}(p,reduction={r!r})\n" for name in SIMPLE for r in REDUCTIONS)
ROWS += "".join(f"f: {x}.cross_entropy({at},{weight},reduction={r!r},label_smoothing={smooth})\n"
                for x, at in (("l", "at"), ("l3", "at3"), ("l[0]", "one")) for r in REDUCTIONS
                for weight in ("None", "weight") for smooth in (0.0, 0.1))  # fmt: skip

MISTAKES = """
y.poisson_nll_loss(k)     !   do not repeat to a common one
y.gaussian_nll_loss(k, p) !   a
y.hinge_embedding_loss(k) !   a
y.margin_ranking_loss(k, plus)   !   do not repeat to a common one
y.soft_margin_loss(k)     !   do not repeat to a common one
y.multilabel_soft_margin_loss(k)   !   do not repeat to a common one
l.multi_margin_loss(k)    !   multi_margin_loss
l.multilabel_margin_loss(k)   !   multilabel_margin_loss
y.triplet_margin_loss(k.float(), a)   !   do not repeat to a common one
y.cosine_embedding_loss(k.float(), plus1)   !   do not repeat to a common one
y.pairwise_distance(k.float())   !   do not repeat to a common one
y.cosine_similarity(k.float())   !   do not repeat to a common one
y.cdist(v)                !   cdist
time.ctc_loss(texts.float(), lengths, sizes)   !   ctc_loss: targets are integers
time[:, 0].ctc_loss(texts[0], lengths, sizes[:1])   !   ctc_loss: without a batch input_lengths is one number
time.ctc_loss(texts, lengths, at)   !   ctc_loss
unit.binary_crossentropy(k)   !   the target has shape (3, 4), not (3,)
y.binary_crossentropy_logits(k)   !   the target has shape (3, 4), not (3,)
y.mse_loss(k)             !   a - b
y.l1_loss(k)              !   a - b
y.smooth_l1_loss(k)       !   a - b
y.huber_loss(k)           !   a - b
y.mse_loss(p, weight=k)    !   mse_loss: there is not a weight for each element
y.huber_loss(p, weight=k)   !   huber_loss: there is not a weight
y.kl_div(k.float())       !   a - b
y.mse_loss(p, 'max')      !   reduction
unit.binary_cross_entropy(k)   !   the target has shape (3, 4), not (3,)
y.binary_cross_entropy_with_logits(k)   !   the target has shape (3, 4), not (3,)
l.cross_entropy(k)        !   cross_entropy
l3.mT.cross_entropy(at3)  !   x.movedim(-1, 1) would fit
l.cross_entropy(at, reduction='max')   !   reduction
l.nll_loss(k)             !   nll_loss
l.sparse_categorical_crossentropy(k)   !   cross
y.gaussian_nll_loss(v[:3], p)   !   the shapes (3, 4) and (3,) do not repeat to a common one
y.gaussian_nll_loss(y, v[:2])   !   the shapes (3, 4) and (2,) do not repeat to a common one
y.hinge_embedding_loss(v[:3])   !   the shapes (3,) and (3, 4) do not repeat to a common one
y.triplet_margin_with_distance_loss(v[:3], y)   !   the shapes (3, 4) and (3,) do not repeat to a common one
y.triplet_margin_with_distance_loss(y, y, 'cosine')   !   distance_function is 'cosine', not a function
"""
