"""`kernel`: a scalar Python function, as it stands, becomes a kernel. What its arguments are is decided here; scalar.py
runs it for all elements at once, and what comes of that is a graph, which the scheduler makes one kernel of.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from mini.extend.indices import Axes, Path
from mini.extend.named import OPERATIONS, named
from mini.extend.scalar import Scalars, Unrolled
from mini.extend.source import KernelError, Source
from mini.ir.sizes import Variable
from mini.tensor import Tensor
from mini.tensor.autograd import custom_gradient, tensors_of
from mini.tensor.data import sizes_of
from mini.tensor.errors import described, fail
from mini.tensor.handle import Handle
from mini.tensor.promotion import broadcast_shape
from mini.types import DTypeError, MiniError, ShapeError, dtypes, promote_types


class Kernel:
  """What `kernel` makes of a function."""

  def __init__(
    self, f: Callable[..., Any], gradient: Callable[..., Any] | None, grid: tuple[int, ...] | None = None
  ):
    self.f, self.gradient, self.grid = f, gradient, grid
    self.source = Source(f)
    OPERATIONS.add(self.source.name)
    update_wrapper(self, f)

  def __repr__(self) -> str:
    return f"<kernel {self.source.name}>"

  def __getitem__(self, grid: Any) -> Kernel:
    """The kernel over a grid of this shape: its first parameters are the indices of an element."""
    return Kernel(self.f, self.gradient, sizes_of(grid if isinstance(grid, tuple) else (grid,)))

  def __call__(self, *args: Any) -> Any:
    inputs = tensors_of(args)
    run = self.run if self.gradient is None else custom_gradient(self.gradient)(self.run)
    return named(self.source.name, run(*args), inputs)

  def run(self, *args: Any) -> Any:
    for n, x in enumerate(args):
      if not isinstance(x, (Handle, bool, int, float)):
        fail(
          DTypeError,
          f"{self.source.name}: argument {n} is {type(x).__name__}: a kernel takes tensors and numbers",
        )
    values = [self.known(x) for x in args]
    indices, given = self.bound(values)
    grid = self.grid if self.grid is not None else tuple(self.size_of(i, given) for i in indices)
    scalars = {n: x for n, x in given.items() if isinstance(x, Tensor) and n not in self.source.arrays}
    shape = self.shape(grid if indices else None, scalars)
    floats = [x.dtype for x in given.values() if isinstance(x, Tensor) and x.dtype.kind == "f"]
    kind = floats[0] if floats else dtypes.default_float
    for d in floats[1:]:
      kind = promote_types(kind, d)
    forced: set[ast.AST] = set()
    while True:
      axes = Axes(shape)
      env: dict[str, Any] = {**given, **dict(zip(indices, reversed(axes.ranges)))}
      scalar = Scalars(self.source, axes, kind, Path(), forced, [0, 0])
      try:
        found = scalar.call(env)
        break
      except Unrolled as e:
        forced.add(e.args[0])
    results = found if isinstance(found, tuple) else (found,)
    tensors = tuple(scalar.tensor(x).expand(shape) for x in results)
    return tensors if isinstance(found, tuple) else tensors[0]

  def known(self, x: Any) -> Any:
    if isinstance(x, Handle) and any(type(n) is Variable for n in x.shape):
      fail(ShapeError, f"{self.source.name}: a kernel needs sizes, x has one that varies", x=x)
    return x

  def bound(self, args: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
    """(the parameters that are indices, what the others are)."""
    params = self.source.params
    defaults = self.f.__defaults__ or ()
    optional = dict(zip(params[len(params) - len(defaults) :], defaults))
    count = len(self.grid) if self.grid is not None else max(0, len(params) - len(optional) - len(args))
    indices, others = params[:count], params[count:]
    if len(args) > len(others) or any(n not in optional for n in others[len(args) :]):
      grid = "" if self.grid is None else f" with {count} indices"
      raise MiniError(
        f"{self.source.name}({', '.join(params)}){grid} takes {len(others)} arguments, not {len(args)}"
      )
    return indices, {**optional, **dict(zip(others, args))}

  def size_of(self, index: str, given: dict[str, Any]) -> int:
    """How far an index goes: as far as the axes that it is an index of."""
    found: dict[int, ast.AST] = {}
    for node in ast.walk(self.source.tree):
      if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        array = given.get(node.value.id)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for axis, part in enumerate(parts):
          if (
            isinstance(part, ast.Name)
            and part.id == index
            and isinstance(array, Tensor)
            and axis < array.ndim
          ):
            found.setdefault(array.shape[axis], node)
    name = self.source.name
    if len(found) > 1:
      (a, first), (b, other), *_ = found.items()
      self.source.fail(
        other,
        f"{name}: {index} goes to {a} in {ast.unparse(first)}, and to {b} in {ast.unparse(other)}: "
        f"say how far, as in {name}[{a}](...)",
      )
    if not found:
      raise KernelError(
        f"{name}: nothing says how far {index} goes\n  {name}[n](...) would: the shape of the result"
      )
    return next(iter(found))

  def shape(self, grid: tuple[int, ...] | None, scalars: dict[str, Tensor]) -> tuple[int, ...]:
    """The shape of the result: the grid, or what the tensors of which it gets elements repeat to."""
    s = broadcast_shape(*(x.shape for x in scalars.values()), *([] if grid is None else [grid]))
    if s is None or (grid is not None and s != grid):
      what = f"do not repeat to {grid}" if grid is not None else "do not repeat to one shape"
      lines = "\n".join(described(n, x) for n, x in scalars.items())
      raise ShapeError(f"{self.source.name}: the tensors that it gets elements of {what}\n{lines}")
    return s


def kernel(f: Callable[..., Any] | None = None, *, gradient: Callable[..., Any] | None = None) -> Any:
  """A scalar Python function becomes a kernel, which computes all elements of a tensor.

  A parameter that the function indexes, as in a[i, j], is an array; any other is an element of a tensor, or a number,
  and the tensors repeat to one shape. The first parameters may be indices: `f[h, w](a)` computes f(i, j, a) for all
  i < h, j < w; `f(a)` does so for all elements of the axes that the indices stand at. In the function may stand
  arithmetic, `if`, `for k in range(...)` with break and continue, return, functions of `math`, and calls of other
  scalar functions. How many steps a loop has at most is known from numbers, shapes and indices. An index that goes
  outside is an IndexError: with its line, where that is known from the ranges, else when it is computed.

  The result has a gradient, that of the operations; gradient: another, as that of `custom_gradient`.

  >>> @mini.kernel
  ... def smooth(i, x):
  ...   if i == 0 or i == len(x) - 1:
  ...     return x[i]
  ...   return (x[i - 1] + 2 * x[i] + x[i + 1]) / 4
  >>> smooth(Tensor([0.0, 4.0, 0.0, 0.0]))
  Tensor([0., 2., 1., 0.])
  """
  if f is None:
    return lambda f: kernel(f, gradient=gradient)
  return Kernel(f, gradient)
