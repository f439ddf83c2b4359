"""`@mini.kernel`: scalar Python functions as kernels, against Python itself."""

from __future__ import annotations

import importlib.util
import math
import random
from pathlib import Path

import numpy as np
import pytest

import mini
from mini import Context, Tensor, dtypes
from mini.extend.source import KernelError
from mini.types import DTypeError, MiniError, ShapeError

HERE = Path(__file__).name


@pytest.fixture(params=["CPU", "INTERP"])
def device(request):
  with Context(DEV=request.param):
    yield request.param


def plain(kernel, shape, *args):
  """What Python makes of the function under a kernel, element by element. Indices are called i and j."""
  arrays = kernel.source.arrays
  given = [np.asarray(x) for x in args]
  indices = [n for n in kernel.source.params if n in ("i", "j")]
  names = kernel.source.params[len(indices) :]
  out = []
  for at in np.ndindex(*shape):
    own = [x if n in arrays else np.broadcast_to(x, shape)[at].item() for n, x in zip(names, given)]
    out.append(kernel.f(*at[: len(indices)], *own))
  return np.array(out).reshape(*shape, *np.shape(out[0]))


def over(kernel, shape):
  """The kernel, told how far its indices go, if it has some."""
  return kernel[shape] if "i" in kernel.source.params else kernel


# ---------------------------------------------------------------- what a kernel can say


@mini.kernel
def leaky(x, slope=0.1):
  """Two returns; a branch with an infinite slope where it is not taken."""
  if x > 0:
    return math.sqrt(x)
  return slope * x


@mini.kernel
def product(i, j, a, b):
  s = 0.0
  for k in range(a.shape[1]):
    s += a[i, k] * b[k, j]
  return s


@mini.kernel
def escape(re, im, steps=20):
  zr, zi, n = 0.0, 0.0, 0
  for _ in range(steps):
    zr, zi = zr * zr - zi * zi + re, 2 * zr * zi + im
    if zr * zr + zi * zi > 4:
      break
    n += 1
  return n


@mini.kernel
def smooth(i, j, a):
  s, n = 0.0, 0
  for di in range(-1, 2):
    for dj in range(-1, 2):
      if 0 <= i + di < a.shape[0] and 0 <= j + dj < a.shape[1]:
        s += a[i + di, j + dj]
        n += 1
  return s / n


@mini.kernel
def before(i, a):
  if i == 0:
    return a[0]
  return a[i] - a[i - 1]


@mini.kernel
def running(i, a):
  s = 0.0
  for k in range(i + 1):
    if a[k] < 0:
      continue
    s = s + a[k]
  return s


@mini.kernel
def nearest(i, points, x):
  """A loop that carries two variables: which of the points is nearest to x."""
  best, at = math.inf, -1
  for k in range(len(points)):
    d = abs(points[k] - x)
    if d < best:
      best, at = d, k
  return points[at], at + 0 * i


