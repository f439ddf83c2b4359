"""@jit: a function of tensors, captured once for each shape of its arguments and then run as one routine.

The first call traces the function: its operations build a graph and compute nothing. What the function returns, the
tensors that it gives new values (parameters, optimizer and generator state) and the gradients that it leaves behind are
the routine's results. Later calls bind memory and launch: none of the function's Python runs, nothing is scheduled.

State is updated in place where nobody else holds the old value; where somebody does, it is copied first.
"""
from __future__ import annotations

import functools
import threading
import weakref
from typing import Any, Callable, NoReturn, Sequence

import numpy as np

from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.program import Program
from mini.engine.realize import Numbered, leaf_of
from mini.ir.graph import buffer, numel, shape
from mini.ir.rules import simplify
from mini.ir.uop import UOp, const, uop
from mini.tensor import Tensor
from mini.tensor.autograd import mapped
from mini.tensor.trace import local
from mini.types import MiniError, dtypes

VIEWS = {"reshape", "permute", "expand", "shrink", "flip", "pad", "detach", "tag"}
NOWHERE = const(0, dtypes.bool)  # what a handle is bound to while its memory is written


class JitError(MiniError):
  """What a traced function must not do."""


def base(u: UOp) -> UOp:
  """The node beneath views."""
  while u.op in VIEWS and leaf_of(u) is None:
    u = u.src[0]
  return u


def chain(u: UOp) -> tuple:
  """The views that lead from `base(u)` to u."""
  steps = []
  while u.op in VIEWS and leaf_of(u) is None:
    if u.op not in ("tag", "detach"):
      steps.append((u.op, u.arg))
    u = u.src[0]
  return tuple(reversed(steps))


def viewed(u: UOp, steps: tuple) -> UOp:
  for op, arg in steps:
    u = uop(op, u.dtype, (u,), arg)
  return u


class Trace:
  """One run of a function in which nothing is computed; handles report here (mini/tensor/trace.py)."""

  def __init__(self) -> None:
    self.outer: dict[Tensor, UOp] = {}  # tensors from outside -> the node that each came with
    self.rebound: dict[Tensor, None] = {}

  def read(self, handle: Tensor) -> None:
    if handle._trace is self or handle in self.outer:
      return
    if leaf_of(base(handle._uop)) is None:
      self.suspended(handle.realize)
    self.outer[handle] = handle._uop

  def rebind(self, handle: Tensor) -> None:
    if handle._trace is not self:
      self.read(handle)
      self.rebound[handle] = None

  def realize(self, handles: list[Tensor]) -> None:
    """Nothing: results are computed when the routine runs."""

  def value(self, handle: Tensor, what: str) -> NoReturn:
    shown = f"{handle.dtype.short}{list(handle.shape)}   made at {handle.made}"
    raise JitError(f"{what} inside a jitted function: a traced tensor has no value yet; return it and ask outside\n  x: {shown}")

  def suspended(self, f: Callable[[], Any]) -> None:
    local.current = None
    try:
      f()
    finally:
      local.current = self  # type: ignore[assignment]


class StandIn:
  """The memory of an argument while the function is traced."""

  def __init__(self, device: str):
    self.device = device


class Result:
  """One result: which output of the program (or which leaf) it is a view of."""

  def __init__(self, node: UOp, root: UOp):
    self.root, self.steps, self.dtype = root, chain_to(node, root), node.dtype


def chain_to(u: UOp, root: UOp) -> tuple:
  steps = []
  while u is not root:
    if u.op not in ("tag", "detach"):
      steps.append((u.op, u.arg))
    u = u.src[0]
  return tuple(reversed(steps))


def untagged(u: UOp) -> UOp:
  while u.op in ("tag", "detach"):
    u = u.src[0]
  return u


