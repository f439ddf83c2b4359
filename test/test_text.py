"""Text: print and parse are inverse at every stage, what is wrong is said with its place, and the command
line."""

import re
import subprocess
import sys
from pathlib import Path

import fuzz_text
import golden
import numpy as np
import pytest
from fuzz_graph import program as random_program

import mini as framework
from mini import Tensor
from mini import __main__ as command
from mini.engine import launch
from mini.engine.launch import interpret, returned
from mini.engine.passes import passes, run_pass
from mini.engine.plan import planned
from mini.grad import gradient
from mini.ir import graph as G
from mini.ir import interp
from mini.ir.graph import full
from mini.ir.interp import evaluate, run_kernel
from mini.ir.ops import OPS
from mini.ir.rules import RULES
from mini.ir.uop import const, toposort
from mini.text.parser import TextError, parse, parse_file
from mini.text.printer import graph_program, number, schedule_text, text, uops_program
from mini.text.verifier import nbytes
from mini.types import MiniError, dtypes

ROOT = Path(__file__).parent.parent
MATMUL = """
%n = var "n" 1..64
%m = var "m" 1..32
graph mm(%a: f32[%n, 8], %b: f32[8, %m]) {   # relu(a @ b)
  %0 = reshape %a {shape=[%n, 1, 8]} : f32[%n, 1, 8]
  %1 = expand %0 {shape=[%n, %m, 8]} : f32[%n, %m, 8]
  %2 = permute %b {axes=[1, 0]} : f32[%m, 8]
  %3 = reshape %2 {shape=[1, %m, 8]} : f32[1, %m, 8]
  %4 = expand %3 {shape=[%n, %m, 8]} : f32[%n, %m, 8]
  %5 = mul %1, %4 : f32[%n, %m, 8]
  %6 = reduce.add %5 {axes=[2]} : f32[%n, %m, 1]
  %7 = reshape %6 {shape=[%n*%m]} : f32[%n*%m]
  %8 = max %7, 0.0 : f32[%n*%m]
  return %8
}
"""


# ---------------------------------------------------------------- print and parse


@pytest.mark.parametrize("path", sorted(golden.FOLDER.glob("*.mini")), ids=lambda p: p.stem)
def test_golden(path):
  assert golden.check(path) == "ok"


def test_golden_refuses_what_computes_something_else(tmp_path, monkeypatch):
  path = tmp_path / "wrong.mini"
  path.write_text(
    "# pass: simplify\ngraph f(%x: f32[8]) {\n  %0 = add %x, 0.0 : f32[8]\n  return %0\n}\n----\n"
  )
  (x,) = parse_file("graph f(%x: f32[8]) {\n  return %x\n}")
  monkeypatch.setattr(golden, "run_pass", lambda *_: [x])
  assert "changed out0" in golden.check(path, accept=True)
  assert path.read_text().endswith("----\n")


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(60))
def test_every_stage_of_random_graphs(seed):
  """graph, schedule, kernel, recipe, uops and source: parse(print(p)) is p."""
  outputs, _, _ = random_program(seed)
  programs = [graph_program("g", tuple(outputs.values()))]
  for name in ("simplify", "schedule", "recipe"):
    programs = run_pass(passes()[name], programs)
    assert all(parse(text(p)) is p for p in programs), name
  for k in programs[0].src:
    for p in (k, uops_program(k)):
      assert parse(text(p)) is p
  (source,) = run_pass(passes()["source"], programs)
  assert parse(text(source)) is source


def test_an_operation_on_numbers_is_no_condition():
  k = parse("kernel f(%y: out bool[]) {\n  %0 = and false, true : bool\n  store %y[], %0\n  end over ()\n}")
  assert parse(text(k)) is k
  assert "store %y[], false" in text(run_pass(passes()["simplify"], [k])[0])


def test_several_programs_in_a_file_and_comments():
  one = "graph f(%x: f32[]) {\n  %0 = exp2 %x : f32[]\n  return %0\n}"
  both = parse_file(f"# first\n{one}\n\n\n# second\n{one.replace('exp2', 'sqrt')}  # end\n")
  assert [text(p) for p in both] == [one, one.replace("exp2", "sqrt")]


