"""Programs in the hand: text of any stage runs, edited or not; what does not fit says why; recipes are pinned by name."""

import re
from pathlib import Path

import numpy as np
import pytest

import mini
from mini import Context, Tensor, grad, jit, nn
from mini.codegen import recipe
from mini.codegen.recipe import RecipeError
from mini.config import ConfigError, config
from mini.ir.ops import OPS
from mini.text import parser
from mini.text.lexer import TextError
from mini.text.printer import ATTRIBUTES
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


@pytest.mark.parametrize(
  "text, args, want",
  [
    ("graph f(%x: f32[2], %y: f32[2]) {\n  %0 = div %y, %x : f32[2]\n  return %0\n}", [[1, 2], [4, 8]], [[4, 4]]),
    ("graph f(%x: f32[2], %y: f32[2]) {\n  return %y\n}", [[1, 2], [4, 8]], [[4, 8]]),
    ("graph f(%in.x: f32[1]) {\n  %0 = add %in.x, 1.0 : f32[1]\n  return %0\n}", [[2]], [[3]]),
    ("graph f(%t0: f32[1], %in.t0: f32[1]) {\n  %0 = div %t0, %in.t0 : f32[1]\n  return %0\n}", [[1], [4]], [[0.25]]),
    ("graph f(%x: f32[1], %y: f32[1]) {\n  %0 = add %y, 1.0 : f32[1]\n  return %x into %x, %0\n}", [[1], [4]], [[1], [5]]),
    ("graph f(%x: f32[1]) {\n  return %x into %x\n}", [[7]], [[7]]),
    ("graph f(%x: f32[1]) {\n  %0 = add %x, 1.0 : f32[1]\n  return %0, %x into %x\n}", [[7]], [[8], [7]]),
    ("graph f(%x: f32[0], %y: f32[1]) {\n  %0 = add %x, 1.0 : f32[0]\n  return %0 into %x, %y\n}", [[], [3]], [[], [3]]),
    (
      ("kernel k(%b: in f32[2], %c: in f32[2], %o: out f32[2]) {\n  %i = range 2\n  %0 = load %c[%i] : f32\n"
      "  %1 = load %b[%i] : f32\n  %2 = div %0, %1 : f32\n  store %o[%i], %2\n  end over (%i)\n}"),
      [[1, 2], [4, 8]], [[4, 4]],
    ),
    (
      ("schedule f(%out: out f32[2], %x: in f32[2], %y: in f32[2]) {\n"
      "  kernel k(%b: in f32[2], %o: out f32[2], %c: in f32[2]) {\n    %i = range 2\n    %0 = load %c[%i] : f32\n"
      "    %1 = load %b[%i] : f32\n    %2 = div %0, %1 : f32\n    store %o[%i], %2\n    end over (%i)\n  }\n"
      "  run k(%x, %out, %y)\n  return %out, %x\n}"),
      [[1, 2], [4, 8]], [[4, 4], [1, 2]],
    ),
    (
      ('schedule f(%o: out f32[2] on "CPU:1", %p: out f32[2], %x: in f32[2]) {\n'
      "  kernel k(%a: out f32[2], %b: in f32[2]) {\n    %i = range 2\n    %0 = load %b[%i] : f32\n"
      "    store %a[%i], %0\n    end over (%i)\n  }\n  run k(%o, %x)\n  run k(%p, %x)\n}"),
      [[1, 2]], [[1, 2], [1, 2]],
    ),
    ('schedule f(%o: out f32[2] on "CPU:1", %x: in f32[2]) {\n  copy %x -> %o\n}', [[1, 2]], [[1, 2]]),
  ],
)  # fmt: skip
def test_arguments_are_those_of_the_head_and_results_those_that_are_returned(text, args, want):
  """Whatever they are called, wherever they stand, and whether a kernel touches them."""
  for device in ("CPU", "INTERP"):
    p = mini.compile(text, device=device)
    for q in (p, p.replace(schedule=p.schedule)):
      got = q(*(np.array(x, np.float32) for x in args))
      assert [t.tolist() for t in (got if isinstance(got, tuple) else (got,))] == want, device


def test_what_a_function_reaches_is_kept_as_it_is():
  """By names that no argument has; and a gradient passes by results of other types."""
  x, w = (Tensor(a).realize() for a in (np.float32([1, 2, 3]), np.float32([10, 20, 30])))

  def f(held0, held1):
    return held0 / w * held1, held0 > 1

  p = mini.compile(f, x, x)
  w.assign(w * 2).realize()
  np.testing.assert_allclose(p(x, x)[0].numpy(), [0.1, 0.2, 0.3], rtol=1e-6)
  assert p(x, x)[1].tolist() == [False, True, True]
  np.testing.assert_allclose(grad(lambda x: p(x, x.detach())[0].sum())(x).numpy(), [0.1, 0.1, 0.1], rtol=1e-6)


@pytest.mark.parametrize(
  "f",
  [
    lambda x: (x * 2).realize() + x,
    lambda x: x * x.sum().item(),
    lambda x: x * x[0].item(),
    lambda x: x * 2 if x[0] > 0 else x,
    lambda x: jit(lambda x: x * 3)(x),
    lambda x: mini.parse(HALVES)(x),
  ],
)
def test_a_function_that_asks_for_a_value_is_refused(f):
  with pytest.raises(ArgumentError, match="asks for a value"):
    mini.compile(f, Tensor([1.0, 2.0, 3.0, 4.0]))


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
    (lambda p: p.replace("*", recipe=3), ArgumentError, "are text"),
    (lambda p: p.replace(3, recipe="par i"), ArgumentError, "are text"),
    (lambda p: mini.recipes({"*": None}), ConfigError, "are text"),
    (
      lambda p: mini.compile(lambda x: x, Tensor.ones(4, 2).shard(("CPU", "CPU:1"), 0)),
      ArgumentError,
      "several devices",
    ),
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


# ---------------------------------------------------------------- docs/text.md


def test_the_document_runs(capsys):
  blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
  assert len(blocks) == 4
  exec("\n".join(blocks), {})  # noqa: S102 (they are ours)
  assert len(re.findall(r"^[\d.]+ ms$", capsys.readouterr().out, re.MULTILINE)) == 4


def test_the_document_has_the_grammar_all_operations_and_all_steps():
  for doc in (parser.__doc__, recipe.__doc__):
    assert doc.partition("\n\n")[2].strip("\n") in DOCUMENT
  rows = dict(re.findall(r"^\| `([\w.]+)` \| \w+ \| (.*?) \|", DOCUMENT, re.MULTILINE))
  rows = {name.partition(".")[0]: attribute.strip("`") for name, attribute in rows.items()}
  assert rows.keys() == OPS.keys() - {"buffer", "invoke"}
  assert {name: a for name, a in rows.items() if a} == ATTRIBUTES
