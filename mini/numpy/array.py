"""`ndarray`: a lazy Tensor with NumPy's meaning, and what stands for NumPy's scalars.

A Tensor is a value; an array of NumPy is memory that views share. So an array here is a `Memory` (memory.py) - a tensor
that a write replaces - and steps that lead from it to the view: a basic index, another order of axes, another shape,
other bits. Reading goes the steps from the memory's present tensor; writing goes them back. What the operations mean is
in ufunc.py and in the files of functions, whose tables also give the methods.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.numpy.few import at_hand, has_values, limit
from mini.numpy.memory import SMALL, STEPS, Memory, Step, as_data, compute
from mini.numpy.types import NoDType, asked_again, common_type, mini_type, numpy_type, stand_in, type_of
from mini.tensor import Tensor
from mini.tensor.dlpack import host_view
from mini.tensor.handle import Handle
from mini.tensor.trace import local


def _about(name: str, of: Callable[[Tensor], Any]) -> Any:
  """What an array is: as its values say, where they are there, or its tensor."""

  def get(self: Any) -> Any:
    a = self._values()
    return of(self._tensor) if a is None else getattr(a, name)

  return property(get)


class Lazy:
  """What arrays and scalars have in common."""

  _memory: Memory
  _steps: tuple[Step, ...]
  _seen: tuple[int, Tensor] | None  # a view's tensor, and of which version
  __slots__ = ("__weakref__", "_memory", "_seen", "_steps")
  if TYPE_CHECKING:  # the methods and operators that tables give

    def __getattr__(self, name: str) -> Any: ...

  @classmethod
  def _of(cls, memory: Memory, steps: tuple[Step, ...] = ()) -> Any:
    self = object.__new__(cls)
    self._memory, self._steps, self._seen = memory, steps, None
    return self

  @property
  def _tensor(self) -> Tensor:
    """The present value."""
    return self._viewed(self._memory.read())

  def _values(self) -> Any:
    """The values, where few are there: not to be written."""
    a = self._memory.values
    if a is not None:
      for name, what in self._steps:
        a = STEPS[name][1](a, what)
    return a

  def _viewed(self, t: Tensor) -> Tensor:
    """What this is of the memory's tensor."""
    if not self._steps:
      return t
    if self._seen is None or self._seen[0] != self._memory.version:
      for name, what in self._steps:
        t = STEPS[name][0](t, what)
      self._seen = self._memory.version, t
    return self._seen[1]

  def _write(self, new: Tensor) -> None:
    """Replace the memory's tensor by the one in which this view has another value."""
    memory, parents = self._memory, []
    t = memory.tensor
    for name, what in self._steps:
      parents.append(t)
      t = STEPS[name][0](t, what)
    for (name, what), parent in zip(reversed(self._steps), reversed(parents)):
      back = STEPS[name][2]
      assert back is not None
      new = back(parent, what, new)
    memory.version += 1
    memory.hold(new)

  def _mapped(self, f: Callable[[Any], Any]) -> Any:
    """An array of f of its tensor, as `grad`, `jit` and `vmap` make arguments and results."""
    return Clothes(type(self), self._viewed(self._memory.tensor))._mapped(f)

  @property
  def _leaf(self) -> Tensor | None:
    """The tensor, if it is all that there is of this: what `jit` asks."""
    return None if self._steps else self._memory.tensor

  def _view(self, name: str, what: Any) -> ndarray:
    out = ndarray._of(self._memory, (*self._steps, (name, what)))
    if self._memory.values is None:  # from here, not from the beginning
      out._seen = self._memory.version, STEPS[name][0](self._tensor, what)
    return out

  def _host(self) -> Any:
    """The values in NumPy, computed now: read only, and not a copy where the device's memory is the host's."""
    memory = self._memory
    if memory.values is not None and has_values():
      if not self._steps:
        return memory.values
      a = memory.values
    elif local.current is None:
      compute(memory.tensor)
      a = host_view(memory.tensor)
      memory.remember(a)
    else:
      a = memory.tensor.numpy()  # JitError of what has no value yet
    for name, what in self._steps:
      a = STEPS[name][1](a, what)
    return a

  def _strided(self) -> np.ndarray:
    """An array of NumPy with this one's strides, and no memory: it must not be read."""
    if (a := self._memory.values) is None:
      t = self._memory.tensor
      a = np.lib.stride_tricks.as_strided(np.zeros(1, type_of(t.dtype)), t.shape, _strides(t))
    for name, what in self._steps:
      a = a.reshape(what, copy=False) if name == "shape" else STEPS[name][1](a, what)
    return a

  # ---------------------------------------------------------------- what it is

  shape = _about("shape", lambda t: tuple(t.shape))
  dtype = _about("dtype", lambda t: type_of(t.dtype))
  ndim = _about("ndim", lambda t: len(t.shape))
  size = _about("size", lambda t: t.numel())
  itemsize = property(lambda self: self.dtype.itemsize)
  nbytes = property(lambda self: self.size * self.itemsize)
  strides = property(lambda self: self._strided().strides)
  flags = property(lambda self: self._strided().flags)
  device = property(lambda self: str(self._tensor.device).lower())

  def __len__(self) -> int:
    return len(stand_in(self))

  # ---------------------------------------------------------------- values

  def tensor(self) -> Tensor:
    """The Tensor with the present value: all of `mini` takes it."""
    self._memory.lend()
    return self._tensor

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """A copy, which may be written as NumPy's arrays may; with copy=False the values themselves, which may not."""
    return np.array(self._host(), dtype, copy=copy is not False or None)

  @property
  def data(self) -> memoryview:
    """The values, read only, for what takes bytes."""
    return self._host().data

  @property
  def __array_interface__(self) -> dict[str, Any]:
    a = np.array(self._host(), order="C")
    return {"version": 3, "shape": a.shape, "typestr": a.dtype.str, "strides": a.strides, "data": a}

  def __buffer__(self, flags: int) -> memoryview:  # Python 3.12 asks for it
    return np.array(self._host(), order="C").data

  def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
      raise ValueError(f'Version "{api_version}" of the Array API Standard is not supported.')
    import mini.numpy

    return mini.numpy

  def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """NumPy's ufuncs of these arrays are ours; another's (SciPy's), and those of objects, are computed at once."""
    return found_or_at_once(
      self.__array_namespace__(), [ufunc.__name__], getattr(ufunc, method), method, args, kwargs
    )

  def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's functions of these arrays are ours, as its ufuncs are."""
    names = [*function.__module__.split(".")[1:], function.__name__]
    return found_or_at_once(self.__array_namespace__(), names, function, "__call__", args, kwargs)

  def __dlpack__(
    self, /, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
  ) -> Any:
    return self._tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

  def __dlpack_device__(self) -> tuple[int, int]:
    return self._tensor.__dlpack_device__()

  def to_device(self, device: str, /, *, stream: Any = None) -> Any:
    return made(self._tensor.to(device))

  def tolist(self) -> Any:
    return self._host().tolist()

  def __bytes__(self) -> bytes:
    return self.tobytes()

  def tobytes(self, order: Any = "C") -> bytes:
    return self._host().tobytes(order)

  def item(self, *args: Any) -> Any:
    return self._host().item(*args)

  def __format__(self, spec: str) -> str:
    return format(self._number(), spec)

  def __reduce__(self) -> Any:
    return _rebuilt, (type(self), np.array(self._host()))

  def _number(self) -> Any:
    """NumPy's scalar where there are no axes, else its array."""
    return self._host()[()]

  __array_priority__ = 1000
  __bool__ = lambda self: bool(self._number())
  __int__ = lambda self: int(self._number())
  __float__ = lambda self: float(self._number())
  __complex__ = lambda self: complex(self._number())
  __trunc__ = lambda self: math.trunc(self._number())
  __index__ = lambda self: operator.index(np.asarray(self._number()))
  __contains__ = lambda self, x: bool((self == x).any())

  def __getitem__(self, index: Any) -> Any:
    index, is_basic = normal(index)
    values = self._values()
    if values is not None and values.size <= limit():
      taken = values[index]  # IndexError is NumPy's
      if isinstance(taken, np.generic):
        return generic._of(Memory(np.asarray(taken)))
      return self._view("index", index) if is_basic else array_of(held(taken))
    if isinstance(self, generic) and any(isinstance(i, (int, slice)) for i in index):
      raise IndexError("invalid index to scalar variable.")
    if is_basic:
      at = tuple(0 if isinstance(i, Tensor) else i for i in index)
      if not isinstance(stand_in(self)[at], np.generic):
        return self._view("index", index)
      return generic._of(Memory(self._memory.read()), (*self._steps, ("index", index)))
    try:
      return made(self._tensor[_apart(index)].clone())  # an array without axes leads to no view
    except Exception as e:  # noqa: BLE001  which one it is NumPy says
      asked_again(operator.getitem, (self, index), {}, e)

  def __iter__(self) -> Iterator[Any]:
    iter(stand_in(self))
    if has_values():
      compute(self._memory.tensor)
    return (self[i] for i in range(self.shape[0]))


