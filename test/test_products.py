"""Matrix products: of every shape, layout and type they are NumPy's; their tiles fit the registers of the machine."""

import re

import numpy as np
import pytest

from mini import Device, Tensor
from mini.codegen.autoschedule import Machine, write_recipe
from mini.engine.plan import nameless
from mini.ir.kernel import extent
from mini.render.c import render
from mini.schedule import schedule
from mini.schedule.split import split_reductions
from mini.text.parser import parse
from mini.text.verifier import verify
from mini.types import dtypes

pytestmark = pytest.mark.skipif(Device.DEFAULT != "CPU", reason="these are recipes of a processor")

AVX2 = Machine(lanes=8, threads=2, registers=16)
AVX512 = Machine(lanes=16, threads=2, registers=32, l2_bytes=1 << 20, stack_bytes=1536 << 10)
SIZES = [1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 32, 33, 47, 64, 65, 97, 128]
DTYPES = ["float32", "float32", "float64", "float16", "bfloat16", "int8", "int32"]


def product(a, b, layout):
  """a[n, k] @ b[k, m], of which the one or the other comes transposed."""
  return (a.mT if "a" in layout else a) @ (b.mT if "b" in layout else b)


def shapes(n, k, m, layout, batch=()):
  return (*batch, *((k, n) if "a" in layout else (n, k))), (*batch, *((m, k) if "b" in layout else (k, m)))


def random_products(seed, count):
  rng = np.random.default_rng(seed)
  for _ in range(count):
    n, k, m = (int(rng.choice(SIZES)) for _ in range(3))
    long = int(rng.integers(8))
    k, m = k + 1009 * (long == 0), m + 500 * (long == 1)
    if long == 2:
      n, k, m = n % 5 + 1, 3001 + k, m % 3 + 1
    batch = (int(rng.integers(1, 4)),) if rng.integers(4) == 0 else ()
    yield rng, (n, k, m), str(rng.choice(["", "a", "b", "ab"])), batch, str(rng.choice(DTYPES))


def check(seed, count):
  made, wanted, about = [], [], []
  for rng, size, layout, batch, name in random_products(seed, count):
    d = getattr(dtypes, name)
    a, b = (
      Tensor(rng.integers(-9, 10, s).astype(np.float32)).cast(d).realize()
      for s in shapes(*size, layout, batch)
    )
    exact = product(Tensor(a.numpy().astype(np.float64)), Tensor(b.numpy().astype(np.float64)), layout)
    bias = int(rng.integers(3))
    made.append(product(a, b, layout) + bias if bias else product(a, b, layout))
    wanted.append(exact.numpy() + bias)
    about.append((size, layout, batch, name))
  Tensor.realize(*made)
  for y, want, what in zip(made, wanted, about):
    if y.dtype.kind in "iu":
      want = want.astype(np.int64).astype(y.dtype.np)  # wraps
      assert np.array_equal(y.numpy(), want), what
    else:
      few = {"float16": 2e-3, "bfloat16": 1.6e-2}.get(y.dtype.name, 1e-5)
      assert np.abs(y.numpy() - want).max() <= few * max(1, np.abs(want).max()), what


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", range(2))
@pytest.mark.full
def test_random_products(first):
  """Whole numbers, so that the sums are exact."""
  check(first, 9)


@pytest.mark.full
def test_more_random_products(seed):
  for n in range(6):
    check(seed + n, 30)


def kernel_of(n, k, m, layout, dtype=dtypes.float32, batch=()):
  a, b = (Tensor.zeros(*s, dtype=dtype).contiguous().detach() for s in shapes(n, k, m, layout, batch))
  a, b = a.realize(), b.realize()
  (kernel,) = schedule({"y": split_reductions([product(a, b, layout).uop])[0]})[0]
  return nameless(kernel).kernel


def source(kernel, machine):
  tuned, recipe = write_recipe(kernel, machine)
  verify(tuned)
  return recipe, render({"k": tuned}, machine.lanes)


