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
from mini.engine.device_of import place
from mini.ir.uop import UOp

LARGE = 1 << 18  # bytes: what is smaller is copied in less time than this takes
MOST_NODES = 256  # that a value is made of; of more it is copied

_probe = [object()]
ONE = sys.getrefcount(_probe[0])  # as counted of what one list, tuple or dict holds


def memory_under(u: UOp) -> tuple[UOp | None, list[UOp]]:
  """(the leaf of large memory of which u is a new value in some elements, at places that no data decide; the values
  that are put there, one over the other)"""
  values: list[UOp] = []
  if u.op != "scatter":
    return None, values
  while leaf_of(u) is None and (u.op == "reshape" or is_put(u)):
    values += u.src[2:]
    u = u.src[0]
  if u.op != "buffer" or type(u.arg[0]) is not Buffer:
    return None, values
  b: Buffer = u.arg[0]
  fits = b.nbytes >= LARGE and not b.lent and not Device[b.device].interprets
  return (u if fits else None), values


def is_put(u: UOp) -> bool:
  return u.op == "scatter" and u.arg[0] == "set" and not place(u.src[1])


def read_before(roots: Sequence[UOp]) -> list[UOp]:
  """Values that are put into the memory that they are made of: they are computed before."""
  found = (memory_under(u) for u in roots)
  return [values[0] for m, values in found if m is not None and len(values) == 1 and reads(values[0], m)]


def reads(value: UOp, memory: UOp) -> bool:
  return leaf_of(value) is None and memory in below(value)


def overwritten(roots: Sequence[UOp], leaves: Sequence[UOp], looked_at: dict[UOp, int]) -> dict[int, int]:
  """{root: leaf} by their numbers: the roots that are written into the memory of a leaf. To write them again, where
  somebody interrupts this, changes nothing. looked_at: has each node that is computed as a key."""
  found = {}
  for n, u in enumerate(roots):
    m, values = memory_under(u)
    if m is not None and not any(reads(v, m) for v in values):
      k, m = leaves.index(m), None
      del values
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
  memory = id(memory_under(root)[0])
  of: dict[int, list[int]] = {}  # those that are made of one
  for source, user in [(id(s), id(n)) for n in nodes for s in n.src]:
    of.setdefault(source, []).append(user)
  above, todo = {memory}, [memory]
  for u in todo:  # grows
    todo += [n for n in of.get(u, ()) if n not in above]
    above.update(todo)
  for k in range(1, len(nodes)):
    if id(nodes[k]) in above:
      known = ONE + users[id(nodes[k])] + (nodes[k] in looked_at) + (id(nodes[k]) == memory)
      if sys.getrefcount(nodes[k]) != known:
        return False
      if id(nodes[k]) == memory and sys.getrefcount(nodes[k].arg[0]) != ONE:
        return False
  return True
