"""Reverse-mode differentiation of tensor graphs: one row per operation.

`gradient(out, seed, wrt)` walks from `out` towards `wrt`, users before sources, and adds up what arrives at
each node. What it returns is a graph of the same operations, so it can be differentiated again. The
elementwise rows (`CALCULUS`) are written in `Value`s, nodes with Python's operators; the others (`STRUCTURE`)
build nodes. What has no row here has one in `NO_GRADIENT`, with the reason. A value may also bring its own rule
(mini/gradient_rules.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

import mini.ir.composites  # noqa: F401 - its rows join OPS
from mini.accumulation import joined, stacked
from mini.engine.device_of import device_of, place
from mini.gradient_rules import Again, Gradients, Rule, all_inputs, gradient_inputs
from mini.ir.graph import (
  alu,
  cast,
  cat,
  copy,
  counter,
  expand,
  expand_to,
  flip,
  full,
  gather,
  iota,
  pad,
  permute,
  reduce,
  reshape,
  scan,
  scatter,
  shape,
  shrink,
)
from mini.ir.ops import OPS, require
from mini.ir.uop import UOp, const, next_serial
from mini.types import dtypes

# ---------------------------------------------------------------- arithmetic on nodes, with constants folded


def filled_with(u: UOp) -> UOp | None:
  """The constant that every element of u is, if u is a constant seen through views."""
  while u.op in ("reshape", "expand", "permute", "flip", "detach"):
    u = u.src[0]
  return u if u.op == "const" else None


def _is(u: UOp, value: float) -> bool:
  c = filled_with(u)
  return c is not None and c.arg == value


def combine(op: str, a: UOp, b: UOp) -> UOp:
  """`alu(op, a, b)`, but constants stay 0-d, two of them are folded, and times 1 is nothing."""
  s = shape(a) or shape(b)
  ca, cb = filled_with(a), filled_with(b)
  if ca is not None and cb is not None:
    with np.errstate(all="ignore"):
      values = np.asarray(ca.arg, a.dtype.np), np.asarray(cb.arg, b.dtype.np)
      folded = OPS[op].numpy(*values)  # type: ignore[misc]
    return full(s, folded.item(), dtypes.bool if OPS[op].result == "bool" else a.dtype)
  if ca is not None and shape(b) == s:
    if op == "mul" and ca.arg == 1:
      return b
    a = ca
  if cb is not None and shape(a) == s:
    if op in ("mul", "div") and cb.arg == 1:
      return a
    b = cb
  return alu(op, a, b)


class Value:
  """A node with Python's operators; numbers become constants of its type."""

  __slots__ = ("u",)

  def __init__(self, u: UOp):
    self.u = u

  def like(self, x: Operand) -> UOp:
    return x.u if isinstance(x, Value) else const(x, self.u.dtype)

  def __add__(self, x: Operand) -> Value:
    return Value(combine("add", self.u, self.like(x)))

  def __sub__(self, x: Operand) -> Value:
    return self + (Value(self.like(x)) * -1)

  def __rsub__(self, x: Operand) -> Value:
    return Value(self.like(x)) - self

  def __mul__(self, x: Operand) -> Value:
    return Value(combine("mul", self.u, self.like(x)))

  def __truediv__(self, x: Operand) -> Value:
    return Value(combine("div", self.u, self.like(x)))

  def __rtruediv__(self, x: Operand) -> Value:
    return Value(self.like(x)) / self

  def __neg__(self) -> Value:
    return self * -1

  def __lt__(self, x: Operand) -> Value:
    return Value(combine("lt", self.u, self.like(x)))

  def __gt__(self, x: Operand) -> Value:
    return Value(combine("lt", self.like(x), self.u))

  def __and__(self, x: Value) -> Value:
    return Value(combine("and", self.u, x.u))

  def equals(self, x: Operand) -> Value:
    return Value(combine("xor", combine("ne", self.u, self.like(x)), const(True, dtypes.bool)))

  def power(self, x: Operand) -> Value:
    return Value(combine("pow", self.u, self.like(x)))

  __radd__, __rmul__ = __add__, __mul__


