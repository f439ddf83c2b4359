"""Graph -> kernels: every value is inlined, staged on the stack inside its user, or global.

One walk over the whole graph, users before sources. A *demand* on a value is (root, index): the kernel that wants it
and the index tuple at which it does; its context is the ordered ranges that enclose the user. When a node is reached,
all demands on it are known, so the decision (`place`) is final, and what gets memory passes one demand on. A second
pass per kernel, sources before users, builds the scalar DAG that ir/kernel.py describes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import NamedTuple

from mini.ir.graph import numel, shape
from mini.ir.guards import guarded
from mini.ir.index import Index, live, output_ranges, stored_index, view_index
from mini.ir.kernel import kernel, load, param, reduce_over, scan_over, stage_at, store
from mini.ir.ops import is_elementwise
from mini.ir.uop import (
  FALSE,
  TRUE,
  UOp,
  add,
  both,
  bounds,
  const,
  copy,
  free_in,
  less,
  mul,
  range_,
  rsize,
  uop,
)
from mini.schedule.cost import (
  ALWAYS_GLOBAL,
  LEAVES,
  TRANSPARENT,
  Value,
  Weights,
  decide,
  is_contraction,
  stands_in,
  within,
)
from mini.schedule.fused_chains import Chains, Host, factors, find_chains, hosts, repeated, rows_at
from mini.schedule.gathers import as_index, gathered, guard, resolved, stand_in
from mini.schedule.reachability import Needs
from mini.schedule.rematerialize import kept_instead
from mini.types import dtypes


@dataclass(frozen=True, eq=False)
class Root:
  """A kernel in the making: it stores `value`, computed at `ranges`, into `memory` at `at`."""

  memory: UOp  # param
  node: UOp  # the graph node that the kernel (or this part of it) gives memory to
  value: UOp
  index: Index  # of value: the kernel's ranges
  at: Index  # of memory
  gate: UOp = TRUE
  how: str | None = None  # accumulate
  accumulates: Index = ()  # ranges along which stores to one address meet: they stay loops, in order


class Stored(NamedTuple):
  """Where a kernel stores what it computes on its way."""

  memory: UOp
  at: Index
  how: str | None = None


Place = Callable[[Index], Index]
Demands = dict[tuple[Root, Index], tuple[UOp, ...]]


class Schedule:
  """outputs: {name: node}. Construction decides where values live; `built` are the kernels of that."""

  def __init__(
    self,
    outputs: dict[str, UOp],
    order: list[UOp],
    awaited: Mapping[UOp, UOp],
    cut: Mapping[UOp, str],
    late: Mapping[str, int],
    gpu: bool = False,
  ):
    """order: the nodes, sources first. awaited: {tag: what is to be there before anything is computed from it}. cut:
    nodes that get memory, and why. late: of inputs, how late they come. gpu: no stack for rows between products."""
    self.awaited, self.needs = awaited, Needs(order, awaited)
    self.late: dict[UOp, int] = {}
    for u in order if late else ():
      mine = late.get(u.arg[0], 0) if u.op == "buffer" else 0
      self.late[u] = max((self.late[s] for s in u.src), default=mine)
    self.waiting: dict[Root, dict[UOp, None]] = {}  # tags of what a kernel is computed from
    self.demands: dict[UOp, Demands] = {}
    self.wanted: dict[Root, dict[tuple[UOp, Index], None]] = {}
    self.stages: dict[tuple[UOp, Root], tuple[tuple[int, ...], Index]] = {}
    self.reduces: dict[tuple[UOp, Root, Index], dict[int, UOp]] = {}
    self.used: dict[tuple[Root, str], int] = {}
    self.gates: dict[tuple[UOp, Root, Index], UOp] = {}
    self.scalars: dict[tuple[Root, UOp, Index, UOp], UOp] = {}
    self.memory: dict[UOp, UOp] = {}  # node -> param
    self.roots: list[Root] = []
    self.forced: set[UOp] = set()
    # what a kernel stores on its way, by value and its index
    self.asides: dict[Root, dict[tuple[UOp, Index], Stored]] = {}
    self.across: dict[Root, UOp] = {}  # the range of a kernel along whose rows it adds to memory
    self.also: dict[Root, set[UOp]] = {}  # ... and the nodes that get memory so
    # of an inner product: who makes them, at what index
    self.rows_of: dict[UOp, list[tuple[Root, Index]]] = {}
    self.why: dict[str, list[str]] = {}  # of memory: why it is there, and what is on the stack of its kernel
    self.users = Counter(x for n in order for x in n.src)
    self.weights = Weights(order, self.users)
    self.cut = {**kept_instead(order, self.weights, awaited, outputs.values()), **cut}
    self.chains = Chains(frozenset(), frozenset()) if gpu else find_chains(order, set(outputs.values()))
    self.named: dict[UOp, str] = {}
    for name, node in outputs.items():
      self.named.setdefault(node, name)
    self.kept = {*self.named, *self.cut, *awaited.values()}
    for node in reversed(order):
      if node in self.named:
        self.open(node, self.named[node])
      elif node in self.demands and (node.op not in LEAVES or node.op == "iota" and node in self.forced):
        self.place(node)  # an iota that is gathered from: a load knows what is out of bounds
      if node in self.demands and node.op not in LEAVES and node not in self.memory:
        for (root, index), context in self.demands[node].items():
          self.descend(node, root, index, context)
    self.aliases = {name: self.named[node] for name, node in outputs.items() if self.named[node] != name}

  @cached_property
  def built(self) -> dict[Root, UOp]:
    """The kernel of each root, in the order in which they run."""
    made = ((root, self.build(root)) for root in reversed(self.roots))
    return {root: k for root, k in made if k is not None}

  def waits(self) -> dict[UOp, set[UOp]]:
    """Of kernels that are to stand behind others: {kernel: the memories that are to be there}."""
    return {
      k: {m for tag in self.waiting[root] for m in self.beneath(self.awaited[tag])}
      for root, k in self.built.items()
      if root in self.waiting
    }

  # ---------------------------------------------------------------- first walk: where values live

  def fresh(self, root: Root, letter: str, size: int) -> UOp:
    if size == 1:
      return const(0)
    n = self.used[root, letter] = self.used.get((root, letter), -1) + 1
    return range_(letter if n == 0 else f"{letter}{n}", size)

  def demand(self, node: UOp, root: Root, index: Index, context: tuple[UOp, ...]) -> None:
    """The context is cut to the loops that the value will stand in: the same rule by which it is placed."""
    if 0 in shape(node):
      return  # read under a guard that never holds
    own = free_in(index)
    last = max((n + 1 for n, r in enumerate(context) if r in own), default=0)
    self.demands.setdefault(node, {}).setdefault((root, index), context[:last])
    self.wanted.setdefault(root, {})[node, index] = None

  def open(self, node: UOp, name: str) -> None:
    """Give node memory of its own: one kernel starts here, or one for each part of a cat, or two for a scatter."""
    self.memory[node] = param(name, shape(node), node.dtype)
    self.fill(node, self.memory[node], lambda index: index)

  def fill(self, node: UOp, memory: UOp, place: Place) -> None:
    """Make a node in memory. place: where what stands at an index of the node stands in the memory."""
    parts = self.parts(node, memory, place)
    while parts:
      inside = self.start(memory, *parts.pop())
      parts += self.parts(inside[0], memory, inside[1]) if inside else []

  def parts(self, node: UOp, memory: UOp, place: Place) -> list[tuple[UOp, UOp, Place]]:
    """The values that make a node, of which kernels start, each with the node and its place; the last one first."""
    if node.op == "cat":
      ends = accumulate((shape(part)[node.arg] for part in node.src), initial=0)
      return [(node, part, shifted(place, node.arg, end)) for part, end in zip(node.src, ends)]
    if node.op == "scatter":
      self.scatter(memory, node, place)
    return [(node, node.src[0] if node.op in ("scatter", "stage", "copy", "shard") else node, place)]

  def start(self, memory: UOp, node: UOp, value: UOp, place: Place) -> tuple[UOp, Place] | None:
    """Views that only rename elements move from the value to the store: so a matmul keeps its rows and columns. A value
    with parts, which nobody else reads, is made where it is laid, or added to: it and its place are given back."""
    views = []
    top = value
    while value.op in ("reshape", "permute", "detach"):
      views.append(value)
      value = value.src[0]
    if value.op in LEAVES or (value is not node and value in self.memory):
      value, views = top, []

    def at(index: Index) -> Index:
      for v in reversed(views):
        index = stored_index(v, index)
      return place(index)

    if value is not node and value.op in ("cat", "scatter") and all(map(self.is_part, (*views, value))):
      return value, at if views else place
    host = self.companion(node, value, numel(value) == prod(memory.arg[1]))
    index = output_ranges(shape(value))
    if host is None:
      root = Root(memory, node, value, index, at(index))
      self.roots.append(root)
      for product, there in rows_at(value, index, self.chains.wide).items():
        self.rows_of.setdefault(product, []).append((root, there))
      context = self.context_of(value, index)
    else:
      root, how = host.root, "add" if host.across else None
      self.aside(root, node, host.value, host.place, Stored(memory, at(host.at), how))
      why = "each row adds to it" if how else "it is a sum over the same rows"
      self.why.setdefault(memory.arg[0], []).append(
        f"{value.op} in the kernel of {root.memory.arg[0]}: {why}"
      )
      if host.across is not None:
        self.across[root] = host.across
        self.roots.append(Root(memory, node, const(0, value.dtype), index, at(index)))  # before: opened later
        self.demand(host.value, root, host.place, self.loops(root))
        return None
      index, context = host.place, self.loops(root)
    if value is node and node.op not in ("cat", "scatter", "stage", "copy", "shard"):
      self.demands.setdefault(node, {})
      self.descend(node, root, index, context)
    else:
      self.demand(value, root, index, context)
    return None

  def is_part(self, u: UOp) -> bool:
    """Does one other node alone read this, and need it no memory of its own?"""
    return self.users[u] == 1 and u not in self.kept

  def companion(self, node: UOp, value: UOp, whole: bool) -> Host | None:
    """A kernel that makes the rows of a chain of which this value is a sum, and makes it, too. whole: is it all of its
    memory? What is added to a piece waits for the pieces beside it, which may read what that kernel makes."""
    if node is not value and (value in self.memory or value in self.named):
      return None  # it has memory of its own, or will have
    index = output_ranges(shape(value))
    makers = [
      (root, root.index, place, there)
      for product, place in rows_at(value, index, self.chains.wide).items()
      for root, there in self.rows_of.get(product, ())
      if self.level(root) == self.late.get(value, 0)
    ]
    found = (host for host in hosts(value, index, makers) if whole or host.across is None)
    return next((host for host in found if self.apart(host.root, node, value)), None)

  def apart(self, root: Root, node: UOp, value: UOp) -> bool:
    """Does a kernel wait for nothing that is made of a value, nor that for what the kernel makes?"""
    needs = self.needs.any_of
    return not needs((value,), self.made(root)) and not needs(self.values(root), {node, value})

  def level(self, root: Root) -> int:
    """How late the inputs of a kernel come."""
    return max(self.late.get(u, 0) for u in self.values(root))

  def made(self, root: Root) -> set[UOp]:
    """The nodes that a kernel gives memory to."""
    return {root.node, *self.also.get(root, ())}

  def values(self, root: Root) -> list[UOp]:
    """What a kernel computes, and has memory."""
    return [root.value, *(u for u, _ in self.asides.get(root, ()))]

  def aside(self, root: Root, node: UOp, value: UOp, index: Index, stored: Stored) -> None:
    """A kernel stores a value, and with it a node, on its way."""
    self.asides.setdefault(root, {})[value, index] = stored
    self.also.setdefault(root, set()).add(node)
    for u in self.made(root):
      self.needs.tie(u, self.values(root))

  def loops(self, root: Root) -> tuple[UOp, ...]:
    """Those of a kernel, with that in which it adds what each of its rows gives."""
    rs = self.context_of(root.value, root.index)
    return (*rs, self.across[root]) if root in self.across else rs

  def context_of(self, node: UOp, index: Index) -> tuple[UOp, ...]:
    """The loop order of a kernel; a scan runs along its last loop, and rows of a chain are made outside of what repeats
    them."""
    rs = live(index)
    if node.op == "scan":
      last: tuple[UOp, ...] = live((index[node.arg[1]],))
    elif is_contraction(node):
      repeats = (repeated(f) for f in factors(node) if f in self.chains.wide)
      last = live(tuple(index[a] for axes in repeats for a in sorted(axes)))
    else:
      return rs
    return tuple(r for r in rs if r not in last) + last

  def scatter(self, memory: UOp, node: UOp, place: Place) -> None:
    """The accumulating kernel of a scatter; the base is written before it, in place."""
    kind, axis = node.arg
    _, where, value = node.src
    index = output_ranges(shape(value))
    size = shape(node)[axis]
    target = stand_in(where, index, size)
    at = place(tuple(target if a == axis else i for a, i in enumerate(index)))
    meets = live((index[axis],))
    root = Root(
      memory, node, value, index, at, guard(where, index, size), None if kind == "set" else kind, meets
    )
    self.roots.append(root)
    context = meets + tuple(r for r in live(index) if r not in meets)
    self.demand(value, root, index, context)
    self.demand(where, root, index, context)

  def descend(self, node: UOp, root: Root, index: Index, context: tuple[UOp, ...]) -> None:
    """Pass a demand on a node to its sources."""
    if node.op in TRANSPARENT:
      inner, _ = view_index(node, index)
      if node in self.forced:
        self.forced.add(node.src[0])
      if node in self.awaited:
        self.waiting.setdefault(root, {})[node] = None
      self.demand(node.src[0], root, inner, context)
    elif node.op == "reduce":
      rs = self.reduces[node, root, index] = {
        a: self.fresh(root, "k", shape(node.src[0])[a]) for a in node.arg[1]
      }
      inner = tuple(rs.get(a, i) for a, i in enumerate(index))
      self.demand(node.src[0], root, inner, context + live(tuple(rs.values())))
    elif node.op == "gather":
      self.demand(node.src[1], root, index, context)
      self.forced.add(node.src[0])
      target = stand_in(node.src[1], index, shape(node.src[0])[node.arg])
      self.demand(
        node.src[0], root, tuple(target if a == node.arg else i for a, i in enumerate(index)), context
      )
    else:
      for s in node.src:
        self.demand(s, root, index if shape(s) else (), context)

  def place(self, node: UOp) -> None:
    """Inline (do nothing), or give memory: on the stack of its user over the axes at which demands differ, or global.
    What is part of a chain between products each kernel decides for itself."""
    wanted = self.demands[node]
    roots = dict.fromkeys(root for root, _ in wanted)
    parts = [wanted]
    if node in self.chains.wide:
      parts = [{at: c for at, c in wanted.items() if at[0] is root} for root in roots]
    values = [self.value(node, part) for part in parts]
    decisions = [decide(v) for v in values]
    why = next((d.why for d in decisions if d.where == "memory"), None)
    if why is not None:
      host = self.host(node)
      name = self.temporary()
      if host is not None:
        why += "; it is stored on the way"
        self.store_aside(node, host, name)
      else:
        self.open(node, name)
      self.why.setdefault(name, []).insert(0, f"{node.op} in memory: {why}")
      return
    for v, found in zip(values, decisions):
      if found.where == "stack":
        self.keep(v, found.why)

  def value(self, node: UOp, wanted: Demands) -> Value:
    chained = node in self.chains.wide
    return Value(node, wanted, self.weights, self.cut.get(node, ""), node in self.forced, chained)

  def host(self, node: UOp) -> Root | None:
    """The kernel of a chain that makes a value on its way, and can store it for the others: one that goes on to the
    product of the chain, if it can."""
    at = {root: index for root, index in self.demands[node]}
    known = node in self.chains.statistics
    if not (known or self.chains.wide) or len(at) < 2:
      return None
    often = Counter(root for root, _ in self.demands[node])
    ways = {root: next(self.products(root.value), None) is not None for root in at}
    for root in sorted(at, key=lambda root: not ways[root]):
      if not (known or ways[root]) or node.op in ALWAYS_GLOBAL or node in self.forced:
        break
      own = set(live(root.index))
      if often[root] > 1 or root.gate is not TRUE:  # a scatter waits for its base, and for pieces beside it
        continue
      wide = [(i, n) for i, n in zip(at[root], shape(node)) if n > 1]
      plain = all(i in own and rsize(i) == n for i, n in wide) and len({i for i, _ in wide}) == len(wide)
      others = {u for other in at if other is not root for u in self.made(other)}
      early = all(self.level(root) <= self.level(other) for other in at)
      if plain and early and not self.needs.any_of(self.values(root), others):  # or they wait for each other
        return root
    return None

  def products(self, value: UOp) -> Iterator[UOp]:
    """The products that a kernel of this value would make, as far as is known: those that it has element by element."""
    todo = [value]
    seen = {value}
    for u in todo:  # grows
      if is_contraction(u):
        yield u
      elif is_elementwise(u.op) or u.op in TRANSPARENT:
        new = [s for s in dict.fromkeys(u.src) if s not in self.memory and s not in seen]
        seen.update(new)
        todo += new

  def store_aside(self, node: UOp, host: Root, name: str) -> None:
    """Give node memory that its host writes, which goes on to compute it."""
    self.memory[node] = param(name, shape(node), node.dtype)
    for (root, index), context in self.demands[node].items():
      if root is host:
        self.aside(host, node, node, index, Stored(self.memory[node], index))
        self.descend(node, root, index, context)

  def keep(self, v: Value, why: str) -> None:
    """A stage of the value in the one kernel that uses it."""
    node = v.node
    (root, first), context = next(iter(v.wanted.items()))
    new = {a: self.fresh(root, "s", shape(node)[a]) for a in sorted(v.axes)}
    index = tuple(new.get(a, i) for a, i in enumerate(first))
    self.stages[node, root] = (tuple(new), index)
    others = {at: c for at, c in self.demands[node].items() if at[0] is not root}
    staged = {(root, index): tuple(r for r in context if r in v.kept) + live(tuple(new.values()))}
    self.demands[node] = others | staged
    self.wanted[root][node, index] = None
    row = [shape(node)[a] for a in new]
    self.why.setdefault(root.memory.arg[0], []).append(
      f"{node.op}: {node.dtype.short}{row} on the stack: {why}"
    )

  def temporary(self) -> str:
    return f"t{len(self.memory)}"

  def beneath(self, node: UOp) -> set[UOp]:
    """The memories that a node is made of, without inputs."""
    found, seen, stack = set(), {node}, [node]
    while stack:
      u = stack.pop()
      if u in self.memory:
        found.add(self.memory[u])
        continue
      stack += [s for s in u.src if s not in seen]
      seen.update(u.src)
    return found

  # ---------------------------------------------------------------- second pass: the scalar DAG

  def build(self, root: Root) -> UOp | None:
    own = root.value is root.node and root.node.op not in ("cat", "scatter", "stage", "copy", "shard")
    # sources first, so that the recursion below stays shallow
    for node, index in reversed(self.wanted.get(root, {})):
      if within(index, node):
        self.scalar(root, node, index, TRUE)
    value = (
      self.compute(root, root.value, root.index, TRUE)
      if own
      else self.scalar(root, root.value, root.index, TRUE)
    )
    if value.op == "load" and value.src[0] is root.memory and value.src[2:] == root.at:
      return None  # the base of a scatter stands there already
    out = store(root.memory, root.at, value, root.gate, root.how)
    rs = self.loops(root)
    if root.accumulates:
      rs = root.accumulates + tuple(r for r in rs if r not in root.accumulates)
    aside = [
      store(to.memory, to.at, self.scalar(root, node, index, TRUE), how=to.how)
      for (node, index), to in self.asides.get(root, {}).items()
    ]
    made = sorted((*aside, out), key=lambda s: s.arg or "")  # last what is added, in a loop within all others
    unresolved = kernel(root.memory.arg[0], tuple(made), rs)
    return resolved(unresolved, lambda a, gate: self.scalar(root, a.arg[0], a.src, gate))

  def scalar(self, root: Root, node: UOp, index: Index, gate: UOp) -> UOp:
    key = (root, node, index, gate)
    got = self.scalars.get(key)
    if got is None:
      got = self.scalars[key] = (
        const(0, node.dtype) if gate is FALSE or 0 in shape(node) else self.make(root, node, index, gate)
      )
    return got

  def make(self, root: Root, node: UOp, index: Index, gate: UOp) -> UOp:
    if node.op == "const":
      return gathered(node, gate)
    if node.op == "iota" and (node not in self.memory or node is root.node):
      return (
        uop("cast", node.dtype, (index[0],)) if index[0].op != "const" else const(index[0].arg, node.dtype)
      )
    if node.op == "buffer" or (node in self.memory and (node, index) not in self.asides.get(root, {})):
      memory = param(node.arg[0], shape(node), node.dtype) if node.op == "buffer" else self.memory[node]
      if free_in(index).isdisjoint(gate.free) and not stands_in(gate) and within(index, node):
        gate = TRUE  # it stands outside of the loops of the guard
      return load(memory, guarded(index, gate), gate)
    if (node, root) in self.stages:
      axes, own = self.stages[node, root]
      at = tuple(own[a] for a in axes)
      value = self.compute(root, node, own, TRUE)
      return load(
        stage_at(value, at, live(at), "stack", tuple(shape(node)[a] for a in axes)),
        guarded(tuple(index[a] for a in axes), gate),
        gate,
      )
    return self.compute(root, node, index, gate)

  def compute(self, root: Root, node: UOp, index: Index, gate: UOp) -> UOp:
    if node.op in LEAVES:
      return self.make(root, node, index, gate)
    if node.op in TRANSPARENT:
      inner, ok = view_index(node, index)
      value = self.scalar(root, node.src[0], inner, both(gate, ok))
      # a gated load is 0 already where the pad is
      if ok is TRUE or (value.op == "load" and value.src[1] is not TRUE) or value is const(0, node.dtype):
        return value
      return (
        const(0, node.dtype) if ok is FALSE else uop("where", node.dtype, (ok, value, const(0, node.dtype)))
      )
    if node.op == "reduce":
      if gate is not TRUE and within(index, node):
        return self.scalar(root, node, index, TRUE)  # it stands outside of the loops of the guard
      rs = self.reduces[node, root, index]
      value = self.scalar(root, node.src[0], tuple(rs.get(a, i) for a, i in enumerate(index)), gate)
      mine = live(tuple(rs.values()))
      # the same under another guard: ranges of its own
      if self.gates.setdefault((node, root, index), gate) is not gate:
        table = {r: self.fresh(root, "k", rsize(r)) for r in mine}
        value, mine = copy(value, table, f".{self.used[root, 'k']}"), tuple(table.values())
      return reduce_over(node.arg[0], value, mine)
    if node.op == "scan":
      value = self.scalar(root, node.src[0], index, gate)
      return scan_over(node.arg[0], value, index[node.arg[1]])
    if node.op == "gather":
      size = shape(node.src[0])[node.arg]
      target = stand_in(node.src[1], index, size)
      at = tuple(target if a == node.arg else i for a, i in enumerate(index))
      return self.scalar(root, node.src[0], at, both(gate, guard(node.src[1], index, size)))
    src = tuple(self.scalar(root, s, index if shape(s) else (), gate) for s in node.src)
    if node.op == "lt" and None not in (on := [as_index(s) for s in src]):
      return less(add(on[0], mul(on[1], -1)), 0)  # type: ignore[arg-type]
    if node.op in ("lt", "ne"):
      src = narrowed(src, self.context_of(root.value, root.index))
    if node.op == "where" and src[0].op == "const":
      return src[1] if src[0].arg else src[2]
    return uop(node.op, node.dtype, src)


def narrowed(src: tuple[UOp, ...], loops: tuple[UOp, ...]) -> tuple[UOp, ...]:
  """An index and a number that are compared as int64, and may be as int32: vectors have twice as many lanes of those.
  The number counts as the next one where it is beyond all indices: it has to be the same in the innermost of the loops
  that the index varies in, or each lane would find out for itself, which takes longer."""
  place = {r: n for n, r in enumerate(loops)}

  def last(u: UOp) -> int:
    return max((place.get(r, len(loops)) for r in u.free), default=-1)  # sums are inside of all loops

  for x, y in (src, src[::-1]):
    index = as_index(x)
    if x.dtype is not dtypes.int64 or index is None or last(y) >= last(x):
      continue
    lo, hi = bounds(index)
    if max(-lo, hi) > (1 << 31) - 2:
      continue
    if y.op == "const":
      inside = const(min(max(y.arg, lo - 1), hi + 1), dtypes.int32)
    else:
      beyond = const(hi + 1, y.dtype)
      least = uop("where", y.dtype, (uop("lt", dtypes.bool, (y, beyond)), y, beyond))
      inside = uop("cast", dtypes.int32, (uop("max", y.dtype, (least, const(lo - 1, y.dtype))),))
    found = uop("cast", dtypes.int32, (index,)), inside
    return found if x is src[0] else found[::-1]
  return src


def shifted(place: Place, axis: int, offset: int) -> Place:
  return lambda index: place(tuple(add(i, offset) if a == axis else i for a, i in enumerate(index)))
