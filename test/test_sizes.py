"""Kernels that differ in sizes alone share code: what a loop over sizes compiles, and that it computes what it should."""

import threading

import numpy as np
import pytest

from mini import Device, Tensor, fft, grad, jit, stats
from mini.codegen.even import in_chains, keeps
from mini.engine import program, realize
from mini.engine.sizes import Family, general, numbers_of


def growing(rng):
  """A cache that grows, and attention over it."""
  q = rng.standard_normal((1, 2, 1, 16), np.float32)
  ours, theirs = Tensor(q), q
  for _ in range(40):
    ours, theirs = Tensor.cat([ours, Tensor(q)], 2), np.concatenate([theirs, q], 2)
    e = np.exp(q @ theirs.swapaxes(-1, -2) / 4)
    yield (Tensor(q) @ ours.transpose(-1, -2) / 4).softmax(-1) @ ours, e / e.sum(-1, keepdims=True) @ theirs


def shrinking(rng):
  """What is left of a mask."""
  ours = theirs = rng.standard_normal(300, np.float32)
  ours = Tensor(ours)
  for k in range(40):
    ours, theirs = (ours * ours - 0.5)[: 300 - 7 * k], (theirs * theirs - np.float32(0.5))[: 300 - 7 * k]
    yield ours, theirs


def diagonals(rng):
  """Edit distances, along diagonals."""
  ours = theirs = np.arange(1)
  ours = Tensor(ours)
  for k in range(1, 40):
    ours = Tensor.cat([ours + 1, Tensor([k])]).minimum(Tensor.cat([Tensor([k]), ours + 1]))
    theirs = np.minimum([*theirs + 1, k], [k, *theirs + 1])
    yield ours, theirs


def orthogonal(rng):
  """Gram-Schmidt, one vector after another, of which none is nearly a sum of others: it would be all rounding."""
  a = (rng.standard_normal((30, 30)) + 8 * np.eye(30)).astype(np.float32)
  ours, theirs = [], []
  for v in a:
    x, y = Tensor(v), v
    if ours:
      q, p = Tensor.stack(ours), np.stack(theirs)
      x, y = x - q.T @ (q @ x), y - p.T @ (p @ y)
    ours.append(x / x.square().sum().sqrt())
    theirs.append(y / np.sqrt((y * y).sum()))
    yield ours[-1], theirs[-1]


def softmax(x):
  e = np.exp(x - x.max(-1, keepdims=True))
  return e / e.sum(-1, keepdims=True)


def prefix(ours, theirs, first=1):
  """Of the first rows: what `ours` makes of them, and what it should be."""

  def loop(rng):
    x = rng.standard_normal((70, 24), np.float32)
    for n in range(first, 70):
      yield ours(Tensor(x)[:n]), theirs(x[:n])

  return loop


PREFIXES = {
  "sum": prefix(lambda x: x[:, 0].sum(), lambda x: x[:, 0].sum()),
  "means": prefix(lambda x: x.mean(0), lambda x: x.mean(0)),
  "std": prefix(lambda x: x.std(0), lambda x: x.std(0, ddof=1), 2),
  "softmax": prefix(lambda x: x.softmax(0), lambda x: softmax(x.T).T),
  "product": prefix(lambda x: x @ x[0], lambda x: x @ x[0]),
  "squares": prefix(lambda x: x.T @ x, lambda x: x.T @ x),
  "distances": prefix(lambda x: (x[:, None] - x).square().sum(-1), lambda x: ((x[:, None] - x) ** 2).sum(-1)),
  "products": prefix(
    lambda x: x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3], lambda x: x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3]
  ),
  "sort": prefix(lambda x: x[:, 0].sort().values, lambda x: np.sort(x[:, 0])),
  "padded": prefix(
    lambda x: x.pad(((0, 70 - len(x)), (0, 0))) * 2, lambda x: np.pad(x, ((0, 70 - len(x)), (0, 0))) * 2
  ),
  "layers": prefix(
    lambda x: ((x @ x[0].reshape(24, 1) + 1).relu() @ x[:1]).softmax(1),
    lambda x: softmax(np.maximum(x @ x[0].reshape(24, 1) + 1, 0) @ x[:1]),
  ),
}


def joined(rng):
  """What is appended to depends on what is there."""
  ours, theirs = Tensor([1.0]), np.ones(1, np.float32)
  for k in range(2, 60):
    ours, theirs = Tensor.cat([ours, ours[-1:] * 0.5 + float(k)]), np.append(theirs, theirs[-1] * 0.5 + k)
    yield ours, theirs


