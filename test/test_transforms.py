"""vmap, jvp, vjp, jacobian, hessian, custom gradients, hooks:
every operation, random graphs, finite differences, PyTorch."""

import itertools

import fuzz_graph
import numpy as np
import pytest

import mini
from mini import DTypeError, MiniError, ShapeError, Tensor, no_grad
from mini.grad import GRADS, gradients
from mini.ir import graph as g
from mini.ir.extern import Extern
from mini.ir.inline import inlined
from mini.ir.interp import evaluate
from mini.ir.ops import OPS
from mini.ir.uop import UOp, const
from mini.tensor.autograd import tensors_of
from mini.tensor.batching import BATCHING, batched, rule_of
from mini.tensor.transforms import _pushed
from mini.types import dtypes

torch = pytest.importorskip("torch")

F, I, N = dtypes.float64, dtypes.int32, 3
rng = np.random.default_rng(5)


# ---------------------------------------------------------------- every operation, on nodes


def index(u: UOp) -> UOp:
  return g.cast(g.alu("add", g.alu("floor", u), const(0.0, F)), I)


def run(roots, data):
  return evaluate(inlined(roots), lambda u: data[u.arg[0]])


S = (2, 3)
OUTER = Extern("outer", lambda a, b: a @ b.T)

# An operation on floats in 0.3..2.7 of shape (2, 3); each row may be of several.
# fmt: off
ROWS = {
  "reshape": lambda a: g.reshape(a, (3, 2)),
  "permute": lambda a: g.permute(a, (1, 0)),
  "expand": lambda a: g.expand(g.reshape(a, (2, 1, 3)), (2, 4, 3)),
  "pad": lambda a: g.pad(a, ((1, 0), (2, 1))),
  "shrink": lambda a: g.shrink(a, ((1, 2), (0, 2))),
  "flip": lambda a: g.flip(a, (0, 1)),
  "gather": lambda a, b: g.gather(a, index(b), 1),
  "gather rows": lambda a, b: g.gather(g.permute(a, (1, 0)), g.permute(index(b), (1, 0)), 0),
  "scatter": lambda a, b, c: g.scatter(a, index(b), c, "add", 1),
  "scatter set": lambda a, b, c: g.scatter(a, index(b), c, "set", 1),
  "scatter mul": lambda a, b, c: g.scatter(a, index(b), c, "mul", 1),
  "scatter max": lambda a, b, c: g.scatter(a, index(b), c, "max", 1),
  "reduce": lambda a: g.reduce(a, "add", (1,)),
  "reduce mul": lambda a: g.reduce(a, "mul", (0, 1)),
  "reduce max": lambda a: g.reduce(a, "max", (0,)),
  "scan": lambda a: g.scan(a, "add", 1),
  "scan mul": lambda a: g.scan(a, "mul", 1),
  "scan max": lambda a: g.scan(a, "max", 0),
  "cast": lambda a: g.cast(g.cast(a, dtypes.int64), F),
  "bitcast": lambda a: g.bitcast(g.bitcast(a, dtypes.int64), F),
  "where": lambda a, b, c: g.alu("where", g.alu("lt", a, b), b, c),
  "where of ()": lambda a, b: g.alu("where", g.alu("lt", g.reshape(g.reduce(a, "add", (0, 1)), ()), const(9.0, F)), b, const(2.0, F)),
  "mul by ()": lambda a, b: g.alu("mul", a, g.reshape(g.reduce(b, "add", (0, 1)), ())),
  "copy": lambda a: g.copy(a, "CPU"),
  "shard": lambda a: g.shard(a, 0, ("CPU", "CPU:1")),
  "stage": g.stage,
  "cat": lambda a, b: g.cat((a, b, a), 0),
  "detach": g.detach,
  "tag": g.tag,
  "after": lambda a, b: g.after(a, b),
  "invoke": lambda a, b: Tensor._new(g.tag(a)).softmax(-1).linear(Tensor._new(g.tag(b))).uop,
  "call": lambda a, b: g.call(OUTER, (a, b), (2, 2), F),
  "lt": lambda a, b: g.cast(g.alu("lt", a, b), F),
  "ne": lambda a, b: g.cast(g.alu("ne", a, b), F),
  **{op: lambda a, b, op=op: g.cast(g.alu(op, index(a), index(b)), F) for op in ("and", "or", "xor")},
  "threefry": lambda a, b: g.cast(g.alu("threefry", *(g.cast(x, dtypes.uint32) for x in (a, b, a, b))), F),
  "threefry2": lambda a, b: g.cast(g.alu("threefry2", *(g.cast(x, dtypes.uint32) for x in (b, a, a, b))), F),
}
# fmt: on
for name, op in OPS.items():
  if op.family in ("unary", "binary", "composite") and name not in ROWS:
    names = "ab"[: op.arity]
    ROWS[name] = (
      (lambda a, op=name: g.alu(op, a)) if op.arity == 1 else (lambda a, b, op=name: g.alu(op, a, b))
    )