def test_other_text_becomes_canonical():
  p = parse(
    "graph f(%x:f32[2 , 2]) {\n%a=const 1:f32[2,2]\n\n   %b= add   %x,%a:f32[2,2]\n return %b, f32(3)}"
  )
  q = parse(text(p))
  assert q is p and text(q) == text(p)
  k = parse(
    "kernel f(%y: out f32[8], %x: in f32[8]) {\n%j = range 8\n%v = load %x[7 + -1*%j + 0*%j] if 3 > 2\nend over ()}".replace(
      " if 3 > 2", " : f32\n store %y[%j + %j - 1*%j], %v"
    ).replace("over ()", "over (%j)")
  )
  assert "%0 = load %x[-%j + 7] : f32\n  store %y[%j], %0" in text(k)


def test_a_number_says_its_type_only_where_nothing_else_does():
  lines = (
    "lt %x, 3.0 : bool[4]",
    "ne 3.0, %x : bool[4]",
    "add %x, 3.0 : f32[4]",
  )
  for line in lines:
    program = f"graph g(%x: f32[4]) {{\n  %0 = {line}\n  return %0\n}}"
    assert text(parse(program)) == program
    assert text(parse(program.replace("3.0", "f32(3.0)"))) == program


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_constants_read_back(dtype):
  values = (
    [0.1, -0.0, 1e30, 1e-45, float("inf"), float("-inf"), float("nan"), 3.0]
    if dtype.kind == "f"
    else [0, 1]
    if dtype.kind == "b"
    else [0, 1, 100]
  )
  if dtype.kind in "iu":
    values += [int(np.iinfo(dtype.np).min), int(np.iinfo(dtype.np).max)]
  for v in values:
    c = const(v, dtype)
    p = graph_program(
      "f", (G.alu("where", G.buffer("p", (2,), dtypes.bool), c, G.buffer("x", (2,), dtype)), c)
    )
    assert parse(text(p)) is p, number(c.arg, dtype)


def test_live_buffers_get_names():
  a, b = (G.buffer(object(), (2,), dtypes.float32) for _ in range(2))
  t = text(graph_program("f", (G.alu("add", a, b),)))
  assert t.startswith("graph f(%b0: f32[2], %b1: f32[2])") and text(parse(t)) == t


def test_symbolic_sizes():
  mm = parse(MATMUL)
  assert "graph mm(%a: f32[64, 8], %b: f32[8, 32])" in text(mm)  # the upper bounds
  assert "f32[15]" in text(parse(MATMUL, sizes={"n": 5, "m": 3}))
  for sizes, reason in [({"n": 65}, "n=65 is not in 1..64"), ({"q": 1}, "this file has no size %q")]:
    with pytest.raises(TextError, match=reason):
      parse(MATMUL, sizes=sizes)


# ---------------------------------------------------------------- the interpreter of kernels


def test_kernel_runs_as_the_graph_does():
  mm = parse(MATMUL, sizes={"n": 6, "m": 4})
  rng = np.random.default_rng(0)
  data = {"a": rng.standard_normal((6, 8), np.float32), "b": rng.standard_normal((8, 4), np.float32)}
  (want,) = evaluate(list(mm.src), lambda u: data[u.arg[0]])
  (schedule,) = run_pass(passes()["schedule"], [mm])
  np.testing.assert_allclose(launch.interpret(schedule, data)["out0"], want, rtol=1e-5)


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_kernel_dtypes(dtype):
  """Load, cast, accumulate and store, of every type."""
  k = parse(f"""kernel f(%y: out {dtype.short}[3], %x: in {dtype.short}[3, 4]) {{
  %i = range 3
  %k = range 4
  %0 = load %x[%i, %k - 1] if %k - 1 >= 0 : {dtype.short}
  %1 = reduce.max %0 over (%k)            : {dtype.short}
  %2 = cast %i                            : {dtype.short}
  %3 = add %1, %2                         : {dtype.short}
  store %y[%i], %3
  end over (%i)
}}""")
  x = np.arange(12).reshape(3, 4).astype(dtype.np)
  data = {"x": x}
  run_kernel(k, data)
  want = np.maximum(x[:, :3].max(1), 0)
  np.testing.assert_array_equal(
    data["y"],
    (want | np.arange(3).astype(bool)) if dtype.kind == "b" else want + np.arange(3).astype(dtype.np),
  )


