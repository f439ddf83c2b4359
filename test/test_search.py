"""SEARCH and `tune`: what is searched for, how candidates that crash or hang are survived, and what is kept."""

import json
import os
import re
import sys
from functools import lru_cache

import fuzz_recipe
import numpy as np
import pytest

import mini
from mini import Device, Tensor
from mini.__main__ import BadCommand, main
from mini.codegen.autoschedule import Machine, write_recipe
from mini.codegen.recipe import apply
from mini.codegen.search import candidate, estimate, neighbours
from mini.config import Context, config
from mini.engine import realize, search
from mini.engine.cache import result_cache
from mini.engine.launch import difference
from mini.engine.plan import nameless
from mini.engine.program import machine_of
from mini.engine.search import Found, Timer, Timing, keep, known
from mini.text.parser import parse
from mini.text.printer import text

pytestmark = pytest.mark.skipif(Device.DEFAULT != "CPU", reason="recipes of the CPU are searched for")

PRODUCT = parse("""kernel k(%c: out f32[70, 90], %a: in f32[70, 50], %b: in f32[50, 90]) {
  %i = range 70
  %j = range 90
  %k = range 50
  %0 = load %a[%i, %k]         : f32
  %1 = load %b[%k, %j]         : f32
  %2 = mul %0, %1              : f32
  %3 = reduce.add %2 over (%k) : f32
  store %c[%i, %j], %3
  end over (%i, %j)
}""")
LONG = parse("""kernel k(%y: out f32[1], %x: in f32[4]) {
  %i = range 1
  %k = range 1000000
  %l = range 1000000
  %0 = load %x[(%k + %l) % 4]       : f32
  %1 = sin %0                       : f32
  %2 = reduce.add %1 over (%k, %l)  : f32
  store %y[%i], %2
  end over (%i)
}""")
MACHINE = Machine(threads=2)
HEURISTIC = """split j 16 -> jo, jv overlap
vec jv
split i 6 -> io, iu overlap
unroll iu
order jo io
stage 1 over (k, jv) stack
par io"""  # as one wrote it once


@pytest.fixture
def cache(tmp_path, monkeypatch):
  """A folder of its own, and nothing known."""
  monkeypatch.setattr(search, "_known", {})
  with Context(CACHE=str(tmp_path)):
    yield tmp_path


def times_of(ratio):
  """As if each recipe took this part of the heuristic's time; what is no number says why it does not count."""

  def times(kernel, base, recipes):
    for recipe in recipes:
      r = 1.0 if recipe == HEURISTIC else ratio(recipe)
      yield Timing(0, 0, r) if isinstance(r, str) else Timing(1e-3 * r, r)

  return times


# ---------------------------------------------------------------- candidates


def test_the_model_knows_what_is_hopeless():
  plain = estimate(PRODUCT, MACHINE)
  tiled = candidate(PRODUCT, HEURISTIC.splitlines(), MACHINE)
  assert tiled.cost < plain / 8
  apart = candidate(PRODUCT, ["split k 10 -> ko, ki", "vec ki"], MACHINE)  # b's rows are apart
  assert apart.cost > 3 * tiled.cost
  many = apply(PRODUCT, "split j 30 -> jo, jv\nunroll jv\nunroll i")  # accumulators
  assert estimate(many, MACHINE) > 2 * tiled.cost


def test_moves():
  near = neighbours(PRODUCT, HEURISTIC, MACHINE)
  steps = {line for c in near for line in c.recipe.splitlines()} - set(HEURISTIC.splitlines())
  for one in (
    "split i 4 -> io, iu overlap",
    "split j 32 -> jo, jv overlap",
    "unroll ku",
    "par jo",
    "stage 0 over (k, iu) stack",
  ):
    assert one in steps, f"{one} is not in {steps}"
  assert near == neighbours(PRODUCT, HEURISTIC, MACHINE) and len({c.kernel for c in near}) == len(near) > 20
  assert all(apply(PRODUCT, c.recipe) is c.kernel for c in near)


def test_what_begins_wide_has_candidates_too():
  """A packed panel may have more lanes than a move is allowed to make."""
  kernel = parse("""kernel k(%a0: out f32[64, 999], %a1: in f32[64, 768], %a2: in f32[999, 768]) {
    %i = range 64
    %l = range 999
    %k = range 768
    %0 = load %a1[%i, %k]        : f32
    %1 = load %a2[%l, %k]        : f32
    %2 = mul %0, %1              : f32
    %3 = reduce.add %2 over (%k) : f32
    store %a0[%i, %l], %3
    end over (%i, %l)
  }""")
  recipe = ["split l 64 -> lo, lv overlap", "vec lv", "stage 1 over (k, lv) stack", "split k.1 16 -> k.1o, k.1v overlap",
            "unroll lv.1", "vec k.1v", "par lo"]  # fmt: skip
  first = candidate(kernel, recipe, MACHINE)
  assert first and first.recipe.splitlines() == recipe
  assert neighbours(kernel, first.recipe, MACHINE)


