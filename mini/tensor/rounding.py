"""Functions of float16 and bfloat16 that are computed in float32 inside, and rounded once.

A value of 16 bits is rounded where it is computed, whether memory holds it or not; so a function that is written in
several operations would be rounded after each. Those on this list are one operation to their users, as in PyTorch.
Sums, products, softmax and norms widen what they add up themselves.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mini.tensor.autocast import in_type
from mini.tensor.handle import Handle
from mini.types import dtypes

ONCE = """
acos acosh addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
binary_cross_entropy binary_cross_entropy_with_logits celu cosh deg2rad elu erfc expm1 gelu glu hardsigmoid hardswish
huber_loss hypot leaky_relu lerp log10 log1p log2 logaddexp logaddexp2 logit logsigmoid mish mse_loss prelu quick_gelu
rad2deg rrelu selu sigmoid silu sinc sinh smooth_l1_loss softplus softsign tan tanh tanhshrink xlogy
"""
NARROW = frozenset((dtypes.float16, dtypes.bfloat16))


def rounded_once(method: Callable[..., Any]) -> Callable[..., Any]:
  """A listed method: where all tensors that it is given are of one narrow type, computed in float32."""

  def gated(self: Any, *args: Any, **options: Any) -> Any:  # a name that errors look beneath
    kind = self.dtype
    if kind not in NARROW or any(
      isinstance(x, Handle) and x.dtype.kind in "fc" and x.dtype is not kind
      for x in (*args, *options.values())
    ):
      return method(self, *args, **options)
    widened = {name: in_type(x, dtypes.float32) for name, x in options.items()}
    found = method(*(in_type(x, dtypes.float32) for x in (self, *args)), **widened)
    return found.cast(kind) if found.dtype is dtypes.float32 else found

  return functools.update_wrapper(gated, method)


def once(family: type) -> None:
  """Have the methods of a class that are on the list round once."""
  for name, method in list(vars(family).items()):
    if name in ONCE.split() and inspect.isfunction(method):
      setattr(family, name, rounded_once(method))
