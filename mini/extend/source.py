"""The source of a scalar function that `kernel` compiles: its syntax tree, where its lines are, what a kernel may say.

An error names the user's file and line, what stands there, and what a kernel would take instead. Also here: which of a
loop's variables are only added up, so that its steps may be taken side by side.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from mini.types import MiniError


class KernelError(MiniError):
  """What a scalar function says that no kernel can do, with its line."""


# What stands in the place of some syntax that a kernel does not take.
INSTEAD = {
  ast.While: "the number of steps has to be known: `for k in range(n)`, and `break` where it may end sooner",
  ast.Lambda: "name the function, and decorate it or not: kernels may call others",
  ast.ListComp: "a loop that adds up does what a kernel can",
  ast.GeneratorExp: "a loop that adds up does what a kernel can",
  ast.Try: "a kernel raises nothing",
  ast.Raise: "a kernel raises nothing",
  ast.Assert: "a kernel raises nothing",
  ast.With: "a kernel opens nothing",
  ast.Global: "a kernel changes nothing but its own variables",
  ast.Nonlocal: "a kernel changes nothing but its own variables",
  ast.Slice: "one element at a time: a[i, j]",
  ast.Starred: "write the arguments out",
  ast.FunctionDef: "functions that a kernel calls stand outside of it",
  ast.JoinedStr: "a kernel knows numbers",
  ast.MatMult: "a loop that adds up products",
  ast.Is: "==",
  ast.IsNot: "!=",
  ast.Delete: "a variable may stay",
  ast.NamedExpr: "assign in a line of its own",
  ast.Yield: "a kernel returns its value",
}
ALLOWED = (
  ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.If, ast.Expr, ast.Pass,
  ast.Break, ast.Continue, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.Constant,
  ast.Attribute, ast.Subscript, ast.Name, ast.Tuple, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.Lt,
  ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


class Source:
  """A function's syntax tree, checked, and what its free names stand for."""

  def __init__(self, f: Callable[..., Any]):
    self.f, self.name = f, f.__name__
    try:
      lines, first = inspect.getsourcelines(f)
    except (OSError, TypeError):
      raise KernelError(f"kernel: the source of {f!r} cannot be read: it has to stand in a file") from None
    self.file, self.lines = inspect.getsourcefile(f) or "?", lines
    self.first = first
    text = textwrap.dedent("".join(lines))
    try:
      found = ast.parse(text).body[0]
    except SyntaxError:  # a lambda in the middle of something
      found = ast.Pass(lineno=1)
    if not isinstance(found, ast.FunctionDef):
      self.fail(found, f"kernel: {f.__name__} is no function with a `def` of its own")
    self.tree: ast.FunctionDef = found
    self.params = [a.arg for a in found.args.args]
    self.check()
    self.arrays = set(self.params) & set(arrays_in(found))

  def check(self) -> None:
    """KernelError for what no kernel can do, wherever it stands."""
    a = self.tree.args
    if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs:
      self.fail(self.tree, "*args, **kwargs and the like: a kernel has plain parameters")
    for node in (n for statement in self.tree.body for n in ast.walk(statement)):
      if type(node) in INSTEAD or not isinstance(node, ALLOWED):
        self.unsupported(node)
      if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        self.fail(node, f"{ast.unparse(node)} = ...: a kernel writes to no array: it returns one element")
      if isinstance(node, ast.For) and node.orelse:
        self.fail(node, "for ... else: a kernel's loops have no else")
      if isinstance(node, ast.Call) and node.keywords:
        self.fail(node, f"{ast.unparse(node)}: calls in a kernel have no keywords")

  def unsupported(self, node: ast.AST) -> NoReturn:
    name = type(node).__name__
    spelled = ast.unparse(node).split("\n")[0].rstrip(":") if isinstance(node, (ast.expr, ast.stmt)) else ""
    instead = INSTEAD.get(type(node), "")
    where = node if hasattr(node, "lineno") else self.around(node)
    self.fail(where, f"{spelled or name}: {name} is not for kernels" + (f"\n  {instead}" if instead else ""))

  def around(self, node: ast.AST) -> ast.AST:
    """What has a line, of an operator that has none."""
    return next(n for n in ast.walk(self.tree) if isinstance(n, ast.expr) and node in ast.iter_child_nodes(n))

  def fail(self, node: ast.AST, why: str, error: type[Exception] = KernelError) -> NoReturn:
    """Raise an error that shows the line of a node."""
    n = getattr(node, "lineno", 1)
    line = self.lines[n - 1].strip() if n <= len(self.lines) else ""
    raise error(f"{why}\n  {self.file}:{self.first + n - 1}: {line}")

  def free(self, name: str) -> Any:
    """What a name from outside stands for; raises KeyError."""
    closure = inspect.getclosurevars(self.f).nonlocals
    for names in (closure, self.f.__globals__, vars(builtins)):
      if name in names:
        return names[name]
    raise KeyError(name)


