"""`from mini import numpy as np`: NumPy, lazily.

The names, the rules of types (NEP 50), the errors and the meaning of views are NumPy 2's; what is computed is a graph
of tensors, put off until a value is asked for, and compiled. It is the Python array API standard 2024.12, with `linalg`
and `fft`. docs/numpy.md lists what is computed at once, and what is left out.

>>> from mini import numpy as np
>>> a = np.arange(6).reshape(2, 3)
>>> a[0] += 10
>>> a / 2
array([[5. , 5.5, 6. ],
       [1.5, 2. , 2.5]])
"""

from __future__ import annotations

import sys
from types import SimpleNamespace as _Room
from typing import Any

import numpy as _numpy

if _numpy.lib.NumpyVersion(_numpy.__version__) < "2.1.0":
  raise ImportError(
    f"mini.numpy follows NumPy 2.1 or newer, and this is {_numpy.__version__}: pip install -U numpy"
  )

from mini.numpy import creation, fft, linalg, manipulation, random, searching, statistics, taking, utility  # noqa: F401
from mini.numpy.array import Lazy as _Lazy
from mini.numpy.array import ndarray
from mini.numpy.function import FUNCTIONS as _FUNCTIONS
from mini.numpy.host import HOST as _HOST
from mini.numpy.host import ROOMS as _ROOMS
from mini.numpy.info import __array_namespace_info__ as __array_namespace_info__
from mini.numpy.ufunc import ALIASES as _ALIASES
from mini.numpy.ufunc import ufunc as ufunc
from mini.numpy.utility import evaluate as evaluate

# Types, constants and settings, which are NumPy's own.
_SAME = """
bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 csingle
cdouble byte ubyte short ushort intc uintc
int_ uint intp uintp long ulong longlong ulonglong half single double
number integer signedinteger unsignedinteger inexact floating complexfloating generic
dtype finfo iinfo isdtype issubdtype promote_types can_cast typecodes
e pi euler_gamma inf nan newaxis True_ False_ little_endian
errstate seterr geterr printoptions set_printoptions get_printoptions exceptions s_ index_exp ndindex broadcast_shapes
"""
__array_api_version__ = "2024.12"
__version__ = _numpy.__version__  # of the NumPy whose rules these are


_METHODS = """
all any argmax argmin argpartition argsort choose clip cumprod cumsum diagonal dot max mean min
nonzero prod put ravel repeat reshape round searchsorted squeeze std sum swapaxes take trace transpose var
"""

_here = globals()
_here.update({n: getattr(_numpy, n) for n in _SAME.split() if hasattr(_numpy, n) and n not in _here})
_here.update(_HOST, **_ROOMS)
_here.update(_FUNCTIONS)
_here.update(_ALIASES)
lib = _Room(
  stride_tricks=_Room(
    sliding_window_view=manipulation.sliding_window_view, broadcast_to=manipulation.broadcast_to
  )
)
_here.update(mgrid=creation.mgrid, ogrid=creation.ogrid, r_=creation.r_, c_=creation.c_)


def _methods(cls: type, **methods: Any) -> None:
  for name, f in methods.items():
    setattr(cls, name, f)


_methods(_Lazy, **{name: _here[name] for name in _METHODS.split()})
_methods(_Lazy, astype=taking.cast, flatten=manipulation.flatten)
_conj = lambda self: _ALIASES["conj"](self) if self.dtype.kind == "c" else self
_methods(_Lazy, conj=_conj, conjugate=_conj)
_methods(_Lazy, real=utility.REAL, imag=utility.IMAG)
_methods(
  _Lazy, compress=lambda self, condition, axis=None, out=None: _here["compress"](condition, self, axis)
)
_methods(ndarray, sort=searching.sort_in_place, partition=searching.partition_in_place)


def __getattr__(name: str) -> Any:
  about = "NumPy's is left out: docs/numpy.md says why" if hasattr(_numpy, name) else "and neither has NumPy"
  raise AttributeError(f"mini.numpy has no {name!r}; {about}", name=name, obj=sys.modules[__name__])
