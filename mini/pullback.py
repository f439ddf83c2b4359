"""The gradient of a jitted call: a jitted function itself, from what is passed back to the results, and from what the
call read, to the gradients of its arguments and of the parameters that it reached. It computes anew what it needs of
the function, as that of a checkpoint does: a call keeps nothing for it but what it read.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from mini import gradient_rules
from mini.capture import StandIn, Trace, leaf_alone, leaf_beneath
from mini.changes import During
from mini.engine.device_of import device_of
from mini.grad import gradients
from mini.gradient_rules import Gradients, Rule, needs, remade, with_gradient
from mini.ir import graph
from mini.ir.sizes import varies
from mini.ir.uop import UOp, toposort
from mini.tensor import Tensor
from mini.tensor.autograd import no_grad, unrounded
from mini.tensor.handle import on_device
from mini.tensor.trace import local
from mini.types import DType, as_dtype, promote_types

# bytes of what a call reads and updates, as a generator's state: of these there are two until the gradient is taken
MOST_HELD = 1024


class Pullback:
  """Of those results of a traced function that depend on what requires a gradient."""

  @staticmethod
  def of(
    results: Sequence[UOp],
    read: Mapping[int, Tensor],
    tags: Mapping[int, UOp],
    updated: set[Tensor],
    arguments: set[int],
    trace: Trace,
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
    return Pullback({n: results[n] for n in smooth}, leaves, of, arguments, trace)

  def __init__(
    self,
    results: dict[int, UOp],
    leaves: dict[int, UOp],
    tags: dict[int, UOp],
    arguments: set[int],
    trace: Trace,
  ):
    """results: by their numbers. leaves, tags: what was read, and of what gradients are taken, by their places.

    Memory from outside is not kept: something else stands for it; and for tags, those without the hooks of leaves,
    which are for whoever asked for the gradient.
    """
    self.arguments, self.trace = arguments, trace
    instead = {u: u if isinstance(u.arg[0], StandIn) else stand_in(u) for u in leaves.values()}
    self.leaves = {n: instead[u] for n, u in leaves.items()}
    below = over([u.src[0] for u in tags.values()], {**instead})
    self.tags = {n: graph.tag(u) for n, u in zip(tags, below)}
    instead |= dict(zip(tags.values(), self.tags.values()))
    self.results = dict(zip(results, over([*results.values()], {**instead})))
    # A rule, or a hook, that the function made may hold nodes of what stood for these before.
    self.known = [(weakref.ref(u), new) for u, new in instead.items()]
    self.kind = functools.reduce(promote_types, (u.dtype for u in results.values()))
    # where what is passed back to several comes together
    self.device = str(device_of(next(iter(results.values()))))
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
      made[n]._uop = with_gradient(made[n]._uop, rule, *inputs, exact=True)
      return
    sizes = [graph.numel(u) for u in self.results.values()]
    zeros = graph.full((sum(sizes),), 0, self.kind)  # of all; nobody reads them
    whole = with_gradient(zeros, rule, *inputs, exact=True)
    for k, n in enumerate(self.results):
      widths = sum(sizes[:k]), sum(sizes[k + 1 :])
      rule_of_one = functools.partial(placed, self.kind, widths, self.device)
      made[n]._uop = with_gradient(made[n]._uop, rule_of_one, whole)

  def apart(self, g: UOp) -> list[UOp | None]:
    """What is passed back to each result; None where nothing is."""
    found: list[UOp | None] = []
    start = 0
    for u in self.results.values():
      stop = start + graph.numel(u)
      if len(self.results) == 1 or reaches(g, start, stop):
        part = g if len(self.results) == 1 else graph.shrink(g, ((start, stop),))
        found.append(on_device(graph.cast(graph.reshape(part, graph.shape(u)), u.dtype), str(device_of(u))))
      else:
        found.append(None)
      start = stop
    return found

  def pulled(self, gs: Sequence[UOp | None], values: Sequence[UOp], inputs: Sequence[UOp]) -> Gradients:
    """The gradient for each input: as a graph, or, where that is not differentiated, computed at once."""
    several = len({device_of(u) for u in (*values, *(g for g in gs if g is not None))}) > 1
    if several or not local.once or local.current is not None or local.samples is not None:
      return tuple(self.nodes(gs, values, inputs))
    if self.run is None:
      from mini.jitted import jit

      self.run = jit(self.back)
    with no_grad():
      given, back = [*map(Tensor, values)], [None if g is None else Tensor(g) for g in gs]
      Tensor.realize(*given, *(g for g in back if g is not None))
      found = self.run(given, back, [kind_of_gradient(u).name for u in inputs])
    return tuple(None if t is None else graph.cast(t._uop, u.dtype) for t, u in zip(found, inputs))

  def back(
    self, values: Sequence[Tensor], gs: Sequence[Tensor | None], kinds: Sequence[str]
  ) -> list[Tensor | None]:
    """What is jitted: each gradient, in these types, None where there is none."""
    found = self.nodes([None if g is None else g._node for g in gs], [t._node for t in values])
    return [None if u is None else Tensor(unrounded(u, as_dtype(k))) for u, k in zip(found, kinds)]

  def nodes(
    self, gs: Sequence[UOp | None], values: Sequence[UOp], inputs: Sequence[UOp] = ()
  ) -> list[UOp | None]:
    """The gradients. inputs: what gradients of these may pass to.

    They are those of the function as it was traced, of other nodes: what rules and hooks made by it hold is part of the
    trace. Each time anew, as they may read what is outside of it.
    """
    seeds = {stand_in(u): (u, g) for u, g in zip(self.results.values(), gs) if g is not None}
    with During(self.trace, "goes_on", True):
      traced = gradients([u for u, _ in seeds.values()], [*seeds], [*self.tags.values()])
    table = dict(zip(self.leaves.values(), values))
    table |= dict(zip(self.tags.values(), inputs or over([u.src[0] for u in self.tags.values()], {**table})))
    table |= {old: table[new] for ref, new in self.known if (old := ref()) is not None}
    table |= {seed: g for seed, (_, g) in seeds.items()}
    found = iter(over([u for u in traced if u is not None], table, self.trace))
    return [None if u is None else next(found) for u in traced]


def kind_of_gradient(u: UOp) -> DType:
  """The type of the gradient of a node: a leaf may have set a wider one than its own."""
  owner = u.memo["owner"]() if "owner" in u.memo else None
  return u.dtype if owner is None else owner.grad_dtype


def stand_in(u: UOp) -> UOp:
  """Memory that has no values, in the place of a node."""
  memory = StandIn(str(device_of(u)), u.dtype, graph.numel(u))
  return graph.buffer(memory, graph.shape(u), u.dtype)


def reaches(g: UOp, start: int, stop: int) -> bool:
  """Is something of a sum of what `placed` makes within these elements?"""
  if g.op == "add":
    return any(reaches(u, start, stop) for u in g.src)
  if g.op == "cat":
    ends = [*accumulate(graph.numel(u) for u in g.src)]
    parts = zip(g.src, [0, *ends], ends)
    return any(reaches(u, start - lo, stop - lo) for u, lo, hi in parts if lo < stop and start < hi)
  if g.op != "pad":
    return True
  ((low, high),) = g.arg
  return low < stop and start < graph.numel(g) - high


def placed(kind: Any, widths: tuple[int, int], device: str, g: UOp, out: UOp, whole: UOp) -> Gradients:
  """One result's part of what is passed back to all."""
  part = on_device(graph.cast(graph.reshape(g, (graph.numel(g),)), kind), device)
  return (graph.pad(part, (widths,)),)


