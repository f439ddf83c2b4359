"""torch.nn.utils' names: gradients made smaller, parameters as one vector; sequences of several lengths in rnn.py,
weights that are computed in parametrize.py, of these norms.py."""

from __future__ import annotations

from collections.abc import Iterable

from mini.nn.clip import clip_grad_norm_, clip_grad_value_
from mini.nn.utils import parametrize, rnn
from mini.nn.utils.norms import (
  parametrizations,
  remove_spectral_norm,
  remove_weight_norm,
  spectral_norm,
  weight_norm,
)
from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.errors import fail
from mini.types import ShapeError


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
  """All elements of the parameters, one behind another. A gradient passes to them.

  >>> nn.utils.parameters_to_vector([Tensor([[1.0, 2.0]]), Tensor([3.0])])
  Tensor([1., 2., 3.])
  """
  first, *rest = [p.flatten() for p in parameters]
  return first.cat(*rest)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
  """The inverse: each parameter gets its elements of the vector. ShapeError unless there are as many.

  >>> w = Tensor([[0.0, 0.0]], requires_grad=True)
  >>> nn.utils.vector_to_parameters(Tensor([1.0, 2.0]), [w])
  >>> w
  Tensor([[1., 2.]], requires_grad=True)
  """
  params, start = list(parameters), 0
  if vec.shape != (sum(p.numel() for p in params),):
    fail(ShapeError, f"vector_to_parameters: {sum(p.numel() for p in params)} elements are wanted", vec=vec)
  with no_grad():
    for p in params:
      p.copy_(vec[start : start + p.numel()].reshape(p.shape))
      start += p.numel()


__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "parametrizations", "parametrize",
           "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm", "vector_to_parameters",
           "weight_norm"]  # fmt: skip
