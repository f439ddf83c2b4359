"""Recipes for convolutions: contractions that read an operand at sums of ranges, through guards at its edges.

Two ways lead to the tile of a matrix product (contraction.py); an estimate of what they take decides. With vectors
along the channels of the output the weights go into a panel, and the elements that a tile of neighbouring outputs sees
are read where they are, each for all lanes: few are behind a guard, for the tile is unrolled. Or the vectors run along
a row: the padded rows that a block of outputs sees are copied to the stack, once for each shift along a row, so that
neighbours in the block are neighbours there, across the ends of rows, too, and no guard stands in the inner loop. A
gradient of the weight has its sum along the rows: there the vectors run along the channels of the input, or along the
sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from mini.codegen.contraction import factors
from mini.codegen.writer import Machine, Writer, accesses, coefficient, cut, flat_index
from mini.ir.kernel import access, all_ranges, contractions, stores
from mini.ir.uop import TRUE, UOp, closed, linear, rname, rsize, toposort

LATENCY = 10  # products that are on their way at once
COPY = 8  # what it costs to copy an element to the stack, in products of vectors
APART = 8  # and to load or to store a vector's elements that are not beside each other, for each of them
SHIFTED = 1.25  # what a product takes whose vectors lie across lines of the cache, where 1 is one of a panel


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
  block: int  # rows of the output at once
  vectors: int  # columns of a tile, in vectors
  rows: int  # of a tile, where the vectors run along channels: neighbours in a row
  padded: bool = False  # is what slides copied to the stack, with zeros around it, not read through a guard?


def plans(found: Windows, p: UOp | None, machine: Machine) -> Iterator[Plan]:
  """Vectors along the rows of the output, of what fits the stack, p being those rows."""
  steps, width = 1, rsize(found.columns[0])
  for r in found.summed:
    steps *= rsize(r) if r in found.seen.free else 1
  height, across = (rsize(p), window(found, p)) if p is not None else (1, None)
  for block in range(1, height + 1):
    seen = block if across is None else (block + rsize(across) - 1) / rsize(across)
    if found.seen.dtype.itemsize * steps * seen * width > machine.panel_bytes:
      break
    for vectors in (1, 2):
      tile = vectors * machine.lanes
      if tile <= block * width:
        full = -(-height // block) * -(-(block * width) // tile) * tile / (height * width)
        copied = COPY * -(-height // block) * seen / (height * rsize(found.rows))
        cost = SHIFTED * full * (1.05 if vectors == 1 else 1.0) + copied
        yield Plan(cost, "rows", block, vectors, 0)


def channel_plans(kernel: UOp, found: Windows, machine: Machine) -> Iterator[Plan]:
  """Vectors along the channels of the output, and neighbours in a row as the rows of a tile."""
  if found.weight.op != "load":
    return
  lanes, width, channels = machine.lanes, rsize(found.columns[0]), rsize(found.rows)
  images = prod(map(rsize, found.columns))
  terms = prod(map(rsize, found.summed))
  summed = set(toposort(contractions(kernel)[0]))
  scattered = sum(
    coefficient(flat_index(u), found.rows) not in (0, 1) for u in accesses(kernel) if u not in summed
  )
  for vectors in (1, 2, 3, 4):
    tile, registers = vectors * lanes, vectors * max(1, found.weight.dtype.itemsize // 4)
    if tile > channels or terms * tile * found.weight.dtype.itemsize > machine.panel_bytes:
      break
    most = (machine.registers - 4) // registers
    rows = -(-width // -(-width // most))
    full = -(-channels // tile) * tile / channels * -(-width // rows) * rows / width
    step = max(rows * registers, rows + registers, LATENCY) / (rows * registers)
    ends = APART * lanes * scattered / terms + COPY * lanes / images
    yield Plan(full * step + ends, "channels", 1, vectors, rows)
    room = machine.panel_bytes - terms * tile * found.weight.dtype.itemsize
    if (around := padding(found)) is not None and around.elements * found.seen.dtype.itemsize <= room:
      copied = COPY * around.elements * -(-channels // tile) / (around.outputs * channels * terms)
      yield Plan(full * step * around.share + ends + copied, "channels", 1, vectors, rows, True)


class Padding(NamedTuple):
  """What slides, as a copy with zeros around it."""

  axes: list[tuple[UOp, ...]]  # a summed range, or that and the column it slides along
  elements: int  # of the copy
  outputs: int  # that are made of it, for each of its other factor's
  share: float  # of the products that are no zeros before and beyond the columns; what precedes the rows is not told


def padding(found: Windows) -> Padding | None:
  """For what is read through a guard, at places that are summed ranges or slide in steps of one."""
  memory, index, gate = access(found.seen)
  axes, share = [], 1.0
  if gate is TRUE:
    return None
  for i, size in zip(index, memory.arg[1]):
    terms, first = linear(i)
    tap = next((t for t in terms if t in found.summed), None)
    if tap is None:
      continue
    if set(terms.values()) != {1} or len(terms) > 2 or not all(t is tap or t in found.columns for t in terms):
      return None
    axes.append((tap, *(t for t in terms if t is not tap)))
    if len(terms) == 2 and axes[-1][1] is not found.columns[0]:
      taps, columns = rsize(tap), rsize(axes[-1][1])
      inside = sum(max(min(columns, size - at) - max(-at, 0), 0) for at in range(first, first + taps))
      share *= inside / (taps * columns)
  if not axes or axes[-1][1:] != (found.columns[0],):
    return None
  elements = prod(sum(map(rsize, axis)) - len(axis) + 1 for axis in axes)
  return Padding(axes, elements, prod(rsize(r) for axis in axes for r in axis[1:]), share)


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
  best = min([*plans(found, p, machine), *channel_plans(w.kernel, found, machine)], default=None)
  if best is None or not name:
    return False
  if best.along == "channels":
    channels(w, found, best, name, machine)
    return True
  q, rows = rname(found.columns[0]), rname(found.rows)
  outer = [rname(r) for r in closed(w.kernel) if rname(r) not in (q, rows) and r is not p]
  kept = [rname(r) for r in found.summed if r in found.seen.free]
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
  copy_rows(w, f"{q}.{name}", machine)
  w.attempt(" ".join(["order", *outer, rows, *dict.fromkeys([columns, q])]))
  if columns != q and w.attempt(f"collapse {columns} {q} -> {columns}"):
    q = columns
  size = {rname(r): rsize(r) for r in closed(w.kernel)}
  column_loop, _ = cut(w, q, size[q], best.vectors * machine.lanes, "vec")
  most = machine.rows * machine.registers // 16 * 2 // best.vectors
  tall_rows = -(-size[rows] // -(-size[rows] // most))
  row_loop, _ = cut(w, rows, size[rows], tall_rows, "unroll")
  inner = [n for n in (column_loop, row_loop) if n]
  w.attempt(" ".join(["order", *outer, *inner]))
  shared(w, outer or inner, machine)
  return True


def channels(w: Writer, found: Windows, plan: Plan, seen: str, machine: Machine) -> None:
  """Vectors along the channels of the output, where the plan says so. seen: the name of what slides."""
  c, q, weight = rname(found.rows), rname(found.columns[0]), found.weight
  rest = [r for r in closed(w.kernel) if r is not found.rows and r is not found.columns[0]]
  name = next(n[1:] for n, u in w.named.items() if u is weight)
  around = padding(found) if plan.padded else None
  summed = [r for r in found.summed if r in weight.free]
  if around is not None:
    # row by row, and place by place in the window: all channels of a row stay in the L1; and what a step reads is no
    # part of what the next one reads, which C compilers would keep in registers that there are not
    axes = [*sorted(around.axes[:-1], key=len, reverse=True), around.axes[-1]]
    place = {axis[0]: n for n, axis in enumerate(sorted(axes, key=len, reverse=True))}
    summed.sort(key=lambda r: place.get(r, -1))
    w.attempt("order " + " ".join(map(rname, summed)))
    w.attempt(f"stage {seen} over ({', '.join(' + '.join(map(rname, axis)) for axis in axes)}) stack")
    copy_rows(w, f"{rname(axes[-1][0])}.{seen}", machine)
  panels, lane = cut(w, c, rsize(found.rows), plan.vectors * machine.lanes, "vec")
  row_loop, row = cut(w, q, rsize(found.columns[0]), plan.rows, "unroll")
  w.attempt(f"stage {name} over ({', '.join([*map(rname, summed), lane])}) stack")
  # what a panel is for, outside; then what has the same panel again, first what has a copy of its own
  outside = [rname(r) for r in rest if r in weight.free]
  within = {r for axis in around.axes for r in axis} if around is not None else set()
  inside = [rname(r) for r in rest if r not in weight.free and r not in within]
  slid = [rname(r) for r in rest if r in within]
  outside += filter(None, [panels])
  many = prod(rsize(w.range(name)) for name in outside)
  if outside and inside and many < 4 * machine.threads:  # a panel for each of some parts of what has it again
    size = rsize(w.range(inside[0]))
    part = -(-size // -(-4 * machine.threads // many))
    if part < size and w.attempt(f"split {inside[0]} {part} -> {inside[0]}o, {inside[0]} overlap"):
      outside.append(f"{inside[0]}o")
  loops = [*outside, *inside, *slid, *filter(None, [row_loop])]
  w.attempt(" ".join(["order", *loops, row, lane]))
  shared(w, outside or (inside if slid and inside else loops), machine)
  for axis in around.axes if around is not None else ():
    w.attempt(f"bound {rname(axis[0])} finite")


# ---------------------------------------------------------------- sums along rows


class Sums(NamedTuple):
  """A contraction whose sum runs along the rows of what slides: out[.., rows, .., channels, taps]."""

  along: list[UOp]  # the summed ranges that a window slides along
  taps: list[UOp]  # the outputs that are places in the window
  channels: UOp | None  # another output of what slides


def find_sums(found: Windows) -> Sums | None:
  _, index, gate = access(found.seen)
  along, taps = [], []
  for i in index:
    *short, long = sorted((t for t in linear(i)[0] if t.op == "range"), key=rsize) or [None]
    if long in found.summed and (short or long in gate.free):
      along.append(long)
      taps += [r for r in short if r in found.columns]
  rest = [r for r in found.columns if r not in taps]
  if not along or found.weight.op != "load" or coefficient(flat_index(found.weight), along[-1]) != 1:
    return None
  return Sums(along, taps, max(rest, key=rsize, default=None))


def sums(w: Writer, machine: Machine) -> bool:
  """The gradient of a weight: a tile is rows by places in the window, or by channels."""
  found = find_windows(w.kernel)
  this = find_sums(found) if found is not None else None
  if found is None or this is None:
    return False
  name = next((n[1:] for n, u in w.named.items() if u is found.seen), "")
  return bool(name) and (
    sums_of_channels(w, found, this, name, machine) or sums_along(w, found, this, name, machine)
  )


def sums_of_channels(w: Writer, found: Windows, this: Sums, name: str, machine: Machine) -> bool:
  """Vectors along the channels of what slides, which is copied to the stack with its channels side by side."""
  c, lanes = this.channels, machine.lanes
  tap_of = {r: next((t for t in this.taps if slides_along(found.seen, t, r)), None) for r in this.along}
  if c is None or rsize(c) < lanes or c not in found.seen.free or not set(this.taps) <= set(tap_of.values()):
    return False
  axes = [(r,) if (tap := tap_of.get(r)) is None else (r, tap) for r in found.summed if r in found.seen.free]
  elements = prod(sum(map(rsize, axis)) - len(axis) + 1 for axis in axes)
  # a tile, and the vectors and numbers that it is made of, are in registers
  tile, unrolled = 1, []
  for r in reversed(this.taps):
    if (machine.registers - tile * rsize(r)) // (tile * rsize(r) + 1) >= 2:
      tile *= rsize(r)
      unrolled.append(r)
  wide = [n for n in ([2, 1] if tile == 1 else [1]) if n * lanes <= rsize(c)]
  fitting = [n for n in wide if n * lanes * elements * found.seen.dtype.itemsize <= machine.panel_bytes]
  if not fitting:
    return False
  tile *= fitting[0]
  outer = [rname(r) for r in closed(w.kernel) if r is not found.rows and r is not c and r not in this.taps]
  panels, lane = cut(w, rname(c), rsize(c), fitting[0] * lanes, "vec")
  over = [" + ".join(map(rname, axis)) for axis in axes]
  w.attempt(f"stage {name} over ({', '.join([*over, lane])}) stack")
  for r in unrolled:
    w.attempt(f"unroll {rname(r)}")
  size, tall = rsize(found.rows), max((machine.registers - tile) // (tile + 1), 1)
  row_loop, row = cut(w, rname(found.rows), size, -(-size // -(-size // tall)), "unroll")
  outer += filter(None, [panels])
  inner = [*filter(None, [row_loop]), *(rname(r) for r in this.taps if r not in unrolled)]
  w.attempt(" ".join(["order", *outer, *inner, row, lane]))
  shared(w, outer or inner, machine)
  return True


def sums_along(w: Writer, found: Windows, this: Sums, name: str, machine: Machine) -> bool:
  """Vectors along the sum."""
  row, across = rname(this.along[-1]), None
  if len(this.along) > 1:
    across = next((r for r in this.taps if slides_along(found.seen, r, this.along[-2])), None)
  contiguous = len(this.along) > 1 and coefficient(flat_index(found.weight), this.along[-2]) == rsize(
    this.along[-1]
  )
  length = rsize(this.along[-1]) * (rsize(this.along[-2]) if contiguous else 1)
  if length < machine.lanes:
    return False
  # what is staged: for as many channels as fit, all that the sum and the window need
  tap_names = [rname(r) for r in this.taps if r is not across]
  axes = [rname(r) for r in found.summed if r not in this.along[-2:] and r in found.seen.free]
  down = [rname(r) for r in this.along[-2:-1]]
  axes += [f"{rname(across)} + {down[0]}"] if across is not None else down
  nbytes = found.seen.dtype.itemsize * prod(
    rsize(r) for r in {*found.summed, *this.taps} if r in found.seen.free
  )
  if across is not None and down:
    height = rsize(this.along[-2])
    nbytes = nbytes // (rsize(across) * height) * (rsize(across) + height - 1)
  block = machine.panel_bytes // nbytes
  if block < 1:
    return False
  outer = [rname(r) for r in closed(w.kernel) if r not in (found.rows, this.channels) and r not in this.taps]
  middle: list[str] = []
  if this.channels is not None:
    c, size = rname(this.channels), rsize(this.channels)
    block = -(-size // -(-size // block))
    if block < size and w.attempt(f"split {c} {block} -> {c}o, {c}i overlap"):
      outer, c = [*outer, f"{c}o"], f"{c}i"
    tap_names, middle = [c, *tap_names], [c]
  w.attempt(f"stage {name} over ({', '.join([*tap_names, *axes, row])}) stack")
  copy_rows(w, f"{row}.{name}", machine)
  if contiguous and w.attempt(f"collapse {down[0]} {row} -> {down[0]}"):
    row = down[0]
  tile_of_sums(w, found, this, row, length, outer, middle, machine)
  return True


def tile_of_sums(w: Writer, found: Windows, this: Sums, row: str, length: int, outer: list[str], middle: list[str],
                 machine: Machine) -> None:  # fmt: skip
  """Sums along `row` of so many terms in registers, beside what they are sums of.
  outer, middle: the loops around a tile."""
  most, tile = machine.registers * 27 // 32, 1
  for r in reversed(this.taps):
    if tile * rsize(r) * 2 <= most and w.attempt(f"unroll {rname(r)}"):
      tile *= rsize(r)
    else:
      middle.append(rname(r))
  if tile == 1 and middle and this.channels is not None:
    size = next(rsize(r) for r in closed(w.kernel) if rname(r) == middle[0])
    tile = min(4, size)
    loop, _ = cut(w, middle[0], size, tile, "unroll")
    middle[:1] = [loop] if loop else []
  rows = rname(found.rows)
  tall = min(most // tile, 6)
  tall = -(-rsize(found.rows) // -(-rsize(found.rows) // tall))
  row_loop, _ = cut(w, rows, rsize(found.rows), tall, "unroll")
  if length == machine.lanes:
    w.attempt(f"vec {row}")
  elif w.attempt(f"split {row} {machine.lanes} -> {row}o, {row}v peel"):
    w.attempt(f"vec {row}v")
  w.attempt(" ".join(["order", *outer, *filter(None, [row_loop]), *middle]))
  shared(w, outer or [n for n in (row_loop, *middle) if n], machine)


def slides_along(seen: UOp, tap: UOp, r: UOp) -> bool:
  """Is an axis read at tap + r?"""
  return any(linear(i)[0].get(tap) == linear(i)[0].get(r) == 1 for i in access(seen)[1])


# ---------------------------------------------------------------- steps of both


def follows(kernel: UOp, q: UOp, p: UOp) -> bool:
  """Does the output go on with the next p where the elements along q end,
  in all that is stored and in no other memory?"""
  return all(
    coefficient(flat_index(s), p) == rsize(q) * (coefficient(flat_index(s), q) or 0) for s in stores(kernel)
  )


def copy_rows(w: Writer, name: str, machine: Machine) -> None:
  """The rows that are copied to the stack, in vectors; those that are shorter than one, element by element."""
  size = next((rsize(r) for r in all_ranges(w.kernel) if rname(r) == name), 0)
  if size >= machine.lanes:
    cut(w, name, size, machine.lanes, "vec")
  else:
    w.attempt(f"unroll {name}")


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