def test_every_operation_has_a_rule_and_a_row():
  for op, row in OPS.items():
    assert (rule_of(op) is None) == (row.family == "leaf"), op
    assert row.family == "leaf" or op in ROWS, op
  assert set(BATCHING) <= set(OPS)


def leaves_of(build, several=()):
  """(the row's node, its leaves, the same with samples, data of all)."""
  names = build.__code__.co_varnames[: build.__code__.co_argcount - len(build.__defaults__ or ())]
  names = names if build not in (g.stage, g.detach, g.tag) else ("a",)
  ones = {n: g.buffer(n, S, F) for n in names}
  many = {n: g.buffer(f"{n}s", (N, *S), F) for n in names}
  data = {n: rng.uniform(0.3, 2.7, S) for n in names} | {
    f"{n}s": rng.uniform(0.3, 2.7, (N, *S)) for n in names
  }
  return build(*ones.values()), ones, many, data


@pytest.mark.parametrize("row", ROWS)
def test_vmap_of_every_operation(row):
  """Its value and its gradients; any of its inputs shared or not."""
  out, ones, many, data = leaves_of(ROWS[row])
  seed, seeds = g.buffer("g", g.shape(out), F), g.buffer("gs", (N, *g.shape(out)), F)
  data |= {"gs": rng.uniform(-1, 1, (N, *g.shape(out)))}
  roots = [out, *(d for d in gradients([out], [seed], list(ones.values())) if d is not None)]
  for count in range(1, len(ones) + 1):
    for several in itertools.combinations(ones, count):
      found = batched(roots, {ones[n]: many[n] for n in several} | {seed: seeds}, N)
      apart = [(f, r) for f, r in zip(found, roots) if f is not None]  # a gradient of zeros is shared by all
      got, shared = run([f for f, _ in apart], data), [r for _, r in apart]
      for k in range(N):
        one = data | {n: data[f"{n}s"][k] for n in several} | {"g": data["gs"][k]}
        for value, wanted in zip(got, run(shared, one), strict=True):
          np.testing.assert_array_equal(value[k], wanted)


@pytest.mark.parametrize("row", [r for r in ROWS if r.split()[0] in GRADS])
def test_jvp_of_every_operation(row):
  """The derivative in a direction, against central differences."""
  out, ones, _, data = leaves_of(ROWS[row])
  moves = {n: g.buffer(f"d{n}", S, F) for n in ones}
  data |= {f"d{n}": rng.uniform(-1, 1, S) for n in ones}
  (found,) = run(_pushed([out], list(ones.values()), list(moves.values())), data)
  eps = 1e-6
  up, down = (run([out], {n: data[n] + e * data.get(f"d{n}", 0) for n in ones})[0] for e in (eps, -eps))
  flat = row in ("cast", "bitcast", "detach")
  np.testing.assert_allclose(
    found, np.zeros_like(found) if flat else (up - down) / (2 * eps), rtol=1e-6, atol=1e-7
  )


