"""An operation of one's own: a function of tensors, as one named node with a gradient, that can be replaced."""

import numpy as np

import mini
from mini import Tensor


def sigmoid_of(g, out, x):
  """The gradient of softplus, in a form that does not overflow."""
  return g * x.sigmoid()


@mini.op(gradient=sigmoid_of)
def softplus(x):
  """log(1 + e^x), without the overflow of e^x."""
  return x.maximum(0) + (1 + (-x.abs()).exp()).log()


@softplus.lowering("CUDA", "METAL")
def _(x):
  """The same for GPUs, whose threads like to do the same: no comparison."""
  return (x + x.abs()) / 2 + (1 + (-x.abs()).exp()).log()


if __name__ == "__main__":
  numbers = np.array([-100.0, -1.0, 0.0, 1.0, 100.0], np.float32)
  x = Tensor(numbers, requires_grad=True)
  y = softplus(x * 2)
  print(mini.inspect(y))

  want = np.logaddexp(0, 2 * numbers.astype(np.float64))
  print(f"\nvalues within {np.abs(y.numpy() - want).max():.0e} of NumPy's logaddexp")
  y.sum().backward()
  slope = 2 / (1 + np.exp(-2 * numbers.astype(np.float64)))
  print(f"slopes within {np.abs(x.grad.numpy() - slope).max():.0e} of 2 sigmoid(2x)")

  step = mini.jit(lambda x: softplus(x).sum())
  before = mini.stats["kernels"]
  (softplus(x.detach()) * 3 + 1).realize()
  print(f"fused with what is around it: {mini.stats['kernels'] - before} kernel")
  with softplus.replaced(by=lambda x: x.relu()):
    print(f"replaced by relu, also in a jitted function: {step(x.detach()).item():.0f}")