Operand = Value | float


def fn(name: str, x: Value) -> Value:
  c = filled_with(x.u)
  if c is None:
    return Value(alu(name, x.u))
  with np.errstate(all="ignore"):
    value = OPS[name].numpy(np.asarray(c.arg, c.dtype.np))  # type: ignore[misc]
  return Value(full(shape(x.u), value.item(), c.dtype))


def where(c: Value, a: Operand, b: Operand) -> Value:
  """a where c, else b; at least one of them is a Value."""
  like = a if isinstance(a, Value) else b
  assert isinstance(like, Value)
  ca, cb = like.like(a), like.like(b)
  if c.u.op == "const":
    return Value(ca if c.u.arg else cb)
  return Value(alu("where", c.u, ca, cb))


# ---------------------------------------------------------------- elementwise rows


def _max(g: Value, out: Value, a: Value, b: Value) -> tuple[Value, Value]:
  """Equal inputs share, as in torch.maximum; but not with a constant: the slope of relu at 0 is 0."""
  if filled_with(a.u) is not None or filled_with(b.u) is not None:
    return where(b < a, g, 0), where(a < b, g, 0)
  half = where(a.equals(b), g * 0.5, g)
  return where(a < b, 0, half), where(b < a, 0, half)


def _min(g: Value, out: Value, a: Value, b: Value) -> tuple[Value, Value]:
  return _max(g, out, b, a)  # with the comparisons turned round


def _abs(g: Value, out: Value, x: Value) -> tuple[Value]:
  return (where(x < 0, -g, where(x > 0, g, 0)),)


def _pow(g: Value, out: Value, a: Value, b: Value) -> tuple[Value, Value]:
  """0 has no logarithm, but 0 ** b is 0 for every b > 0; and x ** 0 is 1 for every x."""
  by_base = g * where(b.equals(0), 0, b * a.power(b - 1)) if not _is(b.u, 0) else g * 0
  return by_base, g * where(a.equals(0), 0, out * fn("log", where(a.equals(0), 1, a)))


def _mod(g: Value, out: Value, a: Value, b: Value) -> tuple[Value, Value]:
  """By b it is -floor(a / b): exact, also where b is infinite or 0."""
  far = where(out.equals(a), 0, Value(b.like(-1)))
  quotient = fn("round", where(b.equals(0), a, a - out) / b)
  return g, -g * where(fn("abs", b).equals(math.inf), far, quotient)


# fmt: off
CALCULUS: dict[str, Callable[..., tuple[Value | None, ...]]] = {
  "add":   lambda g, out, a, b: (g, g),
  "mul":   lambda g, out, a, b: (g * b, g * a),
  "div":   lambda g, out, a, b: (g / b, -(g / b) * out),
  "mod":   _mod,
  "max":   _max,
  "min":   _min,
  "abs":   _abs,
  "pow":   _pow,
  "where": lambda g, out, c, a, b: (None, where(c, g, 0), where(c, 0, g)),

  "exp2":  lambda g, out, x: (g * out * math.log(2),),
  "log2":  lambda g, out, x: (g / (x * math.log(2)),),
  "sin":   lambda g, out, x: (g * fn("cos", x),),
  "sqrt":  lambda g, out, x: (g / (out * 2),),

  "exp":   lambda g, out, x: (g * out,),
  "log":   lambda g, out, x: (g / x,),
  "cos":   lambda g, out, x: (-g * fn("sin", x),),
  "atan":  lambda g, out, x: (g / (x * x + 1),),
  "tanh":  lambda g, out, x: (g * (1 - out * out),),
  "erf":   lambda g, out, x: (g * (2 / math.sqrt(math.pi)) * fn("exp", -x * x),),
  "erfc":  lambda g, out, x: (g * (-2 / math.sqrt(math.pi)) * fn("exp", -x * x),),
  "expm1": lambda g, out, x: (g * fn("exp", x),),
  "rsqrt": lambda g, out, x: (g * out * out * out * -0.5,),
}

