"""Non-temporal stores, and prefetches of what a kernel will load.

cstyle.py prints both, in languages that spell them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from mini.codegen.linearize import Line, lanes, loops_of, places, values_in
from mini.codegen.recipe_builder import LINE
from mini.ir.kernel import access, carries_value, contractions, is_inline, memory_shape, place_of, stores
from mini.ir.ops import is_elementwise
from mini.ir.uop import (
  TRUE,
  UOp,
  add,
  both,
  closed,
  const,
  div,
  less,
  linear,
  mod,
  mul,
  rsize,
  substitute,
  toposort,
  weighted_sum,
)
from mini.render.expressions import even_step, vector

# A kernel that moves so many bytes, a quarter of them out, stores its results past the caches
NON_TEMPORAL_BYTES = 32 << 20
CLOSEST = 4  # steps of a sum between two prefetches, at least
SHORT_SUM = 512  # terms: a product of so few waits for its stores
LONG_SUM = 2048  # terms: a tile with more does not wait for its lines long enough for a prefetch to pay
AHEAD_OF = 1 << 20  # memory of so many bytes is prefetched, ...
WINDOW_BYTES = 256 << 10  # what a window slides over, if a near cache does not hold it
AHEAD_BYTES = 8 << 10  # ... by so many; ...
FIRST_BYTES = 32 << 10  # a first cache holds so many, at least
PIECE_BYTES = 2 << 10  # ... but of pieces as long as this, which lie apart, a processor does better by itself

Places = Mapping[UOp, tuple[UOp, ...]]


def non_temporal(kernel: UOp) -> frozenset[UOp]:
  """The non-temporal stores of a kernel: of one that moves more than a cache holds, to memory that it does not read.
  They save the read for ownership. A contraction has time for that, unless its sums are short: then a quarter of those
  bytes, out, are enough."""
  order = toposort(kernel)
  read = {u.src[0] for u in order if u.op == "load"}
  points = prod(map(rsize, closed(kernel)))
  found = [s for s in stores(kernel) if s.arg is None and s.src[0] not in read]
  nbytes = points * sum(s.src[0].dtype.itemsize for s in found)
  moved = nbytes + sum(memory_bytes(p) for p in read if p.op == "param")
  terms = sum(prod(map(rsize, closed(c))) for c in contractions(kernel))
  if (
    not read
    or 4 * nbytes < NON_TEMPORAL_BYTES
    or (terms > SHORT_SUM if terms else moved < NON_TEMPORAL_BYTES)
  ):
    return frozenset()
  return frozenset(s for s in found if not terms or fills_lines(s))


def fills_lines(store: UOp) -> bool:
  """Do the vectors of a tile's row fill lines of the caches by themselves? Where the next tile writes the rest, much
  later, a line that passes the caches goes to memory twice. (A product of 768 x 256 x 3072 by tiles of 24 columns takes
  1.2 times as long so on a Zen 3.)"""
  memory = access(store)[0]
  v = vector(lanes(store))
  terms, first = linear(place_of(store))
  steps = [first, *(step for t, step in terms.items() if t is not v), rsize(v) if v is not None else 1]
  return terms.get(v) == 1 and all(n * memory.dtype.itemsize % LINE == 0 for n in steps)


def far(lines: Sequence[Line]) -> list[UOp]:
  """The loads from memory that no near cache holds."""
  return [x.node for x in lines if x.op == "load" and memory_bytes(access(x.node)[0]) >= AHEAD_OF]


class Prefetch(NamedTuple):
  """What is asked for, of the memory that a load reads, before it is wanted."""

  when: UOp  # a condition
  at: tuple[UOp, ...]  # one index for each line of the caches


def prefetches(kernel: UOp, lines: Sequence[Line]) -> tuple[list[Line], dict[UOp, Prefetch]]:
  """The lines, with the prefetches that contractions have of large memory.

  In each sum ("next", load) those of what is read after it, at the same place, a line at a time, or if it is too short
  before it ("ask", load): it arrives while the sum is computed. (A product of 2048 x 384 x 1536 by the slope of a GELU
  on a Zen 4: 0.95 of the time with prefetches before the sum, and 0.98 of that in it: a burst of them delays what the
  sum reads.) The loads themselves stand behind the sum, too: before, they would take the registers of its tile. (One of
  2048 x 1536 x 384 and a residual: 0.99 of the time.)
  In the sum those of what reads rows along it: that row of the next tile. Rows are short, and a processor that finds
  streams by itself begins anew with each. (A step of a small GPT on a Zen 4: 0.96 of the time, and 0.94 with AVX2.)
  There, too, those of what will be packed next, a line at a time (gradients of its weights: 0.96 of the time), of what
  a window will read, and of the lines that a tile is stored across, which the stores would wait for one by one. (Both,
  of a convolution in steps of two on a Zen 5: 0.94 of the time, and 0.77 where others use the last cache.)"""
  place = places(kernel)
  tiles = {place[u]: u for u in toposort(kernel) if u.op == "reduce" and lanes(u)}
  lines = after_sums(
    lines, {u: p for u, p in place.items() if u.op != "load" or u.src[0].op == "param"}, tiles
  )
  sums, large = contractions(kernel), far(lines)
  if not sums or not large:
    return lines, {}
  after = {u: [x for x in large if place[x] == place[u] and is_row(x)] for u in sums}
  inside = {place[u] + loops_of(u): u for u in sums if loops_of(u)}
  asked: dict[UOp, Prefetch] = {}
  for x in large:
    u = inside.get(place[x])
    if u is None:
      continue
    tile = next_tile(x, place[u], loops_of(u)) or next_window(x, place[u], loops_of(u))
    if tile is not None:
      asked[x] = tile
  apart: dict[tuple[UOp, ...], list[UOp]] = {}  # what the sum itself does not read, by its loops
  for loops, u in inside.items():
    long = prod(map(rsize, loops_of(u))) > LONG_SUM
    scattered = [x for x in stores(kernel) if not long and place[x] == place[u] and is_scattered(x)]
    for x in [*(x for x in after[u] if x not in asked), *scattered]:
      row = beside(x, loops_of(u))
      if row is not None:
        asked[x] = row
        apart.setdefault(loops, []).append(x)
        if x in after[u]:
          after[u].remove(x)
  for stage in [u for u in toposort(kernel) if u.op == "stage" and u.src[0] in large]:
    readers = [loops for loops, u in inside.items() if reads(u, stage)]
    panel = next_panel(stage, place[stage], readers[0]) if readers else None
    if panel is not None:
      asked[stage.src[0]] = panel
      apart.setdefault(readers[0], []).append(stage.src[0])
  made: list[Line] = []
  for line in lines:
    if line.op == "acc":
      made += [Line("ask", x) for x in after.pop(line.node, ())]
    elif line.op == "load" and place[line.node] in inside:
      made += [Line("next", x) for x in apart.pop(place[line.node], ())]
      made += [Line("next", line.node)] if line.node in asked else []
    made.append(line)
  return made, asked


def after_sums(lines: Sequence[Line], values: Places, sums: Mapping[tuple[UOp, ...], UOp]) -> list[Line]:
  """The lines, where what stands beside a sum, and is not used before its end, comes behind it.
  values: those that may be moved; what is written over is read first. sums: {place: the last sum that stands there}."""
  ends = {line.node: n for n, line in enumerate(lines) if line.op == "fold"}
  at = list(range(len(lines)))
  first: dict[UOp, int] = {}  # where a value is used from here on, or memory changed
  for n in reversed(at):
    op, u = lines[n]
    end = ends[sums[values[u]]] if (op == "load" or is_elementwise(op)) and values.get(u) in sums else 0
    if n < end < first.get(u, 0) and (op != "load" or end < first.get(u.src[0], len(lines))):
      at[n] = end + 1
    for v in (v for s in u.src for v in values_in(s)):
      first[v] = min(first.get(v, at[n]), at[n])
    if op == "store":
      first[u.src[0]] = n
  return [lines[n] for n in sorted(range(len(lines)), key=at.__getitem__)]


def reads(contraction: UOp, stage: UOp) -> bool:
  """Is what the stage holds a factor?"""
  mine = set(closed(contraction))
  return any(
    u.op == "load" and u.src[0] is stage and not u.free.isdisjoint(mine) for u in toposort(contraction.src[0])
  )


def next_panel(stage: UOp, outside: tuple[UOp, ...], loops: tuple[UOp, ...]) -> Prefetch | None:
  """Prefetches of what a stage will hold in the next round of the loops outside of it, spread over this round. loops:
  those of the products that read it."""
  load, own = stage.src[0], closed(stage)
  memory, index, gate = access(load)
  tiles, inner = loops[len(outside) : -1], loops[-1]
  plain = memory.op == "param" and gate is TRUE and not any(map(carries_value, index))
  limited = any(r.src for r in (*loops, *own)) or any(r not in own for r in lanes(load))
  if not plain or limited or not outside or not tiles or loops[: len(outside)] != outside:
    return None
  terms, first = linear(place_of(load))
  step = even_step(terms, outside[-1])
  line = LINE // memory.dtype.itemsize
  row, apart, rows = 1, 0, 1  # elements that lie together; so far from there begins the next row; so many
  for n, size in sorted((even_step(terms, r) or 0, rsize(r)) for r in own if rsize(r) > 1):
    if n == row and rows == 1:
      row *= size
    elif row > 1 and (rows == 1 or n == apart * rows):
      apart, rows = apart or n, rows * size
    else:
      return None
  across = -(-row // line)
  each = -(-rows * across // prod(map(rsize, tiles)))  # lines for each tile
  if not step or each * CLOSEST > rsize(inner):
    return None
  period = 1 << (rsize(inner) // each).bit_length() - 1
  number = add(mul(round_of(tiles), -(-rsize(inner) // period)), div(inner, period))
  base = add(weighted_sum([(t, n) for t, n in terms.items() if t.free.isdisjoint(own)]), first + step)
  at = add(base, add(mul(div(number, across), apart), mul(mod(number, across), line)))
  return Prefetch(both(less(mod(inner, period), 1), less(number, rows * across)), (at,))


def round_of(loops: Iterable[UOp]) -> UOp:
  """How many rounds of these loops were before this one."""
  number = const(0)
  for r in loops:
    number = add(mul(number, rsize(r)), r)
  return number


def beside(moved: UOp, summed: tuple[UOp, ...]) -> Prefetch | None:
  """Of the tile that is read or stored behind a sum a line of the caches now and then, all in its first half where that
  is long enough; None where it has fewer terms than there are lines. (A product of 2048 x 48 x 1536 by as much: 0.94 of
  the time.)"""
  memory = access(moved)[0]
  flat = place_of(moved)
  terms, first = linear(flat)
  line = LINE // memory.dtype.itemsize
  steps = {r: even_step(terms, r) for r in reversed(lanes(flat))}
  if None in steps.values() or any(r.src for r in summed):
    return None
  # {lane: (lines, elements from one to the next)}
  apart = {
    r: (-(-rsize(r) * n // line), line) if 0 < n < line else (rsize(r), n) for r, n in steps.items() if n
  }
  count = prod(size for size, _ in apart.values())
  fewest = prod(map(rsize, summed)) // count
  if not fewest:
    return None
  period = max(1 << fewest.bit_length() >> 2, 1)
  number = div(round_of(summed), period)
  at = add(weighted_sum([(t, n) for t, n in terms.items() if t not in steps]), first)
  last = less(number, count)
  for size, step in apart.values():
    at, number = add(at, mul(mod(number, size), step)), div(number, size)
  return Prefetch(both(less(mod(round_of(summed), period), 1), last), (at,))


def next_tile(load: UOp, tiles: tuple[UOp, ...], summed: tuple[UOp, ...]) -> Prefetch | None:
  """Of a load of scalars along the last of the summed loops the same in the next round of the innermost loop around the
  sum, once for each line; None where it reads otherwise, stays where it is, or goes on with the summed loop around: a
  long stream."""
  memory, index, gate = access(load)
  flat = place_of(load)
  terms, _ = linear(flat)
  k, size = summed[-1], memory.dtype.itemsize
  plain = memory.op == "param" and gate is TRUE and not any(map(carries_value, index))
  if (
    not plain
    or not tiles
    or vector(lanes(load)) is not None
    or terms.get(k) != 1
    or rsize(k) * size < 2 * LINE
  ):
    return None
  moving = [(t, n) for t, n in terms.items() if tiles[-1] in t.free]
  if len(moving) != 1 or (len(summed) > 1 and terms.get(summed[-2]) == rsize(k)):
    return None
  ((t, n),) = moving
  inner = t.src[0] if t.op == "min" else t  # the last tile may end at the edge
  step = n * (even_step(linear(inner)[0], tiles[-1]) or 0)
  rows = lanes(load)
  choices = [dict(zip(rows, map(const, choice))) for choice in product(*(range(rsize(r)) for r in rows))]
  at = tuple(add(substitute(flat, choice), step) for choice in choices)
  return Prefetch(less(mod(k, LINE // size), 1), at) if step else None


def next_window(load: UOp, tiles: tuple[UOp, ...], summed: tuple[UOp, ...]) -> Prefetch | None:
  """Of scalars that a window sees, which slides along one of the summed loops, what it will see in the next round of a
  loop around the sum, and does not yet, once for each line; None where there is no such loop, or a near cache holds all
  that it slides over."""
  memory, index, _ = access(load)
  terms, first = linear(place_of(load))
  lane, size = lanes(load), memory.dtype.itemsize
  known = memory.op == "param" and not any(map(carries_value, index)) and not any(r.src for r in summed)
  if not known or vector(lane) is not None:
    return None
  steps = {r: even_step(terms, r) or 0 for r in (*tiles, *summed, *lane)}
  found = [
    (t, r, by) for t in reversed(tiles) for r in summed if (by := slides(steps[t], steps[r], rsize(r)))
  ]
  if not found or any(even_step(terms, r) is None for r in lane):
    return None
  loop, along, by = found[0]
  inside = (*tiles[tiles.index(loop) :], *summed, *lane)
  if sum(abs(steps[r]) * (rsize(r) - 1) for r in inside) * size < WINDOW_BYTES:
    return None
  near = [r for r in (*summed, *lane) if r is not along and 0 < abs(steps[r]) * size < LINE]
  reach = [steps[r] * (rsize(r) - 1) for r in near]
  low, high = sum(min(n, 0) for n in reach), sum(max(n, 0) for n in reach)
  base = add(weighted_sum([(t, n) for t, n in terms.items() if t not in near]), first + steps[loop])
  rows = [r for r in lane if r not in near]
  choices = [dict(zip(rows, map(const, choice))) for choice in product(*(range(rsize(r)) for r in rows))]
  offsets = [*range(low, high, LINE // size), high]
  when = less(along, -by) if by < 0 else less(mul(along, -1), 1 + by - rsize(along))
  for r in near:
    when = both(when, less(r, 1)) if r in summed else when
  return Prefetch(when, tuple(add(substitute(base, choice), n) for choice in choices for n in offsets))


def slides(step: int, along: int, size: int) -> int:
  """By how many rounds of a loop, whose steps are `along`, does a step go? 0 if by none, a part, or past its end."""
  by, rest = divmod(step, along) if along else (0, 0)
  return 0 if rest or abs(by) >= size else by


def is_row(load: UOp) -> bool:
  """Does it read vectors of a parameter, one after another, at a place that depends on no data?"""
  memory, index, gate = access(load)
  v = vector(lanes(load))
  terms, _ = linear(place_of(load))
  known = memory.op == "param" and gate is TRUE and not any(map(carries_value, index))
  return known and v is not None and terms.get(v) == 1


def is_scattered(store: UOp) -> bool:
  """Do the elements of a vector go to lines of large memory that are apart?"""
  memory, _, gate = access(store)
  v = vector(lanes(store.src[1]))
  if memory_bytes(memory) < AHEAD_OF or gate is not TRUE or v is None:
    return False
  terms, _ = linear(place_of(store))
  return abs(even_step(terms, v) or 0) * memory.dtype.itemsize >= LINE


def passes_first(found: Iterable[UOp]) -> bool:
  """Is as much on its way as a first cache holds? It would not stay there until it is wanted: it waits in the second.
  (On two cores of a Zen 4 a sum of 64 MB, in eight places at once, takes 0.8 of the time, the product of a vector and
  a matrix of bfloat16 0.79.)"""
  nbytes = 0
  for u in found:
    memory = access(u)[0]
    terms, _ = linear(place_of(u))
    size = memory.dtype.itemsize
    nbytes += AHEAD_BYTES * prod(rsize(r) for r in lanes(u) if abs(terms.get(r, 0)) * size >= AHEAD_BYTES)
  return nbytes >= FIRST_BYTES


class Walk(NamedTuple):
  """How a load goes through memory, vector by vector."""

  place: tuple[UOp, ...]  # the loops around it
  terms: Mapping[UOp, int]  # of its index
  step: int  # elements from one round of the innermost loop to the next
  steps: int  # rounds in which it reads AHEAD_BYTES
  stream: tuple[UOp, int]  # what it reads: the memory, and which part of it
  gapless: bool

  @property
  def goes_on(self) -> bool:
    """Does the next round of the loop around begin where the innermost loop ends?"""
    return len(self.place) > 1 and self.terms.get(self.place[-2]) == self.step * rsize(self.place[-1])

  @property
  def comes_back(self) -> int:
    """By how much the next round of the loop around lies ahead, where the innermost loop reads short pieces; or 0."""
    piece = self.step * rsize(self.place[-1])
    apart = self.terms.get(self.place[-2], 0) if len(self.place) > 1 else 0
    return apart if apart >= piece and piece * self.stream[0].dtype.itemsize < PIECE_BYTES else 0


class Ahead(NamedTuple):
  """By how much what will be wanted lies ahead of what is read."""

  elements: int
  plain: bool  # is it a long stream without gaps, which a processor may find by itself?


def ahead(kernel: UOp, lines: Sequence[Line]) -> dict[UOp, Ahead]:
  """What is asked for ahead of loads whose vectors run through memory that no near cache holds; about AHEAD_BYTES come
  in between. Not in a contraction, which reads again.

  Each stream is asked for once, for what comes into a cache for one reader is there for the others: by the first or,
  where loops read a row one after another, by that which computes most, and has the time (softmax of 4096 x 1024 on an
  Ice Lake: 0.87 of the time with 2 cores). Of short pieces what the next rounds of the loop around will read is asked
  for (a vector by a matrix of 3072 x 768, in bfloat16, on two cores of a Zen 3: 0.73 of the time; of 768 x 3072 in
  bytes 0.74)."""
  loads = far(lines)
  if not loads or contractions(kernel):
    return {}
  place = places(kernel)
  found: dict[UOp, Ahead] = {}
  readers: dict[tuple[UOp, int], UOp] = {}
  for u in loads:
    walk = walked(u, place[u])
    if walk is None:
      continue
    reader, n = readers.get(walk.stream), rsize(walk.place[-1])
    if reader is None:
      long = 4 * walk.steps <= rounds(walk)
      if long or walk.comes_back:
        readers[walk.stream] = u
        elements = walk.steps * walk.step if long else -(-walk.steps // n) * walk.comes_back
        found[u] = Ahead(elements, long and walk.gapless)
    elif walk.goes_on and place[reader][:-1] == walk.place[:-1] and work(place, reader) < work(place, u):
      del found[reader]
      readers[walk.stream] = u
      found[u] = Ahead(-(-walk.steps // n) * n * walk.step, walk.gapless)  # whole rows: this one is there
  return found


def walked(u: UOp, loops: tuple[UOp, ...]) -> Walk | None:
  """How a load goes through a parameter; None where it is none, or jumps."""
  memory, _, gate = access(u)
  v = vector(lanes(u))
  terms, first = linear(place_of(u))
  if memory.op != "param" or gate is not TRUE or v is None or terms.get(v) != 1:
    return None
  step = even_step(terms, loops[-1]) if loops and u.free.issuperset(loops) else None
  size = memory.dtype.itemsize
  near = [r for r in lanes(u) if abs(terms.get(r, AHEAD_BYTES)) * size < AHEAD_BYTES]
  at_once = prod(map(rsize, near))  # of a stream
  if not step or (at_once * size >= PIECE_BYTES and step != at_once):
    return None
  steps, part = -(-AHEAD_BYTES // (at_once * size)), first * size // AHEAD_BYTES
  return Walk(loops, terms, step, steps, (memory, part), step == at_once)


def rounds(walk: Walk) -> int:
  """How many steps it goes on for: a short loop, and those around it as long as they go on."""
  *outer, inner = walk.place
  n = rsize(inner)
  while outer and 4 * walk.steps > n and walk.terms.get(outer[-1]) == walk.step * n:
    n *= rsize(outer.pop())
  return n


def work(place: Places, load: UOp) -> int:
  """Operations in the loop of a load."""
  return sum(at == place[load] and not is_inline(u) and is_elementwise(u.op) for u, at in place.items())


def memory_bytes(memory: UOp) -> int:
  return prod(memory_shape(memory)) * memory.dtype.itemsize
