"""Where a loop may begin and end: what it adds, or stores, is not wanted before and beyond.

A reduce whose body is `where(c, x, identity)` adds nothing where c is false. If c compares its index with those of
outer loops (k <= i, in a triangle), or with data that is the same everywhere (a size that only a run knows), the loop
has limits that those decide; if it compares it with an unrolled range of the output, lanes of that are left out. A
stage need not be filled where nobody reads it, nor a result be stored where the kernel says that it is not wanted
(schedule/dead_stores.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import isfinite, prod

import numpy as np

from mini.ir.bounded import accumulated, is_exact, taken, unclamped, values
from mini.ir.guards import limit
from mini.ir.kernel import access, below_data, stage_index, stores, under, wanted
from mini.ir.ops import identity
from mini.ir.uop import (
  TRUE,
  UOp,
  add,
  both,
  bounds,
  closed,
  conjuncts,
  const,
  div,
  is_condition,
  less,
  linear,
  loop_limits,
  mul,
  range_,
  rkind,
  rname,
  rsize,
  substitute,
  toposort,
  uop,
)
from mini.types import dtypes

Condition = tuple[UOp, int]  # e < c


def only_where(condition: UOp, value: UOp, nothing: UOp, is_sum: bool) -> UOp:
  """A value, or nothing. Of a product that is added up the factors, so that a compiler fuses it with the addition
  whether it knows the condition or not: the last bit does not depend on that."""
  if is_sum and value.op == "mul" and value.dtype.kind == "f":
    numbers = [x.op == "const" and isfinite(x.arg) for x in value.src]
    masked = lambda x: only_where(condition, x, nothing, any(numbers))
    factors = [x if is_number else masked(x) for x, is_number in zip(value.src, numbers)]
    return uop("mul", value.dtype, tuple(factors))
  return uop("where", value.dtype, (condition, value, nothing))


def limits(kernel: UOp, r: UOp, finite: bool) -> tuple[UOp, UOp]:
  """(first, end) for loop r; ValueError where it cannot be shown that there are any.
  finite: what is 0 makes a product 0."""
  owner = next(u for u in toposort(kernel) if r in closed(u))
  if rkind(r) != "loop":
    raise ValueError(f"%{rname(r)} is no plain loop")
  if owner.op == "stage":
    found = _of_stage(kernel, owner, r)
  else:
    if owner.op == "reduce":
      conditions = needed(owner.src[0], owner.arg.what, finite)
    else:
      conditions = added(kernel, r, finite) or of_results(kernel, r)
    found = _of_conditions(kernel, r, conditions)
  if bounds(found[0])[1] <= 0 and bounds(found[1])[0] >= rsize(r):
    raise ValueError(f"%{rname(r)} takes all of its values whatever the outer loops are at")
  return found


# ---------------------------------------------------------------- reduces, and results


def _of_conditions(kernel: UOp, r: UOp, conditions: list[Condition]) -> tuple[UOp, UOp]:
  around = closed(kernel)
  if r in around:
    around = around[: around.index(r)] if accumulated(kernel, r) else ()
  outer = {x for x in around if rkind(x) in ("loop", "par")}
  firsts, ends = [], []
  for e, c in conditions:  # what is added is nothing, or what is stored not wanted, where e >= c
    terms, k = linear(e)
    step = terms.get(r, 0)
    rest: UOp | None = const(k)
    for t, x in terms.items():
      if t is r:
        continue
      if r in t.free or t.free - outer and t.free & outer and t.op != "range":
        rest = None
        break
      inside = t.free <= outer
      rest = add(rest, mul(t, x) if inside else const(min(x * b for b in bounds(t))))  # type: ignore[arg-type]
    if rest is None or not step:
      continue
    if step > 0:
      ends.append(limit(rest, c, step))
    else:
      firsts.append(limit(rest, c, step))
  if not firsts and not ends and r in closed(kernel):
    raise ValueError(f"what is stored for all values of %{rname(r)} is wanted")
  if not firsts and not ends:
    raise ValueError(f"nothing says that %{rname(r)} adds nothing from somewhere on")
  # of several the one that cuts off most
  first = max(firsts, key=sum_of_bounds, default=const(0))
  end = min(ends, key=sum_of_bounds, default=const(rsize(r)))
  return first, end


def _of_lanes(kernel: UOp, r: UOp, finite: bool) -> dict[UOp, UOp]:
  out = {}
  for u in toposort(kernel):
    if u.op == "reduce" and r in u.src[0].free and r not in closed(u):
      found = [less(e, c) for e, c in needed(u.src[0], u.arg.what, finite) if r in e.free]
      apart = [c for c in found if not any(rkind(x) == "vec" for x in c.free)]
      gate = reduce(both, apart, TRUE)
      if gate is not TRUE:
        nothing = const(identity(u.arg.what, u.dtype), u.dtype)
        value = uop("where", u.dtype, (gate, u.src[0], nothing))
        out[u] = uop(u.op, u.dtype, (value, *u.src[1:]), u.arg)
  if not out:
    raise ValueError(f"nothing says that lanes of %{rname(r)} add nothing")
  return out


def sum_of_bounds(e: UOp) -> int:
  return sum(bounds(e))


def needed(value: UOp, kind: str, finite: bool) -> list[Condition]:
  """Conditions without each of which the value is the identity of a reduction of this kind."""
  if value.op == "where" and _is(value.src[2], identity(kind, value.dtype)):
    return conditions_of(value.src[0]) + needed(value.src[1], kind, finite)
  if value.op == "load" and value.src[0].op == "stage":
    stage, index, _ = access(value)
    own = stage_index(stage)
    if all(i.op == "range" for i in own) and len(set(own)) == len(own) == len(closed(stage)):
      table = dict(zip(own, index))
      return [(substitute(e, table), c) for e, c in needed(stage.src[0], kind, finite)]
    return _through(stage, own, index, kind, finite)
  if value.op == "load" and kind == "add":  # 0 where its gate is shut
    return conditions_of(access(value)[2])
  if value.op == "cast" and value.src[0].dtype.kind == value.dtype.kind == "f":
    return needed(value.src[0], kind, finite)
  if kind == "add" and value.op == "mul":
    a, b = (needed(s, kind, finite) for s in value.src)
    return a + b if finite else [c for c in a if c in b]
  return []


def _through(
  stage: UOp, own: tuple[UOp, ...], index: tuple[UOp, ...], kind: str, finite: bool
) -> list[Condition]:
  """The conditions of what a stage holds, where they depend on the index that it is stored at as a whole."""
  out = []
  for e, c in needed(stage.src[0], kind, finite):
    terms, _ = linear(e)
    for i, at in zip(own, index):
      parts, _ = linear(i)
      some = next(iter(parts), None)
      times = terms.get(some, 0) // parts[some] if some is not None and some in terms else 0
      if times and all(terms.get(t) == x * times for t, x in parts.items()):
        e = add(add(e, mul(i, -times)), mul(at, times))
    if not e.free & set(closed(stage)):
      out.append((e, c))
  return out


def conditions_of(c: UOp) -> list[Condition]:
  if is_condition(c):
    return [(x.src[0], x.src[1].arg) for x in conjuncts(c) if x.op == "lt"]
  if (below := below_data(c)) is not None:
    return conditions_of(under(*below))
  if c.op == "and" and c.dtype is dtypes.bool:
    return conditions_of(c.src[0]) + conditions_of(c.src[1])
  return []


def of_results(kernel: UOp, r: UOp) -> list[Condition]:
  """Conditions where one of which fails nobody wants what loop r stores."""
  return [(unclamped(e, r), c) for found in wanted(kernel) for e, c in conditions_of(found)]


def added(kernel: UOp, r: UOp, finite: bool) -> list[Condition]:
  """Conditions where one of which fails loop r of the kernel adds nothing to what it stores."""
  if not accumulated(kernel, r):
    return []
  first, *others = (needed(s.src[1], s.arg, finite) for s in stores(kernel) if r in s.free)
  return [c for c in first if all(c in found for found in others)]


def _is(u: UOp, x: float | bool) -> bool:
  return u.op == "const" and u.arg == x


# ---------------------------------------------------------------- stages


def _of_stage(kernel: UOp, owner: UOp, r: UOp) -> tuple[UOp, UOp]:
  axis = next((a for a, i in enumerate(stage_index(owner)) if r in i.free), None)
  loads = [u for u in toposort(kernel) if u.op == "load" and u.src[0] is owner]
  assert axis is not None
  parts, _ = linear(stage_index(owner)[axis])
  step = next((c for t, c in parts.items() if r in t.free), 1)
  if step == 1 and len(parts) > 1:
    step = prod(rsize(t) for t in parts if t.op == "range" and t is not r)
  read = [access(u)[1][axis] for u in loads]
  firsts = [div(reach(i, False, loose), step) for loose in (False, True) for i in read]
  ends = [add(div(reach(i, True, loose), step), 1) for loose in (False, True) for i in read]
  first = _extreme(firsts, len(read), rsize(r), np.less_equal)
  end = _extreme(ends, len(read), rsize(r), np.greater_equal)
  if first is None or end is None:
    raise ValueError(f"no load of what %{rname(r)} stores reads first or last")
  again = (first.free | end.free) - owner.free
  if again:
    raise ValueError(f"it would be filled again for each %{min(map(rname, again))}")
  return first, end


def reach(e: UOp, most: bool, loose: bool = False) -> UOp:
  """No smaller than the largest value that an index takes (or no larger than the smallest), by output loops and data.
  loose: also where limits lie beyond the values of their loops."""
  terms, k = linear(e)
  total = const(k)
  for t, c in terms.items():
    up = most == (c > 0)
    if t.op == "range" and t.src:
      first, end = t.src if loose else loop_limits(t)
      at = add(end, -1) if up else first
    elif t.op == "min" and any(x.src for x in toposort(t) if x.op == "range"):
      at = reach(t.src[0], up, loose)
    else:
      at = const(bounds(t)[1] if up else bounds(t)[0])
    total = add(total, mul(at, c))
  return total


def _extreme(
  es: list[UOp], count: int, size: int, better: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> UOp | None:
  """The limit of a range of this size that is never beaten by one of the first `count`."""
  outer = values([(e, size) for e in es])
  if outer is None or not all(is_exact(e, outer) for e in es):
    return None
  found = [taken(e, outer)[0].clip(0, size) for e in es]
  for e, v in zip(es, found):
    if all(np.all(better(v, x)) for x in found[:count]):
      return e
  return None


def bounded(kernel: UOp, r: UOp, finite: bool) -> dict[UOp, UOp]:
  """{r: r with limits}; or where r is unrolled, {a reduce: the same without what its lanes add that is nothing}."""
  if rkind(r) == "unroll":
    return _of_lanes(kernel, r, finite)
  return {r: range_(rname(r), rsize(r), rkind(r), limits(kernel, r, finite))}
