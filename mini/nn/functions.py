"""Modules that are a method of tensors with options: activations and losses. The table at the end has a row for each.

A row's options, their order and defaults are the method's; the tensors that `forward` takes come before them.
"""

from __future__ import annotations

import inspect
from typing import Any

from mini.nn import init
from mini.nn.functional import parameters
from mini.nn.module import Module, Parameter
from mini.tensor import Tensor


class _Function(Module):
  """A method of tensors as a module: its options are attributes."""

  method: str
  signature: inspect.Signature  # of the options
  called: inspect.Signature  # of forward: PyTorch's names of the tensors

  def __init__(self, *args: Any, **kwargs: Any):
    try:
      given = self.signature.bind(*args, **kwargs)
    except TypeError as e:
      raise TypeError(f"{type(self).__name__}{self.signature}: {e}") from None
    given.apply_defaults()
    for name, value in given.arguments.items():
      setattr(self, name, value.detach() if isinstance(value, Tensor) else value)

  def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
    inputs = self.called.bind(*inputs, **named).args if named else inputs
    options = {name: getattr(self, name) for name in self.signature.parameters if name != "inplace"}
    if self.method == "rrelu":
      options["training"] = self.training
    return getattr(inputs[0], self.method)(*inputs[1:], **options)

  def extra_repr(self) -> str:
    default = {name: p.default for name, p in self.signature.parameters.items()}
    shown = ((name, getattr(self, name)) for name in default if name != "inplace")
    return ", ".join(f"{k}={v!r}" for k, v in shown if isinstance(v, Tensor) or v != default[k])


def row(
  name: str, method: str, inputs: int = 1, inplace: bool = False, last: str = "", **defaults: Any
) -> Any:
  """A class of modules: of `inputs` tensors, with the method's other parameters as options, some with other defaults.

  inplace: it takes this word of PyTorch's, too, which means nothing here. last: an option that comes behind the others.
  """
  found = parameters(method)
  options = []
  for p in found[inputs:]:
    usual = p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in ("training", "dtype")
    if usual or p.name == "channels_last":
      default = defaults.get(p.name, p.default)
      options.append(p.replace(default=default, annotation=p.empty))
  options.sort(key=lambda p: (p.kind, p.name == last))
  if inplace:
    options.append(inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False))
  about = (getattr(Tensor, method).__doc__ or "").split("\n")[0]
  signature = inspect.Signature(options)
  called = inspect.Signature([p.replace(default=p.empty) for p in found[:inputs]])
  members = {"method": method, "signature": signature, "__signature__": signature, "called": called}
  members |= {"__doc__": f"{about} See Tensor.{method}.", "__module__": "mini.nn"}
  return type(name, (_Function,), members)


class PReLU(Module):
  """x, or weight * x where x is negative, with one weight or one for each channel. https://arxiv.org/abs/1502.01852

  >>> PReLU()(Tensor([-4.0, 4.0])).detach()
  Tensor([-1.,  4.])
  """

  def __init__(
    self, num_parameters: int = 1, init: float = 0.25, device: str | None = None, dtype: Any = None
  ):
    self.num_parameters, self.init = num_parameters, init
    self.weight = Parameter(Tensor.empty(num_parameters, dtype=dtype, device=device))
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """All weights `init`."""
    init.constant_(self.weight, self.init)

  def forward(self, input: Tensor) -> Tensor:
    return input.prelu(self.weight)

  def extra_repr(self) -> str:
    return f"num_parameters={self.num_parameters}"