@pytest.mark.parametrize("family", ["contraction", pytest.param("all", marks=pytest.mark.full)])
def test_every_candidate_computes_the_same(family, seed):
  for name in fuzz_recipe.FAMILIES if family == "all" else [family]:
    for wrong in fuzz_recipe.disagreements(name, seed, 60 if family == "all" else 12, recipe=one_move):
      pytest.fail(wrong)


def one_move(rng, k, groups):
  near = near_heuristic(k)
  c = rng.choice(near) if near else None
  return (c.kernel, c.recipe.splitlines()) if c else (k, [])


@lru_cache(1)
def near_heuristic(k):
  return neighbours(k, write_recipe(k, MACHINE)[1], MACHINE)


# ---------------------------------------------------------------- the search


def test_the_best_is_found_a_few_moves_away(monkeypatch):
  monkeypatch.setattr(search, "neighbours", lru_cache(neighbours))

  def ratio(recipe):
    return 1 - 0.2 * ("split i 4" in recipe) - 0.2 * ("unroll ku" in recipe) - 0.1 * ("split k 4" in recipe)

  found = search.search(PRODUCT, HEURISTIC, MACHINE, 40, times_of(ratio))
  assert "split i 4" in found.recipe and "split k 4" in found.recipe and found.ratio == pytest.approx(0.5)
  assert found == search.search(PRODUCT, HEURISTIC, MACHINE, 40, times_of(ratio))
  assert found.heuristic == HEURISTIC and found.seconds == 1e-3 and found.tried > 40


def test_a_small_gain_and_one_that_does_not_last_are_none():
  found = search.search(PRODUCT, HEURISTIC, MACHINE, 6, times_of(lambda r: 0.98))
  assert (found.recipe, found.ratio) == (HEURISTIC, 1)
  seen = set()

  def once(recipe):
    again = recipe in seen
    seen.add(recipe)
    return 1.01 if again else 0.5

  assert search.search(PRODUCT, HEURISTIC, MACHINE, 6, times_of(once)).recipe == HEURISTIC


def test_nothing_is_timed_where_there_is_nothing_new(monkeypatch):
  monkeypatch.setattr(search, "neighbours", lambda *args: [])
  asked = []

  def times(kernel, base, recipes):
    asked.append(len(recipes))
    return [Timing(1e-3, 1.0) for _ in recipes]

  assert search.search(PRODUCT, HEURISTIC, MACHINE, 6, times).tried == 0
  assert 0 not in asked


def test_by_how_much_results_differ():
  want, got = (np.array(x, np.float32) for x in ([3.0, -1.0, np.nan], [3.4, -1.0, np.nan]))
  assert difference(want, got) == pytest.approx(0.1) and difference(want, want) == 0
  assert (
    difference(want, np.float32([3, np.nan, np.nan]))
    == difference(want, np.float32([3, -1, 1]))
    == float("inf")
  )
  assert (
    difference(np.array([1, 2]), np.array([1, 3])) == 1.0 and difference(np.array([1]), np.array([1])) == 0.0
  )


def test_what_does_not_count_is_not_taken(cache):
  found = search.search(PRODUCT, HEURISTIC, MACHINE, 6, times_of(lambda r: "its result differs by 1.0e+00"))
  late = lambda k, base, recipes: (Timing(0, 0, "took more than 30 s, and was ended") for _ in recipes)
  assert search.search(PRODUCT, HEURISTIC, MACHINE, 6, late).seconds == 0
  search.found_for(PRODUCT, HEURISTIC, MACHINE, "cc", late, 6)
  assert known(search.result_key(PRODUCT, HEURISTIC, MACHINE, "cc")) is None
  assert found.recipe == HEURISTIC and len(found.refused) == found.tried >= 6
  assert "its result differs" in found.refused[0]


# ---------------------------------------------------------------- in another process


@pytest.mark.full
def test_a_recipe_that_takes_too_long_is_ended_and_the_next_one_is_timed():
  with Timer(1.5) as times:
    (slow,) = times(LONG, "", [""])
    assert "took more than 1.5 s, and was ended" in slow.why
    pid = times.process and times.process.pid
    found = list(times(PRODUCT, HEURISTIC, ["vec nothing", "par i", "split j 9 -> jo, ji\nunroll ji"]))
    assert times.process.pid != pid
  assert "no range %nothing" in found[0].why and not found[1].why and found[2].seconds > 0
  assert times.process is None


def test_a_crash_is_a_line_of_the_report(monkeypatch):
  monkeypatch.setattr(Timer, "command", (sys.executable, "-c", "import os; os.abort()"))
  with Timer(5) as times:
    found = list(times(PRODUCT, HEURISTIC, ["par i", "par j"]))
  assert [t.why for t in found] == ["crashed: SIGABRT"] * 2


