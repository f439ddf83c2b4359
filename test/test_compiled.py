"""Programs in the hand: text of any stage runs, edited or not; what does not fit says why; recipes are pinned by name."""

import re
from pathlib import Path

import numpy as np
import pytest

import mini
from mini import Context, Tensor, grad, jit, nn
from mini.__main__ import main
from mini.codegen import recipe
from mini.codegen.recipe import RecipeError
from mini.config import ConfigError, config
from mini.engine.search import Timer, Timing
from mini.ir import parse
from mini.ir.ops import OPS
from mini.ir.text import ATTRIBUTES
from mini.ir.tokens import TextError
from mini.types import ArgumentError, DTypeError, ShapeError

DOCUMENT = (Path(__file__).parent.parent / "docs" / "text.md").read_text()
HALVES = "graph halves(%x: f32[4]) {\n  %0 = mul %x, 0.5 : f32[4]\n  return %0\n}"


def numbers(*shape, dtype=np.float32):
  return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


# ---------------------------------------------------------------- what is compiled


LINEAR = nn.Linear(6, 3)
FUNCTIONS = {
  "several results": (lambda x: (x.exp(), x.exp(), x.sum(0)), [(5, 6)]),
  "weights that it reaches": (lambda x: LINEAR(x).gelu(), [(5, 6)]),
  "numbers": (lambda x, t: x * t, [(5, 6), ()]),
  "an argument that is not read": (lambda x, y: x + 1, [(5, 6), (2,)]),
  "an argument that is given back": (lambda x, y: (x, y * 2), [(3,), (2,)]),
  "names of temporaries": (lambda t0, out0: (t0 @ out0).softmax(0).softmax(1), [(5, 6), (6, 4)]),
  "a gradient": (lambda x: grad(lambda x: x.square().sum())(x), [(5, 6)]),
  "nothing": (lambda x: x * 2, [(0, 3)]),
  "parts": (lambda x: Tensor.cat(x.sin(), x[:2]), [(5, 6)]),
}


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_and_the_text_of_each_stage_give_the_same(name, device):
  f, shapes = FUNCTIONS[name]
  p = mini.compile(f, *(Tensor(np.zeros(s, np.float32)) for s in shapes), device=device)
  xs = [Tensor(numbers(*s)) for s in shapes]
  listed = lambda y: [t.numpy() for t in (y if isinstance(y, tuple) else (y,))]
  want = listed(f(*xs))
  found = {"object": p(*xs)}
  held = [Tensor(leaf) for leaf in p._held.values()]
  read = [x for m, x in zip(p.arguments, xs) if f"%{m.name}:" in str(p.graph)]
  if p.schedule.node.src:
    found["graph"] = mini.compile(str(p.graph), device=device)(*read, *held)
    found["replaced"] = p.replace(schedule=str(p.schedule))(*xs)
  for what, got in found.items():
    for a, b in zip(want, listed(got), strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=what)


def test_kernels_run_as_they_were_written():
  """One with loops alone gets the heuristic's recipe; where the text says how it runs, that stands."""
  p = mini.parse(HALVES)
  plain, tuned = str(p.schedule), str(p.kernels[0])
  assert "vec" in tuned or "par" in tuned
  assert str(mini.compile(tuned).kernels[0]) == tuned and "range 4\n" in plain
  assert mini.compile(tuned)([2.0, 4, 6, 8]).tolist() == [1, 2, 3, 4]
  assert str(mini.compile(plain).kernels[0]) == tuned
  assert f"void {p.schedule.node.src[0].arg.what}(" in str(p.source) and "halves(x: f32[4])" in repr(p)


def test_a_gradient_passes_through_it():
  """As through the graph, whatever its kernels have become; and none where there is only a schedule."""
  x, w = Tensor(numbers(5, 6)), Tensor(numbers(6, 4))
  f = lambda x, w: (x @ w).tanh().softmax(1)
  p = mini.compile(f, x, w).replace("*", recipe="par i")
  loss = lambda f: lambda x, w: (f(x, w) * Tensor(np.arange(4, dtype=np.float32))).sum()
  for got, want in zip(grad(loss(p), (0, 1))(x, w), grad(loss(f), (0, 1))(x, w)):
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-6)
  only = mini.compile(str(mini.parse(HALVES).schedule))
  y = Tensor([1.0, 2, 3, 4], requires_grad=True)
  assert not only(y).requires_grad


def test_what_it_is_given_stays_as_it_is():
  """Also where the program writes over an input."""
  p = mini.compile("graph f(%x: f32[3]) {\n  %0 = add %x, 1.0 : f32[3]\n  return %0 into %x\n}")
  x = Tensor([1.0, 2.0, 3.0]).realize()
  assert p.schedule.node.arg.memory[0].where == "inout"
  assert p(x).tolist() == p(x).tolist() == [2, 3, 4] and x.tolist() == [1, 2, 3] and p.seconds(x) > 0


def test_an_edit_changes_what_is_computed_there_alone():
  p = mini.parse(HALVES)
  q = p.replace(schedule=str(p.schedule).replace("0.5", "0.25"))
  assert q([4.0, 8, 0, 0]).tolist() == [1, 2, 0, 0] and p([4.0, 8, 0, 0]).tolist() == [2, 4, 0, 0]