NO_GRADIENT: dict[str, str] = {
  "const":   "a leaf that depends on nothing",
  "buffer":  "a leaf: to differentiate with respect to memory, tag it",
  "iota":    "a leaf that depends on nothing",
  "detach":  "there to stop gradients",
  "call":    "a function of the host's: what it says of its gradient, `with_gradient` says for it",
  "lt":      "a comparison is flat wherever it is differentiable",
  "ne":      "a comparison is flat wherever it is differentiable",
  "and":     "is not of floats",
  "or":      "is not of floats",
  "xor":     "is not of floats",
  "bitcast": "bits as another number: flat or torn everywhere",
  "floor":   "flat between its steps",
  "ceil":    "flat between its steps",
  "trunc":   "flat between its steps",
  "round":   "flat between its steps",
  "threefry": "is of integers",
  "threefry2": "is of integers",
}
# fmt: on


# ---------------------------------------------------------------- the other rows


def total(x: UOp, axes: Sequence[int]) -> UOp:
  """x added up along axes, which stay with size 1."""
  c = filled_with(x)
  if c is None:
    return reduce(x, "add", tuple(axes))
  s = shape(x)
  kept = tuple(1 if a in axes else n for a, n in enumerate(s))
  return full(kept, c.arg * prod(s[a] for a in axes), x.dtype)


def _expand(g: UOp, out: UOp, x: UOp) -> Gradients:
  return (total(g, [a for a, (n, m) in enumerate(zip(shape(x), out.arg)) if n != m]),)


def _permute(g: UOp, out: UOp, x: UOp) -> Gradients:
  return (permute(g, tuple(int(a) for a in np.argsort(out.arg))),)


def _pad(g: UOp, out: UOp, x: UOp) -> Gradients:
  return (shrink(g, tuple((lo, lo + n) for (lo, _), n in zip(out.arg, shape(x)))),)


def _shrink(g: UOp, out: UOp, x: UOp) -> Gradients:
  return (pad(g, tuple((lo, n - hi) for (lo, hi), n in zip(out.arg, shape(x)))),)


def _reduce(g: UOp, out: UOp, x: UOp) -> Gradients:
  kind, axes = out.arg
  g = expand(g, shape(x))
  if kind == "add":
    return (g,)
  if kind == "mul":
    return (combine("mul", g, _others(x, axes)),)
  top = Value(x).equals(Value(expand(out, shape(x))))  # equal maxima share, as in torch.amax
  count = total(cast(top.u, x.dtype), axes)
  return (where(top, Value(g) / Value(expand(count, shape(x))), 0).u,)


def _others(x: UOp, axes: tuple[int, ...]) -> UOp:
  """For each element the product of the others along axes: those before it times those after it."""
  s = shape(x)
  order = tuple(a for a in range(len(s)) if a not in axes) + tuple(axes)
  kept = tuple(s[a] for a in order[: len(s) - len(axes)])
  rows = reshape(permute(x, order), (*kept, prod(s[a] for a in axes)))
  last = (len(kept),)
  product = combine("mul", _product_before(rows), flip(_product_before(flip(rows, last)), last))
  return permute(reshape(product, tuple(s[a] for a in order)), tuple(int(a) for a in np.argsort(order)))


def _product_before(x: UOp) -> UOp:
  """Along the last axis: 1, x0, x0*x1, ..."""
  *rest, n = shape(x)
  ones = (*rest, 1)
  running = scan(shrink(x, (*((0, m) for m in rest), (0, n - 1))), "mul", len(rest))
  return cat((full(ones, 1, x.dtype), running), len(rest))