# ---------------------------------------------------------------- random graphs


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed):
  """Samples one by one; the gradient and the derivative in a direction are adjoint;
  and so are those of the gradient."""
  outs, data, _ = fuzz_graph.program(seed)
  roots = list(outs.values())
  leaves = [u for u in dict.fromkeys(u for r in roots for u in fuzz_graph_leaves(r)) if u.dtype is F]
  local = np.random.default_rng(seed)
  for u in leaves:
    data |= {f"{u.arg[0]} {k}": local.standard_normal(g.shape(u)) for k in ("v", "w")}
    data[f"{u.arg[0]} s"] = local.standard_normal((2, *g.shape(u)))
  for n, r in enumerate(roots):
    data[f"g{n}"] = local.standard_normal(g.shape(r))
  seeds = [g.buffer(f"g{n}", g.shape(r), F) for n, r in enumerate(roots)]
  v, w = ([g.buffer(f"{u.arg[0]} {k}", g.shape(u), F) for u in leaves] for k in "vw")
  back = [
    d if d is not None else g.full(g.shape(u), 0, F) for d, u in zip(gradients(roots, seeds, leaves), leaves)
  ]

  many = batched([*roots, *back], {u: g.buffer(f"{u.arg[0]} s", (2, *g.shape(u)), F) for u in leaves}, 2)
  for k in range(2):
    one = run([*roots, *back], data | {u.arg[0]: data[f"{u.arg[0]} s"][k] for u in leaves})
    for node, value in zip(many, one):
      if node is not None:
        np.testing.assert_allclose(run([node], data)[0][k], value, rtol=1e-12, atol=1e-12)

  dot = lambda xs, ys: sum((x * y).sum() for x, y in zip(xs, ys))
  forward = run(_pushed(roots, leaves, v), data)
  pulled, gs, vs, ws = (run(us, data) for us in (back, seeds, v, w))
  np.testing.assert_allclose(dot(forward, gs), dot(pulled, vs), rtol=1e-9, atol=1e-9)
  hv, hw = (run(_pushed(back, leaves, us), data) for us in (v, w))
  np.testing.assert_allclose(dot(hv, ws), dot(hw, vs), rtol=1e-8, atol=1e-8)


def fuzz_graph_leaves(root):
  from mini.ir.uop import toposort

  return [u for u in toposort(root) if u.op == "buffer"]


# ---------------------------------------------------------------- tensors, against PyTorch

X = np.random.default_rng(1).uniform(0.5, 1.5, (3, 4))
# fmt: off
FUNCTIONS = {  # written as both libraries spell it
  "elementwise": lambda x: (x.exp() * x.log()).tanh() / x.sqrt(),
  "reduce": lambda x: x.sum(0) * x.mean() + x.prod(0),
  "softmax": lambda x: x.softmax(-1) * x,
  "logsumexp": lambda x: x.logsumexp(0),
  "matmul": lambda x: x.T @ (x @ x.T).sin() @ x,
  "cumsum": lambda x: x.cumsum(1) * x.cumprod(0),
  "index": lambda x: x[1:, [0, 2, 2]] * x[0, 1],
  "views": lambda x: x.reshape(2, 6).permute(1, 0).flip(0)[::2].unsqueeze(1),
  "var": lambda x: x.var(0) + x.std(),
  "power": lambda x: x ** 3 + 2 ** x + x ** x,
  "clamp": lambda x: x.clamp(0.7, 1.2) + x.relu(),
  "layer_norm": lambda x: (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True) + 1e-5).rsqrt(),
}
# fmt: on


