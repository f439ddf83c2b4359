"""Stores of several vectors at once, whose elements change places on the way to memory, or meet in its lines."""

from __future__ import annotations

from itertools import product

from mini.codegen.linearize import Line, lanes, sort_lanes
from mini.codegen.recipe_builder import LINE
from mini.ir.kernel import stage_index
from mini.ir.uop import UOp, rkind, rsize
from mini.render.chains import Chains
from mini.render.expressions import vector


def line_lanes(line: Line) -> tuple[UOp, ...]:
  """The lanes that a line is expanded over."""
  u, op = line.node, line.op
  if op in ("loop", "end", "alloc", "next"):
    return ()
  if op in ("acc", "accum", "join", "sofar"):
    return lanes(u.src[0])
  if op == "store":
    return sort_lanes({r for s in u.src for r in lanes(s)})
  return lanes(u)


def unrolled(ls: tuple[UOp, ...]) -> list[UOp]:
  return [r for r in ls if rkind(r) == "unroll"]


class Shuffles(Chains):
  """Blocks that are written across, and vectors whose elements take turns."""

  def transposes(self, line: Line, r: UOp) -> bool:
    """Does this store to a stage run along its vector with a stride, and along the unrolled lane r without?"""
    u, v = line.node, vector(line_lanes(line))
    if (
      line.op != "store"
      or u.op != "stage"
      or v is None
      or self.lang.width == 1
      or rsize(r) % self.lang.width
      or lanes(u)
    ):
      return False
    _, flat = self.memory(u, stage_index(u))
    return (
      self.stride(flat, v) not in (1, None)
      and self.stride(flat, r) == 1
      and v in u.src[0].free
      and r in u.src[0].free
    )

  def store_transposed(self, line: Line, r: UOp, block: int) -> None:
    """A block of width x width elements from that of the lane r on: vectors were read along one axis, and are written
    along the other."""
    u, v, w = line.node, vector(line_lanes(line)), self.lang.width
    assert v is not None
    p, flat = self.memory(u, stage_index(u))
    for c in self.chunks(v):
      rows = [self.ref(u.src[0], {r: block + n, v: c}, True) for n in range(w)]
      t = f"{self.spelling.type(u.dtype, w)} x[{w}]"
      self.emit(f"{{ {t} = {{{', '.join(rows)}}}; {self.spelling.transpose(u.dtype)}(x);")
      for n in range(w):
        at = self.at(flat, {r: block, v: c}, n)
        self.emit("  " + self.spelling.store(p, at, f"x[{n}]", u.dtype, w))
      self.emit("}")

  def in_turns(self, flat: UOp, ls: tuple[UOp, ...], gate: UOp) -> UOp | None:
    """The unrolled lane of a vector that goes to every second place, and of the one for the places between."""
    v = vector(ls)
    pair = next((r for r in unrolled(ls) if rsize(r) == 2 and self.stride(flat, r) == 1), None)
    if v is None or pair is None or self.stride(flat, v) != 2 or not gate.free.isdisjoint((v, pair)):
      return None
    return pair

  def store_in_turns(self, p: str, flat: UOp, value: UOp, env: dict[UOp, int], pair: UOp, guard: str) -> None:
    """Stores two such vectors, once both are computed."""
    if not env[pair]:
      return
    d, w, at = value.dtype, self.lang.width, self.at(flat, {**env, pair: 0})
    both = ", ".join(self.ref(value, {**env, pair: n}, True) for n in (0, 1))
    self.emit(f"{{ {self.spelling.type(d, w)} x[2] = {{{both}}};")
    for n, half in enumerate(self.spelling.interleaved("x[0]", "x[1]")):
      self.emit("  " + guard + self.spelling.store(p, f"{at} + {n * w}", half, d, w))
    self.emit("}")

  def in_a_line(self, flat: UOp, ls: tuple[UOp, ...], gate: UOp, itemsize: int) -> list[UOp]:
    """The unrolled lanes of vectors whose elements go to lines of the caches that are apart, each beside those of the
    other vectors."""
    v = vector(ls)
    if v is None or abs(self.stride(flat, v) or 0) * itemsize < LINE:
      return []
    rows = [r for r in unrolled(ls) if 0 < abs(self.stride(flat, r) or 0) * itemsize < LINE]
    return rows if gate.free.isdisjoint((v, *rows)) else []

  def store_across(
    self, p: str, flat: UOp, value: UOp, env: dict[UOp, int], v: UOp, rows: list[UOp], guard: str
  ) -> None:
    """Stores such vectors, once all are computed, line by line. (Vector by vector, lines that are a multiple of 4 KB
    apart, which have one place in the first cache, drive each other out: the gradient of a convolution in steps of two,
    by its input of 32x32, took twice as long on a Zen 5.)"""
    if any(env[r] != rsize(r) - 1 for r in rows):
      return
    d, w = value.dtype, self.lang.width
    places = [{**env, **dict(zip(rows, at))} for at in product(*(range(rsize(r)) for r in rows))]
    found = ", ".join(f"x{n} = {self.ref(value, e, True)}" for n, e in enumerate(places))
    self.emit(f"{{ {self.spelling.type(d, w)} {found};")
    self.emit(
      f"  for ({self.index} x = 0; x < {w}; x++) {{"
    )  # written out, it took two thirds of a compiler's time
    for n, e in enumerate(places):
      i = f"{self.at(flat, e)} + x * {self.stride(flat, v)}"
      self.emit("    " + guard + self.spelling.store(p, i, f"x{n}[x]", d))
    self.emit("  }")
    self.emit("}")
