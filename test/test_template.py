"""Graphs of composite methods are copied (mini/tensor/template.py): the copies are what the methods themselves make."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest

import mini
from mini import Context, Tensor, dtypes, jit, stats
from mini.engine import realize
from mini.ir.inline import inlined
from mini.ir.uop import toposort
from mini.tensor import template
from mini.types import MiniError

RNG = np.random.default_rng(0)
x, y, w = (Tensor(RNG.normal(size=s).astype("f")) for s in ((4, 6), (4, 6), (3, 6)))
image, filters = (Tensor(RNG.normal(size=s).astype("f")) for s in ((2, 3, 8, 8), (4, 3, 3, 3)))
classes, heads = Tensor([0, 5, 2, 1]), Tensor(RNG.normal(size=(2, 2, 5, 4)).astype("f"))


@pytest.fixture(autouse=True)
def quickly():
  with Context(NOOPT=1):
    yield


# (method, arguments, options)
CALLS = [
  ("linear", (x, w), {}),
  ("linear", (x, w, w.sum(1)), {}),
  ("cross_entropy", (x, classes), {}),
  ("cross_entropy", (x, classes), {"label_smoothing": 0.1, "ignore_index": 5, "reduction": "sum"}),
  ("cross_entropy", (x, y.softmax(-1)), {}),
  ("binary_cross_entropy", (x.sigmoid(), y.sigmoid()), {}),
  ("binary_cross_entropy_with_logits", (x, y), {"reduction": "none"}),
  ("mse_loss", (x, y), {}),
  ("smooth_l1_loss", (x, y, "mean", 0.5), {}),
  ("softmax", (x, -1), {}),
  ("log_softmax", (x, 0), {}),
  ("logsumexp", (x, 1, True), {}),
  ("layer_norm", (x, (6,)), {}),
  ("layer_norm", (x, (6,), w[0], w[1]), {"eps": 1e-3}),
  ("rms_norm", (x, (6,)), {}),
  ("group_norm", (image, 3), {}),
  ("gelu", (x,), {"approximate": "tanh"}),
  ("silu", (x,), {}),
  ("sigmoid", (x,), {}),
  ("softplus", (x,), {}),
  ("var", (x, 0), {}),
  ("std", (x,), {"keepdim": True}),
  ("matmul", (x, y.T), {}),
  ("matmul", (x, x.T), {}),
  ("clip", (x, -0.5, 0.5), {}),
  ("where", (x > 0, x, y), {}),
  ("norm", (x,), {}),
  ("cosine_similarity", (x, x), {}),
  ("conv2d", (image, filters), {"stride": 2, "padding": 1}),
  ("max_pool2d", (image, 2), {}),
  ("avg_pool2d", (image, 3), {"stride": 2}),
  ("interpolate", (image,), {"scale_factor": 2}),
  ("scaled_dot_product_attention", (heads, heads, heads), {"is_causal": True}),
]


def bare(method):
  """The method beneath what copies it."""
  while method.__wrapped__.__name__ != method.__name__ or method.__code__.co_filename != template.__file__:
    method = method.__wrapped__
  return method.__wrapped__


def found(method, args, options, passed):
  """Its value, gradients, and gradients of these, of leaves in the place of the tensors at `passed`."""
  leaves = {}
  args = [
    leaves.setdefault(id(a), a.detach().clone().realize().requires_grad_()) if n in passed else a
    for n, a in enumerate(args)
  ]
  out = method(*args, **options)
  if not leaves:
    return [out]
  (out * out).sum().backward()
  first = [t.grad for t in leaves.values()]
  gs = mini.autograd.grad((out * out).sum(), [*leaves.values()], create_graph=True)
  for t in leaves.values():
    t.grad = None
  sum((g * g).sum() for g in gs).backward()
  return [out, *first, *gs, *(t.grad for t in leaves.values())]


@pytest.mark.parametrize("name, args, options", CALLS)
def test_copies_are_what_the_method_makes(name, args, options):
  copied = getattr(Tensor, name).__wrapped__
  floats = [n for n, a in enumerate(args) if isinstance(a, Tensor) and a.dtype.kind == "f"]
  for passed in ([], floats) if len(floats) < 2 else (floats[:1], floats):
    expected = found(bare(copied), args, options, passed)
    for _ in range(2):
      for a, b in zip(expected, found(copied, args, options, passed), strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=2e-4, atol=2e-5)


def test_the_nodes_are_those_that_the_method_makes():
  a = x.clone().realize()
  for method in (Tensor.softmax, Tensor.layer_norm):
    args = (a, -1) if method is Tensor.softmax else (a, (6,))
    assert inlined([method(*args)._uop]) == inlined([bare(method.__wrapped__)(*args)._uop])


def made():
  """How many templates there are."""
  gc.collect()
  return sum(type(t) is template.Template for t in gc.get_objects())


def test_one_template_serves_all_of_a_kind_and_no_others():
  a, b, c = (Tensor(RNG.normal(size=(5, 7)).astype("f")).realize() for _ in range(3))
  before = made()
  for t in (a, b, c):
    t.gelu()
  assert made() == before + 1
  kinds = [
    lambda: a.cosine_similarity(b),
    lambda: a.cosine_similarity(a),
    lambda: a.cosine_similarity(b.T.contiguous().T),
    lambda: a.clip(0.0, 1.0),
    lambda: a.clip(-0.0, 1.0),
    lambda: a.clip(0, 1),
    lambda: a.clip(False, 1),
    lambda: a.cast("float16").gelu(),
    lambda: a.clone().requires_grad_().gelu(),
  ]
  for n, f in enumerate(kinds, 2):
    f(), f()
    assert made() == before + n
  assert np.signbit(Tensor([-1.0]).clip(-0.0, 1.0).numpy()) and not np.signbit(
    Tensor([-1.0]).clip(0.0, 1.0).numpy()
  )


def test_modes_are_part_of_the_kind():
  a = x.clone().realize()
  assert a.linear(w).dtype is dtypes.float32
  with mini.autocast("bfloat16"):
    assert a.linear(w).dtype is dtypes.bfloat16
  leaf = a.clone().requires_grad_()
  with mini.no_grad():
    assert not leaf.gelu().requires_grad
  assert leaf.gelu().requires_grad


def test_errors_are_those_of_the_method():
  for _ in range(2):
    with pytest.raises(MiniError, match=r"test_template\.py:\d+"):
      x.matmul(y)
    with pytest.raises(MiniError):
      x.softmax(7)
  with pytest.raises(IndexError, match="cross_entropy|class|7"):
    x.cross_entropy(Tensor([0, 1, 2, 7])).item()


def test_what_a_method_does_besides_is_done_each_time():
  mean, var = Tensor.zeros(3).realize(), Tensor.ones(3).realize()
  seen = []
  for _ in range(3):
    image.batch_norm(mean, var, training=True).realize()
    seen.append(mean.numpy().copy())
  assert not np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[1], seen[2])


def test_inside_of_jit_vmap_and_checkpoint():
  leaf = Tensor(RNG.normal(size=(6, 6)).astype("f"), requires_grad=True)
  f = lambda t: t.linear(leaf).gelu().softmax(-1)
  np.testing.assert_allclose(jit(f)(x).numpy(), f(x).numpy(), rtol=1e-5)
  np.testing.assert_allclose(mini.vmap(f)(x).numpy(), f(x).numpy(), rtol=1e-5)
  rows = mini.jacobian(f)(x[0])
  np.testing.assert_allclose(rows.numpy(), mini.vmap(mini.jacobian(f))(x)[0].numpy(), rtol=1e-4, atol=1e-6)
  grads = []
  for g in (f, mini.checkpoint(f)):
    leaf.grad = None
    g(x).square().sum().backward()
    grads.append(leaf.grad.numpy())
  np.testing.assert_array_equal(*grads)


def test_nothing_is_held():
  a = Tensor(RNG.normal(size=(4, 6)).astype("f"), requires_grad=True)
  t = a * 2
  alive = weakref.ref(t)
  out = t.gelu()
  del t
  assert alive() is None and out.shape == (4, 6)
  memory = weakref.ref(a._uop)
  del a, out
  assert memory() is None


def test_nodes_of_a_copy_know_their_shape_and_place():
  out = x.clone().realize().layer_norm((6,))
  for u in (out._uop, *inlined([out._uop])):
    assert all("shape" in n.memo and "place" in n.memo for n in toposort(u))


def derivatives(f, x, count):
  """f and its first derivatives, summed up over what f gives."""
  found = [f(x)]
  for _ in range(count):
    found += mini.autograd.grad(found[-1].sum(), x, create_graph=True)
  return found


@pytest.mark.parametrize("how", [lambda f: f, jit, mini.checkpoint], ids=["alone", "jit", "checkpoint"])
def test_derivatives_of_derivatives(how):
  a = Tensor(np.linspace(-2, 2, 7), requires_grad=True)
  if how is jit:
    found = jit(lambda: derivatives(lambda t: t.tanh(), a, 3))()
  else:
    found = derivatives(how(lambda t: t.tanh()), a, 3)
  y = np.tanh(a.numpy())
  d = 1 - y * y
  for got, wanted in zip(found, (y, d, -2 * y * d, -2 * d * d + 4 * y * y * d), strict=True):
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_a_gradient_passes_through_layers_twice():
  """As a physics-informed network has it: methods between operations, with each other's gradients."""
  r = np.random.default_rng(3)
  w, v = (Tensor(r.normal(size=s), requires_grad=True) for s in ((5, 2), (1, 5)))
  a = Tensor(r.normal(size=(4, 2)), requires_grad=True)

  def loss(a, w, v):
    (g,) = mini.autograd.grad((a.linear(w).tanh() * 2).linear(v).sum(), a, create_graph=True)
    return (g * g).sum()

  loss(a, w, v).backward()
  eps, direction = 1e-6, {t: r.normal(size=t.shape) for t in (a, w, v)}
  moved = lambda e: [Tensor(t.numpy() + e * direction[t], requires_grad=True) for t in (a, w, v)]
  slope = (loss(*moved(eps)).item() - loss(*moved(-eps)).item()) / (2 * eps)
  assert sum((t.grad.numpy() * direction[t]).sum() for t in (a, w, v)) == pytest.approx(slope, rel=1e-7)


