"""`rule`: a rewrite rule of a user's, for a `rewrite` block.

Rules on scalars are text on both sides (mini/ir/rewrite.py); one whose right side is a function of tensors replaces
whole operations (mini/ir/replace.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mini.command import did_you_mean
from mini.extend.named import OPERATIONS
from mini.ir.replace import Replacement
from mini.ir.rewrite import RewriteError, Rule
from mini.ir.uop import UOp
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.types import MiniError


def rule(
  name: str,
  left: str,
  right: str | Callable[..., Any],
  when: Callable[[Any], bool] | None = None,
  why: str = "",
  fast: bool = False,
) -> Rule | Replacement:
  """A rewrite rule, which holds in a block: `with mini.rewrite(rule(...)):`.

  With text on both sides, as in rule("add_zero", "x + 0", "x"), a rule on scalars: `python -m mini rules` lists those
  that always hold. With a function on the right, `left` is a whole operation: `matmul(x, y)`, which is any matrix
  product of two or three axes however it was spelled, or an operation made by `mini.op`. The function gets its inputs
  as tensors and returns a tensor of the same shape and type; what `wrap_as_operation` made is one that calls a library.
  when: whether the rule applies, of what the names stand for. fast: the rule is inexact, and holds with FAST=1 alone.

  >>> flip = mini.wrap_as_operation(lambda x, y: x @ y, name="numpy_matmul")
  >>> with mini.rewrite(rule("numpy", "matmul(x, y)", flip, when=lambda m: m["x"].ndim == 2)):
  ...   (Tensor([[1.0, 2.0]]) @ Tensor([[3.0], [4.0]])).item()
  11.0
  """
  if isinstance(right, str):
    return Rule(name, left, right, when, why, fast)

  def make(*nodes: UOp) -> UOp | None:
    inputs = dict(zip(replacement.names, map(Handle._new, nodes)))
    if when is not None and not when(inputs):
      return None
    out = right(*inputs.values())
    if not isinstance(out, Handle):
      fail(MiniError, f"rule {name}: its right side returned {type(out).__name__}, not a tensor", **inputs)
    return out._node

  replacement = Replacement(name, left, make, why)
  if replacement.op not in {"matmul", *OPERATIONS}:
    known = ", ".join(["matmul", *sorted(OPERATIONS)])
    raise RewriteError(
      f"rule {name}: a function takes the place of a matmul, or of an operation that was made before; there is no "
      f"{replacement.op!r}{did_you_mean(replacement.op, ['matmul', *OPERATIONS])}\n  there are {known}"
    )
  return replacement
