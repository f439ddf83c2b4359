"""What no kernel reads of a temporary is not wanted: all of it, or what lies beyond a size known only at run time.

Such a size is an argument, and whatever mixes what lies beyond it with the rest is masked (engine/dynamic_shapes.py):
`where(i < n, x[i], 0)`. If each load of a temporary stands under such a mask, the kernel that writes it says so in its
last line (`end over (%i) if %i < %n`), and recipes may end its loops there (codegen/bound.py).
"""

from __future__ import annotations

from mini.ir.kernel import access, below_data, kernel, results, stores, under
from mini.ir.uop import UOp, closed, structural_key, toposort
from mini.schedule.merge import loaded
from mini.types import dtypes

Below = tuple[UOp, UOp]  # an index, and the value that it is below
NONE: frozenset[Below] = frozenset()


def without_unread(kernels: list[UOp], outputs: set[str]) -> list[UOp]:
  """The kernels, in the order in which they run, with what is wanted of each."""
  kernels = without_idle_stores(kernels, outputs)
  if not any(below_data(u) for k in kernels for u in toposort(k) if u.op == "lt"):
    return kernels
  writers: dict[str, int] = {}  # {memory: how many stores write it}
  made: dict[str, int] = {}  # {memory: the kernel that does}
  for n, k in enumerate(kernels):
    for s in stores(k):
      name = s.src[0].arg[0]
      writers[name], made[name] = writers.get(name, 0) + (1 if s.arg is None else 2), n
  read: dict[str, set[tuple[int, UOp]]] = {}  # {memory: (axis, value) for which all loads are below}
  found = list(kernels)
  for n in reversed(range(len(kernels))):
    k = kernels[n]
    limits = [limits_of(s, read) if writers[s.src[0].arg[0]] == 1 and s.src[0].arg[0] not in outputs else NONE
              for s in stores(k)]  # fmt: skip
    common = frozenset(b for b in limits[0].intersection(*limits) if known_before(b[1], n, made))
    if common:
      order = sorted(common, key=lambda b: (closed(k).index(b[0]), structural_key(b[1])))
      found[n] = kernel(k.arg.what, (*stores(k), *(under(i, v) for i, v in order)), closed(k))
    for u, below in demands(k, common).items():
      memory, index, _ = access(u)
      here = {(a, v) for i, v in below for a, at in enumerate(index) if at is i}
      read[memory.arg[0]] = read[memory.arg[0]] & here if memory.arg[0] in read else here
  return found


def without_idle_stores(kernels: list[UOp], outputs: set[str]) -> list[UOp]:
  """Where what read a temporary has become part of the kernel that makes it, nobody else may want it."""
  read = outputs.union(p.arg[0] for k in kernels for p in loaded(toposort(k)))
  found = []
  for k in kernels:
    kept = tuple(s for s in results(k) if s.op != "store" or s.src[0].arg[0] in read)
    found.append(kernel(k.arg.what, kept, closed(k)) if 0 < len(kept) < len(results(k)) else k)
  return found


def limits_of(s: UOp, read: dict[str, set[tuple[int, UOp]]]) -> frozenset[Below]:
  """What the indices of a store are below, wherever somebody reads it."""
  _, index, _ = access(s)
  found = read.get(s.src[0].arg[0], ())
  return frozenset((index[a], v) for a, v in found if index[a].op == "range")


def known_before(value: UOp, n: int, made: dict[str, int]) -> bool:
  """Is there what a value is loaded from before kernel n?"""
  return all(made.get(u.src[0].arg[0], -1) < n for u in toposort(value) if u.op == "load")


def demands(k: UOp, wanted: frozenset[Below]) -> dict[UOp, frozenset[Below]]:
  """{load of memory: the comparisons without each of which nobody needs it}"""
  below: dict[UOp, frozenset[Below]] = {}

  def need(u: UOp, limits: frozenset[Below]) -> None:
    below[u] = below[u] & limits if u in below else limits

  for s in stores(k):
    need(s.src[1], wanted)
    for u in (s.src[2], *access(s)[1]):
      need(u, NONE)
  for u in reversed(toposort(k)):
    if u not in below:
      continue
    mine = below[u]
    if u.op == "where":
      need(u.src[0], mine)
      need(u.src[1], mine.union(filter(None, map(below_data, parts(u.src[0])))))
      need(u.src[2], mine)
      continue
    inside = mine if u.op not in ("load", "stage") else NONE  # an index is looked at wherever it leads
    for x in u.src:
      need(x, inside)
  return {u: limits for u, limits in below.items() if u.op == "load" and u.src[0].op == "param"}


def parts(c: UOp) -> list[UOp]:
  """What has to hold for c to hold."""
  return parts(c.src[0]) + parts(c.src[1]) if c.op == "and" and c.dtype is dtypes.bool else [c]
