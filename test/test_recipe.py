"""Recipes: what applies keeps the kernel's meaning (fuzz_recipe.py), and what does not is refused with a reason."""

import re
import subprocess
import sys
from pathlib import Path

import fuzz_recipe
import golden_sources as golden
import numpy as np
import pytest
from fuzz_recipe import FAMILIES
from quickly import compile_quickly

from mini import Device
from mini.codegen.recipe import RecipeError, Tuning, apply
from mini.engine.launch import Launchable
from mini.ir.interp import run_kernel
from mini.render import render_for
from mini.text.parser import parse
from mini.text.printer import kernel_text, uops_program, uops_text
from mini.text.verifier import verify

pytestmark = pytest.mark.skipif(Device.DEFAULT != "CPU", reason="these are tests of C")


def kernel(params, ranges, lines, over):
  named = "\n".join(f"%{r}" for r in ranges)
  return parse(f"kernel k({params}) {{\n{named}\n{lines}\nend over ({over})\n}}")


PRODUCT = kernel("%c: out f32[10, 12], %a: in f32[10, 7], %b: in f32[7, 12]",
  ["i = range 10", "j = range 12", "k = range 7"], """%0 = load %a[%i, %k] : f32
  %1 = load %b[%k, %j] : f32
  %2 = mul %0, %1 : f32
  %3 = reduce.add %2 over (%k) : f32
  store %c[%i, %j], %3""", "%i, %j")  # fmt: skip
SCAN = kernel("%y: out f32[5, 8], %x: in f32[5, 8]", ["i = range 5", "j = range 8"], """%0 = load %x[%i, %j] : f32
  %1 = scan.add %0 along %j : f32
  store %y[%i, %j], %1""", "%i, %j")  # fmt: skip
SCATTER = kernel("%y: inout f32[9], %n: in i32[6], %x: in f32[6]", ["i = range 6"], """%0 = load %n[%i] : i32
  %1 = load %x[%i] : f32
  store.add %y[%0], %1 if %0 >= 0 && %0 < 9""", "%i")  # fmt: skip
UPDATE = kernel("%p: inout f32[10], %g: in f32[10]", ["i = range 10"], """%0 = load %p[%i] : f32
  %1 = load %g[%i] : f32
  %2 = add %0, %1 : f32
  store %p[%i], %2""", "%i")  # fmt: skip
ADDED = kernel("%y: inout f32[5, 16], %a: in f32[6, 5], %b: in f32[6, 16]",
  ["i = range 6", "j = range 16", "x = range 5"], """%0 = load %a[%i, %x] : f32
  %1 = load %b[%i, %j] : f32
  %2 = mul %0, %1 : f32
  store.add %y[%x, %j], %2""", "%i, %j, %x")  # fmt: skip

HELD = "stage 3 over (i, j) stack\naround k.3\n"  # the sums of PRODUCT, in memory

