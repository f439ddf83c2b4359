"""An optimizer's step as a function: of parameters, gradients and state, to new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mini.ir import graph
from mini.nn.optimizer import Optimizer
from mini.nn.state import LANES, StateError, lay, views
from mini.tensor import Tensor
from mini.tensor.autograd import rebuilt, tensors_of
from mini.tensor.errors import fail
from mini.tensor.handle import needs
from mini.tensor.trace import local
from mini.types import DTypeError, ShapeError


def optimize(
  params: Any, grads: Any, optimizer: Optimizer, state: Mapping[str, Tensor] | None = None
) -> tuple[Any, dict[str, Tensor]]:
  """(new parameters, the new state): what a step would make of them. Nothing is touched, `optimizer` neither.

  params, grads: nested lists, tuples and dicts of tensors, of one form; the n-th of them stands for the n-th parameter
  of the optimizer, which says what is done, with its rates and settings as they are now. The new ones have that form;
  one that requires no gradient there stays.
  state: what the call before returned; None: that of the optimizer, fresh if it has made no step. A dict of tensors,
  which `jit` takes and returns. The same numbers as of `step()`, bit by bit; gradients pass through, to params and
  grads.

  >>> w = {"w": Tensor([4.0])}
  >>> sgd = nn.optim.SGD([Tensor([4.0], requires_grad=True)], lr=0.25, momentum=0.5)
  >>> gradient = mini.grad(lambda w: (w["w"] * w["w"]).sum())
  >>> w, state = nn.optim.optimize(w, gradient(w), sgd)
  >>> w, state = nn.optim.optimize(w, gradient(w), sgd, state)
  >>> w["w"].tolist()
  [0.0]
  """
  if not isinstance(optimizer, Optimizer) or not isinstance(state, Mapping | None):
    about = (
      "optimize(params, grads, optimizer, state): an optimizer, and the dict that the call before returned"
    )
    fail(DTypeError, about, optimizer=optimizer, state=state)
  if local.current is not None:
    local.current.relies(optimizer._settings)
  own, before, slopes = optimizer._all(), tensors_of(params), tensors_of(grads)
  shapes = [[t.shape for t in ts] for ts in (before, slopes, own)]
  if not shapes[0] == shapes[1] == shapes[2]:
    about = (
      f"optimize: params and grads are as the optimizer's {len(own)} parameters, in their order and shapes"
    )
    fail(ShapeError, about, hint="params {}, grads {}, optimizer {}".format(*shapes))
  number = {p: n for n, p in enumerate(own)}
  found, after = list(before), dict[str, Tensor]()
  for at, b in enumerate(optimizer._buckets):
    names = {name: f"{at}.{name}" for name in ("step", *b.slots)}
    if state is not None and (missing := [name for name in names.values() if name not in state]):
      raise StateError(
        f"optimize: the state has no {', '.join(missing)}: it is of another {type(optimizer).__name__}"
      )
    held = [b.t, *b.slots.values()] if state is None else [state[name] for name in names.values()]
    p, g = (_row([ts[number[p]] for p in b.params], b.params[0].dtype) for ts in (before, slopes))
    new, made = optimizer._stepped(b, p, g, held[0], dict(zip(b.slots, held[1:])))
    for q, u in zip(b.params, views(new._node, b.shapes)):
      found[number[q]] = Tensor(u)
    after |= dict(zip(names.values(), made))
  return rebuilt(params, found), after


def _row(tensors: Sequence[Tensor], kind: Any) -> Tensor:
  """Tensors in one padded row, through which gradients pass."""
  us = [graph.cast(t._node, kind) for t in tensors]
  if not (local.gradients and any(map(needs, us))):
    return Tensor(graph.detach(lay(us)))
  flat = graph.cat(tuple(graph.reshape(u, (graph.numel(u),)) for u in us), 0)
  return Tensor(graph.pad(flat, ((0, -graph.numel(flat) % LANES),)))