def _strides(t: Tensor) -> tuple[int, ...]:
  out = [t.dtype.itemsize]
  for n in t.shape[:0:-1]:
    out.append(out[-1] * n)
  return tuple(reversed(out[: t.ndim]))


class ndarray(Lazy):
  """An array: `numpy.ndarray`'s meaning, lazily. Made by `array`, `zeros`, ... and by operations."""

  __slots__ = ()
  __hash__ = None  # type: ignore[assignment]

  def __new__(cls, shape: Any, dtype: Any = float, **kwargs: Any) -> Any:
    if kwargs:
      raise TypeError(
        f"ndarray(shape, dtype): {', '.join(kwargs)} would name memory; use mini.numpy.frombuffer"
      )
    return array_of(Tensor.zeros(stand_in_shape(shape), dtype=mini_type(dtype)))

  @property
  def base(self) -> Any:
    """The array that owns the memory, of a view."""
    if not self._steps:
      return None
    owner = self._memory.owner
    found = None if owner is None else owner()
    return ndarray._of(self._memory) if found is None else found

  @property
  def flat(self) -> flatiter:
    """All elements in row-major order, one after another."""
    return flatiter._of(self._memory, (*self._steps, ("shape", (self.size,))))

  @flat.setter
  def flat(self, values: Any) -> None:
    self.flat[...] = values

  @property
  def T(self) -> ndarray:
    return self._view("order", tuple(range(self.ndim))[::-1])

  @property
  def mT(self) -> ndarray:
    if self.ndim < 2:
      raise ValueError("matrix transpose with ndim < 2 is undefined")
    return self.swapaxes(-1, -2)  # type: ignore[attr-defined]

  def _reshape(self, shape: Any) -> None:
    self._strided().reshape(shape, copy=False)
    self._steps, self._seen = (*self._steps, ("shape", np.reshape(stand_in(self), shape).shape)), None

  shape = Lazy.shape.setter(_reshape)

  def __setitem__(self, index: Any, value: Any) -> None:
    self._writable()
    mask = type(index) is not tuple and is_mask(index) and np.size(stand_in(value)) == 1
    index, is_basic = (index, False) if mask else normal(index)
    if is_basic and type(value) in NUMBERS and self._memory.has(limit()):
      if self._wrote_values(operator.setitem, index, value):
        return
    elif self._wrote(operator.setitem, index, value):
      return
    try:
      new = self._tensor.clone()
      at = asarray(index)._tensor if mask else as_data(index) if is_basic else _apart(index)
      new[at] = operand(value, self.dtype)
    except Exception as e:  # noqa: BLE001  which one it is NumPy says
      asked_again(_set, (self, index, value), {}, e)
    self._write(new)

  def _writable(self) -> None:
    if self._memory.readonly or (self._steps and any(name == "repeat" for name, _ in self._steps)):
      raise ValueError("assignment destination is read-only")

  def _wrote(self, write: Callable[..., Any], *given: Any) -> bool:
    """Has NumPy written this, of what is at hand? Not to another order of what is no view in NumPy."""
    self._writable()
    found = at_hand(self, *given)
    if found is None:
      return False
    del found[0]  # which would be another one that has the values
    return self._wrote_values(write, *found)

  def _wrote_values(self, write: Callable[..., Any], *found: Any) -> bool:
    memory = self._memory
    a = whole = memory.unlocked()
    try:
      for name, what in self._steps:
        a = STEPS[name][1](a, what)
      if a is not whole and not np.may_share_memory(a, whole):
        return False
      write(a, *found)
    finally:
      whole.setflags(write=False)
    memory.version += 1
    memory.hold(whole)
    return True

  def _store(self, value: Tensor) -> ndarray:
    """Give all of it another value, which is cast: `out=`."""
    self._writable()
    self._write(value.cast(mini_type(self.dtype)).expand(self.shape))
    return self

  def copy(self, order: str = "C") -> ndarray:
    values = at_hand(self)
    return array_of(values[0].copy("C") if values else self._tensor)

  def fill(self, value: Any) -> None:
    self[...] = value

  def view(self, dtype: Any = None, type: Any = None) -> ndarray:
    if dtype is None or dtype is ndarray or np.dtype(dtype) == self.dtype:
      return ndarray._of(self._memory, self._steps)
    if np.dtype(dtype).itemsize != self.itemsize:
      raise TypeError(f"view: {np.dtype(dtype)} is not as large as {self.dtype}")
    return self._view("bits", numpy_type(dtype))

  def setflags(self, write: bool | None = None, **others: Any) -> None:
    if write is not None:
      self._memory.readonly = not write

  def __repr__(self) -> str:
    return np.array_repr(self._host())

  def __str__(self) -> str:
    return str(self._host())

  def __copy__(self) -> ndarray:
    return self.copy()

  def __deepcopy__(self, memo: Any) -> ndarray:
    return self.copy()


