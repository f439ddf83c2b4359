"""What is laid into a flat buffer. A scatter works there: right, without a copy, and with its bounds checked. What is
made of memories in a row is made piece by piece, and in place."""

import re

import numpy as np
import pytest

from mini import Tensor
from mini.codegen.autoschedule import Machine, write_recipe
from mini.ir import graph as g
from mini.ir.interp import evaluate, run_kernel
from mini.ir.uop import const, toposort
from mini.schedule import schedule
from mini.schedule.alias_outputs import overwrite
from mini.schedule.concat_rewrites import in_pieces
from mini.text.verifier import verify
from mini.types import dtypes

F, I = dtypes.float32, dtypes.int64


def flat_gradient(kind, axis=0):
  base, value, more = (
    g.buffer(n, s, F) for n, s in (("base", (5, 6)), ("value", (5, 4) if axis else (4, 6)), ("more", (7,)))
  )
  index = g.buffer("index", (5, 4) if axis else (4, 6), I)
  doubled = g.alu("add", base, base)
  return g.cat((more, g.reshape(g.scatter(doubled, index, value, kind, axis), (30,)), more), 0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["add", "set", "max"])
def test_it_means_the_same_and_nothing_is_copied(kind, axis):
  u = flat_gradient(kind, axis)
  rng = np.random.default_rng(0)
  data = {x.arg[0]: rng.standard_normal(x.arg[1]).astype(np.float32) for x in toposort(u) if x.op == "buffer"}
  data["index"] = rng.integers(0, 6 if axis else 5, (5, 4) if axis else (4, 6))
  (want,) = evaluate([u], lambda b: data[b.arg[0]])
  kernels, _ = schedule({"out": u})
  assert len(kernels) == 4  # three parts, and the scatter into one of them
  for k in kernels:
    verify(k)
    run_kernel(k, data)
  np.testing.assert_array_equal(data["out"], want)


@pytest.mark.sample(2)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("tokens", [16, 64])
@pytest.mark.parametrize("mixing", ["attention", "tokens", "none"])
def test_gradients_of_a_language_model_in_one_row(batch, tokens, mixing, rng):
  """Of embeddings, which scatter, norms, which have sums of rows, and products. A kernel that adds to a piece stores
  nothing that other pieces are made of."""
  shapes = {"words": (40, 32), "places": (64, 32), "scale": (32,), "w": (32, 32), "v": (32, 32)}
  ids = Tensor(rng.integers(0, 40, (batch, tokens)))
  values = {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}

  def gradients():
    p = {name: Tensor(x, requires_grad=True) for name, x in values.items()}
    h = p["words"][ids] + p["places"][Tensor.arange(tokens)]
    x = h.layer_norm((32,), p["scale"]) @ p["w"]
    q = x.reshape(batch, tokens, 2, 16).transpose(1, 2)
    attention = lambda: q.scaled_dot_product_attention(q, q, is_causal=True).transpose(1, 2).reshape(h.shape)
    mixed = {"attention": attention, "tokens": lambda: x.cumsum(1), "none": x.gelu}[mixing]()
    h = h + mixed @ p["v"]
    return (h.layer_norm((32,)) @ p["words"].T).square().mean().gradient(*p.values())

  alone = [g.flatten().numpy() for g in gradients()]
  row = Tensor.cat(*[g.flatten() for g in gradients()])
  np.testing.assert_allclose(row.numpy(), np.concatenate(alone), rtol=1e-4, atol=1e-4)


def test_gradients_of_attention_in_one_row(rng):
  """Beside a piece that is made of one of them. They are one kernel where each has memory of its own."""
  values = [rng.standard_normal((2, 4, 256, 64)).astype(np.float32) for _ in range(3)]

  def gradients():
    q, k, v = (Tensor(x, requires_grad=True) for x in values)
    return q.scaled_dot_product_attention(k, v).square().sum().gradient(q, k, v)

  alone = [g.flatten().numpy() for g in gradients()]
  of_q, of_k, of_v = (g.flatten() for g in gradients())
  row = Tensor.cat(of_q, of_k, of_v, of_k.sin())
  np.testing.assert_allclose(row.numpy(), np.concatenate([*alone, np.sin(alone[1])]), rtol=1e-3, atol=1e-3)


def test_a_scatter_that_others_read_has_memory_of_its_own():
  u = flat_gradient("add")
  kernels, _ = schedule({"out": u, "inner": u.src[1].src[0]})
  assert len(kernels) == 5  # its base, itself, and three parts


