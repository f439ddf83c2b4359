"""Tensor against NumPy: making, asking, moving, computing, indexing, rebinding, differentiating."""

import copy
import gc
import math
import pickle
import threading
import weakref

import numpy as np
import pytest

import mini
from mini import DTypeError, MiniError, ShapeError, Tensor, dtypes, jit, no_grad, value_and_grad
from mini.ir.graph import shape
from mini.ir.uop import toposort

ALL = list(dtypes.all)
FLOATS = [d for d in ALL if d.kind == "f"]
INTEGERS = [d for d in ALL if d.kind in "iu"]
name_of = lambda d: d.short


def sample(rng, s, d):
  """Values of a type that are exact in it."""
  if d.kind == "f":
    return (rng.integers(-16, 17, s) / 4).astype(d.np)
  info = np.iinfo(d.np) if d.kind in "iu" else None
  return rng.random(s) < 0.5 if info is None else rng.integers(max(info.min, -50), 50, s).astype(d.np)


# ---------------------------------------------------------------- making


@pytest.mark.parametrize("d", ALL, ids=name_of)
def test_numpy_and_back(d, rng):
  a = sample(rng, (2, 3), d)
  t = Tensor(a, dtype=d)
  assert t.dtype is d and t.shape == (2, 3) and t.nbytes == 6 * d.itemsize
  np.testing.assert_array_equal(t.numpy(), a)
  assert t.tolist() == a.tolist()


def test_types_of_python_data():
  assert Tensor([1, 2]).dtype is dtypes.int64
  assert Tensor([1, 2.5]).dtype is dtypes.float32
  assert Tensor([True]).dtype is dtypes.bool
  assert Tensor([]).dtype is dtypes.float32
  assert Tensor(3).shape == ()
  assert Tensor(np.zeros(2)).dtype is dtypes.float64
  assert Tensor(np.float64(1)).dtype is dtypes.float64
  assert Tensor(b"ab").tolist() == [97, 98]
  assert Tensor(range(3)).tolist() == [0, 1, 2]
  assert Tensor([1, 2], dtype="float16").dtype is dtypes.float16
  assert Tensor(Tensor([1]), dtype=dtypes.int8).dtype is dtypes.int8
  assert Tensor(np.arange(4)[::-1]).tolist() == [3, 2, 1, 0]
  assert Tensor(np.array([1, 2], ">i4")).tolist() == [1, 2]


def test_what_is_made_is_a_copy():
  a = np.zeros(3, np.float32)
  t = Tensor(a)
  a[0] = 7
  t.numpy()[1] = 7
  assert t.tolist() == [0, 0, 0]


def test_constants_need_no_memory():
  assert not any(
    u.op == "buffer" for t in (Tensor.zeros(1000), Tensor.eye(9), Tensor.arange(5)) for u in toposort(t.uop)
  )


def test_print():
  assert repr(Tensor([1, 2])) == "Tensor([1, 2])"
  assert repr(Tensor([1.5], dtype="float64")) == "Tensor([1.5], dtype=float64)"
  assert repr(Tensor([1.0], requires_grad=True)) == "Tensor([1.], requires_grad=True)"
  assert repr(Tensor.zeros(0, 3)) == "Tensor([], shape=(0, 3))"
  assert f"{Tensor(1.5):.2f}" == "1.50" and f"{Tensor(2)}" == "Tensor(2)"


def test_python_protocols():
  t = Tensor([[1, 2], [3, 4]])
  assert len(t) == 2 and [r.tolist() for r in t] == [[1, 2], [3, 4]]
  assert bool(Tensor(1)) and int(Tensor([3])) == 3 and float(Tensor(0.5)) == 0.5 and [5, 6][Tensor(1)] == 6
  assert np.asarray(t).sum() == 10 and (np.ones(2) + Tensor([1.0, 2.0])).tolist() == [2, 3]
  assert (
    isinstance(np.ones(2) * Tensor([1.0, 2.0]), Tensor)
    and (np.float32(2) * Tensor([1.0])).dtype is dtypes.float32
  )
  assert len({t, t}) == 1


