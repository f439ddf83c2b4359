"""torch.nn.functional's names: `import mini.nn.functional as F`.

Nearly all of them are methods of tensors: `F.relu(x)` is `x.relu()`. They are found by name when they are first asked
for, and take their first tensor by PyTorch's name, too. What no method is stands here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from mini.tensor import Tensor
from mini.tensor.autograd import custom_gradient, no_grad

METHODS = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
affine_grid avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy binary_cross_entropy_with_logits
celu channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss
cosine_similarity cross_entropy ctc_loss dropout elu fold gaussian_nll_loss gelu glu grid_sample group_norm
gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss instance_norm interpolate
kl_div l1_loss layer_norm leaky_relu linear local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d
margin_ranking_loss max_pool1d max_pool2d max_pool3d max_unpool1d max_unpool2d max_unpool3d mish mse_loss
multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize one_hot pad pairwise_distance
pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 rms_norm rrelu scaled_dot_product_attention selu sigmoid
silu smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign tanh tanhshrink threshold
triplet_margin_loss triplet_margin_with_distance_loss unfold
"""
NAMED_OTHERWISE = {"unfold": "im2col"}  # Tensor.unfold is along one axis, as torch.Tensor's
# Those that take inplace=True, and those of them that do so under a name with an underscore.
IN_PLACE = (
  "celu dropout elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 rrelu selu silu threshold"
)
UNDERSCORED = "celu_ elu_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_ threshold_"
# what the first tensor is called where it is not "input"
FIRST = {
  "affine_grid": "theta", "bilinear": "input1", "cosine_embedding_loss": "input1", "cosine_similarity": "x1",
  "ctc_loss": "log_probs", "gumbel_softmax": "logits", "margin_ranking_loss": "input1", "pairwise_distance": "x1",
  "scaled_dot_product_attention": "query", "triplet_margin_loss": "anchor",
  "triplet_margin_with_distance_loss": "anchor",
}  # fmt: skip


def parameters(name: str) -> list[inspect.Parameter]:
  """The parameters of a method, the first by its name here, `axis` as PyTorch's `dim`."""
  method = getattr(Tensor, NAMED_OTHERWISE.get(name, name))
  first, *rest = inspect.signature(method).parameters.values()
  twice = any(p.name == "axis" for p in rest)
  rest = [p.replace(name="dim") if p.name == "axis" else p for p in rest if not (twice and p.name == "dim")]
  return [first.replace(name=FIRST.get(name, "input"), annotation="Tensor"), *rest]


def _function(name: str) -> Callable[..., Any]:
  """A method as a function."""
  own = NAMED_OTHERWISE.get(name, name)
  method, taken = getattr(Tensor, own), parameters(name)
  first = taken[0].name

  def function(*args: Any, **options: Any) -> Any:
    args = (options.pop(first), *args) if first in options else args
    return getattr(type(args[0]) if args else Tensor, own, method)(
      *args, **options
    )  # of a complex one, its own

  return _called(function, name, inspect.Signature(taken), method)


def _changing(name: str, inplace: bool) -> Callable[..., Any]:
  """As `_function`, of a method whose result takes the tensor's place if inplace=True."""
  method, taken = getattr(Tensor, name), parameters(name)
  last = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=inplace)
  taken = [p.replace(default=name == "dropout") if p.name == "training" else p for p in taken]
  signature = inspect.Signature([*taken, last])

  def function(*args: Any, **options: Any) -> Any:
    bound = signature.bind(*args, **options)
    bound.apply_defaults()
    changes = bound.arguments.pop("inplace")
    x, *rest = bound.arguments.values()
    out = getattr(type(x), name, method)(x, *rest)
    return x._update(out, f"F.{name}(a, inplace=True)") if changes else out

  return _called(function, name, signature, method)


def _called(f: Any, name: str, signature: inspect.Signature, method: Any) -> Callable[..., Any]:
  f.__name__ = f.__qualname__ = name
  f.__signature__, f.__doc__ = signature, f"`Tensor.{method.__name__}`, as a function."
  return f


