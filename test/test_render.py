"""Renderers: golden sources as text, what their compilers say of them, and what they compute: every operation on every
type, and every golden program, run on this machine by emulation and compared with the interpreter.

No test here runs on a GPU, and no Metal compiler exists off macOS: Metal's text is checked for its structure alone.
"""

import ctypes
import mmap
import re
import subprocess
from itertools import product

import golden_sources as golden
import numpy as np
import pytest
from fuzz_graph import program as random_program
from fuzz_graph import random_recipe

from mini import Tensor
from mini import __main__ as command
from mini.codegen.matrix import instruction_of
from mini.codegen.recipe import apply
from mini.config import Context
from mini.engine.launch import Launchable, interface, interpret
from mini.ir.composites import COMPOSITES, power_single
from mini.ir.interp import elementwise
from mini.ir.kernel import kernel, load, param, params_of, store, stores
from mini.ir.ops import OPS, is_elementwise
from mini.ir.uop import add, closed, const, mul, range_, toposort, uop
from mini.render import render_for
from mini.render.c import C
from mini.render.cstyle import Renderer, RenderError, is_multiple
from mini.render.cuda import CUDA
from mini.render.metal import METAL
from mini.render.opencl import OPENCL, on_processor
from mini.render.spelling import BASE, KINDS, held
from mini.schedule import schedule
from mini.text.parser import parse, parse_file
from mini.text.printer import text
from mini.types import MiniError, dtypes, from_storage, to_storage
from runtime.base import DeviceError

GPUS = ("CL", "CUDA", "METAL")
PROCESSOR = golden.PROCESSOR
LANGUAGES = {"CPU": C(8), "CL": OPENCL, PROCESSOR: on_processor(8), "CUDA": CUDA, "METAL": METAL}
needs_cc = pytest.mark.skipif(golden.CC is None, reason="no C compiler found")
needs_cxx = pytest.mark.skipif(golden.CXX is None, reason="no C++ compiler found")
needs_clang = pytest.mark.skipif(golden.CLANG is None, reason="no clang found")
needs_nvcc = pytest.mark.skipif(golden.NVCC is None, reason="no nvcc found")
DEVICES = [pytest.param("CPU", marks=needs_cc), *(pytest.param(dev, marks=needs_cxx) for dev in GPUS)]


def emulated_on(dev, kernels):
  """The kernels, ready to run: in OpenCL on a processor where there is a driver for it."""
  try:
    made = golden.Emulated(golden.rendered(kernels, dev), dev)
  except DeviceError as e:
    if dev == PROCESSOR and "OpenCL compiler failed" not in str(e):
      pytest.skip(str(e))
    raise
  if dev == PROCESSOR and made.shim.info.kind != "cpu":
    pytest.skip("OpenCL has a GPU here")
  return made


# ---------------------------------------------------------------- golden sources


@pytest.mark.parametrize("dev", golden.ENDING)
@pytest.mark.parametrize("path", golden.programs(), ids=lambda p: p.stem)
def test_golden_source(path, dev):
  assert golden.check(path, dev) == "ok"


@pytest.mark.sample(2)
@pytest.mark.parametrize("dev", [*DEVICES, PROCESSOR])
def test_golden_source_computes_what_the_kernel_means(dev):
  kernels = {}
  for path in golden.programs():
    if not golden.source(path, dev).startswith(golden.COMMENT):
      kernels.update(golden.kernels_in(path))
  emulated = emulated_on(dev, kernels)
  for k, seed, count in product(kernels.values(), range(3), (1, 3)):
    data = golden.random_inputs(k, seed, laced="cast" not in k.arg.what)
    got, error = emulated.run(k, data, count)
    assert error == 0
    for name, want in interpret(k, data).items():
      np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-6, err_msg=f"{k.arg.what} {name}")