# fmt: off
CELU        = row("CELU",        "celu",        inplace=True)
ELU         = row("ELU",         "elu",         inplace=True)
GELU        = row("GELU",        "gelu")
GLU         = row("GLU",         "glu")
Hardshrink  = row("Hardshrink",  "hardshrink")
Hardsigmoid = row("Hardsigmoid", "hardsigmoid", inplace=True)
Hardswish   = row("Hardswish",   "hardswish",   inplace=True)
Hardtanh    = row("Hardtanh",    "hardtanh",    inplace=True)
LeakyReLU   = row("LeakyReLU",   "leaky_relu",  inplace=True)
LogSigmoid  = row("LogSigmoid",  "logsigmoid")
LogSoftmax  = row("LogSoftmax",  "log_softmax")
Mish        = row("Mish",        "mish",        inplace=True)
QuickGELU   = row("QuickGELU",   "quick_gelu")
RReLU       = row("RReLU",       "rrelu",       inplace=True)
ReLU        = row("ReLU",        "relu",        inplace=True)
ReLU6       = row("ReLU6",       "relu6",       inplace=True)
SELU        = row("SELU",        "selu",        inplace=True)
SiLU        = row("SiLU",        "silu",        inplace=True)
Sigmoid     = row("Sigmoid",     "sigmoid")
Softmax     = row("Softmax",     "softmax")
Softmax2d   = row("Softmax2d",   "softmax",     dim=-3)
Softmin     = row("Softmin",     "softmin")
Softplus    = row("Softplus",    "softplus")
Softshrink  = row("Softshrink",  "softshrink")
Softsign    = row("Softsign",    "softsign")
Tanh        = row("Tanh",        "tanh")
Tanhshrink  = row("Tanhshrink",  "tanhshrink")
Threshold   = row("Threshold",   "threshold",   inplace=True)

BCELoss                       = row("BCELoss",                       "binary_cross_entropy", 2)
BCEWithLogitsLoss             = row("BCEWithLogitsLoss",             "binary_cross_entropy_with_logits", 2)
CTCLoss                       = row("CTCLoss",                       "ctc_loss", 4)
CosineEmbeddingLoss           = row("CosineEmbeddingLoss",           "cosine_embedding_loss", 3)
CosineSimilarity              = row("CosineSimilarity",              "cosine_similarity", 2)
CrossEntropyLoss              = row("CrossEntropyLoss",              "cross_entropy", 2)
GaussianNLLLoss               = row("GaussianNLLLoss",               "gaussian_nll_loss", 3)
HingeEmbeddingLoss            = row("HingeEmbeddingLoss",            "hinge_embedding_loss", 2)
HuberLoss                     = row("HuberLoss",                     "huber_loss", 2)
KLDivLoss                     = row("KLDivLoss",                     "kl_div", 2)
L1Loss                        = row("L1Loss",                        "l1_loss", 2)
MSELoss                       = row("MSELoss",                       "mse_loss", 2)
MarginRankingLoss             = row("MarginRankingLoss",             "margin_ranking_loss", 3)
MultiLabelMarginLoss          = row("MultiLabelMarginLoss",          "multilabel_margin_loss", 2)
MultiLabelSoftMarginLoss      = row("MultiLabelSoftMarginLoss",      "multilabel_soft_margin_loss", 2)
MultiMarginLoss               = row("MultiMarginLoss",               "multi_margin_loss", 2)
NLLLoss                       = row("NLLLoss",                       "nll_loss", 2)
PairwiseDistance              = row("PairwiseDistance",              "pairwise_distance", 2)
PoissonNLLLoss                = row("PoissonNLLLoss",                "poisson_nll_loss", 2)
SmoothL1Loss                  = row("SmoothL1Loss",                  "smooth_l1_loss", 2)
SoftMarginLoss                = row("SoftMarginLoss",                "soft_margin_loss", 2)
TripletMarginLoss             = row("TripletMarginLoss",             "triplet_margin_loss", 3)
TripletMarginWithDistanceLoss = row("TripletMarginWithDistanceLoss", "triplet_margin_with_distance_loss", 3)
# fmt: on


__all__ = ["CELU", "ELU", "GELU", "GLU", "SELU", "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss",
           "CosineSimilarity", "CrossEntropyLoss", "GaussianNLLLoss", "Hardshrink", "Hardsigmoid", "Hardswish",
           "Hardtanh", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LeakyReLU", "LogSigmoid",
           "LogSoftmax", "MSELoss", "MarginRankingLoss", "Mish", "MultiLabelMarginLoss",
           "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PReLU", "PairwiseDistance", "PoissonNLLLoss",
           "QuickGELU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax",
           "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
           "TripletMarginLoss", "TripletMarginWithDistanceLoss"]  # fmt: skip
