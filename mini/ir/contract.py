"""Sums of products in the interpreter: where one is a matrix product, the products need not be made one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from mini.ir.uop import Over, UOp
from mini.types import dtypes

SMALL = 1 << 14  # a product of fewer elements is made as it stands


def products(order: Iterable[UOp], roots: Iterable[UOp] = ()) -> set[UOp]:
  """The products of floats that one sum reads, and nobody else."""
  users: dict[UOp, list[UOp]] = {}
  for u in order:
    for x in u.src:
      users.setdefault(x, []).append(u)
  kept = set(roots)
  return {
    x for x, by in users.items() if x.op == "mul" and len(by) == 1 and x not in kept and is_float_sum(by[0])
  }


def is_float_sum(u: UOp) -> bool:
  if u.op != "reduce" or u.dtype not in (dtypes.float32, dtypes.float64):
    return False
  return (u.arg.what if isinstance(u.arg, Over) else u.arg[0]) == "add"


def sum_of_products(a: np.ndarray, b: np.ndarray, axes: tuple[int, ...]) -> np.ndarray | None:
  """(a * b).sum(axes, keepdims=True) by np.matmul; None where it is no matrix product, or a small one.

  An axis that an array repeats (its size is 1, or its stride 0) belongs to the other alone. What both repeat has size 1
  in the result.
  """
  if a.ndim != b.ndim or math.prod(full := np.broadcast_shapes(a.shape, b.shape)) < SMALL:
    return None
  a, b = without_repeats(a), without_repeats(b)
  batch: list[int] = []
  rows: list[int] = []
  columns: list[int] = []
  inner: list[int] = []
  for n in range(a.ndim):
    in_a, in_b = a.shape[n] > 1, b.shape[n] > 1
    if n in axes and in_a != in_b or n in axes and not in_a and full[n] > 1:
      return None
    group = inner if n in axes and in_a else batch if in_a and in_b else rows if in_a else columns
    if in_a or in_b:
      group.append(n)
  if not (rows and columns and inner):
    return None
  ones = [n for n in range(a.ndim) if a.shape[n] == b.shape[n] == 1]
  size = [1 if n in axes else max(a.shape[n], b.shape[n]) for n in range(a.ndim)]
  nbatch = math.prod(size[n] for n in batch)
  x = a.transpose(*batch, *rows, *inner, *columns, *ones).reshape(
    nbatch, math.prod(size[n] for n in rows), -1
  )
  y = b.transpose(*batch, *inner, *columns, *rows, *ones).reshape(
    nbatch, -1, math.prod(size[n] for n in columns)
  )
  order = [*batch, *rows, *columns, *inner, *ones]
  with np.errstate(all="ignore"):
    return np.matmul(x, y).reshape([size[n] for n in order]).transpose(np.argsort(order))


def without_repeats(x: np.ndarray) -> np.ndarray:
  return x[tuple(slice(0, 1) if step == 0 else slice(None) for step in x.strides)]
