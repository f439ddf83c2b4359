"""Joining tensors along an axis, and where they are: copies in memory and on devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mini.engine.sharded import sharded
from mini.ir import graph
from mini.tensor.data import complex_numbers, device_named
from mini.tensor.errors import fail, named, spelled
from mini.tensor.handle import Handle, needs, on_device, untagged
from mini.tensor.promotion import result_type
from mini.tensor.split import Cutting
from mini.tensor.trace import local
from mini.types import ArgumentError, DType, DTypeError, ShapeError, as_dtype, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Joining(Cutting):
  """Several tensors as one; one on another device, or on several."""

  # ---------------------------------------------------------------- joining

  @staticmethod
  def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`cat`: another name."""
    return Joining._joined(tensors, dim)

  def cat(self: Any, *others: Any, dim: int = 0) -> Tensor:
    """Tensors one after another along dim, in one memory: `Tensor.cat([a, b], dim=0)` or `a.cat(b)`.

    Types promote. ShapeError if the other axes differ.

    >>> Tensor.cat([Tensor([1]), Tensor([2, 3])])
    Tensor([1, 2, 3])
    """
    tensors, dim = _several(self, others, dim)
    return Joining._joined(tensors, dim)

  @staticmethod
  def _joined(tensors: Sequence[Any], dim: int) -> Tensor:
    if any(t._complex for t in tensors):
      return complex_numbers().cat(tensors, dim)
    names = named(tensors)
    if not tensors:
      fail(ArgumentError, "cat: there are no tensors to be joined")
    kind = _promoted("cat", tensors)
    tensors = [t for t in tensors if t.shape != (0,)] or tensors[:1]  # PyTorch's way to begin with nothing
    first = tensors[0]
    a = first._axis(dim, "cat")
    for t in tensors:
      if not t.shape:
        fail(ShapeError, "cat: a 0-d tensor has no axis to be joined along; Tensor.stack makes one", **names)
      if t.ndim != first.ndim or any(n != m for b, (n, m) in enumerate(zip(first.shape, t.shape)) if b != a):
        fail(
          ShapeError,
          f"cat: {spelled(t)} does not go behind {spelled(first)} along axis {a}: the other axes differ",
          **names,
        )
    return Handle._new(graph.cat(tuple(graph.cast(t._node, kind) for t in tensors), a))

  def stack(self: Any, *others: Any, dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis: `Tensor.stack([a, b], dim=0)` or `a.stack(b)`.

    >>> Tensor.stack([Tensor([1, 2]), Tensor([3, 4])], dim=1)
    Tensor([[1, 3],
            [2, 4]])
    """
    tensors, dim = _several(self, others, dim)
    for t in tensors:
      if t.shape != tensors[0].shape:
        fail(ShapeError, "stack: the shapes differ", **named(tensors))
    return Joining._joined(
      [t.unsqueeze(tensors[0]._axis(dim, "stack", tensors[0].ndim + 1)) for t in tensors], dim
    )

  @staticmethod
  def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid from the vectors of its axes, several or a list of them; indexing "ij" or "xy".

    >>> [t.tolist() for t in Tensor.meshgrid(Tensor([1, 2]), Tensor([3, 4]))]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    axes: Any = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    if wrong := [t for t in axes if t.ndim > 1]:
      fail(ShapeError, "meshgrid: each axis is a vector, and x is none", x=wrong[0])
    if indexing not in ("ij", "xy"):
      fail(ArgumentError, f'meshgrid: indexing is "ij" or "xy", not {indexing!r}')
    shape = tuple(t.numel() for t in axes)
    grids = [
      t.reshape([-1 if b == a else 1 for b in range(len(shape))]).expand(shape) for a, t in enumerate(axes)
    ]
    return tuple(g.transpose(0, 1) for g in grids) if indexing == "xy" and len(grids) > 1 else tuple(grids)

  # ---------------------------------------------------------------- memory

  def contiguous(self) -> Tensor:
    """In memory of its own when it is computed: not recomputed by those who use it. Never a view."""
    return self._new(graph.stage(self._node))

  def clone(self) -> Tensor:
    """The same values, in a memory of their own. (Nothing is copied before one of the two is changed.)"""
    return self._new(self._node)

  def to(self, *args: Any, **kwargs: Any) -> Tensor:
    """On another device, of another type, or both: `x.to("CPU:1")`, `x.to(dtypes.float16)`, `x.to("CPU",
    dtypes.float16)`; `x.to(y)` is y's device and type. Where it is so already: itself or, with copy=True, a clone. A
    gradient goes back the same way. DeviceError where there is no such device.

    >>> Tensor([1.0, 2.0]).to("cpu:1", dtypes.float64).device
    'CPU:1'
    """
    device, kind = wanted_of(args, kwargs)
    if kind is not None and kind.kind == "c":
      return self.cast(kind) if device is None else self.cast(kind).to(device)  # type: ignore[attr-defined]
    u = self._node if kind is None else graph.cast(self._node, kind)
    u = u if device is None else on_device(u, device)
    return self if u is self._uop and not wants_copy(args, kwargs) else self._new(u)  # type: ignore[return-value]

  def shard(self, devices: Sequence[str], axis: int | None = None) -> Tensor:
    """On several devices: a part along axis on each, or, without axis, all of it on each.

    What is computed of it is computed there, and is on these devices again; shapes and values are those of the whole.
    Sizes need not divide: the first parts are larger by 1. Training on several devices is a batch in parts and
    parameters that are whole on each: each device computes its share of the gradients, which are added up once for all
    parameters of an optimizer (n * (n - 1) copies between n devices), and steps for itself. A sum over `axis` copies
    its result; what needs several parts at once (`flip`, `cumsum` or `cat` along axis, a shape in which the parts do
    not lie one behind another) copies all of them to every device first.

    ShapeError if there are more devices than elements along axis.

    >>> x = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).shard(("CPU", "CPU:1"), 0)
    >>> x.shape, x.device, x.sum(0)
    ((3, 2), ('CPU', 'CPU:1'), Tensor([ 9., 12.]))
    """
    names = device_named(tuple(devices))
    if isinstance(names, str):
      return self.to(names)
    a = None if axis is None else self._axis(axis, "shard")
    if a is not None and (not self.shape or self.shape[a] < len(names)):
      few = f"axis {axis} of x has no element for each of {len(names)} devices"
      fail(ShapeError, f"x.shard(devices, {axis}): {few}", x=self)
    leaf = self._leaf()
    if leaf is not None and isinstance(self.device, str) and local.current is None and not needs(self._uop):
      parts = sharded(leaf.arg[0], self.shape, names, a)  # at once: it is sent once, however often it is used
      return self._new(graph.buffer(parts, self.shape, self.dtype))
    return self._new(graph.copy(self._node, names) if a is None else graph.shard(self._node, a, names))

  def shard_(self, devices: Sequence[str], axis: int | None = None) -> Tensor:
    """`shard` of this tensor itself. A leaf that requires a gradient stays one, and its gradient comes there, too.

    >>> w = Tensor([1.0, 2.0], requires_grad=True).shard_(("CPU", "CPU:1"))
    >>> (w * w).sum().backward()
    >>> w.grad.device
    ('CPU', 'CPU:1')
    """
    if not self._is_own_tag():
      return self.replace(self.shard(devices, axis))
    self._tag(self._new(untagged(self._node)).shard(devices, axis)._node)
    return self  # type: ignore[return-value]

  def cpu(self) -> Tensor:
    """On the CPU."""
    return self.to("CPU")

  def cuda(self, index: int = 0) -> Tensor:
    """On a CUDA device, by its number."""
    return self.to(f"CUDA:{index}")


def wanted_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, DType | None]:
  """(device, type) that `to` is asked for, each None if it is not: in any order, or those of a tensor."""
  device, kind = None, None
  for x in (*args, *kwargs.values()):
    if isinstance(x, Handle):
      device, kind = x.device, x.dtype
    elif isinstance(x, (tuple, list)) or (isinstance(x, str) and not hasattr(dtypes, x)):
      device = device_named(x)
    elif x is not None and not isinstance(x, bool):
      kind = as_dtype(x)
  return device, kind


def wants_copy(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
  """Is `to` asked for a copy? By name, or as PyTorch's second switch; the first is non_blocking."""
  return bool(kwargs.get("copy", [x for x in args if isinstance(x, bool)][1:] == [True]))


def _several(first: Any, others: tuple[Any, ...], dim: int) -> tuple[list[Any], int]:
  """`Tensor.cat([a, b], 1)` and `a.cat(b, dim=1)` alike."""
  if isinstance(first, Handle):
    tensors = [first, *(t for o in others for t in (o if isinstance(o, (list, tuple)) else [o]))]
  else:
    tensors = list(first) if isinstance(first, Iterable) else [first]
    dim = others[0] if others else dim
  if not tensors:
    fail(ShapeError, "cat: there are no tensors to join")
  for t in tensors:
    if not isinstance(t, Handle):
      fail(DTypeError, f"cat: {t!r} is no tensor")
  return tensors, dim


def _promoted(what: str, tensors: Sequence[Handle]) -> Any:
  try:
    return result_type(*tensors)
  except DTypeError as e:
    fail(DTypeError, f"{what}: {e}", **named(tensors))
