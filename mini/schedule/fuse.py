"""Graph -> kernels: every value is inlined, staged on the stack inside its user, or global.

One walk over the whole graph, users before sources. A *demand* on a value is (root, index): the kernel that wants it and
the index tuple at which it does; its context is the ordered ranges that enclose the user. When a node is reached, all
demands on it are known, so the decision (`place`) is final, and what gets memory passes one demand on. A second pass per
kernel, sources before users, builds the scalar DAG that ir/kernel.py describes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod

from mini.ir.graph import numel, shape
from mini.ir.kernel import kernel, load, param, reduce_over, scan_over, stage_at, store
from mini.ir.ops import VIEWS, is_elementwise
from mini.ir.uop import (
  FALSE,
  TRUE,
  UOp,
  add,
  both,
  bounds,
  conjuncts,
  const,
  copy,
  free_in,
  mul,
  range_,
  rname,
  rsize,
  substitute,
  toposort,
  uop,
)
from mini.schedule.index import Index, stored_index, view_index
from mini.types import dtypes

STACK_BYTES = 256 << 10  # what a staged row may take: half of an L2
RECOMPUTE = 64  # operations that are cheaper to repeat in a second kernel than to write and read back
COSTLY = 8  # operations that are not worth repeating in a loop
AGAIN = 8  # times that an operand of a contraction may be computed again
# a reduction of so many elements is not done inside a kernel with so few results
SERIAL, NARROW = 1 << 14, 16
MOST_READ = 24  # memories that a kernel is made of, before some are joined
TRANSPARENT = VIEWS | {"detach", "copy", "shard"}
LEAVES = {"buffer", "const", "iota"}
WORK = {"exp2": 8, "log2": 8, "sin": 16, "sqrt": 8, "div": 4, "mod": 4, "cast": 1, "bitcast": 0}
ALWAYS_GLOBAL = {"stage", "cat", "scatter", "scan"}


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
  accumulates: tuple[
    UOp, ...
  ] = ()  # ranges along which stores to one address meet: they stay loops, in order


def count_params(k: UOp) -> int:
  return sum(u.op == "param" for u in toposort(k))


def is_summed(r: UOp) -> bool:
  """Is r the range of a reduce? `fresh` names them so."""
  return rname(r)[0] == "k"


def live(rs: Index) -> tuple[UOp, ...]:
  return tuple(r for r in rs if r.op == "range")


class Schedule:
  """outputs: {name: node}. After construction, `kernels` in the order in which they run."""

  def __init__(self, outputs: dict[str, UOp], cut: frozenset[UOp] = frozenset()):
    """cut: nodes that get memory whatever they cost."""
    self.cut = cut
    self.demands: dict[UOp, dict[tuple[Root, Index], tuple[UOp, ...]]] = {}
    self.wanted: dict[Root, dict[tuple[UOp, Index], None]] = {}
    self.stages: dict[UOp, tuple[tuple[int, ...], Index]] = {}
    self.reduces: dict[tuple[UOp, Root, Index], dict[int, UOp]] = {}
    self.used: dict[tuple[Root, str], int] = {}
    self.gates: dict[tuple[UOp, Root, Index], UOp] = {}
    self.scalars: dict[tuple[Root, UOp, Index, UOp], UOp] = {}
    self.memory: dict[UOp, UOp] = {}  # node -> param
    self.roots: list[Root] = []
    self.forced: set[UOp] = set()
    order = toposort(*outputs.values())
    self.weigh(order)
    self.named: dict[UOp, str] = {}
    for name, node in outputs.items():
      self.named.setdefault(node, name)
    for node in reversed(order):
      if node in self.named:
        self.open(node, self.named[node])
      elif node in self.demands and node.op not in LEAVES:
        self.place(node)
      if node in self.demands and node.op not in LEAVES and node not in self.memory:
        for (root, index), context in self.demands[node].items():
          self.descend(node, root, index, context)
    built = {root: self.build(root) for root in reversed(self.roots)}
    self.kernels = [k for k in built.values() if k is not None]
    self.wide = [root for root, k in built.items() if k is not None and count_params(k) > MOST_READ]
    self.aliases = {name: self.named[node] for name, node in outputs.items() if self.named[node] != name}

  # ---------------------------------------------------------------- what a value costs

  def weigh(self, order: list[UOp]) -> None:
    """Per node, when it is inlined: the buffers and reduces that it reads, its operations, whether a contraction is beneath.
    What only repeats a row or a scalar is free: placement hoists it."""
    self.reads: dict[UOp, frozenset[UOp]] = {}
    self.work: dict[UOp, int] = {}
    self.heavy: set[UOp] = set()
    none: frozenset[UOp] = frozenset()
    users = self.users = Counter(x for n in order for x in n.src)
    for n in order:
      if n.op in ("buffer", "reduce", "gather") or n.op in ALWAYS_GLOBAL:
        self.reads[n] = frozenset((n,))
      elif n.op == "expand" or not n.src:
        self.reads[n] = none
      else:
        self.reads[n] = (
          none.union(*(self.reads[s] for s in n.src)) if len(n.src) > 1 else self.reads[n.src[0]]
        )
      if n.op in LEAVES or n.op == "expand":
        self.work[n] = 0
      elif n.op == "reduce":
        self.work[n] = 0  # by then in memory
        if is_contraction(n):
          self.heavy.add(n)
      elif n.op in TRANSPARENT or n.op in ("gather", *ALWAYS_GLOBAL):
        self.work[n] = self.work[n.src[0]] if n.op in TRANSPARENT else 0
      else:
        own = WORK.get(n.op, 1) if is_elementwise(n.op) and n.op in WORK else 1 if n.op in CHEAP else 16
        self.work[n] = min(1000, own + sum(self.work[s] for s in n.src))
      if (is_elementwise(n.op) or n.op in TRANSPARENT - {"expand"}) and any(
        s in self.heavy and users[s] == 1 for s in n.src
      ):
        self.heavy.add(n)

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
    self.fill(node, param(name, shape(node), node.dtype))

  def fill(self, node: UOp, memory: UOp) -> None:
    self.memory[node] = memory
    if node.op == "cat":
      start = 0
      for part in node.src:
        self.start(memory, node, part, start)
        start += shape(part)[node.arg]
    elif node.op == "scatter":
      self.scatter(memory, node)
      base = node.src[0]
      if base.op in ("cat", "scatter") and self.users[base] == 1 and base not in self.named:
        self.fill(base, memory)  # nobody else reads it: it is made where it is added to
      else:
        self.start(memory, node, base)
    else:
      self.start(memory, node, node.src[0] if node.op in ("stage", "copy", "shard") else node)

  def start(self, memory: UOp, node: UOp, value: UOp, offset: int | None = None) -> None:
    """Views that only rename elements move from the value to the store: so a matmul keeps its rows and columns."""
    views = []
    top = value
    while value.op in ("reshape", "permute", "detach"):
      views.append(value)
      value = value.src[0]
    if value.op in LEAVES or (value is not node and value in self.memory):
      value, views = top, []
    index = output_ranges(shape(value))
    at = index
    for v in reversed(views):
      at = stored_index(v, at)
    if offset is not None:
      at = tuple(add(i, offset) if a == node.arg else i for a, i in enumerate(at))
    root = Root(memory, node, value, index, at)
    self.roots.append(root)
    if value is node and node.op not in ("cat", "scatter", "stage", "copy", "shard"):
      self.demands.setdefault(node, {})
      self.descend(node, root, index, self.context_of(node, index))
    else:
      self.demand(value, root, index, live(index))

  def context_of(self, node: UOp, index: Index) -> tuple[UOp, ...]:
    """The loop order of a kernel; a scan runs along its last loop."""
    rs = live(index)
    if node.op != "scan" or index[node.arg[1]] not in rs:
      return rs
    along = index[node.arg[1]]
    return tuple(r for r in rs if r is not along) + (along,)

  def scatter(self, memory: UOp, node: UOp) -> None:
    """The accumulating kernel of a scatter; the base is written before it, in place."""
    kind, axis = node.arg
    _, where, value = node.src
    index = output_ranges(shape(value))
    size = shape(node)[axis]
    target = stand_in(where, index, size)
    at = tuple(target if a == axis else i for a, i in enumerate(index))
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
    """Inline (do nothing), or give memory: on the stack of its user over the axes at which demands differ, or global."""
    if self.needs_memory(node):
      self.open(node, self.temporary())
    elif node.op not in TRANSPARENT:
      axes, repeated = self.uses(node)
      roots = {root for root, _ in self.demands[node]}
      if (len(roots) > 1 or axes or repeated) and not self.cheap_again(node, len(roots), repeated):
        self.keep(node, axes)

  def needs_memory(self, node: UOp) -> bool:
    """Can no kernel of its users compute this value as it goes?"""
    wanted = self.demands[node]
    if node.op in ALWAYS_GLOBAL or node in self.cut:
      return True
    # what a gather reads: views stay views if a data-dependent index can pass through them
    if node in self.forced:
      plain = node.op in TRANSPARENT and node.op != "pad"
      return not plain or any(awkward(i) for _, index in wanted for i in view_index(node, index)[0])
    if node.op in TRANSPARENT:
      return False
    if (
      node.op == "reduce"
      and numel(node.src[0]) >= SERIAL
      and any(numel(r.value) < NARROW for r, _ in wanted if r.value is not node)
    ):
      return True  # its user runs on one core
    for (_, index), context in wanted.items():
      own = free_in(index)
      if node in self.heavy and any(map(is_summed, own)):
        return True  # a contraction's result, reduced again: it would lose its register tile
      again = prod(rsize(r) for r in context if r not in own)
      computed = is_elementwise(node.op) and node.op not in ("cast", "bitcast")
      if computed and again >= AGAIN and any(map(is_summed, context)):
        return True  # an operand of a contraction
    return False

  def uses(self, node: UOp) -> tuple[set[int], bool]:
    """(the axes in which demands differ, or which stand within loops that would repeat a costly value; are there such?)"""
    wanted = self.demands[node]
    first = next(iter(wanted))[1]
    axes: set[int] = set()
    repeated = False
    for (_, index), context in wanted.items():
      axes |= {a for a, i in enumerate(index) if i is not first[a]}
      own = free_in(index)
      missing = [n for n, r in enumerate(context) if r not in own]
      if missing and self.costly(node):
        repeated = True
        axes |= {a for a, i in enumerate(index) if i.free & set(context[missing[0] :])}
    return axes, repeated

  def costly(self, node: UOp) -> bool:
    return node.op == "reduce" or self.work[node] >= COSTLY

  def cheap_again(self, node: UOp, kernels: int, repeated: bool) -> bool:
    """Does computing it once more cost less than writing and reading it?"""
    buffers = len(self.reads[node])
    if node in self.heavy:
      return False
    if not self.costly(node) and buffers < 2:
      return True
    # passes over memory: read what it is made of, or write and read it
    again = kernels * buffers <= kernels + buffers + 1
    return kernels > 1 and not repeated and node.op != "reduce" and self.work[node] <= RECOMPUTE and again

  def keep(self, node: UOp, axes: set[int]) -> None:
    """On the stack over `axes`, where one kernel uses it and they fit; or else in global memory."""
    wanted = self.demands[node]
    (root, first), context = next(iter(wanted.items()))
    kept = free_in(tuple(i for a, i in enumerate(first) if a not in axes))
    within_bounds = all(inside(i, n) for i, n in zip(first, shape(node)))
    size = node.dtype.itemsize * prod(shape(node)[a] for a in axes)
    alone = all(r is root for r, _ in wanted) and not root.accumulates
    if not alone or node in self.heavy or not within_bounds or not kept or size > STACK_BYTES:
      return self.open(node, self.temporary())
    new = {a: self.fresh(root, "s", shape(node)[a]) for a in sorted(axes)}
    index = tuple(new.get(a, i) for a, i in enumerate(first))
    self.stages[node] = (tuple(new), index)
    self.demands[node] = {(root, index): tuple(r for r in context if r in kept) + live(tuple(new.values()))}
    self.wanted[root][node, index] = None

  def temporary(self) -> str:
    return f"t{len(self.memory)}"

  # ---------------------------------------------------------------- kernels that read too many memories

  def cuts(self) -> frozenset[UOp]:
    """Nodes to give memory to, so that no kernel is made of more than a device can pass."""
    found: set[UOp] = set()
    for root in self.wide:
      inside = [root.value]
      seen = {root.value}
      for u in inside:  # grows
        for s in u.src if u is root.value or u not in self.memory else ():
          if s not in seen:
            seen.add(s)
            inside.append(s)
      read: dict[UOp, frozenset[UOp]] = {}
      for u in sorted(inside, key=lambda u: u.serial):  # sources first
        held = not u.src or (u in self.memory and u is not root.value)
        read[u] = frozenset((u,) * (u.op not in ("const", "iota"))) if held else self.narrow(u, read, found)
    return frozenset(found)

  def narrow(self, u: UOp, read: dict[UOp, frozenset[UOp]], found: set[UOp]) -> frozenset[UOp]:
    """The memories that u is made of; where they are too many, the source with the most becomes one of them."""
    parts = {s: read[s] for s in u.src}
    none: frozenset[UOp] = frozenset()
    while len(all_ := none.union(*parts.values())) > MOST_READ // 2:
      s = top = max(parts, key=lambda s: len(parts[s]))
      while top.op in TRANSPARENT:
        top = top.src[0]
      if len(parts[s]) == 1:
        break
      found.add(top)
      parts[s] = frozenset((top,))
    return all_

  # ---------------------------------------------------------------- second pass: the scalar DAG

  def build(self, root: Root) -> UOp | None:
    own = root.value is root.node and root.node.op not in ("cat", "scatter", "stage", "copy", "shard")
    # sources first, so that the recursion below stays shallow
    for node, index in reversed(self.wanted.get(root, {})):
      if all(inside(i, n) for i, n in zip(index, shape(node))):
        self.scalar(root, node, index, TRUE)
    value = (
      self.compute(root, root.value, root.index, TRUE)
      if own
      else self.scalar(root, root.value, root.index, TRUE)
    )
    if value.op == "load" and value.src[0] is root.memory and value.src[2:] == root.at:
      return None  # the base of a scatter stands there already
    out = store(root.memory, root.at, value, root.gate, root.how)
    rs = self.context_of(root.value, root.index) if own else live(root.index)
    if root.accumulates:
      rs = root.accumulates + tuple(r for r in rs if r not in root.accumulates)
    return self.resolve(root, kernel(root.memory.arg[0], (out,), rs))

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
      return node
    if node.op == "iota":
      return (
        uop("cast", node.dtype, (index[0],)) if index[0].op != "const" else const(index[0].arg, node.dtype)
      )
    if node.op == "buffer":
      return load(param(node.arg[0], shape(node), node.dtype), index, gate)
    if node in self.memory:
      return load(self.memory[node], index, gate)
    if node in self.stages:
      axes, own = self.stages[node]
      at = tuple(own[a] for a in axes)
      value = self.compute(root, node, own, TRUE)
      return load(
        stage_at(value, at, live(at), "stack", tuple(shape(node)[a] for a in axes)),
        tuple(index[a] for a in axes),
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
      if ok is TRUE or value.op == "load" or value is const(0, node.dtype):
        return value
      return (
        const(0, node.dtype) if ok is FALSE else uop("where", node.dtype, (ok, value, const(0, node.dtype)))
      )
    if node.op == "reduce":
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
    return uop(
      node.op, node.dtype, tuple(self.scalar(root, s, index if shape(s) else (), gate) for s in node.src)
    )

  def resolve(self, root: Root, k: UOp) -> UOp:
    """Put the values of data-dependent indices in the place of their `at` stand-ins, read under the gate of their user."""
    while any(u.op == "at" for u in toposort(k)):
      table = {}
      for u in toposort(k):
        if u.op not in ("load", "store"):
          continue
        gate = u.src[1] if u.op == "load" else u.src[2]
        ats = [
          a
          for s in u.src[1:]
          if s.dtype in (dtypes.index, dtypes.bool)
          for a in toposort(s)
          if a.op == "at" and not _within_value(a, s)
        ]
        if not ats or any(x in table for x in toposort(*u.src)):
          continue
        outer = TRUE
        for c in conjuncts(gate):
          if not any(x.op == "at" for x in toposort(c)):
            outer = both(outer, c)
        table[u] = substitute(
          u,
          {
            a: uop("cast", dtypes.index, (self.scalar(root, a.arg[0], a.src, outer),))
            for a in dict.fromkeys(ats)
          },
        )
      k = substitute(k, table)
    return k


def _within_value(a: UOp, s: UOp) -> bool:
  """Does `a` stand in s only inside another value (a load of its own, which is resolved first)?"""
  seen, stack = set(), [s]
  while stack:
    u = stack.pop()
    if u is a:
      return False
    if u in seen or u.op in ("load", "reduce", "stage"):
      continue
    seen.add(u)
    stack.extend(u.src)
  return True


def inside(i: UOp, n: int) -> bool:
  lo, hi = bounds(i) if not any(u.op == "at" for u in toposort(i)) else (-1, -1)
  return 0 <= lo and hi < n


def stand_in(value: UOp, index: Index, size: int | None) -> UOp:
  """What stands for a graph node's value, read at `index`, in the index of a gather or scatter until it has been built.
  Its bounds are those that the guard sees to; without a size, as in the guard itself, it may be anything."""
  return uop("at", dtypes.index, index, (value, size))


def guard(value: UOp, index: Index, size: int) -> UOp:
  target = stand_in(value, index, None)
  return both(
    uop("lt", dtypes.bool, (mul(target, -1), const(1))), uop("lt", dtypes.bool, (target, const(size)))
  )


def awkward(i: UOp) -> bool:
  """Does a data-dependent index stand under a division? C rounds those of negative numbers towards zero."""
  return any(u.op in ("div", "mod", "min") and any(x.op == "at" for x in toposort(u)) for u in toposort(i))


def output_ranges(s: tuple[int, ...]) -> Index:
  letters = "ijlmnopqruvw"
  return tuple(
    const(0) if n == 1 else range_(letters[a % 12] + str(a // 12 or ""), n) for a, n in enumerate(s)
  )


CHEAP = {
  "add",
  "mul",
  "max",
  "lt",
  "ne",
  "and",
  "or",
  "xor",
  "where",
  "abs",
  "neg",
  "min",
  "floor",
  "ceil",
  "trunc",
  "round",
}


def is_contraction(n: UOp) -> bool:
  """A sum of products in which either factor is used again: matmul, convolution, outer forms of them."""
  if n.op != "reduce" or n.arg[0] != "add":
    return False
  product = n.src[0]
  while product.op in ("reshape", "permute", "shrink", "flip", "cast"):
    product = product.src[0]
  return product.op == "mul" and all(repeats(s) for s in product.src) and numel(n) > 1


def repeats(u: UOp) -> bool:
  """Is u, seen through views, a repeated value?"""
  while u.op in TRANSPARENT or u.op == "cast":
    if u.op == "expand":
      return True
    u = u.src[0]
  return False