class flatiter(ndarray):
  """`x.flat`: what is written there is written to x, repeated where it is too short; what is taken is a copy."""

  __slots__ = ("_next",)

  def __getitem__(self, index: Any) -> Any:
    found = super().__getitem__(index)
    return found.copy() if isinstance(found, ndarray) else found

  def __setitem__(self, index: Any, value: Any) -> None:
    places = isinstance(index, Lazy) and index.dtype.kind in "iu"  # of which there is one element each
    count = index.size if places else np.size(np.zeros(self.size, bool)[theirs_of(index)])
    value = value if isinstance(value, Lazy) else asarray(value)
    if value.size not in (1, count) and count:
      many = value.reshape(-1)[np.arange(count) % max(value.size, 1)]  # type: ignore[attr-defined]
      value = many if value.size < count else many[:count]
    super().__setitem__(index, value.reshape(-1)[0] if value.size == 1 else value.reshape(-1))  # type: ignore[attr-defined]

  def __next__(self) -> Any:
    """The next element; from the beginning, after the last."""
    self._next: int = getattr(self, "_next", -1) + 1
    if self._next < self.size:
      return self[self._next]
    self._next = -1
    raise StopIteration


class generic(Lazy):
  """What stands for NumPy's scalars: a result without axes. It is lazy, immutable and hashable, and prints as NumPy's
  scalars do; unlike them it is no instance of float, int or numpy.generic."""

  __slots__ = ()

  def _values(self) -> Any:
    a = super()._values()
    return a if a is None else a[()]

  base = None
  flat = property(lambda self: asarray(self).flat)
  T = mT = property(lambda self: self)
  copy = lambda self, order="C": self
  is_integer = lambda self: self._number().is_integer()
  __hash__ = lambda self: hash(self._number())  # type: ignore[attr-defined]
  __repr__ = lambda self: repr(self._number())  # type: ignore[attr-defined]
  __str__ = lambda self: str(self._number())  # type: ignore[attr-defined]
  __round__ = lambda self, digits=None: round(self._number(), digits)


