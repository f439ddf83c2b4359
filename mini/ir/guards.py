"""What a guard says of the indices beneath it: a sum that it keeps inside is divided as what is inside."""

from __future__ import annotations

from itertools import pairwise

from mini.ir.uop import (
  FALSE,
  TRUE,
  Terms,
  UOp,
  add,
  bounds,
  conjuncts,
  const,
  div,
  index_nodes,
  is_condition,
  linear,
  merged,
  mod,
  mul,
  range_,
  rebuild,
  structural_key,
  substitute,
  toposort,
)

PLAIN = frozenset(("range", "const", "add", "mul", "div", "mod", "min"))  # of no data
Places = dict[UOp, tuple[Terms, int]]  # a range, and the sum that it stands for with the least value of it


def guarded(index: tuple[UOp, ...], gate: UOp) -> tuple[UOp, ...]:
  """The same index where the gate is open: beneath 0 <= y - 1 < 3 and 0 <= x - 1 < 3, (k * 9 + y * 3 + x - 4) // 9
  is k. What would still divide a guarded sum stays as it is: recipes cut it into parts of which no guard speaks."""
  if gate is TRUE or not any(map(divides, index)):
    return index
  places = limits(gate)
  if places is None:
    return index
  back = {r: add(total(terms), -lo) for r, (terms, lo) in places.items()}
  found = [placed(i, places) for i in index]
  return tuple(i if still_divides(e, places) else substitute(e, back) for i, e in zip(index, found))


def guarded_bounds(index: UOp, gate: UOp) -> tuple[int, int]:
  """[lo, hi] of an index where the gate is open; [0, -1] if it never is."""
  places = limits(gate)
  return (0, -1) if places is None else bounds(placed(index, places))


def limit(rest: UOp, most: int, step: int) -> UOp:
  """Where a loop of r ends, if step is positive, or begins, of which step * r + rest < most is asked."""
  if step > 0:
    return div(add(mul(rest, -1), most - 1 + step), step)
  return add(div(add(rest, -most), -step), 1)


def without_implied(kernel: UOp) -> UOp:
  """The kernel without conditions that the limits of a loop imply."""
  return substitute(kernel, {u: TRUE for u in toposort(kernel) if is_implied(u)})


def is_implied(condition: UOp) -> bool:
  """Do the limits of a loop imply the condition? Limits with data in them may have wrapped."""
  if condition.op != "lt" or not is_condition(condition):
    return False
  e, most = condition.src
  if any(u.op not in PLAIN for u in index_nodes(e)):
    return False
  limited = ((r, step) for r, step in linear(e)[0].items() if r.op == "range" and r.src)
  return any(r.src[step > 0] is limit(add(e, mul(r, -step)), most.arg, step) for r, step in limited)


def still_divides(e: UOp, places: Places) -> bool:
  return any(n.op in ("div", "mod", "min") and not n.free.isdisjoint(places) for n in index_nodes(e))


def divides(index: UOp) -> bool:
  return any(n.op in ("div", "mod") for n in index_nodes(index))


def limits(gate: UOp) -> Places | None:
  """The sums of which a gate says more than their ranges do. None: it is never open."""
  if gate is FALSE:
    return None
  found: dict[tuple, tuple[int, int]] = {}
  said = [(c.src[0], c.src[1].arg - 1) for c in conjuncts(gate)]  # each is  e <= most
  for e, most in said:
    terms, first = linear(e)
    order = sorted(terms, key=structural_key)
    sign = 1 if terms[order[0]] > 0 else -1
    known = tuple((t, sign * terms[t]) for t in order)
    lo, hi = found.get(known, bounds(total(dict(known))))
    most -= first
    found[known] = (lo, min(hi, most)) if sign > 0 else (max(lo, -most), hi)
    (t, k), *others = known
    if t.op == "div" and abs(k) == 1 and not others:  # of i // 36 >= 1 follows i >= 36
      n = t.src[1].arg
      said.append((t.src[0], most * n + n - 1) if sign > 0 else (mul(t.src[0], -1), most * n))
  if any(lo > hi for lo, hi in found.values()):
    return None
  longest = sorted(found.items(), key=lambda sum_: -len(sum_[0]))  # it says more than its parts
  # names that no kernel gives
  return {range_(f"<{n}>", hi - lo + 1): (dict(terms), lo) for n, (terms, (lo, hi)) in enumerate(longest)}


def total(terms: Terms) -> UOp:
  acc = const(0)
  for t, c in terms.items():
    acc = add(acc, mul(t, c))
  return acc


def digit(u: UOp) -> tuple[UOp, int, int]:
  """(of what, what it counts, how many there are; 0: all), as (i // 6) % 2 is (i, 6, 2)."""
  of, count = (u.src[0], u.src[1].arg) if u.op == "mod" else (u, 0)
  return (of.src[0], of.src[1].arg, count) if of.op == "div" else (of, 1, count)


def cut(terms: Terms, places: Places) -> Terms:
  """Digits of which no place speaks, cut into those of which some do: i // 18 is i // 36 * 2 + (i // 18) % 2 beneath a
  guard of i // 36."""
  spoken = {t for known, _ in places.values() for t in known}
  ends: dict[UOp, set[int]] = {}
  for of, unit, count in map(digit, spoken):
    ends.setdefault(of, set()).update((unit, unit * count))
  made: Terms = {}
  for t, c in terms.items():
    of, unit, count = digit(t)
    end, units = unit * count, [unit]  # 0: without end
    for e in sorted(ends.get(of, ())) if t not in spoken else ():
      if e > units[-1] and e % units[-1] == 0 and end % e == 0 and e != end:
        units.append(e)
    parts = [div(of, lo) if not hi else mod(div(of, lo), hi // lo) for lo, hi in pairwise([*units, end])]
    made = merged(made, {p: c * (lo // unit) for p, lo in zip(parts, units)} if len(units) > 1 else {t: c})
  return made


def placed(u: UOp, places: Places) -> UOp:
  """u, with ranges for the sums that they stand for."""
  terms, first = linear(u)
  return in_places(cut(terms, places), first, places)


def in_places(terms: Terms, first: int, places: Places) -> UOp:
  for r, (known, lo) in places.items():
    t, c = next(iter(known.items()))
    times = terms.get(t, 0) // c
    if times and all(terms.get(t) == times * c for t, c in known.items()):
      terms = {t: c for t, c in terms.items() if t not in known} | {r: times}
      first += times * lo
  acc = const(first)
  for t, c in terms.items():
    parted = t.op in ("div", "mod", "min")
    acc = add(acc, mul(rebuild(t, (in_places(*linear(t.src[0]), places), t.src[1])) if parted else t, c))
  return acc