def test_large_kernels_run_in_slices(monkeypatch):
  k = parse("""kernel f(%y: inout i64[2], %x: in i64[50, 20]) {
  %i = range 50
  %j = range 20
  %k = range 3
  %0 = load %x[%i, %j]                        : i64
  %1 = cast %k                                : i64
  %2 = mul %0, %1                             : i64
  %3 = stage %2 at [%k] over (%k) stack       : i64[3]
  %4 = load %3[2]                             : i64
  store.add %y[%j % 2], %4
  end over (%i, %j)
}""")
  x = np.arange(1000).reshape(50, 20)
  want = np.array([x[:, 0::2].sum() * 2, x[:, 1::2].sum() * 2])
  for cells in (1 << 22, 100, 1):
    monkeypatch.setattr(interp, "CELLS", cells)
    data = {"x": x, "y": np.zeros(2, np.int64)}
    run_kernel(k, data)
    np.testing.assert_array_equal(data["y"], want)


# ---------------------------------------------------------------- what is wrong

GRAPH = "graph f(%x: f32[4, 8], %i: i32[4]) {{\n  {}\n  return %x\n}}"
KERNEL = "kernel f(%y: out f32[8], %x: in f32[8], %n: in i32[8]) {{\n  %i = range 8\n  %j = range 4\n  %v = load %x[%i] : f32\n  %m = load %n[%i] : i32\n  {}\n  store %y[%i], %v\n  end over (%i)\n}}"
# fmt: off
WRONG = [  # a line of a program, the text under the caret, the reason
  (GRAPH, "%0 = foo %x : f32[4, 8]",                     "foo",    "foo is no operation of a graph"),
  (GRAPH, "%0 = add %x, %q : f32[4, 8]",                 "%q",     "%q is not defined above"),
  (GRAPH, "%0 = add %x, %i : f32[4, 8]",                 "add",    "add: inputs are f32, i32"),
  (GRAPH, "%0 = add %x : f32[4, 8]",                     "add",    "add has 2 inputs, not 1"),
  (GRAPH, "%0 = sqrt %i : i32[4]",                       "sqrt",   "sqrt does not take i32"),
  (GRAPH, "%0 = and %x, %x : f32[4, 8]",                 "and",    "and does not take f32"),
  (GRAPH, "%0 = lt %x, 0.0 : f32[4, 8]",                 "lt",     "lt of f32, f32 is bool, not f32"),
  (GRAPH, "%0 = add %x, 1.0 : f32[4]",                   "f32[4]", "add of this is f32[4, 8]"),
  (GRAPH, "%0 = add %x, true : f32[4, 8]",               "true",   "true is no f32"),
  (GRAPH, "%0 = add %i, 3000000000 : i32[4]",            "3000000000", "3000000000 is no i32"),
  (GRAPH, "%0 = cast 1.5 : i32",                         "1.5",    "the type of 1.5 is not told by its line; write f32(1.5)"),
  (GRAPH, "%0 = reshape %x {shape=[5]} : f32[5]",        "reshape", "reshape: the elements of (4, 8) do not fill (5,)"),
  (GRAPH, "%0 = reduce.add %x {axes=[2]} : f32[4, 8]",   "reduce", "reduce: (2,) are not all axes of (4, 8)"),
  (GRAPH, "%0 = reduce.min %x {axes=[1]} : f32[4, 1]",   "reduce", "reduce knows add, mul, max, not min"),
  (GRAPH, "%0 = expand %x {shape=[4, 9]} : f32[4, 9]",   "expand", "expand: (4, 8) does not repeat to (4, 9)"),
  (GRAPH, "%0 = flip %x {axis=[1]} : f32[4, 8]",         "axis",   "expected axes, found axis"),
  (GRAPH, "%0 = gather %x, %x {axis=0} : f32[4, 8]",     "gather", "gather: the index is float32, not an integer type"),
  (GRAPH, "%x = add %x, %x : f32[4, 8]",                 "%x",     "%x is defined twice"),
  (GRAPH, "%0 = iota : i32[9999999999999]",                "[999",   "too many elements or axes"),
  (GRAPH, "%0 = add %x, @ : f32[4]",                     "@",      "unexpected character '@'"),
  (KERNEL, "%0 = load %x[%j + 5] : f32",                 "load",   "load: %j + 5 is not proved to be in 0..7"),
  (KERNEL, "%0 = load %x[%i + 1] if %i < 8 : f32",       "load",   "load: %i + 1 is not proved to be in 0..7"),
  (KERNEL, "%0 = load %x[%m] : f32",                     "load",   "load: %m is not proved to be in 0..7"),
  (KERNEL, "%0 = load %x[%m] if %m < 8 : f32",           "load",   "load: %m is not proved to be in 0..7 by %m < 8"),
  (KERNEL, "%0 = load %x[%i, %i] : f32",                 "load",   "load: 2 indices for memory of shape [8]"),
  (KERNEL, "%0 = load %v[%i] : f32",                     "%v",     "%v is no memory"),
  (KERNEL, "%0 = add %x, %v : f32",                      "%x",     "%x is memory: load from it"),
  (KERNEL, "%0 = load %x[%v] : f32",                     "%v",     "an index is an integer, not f32"),
  (KERNEL, "%0 = load %x[%i // 0] : f32",                "0",      "a divisor is at least 1"),
  (KERNEL, "%0 = reduce.add %v over (%v) : f32",         "%v",     "%v is no range"),
  (KERNEL, "%0 = reduce.add %v over (%i) : f32",         "kernel", "range i has two owners"),
  (KERNEL, "%0 = load %x[%i] : i32",                     "i32",    "this is f32"),
  (KERNEL, "%0 = cast : f32",                            "cast",   "cast has 1 input, not 0"),
  (KERNEL, "store %y[%i], %m",                           "store",  "store: the value is i32, the memory f32"),
  (KERNEL, "store %y[%j], %v",                           "kernel", "nothing closes %j"),
  (KERNEL, "store %y[%i], %v",                           "store",  "the same is stored in the same place twice"),
  (KERNEL, "%i = range 3",                               "%i",     "%i is defined twice"),
  (KERNEL, "%1 = range 0",                               "%1",     "a range has a name, not a number: %1"),
  (KERNEL, "%q = range 0",                               "0",      "expected at least 1"),
]
# fmt: on


