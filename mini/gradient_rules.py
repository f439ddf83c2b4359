"""What a node says of its own gradient: a rule in the place of those of its operations, and values that are made again
when their gradient is taken, rather than kept until then. mini/grad.py walks along both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mini.engine.device_of import held, place
from mini.ir.graph import after, detach, full, shape, tag
from mini.ir.uop import UOp, rebuild, unknown
from mini.types import MiniError

OF_TAGS = (
  "owner",
  "retains",
  "hooks",
  "named",
  "labels",
)  # what a node's memo says of the handles that know it
Gradients = tuple[UOp | None, ...]
Rule = Callable[..., Gradients]  # (g, out, *sources) -> a gradient for each source, or None


# ---------------------------------------------------------------- values whose gradient is given


class Given(NamedTuple):
  """What the memo of a tag may hold: a rule as the rows of GRADS, and the nodes that it passes gradients to.
  exact: where it gives None, there is no dependence; else that is a gradient of zeros."""

  rule: Rule
  inputs: tuple[UOp, ...]
  exact: bool = False


def with_gradient(value: UOp, rule: Rule, *inputs: UOp, exact: bool = False) -> UOp:
  """value, whose gradient with respect to these nodes a rule gives, and not the operations that it was made by: the
  rule has a better one, or they have none. No gradient passes to any other node.

  >>> from mini.grad import gradient
  >>> from mini.ir import graph
  >>> from mini.types import dtypes
  >>> x = graph.tag(graph.buffer("x", (3,), dtypes.float32))
  >>> rounded = with_gradient(graph.alu("round", x), lambda g, out, x: (g,), x)
  >>> one = graph.full((3,), 1, dtypes.float32)
  >>> gradient(rounded, one, [x])[0] is one
  True
  """
  u = tag(value)
  u.memo["given"] = Given(rule, inputs, exact)
  return u


def with_lost_gradient(u: UOp) -> UOp:
  """A tag that was read from text, whose gradient was given by a function of the process that printed it."""

  def lost(g: UOp, out: UOp, *inputs: UOp) -> Gradients:
    raise MiniError(
      "the gradient of this value was given by a function, which its text does not have\n"
      "  take gradients where the graph was made: text holds those as well"
    )

  if "given" not in u.memo:
    u.memo["given"] = Given(lost, u.src)
  return u


def gradient_inputs(u: UOp) -> tuple[UOp, ...]:
  """The nodes that a gradient of u may pass to."""
  return u.memo["given"].inputs if "given" in u.memo else u.src


def all_inputs(u: UOp) -> tuple[UOp, ...]:
  """What u is computed from, and what its gradient is."""
  return (*u.src, *u.memo["given"].inputs) if "given" in u.memo else u.src


def remade(u: UOp, inputs: tuple[UOp, ...]) -> UOp:
  """u of others than `all_inputs(u)`."""
  if "given" not in u.memo:
    return rebuild(u, inputs)
  rule, _, exact = u.memo["given"]
  return u if inputs == all_inputs(u) else with_gradient(inputs[0], rule, *inputs[1:], exact=exact)


def over(
  nodes: Iterable[UOp], table: dict[UOp, UOp], remake: Callable[[UOp, tuple[UOp, ...]], UOp] = remade
) -> list[UOp]:
  """The same of other nodes. table: {a node beneath them: what takes its place}; gets all others. remake: makes a node
  of others than `all_inputs` of it, or of these."""
  roots = [*nodes]
  stack = [*roots]
  while stack:
    u = stack[-1]
    if u in table:
      stack.pop()
    elif missing := [s for s in all_inputs(u) if s not in table]:
      stack += missing
    else:
      table[u] = remake(u, tuple([table[s] for s in all_inputs(u)]))
  return [table[u] for u in roots]


def primitive(root: UOp) -> UOp:
  """The same with what nodes `invoke` stand for, and its gradients."""
  return over([root], {}, _primitive)[0]


def _primitive(u: UOp, inputs: tuple[UOp, ...]) -> UOp:
  """The same of one node. It is made once: tags of a second time would be others."""
  new = u.memo.get("primitive")
  if new is None:
    new = u.arg.function.of(inputs, lazily=False)[u.arg.n] if u.op == "invoke" else remade(u, inputs)
    if new is u:
      return u
    new.memo.update((key, u.memo[key]) for key in OF_TAGS if key in u.memo)
    u.memo["primitive"] = new
  if "leaf" in u.memo:
    (new.src[0] if new.op == "tag" else new).memo.setdefault("leaf", u.memo["leaf"])
  return new


def constant_in(value: UOp, *inputs: UOp) -> UOp:
  """value, computed from these nodes, and yet the same whatever they are: their gradients are zeros."""
  passed = [u for u in inputs if needs(u)]
  if not passed or value.dtype.kind != "f":
    return value
  return with_gradient(value, lambda g, out, *xs: tuple(full(shape(x), 0, x.dtype) for x in xs), *passed)


def needs(u: UOp) -> bool:
  """Does a gradient pass from this node to some tag?"""
  got = u.memo.get("needs")
  if got is None:
    for n in unknown(u, "needs"):
      if "given" in n.memo:
        passes = any(map(needs, gradient_inputs(n)))
      elif n.op == "invoke":
        passes = any(n.src[k].memo["needs"] for k in n.arg.passed)
      else:
        passes = n.op == "tag"
        for s in n.src:
          passes = passes or s.memo["needs"]
      n.memo["needs"] = passes and n.dtype.kind == "f" and n.op != "detach"
    got = u.memo["needs"]
  return got


def without_gradient(u: UOp) -> UOp:
  """u, as what no gradient passes to. Whether one would is not looked for in all of a graph."""
  return u if not u.src or u.memo.get("needs") is False else detach(u)


# ---------------------------------------------------------------- values that are made again


class Region:
  """A part of a graph of whose values the gradient keeps none: it makes them again from what the region starts from,
  once a gradient has arrived. What comes out of it is kept. Nodes know theirs, the innermost; it holds no node."""

  def __init__(self, outputs: Sequence[UOp]):
    self.outputs = {u.serial for u in outputs}
    self.outer: Region | None = None

  def __contains__(self, u: UOp) -> bool:
    r = u.memo.get("region")
    while r is not None and r is not self:
      r = r.outer
    return r is self and u.serial not in self.outputs


def made_again(outputs: Sequence[UOp], since: int) -> None:
  """What was made since that serial, and is beneath these nodes, becomes a region."""
  region = Region(outputs)
  stack, seen = list(outputs), set(outputs)
  while stack:
    u = stack.pop()
    if u.serial < since:
      continue
    inner = u.memo.setdefault("region", region)
    while inner.outer is not None:
      inner = inner.outer
    if inner is not region:
      inner.outer = region
    stack += [s for s in u.src if s not in seen]
    seen.update(u.src)


class Again:
  """The regions that one gradient passes through, and what it makes again of them."""

  def __init__(self) -> None:
    self.arrived: dict[Region, UOp] = {}  # the first gradient in a region
    self.made: dict[tuple[Region, UOp], UOp] = {}

  def replaced(self, new: UOp, region: Region, start: int, g: UOp) -> UOp:
    """What a rule made of g, with values that were made again in the place of those of the region and of those around
    it.
    start: the serial before the rule."""
    r: Region | None = region
    while r is not None:
      self.arrived.setdefault(r, g)
      r = r.outer
    table: dict[UOp, UOp] = {g: g}
    stack = [new]
    while stack:
      u = stack[-1]
      if u in table:
        stack.pop()
      elif u.serial < start:
        table[u] = self.again(region, u) if self.around(region, u) else u
      elif below := [s for s in all_inputs(u) if s not in table]:
        stack += below
      else:
        table[u] = remade(u, tuple(table[s] for s in all_inputs(u)))
    return table[new]

  @staticmethod
  def around(region: Region | None, u: UOp) -> Region | None:
    """The innermost of this region and those around it in which u is."""
    while region is not None and u not in region:
      region = region.outer
    return region

  def again(self, region: Region, u: UOp) -> UOp:
    """A value of this region, or of one around it, made again for this one."""
    stack = [(region, u)]
    while stack:
      r, n = key = stack[-1]
      outer = self.around(r.outer, n)
      below = [(r, s) for s in all_inputs(n)] if n in r else [(outer, n)] if outer else []
      below = [k for k in below if k not in self.made]
      if key in self.made or below:
        stack += below
        if not below:
          stack.pop()
        continue
      if n in r:
        self.made[key] = remade(n, tuple(self.made[r, s] for s in all_inputs(n)))
      else:
        base, g = self.made[outer, n] if outer else n, self.arrived[r]
        first = g if place(g) == place(base) else base
        self.made[key] = after(base, first) if held(base) else base
    return self.made[region, u]
