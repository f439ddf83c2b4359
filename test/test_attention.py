"""Attention: right for all shapes and masks, and the rows between its products live on the stack of one kernel."""

import numpy as np
import pytest

from mini import Context, Tensor, dtypes, nn, stats
from mini.codegen.recipe_builder import Machine
from mini.codegen.rows import tile_rows, tile_vectors
from mini.engine.dynamic_shapes import plain
from mini.ir.kernel import params_of, stores
from mini.schedule import schedule

RNG = np.random.default_rng(0)


def reference(q, k, v, mask=None, causal=False):
  """In float64.   q: [.., L, E]   k: [.., S, E]   v: [.., S, V]"""
  q, k, v = (x.astype(np.float64) for x in (q, k, v))
  scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
  if causal:
    scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
  elif mask is not None:
    scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
  e = np.exp(scores - scores.max(-1, keepdims=True))
  return (e / e.sum(-1, keepdims=True)) @ v


def drawn(*shapes):
  return [RNG.standard_normal(s).astype(np.float32) for s in shapes]


def device():
  return Tensor([0.0]).device.partition(":")[0]


only_cpu = pytest.mark.skipif("device() != 'CPU'", reason="rows on the stack are for processors")

SHAPES = [  # batch, queries, keys, inner, columns
  ((2,), 64, 64, 16, 16),
  ((1, 3), 77, 77, 20, 20),
  ((2,), 33, 129, 8, 24),
  ((2,), 130, 61, 12, 7),
  ((), 100, 100, 9, 33),
]


def in_turn(shapes):
  """Each shape with a causal mask and without: one of the two in a quick run."""
  for n, shape in enumerate(shapes):
    for causal in (False, True):
      yield pytest.param(*shape, causal, marks=[pytest.mark.full] * (causal is (n % 2 == 0)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("batch,n,m,inner,columns,causal", [*in_turn(SHAPES)])
def test_shapes(batch, n, m, inner, columns, causal):
  q, k, v = drawn((*batch, n, inner), (*batch, m, inner), (*batch, m, columns))
  got = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), is_causal=causal).numpy()
  np.testing.assert_allclose(got, reference(q, k, v, causal=causal), rtol=2e-5, atol=2e-6)


@only_cpu
@pytest.mark.parametrize("kind", ["none", "causal", "boolean", "added"])
def test_one_kernel_without_a_buffer_of_scores(kind):
  q, k, v = drawn((3, 96, 8), (3, 96, 8), (3, 96, 8))
  mask = {"boolean": RNG.random((96, 96)) < 0.8, "added": drawn((96, 96))[0]}.get(kind)
  tensors = [Tensor(x).realize() for x in (q, k, v)]
  given = None if mask is None else Tensor(mask).realize()
  stats.reset()
  before = stats.bytes_live
  got = tensors[0].scaled_dot_product_attention(*tensors[1:], given, is_causal=kind == "causal").realize()
  assert stats.kernels == 1 and stats.bytes_peak - before < 4 * 3 * 96 * 96 // 2
  np.testing.assert_allclose(got.numpy(), reference(q, k, v, mask, kind == "causal"), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_halves_are_rounded_once(dtype):
  q, k, v = (Tensor(x).cast(dtype) for x in drawn((2, 70, 8), (2, 70, 8), (2, 70, 8)))
  got = q.scaled_dot_product_attention(k, v)
  assert got.dtype is dtype
  want = reference(*(t.cast(dtypes.float32).numpy() for t in (q, k, v)))
  step = 2.0 ** (-10 if dtype is dtypes.float16 else -7)
  np.testing.assert_allclose(got.cast(dtypes.float32).numpy(), want, rtol=step, atol=step / 8)


def test_a_chain_that_is_wanted_stays_in_memory():
  q, k, v = drawn((2, 96, 8), (2, 96, 8), (2, 96, 8))
  scores = Tensor(q) @ Tensor(k).mT
  e = scores.exp()
  Tensor.realize(e, out := e @ Tensor(v))
  wide = e.numpy().astype(np.float64)
  assert (np.abs(out.numpy() - wide @ v) <= 1e-6 * (wide @ np.abs(v))).all()  # terms of both signs


def gradients(q, k, v, g, causal):
  """Of q, k and v, in float64."""
  q, k, v, g = (x.astype(np.float64) for x in (q, k, v, g))
  scale = 1 / np.sqrt(q.shape[-1])
  scores = q @ k.swapaxes(-1, -2) * scale
  scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf) if causal else scores
  p = np.exp(scores - scores.max(-1, keepdims=True))
  p /= p.sum(-1, keepdims=True)
  dp = g @ v.swapaxes(-1, -2)
  ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
  return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g


