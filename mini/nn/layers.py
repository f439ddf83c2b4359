"""The layers: PyTorch's names, arguments, parameter names, layouts and initial values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mini.nn import init
from mini.nn.functional import alpha_dropout, channel_dropout
from mini.nn.module import Module, Parameter
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError


def weight(*s: int, dtype: Any = None, device: str | None = None) -> Tensor:
  """A parameter whose values are still to be set."""
  return Parameter(Tensor.empty(*s, dtype=dtype, device=device))


def uniform_within(bound: float, *parameters: Tensor | None) -> None:
  """Give parameters, those that there are, values that are uniform in [-bound, bound)."""
  for p in parameters:
    if p is not None:
      init.uniform_(p, -bound, bound)


class Linear(Module):
  """x @ weight.T + bias.   x: T[.., n]   weight: T[m, n]   ->   T[.., m]

  >>> Linear(3, 2)(Tensor.ones(5, 3)).shape
  (5, 2)
  """

  def __init__(
    self, in_features: int, out_features: int, bias: bool = True, device: str | None = None, dtype: Any = None
  ):
    self.in_features, self.out_features = in_features, out_features
    self.weight = weight(out_features, in_features, dtype=dtype, device=device)
    self.bias = weight(out_features, dtype=dtype, device=device) if bias else None
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Uniform within 1 / sqrt(in_features) of 0, weight and bias."""
    uniform_within(1 / math.sqrt(self.in_features) if self.in_features else 0.0, self.weight, self.bias)

  def forward(self, input: Tensor) -> Tensor:
    return input.linear(self.weight, self.bias)

  def extra_repr(self) -> str:
    return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
  """a @ weight[m] @ b + bias[m].   a: T[.., n]   b: T[.., k]   weight: T[m, n, k]   ->   T[.., m]

  >>> Bilinear(3, 4, 2)(Tensor.ones(5, 3), Tensor.ones(5, 4)).shape
  (5, 2)
  """

  def __init__(
    self,
    in1_features: int,
    in2_features: int,
    out_features: int,
    bias: bool = True,
    device: str | None = None,
    dtype: Any = None,
  ):
    self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
    self.weight = weight(out_features, in1_features, in2_features, dtype=dtype, device=device)
    self.bias = weight(out_features, dtype=dtype, device=device) if bias else None
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Uniform within 1 / sqrt(in1_features) of 0, weight and bias."""
    uniform_within(self.in1_features**-0.5, self.weight, self.bias)

  def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
    rows = input2.linear(self.weight.reshape(-1, self.in2_features)).unflatten(-1, self.weight.shape[:2])
    out = (rows * input1.unsqueeze(-2)).sum(-1)  # [.., m, n] over n
    return out if self.bias is None else out + self.bias

  def extra_repr(self) -> str:
    return (
      f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
    )


class Dropout(Module):
  """While training: zeros with probability p, all else over 1 - p.

  >>> Dropout(0.5).eval()(Tensor.ones(2))
  Tensor([1., 1.])
  """

  def __init__(self, p: float = 0.5, inplace: bool = False):
    if not 0 <= p <= 1:
      fail(ArgumentError, f"Dropout: {p} is no probability")
    self.p = p

  def forward(self, input: Tensor) -> Tensor:
    return input.dropout(self.p, training=self.training)

  def extra_repr(self) -> str:
    return f"p={self.p}"


class _DropoutNd(Dropout):
  """While training: whole channels, axis 1, are zeros with probability p, all else is over 1 - p.   T[N, C, ..]"""

  def forward(self, input: Tensor) -> Tensor:
    return channel_dropout(input, self.p, self.training)


class Dropout1d(_DropoutNd):
  """Of T[N, C, L]: whole channels; see Dropout."""


class Dropout2d(_DropoutNd):
  """Of T[N, C, H, W]: whole channels; see Dropout."""


class Dropout3d(_DropoutNd):
  """Of T[N, C, D, H, W]: whole channels; see Dropout."""


class AlphaDropout(Dropout):
  """Dropout that keeps mean 0 and variance 1 after `SELU`. https://arxiv.org/abs/1706.02515"""

  def forward(self, input: Tensor) -> Tensor:
    return alpha_dropout(input, self.p, self.training)


# ---------------------------------------------------------------- containers


