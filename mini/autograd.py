"""torch.autograd's names: `mini.autograd.grad`, `backward`, and `functional`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from mini.changes import During
from mini.grad import gradients
from mini.gradient_rules import without_gradient
from mini.tensor import Tensor, transforms
from mini.tensor.autograd import enable_grad, filled, halves, no_grad
from mini.tensor.errors import fail
from mini.tensor.handle import Handle
from mini.tensor.realize_group import know
from mini.tensor.trace import local
from mini.types import MiniError, ShapeError

Tensors = Any  # a tensor, or a sequence of them


def _several(x: Any) -> list[Any]:
  return [x] if x is None or isinstance(x, Handle) else [*x]


def grad(
  outputs: Tensors,
  inputs: Tensors,
  grad_outputs: Tensors = None,
  retain_graph: bool | None = None,
  create_graph: bool = False,
  allow_unused: bool | None = None,
  materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
  """The gradients of outputs, added up, with respect to inputs, which require one; `.grad` stays as it is.

  grad_outputs: what is passed back to each output, in its shape; None: 1 to its one element. create_graph: the
  gradients can be differentiated. MiniError of an input that no output depends on, unless allow_unused: then it is
  None, or, with materialize_grads, zeros. retain_graph has no effect: the graph stays.

  >>> x = Tensor([1.0, 2.0], requires_grad=True)
  >>> mini.autograd.grad((x * x).sum(), x)
  (Tensor([2., 4.]),)
  """
  outs, wrt = _several(outputs), _several(inputs)
  given = [None] * len(outs) if grad_outputs is None else _several(grad_outputs)
  if len(given) != len(outs):
    fail(ShapeError, f"autograd.grad: {len(outs)} outputs, and {len(given)} grad_outputs")
  nodes, seeds = [], []
  for y, g in zip(outs, given):
    if g is None and y.numel() != 1:
      fail(ShapeError, f"autograd.grad: y has {y.numel()} elements; give grad_outputs, or y.sum()", y=y)
    if g is not None and g.shape != y.shape:
      fail(ShapeError, "autograd.grad: a grad_output does not have its output's shape", y=y, gradient=g)
    if not y.requires_grad:
      fail(MiniError, "autograd.grad: y does not require a gradient", y=y)
    for part, half in zip(y._parts(), halves("autograd.grad", y, g)):
      nodes.append(part._node)
      seeds.append(part._seed(half))
  for t in wrt:
    if not t.requires_grad:
      fail(MiniError, "autograd.grad: x does not require a gradient", x=t)
  if local.current is not None:
    local.current.differentiates()
  with During(local, "once", not create_graph):
    found = iter(gradients(nodes, seeds, [p._node for t in wrt for p in t._parts()]))
  return tuple(
    _result(t, found, create_graph, bool(allow_unused or materialize_grads), materialize_grads) for t in wrt
  )


def _result(x: Tensor, found: Any, create_graph: bool, unused: bool, zeros: bool) -> Tensor | None:
  """The gradient of x, from those of its parts."""
  own = [next(found) for _ in x._parts()]
  if all(g is None for g in own):
    if not unused:
      fail(MiniError, "autograd.grad: no output depends on x; allow_unused=True gives None for it", x=x)
    return x.zeros_like() if zeros else None
  parts = []
  for u in filled(own, [p._node for p in x._parts()]):
    parts.append(Handle._new(u if create_graph else without_gradient(u)))
  know(parts)
  rest = iter(parts)
  return x._mapped(lambda _: next(rest))


def backward(
  tensors: Tensors, grad_tensors: Tensors = None, retain_graph: bool | None = None, create_graph: bool = False,
  inputs: Tensors = None,
) -> None:  # fmt: skip
  """`Tensor.backward` of each of several tensors."""
  outs = _several(tensors)
  for y, g in zip(outs, [None] * len(outs) if grad_tensors is None else _several(grad_tensors)):
    y.backward(g, bool(retain_graph), create_graph, inputs)


# ---------------------------------------------------------------- functional


def _all(inputs: Tensors) -> tuple[tuple[Any, ...], Any]:
  """The arguments, and which of them gradients are taken of: 0 of one tensor, all of a tuple."""
  return ((inputs,), 0) if isinstance(inputs, Handle) else (tuple(inputs), tuple(range(len(inputs))))


def jacobian(func: Callable[..., Any], inputs: Tensors, **options: Any) -> Any:
  """`mini.jacobian` at a place: of a tuple of tensors a tuple of Jacobians.

  >>> mini.autograd.functional.jacobian(lambda x: x * x, Tensor([1.0, 2.0])).tolist()
  [[2.0, 0.0], [0.0, 4.0]]
  """
  args, which = _all(inputs)
  return transforms.jacobian(func, which)(*args)


def hessian(func: Callable[..., Any], inputs: Tensors, **options: Any) -> Any:
  """`mini.hessian` at a place."""
  args, which = _all(inputs)
  return transforms.hessian(func, which)(*args)


def vjp(func: Callable[..., Any], inputs: Tensors, v: Any = None, **options: Any) -> tuple[Any, Any]:
  """(outputs, v times the Jacobian)"""
  args, _ = _all(inputs)
  out, back = transforms.vjp(func, *args)
  found = back(out.ones_like() if v is None else v)
  return out, found[0] if isinstance(inputs, Handle) and isinstance(found, tuple) else found


def jvp(func: Callable[..., Any], inputs: Tensors, v: Any = None, **options: Any) -> tuple[Any, Any]:
  """(outputs, the Jacobian times v)"""
  args, _ = _all(inputs)
  tangents: Sequence[Any] = [t.ones_like() for t in args] if v is None else _several(v)
  return transforms.jvp(func, args, tuple(tangents))


functional = SimpleNamespace(jacobian=jacobian, hessian=hessian, vjp=vjp, jvp=jvp)

__all__ = ["backward", "enable_grad", "functional", "grad", "no_grad"]
