"""How threads and lanes add up what each has, and how a warp multiplies tiles: by vectors, shuffles, the group's
memory, or an instruction for matrices.
"""

from __future__ import annotations

from itertools import product
from math import prod

from mini.codegen.linearize import Line, lanes
from mini.codegen.matrix import parts
from mini.codegen.threads import exchanged, shuffled
from mini.ir.uop import (
  UOp,
  closed,
  rkind,
  rsize,  # fmt: skip
)
from mini.render.expressions import Expressions, every, vector
from mini.render.spelling import RenderError, held
from mini.types import dtypes


class Folds(Expressions):
  """The lines that close a reduce. cstyle.py says what each attribute holds."""

  kernel: UOp
  out: list[str]
  depth: int
  threads: int
  warp: int
  top: list[str]
  shared: int

  def emit(self, s: str) -> None:
    self.out.append("  " * self.depth + s)

  def chunks(self, v: UOp | None) -> range:
    return range(rsize(v) // self.lang.width) if v is not None else range(1)

  def fold(self, u: UOp, env: dict[UOp, int]) -> str:
    """Combine the lanes of the accumulator that this reduce closes, and those threads that exchange values."""
    s, steps = self.fold_lanes(u, env), shuffled(self.kernel, u, self.warp)
    if not steps:
      return s
    t, all_of = f"f{self.number[u]}" + self.suffix(lanes(u), env), (1 << min(self.threads, self.warp)) - 1
    shuffle = self.spelling.operation("shuffle", (u.dtype,), u.dtype)
    self.emit(f"{self.spelling.type(u.dtype)} {t} = {s};")
    for bit in steps:
      other = shuffle.format(t, bit, f"{all_of:#x}")
      self.emit(f"{t} = {self.spelled(u.arg.what, u.dtype, 1, t, other)};")
    return t

  def fold_group(self, u: UOp) -> None:
    """A reduce over threads that share memory alone: each writes what it has, and reads that of all that it adds to.

    The order is that of `fold`: neighbours first, so that a device without shuffles gets the same sum.
    """
    assert self.lang.threads is not None
    kind, d = self.spelling.type(u.dtype), u.dtype
    rounds = exchanged(self.kernel, u, self.warp)
    envs = every(lanes(u))
    values = [self.fold(u, env) for env in envs]
    names = [f"m{self.number[u]}", f"m{self.number[u]}b"][: len(rounds)]
    for name in names:
      self.share(name, kind, held(d).itemsize, self.threads * len(envs))
    for n, own in enumerate(rounds):
      m, rest = names[n % 2], self.threads - 1 - sum(own)
      for k, value in enumerate(values):
        self.emit(f"{m}[{k * self.threads} + t] = {value};")
      self.emit(self.lang.threads.barrier)
      for k, env in enumerate(envs):
        parts = []
        for p in range(1 << len(own)):
          offset = k * self.threads + sum(bit for i, bit in enumerate(own) if p >> i & 1)
          parts.append(f"{m}[{offset} + (t & {rest})]" if rest else f"{m}[{offset}]")
        last = n == len(rounds) - 1
        values[k] = ("v" if last else f"f{n}_") + f"{self.number[u]}" + self.suffix(lanes(u), env)
        self.emit(f"{kind} {values[k]} = {self.tree(u, parts)};")

  def tree(self, u: UOp, parts: list[str], width: int = 1) -> str:
    """Neighbours are combined, then what they gave."""
    while len(parts) > 1:
      pairs = [
        self.spelled(u.arg.what, u.dtype, width, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)
      ]
      parts = pairs + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]

  def share(self, name: str, kind: str, itemsize: int, n: int) -> None:
    """Declares memory of the group."""
    if "shared" not in self.lang.spaces:
      raise RenderError(f"{self.lang.name} has no shared memory; it has {', '.join(self.lang.spaces)}")
    self.top.append(self.lang.spaces["shared"].format(T=kind, name=name, n=n))
    self.shared += itemsize * n

  def fold_lanes(self, u: UOp, env: dict[UOp, int]) -> str:
    value = u.src[0]
    gone = [r for r in lanes(value) if r in closed(u)]
    v, kept = vector(lanes(value)), vector(lanes(u))
    looped = any(rkind(r) in ("loop", "par") for r in closed(u))
    w = self.lang.width if v is not None else 1
    parts = []
    for choice in product(*(self.chunks(r) if rkind(r) == "vec" else range(rsize(r)) for r in gone)):
      e = {**env, **dict(zip(gone, choice))}
      parts.append(
        f"acc{self.number[u]}" + self.suffix(lanes(value), e) if looped else self.ref(value, e, w > 1)
      )
    if u.arg.what != "max":  # lanes that the value does not depend on: it counts as often
      parts *= prod(rsize(r) for r in closed(u) if rkind(r) in ("vec", "unroll") and r not in gone)
    combined = self.tree(u, parts, w)
    if v is None or kept is not None or self.lang.width == 1:
      return combined
    t = f"f{self.number[u]}" + self.suffix(lanes(u), env)  # the last vector, lane by lane, as a tree
    self.emit(f"{self.spelling.type(u.dtype, self.lang.width)} {t} = {combined};")
    bit = " & 1" if u.dtype is dtypes.bool else ""
    half = self.lang.width // 2
    while half:
      self.emit(f"{t} = {self.spelled(u.arg.what, u.dtype, w, t, self.spelling.rotated(t, half))};")
      half //= 2
    return f"{t}[0]{bit}"

  def multiply(self, u: UOp, line: Line) -> None:
    """An mma: all registers of its operands, and those that it adds to, for each of its other lanes."""
    looped = [
      x for x in self.users[u] if x.op == "reduce" and any(rkind(r) in ("loop", "par") for r in closed(x))
    ]
    if line.node is u and looped:
      return  # it adds to their accumulators, in their loops
    own, p = lanes(u), parts(u)
    result = f"v{self.number[u]}" if line.node is u else f"acc{self.number[line.node]}"
    if line.node is u:
      for env in every(own):
        self.emit(
          f"{self.spelling.type(u.dtype)} {result}{self.suffix(own, env)} = {self.spelling.literal(0, u.dtype)};"
        )
    call = self.lang.matrices[u.arg.what]
    self.spelling.need(call)
    for env in every([r for r in own if r not in p.registers]):
      c = [result + self.suffix(own, {**env, **register}) for register in every(p.registers)]
      a = self.operands(p.a, [{**env, **register} for register in every(p.a_registers)])
      b = self.operands(p.b, [{**env, **register} for register in every(p.b_registers)])
      self.emit(call.format(c=", ".join(c), a=", ".join(a), b=", ".join(b)))

  def operands(self, x: UOp, envs: list[dict[UOp, int]]) -> list[str]:
    values = [self.ref(x, env) for env in envs]
    if x.dtype is not dtypes.uint16:
      return values
    t = self.spelling.type(dtypes.uint32)
    return [f"({t}){low} | ({t}){high} << 16" for low, high in zip(values[::2], values[1::2])]
