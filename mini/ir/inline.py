"""Nodes `invoke`: an output of these inputs, by a graph that is built once (mini/tensor/template.py). What is computed
in a loop is looked up by them; where its program is not known, they are written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mini.ir.uop import UOp, alone, uop
from mini.types import DType


class Output:
  """The argument of a node: the n-th output of a function. like: the node that it is a copy of, of which `shape` and
  `place` are known. passed: the inputs that a gradient passes to."""

  __slots__ = ("function", "like", "memo", "n", "passed")

  def __init__(self, function: Any, n: int, like: UOp, passed: Sequence[int]):
    self.function, self.n, self.like, self.passed = function, n, like, passed
    self.memo = {key: like.memo[key] for key in ("shape", "place")}

  def __repr__(self) -> str:
    return f"{self.function}:{self.n}"


def invoke(of: Output, src: tuple[UOp, ...]) -> UOp:
  """The output of these inputs."""
  u = uop("invoke", of.like.dtype, src, of)
  if "place" not in u.memo:
    u.memo.update(of.memo)
  return u


def anew(op: str, dtype: DType, src: tuple[UOp, ...], arg: Any) -> UOp:
  """A node that is in no memory: of an equal one that is, the graph that is looked up does not tell."""
  u = uop(op, dtype, src, arg)
  return alone(op, dtype, src, arg) if "leaf" in u.memo else u


def written_out(u: UOp) -> UOp:
  """What a node `invoke` stands for, without its gradients."""
  return u.arg.function.written_out(u.src)[u.arg.n]


def inlined(roots: Sequence[UOp]) -> list[UOp]:
  """The same graphs with what nodes `invoke` stand for. What is in memory stays as it is."""
  table: dict[UOp, UOp] = {}
  written: dict[tuple, list[UOp]] = {}  # of one function and its inputs, once for all outputs
  stack = [*reversed(roots)]
  while stack:
    u = stack[-1]
    if u in table:
      stack.pop()
    elif "leaf" in u.memo:
      table[u] = u
    elif below := [s for s in u.src if s not in table]:
      stack += reversed(below)
    else:
      src = tuple([table[s] for s in u.src])
      if u.op == "invoke":
        key = u.arg.function, src
        if key not in written:
          written[key] = u.arg.function.written_out(src)
        table[u] = written[key][u.arg.n]
      else:
        table[u] = u if src == u.src else anew(u.op, u.dtype, src, u.arg)
      if table[u] is not u and "labels" in u.memo:
        table[u].memo["labels"] = u.memo["labels"]
  return [table[u] for u in roots]