class Clothes:
  """What an array is apart from its tensor: a class, and the tensor or what stands for it, as in a captured result."""

  def __init__(self, of: type, inside: Any):
    self.of, self.inside = of, inside

  def _mapped(self, f: Callable[[Any], Any]) -> Any:
    new = self.inside._mapped(f) if hasattr(type(self.inside), "_mapped") else f(self.inside)
    if isinstance(new, (Lazy, tuple, list, dict)):  # the derivative of one element by arguments
      return new
    if not isinstance(new, Handle) or not all(isinstance(p, Handle) for p in new._parts()):
      return Clothes(self.of, new)
    return made(new) if self.of is generic else array_of(new)  # type: ignore[arg-type]


def _set(a: Any, index: Any, value: Any) -> None:
  """What NumPy is asked when a write failed."""
  a = np.zeros(a.shape, a.dtype)
  a[index] = value


def _rebuilt(cls: type, values: np.ndarray) -> Any:
  return cls._of(Memory(Tensor(values)))  # type: ignore[attr-defined]


# ---------------------------------------------------------------- indices


NUMBERS = frozenset((bool, int, float, complex))
SIMPLE = frozenset((int, type(None), type(...)))


def normal(index: Any) -> tuple[tuple, bool]:
  """(the index as a tuple of ints, slices, None, Ellipsis, tensors and NumPy arrays, whether it makes a view)"""
  given = index if isinstance(index, tuple) else (index,)
  if SIMPLE.issuperset(map(type, given)):
    return given, True
  items = tuple(map(_entry, given))
  arrays = any(isinstance(i, (np.ndarray, list)) or (isinstance(i, Tensor) and i.ndim) for i in items)
  copies = any(isinstance(i, (ndarray, np.ndarray)) for i in given)  # those without axes, too
  return items, not arrays and not copies