@pytest.mark.parametrize("program, line, under, reason", WRONG, ids=[w[3][:50] for w in WRONG])
def test_what_is_wrong_is_said_with_its_place(program, line, under, reason):
  source = program.format(line)
  if "has two owners" in reason:
    source = source.replace("store %y[%i], %v", "store %y[0], %0")
  with pytest.raises(TextError) as e:
    parse(source, "x.mini")
  place, shown, caret = str(e.value).split("\n")[0:3]
  assert reason in place
  file, row, column = place.split(":")[:3]
  assert file == "x.mini" and source.split("\n")[int(row) - 1] == shown[2:]
  assert shown[2:][int(column) - 1 :].startswith(under) and caret.index("^") - 2 == int(column) - 1


UOPS = """uops f(%y: out f32[4], %x: in f32[4, 3]) {
  %i = loop 4
    %1 = alloc stack               : f32[3]
    %k = loop 3
      %0 = load %x[%i, %k]         : f32
      store %1[%k], %0 over (%k)
    end %k
    %3.acc = acc.add               : f32
    %s = loop 3
      %2 = load %1[%s]             : f32
      accum.add %3.acc, %2
    end %s
    %3 = fold.add %3.acc over (%s) : f32
    store %y[%i], %3
  end %i
  end over (%i)
}"""


@pytest.mark.parametrize(
  "old, new, says",
  [
    ("store %1[%k], %0 over (%k)", "", "%1 is no memory|%1 is not defined|%1 is never written"),
    ("alloc stack               : f32[3]", "alloc stack : f64[3]", "the value is f32, the memory f64"),
    ("    end %s\n", "", "%i is not the innermost open loop"),
    ("end %k", "end %i", "%i is not the innermost open loop"),
    ("  end %i\n", "", "the loop %i has no end"),
    ("      accum.add %3.acc, %2\n", "", "%3"),
    (
      "    store %y[%i], %3\n",
      "    %9 = alloc stack : f32[3]\n    store %y[%i], %3\n",
      "%9 is never written",
    ),
    ("accum.add", "accum.mul", "mul"),
  ],
)
def test_what_is_wrong_in_loops_is_said(old, new, says):
  assert text(parse(UOPS)) == UOPS and UOPS.count(old) == 1
  with pytest.raises(TextError, match=says):
    parse(UOPS.replace(old, new))


