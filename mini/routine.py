"""A routine: a function that was traced once (capture.py) and compiled. A call binds memory and launches; none of the
function's Python runs, nothing is scheduled.

What the function returns, the tensors that it gives new values (parameters, optimizer and generator state) and the
gradients that it leaves behind are its results. State is updated in place where nobody else holds the old value; where
somebody does, it is copied first.
"""

from __future__ import annotations

import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

from mini.capture import (
  SLOT,
  Place,
  Steps,
  Trace,
  base,
  filled,
  in_order,
  kind,
  leaf_beneath,
  memory_of,
  rebind,
  steps_from,
  unmarked,
  view_of,
  viewed,
)
from mini.config import config
from mini.engine.buffer import Buffer
from mini.engine.masked import plain as physical
from mini.engine.realize import Numbered, leaf_of
from mini.engine.shards import Sharded, buffers, layout
from mini.engine.spread import Spread, layout_of, on_devices, parts_of, spread
from mini.ir.graph import buffer, numel, shape, stage
from mini.ir.sizes import Variable, varies
from mini.ir.uop import UOp, const, memory_leaf, without_collector
from mini.tensor import Tensor
from mini.tensor.autograd import mapped
from mini.tensor.errors import described, user_line
from mini.tensor.handle import tagged, untagged
from mini.tensor.views import derived, detached, owner_of, root_of, share, steps_of, views_of
from mini.types import AxisError, DType, dtypes

NOWHERE = const(0, dtypes.bool)  # what a tensor is bound to while its memory is written


node_of = attrgetter("_uop")  # for maps: a function may read hundreds of tensors
serial_of = attrgetter("serial")

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


class Addresses:
  """Of a program's inputs and outputs, where all is memory of the host, and of what it needs in between, twice.

  What is only read from outside, such as a model's weights, is looked for again only when one of its tensors has got
  another node: the nodes and memory of hundreds of tensors stand all over, and are in no cache after each token.
  """

  def __init__(self, size: int, read: dict[int, Tensor]):
    """read: {place among the addresses: the tensor that it is memory of}"""
    self.slots, self.tensors = [*read], [*read.values()]
    none: list[int] = []
    self.known = none, array("Q", bytes(8 * size))  # serials of the tensors' nodes, and where these are

  def now(self) -> tuple[list[UOp], array[int]]:
    """The nodes of what is only read, which keep it: nobody may write there while a program runs (in between anybody
    may); and the addresses, in which a call puts the others."""
    nodes = [*map(node_of, self.tensors)]
    serials = [*map(serial_of, nodes)]
    known, found = self.known
    if serials != known:
      found = found[:]
      for slot, u in zip(self.slots, nodes):
        found[slot] = leaf_of(base(u)).arg[0].memory.address  # type: ignore[union-attr]
      self.known = serials, found
    return nodes, found[:]


