"""Recipes for devices with groups of threads:
what contraction.py and stream.py are for processors with vector registers.

Three families. A *contraction* is tiled twice: a group computes a block of the output from panels in shared memory, and
each thread a small tile of the block in registers. A kernel with long *rows* to reduce has a group for each row. All
else has a thread for each few neighbouring outputs. Neighbouring threads touch neighbouring memory wherever a range of
stride one can be given to them.
"""

from __future__ import annotations

from math import prod

from mini.codegen.contraction import Product, factors, find_product, flat_index_of
from mini.codegen.linearize import is_loop
from mini.codegen.matrix import INSTRUCTIONS, tile_size
from mini.codegen.recipe_builder import Machine, Writer, coefficient, collapse_outputs
from mini.codegen.stream import contiguous
from mini.ir.index import flatten
from mini.ir.kernel import access, all_ranges, contractions
from mini.ir.uop import UOp, closed, rname, rsize, toposort
from mini.types import dtypes

PANEL = 16  # steps of a contraction's sum whose operands are in shared memory at once
ROW = 128  # a sum of at least so many terms has a group of threads of its own
VECTOR = 4  # neighbouring elements that a thread takes at once
# A group's block of outputs, and the part of it that a warp computes.
WARP_BLOCKS = ((128, 128, 64, 32), (64, 64, 32, 32), (32, 32, 16, 16))
# A group's block of outputs, and a thread's tile of it; the first is taken that leaves enough groups.
BLOCKS = ((128, 128, 8, 8), (64, 64, 4, 4), (32, 32, 2, 4))


def write(w: Writer, machine: Machine) -> None:
  """The steps for a kernel."""
  collapse_outputs(w)
  if not (contraction(w, machine) or rows(w, machine)):
    points(w)


def floor_power(n: int) -> int:
  """The largest power of two that is at most n."""
  return 1 << n.bit_length() - 1


def loops(owner: UOp) -> list[UOp]:
  return [r for r in closed(owner) if is_loop(r)]


def merge(w: Writer, names: list[str], made: str) -> str:
  """The ranges, which one owner closes, as one; "" where they cannot be."""
  if len(names) > 1 and not w.attempt("order " + " ".join(names)):
    return ""
  first, *rest = names
  for name in rest:
    if not w.attempt(f"collapse {first} {name} -> {made}"):
      return ""
    first = made
  return first


def launch(w: Writer, names: list[str]) -> None:
  """These output loops run in parallel, outside of the others:
  as one range, or the longest where they cannot be one."""
  left = [rname(r) for r in loops(w.kernel)]
  names = [n for n in left if n in names]
  if not names:
    return
  saved, steps = (w.kernel, dict(w.named)), len(w.lines)
  inner = [n for n in left if n not in names]
  if not inner or w.attempt(" ".join(["order", *names, *inner])):
    one = merge(w, names, names[0])
    if one and w.attempt(f"par {one}"):
      return
  (w.kernel, w.named), w.lines = saved, w.lines[:steps]
  for r in sorted(loops(w.kernel), key=rsize, reverse=True):
    if rname(r) in names and w.attempt(f"par {rname(r)}"):
      w.attempt(" ".join(["order", rname(r), *(x for x in left if x != rname(r))]))
      return


# ---------------------------------------------------------------- contractions