def _scan(g: UOp, out: UOp, x: UOp) -> Gradients:
  kind, axis = out.arg
  if kind == "add":
    return (_running_from_end(g, axis),)
  if kind == "mul":
    return (_scan_mul(g, out, x, axis),)
  # the running maximum was set last where x equals it: of equal ones the last counts, as in torch.cummax
  new = Value(x).equals(Value(out))
  latest = scan(where(new, Value(positions(shape(x), axis)), 0).u, "max", axis)
  return (scatter(full(shape(x), 0, x.dtype), latest, g, "add", axis),)


def positions(s: tuple[int, ...], axis: int) -> UOp:
  """Each element's index along axis."""
  return expand(reshape(iota(s[axis]), tuple(n if a == axis else 1 for a, n in enumerate(s))), s)


def _running_from_end(g: UOp, axis: int) -> UOp:
  return flip(scan(flip(g, (axis,)), "add", axis), (axis,))


def _scan_mul(g: UOp, out: UOp, x: UOp, axis: int) -> UOp:
  """Before the first 0 by division; the first 0 gets the products without it; what is behind it gets nothing.

  (PyTorch's cumprod does the same. The second derivative is right where no x is 0.)"""
  zero = Value(x).equals(0)
  zeros = Value(scan(cast(zero.u, counter(shape(x)[axis])), "add", axis))
  first = zero & zeros.equals(1)
  ahead = Value(_running_from_end((Value(g) * Value(out)).u, axis)) / where(zero, 1, Value(x))
  skipped = where(first, 1, Value(x))
  without = where(zeros.equals(1), Value(g) * Value(scan(skipped.u, "mul", axis)), 0)
  return where(zeros.equals(0), ahead, where(first, Value(_running_from_end(without.u, axis)), 0)).u


def _gather(g: UOp, out: UOp, x: UOp, index: UOp) -> Gradients:
  return scatter(full(shape(x), 0, x.dtype), index, g, "add", out.arg), None


def _scatter(g: UOp, out: UOp, base: UOp, index: UOp, value: UOp) -> Gradients:
  kind, axis = out.arg
  if kind == "add":
    return g, None, gather(g, index, axis)
  if kind == "set":
    at = positions(shape(index), axis)
    last = scatter(full(shape(base), 0, at.dtype), index, at, "set", axis)
    winner = gather(last, index, axis)
    kept = scatter(g, index, full(shape(value), 0, g.dtype), "set", axis)
    return kept, None, where(Value(at).equals(Value(winner)), Value(gather(g, index, axis)), 0).u
  if kind == "mul":
    return scatter(g, index, value, "mul", axis), None, _scatter_mul(g, out, base, index, value, axis)
  stays, comes = Value(base).equals(Value(out)), Value(value).equals(Value(gather(out, index, axis)))
  count = scatter(cast(stays.u, g.dtype), index, cast(comes.u, g.dtype), "add", axis)
  share = Value(g) / Value(count)
  return where(stays, share, 0).u, None, where(comes, Value(gather(share.u, index, axis)), 0).u


def _scatter_mul(g: UOp, out: UOp, base: UOp, index: UOp, value: UOp, axis: int) -> UOp:
  """The product of the others: by division, or, for the only 0 at its place, with a 1 instead of it."""
  zero = Value(value).equals(0)
  kind = counter(shape(value)[axis])
  zeros = scatter(full(shape(base), 0, kind), index, cast(zero.u, kind), "add", axis)
  safe = where(zero, 1, Value(value))
  others = Value(gather(scatter(base, index, safe.u, "mul", axis), index, axis)) / safe
  alone = Value(gather(zeros, index, axis)) - cast_value(zero, kind)
  return (Value(gather(g, index, axis)) * where(alone.equals(0), others, 0)).u


def cast_value(x: Value, dtype: Any) -> Value:
  return Value(cast(x.u, dtype))


