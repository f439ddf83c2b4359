"""Graphs become memory: the one way in which anything is computed."""
from __future__ import annotations

from mini.engine.buffer import Buffer
from mini.ir.graph import buffer, shape
from mini.ir.interp import evaluate
from mini.ir.uop import UOp, rebuild


def realize(roots: list[UOp]) -> list[UOp]:
  """The roots as buffer leaves, computed together."""
  roots = settled(roots)
  values = evaluate(roots, lambda u: u.arg[0].numpy().reshape(u.arg[1]))
  return [u if u.op == "buffer" else buffer(Buffer.of(v, u.dtype, "INTERP"), shape(u), u.dtype) for u, v in zip(roots, values)]


def settled(roots: list[UOp]) -> list[UOp]:
  """The roots with every node that has been computed before as the leaf that it became."""
  done: dict[UOp, UOp] = {}
  stack = list(roots)
  while stack:
    u = stack[-1]
    if u in done:
      stack.pop()
    elif "leaf" in u.memo:
      done[u] = u.memo["leaf"]
    elif missing := [s for s in u.src if s not in done]:
      stack.extend(missing)
    else:
      done[u] = rebuild(u, tuple(done[s] for s in u.src))
  return [done[u] for u in roots]