def arrays_in(tree: ast.AST) -> Iterable[str]:
  """Names that something is read from: a[i], a.shape, len(a)."""
  for node in ast.walk(tree):
    if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Name):
      yield node.value.id
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
      yield from (a.id for a in node.args if isinstance(a, ast.Name))


def stored(statements: Iterable[ast.stmt]) -> set[str]:
  """The variables that statements assign to."""
  return {
    n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
  }


def loaded(statements: Iterable[ast.AST]) -> set[str]:
  """The variables that statements read."""
  return {
    n.target.id if isinstance(n, ast.AugAssign) else n.id  # type: ignore[union-attr]
    for s in statements
    for n in ast.walk(s)
    if (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    or (isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name))
  }


# ---------------------------------------------------------------- loops whose steps may be taken side by side

ADDS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}


def accumulates(s: ast.stmt) -> tuple[str, str, ast.expr] | None:
  """(variable, how, what) of `s += e`, `s = s + e`, `s = max(s, e)` and the like, where e does not speak of s."""
  if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
    name, how, e = s.target.id, ADDS.get(type(s.op)), s.value
  elif isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
    name, how, e = s.targets[0].id, None, s.value
    if isinstance(e, ast.BinOp) and is_name(e.left, name):
      how, e = ADDS.get(type(e.op)), e.right
    elif isinstance(e, ast.BinOp) and is_name(e.right, name) and isinstance(e.op, (ast.Add, ast.Mult)):
      how, e = ADDS[type(e.op)], e.left
    elif (
      isinstance(e, ast.Call)
      and isinstance(e.func, ast.Name)
      and e.func.id in ("max", "min")
      and len(e.args) == 2
    ):
      own = [is_name(a, name) for a in e.args]
      if any(own):
        how, e = e.func.id, e.args[own.index(False)] if False in own else e
  else:
    return None
  return (name, how, e) if how and name not in loaded([e]) else None


def is_name(e: ast.expr, name: str) -> bool:
  return isinstance(e, ast.Name) and e.id == name


def sums_of(loop: ast.For) -> dict[str, str] | None:
  """{variable: add | mul | max | min} of a loop that changes no other variable from step to step; else None."""
  sums: dict[str, str] = {}
  mine: set[int] = set()  # statements that accumulate
  candidates = [(s, a) for s in ast.walk(loop) if isinstance(s, ast.stmt) and (a := accumulates(s))]
  assigned = stored(loop.body)
  for s, (name, how, _) in candidates:
    kind = "add" if how == "sub" else how
    others = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name]
    own = [
      n
      for c, a in candidates
      if a[0] == name
      for n in ast.walk(c)
      if isinstance(n, ast.Name) and n.id == name
    ]
    if len(others) == len(own) and sums.setdefault(name, kind) == kind:
      mine.add(id(s))
    elif name in sums:
      return None
  fresh = _fresh(
    loop.body, {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}, assigned, set(sums), mine
  )
  leaves = any(isinstance(n, (ast.Break, ast.Return)) for n in ast.walk(loop))
  return None if fresh is None or leaves else sums


def _fresh(
  body: list[ast.stmt], known: set[str], assigned: set[str], sums: set[str], mine: set[int]
) -> set[str] | None:
  """The variables that a step has certainly assigned after these statements; None if it may read one of `assigned`
  that a step before has left."""
  known = set(known)
  for s in body:
    if id(s) in mine:
      reads = loaded([accumulates(s)[2]])  # type: ignore[index]
    elif isinstance(s, (ast.If, ast.For)):
      reads = loaded([s.test if isinstance(s, ast.If) else s.iter])
    else:
      reads = loaded([s])
    if (reads & assigned) - known - sums:
      return None
    if isinstance(s, ast.If):
      both = [_fresh(part, known, assigned, sums, mine) for part in (s.body, s.orelse)]
      if both[0] is None or both[1] is None:
        return None
      known |= both[0] & both[1]
    elif isinstance(s, ast.For):
      inner = _fresh(s.body, known | stored_in(s.target), assigned, sums, mine)
      if inner is None:
        return None
    elif id(s) not in mine:
      known |= stored([s])
  return known


def stored_in(target: ast.expr) -> set[str]:
  return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