class Routine:
  """A traced function, compiled."""

  def __init__(self, fn: Callable, tree: Any, tensors: Sequence[Tensor], device: str):
    self.device = device
    trace = Trace()
    stand_ins = [Tensor(buffer(StandIn(device), t.shape, t.dtype)) for t in tensors]
    placeholders = [s._uop for s in stand_ins]
    for s, t in zip(stand_ins, tensors):
      if t.requires_grad:
        s.requires_grad_()
    waiting = iter(stand_ins)
    args, kwargs = mapped(lambda _: next(waiting), tree)
    local.current = trace  # type: ignore[assignment]
    for s in stand_ins:
      s._trace = trace
    try:
      self.result = fn(*args, **kwargs)
      returned: list[Tensor] = []
      mapped(returned.append, self.result)
      for t in returned:
        trace.read(t)
      self.grads = [h for h in trace.outer if h.grad is not None and h.grad._trace is trace]
      self.updated = list(trace.rebound)
      nodes = [t._uop for t in returned] + [h.grad._uop for h in self.grads] + [h._uop for h in self.updated]  # type: ignore[union-attr]
    finally:
      local.current = None
      for h, node in trace.outer.items():  # as if the function had not run
        h._uop = node
        if h.grad is not None and h.grad._trace is trace:
          h.grad = None
    self.plan(trace, nodes, placeholders)

  def plan(self, trace: Trace, nodes: list[UOp], placeholders: list[UOp]) -> None:
    """What is computed, what is bound, and how each result is a view of a computed node."""
    states = len(nodes) - len(self.updated)
    shared = {base(u) for u in nodes[states:] if base(u) is untagged(u)}
    given = {p: n for n, p in enumerate(placeholders)}
    self.results = []
    for n, u in enumerate(nodes):
      root = base(u)
      keep = leaf_of(root) is not None or (n >= states and root in shared)
      self.results.append(Result(u, root if keep else untagged(u)))
    computed = dict.fromkeys(r.root for r in self.results if leaf_of(r.root) is None)
    self.computed = list(computed)
    self.holders: dict[UOp, list[Tensor]] = {}  # leaf from outside -> the tensors that are views of it
    for h, node in trace.outer.items():
      self.holders.setdefault(leaf_of(base(node)), []).append(h)  # type: ignore[arg-type]
    self.known = {h: (shape(node), node.dtype, chain(node)) for h, node in trace.outer.items()}
    self.tagged = {h for h, node in trace.outer.items() if node.op == "tag"}
    self.last: dict[Tensor, weakref.ref] = {}
    graph = Numbered([u for u in self.computed if numel(u)], lift=False, device=self.device)
    self.given, self.inputs = given, graph.leaves
    inout: dict[int, int] = {}
    live = [u for u in self.computed if numel(u)]
    for h, r in zip(self.updated, self.results[states:]):
      old = leaf_of(base(trace.outer[h]))
      if r.root in live and old in graph.leaves and shape(old) == shape(r.root) and old.dtype is r.root.dtype:  # type: ignore[arg-type, union-attr]
        inout.setdefault(live.index(r.root), graph.leaves.index(old))  # type: ignore[arg-type]
    self.live = live
    self.program = None
    if live:
      self.program = Program(simplify(graph.roots), len(graph.leaves), self.device, inout)

  def fits(self) -> bool:
    """Do the tensors from outside still have the shapes and the memory layout that they had?"""
    for h, (s, d, steps) in self.known.items():
      last = self.last.get(h)
      if last is None or last() is not h._uop:
        if leaf_of(base(h._uop)) is None:
          h.realize()
        if shape(h._uop) != s or h._uop.dtype is not d or chain(h._uop) != steps:
          return False
    return all(len({leaf_of(base(h._uop)) for h in hs}) == 1 for hs in self.holders.values() if len(hs) > 1)

  def __call__(self, tensors: Sequence[Tensor]) -> Any:
    bound = {leaf: leaf_of(base(hs[0]._uop)) for leaf, hs in self.holders.items()}
    for p, n in self.given.items():
      bound[p] = leaf_of(base(tensors[n]._uop))
    made: dict[UOp, UOp] = {}
    if self.program is not None:
      memory = [(bound[u] if u in bound else u).arg[0] for u in self.inputs]  # type: ignore[union-attr]
      inplace = self.program.inplace
      taken = {self.inputs[i] for i in inplace.values()}
      watch = {u: weakref.ref(bound.pop(u)) for u in taken}  # type: ignore[arg-type]
      before = [(h, h._uop if not self.holds(h, taken) else None) for h in self.updated]
      for h in self.updated:
        h._uop = NOWHERE
      try:
        for i in inplace.values():
          if watch[self.inputs[i]]() is not None:  # somebody else still sees this value
            memory[i] = memory[i].copy()
        outputs = [memory[inplace[n]] if n in inplace else Buffer(self.device, u.dtype, numel(u)) for n, u in enumerate(self.live)]
        self.program.run(memory, outputs)
      except BaseException:
        self.restore(before, {u: memory[self.inputs.index(u)] for u in taken})
        raise
      made = {u: buffer(b, shape(u), u.dtype) for u, b in zip(self.live, outputs)}
    return self.deliver(made, bound)

  def holds(self, h: Tensor, taken: set[UOp]) -> bool:
    return any(h in self.holders[u] for u in taken)

  def restore(self, before: list, memory: dict[UOp, Buffer]) -> None:
    """After a failure every tensor is bound to memory again: what was updated in place may hold new values."""
    where = {h: u for u in memory for h in self.holders[u]}
    for h, node in before:
      if node is None:
        u = where[h]
        bind(h, viewed(buffer(memory[u], shape(u), u.dtype), self.known[h][2]), h in self.tagged)
      else:
        h._uop = node

  def deliver(self, made: dict[UOp, UOp], bound: dict) -> Any:
    """Give results to the caller, gradients and state to their tensors."""

    def value(r: Result) -> UOp:
      leaf = made.get(r.root) or bound.get(r.root)
      if leaf is None:
        leaf = leaf_of(r.root) or buffer(Buffer(self.device, r.root.dtype, 0), shape(r.root), r.root.dtype)
      return viewed(leaf, r.steps)

    results = iter(self.results)
    out = mapped(lambda _: Tensor(value(next(results))), self.result)
    for h in self.grads:
      h.grad = Tensor(value(next(results)))
    for h in self.updated:
      bind(h, value(next(results)), h in self.tagged)
      self.last[h] = weakref.ref(h._uop)
    return out


