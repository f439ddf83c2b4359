"""Kernels that walk the same ranges become one kernel with several stores: what one wrote and the other reads is passed
on in a register, what both read is read once. Layer norm stores its statistics on the way, AdamW reads and writes p, m,
v in one pass."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from math import prod

from mini.ir.kernel import access, carries_value, contractions, kernel, place_of, stores, written
from mini.ir.ops import is_elementwise
from mini.ir.uop import TRUE, UOp, bounds, closed, range_, rkind, rname, rsize, substitute, toposort
from mini.schedule.cost import MOST_WORK, operations

SMALL = 4096  # elements
PART = 64  # what two sums both read is no less of it than one of so many parts, to make them one
MANY = 64  # pieces of a memory: with one of more, who reads them is not made one
MOST_PARAMS = 30  # of one kernel: Metal passes 31 buffers, and one may be the error word


class Group:
  """A kernel and what must be known of it to merge it with another."""

  def __init__(self, k: UOp, waits: frozenset[UOp]):
    """waits: memories that are to be written before it runs, though it does not read them."""
    self.kernel, self.waits = k, waits
    order = toposort(k)
    self.loaded = loaded(order)
    self.sums = [u for u in order if u.op in ("reduce", "scan")]
    self.has_reduce = bool(self.sums)
    self.contracts = bool(contractions(k))
    self.work = sum(operations(u) for u in order if is_elementwise(u.op))
    self.fixed = accumulates(k) or any(u.op == "scan" for u in order)
    self.rows: frozenset[UOp] = frozenset()  # memories that it writes a piece of, and other kernels the rest
    self.spans: dict[UOp, tuple[int, int]] = {}  # of memories that it loads: the first and the last element

  def span(self, p: UOp) -> tuple[int, int]:
    found = self.spans.get(p)
    if found is None:
      at = [place_of(u) for u in toposort(self.kernel) if u.op == "load" and u.src[0] is p]
      ends = [(0, elements(p)) if carries_value(i) else bounds(i) for i in at]
      found = min((first for first, _ in ends), default=0), max((last for _, last in ends), default=-1)
      self.spans[p] = found
    return found

  def shares(self, p: UOp, other: Group) -> bool:
    """Do both load the same part of a memory, as far as their bounds say?"""
    return max(self.span(p)[0], other.span(p)[0]) <= min(self.span(p)[1], other.span(p)[1])


class Order:
  """Which group must run before which, by number; sets of them are bits. One that has become part of another is waited
  for no more."""

  def __init__(self) -> None:
    self.before: list[int] = []  # what one waits for, however far
    self.far: list[int] = []  # ... with another in between
    self.producers: list[set[int]] = []  # those that one waits for itself
    self.users: list[set[int]] = []  # ... and that wait for it

  def add(self, producers: Iterable[int]) -> int:
    n = len(self.before)
    self.before.append(0)
    self.far.append(0)
    self.producers.append(set(producers))
    self.users.append(set())
    for g in self.producers[n]:
      self.users[g].add(n)
    self._look(n)
    return n

  def link(self, first: int, second: int) -> None:
    """Group `first`, which does not wait for group `second`, must run before it."""
    self.producers[second].add(first)
    self.users[first].add(second)
    self._look(second)
    self._pass_on(second)

  def something_between(self, first: int, second: int) -> bool:
    return bool(self.far[second] >> first & 1)

  def join(self, g: int, n: int) -> None:
    """Group g becomes part of group n."""
    for near, back in ((self.producers, self.users), (self.users, self.producers)):
      near[n] = (near[n] | near[g]) - {g, n}
      for m in near[n]:
        back[m].discard(g)
        back[m].add(n)
      near[g] = set()
    self._look(n)
    self._pass_on(n)
    for m in self.users[n]:  # a way by g may have been all that was between
      self._look(m)

  def _look(self, n: int) -> None:
    """Note what n waits for, by what its producers do."""
    self.far[n] = self.before[n] = 0
    for g in self.producers[n]:
      self.far[n] |= self.before[g]
      self.before[n] |= 1 << g
    self.before[n] |= self.far[n]

  def _pass_on(self, n: int) -> None:
    """What n waits for, its users wait for."""
    todo = [n]
    for g in todo:  # grows
      for m in self.users[g]:
        if (self.before[g] | 1 << g) & ~self.before[m] or self.before[g] & ~self.far[m]:
          self.before[m] |= self.before[g] | 1 << g
          self.far[m] |= self.before[g]
          todo.append(m)


def members(bits: int) -> Iterator[int]:
  while bits:
    low = bits & -bits
    yield low.bit_length() - 1
    bits ^= low


def loaded(order: Iterable[UOp]) -> dict[UOp, None]:
  """As the keys of a dict: their order decides what is merged with what, and a set has another one in each process."""
  return dict.fromkeys(u.src[0] for u in order if u.op == "load" and u.src[0].op == "param")


def levels_of(kernels: Sequence[UOp], late: Mapping[str, int]) -> list[int]:
  """How late each kernel can run: as late as the latest of what it reads, and of inputs that it writes over. One that
  adds to a memory stands behind those before, but who writes a piece of one does not wait for the other pieces: it may
  come to stand behind them. late: of inputs, where it is not 0."""
  if not late:
    return [0] * len(kernels)
  level = dict(late)
  found: list[int] = []
  for k in kernels:
    reads, writes = ([p.arg[0] for p in ps] for ps in (loaded(toposort(k)), written(k)))
    waits = [*(level.get(name, 0) for name in reads), *(late.get(name, 0) for name in writes)]
    if accumulates(k):
      waits += [level.get(name, 0) for name in writes]
    found.append(max(waits, default=0))
    level.update({name: max(level.get(name, 0), found[-1]) for name in writes})
  return found


def merge_kernels(
  kernels: list[UOp], late: Mapping[str, int], waits: Mapping[UOp, Iterable[UOp]]
) -> list[UOp]:
  """The same program in fewer kernels, in an order in which it runs; those of different levels stay apart.
  waits: memories that are to be written before a kernel runs, though it does not read them."""
  # one may read what a later one stores
  alone = in_order([Group(k, frozenset(waits.get(k, ()))) for k in kernels])
  levels = levels_of([g.kernel for g in alone], late)
  level: list[int] = []  # of each group
  groups: list[Group | None] = []
  order = Order()
  writers: dict[UOp, list[int]] = {}  # param -> groups that write it
  readers: dict[UOp, list[int]] = {}
  home: list[int] = []  # a group that was merged -> where to
  place: list[int] = []  # of a group: that of the first of its kernels
  shared = {p for p, n in Counter(p for k in kernels for p in written(k)).items() if n > 1}  # cat, scatter
  added_to = {p for k in kernels if accumulates(k) for p in written(k)}

  def find(n: int) -> int:
    while home[n] != n:
      n = home[n]
    return n

  for me, mine in zip(alone, levels):
    k = me.kernel
    me.rows = frozenset(shared.intersection(written(k)))
    me.fixed = me.fixed or bool(me.rows) and (me.has_reduce or not me.rows.isdisjoint(added_to))
    after = (*me.loaded, *me.waits, *added_to.intersection(written(k)))  # pieces of a memory have no order
    for p in after:
      if len(writers.get(p, ())) > MANY:  # one that waits for all of them stands for them
        writers[p] = [order.add(map(find, writers[p]))]
        groups.append(None)
        home.append(writers[p][0])
        place.append(0)
        level.append(0)
    producers = {find(w) for p in after for w in writers.get(p, ())}
    near = dict.fromkeys(sorted(producers, reverse=True))
    if not me.contracts and closed(k):
      most = max(map(elements, me.loaded), default=0) if me.has_reduce else 0
      small = is_small(k, most)
      both_read = [p for p in me.loaded if elements(p) > 1 and elements(p) * PART >= most or small]
      found = [(p, find(r)) for p in both_read for r in readers.get(p, ())[-4:]]
      near.update({r: None for p, r in found if small or (o := groups[r]) and me.shares(p, o)})
    n = order.add(producers)
    groups.append(me)
    home.append(n)
    place.append(n)
    level.append(mine)
    for g in near:
      other = groups[g]
      if other is None or g == n or level[g] != mine:
        continue
      reads_me = order.before[g] >> n & 1  # me has become part of what other reads
      first, second = (n, g) if reads_me else (g, n)
      merged = None
      if not order.something_between(first, second):
        merged = try_merge(me, other) if reads_me else try_merge(other, me)
      if merged is not None:
        order.join(g, n)
        groups[g], home[g], place[n] = None, n, min(place[g], place[n])
        me = groups[n] = merged
    for p in written(k):
      if p in added_to:  # this waits for all that wrote it before: who waits for this need not ask for them
        writers[p] = []
      writers.setdefault(p, []).append(n)
    for p in me.loaded:
      readers.setdefault(p, []).append(n)
  return [g.kernel for g in in_order([g for _, g in sorted(zip(place, groups), key=lambda p: p[0]) if g])]


def elements(p: UOp) -> int:
  return prod(p.arg[1])


def is_small(k: UOp, most: int) -> bool:
  """Is a launch of it worth saving? For what walks more it is nothing beside the work, and a kernel of many such is
  compiled as long as all of them, where one that is launched for each is compiled once. most: elements of a memory that
  it adds up."""
  return prod(map(rsize, closed(k))) <= SMALL and most <= PART * SMALL


def accumulates(k: UOp) -> bool:
  """Is this the second kernel of a scatter, which works on what the first wrote?"""
  return any(s.arg is not None or any(carries_value(i) for i in access(s)[1]) for s in stores(k))


def in_order(groups: list[Group]) -> list[Group]:
  """Writers before readers, a second writer of the same memory (scatter) after the first; else as they are: the first
  one that waits for none runs next, so that what is made for a later one is not made before its turn."""
  writers: dict[UOp, list[int]] = {}
  for n, g in enumerate(groups):
    for p in written(g.kernel):
      writers.setdefault(p, []).append(n)
  left = [0] * len(groups)  # memories and groups that one still waits for
  readers: dict[UOp, list[int]] = {}
  behind: list[list[int]] = [[] for _ in groups]
  for n, g in enumerate(groups):
    mine = dict.fromkeys(written(g.kernel))
    first: list[int] = []
    for p in dict.fromkeys((*g.loaded, *g.waits)):
      if p in mine:
        first += [w for w in writers[p] if w != n]
      elif p in writers:
        readers.setdefault(p, []).append(n)
        left[n] += 1
    for p in mine if accumulates(g.kernel) else ():
      for w in reversed(writers[p][: bisect_left(writers[p], n)]):
        first.append(w)
        if accumulates(groups[w].kernel):  # which waits for those before it
          break
    left[n] += len(first)
    for w in first:
      behind[w].append(n)
  missing = {p: len(ws) for p, ws in writers.items()}
  ready = [n for n in range(len(groups)) if not left[n]]
  done: list[int] = []
  while ready:
    n = heappop(ready)
    done.append(n)
    freed = [*behind[n]]
    for p in written(groups[n].kernel):
      missing[p] -= 1
      freed += () if missing[p] else readers.get(p, ())
    for m in freed:
      left[m] -= 1
      if not left[m]:
        heappush(ready, m)
  assert len(done) == len(groups), "kernels wait for each other"
  return [groups[n] for n in done]


def try_merge(first: Group, second: Group) -> Group | None:
  """One kernel that does what `first` and then `second` do, or None."""
  a, b = closed(first.kernel), closed(second.kernel)
  common = min(len(a), len(b))
  sizes_differ = list(map(rsize, a[:common])) != list(map(rsize, b[:common]))
  too_long = first.work + second.work > MOST_WORK
  if first.fixed or second.fixed or common == 0 or sizes_differ or too_long:
    return None
  if bool(first.rows) != bool(second.rows) or not first.rows.isdisjoint(second.rows):
    return None
  if len(a) != len(b) and (first.contracts or second.contracts or len(a) > len(b)):
    return None
  if first.contracts and second.has_reduce or second.contracts and first.has_reduce:
    return None
  taken = {rname(r) for u in toposort(first.kernel) for r in closed(u)}
  table: dict[UOp, UOp] = dict(zip(b[:common], a[:common]))
  longer = b[common:]
  for r in [*longer, *(r for u in toposort(second.kernel) if u is not second.kernel for r in closed(u))]:
    name = rname(r)
    while name in taken:
      name += "_"
    taken.add(name)
    if name != rname(r):
      table[r] = range_(name, rsize(r), rkind(r))
  renamed = substitute(second.kernel, table)
  if first.rows and len({access(s)[1] for s in (*stores(first.kernel), *stores(renamed))}) > 1:
    return None  # a piece of one row goes with the same piece of another
  found = {s.src[0]: s for s in stores(first.kernel)}
  passed: dict[UOp, UOp] = {}
  for u in toposort(renamed):
    if u.op == "load" and u.src[0] in found:
      memory, index, gate = access(u)
      s = found[memory]
      if access(s)[1] != index or gate is not TRUE:
        return None  # where a gate is closed the load is 0, not what was stored
      passed[u] = s.src[1]
  if not passed and (len(a) != len(b) or first.contracts != second.contracts):
    return None  # tiles of a product walk what both read in an order of their own
  renamed = substitute(renamed, passed)
  rs = a if len(a) >= len(b) else a + tuple(table.get(r, r) for r in longer)
  both = tuple(dict.fromkeys(stores(first.kernel) + stores(renamed)))
  merged = Group(kernel(second.kernel.arg.what, both, rs), first.waits | second.waits)
  merged.rows = first.rows | second.rows
  if any(again(u, rs) for u in merged.sums):
    return None
  return merged if len({*merged.loaded, *written(merged.kernel)}) <= MOST_PARAMS else None


def again(u: UOp, rs: Sequence[UOp]) -> bool:
  """Would a sum be made again in each round of a loop that it does not depend on? By itself its kernel may turn the
  loops; with another, which needs them so, it cannot. (Gradients of a sum of attention's results, as many tokens as
  numbers of each: 0.17 of the time.)"""
  mine = [r in u.free for r in rs if rsize(r) > 1]
  return any(inside and not outside for outside, inside in pairwise(mine))
