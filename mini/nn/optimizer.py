"""The base of optimizers: parameters, gradients and state lie in one flat buffer per type, so a step is one kernel.

At construction an optimizer moves its parameters into a flat buffer, of which each becomes a view; those with
more weight decay come first, and which number holds for an element is decided by its position. A step reads
p, g and the state and writes p and the state anew. Learning rates and step counts are 0-d tensors: a new
value compiles nothing, and `jit` takes it as an input.
"""

from __future__ import annotations

import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mini.changes import all_or_nothing
from mini.ir import graph
from mini.ir.uop import UOp
from mini.jitted import jit
from mini.nn.bucket import MASTER, Bucket, Choose, Group, gradients_of, slot_type
from mini.nn.state import StateError, get_state_dict, lay, views
from mini.tensor import Tensor
from mini.tensor.autograd import enable_grad, no_grad
from mini.tensor.errors import fail
from mini.tensor.handle import on_device
from mini.tensor.promotion import wide
from mini.tensor.trace import local, outside
from mini.tensor.views import nodes_of, owner_of
from mini.types import ArgumentError, MiniError, dtypes

# So many parameters, at most, have their step captured, which saves Python's time; that of more is computed with their
# gradients, which saves reading these again.
AT_ONCE = 1 << 20
NOT_NEGATIVE = (
  "lr",
  "eps",
  "weight_decay",
  "momentum",
  "alpha",
  "lr_decay",
  "initial_accumulator_value",
  "momentum_decay",
)


