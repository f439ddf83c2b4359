"""Mutation testing: one-line faults in the compiler, and which of them no test notices.

    python test/mutate.py --map                     which test runs which line: once, needs pytest-cov (twice as long as the suite)
    python test/mutate.py 500 --seed 7 --jobs 2     draws faults, runs the tests that cover each, prints the survivors
    python test/mutate.py --show mini/ir/guards.py:46:2  the fault of that name, as a diff

A fault is one changed operator, number, condition or statement, drawn evenly over the lines of the rooms below. It dies
by a test that fails, or takes several times as long as it did. Tests that cover its line run quickest first, in two
passes: as many as take 20 s, then, of what is left, as many as `--seconds` has room for. Tests that are newer than the map
are not among them. Of a survivor its reader has to judge whether the program that it makes is another one at all.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parent.parent
ROOMS = ("mini/ir", "mini/schedule", "mini/codegen", "mini/render", "mini/engine", "runtime")
MAP = Path(tempfile.gettempdir()) / "mini-mutation"
SWAPPED = {
  ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
  ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
  ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Mult,
  ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def faults(tree: ast.Module) -> Iterator[tuple[int, int, ast.AST, ast.AST]]:
  """(line, which of that line, a node, what stands in its place); in functions and in constants, and not in annotations
  or in the words of errors."""
  seen: dict[int, int] = {}
  hidden: set[ast.AST] = set()
  for node in ast.walk(tree):
    if isinstance(node, ast.arg | ast.AnnAssign | ast.FunctionDef) and (
      note := getattr(node, "annotation", None) or getattr(node, "returns", None)
    ):
      hidden.update(ast.walk(note))
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):  # the words of a message
      hidden.update(ast.walk(node))
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
      hidden.update(ast.walk(node))
  for home in ast.walk(tree):
    if not isinstance(home, ast.FunctionDef | ast.ClassDef | ast.Module):
      continue
    for statement in home.body:
      if not isinstance(home, ast.FunctionDef) and not isinstance(statement, ast.Assign | ast.AnnAssign):
        continue
      for node in ast.walk(statement):
        if node in hidden or not hasattr(node, "lineno"):
          continue
        for other in others(node):
          hidden.add(node)  # a function within a function is met twice
          n = seen[node.lineno] = seen.get(node.lineno, -1) + 1
          yield node.lineno, n, node, other


def others(node: ast.AST) -> Iterator[ast.AST]:
  """What a node could have been by mistake."""

  def swap(op: ast.AST) -> ast.AST:
    return SWAPPED[type(op)]()

  if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
    yield ast.Compare(node.left, [swap(node.ops[0]), *node.ops[1:]], node.comparators)
  elif isinstance(node, ast.BoolOp):
    yield ast.BoolOp(swap(node.op), node.values)
    yield ast.BoolOp(node.op, node.values[:-1]) if len(node.values) > 2 else node.values[0]
  elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
    yield ast.BinOp(node.left, swap(node.op), node.right)
  elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
    yield node.operand
  elif isinstance(node, ast.Constant) and type(node.value) is int:
    yield ast.Constant(node.value + 1)
  elif isinstance(node, ast.Constant) and type(node.value) is bool:
    yield ast.Constant(not node.value)
  elif isinstance(node, ast.If | ast.IfExp | ast.While):
    yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
  elif isinstance(node, ast.comprehension) and node.ifs:
    yield ast.comprehension(node.target, node.iter, node.ifs[1:], node.is_async)
  elif (
    isinstance(node, (ast.AugAssign, ast.Continue, ast.Break))
    or isinstance(getattr(node, "value", 0), ast.Call)
    and isinstance(node, ast.Expr)
  ):
    yield ast.Pass()
  elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
    yield ast.Return(ast.Constant(None))
  elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("min", "max", "any", "all", "sorted"):
    word = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}[node.func.id]
    kept = [k for k in node.keywords if word != "list"]
    yield ast.Call(ast.Name(word, ast.Load()), node.args, kept)


def mutated(source: str, line: int, which: int) -> str:
  """The source with that fault: only the fault's text differs."""
  tree = ast.parse(source)
  _, _, node, other = next(f for f in faults(tree) if f[:2] == (line, which))
  lines = source.splitlines(keepends=True)
  if isinstance(node, ast.If | ast.While):  # its test is all that changes
    node, other = node.test, other.test
  first, last = node.lineno - 1, node.end_lineno - 1
  head = lines[first].encode()[: node.col_offset].decode()
  tail = lines[last].encode()[node.end_col_offset :].decode()
  text = ast.unparse(ast.fix_missing_locations(other))
  text = f"({text})" if isinstance(other, ast.expr) and not isinstance(other, ast.Constant) else text
  return "".join([*lines[:first], head + text + tail, *lines[last + 1 :]])