# ---------------------------------------------------------------- computing


UNARY = {
  "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
  "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
  "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
  "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
  "acosh": np.arccosh, "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
  "square": np.square, "reciprocal": np.reciprocal,
  "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "logical_not": np.logical_not,
  "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip
EDGES = np.array(
  [
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    -0.5,
    2.5,
    -2.5,
    1e-7,
    -1e-7,
    1e-20,
    1e10,
    -1e10,
    3e38,
    -3e38,
    math.inf,
    -math.inf,
    math.nan,
  ]
)


def together(tensors):
  """The tensors, computed at once: one compilation."""
  first, *others = tensors.values()
  first.realize(*others)
  return tensors


@pytest.mark.parametrize("d", [dtypes.float32, dtypes.float64], ids=name_of)
def test_unary(d):
  x = EDGES.astype(d.np)
  inputs = {op: x[np.abs(x) < 100] if op in ("sin", "cos", "tan") else x for op in UNARY}
  for op, got in together({op: getattr(Tensor(inputs[op]), op)() for op in UNARY}).items():
    with np.errstate(all="ignore"):
      want = UNARY[op](inputs[op].astype(np.float64))
      want = want if want.dtype == bool else want.astype(d.np)
    tolerance = 3e-6 if d is dtypes.float32 else 1e-13
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, err_msg=op)
    if op in ("neg", "sqrt", "floor", "ceil", "trunc", "round", "square"):
      known = ~np.isnan(want)
      np.testing.assert_array_equal(np.signbit(got.numpy())[known], np.signbit(want)[known], err_msg=op)


