"""The rules of types and of errors: NumPy's own, which is asked for them.

An array's type is a `numpy.dtype`; what a ufunc makes of types and of Python numbers (NEP 50) is what NumPy's ufunc of
that name says. A call that fails is repeated by NumPy on stand-ins - arrays of the same shapes and types, in which one
zero stands for all elements - and what NumPy raises is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NoReturn

import numpy as np

from mini.ir.uop import UOp, unknown
from mini.types import HANDED_IN, DType, MiniError, dtypes

theirs: Any = np  # of any signature
LARGEST = 1 << 20  # elements of a stand-in that NumPy may go through to find an error


class NoDType(TypeError):
  """A type of NumPy's that no tensor has."""


def numpy_type(d: Any) -> np.dtype:
  """What NumPy calls a type that is here, too. TypeError if it is not."""
  found = np.dtype(d)
  if found not in HANDED_IN:
    raise NoDType(f"mini.numpy has no dtype {found.name!r}; there are {', '.join(t.name for t in HANDED_IN)}")
  return found


def mini_type(d: Any) -> DType:
  """The type of a Tensor that holds it."""
  return HANDED_IN[numpy_type(d)]


def type_of(d: DType) -> np.dtype:
  """The NumPy type of a Tensor's. TypeError of bfloat16, which NumPy lacks."""
  if d is dtypes.bfloat16:
    raise TypeError("NumPy has no bfloat16; x.float() would fit")
  return d.np


# ---------------------------------------------------------------- ufuncs


@lru_cache(4096)
def loop(
  name: str, types: tuple[Any, ...], signature: Any = None, casting: str = "same_kind"
) -> tuple[np.dtype, ...]:
  """The types in which a ufunc computes. types: of inputs a dtype, or int, float or complex for a Python number; of
  outputs None, or what they are kept in. TypeError as NumPy's, and where it would compute in what there is not here."""
  given = {} if signature is None else {"signature": signature}
  found = getattr(np, name).resolve_dtypes(types, casting=casting, **given)
  for d in found:
    numpy_type(d)
  return found


def common_type(*operands: Any) -> np.dtype:
  """`numpy.result_type`, of arrays, dtypes and Python numbers."""
  return numpy_type(np.result_type(*(getattr(x, "dtype", x) for x in operands)))


def summed(d: np.dtype) -> np.dtype:
  """The type of sums and products: of small integers the one of 64 bits."""
  if d.kind in "bi":
    return np.dtype(np.int64)
  return np.dtype(np.uint64) if d.kind == "u" else d


def floating(d: np.dtype) -> np.dtype:
  """The type of averages: of integers float64."""
  return d if d.kind in "fc" else np.dtype(np.float64)


# ---------------------------------------------------------------- errors


def stand_in(x: Any) -> Any:
  """What has x's shape and type, and no memory; of sequences, of what is in them."""
  if hasattr(x, "_memory"):
    if (values := x._values()) is not None:
      return values
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)
  if type(x) in (list, tuple):
    return type(x)(map(stand_in, x))
  return x


def _room(x: Any) -> Any:
  """A stand-in that NumPy may write to."""
  return (
    tuple(map(_room, x))
    if isinstance(x, tuple)
    else np.empty(x.shape, x.dtype)
    if hasattr(x, "_memory")
    else x
  )


def asked_again(
  function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], error: Exception
) -> NoReturn:
  """Raise what NumPy raises of the same call; where it raises nothing, the error itself."""
  largest = max((prod(x.shape) for x in (*args, *kwargs.values()) if hasattr(x, "_memory")), default=0)
  if largest <= LARGEST:
    try:
      with np.errstate(all="ignore"):
        function(
          *map(stand_in, args), **{k: _room(x) if k == "out" else stand_in(x) for k, x in kwargs.items()}
        )
    except MiniError:
      pass
    except Exception as e:
      raise e from error
  raise error


# ---------------------------------------------------------------- how much is put off


def depth(u: UOp) -> int:
  """The length of the longest chain of operations that are still to be computed."""
  for n in unknown(u, "depth"):
    below = (0 if s.op == "buffer" or "leaf" in s.memo else s.memo["depth"] for s in n.src)
    n.memo["depth"] = 1 + max(below, default=0)
  return u.memo["depth"]
