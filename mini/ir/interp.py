"""The reference interpreter: what every stage means, in NumPy. It is the oracle of the tests, and DEV=INTERP.

`evaluate` runs a tensor graph; `run_kernel` a kernel, with any recipe applied, by making each range an axis.
float16 and bfloat16 are rounded after every operation, as on every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.ir.contract import products, sum_of_products
from mini.ir.graph import shape
from mini.ir.kernel import access, all_ranges, directions, memory_shape, stage_index
from mini.ir.ops import OPS, REDUCERS, identity, is_elementwise
from mini.ir.outside import out_of_bounds
from mini.ir.uop import UOp, closed, is_condition, rsize, toposort
from mini.types import DType, dtypes, to_bfloat16


def held(x: np.ndarray, dtype: DType) -> np.ndarray:
  """x as the interpreter holds a value of this type."""
  x = np.asarray(x)
  if dtype is dtypes.bfloat16:
    return to_bfloat16(x)
  return x if x.dtype == dtype.np else x.astype(dtype.np)


def convert(x: np.ndarray, dtype: DType) -> np.ndarray:
  """cast: float to integer rounds towards zero, wraps to smaller integers. What int32 or int64 do not hold becomes what
  the processor makes of it."""
  with np.errstate(all="ignore"):
    if x.dtype.kind == "f" and dtype.kind in "iu" and dtype.itemsize < 8 and dtype is not dtypes.int32:
      return x.astype(np.int64).astype(dtype.np)
    return held(x, dtype)


def bits_as(x: np.ndarray, source: DType, dtype: DType) -> np.ndarray:
  from mini.types import from_storage, to_storage

  return from_storage(np.ascontiguousarray(to_storage(x, source)).view(dtype.storage), dtype).reshape(x.shape)


def elementwise(u: UOp, s: list[np.ndarray]) -> np.ndarray:
  with np.errstate(all="ignore"):
    if u.op == "cast":
      return convert(s[0], u.dtype)
    if u.op == "bitcast":
      return bits_as(s[0], u.src[0].dtype, u.dtype)
    meaning = OPS[u.op].numpy
    assert meaning is not None, f"{u.op} has no NumPy meaning"
    if u.dtype.kind == "b" and u.op in ("add", "mul", "max"):  # on booleans: or, and, or
      meaning = np.logical_and if u.op == "mul" else np.logical_or
    return held(meaning(*s), u.dtype)


def accumulate(kind: str, x: np.ndarray, axes: tuple[int, ...], dtype: DType) -> np.ndarray:
  with np.errstate(all="ignore"):
    wide = np.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype.np
    return held(
      REDUCERS[kind].reduce(x, axis=axes, keepdims=True, dtype=None if kind == "max" else wide), dtype
    )


def checked(index: np.ndarray, size: int, what: str) -> np.ndarray:
  if index.size and (index.min() < 0 or index.max() >= size):
    bad = index.min() if index.min() < 0 else index.max()
    raise out_of_bounds(what, int(bad), size)
  return index.astype(np.int64)


def _scatter(base: np.ndarray, index: np.ndarray, value: np.ndarray, arg: tuple[str, int]) -> np.ndarray:
  kind, axis = arg
  out = base.copy()
  grid = list(np.ogrid[tuple(map(slice, index.shape))])
  grid[axis] = checked(index, base.shape[axis], "scatter")
  if kind == "set":
    out[tuple(grid)] = value
  else:
    with np.errstate(all="ignore"):
      REDUCERS[kind].at(out, tuple(grid), value)
  return out


def node(u: UOp, s: list[np.ndarray], memory: Callable[[UOp], np.ndarray]) -> np.ndarray:
  """One node of a graph, from the values of its sources."""
  if u.op == "buffer":
    return memory(u)
  if u.op == "const":
    return np.asarray(u.arg, u.dtype.np)
  if u.op == "iota":
    return held(np.arange(u.arg), u.dtype)
  if is_elementwise(u.op):
    return np.broadcast_to(elementwise(u, s), shape(u))
  x = s[0]
  if u.op == "reshape":
    return x.reshape(u.arg)
  if u.op == "expand":
    return np.broadcast_to(x, u.arg)
  if u.op == "permute":
    return x.transpose(u.arg)
  if u.op == "pad":
    return np.pad(x, u.arg) if u.arg else x
  if u.op == "shrink":
    return x[tuple(slice(lo, hi) for lo, hi in u.arg)]
  if u.op == "flip":
    return np.flip(x, u.arg)
  if u.op == "reduce":
    return accumulate(u.arg[0], x, u.arg[1], u.dtype)
  if u.op == "scan":
    with np.errstate(all="ignore"):
      return held(REDUCERS[u.arg[0]].accumulate(x, axis=u.arg[1], dtype=x.dtype), u.dtype)
  if u.op == "gather":
    return np.take_along_axis(x, checked(s[1], x.shape[u.arg], "gather"), u.arg)
  if u.op == "scatter":
    return _scatter(x, s[1], s[2], u.arg)
  if u.op == "cat":
    return np.concatenate(s, axis=u.arg)
  if u.op in ("stage", "detach", "copy", "shard", "tag", "after"):
    return x
  if u.op == "call":
    return held(u.arg[0](s, u.arg[1], u.dtype), u.dtype)
  raise ValueError(f"{u.op} is not an operation of a tensor graph")


Watcher = Callable[
  [UOp, list[np.ndarray], np.ndarray], None
]  # sees a node, the values of its sources, and its own


def evaluate(
  roots: list[UOp], memory: Callable[[UOp], np.ndarray], watcher: Watcher | None = None
) -> list[np.ndarray]:
  """The values of the roots; `memory` gives the array of each buffer leaf."""
  order = toposort(*roots)
  users: dict[UOp, int] = dict.fromkeys(roots, 1)
  for u in order:
    for x in u.src:
      users[x] = users.get(x, 0) + 1
  unmade = products(order, roots)
  val: dict[UOp, Any] = {}
  for u in order:
    if u in unmade:
      continue
    read = u.src[0].src if u.op == "reduce" and u.src[0] in unmade else u.src
    s = [val[x] for x in read]
    if read is u.src:
      val[u] = node(u, s, memory)
    elif (found := sum_of_products(s[0], s[1], u.arg[1])) is not None:
      val[u] = np.broadcast_to(found, shape(u))
    else:
      val[u] = node(u, [node(u.src[0], s, memory)], memory)
    if watcher is not None:
      watcher(u, s, val[u])
    for x in read:
      users[x] -= 1
      if not users[x]:
        val[x] = None  # no one reads it again
  return [val[r] for r in roots]


# ---------------------------------------------------------------- kernels

INDEX = {"add": np.add, "mul": np.multiply, "div": np.floor_divide, "mod": np.mod, "min": np.minimum,
         "lt": np.less, "and": np.logical_and}  # fmt: skip
CELLS = 1 << 22  # a kernel with more iterations runs in slices of its outermost range


def unwritten(s: tuple[int, ...], dtype: DType) -> np.ndarray:
  """Memory that nothing was written to yet: NaN where the type has it."""
  return np.full(s, np.nan if dtype.kind == "f" else 0, dtype.np)


def run_kernel(kernel: UOp, data: dict[str, np.ndarray]) -> None:
  """Run a kernel on arrays by the names of its parameters. What it writes is written in place, or made if missing.

  Every range is an axis: a value is an array with one axis per range of the kernel, of length 1 where it does not
  depend on that range. So a kernel with any recipe applied runs without a Python loop.
  """
  for u in toposort(kernel):
    if u.op == "param":
      name, s = u.arg
      held_already = data.setdefault(name, unwritten(s, u.dtype))
      assert held_already.dtype == u.dtype.np, f"{name} is {held_already.dtype}, not {u.dtype.np}"
      data[name] = held_already.reshape(s)
  ranges = all_ranges(kernel)
  scanned = {u.src[1] for u in toposort(kernel) if u.op == "scan"}
  extents = {u.free.union(closed(u)) for u in toposort(kernel)}  # the axes that values have
  sliced = 0
  while sliced < len(closed(kernel)) and ranges[sliced] not in scanned:
    if max(math.prod(rsize(r) for r in e.difference(ranges[:sliced])) for e in extents) <= CELLS:
      break
    sliced += 1
  for at in np.ndindex(*(rsize(r) for r in ranges[:sliced])):
    _Slice(kernel, data, ranges, at).run()


def run_schedule(program: UOp, data: dict[str, np.ndarray]) -> None:
  """Run the kernels of a schedule in order, on arrays by the names of its arguments; outputs are made if missing."""
  plan = program.arg
  memory = {m.name: data.get(m.name, unwritten(m.shape, m.dtype)) for m in plan.memory}
  for run in plan.runs:
    if run.kernel is None:
      memory[run.target] = memory[run.source].reshape(memory[run.target].shape).copy()
      continue
    kernel = program.src[run.kernel]
    touched = {}
    for p, (n, start) in zip(directions(kernel), run.parts):
      touched[p.arg[0]] = memory[n].reshape(-1)[start:][: math.prod(p.arg[1])].reshape(p.arg[1])
    run_kernel(kernel, touched)
  data.update({m.name: memory[m.name].reshape(m.shape) for m in plan.memory if isinstance(m.where, str)})


class _Slice:
  """One pass over the kernel, with its first ranges fixed at `at`."""

  def __init__(self, kernel: UOp, data: dict[str, np.ndarray], ranges: list[UOp], at: tuple[int, ...]):
    self.kernel, self.data, self.ranges = kernel, data, ranges
    self.axis = {r: n for n, r in enumerate(ranges)}
    self.ones = (1,) * len(ranges)
    self.val: dict[UOp, Any] = {}
    self.memory: dict[UOp, np.ndarray] = {}
    self.unmade = products(toposort(kernel))
    for r, n in self.axis.items():
      values = np.array([at[n]]) if n < len(at) else np.arange(rsize(r))
      self.val[r] = values.reshape(self.ones[:n] + (-1,) + self.ones[n + 1 :])

  def run(self) -> None:
    for u in toposort(self.kernel):
      if u.op == "store":
        self.store(u)
      elif u.op == "stage":
        self.stage(u)
      elif u.op not in ("range", "param", "kernel") and u not in self.unmade:
        self.val[u] = self.value(u)

  def value(self, u: UOp) -> np.ndarray:
    s: list[Any] = [self.val.get(x) for x in u.src]
    if u.op == "const":
      return np.asarray(u.arg, u.dtype.np).reshape(self.ones)
    if u.op == "load":
      return self.load(u)
    if u.op == "reduce":
      axes = tuple(self.axis[r] for r in closed(u))
      if u.src[0] in self.unmade:
        a, b = (self.val[x] for x in u.src[0].src)
        found = (
          sum_of_products(a, b, axes)
          if not any(r.src for r in closed(u))
          and all(a.shape[n] == b.shape[n] == rsize(self.ranges[n]) for n in axes)
          else None
        )
        if found is not None:
          return found
        s[0] = elementwise(u.src[0], [a, b])
      if any(r.src for r in closed(u)):
        s[0] = np.where(self.taken(closed(u)), s[0], identity(u.arg.what, u.dtype))
      return accumulate(u.arg.what, self.along(s[0], closed(u)), axes, u.dtype)
    if u.op == "scan":
      with np.errstate(all="ignore"):
        x = self.along(s[0], (u.src[1],))
        return held(REDUCERS[u.arg].accumulate(x, axis=self.axis[u.src[1]], dtype=x.dtype), u.dtype)
    if is_condition(u) or (u.dtype is dtypes.index and u.op != "cast"):
      return INDEX[u.op](*s)
    return elementwise(u, s)

  def taken(self, rs: tuple[UOp, ...]) -> np.ndarray:
    """Are the ranges at values that they take?"""
    taken = np.ones(self.ones, bool)
    for r in rs:
      if r.src:
        taken = taken & (self.val[r.src[0]] <= self.val[r]) & (self.val[r] < self.val[r.src[1]])
    return taken

  def along(self, x: np.ndarray, rs: tuple[UOp, ...]) -> np.ndarray:
    """x, with an axis of full length for each of the ranges."""
    full = [self.val[r].size if r in rs else n for n, r in zip(x.shape, self.ranges)]
    return np.broadcast_to(x, full)

  def outer(self, stage: UOp) -> list[Any]:
    """A stage's memory exists once for every combination of the ranges that are free in it."""
    own = [self.val[r] for r in self.ranges]  # counted from 0, also where a slice is at another value
    return [np.arange(v.size).reshape(v.shape) if r in stage.free else 0 for r, v in zip(self.ranges, own)]

  def cells(self, u: UOp) -> tuple[Any, ...]:
    """Where a load or store reaches, as a fancy index; what is gated off goes to cell 0."""
    memory, index, gate = access(u)
    out = self.outer(memory) if memory.op == "stage" else []
    for i, n in zip(index, memory_shape(memory)):
      i = np.where(self.val[gate], self.val[i], 0)
      assert i.size == 0 or (i.min() >= 0 and i.max() < n), f"index {i.min()}..{i.max()} of an axis of {n}"
      out.append(i)
    return tuple(out)

  def load(self, u: UOp) -> np.ndarray:
    memory, _, gate = access(u)
    cells = self.data[memory.arg[0]] if memory.op == "param" else self.memory[memory]
    gate = self.val[gate]
    if cells.size == 0:
      return np.zeros(gate.shape, u.dtype.np)
    got = cells[self.cells(u)]
    return np.where(gate, got if got.ndim else got.reshape(self.ones), np.zeros((), u.dtype.np))

  def stage(self, u: UOp) -> None:
    copies = tuple(self.val[r].size if r in u.free else 1 for r in self.ranges)
    self.memory[u] = unwritten(copies + u.arg.shape, u.dtype)
    *cells, value, taken = np.broadcast_arrays(
      *self.outer(u), *(self.val[i] for i in stage_index(u)), self.val[u.src[0]], self.taken(closed(u))
    )
    self.memory[u][tuple(i[taken] for i in cells)] = value[taken]

  def store(self, u: UOp) -> None:
    target, index, gate = access(u)
    array, on = self.data[target.arg[0]], self.val[gate] & self.taken(closed(self.kernel))
    if not index:  # one cell
      array = array.reshape(1)
    where = [self.val[i] for i in index] or [np.zeros(self.ones, np.int64)]
    if u.arg:  # every iteration accumulates, also along a range that nothing here depends on
      on = np.broadcast_to(on, [self.val[r].size if r in closed(self.kernel) else 1 for r in self.ranges])
    *at, value, on = np.broadcast_arrays(*where, self.val[u.src[1]], on)
    cells = tuple(i[on] for i in at)
    if u.arg is None:
      array[cells] = value[on]
    else:
      with np.errstate(all="ignore"):
        REDUCERS[u.arg].at(array, cells, value[on])
