"""Schedules of the learning rate, and of momentum: functions of the number of steps, a 0-d tensor, as they are.

`step()` may be called beside a jitted training step or inside it. Names, arguments and closed forms are
PyTorch's (torch.optim.lr_scheduler); steps begin with 0 at construction. A rate that is set by hand in between is gone
at the next step, where some of PyTorch's go on from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.errors import fail
from mini.types import ArgumentError, dtypes

if TYPE_CHECKING:
  from mini.nn.optimizer import Optimizer


class LRScheduler:
  """The base: a subclass says what the rate is after t steps; of a momentum that it moves, what that is.

  last_epoch: how many steps but one were made before, as in PyTorch: the schedule goes on. KeyError unless the groups
  say what their rates were at the beginning, as "initial_lr", or an earlier schedule has seen it.
  """

  def __init__(self, optimizer: Optimizer, last_epoch: int = -1, moves_momentum: bool = False):
    self.optimizer = optimizer
    self._rates, groups = optimizer.rates(), optimizer.param_groups
    # what the rates were when the first schedule was made, as PyTorch's initial_lr
    given = {group.rate: float(group["initial_lr"]) for group in groups if "initial_lr" in group}
    first = vars(optimizer).setdefault("_first_rates", given)
    if last_epoch >= 0 and not first.keys() >= {*self._rates}:
      raise KeyError(f"{type(self).__name__}: last_epoch is {last_epoch}, and a group has no initial_lr")
    self.bases = [first.setdefault(rate, rate.item()) for rate in self._rates]
    self.count = Tensor(last_epoch + 1, device=self._rates[0].device)
    self._momentum = optimizer.moving_momentum() if moves_momentum else None
    self._set()

  def rate(self, base: float, t: Tensor) -> Any:
    """The learning rate after t steps.   t: f32[]"""
    raise NotImplementedError(type(self).__name__)

  def momentum(self, t: Tensor) -> Any:
    """The momentum after t steps."""
    raise NotImplementedError(type(self).__name__)

  def _nth(self, n: int, base: float, t: Tensor) -> Any:
    """As `rate`, of the n-th rate, for schedules that differ from one to another."""
    return self.rate(base, t)

  def step(self) -> None:
    """One step more."""
    self.count.assign(self.count + 1)
    self._set()

  def _set(self) -> None:
    with no_grad():
      t = self.count.cast(dtypes.float32)
      for n, rate in enumerate(self._rates):
        new = self._nth(n, self.bases[n], t)
        rate.assign(
          new if isinstance(new, Tensor) else Tensor(float(new), dtype=rate.dtype, device=rate.device)
        )
      if self._momentum is not None:
        self._momentum.assign(self.momentum(t))
      Tensor.realize(self.count, *self._rates, *([] if self._momentum is None else [self._momentum]))

  def get_last_lr(self) -> list[float]:
    """The rates now, one for each tensor of them."""
    return [rate.item() for rate in self._rates]

  def state_dict(self) -> dict[str, Any]:
    """The number of steps and the rates at the beginning."""
    return {"count": self.count.detach().clone(), "bases": list(self.bases)}

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
    self,
    optimizer: Optimizer,
    lr_lambda: Callable[[Tensor], Any] | Sequence[Callable[[Tensor], Any]],
    last_epoch: int = -1,
  ):
    self._functions = [lr_lambda] * len(optimizer.rates()) if callable(lr_lambda) else list(lr_lambda)
    super().__init__(optimizer, last_epoch)

  def _nth(self, n: int, base: float, t: Tensor) -> Any:
    return base * self._functions[n](t)


class StepLR(LRScheduler):
  """Times gamma, every step_size steps."""

  def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
    self.step_size, self.gamma = step_size, gamma
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return base * self.gamma ** (t / self.step_size).floor()


class ExponentialLR(LRScheduler):
  """Times gamma, every step."""

  def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
    self.gamma = gamma
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return base * self.gamma**t


class LinearLR(LRScheduler):
  """From start_factor to end_factor of the rate in a line, over total_iters steps."""

  def __init__(
    self,
    optimizer: Optimizer,
    start_factor: float = 1 / 3,
    end_factor: float = 1.0,
    total_iters: int = 5,
    last_epoch: int = -1,
  ):
    self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    done = t.minimum(self.total_iters) / self.total_iters
    return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class CosineAnnealingLR(LRScheduler):
  """From the rate to eta_min along half a cosine, over T_max steps. https://arxiv.org/abs/1608.03983"""

  def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
    self.T_max, self.eta_min = T_max, eta_min
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return self.eta_min + (base - self.eta_min) * (1 + (t * (math.pi / self.T_max)).cos()) / 2