def both(ours, theirs, rtol=1e-9):
  """Equal trees of tensors, of which ours are computed together."""
  found = tensors_of(ours)
  found[0].realize(*found[1:])
  if isinstance(ours, (tuple, list)):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
      both(a, b, rtol)
  else:
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_as_pytorch(name):
  f, x, t = FUNCTIONS[name], Tensor(X), torch.tensor(X)
  move, tmove = Tensor(X[::-1] * 2), torch.tensor(X[::-1] * 2)
  func = torch.func
  stack, tstack = Tensor(np.stack([X, X[::-1] + 0.1], 2)), torch.tensor(np.stack([X, X[::-1] + 0.1], 2))

  def values(lib, x, move, stack, jacobian):
    y, back = lib.vjp(f, x)
    square = lambda x: (f(x) ** 2).sum()
    each = lib.vmap(lib.grad(square), 2)
    nested = lib.grad(lambda x: (each(x) ** 2).sum())(stack)
    return (
      *(y, back(y * y), lib.jvp(f, (x,), (move,)), jacobian(f)(x), lib.hessian(square)(x)),
      *(lib.vmap(f, 2, -1)(stack), each(stack), nested),
    )

  both(values(mini, x, move, stack, mini.jacobian), values(func, t, tmove, tstack, func.jacrev), 1e-7)


def test_higher_order():
  f = lambda x: (x.sin() * x**3).sum()
  x, v = Tensor(X), Tensor(X[::-1].copy())
  t, tv = torch.tensor(X), torch.tensor(X[::-1].copy())
  third = lambda lib: lib.grad(lambda x: lib.grad(lambda x: lib.grad(f)(x).sum())(x).sum())
  both(third(mini)(x), third(torch.func)(t))
  hvp = lambda lib, x, v: lib.jvp(lib.grad(f), (x,), (v,))[1]
  both(hvp(mini, x, v), hvp(torch.func, t, tv))
  both(mini.grad(lambda x: (mini.grad(f)(x) * v).sum())(x), hvp(torch.func, t, tv))
  both(mini.jit(lambda x, v: hvp(mini, x, v))(x, v), hvp(torch.func, t, tv))


def test_gradient_penalty():
  """A loss with a gradient in it; backward() through it."""
  w = Tensor(X, requires_grad=True)
  x = Tensor(X[:2], requires_grad=True)
  loss = (w @ x.T).tanh().sum()
  (loss + ((mini.gradient(loss, x) ** 2).sum() - 1) ** 2).backward()
  tw, tx = torch.tensor(X, requires_grad=True), torch.tensor(X[:2], requires_grad=True)
  tloss = (tw @ tx.T).tanh().sum()
  (tloss + ((torch.autograd.grad(tloss, tx, create_graph=True)[0] ** 2).sum() - 1) ** 2).backward()
  both((w.grad, x.grad), (tw.grad, tx.grad))


def test_trees_and_arguments():
  f = lambda p, x, scale: {"y": (p["w"] @ x * scale).sin(), "z": p["b"] * x.sum()}
  p = {"w": Tensor(X), "b": Tensor(X[0])}
  tp = {k: torch.tensor(v.numpy()) for k, v in p.items()}
  x, t = Tensor(X[1]), torch.tensor(X[1])
  ours, theirs = (
    lib.vjp(f, *a)[0]
    for lib, a in ((mini, (p, x, Tensor(2.0, dtype="float64"))), (torch.func, (tp, t, torch.tensor(2.0))))
  )
  both(list(ours.values()), list(theirs.values()))
  j = mini.jacobian(lambda p, x: f(p, x, 2), argnums=(0, 1))(p, x)
  tj = torch.func.jacrev(lambda p, x: f(p, x, 2), argnums=(0, 1))(tp, t)
  for out in ("y", "z"):
    both([j[out][0]["w"], j[out][0]["b"], j[out][1]], [tj[out][0]["w"], tj[out][0]["b"], tj[out][1]])
  xs, ts = Tensor(np.stack([X[0], X[1]])), torch.tensor(np.stack([X[0], X[1]]))
  v = mini.vmap(f, in_dims=({"w": None, "b": None}, 0, None), out_dims={"y": 0, "z": 1})(p, xs, 3)
  tv = torch.func.vmap(f, in_dims=({"w": None, "b": None}, 0, None), out_dims={"y": 0, "z": 1})(tp, ts, 3)
  both([v["y"], v["z"]], [tv["y"], tv["z"]])
  y, aux = mini.jacobian(lambda x: (x * x, "aux"), has_aux=True)(x)
  assert aux == "aux" and y.shape == (4, 4)
  assert (
    mini.jvp(lambda x: (x * x, 7), (x,), (x,), has_aux=True)[2]
    == mini.vjp(lambda x: (x, 7), x, has_aux=True)[2]
    == 7
  )
  gradient, aux = mini.grad(lambda a, b: ((a * b).sum(), "aux"), argnums=(1, -2), has_aux=True)(x, x * 2)
  both((gradient, mini.vmap(lambda r: r, out_axes=1)(Tensor(X))), ([t, t * 2], torch.tensor(X.T)))