class Optimizer:
  """The base of optimizers: parameters, their layout, their state. A subclass has `slots` and `update`.

  params: tensors, or dicts with "params" and what differs from `defaults` for them. Without a gradient, a
  parameter is left alone by a step, as in PyTorch.
  master_weights: parameters of 16 bits are kept in float32, too, and so is their state, so that updates add up which
  are less than half of their last place; they are what these round to. Where a parameter was given another value in
  the meantime, that counts.

  >>> class Descent(nn.optim.Optimizer):
  ...   def update(self, p, g, state, t, choose):
  ...     return p - choose(lambda group: group["lr"]) * g, {}
  >>> w = Tensor([4.0], requires_grad=True)
  >>> (w * w).sum().backward()
  >>> Descent([w], {"lr": 0.25}).step()
  >>> w.tolist()
  [2.0]
  """

  slots: tuple[str, ...] = ()  # the names of the state that each element of a parameter has
  is_captured = False  # may `update` be, by jit?
  _settled: Hashable = None  # `_settings` of the step before

  def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any], master_weights: bool = False):
    self.master_weights = master_weights
    given = list(params)
    dicts = given if given and isinstance(given[0], Mapping) else [{"params": given}]
    self.defaults = dict(defaults)
    self.param_groups: list[Group] = []
    rates: dict[float, Tensor] = {}
    for d in dicts:
      self._add(d, rates)
    if not self._all():
      fail(MiniError, f"{type(self).__name__}: there are no parameters")
    self._buckets: list[Bucket] = []
    self._has_stepped = False
    self._adopt([p for p in self._all() if p.requires_grad])

  def _add(self, d: Mapping[str, Any], rates: dict[float, Tensor]) -> None:
    """One more group; equal learning rates are one tensor."""
    entries, seen = {**self.defaults, **d}, {id(p) for p in self._all()}
    held = [entries["params"]] if isinstance(entries["params"], Tensor) else list(entries["params"])
    held = [part for p in held for part in (p._parts() if isinstance(p, Tensor) else (p,))]
    for p in held:
      if not isinstance(p, Tensor) or p.dtype.kind != "f" or not p.is_leaf:
        fail(
          MiniError,
          f"{type(self).__name__}: a parameter is a float tensor that was not computed",
          parameter=p,
        )
    entries["params"] = [p for p in dict.fromkeys(held) if id(p) not in seen]
    for name in NOT_NEGATIVE:
      if isinstance(x := entries.get(name), (int, float)) and not x >= 0:
        fail(ArgumentError, f"{type(self).__name__}: {name} is {x}, and may not be negative")
    if not all(isinstance(b, Tensor) or 0 <= b < 1 for b in entries.get("betas", ())):
      fail(ArgumentError, f"{type(self).__name__}: betas {entries['betas']} are not between 0 and 1")
    lr = entries["lr"]
    if not isinstance(lr, Tensor):
      device = held[0].device if held else None
      entries["lr"] = rates[lr] = (
        rates[lr] if lr in rates else Tensor(float(lr), dtype=dtypes.float32, device=device)
      )
    self.param_groups.append(Group(entries, self.param_groups))

  def add_param_group(self, param_group: Mapping[str, Any]) -> None:
    """One more group, a dict with "params" and what differs from the defaults for them; without those that it has.

    >>> w, b = Tensor([1.0], requires_grad=True), Tensor([2.0], requires_grad=True)
    >>> optimizer = nn.optim.SGD([w], lr=0.5)
    >>> optimizer.add_param_group({"params": [b], "lr": 0.25})
    >>> (w + b).sum().backward()
    >>> optimizer.step()
    >>> w.item(), b.item()
    (0.5, 1.75)
    """
    self._add(param_group, {})
    self.slots = self.needed(self.param_groups)
    for b in self._buckets:
      b.widen(self._slots_of(b.params[0]))
    self._adopt([p for p in self.param_groups[-1]["params"] if p.requires_grad])

  # ---------------------------------------------------------------- for subclasses

  def update(
    self, p: Tensor, g: Tensor, state: dict[str, Tensor], t: Tensor, choose: Choose
  ) -> tuple[Tensor, dict[str, Tensor]]:
    """One step of flat parameters p with gradients g: the new p, and the new state by name.

    p, g, state: f32[n] (f64[n] if they are float64)   t: i64[], 1 at the first step
    choose(lambda group: ...): what the function gives for each element's group, a number, f32[] or f32[n]
    """
    raise MiniError(f"{type(self).__name__} has no update()")

  def room(self, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of each slot of a parameter of this shape."""
    return shape

  def needed(self, groups: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The slots of groups with these settings."""
    return self.slots

  def shown(self, state: dict[str, Tensor], p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
    """A parameter's state, "step" and slots, as a state dict has it: under PyTorch's names, in its shapes."""
    return state

  def read(self, state: dict[str, Any], p: Tensor) -> dict[str, Any]:
    """The inverse of `shown`."""
    return state

  # ---------------------------------------------------------------- layout

  def _all(self) -> list[Tensor]:
    return [p for group in self.param_groups for p in group["params"]]

  def _group_of(self) -> dict[Tensor, Group]:
    return {p: group for group in self.param_groups for p in group["params"]}

  def _adopt(self, params: Sequence[Tensor]) -> None:
    """New buckets for parameters that have made no step: one for each type and device."""
    group_of = self._group_of()
    kinds: dict[Any, list[Tensor]] = {}
    for p in params:
      if p.numel():
        kinds.setdefault((p.dtype, p.device), []).append(p)
    for found in kinds.values():
      found.sort(key=lambda p: -group_of[p].get("weight_decay", 0))
      found[0].realize(*found[1:])
      self._buckets.append(self._fresh(found, group_of))

  def _fresh(self, params: Sequence[Tensor], group_of: Mapping[Tensor, Group]) -> Bucket:
    return Bucket.fresh(params, [group_of[p] for p in params], self._slots_of(params[0]), self.room)

  def _slots_of(self, p: Tensor) -> tuple[str, ...]:
    masters = self.master_weights and wide(p.dtype) is not p.dtype
    return (*self.slots, MASTER) if masters else self.slots

  def _active(self) -> list[Bucket]:
    """The buckets to step: a bucket in which not all have a gradient falls into two."""
    has = {p for p in self._all() if p.grad is not None}
    tracer = local.current
    self._follow()
    for b in self._buckets:
      some = has.intersection(b.params)
      if (
        tracer is not None
        and some
        and len(some) < len(b.params)
        and tracer.has_changed((b.t, *b.params, *b.slots.values()))
      ):
        fail(
          MiniError, "step: in one jitted function, the same parameters must have a gradient at every step"
        )
    with outside():
      return self._parted(has)

  def _follow(self) -> None:
    """Where parameters have moved, their state does."""
    with outside():
      self._buckets = [part for b in self._buckets for part in b.by_device()]

  def _parted(self, has: set[Tensor]) -> list[Bucket]:
    """The buckets whose parameters have a gradient; others are parted."""
    known = {p for b in self._buckets for p in b.params}
    late = [p for p in self._all() if p not in known and p in has]
    if late:
      self._adopt(late)
    found: list[Bucket] = []
    for b in list(self._buckets):
      given = [p in has for p in b.params]
      if not any(given):
        continue
      if not all(given):
        at = self._buckets.index(b)
        self._buckets[at : at + 1] = [b.part(given), b.part([not g for g in given])]
        b = self._buckets[at]
      found.append(b)
    return found

  # ---------------------------------------------------------------- a step

  def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:
    """Update the parameters that have a gradient; computes them, their state, and the losses behind them. A UserWarning
    where none has had one yet.

    closure: computes the loss and its gradients anew; what it returns is returned.

    >>> w = Tensor([1.0], requires_grad=True)
    >>> optimizer = nn.optim.SGD([w], lr=0.5)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [-0.5]
    """
    loss = None
    if closure is not None:
      loss = enable_grad()(closure)()
    self._advance()
    return loss

  def _check_apart(self) -> None:
    """ArgumentError for parameters that have elements in common: each would be updated from the same old values."""
    taken: Counter[Any] = Counter()
    for p in self._all():
      if (p._base is not None or p._views) and p.grad is not None:
        owner = owner_of(p)
        taken[owner] += p.numel()
        if taken[owner] > owner.numel():
          what = f"{type(self).__name__}.step(): p shares elements with another parameter"
          fail(ArgumentError, what, "an optimizer of its own would do", p=p)

  @no_grad()
  def _advance(self) -> None:
    made: list[tuple[Bucket, Tensor, Tensor, list[Tensor]]] = []
    pending: dict[Tensor, None] = {}
    active = self._active()
    if not active and not self._has_stepped:
      about = f"{type(self).__name__}.step(): no parameter has a gradient yet, so none is updated"
      warnings.warn(f"{about}; loss.backward() gives them one", stacklevel=4)
    if local.current is not None:
      local.current.relies(self._settings)
    self._check_apart()
    flat = [(b, gradients_of(b.params)) for b in active]
    grads = {b: [p.grad for p in b.params if p.grad is not None] for b in active}
    losses = {x: None for of in grads.values() for g in of for ref in g._losses if (x := ref()) is not None}
    # written in any case: they are kept, and not the graphs that they came from
    kept = [g for b, g in flat if g._node.op == "cat" and not all(x.is_realized for x in grads[b])]
    at_once = self.is_captured and local.current is None and all(b.size <= AT_ONCE for b in active)
    if at_once:
      # Numbers are part of what is captured: of those that a schedule moves, a step would be captured each time.
      before, self._settled = self._settled, self._settings()
      at_once = before in (None, self._settled)
    if at_once:
      Tensor._compute([*(g for _, g in flat), *losses], gradients=False)
    for b, g in flat:
      new, state = self._step(b, g, at_once)
      made.append((b, new, g, state))
      pending.update(dict.fromkeys((new, *state)))
    pending.update(losses | dict.fromkeys(kept))
    if made:
      self._has_stepped = True
      Tensor._compute([*pending], gradients=False)

    def give() -> None:
      for b, new, g, state in made:
        b.give(new)
        for old, x in zip((b.t, *b.slots.values()), state):
          old.assign(x)
        if g in pending:
          for p, u in zip(b.params, views(g._node, b.shapes)):
            if local.current is None and p.grad is not None:
              p.grad._set(u)  # the same values: whoever holds it, or shares its memory, sees no change
            else:
              p.grad = Tensor(u)

    # only now: where something goes wrong before, no step was made
    all_or_nothing([c for b in active for c in b.before()], give)

  def _step(self, b: Bucket, g: Tensor, at_once: bool) -> tuple[Tensor, list[Tensor]]:
    """(the new parameters, the number of steps and the new state) of a bucket with these gradients, flat."""
    p = Tensor(b.gather() if local.current is None else lay([p._node for p in b.params]))
    if not at_once:
      return self._stepped(b, p, g, b.t, b.slots)
    if b.step is None:
      b.step = jit(partial(_captured, weakref.ref(self), weakref.ref(b)))
    return b.step(p, g, b.t, b.slots)

  def _stepped(
    self, b: Bucket, p: Tensor, g: Tensor, t: Tensor, slots: Mapping[str, Tensor]
  ) -> tuple[Tensor, list[Tensor]]:
    """(the new parameters, the number of steps and the new state) of any that are laid out as those of a bucket."""
    kind, t = wide(p.dtype), t + 1
    old = {name: s.cast(kind) for name, s in slots.items()}
    before, master = p.cast(kind), old.pop(MASTER, None)
    if master is not None:  # of what it is not rounded to, someone has set the value
      before = (master.cast(p.dtype) == p).where(master, before)
    new, state = self.update(before, g.cast(kind), old, t, b.choose)
    state = {**state, MASTER: new}
    return new.cast(p.dtype), [t, *(state[name].cast(s.dtype) for name, s in slots.items())]

  def zero_grad(self, set_to_none: bool = True) -> None:
    """Forget the gradients; or, if they are not to become None, make them zeros."""
    self._follow()
    with outside():
      for b in self._buckets:
        b.gather()
    for p in self._all():
      if set_to_none or p.grad is None:
        p.grad = None
      else:
        with no_grad():
          p.grad.zero_()

  def _settings(self) -> Hashable:
    """What a traced step depends on besides tensors: numbers, and which tensors the learning rates are."""
    return tuple((name, _fixed(x)) for group in self.param_groups for name, x in group.items())

  # ---------------------------------------------------------------- learning rates

  def rates(self) -> list[Tensor]:
    """The learning rates, each once: groups that began with equal ones share a tensor."""
    return list(dict.fromkeys(group.rate for group in self.param_groups))

  @property
  def lr(self) -> Tensor:
    """The learning rate, a 0-d tensor; of the first group if they differ. Setting it sets that of all groups.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> optimizer.lr = 0.25
    >>> optimizer.lr.item()
    0.25
    """
    return self.param_groups[0].rate

  @lr.setter
  def lr(self, value: Any) -> None:
    for rate in self.rates():
      rate.assign(
        value if isinstance(value, Tensor) else Tensor(float(value), dtype=rate.dtype, device=rate.device)
      )

  def moving_momentum(self) -> Tensor:
    """A 0-d tensor which is the momentum, or the first beta, of all groups from now on: a schedule sets it, and a new
    value compiles nothing. ValueError if the optimizer has neither."""
    name = next((name for name in ("momentum", "betas") if name in self.defaults), None)
    if name is None:
      fail(
        ArgumentError, f"{type(self).__name__} has neither momentum nor betas: cycle_momentum=False would fit"
      )
    first = self.param_groups[0][name]
    m = Tensor(float(first if name == "momentum" else first[0]), dtype=dtypes.float32, device=self.lr.device)
    for group in self.param_groups:
      group[name] = m if name == "momentum" else (m, *group[name][1:])
    self.slots = self.needed(self.param_groups)
    for b in self._buckets:
      b.widen(self._slots_of(b.params[0]))
    return m

  # ---------------------------------------------------------------- state

  def _state(self) -> dict[int, dict[str, Tensor]]:
    number, group_of = {p: n for n, p in enumerate(self._all())}, self._group_of()
    found: dict[int, dict[str, Tensor]] = {}
    for b in self._buckets:
      states: list[dict[str, Tensor]] = [{"step": b.t} for _ in b.params]
      for name, flat in b.slots.items():
        for state, u in zip(states, views(flat._node, b.parts(name))):
          state[name] = Tensor(u)
      found.update((number[p], self.shown(state, p, group_of[p])) for p, state in zip(b.params, states))
    return dict(sorted(found.items()))

  def state_dict(self) -> dict[str, Any]:
    """State and settings in PyTorch's form: parameters are numbered in the order of the groups.

    >>> list(nn.optim.Adam([Tensor([1.0], requires_grad=True)]).state_dict()["state"][0])
    ['step', 'exp_avg', 'exp_avg_sq']
    """
    numbers = iter(range(len(self._all())))
    settings = [
      {**group, "lr": group["lr"], "params": [next(numbers) for _ in group["params"]]}
      for group in self.param_groups
    ]
    return {"state": self._state(), "param_groups": settings}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Go on from a `state_dict`, of this library or of PyTorch. StateError if it is of other parameters."""
    settings = state["param_groups"]
    if [len(s["params"]) for s in settings] != [len(group["params"]) for group in self.param_groups]:
      raise StateError("load_state_dict: the state is of other groups of parameters")
    for group, said in zip(self.param_groups, settings):
      group.update(
        {name: _kept(group.get(name), x) for name, x in said.items() if name not in ("params", "lr")}
      )
    self.slots = self.needed(self.param_groups)
    rates = {f"param_groups.{n}.lr": s["lr"] for n, s in enumerate(settings)}
    self.load_named_state({**get_state_dict(state["state"], "state"), **_others(state["state"]), **rates})

  def named_state(self) -> dict[str, Tensor]:
    """The tensors of `state_dict()` by their paths, such as `state.0.exp_avg`: what nn.state sees."""
    found = {f"state.{n}.{name}": t for n, s in self._state().items() for name, t in s.items()}
    return {**found, **{f"param_groups.{n}.lr": group.rate for n, group in enumerate(self.param_groups)}}

  def load_named_state(self, state: Mapping[str, Any]) -> None:
    """Go on from a `named_state`; what has no entry begins anew. StateError if it is of other parameters."""
    group_of, said = self._group_of(), self._understood(state)
    order = [p for b in self._buckets for p in b.params]
    placed = set(order)
    order += [p for p in self._all() if p not in placed and "step" in said[p]]
    kinds: dict[Any, list[Tensor]] = {}
    values: dict[tuple[Tensor, str], UOp] = {}
    for p in sorted(order, key=lambda p: -group_of[p].get("weight_decay", 0)):
      for name in self._slots_of(p):
        values[p, name] = self._slot(p, name, said[p])
      kinds.setdefault((p.dtype, p.device, int(said[p].get("step", 0))), []).append(p)
    buckets = self._buckets
    before = [c for b in buckets for c in b.before()]
    before += nodes_of(self.rates())
    all_or_nothing([(self, "_buckets", buckets), *before], lambda: self._load(state, kinds, values))

  def _load(self, state: Mapping[str, Any], kinds: dict[Any, list[Tensor]], values: dict[Any, UOp]) -> None:
    """kinds: parameters by type, device and number of steps. values: of their slots."""
    group_of, buckets = self._group_of(), self._buckets
    same = [set(b.params) for b in buckets] == [set(found) for found in kinds.values()]
    if not same or any(tuple(b.slots) != self._slots_of(b.params[0]) for b in buckets):
      buckets = [self._fresh(found, group_of) for found in kinds.values()]
    for b, (_, _, t) in zip(buckets, kinds):
      b.t.assign(Tensor(t, device=b.t.device))
      for name in b.slots:
        b.slots[name].assign(Tensor(lay([graph.detach(values[p, name]) for p in b.params])))
      Tensor.realize(b.t, *b.slots.values())
    self._buckets = buckets
    for n, group in enumerate(self.param_groups):
      if (rate := state.get(f"param_groups.{n}.lr")) is not None and float(rate) != group["lr"].item():
        group["lr"] = float(rate)

  def _understood(self, state: Mapping[str, Any]) -> dict[Tensor, dict[str, Any]]:
    """What a `named_state` says of each parameter, by slots. StateError if it says something else."""
    params = self._all()
    said: dict[Tensor, dict[str, Any]] = {p: {} for p in params}
    numbered = {f"state.{n}": p for n, p in enumerate(params)}
    extra = []
    for path, x in state.items():
      head, _, name = path.rpartition(".")
      if head in numbered:
        said[numbered[head]].update({} if x is None else {name: x})
      elif path not in {f"param_groups.{n}.lr" for n in range(len(self.param_groups))}:
        extra.append(path)
    for n, p in enumerate(params):
      said[p] = self.read(said[p], p)
      extra += [f"state.{n}.{name}" for name in said[p] if name not in ("step", *self._slots_of(p))]
    if extra:
      raise StateError(f"load_state_dict: {', '.join(extra[:5])} are no state of this {type(self).__name__}")
    return said

  def _slot(self, p: Tensor, name: str, said: Mapping[str, Any]) -> UOp:
    """The state of one slot of a parameter; 0 if nothing is said of it."""
    shape, x = p.shape if name == MASTER else self.room(p.shape), said.get(name)
    kind = slot_type(p, self._slots_of(p))
    if "step" in said and (name != MASTER if x is None else tuple(np.shape(x)) != shape):
      about = f"state.{self._all().index(p)}.{name} is missing, or has not the shape {shape} of its parameter"
      raise StateError(f"load_state_dict: {about}")
    if x is None:
      return graph.full(shape, 0, kind)
    return on_device(graph.cast(_tensor(x)._node, kind), p.device)

  def __repr__(self) -> str:
    lines = [", ".join(f"{k}={v}" for k, v in group.items() if k != "params") for group in self.param_groups]
    return "\n".join(
      [
        f"{type(self).__name__}:",
        *(f"  {len(g['params'])} parameters: {s}" for g, s in zip(self.param_groups, lines)),
      ]
    )


def _captured(optimizer: Callable[[], Any], bucket: Callable[[], Any], *given: Any) -> Any:
  """`_stepped`, for jit, by weak references: what is captured belongs to the bucket, which keeps it."""
  if local.current is not None:
    local.current.relies(lambda: optimizer()._settings())
  return optimizer()._stepped(bucket(), *given)


def _fixed(x: Any) -> Any:
  if isinstance(x, tuple):
    return tuple(map(_fixed, x))
  return id(x) if isinstance(x, Tensor) else tuple(map(id, x)) if isinstance(x, list) else x


def _kept(old: Any, new: Any) -> Any:
  """A setting that is to have another value; the tensors in it stay, which schedules set."""
  if isinstance(old, Tensor):
    return old.assign(Tensor(float(new), dtype=old.dtype, device=old.device))
  return tuple(map(_kept, old, new)) if isinstance(old, tuple) and isinstance(new, (tuple, list)) else new


def _tensor(x: Any) -> Tensor:
  return x if isinstance(x, Tensor) else Tensor(np.asarray(x))


def _others(state: Mapping[Any, Mapping[str, Any]]) -> dict[str, Any]:
  """What of a state is no tensor of ours: numbers and arrays."""
  return {f"state.{n}.{k}": v for n, s in state.items() for k, v in s.items() if not isinstance(v, Tensor)}
