"""Groups of threads: which digit of a thread's number t each local range is, and where the group must wait.

A local range makes no loop: in thread t its value is  t // stride % size. Ranges that some value depends on together,
or that one owner closes, have disjoint digits; others may share theirs, as those of two sums that follow one another
do. All threads run every line. So what does not depend on a digit is computed by all threads alike, and a store that
does not is left to the first of them. Loops have a fixed number of rounds and values are selected, not branched to: all
threads of a group come to every barrier, as often as one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from mini.codegen.linearize import Line, lanes, local_ranges
from mini.codegen.matrix import lane_strides
from mini.ir.kernel import access, all_ranges, stores
from mini.ir.uop import NOTHING, UOp, closed, free_in, rkind, rsize, toposort

MOST_THREADS = 1024  # of a group, on all devices that have groups


def digits(kernel: UOp) -> dict[UOp, int]:
  """{local range: its stride in the thread's number}: inner owners first, of one owner the last range first; each above
  those that it conflicts with."""
  got = kernel.memo.get("digits")
  if got is None:
    got = kernel.memo["digits"] = _digits(kernel)
  return got


def _digits(kernel: UOp) -> dict[UOp, int]:
  if not any(rkind(r) == "local" for r in all_ranges(kernel)):  # as of all kernels of a processor
    return {}
  order, together = toposort(kernel), meeting(kernel)
  found: dict[UOp, int] = {}
  for u in order:
    found.update(lane_strides(u))  # those of a matrix instruction are what the machine says
  for owner in order:
    for r in reversed(closed(owner)):
      if rkind(r) == "local" and r not in found:
        met = NOTHING.union(*(rs for rs in together if r in rs))
        found[r] = max((above(o, found[o]) for o in met if o in found), default=1)
  return found


def meeting(kernel: UOp) -> set[frozenset[UOp]]:
  """Sets of ranges that need disjoint digits."""
  return {u.free.union(closed(u)) for u in toposort(kernel)}


def above(r: UOp, stride: int) -> int:
  """The stride of what stands above a digit."""
  return stride << (rsize(r) - 1).bit_length()


def threads(kernel: UOp) -> int:
  """Threads of a group that the kernel is written for; 0 if it has no local ranges: it runs with any number."""
  return max((above(r, stride) for r, stride in digits(kernel).items()), default=0)


def bits(kernel: UOp, rs: Iterable[UOp]) -> int:
  """The bits of a thread's number that the local ones of these ranges stand in."""
  where = digits(kernel)
  return sum(above(r, where[r]) - where[r] for r in set(rs) if r in where)


def idle(kernel: UOp, u: UOp) -> int:
  """Of a store or stage: the bits that it does not depend on. The threads that have none of them set do it."""
  mine = free_in(u.src[: len(u.src) - len(closed(u))])
  return max(threads(kernel) - 1, 0) & ~bits(kernel, mine)


def single_bits(mask: int) -> list[int]:
  return [1 << n for n in range(mask.bit_length()) if mask >> n & 1]


# ---------------------------------------------------------------- sums over threads


def shuffled(kernel: UOp, reduce: UOp, warp: int) -> list[int]:
  """The bits over which a reduce is folded by exchanging values within `warp` threads: from the lowest up."""
  return [b for b in single_bits(bits(kernel, closed(reduce))) if b < warp]


def exchanged(kernel: UOp, reduce: UOp, warp: int) -> list[list[int]]:
  """The other bits, over which it is folded through shared memory: in rounds of as many as go well together, each of
  which reads 2 ** len values."""
  rest = [b for b in single_bits(bits(kernel, closed(reduce))) if b >= warp]
  rounds = -(-len(rest) // 4)
  return [rest[n * len(rest) // rounds : (n + 1) * len(rest) // rounds] for n in range(rounds)]


# ---------------------------------------------------------------- barriers


def barriers(kernel: UOp, lines: list[Line], warp: int) -> list[Line]:
  """The lines with a barrier wherever a thread may read what another wrote, or write over what another still reads.

  Its node is what it stands before: a stage, a load or a fold; or the store to a parameter that other threads have
  read, which is the one case of memory that is not the group's.
  """
  if not threads(kernel):
    return lines
  both = {u.src[0] for u in toposort(kernel) if u.op == "load"} & {s.src[0] for s in stores(kernel)}

  def reads(line: Line) -> UOp | None:
    m = access(line.node)[0] if line.op == "load" else None
    return m if m is not None and (is_shared(m) or m in both) else None

  def writes(line: Line) -> UOp | None:
    if line.op == "store" and line.node.op == "stage":
      return line.node if is_shared(line.node) else None
    if line.op == "store" and line.node.src[0] in both and idle(kernel, line.node):
      return line.node.src[0]
    # two rounds use two memories: between the reads of the first and its next write stands the second's barrier
    return line.node if line.op == "fold" and len(exchanged(kernel, line.node, warp)) % 2 else None

  def meets(line: Line) -> bool:
    return line.op == "fold" and bool(exchanged(kernel, line.node, warp))

  return _Barriers(reads, writes, meets).walk(lines, set(), set())[0]


def is_shared(u: UOp) -> bool:
  return u.op == "stage" and u.arg.what == "shared"


def stage_bytes(u: UOp) -> int:
  """The memory of a stage: that of one thread, or of a group if it is shared."""
  own = lanes(u) + (local_ranges(u) if is_shared(u) else ())
  return prod(u.arg.shape) * prod(map(rsize, own)) * u.dtype.itemsize


def on_stack(kernel: UOp) -> int:
  """The bytes of a thread's stack that the stages of a kernel take."""
  return sum(stage_bytes(u) for u in toposort(kernel) if u.op == "stage" and u.arg.what == "stack")


class _Barriers:
  """One walk over the lines. `read` and `written`: the memory that was since the last barrier."""

  def __init__(
    self,
    reads: Callable[[Line], UOp | None],
    writes: Callable[[Line], UOp | None],
    meets: Callable[[Line], bool],
  ):
    self.reads, self.writes, self.meets = reads, writes, meets

  def walk(
    self, lines: list[Line], read: set[UOp], written: set[UOp]
  ) -> tuple[list[Line], set[UOp], set[UOp]]:
    out: list[Line] = []
    n = 0
    while n < len(lines):
      statement = lines[n : n + _length(lines, n)]
      n += len(statement)
      if self.waits(statement, read, written):
        out.append(Line("barrier", statement[0].node))
        read, written = set(), set()
      if len(statement) == 1:
        out += statement
        read, written = self.after(statement[0], read, written)
      else:  # a loop: its first line may follow its last
        _, r, w = self.walk(statement[1:-1], read, written)
        body, read, written = self.walk(statement[1:-1], read | r, written | w)
        out += [statement[0], *body, statement[-1]]
    return out, read, written

  def waits(self, statement: list[Line], read: set[UOp], written: set[UOp]) -> bool:
    """Must the group wait before this line, or before this loop? Within it a stage that it fills waits for itself."""
    line, *rest = statement
    if line.op == "alloc":
      return line.node in read | written
    if line.op == "loop":
      filled = {x.node for x in rest if x.op == "alloc"}
      return any(m in written and m not in filled for x in rest if (m := self.reads(x)))
    if line.op == "store" and line.node.op == "stage":
      return False  # it waited where it was named
    return self.reads(line) in written or self.writes(line) in read | written

  def after(self, line: Line, read: set[UOp], written: set[UOp]) -> tuple[set[UOp], set[UOp]]:
    if (m := self.reads(line)) is not None:
      return read | {m}, written
    m = self.writes(line)
    if self.meets(line):  # a fold waits between its writing and its reading
      return ({m} if m else set()), set()
    if m is None or m.op == "param":  # of a parameter, each round has cells of its own
      return read, written
    return read, written | {m}


def _length(lines: list[Line], n: int) -> int:
  """How many lines the statement has that begins here: a loop goes to its end."""
  depth, m = 0, n
  while True:
    depth += (lines[m].op == "loop") - (lines[m].op == "end")
    m += 1
    if not depth:
      return m - n
