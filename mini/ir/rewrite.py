"""Named rewrite rules: both sides are text, compiled to closures and applied bottom-up until nothing changes.

  rule("add_zero", "x + 0", "x", when=is_int, why="...")

A name on the left matches any value, the same one wherever it stands; c, c0, c1 match constants; t, t0, t1
match the type of a cast; a number matches the constant with that value and sign. Operators are those of the
table: x + y, x * y, x / y (div), x % y (mod), x < y (lt), x != y (ne), and the others as functions: max(x,
y), where(p, x, y), cast(x, t). Matched are element-wise values, of graphs and kernels alike; index
expressions have a normal form of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from mini.config import config
from mini.ir import graph as build
from mini.ir.graph import expand_to, shape
from mini.ir.kernel import is_inline
from mini.ir.ops import OPS, is_elementwise, result_dtype
from mini.ir.uop import UOp, both, const, is_condition, rebuild, uop
from mini.types import DType, MiniError, dtypes

STEP_LIMIT = 200  # rewrites of one node; more is a cycle


def trace(name: str, u: UOp) -> None:
  """TRACE=1: a line in the log. Where the process has set up no log, a comment to stderr.

  What a node becomes is remembered, so a rule is logged where it first applies.
  """
  import logging  # 1.5 ms that only this needs

  log = logging.getLogger("mini")
  if not log.hasHandlers():
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("# %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
  log.info("rule %s: %s", name, u.op)


class RewriteError(MiniError):
  """A rule that cannot be read, or rules that do not come to an end."""


class Match(dict):
  """What the names of a pattern stand for. `dtype`: the type of the values at the pattern's root."""

  root: UOp

  @property
  def dtype(self) -> DType:
    return self.root.src[-1].dtype


# ---------------------------------------------------------------- patterns

WORD = re.compile(r"\s*(?:([A-Za-z_]\w*)|(-?\d+\.?\d*(?:e-?\d+)?|-?inf)|(!=|[-+*/%<(),]))")
INFIX = {"<": ("lt", 1), "!=": ("ne", 1), "+": ("add", 2), "*": ("mul", 3), "/": ("div", 3), "%": ("mod", 3)}


@dataclass(frozen=True)
class Pattern:
  """op: an operation; or "value", "const" or "type" with a name; or "number"."""

  op: str
  src: tuple[Pattern, ...] = ()
  name: str = ""
  number: float | int = 0

  def names(self) -> set[str]:
    return ({self.name} if self.name else set()).union(*(s.names() for s in self.src))


def pattern(text: str) -> Pattern:
  """The pattern that a side of a rule spells."""
  words = [m.group(0).strip() for m in WORD.finditer(text)]
  if "".join(words) != re.sub(r"\s", "", text):
    raise RewriteError(f"cannot read {text!r}")
  words.append("")

  def primary() -> Pattern:
    w = words.pop(0) if len(words) > 1 else ""
    if w == "(":
      inner = infix(0)
      expect(")")
      return inner
    if re.fullmatch(r"-?\d.*|-?inf", w):
      return Pattern("number", number=float(w) if re.search(r"[.en]", w) else int(w))
    if words[0] == "(" and w in OPS:
      words.pop(0)
      src = [infix(0)]
      while words[0] == ",":
        words.pop(0)
        src.append(infix(0))
      expect(")")
      return Pattern(w, tuple(src))
    if not re.fullmatch(r"[a-z]\d?", w):
      raise RewriteError(f"{text!r}: {w or 'its end'} is no operation and no name of one letter")
    return Pattern({"c": "const", "t": "type"}.get(w[0], "value"), name=w)

  def expect(w: str) -> None:
    if words[0] != w or words.pop(0) != w:
      raise RewriteError(f"{text!r}: expected {w}")

  def infix(above: int) -> Pattern:
    left = primary()
    while words[0] in INFIX and INFIX[words[0]][1] > above:
      op, level = INFIX[words.pop(0)]
      left = Pattern(op, (left, infix(level)))
    return left

  got = infix(0)
  expect("")
  return got


Matcher = Callable[[UOp, Match], bool]


def matcher(p: Pattern) -> Matcher:
  """A closure that tells whether a node fits p, and notes what the names stand for."""
  if p.op == "number":
    spelled = {repr(p.number), repr(float(p.number)), repr(bool(p.number)) if p.number in (0, 1) else ""}
    return lambda u, m: u.op == "const" and u.dtype is not dtypes.index and repr(u.arg) in spelled
  if p.op in ("value", "const"):
    name, only_const = p.name, p.op == "const"

    def bind(u: UOp, m: Match) -> bool:
      return (not only_const or u.op == "const") and m.setdefault(name, u) is u

    return bind
  op, sources = p.op, tuple((n, matcher(s)) for n, s in enumerate(p.src) if s.op != "type")
  named = next((s.name for s in p.src if s.op == "type"), "")
  # what fails soonest first
  sources = tuple(sorted(sources, key=lambda ns: p.src[ns[0]].op not in ("const", "number")))

  def fits(u: UOp, m: Match) -> bool:
    if u.op != op or u.dtype is dtypes.index:
      return False
    if named and m.setdefault(named, u.dtype) is not u.dtype:
      return False
    src = u.src
    for n, source in sources:
      if not source(src[n], m):
        return False
    return True

  return fits


