"""Code: random kernels in C compute what the interpreter computes - plain, and with recipes for 8 lanes and for 16."""

import re

import fuzz_graph
import numpy as np
import pytest
from fuzz_graph import program, scheduled
from fuzz_recipe import random_recipe

from mini import Device, Tensor, grad
from mini.codegen.autoschedule import Machine, write_recipe
from mini.codegen.linearize import linearize, places
from mini.codegen.recipe import apply
from mini.config import Context
from mini.engine.launch import Launchable, interface, interpret, random_array
from mini.engine.plan import nameless
from mini.engine.program import assumed, machine_of
from mini.ir.bounded import taken
from mini.ir.index import flatten
from mini.ir.interp import evaluate
from mini.ir.kernel import access, extent, guarded, kernel, params_of, stores
from mini.ir.uop import TRUE, closed, conjuncts, const, range_, rname, rsize, substitute, toposort
from mini.render import streams
from mini.render.c import render
from mini.text.parser import parse
from mini.text.printer import kernel_text
from mini.text.verifier import verify
from mini.types import dtypes, from_storage, to_storage
from runtime.base import Call
from runtime.compiler import QUICK

pytestmark = pytest.mark.skipif(Device.DEFAULT != "CPU", reason="these are tests of C")


class Case:
  """A random graph, its kernels with some kind of recipes, and what they should compute."""

  def __init__(self, seed, lanes, how):
    self.about = f"seed {seed}, {lanes} lanes, recipes: {how}, {fuzz_graph.F.name}"
    self.outputs, self.data, rng = program(seed, big=True)
    self.want = evaluate(list(self.outputs.values()), lambda u: self.data[u.arg[0]])
    plain, self.aliases = scheduled(self.outputs)
    made = {
      "none": lambda k: (k, ""),
      "heuristic": lambda k: write_recipe(k, Machine(lanes, threads=2)),
      "random": lambda k: random_recipe(rng, k),
    }[how]
    self.kernels = {}
    for n, k in enumerate(plain):
      tuned, _ = made(k)
      verify(tuned)
      name = f"s{seed}_{lanes}_{how}_{fuzz_graph.F.name}_{n}"
      self.kernels[name] = kernel(name, stores(tuned), closed(tuned))

  def run(self, library):
    """Runs the compiled kernels on memory of the device; what they computed."""
    opened = Device["CPU"]
    memory = {}
    slots, handles, calls = {}, [], []
    for k in self.kernels.values():
      for p in params_of(k):
        name, s = p.arg
        if name not in slots:
          slots[name] = len(handles)
          memory[name] = p
          handles.append(opened.alloc(max(1, p.dtype.itemsize * int(np.prod(s)))))
          if name in self.data:
            opened.upload(handles[-1], np.ascontiguousarray(to_storage(self.data[name], p.dtype)))
    for name, k in self.kernels.items():
      args = [(slots[p.arg[0]], 0) for p in params_of(k)] + [(-1, 0)] * guarded(k)
      calls.append(Call(library[name], args, extent(k), 1e9))  # as if it were worth all threads
    assert opened.shim.sequence(calls).run(handles) == 0
    found = []
    for name, w in zip(self.outputs, self.want):
      n = self.aliases.get(name, name)
      d = memory[n].dtype
      found.append(
        opened.download(handles[slots[n]], d.itemsize * w.size).view(d.np)[: w.size].reshape(w.shape)
      )
    return found

  def check(self, library):
    tolerance = 1e-9 if fuzz_graph.F is dtypes.float64 else 2e-4
    for name, got, want in zip(self.outputs, self.run(library), self.want):
      scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
      if not np.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        texts = "\n".join(map(kernel_text, self.kernels.values()))
        pytest.fail(f"{self.about}: {name} differs by {np.abs(got - want).max()}\n{texts}")


def agree(seeds, lanes, hows, dtype, monkeypatch):
  """All kernels are compiled in two sources, quickly: only what they compute is looked at."""
  monkeypatch.setattr(fuzz_graph, "F", dtype)
  cases = [case for seed in seeds for how in hows if (case := Case(seed, lanes, how)).outputs]
  units = [cases[n::2] for n in range(2)]
  sources = [
    f"{QUICK}\n{render({n: k for c in unit for n, k in c.kernels.items()}, lanes)}" for unit in units
  ]
  for unit, library in zip(units, Device["CPU"].shim.compile_all(sources)):
    for case in unit:
      case.check(library)