def test_rows_that_are_added_to_a_part_of_a_row_are_vectors_and_shared_by_threads():
  """Whatever data say, no two columns meet: GPUs took 26 ms in one thread for what all gradients of a GPT-2 lie in."""
  ids = g.expand(g.reshape(g.buffer("ids", (32,), I), (32, 1)), (32, 24))
  part = g.scatter(g.buffer("base", (501, 24), F), ids, g.buffer("value", (32, 24), F), "add", 0)
  row = g.cat((g.buffer("a", (7,), F), g.reshape(part, (501 * 24,)), g.buffer("b", (9,), F)), 0)
  (added,) = (k for k in schedule({"out": row})[0] if k.src[0].arg == "add")
  for machine in (Machine(threads=2), Machine(lanes=4, kind="gpu", group=1024, shared_bytes=48 << 10)):
    recipe = write_recipe(added, machine)[1]
    assert re.search(r"par j|vec j", recipe) and "par i" not in recipe, recipe


def test_cats_of_cats_are_made_in_one_memory():
  a, b = (g.buffer(n, (4, 6), F) for n in "ab")
  inner = g.cat((g.alu("add", a, b), g.alu("mul", a, b)), 1)
  u = g.cat((g.permute(inner, (1, 0)), g.permute(a, (1, 0))), 0)
  kernels, _ = schedule({"out": u})
  assert len(kernels) == 3 and {k.src[0].src[0].arg[0] for k in kernels} == {"out"}


def test_an_index_outside_its_part_is_an_error():
  """It would be within the flat buffer, and write into a neighbour."""
  w, ids = Tensor(np.zeros((3, 2), np.float32)), Tensor([5])
  part = Tensor(
    g.scatter(w.uop, g.expand(g.reshape(ids.uop, (1, 1)), (1, 2)), Tensor([[1.0, 1.0]]).uop, "add", 0)
  )
  flat = Tensor.cat([part.reshape(6), Tensor(np.ones(20, np.float32))])
  with pytest.raises(IndexError):
    flat.realize()


def momentum(*sizes):
  """(new parameters, new state, their gradients in a row): a step of flat parameters, which also knows positions."""
  n = sum(sizes)
  row = g.cat(tuple(g.buffer(f"g{k}", (m,), F) for k, m in enumerate(sizes)), 0)
  p, state = g.buffer("p", (n,), F), g.buffer("m", (n,), F)
  rate = g.alu(
    "where", g.alu("lt", g.iota(n), const(sizes[0], dtypes.int32)), const(0.1, F), g.buffer("lr", (), F)
  )
  state = g.alu("add", g.alu("mul", state, const(0.9, F)), row)
  return g.alu("add", p, g.alu("mul", rate, state)), state, row


def numbers(*roots):
  rng = np.random.default_rng(0)
  return {
    x.arg[0]: rng.standard_normal(x.arg[1]).astype(np.float32) for x in toposort(*roots) if x.op == "buffer"
  }


@pytest.mark.parametrize("sizes", [(64, 128, 64), (5, 70, 3), (40, 40)])
def test_memories_in_a_row_stay_where_they_are(sizes):
  """A kernel for each whole number of vectors, and one for each rest; every element is read and written once, in the
  memory that it had."""
  p, m, _ = momentum(*sizes)
  roots = in_pieces([p, m])
  data = numbers(*roots)
  want = evaluate([p, m], lambda u: data[u.arg[0]])
  for before, after in zip(want, evaluate(roots, lambda u: data[u.arg[0]])):
    np.testing.assert_array_equal(before, after)
  kernels, _ = schedule({"new p": roots[0], "new m": roots[1]})
  assert len(kernels) == sum((n >= 64) + (n % 64 > 0) for n in sizes)
  kernels, done = overwrite(kernels, {"new p": "p", "new m": "m"}, {})
  assert done == {"new p": "p", "new m": "m"}
  for k in kernels:
    verify(k)
    run_kernel(k, data)
  for name, x in zip("pm", want):
    np.testing.assert_array_equal(data[name], x)


def test_a_row_that_is_needed_stays():
  """As an output, for a sum, or where it holds what must be computed."""
  p, m, row = momentum(64, 64)
  assert in_pieces([p, m, row]) == [p, m, row]
  total = g.reduce(row, "add", (0,))
  assert in_pieces([p, total]) == [p, total]
  x = row.src[0]
  computed = g.alu("sin", g.cat((g.alu("sin", x), x), 0))
  assert in_pieces([computed]) == [computed]


def test_pieces_that_read_each_other_are_not_written_in_place():
  """Each is as the old value was, whichever runs first."""
  x = g.buffer("x", (128,), F)
  halves = [g.shrink(x, span) for span in (((0, 64),), ((64, 128),))]
  swapped = g.cat(tuple(g.alu("add", h, const(1.0, F)) for h in reversed(halves)), 0)
  assert overwrite(schedule({"out": swapped})[0], {"out": "x"}, {})[1] == {}
  kept = g.cat(tuple(g.alu("add", h, const(1.0, F)) for h in halves), 0)
  assert overwrite(schedule({"out": kept})[0], {"out": "x"}, {})[1] == {"out": "x"}