def test_conv_under_vmap():
  """A value with a gradient rule of its own."""
  x, w = (
    np.random.default_rng(2).normal(size=(2, 2, 3, 6, 5)),
    np.random.default_rng(3).normal(size=(4, 3, 3, 2)),
  )
  ours, theirs = (
    lib.grad(
      lambda w, conv=conv, lib=lib, x=x: (lib.vmap(lambda x: conv(x, w, stride=2).sin())(x) ** 2).sum()
    )(w)
    for lib, conv, x, w in (
      (mini, Tensor.conv2d, Tensor(x), Tensor(w)),
      (torch.func, torch.nn.functional.conv2d, torch.tensor(x), torch.tensor(w)),
    )
  )
  both(ours, theirs)
  ws, tws = Tensor(np.stack([w, w * 2])), torch.tensor(np.stack([w, w * 2]))
  per = lambda lib, conv: lib.vmap(lib.grad(lambda w, x: (conv(x, w) ** 3).sum(), (0, 1)))
  both(
    per(mini, Tensor.conv2d)(ws, Tensor(x)), per(torch.func, torch.nn.functional.conv2d)(tws, torch.tensor(x))
  )


@pytest.mark.parametrize("draw", [Tensor.rand, Tensor.randn, lambda *s: Tensor.rand(*s, dtype="float64")])
def test_random_numbers_under_vmap(draw):
  x = Tensor(X)
  outcomes = []
  for f in (
    lambda: mini.vmap(lambda r: draw(4) + r, randomness="different")(x),
    lambda: draw(3, 4) + x,
    lambda: mini.vmap(mini.vmap(lambda e: draw() + e, randomness="different"), randomness="different")(x),
    lambda: mini.vmap(lambda r: draw(4) + r, randomness="same")(x),
    lambda: draw(4) + x,
    lambda: mini.vmap(mini.vmap(lambda e: draw() + e, randomness="same"), randomness="different")(x),
    lambda: draw(3).unsqueeze(1) + x,
  ):
    Tensor.manual_seed(9)
    outcomes.append(f().numpy())
  a, b, c, d, e, h, i = outcomes
  assert (a == b).all() and (b == c).all() and (d == e).all() and (h == i).all()


def test_dropout_and_jit_under_vmap():
  step = mini.jit(
    lambda x: mini.vmap(
      lambda r: mini.jit(lambda r: r.dropout(0.5, training=True))(r), randomness="different"
    )(x)
  )
  x = Tensor.ones(8, 64)
  a, b = step(x).numpy(), step(x).numpy()
  assert (a != b).any() and all((r != a[0]).any() for r in a[1:]) and 0.3 < (a == 0).mean() < 0.7


def test_no_gradients_are_left_behind():
  """A result of plain arguments holds no graph; one that depends on more can be differentiated."""
  x, w = Tensor(X), Tensor(X, requires_grad=True)
  f = lambda x: (x * x).sin()
  for y in (
    mini.jvp(f, (x,), (x,))[1],
    mini.vjp(f, x)[1](x)[0],
    mini.jacobian(f)(x),
    mini.vmap(mini.grad(lambda r: f(r).sum()))(x),
  ):
    assert not y.requires_grad
  for y in (mini.jvp(f, (w,), (x,))[1], mini.jvp(f, (x,), (w,))[1], mini.vjp(f, x)[1](w)[0], mini.vmap(f)(w)):
    assert y.requires_grad
  assert w.grad is None