@pytest.mark.sample(3)
@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("layout", ["", "a", "b"])
def test_tiles_fill_the_registers_and_no_more(machine, layout):
  for n, k, m in ((128, 128, 128), (127, 131, 137), (509, 511, 513), (64, 768, 2304), (2048, 2048, 2048)):
    for dtype in (dtypes.float32, dtypes.float64):
      _, text = source(kernel_of(n, k, m, layout, dtype), machine)
      sums = len(set(re.findall(r"\bacc\d+[_\d]*\b", text)))
      assert 8 <= sums <= machine.registers - 3


def test_the_sum_is_cut_into_vectors_where_the_outputs_are_few():
  for n, k, m, layout in ((2, 3000, 2, ""), (1000, 1000, 7, ""), (3, 768, 768, "b"), (8, 768, 3072, "b")):
    assert re.search(r"vec kv?\n", source(kernel_of(n, k, m, layout), AVX512)[0] + "\n")
  for n, k, m, layout in ((128, 128, 128, "b"), (768, 256, 3072, "a"), (7, 1000, 1000, "")):
    assert not re.search(r"vec kv?\n", source(kernel_of(n, k, m, layout), AVX512)[0] + "\n")


def test_what_is_read_by_few_rows_is_read_where_it_lies():
  assert "stage" not in source(kernel_of(16, 768, 768, ""), AVX512)[0]
  assert "stage" in source(kernel_of(512, 768, 768, ""), AVX512)[0]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_rows_that_lie_across_pages_are_packed_in_blocks_that_threads_share(threads):
  machine = AVX512._replace(threads=threads)
  for n, k, m, blocks in (
    (768, 256, 3072, "job"),
    (3072, 256, 768, "iob"),
    (1000, 100, 1000, ""),  # either
    (384, 2048, 1536, "job"),
  ):
    tuned, recipe = write_recipe(kernel_of(n, k, m, "a"), machine)
    assert "stage 0 over (io, k, iu) stack" in recipe, (n, k, m)
    assert threads == 1 or (f"par {blocks}" in recipe and extent(tuned) >= threads), (n, k, m)
  for n, k, m, layout in ((768, 64, 3072, "a"), (200, 256, 3072, "a"), (768, 256, 3072, "")):  # few pages
    assert "stage 0" not in source(kernel_of(n, k, m, layout), machine)[0]


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
@pytest.mark.sample(15)
def test_rows_that_lie_across_the_sum_of_every_type(dtype, rng):
  """Of a type of one byte two vectors fill no register: panels of it divided by zero."""
  for machine in (AVX2, AVX512, AVX512._replace(threads=4)):
    source(kernel_of(100, 50, 200, "a", dtype), machine)
  a, b = (rng.integers(0, 2, (50, m)).astype(np.float32) for m in (100, 200))
  y = Tensor(a).cast(dtype).realize().T @ Tensor(b).cast(dtype).realize()
  want = a.T @ b
  assert (y.float().numpy() == (want > 0 if dtype is dtypes.bool else want)).all()


@pytest.mark.parametrize("size, packed", [(32, False), (64, False), (128, True)])
def test_the_weights_of_several_heads_are_one_product_of_panels(size, packed):
  """What lies together in memory is a head's columns, not those of all; where they are as many as a tile has, they lie
  as they would in a panel."""
  n = 384 // size
  heads = parse(f"""kernel k(%w: out f32[384, 1152], %y: in f32[3, 8, {n}, 256, {size}], %x: in f32[8, 256, 384]) {{
    %m = range 384
    %l = range 1152
    %k = range 8
    %k1 = range 256
    %0 = load %y[%l // 384, %k, (%l // {size}) % {n}, %k1, %l % {size}] : f32
    %1 = load %x[%k, %k1, %m] : f32
    %2 = mul %0, %1 : f32
    %3 = reduce.add %2 over (%k, %k1) : f32
    store %w[%m, %l], %3
    end over (%m, %l)
  }}""")
  recipe, text = source(heads, AVX512)
  assert re.search(r"split l \d+ -> lo, lv", recipe) and "stage 1" in recipe, recipe
  assert ("stage 0" in recipe) == packed, recipe
  assert "f32x16u*)(y + " in text


