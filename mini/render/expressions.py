"""Expressions of a C-like language: values by their names, index expressions and conditions, addresses, operations.
cstyle.py makes lines of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import gcd, prod

from mini.codegen.linearize import lanes, local_ranges
from mini.codegen.threads import is_shared
from mini.ir.index import flatten
from mini.ir.kernel import (
  access,
  all_ranges,
  around,
  is_inline,
  memory_shape,
  stage_index,
)
from mini.ir.machine import reach
from mini.ir.ops import is_elementwise
from mini.ir.uop import (
  UOp,
  add,
  bounds,
  conjuncts,
  const,
  index_nodes,
  linear,
  mul,
  rkind,
  rname,
  rsize,
  substitute,
  toposort,
  weighted_sum,  # fmt: skip
)
from mini.render.spelling import HALVES, Language, held
from mini.types import DType, dtypes

INFIX = {"add": "+", "mul": "*", "div": "/", "mod": "%"}
OURS = re.compile(r"(v|w|m|f|acc|at|sofar)\d.*|x|t|lo|hi|err|args|id|ids|group|groups")
NUMBERED = re.compile(r"a\d.*")  # parameters
FREE = re.compile(
  r"(?!int\d)([a-z]{1,3}\d{0,2}|[a-z]{1,2}\d{1,2}[a-z]{1,2})(_a\d+|_rest|_\d)?"
)  # but for words
WORDS = frozenset(re.findall(r"\w+", """
  alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue decltype
  default delete do double else enum explicit export extern false float for friend goto half if inline int long mutable
  namespace new not nullptr operator or private protected public register restrict return short signed sizeof static
  struct switch template this thread throw true try typedef typeid typename union unsigned using virtual void volatile
  while xor global local constant kernel device threadgroup"""))  # fmt: skip


def vector(ls: tuple[UOp, ...]) -> UOp | None:
  return ls[-1] if ls and rkind(ls[-1]) == "vec" else None


def every(rs: Sequence[UOp]) -> list[dict[UOp, int]]:
  """All values of these lanes, the last the fastest."""
  return [dict(zip(rs, at)) for at in product(*(range(rsize(r)) for r in rs))]


class Expressions:
  """What one kernel's text says on the right of an assignment, for one choice of lanes."""

  users: dict[UOp, list[UOp]]

  def __init__(self, lang: Language, small: bool, number: dict[UOp, int]):
    """small: an int holds every index. number: of each value, for its name."""
    self.lang, self.number = lang, number
    self.spelling = lang.spelling()
    self.helpers = self.spelling.helpers
    self.index = lang.small_index if lang.small_index and small else lang.types[dtypes.index]
    self.flat: dict[tuple, tuple[str, UOp]] = {}
    self.names: dict[tuple[str, bool], str] = {}
    self.taken: set[str] = set()
    self.nested: set[UOp] = set()

  # ---------------------------------------------------------------- names and addresses

  def ref(self, u: UOp, env: dict[UOp, int], wide: bool = False) -> str:
    """u for one choice of lanes; as a vector if `wide`."""
    v = vector(lanes(u))
    if u.op == "const":
      s = self.spelling.literal(u.arg, u.dtype)
    elif is_inline(u):
      return self.condition(u, env, wide)
    elif u in self.nested:
      s = self.arith(u, env)
    else:
      s = f"v{self.number[u]}" + self.suffix(lanes(u), env)
    return self.spelling.splat(s, u.dtype) if wide and v is None and self.lang.width > 1 else s

  def suffix(self, ls: tuple[UOp, ...], env: dict[UOp, int]) -> str:
    return "".join(f"_{env[r]}" for r in ls)

  def elements(
    self, e: UOp, env: dict[UOp, int], show: Callable[[UOp, dict[UOp, int], int], str], dtype: DType
  ) -> str:
    """A vector written out element by element."""
    w = self.lang.width
    return self.spelling.vector((show(e, env, n) for n in range(w)), dtype, w)

  def condition(self, cond: UOp, env: dict[UOp, int], wide: bool) -> str:
    if not wide or self.lang.width == 1:
      return f"({self.at(cond, env)})"
    v = vector(lanes(cond))
    if v is None:
      return self.spelling.splat(f"({self.at(cond, env)})", dtypes.bool)
    if all(self.compares(c, v) for c in conjuncts(cond)):
      return "(" + " & ".join(self.compared(c, v, env) for c in conjuncts(cond)) + ")"
    return self.elements(cond, env, lambda c, e, n: f"-({self.at(c, e, n)})", dtypes.bool)

  def compares(self, c: UOp, v: UOp) -> bool:
    """Is this `e < n`, where e moves evenly along lane v and, as n and what is left of it in each lane, fits an int?"""
    even = c.op == "lt" and self.stride(c.src[0], v) is not None
    return even and reach(c.src[0]) + abs(c.src[1].arg) < 1 << 31

  def compared(self, c: UOp, v: UOp, env: dict[UOp, int]) -> str:
    """The condition `e < n` as a mask: e - n of the first lane, and what it is less than if it holds in each, which is
    the same for every size n."""
    step, first = self.stride(c.src[0], v) or 0, self.at(add(c.src[0], -c.src[1].arg), env)
    w = self.lang.width
    left = self.spelling.vector((str(-step * n) for n in range(w)), dtypes.bool, w)
    return f"({self.spelling.splat(f'(int)({first})', dtypes.int32)} < {left})"

  def at(self, e: UOp, env: dict[UOp, int], lane: int = 0) -> str:
    """An index expression or condition for one choice of lanes, and one element of the vector."""
    table = {
      r: const(x * self.lang.width + lane if rkind(r) == "vec" else x) for r, x in env.items() if r in e.free
    }
    if not table:
      return self.expr(e, env, lane)
    terms, c = linear(e)
    if all(t in table or t.free.isdisjoint(table) for t in terms):  # the rule: no need to rebuild it
      moved = [(table.get(t, t), k) for t, k in terms.items()]
      return self.expr(weighted_sum([*moved, (const(c), 1)]), env, lane)
    for u in index_nodes(e):  # values keep their lanes: they are variables
      if u.op == "cast":
        table[u] = u
    return self.expr(substitute(e, table), env, lane)

  def expr(self, u: UOp, env: dict[UOp, int], lane: int, tight: bool = False) -> str:
    if u.op == "const":
      return str(u.arg) if not isinstance(u.arg, bool) else str(int(u.arg))
    if u.op == "range":
      return self.called(rname(u))
    if u.op == "cast":
      s = self.ref(u.src[0], env)
      if vector(lanes(u.src[0])) is None or self.lang.width == 1:
        return f"({self.index}){s}"
      element = f"{s}[{lane}]"
      return f"({self.index})({element} & 1)" if u.src[0].dtype is dtypes.bool else f"({self.index}){element}"
    if u.op == "min":
      a, b = (self.expr(s, env, lane) for s in u.src)
      return f"({a} < {b} ? {a} : {b})"
    if u.op == "lt":
      e, n = u.src
      # of data: the least integer has no negative
      if e.op == "mul" and e.src[1] is const(-1) and e.src[0].op == "cast":
        return f"{self.expr(e.src[0], env, lane)} > {-n.arg}"
      return f"{self.expr(e, env, lane, True)} < {self.expr(n, env, lane)}"
    if u.op == "and":
      return " && ".join(self.expr(c, env, lane) for c in conjuncts(u))
    # these languages round towards zero, index expressions do not
    if u.op in ("div", "mod") and bounds(u.src[0])[0] < 0:
      a, c = self.expr(u.src[0], env, lane, True), u.src[1].arg
      rest = f"({a} % {c} + {c}) % {c}"
      return f"(({a} - {rest}) / {c})" if u.op == "div" else f"({rest})"
    s = (
      f"{self.expr(u.src[0], env, lane, u.op != 'add')} {INFIX[u.op]} {self.expr(u.src[1], env, lane, True)}"
    )
    return f"({s})" if tight else s

  def memory(self, u: UOp, index: tuple[UOp, ...], d: DType | None = None) -> tuple[str, UOp]:
    """(pointer, flat index) of a parameter or a stage. d: as which its elements are read."""
    key = (u, index)
    if key not in self.flat:
      if u.op == "param":
        self.flat[key] = self.called(u.arg[0], True), flatten(index, u.arg[1])
      else:
        own = own_ranges(u)
        lane = (
          own[-1:] if vector(own) is not None and self.lang.width > 1 else ()
        )  # next to each other: a vector
        first = own[: len(own) - len(lane)]
        sizes = (*map(rsize, first), *u.arg.shape, *map(rsize, lane))
        self.flat[key] = f"m{self.number[u]}", flatten(first + index + lane, sizes)
    p, flat = self.flat[key]
    if d is not None and (kind := self.spelling.memory(d)) != self.spelling.memory(self.element(u)):
      p = f"(({self.lang.address.get('param', '')} const {kind} *){p})"
    return p, flat

  def called(self, name: str, param: bool = False) -> str:
    """The name of a range or parameter as an identifier that is no word of the language, none of ours, and no other's.
    Where a language says nothing of a name, nobody else does: short ones, and those that begin with u_."""
    got = self.names.get((name, param))
    if got is None:
      got = re.sub(r"\W", "_", name)
      ours = OURS.fullmatch(got) or (not param and NUMBERED.fullmatch(got))
      got = got + "_" if ours else got if self.is_free(got) else f"u_{got}"
      while not self.taken.isdisjoint(
        spelled := {got, f"{got}_", f"{got}_at"}
      ):  # a buffer's, and its offset's
        got += "u"
      self.names[name, param] = got
      self.taken |= spelled
    return got

  def function(self, name: str) -> str:
    """The name of a kernel as that of a function. Ours are KERNEL, and words with a digest."""
    got = re.sub(r"\W", "_", name)
    helper = re.fullmatch(r"([a-z]+\d?)_([fiu]|bf)\d+", got)  # exp_f32
    ours = helper is not None and is_elementwise(helper[1]) and "cast" not in helper[1]
    known = ours or got == "main" or got in WORDS or got in self.lang.identifiers()
    return f"u_{got}" if got != name or known or not re.match("[a-z]|KERNEL$", got) else got

  def is_free(self, word: str) -> bool:
    return bool(FREE.fullmatch(word)) and word not in WORDS and word not in self.lang.identifiers()

  def element(self, memory: UOp) -> DType:
    """The type as which memory holds its elements."""
    return self.lang.staged.get(memory.dtype, memory.dtype) if memory.op == "stage" else memory.dtype

  def read_as(self, u: UOp) -> DType:
    """The type as which a load reads memory: its own where it wants the bits alone."""
    return u.dtype if u.dtype is not u.src[0].dtype else self.element(u.src[0])

  def stride(self, flat: UOp, v: UOp) -> int | None:
    """Coefficient of lane v in a flat index; None if it is not affine in v."""
    return even_step(linear(flat)[0], v)

  def spelled(self, op: str, dtype: DType, width: int, *operands: str) -> str:
    """An operation that has no node of its own (accumulate, fold): both operands of one type."""
    return self.spelling.operation(op, (dtype, dtype), dtype, width).format(*operands)

  def accumulated(self, how: str, value: UOp, width: int, acc: str, env: dict[UOp, int]) -> str:
    """acc with a value added, or whatever a reduce does with it. A scalar sum of products says that it is fused where
    the language can: gcc vectorizes the products of a loop whose length it knows, and then rounds them."""
    d = value.dtype
    multiplies = value.op == "mul" and value in self.nested and d not in HALVES
    if multiplies and how == "add" and width == 1 and self.lang.row("fma", d, d, False).text:
      a, b = (self.ref(s, env) for s in value.src)
      return self.spelling.operation("fma", (d, d, d), d).format(a, b, acc)
    return self.spelled(how, d, width, acc, self.ref(value, env, width > 1))

  def width_of(self, u: UOp) -> int:
    return self.lang.width if vector(lanes(u)) is not None else 1

  def arith(self, u: UOp, env: dict[UOp, int]) -> str:
    """An operation; of 16 bits, which are computed in 32, rounded at once: where a value lives makes no difference."""
    rounds, w = u.dtype in HALVES and not self.is_stored(u), self.width_of(u)
    if u.op == "cast" and u.dtype in HALVES and not rounds and held(u.src[0].dtype) is dtypes.float32:
      return self.ref(u.src[0], env, w > 1)
    value = self.unrounded(u, env)
    return (
      self.spelling.operation("cast", (dtypes.float32,), u.dtype, w).format(value)
      if rounds and is_rounded(u)
      else value
    )

  def is_stored(self, u: UOp) -> bool:
    """Does nobody see it but memory of its type, which rounds what it is given?"""
    targets = [
      x.src[0] if x.op == "store" else x
      for x in self.users[u]
      if (x.op == "store" and x.arg is None) or (x.op == "stage" and not around(x.src[0]))
    ]
    return len(targets) == len(self.users[u]) and all(self.element(x) is u.dtype for x in targets)

  def unrounded(self, u: UOp, env: dict[UOp, int]) -> str:
    w = self.width_of(u)
    if u.op == "cast" and u.src[0].dtype is dtypes.index:  # iota
      t = self.spelling.type(u.dtype)
      if w == 1:
        return f"({t})({self.at(u.src[0], env)})"
      step, (lo, hi) = self.stride(u.src[0], lanes(u)[-1]), bounds(u.src[0])
      d = dtypes.int32 if u.dtype.kind == "f" and -1 << 31 <= lo <= hi < 1 << 31 else u.dtype
      if step is not None and d.kind in "iu":  # they wrap, so it is one sum whatever the type
        first = self.spelling.splat(f"({self.spelling.type(d)})({self.at(u.src[0], env)})", d)
        steps = self.elements(u.src[0], env, lambda e, n, lane: str(step * lane), d)
        numbers = self.spelled("add", d, w, first, steps)
        return numbers if d is u.dtype else self.spelling.operation("cast", (d,), u.dtype, w).format(numbers)
      return self.elements(u.src[0], env, lambda e, n, lane: f"({t})({self.at(e, n, lane)})", u.dtype)
    return self.spelling.spell(u, w).format(*(self.ref(s, env, w > 1) for s in u.src))


