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
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.program import Program
from mini.engine.realize import Numbered, leaf_of, realize
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


def chain_to(u: UOp, root: UOp) -> tuple:
  """The views that lead from root to u."""
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


def leaf_beneath(h: Tensor) -> UOp:
  leaf = leaf_of(base(h._uop))
  assert leaf is not None
  return leaf


def layout(u: UOp) -> tuple:
  """What a routine relies on of a tensor from outside: its shape and type, and of which memory it is which view."""
  leaf = leaf_of(base(u))
  return shape(u), u.dtype, chain_to(u, base(u)), shape(leaf)  # type: ignore[arg-type]


class Routine:
  """A traced function, compiled.

  Memory is named by (kind, n): ("given", n) the n-th argument, ("state", n) what the tensors `holders[n]` from outside
  are views of, ("fixed", leaf) what the function made of Python data, ("made", n) the n-th computed node.
  """

  def __init__(self, fn: Callable, tree: Any, tensors: Sequence[Tensor], device: str):
    self.device = device
    trace = Trace()
    stand_ins = [Tensor(buffer(StandIn(device), t.shape, t.dtype)) for t in tensors]
    placeholders = [s._uop for s in stand_ins]
    for s, t in zip(stand_ins, tensors):
      s._trace = trace  # type: ignore[assignment]
      if t.requires_grad:
        s.requires_grad_()
    waiting = iter(stand_ins)
    args, kwargs = mapped(lambda _: next(waiting), tree)
    local.current = trace  # type: ignore[assignment]
    try:
      result = fn(*args, **kwargs)
      returned: list[Tensor] = []
      mapped(returned.append, result)
      for t in returned:
        trace.read(t)
      self.result = mapped(lambda _: SLOT, result)
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
    """What is computed, what is bound, and how each result is a view of either. No node from outside is kept: as long as
    somebody holds one, its memory is not written."""
    outer = {h: leaf_of(base(node)) for h, node in trace.outer.items()}
    leaves = list(dict.fromkeys(outer.values()))
    where: dict[Any, tuple[str, Any]] = {leaf: ("state", n) for n, leaf in enumerate(leaves)}
    where.update({p: ("given", n) for n, p in enumerate(placeholders)})
    self.holders = [[h for h, leaf in outer.items() if leaf is mine] for mine in leaves]
    self.home = {h: where[leaf] for h, leaf in outer.items()}
    self.known = {h: layout(node) for h, node in trace.outer.items()}
    self.tagged = {h for h, node in trace.outer.items() if node.op == "tag"}
    self.last: dict[Tensor, weakref.ref] = {}

    states, kept = len(nodes) - len(self.updated), len(nodes) - len(self.updated) - len(self.grads)
    used: dict[UOp, int] = {}  # how much of a node, such as a flat buffer of parameters, is kept as views of it
    for u in dict.fromkeys(map(untagged, nodes[kept:])):
      used[base(u)] = used.get(base(u), 0) + numel(u)
    whole = {b for b, n in used.items() if n >= numel(b) - numel(b) // 8}
    roots = [base(u) if leaf_of(base(u)) or (n >= kept and base(u) in whole) else untagged(u) for n, u in enumerate(nodes)]
    computed = list(dict.fromkeys(r for r in roots if leaf_of(r) is None))
    self.kinds = [(u.dtype, shape(u)) for u in computed]
    self.live = [n for n, u in enumerate(computed) if numel(u)]
    graph = Numbered([computed[n] for n in self.live], lift=False, device=self.device)
    self.inputs = [where.get(leaf) or ("fixed", leaf) for leaf in graph.leaves]
    self.results: list[tuple[tuple[str, Any], tuple]] = []  # (memory, the views that lead to the result)
    for u, root in zip(nodes, roots):
      leaf = leaf_of(root)
      memory = ("made", computed.index(root)) if leaf is None else where.get(leaf) or ("fixed", leaf)
      self.results.append((memory, chain_to(u, root)))
    inout: dict[int, int] = {}
    for h, root in zip(self.updated, roots[states:]):
      old = outer[h]
      if leaf_of(root) is None and old in graph.leaves and (shape(old), old.dtype) == (shape(root), root.dtype) and numel(root):  # type: ignore[arg-type, union-attr]
        inout.setdefault(self.live.index(computed.index(root)), graph.leaves.index(old))  # type: ignore[arg-type]
    self.program = Program(simplify(graph.roots), len(graph.leaves), self.device, inout) if self.live else None

  def fits(self) -> bool:
    """Have the tensors from outside still the shapes, and the views of shared memory, that they had?"""
    for h, known in self.known.items():
      last = self.last.get(h)
      if last is not None and last() is h._uop:
        continue
      if leaf_of(base(h._uop)) is None:
        h.realize()
      if layout(h._uop) != known:
        return False
    return all(len({leaf_beneath(h) for h in hs}) == 1 for hs in self.holders if len(hs) > 1)

  def __call__(self, tensors: Sequence[Tensor]) -> Any:
    bound: dict[tuple[str, Any], UOp] = {("state", n): leaf_beneath(hs[0]) for n, hs in enumerate(self.holders)}
    bound.update({("given", n): leaf_beneath(t) for n, t in enumerate(tensors)})
    if self.program is not None:
      memory: list[Buffer] = [(x if kind == "fixed" else bound[kind, x]).arg[0] for kind, x in self.inputs]
      inplace = self.program.inplace
      taken = {self.inputs[i]: i for i in inplace.values()}
      watch = [(i, weakref.ref(bound.pop(name))) for name, i in taken.items()]
      before = [(h, None if self.home[h] in taken else h._uop) for h in self.updated]
      for h in self.updated:
        h._uop = NOWHERE
      for h in self.grads:
        h.grad = None  # not read, or it would be among `updated`
      try:
        for i, leaf in watch:
          if leaf() is not None:  # somebody else still sees this value
            memory[i] = memory[i].copy()
        outputs = [memory[inplace[k]] if k in inplace else self.fresh(n) for k, n in enumerate(self.live)]
        outputs = [outputs[m] for m in self.program.same]
        self.program.run(memory, outputs)
      except BaseException:
        for h, node in before:  # every tensor has memory again; what is updated in place may hold new values
          if node is None:
            _, dtype, steps, s = self.known[h]
            node = viewed(buffer(memory[taken[self.home[h]]], s, dtype), steps)
            bind(h, node, h in self.tagged)
          else:
            h._uop = node
        raise
      bound.update({("made", n): buffer(b, self.kinds[n][1], self.kinds[n][0]) for n, b in zip(self.live, outputs)})
    return self.deliver(bound)

  def fresh(self, n: int) -> Buffer:
    dtype, s = self.kinds[n]
    return Buffer(self.device, dtype, prod(s))

  def deliver(self, bound: dict[tuple[str, Any], UOp]) -> Any:
    """Results go to the caller, gradients and state to their tensors."""
    for n, (dtype, s) in enumerate(self.kinds):
      if n not in self.live:
        bound["made", n] = buffer(self.fresh(n), s, dtype)
    values = (viewed(name[1] if name[0] == "fixed" else bound[name], steps) for name, steps in self.results)
    out = filled(self.result, values)
    for h in self.grads:
      h.grad = Tensor(next(values))
    for h in self.updated:
      bind(h, next(values), h in self.tagged)
      self.last[h] = weakref.ref(h._uop)
    return out


SLOT = object()  # where a tensor stands in what a function returned


def filled(tree: Any, values: Iterator[UOp]) -> Any:
  """The function's result with new tensors in its slots."""
  if tree is SLOT:
    return Tensor(next(values))
  if isinstance(tree, dict):
    return {k: filled(v, values) for k, v in tree.items()}
  if isinstance(tree, (list, tuple)):
    items = [filled(v, values) for v in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
  return tree


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
      as_memory(t)
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


def as_memory(t: Tensor) -> None:
  """An argument is bound as memory: what is lazy, or a view of some, is computed first."""
  node = untagged(t._uop)
  if leaf_of(node) is None:
    leaf = realize([node])[0]
    bind(t, leaf, t._uop.op == "tag")
