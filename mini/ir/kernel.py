"""Kernels: scalars over ranges. One constructor per node, and the parts of a node by name.

  param   arg = (name, shape)                       memory handed to the kernel
  load    src = (memory, gate, *index)              memory is a param or a stage; 0 where the gate is false
  store   src = (param, value, gate, *index)        arg None writes, "add" | "mul" | "max" accumulates (scatter)
  reduce  src = (value, *tile, *ranges)             closes its ranges; a tile: of a matrix instruction (codegen/matrix)
  scan    src = (value, range)  arg = kind          the running value along a loop that its owner closes
  stage   src = (value, *index, *ranges)            writes value to anonymous memory[index] for all its ranges; it is
                                                    there once for each combination of the ranges that stay free in it
  kernel  src = (store, ..., *conditions, *ranges)  closes its output ranges, outermost first; what is stored where a
                                                    condition fails is never read: it may be left out
  cast    index -> value (iota), value -> index (the index of a gather, which needs a gate)

The ranges that an owner closes stand in loop order. `loop` and `par` ranges make loops; `vec` and `unroll` ranges are
lanes of every value that depends on them and make none; a `loop` of a reduce or stage may have limits, which output
loops decide: then it takes the values between them alone. The `around` ranges of a reduce that fills a stage on the
stack make loops around those of the stage, which begins with the identity and to which each round adds. `local` ranges
are the threads of a group, each of which has its own value. With local ranges, the rounds of the `par` loop are groups,
and without them threads. A stage is memory of each thread (`stack`), or of the group (`shared`).
"""

from __future__ import annotations

from mini.ir.index import flatten
from mini.ir.uop import TRUE, Over, UOp, add, closed, less, mul, rkind, rsize, toposort, uop
from mini.types import DType, dtypes

Index = tuple  # of UOps with dtype index, one per axis


def param(name: str, shape: tuple[int, ...], dtype: DType) -> UOp:
  return uop("param", dtype, (), (name, tuple(shape)))


def load(memory: UOp, index: Index, gate: UOp = TRUE) -> UOp:
  return uop("load", memory.dtype, (memory, gate, *index))


def store(target: UOp, index: Index, value: UOp, gate: UOp = TRUE, how: str | None = None) -> UOp:
  return uop("store", dtypes.void, (target, value, gate, *index), how)


def reduce_over(kind: str, value: UOp, ranges: tuple[UOp, ...]) -> UOp:
  return uop("reduce", value.dtype, (value, *ranges), Over(kind, len(ranges))) if ranges else value


def scan_over(kind: str, value: UOp, r: UOp) -> UOp:
  return uop("scan", value.dtype, (value, r), kind)


def stage_at(value: UOp, index: Index, ranges: tuple[UOp, ...], space: str, shape: tuple[int, ...]) -> UOp:
  return uop("stage", value.dtype, (value, *index, *ranges), Over(space, len(ranges), tuple(shape)))


def kernel(name: str, results: tuple[UOp, ...], ranges: tuple[UOp, ...]) -> UOp:
  """results: stores, and conditions on what is read of them."""
  return uop("kernel", dtypes.void, (*results, *ranges), Over(name, len(ranges)))


def memory_shape(memory: UOp) -> tuple[int, ...]:
  return memory.arg[1] if memory.op == "param" else memory.arg.shape


def access(u: UOp) -> tuple[UOp, Index, UOp]:
  """(memory, index, gate) of a load or store."""
  return (u.src[0], u.src[2:], u.src[1]) if u.op == "load" else (u.src[0], u.src[3:], u.src[2])


def place_of(u: UOp) -> UOp:
  """The element of its memory that a load or store is at, in row-major order."""
  return flatten(access(u)[1], memory_shape(u.src[0]))


def stage_index(u: UOp) -> Index:
  """Where a stage writes its value."""
  return u.src[1 : len(u.src) - u.arg.count]


def results(k: UOp) -> tuple[UOp, ...]:
  return k.src[: len(k.src) - k.arg.count]


def stores(k: UOp) -> tuple[UOp, ...]:
  return tuple(s for s in results(k) if s.op == "store")


def wanted(k: UOp) -> tuple[UOp, ...]:
  """The conditions where one of which fails nobody reads what is stored."""
  return tuple(c for c in results(k) if c.op != "store")


