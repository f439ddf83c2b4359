"""`wrap_as_operation`: a function of NumPy arrays in the middle of a graph.

It is a `call` on the host (mini/ir/extern.py), with copies of what it gets and returns where these are elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from mini.engine.device_of import device_of, place
from mini.extend.named import OPERATIONS, named
from mini.ir import graph
from mini.ir.extern import HOST, Extern
from mini.ir.sizes import Variable
from mini.ir.uop import UOp
from mini.tensor.autograd import custom_gradient, mapped, tensors_of
from mini.tensor.handle import Handle, described, fail
from mini.types import BY_NUMPY, DType, DTypeError, MiniError, ShapeError, as_dtype

KEPT = 256  # functions with their other arguments, and shapes that a trial found
Shape = tuple  # of ints


def called(f: Extern, xs: Sequence[UOp], s: Shape, dtype: DType) -> UOp:
  """f of these nodes: computed on the host, and brought to where they are."""
  home = next((p for x in xs if isinstance(p := place(x), str) and p), "") or next(map(device_of, xs))
  home = home if isinstance(home, str) else home[0]
  there = tuple(x if place(x) == HOST else graph.copy(x, HOST) for x in xs)
  out = graph.call(f, there, s, dtype)
  return out if home == HOST else graph.copy(out, home)


class Wrapped:
  """What `wrap_as_operation` makes of a function."""

  def __init__(
    self, f: Callable[..., Any], shape: Any, dtype: Any, gradient: Callable[..., Any] | None, name: str
  ):
    self.f, self.shape, self.name = f, shape, name
    OPERATIONS.add(name)
    self.dtype = None if dtype is None else as_dtype(dtype)
    self.functions: dict[Any, tuple[Extern, dict[Any, tuple[Shape, DType]]]] = {}
    self.lock = threading.Lock()
    self.compute = self.node if gradient is None else custom_gradient(gradient)(self.node)
    update_wrapper(self, f)

  def __repr__(self) -> str:
    return f"<operation {self.name}>"

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    inputs = tensors_of((args, kwargs))
    if not inputs:
      fail(MiniError, f"{self.name}: none of its arguments is a tensor", "call the NumPy function itself")
    return named(self.name, self.compute(*args, **kwargs), inputs)

  def node(self, *args: Any, **kwargs: Any) -> Any:
    inputs = tensors_of((args, kwargs))
    for t in inputs:
      if any(type(n) is Variable for n in t.shape):
        fail(ShapeError, f"{self.name}: a function of NumPy's needs sizes, x has one that varies", x=t)
    f, known = self.function(args, kwargs)
    kinds = tuple((t.dtype, t.shape) for t in inputs)
    found = known.get(kinds)
    if found is None:
      found = self.kind(f, inputs)
      if len(known) < KEPT:
        known[kinds] = found
    return Handle._new(called(f, [graph.detach(t._node) for t in inputs], *found))

  def function(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Extern, dict[Any, Any]]:
    """The function of the tensors alone, one for each set of the other arguments."""
    tree = mapped(lambda t: HOLE, (args, kwargs))
    key = key_of(tree)
    try:
      hash(key)
    except TypeError:  # an array among them, say: nothing tells it from its like
      return Extern(self.name, Filled(self.f, tree)), {}
    with self.lock:
      if key not in self.functions:
        while len(self.functions) >= KEPT:
          self.functions.pop(next(iter(self.functions)))
        self.functions[key] = Extern(self.name, Filled(self.f, tree)), {}
      return self.functions[key]

  def kind(self, f: Extern, inputs: Sequence[Handle]) -> tuple[Shape, DType]:
    """The shape and type of the result: as was said, or what a trial on zeros finds."""
    shapes = [t.shape for t in inputs]
    if self.shape is not None:
      s = self.shape(*shapes) if callable(self.shape) else self.shape
      return tuple(s), self.dtype or inputs[0].dtype
    zeros = [np.broadcast_to(np.zeros((), t.dtype.np), t.shape) for t in inputs]
    try:
      out = f.f(*zeros)
    except Exception as e:
      lines = "\n".join(described(n, t) for n, t in zip("abcdefgh", inputs))
      raise MiniError(
        f"{self.name}: a trial on zeros, to find the shape of its result, raised {type(e).__name__}: {e}\n{lines}\n"
        "  wrap_as_operation(f, shape=..., dtype=...) needs no trial"
      ) from e
    array = np.asarray(out)
    if isinstance(out, (tuple, list)) or array.dtype not in BY_NUMPY:
      what = f"a {type(out).__name__}" if isinstance(out, (tuple, list)) else f"an array of {array.dtype}"
      fail(DTypeError, f"{self.name} returned {what}: an operation returns one array of numbers")
    if self.dtype is not None and self.dtype.np != array.dtype:
      fail(DTypeError, f"{self.name} returned an array of {array.dtype}, and dtype is {self.dtype.name}")
    return array.shape, self.dtype or BY_NUMPY[array.dtype]


HOLE = object()  # where a tensor stands among the arguments


class Filled:
  """f(*args, **kwargs), of arrays in the place of the tensors."""

  def __init__(self, f: Callable[..., Any], tree: Any):
    self.f, self.tree = f, tree

  def __call__(self, *arrays: np.ndarray) -> Any:
    rest = iter(arrays)
    args, kwargs = filled(self.tree, rest)
    return self.f(*args, **kwargs)


def filled(tree: Any, rest: Any) -> Any:
  if tree is HOLE or hasattr(type(tree), "_mapped"):  # an array of mini.numpy, a tensor with names
    return next(rest)
  if isinstance(tree, dict):
    return {k: filled(v, rest) for k, v in tree.items()}
  return type(tree)(filled(v, rest) for v in tree) if type(tree) in (list, tuple) else tree


def key_of(tree: Any) -> Any:
  """What tells these arguments from others."""
  if isinstance(tree, dict):
    return dict, tuple((k, key_of(v)) for k, v in tree.items())
  if type(tree) in (list, tuple):
    return type(tree), tuple(map(key_of, tree))
  return type(tree), repr(tree) if isinstance(tree, float) else tree  # 0.0 and -0.0 are equal, and differ


def wrap_as_operation(
  f: Callable[..., Any] | None = None,
  *,
  shape: Any = None,
  dtype: Any = None,
  gradient: Callable[..., Any] | None = None,
  name: str = "",
) -> Any:
  """A function of NumPy arrays as an operation on tensors: it is called when the result is computed, also in the middle
  of a graph and of a jitted function, on every device.

  For each tensor among its arguments f gets an array, which it cannot write, and all else as it is; it returns one
  array. shape: that of the result, or a function of the shapes of the tensors; without it, f is tried on zeros once for
  each set of shapes. dtype: that of the result; with a shape, that of the first tensor if it is left out. gradient: as
  that of `custom_gradient`; without one, no gradient passes. f depends on nothing but its arguments, and computes no
  tensors. ShapeError if it returns something else than was said or found.

  >>> @mini.wrap_as_operation
  ... def descending(x):
  ...   return np.sort(x)[::-1]
  >>> (descending(Tensor([1.0, 3.0, 2.0]) * 2) + 1).tolist()
  [7.0, 5.0, 3.0]
  """
  if f is None:
    return lambda f: wrap_as_operation(f, shape=shape, dtype=dtype, gradient=gradient, name=name)
  if not callable(f):
    fail(MiniError, f"wrap_as_operation: {f!r} is no function")
  return Wrapped(f, shape, dtype, gradient, name or getattr(f, "__name__", "f"))