# fmt: off
REFUSED = [
  # what is no step
  (PRODUCT, "tile i 4",                         "there is no such step; there are split, widen, collapse"),
  (PRODUCT, "split i",                          "it is written: split R n -> a, b [overlap | any | peel]"),
  (PRODUCT, "split i 4 -> a b",                 "it is written"),
  (PRODUCT, "stage a over i stack",             "it is written: stage X over (R, ...) stack | shared"),
  (PRODUCT, "vec",                              "it is written"),
  (PRODUCT, "vec n",                            "no range %n in this kernel; there are i, j, k"),
  (PRODUCT, "stage 9 over (k) stack",           "%9 is loaded 0 times"),
  # sizes and names
  (PRODUCT, "split i 4 -> io, ii",              "4 does not divide %i = 10: overlap (kernel and stage ranges) or peel"),
  (PRODUCT, "split i 0 -> io, ii",              "0 is no size"),
  (PRODUCT, "split i 5 -> ii, ii",              "two ranges cannot both be called %ii"),
  (PRODUCT, "split i 5 -> j, ii",               "%j exists already"),
  (PRODUCT, "split i 16 -> io, ii overlap",     "16 does not divide %i = 10"),
  (PRODUCT, "split i 4 -> io, ii peel",         "4 does not divide"),  # a kernel range has no second part
  (PRODUCT, "split k 4 -> ko, ki overlap",      "4 does not divide"),  # a sum would count some twice
  (PRODUCT, "split k 16 -> ko, ki peel\nvec ki", "no range %ki"),      # all of it is the rest
  (PRODUCT, "widen i 16",                       "%i is no loop of a reduce"),
  (PRODUCT, "vec k\nwiden k 8",                 "%k is no loop of a reduce"),
  (PRODUCT, "widen k 7",                        "%k has 7 values already"),
  (PRODUCT, "widen k 8",                        "before %k there are not 1 values to read"),
  (PRODUCT, "split k 4 -> ko, ki peel\nwiden k.rest 8", "before %k.rest there are not 5 values to read"),
  # dependences
  (SCAN,    "vec j",                            "%j carries a scan: it stays a loop"),
  (SCAN,    "par j",                            "%j carries a scan"),
  (SCAN,    "split j 3 -> jo, ji overlap",      "%j carries a scan: it stays one loop"),
  (SCAN,    "split j 4 -> jo, ji",              "%j carries a scan: it stays one loop"),
  (SCAN,    "order j i",                        "%j carries a scan of %i, which stays outside of it"),
  (SCAN,    "collapse i j -> ij",               "the order of %i or %j matters"),
  (SCATTER, "par i",                            "stores of different %i may meet at one address: it stays a loop"),
  (SCATTER, "vec i",                            "may meet at one address"),
  (SCATTER, "unroll i",                         "may meet at one address"),
  (ADDED,   "vec i",                            "stores of different %i may meet at one address: it stays a loop"),
  (ADDED,   "par i",                            "may meet at one address"),
  (ADDED,   "split i 4 -> io, iu overlap",      "4 does not divide"),
  (ADDED,   "split i 3 -> io, iu\norder iu io", "the order of %io and %iu matters"),
  (SCATTER, "split i 4 -> io, ii overlap",      "4 does not divide"),  # some would be added twice
  (SCATTER, "split i 3 -> io, ii\norder ii io", "the order of %io and %ii matters"),
  (UPDATE,  "split i 4 -> io, ii overlap",      "4 does not divide"),  # some would be updated twice
  (UPDATE,  "stage p over (i) stack",           "%p is read at another index than it is written"),
  # kinds
  (PRODUCT, "par k",                            "%k is no output range: only those run in parallel"),
  (PRODUCT, "par i j",                          "one range runs in parallel, and there is one"),
  (PRODUCT, "vec i j",                          "depends on two vec ranges"),
  (PRODUCT, "vec j k",                          "depends on two vec ranges"),
  (PRODUCT, "around i",                         "%i is no loop of a plain reduce"),
  (PRODUCT, "around k",                         "%k is a loop of a reduce that no stage on the stack holds"),
  (PRODUCT, HELD + "split i.3 4 -> a, b overlap", "4 does not divide"),  # some would be added to twice
  (PRODUCT, HELD + "around i.3",                "%i.3 is no loop of a plain reduce"),
  (PRODUCT, "local i",                          "%i has 10 values, no power of two"),
  # stages
  (PRODUCT, "stage a over (j) stack",           "%a does not depend on %j"),
  (PRODUCT, "stage a over (i + k) stack",       "%a depends on %k not only through the sum"),
  (PRODUCT, "stage a over (i + k*2) stack",     "%a depends on %k not only through the sum"),
  (PRODUCT, "stage a over (i*2 + k) stack",     "an axis is a range, and others once or more: %i + ..."),
  (PRODUCT, "stage a over (i + k*0) stack",     "an axis is a range, and others once or more: %i + ..."),
  (PRODUCT, "stage a over (k) heap",            "a stage is in stack or in shared memory, not in heap"),
  (PRODUCT, "stage a over (k) shared",          "a stage in shared memory, but no range is local"),
  (PRODUCT, "inline a",                         "%a is no stage"),
  (PRODUCT, "move 3 stack",                     "%3 is no stage"),
  (PRODUCT, "matrix 8x8 f32 i i k",             "three ranges"),
  (PRODUCT, "matrix 8x8 f32 i j k",             "%i has 10 values, and 8x8 f32 takes 8: split it"),
  (PRODUCT, "collapse i k -> x",                "not next to each other in one owner"),
]
# fmt: on


@pytest.mark.parametrize("k, recipe, why", REFUSED, ids=[r.replace("\n", "; ") for _, r, _ in REFUSED])
def test_refused(k, recipe, why):
  with pytest.raises(RecipeError, match=re.escape(why)):
    apply(k, recipe)


