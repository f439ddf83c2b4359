"""@jit: a function of tensors, captured once for each shape of its arguments and then run as one routine.

The first call traces the function: its operations build a graph and compute nothing. What the function returns, the
tensors that it gives new values (parameters, optimizer and generator state) and the gradients that it leaves behind are
the routine's results. Later calls bind memory and launch: none of the function's Python runs, nothing is scheduled.

State is updated in place where nobody else holds the old value; where somebody does, it is copied first.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mini.config import config, settings_here
from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.masked import plain as physical
from mini.engine.realize import Numbered, leaf_of, realize
from mini.engine.shards import Sharded, buffers, layout
from mini.engine.spread import Spread, layout_of, on_devices, parts_of, spread
from mini.ir.graph import buffer, numel, shape, stage
from mini.ir.ops import VIEWS
from mini.ir.rules import rules_here, users_here
from mini.ir.sizes import Variable, varies
from mini.ir.uop import UOp, alone, const, memory_leaf, toposort, uop, without_collector
from mini.tensor import Tensor
from mini.tensor.autograd import mapped
from mini.tensor.errors import described, fail, user_line
from mini.tensor.handle import needs, tagged
from mini.tensor.trace import local, outside
from mini.types import DType, MiniError, dtypes

CAPTURES = 8  # of one kind of arguments: with gradients and without, in one flat buffer or in several
MARKS = ("tag", "detach")
NOWHERE = const(0, dtypes.bool)  # what a tensor is bound to while its memory is written


class JitError(MiniError):
  """What a traced function must not do."""


# ---------------------------------------------------------------- views of memory


def base(u: UOp) -> UOp:
  """The memory beneath views, or the node that is computed."""
  top = u
  while u.op in VIEWS or u.op in MARKS:
    u = u.src[0]
  if leaf_of(u) is None:  # some view above it may have been computed
    u = top
    while leaf_of(u) is None and (u.op in VIEWS or u.op in MARKS):
      u = u.src[0]
  return u


def leaf_beneath(t: Tensor) -> UOp:
  leaf = leaf_of(base(t._uop))
  assert leaf is not None
  return leaf


def unmarked(u: UOp) -> UOp:
  while u.op in MARKS:
    u = u.src[0]
  return u


def in_order(u: UOp) -> bool:
  """Do its elements stand in memory as they do in the node beneath its views?"""
  return all(op in ("reshape", "shrink") for op, _ in steps_from(base(u), u))


Steps = tuple[tuple[str, Any], ...]  # views, the first one first


def steps_from(root: UOp, u: UOp) -> Steps:
  """The views that lead from root to u."""
  steps = []
  while u is not root:
    if u.op not in MARKS:
      steps.append((u.op, u.arg))
    u = u.src[0]
  return tuple(reversed(steps))


def viewed(u: UOp, steps: Steps) -> UOp:
  """A view of memory that comes and goes with a call: nobody looks for its nodes."""
  for op, arg in steps:
    u = alone(op, u.dtype, (u,), arg)
  return u


def kind(t: Tensor) -> tuple:
  """What a routine relies on of a tensor that it gives another value:
  shape, type, what gradients do, and the device."""
  return t.shape, t.dtype, "leaf" if t._is_own_tag() else "graph" if needs(t._uop) else "", t.device


def view_of(t: Tensor) -> tuple:
  """What a routine relies on of a tensor that it reads: also which view of what memory it is."""
  root = base(t._uop)
  leaf = leaf_of(root)
  where = None if leaf is None else (shape(leaf), layout(leaf.arg[0]))
  return *kind(t), steps_from(root, t._uop), where


def rebind(tensors: Sequence[Tensor], nodes: Sequence[UOp]) -> None:
  """Give tensors other nodes, all at once: Ctrl-C does not arrive within a call into C."""
  deque(map(setattr, tensors, repeat("_uop"), nodes), maxlen=0)


def shares(a: UOp, b: UOp) -> bool:
  """Does a leaf have memory in common with b?"""
  return a is b or (b.op == "buffer" and not {*buffers(a.arg[0])}.isdisjoint(buffers(b.arg[0])))


# ---------------------------------------------------------------- tracing


class StandIn(Buffer):
  """The memory of an argument while the function is traced: none. A number's device is "": it goes along with any."""

  __slots__ = ()

  def __init__(self, device: str, dtype: DType, size: int):
    self.device, self.dtype, self.size, self.leaves = device, dtype, size, {}

  @staticmethod
  def like(b: Buffer) -> Buffer:
    if isinstance(b, Sharded):
      return Sharded([StandIn.like(p) for p in b.parts], b.outer)
    return StandIn(b.device, b.dtype, b.size)


