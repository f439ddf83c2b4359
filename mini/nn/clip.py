"""Gradients made smaller: all of them by one factor, or each element by a limit. They go through the flat buffers in
which an optimizer has them, and become parts of these.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from mini.changes import all_or_nothing
from mini.ir import graph
from mini.nn.bucket import gradients_of, near
from mini.nn.state import part_of, views
from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.promotion import wide
from mini.tensor.trace import local
from mini.tensor.views import nodes_of


def _with_gradients(parameters: Any) -> list[Tensor]:
  given: Iterator[Tensor] = iter([parameters] if isinstance(parameters, Tensor) else parameters)
  return [p for p in dict.fromkeys(given) if p.grad is not None]


def _rows(params: Sequence[Tensor]) -> list[list[Tensor]]:
  """Parameters whose gradients go into one flat buffer, in the order in which an optimizer has them."""
  found: dict[Any, list[tuple[int, Tensor]]] = {}
  for p in params:
    flat, start, stop = part_of(p._node)
    key = p.dtype if (start, stop) == (0, graph.shape(flat)[0]) else flat
    found.setdefault((key, p.device), []).append((start if key is flat else 0, p))
  return [[p for _, p in sorted(row, key=lambda item: item[0])] for row in found.values()]


@no_grad()
def clip_grad_norm(parameters: Any, max_norm: float, norm_type: float = 2.0) -> Tensor:
  """Scale all gradients together so that their norm, as of one vector, is at most max_norm.

  Returns the norm before, computed together with the step that follows. As torch.nn.utils.clip_grad_norm_.

  >>> w = Tensor([0.0, 0.0], requires_grad=True)
  >>> (w * Tensor([3.0, 4.0])).sum().backward()
  >>> clip_grad_norm([w], 1.0).item()
  5.0
  >>> w.grad.numpy().round(3)
  array([0.6, 0.8], dtype=float32)
  """
  params = _with_gradients(parameters)
  if not params:
    return Tensor(0.0)
  rows = _rows(params)
  flats = [gradients_of(row) for row in rows]
  norms = [near(_powers(g.cast(wide(g.dtype)), norm_type), flats[0]) for g in flats]
  if math.isinf(norm_type):
    total = norms[0]
    for n in norms[1:]:
      total = total.maximum(n)
  else:
    total = sum(norms[1:], norms[0])
    total = total.sqrt() if norm_type == 2 else total ** (1 / norm_type)
  scale = (max_norm / (total + 1e-6)).minimum(1.0)
  _give(rows, [(g * near(scale, g)).cast(g.dtype) for g in flats], total)
  return total


def _powers(g: Tensor, norm_type: float) -> Tensor:
  if math.isinf(norm_type):
    return g.abs().max()
  return (g * g).sum() if norm_type == 2 else (g.abs() ** norm_type).sum()


def _give(rows: Sequence[Sequence[Tensor]], flats: Sequence[Tensor], total: Tensor | None = None) -> None:
  """The parts of each flat as the gradients of a row, all at once; `total` is computed where these are used."""

  def give() -> None:
    for row, flat in zip(rows, flats):
      for p, u in zip(row, views(flat._node, [p.shape for p in row])):
        old = p.grad
        assert old is not None
        losses = (*old._losses, *(() if total is None else (weakref.ref(total),)))
        if local.current is not None:
          p.grad = Tensor(u)
        elif old._base is not None or old._views:
          old._bind(u)
        else:
          old._set(u)
        new = p.grad
        assert new is not None
        new._losses = losses

  params = [p for row in rows for p in row]
  grads = [p.grad for p in params if p.grad is not None]
  with no_grad():
    all_or_nothing([*((p, "_grad", p._grad) for p in params), *nodes_of(grads)], give)


@no_grad()
def clip_grad_value(parameters: Any, clip_value: float) -> None:
  """Limit every element of the gradients to [-clip_value, clip_value]."""
  rows = _rows(_with_gradients(parameters))
  _give(rows, [gradients_of(row).clamp(-clip_value, clip_value) for row in rows])


clip_grad_norm_, clip_grad_value_ = clip_grad_norm, clip_grad_value  # PyTorch's names
