"""What operands come to: the type that they promote to, and the shape that they repeat to.

The rules for two types alone stand in mini/types.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.tensor.data import Complex, fits, is_complex, misfit
from mini.tensor.errors import fail, named
from mini.tensor.handle import Handle
from mini.types import CATEGORY, DType, DTypeError, RangeError, ShapeError, complex_of, dtypes, promote_types


def scalar_dtype(x: Any) -> DType:
  """The type of a Python number by itself."""
  if isinstance(x, (bool, np.bool_)):
    return dtypes.bool
  if isinstance(x, (int, np.integer)):
    return dtypes.default_int
  if isinstance(x, (float, np.floating)):
    return dtypes.default_float
  if isinstance(x, Complex):
    return complex_of(dtypes.default_float)
  raise DTypeError(f"{x!r} is no number")


def _promoted(a: DType | None, b: DType) -> DType:
  return b if a is None else promote_types(a, b)


def _outranked(strong: DType | None, weak: DType | None) -> DType | None:
  """`weak` counts only where it is of a higher category: bool < integer < float < complex."""
  if strong is None or weak is None:
    return strong or weak
  if weak.kind == "c" and strong.kind == "f":
    return complex_of(strong)
  return promote_types(strong, weak) if CATEGORY[weak.kind] > CATEGORY[strong.kind] else strong


def result_type(*operands: Any) -> DType:
  """The type that operands promote to, as PyTorch's `result_type`: tensors with axes (and types by themselves), then
  0-d tensors, then numbers."""
  full: DType | None = None
  scalar: DType | None = None
  number: DType | None = None
  for x in operands:
    if isinstance(x, Handle):
      s, kind = (x.shape, x.dtype) if x._complex else (graph.shape(x._uop), x._uop.dtype)
      if s:
        full = _promoted(full, kind)
      else:
        scalar = _promoted(scalar, kind)
    elif isinstance(x, DType):
      full = _promoted(full, x)
    else:
      number = _promoted(number, scalar_dtype(x))
  found = full if scalar is number is None else _outranked(_outranked(full, scalar), number)
  if found is None:
    raise DTypeError("result_type: there are no operands")
  return found


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...] | None:
  """The shape that all of them repeat to, or None."""
  out = []
  for axis in range(-max(map(len, shapes), default=0), 0):
    sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
    if len(sizes) > 1:
      return None
    out.append(sizes.pop() if sizes else 1)
  return tuple(out)


def nodes(what: str, operands: Sequence[Any], dtype: DType | None = None, **names: Any) -> list[UOp]:
  """The operands of an elementwise operation as nodes of one type and one shape; () stays () and is repeated."""
  complex_too = dtype is not None and any(map(is_complex, operands))
  if dtype is None:
    try:
      dtype = result_type(*operands)
    except DTypeError as e:
      fail(DTypeError, f"{what}: {e}", **named(operands))
  if complex_too or dtype.kind == "c":
    fail(DTypeError, f"{what}: not of complex numbers", **named(operands))
  found = [
    graph.cast(x._node, dtype) if isinstance(x, Handle) else constant(what, x, dtype, operands)
    for x in operands
  ]
  return broadcast(what, found, operands)


def constant(what: str, x: Any, dtype: DType, operands: Sequence[Any] = ()) -> UOp:
  """A Python number in the type of the tensors that it meets. OverflowError if it is none of it."""
  x = x.item() if isinstance(x, np.generic) else x
  if not fits(x, dtype):
    about, way = misfit(x, dtype)
    fail(RangeError, f"{what}: {about}", way, **named(operands))
  return const(x, dtype)


def broadcast(what: str, found: list[UOp], operands: Sequence[Any]) -> list[UOp]:
  """Nodes repeated to their common shape; () stays ()."""
  shapes = {s for u in found if (s := graph.shape(u))}
  if len(shapes) < 2:
    return found
  common = broadcast_shape(*shapes)
  if common is None:
    tensors = {n: x for n, x in zip("abcd", operands) if isinstance(x, Handle)}
    fail(
      ShapeError,
      f"{what}: the shapes {' and '.join(str(x.shape) for x in tensors.values())} do not repeat to a common one",
      hint=fitting(list(tensors.values())),
      **tensors,
    )
  return [graph.expand_to(u, common) if graph.shape(u) else u for u in found]


def fitting(tensors: list[Handle]) -> str:
  """What would make two shapes repeat to a common one, if something simple does."""
  if len(tensors) != 2:
    return ""
  a, b = (x.shape for x in tensors)
  for name, s, other in (("b", b, a), ("a", a, b)):
    if len(s) == 2 and broadcast_shape(s[::-1], other) is not None:
      return f"{name}.T would fit"
    if s and broadcast_shape((*s, 1), other) is not None:
      return f"{name}.unsqueeze(-1) would fit"
  return ""


def wide(x: DType) -> DType:
  """The type in which sums of this type are taken."""
  return dtypes.float32 if x in (dtypes.float16, dtypes.bfloat16) else x
