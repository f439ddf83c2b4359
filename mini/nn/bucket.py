"""How an optimizer lays out its parameters: groups, which have settings, and buckets, which are flat buffers.

A bucket holds parameters of one type that have made the same number of steps; each is a view of its buffer. Which
setting holds for an element is decided by its position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from mini.changes import Change
from mini.engine.device_of import device_of, place, shown
from mini.engine.sharded import zeros
from mini.ir import graph
from mini.ir.uop import UOp
from mini.nn.state import LANES, lay, pack, views
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.tensor.handle import Handle, untagged
from mini.tensor.promotion import wide
from mini.tensor.trace import local
from mini.tensor.views import nodes_of
from mini.types import DType, ShapeError, dtypes
from runtime.base import DeviceError

MASTER = "master_param"  # the slot of parameters of 16 bits in float32

Room = Callable[[tuple[int, ...]], tuple[int, ...]]  # the shape of the state of a parameter of a shape
Choose = Callable[[Callable[["Group"], Any]], Any]  # a function of a group -> its value at each element


class Group(dict):
  """Parameters under "params", and what holds for them: "lr", a 0-d tensor, and numbers, as in PyTorch.

  group["lr"] is the rate as it is now: what was asked for stays when the rate changes, as PyTorch's numbers do. Setting
  it gives `rate`, which schedules and traces know, another value; where other groups share that, this one gets its own.

  >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
  >>> before = optimizer.param_groups[0]["lr"]
  >>> optimizer.param_groups[0]["lr"] *= 0.5
  >>> before, optimizer.param_groups[0]["lr"]
  (Tensor(0.5), Tensor(0.25))
  """

  def __init__(self, entries: Mapping[str, Any], peers: list[Group]):
    super().__init__(entries)
    self.peers = peers

  def __reduce__(self) -> tuple:
    return Group, ({}, []), (dict(self), self.peers)

  def __setstate__(self, state: tuple[dict[str, Any], list[Group]]) -> None:
    entries, self.peers = state
    self.update(entries)

  @property
  def rate(self) -> Tensor:
    """The learning rate itself."""
    return super().__getitem__("lr")

  def __getitem__(self, name: str) -> Any:
    return self.rate.detach().clone() if name == "lr" else super().__getitem__(name)

  def __setitem__(self, name: str, value: Any) -> None:
    if name == "lr":
      rate, new = self.rate, value
      if not isinstance(value, Tensor):
        new = Tensor(float(value), dtype=rate.dtype, device=rate.device)
      shared = any(other.rate is rate for other in self.peers if other is not self)
      value = new.cast(rate.dtype) if shared else rate.assign(new)
    super().__setitem__(name, value)


class Bucket:
  """Parameters of one type that have made the same number of steps: the parts of one flat buffer."""

  def __init__(
    self, params: Sequence[Tensor], groups: Sequence[Group], t: Tensor, slots: dict[str, Tensor], room: Room
  ):
    self.params, self.groups, self.t, self.slots, self.room = list(params), list(groups), t, slots, room
    self.shapes = [p.shape for p in params]
    self.rooms = [room(s) for s in self.shapes]  # of the parts of each slot but MASTER
    self.size = -(-sum(p.numel() for p in params) // LANES) * LANES
    self.flat = pack(self.params, [p._node for p in params])
    self.placed: tuple[UOp | None, list[UOp]] = None, []  # the buffer of the last step, and its parts
    self.step: Callable[..., Any] | None = None  # a step of them that is captured

  def __getstate__(self) -> dict[str, Any]:
    """Of a copy, which has settings of its own."""
    return {**vars(self), "step": None, "placed": (None, [])}

  @staticmethod
  def fresh(params: Sequence[Tensor], groups: Sequence[Group], names: Sequence[str], room: Room) -> Bucket:
    """No steps made, all state 0."""
    device = params[0].device
    b = Bucket(params, groups, Tensor(0, device=device), {}, room)
    b.widen(names)
    return b

  def widen(self, names: Sequence[str]) -> None:
    """Slots of these names; new ones are 0."""
    kind, device = slot_type(self.params[0], names), self.params[0].device
    for name in names:
      if name not in self.slots:
        size = -(-sum(map(prod, self.parts(name))) // LANES) * LANES
        self.slots[name] = Tensor(graph.buffer(zeros(size, kind, device), (size,), kind))

  def parts(self, name: str) -> list[tuple[int, ...]]:
    """The shapes of the parts of a slot."""
    return [*(self.shapes if name == MASTER else self.rooms)]

  def gather(self) -> UOp:
    """The parameters in one row; together again, if someone has bound one to other memory."""
    flat, placed = self.placed
    if self.flat._uop is flat and all(untagged(p._uop) is u for p, u in zip(self.params, placed)):
      return flat
    row = lay([p._node for p in self.params])
    if row is self.flat._node or not all(p.is_realized for p in self.params):
      return row
    self.flat.assign(pack(self.params, [p._node for p in self.params]))
    return lay([p._node for p in self.params])

  def give(self, flat: Tensor) -> None:
    """The parameters become parts of `flat`."""
    self.flat.assign(flat)
    parts = views(flat._node, self.shapes)
    if local.current is None:  # what a trace is made of would be held
      self.placed = self.flat._uop, parts
    for p, u in zip(self.params, parts):
      p._bind(u)

  def before(self) -> list[Change]:
    """What a step gives other values, as it is."""
    tensors = [*self.params, self.flat, self.t, *self.slots.values()]
    return [*nodes_of(tensors), *((p, "_grad", p._grad) for p in self.params)]

  def choose(self, value: Callable[[Group], Any]) -> Any:
    """A group's number or 0-d tensor at each element: selected by position, unless all are the same."""
    runs: list[tuple[int, Any]] = []  # (where it ends, value)
    end = 0
    known: dict[int, Any] = {}
    for p, group in zip(self.params, self.groups):
      if id(group) not in known:
        here = near(group.rate, self.t) is group.rate
        known[id(group)] = value(group if here else Group({n: self._here(x) for n, x in group.items()}, []))
      v = known[id(group)]
      end += p.numel()
      if runs and same(runs[-1][1], v):
        runs.pop()
      runs.append((end, v))
    found = runs[-1][1]
    if len(runs) == 1:
      return found
    kind = wide(self.params[0].dtype)
    position = Tensor(graph.iota(self.size, dtypes.int32 if self.size < 1 << 31 else dtypes.int64))
    for stop, v in reversed(runs[:-1]):
      found = (position < stop).where(_number(v, kind), _number(found, kind))
    return found

  def _here(self, x: Any) -> Any:
    """A setting, with the tensors in it where the parameters are."""
    if isinstance(x, tuple):
      return tuple(map(self._here, x))
    return near(x, self.t) if isinstance(x, Tensor) else x

  def part(self, keep: Sequence[bool]) -> Bucket:
    """Some of the parameters, with their state."""
    chosen = [n for n, k in enumerate(keep) if k]
    slots = {}
    for name, flat in self.slots.items():
      pieces = views(flat._node, self.parts(name))
      slots[name] = Tensor(lay([pieces[n] for n in chosen])).realize()
    params, groups = [self.params[n] for n in chosen], [self.groups[n] for n in chosen]
    return Bucket(params, groups, Tensor(self.t.item(), device=self.t.device), slots, self.room)

  def by_device(self) -> list[Bucket]:
    """Itself; or, where parameters were moved to other devices, one for each of these, with their state."""
    devices = dict.fromkeys([device_of(p._uop) for p in self.params])
    if list(devices) == [self.t.device]:
      return [self]
    found = []
    for d in devices:
      b = self.part([p.device == d for p in self.params])
      b.t = b.t.to(d).realize()
      b.slots = {name: flat.to(d).realize() for name, flat in b.slots.items()}
      found.append(b)
    return found


