"""Outputs that take over the memory of an input: the new value of a state is written where the old one was.

What a kernel only copies there, as under a scatter (a cache that gets another entry, `t[i] = v`) or around a slice
(`t[2:5] = v`), is not even written: it stands there already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from mini.ir.kernel import (
  access,
  carries_value,
  kernel,
  param,
  params_of,
  place_of,
  results,
  store,
  stores,
  written,
)
from mini.ir.races import is_injective
from mini.ir.uop import (
  FALSE,
  TRUE,
  UOp,
  add,
  both,
  bounds,
  closed,
  conjuncts,
  const,
  is_condition,
  linear,
  range_,
  rebuild,
  rname,
  rsize,
  substitute,
  toposort,
)
from mini.schedule.merge import Order, levels_of, loaded, members


def overwrite(
  kernels: Sequence[UOp], pairs: Mapping[str, str], late: Mapping[str, int]
) -> tuple[list[UOp], dict[str, str]]:
  """(kernels in which outputs are written over inputs, for which of the pairs that was done).

  pairs: {output: input}, whose old value is of no use once the output is there. Who reads the old value runs before the
  first who writes the output; where a reader needs the output itself, or comes too late, the two stay apart.
  """
  if not pairs:
    return list(kernels), {}
  found = list(kernels)
  levels = levels_of(kernels, late)
  order = Order()
  writers: dict[str, list[int]] = {}
  readers: dict[str, list[int]] = {}
  for n, k in enumerate(kernels):
    reads, writes = ({p.arg[0] for p in ps} for ps in (loaded(toposort(k)), written(k)))
    order.add({w for name in reads | writes for w in writers.get(name, ())})
    for table, names in ((writers, writes), (readers, reads)):
      for name in names:
        table.setdefault(name, []).append(n)
  done: dict[str, str] = {}
  for out, old in pairs.items():
    if old in done.values():
      continue
    left = {n: narrowed(without_copy(found[n], out, old), out, old) for n in writers[out]}
    mine = [n for n, k in left.items() if any(p.arg[0] == out for p in written(k))]
    if not are_apart([left[n] for n in mine], out):
      mine = mine[:1]  # the others run after it
    before = [r for r in readers.get(old, ()) if r not in mine and old in names_of(left.get(r, found[r]))]
    late_ones = any(order.before[r] >> n & 1 or levels[r] > levels[n] for r in before for n in mine)
    if late_ones or not all(is_last(left[n], out, old) for n in mine):
      continue
    for r in before:
      for n in mine:
        order.link(r, n)
    for n, k in left.items():
      found[n] = k
    done[out] = old
  kept = [found[n] for n in sequence(order) if stores(found[n])]
  place: dict[str, UOp] = {}
  for k in kept:  # who writes over what it reads has one parameter for both, so that recipes know
    own = {p.arg[0]: p for p in params_of(k)}
    for p in written(k):
      if p.arg[0] in done:
        default = place.get(p.arg[0]) or param(done[p.arg[0]], p.arg[1], p.dtype)
        place[p.arg[0]] = own.get(done[p.arg[0]], default)
  return [moved(k, place) for k in kept], done


def names_of(k: UOp) -> set[str]:
  return {p.arg[0] for p in params_of(k)}


def without_copy(k: UOp, out: str, old: str) -> UOp:
  """The kernel less the stores that put into `out` what stands in `old` at the same place."""
  rest = tuple(s for s in results(k) if not (s.op == "store" and s.src[0].arg[0] == out and copies(s, old)))
  return k if rest == results(k) else kernel(k.arg.what, rest, closed(k))


def copies(s: UOp, old: str) -> bool:
  return not s.arg and is_old(s.src[1], s, old)


def is_old(value: UOp, s: UOp, old: str) -> bool:
  """Is it what stands in `old` where s stores?"""
  if value.op != "load" or value.src[0].op != "param" or value.src[0].arg[0] != old:
    return False
  return access(value)[2] is TRUE and place_of(value) is place_of(s)


def narrowed(k: UOp, out: str, old: str) -> UOp:
  """A kernel that puts a new value into a box of `out`, and elsewhere what stands there already, in `old`,
  over that box alone."""
  if len(stores(k)) != 1 or stores(k)[0].src[0].arg[0] != out:
    return k
  s = stores(k)[0]
  value = s.src[1]
  if value.op != "where" or s.arg or not is_old(value.src[2], s, old):
    return k
  where = condition(value.src[0])
  if where is None:
    return k
  table: dict[UOp, UOp] = {}
  for r in closed(k):
    first, last = span(r, where)
    if first > last:
      return kernel(k.arg.what, (), closed(k))
    table[r] = add(range_(rname(r), last - first + 1) if last > first else const(0), first)
  if substitute(where, table) is not TRUE:
    return k
  memory, index, gate = access(s)
  return substitute(kernel(k.arg.what, (store(memory, index, value.src[1], gate),), closed(k)), table)


def condition(u: UOp) -> UOp | None:
  """A boolean value as a condition on indices, if it is one."""
  if u.op == "const":
    return TRUE if u.arg else FALSE
  if u.op == "where" and is_condition(u.src[0]) and u.src[2] is FALSE:
    rest = condition(u.src[1])
    return None if rest is None else both(u.src[0], rest)
  return u if is_condition(u) else None


def span(r: UOp, where: UOp) -> tuple[int, int]:
  """The first and the last value of a range by the conditions that speak of it alone."""
  first, last = 0, rsize(r) - 1
  for c in conjuncts(where):
    if c is FALSE:
      return 0, -1
    terms, n = linear(c.src[0])
    if [*terms] == [r] and terms[r] == 1:
      last = min(last, c.src[1].arg - 1 - n)
    elif [*terms] == [r] and terms[r] == -1:
      first = max(first, n - c.src[1].arg + 1)
  return first, last


def is_last(k: UOp, out: str, old: str) -> bool:
  """Does each round of the kernel read of `old`, if anything, what it then writes to `out`, and no other round does?"""
  order = toposort(k)
  loads = [u for u in order if u.op == "load" and u.src[0].op == "param" and u.src[0].arg[0] == old]
  if not loads:
    return True
  s = next(s for s in stores(k) if s.src[0].arg[0] == out)
  before = set(toposort(s))
  same = all(
    place_of(u) is place_of(s) and extents(u.src[0]) == extents(s.src[0]) and u in before for u in loads
  )
  return same and is_injective(access(s)[1], s.src[0].arg[1], closed(k))


def extents(memory: UOp) -> list[int]:
  return [n for n in memory.arg[1] if n != 1]


def are_apart(kernels: Sequence[UOp], out: str) -> bool:
  """Does each of these kernels write a stretch of `out` of its own?"""
  spans = []
  for k in kernels:
    s = next(s for s in stores(k) if s.src[0].arg[0] == out)
    if s.arg or any(map(carries_value, access(s)[1])):
      return False
    spans.append(bounds(place_of(s)))
  spans.sort()
  return all(last < first for (_, last), (first, _) in pairwise(spans))


def moved(k: UOp, place: Mapping[str, UOp]) -> UOp:
  """The kernel, where memory is in the place of other; shapes may differ in axes of 1."""
  table = {p: place[p.arg[0]] for p in params_of(k) if p.arg[0] in place}
  memo: dict[UOp, UOp] = {}
  for u in toposort(k) if table else ():
    src = tuple(memo[s] for s in u.src)
    if u.op in ("load", "store") and u.src[0] in table:
      memory, index, _ = access(u)
      left = iter([i for i, n in zip(src[-len(index) :], memory.arg[1]) if n != 1])
      axes = [const(0) if n == 1 else next(left) for n in table[memory].arg[1]]
      src = (*src[: len(src) - len(index)], *axes)
    memo[u] = table[u] if u in table else rebuild(u, src)
  return memo.get(k, k)


def sequence(order: Order) -> Iterator[int]:
  """The numbers in their order; before each one those that it has to wait for."""
  placed = 0
  for n in range(len(order.before)):
    if not placed >> n & 1:
      waits = members(order.before[n] & ~placed)
      yield from sorted(waits, key=lambda m: (order.before[m].bit_count(), m))
      yield n
      placed |= order.before[n] | 1 << n
