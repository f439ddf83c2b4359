"""What is computed together with what was asked for, because later it would take the same work again.

  - of a gradient: the loss that it came from, and the other gradients of that `backward()`
  - what was updated in place from its own value: `w -= lr * g`, running statistics, averages, counts. It is state of a
    loop, whose graph would grow with every turn
  - of one of several views: what they are views of
  - what the program still holds of the graph and what takes work: the state of a recurrent network, parameters that
    were drawn at random, a cache to which something is joined in each turn

Nothing of this holds while a function is traced: there the trace decides.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mini.engine.dynamic_shapes import is_sized
from mini.ir.graph import numel
from mini.ir.sizes import Variable
from mini.ir.uop import UOp
from mini.tensor.trace import local
from mini.tensor.views import base_to_compute

if TYPE_CHECKING:
  from mini.tensor.handle import Handle

NEAR = 32  # so many nodes are looked through for the value that an update began with
# operations of a value, from which it is kept where it is held; one of these is as many
LARGE = 256
CAT = LARGE // 2  # what is joined to what was joined: all of it would be copied each time
NAMES = frozenset(("reshape", "detach", "tag", "stage"))  # of the value of their source
PARTLY = frozenset(("shrink", "gather"))  # as many elements of whose first source are used as they have
DEAR = frozenset(("reduce", "scan", "scatter", "threefry", "threefry2", "call"))


def named(u: UOp) -> UOp:
  """The node of a value that has several names."""
  while u.op in NAMES:
    u = u.src[0]
  return u


def know(gradients: Iterable[Handle]) -> None:
  """Handles of gradients that came from one pass."""
  handles = tuple(gradients)
  kin = tuple(map(weakref.ref, handles))
  for h in handles:
    h._uop.memo["kin"] = kin


def updated(handle: Handle, before: UOp) -> None:
  """The handle was bound to another node in place, having had the node `before`."""
  if local.current is None and local.samples is None and _is_near(handle._uop, before):
    local.states = {} if local.states is None else local.states
    local.states[id(handle)] = weakref.ref(handle)


def _is_near(u: UOp, before: UOp) -> bool:
  """Is u computed from `before`, in a few operations?"""
  level, seen = [u], {u}
  while level and len(seen) <= NEAR:
    level = [s for n in level for s in n.src if s not in seen]
    if before in level:
      return True
    seen.update(level)
  return False


def company(handles: Sequence[Handle], gradients: bool) -> list[Handle]:
  """What else is computed with these. gradients: those that the graph contains, too, with those of the same pass."""
  found: list[Handle] = []
  for t in handles:
    if t._base is not None and (base := base_to_compute(t)) is not None:
      found.append(base)
    if t._grad is not None:
      found += (h for ref in t._grad._losses if (h := ref()) is not None)
  if local.states is not None:
    found += (h for ref in local.states.values() if (h := ref()) is not None and h._is_state())
    local.states = None
  asked = [h._uop for h in handles]
  first = frozenset(asked)
  held: dict[UOp, list[Handle]] = {}
  passes: set[tuple[int, bool]] = set()  # of gradients, each once: has one of them been asked for?
  joined: dict[Handle, None] = {}  # held, of a part that is computed

  def keeps(h: Handle) -> bool:
    return gradients or "kin" not in h._uop.memo

  nodes = _nodes([*asked, *[h._uop for h in found]] if found else asked)
  for u in nodes:
    memo = u.memo
    if gradients and "kin" in memo and (kin := (id(memo["kin"]), u in first)) not in passes:
      passes.add(kin)
      found += (h for ref in memo["kin"] if (h := ref()) is not None and (u in first or h._is_state()))
    if "handle" in memo:
      for ref in memo["handle"]:
        if (h := ref()) is not None and u not in first and h._is_state() and keeps(h):
          held.setdefault(u, []).append(h)
    elif "owner" in memo and (h := memo["owner"]()) is not None and h._is_state():
      held[u] = [h]
    if "joined" in memo and (h := memo["joined"]()) is not None and h._is_state():
      joined[h] = None
  for h in joined:
    if (u := named(h._uop)) not in nodes and (path := _path(u, nodes)) is not None:
      nodes |= dict.fromkeys(path)
      held[u] = [h]
  if not held or (Variable.used and any(map(is_sized, asked))):
    return found
  return [*found, *_worth(asked, nodes, held)]


def _path(u: UOp, nodes: dict[UOp, None]) -> list[UOp] | None:
  """The nodes from u to those that are computed or in memory; None where more than their names is between."""
  path = [u]
  for s in u.src:
    while s not in nodes and s.op != "buffer" and "leaf" not in s.memo:
      if s.op not in NAMES:
        return None
      path.append(s)
      s = s.src[0]
  return path


def _worth(asked: Sequence[UOp], nodes: dict[UOp, None], held: dict[UOp, list[Handle]]) -> Iterator[Handle]:
  """Of what is held of some nodes, that which is computed as a whole and takes work once the rest is in memory."""

  def whole(u: UOp) -> bool:
    return wanted.get(u, 0) >= numel(u)

  order: dict[UOp, None] = {}  # sources first
  stack = [*nodes]
  while stack:
    u = stack[-1]
    below = [s for s in u.src if s in nodes and s not in order] if u not in order else []
    if not below:
      order[stack.pop()] = None
    stack += below
  wanted = {u: numel(u) for u in asked}  # elements
  for u in reversed(order):
    if whole(u):
      for n, s in enumerate(u.src):
        wanted[s] = wanted.get(s, 0) + (numel(u) if n == 0 and u.op in PARTLY else numel(s))
  work: dict[UOp, int] = {}  # of each node; none of what is in memory
  for u in order:
    own = LARGE if u.op in DEAR else CAT if u.op == "cat" else u.arg.function.work if u.op == "invoke" else 1
    work[u] = min(own + sum([work.get(s, 0) for s in u.src]), LARGE)
    if u in held and work[u] == LARGE:
      parts = u.src if u.op == "cat" else (u,)
      if whole(u) or all(whole(named(s)) or named(s) not in nodes for s in parts):
        yield from held[u]
        work[u] = 0


def _nodes(asked: Sequence[UOp]) -> dict[UOp, None]:
  """What is to be computed: nodes that are not in memory."""
  found: dict[UOp, None] = {}
  order = [*asked]
  for u in order:  # which grows
    if u not in found and u.op != "buffer" and "leaf" not in u.memo:
      found[u] = None
      order += u.src
  return found