# ---------------------------------------------------------------- what no method is


def channel_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
  """Whole channels, axis 1, are zeros with probability p, all else is over 1 - p; only while training.   T[N, C, ..]"""
  kept = Tensor.ones(*input.shape[:2], *(1,) * (input.ndim - 2), dtype=input.dtype, device=input.device)
  out = input * kept.dropout(p, training=training)
  return input._update(out, "F.dropout(a, inplace=True)") if inplace else out


dropout1d = dropout2d = dropout3d = channel_dropout


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
  """Dropout that keeps mean 0 and variance 1 after `selu`. https://arxiv.org/abs/1706.02515"""
  if not training or p == 0:
    return input
  low, q = -1.7580993408473766, 1 - p  # what selu gives of -inf
  scale = (q + low * low * q * p) ** -0.5 if q else 0.0
  kept = input.rand_like() >= p
  out = kept.where(input, low) * scale - low * p * scale
  return input._update(out, "F.alpha_dropout(a, inplace=True)") if inplace else out


def embedding(
  input: Tensor,
  weight: Tensor,
  padding_idx: int | None = None,
  max_norm: float | None = None,
  norm_type: float = 2.0,
  scale_grad_by_freq: bool = False,
  sparse: bool = False,
) -> Tensor:
  """Rows of a table.   input: int[..]   weight: T[n, d]   ->   T[.., d]

  padding_idx: a row that gets no gradient. max_norm: the looked-up rows of the table whose norm_type-norm is larger are
  first scaled to it, in place. scale_grad_by_freq: the gradient of a row is over how often it is looked up. sparse has
  no effect: gradients are dense.

  >>> nn.functional.embedding(Tensor([1, 1]), Tensor([[1.0, 2.0], [3.0, 4.0]]), max_norm=1.0).numpy().round(2)
  array([[0.6, 0.8],
         [0.6, 0.8]], dtype=float32)
  """
  if max_norm is not None:
    _bounded(weight, input, max_norm, norm_type)
  rows = weight.embedding(input)
  if scale_grad_by_freq:
    rows = _over_counts(rows, _counts(weight, input)[input].unsqueeze(-1))
  if padding_idx is None:
    return rows
  return (input != padding_idx % weight.shape[0]).unsqueeze(-1).where(rows, rows.detach())


def _counts(weight: Tensor, index: Tensor) -> Tensor:
  """How often each row is looked up.   -> T[n]"""
  ones = Tensor.ones(index.numel(), dtype=weight.dtype, device=weight.device)
  nothing = Tensor.zeros(weight.shape[0], dtype=weight.dtype, device=weight.device)
  return nothing.scatter_add(0, index.reshape(-1).long(), ones)


def _bounded(weight: Tensor, index: Tensor, most: float, p: float) -> None:
  with no_grad():
    norms = weight.norm(p, -1, True)
    larger = (norms > most) & (_counts(weight, index) > 0).unsqueeze(-1)
    weight.assign(larger.where(weight * (most / (norms + 1e-7)), weight))


@custom_gradient(lambda g, out, rows, counts: (g / counts, None))
def _over_counts(rows: Tensor, counts: Tensor) -> Tensor:
  """The rows, whose gradients are over counts."""
  return rows


# ---------------------------------------------------------------- by name


def __getattr__(name: str) -> Any:
  """What is made when it is first asked for."""
  if name in UNDERSCORED.split():
    found = _changing(name[:-1], True)
  elif name in IN_PLACE.split():
    found = _changing(name, False)
  elif name in METHODS.split():
    found = _function(name)
  else:
    raise AttributeError(f"mini.nn.functional has no {name!r}", name=name, obj=sys.modules[__name__])
  return globals().setdefault(name, found)


def __dir__() -> list[str]:
  return [*__all__]


OWN = "alpha_dropout dropout1d dropout2d dropout3d embedding"
__all__ = sorted((METHODS + UNDERSCORED + " " + OWN).split())
