"""The step `bound`, and loops with limits: in text, in the interpreter, in C, and what the verifier refuses."""

import numpy as np
import pytest

from mini.__main__ import main
from mini.codegen.recipe import RecipeError, apply
from mini.engine.launch import Launchable
from mini.ir.interp import run_kernel
from mini.text.lexer import TextError
from mini.text.parser import parse
from mini.text.printer import kernel_text as text
from mini.text.verifier import verify

ROWS = """kernel f(%y: out f32[50], %x: in f32[50, 50]) {
  %i = range 50
  %k1 = range 50
  %s = range 50
  %k = range 50
  %0 = load %x[%i, %s]                             : f32
  %1 = where %s - %i < 1, %0, -inf                 : f32
  %2 = stage %1 at [%s] over (%s) stack            : f32[50]
  %3 = load %2[%k1]                                : f32
  %4 = reduce.max %3 over (%k1)                    : f32
  %5 = load %2[%k]                                 : f32
  %6 = where %k - %i < 1, %5, 0.0                  : f32
  %7 = reduce.add %6 over (%k)                     : f32
  %8 = add %4, %7                                  : f32
  store %y[%i], %8
  end over (%i)
}
"""
TILES = "split i 4 -> io, iu overlap; unroll iu; split s 8 -> so, sv overlap; vec sv; split k1 8 -> k1o, k1v peel; vec k1v"
BELOW = ROWS.replace("%s - %i < 1", "%i - %s < 1").replace("%k - %i < 1", "%i - %k < 1")


def steps(recipe):
  return recipe.replace("; ", "\n")


def one(source):
  return parse(source)


@pytest.mark.parametrize("source", [ROWS, BELOW], ids=["from above", "from below"])
@pytest.mark.parametrize(
  "recipe",
  ["bound k; bound k1; bound s", f"{TILES}; bound k; bound k1o; bound k1.rest; bound so"],
  ids=["plain", "tiles"],
)
def test_what_it_skips_is_nothing(source, recipe):
  plain = one(source)
  if source is BELOW:  # the last columns are wanted by every tile
    recipe = recipe.replace("; bound k1.rest", "")
  kernel = apply(plain, steps(recipe))
  verify(kernel)
  assert text(kernel).count(" from ") == recipe.count("bound")
  assert one(text(kernel)) is kernel
  x = np.random.default_rng(0).standard_normal((50, 50)).astype(np.float32)
  results = []
  for k in (plain, kernel):
    data = {"x": x.copy()}
    run_kernel(k, data)
    results.append(data["y"])
  np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
  assert np.isfinite(results[1]).all()


@pytest.mark.parametrize("source", [ROWS, BELOW], ids=["from above", "from below"])
def test_in_c(source, tmp_path, capsys):
  path = tmp_path / "f.mini"
  path.write_text(source)
  rest = "bound k1.rest; " if source is ROWS else ""
  recipe = f"{TILES}; bound k; bound k1o; {rest}bound so; par io"
  assert main([str(path), f"--recipe={recipe}", "--test", "--dev=CPU"]) == 0
  assert main([str(path), f"--recipe={recipe}", "--show=uops"]) == 0
  shown = capsys.readouterr().out
  uops = parse(shown[shown.index("uops ") :])
  assert " from " in shown and uops.op == "uops"


REFUSALS = {
  "bound i": "for all values of %i is wanted",
  "bound s": "whatever the outer loops are at",
  "stage 0 over (i, s) stack; bound k; bound k1; bound s; bound s.0": "filled again for each %i",
  "vec k; bound k": "no plain loop",
  "bound k; split k 5 -> a, b": "bounded last",
  "bound k closely": "it is written: bound",
}


@pytest.mark.parametrize("recipe", REFUSALS)
def test_refusals(recipe):
  with pytest.raises(RecipeError, match=REFUSALS[recipe]):
    apply(one(ROWS), steps(recipe))