def _cast(g: UOp, out: UOp, x: UOp) -> Gradients:
  return (cast(g, x.dtype) if x.dtype.kind == "f" else None,)


def _cat(g: UOp, out: UOp, *xs: UOp) -> Gradients:
  parts, start = [], 0
  for x in xs:
    stop = start + shape(x)[out.arg]
    parts.append(shrink(g, tuple((start, stop) if a == out.arg else (0, n) for a, n in enumerate(shape(x)))))
    start = stop
  return tuple(parts)


def _copy(g: UOp, out: UOp, x: UOp) -> Gradients:
  """Back to the device that x is on."""
  return (g if place(g) == device_of(x) else copy(g, device_of(x)),)


# fmt: off
STRUCTURE: dict[str, Rule] = {
  "reshape": lambda g, out, x: (reshape(g, shape(x)),),
  "flip":    lambda g, out, x: (flip(g, out.arg),),
  "permute": _permute,
  "expand":  _expand,
  "pad":     _pad,
  "shrink":  _shrink,
  "reduce":  _reduce,
  "scan":    _scan,
  "gather":  _gather,
  "scatter": _scatter,
  "cast":    _cast,
  "cat":     _cat,
  "copy":    _copy,
  "shard":   _copy,
  "stage":   lambda g, out, x: (g,),
  "tag":     lambda g, out, x: (g,),
  "after":   lambda g, out, x, first: (g, None),
  "invoke":  lambda g, out, *src, wanted=None: out.arg.function.pulled_back(out.arg.n, g, out, src, wanted),
}
# fmt: on


def _on_nodes(row: Callable[..., tuple[Value | None, ...]]) -> Rule:
  def rule(g: UOp, out: UOp, *src: UOp) -> Gradients:
    return tuple(None if v is None else v.u for v in row(Value(g), Value(out), *map(Value, src)))

  return rule


GRADS: dict[str, Rule] = {**{name: _on_nodes(row) for name, row in CALCULUS.items()}, **STRUCTURE}
require("mini/grad.py, CALCULUS or NO_GRADIENT", {**GRADS, **NO_GRADIENT})


# ---------------------------------------------------------------- adding up


def _onto(part: UOp, g: UOp) -> UOp | None:
  """part + g, where part is `scatter(zeros, ..., add)` seen through views: g takes the place of the zeros."""
  if part.op == "reshape":
    inner = _onto(part.src[0], reshape(g, shape(part.src[0])))
    return None if inner is None else reshape(inner, part.arg)
  if part.op == "permute":
    inner = _onto(part.src[0], _permute(g, part, part.src[0])[0])  # type: ignore[arg-type]
    return None if inner is None else permute(inner, part.arg)
  if part.op != "scatter" or part.arg[0] != "add":
    return None
  base, index, value = part.src
  new = g if _is(base, 0) else _onto(base, g)
  return None if new is None else scatter(new, index, value, *part.arg)


def plus(a: UOp, b: UOp) -> UOp:
  """a + b of gradients. What is scattered into zeros is scattered into the other one instead.

  a, b: T[s]   ->   T[s]
  """
  found = _onto(b, a)
  if found is None:
    found = _onto(a, b)
  return combine("add", a, b) if found is None else found


def summed(parts: list[UOp]) -> UOp:
  """The sum of several gradients of one shape."""
  first, *rest = joined(stacked(parts))
  for p in rest:
    first = plus(first, p)
  return first


def _fit(g: UOp, x: UOp) -> UOp:
  """A gradient in the shape of its input: an input of shape () was repeated, so what it got is added up."""
  s = shape(x)
  if shape(g) == s:
    return g
  return expand_to(g, s) if s else reshape(total(g, range(len(shape(g)))), ())


# ---------------------------------------------------------------- the walk


