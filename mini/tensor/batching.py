"""A graph of one sample becomes the graph of many: one rule for each operation.

`batched(roots, table, n)` rebuilds what depends on the nodes of a table, which have a value for each of n samples,
along an axis in front. All else is shared by the samples and stays as it is. What comes out is a graph of the same
operations. `BATCHING` has the rules by family: views and operations along axes count these one further; elementwise
ones bring their inputs to one shape; of `gather` and `scatter` every sample has its own index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from mini.changes import During
from mini.engine.device_of import place
from mini.grad import total
from mini.gradient_rules import all_inputs, with_gradient
from mini.ir import graph
from mini.ir.extern import Extern
from mini.ir.graph import shape
from mini.ir.ops import OPS, is_elementwise
from mini.ir.uop import UOp
from mini.tensor.trace import local
from mini.types import DType, MiniError

Batch = Callable[..., UOp]  # (the operation's node, n, its sources with the new axis; None for a shared one)


# ---------------------------------------------------------------- the rules


def spread_out(x: UOp, n: int) -> UOp:
  """A shared value, the same for each of n samples: a view."""
  return graph.expand_to(x, (n, *shape(x)))


def _all(u: UOp, n: int, xs: Sequence[UOp | None]) -> list[UOp]:
  return [spread_out(s, n) if x is None else x for s, x in zip(u.src, xs)]


def _elementwise(u: UOp, n: int, *xs: UOp | None) -> UOp:
  """What has the shape () in a sample is repeated; where it is shared too, it stays ()."""
  s = shape(u)

  def fitted(one: UOp, x: UOp | None) -> UOp:
    if x is None:
      return spread_out(one, n) if shape(one) else one
    return graph.expand(graph.reshape(x, (n, *(1,) * len(s))), (n, *s)) if s and not shape(one) else x

  src = [fitted(one, x) for one, x in zip(u.src, xs)]
  if u.op == "cast":
    return graph.cast(src[0], u.dtype)
  return graph.bitcast(src[0], u.dtype) if u.op == "bitcast" else graph.alu(u.op, *src)


def _gather(u: UOp, n: int, *xs: UOp | None) -> UOp:
  x, index = _all(u, n, xs)
  return graph.gather(x, index, u.arg + 1)


def _scatter(u: UOp, n: int, *xs: UOp | None) -> UOp:
  base, index, value = _all(u, n, xs)
  return graph.scatter(base, index, value, u.arg[0], u.arg[1] + 1)


def _call(u: UOp, n: int, *xs: UOp | None) -> UOp:
  """One call, which makes the samples one after another."""
  f, s = u.arg
  shared = tuple(x is None for x in xs)

  def many(*arrays: np.ndarray) -> np.ndarray:
    return np.stack([f.f(*(x if alone else x[k] for x, alone in zip(arrays, shared))) for k in range(n)])

  g = f.of_many.get((n, shared)) or f.of_many.setdefault((n, shared), Extern(f"{f.name}.each", many))
  return graph.call(g, tuple(one if x is None else x for one, x in zip(u.src, xs)), (n, *s), u.dtype)


def _after(u: UOp, n: int, x: UOp | None, first: UOp | None) -> UOp:
  value, waits = _all(u, n, (x, first))
  return graph.after(value, waits if first is not None else u.src[1])


def _whole(n: int) -> tuple[tuple[int, int], ...]:
  return ((0, n),)


# fmt: off
def _invoke(u: UOp, n: int, *xs: UOp | None) -> UOp:
  (found,) = batched([u.arg.function.of(u.src, lazily=False)[u.arg.n]], dict(zip(u.src, xs)), n)
  assert found is not None
  return found


BATCHING: dict[str, Batch] = {
  "reshape": lambda u, n, x: graph.reshape(x, (n, *u.arg)),
  "permute": lambda u, n, x: graph.permute(x, (0, *(a + 1 for a in u.arg))),
  "expand":  lambda u, n, x: graph.expand(x, (n, *u.arg)),
  "pad":     lambda u, n, x: graph.pad(x, ((0, 0), *u.arg)),
  "shrink":  lambda u, n, x: graph.shrink(x, (*_whole(n), *u.arg)),
  "flip":    lambda u, n, x: graph.flip(x, tuple(a + 1 for a in u.arg)),
  "reduce":  lambda u, n, x: graph.reduce(x, u.arg[0], tuple(a + 1 for a in u.arg[1])),
  "scan":    lambda u, n, x: graph.scan(x, u.arg[0], u.arg[1] + 1),
  "gather":  _gather,
  "scatter": _scatter,
  "cat":     lambda u, n, *xs: graph.cat(tuple(_all(u, n, xs)), u.arg + 1),
  "copy":    lambda u, n, x: graph.copy(x, u.arg),
  "shard":   lambda u, n, x: graph.shard(x, u.arg[0] + 1, u.arg[1]),
  "stage":   lambda u, n, x: graph.stage(x),
  "detach":  lambda u, n, x: graph.detach(x),
  "tag":     lambda u, n, x: x,  # told the samples' gradients apart, which are taken
  "call":    _call,
  "after":   _after,
  "invoke":  _invoke,
}
# fmt: on


def rule_of(op: str) -> Batch | None:
  """The rule of an operation; None for a leaf, which has no sample."""
  return _elementwise if is_elementwise(op) else BATCHING.get(op)


def batched(roots: Sequence[UOp], table: Mapping[UOp, UOp | None], n: int) -> list[UOp | None]:
  """What the roots are for each of n samples: T[n, *s] for a root T[s]; None for one that all of them share.

  table: {a node of one sample: what it is for all of them, with an axis of size n in front}
  """
  done: dict[UOp, UOp | None] = dict(table)
  stack = list(reversed(roots))
  while stack:
    u = stack[-1]
    if u in done:
      stack.pop()
    elif below := [s for s in all_inputs(u) if s not in done]:
      stack += reversed(below)
    else:
      done[u] = _renewed(u, [done[s] for s in all_inputs(u)], n)
  return [done[u] for u in roots]


def _renewed(u: UOp, inputs: list[UOp | None], n: int) -> UOp | None:
  if all(x is None for x in inputs):
    return None
  if "given" in u.memo:
    return _given(u, inputs, n)
  rule = rule_of(u.op)
  assert rule is not None, f"{u.op}, of family {OPS[u.op].family}, needs a row in BATCHING"
  return rule(u, n, *inputs)


def _given(u: UOp, inputs: list[UOp | None], n: int) -> UOp:
  """A value with a gradient of its own: the samples' gradient is the rule's graph for each of them."""
  rule, ones, exact = u.memo["given"]
  value, *several = inputs
  shared = [x is None for x in several]

  def batched_rule(g: UOp, out: UOp, *xs: UOp) -> tuple[UOp | None, ...]:
    samples = Samples(n, "different")
    with samples:
      one = [x if alone else samples.one(x) for x, alone in zip(xs, shared)]
      parts = rule(samples.one(g), samples.one(out), *one)
    found = iter(samples.all([p for p in parts if p is not None]))

    def summed(p: UOp | None, alone: bool) -> UOp | None:
      if p is None:
        return None
      many = next(found)
      many = spread_out(p, n) if many is None else many
      return graph.reshape(total(many, (0,)), shape(p)) if alone else many

    return tuple(map(summed, parts, shared))

  own = tuple(one if x is None else x for one, x in zip(ones, several))
  return with_gradient(spread_out(u.src[0], n) if value is None else value, batched_rule, *own, exact=exact)


# ---------------------------------------------------------------- a function of one sample


class Samples:
  """`with` it, a function runs for one sample of n: a table of nodes that stand for one, and what they are for all."""

  def __init__(self, n: int, randomness: str):
    self.n, self.randomness = n, randomness
    self.table: dict[UOp, UOp] = {}
    self.outer: Any = None  # the samples of which all of this is one

  def __enter__(self) -> None:
    self.outer, local.samples = local.samples, self

  def __exit__(self, *exception: object) -> None:
    local.samples = self.outer

  def left(self) -> During:
    """What is done for all of the samples at once."""
    return During(local, "samples", self.outer)

  def one(self, many: UOp) -> UOp:
    """many: T[n, *s]   ->   T[s], which stands for one of them. A gradient passes to it."""
    s = shape(many)[1:]
    memory = Memory(place(many), many.dtype, prod(s))
    u = graph.tag(graph.buffer(memory, s, many.dtype))
    self.table[u] = many
    return u

  def all(self, roots: Sequence[UOp]) -> list[UOp | None]:
    """What nodes of one sample are for all; None for what they share."""
    return batched(roots, self.table, self.n)

  def draw(
    self, words: Callable[[tuple[int, ...]], tuple[UOp, UOp]], shape: tuple[int, ...]
  ) -> tuple[UOp, UOp]:
    """Random bits of a shape, for one sample."""
    if self.randomness == "error":
      raise MiniError(
        "vmap: the function draws random numbers\n"
        '  vmap(f, randomness="different") draws others for each sample, "same" the same for all'
      )
    with self.left():
      if self.randomness == "same":
        return words(shape)
      first, second = words((self.n, *shape))
      return self.one(first), self.one(second)


class Memory:
  """What a node that stands for one sample is the memory of: nothing, so whoever asks for its values fails."""

  __slots__ = ("device", "dtype", "leaves", "size")

  def __init__(self, device: Any, dtype: DType, size: int):
    self.device, self.dtype, self.size = device, dtype, size
    self.leaves: dict[Any, Any] = {}  # its nodes, as a Buffer keeps them

  def refuse(self, *_: Any) -> Any:
    raise MiniError(
      "vmap: the function asks for the values of a tensor that stands for each of many samples\n"
      "  item(), numpy(), bool(x) and the like cannot be within vmap; where(), gather() and the like can"
    )

  memory = property(refuse)
  numpy = bytes = on = copy = refuse
