"""What is chosen by a condition is not chosen by it again: where(c, f(where(c, x, y)), z) is where(c, f(x), z).

A rule of values (ir/rules.py) cannot say it, for f is any number of operations, and what else uses them would compute
them again: here they are those of one kernel, each with one user. It is more than a saved choice. The gradient of
masked attention is where(c, dp * exp(where(c, s, -inf)), 0): where c is false exp has a result that is too small for
a float, and an Ice Lake takes so long for those that without them the kernel of dQ takes 0.75 of its time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mini.ir.ops import is_elementwise
from mini.ir.uop import UOp, rebuild, substitute, toposort


def without_repeated_choices(k: UOp) -> UOp:
  """The kernel with one choice in the place of two by the same condition."""
  while True:
    order = toposort(k)
    times = Counter(u.src[0] for u in order if u.op == "where")
    twice = [u for u in order if u.op == "where" and times[u.src[0]] > 1]
    users = Counter(s for u in order for s in u.src) if twice else Counter()
    table = {}
    for u in twice:
      src = (u.src[0], chosen(u, 1, users), chosen(u, 2, users))
      if src != u.src:
        table[u] = rebuild(u, src)
    if not table:
      return k
    k = substitute(k, table)


def chosen(u: UOp, n: int, users: Counter[UOp]) -> UOp:
  """Source n of a `where`, without choices by its condition."""

  def own(nodes: Iterable[UOp]) -> list[UOp]:
    return [s for s in nodes if users[s] == 1 and is_elementwise(s.op)]

  inside = own([u.src[n]])
  for x in inside:  # grows
    inside += own(x.src)
  memo: dict[UOp, UOp] = {}
  for x in reversed(inside):
    again = x.op == "where" and x.src[0] is u.src[0]
    memo[x] = memo.get(x.src[n], x.src[n]) if again else rebuild(x, tuple(memo.get(s, s) for s in x.src))
  return memo.get(u.src[n], u.src[n])