class MultiplicativeLR(LambdaLR):
  """The rate before times a function of the number of steps, or one function for each rate."""

  def _nth(self, n: int, base: float, t: Tensor) -> Any:
    return (t > 0).where(self._rates[n] * self._functions[n](t), self._rates[n])


class MultiStepLR(LRScheduler):
  """Times gamma at each milestone, a number of steps."""

  def __init__(
    self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
  ):
    self.milestones, self.gamma = sorted(milestones), gamma
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    passed = sum(((t >= m).float() for m in self.milestones), t * 0)
    return base * self.gamma**passed


class ConstantLR(LRScheduler):
  """`factor` of the rate for total_iters steps, then all of it."""

  def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1):
    self.factor, self.total_iters = factor, total_iters
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return (t < self.total_iters).where(base * self.factor, base)


class PolynomialLR(LRScheduler):
  """Down to 0 in total_iters steps, as a power of what is left of them."""

  def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
    self.total_iters, self.power = total_iters, power
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return base * (1 - t.minimum(self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingWarmRestarts(LRScheduler):
  """From the rate to eta_min along half a cosine, again and again: over T_0 steps, then each time T_mult as many.
  https://arxiv.org/abs/1608.03983"""

  def __init__(
    self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
  ):
    self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    if self.T_mult == 1:
      done = (t % self.T_0) / self.T_0
    else:
      begin, length = t * 0, t * 0 + self.T_0
      start, size = self.T_0, self.T_0 * self.T_mult
      while start < 1 << 24:
        later = t >= start
        begin, length = later.where(start, begin), later.where(size, length)
        start, size = start + size, size * self.T_mult
      done = (t - begin) / length
    return self.eta_min + (base - self.eta_min) * (1 + (done * math.pi).cos()) / 2


class CyclicLR(LRScheduler):
  """Up from base_lr to max_lr in step_size_up steps and down again, over and over. https://arxiv.org/abs/1506.01186

  mode: "triangular", "triangular2" (half as high each time) or "exp_range" (gamma ** t as high), or by scale_fn:
  how high, by the number of the cycle, from 1 on, or, if scale_mode is "iterations", of the step: a 0-d tensor.
  cycle_momentum: the momentum, or the first of betas, goes from max_momentum down to base_momentum as the rate goes up.
  """

  def __init__(
    self,
    optimizer: Optimizer,
    base_lr: float,
    max_lr: float,
    step_size_up: int = 2000,
    step_size_down: int | None = None,
    mode: str = "triangular",
    gamma: float = 1.0,
    scale_fn: Callable[[Tensor], Any] | None = None,
    scale_mode: str = "cycle",
    cycle_momentum: bool = True,
    base_momentum: float = 0.8,
    max_momentum: float = 0.9,
    last_epoch: int = -1,
  ):
    if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
      fail(ArgumentError, f'CyclicLR: mode is "triangular", "triangular2" or "exp_range", not {mode!r}')
    if scale_mode not in ("cycle", "iterations"):
      fail(ArgumentError, f'CyclicLR: scale_mode is "cycle" or "iterations", not {scale_mode!r}')
    self.lrs, self.momenta = (base_lr, max_lr), (max_momentum, base_momentum)
    self.up = step_size_up
    self.total = step_size_up + (step_size_up if step_size_down is None else step_size_down)
    if scale_fn is None:
      scale_mode = "iterations" if mode == "exp_range" else "cycle"
      scales: dict[str, Callable[[Tensor], Any]] = {
        "triangular": lambda n: 1.0,
        "triangular2": lambda n: 0.5 ** (n - 1),
        "exp_range": lambda n: gamma**n,
      }
      scale_fn = scales[mode]
    self.scale_fn, self.scale_mode = scale_fn, scale_mode
    super().__init__(optimizer, last_epoch, cycle_momentum)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return self._between(*self.lrs, t)

  def momentum(self, t: Tensor) -> Tensor:
    return self._between(*self.momenta, t)

  def _between(self, low: float, high: float, t: Tensor) -> Tensor:
    cycle = (t / self.total).floor()
    x, turn = t - cycle * self.total, self.up
    height = (x <= turn).where(x / turn, (self.total - x) / max(self.total - turn, 1))
    return low + (high - low) * height * self.scale_fn(cycle + 1 if self.scale_mode == "cycle" else t)


class OneCycleLR(LRScheduler):
  """Up from max_lr / div_factor to max_lr in pct_start of total_steps,
  then down to 1 / final_div_factor of where it began.
  https://arxiv.org/abs/1708.07120   three_phase: down as it went up, and then to the end.
  cycle_momentum: the momentum, or the first of betas, goes from max_momentum to base_momentum and back.
  """

  def __init__(
    self,
    optimizer: Optimizer,
    max_lr: float,
    total_steps: int | None = None,
    epochs: int | None = None,
    steps_per_epoch: int | None = None,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    cycle_momentum: bool = True,
    base_momentum: float = 0.85,
    max_momentum: float = 0.95,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    three_phase: bool = False,
    last_epoch: int = -1,
  ):
    if total_steps is None and (epochs is None or steps_per_epoch is None):
      fail(ArgumentError, "OneCycleLR: give total_steps, or epochs and steps_per_epoch")
    if anneal_strategy not in ("cos", "linear"):
      fail(ArgumentError, f'OneCycleLR: anneal_strategy is "cos" or "linear", not {anneal_strategy!r}')
    total = total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0)
    low, top, turn = max_lr / div_factor, max_lr, pct_start * total - 1
    self.strategy = anneal_strategy
    self.ends = [turn, 2 * turn, total - 1] if three_phase else [turn, total - 1]
    self.lrs = [
      low,
      top,
      *([low] if three_phase else []),
      low / final_div_factor,
    ]  # at the beginning, and at these ends
    self.momenta = [max_momentum, base_momentum, max_momentum, *([max_momentum] if three_phase else [])]
    super().__init__(optimizer, last_epoch, cycle_momentum)

  def rate(self, base: float, t: Tensor) -> Tensor:
    return self._along(self.lrs, t)

  def momentum(self, t: Tensor) -> Tensor:
    return self._along(self.momenta, t)

  def _along(self, values: Sequence[float], t: Tensor) -> Tensor:
    begin, found = 0.0, t * 0
    for n, (end, low, high) in enumerate(zip(self.ends, values, values[1:])):
      done = ((t - begin) / (end - begin)).clamp(0.0, 1.0)
      done = (1 - (done * math.pi).cos()) / 2 if self.strategy == "cos" else done
      value = low + (high - low) * done
      found = value if n == 0 else (t > begin).where(value, found)
      begin = end
    return found


class SequentialLR(LRScheduler):
  """One schedule after another: the next begins, with its step 0, at each milestone."""

  def __init__(
    self,
    optimizer: Optimizer,
    schedulers: Sequence[LRScheduler],
    milestones: Sequence[int],
    last_epoch: int = -1,
  ):
    if len(milestones) != len(schedulers) - 1:
      fail(
        ArgumentError,
        f"SequentialLR: {len(schedulers)} schedules have {len(schedulers) - 1} milestones between",
      )
    self._parts = list(zip((0, *milestones), schedulers))
    super().__init__(optimizer, last_epoch)

  def _nth(self, n: int, base: float, t: Tensor) -> Any:
    found: Any = None
    for begin, s in self._parts:
      value = s._nth(n, base, (t - begin).maximum(0.0))
      found = value if found is None else (t >= begin).where(value, found)
    return found


class ChainedScheduler(LRScheduler):
  """Several schedules at once: what each multiplies the rate by, all together."""

  def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
    self._parts = list(schedulers)
    if not self._parts:
      fail(ArgumentError, "ChainedScheduler: there are no schedules")
    super().__init__(optimizer or self._parts[0].optimizer)

  def _nth(self, n: int, base: float, t: Tensor) -> Any:
    found: Any = base
    for s in self._parts:
      found = found * (s._nth(n, base, t) / base)
    return found


class ReduceLROnPlateau:
  """Times `factor` when a number that `step` is told has not got better for more than `patience` steps.

  >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
  >>> schedule = nn.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
  >>> for loss in (3.0, 2.0, 2.0): schedule.step(loss)
  >>> optimizer.lr.item()
  0.5
  """

  def __init__(
    self,
    optimizer: Optimizer,
    mode: str = "min",
    factor: float = 0.1,
    patience: int = 10,
    threshold: float = 1e-4,
    threshold_mode: str = "rel",
    cooldown: int = 0,
    min_lr: float = 0.0,
    eps: float = 1e-8,
  ):
    if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
      fail(ArgumentError, 'ReduceLROnPlateau: mode is "min" or "max", threshold_mode "rel" or "abs"')
    if factor >= 1:
      fail(ArgumentError, f"ReduceLROnPlateau: times {factor} is no reduction")
    self.optimizer = optimizer
    self._rates, self.mode, self.factor, self.patience = optimizer.rates(), mode, factor, patience
    self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
    self.min_lr, self.eps = min_lr, eps
    self.best, self.bad, self.rests = math.inf if mode == "min" else -math.inf, 0, 0

  def _better(self, value: float) -> bool:
    sign = -1 if self.mode == "min" else 1
    if self.threshold_mode == "abs":
      return sign * value > sign * self.best + self.threshold
    return sign * value > sign * (self.best * (1 + sign * self.threshold))

  def step(self, metrics: Any) -> None:
    """Told the number: a loss, or, with mode="max", an accuracy."""
    value = float(metrics)
    if self._better(value):
      self.best, self.bad = value, 0
    else:
      self.bad += 1
    if self.rests:
      self.rests, self.bad = self.rests - 1, 0
    if self.bad > self.patience:
      self.rests, self.bad = self.cooldown, 0
      for rate in self._rates:
        old = rate.item()
        new = max(old * self.factor, self.min_lr)
        if old - new > self.eps:
          rate.assign(Tensor(new, dtype=rate.dtype, device=rate.device))

  def get_last_lr(self) -> list[float]:
    """The rates now, one for each tensor of them."""
    return [rate.item() for rate in self._rates]

  def state_dict(self) -> dict[str, Any]:
    """What it has seen."""
    return {name: getattr(self, name) for name in ("best", "bad", "rests")}

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Go on from a `state_dict`."""
    self.best, self.bad, self.rests = (state[name] for name in ("best", "bad", "rests"))


class WarmupCosineLR(LRScheduler):
  """Up in a line over `warmup` steps, then along half a cosine to `floor` times the rate at `total`.

  Step 0 has 1 / warmup of the rate. As GPT-3 was trained: https://arxiv.org/abs/2005.14165, appendix B.

  >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
  >>> schedule = nn.optim.lr_scheduler.WarmupCosineLR(optimizer, warmup=2, total=4)
  >>> for _ in range(3): schedule.step()
  >>> round(optimizer.lr.item(), 4)
  0.5
  """

  def __init__(self, optimizer: Optimizer, warmup: int, total: int, floor: float = 0.0, last_epoch: int = -1):
    self.warmup, self.total, self.floor = warmup, total, floor
    super().__init__(optimizer, last_epoch)

  def rate(self, base: float, t: Tensor) -> Tensor:
    up = ((t + 1) / max(1, self.warmup)).minimum(1.0)
    done = ((t - self.warmup) / max(1, self.total - self.warmup)).clamp(0.0, 1.0)
    return base * up * (self.floor + (1 - self.floor) * (1 + (done * math.pi).cos()) / 2)


__all__ = [
  "ChainedScheduler",
  "ConstantLR",
  "CosineAnnealingLR",
  "CosineAnnealingWarmRestarts",
  "CyclicLR",
  "ExponentialLR",
  "LRScheduler",
  "LambdaLR",
  "LinearLR",
  "MultiStepLR",
  "MultiplicativeLR",
  "OneCycleLR",
  "PolynomialLR",
  "ReduceLROnPlateau",
  "SequentialLR",
  "StepLR",
  "WarmupCosineLR",
]
