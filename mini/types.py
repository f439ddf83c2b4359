"""Number types: their names, sizes, NumPy counterparts, and the rules by which two of them promote.

Shapes and errors live here too, because everything above needs them. Nothing here imports anything of mini.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from struct import Struct
from types import SimpleNamespace
from typing import Any

import numpy as np

NumPyType = np.dtype


class Size(tuple):
  """A shape: a tuple of sizes that knows how many elements there are.

  >>> Size((2, 3)).numel()
  6
  """

  __slots__ = ()

  def numel(self) -> int:
    """The number of elements."""
    return prod(self)


class MiniError(Exception):
  """Every error that mini raises on purpose."""


class ArgumentError(MiniError, ValueError, RuntimeError):
  """A value that an argument cannot have. Like the errors below, it is of the classes that NumPy and PyTorch raise."""


class ShapeError(ArgumentError):
  """Shapes, axes or sizes that do not fit."""


class AxisError(ShapeError, IndexError):
  """An axis, or an index along one, that is not there."""


class RangeError(ArgumentError, OverflowError):
  """A number that the type does not hold."""


class DivisionError(MiniError, ZeroDivisionError, RuntimeError):
  """An integer divided by the number 0."""


class DTypeError(MiniError, TypeError, RuntimeError):
  """A number type that the operation does not take."""


@dataclass(frozen=True, eq=False)
class DType:
  """A number type. `short` is its spelling in program text; `kind` is b(ool) i(nt) u(nsigned) f(loat) or x (index);
  or c(omplex): two floats, which no program knows of (mini/tensor/complex.py); or q, of codes (mini/float8.py)."""

  name: str
  short: str
  kind: str
  itemsize: int
  np: NumPyType = field(repr=False)  # how the interpreter and `.numpy()` hold it
  storage: NumPyType = field(repr=False)  # how memory holds it; differs for bfloat16 alone

  def __repr__(self) -> str:
    return f"dtypes.{self.name}"

  @property
  def is_floating_point(self) -> bool:
    """Is it one of the real float types?"""
    return self.kind == "f"

  @property
  def is_complex(self) -> bool:
    """Is it complex?"""
    return self.kind == "c"

  @property
  def is_signed(self) -> bool:
    """Has it negative numbers?"""
    return self.kind in "ifc"

  def __reduce__(self):
    return _by_name, (self.name,)


def _by_name(name: str) -> DType:
  return getattr(dtypes, name)


def _row(
  name: str, short: str, kind: str, itemsize: int, np_name: str | None = None, storage: str | None = None
) -> DType:
  held = np.dtype(np_name or name)
  return DType(name, short, kind, itemsize, held, np.dtype(storage) if storage else held)


class dtypes:
  """The table of number types, PyTorch's aliases, and predicates on them.

  >>> dtypes.promote_types(dtypes.int64, dtypes.float16)
  dtypes.float16
  """

  # fmt: off
  bool     = _row("bool",     "bool", "b", 1)
  int8     = _row("int8",     "i8",   "i", 1)
  int16    = _row("int16",    "i16",  "i", 2)
  int32    = _row("int32",    "i32",  "i", 4)
  int64    = _row("int64",    "i64",  "i", 8)
  uint8    = _row("uint8",    "u8",   "u", 1)
  uint16   = _row("uint16",   "u16",  "u", 2)
  uint32   = _row("uint32",   "u32",  "u", 4)
  uint64   = _row("uint64",   "u64",  "u", 8)
  float16  = _row("float16",  "f16",  "f", 2)
  bfloat16 = _row("bfloat16", "bf16", "f", 2, "float32", "uint16")
  float32  = _row("float32",  "f32",  "f", 4)
  float64  = _row("float64",  "f64",  "f", 8)
  complex64  = _row("complex64",  "c64",  "c", 8)        # a user's tensor of two float32 ones: in no program
  complex128 = _row("complex128", "c128", "c", 16)
  float8_e4m3 = _row("float8_e4m3", "f8e4m3", "q", 1, "uint8")  # names of codes: no tensor has these types
  float8_e5m2 = _row("float8_e5m2", "f8e5m2", "q", 1, "uint8")
  index    = _row("index",    "idx",  "x", 8, "int64")   # loop counters and addresses: never in a user's tensor
  void     = _row("void",     "void", "v", 0, "bool")    # what computes nothing: store, kernel
  # fmt: on
  char, short, int, long = int8, int16, int32, int64
  uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64
  half, float, double = float16, float32, float64
  cfloat, cdouble = complex64, complex128
  default_float, default_int = float32, int64
  all = (bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64)

  @staticmethod
  def is_float(d: DType) -> bool:  # type: ignore[valid-type]
    return d.kind == "f"

  @staticmethod
  def is_int(d: DType) -> bool:  # type: ignore[valid-type]
    return d.kind in "iu"

  @staticmethod
  def promote_types(a: DType, b: DType) -> DType:
    """The smallest type that both fit, as PyTorch's `promote_types` (float16 with bfloat16 gives float32)."""
    return promote_types(a, b)

  @staticmethod
  def result_type(*operands: Any) -> DType:
    """The type that an operation gives of tensors, numbers and types, as PyTorch's `result_type`.

    >>> dtypes.result_type(dtypes.int8, 0.5), dtypes.result_type(dtypes.float16, 2)
    (dtypes.float32, dtypes.float16)
    """
    return import_module("mini.tensor.promotion").result_type(*operands)

  @staticmethod
  def finfo(d: DType) -> Any:
    """Limits of a float type, with NumPy's names (`.eps .max .min .tiny`); bfloat16 is not among NumPy's.

    >>> dtypes.finfo(dtypes.bfloat16).max
    3.3895313892515355e+38
    """
    return BFLOAT16 if d is dtypes.bfloat16 else np.finfo(d.np)

  @staticmethod
  def iinfo(d: DType) -> np.iinfo:
    """Limits of an integer type, with NumPy's names (`.max .min`)."""
    return np.iinfo(d.np)