def contraction(w: Writer, machine: Machine) -> bool:
  """Blocks and tiles; False where the shape gives none."""
  order = toposort(w.kernel)
  found = find_product(w.kernel) if contractions(w.kernel) else None
  if (
    found is None
    or sum(u.op == "reduce" for u in order) != 1
    or any(u.op in ("stage", "scan") for u in order)
  ):
    return False
  m, n = rsize(found.rows), rsize(found.columns)
  batch = prod(rsize(r) for r in loops(w.kernel)) // (m * n)
  if by_matrices(w, found, batch, machine):
    return True
  bm, bn, tm, tn = next(
    (b for b in BLOCKS if m >= b[0] and n >= b[1] and batch * (m // b[0]) * (n // b[1]) >= machine.units),
    (*(min(32, floor_power(x)) for x in (m, n)), 2, 4),
  )
  tm, tn = min(tm, bm), min(tn, bn)
  if bm * bn // (tm * tn) < 32:  # less than a warp
    return False
  i, j = rname(found.rows), rname(found.columns)
  if not (w.attempt(f"split {i} {bm} -> {i}o, {i}b overlap") and w.attempt(f"split {i}b {tm} -> {i}t, {i}i")):
    return False
  if not (w.attempt(f"split {j} {bn} -> {j}o, {j}b overlap") and w.attempt(f"split {j}b {tn} -> {j}t, {j}i")):
    return False
  inner = panel(w)
  outer = [rname(r) for r in loops(w.kernel) if rname(r) not in (f"{i}t", f"{i}i", f"{j}t", f"{j}i")]
  w.attempt(" ".join(["order", *outer, f"{i}t", f"{j}t", f"{i}i", f"{j}i"]))
  w.attempt(f"local {i}t {j}t")
  w.attempt(f"unroll {i}i")
  w.attempt(f"vec {j}i" if tn % VECTOR == 0 else f"unroll {j}i")
  launch(w, outer)
  threads = bm * bn // (tm * tn)
  share(w, [inner], [f"{i}t", f"{i}i"], threads, machine)
  share(w, [inner], [f"{j}t", f"{j}i"], threads, machine)
  return True


def panel(w: Writer, steps: int = PANEL) -> str:
  """The range of the sum that runs within a panel."""
  summed = contractions(w.kernel)[0]
  k = max(loops(summed), key=rsize)
  name, size = rname(k), rsize(k)
  if size > steps and w.attempt(f"split {name} {steps} -> {name}o, {name}i peel"):
    others = [rname(r) for r in loops(summed) if r is not k]
    w.attempt(" ".join(["order", *others, f"{name}o", f"{name}i"]))
    return f"{name}i"
  return name


def by_matrices(w: Writer, found: Product, batch: int, machine: Machine) -> bool:
  """Blocks whose tiles a warp multiplies by matrix instructions; False where the machine has none for the operands."""
  operands = [beneath(f) for f in factors(contractions(w.kernel)[0])]
  name = next((n for n in sorted(machine.matrices) if usable(n, operands, w, machine)), "")
  if not name:
    return False
  row = INSTRUCTIONS[name]
  rows, columns, steps = (tile_size(axis) for axis in (row.rows, row.columns, row.a_inner))
  m, n = rsize(found.rows), rsize(found.columns)
  longest = max(rsize(r) for r in loops(contractions(w.kernel)[0]))
  bm, bn, wm, wn = next(
    (
      b for b in WARP_BLOCKS if m >= b[0] and n >= b[1] and batch * (m // b[0]) * (n // b[1]) >= machine.units
    ),
    WARP_BLOCKS[-1],
  )
  if m < bm or n < bn or longest < 2 * steps:
    return False
  saved, count = (w.kernel, dict(w.named)), len(w.lines)
  i, j = rname(found.rows), rname(found.columns)
  inner = panel(w, 2 * steps)
  outer = [rname(r) for r in loops(w.kernel) if r is not found.rows and r is not found.columns]
  lines = [
    line
    for x, block, tall, tile in ((i, bm, wm, rows), (j, bn, wn, columns))
    for line in (
      f"split {x} {block} -> {x}o, {x}b overlap",
      f"split {x}b {tall} -> {x}w, {x}r",
      f"split {x}r {tile} -> {x}t, {x}",
    )
  ]
  k = f"{inner}k"
  lines.append(f"split {inner} {steps} -> {inner}t, {k}")
  inside = [f"{i}w", f"{j}w", f"{i}t", f"{j}t", i, j]
  lines += [" ".join(["order", *outer, f"{i}o", f"{j}o", *inside]), f"local {i}w {j}w", f"unroll {i}t {j}t"]
  if all(map(w.attempt, lines)):
    launch(w, [*outer, f"{i}o", f"{j}o"])
    threads = 32 * (bm // wm) * (bn // wn)
    share(w, [f"{inner}t", k], [f"{i}w", f"{i}t", i], threads, machine)
    share(w, [f"{inner}t", k], [f"{j}w", f"{j}t", j], threads, machine)
    if w.attempt(f"matrix {name} {i} {j} {k}"):
      return True
  (w.kernel, w.named), w.lines = saved, w.lines[:count]
  return False


def usable(name: str, operands: list[UOp], w: Writer, machine: Machine) -> bool:
  """Does this instruction take the operands,
  and sum up as exactly as the kernel asks? TF32 rounds what it multiplies."""
  exact = "tf32" not in name or machine.fast
  return (
    exact
    and contractions(w.kernel)[0].dtype is dtypes.float32
    and all(u.dtype is INSTRUCTIONS[name].operand for u in operands)
  )


def beneath(factor: UOp) -> UOp:
  """What becomes a factor by a conversion that loses nothing."""
  while factor.op == "cast" and factor.src[0].dtype.itemsize < factor.dtype.itemsize:
    factor = factor.src[0]
  return factor


def share(w: Writer, inner: list[str], tile: list[str], threads: int, machine: Machine) -> None:
  """An operand's panel in shared memory. Threads fill it in the order in which it lies in the memory that it comes
  from."""
  found = (beneath(f) for f in factors(contractions(w.kernel)[0]))
  value = next((f for f in found if any(rname(r) == tile[-1] for r in f.free)), None)
  name = next((name[1:] for name, u in w.named.items() if u is value), "")
  sizes = {rname(r): rsize(r) for r in (value.free if value is not None else ())}
  if value is None or not name or any(r not in sizes for r in inner):
    return
  tile = [r for r in tile if r in sizes]  # an index j % 4 of tiles of 4 is the same in each of them
  elements = prod(sizes[r] for r in (*inner, *tile))
  if elements.bit_count() != 1 or elements * value.dtype.itemsize > machine.shared_bytes // 2:
    return
  along = strides(value)
  if not w.attempt(f"stage {name} over ({', '.join((*inner, *tile))}) shared"):
    return
  mine, inside = [f"{r}.{name}" for r in tile], [f"{r}.{name}" for r in inner]
  flat = merge(w, [*mine, *inside] if along.get(inner[-1]) == 1 else [*inside, *mine], f"f.{name}")
  if flat and elements > threads and w.attempt(f"split {flat} {threads} -> f.{name}o, f.{name}t"):
    w.attempt(f"unroll f.{name}o")
    flat = f"f.{name}t"
  if flat:
    w.attempt(f"local {flat}")


def strides(value: UOp) -> dict[str, int | None]:
  """{range: by how much the address of the load beneath a factor moves with it}."""
  flat = flat_index_of(value)
  return {rname(r): coefficient(flat, r) for r in value.free}


# ---------------------------------------------------------------- rows


def rows(w: Writer, machine: Machine) -> bool:
  """A group for each row of a kernel that reduces long rows; False where there are none."""
  reduces = [u for u in toposort(w.kernel) if u.op == "reduce"]
  longest = max((prod(rsize(r) for r in loops(u)) for u in reduces), default=0)
  if longest < ROW or any(u.op == "scan" for u in toposort(w.kernel)):
    return False
  outputs = {r for r in loops(w.kernel) if any(r in u.free for u in reduces)}
  along = best_range(reduces)
  if along is None and prod(map(rsize, outputs)) >= 32 * machine.units:
    return False  # neighbouring outputs are neighbours in memory: a thread for each
  threads = min(256, machine.group, max(32, floor_power(longest // 2)))
  keep_rows(w, machine)
  owners = [u for u in reversed(toposort(w.kernel)) if u.op in ("reduce", "stage")]
  for u in owners:
    spread(w, u, threads)
  outer, rest = (
    [rname(r) for r in loops(w.kernel) if r in outputs],
    [r for r in loops(w.kernel) if r not in outputs],
  )
  if rest:
    r = max(rest, key=rsize)
    lanes(w, rname(r), rsize(r), threads, "overlap")
  launch(w, outer or [rname(r) for r in loops(w.kernel)])
  return True


def keep_rows(w: Writer, machine: Machine) -> None:
  """Rows that were meant for the stack of one thread are the group's; what is too long for it is computed again."""
  room = machine.shared_bytes // 2
  for u in [u for u in toposort(w.kernel) if u.op == "stage"]:
    name = next(name[1:] for name, v in w.named.items() if v is u)
    nbytes = u.dtype.itemsize * prod(u.arg.shape)
    if nbytes <= room and w.attempt(f"move {name} shared"):
      room -= nbytes
    else:
      w.attempt(f"inline {name}")


def best_range(reduces: list[UOp]) -> UOp | None:
  """A range of stride one that some reduce closes."""
  for u in reduces:
    for r in loops(u):
      for x in toposort(u.src[0]):
        if x.op == "load" and r in x.free:
          memory, index, _ = access(x)
          if memory.op == "param" and coefficient(flatten(index, memory.arg[1]), r) == 1:
            return r
  return None


def spread(w: Writer, owner: UOp, threads: int) -> None:
  """The longest range of a reduce or a stage, or that of stride one, over the threads."""
  mine = loops(owner)
  if not mine:
    return
  r = best_range([owner]) or max(mine, key=rsize)
  lanes(w, rname(r), rsize(r), threads, "peel" if owner.op == "reduce" else "overlap")


def lanes(w: Writer, name: str, size: int, threads: int, mode: str) -> None:
  """A range over at most so many threads; what is left over, over fewer."""
  n = min(threads, floor_power(size))
  if n < 2:
    return
  if n == size:
    w.attempt(f"local {name}")
    return
  before = set(all_ranges(w.kernel))
  if w.attempt(f"split {name} {n} -> {name}o, {name}l {mode}"):
    rest = next(
      (r for r in all_ranges(w.kernel) if r not in before and rname(r).startswith(f"{name}.rest")), None
    )
    w.attempt(f"local {name}l")
    if rest is not None and rsize(rest) >= 32:
      lanes(w, rname(rest), rsize(rest), 32, mode)


# ---------------------------------------------------------------- everything else


def points(w: Writer) -> None:
  """A thread for each few neighbouring outputs."""
  r = contiguous(w.kernel, w.kernel)
  nested = any(u.op in ("reduce", "scan", "stage") for u in toposort(w.kernel))
  if r is not None and not nested and rsize(r) >= VECTOR:
    name = rname(r)
    others = [rname(x) for x in loops(w.kernel) if x is not r]
    mode = "overlap" if rsize(r) >= 64 * VECTOR or rsize(r) % VECTOR == 0 else ""
    if mode and w.attempt(f"split {name} {VECTOR} -> {name}o, {name}v {mode}"):
      w.attempt(" ".join(["order", *others, f"{name}o"]))
      w.attempt(f"vec {name}v")
  elif r is not None:
    w.attempt("order " + " ".join([*(rname(x) for x in loops(w.kernel) if x is not r), rname(r)]))
  launch(w, [rname(r) for r in loops(w.kernel)])