@pytest.mark.parametrize("path", sorted(golden.FOLDER.glob("*.mini")), ids=lambda p: p.stem)
def test_text_that_ends_too_soon_is_said(path):
  source = path.read_text().split("\n}")[0] + "\n}"
  ends = [m.start() for m in re.finditer(r"[\s,()\[\]]", source) if source[: m.start()].strip()]
  for end in ends[:: max(len(ends) // 60, 1)]:
    if re.search(r"^[^#\n]", source[:end], re.MULTILINE):
      with pytest.raises(TextError):
        parse(source[:end])


@pytest.mark.parametrize(
  "old, new, says",
  [
    ("%t = arena 0", "%y = arena 0", "%y is defined twice, or is no name for memory"),
    ("%t = arena 0", "%9 = arena 0", "%9 is defined twice, or is no name for memory"),
    (
      "%x: in f32[4]) {\n  %i",
      '%x: in f32[4]) recipe("unroll q") {\n  %i',
      "no range.* q|q is no range|unroll q",
    ),
    ("store %y[%i], %1", "store %y[%i], %1 %1", "expected"),
  ],
)
def test_what_is_wrong_in_a_schedule_is_said(old, new, says):
  source = """schedule f(%x: in f32[4], %y: out f32[4]) {
  %t = arena 0 : f32[4]
  kernel g(%y: out f32[4], %x: in f32[4]) {
  %i = range 4
  %0 = load %x[%i] : f32
  %1 = exp %0 : f32
  store %y[%i], %1
  end over (%i)
  }
  run g(%t, %x)
  run g(%y, %t)
}"""
  assert text(run_pass(passes()["source"], [parse(source)])[0]).startswith("source f ")
  with pytest.raises(TextError, match=says):
    parse(source.replace(old, new))


def test_mutants():
  """A few hundred of the fuzzer's programs; python test/fuzz_text.py FIRST COUNT tries others."""
  sources = fuzz_text.corpus()
  assert [w for w in (fuzz_text.check(seed, sources) for seed in range(600)) if w] == []


# ---------------------------------------------------------------- the command line


@pytest.fixture
def mini(capsys):
  """python -m mini, in this process: (status, stdout, stderr)."""

  def run(*args):
    done = command.status(list(args))
    out, err = capsys.readouterr()
    return done, out, err

  return run


def test_it_is_a_command(tmp_path):
  path = tmp_path / "mm.mini"
  path.write_text(MATMUL)
  done = subprocess.run(
    [sys.executable, "-m", "mini", str(path)],
    check=False,
    capture_output=True,
    text=True,
    timeout=120,
    cwd=ROOT,
  )
  assert (done.returncode, done.stdout, done.stderr) == (0, text(parse(MATMUL)) + "\n", "")


def test_test_runs_and_compares(mini, tmp_path):
  path = tmp_path / "mm.mini"
  path.write_text(MATMUL)
  for dev in ("INTERP", "CPU"):
    status, out, err = mini(str(path), "--test", "n=5,m=7", f"--dev={dev}")
    assert status == 0 and out.startswith(f"# graph mm on {dev}: ") and out.endswith("ok\n"), (out, err)


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", sorted(golden.FOLDER.glob("*.mini")), ids=lambda p: p.stem)
def test_golden_programs_run(mini, path, tmp_path):
  first = tmp_path / "first.mini"
  first.write_text(path.read_text().partition("----\n")[0])
  status, out, err = mini(str(first), "--test")
  assert status == 0 and out.endswith("ok\n"), (out, err)


def test_what_show_prints_is_a_file(mini, tmp_path):
  path, shown = tmp_path / "mm.mini", tmp_path / "all.mini"
  path.write_text(MATMUL)
  status, out, _ = mini(str(path), "--show=graph,schedule,kernel,uops,source")
  shown.write_text(out)
  assert status == 0 and {p.op for p in parse_file(out)} == {"graph", "schedule", "kernel", "uops", "source"}
  assert mini(str(shown)) == (0, out, "")


def test_exit_status(mini, tmp_path):
  path = tmp_path / "bad.mini"
  path.write_text("graph f(%x: f32[4]) {\n  return %y\n}\n")
  status, _, err = mini(str(path))
  assert status == 2 and err == f"{path}:2:10: %y is not defined above\n    return %y\n           ^\n"
  path.write_bytes(b"\xff\xfe")
  assert mini(str(path))[0] == 2
  assert mini(str(tmp_path / "missing.mini"))[0] == 2
  path.write_text(MATMUL)
  for wrong in ("--passes=foo", "--show=foo", "--dev=foo", "--foo", "--test=n"):
    assert mini(str(path), wrong)[0] == 2, wrong


def test_a_mismatch_is_status_1(monkeypatch, tmp_path):
  path = tmp_path / "mm.mini"
  path.write_text(MATMUL)
  right = launch.interpret
  monkeypatch.setattr(
    launch, "interpret", lambda p, data: {n: v + (p.op == "graph") for n, v in right(p, data).items()}
  )
  assert command.main([str(path), "--test", "--dev=INTERP"]) == 1


def test_tables(mini):
  status, out, _ = mini("ops")
  names = [line.split()[0] for line in out.splitlines()]
  assert (
    status == 0
    and names == [o.name for o in OPS.values() if o.family not in ("leaf", "mark", "composite")]
    and len(names) <= 27
  )
  assert [line.split()[0] for line in mini("ops", "--all")[1].splitlines()] == list(OPS)
  assert [line.split()[0] for line in mini("rules")[1].splitlines()] == [r.name for r in RULES]
  assert len(mini("config")[1].splitlines()) <= 18
  assert mini("devices")[0] == 0 and mini("passes")[0] == 0 and mini("cache")[0] == 0


@pytest.mark.sample(3)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 12])
def test_a_recipe_for_other_vectors_runs_too(n, mini, tmp_path):
  """A file may come from another machine: vectors get narrower until they fit its vec ranges."""
  path = tmp_path / "k.mini"
  path.write_text(f"""kernel f(%y: out f32[12], %x: in f32[12, 6]) recipe("split i {n} -> io, iv", "vec iv") {{
  %i = range 12
  %k = range 6
  %0 = load %x[%i, %k]         : f32
  %1 = exp %0                  : f32
  %2 = max %1, 1.0             : f32
  %3 = reduce.add %2 over (%k) : f32
  store %y[%i], %3
  end over (%i)
}}
""")
  for dev in ("CPU", "INTERP"):
    status, out, err = mini(str(path), "--test", f"--dev={dev}")
    assert status == 0 and out.endswith("ok\n"), (out, err)
  assert mini(str(path), "--show=source")[0] == 0