def images(rng):
  """Convolutions of images of all sizes."""
  x, w = rng.standard_normal((1, 2, 40, 40), np.float32), rng.standard_normal((3, 2, 3, 3), np.float32)
  for n in range(4, 40):
    windows = np.lib.stride_tricks.sliding_window_view(x[:, :, :n, :n], (3, 3), (2, 3))
    want = np.maximum(np.einsum("bchwij,ocij->bohw", windows, w), 0)
    yield Tensor(x)[:, :, :n, :n].conv2d(Tensor(w)).relu(), want


def features(rng):
  """Two layers of images of all sizes, from little to do to much."""
  x, w, v = (
    rng.standard_normal(s).astype(np.float32) for s in ((1, 8, 40, 40), (32, 8, 3, 3), (32, 32, 3, 3))
  )
  slid = lambda x: np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
  for n in range(6, 31):
    want = np.maximum(np.einsum("bchwij,ocij->bohw", slid(x[:, :, :n, :n]), w, optimize=True), 0)
    want = np.einsum("bchwij,ocij->bohw", slid(want), v, optimize=True)
    yield Tensor(x)[:, :, :n, :n].conv2d(Tensor(w)).relu().conv2d(Tensor(v)) / 30, want / 30


def halved(rng):
  """Images, each of half the size of the one before."""
  x = rng.standard_normal((3, 160, 96), np.float32)
  ours = Tensor(x)
  while x.shape[2] > 3:
    x = x.reshape(3, x.shape[1] // 2, 2, x.shape[2] // 2, 2).mean((2, 4))
    ours = ours.avg_pool2d(2)
    yield ours, x


@pytest.mark.parametrize(
  "loop", [growing, joined, images, halved, *PREFIXES.values()], ids=lambda f: getattr(f, "__name__", "")
)
def test_a_loop_over_sizes_waits_three_times_for_a_compiler(loop, rng):
  """Where a size is 1, where it fills no vector, and once for all others."""
  waited = 0
  for got, want in loop(rng):
    before = stats["compiles"] + stats["disk_hits"]
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-3, atol=2e-5)
    waited += stats["compiles"] + stats["disk_hits"] > before
  assert waited <= 3


@pytest.mark.parametrize("most, loop", [(6, shrinking), (6, diagonals), (16, orthogonal), (8, features)])
def test_a_loop_over_sizes_compiles_a_few_of_them(loop, most, rng):
  before = stats["compiles"] + stats["disk_hits"]
  for got, want in loop(rng):
    np.testing.assert_allclose(got.realize().numpy(), want, rtol=2e-3, atol=2e-5)
  assert stats["compiles"] + stats["disk_hits"] - before <= most


@pytest.mark.full
def test_a_jitted_function_has_code_of_its_own_for_four_sizes_of_a_kind_at_most(rng):
  call = jit(lambda x: (x * 3 + 1).sum(1))
  before = stats["compiles"] + stats["disk_hits"]
  for k in range(40):
    x = rng.standard_normal((3, 64 + 16 * k)).astype(np.float32)
    np.testing.assert_allclose(call(Tensor(x)).numpy(), (x * 3 + 1).sum(1), rtol=1e-4, atol=1e-4)
  assert stats["compiles"] + stats["disk_hits"] - before <= 36


def turned(x):
  """Products that are added, and taken from each other."""
  a, b = x[:3], x[2:]
  return Tensor.stack([a * x[1] + b * x[0], a * b - b * x[3], (a * a - b * b) * a + (a * b + b * a) * b])


@pytest.mark.parametrize(
  "f", [lambda x: (x.softmax(1) * 3).exp(), turned, lambda x: x.flip(1) * x - x * x.sin()]
)
def test_the_bits_are_the_same_whatever_sizes_were_there_before(f, rng, monkeypatch):
  x = rng.standard_normal((5, 210)).astype(np.float32)
  some = lambda n: Tensor(x[:, :n].copy())

  alone = {}
  for n in (97, 5, 113):
    anew(monkeypatch)
    alone[n] = f(some(n)).numpy()
  anew(monkeypatch)
  for n in [*range(1, 120)]:
    found = f(some(n)).numpy()
    assert n not in alone or np.array_equal(found, alone[n])


