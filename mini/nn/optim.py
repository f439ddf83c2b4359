"""What torch.optim is called: the optimizers, their schedules, clipping."""

from mini.nn import lr_scheduler, optimizers
from mini.nn.bucket import Group
from mini.nn.clip import clip_grad_norm, clip_grad_norm_, clip_grad_value, clip_grad_value_
from mini.nn.lbfgs import LBFGS
from mini.nn.optimize import optimize
from mini.nn.optimizer import Optimizer
from mini.nn.optimizers import *

__all__ = ["LBFGS", "Group", "Optimizer", "clip_grad_norm", "clip_grad_norm_", "clip_grad_value", "clip_grad_value_",
           "lr_scheduler", "optimize", *optimizers.__all__]  # fmt: skip
