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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import cycle, repeat
from math import prod
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from mini.capture import (
  SLOT,
  JitError,
  Place,
  Steps,
  Trace,
  base,
  computed_anew,
  filled,
  in_order,
  kind,
  leaf_beneath,
  memory_of,
  steps_from,
  unmarked,
  view_of,
  viewed,
)
from mini.changes import Change, setting
from mini.config import config
from mini.engine.buffer import Buffer
from mini.engine.dynamic_shapes import plain as physical
from mini.engine.realize import Numbered, leaf_of
from mini.engine.sharded import Sharded, buffers, layout
from mini.engine.spmd import Spread, layout_of, on_devices, parts_of, spread
from mini.ir.graph import full, numel, shape, stage
from mini.ir.sizes import Variable, varies
from mini.ir.uop import UOp, memory_leaf, without_collector
from mini.pullback import Pullback
from mini.tensor import Tensor
from mini.tensor.autograd import mapped
from mini.tensor.errors import described, fail, user_line
from mini.tensor.handle import needs, tagged, untagged
from mini.tensor.trace import local
from mini.tensor.views import (
  derived,
  detached,
  is_only,
  owner_of,
  placed,
  repeats,
  root_of,
  share,
  steps_of,
  strides_of,
  views_of,
)
from mini.types import AxisError, DType

second = itemgetter(1)
node_of = attrgetter("_uop")  # for maps: a function may read hundreds of tensors
serial_of = attrgetter("serial")

Path = tuple[tuple[str, Any], ...]  # steps from a tensor to a view of it
Slot = tuple[int, int]  # (number of a memory, which of its parts)


def outline(tree: Any) -> Any:
  """Which objects stand where in lists and dicts."""
  if isinstance(tree, dict):
    return tuple((k, outline(v)) for k, v in tree.items())
  return tuple(map(outline, tree)) if isinstance(tree, (list, tuple)) else id(tree)


class Result(NamedTuple):
  """A view of the routine's n-th memory."""

  memory: int
  steps: Steps


class Saved(NamedTuple):
  """What a tensor is before a call: a view of memory that is written in place."""

  leaf: int  # which of `old_leaves`
  steps: Steps
  is_leaf: bool  # that gradients are taken of

  def node(self, t: Tensor, leaf: UOp) -> UOp:
    u = viewed(leaf, self.steps) if self.steps else leaf
    return tagged(t, u) if self.is_leaf else u


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
  """The views of tensors that get other values, which follow them."""

  def __init__(self, bases: Sequence[Tensor]):
    found = [(v, n) for n, t in enumerate(bases) if t._views for v in views_of(t)]
    self.tensors: list[Any] = [v for v, _ in found]
    self.of = [n for _, n in found]
    self.nodes: dict[Tensor, UOp] = {}  # that they got

  def following(self, nodes: Sequence[UOp | None]) -> list[Change]:
    """What becomes of them where their bases get these nodes."""
    changes: list[Change] = []
    for v, node in zip(self.tensors, (nodes[n] for n in self.of)):
      if node is not None:
        u = derived(node, v._how)
        self.nodes[v] = u = tagged(v, detached(u)) if v._is_own_tag() else u
        changes.append((v, "_uop", u))
    return changes


class Inner(Tensor):
  """A value inside a function that is no result, while several results are views of it: what is written to one of them
  reaches the others by way of it. Few are written to, so it is neither computed nor kept, but put together of its
  living views when somebody asks for it. What none of them sees is 0."""

  _kind: tuple[tuple[int, ...], DType, Any]

  @staticmethod
  def like(kind: tuple[tuple[int, ...], DType, Any], line: tuple[str, int]) -> Inner:
    """kind: shape, type and strides."""
    t = object.__new__(Inner)
    t._kind, t._strides, t._where = kind, kind[2], line
    return t

  def __getattr__(self, name: str) -> Any:
    if name != "_uop":
      raise AttributeError(name)
    s, dtype, _ = self._kind
    u = full(s, 0, dtype)
    for t in views_of(self):
      u = placed(u, t._how, t._uop)
    self._uop = u
    return u

  @property
  def is_realized(self) -> bool:
    """What it is made of is."""
    return "_uop" not in vars(self) or super().is_realized


