"""What is computed together with what was asked for, because later it would take the same work again.

  - of a gradient: the loss that it came from, and the other gradients of that `backward()`
  - what was updated in place from its own value: `w -= lr * g`, running statistics, averages, counts. It is state of a
    loop, whose graph would grow with every turn
  - of one of several views: what they are views of
  - where the graph is a large one: what the program still holds of it, such as the state of a recurrent network

Nothing of this holds while a function is traced: there the trace decides.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mini.ir.uop import UOp
from mini.tensor.trace import local
from mini.tensor.views import base_to_compute

if TYPE_CHECKING:
  from mini.tensor.handle import Handle

NEAR = 32  # so many nodes are looked through for the value that an update began with
LARGE = 256  # nodes of a graph in which what is held counts as state


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
  nodes = _nodes([*asked, *[h._uop for h in found]] if found else asked)
  first, held = frozenset(asked), len(nodes) > LARGE
  for u in nodes:
    if gradients and "kin" in u.memo:
      found += (h for ref in u.memo["kin"] if (h := ref()) is not None and (u in first or h._is_state()))
    if held and "handle" in u.memo:
      found += (h for ref in u.memo["handle"] if (h := ref()) is not None and h._is_state())
  return found


def _nodes(asked: Sequence[UOp]) -> dict[UOp, None]:
  """What is to be computed: nodes that are not in memory."""
  found: dict[UOp, None] = {}
  order = [*asked]
  for u in order:  # which grows
    if u not in found and u.op != "buffer" and "leaf" not in u.memo:
      found[u] = None
      order += u.src
  return found
