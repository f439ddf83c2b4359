"""Random numbers: the published vectors of the generator, repeatability, and the shapes of the distributions."""

import numpy as np
import pytest
from fuzz_graph import scheduled

from mini import Context, Device, Tensor, dtypes, stats
from mini.ir import graph
from mini.ir.ops import OPS
from mini.ir.uop import toposort
from mini.tensor.random import Random

# Random123 1.14, tests/kat_vectors: threefry2x32 with 20 rounds, counter key -> block
VECTORS = [
  ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
  ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
  ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("counter, key, block", VECTORS)
def test_published_vectors(counter, key, block):
  words = [Tensor([word], dtype=dtypes.uint32).uop for word in (*counter, *key)]
  assert tuple(Tensor._new(graph.alu(op, *words)).item() for op in ("threefry", "threefry2")) == block


def test_numbers_follow_the_documented_layout():
  """Element i of call c with seed s is threefry(s, (i, c)); rand is its first word's upper 24 bits."""
  Tensor.manual_seed(123)
  Tensor.rand(2)
  second = Tensor.rand(3).numpy()
  block = [Tensor(word, dtype=dtypes.uint32).uop for word in (range(3), [1] * 3, [123] * 3, [0] * 3)]
  word = Tensor._new(graph.alu("threefry", *block)).numpy()
  np.testing.assert_array_equal(second, (word >> np.uint32(8)).astype(np.float32) / 2**24)


def test_more_elements_than_a_word_can_count():
  """What the counter's first word does not hold goes to the second."""
  Tensor.manual_seed(123)
  Tensor.rand(1)
  i = np.arange((1 << 32) - 2, (1 << 32) + 5, dtype=np.uint64)
  counter = (i & 0xFFFFFFFF).astype(np.uint32), (1 + (i >> np.uint64(32))).astype(np.uint32)
  word = OPS["threefry"].numpy(*counter, *np.array([[123], [0]], np.uint32))
  got = Tensor.rand((1 << 32) + 5)[-7:].numpy()
  np.testing.assert_array_equal(got, (word >> np.uint32(8)).astype(np.float32) / 2**24)


def test_random_numbers_fill_vectors_as_floats_do():
  """A vector has half as many lanes where one of its values is of 64 bits: no counter is, and no word."""
  for t in (Tensor.rand(40, 30), Tensor.randn(40, 30), Tensor.ones(40, 30).dropout(0.5, training=True)):
    kernels, *_ = scheduled({"out": t.uop})
    of_each = [u for u in toposort(kernels[-1]) if u.free and u.dtype is not dtypes.index]
    assert any(u.op == "threefry" for u in of_each) and max(u.dtype.itemsize for u in of_each) == 4


def test_the_same_seed_gives_the_same_numbers_in_any_order():
  Tensor.manual_seed(5)
  a, b = Tensor.rand(10), Tensor.rand(10)
  late = b.tolist(), a.tolist()
  Tensor.manual_seed(5)
  a, b = Tensor.rand(10).tolist(), Tensor.rand(10).tolist()
  assert (b, a) == late and a != b
  Tensor.manual_seed(6)
  assert Tensor.rand(10).tolist() != a


def test_the_state_can_be_kept_and_does_not_grow():
  Tensor.manual_seed(7)
  for _ in range(50):
    Tensor.rand(1)
  assert graph.shape(Random.generator.calls.uop) == () and len(repr(Random.generator.calls.uop)) < 400
  state = Random.generator.get_state()
  assert state == (7, 50)
  a = Tensor.rand(5).tolist()
  Random.generator.set_state(state)
  assert Tensor.rand(5).tolist() == a


@pytest.mark.parametrize("d", [d for d in dtypes.all if d.kind == "f"], ids=lambda d: d.short)
def test_distributions(d):
  Tensor.manual_seed(1)
  u, z = (t.numpy().astype(np.float64) for t in (Tensor.rand(20000, dtype=d), Tensor.randn(20000, dtype=d)))
  assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.003
  assert (
    np.isfinite(z).all() and abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.02 and abs((z**4).mean() - 3) < 0.2
  )
  assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 0.03


def test_randint():
  Tensor.manual_seed(2)
  a = Tensor.randint(-3, 4, (7000,)).numpy()
  assert a.dtype == np.int64 and set(a) == set(range(-3, 4)) and np.bincount(a + 3).min() > 850
  assert (
    Tensor.randint(5, (4, 2)).shape == (4, 2)
    and set(Tensor.randint(5, (100,)).tolist()) == set(range(5))
    and Tensor.randint(0, 256, (9,), dtype="uint8").dtype is dtypes.uint8
  )
  wide = Tensor.randint(-(2**62), 2**62, (1000,)).numpy()
  assert wide.min() < -(2**61) and wide.max() > 2**61


def test_what_is_made_of_them():
  Tensor.manual_seed(3)
  assert sorted(Tensor.randperm(50).tolist()) == list(range(50))
  assert abs(Tensor.full((4000,), 0.3).bernoulli().mean().item() - 0.3) < 0.03
  picks = Tensor([0.0, 1.0, 3.0]).expand(2000, 3).multinomial(1)
  assert abs((picks == 2).float().mean().item() - 0.75) < 0.05 and picks.min().item() == 1
  assert sorted(Tensor([1.0, 1.0, 1.0]).multinomial(3).tolist()) == [0, 1, 2]
  assert (Tensor.uniform(1000, low=2, high=3) >= 2).all().item() and abs(
    Tensor.normal(4000, mean=5, std=2).std().item() - 2
  ) < 0.1
  assert Tensor.rand(2, 3).rand_like().shape == Tensor.ones(2, 3).randn_like().shape == (2, 3)
  for init in (Tensor.glorot_uniform, Tensor.kaiming_uniform, Tensor.kaiming_normal, Tensor.scaled_uniform):
    assert init(20, 30).shape == (20, 30)
  assert Tensor.rand(0, 3).numpy().shape == (0, 3) and Tensor.rand().shape == ()


def test_dropout():
  Tensor.manual_seed(4)
  x = Tensor.ones(10000)
  y = x.dropout(0.25, training=True).numpy()
  assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)} and abs((y == 0).mean() - 0.25) < 0.02
  assert x.dropout(0.5).tolist() == x.tolist()
  with Tensor.train():
    assert 0 in x.dropout(0.5).numpy()
  assert not x.dropout(1.0, training=True).numpy().any()


