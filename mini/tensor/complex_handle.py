"""The handle of a complex tensor: two real tensors, its real and its imaginary part, in the place of a node.

What a handle has is here - shape, values, other values, gradients -, each from the two parts; what is computed with
complex tensors stands in complex.py. Whoever asks for the node that it has not, such as a real tensor's method that was
given a complex one, gets a DTypeError that says what was called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from mini.changes import all_or_nothing
from mini.ir import graph
from mini.ir.uop import UOp
from mini.tensor import Tensor
from mini.tensor.concat import wanted_of, wants_copy
from mini.tensor.data import DeviceName, array_of, is_complex
from mini.tensor.errors import calls, fail, named, user_line
from mini.tensor.handle import Handle
from mini.tensor.promotion import broadcast_shape, result_type
from mini.tensor.trace import local
from mini.tensor.views import become, check_writable, nodes_of
from mini.types import DType, DTypeError, MiniError, ShapeError, Size, as_dtype, complex_of, dtypes, real_of

Pair = tuple[Any, Any]  # (real part, imaginary part): tensors, or numbers


class Twofold(Tensor):
  """Two parts that are tensors of one type and shape."""

  final: ClassVar[type[Twofold]]  # the class of complex tensors, set where that is defined

  _complex = True
  _re: Tensor
  _im: Tensor

  def __init__(self, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False):
    kind = as_dtype(dtype) if dtype is not None else None
    if kind is not None and kind.kind != "c":
      fail(DTypeError, f"Tensor: a complex number is no {kind.name}", "its .real would fit", x=data)
    if isinstance(data, Handle):
      whole = data.cast(kind or complex_of(data.dtype))  # type: ignore[attr-defined]
      re, im = (p if device is None else p.to(device) for p in whole._parts())
    else:
      array, found = array_of(data, kind)
      part = real_of(found)
      re, im = (Tensor(x.copy(), part, device) for x in (np.real(array), np.imag(array)))
    self._hold(re, im)
    if requires_grad:
      self.requires_grad_()

  def _hold(self, re: Any, im: Any) -> None:
    self._re, self._im, self._where = re, im, user_line()

  # ---------------------------------------------------------------- it has no node

  def _refuse(self) -> NoReturn:
    names = [frame.f_code.co_name.strip("_") for frame in calls()]
    refuse(names[-1], self)

  @property
  def _uop(self) -> UOp:  # type: ignore[override]
    self._refuse()

  @_uop.setter
  def _uop(self, node: UOp) -> None:
    self._refuse()

  uop = _uop  # type: ignore[assignment]

  def _parts(self) -> tuple[Tensor, ...]:
    return self._re, self._im

  def _mapped(self, f: Callable[[Any], Any]) -> Any:
    return held(f(self._re), f(self._im))

  # ---------------------------------------------------------------- what it is

  @property
  def shape(self) -> Size:
    return self._re.shape

  @property
  def dtype(self) -> DType:
    return complex_of(self._re.dtype)

  @property
  def device(self) -> DeviceName:
    return self._re.device

  @property
  def is_realized(self) -> bool:
    return self._re.is_realized and self._im.is_realized

  @property
  def real(self) -> Tensor:
    return self._re._view(("same", None))

  @property
  def imag(self) -> Tensor:
    return self._im._view(("same", None))

  def _values(self, what: str, kept: bool = False) -> np.ndarray:
    if local.current is not None:
      local.current.value(self, what)
    self.realize()
    out = np.empty(self.shape, self.dtype.np)
    out.real, out.imag = self._re.numpy(), self._im.numpy()
    return out

  def __complex__(self) -> complex:
    return self._number("complex(x)")

  def to(self, *args: Any, **kwargs: Any) -> Tensor:
    device, kind = wanted_of(args, kwargs)
    whole = self.clone() if wants_copy(args, kwargs) else self
    whole = whole if kind is None else whole.cast(kind)
    return whole if device is None else whole._mapped(lambda p: p.to(device))

  def cast(self, dtype: Any) -> Tensor:
    kind = as_dtype(dtype)
    if kind is dtypes.bool:
      return self != 0
    if kind.kind != "c":
      warnings.warn("casting complex values to real ones drops the imaginary part", stacklevel=2)
      return self._re.cast(kind).clone()  # of the same type, the cast alone is the real part itself
    return self._mapped(lambda p: p.cast(real_of(kind)))

  # ---------------------------------------------------------------- rebinding

  def assign(self, x: Any) -> Tensor:
    value = x if isinstance(x, Handle) else Tensor(x, device=self.device)
    if value.shape != self.shape:
      fail(ShapeError, f"a.assign(b): a has shape {self.shape}, b has {value.shape}", a=self, b=value)
    return self._rebound(Handle.assign, value.cast(self.dtype)._parts())  # type: ignore[attr-defined]

  def _rebound(self, f: Callable[[Any, Any], object], values: Iterable[Any]) -> Tensor:
    """f of each part and its new value: both change, or none."""
    parts = self._parts()
    all_or_nothing(nodes_of(parts), lambda: list(map(f, parts, values)))
    return self

  def replace(self, x: Tensor) -> Tensor:
    return self._rebound(Handle.replace, x.to(complex_of(x.dtype))._parts())

  def _update(self, value: Handle, what: str, shaped: bool = True) -> Tensor:
    check_writable(self._re, what)
    if shaped and value.shape != self.shape:
      fail(ShapeError, f"{what}: the result has shape {value.shape} and does not fit into a", a=self)
    values = value.cast(self.dtype)._parts()  # type: ignore[attr-defined]
    if shaped:
      return self._rebound(Handle._bind, [v._node for v in values])
    return self._rebound(become, values)

  def __setitem__(self, index: Any, value: Any) -> None:
    check_writable(self._re, "a[i] = b")
    value = value if is_complex(value) or isinstance(value, Handle) else Tensor(value, device=self.device)
    new = [p.clone() for p in self._parts()]
    for own, v in zip(new, pair(value, self._re.dtype)):
      own[index] = v
    self._rebound(Handle._bind, [v._node for v in new])

  # ---------------------------------------------------------------- gradients

  def _is_own_tag(self) -> bool:
    return self._re._is_own_tag()

  @property
  def requires_grad(self) -> bool:
    return self._re.requires_grad or self._im.requires_grad

  @requires_grad.setter
  def requires_grad(self, on: bool) -> None:
    self.requires_grad_(on)

  @property
  def is_leaf(self) -> bool:
    return self._re.is_leaf and self._im.is_leaf

  def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    for p in self._parts():
      p.requires_grad_(requires_grad)
    return self

  @property
  def grad(self) -> Tensor | None:
    found = [p.grad for p in self._parts()]
    if found == [None, None]:
      return None
    return joined(*(p.zeros_like() if g is None else g for p, g in zip(self._parts(), found)))

  @grad.setter
  def grad(self, value: Tensor | None) -> None:
    new = (None, None) if value is None else value.to(self.dtype)._parts()
    for p, g in zip(self._parts(), new):
      p.grad = g

  def backward(self, gradient: Tensor | None = None, *args: Any, **kwargs: Any) -> None:
    if gradient is None:
      fail(
        MiniError,
        "x.backward(): a loss is real, x is complex",
        "give what is passed back, or take the real part",
        x=self,
      )
    if gradient.shape != self.shape:
      fail(
        ShapeError, "x.backward(gradient): the gradient does not have x's shape", x=self, gradient=gradient
      )
    (a, b), (c, d) = self._parts(), gradient.to(self.dtype)._parts()
    total = (a * c.detach()).sum() + (b * d.detach()).sum()
    total.backward(None, *args, **kwargs)
    a._spent = b._spent = total._spent

  def retain_grad(self) -> None:
    for p in self._parts():
      p.retain_grad()

  @property
  def retains_grad(self) -> bool:
    return self._re.retains_grad


# ---------------------------------------------------------------- making them


def held(re: Any, im: Any) -> Any:
  """A handle of two parts, whatever stands for them."""
  z = object.__new__(Twofold.final)
  z._hold(re, im)
  return z


def joined(re: Tensor, im: Tensor) -> Tensor:
  """A handle of two parts of one type, repeated to one shape. Where one requires a gradient, the other has one, too."""
  if re.shape != im.shape:
    shape = broadcast_shape(re.shape, im.shape)
    if shape is None:
      fail(ShapeError, "complex: the shapes of the parts do not repeat to a common one", real=re, imag=im)
    re, im = re.expand(shape).clone(), im.expand(shape).clone()
  if re.requires_grad != im.requires_grad:
    re, im = (p if p.requires_grad else Handle._new(graph.tag(p._node)) for p in (re, im))
  return held(re, im)


def from_real(x: Any, kind: DType) -> Tensor:
  part = x.cast(real_of(kind)).clone()
  return joined(part, part.zeros_like())


def full(size: Any, value: Any, kind: DType, device: Any, requires_grad: bool) -> Tensor:
  value = value.item() if isinstance(value, Tensor) else value
  re, im = (Tensor.full(size, part, real_of(kind), device) for part in (value.real, value.imag))
  z = joined(re, im)
  return z.requires_grad_() if requires_grad else z


def pair(x: Any, kind: DType) -> Pair:
  """The parts of an operand, in this float type; those of numbers as numbers."""
  if not isinstance(x, Handle):
    return x.real, x.imag
  re, im = x._parts() if x._complex else (x, None)
  re = re.cast(kind)  # type: ignore[attr-defined]
  return re, re.zeros_like() if im is None else im.cast(kind)


def of_tensors(what: str, operands: Sequence[Any]) -> list[Pair]:
  """The parts of operands, all as tensors of the type that they promote to, in one shape."""
  kind = real_of(result_type(*operands))
  pairs = [
    pair(x if isinstance(x, Handle) else full((), x, complex_of(kind), None, False), kind) for x in operands
  ]
  shape = broadcast_shape(*(re.shape for re, _ in pairs))
  if shape is None:
    shapes = " and ".join(str(re.shape) for re, _ in pairs)
    fail(ShapeError, f"{what}: the shapes {shapes} do not repeat to a common one", **named(operands))
  return [(re.expand(shape), im.expand(shape)) for re, im in pairs]


def refuse(name: str, *inputs: Any) -> NoReturn:
  kinds = ", ".join(dict.fromkeys(x.dtype.name for x in inputs if isinstance(x, Handle) and x._complex))
  message = f"{name} does not take {kinds or 'complex numbers'}"
  fail(DTypeError, message, "x.real, x.imag and x.abs() are real", **named(inputs))
