"""How an optimizer lays out its parameters: groups, which have settings, and buckets, which are flat buffers.

A bucket holds parameters of one type that have made the same number of steps; each is a view of its buffer. Which
setting holds for an element is decided by its position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mini.engine.shards import zeros
from mini.ir import graph
from mini.nn.state import LANES, lay, pack, views
from mini.tensor import Tensor
from mini.tensor.handle import Handle
from mini.tensor.promotion import wide
from mini.types import dtypes

Choose = Callable[[Callable[["Group"], Any]], Any]  # a function of a group -> its value at each element


class Group(dict):
  """Parameters under "params", and what holds for them: "lr", a 0-d tensor, and numbers, as in PyTorch.

  Setting "lr" to a number gives the tensor another value.
  """

  def __init__(self, entries: Mapping[str, Any], peers: list[Group]):
    super().__init__(entries)
    self.peers = peers

  def __setitem__(self, name: str, value: Any) -> None:
    if name == "lr" and not isinstance(value, Tensor):
      rate = self["lr"]
      if any(other["lr"] is rate for other in self.peers if other is not self):
        value = Tensor(float(value), dtype=rate.dtype, device=rate.device)
      else:
        value = rate.assign(Tensor(float(value), dtype=rate.dtype, device=rate.device))
    super().__setitem__(name, value)


class Bucket:
  """Parameters of one type that have made the same number of steps: the parts of one flat buffer."""

  def __init__(self, params: Sequence[Tensor], groups: Sequence[Group], t: Tensor, slots: dict[str, Tensor]):
    self.params, self.groups, self.t, self.slots = list(params), list(groups), t, slots
    self.shapes = [p.shape for p in params]
    self.size = -(-sum(p.numel() for p in params) // LANES) * LANES
    self.flat = pack(self.params, [p.uop for p in params])

  @staticmethod
  def fresh(params: Sequence[Tensor], groups: Sequence[Group], names: Sequence[str]) -> Bucket:
    """No steps made, all state 0."""
    kind, device = params[0].dtype, params[0].device
    b = Bucket(params, groups, Tensor(0, device=device), {})
    for name in names:
      b.slots[name] = Tensor(graph.buffer(zeros(b.size, kind, device), (b.size,), kind))
    return b

  def gather(self) -> None:
    """Together again, if someone has bound a parameter to other memory."""
    if all(p.is_realized for p in self.params) and lay([p.uop for p in self.params]) is not self.flat.uop:
      self.flat.assign(pack(self.params, [p.uop for p in self.params]))

  def give(self, flat: Tensor) -> None:
    """The parameters become parts of `flat`."""
    self.flat.assign(flat)
    for p, u in zip(self.params, views(flat.uop, self.shapes)):
      p.assign(Tensor(u))

  def choose(self, value: Callable[[Group], Any]) -> Any:
    """A group's number or 0-d tensor at each element: selected by position, unless all are the same."""
    runs: list[tuple[int, Any]] = []  # (where it ends, value)
    end = 0
    known: dict[int, Any] = {}
    for p, group in zip(self.params, self.groups):
      if id(group) not in known:
        lr = near(group["lr"], self.t)
        known[id(group)] = value(group if lr is group["lr"] else Group({**group, "lr": lr}, []))
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

  def part(self, keep: Sequence[bool]) -> Bucket:
    """Some of the parameters, with their state."""
    chosen = [n for n, k in enumerate(keep) if k]
    slots = {}
    for name, flat in self.slots.items():
      pieces = views(flat.uop, self.shapes)
      slots[name] = Tensor(lay([pieces[n] for n in chosen])).realize()
    params, groups = [self.params[n] for n in chosen], [self.groups[n] for n in chosen]
    return Bucket(params, groups, Tensor(self.t.item(), device=self.t.device), slots)

  def by_device(self) -> list[Bucket]:
    """Itself; or, where parameters were moved to other devices, one for each of these, with their state."""
    devices = dict.fromkeys(p.device for p in self.params)
    if list(devices) == [self.t.device]:
      return [self]
    found = []
    for d in devices:
      b = self.part([p.device == d for p in self.params])
      b.t = b.t.to(d).realize()
      b.slots = {name: flat.to(d).realize() for name, flat in b.slots.items()}
      found.append(b)
    return found


def near(x: Tensor, other: Tensor) -> Tensor:
  """A number on the device of another tensor."""
  return x.to(other.device) if x.device != other.device else x


def same(a: Any, b: Any) -> bool:
  if isinstance(a, Handle) or isinstance(b, Handle):
    return isinstance(a, Handle) and isinstance(b, Handle) and a.uop is b.uop
  return a == b


def _number(x: Any, kind: Any) -> Tensor:
  return x.cast(kind) if isinstance(x, Tensor) else Tensor.full((), x, dtype=kind)
