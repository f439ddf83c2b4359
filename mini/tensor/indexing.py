"""Indexing: t[...] to get and to set. Gather and scatter are in scattering.py.

Ints, slices with any step, None, Ellipsis, boolean masks and integer tensors, as NumPy and PyTorch have them. What is
basic (ints, slices, None) is views. Integer tensors cost a gather or a scatter; one without axes stands for an int. A
mask asks how many are true, so it is computed at once - but for `t[mask] = number`, which is a select. Setting gives
another value to the tensor, and to what shares its memory (views.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mini.ir import graph
from mini.ir.outside import outside
from mini.ir.sizes import Variable, bound, number, varies
from mini.ir.uop import UOp, const
from mini.tensor.data import Number, is_complex
from mini.tensor.errors import fail, named
from mini.tensor.handle import Handle, on_device
from mini.tensor.promotion import broadcast_shape, constant
from mini.tensor.random import Random
from mini.tensor.store import store
from mini.tensor.views import (
  Cut,
  Steps,
  check_writable,
  cut,
  from_front,
  owner_of,
  put,
  root_of,
  steps_of,
  whole,
)
from mini.types import ArgumentError, AxisError, DTypeError, ShapeError, dtypes, prod

if TYPE_CHECKING:
  from mini.tensor import Tensor


class Plan(NamedTuple):
  """An index, taken apart: first cuts, then a reshape to `shape`, then integer tensors at `axes`."""

  cuts: tuple[Cut, ...]
  shape: tuple[int, ...]
  axes: tuple[int, ...]
  indices: tuple[Handle, ...]
  host: tuple[np.ndarray | None, ...]  # of each index its values, where they came as Python or NumPy data

  def gathered(self) -> tuple[tuple[int, ...], int]:
    """The order of the axes in which those that are indexed stand together, and where: they stay, or go to the front if
    there are others between them. An index without axes, like an int, does not count for that."""
    rest = [a for a in range(len(self.shape)) if a not in self.axes]
    inner = [a for a, i in zip(self.axes, self.indices) if i.ndim] or self.axes
    apart = any(inner[0] < a < inner[-1] for a in rest)
    at = 0 if apart else sum(a < inner[0] for a in rest)
    return (*rest[:at], *self.axes, *rest[at:]), at

  def split(self) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """The sizes before the indexed axes, the number of elements along those, and the sizes behind."""
    order, at = self.gathered()
    moved = tuple(self.shape[a] for a in order)
    return moved[:at], prod(moved[at : at + len(self.axes)]), moved[at + len(self.axes) :]

  def taken(self) -> tuple[int, ...]:
    """The shape of what the index takes."""
    if not self.axes:
      return self.shape
    before, _, after = self.split()
    common = broadcast_shape(*(i.shape for i in self.indices))
    assert common is not None
    return (*before, *common, *after)


INTS = frozenset((int,))


class Flag(NamedTuple):
  """A boolean without axes in an index: a new axis, taken once or not at all."""

  places: np.ndarray


class Indexing(Random):
  """`t[...]`, `t[...] = v`, and the named forms."""

  # ---------------------------------------------------------------- t[index]

  def __getitem__(self, index: Any) -> Tensor:
    plan = self._plan(index)
    u = graph.reshape(cut(self._node, plan.cuts), plan.shape)
    if not plan.axes:
      return self._shared(u, (("cut", plan.cuts), ("shape", plan.shape)))
    if any(i.ndim for i in plan.indices):
      return self._new(_take(u, plan, self._flat_index(plan)))
    return self._view(*self._steps_to(plan))

  def __setitem__(self, index: Any, value: Any) -> None:
    check_writable(self, "a[i] = b")
    if not isinstance(value, (Handle, *Number)):
      dtype = (
        self.dtype if isinstance(value, (list, tuple)) else None
      )  # Python's numbers have to be of this type
      value = Handle._final(value, dtype=dtype, device=self.device)
    if is_complex(value):
      fail(DTypeError, f"a[i] = b: a complex number is no {self.dtype.name}", a=self, b=value)
    if isinstance(index, Handle) and index.dtype is dtypes.bool and _single(value):
      self._bind(self._masked(index, value))
      return
    if store(self, index, value):
      return
    plan = self._plan(index)
    if not (isinstance(value, Handle) and value._base is not None and self._has(plan, value)):
      self._bind(self._replaced(plan, value))

  def _steps_to(self, plan: Plan) -> Steps:
    """An index that copies nothing: cuts, a shape, and then the elements at indices without axes."""
    picked = (("picked", (a - n, i._node)) for n, (a, i) in enumerate(zip(plan.axes, plan.indices)))
    return ("cut", plan.cuts), ("shape", plan.shape), *picked

  def _has(self, plan: Plan, value: Handle) -> bool:
    """Is it the view that this index gives? `x[i] += v` has written to it when it comes to be put there."""
    return (
      root_of(value) is owner_of(self)
      and all(not i.ndim for i in plan.indices)
      and steps_of(value._how) == [*steps_of(self._how), *self._steps_to(plan)]
    )

  def _masked(self, mask: Handle, value: Any) -> UOp:
    if mask.shape != self.shape[: mask.ndim]:
      fail(
        AxisError,
        f"x[mask]: the mask has shape {mask.shape}, the axes that it covers {self.shape[: mask.ndim]}",
        x=self,
        mask=mask,
      )
    number = (
      graph.reshape(graph.cast(value._node, self.dtype), ())
      if isinstance(value, Handle)
      else constant("a[i] = b", value, self.dtype, (self, value))
    )
    wide_mask = graph.expand(
      graph.reshape(mask._node, (*mask.shape, *(1,) * (self.ndim - mask.ndim))), self.shape
    )
    return graph.alu("where", wide_mask, number, self._node)

  def _replaced(self, plan: Plan, value: Any, kind: str = "set") -> UOp:
    """self's node with value where the plan points; kind "add": added to what is there."""
    taken = graph.reshape(cut(self._node, plan.cuts), plan.shape)
    new = self._fitted(value, plan.taken())
    if plan.axes:
      new = _put(taken, plan, self._flat_index(plan), new, kind)
    elif kind == "add":
      new = graph.alu("add", taken, new)
    new = graph.reshape(new, tuple(c.taken for c in plan.cuts))
    if all(c.is_whole for c in plan.cuts):
      return on_device(new, self.device)  # as copy_ does; a number is on no device
    return put(self._node, plan.cuts, new)

  def _fitted(self, value: Any, room: tuple[int, ...]) -> UOp:
    """A value cast and repeated to where it is put."""
    if not isinstance(value, Handle):
      return graph.expand_to(constant("a[i] = b", value, self.dtype, (self, value)), room)
    s: tuple[int, ...] = value.shape
    while len(s) > len(room) and s[0] == 1:
      s = s[1:]
    if len(s) > len(room) or broadcast_shape(s, room) != room:
      fail(ShapeError, f"x[i] = v: v has shape {value.shape}, what x[i] takes has {room}", x=self, v=value)
    return graph.expand_to(graph.reshape(graph.cast(value._node, self.dtype), s), room)

  # ---------------------------------------------------------------- taking an index apart

  def _plan(self, index: Any) -> Plan:
    given, sizes = index if type(index) is tuple else (index,), self.shape
    if INTS.issuperset(map(type, given)) and len(given) <= len(sizes) and not varies(sizes):
      rest = tuple(sizes[len(given) :])
      ints = [self._int(i, n, a) for a, (i, n) in enumerate(zip(given, sizes))]
      return Plan((*ints, *map(whole, rest)), rest, (), (), ())
    items = self._items(index)
    cuts: list[Cut] = []
    shape: list[int] = []
    axes: list[int] = []
    indices: list[Handle] = []
    host: list[np.ndarray | None] = []
    for item in items:
      if item is None:
        shape.append(1)
        continue
      n = 1 if isinstance(item, Flag) else self.shape[len(cuts)]
      first = isinstance(item, int) and type(n) is Variable and 0 <= item < n.least
      if type(n) is Variable and isinstance(item, (int, np.ndarray)) and not first:
        # whether it is out of bounds is seen when it is computed
        item = Handle._final(item, device=self.device)
      if isinstance(item, slice):
        cuts.append(self._slice(item, n))
        shape.append(cuts[-1].taken)
      elif isinstance(item, int):
        cuts.append(self._int(item, n, len(cuts)))
      else:
        axes.append(len(shape))
        shape.append(n)
        if isinstance(item, Flag):
          item = item.places
        else:
          cuts.append(whole(n))
        host.append(self._bounded(item, n, len(cuts) - 1) if isinstance(item, np.ndarray) else None)
        indices.append(item if isinstance(item, Handle) else Handle._final(host[-1], device=self.device))
    if len(indices) > 1 and broadcast_shape(*(i.shape for i in indices)) is None:
      fail(
        ShapeError,
        f"x[{', '.join('i' * len(indices))}]: the shapes of the integer tensors do not repeat to a common one",
        **named(indices),
      )
    return Plan(tuple(cuts), tuple(shape), tuple(axes), tuple(indices), tuple(host))

  def _items(self, index: Any) -> list[Any]:
    """The index as one entry per axis of self and per new axis: None, int, slice, integer tensor or array, or Flag."""
    given = list(index) if isinstance(index, tuple) else [index]
    items: list[Any] = []
    for x in given:
      items.extend(self._item(x))
    used = sum(x.ndim if _is_mask(x) else 1 for x in items if x is not None and x is not Ellipsis)
    if used > self.ndim:
      fail(AxisError, f"x[...]: {used} indices for the {self.ndim} axes of x", x=self)
    dots = [i for i, x in enumerate(items) if x is Ellipsis]
    if len(dots) > 1:
      fail(AxisError, "x[...]: only one ... can stand in an index", x=self)
    at = dots[0] if dots else len(items)
    items[at : at + len(dots)] = [slice(None)] * (self.ndim - used)
    return self._masks(items)

  def _item(self, x: Any) -> list[Any]:
    if isinstance(x, slice) and type(x.start) is Variable and type(x.stop) is Variable and x.step is None:
      x = Handle._final.arange(x.stop - x.start, dtype=dtypes.int32) + bound(x.start)  # from anywhere on
    if x is None or x is Ellipsis or isinstance(x, slice):
      return [x]
    if isinstance(x, (bool, np.bool_)):
      return [np.asarray(x)]
    if isinstance(x, (int, np.integer)):
      return [int(x)]
    if isinstance(x, (list, tuple, range)):
      x = np.asarray(x) if len(x) else np.zeros(0, np.int64)
    if isinstance(x, np.ndarray):
      x = (
        x
        if x.dtype.kind in "iub"
        else fail(AxisError, f"x[i]: i is an array of {x.dtype}; integers or booleans index", x=self)
      )
      return [x if x.dtype.kind == "b" else x.astype(np.int64)]
    if isinstance(x, (Handle, Variable)):
      x = Handle._final(x) if isinstance(x, Variable) else x
      if x.dtype.kind == "f":
        fail(AxisError, f"x[i]: i is {x.dtype.name}; integers or booleans index", x=self, i=x)
      return [x]
    if hasattr(x, "__index__"):
      return [x.__index__()]
    fail(
      AxisError, f"x[i]: {x!r} is no index: ints, slices, None, ..., masks and integer tensors are", x=self
    )

  def _masks(self, items: list[Any]) -> list[Any]:
    """With masks as the places where they are true, one integer array per axis that a mask covers."""
    out: list[Any] = []
    for x in items:
      if not _is_mask(x):
        out.append(x)
        continue
      values = x if isinstance(x, np.ndarray) else x.numpy()
      if not x.ndim:
        out.append(Flag(np.flatnonzero(values)))
        continue
      axis = sum(1 for y in out if y is not None and not isinstance(y, Flag))
      if x.shape != self.shape[axis : axis + x.ndim]:
        fail(
          AxisError,
          f"x[mask]: the mask has shape {x.shape}, the axes that it covers {self.shape[axis : axis + x.ndim]}",
          x=self,
          mask=x,
        )
      out.extend(places.astype(np.int64) for places in np.nonzero(values))
    return out

  def _slice(self, s: slice, n: Any) -> Cut:
    if varies((n, s.start, s.stop)):
      return self._varying(s, n)
    try:
      start, stop, step = s.indices(n)
    except ValueError:
      fail(ArgumentError, f"x[{s.start}:{s.stop}:{s.step}]: the step of a slice is 0", x=self)
    except TypeError:
      fail(AxisError, f"x[{s.start}:{s.stop}:{s.step}]: the bounds of a slice are Python integers", x=self)
    count = len(range(start, stop, step))
    if step > 0 or not count:
      return Cut(n, start if count else 0, abs(step), count, False)
    return Cut(n, start + (count - 1) * step, -step, count, True)

  def _varying(self, s: slice, n: Any) -> Cut:
    """A slice whose end, or whose axis, varies: within the axis for all values."""
    start, stop = 0 if s.start is None else bound(s.start), n if s.stop is None else bound(s.stop)
    stop = n + stop if type(stop) is int and stop < 0 else stop
    if s.step not in (None, 1) or not 0 <= start <= stop <= n:
      asked = f"x[{s.start}:{s.stop}:{s.step}]"
      about = f"{asked}: step 1 and bounds within the {n!r} elements for all of its values would do"
      fail(AxisError, about, x=self)
    return Cut(n, start, 1, stop - start, False)

  def _int(self, i: int, n: int, axis: int) -> Cut:
    if not -n <= i < n:
      fail(AxisError, f"x[{i}]: index {i} is out of bounds for axis {axis}, which has size {n}", x=self)
    return Cut(n, i if i >= 0 else i + n, 1, 1, False)

  def _bounded(self, i: np.ndarray, n: int, axis: int) -> np.ndarray:
    """Indices that are known: checked now, counted from the front."""
    if i.size and (i.min() < -n or i.max() >= n):
      bad = i.min() if i.min() < -n else i.max()
      fail(AxisError, f"x[i]: index {bad} is out of bounds for axis {axis}, which has size {n}", x=self)
    return np.where(i < 0, i + n, i)

  def _flat_index(self, plan: Plan) -> UOp:
    """The integer tensors as one, into the axes that they index taken together; out of bounds if one of them is."""
    common = broadcast_shape(*(i.shape for i in plan.indices))
    assert common is not None
    several = len(plan.axes) > 1
    flat: UOp | None = None
    unsure: list[tuple[int, UOp, UOp]] = []  # axis, index as given, whether it is inside
    for i, axis, known in zip(plan.indices, plan.axes, plan.host):
      u, n = i._node, plan.shape[axis]
      given = graph.expand_to(graph.cast(u, dtypes.int64) if several else u, common)
      u = from_front(given, n) if known is None else given
      if known is None and several:
        fits = [graph.alu("lt", const(-1, u.dtype), u), graph.alu("lt", u, number([n], u.dtype))]
        unsure.append((axis, given, graph.alu("and", *fits)))
      flat = u if flat is None else graph.alu("add", graph.alu("mul", flat, const(n, u.dtype)), u)
    assert flat is not None
    for axis, given, inside in reversed(unsure):
      flat = graph.alu("where", inside, flat, outside(given, axis))
    return flat

  def at(self, index: Any, axis: int = 0) -> Tensor:
    """The element at an index along axis, without that axis: an int, a bound Variable, or a 0-d tensor of integers, of
    which one program serves all values.

    IndexError where it is out of bounds: when it is computed, where it is known only then.

    >>> from mini import Variable
    >>> i = Variable("i", 0, 2)
    >>> Tensor([[1, 2, 3], [4, 5, 6]]).at(i.bind(1), axis=1)
    Tensor([2, 5])
    """
    a = self._axis(axis, "at")
    return self[(slice(None),) * a + (index,)]


