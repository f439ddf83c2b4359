"""Lines -> text of a C-like language. Lanes are expanded here and nowhere else: an unrolled lane becomes one named
variable per value, a vector lane one vector per `width` elements (width 1: scalars). A local range is a variable of the
thread, and what threads must wait for is printed where threads.py says.

Within a run of straight-line code the lines that depend on an unrolled lane are printed together, lane by lane (all of
row 0, then all of row 1, ...), as if the lane were the innermost loop: this keeps register pressure low.
A language is a `Language` (spelling.py): its table of spellings, and nothing else that differs. What stands on the
right of an assignment is expressions.py's, what closes a reduce folds.py's, what passes the caches or is read ahead
streams.py's.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod

from mini.codegen.linearize import Line, lanes, linearize, values_in
from mini.codegen.matrix import instruction_of, lower
from mini.codegen.recipe_builder import LINE, turning
from mini.codegen.threads import barriers, digits, exchanged, idle, is_shared, threads
from mini.ir.guards import without_implied
from mini.ir.kernel import (
  access,
  all_ranges,
  around,
  carries_value,
  is_inline,
  params_of,
  stage_index,
  written,
)
from mini.ir.ops import identity
from mini.ir.outside import MOST_SIZE
from mini.ir.uop import (
  TRUE,
  UOp,
  closed,
  conjuncts,
  is_condition,
  less,
  linear,
  loop_limits,
  rkind,
  rname,
  rsize,
  toposort,  # fmt: skip
)
from mini.render.chains import cuts
from mini.render.expressions import fits_int, own_ranges, vector
from mini.render.shuffles import Shuffles, line_lanes, unrolled
from mini.render.spelling import Language, RenderError, Wide
from mini.render.streams import Ahead, Prefetch, ahead, non_temporal, passes_first, prefetches
from mini.types import dtypes

DEEPEST = 64  # operations in one another: clang takes 256 brackets, of which an operation has up to three


def between(gate: UOp, v: UOp) -> bool:
  """Does the gate hold for neighbouring lanes of v alone?"""
  limits = [c.src[0] for c in conjuncts(gate) if v in c.free]
  return not any(v in t.free for i in limits for t in linear(i)[0] if t is not v)


class Renderer(Shuffles):
  """One kernel's text. `source()` gives it; the helper functions that it calls are left in `helpers`."""

  def __init__(self, kernel: UOp, lang: Language, name: str):
    for instruction in filter(None, map(instruction_of, toposort(kernel))):
      if instruction not in lang.matrices:
        known = ", ".join(lang.matrices) or "none"
        raise RenderError(f"{lang.name} has no matrix instruction {instruction}; it has {known}")
    self.params = params_of(kernel)
    kernel = without_implied(lower(kernel, lang.bits))
    self.kernel = kernel
    self.out = []
    self.depth = 1
    self.threads = threads(kernel)
    self.lines = linearize(kernel)
    self.cuts = cuts(kernel, lang.width)
    self.depths: dict[UOp, int] = {}  # of each sum: in how many pieces of pieces of it is what is printed?
    self.warp = 1
    if self.threads:
      if lang.threads is None:
        named = ", ".join(f"%{rname(r)}" for r in digits(kernel))
        raise RenderError(f"{lang.name} has no groups of threads, of which {named} would be a part")
      self.warp = lang.threads.warp
      self.lines = barriers(kernel, self.lines, self.warp)
    self.top = []  # declarations
    self.shared = 0  # bytes
    super().__init__(lang, fits_int(kernel), {line.node: n for n, line in enumerate(self.lines)})
    self.name = self.function(name)
    self.branches: dict[str, UOp] = {}  # conditions, as printed in this segment, under which lanes are added
    self.open = False  # is it known that they hold?
    self.users = {}
    order = toposort(kernel)
    for u in order:
      for s in u.src:
        self.users.setdefault(s, []).append(u)
      vs = [r for r in lanes(u) if rkind(r) == "vec"] if u.op != "range" else []
      if len(vs) > 1:
        raise RenderError(f"{u.op} depends on two vec ranges")
      if vs and rsize(vs[0]) % lang.width:
        raise RenderError(f"vec %{rname(vs[0])}: {rsize(vs[0])} is not a multiple of {lang.width}")
    parallel = [u for u in all_ranges(kernel) if rkind(u) == "par"]
    if len(parallel) > 1 or any(r not in closed(kernel) for r in parallel):
      raise RenderError(
        f"{lang.name} runs one range of the outputs in parallel, not {', '.join(map(rname, parallel))}"
      )
    self.past = non_temporal(kernel) if lang.fence else frozenset()
    self.ahead = ahead(kernel, self.lines) if lang.prefetch else {}
    sums = any(u.op in ("reduce", "scan") for u in order)
    self.stream = lang.prefetch_second if sums and passes_first(self.ahead) else lang.prefetch_stream
    self.asked: dict[UOp, Prefetch] = {}
    if lang.prefetch:
      self.lines, self.asked = prefetches(kernel, self.lines)
    self.guarded = any(carries_value(access(u)[2]) for u in order if u.op in ("load", "store"))
    if len(self.params) + self.guarded > lang.most_params:
      raise RenderError(
        f"{lang.name} passes {lang.most_params} buffers at most; this kernel needs {len(self.params) + self.guarded}"
      )

  # ---------------------------------------------------------------- lines

  def load(self, u: UOp, env: dict[UOp, int]) -> str:
    target, index, gate = access(u)
    p, flat = self.memory(target, index, self.read_as(u))
    v, d = vector(lanes(u)) if self.lang.width > 1 else None, self.read_as(u)
    zero = self.spelling.literal(0, u.dtype)
    together = v is not None and v not in gate.free  # a gate that holds for all lanes or for none

    def one(lane: int) -> str:
      s = self.spelling.load(p, self.at(flat, env, lane), d)
      is_open = gate is TRUE or together or (condition := self.at(gate, env, lane)) == "1"
      return s if is_open else f"({condition}) ? {s} : {zero}"

    if v is None:
      return one(0)
    w, at = self.lang.width, self.at(flat, env)

    def parts() -> str:
      minus = "-" if u.dtype is dtypes.bool else ""  # a true lane of a mask is -1
      return self.spelling.vector((f"{minus}({one(n)})" for n in range(w)), u.dtype, w)

    step, turn = self.stride(flat, v), turning(flat, v)
    if turn is not None and gate is TRUE and 1 < w <= turn.src[1].arg:
      goes_on = self.at(less(turn, turn.src[1].arg - w + 1), env)
      whole = self.spelling.load(p, at, d, w)
      return whole if goes_on == "1" else f"({goes_on}) ? {whole} : {parts()}"
    whole = ""
    if step == 1 and (together or w >= 4):
      whole = self.spelling.load(p, at, d, w)
    elif step in (-1, 2) and w >= 4 and between(gate, v):
      whole = self.spelling.spaced(p, at, d, w, step)
    if together:
      s = whole or parts()
      return s if gate is TRUE else f"({self.at(gate, env)}) ? {s} : {self.spelling.splat(zero, u.dtype)}"
    if not whole or not between(gate, v):
      return parts()
    masked = ""
    if step == 1 and target.op == "param" and all(self.compares(c, v) for c in conjuncts(gate)):
      masked = self.spelling.load_masked(p, at, self.condition(gate, env, True), d, w)
    # what holds for the first and the last lane holds for all: at most vectors at an edge are read in parts
    ends = f"({self.at(gate, env, 0)}) && ({self.at(gate, env, w - 1)})"
    return f"({ends}) ? {whole} : {masked or parts()}"

  def store(
    self,
    target: UOp,
    index: tuple[UOp, ...],
    value: UOp,
    env: dict[UOp, int],
    ls: tuple[UOp, ...],
    gate: UOp,
    how: str | None,
    others: int = 0,
    past: bool = False,
  ) -> None:
    """others: the bits of the thread's number that are set in threads which leave this to another.
    past: not to the caches."""
    p, flat = self.memory(target, index)
    v = vector(ls) if self.lang.width > 1 else None
    d, w = self.element(target), self.lang.width
    conditions = [self.at(gate, env)] if gate is not TRUE else []
    conditions += [f"!(t & {others})"] if others else []
    guard = f"if ({' && '.join(conditions)}) " if conditions else ""

    def merged(i: str, x: str, width: int) -> str:
      if how is None:
        return x
      old = self.spelling.load(p, i, d, width)
      return self.spelled(how, d, width, old, x)

    if v is None:
      i = self.at(flat, env)
      return self.emit(guard + self.spelling.store(p, i, merged(i, self.ref(value, env), 1), d))
    x = self.ref(value, env, True)
    if self.stride(flat, v) == 1 and v not in gate.free:
      i = self.at(flat, env)
      if past:
        return self.emit(guard + self.spelling.store_past(p, i, x, d, w))
      return self.emit(guard + self.spelling.store(p, i, merged(i, x, w), d, w))
    plain = how is None and target.op == "param" and d is not dtypes.bool
    pair = self.in_turns(flat, ls, gate) if plain else None
    if pair is not None:
      return self.store_in_turns(p, flat, value, env, pair, guard)
    rows = self.in_a_line(flat, ls, gate, d.itemsize) if plain else []
    if rows:
      return self.store_across(p, flat, value, env, v, rows, guard)
    bit = " & 1" if d is dtypes.bool else ""
    self.emit("{ " + f"{self.spelling.type(d, self.lang.width)} x = {x};")
    for n in range(w):
      guard = f"if ({self.at(gate, env, n)}) " if gate is not TRUE else ""
      i = self.at(flat, env, n)
      self.emit("  " + guard + self.spelling.store(p, i, merged(i, f"x[{n}]{bit}", 1), d))
    self.emit("}")

  def line(self, line: Line, env: dict[UOp, int]) -> None:
    u, op = line.node, line.op
    if op == "next":
      return self.fetch_next(u, self.asked[u])
    ls = line_lanes(line)
    v = vector(ls)
    if v is not None and op in ("load", "store") and self.moves_wide(line, v, env):
      return
    for c in self.chunks(v):
      e = {**env, v: c} if v is not None else env
      w = self.lang.width if v is not None else 1
      kind = (
        ""
        if op == "store"
        else self.spelling.type(u.dtype, self.lang.width)
        if w > 1
        else self.spelling.type(u.dtype)
      )
      acc = self.accumulator(u, e) if op in ("acc", "accum", "join", "sofar") else ""
      how = (u.arg if u.op == "scan" else u.arg.what) if acc else ""
      if op == "acc":
        start = self.spelling.literal(identity(how, u.dtype), u.dtype)
        self.emit(f"{kind} {acc} = {self.spelling.splat(start, u.dtype) if w > 1 else start};")
      elif op == "accum":
        value, when = self.added(u, e)
        if when not in ("0", "1"):
          self.branches.setdefault(when, u.src[0].src[0])
          when = "1" if self.open else when
        only = f"if ({when}) " if when != "1" else ""
        if when != "0":
          self.emit(f"{only}{acc} = {self.accumulated(how, value, w, acc, e)};")
        if u.op == "scan":
          whole = self.spelled(how, u.dtype, w, self.sofar(u, e), acc) if self.depths.get(u) else acc
          self.emit(f"{kind} v{self.number[u]}{self.suffix(ls, e)} = {whole};")
      elif op == "join":
        whole = self.accumulator(u, e, 1)
        self.emit(f"{whole} = {self.spelled(how, u.dtype, w, whole, acc)};")
      elif op == "sofar":
        whole = self.accumulator(u, e, 1)
        whole = self.spelled(how, u.dtype, w, self.sofar(u, e, 1), whole) if self.depths[u] > 1 else whole
        self.emit(f"{kind} {self.sofar(u, e)} = {whole};")
      elif op == "ask":
        self.fetch(u, e, c, Ahead(0, False))
      elif op == "store" and u.op == "stage":
        others = idle(self.kernel, u) if is_shared(u) else 0
        adds = u.src[0].arg.what if around(u.src[0]) else None
        self.store(u, stage_index(u), u.src[0], e, ls, TRUE, adds, others)
      elif op == "store":
        target, index, gate = access(u)
        self.check(gate, e)
        self.store(target, index, u.src[1], e, ls, gate, u.arg, idle(self.kernel, u), u in self.past)
      else:
        if op == "load":
          self.check(access(u)[2], e)
          if u in self.ahead:
            self.fetch(u, e, c, self.ahead[u])
        s = self.load(u, e) if op == "load" else self.fold(u, e) if op == "fold" else self.arith(u, e)
        self.emit(f"{kind} v{self.number[u]}{self.suffix(lanes(u), e)} = {s};")

  def added(self, u: UOp, env: dict[UOp, int]) -> tuple[UOp, str]:
    """What a reduce or a scan adds, and when: a branch leaves out the lanes that add nothing, with what computes it,
    where one condition holds for a whole vector."""
    value = u.src[0]
    if u.op != "reduce" or value.op != "where" or value not in self.nested:
      return value, "1"
    gate, some, nothing = value.src
    if not is_condition(gate) or not unrolled(lanes(gate)) or vector(lanes(gate)) is not None:
      return value, "1"
    if nothing.op != "const" or nothing.arg != identity(u.arg.what, u.dtype):
      return value, "1"
    return some, self.at(gate, env)

  def fetch(self, u: UOp, env: dict[UOp, int], chunk: int, ahead: Ahead) -> None:
    """Asks for the cache line that a load wants later."""
    nbytes = self.lang.width * u.src[0].dtype.itemsize
    if self.lang.width == 1 or chunk * nbytes % LINE:
      return
    p, flat = self.memory(u.src[0], access(u)[1])
    at = f"{p} + {self.at(flat, env)}" + f" + {ahead.elements}" * (ahead.elements > 0)
    self.ask(self.stream if ahead.plain else self.lang.prefetch, at)

  def ask(self, statement: str, at: str) -> None:
    self.spelling.need(statement)
    self.emit(statement.format(p=at))

  def fetch_next(self, u: UOp, asked: Prefetch) -> None:
    """Asks now and then for lines of the caches that a load will read, or a store write."""
    p, _ = self.memory(u.src[0], access(u)[1])
    word = self.lang.prefetch_store if u.op == "store" else self.lang.prefetch
    self.emit(f"if ({self.at(asked.when, {})}) {{")
    for index in asked.at:
      self.ask(f"  {word}", f"{p} + {self.at(index, {})}")
    self.emit("}")

  def moves_wide(self, line: Line, v: UOp, env: dict[UOp, int]) -> bool:
    """Loads or stores several elements at once, where lanes are scalars, v runs along memory, and it is worth it."""
    u = line.node
    target, index, gate = (u, stage_index(u), TRUE) if u.op == "stage" else access(u)
    if self.lang.width > 1 or v in gate.free or (u.op == "store" and u.arg) or any(map(carries_value, index)):
      return False
    space = target.arg.what if target.op == "stage" else "param"
    d = self.read_as(u) if line.op == "load" else self.element(target)
    p, flat = self.memory(target, index, d)
    wide = next((w for w in self.lang.wide.get(d, ()) if rsize(v) % w.lanes == 0), None)
    if wide is None or space not in self.lang.address or self.stride(flat, v) != 1:
      return False
    if space != "param" and not is_multiple(flat, v, wide.lanes):
      return False  # its address is known, and would be found not to be aligned each time
    for called in (wide.load, wide.get) if line.op == "load" else (wide.store, wide.put):
      self.spelling.need(called)
    for c in range(0, rsize(v), wide.lanes):
      part = [{**env, v: c + n} for n in range(wide.lanes)]
      at = f"{p} + {self.at(flat, part[0])}"
      conditions = [self.at(gate, env)] if gate is not TRUE else []
      if line.op == "load":
        self.load_wide(u, wide, wide.load.format(p=at, S=self.lang.address[space]), part, conditions)
        continue
      others = idle(self.kernel, u) if u.op == "store" or is_shared(u) else 0
      conditions += [f"!(t & {others})"] if others else []
      value = u.src[0] if u.op == "stage" else u.src[1]
      put = [f"x.{e} = {wide.put.format(self.ref(value, env))};" for e, env in zip("xyzw", part)]
      guard = f"if ({' && '.join(conditions)}) " if conditions else ""
      stored = wide.store.format(p=at, S=self.lang.address[space])
      self.emit(guard + f"{{ {wide.type} x; {' '.join(put)} {stored} }}")
    return True

  def load_wide(
    self, u: UOp, wide: Wide, load: str, part: list[dict[UOp, int]], conditions: list[str]
  ) -> None:
    names = [f"v{self.number[u]}" + self.suffix(lanes(u), env) for env in part]
    x = "w" + names[0][1:]
    got = [f"{name} = {wide.get.format(f'{x}.{e}')}" for name, e in zip(names, "xyzw")]
    kind = self.spelling.type(u.dtype)
    if not conditions:
      self.emit(f"{wide.type} {x} = {load};")
      return self.emit(f"{kind} {', '.join(got)};")
    zero = self.spelling.literal(0, u.dtype)
    self.emit(f"{kind} {', '.join(f'{name} = {zero}' for name in names)};")
    self.emit(f"if ({conditions[0]}) {{ {wide.type} {x} = {load}; {'; '.join(got)}; }}")

  def check(self, gate: UOp, env: dict[UOp, int]) -> None:
    """A data-dependent index that its guard keeps out is an error that the program reports, wherever the rest of the
    gate is open: what is computed where it is not (of zeros, around a pad) may be anything."""
    conditions = conjuncts(gate)
    guards = [c for c in conditions if carries_value(c)]
    if not guards or not self.lang.raise_:
      return
    around = [c for c in conditions if c not in guards]
    # index < size, not -index < 1
    ends = [c for c in guards if max(linear(c.src[0])[0].values()) > 0] or guards
    end = max(ends, key=lambda c: c.src[1].arg)
    asked = end.src[0]
    if asked.op == "mul" and asked.src[1].arg == -1:  # only -index < 1: the least integer has no negative
      asked = asked.src[0]
    values = [v for c in guards for v in toposort(c) if not is_inline(v)]
    differ = any(vector(lanes(u)) is not None for u in (*values, *around))
    long = any(u.dtype in (dtypes.int64, dtypes.uint64, dtypes.uint32) for u in toposort(asked))
    for lane in range(self.lang.width if differ else 1):
      fails = f"!({' && '.join(self.at(c, env, lane) for c in guards)})"
      fails = " && ".join([*(self.at(c, env, lane) for c in around), fails])
      index = self.at(asked, env, lane)
      if long:  # 0, which no axis keeps out, stands for what 32 bits do not hold
        index = f"({index} == (int)({index}) ? {index} : 0)"
      size = min(max(end.src[1].arg, 1), MOST_SIZE)  # what has 31 bits of the word, which is not 0 then
      self.emit(self.lang.raise_.format(fails=fails, size=size, index=index))

  # ---------------------------------------------------------------- the kernel

  def run(self, segment: list[Line]) -> None:
    """Straight-line code."""
    here = {line.node for line in segment}
    depth: dict[UOp, int] = {}  # of what is one expression
    for line in segment:
      user = self.users.get(line.node, [])
      plain = line.op not in (
        "load",
        "ask",
        "next",
        "fold",
        "store",
        "acc",
        "accum",
        "join",
        "sofar",
        "alloc",
      )
      if plain and len(user) == 1 and user[0] in here and not is_inline(user[0]):
        onto = user[0].src[0] if user[0].op in ("reduce", "stage", "scan") else user[0]
        deep = 1 + max((depth.get(s, 0) for s in line.node.src), default=0)
        if (
          deep < DEEPEST
          and lanes(onto) == lanes(line.node)
          and not (user[0].op == "store" and line_lanes(Line("store", user[0])) != lanes(line.node))
        ):
          self.nested.add(line.node)
          depth[line.node] = deep
    batch: list[Line] = []
    for line in segment:
      if line.node in self.nested:
        continue
      ls = unrolled(line_lanes(line))
      reads = {v for s in line.node.src for v in values_in(s)} if not ls else set()
      # does it read a stage that this batch fills?
      filled = line.op == "load" and any(b.op == "store" and b.node is line.node.src[0] for b in batch)
      made = line.node.src[0] if line.op == "accum" else line.node
      if made.op == "mma":
        self.flush(batch)
        self.multiply(made, line)
        continue
      if line.op == "fold" and exchanged(self.kernel, line.node, self.warp):
        self.flush(batch)
        self.fold_group(line.node)
        continue
      if line.op == "fold" or filled or (not ls and any(b.node in reads or b.op == "store" for b in batch)):
        self.flush(batch)
      if ls:
        batch.append(line)
      else:
        self.line(line, {})
    self.flush(batch)

  def flush(self, batch: list[Line]) -> None:
    rs = list(dict.fromkeys(r for line in batch for r in unrolled(line_lanes(line))))
    if len(rs) == 1 and any(self.transposes(line, rs[0]) for line in batch):
      return self.flush_transposed(batch, rs[0])
    for choice in product(*(range(rsize(r)) for r in rs)):
      env = dict(zip(rs, choice))
      for line in batch:
        mine = unrolled(line_lanes(line))
        if all(env[r] == 0 for r in rs if r not in mine):
          self.line(line, {r: env[r] for r in mine})
    batch.clear()

  def flush_transposed(self, batch: list[Line], r: UOp) -> None:
    """Blocks of width x width elements: as many vectors are read along one axis, and written along the other."""
    w = self.lang.width
    stored = [line for line in batch if self.transposes(line, r)]
    for block in range(0, rsize(r), w):
      for n in range(block, block + w):
        for line in batch:
          if line not in stored and (n == 0 or r in line_lanes(line)):
            self.line(line, {r: n} if r in line_lanes(line) else {})
      for line in stored:
        self.store_transposed(line, r, block)
    batch.clear()

  def unswitch(self, r: UOp, segment: list[Line], header: int) -> None:
    """A loop of straight-line code, printed from `header` on, once more without the branches that all its rounds take
    or leave alike, for where all are taken: the gradient of a 5x5 convolution's input takes 0.86 of the time so."""
    if not self.branches or any(r in gate.free for gate in self.branches.values()):
      return
    branching, self.out = self.out[header:], self.out[:header]
    self.emit(f"if ({' && '.join(self.branches)}) {{")
    self.out.append("  " + branching[0])
    self.depth, self.open = self.depth + 2, True
    self.run(segment)
    self.depth, self.open = self.depth - 2, False
    self.out.append("  " + branching[-1])
    self.emit("} else {")
    self.out += ["  " + text for text in branching]
    self.emit("}")

  def source(self) -> str:
    segment: list[Line] = []
    opened: UOp | None = None
    header = 0  # the line of the loop that was opened last
    for line in [*self.lines, None]:
      if line is not None and line.op not in ("loop", "end", "alloc", "barrier"):
        segment.append(line)
        continue
      self.branches = {}
      self.run(segment)
      straight, segment = segment, []
      if line is None:
        break
      u = line.node
      opened = opened if line.op == "end" else None
      if line.op == "alloc":
        n = prod(map(rsize, own_ranges(u))) * prod(u.arg.shape)
        t = self.spelling.memory(self.element(u))
        if is_shared(u):
          self.share(f"m{self.number[u]}", t, self.element(u).itemsize, n)
          continue
        if u.arg.what not in self.lang.spaces:
          raise RenderError(
            f"{self.lang.name} has no {u.arg.what} memory; it has {', '.join(self.lang.spaces)}"
          )
        name = f"m{self.number[u]}"
        self.emit(self.lang.spaces[u.arg.what].format(T=t, name=name, n=n))
        if around(u.src[0]):
          start = self.spelling.literal(identity(u.src[0].arg.what, u.dtype), u.dtype)
          self.emit(
            f"for ({self.index} n = 0; n < {n}; n++) {self.spelling.store(name, 'n', start, self.element(u))}"
          )
      elif line.op == "barrier":
        assert self.lang.threads is not None
        self.emit(self.lang.threads.fence if u.op == "store" else self.lang.threads.barrier)
      elif line.op == "loop":
        groups = self.lang.threads if self.threads else None
        opens = LOOP if rkind(u) != "par" else groups.par if groups else self.lang.par
        first, end = self.open_pieces(u, *(self.expr(e, {}, 0) for e in loop_limits(u)))
        opened, header = u, len(self.out)
        self.emit(opens.format(i=self.called(rname(u)), first=first, n=end, I=self.index))
        self.depth += 1
      else:
        self.depth -= 1
        self.emit("}")
        if u is opened:
          self.unswitch(u, straight, header)
        self.close_pieces(u)
    if self.lang.threads is not None and self.shared > self.lang.threads.nbytes:
      most = self.lang.threads.nbytes
      raise RenderError(
        f"{self.name} takes {self.shared} bytes of shared memory; {self.lang.name} has {most}"
      )
    if self.past:
      self.spelling.need(self.lang.fence)
      self.emit(self.lang.fence)
    return self.head() + "\n".join(self.out) + "\n}\n"

  def head(self) -> str:
    """The kernel up to its first line: parameters, and what is declared once."""
    outs = set(written(self.kernel))
    parts = [
      {
        "const": "" if p in outs else "const ",
        "T": self.spelling.memory(p.dtype),
        "name": self.called(p.arg[0], True),
      }
      for p in self.params
    ]
    rows = [self.lang.param.format(n=n, **part) for n, part in enumerate(parts)]
    rows += [self.lang.error.format(n=len(rows))] if self.guarded else []
    top = [self.lang.pointer.format(**part) for part in parts] if self.lang.pointer else []
    head = self.lang.head
    if self.threads:
      assert self.lang.threads is not None
      head = self.lang.threads.head
      top += [self.lang.threads.number] if self.lang.threads.number else []
      for r, stride in digits(self.kernel).items():
        shifted = f"t >> {stride.bit_length() - 1}" if stride > 1 else "t"
        whole = stride * rsize(r) == self.threads
        digit = shifted if whole else f"{shifted} & {rsize(r) - 1}"
        top.append(f"const {self.index} {self.called(rname(r))} = {digit};")
    opened = head.format(name=self.name, params=self.lang.between.join(rows), threads=self.threads)
    return opened + "".join(f"  {line}\n" for line in top + self.top)


def is_multiple(flat: UOp, v: UOp, n: int) -> bool:
  """Is the index a multiple of n where v is 0?"""
  terms, k = linear(flat)
  return k % n == 0 and all(c % n == 0 or t is v for t, c in terms.items())


LOOP = "for ({I} {i} = {first}; {i} < {n}; {i}++) {{"


def link(kernels: Iterable[tuple[str, Iterable[tuple[str, str]]]], prelude: str) -> str:
  """One source of kernels that were rendered apart: (function, the (name, text) of the helper functions) of each.
  RenderError where a name is that of two texts."""
  kernels, helpers = list(kernels), dict[str, str]()
  for name, text in (helper for _, called in kernels for helper in called):
    if helpers.setdefault(name, text) != text:
      raise RenderError(f"two functions of one source are called {name}")
  return (
    prelude + "".join(h + "\n" for h in helpers.values()) + "\n" + "\n".join(source for source, _ in kernels)
  )


__all__ = ["Language", "RenderError", "Renderer", "link"]