def test_numbers_that_change_compile_nothing():
  a = x.clone().realize()
  for n in range(5):
    before = stats["compiles"]
    np.testing.assert_allclose((a.softmax(-1) * (n + 0.5)).sum().item(), 4 * (n + 0.5), rtol=1e-6)
    assert n < 1 or stats["compiles"] == before


def test_what_is_computed_is_not_computed_again():
  """A softmax, whose gradient is made of its values; and written into memory that nobody else holds."""
  a = Tensor(RNG.normal(size=(4, 6)).astype("f"), requires_grad=True)
  out = a.softmax(-1).realize()
  (g,) = mini.autograd.grad(out[:, 0].sum(), a)
  a.linear(w).sum().backward()
  assert out._uop in toposort(inlined([g._uop])[0]) and a.grad.shape == a.shape
  np.testing.assert_allclose(g.numpy().sum(-1), 0, atol=1e-6)
  large = Tensor.zeros(300, 1000).contiguous().realize()
  where = large._leaf().arg[0].memory
  for n in range(4):
    large[n] = Tensor.full((1000,), float(n)).realize().softmax(0)
    large.realize()
    assert large._leaf().arg[0].memory is where
  np.testing.assert_allclose(large.numpy()[:4], 1e-3, rtol=1e-5)


def test_what_has_been_computed_by_itself_changes_nothing():
  """Primitive nodes that are equal to those of a method, of its middle and of its end."""
  for n in (1, 2):
    a = Tensor(RNG.normal(size=(3, n)).astype("f"))
    out = a.softmax(-1)
    for u in toposort(out.uop):
      if u.dtype is dtypes.float32 and u.op != "const":
        Tensor(u).realize()
    e = np.exp(a.numpy() - a.numpy().max(-1, keepdims=True))
    for _ in range(2):
      np.testing.assert_allclose(a.softmax(-1).numpy(), e / e.sum(-1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose((a.softmax(-1) + 1).numpy(), e / e.sum(-1, keepdims=True) + 1, rtol=1e-5)


@pytest.mark.parametrize("name", template.COPIED.split())
def test_every_name_is_a_method(name):
  assert callable(getattr(Tensor, name))


def test_a_loop_over_sizes_builds_each_graph_once(monkeypatch):
  made = []
  of = template.Template.of
  monkeypatch.setattr(template.Template, "of", lambda *given: made.append(given) or of(*given))
  rows, q = Tensor.rand(80, 8).realize(), Tensor.rand(1, 8).realize()
  for _ in range(2):
    before = len(made)
    for n in range(1, 80):
      (q @ rows[:n].T).softmax(-1) @ rows[:n]
  assert before > 0 and len(made) == before


def test_the_gradient_of_a_constant_is_where_its_leaf_is():
  """A bias gets a sum of ones, which are in no memory; what equals it elsewhere is still nowhere in particular."""
  a, w, b = (Tensor(RNG.normal(size=s).astype("f"), device="INTERP") for s in ((4, 6), (3, 6), (3,)))
  b.requires_grad_()
  for how in (lambda f: f, jit):
    found = how(lambda: mini.autograd.grad(a.linear(w, b).sum(), b)[0])()
    assert found.device == "INTERP" and found.realize().device == "INTERP"
    held = found.uop
    assert (Tensor.ones(4, 3).sum(0) + Tensor.ones(3).realize()).device == Tensor.ones(3).device
    np.testing.assert_array_equal(found.numpy(), [4, 4, 4])
    del held
  b.sum().backward()
  assert (b.grad.realize() + b).device == "INTERP"
  assert b.sum().gradient(b)[0].realize().device == mini.grad(Tensor.sum)(b).realize().device == "INTERP"


def test_numbers_that_change_drop_no_programs(monkeypatch):
  monkeypatch.setattr(realize, "PROGRAMS", 8)
  a, made = x.clone().realize(), []
  evaluate = lambda: (a.tanh() * a.softmax(0)).sum().realize()
  evaluate()
  monkeypatch.setattr(
    realize, "first_run", lambda *given, of=realize.first_run: made.append(given) or of(*given)
  )
  for n in range(20):
    (a.softmax(-1) * (n + 0.25)).realize()
  before = len(made)
  evaluate()
  assert before and len(made) == before
  assert len(realize._invoked) <= 8


def test_the_graph_of_operations_knows_what_is_computed():
  a = x.clone().requires_grad_()
  out = a.softmax(-1).realize()
  assert any("leaf" in u.memo for u in toposort(out.uop) if u.op != "buffer")
  runs = stats["kernels"]
  np.testing.assert_array_equal(Tensor(out.uop).numpy(), out.numpy())
  assert stats["kernels"] == runs


def test_a_result_is_not_copied_to_have_its_shape():
  """A product, which its method gives another shape than it has at first."""
  a, b = x.clone().realize(), w.clone().realize()
  for how in (bare(Tensor.linear.__wrapped__), Tensor.linear):
    before = stats["kernels"]
    how(a, b).realize()
    assert stats["kernels"] == before + 1


# methods of matrices of one size, by how many they take; smooth, so that rounding decides nothing
METHODS = [
  (1, lambda a: a.gelu()),
  (1, lambda a: a.silu() + a.mish()),
  (1, lambda a: a.softplus().log_softmax(-1)),
  (1, lambda a: a.sigmoid().logsigmoid()),
  (1, lambda a: a.tanh().softmax(0)),
  (1, lambda a: a.softmin(-1)),
  (1, lambda a: a.layer_norm((4,), eps=0.5)),
  (1, lambda a: a.rms_norm((4,), eps=0.5)),
  (1, lambda a: a.logsumexp(1, True) + a),
  (1, lambda a: a * (a.var(0, keepdim=True) + 1).log()),
  (1, lambda a: a - a.mean(1, keepdim=True)),
  (1, lambda a: a * a.mean()),
  (1, lambda a: a.matmul(a.T) * 0.3),
  (1, lambda a: a.T.contiguous()[1:].cat(a[:1])),
  (1, lambda a: a.reshape(1, 1, 4, 4).avg_pool2d(3, 1, 1)[0, 0]),
  (1, lambda a: a[:2, :2].reshape(1, 1, 2, 2).interpolate(scale_factor=2)[0, 0]),
  (1, lambda a: a.reshape(1, 4, 4).group_norm(2, eps=0.5)[0]),
  (2, lambda a, b: a * b),
  (2, lambda a, b: a * b.gelu().detach()),
  (2, lambda a, b: a.linear(b) * 0.5),
  (2, lambda a, b: a.logaddexp(b)),
  (2, lambda a, b: a.cat(b, dim=1).glu()),
  (2, lambda a, b: a[0].outer(b[1])),
  (2, lambda a, b: a * a.mse_loss(b + 1)),
  (2, lambda a, b: a * a.cross_entropy(b.softmax(-1))),
  (2, lambda a, b: a * a.binary_cross_entropy_with_logits(b.sigmoid())),
  (2, lambda a, b: a.reshape(1, 1, 4, 4).conv2d(b[:3, :3].reshape(1, 1, 3, 3), padding=1)[0, 0]),
  (3, lambda a, b, c: a.linear(b, c[0]) * 0.5),
  (3, lambda a, b, c: a.lerp(b, c)),
  (3, lambda a, b, c: a.addmm(b, c) * 0.4),
  (3, lambda a, b, c: a[None].scaled_dot_product_attention(b[None], c[None], is_causal=True)[0]),
]


def drawn(rng):
  """A function of two matrices to a loss and gradients to the second order, and what it says of its values."""
  steps = []
  for n in range(2, 2 + rng.integers(2, 5)):
    count, method = METHODS[rng.integers(len(METHODS))]
    steps.append((method, [int(n * rng.random() ** 0.6) for _ in range(count)]))

  def values(a, b, look):
    known = [a, b]
    for method, at in steps:
      known.append(method(*[known[k] for k in at]))
      look(known[-1])
    loss = sum((t * t).sum() for t in known)
    first = mini.autograd.grad(loss, (a, b), create_graph=True)
    for g in first:
      look(g)
    second = mini.autograd.grad(sum((g * g).sum() for g in first), (a, b), materialize_grads=True)
    return loss, *first, *second

  return values


def test_random_programs_have_the_gradients_that_a_trace_has(rng, request):
  """Values are computed on the way or are not, and then in any order; a trace writes all methods out."""
  for _ in range(100 if request.config.option.full else 5):
    f = drawn(rng)
    a, b = (Tensor(rng.normal(size=(4, 4)), requires_grad=True) for _ in range(2))
    expected = [t.numpy() for t in jit(partial(f, a, b, id))()]
    for look in (id, lambda t: t.realize() if rng.random() < 0.4 else t):
      found = f(a, b, look)
      for n in rng.permutation(len(found)):
        scale = 1e-9 * (1 + np.abs(expected[n]).max())
        np.testing.assert_allclose(found[n].numpy(), expected[n], rtol=1e-7, atol=scale)


def test_a_gradient_that_no_gradient_passes_through_says_so():
  """That of a method with a slope here and another there; and ones, of which no value is in memory."""
  a = Tensor(RNG.normal(size=(2, 4)).astype("f"), requires_grad=True)
  for method in (Tensor.leaky_relu, lambda t: t.clip(0.0, 1.0), Tensor.mean, lambda t: t.linear(w[:, :4])):
    assert not mini.autograd.grad(method(a).sum(), a, create_graph=True)[0].requires_grad
  (g,) = mini.autograd.grad((a.clip(0.0, 1.0) * a.detach().requires_grad_()).sum(), a, create_graph=True)
  assert g.requires_grad and mini.autograd.grad(a.gelu().sum(), a, create_graph=True)[0].requires_grad
  b = Tensor(np.ones((1, 1)), requires_grad=True)
  (g,) = mini.autograd.grad(b.linear(Tensor(np.ones((1, 1)))).sum() + b.mean(), b, create_graph=True)
  np.testing.assert_array_equal(g.numpy(), [[2]])
  np.testing.assert_array_equal(mini.autograd.grad(b.mean(), b)[0].numpy(), [[1]])


def test_what_somebody_has_of_a_methods_values_decides_no_program():
  """The sum that a mean is made of, in memory, and in the same place of an equal graph another value."""
  a = Tensor(RNG.normal(size=(5, 7)), requires_grad=True)
  total = a.sum(1).realize()
  np.testing.assert_allclose(a.mean(1).numpy(), a.numpy().mean(1), rtol=1e-12)
  for s in (total, Tensor(RNG.normal(size=5), requires_grad=True).exp().realize()):
    np.testing.assert_allclose((s * 2.5 + a.mean(1)).numpy(), s.numpy() * 2.5 + a.numpy().mean(1), rtol=1e-12)
