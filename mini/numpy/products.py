"""Products of arrays: made of Tensor's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from mini.numpy.array import Lazy, array_of, asarray, made, operand
from mini.numpy.function import FUNCTIONS, AtOnce, publish
from mini.numpy.manipulation import diagonal
from mini.numpy.types import common_type, loop
from mini.tensor import Tensor


def pair(*xs: Any) -> list[Tensor]:
  """Operands of a product in their common type."""
  arrays = [x if isinstance(x, Lazy) else asarray(x) for x in xs]
  kind = common_type(*arrays)
  return [operand(a, kind) for a in arrays]


def _product(a: Tensor, b: Tensor) -> Tensor:
  """a @ b; of booleans whether there is a pair of true ones."""
  return (a.int() @ b.int()).bool() if a.dtype.kind == "b" else a @ b


def _conj(x: Tensor) -> Tensor:
  return x.conj() if x.dtype.kind == "c" else x  # type: ignore[attr-defined]


def matmul(x1: Any, x2: Any, out: Any = None, *, dtype: Any = None) -> Any:
  a, b = (x if isinstance(x, Lazy) else asarray(x) for x in (x1, x2))
  kind = loop("matmul", (a.dtype, b.dtype, None))[0] if dtype is None else np.dtype(dtype)
  return made(_product(operand(a, kind), operand(b, kind)))


def dot(a: Any, b: Any, out: Any = None) -> Any:
  x, y = pair(a, b)
  if not x.ndim or not y.ndim:
    return made(x * y)
  if y.ndim <= 2:
    return made(_product(x, y))
  return made(x.tensordot(y, ([x.ndim - 1], [y.ndim - 2])))


def vdot(a: Any, b: Any) -> Any:
  x, y = pair(a, b)
  return made(_product(_conj(x).reshape(-1), y.reshape(-1)))


def vecdot(x1: Any, x2: Any, out: Any = None, *, axis: int = -1, **how: Any) -> Any:
  x, y = pair(x1, x2)
  x, y = (t.movedim(normalize_axis_index(axis, t.ndim), -1) for t in (x, y))
  if x.shape[-1] != y.shape[-1]:
    raise ValueError("vecdot: vectors of two lengths")
  return made(_product(_conj(x).unsqueeze(-2), y.unsqueeze(-1)).squeeze(-1).squeeze(-1))


def matvec(x1: Any, x2: Any, **how: Any) -> Any:
  x, y = pair(x1, x2)
  return made(_product(x, y.unsqueeze(-1)).squeeze(-1))


def vecmat(x1: Any, x2: Any, **how: Any) -> Any:
  x, y = pair(x1, x2)
  return made(_product(_conj(x).unsqueeze(-2), y).squeeze(-2))


def inner(a: Any, b: Any) -> Any:
  x, y = pair(a, b)
  return made(x.inner(y))


def outer(a: Any, b: Any) -> Any:
  x, y = pair(a, b)
  return array_of(x.reshape(-1, 1) * y.reshape(1, -1))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
  x, y = pair(a, b)
  if not isinstance(axes, int):
    axes = [[int(n)] if np.ndim(n) == 0 else [int(k) for k in n] for n in axes]
  return array_of(x.tensordot(y, axes))


def kron(a: Any, b: Any) -> Any:
  x, y = pair(a, b)
  return made(x.kron(y))


def einsum(*operands: Any, dtype: Any = None, **how: Any) -> Any:
  """`numpy.einsum` of a formula; of lists of axes NumPy computes it."""
  if not isinstance(operands[0], str):
    raise AtOnce
  arrays = pair(*operands[1:]) if dtype is None else [operand(x, np.dtype(dtype)) for x in operands[1:]]
  return made(Tensor.einsum(operands[0], *arrays))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
  if 2 in (
    asarray(a).shape[axisa if axis is None else axis],
    asarray(b).shape[axisb if axis is None else axis],
  ):
    raise AtOnce
  x, y = pair(a, b)
  axisa, axisb, axisc = (axis, axis, axis) if axis is not None else (axisa, axisb, axisc)
  x, y = x.movedim(axisa, -1), y.movedim(axisb, -1)
  if x.shape[-1] != 3 or y.shape[-1] != 3:
    raise ValueError("cross: vectors have three elements")
  s = np.broadcast_shapes(x.shape, y.shape)
  return made(x.expand(s).cross(y.expand(s), -1).movedim(-1, axisc))


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
  return diagonal(a, offset, axis1, axis2).sum(-1, dtype=dtype)


publish(globals())
MATMUL = {
  "__matmul__": lambda a, b: FUNCTIONS["matmul"](a, b),
  "__rmatmul__": lambda a, b: FUNCTIONS["matmul"](b, a),
  "__imatmul__": lambda a, b: FUNCTIONS["matmul"](a, b, out=a),
}
for sign, f in MATMUL.items():
  setattr(Lazy, sign, f)
