"""What a user hands in: numbers, sizes, and the name of a device.

What a tensor makes of them is in handle.py.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from mini.engine.device import Device, canonical
from mini.ir.sizes import Variable, bound
from mini.types import (
  BY_NUMPY,
  HANDED_IN,
  DType,
  DTypeError,
  RangeError,
  ShapeError,
  complex_of,
  dtypes,
  from_storage,
)
from runtime.base import DeviceError

Number = (bool, int, float, complex, np.generic)
Complex = (complex, np.complexfloating)
Operand = Any  # a tensor, a number or an array
Scalar = Any  # a number, or a Variable
Sizes = Any  # an integer, or a sequence of integers
Axes = Any  # None, an int or several
Spans = Any  # for each axis a pair of integers, or None


# fmt: off
# The least numbers that are rounded to infinity.
TOO_LARGE = {dtypes.float16: 65520.0, dtypes.bfloat16: 511 * 2.0**119, dtypes.float32: (2**25 - 1) * 2.0**103,
             dtypes.float64: (2**54 - 1) << 970}
# fmt: on


def fits(x: float, dtype: DType) -> bool:
  """Is a number one of this type: finite, if it is, or cut to an integer? As PyTorch's, a type without a sign takes
  negative numbers, too: -1 is its largest."""
  if dtype.kind == "f":
    return abs(x) < TOO_LARGE[dtype] or not abs(x) < math.inf
  most = 1 << 8 * dtype.itemsize - (dtype.kind == "i")
  return dtype.kind == "b" or -most - (dtype.kind == "i") < x < most


def misfit(x: float, dtype: DType) -> tuple[str, str]:
  """What is wrong with a number that is none of this type, and what would fit."""
  if dtype.kind != "f":
    limits = dtypes.iinfo(dtype)
    return f"{x} is no {dtype.name}: those go from {limits.min} to {limits.max}", "a wider type would fit"
  wider = next((f"; {x} would after .{n}()" for n in ("float", "double") if fits(x, getattr(dtypes, n))), "")
  return (
    f"{x} is no {dtype.name}, whose largest number is {float(dtypes.finfo(dtype).max):g}",
    f'float("{"-" * (x < 0)}inf") would fit{wider}',
  )


def check_numbers(data: Any, array: np.ndarray, dtype: DType) -> None:
  """OverflowError if one of Python's numbers in data, which are in an array, is none of this type."""
  wrong: Any = ()
  if isinstance(data, (int, float)):
    wrong = () if fits(data, dtype) else (data,)
  elif dtype.kind == "f" and dtype is not dtypes.float64:
    size = abs(array.astype(np.float64, copy=False))  # of tensors in a list it is narrower
    wrong = array[(size >= TOO_LARGE[dtype]) & (size < math.inf)].tolist()
  elif dtype.kind in "iu":
    wrong = [x for x in (array.min().item(), array.max().item()) if not fits(x, dtype)]
  if wrong:
    about, way = misfit(wrong[0], dtype)
    raise RangeError(
      f"Tensor: {about}\n  {way}; an array of NumPy's, or .cast(), would be rounded or wrapped"
    )