def bind(h: Tensor, node: UOp, tagged: bool) -> None:
  """Give a tensor a new node; a leaf that gradients are taken of stays one."""
  h._uop = node
  if tagged:
    h._tag(node)


def jit(fn: Callable | None = None) -> Callable:
  """Capture a function of tensors - part of a training step, or all of it - as one routine.

  Arguments and results are tensors, and nested lists, tuples and dicts of them. A Python number given as an argument is
  a 0-d tensor inside, so new values compile nothing; any other value is part of what a capture is looked up by, and one
  that the function reaches by closure is a constant of the capture. Tensors that the function assigns to (parameters,
  optimizer state, the random generator) are updated by each call. `realize()` inside does nothing; asking for a value
  inside (`item()`, `numpy()`, `if tensor:`) is a JitError. Results of earlier calls are never overwritten.

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
  captured: dict[Any, Routine] = {}
  lock = threading.RLock()

  @functools.wraps(fn)
  def run(*args: Any, **kwargs: Any) -> Any:
    if local.current is not None:
      return fn(*args, **kwargs)
    tensors: list[Tensor] = []
    tree = numbered((args, kwargs), tensors)
    for t in tensors:
      if leaf_of(base(t._uop)) is None or chain(t._uop):
        contiguous(t)
    devices = {t.device for t in tensors}
    device = devices.pop() if len(devices) == 1 else Device.DEFAULT
    key = (signature(tree), tuple((t.shape, t.dtype, t.requires_grad) for t in tensors), device, local.gradients, Tensor.training)
    with lock:
      routine = captured.get(key)
      if routine is None or not routine.fits():
        routine = captured[key] = Routine(fn, tree, tensors, device)
      return routine(tensors)

  run.routines = captured  # type: ignore[attr-defined]
  return run


TinyJit = jit


def numbered(tree: Any, tensors: list[Tensor]) -> Any:
  """The arguments with Python numbers as tensors; all tensors are appended to `tensors`."""
  if isinstance(tree, Tensor):
    tensors.append(tree)
    return tree
  if isinstance(tree, dict):
    return {k: numbered(v, tensors) for k, v in tree.items()}
  if isinstance(tree, (list, tuple)):
    items = [numbered(v, tensors) for v in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
  if isinstance(tree, (int, float, np.generic)) and not isinstance(tree, bool):
    tensors.append(Tensor(tree))
    return tensors[-1]
  return tree


def signature(tree: Any) -> Any:
  """What of the arguments a capture depends on besides shapes and types."""
  if isinstance(tree, Tensor):
    return Tensor
  if isinstance(tree, dict):
    return ("dict", *((k, signature(v)) for k, v in tree.items()))
  if isinstance(tree, (list, tuple)):
    return (type(tree), *map(signature, tree))
  return tree


def contiguous(t: Tensor) -> None:
  """An argument is bound as memory: what is lazy or a view is computed first."""
  if leaf_of(base(t._uop)) is not None and chain(t._uop):
    t._uop = t.contiguous()._uop if not t.requires_grad else t._uop
  t.realize()