MOST = 255 * 2.0**120
BFLOAT16 = SimpleNamespace(bits=16, dtype="bfloat16", eps=2.0**-7, max=MOST, min=-MOST, tiny=2.0**-126,
                           smallest_normal=2.0**-126, smallest_subnormal=2.0**-133, resolution=0.01)  # fmt: skip
BY_SHORT = {d.short: d for d in (*dtypes.all, dtypes.index, dtypes.void)}
BY_NUMPY = {d.np: d for d in dtypes.all if d is not dtypes.bfloat16}
HANDED_IN = BY_NUMPY | {d.np: d for d in (dtypes.complex64, dtypes.complex128)}  # what a tensor is made of
CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}  # of kinds: a result is of the highest among its operands


def promote_types(a: DType, b: DType) -> DType:
  if a is b:
    return a
  if "c" in (a.kind, b.kind):
    return complex_of(a if real_of(a) is dtypes.float64 else b)
  if "f" in (a.kind, b.kind):
    if a.kind != b.kind:
      return a if a.kind == "f" else b
    return dtypes.float32 if a.itemsize == b.itemsize else max(a, b, key=lambda d: d.itemsize)
  if a is dtypes.bool or b is dtypes.bool:
    return b if a is dtypes.bool else a
  if a.kind == b.kind:
    return max(a, b, key=lambda d: d.itemsize)
  signed, unsigned = (a, b) if a.kind == "i" else (b, a)
  if signed.itemsize > unsigned.itemsize:
    return signed
  wider = {1: dtypes.int16, 2: dtypes.int32, 4: dtypes.int64}.get(unsigned.itemsize)
  if wider is None:
    raise DTypeError(f"{a.name} and {b.name} have no common integer type; cast one of them")
  return wider


def real_of(d: DType) -> DType:
  """The type of the parts of a complex type; of another type itself."""
  return {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}.get(d, d)


def complex_of(d: DType) -> DType:
  """The complex type whose parts hold numbers of this type: complex128 of float64, complex64 of any other."""
  return dtypes.complex128 if real_of(d) is dtypes.float64 else dtypes.complex64


