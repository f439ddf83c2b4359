"""torch.distributions.transforms's names: functions that have an inverse, with the logarithm of their slope."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

T = Any  # a tensor


class Transform:
  """t(x), t.inv(y), and log |dy / dx|; sign: of the slope, where it is one everywhere."""

  sign: Any = 1

  def __call__(self, x: T) -> T:
    return self._call(x)

  def _call(self, x: T) -> T:
    raise NotImplementedError

  def _inverse(self, y: T) -> T:
    raise NotImplementedError

  def log_abs_det_jacobian(self, x: T, y: T) -> T:
    """log |dy / dx|, element by element."""
    raise NotImplementedError

  @property
  def inv(self) -> Transform:
    """The inverse, as a transform."""
    return Inverse(self)

  def __repr__(self) -> str:
    return f"{type(self).__name__}()"


class Inverse(Transform):
  """The inverse of a transform."""

  def __init__(self, of: Transform):
    self.of, self.sign = of, of.sign

  def _call(self, x: T) -> T:
    return self.of._inverse(x)

  def _inverse(self, y: T) -> T:
    return self.of._call(y)

  def log_abs_det_jacobian(self, x: T, y: T) -> T:
    return -self.of.log_abs_det_jacobian(y, x)

  @property
  def inv(self) -> Transform:
    return self.of


class AffineTransform(Transform):
  """loc + scale x."""

  def __init__(self, loc: Any, scale: Any, event_dim: int = 0):
    self.loc, self.scale = loc, scale
    self.sign = scale.sign() if hasattr(scale, "sign") else math.copysign(1, scale)

  def _call(self, x: T) -> T:
    return self.loc + self.scale * x

  def _inverse(self, y: T) -> T:
    return (y - self.loc) / self.scale

  def log_abs_det_jacobian(self, x: T, y: T) -> T:
    return x * 0 + (self.scale.abs().log() if hasattr(self.scale, "abs") else math.log(abs(self.scale)))


class PowerTransform(Transform):
  """x ** exponent, of positive x."""

  def __init__(self, exponent: Any):
    self.exponent = exponent

  def _call(self, x: T) -> T:
    return x**self.exponent

  def _inverse(self, y: T) -> T:
    return y ** (1 / self.exponent)

  def log_abs_det_jacobian(self, x: T, y: T) -> T:
    return (self.exponent * y / x).abs().log()


class ComposeTransform(Transform):
  """Several, the first one first."""

  def __init__(self, parts: Sequence[Transform]):
    self.parts = list(parts)
    self.sign = 1
    for part in self.parts:
      self.sign = self.sign * part.sign

  def _call(self, x: T) -> T:
    for part in self.parts:
      x = part(x)
    return x

  def _inverse(self, y: T) -> T:
    for part in reversed(self.parts):
      y = part.inv(y)
    return y

  def log_abs_det_jacobian(self, x: T, y: T) -> T:
    total: Any = 0
    for part in self.parts:
      after = part(x)
      total, x = total + part.log_abs_det_jacobian(x, after), after
    return total


def _of_sigmoid(x: T, y: T) -> T:
  return -(-x).softplus() - x.softplus()


def _of_tanh(x: T, y: T) -> T:
  return 2 * (math.log(2) - x - (-2 * x).softplus())


# fmt: off
# name: (the function, its inverse, the logarithm of its slope at x, y)
FUNCTIONS: dict[str, tuple[Callable[[T], T], Callable[[T], T], Callable[[T, T], T]]] = {
  "ExpTransform":      (lambda x: x.exp(),      lambda y: y.log(),                   lambda x, y: x),
  "SigmoidTransform":  (lambda x: x.sigmoid(),  lambda y: y.logit(),                 _of_sigmoid),
  "TanhTransform":     (lambda x: x.tanh(),     lambda y: y.atanh(),                 _of_tanh),
  "SoftplusTransform": (lambda x: x.softplus(), lambda y: (-(-y).expm1()).log() + y, lambda x, y: -(-x).softplus()),
}
# fmt: on


def _made(name: str) -> type[Transform]:
  call, inverse, slope = FUNCTIONS[name]
  methods = {
    "_call": lambda self, x: call(x),
    "_inverse": lambda self, y: inverse(y),
    "log_abs_det_jacobian": lambda self, x, y: slope(x, y),
  }
  return type(name, (Transform,), {**methods, "__doc__": f"{name[:-9].lower()}(x).", "__module__": __name__})


ExpTransform, SigmoidTransform, TanhTransform, SoftplusTransform = map(_made, FUNCTIONS)

__all__ = ["AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform",
           "SoftplusTransform", "TanhTransform", "Transform"]  # fmt: skip