@pytest.mark.sample(3)
@pytest.mark.parametrize(
  "batch,n,m,inner,columns,causal",
  [
    *in_turn(
      [
        (2, 24, 24, 8, 8),
        (2, 165, 165, 6, 6),
        (2, 160, 192, 16, 4),
        (9, 116, 116, 16, 16),
        (8, 132, 132, 20, 24),  # sums along what fills no vectors
        (8, 132, 164, 8, 8),
      ]
    )
  ],
)
def test_gradients(batch, n, m, inner, columns, causal):
  q, k, v, g = drawn((batch, n, inner), (batch, m, inner), (batch, m, columns), (batch, n, columns))
  x = [Tensor(t, requires_grad=True) for t in (q, k, v)]
  Tensor.realize(*x)
  out = x[0].scaled_dot_product_attention(x[1], x[2], is_causal=causal)
  stats.reset()
  before = stats.bytes_live
  got = out.gradient(*x, gradient=Tensor(g))
  Tensor.realize(out, *got)
  if device() == "CPU" and n > 100 and n >= 8 * inner:
    assert stats.bytes_peak - before < 4 * batch * n * m, "the scores have no memory"
  np.testing.assert_allclose(out.numpy(), reference(q, k, v, causal=causal), rtol=2e-5, atol=2e-6)
  for a, b in zip(got, gradients(q, k, v, g, causal)):
    np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=5e-6)


def test_gradients_of_what_is_masked_need_no_scores():
  """Half of the work makes up for what is done again; a mask that is data says nothing about how much is masked."""

  def program(**how):
    q, k, v = (Tensor.zeros(2, 256, 64).contiguous().requires_grad_() for _ in range(3))
    q.scaled_dot_product_attention(k, v, **how).sum().backward()
    before = stats.kernels
    Tensor.realize(q.grad, k.grad, v.grad)
    return stats.kernels - before

  assert (
    program(is_causal=True) < program() == program(attn_mask=Tensor.ones(256, 256).contiguous().realize() > 0)
  )


def test_from_how_many_tokens_on_there_are_no_scores_in_memory():
  """Of 64 numbers each: fewer where half is masked; more where gradients make the scores again."""

  def without(tokens, causal, gradients):
    q, k, v, g = (Tensor.zeros(2, tokens, 64).realize().requires_grad_() for _ in range(4))
    out = q.scaled_dot_product_attention(k, v, is_causal=causal)
    results = out.gradient(q, k, v, gradient=g) if gradients else [out]
    kernels, _ = schedule({f"out{n}": plain(r.uop) for n, r in enumerate(results)})
    memory = [m for k in kernels for m in params_of(k)]
    return not any(m.arg[1][-2:] == (tokens, tokens) for m in memory)

  found = {
    (causal, gradients): [n for n in (76, 77, 102, 103, 127, 128, 511, 512) if without(n, causal, gradients)]
    for causal in (False, True)
    for gradients in (False, True)
  }
  assert found == {
    (False, False): [128, 511, 512],
    (False, True): [512],
    (True, False): [77, 102, 103, 127, 128, 511, 512],
    (True, True): [103, 127, 128, 511, 512],
  }


