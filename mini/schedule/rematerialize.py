"""What is kept for later in the place of what it is made of.

A gradient comes back to a value u that a product made long before, as to what went into a GELU, and wants a function of
it alone, its slope. Where products read other functions of u, which have memory of their own, and that slope is all
else that anybody wants of u, it takes no more memory than u, and is made where u is, from what the others are made of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mini.ir.graph import shape
from mini.ir.ops import is_elementwise
from mini.ir.uop import UOp
from mini.schedule.cost import COSTLY, LEAVES, TRANSPARENT, Weights
from mini.schedule.fused_chains import factors


def kept_instead(
  order: list[UOp], weights: Weights, awaited: Collection[UOp], outputs: Collection[UOp]
) -> dict[UOp, str]:
  """Nodes to give memory to: {node: why}. (A step of a small GPT on a Zen 4: 0.99 of the time.)

  order: sources first. awaited: tags of what is made again, later."""
  of: dict[UOp, UOp] = {}  # a function of one value, and of numbers -> that value
  wanted: dict[UOp, dict[UOp, None]] = {}  # a value -> its functions that something else wants
  multiplied: set[UOp] = set()
  for n in order:
    values = {of.get(s) for s in n.src if s.op not in LEAVES or shape(s)}
    u = values.pop() if len(values) == 1 else None
    if n in weights.heavy:
      of[n] = n
    elif u is not None and (is_elementwise(n.op) or (n.op == "tag" and n not in awaited)):
      of[n] = u
    for s in n.src:
      if s in of and of.get(n) is not of[s]:
        wanted.setdefault(of[s], {})[s] = None
    if n.op == "reduce" and n in weights.heavy:
      multiplied.update(x for f in factors(n) for x in through_views(f))
  for n in outputs:
    if n in of:
      wanted.setdefault(of[n], {})[n] = None
  found: dict[UOp, str] = {}
  for u, functions in wanted.items():
    rest = [f for f in functions if f not in multiplied]
    if len(rest) != 1 or len(functions) == 1:
      continue
    f = rest[0]
    if weights.work[f] >= COSTLY and is_made_of(f, u, functions):
      found[f] = f"it is kept in the place of the {u.op} that it is made of, which nobody else wants"
  return found


def through_views(u: UOp) -> Iterator[UOp]:
  yield u
  while u.op in TRANSPARENT or u.op == "cast":
    yield (u := u.src[0])


def is_made_of(f: UOp, u: UOp, kept: Collection[UOp]) -> bool:
  """Is f made of u otherwise than by what is kept?"""
  todo = [f]
  seen = {f}
  for n in todo:  # grows
    if n is u:
      return True
    new = [s for s in n.src if s not in seen and s not in kept]
    seen.update(new)
    todo += new
  return False