def set_default_dtype(d: object) -> None:
  """The float type of what is made of Python's floats, and of zeros, ones, ... unless they say otherwise.

  >>> mini.set_default_dtype(dtypes.float64)
  >>> Tensor([1.5]).dtype
  dtypes.float64
  >>> mini.set_default_dtype(dtypes.float32)
  """
  kind = as_dtype(d)
  if kind.kind != "f":
    raise DTypeError(f"set_default_dtype: a float type, not {kind.name}")
  dtypes.default_float = kind


def get_default_dtype() -> DType:
  """What `set_default_dtype` has set: float32 at first."""
  return dtypes.default_float


def as_dtype(d: object) -> DType:
  """A DType from a DType, one of its names (`"float32"`, `"f32"`), or anything that `numpy.dtype` takes."""
  if isinstance(d, str) and isinstance(getattr(dtypes, d, None), DType):
    d = getattr(dtypes, d)
  if isinstance(d, DType):
    if d.kind == "q":
      fit = f"mini.float8.encode(x, dtypes.{d.name}) and mini.quantize(x, dtypes.{d.name})"
      raise DTypeError(f"no tensor is {d.name}: its codes are uint8, and {fit} make them")
    return d
  if isinstance(d, str) and d in BY_SHORT:
    return BY_SHORT[d]
  python = {
    bool: dtypes.bool,
    int: dtypes.default_int,
    float: dtypes.default_float,
    complex: complex_of(dtypes.default_float),
  }
  named = isinstance(d, (str, type, np.dtype))
  try:
    if kind := python.get(d):  # type: ignore[call-overload]
      return kind
    given = np.dtype(d) if named else None  # type: ignore[call-overload]
    return dtypes.bfloat16 if given and given.name == "bfloat16" else HANDED_IN[given]  # type: ignore[index]
  except (TypeError, KeyError):
    asked = repr(d) if named else f"in a {type(d).__name__}"
    raise DTypeError(f"no dtype {asked}; there are {', '.join(x.name for x in dtypes.all)}") from None


def to_bfloat16(x: np.ndarray) -> np.ndarray:
  """float32 or float64 -> the nearest bfloat16 (ties to even), held as float32."""
  with np.errstate(over="ignore"):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
  if x.dtype == np.float64:  # first to the odd one of two neighbours: or it would round twice
    near = bits.view(np.float32).reshape(x.shape)
    odd = (bits - (np.abs(near) > np.abs(x)).reshape(bits.shape)) | np.uint32(1)
    bits = np.where((near != x).reshape(bits.shape), odd, bits).astype(np.uint32)
  rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) & np.uint32(0xFFFF0000)
  kept = np.where(np.isnan(x), bits | np.uint32(0x400000), rounded)
  return kept.astype(np.uint32).view(np.float32).reshape(np.shape(x))


# fmt: off
PACKED = {getattr(dtypes, n): Struct(f).pack for n, f in (("float32", "<f4x"), ("float64", "<d"), ("int32", "<i4x"),
                                                          ("int64", "<q"))}
# fmt: on


def to_storage(x: np.ndarray, d: DType) -> np.ndarray:
  """An array as the memory of a buffer holds it: x itself, if it is so."""
  if d is dtypes.bfloat16:
    return (to_bfloat16(x).view(np.uint32) >> 16).astype(np.uint16)
  if x.dtype == d.storage:
    return x
  with np.errstate(over="ignore"):  # what is beyond the type is infinite
    return np.asarray(x, d.storage)


def packed(x: Any, d: DType) -> bytes:
  """A number as a program takes it."""
  pack = PACKED.get(d)
  return pack(x) if pack else to_storage(np.asarray(x), d).tobytes().ljust(8, b"\0")


def from_storage(x: np.ndarray, d: DType) -> np.ndarray:
  """The inverse of `to_storage`."""
  if d is dtypes.bfloat16:
    return (x.astype(np.uint32) << 16).view(np.float32)
  return x


Shape = tuple  # of ints

__all__ = [
  "BY_SHORT",
  "CATEGORY",
  "HANDED_IN",
  "DType",
  "DTypeError",
  "MiniError",
  "Shape",
  "ShapeError",
  "as_dtype",
  "complex_of",
  "dtypes",
  "from_storage",
  "prod",
  "promote_types",
  "real_of",
  "to_bfloat16",
  "to_storage",
]
