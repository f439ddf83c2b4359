"""Recipes for gradients of a convolution's weight: contractions whose sum runs along the rows of what slides
(convolution.py). The vectors run along the channels of the input, or along the sum.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from mini.codegen.convolution import Windows, copy_rows, find_windows, slid_along
from mini.codegen.recipe_builder import Machine, Writer, coefficient, cut, flat_index, shared
from mini.ir.kernel import access
from mini.ir.uop import UOp, closed, linear, rname, rsize


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
  c, lanes, axes = this.channels, machine.lanes, slid_along(found) or []
  windows = {t for axis in axes for t in axis.columns}
  if c is None or rsize(c) < lanes or c not in found.seen.free or not axes or not windows >= {*this.taps}:
    return False
  axes.sort(key=lambda axis: found.summed.index(axis.tap))  # the order of the sum
  elements = prod(axis.reach for axis in axes)
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
  w.attempt(f"stage {name} over ({', '.join([*map(str, axes), lane])}) stack")
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
