"""Rules on whole operations of a graph: `matmul(x, y)`, or a named operation, is computed by something else.

They are applied where a graph becomes a program, once to each node, sources first; what a rule made is not looked at
again. Rules on scalars stand in rules.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from mini.ir import graph
from mini.ir.graph import shape
from mini.ir.rewrite import RewriteError
from mini.ir.uop import UOp, uop
from mini.types import DType, ShapeError

CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(\s*([a-z]\w*(?:\s*,\s*[a-z]\w*)*)\s*\)\s*")


class Product(NamedTuple):
  """A sum of products as matrix products."""

  x: UOp  # T[(batch,) n, k]
  y: UOp  # T[(batch,) k, m]
  restored: Callable[[UOp], UOp]  # T[(batch,) n, m]   ->   what the sum is


def product_of(u: UOp) -> Product | None:
  """u as a matrix product; None where it is none. What one factor repeats is an axis of the other alone."""
  if u.op != "reduce" or u.arg[0] != "add" or u.src[0].op != "mul" or len(u.src[0].src) != 2:
    return None
  a, b = map(unrepeated, u.src[0].src)
  if len(shape(a)) != len(shape(b)):
    return None
  batch, rows, columns, inner = groups = [], [], [], []  # type: ignore[var-annotated]
  for n, (p, q) in enumerate(zip(shape(a), shape(b))):
    if n in u.arg[1]:
      if p != q or p == 1:
        return None
      inner.append(n)
    elif p > 1 or q > 1:
      (batch if p > 1 and q > 1 else rows if p > 1 else columns).append(n)
  if not inner or not (rows or columns):
    return None
  ones = [n for n in range(len(shape(a))) if not any(n in g for g in groups)]
  count, width = (prod(shape(a)[n] for n in g) for g in (batch, inner))
  high, wide = prod(shape(a)[n] for n in rows), prod(shape(b)[n] for n in columns)
  front = (count,) if batch else ()
  x = graph.reshape(graph.permute(a, (*batch, *rows, *inner, *columns, *ones)), (*front, high, width))
  y = graph.reshape(graph.permute(b, (*batch, *inner, *columns, *rows, *ones)), (*front, width, wide))
  order = (*batch, *rows, *columns, *inner, *ones)

  def restored(product: UOp) -> UOp:
    s = tuple(shape(u)[n] for n in order)
    return graph.permute(graph.reshape(product, s), tuple(order.index(n) for n in range(len(order))))

  return Product(x, y, restored)


def unrepeated(u: UOp) -> UOp:
  """A factor, with size 1 along the axes that it repeats."""
  if u.op == "permute":
    return graph.permute(unrepeated(u.src[0]), u.arg)
  return u.src[0] if u.op == "expand" else u


class Replacement:
  """A rule whose left side is an operation and its inputs. `make` gives a node for theirs, or None where it does not
  apply."""

  def __init__(self, name: str, left: str, make: Callable[..., UOp | None], why: str = ""):
    found = CALL.fullmatch(left)
    if found is None:
      raise RewriteError(f"rule {name}: {left!r} is no operation of names, as matmul(x, y) is")
    self.name, self.left, self.make, self.why = name, left, make, why
    self.op, self.names = found[1], tuple(n.strip() for n in found[2].split(","))
    if len(set(self.names)) < len(self.names):
      raise RewriteError(f"rule {name}: {left!r} names two inputs alike")
    if self.op == "matmul" and len(self.names) != 2:
      raise RewriteError(f"rule {name}: a matmul has two inputs")

  def __repr__(self) -> str:
    return f"<rule {self.name}: {self.left}>"

  def __call__(self, u: UOp, labels: Mapping[str, Any], of: Callable[[UOp], UOp]) -> UOp | None:
    """What u becomes. labels: the named operations that it is the result of. of: what their inputs have become."""
    if self.op == "matmul":
      p = product_of(u)
      new = None if p is None else self.make(p.x, p.y)
      if p is None or new is None:
        return None
      return p.restored(self.checked(new, (*shape(p.x)[:-1], shape(p.y)[-1]), u.dtype))
    label = labels.get(self.op)
    if label is None or len(label.inputs) != len(self.names):
      return None
    new = self.make(*map(of, label.inputs))
    return None if new is None else self.checked(new, shape(u), u.dtype)

  def checked(self, new: UOp, s: tuple[int, ...], dtype: DType) -> UOp:
    if shape(new) != s or new.dtype is not dtype:
      raise ShapeError(
        f"rule {self.name}: {new.dtype.short}{list(shape(new))} takes the place of {dtype.short}{list(s)}"
      )
    return new


class _Replacing:
  """One pass over a graph. A class: closures that call each other would hold its nodes until a collection."""

  def __init__(self, rules: Sequence[Replacement], known: Callable[[UOp], Any]):
    self.rules, self.known = rules, known
    self.table: dict[UOp, UOp] = {}

  def of(self, root: UOp) -> UOp:
    """What root becomes."""
    table, stack = self.table, [root]
    while stack:
      u = stack[-1]
      if u in table:
        stack.pop()
      elif self.known(u):
        table[u] = u
      elif below := [s for s in u.src if s not in table]:
        stack += reversed(below)
      else:
        table[u] = self.one(u)
    return table[root]

  def one(self, u: UOp) -> UOp:
    """The same, where the sources have been seen to."""
    src = tuple(self.table[s] for s in u.src)
    v = u if src == u.src else src[0] if u.op in ("tag", "detach") else uop(u.op, u.dtype, src, u.arg)
    made = (rule(v, u.memo.get("labels", {}), self.of) for rule in self.rules)
    return next((new for new in made if new is not None), v)


def replaced(roots: Sequence[UOp], rules: Sequence[Replacement], known: Callable[[UOp], Any]) -> list[UOp]:
  """The roots, with what these rules make of their nodes. known: of a node whose value is there already, and stays."""
  if not rules:
    return list(roots)
  replacing = _Replacing(rules, known)
  return [replacing.of(u) for u in roots]
