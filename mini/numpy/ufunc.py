"""Functions element by element: `ufunc`, one for each row of bodies.py. Other names that NumPy has for the same ufunc
follow from NumPy.

Operators of arrays are these, too; in place they are `out=`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from mini.numpy.array import Lazy, array_of, asarray, generic, made, ndarray, operand, stored
from mini.numpy.bodies import REDUCED, RUNNING, TABLE, method
from mini.numpy.few import at_hand, fit_together, has_values, limit, quietly, shares
from mini.numpy.host import at_once, computed, ours, theirs
from mini.numpy.types import asked_again, loop, mini_type, stand_in, summed
from mini.tensor import Tensor
from mini.tensor.promotion import broadcast_shape

# fmt: off
ADDED = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin"}  # how `at` adds up
OF_TRUTHS = {"add": "amax", "multiply": "amin", "maximum": "amax", "minimum": "amin"}
OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
             "mod": "remainder", "divmod": "divmod", "pow": "power", "and": "bitwise_and", "or": "bitwise_or",
             "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift", "lt": "less", "le": "less_equal",
             "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
# fmt: on
OF_BITS = ("nextafter", "spacing", "signbit", "copysign")
ASTRAY = ("expm1",)  # of some complex numbers NumPy finds what is not the standard's
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


# ---------------------------------------------------------------- ufunc


def kind_of(x: Any) -> Any:
  """How an operand's type counts: a Python number's less than an array's (NEP 50)."""
  return type(x) if type(x) in (int, float, complex) else np.dtype(bool) if type(x) is bool else x.dtype


def negative(x: Any) -> bool:
  """Is there a negative number? Of what is lazy that is computed."""
  return x < 0 if type(x) in (bool, int) else has_values() and bool((x._host() < 0).any())


def few_first(f: Callable[..., Any]) -> Callable[..., Any]:
  """A method of ufuncs: NumPy's own, of values that are at hand."""

  @functools.wraps(f)
  def method(self: ufunc, *args: Any, **kwargs: Any) -> Any:
    if "out" not in kwargs and (few := at_hand(*args, *kwargs.values())):
      with suppress(Exception):  # what NumPy refuses is refused below
        found = quietly(
          getattr(self.numpy, f.__name__), *few[: len(args)], **dict(zip(kwargs, few[len(args) :]))
        )
        if not shares(found, few):
          return ours(found)
    return f(self, *args, **kwargs)

  return method


