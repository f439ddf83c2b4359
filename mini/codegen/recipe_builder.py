"""A recipe in the making: what its writers know of a machine, of a kernel, and of the cost of an access."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from mini.codegen.recipe import RecipeError, Tuning
from mini.ir.index import flatten
from mini.ir.kernel import access, all_ranges, below_data, contractions, stage_index, stores
from mini.ir.uop import (
  UOp,
  add,
  closed,
  index_nodes,
  is_condition,
  linear,
  mul,
  range_,
  rkind,
  rname,
  rsize,
  substitute,
  toposort,
)

LINE = 64  # bytes of a cache that come together


class Machine(NamedTuple):
  """What the heuristic must know of a device. The defaults are those of a processor with AVX2."""

  lanes: int = 8  # float32 elements of a vector register
  threads: int = 1
  registers: int = 16  # vector registers: 16 with AVX2, 32 with AVX-512 and NEON
  l1_bytes: int = 32 << 10
  l2_bytes: int = 512 << 10
  stack_bytes: int = 512 << 10
  kind: str = "cpu"  # cpu | gpu: the family of recipes
  group: int = 1  # most threads of a group
  shared_bytes: int = 0  # of a group
  units: int = 1  # groups that run at once, at least
  matrices: frozenset[str] = frozenset()  # its matrix instructions
  fast: bool = False  # may a product be rounded as they do it?
  streams: int = 8  # places in memory from which a core reads the most at once
  issue: int = 4  # instructions that a core begins in a cycle

  @property
  def panel_bytes(self) -> int:
    """What a packed panel may take: half of the cache, and it is on the stack."""
    return min(self.l2_bytes // 2, self.stack_bytes * 3 // 4)

  def described(self, given: tuple[tuple[str, int], ...]) -> Machine:
    """The same, but for what is given of it, by the names of the setting MACHINE."""
    table: dict[str, Any] = {n if n in self._fields else f"{n}_bytes": value for n, value in given}
    return self._replace(**table)


class Writer(Tuning):
  """A recipe in the making: steps that apply are kept. alike: long sums end in the same way whatever their size.
  notes: what was estimated; refused: steps that do not apply, with the reason. Both are for people."""

  def __init__(self, kernel: UOp, alike: bool = False):
    super().__init__(kernel)
    self.alike = alike
    self.lines: list[str] = []
    self.notes: list[str] = []
    self.refused: list[str] = []

  def attempt(self, line: str) -> bool:
    try:
      self.step(line)
    except RecipeError as e:
      self.refused.append(str(e))
      return False
    self.lines.append(line)
    return True


def bound(w: Writer, how: str = "") -> None:
  """Loops end where a mask does: those of the results, then the sums, then the stages that they read, users first."""
  owners = [u for u in reversed(toposort(w.kernel)) if u.op in ("kernel", "reduce", "stage")]
  for op in ("kernel", "reduce", "stage"):
    for name in [rname(r) for u in owners if u.op == op for r in closed(u) if rkind(r) == "loop"]:
      w.attempt(f"bound {name}" if op == "stage" else f"bound {name}{how}")


# ---------------------------------------------------------------- what an access costs


def flat_index(u: UOp) -> UOp:
  """The row-major offset that a load, a store or a stage touches."""
  flat = u.memo.get("flat")
  if flat is None:
    memory, index = (u, stage_index(u)) if u.op == "stage" else access(u)[:2]
    flat = u.memo["flat"] = flatten(index, memory.arg[1] if memory.op == "param" else memory.arg.shape)
  return flat


def coefficient(flat: UOp, r: UOp) -> int | None:
  """By how much the offset moves with r; None if not by the same amount everywhere."""
  terms, _ = linear(flat)
  if any(t is not r and r in t.free for t in terms):
    return None
  return terms.get(r, 0)


def turning(flat: UOp, r: UOp) -> UOp | None:
  """The rest of a division with which alone an offset moves, as much as r: what is beside each other there is so in
  memory, but where it begins again."""
  terms, _ = linear(flat)
  moving = [(t, step) for t, step in terms.items() if r in t.free]
  if len(moving) != 1 or moving[0][1] != 1 or moving[0][0].op != "mod":
    return None
  turn = moving[0][0]
  return turn if coefficient(turn.src[0], r) == 1 else None


LONG = 2  # blocks of a sum, beside which one more is little
RUNS = (64, 32, 16)


def runs(flats: Iterable[UOp], r: UOp) -> tuple[int, list[int]]:
  """(n, by how much offsets move), if they do so evenly with n of r at a time, such as the columns of a head; or 0."""
  for n in RUNS:
    if rsize(r) % n == 0:
      lane = range_("lane", n)
      table = {r: add(mul(range_("run", rsize(r) // n), n), lane)}
      steps = [coefficient(substitute(f, table), lane) for f in flats if r in f.free]
      if None not in steps:
        return n, [x for x in steps if x is not None]
  return 0, []


def split_runs(w: Writer, ranges: Iterable[UOp], read: Iterable[UOp]) -> None:
  """A range along which something is read in runs, each from another place, as heads are, is a loop over the runs."""
  flats = {u: flat_index(u) for u in read}
  for r in ranges:
    mine = [f for u, f in flats.items() if r in u.free]
    if any(coefficient(f, r) is None for f in mine) and (n := runs(mine, r)[0]):
      w.attempt(f"split {rname(r)} {n} -> {rname(r)}h, {rname(r)}")


def in_turns(w: Writer, machine: Machine) -> None:
  """Where a vector is stored to every second place, and a range of two fills those between, two make whole vectors.
  (The gradient of a depthwise convolution of stride 2 by its input on a Zen 4: 0.49 of the time.)"""
  outputs, flats = closed(w.kernel), [flat_index(s) for s in stores(w.kernel)]
  lanes = [r for r in outputs if rkind(r) in ("vec", "unroll")]
  small = fit_in_turns(prod(map(rsize, lanes)), machine)

  def moves(r: UOp, step: int) -> bool:
    return all(coefficient(f, r) == step for f in flats)

  if small and any(rkind(r) == "vec" and moves(r, 2) for r in lanes):
    for r in outputs:
      if rkind(r) == "loop" and rsize(r) == 2 and moves(r, 1):
        w.attempt(f"unroll {rname(r)}")


def fit_in_turns(size: int, machine: Machine) -> bool:
  """Do two tiles of so many outputs take no more than half of the registers?"""
  return 4 * size <= machine.registers * machine.lanes


def divisions(kernel: UOp) -> int:
  """Divisions in the addresses of a kernel: what collapsing two ranges must not add to."""
  return sum(
    e.op in ("div", "mod")
    for u in toposort(kernel)
    if u.op in ("load", "store")
    for x in (flat_index(u), access(u)[2])
    for e in index_nodes(x)
  )


def accesses(value: UOp) -> list[UOp]:
  return [u for u in toposort(value) if u.op in ("load", "store")]


def collapse_outputs(w: Writer) -> None:
  """Neighbouring output ranges become one where every access stays as simple, and a product is seen as one."""
  if closed(w.kernel):
    collapse(w, owner_key(w.kernel))


def owners(kernel: UOp) -> list[UOp]:
  return [u for u in reversed(toposort(kernel)) if closed(u)]


def owner_key(owner: UOp) -> str:
  """Names an owner by its first range: it is another node after every step."""
  return f"{owner.op} {rname(closed(owner)[0])}"


def owner_named(w: Writer, name: str) -> UOp:
  """The owner that has this key now."""
  return next(u for u in owners(w.kernel) if owner_key(u) == name)


def collapse(w: Writer, name: str) -> None:
  """The same of the ranges of any owner."""
  changed = True
  while changed:
    changed = False
    rs = closed(owner_named(w, name))
    for a, b in pairwise(rs):
      before, products = divisions(w.kernel), len(contractions(w.kernel))
      saved = w.kernel, dict(w.named)
      if name.startswith("kernel") and any(
        r in u.free and not (a in u.free and b in u.free) for u in stores(w.kernel) for r in (a, b)
      ):
        continue  # a store that stands between the two loops
      if w.attempt(f"collapse {rname(a)} {rname(b)} -> {rname(a)}"):
        if divisions(w.kernel) <= before and len(contractions(w.kernel)) == products:
          changed = True
          break
        w.kernel, w.named = saved
        w.lines.pop()


def cut(w: Writer, name: str, size: int, n: int, kind: str) -> tuple[str, str]:
  """A range in tiles of n lanes: (the loop over the tiles, "" if there is one tile; the lanes)."""
  if size == n:
    w.attempt(f"{kind} {name}")
    return "", name
  lane = name + kind[0]
  if not w.attempt(f"split {name} {n} -> {name}o, {lane} overlap"):
    return name, name
  w.attempt(f"{kind} {lane}")
  return f"{name}o", lane


def cut_sum(w: Writer, name: str, n: int, lanes: int) -> bool:
  """A reduce's range in vectors of n; what is left as vectors of lanes, the last of which may begin before it, unless
  there is so little that it is added up one by one, or a loop of it may end early. Alike: as one of n in any case."""
  known = {rname(r): rsize(r) for r in all_ranges(w.kernel)}
  if not w.attempt(f"split {name} {n} -> {name}o, {name}v peel"):
    return False
  w.attempt(f"vec {name}v")
  for r in all_ranges(w.kernel):
    if rname(r) in known or not rname(r).startswith(f"{name}.rest"):
      continue
    owner = w.owner(r)
    if any(map(masks, toposort(owner))):
      continue
    size, whole = rsize(r), -(-rsize(r) // lanes) * lanes
    little = lanes // 2 if owner.src[0].op == "load" and owner.arg.what == "add" else lanes // 4
    if w.alike and known[name] >= LONG * n:
      whole, little = n, 0
    if whole == size or (size > little and w.attempt(f"widen {rname(r)} {whole}")):
      w.attempt(f"vec {rname(r)}")
  return True


def masks(u: UOp) -> bool:
  """May loops end where a condition does?"""
  return below_data(u) is not None or (u.op == "where" and is_condition(u.src[0]))


def shared(w: Writer, loops: list[str], machine: Machine) -> None:
  """The outer loops as one that runs in parallel, if the first is too short for all threads."""
  if not loops:  # all is one tile
    return
  first, *rest = loops
  for name in rest:
    size = next(rsize(r) for r in closed(w.kernel) if rname(r) == first)
    if size >= 4 * machine.threads or not w.attempt(f"collapse {first} {name} -> {first}"):
      break
  w.attempt(f"par {first}")