def test_a_factor_may_be_infinite():
  product = ROWS.replace("= where %k - %i < 1, %5, 0.0  ", "= where %k - %i < 1, %5, 0.0  ").replace(
    "reduce.add %6", "reduce.add %9"
  )
  product = product.replace("  %7 =", "  %9 = mul %6, %5  : f32\n  %7 =")
  with pytest.raises(RecipeError, match="nothing says"):
    apply(one(product), "bound k")
  assert "from 0 to" in text(apply(one(product), "bound k finite"))


ADDED = """kernel f(%y: inout f32[12, 8], %a: in f32[12, 12], %b: in f32[12, 8]) {
  %i = range 12
  %j = range 8
  %x = range 12
  %0 = load %a[%i, %x]              : f32
  %1 = where %x - %i < 1, %0, 0.0   : f32
  %2 = load %b[%i, %j]              : f32
  %3 = mul %1, %2                   : f32
  store.add %y[%x, %j], %3
  end over (%i, %j, %x)
}
"""


@pytest.mark.parametrize(
  "tile", ["", "split i 4 -> io, iu; unroll iu; order io x j; vec j; "], ids=["plain", "tiles"]
)
def test_what_is_added_to_memory_may_be_nothing(tile):
  kernel = apply(one(ADDED), steps(f"{tile}bound x finite"))
  verify(kernel)
  end = "%io*4 + 4" if tile else "%i + 1"
  assert f"%x = range 12 from 0 to {end}" in text(kernel) and one(text(kernel)) is kernel
  rng = np.random.default_rng(0)
  data = {n: rng.standard_normal(s, np.float32) for n, s in (("y", (12, 8)), ("a", (12, 12)), ("b", (12, 8)))}
  want = data["y"] + np.tril(data["a"]).T.astype(np.float64) @ data["b"]
  held = {n: x.copy() for n, x in data.items()}
  run_kernel(kernel, held)
  np.testing.assert_allclose(held["y"], want, rtol=1e-5, atol=1e-5)
  got, _ = Launchable(kernel).run(data, 0)
  np.testing.assert_allclose(got["y"], want, rtol=1e-5, atol=1e-5)


def test_what_is_stored_beside_what_is_added_is_wanted():
  both = ADDED.replace("  end", "  store %z[%i, %x, %j], %2\n  end").replace(
    "%y: inout", "%z: out f32[12, 12, 8], %y: inout"
  )
  for source, why in ((both, "is wanted"), (ADDED.replace("store.add", "store.mul"), "is wanted")):
    with pytest.raises(RecipeError, match=why):
      apply(one(source), "bound x finite")
  with pytest.raises(RecipeError, match="is wanted"):  # a factor may be infinite
    apply(one(ADDED), "bound x")


def test_what_is_read_through_a_guard():
  """As far as nothing is read, a sum may end: it adds zeros."""
  source = """kernel k(%c: out f32[8], %a: in f32[8], %b: in f32[3]) {
    %i = range 8
    %k = range 3
    %0 = load %a[%i + %k - 1] if %i + %k - 1 >= 0 && %i + %k - 1 < 8 : f32
    %1 = load %b[%k] : f32
    %2 = mul %0, %1 : f32
    %3 = reduce.add %2 over (%k) : f32
    store %c[%i], %3
    end over (%i)
  }"""
  assert " from " in text(apply(one(source), "bound k finite"))
  with pytest.raises(RecipeError, match="nothing says"):  # 0 * inf is nan
    apply(one(source), "bound k")


