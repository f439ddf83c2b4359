"""A scalar function, run once for all elements: each of its values becomes a tensor along the axes of what is computed.

A condition that differs from element to element is a mask: both branches are computed, and `where` takes of each
variable what its branch made. A loop whose variables are only added up (source.py) gets an axis of its own, which is
then reduced; of any other the steps are written out. What an expression is worth stands in expression.py.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mini.extend.expression import STEPS, Env, Expressions, Unrolled, Unset
from mini.extend.indices import Path, Test, gated
from mini.extend.source import accumulates, loaded, stored, sums_of
from mini.ir.ops import identity
from mini.ir.uop import UOp, add, bounds, mul, rsize
from mini.tensor import Tensor
from mini.types import DType, dtypes

SIDE_BY_SIDE = 4  # steps, above which those of a loop that only adds up are an axis


class Sum:
  """What a loop adds up, multiplies, or takes the largest or smallest of."""

  def __init__(self, how: str):
    self.how = how
    self.parts: list[tuple[Tensor | None, Any]] = []  # (mask, value)


class Loop(NamedTuple):
  """The loop that is written out just now: who has left it, and who goes on with its next step."""

  broken: list[tuple[Path, Env]]
  continued: list[tuple[Path, Env]]


class Scalars(Expressions):
  """Its statements."""

  def __init__(self, *args: Any):
    super().__init__(*args)
    self.returned: list[tuple[Path, Any]] = []
    self.loops: list[Loop] = []

  def call(self, env: Env) -> Any:
    """What the function returns for these arguments."""
    self.env = env
    self.block(self.source.tree.body)
    if self.path is not None:
      self.source.fail(
        self.source.tree, f"{self.source.name}: there is a way to its end that returns nothing"
      )
    *others, (_, result) = self.returned
    for path, value in reversed(others):
      assert path.mask is not None
      result = self.chosen(path.mask, value, result)
    return result

  def join(self, ways: Sequence[tuple[Path | None, Env]], whole: Path) -> tuple[Path | None, Env]:
    """Several ways become one. whole: theirs, if they are those that parted from one."""
    alive = [(p, env) for p, env in ways if p is not None]
    if not alive:
      return None, {}
    path, env = alive[0]
    for other, more in alive[1:]:
      assert other.mask is not None
      names = {n: None for n in (*env, *more)}
      unset = Unset("it has a value for some elements only")
      env = {n: self.chosen(other.mask, more.get(n, unset), env.get(n, unset)) for n in names}
      path = Path(None if path.mask is None else path.mask | other.mask, ())
    return (whole if len(alive) == len(ways) else path), env

  # ---------------------------------------------------------------- statements

  def block(self, statements: Sequence[ast.stmt]) -> None:
    for s in statements:
      if self.path is None:
        return
      self.at = s
      self.spent[0] += 1
      if self.spent[0] > STEPS:
        self.fail(f"{self.source.name}: more than {STEPS} statements when its loops are written out")
      getattr(self, f"do_{type(s).__name__}")(s)

  def do_Pass(self, s: ast.Pass) -> None: ...

  def do_Expr(self, s: ast.Expr) -> None:
    if not isinstance(s.value, ast.Constant):
      self.fail(f"{ast.unparse(s)}: a value that nothing is done with")

  def do_Return(self, s: ast.Return) -> None:
    if s.value is None:
      self.fail("return: a kernel returns a value")
    assert self.path is not None
    self.returned.append((self.path, self.value(s.value)))
    self.path = None

  def do_Break(self, s: ast.Break) -> None:
    self.leave(self.loops[-1].broken)

  def do_Continue(self, s: ast.Continue) -> None:
    self.leave(self.loops[-1].continued)

  def leave(self, ways: list[tuple[Path, Env]]) -> None:
    assert self.path is not None
    ways.append((self.path, dict(self.env)))
    self.path = None

  def do_Assign(self, s: ast.Assign) -> None:
    if self.added(s):
      return
    value = self.value(s.value)
    for target in s.targets:
      self.bind(target, value)

  def do_AnnAssign(self, s: ast.AnnAssign) -> None:
    if s.value is not None:
      self.bind(s.target, self.value(s.value))

  def do_AugAssign(self, s: ast.AugAssign) -> None:
    if not self.added(s):
      name = ast.copy_location(ast.Name(s.target.id, ast.Load()), s)  # type: ignore[union-attr]
      self.bind(s.target, self.binary(s.op, self.value(name), self.value(s.value)))

  def added(self, s: ast.stmt) -> bool:
    """Does a loop add this up? Then it is noted."""
    found = accumulates(s)
    if found is None or not isinstance(self.env.get(found[0]), Sum):
      return False
    name, how, e = found
    value = self.value(e)
    value = self.binary(ast.Sub(), 0, value) if how == "sub" else value
    assert self.path is not None
    self.env[name].parts.append((self.path.mask, value))
    return True

  def bind(self, target: ast.expr, value: Any) -> None:
    if isinstance(target, ast.Tuple):
      if not isinstance(value, tuple) or len(value) != len(target.elts):
        self.fail(f"{ast.unparse(target)}: {len(target.elts)} variables for {type(value).__name__}")
      for t, v in zip(target.elts, value):
        self.bind(t, v)
    else:
      self.env[target.id] = value  # type: ignore[attr-defined]

  def do_If(self, s: ast.If) -> None:
    test = self.test(self.value(s.test))
    if isinstance(test, bool):
      return self.block(s.body if test else s.orelse)
    self.fork(test, s.body, s.orelse)

  def fork(self, test: Test, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
    whole, env = self.path, self.env
    assert whole is not None
    negated = Test(test.value.logical_not(), test.otherwise, test.facts)
    ways: list[tuple[Path | None, Env]] = []
    parted = False  # did some elements of a branch go elsewhere?
    for t, statements in ((test, body), (negated, orelse)):
      self.path, self.env = mine = whole.where(t), self.within(env, whole.where(t).mask, statements)
      self.block(statements)
      parted = parted or self.path is not mine[0]
      kept = loaded(statements) - stored(statements)
      self.env.update({n: env[n] for n in kept if n in env})
      ways.append((self.path, self.env))
    self.path, self.env = self.join(ways, whole)
    if parted and self.path is whole:
      paths = [p for p, _ in ways if p is not None]
      self.path = Path(paths[0].mask | paths[1].mask)  # type: ignore[operator]

  # ---------------------------------------------------------------- loops

  def do_For(self, s: ast.For) -> None:
    bounds_of = s.iter
    if not (
      isinstance(bounds_of, ast.Call)
      and isinstance(bounds_of.func, ast.Name)
      and bounds_of.func.id == "range"
    ):
      self.fail(f"for ... in {ast.unparse(s.iter)}: a kernel's loops are `for k in range(...)`")
    if not isinstance(s.target, ast.Name):
      self.fail("a loop has one variable")
    given = [self.whole(self.value(a), a) for a in bounds_of.args]
    first, end, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
    if isinstance(step, UOp) or step == 0:
      self.fail("range(...): its step is a number other than 0")
    low, high = self.extent(first, end, step)
    steps = range(low, high, step)
    if not steps:
      return
    exact = isinstance(first, int) and isinstance(end, int)
    if not exact and step != 1:
      self.fail("range(...): with a step, its bounds are numbers")
    limits = None if exact else (first, end)
    sums = sums_of(s) if len(steps) > SIDE_BY_SIDE and s not in self.forced else None
    if sums is None:
      self.written_out(s, steps, limits)
    else:
      self.side_by_side(s, steps, limits, sums)

  def extent(self, first: Any, end: Any, step: int) -> tuple[int, int]:
    """What all values of a range lie between."""
    lo, hi = (bounds(e) if isinstance(e, UOp) else (e, e) for e in (first, end))
    return lo[0], hi[1]

  def whole(self, x: Any, e: ast.expr) -> Any:
    if isinstance(x, UOp) or type(x) is int:
      return x
    self.fail(
      f"range({ast.unparse(e)}): how many steps a loop has must be known when the kernel is called, "
      "from numbers, shapes and indices\n  a number that is a tensor may end it: if k >= n: break"
    )

  def in_range(self, k: Any, limits: tuple[Any, Any] | None) -> Test | bool:
    """Is this step one of those that an element takes?"""
    if limits is None:
      return True
    least = self.compared(ast.GtE(), k, limits[0])
    most = self.compared(ast.Lt(), k, limits[1])
    return self.both(least, most)

  def written_out(self, s: ast.For, steps: range, limits: tuple[Any, Any] | None) -> None:
    whole = self.path
    assert whole is not None
    loop = Loop([], [])
    self.loops.append(loop)
    for k in steps:
      if self.path is None:
        break
      self.env[s.target.id] = k  # type: ignore[attr-defined]
      taken = self.in_range(k, limits)
      if isinstance(taken, Test):
        self.fork(taken, s.body, [])
      elif taken:
        self.block(s.body)
      if loop.continued:
        self.path, self.env = self.join([(self.path, self.env), *loop.continued], whole)
        loop.continued.clear()
        if self.path is whole and loop.broken:
          self.path = self.but(whole, loop.broken)
    self.loops.pop()
    if loop.broken:
      self.path, self.env = self.join([(self.path, self.env), *loop.broken], whole)
      if self.returned:
        self.path = self.but(whole, self.returned)

  def but(self, path: Path, left: Sequence[tuple[Path, Any]]) -> Path:
    """A path without those that have left it."""
    mask = path.mask
    for p, _ in left:
      if p.mask is not None:
        stays = p.mask.logical_not()
        mask = stays if mask is None else mask & stays
    return Path(mask, path.facts)

  def side_by_side(
    self, s: ast.For, steps: range, limits: tuple[Any, Any] | None, sums: Mapping[str, str]
  ) -> None:
    """The steps along an axis of their own, in front of all others."""
    path, outer = self.path, dict(self.env)
    for name in sums:
      if name not in outer:
        self.fail(f"{name} has no value before this loop")
      self.env[name] = Sum(sums[name])
    r = self.axes.push(len(steps))
    name = s.target.id  # type: ignore[attr-defined]
    self.env[name] = k = add(mul(r, steps.step), steps.start)
    loop = Loop([], [])
    self.loops.append(loop)
    taken = self.in_range(k, limits)
    if isinstance(taken, Test):
      self.fork(taken, s.body, [])
    else:
      self.block(s.body)
    self.loops.pop()
    found = {
      n: self.total(self.env[n] if self.path else self.sum_in(n, loop), len(self.axes.ranges)) for n in sums
    }
    self.axes.pop()
    self.path, self.env = path, outer
    for n, total in found.items():
      how = sums[n]
      if total is None:
        continue
      if isinstance(outer[n], Sum):
        assert path is not None
        outer[n].parts.append((path.mask, total))
      else:
        self.env[n] = self.combined(how, outer[n], total)
    for n in stored(s.body) - set(sums):
      self.env[n] = Unrolled(s)
    self.env[name] = steps[-1] if limits is None else Unrolled(s)

  def sum_in(self, name: str, loop: Loop) -> Sum:
    return loop.continued[-1][1][name]

  def combined(self, how: str, a: Any, b: Any) -> Any:
    if how in ("max", "min"):
      return self.extreme(how, [a, b])
    return self.binary(ast.Add() if how == "add" else ast.Mult(), a, b)

  def total(self, s: Sum, rank: int) -> Tensor | None:
    """What came together along the first of `rank` axes."""
    found: Any = None
    n = rsize(self.axes.ranges[-1])
    for mask, value in s.parts:
      t = self.tensor(value)
      t = t.cast(dtypes.default_int) if t.dtype is dtypes.bool else t
      if mask is not None:
        t = mask.where(gated(t, mask), self.neutral(s.how, t.dtype))
      t = t.reshape((1,) * (rank - t.ndim) + t.shape)
      t = t.expand((n, *t.shape[1:]))
      one = getattr(t, {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[s.how])(0)
      found = one if found is None else self.combined(s.how, found, one)
    return found

  def neutral(self, how: str, kind: DType) -> Any:
    if how != "min":
      return identity(how, kind)
    return math.inf if kind.kind == "f" else -identity("max", kind) - 1