class Views:
  """The views of tensors that get other values: they hold no memory while that is written."""

  def __init__(self, bases: list[Tensor]):
    self.bases = bases
    found = [(v, n) for n, t in enumerate(bases) if t._views for v in views_of(t)]
    self.tensors: list[Any] = [v for v, _ in found]
    self.of = [n for _, n in found]
    self.leaves = [v._is_own_tag() for v in self.tensors]

  def with_bases(self, nodes: list[UOp]) -> tuple[list[Tensor], list[UOp]]:
    """The tensors, with their views, and the nodes that these have once the tensors have `nodes`."""
    found = [derived(nodes[n], v._how) for n, v in zip(self.of, self.tensors)]
    own = [
      tagged(v, detached(u)) if is_leaf else u for v, u, is_leaf in zip(self.tensors, found, self.leaves)
    ]
    return [*self.bases, *self.tensors], [*nodes, *own]


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
      updated = [t for t in trace.rebound if root_of(t) not in trace.rebound]  # a view follows its base
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
    tensors = [*trace.outer, *(t for t in trace.written if root_of(t) not in trace.written)]
    at = {t: n for n, t in enumerate(tensors)}
    self.places = [Place(owner[t], True) if t in owner else Place(number.get(t, t)) for t in tensors]
    self.updated = [at[t] for t in updated]  # places that get new values
    # {result: the place that it is, or is a view of, and how}
    self.shared_results = {n: (at[b], t._how) for n, t in enumerate(returned) if (b := owner_of(t)) in at}  # type: ignore[index]
    self.graded = [
      (Place(number.get(t, t)), g is not None) for t, g in changed.items()
    ]  # whose .grad is set, or to None
    # What `fits` compares: where there must be no gradient and where one, Python values, and what the places are.
    self.looked = [(Place(number.get(t, t), True), g is None) for t, (g, look) in trace.grads.items() if look]
    self.settings = trace.settings
    self.known = [view_of(t) if t in trace.outer else kind(t) for t in tensors]
    # Once known: (of `updated`, of `last`) what is as it was traced after every call.
    self.steady: list[tuple[int, int]] | None = None
    self.plan([physical(leaf_beneath(t)) for t in trace.outer], nodes)

  def locate(self, outer: list[UOp]) -> list[UOp]:
    """How each place is found, and of what memory it is a view; that memory, each once."""
    leaves = list(dict.fromkeys(outer))
    self.home: list[int | None] = [leaves.index(leaf) for leaf in outer]
    self.home += [None] * (len(self.places) - len(outer))
    self.outside = [n for n, place in enumerate(self.places) if not place.is_argument]
    self.last = [-1] * len(self.outside)  # serials of their nodes that were found to be as they were traced
    # Places of tensors from outside, and those that are to be found at every call.
    self.there = [None if isinstance(place.of, int) or place.grad else place.of for place in self.places]
    self.sought = [(n, place) for n, place in enumerate(self.places) if self.there[n] is None]
    self.holders = [[i for i, leaf in enumerate(outer) if leaf is mine] for mine in leaves]
    return leaves

  def plan(self, outer: list[UOp], nodes: list[UOp]) -> None:
    """What is computed, what is bound, and how each result is a view of either.

    No memory from outside is kept: as long as somebody holds it, it is not written.
    outer: the memory that each place is a view of; the last places, which are only written, have no entry.
    nodes: the results, with the new values of `updated` last.
    """
    leaves = self.locate(outer)
    first = len(nodes) - len(self.updated)  # of the new values
    kept = first - sum(has for _, has in self.graded)  # of what stays: gradients and new values
    roots = beneath(nodes, kept)
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

    inout = self.replaced(leaves, [number[u] for u in sources[first:]])
    self.program = graph.program(graph.roots, inout) if live else None
    self.share(leaves)
    self.locate_directly()

  def replaced(self, leaves: list[UOp], new: list[int]) -> dict[int, int]:
    """{output of the program: the input whose place it may take}. new: the memory of each new value."""
    old_values = {r.memory for r in self.results}  # that are results, too
    outputs = {slot: at for at, slot in enumerate(self.outputs)}
    inout: dict[int, int] = {}
    for i, n in zip(self.updated, new):
      old = self.home[i]
      if old is None or old in old_values or n not in self.layouts or self.kinds[old] != self.kinds[n]:
        continue
      if layout(leaves[old].arg[0]) != self.layouts[n]:
        continue
      for k in range(len(self.pieces(n))):
        if (n, k) in outputs and self.inputs.count((old, k)) == 1:
          inout.setdefault(outputs[n, k], self.inputs.index((old, k)))
    return inout

  def share(self, leaves: list[UOp]) -> None:
    """What has memory of its own, and what has another's: that which it overwrites, or an equal result's."""
    inplace, same = (self.program.inplace, self.program.same) if self.program else ({}, [])
    self.taken = {self.outputs[k]: self.inputs[i] for k, i in inplace.items()}  # {what is computed: where}
    self.overwritten = {n for n, _ in self.taken.values()}
    self.before = [self.overwritten_view(i) for i in self.updated]
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

  def locate_directly(self) -> None:
    """Where a run is one call into C, its memory is given by addresses."""
    self.addresses, self.moving = None, self.bound  # `bound`, but what is only read
    if self.program is None or self.is_cut or not self.program.is_one_call:
      return
    stays = self.overwritten | {r.memory for r in self.results}
    tensors = {n: self.there[i] for n, i, _ in self.bound if n not in stays}
    read = {k: t for k, (n, _) in enumerate(self.inputs) if (t := tensors.get(n)) is not None}
    self.addresses = Addresses(len(self.inputs) + len(self.outputs) + 2, read)
    slots = enumerate([*self.inputs, *self.outputs])
    self.placed = [(k, n) for k, (n, _) in slots if k not in read]
    known = {self.inputs[k][0] for k in read}
    self.moving = [b for b in self.bound if b[0] not in known]

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
    tensors = [t for n in self.outside if (t := found[n]) is not None]
    if len(tensors) < len(self.outside):
      return False
    serials = [*map(serial_of, map(node_of, tensors))]
    if serials == self.last:
      return True
    for k, (n, t) in enumerate(zip(self.outside, tensors)):
      if serials[k] == self.last[k]:
        continue
      if self.home[n] is not None and leaf_of(base(t._uop)) is None:
        t.realize()
      # What is beneath views may be computed later, and then they are views of that: such a node is asked again.
      serials[k] = t._uop.serial if base(t._uop).op == "buffer" else -1
      if self.described(n, t) != self.known[n]:
        return False
    if self.are_apart(found):
      return False
    self.last = serials
    return True

  def __call__(self, args: Sequence[Tensor], found: Sequence[Tensor]) -> Any:
    updated = [found[i] for i in self.updated]
    known = None if config.watched else self.addresses
    _held, addresses = known.now() if known else ([], None)  # held to the end
    memory = self.bind(found, self.moving if known else self.bound)
    before = [old or self.saved(i, t, memory) for old, i, t in zip(self.before, self.updated, updated)]
    views = Views(updated)
    ran: list[int] = []
    try:
      if updated:
        rebind([*updated, *views.tensors], [NOWHERE] * (len(updated) + len(views.tensors)))
      for place, _ in self.graded:
        place.find(args)._grad = None
      self.launch(memory, addresses, ran)
      return self.deliver(memory, updated, views, args)
    except BaseException:  # Ctrl-C, no memory, an index out of bounds: all tensors have new values, or none
      if ran:
        self.deliver(memory, updated, views, args)
      else:
        self.restore(memory, updated, views, before)
      raise

  def bind(self, found: Sequence[Tensor], bound: Sequence[tuple[int, int, bool]]) -> list[Any]:
    """The memory by its number; what is computed has none yet. (Nothing else may hold what will be overwritten: these
    local variables would.)"""
    memory: list[Any] = [*self.blank]
    for n, i, is_argument in bound:
      u = found[i]._uop
      if u.op == "tag":
        u = u.src[0]
      memory[n] = u.arg[0] if u.op == "buffer" else memory_of(found[i], is_argument)
    return memory

  def launch(self, memory: list[Any], addresses: array[int] | None, ran: list[int]) -> None:
    """Compute what is computed. addresses: where they are known of what is only read. ran: gets an entry when all of it
    has run."""
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
        if not addresses:
          inputs, outputs = [memory[n] for n, _ in self.inputs], [memory[n] for n, _ in self.outputs]
    except MemoryError as e:
      raise self.program.lacking(e) from None
    try:
      if addresses:
        for slot, n in self.placed:
          addresses[slot] = memory[n].memory.address
        self.program.run_at(addresses, ran)
      else:
        self.program.run(inputs, outputs, ran=ran)
    except IndexError as e:
      raise AxisError("\n".join([str(e), *self.about])) from None

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

  def deliver(self, memory: list[Any], updated: list[Tensor], views: Views, args: Sequence[Tensor]) -> Any:
    """Results go to the caller, gradients and new values to their tensors."""
    line = user_line()
    leaves = {n: memory_leaf(memory[n], s, dtype) for n, dtype, s in self.given}
    nodes = [viewed(leaves[n], steps) if steps else leaves[n] for n, steps in self.results]
    for n in self.varying:
      s = tuple(valued(m, args) for m in self.sized[n])  # type: ignore[union-attr]
      nodes[n] = memory_leaf(nodes[n].arg[0], s, nodes[n].dtype)
    if self.result is SLOT:
      out: Any = self.handle(0, nodes[0], line, args)
    else:
      out = filled(self.result, (self.handle(n, u, line, args) for n, u in enumerate(nodes)))
    if not (self.graded or updated):
      return out
    values = iter(nodes[len(nodes) - len(updated) - sum(has for _, has in self.graded) :])
    for place, has in self.graded:
      place.find(args)._grad = Tensor._at(next(values), line) if has else None
    nodes = [tagged(t, u) if is_leaf else u for t, u, is_leaf in zip(updated, values, self.tagged)]
    rebind(*views.with_bases(nodes))
    for t in updated:
      if t._base is not None:
        t._bind(untagged(t._uop))  # to what it is a view of
    if self.steady is None:
      at = {i: k for k, i in enumerate(self.outside)}
      self.steady = [(n, at[self.updated[n]]) for n in self.found_again(args) if self.updated[n] in at]
    for n, k in self.steady:
      self.last[k] = nodes[n].serial
    return out

  def handle(self, n: int, node: UOp, line: tuple[str, int], args: Sequence[Tensor]) -> Tensor:
    """The n-th result. Where it is a view of a tensor from outside, it stays one as long as that is there."""
    t = Tensor._at(node, line)
    if n in self.shared_results:
      i, how = self.shared_results[n]
      share(t, self.places[i].find(args), tuple(steps_of(how)))
      t._base = weakref.ref(t._base)  # type: ignore[arg-type]
    return t

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

  def overwritten_view(self, i: int) -> Saved | None:
    """Of the i-th place, where it is a view of memory that is overwritten."""
    home = self.home[i]
    if home is None or home not in self.overwritten:
      return None
    _, _, passes, _, steps, _ = self.known[i]
    return Saved(home, *self.kinds[home], steps, passes == "leaf")

  def saved(self, i: int, t: Tensor, memory: list[Any]) -> UOp | Saved:
    """How the i-th place, a tensor that gets a new value, can be had back:
    not by holding memory that is to be written."""
    if self.home[i] is not None:
      return t._uop
    root = base(t._uop)
    leaf = leaf_of(root)
    for n in self.overwritten:
      if leaf is not None and memory[n] is leaf.arg[0]:
        return Saved(n, leaf.dtype, shape(leaf), steps_from(root, t._uop), t._is_own_tag())
    return t._uop

  def restore(
    self, memory: list[Any], updated: list[Tensor], views: Views, before: list[UOp | Saved]
  ) -> None:
    """The old values; but gradients that would have been replaced are gone, for their memory's sake."""
    nodes = []
    for t, old in zip(updated, before):
      if isinstance(old, Saved):
        node = viewed(buffer(memory[old.memory], old.shape, old.dtype), old.steps)
        old = tagged(t, node) if old.is_leaf else node
      nodes.append(old)
    rebind(*views.with_bases(nodes))