class Routine:
  """A traced function, compiled.

  Its memory is numbered: first what tensors from outside (`places`) are views of, then what the function made of Python
  data (`fixed`), then what is computed.
  """

  @without_collector
  def __init__(self, fn: Callable, tree: Any, args: Sequence[Tensor], numbers: set[Tensor], device: str):
    """numbers: the arguments that were Python numbers. device: theirs."""
    self.device = device
    trace = Trace()
    stand_ins = {t: trace.stand_in(t, t in numbers) for t in args}
    returned: list[Tensor] = []
    try:
      trace.begin()
      inside, named = mapped(stand_ins.__getitem__, tree)  # a Variable's value becomes that of a stand-in
      before = outline((inside, named))
      result = fn(*inside, **named)
      if outline((inside, named)) != before:
        what = "a list or a dict that is an argument of a jitted function is changed in it"
        fail(JitError, what, "return what it becomes")
      mapped(returned.append, result)
      changed = {t: t._grad for t, (before, _) in trace.grads.items() if t._grad is not before}
      given = [g for g in changed.values() if g is not None]
      hidden = hidden_values((*returned, *given), trace, {*stand_ins.values()})
      alone = {b for b, views in hidden.items() if len(views) == 1}
      inner = {b: views for b, views in hidden.items() if b not in alone}
      returned += [b for b, views in inner.items() if any(repeats(t._how) for t in views)]
      # {index of a view: number of the result that it is, too: another one in each call}
      shared = (t for t in (*returned, *given) if root_of(t) not in alone)
      indices = dict.fromkeys(u for t in shared for u in indices_of(steps_of(t._how)))
      self.indices = {u: n for n, u in enumerate(indices, len(returned))}
      returned += [Tensor._at(u, user_line()) for u in indices]
      for t in (*returned, *given):
        trace.read(t)
      updated = [t for t in trace.rebound if root_of(t) not in trace.rebound]  # a view follows its base
      nodes = [t._uop for t in (*returned, *given, *updated)]
      self.tagged = [t._is_own_tag() for t in updated]
      tags = {t: t._uop for t in trace.outer if t._is_own_tag()}
    finally:
      trace.end()
    trace.check_arguments(stand_ins)
    sizes = {s._uop: n for n, s in enumerate(stand_ins.values())}
    self.sized = [tuple(sized(n, sizes) for n in shape(u)) if varies(shape(u)) else None for u in nodes]
    nodes = [u if s is None else stage(u) for u, s in zip(map(physical, nodes), self.sized)]
    self.result = mapped(lambda _: SLOT, result)
    self.about = [described("in", t) for t in (*returned, *given, *updated)[:3]]  # for errors

    number = {s: n for n, s in enumerate(stand_ins.values())}
    owner = {g: number.get(t, t) for t, (g, _) in trace.grads.items() if g is not None}
    tensors = [*trace.outer, *(t for t in trace.written if root_of(t) not in trace.written)]
    at = {t: n for n, t in enumerate(tensors)}
    self.places = [Place(owner[t], True) if t in owner else Place(number.get(t, t)) for t in tensors]
    self.updated = [at[t] for t in updated]  # places that get new values
    self.changed_arguments = [self.places[i].of for i in self.updated if self.places[i].is_argument]
    handles = (*returned, *given)
    # {result: the place of what it is a view of, or of another view of that, and how}
    self.shared_results = {n: p for n, t in enumerate(handles) if (p := memory_place(t, at)) is not None}
    self.strides: dict[tuple[int, Any], Any] = {}  # theirs, by those of the base
    first: dict[Any, int] = {t: n for n, t in reversed([*enumerate(handles)])}
    # (result, the one that it is, or of which it is a view, and how)
    self.kin: list[tuple[int, int, Any]] = [
      (n, first[t], None) for n, t in enumerate(handles) if first[t] < n
    ]
    self.kin += [
      (n, first[b], tuple(steps_of(t._how))) for t, n in first.items() if (b := root_of(t)) in first
    ]
    # (what is no result, [(result that is a view of it, how, strides)])
    self.inner = [
      (
        (shape(b._uop), b.dtype, b._strides),
        [(first[t], tuple(steps_of(t._how)), strides_of(t)) for t in views],
      )
      for b, views in inner.items()
      if b not in first
    ]
    self.graded = [
      (Place(number.get(t, t)), g is not None) for t, g in changed.items()
    ]  # whose .grad is set, or to None
    # What `fits` compares: where there must be no gradient and where one, Python values, and what the places are.
    self.looked = [(Place(number.get(t, t), True), g is None) for t, (g, look) in trace.grads.items() if look]
    self.settings = [*trace.settings.items()]
    self.known = [view_of(t) if t in trace.outer else kind(t) for t in tensors]
    # Once known: what is as it was traced after every call, (of `updated`, of `last`) and {a view of these: of `last`}.
    self.steady: tuple[list[tuple[int, int]], dict[Tensor, int]] | None = None
    self.plan([physical(leaf_beneath(t)) for t in trace.outer], computed_anew(nodes))
    self.pullback = None
    lost = any(self.places[i].is_argument and needs(u) for i, u in zip(self.updated, nodes[len(handles) :]))
    if local.gradients and not trace.takes_gradients and not any(self.tagged) and not lost:
      read, of = {at[t]: t for t in trace.outer}, {at[t]: u for t, u in tags.items()}
      arguments = {n for n, place in enumerate(self.places) if place.is_argument}
      self.pullback = Pullback.of(nodes[: len(returned)], read, of, {*updated}, arguments, trace)
    trace.forget()
    self.closure = {t for t in self.there if t is not None}
    self.sharing = self.partition(args, self.find(args))

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
    self.same = {self.outputs[k]: self.outputs[m] for k, m in enumerate(same) if m != k}
    cut = [
      *(b for u in leaves if isinstance(b := u.arg[0], Sharded)),
      *(b for b in self.fixed if isinstance(b, Sharded)),
    ]
    self.is_cut = bool(cut) or not all(isinstance(where, str) for where in self.layouts.values())
    self.old_leaves: list[tuple[int, tuple[int, ...], DType]] = []  # of memory that is overwritten
    self.before = [self.overwritten_view(i) for i in self.updated]
    self.unread = [k for k, i in enumerate(self.updated) if self.home[i] is None]
    self.moved = [k for k in range(len(self.updated)) if not self.stays_bound(k)]  # to new nodes, in the end
    first = len(self.results) - len(self.updated)
    delivered = [n for n in range(len(self.results)) if n < first or n - first in self.moved]
    self.later = [self.results[n] for n in delivered]  # results that get nodes when they are there
    self.varying = [(k, n) for k, n in enumerate(delivered) if self.sized[n] is not None]
    self.returned = first - sum(has for _, has in self.graded)
    # Gradients of which the old one is not read: it goes at once, for its memory's sake.
    read = {place.of for place in self.places if place.grad}
    self.dropped = [place for place, _ in self.graded if place.of not in read]
    # What has memory of its own, and what has another's.
    self.fresh = [
      ((n, k), device, self.kinds[n][0], size)
      for n in range(self.made, len(self.kinds))
      for k, (device, size) in enumerate(self.pieces(n))
      if (n, k) not in self.taken and (n, k) not in self.same
    ]
    self.shared = [*self.taken.items(), *self.same.items()]
    self.given = [(n, *self.kinds[n]) for n in dict.fromkeys(r.memory for r in self.later)]

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
    looks = self.updated and (serials != self.last or any(map(self.may_share, args)))
    if looks and self.partition(args, found) != self.sharing:
      return False
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

  def may_share(self, t: Tensor) -> bool:
    """Is an argument a view, the base of one, or reached from outside, too?"""
    return t._base is not None or bool(t._views) or t in self.closure

  def partition(self, args: Sequence[Tensor], found: Sequence[Tensor | None]) -> list[int]:
    """Which tensors share memory that is updated: of each the first one that has the same."""
    first: dict[Any, int] = {}
    changed = {owner_of(t) for n in self.updated if (t := found[n]) is not None}
    owners = [owner_of(t) for t in (*args, *(found[n] for n in self.outside)) if t is not None]
    return [first.setdefault(o, n) if o in changed else n for n, o in enumerate(owners)]

  def __call__(self, args: Sequence[Tensor], found: Sequence[Tensor]) -> Any:
    """All tensors have new values, or none, whatever goes wrong (Ctrl-C, no memory, an index out of bounds): what is
    overwritten changes in the call into C that runs all, and what else changes is set in the next one."""
    updated = [found[i] for i in self.updated]
    pullback = self.pullback
    read = pullback.values(found) if pullback is not None else []
    known = None if config.watched else self.addresses
    _held, addresses = known.now() if known else ([], None)  # held to the end
    memory = self.bind(found, self.moving if known else self.bound)
    views = Views(updated)
    nodes: list[UOp | None] = [None] * len(updated)
    if self.overwritten:
      nodes = self.claim(memory, updated, views)
    for place in self.dropped:
      place.find(args)._grad = None
    run, bound = self.allocate(memory, addresses)
    out, changes, made = self.results_of(memory, updated, views, nodes, args)
    if pullback is not None:
      pullback.attach(made, read, found)
    ran: list[int] = []
    deliver = setting(map(second, zip(cycle(ran), changes))) if changes else list  # nothing, if nothing ran
    try:
      run(*bound, ran)
    except IndexError as e:
      raise AxisError("\n".join([str(e), *self.about])) from None
    finally:
      deliver()
    for t in updated:
      if t._base is not None:
        t._bind(untagged(t._uop))  # to what it is a view of
    if self.steady is None:
      self.steady = self.found_again(args)
    again, views_again = self.steady
    for n, k in again:
      self.last[k] = nodes[n].serial  # type: ignore[union-attr]
    for t, u in views.nodes.items():
      if (at := views_again.get(t)) is not None:
        self.last[at] = u.serial
    return out

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

  def claim(self, memory: list[Any], updated: Sequence[Tensor], views: Views) -> list[UOp | None]:
    """Have nobody else see what is overwritten: its tensors, which keep their values, are bound to other buffers of
    that memory, or, where somebody else holds it, to copies. Their nodes, where these are those of the new values."""
    unread = [(k, self.seen(updated[k], memory)) for k in self.unread]
    held: list[Any] = []
    for n in self.overwritten:
      memory[n] = claimed(memory[n], held)
    leaves = [memory_leaf(memory[n], s, dtype) for n, s, dtype in self.old_leaves]
    nodes = [view and view.node(t, leaves[view.leaf]) for t, view in zip(updated, self.before)]
    for k, found in unread:
      nodes[k] = found and found[1].node(updated[k], memory_leaf(memory[found[0]], *found[2:]))
    changed: Iterable[Change] = zip(updated, repeat("_uop"), nodes)
    if views.tensors or None in nodes:
      changed = [*(c for c in changed if c[2] is not None), *views.following(nodes)]
    setting(changed)()
    del changed
    for b, other in held:
      if other() is not None:
        copy_for(b, other)
      b.lent = False
    for k in self.moved:
      nodes[k] = None
    return nodes

  def allocate(self, memory: list[Any], addresses: array[int] | None) -> tuple[Callable, tuple]:
    """Memory for what is computed; (what then computes it, what it is given before `ran`, which gets an entry when all
    of it has run). addresses: where they are known of what is only read."""
    program: Any = self.program
    try:
      if self.is_cut and program is not None:
        return program.run, (*self.parts(memory), b"")
      for (n, _), device, dtype, size in self.fresh:
        memory[n] = Buffer(device, dtype, size)
    except MemoryError as e:
      raise program.lacking(e) from None if program is not None else e
    if program is None:  # what is computed, if anything, has no elements
      return run_nothing, ()
    for (n, _), (other, _) in self.shared:
      memory[n] = memory[other]
    if not addresses:
      inputs, outputs = [memory[n] for n, _ in self.inputs], [memory[n] for n, _ in self.outputs]
      return program.run, (inputs, outputs, b"")
    for slot, n in self.placed:
      addresses[slot] = memory[n].memory.address
    return program.run_at, (addresses,)

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

  def results_of(
    self,
    memory: list[Any],
    updated: list[Tensor],
    views: Views,
    known: list[UOp | None],
    args: Sequence[Tensor],
  ) -> tuple[Any, list[Change], list[Tensor]]:
    """(what the caller gets, what becomes of tensors and gradients when all has run, the results). known: nodes of
    `updated` that are bound already; gets the others."""
    line = user_line()
    leaves = {n: memory_leaf(memory[n], s, dtype) for n, dtype, s in self.given}
    nodes = [viewed(leaves[n], steps) if steps else leaves[n] for n, steps in self.later]
    for k, n in self.varying:
      s = tuple(valued(m, args) for m in self.sized[n])  # type: ignore[union-attr]
      nodes[k] = memory_leaf(nodes[k].arg[0], s, nodes[k].dtype)
    kept = len(nodes) - len(self.moved)
    made = [Tensor._at(u, line) for u in nodes[:kept]]
    for n in self.shared_results:
      self.keep_view(n, made, args)
    self.tie(made, line)
    out = made[0] if self.result is SLOT else filled(self.result, iter(made))
    grads, values = iter(made[self.returned :]), iter(nodes[kept:])
    changes: list[Change] = [
      (place.find(args), "_grad", next(grads) if has else None) for place, has in self.graded
    ]
    for k in self.moved:
      u, t = next(values), updated[k]
      known[k] = u = tagged(t, u) if self.tagged[k] else u
      changes.append((t, "_uop", u))
    if views.tensors:
      moved = {*self.moved}
      changes += views.following([u if k in moved else None for k, u in enumerate(known)])
    return out, changes, made

  def tie(self, made: list[Tensor], line: tuple[str, int]) -> None:
    """Have results share memory as they did when the function was traced."""
    for n, m, steps in self.kin:
      if steps is None:
        made[n] = made[m]
      else:
        share(made[n], made[m], self.steps_now(steps, made))
    for like, views in self.inner:
      inner = Inner.like(like, line)
      for n, steps, strides in views:
        share(made[n], inner, self.steps_now(steps, made))
        made[n]._strides = strides

  def steps_now(self, steps: Path, made: Sequence[Tensor]) -> Path:
    """Those of a call, whose indices are results."""
    if not self.indices:
      return steps
    return tuple(
      (kind, (a[0], made[self.indices[a[1]]]._uop) if kind == "picked" else a) for kind, a in steps
    )

  def keep_view(self, n: int, made: Sequence[Tensor], args: Sequence[Tensor]) -> None:
    """The n-th result is a view of a tensor from outside: it stays one as long as that is there, or another view of
    it."""
    t = made[n]
    i, is_base, steps = self.shared_results[n]
    found = self.places[i].find(args)
    share(t, found if is_base else owner_of(found), self.steps_now(steps, made))
    root: Any = t._base
    key = n, root._strides
    if key not in self.strides:
      self.strides[key] = strides_of(t)
    t._strides = self.strides[key]  # they stay when the base goes
    if is_only(t, root):
      t._base = weakref.ref(root)

  def found_again(self, args: Sequence[Tensor]) -> tuple[list[tuple[int, int]], dict[Tensor, int]]:
    """`steady`: which of `updated` from outside, and of their views, are what they were when the function was traced,
    as they will be after every call."""
    found = [place.find(args) for place in self.places]
    if self.are_apart(found):
      return [], {}
    here = {i: (t, k) for k, i in enumerate(self.outside) if (t := found[i]) is not None}
    again = {t: k for i, (t, k) in here.items() if self.described(i, t) == self.known[i]}
    updated = [(n, found[i]) for n, i in enumerate(self.updated) if i in here and found[i] in again]
    bases = {t for _, t in updated}
    return [(n, again[t]) for n, t in updated], {t: k for t, k in again.items() if root_of(t) in bases}

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
    dtype, s = self.kinds[home]
    if (home, s, dtype) not in self.old_leaves:
      self.old_leaves.append((home, s, dtype))
    return Saved(self.old_leaves.index((home, s, dtype)), steps, passes == "leaf")

  def seen(self, t: Tensor, memory: list[Any]) -> tuple[int, Saved, tuple[int, ...], DType] | None:
    """The same of one that is not read, so may be anything: the memory that it is a view of, how, and as what."""
    root = base(t._uop)
    leaf = leaf_of(root)
    for n in self.overwritten:
      if leaf is not None and memory[n] is leaf.arg[0]:
        return n, Saved(0, steps_from(root, t._uop), t._is_own_tag()), shape(leaf), leaf.dtype
    return None

  def stays_bound(self, k: int) -> bool:
    """Is the k-th of `updated`, once it was claimed, bound to what is a view of its new value, too?"""
    n = len(self.results) - len(self.updated) + k
    old, (memory, steps) = self.before[k], self.results[n]
    if old is None or self.is_cut or self.sized[n] is not None:
      return False
    home, s, dtype = self.old_leaves[old.leaf]
    same = self.taken.get((memory, 0)) == (home, 0) and self.kinds[memory] == (dtype, s)
    return same and old.steps == steps and self.tagged[k] == old.is_leaf


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