def gradient(out: UOp, seed: UOp, wrt: Sequence[UOp]) -> list[UOp | None]:
  """The gradients of `sum(seed * out)` with respect to nodes; None for one that out does not depend on, zeros where it
  does so by steps (`floor`) that have no slope.

  out, seed: T[s]   wrt: nodes of any shapes   ->   a node of the same shape and type for each

  Visits the nodes between wrt and out, each once. Nodes are told by identity: tag what equals another.

  >>> from mini.ir import graph
  >>> x = graph.tag(graph.buffer("x", (3,), dtypes.float32))
  >>> dx, = gradient(graph.alu("sqrt", x), graph.full((3,), 1, dtypes.float32), [x])
  >>> dx.op, graph.shape(dx)
  ('div', (3,))
  """
  return gradients([out], [seed], wrt)


def gradients(outs: Sequence[UOp], seeds: Sequence[UOp], wrt: Sequence[UOp]) -> list[UOp | None]:
  """The same of the sum over several outs, each with its seed."""
  order = _with_given(outs)
  targets = set(wrt)
  between: set[UOp] = set()
  for u in order:
    passes = u.dtype.kind == "f" and u.op not in NO_GRADIENT
    if u in targets or (passes and not between.isdisjoint(gradient_inputs(u))):
      between.add(u)
  arrived: dict[UOp, list[UOp]] = {}
  for out, seed in zip(outs, seeds):
    arrived.setdefault(out, []).append(seed)
  again = Again()
  result: dict[UOp, UOp] = {}
  apart: set[tuple[UOp, UOp]] = set()  # (a node, what a part of it that has no gradient depends on)
  for u in reversed(order):
    if u not in between or u not in arrived:
      continue
    parts = arrived.pop(u)
    g = summed(parts) if len(parts) > 1 else parts[0]
    for hook in u.memo["hooks"].values() if "hooks" in u.memo else ():
      g = hook(g)
    if u in targets:
      result[u] = g
    inputs = gradient_inputs(u)
    if between.isdisjoint(inputs):
      continue
    region = u.memo.get("region")
    start = next_serial() if region else 0
    rule = u.memo["given"].rule if "given" in u.memo else GRADS[u.op]
    passed = rule(g, u, *inputs, wanted=between) if u.op == "invoke" else rule(g, u, *inputs)
    for s, gs in zip(inputs, passed):
      if s in between and gs is not None:
        got = gs if u.op == "invoke" else _fit(gs, s)
        arrived.setdefault(s, []).append(again.replaced(got, region, start, g) if region else got)
      elif gs is None and (u.op == "invoke" or ("given" in u.memo and u.memo["given"].exact)):
        apart.add((u, s))
  if not result.keys() >= targets:
    reached = _reached(outs, apart)
    result |= {w: full(shape(w), 0, w.dtype) for w in targets - result.keys() if w in reached}
  return [result.get(w) for w in wrt]


def _reached(outs: Sequence[UOp], apart: set[tuple[UOp, UOp]]) -> set[UOp]:
  """Nodes that outs depend on, though it be by steps that are flat everywhere."""
  found, stack = set(outs), [*outs]
  while stack:
    u = stack.pop()
    below = () if u.op == "detach" else gradient_inputs(u)
    new = [s for s in below if s.dtype.kind == "f" and s not in found and (u, s) not in apart]
    found.update(new)
    stack += new
  return found


def _with_given(roots: Sequence[UOp]) -> list[UOp]:
  """Sources before users, as `toposort`, where what a given gradient passes to is a source, too."""
  seen: set[UOp] = set()
  order: list[UOp] = []
  stack: list[Any] = [*reversed(roots)]  # None: of the node before it all sources are done
  while stack:
    u = stack.pop()
    if u is None:
      order.append(stack.pop())
    elif u not in seen:
      seen.add(u)
      below = [s for s in all_inputs(u) if s not in seen]
      if below:
        stack += u, None
        stack += below[::-1]
      else:
        order.append(u)
  return order


__all__ = ["GRADS", "NO_GRADIENT", "gradient", "gradients", "plus", "summed"]
