"""Read this first: what mini does, in the order in which a user meets it."""

import numpy as np

from mini import Tensor, grad


def test_a_tensor_is_lazy_and_prints_its_values():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  y = (x @ x + 1).relu().sum(axis=0)
  assert y.shape == (2,)  # known at once; nothing has been computed
  assert repr(y) == "Tensor([24., 34.])"  # computed now


def test_it_learns():
  Tensor.manual_seed(0)
  x = Tensor.rand(64, 3)
  y = x @ Tensor([1.0, -2.0, 3.0])
  w = Tensor.zeros(3, requires_grad=True)
  for _ in range(200):
    loss = (x @ w).mse_loss(y)
    w.grad = None
    loss.backward()
    w.assign(w - 0.5 * w.grad).realize()
  np.testing.assert_allclose(w.numpy(), [1, -2, 3], atol=0.01)


def test_gradients_are_graphs_so_they_have_gradients():
  cube = lambda x: x * x * x
  assert grad(cube)(Tensor(2.0)).item() == 12
  assert grad(grad(cube))(Tensor(2.0)).item() == 12
  assert grad(grad(grad(cube)))(Tensor(2.0)).item() == 6


def test_views_share_what_is_written():
  a = Tensor([1, 2, 3])
  b, c = a[1:], a.clone()  # a view, and a copy
  a[1] = 9
  assert a.tolist() == [1, 9, 3] and b.tolist() == [9, 3] and c.tolist() == [1, 2, 3]
