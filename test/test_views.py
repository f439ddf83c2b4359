"""Views: what is written to one is written to what it is a view of, and the other way round, as in PyTorch."""

import gc
import inspect
import weakref

import methods
import numpy as np
import pytest
from quickly import compile_quickly

from mini import Device, Tensor, dtypes, jit, nn, no_grad, stats
from mini.tensor.views import owner_of
from mini.types import MiniError

torch = methods.torch


def start(T):
  return T.arange(24).reshape(2, 3, 4) * 1.0


# Each is run with tensors of both libraries. What is compared: x and y afterwards.
WRITES = """
x[0][1] = 5
x[0].fill_(1)
x[:, 0].zero_()
x[1, :, 1:3].mul_(-1)
x.view(-1)[0] = 1
x.view(4, 6).t()[0] = 7
x.permute(2, 1, 0)[0, 1] = 7
x[0] += 1
x[0][:, 1] -= 1
x.mT[0, 1] *= 3
x.data[0].zero_()
x.detach().zero_()
x.unsqueeze(0)[0, 1, 2] = -1
x[0].diagonal().fill_(9)
x[:, :, 1:].diagonal(1, 1, 2).copy_(x[0, :2, 0])
x.flatten(1)[:, 1:9:2].mul_(10)
x.transpose(1, 2).reshape(-1).zero_()
x.transpose(1, 2).flatten(1)[0] = 3
x.unfold(2, 2, 2)[0].zero_()
x.narrow(1, 1, 2).select(0, 1)[0] = 4
x.swapaxes(0, 2).movedim(0, 1)[1].add_(1)
x.squeeze().ravel()[3:5] = 8
x.float()[0] = 1
x.to(x.dtype).add_(1)
x[x > 5].zero_()
x[:, [0, 1]][0] = 5
x[x[0, 0].argmax() - 2][1].zero_()
x.clone()[0] = 1
x[..., None][0, 0, 0, 0] = 3
x[1:0].zero_()
x[0, 0, 0].add_(3)
for row in x: row += 1
for row in x.unbind(1): row[0] *= 2
for n, part in enumerate(x.split([1, 2], 1)): part += n
a, b = x.chunk(2); a.zero_(); y = b
y = x[0]; y += 1
y = x[0]; x += 1; y *= 2
y = x[0]; z = y[1:]; x += 1; z.zero_(); y[0] = 7
y = x[0]; y[:] = x[1]; x[1].zero_()
y = (x * 2).view(6, 4)[1:5]; z = y[1:]; z.zero_()
y = x.T if x.ndim == 2 else x.mT; x[0].zero_(); y[1, 0] += 1
y = x.expand(2, 2, 3, 4)[0]; x.add_(1)
y = x[0]; x.unsqueeze_(0); y.zero_(); x[0, 1] = 1
y = x[0]; y.t_(); y[0] = 5; y.transpose_(0, 1).mul_(2)
y = x[1]; x.data = x[0]; x.zero_(); y.add_(1)
y = x[0]; x = x + 1; y.zero_()
y = x[:, 1]; x.fill_(3); y[0, 2] = 1; x.sub_(1)
y = T.einsum("ijk->kij", x); y[0, 1] = 5; x[0, 0] += 1
y = T.einsum("iij->ji", x[:, :2]); y[1] = 5; x[0, 0] += 1
y = T.einsum("ijk->ikj", x * 1); y.zero_()
""".strip().splitlines()


def run(T, text, jitted=False):
  names = {"x": start(T), "y": start(T)[0], "T": T}
  if T is Tensor:
    names["x"].realize()
  code = compile(text, text, "exec")

  def body():
    local = {**names}
    exec(code, local)  # noqa: S102
    return local["x"] * 1, local["y"] * 1

  return [t.numpy() for t in (jit(body)() if jitted else body())]


@pytest.mark.skipif(torch is None, reason="PyTorch is the reference")
@pytest.mark.parametrize(
  "text, jitted",
  [(text, False) for text in WRITES]
  + [pytest.param(text, True, marks=[pytest.mark.full] if n % 6 else []) for n, text in enumerate(WRITES)],
)
def test_writes_through_views(text, jitted):
  if jitted and ("_(0); y.zero_" in text or ".data = " in text or " > " in text):
    with pytest.raises(
      MiniError, match="inside a jitted function"
    ):  # other memory for x, or a size that depends on values
      run(Tensor, text, jitted)
    return
  for mine, theirs in zip(run(Tensor, text, jitted), run(torch, text)):
    np.testing.assert_array_equal(mine, theirs)