def anew(monkeypatch):
  for table in ("compiled", "families", "alike"):
    monkeypatch.setattr(Device["CPU"], table, {})
  no_programs()


def no_programs():
  realize._programs.clear()
  realize._invoked.clear()


def ranked(*s):
  return np.random.default_rng(sum(s)).standard_normal(s).astype(np.float32)


X, W, IMAGE, KERNEL = ranked(300, 256), ranked(256, 384), ranked(1, 16, 90, 90), ranked(32, 16, 3, 3)
# more work than one recipe for all sizes is for
LARGER = {
  "rows": (lambda n: Tensor(X)[:n] @ Tensor(W), range(100, 140), lambda n: X[:n] @ W),
  "columns": (lambda n: Tensor(X) @ Tensor(W)[:, :n], range(150, 180), lambda n: X @ W[:, :n]),
  "sums": (lambda n: Tensor(X)[:, :n] @ Tensor(W)[:n], range(130, 160), lambda n: X[:, :n] @ W[:n]),
  "all": (lambda n: Tensor(X)[:n, :n] @ Tensor(W)[:n, :n], range(150, 180), lambda n: X[:n, :n] @ W[:n, :n]),
  "down": (lambda n: (Tensor(X)[:n] @ Tensor(W)).relu(), range(200, 99, -5), lambda n: (X[:n] @ W).clip(0)),
  "images": (
    lambda n: Tensor(IMAGE)[:, :, :n, :n].conv2d(Tensor(KERNEL), padding=1),
    range(50, 74, 2),
    lambda n: np.einsum(
      "bchwij,ocij->bohw",
      np.lib.stride_tricks.sliding_window_view(
        np.pad(IMAGE[:, :, :n, :n], ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)
      ),
      KERNEL,
      optimize=True,
    ),
  ),
}


@pytest.mark.parametrize("name", LARGER)
def test_a_loop_of_larger_kernels_waits_three_times_for_a_compiler(name, monkeypatch):
  """The first size has code of its own, and no other changes it or the bits of what follows."""
  ours, sizes, theirs = LARGER[name]
  alone = {}
  for n in (sizes[0], sizes[3], sizes[-1]):
    anew(monkeypatch)
    alone[n] = ours(n).numpy()
  anew(monkeypatch)
  monkeypatch.setattr(Device["CPU"], "functions", {})
  kinds = set()
  for n in sizes:
    got = ours(n).numpy()
    np.testing.assert_allclose(got, theirs(n), rtol=2e-3, atol=2e-4)
    assert n not in alone or np.array_equal(got, alone[n])
    compiled = [c for known in Device["CPU"].compiled.values() for c in known.values()]
    assert n != sizes[0] or not any(c.sizes for c in compiled if c.nanoseconds > program.ONCE.little)
    kinds |= {c.code for c in compiled if c.nanoseconds > program.ONCE.little}
  # where fewer tiles than threads are left, a size is cut otherwise
  assert 2 <= len(kinds) <= (5 if name == "images" else 3)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["softmax", "norm", "sums", "largest", "spread", "gradient"])
def test_rows_of_all_lengths_have_three_codes(name, monkeypatch):
  """That of the first length, and one each for sums that fill vectors and others, which end in the same way."""
  f = {
    "softmax": lambda x: x.softmax(1),
    "norm": lambda x: x.layer_norm((x.shape[1],)),
    "sums": lambda x: x.exp().sum(1),
    "largest": lambda x: x.exp().amax(1),
    "spread": lambda x: x.var(1),
    "gradient": grad(lambda x: x.log_softmax(1)[:, 1].sum()),
  }[name]
  x, kinds, alone = ranked(700, 1480), [], {}
  for n in (1401, 1423, 1432, 1408):
    anew(monkeypatch)
    alone[n] = f(Tensor(x)[:, :n]).numpy()
    np.testing.assert_allclose(alone[n], jit(f)(Tensor(x[:, :n])).numpy(), rtol=2e-4, atol=1e-5)
  anew(monkeypatch)
  for n in range(1400, 1442):
    got = f(Tensor(x)[:, :n]).numpy()
    assert n not in alone or np.array_equal(got, alone[n])
    kinds.append(len({c.code for known in Device["CPU"].compiled.values() for c in known.values()}))
  assert kinds[-1] == kinds[20] <= 3 * kinds[0]  # of one kernel, or two


