"""Every gradient row against finite differences in float64, once and twice; and what the graphs look like."""

import zlib

import numpy as np
import pytest

from mini import Tensor, grad, jit
from mini.grad import GRADS, NO_GRADIENT, gradient, plus, summed
from mini.ir import graph
from mini.ir.interp import evaluate
from mini.ir.ops import OPS
from mini.ir.uop import UOp, const, toposort
from mini.tensor.handle import untagged
from mini.types import dtypes

f64 = dtypes.float64


def test_every_op_has_a_gradient_or_a_reason():
  assert set(OPS) == set(GRADS) | set(NO_GRADIENT)
  assert not set(GRADS) & set(NO_GRADIENT)


# ---------------------------------------------------------------- finite differences


def leaf(name: str, x: np.ndarray) -> UOp:
  return graph.buffer(name, x.shape, f64 if x.dtype.kind == "f" else dtypes.int32)


def run(roots, arrays):
  return evaluate(list(roots), lambda u: arrays[u.arg[0]])


def central(f, arrays, name, eps=1e-6):
  """The derivative of a scalar function of named arrays, element by element."""
  out = np.zeros_like(arrays[name])
  for at in np.ndindex(out.shape):
    sides = []
    for step in (eps, -eps):
      moved = arrays[name].copy()
      moved[at] += step
      sides.append(f({**arrays, name: moved}))
    out[at] = (sides[0] - sides[1]) / (2 * eps)
  return out


def weigh(u: UOp, name: str) -> UOp:
  """A scalar in which every element of u counts differently."""
  w = graph.buffer(name, graph.shape(u), f64)
  return graph.reshape(graph.reduce(graph.alu("mul", u, w), "add", tuple(range(len(graph.shape(u))))), ())


def check(build, twice=True, **arrays):
  """build(**leaves) -> node: its gradient, and the gradient of its gradient, against central differences."""
  rng = np.random.default_rng(7)
  leaves = {name: leaf(name, x) for name, x in arrays.items()}
  wanted = [name for name, x in arrays.items() if x.dtype.kind == "f"]
  out = build(**leaves)
  arrays = {**arrays, "w0": rng.uniform(0.5, 1.5, graph.shape(out))}
  scalar, one = weigh(out, "w0"), const(1, f64)
  grads = gradient(scalar, one, [leaves[n] for n in wanted])
  found = {n: g for n, g in zip(wanted, grads) if g is not None}
  assert found, "nothing has a gradient"
  values = run(found.values(), arrays)
  for (name, g), value in zip(found.items(), values):
    assert graph.shape(g) == arrays[name].shape and g.dtype is f64
    np.testing.assert_allclose(
      value, central(lambda a: run([scalar], a)[0], arrays, name), rtol=1e-6, atol=1e-7
    )
  if not twice:
    return
  arrays |= {f"v{n}": rng.uniform(0.5, 1.5, arrays[n].shape) for n in found}
  second = None
  for name, g in found.items():
    term = weigh(g, f"v{name}")
    second = term if second is None else graph.alu("add", second, term)
  for name, g in zip(wanted, gradient(second, one, [leaves[n] for n in wanted])):
    expected = central(lambda a: run([second], a)[0], arrays, name)
    value = np.zeros_like(expected) if g is None else run([g], arrays)[0]
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


def numbers(name, *s, lo=-2.0, hi=2.0):
  return np.random.default_rng(zlib.crc32(name.encode())).uniform(lo, hi, s)


