"""The one node type, integer algebra on index expressions, and substitution.

A UOp is immutable and hash-consed: equal nodes are the same object while anyone holds them, so `is` is equality and
dicts are memo tables. Index expressions (dtype index) are kept in one normal form by `add/mul/div/mod/least`: a sum of
coefficient * atom plus a constant, where an atom is a range, a div/mod/min of such a sum, or a value cast to an index.
What the nodes of a tensor graph mean stands in graph.py, what those of a kernel mean in kernel.py.
"""

from __future__ import annotations

import gc
import os
import reprlib
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache, partial, wraps
from itertools import count
from math import gcd
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import ref

import numpy as np

from mini.types import DType, dtypes, to_bfloat16

P = ParamSpec("P")
T = TypeVar("T")


class Over(NamedTuple):
  """The argument of a node that closes ranges, which are the last `count` of its sources."""

  what: str  # reduce, scan: add | mul | max; stage: the space; kernel: its name
  count: int  # type: ignore[assignment]  # a tuple has a method of this name
  shape: tuple = ()  # stage: of its memory, one entry per axis of its index


class UOp:
  """op: a row of the table or a kernel op; src: its inputs; arg: what else tells it from its like."""

  __slots__ = ("__weakref__", "arg", "dtype", "free", "memo", "op", "serial", "src")
  op: str
  dtype: DType
  src: tuple[UOp, ...]
  arg: Any
  free: frozenset[UOp]  # the ranges that it depends on and that are not closed inside it
  memo: dict[Any, Any]  # what passes remember of it
  serial: int

  def __repr__(self) -> str:
    inputs = [repr(u) for u in self.src]
    return f"{self.op}({', '.join(inputs if self.arg is None else [*inputs, str(self.arg)])})"


