"""What is written in place without a jitted function: a few elements of large memory that nobody else holds.

`x[i] = v` gives x another value: a scatter over the memory of the old one. Where that is large, and held by nothing but
the nodes on the way from this scatter, the elements are written there. Who else holds it - a view, another tensor, an
array of NumPy's - is seen by its references: each one to the memory, and to a node on the way, has to be known here.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from mini.engine.buffer import Buffer, leaf_of
from mini.engine.device import Device
from mini.engine.place import place
from mini.ir.uop import UOp

LARGE = 1 << 18  # bytes: what is smaller is copied in less time than this takes
MOST_NODES = 64  # that a value is made of; of more it is copied

_probe = [object()]
ONE = sys.getrefcount(_probe[0])  # as counted of what one list, tuple or dict holds


def memory_under(u: UOp) -> UOp | None:
  """The leaf of large memory of which u is a new value in some elements, at places that no data decide."""
  if u.op != "scatter" or u.arg[0] != "set" or place(u.src[1]):
    return None
  base = u.src[0]
  while base.op == "reshape":
    base = base.src[0]
  if base.op != "buffer" or type(base.arg[0]) is not Buffer:
    return None
  b: Buffer = base.arg[0]
  return base if b.nbytes >= LARGE and not b.lent and not Device[b.device].interprets else None


def read_before(roots: Sequence[UOp]) -> list[UOp]:
  """Values that are written into the memory that they are made of: they are computed before."""
  return [
    u.src[2]
    for u in roots
    if (m := memory_under(u)) is not None and leaf_of(u.src[2]) is None and m in below(u.src[2])
  ]


def overwritten(roots: Sequence[UOp], leaves: Sequence[UOp], looked_at: dict[UOp, int]) -> dict[int, int]:
  """{root: leaf} by their numbers: the roots that are written into the memory of a leaf. looked_at: has each node that
  is computed as a key."""
  found = {}
  for n, u in enumerate(roots):
    if (m := memory_under(u)) is not None:
      k, m = leaves.index(m), None
      if is_held_by_these_alone(u, looked_at):
        found[n] = k
  return found


def below(u: UOp) -> list[UOp]:
  """u and the nodes beneath it; a few of them, if they are many."""
  nodes, seen = [u], {u}
  for n in nodes:  # which grows
    fresh = [s for s in dict.fromkeys(n.src) if s not in seen]
    nodes += fresh
    seen.update(fresh)
    if len(nodes) > MOST_NODES:
      break
  return nodes


def is_held_by_these_alone(root: UOp, looked_at: dict[UOp, int]) -> bool:
  """Does nothing hold the memory that root is written into, but root? looked_at holds nodes, too, and its leaves are in
  a list."""
  nodes = below(root)
  if len(nodes) > MOST_NODES:
    return False
  inputs = {id(n.src): n.src for n in nodes}.values()
  users = Counter(id(s) for src in inputs for s in src)
  memory = id(memory_under(root))
  above, before = {memory}, 0
  while len(above) > before:
    before = len(above)
    above.update([id(n) for n in reversed(nodes) if any(id(s) in above for s in n.src)])
  for k in range(1, len(nodes)):
    if id(nodes[k]) in above:
      known = ONE + users[id(nodes[k])] + (nodes[k] in looked_at) + (id(nodes[k]) == memory)
      if sys.getrefcount(nodes[k]) != known:
        return False
      if id(nodes[k]) == memory and sys.getrefcount(nodes[k].arg[0]) != ONE:
        return False
  return True
