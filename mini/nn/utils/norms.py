"""torch.nn.utils.weight_norm and spectral_norm, and torch.nn.utils.parametrizations' forms of them.

T. Salimans and D. Kingma, Weight normalization, 2016; T. Miyato et al., Spectral normalization, 2018.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mini.nn.module import Module, Parameter
from mini.nn.utils.parametrize import computed, fixed, register_parametrization
from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.errors import fail
from mini.types import MiniError


def _norm(v: Tensor, dim: int | None) -> Tensor:
  """The length of each slice along dim; of all of it if that is None or -1."""
  return v.norm(2, tuple(a for a in range(v.ndim) if dim in (None, -1) or a != dim % v.ndim), True)


def _matrix(w: Tensor, dim: int) -> Tensor:
  return (w.movedim(dim, 0) if dim else w).flatten(1)


def _unit(x: Tensor, eps: float) -> Tensor:
  return x / x.norm().clamp(min=eps)


def _iterated(w: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> tuple[Tensor, Tensor]:
  """The left and right singular vectors of the largest singular value, nearer by so many steps."""
  for _ in range(times):
    u = _unit(w @ v, eps)
    v = _unit(w.mT @ u, eps)
  return u, v


def _begun(w: Tensor, eps: float) -> tuple[Tensor, Tensor]:
  with no_grad():
    u, v = (_unit(Tensor.randn(n, dtype=w.dtype, device=w.device), eps) for n in w.shape)
    u, v = _iterated(w.detach(), u, v, 15, eps)
    return u.realize(), v.realize()


def _dim_of(module: Any, dim: int | None) -> int:
  return int(type(module).__name__.startswith("ConvTranspose")) if dim is None else dim


# ---------------------------------------------------------------- with parameters of other names


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
  """Have a weight be g v / |v|, with its length and its direction, NAME_g and NAME_v, as parameters.

  >>> layer = nn.utils.weight_norm(nn.Linear(2, 3))
  >>> [(n, p.shape) for n, p in layer.named_parameters()]
  [('bias', (3,)), ('weight_g', (3, 1)), ('weight_v', (3, 2))]
  """
  w = getattr(module, name).detach()
  setattr(module, f"{name}_g", Parameter(_norm(w, dim).realize()))
  setattr(module, f"{name}_v", Parameter(w))

  def compute(m: Any) -> Tensor:
    v = getattr(m, f"{name}_v")
    return v * (getattr(m, f"{name}_g") / _norm(v, dim))

  computed(module, name, compute)
  return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
  """Make the weight a parameter again."""
  return _removed(module, name, ("g", "v"))


def spectral_norm(
  module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
  """Have a weight be NAME_orig, a parameter, over its largest singular value, which follows it by n_power_iterations
  steps of the power method in each forward pass of training; the vectors are the buffers NAME_u and NAME_v."""
  axis = _dim_of(module, dim)
  w = getattr(module, name).detach()
  u, v = _begun(_matrix(w, axis), eps)
  setattr(module, f"{name}_orig", Parameter(w))
  module.register_buffer(f"{name}_u", u)
  module.register_buffer(f"{name}_v", v)

  def compute(m: Any) -> Tensor:
    w = getattr(m, f"{name}_orig")
    return w / (getattr(m, f"{name}_u") @ (_matrix(w, axis) @ getattr(m, f"{name}_v")))

  def follow(m: Any, args: Any) -> None:
    if m.training:
      with no_grad():
        u, v = getattr(m, f"{name}_u"), getattr(m, f"{name}_v")
        new = _iterated(_matrix(getattr(m, f"{name}_orig").detach(), axis), u, v, n_power_iterations, eps)
        u.assign(new[0]), v.assign(new[1])

  computed(module, name, compute)
  module.register_forward_pre_hook(follow)
  return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
  """Make the weight a parameter again."""
  module._hooks = tuple(h for h in module._hooks if h.f.__name__ != "follow")
  return _removed(module, name, ("orig", "u", "v"))


def _removed(module: Any, name: str, parts: tuple[str, ...]) -> Any:
  if not hasattr(module, f"{name}_{parts[0]}"):
    fail(MiniError, f"{name!r} of {type(module).__name__} has no such norm")
  value = getattr(module, name).detach().realize()
  for part in parts:
    delattr(module, f"{name}_{part}")
  fixed(module, name, Parameter(value))
  return module


# ---------------------------------------------------------------- as parametrizations


class _WeightNorm(Module):
  def __init__(self, dim: int | None = 0):
    self.dim = dim

  def forward(self, g: Tensor, v: Tensor) -> Tensor:
    return v * (g / _norm(v, self.dim))

  def right_inverse(self, w: Tensor) -> tuple[Tensor, Tensor]:
    return _norm(w, self.dim), w


class _SpectralNorm(Module):
  u: Tensor
  v: Tensor

  def __init__(self, w: Tensor, n_power_iterations: int, dim: int, eps: float):
    self.dim, self.eps, self.n_power_iterations = dim, eps, n_power_iterations
    if w.ndim > 1:
      u, v = _begun(_matrix(w.detach(), dim), eps)
      self.register_buffer("u", u)
      self.register_buffer("v", v)

  def forward(self, w: Tensor) -> Tensor:
    if w.ndim == 1:
      return _unit(w, self.eps)
    m = _matrix(w, self.dim)
    if self.training:
      with no_grad():
        u, v = _iterated(m.detach(), self.u, self.v, self.n_power_iterations, self.eps)
        self.u.assign(u), self.v.assign(v)
    return w / (self.u.clone() @ (m @ self.v.clone()))

  def right_inverse(self, w: Tensor) -> Tensor:
    return w


def _weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
  """`weight_norm` as a parametrization: original0 is the length, original1 the direction."""
  return register_parametrization(module, name, _WeightNorm(dim))


def _spectral_norm(
  module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
  """`spectral_norm` as a parametrization: the vectors follow whenever the weight is computed in training."""
  w = getattr(module, name)
  return register_parametrization(
    module, name, _SpectralNorm(w, n_power_iterations, _dim_of(module, dim), eps)
  )


parametrizations = SimpleNamespace(weight_norm=_weight_norm, spectral_norm=_spectral_norm)

__all__ = ["parametrizations", "remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]