def construct(p: Pattern, m: Any, dtype: DType | None = None) -> UOp:
  """The value that a pattern spells. `dtype` is that of its numbers, where no input beside them tells."""
  if p.op in ("value", "const"):
    return m[p.name]
  if p.op == "number":
    assert dtype is not None
    return const(p.number, dtype)
  if p.op in ("cast", "bitcast"):
    return uop(p.op, m[p.src[1].name], (construct(p.src[0], m),))
  values = p.src[1:] if p.op == "where" else p.src
  known = [construct(s, m, dtype) for s in values if s.op != "number"]
  own = known[-1].dtype if known else dtype
  src = tuple(
    construct(s, m, dtypes.bool if p.op == "where" and n == 0 else own) for n, s in enumerate(p.src)
  )
  if p.op == "and" and all(map(is_condition, src)):
    return both(*src)
  return uop(p.op, result_dtype(p.op, tuple(s.dtype for s in src)), src)


# ---------------------------------------------------------------- rules


@dataclass(frozen=True)
class Rule:
  """A named rewrite. Inexact ones say `fast`; they apply only where they are asked for."""

  name: str
  left: str
  right: str
  when: Callable[[Match], bool] | None = None
  why: str = ""
  fast: bool = False
  patterns: tuple[Pattern, Pattern] = field(init=False)
  fits: Matcher = field(init=False)

  def __post_init__(self) -> None:
    left, right = pattern(self.left), pattern(self.right)
    if unbound := right.names() - left.names():
      raise RewriteError(f"rule {self.name}: nothing on the left is called {min(unbound)}")
    if left.op not in OPS:
      raise RewriteError(f"rule {self.name}: its left side is no operation")
    object.__setattr__(self, "patterns", (left, right))
    object.__setattr__(self, "fits", matcher(left))

  def __call__(self, u: UOp) -> UOp | None:
    m = Match()
    if not self.fits(u, m):
      return None
    m.root = u
    if self.when is not None and not self.when(m):
      return None
    return construct(self.patterns[1], m, u.dtype)


@dataclass(frozen=True)
class Procedure:
  """A rewrite that no pattern can tell: a plain function, and what it does in words."""

  name: str
  left: str
  right: str
  rewrite: Callable[[UOp], UOp | None]
  why: str = ""

  def __call__(self, u: UOp) -> UOp | None:
    return self.rewrite(u)


rule = Rule
Step = Any  # Rule | Procedure

# A view over a rewritten source goes through its constructor, which joins it with the next view.
REBUILD: dict[str, Callable[[UOp, Any], UOp]] = {
  "reshape": build.reshape,
  "expand": build.expand,
  "permute": build.permute,
  "pad": build.pad,
  "shrink": build.shrink,
  "flip": build.flip,
}


class Rules:
  """A set of rules, by the operation at their root. What a node becomes is remembered in the node."""

  replacements: tuple[Any, ...] = ()  # rules on whole operations, which apply before (replace.py)

  def __init__(self, rules: Iterable[Step]):
    self.rules = tuple(rules)
    self.by_op: dict[str, list[Step]] = {}
    everywhere = [r for r in self.rules if isinstance(r, Procedure)]
    for r in self.rules:
      if isinstance(r, Rule):
        self.by_op.setdefault(r.patterns[0].op, list(everywhere)).append(r)
    self.otherwise = everywhere

  def __call__(self, roots: list[UOp]) -> list[UOp]:
    """The roots, rewritten until no rule applies. Shapes, types, buffers and marks stay."""
    shaped = not any(r.op in ("kernel", "uops") for r in roots)
    if shaped:
      for r in roots:
        for out in r.src if r.op == "graph" else (r,):
          shape(out)  # of all nodes beneath, once: what replaces a node takes over its shape
    return [self.known(r, shaped, []) for r in roots]

  def known(self, root: UOp, shaped: bool, trail: list[str]) -> UOp:
    """What root becomes; its sources first, on a stack of our own, since graphs are deep."""
    stack = [root]
    while stack:
      u = stack[-1]
      if self in u.memo:
        stack.pop()
        continue
      waiting = [s for s in u.src if self not in s.memo]
      if waiting:
        stack.extend(reversed(waiting))
        continue
      stack.pop()
      v = self.fixed(u, shaped, trail)
      u.memo[self] = None if v is u else v  # None: itself, without a cycle of references
      v.memo[self] = None
    return self.result(root)

  def result(self, u: UOp) -> UOp:
    v = u.memo[self]
    return u if v is None else v

  def fixed(self, u: UOp, shaped: bool, trail: list[str]) -> UOp:
    """u after all its rewrites; `trail` names those that led here."""
    v = self.over(u, tuple(map(self.result, u.src)))
    if "shape" in u.memo:
      v.memo["shape"] = u.memo["shape"]
    if self in v.memo:
      return self.result(v)
    found = self.step(v)
    if found is None:
      return v
    name, new = found
    if config.TRACE:
      trace(name, v)
    if len(trail) >= STEP_LIMIT:
      raise RewriteError(
        f"these rules do not come to an end: {', '.join(dict.fromkeys(trail[-STEP_LIMIT // 2 :]))}"
      )
    if shaped and shape(new) != shape(v):
      new = expand_to(new, shape(v))
    return self.known(new, shaped, [*trail, name])

  def over(self, u: UOp, src: tuple[UOp, ...]) -> UOp:
    """u over rewritten sources."""
    if src == u.src:
      return u
    return REBUILD[u.op](src[0], u.arg) if u.op in REBUILD else rebuild(u, src)

  def step(self, u: UOp) -> tuple[str, UOp] | None:
    if not is_elementwise(u.op) or (is_inline(u) and u.op != "cast"):
      return None
    for r in self.by_op.get(u.op, self.otherwise):
      new = r(u)
      if new is not None and new is not u:
        return r.name, new
    return None