def is_mask(index: Any) -> bool:
  """Is it a single mask? A number is put there without asking where it is true."""
  return isinstance(index, (Lazy, np.ndarray)) and index.dtype.kind == "b" and index.ndim > 0


def _entry(i: Any) -> Any:
  if type(i) in SIMPLE:
    return i
  if isinstance(i, slice):
    bounds = (i.start, i.stop, i.step)
    return (
      i
      if SIMPLE.issuperset(map(type, bounds))
      else slice(*(x if x is None else operator.index(x) for x in bounds))
    )
  if isinstance(i, (Lazy, Tensor)) and not i.ndim and not has_values():
    t = i if isinstance(i, Tensor) else i._tensor
    if t.dtype.kind in "iu":
      return t  # another number in each call
  if isinstance(i, Lazy):
    if i.dtype.kind in "iu" and not i.ndim:
      return int(i)
    known = has_values() and (i._memory.values is not None or i._memory.tensor.is_realized)
    return i._host() if known or i.dtype.kind == "b" else i._tensor
  if isinstance(i, (list, tuple, range)):
    return _entry(asarray(i) if _holds_arrays(i) else np.asarray(i, None if len(i) else np.intp))
  if isinstance(i, (bool, np.bool_)):
    return np.asarray(i)
  if isinstance(i, (np.ndarray, np.generic)):
    return int(i) if i.dtype.kind in "iu" and not i.ndim else np.asarray(i)
  return operator.index(i) if hasattr(i, "__index__") else i


def _apart(index: tuple) -> tuple:
  """Beside an array, an int is one, too: it takes part in where the axes of the result stand."""
  if any(getattr(i, "ndim", 0) for i in index):
    return tuple(np.asarray([i]) if type(i) is int else i for i in index)
  return index


# ---------------------------------------------------------------- what other libraries ask


def is_foreign(x: Any) -> bool:
  """Is it, or does it hold, an array of what is no number: objects, text, dates?"""
  if type(x) in (list, tuple):
    return any(map(is_foreign, x))
  return isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind not in "biufc"


def theirs_of(x: Any) -> Any:
  """NumPy's arrays in the place of ours."""
  if isinstance(x, Lazy):
    return x._host()
  return type(x)(map(theirs_of, x)) if type(x) in (list, tuple) else x


def found_or_at_once(room: Any, names: list[str], theirs: Any, method: str, args: Any, kwargs: Any) -> Any:
  """Our function of these names, called; NumPy's or another's of the values, where we have none, or an argument is of
  what we have not."""
  for name in names:
    room = getattr(room, name, None)
  if room is not None and not any(map(is_foreign, (*args, *kwargs.values()))):
    with suppress(NoDType):
      return getattr(room, method)(*args, **kwargs)
  outs = kwargs.pop("out", None) or ()
  outs = outs if isinstance(outs, tuple) else (outs,)
  found = theirs(*map(theirs_of, args), **{k: theirs_of(v) for k, v in kwargs.items()})
  several = found if isinstance(found, tuple) else (found,)
  kept = [stored(o, asarray(x)._tensor) if o is not None else x for o, x in zip(outs, several)]
  return found if not outs else kept[0] if not isinstance(found, tuple) else tuple(kept)


def stored(out: Any, value: Tensor) -> Any:
  """`out=`: an array of ours with another value, or one of NumPy's into which it is computed."""
  if type(out) is tuple and len(out) == 1:  # as ufuncs have it
    (out,) = out
  if isinstance(out, ndarray):
    return out._store(value)
  if not isinstance(out, np.ndarray):
    raise TypeError("return arrays must be of ArrayType")
  np.copyto(out, array_of(value)._host(), casting="unsafe")
  return out