def test_gradients_of_parts_of_one_tensor():
  """A product is made of the part that it reads, however large the memory is in which that lies."""
  (qkv,) = drawn((2, 512, 3, 2, 32))
  (g,) = drawn((2, 2, 512, 32))
  x = Tensor(qkv, requires_grad=True).realize()
  q, k, v = x.permute(2, 0, 3, 1, 4)
  out = q.scaled_dot_product_attention(k, v, is_causal=True)
  stats.reset()
  before = stats.bytes_live
  (got,) = out.gradient(x, gradient=Tensor(g))
  Tensor.realize(out, got)
  if device() == "CPU":
    assert stats.bytes_peak - before < 4 * 2 * 2 * 512 * 512, "the scores have no memory"
  parts = [qkv[:, :, n].swapaxes(1, 2) for n in range(3)]
  np.testing.assert_allclose(out.numpy(), reference(*parts, causal=True), rtol=2e-5, atol=2e-6)
  want = np.stack(gradients(*parts, g, True)).transpose(1, 3, 0, 2, 4)
  np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=5e-6)


COMPANIONS = {  # what is made of rows p and two matrices: how, and in how many kernels
  "two sums": (lambda p, v, w: [p @ v, p @ w], 1),
  "of multiples": (lambda p, v, w: [p @ v, (p * 2) @ w], 1),
  "the other way": (lambda p, v, w: [p @ v, p.swapaxes(1, 2) @ w], 2),
  "turned": (lambda p, v, w: [p @ v, w.swapaxes(1, 2) @ p.swapaxes(1, 2)], 1),
  "one waits": (lambda p, v, w: [a := p @ v, p @ (a * w)], 2),
  "one of three waits": (lambda p, v, w: [p @ v, p @ (p.swapaxes(1, 2) @ v * w), p @ w], 2),
  "by a statistic": (lambda p, v, w: [p @ v, p @ (w * p.sum(2).reshape(2, -1, 1))], 2),
}


@pytest.mark.parametrize("name", COMPANIONS)
def test_sums_over_the_same_rows_are_one_kernel(name):
  """Unless one waits for the other."""
  make, kernels = COMPANIONS[name]
  q, k, v, w = drawn(*[(2, 160, 16)] * 4)
  x = [Tensor(t).realize() for t in (q, k, v, w)]
  stats.reset()
  got = make((x[0] @ x[1].mT * 0.1).exp(), *x[2:])
  Tensor.realize(*got)
  if device() == "CPU":
    assert stats.kernels == kernels
  rows = np.exp(q.astype(np.float64) @ k.swapaxes(1, 2) * 0.1)
  for a, b in zip(got, make(rows, v, w)):
    np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5 * abs(b).max())


def test_parts_of_a_cat_over_the_same_rows():
  q, k, v, w = drawn(*[(2, 160, 16)] * 4)
  x = [Tensor(t).realize() for t in (q, k, v, w)]

  def parts(q, k, v, w):
    p = (q @ k.mT * 0.1).exp()
    return (p @ v).cat(p.mT @ v, p @ w, dim=1)

  stats.reset()
  got = parts(*x).numpy()
  if device() == "CPU":
    assert stats.kernels == 2
  rows = np.exp(q.astype(np.float64) @ k.swapaxes(1, 2) * 0.1)
  want = np.concatenate([rows @ v, rows.swapaxes(1, 2) @ v, rows @ w], 1)
  np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * abs(want).max())


def outputs(results):
  """The kernels of these tensors."""
  return schedule({f"out{n}": plain(r.uop) for n, r in enumerate(results)})[0]


ADDED = {  # batches, rows, columns of a product, type: are sums over its columns added up beside those over its rows?
  "as they are": ((8, 160, 164, dtypes.float32), True),
  "too few batches": ((7, 160, 164, dtypes.float32), False),
  "no whole tiles": ((8, 160, 163, dtypes.float32), False),
  "too few bits": ((8, 160, 164, dtypes.bfloat16), False),
}


