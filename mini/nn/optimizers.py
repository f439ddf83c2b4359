"""The optimizers, a rule of a few lines each; as mini/nn/optimizer.py has it they step flat buffers.
`nn.optim.NAME` finds them.

All take `weight_decay` and `maximize` for each group, and `master_weights` (see Optimizer); PyTorch's have its
arguments and follow its trajectories. `foreach`, `fused` and `capturable` have no effect: every step is one kernel,
which `jit` can capture; nor has `differentiable`: `mini.optimize` is a step that gradients pass through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, ClassVar

import numpy as np

from mini.nn.bucket import Bucket, Choose, near, same
from mini.nn.optimizer import Optimizer
from mini.nn.state import lay, views
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError, ShapeError, dtypes

State = dict[str, Tensor]
HOW = (
  "foreach",
  "fused",
  "capturable",
  "differentiable",
)  # PyTorch's words for how a step is made: without effect


class Rule(Optimizer):
  """An optimizer whose arguments, with their defaults, are `options`, and whose step is `way`.

  decoupled: weight decay shrinks parameters, and is not added to gradients.
  """

  options: ClassVar[Mapping[str, Any]] = {}
  decoupled = False
  __signature__: ClassVar[Signature]

  def __init_subclass__(cls) -> None:
    ours = all(getattr(getattr(cls, name), "__module__", None) == __name__ for name in ("update", "way"))
    cls.is_captured = vars(cls).get("is_captured", ours)  # what a user's own does each time is not known
    either = Parameter.POSITIONAL_OR_KEYWORD
    more = {
      n: x
      for n, x in (("weight_decay", 0.0), ("maximize", False), ("master_weights", False))
      if n not in cls.options
    }
    settings = [Parameter(n, either, default=x) for n, x in {**cls.options, **more}.items()]
    settings += [Parameter(n, Parameter.KEYWORD_ONLY, default=None) for n in HOW]
    cls.__signature__ = Signature([Parameter("params", either), *settings])

  def __init__(self, *args: Any, **kwargs: Any):
    try:
      bound = self.__signature__.bind(*args, **kwargs)
    except TypeError as e:
      raise TypeError(f"{type(self).__name__}{self.__signature__}: {e}") from None
    bound.apply_defaults()
    for name in HOW:
      del bound.arguments[name]
    params, settings = list(bound.arguments.pop("params")), bound.arguments
    masters = settings.pop("master_weights")
    self.slots = self.needed([{**settings, **d} for d in params if isinstance(d, Mapping)] or [settings])
    super().__init__(params, settings, masters)

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    """As `update`, of a gradient that is to be followed downwards, with the decay in it."""
    raise NotImplementedError(type(self).__name__)

  def update(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    sign = choose(lambda group: -1 if group["maximize"] else 1)
    g = g if same(sign, 1) else sign * g
    apart = self._apart
    coupled = choose(lambda group: 0 if apart(group) else group["weight_decay"])
    shrunk = choose(
      lambda group: 1 - group["lr"] * group["weight_decay"] if apart(group) and group["weight_decay"] else 1.0
    )
    g = g if same(coupled, 0) else g + coupled * p
    return self.way(p if same(shrunk, 1.0) else p * shrunk, g, state, t, choose)

  def _apart(self, group: Mapping[str, Any]) -> bool:
    return self.decoupled or group.get("decoupled_weight_decay", False)


def _has_momentum(group: Mapping[str, Any]) -> bool:
  """Also where a schedule moves it (`moving_momentum`), whatever it is now."""
  return not same(group["momentum"], 0)


def _begun(state: dict[str, Any]) -> dict[str, Any]:
  """The state of what PyTorch does not count the steps of: one or more, where there is some."""
  return {"step": 1, **state} if state else state


def _lerp(a: Tensor, b: Tensor, share: Any) -> Tensor:
  return a + share * (b - a)


def _moments(g: Tensor, state: State, choose: Choose) -> tuple[Tensor, Tensor]:
  """The running averages of gradients and of their squares."""
  rest = [choose(lambda group, n=n: 1 - group["betas"][n]) for n in range(2)]  # type: ignore[misc]
  return _lerp(state["exp_avg"], g, rest[0]), _lerp(state["exp_avg_sq"], g * g, rest[1])


def _correction(beta: Any, t: Tensor, kind: Any) -> Any:
  """1 - beta ** t, as -expm1(t * log(beta)): exact to the last places where beta ** t is near 1."""
  if same(beta, 0):
    return 1.0
  return -(t.cast(kind) * (beta.log() if isinstance(beta, Tensor) else math.log(beta))).expm1()


def _root(x: Any) -> Any:
  return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _flagged(choose: Choose, name: str, there: Tensor, elsewhere: Tensor) -> Tensor:
  """`there` for the groups in which a setting is true."""
  on = choose(lambda group: float(group[name]))
  return there if same(on, 1.0) else elsewhere if same(on, 0.0) else (on != 0).where(there, elsewhere)


class SGD(Rule):
  """Stochastic gradient descent, with momentum if it is not 0.

  >>> w = Tensor([1.0], requires_grad=True)
  >>> (w * w).sum().backward()
  >>> nn.optim.SGD([w], lr=0.25, momentum=0.9, nesterov=True).step()
  >>> round(w.item(), 4)
  0.05
  """

  options: ClassVar = {"lr": 1e-3, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False}

  def needed(self, groups: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    if any(group["nesterov"] and (group["momentum"] <= 0 or group["dampening"]) for group in groups):
      fail(ArgumentError, "SGD: nesterov needs momentum, and no dampening")
    return ("momentum_buffer",) if any(map(_has_momentum, groups)) else ()

  def read(self, state: dict[str, Any], p: Tensor) -> dict[str, Any]:
    return _begun(state)

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    rate = choose(lambda group: group["lr"])
    if not self.slots:
      return p - rate * g, {}
    momentum = choose(lambda group: group["momentum"])
    taken = choose(lambda group: 1 - group["dampening"] if _has_momentum(group) else 1)
    buffer = momentum * state["momentum_buffer"] + (g if same(taken, 1) else (t > 1).where(taken * g, g))
    return p - rate * _flagged(choose, "nesterov", g + momentum * buffer, buffer), {"momentum_buffer": buffer}


ADAM = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}


class Adam(Rule):
  """Averaged gradients over the root of their averaged squares; amsgrad: of the largest such average so far.
  https://arxiv.org/abs/1412.6980, https://openreview.net/forum?id=ryQu7f-RZ"""

  options: ClassVar = {**ADAM, "amsgrad": False, "decoupled_weight_decay": False}

  def needed(self, groups: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return (
      "exp_avg",
      "exp_avg_sq",
      *(["max_exp_avg_sq"] if any(group["amsgrad"] for group in groups) else []),
    )

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    m = _lerp(state["exp_avg"], g, choose(lambda group: 1 - group["betas"][0]))
    kept, taken = (choose(lambda group: group["betas"][1]), choose(lambda group: 1 - group["betas"][1]))
    v = power = state["exp_avg_sq"] * kept + taken * g * g
    new = {"exp_avg": m, "exp_avg_sq": v}
    if "max_exp_avg_sq" in state:
      new["max_exp_avg_sq"] = state["max_exp_avg_sq"].maximum(v)
      power = _flagged(choose, "amsgrad", new["max_exp_avg_sq"], v)
    rate = choose(lambda group: group["lr"] / _correction(group["betas"][0], t, p.dtype))
    scale = choose(lambda group: _root(_correction(group["betas"][1], t, p.dtype)))
    return p - rate * m / (power.sqrt() / scale + choose(lambda group: group["eps"])), new


class AdamW(Adam):
  """Adam with weight decay apart from the gradient. https://arxiv.org/abs/1711.05101

  >>> w = Tensor([1.0, 2.0], requires_grad=True)
  >>> optimizer = nn.optim.AdamW([w], lr=0.1)
  >>> (w * w).sum().backward()
  >>> optimizer.step()
  >>> w.numpy().round(4)
  array([0.899, 1.898], dtype=float32)
  """

  options: ClassVar = {**ADAM, "weight_decay": 0.01, "amsgrad": False}
  decoupled = True


class ASGD(Rule):
  """Gradient descent at a falling rate; "ax", in the state, is the average of the parameters, from step t0 on.
  https://doi.org/10.1137/0330046"""

  slots = ("ax",)
  options: ClassVar = {"lr": 1e-2, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0.0}

  @staticmethod
  def rate(group: Any, done: Tensor) -> Tensor:
    """The rate after so many steps."""
    return group["lr"] / (1 + group["lambd"] * group["lr"] * done) ** group["alpha"]

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    done = (t - 1).cast(p.dtype)
    rate = choose(lambda group: self.rate(group, done))
    late = choose(lambda group: (done - group["t0"]).maximum(1.0))
    p = p * choose(lambda group: 1 - group["lambd"] * self.rate(group, done)) - rate * g
    return p, {"ax": (late > 1).where(_lerp(state["ax"], p, 1 / late), p)}

  def shown(self, state: State, p: Tensor, group: Mapping[str, Any]) -> State:
    done = state["step"].cast(dtypes.float32)
    return {**state, "eta": self.rate(group, done), "mu": 1 / (done - group["t0"]).maximum(1.0)}

  def read(self, state: dict[str, Any], p: Tensor) -> dict[str, Any]:
    return {name: x for name, x in state.items() if name not in ("eta", "mu")}


class Rprop(Rule):
  """Signs of gradients; a step grows while its sign stays, and shrinks where it turns.
  https://doi.org/10.1109/ICNN.1993.298623"""

  slots = ("prev", "step_size")
  options: ClassVar = {"lr": 1e-2, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50.0)}

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    less, more = (choose(lambda group, n=n: group["etas"][n]) for n in range(2))  # type: ignore[misc]
    least, most = (choose(lambda group, n=n: group["step_sizes"][n]) for n in range(2))  # type: ignore[misc]
    same = g * state["prev"]
    size = (t == 1).where(choose(lambda group: group["lr"]), state["step_size"])
    size = (size * (same > 0).where(more, (same < 0).where(less, 1.0))).maximum(least).minimum(most)
    g = (same < 0).where(0.0, g)
    return p - g.sign() * size, {"prev": g, "step_size": size}