def test_a_matrix_product_takes_no_memory_for_its_products():
  """What SHOW prints of a training step is within the limits on what a file may ask for."""
  n = 1700

  def product(a, b, out="%3"):
    return parse_file(f"""graph mm(%a: f32{a}, %b: f32{b}) {{
  %0 = expand %a {{shape=[{n}, {n}, {n}]}}     : f32[{n}, {n}, {n}]
  %1 = expand %b {{shape=[{n}, {n}, {n}]}}     : f32[{n}, {n}, {n}]
  %2 = mul %0, %1                              : f32[{n}, {n}, {n}]
  %3 = reduce.add %2 {{axes=[2]}}              : f32[{n}, {n}, 1]
  return {out}
}}""")[0]

  rows, columns = [n, 1, n], [1, n, n]
  assert nbytes(product(rows, columns)) == 3 * 4 * n * n
  for what in ((rows, columns, "%3, %2"), (rows, rows), ([n, 1, 1], rows), (rows, [n, 1, 1])):  # here it does
    with pytest.raises(TextError, match="takes 19.* bytes"):
      product(*what)


# ---------------------------------------------------------------- graphs of tensors


@framework.custom_gradient(lambda g, out, x: g * 7)
def rounded(x):
  return x.round()


def named(shape):
  """A tensor of memory that has a name, as graphs from text have."""
  return Tensor._new(G.buffer("x", shape, dtypes.float32)).requires_grad_()


