"""Index arithmetic as machines do it: in 64 bits that wrap, while `bounds` are those of integers without end.

What is proved of an index holds on a machine if nothing on the way to it, and to what its guard compares, is too large:
then the two are the same. Renderers print in 32 bits what `reach` says that those hold.
"""

from __future__ import annotations

from mini.ir.uop import UOp, bounds, conjuncts, linear

# Of an int64, but for one bit: a renderer that puts a lane's number in may add what a quotient has left over.
MOST = 1 << 62
Limits = dict[UOp, tuple[int, int]]


def under(gate: UOp) -> Limits:
  """[lo, hi] of the terms of which a gate says more than they do, where it is open."""
  known: Limits = {}
  for c in conjuncts(gate):  # each is  e < n
    terms, first = linear(c.src[0])
    ends = {t: sorted(x * k for x in known.get(t) or bounds(t)) for t, k in terms.items()}
    left = c.src[1].arg - 1 - first - sum(lo for lo, _ in ends.values())
    for t, k in terms.items():
      lo, hi = known.get(t) or bounds(t)
      most = left + ends[t][0]  # of k * t
      known[t] = (lo, min(hi, most // k)) if k > 0 else (max(lo, -(most // -k)), hi)
  return known


def wraps(e: UOp, known: Limits | None = None) -> bool:
  """Can anything on the way to an index expression, in whatever order it is added up, be more than a machine holds?
  Data alone are as they are."""
  return e.op != "cast" and not fits(e, known or {})


def fits(e: UOp, known: Limits, times: int = 1) -> bool:
  """Is all of it within MOST, also so many times? (Compilers multiply both sides of a minimum, not their result.)"""
  terms, first = linear(e)
  least, most = min(first, 0), max(first, 0)
  for t, k in terms.items():
    inner = abs(k) * times if t.op == "min" else 1
    plain = t.op not in ("div", "mod", "min") or (t.op == "min" and inner == 1 and t.src[0].op == "cast")
    if abs(k) >= MOST or (not plain and (t.src[1].arg * inner >= MOST or not fits(t.src[0], known, inner))):
      return False
    lo, hi = sorted(x * k for x in known.get(t) or bounds(t))
    least, most = least + min(lo, 0), most + max(hi, 0)
  return least * times > -MOST and most * times < MOST


def compares(c: UOp) -> bool:
  """Is a condition on indices printed as it is meant? `-v < n` of data v is printed as `v > -n`."""
  if c.op == "const":
    return True
  e, n = c.src
  if e.op == "mul" and e.src[1].arg == -1 and e.src[0].op == "cast":
    e = e.src[0]
  return not wraps(e) and abs(n.arg) < MOST


def reach(e: UOp) -> int:
  """No value on the way to an index expression is larger than this."""
  if e.op == "const":
    return abs(int(e.arg))
  if e.op == "mul":
    return reach(e.src[0]) * abs(e.src[1].arg)
  if e.op in ("add", "div", "mod", "min"):
    return sum(map(reach, e.src))
  return max(map(abs, bounds(e)))