NOTHING: frozenset[UOp] = frozenset()
# As WeakValueDictionary, but that an entry goes in one call into C: there a Ctrl-C would be lost.
_interned: dict[tuple, ref[UOp]] = {}
_serial = count()
_lock = threading.Lock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def uop(op: str, dtype: DType, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
  """The node with these parts: the one that exists, or a new one."""
  # repr tells 0.0 from -0.0, 1 from True, and nan from itself
  key = (op, dtype, src, repr(arg) if op == "const" else arg)
  with _lock:
    known = _interned.get(key)
    u = None if known is None else known()
    if u is None:
      u = alone(op, dtype, src, arg)
      _interned[key] = ref(u, partial(_interned.pop, key))  # called with the reference: the default
      u.free = _free(src, arg) | {u} if op == "range" else _free(src, arg)
    return u


def alone(op: str, dtype: DType, src: tuple[UOp, ...], arg: Any) -> UOp:
  """A node that nothing will find by its parts."""
  u = UOp()
  u.op, u.dtype, u.src, u.arg, u.memo, u.free = op, dtype, src, arg, {}, NOTHING
  u.serial = next(_serial)
  return u


def memory_leaf(memory: Any, shape: tuple[int, ...], dtype: DType) -> UOp:
  """The node of memory that keeps its own nodes, in `memory.leaves`: it comes and goes with every call of a loop."""
  with _lock:
    known = memory.leaves.get((shape, dtype))
    u = known and known()
    if u is None:
      u = alone("buffer", dtype, (), (memory, shape))
      u.memo["shape"], u.memo["place"] = shape, memory.device
      memory.leaves[shape, dtype] = ref(u)
    return u


def _free(src: tuple[UOp, ...], arg: Any) -> frozenset[UOp]:
  found = NOTHING
  for s in src:
    if s.free is not found and s.free:
      found = found | s.free if found else s.free
  return found.difference(src[len(src) - arg.count :]) if found and isinstance(arg, Over) else found


def next_serial() -> int:
  """A serial above those of all nodes so far, and below those of all that are made from now on."""
  return next(_serial)


def interned_count() -> int:
  return len(_interned)


def const(value: float | bool, dtype: DType = dtypes.index) -> UOp:
  """A number of the given type: wrapped or rounded to it, so that equal constants are one node."""
  if dtype is dtypes.index:
    return _index(value)
  try:
    if dtype.kind in "iu":
      bits = 8 * dtype.itemsize
      value = int(value) & ((1 << bits) - 1)
      if dtype.kind == "i" and value >> (bits - 1):
        value -= 1 << bits
    elif dtype.kind == "b":
      value = bool(value)
    else:
      value = _rounded(float(value), dtype) if value else float(value)  # a cache cannot tell 0.0 from -0.0
  except (OverflowError, ValueError):  # infinity as an integer, an int beyond all floats
    raise OverflowError(f"{reprlib.repr(value)} is no {dtype.name}") from None
  return uop("const", dtype, (), value)


@lru_cache(4096, typed=True)
def _index(value: float | bool) -> UOp:
  return uop("const", dtypes.index, (), value)


@lru_cache(4096)
def _rounded(value: float, dtype: DType) -> float:
  with np.errstate(all="ignore"):
    return float(to_bfloat16(np.float32(value)) if dtype is dtypes.bfloat16 else dtype.np.type(value))


def range_(name: str, size: int, kind: str = "loop", limits: tuple[UOp, ...] = ()) -> UOp:
  """A loop index in 0..size-1. kind: loop | par | around | vec | unroll | local (kernel.py). limits: (first, end),
  expressions of outer loops: of its values those from first to end - 1."""
  return uop("range", dtypes.index, limits, (name, size, kind))


def rname(r: UOp) -> str:
  return r.arg[0]


def rsize(r: UOp) -> int:
  return r.arg[1]


def rkind(r: UOp) -> str:
  return r.arg[2]


def closed(u: UOp) -> tuple[UOp, ...]:
  """The ranges that u ends: those of its `over` list, in loop order."""
  return u.src[len(u.src) - u.arg.count :] if isinstance(u.arg, Over) else ()


def loop_limits(r: UOp) -> tuple[UOp, UOp]:
  """(first, end) of a loop: the values that it takes, which are none where end <= first."""
  first, end = r.src or (const(0), const(rsize(r)))
  return mul(least(mul(first, -1), 0), -1), least(end, rsize(r))


def without_collector(f: Callable[P, T]) -> Callable[P, T]:
  """A function that makes very many nodes, of which none is in a cycle: Python's collector of cycles would look through
  them again and again, for a sixth of the time."""

  @wraps(f)
  def inner(*args: P.args, **kwargs: P.kwargs) -> T:
    if not gc.isenabled():  # another thread is at it, and will enable it again; or the user wants none
      return f(*args, **kwargs)
    try:
      gc.disable()
      return f(*args, **kwargs)
    finally:
      gc.enable()

  return inner


def toposort(*roots: UOp) -> list[UOp]:
  """Sources before users; deterministic (depth first, sources left to right)."""
  if len(roots) == 1 and roots[0].op == "kernel":  # which each pass asks for again
    below = roots[0].memo.get("below")
    if below is None:
      below = roots[0].memo["below"] = toposort(*roots[0].src)
    return [*below, roots[0]]
  seen: set[UOp] = set()
  order: list[UOp] = []
  stack: list[Any] = list(reversed(roots))  # None: of the node before it all sources are done
  add, push, pop = seen.add, stack.append, stack.pop  # found once: much of all compiling is done here
  while stack:
    u = pop()
    if u is None:
      order.append(pop())
    elif u not in seen:
      add(u)
      if u.src:
        push(u)
        push(None)
        for s in reversed(u.src):
          if s not in seen:
            push(s)
      else:
        order.append(u)
  return order


def unknown(u: UOp, key: str) -> list[UOp]:
  """u and what is beneath it of which `memo[key]` is not known yet; sources before users. Looks below no known node, so
  asking of every node of a graph takes one walk in all."""
  for s in u.src:
    if key not in s.memo:
      break
  else:  # a node that was built on known ones: the rule
    return [u] if key not in u.memo else []
  order: list[UOp] = []
  seen: set[UOp] = set()
  stack = [(u, False)]
  while stack:
    n, done = stack.pop()
    if done:
      order.append(n)
    elif n not in seen and key not in n.memo:
      seen.add(n)
      stack.append((n, True))
      for s in n.src:
        if key not in s.memo:
          stack.append((s, False))
  return order


# ---------------------------------------------------------------- index algebra

Terms = dict  # {atom: coefficient}


def linear(u: UOp) -> tuple[Terms, int]:
  """u as ({atom: coefficient}, constant). Not to be modified."""
  got = u.memo.get("linear")
  if got is not None:
    return got
  if u.op == "const":
    res: tuple[Terms, int] = ({}, u.arg)
  elif u.op == "add":
    (a, ca), (b, cb) = linear(u.src[0]), linear(u.src[1])
    res = (merged(a, b), ca + cb)
  elif u.op == "mul":
    a, ca = linear(u.src[0])
    k = u.src[1].arg
    res = ({t: c * k for t, c in a.items()}, ca * k)
  else:
    return {u: 1}, 0  # not remembered: a node that holds itself would outlive its users until a collection
  u.memo["linear"] = res
  return res


def merged(a: Terms, b: Terms, times: int = 1) -> Terms:
  terms = dict(a)
  for atom, c in b.items():
    terms[atom] = terms.get(atom, 0) + c * times
  return {t: c for t, c in terms.items() if c}


def _rejoin(terms: Terms) -> tuple[Terms, int] | None:
  """Digits of one number, joined. Where b is q = x // c and what has no digits:
  b * c*s + (x % c) * s  ->  ((b - q) * c + x) * s
  (b % n) * c*s + (x % c) * s  ->  ((b - q) * c + x) % (n*c) * s"""
  for low, s in terms.items():
    if low.op != "mod":
      continue
    x, c = low.src[0], low.src[1].arg
    rest = {t: k for t, k in terms.items() if t is not low}
    if not any(t.op in ("div", "mod") and k % (s * c) == 0 for t, k in rest.items()):
      continue
    (xs, x0), (qs, q0) = linear(x), linear(div(x, c))
    more, more0 = merged(xs, qs, -c), x0 - q0 * c
    digits = {t: k for t, k in qs.items() if t.op in ("div", "mod")}
    if digits and all(rest.get(t) == k * s * c for t, k in digits.items()):
      return merged(rest, more, s), more0 * s
    for high in [t for t, k in rest.items() if t.op == "mod" and k == s * c] if digits else ():
      b, b0 = linear(high.src[0])
      if all(b.get(t) == k for t, k in digits.items()):
        number = _sum(merged(more, b, c), more0 + b0 * c)
        joined, first = linear(mod(number, high.src[1].arg * c))
        del rest[high]
        return merged(rest, joined, s), first * s
  return None


def structural_key(u: UOp) -> str:
  """A name for an index atom that does not depend on when it was made: the order of the terms of a sum."""
  got = u.memo.get("key")
  if got is None:
    arg = (digest(u.arg[0]), u.arg[1]) if u.op == "at" else u.arg
    got = rname(u) if u.op == "range" else f"{u.op} {arg} {' '.join(map(structural_key, u.src))}"
    if len(got) > 1000:  # what is used twice is spelled twice: it could double with each step of a search
      got = hashed(got)
    u.memo["key"] = got
  return got


def digest(u: UOp) -> str:
  """A short name for a graph, however large: equal ones have equal names."""
  for n in unknown(u, "digest"):
    parts = f"{n.op} {n.dtype.short} {n.arg!r} {' '.join(s.memo['digest'] for s in n.src)}"
    n.memo["digest"] = hashed(parts)
  return u.memo["digest"]


def hashed(text: str) -> str:
  import hashlib  # and all of OpenSSL, which `import mini` does without

  return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _sum(terms: Terms, c: int) -> UOp:
  while (joined := _rejoin(terms)) is not None:
    terms, c = joined[0], c + joined[1]
  acc = None
  for t, k in sorted(terms.items(), key=lambda tk: (-abs(tk[1]), structural_key(tk[0]))):
    term = t if k == 1 else uop("mul", dtypes.index, (t, const(k)))
    acc = term if acc is None else uop("add", dtypes.index, (acc, term))
  if acc is None:
    return const(c)
  return acc if c == 0 else uop("add", dtypes.index, (acc, const(c)))


def add(a: UOp, b: UOp | int) -> UOp:
  (ta, ca), (tb, cb) = linear(a), ({}, b) if isinstance(b, int) else linear(b)
  return _sum(merged(ta, tb), ca + cb)


def weighted_sum(parts: Iterable[tuple[UOp, int]]) -> UOp:
  """The sum of a * k over all (a, k), put in order once."""
  terms: Terms = {}
  c = 0
  for a, k in parts:
    ta, ca = linear(a)
    terms, c = merged(terms, ta, k), c + ca * k
  return _sum(terms, c)


def mul(a: UOp, k: int) -> UOp:
  terms, c = linear(a)
  return const(0) if k == 0 else _sum({t: v * k for t, v in terms.items()}, c * k)


def bounds(u: UOp) -> tuple[int, int]:
  """[lo, hi], inclusive, of an index expression."""
  got = u.memo.get("bounds")
  if got is None:
    got = u.memo["bounds"] = _bounds(u)
  return got


def _bounds(u: UOp) -> tuple[int, int]:
  if u.op == "const":
    return u.arg, u.arg
  if u.op == "range":
    return 0, rsize(u) - 1
  if u.op == "at":  # what stands for a guarded index (schedule/fuse.py)
    return (0, u.arg[1] - 1) if u.arg[1] is not None else (-(1 << 63), (1 << 63) - 1)
  if u.op == "cast":  # a value that serves as an index: all that its type can hold
    d = u.src[0].dtype
    if d is dtypes.bool:
      return 0, 1
    info = np.iinfo(dtypes.int64.np if d.itemsize == 8 else d.np)  # of a uint64: its bits, as an int64
    return int(info.min), int(info.max)
  a = bounds(u.src[0])
  if u.op == "add":
    b = bounds(u.src[1])
    return a[0] + b[0], a[1] + b[1]
  k = u.src[1].arg
  if u.op == "mul":
    return min(a[0] * k, a[1] * k), max(a[0] * k, a[1] * k)
  if u.op == "div":
    return a[0] // k, a[1] // k
  if u.op == "mod":
    return 0, min(k - 1, a[1]) if a[0] >= 0 else k - 1
  if u.op == "min":
    return min(a[0], k), min(a[1], k)
  raise ValueError(f"no bounds for {u.op}")


def _split_terms(u: UOp, c: int) -> tuple[Terms, Terms, int]:
  """u = c*q + r + k: of every coefficient what c goes into it, rounded towards zero, goes to q."""
  terms, k = linear(u)
  q = {t: abs(v) // c * (1 if v > 0 else -1) for t, v in terms.items()}
  r = {t: v - c * q[t] for t, v in terms.items()}
  return {t: v for t, v in q.items() if v}, {t: v for t, v in r.items() if v}, k


def _carry_free(u: UOp, c: int) -> tuple[int, UOp, UOp] | None:
  """(g, q, r) with u = g*q + r, 0 <= r < g and g dividing c: then u//c = q//(c//g) and u%c = g*(q % (c//g)) + r."""
  terms, k = linear(u)
  for g in sorted(
    {abs(v) for v in terms.values() if 1 < abs(v) < c and c % abs(v) == 0} | {gcd(c, *terms.values())}
  ):
    if g == 1:
      continue
    q, r, _ = _split_terms(u, g)
    rest = _sum(r, k % g)
    if q and bounds(rest)[0] >= 0 and bounds(rest)[1] < g:
      return g, _sum(q, k // g), rest
  return None


def div(u: UOp, c: int) -> UOp:
  """u // c, rounded towards minus infinity; c > 0."""
  if c == 1:
    return u
  lo, hi = bounds(u)
  if lo // c == hi // c:
    return const(lo // c)
  q, r, k = _split_terms(u, c)
  rest = _sum(r, k % c)
  lo, hi = bounds(rest)
  if lo // c == hi // c:
    return _sum(q, k // c + lo // c)
  if q or k // c:
    return add(_sum(q, k // c), div(rest, c))
  if rest.op == "div":
    return div(rest.src[0], rest.src[1].arg * c)
  if rest.op == "mod" and rest.src[1].arg % c == 0:
    return mod(div(rest.src[0], c), rest.src[1].arg // c)
  found = _carry_free(rest, c)
  return div(found[1], c // found[0]) if found else uop("div", dtypes.index, (rest, const(c)))


def mod(u: UOp, c: int) -> UOp:
  """u % c, in 0..c-1; c > 0."""
  if c == 1:
    return const(0)
  _, r, k = _split_terms(u, c)
  rest = _sum(r, k % c)
  lo, hi = bounds(rest)
  if lo // c == hi // c:
    return add(rest, -(lo // c) * c)
  if rest.op == "mod" and rest.src[1].arg % c == 0:
    return mod(rest.src[0], c)
  found = _carry_free(rest, c)
  if found:
    return add(mul(mod(found[1], c // found[0]), found[0]), found[2])
  return uop("mod", dtypes.index, (rest, const(c)))


def least(a: UOp, c: int) -> UOp:
  """min(a, c)."""
  lo, hi = bounds(a)
  return a if hi <= c else const(c) if lo >= c else uop("min", dtypes.index, (a, const(c)))


# ---------------------------------------------------------------- conditions on indices: conjunctions of  a < c

TRUE, FALSE = const(True, dtypes.bool), const(False, dtypes.bool)


def less(a: UOp, c: int) -> UOp:
  """a < c for an index expression a, decided by intervals where they suffice."""
  lo, hi = bounds(a)
  return TRUE if hi < c else FALSE if lo >= c else uop("lt", dtypes.bool, (a, const(c)))


def conjuncts(g: UOp) -> list[UOp]:
  out, todo = [], [g]
  while todo:
    c = todo.pop()
    if c.op == "and":
      todo += c.src[::-1]
    elif c is not TRUE:
      out.append(c)
  return out


def both(a: UOp, b: UOp) -> UOp:
  """a and b: a chain to the left, each condition once."""
  if FALSE in (a, b):
    return FALSE
  for c in conjuncts(b):
    if c not in conjuncts(a):
      a = c if a is TRUE else uop("and", dtypes.bool, (a, c))
  return a


def within(index: UOp, size: int) -> UOp:
  """0 <= index < size."""
  return both(less(mul(index, -1), 1), less(index, size))


def is_condition(u: UOp) -> bool:
  """Does u speak of indices (and not of values)?"""
  return u.dtype is dtypes.bool and (
    u in (TRUE, FALSE)
    or (u.op == "lt" and u.src[0].dtype is dtypes.index)
    or (u.op == "and" and is_condition(u.src[0]) and is_condition(u.src[1]))
  )


# ---------------------------------------------------------------- rebuilding

_INDEX = {"add": lambda a, b: add(a, b), "mul": lambda a, b: mul(a, b.arg), "div": lambda a, b: div(a, b.arg),
          "mod": lambda a, b: mod(a, b.arg), "min": lambda a, b: least(a, b.arg)}  # fmt: skip


def rebuild(u: UOp, src: tuple[UOp, ...]) -> UOp:
  """u with new sources, back in normal form."""
  if src == u.src:
    return u
  if u.dtype is dtypes.index and u.op in _INDEX:
    return _INDEX[u.op](*src)
  if u.op == "lt" and src[0].dtype is dtypes.index:
    return less(src[0], src[1].arg)
  if u.op == "and" and is_condition(src[0]) and is_condition(src[1]):
    return both(*src)
  return _reclose(u, src) if isinstance(u.arg, Over) else uop(u.op, u.dtype, src, u.arg)


def _reclose(u: UOp, src: tuple[UOp, ...]) -> UOp:
  """An owner whose ranges were replaced by expressions closes the ranges in those expressions, in their order."""
  n = u.arg.count
  rs = tuple(dict.fromkeys(r for s in src[len(src) - n :] for r in ranges_of(s)))
  return uop(u.op, u.dtype, src[: len(src) - n] + rs, u.arg._replace(count=len(rs)))


def ranges_of(index: UOp) -> list[UOp]:
  """The ranges in an index expression, as they appear in it."""
  return [index] if index.op == "range" else [u for u in toposort(index) if u.op == "range"]


def index_nodes(e: UOp) -> list[UOp]:
  """The nodes of an index expression or condition, down to the ranges and the values that serve as indices."""
  seen = {e: None}
  stack = [e]
  while stack:
    u = stack.pop()
    for s in u.src if u.op not in ("cast", "at", "range") else ():
      if s not in seen:
        seen[s] = None
        stack.append(s)
  return list(seen)


def substitute(root: UOp, table: dict[UOp, UOp], memo: dict[UOp, UOp] | None = None) -> UOp:
  """Replace every node that is a key of `table`, rebuilding what depends on it; the replacement is not entered."""
  memo = dict(table) if memo is None else memo
  for u in toposort(root):
    if u not in memo:
      memo[u] = rebuild(u, tuple(memo[s] for s in u.src))
  return memo[root]


def copy(value: UOp, table: dict[UOp, UOp], suffix: str) -> UOp:
  """A copy of value under `table`, with the ranges that are closed inside what changes renamed:
  a range has one owner."""
  names = dict(table)
  order = toposort(value)
  known = -1
  while known < len(names):  # what depends on a renamed range changes, too, and may close others
    known, changed = len(names), set(names)
    for u in order:
      if any(s in changed for s in u.src):
        changed.add(u)
      if u in changed:
        names.update({r: range_(rname(r) + suffix, rsize(r), rkind(r)) for r in closed(u) if r not in names})
  return substitute(value, names)


def free_in(us: Iterable[UOp]) -> frozenset[UOp]:
  return NOTHING.union(*(u.free for u in us))