@pytest.mark.parametrize("n", [2, 4])
def test_few_columns_are_packed_along_the_sum(n):
  """Vectors go along the sum there: that the columns lie together is of no use."""
  narrow = parse(f"""kernel k(%y: out f32[1000, {n}], %x: in f32[1000, 999], %w: in f32[999, {n}]) {{
    %i = range 1000
    %j = range {n}
    %k = range 999
    %0 = load %x[%i, %k] : f32
    %1 = load %w[%k, %j] : f32
    %2 = mul %0, %1 : f32
    %3 = reduce.add %2 over (%k) : f32
    store %y[%i, %j], %3
    end over (%i, %j)
  }}""")
  recipe, _ = source(narrow, AVX512)
  assert "vec kv" in recipe and "stage 1 over (j, k) stack" in recipe, recipe


def test_a_sum_over_heads_is_a_loop_over_them():
  """What attention has made is read head by head; its product with a weight is the tile of any other."""
  heads = parse("""kernel out(%y: in f32[8, 6, 256, 64], %w: in f32[384, 384], %o: out f32[8, 256, 384]) {
    %i = range 8
    %j = range 256
    %l = range 384
    %k = range 384
    %0 = load %y[%i, %k // 64, %j, %k % 64] : f32
    %1 = load %w[%k, %l] : f32
    %2 = mul %0, %1 : f32
    %3 = reduce.add %2 over (%k) : f32
    store %o[%i, %j, %l], %3
    end over (%i, %j, %l)
  }""")
  recipe, text = source(heads, AVX512)
  assert recipe.startswith("split k 64 -> kh, k\n") and "vec lv" in recipe, recipe
  assert "f32x16u*)(o + " in text and "/ 64" not in text
  rng = np.random.default_rng(0)
  y, w = (rng.integers(-9, 10, s).astype(np.float32) for s in ((2, 3, 20, 64), (192, 40)))
  got = Tensor(y).transpose(1, 2).reshape(2, 20, 192) @ Tensor(w)
  assert np.array_equal(got.numpy(), y.transpose(0, 2, 1, 3).reshape(2, 20, 192) @ w)


def test_large_products_of_short_sums_are_stored_past_the_caches():
  for n, k, m, past in ((768, 512, 3072, True), (768, 513, 3072, False), (512, 256, 3072, False)):
    assert ("past_f32x16(" in source(kernel_of(n, k, m, "a"), AVX512)[1]) == past, (n, k, m)


def test_a_part_of_a_line_is_not_stored_past_the_caches():
  """24 columns are a line and a half: the next tile writes the rest of it."""
  recipe, text = source(kernel_of(768, 256, 3072, "a"), AVX2)
  assert "split j 24 ->" in recipe and "past_f32x8(" not in text
  assert "past_f32x16(" not in source(kernel_of(768, 256, 3080, "a"), AVX512)[1]


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
def test_the_loop_that_runs_in_parallel_has_enough_rounds(threads):
  for n, k, m in ((64, 512, 64), (128, 128, 128), (3072, 768, 32), (32, 768, 3072)):
    tuned, recipe = write_recipe(kernel_of(n, k, m, ""), AVX512._replace(threads=threads))
    assert recipe.count("par ") == 1 and extent(tuned) >= min(threads, 12)


def test_a_factor_that_groups_share():
  """Rows and groups do not become one range, which would hide the product."""
  rng = np.random.default_rng(0)
  a, b = (rng.integers(-9, 10, s).astype(np.float32) for s in ((4, 5, 8), (2, 8, 6)))
  got = Tensor(a) @ Tensor(b).repeat_interleave(2, 0)
  assert np.array_equal(got.numpy(), a @ b.repeat(2, 0))
