"""Writes recipes: from a kernel's shape and the machine's description to steps that make it fast.

Two families. A *contraction* (matmul and its kin) is tiled into registers: 6 rows by 2 vectors, with the operand that is
read again for every block of rows packed into a panel. Everything else streams: the contiguous range becomes vectors,
the outermost one runs in parallel. What a step cannot do to a kernel it refuses (RecipeError), and the kernel stays as
it was: the heuristic tries, it does not prove.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import NamedTuple

from mini.codegen.linearize import is_loop
from mini.codegen.recipe import RecipeError, Tuning
from mini.ir.kernel import access, all_ranges, contractions, stage_index, stores
from mini.ir.uop import UOp, closed, const, index_nodes, linear, rkind, rname, rsize, toposort
from mini.schedule.index import flatten
from mini.types import dtypes


class Machine(NamedTuple):
  """What the heuristic must know of a device."""

  lanes: int = 8  # float32 elements of a vector register
  threads: int = 1
  rows: int = 6  # of a register tile: rows x 2 vectors of accumulators leave registers for the operands
  l2_bytes: int = 512 << 10
  stack_bytes: int = 512 << 10
  kind: str = "cpu"  # cpu | gpu: the family of recipes
  group: int = 1  # most threads of a group
  shared_bytes: int = 0  # of a group
  units: int = 1  # groups that run at once, at least
  matrices: frozenset[str] = frozenset()  # its matrix instructions
  fast: bool = False  # may a product be rounded as they do it?

  @property
  def panel_bytes(self) -> int:
    """What a packed panel may take: half of the cache, and it is on the stack."""
    return min(self.l2_bytes // 2, self.stack_bytes * 3 // 4)


class Writer(Tuning):
  """A recipe in the making: steps that apply are kept."""

  def __init__(self, kernel: UOp):
    super().__init__(kernel)
    self.lines: list[str] = []

  def attempt(self, line: str) -> bool:
    saved = self.kernel, dict(self.named)
    try:
      self.step(line)
    except RecipeError:
      self.kernel, self.named = saved
      return False
    self.lines.append(line)
    return True


def write_recipe(kernel: UOp, machine: Machine) -> tuple[UOp, str]:
  """(the kernel with the recipe applied, the recipe)."""
  w = Writer(kernel)
  if machine.kind == "gpu":
    from mini.codegen import gpu  # which needs what stands below

    gpu.write(w, machine)
  elif not tile(w, machine):
    stream(w, machine)
  return w.kernel, "\n".join(w.lines)


# ---------------------------------------------------------------- what an access costs


def flat_index(u: UOp) -> UOp:
  """The row-major offset that a load, a store or a stage touches."""
  if u.op == "stage":
    return flatten(stage_index(u), u.arg.shape)
  memory, index, _ = access(u)
  return flatten(index, memory.arg[1] if memory.op == "param" else memory.arg.shape)


def coefficient(flat: UOp, r: UOp) -> int | None:
  """By how much the offset moves with r; None if not by the same amount everywhere."""
  terms, _ = linear(flat)
  if any(t is not r and r in t.free for t in terms):
    return None
  return terms.get(r, 0)


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
  """Neighbouring output ranges become one where every access stays as simple."""
  changed = True
  while changed:
    changed = False
    rs = closed(w.kernel)
    for a, b in pairwise(rs):
      before, saved = divisions(w.kernel), (w.kernel, dict(w.named))
      if any(r in u.free and not (a in u.free and b in u.free) for u in stores(w.kernel) for r in (a, b)):
        continue  # a store that stands between the two loops
      if w.attempt(f"collapse {rname(a)} {rname(b)} -> {rname(a)}"):
        if divisions(w.kernel) <= before:
          changed = True
          break
        w.kernel, w.named = saved
        w.lines.pop()


# ---------------------------------------------------------------- everything that streams


def contiguous(owner: UOp, kernel: UOp) -> UOp | None:
  """The range of this owner along which its accesses are contiguous: the one to make a vector of."""
  values = list(stores(kernel)) if owner.op == "kernel" else [owner.src[0]]
  touched = [u for v in values for u in accesses(v)] + ([owner] if owner.op == "stage" else [])
  fixed = {u.src[1] for u in toposort(kernel) if u.op == "scan"}
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
      weight = 2 if u.op in ("store", "stage") else 1
      step = coefficient(flat, r)
      score += weight if step == 1 and (gate is None or r not in gate.free) else -weight * 2
    if any(
      r in u.free and u.op == "cast" and u.src[0].dtype is dtypes.index for v in values for u in toposort(v)
    ):
      score -= 1
    scores[r] = score
  best = max(scores, key=lambda r: scores[r], default=None)
  return best if best is not None and scores[best] > 0 else None


def owners(kernel: UOp) -> list[UOp]:
  return [u for u in reversed(toposort(kernel)) if closed(u)]


def stream(w: Writer, machine: Machine) -> None:
  collapse_outputs(w)
  done: set[str] = set()  # owners by their first range's name: nodes change with every step
  while True:
    owner = next((u for u in owners(w.kernel) if key(u) not in done), None)
    if owner is None:
      break
    done.add(key(owner))
    values = stores(w.kernel) if owner.op == "kernel" else (owner.src[0],)
    if any(
      rkind(r) == "vec"
      for v in values
      for r in v.free | frozenset(x for u in toposort(v) for x in closed(u))
      if owner.op == "kernel" or r in v.free
    ):
      continue
    r = contiguous(owner, w.kernel)
    if r is None:
      continue
    vectorize(w, owner, r, machine)
    done |= {f"{owner.op} {rname(r)}{suffix}" for suffix in ("o", "v", ".rest")}  # what it has become
  parallel(w, machine)


def key(owner: UOp) -> str:
  return f"{owner.op} {rname(closed(owner)[0])}"


def vectorize(w: Writer, owner: UOp, r: UOp, machine: Machine) -> None:
  name, size, lanes = rname(r), rsize(r), machine.lanes
  reduces_below = any(u.op == "reduce" and r in u.free for u in toposort(w.kernel))
  widths = [4 * lanes, 2 * lanes, lanes] if owner.op == "reduce" or reduces_below else [2 * lanes, lanes]
  order = [rname(x) for x in closed(owner) if x is not r]
  mode = "peel" if owner.op == "reduce" else "overlap"
  for n in widths:
    if n == 1 or size < n or (size % n and size < 2 * n and n > lanes):
      continue
    if size == n:
      w.attempt(f"vec {name}")
      return
    if w.attempt(f"split {name} {n} -> {name}o, {name}v {mode}"):
      if owner.op != "reduce" and closed(owner)[-1] is not r and order:
        w.attempt("order " + " ".join([*order, f"{name}o"]))
      w.attempt(f"vec {name}v")
      return


def parallel(w: Writer, machine: Machine) -> None:
  """The outermost output loop runs in parallel; a short one gives way to a longer one where nothing is staged in between."""
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


# ---------------------------------------------------------------- contractions


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


def tile(w: Writer, machine: Machine) -> bool:
  """The register tile; False where the shape gives none."""
  order = toposort(w.kernel)
  single = sum(u.op == "reduce" for u in order) == 1
  if not contractions(w.kernel) or not single or any(u.op in ("stage", "scan") for u in order):
    return False
  collapse_outputs(w)
  found = find_product(w.kernel)
  if found is None or rsize(found.columns) < machine.lanes:
    return False
  a, b, rows, columns = found
  rest = [rname(r) for r in closed(w.kernel) if r is not rows and r is not columns]
  n = rsize(columns)
  column_loop, lane = cut(
    w, rname(columns), n, 2 * machine.lanes if n >= 2 * machine.lanes else machine.lanes, "vec"
  )
  if column_loop == rname(columns):
    return False
  tall = min(machine.rows, rsize(rows))
  row_loop, row = cut(w, rname(rows), rsize(rows), tall, "unroll")
  blocks = block_rows(w, found, row_loop, tall, machine)
  loops = [*rest, *blocks, *filter(None, [column_loop, row_loop])]
  if len(loops) > 1:
    w.attempt("order " + " ".join(loops))
  summed = [rname(r) for r in closed(contractions(w.kernel)[0]) if is_loop(r)]
  if blocks and coefficient(flat_index_of(a), rows) == 1:
    pack(
      w, [row_loop, *summed], row, a, machine
    )  # its columns are rows here: read in order from a packed copy
  if row_loop and rsize(rows) >= 4 * tall:
    pack(w, summed, lane, b, machine)
  spread(w, loops, rest, machine)
  return True


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


def spread(w: Writer, loops: list[str], rest: list[str], machine: Machine) -> None:
  """The outermost loop that is long enough runs in parallel; one of the `rest`, a batch, moves outside for that."""
  sizes = {rname(r): rsize(r) for r in closed(w.kernel) if is_loop(r)}
  wide = [x for x in loops if x in sizes]
  if wide:
    enough = (x for x in wide if sizes[x] >= 4 * machine.threads)
    best = next(enough, max(wide, key=lambda x: sizes[x]))
    if best in rest and wide[0] != best:
      w.attempt("order " + " ".join([best, *(x for x in wide if x != best)]))
    w.attempt(f"par {best}")


def flat_index_of(value: UOp) -> UOp:
  """The offset that an operand, a load or a cast of one, is read at."""
  while value.op == "cast":
    value = value.src[0]
  return flat_index(value) if value.op == "load" else const(0)


def block_rows(w: Writer, found: Product, row_loop: str, tall: int, machine: Machine) -> list[str]:
  """Many rows are taken in blocks that stay in the cache while all columns pass; panels are then packed for each block,
  which costs little where packing is a copy, and more where it transposes."""
  a, b, rows, columns = found
  k = prod(rsize(r) for r in a.free & b.free if r not in closed(w.kernel))
  tiles = max(16, machine.l2_bytes // 4 // (a.dtype.itemsize * k * tall))
  if coefficient(flat_index_of(b), columns) != 1:
    tiles = max(tiles, 64)
  if not row_loop or rsize(rows) < 4 * tiles * tall:
    return []
  return [f"{row_loop}b"] if w.attempt(f"split {row_loop} {tiles} -> {row_loop}b, {row_loop} overlap") else []


def pack(w: Writer, ks: list[str], inner: str, operand: UOp, machine: Machine) -> None:
  """An operand that is read again and again goes into a panel: its lanes together, one step of the sum after another."""
  ranges = {rname(r): r for r in all_ranges(w.kernel)}
  found = next((s for s in factors(contractions(w.kernel)[0]) if ranges[inner] in s.free), None)
  name = next((name for name, u in w.named.items() if u is found), None)
  mine = [k for k in ks if found is not None and ranges[k] in found.free]
  size = operand.dtype.itemsize * rsize(ranges[inner]) * prod(rsize(ranges[k]) for k in mine)
  if name is None or found is None or not mine or size > machine.panel_bytes:
    return
  flat, k = flat_index_of(found), mine[-1]
  transposed = (
    rkind(ranges[inner]) == "vec"
    and coefficient(flat, ranges[inner]) != 1
    and coefficient(flat, ranges[k]) == 1
  )
  if not w.attempt(f"stage {name[1:]} over ({', '.join([*mine, inner])}) stack"):
    return
  if (
    transposed
    and rsize(ranges[inner]) % machine.lanes == 0
    and rsize(ranges[k]) >= machine.lanes
    and is_loop(ranges[k])
  ):
    copied = f"{k}.{name[1:]}"  # read along the sum, written along the lanes
    if w.attempt(f"split {copied} {machine.lanes} -> {copied}o, {copied}v overlap"):
      w.attempt(f"unroll {inner}.{name[1:]}")
      w.attempt(f"vec {copied}v")