class Trace:
  """One run of a function in which nothing is computed; tensors report here (mini/tensor/trace.py).

  `with trace:` is the run. Afterwards all tensors from outside are as they were.
  """

  def __init__(self) -> None:
    self.outer: dict[Tensor, UOp] = {}  # tensors from outside that were read -> the node that each came with
    self.written: dict[Tensor, UOp] = {}  # the same of tensors that got another node before they were read
    self.rebound: dict[Tensor, None] = {}
    self.grads: dict[Tensor, tuple[Tensor | None, bool]] = {}  # -> (.grad at first, did it matter)
    self.settings: list[tuple[Callable[[], Hashable], Hashable]] = []
    self.leaves: set[int] = set()  # serials of the memory of `outer`

  def __enter__(self) -> None:
    local.current = self  # type: ignore[assignment]

  def __exit__(self, *exception: object) -> None:
    local.current = None
    for t, node in (*self.outer.items(), *self.written.items()):
      t._uop = node
    for t, (grad, _) in self.grads.items():
      t._grad = grad

  def stand_in(self, t: Tensor, is_number: bool) -> Tensor:
    """What the function gets in the place of an argument."""
    b = StandIn("", t.dtype, 1) if is_number else StandIn.like(memory_of(t, True))
    s = Tensor._at(buffer(b, t.shape, t.dtype), t._where)
    if t.requires_grad:
      s.requires_grad_()
    s._grad = t._grad
    self.enter(s)
    return s

  def enter(self, t: Tensor) -> None:
    self.outer[t] = t._uop
    self.leaves.add(leaf_beneath(t).serial)

  def check_arguments(self, stand_ins: dict[Tensor, Tensor]) -> None:
    """JitError for an argument that is also reached from outside, where it would matter that these are two tensors."""
    for t, s in stand_ins.items():
      acts = t.requires_grad or t in self.rebound or s in self.rebound
      if acts and (t in self.outer or t in self.written or t in self.grads):
        fail(
          JitError,
          "x is an argument of a jitted function that also reaches it from outside, "
          "and updates it or takes its gradient",
          "do either, not both",
          x=t,
        )

  # ---------------------------------------------------------------- what tensors report

  def read(self, t: Tensor) -> None:
    if t._trace is self or t in self.outer or t in self.written:
      return
    with outside():
      if t._trace is not None:
        t._trace.escaped(t)
      if leaf_of(unmarked(t._uop)) is not None or leaf_of(base(t._uop)) is None:
        t.realize()
      node = unmarked(t._uop)
      if node.op == "buffer" and any(shares(node, unmarked(u)) for u in self.outer.values()):
        own = node.arg[0].copy()  # of two zeros, which will become different
        t.assign(Tensor(buffer(own, t.shape, t.dtype)))
    if needs(t._uop) and not t._is_own_tag():
      if local.gradients:
        fail(
          JitError,
          "no gradient passes into a jitted function, and x depends on a tensor that requires one",
          "x.detach() would do",
          x=t,
        )
      self.enter(t)
      t._uop = uop("detach", t.dtype, (t._uop,))
    else:
      self.enter(t)

  def rebind(self, t: Tensor) -> None:
    if t._trace is not self:
      if t not in self.outer:
        self.written.setdefault(t, t._uop)
      self.rebound[t] = None

  def gradient(self, t: Tensor, looks: bool) -> None:
    if t._trace is not self:
      self.grads.setdefault(t, (t._grad, looks))

  def relies(self, on: Callable[[], Hashable]) -> None:
    self.settings.append((on, on()))

  def has_changed(self, tensors: Iterable[Tensor]) -> bool:
    return any(t in self.rebound for t in tensors)

  def realize(self, tensors: list[Tensor]) -> None:
    """Nothing: results are computed when the routine runs."""

  def value(self, t: Tensor, what: str) -> NoReturn:
    fail(
      JitError,
      f"{what} inside a jitted function: a traced tensor has no value yet; return it and ask outside",
      x=t,
    )

  def escaped(self, t: Tensor) -> None:
    if any(u.serial in self.leaves for u in toposort(t._uop)):
      fail(
        JitError,
        "x was made inside a jitted function and has no value outside",
        "let the function return it, or assign it to a tensor that was there before",
        x=t,
      )
    t._trace = None


