"""Graphs become memory: the one way in which anything is computed.

A graph is looked up by its structure. Its leaves are replaced by numbered ones, and so are its Python numbers (a
learning rate, a step count): a loop that builds the same graph again with other data schedules and compiles nothing.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mini.config import config
from mini.engine.buffer import Buffer, leaf_of
from mini.engine.device_of import device_of, place
from mini.engine.dynamic_shapes import is_sized, plain
from mini.engine.places import known_by, memory_of, part_at
from mini.engine.sharded import Sharded
from mini.engine.sole import overwritten, read_before
from mini.engine.spmd import Spread, is_spread, layout_of, on_devices, spread
from mini.ir.extern import calling, refuse_within
from mini.ir.graph import buffer, numel, reshape, shape
from mini.ir.inline import inlined
from mini.ir.replace import replaced
from mini.ir.rules import rules_here
from mini.ir.sizes import Size, Variable
from mini.ir.uop import UOp, const, uop
from mini.stats import stats
from mini.types import MiniError, packed

MARKS = ("tag", "detach")  # they compute nothing
PROGRAMS = 256  # structures that are remembered
_programs: dict[tuple, Any] = {}
# of nodes `invoke`; apart, as a number that changes makes a new one in each step
_invoked: dict[tuple, Any] = {}
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def realize(roots: Sequence[UOp]) -> list[UOp]:
  """The roots as buffer leaves, computed together. What has no memory beneath it does not remember its leaf: who asks
  next may want it on another device."""
  if calling.get():
    refuse_within()
  bare = [*map(stripped, roots)]
  todo = [u for u in dict.fromkeys(bare) if leaf_of(u) is None]
  with _lock:
    if todo:
      compute(todo)
    leaves = [reshaped(leaf, u) for u, leaf in zip(roots, map(leaf_of, bare)) if leaf]
    for u in todo:
      if not place(u):
        del u.memo["leaf"]
  return leaves


def reshaped(leaf: UOp, u: UOp) -> UOp:
  """The leaf that holds u, given one that holds it in another shape."""
  if shape(leaf) == shape(u):
    return leaf
  if isinstance(leaf.arg[0], Sharded) and not leaf.arg[0].fits(shape(u)):
    compute([u])
    return u.memo["leaf"]
  return buffer(leaf.arg[0], shape(u), u.dtype)


def stripped(u: UOp) -> UOp:
  """What only names the same memory otherwise is left out."""
  while leaf_of(u) is None and u.op in ("reshape", "detach", "tag"):
    u = u.src[0]
  return u


def compute(todo: list[UOp]) -> None:
  """Each gets a leaf; parts on several devices are computed together. Sizes that vary are its arguments."""
  if Variable.used and any(map(is_sized, todo)):
    return compute_as(todo, [plain(u) for u in inlined(todo)])
  if not any(map(is_spread, todo)):
    run([u for u in todo if brought(u) is None])
    return
  whole = inlined(todo)
  if whole != todo:
    return compute_as(todo, whole)
  values = spread(todo)
  nodes = [stripped(p) for x in values for p in (on_devices(x) if isinstance(x, Spread) else [x])]
  for n in nodes:
    brought(n)
  run(list(dict.fromkeys(u for u in nodes if leaf_of(u) is None)))
  rest = iter(nodes)
  for u, x in zip(todo, values):
    found = [next(rest) for _ in (x.parts if isinstance(x, Spread) else [x])]
    parts = [leaf.arg[0] for n in found if (leaf := leaf_of(n))]
    where = layout_of(x)
    b = parts[0] if isinstance(where, str) else Sharded(parts, where.outer)
    u.memo["leaf"] = buffer(b, shape(u), u.dtype)


def compute_as(todo: list[UOp], others: Sequence[UOp], how: Callable[[list[UOp]], None] = compute) -> None:
  """Each gets the leaf of another node, which has its value."""
  found = [*map(stripped, others)]
  missing = [u for u in dict.fromkeys(found) if brought(u) is None]
  if missing:
    how(missing)
  for u, v in zip(todo, found):
    leaf = leaf_of(v)
    assert leaf is not None
    u.memo["leaf"] = reshaped(leaf, u)


def run(todo: list[UOp], as_it_is: bool = False) -> None:
  """Each gets a leaf: one program."""
  if not todo:
    return
  rules = rules_here()
  if rules.replacements and not as_it_is:
    return compute_as(todo, replaced(inlined(todo), rules.replacements, leaf_of), partial(run, as_it_is=True))
  run(read_before(todo))
  found = Structure(todo)
  over = overwritten(todo, found.leaves, found.index)
  (program, live), leaves, numbers = program_of(todo, found, over, rules)
  outputs: list[Any] = [None] * len(todo)
  try:
    for n, k in enumerate(live):
      u = todo[n]
      if k is None:
        outputs[n] = Buffer(device_of(u), u.dtype, 0)
      elif k in program.inplace:
        old = leaves[program.inplace[k]].arg[0]
        outputs[n] = Buffer.over(old.memory, old.device, u.dtype, old.size)
      elif program.same[k] == k:
        outputs[n] = Buffer(program.devices[k], u.dtype, numel(u))
      else:
        outputs[n] = outputs[live.index(program.same[k])]
  except MemoryError as e:
    raise program.lacking(e) from None if program else e
  if program:
    written = [b for b, k in zip(outputs, live) if k is not None]
    program.run([u.arg[0] for u in leaves], written, numbers)
  for u, b in zip(todo, outputs):
    u.memo["leaf"] = buffer(b, shape(u), u.dtype)


def program_of(todo: list[UOp], found: Structure, over: dict[int, int], rules: Any) -> tuple:
  """((program, live) as of `first_run`, the leaves that it reads, its numbers). over: {root: the leaf into whose memory
  it is written}"""
  key = (*found.key, config.code, rules, *over.items())
  if found.invokes:  # to the last number; of others it may be that of what all this stands for
    key = (*key, *[repr(u.arg) for u in found.numbers])
  elif key not in _programs:
    key = known_by(key, found)
  programs = _invoked if found.invokes else _programs
  known = programs.pop(key, None)
  if known is not None:
    stats["cache_hits"] += 1
  elif found.invokes:
    # what gives an argument back is a copy of it
    whole = [uop("stage", u.dtype, (u,)) if leaf_of(u) else u for u in map(stripped, inlined(todo))]
    below, at = Structure(whole), {u: n for n, u in enumerate(found.leaves)}
    over = {n: below.leaves.index(found.leaves[k]) for n, k in over.items()}
    program, leaves, numbers = program_of(whole, below, over, rules)
    known = program, [at[u] for u in leaves], numbers
  else:
    known = first_run(todo, found, over)
  programs[key] = known  # most recently used last
  while len(programs) > PROGRAMS:
    programs.pop(next(iter(programs)))
  if found.invokes:
    program, order, numbers = known
    return program, [found.leaves[n] for n in order], numbers
  return known, found.leaves, b"".join([packed(u.arg, u.dtype) for u in found.numbers])


def first_run(todo: list[UOp], found: Structure, over: dict[int, int]) -> tuple[Any, list[int | None]]:
  """The program of a structure that is new, and which of its outputs each root is; None for one without elements.
  over: {root: the leaf into whose memory it is written}."""
  graph = Numbered(todo, at=found.at)
  assert graph.leaves == found.leaves and graph.numbers == found.numbers[: len(graph.numbers)]
  live = [n for n, u in enumerate(todo) if numel(u)]
  inout = {live.index(n): leaf for n, leaf in over.items()} or None
  program = graph.program([graph.roots[n] for n in live], inout) if live else None
  return program, [live.index(n) if n in live else None for n in range(len(todo))]


class Structure:
  """What of a graph decides its program: its operations, their arguments, and what its leaves are like. It is looked up
  by this, which builds nothing; a new one becomes a graph over numbered leaves (`Numbered`)."""

  def __init__(self, roots: list[UOp]):
    self.leaves: list[UOp] = []  # the first one is in0
    self.numbers: list[UOp] = []  # constants; the first one is c0
    self.at: dict[UOp, int] = {}  # {part of memory: which of the numbers says where it is} (places.py)
    self.invokes = False
    parts: list[Any] = []
    self.index: dict[UOp, int] = {}  # of what is looked at its number among the parts
    index = self.index
    stack: list[Any] = roots[::-1]  # None: of the node before it all sources have numbers
    while stack:
      u = stack.pop()
      if u is None:
        u = stack.pop()
      elif u in index:
        continue
      elif (
        leaf := u if u.op == "buffer" else brought(u) if u.op == "copy" else u.memo.get("leaf")
      ) is not None:
        if leaf not in index:
          index[leaf] = len(parts)
          parts.append((leaf.arg[1], leaf.dtype, leaf.arg[0].device))
          self.leaves.append(leaf)
        index[u] = index[leaf]
        continue
      elif below := [s for s in u.src if s not in index]:
        stack += u, None
        stack += below[::-1]
        continue
      if u.op in MARKS:
        index[u] = index[u.src[0]]
        continue
      index[u] = len(parts)
      if u.op != "const":
        parts.append((u.op, u.dtype, u.arg, *[index[s] for s in u.src]))
        self.invokes |= u.op == "invoke"
      elif varies(u):
        parts.append(u.dtype)
        self.numbers.append(u)
      else:
        parts.append((u.dtype, repr(u.arg)))
    self.key = (*parts, *[(index[u], device_of(u)) for u in roots])


def brought(u: UOp) -> UOp | None:
  """The leaf of a copy of memory, which is made once, for as long as somebody holds it; None for anything else."""
  if u.op != "copy" or leaf_of(u) is not None:
    return leaf_of(u)
  if (leaf := leaf_of(stripped(u.src[0]))) is not None:
    u.memo["leaf"] = buffer(leaf.arg[0].on(u.arg), shape(u), u.dtype)
  return leaf_of(u)


class Numbered:
  """A graph with its leaves and Python numbers replaced by numbered leaves: what equal structures have in common."""

  def __init__(self, roots: list[UOp], lift: bool = True, home: str = "", at: dict[UOp, int] | None = None):
    """lift: for one run, now. home: the device of leaves that are of none: the numbers that a routine is called with.
    at: parts of memory whose place is a number."""
    self.leaves: list[UOp] = []  # the real ones, in the order of in0, in1, ...
    self.numbers: list[UOp] = []  # constants, in the order of c0, c1, ...
    self.devices: list[str] = []  # of the leaves
    self.free: list[bool] = []  # of the leaves: is it read on any device?
    self.copied: dict[str, None] = {}  # devices that something is copied to
    self.home, self.flat = home, {*map(memory_of, at or ())}
    if not lift:
      roots = replaced(roots, rules_here().replacements, leaf_of)
    memo: dict[UOp, UOp] = {}
    known = brought if lift else leaf_of
    stack = [(u, False) for u in reversed(roots)]
    while stack:
      u, done = stack.pop()
      if u in memo:
        continue
      leaf = known(u)
      if leaf is not None:
        if leaf not in memo:
          memo[leaf] = self.leaf(leaf)
        memo[u] = memo[leaf]
      elif u.op == "const":
        memo[u] = (
          self.number(u) if lift and varies(u) else const(u.arg, u.dtype) if type(u.arg) is Size else u
        )
      elif done and at and u in at:
        memo[u] = part_at(u, memo[memory_of(u)], at[u])
      elif done:
        if u.op == "copy":
          self.copied[u.arg] = None
        src = tuple(memo[s] for s in u.src)
        memo[u] = src[0] if u.op in MARKS else uop(u.op, u.dtype, src, u.arg)
      else:
        stack.append((u, True))
        stack.extend((s, False) for s in reversed(u.src) if s not in memo)
    self.roots = [memo[u] for u in roots]
    # what users call values
    self.labels = {memo[u]: [*map(str, u.memo["labels"].values())] for u in memo if "labels" in u.memo}
    self.homes = {memo[u]: device_of(u) for u in roots}  # where each root is to be

  def leaf(self, u: UOp) -> UOp:
    self.devices.append(u.arg[0].device or self.home)
    self.free.append(not u.arg[0].device)
    self.leaves.append(u)
    s = (numel(u),) if u in self.flat else shape(u)
    return reshape(buffer(f"in{len(self.leaves) - 1}", s, u.dtype), shape(u))

  def program(self, roots: list[UOp], inout: dict[int, int] | None = None) -> Any:
    """What computes some of the roots. inout: see Program."""
    from mini.engine.program import Program  # all of the compiler, which `import mini` does without

    homes = [self.homes[u] for u in roots]
    try:
      if {*self.devices, *self.copied, *homes} == {homes[0]}:
        return Program(roots, len(self.leaves), homes[0], inout, labels=self.labels)
      from mini.engine.multi_program import Parts

      return Parts(roots, self.devices, homes, inout, self.free)
    except RecursionError:  # of an index that all of these views make together
      raise MiniError(
        "too many views of one another for one program; x.realize() after every hundred of them would fit"
      ) from None

  def number(self, u: UOp) -> UOp:
    self.numbers.append(u)
    return buffer(f"c{len(self.numbers) - 1}", (), u.dtype)


def varies(u: UOp) -> bool:
  """Is this constant of the kind that a program changes from step to step?"""
  is_float = u.dtype.kind == "f" and u.arg not in (0.0, 1.0, -1.0) and math.isfinite(u.arg)
  return is_float or type(u.arg) is Size
