"""Functions that NumPy computes at once, of the values: their results' shapes depend on values, they are text or files,
or they are so rare that they are not worth code of their own. A row is a name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.numpy.array import Lazy, array_of, asarray, generic, held, stored
from mini.numpy.few import quietly
from mini.numpy.memory import Memory

NAMES = """
unique unique_values union1d intersect1d setdiff1d setxor1d trim_zeros
histogram histogram2d histogramdd histogram_bin_edges bincount
array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific
save savez savez_compressed savetxt load loadtxt genfromtxt fromfile fromstring fromregex
poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots
bartlett blackman hamming hanning kaiser i0
gcd lcm frexp nanargmax nanargmin nanmedian nanpercentile nanquantile nanvar nanstd nancumsum nancumprod
asarray_chkfinite frombuffer fromiter geomspace logspace vander diagflat insert
choose piecewise lexsort digitize unwrap ediff1d
correlate sort_complex real_if_close unique_all unique_counts unique_inverse apply_along_axis apply_over_axes vectorize
diag_indices diag_indices_from tril_indices tril_indices_from triu_indices triu_indices_from mask_indices
ravel_multi_index unravel_index ix_ packbits unpackbits einsum_path
isreal iscomplex nonzero flatnonzero argwhere extract compress
"""


def theirs(x: Any) -> Any:
  """NumPy's arrays in place of ours; a function's, too."""
  if isinstance(x, Lazy):
    return x._host()
  if type(x) in (list, tuple):
    return type(x)(map(theirs, x))
  return (lambda *args: theirs(x(*map(ours, args)))) if callable(x) and not isinstance(x, type) else x


def ours(x: Any) -> Any:
  if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
    return array_of(held(x))
  if isinstance(x, np.generic) and x.dtype.kind in "biufc":
    return generic._of(Memory(held(np.asarray(x))))
  if type(x) in (list, tuple):
    return type(x)(map(ours, x))
  return type(x)(*map(ours, x)) if isinstance(x, tuple) and hasattr(x, "_fields") else x


def at_once(f: Callable[..., Any]) -> Callable[..., Any]:
  def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
    there = {} if out is None else {"out": np.array(out)}
    found = f(*map(theirs, args), **{k: theirs(v) for k, v in kwargs.items()}, **there)
    return ours(found) if out is None else stored(out, asarray(there["out"])._tensor)

  call.__name__ = call.__qualname__ = f.__name__
  call.__doc__ = f"`numpy.{f.__name__}`, at once."
  return call


def computed(f: Callable[..., Any], few: list[Any]) -> Any:
  """What NumPy makes of values that are at hand (few.py)."""
  return ours(quietly(f, *few))


class Room:
  """A namespace of NumPy's, of whose functions all are computed at once."""

  def __init__(self, of: Any):
    self.of = of

  def __getattr__(self, name: str) -> Any:
    found = getattr(self.of, name)
    return Room(found) if inspect.ismodule(found) else at_once(found) if inspect.isroutine(found) else found


ROOMS = {name: Room(getattr(np, name)) for name in ("emath", "polynomial", "testing")}
HOST = {name: at_once(getattr(np, name)) for name in NAMES.split() if hasattr(np, name)}


# What of NumPy's namespaces is not here, and why.
LEFT_OUT = {
  "types without a tensor": """
    object_ str_ bytes_ void character flexible datetime64 timedelta64 longdouble clongdouble float128 complex256
    busday_count busday_offset busdaycalendar is_busday isnat datetime_as_string datetime_data record recarray rec char
    strings ScalarType sctypeDict""",
  "other kinds of arrays": "matrix asmatrix bmat memmap ma poly1d",
  "access to memory": """
    nditer nested_iters flatiter broadcast require isfortran ctypeslib core getbufsize setbufsize""",
  "NumPy's own affairs": """
    mintypecode min_scalar_type typename dtypes typing f2py get_include show_config show_runtime test
    geterrcall seterrcall frompyfunc""",
}
