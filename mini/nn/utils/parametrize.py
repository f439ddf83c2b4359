"""torch.nn.utils.parametrize's names: an attribute of a module that is computed of parameters.

What is computed is a property of the one module: it is lazy, as every tensor, and computed where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mini.nn.layers import ModuleDict
from mini.nn.module import Module, Parameter
from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.errors import fail
from mini.types import MiniError


def computed(module: Any, name: str, compute: Callable[[Any], Tensor], put: Any = None) -> None:
  """Have an attribute of one module computed by a function of the module; put: what is done where it is set."""
  module.__dict__.pop(name, None)
  module._trained = module._trained - {name}
  _become(module, {**getattr(type(module), "_computed", {}), name: property(compute, put)})


def fixed(module: Any, name: str, value: Tensor) -> None:
  """Undo `computed`: the attribute has a value again."""
  _become(module, {k: v for k, v in type(module)._computed.items() if k != name})
  setattr(module, name, value)


def _become(module: Any, properties: dict[str, property]) -> None:
  """Give a module a class of its own, with these properties; without any the one that it had."""
  plain = getattr(type(module), "_plain", type(module))
  own = {**properties, "_plain": plain, "_computed": properties, "__module__": plain.__module__}
  module.__class__ = type(plain.__name__, (plain,), own) if properties else plain


class ParametrizationList(Module):
  """Functions, one after another, and what the first is called with: `original`, or several `original0`, ..."""

  def __init__(self, value: Tensor, first: Any):
    self._count = 0
    held = first.right_inverse(value) if hasattr(first, "right_inverse") else value
    self._names = ["original"] if isinstance(held, Tensor) else [f"original{n}" for n in range(len(held))]
    for name, t in zip(self._names, [held] if isinstance(held, Tensor) else held):
      setattr(self, name, Parameter(t.detach(), value.requires_grad))
    self.append(first)

  def append(self, f: Any) -> None:
    """One more function behind the others."""
    setattr(self, str(self._count), f)
    self._count += 1

  def __len__(self) -> int:
    return self._count

  def __getitem__(self, n: int) -> Any:
    return getattr(self, str(range(self._count)[n]))

  def forward(self) -> Tensor:
    out = self[0](*(getattr(self, name) for name in self._names))
    for n in range(1, self._count):
      out = self[n](out)
    return out

  def right_inverse(self, value: Tensor) -> None:
    """Set what is held so that this is computed of it; where a function has a right_inverse, by it."""
    with no_grad():
      held: Any = value
      for n in reversed(range(self._count)):
        if not hasattr(self[n], "right_inverse"):
          fail(MiniError, f"{type(self[n]).__name__} has no right_inverse, by which a value could be set")
        held = self[n].right_inverse(held)
      for name, t in zip(self._names, [held] if isinstance(held, Tensor) else held):
        getattr(self, name).assign(t)


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
  """Has it a parametrization, of this attribute?"""
  lists = vars(module).get("parametrizations")
  return lists is not None and (tensor_name is None or hasattr(lists, tensor_name))


def register_parametrization(
  module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
  """Have the attribute computed as parametrization(parameter), of the parameter that it was. The parameter goes to
  `module.parametrizations.NAME.original`; where parametrization has a `right_inverse`, that says what it starts with,
  and setting the attribute sets it. One more is called with what the ones before give.

  >>> class Symmetric(nn.Module):
  ...   def forward(self, x):
  ...     return x.triu() + x.triu(1).mT
  >>> layer = register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
  >>> bool((layer.weight == layer.weight.mT).all()), [*layer.state_dict()]
  (True, ['bias', 'parametrizations.weight.original'])
  """
  if is_parametrized(module, tensor_name):
    getattr(module.parametrizations, tensor_name).append(parametrization)
    return module
  value = getattr(module, tensor_name, None)
  if not isinstance(value, Tensor):
    fail(MiniError, f"register_parametrization: {type(module).__name__} has no tensor {tensor_name!r}")
  if not is_parametrized(module):
    module.parametrizations = ModuleDict()
  module.parametrizations[tensor_name] = ParametrizationList(value, parametrization)

  def compute(m: Any) -> Tensor:
    return getattr(m.parametrizations, tensor_name)()

  computed(
    module, tensor_name, compute, lambda m, new: getattr(m.parametrizations, tensor_name).right_inverse(new)
  )
  return module


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
  """Make the attribute a parameter again: with the value that was computed last, or with the original one."""
  if not is_parametrized(module, tensor_name):
    fail(MiniError, f"remove_parametrizations: {tensor_name!r} has none")
  held = getattr(module.parametrizations, tensor_name)
  if not leave_parametrized and not hasattr(held, "original"):
    fail(MiniError, "remove_parametrizations: of several original tensors none is the attribute")
  value = getattr(module, tensor_name) if leave_parametrized else held.original
  del module.parametrizations[tensor_name]
  fixed(module, tensor_name, Parameter(value.detach().realize()))
  if not module.parametrizations._names:
    del module.parametrizations
  return module


@contextmanager
def cached() -> Iterator[None]:
  """Nothing: what is computed of the same tensors is computed once in any case."""
  yield


__all__ = [
  "ParametrizationList",
  "cached",
  "is_parametrized",
  "register_parametrization",
  "remove_parametrizations",
]
