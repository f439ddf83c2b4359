"""Loss scaling: what is too small for float16 is multiplied into its range, and gradients are divided again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mini.changes import Change, all_or_nothing
from mini.ir import graph
from mini.nn.optimizer import Optimizer
from mini.nn.state import lay, views
from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.errors import fail
from mini.types import ArgumentError, MiniError, dtypes

READY, UNSCALED, STEPPED = range(3)


class GradScaler:
  """PyTorch's torch.amp.GradScaler: the loss is multiplied by a scale, gradients are divided by it before a step, and a
  step whose gradients are not all finite is left out. Then the scale is multiplied by backoff_factor; after
  growth_interval steps without that, by growth_factor.

  Whether a step is made depends on values: `step` waits for them, and cannot stand in a jitted function. MiniError on
  calls out of order, as PyTorch's RuntimeError.

  >>> w = Tensor([1.0], requires_grad=True)
  >>> optimizer, scaler = nn.optim.SGD([w], lr=0.5), nn.GradScaler(init_scale=1024.0)
  >>> scaler.scale((w * 3).sum()).backward()
  >>> scaler.step(optimizer)
  >>> scaler.update()
  >>> w.tolist(), scaler.get_scale()
  ([-0.5], 1024.0)
  """

  def __init__(
    self,
    device: str | None = None,
    init_scale: float = 65536.0,
    growth_factor: float = 2.0,
    backoff_factor: float = 0.5,
    growth_interval: int = 2000,
    enabled: bool = True,
  ):
    if enabled and growth_factor <= 1:
      fail(ArgumentError, f"GradScaler: the growth factor is more than 1, not {growth_factor}")
    if enabled and not 0 < backoff_factor < 1:
      fail(ArgumentError, f"GradScaler: the backoff factor is between 0 and 1, not {backoff_factor}")
    self.device = device  # PyTorch asks for it; gradients are scaled where they are
    self._scale, self._enabled, self._since = float(init_scale), enabled, 0
    self._growth, self._backoff, self._interval = growth_factor, backoff_factor, growth_interval
    self._stages: dict[Optimizer, int] = {}
    self._found: dict[Optimizer, bool] = {}  # were there gradients that are not finite?

  def is_enabled(self) -> bool:
    """If not, losses and steps are as without it."""
    return self._enabled

  def get_scale(self) -> float:
    """What a loss is multiplied by."""
    return self._scale if self._enabled else 1.0

  def scale(self, outputs: Any) -> Any:
    """A loss, or a list or tuple of them, times the scale: float32, as PyTorch's."""
    if not self._enabled:
      return outputs
    if isinstance(outputs, (list, tuple)):
      return type(outputs)(self.scale(x) for x in outputs)
    if not isinstance(outputs, Tensor):
      fail(MiniError, f"scale: a loss is a tensor, not {outputs!r}")
    return outputs * Tensor(self._scale, dtype=dtypes.float32, device=outputs.device)

  def unscale_(self, optimizer: Optimizer) -> None:
    """Divide the gradients of its parameters by the scale now: before they are clipped. Once before each step."""
    if not self._enabled:
      return
    stage = self._stages.get(optimizer, READY)
    if stage == UNSCALED:
      fail(
        MiniError, "unscale_: it has already been called with this optimizer since the last call of update()"
      )
    if stage == STEPPED:
      fail(MiniError, "unscale_: it comes before step()")
    params = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    for p in params:
      if p.grad.dtype is dtypes.float16:
        about = "unscale_: a gradient is float16, whose range the scale was to widen"
        fail(MiniError, about, "keep parameters in float32, and let autocast round them", parameter=p)
    before: list[Change] = [(p, "_grad", p._grad) for p in params]
    before += [(self, "_found", {**self._found}), (self, "_stages", {**self._stages})]

    def unscale() -> None:
      self._found[optimizer] = bool(params) and self._divide(params)
      self._stages[optimizer] = UNSCALED

    all_or_nothing(before, unscale)

  @no_grad()
  def _divide(self, params: list[Tensor]) -> bool:
    """Divide gradients by the scale; is any of them not finite?"""
    kinds: dict[Any, list[Tensor]] = {}
    for p in params:
      kinds.setdefault((p.grad.dtype, p.grad.device), []).append(p)  # type: ignore[union-attr]
    finite = []
    for row in kinds.values():
      grads = [p.grad for p in row if p.grad is not None]
      flat = Tensor(graph.detach(lay([g._node for g in grads]))) * float(single(1 / self._scale))
      finite.append(flat.isfinite().all())
      for p, g, u in zip(row, grads, views(flat._node, [g.shape for g in grads])):
        new = Tensor(u)
        new._losses = g._losses
        p.grad = new
    Tensor.realize(*finite, *(p.grad for p in params if p.grad is not None))
    return not all(x.item() for x in finite)

  def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
    """`optimizer.step()` with unscaled gradients, if all of them are finite; what it returns."""
    if not self._enabled:
      return optimizer.step(*args, **kwargs)
    if "closure" in kwargs or args:
      fail(MiniError, "step: a closure would compute gradients that are not scaled")
    if self._stages.get(optimizer, READY) == STEPPED:
      fail(MiniError, "step: it has already been called with this optimizer since the last call of update()")
    if self._stages.get(optimizer, READY) == READY:
      self.unscale_(optimizer)
    self._stages[optimizer] = STEPPED
    return None if self._found[optimizer] else optimizer.step()

  def update(self, new_scale: float | Tensor | None = None) -> None:
    """The scale of the next losses: by what the last gradients were, or as given. After the steps of all optimizers."""
    if not self._enabled:
      return
    if new_scale is not None:
      self._scale = float(new_scale)
    elif not self._found:
      fail(MiniError, "update: no gradients were looked at: step() or unscale_() comes before")
    elif any(self._found.values()):
      self._scale, self._since = single(self._scale * self._backoff), 0
    else:
      self._since += 1
      if self._since == self._interval:
        grown = single(self._scale * self._growth)
        self._scale, self._since = grown if math.isfinite(grown) else self._scale, 0
    self._stages, self._found = {}, {}

  def get_growth_factor(self) -> float:
    """What the scale grows by."""
    return self._growth

  def set_growth_factor(self, new_factor: float) -> None:
    """Let the scale grow by another factor."""
    self._growth = new_factor

  def get_backoff_factor(self) -> float:
    """What the scale shrinks by."""
    return self._backoff

  def set_backoff_factor(self, new_factor: float) -> None:
    """Let the scale shrink by another factor."""
    self._backoff = new_factor

  def get_growth_interval(self) -> int:
    """After how many steps the scale grows."""
    return self._interval

  def set_growth_interval(self, new_interval: int) -> None:
    """Let the scale grow after so many steps."""
    self._interval = new_interval

  def state_dict(self) -> dict[str, Any]:
    """PyTorch's entries; none if it is not enabled."""
    if not self._enabled:
      return {}
    return {
      "scale": self._scale,
      "growth_factor": self._growth,
      "backoff_factor": self._backoff,
      "growth_interval": self._interval,
      "_growth_tracker": self._since,
    }

  def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
    """Go on from a `state_dict`."""
    if not self._enabled:
      return
    if not state_dict:
      fail(MiniError, "load_state_dict: the state is empty, as that of a GradScaler that is not enabled")
    self._scale, self._since = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
    self._growth, self._backoff = state_dict["growth_factor"], state_dict["backoff_factor"]
    self._interval = state_dict["growth_interval"]


def single(x: float) -> float:
  """x as float32 holds it; inf beyond its range."""
  return float(dtypes.float32.np.type(x)) if abs(x) < 3.5e38 else math.inf
