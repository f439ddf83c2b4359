"""The gradient of a jitted call: a jitted function itself, from what is passed back to the results, and from what the
call read, to the gradients of its arguments and of the parameters that it reached. It computes anew what it needs of
the function, as that of a checkpoint does: a call keeps nothing for it but what it read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mini.capture import StandIn, leaf_alone, leaf_beneath
from mini.engine.place import device_of
from mini.given import Gradients, all_inputs, needs, remade, with_gradient
from mini.grad import gradients
from mini.ir import graph
from mini.ir.sizes import varies
from mini.ir.uop import UOp, toposort
from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.trace import local
from mini.types import promote_types

MOST_HELD = (
  1024  # bytes of what a call reads and updates, as a generator's state: of these there are two until then
)


class Pullback:
  """Of those results of a traced function that depend on what requires a gradient."""

  @staticmethod
  def of(
    results: Sequence[UOp],
    read: Mapping[int, Tensor],
    tags: Mapping[int, UOp],
    updated: set[Tensor],
    arguments: set[int],
  ) -> Pullback | None:
    """None where there is none of them, and where the function updates much of what they are computed from, as of a
    cache: all of it would be held.

    results: nodes of the trace. read: {place: a tensor from outside}, tags: {place: what stood for a leaf}
    arguments: their places
    """
    smooth = [n for n, u in enumerate(results) if needs(u)]
    below = {*toposort(*(results[n] for n in smooth))}
    leaves = {n: leaf for n, t in read.items() if (leaf := leaf_beneath(t)) in below}
    held = any(read[n] in updated and read[n].nbytes > MOST_HELD for n in leaves)
    nodes = [*leaves.values(), *(results[n] for n in smooth)]
    if not smooth or held or any(varies(graph.shape(u)) or not isinstance(device_of(u), str) for u in nodes):
      return None
    of = {n: u for n, u in tags.items() if u in below}
    return Pullback({n: results[n] for n in smooth}, leaves, of, arguments)

  def __init__(
    self, results: dict[int, UOp], leaves: dict[int, UOp], tags: dict[int, UOp], arguments: set[int]
  ):
    """results: by their numbers. leaves, tags: what was read, and of what gradients are taken, by their places."""
    self.results, self.leaves, self.tags, self.arguments = results, leaves, tags, arguments
    self.kind = functools.reduce(promote_types, (u.dtype for u in results.values()))
    self.run: Callable[..., Any] | None = None  # jitted, once it is asked for

  def values(self, found: Sequence[Tensor]) -> list[UOp]:
    """What a call reads. To be asked for before it runs: what it updates is copied, then. An argument was traced as
    memory of its own, though it be a view, such as a part of an optimizer's buffer."""
    return [leaf_alone(found[n]) if n in self.arguments else leaf_beneath(found[n]) for n in self.leaves]

  def attach(self, made: Sequence[Tensor], values: Sequence[UOp], found: Sequence[Tensor]) -> None:
    """Have the results of a call depend on what the function depends on."""
    inputs = [found[n]._uop for n in self.tags]

    def rule(g: UOp, out: UOp, *src: UOp) -> Gradients:
      return self.pulled(self.apart(g), values, src)

    if len(self.results) == 1:
      (n,) = self.results
      made[n]._uop = with_gradient(made[n]._uop, rule, *inputs)
      return
    sizes = [graph.numel(u) for u in self.results.values()]
    whole = with_gradient(graph.full((sum(sizes),), 0, self.kind), rule, *inputs)  # of all; nobody reads it
    for k, n in enumerate(self.results):
      widths = sum(sizes[:k]), sum(sizes[k + 1 :])
      made[n]._uop = with_gradient(made[n]._uop, functools.partial(placed, self.kind, widths), whole)

  def apart(self, g: UOp) -> list[UOp]:
    """What is passed back to each result."""
    found, start = [], 0
    for u in self.results.values():
      n = graph.numel(u)
      part = g if len(self.results) == 1 else graph.shrink(g, ((start, start + n),))
      found.append(graph.cast(graph.reshape(part, graph.shape(u)), u.dtype))
      start += n
    return found

  def pulled(self, gs: Sequence[UOp], values: Sequence[UOp], inputs: Sequence[UOp]) -> Gradients:
    """The gradient for each input: as a graph, or, where that is not differentiated, computed at once."""
    if not local.once or local.current is not None or local.samples is not None:
      return tuple(self.nodes(gs, values, inputs))
    if self.run is None:
      from mini.jitted import jit

      self.run = jit(self.back)
    with no_grad():
      given = [*map(Tensor, (*values, *gs))]
      given[0].realize(*given[1:])
      found = self.run(given[: len(values)], given[len(values) :])
    return tuple(None if t is None else t._uop for t in found)

  def back(self, values: Sequence[Tensor], gs: Sequence[Tensor]) -> list[Tensor | None]:
    """What is jitted: each gradient, None where there is none."""
    found = self.nodes([t.uop for t in gs], [t.uop for t in values])
    return [None if u is None else Tensor(u) for u in found]

  def nodes(self, gs: Sequence[UOp], values: Sequence[UOp], inputs: Sequence[UOp] = ()) -> list[UOp | None]:
    """The gradients. inputs: what gradients of these may pass to."""
    traced = self.traced
    table = dict(zip(self.leaves.values(), values))
    table |= dict(zip(self.bare, inputs or over([u.src[0] for u in self.bare], table)))
    table |= dict(zip(self.seeds, gs))
    found = iter(over([u for u in traced if u is not None], table))
    return [None if u is None else next(found) for u in traced]

  @functools.cached_property
  def traced(self) -> list[UOp | None]:
    """Those of the function as it was traced."""
    table: dict[UOp, UOp] = dict(zip(self.tags.values(), self.bare))
    return gradients(over([*self.results.values()], table), self.seeds, self.bare)

  @functools.cached_property
  def bare(self) -> list[UOp]:
    """What gradients are taken of, without the hooks of leaves: those are for whoever asked for the gradient."""
    return [graph.tag(u.src[0]) for u in self.tags.values()]

  @functools.cached_property
  def seeds(self) -> list[UOp]:
    """What stands for what is passed back."""
    found = []
    for u in self.results.values():
      memory = StandIn(device_of(u), u.dtype, graph.numel(u))
      found.append(graph.tag(graph.buffer(memory, graph.shape(u), u.dtype)))
    return found


def placed(kind: Any, widths: tuple[int, int], g: UOp, out: UOp, whole: UOp) -> Gradients:
  """One result's part of what is passed back to all."""
  return (graph.pad(graph.cast(graph.reshape(g, (graph.numel(g),)), kind), (widths,)),)


def over(nodes: Sequence[UOp], table: dict[UOp, UOp]) -> list[UOp]:
  """The same of other nodes. table: {a node beneath them: what takes its place}; gets all others."""
  stack = [*nodes]
  while stack:
    u = stack[-1]
    if u in table:
      stack.pop()
    elif missing := [s for s in all_inputs(u) if s not in table]:
      stack += missing
    else:
      src = tuple(table[s] for s in all_inputs(u))
      table[u] = new = remade(u, src) if src else u
      if new is not u and "hooks" in u.memo:
        new.memo["hooks"] = u.memo["hooks"]
  return [table[u] for u in nodes]
