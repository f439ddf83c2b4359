"""What a schedule shows once it is made: values that must have memory after all, and why. It is then made again.

A kernel has the register tile of one product, and a device passes a kernel so many memories and no more.
"""

from __future__ import annotations

from bisect import bisect_left
from math import prod

from mini.ir.graph import numel
from mini.ir.index import Index, live
from mini.ir.kernel import params_of
from mini.ir.uop import UOp, free_in, index_nodes, rsize, toposort
from mini.schedule.cost import MOST_READ, MOST_WORK, TRANSPARENT, is_contraction, operations
from mini.schedule.fuse import Root, Schedule
from mini.schedule.fused_chains import factors

PARTS = ("div", "mod")
VECTOR = 8  # elements, of a usual one
LARGE = 1 << 18  # products of a contraction, from which it must have its register tile
LOOP = 64  # operations that take a C compiler as long as a loop
SHORT = 60  # nodes of a kernel that has fewer than MOST_WORK operations
Cuts = dict[UOp, str]  # node -> why it is to have memory


def cuts(s: Schedule) -> Cuts:
  """Empty where nothing is left to be cut."""
  return beside_products(s) or too_wide(s) or too_long(s)


def beside_products(s: Schedule) -> Cuts:
  """Reductions that cost the product of their kernel its register tile, or have none themselves. Rows of a chain are
  made of two products by one kernel, with tiles of their own. Known before kernels are built."""
  found: Cuts = {}
  reduces: dict[Root, dict[UOp, list[Index]]] = {}
  for node, root, index in s.reduces:
    reduces.setdefault(root, {}).setdefault(node, []).append(index)
  for root, wanted in reduces.items():
    products = [u for u in wanted if is_contraction(u)]
    known = list(s.products(root.value))
    if any(f in s.chains.wide for u in (*products, *known) for f in (u, *factors(u))):
      continue
    inner = [u for u in wanted if u is not root.value and u not in s.cut]
    if len(known) == 1 and numel(known[0].src[0]) >= LARGE:
      found |= {
        u: "beside a product it would cost that its register tile" for u in inner if u not in products
      }
    again = {u: times(root, wanted[u]) // numel(u) for u in inner if u in products}
    found |= {
      u: f"its kernel would compute each of its elements {n:,} times" for u, n in again.items() if n > 1
    }
    found |= {
      u: "vectors along its kernel's last axis would be strided" for u in again if strided(root, wanted[u])
    }
    rest = [u for u in products if u not in found]
    first = root.value if root.value in rest else max(rest, key=lambda u: numel(u.src[0]), default=None)
    found |= {
      u: "a kernel has the register tile of one product" for u in rest if u is not first and u in inner
    }
  return found


def times(root: Root, indices: list[Index]) -> int:
  """The rounds of a kernel's loops, with those of what it wants at an index."""
  own = set(live(root.index))
  return max(prod(map(rsize, own.union(free_in(index)))) for index in indices)


def strided(root: Root, indices: list[Index]) -> bool:
  """Whether a kernel's last axis has parts of less than a vector, as the phases have that a stride's gradient has."""
  last = next((r for r in reversed(root.index) if r.op == "range" and rsize(r) > 1), None)
  parts = (e for index in indices for i in index for e in index_nodes(i) if e.op in PARTS and last in e.free)
  return last is not None and any(e.src[1].arg < VECTOR for e in parts)


def too_wide(s: Schedule) -> Cuts:
  """So that no kernel is made of more than a device can pass."""
  found: set[UOp] = set()
  for root in [root for root, k in s.built.items() if len(params_of(k)) > MOST_READ]:
    read: dict[UOp, frozenset[UOp]] = {}
    for u, held in inside(s, root):
      read[u] = frozenset((u,) * (u.op not in ("const", "iota"))) if held else narrow(u, read, found)
  why = f"the kernel that wants it would be made of more than {MOST_READ} memories"
  return dict.fromkeys(sorted(found - s.cut.keys(), key=lambda u: u.serial), why)


def too_long(s: Schedule) -> Cuts:
  """So that no kernel has more operations than a compiler takes linear time for: one of 200 sines took gcc 21 s, one of
  32 sums over a row that changes between them 5 s."""
  found: Cuts = {}
  why = f"the kernel that wants it would have more than {MOST_WORK:,} operations"
  for root, k in s.built.items():
    if len(toposort(k)) >= SHORT:
      known = inside(s, root)
      if sum(weight(u) for u, held in known if not held) > MOST_WORK:
        found |= dict.fromkeys([u for u in between_parts(known) if u not in s.cut], why)
  return found


def weight(u: UOp) -> int:
  """The operations that a node is for a compiler."""
  return LOOP if u.op == "reduce" else operations(u)


def between_parts(known: list[tuple[UOp, bool]]) -> list[UOp]:
  """The values that are live between the parts of a kernel, each of at most MOST_WORK operations: a part ends in its
  second half, where what is live has the fewest elements."""
  values: dict[UOp, UOp] = {}  # of what is computed: itself or, of a view, what that shows
  last: dict[UOp, int] = {}  # where a value is wanted last
  for n, (u, held) in enumerate(known):
    if not held:
      values[u] = values.get(u.src[0], u) if u.op in TRANSPARENT else u
      last |= {values[x]: n for x in (*u.src, u) if x in values}
  ends: dict[int, list[UOp]] = {}
  for u, n in last.items():
    ends.setdefault(n, []).append(u)
  cuts: list[int] = []
  size = work = 0
  least: tuple[int, int, int] | None = (
    None  # elements that are live, where, operations of the part until there
  )
  for n, (u, held) in enumerate(known[:-1]):
    if not held:
      if work + weight(u) > MOST_WORK and least is not None:
        cuts.append(least[1])
        work, least = work - least[2], None
      work += weight(u)
      size += numel(u) if values[u] is u else 0
    size -= sum(numel(x) for x in ends.get(n, ()))
    if 2 * work > MOST_WORK and size and (least is None or size <= least[0]):
      least = size, n, work
  place = {u: n for n, (u, _) in enumerate(known)}
  return [u for u, n in last.items() if (at := bisect_left(cuts, place[u])) < len(cuts) and cuts[at] < n]


def inside(s: Schedule, root: Root) -> list[tuple[UOp, bool]]:
  """The nodes that a kernel computes or reads, depth first and sources first, and whether it reads them."""
  found: list[tuple[UOp, bool]] = []
  seen: set[UOp] = set()
  todo = [(root.value, False)]
  while todo:
    u, done = todo.pop()
    held = not u.src or (u in s.memory and u is not root.value)
    if done or (held and u not in seen):
      found.append((u, held))
    elif u not in seen:
      todo.append((u, True))
      todo += [(x, False) for x in reversed(u.src)]
    seen.add(u)
  return found


def narrow(u: UOp, read: dict[UOp, frozenset[UOp]], found: set[UOp]) -> frozenset[UOp]:
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
