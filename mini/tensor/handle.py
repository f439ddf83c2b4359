"""The handle of a tensor: a graph node, where it was made, and whether gradients pass to it.

A Tensor is lazy: operations build nodes (mini/ir/graph.py), `realize` computes them (mini/engine). Nodes are values:
what looks like a mutation (`assign`, `t[i] = v`, `+=`) gives the handle another node, and the handles that share its
memory theirs (views.py).
The operations are in the other files of this package, a family each; every family is a class that builds on the one
before, in the order that __init__.py tells. What a user hands in is in data.py, what operands promote to in
promotion.py, errors in errors.py. A complex tensor has two nodes: its handle is in complex_handle.py.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import mini.ir.composites  # noqa: F401  (its rows join OPS)
from mini.changes import all_or_nothing
from mini.engine.device_of import device_of, place
from mini.engine.dynamic_shapes import is_sized
from mini.engine.sharded import memory
from mini.gradient_rules import constant_in, needs, primitive
from mini.ir import graph
from mini.ir.ops import OPS
from mini.ir.sizes import Variable
from mini.ir.uop import UOp
from mini.tensor.data import (
  DeviceName,
  Number,
  array_of,
  complex_numbers,
  default_device,
  device_named,
  is_complex,
  with_type,
)
from mini.tensor.errors import checked, described, fail, user_line
from mini.tensor.realize_group import company, named, updated
from mini.tensor.store import store_through
from mini.tensor.trace import Tracer, local
from mini.tensor.views import (
  STEPS,
  How,
  Steps,
  apart,
  become,
  change,
  check_writable,
  derive,
  let_go,
  nodes_of,
  root_of,
  share,
  write,
)
from mini.types import CATEGORY, AxisError, DType, DTypeError, MiniError, ShapeError, Size, as_dtype

if TYPE_CHECKING:
  from mini.tensor import Tensor


def tagged(handle: Handle, u: UOp) -> UOp:
  """u as the node of a leaf that gradients are taken of."""
  tag = graph.tag(u)
  tag.memo["owner"] = weakref.ref(handle)
  if handle._hooks is not None:
    tag.memo["hooks"] = handle._hooks
  return tag


def untagged(u: UOp) -> UOp:
  while u.op == "tag":
    u = u.src[0]
  return u


def on_device(u: UOp, device: str) -> UOp:
  """u, or a copy of it, on the device."""
  return u if device_of(u) == device else graph.copy(u, device)


class Handle:
  """What every tensor has: a node, a type, a shape, values. Users see it as `Tensor`."""

  __array_priority__ = 1000  # so that array + tensor is a tensor
  _final: type[Tensor]  # the Tensor class, set where that is defined
  _uop: UOp
  _grad: Tensor | None = None
  _grad_dtype: DType | None = None  # of a leaf: that of its gradient, if it is not its own
  _where: tuple[str, int]
  _losses: tuple[weakref.ref, ...] = ()  # of a gradient: the losses that it came from
  _hooks: dict[Any, Callable[[UOp], UOp]] | None = None  # of a leaf: what its gradient goes through
  _trace: Tracer | None = None  # the trace in which it was made
  _base: Handle | weakref.ref[Handle] | None = (
    None  # of a view: what it is a view of; weak at most where it is the only one
  )
  _how: How = None  # the steps from there
  _strides: tuple[int, ...] | None = None  # of a view: those that stay when its base goes
  _views: list[weakref.ref[Handle]] | None = None  # those of this one
  _spent: bool = False  # backward() has been called: a realize may drop the graph
  _complex: bool = False  # is it two real tensors in the place of a node (complex_handle.py)?

  __hash__ = object.__hash__

  def __init__(self, data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False):
    kind = as_dtype(dtype) if dtype is not None else None
    device = None if device is None else device_named(device)
    if is_complex(data) or (kind is not None and kind.kind == "c"):
      self._become_complex(data, kind, device, requires_grad)
      return
    if isinstance(data, Handle):
      node = graph.cast(data._node, kind or data.dtype)
    elif isinstance(data, UOp):
      node = data
    elif type(data) is Variable:
      node = data.node
    else:
      array, kind = array_of(data, kind)
      if kind.kind == "c":
        self._become_complex(array, kind, device, requires_grad)
        return
      node = graph.buffer(memory(array, kind, device or default_device()), array.shape, kind)
    if device is not None:
      node = on_device(node, device)
    self._settle(node, user_line())
    if requires_grad:
      self.requires_grad_()

  def _become_complex(self, data: Any, dtype: DType | None, device: Any, requires_grad: bool) -> None:
    """What a list holds is known when it has been read; then this is a handle of the other kind."""
    self.__class__ = complex_numbers().ComplexTensor  # type: ignore[assignment]
    self.__init__(data, dtype, device, requires_grad)  # type: ignore[misc]

  def _parts(self) -> tuple[Tensor, ...]:
    """The tensors that have its nodes: itself, or those of its real and imaginary part."""
    return (self,)  # type: ignore[return-value]

  def _mapped(self, f: Callable[[Any], Any]) -> Any:
    """f of each of its `_parts()`, put together as they are here."""
    return f(self)

  def _settle(self, node: UOp, where: tuple[str, int]) -> None:
    if "place" not in node.memo:
      checked(node)
    self._uop, self._where = node, where
    if local.current is not None:
      self._trace = local.current
      return
    node = named(node)
    if node.op != "buffer":
      ref, known = (weakref.ref(self),), node.memo.get("handle")
      node.memo["handle"] = (*[r for r in known if r() is not None][:1], *ref) if known else ref
      for s in node.src if node.op == "cat" else ():
        named(s).memo["joined"] = ref[0]

  @staticmethod
  def _new(node: UOp) -> Tensor:
    """A handle of a node: what every operation returns."""
    t = object.__new__(Handle._final)
    if not local.gradients and needs(node):
      node = graph.detach(node)
    t._settle(node, user_line())
    return t

  @staticmethod
  def _at(node: UOp, where: tuple[str, int]) -> Tensor:
    """A handle of a node, made at a line that is known."""
    t = object.__new__(Handle._final)
    t._settle(node, where)
    return t

  def _view(self, *steps: tuple[str, Any]) -> Tensor:
    """A view of this tensor (views.py)."""
    u = self._node
    for kind, arg in steps:
      u = STEPS[kind].down(u, arg)
    return self._shared(u, steps)

  def _shared(self, u: UOp, steps: Steps) -> Tensor:
    """A view of this tensor, whose node is known."""
    t = self._new(u)
    share(t, self, steps if t._uop is u else (*steps, ("detached", None)))
    return t

  # ---------------------------------------------------------------- the node

  @property
  def uop(self) -> UOp:
    """The graph node (mini/ir/graph.py), made of primitive operations."""
    return primitive(self._node)

  @property
  def _node(self) -> UOp:
    """The node as methods made it, with `invoke` for what several operations make (mini/ir/inline.py)."""
    if local.current is not None:
      local.current.read(self)
    elif self._trace is not None:
      self._trace.escaped(self)
    return self._uop

  @_node.setter
  def _node(self, node: UOp) -> None:
    if "place" not in node.memo:
      checked(node)
    if local.current is not None:
      local.current.rebind(self)
    self._uop = node

  @property
  def grad(self) -> Tensor | None:
    """What backward() has accumulated."""
    if local.current is not None:
      local.current.gradient(self, looks=True)
    return self._grad

  @grad.setter
  def grad(self, value: Tensor | None) -> None:
    if local.current is not None:
      local.current.gradient(self, looks=False)
    self._grad = value

  @property
  def made(self) -> str:
    """The user's line that made this tensor: "train.py:12"."""
    file, line = self._where
    near = os.path.relpath(file) if os.path.isabs(file) and file.startswith(os.getcwd() + os.sep) else file
    return f"{near}:{line}"

  # ---------------------------------------------------------------- what it is

  @property
  def shape(self) -> Size:
    """The sizes of its axes, a tuple; `x.shape.numel()` is their product.

    >>> Tensor([[1, 2, 3]]).shape
    (1, 3)
    """
    memo = self._uop.memo
    return memo.get("size") or memo.setdefault("size", Size(graph.shape(self._uop)))

  @property
  def dtype(self) -> DType:
    """The type of its elements."""
    return self._uop.dtype

  @property
  def device(self) -> DeviceName:
    """The name of the device that it is on, or, if nothing of it is in memory yet, on which it would be computed; of a
    tensor on several (`shard`), their names. `x.device.type` is "cpu", "cuda", ..."""
    return with_type(device_of(self._uop))

  @property
  def ndim(self) -> int:
    """The number of axes; `dim()` is the same."""
    return len(self.shape)

  @property
  def nbytes(self) -> int:
    """The size of its elements in memory."""
    return self.numel() * self.dtype.itemsize

  def dim(self) -> int:
    """The number of axes."""
    return len(self.shape)

  def numel(self) -> int:
    """The number of elements.

    >>> Tensor.zeros(2, 3).numel()
    6
    """
    return prod(self.shape)

  def __len__(self) -> int:
    if not self.shape:
      fail(ShapeError, "len(x): a 0-d tensor has no length", x=self)
    return self.shape[0]

  # ---------------------------------------------------------------- memory

  def realize(self, *others: Handle) -> Tensor:
    """Compute this tensor, and `others` with it, now and together.

    The gradients of a loss keep it in mind: where a parameter is realized, so is the loss of its gradient.
    """
    tensors: list[Handle] = [self]
    if others or self._complex:
      tensors = [p for t in (self, *others) for p in t._parts()]
    Handle._compute(tensors)
    return self  # type: ignore[return-value]

  @staticmethod
  def _compute(tensors: list[Handle], gradients: bool = True) -> None:
    """What `realize` does. gradients: those that are needed come into memory, with those of the same `backward()`."""
    if local.current is not None:
      local.current.realize(tensors)
      return
    for t in tensors:
      if t._trace is not None:
        t._trace.escaped(t)
    tensors += company(tensors, gradients)
    # what else has a graph, or none is needed
    tensors = [t for t in dict.fromkeys(tensors) if t._uop.op != "buffer"]
    pending = [t for t in tensors if not t.is_realized]
    nodes = list(dict.fromkeys([untagged(t._uop) for t in pending]))
    found: dict[UOp, UOp] = {}
    if nodes:
      from mini.engine.realize import realize  # with what it needs, a third of `import mini`

      try:
        found.update(zip(nodes, realize(nodes)))
        for node, leaf in found.items():
          if place(node):
            node.memo["leaf"] = leaf
      except AxisError as e:
        raise AxisError("\n".join([str(e), *(described("in", t) for t in pending[:3])])) from None
    for t in tensors:
      t._keep_leaf(found)

  def _leaf(self) -> UOp | None:
    node = untagged(self._uop)
    return node if node.op == "buffer" else node.memo.get("leaf")

  @property
  def is_realized(self) -> bool:
    """Are the values in memory?"""
    return self._is_part() or self._leaf() is not None

  def _is_state(self) -> bool:
    """Is it to be computed, and no step on the way of a gradient?"""
    return not self.is_realized and not is_sized(self._uop) and (self._is_own_tag() or not needs(self._uop))

  def _is_part(self) -> bool:
    """Is this a parameter that lies, with others, in one flat buffer (mini/nn/optimizer.py)? There it stays."""
    if self._uop.op != "tag":
      return False
    node = untagged(self._uop)
    while node.op in ("reshape", "shrink"):
      node = node.src[0]
    return node.op == "buffer" and self._is_own_tag()

  def _keep_leaf(self, found: dict[UOp, UOp]) -> None:
    """Forget the graph, unless gradients will pass through it. found: leaves of what was computed just now."""
    if self._is_part():
      return
    leaf = found.get(untagged(self._uop)) or self._leaf()
    assert leaf is not None
    if self._is_own_tag():
      if self._uop.src[0] is not leaf:
        self._tag(leaf)
    elif self._uop is not leaf and (self._spent or not needs(self._uop)):
      self._uop = leaf
    if self._base is not None:
      let_go(self)

  # ---------------------------------------------------------------- rebinding

  def assign(self, x: Any) -> Tensor:
    """Give this handle the value of x, which has the same shape; x is cast to this type and copied to this device.

    A leaf that requires a gradient stays one: no gradient passes to x.

    >>> t = Tensor([1.0, 2.0])
    >>> t.assign(t * 2).tolist()
    [2.0, 4.0]
    """
    value = x if isinstance(x, Handle) else Handle._final(x, dtype=self.dtype, device=self.device)
    if value.shape != self.shape:
      fail(ShapeError, f"a.assign(b): a has shape {self.shape}, b has {value.shape}", a=self, b=value)
    return self._bind(on_device(graph.cast(value._node, self.dtype), self.device))

  def _bind(self, node: UOp) -> Tensor:
    """Give this tensor a value, and what shares its memory its part of it."""
    if self._base is not None or self._views:
      return all_or_nothing(nodes_of([self]), lambda: self._bind_all(node))
    return self._bind_all(node)

  def _bind_all(self, node: UOp) -> Tensor:
    before, base = self._uop, root_of(self)
    if base is None:
      change(self, node, local.gradients)
      derive(self)
    else:
      write(self, base, node)
      updated(base, before)
    updated(self, before)
    return self  # type: ignore[return-value]

  def _set(self, node: UOp) -> None:
    """Give this handle a node; a leaf that requires a gradient stays one."""
    if self._is_own_tag():
      self._tag(graph.detach(node) if needs(node) else node)
    else:
      self._node = node

  def replace(self, x: Tensor) -> Tensor:
    """Give this handle the value of x, whatever its shape, type and device. Views of it stay what they are."""
    apart(self)
    self._node = x._node
    return self  # type: ignore[return-value]

  def _update(self, value: Handle, what: str, shaped: bool = True) -> Tensor:
    """What is done in place: the handle is bound to the new value, of the same type and, if shaped, shape."""
    check_writable(self, what)
    if shaped and value.shape != self.shape:
      fail(ShapeError, f"{what}: the result has shape {value.shape} and does not fit into a", a=self)
    if CATEGORY[value.dtype.kind] > CATEGORY[self.dtype.kind]:
      fail(
        DTypeError,
        f"{what}: the result is {value.dtype.name} and cannot be kept in a, which is {self.dtype.name}",
        a=self,
      )
    if not shaped:
      become(self, value)
      return self  # type: ignore[return-value]
    if store_through(self, value):
      return self  # type: ignore[return-value]
    return self._bind(graph.cast(value._node, self.dtype))

  # ---------------------------------------------------------------- gradients: what a handle knows of them

  def _is_own_tag(self) -> bool:
    owner = self._uop.memo.get("owner") if self._uop.op == "tag" else None
    return owner is not None and owner() is self

  def _tag(self, node: UOp) -> None:
    """Make this handle a leaf that gradients are taken of."""
    self._node = tagged(self, node)

  @property
  def requires_grad(self) -> bool:
    """Is a gradient passed to this tensor? True for a leaf that asked for it, and for what depends on one."""
    return needs(self._uop)

  @requires_grad.setter
  def requires_grad(self, on: bool) -> None:
    self.requires_grad_(on)

  @property
  def is_leaf(self) -> bool:
    """Does it stand at the beginning of a graph, as far as gradients are concerned?"""
    return self._is_own_tag() or not needs(self._uop)

  def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    """Make this a leaf whose gradient backward() accumulates in `.grad`; or no longer.

    DTypeError if it is not of a float type.

    >>> x = Tensor([1.0, 2.0]).requires_grad_()
    >>> (x * x).sum().backward()
    >>> x.grad
    Tensor([2., 4.])
    """
    if requires_grad and self.dtype.kind != "f":
      fail(
        DTypeError, f"requires_grad: only float tensors have gradients, this one is {self.dtype.name}", x=self
      )
    if requires_grad and not needs(self._uop):
      self._tag(self._uop)
    elif not requires_grad and self._is_own_tag():
      self._node = untagged(self._uop)
    elif not requires_grad and needs(self._uop):
      fail(
        MiniError,
        "requires_grad_(False): x depends on a tensor that requires a gradient; use x.detach()",
        x=self,
      )
    return self  # type: ignore[return-value]

  def detach(self) -> Tensor:
    """The same values, to which no gradient is passed.

    >>> Tensor([1.0], requires_grad=True).detach().requires_grad
    False
    """
    return self._view(("detached", None))

  # ---------------------------------------------------------------- nodes from operands

  def _flat(self, u: UOp) -> Tensor:
    """A value that is computed from this tensor, and to which it passes a gradient of zeros."""
    return self._new(constant_in(u, self._node))

  def _alu(self, op: str, *src: UOp) -> Tensor:
    return self._new(graph.alu(op, *src))

  def _coerced(self, x: Any) -> Any:
    """x as an operand: a tensor or a Python number; NotImplemented if it is neither."""
    if isinstance(x, Handle):
      return x
    if isinstance(x, Number):
      return x.item() if isinstance(x, np.generic) else x
    if type(x) is Variable:
      return Handle._final(x)
    return Handle._final(x, device=self.device) if isinstance(x, np.ndarray) else NotImplemented


assert "tag" in OPS
