"""Graphs whose shapes have variables (ir/sizes.py) become graphs whose shapes have none: what `realize` computes.

An axis gets room for its largest size. What lies beyond the size holds anything; it is masked where it would be mixed
with the rest: reduces, pads, and indices. Everything else is done to it, too, and its results lie beyond again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mini.engine.buffer import leaf_of
from mini.ir.graph import alu, buffer, expand_to, iota, reshape, shape
from mini.ir.ops import identity
from mini.ir.sizes import Variable, most
from mini.ir.uop import UOp, const, unknown, uop


def is_sized(u: UOp) -> bool:
  """Is a size known only at run time in the shape of u or of something beneath it?"""
  if not Variable.used:
    return False
  for n in unknown(u, "sized"):  # in plain loops: every eager call comes here
    sized = Variable in map(type, shape(n))
    for s in n.src:
      sized = sized or s.memo["sized"]
    n.memo["sized"] = sized
  return u.memo["sized"]


def room(s: tuple[Any, ...]) -> tuple[int, ...]:
  """The shape of the memory."""
  return tuple(map(most, s))


def plain(u: UOp) -> UOp:
  """What computes u, in memory of the shape `room(shape(u))`."""
  if not is_sized(u):
    return u
  for n in unknown(u, "plain"):
    if n.memo["sized"]:
      leaf = leaf_of(n)
      n.memo["plain"] = _plain(n) if leaf is None else buffer(leaf.arg[0], room(shape(n)), n.dtype)
    else:
      n.memo["plain"] = None  # itself: a node that holds itself would outlive its users
  return u.memo["plain"]


def _plain(u: UOp) -> UOp:
  src = tuple(s.memo["plain"] or s for s in u.src)
  if u.op in ("tag", "detach"):
    return src[0]
  return RULES[u.op](u, *src) if u.op in RULES else uop(u.op, u.dtype, src, u.arg)


def masked(x: UOp, like: UOp, axes: Any, fill: float | bool) -> UOp:
  """x, with `fill` beyond the sizes that these axes of `like` have at run time.

  Of a product both factors: then it is still one."""
  sizes: dict[int, Any] = {a: n for a, n in enumerate(shape(like)) if a in axes and type(n) is Variable}
  if not sizes:
    return x
  if x.op == "mul" and fill == 0:
    return alu("mul", *(masked(f, like, axes, fill) if shape(f) else f for f in x.src))
  if x.op == "cast" and fill == 0:
    return uop("cast", x.dtype, (masked(x.src[0], like, axes, fill),))
  for a, n in sizes.items():
    at = reshape(iota(shape(x)[a]), tuple(m if a == b else 1 for b, m in enumerate(shape(x))))
    x = alu("where", expand_to(alu("lt", at, n.node), shape(x)), x, const(fill, x.dtype))
  return x


def _shrink(u: UOp, x: UOp) -> UOp:
  spans = tuple((lo, most(hi)) for lo, hi in u.arg)
  return uop("shrink", u.dtype, (x,), spans) if spans != tuple((0, n) for n in shape(x)) else x


def _pad(u: UOp, x: UOp) -> UOp:
  old, new = shape(x), room(shape(u))
  x = masked(x, u.src[0], [a for a, (_, hi) in enumerate(u.arg) if hi != 0], 0)
  return uop("pad", u.dtype, (x,), tuple((lo, m - n - lo) for n, m, (lo, _) in zip(old, new, u.arg)))


def _reduce(u: UOp, x: UOp) -> UOp:
  kind, axes = u.arg
  return uop("reduce", u.dtype, (masked(x, u.src[0], axes, identity(kind, x.dtype)),), u.arg)


def _index(u: UOp, index: UOp, axis: int) -> UOp:
  """The index of a gather or scatter: 0 beyond its own sizes; outside of memory where it is beyond the size of what it
  points into."""
  size = shape(u.src[0])[axis]
  if type(size) is Variable:
    index = alu(
      "where", alu("lt", index, uop("cast", index.dtype, (size.node,))), index, const(size.most, index.dtype)
    )
  return masked(index, u.src[1], range(len(shape(index))), 0)


def _gather(u: UOp, x: UOp, index: UOp) -> UOp:
  return uop("gather", u.dtype, (x, _index(u, index, u.arg)), u.arg)


def _scatter(u: UOp, base: UOp, index: UOp, value: UOp) -> UOp:
  kind, axis = u.arg
  if kind != "set":
    value = masked(value, u.src[2], range(len(shape(value))), identity(kind, value.dtype))
  return uop("scatter", u.dtype, (base, _index(u, index, axis), value), u.arg)


RULES: dict[str, Callable[..., UOp]] = {
  "buffer": lambda u: buffer(u.arg[0], room(u.arg[1]), u.dtype),
  "iota": lambda u: iota(most(u.arg), u.dtype),
  "reshape": lambda u, x: reshape(x, room(u.arg)),
  "expand": lambda u, x: uop("expand", u.dtype, (x,), room(u.arg)),
  "shrink": _shrink,
  "pad": _pad,
  "reduce": _reduce,
  "gather": _gather,
  "scatter": _scatter,
}
