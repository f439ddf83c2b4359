"""Threads of a group: digits, barriers, shared memory, sums over threads. What is rendered runs on emulated devices,
with races and overruns reported, and is compared with the interpreter."""

import re

import golden_sources as golden
import numpy as np
import pytest
from fuzz_graph import program, scheduled
from fuzz_recipe import random_recipe
from quickly import compile_quickly

from mini.codegen.recipe import RecipeError, apply
from mini.codegen.threads import digits, threads
from mini.engine.launch import interpret
from mini.ir.kernel import kernel, stores
from mini.ir.uop import closed, rname, toposort
from mini.render import render_for
from mini.render.cstyle import RenderError
from mini.text.parser import TextError, parse
from mini.text.printer import text, uops_program
from mini.types import dtypes
from runtime.base import DeviceError

GPUS = ("CL", "CUDA", "METAL")
GROUPS = [path for path in golden.programs() if any(map(threads, golden.kernels_in(path).values()))]
SOURCES = [
  pytest.param(path, dev, id=f"{path.stem}-{dev}")
  for path in GROUPS
  for dev in GPUS
  if not golden.source(path, dev).startswith(golden.COMMENT)
]
BARRIER = {
  "CL": r"barrier\(\w+( \| \w+)?\);",
  "CUDA": r"__syncthreads\(\);",
  "METAL": r"threadgroup_barrier\([^)]*\);",
}
pytestmark = pytest.mark.skipif(golden.CXX is None, reason="no C++ compiler found")

ROWS = """kernel rows(%a0: out f32[24], %a1: in f32[24, 4096]) {
  %i = range 24
  %k = range 4096
  %0 = load %a1[%i, %k]        : f32
  %1 = reduce.add %0 over (%k) : f32
  store %a0[%i], %1
  end over (%i)
}"""
MATMUL = """kernel mm(%c: out f32[64, 64], %a: in f32[64, 64], %b: in f32[64, 64]) {
  %i = range 64
  %j = range 64
  %k = range 64
  %0 = load %a[%i, %k]         : f32
  %1 = load %b[%k, %j]         : f32
  %2 = mul %0, %1              : f32
  %3 = reduce.add %2 over (%k) : f32
  store %c[%i, %j], %3
  end over (%i, %j)
}"""


@pytest.fixture(autouse=True)
def two_groups(monkeypatch):
  """Walk all rounds of the parallel loop, so that one follows another in the same memory."""
  extent = golden.extent
  monkeypatch.setattr(golden, "extent", lambda k: min(2, extent(k)))


def agrees(emulated, k, seeds=2, rtol=1e-5):
  rtol = 1e-3 if any(p.op == "param" and p.dtype is dtypes.float16 for p in toposort(k)) else rtol
  for seed in range(seeds):
    data = golden.random_inputs(k, seed, laced=False)
    got, error = emulated.run(k, data)
    assert error == 0
    for name, want in interpret(k, data).items():
      np.testing.assert_allclose(got[name], want, rtol=rtol, atol=rtol, err_msg=f"{k.arg.what} {name}")


# ---------------------------------------------------------------- which thread does what


def strides(k):
  return {rname(r): stride for r, stride in digits(k).items()}


def test_a_sum_takes_the_low_digits():
  k = apply(parse(ROWS), "split i 8 -> io, il\nlocal il\nsplit k 32 -> ko, kl\nlocal kl\npar io")
  assert strides(k) == {"kl": 1, "il": 32} and threads(k) == 256


def test_ranges_that_do_not_meet_share_digits():
  """What fills shared memory, and what reads it."""
  k = apply(
    parse(MATMUL),
    "local i\nsplit j 16 -> jo, ji\nlocal ji\nstage 1 over (k, ji) shared\nsplit k.1 64 -> ko, kl\nlocal kl",
  )
  assert strides(k) == {"ji.1": 1, "kl": 16, "ji": 1, "i": 16} and threads(k) == 1024


def test_one_owner_has_disjoint_digits():
  """A sum counts a value as often as there are threads, also where the value does not depend on them."""
  k = parse("""kernel k(%y: out f32[2], %x: in f32[2, 4]) {
  %i = range 2 local
  %k = range 4 local
  %n = range 8 local
  %0 = load %x[%i, %k]              : f32
  %1 = reduce.add %0 over (%k, %n)  : f32
  store %y[%i], %1
  end over (%i)
}""")
  assert strides(k) == {"n": 1, "k": 8, "i": 32}
  for dev in GPUS:
    agrees(golden.Emulated(render_for(dev, {"k": k}), dev, check=True), k)