EDGES = """kernel k(%c: out f32[2, 11], %a: in f32[5, 11], %b: in f32[5, 3, 2]) {
  %j = range 2
  %i = range 11
  %n = range 5
  %k = range 3
  %0 = load %a[%n, %i + %k - 1] if %i + %k - 1 >= 0 && %i + %k - 1 < 11 : f32
  %1 = load %b[%n, %k, %j] : f32
  %2 = mul %0, %1 : f32
  %3 = reduce.add %2 over (%n, %k) : f32
  store %c[%j, %i], %3
  end over (%j, %i)
}"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("order", ["", "order k n; "])
@pytest.mark.parametrize("split", ["", "split i 4 -> io, i overlap; "])
def test_unrolled_lanes_that_add_nothing(split, order, tmp_path, capsys):
  """They are left out of the sum, not added as zeros: of a weight that is infinite, too. Where all rounds of the
  innermost loop leave out the same, it stands there once more, without branches, for where nothing is left out."""
  plain = one(EDGES)
  kernel = apply(plain, steps(f"{order}{split}unroll i; bound i finite"))
  verify(kernel)
  assert one(text(kernel)) is kernel and "= where %i" in text(kernel)
  rng = np.random.default_rng(0)
  data = {
    name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("a", (5, 11)), ("b", (5, 3, 2)))
  }
  results = []
  for k in (plain, kernel):
    mine = {**data, "c": np.zeros((2, 11), np.float32)}
    run_kernel(k, mine)
    results.append(mine["c"])
  apart = 1e-6 if order else 0  # another order of the sum
  np.testing.assert_allclose(results[0], results[1], rtol=apart, atol=apart)
  for tap, closed in ((0, 0), (2, 10)):
    data["b"] = np.ones((5, 3, 2), np.float32)
    data["b"][:, tap] = np.inf
    mine = {**data, "c": np.zeros((2, 11), np.float32)}
    run_kernel(kernel, mine)
    for c in (mine["c"], Launchable(kernel).run(data, 0)[0]["c"]):
      assert [i for i in range(11) if np.isfinite(c[:, i]).all()] == [closed]
  path = tmp_path / "f.mini"
  path.write_text(EDGES)
  recipe = f"{order}{split}unroll i; bound i finite; par j"
  assert main([str(path), f"--recipe={recipe}", "--test", "--dev=CPU"]) == 0
  assert main([str(path), f"--recipe={recipe}", "--show=source"]) == 0
  shown = capsys.readouterr().out
  assert "if ((" in shown and ("} else {" in shown) == bool(order)


def test_lanes_that_all_add_something():
  with pytest.raises(RecipeError, match="nothing says that lanes of %i"):  # 0 * inf is nan
    apply(one(EDGES), "unroll i\nbound i")
  with pytest.raises(RecipeError, match="nothing says that lanes of %j"):
    apply(one(EDGES), "unroll j\nbound j finite")
  with pytest.raises(RecipeError, match="no plain loop"):  # a vector's lanes go together
    apply(one(EDGES.replace("11", "16")), "vec i\nbound i finite")


LIMITED = ROWS.replace("%k = range 50", "%k = range 50 from 0 to %i + 1")
WRONG = {
  "may read what its stage did not write": ROWS.replace("%s = range 50", "%s = range 50 from 0 to %i + 1"),
  "may leave out what is wanted": ROWS.replace("%i = range 50", "%i = range 50 from 0 to 7"),
  "nothing closes %k1": ROWS.replace("%k = range 50", "%k = range 50 from 0 to %k1"),
}


@pytest.mark.parametrize("why", WRONG)
def test_the_verifier_refuses(why):
  with pytest.raises(Exception, match=why):
    verify(one(WRONG[why]))


# %n is a size that only a run knows: from there on nothing is added, and nobody reads what is stored.
SIZED = """kernel f(%y: out f32[50], %x: in f32[50, 50], %n: in i32[]) {
  %i = range 50
  %s = range 50
  %k = range 50
  %0 = load %x[%i, %s]                  : f32
  %1 = stage %0 at [%s] over (%s) stack : f32[50]
  %2 = cast %k                          : i32
  %3 = load %n[]                        : i32
  %4 = lt %2, %3                        : bool
  %5 = load %1[%k]                      : f32
  %6 = where %4, %5, 0.0                : f32
  %7 = reduce.add %6 over (%k)          : f32
  store %y[%i], %7
  end over (%i) if %i - %3 < 0
}
"""
BY_SIZE = {
  "bound i; bound k; bound s": 3,
  "split i 4 -> io, iu overlap; unroll iu; split k 8 -> ko, kv peel; vec kv; bound io; bound ko; bound k.rest; bound s": 4,
  "split s 8 -> so, sv overlap; vec sv; par i; bound k; bound so": 2,
}


@pytest.mark.parametrize("recipe", BY_SIZE)
def test_loops_end_where_a_size_does(recipe):
  kernel = apply(one(SIZED), steps(recipe))
  verify(kernel)
  assert text(kernel).count(" from ") == BY_SIZE[recipe]
  assert one(text(kernel)) is kernel
  x = np.random.default_rng(0).standard_normal((50, 50)).astype(np.float32)
  for n in (-9, 0, 1, 7, 8, 31, 49, 50, 99):
    y = np.full(50, np.nan, np.float32)
    run_kernel(kernel, {"y": y, "x": x, "n": np.array(n, np.int32)})
    end = max(0, min(n, 50))
    np.testing.assert_allclose(y[:end], x[:end, :end].sum(1), rtol=1e-5, atol=1e-6, err_msg=str(n))
    assert "bound i" not in recipe or n > 0 or np.isnan(y).all()


WRONG_SIZES = {
  "may leave out what is wanted": SIZED.replace("%i = range 50\n", "").replace(
    "  %0 = load",
    "  %8 = load %n[]                        : i32\n  %i = range 50 from 0 to %8 // 2\n  %0 = load",
  ),
  "data that is not the same everywhere": SIZED.replace("%n: in i32[]", "%n: in i32[50]")
  .replace("%3 = load %n[]", "%3 = load %n[%i]")
  .replace("  %k = range 50\n", "")
  .replace("  %4 = lt", "  %k = range 50 from 0 to %3\n  %4 = lt")
  .replace("  %2 = cast %k                          : i32\n", "")
  .replace("  %4 = lt %2, %3", "  %2 = cast %k                          : i32\n  %4 = lt %2, %3")
  .replace(" if %i - %3 < 0", ""),
  "may read what its stage did not write": SIZED.replace("  %s = range 50\n", "").replace(
    "  %0 = load",
    "  %8 = load %n[]                        : i32\n  %s = range 50 from 0 to %8 - 1\n  %0 = load",
  ),
}


@pytest.mark.parametrize("why", WRONG_SIZES)
def test_the_verifier_refuses_sizes(why):
  with pytest.raises(Exception, match=why):
    verify(one(WRONG_SIZES[why]))


def test_the_verifier_refuses_an_index_that_is_data():
  source = """kernel f(%y: out f32[9], %x: in f32[9], %at: in i32[9]) {
  %i = range 9
  %s = range 9 from 0 to %i + 1
  %0 = load %x[%s]                               : f32
  %1 = stage %0 at [%s] over (%s) stack          : f32[9]
  %2 = load %at[%i]                              : i32
  %3 = load %1[%2] if %2 >= 0 && %2 < 9          : f32
  store %y[%i], %3
  end over (%i)
}
"""
  with pytest.raises(TextError, match="may read what its stage did not write"):
    one(source)


def test_limits_depend_on_output_loops_alone():
  source = """kernel f(%y: out f32[4], %x: in f32[4, 6]) {
  %i = range 4
  %s = range 6
  %k = range 6 from %s to 6
  %0 = load %x[%i, %k] : f32
  %1 = reduce.add %0 over (%k) : f32
  %2 = reduce.add %1 over (%s) : f32
  store %y[%i], %2
  end over (%i)
}
"""
  with pytest.raises(TextError, match="%k: limits are for loops, by output loops"):
    one(source)
  one(source.replace("from %s", "from %i"))


def test_what_is_not_taken_is_not_added():
  """Limits mean what they say, whatever the body is."""
  kernel = one("""kernel f(%y: out f32[4], %x: in f32[6]) {
  %i = range 4
  %k = range 6 from %i - 1 to %i + 2
  %0 = load %x[%k] : f32
  %1 = reduce.add %0 over (%k) : f32
  store %y[%i], %1
  end over (%i)
}
""")
  data = {"x": 2.0 ** np.arange(6, dtype=np.float32)}
  run_kernel(kernel, data)
  assert data["y"].tolist() == [3, 7, 14, 28]
