"""Functions element by element: `ufunc`, and the table of them. A row is a name and what it is on tensors of the type
in which NumPy computes it; names that NumPy has for the same ufunc follow from NumPy.

Operators of arrays are these, too; in place they are `out=`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from mini.numpy.array import Lazy, array_of, asarray, generic, made, ndarray, operand
from mini.numpy.types import asked_again, loop, mini_type, summed
from mini.tensor import Tensor
from mini.tensor.promotion import broadcast_shape
from mini.tensor.trace import local

# ---------------------------------------------------------------- bodies that are no method of Tensor


def _odd(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
  """f, which is odd, with the sign of its argument: of -0.0 it is -0.0."""
  return lambda x: f(x).copysign(x)


def _power(a: Tensor, b: Tensor) -> Tensor:
  if a.dtype.kind != "f":
    return a**b
  one = (a == 1) | (b == 0) | ((a == -1) & b.isinf())
  return one.where(1, a**b)


def _cbrt(x: Tensor) -> Tensor:
  size = x.abs()
  plain = (size > 0) & (size < math.inf)
  safe = plain.where(size, 1)
  y = safe.pow(1 / 3)
  y = y - (y * y * y - safe) / (3 * y * y)  # a step of Newton's method: pow's 1/3 is not a third
  return plain.where(y, size).copysign(x)


def _remainder(a: Tensor, b: Tensor) -> Tensor:
  """a - b * floor(a / b); a zero has the sign of b."""
  if a.dtype.kind != "f":
    return a % b
  r = a % b
  beyond = (b.isinf() & a.isfinite()).where(((a == 0) | ((a < 0) == (b < 0))).where(a, b), r)
  return (beyond == 0).where(beyond.zeros_like().copysign(b), beyond)


def _floor_divide(a: Tensor, b: Tensor) -> Tensor:
  """The largest whole number not above a / b; of an infinite a NaN."""
  if a.dtype.kind != "f":
    return a // b
  down = (a != 0) & ((a < 0) != (b < 0))
  q = (b.isinf() & a.isfinite()).where(down.where(-1.0, a / b), a // b)
  q = (a.isinf() & (b != 0)).where(math.nan, q)
  return (q == 0).where(q.zeros_like().copysign(a / b), q)


def _fmod(a: Tensor, b: Tensor) -> Tensor:
  if a.dtype.kind != "f":
    return a.fmod(b)
  r = (b.isinf() & a.isfinite()).where(a, a.fmod(b))
  return (r == 0).where(r.copysign(a), r)


def _arctan2(a: Tensor, b: Tensor) -> Tensor:
  return (a.isnan() | b.isnan()).where(math.nan, a.atan2(b))


def _sign(x: Tensor) -> Tensor:
  return x.isnan().where(x, x.sign()) if x.dtype.kind == "f" else x.sign()


def _shift(x: Tensor, n: Tensor, left: bool) -> Tensor:
  """By at least as many bits as there are: 0, or the sign."""
  most = 8 * x.dtype.itemsize - 1
  beyond = (n > most) | (n < 0) if n.dtype.kind == "i" else n > most
  shifted = x << n.clamp(0, most) if left else x >> n.clamp(0, most - 1)
  return (
    beyond.where(0, shifted)
    if left
    else (beyond | (n == most)).where((x < 0).where(-1, (x >> most - 1) >> 1), shifted)
  )


def _bit_count(x: Tensor) -> Tensor:
  size = x.abs()
  digits = [(size >> n) & 1 for n in range(8 * x.dtype.itemsize - (x.dtype.kind == "i"))]
  low = functools.reduce(operator.add, digits)
  least = x == int(np.iinfo(x.dtype.np).min)
  return least.where(1, low) if x.dtype.kind == "i" else low


def _spacing(x: Tensor) -> Tensor:
  size = x.abs()
  return (size.nextafter(math.inf) - size).copysign(x)


def _modf(x: Tensor) -> tuple[Tensor, Tensor]:
  whole = x.trunc()
  return x.isinf().where(0, x - whole).copysign(x), whole.copysign(x)


def _ldexp(x: Tensor, n: Tensor) -> Tensor:
  """In two steps, for 2.0**n alone may be too large or too small."""
  half = n >> 1
  power = lambda k: k.cast(x.dtype).exp2()
  return x * power(half) * power(n - half)


def _on_truth(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
  return lambda *xs: op(*(x.bool() for x in xs))


# fmt: off
TABLE: dict[str, Callable[..., Any]] = {
  "add":          lambda a, b: a | b if a.dtype.kind == "b" else a + b,
  "subtract":     operator.sub,
  "multiply":     operator.mul,
  "divide":       operator.truediv,
  "floor_divide": _floor_divide,
  "remainder":    _remainder,
  "fmod":         _fmod,
  "divmod":       lambda a, b: (_floor_divide(a, b), _remainder(a, b)),
  "power":        _power,
  "float_power":  _power,
  "negative":     operator.neg,
  "positive":     lambda x: x,
  "absolute":     Tensor.abs,
  "fabs":         Tensor.abs,
  "rint":         Tensor.round,
  "sign":         _sign,
  "heaviside":    lambda x, v: x.isnan().where(x, x.heaviside(v)),
  "conjugate":    lambda x: x,
  "exp":          Tensor.exp,
  "exp2":         Tensor.exp2,
  "expm1":        _odd(Tensor.expm1),
  "log":          Tensor.log,
  "log2":         Tensor.log2,
  "log10":        Tensor.log10,
  "log1p":        Tensor.log1p,
  "sqrt":         Tensor.sqrt,
  "square":       Tensor.square,
  "cbrt":         _cbrt,
  "reciprocal":   lambda x: x.reciprocal() if x.dtype.kind == "f" else x.ones_like().div(x, rounding_mode="trunc"),
  "sin":          Tensor.sin,
  "cos":          Tensor.cos,
  "tan":          Tensor.tan,
  "arcsin":       _odd(Tensor.asin),
  "arccos":       Tensor.acos,
  "arctan":       Tensor.atan,
  "arctan2":      _arctan2,
  "hypot":        Tensor.hypot,
  "sinh":         _odd(Tensor.sinh),
  "cosh":         Tensor.cosh,
  "tanh":         Tensor.tanh,
  "arcsinh":      _odd(Tensor.asinh),
  "arccosh":      Tensor.acosh,
  "arctanh":      _odd(Tensor.atanh),
  "deg2rad":      Tensor.deg2rad,
  "rad2deg":      Tensor.rad2deg,
  "degrees":      Tensor.rad2deg,
  "radians":      Tensor.deg2rad,
  "bitwise_and":  operator.and_,
  "bitwise_or":   operator.or_,
  "bitwise_xor":  operator.xor,
  "invert":       operator.invert,
  "left_shift":   functools.partial(_shift, left=True),
  "right_shift":  functools.partial(_shift, left=False),
  "bitwise_count": _bit_count,
  "greater":      operator.gt,
  "greater_equal": operator.ge,
  "less":         operator.lt,
  "less_equal":   operator.le,
  "equal":        operator.eq,
  "not_equal":    operator.ne,
  "logical_and":  _on_truth(operator.and_),
  "logical_or":   _on_truth(operator.or_),
  "logical_xor":  _on_truth(operator.xor),
  "logical_not":  _on_truth(operator.invert),
  "maximum":      Tensor.maximum,
  "minimum":      Tensor.minimum,
  "fmax":         Tensor.fmax,
  "fmin":         Tensor.fmin,
  "isfinite":     Tensor.isfinite,
  "isinf":        Tensor.isinf,
  "isnan":        Tensor.isnan,
  "signbit":      Tensor.signbit,
  "copysign":     Tensor.copysign,
  "nextafter":    Tensor.nextafter,
  "spacing":      _spacing,
  "modf":         _modf,
  "ldexp":        _ldexp,
  "floor":        Tensor.floor,
  "ceil":         Tensor.ceil,
  "trunc":        Tensor.trunc,
  "logaddexp":    Tensor.logaddexp,
  "logaddexp2":   Tensor.logaddexp2,
}
REDUCED: dict[str, Callable[..., Tensor]] = {
  "add":         Tensor.sum,
  "multiply":    Tensor.prod,
  "maximum":     Tensor.max,
  "minimum":     Tensor.min,
  "logical_and": Tensor.all,
  "logical_or":  Tensor.any,
}
RUNNING: dict[str, Callable[..., Tensor]] = {
  "add":      Tensor.cumsum,
  "multiply": Tensor.cumprod,
  "maximum":  lambda x, axis: x.cummax(axis)[0],
  "minimum":  lambda x, axis: x.cummin(axis)[0],
}
ADDED = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin"}  # how `at` adds up
OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
             "mod": "remainder", "divmod": "divmod", "pow": "power", "and": "bitwise_and", "or": "bitwise_or",
             "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift", "lt": "less", "le": "less_equal",
             "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
# fmt: on
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


# ---------------------------------------------------------------- ufunc


def kind_of(x: Any) -> Any:
  """How an operand's type counts: a Python number's less than an array's (NEP 50)."""
  return type(x) if type(x) in (int, float, complex) else np.dtype(bool) if type(x) is bool else x.dtype