BINARY = {
  "a + b": None, "a - b": None, "a * b": None, "a // b": None, "a % b": None, "a < b": None, "a <= b": None,
  "a > b": None, "a >= b": None, "a == b": None, "a != b": None,
  "a.maximum(b)": np.maximum, "a.minimum(b)": np.minimum,
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("d", [d for d in ALL if d not in (dtypes.bool, dtypes.bfloat16)], ids=name_of)
def test_binary(d, rng):
  a, b = sample(rng, (40,), d), sample(rng, (40,), d)
  a[:4] = [0, 1, 0, 3]
  b[:4] = [0, 0, 1, 2]
  ours = {"a": Tensor(a, dtype=d), "b": Tensor(b, dtype=d)}
  for expression, got in together({e: eval(e, dict(ours)) for e in BINARY}).items():
    with np.errstate(all="ignore"):
      want = BINARY[expression](a, b) if BINARY[expression] else eval(expression, {"a": a, "b": b})
    assert got.dtype.np == want.dtype
    np.testing.assert_array_equal(got.numpy(), want, err_msg=expression)


@pytest.mark.sample(4)
@pytest.mark.parametrize("d", INTEGERS, ids=name_of)
def test_integers_wrap_and_their_least_has_no_negative(d):
  info = np.iinfo(d.np)
  low, high = Tensor([info.min], dtype=d), Tensor([info.max], dtype=d)
  assert (high + 1).item() == info.min and (low - 1).item() == info.max
  assert low.minimum(high).item() == info.min and low.maximum(high).item() == info.max
  assert Tensor([info.min, info.max], dtype=d).min().item() == info.min
  if d.kind == "i":
    assert (-low).item() == info.min and low.abs().item() == info.min


def test_integer_division_rounds_down_and_by_zero_is_zero():
  a, b = Tensor([7, -7, 7, -7, 5]), Tensor([2, 2, -2, -2, 0])
  assert (a // b).tolist() == [3, -4, -4, 3, 0]
  assert (a % b).tolist() == [1, 1, -1, -1, 0]
  assert (a / b).tolist()[:4] == [3.5, -3.5, -3.5, 3.5] and (a / b).dtype is dtypes.float32


def test_comparisons_with_nan_are_false_but_for_ne():
  x = Tensor([math.nan, 1.0])
  y = x.clone()
  assert [(x <= 1).tolist(), (x >= 1).tolist(), (x == y).tolist(), (x != y).tolist()] == [
    [False, True],
    [False, True],
    [False, True],
    [True, False],
  ]
  assert math.isnan(x.max().item()) and math.isnan(x.min().item()) and x.argmax().item() == 0


def test_numbers_are_weak_and_promotion_says_where_it_fails():
  assert (Tensor([1], dtype="int8") + 100).dtype is dtypes.int8
  assert (Tensor([1], dtype="float16") * 2.5).dtype is dtypes.float16
  assert (Tensor([1]) * 2.5).dtype is dtypes.float32
  assert (Tensor([True]) + 1).dtype is dtypes.int64
  assert (Tensor([1.0], dtype="float16") + Tensor([1.0], dtype="bfloat16")).dtype is dtypes.float32
  with pytest.raises(DTypeError, match="a . b: uint64 and int64 have no common"):
    Tensor([1], dtype="uint64") + Tensor([1])


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reduce(axis, keepdim, rng):
  a = rng.uniform(-1, 1, (2, 3, 4)).astype(np.float32)
  t = Tensor(a)
  kinds = ("sum", "prod", "amax", "amin", "any", "all", "mean", "var", "std")
  for kind, got in together({kind: getattr(t, kind)(axis, keepdim=keepdim) for kind in kinds}).items():
    want = getattr(np, kind)(
      a, axis=axis, keepdims=keepdim, **({"ddof": 1} if kind in ("var", "std") else {})
    )
    assert got.shape == np.shape(want)
    # where numbers below 1 cancel, a sum is off by what each of its additions rounds
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=a.size * 2**-24, err_msg=kind)


@pytest.mark.parametrize("d", [dtypes.float16, dtypes.bfloat16], ids=name_of)
def test_halves_are_summed_in_float32(d):
  x = Tensor.full((4096,), 1.0, dtype=d)
  assert x.sum().item() == 4096 and x.mean().item() == 1 and x.sum().dtype is d
  big = Tensor.full((4,), 40000.0, dtype=dtypes.float16)
  assert big.mean().item() == 40000 and big.sum().item() == math.inf


@pytest.mark.parametrize("index", [
  "0", "-1", "1:3", "::-1", "::2", "1::2", "-1:0:-2", "5:1:-1", "...", "None", "..., 0", ":, 1", "0, ..., ::-1",
  ":, None, 1:", "1:1", "::3, ::-2", "7:", "-3:-1", "I", ":, I", "I, I",
  "I, :, I", "0, I", ":, J", "J, 0:1", "M", ":, N", "[1, 0], [0, 2]", "..., [0, 1]", "I, None", "J, I[0]",
  "None, I, None", "M2", "[True, False, True, True]", "I[:, None], I",
])  # fmt: skip
@pytest.mark.sample(6)
def test_getitem(index, rng):
  a = rng.standard_normal((4, 3, 5)).astype(np.float32)
  names = {
    "I": np.array([2, 0, -1]),
    "J": np.array([[1, -2], [0, 2]]),
    "M": rng.random((4, 3, 5)) < 0.5,
    "N": np.array([True, False, True]),
    "M2": rng.random((4, 3)) < 0.5,
  }
  want = eval(f"a[{index}]", {"a": a, **names})
  if index == "0, I":
    want = a[0][names["I"]]
  np.testing.assert_array_equal(eval(f"a[{index}]", {"a": Tensor(a), **names}).numpy(), want)
  tensors = {k: Tensor(v) for k, v in names.items()}
  got = eval(f"a[{index}]", {"a": Tensor(a), **tensors})
  assert got.shape == want.shape
  np.testing.assert_array_equal(got.numpy(), want)
  # and set
  at, tensor_at = (eval(f"s[{index}]", {"s": np.s_, **n}) for n in (names, tensors))
  b, t = a.copy(), Tensor(a)
  if not any(
    i in index for i in ("I", "J")
  ):  # where places come up twice the last one wins, in an order of one's own
    b[at] = value = np.arange(want.size, dtype=np.float32).reshape(want.shape)
    t[tensor_at] = Tensor(value)
    np.testing.assert_array_equal(t.numpy(), b)
  b[at] = 3
  t[tensor_at] = 3
  np.testing.assert_array_equal(t.numpy(), b)


def test_indices_out_of_bounds():
  x, i = Tensor(np.zeros((3, 4))), Tensor([0, 5])
  for wrong in (
    lambda: x[3],
    lambda: x[:, -5],
    lambda: x[[3]],
    lambda: x[np.array([-4])],
    lambda: x[0, 0, 0],
    lambda: x[..., ...],
    lambda: x[1.5],
    lambda: x[Tensor([0.5])],
    lambda: x[[True, False]],
  ):
    with pytest.raises(IndexError):
      wrong()
  for late in (x[i], x[Tensor([-4])], x[i % 3, i], x.gather(0, i.reshape(1, 2)), x.embedding(i)):
    with pytest.raises(IndexError, match="out of bounds"):
      late.numpy()


@pytest.mark.parametrize("n", [4096, 37, 1])
def test_the_bits_of_a_half_are_those_in_memory(n, rng):
  """Of every NaN, too, of which a conversion to float32 and back makes another."""
  bits = rng.integers(0, 1 << 16, n).astype(np.uint16)
  bits[0] = 0x7C01
  x = Tensor(bits.view(np.float16))
  for mine, theirs in (
    (x.bitcast("uint16"), bits),
    (x.view(dtypes.int16) + 1, bits.view(np.int16) + np.int16(1)),
    (x.flip(0).bitcast("uint16"), bits[::-1]),
    (x[::2].bitcast("uint16") * 3, bits[::2] * np.uint16(3)),
    (x.pad((1, 2)).bitcast("uint16"), np.pad(bits, (1, 2))),
    (x.bitcast("bfloat16").bitcast("uint16"), bits),
    (x.bitcast("uint16").cast("int64").sum(), bits.astype(np.int64).sum()),
  ):
    np.testing.assert_array_equal(mine.numpy(), theirs)


def test_views_copy_nothing():
  x = Tensor.rand(4, 6).realize()
  views = (
    x[1:, ::2].T.reshape(3, 3).unsqueeze(0).expand(2, 3, 3).flip(1).pad((1, 1)).roll(1, 0).repeat(2, 1, 1)
  )
  assert {u.op for u in toposort(views.uop)} <= {
    "buffer",
    "reshape",
    "expand",
    "permute",
    "flip",
    "pad",
    "shrink",
  }


def test_pool_and_relu_are_views_and_one_reduction():
  ops = [u.op for u in toposort(Tensor.rand(1, 1, 8, 8).realize().max_pool2d(3, 2).relu().uop)]
  assert ops.count("reduce") == 1 and set(ops) <= {
    "buffer",
    "reshape",
    "expand",
    "permute",
    "shrink",
    "reduce",
    "max",
    "const",
    "tag",
  }


def test_matmul_is_a_multiplication_under_a_sum():
  u = (Tensor.rand(2, 3).realize() @ Tensor.rand(3, 4).realize()).uop
  reduce = next(n for n in toposort(u) if n.op == "reduce")
  assert reduce.arg == ("add", (2,)) and reduce.src[0].op == "mul" and shape(reduce.src[0]) == (2, 4, 3)


@pytest.mark.parametrize(
  "a, b",
  [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 2)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
  ],
)
def test_matmul(a, b, rng):
  x, y = sample(rng, a, dtypes.float32), sample(rng, b, dtypes.float32)
  got = Tensor(x) @ Tensor(y)
  assert got.shape == (x @ y).shape
  np.testing.assert_allclose(got.numpy(), x @ y)