def test_a_candidate_that_computes_something_else_does_not_count(monkeypatch):
  from mini.engine import timing

  monkeypatch.setattr(timing, "limit", lambda seconds: None)
  wrong = parse("""kernel k(%c: out f32[70, 90], %a: in f32[70, 50], %b: in f32[50, 90]) {
    %i = range 70
    %j = range 90
    %0 = load %a[%i, 0] : f32
    %1 = load %b[0, %j] : f32
    %2 = mul %0, %1 : f32
    store %c[%i, %j], %2
    end over (%i, %j)
  }""")
  monkeypatch.setattr(timing, "apply", lambda k, recipe: wrong if recipe == "par j" else apply(k, recipe))
  job = {"kernel": text(PRODUCT), "base": "", "recipes": ["par j", "par i"], "limit": 9}
  found = list(timing.answers(job))
  assert "its result differs by" in found[0].why and not found[1].why and 0 < found[1].ratio < 20


# ---------------------------------------------------------------- what is kept


def test_results_are_kept_and_damaged_ones_are_not_read(cache, monkeypatch):
  assert known("a kernel") is None and result_cache() is None
  for ratio in (0.9, 0.8):  # the last word
    keep("a kernel", Found("vec i", "", ratio, 1e-3))
  forget = lambda: search._known.clear()
  forget()
  assert known("a kernel").ratio == 0.8 and known("another") is None
  (path,) = (e.path for e in os.scandir(cache / "recipes"))
  forget()
  result_cache().put("no json", b"\xff{")
  result_cache().put(
    "no recipe", json.dumps({"recipe": 3, "heuristic": "", "ratio": 1, "seconds": 0}).encode()
  )
  assert known("no json") is None and known("no recipe") is None
  with open(path, "r+b") as f:
    f.write(b"?")
  assert known("a kernel") is None


def test_a_program_uses_what_is_known(cache, capfd):
  opened, machine = Device["CPU"], machine_of(Device["CPU"].shim.info)
  x = Tensor(np.arange(211 * 3, dtype=np.float32).reshape(211, 3))
  (k,) = fuzz_recipe.kernels_of((x * 7,))
  k = nameless(k).kernel
  heuristic = write_recipe(k, machine)[1]
  key = search.result_key(k, heuristic, machine, opened.shim.compiler.key(""))
  keep(key, Found("split j 3 -> mine, own\nunroll own", heuristic, 0.5, 1e-3))
  with Context(SHOW="kernel"):
    (x * 7).realize()
  assert "split j 3 -> mine, own; unroll own" in capfd.readouterr().err
  assert main(["cache"]) == 0 and f"{cache}/recipes: 1 entries" in capfd.readouterr().out
  made = opened.compiled[search.config.code, False][k]
  assert "mine" in made.recipe and "mine" in text(made.kernel)
  keep(key, Found("split nothing 3 -> a, b", heuristic, 0.5, 1e-3))
  with Context(MACHINE=f"lanes={machine.lanes}"):  # other kernels, the same machine
    assert ((x * 7).numpy() == x.numpy() * 7).all()
    assert opened.compiled[search.config.code, False][k].recipe == heuristic


def test_SEARCH_searches_once(cache, monkeypatch):
  asked = []

  def times(self, kernel, base, recipes):
    asked.extend(recipes)
    yield from (Timing(1e-3, 0.5 if "unroll" in r else 1.0) for r in recipes)

  monkeypatch.setattr(Timer, "__call__", times)
  x = Tensor(np.ones((123, 77), np.float32))
  with Context(SEARCH=3):
    assert (x.sum(0).numpy() == 123).all()
    assert len(asked) > 3
    asked.clear()
    search._known.clear()
    realize._programs.clear()
    realize._invoked.clear()
    Device["CPU"].compiled.pop((search.config.code, False))
    assert (x.sum(0).numpy() == 123).all()
    assert not asked and any(
      "unroll" in c.recipe for c in Device["CPU"].compiled[search.config.code, False].values()
    )


def test_tune(cache, monkeypatch, capsys):
  monkeypatch.setattr(Timer, "__call__", lambda self, k, base, recipes:
    (Timing(1e-3, 1.0 if r == base else 0.5 if "unroll" in r else 2.0, "" if "vec" in r else "crashed: SIGSEGV") for r in recipes))  # fmt: skip
  path = cache / "g.mini"
  path.write_text(
    "graph g(%x: f32[300, 40]) {\n  %0 = reduce.add %x {axes=[0]} : f32[1, 40]\n  return %0\n}\n"
  )
  assert main(["tune", str(path), "--width", "30"]) == 0
  out = capsys.readouterr().out
  assert "1000.0        500.0    0.50" in out and "+unroll" in out and "crashed: SIGSEGV" in out
  assert main(["tune", str(path), "--seconds", "0", "--again"]) == 0
  assert main(["tune"]) == 2
  with pytest.raises(BadCommand, match="there are pico, nano"):
    main(["tune", "--model", "gpt9"])


def test_tune_writes_what_recipes_reads(cache, monkeypatch, capsys):
  monkeypatch.setattr(Timer, "__call__", lambda self, k, base, recipes:
    (Timing(1e-3, 1.0 if r == base else 0.5 if "unroll" in r else 2.0, "") for r in recipes))  # fmt: skip
  program, pins = cache / "g.mini", cache / "recipes.mini"
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
