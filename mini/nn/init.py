"""Initial values, with PyTorch's names and formulas (torch.nn.init): each fills a tensor and returns it."""

from __future__ import annotations

import math

import numpy as np

from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError, ShapeError


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


LINEAR = ("linear", "sigmoid", *(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)))


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
  if nonlinearity not in (*gains, *LINEAR):
    fail(ArgumentError, f"calculate_gain: unknown nonlinearity {nonlinearity!r}")
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
    fail(ArgumentError, f'kaiming: mode is "fan_in" or "fan_out", not {mode!r}')
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


def trunc_normal_(
  tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Tensor:
  """Normally distributed, but never outside [a, b]: normals that were outside are drawn again, up to 32 times.

  >>> t = trunc_normal_(Tensor.zeros(1000), std=2.0)
  >>> bool((t.abs() <= 2).all())
  True
  """
  if not a < b or not (a < mean + 6 * std and b > mean - 6 * std):
    fail(
      ArgumentError, f"trunc_normal_: nearly nothing of the normal distribution is in [{a}, {b}]", x=tensor
    )
  values = np.random.default_rng(_seed()).standard_normal(tensor.shape) * std + mean
  rng = np.random.default_rng(_seed())
  for _ in range(32):
    if not (outside := (values < a) | (values > b)).any():
      break
    values[outside] = rng.standard_normal(int(outside.sum())) * std + mean
  return _put(tensor, values.clip(a, b))


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
  """A matrix, of all axes but the first as one, whose rows, or columns where these are fewer, are orthonormal, times
  gain. https://arxiv.org/abs/1312.6120"""
  if tensor.ndim < 2:
    fail(ShapeError, "orthogonal_: x has fewer than two axes", x=tensor)
  rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
  x = np.random.default_rng(_seed()).standard_normal((max(rows, columns), min(rows, columns)))
  q, r = np.linalg.qr(x)
  q = q * np.where(np.diag(r) < 0, -1.0, 1.0)  # as likely as any other
  return _put(tensor, gain * (q if rows >= columns else q.T).reshape(tensor.shape))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
  """Of each column of a matrix a share of zeros, rounded up, in random rows, the rest normally distributed."""
  if tensor.ndim != 2:
    fail(ShapeError, "sparse_: x has not two axes", x=tensor)
  rng = np.random.default_rng(_seed())
  rows, columns = tensor.shape
  values = rng.standard_normal((rows, columns)) * std
  at = rng.random((rows, columns)).argsort(0)[: math.ceil(sparsity * rows)]
  values[at, np.arange(columns)] = 0
  return _put(tensor, values)


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
  """A weight of convolutions [out, in, ..] that keeps its input: 1 in the middle of the window from channel i to
  channel i of each group."""
  if not 3 <= tensor.ndim <= 5 or groups < 1 or tensor.shape[0] % groups:
    fail(ShapeError, f"dirac_: x is no weight of convolutions of {groups} groups", x=tensor)
  values, each = np.zeros(tensor.shape), tensor.shape[0] // groups
  middle = tuple(n // 2 for n in tensor.shape[2:])
  for g in range(groups):
    for i in range(min(each, tensor.shape[1])):
      place = (g * each + i, i, *middle)
      values[place] = 1
  return _put(tensor, values)


def _seed() -> int:
  """Of NumPy's generator, from ours: the same after the same `Tensor.manual_seed`."""
  return int(Tensor.randint(1 << 31, ()).item())


def _put(tensor: Tensor, values: np.ndarray) -> Tensor:
  return tensor.assign(Tensor(values, dtype=tensor.dtype, device=tensor.device))