# fmt: off
TENSORS = {
  "contiguous":      lambda x: x.T.contiguous() * 2,
  "sort":            lambda x: x.sort(1)[0],
  "argsort":         lambda x: x.argsort(1),
  "median":          lambda x: x.median(1)[0],
  "detach":          lambda x: x.detach() * x,
  "gelu":            lambda x: x.gelu().sum(),
  "softmax":         lambda x: x.softmax(1),
  "custom gradient": lambda x: rounded(x).sum(),
  "checkpoint":      lambda x: framework.checkpoint(lambda v: (v * v).exp(), x).sum(),
  "named":           lambda x: framework.op(lambda v: v * 2)(x) + 1,
  "call":            lambda x: framework.wrap_as_operation(lambda v: v * 2)(x.detach()) + 1,
  "gradient":        lambda x: framework.grad(lambda v: framework.checkpoint(rounded, v * v).gelu().sum())(x),
  "clone":           lambda x: x.clone() + 1,
}
# fmt: on


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", TENSORS)
def test_graphs_of_tensors_read_back(name):
  p = graph_program("g", (TENSORS[name](named((2, 3))).uop,))
  q = parse(text(p, comments=True))
  assert q is p and text(q) == text(p)
  values = np.array([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]], np.float32)
  (got,) = interpret(q, {"x": values}).values()  # what was read runs
  assert np.allclose(got, TENSORS[name](Tensor(values, requires_grad=True)).numpy(), rtol=1e-5)
  assert ("in a checkpoint" in text(p, comments=True)) == (name in ("checkpoint", "gradient"))


def test_text_says_that_a_gradient_is_not_in_it():
  p = graph_program("g", ((rounded(named((2,))) * 3).uop,))
  printed = text(p)
  assert ', "given"]}' in printed
  (tag,) = [u for u in toposort(p) if "given" in u.memo]
  one = full((2,), 1, dtypes.float32)
  (x,) = tag.memo["given"].inputs
  (found,) = gradient(parse(printed).src[0], one, [x])
  assert evaluate([found], None)[0].tolist() == [21, 21]
  other = parse(printed.replace(f"mark=[{tag.arg},", "mark=[987654321,"))  # as in another process
  (lost,) = [u for u in toposort(other) if "given" in u.memo]
  assert text(parse(text(other))) == text(other) and lost is not tag
  with pytest.raises(MiniError, match="given by a function, which its text does not have"):
    gradient(other.src[0], one, [lost.src[0]])


def test_a_tag_of_something_else_is_another():
  x = named((2,))
  printed = text(graph_program("g", ((x.detach() * x).uop,)))
  p = parse(printed.replace("%x", "%y"))
  assert text(p) == printed.replace("%x", "%y") and parse(text(p)) is p


# ---------------------------------------------------------------- what is never run, never written

COPY = """  kernel k0(%o: out f32[4], %a: in f32[4]) {
    %i = range 4
    %0 = load %a[%i] : f32
    store %o[%i], %0
    end over (%i)
  }
"""


@pytest.mark.parametrize(("program", "says"), [
  ("schedule s(%a: in f32[4], %o: out f32[4]) {\n" + COPY + "  copy %a -> %o\n}", "no run of kernel k0"),
  ("schedule s(%a: in f32[4], %o: out f32[4]) {\n}", "%o is out, and never written"),
  ("schedule s(%a: in f32[4], %o: out f32[4], %p: out f32[4]) {\n" + COPY + "  run k0(%o, %a)\n}",
   "%p is out, and never written"),
  (COPY.replace("(%o", "(%p: out f32[9], %o").strip(), "%p is out, and never written"),
  (COPY.replace("(%o: out", "(%o: in").strip(), "%o is in, and written"),
  (COPY.replace("%a: in", "%a: inout").strip(), "%a is inout, and never written"),
])  # fmt: skip
def test_what_is_never_run_or_written_is_said(program, says):
  with pytest.raises(TextError, match=re.escape(says)):
    parse(program)
  assert parse("schedule s(%a: in f32[4], %o: out f32[0]) {\n}")  # of nothing there is nothing to write


# ---------------------------------------------------------------- names that the grammar uses

