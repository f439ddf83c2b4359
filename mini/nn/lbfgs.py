"""L-BFGS: the inverse of the Hessian from the last steps and what they changed of the gradient (J. Nocedal and S.
Wright, Numerical Optimization, 2006: algorithms 7.4, 3.5 and 3.6). Its vectors are NumPy's: a step is some products of
vectors beside several calls of the closure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mini.nn.optimizer import Optimizer
from mini.tensor.autograd import enable_grad, no_grad
from mini.tensor.errors import fail
from mini.types import ArgumentError

Evaluate = Callable[
  [float], tuple[float, np.ndarray]
]  # how far along the direction -> (the loss, its gradient there)


class LBFGS(Optimizer):
  """L-BFGS; `step(closure)` calls the closure, which computes the loss and its gradients anew, up to max_eval times
  (None: 5/4 of max_iter, the number of iterations).

  line_search_fn: None, or "strong_wolfe". history_size: how many steps it remembers. All arguments are PyTorch's.

  >>> w = Tensor([3.0, -2.0], requires_grad=True)
  >>> optimizer = nn.optim.LBFGS([w], line_search_fn="strong_wolfe")
  >>> def closure():
  ...   optimizer.zero_grad()
  ...   loss = ((w - Tensor([1.0, 5.0])) ** 4).sum()
  ...   loss.backward()
  ...   return loss
  >>> loss = optimizer.step(closure)
  >>> w.round(decimals=1).tolist()
  [1.0, 5.0]
  """

  def __init__(
    self,
    params: Iterable[Any],
    lr: float = 1,
    max_iter: int = 20,
    max_eval: int | None = None,
    tolerance_grad: float = 1e-7,
    tolerance_change: float = 1e-9,
    history_size: int = 100,
    line_search_fn: str | None = None,
  ):
    if line_search_fn not in (None, "strong_wolfe"):
      fail(ArgumentError, f'LBFGS: line_search_fn is None or "strong_wolfe", not {line_search_fn!r}')
    super().__init__(params, {"lr": lr})
    if len(self.param_groups) > 1:
      fail(ArgumentError, "LBFGS: there is one group of parameters")
    self.param_groups[0].update(
      max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval, tolerance_grad=tolerance_grad,
      tolerance_change=tolerance_change, history_size=history_size, line_search_fn=line_search_fn,
    )  # fmt: skip
    self._memory: dict[str, Any] = {"n_iter": 0, "func_evals": 0, "steps": [], "changes": []}

  # ---------------------------------------------------------------- parameters as one vector

  def _gradient(self) -> np.ndarray:
    kept = [(p, p.grad) for p in self._all()]
    return np.concatenate([(np.zeros(p.numel()) if g is None else g.numpy()).ravel() for p, g in kept])

  def _values(self) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in self._all()])

  def _set(self, vector: np.ndarray) -> None:
    start = 0
    with no_grad():
      for p in self._all():
        p.assign(vector[start : start + p.numel()].reshape(p.shape).astype(p.dtype.np))
        start += p.numel()

  # ---------------------------------------------------------------- steps

  def step(self, closure: Callable[[], Any] | None = None) -> Any:
    """Up to max_iter iterations; returns the loss at the beginning."""
    if closure is None:
      fail(ArgumentError, "LBFGS.step: give a closure, which computes the loss and its gradients")
    group, memory = self.param_groups[0], self._memory

    def evaluate() -> tuple[float, np.ndarray]:
      memory["func_evals"] += 1
      with enable_grad():
        loss = closure()
      return float(loss), self._gradient()

    with enable_grad():
      first = closure()
    loss, g = float(first), self._gradient()
    calls = memory["func_evals"]
    memory["func_evals"] += 1
    lr = float(group["lr"])
    for n in range(1, group["max_iter"] + 1):
      if abs(g).max(initial=0) <= group["tolerance_grad"]:
        break
      memory["n_iter"] += 1
      d = self._direction(g)
      memory["gradient"], before = g, loss
      t = min(1.0, 1 / abs(g).sum()) * lr if memory["n_iter"] == 1 else lr
      slope = float(g @ d)
      if slope > -group["tolerance_change"]:
        break
      start = self._values()

      def along(t: float, start: np.ndarray = start, d: np.ndarray = d) -> tuple[float, np.ndarray]:
        self._set(start + t * d)
        return evaluate()

      if group["line_search_fn"]:
        loss, g, t = strong_wolfe(along, t, d, loss, g, slope, group["tolerance_change"])
        self._set(start + t * d)
      elif n < group["max_iter"]:
        loss, g = along(t)
      else:
        self._set(start + t * d)
      memory["step"] = t * d
      small = abs(t * d).max(initial=0) <= group["tolerance_change"]
      if (
        memory["func_evals"] - calls >= group["max_eval"]
        or small
        or abs(loss - before) < group["tolerance_change"]
      ):
        break
    return first

  def _direction(self, g: np.ndarray) -> np.ndarray:
    """-H g, by the two loops over the steps that are remembered."""
    memory, most = self._memory, self.param_groups[0]["history_size"]
    if "gradient" not in memory:
      return -g
    change, step = g - memory["gradient"], memory["step"]
    if change @ step > 1e-10:
      memory["steps"] = [*memory["steps"], step][-most:]
      memory["changes"] = [*memory["changes"], change][-most:]
      memory["scale"] = float(change @ step / (change @ change))
    q, shares = -g, []
    pairs = [(s, y, 1 / (y @ s)) for s, y in zip(memory["steps"], memory["changes"])]
    for s, y, rho in reversed(pairs):
      shares.append((s @ q) * rho)
      q = q - shares[-1] * y
    q = q * memory.get("scale", 1.0)
    for s, y, rho in pairs:
      q = q + (shares.pop() - (y @ q) * rho) * s
    return q

  def state_dict(self) -> dict[str, Any]:
    """The settings, and what it remembers."""
    return {**super().state_dict(), "memory": {**self._memory}}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Go on from a `state_dict` of this library."""
    super().load_state_dict({name: part for name, part in state.items() if name != "memory"})
    self._memory = {**state["memory"]}