def hidden_values(results: Sequence[Tensor], trace: Trace, arguments: set[Tensor]) -> dict[Any, list[Tensor]]:
  """What was made in a trace and is no result -> the results that are views of it. (Not where sizes vary: those of a
  call are not known here.)"""
  found: dict[Any, list[Tensor]] = {}
  for t in (known := dict.fromkeys(results)):
    b = root_of(t)
    is_hidden = b is not None and b._trace is trace and b not in arguments and b not in known
    if is_hidden and not varies((*shape(b._uop), *t.shape)):  # type: ignore[union-attr]
      found.setdefault(b, []).append(t)
  return found


def indices_of(steps: Iterable[tuple[str, Any]]) -> list[UOp]:
  """The nodes by which a view takes elements, which a trace has for a call."""
  return [arg[1] for kind, arg in steps if kind == "picked"]


def memory_place(t: Tensor, places: dict[Tensor, int]) -> tuple[int, bool, Any] | None:
  """A tensor from outside that has the memory of this one: (its place, is it the base, the steps from the base)."""
  base: Any = owner_of(t)
  if base in places:
    return places[base], True, tuple(steps_of(t._how))
  kin = next((n for other, n in places.items() if owner_of(other) is base), None)
  return None if kin is None else (kin, False, tuple(steps_of(t._how)))


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


def claimed(b: Any, held: list[tuple[Buffer, Callable[[], Buffer | None]]]) -> Any:
  """Another buffer of this memory, or a copy. held: gets it, and whether the old one lives.

  Until then nobody may overwrite the memory: both buffers are as if it were lent. So an interrupt in between leaves two
  that are right, of which the next to be overwritten is copied."""
  if isinstance(b, Sharded):
    return Sharded([claimed(p, held) for p in b.parts], b.outer)
  if b.lent:
    return b.copy()
  b.lent = True
  new = Buffer.over(b.memory, b.device, b.dtype, b.size)
  new.lent = True
  held.append((new, weakref.ref(b)))
  return new


def copy_for(b: Buffer, old: Callable[[], Buffer | None]) -> None:
  """Somebody else still holds the memory of b, which gets a copy of it."""
  other = old()
  if other is not None:
    b.memory = other.copy().memory
    other.lent = False


def run_nothing(ran: list[int]) -> None:
  """The run of what computes nothing."""
  ran.append(0)