class Adagrad(Rule):
  """Gradients over the root of the sum of their squares. https://jmlr.org/papers/v12/duchi11a.html

  >>> w = Tensor([1.0], requires_grad=True)
  >>> (w * w).sum().backward()
  >>> nn.optim.Adagrad([w], lr=0.5).step()
  >>> w.tolist()
  [0.5]
  """

  slots = ("sum",)
  options: ClassVar = {
    "lr": 1e-2,
    "lr_decay": 0.0,
    "weight_decay": 0.0,
    "initial_accumulator_value": 0.0,
    "eps": 1e-10,
  }

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    begin = choose(lambda group: group["initial_accumulator_value"])
    before = state["sum"] if same(begin, 0.0) else (t == 1).where(begin, state["sum"])
    total = before + g * g
    rate = choose(lambda group: group["lr"] / (1 + (t - 1).cast(p.dtype) * group["lr_decay"]))
    return p - rate * g / (total.sqrt() + choose(lambda group: group["eps"])), {"sum": total}


class Adadelta(Rule):
  """Steps as large as those before, for the size of the gradient. https://arxiv.org/abs/1212.5701"""

  slots = ("square_avg", "acc_delta")
  options: ClassVar = {"lr": 1.0, "rho": 0.9, "eps": 1e-6}

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    rest, eps = choose(lambda group: 1 - group["rho"]), choose(lambda group: group["eps"])
    squares = _lerp(state["square_avg"], g * g, rest)
    delta = (state["acc_delta"] + eps).sqrt() / (squares + eps).sqrt() * g
    new = {"square_avg": squares, "acc_delta": _lerp(state["acc_delta"], delta * delta, rest)}
    return p - choose(lambda group: group["lr"]) * delta, new