class ufunc:
  """A function element by element, with NumPy's ufunc of the same name for its rules."""

  def __init__(self, name: str, body: Any):
    self.__name__, self.body, self.numpy = name, method(body), getattr(np, name)
    self.nin, self.nout, self.nargs = self.numpy.nin, self.numpy.nout, self.numpy.nargs
    self.identity, self.__doc__ = self.numpy.identity, f"`numpy.{name}`, lazily."

  def __repr__(self) -> str:
    return f"<ufunc {self.__name__!r}>"

  def __call__(self, *args: Any, out: Any = None, where: Any = True, casting: str = "same_kind", dtype: Any = None,
               signature: Any = None, order: Any = "K", subok: bool = True) -> Any:  # fmt: skip
    if not self.nin <= len(args) <= self.nargs:
      return self.numpy(*map(np.asarray, args))  # TypeError
    plain = where is True and dtype is signature is None and casting == "same_kind"
    few = at_hand(*args, most=3 * limit()) if plain else None
    if few and fit_together(few) and not (self.__name__ in ASTRAY and few[0].dtype.kind == "c"):
      if out is None and len(args) == self.nin:
        return computed(self.numpy, few)
      if isinstance(out, ndarray) and out._wrote(self._into, *args[: self.nin]):
        return out
    outs = args[self.nin :] or (out if isinstance(out, tuple) else (out,) * self.nout)
    inputs = [
      x if type(x) in (bool, int, float, complex) else x if isinstance(x, Lazy) else asarray(x)
      for x in args[: self.nin]
    ]
    given = {"out": out, "where": where, "dtype": dtype, "casting": casting}
    try:
      results = self._results(inputs, outs, dtype, signature, casting)
      results = [r if o is None else _kept(o, r, where) for r, o in zip(results, outs)]
    except Exception as e:  # noqa: BLE001  which one it is NumPy says
      asked_again(self.numpy, args, {k: v for k, v in given.items() if v is not None}, e)
    found = [made(r) if o is None else o for r, o in zip(results, outs)]
    return found[0] if self.nout == 1 else tuple(found)

  def _into(self, out: np.ndarray, *few: Any) -> None:
    quietly(self.numpy, *few, out=out)

  def _results(self, inputs: list[Any], outs: Any, dtype: Any, signature: Any, casting: str) -> list[Tensor]:
    kinds = (*map(kind_of, inputs), *(None if o is None else o.dtype for o in outs))
    if dtype is not None:
      signature = (*(None,) * self.nin, *(np.dtype(dtype),) * self.nout)
    types = loop(self.__name__, kinds, signature, casting)
    some = all(np.size(stand_in(x)) for x in inputs)
    if self.__name__ == "power" and types[1].kind == "i" and some and negative(inputs[1]):
      raise ValueError("Integers to negative integer powers are not allowed.")
    try:
      tensors = [operand(x, d) for x, d in zip(inputs, types)]
    except OverflowError:
      if self.__name__ not in COMPARISONS:
        raise
      tensors = [operand(float(x) if type(x) is int else x, np.dtype(float)) for x in inputs]
    if broadcast_shape(*(t.shape for t in tensors)) is None:
      shapes = " ".join(str(t.shape).replace(" ", "") for t in tensors)
      raise ValueError(f"operands could not be broadcast together with shapes {shapes} ")
    if types[0] == np.float16 and self.__name__ not in OF_BITS:  # as NumPy: in float32, rounded once
      tensors = [t.float() if t.dtype.kind == "f" else t for t in tensors]
    found = self.body(*tensors)
    several = found if isinstance(found, tuple) else (found,)
    return [r.cast(mini_type(d)) for r, d in zip(several, types[self.nin :])]

  # ---------------------------------------------------------------- along axes

  @few_first
  def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
             initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    a = asarray(array)
    given = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
    if self._by_order(a):
      more = {} if initial is None else {"initial": initial}
      return at_once(self.numpy.reduce)(a, axis, dtype, out, keepdims, where=where, **more)
    try:
      t, axes = self._typed(a, dtype), axes_of(None if not a.ndim and axis in (0, -1) else axis, a.ndim)
      if where is not True:
        rest = self.identity if initial is None else initial
        if rest is None:
          raise ValueError(f"reduction operation '{self.__name__}' does not have an identity, "
                           "so to use a where mask one has to specify 'initial'")  # fmt: skip
        t = operand(where).where(t, rest)
      result = self._folded(t, axes, keepdims, initial)
      if initial is not None:
        result = self.body(result, operand(initial, result.dtype.np))
    except Exception as e:  # noqa: BLE001  which one it is NumPy says
      asked_again(self.numpy.reduce, (a,), given, e)
    return made(result) if out is None else stored(out, result)

  def _by_order(self, a: ndarray) -> bool:
    """Is it one of several complex numbers, which NumPy finds?"""
    return a.dtype.kind == "c" and self.__name__ in ("maximum", "minimum", "fmax", "fmin")

  def _typed(self, a: Any, dtype: Any) -> Tensor:
    """The array in the type in which it is reduced."""
    if dtype is None:
      dtype = summed(a.dtype) if self.__name__ in ("add", "multiply") else a.dtype
    return operand(a, loop(self.__name__, (np.dtype(dtype), np.dtype(dtype), None))[0])

  def _folded(self, t: Tensor, axes: tuple[int, ...], keepdims: bool, initial: Any = None) -> Tensor:
    empty = any(t.shape[a] == 0 for a in axes)
    if empty and self.identity is None:
      if initial is None:
        raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
      rest = tuple(1 if a in axes else n for a, n in enumerate(t.shape))
      out = operand(initial, t.dtype.np).expand(rest)
      return out if keepdims else out.squeeze(axes)
    if self.__name__ in REDUCED:
      how = {"dtype": t.dtype} if self.__name__ in ("add", "multiply") else {}
      return method(REDUCED[self.__name__])(t, axes, keepdims, **how) if axes or t.ndim == 0 else t
    for a in sorted(axes, reverse=True):
      if not t.shape[a]:
        t = Tensor.full((*t.shape[:a], *t.shape[a + 1 :]), self.identity, dtype=t.dtype)
      else:
        t = functools.reduce(self.body, t.unbind(a))
      t = t.unsqueeze(a) if keepdims else t
    return t

  @few_first
  def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    a = asarray(array)
    if self._by_order(a):
      return at_once(self.numpy.accumulate)(a, axis, dtype, out)
    try:
      t, axis = self._typed(a, dtype), normalize_axis_index(axis, a.ndim)
      if self.__name__ in RUNNING:
        how = {"dtype": t.dtype} if self.__name__ in ("add", "multiply") else {}
        result = method(RUNNING[self.__name__])(t, axis, **how)
      else:
        rows = list(t.unbind(axis))
        for n in range(1, len(rows)):
          rows = [*rows[:n], self.body(rows[n - 1], rows[n]), *rows[n + 1 :]]
        result = rows[0].stack(*rows[1:], dim=axis) if rows else t
    except Exception as e:  # noqa: BLE001  which one it is NumPy says
      asked_again(self.numpy.accumulate, (a, axis, dtype), {}, e)
    return array_of(result) if out is None else stored(out, result)

  def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
    a, b = asarray(a), asarray(b)
    return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)

  def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
    """a[indices] = self(a[indices], b), once for each index, also where one is there several times."""
    given = (indices,) if b is None else (indices, b)
    if isinstance(a, np.ndarray):
      return self.numpy.at(a, *map(theirs, given))
    if a._wrote(functools.partial(quietly, self.numpy.at), *given):
      return
    where = Tensor.arange(a.size).reshape(a.shape)
    places = array_of(where)[indices]._tensor.reshape(-1)
    flat = a._tensor.reshape(-1)
    if self.nin == 1:
      new = self(array_of(flat[places]))._tensor.cast(flat.dtype)
      a._store(flat.scatter(0, places, new).reshape(a.shape))
      return
    loop(self.__name__, (a.dtype, kind_of(b if type(b) in (int, float) else asarray(b)), a.dtype))
    values = operand(b, a.dtype).expand(np.shape(array_of(where)[indices])).reshape(-1)
    if self.__name__ == "subtract":
      flat = flat.scatter_add(0, places, -values)
    elif a.dtype.kind == "b" and self.__name__ in OF_TRUTHS:
      found = flat.int().scatter_reduce(0, places, values.int(), OF_TRUTHS[self.__name__])
      flat = found.cast(flat.dtype)
    elif self.__name__ == "add" or (self.__name__ in ADDED and a.dtype.kind != "c"):
      flat = flat.scatter_reduce(0, places, values, ADDED[self.__name__])
    else:
      for n in range(places.numel()):
        i = places[n : n + 1]
        flat = flat.scatter(0, i, self.body(flat[i], values[n : n + 1]).cast(flat.dtype))
    a._store(flat.reshape(a.shape))

  @few_first
  def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    a = asarray(array)
    starts = [int(i) for i in indices]
    try:
      t, axis = self._typed(a, dtype), normalize_axis_index(axis, a.ndim)
      ends = [*starts[1:], a.shape[axis]]
      parts = [self._folded(t.narrow(axis, i, max(j - i, 1)), (axis,), True) for i, j in zip(starts, ends)]
    except Exception as e:  # noqa: BLE001  which one it is NumPy says
      asked_again(self.numpy.reduceat, (a, starts, axis, dtype), {}, e)
    return array_of(parts[0].cat(*parts[1:], dim=axis))


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
  """Axes from None (all), one or several. AxisError."""
  if axis is None:
    return tuple(range(ndim))
  return np.lib.array_utils.normalize_axis_tuple(axis, ndim)