def test_no_local_range_is_any_number_of_threads():
  assert threads(parse(ROWS)) == 0


@pytest.mark.parametrize("path", GROUPS, ids=lambda p: p.stem)
def test_text(path):
  for k in golden.kernels_in(path).values():
    assert parse(text(k)) is k and parse(text(uops_program(k))).src[0] is k
  with pytest.raises(RenderError, match="C has no (groups of threads|matrix instruction)"):
    render_for("CPU", {k.arg.what: k})


# ---------------------------------------------------------------- what runs


@pytest.mark.parametrize("path, dev", SOURCES)
@pytest.mark.sample(6)
def test_without_races(path, dev):
  kernels = golden.kernels_in(path)
  emulated = golden.Emulated(render_for(dev, kernels), dev, check=True)
  for k in kernels.values():
    agrees(emulated, k)


# some, of each device in turn, in a quick run: the barriers of the others stand at the same places
IN_TURN = [
  pytest.param(*s.values, id=s.id, marks=[] if n % 8 == 0 else pytest.mark.full)
  for n, s in enumerate(SOURCES)
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("path, dev", IN_TURN)
def test_no_barrier_is_idle(path, dev):
  """Without any one of them the emulation reports a race."""
  for name, k in golden.kernels_in(path).items():
    source = render_for(dev, {name: k})
    for m in re.finditer(BARRIER[dev], source):
      emulated = golden.Emulated(source[: m.start()] + source[m.end() :], dev, check=True)
      with pytest.raises(DeviceError, match="a race"):
        agrees(emulated, k, seeds=1)


KINDS = [
  ("f32", "add"),
  ("f64", "add"),
  ("f16", "add"),
  ("i8", "max"),
  ("bool", "max"),
  ("i64", "mul"),
  ("u16", "add"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("dev", GPUS)
def test_sums_of_every_type(dev):
  """Over digits in the middle of the thread's number: exchanged within a warp, and through shared memory."""
  kernels = {}
  for kind, how in KINDS:
    for n in (4, 128):
      name = f"sum_{kind}_{n}"
      kernels[name] = parse(f"""kernel {name}(%y: out {kind}[4, 2], %x: in {kind}[4, 2, {n}]) {{
  %i = range 4 local
  %u = range 2 unroll
  %k = range {n} local
  %0 = load %x[%i, %u, %k]                : {kind}
  %1 = reduce.{how} %0 over (%k)          : {kind}
  store %y[%i, %u], %1
  end over (%i, %u)
}}""")
  if dev == "METAL":
    kernels = {name: k for name, k in kernels.items() if "f64" not in name}
  emulated = golden.Emulated(render_for(dev, kernels), dev, check=True)
  for k in kernels.values():
    agrees(emulated, k, rtol=1e-2 if "f16" in k.arg.what else 1e-5)


def test_the_order_of_a_sum_is_that_of_its_threads():
  """With exchanges between threads, and without: to the last bit."""
  k = apply(parse(ROWS), "split i 2 -> io, il\nlocal il\nsplit k 256 -> ko, kl\nlocal kl\npar io")
  data = golden.random_inputs(k, 0, laced=False)
  found = [golden.Emulated(render_for(dev, {"rows": k}), dev).run(k, data)[0]["a0"] for dev in GPUS]
  assert np.array_equal(found[0], found[1]) and np.array_equal(found[1], found[2])


@pytest.mark.sample(2)
@pytest.mark.parametrize("dev", GPUS[:2])
def test_random_kernels(dev, request, monkeypatch):
  """Random graphs, with random recipes for groups; in float64, which Metal lacks."""
  compile_quickly(monkeypatch)
  first, kernels = request.config.option.seed, {}
  for seed in range(first, first + (400 if request.config.option.full else 40)):
    outs, _, rng = program(seed)
    for n, k in enumerate(scheduled(outs)[0]):
      k = random_recipe(rng, k, groups=True)[0]
      name = f"random_{seed}_{n}"
      if threads(k):
        kernels[name] = kernel(name, stores(k), closed(k))
  assert len(kernels) > 15 and any(" shared " in text(k) for k in kernels.values())
  twice = {
    name for name, k in kernels.items() if "min(" in text(k)
  }  # a split that overlaps writes the same value twice
  checked = golden.Emulated(
    render_for(dev, {n: k for n, k in kernels.items() if n not in twice}), dev, check=True
  )
  unchecked = golden.Emulated(render_for(dev, {n: kernels[n] for n in twice}), dev)
  for name, k in kernels.items():
    emulated = unchecked if name in twice else checked
    data = golden.random_inputs(k, 0, laced=False)
    if golden.guarded(k):  # no index is out of bounds
      data = {n: np.zeros_like(x) if x.dtype.kind == "i" else x for n, x in data.items()}
    got, error = emulated.run(k, data)
    assert error == 0
    for output, want in interpret(k, data).items():
      np.testing.assert_allclose(
        got[output], want, rtol=1e-9, atol=1e-9, err_msg=f"{name} {output}\n{text(k)}"
      )


# ---------------------------------------------------------------- matrix instructions


def test_a_product_of_tf32():
  """Of 10 bits of mantissa; a warp for each 16 rows, whose partial sums over two warps are added."""
  recipe = """split i 16 -> io, i
split j 8 -> jo, j
split k 8 -> ko, k
split ko 4 -> ko, kw
local kw
order io jo i j
split io 2 -> io, iw
local iw
order io jo iw i j
collapse io jo -> g
par g
matrix m16n8k8 tf32 i j k"""
  k = apply(parse(MATMUL), recipe)
  assert strides(k) == {"i1": 4, "j0": 1, "kw": 32, "iw": 128} and threads(k) == 256
  assert parse(text(k)) is k and parse(text(uops_program(k))).src[0] is k
  agrees(golden.Emulated(render_for("CUDA", {"mm": k}), "CUDA", check=True), k, rtol=3e-2)
  with pytest.raises(RenderError, match="OpenCL has no matrix instruction m16n8k8 tf32; it has none"):
    render_for("CL", {"mm": k})
  with pytest.raises(RenderError, match="it has 8x8 f32, 8x8 f16"):
    render_for("METAL", {"mm": k})


@pytest.mark.sample(4)
@pytest.mark.parametrize(
  "dev, instruction, tile",
  [("CUDA", "m16n8k16 f16", (16, 8, 16)), ("CUDA", "m16n8k16 bf16", (16, 8, 16)), ("METAL", "8x8 f16", (8, 8, 8)),
   ("METAL", "8x8 f32", (8, 8, 8))],
)  # fmt: skip
def test_a_product_by_each_instruction(dev, instruction, tile):
  """Which lane has which element of the operands and of the sum."""
  kind = instruction.split()[1]
  source = MATMUL.replace("%a: in f32", f"%a: in {kind}").replace("%b: in f32", f"%b: in {kind}")
  if kind != "f32":
    source = (
      source.replace("%0 = load %a[%i, %k]         : f32", f"%4 = load %a[%i, %k] : {kind}\n  %0 = cast %4 : f32")
      .replace("%1 = load %b[%k, %j]         : f32", f"%5 = load %b[%k, %j] : {kind}\n  %1 = cast %5 : f32")
    )  # fmt: skip
  splits = "".join(f"split {r} {n} -> {r}o, {r}\n" for r, n in zip("ijk", tile))
  k = apply(parse(source), f"{splits}order io jo i j\ncollapse io jo -> g\npar g\nmatrix {instruction} i j k")
  assert parse(text(k)) is k
  agrees(golden.Emulated(render_for(dev, {"mm": k}), dev, check=True), k, rtol=1e-2)


TILE = "split i 16 -> io, i\nsplit j 8 -> jo, j\nsplit k 8 -> ko, k\n"
MATRIX = "matrix m16n8k8 tf32 i j k"
NO_MATRIX = {
  "there is no matrix instruction m8n8k4 f64": (MATMUL, "matrix m8n8k4 f64 i j k"),
  "%i has 64 values, and m16n8k8 tf32 takes 16: split it": (MATMUL, MATRIX),
  "m16n8k16 f16 multiplies f16, cast to float32": (
    MATMUL,
    "split i 16 -> io, i\nsplit j 8 -> jo, j\nsplit k 16 -> ko, k\nmatrix m16n8k16 f16 i j k",
  ),
  "%k is no range of what is stored": (MATMUL, TILE + "matrix m16n8k8 tf32 i k j"),
  "a matrix instruction adds products": (MATMUL.replace("mul %0", "add %0"), TILE + MATRIX),
  "both factors depend on the rows": (MATMUL.replace("%b[%k, %j]", "%b[%i, %j]"), TILE + MATRIX),
  "does not depend on all of the tile": (MATMUL.replace("%b[%k, %j]", "%b[%k, 0]"), TILE + MATRIX),
  "%i1 is part of a matrix instruction": (MATMUL, TILE + MATRIX + "\nunroll i1"),
  "%i0 exists already": (MATMUL, TILE + "split io 4 -> io, i0\n" + MATRIX),
}


@pytest.mark.parametrize("reason", NO_MATRIX)
def test_refused_matrices(reason):
  source, recipe = NO_MATRIX[reason]
  with pytest.raises(RecipeError, match=re.escape(reason)):
    apply(parse(source), recipe)


# ---------------------------------------------------------------- what is refused

REFUSED = {
  "%i has 24 values, no power of two": (ROWS, "local i"),
  "4096 threads a group; at most 1024": (ROWS, "local k"),
  "%k is local: its threads share no stack": (MATMUL, "local k\nstage 0 over (k) stack"),
  "%k.0 fills memory of one thread": (MATMUL, "stage 0 over (k) stack\nlocal k.0"),
  "in stack or in shared memory, not in heap": (MATMUL, "stage 0 over (k) heap"),
  "%i carries a scan": (
    """kernel k(%y: out f32[8], %x: in f32[8]) {
  %i = range 8
  %0 = load %x[%i]         : f32
  %1 = scan.add %0 along %i : f32
  store %y[%i], %1
  end over (%i)
}""",
    "local i",
  ),
  "stores of different %i may meet": (
    """kernel k(%y: inout f32[8], %n: in i32[8], %x: in f32[8]) {
  %i = range 8
  %0 = load %n[%i] : i32
  %1 = load %x[%i] : f32
  store.add %y[%0], %1 if %0 >= 0 && %0 < 8
  end over (%i)
}""",
    "local i",
  ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_steps(reason):
  source, recipe = REFUSED[reason]
  with pytest.raises(RecipeError, match=re.escape(reason)):
    apply(parse(source), recipe)


LINES = """kernel k(%y: out f32[8], %x: in f32[8]) {{
  %i = range 8 {i}
  %s = range {n} {s}
  %0 = load %x[{at}]                           : f32
  %1 = stage %0 at [{cell}] over (%s) {space} : f32[{n}]
  %2 = load %1[{cell2}]                            : f32
  store %y[%i], %2
  end over (%i)
}}"""
WRONG = {
  "%s is local: 6 is no power of two": {"n": 6, "at": "%s", "cell": "%s"},
  "a thread sees no other's memory in stack": {"space": "stack"},
  "no range is local": {"i": "", "s": ""},
  "2048 threads; at most 1024": {"n": 256, "at": "%i"},
  "131072 bytes of shared memory; at most 49152": {"n": 32768, "s": "", "at": "%s % 8"},
  "a stored value has a lane that its index lacks": {"cell": "0"},
}


@pytest.mark.parametrize("reason", WRONG)
def test_refused_programs(reason):
  how = {"i": "local", "s": "local", "n": 8, "at": "%s", "cell": "%s", "cell2": "%i % 6", "space": "shared"}
  with pytest.raises(TextError, match=re.escape(reason)):
    parse(LINES.format(**{**how, **WRONG[reason]}))


def test_shared_memory_is_bounded_by_the_language():
  """Sums need some, too."""
  k = parse("""kernel k(%y: out f32[32], %x: in f32[32, 1024]) {
  %i = range 32 unroll
  %k = range 1024 local
  %0 = load %x[%i, %k]         : f32
  %1 = reduce.add %0 over (%k) : f32
  store %y[%i], %1
  end over (%i)
}""")
  with pytest.raises(RenderError, match="262144 bytes of shared memory; OpenCL has 32768"):
    render_for("CL", {"k": k})