@pytest.mark.sample(2)
@only_cpu
@pytest.mark.parametrize("name", ADDED)
def test_sums_over_rows_and_columns_are_one_kernel(name):
  (batches, n, m, dtype), added = ADDED[name]
  q, k, v, w = (
    Tensor(x).cast(dtype).realize()
    for x in drawn((batches, n, 16), (batches, m, 16), (batches, m, 16), (batches, n, 16))
  )
  p = (q @ k.mT * 0.1).exp()
  made = [p @ v, p.mT @ w]
  kernels = [stores(x) for x in outputs(made)]
  assert [any(s.arg == "add" for s in found) for found in kernels] == (
    [False, True] if added else [False] * 2
  )
  if added:  # zeros, to which rows are added beside the other sum
    assert [len(found) for found in kernels] == [1, 2] and kernels[0][0].src[1].arg == 0
  rows = np.exp(q.float().numpy().astype(np.float64) @ k.float().numpy().swapaxes(1, 2) * 0.1)
  loose = 1e-5 if dtype is dtypes.float32 else 1e-2
  for got, want in zip(made, (rows @ v.float().numpy(), rows.swapaxes(1, 2) @ w.float().numpy())):
    np.testing.assert_allclose(got.float().numpy(), want, atol=loose * abs(want).max())


def test_a_sum_that_is_wanted_in_two_orders():
  """It has memory as it was made, and is no part of the kernel that makes the same rows."""
  q, k, v, w = drawn(*[(2, 160, 16)] * 4)
  x = [Tensor(t).realize() for t in (q, k, v, w)]
  p = (x[0] @ x[1].mT * 0.1).exp()
  kept = (p.unsqueeze(3) * x[3].unsqueeze(1)).sum(2, keepdim=True)
  made = [kept, kept.transpose(1, 3), p @ x[2]]
  Tensor.realize(*made)
  rows = np.exp(q.astype(np.float64) @ k.swapaxes(1, 2) * 0.1)
  for got, want in zip(made, ((rows @ w)[:, :, None], (rows @ w).swapaxes(1, 2)[:, :, None], rows @ v)):
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5 * abs(want).max())


def test_gradients_of_keys_and_values_are_one_kernel():
  """In all: one forward, one of the queries."""
  q, k, v = (Tensor.zeros(2, 256, 64).contiguous().requires_grad_().realize() for _ in range(3))
  out = q.scaled_dot_product_attention(k, v, is_causal=True)
  found = out.gradient(q, k, v, gradient=Tensor.ones(2, 256, 64).contiguous().realize())
  stats.reset()
  Tensor.realize(out, *found)
  if device() == "CPU":
    assert stats.kernels == 3


def test_dropout_is_the_same_in_the_gradient():
  """With every value and gradient 1, the gradient of v is how much of each key was kept."""
  q, k = drawn((1, 150, 4), (1, 150, 4))
  v = Tensor.ones(1, 150, 4, requires_grad=True)
  Tensor.manual_seed(3)
  out = Tensor(q).scaled_dot_product_attention(Tensor(k), v, dropout_p=0.5)
  (by_v,) = out.sum().gradient(v)
  Tensor.realize(out, by_v)
  np.testing.assert_allclose(by_v.numpy()[0, :, 0].sum(), out.numpy()[0, :, 0].sum(), rtol=1e-5)
  assert 0.5 < out.numpy()[0, 0, 0] < 1.5 and np.ptp(out.numpy()) > 0.1


@only_cpu
def test_long_rows_stay_on_the_stack():
  """Longer than what a product's inner axis is cut to, elsewhere."""
  q, k, v = (Tensor(x).realize() for x in drawn((3200, 4), (3200, 4), (3200, 4)))
  stats.reset()
  before = stats.bytes_live
  got = q.scaled_dot_product_attention(k, v, is_causal=True).realize()
  assert stats.kernels == 1 and stats.bytes_peak - before < 1 << 20
  want = reference(*(t.numpy()[:500] for t in (q, k, v)), causal=True)
  np.testing.assert_allclose(got.numpy()[:500], want, rtol=2e-5, atol=2e-6)


@only_cpu
def test_a_reduction_beside_a_product_costs_it_no_tile():
  x, w, y = (Tensor(a).realize() for a in drawn((64, 80), (80, 64), (64, 100)))
  stats.reset()
  got = ((x @ w) * y.sum(-1, keepdim=True)).realize()
  assert stats.kernels == 2
  np.testing.assert_allclose(
    got.numpy(), (x.numpy() @ w.numpy()) * y.numpy().sum(-1, keepdims=True), rtol=1e-4, atol=1e-4
  )