DOMAIN = {"log2": (0.2, 3), "log": (0.2, 3), "sqrt": (0.2, 3), "rsqrt": (0.2, 3)}
ELEMENTWISE = [n for n in GRADS if OPS[n].family in ("unary", "binary", "composite")]


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise(op):
  lo, hi = DOMAIN.get(op, (-2, 2))
  names = "ab"[: OPS[op].arity]
  arrays = {n: numbers(op + n, 7, lo=lo, hi=hi) for n in names}
  if op == "pow":
    arrays["a"] = np.abs(arrays["a"]) + 0.3
  if op in ("div", "mod"):
    arrays["b"] += np.sign(arrays["b"])
  check(lambda **x: graph.alu(op, *x.values()), **arrays)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
  """Its gradient is given: one factor, the slope."""

  def build(x: UOp) -> UOp:
    y = Tensor._new(graph.tag(x)).gelu(approximate).uop
    assert "given" in y.memo
    return y

  check(build, x=numbers("x", 9, lo=-4, hi=4))


@pytest.mark.parametrize("op", [n for n in ELEMENTWISE if OPS[n].arity == 2])
@pytest.mark.parametrize("scalar", ["a", "b"])
def test_repeated_scalar(op, scalar):
  arrays = {"a": numbers("a", 5, lo=0.5), "b": numbers("b", 5, lo=0.5)}
  arrays[scalar] = np.array(1.3)
  check(lambda a, b: graph.alu(op, a, b), **arrays)


def test_where():
  c = graph.alu("lt", graph.iota(6, dtypes.int32), const(3, dtypes.int32))
  check(lambda a, b: graph.alu("where", c, graph.alu("mul", a, b), a), a=numbers("a", 6), b=numbers("b", 6))
  check(lambda a, b: graph.alu("where", c, a, b), a=np.array(1.0), b=np.array(2.0))


