"""Kernels that differ in sizes alone share code: what a loop over sizes compiles, and that it computes what it should."""

import threading

import numpy as np
import pytest

from mini import Tensor, jit, stats
from mini.engine.sizes import general, numbers_of


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
  """Gram-Schmidt, one vector after another."""
  a = rng.standard_normal((30, 30)).astype(np.float32)
  ours, theirs = [], []
  for v in a:
    x, y = Tensor(v), v
    if ours:
      q, p = Tensor.stack(ours), np.stack(theirs)
      x, y = x - q.T @ (q @ x), y - p.T @ (p @ y)
    ours.append(x / x.square().sum().sqrt())
    theirs.append(y / np.sqrt((y * y).sum()))
    yield ours[-1], theirs[-1]


@pytest.mark.parametrize("most, loop", [(30, growing), (6, shrinking), (30, diagonals), (16, orthogonal)])
def test_a_loop_over_sizes_compiles_a_few_of_them(loop, most, rng):
  before = stats["compiles"] + stats["disk_hits"]
  for got, want in loop(rng):
    np.testing.assert_allclose(got.realize().numpy(), want, rtol=2e-3, atol=2e-5)
  assert stats["compiles"] + stats["disk_hits"] - before <= most


def test_a_jitted_function_has_code_of_its_own_for_four_sizes_of_a_kind_at_most(rng):
  call = jit(lambda x: (x * 3 + 1).sum(1))
  before = stats["compiles"] + stats["disk_hits"]
  for k in range(40):
    x = rng.standard_normal((3, 64 + 16 * k)).astype(np.float32)
    np.testing.assert_allclose(call(Tensor(x)).numpy(), (x * 3 + 1).sum(1), rtol=1e-4, atol=1e-4)
  assert stats["compiles"] + stats["disk_hits"] - before <= 36


def test_the_bits_are_those_of_code_of_its_own(rng):
  """Whatever sizes were there before."""
  x = rng.standard_normal((5, 210)).astype(np.float32)
  softmax = lambda n: (Tensor(x[:, :n].copy()).softmax(1) * 3).exp().numpy()
  alone = [jit(lambda t: (t.softmax(1) * 3).exp())(Tensor(x[:, :n].copy())).numpy() for n in (97, 113)]
  for n in range(90, 120):
    found = softmax(n)
    if n in (97, 113):
      assert np.array_equal(found, alone[n > 100])


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


HEAD = "void KERNEL(void **args, long lo, long hi) {\n"


def test_what_has_to_be_written_out_is():
  assert general(HEAD + "  x = a[i * 3];\n", (0,), 2) == (
    HEAD + "  const int z0 = (long)args[2];\n  x = a[i * z0];\n"
  )
  assert "m1[z0] __attribute__" in general(HEAD + "  float m1[9] __attribute__((aligned(64)));\n", (0,), 0)
  for line in (
    "  float m1[9] __attribute__((aligned(64)));\n",
    "  x = SHUFFLE(a, b, 0, 1);\n",
    "  AHEAD(p + 8, 3);\n",
  ):
    assert general(HEAD + line, (1,), 0) is None
  assert "p + z0, 3" in general(HEAD + "  AHEAD(p + 8, 3);\n", (0,), 0)