def negative(x: Any) -> bool:
  """Is there a negative number? Of what is lazy that is computed."""
  return x < 0 if type(x) in (bool, int) else local.current is None and bool((x._host() < 0).any())


class ufunc:
  """A function element by element, with NumPy's ufunc of the same name for its rules."""

  def __init__(self, name: str, body: Callable[..., Any]):
    self.__name__, self.body, self.numpy = name, body, getattr(np, name)
    self.nin, self.nout, self.nargs = self.numpy.nin, self.numpy.nout, self.numpy.nargs
    self.identity, self.__doc__ = self.numpy.identity, f"`numpy.{name}`, lazily."

  def __repr__(self) -> str:
    return f"<ufunc {self.__name__!r}>"

  def __call__(self, *args: Any, out: Any = None, where: Any = True, casting: str = "same_kind", dtype: Any = None,
               signature: Any = None, order: Any = "K", subok: bool = True) -> Any:  # fmt: skip
    if not self.nin <= len(args) <= self.nargs:
      return self.numpy(*map(np.asarray, args))  # TypeError
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

  def _results(self, inputs: list[Any], outs: Any, dtype: Any, signature: Any, casting: str) -> list[Tensor]:
    kinds = (*map(kind_of, inputs), *(None if o is None else o.dtype for o in outs))
    if dtype is not None:
      signature = (*(None,) * self.nin, *(np.dtype(dtype),) * self.nout)
    types = loop(self.__name__, kinds, signature, casting)
    if self.__name__ == "power" and types[1].kind == "i" and negative(inputs[1]):
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
    found = self.body(*tensors)
    several = found if isinstance(found, tuple) else (found,)
    return [r.cast(mini_type(d)) for r, d in zip(several, types[self.nin :])]

  # ---------------------------------------------------------------- along axes

  def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
             initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    a = asarray(array)
    given = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
    try:
      t, axes = self._typed(a, dtype), axes_of(axis, a.ndim)
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
    return made(result) if out is None else out._store(result)

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
      return REDUCED[self.__name__](t, axes, keepdims, **how) if axes or t.ndim == 0 else t
    for a in sorted(axes, reverse=True):
      if not t.shape[a]:
        t = Tensor.full((*t.shape[:a], *t.shape[a + 1 :]), self.identity, dtype=t.dtype)
      else:
        t = functools.reduce(self.body, t.unbind(a))
      t = t.unsqueeze(a) if keepdims else t
    return t

  def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    a = asarray(array)
    try:
      t, axis = self._typed(a, dtype), normalize_axis_index(axis, a.ndim)
      if self.__name__ in RUNNING:
        how = {"dtype": t.dtype} if self.__name__ in ("add", "multiply") else {}
        result = RUNNING[self.__name__](t, axis, **how)
      else:
        rows = list(t.unbind(axis))
        for n in range(1, len(rows)):
          rows = [*rows[:n], self.body(rows[n - 1], rows[n]), *rows[n + 1 :]]
        result = rows[0].stack(*rows[1:], dim=axis) if rows else t
    except Exception as e:  # noqa: BLE001  which one it is NumPy says
      asked_again(self.numpy.accumulate, (a, axis, dtype), {}, e)
    return array_of(result) if out is None else out._store(result)

  def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
    a, b = asarray(a), asarray(b)
    return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)

  def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
    """a[indices] = self(a[indices], b), once for each index, also where one is there several times."""
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
    elif self.__name__ in ADDED:
      flat = flat.scatter_reduce(0, places, values, ADDED[self.__name__])
    else:
      for n in range(places.numel()):
        i = places[n : n + 1]
        flat = flat.scatter(0, i, self.body(flat[i], values[n : n + 1]).cast(flat.dtype))
    a._store(flat.reshape(a.shape))

  def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    a = asarray(array)
    starts = [int(i) for i in indices]
    t, axis = self._typed(a, dtype), normalize_axis_index(axis, a.ndim)
    ends = [*starts[1:], a.shape[axis]]
    parts = [self._folded(t.narrow(axis, i, max(j - i, 1)), (axis,), True) for i, j in zip(starts, ends)]
    return array_of(parts[0].cat(*parts[1:], dim=axis))


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
  """Axes from None (all), one or several. AxisError."""
  if axis is None:
    return tuple(range(ndim))
  return np.lib.array_utils.normalize_axis_tuple(axis, ndim)


