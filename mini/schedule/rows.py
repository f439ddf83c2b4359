"""Products of products, as attention is one: the rows of the inner product need no memory of their own.

In `f(a @ b) @ c`, where f works on each row by itself, a kernel of the outer product can make a few rows of the inner one
on its stack, and read b once for each few rows. A *chain* is all that lies between inner products and the sums that use
them: values as wide as a @ b, and *statistics* of their rows or columns, such as a maximum. It goes without memory where
nothing outside wants what is wide, b and its like stay in the cache, and it is worth it: where one kernel uses the chain,
it must be larger than what it is made of; where several do (attention and its gradients), each makes the rows again, and
it must be much larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

from mini.ir.graph import numel, shape
from mini.ir.ops import is_elementwise
from mini.ir.uop import UOp
from mini.schedule.cost import LEAVES, TRANSPARENT, is_contraction

LARGER = 2  # than all that a chain is made of, that its one user keeps it on the stack
MUCH_LARGER = 8  # the same where each of several users makes it again
AGAIN_BYTES = 2 << 20  # what may be read again for each few rows: it stays in a cache
ROW_BYTES = 32 << 10  # of one row: a kernel holds several, of a few values


class Chains(NamedTuple):
  wide: frozenset[UOp]  # what is made on the stack of each user
  statistics: frozenset[UOp]  # reductions of those: in memory where several kernels want them


def find_chains(order: list[UOp]) -> Chains:
  """The chains of a graph that need no memory. order: sources first."""
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
      inner[u] = none.union(*(inner[s] for s in u.src))
    else:
      inner[u] = none
  wide: set[UOp] = set()
  statistics: set[UOp] = set()
  for group in joined([inner[s] for u in order if is_contraction(u) for s in factors(u) if inner[s]]):
    found = _chain(group, users)
    if found is not None:
      wide |= found[0]
      statistics |= found[1]
  return Chains(frozenset(wide), frozenset(statistics))


def factors(contraction: UOp) -> tuple[UOp, ...]:
  """What a contraction multiplies."""
  product = contraction.src[0]
  while product.op != "mul":
    product = product.src[-1] if product.op == "where" else product.src[0]
  return product.src


def joined(sets: Iterable[frozenset[UOp]]) -> list[frozenset[UOp]]:
  """Sets that share something become one."""
  out: list[frozenset[UOp]] = []
  for s in sets:
    for other in [o for o in out if o & s]:
      out.remove(other)
      s |= other
    out.append(s)
  return out


def _chain(inner: frozenset[UOp], users: Mapping[UOp, list[UOp]]) -> tuple[set[UOp], set[UOp]] | None:
  """(what is wide, statistics) of the chain of these products; None where it is better in memory."""
  size = numel(next(iter(inner)))
  if any(numel(u) != size for u in inner):
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
    if not users.get(u):
      return None  # it is an output
    for user in users[u]:
      if is_elementwise(user.op) or user.op in TRANSPARENT:
        todo.append(user)
      elif is_contraction(user):
        outer.add(user)
      elif user.op == "reduce" and numel(user) < size:
        statistics.add(user)
      else:
        return None
  made_of = sum(map(numel, _operands(inner))) // len(inner)
  first = next(iter(inner))
  item = first.dtype.itemsize
  again = item * made_of // prod(shape(first)[a] for a in _batch(first))
  row = item * max(n for a, n in enumerate(shape(first)) if a not in _batch(first))
  least = LARGER if len(outer) == 1 else MUCH_LARGER
  if not outer or row > ROW_BYTES or again > AGAIN_BYTES or size < least * made_of:
    return None
  return wide, statistics


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


def _operands(inner: Iterable[UOp]) -> set[UOp]:
  """The memories, or what will be, that inner products are made of."""
  found: set[UOp] = set()
  for u in inner:
    for s in factors(u):
      while s.op in TRANSPARENT or s.op == "cast":
        s = s.src[0]
      found.add(s)
  return found
