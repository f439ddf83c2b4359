"""Where a value lives, and why: the one place that decides it. fuse.py gathers what is known of a value, and does it.

inline: each kernel that wants the value computes it, where it wants it. stack: its one user computes it once, over a
few axes, into a row beside its loops. memory: a kernel of its own writes it, and those that want it read it.

`decide` is the list of the reasons, in the order in which they count; each reason is a sentence that
`SHOW=schedule` prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from mini.ir.graph import numel, shape
from mini.ir.index import Index, view_index
from mini.ir.ops import VIEWS, is_elementwise
from mini.ir.uop import UOp, bounds, free_in, rname, rsize, toposort, unknown
from mini.types import dtypes

if TYPE_CHECKING:
  from mini.schedule.fuse import Root

STACK_BYTES = 256 << 10  # what a staged row may take: half of an L2
RECOMPUTE = 64  # operations that are cheaper to repeat in a second kernel than to write and read back
COSTLY = 8  # operations that are not worth repeating in a loop
OVERLAP = 1.25  # times that windows of a kernel come to an element of what they look at
REPEATED = 5  # operations of an element that they do again: more take longer than to write and read it
AGAIN = 8  # times that an operand of a contraction may be computed again
# a reduction of so many elements is not done inside a kernel with so few results
SERIAL, NARROW = 1 << 14, 16
MOST_READ = 24  # memories that a kernel is made of, before some are joined
MOST_WORK = 1000  # operations of a kernel: beyond, the time of its compiler is no longer linear in them
TRANSPARENT = VIEWS | {"detach", "copy", "shard", "tag"}
LEAVES = {"buffer", "const", "iota"}
ALWAYS_GLOBAL = {"stage", "cat", "scatter", "scan"}
WORK = {"exp2": 8, "log2": 8, "sin": 16, "sqrt": 8, "div": 4, "mod": 4, "cast": 1, "bitcast": 0}
# fmt: off
CHEAP = {"add", "mul", "max", "lt", "ne", "and", "or", "xor", "where", "abs", "neg", "min", "floor", "ceil", "trunc",
         "round"}
# fmt: on


class Decision(NamedTuple):
  where: str  # inline | stack | memory
  why: str


# ---------------------------------------------------------------- what a value costs, whoever wants it


class Weights:
  """Of each node, when it is inlined: the memories and reduces that it reads, its operations, and whether a contraction
  is beneath. What only repeats a row or a scalar is free: placement hoists it."""

  def __init__(self, order: list[UOp], users: Mapping[UOp, int]):
    """order: sources first. users: how many each node has."""
    self.reads: dict[UOp, frozenset[UOp]] = {}
    self.work: dict[UOp, int] = {}
    self.heavy: set[UOp] = set()
    none: frozenset[UOp] = frozenset()
    for n in order:
      if n.op == "buffer" and not shape(n):
        self.reads[n] = none
      elif n.op in ("buffer", "reduce", "gather") or n.op in ALWAYS_GLOBAL:
        self.reads[n] = frozenset((n,))
      elif n.op == "expand" or not n.src:
        self.reads[n] = none
      else:
        found = [self.reads[s] for s in n.src]
        most = max(found, key=len)  # of many it does not matter how many
        self.reads[n] = most if len(found) == 1 or len(most) > MOST_READ else none.union(*found)
      if n.op in LEAVES or n.op in ("expand", "reduce"):
        self.work[n] = 0  # a reduction is in memory by then
        if is_contraction(n):
          self.heavy.add(n)
      elif n.op in TRANSPARENT or n.op in ("gather", *ALWAYS_GLOBAL):
        self.work[n] = self.work[n.src[0]] if n.op in TRANSPARENT else 0
      else:
        self.work[n] = min(MOST_WORK, operations(n) + sum(self.work[s] for s in n.src))
      if (is_elementwise(n.op) or n.op in TRANSPARENT - {"expand"}) and any(
        s in self.heavy and users[s] == 1 for s in n.src
      ):
        self.heavy.add(n)
      if n in self.heavy and users[n] > 1:  # by then in memory
        self.reads[n], self.work[n] = frozenset((n,)), 0


def operations(n: UOp) -> int:
  """Of a node by itself, about."""
  return 0 if n.op in LEAVES or n.op in TRANSPARENT else WORK.get(n.op, 1 if n.op in CHEAP else 16)


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


# ---------------------------------------------------------------- what is known of one value


class Value:
  """A node and those that want it: the facts that `decide` decides by."""

  def __init__(
    self,
    node: UOp,
    wanted: Mapping[tuple[Root, Index], tuple[UOp, ...]],
    weights: Weights,
    cut: str,
    gathered: bool,
    chained: bool,
  ):
    """wanted: {(kernel, index): the loops that enclose its user there}.
    cut: why it is to have memory whatever it costs.
    gathered: it is read at an index that is data. chained: it is part of a chain between products (fused_chains.py)."""
    self.node, self.wanted = node, wanted
    self.cut, self.gathered, self.chained = cut, gathered, chained
    self.work = weights.work[node]
    self.heavy = node in weights.heavy  # a contraction, or what follows one
    self.memories = len(weights.reads[node])  # that it is computed from
    self.costly = node.op == "reduce" or self.work >= COSTLY
    self.computed = node.op == "gather" or (is_elementwise(node.op) and node.op not in ("cast", "bitcast"))

  @cached_property
  def kernels(self) -> int:
    return len({root for root, _ in self.wanted})

  @cached_property
  def _uses(self) -> tuple[set[int], bool, bool]:
    first = next(iter(self.wanted))[1]
    axes: set[int] = set()
    repeated = False
    for (_, index), context in self.wanted.items():
      axes |= {a for a, i in enumerate(index) if i is not first[a]}
    differs = bool(axes)
    for (_, index), context in self.wanted.items():
      own = free_in(index)
      missing = [n for n, r in enumerate(context) if r not in own]
      if missing and self.costly:
        repeated = True
        axes |= {a for a, i in enumerate(index) if i.free & set(context[missing[0] :])}
    return axes, differs, repeated

  @property
  def axes(self) -> set[int]:
    """Those in which demands differ, or which stand within loops that would repeat a costly value: a stage has them."""
    return self._uses[0]

  @property
  def differs(self) -> bool:
    """Is it wanted at several indices?"""
    return self._uses[1]

  @property
  def repeated(self) -> bool:
    """Does it cost much, and stand in a loop that would compute it again?"""
    return self._uses[2]

  @cached_property
  def again(self) -> int:
    """How often the sum that it is an operand of would compute it."""
    times = 0
    for (_, index), context in self.wanted.items():
      own = free_in(index)
      if any(map(is_summed, context)):
        times = max(times, prod(rsize(r) for r in context if r not in own))
    return times

  def beneath(self, most: int) -> int:
    """Bytes of the memories that it is made of, but for single numbers; beyond `most` some of them."""
    found = 0
    for u in memories(self.node):
      found += numel(u) * u.dtype.itemsize if shape(u) else 0
      if found > most:
        break
    return found

  @cached_property
  def widened(self) -> bool:
    """Is it made of less than half of the memory that it would take, by a few operations; of bytes, by some?"""
    size = numel(self.node) * self.node.dtype.itemsize
    if not 0 < 2 * self.beneath(size) < size:
      return False
    coded = any(u.dtype.itemsize == 1 and numel(u) == numel(self.node) for u in memories(self.node))
    return self.node.op != "reduce" and self.work <= RECOMPUTE if coded else not self.costly

  @cached_property
  def overlap(self) -> float:
    """How often a kernel that wants it comes to each of its elements: windows may have it several times."""
    found = max(prod(map(rsize, free_in(index))) for _, index in self.wanted)
    return found / max(1, numel(self.node))

  @property
  def overlapping(self) -> bool:
    """Does what windows compute again take longer than to write and read it?"""
    if self.overlap < OVERLAP or not (self.computed or self.node.op == "reduce"):
      return False
    terms = numel(self.node.src[0]) // max(1, numel(self.node)) if self.node.op == "reduce" else 0
    return self.heavy or (self.overlap - 1) * max(self.work, terms) > REPEATED

  @property
  def summed(self) -> bool:
    """Does a kernel reduce it, over an axis of its own?"""
    return any(any(map(is_summed, free_in(index))) for _, index in self.wanted)

  @property
  def narrow(self) -> int:
    """The results of a kernel that wants it, where they are too few for all cores; else 0."""
    found = (numel(root.value) for root, _ in self.wanted if root.value is not self.node)
    return next((n for n in found if n < NARROW), 0)

  @property
  def passes_gather(self) -> bool:
    """Can an index that is data pass through this view?"""
    if self.node.op not in TRANSPARENT or self.node.op == "pad":
      return False
    return not any(awkward(i) for _, index in self.wanted for i in view_index(self.node, index)[0])

  @property
  def stack_bytes(self) -> int:
    return self.node.dtype.itemsize * prod(shape(self.node)[a] for a in self.axes)

  @property
  def kept(self) -> frozenset[UOp]:
    """The loops that a stage of it would stand in."""
    first = next(iter(self.wanted))[1]
    return free_in(tuple(i for a, i in enumerate(first) if a not in self.axes))

  @property
  def accumulated(self) -> bool:
    """Does its kernel add to memory where stores meet?"""
    return any(root.accumulates for root, _ in self.wanted)


def memories(u: UOp) -> Iterator[UOp]:
  """What is read where u is computed in place."""
  todo, seen = [u], {u}
  while todo:
    n = todo.pop()
    if n.op in ("buffer", "reduce", "gather") or n.op in ALWAYS_GLOBAL:
      yield n
      continue
    todo += [s for s in n.src if s not in seen]
    seen.update(n.src)


def in_memory(u: UOp) -> bool:
  """Is it a memory or a number, but for its type and how it is seen?"""
  while u.op in VIEWS or u.op in ("cast", "detach", "tag"):
    u = u.src[0]
  return u.op in ("buffer", "const")


def is_summed(r: UOp) -> bool:
  """Is r the range of a reduce? `Schedule.fresh` names them so."""
  return rname(r)[0] == "k"


def within(index: Index, node: UOp) -> bool:
  """Does an index of this value stay inside of its bounds, whatever guards say?"""
  return all(inside(i, n) for i, n in zip(index, shape(node)))


def inside(i: UOp, n: int) -> bool:
  lo, hi = bounds(i) if not stands_in(i) else (-1, -1)
  return 0 <= lo and hi < n


def stands_in(i: UOp) -> bool:
  """Is there a data-dependent index in it?"""
  for u in unknown(i, "stands in"):
    u.memo["stands in"] = u.op == "at" or any(s.memo["stands in"] for s in u.src)
  return i.memo["stands in"]


def awkward(i: UOp) -> bool:
  """Does a data-dependent index stand under a division? C rounds those of negative numbers towards zero."""
  return any(u.op in ("div", "mod", "min") and stands_in(u) for u in toposort(i))


def apart(order: list[UOp]) -> dict[UOp, str]:
  """Every operation, to be a kernel of its own; but a sum of products is one,
  for its products would fill the memory."""
  products = set()
  for u in order:
    if u.op == "reduce" and u.arg[0] == "add":
      s = u.src[0]
      while s.op in TRANSPARENT or s.op in ("cast", "mul"):
        products.add(s)
        if s.op == "mul":
          break
        s = s.src[0]
  return {
    u: "each operation is a kernel" for u in order if u.op not in TRANSPARENT | LEAVES and u not in products
  }


# ---------------------------------------------------------------- the decision


def decide(v: Value) -> Decision:
  """Inline, stack or memory, and the reason."""
  op = v.node.op
  if op in ALWAYS_GLOBAL:
    return Decision("memory", f"a {op} is written before it is read")
  if v.cut:
    return Decision("memory", v.cut)
  if v.gathered and not v.passes_gather:
    return Decision("memory", "it is read at an index that is data")
  if op in TRANSPARENT:
    return Decision("inline", "a view")
  if op == "reduce" and numel(v.node.src[0]) >= SERIAL and v.narrow:
    return Decision(
      "memory", f"a reduction of {numel(v.node.src[0]):,} elements in a kernel with few results, {v.narrow}"
    )
  if v.node.dtype is dtypes.bool and not v.costly and v.beneath(numel(v.node)) <= numel(v.node):
    return Decision("inline", f"a mask of {v.work} operations on indices or bytes")
  if v.heavy and v.summed and not v.chained:
    return Decision("memory", "it has a contraction in it and is reduced, which would cost its register tile")
  if v.heavy and v.accumulated:
    return Decision("memory", "it has a contraction in it, and its kernel adds one element after another")
  if v.computed and v.again >= AGAIN and not v.chained and not v.widened:
    return Decision("memory", f"the sum that reads it would compute it {v.again:,} times")
  if v.kernels == 1 and v.again >= AGAIN and v.widened:
    return Decision("inline", "the sum that reads it widens what it is made of")
  if v.overlapping and not v.chained:
    return Decision("memory", f"windows that overlap would compute it {v.overlap:.2g} times")
  if v.kernels == 1 and not v.axes and not v.repeated:
    return Decision("inline", "one kernel wants it, once")
  cheap = cheap_again(v)
  return Decision("inline", cheap) if cheap else kept(v)


def cheap_again(v: Value) -> str | None:
  """Why computing it once more costs less than writing and reading it, if that is so."""
  if v.heavy:
    return None
  if not v.costly and v.memories < 2:
    return f"{v.work} operations on one memory are cheap enough to be repeated"
  # passes over memory: read what it is made of, or write and read it
  again = v.kernels * v.memories <= v.kernels + v.memories + 1
  if v.kernels > 1 and not v.repeated and v.node.op != "reduce" and v.work <= RECOMPUTE and again:
    return f"to read the {v.memories} memories beneath it in {v.kernels} kernels is no more than to write and read it"
  return None


def kept(v: Value) -> Decision:
  """On the stack, where one kernel uses it and the row fits; or else in memory."""
  if v.kernels > 1:
    return Decision("memory", f"{v.kernels} kernels read it, and {expense(v)}")
  reason = "its user wants it at several indices" if v.differs else "a loop of its user would repeat it"
  reason += f", and {expense(v)}"
  if v.heavy and not v.chained:
    return Decision("memory", reason)
  if v.accumulated:
    return Decision("memory", f"{reason}; its user adds to memory in order")
  if not within(next(iter(v.wanted))[1], v.node):
    return Decision("memory", f"{reason}; it is read under a guard")
  if not v.kept:
    return Decision("memory", f"{reason}; no loop of its user is outside all of it")
  if v.chained and sum(shape(v.node)[a] > 1 for a in v.axes) > 1:
    return Decision("memory", f"{reason}; one row of it would not do")
  if v.stack_bytes > STACK_BYTES:
    return Decision("memory", f"{reason}; a row of {v.stack_bytes:,} bytes is too long for the stack")
  return Decision("stack", f"{reason}; a row takes {v.stack_bytes:,} bytes")


def expense(v: Value) -> str:
  """What computing it again costs, as a clause."""
  if v.heavy:
    return "it has a contraction in it"
  if v.node.op == "reduce":
    return f"it is a reduction of {numel(v.node.src[0]) // max(1, numel(v.node)):,} elements each"
  more, many = (" or more" * known for known in (v.work == MOST_WORK, v.memories > MOST_READ))
  return f"computing it again costs {v.work:,} operations{more} on {v.memories}{many} memories"
