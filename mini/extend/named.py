"""`op`: a function of tensors becomes one named node of the graph.

What it is made of stands beneath, and is fused as if the name were not there; who looks at the graph (walk.py) sees the
name, and what the result was called.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, update_wrapper
from itertools import chain, repeat
from types import CodeType
from typing import Any, NamedTuple

from mini.engine.device_of import device_of
from mini.gradient_rules import with_gradient
from mini.ir.uop import UOp
from mini.tensor.autograd import custom_gradient, rebuilt, tensors_of
from mini.tensor.handle import Handle, fail
from mini.tensor.trace import local
from mini.types import MiniError

OPERATIONS: set[str] = (
  set()
)  # the names of all that were made here: of `op`, `kernel` and `wrap_as_operation`
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Named(NamedTuple):
  """What the memo of a tag may hold: the operation that its value is the result of."""

  op: str
  variable: str  # that the result was bound to; "" if to none
  inputs: tuple[UOp, ...]

  def __str__(self) -> str:
    return f"{self.variable} = {self.op}" if self.variable else self.op


def named(op: str, result: Any, inputs: Sequence[Handle]) -> Any:
  """The tensors of a result, as results of this operation of these inputs."""
  found = tensors_of(result)
  nodes = tuple(t._node for t in inputs)
  marked = []
  for t, variable in zip(found, variables(len(found))):
    u = with_gradient(
      t._node, lambda g, out, x: (g,), t._node
    )  # a node that is nobody else's, and passes all on
    u.memo["named"] = Named(op, variable, nodes)
    if t._node not in nodes:  # or it would hold itself
      t._node.memo.setdefault("labels", {})[op] = u.memo["named"]  # for programs, where marks are gone
    marked.append(Handle._new(u))
  return rebuilt(result, marked)


def variables(count: int) -> Iterator[str]:
  """The variables that the user's call is bound to: those of `a, b = f(x)`, or that of `y = f(x)`. Then "" for ever."""
  frame = sys._getframe(1)
  while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
    frame = frame.f_back
  targets = _targets(frame.f_code, frame.f_lasti)
  return chain(targets if len(targets) == count else (), repeat(""))


@lru_cache(4096)
def _targets(code: CodeType, at: int) -> tuple[str, ...]:
  """The names that what the instruction at this offset leaves is stored in, by those that follow."""
  following = (
    i for i in dis.get_instructions(code) if i.offset > at and i.opname not in ("CACHE", "COPY", "DUP_TOP")
  )
  count = 1
  found: list[str] = []
  for i in following:
    if i.opname == "UNPACK_SEQUENCE" and not found:
      count = i.arg or 0
    elif i.opname.startswith("STORE_") and isinstance(
      i.argval, (str, tuple)
    ):  # from 3.13 on two of them may be one
      found += [i.argval] if isinstance(i.argval, str) else list(i.argval)
    else:
      break
    if len(found) >= count:
      return tuple(map(str, found[:count]))
  return ()


class Operation:
  """What `op` makes of a function."""

  def __init__(self, f: Callable[..., Any], name: str, gradient: Callable[..., Any] | None):
    self.f, self.name = f, name
    OPERATIONS.add(name)
    self._gradient = gradient
    self._lowerings: dict[str, Callable[..., Any]] = {}
    self._replaced: ContextVar[Callable[..., Any] | None] = ContextVar(name, default=None)
    update_wrapper(self, f)

  def __repr__(self) -> str:
    return f"<operation {self.name}>"

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    inputs = tensors_of((args, kwargs))
    body = self.body(inputs)
    if local.current is not None:  # a routine was traced with this body, and is good as long as it is the one
      local.current.relies(lambda: self._replaced.get())
    if self._gradient is not None:
      body = custom_gradient(self._gradient)(body)
    return named(self.name, body(*args, **kwargs), inputs)

  def body(self, inputs: Sequence[Handle]) -> Callable[..., Any]:
    """What computes it now, for these inputs: a replacement, the lowering for their device, or the function itself."""
    replacement = self._replaced.get()
    if replacement is not None:
      return replacement
    homes = {device_of(t._node) for t in inputs} if self._lowerings else set()
    kinds = {home.partition(":")[0] for home in homes if isinstance(home, str)}
    return self._lowerings.get(kinds.pop(), self.f) if len(kinds) == 1 else self.f

  def lowering(self, *devices: str) -> Callable[[Callable[..., Any]], Operation]:
    """A decorator: a function that computes this operation where its inputs are on one of these kinds of device.

    >>> @mini.op
    ... def softplus(x):
    ...   return (x.exp() + 1).log()
    >>> @softplus.lowering("CUDA", "METAL")
    ... def _(x):
    ...   return x.maximum(0) + ((-x.abs()).exp() + 1).log()
    """

    def decorate(f: Callable[..., Any]) -> Operation:
      self._lowerings.update(dict.fromkeys(devices, f))
      return self

    return decorate

  @contextmanager
  def replaced(self, by: Callable[..., Any]) -> Iterator[None]:
    """A block in which calls of this operation, in this thread, are computed by another function. It keeps its name
    and its gradient.

    >>> @mini.op
    ... def twice(x):
    ...   return x * 2
    >>> with twice.replaced(by=lambda x: x + x + 1):
    ...   twice(Tensor([3.0])).item()
    7.0
    """
    token = self._replaced.set(by)
    try:
      yield
    finally:
      self._replaced.reset(token)


def op(
  f: Callable[..., Any] | None = None, *, name: str = "", gradient: Callable[..., Any] | None = None
) -> Any:
  """A function of tensors as one named node of the graph.

  Its result is what f returns, a tensor or lists, tuples and dicts of them, fused with what is around it as if f had
  been called. `inspect`, `visualize` and `walk` show one node, called as f or `name`, with the tensors among the
  arguments as its inputs; a result is called as the variable that it is bound to. gradient: a function, as that of
  `custom_gradient`. `.lowering(device)` gives another body for a kind of device, `.replaced(by=g)` for a block.

  >>> @mini.op
  ... def softplus(x):
  ...   return (x.exp() + 1).log()
  >>> x = Tensor([0.0, 1.0])
  >>> y = softplus(x)
  >>> print(mini.inspect(y * 2))
  %0 = buffer        : f32[2]  8 bytes
  %y = softplus %0   : f32[2]  8 bytes, 2 operations
  %2 = 2.0           : f32[]   4 bytes
  %3 = mul %y, %2    : f32[2]  8 bytes, 2 operations
  """
  if f is None:
    return lambda f: op(f, name=name, gradient=gradient)
  if not callable(f):
    fail(MiniError, f"op: {f!r} is no function")
  return Operation(f, name or getattr(f, "__name__", "op"), gradient)