# ---------------------------------------------------------------- rebinding


def test_assign_and_in_place_operators_rebind():
  a = Tensor([1.0, 2.0])
  alias, view = a, a[:1]
  a += 1
  a *= 2
  assert alias is a and alias.tolist() == [4, 6] and view.tolist() == [4]
  with pytest.raises(DTypeError, match=r"a \+= b"):
    i = Tensor([1])
    i += 0.5
  h = Tensor([1], dtype="int8")
  h += Tensor([300])
  assert h.dtype is dtypes.int8 and h.item() == 45
  with pytest.raises(ShapeError):
    a += Tensor([[1.0], [2.0]])
  a.assign([7, 8])
  assert a.tolist() == [7, 8] and a.dtype is dtypes.float32


def test_realized_nodes_are_not_computed_again():
  x = Tensor([1.0, 2.0])
  y = x.exp()
  z = y + 1
  y.realize()
  assert y.uop.op == "buffer" and z.is_realized is False
  leaf = y.uop
  z.realize()
  assert x.exp().uop is not leaf  # another node: the first is gone


def test_the_graph_is_dropped_when_it_is_computed():
  x = Tensor([1.0, 2.0])
  y = (x + 1) * 3
  node = weakref.ref(y.uop)
  y.realize()
  gc.collect()
  assert node() is None