@pytest.mark.skipif(Device.DEFAULT == "INTERP", reason="it has no kernels")
def test_the_mask_of_dropout_is_the_same_in_the_backward_pass():
  x = Tensor.ones(100, requires_grad=True)
  y = x.dropout(0.5, training=True)
  y.sum().backward()
  np.testing.assert_array_equal(x.grad.numpy(), y.numpy())


def test_the_state_goes_to_the_device_of_a_block():
  Tensor.manual_seed(3)
  on_cpu = [Tensor.rand(4).tolist() for _ in range(2)]
  Tensor.manual_seed(3)
  first = Tensor.rand(4).tolist()
  with Context(DEV="INTERP"):
    second = Tensor.rand(4).tolist()
  assert [first, second] == on_cpu
  assert Tensor.rand(4).device == Device.DEFAULT


@pytest.mark.skipif(Device.DEFAULT == "INTERP", reason="it has no kernels")
def test_the_mask_of_dropout_is_made_again_for_the_gradient():
  """Forward and backward are one kernel, which stores no mask."""
  x = Tensor(np.ones((64, 32), np.float32), requires_grad=True)
  out = x.dropout(0.5, training=True)
  (out * 3).exp().sum().backward()
  before = stats.kernels
  x.grad.realize()
  assert stats.kernels - before == 1
  kept = x.grad.numpy() != 0
  assert np.array_equal(out.numpy() != 0, kept) and 800 < kept.sum() < 1250