# The program, and what its error says. In PyTorch each is an error, too.
REFUSED = {
  "x.requires_grad_(); x[0].zero_()": r"a view of a leaf that requires a gradient; do it under no_grad",
  "x.requires_grad_(); x.view(-1)[0] = 1": r"a view of a leaf that requires a gradient",
  "x[0].expand(2, 3, 4)[0, 0] = 1": r"not one to one elements of the tensor(.|\n)*a.clone\(\) has",
  "x.unfold(2, 2, 1).add_(1)": r"not one to one",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_written(text):
  with pytest.raises(MiniError, match=REFUSED[text]):
    run(Tensor, text)


# What is a view in PyTorch, and is computed here: a write to it is an error, not lost.
COMPUTED = """
x.view(dtypes.uint8)[0] = 1
x.view(dtypes.float64).zero_()
x.as_strided((2, 2), (1, 2))[0] = 1
x.view_as_complex().view_as_real()[0] = 1
""".strip().splitlines()


@pytest.mark.parametrize("text", COMPUTED)
def test_what_is_computed_is_not_written(text):
  names = {"x": start(Tensor).reshape(-1, 2), "dtypes": dtypes}
  with pytest.raises(MiniError, match="not one to one"):
    exec(text, names)  # noqa: S102


def test_results_of_a_jitted_function_share_memory():
  """Of values that it made itself, in whatever order it returns them."""

  @jit
  def f(x):
    y = x * 2
    return y[0], y, {"column": y[:, 1], "again": y}

  for _ in range(3):
    row, y, others = f(Tensor([[1.0, 2.0], [3.0, 4.0]]))
    row.fill_(9)
    others["column"] += 1
    assert y.tolist() == others["again"].tolist() == [[9, 10], [6, 9]]
    y.zero_()
    assert row.tolist() == others["column"].tolist() == [0, 0]


LOOKS = {
  "realize": lambda e: e.realize(),
  "detach": lambda e: e.detach().realize(),
  "numpy": lambda e: e.numpy(),
  "more": lambda e: (e.detach() + 1).numpy(),
}
VALUES = {
  "a view": lambda s: s[0],
  "other order": lambda s: s.flip(0),
  "elementwise": lambda s: s * 2,
  "of a view": lambda s: s[:2] * 2,
  "a view of it": lambda s: (s * 2)[0],
  "a sum": lambda s: s.sum(),
  "a product": lambda s: s @ s,
  "cast": lambda s: s.half(),
  "cat": lambda s: s.cat(s),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("look", LOOKS)
def test_a_jitted_function_computes_what_somebody_computed_outside(look, value, monkeypatch):
  """Each time, of the state as it is: nodes are equal where what they are of is, and one of them has its value."""
  compile_quickly(monkeypatch)
  build, state = VALUES[value], Tensor([3.0, 1.0, 3.0]).realize()
  held = build(state)
  first = LOOKS[look](held)

  @jit
  def f(x):
    before = build(state) * 1
    state.sub_(x)
    return before, build(state)

  for n in range(3):
    for step, got in enumerate(f(Tensor(1.0))):
      np.testing.assert_array_equal(got.numpy(), build(Tensor([3.0, 1.0, 3.0]) - (n + step)).numpy())
  assert first is not None
  shares = owner_of(held) is state
  np.testing.assert_array_equal(held.numpy(), build(Tensor([3.0, 1.0, 3.0]) - (3 if shares else 0)).numpy())


def test_a_value_that_is_read_is_told_from_what_is_computed_anew():
  """Both are the same expression; one of them somebody has, with its graph."""
  weight = Tensor([3.0, 1.0], requires_grad=True)
  held = (weight * 2).realize()

  @jit
  def f(x):
    with no_grad():
      before = weight * 2
      weight.sub_(x)
      return before, held.detach()

  for n in range(3):
    assert [t.tolist() for t in f(Tensor(1.0))] == [[6 - 2 * n, 2 - 2 * n], [6, 2]]


def test_bytes_follow_a_write():
  x = Tensor([1, 2], dtype="int16")
  y = x.view(dtypes.uint8)
  x[1] = 258
  assert y.tolist() == [1, 0, 2, 1]


def gradients(T, text):
  x, names = start(T).requires_grad_(), {"T": T, "no_grad": no_grad if T is Tensor else torch.no_grad}
  names |= {"x": x, "y": x * 2, "z": start(T) * 0}
  code = compile(text, text, "exec")
  exec(code, names)  # noqa: S102
  loss = (names["y"] * names["z"].cos()).sum() + (x * x).sum()
  loss.backward()
  return [t.detach().numpy() for t in (x, names["y"], names["z"], x.grad)]


GRADIENTS = """
y[0].mul_(3); y[1][0] = x[0][0]
z[0].copy_(x[1]); z.view(-1)[3] = x[0, 0, 1]; y.sub_(z)
z.mT[1].add_(y.mT[0, 0].unsqueeze(0)[:, :3].sum(1, keepdim=True) if 0 else y[:, :1, :3].reshape(2, 3).sum(0)); y[0] += 1
a = y[0]; a.mul_(x[1]); y.view(-1)[5] = 2; a.diagonal().copy_(x[0].diagonal() * 3)
v = y[0]; y.mul_(x); z[1].copy_(v)
y.data[0] = 5
y.detach()[1].mul_(7)
no_grad().__enter__; y.data.view(-1)[2:9].zero_(); z.copy_(y)
a, b = y.chunk(2); z[0].add_(a[0]); z[:, 1].add_(b[0, 2])
""".strip().splitlines()


@pytest.mark.skipif(torch is None, reason="PyTorch is the reference")
@pytest.mark.parametrize("text", GRADIENTS)
def test_gradients_pass_through_writes(text):
  for mine, theirs in zip(gradients(Tensor, text), gradients(torch, text)):
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-4)


def test_a_leaf_and_its_gradient_are_written_under_no_grad():
  w = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
  row, grown = w.data[0], w[1]
  with no_grad():
    w[0].mul_(10)
    w[:, 1].fill_(7)
  assert (
    w.tolist() == [[10, 7], [3, 7]] and row.tolist() == [10, 7] and grown.tolist() == [3, 7] and w.is_leaf
  )
  (w * w).sum().backward()
  part = w.grad[0]
  w.grad[1].zero_()
  assert w.grad.tolist() == [[20, 14], [0, 0]]
  (w * 1).sum().backward()
  assert part.tolist() == [21, 15]
  model = nn.Linear(3, 2)
  for i in range(2):
    model.weight.data[i].normal_(5, 0.01)
  nn.init.zeros_(model.bias.data[:1])
  assert (model.weight > 4).all().item() and model.bias[0].item() == 0 and model.weight.requires_grad


STATES = {
  "a view from outside is written": lambda s: s["row"].copy_(s["a"]),
  "what it is a view of is written": lambda s: s["x"].mul_(2),
  "both, and views made inside": lambda s: (s["x"].T[1].add_(1), s["row"].add_(s["a"]), s["column"].zero_()),
  "a view is read before and after": lambda s: (
    s["x"].add_(s["row"].sum() + s["column"][0] * 0).sub_(s["row"])
  ),
  "an argument is written through a view": lambda s: s["a"][1:].zero_(),
  "a view of an argument": lambda s: s["a"].view(2, 2)[1].add_(s["row"][:2]),
}


@pytest.mark.parametrize("name", STATES)
def test_states_and_their_views_under_jit(name):
  def program(jitted):
    x = Tensor.arange(12).reshape(3, 4).float().clone().realize()
    tensors = {"x": x, "row": x[1], "column": x[:, 2], "flat": x.view(-1)[2:9]}
    body = lambda a: (STATES[name]({**tensors, "a": a}), tensors["flat"].sum() + a.sum())[1]
    f, log = jit(body) if jitted else body, []
    for n in range(4):
      a = Tensor([float(n), 1.0, 2.0, 3.0]).realize()
      tensors["late"] = x[0] if n else x[2]  # a view that the capture does not know
      out = f(a)
      log.append([t.numpy() for t in (out, a, *tensors.values())])
      tensors["column"].add_(1)
      log.append([t.numpy() for t in tensors.values()])
    return log

  for eager, jitted in zip(program(False), program(True)):
    for a, b in zip(eager, jitted, strict=True):
      np.testing.assert_array_equal(a, b)


def test_results_of_a_jitted_function_are_views_of_what_they_were_inside():
  x = Tensor.zeros(2, 3).realize()

  @jit
  def f(a):
    x.add_(1)
    return x, x[0], a.view(-1)[1:], x * 1

  a = Tensor([1.0, 2.0])
  for n in (1, 2, 3):
    whole, row, part, copy = f(a)
    row[0] = 10 * n
    part.zero_()
    copy.zero_()
    assert whole.tolist() == x.tolist() == [[10 * n, n, n], [n, n, n]] and a.tolist() == [1, 0]
  x.zero_()
  assert row.tolist() == [0, 0, 0]


def test_a_view_as_the_argument_that_is_written():
  f = jit(lambda a: a.mul_(2).sum())
  x = Tensor.ones(2, 3)
  for n in (1, 2, 3):
    assert f(x[0]).item() == 3 * 2**n and x.tolist() == [[2**n] * 3, [1] * 3]
  with pytest.raises(MiniError, match="argument of a jitted function that also reaches it"):
    jit(lambda a, b: a.add_(b[0]))(x[0], x)
  with pytest.raises(MiniError, match="argument of a jitted function that also reaches it"):
    jit(lambda a: a.add_(x.sum()))(x[0])


@pytest.mark.skipif(Device.DEFAULT != "CPU", reason="the interpreter does not write in place")
def test_a_state_with_views_is_updated_in_place():
  cache = Tensor.zeros(4, 5).realize()
  layer, whole = cache[1], cache.view(-1)

  @jit
  def f(v):
    layer[2:4] = v
    cache[2].copy_(v.sum())

  for n in range(4):
    v = Tensor([float(n), 1.0]).realize()
    address, before = cache.uop.arg[0].memory.address, dict(stats)
    f(v)
    assert cache.uop.arg[0].memory.address == address or n == 0
    assert n < 2 or stats.bytes_allocated == before["bytes_allocated"]
    assert layer.tolist() == [0, 0, n, 1, 0] and whole[10].item() == n + 1


def test_nothing_is_held_that_nobody_sees():
  def alive(t):
    gc.collect()
    return t() is not None

  x = Tensor.arange(6).realize()
  y, base = x[1:3], weakref.ref(x)
  del x
  y.realize()
  assert not alive(base) and y.tolist() == [1, 2]  # the only one: its elements are its own
  x = Tensor.arange(6).realize()
  y, z, base = x[1:3], x[2:4], weakref.ref(x)
  y.realize()
  del x
  y.zero_()
  assert alive(base) and z.tolist() == [0, 3]  # several: they share what was computed
  lazy = Tensor.arange(6) * 2
  part, base = lazy[:2], weakref.ref(lazy)
  part.realize()
  del lazy
  assert not alive(base)  # a graph is not kept for it
  x = Tensor.arange(6)
  for _ in range(1000):
    x[2:].sum()
  assert len(x._views) < 20


def test_two_views_share_memory_when_what_they_are_views_of_has_gone():
  same = jit(lambda a: a)
  x = Tensor([1, 2])
  result = same(x)
  flat = result.view(2, 1)
  del x
  flat.realize()  # the result sees what is written to it
  flat.neg_()
  assert result.tolist() == [-1, -2]
  x = Tensor(2)
  result = same(x)
  flat = result.view(-1)
  del x
  flat.detach().numpy()
  jit(lambda a: flat.neg_() + a)(Tensor([1]))  # the trace realizes what it reads
  assert result.item() == -2
  x = Tensor([1, 2])
  row, column = jit(lambda a: (a.view(1, 2), a.view(2, 1)))(x)
  again, base = same(x), weakref.ref(x)
  del x
  row.neg_()
  assert column.tolist() == [[-1], [-2]] and again.tolist() == [-1, -2]
  del row, column, again
  gc.collect()
  assert base() is None
  lazy = Tensor([1, 2, 3, 4, 5, 6, 7]) + 1
  part = lazy[:2].realize()
  flat = part.view(1, 2)
  del lazy
  flat.realize()
  flat.neg_()
  assert part.tolist() == [-2, -3]


def test_results_that_are_views_of_what_is_no_result():
  @jit
  def parts(x):
    y = x + 1
    return y.detach(), y.view(-1), y[0], y[:, 1:], y.mT

  @jit
  def windows(x):
    y = x + 1
    return y[:3], y.unfold(0, 2, 1)  # which holds elements twice

  row = jit(lambda x: (x + 1).split(1))
  for _ in range(3):  # traced; called; as a whole, and from what is left of a routine
    whole, flat, first, last, turned = parts(Tensor([[1, 2, 3], [4, 5, 6]]))
    assert last.stride() == (3, 1) and turned.stride() == (1, 3)
    first[1] = 9
    last[1] = 7
    assert whole.tolist() == [[2, 9, 4], [5, 7, 7]] and turned.tolist() == [[2, 5], [9, 7], [4, 7]]
    del whole, first
    flat.neg_()
    assert last.tolist() == [[-9, -4], [-7, -7]]
    a, b = windows(Tensor([1, 2, 3, 4]))
    a.zero_()
    assert b.tolist() == [[0, 0], [0, 0], [0, 5]]
    one, two = row(Tensor([1, 2]))
    seen = one.view(1, 1)
    one.neg_()
    assert seen.tolist() == [[-2]] and two.tolist() == [3]
    base = weakref.ref(one._base)
    del one, seen, two
    assert base() is None


def test_results_at_an_index_of_the_call():
  element = jit(lambda x, i: x[i])

  @jit
  def several(x, i):
    y = x + 1
    return y[i + 1], y[1:], y[:2]

  @jit
  def both(x, i):
    y = x + 1
    return y, y[i]

  for i in (0, 1):
    x = Tensor([1, 2, 3])
    result = element(x, Tensor(i))
    x += 10
    assert result.item() == 11 + i
    y, result = both(x, i)
    result.zero_()
    assert y.tolist() == [0 if n == i else 12 + n for n in range(3)]
    result, last, _ = several(x, Tensor(i))
    last *= 2
    assert result.item() == (26, 28)[i]
    result.zero_()
    assert last.tolist() == [0 if n == i else 26 + 2 * n for n in range(2)]
  at = Tensor(0)

  @jit
  def step(x):
    result = x[at]
    at.add_(1)
    return result

  results = [step(x) for _ in range(3)]
  x += 1
  assert [t.item() for t in results] == [12, 13, 14]


def test_views_of_what_has_no_name():
  x = Tensor.arange(6).reshape(2, 3)
  row = x[0]
  x += 1
  assert x.tolist() == [[1, 2, 3], [4, 5, 6]] and row.tolist() == [1, 2, 3]  # both in memory, of their own
  row.zero_()
  assert x.tolist() == [[0, 0, 0], [4, 5, 6]]
  gc.collect()
  x[0, 1] = 9
  assert row.tolist() == [0, 9, 0]
  f = jit(lambda: (x, x[1:], row))
  for n in range(3):
    whole, end, again = f()
    again.fill_(n)
    end[0, 0] = n
    assert whole.tolist() == x.tolist() == [[n, n, n], [n, 5, 6]] and row.tolist() == [n, n, n]


def test_many_writes_and_views_of_views():
  x = Tensor.zeros(24, 3)
  for n, row in enumerate(x):
    row += n
  assert x[:, 1].tolist() == [*range(24)]
  y = x
  for _ in range(23):
    y = y[1:]
  y[0, 1] = -1
  assert x[23].tolist() == [23, -1, 23]
  for _ in range(40):
    y.add_(1)
  assert x[23].tolist() == [63, 39, 63]


def test_complex_tensors_and_several_devices():
  z = Tensor([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]])
  row, part, turned = z[0], z.imag, z.conj()
  row[0] = 1j
  part[1].zero_()
  turned[0, 1] = 2j
  z.T[0] += 1
  assert z.tolist() == [[1 + 1j, -2j], [6 + 0j, 7 + 0j]] and row.tolist() == [1 + 1j, -2j]
  pairs = Tensor([[1.0, 2.0], [3.0, 4.0]])
  pairs.view_as_complex()[0] = 5j
  assert pairs.tolist() == [[0, 5], [3, 4]]
  for x in (Tensor.zeros(4, 3).shard(("CPU", "CPU:1"), 0), Tensor.zeros(4, 3).shard(("CPU", "CPU:1"))):
    whole = x.T
    x[1].fill_(3)
    x[:, 2].add_(1)
    assert x.tolist() == [[0, 0, 1], [3, 3, 4], [0, 0, 1], [0, 0, 1]] and whole[0].tolist() == [0, 3, 0, 0]