def test_a_general_recipe_has_chains_of_each_size():
  sums = "split k 75 -> ku, k peel\nvec kv"
  assert in_chains(sums) == in_chains(sums.replace("75", "76")) != in_chains(sums.replace("75", "64"))
  assert keeps(f"split j 16 -> jo, jv any\n{sums}", sums) and not keeps(sums.replace("75", "76"), sums)


def test_a_size_that_comes_again_has_its_own_code(monkeypatch):
  anew(monkeypatch)
  for n in (100, 101, 102, 100):
    (Tensor(X)[:n] @ Tensor(W)).realize()
    no_programs()
  (known,) = Device["CPU"].compiled.values()
  assert [len(c.sizes) > 0 for c in known.values()] == [False, True, True]


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 64, 129, 299, 300])
def test_a_general_recipe_fits_sizes_that_are_far_away(n, monkeypatch):
  anew(monkeypatch)
  for m in (100, 101, n):
    got = (Tensor(X)[:m] @ Tensor(W)).softmax(-1).numpy()
    np.testing.assert_allclose(got, softmax(X[:m] @ W), rtol=2e-3, atol=2e-5)


def shared_numbers():
  """[(how many sizes code of a larger kernel is called with, how many numbers there are in it)]"""
  compiled = [c for known in Device["CPU"].compiled.values() for c in known.values()]
  return [(len(c.sizes), len(numbers_of(c.shown.source)[1])) for c in compiled if c.sizes]


def test_tiles_of_neighbours_are_seen_to_be_neighbours(monkeypatch):
  """Loops over tiles that became one: the places of all rows are made of the same few arguments. With arguments of
  their own, each of them divided in the inner loop, a product took four times as long."""
  anew(monkeypatch)
  for s in ((100, 200), (101, 207), (130, 300), (77, 64)):
    (Tensor(X)[: s[0]] @ Tensor(W)[:, : s[1]]).realize()
  (tiles, numbers), *_ = found = shared_numbers()
  assert len(found) == 3 and numbers > 100 and tiles <= 24


def drawn(*s):
  return Tensor(ranked(*s))


# of two sizes, and of two numbers that some of these may be equal to
ANY = {
  "product": lambda n, m, a, b: drawn(n, a) @ drawn(a, m),
  "inner": lambda n, m, a, b: drawn(a, n) @ drawn(n, m),
  "squares": lambda n, m, a, b: drawn(n, m).T @ drawn(n, m),
  "products": lambda n, m, a, b: drawn(a, n, m) @ drawn(a, m, n),
  "layer": lambda n, m, a, b: (drawn(2, n, m) @ drawn(m, a)).relu() + drawn(a),
  "softmax": lambda n, m, a, b: drawn(n, m).softmax(b % 2),
  "norm": lambda n, m, a, b: drawn(n, m).layer_norm((m,)),
  "attention": lambda n, m, a, b: drawn(1, 2, n, 8).scaled_dot_product_attention(*[drawn(1, 2, m, 8)] * 2),
  "causal": lambda n, m, a, b: drawn(1, n, a).scaled_dot_product_attention(*[drawn(1, n, a)] * 2, is_causal=True),
  "running sum": lambda n, m, a, b: drawn(n, m).cumsum(b % 2),
  "running maximum": lambda n, m, a, b: drawn(n, m).cummax(b % 2).values,
  "sort": lambda n, m, a, b: drawn(n, m).sort(-1).values,
  "gather": lambda n, m, a, b: drawn(n, m).gather(1, (Tensor.arange(n * m) * 7 % m).reshape(n, m)),
  "scatter": lambda n, m, a, b: Tensor.zeros(n, m).scatter_add(
    1, (Tensor.arange(n * m) * 7 % m).reshape(n, m), drawn(n, m)
  ),
  "lookup": lambda n, m, a, b: drawn(n, a)[Tensor.arange(m) * 3 % n],
  "lookup's gradient": lambda n, m, a, b: grad(lambda w: w[Tensor.arange(m) * 3 % n].square().sum())(drawn(n, a)),
  "frame": lambda n, m, a, b: drawn(n, m).pad((b, a, 1, b)) * 2,
  "pieces": lambda n, m, a, b: Tensor.cat([drawn(n, m), drawn(a, m), drawn(n, m).exp()], 0),
  "triangle": lambda n, m, a, b: drawn(n, m).tril(b),
  "several": lambda n, m, a, b: Tensor.stack([drawn(n, m).sum(1), drawn(n, m).amax(1), drawn(n, m).var(1)]),
  "image": lambda n, m, a, b: drawn(1, a, n + b, m + b).conv2d(drawn(16, a, b, b), stride=b, padding=b // 2),
  "images": lambda n, m, a, b: drawn(n, a, 9, 9).conv2d(drawn(m, a, b, b)),
  "phases": lambda n, m, a, b: drawn(1, a, n, m).conv_transpose2d(drawn(a, 16, 3, 3), stride=b, padding=1),
  "filter's gradient": lambda n, m, a, b: grad(
    lambda w: drawn(2, a, n + b, m + b).conv2d(w, padding=1).square().sum()
  )(drawn(8, a, b, b)),
  "pool": lambda n, m, a, b: drawn(2, a, n + b, m + b).max_pool2d(b, 2),
  "distances": lambda n, m, a, b: (drawn(n, 1, a) - drawn(1, m, a)).square().sum(-1),
  "halves": lambda n, m, a, b: (drawn(n, m).half() @ drawn(m, a).half()).softmax(-1),
  "numbers": lambda n, m, a, b: (drawn(n, m) * 10).cast("int8").cast("int32") @ (drawn(m, a) * 9).cast("int32"),
}  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ANY)
def test_sizes_in_any_order_have_the_bits_that_they_have_alone(name, rng, monkeypatch):
  """Also where they are equal to each other, to a number of the program or of its code, for some of the time."""
  monkeypatch.setattr(program, "ONCE", program.ONCE._replace(little=0))
  pool = [*range(1, 10), 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129]
  if rng.integers(2):
    pool = int(rng.choice([20, 40, 60, 90])) + np.arange(30)
  a, b, ns = int(rng.choice([1, 2, 4, 8, 16, 17, 64])), int(rng.choice([1, 2, 3, 4])), rng.choice(pool, 6)
  ms = (ns, rng.permutation(ns), [rng.choice(pool)] * 6)[rng.integers(3)]
  sizes = [(int(n), int(m)) for n, m in zip(ns, ms)]
  anew(monkeypatch)
  got = [ANY[name](*s, a, b).numpy() for s in sizes]
  for n in rng.choice(6, 2, replace=False):
    anew(monkeypatch)
    np.testing.assert_array_equal(got[n], ANY[name](*sizes[n], a, b).numpy(), err_msg=f"{sizes} {n} {a} {b}")