def _kept(out: Any, result: Tensor, where: Any) -> Tensor:
  """`out=`: stored there, where `where` is true."""
  if not isinstance(out, (ndarray, np.ndarray)):
    raise TypeError("return arrays must be of ArrayType")
  if broadcast_shape(result.shape, out.shape) != out.shape:
    shape = str(out.shape).replace(" ", "")
    raise ValueError(
      f"non-broadcastable output operand with shape {shape} doesn't match the broadcast shape "
      + str(broadcast_shape(result.shape, out.shape) or result.shape).replace(" ", "")
    )
  result = result.cast(mini_type(out.dtype))
  stored(out, result if where is True else operand(where).where(result, operand(out)))
  return result


UFUNCS = {name: ufunc(name, body) for name, body in TABLE.items()}
ALIASES = {
  n: UFUNCS[f.__name__] for n in dir(np) if isinstance(f := getattr(np, n), np.ufunc) and f.__name__ in UFUNCS
}


def _operator(f: ufunc, swap: bool) -> Callable[[Any, Any], Any]:
  def method(self: Any, other: Any) -> Any:
    if not isinstance(other, (Lazy, bool, int, float, complex, np.ndarray, np.generic, list, tuple, Tensor)):
      return NotImplemented
    if f.__name__ == "multiply" and isinstance(self, generic) and isinstance(other, (list, tuple)):
      return NotImplemented  # the sequence, repeated
    return f(other, self) if swap else f(self, other)

  return method


def _in_place(f: ufunc) -> Callable[[Any, Any], Any]:
  return lambda self, other: f(self, other) if isinstance(self, generic) else f(self, other, out=self)


def _unary(f: ufunc) -> Callable[[Any], Any]:
  return lambda self: f(self)


for sign, name in OPERATORS.items():
  setattr(Lazy, f"__{sign}__", _operator(UFUNCS[name], False))
  if name not in COMPARISONS:
    setattr(Lazy, f"__r{sign}__", _operator(UFUNCS[name], True))
    setattr(Lazy, f"__i{sign}__", _in_place(UFUNCS[name]))
for sign, name in UNARY.items():
  setattr(Lazy, f"__{sign}__", _unary(UFUNCS[name]))
