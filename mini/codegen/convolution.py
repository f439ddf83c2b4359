"""Recipes for convolutions: contractions that read an operand at sums of ranges, through guards at its edges.

Two ways lead to the tile of a matrix product (contraction.py); an estimate of what they take decides. With vectors
along the channels of the output the weights go into a panel, and the elements that a tile of neighbouring outputs sees
are read where they are, each for all lanes: few are behind a guard, for the tile is unrolled. Or the vectors run along
a row: the padded rows that a block of outputs sees are copied to the stack, once for each shift along a row, so that
neighbours in the block are neighbours there, across the ends of rows, too, and no guard stands in the inner loop. Where
many channels read it, what a tile sees is copied once more, to a panel, where it stands as it is read, and no vector
lies across two lines. A gradient of the weight has its sum along the rows: window_sums.py.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import product
from math import prod
from typing import NamedTuple

from mini.codegen.contraction import factors
from mini.codegen.recipe_builder import (
  LINE,
  Machine,
  Writer,
  accesses,
  coefficient,
  collapse,
  cut,
  flat_index,
  owner_key,
  shared,
)
from mini.ir.kernel import access, all_ranges, contractions, stores
from mini.ir.uop import TRUE, UOp, closed, const, linear, rname, rsize, substitute, toposort

LATENCY = 4  # cycles of a product: two are begun in each
COPY = 8  # what it costs to copy an element to the stack, in products of vectors, if ends of rows are masked
PANEL = 10  # and to copy a vector of it once more, to where a tile reads it
APART = 8  # and to load or to store a vector's elements that are not beside each other, for each of them
READ = 0.25  # of that, of a load in a tile whose rows are beside each other
LINES = 16  # of what is copied, each of which is written out
ACROSS = 0.25  # what a product takes longer whose vector lies across two of them
FAR = 1.0  # cycles for one that comes from the L2
FARTHER = 4.0  # and for a line that is pages from the last one
USUAL = 4  # instructions that a processor begins in a cycle, for which these are: one of more waits less
ENDS = 0.03  # of products along an axis, if zeros: a branch for each of a tile's rows costs less
MIXED = 12  # vectors of outputs for which a panel is made, at least, where it is made again and again
LONG = 8  # steps of an inner loop, from which limits computed before it cost nothing
GUARD = 7  # instructions of a load that is not at all steps inside of what it reads, nor is its product
ROUND = 6  # instructions of a step beside products, loads and guards (two for a load)


class Windows(NamedTuple):
  """A contraction of `seen`, which is read at sums of ranges, with `weight`."""

  seen: UOp
  weight: UOp
  columns: list[UOp]  # outputs of `seen` alone, those that are closest in memory first
  rows: UOp  # the longest of the outputs of `weight` alone
  summed: tuple[UOp, ...]


def find_windows(kernel: UOp) -> Windows | None:
  order = toposort(kernel)
  found = contractions(kernel)
  if (
    len(found) != 1
    or sum(u.op == "reduce" for u in order) != 1
    or any(u.op in ("stage", "scan") for u in order)
  ):
    return None
  outputs, flat = closed(kernel), flat_index(stores(kernel)[-1])
  for seen, weight in (factors(found[0]), factors(found[0])[::-1]):
    mine = [r for r in outputs if r in seen.free and r not in weight.free]
    others = [r for r in outputs if r in weight.free and r not in seen.free]
    if slides(seen) and mine and others and all(coefficient(flat, r) for r in mine):
      mine.sort(key=lambda r: coefficient(flat, r) or 0)
      return Windows(seen, weight, mine, max(others, key=rsize), closed(found[0]))
  return None


def slides(operand: UOp) -> bool:
  """Is it read through a guard, in steps, or at windows that overlap?"""
  if operand.op != "load":
    return False
  _, index, gate = access(operand)
  return gate is not TRUE or any(overlaps(i) for i in index)


def overlaps(index: UOp) -> bool:
  terms, _ = linear(index)
  if any(t.op != "range" for t in terms):
    return False
  reach = 1
  for t, step in sorted(terms.items(), key=lambda item: abs(item[1])):
    if abs(step) < reach or (reach == 1 and abs(step) > 1):
      return True
    reach += abs(step) * (rsize(t) - 1)
  return False


class Plan(NamedTuple):
  """How the outputs of a kernel are taken."""

  cost: float  # of an output, where 1 is its products in full vectors
  along: str  # rows or channels: where the vectors run
  block: int  # rows of the output at once; along channels: for so many is a panel, where it is made again and again
  vectors: int  # columns of a tile, in vectors
  rows: int  # of a tile, where the vectors run along channels: neighbours in a row
  padded: bool = False  # is what slides copied to the stack, with zeros around it, not read through a guard?
  panel: bool = False  # is what a tile sees copied once more, to stand as it is read?

  def __str__(self) -> str:
    return f"vectors along {self.along}, tiles of {self.vectors}, {self.cost:.2f} of full vectors' time"


def plans(found: Windows, p: UOp | None, beside: int | None, machine: Machine) -> Iterator[Plan]:
  """Vectors along the rows of the output, of what fits the stack, p being those rows.
  beside: the step of the outputs in a row."""
  steps, width = 1, rsize(found.columns[0])
  for r in found.summed:
    steps *= rsize(r) if r in found.seen.free else 1
  height, across = (rsize(p), window(found, p)) if p is not None else (1, None)
  usual = USUAL / machine.issue
  shifted = 1 + ACROSS * usual**2 * min(1, machine.lanes * found.seen.dtype.itemsize / LINE)
  apart = APART * usual * machine.lanes / prod(map(rsize, found.summed)) if beside != 1 else 0.0
  images = prod(map(rsize, found.columns)) // (height * width)
  share = open_share(access(found.weight)[2]) if gated(found) else 1.0
  # of a phase's weights each stands pages from the last one
  far = FAR * usual if gated(found) and apart_by(found) * found.weight.dtype.itemsize >= LINE else 0
  itemsize, channels = found.seen.dtype.itemsize, rsize(found.rows)
  unmasked = max(1, LINE / itemsize / machine.lanes)  # as AVX2 is, with half as many lanes
  for panel, vectors in product((False, True), (1, 2)):
    tile, rows = vectors * machine.lanes, height_of_tile(channels, vectors, machine)
    # for the copy with its shifts, which a tile reads from the L2 where it has no panel
    room = machine.stack_bytes * 3 // 4 - tile * steps * itemsize if panel else machine.panel_bytes
    for block in range(1, height + 1):
      seen = block if across is None else (block + rsize(across) - 1) / rsize(across)
      if itemsize * steps * seen * width > room:
        break
      blocks = -(-height // block)
      of_use = across is not None and tile < block * width and images * blocks >= machine.threads
      if tile <= block * width and (of_use or not panel):
        full = blocks * -(-(block * width) // tile) * tile / (height * width)
        copied = COPY * unmasked * blocks * seen / (height * channels) + PANEL * panel * full / channels
        full *= -(-channels // rows) * rows / channels * (1 if panel else shifted)
        step = cycles(rows, vectors, machine) + rows * far
        cost = full * step / (rows * vectors / 2) * share + copied + apart
        yield Plan(cost, "rows", block, vectors, 0, panel=panel)


def channel_plans(kernel: UOp, found: Windows, machine: Machine) -> Iterator[Plan]:
  """Vectors along the channels of the output, and neighbours in a row as the rows of a tile."""
  if found.weight.op != "load":
    return
  lanes, width, channels = machine.lanes, rsize(found.columns[0]), rsize(found.rows)
  images, height = prod(map(rsize, found.columns)), rsize(found.columns[1]) if found.columns[1:] else 1
  mixed = keeps_lines(kernel, found, machine)
  terms = prod(map(rsize, found.summed))
  ends, guarded = edges(found), access(found.seen)[2] is not TRUE
  # of the products those that are no zeros
  inside = prod(e.share for e in ends) * (open_share(access(found.weight)[2]) if gated(found) else 1.0)
  usual = USUAL / machine.issue
  summed = set(toposort(contractions(kernel)[0]))
  scattered = sum(
    1 if u.op == "store" else READ
    for u in accesses(kernel)
    if u not in summed and coefficient(flat_index(u), found.rows) not in (0, 1)
  )
  for vectors in (1, 2, 3, 4):
    tile, registers = vectors * lanes, vectors * max(1, found.weight.dtype.itemsize // 4)
    if tile > channels or terms * tile * found.weight.dtype.itemsize > machine.panel_bytes:
      break
    most = (machine.registers - 1 - registers) // registers
    if most < 1:
      break
    rows = -(-width // -(-width // most))
    full = -(-channels // tile) * tile / channels * -(-width // rows) * rows / width
    products = rows * registers / 2  # cycles of a step of the sum that were no more than these
    panel = terms * tile * found.weight.dtype.itemsize
    step = cycles(rows, registers, machine)
    step += FAR * usual * tile * found.weight.dtype.itemsize / LINE if panel > machine.l1_bytes // 2 else 0
    begun = 2 * products + registers + rows + ROUND
    along = [e for e in ends if e.column is found.columns[0]]
    branches = min(rows, sum(e.places for e in along))
    some = min(sum(e.cut(rows) for e in along), 1.0)
    easy, hard = (max(step, n / machine.issue) for n in (begun, begun + GUARD * branches))
    at_ends = easy + (hard - easy) * some  # where it is known before the loop which tiles are inside
    read = begun / machine.issue
    if guarded:  # no core takes more branches in a cycle
      read += 2 * (rows - branches) / machine.issue + GUARD * branches / USUAL
    stored = APART * usual * lanes * scattered / terms
    block = min(-(-MIXED * lanes // width), height) if mixed else 1
    panels = COPY * lanes / (block * width if mixed else images)
    each = at_ends if taps_outermost(found) else max(step, read)
    each += FARTHER * usual * bool(gated(found))  # of another channel
    yield Plan(full * each / products * inside + stored + panels, "channels", block, vectors, rows)
    # beside the panel the copy may fill the L2: each of its lines is read for a few rows and then no more
    around, room = padding(found), min(machine.l2_bytes, machine.stack_bytes * 3 // 4) - panel
    room //= found.seen.dtype.itemsize
    if around is not None and (tall := around.fitting(room, height, block if mixed else height)):
      elements, outputs = around.elements(height - tall), around.outputs * tall // height
      copied = COPY * elements * (1 if mixed else -(-channels // tile)) / (outputs * channels * terms)
      panels = COPY * lanes / (outputs if mixed else images)
      itemsize = found.seen.dtype.itemsize
      is_far = elements * itemsize > machine.l1_bytes // 2
      step += FAR * usual * around.lines(rows, itemsize) if is_far else 0
      easy, hard = (max(step, n / machine.issue) for n in (begun, begun + 2 * branches))
      cost = full * (easy + (hard - easy) * some) / products * inside + stored + panels + copied
      yield Plan(cost, "channels", tall if mixed else 1, vectors, rows, True)


def cycles(rows: int, vectors: int, machine: Machine) -> float:
  """Of a step of the sum: products, two at once, and a part of the loads that are beside them."""
  loads = rows + vectors
  return max(rows * vectors / 2, loads / 1.5, LATENCY) + loads / 6 * USUAL / machine.issue


def height_of_tile(rows: int, vectors: int, machine: Machine) -> int:
  """Rows of a tile whose vectors run along the columns: beside them, these and one number are in registers."""
  most = (machine.registers - 1 - vectors) // vectors
  return -(-rows // -(-rows // most))


class Axis(NamedTuple):
  """Of what slides: it is read at sums of a few ranges, of each so many times."""

  tap: UOp  # the summed one
  columns: tuple[UOp, ...]  # the output that it slides along, if any
  terms: dict[UOp, int]  # both, one that is taken once first

  @property
  def reach(self) -> int:
    return 1 + sum((rsize(r) - 1) * times for r, times in self.terms.items())

  def __str__(self) -> str:
    return " + ".join(rname(r) if times == 1 else f"{rname(r)}*{times}" for r, times in self.terms.items())


class Padding(NamedTuple):
  """What slides, as a copy with zeros around it."""

  axes: list[Axis]  # those that slide first, and inside of them the rest: the order of the sum
  row: Axis  # the one that the columns slide along, whose elements are beside each other

  def elements(self, less: int = 0) -> int:
    """Of it, or of what so many rows of outputs less read."""
    down = next((axis for axis in reversed(self.axes) if axis.columns and axis is not self.row), None)
    left = less * down.terms[down.columns[0]] if down is not None else 0
    return prod(axis.reach - left * (axis is down) for axis in self.axes)

  def fitting(self, most: int, height: int, least: int) -> int:
    """In blocks of how many of `height` rows of outputs it has at most so many elements; 0 if not in any."""
    blocks = (-(-height // n) for n in range(1, height // least + 1))
    return next((n for n in blocks if self.elements(height - n) <= most), 0)

  @property
  def outputs(self) -> int:
    """That are made of it, for each of its other factor's."""
    return prod(rsize(r) for axis in self.axes for r in axis.columns)

  def lines(self, rows: int, itemsize: int) -> float:
    """Of a cache, that a step of the sum of a tile of so many rows reads and the one before did not."""
    step = self.row.terms[self.row.tap]
    if self.axes[-1] is self.row:
      return min(step * itemsize / LINE, 1)
    return -(-min(rows * step, self.row.reach) * itemsize // LINE)


def padding(found: Windows) -> Padding | None:
  """For what is read through a guard, at places that are summed ranges or slide along an output."""
  axes = slid_along(found) if access(found.seen)[2] is not TRUE else None
  if not axes or axes[-1].columns != (found.columns[0],):
    return None
  row = axes[-1]
  axes.sort(key=lambda axis: not axis.columns)
  return Padding(axes, row)


def slid_along(found: Windows) -> list[Axis] | None:
  """The summed ranges of what slides, each with the output that is added to it, if any, outer axes of the memory first.
  None where neither of the two goes in steps of one."""
  axes = []
  for parts, _ in map(linear, access(found.seen)[1]):
    terms = {t: times for t, times in parts.items() if t.free & {*found.summed, *found.columns}}
    taps = [t for t in terms if t in found.summed]
    columns = tuple(t for t in terms if t in found.columns)
    if not taps:
      continue
    if len(terms) == 1:
      terms = {taps[0]: 1}
    if len(taps) > 1 or len(columns) > 1 or len(terms) > len(taps + [*columns]) or min(terms.values()) != 1:
      return None
    axes.append(Axis(taps[0], columns, dict(sorted(terms.items(), key=lambda term: term[1]))))
  return axes


class Edge(NamedTuple):
  """An axis that a window leaves at its ends: what is outside counts as zeros."""

  tap: UOp
  column: UOp
  inside: list[tuple[int, int]]  # of each tap: the columns at which it is, from first to end

  @property
  def share(self) -> float:
    """Of the products that is inside."""
    return sum(end - first for first, end in self.inside) / (len(self.inside) * rsize(self.column))

  @property
  def places(self) -> int:
    """Columns at which some tap is outside."""
    firsts, ends = zip(*self.inside)
    return max(firsts) + rsize(self.column) - min(ends)

  def cut(self, rows: int) -> float:
    """Of tiles of so many columns, each with each tap, those that are not all inside: the rest has no branches."""
    size = rsize(self.column)
    starts = [min(n, size - rows) for n in range(0, size, rows)]
    whole = sum(first <= n <= end - rows for n in starts for first, end in self.inside)
    return 1 - whole / (len(starts) * len(self.inside))


def edges(found: Windows) -> list[Edge]:
  """Those whose outside is worth a branch, or limits of a loop: all, where loops over many channels are inside."""
  memory, index, gate = access(found.seen)
  most = 1.0 if taps_outermost(found) else 1 - ENDS
  out = []
  for i, size in zip(index, memory.arg[1]) if gate is not TRUE else ():
    terms, first = linear(i)
    tap = next((t for t in terms if t in found.summed), None)
    column = next((t for t in terms if t in found.columns), None)
    if tap is None or column is None or len(terms) > 2 or min(terms.values()) < 1:
      continue
    taps, columns, step = rsize(tap), rsize(column), terms[column]
    starts = [max(-((first + terms[tap] * n) // step), 0) for n in range(taps)]
    stops = [min((size - 1 - first - terms[tap] * n) // step + 1, columns) for n in range(taps)]
    edge = Edge(tap, column, [(start, max(start, stop)) for start, stop in zip(starts, stops)])
    if edge.share < most:
      out.append(edge)
  return out


def taps_outermost(found: Windows) -> list[UOp]:
  """The taps of a window whose loops stand around the rest of the sum, where that is long: it is known before the inner
  loop what lies outside of an image, and a step reads nothing that the next one reads, too."""
  _, index, gate = access(found.seen)
  sums = [i.free for i in index if gate is not TRUE and not i.free.isdisjoint(found.columns)]
  taps = [k for k in found.summed if any(k in free for free in sums)]
  return taps if steps_at(found, taps) >= LONG and not gated(found) else []


def open_share(gate: UOp) -> float:
  """Of the values that the ranges of a guard take, if they are few, the share at which it is open."""
  ranges = sorted(gate.free, key=rname)
  if prod(map(rsize, ranges)) > 256:
    return 1.0
  at = [
    substitute(gate, dict(zip(ranges, map(const, place))))
    for place in product(*(range(rsize(r)) for r in ranges))
  ]
  return sum(open_ is TRUE for open_ in at) / len(at)


def gated(found: Windows) -> list[UOp]:
  """The summed ranges at which a weight may be 0 for some outputs: phases of a stride have taps of their own. Of one
  channel all is computed, with its phases side by side."""
  gate = access(found.weight)[2] if found.weight.op == "load" else TRUE
  return [r for r in found.summed if r in gate.free] if steps_at(found, gate.free) > 1 else []


def steps_at(found: Windows, places: Container[UOp]) -> int:
  """Steps of the sum for each of these places."""
  return prod(rsize(r) for r in found.summed if r not in places)


def apart_by(found: Windows) -> int:
  """By how many elements a weight stands from that of the step of the sum before it."""
  return coefficient(flat_index(found.weight), in_order(found)[-1]) or 0


def in_order(found: Windows) -> list[UOp]:
  """The summed ranges as loops: around all others those that are bounded, or each of a few steps would be counted."""
  taps = gated(found)
  return sorted(found.summed, key=lambda r: r not in taps)


def interleaved(kernel: UOp, found: Windows) -> bool:
  """Do outputs of other weights lie between those of a row, as in the gradient of what a stride reads?"""
  flat = flat_index(stores(kernel)[-1])
  step = coefficient(flat, found.columns[0]) or 1
  others = [r for r in closed(kernel) if r in found.weight.free and r not in found.seen.free]
  return any(0 < (coefficient(flat, r) or 0) < step for r in others)


def keeps_lines(kernel: UOp, found: Windows, machine: Machine) -> bool:
  """Are the lines of the output that several weights share to be whole before they leave the caches? Then panels are
  made again for each block of outputs, which is to be worth it."""
  outputs = prod(map(rsize, found.columns[:2]))
  return outputs >= MIXED * machine.lanes and interleaved(kernel, found)


def window(found: Windows, r: UOp) -> UOp | None:
  """The summed range that slides along r in steps of one."""
  for i in access(found.seen)[1]:
    terms, _ = linear(i)
    if terms.get(r) == 1:
      return next((k for k in found.summed if terms.get(k) == 1), None)
  return None


def windows(w: Writer, machine: Machine) -> bool:
  """Columns along the rows of the output; False where that gives no vectors."""
  found = find_windows(w.kernel)
  if found is None:
    return False
  name = next((n[1:] for n, u in w.named.items() if u is found.seen), "")
  step = coefficient(flat_index(stores(w.kernel)[-1]), found.columns[0])
  p = next((r for r in found.columns[1:] if step == 1 and follows(w.kernel, found.columns[0], r)), None)
  ranked = sorted([*plans(found, p, step, machine), *channel_plans(w.kernel, found, machine)])
  if not ranked or not name:
    return False
  best = ranked[0]
  w.notes += map(str, ranked[:2])
  if best.along == "channels":
    channels(w, found, best, name, machine)
    return True
  q, rows = rname(found.columns[0]), rname(found.rows)
  outer = [rname(r) for r in closed(w.kernel) if rname(r) not in (q, rows) and r is not p]
  taps = [*map(rname, gated(found))]
  if taps:
    w.attempt("order " + " ".join(map(rname, in_order(found))))
  kept = [rname(r) for r in in_order(found) if r in found.seen.free]
  columns = q
  if p is None:
    w.attempt(f"stage {name} over ({', '.join([*kept, q])}) stack")
  else:
    columns, across = rname(p), window(found, p)
    if best.block < rsize(p) and w.attempt(f"split {columns} {best.block} -> {columns}o, {columns}i overlap"):
      outer, columns = [*outer, f"{columns}o"], f"{columns}i"
    slid = [k for k in kept if across is None or k != rname(across)]
    tall = columns if across is None else f"{rname(across)} + {columns}"
    w.attempt(f"stage {name} over ({', '.join([*slid, tall, q])}) stack")
  shift = window(found, found.columns[0])
  copy_rows(w, f"{q}.{name}", machine, f"{rname(shift)}.{name}" if shift is not None else "")
  w.attempt(" ".join(["order", *outer, rows, *dict.fromkeys([columns, q])]))
  if columns != q and w.attempt(f"collapse {columns} {q} -> {columns}"):
    q = columns
  size = {rname(r): rsize(r) for r in closed(w.kernel)}
  column_loop, lane = cut(w, q, size[q], best.vectors * machine.lanes, "vec")
  row_loop, _ = cut(w, rows, size[rows], height_of_tile(size[rows], best.vectors, machine), "unroll")
  # what the inner loop reads again and again is to stay in the L1: rather the columns, where they fit
  narrow = best.vectors * machine.lanes * prod(map(rsize, found.summed)) * found.seen.dtype.itemsize
  near = best.panel or narrow <= machine.l1_bytes // 2
  loops = (column_loop, row_loop) if near else (row_loop, column_loop)
  inner = [n for n in loops if n]
  w.attempt(" ".join(["order", *outer, *inner]))
  if best.panel:
    w.attempt(f"stage {name} over ({', '.join([*kept, lane])}) stack")
  if not taps:
    collapse(w, owner_key(contractions(w.kernel)[0]))
  shared(w, outer or inner, machine)
  for tap in taps:
    w.attempt(f"bound {tap} finite")
  return True


def channels(w: Writer, found: Windows, plan: Plan, seen: str, machine: Machine) -> None:
  """Vectors along the channels of the output, where the plan says so. seen: the name of what slides."""
  c, q, weight = rname(found.rows), rname(found.columns[0]), found.weight
  rest = [r for r in closed(w.kernel) if r is not found.rows and r is not found.columns[0]]
  name = next(n[1:] for n, u in w.named.items() if u is weight)
  around = padding(found) if plan.padded else None
  mixed, p = keeps_lines(w.kernel, found, machine), rname(found.columns[1]) if found.columns[1:] else ""
  parted = mixed and p and plan.block < rsize(found.columns[1])
  blocks = [f"{p}o"] if parted and w.attempt(f"split {p} {plan.block} -> {p}o, {p} overlap") else []
  taps = gated(found)
  summed = [r for r in in_order(found) if r in weight.free]
  if around is not None:
    # row by row, and place by place in the window: all channels of a row stay in the L1; and what a step reads is no
    # part of what the next one reads, which C compilers would keep in registers that there are not
    place = {axis.tap: n for n, axis in enumerate(around.axes)}
    summed.sort(key=lambda r: place.get(r, -1))
    w.attempt("order " + " ".join(map(rname, summed)))
    axes = [*(axis for axis in around.axes if axis is not around.row), around.row]
    w.attempt(f"stage {seen} over ({', '.join(map(str, axes))}) stack")
    copy_rows(w, f"{rname(next(iter(around.row.terms)))}.{seen}", machine)
  elif taps:
    w.attempt("order " + " ".join(map(rname, in_order(found))))
  elif first := taps_outermost(found):
    summed.sort(key=lambda r: r not in first)
    w.attempt("order " + " ".join(map(rname, summed)))
  elif access(found.seen)[2] is TRUE and (across := window(found, found.columns[0])) in summed:
    # along a row the next place of the window reads what neighbours have just read: a loop over these places inside of
    # all others, C compilers would unroll, and have too much in registers (0.5 to 0.7 of the time on a Zen 3)
    down = [t for r in found.columns[1:] if (t := window(found, r)) in summed and t is not across]
    if down:
      summed.sort(key=lambda r: r in down)
      w.attempt("order " + " ".join(map(rname, summed)))
  panels, lane = cut(w, c, rsize(found.rows), plan.vectors * machine.lanes, "vec")
  row_loop, row = cut(w, q, rsize(found.columns[0]), plan.rows, "unroll")
  w.attempt(f"stage {name} over ({', '.join([*map(rname, summed), lane])}) stack")
  # what a panel is for, outside; then what has the same panel again, first what has a copy of its own
  outside = [rname(r) for r in rest if r in weight.free]
  within = {r for axis in around.axes for r in axis.terms} if around is not None else set()
  inside = [rname(r) for r in rest if r not in weight.free and r not in within]
  slid = [rname(r) for r in rest if r in within]
  outside += filter(None, [panels])
  many = prod(rsize(w.range(name)) for name in outside)
  if mixed:  # lines of the output are to be whole before they leave the caches
    outside, inside = [*(r for r in inside if r != p), *blocks, *outside], [r for r in inside if r == p]
  if outside and inside and many < 4 * machine.threads:  # a panel for each of some parts of what has it again
    size = rsize(w.range(inside[0]))
    part = -(-size // -(-4 * machine.threads // many))
    part = next(n for n in range(part, 0, -1) if 10 * n * -(-size // n) <= 11 * size)  # ends may overlap
    if part < size and w.attempt(f"split {inside[0]} {part} -> {inside[0]}o, {inside[0]} overlap"):
      outside.append(f"{inside[0]}o")
  loops = [*outside, *inside, *slid, *filter(None, [row_loop])]
  w.attempt(" ".join(["order", *loops, row, lane]))
  shared(w, outside or (inside if slid and inside else loops), machine)
  taps += [axis.tap for axis in around.axes] if around is not None else []
  taps += [e.tap for e in edges(found) if e.column is not found.columns[0]]
  for tap in dict.fromkeys(taps):
    w.attempt(f"bound {rname(tap)} finite")
  if any(e.column is found.columns[0] for e in edges(found)):
    w.attempt(f"bound {row} finite")


# ---------------------------------------------------------------- steps that others take, too


def follows(kernel: UOp, q: UOp, p: UOp) -> bool:
  """Does the output go on with the next p where the elements along q end,
  in all that is stored and in no other memory?"""
  return all(
    coefficient(flat_index(s), p) == rsize(q) * (coefficient(flat_index(s), q) or 0) for s in stores(kernel)
  )


def copy_rows(w: Writer, name: str, machine: Machine, shift: str = "") -> None:
  """The rows that are copied to the stack, in vectors; those that are shorter than one, element by element.
  Each vector of a row has lines of its own, and each of the row's shifts, where they are few: it is known then which
  of them lie at an edge."""
  sizes = {rname(r): rsize(r) for r in all_ranges(w.kernel)}
  size = sizes.get(name, 0)
  if size < machine.lanes:
    w.attempt(f"unroll {name}")
    return
  loop, _ = cut(w, name, size, machine.lanes, "vec")
  lines = -(-size // machine.lanes)
  if loop and lines <= LINES:
    w.attempt(f"unroll {loop}")
  if shift in sizes and lines * sizes[shift] <= LINES:
    w.attempt(f"unroll {shift}")
