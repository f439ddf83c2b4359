"""Activations and losses: what no row of test/methods/ says."""

import math

import numpy as np
import pytest

from mini import DTypeError, ShapeError, Tensor, nn


def test_ctc_module_and_what_does_not_fit():
  x = Tensor(np.random.default_rng(0).standard_normal((3, 3, 6)).astype(np.float32), requires_grad=True)
  target, lengths = Tensor([[1, 1], [1, 2], [3, 4]]), (3, 3, 1)
  loss = nn.CTCLoss(reduction="none")(x.log_softmax(-1), target, lengths, (2, 2, 2))
  assert np.isfinite(loss.numpy()[:2]).all() and loss.numpy()[2] == math.inf
  loss = nn.CTCLoss(reduction="none", zero_infinity=True)(x.log_softmax(-1), target, lengths, (2, 2, 2))
  loss.sum().backward()
  assert loss.numpy()[2] == 0 and not x.grad.numpy()[:, 2].any() and np.isfinite(x.grad.numpy()).all()


def test_every_module_of_pytorch():
  """Each activation and loss that PyTorch has as a module is here."""
  torch = pytest.importorskip("torch")
  wanted = set(torch.nn.modules.activation.__all__) | set(torch.nn.modules.loss.__all__)
  assert wanted - {"NLLLoss2d", "LinearCrossEntropyLoss", "MultiheadAttention"} <= set(nn.__all__)


def test_options():
  assert repr(nn.ELU(0.5)) == "ELU(alpha=0.5)" and repr(nn.ReLU(True)) == "ReLU()"
  loss = nn.CrossEntropyLoss(Tensor([1.0, 2.0]), ignore_index=0)
  assert list(loss.state_dict()) == ["weight"] and not list(loss.parameters())


def test_tinygrads_names():
  r = np.random.default_rng(0)
  x, y, t = (
    Tensor(r.uniform(0.01, 0.99, (4, 5))),
    Tensor(r.uniform(0, 1, (4, 5))),
    Tensor(r.integers(0, 5, 4)),
  )
  pairs = [
    (x.binary_crossentropy(y), x.binary_cross_entropy(y)),
    (x.binary_crossentropy_logits(y, pos_weight=2), x.binary_cross_entropy_with_logits(y, pos_weight=2)),
    (x.sparse_categorical_crossentropy(t), x.cross_entropy(t)),
    (x.sparse_categorical_crossentropy(t, 3, 0.1), x.cross_entropy(t, None, 3, "mean", 0.1)),
  ]
  for a, b in pairs:
    np.testing.assert_allclose(a.item(), b.item(), rtol=1e-6)


def test_probabilities_of_0_and_1():
  x = Tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
  loss = x.binary_cross_entropy(Tensor([0.0, 1.0, 1.0, 0.0]), reduction="none")
  loss.sum().backward()
  assert loss.tolist() == [0, 0, 100, 100] and np.isfinite(x.grad.numpy()).all()


def test_random_activations():
  x = Tensor.full((1000,), -1.0)
  with_slopes = -x.rrelu(0.2, 0.4, training=True).numpy()
  assert 0.2 <= with_slopes.min() < 0.21 and 0.39 < with_slopes.max() <= 0.4
  assert np.array_equal((-x).rrelu(training=True).numpy(), np.ones(1000, np.float32))
  p = Tensor([0.1, 0.2, 0.7])
  drawn = p.log().expand(20000, 3).gumbel_softmax(hard=True)
  assert set(np.unique(drawn.numpy())) == {0, 1}
  np.testing.assert_allclose(drawn.numpy().mean(0), p.numpy(), atol=0.02)


def test_errors():
  x = Tensor.ones(2, 3)
  with pytest.raises(ShapeError, match="glu: axis 1 does not fall into halves"):
    x.glu()
  with pytest.raises(ShapeError, match="one weight, or one for each channel"):
    x.prelu(Tensor.ones(2))
  with pytest.raises(ShapeError, match=r"the target has shape \(2, 3\), not \(3,\)"):
    x.binary_cross_entropy(Tensor.ones(3))
  with pytest.raises(ValueError, match='"mean", "sum" or "none", not "avg"|avg'):
    x.mse_loss(x, reduction="avg")
  with pytest.raises(DTypeError, match="cross_entropy: x holds logits"):
    x.int().cross_entropy(Tensor([0, 1]))
  with pytest.raises(ShapeError, match="axes time, batch and class"):
    Tensor.ones(3).ctc_loss(Tensor([1]), [3], [1])


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_a_target_that_is_no_class(device):
  """An IndexError as of gather; ignored ones may be anything."""
  x = Tensor(np.zeros((4, 5), np.float32), device=device).requires_grad_()
  for bad in ([0, 1, 5, 2], [0, -1, 2, 2], [0, 1, 2, -100]):
    for loss in (x.cross_entropy, x.nll_loss):
      with pytest.raises(IndexError, match="out of bounds for an axis of size 5"):
        loss(Tensor(bad, device=device), ignore_index=7).item()
  found = [
    loss(Tensor([0, 7, 1, 7], device=device), ignore_index=7) for loss in (x.cross_entropy, x.nll_loss)
  ]
  np.testing.assert_allclose([t.item() for t in found], [np.log(5), 0], rtol=1e-6)


def test_sums_of_nothing_require_a_gradient():
  x = Tensor(np.zeros((0, 3), np.float32)).requires_grad_()
  totals = [x.sum(), x.sum(0), x.prod(), x.mean(), x.sum(1)]
  assert all(t.requires_grad for t in totals)
  (totals[0] + totals[1].sum() + totals[2]).backward()
  assert x.grad.shape == (0, 3)
