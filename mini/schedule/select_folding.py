"""What is chosen by a condition is not chosen by it again: where(c, f(where(c, x, y)), z) is where(c, f(x), z).

A rule of values (ir/rules.py) cannot say it, for f is any number of operations, and what else uses them would compute
them again: here they are those of one kernel, each with one user. It is more than a saved choice. The gradient of
masked attention is where(c, dp * exp(where(c, s, -inf)), 0): where c is false exp has a result that is too small for
a float, and an Ice Lake takes so long for those that without them the kernel of dQ takes 0.75 of its time.
"""

from __future__ import annotations

from collections import Counter

from mini.ir.ops import is_elementwise
from mini.ir.uop import UOp, rebuild, toposort

# What is decided where a node is used, innermost first: (a condition, the source that it chooses, the rest).
Decided = tuple[UOp, int, "Decided"] | None


def without_repeated_choices(k: UOp) -> UOp:
  """The kernel with one choice in the place of two by the same condition."""
  order = toposort(k)
  times = Counter(u.src[0] for u in order if u.op == "where")
  if all(n == 1 for n in times.values()):
    return k
  taken = repeated(order)
  new: dict[UOp, UOp] = {}
  for u in order:
    new[u] = new[u.src[taken[u]]] if u in taken else rebuild(u, tuple(new[s] for s in u.src))
  return new[k]


def repeated(order: list[UOp]) -> dict[UOp, int]:
  """The choices that are decided where they are used: which of their sources they are."""
  users = Counter(s for u in order for s in u.src)
  known: dict[UOp, Decided] = {}
  taken: dict[UOp, int] = {}
  for u in reversed(order):
    here = known.get(u)
    if u.op == "where" and (n := among(here, u.src[0])):
      taken[u] = n
    for n, s in enumerate(u.src):
      if users[s] == 1 and is_elementwise(s.op):
        known[s] = (u.src[0], n, here) if u.op == "where" and n else here
  return taken


def among(decided: Decided, condition: UOp) -> int:
  """The source that a condition chooses; 0 if it is not decided."""
  while decided is not None:
    c, n, decided = decided
    if c is condition:
      return n
  return 0