# ---------------------------------------------------------------- arrays from values, and back


def array_of(value: Tensor | np.ndarray) -> ndarray:
  """An array of its own. value: a tensor, or few values that nobody else has."""
  out = object.__new__(ndarray)
  out._memory = memory = Memory(value)
  out._steps, out._seen, memory.owner = (), None, weakref.ref(out)
  return out


def held(a: np.ndarray, is_own: bool = True) -> Tensor | np.ndarray:
  """What an array of ours holds of NumPy's: few values themselves, if nobody else has them."""
  if a.size > limit():
    return Tensor(a)
  fits = is_own and a.base is None and a.dtype.isnative and a.flags.c_contiguous
  return a if fits else a.astype(a.dtype.newbyteorder("="), "C")


def made(value: Tensor | np.ndarray) -> Any:
  """A result: without axes a scalar."""
  return array_of(value) if value.ndim else generic._of(Memory(value))


def stand_in_shape(shape: Any) -> tuple[int, ...]:
  """A shape as a tuple: TypeError and ValueError are NumPy's."""
  sizes = shape if type(shape) is tuple else (shape,)
  if all(type(n) is int and 0 <= n < 1 << 14 for n in sizes) and len(sizes) < 5:
    return sizes  # whose product fits
  if isinstance(shape, (tuple, list)) and any(isinstance(n, Lazy) for n in shape):
    shape = tuple(map(operator.index, shape))
  return np.broadcast_to(np.zeros(()), shape.tolist() if isinstance(shape, Lazy) else shape).shape


def asarray(x: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None,
            like: Any = None) -> Any:  # fmt: skip
  """`numpy.asarray`: an array itself, if it has the type."""
  if isinstance(x, Lazy):
    same = dtype is None or np.dtype(dtype) == x.dtype
    if same and not copy and isinstance(x, ndarray) and device is None:
      return x
    if copy is False and not same:
      raise ValueError("Unable to avoid copy while creating an array as requested.")
    if device is None and (few := at_hand(x)):
      return array_of(np.array(few[0], x.dtype if dtype is None else numpy_type(dtype), order="C"))
    t = x._tensor
  elif isinstance(x, Tensor):
    out = array_of(x if dtype is None else converted(x, dtype))
    out._memory.lend()
    return out if device is None else array_of(out._tensor.to(device))
  elif isinstance(x, (list, tuple)) and _holds_arrays(x):
    parts = [asarray(y) for y in x]
    common = common_type(*parts) if dtype is None else dtype
    first, *rest = (p._tensor.cast(mini_type(common)) for p in parts)
    t = first.stack(*rest)
  else:
    values = np.asarray(x, None if dtype is None else numpy_type(dtype))
    numpy_type(values.dtype)
    out = array_of(held(values, type(x) in (list, tuple, int, float)))
    return out if device is None else array_of(out._tensor.to(device))
  t = t if dtype is None else converted(t, dtype)
  return array_of(t if device is None else t.to(device))


def _holds_arrays(x: Any) -> bool:
  """Is it an array of ours, or does it hold one, at any depth?"""
  return isinstance(x, (Lazy, Tensor)) or (type(x) in (list, tuple) and any(map(_holds_arrays, x)))


def operand(x: Any, dtype: Any = None) -> Tensor:
  """x as a tensor of a type: a Python number is a constant. OverflowError if it does not fit."""
  if isinstance(x, Lazy):
    t = x._tensor
  elif type(x) is complex:
    t = Tensor(np.asarray(x, dtype))
  elif type(x) in (bool, int, float):
    d = np.dtype(dtype if dtype is not None else type(x))
    if d.kind == "c":
      return Tensor(np.asarray(x, d))
    value = np.asarray(x, d) if type(x) is not float or d.kind in "fc" else np.asarray(x).astype(d)
    if d.kind in "iu" and not -SMALL <= value <= SMALL:
      return Tensor(value)
    return Tensor.full((), value.item(), dtype=mini_type(d))
  else:
    t = asarray(x)._tensor
  return t if dtype is None or type_of(t.dtype) == dtype else converted(t, dtype)


def converted(t: Any, dtype: Any) -> Tensor:
  """A tensor in another type: of complex numbers in a real one their real parts."""
  kind = mini_type(dtype)
  return (t.real if t.dtype.kind == "c" and kind.kind not in "cb" else t).cast(kind)
