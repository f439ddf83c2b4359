"""Graphs over several devices: what is done to a whole becomes what each device does to its part.

A value is spread in one of three ways: whole on every device, cut along an axis, or not yet merged (each device has a
value of the whole's shape, and their sum is meant). Leaves say how they are spread; from there it goes from inputs to
users, a rule for each operation: a sum over the axis along which its input is cut becomes a sum on each device, to be
merged. Views, joins and scatters of what is to be merged wait: gradients are merged where an optimizer has laid them
into one buffer, not one by one. What no rule covers is brought together on every device first, and is computed on each.

What has no memory, or only that of numbers (0-d), is computed on every device, as much of it as is needed there: random
bits, too, are made from a counter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import prod
from typing import NamedTuple

from mini.engine.buffer import leaf_of
from mini.engine.device_of import Several, device_of, held, place, shown
from mini.engine.sharded import Layout, Sharded, cut_axis, portions
from mini.grad import filled_with
from mini.ir import graph
from mini.ir.graph import alu, buffer, full, numel, shape, shrink
from mini.ir.ops import identity, is_elementwise
from mini.ir.uop import UOp, unknown, uop
from runtime.base import DeviceError


class Spread(NamedTuple):
  """A value on several devices."""

  devices: tuple[str, ...]
  parts: tuple[UOp, ...]  # a node for each of them
  axis: int | None = None  # that they are cut along; None: each has the shape of the whole
  kind: str = ""  # add, mul, max: what makes the value of them; "": each is the value

  @property
  def sizes(self) -> tuple[int, ...]:
    """Of the parts, along the axis."""
    return tuple(shape(p)[self.axis] for p in self.parts)  # type: ignore[index]


Value = UOp | Spread
Cut = tuple[int, tuple[int, ...]] | None  # an axis, and the sizes of the parts along it; None: whole


def is_spread(u: UOp) -> bool:
  """Is something on several devices beneath u?"""
  place(u)  # which sees what is new
  if not Several.used:
    return False
  for n in unknown(u, "spread"):
    own = n.op == "shard" or (n.op == "copy" and isinstance(n.arg, tuple))
    own = own or (n.op == "buffer" and isinstance(n.arg[0], Sharded))
    n.memo["spread"] = own or any(s.memo["spread"] for s in n.src)
  return u.memo["spread"]


def span(u: UOp, axis: int, start: int, stop: int) -> UOp:
  """Elements start..stop-1 along an axis. Of what is repeated, less is repeated: products stay recognizable."""
  s = shape(u)
  if u.op == "expand":
    inner = u.src[0]
    if shape(inner)[axis] != 1:
      inner = span(inner, axis, start, stop)
    return graph.expand(inner, (*s[:axis], stop - start, *s[axis + 1 :]))
  return shrink(u, tuple((start, stop) if a == axis else (0, n) for a, n in enumerate(s)))


def spans(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
  """(start, stop) of each part."""
  return ((stop - n, stop) for n, stop in zip(sizes, accumulate(sizes)))


def moved(u: UOp, source: str, target: str) -> UOp:
  return u if source == target else graph.copy(u, target)


def layout_of(x: Value) -> Layout | str:
  """Where a value is to be, and how it is cut."""
  if isinstance(x, UOp):
    return device_of(x)
  sizes = tuple(map(numel, x.parts))
  return Layout(
    x.devices, 0 if x.axis is None or not any(sizes) else prod(shape(x.parts[0])[: x.axis]), sizes
  )


def on_devices(x: Spread) -> list[UOp]:
  """The parts as what is to be computed: what has no memory beneath it is told where."""
  return [p if held(p) else graph.copy(p, d) for p, d in zip(x.parts, x.devices)]


def spread(roots: Sequence[UOp]) -> list[Value]:
  """Each root as it is, or as what each device computes of it, merged; DeviceError where devices do not go together."""
  if not any(map(is_spread, roots)):
    return list(roots)
  return Spreading(roots).found


class Spreading:
  """One walk over a graph, sources before users."""

  def __init__(self, roots: Sequence[UOp]):
    self.value: dict[UOp, Value] = {}
    self.one: dict[Spread, Spread] = {}  # what was merged or brought together
    self.here: dict[tuple[UOp, str], UOp] = {}
    wanted = set(roots)
    stack = [(u, False) for u in reversed(roots)]
    while stack:
      u, done = stack.pop()
      if u in self.value:
        continue
      leaf = leaf_of(u)
      if not is_spread(u):
        self.value[u] = u
      elif leaf is not None:
        self.value[u] = spread_of(leaf) if isinstance(leaf.arg[0], Sharded) else u
      elif done:
        x = self.rule(u, [self.value[s] for s in u.src])
        self.value[u] = self.merged(x) if u in wanted and isinstance(x, Spread) else x
      else:
        stack.append((u, True))
        stack.extend((s, False) for s in reversed(u.src) if s not in self.value)
    self.found = [self.value[u] for u in roots]

  def rule(self, u: UOp, xs: list[Value]) -> Value:
    if u.op in ("tag", "detach"):
      return xs[0]
    if u.op == "after":
      return self.after(*xs)
    if u.op in ("copy", "shard"):
      return self.copy(u, xs[0]) if u.op == "copy" else self.shard(u, xs[0])
    if not any(isinstance(x, Spread) for x in xs):
      return uop(u.op, u.dtype, tuple(xs), u.arg)  # type: ignore[arg-type]
    found = RULES["elementwise" if is_elementwise(u.op) else u.op](self, u, *xs)
    return self.apart(u, [self.whole(x) for x in self.all(u, xs)]) if found is None else found

  def after(self, x: Value, first: Value) -> Value:
    """Each part after its own; what is cut in another way is waited for by none."""
    if not isinstance(x, Spread):
      return graph.after(x, x if isinstance(first, Spread) else first)
    same = isinstance(first, Spread) and first.devices == x.devices
    waits = first.parts if isinstance(first, Spread) and same else x.parts
    return x._replace(parts=tuple(map(graph.after, x.parts, waits)))

  # ---------------------------------------------------------------- from one way to another

  def all(self, u: UOp, xs: Sequence[Value]) -> list[Spread]:
    """The inputs of u, on the same devices."""
    names = dict.fromkeys(x.devices for x in xs if isinstance(x, Spread))
    devices = next(iter(names))
    if len(names) > 1:
      raise DeviceError(
        f"{u.op} of memory on {' and on '.join(map(shown, names))}: move one with .to() or .shard()"
      )
    return [x if isinstance(x, Spread) else self.everywhere(u, x, devices) for x in xs]

  def everywhere(self, user: UOp, u: UOp, devices: tuple[str, ...]) -> Spread:
    """What has no memory but that of numbers, on every device."""
    if held(u) > 1:
      raise DeviceError(
        f"{user.op} of memory on {home(u)} and on {shown(devices)}: shard the first, or give it to all with .to()"
      )
    return Spread(devices, tuple(self.local(u, d) for d in devices))

  def local(self, u: UOp, device: str) -> UOp:
    """u on this device: numbers are copied there, the rest is computed there."""
    stack = [(u, False)]
    while stack:
      n, done = stack.pop()
      key = n, device
      if key in self.here:
        continue
      if not held(n):
        self.here[key] = n
      elif not shape(n) and (leaf_of(n) is not None or any(held(s) > 1 for s in n.src)):
        self.here[key] = graph.copy(n, device)
      elif done:
        src = tuple(self.here[s, device] for s in n.src)
        self.here[key] = src[0] if n.op == "copy" else uop(n.op, n.dtype, src, n.arg)
      else:
        stack.append((n, True))
        stack.extend((s, False) for s in n.src)
    return self.here[u, device]

  def merged(self, x: Spread) -> Spread:
    """Where each part has only its share of the value: all of it on every device, added in the same order."""
    if not x.kind:
      return x
    if x not in self.one:
      self.one[x] = Spread(x.devices, tuple(self.at(x, d) for d in x.devices))
    return self.one[x]

  def whole(self, x: Spread) -> Spread:
    """The value on every device."""
    if x.axis is None:
      return self.merged(x)
    if x not in self.one:
      self.one[x] = Spread(x.devices, tuple(self.at(x, d) for d in x.devices))
    return self.one[x]

  def at(self, x: Spread, device: str) -> UOp:
    """The value on one device."""
    if x.axis is None and not x.kind:
      near = x.devices.index(device) if device in x.devices else 0
      return moved(x.parts[near], x.devices[near], device)
    parts = [moved(p, d, device) for p, d in zip(x.parts, x.devices)]
    if x.axis is not None:
      return graph.cat(tuple(parts), x.axis)
    total = parts[0]
    for p in parts[1:]:
      total = alu(x.kind, total, p)
    return total

  def parted(self, x: Spread, cut: Cut) -> Spread:
    """The value as it is cut elsewhere; numbers are whole."""
    if cut is None or not shape(x.parts[0]):
      return self.whole(x)
    axis, sizes = cut
    if x.axis == axis and x.sizes == sizes:
      return x
    parts = self.whole(x).parts
    return Spread(x.devices, tuple(span(p, axis, *at) for p, at in zip(parts, spans(sizes))), axis)

  def apart(self, u: UOp, xs: Sequence[Spread], axis: int | None = None, kind: str = "") -> Spread:
    """u of each device's parts."""
    made = tuple(again(u, src) for src in zip(*(x.parts for x in xs)))
    return Spread(xs[0].devices, made, axis, kind)

  def shares(self, x: Spread, kind: str) -> Spread:
    """A value as what is still to be merged: the first device has it, the others what changes nothing."""
    first, *others = self.whole(x).parts
    nothing = [full(shape(p), identity(kind, p.dtype), p.dtype) for p in others]
    return Spread(x.devices, (first, *nothing), None, kind)

  # ---------------------------------------------------------------- a rule for each kind of operation

  def elementwise(self, u: UOp, *xs: Value) -> Spread:
    kept = self.linear(u, xs)
    if kept is not None:
      return kept
    every = [self.merged(x) for x in self.all(u, xs)]
    cut = cut_of(every)
    return self.apart(u, [self.parted(x, cut) for x in every], cut and cut[0])

  def linear(self, u: UOp, xs: Sequence[Value]) -> Spread | None:
    """What may be done before shares are added up: sums of them, a constant times one, another type of float."""
    shares = [x for x in xs if isinstance(x, Spread) and x.kind == "add"]
    if not shares or any(x in self.one for x in shares):  # merged already
      return None
    if u.op == "add" and len(shares) == 2 or (u.op == "cast" and u.dtype.kind == u.src[0].dtype.kind == "f"):
      return self.apart(u, self.all(u, xs), None, "add")
    constant = [isinstance(x, UOp) and filled_with(x) is not None for x in xs]
    if u.op == "mul" and any(constant) or (u.op == "div" and constant[1] and u.dtype.kind == "f"):
      return self.apart(u, self.all(u, xs), None, "add")
    return None

  def reduce(self, u: UOp, x: Spread) -> Spread:
    kind, axes = u.arg
    if x.kind and x.kind != kind:
      x = self.merged(x)
    if x.axis in axes:
      return self.apart(u, [x], None, kind)
    return self.apart(u, [x], x.axis, x.kind)

  def along_axis(self, u: UOp, x: Spread) -> Spread | None:
    """flip, scan: of one or several axes."""
    axes = u.arg if u.op == "flip" else (u.arg[1],)
    if x.axis in axes or (x.kind and u.op == "scan"):
      return None
    return self.apart(u, [x], x.axis, x.kind)

  def permute(self, u: UOp, x: Spread) -> Spread:
    return self.apart(u, [x], None if x.axis is None else u.arg.index(x.axis), x.kind)

  def reshape(self, u: UOp, x: Spread) -> Spread | None:
    if x.axis is None:
      return self.apart(u, [x], None, x.kind)
    sizes = [prod(shape(p)) for p in x.parts]
    try:
      axis = cut_axis(u.arg, prod(shape(u.src[0])[: x.axis]), sizes)
    except ValueError:
      return None
    rest = prod(n for a, n in enumerate(u.arg) if a != axis)
    parts = [graph.reshape(p, with_size(u.arg, axis, n // rest)) for p, n in zip(x.parts, sizes)]
    return Spread(x.devices, tuple(parts), axis)

  def expand(self, u: UOp, x: Spread) -> Spread | None:
    x = self.merged(x)  # it is smaller before
    if x.axis is None:
      return self.apart(u, [x])
    if shape(u)[x.axis] != shape(u.src[0])[x.axis]:
      return None
    parts = [graph.expand(p, with_size(u.arg, x.axis, n)) for p, n in zip(x.parts, x.sizes)]
    return Spread(x.devices, tuple(parts), x.axis)

  def pad(self, u: UOp, x: Spread) -> Spread:
    """The first part gets what is before, the last what is behind."""
    if x.axis is None:
      return self.apart(u, [x], None, x.kind)
    before, behind = u.arg[x.axis]
    last = len(x.parts) - 1
    widths = [(before * (k == 0), behind * (k == last)) for k in range(last + 1)]
    parts = [graph.pad(p, (*u.arg[: x.axis], w, *u.arg[x.axis + 1 :])) for p, w in zip(x.parts, widths)]
    return Spread(x.devices, tuple(parts), x.axis)

  def shrink(self, u: UOp, x: Spread) -> Spread:
    """Of each part what lies within; it may be nothing."""
    if x.axis is None:
      return self.apart(u, [x], None, x.kind)
    lo, hi = u.arg[x.axis]
    parts = []
    for p, (start, stop) in zip(x.parts, spans(x.sizes)):
      within = min(max(lo, start), stop) - start, max(min(hi, stop), start) - start
      within = within if within[0] < within[1] else (0, 0)
      parts.append(shrink(p, (*u.arg[: x.axis], within, *u.arg[x.axis + 1 :])))
    return Spread(x.devices, tuple(parts), x.axis)

  def stage(self, u: UOp, x: Spread) -> Spread:
    return self.apart(u, [x], x.axis, x.kind)

  def cat(self, u: UOp, *xs: Value) -> Spread:
    every = self.all(u, xs)
    if {x.kind for x in every} <= {"add", ""} and "add" in {x.kind for x in every} and cut_of(every) is None:
      return self.apart(u, [x if x.kind else self.shares(x, "add") for x in every], None, "add")
    cut = cut_of([x for x in every if x.axis != u.arg])
    return self.apart(u, [self.parted(x, cut) for x in every], cut and cut[0])

  def gather(self, u: UOp, *xs: Value) -> Spread:
    x, index = map(self.merged, self.all(u, xs))
    cut = cut_of([index] if x.axis == u.arg else [index, x])
    if cut and cut[0] == u.arg:
      return self.apart(u, [self.whole(x), self.parted(index, cut)], u.arg)
    return self.apart(u, [self.parted(x, cut), self.parted(index, cut)], cut and cut[0])

  def scatter(self, u: UOp, *xs: Value) -> Spread | None:
    """Where indices are cut along the axis into which they point, each device adds its own."""
    kind, axis = u.arg
    base, index, value = self.all(u, xs)
    index = self.merged(index)
    cut = cut_of([index, value])
    if kind != "set" and ((cut and cut[0] == axis) or (value.kind == kind == "add" and index.axis is None)):
      base = base if base.kind == kind else self.shares(base, kind)
      value = value if value.kind and not cut else self.parted(value, cut)
      return self.apart(u, [base, self.parted(index, cut), value], None, kind)
    cut = cut or cut_of([base])
    if cut and cut[0] == axis:
      return None
    return self.apart(u, [self.parted(x, cut) for x in (base, index, value)], cut and cut[0])

  # ---------------------------------------------------------------- between devices

  def copy(self, u: UOp, x: Value) -> Value:
    if isinstance(u.arg, str):
      return self.at(x, u.arg) if isinstance(x, Spread) else graph.copy(x, u.arg)
    if isinstance(x, Spread):
      return self.whole(x) if x.devices == u.arg else Spread(u.arg, tuple(self.at(x, d) for d in u.arg))
    if held(x) < 2:
      return self.everywhere(u, x, u.arg)
    return Spread(u.arg, tuple(graph.copy(x, d) for d in u.arg))

  def shard(self, u: UOp, x: Value) -> Spread:
    axis, devices = u.arg
    cut = axis, tuple(portions(shape(u)[axis], len(devices)))
    if isinstance(x, UOp) and held(x) < 2:
      x = self.everywhere(u, x, devices)
    if isinstance(x, UOp):
      parts = [graph.copy(span(x, axis, *at), d) for at, d in zip(spans(cut[1]), devices)]
      return Spread(devices, tuple(parts), axis)
    if x.devices == devices and x.axis in (None, axis):
      return self.parted(x, cut)
    x = self.merged(x)
    parts = []
    for at, d in zip(spans(cut[1]), devices):
      wanted = uop(
        "shrink", u.dtype, u.src, tuple(at if a == axis else (0, n) for a, n in enumerate(shape(u)))
      )
      parts.append(self.at(self.shrink(wanted, x), d))
    return Spread(devices, tuple(parts), axis)


def parts_of(leaf: UOp) -> tuple[UOp, ...]:
  """The memory that a leaf is made of, as leaves."""
  return spread_of(leaf).parts if isinstance(leaf.arg[0], Sharded) else (leaf,)


def spread_of(leaf: UOp) -> Spread:
  b, s = leaf.arg[0], shape(leaf)
  axis = b.axis_of(s)
  if axis is None:
    return Spread(b.device, tuple(buffer(p, s, leaf.dtype) for p in b.parts))
  rest = prod(n for a, n in enumerate(s) if a != axis)
  parts = tuple(buffer(p, with_size(s, axis, p.size // rest), leaf.dtype) for p in b.parts)
  return Spread(b.device, parts, axis)


def with_size(s: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
  return (*s[:axis], n, *s[axis + 1 :])


def cut_of(xs: Sequence[Spread]) -> Cut:
  """How the first one that is cut is cut."""
  return next(((x.axis, x.sizes) for x in xs if x.axis is not None), None)


def again(u: UOp, src: tuple[UOp, ...]) -> UOp:
  """u of other sources, of other sizes."""
  if is_elementwise(u.op):
    return uop(u.op, u.dtype, src, u.arg)
  if u.op in ("reduce", "scan"):
    return getattr(graph, u.op)(src[0], *u.arg)
  if u.op == "scatter":
    base, index, value = src
    return graph.scatter(base, index, value, *u.arg)
  if u.op == "cat":
    return graph.cat(src, u.arg)
  return graph.stage(src[0]) if u.op == "stage" else getattr(graph, u.op)(*src, u.arg)


def home(u: UOp) -> str:
  """A device whose memory is beneath u."""
  stack = [u]
  while stack:
    n = stack.pop()
    if n.op == "buffer":
      return n.arg[0].device
    stack.extend(s for s in n.src if held(s))
  return "?"


# fmt: off
# What each device does for one operation; None: that has to be done on the whole.
RULES: dict[str, Callable[..., Spread | None]] = {
  "elementwise": Spreading.elementwise,
  "reduce":  Spreading.reduce,
  "scan":    Spreading.along_axis,
  "flip":    Spreading.along_axis,
  "permute": Spreading.permute,
  "reshape": Spreading.reshape,
  "expand":  Spreading.expand,
  "pad":     Spreading.pad,
  "shrink":  Spreading.shrink,
  "stage":   Spreading.stage,
  "cat":     Spreading.cat,
  "gather":  Spreading.gather,
  "scatter": Spreading.scatter,
}
# fmt: on
