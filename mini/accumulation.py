"""Accumulation of gradients: pieces of an axis become one `cat`, small products one large one, before a sum."""

from __future__ import annotations

from math import prod

from mini.engine.device_of import place
from mini.ir.graph import alu, cat, expand, numel, permute, reduce, reshape, shape
from mini.ir.sizes import varies
from mini.ir.uop import UOp

MANY = 4  # products that are added up, from which they become one,
SHORT = 16  # if each is a sum of so few: of longer ones the weight is soon read and written


def joined(parts: list[UOp]) -> list[UOp]:
  """Gradients of the pieces of an axis, padded to the whole: those that tile it become one `cat`."""
  spans: dict[int, dict[tuple[int, int], UOp]] = {}
  for p in parts:
    padded = [a for a, widths in enumerate(p.arg) if widths != (0, 0)] if p.op == "pad" else []
    if len(padded) == 1:
      lo, hi = p.arg[padded[0]]
      spans.setdefault(padded[0], {})[lo, shape(p)[padded[0]] - hi] = p
  for axis, found in spans.items():
    pieces = sorted(found)
    ends = [0, *(hi for _, hi in pieces)]
    if ends[:-1] == [lo for lo, _ in pieces] and ends[-1] == shape(found[pieces[0]])[axis]:
      tiles = [found[p] for p in pieces]
      rest = list(parts)
      for t in tiles:
        rest.remove(t)
      return [cat(tuple(t.src[0] for t in tiles), axis), *joined(rest)]
  return parts


def stacked(parts: list[UOp]) -> list[UOp]:
  """Gradients of a weight that is used in each step of a loop: of many products of small factors, each over its batch,
  one over all of their batches. To add them up one by one would read and write the whole weight for each."""
  if len(parts) < MANY:
    return parts
  alike: dict[tuple | None, list[tuple[UOp, tuple[UOp, UOp]]]] = {}
  for p in parts:
    kind, factors = _outer(p) or (None, (p, p))
    alike.setdefault(kind, []).append((p, factors))
  rest: list[UOp] = []
  for kind, found in alike.items():
    if kind is None or len(found) < MANY:
      rest += [p for p, _ in found]
      continue
    axis, axes, s, views, *_ = kind
    sizes = (*s[:axis], s[axis] * len(found), *s[axis + 1 :])
    a, b = (expand(cat(of, axis), sizes) for of in zip(*(factors for _, factors in found)))
    u = reduce(alu("mul", a, b), "add", axes)
    for op, arg in reversed(views):
      u = reshape(u, arg) if op == "reshape" else permute(u, arg)
    rest.append(u)
  return rest


def _outer(u: UOp) -> tuple[tuple, tuple[UOp, UOp]] | None:
  """(what two products have in common that can be stacked: the axis, ...; the factors) of one larger than these."""
  views = []
  while u.op in ("reshape", "permute"):
    views.append((u.op, u.arg))
    u = u.src[0]
  if u.op != "reduce" or u.arg[0] != "add" or u.src[0].op != "mul" or type(place(u)) is not str:
    return None
  a, b = (f.src[0] if f.op == "expand" else f for f in u.src[0].src)
  s, (_, axes) = shape(u.src[0]), u.arg
  if not shape(a) or not shape(b) or varies(s) or numel(a) + numel(b) >= numel(u):
    return None
  axis = next((n for n in axes if shape(a)[n] == shape(b)[n] == s[n]), None)
  if axis is None or prod(s[n] for n in axes) > SHORT:
    return None
  return (axis, axes, s, tuple(views), shape(a), shape(b), u.dtype, place(u)), (a, b)


__all__ = ["joined", "stacked"]
