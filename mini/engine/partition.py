"""A graph over several devices as graphs of one device each, and the copies between them.

A value's level is how often what it is made of has come from another device. What has no memory beneath it (constants,
random bits) is computed wherever it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mini.engine.device_of import place
from mini.ir.graph import buffer, full, numel, reshape, shape
from mini.ir.uop import UOp, substitute, toposort, uop
from mini.types import DType, dtypes


class Value(NamedTuple):
  """What is handed on: an input, a result, or what is copied from one device to another."""

  device: str
  dtype: DType
  shape: tuple[int, ...]


class Transfer(NamedTuple):
  """A value that is copied to another device, as another value."""

  source: int
  target: int
  level: int  # of the target


class Share(NamedTuple):
  """What one device computes: graphs over leaves in0, in1, ..., which are `inputs`.
  These and `outputs` are numbers of values."""

  device: str
  roots: list[UOp]
  inputs: list[int]
  levels: list[int]  # of the inputs
  outputs: list[int]


def is_input(u: UOp) -> bool:
  return u.op == "buffer" and u.arg[0][0] == "i"


def crosses(u: UOp) -> bool:
  """Does u bring memory to another device?"""
  return u.op == "copy" and place(u.src[0]) not in ("", u.arg)


class Division:
  """The first values are the inputs of the graph."""

  def __init__(
    self, roots: Sequence[UOp], devices: Sequence[str], homes: Sequence[str], free: Sequence[bool] = ()
  ):
    """roots: over leaves in0, in1, ..., which are on `devices`; those that are `free` are read on any. homes: where
    each root is to be."""
    self.inputs = len(devices)
    self.free = {n for n, is_free in enumerate(free) if is_free}
    self.graph = self.with_devices(roots, devices)
    order = toposort(*self.graph)
    level: dict[UOp, int] = {}
    for u in order:
      level[u] = max((level[s] for s in u.src), default=0) + crosses(u)
    leaves = {int(u.arg[0][2:]): u for u in order if is_input(u)}
    unread = full((), False, dtypes.bool)
    self.values = [
      Value(d, u.dtype, shape(u)) for n, d in enumerate(devices) for u in [leaves.get(n, unread)]
    ]
    self.made: dict[UOp, int] = {}  # the values of nodes
    wanted: dict[str, dict[UOp, int]] = {}  # what each device has to compute
    self.transfers: list[Transfer] = []
    for u in order:
      if crosses(u) and numel(u):
        source = self.value(u.src[0], "", wanted)
        self.made[u] = self.new(u.arg, u)
        self.transfers.append(Transfer(source, self.made[u], level[u]))
    self.roots = [self.result(u, home, wanted) for u, home in zip(self.graph, homes)]
    self.level = {v: level[u] for u, v in self.made.items()}
    self.shares = [self.share(d, mine) for d, mine in wanted.items()]

  def with_devices(self, roots: Sequence[UOp], devices: Sequence[str]) -> tuple[UOp, ...]:
    """The roots over leaves that say where they are."""
    graph, table = uop("graph", roots[0].dtype, tuple(roots)), {}
    for u in toposort(graph):
      if is_input(u) and int(u.arg[0][2:]) not in self.free:
        table[u] = buffer(u.arg[0], u.arg[1], u.dtype, devices[int(u.arg[0][2:])])
    return substitute(graph, table).src

  def new(self, device: str, u: UOp) -> int:
    self.values.append(Value(device, u.dtype, shape(u)))
    return len(self.values) - 1

  def value(self, u: UOp, home: str, wanted: dict[str, dict[UOp, int]]) -> int:
    """The number of the value of u, which is an input, or which some device is to compute: at home, if anywhere."""
    while u.op == "reshape" or (u.op == "copy" and place(u.src[0]) == u.arg):
      u = u.src[0]
    if is_input(u):
      return int(u.arg[0][2:])
    if u not in self.made:
      device = place(u) or home
      self.made[u] = wanted.setdefault(device, {})[u] = self.new(device, u)
    return self.made[u]

  def result(self, u: UOp, home: str, wanted: dict[str, dict[UOp, int]]) -> int:
    """The value of a root; of what is an input, a copy."""
    v = self.value(u, home, wanted)
    if v >= self.inputs:
      return v
    self.transfers.append(Transfer(v, self.new(home, u), 0))
    return self.transfers[-1].target

  def share(self, device: str, wanted: dict[UOp, int]) -> Share:
    inputs: dict[int, UOp] = {}
    memo: dict[UOp, UOp] = {}
    stack = [(u, False) for u in reversed(wanted)]
    while stack:
      u, done = stack.pop()
      if u in memo:
        continue
      if crosses(u) and not numel(u):
        memo[u] = full(shape(u), 0, u.dtype)
      elif is_input(u) or crosses(u):
        n = int(u.arg[0][2:]) if is_input(u) else self.made[u]
        leaf = inputs.setdefault(n, buffer(f"in{len(inputs)}", self.values[n].shape, u.dtype))
        memo[u] = reshape(leaf, shape(u))
      elif done:
        src = tuple(memo[s] for s in u.src)
        memo[u] = src[0] if u.op == "copy" else uop(u.op, u.dtype, src, u.arg)
      else:
        stack.append((u, True))
        stack.extend((s, False) for s in reversed(u.src))
    arrives = {t.target: t.level for t in self.transfers}
    levels = [arrives.get(v, 0) for v in inputs]
    return Share(device, [memo[u] for u in wanted], list(inputs), levels, list(wanted.values()))

  def taken_over(self, share: Share, inout: Mapping[int, int]) -> dict[int, int]:
    """{output of a share: its input}, of roots and inputs of the graph. Where a value is copied to another device, no
    other is written over it, nor it over another: when would that be?"""
    fixed = self.free.union(t.source for t in self.transfers)
    return {
      share.outputs.index(v): share.inputs.index(i)
      for n, i in inout.items()
      if (v := self.roots[n]) in share.outputs and i in share.inputs and not {v, i} & fixed
    }