@mini.kernel
def stairs(i, j, table, x):
  """Integers, and an index that is a value."""
  k = int(abs(x)) % len(table)
  return table[k] + (i // 2) * 10 + j % 3 - (i ^ j)


@mini.kernel
def flipped(i, j, a):
  return a[a.shape[0] - 1 - i, 2 * j] if i != j else a[i, i]


@mini.kernel
def largest(i, a):
  m, low, p = -math.inf, 100.0, 1.0
  for k in range(a.shape[1]):
    m = max(m, a[i, k])
    low = min(a[i, k], low)
    p *= 1 + a[i, k] / 10
  return m - low + p


def square(x):
  return x * x


def length(x, y):
  return math.sqrt(square(x) + square(y))


@mini.kernel
def polar(x, y):
  return length(x, y), math.atan(y / x) if x != 0 else 0.0


@mini.kernel
def twice_leaky(x):
  return leaky(leaky(x, 0.5), 2)


@mini.kernel
def last(i, a):
  """What a loop's last step left, and its variable, are there after it."""
  s = 0.0
  for k in range(len(a)):
    t = a[k] * 2
    s += t
  return s + t + k + i


CASES = {
  "leaky": (leaky, (3, 4), lambda r: [r.standard_normal((3, 4))]),
  "leaky with another slope": (leaky, (4,), lambda r: [r.standard_normal(4), 3.5]),
  "product": (product, (9, 8), lambda r: [r.standard_normal((9, 7)), r.standard_normal((7, 8))]),
  "escape": (escape, (6, 9), lambda r: [r.uniform(-2, 1, 9), r.uniform(-1, 1, (6, 1))]),
  "smooth": (smooth, (5, 6), lambda r: [r.standard_normal((5, 6))]),
  "before": (before, (7,), lambda r: [r.standard_normal(7)]),
  "running": (running, (12,), lambda r: [r.standard_normal(12)]),
  "nearest": (nearest, (5,), lambda r: [r.standard_normal(9), r.standard_normal(5)]),
  "stairs": (stairs, (4, 5), lambda r: [r.standard_normal(6), 9 * r.standard_normal((4, 5))]),
  "flipped": (flipped, (4, 3), lambda r: [r.standard_normal((4, 6))]),
  "largest": (largest, (5,), lambda r: [r.standard_normal((5, 11))]),
  "polar": (polar, (8,), lambda r: [r.standard_normal(8), r.standard_normal(8)]),
  "last": (last, (3,), lambda r: [r.standard_normal(9)]),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_computes_what_python_does(name, rng, device):
  kernel, shape, made = CASES[name]
  args = made(rng)
  got = over(kernel, shape)(*(Tensor(x) if isinstance(x, np.ndarray) else x for x in args))
  want = plain(kernel, shape, *args)
  if isinstance(got, tuple):
    got = np.stack([t.numpy() for t in got], -1)
  else:
    assert got.dtype is (dtypes.int64 if want.dtype.kind == "i" else dtypes.float64)
    got = got.numpy()
  np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_it_is_one_kernel_with_what_is_around_it(rng):
  a, b = (Tensor(rng.standard_normal((40, 40)).astype(np.float32)).realize() for _ in range(2))
  for f in (
    lambda: smooth[40, 40](a) * 2,
    lambda: product(a, b).exp(),
    lambda: leaky(a) + 1,
  ):
    y = f()
    before = mini.stats["kernels"]
    y.realize()
    assert mini.stats["kernels"] == before + 1
  *_, node = mini.walk(product(a, b))
  assert node.op == "product" and [i.op for i in node.inputs] == ["buffer", "buffer"]


def test_a_kernel_calls_another(device):
  assert twice_leaky(Tensor([16.0, -4.0])).tolist() == [2.0, -4.0]


def test_it_is_lazy_and_goes_into_routines_and_vmap(rng, device):
  x = rng.standard_normal((3, 7)).astype(np.float32)
  want = np.stack([plain(before, (7,), row) for row in x])
  assert not before(Tensor(x[0])).is_realized
  step = mini.jit(lambda row: before(row) * 2)
  for row, expected in zip(x, want):
    assert np.allclose(step(Tensor(row)).numpy(), expected * 2, rtol=1e-6)
  assert np.allclose(mini.vmap(before)(Tensor(x)).numpy(), want, rtol=1e-6)


def test_under_the_verifier(rng):
  with Context(DEV="CPU", CHECK=1):
    a = rng.standard_normal((5, 6))
    assert np.allclose(smooth[5, 6](Tensor(a)).numpy(), plain(smooth, (5, 6), a))
    assert np.allclose(
      stairs[4, 5](Tensor(a[0]), Tensor(a[:4, :5])).numpy(), plain(stairs, (4, 5), a[0], a[:4, :5])
    )


# ---------------------------------------------------------------- sizes


def test_sizes_are_those_of_the_axes_or_said():
  a, b = Tensor.ones(3, 4), Tensor.ones(4, 5)
  assert product(a, b).shape == (3, 5) and before(Tensor.ones(6)).shape == (6,)
  assert product[2, 5](a, b).tolist() == [[4.0] * 5] * 2

  @mini.kernel
  def clash(i, a, b):
    return a[i] + b[i]

  assert clash[3](Tensor.ones(3), Tensor.ones(4)).tolist() == [2.0] * 3
  with pytest.raises(
    KernelError, match=rf"i goes to 3 in a\[i\], and to 4 in b\[i\](.|\n)*{HERE}:\d+: return a\[i\]"
  ):
    clash(Tensor.ones(3), Tensor.ones(4))
  with pytest.raises(KernelError, match="nothing says how far i goes"):
    stairs(Tensor.ones(4), Tensor.ones(4, 6))
  with pytest.raises(MiniError, match="takes 2 arguments, not 1"):
    product[2, 2](a)
  with pytest.raises(ShapeError, match=r"do not repeat to one shape(.|\n)*x: f32\[3\]"):
    polar(Tensor.ones(3), Tensor.ones(4))
  with pytest.raises(ShapeError, match=r"do not repeat to \(4, 5\)"):
    stairs[4, 5](Tensor.ones(6), Tensor.ones(3))
  with pytest.raises(DTypeError, match="argument 0 is list"):
    before([1.0])
  assert leaky(Tensor.ones(0)).shape == (0,)
  assert leaky(4.0).shape == () and leaky(4.0).item() == 2.0


# ---------------------------------------------------------------- gradients


@pytest.mark.sample(3)
@pytest.mark.parametrize(
  "name", ["leaky", "product", "smooth", "before", "running", "flipped", "largest", "polar"]
)
def test_its_gradient_is_that_of_finite_differences(name, rng, device):
  kernel, shape, made = CASES[name]
  args = made(rng)

  def loss(*xs):
    out = over(kernel, shape)(*xs)
    return sum((t * t.detach().cos()).sum() for t in (out if isinstance(out, tuple) else [out])), out

  tensors = [Tensor(x, requires_grad=True) for x in args]
  total, out = loss(*tensors)
  total.backward()
  weights = [np.cos(t.numpy()) for t in (out if isinstance(out, tuple) else [out])]

  def value(*xs):
    got = plain(kernel, shape, *xs)
    return sum(
      (g * w).sum() for g, w in zip(np.moveaxis(got, -1, 0) if isinstance(out, tuple) else [got], weights)
    )

  for n, x in enumerate(args):
    at = tuple(rng.integers(0, s) for s in x.shape)
    up, down = ([y.copy() for y in args] for _ in range(2))
    up[n][at] += 1e-6
    down[n][at] -= 1e-6
    assert np.isclose(tensors[n].grad.numpy()[at], (value(*up) - value(*down)) / 2e-6, rtol=1e-5, atol=1e-7)
    assert np.isfinite(tensors[n].grad.numpy()).all()


def test_a_slope_on_the_way_not_taken_does_not_count(device):
  x = Tensor([4.0, 0.0, -1.0], requires_grad=True)
  leaky(x).sum().backward()
  assert x.grad.tolist() == [0.25, pytest.approx(0.1), pytest.approx(0.1)]

  @mini.kernel
  def safe(x):
    return math.log(x) if x > 0 else 0.0

  y = Tensor([1.0, 0.0, -3.0], requires_grad=True)
  safe(y).sum().backward()
  assert y.grad.tolist() == [1.0, 0.0, 0.0]


def test_a_gradient_can_be_given_and_integers_have_none(device):
  @mini.kernel(gradient=lambda g, out, x: g * 5)
  def doubled(x):
    return 2 * x

  assert mini.grad(lambda x: doubled(x).sum())(Tensor([1.0, 2.0])).tolist() == [5.0, 5.0]
  x = Tensor([0.3], requires_grad=True)
  assert not escape(x, x).requires_grad


# ---------------------------------------------------------------- bounds


def test_an_index_that_leaves_the_array_is_found_with_its_line(device):
  @mini.kernel
  def next_one(i, a):
    return a[i + 1]

  with pytest.raises(
    IndexError, match=rf"a\[i \+ 1\]: i \+ 1 goes from 1 to 4, and axis 0 has 4\n.*{HERE}:\d+: return"
  ):
    next_one[4](Tensor.ones(4))
  assert next_one[3](Tensor.arange(4).float()).tolist() == [1.0, 2.0, 3.0]

  @mini.kernel
  def looked_up(k, table):
    return table[k]

  table = Tensor([1.0, 2.0, 3.0])
  assert looked_up(Tensor([2, 0]), table).tolist() == [3.0, 1.0]
  for bad in (3, -1, 2**33):
    with pytest.raises(IndexError):
      looked_up(Tensor([0, bad]), table).numpy()

  @mini.kernel
  def guarded(k, table):
    return table[k] if 0 <= k < len(table) else -1.0

  assert guarded(Tensor([2, 3, -5, 2**33]), table).tolist() == [3.0, -1.0, -1.0, -1.0]

  @mini.kernel
  def from_the_end(i, a):
    return a[-1] - a[i]

  assert from_the_end(table).tolist() == [2.0, 1.0, 0.0]

  @mini.kernel
  def wrong_guard(i, a):
    return a[i - 1] if i < 2 else 0.0

  with pytest.raises(IndexError):
    wrong_guard[3](table).numpy()


# ---------------------------------------------------------------- errors: (the function's text, what is said)

WRONG = {
  "while": ("def f(x):\n  while x > 0:\n    x = x - 1\n  return x", 2, "While is not for kernels"),
  "list": ("def f(x):\n  y = 1\n  return [y for y in x]", 3, "ListComp"),
  "lambda": ("def f(x):\n  g = lambda y: y\n  return g(x)", 2, "Lambda"),
  "store": ("def f(i, a):\n  a[i] = 2\n  return 1", 2, "writes to no array"),
  "slice": ("def f(i, a):\n  return a[i:]", 2, "one element at a time"),
  "iterate": ("def f(i, a):\n  s = 0.0\n  for y in a:\n    s += y\n  return s + a[i]", 3, "for k in range"),
  "varying": ("def f(x):\n  s = 0\n  for k in range(x):\n    s += k\n  return s", 3, "how many steps"),
  "missing return": ("def f(x):\n  if x > 0:\n    return 1.0", 1, "returns nothing"),
  "unknown name": ("def f(x):\n  return x + nothing", 2, "nothing is not defined"),
  "unset": ("def f(x):\n  if x > 0:\n    y = 1\n  return y", 4, "for some elements only"),
  "early": ("def f(x):\n  z = y + x\n  y = 1\n  return z", 2, "before it has a value"),
  "text": ('def f(x):\n  return "a"', 2, "knows numbers"),
  "keyword": ("def f(x):\n  return min(x, 1, key=abs)", 2, "no keywords"),
  "function": ("def f(x):\n  return print(x)", 2, "no such function"),
  "rank": ("def f(i, a):\n  return a[i, 0]", 2, "2 indices for 1 axes"),
  "float index": ("def f(i, a):\n  return a[a[i]]", 2, "an index is an integer, not float32"),
  "try": ("def f(x):\n  try:\n    return x\n  finally:\n    pass", 2, "Try"),
  "bits": ("def f(x):\n  return x ^ 1", 2, "x \\^ 1"),
  "zero": ("def f(x):\n  return x + 1 // 0", 2, "1 // 0"),
  "is": ("def f(x):\n  return 1 if x is 0 else 2", 2, "Is is not for kernels"),
  "recursion": ("def f(x):\n  return f(x) + 1", 2, "come to no end"),
  "many steps": ("def f(x):\n  for k in range(20000):\n    x = x * x\n  return x", 3, "more than 10000"),
  "yield": ("def f(x):\n  yield x", 2, "Yield"),
}


def written(text, tmp_path, name="program"):
  """The function f of a file with this text."""
  path = tmp_path / f"{name}.py"
  path.write_text("import math\n" + text + "\n")
  spec = importlib.util.spec_from_file_location(name, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module.f


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", WRONG)
def test_what_a_kernel_cannot_say_is_an_error_with_the_line(name, tmp_path):
  text, line, said = WRONG[name]
  with pytest.raises(KernelError, match=said) as e:
    f = mini.kernel(written(text, tmp_path))
    (f[3] if "i" in f.source.params else f)(Tensor([1.0, 2.0, 3.0]))
  assert f"program.py:{line + 1}: {text.splitlines()[line - 1].strip()}" in str(e.value)


def test_what_is_no_function_with_a_source():
  with pytest.raises(KernelError, match="no function with a `def`"):
    mini.kernel(lambda x: x)
  with pytest.raises(KernelError, match="source of .* cannot be read"):
    mini.kernel(eval("lambda x: x"))


# ---------------------------------------------------------------- random programs


class Writer:
  """A random scalar function of (i, j, a, b, x): a is 4 x 6, b has 5 elements."""

  def __init__(self, seed):
    self.r = random.Random(seed)
    self.floats, self.ints, self.lines, self.count = ["x"], ["i", "j"], [], 0

  def number(self, deep=2):
    r, kind = self.r, self.r.randrange(10 if deep else 3)

    def e():
      return self.number(deep - 1)

    if kind < 2:
      return r.choice(self.floats)
    if kind == 2:
      return f"{r.uniform(-2, 2):.3f}"
    if kind == 3:
      return f"({e()} {r.choice('+-*')} {e()})"
    if kind == 4:
      return f"{e()} / (1.5 + abs({e()}))"
    if kind == 5:
      return f"{r.choice(['min', 'max'])}({e()}, {e()})"
    if kind == 6:
      return f"math.{r.choice(['sin', 'cos', 'tanh', 'atan'])}({e()})"
    if kind == 7:
      return f"({e()} if {self.test(deep - 1)} else {e()})"
    if kind == 8:
      return f"a[{self.index(deep - 1)} % 4, {self.index(deep - 1)} % 6]"
    return f"(b[{self.index(deep - 1)} % 5] + {r.choice(self.ints)} * 0.25)"

  def index(self, deep=1):
    r, kind = self.r, self.r.randrange(6 if deep > 0 else 2)
    if kind < 2:
      return r.choice(self.ints) if kind else str(r.randrange(7))
    if kind < 4:
      return f"({self.index(deep - 1)} {r.choice('+-*')} {self.index(deep - 1)})"
    if kind == 4:
      return f"({self.index(deep - 1)} {r.choice(['//', '%'])} {r.randrange(1, 5)})"
    return f"int({self.number(deep - 1)} * 2)"

  def test(self, deep=1):
    r, kind = self.r, self.r.randrange(5 if deep > 0 else 2)
    if kind == 0:
      return f"{self.number(0)} {r.choice(['<', '>', '<=', '>='])} {self.number(0)}"
    if kind == 1:
      return f"{self.index(1)} {r.choice(['<', '>', '<=', '>=', '==', '!='])} {self.index(0)}"
    if kind == 2:
      return f"not ({self.test(deep - 1)})"
    return f"({self.test(deep - 1)} {r.choice(['and', 'or'])} {self.test(deep - 1)})"

  def say(self, depth, line):
    self.lines.append("  " * depth + line)

  def block(self, depth, loop=False):
    floats, ints = [*self.floats], [*self.ints]
    self.say(depth, "pass")
    for _ in range(self.r.randrange(1, 4)):
      self.statement(depth, loop)
    self.floats, self.ints = floats, ints  # what a branch has made is not there behind it

  def statement(self, depth, loop):
    r, kind = self.r, self.r.randrange(12 if depth < 4 else 5)
    self.count += 1
    if kind < 2:
      self.say(depth, f"v{self.count} = math.sin({self.number()})")
      self.floats.append(f"v{self.count}")
    elif kind == 2:
      self.say(depth, f"n{self.count} = {self.index(2)} % 7")
      self.ints.append(f"n{self.count}")
    elif kind < 5:
      v = r.choice([v for v in self.floats if v != "x"] or ["x"])
      how = r.choice(["+=", "-=", "= max({v}, ", "= math.cos({v}) + ", "= math.sin({v}) * "]).format(v=v)
      self.say(depth, f"{v} {how} {self.number()}" + (")" if "max" in how else ""))
    elif kind < 7:
      self.say(depth, f"if {self.test()}:")
      self.block(depth + 1, loop)
      if r.random() < 0.5:
        self.say(depth, "else:")
        self.block(depth + 1, loop)
    elif kind == 7:
      self.say(depth, f"if {self.test()}:")
      self.say(
        depth + 1,
        f"return {self.number()}" if not loop or r.random() < 0.3 else r.choice(["break", "continue"]),
      )
    elif kind == 8:
      self.say(depth, f"if 1 <= i + {r.randrange(-3, 3)} < 4 and j > 0:")
      at = self.lines[-1].split("<=")[1].split("<")[0].strip()
      self.say(depth + 1, f"x = x + a[{at}, j - 1]")
    elif depth < 3:
      k = f"k{self.count}"
      bound = r.choice(["3", "6", "len(b)", "i + 1", "j, 6", "1, 8, 3", "5, 0, -1", "9"])
      self.say(depth, f"for {k} in range({bound}):")
      self.ints.append(k)
      self.block(depth + 1, True)
      self.ints.remove(k)

  def text(self):
    for _ in range(self.r.randrange(2, 6)):
      self.statement(1, False)
    self.say(1, f"return {self.number()} + 0 * (a[0, 0] + b[0] + x)")
    return "\n".join(["def f(i, j, a, b, x):", *self.lines])


def int64(x):
  """Python's int, of what a tensor's integer holds."""
  n = int(x)
  if not -(2**63) <= n < 2**63:
    raise OverflowError(f"int({x}) has more than 64 bits")
  return n


def check_program(seed, tmp_path):
  rng = np.random.default_rng(seed)
  text = Writer(seed).text()
  kernel = mini.kernel(written(text, tmp_path, f"program{seed}"))
  args = [rng.standard_normal(s) for s in ((4, 6), (5,), (4, 6))]
  nudged = [a * (1 + 1e-13) for a in args]
  try:
    with pytest.MonkeyPatch.context() as patch:
      patch.setitem(kernel.f.__globals__, "int", int64)
      want, near = plain(kernel, (4, 6), *args), plain(kernel, (4, 6), *nudged)
  except (ValueError, OverflowError):  # Python's math has no sine of inf; numbers of a tensor go on, with NaN
    return 0
  try:
    got = kernel[4, 6](*map(Tensor, args)).numpy()
  except KernelError as e:  # too long written out: it says so
    assert "more than 10000 statements" in str(e), f"{e}\n{text}"
    return 0
  if not np.allclose(near, want, rtol=1e-8, atol=1e-8, equal_nan=True):
    return (
      0  # chaotic, as a cosine of squares of squares is: so are products that C does not round before it adds
    )
  np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=text)
  return 1


@pytest.mark.sample(2)
@pytest.mark.parametrize(("dev", "count"), [("INTERP", 40), ("CPU", 6)])
def test_random_programs(dev, count, seed, tmp_path):
  with Context(DEV=dev):
    assert sum(check_program(seed + n, tmp_path) for n in range(count)) > count * 3 // 4


@pytest.mark.full
@pytest.mark.parametrize(("dev", "count"), [("INTERP", 150), ("CPU", 20)])
def test_many_random_programs(dev, count, seed, tmp_path):
  with Context(DEV=dev):
    assert sum(check_program(seed + n, tmp_path) for n in range(count)) > count * 3 // 4


@mini.kernel
def picked(i, x, at):
  return x[at[i]]


@mini.kernel
def picked_of_two(i, x, at, axis):
  return x[at[i], 0] if axis == 0 else x[0, at[i]]


@pytest.mark.parametrize("bad", [3, 7, -1, -7, 2**31 - 1, -(2**30)])
def test_an_index_out_of_bounds_is_the_one_that_is_reported(bad):
  """In a kernel, and where several axes are indexed together, as in x[i, j]."""
  x = Tensor.ones(3, 4)
  said = f"index {bad} is out of bounds"
  if abs(bad) >= 2**30:  # one of several has 26 bits
    said = f"index {'-67108864 or less' if bad < 0 else '67108863 or more'} is out of bounds"
  with pytest.raises(IndexError, match=f"index {bad} is out of bounds for an axis of size 3"):
    picked[2](Tensor([1.0, 2.0, 3.0]), Tensor([0, bad])).numpy()
  for axis in range(2):
    if not 0 <= bad < x.shape[axis]:
      with pytest.raises(IndexError, match=f"{said} for axis {axis}"):
        picked_of_two[2](x, Tensor([0, bad]), axis).numpy()
    if not -x.shape[axis] <= bad < x.shape[axis]:
      at = [Tensor([0, bad]) + 0, Tensor([0, 1]) + 0]
      with pytest.raises(IndexError, match=f"{said} for axis {axis}"):
        x[tuple(at if axis == 0 else at[::-1])].numpy()
      with pytest.raises(
        IndexError, match=f"index {bad} is out of bounds for an axis of size {x.shape[axis]}"
      ):
        x.permute(axis, 1 - axis)[at[0]].numpy()


def test_a_wide_index_is_not_cut_to_one_that_fits():
  with pytest.raises(IndexError, match="beyond 32 bits|index 1099511627777"):
    picked[2](Tensor([1.0, 2.0, 3.0]), Tensor([0, 2**40 + 1])).numpy()