# Where sharing memory is not PyTorch's: results of einsum, `contiguous`, `view_as_real` and `view` as a type of another
# size are copies.
COPIES = (
  "einsum",
  "contiguous",
  "view_as_real",
  "i.view(",
  "shard",
  "pad_to",
  "from_dlpack",
  "assign",
  "replace",
  "histogram",
)


@pytest.mark.full
@pytest.mark.skipif(torch is None, reason="PyTorch is the reference")
def test_what_shares_memory_does_so_in_pytorch():
  """Of every row of test/methods: is a result a view of an input, here and there?"""
  tried = 0
  for row in methods.rows():
    if row.by_numpy or "nn" in methods.names_in(row.ours) or any(name in row.ours for name in COPIES):
      continue
    d = row.types[0]
    try:
      theirs = aliases(row, row.theirs, d, torch)
    except Exception:  # noqa: S112, BLE001 - the row is of a type that PyTorch has not got, or a name of functional
      continue
    assert aliases(row, row.ours, d, Tensor) in (theirs, None), row.name
    tried += 1
  assert tried > 500


def aliases(row, expression, d, T):
  """Of each result, the names of the inputs that it shares memory with."""
  names = {**methods.COMMON, "T": T, "F": torch.nn.functional, "torch": torch}
  names |= (
    methods.TYPES if T is Tensor else {n: getattr(torch, t.name, None) for n, t in methods.TYPES.items()}
  )
  inputs = {}
  for name, (array, kind) in methods.inputs_of(row, expression, d).items():
    names[name] = array
    if kind is not None:
      made = Tensor(array.copy(), dtype=kind) if T is Tensor else torch.from_numpy(array.copy())
      names[name] = inputs[name] = made if T is Tensor else made.to(getattr(torch, kind.name))
  found = eval(expression, names)
  results = [
    t
    for t in (found if isinstance(found, (tuple, list)) else [found])
    if isinstance(t, (Tensor, torch.Tensor))
  ]
  if any(not t.numel() for t in results):
    return None
  if T is Tensor:
    homes = [{owner_of(p) for p in t._parts()} for t in results]
    return [{n for n, x in inputs.items() if home & {*x._parts()}} for home in homes]
  homes = [t.untyped_storage().data_ptr() for t in results]
  return [{n for n, x in inputs.items() if x.untyped_storage().data_ptr() == home} for home in homes]