def test_rows_that_are_one_tile():
  """Then no loop is left that could run in parallel."""
  x, w, v = map(Tensor, drawn((2, 4), (4, 8), (8, 4)))
  with Context(MACHINE="lanes=4"):
    got = (x @ w).gelu() @ v
    np.testing.assert_allclose(got.numpy(), ((x @ w).gelu().realize() @ v).numpy(), rtol=1e-5, atol=1e-6)


def test_tiles_of_rows_fit_into_the_registers():
  avx2, avx512 = Machine(), Machine(lanes=16, registers=32)
  assert [tile_vectors(n, avx2) for n in (64, 96)] == [2, 2]
  assert [tile_vectors(n, avx512) for n in (32, 64, 96, 128)] == [2, 4, 2, 4]
  assert [tile_rows(256, 2, avx2), tile_rows(256, 2, avx512), tile_rows(256, 4, avx512)] == [6, 8, 6]
  assert [tile_rows(n, 4, avx512) for n in (1, 3, 8, 12)] == [1, 3, 4, 6]  # 8 rows are two tiles of 4


@only_cpu
@pytest.mark.parametrize("columns", [20, 24, 40])
def test_columns_that_are_no_whole_vectors(columns, capsys):
  """The last tile of them goes over the one before: vectors of a kernel are as wide as its narrowest lanes."""
  q, k, v = (Tensor(a).realize() for a in drawn(*[(2, 300, columns)] * 3))
  with Context(MACHINE="lanes=16,registers=32", SHOW="kernel", SEARCH=0):
    got = q.scaled_dot_product_attention(k, v).numpy()
  text = capsys.readouterr().err
  assert text.count("\nkernel ") == 1 and f"range {columns} vec" not in text
  np.testing.assert_allclose(got, reference(*(t.numpy() for t in (q, k, v))), rtol=2e-5, atol=2e-6)


# ---------------------------------------------------------------- rows of which nothing is seen


@pytest.mark.parametrize("kind", ["bool", "added"])
def test_a_row_masked_out_whole_is_zero(kind):
  """As are its gradients, and those of its mask; the other rows are as they were."""
  q, k, v = (Tensor(x, requires_grad=True) for x in drawn((2, 5, 8), (2, 6, 8), (2, 6, 4)))
  seen = RNG.random((5, 6)) < 0.6
  seen[:, 0], seen[1] = True, False
  mask = Tensor(
    seen if kind == "bool" else np.where(seen, np.float32(0), -np.inf), requires_grad=kind != "bool"
  )
  out = q.scaled_dot_product_attention(k, v, attn_mask=mask)
  wrt = (q, k, v) if kind == "bool" else (q, k, v, mask)
  grads = out.square().sum().gradient(*wrt)
  assert (out.numpy()[:, 1] == 0).all() and (grads[0].numpy()[:, 1] == 0).all()
  assert all(np.isfinite(g.numpy()).all() for g in grads)
  want = reference(q.numpy()[:, 2:], k.numpy(), v.numpy(), mask=seen[2:])
  np.testing.assert_allclose(out.numpy()[:, 2:], want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_sequence_of_padding_only_teaches_nothing(need_weights):
  net = nn.MultiheadAttention(8, 2, batch_first=True)
  x = Tensor(drawn((2, 4, 8))[0], requires_grad=True)
  padding = Tensor(np.array([[False, False, False, True], [True] * 4]))
  out, weights = net(x, x, x, key_padding_mask=padding, need_weights=need_weights)
  out.square().sum().backward()
  assert np.allclose(out.numpy()[1], net.out_proj.bias.numpy())
  assert (x.grad.numpy()[1] == 0).all() and np.isfinite(x.grad.numpy()).all()
  assert all(np.isfinite(p.grad.numpy()).all() for p in net.parameters())
  assert weights is None or (weights.numpy()[1] == 0).all()


@pytest.mark.full
def test_transformer_layers_take_padding_only():
  layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
  x = Tensor(drawn((2, 4, 8))[0], requires_grad=True)
  layer(x, src_key_padding_mask=Tensor(np.array([[False] * 4, [True] * 4]))).square().sum().backward()
  assert all(np.isfinite(p.grad.numpy()).all() for p in (x, *layer.parameters()))
