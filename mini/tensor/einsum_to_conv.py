"""Einsums that are convolutions: sums of products of two operands, where an axis of one of them is read at
`stride * m + dilation * k`, m being an axis of the result and k one of the other operand.

Their gradients are contractions, too (convolved.py); those of a product of views (contract.py) would be sums of shifted
copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from mini.ir import graph
from mini.ir.graph import shape
from mini.ir.uop import UOp
from mini.tensor.convolved import Form, derivative
from mini.tensor.formula import Index, Label, Term
from mini.tensor.views import span


class Roles(NamedTuple):
  """The names of a convolution. In `Form` they are  x[n, g, c, m and k] * w[g, o, c, k] -> y[n, g, o, m]."""

  n: list[Label]
  g: list[Label]
  c: list[Label]
  o: list[Label]
  m: list[Label]
  k: list[Label]


def convolution(
  terms: Sequence[Term], output: Term, sizes: Mapping[Label, Any], nodes: Sequence[UOp]
) -> UOp | None:
  """The sum of products of two nodes; None where it is no convolution of floats of known sizes."""
  known = nodes[0].dtype.kind == "f" and all(isinstance(n, int) and n > 0 for n in sizes.values())
  if len(terms) != 2 or not known or not all(_whole(t, u, sizes) for t, u in zip(terms, nodes)):
    return None
  for x, w in ((0, 1), (1, 0)):
    if found := _roles(terms[x], terms[w], output):
      return _computed(found, terms[x], terms[w], output, sizes, nodes[x], nodes[w])
  return None


def _roles(x: Term, w: Term, output: Term) -> Roles | None:
  """What each name is, where each is what a convolution has."""
  slid = [axis for axis in x if isinstance(axis, Index) and len(axis.terms) == 2]
  own, other, out = (_labels([axis for axis in t if axis not in slid]) for t in (x, w, output))
  if not slid or own is None or other is None or out is None:
    return None
  inside = [label for axis in slid for label, _ in axis.terms]
  found = Roles(
    [a for a in own if a in out and a not in other],
    [a for a in own if a in out and a in other],
    [a for a in own if a not in out and a in other],
    [a for a in other if a in out and a not in own],
    [a for a in inside if a in out and a not in other],
    [a for a in inside if a not in out and a in other],
  )
  n, g, c, o, m, k = map(len, found)
  counts = (n + g + c, g + o + c + k, n + g + o + m)
  fits = counts == (len(own), len(other), len(out)) and len({*own, *inside}) == len(own) + len(inside)
  pairs = m == k and all(sum(a in found.m for a, _ in axis.terms) == 1 for axis in slid)
  return found if fits and pairs else None


def _labels(axes: Sequence[Any]) -> list[Label] | None:
  """Their names, where each has one, and another one."""
  found = [axis.label for axis in axes if isinstance(axis, Index) and axis.label is not None]
  return found if len({*found}) == len(axes) else None


def _whole(term: Term, u: UOp, sizes: Mapping[Label, Any]) -> bool:
  """Is no axis repeated?"""
  labels = [axis.label if isinstance(axis, Index) else None for axis in term]
  return all(a is None or n == sizes[a] for a, n in zip(labels, shape(u)))


def _computed(
  found: Roles, x_term: Term, w_term: Term, output: Term, sizes: Mapping[Label, Any], x: UOp, w: UOp
) -> UOp:
  n, g, c, o, m, k = (tuple(sizes[a] for a in names) for names in found)
  where: dict[Label, int] = {}
  factors: dict[Label, int] = {}
  for at, axis in enumerate(x_term):
    assert isinstance(axis, Index)
    if axis.label is None:
      factors.update(axis.terms)
      x = span(x, at, axis.plus, shape(x)[at]) if axis.plus else x
    where.update({label: at for label, _ in axis.terms})
  x = graph.permute(x, tuple(where[a] for a in (*found.n, *found.g, *found.c, *found.m)))
  size = shape(x)[len(x_term) - len(m) :]
  x = graph.reshape(x, (prod(n), prod(g), prod(c), *size))
  there = _labels(w_term) or []
  w = graph.permute(w, tuple(there.index(a) for a in (*found.g, *found.o, *found.c, *found.k)))
  w = graph.reshape(w, (prod(g), prod(o), prod(c), *k))
  stride, dilation = (tuple(factors[a] for a in names) for names in (found.m, found.k))
  y = derivative(Form(size, k, m, stride, (0,) * len(m), dilation), "y", x=x, w=w)
  made = [*found.n, *found.g, *found.o, *found.m]
  y = graph.reshape(y, (*n, *g, *o, *m))
  return graph.permute(y, tuple(map(made.index, _labels(output) or [])))