# ---------------------------------------------------------------- gradients of tensors, hooks, custom gradients


def test_gradient_and_chain_rule():
  x, w = (Tensor(X, requires_grad=True) for _ in range(2))
  t, u = (torch.tensor(X, requires_grad=True) for _ in range(2))
  y, z, ty, tz = x * w, x.sum(), t * u, t.sum()
  given, tgiven = Tensor(X * 2), torch.tensor(X * 2)
  both(
    mini.gradient([y, z], (x, w), [given, None]),
    torch.autograd.grad([ty, tz], [t, u], [tgiven, None], retain_graph=True),
  )
  both(mini.chain_rule({y: given}, {"a": w})["a"], torch.autograd.grad(ty, u, tgiven)[0])
  assert (
    mini.gradient(z, [w], materialize_grads=True)[0].tolist() == np.zeros((3, 4)).tolist() and x.grad is None
  )
  for error, bad in {
    "y has 12 elements": lambda: mini.gradient(y, x),
    "does not have the shape": lambda: mini.chain_rule({y: z}, x),
    "w does not require": lambda: mini.gradient(z, given),
    "2 tensors and 1": lambda: mini.gradient([y, z], x, [given]),
  }.items():
    with pytest.raises(MiniError, match=error):
      bad()


def test_hooks_as_pytorch():
  def program(t, lib):
    w = t(X)
    seen = []
    w.requires_grad_()
    first = w.register_hook(lambda g: g * 2)
    w.register_hook(lambda g: g + 1)
    y = w * w
    y.register_hook(lambda g: seen.append(g) or g * 3)
    y.retain_grad()
    z = y.sin()
    z.register_hook(lambda g: None)
    z.sum().backward()
    found = [w.grad, y.grad, seen[0]]
    first.remove()
    w.grad = None
    (w * 5).sum().backward()
    return [*found, w.grad, lib.grad((w * w).sum(), w)[0]]

  class Ours:
    grad = staticmethod(lambda y, x: [mini.gradient(y, x)])

  both(program(Tensor, Ours), program(torch.tensor, torch.autograd))


def test_hooks_stay_with_a_parameter():
  w = Tensor([1.0, 2.0], requires_grad=True)
  w.register_hook(lambda g: g * 10)
  y = w * 1
  assert y.retains_grad is False and w.is_leaf
  optimizer = mini.nn.optim.SGD([w], lr=0.1)
  for wanted in ([0.0, 1.0], [-1.0, 0.0]):
    optimizer.zero_grad()
    w.sum().backward()
    optimizer.step()
    np.testing.assert_allclose(w.numpy(), wanted, atol=1e-6)
  w.register_hook(lambda g: g.sum())
  with pytest.raises(ShapeError, match="hook"):
    w.sum().backward()
  with pytest.raises(MiniError, match="does not require"):
    Tensor([1.0]).register_hook(print)
  with pytest.raises(MiniError, match="does not require"):
    Tensor([1.0]).retain_grad()


@mini.custom_gradient(lambda g, out, x, y, times=1: (g[0] * x * 2 * times, g[1] * 100))
def pair(x, y, times=1):
  return x * x * times, y.round()


@pytest.mark.parametrize(
  "wrapped", [lambda f: f, lambda f: lambda *a: mini.checkpoint(f, *a), mini.vmap, mini.jit]
)
def test_custom_gradient(wrapped):
  x = Tensor([1.0, 2.0, -3.0])
  f = lambda x, y: pair(x, y, times=5)
  loss = lambda x, y: sum((a * a).sum() for a in wrapped(f)(x, y))
  dx, dy = mini.grad(loss, (0, 1))(x, x + 0.2)
  np.testing.assert_allclose(dx.numpy(), 2 * 5 * 5 * 2 * x.numpy() ** 3)
  np.testing.assert_allclose(dy.numpy(), 200 * x.numpy())
  second = mini.grad(lambda x: mini.grad(loss)(x, x).sum())(x)
  np.testing.assert_allclose(second.numpy(), 300 * x.numpy() ** 2, rtol=1e-6)
  both(
    mini.jvp(loss, (x, x), (x, x))[1],
    torch.tensor(float((100 * x.numpy() ** 4 + 200 * x.numpy() ** 2).sum())),
    1e-6,
  )