def test_a_refused_step_changes_nothing():
  t = Tuning(PRODUCT)
  with pytest.raises(RecipeError):
    t.step("unroll i k nothing")
  assert t.kernel is PRODUCT
  t.step("split i 5 -> io, ii  # a comment")
  t.step("  ")
  assert t.kernel is apply(PRODUCT, "split %i 5 -> io,ii")


def test_a_split_into_ranges_of_one_name_was_taken_for_one_range():
  """Half of the rows were written, at twice their place."""
  with pytest.raises(RecipeError, match="both be called"):
    apply(PRODUCT, "split i 5 -> i, i")
  data = {"a": np.ones((10, 7), np.float32), "b": np.ones((7, 12), np.float32)}
  got, _ = Launchable(apply(PRODUCT, "split i 5 -> i, ii")).run(data, 0)
  assert (got["c"] == 7).all()


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["add", "mul", "max"])
@pytest.mark.parametrize(
  "steps",
  [
    "stage 3 over (i, j) stack\naround k.3",  # nothing of the sum is left within a round
    "split i 5 -> io, ii\nunroll ii\nvec j\nstage 1 over (k, j) stack\nstage 3 over (ii, j) stack\naround k.3\npar io",
    "split k 4 -> ko, ki\nvec j\nstage 1 over (ki, j) stack\nstage 3 over (i, j) stack\naround ko.3",
    "split k 2 -> ko, ki\nunroll ki\nstage 3 over (j) stack\norder ko.3 ki.3\naround ko.3",
    "split k 4 -> ko, ki\nsplit ki 2 -> kp, kq\nstage 3 over (i, j) stack\naround ko.3 kp.3\nsplit i.3 5 -> p, q\norder q p",
  ],
)
def test_sums_that_wait_in_memory_from_round_to_round(kind, steps):
  plain = kernel("%c: out f32[10, 12], %a: in f32[10, 8], %b: in f32[8, 12]",
  ["i = range 10", "j = range 12", "k = range 8"], f"""%0 = load %a[%i, %k] : f32
  %1 = load %b[%k, %j] : f32
  %2 = mul %0, %1 : f32
  %3 = reduce.{kind} %2 over (%k) : f32
  store %c[%i, %j], %3""", "%i, %j")  # fmt: skip
  tuned = apply(plain, steps)
  assert parse(kernel_text(tuned)) is tuned and " around" in kernel_text(tuned)
  program = uops_program(tuned)
  assert parse(uops_text(program)) is program and " around" in uops_text(program)
  values = np.random.default_rng(3)
  data = {"a": values.standard_normal((10, 8), np.float32), "b": values.standard_normal((8, 12), np.float32)}
  each = data["a"][:, :, None].astype(np.float64) * data["b"]
  want = {"add": np.sum, "mul": np.prod, "max": np.max}[kind](each, axis=1)
  got, _ = Launchable(tuned).run(data, 0)
  np.testing.assert_allclose(got["c"], want, rtol=1e-5, atol=1e-6)
  held = {**data, "c": np.zeros((10, 12), np.float32)}
  run_kernel(tuned, held)
  np.testing.assert_allclose(held["c"], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["add", "mul", "max"])
@pytest.mark.parametrize(
  "steps",
  [
    "split i 3 -> io, iu\nunroll iu\norder io x j\nvec j",
    "unroll i\nsplit j 8 -> jo, jv\nvec jv\norder jo x\npar jo",
    "order x i j\nunroll i\nvec j",
  ],
)
def test_lanes_that_meet_at_one_address_follow_each_other(kind, steps):
  """Rows of a tile are added to what is there: in registers, and in their order."""
  plain = parse(kernel_text(ADDED).replace("store.add", f"store.{kind}"))
  tuned = apply(plain, steps)
  assert parse(kernel_text(tuned)) is tuned and " unroll" in kernel_text(tuned)
  values = np.random.default_rng(4)
  data = {
    n: values.standard_normal(s, np.float32) for n, s in (("y", (5, 16)), ("a", (6, 5)), ("b", (6, 16)))
  }
  want = data["y"].copy()
  for i in range(6):
    want = {"add": np.add, "mul": np.multiply, "max": np.maximum}[kind](
      want, np.outer(data["a"][i], data["b"][i])
    )
  got, _ = Launchable(tuned).run(data, 0)
  np.testing.assert_allclose(got["y"], want, rtol=1e-5, atol=1e-6)
  held = {n: x.copy() for n, x in data.items()}
  run_kernel(tuned, held)
  np.testing.assert_allclose(held["y"], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["add", "mul", "max"])