def over(nodes: Sequence[UOp], table: dict[UOp, UOp], trace: Trace | None = None) -> list[UOp]:
  """`gradient_rules.over`; hooks stay.

  trace: where gradients of these may be taken, the one that rules and hooks are of: what they make is moved, too."""
  places = {**table} if trace else {}

  def remake(u: UOp, inputs: tuple[UOp, ...]) -> UOp:
    new = remade(u, inputs)
    if new is u:
      return u
    own, hooks = u.memo.get("given"), u.memo.get("hooks")
    if trace and own:
      rule = functools.partial(moved, own.rule, places, trace)
      new.memo["given"] = new.memo["given"]._replace(rule=rule)
    if trace and hooks:
      hooks = {k: functools.partial(moved_one, hook, places, trace) for k, hook in hooks.items()}
    if hooks:
      new.memo["hooks"] = hooks
    return new

  return gradient_rules.over(nodes, table, remake)


def moved(rule: Rule, places: Mapping[UOp, UOp], trace: Trace, *nodes: UOp) -> Gradients:
  """What a rule of a traced function gives, of what a call read."""
  with During(trace, "goes_on", True):
    found = rule(*nodes)
  made = iter(over([u for u in found if u is not None], {**places, **dict(zip(nodes, nodes))}, trace))
  return tuple(None if u is None else next(made) for u in found)


def moved_one(hook: Callable[[UOp], UOp], places: Mapping[UOp, UOp], trace: Trace, g: UOp) -> UOp:
  """The same of a hook."""
  return moved(lambda g: (hook(g),), places, trace, g)[0]  # type: ignore[return-value]