@pytest.mark.parametrize(
  "dtype, lanes",
  [
    (dtypes.float32, 16),
    (dtypes.float64, 8),
    pytest.param(dtypes.float32, 8, marks=pytest.mark.full),
    pytest.param(dtypes.float64, 16, marks=pytest.mark.full),
  ],
  ids=str,
)
def test_random_kernels_in_c(dtype, lanes, monkeypatch):
  agree(range(16), lanes, ("heuristic", "random"), dtype, monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
def test_more_random_kernels_in_c(lanes, dtype, seed, monkeypatch):
  first = seed % (1 << 20)
  agree(range(first, first + 40), lanes, ("none", "heuristic", "random"), dtype, monkeypatch)


def zeros(*shape):
  return Tensor(np.zeros(shape, np.float32))


def gradient_of(form, by, stride=1, groups=1):
  """The derivative of a convolution by its input or its weight. form: images, channels, size, filters, kernel, padding."""
  n, c, size, filters, k, padding = form
  x, w = zeros(n, c, size, size), zeros(filters, c // groups, k, k)
  y = zeros(*x.conv2d(w, None, stride, padding, 1, groups).shape)
  return grad(lambda x, w: (x.conv2d(w, None, stride, padding, 1, groups) * y).sum(), by)(x, w)


def pooled_back(shape):
  x, y = zeros(*shape), zeros(*shape[:2], *(n // 2 for n in shape[2:]))
  return grad(lambda x: (x.max_pool2d(2) * y).sum())(x)


def rows_in_a_row(s, n):
  """The gradient of a table, with other numbers in one row."""
  at = Tensor(np.zeros(n, np.int64))
  g = grad(lambda table: (table[at] * zeros(n, *s[1:])).sum())(zeros(*s))
  return Tensor.cat(zeros(5), g.reshape(-1))


RECIPES = {  # a kernel that has these steps with 8 lanes, and with 16
  "rows of an image, each vector for itself": (lambda: zeros(2, 5, 18, 40).conv2d(zeros(7, 5, 3, 3), None, 1, 1), "; unroll k2.0; "),
  "channels": (lambda: zeros(24, 32, 9, 9).conv2d(zeros(32, 32, 5, 5)), "order k k2 k1; "),
  "channels, padded": (lambda: gradient_of((24, 33, 6, 17, 5, 0), 0), "bound k1 finite"),
  "channels, without what is beyond a row": (lambda: gradient_of((24, 33, 11, 17, 5, 0), 0), "; bound n"),
  "channels, padded at both sides": (lambda: gradient_of((24, 32, 6, 32, 3, 1), 0), "order k1 k2 k; stage 0 over (k1 + m, k, k2"),
  "sums of channels": (lambda: gradient_of((4, 17, 8, 9, 3, 0), 1), "stage 0 over (k, k1 + m, k2 + n, lv)"),
  "sums of channels, 5x5": (lambda: gradient_of((2, 32, 9, 7, 5, 2), 1), "k1 + m, k2 + n, lv)"),
  "sums along": (lambda: gradient_of((2, 3, 13, 9, 3, 0), 1), "vec k1v"),
  "sums of windows in steps": (lambda: gradient_of((1, 3, 112, 32, 7, 3), 1, stride=2), "stage 0 over (m + k*2, n + k1*2) stack"),
  "every second, through a guard": (lambda: gradient_of((1, 3, 40, 3, 3, 1), 1, stride=2, groups=3), "vec k1v"),
  "places of a window": (lambda: gradient_of((2, 3, 28, 3, 3, 1), 1, groups=3), "unroll n; unroll m; split k2 "),
  "places, a row at a time": (lambda: gradient_of((1, 3, 37, 3, 5, 1), 1, stride=2, groups=3), "unroll n; split k1 "),
  "every second place": (lambda: gradient_of((2, 3, 57, 3, 3, 1), 0, stride=2, groups=3), "; unroll p"),
  "windows that overlap": (lambda: zeros(2, 3, 20, 37).conv2d(zeros(3, 1, 5, 3), None, 1, (2, 1), 1, 3), "; unroll qo"),
  "windows in steps": (lambda: zeros(2, 3, 40, 45).conv2d(zeros(3, 1, 3, 3), None, 2, 1, 1, 3), "unroll k1; split q "),
  "windows of a long row": (lambda: zeros(1, 2, 4, 300).conv2d(zeros(2, 1, 3, 7), None, 1, 3, 1, 2),  " -> qt, q overlap; unroll "),
  "windows of a short row": (lambda: zeros(2, 9, 6, 7).conv2d(zeros(9, 1, 3, 3), None, 1, 1, 1, 9), "; vec qv; unroll qo; "),
  "windows, their largest": (lambda: zeros(2, 3, 20, 37).max_pool2d(3, 1, 1), "unroll "),
  "rows near each other": (lambda: pooled_back((3, 33, 6, 6)), "vec iv"),
  "windows of rows": (lambda: zeros(3, 35, 6, 6).max_pool2d(2), "vec iv"),
  "rows of a large memory": (lambda: zeros(601, 507).sum(1), "unroll ia"),
  "a vector by the rows of a large matrix": (lambda: zeros(1, 520) @ zeros(520, 520).T, "unroll ja"),
  "a vector by the columns of a large matrix": (lambda: zeros(1, 1040) @ zeros(1040, 1040), "split k 16 -> ku, k"),
  "a vector by columns of whole lines": (lambda: zeros(1, 1024) @ zeros(1024, 1024), "around k1.3; unroll k.3"),
  "sums over heads": (lambda: zeros(2, 3, 4, 9, 64).permute(1, 3, 0, 2, 4).reshape(3, 9, 512).sum((0, 1)), "split l 64 -> lh, l; "),
  "sums over the rows of a large memory": (lambda: zeros(523, 601).sum(0), "around k."),
  "the largest over rows, block by block": (lambda: (zeros(3, 150, 801) * 2).amax(1), "order i lp l; "),
  "sums over rows of two large memories": (lambda: (zeros(40, 8191) * zeros(8191)).sum(0), " -> jp, j overlap; order jp j"),
  "rows that go where data say": (lambda: rows_in_a_row((30, 64), 23), "vec jv; par jo; order jo i"),
  "sums of rows": (lambda: zeros(9, 65, 3, 3).permute(1, 0, 3, 2).sum((1, 3)), "vec iv"),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.sample(2)
def test_families_of_recipes(lanes, rng):
  """Each is written for what it is for, and computes what the kernel does."""
  for name, (make, step) in RECIPES.items():
    found = []
    for n, k in enumerate(scheduled({"out": make().uop})[0]):
      k = nameless(k).kernel
      tuned, recipe = write_recipe(k, Machine(lanes, threads=2, registers=2 * lanes))
      found.append(recipe.replace("\n", "; "))
      tuned = kernel(f"family{n}", stores(tuned), closed(tuned))
      data = {m.name: random_array(m, interface(k), rng) for m in interface(k)}
      want, (got, _) = interpret(k, data), Launchable(tuned).run(data, 0)
      for m, w in want.items():
        assert np.allclose(got[m], w, rtol=1e-4, atol=1e-4 * (1 + abs(w).max())), (name, recipe)
    assert any(nameless_ranges(step) in nameless_ranges(recipe) for recipe in found), (name, found)


def nameless_ranges(text):
  """The letters of some ranges depend on what a graph was made of besides."""
  return re.sub(r"\b[l-q](?=[ouv]?\b)", "_", text)


def test_stores_past_the_caches(monkeypatch):
  """Only of what is large and not read; a row at an odd address falls back to plain stores."""
  copy = parse(COPY)
  big = substitute(copy, {r: range_("i", 1 << 23) for r in closed(copy)})
  for k, past in ((copy, False), (big, True)):
    source = render({"k": write_recipe(k, Machine(16))[0]}, 16)
    assert ("past_f32x16(" in source and "  FENCE();\n}" in source) == past
  monkeypatch.setattr(streams, "NON_TEMPORAL_BYTES", 0)
  agree(range(20, 26), 8, ("heuristic",), dtypes.float32, monkeypatch)


def test_narrow_types_past_the_caches(monkeypatch, rng):
  """Vectors of 1, 2 and 8 byte elements, and rows that begin at odd addresses."""
  monkeypatch.setattr(streams, "NON_TEMPORAL_BYTES", 0)
  for name in ("bool", "int8", "uint8", "int16", "float16", "bfloat16", "int32", "int64", "float64"):
    for columns in (512, 517):
      x = Tensor(np.zeros((13, columns)), name)
      k = nameless(scheduled({"out": x.flip(0).contiguous().uop})[0][0]).kernel
      tuned = write_recipe(k, Machine(16, threads=2))[0]
      tuned = kernel(f"past_{name}_{columns}", stores(tuned), closed(tuned))
      plain = name in ("bool", "float16", "bfloat16")  # a value of these is stored in a narrower form
      assert (f" past_{x.dtype.short}x" in render({"k": tuned}, 16)) != plain, name
      data = {m.name: random_array(m, interface(k), rng) for m in interface(k)}
      want, (got, _) = interpret(k, data), Launchable(tuned).run(data, 0)
      for m, w in want.items():
        np.testing.assert_array_equal(got[m], w)


def test_what_streams_is_read_ahead(monkeypatch):
  """Once for each line of large memory, by the first reader that goes on far enough, or by one that computes more; never
  what is read again."""
  rows = {
    "a copy": (lambda x: x * 2, 2),
    "rows, read twice": (lambda x: x.softmax(1), 2),
    "pieces of rows, read twice": (lambda x: x[:, :320].softmax(1), 4),
    "pieces of rows, 16 at a time": (lambda x: x.reshape(64, 16, 512)[..., :256].sum(1), 16),
    "longer pieces": (lambda x: x.reshape(64, 8, 2, 512)[:, :, 0].sum(1), 0),
    "columns, 8 vectors a row": (lambda x: x[:, :128].sum(0), 8),
    "rows, in eight places": (lambda x: x.sum(1), 8),
    "pieces of rows": (lambda x: x[:640, :192].sum(1), 4),
    "a product of columns": (lambda x: x.T @ x, 1),
    "a product": (lambda x: x @ x.T, 6 + 1),  # the next tile's rows, and a line at a time of the next panel
    "a product and a row": (lambda x: x @ w + w[0], 6 + 1),
    "a product and what is as large": (lambda x: x @ w + x, 6 + 1 + 1),  # a line of a tile at a time
    "a product where that is positive": (lambda x: (x > 0).where(x @ w, 0.0), 6 + 1 + 1),
    "a short product and what is as large": (
      lambda x: x[:, :8] @ w[:8] + x,
      6 * 2 + 1,
    ),  # of a tile, before the sum
  }
  x, w = (Tensor(np.zeros((n, 512), np.float32)) for n in (1024, 512))
  for name, (f, lines) in rows.items():
    first = nameless(scheduled({"out": f(x).uop})[0][0]).kernel
    asks = {"a copy": "AHEAD", "rows, read twice": "AHEAD", "rows, in eight places": "AHEAD"}
    source = render({"k": write_recipe(first, Machine(16))[0]}, 16)
    found = re.findall(rf" {asks.get(name, '__builtin_prefetch')}\(a(.*)\);", source)
    assert len(found) == lines == len(re.findall(r"(?:AHEAD|prefetch)\(a", source)), name
    cache = ", 2" if name == "rows, in eight places" else ", 3"
    assert all(line.endswith(cache) == (name in asks) for line in found), name
  rows = nameless(scheduled({"out": x.sum(1).uop})[0][0]).kernel
  source = render({"k": write_recipe(rows, Machine(16, streams=4))[0]}, 16)
  found = re.findall(r"(?:AHEAD|prefetch)\(a.*", source)
  assert len(found) == 4 and all(line.endswith(", 2);") for line in found), "rows, in four places"
  assert source.count("f32x8 acc") == 4 and "f32x16 " not in source.split("void k(")[1], "in half lines"
  rows = nameless(scheduled({"out": x.softmax(1).uop})[0][0]).kernel
  source = render({"k": write_recipe(rows, Machine(16))[0]}, 16)
  loop = next(part for part in source.split("for (")[1:] if " AHEAD(a" in part)
  assert " exp_f32x16(" in loop and "+ 2048, 3);" in loop  # four rows later
  pieces = nameless(scheduled({"out": x[:, :320].softmax(1).uop})[0][0]).kernel
  assert f"+ {7 * 512});" in render(
    {"k": write_recipe(pieces, Machine(16))[0]}, 16
  )  # seven rows later, 8 KiB of them
  added = nameless(scheduled({"out": (x @ w + x).uop})[0][0]).kernel
  *_, tile, inner = render({"k": write_recipe(added, Machine(16))[0]}, 16).split("for (")
  assert tile.count("prefetch(") == 0 and inner.count("prefetch(") == 8, "in the sum, not after it"
  asked, rest = inner.split("if ((k % 16) < 1) {")[1].split("}", 1)
  assert re.findall(r"\+ (\d+)\);", asked) == [f"{n * 512}" for n in range(6, 12)], (
    "each row of the next tile"
  )
  assert "prefetch(" not in rest
  monkeypatch.setattr(streams, "AHEAD_OF", 0)
  agree(range(20, 32), 8, ("heuristic",), dtypes.float32, monkeypatch)


TURNS = """kernel k(%a: out T[96], %b: in T[2, 48]) {
  %i = range 48
  %p = range 2
  %0 = load %b[%p, %i] : T
  %1 = mul %0, %0      : T
  store %a[%i*2 + %p], %1
  end over (%i, %p)
}"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64", "i8", "f16", "bf16"])
@pytest.mark.parametrize("case, shuffled", [("", True), (" if %i < 47", False), (" if %p < 1", False)])
def test_vectors_for_every_second_place_are_stored_in_turns(dtype, case, shuffled):
  """Both at once, where no condition is between them."""
  k = parse(TURNS.replace("T", dtype).replace("], %1", f"], %1{case}"))
  tuned = apply(k, "split i 16 -> io, iv\nvec iv\nunroll p")
  assert ("SHUFFLE(x[0], x[1], 0" in render({"k": tuned}, 16).split("void k(")[1]) == shuffled
  data = {m.name: random_array(m, interface(k), np.random.default_rng(3)) for m in interface(k)}
  want, (got, _) = interpret(k, data), Launchable(tuned).run(data, 0)
  for m, w in want.items():
    np.testing.assert_array_equal(got[m], w)


BESIDE = """kernel k(%y: out f32[64, 48], %x: in f32[64, 32], %w: in f32[32, 48], %b: PLACE f32[64, 48]) {
  %i = range 64
  %j = range 48
  %k = range 32
  %0 = load %b[%i, %j]         : f32
  %1 = load %x[%i, %k]         : f32
  %2 = load %w[%k, %j]         : f32
  %3 = mul %1, %2              : f32
  %4 = reduce.add %3 over (%k) : f32
  %5 = add %0, %4              : f32
  store %y[%i, %j], %5
  end over (%i, %j)
}"""
BEFORE = (
  BESIDE.replace("%b[%i, %j]", "%b[%i, 0] ")
  .replace("mul %1", "mul %6")
  .replace("  %3 =", "  %6 = add %1, %0            : f32\n  %3 =")
)  # the sum needs it, too
INOUT, CHANGE = BESIDE.replace("PLACE", "inout"), "  store %b[%i, %j], 1.0\n"
AFTERWARDS = INOUT.replace("  end", CHANGE + "  end")
SIGNS = (
  BESIDE.replace("PLACE", "in")
  .replace("add %0, %4 ", "where %6, %4, 0.0")
  .replace("  %5 =", "  %6 = lt 0.0, %0              : bool\n  %5 =")
)  # what is made of it is wanted behind the sum, too


@pytest.mark.parametrize("text, behind", [(BESIDE, True), (BEFORE, False), (AFTERWARDS, True), (SIGNS, True)])
def test_what_is_added_to_a_sum_is_loaded_behind_it(text, behind):
  """Not where the sum needs it, nor where the kernel may have written over it by then."""
  k = parse(text.replace("PLACE", "in"))
  tuned = write_recipe(k, Machine(16))[0]
  body = render({"k": tuned}, 16).split("= args[3];")[1]
  load = re.search(r" = .*\bb(\[| \+)", body)
  assert (load.start() > body.rindex("for (long k")) == behind, body
  data = {m.name: random_array(m, interface(k), np.random.default_rng(3)) for m in interface(k)}
  want, (got, _) = interpret(k, data), Launchable(tuned).run(data, 0)
  for m, w in want.items():
    np.testing.assert_allclose(got[m], w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [64, 66, 100, 67])
def test_tiles_in_place_come_out_even(size):
  """One moved back to end at the edge would add to some sums twice."""
  k = parse(INOUT.replace("%y: out f32[64, 48], ", "").replace("%y", "%b").replace("64", str(size)))
  tuned, recipe = write_recipe(k, Machine(16))
  (rows,) = map(int, re.findall(r"split i (\d+) -> io, iu overlap\nunroll iu", recipe))
  assert rows == {64: 4, 66: 3, 100: 4, 67: 1}[size]
  data = {m.name: random_array(m, interface(k), np.random.default_rng(3)) for m in interface(k)}
  want, (got, _) = interpret(k, data), Launchable(tuned).run(data, 0)
  np.testing.assert_allclose(got["b"], want["b"], rtol=1e-4, atol=1e-4)


def test_no_load_passes_a_store_to_its_memory():
  k = write_recipe(parse(AFTERWARDS), Machine(16))[0]
  lines, place = linearize(k), places(k)
  sums = {place[u]: u for u in toposort(k) if u.op == "reduce"}
  (load,) = (x for x in lines if x.op == "load" and x.node.src[0].arg[0] == "b")
  (change,) = (x for x in lines if x.op == "store" and x.node.src[0].arg[0] == "b")
  assert streams.after_sums(lines, place, sums).index(load) > lines.index(load)
  lines.remove(change)
  lines.insert(lines.index(load) + 1, change)
  assert streams.after_sums(lines, place, sums) == lines


PANEL = "stage 1 over (k, jv) stack\n"
PACKED = {  # (terms of a product of 96 by 128, a recipe, how many of its stages are asked for)
  "a panel": (256, PANEL, 1),
  "both": (64, f"split io 8 -> iob, io\norder iob jo io\nstage 0 over (io, k, iu) stack\n{PANEL}", 2),
  "sums that wait": (
    256,
    f"split k 64 -> ko, k\nstage 0 over (io, k, iu) stack\n{PANEL}stage 3 over (jo, io, iu, jv) stack\naround ko.3",
    2,
  ),
  "more lines than steps": (8, f"{PANEL}split io 4 -> iob, io\norder iob jo io", 0),
  "two panels at once": (256, f"{PANEL}split jo 2 -> jo, jou\nunroll jou", 0),
  "nothing is packed": (256, "", 0),
}


@pytest.mark.parametrize("name", PACKED)
def test_what_will_be_packed_is_asked_for_once(name, monkeypatch):
  """Each line of the caches that the next round packs, and no other."""
  terms, recipe, count = PACKED[name]
  monkeypatch.setattr(streams, "AHEAD_OF", 0)
  a, b = (Tensor(np.zeros(s, np.float32)) for s in ((terms, 96), (terms, 128)))
  plain = nameless(scheduled({"out": (a.T @ b).uop})[0][0]).kernel
  tiles = "split j 32 -> jo, jv\nvec jv\nsplit i 6 -> io, iu\nunroll iu\norder jo io iu jv\n"
  tuned = apply(plain, tiles + recipe)
  lines, asked = streams.prefetches(tuned, linearize(tuned))
  place = places(tuned)
  stages = [u for u in toposort(tuned) if u.op == "stage" and u.src[0] in asked]
  assert len(stages) == count == sum(x.op == "next" for x in lines)
  for stage in stages:
    load, outside = stage.src[0], place[stage]
    when, (at,) = asked[load]
    memory, index, _ = access(load)
    now = {r: const(rsize(r) // 2 - 1) for r in outside}  # some round, and the one after it
    after = {**now, outside[-1]: const(rsize(outside[-1]) // 2)}
    found = lines_at(substitute(at, now), substitute(when, now))
    want = lines_at(substitute(flatten(index, memory.arg[1]), after), TRUE)
    assert sorted(found) == sorted(set(want))


BESIDE = {  # (terms, recipe): {lines of a tile of 6 x 32 that are asked for in one sum}
  (64, ""): 12,
  (13, ""): 12,
  (64, "split k 8 -> ko, k\n"): 12,
  (11, ""): 0,
}


@pytest.mark.parametrize("case", BESIDE)
def test_what_a_sum_waits_for_is_asked_for_once(case, monkeypatch):
  """Each line of the tile that is added to a sum, and no other, while that is computed; not where it is too short."""
  terms, recipe = case
  monkeypatch.setattr(streams, "AHEAD_OF", 0)
  a, b, c = (Tensor(np.zeros(s, np.float32)) for s in ((96, terms), (terms, 128), (96, 128)))
  plain = nameless(scheduled({"out": (a @ b * c).uop})[0][0]).kernel
  tiles = "split j 32 -> jo, jv\nvec jv\nsplit i 6 -> io, iu\nunroll iu\norder jo io iu jv\n"
  tuned = apply(plain, tiles + recipe)
  lines, asked = streams.prefetches(tuned, linearize(tuned))
  (load,) = (x.node for x in lines if x.op == "load" and access(x.node)[0].arg[1] == (96, 128))
  assert sum(x == ("ask", load) for x in lines) == (0 if BESIDE[case] else 1)
  assert (load in asked) == (BESIDE[case] > 0)
  if load in asked:
    when, (at,) = asked[load]
    now = {r: const(1) for r in places(tuned)[load]}
    found = lines_at(substitute(at, now), substitute(when, now))
    assert len(found) == BESIDE[case]
    assert sorted(found) == sorted(set(lines_at(substitute(flatten(access(load)[1], (96, 128)), now), TRUE)))


WINDOWS = {  # (stride, order, tile)
  "in steps of one": (1, "p qo qu", "split q 16 -> qo, qu\nunroll qu\n"),
  "in steps of two": (2, "p qo qu", "split q 8 -> qo, qu\nunroll qu\n"),
  "a row at once": (2, "p q", "unroll q\n"),
  "two rows at once": (1, "po pu q", "split p 2 -> po, pu\nunroll pu\nunroll q\n"),
  "past its end": (4, "p q", "unroll q\n"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_what_a_window_will_see_is_asked_for(name, monkeypatch):
  """Each line of the caches that the next round around the sum sees first, and none that it does not see."""
  stride, order, tile = WINDOWS[name]
  monkeypatch.setattr(streams, "AHEAD_OF", 0)
  x, w = (Tensor(np.zeros(s, np.float32)) for s in ((2, 4, 40, 34), (16, 4, 3, 3)))
  plain = nameless(scheduled({"out": x.conv2d(w, stride=stride).uop})[0][0]).kernel
  tuned = apply(plain, f"vec l\n{tile}order i {order} l\n")
  lines = linearize(tuned)
  (load,) = (x.node for x in lines if x.op == "load" and access(x.node)[0].arg[1] == (2, 4, 40, 34))
  assert load not in streams.prefetches(tuned, lines)[1]  # a near cache holds all of it
  monkeypatch.setattr(streams, "WINDOW_BYTES", 0)
  lines, asked = streams.prefetches(tuned, lines)
  assert (load in asked) == (stride < 3)
  assert sum(x == ("next", load) for x in lines) == (stride < 3)
  if load in asked:
    when, at = asked[load]
    outside = [r for r in places(tuned)[load] if rname(r) in ("i", "p", "po", "qo")]
    slid = next(r for r in outside if rname(r) in ("p", "po"))
    now = {r: const(1) for r in outside}
    index = flatten(access(load)[1], (2, 4, 40, 34))
    here, there = (set(lines_at(substitute(index, {**now, slid: const(n)}), TRUE)) for n in (1, 2))
    found = [lines_at(substitute(e, now), substitute(when, now)) for e in at]
    assert there - here <= {n for some in found for n in some} <= there
    assert len(found[0]) == 4 * stride * (2 if "pu" in order else 1)  # rows that are new, of 4 channels


def test_scattered_stores_are_asked_for(monkeypatch):
  """A line for each element of a vector across the rows, once in each sum; none where vectors lie in lines, or sums are long."""
  monkeypatch.setattr(streams, "AHEAD_OF", 0)
  a, b = (Tensor(np.zeros(s, np.float32)) for s in ((64, 96), (64, 128)))
  plain = nameless(scheduled({"out": (a.T @ b).uop})[0][0]).kernel
  for rows, lane, longest, count in (("j", "i", 64, 32), ("j", "i", 63, 0), ("i", "j", 64, 0)):
    monkeypatch.setattr(streams, "LONG_SUM", longest)
    tiles = f"split {lane} 32 -> o, v\nvec v\nsplit {rows} 8 -> r, u\nunroll u\norder o r u v\n"
    tuned = apply(plain, tiles)
    (store,) = stores(tuned)
    lines, asked = streams.prefetches(tuned, linearize(tuned))
    assert sum(x == ("next", store) for x in lines) == (count > 0) == (store in asked)
    if count:
      when, (at,) = asked[store]
      now = {r: const(1) for r in places(tuned)[store]}
      found = lines_at(substitute(at, now), substitute(when, now))
      want = lines_at(substitute(flatten(access(store)[1], (96, 128)), now), TRUE)
      assert len(found) == count and sorted(found) == sorted(set(want))
      assert "__builtin_prefetch(a0" in (source := render({"k": tuned}, 8)) and ", 1);" in source


def test_a_tile_across_the_rows_is_stored_line_by_line(rng):
  """What its vectors have in one line is stored at once: from a line to the next they would drive each other out."""
  a, b = (Tensor(np.zeros(s, np.float32)) for s in ((64, 96), (64, 128)))
  plain = nameless(scheduled({"out": (a.T @ b * 2).uop})[0][0]).kernel
  for rows, lane, across in (("j", "i", True), ("i", "j", False)):
    tiles = f"split {lane} 16 -> o, v\nvec v\nsplit {rows} 4 -> r, u\nunroll u\norder o r u v\n"
    tuned = apply(plain, tiles)
    stored = re.findall(r"(?<=for \(long )x(?= = 0; x < 8)|a0\[.*\] = x(\d+)\[x\];", render({"k": tuned}, 8))
    assert stored == (["", "0", "1", "2", "3"] * 2 if across else [])
    named = kernel("product", stores(tuned), closed(tuned))
    data = {m.name: random_array(m, interface(named), rng) for m in interface(named)}
    want, (got, _) = interpret(named, data), Launchable(named).run(data, 0)
    for name, w in want.items():
      np.testing.assert_allclose(got[name], w, rtol=1e-4, atol=1e-4)


def lines_at(index, when):
  """The lines of the caches at an index of 4-byte numbers, for all values of its ranges for which a condition holds."""
  ranges = sorted({r for e in (index, when) for r in toposort(e) if r.op == "range"}, key=rname)
  outer = {r: range(rsize(r)) for r in ranges}
  shape = [rsize(r) for r in ranges]
  at = np.broadcast_to(taken(index, outer)[0], shape)
  on = np.ones(shape, bool)
  for c in conjuncts(when):
    if c is not TRUE:
      on = on & (taken(c.src[0], outer)[0] < c.src[1].arg)
  return (at[on] // 16).tolist()


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_vectors_of_8_byte_integers_compare(kind, rng):
  info = np.iinfo(kind)
  edges = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2**31, 2**32 - 1, 2**32, 2**62]
  some = [x.ravel() for x in np.meshgrid(np.array(edges, kind), rng.integers(info.min, info.max, 99, kind))]
  for a, b in (some, some[::-1], some[:1] * 2):
    x, y = Tensor(a), Tensor(b)
    assert np.array_equal((x < y).numpy(), a < b) and np.array_equal((x != y).numpy(), a != b)
    assert np.array_equal(x.maximum(y).numpy(), np.maximum(a, b)) and np.array_equal(x.bool().numpy(), a != 0)


MOVED = {  # what is read backwards, or begins again at an end: with Tensor and with NumPy
  "flip": (lambda x: x.flip(-1), lambda a: a[..., ::-1]),
  "flip of a part": (lambda x: x[:, 3:].flip(1) + x[:, :-3], lambda a: a[:, :2:-1] + a[:, :-3]),
  "padded flip": (lambda x: x.flip(1).pad((5, 2)), lambda a: np.pad(a[:, ::-1], ((0, 0), (5, 2)))),
  "both axes": (lambda x: x.flip(0, 1), lambda a: a[::-1, ::-1]),
  "roll": (lambda x: x.roll(1, -1), lambda a: np.roll(a, 1, -1)),
  "roll back": (lambda x: x.roll(-70, 1), lambda a: np.roll(a, -70, 1)),
  "rolls": (
    lambda x: x.roll((3, 2), (0, 1)) + x.roll(-1, 1),
    lambda a: np.roll(a, (3, 2), (0, 1)) + np.roll(a, -1, 1),
  ),
  "roll and flip": (lambda x: x.roll(5, 1).flip(1), lambda a: np.roll(a, 5, 1)[:, ::-1]),
}


@pytest.mark.parametrize("what", MOVED)
@pytest.mark.parametrize("size", [64, 79, 384])
@pytest.mark.sample(12)
def test_vectors_backwards_and_around_an_end(what, size, rng):
  ours, numpys = MOVED[what]
  for d in ("float32", "float64", "int8", "int64", "bool", "float16"):
    a = rng.integers(0, 2 if d == "bool" else 60, (7, size)).astype(d)
    np.testing.assert_array_equal(ours(Tensor(a)).numpy(), numpys(a), err_msg=d)


@pytest.mark.parametrize("columns", [384, 43, 16])
@pytest.mark.parametrize("what, read", [("flip", "= backwards_"), ("roll", ") ? (f32x")])
def test_what_is_backwards_and_what_begins_again_is_read_in_vectors(what, read, columns, capsys):
  """Short rows, too."""
  x = Tensor.ones(7, columns).realize()
  with Context(SHOW="source", SEARCH=0):
    MOVED[what][0](x).realize()
  assert read in capsys.readouterr().err


def test_a_choice_by_order_is_the_same_to_the_bit():
  """It is an instruction that takes its second operand where neither is larger, or one is NaN."""
  edges = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -np.nan, 1e-45, 3e38], np.float32)
  a, b = (x.ravel() for x in np.meshgrid(edges, np.tile(edges, 4)))
  x, y, less = Tensor(a), Tensor(b), a < b
  for got, want in (
    ((x < y).where(x, y), np.where(less, a, b)),
    ((x < y).where(y, x), np.where(less, b, a)),
    ((y > x).where(y + 1, x), np.where(less, b + 1, a)),
    ((x < y).where(x, 0), np.where(less, a, np.float32(0))),
  ):
    assert np.array_equal(got.numpy().view(np.uint32), want.view(np.uint32))
  assert np.array_equal(x.maximum(y).numpy(), np.maximum(a, b), equal_nan=True)
  assert np.array_equal(x.minimum(y).numpy(), np.minimum(a, b), equal_nan=True)


# fmt: off
MADE = {  # graphs that went wrong once, or whose recipes are the long ones
  "a row within a sum of rows": lambda x: (x[:300, :300].softmax(1) * 300).sum(),
  "layer norm of a product":    lambda x: (x[:70, :50] @ x[:50, :90]).layer_norm((90,)),
  "odd matmul":                 lambda x: x[:97, :101] @ x[:101, :61],
  "matmul of a view":           lambda x: x[:64, :48].T.reshape(32, 96) @ x[:96, :80] + x[0, :80],
  "a row times a matrix":       lambda x: x[:1, :200] @ x[:200, :130],
  "matmul with a long inner axis": lambda x: x.reshape(12, -1)[:9, :7000] @ x.reshape(-1, 12)[:7000, :7],
  "max of a window":            lambda x: x.reshape(1, 1, 300, 301).max_pool2d(3).relu(),
  "a scan of a product":        lambda x: (x[:20, :30] @ x[:30, :40]).cumsum(0),
  "a transposed copy":         lambda x: x.T * 2 + x.T.exp(),
  "a transposed copy, small":  lambda x: x[:34, :17].T.contiguous() + x[:17, :34],
  "axes in another order":     lambda x: x.reshape(30, 10, 301).permute(2, 0, 1).contiguous() + 1,
  "rows of 3":                 lambda x: x[:, :300].reshape(-1, 3).softmax(1) * 9 + x[:, :3].argmax(1).max(),
  "largest of rows of 20":     lambda x: x[:, :300].reshape(-1, 20).amax(1) + x[:, 1:301].reshape(-1, 20).amin(1),
  "rows of 10":                lambda x: x[:, :300].reshape(-1, 10).softmax(1) + x[:, :10].argmax(1).max(),
  "scans":                     lambda x: x.cumsum(0) + x[:, :37].cumsum(1).sum() + x[:7].cumsum(1).mean(),
  "counters":                  lambda x: (Tensor.arange(301, dtype=x.dtype) * 0.5 - x).sum(1),
  "a sum of all columns":       lambda x: x.T.sum() + x[:150].reshape(-1, 3).sum(0).reshape(3, 1),
  "a sum over wide rows":       lambda x: x.reshape(30, -1).sum(0),
  "sums over both axes":        lambda x: x.sum(0) + x[:, 0].sum() + x.max(),
}
# fmt: on


@pytest.mark.sample(6)
@pytest.mark.parametrize("what", MADE)
def test_made_kernels(what):
  array = np.random.default_rng(0).standard_normal((300, 301)).astype(np.float32)
  made = MADE[what]
  got = made(Tensor(array))
  exact = evaluate(
    [made(Tensor(array.astype(np.float64))).uop], lambda u: u.arg[0].numpy().reshape(u.arg[1])
  )[0]
  scale = np.abs(exact).max()
  assert np.abs(got.numpy() - exact).max() <= 3e-6 * scale * np.sqrt(300)


def test_recipes_are_written_for_the_machine_that_MACHINE_describes():
  x = Tensor(np.random.default_rng(0).standard_normal((70, 200)).astype(np.float32))
  info = Device["CPU"].shim.info
  assert machine_of(info).registers == info.registers >= 16
  found = set()
  for lanes in (4, 8, 16):
    with Context(MACHINE=f"lanes={lanes},registers=16,l1=16K,l2=256K,threads=2"):
      m = machine_of(info)
      assert (m.lanes, m.registers, m.threads, m.l1_bytes) == (lanes, 16, 2, 16 << 10)
      assert assumed().l2_bytes == m.l2_bytes == 256 << 10
      found.add(write_recipe(nameless(parse(COPY)).kernel, machine_of(info))[1])
      np.testing.assert_allclose((x * 2).exp().numpy(), np.exp(x.numpy() * 2), rtol=1e-6)
  assert len(found) == 3


COPY = """kernel k(%y: out f32[1000], %x: in f32[1000]) {
  %i = range 1000
  %0 = load %x[%i] : f32
  store %y[%i], %0
  end over (%i)
}
"""


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16"])
def test_small_types_are_widened_exactly(name):
  """Every value that they have: as vectors, and one at a time in the last row."""
  d = getattr(dtypes, name)
  bits = np.arange(1 << 8 * d.itemsize).astype(f"u{d.itemsize}")
  bits = bits[:2] if d is dtypes.bool else bits
  want = from_storage(bits if d is dtypes.bfloat16 else bits.view(d.np), d).astype(np.float32)
  x = Tensor(np.resize(want, 65537)).cast(d).realize()
  assert np.array_equal((x.float() * 1).numpy(), np.resize(want, 65537), equal_nan=True)


def test_lanes_that_a_summed_value_does_not_depend_on():
  """It counts as often as there are lanes."""
  for kind in ("unroll", "vec"):
    for what in ("add", "max"):
      text = f"""kernel k(%y: out f32[3], %x: in f32[3, 5]) {{
  %i = range 3
  %j = range 5
  %k = range 8 {kind}
  %0 = load %x[%i, %j]              : f32
  %1 = reduce.{what} %0 over (%j, %k) : f32
  store %y[%i], %1
  end over (%i)
}}
"""
      data = {"x": np.arange(15, dtype=np.float32).reshape(3, 5)}
      k = parse(text)
      got, _ = Launchable(k).run(data, 0)
      assert np.array_equal(got["y"], data["x"].sum(1) * 8 if what == "add" else data["x"].max(1))
      assert np.array_equal(got["y"], interpret(k, data)["y"])