def test_what_fills_no_vector_is_one_with_what_comes_before_it(kind):
  """What is read twice counts once: no infinity of a sum becomes NaN, no factor is squared."""
  plain = kernel("%y: out f32[5], %x: in f32[5, 31]", ["i = range 5", "k = range 31"], f"""%0 = load %x[%i, %k] : f32
  %1 = reduce.{kind} %0 over (%k) : f32
  store %y[%i], %1""", "%i")  # fmt: skip
  tuned = apply(plain, "split k 8 -> ko, kv peel\nvec kv\nwiden k.rest 8\nvec k.rest")
  assert parse(kernel_text(tuned)) is tuned and "%k.rest + 23" in kernel_text(tuned)
  x = np.random.default_rng(5).standard_normal((5, 31), np.float32)
  x[1, 23], x[2, 30], x[3, 23:25], x[4] = -np.inf, np.inf, (np.inf, -np.inf), -2
  with np.errstate(invalid="ignore"):
    want = {"add": np.sum, "mul": np.prod, "max": np.max}[kind](x.astype(np.float64), axis=1)
  got, _ = Launchable(tuned).run({"x": x}, 0)
  np.testing.assert_allclose(got["y"], want, rtol=1e-5)
  held = {"x": x, "y": np.zeros(5, np.float32)}
  with np.errstate(invalid="ignore"):
    run_kernel(tuned, held)
  np.testing.assert_allclose(held["y"], want, rtol=1e-5)


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_some_recipes(family, seed):
  for wrong in fuzz_recipe.disagreements(family, seed, 12):
    pytest.fail(wrong)


@pytest.mark.full
def test_many_recipes_for_each_family(seed):
  """In two processes: most of the time is Python's."""
  script, names = str(Path(fuzz_recipe.__file__)), list(FAMILIES)
  halves = [
    subprocess.Popen([sys.executable, script, str(seed), "300", *names[n::2]], stdout=subprocess.PIPE,
                     stderr=subprocess.STDOUT, text=True) for n in range(2)]  # fmt: skip
  try:
    for p in halves:
      said = p.communicate(timeout=1800)[0]
      assert p.returncode == 0, said
  finally:
    for p in halves:
      p.kill()


@pytest.mark.full
@pytest.mark.skipif(golden.CXX is None, reason="no C++ compiler found")
@pytest.mark.parametrize("family", FAMILIES)
def test_recipes_with_threads_that_share_memory(family, seed, monkeypatch):
  compile_quickly(monkeypatch)
  dev = ("CL", "CUDA", "METAL")[list(FAMILIES).index(family) % 3]
  for wrong in fuzz_recipe.emulated_disagreements(family, seed, 30, dev):
    pytest.fail(wrong)


@pytest.mark.skipif(golden.CXX is None, reason="no C++ compiler found")
def test_half_floats_in_shared_memory_of_an_emulation():
  """g++ guarded their first use, which the emulation took for an access of the kernel's."""
  k = kernel(
    "%y: out f16[8], %x: in f16[8]", ["i = range 8"], "%0 = load %x[%i] : f16\nstore %y[%i], %0", "%i"
  )
  shared = apply(k, "local i\nstage 0 over (i) shared")
  emulated = golden.Emulated(render_for("METAL", {"k": shared}), "METAL", check=True)
  got, error = emulated.run(shared, {"x": np.arange(8, dtype=np.float16), "y": np.zeros(8, np.float16)})
  assert error == 0 and (got["y"] == np.arange(8)).all()


def test_what_is_read_backwards_is_not_widened_beyond_its_end():
  """The values before a range are behind it then: a vector of four would read x[3] of three."""
  k = parse("""
kernel f(%y: out f32[1], %x: in f32[3]) {
  %k = range 2
  %0 = load %x[-%k + 1]       : f32
  %1 = reduce.max %0 over (%k) : f32
  store %y[0], %1
  end over ()
}""")
  with pytest.raises(RecipeError, match="before %k there are not 2 values to read"):
    apply(k, "widen k 4")
  assert verify(apply(k, "widen k 3")) is None