@needs_cc
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int32, dtypes.float64, dtypes.int64], ids=str)
@pytest.mark.parametrize("width", [4, 8, 16])
def test_lanes_that_a_guard_shuts_out_touch_no_memory(width, dtype):
  """Vectors at both ends of a row that fills a page between two that may not be read."""
  page, d = mmap.PAGESIZE, dtype.short
  n = page // dtype.itemsize
  k = parse(f"""
kernel edges(%a0: out {d}[{n + 16}], %a1: in {d}[{n}]) {{
  %i = range {n + 16}
  %0 = load %a1[%i - 3] if %i - 3 >= 0 && %i - 3 < {n} : {d}
  store %a0[%i], %0
  end over (%i)
}}""")
  k = apply(k, f"split i {width} -> io, iv\nvec iv")
  source = render_for("CPU", {"edges": k}, width * dtype.itemsize // 4)
  assert source.count(f" : masked_{d}x{width}(") == 1
  pages = np.frombuffer(mmap.mmap(-1, 3 * page), np.uint8)
  row, out = pages[page : 2 * page].view(dtype.np), np.full(n + 16, -1, dtype.np)
  row[:] = range(1, n + 1)
  protect = ctypes.CDLL(None).mprotect
  for end in (pages, pages[2 * page :]):
    assert protect(ctypes.c_void_p(end.ctypes.data), ctypes.c_size_t(page), 0) == 0
  golden.Emulated(source, "CPU")._call(k, [out, row], 1)
  np.testing.assert_array_equal(out, np.pad(row, (3, 13)))


@pytest.mark.parametrize("dev", DEVICES)
def test_guard_sets_the_error_word(dev):
  (k,) = golden.kernels_in(golden.FOLDER / "gather.mini").values()
  data = golden.random_inputs(k, 0)
  for bad in (10, -1):
    data["a1"][2, 3] = bad
    _, error = golden.Emulated(render_for(dev, {k.arg.what: k}), dev).run(k, data)
    assert error >> 32 == 10 and np.int32(error & 0xFFFFFFFF if bad > 0 else -1) == bad
    assert error & 0xFFFFFFFF == bad & 0xFFFFFFFF


@pytest.mark.sample(3)
@pytest.mark.parametrize("dev", [*DEVICES[:3], PROCESSOR])
def test_random_kernels(dev, request):
  """Random graphs, with random recipes; in float64, which Metal lacks."""
  first, kernels = request.config.option.seed, {}
  for seed in range(first, first + (60 if request.config.option.full else 12)):
    outs, _, rng = random_program(seed)
    scheduled, _ = schedule(outs)
    for n, k in enumerate(scheduled):
      k = random_recipe(rng, k)[0]
      name = f"random_{seed}_{n}"
      k = kernel(name, stores(k), closed(k))
      try:
        golden.rendered({name: k}, dev)
        kernels[name] = k
      except RenderError as e:  # vectors of a size that this language has not
        assert "is not a multiple of" in str(e), e
  assert len(kernels) > 20
  emulated = emulated_on(dev, kernels)
  for name, k in kernels.items():
    data = golden.random_inputs(k, 0, laced=False)
    for m in interface(k):
      if m.where != "in" and m.where != "inout":
        data[m.name][...] = 0
    if golden.guarded(k):  # no index is out of bounds
      data = {n: np.zeros_like(x) if x.dtype.kind == "i" else x for n, x in data.items()}
    want = interpret(k, data)
    got, error = emulated.run(k, data, threads=2 if golden.extent(k) > 1 else 1)
    assert error == 0
    for output, x in want.items():
      np.testing.assert_allclose(got[output], x, rtol=1e-9, atol=1e-9, err_msg=f"{name} {output}")


# ---------------------------------------------------------------- every operation on every type

N = 96  # elements
FLOATS_ONLY = {
  "exp2",
  "log2",
  "sin",
  "sqrt",
  "exp",
  "log",
  "cos",
  "tanh",
  "erf",
  "erfc",
  "expm1",
  "atan",
  "rsqrt",
}
BITWISE = {"and", "or", "xor"}
ON_BOOL = {"add", "mul", "max", "lt", "ne", "and", "or", "xor", "where"}
TOLERANCE = {dtypes.float16: 2e-3, dtypes.bfloat16: 2e-2, dtypes.float32: 1e-6, dtypes.float64: 1e-12}


def takes(op, d):
  if op in ("threefry", "threefry2"):
    return d is dtypes.uint32
  if op in ("cast", "bitcast"):
    return False
  if d is dtypes.bool:
    return op in ON_BOOL
  if op == "round" and d.kind != "f" and d.itemsize == 8:  # NumPy's goes through float64
    return False
  return op not in (BITWISE if d.kind == "f" else FLOATS_ONLY)


CASES = [(op, d) for op in OPS if is_elementwise(op) for d in dtypes.all if takes(op, d)]


def operation_kernel(op, d, vec):
  """A kernel that stores op of its parameters: 8 lanes at a time, if `vec`."""
  i = range_("i", N // 8 if vec else N, "par")
  lane = range_("lane", 8, "vec")
  at = add(mul(i, 8), lane) if vec else i
  kinds = (dtypes.bool, d, d) if op == "where" else (d,) * OPS[op].arity
  sources = tuple(load(param(name, (N,), kind), (at,)) for name, kind in zip("xyzw", kinds))
  value = uop(op, dtypes.bool if OPS[op].result == "bool" else d, sources)
  out = param("out", (N,), value.dtype)
  return kernel(f"test_{op}_{d.short}", (store(out, (at,), value),), (i, lane) if vec else (i,))


def operands(op, d, seed):
  rng = np.random.default_rng(seed)
  if d.kind == "f":
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 88.0, -20.0]
    values = np.concatenate([rng.choice(edges, N // 2), rng.standard_normal(N - N // 2) * 3])
    return from_storage(to_storage(values.astype(np.float32), d), d)
  if d is dtypes.bool:
    return rng.integers(0, 2, N).astype(bool)
  low, high = np.iinfo(d.np).min, np.iinfo(d.np).max
  edges = np.array([low, high, 0, 1, 2, 3, 7, high - 1, low + 1, high // 3], d.np)
  small = rng.integers(0 if d.kind == "u" else -9, 10, N - N // 2).astype(d.np)
  return rng.permutation(np.concatenate([rng.choice(edges, N // 2), small]))


@pytest.mark.sample(15)
@pytest.mark.parametrize("dev", [*DEVICES, PROCESSOR, pytest.param("vectors", marks=needs_cc)])
def test_operation(dev, request):
  """Integers to the bit; floats to a few ulp, NaN and infinities where they belong."""
  vec, dev = dev in ("vectors", PROCESSOR), "CPU" if dev == "vectors" else dev
  cases = [(op, d) for op, d in CASES if d in LANGUAGES[dev].types]
  kernels = {f"test_{op}_{d.short}": operation_kernel(op, d, vec) for op, d in cases}
  emulated = emulated_on(dev, kernels)
  wrong = []
  for (op, d), k in zip(cases, kernels.values()):
    for seed in range(4 if request.config.option.full else 1):
      sources = [operands(op, d, 3 * seed + n) for n in range(OPS[op].arity)]
      if op == "where":
        sources[0] = sources[0] != sources[1]
      data = dict(zip("xyzw", sources))
      value = k.src[0].src[1]
      want = elementwise(value, sources)
      got = emulated.run(k, {**data, "out": np.zeros(N, want.dtype)})[0]["out"]
      rtol = TOLERANCE.get(value.dtype, 0)
      near = np.isclose(got, want, rtol, 1e-7 if rtol else 0, equal_nan=True) if rtol else got == want
      if not near.all():
        n = int(np.argmin(near))
        wrong.append(f"{op} {d.name} {[s[n] for s in sources]}: {got[n]}, not {want[n]}")
        break
  assert not wrong, "\n".join(wrong)


def test_every_operation_has_a_spelling():
  for language, (op, d) in product(LANGUAGES.values(), CASES):
    if d in language.types:
      for vec in {False, language.width > 1}:
        Renderer(operation_kernel(op, d, vec), language, "k").source()


@needs_cxx
def test_pow_without_float64(rng):
  """power_single, with sums of products rounded once where the compiler wishes."""
  i = range_("i", 1 << 16, "par")
  x, y, out = (param(name, (1 << 16,), dtypes.float32) for name in ("x", "y", "out"))
  value = uop("pow", dtypes.float32, (load(x, (i,)), load(y, (i,))))
  k = kernel("power", (store(out, (i,), value),), (i,))
  source = render_for("CL", {"power": k})
  assert "double" not in source
  emulated = golden.Emulated(source, "CL")
  a = rng.uniform(0.25, 4, 1 << 16).astype(np.float32)
  near = (1 + rng.integers(-4096, 4096, 1 << 16) * 2.0**-24).astype(np.float32)
  for base, exponent in (
    (a, rng.uniform(-70, 70, 1 << 16)),
    (near, 2.0 ** rng.uniform(0, 33, 1 << 16)),
    (-a, rng.integers(-60, 60, 1 << 16)),
  ):
    exponent = exponent.astype(np.float32)
    got = emulated.run(k, {"x": base, "y": exponent, "out": np.zeros_like(base)})[0]["out"]
    with np.errstate(all="ignore"):
      want = np.power(base.astype(np.float64), exponent)
    fits = np.abs(want) < 2.0**127
    got, want = got[fits], want[fits]
    unit = np.ldexp(1.0, np.clip(np.frexp(want)[1], -125, 128) - 24)
    assert (np.abs(got - want) / unit).max() <= 3.5 and fits.sum() > 1000
  assert ("pow", "f32", power_single) in OPENCL.rows and ("pow", "f32", power_single) in METAL.rows


# ---------------------------------------------------------------- what compilers say


def everything(dev, matrices=True):
  """Every golden kernel and every operation, as one source."""
  kernels = {}
  for path in golden.programs():
    if not golden.source(path, dev).startswith(golden.COMMENT):
      kernels.update(golden.kernels_in(path))
  if not matrices:
    kernels = {n: k for n, k in kernels.items() if not any(map(instruction_of, toposort(k)))}
  cases = [(op, d) for op, d in CASES if d in LANGUAGES[dev].types]
  return render_for(
    dev, {**kernels, **{f"test_{op}_{d.short}": operation_kernel(op, d, False) for op, d in cases}}
  )


@needs_clang
def test_opencl_is_accepted(tmp_path):
  """As OpenCL C 1.2, with float64 and no other extension."""
  flags = (
    "-x cl -cl-std=CL1.2 -Xclang -cl-ext=-all,+cl_khr_fp64 -target spir64 -Xclang -fdeclare-opencl-builtins"
  )
  flags += " -Xclang -finclude-default-header -fsyntax-only -Wall -Werror -Wno-unused-function -"

  def said(source):
    done = subprocess.run(
      [golden.CLANG, *flags.split()], input=source, text=True, capture_output=True, check=False
    )
    return done.stderr if done.returncode == 0 or done.stderr else "it failed"

  if said("__kernel void f(__global half *p) { vstore_half(1.0f, 0, p); }"):
    pytest.skip("the headers of clang 14 have vstore_half, which is part of OpenCL C, with cl_khr_fp16 alone")
  assert not said(everything("CL"))


@needs_nvcc
@pytest.mark.parametrize(
  "target", ["sm_80", *(pytest.param(t, marks=pytest.mark.full) for t in ("sm_75", "sm_90"))]
)
def test_cuda_is_accepted(tmp_path, target):
  (tmp_path / "k.cu").write_text(everything("CUDA", matrices=target != "sm_75"))  # which has none of ours
  command = [golden.NVCC, "--cubin", f"-arch={target}", "--Werror=all-warnings", "-diag-suppress=177"]
  done = subprocess.run(
    [*command, "-o", "k.cubin", "k.cu"], cwd=tmp_path, text=True, capture_output=True, check=False
  )
  assert done.returncode == 0, (done.stdout + done.stderr)[:2000]


def test_metal_is_well_formed():
  """Without a compiler: brackets pair up, every buffer has its number, and nothing of C's or of float64 is left."""
  source = everything("METAL")
  assert all(source.count(a) == source.count(b) for a, b in ("{}", "()", "[]"))
  assert not re.search(r"double|__builtin|__global|unsigned |long long|asm\(", source)
  heads = re.findall(r"kernel void (\w+)\((.*)\) \{", source)
  assert len(heads) == source.count("kernel void") > 200 and len({name for name, _ in heads}) == len(heads)
  for _, params in heads:
    buffers = [p for p in params.split(", ") if not p.startswith("uint ")]
    assert all(f"[[buffer({n})]]" in b and b.startswith("device ") for n, b in enumerate(buffers))
    grid = ["uint id [[thread_position_in_grid]]", "uint ids [[threads_per_grid]]"]
    group = ["uint group [[threadgroup_position_in_grid]]", "uint groups [[threadgroups_per_grid]]"]
    group.append("uint t [[thread_index_in_threadgroup]]")
    assert params.split(", ")[len(buffers) :] in (grid, group)


# ---------------------------------------------------------------- what a language cannot do


def test_a_missing_type_is_refused_by_name():
  with pytest.raises(RenderError, match="Metal has no float64"):
    render_for("METAL", {"k": operation_kernel("add", dtypes.float64, False)})


def test_too_many_buffers_are_refused():
  i = range_("i", 4)
  value = const(0.0, dtypes.float32)
  for n in range(32):
    value = uop("add", dtypes.float32, (value, load(param(f"a{n}", (4,), dtypes.float32), (i,))))
  k = kernel("k", (store(param("out", (4,), dtypes.float32), (i,), value),), (i,))
  with pytest.raises(RenderError, match="31 buffers at most; this kernel needs 33"):
    render_for("METAL", {"k": k})


@pytest.mark.parametrize("dev", DEVICES)
def test_names_that_the_language_uses(dev):
  """Ranges and parameters may be called like keywords and functions."""
  i, out = range_("sin", 4, "par"), param("float", (4, 3), dtypes.float32)
  j, x = range_("get_global_id", 3), param("exp2.x", (4, 3), dtypes.float32)
  value = uop("exp2", dtypes.float32, (uop("sin", dtypes.float32, (load(x, (i, j)),)),))
  k = kernel("names", (store(out, (i, j), value),), (i, j))
  data = golden.random_inputs(k, 0, laced=False)
  got, _ = golden.Emulated(render_for(dev, {"names": k}), dev).run(k, data)
  np.testing.assert_allclose(got["float"], interpret(k, data)["float"], rtol=1e-5)


@pytest.mark.parametrize("dev", DEVICES)
def test_a_load_that_never_happens(dev):
  k = parse("""kernel never(%y: out f32[4], %x: in f32[4]) {
  %i = range 4
  %0 = load %x[%i + 9] if false : f32
  store %y[%i], %0
  end over (%i)
}""")
  got, _ = golden.Emulated(render_for(dev, {"never": k}), dev).run(k, golden.random_inputs(k, 0))
  assert not got["y"].any()


FAR = "%i * 1000000007 + %j < 5000000036"
WIDE = {
  "a value": "%0 = cast %i * 1000000007 : i64",
  "a guard": f"%0 = load %x[%i] if {FAR} : i64",
  "a condition": f"%1 = load %x[%i] : i64\n  %0 = where {FAR}, %1, 0 : i64",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", WIDE)
@pytest.mark.parametrize("dev", DEVICES)
def test_indices_that_32_bits_do_not_hold(dev, what):
  """On the CPU as vectors."""
  k = parse(f"""kernel far(%y: out i64[8, 3], %x: in i64[8]) {{
  %i = range 8{" vec" * (dev == "CPU")}
  %j = range 3
  {WIDE[what]}
  store %y[%i, %j], %0
  end over (%j, %i)
}}""")
  data = golden.random_inputs(k, 0)
  got, _ = golden.Emulated(render_for(dev, {"far": k}), dev).run(k, data)
  np.testing.assert_array_equal(got["y"], interpret(k, data)["y"])


@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("dev", DEVICES)
def test_indices_below_zero_are_divided_towards_minus_infinity(dev, n):
  k = parse(f"""kernel floors(%q: out i32[{n}, 9], %r: out i32[{n}, 9]) {{
  %i = range {n}
  %j = range 9
  %0 = cast (%i*-2 + %j + 1) // 3 : i32
  %1 = cast (%i*-2 + %j + 1) % 3 : i32
  store %q[%i, %j], %0
  store %r[%i, %j], %1
  end over (%i, %j)
}}""")
  got, _ = golden.Emulated(render_for(dev, {"floors": k}), dev).run(k, golden.random_inputs(k, 0))
  i, j = np.ogrid[:n, :9]
  np.testing.assert_array_equal([got["q"], got["r"]], np.divmod(j + 1 - 2 * i, 3))


# ---------------------------------------------------------------- the tables


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=lambda x: x.name)
def test_rows_are_well_formed(language):
  """Every row names operations that exist, and can be reached: no row before it takes all that it takes. A row of
  the shared table may be replaced."""
  known = {*OPS, "fma", "load", "store", "shuffle", "inf", "nan", "larger", "smaller"}
  for rows in (language.rows, language.vector_rows):
    seen = {}
    for ops, types, spelled in rows:
      for op in ops.split():
        assert op in known, op
        left, _, right = types.partition(">")
        mine = {
          (a, b) for w in left.split() for a in KINDS[w] for v in (right or "any").split() for b in KINDS[v]
        }
        taken = seen.setdefault(op, set())
        assert mine - taken or (ops, types, spelled) in BASE, f"{op} {types} in {language.name}"
        taken |= mine
  assert set(language.types) <= {*dtypes.all, dtypes.index}
  assert all(held(d) in language.types for d in language.types if d is not dtypes.index)
  assert "threefry" in COMPOSITES


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
  "dev, word", [("CL", "__kernel"), ("CUDA", "__global__"), ("METAL", "[[buffer(0)]]")]
)
def test_show_source(dev, word, capsys):
  path = str(golden.FOLDER / "softmax.mini")
  assert command.main([path, "--show=source", f"--dev={dev}"]) == 0
  shown = capsys.readouterr().out
  assert word in shown and [text(p) for p in parse_file(shown)] == [shown.strip("\n")]


def test_an_unknown_device_is_refused(capsys):
  path = str(golden.FOLDER / "softmax.mini")
  with pytest.raises(command.BadCommand, match="no device 'CUPID'.*CUDA"):
    command.main([path, "--show=source", "--dev=CUPID"])


@pytest.mark.parametrize("width", [4, 8, 16])
def test_what_passes_the_caches_has_its_instruction(width):
  """A copy of 128 MB, by vectors of each size."""
  n = 1 << 24
  k = parse(f"""
kernel copied(%a0: out f32[{n}], %a1: in f32[{n}]) {{
  %i = range {n}
  %0 = load %a1[%i] : f32
  store %a0[%i], %0
  end over (%i)
}}""")
  source = render_for("CPU", {"copied": apply(k, f"split i {width} -> io, iv\nvec iv")}, width)
  (bits,) = {int(n) for n in re.findall(r"else STREAM(\d+)\(", source)}
  assert bits == 4 * width and f"define STREAM{bits}(p, x) __builtin_ia32_movntdq" in source


@pytest.mark.parametrize("count", [31, 32])
def test_as_many_memories_as_a_language_passes(count):
  """Metal's table has 31."""
  i = range_("i", 4)
  places = [param(f"a{n}", (4,), dtypes.float32) for n in range(count)]
  total = load(places[1], (i,))
  for p in places[2:]:
    total = uop("add", dtypes.float32, (total, load(p, (i,))))
  k = kernel("k", (store(places[0], (i,), total),), (i,))
  if count > 31:
    with pytest.raises(RenderError, match="passes 31 buffers at most; this kernel needs 32"):
      render_for("METAL", {"k": k})
  else:
    assert "kernel void" in render_for("METAL", {"k": k})


def test_vectors_are_rounded_to_bfloat16_as_numbers_are(rng):
  """Half to even; too large is inf; NaN stays NaN, a quiet one with its sign."""
  bits = rng.integers(0, 1 << 32, 10_001, dtype=np.uint64)
  halves = (np.arange(1 << 16, dtype=np.uint64) << 16) + np.array(
    [[0], [1], [0x7FFF], [0x8000], [0x8001], [0xFFFF]], np.uint64
  )
  bits = np.concatenate([halves.ravel(), bits])
  x = bits.astype(np.uint32).view(np.float32)
  meant = np.where(np.isnan(x), bits >> 16 | 64, bits + 0x7FFF + (bits >> 16 & 1) >> 16)
  rounded = Tensor(x).cast(dtypes.bfloat16)
  assert np.array_equal(rounded.bitcast(dtypes.uint16).numpy(), meant)
  assert np.array_equal(rounded.contiguous().realize().bitcast(dtypes.uint16).numpy(), meant)


def test_long_chains_of_operations_are_several_expressions():
  """C compilers and Python go so deep and no deeper: clang to 256 brackets."""
  x = Tensor([1.0, 2.0, 3.0]).realize()
  y = x
  for _ in range(1500):
    y = y * 1.001 + 0.25
  want = x.numpy().astype(np.float64)
  for _ in range(1500):
    want = want * 1.001 + 0.25
  np.testing.assert_allclose(y.numpy(), want, rtol=1e-3)
  for _ in range(400):
    x = x.roll(1, 0)
  with pytest.raises(MiniError, match=r"x.realize\(\) after every hundred"):
    x.realize()


# ---------------------------------------------------------------- names of users

NASTY = [
  "exp_f32",
  "max_f32",
  "floor_div",
  "f16_to_f32",
  "bf16_to_f32",
  "threefry2",
  "pow_f32",
  "sin_f32",
  "_Bool",
  "_Atomic",
  "_Generic",
  "__LINE__",
  "__FILE__",
  "__func__",
  "__COUNTER__",
  "__builtin_inff",
  "__attribute__",
  "__global",
  "__kernel",
  "__device__",
  "__shared__",
  "__syncthreads",
  "main",
  "printf",
  "NULL",
  "NAN",
  "INFINITY",
  "EOF",
  "INLINE",
  "SHUFFLE",
  "linux",
  "unix",
  "i386",
  "int4",
  "int8",
  "float4",
  "half2",
  "uint2",
  "uchar",
  "dim3",
  "bool",
  "char",
  "half",
  "double",
  "long",
  "short",
  "signed",
  "unsigned",
  "restrict",
  "inline",
  "register",
  "typedef",
  "asm",
  "goto",
  "auto",
  "and",
  "or",
  "not",
  "xor",
  "new",
  "delete",
  "this",
  "template",
  "operator",
  "class",
  "namespace",
  "using",
  "virtual",
  "friend",
  "constexpr",
  "nullptr",
  "thread_local",
  "global",
  "local",
  "constant",
  "kernel",
  "device",
  "threadgroup",
  "thread",
  "sampler_t",
  "image2d_t",
  "event_t",
  "size_t",
  "ptrdiff_t",
  "uint32_t",
  "int64_t",
  "get_global_id",
  "get_local_id",
  "barrier",
  "blockIdx",
  "threadIdx",
  "blockDim",
  "gridDim",
  "warpSize",
  "metal",
  "atomic_int",
  "simd_sum",
  "thread_position_in_grid",
  "as_float",
  "as_type",
  "vload4",
  "uint4",
  "a0",
  "v1",
  "w1",
  "m1",
  "f1",
  "acc1",
  "x",
  "t",
  "lo",
  "hi",
  "err",
  "args",
  "id",
  "ids",
  "group",
  "groups",
  "KERNEL",
  "u_exp_f32",
  "u_u_exp_f32",
  "int",
  "int_",
  "a.b",
  "a_b",
  "a_b_",
  "a",
  "a_",
  "a_at",
  "out",
  "in",
  "if",
  "do",
  "for",
  "while",
  "INT32_MAX",
  "fma",
  "fmaf",
  "sqrt",
  "abs",
  "min",
  "max",
  "exp",
  "sin",
  "cos",
  "log",
  "y0",
  "j1",
  "signbit",
  "isnan",
  "errno",
  "stdin",
  "environ",
]


def copies(names):
  """A kernel whose ranges and parameters have these names; out is 2 * in + the sum of all indices."""
  source, target, *ranges = names
  lines = [f"kernel {source}(%{target}: out f32{[2] * len(ranges)}, %{source}: in f32{[2] * len(ranges)}) {{"]
  lines += [f"  %{r} = range 2" for r in ranges]
  index, total = ", ".join(f"%{r}" for r in ranges), " + ".join(f"%{r}" for r in ranges)
  lines += [f"  %0 = load %{source}[{index}] : f32", f"  %1 = cast {total} : f32", "  %2 = add %0, %0 : f32"]
  lines += [
    "  %3 = exp %1 : f32",
    "  %4 = mul %2, %3 : f32",
    f"  store %{target}[{index}], %4",
    f"  end over ({index})",
    "}",
  ]
  return "\n".join(lines)


@pytest.mark.parametrize(
  "dev", ["CPU", *(pytest.param(d, marks=pytest.mark.full) for d in ("CL", "CUDA", "METAL"))]
)
def test_every_name_is_free_to_users(dev):
  rng = np.random.default_rng(0)
  programs = [parse(copies(NASTY[n : n + 8])) for n in range(0, len(NASTY) - 7, 8)]
  programs += [
    parse(copies([*rng.permutation(NASTY)[:8].tolist()])) for _ in range(4 if dev == "CPU" else 20)
  ]
  with Context(EMULATE=dev != "CPU"):
    for p in programs:
      assert parse(text(p)) is p
      (name, x), *_ = [(q.arg[0], rng.standard_normal(q.arg[1], np.float32)) for q in params_of(p)][1:]
      got, _ = Launchable(p, dev).run({name: x}, 0)
      want = 2 * x * np.exp(sum(np.indices(x.shape)).astype(np.float32))
      assert np.allclose(*got.values(), want, rtol=1e-6), text(p)


def test_a_source_has_functions_of_any_name():
  for name in ("main", "exp_f32", "_Bool", "__LINE__", "a.b", "k0", "rows_2_3_d4de546881"):
    k = parse(copies(["a0", "a1", "i"]))
    source = render_for("CPU", {name: k}, 4)
    plain = name in ("k0", "rows_2_3_d4de546881")
    assert f"void {name if plain else 'u_' + name.replace('.', '_')}(" in source, source


def test_a_vector_is_read_whole_only_where_it_begins_at_a_multiple():
  i, v = range_("i", 8), range_("v", 4)
  for e, whole in (
    (add(mul(i, 4), v), True),
    (add(add(mul(i, 8), v), 12), True),
    (v, True),
    (add(mul(i, 3), v), False),
    (add(i, v), False),
    (add(add(mul(i, 4), v), 2), False),
  ):
    assert is_multiple(e, v, 4) == whole, e
