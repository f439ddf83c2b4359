"""Mixed precision: within `autocast` products run in a type of 16 bits, and what such a type is too coarse for in
float32. Parameters stay float32, and so do their gradients: a product rounds its operands where it reads them.

The two lists are PyTorch's for GPUs (https://docs.pytorch.org/docs/stable/amp.html), on every device; its list for
CPUs lacks softmax, sums and norms, whose results there are of 16 bits. A listed method rounds or widens the float
tensors that it is given, float64 excepted, and is itself computed without this policy. A method on neither list takes
what it is given. Where complex tensors are among them, nothing is rounded. Sums within a product are float32 in any
case.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.trace import local
from mini.types import DType, DTypeError, as_dtype, dtypes

LOW = """
addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
einsum linear matmul mm multi_dot mv scaled_dot_product_attention
"""
FULL = """
__pow__ __rpow__ acos asin binary_cross_entropy binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss
cosine_similarity
cross_entropy ctc_loss cumprod cumsum erfinv exp expm1 gaussian_nll_loss group_norm hinge_embedding_loss huber_loss
instance_norm kl_div l1_loss layer_norm log log10 log1p log2 log_softmax logcumsumexp logsumexp margin_ranking_loss
mse_loss multi_margin_loss multilabel_margin_loss nll_loss norm normalize poisson_nll_loss pow prod reciprocal
rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus sum tan triplet_margin_loss
"""


class autocast(ContextDecorator):
  """A block, or a decorated function, of mixed precision. dtype: bfloat16 or float16; enabled: False ends it within.

  In float16 a gradient may be too small to be told from 0: scale the loss, see `nn.GradScaler`. `backward()` stands
  outside, as in PyTorch. A jitted function is captured anew where the policy differs.

  >>> w = Tensor.ones(2, 2, requires_grad=True)
  >>> with mini.autocast("bfloat16"):
  ...   y = Tensor.ones(1, 2) @ w
  ...   loss = y.softmax(1).sum()
  >>> y.dtype, loss.dtype
  (dtypes.bfloat16, dtypes.float32)
  >>> loss.backward()
  >>> w.grad.dtype
  dtypes.float32
  """

  def __init__(self, dtype: Any = dtypes.bfloat16, enabled: bool = True):
    kind = as_dtype(dtype)
    if kind not in (dtypes.float16, dtypes.bfloat16):
      fail(DTypeError, f"autocast: products run in float16 or bfloat16, not {kind.name}")
    self.kind = kind if enabled else None
    self.before: list[DType | None] = []

  def _recreate_cm(self) -> autocast:
    """For each call of a decorated function one of its own: several threads may call it."""
    return autocast(self.kind or dtypes.bfloat16, self.kind is not None)

  def __enter__(self) -> None:
    self.before.append(local.low)
    local.low = self.kind

  def __exit__(self, *exception: object) -> None:
    local.low = self.before.pop()


def in_type(x: Any, kind: DType) -> Any:
  """x, and what a list of tensors holds, in another type: but for float64 and what is not of floats."""
  if isinstance(x, Handle):
    return x if x.dtype.kind != "f" or x.dtype is dtypes.float64 else x.cast(kind)  # type: ignore[attr-defined]
  return type(x)(in_type(t, kind) for t in x) if type(x) in (list, tuple) else x


def under(method: Callable[..., Any], low: bool) -> Callable[..., Any]:
  """A listed method."""

  def gated(*args: Any, **options: Any) -> Any:  # a name that errors look beneath
    kind = local.low
    if kind is None:
      return method(*args, **options)
    to = kind if low else dtypes.float32
    exact = any(isinstance(x, Handle) and x._complex for x in (*args, *options.values()))
    local.low = None
    try:
      if exact:
        return method(*args, **options)
      return method(*(in_type(x, to) for x in args), **{name: in_type(x, to) for name, x in options.items()})
    finally:
      local.low = kind

  return functools.update_wrapper(gated, method)


def listed(family: type) -> None:
  """Put the methods of a class that are on a list under the policy."""
  names = {**dict.fromkeys(LOW.split(), True), **dict.fromkeys(FULL.split(), False)}
  for name, method in list(vars(family).items()):
    if name not in names:
      continue
    if isinstance(method, staticmethod):
      setattr(family, name, staticmethod(under(method.__func__, names[name])))
    elif inspect.isfunction(method):
      setattr(family, name, under(method, names[name]))