def beneath(nodes: Sequence[UOp], kept: int) -> list[UOp]:
  """What each result is computed or kept as: memory, what stands beneath its views, or the view by itself. kept: where
  those begin that stay, gradients and new values, of which those that are most of a flat buffer are parts of it."""
  used: dict[UOp, int] = {}  # how much of a node, such as a flat buffer of parameters, stays as views of it
  for u in dict.fromkeys(map(unmarked, nodes[kept:])):
    used[base(u)] = used.get(base(u), 0) + numel(u)
  whole = {b for b, n in used.items() if n >= numel(b) - numel(b) // 8}
  roots = [
    base(u) if leaf_of(base(u)) or (n >= kept and base(u) in whole and in_order(u)) else unmarked(u)
    for n, u in enumerate(nodes)
  ]
  return roots


def sized(n: Any, arguments: dict[UOp, int]) -> Any:
  """A size of a result, with the number of the argument that it depends on for its value."""
  return replace(n, value=arguments.get(n.value, n.value)) if type(n) is Variable else n


def valued(n: Any, args: Sequence[Tensor]) -> Any:
  """The size in a call."""
  if type(n) is Variable and type(n.value) is int:
    return replace(n, value=Variable(n.name, n.first, n.last).bind(args[n.value].item()).value)
  return n


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
  if b.lent:
    memory[n] = b.copy()
    return
  alive = weakref.ref(b)
  memory[n] = Buffer.over(b.memory, b.device, b.dtype, b.size)
  del b
  other = alive()
  if other is not None:
    memory[n] = other
    memory[n] = other.copy()