def own_ranges(stage: UOp) -> tuple[UOp, ...]:
  """The ranges for each of which a stage has memory of its own, beside loops."""
  return (local_ranges(stage) if is_shared(stage) else ()) + lanes(stage)


EXACT = frozenset(("max", "min", "where", "abs", "bitcast"))  # of 16 bits they have no more


def is_rounded(u: UOp) -> bool:
  """Is this, of a narrow type, computed in more bits than it has?"""
  if u.op == "cast":
    return u.src[0].dtype is dtypes.index
  turns = u.op == "mul" and any(s.op == "const" and s.arg in (-1, 1) for s in u.src)
  return u.op not in EXACT and not turns


def even_step(terms: Mapping[UOp, int], r: UOp) -> int | None:
  """By how much a sum of terms grows with r; None where that differs from place to place."""
  return None if any(t is not r and r in t.free for t in terms) else terms.get(r, 0)


def fitting_width(kernel: UOp, width: int) -> int:
  """How many elements the vectors of a kernel have, where a register holds `width`: half as many where they have 8
  bytes, and fewer where its recipe was written for fewer."""
  vec = [rsize(r) for r in all_ranges(kernel) if rkind(r) == "vec"]
  values = (u for u in toposort(kernel) if not is_inline(u) and u.op not in ("kernel", "store"))
  long = any(u.dtype.itemsize == 8 and any(rkind(r) == "vec" for r in u.free) for u in values)
  return gcd(max(1, width // 2) if long else width, *vec)


def fits_int(kernel: UOp) -> bool:
  """Do 31 bits hold every index of the kernel, and whatever is computed on the way to it? With room for a grid."""
  for u in toposort(kernel):
    if u.op in ("load", "store", "stage"):
      memory, index, _ = access(u) if u.op != "stage" else (u, stage_index(u), None)
      here = [flatten(index, memory_shape(memory))]
      if memory.op == "stage" and (own := own_ranges(memory)):  # each has memory of its own
        here = [mul(here[0], prod(map(rsize, own)))]
    elif u.op == "range":
      here = list(u.src)
    else:
      here = [u.src[0]] if u.op in ("cast", "lt") and u.src[0].dtype is dtypes.index else []
    if any(reach(e) >= 1 << 30 for e in here):
      return False
  return all(rsize(r) < 1 << 30 for r in all_ranges(kernel))
