"""Schedules of the learning rate: functions of the number of steps, which is a 0-d tensor, as is the rate.

`step()` may be called beside a jitted training step or inside it. Names, arguments and closed forms are
PyTorch's (torch.optim.lr_scheduler); steps begin with 0 at construction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.types import dtypes

if TYPE_CHECKING:
  from mini.nn.optim import Optimizer


class LRScheduler:
  """The base: a subclass says what the rate is after t steps."""

  def __init__(self, optimizer: Optimizer):
    self._rates = optimizer.rates()
    self.bases = [rate.item() for rate in self._rates]
    self.count = Tensor(0, device=self._rates[0].device)
    self._set()

  def rate(self, base: float, t: Tensor) -> Any:
    """The learning rate after t steps.   t: f32[]"""
    raise NotImplementedError(type(self).__name__)

  def step(self) -> None:
    """One step more."""
    self.count.assign(self.count + 1)
    self._set()

  def _set(self) -> None:
    with no_grad():
      t = self.count.cast(dtypes.float32)
      for rate, base in zip(self._rates, self.bases):
        new = self.rate(base, t)
        rate.assign(
          new if isinstance(new, Tensor) else Tensor(float(new), dtype=rate.dtype, device=rate.device)
        )
      Tensor.realize(self.count, *self._rates)

  def get_last_lr(self) -> list[float]:
    """The rates now, one for each tensor of them."""
    return [rate.item() for rate in self._rates]

  def state_dict(self) -> dict[str, Any]:
    """The number of steps and the rates at the beginning."""
    return {"count": self.count, "bases": list(self.bases)}

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Go on from a `state_dict`."""
    self.bases = list(state["bases"])
    self.count.assign(Tensor(int(state["count"]), device=self.count.device))
    self._set()


class LambdaLR(LRScheduler):
  """The rate at the beginning times a function of the number of steps, or one function for each rate.

  What the function gets is a 0-d tensor; inside `jit` it cannot ask for its value.

  >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
  >>> schedule = nn.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 0.5**t)
  >>> schedule.step()
  >>> optimizer.lr.item()
  0.5
  """

  def __init__(
    self, optimizer: Optimizer, lr_lambda: Callable[[Tensor], Any] | Sequence[Callable[[Tensor], Any]]
  ):
    self._functions = [lr_lambda] * len(optimizer.rates()) if callable(lr_lambda) else list(lr_lambda)
    super().__init__(optimizer)

  def _set(self) -> None:
    factors = iter(self._functions)
    self.rate = lambda base, t: base * next(factors)(t)  # type: ignore[method-assign]
    super()._set()


class StepLR(LRScheduler):
  """Times gamma, every step_size steps."""

  def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1):
    self.step_size, self.gamma = step_size, gamma
    super().__init__(optimizer)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return base * self.gamma ** (t / self.step_size).floor()


class ExponentialLR(LRScheduler):
  """Times gamma, every step."""

  def __init__(self, optimizer: Optimizer, gamma: float):
    self.gamma = gamma
    super().__init__(optimizer)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return base * self.gamma**t


class LinearLR(LRScheduler):
  """From start_factor to end_factor of the rate in a line, over total_iters steps."""

  def __init__(
    self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5
  ):
    self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
    super().__init__(optimizer)

  def rate(self, base: float, t: Tensor) -> Tensor:
    done = t.minimum(self.total_iters) / self.total_iters
    return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class CosineAnnealingLR(LRScheduler):
  """From the rate to eta_min along half a cosine, over T_max steps. https://arxiv.org/abs/1608.03983"""

  def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0):
    self.T_max, self.eta_min = T_max, eta_min
    super().__init__(optimizer)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return self.eta_min + (base - self.eta_min) * (1 + (t * (math.pi / self.T_max)).cos()) / 2


class WarmupCosineLR(LRScheduler):
  """Up in a line over `warmup` steps, then along half a cosine to `floor` times the rate at `total`.

  Step 0 has 1 / warmup of the rate. As GPT-3 was trained: https://arxiv.org/abs/2005.14165, appendix B.

  >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
  >>> schedule = nn.optim.lr_scheduler.WarmupCosineLR(optimizer, warmup=2, total=4)
  >>> for _ in range(3): schedule.step()
  >>> round(optimizer.lr.item(), 4)
  0.5
  """

  def __init__(self, optimizer: Optimizer, warmup: int, total: int, floor: float = 0.0):
    self.warmup, self.total, self.floor = warmup, total, floor
    super().__init__(optimizer)

  def rate(self, base: float, t: Tensor) -> Tensor:
    up = ((t + 1) / max(1, self.warmup)).minimum(1.0)
    done = ((t - self.warmup) / max(1, self.total - self.warmup)).clamp(0.0, 1.0)
    return base * up * (self.floor + (1 - self.floor) * (1 + (done * math.pi).cos()) / 2)


__all__ = [
  "CosineAnnealingLR",
  "ExponentialLR",
  "LRScheduler",
  "LambdaLR",
  "LinearLR",
  "StepLR",
  "WarmupCosineLR",
]
