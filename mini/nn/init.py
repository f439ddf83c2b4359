"""Initial values, with PyTorch's names and formulas (torch.nn.init): each fills a tensor and returns it."""

from __future__ import annotations

import math

from mini.tensor import Tensor
from mini.tensor.handle import fail
from mini.types import ShapeError


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
  """Uniform in [a, b).

  >>> t = uniform_(Tensor.zeros(100), 2, 3)
  >>> bool(((t >= 2) & (t < 3)).all())
  True
  """
  return tensor.assign(Tensor.uniform(*tensor.shape, low=a, high=b, dtype=tensor.dtype, device=tensor.device))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
  """Normally distributed."""
  return tensor.assign(
    Tensor.normal(*tensor.shape, mean=mean, std=std, dtype=tensor.dtype, device=tensor.device)
  )


def constant_(tensor: Tensor, val: float) -> Tensor:
  """All elements the same."""
  return tensor.assign(tensor.full_like(val))


def ones_(tensor: Tensor) -> Tensor:
  """All elements 1."""
  return constant_(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
  """All elements 0."""
  return constant_(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
  """Ones on the diagonal of a matrix, zeros elsewhere."""
  if tensor.ndim != 2:
    fail(ShapeError, "eye_: x has not two axes", x=tensor)
  return tensor.assign(Tensor.eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype, device=tensor.device))


def fans(tensor: Tensor) -> tuple[int, int]:
  """(fan in, fan out) of a weight [out, in, ...]: the inputs of an output, the outputs of an input."""
  if tensor.ndim < 2:
    fail(ShapeError, "a weight of fewer than two axes has no fan in and fan out", x=tensor)
  field = math.prod(tensor.shape[2:])
  return tensor.shape[1] * field, tensor.shape[0] * field


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
  """What a nonlinearity asks the standard deviation to be scaled by.

  >>> calculate_gain("relu") ** 2
  2.0000000000000004
  """
  gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
  if nonlinearity == "leaky_relu":
    return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
  if nonlinearity not in (*gains, "linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
    fail(ValueError, f"calculate_gain: unknown nonlinearity {nonlinearity!r}")
  return gains.get(nonlinearity, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
  """Uniform with variance 2 gain^2 / (fan in + fan out). https://proceedings.mlr.press/v9/glorot10a.html"""
  bound = gain * math.sqrt(6 / sum(fans(tensor)))
  return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
  """Normal with variance 2 gain^2 / (fan in + fan out)."""
  return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))))


def _he(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
  if mode not in ("fan_in", "fan_out"):
    fail(ValueError, f'kaiming: mode is "fan_in" or "fan_out", not {mode!r}')
  return calculate_gain(nonlinearity, a) / math.sqrt(fans(tensor)[mode == "fan_out"])


def kaiming_uniform_(
  tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
  """Uniform with variance gain^2 / fan. https://arxiv.org/abs/1502.01852"""
  bound = math.sqrt(3) * _he(tensor, a, mode, nonlinearity)
  return uniform_(tensor, -bound, bound)


def kaiming_normal_(
  tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
  """Normal with variance gain^2 / fan. https://arxiv.org/abs/1502.01852"""
  return normal_(tensor, 0.0, _he(tensor, a, mode, nonlinearity))