# ---------------------------------------------------------------- how far along a direction


def cubic(a: tuple[float, float, float], b: tuple[float, float, float], low: float, high: float) -> float:
  """Where the cubic polynomial that has at two places this value and slope is least, within bounds."""
  (x1, f1, g1), (x2, f2, g2) = sorted((a, b))
  d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
  square = d1 * d1 - g1 * g2
  if square < 0:
    return (low + high) / 2
  d2 = square**0.5
  return min(max(x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2)), low), high)


def strong_wolfe(
  along: Evaluate, t: float, d: np.ndarray, f: float, g: np.ndarray, slope: float, least: float,
  c1: float = 1e-4, c2: float = 0.9, most: int = 25,
) -> tuple[float, np.ndarray, float]:  # fmt: skip
  """(loss, gradient, t) at a place with enough of a descent, and a slope that is small beside the one at 0.

  First t grows until a minimum lies between two places; then these come nearer to each other.
  """
  size, start = abs(d).max(), (f, slope)

  def at(t: float) -> tuple[float, float, float, np.ndarray]:
    loss, gradient = along(t)
    return t, loss, float(gradient @ d), gradient

  before, now = (0.0, f, slope, g), at(t)
  ends, calls = None, 1
  while calls < most:
    t, loss, rising, _ = now
    if loss > start[0] + c1 * t * slope or (calls > 1 and loss >= before[1]):
      ends = [before, now]
    elif abs(rising) <= -c2 * slope:
      return loss, now[3], t
    elif rising >= 0:
      ends = [before, now]
    if ends:
      break
    further = cubic(before[:3], now[:3], t + 0.01 * (t - before[0]), t * 10)
    before, now = now, at(further)
    calls += 1
  ends = ends or [(0.0, f, slope, g), now]
  low, high = (0, 1) if ends[0][1] <= ends[1][1] else (1, 0)
  stuck = False
  while calls < most:
    (x1, *_), (x2, *_) = ends
    if abs(x2 - x1) * size < least:
      break
    left, right = min(x1, x2), max(x1, x2)
    t, margin = cubic(ends[0][:3], ends[1][:3], left, right), 0.1 * (right - left)
    if min(right - t, t - left) < margin:
      if stuck or t >= right or t <= left:
        t, stuck = (right - margin if abs(t - right) < abs(t - left) else left + margin), False
      else:
        stuck = True
    else:
      stuck = False
    now = at(t)
    calls += 1
    if now[1] > start[0] + c1 * t * slope or now[1] >= ends[low][1]:
      ends[high] = now
      low, high = (0, 1) if ends[0][1] <= ends[1][1] else (1, 0)
      continue
    if abs(now[2]) <= -c2 * slope:
      ends[low] = now
      break
    if now[2] * (ends[high][0] - ends[low][0]) >= 0:
      ends[high] = ends[low]
    ends[low] = now
  t, loss, _, gradient = ends[low]
  return loss, gradient, t


__all__ = ["LBFGS"]