class ModuleList(Module):
  """Modules in a list; the n-th has the path `n`.

  >>> [m.out_features for m in ModuleList([Linear(2, 3), Linear(3, 4)])]
  [3, 4]
  """

  def __init__(self, modules: Iterable[Any] = ()):
    self._length = 0
    self.extend(modules)

  def append(self, module: Any) -> ModuleList:
    """One more at the end."""
    setattr(self, str(self._length), module)
    self._length += 1
    return self

  def extend(self, modules: Iterable[Any]) -> ModuleList:
    """More at the end."""
    for m in modules:
      self.append(m)
    return self

  def insert(self, index: int, module: Any) -> None:
    """One more before the one at `index`."""
    everything = list(self)
    everything.insert(index, module)
    self._refill(everything)

  def pop(self, index: int = -1) -> Any:
    """The one at `index`, which is taken out.

    >>> layers = Sequential(Linear(4, 8), nn.ReLU(), Linear(8, 2))
    >>> layers.pop()
    Linear(in_features=8, out_features=2, bias=True)
    >>> len(layers)
    2
    """
    module = self[index]
    del self[index]
    return module

  def _refill(self, modules: Sequence[Any]) -> None:
    for n in range(len(modules), self._length):
      delattr(self, str(n))
    self._length = 0
    self.extend(modules)

  def __len__(self) -> int:
    return self._length

  def __iter__(self) -> Iterator[Any]:
    return (getattr(self, str(n)) for n in range(self._length))

  def __getitem__(self, index: int | slice) -> Any:
    if isinstance(index, slice):
      return type(self)(list(self)[index]) if type(self) is ModuleList else type(self)(*list(self)[index])
    return getattr(self, str(range(self._length)[index]))

  def __setitem__(self, index: int, module: Any) -> None:
    setattr(self, str(range(self._length)[index]), module)

  def __delitem__(self, index: int | slice) -> None:
    everything = list(self)
    del everything[index]
    self._refill(everything)

  def __add__(self, other: Iterable[Any]) -> Any:
    everything = [*self, *other]
    return type(self)(*everything) if isinstance(self, Sequential) else type(self)(everything)

  def __iadd__(self, other: Iterable[Any]) -> Any:
    return self.extend(other)


class ParameterList(ModuleList):
  """Tensors in a list, each a parameter; the n-th has the path `n`.

  >>> [name for name, p in ParameterList([Tensor([1.0]), Tensor([2.0])]).named_parameters()]
  ['0', '1']
  """

  def append(self, module: Any) -> ModuleList:
    """One more at the end, as a parameter."""
    return super().append(
      module if isinstance(module, Tensor) and module.requires_grad else Parameter(module)
    )


class ModuleDict(Module):
  """Modules by name, which is also their path.

  >>> sorted(name for name, p in ModuleDict({"a": Linear(2, 3)}).named_parameters())
  ['a.bias', 'a.weight']
  """

  def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()):
    self._names: list[str] = []
    self.update(modules)

  def update(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
    """Add modules, or replace those of the same names."""
    for name, m in dict(modules).items():
      self[name] = m

  def __setitem__(self, name: str, module: Any) -> None:
    if name not in self._names:
      if not name or "." in name or name.startswith("_") or hasattr(self, name):
        fail(
          ArgumentError,
          f"{type(self).__name__}: {name!r} cannot be a name: it is no part of a path, or taken",
        )
      self._names.append(name)
    setattr(self, name, module)

  def __getitem__(self, name: str) -> Any:
    if name not in self._names:
      raise KeyError(name)
    return getattr(self, name)

  def __delitem__(self, name: str) -> None:
    self[name]
    self._names.remove(name)
    delattr(self, name)

  def pop(self, name: str) -> Any:
    """Take one out."""
    found = self[name]
    del self[name]
    return found

  def __contains__(self, name: object) -> bool:
    return name in self._names

  def __len__(self) -> int:
    return len(self._names)

  def __iter__(self) -> Iterator[str]:
    return iter(self._names)

  def keys(self) -> list[str]:
    """The names."""
    return list(self._names)

  def values(self) -> list[Any]:
    """The modules."""
    return [self[n] for n in self._names]

  def items(self) -> list[tuple[str, Any]]:
    """Names and modules."""
    return [(n, self[n]) for n in self._names]


class ParameterDict(ModuleDict):
  """Tensors by name, each a parameter."""

  def __setitem__(self, name: str, module: Any) -> None:
    super().__setitem__(
      name, module if isinstance(module, Tensor) and module.requires_grad else Parameter(module)
    )


class Sequential(ModuleList):
  """Modules, or any functions of a tensor, one after the other.

  >>> Sequential(Linear(4, 8), nn.ReLU(), Linear(8, 2))(Tensor.ones(3, 4)).shape
  (3, 2)
  """

  def __init__(self, *modules: Any):
    super().__init__(modules)

  def forward(self, input: Any) -> Any:
    for m in self:
      input = m(input)
    return input


# ---------------------------------------------------------------- shapes


class Identity(Module):
  """x itself."""

  def __init__(self, *args: Any, **kwargs: Any):
    pass

  def forward(self, input: Any) -> Any:
    return input


class Flatten(Module):
  """Axes start_dim to end_dim as one."""

  def __init__(self, start_dim: int = 1, end_dim: int = -1):
    self.start_dim, self.end_dim = start_dim, end_dim

  def forward(self, input: Tensor) -> Tensor:
    return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
  """An axis as several.

  >>> Unflatten(1, (2, 3))(Tensor.ones(4, 6)).shape
  (4, 2, 3)
  """

  def __init__(self, dim: int, unflattened_size: Iterable[int]):
    self.dim, self.unflattened_size = dim, tuple(unflattened_size)

  def forward(self, input: Tensor) -> Tensor:
    return input.unflatten(self.dim, self.unflattened_size)

  def extra_repr(self) -> str:
    return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


__all__ = ["AlphaDropout", "Bilinear", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Flatten", "Identity",
           "Linear", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential",
           "Unflatten"]  # fmt: skip