WORDS = re.findall(
  r"\S+",
  """graph schedule kernel uops source var size range loop par around vec unroll local from to over along at by if end
  store load reduce scan stage return run copy arena on in out inout recipe idx min true false inf nan f32 bool i64 tag
  const cast exp add alloc acc accum fold stack shared main _ __ x.y _1""",
)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_grammar_is_a_name_like_any(word):
  other = WORDS[WORDS.index(word) - 1]
  kernel = f"""kernel {word}(%{word}: out f32[4], %p: in f32[4]) {{
  %{other} = range 4
  %0 = load %p[%{other} + 0] if %{other} < 3 : f32
  store %{word}[%{other}], %0
  end over (%{other})
}}"""
  graph = f"graph {word}(%{word}: f32[4], %{other}: f32[4]) {{\n  %0 = add %{word}, %{other} : f32[4]\n  return %0\n}}"
  p, q = parse(kernel), parse(graph)
  (s,) = run_pass(passes()["schedule"], [q])
  programs = [p, q, s, uops_program(p), *run_pass(passes()["source"], [p])]
  for one in programs:
    assert parse(text(one)) is one


def test_reasons_stand_with_the_first_run_that_writes():
  program = parse("""schedule f(%x: in f32[8], %y: out f32[8]) {
  %t0 = arena 0 : f32[8]
  kernel k(%a: out f32[8], %b: in f32[8]) {
    %i = range 8
    %0 = load %b[%i] : f32
    store %a[%i], %0
    end over (%i)
  }
  run k(%t0, %x)
  run k(%y, %t0)
  run k(%t0, %y)
}""")
  told = schedule_text(program, {"t0": ["two read it"], "x": ["none"], "y": ["asked for"]}).split("\n")
  assert [line.strip() for line in told if "#" in line] == ["# t0: two read it", "# y: asked for"]


def test_an_attribute_that_is_missing_is_said():
  with pytest.raises(TextError, match=r"expected \{"):
    parse("graph g(%x: f32[2]) {\n  %0 = reduce.add %x : f32[1]\n  return %0\n}")


def test_kernels_are_called_what_they_compute():
  """The same with other memory is one kernel, run twice; a part of a memory is told by the element at which it begins."""

  def copy(n, target, source, first=0, size=None):
    return parse(f"""kernel k(%{target}: out f32[{n}], %{source}: in f32[{size or n}]) {{
  %i = range {n}
  %0 = load %{source}[%i + {first}] : f32
  store %{target}[%i], %0
  end over (%i)
}}""")

  kernels = [copy(2, "a", "x"), copy(3, "b", "y"), copy(2, "c", "z", 4, 9)]
  program = planned("f", kernels, ["c", "a", "b"])
  found = text(program)
  assert parse(found) is program
  one, two = re.findall(r"kernel (map_[23]_[0-9a-f]{10})\(", found)
  runs = [f"run {one}(%a, %x)", f"run {two}(%b, %y)", f"run {one}(%c, %z + 4)"]
  assert re.findall(r"run .*", found) == runs
  assert re.findall(r"%(\w+): out f32\[\d\],", found)[:3] == ["c", "a", "b"]
  got = interpret(program, {n: np.arange(m, dtype=np.float32) for n, m in (("x", 2), ("y", 3), ("z", 9))})
  assert [got[n].tolist() for n in returned(program)] == [[4, 5], [0, 1], [0, 1, 2]]


def test_results_that_share_memory_are_returned_by_name():
  """Equal outputs, and one that takes the memory of an input, also of one that is not read."""
  graph = parse("""graph f(%x: f32[4], %y: f32[4]) {
  %0 = exp %x : f32[4]
  %1 = add %x, 1.0 : f32[4]
  return %0 into %y, %0, %1 into %x
}""")
  assert parse(text(graph)) is graph
  (program,) = run_pass(passes()["schedule"], [graph])
  assert parse(text(program)) is program and text(program).endswith("  return %y, %y, %x\n}")
  data = {"x": np.arange(4, dtype=np.float32), "y": np.zeros(4, np.float32)}
  want, got = interpret(graph, data), interpret(program, data)
  for a, b in zip(returned(graph), returned(program)):
    np.testing.assert_array_equal(want[a], got[b])


@pytest.mark.parametrize(
  "ends, message",
  [
    ("%0 into %0", "no input"),
    ("%0 into %w", "no input"),
    ("%0 into %x, %0 into %x", "two outputs"),
    ("%0 into %z", "not defined"),
    ("%0 into", "expected a value"),
  ],
)
def test_what_an_output_cannot_go_into(ends, message):
  with pytest.raises(TextError, match=message):
    parse(f"graph f(%x: f32[4], %w: f32[3]) {{\n  %0 = exp %x : f32[4]\n  return {ends}\n}}")