def test_every_step_has_its_transpose():
  """What a step takes is where its transpose puts it."""
  from mini.tensor.views import STEPS

  assert {name for name, s in STEPS.items() if s.up is None} == {"picked", "repeated", "computed"}
  assert all(inspect.isfunction(s.down) and callable(s.strides) for s in STEPS.values())


@pytest.mark.skipif(torch is None, reason="PyTorch is the reference")
@pytest.mark.parametrize("chunk", [pytest.param(n, marks=[pytest.mark.full] if n else []) for n in range(20)])
def test_random_programs(chunk, request, monkeypatch):
  """States, views, writes, aliases and results, eager and jitted: test/fuzz_views.py."""
  import fuzz_views

  compile_quickly(monkeypatch)
  seed = request.config.option.seed * 100_000 if chunk else 0
  size = 20 if chunk else 3
  for n in range(seed + chunk * size, seed + (chunk + 1) * size):
    assert fuzz_views.check(n) == "", n


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("computed", [True, False])
def test_reshape_copies_whether_the_base_is_held_or_not(kept, computed):
  """PyTorch: what `reshape` cannot see as a view is a copy. A view that had been computed after nobody held its base was
  taken for a memory in the order of its axes."""
  base = Tensor(np.arange(6).reshape(2, 3))
  base = base.realize() if computed else base + 0
  view = base.T
  if not kept:
    del base
  jit(lambda v: v + 1)(view)
  assert view.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]
  assert view.stride() == (1, 3) and not view.is_contiguous() and view[1:].stride() == (1, 3)
  flat, rows = view.reshape(-1), view[:, 0].reshape(3, 1)  # a copy, a view
  view[...] = 7
  assert flat.tolist() == [0, 3, 1, 4, 2, 5] and rows.tolist() == [[7]] * 3


def test_a_jitted_view_keeps_its_strides_when_its_base_goes():
  x = Tensor(np.arange(6).reshape(2, 3)).realize()
  view = jit(lambda x: x.T)(x)
  del x
  assert view.realize().stride() == (1, 3)
  flat = view.reshape(-1)
  view[0] = 7
  assert flat.tolist() == [0, 3, 1, 4, 2, 5]


def test_what_becomes_a_view_in_place_has_its_strides():
  x = Tensor(np.arange(6).reshape(2, 3)).realize()
  assert x.t_().stride() == (1, 3) and x.realize().t_().stride() == (3, 1) and x.t_().stride() == (1, 3)
  flat = x.reshape(-1)
  x[0] = 7
  assert flat.tolist() == [0, 3, 1, 4, 2, 5]