@pytest.mark.full
def test_a_rest_of_products_is_fused_whatever_its_length(monkeypatch):
  """gcc vectorizes the products of a loop whose length it knows, and would round them."""
  monkeypatch.setattr(program, "ONCE", program.ONCE._replace(little=0))
  sizes = [(8, 8), (5, 5), (7, 7), (4, 4)]
  anew(monkeypatch)
  got = [ANY["image"](*s, 16, 3).numpy() for s in sizes]
  anew(monkeypatch)
  np.testing.assert_array_equal(got[-1], ANY["image"](*sizes[-1], 16, 3).numpy())


def test_threads_make_the_same(rng):
  found, x = {}, rng.standard_normal(2000).astype(np.float32)

  def work(k):
    for n in range(100 + k, 400, 4):
      found[n] = (Tensor(x[:n].copy()) + 2.5).abs().numpy()

  workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
  for w in workers:
    w.start()
  for w in workers:
    w.join()
  assert len(found) == 300
  for n, got in found.items():
    np.testing.assert_array_equal(got, np.abs(x[:n] + np.float32(2.5)))


def test_numbers_are_whole_and_stand_alone():
  text, numbers = numbers_of("f32x16 v12_3 = a0[i * 36 + 7] * 2.5f + 1e-5f + 0x1p3f + 3e10 - 4;")
  assert numbers == (36, 7, 4) and text.count("#") == 3
  assert numbers_of("(splat_i32x8((int)(0)) < x) + a0[i * 0]")[1] == (0,)
  text, numbers = numbers_of(
    "  const float *a1 = args[1];\n  f3[2] + v12_3[4] + (i32x4){0, 1, 2, 3} + a0[0];"
  )
  assert numbers == () and "#" not in text


def test_the_end_of_a_loop_of_tiles_is_one_number():
  tile = "io * 8 < {0} ? io * 8 : {0}"
  text, numbers = numbers_of(HEAD + f"  x = a[({tile}) * 5] + b[{tile}];\n".format(21))
  assert numbers == (21, 5) and text == HEAD + f"  x = a[({tile}) * #] + b[{tile}];\n".format("#")