@pytest.mark.parametrize(
  "wrong, error, message",
  [
    (lambda p: p(1.0, 2.0), ArgumentError, "takes 1 arguments, not 2"),
    (lambda p: p([1.0]), ShapeError, r"compile it for \[1\]"),
    (lambda p: p([1, 2, 3, 4]), DTypeError, 'cast\\("float32"\\)'),
    (lambda p: p.replace(), ArgumentError, "either a kernel"),
    (lambda p: p.replace("map_*"), ArgumentError, "either a kernel"),
    (lambda p: p.replace("map_*", recipe="par i", schedule="x"), ArgumentError, "either a kernel"),
    (
      lambda p: p.replace("rows_*", recipe="par i"),
      RecipeError,
      "no kernel is called rows_.*; there are map_4_",
    ),
    (lambda p: p.replace("map_*", recipe="par z"), RecipeError, "par z: no range %z"),
    (lambda p: p.replace(schedule=str(p.graph)), ArgumentError, "text of a graph"),
    (lambda p: p.replace(schedule="schedule f("), TextError, "expected"),
    (lambda p: p.replace(schedule=str(p.schedule).replace("%x", "%y")), ShapeError, "differs in %x, %y"),
    (lambda p: p.replace(schedule=str(p.schedule).replace("[%i]", "[%i + 1]")), TextError, "not proved"),
    (lambda p: mini.compile(str(p.source)), ArgumentError, "a source"),
    (lambda p: mini.compile(lambda x: 3, 1.0), ArgumentError, "returns a tensor"),
    (lambda p: mini.compile(3), TypeError, "no function"),
    (lambda p: jit(lambda x: p(x))(Tensor([1.0, 2, 3, 4])), mini.MiniError, "jitted"),
  ],
)
def test_what_does_not_fit(wrong, error, message):
  with pytest.raises(error, match=message):
    wrong(mini.parse(HALVES))


# ---------------------------------------------------------------- recipes that are pinned


def test_recipes_are_pinned_by_name(capfd):
  """For a block, inside of jit and outside, and for nothing after it."""
  a = Tensor(numbers(40, 40)).realize()
  square = jit(lambda a: a @ a)
  want = square(a).numpy()
  capfd.readouterr()
  pinned = "split k 4 -> ko, ku; unroll ku; par i"
  for f in (square, lambda a: a @ a):
    with mini.recipes({"rows_*": "par q", "contract_40_*": pinned}), Context(DEBUG=3):
      np.testing.assert_allclose(f(a).numpy(), want, rtol=1e-4, atol=1e-4)
    assert f": {pinned}\n" in capfd.readouterr().err
    with Context(DEBUG=3):
      f(a).numpy()
    found = capfd.readouterr().err
    assert "contract_40_40_" in found and pinned not in found


def test_a_pin_that_does_not_apply_is_an_error():
  a = Tensor(numbers(7, 7)).realize()
  with mini.recipes({"contract_7_7_*": "par i\nvec nothing"}):
    with pytest.raises(
      RecipeError, match=r"RECIPES, contract_7_7_\*, for contract_7_7_.*vec nothing: no range"
    ):
      (a @ a).numpy()
    with Context(NOOPT=1):  # nothing is tuned
      (a @ a).numpy()
  (a @ a).numpy()


@pytest.mark.parametrize(
  "value, found",
  [
    ("", ()),
    ("a_*: par i; vec j", (("a_*", "par i\nvec j"),)),
    ("# all\n\n a: \nb_*:vec j;\n", (("a", ""), ("b_*", "vec j"))),
    ("a: x\nnothing", "PATTERN: STEP"),
    ("/nowhere/recipes.mini", "No such file"),
    ("/", "directory"),
  ],
)
def test_what_recipes_are(value, found):
  if isinstance(found, str):
    with pytest.raises(ConfigError, match=found):
      Context(RECIPES=value)
  elif value:
    with Context(RECIPES=value.replace("b_*:vec", "b_*: vec")):
      assert found == config.RECIPES
  else:
    assert found == config.RECIPES


def test_tune_writes_what_recipes_reads(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(Timer, "__call__", lambda self, k, base, recipes:
    (Timing(1e-3, 1.0 if r == base else 0.5 if "unroll" in r else 2.0, "") for r in recipes))  # fmt: skip
  program, pins = tmp_path / "g.mini", tmp_path / "recipes.mini"
  program.write_text(
    "graph g(%x: f32[300, 40]) {\n  %0 = reduce.add %x {axes=[0]} : f32[1, 40]\n  return %0\n}\n"
  )
  assert main(["tune", str(program), "--width", "30", "--out", str(pins)]) == 0
  assert f"1 recipes in {pins}" in capsys.readouterr().out
  (name,) = re.findall(r"^(\S+): .*unroll", pins.read_text(), re.MULTILINE)
  with Context(RECIPES=str(pins)):
    (made,) = mini.parse(program.read_text()).kernels
    assert name == made.node.arg.what and [p for p, _ in config.RECIPES] == [name]
    np.testing.assert_array_equal(Tensor(np.ones((300, 40), np.float32)).sum(0).numpy(), 300)


# ---------------------------------------------------------------- docs/text.md


def test_the_document_runs(capsys):
  blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
  assert len(blocks) == 4
  exec("\n".join(blocks), {})  # noqa: S102 (they are ours)
  assert len(re.findall(r"^[\d.]+ ms$", capsys.readouterr().out, re.MULTILINE)) == 4


def test_the_document_has_the_grammar_all_operations_and_all_steps():
  for doc in (parse.__doc__, recipe.__doc__):
    assert doc.partition("\n\n")[2].strip("\n") in DOCUMENT
  rows = dict(re.findall(r"^\| `([\w.]+)` \| \w+ \| (.*?) \|", DOCUMENT, re.MULTILINE))
  rows = {name.partition(".")[0]: attribute.strip("`") for name, attribute in rows.items()}
  assert rows.keys() == OPS.keys() - {"buffer", "invoke"}
  assert {name: a for name, a in rows.items() if a} == ATTRIBUTES
