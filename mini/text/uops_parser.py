"""The lines of uops, read back into the kernel that they came from.

Loops and accumulators become ranges and reduces again; where a line stands follows from the kernel, so other
orders of the same lines become the canonical one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mini.ir.kernel import reduce_over, scan_over, stage_at
from mini.ir.uop import UOp, range_
from mini.text.lexer import Literal
from mini.text.printer import lane_text
from mini.types import DType

if TYPE_CHECKING:
  from mini.text.parser import Reader

SPACES = ("stack", "register", "shared", "scratch", "global")


class UopsReader:
  """The lines of uops: open loops, accumulators, and memory that is written after it is named."""

  def __init__(self, reader: Reader):
    self.r = reader
    self.open: list[str] = []
    self.accumulators: dict[str, str] = {}  # name.acc -> kind
    self.accumulated: dict[str, tuple[UOp | Literal, int]] = {}
    self.memory: dict[str, tuple[str, DType, tuple[int, ...]]] = {}  # of stages: space, type, shape
    self.stores: dict[UOp, None] = {}
    self.lanes: list[tuple[UOp, str, int]] = []  # declared types, to be compared at the end
    self.declared: list[tuple[str, str, int]] = []  # those of acc and alloc, by name

  def end(self) -> None:
    name = self.r.name("a loop")
    if not self.open or self.open.pop() != name:
      self.r.fail(f"%{name} is not the innermost open loop", self.r.at - 1)

  def closed(self) -> None:
    if self.open:
      self.r.fail(f"the loop %{self.open[-1]} has no end")
    if left := set(self.accumulators) - set(self.accumulated):
      self.r.fail(f"%{min(left)} is never used")
    if self.memory:
      self.r.fail(f"%{min(self.memory)} is never written")

  def line(self) -> None:
    r = self.r
    at, op = r.at, r.next.partition(".")[0]
    if op == "store" and r.tokens[at + 1][1:] in self.memory:
      self.stage_store()
    elif op == "store":
      self.stores[r.store_line(self.stores)] = None
    elif op == "accum":
      self.accum(None, r.take().partition(".")[2], at)
    else:
      target = r.name("a value, store, accum or end")
      r.take("=")
      self.definition(target, at)

  def definition(self, target: str, at: int) -> None:
    r = self.r
    op, _, kind = r.next.partition(".")
    if op == "range":
      r.define(target, r.range_line(target), at)
    elif op == "loop":
      r.take()
      size = r.range_size()
      kind = next((kind for kind in ("par", "around") if r.accept(kind)), "loop")
      r.define(target, range_(target, size, kind, r.limits()), at)
      self.open.append(target)
    elif op == "alloc":
      r.take()
      space, spot = r.word("a space", SPACES), r.at
      dtype, lanes = self.type_and_lanes()
      if target in self.memory:
        r.fail(f"%{target} is defined twice", at)
      self.memory[target] = space, dtype, r.dims() if r.next == "[" else ()
      self.declared.append((target, lanes, spot))
    elif op == "acc":
      r.take()
      spot = r.at
      _, lanes = self.type_and_lanes()
      if not target.endswith(".acc") or target in self.accumulators:
        r.fail("an accumulator is called after its value: %3.acc, once", at)
      self.accumulators[target] = kind
      self.declared.append((target, lanes, spot))
    elif op == "accum":
      r.take()
      self.accum(target, kind, at)
    else:
      spot = r.at
      r.define(target, self.typed(self.fold(target) if op == "fold" else r.kernel_value, at, spot), at)

  def type_and_lanes(self) -> tuple[DType, str]:
    """: TYPE<LANES>"""
    r = self.r
    dtype = r.type_after()
    return dtype, dtype.short + self.lane_list()

  def lane_list(self) -> str:
    r, found = self.r, []
    if r.next != "<":
      return ""
    r.take("<")
    while not r.accept(">"):
      found.append(r.take())
      if len(found) > 100 or found[-1] == "\n":
        r.fail("expected lanes, such as <i:4u, j:8v>")
    return "<" + "".join(", " if t == "," else t for t in found) + ">"

  def typed(self, make: Callable[[], UOp], at: int, spot: int) -> UOp:
    u = self.r.value_node(make(), at, spot)
    self.lanes.append((u, u.dtype.short + self.lane_list(), spot))
    return u

  def accum(self, target: str | None, kind: str, at: int) -> None:
    """accum.KIND %x.acc, VALUE; with a target and `along`, a scan."""
    r = self.r
    name, spot = r.name("an accumulator"), r.at - 1
    if self.accumulators.get(name) != kind or name in self.accumulated:
      r.fail(f"%{name} is no accumulator of {kind}, or is used already", spot)
    r.take(",")
    x = r.operand()
    self.accumulated[name] = x, at
    if target is not None:
      along = r.along()
      r.define(target, self.typed(lambda: scan_over(kind, r.typed_source(x), along), at, spot), at)

  def fold(self, target: str) -> Callable[[], UOp]:
    r = self.r

    def make() -> UOp:
      kind, spot = r.take().partition(".")[2], r.at
      acc = f"{target}.acc"
      if r.next == "%" + acc:
        r.take()
        if acc not in self.accumulated:
          r.fail(f"%{acc} holds nothing yet", spot)
        x: UOp | Literal = self.accumulated[acc][0]
        if self.accumulators[acc] != kind:
          r.fail(f"%{acc} accumulates {self.accumulators[acc]}", spot)
      else:
        x = r.operand()
      rs = r.over()
      if not rs:
        r.fail("a fold closes at least one range", spot)
      return r.by(lambda: reduce_over(kind, r.typed_source(x), rs))

    return make

  def stage_store(self) -> None:
    r = self.r
    at = r.at
    r.take("store")
    name = r.name("memory")
    space, dtype, s = self.memory.pop(name)
    index = r.index()
    r.take(",")
    x = r.operand()
    value = r.literal(x, dtype) if isinstance(x, Literal) else x
    if value.dtype is not dtype:
      r.fail(f"the value is {value.dtype.short}, the memory {dtype.short}", at)
    u = r.value_node(stage_at(value, index, r.over(), space, s), at, at)
    r.define(name, u, at)

  def check_lanes(self) -> None:
    """The types that the text gives are those that the values have."""
    r = self.r
    for name, lanes, spot in self.declared:
      u = r.env.get(name.removesuffix(".acc"))
      if u is not None:
        self.lanes.append((u.src[0] if name.endswith(".acc") else u, lanes, spot))
    for u, lanes, spot in self.lanes:
      if lanes != lane_text(u):
        r.fail(f"this is {lane_text(u)}, not {lanes}", spot)