def all_faults() -> list[str]:
  found = []
  for room in ROOMS:
    for path in sorted((ROOT / room).rglob("*.py")):
      source = path.read_text()
      found += [f"{path.relative_to(ROOT)}:{line}:{n}" for line, n, *_ in faults(ast.parse(source))]
  return found


def drawn(count: int, seed: int) -> list[str]:
  """Lines evenly, then one of each line's faults; only what still parses and is another text."""
  r = random.Random(seed)
  of_line: dict[str, list[str]] = {}
  for name in all_faults():
    of_line.setdefault(name.rpartition(":")[0], []).append(name)
  lines = [*of_line]
  r.shuffle(lines)
  return [r.choice(of_line[line]) for line in lines[:count]]


def changed(name: str) -> tuple[str, str, str]:
  path, line, which = name.split(":")
  source = (ROOT / path).read_text()
  return path, source, mutated(source, int(line), int(which))


def difference(name: str) -> str:
  path, old, new = changed(name)
  return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, n=1, lineterm=""))


# ---------------------------------------------------------------- which test covers what


def collect(jobs: int) -> None:
  """Runs the suite with coverage, and keeps the contexts of each line and the seconds of each test."""
  MAP.mkdir(exist_ok=True)
  settings = MAP / "coveragerc"
  settings.write_text("[run]\nsource =\n  mini\n  runtime\n")
  command = [
    "-m",
    "pytest",
    "--full",
    "-q",
    "-n",
    str(jobs),
    "--dist",
    "loadfile",
    "--cov",
    f"--cov-config={settings}",
    "--cov-context=test",
  ]
  report = MAP / "report.xml"
  environment = {**os.environ, "COVERAGE_FILE": str(MAP / "coverage")}
  subprocess.run(
    [sys.executable, *command, "--cov-report=", f"--junitxml={report}"],
    cwd=ROOT,
    env=environment,
    check=False,
  )
  seconds = {}
  for case in ET.parse(report).iter("testcase"):
    module, _, rest = case.get("classname", "").partition(".Test")
    path = module.replace(".", "/") + ".py"
    inner = f"Test{rest}::" if rest else ""
    seconds[f"{path}::{inner}{case.get('name')}"] = float(case.get("time", 0))
  (MAP / "seconds.json").write_text(json.dumps(seconds))


class Covering:
  """Tests by the function that they run."""

  def __init__(self) -> None:
    import coverage

    self.data = coverage.CoverageData(str(MAP / "coverage"))
    self.data.read()
    self.seconds: dict[str, float] = json.loads((MAP / "seconds.json").read_text())
    self.files = [*self.data.measured_files()]

  def tests(self, path: str, line: int) -> list[str]:
    """Those that run the line; where none does but in an import, those of the function around it, or of the file."""
    file = next((f for f in self.files if f.endswith(f"/{path}")), None)
    if file is None:
      return []
    contexts = self.data.contexts_by_lineno(file)
    tree = ast.parse((ROOT / path).read_text())
    around = [
      n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.lineno <= line <= n.end_lineno
    ]
    spans = [(n.lineno + 1, n.end_lineno) for n in sorted(around, key=lambda n: n.end_lineno - n.lineno)]
    for first, last in [(line, line), *spans, (0, 1 << 30)]:
      found = Counter(c.split("|")[0] for n, some in contexts.items() if first <= n <= last for c in some)
      if found := {t: n for t, n in found.items() if t in self.seconds}:
        # of a whole file, those first that run the most of it
        return sorted(found, key=lambda t: (-found[t] if last > line else 0, self.seconds[t], t))
    return []


