"""Indices that are data: what stands for one in a kernel until its value is built, and how that takes its place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mini.ir.index import Index
from mini.ir.kernel import carries_value, load, stage_at
from mini.ir.uop import (
  TRUE,
  UOp,
  add,
  both,
  bounds,
  conjuncts,
  const,
  mul,
  rebuild,
  substitute,
  toposort,
  uop,
)
from mini.schedule.cost import stands_in
from mini.types import dtypes

VALUES = ("load", "reduce", "stage")  # what they are made of is no part of an index


def stand_in(value: UOp, index: Index, size: int | None) -> UOp:
  """What stands for a graph node's value, read at `index`, in the index of a gather or scatter until it has been built.
  Its bounds are those that the guard sees to; without a size, as in the guard itself, it may be anything."""
  return uop("at", dtypes.index, index, (value, size))


def guard(value: UOp, index: Index, size: int) -> UOp:
  target = stand_in(value, index, None)
  return both(
    uop("lt", dtypes.bool, (mul(target, -1), const(1))), uop("lt", dtypes.bool, (target, const(size)))
  )


def gathered(number: UOp, gate: UOp) -> UOp:
  """A number that is read at an index that is data has memory of its own: a load knows what is out of bounds."""
  return (
    load(stage_at(number, (), (), "stack", ()), (), gate) if any(map(stands_in, conjuncts(gate))) else number
  )


def seen(u: UOp) -> UOp:
  """Without the memory of a number of which no index has to be checked."""
  number = u.src[0].op == "stage" and u.src[0].src[0].op == "const"
  return u.src[0].src[0] if u.op == "load" and number and u.src[1] is TRUE else u


def resolved(k: UOp, value_of: Callable[[UOp, UOp], UOp]) -> UOp:
  """The kernel with values in the place of its stand-ins. value_of(stand-in, gate): the value that it stands for, read
  under that gate, and with stand-ins of its own. Each node once, sources first: linear in a chain of gathers."""
  if not any(u.op == "at" for u in toposort(k)):
    return k
  done: dict[UOp, UOp] = {}
  todo = [k]
  while todo:
    u = todo[-1]
    new, values, wanted = u, {}, [s for s in u.src if s not in done]
    if u not in done and not wanted:
      new = rebuild(u, tuple(done[s] for s in u.src))
      outer = outer_gate(new)
      values = {a: value_of(a, outer) for a in of_index(*places(new)) if a.op == "at"}
      wanted = [v for v in values.values() if v not in done]
    if u in done or not wanted:
      done.setdefault(u, placed(new, {a: done[v] for a, v in values.items()}) if values else new)
      todo.pop()
    else:
      todo += reversed(wanted)
  return done[k]


def gate_of(u: UOp) -> UOp:
  return u.src[1] if u.op == "load" else u.src[2]


def outer_gate(u: UOp) -> UOp:
  """What of the gate of a load or a store is known before any of its stand-ins."""
  outer = TRUE
  for c in conjuncts(gate_of(u)) if u.op in ("load", "store") else ():
    if not any(x.op == "at" for x in of_index(c)):
      outer = both(outer, c)
  return outer


def places(u: UOp) -> tuple[UOp, ...]:
  """The indices and the gate of a load or a store."""
  return (
    tuple(s for s in u.src[1:] if s.dtype in (dtypes.index, dtypes.bool)) if u.op in ("load", "store") else ()
  )


def of_index(*roots: UOp) -> list[UOp]:
  """The nodes of indices and gates, sources first, without what values are made of."""
  seen: set[UOp] = set()
  order: list[UOp] = []
  todo = [(u, False) for u in reversed(roots)]
  while todo:
    u, made = todo.pop()
    if made:
      order.append(u)
    elif u not in seen:
      seen.add(u)
      todo.append((u, True))
      todo += [(s, False) for s in reversed(u.src)] if u.op not in VALUES else ()
  return order


def placed(u: UOp, values: dict[UOp, UOp]) -> UOp:
  """A load or a store with values in the place of stand-ins. What is computed from indices alone, and is seen to be
  within, is an index itself, and its guard holds."""
  gate = [(c, of_index(c)) for c in conjuncts(gate_of(u))]
  table: dict[UOp, UOp] = {}
  for a, value in values.items():
    found, free = as_index(value), stand_in(a.arg[0], a.src, None)
    guards = [c for c, below in gate if free in below]
    within = found is not None and all(substitute(c, {free: found}) is TRUE for c in guards)
    table[a] = found if found is not None and within else uop("cast", dtypes.index, (value,))
  for x in of_index(*places(u)):
    if x not in table:
      table[x] = rebuild(x, tuple(table.get(s, s) for s in x.src))
  return seen(rebuild(u, tuple(table.get(s, s) for s in u.src)))


def as_index(u: UOp) -> UOp | None:
  """A value that is computed from indices alone, as an index."""
  if u.dtype.kind not in "iu":
    return None
  found = None
  if u.op == "const":
    found = const(u.arg)
  elif u.op == "cast" and u.src[0].dtype is dtypes.index and not carries_value(u.src[0]):
    found = u.src[0]
  elif u.op == "add" and None not in (parts := [as_index(s) for s in u.src]):
    found = add(parts[0], parts[1])  # type: ignore[arg-type]
  if found is None or any(x.op == "at" for x in toposort(found)):
    return None
  info = np.iinfo(u.dtype.np)
  lo, hi = bounds(found)
  return found if info.min <= lo and hi <= info.max else None