# ---------------------------------------------------------------- gradients, as handles know them


def test_equal_leaves_have_gradients_of_their_own():
  a, b = Tensor.ones(2, requires_grad=True), Tensor.ones(2, requires_grad=True)
  (a * 2 + b * 3).sum().backward()
  assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [3, 3]
  assert a.is_leaf and a.requires_grad and not a.grad.requires_grad


def test_backward_to_some_leaves():
  """`inputs` alone get a gradient."""
  a, b, c = (Tensor([x], requires_grad=True) for x in (2.0, 3.0, 5.0))
  (a * b * c).sum().backward(inputs=[a, c])
  (a * b).sum().backward(inputs=a)
  assert (a.grad.item(), b.grad, c.grad.item()) == (18, None, 6)


def test_gradients_add_up_and_survive_realize():
  w = Tensor([1.0, 2.0], requires_grad=True)
  for n in range(1, 3):
    w.realize()
    (w * w).sum().backward()
    assert w.grad.tolist() == [2 * n, 4 * n]


def test_a_loss_is_computed_with_the_step_that_it_causes():
  w = Tensor([1.0, 2.0], requires_grad=True)
  loss = (w * w).sum()
  loss.backward()
  with no_grad():
    w.assign(w - 0.1 * w.grad)
  w.realize()
  assert loss.is_realized and loss.item() == 5 and not loss.requires_grad
  assert w.requires_grad and w.is_leaf


def test_printing_a_loss_does_not_cut_it_off():
  w = Tensor([3.0], requires_grad=True)
  loss = (w * w).sum()
  assert loss.item() == 9
  loss.backward()
  assert w.grad.item() == 6
  loss.realize()
  with pytest.raises(MiniError, match="retain_graph"):
    loss.backward()


def test_no_grad_and_detach():
  w = Tensor([3.0], requires_grad=True)
  with no_grad():
    y = w * 2
  assert not y.requires_grad and not w.detach().requires_grad and not (w > 1).requires_grad
  (y * w + w.detach() * w).sum().backward()
  assert w.grad.item() == 9
  assert no_grad()(lambda: (w * 2).requires_grad)() is False


def test_a_leaf_is_not_changed_in_place_unless_gradients_are_off():
  w = Tensor([3.0], requires_grad=True)
  with pytest.raises(MiniError, match="no_grad"):
    w += 1
  with pytest.raises(MiniError, match="no_grad"):
    w[0] = 1
  with no_grad():
    w += 1
    w[0] = w[0] * 2
    w.mul_(2).unsqueeze_(0)
  assert w.tolist() == [[16]] and w.requires_grad and w.is_leaf