def test_custom_gradient_of_what_has_none():
  """The value comes from NumPy; nothing passes to what is reached otherwise; integers get none."""
  w = Tensor([2.0], requires_grad=True)
  f = mini.custom_gradient(lambda g, out, x, i: (g * out, None))(lambda x, i: Tensor(np.exp(x.numpy())) * w)
  x = Tensor([1.0, 3.0], requires_grad=True)
  y = f(x, Tensor([1, 2]))
  y.sum().backward()
  assert (
    w.grad is None
    and np.allclose(x.grad.numpy(), y.numpy())
    and np.allclose(y.numpy(), 2 * np.exp([1.0, 3.0]))
  )
  assert not f(x.detach(), Tensor(1)).requires_grad or w.requires_grad
  for error, backward in (
    ("returned 2 gradients for 1", lambda g, out, x: (g, g)),
    ("shape", lambda g, out, x: g.sum()),
  ):
    with pytest.raises(MiniError, match=error):
      mini.custom_gradient(backward)(lambda x: x * 1)(x).sum().backward()


def test_custom_gradient_of_complex_numbers():
  """A complex argument is one: None stands for both of its parts."""
  z, x = Tensor([1 + 2j], requires_grad=True), Tensor([3.0], requires_grad=True)
  f = mini.custom_gradient(lambda g, out, z, x: (None, g.real * 5))(lambda z, x: z * x)
  dz, dx = mini.autograd.grad(f(z, x).real.sum(), (z, x), allow_unused=True, materialize_grads=True)
  assert dz.tolist() == [0] and dx.tolist() == [5]
  for error, backward in (
    ("real gradient for a complex", lambda g, out, z: g.real),
    ("returned 2 gradients for 1", lambda g, out, z: (g, g)),
  ):
    with pytest.raises(MiniError, match=error):
      mini.custom_gradient(backward)(lambda z: z * 1)(z).real.sum().backward()


def test_errors_of_transforms():
  x = Tensor(X)
  for error, message, bad in (
    (MiniError, "asks for the values", lambda: mini.vmap(lambda r: r.sum().item())(x)),
    (MiniError, "asks for the values", lambda: mini.vmap(lambda r: r if r.sum() > 0 else -r)(x)),
    (MiniError, "draws random numbers", lambda: mini.vmap(lambda r: r + Tensor.rand(4))(x)),
    (ShapeError, "different numbers of samples", lambda: mini.vmap(lambda a, b: a)(x, x.T)),
    (ShapeError, "no argument has samples", lambda: mini.vmap(lambda a: a)(3)),
    (ShapeError, "0-d tensor", lambda: mini.vmap(lambda a: a)(Tensor(1.0))),
    (ShapeError, "no axis 2", lambda: mini.vmap(lambda a: a, 2)(x)),
    (ShapeError, "does not have the form", lambda: mini.vmap(lambda a: a, (0, 0))(x)),
    (ShapeError, "out_axes is None", lambda: mini.vmap(lambda a: a, out_axes=None)(x)),
    (ValueError, "randomness is", lambda: mini.vmap(lambda a: a, randomness="some")),
    (ShapeError, "tangents have the shapes", lambda: mini.jvp(lambda a: a, (x,), (x.T,))),
    (ShapeError, "cotangents have the shapes", lambda: mini.vjp(lambda a: a, x)[1](x.T)),
    (DTypeError, "only float tensors", lambda: mini.jacobian(lambda a: a)(Tensor([1]))),
    (DTypeError, "the function returns one that is bool", lambda: mini.jvp(lambda a: a > 1, (x,), (x,))),
    (DTypeError, "not a tensor", lambda: mini.vjp(lambda a: 3, x)),
    (ValueError, "argnums is 1", lambda: mini.grad(lambda a: a, 1)(x)),
  ):
    with pytest.raises(error, match=message):
      bad()
  assert mini.vmap(lambda a: 3.0 * Tensor.ones(2), out_axes=None)(x).shape == (2,)
  assert mini.vmap(lambda a: (a.sum(), "name"))(x)[1] == "name"
  assert mini.vmap(lambda a: a * 2)(Tensor.zeros(0, 3)).shape == (0, 3)