VIEWS = {
  "reshape": lambda x: graph.reshape(x, (4, 3)),
  "permute": lambda x: graph.permute(graph.reshape(x, (2, 3, 2)), (2, 0, 1)),
  "expand": lambda x: graph.expand(graph.reshape(x, (3, 1, 4)), (3, 5, 4)),
  "pad": lambda x: graph.pad(x, ((1, 2), (0, 3))),
  "shrink": lambda x: graph.shrink(x, ((1, 3), (0, 2))),
  "flip": lambda x: graph.flip(x, (1,)),
  "stage": graph.stage,
  "copy": lambda x: graph.copy(x, "CPU"),
  "shard": lambda x: graph.shard(x, 0, ("CPU", "CPU:1")),
  "tag": graph.tag,
  "cat": lambda x: graph.cat((x, graph.alu("mul", x, x), graph.shrink(x, ((0, 1), (0, 4)))), 0),
  "cast": lambda x: graph.cast(graph.cast(x, f64), f64),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_and_marks(view):
  check(lambda x: graph.alu("mul", (y := VIEWS[view](x)), y), x=numbers(view, 3, 4))


def test_cast_between_floats():
  x = graph.buffer("x", (3,), dtypes.float32)
  y = graph.cast(x, f64)
  g = gradient(graph.alu("mul", y, y), graph.full((3,), 1, f64), [x])[0]
  assert g.dtype is dtypes.float32
  np.testing.assert_array_equal(run([g], {"x": np.array([1, 2, 3], np.float32)})[0], [2, 4, 6])
  through_int = graph.cast(graph.cast(x, dtypes.int32), dtypes.float32)
  assert gradient(through_int, graph.full((3,), 1, dtypes.float32), [x]) == [None]


@pytest.mark.parametrize("kind", ["add", "mul", "max"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_reduce(kind, axes):
  check(lambda x: graph.reduce(x, kind, axes), x=numbers(kind, 2, 3, 3))


@pytest.mark.parametrize("zeros", [1, 2])
def test_product_with_zeros(zeros):
  x = numbers("p", 2, 4)
  x[0, :zeros] = 0
  check(lambda x: graph.reduce(x, "mul", (1,)), x=x)


@pytest.mark.parametrize("kind", ["add", "mul", "max"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scan(kind, axis):
  check(lambda x: graph.scan(x, kind, axis), x=numbers(kind, 3, 4))


@pytest.mark.parametrize("zeros", [(0,), (2,), (1, 3)])
def test_running_product_with_zeros(zeros):
  x = numbers("p", 2, 5)
  x[0, list(zeros)] = 0
  check(lambda x: graph.scan(x, "mul", 1), twice=False, x=x)


def test_gather():
  i = np.array([[0, 2, 2], [1, 1, 1]])
  check(lambda x, i: graph.gather(x, i, 1), x=numbers("x", 2, 4), i=i)
  check(
    lambda x, i: graph.alu("sin", graph.gather(x, i, 0)),
    x=numbers("x", 2, 3),
    i=np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1]]),
  )


@pytest.mark.parametrize("kind", ["set", "add", "mul", "max"])
def test_scatter(kind):
  i = np.array([[0, 2, 2], [1, 1, 1]])
  check(
    lambda x, i, v: graph.alu("sin", graph.scatter(x, i, v, kind, 1)),
    x=numbers("x", 2, 4),
    i=i,
    v=numbers("v", 2, 3),
  )


@pytest.mark.parametrize("zeros", [1, 2])
def test_scatter_mul_with_zeros(zeros):
  v = numbers("v", 1, 4)
  v[0, :zeros] = 0
  i = np.array([[1, 1, 1, 0]])
  check(lambda x, i, v: graph.scatter(x, i, v, "mul", 1), twice=False, x=numbers("x", 1, 3), i=i, v=v)


# ---------------------------------------------------------------- conventions at ties and edges


def grad_at(build, *values):
  leaves = [graph.buffer(n, np.shape(v), f64) for n, v in zip("abc", values)]
  out = build(*leaves)
  grads = gradient(out, graph.full(graph.shape(out), 1, f64), leaves)
  return [v.tolist() for v in run(grads, dict(zip("abc", map(np.asarray, values))))]


def test_ties():
  assert grad_at(lambda a, b: graph.alu("max", a, b), [1.0, 2, 3], [2.0, 2, 2]) == [[0, 0.5, 1], [1, 0.5, 0]]
  assert grad_at(lambda a, b: graph.alu("min", a, b), [1.0, 2, 3], [2.0, 2, 2]) == [[1, 0.5, 0], [0, 0.5, 1]]
  assert grad_at(lambda a: graph.alu("max", a, const(0, f64)), [-1.0, 0, 1]) == [[0, 0, 1]]  # relu
  assert grad_at(lambda a: graph.reduce(a, "max", (0,)), [3.0, 1, 3]) == [[0.5, 0, 0.5]]  # torch.amax
  assert grad_at(lambda a: graph.scan(a, "max", 0), [1.0, 1, 0]) == [
    [1, 2, 0]
  ]  # torch.cummax: the last of equals
  assert grad_at(lambda a: graph.alu("abs", a), [-2.0, 0, 2]) == [[-1, 0, 1]]


@pytest.mark.parametrize(
  "f",
  [
    Tensor.elu,
    Tensor.celu,
    Tensor.logsigmoid,
    Tensor.asinh,
    lambda x: x.fmod(2),
    lambda x: (x + 20).softplus(),
    lambda x: x.binary_cross_entropy_with_logits(x * 0 + 0.25),
  ],
)
def test_slopes_where_pieces_of_a_smooth_function_meet(f):
  at = lambda v: Tensor([v], dtype=f64)
  h = 1e-4
  slope = ((f(at(h)).sum() - f(at(-h)).sum()) / (2 * h)).item()
  assert abs(slope) > 0.2 and grad(lambda x: f(x).sum())(at(0.0)).item() == pytest.approx(slope, abs=1e-3)


def test_slopes_at_bounds_are_pytorchs():
  """https://docs.pytorch.org/docs/stable/notes/autograd.html: clamp passes on what is at a bound, hardtanh does not."""
  slopes = lambda f: grad(lambda x: f(x).sum())(Tensor([-1.0, 0.0, 0.5, 1.0, 2.0])).tolist()
  assert slopes(lambda x: x.clamp(0, 1)) == [0, 1, 1, 1, 0]
  assert slopes(lambda x: x.clamp(min=0)) == [0, 1, 1, 1, 1]
  assert slopes(lambda x: x.clamp(max=Tensor(1.0))) == [1, 1, 1, 1, 0]
  assert slopes(lambda x: x.hardtanh(0, 1)) == [0, 0, 1, 0, 0]
  assert slopes(lambda x: x.softshrink(1.0)) == [0, 0, 0, 0, 1]
  assert slopes(lambda x: (x * 0).std()) == [0, 0, 0, 0, 0]


def test_power_at_zero():
  assert grad_at(lambda a: graph.alu("pow", a, const(0, f64)), [0.0, 2]) == [[0, 0]]
  assert grad_at(lambda a: graph.alu("pow", a, const(2, f64)), [0.0, -3]) == [[0, -6]]
  assert grad_at(lambda a, b: graph.alu("pow", a, b), [0.0, 1], [2.0, 0]) == [[0, 0], [0, 0]]


def test_scatter_set_gives_to_the_last():
  i = graph.alu("mul", graph.iota(3, dtypes.int32), const(0, dtypes.int32))
  assert grad_at(lambda b, v: graph.scatter(b, i, v, "set", 0), [1.0, 1], [5.0, 6, 7]) == [[0, 1], [0, 0, 1]]


def test_independent_and_detached():
  a, b = graph.buffer("a", (2,), f64), graph.buffer("b", (2,), f64)
  ones = graph.full((2,), 1, f64)
  out = graph.alu("mul", a, graph.detach(a))
  ga, gb = gradient(out, ones, [a, b])
  assert gb is None and run([ga], {"a": np.array([3.0, 4])})[0].tolist() == [3, 4]
  assert gradient(graph.detach(a), ones, [a]) == [None]


def test_tags_tell_equal_nodes_apart():
  a = graph.buffer("a", (2,), f64)
  t, s = graph.tag(a), graph.tag(a)
  gt, gs = gradient(graph.alu("mul", t, graph.alu("mul", s, s)), graph.full((2,), 1, f64), [t, s])
  assert [v.tolist() for v in run([gt, gs], {"a": np.array([3.0, 4])})] == [[9, 16], [18, 32]]


def test_with_respect_to_a_node_between():
  a = graph.buffer("a", (2,), f64)
  b = graph.alu("sin", a)
  out = graph.alu("mul", b, b)
  ga, gb = run(gradient(out, graph.full((2,), 1, f64), [a, b]), {"a": np.array([0.3, 0.4])})
  np.testing.assert_allclose(gb, 2 * np.sin([0.3, 0.4]))
  np.testing.assert_allclose(ga, gb * np.cos([0.3, 0.4]))


# ---------------------------------------------------------------- graphs that are good to compile


def matmul(a: UOp, b: UOp) -> UOp:
  """a: [n, k]   b: [k, m]   ->   [n, m], in the form that the scheduler knows."""
  (n, k), m = graph.shape(a), graph.shape(b)[1]
  x = graph.expand(graph.reshape(a, (n, 1, k)), (n, m, k))
  y = graph.expand(graph.reshape(graph.permute(b, (1, 0)), (1, m, k)), (n, m, k))
  return graph.reshape(graph.reduce(graph.alu("mul", x, y), "add", (2,)), (n, m))


def is_matmul(u: UOp) -> bool:
  """Is u, seen through views, a sum over products of two repeated views?"""
  while u.op in ("reshape", "permute"):
    u = u.src[0]
  if u.op != "reduce" or u.arg[0] != "add" or u.src[0].op != "mul":
    return False
  return all(any(v.op == "expand" for v in through_views(s)) for s in u.src[0].src)


def through_views(u: UOp):
  while u.op in ("reshape", "permute", "expand"):
    yield u
    u = u.src[0]


def test_gradients_of_a_matmul_are_matmuls():
  x, w, b = (graph.buffer(n, s, dtypes.float32) for n, s in (("x", (6, 4)), ("w", (4, 5)), ("b", (5,))))
  y = graph.alu("max", graph.alu("add", matmul(x, w), graph.expand_to(b, (6, 5))), const(0, dtypes.float32))
  seed = graph.buffer("g", (6, 5), dtypes.float32)
  dx, dw, db = gradient(y, seed, [x, w, b])
  assert is_matmul(dx) and is_matmul(dw)
  while db.op == "reshape":
    db = db.src[0]
  assert db.op == "reduce" and db.src[0].op == "where"


def test_matmul_values():
  check(lambda a, b: graph.alu("sin", matmul(a, b)), a=numbers("a", 2, 3), b=numbers("b", 3, 2))


def test_scatters_go_onto_the_other_gradient():
  """A tied embedding: no zeros the size of the table are added to the matmul's gradient."""
  table = graph.buffer("table", (5, 2), f64)
  index = graph.buffer("index", (3, 2), dtypes.int32)
  rows = graph.gather(table, index, 0)
  out = matmul(rows, graph.permute(table, (1, 0)))
  g = gradient(out, graph.buffer("seed", (3, 5), f64), [table])[0]
  assert g.op == "scatter" and g.arg == ("add", 0) and is_matmul(g.src[0])
  arrays = {
    "table": numbers("t", 5, 2),
    "index": np.array([[1, 1], [4, 4], [1, 1]], np.int32),
    "seed": numbers("s", 3, 5),
  }
  scalar = weigh(out, "seed")
  np.testing.assert_allclose(
    run([g], arrays)[0], central(lambda a: run([scalar], a)[0], arrays, "table"), rtol=1e-6
  )


def test_plus_through_views_and_chains():
  z = graph.full((4,), 0, f64)
  i, j = graph.iota(2, dtypes.int32), graph.alu("add", graph.iota(2, dtypes.int32), const(1, dtypes.int32))
  u, v, d = graph.buffer("u", (2,), f64), graph.buffer("v", (2,), f64), graph.buffer("d", (2, 2), f64)
  part = graph.scatter(graph.scatter(z, i, u, "add", 0), j, v, "add", 0)
  total = plus(d, graph.permute(graph.reshape(part, (2, 2)), (1, 0)))
  assert not any(n.op == "add" and n.dtype is f64 for n in toposort(total))
  got = run([total], {"u": np.array([1.0, 2]), "v": np.array([10.0, 20]), "d": np.ones((2, 2))})[0]
  np.testing.assert_array_equal(got, (np.array([1, 12, 20, 0.0]).reshape(2, 2).T + 1))


def test_pieces_become_a_cat():
  """The gradient of what was split is laid out piece by piece, not added up from padded pieces."""
  x = graph.buffer("x", (2, 6), f64)
  q, k, v = (graph.shrink(x, ((0, 2), (2 * n, 2 * n + 2))) for n in range(3))
  out = graph.alu("mul", graph.alu("mul", q, k), v)
  g = gradient(out, graph.full((2, 2), 1, f64), [x])[0]
  assert g.op == "cat" and not any(n.op == "pad" for n in toposort(g))
  check(
    lambda x: graph.alu(
      "mul",
      graph.alu("mul", *(graph.shrink(x, ((0, 2), (2 * n, 2 * n + 2))) for n in range(2))),
      graph.shrink(x, ((0, 2), (4, 6))),
    ),
    x=numbers("x", 2, 6),
  )


def test_linear_in_the_graph():
  """A chain in which every node is used twice: 200 deep, a handful of nodes for each."""
  x = y = graph.buffer("x", (3,), f64)
  for _ in range(200):
    y = graph.alu("add", graph.alu("mul", y, const(0.5, f64)), graph.alu("mul", y, const(0.25, f64)))
  g = gradient(y, graph.full((3,), 1, f64), [x])[0]
  assert len(toposort(g)) < 200 * 6


def reduces(u: UOp) -> list[UOp]:
  return [n for n in toposort(u) if n.op == "reduce"]


def test_forms_of_linear_attention_and_layer_norm():
  """Contractions stay sums of products; the backward of a normalization has two sums along its row."""
  x, w = Tensor.rand(2, 6, 4, requires_grad=True), Tensor.rand(5, 4, requires_grad=True)
  for g in x.linear(w).gradient(x, w, gradient=Tensor.rand(2, 6, 5)):
    assert is_matmul(untagged(g.uop)) and len(reduces(g.uop)) == 1
  q, k, v = (Tensor.rand(2, 3, 6, 4, requires_grad=True) for _ in range(3))
  out = q.scaled_dot_product_attention(k, v, is_causal=True)
  for g in out.gradient(q, k, v, gradient=Tensor.rand(2, 3, 6, 4)):
    sums = [r for r in reduces(g.uop) if r.arg[0] == "add"]
    contractions = [r for r in sums if len(graph.shape(r)) == 5]
    assert contractions and all(is_matmul(r) for r in contractions)
    assert len(sums) - len(contractions) <= 2  # of exp, and of softmax times its gradient
  s = Tensor.rand(4, requires_grad=True)
  dx, ds = x.layer_norm(4, s).gradient(x, s, gradient=Tensor.rand(2, 6, 4))
  assert len(reduces(dx.uop)) == 4 and len({*reduces(dx.uop), *reduces(ds.uop)}) == 5


def test_the_gradient_of_a_certain_softmax_is_nothing():
  """To the bit, whatever meets it: where one result is 1, the others 0."""
  x = Tensor([[0.0, 200.0, -50.0], [300.0, 0.0, 0.0]]).requires_grad_()
  (x.softmax(1) * Tensor([[1e6, 3e5, -7.0], [0.1, 1e7, 2.0]])).sum().backward()
  assert not x.grad.numpy().any()


@pytest.mark.parametrize(
  "batch, steps, kind", [(2, 4, 0), (2, 3, 1), (16, 9, 2), (17, 5, 0), (1, 7, 1), (3, 6, 2)]
)
def test_gradients_of_a_weight_of_each_step(batch, steps, kind):
  """Beside finite differences, with products that are stacked, and with fewer or longer ones that are not."""
  rng = np.random.default_rng(0)
  w, x = 0.2 * rng.standard_normal((24, 24)), rng.standard_normal((batch, steps, 24))
  weight = Tensor(w.astype(np.float32), requires_grad=True)

  def state(h, t, w, x):
    h = h @ w if kind == 0 else h @ w.T if kind == 1 else (h[:, None, :] @ w)[:, 0]
    return h / (1 + h * h) + x[:, t]

  @jit
  def run(x):
    weight.grad, h = None, x[:, 0]
    for t in range(steps):
      h = state(h, t, weight, x)
    (h * h).sum().backward()

  run(Tensor(x.astype(np.float32)))

  def loss(w):
    h = x[:, 0]
    for t in range(steps):
      h = state(h, t, w, x)
    return (h * h).sum()

  for i, j in ((0, 0), (3, 17), (23, 5)):
    d = np.zeros_like(w)
    d[i, j] = 1e-5
    np.testing.assert_allclose(weight.grad.numpy()[i, j], (loss(w + d) - loss(w - d)) / 2e-5, 1e-3, 1e-3)


def test_what_is_stacked_is_small_and_alike():
  def part(n, k):
    rows, columns = (graph.buffer(f"{x}{n}", s, f64) for x, s in (("a", (k, 64, 1)), ("b", (k, 1, 32))))
    return graph.reduce(
      graph.alu("mul", *(graph.expand(x, (k, 64, 32)) for x in (rows, columns))), "add", (0,)
    )

  def products(*sizes):
    return sum(u.op == "reduce" for u in toposort(summed([part(n, k) for n, k in enumerate(sizes)])))

  assert products(4, 4, 4, 4) == products(*[16] * 9) == 1
  assert products(4, 4, 4) == 3 and products(*[17] * 5) == 5
  assert products(4, 2, 4, 2, 4, 4, 2) == 4