HEAD = "void KERNEL(void **args, long lo, long hi) {\n"


def test_what_has_to_be_written_out_is():
  assert general(HEAD + "  x = a[i * 3];\n", (0,), 2) == (
    HEAD + "  const int z0 = (long)args[2];\n  x = a[i * z0];\n"
  )
  for line, left in (
    ("  float m1[9] __attribute__((aligned(64)));\n", "  float m1[#] __attribute__((aligned(64)));\n"),
    ("  f32x16 acc2[6] = {0};\n", "  f32x16 acc2[6] = {0};\n"),
    ("  x = a[3] + SHUFFLE(a, b, 0, 1);\n", "  x = a[#] + SHUFFLE(a, b, 0, 1);\n"),
    ("  AHEAD(p + 8, 3);\n", "  AHEAD(p + 8, 3);\n"),
  ):
    assert numbers_of(HEAD + line)[0] == HEAD + left


@pytest.mark.full
def test_every_number_that_may_be_one_is_an_argument(rng, monkeypatch):
  """Of kernels of all kinds; the bits are those of code of their own."""
  x, y = (rng.standard_normal((37, 40)).astype(np.float32) for _ in range(2))
  cases = [
    lambda x, y: (x @ y.T).softmax(1) @ y,
    lambda x, y: (
      x.reshape(1, 1, 37, 40).conv2d(y[:3, :3].reshape(1, 1, 3, 3), padding=1).relu().max_pool2d(2)
    ),
    lambda x, y: x.sort(1).values.cumsum(0),
    lambda x, y: (x.cast("int8") + 3).sum(0) + (y.cast("int64") * 7).flip(1).sum(0),
    lambda x, y: x.square().sum(0).sqrt() + y.cast("float16").sum(0) + (x[1::2].T @ y[1::2]).sum(),
    lambda x, y: x.T.softmax(0).T.pad((1, 2)) * y.pad((1, 2)).cast("bfloat16"),
    lambda x, y: x.gather(1, y.argsort(1)) + fft.fft(x).real,
  ]
  own = [jit(f)(Tensor(x), Tensor(y)).numpy() for f in cases]
  shared = []

  def code(self, own, source, numbers, first, most, made, *more):
    shared.append(len(numbers))
    return made(general(source, tuple(range(len(numbers))), first)), numbers

  monkeypatch.setattr(Family, "code", code)
  monkeypatch.setattr(program, "OFTEN", program.Own(4, 1 << 60))
  Device["CPU"].compiled.clear()
  for f, want in zip(cases, own, strict=True):
    np.testing.assert_array_equal(jit(f)(Tensor(x), Tensor(y)).numpy(), want)
  Device["CPU"].compiled.clear()
  assert len(shared) > len(cases) and min(shared) > 1


def test_what_is_remembered_does_not_grow_with_the_sizes_that_were_seen():
  family, source = Family(), HEAD + "  x = a[i * 3 + 5] + 7;\n"
  for k in range(100):
    family.code(None, source, (k, 1 << 31, 7), 2, 1, str)  # no int
    family.code(None, source, (k, 2 * k, 7), 2, 1, str)
  assert len(family.own) == 1 and len(family.shared) == 1


def test_a_jitted_function_does_not_take_what_others_share():
  family = Family()
  given = [family.code(None, HEAD + "  x = a[3];\n", (k,), 2, 1, str)[1] for k in (3, 4, 5)]
  assert given == [(), (4,), (5,)]
  assert family.code(None, HEAD + "  x = a[3];\n", (4,), 2, 4, str)[1] == ()


def test_numbers_that_were_always_the_same_are_one_argument_until_they_differ():
  family, source = Family(), HEAD + "  x = a[i * 3 + 3] + b[5] + 3;\n"
  call = lambda *numbers: family.code(None, source, numbers, 2, 0, str, (), [(3, 3, 5, 3)])
  code, sizes = call(20, 20, 5, 4)
  assert sizes == (20, 4) and "a[i * z0 + z0] + b[5] + z1" in code
  assert call(7, 7, 5, 7) == (code, (7, 7))
  other, sizes = call(7, 8, 5, 7)
  assert sizes == (7, 8, 7) and "a[i * z0 + z1] + b[5] + z2" in other
  assert call(7, 7, 5, 9) == (code, (7, 9)) and call(1, 2, 5, 1) == (other, (1, 2, 1))