# ---------------------------------------------------------------- what does not depend on a tensor, or is flat in it


def test_the_gradient_of_what_was_not_used_is_an_error():
  x, w = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=True)
  early = (x * w).sum()
  x.requires_grad_()
  late = (x * w).sum()
  for y, unused in ((early, x), (late, Tensor([1.0], requires_grad=True)), (w.detach().sum() + x.sum(), w)):
    with pytest.raises(MiniError, match=r"y does not depend on w(.|\n)*allow_unused=True gives None"):
      y.gradient(unused)
    with pytest.raises(MiniError, match="y does not depend on w"):
      mini.gradient(y, {"unused": unused})
    assert y.gradient(unused, allow_unused=True) == [None]
    assert y.gradient(unused, materialize_grads=True)[0].tolist() == [0] * unused.numel()
    assert mini.gradient(y, [unused], allow_unused=True) == [None]
  given = late.gradient(x, w, Tensor([1.0], requires_grad=True), allow_unused=True)
  assert [g if g is None else g.tolist() for g in given] == [[3, 4], [1, 2], None]
  z = Tensor([1 + 1j], requires_grad=True)
  with pytest.raises(MiniError, match="y does not depend on w"):
    late.gradient(z)
  assert (z.real.sum()).gradient(z)[0].tolist() == [1]


FLAT = {
  "sign": lambda x: x.sign(),
  "sgn": lambda x: x.sgn(),
  "floor": lambda x: x.floor(),
  "round": lambda x: (x * 3).round(decimals=1),
  "trunc of a quotient": lambda x: x.div(x * x + 1, rounding_mode="trunc"),
  "x**0": lambda x: x**0,
  "an inner size of 0": lambda x: x[:0].T @ x[:0],
  "einsum over nothing": lambda x: (torch or Tensor).einsum("ij,ik->jk", x[:0], x[:0]) if not isinstance(x, Tensor) else Tensor.einsum("ij,ik->jk", x[:0], x[:0]),
  "norm(0)": lambda x: x.norm(0),
  "norm at 0": lambda x: (x * 0).norm(),
  "the largest of nothing else": lambda x: (x * 0).max(0)[0] * 0,
  "copysign": lambda x: x.detach().copysign(x),
  "zeroed": lambda x: (x * 2).zero_(),
  "filled": lambda x: (x * 2).fill_(3),
  "compared in place": lambda x: (x * 2).lt_(1),
  "to the power 0 of a matrix": lambda x: x[:, :2].T.matrix_power(0) if x.shape[0] == 2 else x**0,
}  # fmt: skip


@pytest.mark.parametrize("name", FLAT)
def test_backward_of_what_is_flat_gives_zeros(name):
  for jitted in (False, True):
    x = Tensor([[1.5, -2.0, 0.0], [0.5, 1.0, 3.0]], requires_grad=True)

    def step(x=x):
      y = FLAT[name](x).sum()
      assert y.requires_grad
      y.backward()
      return x.grad

    assert (mini.jit(step) if jitted else step)().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_change_that_is_not_recorded_lets_gradients_pass():
  x = Tensor([1.0, 2.0], requires_grad=True)
  y = x * 3
  with no_grad():
    y.mul_(10)
    y[0] = 7
  assert y.tolist() == [7, 60] and y.requires_grad
  (y * y).sum().backward()
  assert x.grad.tolist() == [42, 360]