def array_of(data: Any, dtype: DType | None) -> tuple[np.ndarray, DType]:
  """What a user hands in, as an array and the type that it gets."""
  if dtype is None and type(data) is np.ndarray and data.dtype in BY_NUMPY:
    return data, BY_NUMPY[data.dtype]  # as an argument of a jitted function, again and again
  if isinstance(data, (bytes, bytearray, memoryview)):
    data = np.frombuffer(data, np.uint8)
  python = isinstance(data, (bool, int, float, complex, list, tuple, range))
  typed = isinstance(data, (np.ndarray, np.generic))
  if not typed and not python and not hasattr(data, "__array__"):
    raise DTypeError(
      f"Tensor: no tensor can be made of {type(data).__name__}; give numbers, a (nested) list or an array"
    )
  try:
    # a list with numbers beyond int64 would become one of floats
    exact = dtype is dtypes.uint64 and not typed
    array = np.asarray(data, np.uint64 if exact else None)
  except OverflowError:
    array = np.asarray(data)
  except ValueError:
    raise ShapeError("Tensor: the nested lists do not all have the same length") from None
  if array.dtype.name == "bfloat16":  # of ml_dtypes, as JAX gives it
    bits = array.astype(array.dtype.newbyteorder("=")).view(np.uint16)
    array, dtype = from_storage(bits, dtypes.bfloat16), dtype or (dtypes.bfloat16 if typed else None)
  if array.dtype.kind not in "biufc" and not typed:
    raise DTypeError(
      "Tensor: the list holds what is no number, or an int beyond 64 bits; Tensor.stack joins tensors"
    )
  if array.size == 0 and not typed:
    return array, dtype or dtypes.default_float
  if dtype is not None:
    if array.dtype.kind == "c" and dtype.kind != "c":
      raise DTypeError(f"Tensor: a complex number is no {dtype.name}; its .real would fit")
    if not typed and array.dtype.kind in "iuf" and dtype.kind in "iuf":
      check_numbers(data, array, dtype)
    return array, dtype
  if typed or array.dtype.kind in "u":
    if array.dtype.newbyteorder("=") not in HANDED_IN:
      raise DTypeError(
        f"Tensor: NumPy's {array.dtype} has no counterpart here; there are {', '.join(d.name for d in dtypes.all)}"
      )
    return array, HANDED_IN[array.dtype.newbyteorder("=")]
  found = {
    "b": dtypes.bool,
    "i": dtypes.default_int,
    "f": dtypes.default_float,
    "c": complex_of(dtypes.default_float),
  }
  if array.dtype.kind == "f":
    check_numbers(data, array, dtypes.default_float)
  return array, found[array.dtype.kind]


def is_complex(x: Any) -> bool:
  """Is it a complex tensor or number?"""
  return getattr(x, "_complex", False) or isinstance(x, Complex)


def complex_numbers() -> Any:
  """What there is of complex tensors (complex.py), which is imported when the first of them is met."""
  return import_module("mini.tensor.complex")


def default_device() -> str:
  """The device on which new tensors are made."""
  return Device.DEFAULT


def device_named(name: Any) -> Any:
  """The canonical name of a device that a user asks for, which is opened. DeviceError where it cannot be had. Of
  several names: each of them, and of one in a list itself."""
  if isinstance(name, (tuple, list)):
    names = tuple(map(device_named, name))
    if not names or len(set(names)) < len(names):
      raise DeviceError(f"several devices are different ones, not {', '.join(names) or 'none'}")
    return names if len(names) > 1 else names[0]
  if not isinstance(name, str):
    raise DTypeError(f'a device is named, as in "CPU" or "CUDA:1", not {name!r}')
  return Device[name].name


class DeviceName(str):
  """A device's name, with PyTorch's `.type` and `.index`: "CPU", "CUDA:1".

  >>> mini.device("cuda", 1), Tensor([1]).device.type
  ('CUDA:1', 'cpu')
  """

  __slots__ = ()

  def __new__(cls, name: str, index: int | None = None) -> DeviceName:  # noqa: PYI034  Self is of Python 3.11
    return str.__new__(cls, canonical(name if index is None else f"{name}:{index}"))

  @property
  def type(self) -> str:
    """The kind, in small letters: "cpu", "cuda"."""
    return self.partition(":")[0].lower()

  @property
  def index(self) -> int | None:  # type: ignore[override]
    """Which of its kind; of the CPU's first None."""
    number = self.partition(":")[2]
    return int(number) if number else None if self == "CPU" else 0


NAMES: dict[str, DeviceName] = {}


def with_type(place: Any) -> Any:
  """A device's name as a `DeviceName`, of several each."""
  if type(place) is tuple:
    return tuple(map(with_type, place))
  return NAMES.get(place) or NAMES.setdefault(place, DeviceName(place))


def sizes_of(sizes: tuple[Any, ...]) -> tuple[int, ...]:
  """Sizes given as one sequence or as several ints."""
  if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
    sizes = tuple(sizes[0])
  try:
    return tuple(bound(n) if type(n) is Variable else int(n.__index__()) for n in sizes)
  except AttributeError:
    raise DTypeError(f"sizes are integers, not {', '.join(map(repr, sizes))}") from None