# ---------------------------------------------------------------- running


class Worker:
  """A copy of the tree in which one fault at a time is tried."""

  def __init__(self, number: int):
    self.root = MAP / f"tree{number}"
    shutil.rmtree(self.root, ignore_errors=True)
    shutil.copytree(
      ROOT, self.root, ignore=shutil.ignore_patterns(".git", "out", "__pycache__", "*.egg-info")
    )

  def passes(self, tests: list[str], limit: float) -> tuple[bool, str]:
    arguments = self.root / "tests.txt"
    arguments.write_text("\n".join(tests))
    environment = {
      **os.environ,
      "PYTHONPATH": str(self.root),
      "PYTHONDONTWRITEBYTECODE": "1",
      "CACHE": str(MAP / "cache"),
    }
    command = [
      sys.executable,
      "-m",
      "pytest",
      "--full",
      "-x",
      "-q",
      "-p",
      "no:cacheprovider",
      f"@{arguments}",
    ]
    try:
      done = subprocess.run(
        command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=limit, check=False
      )
    except subprocess.TimeoutExpired:
      return False, "time"
    failed = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, (failed or [f"rc {done.returncode}"])[0][:120]

  def kill(self, name: str, covering: Covering, most: float) -> str:
    """By what it died; "" of a survivor. most: seconds of tests."""
    path, source, new = changed(name)
    if ast.dump(ast.parse(new)) == ast.dump(ast.parse(source)):
      return "same text"
    tests = covering.tests(path, int(name.split(":")[1]))
    records = [t for t in tests if t.startswith("test/test_decisions.py")][
      :4
    ]  # the widest net, for what compiles
    tests = list(dict.fromkeys([*records, *tests]))
    (self.root / path).write_text(new)
    try:
      start = 0
      for budget in (min(20.0, most), most):
        end, spent = start, 0.0
        while end < len(tests) and spent + covering.seconds[tests[end]] < budget:
          spent += covering.seconds[tests[end]]
          end += 1
        if end > start:
          fine, by = self.passes(tests[start:end], 30 + 4 * spent)
          if not fine:
            return by
        start = end
      return ""
    finally:
      (self.root / path).write_text(source)


def main() -> None:
  p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("count", type=int, nargs="?", default=0)
  p.add_argument("--seed", type=int, default=0)
  p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
  p.add_argument("--seconds", type=float, default=240, help="of tests, at most, for each fault")
  p.add_argument("--map", action="store_true")
  p.add_argument("--show", nargs="*", default=[])
  p.add_argument(
    "--these", default="", metavar="FILE", help="the faults whose names stand in the file, a line each"
  )
  args = p.parse_args()
  for name in args.show:
    print(difference(name))
  if args.map:
    collect(args.jobs)
  names = Path(args.these).read_text().split() if args.these else drawn(args.count, args.seed)
  if not names:
    return
  covering, workers = Covering(), Queue()
  for n in range(args.jobs):
    workers.put(Worker(n))

  def tried(name: str) -> tuple[str, str]:
    worker = workers.get()
    try:
      return name, worker.kill(name, covering, args.seconds)
    finally:
      workers.put(worker)

  alive, begun = [], time.monotonic()
  with ThreadPoolExecutor(args.jobs) as pool:
    for n, (name, by) in enumerate(pool.map(tried, names), 1):
      alive += [name] * (not by)
      print(f"{n:4} {time.monotonic() - begun:6.0f} s  {name:44} {by or 'SURVIVES'}", flush=True)
  for name in alive:
    print(difference(name))
  print(f"{len(names) - len(alive)} of {len(names)} faults are noticed")


if __name__ == "__main__":
  main()