def slot_type(p: Tensor, names: Sequence[str]) -> DType:
  """The type of the state of a parameter: its own; where there are master weights, that of sums."""
  return wide(p.dtype) if MASTER in names else p.dtype


def near(x: Tensor, other: Tensor) -> Tensor:
  """A number on the device of another tensor."""
  return x.to(other.device) if x.device != other.device else x


def same(a: Any, b: Any) -> bool:
  if isinstance(a, Handle) or isinstance(b, Handle):
    return isinstance(a, Handle) and isinstance(b, Handle) and a._node is b._node
  return a == b


def _number(x: Any, kind: Any) -> Tensor:
  return x.cast(kind) if isinstance(x, Tensor) else Tensor.full((), x, dtype=kind)


def _gradient(p: Tensor) -> UOp:
  g = p.grad
  assert g is not None
  if g.shape != p.shape:
    fail(ShapeError, "step: a gradient does not have its parameter's shape", parameter=p, gradient=g)
  if place(g._uop) not in ("", device_of(p._uop)):
    fail(
      DeviceError,
      f"step: a gradient is on {shown(g.device)}, and its parameter on {shown(p.device)}",
      "gradient.to(parameter.device) would fit",
      parameter=p,
      gradient=g,
    )
  return g._node


def gradients_of(params: Sequence[Tensor]) -> Tensor:
  """Those of parameters of one type, one behind another: in that type, or, where one of them is wider, in float32."""
  nodes, kind = [_gradient(p) for p in params], params[0].dtype
  if any(u.dtype is not kind for u in nodes):
    kind = wide(kind)
  return Tensor(lay([graph.detach(graph.cast(u, kind)) for u in nodes]))
