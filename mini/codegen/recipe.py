"""Recipes: a list of text steps, each a rewrite of the kernel that keeps its meaning.

  split R n -> a, b            R becomes a*n + b; n must divide the size
  split R n -> a, b overlap    the last tile is moved back to end at the edge: R becomes min(a*n, size-n) + b.
                               The same value is written twice: for kernel and stage ranges, and for reduce.max
  split R n -> a, b peel       for a reduce range: the rest becomes a second reduce, over R.rest
  split R n -> a, b any        one of both, the same for any size: where n divides it, n overlap, or are the rest
  widen R n                    R, of a reduce, takes n values, the last of which are what it took. Those before, which
                               must be there, are read and left out: what fills no vector is one with them
  collapse R S -> a            R, S, next to each other, become a // size(S) and a % size(S)
  vec R | unroll R | par R     the kind of R. Unrolled values of it that are added to one address follow each other
  around R                     R, of a reduce that fills a stage on the stack, is a loop around the loops of that stage:
                               its sums wait there, and what is packed for one round serves all of them
  local R                      R is a digit of the thread's number in its group: 1, 2, 4 ... values; a group has at most
                               1024 threads (threads.py). A reduce that closes R adds over threads
  order R ...                  the order of the loops of each owner
  stage X over (R, ...) stack  X is copied into memory over those ranges (the copies are named R.X), and read back from
                               it. The memory has one axis per range, in the order given
  stage X over (R, ...) shared   the same in memory of the group, which its threads fill together
  stage X over (R + S*n, ...)  stages the footprint of an index expression: one axis for R + S*n, not one for each
  move X shared | stack        the stage X has its memory in the group, or in each thread
  inline X                     what the stage X holds is computed again wherever it is read
  matrix NAME i j k            a contraction's tile of rows i, columns j and inner range k is by a matrix instruction,
                               such as m16n8k16 f16, whose size they have. Of i come the ranges i0, i1, ... and of j
                               j0, j1, ...: the 32 threads of a warp, and lanes

  bound R                      the loop R of a reduce begins and ends where what it adds is nothing but its identity
                               before and beyond, by a condition on indices, or on an index and a size that is data
                               (codegen/bound.py); of a stage, where nobody reads what it would store; of the kernel,
                               by the condition in its last line, or as one of a reduce where all that depends on R is
                               added to memory. Loops are bounded last. Of an unrolled range of the
                               output the lanes for which a reduce adds nothing are left out of it
  bound R finite               the same where a product is nothing as soon as one factor is 0, whatever the other is

X is a parameter (its one load) or the number of a value in the text that the recipe starts from.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mini.codegen.bound import bounded, only_where
from mini.codegen.matrix import (
  INSTRUCTIONS,
  check,
  factors,
  instruction_of,
  marked,
  number_of,
  ranges_for,
  tile,
  tile_size,
)
from mini.codegen.threads import MOST_THREADS, digits, is_shared, threads
from mini.ir.bounded import too_little
from mini.ir.kernel import (
  access,
  all_ranges,
  around,
  is_inline,
  load,
  memory_shape,
  stage_at,
  stage_index,
  stores,
  written,
)
from mini.ir.ops import identity
from mini.ir.races import adds_up, may_race, meets
from mini.ir.uop import (
  TRUE,
  UOp,
  add,
  bounds,
  closed,
  const,
  copy,
  div,
  least,
  less,
  mod,
  mul,
  range_,
  rkind,
  rname,
  rsize,
  substitute,
  toposort,
  uop,
)
from mini.text.verifier import VerifyError, kept_apart, verify
from mini.types import MiniError


class RecipeError(MiniError, ValueError):
  """A step that does not apply to this kernel, with the reason."""


class Tuning:
  """A kernel on its way through the steps of a recipe."""

  def __init__(self, kernel: UOp):
    self.kernel = kernel
    self.named = {f"%{n}": u for n, u in enumerate(numbered(kernel))}

  def rewrite(self, table: dict[UOp, UOp]) -> None:
    """Apply a substitution, and carry the names of values along."""
    memo = dict(table)
    self.kernel = substitute(self.kernel, table, memo)
    self.named = {name: memo.get(u, u) for name, u in self.named.items()}

  def range(self, name: str) -> UOp:
    for r in all_ranges(self.kernel):
      if rname(r) == name:
        return r
    raise RecipeError(
      f"no range %{name} in this kernel; there are {', '.join(map(rname, all_ranges(self.kernel)))}"
    )

  def free_range(self, name: str) -> UOp:
    """A range that no matrix instruction has made its own."""
    r = self.range(name)
    for u in toposort(self.kernel):
      if instruction_of(u) and r in tile(u):
        raise RecipeError(f"%{name} is part of a matrix instruction, {instruction_of(u)}")
    return r

  def owner(self, r: UOp) -> UOp:
    return next(u for u in toposort(self.kernel) if r in closed(u))

  def value(self, name: str) -> UOp:
    if "%" + name in self.named:
      if self.named["%" + name] not in toposort(self.kernel):
        raise RecipeError(f"no step has left %{name} in this kernel")
      return self.named["%" + name]
    found = [
      u
      for u in toposort(self.kernel)
      if u.op == "load" and u.src[0].op == "param" and u.src[0].arg[0] == name
    ]
    if len(found) != 1:
      raise RecipeError(f"%{name} is loaded {len(found)} times; name one of its loads")
    return found[0]

  def new_range(self, name: str, size: int, kind: str = "loop", replaces: str = "") -> UOp:
    if name != replaces and any(rname(r) == name for r in all_ranges(self.kernel)):
      raise RecipeError(f"%{name} exists already")
    return range_(name, size, kind)

  def repeatable(self, owner: UOp) -> bool:
    """May a value of this owner be computed and stored twice?"""
    if owner.op == "reduce":
      return owner.arg.what == "max"
    if owner.op == "stage" and around(owner.src[0]):
      return False
    if owner.op != "kernel":
      return True
    outs = set(written(self.kernel))
    return all(s.arg is None for s in stores(self.kernel)) and not any(
      u.op == "load" and u.src[0] in outs for u in toposort(self.kernel)
    )

  def split(self, name: str, n: int, outer: str, inner: str, mode: str = "") -> None:
    r = self.free_range(name)
    owner, size = self.owner(r), rsize(r)
    if n < 1:
      raise RecipeError(f"{n} is no size")
    if outer == inner:
      raise RecipeError(f"two ranges cannot both be called %{inner}")
    if any(u.op == "scan" and u.src[1] is r for u in toposort(self.kernel)):
      raise RecipeError(f"%{name} carries a scan: it stays one loop")
    rest = size % n or n * (mode == "any")
    b = self.new_range(inner, n, "loop", name)
    if not rest:
      self.rewrite({r: add(mul(self.new_range(outer, size // n, "loop", name), n), b)})
      return self.order(outer, inner)
    if mode in ("overlap", "any") and size >= n and self.repeatable(owner):
      self.rewrite({r: add(least(mul(self.new_range(outer, size // n + 1, "loop", name), n), size - n), b)})
      return self.order(outer, inner)
    if mode in ("peel", "any") and owner.op == "reduce":
      tag, taken = ".rest", {rname(x) for x in all_ranges(self.kernel)}
      while any(x + tag in taken for x in taken):  # a reduce around this one may have been peeled
        tag += "_"
      tail = copy(owner, {r: add(range_(name + tag, rest), size - rest)}, tag)
      if size == rest:
        return self.rewrite({owner: tail})
      memo = {r: add(mul(self.new_range(outer, (size - rest) // n, "loop", name), n), b)}
      main = substitute(owner, memo, memo)  # its values keep their names
      self.named = {name: memo.get(u, u) for name, u in self.named.items()}
      return self.rewrite({owner: uop(owner.arg.what, owner.dtype, (main, tail))})
    raise RecipeError(
      f"{n} does not divide %{name} = {size}: overlap (kernel and stage ranges) or peel (reduce ranges)"
    )

  def widen(self, name: str, n: str) -> None:
    r = self.free_range(name)
    owner, more = self.owner(r), int(n) - rsize(r)
    if owner.op != "reduce" or rkind(r) != "loop":
      raise RecipeError(f"%{name} is no loop of a reduce")
    if more < 1:
      raise RecipeError(f"%{name} has {rsize(r)} values already")
    wider, d = self.new_range(name, int(n), "loop", name), owner.dtype
    memo = {r: add(wider, -more)}
    new = substitute(owner, memo, memo)
    for u in [u for u in toposort(owner) if u.op == "load"]:
      for i, size in zip(access(u)[1], memory_shape(u.src[0])):
        first, last = bounds(substitute(i, memo))
        if r in i.free and (first < 0 or last > max(bounds(i)[1], size - 1)):  # backwards they are behind it
          raise RecipeError(f"before %{name} there are not {more} values to read")
    mine = less(mul(wider, -1), 1 - more)
    value = only_where(mine, new.src[0], const(identity(owner.arg.what, d), d), owner.arg.what == "add")
    self.named = {name: memo.get(u, u) for name, u in self.named.items()}
    self.rewrite({owner: uop("reduce", d, (value, *new.src[1:]), owner.arg)})

  def collapse(self, first: str, second: str, made: str) -> None:
    a, b = self.free_range(first), self.free_range(second)
    owner = self.owner(a)
    rs = list(closed(owner))
    if b not in rs or rs.index(b) != rs.index(a) + 1:
      raise RecipeError(f"%{first} and %{second} are not next to each other in one owner")
    if any(u.op == "scan" and u.src[1] in (a, b) for u in toposort(self.kernel)) or any(
      meets(s, r) for s in stores(self.kernel) for r in (a, b)
    ):
      raise RecipeError(f"the order of %{first} or %{second} matters: it stays a loop of its own")
    c = self.new_range(made, rsize(a) * rsize(b), "loop", first)
    self.rewrite({a: div(c, rsize(b)), b: mod(c, rsize(b))})

  def kind(self, name: str, kind: str) -> None:
    r = self.free_range(name)
    if kind == "par" and self.owner(r).op != "kernel":
      raise RecipeError(f"%{name} is no output range: only those run in parallel")
    if kind == "par" and any(rkind(x) == "par" and x is not r for x in all_ranges(self.kernel)):
      raise RecipeError("one range runs in parallel, and there is one: collapse them")
    if any(u.op == "scan" and u.src[1] is r for u in toposort(self.kernel)):
      raise RecipeError(f"%{name} carries a scan: it stays a loop")
    own = r in closed(self.kernel)
    if own and any(meets(s, r) and not (kind == "unroll" and adds_up(s, r)) for s in stores(self.kernel)):
      raise RecipeError(f"stores of different %{name} may meet at one address: it stays a loop")
    if kind == "around":
      why = kept_apart(self.kernel, self.owner(r))
      if why:
        raise RecipeError(f"%{name} is {why}")
    if kind == "local" and rsize(r).bit_count() != 1:
      raise RecipeError(f"%{name} has {rsize(r)} values, no power of two: split it")
    if kind == "local" and self.owner(r).op == "stage" and not is_shared(self.owner(r)):
      raise RecipeError(f"%{name} fills memory of one thread: stage it in shared memory")
    self.rewrite({r: range_(name, rsize(r), kind)})
    self.check_threads()

  def check_threads(self) -> None:
    for r in digits(self.kernel):
      if any(may_race(s, r) for s in stores(self.kernel)):
        raise RecipeError(f"threads that differ in %{rname(r)} may store to one address")
    if threads(self.kernel) > MOST_THREADS:
      raise RecipeError(f"that makes {threads(self.kernel)} threads a group; at most {MOST_THREADS}")

  def matrix(self, name: str, *names: str) -> None:
    if name not in INSTRUCTIONS:
      raise RecipeError(f"there is no matrix instruction {name}; there are {', '.join(INSTRUCTIONS)}")
    if len(set(names)) < len(names):
      raise RecipeError("its rows, columns and inner range are three ranges")
    row = INSTRUCTIONS[name]
    i, j, k = (self.free_range(n) for n in names)
    for r, n in zip((i, j, k), map(tile_size, (row.rows, row.columns, row.a_inner))):
      if rsize(r) != n:
        raise RecipeError(f"%{rname(r)} has {rsize(r)} values, and {name} takes {n}: split it")
      if r is not k and any(meets(s, r) for s in stores(self.kernel)):
        raise RecipeError(f"stores of different %{rname(r)} may meet at one address: it stays a loop")
      if r is not k and self.owner(r).op != "kernel" and not is_shared(self.owner(r)):
        raise RecipeError(f"%{rname(r)} is no range of what is stored")
    fitting(factors, self.owner(k), name, [i], [j])
    for n in range(max(len(row.rows), len(row.columns))):
      self.new_range(f"{rname(i)}{n}", 1)
      self.new_range(f"{rname(j)}{n}", 1)
    rows, columns = ranges_for(rname(i), row.rows), ranges_for(rname(j), row.columns)
    inner = range_(rname(k), rsize(k), "unroll")
    self.rewrite({i: number_of(rows), j: number_of(columns), k: inner})
    u = self.owner(inner)
    made = marked(u, name, (*rows, *columns, inner))
    fitting(check, made)
    self.rewrite({u: made})
    self.check_threads()

  def bound(self, name: str, how: str = "") -> None:
    r = self.free_range(name)
    try:
      new = bounded(self.kernel, r, how == "finite")
    except ValueError as e:
      raise RecipeError(str(e)) from None
    self.rewrite(new)
    if (found := too_little(self.kernel)) is not None:
      raise RecipeError(f"of what a load needs, %{name} would not store all: {found[1]}")

  def order(self, *names: str) -> None:
    pos = {n: i for i, n in enumerate(names)}
    for name in names:
      self.range(name)
    for owner in [u for u in toposort(self.kernel) if any(rname(r) in pos for r in closed(u))]:
      rs = closed(owner)
      listed = iter(sorted((r for r in rs if rname(r) in pos), key=lambda r: pos[rname(r)]))
      new = tuple(next(listed) if rname(r) in pos else r for r in rs)
      if owner.op == "kernel":
        fixed = [r for r in rs if any(meets(s, r) for s in stores(owner))]
        if fixed != [r for r in new if r in fixed]:
          raise RecipeError(
            f"the order of %{' and %'.join(map(rname, fixed))} matters: their stores may meet at one address"
          )
      for u in (u for u in toposort(self.kernel) if u.op == "scan" and u.src[1] in new):
        inside = [x for x in new[new.index(u.src[1]) + 1 :] if x in u.free]
        if inside:
          raise RecipeError(
            f"%{rname(u.src[1])} carries a scan of %{rname(inside[0])}, which stays outside of it"
          )
      if new != rs:
        self.rewrite(
          {owner: uop(owner.op, owner.dtype, owner.src[: len(owner.src) - len(rs)] + new, owner.arg)}
        )

  def stage(self, name: str, axes: list[list[tuple[str, int]]], space: str) -> None:
    """Each axis is a list of ranges and how many times each is taken; of several, their sum is staged,
    and the value must depend on them through it alone."""
    if space not in ("stack", "shared"):
      raise RecipeError(f"a stage is in stack or in shared memory, not in {space}")
    value = self.value(name)
    ranges = [[(self.range(n), times) for n, times in axis] for axis in axes]
    tag = "." + name
    while any(rname(r).endswith(tag) for r in all_ranges(self.kernel)):
      tag += "_"
    table: dict[UOp, UOp] = {}
    new = []
    for (first, once), *rest in ranges:
      if once != 1 or any(times < 1 for _, times in rest):
        raise RecipeError(f"an axis is a range, and others once or more: %{rname(first)} + ...")
      size = rsize(first) + sum((rsize(r) - 1) * times for r, times in rest)
      kind = "loop" if rest or rkind(first) == "par" else rkind(first)
      if kind == "local" and space != "shared":
        raise RecipeError(f"%{rname(first)} is local: its threads share no stack")
      new.append(range_(rname(first) + tag, size, kind))
      table[first] = new[-1]
      for r, times in rest:
        table[first] = add(table[first], mul(r, -times))  # first := sum - rest; rest must then cancel
    for r in (r for axis in ranges for r, _ in axis):
      if r not in value.free:
        raise RecipeError(f"%{name} does not depend on %{rname(r)}")
    inner = copy(value, table, tag)
    left = inner.free & {r for axis in ranges for r, _ in axis[1:]}
    if left:
      raise RecipeError(f"%{name} depends on %{rname(next(iter(left)))} not only through the sum")
    memory = stage_at(inner, tuple(new), tuple(new), space, tuple(map(rsize, new)))
    self.rewrite({value: load(memory, tuple(sum_of(axis) for axis in ranges))})

  def staged(self, name: str) -> UOp:
    u = self.value(name)
    if u.op != "stage":
      raise RecipeError(f"%{name} is no stage")
    return u

  def move(self, name: str, space: str) -> None:
    u = self.staged(name)
    if space not in ("stack", "shared"):
      raise RecipeError(f"a stage is in stack or in shared memory, not in {space}")
    if space == "stack" and any(rkind(r) == "local" for r in closed(u)):
      raise RecipeError(f"threads of a group fill %{name} together: they share no stack")
    self.rewrite({u: uop("stage", u.dtype, u.src, u.arg._replace(what=space))})

  def inline(self, name: str) -> None:
    u = self.staged(name)
    index = stage_index(u)
    if tuple(r for r in index if r.op == "range") != closed(u):
      raise RecipeError(f"%{name} does not lie in the order of its ranges")
    table: dict[UOp, UOp] = {}
    for x in [x for x in toposort(self.kernel) if x.op == "load" and x.src[0] is u]:
      if access(x)[2] is not TRUE:
        raise RecipeError(f"%{name} is read under a guard")
      at = {r: i for r, i in zip(index, access(x)[1]) if r.op == "range"}
      table[x] = copy(u.src[0], at, f".{name}" + "_" * len(table))  # each with ranges of its own
    self.rewrite(table)

  def step(self, line: str) -> None:
    """Apply one step. RecipeError with the step and the reason where it does not apply;
    the kernel is then as it was."""
    words = " ".join(line.partition("#")[0].replace("%", "").split())
    if not words:
      return
    name, _, rest = words.partition(" ")
    saved = self.kernel, dict(self.named)
    try:
      if name not in STEPS:
        raise RecipeError(f"there is no such step; there are {', '.join(STEPS)}")
      written, pattern = STEPS[name]
      found = pattern.fullmatch(rest)
      if not found:
        raise RecipeError(f"it is written: {name} {written}")
      if name not in ("bound", "order", "par") and any(r.src for r in all_ranges(self.kernel)):
        raise RecipeError("loops are bounded last")
      self.apply(name, *(part or "" for part in found.groups()))
    except RecipeError as e:
      self.kernel, self.named = saved
      raise RecipeError(f"{line.strip()}: {e}") from None

  def apply(self, name: str, *parts: str) -> None:
    """One step, from the parts that its pattern has caught."""
    if name == "split":
      size, *names = parts[1:]
      self.split(parts[0], int(size), *names)
    elif name in KINDS:
      for n in parts[0].split():
        self.kind(n, name)
    elif name == "order":
      self.order(*parts[0].split())
    elif name == "stage":
      axes = [re.findall(rf"({WORD})(?:\*(\d+))?", axis) for axis in parts[1].split(",")]
      self.stage(parts[0], [[(r, int(n or 1)) for r, n in axis] for axis in axes], parts[2])
    else:
      getattr(self, name)(*parts)


KINDS = ("vec", "unroll", "par", "around", "local")
WORD = r"[\w.]+"
TERM = rf"{WORD}(?:\*\d{{1,9}})?"
# How each step is written, and the pattern that catches its parts.
STEPS = {
  name: (written, re.compile(pattern.replace("R", f"({WORD})").replace("LIST", rf"({WORD}(?: {WORD})*)")))
  for name, written, pattern in (
    ("split", "R n -> a, b [overlap | any | peel]", r"R (\d{1,18}) -> R, ?R(?: (overlap|any|peel))?"),
    ("widen", "R n", r"R (\d{1,18})"),
    ("collapse", "R S -> a", "R R -> R"),
    *((kind, "R ...", "LIST") for kind in KINDS),
    ("order", "R ...", "LIST"),
    ("stage", "X over (R, ...) stack | shared", rf"R over \(({TERM}(?:(?:, ?| ?\+ ?){TERM})*)\) R"),
    ("bound", "R [finite]", "R(?: (finite))?"),
    ("move", "X shared | stack", "R R"),
    ("inline", "X", "R"),
    ("matrix", "NAME i j k", rf"({WORD} {WORD}) R R R"),
  )
}


def fitting(ask: Callable[..., Any], *what: Any) -> None:
  """Ask of a matrix instruction whether it fits; where it does not, that is why the step does not."""
  try:
    ask(*what)
  except ValueError as e:
    raise RecipeError(str(e)) from None


def numbered(kernel: UOp) -> list[UOp]:
  """The values that have a number in the kernel's text, in its order."""
  return [u for u in toposort(kernel) if not is_inline(u) and u.op not in ("store", "kernel")]


def apply(kernel: UOp, recipe: str) -> UOp:
  """The kernel with the steps of a recipe, one a line. RecipeError for a step that does not apply, and for steps that
  do but leave what the verifier refuses: a value that is a vector twice, a stage that is too large, ..."""
  t = Tuning(kernel)
  for line in recipe.splitlines():
    t.step(line)
  try:
    verify(t.kernel)
  except VerifyError as e:
    raise RecipeError(f"after its last step: {e}") from None
  return t.kernel


def sum_of(axis: list[tuple[UOp, int]]) -> UOp:
  total = const(0)
  for r, times in axis:
    total = add(total, mul(r, times))
  return total