def test_a_method_in_place_reaches_views_and_no_copies():
  x = Tensor([1.0, 2.0])
  view, copy = x[:1], x.clone()
  assert x.mul_(3).add_(1) is x
  assert x.tolist() == [4, 7] and view.tolist() == [4] and copy.tolist() == [1, 2]
  a = Tensor([1.0, 2.0], requires_grad=True)
  y = x.copy_(a * a)
  y.sum().backward()
  assert a.grad.tolist() == [2, 4] and not y.detach_().requires_grad and not a.detach_().requires_grad


def test_a_method_in_place_under_jit():
  total = Tensor([0.0])

  @jit
  def step(x):
    return total.add_(x.square_()) * 1

  for n in range(4):
    step(Tensor([float(n)]).realize())
  assert total.item() == 14


def test_gradients_of_functions():
  f = lambda p, x: ((p["w"] * x + p["b"][0]) ** 2).sum()
  p = {"w": Tensor([1.0, 2.0]), "b": [Tensor(0.5)]}
  value, g = value_and_grad(f)(p, Tensor([3.0, 4.0]))
  assert value.item() == 84.5 and g["w"].tolist() == [21, 68] and g["b"][0].item() == 24
  x = Tensor([2.0])
  # neither b nor the x outside count
  assert mini.grad(lambda a, b: (a * b * x).sum(), argnums=(0, 1))(x, x)[0].item() == 4
  g, extra = mini.grad(lambda a: (a.sum(), "more"), has_aux=True)(x)
  assert g.item() == 1 and extra == "more" and not g.requires_grad


def test_no_grad_is_of_one_thread():
  seen = []
  w = Tensor([1.0], requires_grad=True)
  with no_grad():
    t = threading.Thread(target=lambda: seen.append((w * 2).requires_grad))
    t.start()
    t.join()
  assert seen == [True]


# ---------------------------------------------------------------- the package


def test_pickle_and_copy():
  for t in (Tensor([1.5, 2.5], dtype="bfloat16"), Tensor([1, 2]), Tensor([1.0], requires_grad=True)):
    for u in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t)):
      assert (
        u.tolist() == t.tolist() and u.dtype is t.dtype and u.requires_grad == t.requires_grad and u is not t
      )


def test_every_public_method_says_what_it_does():
  missing = [
    name
    for name in dir(Tensor)
    if not name.startswith("_") and callable(getattr(Tensor, name)) and not getattr(Tensor, name).__doc__
  ]
  assert not missing


def test_lerp_reckons_from_the_nearer_end(rng):
  torch = pytest.importorskip("torch")
  a, b = ((rng.normal(size=40) * 10.0 ** rng.integers(-8, 8, 40)).astype(np.float32) for _ in range(2))
  weight = np.where(rng.random(40) < 0.3, 1, rng.normal(size=40)).astype(np.float32)
  x, y, w = Tensor(a), Tensor(b), Tensor(weight)
  far = abs(b.astype(np.float64) - a)
  for share in (0.0, 0.3, 0.5, 0.9, 1.0, -2.0, w):
    theirs = torch.tensor(weight) if share is w else share
    want = torch.tensor(a).lerp(torch.tensor(b), theirs).numpy()
    np.testing.assert_array_less(abs(x.lerp(y, share).numpy() - want), 1e-6 * (far + abs(want)) + 1e-30)
  assert x.lerp(y, 1.0).tolist() == y.tolist() and x.lerp(y, 0.0).tolist() == x.tolist()
  low = Tensor([-math.inf, -2.5, -2.5])  # a quantile beside infinity
  assert low.quantile(0.3).item() == low.numpy().min() and low.quantile(0.5).item() == -2.5


def test_a_square_of_booleans_is_an_integer():
  assert Tensor([True, False]).square().dtype == dtypes.int64 == (Tensor([True]) ** 2).dtype