def written(k: UOp) -> list[UOp]:
  """The params that the kernel writes."""
  return list(dict.fromkeys(s.src[0] for s in stores(k)))


def directions(kernel: UOp) -> dict[UOp, str]:
  """{param: in, out or inout}, those that are written first."""
  got = kernel.memo.get("directions")
  if got is None:
    got = kernel.memo["directions"] = _directions(kernel)
  return dict(got)


def _directions(kernel: UOp) -> dict[UOp, str]:
  reads = dict.fromkeys(u.src[0] for u in toposort(kernel) if u.op == "load" and u.src[0].op == "param")
  reads.update(dict.fromkeys(s.src[0] for s in stores(kernel) if s.arg))
  writes = dict.fromkeys(s.src[0] for s in stores(kernel))
  return {p: "in" if p not in writes else "inout" if p in reads else "out" for p in (*writes, *reads)}


def params_of(kernel: UOp) -> list[UOp]:
  """The params in the order of the kernel's arguments: those that are written first, the others as they are loaded."""
  return list(directions(kernel))


def is_inline(u: UOp) -> bool:
  """Printed where it is used, without a name: index expressions, conditions on them, constants, params."""
  if u.dtype is dtypes.index:
    return True
  return u.op in ("const", "param") or (u.dtype is dtypes.bool and u.op in ("lt", "and") and _on_indices(u))


def _on_indices(u: UOp) -> bool:
  if u.op == "lt":
    return len(u.src) == 2 and u.src[1].op == "const" and all(s.dtype is dtypes.index for s in u.src)
  return u.op == "and" and len(u.src) == 2 and all(map(_on_indices, u.src))


def around(u: UOp) -> tuple[UOp, ...]:
  """The ranges of a reduce whose loops are those of the stage that it fills."""
  return tuple(r for r in closed(u) if rkind(r) == "around") if u.op == "reduce" else ()


def all_ranges(k: UOp) -> list[UOp]:
  """The kernel's own ranges first, then those of inner owners as they appear."""
  got = k.memo.get("ranges")
  if got is None:
    out = dict.fromkeys(closed(k))
    for u in toposort(k):
      out.update(dict.fromkeys(closed(u)))
    got = k.memo["ranges"] = tuple(out)
  return list(got)


def is_contraction(u: UOp, k: UOp) -> bool:
  """Is u, a reduce of kernel k, a sum of products whose factors are each used again along an output range?"""
  if u.op != "reduce" or u.arg.what != "add":
    return False
  product = u.src[0]
  while product.op == "cast":
    product = product.src[0]
  if product.op != "mul":
    return False
  a, b = (s.free for s in product.src)
  return bool((a - b) - set(closed(u)) and (b - a) - set(closed(u)) and a & b & set(closed(u)))


def contractions(k: UOp) -> list[UOp]:
  got = k.memo.get("contractions")
  if got is None:
    got = k.memo["contractions"] = tuple(u for u in toposort(k) if is_contraction(u, k))
  return list(got)


def carries_value(e: UOp) -> bool:
  """Does an index expression or condition depend on data?"""
  got = e.memo.get("data")
  if got is None:
    got = e.memo["data"] = e.op == "cast" or any(carries_value(s) for s in e.src)
  return got


def below_data(c: UOp) -> tuple[UOp, UOp] | None:
  """(index, value), if c compares an index with data that is the same everywhere: a size that only a run knows."""
  if c.op != "lt" or c.src[0].op != "cast" or c.src[0].src[0].dtype is not dtypes.index or c.src[1].free:
    return None
  return c.src[0].src[0], c.src[1]


def under(index: UOp, value: UOp) -> UOp:
  """The condition on indices that says the same."""
  return less(add(index, mul(uop("cast", dtypes.index, (value,)), -1)), 0)


def extent(k: UOp) -> int:
  """The size of the range that runs in parallel; 1 where none does."""
  return next((rsize(r) for r in all_ranges(k) if rkind(r) == "par"), 1)


def guarded(k: UOp) -> bool:
  """Does the kernel take the error word, as its last argument? It does where an index depends on data."""
  return any(carries_value(access(u)[2]) for u in toposort(k) if u.op in ("load", "store"))
