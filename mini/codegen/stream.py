"""Recipes for everything that streams: the contiguous range becomes vectors, the outermost one runs in parallel."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from mini.codegen.linearize import is_loop
from mini.codegen.recipe_builder import (
  Machine,
  Writer,
  accesses,
  coefficient,
  collapse,
  collapse_outputs,
  cut,
  cut_sum,
  flat_index,
  owner_key,
  owner_named,
  owners,
  split_runs,
  turning,
)
from mini.codegen.threads import stage_bytes
from mini.ir.kernel import access, all_ranges, below_data, is_inline, stores, wanted
from mini.ir.uop import TRUE, UOp, closed, linear, rkind, rname, rsize, toposort
from mini.types import dtypes

LONG_TURN = (
  16  # elements side by side before they begin again, as in a roll: not each vector is read in parts
)
AGAIN = 8  # what an access in a loop of a sum counts, beside one outside


def contiguous(owner: UOp, kernel: UOp, pairs: bool = False) -> UOp | None:
  """The range of this owner along which its accesses are contiguous: the one to make a vector of. pairs: a load of
  every second element, or of all backwards, is not much more than one of each."""
  values = list(stores(kernel)) if owner.op == "kernel" else [owner.src[0]]
  touched = [u for v in values for u in accesses(v)] + ([owner] if owner.op == "stage" else [])
  fixed = {u.src[1] for u in toposort(kernel) if u.op == "scan"}
  inner = {r for u in toposort(*values) for r in closed(u)}  # what depends on these is done again and again
  scores: dict[UOp, int] = {}
  for r in closed(owner):
    if r in fixed or not is_loop(r):
      continue
    score = 0
    for u in dict.fromkeys(touched):
      flat = flat_index(u)
      gate = access(u)[2] if u.op != "stage" else None
      if r not in flat.free and (gate is None or r not in gate.free):
        continue
      weight = 2 if u.op in ("store", "stage") else AGAIN if u.free & inner else 1
      step = coefficient(flat, r)
      edges = gate is not None and r in gate.free  # only vectors at an edge are read by elements
      turn = turning(flat, r) if u.op == "load" and not edges else None
      if pairs and turn is not None and turn.src[1].arg >= LONG_TURN:
        score += weight
      elif edges and not (pairs and u.op == "load" and step in (-1, 1, 2)):
        score -= weight * 2
      elif pairs and step in (-1, 2):
        score += weight if u.op == "load" and not edges else 0
      else:
        score += weight if step == 1 else -weight * 2
    numbers = [u.src[0] for u in toposort(*values) if u.op == "cast" and u.src[0].dtype is dtypes.index]
    if any(coefficient(x, r) is None for x in numbers):
      score -= 1
    scores[r] = score if touched else 1
  best = max(scores, key=lambda r: scores[r], default=None)
  return best if best is not None and scores[best] > 0 else None


def stream(w: Writer, machine: Machine) -> None:
  collapse_outputs(w)
  collapse_sums(w)
  if any(u.op == "reduce" for u in toposort(w.kernel)):
    split_runs(w, closed(w.kernel), accesses(w.kernel))
  if any(shape(w, machine) for shape in (tile_transposed, across_rows, rows_apart, few_rows, sums_wait)):
    return parallel(w, machine)
  split_repeats(w)
  longest = max((rsize(r) for u in owners(w.kernel) if (r := contiguous(u, w.kernel, True))), default=0)
  if 4 <= longest < machine.lanes:
    machine = machine._replace(lanes=1 << longest.bit_length() - 1)
  along_memory(w, machine, vectorize)
  interleave_scans(w)
  parallel(w, machine)


def along_memory(w: Writer, machine: Machine, cut: Callable[[Writer, UOp, UOp, Machine], None]) -> None:
  """The contiguous range of each owner is cut, where there is none of another in it already."""
  done: set[str] = set()  # owners by their first range's name: nodes change with every step
  while True:
    owner = next((u for u in owners(w.kernel) if owner_key(u) not in done), None)
    if owner is None:
      break
    done.add(owner_key(owner))
    values = stores(w.kernel) if owner.op == "kernel" else (owner.src[0],)
    if any(
      rkind(r) == "vec"
      for v in values
      for r in v.free | frozenset(x for u in toposort(v) for x in closed(u))
      if owner.op == "kernel" or r in v.free
    ):
      continue
    r = contiguous(owner, w.kernel, True)
    if r is None:
      continue
    cut(w, owner, r, machine)
    done |= {f"{owner.op} {rname(r)}{suffix}" for suffix in ("o", "v", ".rest")}  # what it has become


def collapse_sums(w: Writer) -> None:
  """A reduce goes through memory in order, in as few loops as that takes."""
  for name in [owner_key(u) for u in owners(w.kernel) if u.op == "reduce" and len(closed(u)) > 1]:
    owner = owner_named(w, name)
    steps = {
      r: max((coefficient(flat_index(u), r) or 0 for u in accesses(owner.src[0])), default=0)
      for r in closed(owner)
    }
    inwards = sorted(closed(owner), key=lambda r: -steps[r])
    if inwards != list(closed(owner)):
      w.attempt("order " + " ".join(map(rname, inwards)))
    collapse(w, f"reduce {rname(inwards[0])}")


def split_repeats(w: Writer) -> None:
  """Where neighbours read one element, as those in a pooled window do in the gradient, they are lanes of their own."""
  for name in map(rname, all_ranges(w.kernel)):
    for n in (2, 3, 4):
      if any(repeats(flat_index(u), name, n) for u in accesses(w.kernel)):
        if w.attempt(f"split {name} {n} -> {name}o, {name}r"):
          w.attempt(f"unroll {name}r")
        break


def repeats(index: UOp, name: str, n: int) -> bool:
  """Does an index hold this range divided by n?"""
  quotients = [t.src[0] for t in linear(index)[0] if t.op == "div" and t.src[1].arg == n]
  return any(
    [(rname(r), step) for r, step in linear(q)[0].items() if r.op == "range"] == [(name, 1)]
    for q in quotients
  )


TILE = 64  # rows and columns: of 4-byte numbers half of an L1 cache


def transposed(kernel: UOp) -> tuple[UOp, UOp, list[UOp]] | None:
  """(the range along which memory is read, that along which it is written, the loads) of a kernel that only moves and
  computes, and turns what it reads."""
  if any(u.op in ("reduce", "scan", "stage") for u in toposort(kernel)):
    return None
  written = [flat_index(s) for s in stores(kernel)]
  for j in closed(kernel):
    if all(coefficient(f, j) == 1 for f in written):
      break
  else:
    return None
  turned: dict[UOp, list[UOp]] = {}
  for u in accesses(kernel):
    f = flat_index(u)
    i = next((r for r in closed(kernel) if r is not j and coefficient(f, r) == 1), None)
    if u.op == "load" and i is not None and coefficient(f, j) and not access(u)[2].free & {i, j}:
      turned.setdefault(i, []).append(u)
  i = max(turned, key=lambda r: len(turned[r]), default=None)
  return (i, j, turned[i]) if i is not None else None


def tile_transposed(w: Writer, machine: Machine) -> bool:
  """Where memory is read along one range and written along another, square tiles pass through the stack: each side
  meets whole cache lines, and vectors turn in registers."""
  found, lanes = transposed(w.kernel), machine.lanes
  if found is None or min(map(rsize, found[:2])) < lanes:
    return False
  names = [next(n[1:] for n, u in w.named.items() if u is load) for load in found[2]]
  outer = [rname(r) for r in closed(w.kernel) if r not in found[:2]]
  i, j = map(rname, found[:2])
  sizes = TILE, 2 * lanes, lanes
  n = next((n for n in sizes if w.attempt(f"split {i} {n} -> {i}o, {i}t overlap")), 0)
  m = next((m for m in sizes if n and w.attempt(f"split {j} {m} -> {j}o, {j}t overlap")), 0)
  if not m:
    return False
  w.attempt("order " + " ".join([*outer, f"{j}o", f"{i}o", f"{i}t", f"{j}t"]))
  for name in names:
    read, turned = f"{i}t.{name}", f"{j}t.{name}"
    w.attempt(f"stage {name} over ({i}t, {j}t) stack")
    cut(w, turned, m, lanes, "unroll")
    cut(w, read, n, lanes, "vec")
    w.attempt(f"order {turned}o {read}o")
  return w.attempt(f"vec {j}t")


def vectorize(w: Writer, owner: UOp, r: UOp, machine: Machine) -> None:
  name, size, lanes = rname(r), rsize(r), machine.lanes
  reduces_below = any(u.op in ("reduce", "scan") and r in u.free for u in toposort(w.kernel))
  widths = [4 * lanes, 2 * lanes, lanes] if owner.op == "reduce" or reduces_below else [2 * lanes, lanes]
  if owner is w.kernel and reduces_below:
    found = [n for n in wide(w.kernel, r, machine) if size >= n * machine.threads]
    # else threads wait for the one with a block more
    even = [n for n in found if size % (n * machine.threads) == 0]
    widths = [*even, *found, *widths]
  held = held_for_each(w.kernel, r)
  widths = [n for n in widths if n * held <= machine.stack_bytes]
  rest = [x for x in closed(owner) if x is not r]
  # what is computed once for each r, and not in another loop, stays outside of that loop
  inside = [
    x for x in rest if owner is w.kernel and any(r in u.free and x not in u.free for u in owners(w.kernel))
  ]
  if inside:  # vectors of r run in parallel: a thread would do for itself what is outside of another loop
    widths = [n for n in widths if size >= n * machine.threads] or widths[-1:]
  order = [rname(x) for x in rest if x not in inside]
  after = [rname(x) for x in inside]
  for n in widths:
    if n == 1 or size < n or (size % n and size < 2 * n and n > lanes):
      continue
    if size == n:
      w.attempt(f"vec {name}")
      return
    if owner.op == "reduce":
      if cut_sum(w, name, n, lanes):
        return
    elif w.attempt(f"split {name} {n} -> {name}o, {name}v overlap"):
      if closed(owner)[-1] is not r and rest:
        w.attempt("order " + " ".join([*order, f"{name}o", *after]))
      w.attempt(f"vec {name}v")
      return


def held_for_each(kernel: UOp, r: UOp) -> int:
  """Bytes of the stages that each lane of r would have."""
  return sum(stage_bytes(u) for u in toposort(kernel) if u.op == "stage" and r in u.free)


def wide(kernel: UOp, r: UOp, machine: Machine) -> list[int]:
  """Of sums over rows that lie apart the more is read of each row at a time the better, as long as accumulators and
  what is added to them are few. (What is kept in fewer bits takes registers on its way.)"""
  sums = [u for u in toposort(kernel) if u.op in ("reduce", "scan") and r in u.free]
  if not sums:
    return []
  values = {x for u in sums for x in toposort(u.src[0]) if r in x.free and x.dtype is not dtypes.index}
  narrow = [x for x in values if x.op == "load" and x.dtype.itemsize < 4]
  most = 4 * machine.registers // (len(sums) + len(values) + len(narrow))
  return [n * machine.lanes for n in (32, 24, 16, 12, 8) if n <= most]


FEW, FEWER = 8, 3  # numbers of a row that lie together; where nothing is reduced
NEAR = 512  # elements from one row to the next, at most: what lanes take together stays in an L1 cache
WINDOW = 4  # numbers that are reduced at once, without a loop


def across_rows(w: Writer, machine: Machine) -> bool:
  """Rows that fill no vectors: each lane takes one, whose numbers are fetched one by one,
  and no lanes are to be combined."""
  kernel, outputs = w.kernel, closed(w.kernel)
  rows = next((r for r in reversed(outputs) if rsize(r) >= machine.lanes), None)
  if rows is None or any(u.op == "scan" for u in toposort(kernel)):
    return False
  reduced = {r for u in owners(kernel) if u is not kernel for r in closed(u)}
  inner = reduced | set(outputs[outputs.index(rows) + 1 :])
  touched = [u for u in accesses(kernel) if u.src[0].op == "param" and rows in u.free]
  walked = [flat_index(u) for u in touched if not u.free.isdisjoint(inner)]
  alike = [r for r in inner if any(coefficient(f, r) == 1 for f in walked)]
  alike = [r for r in alike if all(coefficient(f, r) in (0, 1) for f in walked)]
  if (
    not walked
    or machine.lanes * held_for_each(kernel, rows) > machine.stack_bytes
    or prod(map(rsize, outputs[: outputs.index(rows) + 1])) < 4 * machine.lanes
    or any(coefficient(flat_index(u), rows) is None for u in touched)
    or not all(1 < (coefficient(f, rows) or 0) <= NEAR for f in walked)
    or max(map(rsize, alike), default=0) > (FEW if reduced else FEWER)
  ):
    return False
  name = rname(rows)
  if not w.attempt(f"split {name} {machine.lanes} -> {name}o, {name}v overlap"):
    return False
  for u in owners(kernel):
    if u.op == "reduce" and prod(map(rsize, closed(u))) <= WINDOW:
      for r in closed(u):
        w.attempt(f"unroll {rname(r)}")
  return w.attempt(f"vec {name}v")


LARGE = 1 << 19  # bytes of a memory that no near cache holds
SIMPLE = 4  # operations on what is read, more of which take longer than reading
PIECE = 32  # bytes of it in a vector, at most: half of a cache line
# in so many at once, where there are fewer rows for each thread than a processor has streams
PLACES = 4, 2, 1


def rows_apart(w: Writer, machine: Machine) -> bool:
  """The sum of each row of a large memory, which is read in several places at once: a processor has more on its way
  to it where it sees several streams. (One core of an Ice Lake read 14.2 GB/s of rows by a vector, in place of 10.)
  Half a line at a time: a Zen 4 takes 0.85 to 0.95 of the time that vectors of a whole one take."""
  kernel, outputs = w.kernel, [r for r in closed(w.kernel) if rsize(r) > 1]
  sums = [u for u in toposort(kernel) if u.op in ("reduce", "stage", "scan")]
  if len(sums) != 1 or sums[0].op != "reduce" or len(closed(sums[0])) != 1 or len(outputs) != 1:
    return False
  (k,), (row,), value = closed(sums[0]), outputs, sums[0].src[0]
  touched = [u for u in accesses(value) if row in u.free]
  if (
    rsize(k) < 4 * machine.lanes
    or rsize(row) < machine.streams
    or wanted(kernel)
    or not touched
    or any(below_data(u) for u in toposort(kernel))
    or sum(not is_inline(u) and u.op != "load" for u in toposort(value)) > SIMPLE
    or any(coefficient(flat_index(u), k) not in (0, 1) for u in accesses(value))
    or any((coefficient(flat_index(u), row) or 0) < rsize(k) for u in touched)
    or max(rsize(k) * rsize(row) * u.dtype.itemsize for u in touched) < LARGE
  ):
    return False
  name, summed = rname(row), rname(k)
  lanes = min(machine.lanes, PIECE // max(u.dtype.itemsize for u in touched))
  # threads come first; whatever their number is, a row is added up alike
  places = next(n for n in (machine.streams, *PLACES) if rsize(row) >= 2 * n * machine.threads or n == 1)
  if places > 1 and w.attempt(f"split {name} {-(-rsize(row) // places)} -> {name}a, {name} overlap"):
    w.attempt(f"unroll {name}a")
    w.attempt(f"order {name} {name}a")
  return cut_sum(w, summed, lanes, lanes)


MOST_ROWS = 16  # that are added up at once


def few_rows(w: Writer, machine: Machine) -> bool:
  """A few rows of a large memory that are added up: all of them at once, along each as it lies there."""
  kernel, outputs = w.kernel, closed(w.kernel)
  sums = [u for u in toposort(kernel) if u.op in ("reduce", "stage", "scan")]
  if len(sums) != 1 or sums[0].op != "reduce" or len(closed(sums[0])) != 1 or len(outputs) < 2:
    return False
  (k,), column, value = closed(sums[0]), outputs[-1], sums[0].src[0]
  flats = [(flat_index(u), u) for u in accesses(value) if column in u.free]
  if (
    not 1 < rsize(k) <= MOST_ROWS
    or rsize(column) < 4 * machine.lanes
    or wanted(kernel)
    or any(below_data(u) for u in toposort(kernel))
    or sum(not is_inline(u) and u.op != "load" for u in toposort(value)) > SIMPLE
    or not flats
    or any(coefficient(f, column) != 1 for f, _ in flats)
    or any((coefficient(f, k) or 0) < rsize(column) for f, _ in flats)
    or max(u.dtype.itemsize * prod(map(rsize, u.free)) for _, u in flats) < LARGE
  ):
    return False
  w.attempt(f"unroll {rname(k)}")
  cut(w, rname(column), rsize(column), machine.lanes, "vec")
  return True


TERMS = 8  # rows that are added up before the sum in memory is read and written
RUN = 128  # columns of a row, at least, before the next


def sums_wait(w: Writer, machine: Machine) -> bool:
  """Sums over the rows of a large memory wait in the L1 cache, and a few rows at a time are added to them, each read
  in long pieces. A first range of the sum is of places that stand apart (split.py). (4096 x 4096 on two cores of a
  Zen 4: half of the time that columns in registers took, which come back to each page of memory again and again.)"""
  kernel, outputs = w.kernel, closed(w.kernel)
  sums = [u for u in toposort(kernel) if u.op in ("reduce", "stage", "scan")]
  if len(sums) != 1 or sums[0].op != "reduce" or len(rows := closed(sums[0])) > 2 or not outputs:
    return False
  (*places, k), column, value = rows, outputs[-1], sums[0].src[0]
  read = [u for u in accesses(value) if column in u.free]
  parts = machine.threads if prod(map(rsize, outputs[:-1])) < machine.threads else 1
  most = machine.l1_bytes // 2 // sums[0].dtype.itemsize
  # with one thread: the order in which rows are added is that with any number
  alone, size = (part_size(rsize(column), n, most, machine.lanes) for n in (1, parts))
  in_order = alone == rsize(column) and alone in wide(kernel, column, machine)  # as registers read it
  if (
    in_order
    or prod(map(rsize, places)) > machine.streams
    or prod(map(rsize, rows)) < 4 * TERMS
    or not read
    or size < RUN
    or wanted(kernel)
    or any(below_data(u) for u in toposort(kernel))
    or sum(not is_inline(u) and u.op != "load" for u in toposort(value)) > SIMPLE
    or any(access(u)[2] is not TRUE or coefficient(flat_index(u), column) != 1 for u in read)
    or any((coefficient(flat_index(u), r) or 0) < rsize(column) for u in read for r in rows if r in u.free)
    or max(u.dtype.itemsize * prod(map(rsize, u.free)) for u in read) < LARGE
  ):
    return False
  name = next(n[1:] for n, u in w.named.items() if u is sums[0])
  j, summed = rname(column), rname(k)
  if size < rsize(column):
    if not w.attempt(f"split {j} {size} -> {j}p, {j} overlap"):
      return False
    others = [rname(r) for r in outputs[:-1]]
    w.attempt("order " + " ".join([f"{j}p", *others, j] if parts > 1 else [*others, f"{j}p", j]))
  whole = all(coefficient(flat_index(u), k) == alone for u in read if k in u.free)
  at_once, n = [*map(rname, places)], prod(map(rsize, rows)) // machine.streams
  if whole and n >= 4:  # each place goes on where its row ends
    if n < rsize(k) and w.attempt(f"split {summed} {n} -> {summed}u, {summed} peel"):
      at_once.append(f"{summed}u")
  elif not places and w.attempt(f"split {summed} {TERMS} -> {summed}, {summed}u peel"):
    at_once.append(f"{summed}u")
  w.attempt(f"stage {name} over ({j}) stack")
  w.attempt(f"around {summed}.{name}")
  for r in at_once:
    w.attempt(f"unroll {r}.{name}")
  for r in (f"{j}.{name}", j):
    cut(w, r, size, machine.lanes, "vec")
  return True


def part_size(columns: int, parts: int, most: int, lanes: int) -> int:
  """Columns of each part, in whole vectors: so many parts or, where one would be too large, so many times more."""
  part = -(-columns // parts)
  size = -(-part // -(-part // most) // lanes) * lanes
  return size if size <= columns else -(-columns // (2 * lanes)) * lanes


def interleave_scans(w: Writer) -> None:
  """Each step of a scan waits for the one before it: several rows at a time, where no vector runs across them."""
  kernel = w.kernel
  fixed = {u.src[1] for u in toposort(kernel) if u.op == "scan"}
  if not fixed or any(rkind(r) != "loop" for r in all_ranges(kernel)):
    return
  rows = max((r for r in closed(kernel) if r not in fixed), key=rsize, default=None)
  for n in (4, 2):
    if (
      rows is not None
      and rsize(rows) >= 2 * n
      and w.attempt(f"split {rname(rows)} {n} -> {rname(rows)}o, {rname(rows)}u")
    ):
      w.attempt(f"unroll {rname(rows)}u")
      return


def parallel(w: Writer, machine: Machine) -> None:
  """The outermost output loop runs in parallel;
  a short one gives way to a longer one where nothing is staged in between."""
  loops = [r for r in closed(w.kernel) if is_loop(r)]
  if not loops:
    return
  first = loops[0]
  nested = any(u.op in ("stage", "scan") or (u.op == "reduce" and u.free) for u in toposort(w.kernel))
  if rsize(first) < 4 * machine.threads and not nested:
    first = max(loops, key=rsize)
  if first is not loops[0] and not w.attempt(
    "order " + " ".join(rname(r) for r in [first, *(x for x in loops if x is not first)])
  ):
    first = loops[0]
  if w.attempt(f"par {rname(first)}"):
    return
  for r in loops:  # stores that may meet (scatter) keep their loop: another runs in parallel outside it
    if w.attempt(f"par {rname(r)}"):
      w.attempt("order " + " ".join(rname(x) for x in [r, *(x for x in loops if x is not r)]))
      return