# ---------------------------------------------------------------- a routine


class Place(NamedTuple):
  """How a call finds a tensor: the tensor itself, the n-th argument, or the gradient of either."""

  of: Tensor | int
  grad: bool = False

  @property
  def is_argument(self) -> bool:
    return isinstance(self.of, int) and not self.grad

  def find(self, args: Sequence[Tensor]) -> Tensor:
    of, grad = self
    t = args[of] if type(of) is int else of
    return t._grad if grad else t  # type: ignore[return-value,union-attr]


Slot = tuple[int, int]  # (number of a memory, which of its parts)


class Result(NamedTuple):
  """A view of the routine's n-th memory."""

  memory: int
  steps: Steps


class Saved(NamedTuple):
  """What a tensor was before a call: a view of the n-th memory, which is written in place."""

  memory: int
  dtype: DType
  shape: tuple[int, ...]
  steps: Steps
  is_leaf: bool


class Routine:
  """A traced function, compiled.

  Its memory is numbered: first what tensors from outside (`places`) are views of, then what the function made of Python
  data (`fixed`), then what is computed.
  """

  @without_collector()
  def __init__(self, fn: Callable, tree: Any, args: Sequence[Tensor], numbers: set[Tensor], device: str):
    """numbers: the arguments that were Python numbers. device: theirs."""
    self.device = device
    trace = Trace()
    stand_ins = {t: trace.stand_in(t, t in numbers) for t in args}
    with trace:
      inside, named = mapped(stand_ins.__getitem__, tree)  # a Variable's value becomes that of a stand-in
      result = fn(*inside, **named)
      returned: list[Tensor] = []
      mapped(returned.append, result)
      changed = {t: t._grad for t, (before, _) in trace.grads.items() if t._grad is not before}
      given = [g for g in changed.values() if g is not None]
      for t in (*returned, *given):
        trace.read(t)
      updated = list(trace.rebound)
      nodes = [t._uop for t in (*returned, *given, *updated)]
      self.tagged = [t._is_own_tag() for t in updated]
    trace.check_arguments(stand_ins)
    sizes = {s._uop: n for n, s in enumerate(stand_ins.values())}
    self.sized = [tuple(sized(n, sizes) for n in shape(u)) if varies(shape(u)) else None for u in nodes]
    self.varying = [n for n, s in enumerate(self.sized) if s is not None]
    nodes = [u if s is None else stage(u) for u, s in zip(map(physical, nodes), self.sized)]
    self.result = mapped(lambda _: SLOT, result)
    self.about = [described("in", t) for t in (*returned, *given, *updated)[:3]]  # for errors

    number = {s: n for n, s in enumerate(stand_ins.values())}
    owner = {g: number.get(t, t) for t, (g, _) in trace.grads.items() if g is not None}
    tensors = [*trace.outer, *trace.written]
    at = {t: n for n, t in enumerate(tensors)}
    self.places = [Place(owner[t], True) if t in owner else Place(number.get(t, t)) for t in tensors]
    self.updated = [at[t] for t in updated]  # places that get new values
    self.graded = [
      (Place(number.get(t, t)), g is not None) for t, g in changed.items()
    ]  # whose .grad is set, or to None
    # What `fits` compares: where there must be no gradient and where one, Python values, and what the places are.
    self.looked = [(Place(number.get(t, t), True), g is None) for t, (g, look) in trace.grads.items() if look]
    self.settings = trace.settings
    self.known = [view_of(t) if t in trace.outer else kind(t) for t in tensors]
    self.last = [-1] * len(self.places)  # serials of the nodes that were found to be so
    self.steady: list[int] | None = None  # of `updated`, those that are so again after every call, once known
    self.plan([physical(leaf_beneath(t)) for t in trace.outer], nodes)

  def plan(self, outer: list[UOp], nodes: list[UOp]) -> None:
    """What is computed, what is bound, and how each result is a view of either.

    No memory from outside is kept: as long as somebody holds it, it is not written.
    outer: the memory that each place is a view of; the last places, which are only written, have no entry.
    nodes: the results, with the new values of `updated` last.
    """
    leaves = list(dict.fromkeys(outer))
    self.home: list[int | None] = [leaves.index(leaf) for leaf in outer]
    self.home += [None] * (len(self.places) - len(outer))
    self.outside = [n for n, place in enumerate(self.places) if not place.is_argument]
    # Places of tensors from outside, and those that are to be found at every call.
    self.there = [None if isinstance(place.of, int) or place.grad else place.of for place in self.places]
    self.sought = [(n, place) for n, place in enumerate(self.places) if self.there[n] is None]
    self.holders = [[i for i, leaf in enumerate(outer) if leaf is mine] for mine in leaves]

    first = len(nodes) - len(self.updated)  # of the new values
    kept = first - sum(has for _, has in self.graded)  # of what stays: gradients and new values
    used: dict[UOp, int] = {}  # how much of a node, such as a flat buffer of parameters, stays as views of it
    for u in dict.fromkeys(map(unmarked, nodes[kept:])):
      used[base(u)] = used.get(base(u), 0) + numel(u)
    whole = {b for b, n in used.items() if n >= numel(b) - numel(b) // 8}
    roots = [
      base(u) if leaf_of(base(u)) or (n >= kept and base(u) in whole and in_order(u)) else unmarked(u)
      for n, u in enumerate(nodes)
    ]
    sources = [leaf_of(root) or root for root in roots]
    computed = list(dict.fromkeys(u for u in sources if leaf_of(u) is None))
    values = dict(zip(computed, spread(computed)))
    parts = {u: on_devices(x) if isinstance(x, Spread) else [x] for u, x in values.items()}
    live = [(u, k) for u in computed for k, p in enumerate(parts[u]) if numel(p)]
    graph = Numbered([parts[u][k] for u, k in live], lift=False, home=self.device)

    slots = {p: (n, k) for n, leaf in enumerate(leaves) for k, p in enumerate(parts_of(leaf))}
    others = [*(p for p in graph.leaves if p not in slots), *filter(leaf_of, sources)]
    fixed = list(dict.fromkeys(u for u in others if u not in leaves))
    slots.update({u: (n, 0) for n, u in enumerate(fixed, len(leaves)) if u not in slots})
    number = {u: n for n, u in enumerate((*leaves, *fixed, *computed))}
    self.made = len(leaves) + len(fixed)
    self.fixed: list[Any] = [u.arg[0] for u in fixed]
    self.kinds = [(u.dtype, shape(u)) for u in number]
    self.layouts = {number[u]: layout_of(x) for u, x in values.items()}
    self.inputs = [slots[p] for p in graph.leaves]
    self.outputs = [(number[u], k) for u, k in live]
    self.results = [Result(number[u], steps_from(root, node)) for u, root, node in zip(sources, roots, nodes)]
    self.reshape()
    needed = {*(n for n, _ in self.inputs), *(r.memory for r in self.results)}
    self.bound = [(n, i, self.places[i].is_argument) for n, (i, *_) in enumerate(self.holders) if n in needed]
    self.blank = [*[None] * len(leaves), *self.fixed, *[None] * len(computed)]

    old_values = {r.memory for r in self.results}  # that are results, too
    inout: dict[int, int] = {}
    for i, u in zip(self.updated, sources[first:]):
      old = self.home[i]
      new = number[u]
      if old is None or old in old_values or u not in values or self.kinds[old] != self.kinds[new]:
        continue
      if layout(leaves[old].arg[0]) != self.layouts[new]:
        continue
      for k in range(len(parts[u])):
        if (u, k) in live and self.inputs.count((old, k)) == 1:
          inout.setdefault(live.index((u, k)), self.inputs.index((old, k)))
    self.program = graph.program(graph.roots, inout) if live else None
    inplace, same = (self.program.inplace, self.program.same) if self.program else ({}, [])
    self.taken = {self.outputs[k]: self.inputs[i] for k, i in inplace.items()}  # {what is computed: where}
    self.overwritten = {n for n, _ in self.taken.values()}
    self.same = {self.outputs[k]: self.outputs[m] for k, m in enumerate(same) if m != k}
    cut = [
      *(b for u in leaves if isinstance(b := u.arg[0], Sharded)),
      *(b for b in self.fixed if isinstance(b, Sharded)),
    ]
    self.is_cut = bool(cut) or not all(isinstance(where, str) for where in self.layouts.values())
    # What has memory of its own, and what has another's.
    self.fresh = [
      ((n, k), device, self.kinds[n][0], size)
      for n in range(self.made, len(self.kinds))
      for k, (device, size) in enumerate(self.pieces(n))
      if (n, k) not in self.taken and (n, k) not in self.same
    ]
    self.shared = [*self.taken.items(), *self.same.items()]
    self.given = [(n, *self.kinds[n]) for n in dict.fromkeys(r.memory for r in self.results)]

  def reshape(self) -> None:
    """What one result is another shape of gets that shape: a state keeps the view that it has of its memory."""
    times = Counter(r.memory for r in self.results)
    for n, (memory, steps) in enumerate(self.results):
      if (
        times[memory] == 1
        and isinstance(self.layouts.get(memory), str)
        and [op for op, _ in steps] == ["reshape"]
      ):
        self.kinds[memory] = self.kinds[memory][0], steps[0][1]
        self.results[n] = Result(memory, ())

  def find(self, args: Sequence[Tensor]) -> Sequence[Any]:
    """The tensors at all places."""
    found: list[Any] = [*self.there]
    for n, place in self.sought:
      found[n] = place.find(args)
    return found

  def fits(self, args: Sequence[Tensor], found: Sequence[Tensor | None]) -> bool:
    """Is what this routine relies on still so? Otherwise the function is traced again. Arguments were looked up by what
    they are. found: the tensors at all places."""
    for place, absent in self.looked:
      if (place.find(args) is None) != absent:
        return False
    for on, value in self.settings:
      if on() != value:
        return False
    last = self.last
    changed = [n for n in self.outside if (t := found[n]) is None or t._uop.serial != last[n]]
    for n in changed:
      t = found[n]
      if t is None:
        return False
      if self.home[n] is not None and leaf_of(base(t._uop)) is None:
        t.realize()
      if self.described(n, t) != self.known[n]:
        return False
    if changed and self.are_apart(found):
      return False
    for n in changed:
      last[n] = found[n]._uop.serial  # type: ignore[union-attr]
    return True

  def __call__(self, args: Sequence[Tensor], found: Sequence[Tensor]) -> Any:
    updated = [found[i] for i in self.updated]
    memory = self.bind(found)
    before = [self.saved(i, t, memory) for i, t in zip(self.updated, updated)]
    ran: list[int] = []
    try:
      if updated:
        rebind(updated, [NOWHERE] * len(updated))
      for place, _ in self.graded:
        place.find(args)._grad = None
      self.launch(memory, ran)
      return self.deliver(memory, updated, args)
    except BaseException:  # Ctrl-C, no memory, an index out of bounds: all tensors have new values, or none
      if ran:
        self.deliver(memory, updated, args)
      else:
        self.restore(memory, updated, before)
      raise

  def bind(self, found: Sequence[Tensor]) -> list[Any]:
    """The memory by its number; what is computed has none yet. (Nothing else may hold what will be overwritten: these
    local variables would.)"""
    memory: list[Any] = [*self.blank]
    for n, i, is_argument in self.bound:
      u = found[i]._uop
      if u.op == "tag":
        u = u.src[0]
      memory[n] = u.arg[0] if u.op == "buffer" else memory_of(found[i], is_argument)
    return memory

  def launch(self, memory: list[Any], ran: list[int]) -> None:
    """Compute what is computed. ran: gets an entry when all of it has run."""
    for n in self.overwritten:
      own(memory, n)
    if self.program is None:  # what is computed, if anything, has no elements
      for (n, _), device, dtype, size in self.fresh:
        memory[n] = Buffer(device, dtype, size)
      ran.append(0)
      return
    try:
      if self.is_cut:
        inputs, outputs = self.parts(memory)
      else:
        for (n, _), device, dtype, size in self.fresh:
          memory[n] = Buffer(device, dtype, size)
        for (n, _), (other, _) in self.shared:
          memory[n] = memory[other]
        inputs, outputs = [memory[n] for n, _ in self.inputs], [memory[n] for n, _ in self.outputs]
    except MemoryError as e:
      raise self.program.lacking(e) from None
    try:
      self.program.run(inputs, outputs, ran=ran)
    except IndexError as e:
      raise IndexError("\n".join([str(e), *self.about])) from None

  def parts(self, memory: list[Any]) -> tuple[list[Buffer], list[Buffer]]:
    """The inputs and outputs of the program, where some memory is in parts on several devices."""
    new = {slot: Buffer(device, dtype, size) for slot, device, dtype, size in self.fresh}
    for slot, other in self.shared:
      new[slot] = new[other] if other in new else part(memory, other)
    for n in range(self.made, len(memory)):
      memory[n] = self.joined(n, new)
    return [part(memory, s) for s in self.inputs], [new[s] for s in self.outputs]

  def pieces(self, n: int) -> list[tuple[str, int]]:
    """(device, elements) of what the n-th memory, which is computed, is made of."""
    where = self.layouts[n]
    return (
      [(where, prod(self.kinds[n][1]))] if isinstance(where, str) else list(zip(where.devices, where.sizes))
    )

  def joined(self, n: int, new: dict[Slot, Buffer]) -> Buffer:
    where, parts = self.layouts[n], [new[n, k] for k in range(len(self.pieces(n)))]
    return parts[0] if isinstance(where, str) else Sharded(parts, where.outer)

  def deliver(self, memory: list[Any], updated: list[Tensor], args: Sequence[Tensor]) -> Any:
    """Results go to the caller, gradients and new values to their tensors."""
    line = user_line()
    leaves = {n: memory_leaf(memory[n], s, dtype) for n, dtype, s in self.given}
    nodes = [viewed(leaves[n], steps) if steps else leaves[n] for n, steps in self.results]
    for n in self.varying:
      s = tuple(valued(m, args) for m in self.sized[n])  # type: ignore[union-attr]
      nodes[n] = memory_leaf(nodes[n].arg[0], s, nodes[n].dtype)
    if self.result is SLOT:
      out: Any = Tensor._at(nodes[0], line)
    else:
      out = filled(self.result, (Tensor._at(u, line) for u in nodes))
    if not (self.graded or updated):
      return out
    values = iter(nodes[len(nodes) - len(updated) - sum(has for _, has in self.graded) :])
    for place, has in self.graded:
      place.find(args)._grad = Tensor._at(next(values), line) if has else None
    nodes = [tagged(t, u) if is_leaf else u for t, u, is_leaf in zip(updated, values, self.tagged)]
    rebind(updated, nodes)
    if self.steady is None:
      self.steady = self.found_again(args)
    for n in self.steady:
      self.last[self.updated[n]] = nodes[n].serial
    return out

  def found_again(self, args: Sequence[Tensor]) -> list[int]:
    """Which of `updated` are what they were when the function was traced, as they will be after every call."""
    found = [place.find(args) for place in self.places]
    if self.are_apart(found):
      return []
    here = [(n, i, t) for n, i in enumerate(self.updated) if (t := found[i]) is not None]
    return [n for n, i, t in here if self.described(i, t) == self.known[i]]

  def described(self, i: int, t: Tensor) -> tuple:
    return kind(t) if self.home[i] is None else view_of(t)

  def are_apart(self, found: Sequence[Tensor | None]) -> bool:
    """Are tensors that were views of one memory views of several?"""
    groups = ([t for i in same if (t := found[i]) is not None] for same in self.holders if len(same) > 1)
    return any(len({leaf_beneath(t) for t in tensors}) > 1 for tensors in groups)

  def saved(self, i: int, t: Tensor, memory: list[Any]) -> UOp | Saved:
    """How the i-th place, a tensor that gets a new value, can be had back:
    not by holding memory that is to be written."""
    home = self.home[i]
    if home is not None:
      _, _, passes, _, steps, _ = self.known[i]
      return Saved(home, *self.kinds[home], steps, passes == "leaf") if home in self.overwritten else t._uop
    root = base(t._uop)
    leaf = leaf_of(root)
    for n in self.overwritten:
      if leaf is not None and memory[n] is leaf.arg[0]:
        return Saved(n, leaf.dtype, shape(leaf), steps_from(root, t._uop), t._is_own_tag())
    return t._uop

  def restore(self, memory: list[Any], updated: list[Tensor], before: list[UOp | Saved]) -> None:
    """The old values; but gradients that would have been replaced are gone, for their memory's sake."""
    nodes = []
    for t, old in zip(updated, before):
      if isinstance(old, Saved):
        node = viewed(buffer(memory[old.memory], old.shape, old.dtype), old.steps)
        old = tagged(t, node) if old.is_leaf else node
      nodes.append(old)
    rebind(updated, nodes)


def memory_of(t: Tensor, whole: bool) -> Buffer:
  """The memory that a tensor is a view of; or, if `whole`, that holds the tensor alone."""
  leaf = t._leaf() if whole else leaf_beneath(t)
  return (leaf or realize([unmarked(t._uop)])[0]).arg[0]


def sized(n: Any, arguments: dict[UOp, int]) -> Any:
  """A size of a result, with the number of the argument that it depends on for its value."""
  return replace(n, value=arguments.get(n.value, n.value)) if type(n) is Variable else n


def valued(n: Any, args: Sequence[Tensor]) -> Any:
  """The size in a call."""
  if type(n) is Variable and type(n.value) is int:
    return replace(n, value=Variable(n.name, n.first, n.last).bind(args[n.value].item()).value)
  return n


def placed(t: Tensor) -> Hashable:
  """Where a tensor is, and how it is cut."""
  return t.device if isinstance(t.device, str) else layout(memory_of(t, True))


def part(memory: list[Any], slot: Slot) -> Buffer:
  n, k = slot
  return buffers(memory[n])[k]


def own(memory: list[Any], n: int) -> None:
  """Make the n-th memory one that nobody else sees: itself, or a copy."""
  b = memory[n]
  if isinstance(b, Sharded):
    parts, outer = list(b.parts), b.outer
    memory[n] = b = None
    try:
      for k in range(len(parts)):
        own(parts, k)
    finally:
      memory[n] = Sharded(parts, outer)
    return
  alive = weakref.ref(b)
  memory[n] = Buffer.over(b.memory, b.device, b.dtype, b.size)
  del b
  other = alive()
  if other is not None:
    memory[n] = other
    memory[n] = other.copy()


SLOT = object()  # where a tensor stands in what a function returned


def filled(tree: Any, tensors: Iterator[Tensor]) -> Any:
  """The function's result with new tensors in its slots."""
  if tree is SLOT:
    return next(tensors)
  if isinstance(tree, Tensor):  # a complex one, with slots for its parts
    return tree._mapped(lambda slot: filled(slot, tensors))
  if isinstance(tree, dict):
    return {k: filled(v, tensors) for k, v in tree.items()}
  if isinstance(tree, (list, tuple)):
    items = [filled(v, tensors) for v in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
  return tree


# ---------------------------------------------------------------- the decorator


def jit(fn: Callable | None = None) -> Callable:
  """Capture a function of tensors - part of a training step, or all of it - as one routine.

  Arguments and results are tensors, and nested lists, tuples and dicts of them. A Python number or a NumPy array given
  as an argument is a tensor inside, so new values compile nothing; any other value is part of what a capture is looked
  up by. What the function reaches by closure is a constant of the capture if it is a Python value; tensors (parameters,
  optimizer state, the random generator) are read anew, and updated where the function assigns to them: in place, unless
  somebody still holds the old value. Results of earlier calls are never overwritten.

  `realize()` inside does nothing; asking for a value inside (`item()`, `numpy()`, `if tensor:`) is a JitError.
  Gradients are taken inside: a result has no graph, and an argument that was computed from what requires a gradient is
  not captured: then the function just runs.

  >>> w = Tensor([1.0, 2.0])
  >>> @jit
  ... def step(x, lr):
  ...   w.assign(w - lr * x)
  ...   return (w * x).sum()
  >>> step(Tensor([1.0, 1.0]), 0.5).item(), step(Tensor([1.0, 1.0]), 1.0).item()
  (2.0, 0.0)
  """
  if fn is None:
    return jit
  captured: dict[Any, list[Routine]] = {}
  latest: dict[
    tuple, tuple[Routine, Any, Any]
  ] = {}  # by `plain` arguments, with the settings and rules that it is for

  @functools.wraps(fn)
  def run(*args: Any, **kwargs: Any) -> Any:
    if local.current is not None or local.samples is not None:
      return fn(*args, **kwargs)
    key = None if kwargs else plain(args)
    if key is not None:
      with _lock:
        routine, settings, rules = latest.get(key, NO_ROUTINE)
        if settings is settings_here() and rules is users_here():
          ordered = in_their_order(args)
          found = routine.find(ordered)
          if routine.fits(ordered, found):
            return routine(ordered, found)
    return looked_up(args, kwargs, key)

  def looked_up(args: tuple, kwargs: dict, key: tuple | None) -> Any:
    """A call of which more must be asked, or the first of its kind."""
    found: dict[Tensor, int] = {}
    mapped(lambda t: found.setdefault(t, len(found)), (args, kwargs))
    if local.gradients and any(needs(t._uop) and not t._is_own_tag() for t in found):
      return fn(*args, **kwargs)
    devices = next((t.device for t in found), Device.DEFAULT)
    given = len(found)
    tree = with_numbers((args, kwargs), found, devices, {})
    tensors = list(found)
    with _lock:
      if tensors:
        tensors[0].realize(*tensors[1:])
      kinds = tuple((t.shape, t.dtype, t.requires_grad, placed(t)) for t in tensors)
      modes = (devices, local.gradients, local.low, Tensor.training, config.code, rules_here())
      routines = captured.setdefault((signature(tree, found), kinds, modes), [])
      routine = next((r for r in routines if r.fits(tensors, r.find(tensors))), None)
      if routine is None:
        numbers = {t for t in tensors[given:] if not t.shape}
        routine = Routine(fn, tree, tensors, numbers, first(devices))
        routines.insert(0, routine)
        del routines[CAPTURES:]
      if key is not None:
        latest[key] = routine, settings_here(), users_here()
      return routine(tensors, routine.find(tensors))

  run.captured = captured  # type: ignore[attr-defined]
  return run


TinyJit = jit
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


NO_ROUTINE: Any = (None, None, None)
_kinds: dict[tuple, object] = {}


def plain(args: tuple) -> tuple | None:
  """What a capture is looked up by where every argument is a tensor that is in memory and of which nothing else
  matters, an array or a number; None where more must be asked."""
  found: list[Any] = [local.gradients, local.low, Tensor.training]
  for t in args:
    if type(t) is Tensor:
      u = t._uop
      kind = u.memo.get("kind")
      if kind is None:
        if u.op != "buffer" or not isinstance(u.arg[0].device, str):
          return None
        kind = u.memo["kind"] = _kinds.setdefault((u.arg[1], u.dtype, u.arg[0].device), object())
      if t._grad is not None or t._trace is not None:
        return None
    elif type(t) is float or type(t) is int:
      kind = type(t)
    elif type(t) is Variable and t.value is not None and t.value.op == "const":
      kind = replace(t, value=None)
      if kind in found:
        return None
    elif type(t) is np.ndarray:
      kind = (t.shape, t.dtype)
    else:
      return None
    found.append(kind)
  return tuple(found) if len({*map(id, args)}) == len(args) else None


def in_their_order(args: tuple) -> Sequence[Tensor]:
  """The tensors among plain arguments, and then the arrays and numbers as tensors."""
  tensors = [t for t in args if type(t) is Tensor]
  if len(tensors) == len(args):
    return args
  device = tensors[0].device if tensors else Device.DEFAULT
  others = (as_tensor(x, device) for x in args if type(x) is not Tensor)
  return [*tensors, *(part for t in others for part in t._parts())]


def first(devices: Any) -> str:
  return devices if isinstance(devices, str) else devices[0]


def as_tensor(x: Any, device: str) -> Tensor:
  """A number, an array, or the value of a Variable."""
  return Tensor(int(x.value.arg), dtypes.int32, device) if type(x) is Variable else Tensor(x, device=device)


def with_numbers(tree: Any, found: dict[Tensor, int], device: Any, sizes: dict[Variable, Tensor]) -> Any:
  """The arguments with numbers, arrays and values of Variables as tensors, which join `found`; arrays are whole on each
  of several devices. sizes: the values so far, one for each Variable and value."""
  if isinstance(tree, dict):
    return {k: with_numbers(v, found, device, sizes) for k, v in tree.items()}
  if isinstance(tree, (list, tuple)):
    items = [with_numbers(v, found, device, sizes) for v in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
  if type(tree) is Variable and tree.value is not None:
    same = replace(tree, times=1, plus=0)
    if same not in sizes:
      sizes[same] = as_tensor(tree, first(device))
      found[sizes[same]] = len(found)
    return replace(tree, value=sizes[same])
  if isinstance(tree, (int, float, complex, np.generic, np.ndarray)) and not isinstance(tree, bool):
    t = as_tensor(tree, device if np.ndim(tree) else first(device))
    for part in t._parts():
      found[part] = len(found)
    return t
  return tree


def signature(tree: Any, number: dict[Tensor, int]) -> Hashable:
  """What of the arguments a capture depends on, besides the shapes and types of tensors."""
  if isinstance(tree, Tensor):
    return (type(tree), *(number[t] for t in tree._parts()))  # the same tensor twice is one
  if type(tree) is Variable:
    return (replace(tree, value=None), number.get(tree.value))
  if isinstance(tree, dict):
    return ("dict", *((k, signature(v, number)) for k, v in tree.items()))
  if isinstance(tree, (list, tuple)):
    return (type(tree), *(signature(v, number) for v in tree))
  try:
    hash(tree)
  except TypeError:
    raise JitError(
      f"an argument of a jitted function is a {type(tree).__name__}: give tensors, numbers, lists, tuples, dicts, "
      "or what can be a key of a dict"
    ) from None
  return (type(tree), tree)