def _kept(out: Any, result: Tensor, where: Any) -> Tensor:
  """`out=`: stored there, where `where` is true."""
  if not isinstance(out, ndarray):
    raise TypeError("return arrays must be of ArrayType")
  if broadcast_shape(result.shape, out.shape) != out.shape:
    shape = str(out.shape).replace(" ", "")
    raise ValueError(
      f"non-broadcastable output operand with shape {shape} doesn't match the broadcast shape "
      + str(broadcast_shape(result.shape, out.shape) or result.shape).replace(" ", "")
    )
  result = result.cast(mini_type(out.dtype))
  out._store(result if where is True else operand(where).where(result, out._tensor))
  return result


UFUNCS = {name: ufunc(name, body) for name, body in TABLE.items()}
ALIASES = {
  n: UFUNCS[f.__name__] for n in dir(np) if isinstance(f := getattr(np, n), np.ufunc) and f.__name__ in UFUNCS
}


def _operator(f: ufunc, swap: bool) -> Callable[[Any, Any], Any]:
  def method(self: Any, other: Any) -> Any:
    if not isinstance(other, (Lazy, bool, int, float, complex, np.ndarray, np.generic, list, tuple, Tensor)):
      return NotImplemented
    return f(other, self) if swap else f(self, other)

  return method


def _in_place(f: ufunc) -> Callable[[Any, Any], Any]:
  return lambda self, other: f(self, other) if isinstance(self, generic) else f(self, other, out=self)


for sign, name in OPERATORS.items():
  setattr(Lazy, f"__{sign}__", _operator(UFUNCS[name], False))
  if name not in COMPARISONS:
    setattr(Lazy, f"__r{sign}__", _operator(UFUNCS[name], True))
    setattr(Lazy, f"__i{sign}__", _in_place(UFUNCS[name]))
for sign, name in UNARY.items():
  setattr(Lazy, f"__{sign}__", functools.partialmethod(lambda self, f: f(self), UFUNCS[name]))