class RMSprop(Rule):
  """Gradients over the root of the running average of their squares, of their variance if centered, with momentum.
  G. Hinton, Neural networks for machine learning, lecture 6e, 2012."""

  options: ClassVar = {
    "lr": 1e-2,
    "alpha": 0.99,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "momentum": 0.0,
    "centered": False,
  }

  def needed(self, groups: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    found = ["square_avg"]
    found += ["grad_avg"] if any(group["centered"] for group in groups) else []
    return (*found, *(["momentum_buffer"] if any(map(_has_momentum, groups)) else []))

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    rest = choose(lambda group: 1 - group["alpha"])
    new = {"square_avg": _lerp(state["square_avg"], g * g, rest)}
    power = new["square_avg"]
    if "grad_avg" in state:
      new["grad_avg"] = _lerp(state["grad_avg"], g, rest)
      power = power - choose(lambda group: 1.0 if group["centered"] else 0.0) * new["grad_avg"].square()
    way = g / (power.sqrt() + choose(lambda group: group["eps"]))
    if "momentum_buffer" in state:
      way = new["momentum_buffer"] = choose(lambda group: group["momentum"]) * state["momentum_buffer"] + way
    return p - choose(lambda group: group["lr"]) * way, new


class Adamax(Rule):
  """Adam over the largest gradient of late. https://arxiv.org/abs/1412.6980, section 7"""

  slots = ("exp_avg", "exp_inf")
  options: ClassVar = {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8}

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    m = _lerp(state["exp_avg"], g, choose(lambda group: 1 - group["betas"][0]))
    eps, kept = choose(lambda group: group["eps"]), choose(lambda group: group["betas"][1])
    top = (kept * state["exp_inf"]).maximum(g.abs() + eps)
    rate = choose(lambda group: group["lr"] / _correction(group["betas"][0], t, p.dtype))
    return p - rate * m / top, {"exp_avg": m, "exp_inf": top}


class NAdam(Rule):
  """Adam with Nesterov's momentum. https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ"""

  slots = ("exp_avg", "exp_avg_sq", "mu_product")
  options: ClassVar = {**ADAM, "lr": 2e-3, "momentum_decay": 4e-3, "decoupled_weight_decay": False}

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    m, v = _moments(g, state, choose)

    def momentum(ahead: int) -> Any:
      x = (t + ahead).cast(p.dtype) * math.log(0.96)
      return choose(lambda group: group["betas"][0] * (1 - 0.5 * (x * group["momentum_decay"]).exp()))

    now, later, rate = momentum(0), momentum(1), choose(lambda group: group["lr"])
    product = (t == 1).where(now, state["mu_product"] * now)
    scale = choose(lambda group: _correction(group["betas"][1], t, p.dtype))
    root = (v / scale).sqrt() + choose(lambda group: group["eps"])
    way = (1 - now) / (1 - product) * g + later / (1 - product * later) * m
    return p - rate * way / root, {"exp_avg": m, "exp_avg_sq": v, "mu_product": product}

  def shown(self, state: State, p: Tensor, group: Mapping[str, Any]) -> State:
    return {**state, "mu_product": state["mu_product"].flatten()[0]}  # it is the same everywhere

  def read(self, state: dict[str, Any], p: Tensor) -> dict[str, Any]:
    product = {n: Tensor(float(x)).expand(p.shape) for n, x in state.items() if n == "mu_product"}
    return {**state, **product}


class RAdam(Rule):
  """Adam that is careful as long as its average of squares is of few. https://arxiv.org/abs/1908.03265"""

  slots = ("exp_avg", "exp_avg_sq")
  options: ClassVar = {**ADAM, "decoupled_weight_decay": False}

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    m, v = _moments(g, state, choose)
    rate = choose(lambda group: group["lr"] / _correction(group["betas"][0], t, p.dtype))
    factor = choose(lambda group: _rectified(group["betas"][1], t).cast(p.dtype))
    root = v.sqrt() + choose(lambda group: group["eps"])
    return p - rate * m * (factor > 0).where(factor / root, 1), {"exp_avg": m, "exp_avg_sq": v}


def _rectified(beta: float, t: Tensor) -> Tensor:
  """What a step is multiplied by besides 1 / root; 0 where the root is not to be used yet.
  In float64: small differences."""
  correction = _correction(beta, t, dtypes.float64)
  most = 2 / (1 - beta) - 1
  length = most - 2 * t.cast(dtypes.float64) * (1 - correction) / correction
  used = length > 5
  n = used.where(length, 6.0)
  square = (n - 4) * (n - 2) * most / ((most - 4) * (most - 2) * n)
  return used.where((square * correction).sqrt(), 0.0)


class Lion(Rule):
  """The signs of averaged gradients. https://arxiv.org/abs/2302.06675"""

  slots = ("exp_avg",)
  options: ClassVar = {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0}
  decoupled = True

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    near_, far = (choose(lambda group, n=n: 1 - group["betas"][n]) for n in range(2))  # type: ignore[misc]
    m = state["exp_avg"]
    return p - choose(lambda group: group["lr"]) * _lerp(m, g, near_).sign(), {"exp_avg": _lerp(m, g, far)}


# ---------------------------------------------------------------- what looks at each parameter as a whole


class _Whole(Rule):
  """A rule that needs each parameter, and not only its elements. Weight decay is the rule's own."""

  _bucket: Bucket

  def _apart(self, group: Mapping[str, Any]) -> bool:
    return True

  def _stepped(self, b: Bucket, *given: Any) -> tuple[Tensor, list[Tensor]]:
    self._bucket = b
    return super()._stepped(b, *given)

  def update(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    sign = choose(lambda group: -1 if group["maximize"] else 1)
    return self.way(p, g if same(sign, 1) else sign * g, state, t, choose)

  def each(self, f: Callable[..., Tensor], *flats: Tensor) -> Tensor:
    """f(group, lr, part of each flat buffer) of every parameter, as one buffer."""
    b = self._bucket
    parts = zip(*(views(x._node, b.shapes) for x in flats))
    found = [f(group, near(group["lr"], b.t), *map(Tensor, us)) for group, us in zip(b.groups, parts)]
    return Tensor(lay([x._node for x in found]))


def _ratio(a: Tensor, b: Tensor) -> Tensor:
  """a / b, or 1 where either is 0."""
  usable = (a > 0) & (b > 0)
  return usable.where(a / usable.where(b, 1), 1)


class Adafactor(_Whole):
  """Gradients over the root of their averaged squares, of which a matrix keeps the means of its rows and of its columns
  alone; a step is a share of the parameter's length. https://arxiv.org/abs/1804.04235, as torch.optim.Adafactor.

  eps: what squares are at least, None for the type's own; and what the length of a parameter is at least.
  """

  slots = ("variance",)  # of a matrix: the means of rows, then those of columns
  options: ClassVar = {"lr": 1e-2, "beta2_decay": -0.8, "eps": (None, 1e-3), "d": 1.0, "weight_decay": 0.0}

  def room(self, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) < 2 else (*shape[:-2], shape[-2] + shape[-1])

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    b = self._bucket
    parts = zip(
      b.groups, views(p._node, b.shapes), views(g._node, b.shapes), views(state["variance"]._node, b.rooms)
    )
    made = [self._one(group, near(group["lr"], t), t.cast(p.dtype), *map(Tensor, us)) for group, *us in parts]
    new, squares = (Tensor(lay([x._node for x in xs])) for xs in zip(*made))
    return new, {"variance": squares}

  def _one(
    self, group: Any, lr: Tensor, t: Tensor, p: Tensor, g: Tensor, old: Tensor
  ) -> tuple[Tensor, Tensor]:
    least, shortest = group["eps"]
    least = dtypes.finfo(p.dtype).eps if least is None else least
    now = g * g
    if p.ndim > 1:
      now = Tensor.cat(now.mean(-1), now.mean(-2), dim=-1)
    squares = _lerp(old, now, t ** group["beta2_decay"])
    power = squares
    if p.ndim > 1:
      rows, columns = squares.split([p.shape[-2], p.shape[-1]], -1)
      power = rows.unsqueeze(-1) * columns.unsqueeze(-2) / rows.mean(-1, True).maximum(least).unsqueeze(-1)
    way = g / power.maximum(least * least).sqrt()
    rate = (p.norm() / p.numel() ** 0.5).maximum(shortest) * (1 / t.sqrt()).minimum(lr)
    share = (way.norm() / (p.numel() ** 0.5 * group["d"])).maximum(1.0)
    return p * (1 - lr * group["weight_decay"]) - rate / share * way, squares

  def shown(self, state: State, p: Tensor, group: Mapping[str, Any]) -> State:
    if p.ndim < 2:
      return state
    rows, columns = state.pop("variance").split([p.shape[-2], p.shape[-1]], -1)
    return {**state, "row_var": rows.unsqueeze(-1), "col_var": columns.unsqueeze(-2)}

  def read(self, state: dict[str, Any], p: Tensor) -> dict[str, Any]:
    if p.ndim < 2 or not {"row_var", "col_var"} <= state.keys():
      return state
    rows, columns = (
      x if isinstance(x, Tensor) else Tensor(np.asarray(x)) for x in (state["row_var"], state["col_var"])
    )
    rest = {name: x for name, x in state.items() if name not in ("row_var", "col_var")}
    return {**rest, "variance": Tensor.cat(rows.squeeze(-1), columns.squeeze(-2), dim=-1)}


class LAMB(_Whole):
  """Adam whose step for a parameter is as long as the parameter. https://arxiv.org/abs/1904.00962"""

  slots = ("exp_avg", "exp_avg_sq")
  options: ClassVar = {**ADAM, "eps": 1e-6}

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    m, v = _moments(g, state, choose)
    first, second = (
      choose(lambda group, n=n: _correction(group["betas"][n], t, p.dtype))  # type: ignore[misc]
      for n in range(2)
    )
    way = m / first / ((v / second).sqrt() + choose(lambda group: group["eps"]))
    way = way + choose(lambda group: group["weight_decay"]) * p

    def stepped(group: Any, lr: Tensor, p: Tensor, way: Tensor) -> Tensor:
      return p - lr * _ratio(p.norm(), way.norm()) * way

    return self.each(stepped, p, way), {"exp_avg": m, "exp_avg_sq": v}


class LARS(_Whole):
  """SGD with momentum whose step for a parameter is a share of its length. https://arxiv.org/abs/1708.03888"""

  slots = ("momentum_buffer",)
  options: ClassVar = {
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "trust_coefficient": 0.001,
    "eps": 0.0,
  }

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    def stepped(group: Any, lr: Tensor, p: Tensor, g: Tensor, buffer: Tensor) -> Tensor:
      decay, length = group["weight_decay"], p.norm()
      trust = _ratio(group["trust_coefficient"] * length, g.norm() + decay * length + group["eps"])
      return group["momentum"] * buffer + lr * trust * (g + decay * p)

    buffer = self.each(stepped, p, g, state["momentum_buffer"])
    return p - buffer, {"momentum_buffer": buffer}


class Muon(_Whole):
  """Momentum of matrices, made nearly orthogonal by steps of Newton and Schulz.
  https://kellerjordan.github.io/posts/muon/

  Parameters have two axes, or more, of which all but the first are taken as one. adjust_lr_fn: "original" scales the
  rate by sqrt(max(1, rows / columns)), "match_rms_adamw" by 0.2 * sqrt(max(rows, columns)). As torch.optim.Muon, in
  float32.
  """

  slots = ("momentum_buffer",)
  options: ClassVar = {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True,
             "ns_coefficients": (3.4445, -4.775, 2.0315), "eps": 1e-7, "ns_steps": 5, "adjust_lr_fn": None}  # fmt: skip

  def __init__(self, params: Iterable[Any], *args: Any, **kwargs: Any):
    super().__init__(params, *args, **kwargs)
    for p in self._all():
      if p.ndim < 2:
        fail(ShapeError, "Muon: a parameter is no matrix; AdamW is for the others", parameter=p)

  def way(self, p: Tensor, g: Tensor, state: State, t: Tensor, choose: Choose) -> tuple[Tensor, State]:
    share = choose(lambda group: 1 - group["momentum"])
    buffer = _lerp(state["momentum_buffer"], g, share)
    ahead = choose(lambda group: group["momentum"] if group["nesterov"] else 1.0)
    way = buffer if same(ahead, 1.0) else _lerp(g, buffer, ahead)

    def stepped(group: Any, lr: Tensor, p: Tensor, way: Tensor) -> Tensor:
      flat = way.reshape(way.shape[0], -1)
      rows, columns = flat.shape
      scale = max(1, rows / columns) ** 0.5
      if group["adjust_lr_fn"] == "match_rms_adamw":
        scale = 0.2 * max(rows, columns) ** 0.5
      straight = _orthogonal(flat, group["ns_coefficients"], group["ns_steps"], group["eps"])
      return p * (1 - lr * group["weight_decay"]) - lr * scale * straight.reshape(p.shape)

    return self.each(stepped, p, way), {"momentum_buffer": buffer}

  def read(self, state: dict[str, Any], p: Tensor) -> dict[str, Any]:
    return _begun(state)


def _orthogonal(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
  """A matrix with singular values near 1 instead of x's."""
  a, b, c = coefficients
  tall = x.shape[0] > x.shape[1]
  x = x.T if tall else x
  x = x / x.norm().maximum(eps)
  for _ in range(steps):
    square = x @ x.T
    x = a * x + (b * square + c * (square @ square)) @ x
  return x.T if tall else x


__all__ = [
  "ASGD",
  "LAMB",
  "LARS",
  "SGD",
  "Adadelta",
  "Adafactor",
  "Adagrad",
  "Adam",
  "AdamW",
  "Adamax",
  "Lion",
  "Muon",
  "NAdam",
  "RAdam",
  "RMSprop",
  "Rprop",
  "Rule",
]
