"""Recipes for contractions, matmul and its kin: a tile in registers, of rows by vectors.

The vectors run along an output range, or along the sum, where the outputs are few or both operands lie along it. Which
of the two, how large a tile, what is packed and what runs in parallel is decided by an estimate of the cycles that each
plan takes: `tiles` and `dots` propose, the cheapest is written. The estimate knows two arithmetic operations and two
loads a cycle, the latency of a chain of sums, and what memory costs; its constants are of a Zen 5, where pages are
looked up of an Ice Lake, and order the plans of a Zen 3 and a Skylake alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import ceil, prod
from typing import NamedTuple

from mini.codegen.linearize import is_loop
from mini.codegen.recipe_builder import (
  LINE,
  Machine,
  Writer,
  accesses,
  coefficient,
  collapse_outputs,
  cut,
  cut_sum,
  fit_in_turns,
  flat_index,
  runs,
  shared,
  split_runs,
)
from mini.ir.kernel import all_ranges, contractions, is_inline, stores
from mini.ir.uop import UOp, closed, const, rkind, rname, rsize, toposort


class Product(NamedTuple):
  """A contraction as a tile sees it: out[.., rows, .., columns] = sum of a[rows, ..] * b[.., columns]."""

  a: UOp
  b: UOp
  rows: UOp
  columns: UOp  # along which the output is contiguous


def factors(contraction: UOp) -> tuple[UOp, ...]:
  product = contraction.src[0]
  while product.op == "cast":
    product = product.src[0]
  return product.src


def find_product(kernel: UOp) -> Product | None:
  """The one contraction of a kernel, if it has columns to make vectors of and rows to unroll."""
  found = contractions(kernel)
  if len(found) != 1:
    return None
  outputs, flat = closed(kernel), flat_index(stores(kernel)[-1])
  columns = next((r for r in reversed(outputs) if coefficient(flat, r) == 1), None)
  a, b = factors(found[0])
  if columns in a.free:
    a, b = b, a
  if columns is None or columns in a.free or columns not in b.free:
    return None
  rows = max((r for r in outputs if r in a.free and r not in b.free), key=rsize, default=None)
  return None if rows is None else Product(a, b, rows, columns)


class Operand(NamedTuple):
  """By how many elements a factor moves in memory with its output range and with the innermost range of the sum; very
  many where that differs from place to place."""

  across: int
  along: int
  work: int  # operations that make an element of what is loaded
  run: int = 0  # of so many of the output range at a time (a head's) is that true; 0: of all

  def tiled(self, n: int) -> Operand:
    """In tiles of n."""
    return self._replace(across=FAR_APART) if self.run and self.run % n else self

  def is_panel(self, n: int) -> bool:
    """Whether n of the output range lie together, one step of the sum after another, as a panel has them."""
    return self.across == 1 and self.along == n and not self.work


class Plan(NamedTuple):
  """A recipe before it is written, and what it takes."""

  cycles: float
  kind: str  # tile: vectors along the columns; dot: vectors along the sum; panels: a tile, and both operands packed
  product: Product
  rows: int  # of the register tile
  columns: int  # of it
  block: int  # of panels: tiles of rows, or panels of columns, that are done together
  packs: bool  # the columns' operand goes into a panel
  vector: int  # elements of the sum that a dot takes at once
  # the loop that runs in parallel: rest, columns, rows (of panels, in blocks), tiles (columns and rows), all that a
  # panel depends on (panels), or what has the one panel again (again)
  parallel: str
  terms: int = 0  # of a sum that panels hold

  def __str__(self) -> str:
    return f"{self.kind} of {self.rows} by {self.columns}, {self.cycles:,.0f} cycles"

  @property
  def is_even(self) -> bool:
    """Is no element in two tiles?"""
    down, right = rsize(self.product.rows) / self.rows, rsize(self.product.columns) / self.columns
    blocks = (down if self.parallel == "rows" else right) / (self.block or 1)
    return all(n.is_integer() for n in (down, right, blocks))


def operand(x: UOp, across: UOp, along: UOp) -> Operand:
  inner = toposort(x)
  flats = [flat_index(u) for u in inner if u.op == "load"]
  work = sum(not is_inline(u) and u.op != "load" for u in inner)

  def step(r: UOp) -> int:
    """Of several loads the longest; those that stay where they are do not matter."""
    return max((coefficient(f, r) or FAR_APART for f in flats if r in f.free), default=0)

  whole = Operand(step(across), step(along), work)
  run, steps = runs(flats, across) if whole.across == FAR_APART else (0, [])
  return whole._replace(across=max(steps), run=run) if run else whole


class Sizes(NamedTuple):
  """What an estimate depends on."""

  n: int  # rows
  m: int  # columns
  k: int  # terms of a sum
  rounds: list[int]  # in how many at a time they may be taken
  own: list[int]  # other output ranges: those that a panel of columns depends on
  again: list[int]  # and those that have the same panel again
  a: Operand
  b: Operand
  out: int  # the step of the outputs from column to column
  filled: bool  # if it is two: does a range of two fill the places between?
  itemsize: int

  @property
  def rest(self) -> list[int]:
    return [*self.own, *self.again]

  def tiled(self, rows: int, columns: int) -> Sizes:
    """Of tiles: an operand may move by even steps in them, and not from one to the next."""
    return self._replace(a=self.a.tiled(rows), b=self.b.tiled(columns))


FAR_APART = 1 << 20  # elements: another place each time
LATENCY = 5  # cycles of a multiply-add in a chain, with what comes between
L1_RATE, L2_RATE, L3_RATE = 128, 32, 20  # bytes a cycle
FAR = 1 << 10  # steps of at least so many bytes, and so many of them: each is a page that is looked up
PAGE, WAYS = 4096, 8  # so many addresses that differ by pages alone does a first cache hold
NEAR_PAGES = 64  # so many pages are looked up at no cost
APART = 4  # cycles of a store that is not beside the last
MISS = 24  # cycles of a step that misses where pages are looked up
FAR_VECTOR = 12  # cycles of a vector that is packed from rows that are far apart
PACKED_TERMS = 8  # of a tile of such rows, before the next tile
PACKED_ROW = 0.7  # cycles of an element of rows that lie across the sum, packed a few terms at a time, ...
FAR_ROW = 1.3  # ... and more, where they are three times what the second cache holds
WAITING, FAR_WAITING = 5, 15  # cycles of a vector of sums in each round, in the second cache and far beyond


def spread_over(threads: int, size: int) -> float:
  """How many threads a loop of this size keeps busy."""
  return size / ceil(size / threads)


def step_cycles(rows: int, v: int) -> float:
  """Cycles of one step of the sum, in a tile of rows by v registers."""
  return max(rows * v, rows + v, 2 * LATENCY) / 2 + (rows + v) / 6


def tiles(p: Product, whole: Sizes, machine: Machine) -> Iterator[Plan]:
  """Vectors along the columns, as many rows of them as there are registers for; with and without a panel of columns."""
  s, lanes, item = whole, machine.lanes, whole.itemsize
  narrow = [w for w in (lanes // 2, lanes // 4) if w > 1 and s.m < lanes]
  for width in [w for w in (*narrow, lanes, 2 * lanes, 3 * lanes, 4 * lanes) if w <= s.m]:
    v = max(1, width * item // (4 * lanes))  # registers
    for rows in range(1, most_rows(s, v, machine) + 1):
      s = whole.tiled(rows, width)
      down, right = ceil(s.n / rows), ceil(s.m / width)
      unpacked = v * (apart(s.b, s) + s.b.work) if s.b.across == 1 else width
      for packs in (False, True)[: 2 if down > 1 and s.k * width * item <= machine.panel_bytes else 1]:
        each = max(step_cycles(rows, v), reading(s, rows, machine)) + (0 if packs else unpacked)
        each += rows * s.a.work / 4 + lookups(s.a, s)
        each += rows / 2 if rows > WAYS and s.a.along == 1 and s.a.across * item % PAGE == 0 else 0
        compute = down * right * (s.k * each + 20 + 2 * rows * v + storing(s, rows, width, v, machine))
        packed = right * packing(s, width, v, machine) if packs else 0.0
        loops = outer_loops(s, down, right, packs)
        if not packs:
          loops["tiles"] = down * right
        cycles, parallel = fastest(loops, compute, packed, s, machine)
        yield Plan(cycles, "tile", p, rows, width, 0, packs, 0, parallel)


def most_rows(s: Sizes, v: int, machine: Machine) -> int:
  return min(s.n, 12, (machine.registers - 1 - v) // v)


def storing(s: Sizes, rows: int, width: int, v: int, machine: Machine) -> int:
  in_turns = s.filled and fit_in_turns(rows * width, machine)
  return rows * v * s.out if s.out == 1 or in_turns else rows * width * APART


def packing(s: Sizes, width: int, v: int, machine: Machine) -> float:
  """Cycles until columns are in a panel."""
  once = 2 if s.k * s.m * s.itemsize <= machine.l2_bytes // 2 else 4
  return s.k * (v * (once + s.b.work) if 1 in (s.b.across, s.b.along) else 1.5 * width)


def panels(p: Product, whole: Sizes, machine: Machine) -> Iterator[Plan]:
  """Both operands packed, where rows lie across the sum. The rows, or the columns, are cut into blocks; in each, some
  terms of all of its rows are packed, then panel by panel of its columns, and the sums wait in memory for the other
  terms. What is packed and what waits counts in second caches."""
  s, lanes, item = whole, machine.lanes, whole.itemsize
  if s.a.across != 1 or s.a.along == 1:
    return
  for width in [w for w in (2 * lanes, 3 * lanes, 4 * lanes) if 2 * w < s.m]:
    v = max(1, width * item // (4 * lanes))
    s = whole.tiled(1, width)
    packs = not s.b.is_panel(width)
    columns = packing(s, width, v, machine) if packs else 0
    far = packs and s.b.along * item >= FAR and s.k > NEAR_PAGES
    again = s.k * v * (FAR_VECTOR + s.b.work) if far else columns
    for rows in range(min(s.n, 4), most_rows(s, v, machine) + 1):
      if s.a.run % rows:
        continue
      down, right, step = ceil(s.n / rows), ceil(s.m / width), step_cycles(rows, v)
      for terms, blocked in itertools.product(s.rounds, ("rows", "columns")):
        waits, room = terms < s.k, machine.stack_bytes // item - terms * width
        if blocked == "rows":
          size, each = down, rows * (terms + right * width * waits)
        else:
          size, each, room = right, down * rows * width * waits, room - down * rows * terms
        for blocks in block_counts(size, room // max(each, 1), machine.threads):
          block = ceil(size / blocks)
          below, beside = (block, right) if blocked == "rows" else (down, block)
          packed, held = (below * rows * n * item / machine.l2_bytes for n in (terms, beside * width))
          wait = min(max(WAITING, WAITING * held), FAR_WAITING) * s.k / terms
          sums = 20 * s.k // terms + rows * v * (wait if waits else 2)
          compute = below * beside * (s.k * step + sums + storing(s, rows, width, v, machine))
          each_row = PACKED_ROW + FAR_ROW * min(max(packed - 2, 0), 1) + s.a.work / 4
          moving = below * rows * s.k * each_row + beside * (again if blocks > 1 else columns)
          cycles = prod(s.rest) * blocks * (compute + moving) / spread_over(machine.threads, blocks)
          yield Plan(cycles, "panels", p, rows, width, block, packs, 0, blocked, terms)


def block_counts(size: int, most: int, threads: int) -> list[int]:
  """In how many blocks, of at most so many tiles, a loop may be cut: as many for each thread, one or more, of which who
  is done early may take some."""
  if most < 1:
    return []
  fewest = ceil(size / most)
  even = [n * ceil(fewest / n) for n in (threads, 2 * threads, 4 * threads) if threads > 1]
  return [n for n in even if n <= size] or [fewest]


def apart(x: Operand, s: Sizes) -> float:
  """Cycles that a vector takes longer in its place, a step of the sum from the last, than in a panel."""
  if x.along * s.itemsize < FAR:
    return 0
  return 3 if s.k > FAR else 1.2 if s.k > 128 and x.along * s.itemsize % FAR == 0 else 0.3


def reading(s: Sizes, rows: int, machine: Machine) -> float:
  """Cycles that the rows of a tile take to come from where they lie, each step of the sum."""
  whole = s.n * s.k * s.itemsize
  return max(rows * s.itemsize / rate(whole, machine), 0 if s.a.along == 1 else 64 / L2_RATE)


def rate(nbytes: int, machine: Machine) -> int:
  """Bytes a cycle of what is so large, and is read again and again."""
  return (
    L1_RATE if nbytes <= machine.l1_bytes // 2 else L2_RATE if nbytes <= machine.l2_bytes // 2 else L3_RATE
  )


def lookups(x: Operand, s: Sizes) -> float:
  """Cycles each step of the sum until what is far from the last step is there: in another page, or in another line of
  more than a first cache holds."""
  step = x.along * s.itemsize
  if step < LINE or s.k <= NEAR_PAGES:
    return 0
  if s.k > FAR:
    return MISS if step >= FAR else MISS / 2
  return MISS / 6 if step >= FAR else 0


def dots(p: Product, s: Sizes, machine: Machine) -> Iterator[Plan]:
  """Both operands along the sum; the one that does not lie so, and is short, is packed."""
  if s.a.along != 1:
    return
  size = s.itemsize // 4 or 1
  most = machine.registers * 3 // (4 * size)
  for rows in range(1, min(s.n, 8) + 1):
    for columns in range(1, min(s.m, 8, most // rows) + 1):
      packs = s.b.along != 1
      panel = s.k * columns * s.itemsize
      down, right = ceil(s.n / rows), ceil(s.m / columns)
      if packs and (panel > machine.panel_bytes or right * columns > 16):
        continue
      sums = rows * columns
      chunk = next(c for c in (4, 2, 1) if sums * c <= most and (c == 1 or s.k >= 2 * c * machine.lanes))
      vector = chunk * machine.lanes
      if s.k < vector:
        continue
      step = max(sums * chunk * size, (rows + columns) * chunk * size, 2 * LATENCY) / 2
      step += (rows + columns) * chunk * size / 6
      step += chunk * size * (rows * s.a.work + columns * s.b.work * (not packs)) / 2
      again = rows / rate(s.n * s.k * s.itemsize, machine) if right > 1 else 0
      again += columns / rate(panel, machine) if down > 1 else 0
      step = max(step, again * vector * s.itemsize)
      ends = sums * (8 + chunk) + s.k % vector * sums
      compute = down * right * (s.k // vector * step + ends + 20)
      packed = right * columns * s.k * 1.5 if packs else 0.0
      cycles, parallel = fastest(outer_loops(s, down, right, packs), compute, packed, s, machine)
      yield Plan(cycles, "dot", p, rows, columns, 0, packs, vector, parallel)


def outer_loops(s: Sizes, down: int, right: int, packs: bool) -> dict[str, int]:
  """{a loop that may run in parallel: its size}"""
  if packs and s.again:
    panels = {"panels": prod(s.own) * right} if s.own or right > 1 else {"again": prod(s.again)}
    return {**panels, "rest": max(s.again), "rows": down}
  return {"rest": max(s.rest, default=1), "columns": right, "rows": down}


def fastest(
  loops: dict[str, int], compute: float, packed: float, s: Sizes, machine: Machine
) -> tuple[float, str]:
  """(cycles, the loop to run in parallel).
  A loop within the one that a panel is packed in has it packed again and again."""
  found = []
  for name, size in loops.items():  # of equally fast ones the outermost
    busy = spread_over(machine.threads, size)
    parts = 4 * busy if machine.threads > 1 else 1
    times = {"rows": parts, "again": parts, "rest": size if s.again else 1}.get(name, 1)
    found.append(((prod(s.rest) * compute + prod(s.own) * packed * times) / busy, name))
  return min(found, key=lambda x: x[0])


def rounds(ks: tuple[UOp, ...]) -> list[int]:
  """How many terms of a sum over these ranges may be taken at a time: some of the innermost, all of it, or all."""
  inner = rsize(ks[-1])
  return [*(n for n in (128, 256, 512) if inner % n == 0 and n < inner), *{inner, prod(map(rsize, ks))}]


def plans(kernel: UOp, product: Product, machine: Machine) -> list[Plan]:
  """What could be done; either factor may be the one whose range the vectors run along."""
  a, b, rows, columns = product
  summed = contractions(kernel)[0]
  ks = closed(summed)
  rest = [r for r in closed(kernel) if r is not rows and r is not columns]
  flat = flat_index(stores(kernel)[-1])
  found: list[Plan] = []
  for p in (product, Product(b, a, columns, rows)):
    step = coefficient(flat, p.columns) or 0
    filled = step == 2 and any(rsize(r) == 2 and coefficient(flat, r) == 1 for r in rest)
    s = Sizes(
      rsize(p.rows), rsize(p.columns), prod(map(rsize, ks)), rounds(ks), [rsize(r) for r in rest if r in p.b.free],
      [rsize(r) for r in rest if r not in p.b.free], operand(p.a, p.rows, ks[-1]),
      operand(p.b, p.columns, ks[-1]), step, filled, summed.dtype.itemsize,
    )  # fmt: skip
    found += tiles(p, s, machine)
    found += panels(p, s, machine)
    found += dots(p, s, machine) if len(ks) == 1 else ()
  return found


def tile(w: Writer, machine: Machine) -> bool:
  """The cheapest plan; False where there is none."""
  order = toposort(w.kernel)
  single = sum(u.op == "reduce" for u in order) == 1
  if not contractions(w.kernel) or not single or any(u.op in ("stage", "scan") for u in order):
    return False
  collapse_outputs(w)
  reduce = contractions(w.kernel)[0]
  split_runs(w, closed(reduce), accesses(reduce.src[0]))
  found = [find_product(w.kernel)]
  # where the range that the outputs lie along makes no vector, another may
  if found[0] is None or rsize(found[0].columns) < machine.lanes:
    found.append(largest_product(w.kernel))
  proposed = [plan for p in found if p is not None for plan in plans(w.kernel, p, machine)]
  once = not w.repeatable(w.kernel)
  ranked = sorted(proposed, key=lambda p: (once and not p.is_even, p.cycles))
  if not ranked:
    return False
  w.notes += map(str, ranked[:2])
  write(w, ranked[0], machine)
  return True


def largest_product(kernel: UOp) -> Product | None:
  """The one contraction of a kernel whose outputs do not lie along a range of one factor."""
  a, b = factors(contractions(kernel)[0])
  outputs = closed(kernel)[::-1]  # of equally long ones the innermost
  rows = max((r for r in outputs if r in a.free and r not in b.free), key=rsize, default=None)
  columns = max((r for r in outputs if r in b.free and r not in a.free), key=rsize, default=None)
  return Product(a, b, rows, columns) if rows is not None and columns is not None else None


def write(w: Writer, plan: Plan, machine: Machine) -> None:
  a, b, rows, columns = plan.product
  rest = [rname(r) for r in closed(w.kernel) if r is not rows and r is not columns]
  summed = [rname(r) for r in closed(contractions(w.kernel)[0]) if is_loop(r)]
  kind = "unroll" if plan.kind == "dot" else "vec"
  column_loop, lane = cut(w, rname(columns), rsize(columns), plan.columns, kind)
  row_loop, row = cut(w, rname(rows), rsize(rows), plan.rows, "unroll")
  names = {"columns": column_loop, "rows": row_loop}
  blocked = names[plan.parallel] if plan.block else ""
  block = f"{blocked}b" if blocked else ""
  if blocked and not w.attempt(f"split {blocked} {plan.block} -> {block}, {blocked} overlap"):
    block = ""
  # what has the same panel of columns again stands inside
  again = [name for name in rest if w.range(name) not in b.free] if plan.packs and not plan.block else []
  if plan.parallel == "rest" and rest:
    longest = names["rest"] = max(again or rest, key=lambda name: rsize(w.range(name)))
    rest = [longest, *(name for name in rest if name != longest)]
    again = [name for name in again if name != longest]
  mine = [*(name for name in rest if name not in again), *filter(None, [block, column_loop])]
  w.attempt("order " + " ".join([*mine, *again, *filter(None, [row_loop]), row, lane]))
  if plan.kind == "dot":
    if plan.packs:
      pack(w, summed, lane, b, machine, along=True)
    if rsize(w.range(summed[0])) == plan.vector:
      w.attempt(f"vec {summed[0]}")
    else:
      cut_sum(w, summed[0], plan.vector, machine.lanes)
  else:
    outer, summed = in_rounds(w, summed, plan.terms) if plan.terms else ([], summed)
    if plan.block:
      tag = pack(w, [*filter(None, [row_loop]), *summed], row, a, machine)
      in_lines(w, [k + tag for k in summed], [r + tag for r in (row_loop, row) if r])
    if plan.packs:
      pack(w, summed, lane, b, machine)
    if outer:
      wait(w, outer, [*filter(None, [column_loop, row_loop]), row, lane])
  if plan.parallel == "tiles" and column_loop and row_loop:
    w.attempt(f"collapse {column_loop} {row_loop} -> {column_loop}")
  if plan.parallel in ("panels", "again"):
    shared(w, mine or again, machine)
    return
  best = block or names.get(plan.parallel) or column_loop or row_loop
  if best:
    w.attempt(f"par {best}")


def in_lines(w: Writer, summed: list[str], rows: list[str]) -> None:
  """Packs rows that lie across the sum. A row of tiles is read in order, and the next term of one is far away;
  in the panel the tiles are, and a few terms of one fill lines of the cache."""
  *outer, k = summed
  if w.attempt(f"split {k} {PACKED_TERMS} -> {k}o, {k}i overlap"):
    rows = [*rows[:-1], f"{k}i", rows[-1]]
    k = f"{k}o"
  w.attempt("order " + " ".join([*outer, k, *rows]))


def in_rounds(w: Writer, summed: list[str], terms: int) -> tuple[list[str], list[str]]:
  """The ranges of a sum (that of the rounds, that of the terms of each)."""
  inner = summed[-1]
  if terms < rsize(w.range(inner)) and w.attempt(f"split {inner} {terms} -> {inner}o, {inner}"):
    return [*summed[:-1], f"{inner}o"], [inner]
  n = next(n for n in range(len(summed)) if prod(rsize(w.range(k)) for k in summed[n:]) <= terms)
  return summed[:n], summed[n:]


def wait(w: Writer, outer: list[str], over: list[str]) -> None:
  """Sums wait in memory from round to round."""
  reduce = contractions(w.kernel)[0]
  name = next(name[1:] for name, u in w.named.items() if u is reduce)
  if w.attempt(f"stage {name} over ({', '.join(over)}) stack"):
    w.attempt("around " + " ".join(f"{k}.{name}" for k in outer))


def flat_index_of(value: UOp) -> UOp:
  """The offset that an operand, a load or a cast of one, is read at."""
  while value.op == "cast":
    value = value.src[0]
  return flat_index(value) if value.op == "load" else const(0)


def pack(w: Writer, ks: list[str], inner: str, x: UOp, machine: Machine, along: bool = False) -> str:
  """An operand that is read again and again goes into a panel: its lanes together, one step of the sum after another;
  or `along` the sum, lane by lane. What the names of the loops that do so end in."""
  ranges = {rname(r): r for r in all_ranges(w.kernel)}
  found = next((s for s in factors(contractions(w.kernel)[0]) if ranges[inner] in s.free), None)
  name = next((name for name, u in w.named.items() if u is found), None)
  if found is None or name is None:
    return ""
  mine = [k for k in ks if ranges[k] in found.free]
  flat, k = flat_index_of(found), mine[-1]
  order = [inner, *mine] if along else [*mine, inner]
  if not w.attempt(f"stage {name[1:]} over ({', '.join(order)}) stack"):
    return ""
  lane = ranges[inner]
  transposed = rkind(lane) == "vec" and coefficient(flat, lane) != 1 and coefficient(flat, ranges[k]) == 1
  if transposed and rsize(lane) % machine.lanes == 0 and rsize(ranges[k]) >= machine.lanes:
    copied = f"{k}.{name[1:]}"  # read along the sum, written along the lanes
    if w.attempt(f"split {copied} {machine.lanes} -> {copied}o, {copied}v overlap"):
      w.attempt(f"unroll {inner}.{name[1:]}")
      w.attempt(f"vec {copied}v")
  return f".{name[1:]}"