def _is_mask(x: Any) -> bool:
  return isinstance(x, np.ndarray) and x.dtype.kind == "b" or isinstance(x, Handle) and x.dtype is dtypes.bool


def _single(value: Any) -> bool:
  return not isinstance(value, Handle) or value.numel() == 1


def _rows(u: UOp, plan: Plan, flat: UOp) -> tuple[UOp, UOp, int]:
  """u with the indexed axes as one, the index in the shape of what it takes, and which axis it is."""
  before, n, after = plan.split()
  m = graph.numel(flat)
  index = graph.reshape(flat, (*(1,) * len(before), m, *(1,) * len(after)))
  rows = graph.reshape(graph.permute(u, plan.gathered()[0]), (*before, n, *after))
  return rows, graph.expand(index, (*before, m, *after)), len(before)


def _take(u: UOp, plan: Plan, flat: UOp) -> UOp:
  """u at integer tensors along axes: those axes as one, then a gather along it."""
  return graph.reshape(graph.gather(*_rows(u, plan, flat)), plan.taken())


def _put(u: UOp, plan: Plan, flat: UOp, value: UOp, kind: str) -> UOp:
  """u with value at integer tensors along axes: the inverse of `_take`."""
  order, _ = plan.gathered()
  rows, index, axis = _rows(u, plan, flat)
  new = graph.scatter(rows, index, graph.reshape(value, graph.shape(index)), kind, axis)
  moved = graph.reshape(new, tuple(plan.shape[a] for a in order))
  return graph.permute(moved, tuple(order.index(a) for a in range(len(order))))
