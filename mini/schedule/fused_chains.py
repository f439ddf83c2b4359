"""Products of products, as attention is one: the rows of the inner product need no memory of their own.

In `f(a @ b) @ c`, where f works on each row by itself, a kernel of the outer product can make a few rows of the inner
one on its stack, and read b once for each few rows. A *chain* is all that lies between inner products and the sums that
use them: values as wide as a @ b, and *statistics* of their rows or columns, such as a maximum. It goes without memory
where nothing outside wants what is wide, b and its like stay in the cache, and it is worth it: where one kernel uses
the chain, it must be larger than what it is made of; where several do (attention and its gradients), each makes the
rows again, and it must be much larger. Sums that go through rows the same way, or across them, are one kernel.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from mini.ir.graph import numel, shape
from mini.ir.index import Index, live, output_ranges, view_index
from mini.ir.ops import is_elementwise
from mini.ir.uop import UOp, range_, rsize, toposort
from mini.schedule.cost import LEAVES, TRANSPARENT, is_contraction

# A chain must be so many times as large as what one product of it is made of, (where one user keeps it on the stack,
# where several make it again); rows of T numbers, of vectors of D, are T / 2D times as large.
LARGER = 1, 4  # at 4 making it again costs as much as memory
MASKED = 0.6, 0.8  # where half is masked, for loops end there (codegen/bound.py)
HUGE = 8  # where memory is what counts, and not the time that reading again from a far cache takes
CACHE_BYTES = 512 << 10  # what may be read again for each few rows, ...
FAR_CACHE_BYTES = 4 << 20  # ... and of a huge chain
MOST_PRODUCTS = 4  # of a chain: the sums of a residual network have more
BATCHES, TILE = 8, 4  # of what adds to memory row by row: so many, at least; and rows in multiples of this
ROW_BYTES = 64 << 10  # of one row: a kernel holds several, of a few values


class Chains(NamedTuple):
  wide: frozenset[UOp]  # what is made on the stack of each user
  statistics: frozenset[UOp]  # reductions of those: in memory where several kernels want them


def find_chains(order: list[UOp], outputs: Container[UOp]) -> Chains:
  """The chains of a graph that need no memory. order: sources first. outputs: what has memory in any case."""
  users: dict[UOp, list[UOp]] = {}
  for u in order:
    for s in u.src:
      users.setdefault(s, []).append(u)
  inner: dict[UOp, frozenset[UOp]] = {}  # of a value: the products that it is made of, row by row
  none: frozenset[UOp] = frozenset()
  for u in order:
    if is_contraction(u):
      inner[u] = frozenset((u,))
    elif u.op not in LEAVES and (is_elementwise(u.op) or u.op in TRANSPARENT):
      found = none.union(*(inner[s] for s in u.src))
      inner[u] = found if len(found) <= MOST_PRODUCTS else none
    else:
      inner[u] = none
  wide: set[UOp] = set()
  statistics: set[UOp] = set()
  for group in joined([inner[s] for u in order if is_contraction(u) for s in factors(u) if inner[s]]):
    chain = _chain(group, users, outputs)
    if chain is not None:
      wide |= chain[0]
      statistics |= chain[1]
  return Chains(frozenset(wide), frozenset(statistics))


def factors(contraction: UOp) -> tuple[UOp, ...]:
  """What a contraction multiplies."""
  product = contraction.src[0]
  while product.op != "mul":
    product = product.src[-1] if product.op == "where" else product.src[0]
  return product.src


def joined(sets: Iterable[frozenset[UOp]]) -> list[list[UOp]]:
  """Sets that share something become one."""
  home: dict[UOp, list[UOp]] = {}
  for s in sets:
    found = sorted(s, key=lambda u: u.serial)
    whole = list(dict.fromkeys([*(x for u in found for x in home.get(u, ())), *found]))
    home.update(dict.fromkeys(whole, whole))
  return list({id(g): g for g in home.values()}.values())


def _chain(
  inner: list[UOp], users: Mapping[UOp, list[UOp]], outputs: Container[UOp]
) -> tuple[set[UOp], set[UOp]] | None:
  """(what is wide, statistics) of the chain of these products; None where it is better in memory."""
  first = inner[0]
  size, item, batch = numel(first), first.dtype.itemsize, _batch(first)
  operands = [[_elements(f) for f in factors(u)] for u in inner]
  times = size * len(inner) / sum(map(sum, operands))  # as large as what a product is made of
  row = item * max(n for a, n in enumerate(shape(first)) if a not in batch)
  again = item * max(map(min, operands)) // prod(shape(first)[a] for a in batch)
  most = CACHE_BYTES if times < HUGE else FAR_CACHE_BYTES
  if any(numel(u) != size for u in inner) or row > ROW_BYTES or again > most or times < MASKED[0]:
    return None
  wide: set[UOp] = set()
  statistics: set[UOp] = set()
  outer: set[UOp] = set()
  todo = list(inner)
  while todo:
    u = todo.pop()
    if u in wide:
      continue
    wide.add(u)
    if u in outputs:
      return None
    for user in users[u]:
      if user.op in ("pad", "shrink"):  # windows of rows: each would make its own
        return None
      if is_elementwise(user.op) or user.op in TRANSPARENT:
        todo.append(user)
      elif is_contraction(user):
        outer.add(user)
      elif user.op == "reduce" and numel(user) < size:
        statistics.add(user)
      else:
        return None
  if prod(shape(first)[a] for a in batch) == 1:  # two layers of a network are faster one by one
    along = [axes_reduced(u, wide) for u in outer]
    if not feed_rows([u for u in statistics if axes_reduced(u, wide) in along], wide, users):
      return None
  least = (MASKED if any(map(is_masked, wide)) else LARGER)[len(outer) > 1]
  return (wide, statistics) if outer and times >= least else None


def feed_rows(statistics: Iterable[UOp], wide: Container[UOp], users: Mapping[UOp, list[UOp]]) -> bool:
  """Is a row made of one of its statistics, as a softmax is?"""
  todo = dict.fromkeys(statistics)
  for u in (walk := [*todo]):  # grows
    new = [x for x in users.get(u, ()) if x not in todo and (is_elementwise(x.op) or x.op in TRANSPARENT)]
    if any(x in wide for x in new):
      return True
    todo.update(dict.fromkeys(new))
    walk += new
  return False


def rows_at(value: UOp, index: Index, wide: Container[UOp]) -> dict[UOp, Index]:
  """{inner product: at what index}, of a sum over rows of a chain."""
  return found_at(value, index, factors(value), wide)[0] if is_contraction(value) else {}


def found_at(
  value: UOp, index: Index, sources: Iterable[UOp], wide: Container[UOp]
) -> tuple[dict[UOp, Index], Index]:
  """({inner product: at what index} beneath the sources of a reduction, the ranges that it reduces)."""
  summed = {a: range_(f"sum{a}", shape(value.src[0])[a]) for a in value.arg[1]}
  at = tuple(summed.get(a, i) for a, i in enumerate(index))
  todo = dict.fromkeys((s, at) for s in sources if s in wide)
  found: dict[UOp, Index] = {}
  for u, at in (walk := [*todo]):  # grows; each once, however many ways lead there
    if is_contraction(u):
      found.setdefault(u, at)
      continue
    inner = view_index(u, at)[0] if u.op in TRANSPARENT else at
    new = [(s, inner) for s in dict.fromkeys(u.src) if s in wide and (s, inner) not in todo]
    todo.update(dict.fromkeys(new))
    walk += new
  return found, tuple(summed.values())


def axes_reduced(value: UOp, wide: Container[UOp]) -> set[tuple[UOp, int]]:
  """Of the inner products beneath a reduction: along which of their axes it reduces them."""
  sources = factors(value) if is_contraction(value) else value.src
  found, summed = found_at(value, output_ranges(shape(value)), sources, wide)
  return {(u, a) for u, at in found.items() for a, i in enumerate(at) if not i.free.isdisjoint(summed)}


def alike(mine: Index, place: Index, theirs: Index, there: Index) -> dict[UOp, UOp] | None:
  """{a range of mine: one of theirs}, where mine stand in a place as theirs do there; None where they do not."""
  found: dict[UOp, UOp] = {}
  for a, b in zip(place, there):
    if (a in mine) != (b in theirs) or (a in mine and found.setdefault(a, b) is not b):
      return None
  rest, left = ([r for r in rs if r not in known] for rs, known in ((mine, found), (theirs, found.values())))
  pairs = [*found.items(), *zip(rest, left)]
  same = len(rest) == len(left) and len(set(found.values())) == len(found)
  return dict(pairs) if same and all(rsize(a) == rsize(b) for a, b in pairs) else None


class Host(NamedTuple):
  """A kernel that has the rows of which a sum is to be made."""

  root: Any
  value: UOp  # what is computed there: the sum, or what is added to it for each row
  place: Index  # of that, there
  at: Index  # of the sum
  across: UOp | None = None  # a range more, in which each row is added


def hosts(value: UOp, index: Index, makers: Sequence[tuple[Any, Index, Index, Index]]) -> Iterator[Host]:
  """Kernels that could make a sum beside their own, the best first. makers: (a kernel that makes a product of which
  both are sums, its index, the index of the product for this sum, and there).

  One that goes through rows the same way makes the sum of each: the gradients of attention's keys and values are one
  kernel. One whose rows are the columns here, and the other way round, adds what each of its rows gives to what those
  before have given: the gradient of the queries is made in the same kernel."""
  for root, theirs, place, there in makers:
    found = alike(live(index), place, live(theirs), there)
    if found is not None:
      at = tuple(found.get(i, i) for i in index)
      yield Host(root, value, at, at)
  for root, theirs, place, there in makers:
    crossing = crosswise(live(index), place, live(theirs), there)
    if crossing is not None and adds_well(value, crossing, place):
      across = range_("x", rsize(crossing.column))
      table = {**crossing.table, crossing.column: across}
      at = tuple(table.get(i, i) for i in index)
      inner = tuple(crossing.row if a in value.arg[1] else i for a, i in enumerate(at))
      yield Host(root, value.src[0], inner, at, across)


class Crossing(NamedTuple):
  """How sums along the rows of a product stand to a kernel that has its columns as rows."""

  table: dict[UOp, UOp]  # a range of the sums -> one of the kernel
  column: UOp  # of the sums: what the kernel sums along
  row: UOp  # of the kernel: what the sums run along


def crosswise(mine: Index, place: Index, theirs: Index, there: Index) -> Crossing | None:
  """How my ranges stand to theirs, where I sum a place along one of theirs, and they along one of mine; or None."""
  turned = [n for n, (a, b) in enumerate(zip(place, there)) if (a in mine) != (b in theirs)]
  rows = [there[n] for n in turned if there[n] in theirs]
  columns = [place[n] for n in turned if place[n] in mine]
  if len(rows) != 1 or len(columns) != 1:
    return None
  (row,), (column,) = rows, columns
  plain = [(a, b) for n, (a, b) in enumerate(zip(place, there)) if n not in turned]
  rest, left = (tuple(r for r in rs if r is not x) for rs, x in ((mine, column), (theirs, row)))
  found = alike(rest, tuple(a for a, _ in plain), left, tuple(b for _, b in plain))
  return None if found is None else Crossing(found, column, row)


def adds_well(sums: UOp, found: Crossing, place: Index) -> bool:
  """Is it faster to add them up in memory, row by row, than to make all rows again? Rows are then in order, and batches
  alone run in parallel; and a tile of rows may not overlap another."""
  batches = prod(rsize(i) for i in place if i in found.table)
  return sums.dtype.itemsize >= 4 and batches >= BATCHES and rsize(found.row) % TILE == 0


def is_masked(u: UOp) -> bool:
  """Is this a choice by position alone?"""
  ops = {x.op for x in toposort(u.src[0])} if u.op == "where" else set()
  return "iota" in ops and ops.isdisjoint(LEAVES - {"iota", "const"})


def _batch(contraction: UOp) -> set[int]:
  """The axes along which neither factor repeats, nor is summed: there a product has nothing in common."""
  s = shape(contraction.src[0])
  return set(range(len(s))).difference(contraction.arg[1], *map(repeated, factors(contraction)))


def repeated(u: UOp) -> set[int]:
  """The axes along which a factor is the same everywhere."""
  if u.op == "expand":
    return {a for a, (n, m) in enumerate(zip(shape(u.src[0]), shape(u))) if n != m}
  if u.op == "permute":
    found = repeated(u.src[0])
    return {a for a, b in enumerate(u.arg) if b in found}
  return repeated(u.src[0]) if u.op in ("cast", "detach") else set()


def _elements(factor: UOp) -> int:
  """How many elements of memory, or of what will be, a factor is made of."""
  memory, again = factor, repeated(factor)
  while memory.op in TRANSPARENT or memory.op == "cast":
    memory = memory.src[0]
  return min(numel(memory), prod(n for a, n in enumerate(shape(factor)) if a not in again))
